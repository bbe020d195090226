/* Schedules: a seed makes a world, a load and a fate, runs it to its end and checks the laws on
 * what the clients saw. The same seed gives the same schedule on every machine. */
#ifndef HS_SIM_RUN_H
#define HS_SIM_RUN_H

#include "base/buf.h"
#include "base/check.h"
#include "sim/check.h"
#include "sim/mistake.h"

#include <stdint.h>

struct hs_sim_result {
	struct hs_sim_verdict verdict;
	uint64_t requests;  /* that clients sent */
	uint64_t steps;	    /* that the world took */
	struct hs_buf text; /* of a broken law: what kind of world it was, and the history */
};

/* Runs one schedule. Returns 0 when every law held, HS_EINVAL when one did not (the result says
 * which), HS_ELIMIT when that could not be decided in reasonable time. `mistake` is planted in the
 * simulated world, to see whether it is noticed. Whoever calls frees result->text. */
int hs_sim_check(uint64_t seed, enum hs_sim_mistake mistake,
		 struct hs_sim_result *result) HS_MUSTCHECK;

#endif
