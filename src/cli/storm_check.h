/* Judges one key's operations of a window, and keeps those that no order explains.
 *
 *     storm_history.c ── operations of a key ──► hs_storm_check ── no order ──► hs_storm_check_save: a file
 *     heatsink storm --judge FILE ─────────────► hs_storm_check_file
 *
 * One thread. */
#ifndef HS_CLI_STORM_CHECK_H
#define HS_CLI_STORM_CHECK_H

#include "base/check.h"
#include "sim/history.h"

#include <stdio.h>

/* 0: an order explains every answer. HS_ELIMIT: the search took more than `steps_max` steps. HS_EINVAL: no order
 * exists; `why` names the one answer without which there is an order, or else the first after which there is none. */
int hs_storm_check(const struct hs_sim_history *history, uint64_t steps_max,
		   struct hs_buf *why) HS_MUSTCHECK;

/* Writes the operations to a new file in `folder`, named after the key. Returns 0 with the path in `path`, or a
 * negative errno. */
int hs_storm_check_save(const struct hs_sim_history *history, const char *folder, const char *key,
			char *path, size_t path_size) HS_MUSTCHECK;

/* `heatsink storm --judge FILE`: reads such a file, judges it with far more steps, prints the verdict and the
 * operations. Returns the exit status: 0 an order exists, 1 none or a bad file, 2 not decided. */
int hs_storm_check_file(const char *path, FILE *out, FILE *err);

#endif
