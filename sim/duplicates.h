/* Law 4, at the servers: what is not idempotent is never sent again. Every value that a client sets, and every
 * amount that it adds, is unlike all others (sim/load_compose.c, sim/load_rules.c), so that a server that runs one of
 * them shows whether it was run before, there or anywhere else. A sum of a fold's amounts counts as one of its own.
 * What carries no such value is left to others: DEL, GETDEL, PEXPIRE and INCR to law 2, elements of lists to
 * sim/companions_check.c. Clients that keep what they read set small numbers, which are not looked at.
 *
 * One thread. */
#ifndef HS_SIM_DUPLICATES_H
#define HS_SIM_DUPLICATES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_sim_ran;
struct hs_sim_world;

struct hs_sim_duplicates {
	int64_t *values; /* set or added */
	size_t count, cap;
};

/* A command that a server has run for a heatsink; what was run before breaks the law. */
void hs_sim_duplicates_note(struct hs_sim_world *world, const struct hs_sim_ran *ran);
void hs_sim_duplicates_deinit(struct hs_sim_duplicates *duplicates);

#endif
