/* Schedules: a seed makes a world, a load and a fate, runs it to its end and checks the laws on
 * what the clients saw. The same seed gives the same schedule on every machine. */
#ifndef HS_SIM_SCHEDULE_H
#define HS_SIM_SCHEDULE_H

#include "acl/acl.h"
#include "base/buf.h"
#include "base/check.h"
#include "sim/check.h"
#include "sim/plan.h"
#include "sim/planted_bugs.h"

#include <stdint.h>

/* What schedules share, so that each need not make it anew. */
struct hs_sim_runner {
	enum hs_sim_bug bug; /* planted in the simulated world, to see whether it is noticed */
	enum hs_sim_focus focus;
	struct hs_acl *acl;
	struct hs_learned *learned; /* what the servers have beside our commands */
};

void hs_sim_runner_init(struct hs_sim_runner *runner, enum hs_sim_bug bug);
void hs_sim_runner_deinit(struct hs_sim_runner *runner);

struct hs_sim_result {
	struct hs_sim_verdict verdict;
	uint64_t requests;	/* that clients sent */
	uint64_t folded;	/* of them answered together with others */
	uint64_t cached;	/* of them answered with what was kept */
	uint64_t replica_reads; /* fetches that a replica answered */
	uint64_t copied;	/* reads that a copy of a hot value answered */
	uint64_t external;	/* commands that servers ran for others than heatsink */
	uint64_t steps;		/* that the world took */
	struct hs_sim_coverage_counts coverage;
	struct hs_buf text; /* of a broken law: what kind of world it was, and the history */
	struct hs_buf
		script; /* if the plan wants one: what happened to servers, and what they ran */
};

/* Runs one schedule. Returns 0 when every law held, HS_EINVAL when one did not (the result says
 * which), HS_ELIMIT when that could not be decided in reasonable time. The caller frees the result's
 * texts. */
int hs_sim_check(const struct hs_sim_runner *runner, uint64_t seed,
		 struct hs_sim_result *result) HS_MUSTCHECK;
/* The same of a plan. */
int hs_sim_check_plan(const struct hs_sim_runner *runner, const struct hs_sim_plan *plan,
		      struct hs_sim_result *result) HS_MUSTCHECK;

/* As hs_sim_check_plan; but it may run the plan in a process of its own, and say of one that ends its process
 * HS_EINVAL with HS_SIM_LAW_LIVES. */
typedef int hs_sim_try(const struct hs_sim_runner *runner, const struct hs_sim_plan *plan,
		       struct hs_sim_result *result);

/* Of a seed that breaks a law: looks for a smaller plan that breaks the same law, with at most `tries_max` tries.
 * Returns how many it took. */
uint32_t hs_sim_shrink(const struct hs_sim_runner *runner, uint64_t seed, uint32_t tries_max,
		       hs_sim_try *try, struct hs_sim_plan *plan);

#endif
