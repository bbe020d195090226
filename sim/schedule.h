/* Schedules: run one and check it. A seed is drawn into a plan (sim/plan.h); the plan becomes a world, its clients
 * and its faults; the world runs to its end, and the checkers judge what clients saw, what servers ran and what is
 * left. The same seed gives the same schedule on every machine, with the same build.
 *
 * A violation is HS_EINVAL with the verdict and the printed history; hs_sim_shrink then looks for a smaller plan
 * that breaks the same law. A failed assertion ends the process: callers that must survive it run schedules in a
 * process of their own (src/cli/sim_show.c). One thread for each runner. */
#ifndef HS_SIM_SCHEDULE_H
#define HS_SIM_SCHEDULE_H

#include "acl/acl.h"
#include "base/buf.h"
#include "base/check.h"
#include "sim/check.h"
#include "sim/plan.h"
#include "sim/planted_bugs.h"

#include <stdint.h>

/* Shared by all schedules of a run. Read-only while they run. */
struct hs_sim_runner {
	enum hs_sim_bug bug; /* planted bug that the checkers should find, or HS_SIM_NO_BUG */
	enum hs_sim_focus focus;
	struct hs_acl *acl;
	struct hs_learned *learned; /* commands that the servers have beyond heatsink's table */
};

void hs_sim_runner_init(struct hs_sim_runner *runner, enum hs_sim_bug bug);
void hs_sim_runner_deinit(struct hs_sim_runner *runner);

struct hs_sim_result {
	struct hs_sim_verdict verdict;
	uint64_t requests;
	uint64_t folded;	/* of `requests`: answered by a batch (fold) */
	uint64_t cached;	/* of `requests`: answered from the cache */
	uint64_t replica_reads; /* reads that were sent to replicas */
	uint64_t copied;	/* reads answered by copies of hot values */
	uint64_t external;	/* commands that other clients ran directly at the servers */
	uint64_t steps;		/* events that the world ran */
	struct hs_sim_coverage_counts coverage;
	/* After HS_EINVAL or HS_ELIMIT: the plan, the verdict ("law 0: " if undecided) and the history. */
	struct hs_buf text;
	/* If the plan asks for it: faults, requests, replies, what servers ran. */
	struct hs_buf script;
};

/* Runs the schedule of a seed. Returns 0 when every law held, HS_EINVAL when one did not (the result says which),
 * HS_ELIMIT when the search for an order took too long. The caller frees the result's texts. */
int hs_sim_check(const struct hs_sim_runner *runner, uint64_t seed,
		 struct hs_sim_result *result) HS_MUSTCHECK;
/* As hs_sim_check, for a plan instead of a seed. */
int hs_sim_check_plan(const struct hs_sim_runner *runner, const struct hs_sim_plan *plan,
		      struct hs_sim_result *result) HS_MUSTCHECK;

/* Runs a plan as hs_sim_check_plan does. It may do so in a process of its own; if the plan ends that process, it
 * returns HS_EINVAL with HS_SIM_LAW_LIVES. */
typedef int hs_sim_try(const struct hs_sim_runner *runner, const struct hs_sim_plan *plan,
		       struct hs_sim_result *result);

/* Looks for a smaller plan that breaks the same law as this seed, with at most `tries_max` tries, and puts the
 * smallest one found into *plan. Returns the number of tries. */
uint32_t hs_sim_shrink(const struct hs_sim_runner *runner, uint64_t seed, uint32_t tries_max,
		       hs_sim_try *try, struct hs_sim_plan *plan);

#endif
