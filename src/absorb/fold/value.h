/* The value of a key after a SET or an add, as far as the asks of a batch say. For absorb/fold only:
 * the plan works out with it what is sent, the answers what each ask gets; so both agree. */
#ifndef HS_ABSORB_FOLD_VALUE_H
#define HS_ABSORB_FOLD_VALUE_H

#include "absorb/fold/fold.h"
#include "command/texts.h"

/* Magnitudes in one add batch stay below it in sum: a number is then never near both limits. */
#define HS_FOLD_MAGNITUDES_MAX (UINT64_C(1) << 62)

/* Whether a number is so far from the limits that no batch reaches them from there. */
static inline bool hs_fold_is_far_from_overflow(int64_t number)
{
	int64_t most = (int64_t)(HS_FOLD_MAGNITUDES_MAX / 2);

	return number > -most && number < most;
}

struct hs_fold_value {
	bool is_number;
	bool changed;	/* added to since it was set */
	int64_t number; /* written out it is the value: only such numbers are numbers in Redis */
	size_t len;	/* of a value that is no number */
	int64_t ttl_ms; /* 0: for ever */
};

static inline void hs_fold_value_set(struct hs_fold_value *value,
				     const struct hs_fold_member *member)
{
	*value = (struct hs_fold_value){.len = member->argv[2].len, .ttl_ms = member->number};
	value->is_number = hs_num_parse_int(member->argv[2], &value->number);
}

/* NULL, or the error that INCR and its kin give then; nothing is changed in that case. */
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
