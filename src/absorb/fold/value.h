/* The value of a key after a SET or an add, as far as the members of a batch determine it. Private to
 * absorb/fold: plan.c computes with it what is sent, answer.c what each member gets, so both agree. */
#ifndef HS_ABSORB_FOLD_VALUE_H
#define HS_ABSORB_FOLD_VALUE_H

#include "absorb/fold/fold.h"
#include "command/texts.h"

/* The magnitudes of one add batch sum to less than this, so a number never comes near both int64 limits. */
#define HS_FOLD_MAGNITUDES_MAX (UINT64_C(1) << 62)

/* Whether no batch can reach an int64 limit from this number. */
static inline bool hs_fold_is_far_from_overflow(int64_t number)
{
	int64_t most = (int64_t)(HS_FOLD_MAGNITUDES_MAX / 2);

	return number > -most && number < most;
}

struct hs_fold_value {
	bool is_number;
	bool changed; /* an add followed the SET */
	/* the value is this number's decimal text: Redis accepts no other text as a number */
	int64_t number;
	size_t len;	/* length of a value that is not a number */
	int64_t ttl_ms; /* 0: none */
};

static inline void hs_fold_value_set(struct hs_fold_value *value,
				     const struct hs_fold_member *member)
{
	*value = (struct hs_fold_value){.len = member->argv[2].len, .ttl_ms = member->number};
	value->is_number = hs_num_parse_int(member->argv[2], &value->number);
}

/* Adds `by`. Returns NULL, or the error text that INCR would give; then the value is unchanged. */
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
