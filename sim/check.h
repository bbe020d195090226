/* Checkers: is what the clients saw something that a single Redis could have shown them? Each takes
 * a history and says 0, or HS_EINVAL with a sentence about what is wrong. They know no core. */
#ifndef HS_SIM_CHECK_H
#define HS_SIM_CHECK_H

#include "base/check.h"
#include "sim/history.h"

struct hs_sim_verdict {
	int law; /* of the design's laws; 0: none is broken */
	char text[240];
};

void hs_sim_verdict_set(struct hs_sim_verdict *verdict, int law, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Law 2, key by key: some order of the operations explains all answers, in which each stands
 * between being asked and being answered, and those of one client in the client's order. A search
 * that takes more than `steps_max` steps gives up with HS_ELIMIT; 0: never. */
int hs_sim_check_order(const struct hs_sim_history *history, uint64_t steps_max,
		       struct hs_sim_verdict *verdict) HS_MUSTCHECK;

/* Law 4, for keys that were only ever incremented by one and read: no two increments were answered
 * with the same number, and `final` is what was acknowledged, or more by no more than what is
 * unknown. */
int hs_sim_check_increments(const struct hs_sim_history *history, uint32_t key, int64_t final,
			    struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
