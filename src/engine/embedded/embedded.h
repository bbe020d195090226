/* The embedded engine: one LMDB store per partition, one redo log, one committer. This is the
 * folder's front door; embedded.c shows how the parts work together and explains the words used
 * here.
 *
 * It runs commands on data through keyspace/ and knows no client, no socket and no mitigation.
 *
 * Threads: the main thread creates the engine, and one thread destroys it after the workers and the
 * control thread have ended (serve/server.c). Workers call it through engine/engine.h, each on its
 * own thread: the worker's thread answers reads, and writes go to the committer. The control thread reads the
 * statistics. The engine's own threads are the committer (all writes), the syncer (waits for the disk) and the
 * checkpoint thread.
 *
 * When the disk fails, the engine refuses writes until a restart, and reads go on (group_disk.c; for the
 * operations in flight: syncer.h). If a file is damaged, the start fails with a message that names the file. */
#ifndef HS_ENGINE_EMBEDDED_EMBEDDED_H
#define HS_ENGINE_EMBEDDED_EMBEDDED_H

#include "engine/engine.h"

struct hs_embedded_options {
	const char *data; /* the folder; created when missing */
	/* of a new database; an existing database keeps its number of partitions */
	uint16_t partitions;
	bool sync;		  /* acknowledge a write only after it is on disk */
	uint64_t store_bytes_max; /* limit of each partition */
	uint64_t log_bytes;	  /* size of each of the two log files */
	bool repair;		  /* open a damaged folder without its damaged parts */
};

/* Opens or creates the database, recovers it and starts the committer. On failure returns an error code, and
 * `error` holds one line that names the fault and the file. Damaged checkpoints or a damaged log are reported
 * before any store or log file is written. */
int hs_embedded_create(const struct hs_embedded_options *options, const struct hs_engine_host *host,
		       struct hs_engine **engine, char *error, size_t error_size) HS_MUSTCHECK;

#endif
