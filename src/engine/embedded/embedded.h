/* The embedded engine: P stores in LMDB, one redo log, one committer. See embedded.c for how they
 * work together. */
#ifndef HS_ENGINE_EMBEDDED_EMBEDDED_H
#define HS_ENGINE_EMBEDDED_EMBEDDED_H

#include "engine/engine.h"

struct hs_embedded_options {
	const char *data;	  /* folder; made when missing */
	uint16_t partitions;	  /* of a new database; an existing one keeps its own */
	bool sync;		  /* acknowledge only what the disk has */
	uint64_t store_bytes_max; /* per partition */
	uint64_t log_bytes;	  /* size of each of the two log files */
	bool repair;		  /* open damaged data all the same, without what is broken in it */
};

/* Opens or makes the database, recovers it, starts the committer. On failure returns an error code
 * and one line in `error` that names what is wrong and where; nothing on disk was changed. */
int hs_embedded_create(const struct hs_embedded_options *options, const struct hs_engine_host *host,
		       struct hs_engine **engine, char *error, size_t error_size) HS_MUSTCHECK;

#endif
