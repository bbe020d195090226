/* Sets of rules. A set is immutable: adding or removing a rule makes a new set. A set owns its rules, their
 * globs and their index (match.c). */
#include "contract/internal.h"

#include "base/err.h"
#include "base/mem.h"

_Static_assert(HS_RULES_MAX <= UINT16_MAX, "a rule's place fits a candidate");

/* Makes a set from rules of other sets; copies their globs. */
static struct hs_rules *make(const struct hs_rule *const *from, size_t count)
{
	struct hs_rules *rules = hs_mem_zalloc(sizeof *rules);
	size_t bytes = 0;

	hs_check(count <= HS_RULES_MAX);
	for (size_t i = 0; i < count; i++)
		bytes += from[i]->glob.len;
	atomic_init(&rules->refs, 1);
	rules->count = (uint32_t)count;
	rules->rules = hs_mem_zalloc((count + 1) * sizeof *rules->rules);
	rules->globs = hs_mem_alloc(bytes + 1);
	bytes = 0;
	for (size_t i = 0; i < count; i++) {
		struct hs_rule *rule = &rules->rules[i];

		*rule = *from[i];
		memcpy(rules->globs + bytes, rule->glob.data, rule->glob.len);
		rule->glob.data = rules->globs + bytes;
		bytes += rule->glob.len;
		rules->has[rule->contract] = true;
		if (rule->contract == HS_CONTRACT_CACHE &&
		    (rules->stale_min_us == 0 || rule->stale_us < rules->stale_min_us))
			rules->stale_min_us = rule->stale_us;
	}
	hs_rules_index_init(rules);
	return rules;
}

struct hs_rules *hs_rules_create(void)
{
	return make(NULL, 0);
}

static struct hs_rules *own(const struct hs_rules *rules)
{
	return (struct hs_rules *)(uintptr_t)rules; /* only the reference count changes */
}

void hs_rules_ref(const struct hs_rules *rules)
{
	atomic_fetch_add_explicit(&own(rules)->refs, 1, memory_order_relaxed);
}

void hs_rules_unref(const struct hs_rules **pointer)
{
	struct hs_rules *rules = own(*pointer);

	*pointer = NULL;
	if (!rules || atomic_fetch_sub_explicit(&rules->refs, 1, memory_order_acq_rel) > 1)
		return;
	hs_rules_index_deinit(rules);
	hs_mem_free(&rules->rules);
	hs_mem_free(&rules->globs);
	hs_mem_free(&rules);
}

static const struct hs_rule *find(const struct hs_rules *rules, struct hs_bytes glob)
{
	for (size_t i = 0; i < rules->count; i++) {
		if (hs_bytes_equal(rules->rules[i].glob, glob))
			return &rules->rules[i];
	}
	return NULL;
}

/* Writes all rules but one to `list`; returns how many. */
static size_t list_others(const struct hs_rules *rules, const struct hs_rule *but,
			  const struct hs_rule **list)
{
	size_t count = 0;

	for (size_t i = 0; i < rules->count; i++) {
		if (&rules->rules[i] != but)
			list[count++] = &rules->rules[i];
	}
	return count;
}

/* Numbers are assigned round robin, so that a new rule does not get the number of one just removed. */
static uint32_t free_number(const bool used[HS_RULES_MAX], uint32_t from)
{
	for (uint32_t i = 0; i < HS_RULES_MAX; i++) {
		uint32_t number = (from + i) % HS_RULES_MAX;

		if (!used[number])
			return number;
	}
	hs_check(false);
	return 0;
}

static void mark_used(const struct hs_rules *rules, bool used[HS_RULES_MAX])
{
	for (size_t i = 0; i < rules->count; i++)
		used[rules->rules[i].number] = true;
}

int hs_rules_with(const struct hs_rules *rules, size_t count, const struct hs_bytes *words,
		  struct hs_rules **with, char *error, size_t error_size)
{
	const struct hs_rule *list[HS_RULES_MAX];
	const struct hs_rule *old;
	struct hs_rule rule;
	uint32_t next = rules->next_number;
	int status = hs_rule_parse(&rule, count, words, error, error_size);
	size_t others;

	if (status < 0)
		return status;
	old = find(rules, rule.glob);
	if (!old && rules->count == HS_RULES_MAX)
		return hs_err_set(HS_ELIMIT, error, error_size, "at most %d rules are allowed",
				  HS_RULES_MAX);
	if (old) {
		rule.number = old->number;
	} else {
		bool used[HS_RULES_MAX] = {0};

		mark_used(rules, used);
		rule.number = free_number(used, next);
		next = (rule.number + 1) % HS_RULES_MAX;
	}
	others = list_others(rules, old, list);
	list[others] = &rule;
	*with = make(list, others + 1);
	(*with)->next_number = next;
	return 0;
}

int hs_rules_without(const struct hs_rules *rules, struct hs_bytes glob, struct hs_rules **without)
{
	const struct hs_rule *list[HS_RULES_MAX];
	const struct hs_rule *old = find(rules, glob);
	size_t others;

	if (!old)
		return HS_ENOTFOUND;
	others = list_others(rules, old, list);
	*without = make(list, others);
	(*without)->next_number = rules->next_number;
	return 0;
}

struct hs_rules *hs_rules_renumber(const struct hs_rules *rules, const struct hs_rules *like)
{
	const struct hs_rule *list[HS_RULES_MAX];
	size_t count = list_others(rules, NULL, list);
	struct hs_rules *renumbered = make(list, count);
	bool used[HS_RULES_MAX] = {0}; /* by rules that are in both sets */
	uint32_t next = like->next_number;

	for (size_t i = 0; i < rules->count; i++) {
		const struct hs_rule *old = find(like, rules->rules[i].glob);

		if (!old)
			continue;
		renumbered->rules[i].number = old->number;
		used[old->number] = true;
	}
	for (size_t i = 0; i < rules->count; i++) {
		struct hs_rule *rule = &renumbered->rules[i];

		if (find(like, rule->glob))
			continue;
		rule->number = free_number(used, next);
		used[rule->number] = true;
		next = (rule->number + 1) % HS_RULES_MAX;
	}
	renumbered->next_number = next;
	return renumbered;
}

bool hs_rules_same(const struct hs_rules *a, const struct hs_rules *b)
{
	struct hs_buf one = {0}, other = {0};
	bool same = a->count == b->count;

	for (size_t i = 0; i < a->count && same; i++) {
		one.len = 0;
		other.len = 0;
		hs_rule_describe(&a->rules[i], &one);
		hs_rule_describe(&b->rules[i], &other);
		same = hs_bytes_equal(hs_buf_bytes(&one), hs_buf_bytes(&other));
	}
	hs_buf_deinit(&one);
	hs_buf_deinit(&other);
	return same;
}

size_t hs_rules_count(const struct hs_rules *rules)
{
	return rules->count;
}

const struct hs_rule *hs_rules_at(const struct hs_rules *rules, size_t index)
{
	return &rules->rules[index];
}

bool hs_rules_any(const struct hs_rules *rules, enum hs_contract contract)
{
	return rules->has[contract];
}

uint64_t hs_rules_stale_min_us(const struct hs_rules *rules)
{
	return rules->stale_min_us;
}
