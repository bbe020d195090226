/* Private to src/cli/sim*.c: how `heatsink sim check` runs many schedules (sim_jobs.c) and shows one that breaks a
 * law (sim_show.c). A schedule is single-threaded; the parallelism is one process for each job, forked here. */
#ifndef HS_CLI_SIM_H
#define HS_CLI_SIM_H

#include "sim/coverage.h"
#include "sim/plan.h"
#include "sim/planted_bugs.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_sim_job_options {
	uint64_t seed;	    /* of the first schedule */
	uint64_t schedules; /* 0: until SIGINT or SIGTERM */
	uint64_t jobs;	    /* forked processes */
	enum hs_sim_bug bug;
	enum hs_sim_focus focus;
};

struct hs_sim_job_sums {
	uint64_t schedules;
	uint64_t requests, folded, cached;
	uint64_t undecided;
	struct hs_sim_coverage_counts coverage;
	bool failed;
	uint64_t failed_seed; /* the lowest of the seeds that were run and broke a law */
};

/* Runs the schedules in order of their seeds. Each process takes the next few when it has finished its last ones.
 * Ends early at the first broken law, or when SIGINT or SIGTERM arrives. Each process finishes the seeds that it
 * took; if it dies (an assertion or a signal), the rest of them is not run.
 * Negative: no process could be started. */
int hs_sim_jobs_run(const struct hs_sim_job_options *options, struct hs_sim_job_sums *sums);

/* Shrinks the schedule of a seed that breaks a law, runs the smallest one found, and prints its script, its plan, the
 * broken law and the history. Everything goes to stdout. */
void hs_sim_show(const struct hs_sim_job_options *options, uint64_t seed);

#endif
