/* Law 4 at the servers: a command that is not idempotent is never sent again. Every value that a client sets, and
 * every amount that it adds, is unique (sim/load_compose.c, sim/load_rules.c), so that a value that is seen twice
 * shows a command that ran twice, on one server or on two. A sum that a fold has combined counts as one value.
 *
 * Commands without a unique value are left to other checks: DEL, GETDEL, PEXPIRE and INCR to law 2, list
 * elements to sim/companions_check.c. Values near the limits of 64 bits (hs_sim_load_options.extremes) are not
 * unique, and are ignored here. One thread. */
#ifndef HS_SIM_DUPLICATES_H
#define HS_SIM_DUPLICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_sim_ran;
struct hs_sim_world;

struct hs_sim_duplicates {
	int64_t *values; /* values set and amounts added so far */
	size_t count, cap;
};

/* A server has run a command for a heatsink; a value that was seen before breaks the law (world->broken). */
void hs_sim_duplicates_note(struct hs_sim_world *world, const struct hs_sim_ran *ran);
void hs_sim_duplicates_deinit(struct hs_sim_duplicates *duplicates);

#endif
