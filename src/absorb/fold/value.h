/* The value of a key while the members of a write batch are evaluated. Private to absorb/fold: plan.c computes
 * with it the command to send, answer.c the answer of each member, so the two agree. */
#ifndef HS_ABSORB_FOLD_VALUE_H
#define HS_ABSORB_FOLD_VALUE_H

#include "absorb/fold/fold.h"
#include "command/texts.h"

/* The magnitudes of an add batch with several adds sum to less than this. So one batch cannot move a number from
 * one int64 limit to the other. */
#define HS_FOLD_MAGNITUDES_MAX (UINT64_C(1) << 62)

/* Whether no add batch with several adds can move this number to an int64 limit. */
static inline bool hs_fold_is_far_from_overflow(int64_t number)
{
	int64_t most = (int64_t)(HS_FOLD_MAGNITUDES_MAX / 2);

	return number > -most && number < most;
}

struct hs_fold_value {
	bool is_number;
	bool changed; /* an add followed the last SET */
	/* The value is the decimal text of `number`, which is the only text that Redis accepts as a number. */
	int64_t number;
	size_t len;	/* length in bytes of a value that is not a number */
	int64_t ttl_ms; /* time to live that the last SET gave; 0: none */
};

static inline void hs_fold_value_set(struct hs_fold_value *value,
				     const struct hs_fold_member *member)
{
	*value = (struct hs_fold_value){.len = member->argv[2].len, .ttl_ms = member->number};
	value->is_number = hs_num_parse_int(member->argv[2], &value->number);
}

/* Adds `by` to the number and returns NULL. If the value is not a number or the sum overflows, leaves the value
 * unchanged and returns the error text of INCR. */
static inline const char *hs_fold_value_add(struct hs_fold_value *value, int64_t by)
{
	if (!value->is_number)
		return HS_TEXT_NOT_INTEGER;
	if (__builtin_add_overflow(value->number, by, &by))
		return HS_TEXT_ADD_OVERFLOW;
	value->number = by;
	value->changed = true;
	return NULL;
}

static inline int hs_fold_sign(int64_t number)
{
	return (number > 0) - (number < 0);
}

static inline size_t hs_fold_value_len(const struct hs_fold_value *value)
{
	char text[HS_NUM_TEXT_MAX];

	return value->is_number ? hs_num_format_int(value->number, text) : value->len;
}

#endif
