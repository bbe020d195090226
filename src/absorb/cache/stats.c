/* The counters of rules. hs_cache_stage.rule_stats is an array by the rule's number, so a rule keeps its counters
 * when other rules change. */
#include "absorb/cache/stats.h"

#include "absorb/cache/stage.h"
#include "contract/contract.h"

const struct hs_counter_table hs_cache_counters = HS_COUNTER_TABLE(HS_CACHE_COUNTERS);
const struct hs_counter_table hs_cache_rule_counters = HS_COUNTER_TABLE(HS_CACHE_RULE_COUNTERS);

static bool has_number(const struct hs_rules *rules, uint32_t number)
{
	for (size_t i = 0; rules && i < hs_rules_count(rules); i++) {
		if (hs_rules_at(rules, i)->number == number)
			return true;
	}
	return false;
}

void hs_cache_count_rules(struct hs_cache_stage *stage, const struct hs_rules *rules)
{
	for (size_t i = 0; rules && i < hs_rules_count(rules); i++) {
		uint32_t number = hs_rules_at(rules, i)->number;
		struct hs_counter *counters = (struct hs_counter *)&stage->rule_stats[number];

		if (has_number(stage->rules, number))
			continue;
		for (size_t j = 0; j < sizeof *stage->rule_stats / sizeof *counters; j++)
			hs_counter_set(&counters[j], 0);
	}
}

struct hs_cache_rule_stats *hs_cache_key_stats(const struct hs_cache_stage *stage,
					       const struct hs_cache_key *cached)
{
	return &stage->rule_stats[cached->rule->number];
}

const struct hs_cache_rule_stats *hs_cache_rule_stats(const struct hs_core *core, uint32_t number)
{
	const struct hs_cache_stage *stage =
		core->stages.self[hs_stage_index(core, &hs_stage_cache)];

	return &stage->rule_stats[number];
}
