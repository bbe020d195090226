/* A data folder as `heatsink check` and `heatsink repair` look at it: locked, so that no server uses
 * it meanwhile, and read without writing to it. */
#ifndef HS_CLI_FOLDER_H
#define HS_CLI_FOLDER_H

#include "base/check.h"
#include "engine/embedded/checkpoint.h"
#include "engine/embedded/format.h"
#include "engine/embedded/redo.h"

#include <stdbool.h>
#include <stdint.h>

enum { HS_FOLDER_ERROR_MAX = 2 * HS_PATH_BYTES_MAX };

struct hs_folder {
	const char *path;
	int lock_fd;
	struct hs_format format;
	bool format_damaged; /* and what is above comes from its copy */
	struct hs_checkpoint_found checkpoint;
	bool checkpoint_damaged; /* a file has no whole copy */
	struct hs_redo redo;
	struct hs_redo_survey log;
	bool log_short[2]; /* the file is missing or shorter than its checkpoint says */
	/* Of all stores that were audited. */
	uint64_t keys, expiries, damaged, misfits, broken;
	uint64_t metas; /* stores whose meta pages are damaged: a start puts them back */
	char error[HS_FOLDER_ERROR_MAX];
};

/* Locks the folder and reads format, checkpoint files and log. What is damaged is marked above, and
 * goes to stdout as a line. Not 0: it cannot be looked at any further, and `error` says why. */
int hs_folder_open(struct hs_folder *folder, const char *path) HS_MUSTCHECK;
void hs_folder_close(struct hs_folder *folder);

/* Reads every store, each in a process of its own. Findings go to stdout, progress to stderr. */
void hs_folder_audit(struct hs_folder *folder);

/* Is a log file missing or too short? */
bool hs_folder_log_short(const struct hs_folder *folder);
/* Was anything found that makes it other than whole? */
bool hs_folder_damaged(const struct hs_folder *folder);

/* Prints what is missing in a damaged log, gap by gap, with the keys that can be told. */
void hs_folder_show_gaps(struct hs_folder *folder);

#endif
