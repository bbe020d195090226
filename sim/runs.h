/* In which order an engine ran what each client asked of a partition: that of the asking (law 2,
 * "pipelined clients included"), over all keys. What clients see of one key at a time does not tell.
 *
 * Noted when an operation comes back, for every request that it stands for; the last time counts, when
 * something was run again. What was refused, or is unknown, is not noted: it may run at any time or
 * never. One thread. */
#ifndef HS_SIM_RUNS_H
#define HS_SIM_RUNS_H

#include "core/core.h"
#include "core/op.h"
#include "sim/check.h"

struct hs_sim_run {
	uint64_t client;
	uint64_t number; /* of the request, among its client's */
	uint64_t at;	 /* in the order of all that was run */
	uint16_t partition;
};

struct hs_sim_runs {
	struct hs_sim_run *all;
	size_t count;
	size_t cap;
};

void hs_sim_runs_deinit(struct hs_sim_runs *runs);
/* The operation was answered; op->engine_order says when it ran. */
void hs_sim_runs_note(struct hs_sim_runs *runs, const struct hs_core *core, const struct hs_op *op);
/* Sorts them. */
int hs_sim_check_runs(struct hs_sim_runs *runs, struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
