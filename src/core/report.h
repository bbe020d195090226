/* HEAT PLAN: what mitigations do about hot keys. Each mitigation writes a row for every key it acts on, and
 * leaves fields that do not apply empty. Worker's thread only; the strings are the caller's and are copied to
 * the reply. */
#ifndef HS_CORE_REPORT_H
#define HS_CORE_REPORT_H

#include "core/state.h"

/* A field that only one mitigation has. */
struct hs_plan_number {
	const char *name;
	uint64_t value;
};

struct hs_plan_row {
	const char *mitigation; /* "copies", "fold" … */
	const char *state;	/* its state, in a word */
	const char *why;	/* why it does nothing; or NULL */
	struct hs_bytes key;	/* or the rule's glob, if the row is about a rule */
	const char *contract;	/* NULL: strict */
	uint64_t since_us;	/* when the state began; 0: unknown */
	const uint16_t *places; /* the partitions concerned */
	const uint64_t *reads;	/* reads sent to each partition; NULL: not counted */
	size_t places_count;
	const struct hs_plan_number *numbers;
	size_t numbers_count;
};

void hs_plan_row(const struct hs_core *core, struct hs_reply *reply, const struct hs_plan_row *row);

#endif
