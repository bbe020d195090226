/* HEAT PLAN rows of copies: for each key of this worker the partitions that hold it and the reads sent there,
 * or why it has no copies; and one row for each rule whose copies cannot be made on this engine. */
#include "core/report.h"
#include "absorb/copies/stage.h"

static const char *state_of(const struct hs_copies_key *copied)
{
	switch (copied->state) {
	case HS_COPIES_WATCHED:
		return "watched";
	case HS_COPIES_MAKING:
		return "making";
	case HS_COPIES_ACTIVE:
		return "active";
	case HS_COPIES_PAUSED:
		break;
	}
	return "paused";
}

static void plan_key(const struct hs_copies_stage *stage, const struct hs_copies_key *copied,
		     struct hs_reply *reply)
{
	const struct hs_copies *copies = copied->copies;
	uint16_t places[HS_COPIES_MAX];
	uint64_t reads[HS_COPIES_MAX] = {0};
	struct hs_plan_number retries = {"retries", 0};
	struct hs_plan_row row = {
		.mitigation = "copies",
		.state = state_of(copied),
		.why = copied->state == HS_COPIES_PAUSED ? copied->why : NULL,
		.key = hs_copies_key_name(copied),
		.contract = "cache",
		.since_us = copied->since_us,
		.places = places,
		.places_count = copies ? copies->count : 1,
		.reads = reads,
		.numbers = &retries,
		.numbers_count = 1,
	};

	places[0] = hs_core_partition(stage->core, copied->slot);
	for (uint32_t i = 0; copies && i < copies->count; i++) {
		places[i] = hs_core_partition(stage->core, copies->places[i].slot);
		reads[i] = copies->places[i].reads;
		retries.value += copies->places[i].rejected;
	}
	hs_plan_row(stage->core, reply, &row);
}

/* Why no rule's copies are made; NULL: they are. */
static const char *why_none(const struct hs_copies_stage *stage)
{
	if (stage->core->options.mitigate == HS_MITIGATE_OFF)
		return "mitigate is off";
	if (stage->core->options.mitigate == HS_MITIGATE_OBSERVE)
		return "mitigate is observe";
	if (stage->core->world.op_scope == HS_OP_SCOPE_ALL)
		return "there is only one server: copies need at least two";
	if (!hs_core_reserves(stage->core))
		return "the partitions of the embedded engine share one machine: copies would not "
		       "relieve "
		       "any of them";
	return NULL;
}

static void plan_rules(const struct hs_copies_stage *stage, const char *why, struct hs_reply *reply)
{
	const struct hs_rules *rules = stage->core->options.rules;

	for (size_t i = 0; rules && i < hs_rules_count(rules); i++) {
		const struct hs_rule *rule = hs_rules_at(rules, i);
		struct hs_plan_row row = {
			.mitigation = "copies",
			.state = "paused",
			.why = why,
			.key = rule->glob,
			.contract = "cache",
		};

		if (rule->copies > 1)
			hs_plan_row(stage->core, reply, &row);
	}
}

void hs_copies_report(void *self, struct hs_reply *reply)
{
	struct hs_copies_stage *stage = self;
	const struct hs_link *keys = &stage->keys;
	const char *why = why_none(stage);

	if (why && stage->core->world.worker == 0)
		plan_rules(stage, why, reply);
	hs_list_each(struct hs_copies_key, key, keys, link)
		plan_key(stage, key, reply);
}
