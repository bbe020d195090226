/* HEAT PLAN: what is being done about hot keys now. Each mitigation writes a row for
 * every key it is at work on; who has nothing to say of a field leaves it as it is. */
#ifndef HS_CORE_REPORT_H
#define HS_CORE_REPORT_H

#include "core/state.h"

/* A number that one kind of mitigation has beside the usual fields. */
struct hs_plan_number {
	const char *name;
	uint64_t value;
};

struct hs_plan_row {
	const char *mitigation; /* "copies", "fold" … */
	const char *state;	/* what it is up to */
	const char *why;	/* it does nothing now; or NULL */
	struct hs_bytes key;	/* or a rule's glob, where it concerns the rule */
	const char *contract;	/* NULL: strict, nothing had to be granted */
	uint64_t since_us;	/* the state began then; 0: not known */
	const uint16_t *places; /* the partitions concerned */
	const uint64_t *reads;	/* sent to each; NULL: not counted */
	size_t places_count;
	const struct hs_plan_number *numbers;
	size_t numbers_count;
};

void hs_plan_row(const struct hs_core *core, struct hs_reply *reply, const struct hs_plan_row *row);

#endif
