/* Private to src/cli/sim*.c: many schedules, in several processes. */
#ifndef HS_CLI_SIM_H
#define HS_CLI_SIM_H

#include "sim/coverage.h"
#include "sim/plan.h"
#include "sim/planted_bugs.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_sim_job_options {
	uint64_t seed;	    /* of the first schedule */
	uint64_t schedules; /* 0: until told to stop */
	uint64_t jobs;	    /* processes */
	enum hs_sim_bug bug;
	enum hs_sim_focus focus;
};

struct hs_sim_job_sums {
	uint64_t schedules;
	uint64_t requests, folded, cached;
	uint64_t undecided;
	struct hs_sim_coverage_counts coverage;
	bool failed;
	uint64_t failed_seed; /* the lowest that broke a law */
};

/* Runs them all: seeds in order, a few at a time to whoever is free. Ends early at the first broken
 * law, and when SIGINT or SIGTERM comes; all seeds below the last one given out have been run then.
 * Negative: processes could not be started. */
int hs_sim_jobs_run(const struct hs_sim_job_options *options, struct hs_sim_job_sums *sums);

/* Of a seed that breaks a law: prints the smallest schedule of its kind that can be found, what happened in it and
 * which law it breaks. */
void hs_sim_show(const struct hs_sim_job_options *options, uint64_t seed);

#endif
