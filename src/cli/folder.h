/* A data folder as `heatsink check` and `heatsink repair` read it: locked, so that no server uses it meanwhile, and
 * never written to here. It knows the files of engine/embedded and no command line. The main thread; each store is
 * read in a child process, so that a damaged page can crash only the child. Findings go to stdout, one line each. */
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
	bool format_damaged; /* the file is damaged; `format` was read from its copy */
	struct hs_checkpoint_found checkpoint;
	bool checkpoint_damaged; /* a checkpoint file has no intact copy */
	struct hs_redo redo;
	struct hs_redo_survey log;
	bool log_short[2]; /* by log file: it is missing or shorter than the checkpoint says */
	/* Sums over the stores audited so far: keys; rows of the tree of expiries; records that fail their checksum;
	 * expiries that do not match their record; faults of the trees. */
	uint64_t keys, expiries, damaged, misfits, broken;
	uint64_t metas; /* stores whose meta pages are damaged: a start restores them */
	char error[HS_FOLDER_ERROR_MAX];
};

/* Locks the folder and reads format, checkpoint files and log. Damage sets the fields above and prints a line. Not 0:
 * the folder cannot be read any further, and `error` has the reason. */
int hs_folder_open(struct hs_folder *folder, const char *path) HS_MUSTCHECK;
void hs_folder_close(struct hs_folder *folder);

/* Reads every store, each in a child process. Findings go to stdout, progress to stderr. */
void hs_folder_audit(struct hs_folder *folder);

/* A log file is missing or too short. */
bool hs_folder_log_short(const struct hs_folder *folder);
/* Any damage was found. */
bool hs_folder_damaged(const struct hs_folder *folder);

/* Prints the gaps of a damaged log, with the keys that can still be read from broken records. */
void hs_folder_show_gaps(struct hs_folder *folder);

#endif
