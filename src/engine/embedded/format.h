/* The format file of a data folder: version, number of partitions, seed, and a checksum over them.
 * Without the seed no key would be found and no checksum would match, so the folder holds a second
 * copy.
 *
 *     heatsink data, format 3
 *     partitions 8
 *     seed 0123456789abcdef
 *     check 0123456789abcdef
 *
 * A start refuses folders of other formats. Format 1 had no checksums in its records: a converter could not check
 * whether the data is undamaged. In format 2 the heads of log records had no checksum of their own, and
 * checkpoints did not record the size of the log files.
 *
 * No state; the thread that opens the database calls it. */
#ifndef HS_ENGINE_EMBEDDED_FORMAT_H
#define HS_ENGINE_EMBEDDED_FORMAT_H

#include "base/check.h"
#include "engine/embedded/files.h"

#include <stdbool.h>
#include <stdint.h>

enum { HS_FORMAT_VERSION = 3 };

struct hs_format {
	unsigned version;
	uint16_t partitions;
	uint64_t seed;
};

/* Reads the format file. Returns 1: the folder has a database; 0: it has none; or an error. A damaged format file
 * is an error even if its copy is undamaged: hs_format_copy reads the copy. */
int hs_format_read(const char *folder, struct hs_format *format,
		   struct hs_fault *fault) HS_MUSTCHECK;
/* Reads the copy of the format file. False: the copy is missing or damaged. */
bool hs_format_copy(const char *folder, struct hs_format *format);

/* Marks the folder: a database is being created in it. If a start comes before hs_format_finish, it creates the
 * database from scratch. */
int hs_format_begin(const char *folder, const struct hs_format *format,
		    struct hs_fault *fault) HS_MUSTCHECK;
int hs_format_finish(const char *folder, struct hs_fault *fault) HS_MUSTCHECK;

/* Replaces the format file or, with `copy`, its copy. */
int hs_format_rewrite(const char *folder, const struct hs_format *format, bool copy,
		      struct hs_fault *fault) HS_MUSTCHECK;

#endif
