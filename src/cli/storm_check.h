/* Checks whether the history of one key is linearizable, and saves a history that is not.
 *
 *     storm_history.c ── operations of a key ──► hs_storm_check ── no order ──► hs_storm_check_save: a file
 *     heatsink storm --check-history FILE ─────► hs_storm_check_file
 *
 * It knows no connection and no reply. One thread. A file that was cut short is refused, and so is one with a line
 * that is no operation; the error then has the line's number. An edited file whose lines are all operations is
 * accepted. */
#ifndef HS_CLI_STORM_CHECK_H
#define HS_CLI_STORM_CHECK_H

#include "base/check.h"
#include "sim/history.h"

#include <stdio.h>

/* 0: an order explains every answer. HS_ELIMIT: the search took more than `steps_max` steps. HS_EINVAL: no order
 * exists; `why` names one answer: the single read whose answer must be removed so that an order exists, or, if there
 * is none, the first answer that makes the history impossible. */
int hs_storm_check(const struct hs_sim_history *history, uint64_t steps_max,
		   struct hs_buf *why) HS_MUSTCHECK;

/* Writes the history to a file in `folder`, named after the key. Returns 0 or a negative errno; sets `path` in both
 * cases. */
int hs_storm_check_save(const struct hs_sim_history *history, const char *folder, const char *key,
			char *path, size_t path_size) HS_MUSTCHECK;

/* `heatsink storm --check-history FILE`: prints the operations of such a file, and the result of a search with
 * far more steps. Returns the exit status: 0 an order exists, 1 none exists or the file is bad, 2 not decided. */
int hs_storm_check_file(const char *path, FILE *out, FILE *err);

#endif
