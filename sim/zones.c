/* Derives zones and ranks from the operations of one key; sim/zones.h explains both. */
#include "sim/zones.h"

#include "base/mem.h"

#include <stdlib.h>

/* The classes of steps, in the order of their ranks (sim/zones.h). */
enum class { ADDS, LEAVES, ANYWHERE, UNKNOWN };

struct step {
	const struct hs_sim_op *ops;
	enum class class;
	uint64_t key; /* rank within the class */
	uint32_t number;
	bool finds; /* its answer shows that `found` was there */
	bool makes; /* it left `made` */
	bool wild;
	int64_t found, made;
};

/* A value that was found or made. Values that increments connect form one zone (union-find). */
struct hs_sim_zone {
	int64_t value;
	/* Index of a value nearer to the representative of its zone; its own index: it is the representative. */
	uint32_t leader;
	uint64_t first; /* of a representative: F and L of the zone */
	uint64_t last;
};

/* --- a step --- */

static bool is_answered(const struct hs_sim_op *op)
{
	return op->answered != HS_SIM_NEVER;
}

static bool is_number(int64_t value)
{
	return value != HS_SIM_NOTHING && value != HS_SIM_NOT_INTEGER && value != HS_SIM_OVERFLOW;
}

/* The value that the operation's answer says it found. False: it does not say. */
static bool finds(const struct hs_sim_op *op, int64_t *found)
{
	*found = op->answer;
	if (!is_answered(op))
		return false;
	switch (op->kind) {
	case HS_SIM_INCRBY:
		*found = op->answer - op->argument;
		return is_number(op->answer) && *found != 0; /* 0 may be a missing key */
	case HS_SIM_SETNX:
		*found = HS_SIM_NOTHING;
		return op->answer == 1;
	case HS_SIM_GET:
	case HS_SIM_GETSET:
	case HS_SIM_GETDEL:
	case HS_SIM_SETNXGET:
	case HS_SIM_SETXXGET:
		return true;
	default:
		return false;
	}
}

static bool is_add(const struct hs_sim_op *op)
{
	return op->kind == HS_SIM_INCRBY && is_number(op->answer);
}

/* Whether the transaction only adds and reads. */
static bool only_adds(const struct hs_sim_op *ops)
{
	for (uint32_t i = 0; i <= ops->more; i++) {
		if (!is_add(&ops[i]) && ops[i].kind != HS_SIM_GET && ops[i].kind != HS_SIM_STRLEN &&
		    ops[i].kind != HS_SIM_EXISTS)
			return false;
	}
	return true;
}

/* Whether the operation leaves its argument as the value, whatever value it found, if it does anything. */
static bool brings(const struct hs_sim_op *op)
{
	return op->kind == HS_SIM_SET || op->kind == HS_SIM_GETSET || op->kind == HS_SIM_SETNX ||
	       op->kind == HS_SIM_SETXX || op->kind == HS_SIM_SETNXGET ||
	       op->kind == HS_SIM_SETXXGET;
}

static bool only_reads(const struct hs_sim_op *ops)
{
	for (uint32_t i = 0; i <= ops->more; i++) {
		if (!hs_sim_kind_reads(ops[i].kind))
			return false;
	}
	return true;
}

/* For an answered step: computes what it made of what it found. */
static void work_out(struct step *step)
{
	struct hs_sim_state state = {.value = step->finds ? step->found
							  : 0}; /* 0: any value will do */

	step->makes =
		step->finds || (step->ops->more == 0 && (brings(step->ops) || is_add(step->ops)));
	step->wild = !step->makes && step->ops->more > 0 && !only_reads(step->ops);
	if (is_add(step->ops) && !step->finds)
		state.value = step->ops->answer - step->ops->argument;
	for (uint32_t i = 0; i <= step->ops->more; i++)
		hs_sim_op_apply(&step->ops[i],
				&state); /* whether its answers fit does not matter here */
	step->made = state.value;
	step->makes = step->makes && is_number(step->made);
}

static struct step describe(const struct hs_sim_op *ops, uint32_t number)
{
	struct step step = {.ops = ops, .number = number, .key = ops->asked};

	step.finds = finds(ops, &step.found);
	if (!is_answered(ops)) {
		step.class = UNKNOWN;
		step.made = ops->argument;
		step.makes = ops->more == 0 && brings(ops);
		step.wild = ops->more > 0 || ops->kind == HS_SIM_INCRBY;
		return step;
	}
	work_out(&step);
	if (only_adds(ops))
		step.class = ADDS;
	else
		step.class = step.finds ? LEAVES : ANYWHERE;
	if (step.class != ANYWHERE)
		step.key = ops->answered;
	return step;
}

/* --- zones --- */

static int by_value(const void *a, const void *b)
{
	const struct hs_sim_zone *left = a, *right = b;

	return (left->value > right->value) - (left->value < right->value);
}

static struct hs_sim_zone *find_zone(const struct hs_sim_zones *zones, int64_t value)
{
	struct hs_sim_zone key = {.value = value};
	struct hs_sim_zone *zone = NULL;

	if (zones->count > 0)
		zone = bsearch(&key, zones->all, zones->count, sizeof key, by_value);
	if (!zone)
		return NULL;
	while (zone->leader != (uint32_t)(zone - zones->all)) {
		/* path compression */
		zone->leader = zones->all[zone->leader].leader;
		zone = &zones->all[zone->leader];
	}
	return zone;
}

static void touch(const struct hs_sim_zones *zones, int64_t value, const struct hs_sim_op *op)
{
	struct hs_sim_zone *zone;

	if (!is_number(value))
		return;
	zone = find_zone(zones, value);
	if (!is_answered(op))
		return;
	if (op->answered < zone->first)
		zone->first = op->answered;
	if (op->asked > zone->last)
		zone->last = op->asked;
}

static void collect(struct hs_sim_zones *zones, const struct step *steps, uint32_t count)
{
	uint32_t kept = 0;

	zones->count = 0;
	zones->all = hs_mem_alloc((2 * (size_t)count + 1) * sizeof *zones->all);
	for (uint32_t i = 0; i < count; i++) {
		if (steps[i].finds && is_number(steps[i].found))
			zones->all[zones->count++].value = steps[i].found;
		if (steps[i].makes)
			zones->all[zones->count++].value = steps[i].made;
	}
	qsort(zones->all, zones->count, sizeof *zones->all, by_value);
	for (uint32_t i = 0; i < zones->count; i++) {
		if (kept > 0 && zones->all[kept - 1].value == zones->all[i].value)
			continue;
		zones->all[kept] = (struct hs_sim_zone){
			.value = zones->all[i].value, .leader = kept, .first = UINT64_MAX};
		kept++;
	}
	zones->count = kept;
}

static void find_zones(struct hs_sim_zones *zones, const struct step *steps, uint32_t count)
{
	collect(zones, steps, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct step *step = &steps[i];

		if (step->class == ADDS && step->finds && step->makes && is_number(step->found))
			find_zone(zones, step->made)->leader =
				(uint32_t)(find_zone(zones, step->found) - zones->all);
	}
	for (uint32_t i = 0; i < count; i++) {
		if (steps[i].finds)
			touch(zones, steps[i].found, steps[i].ops);
		if (steps[i].makes)
			touch(zones, steps[i].made, steps[i].ops);
	}
}

/* --- ranks --- */

static int by_rank(const void *a, const void *b)
{
	const struct step *left = a, *right = b;

	if (left->class != right->class)
		return left->class < right->class ? -1 : 1;
	if (left->key != right->key)
		return left->key < right->key ? -1 : 1;
	return left->number < right->number ? -1 : left->number > right->number;
}

static void rank(const struct hs_sim_zones *zones, struct step *all, uint32_t count,
		 struct hs_sim_hint *hints)
{
	for (uint32_t i = 0; i < count; i++) {
		if (all[i].class != ANYWHERE)
			continue;
		all[i].key = all[i].ops->answered;
		if (all[i].makes) {
			const struct hs_sim_zone *zone = find_zone(zones, all[i].made);

			all[i].key = zone->first < zone->last ? zone->first : zone->last;
		}
	}
	if (count > 0)
		qsort(all, count, sizeof *all, by_rank);
	for (uint32_t i = 0; i < count; i++)
		hints[all[i].number].rank = i;
}

void hs_sim_zones_init(struct hs_sim_zones *zones, const struct hs_sim_op *const *steps,
		       uint32_t count, struct hs_sim_hint *hints)
{
	struct step *all = hs_mem_alloc((count + 1) * sizeof *all);

	for (uint32_t i = 0; i < count; i++)
		all[i] = describe(steps[i], i);
	find_zones(zones, all, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct step *step = &all[i];

		hints[i] = (struct hs_sim_hint){
			.found = step->finds ? hs_sim_zones_at(zones, step->found) : HS_SIM_NO_ZONE,
			.made = step->makes ? hs_sim_zones_at(zones, step->made) : HS_SIM_NO_ZONE,
			.wild = step->wild,
		};
	}
	rank(zones, all, count, hints);
	hs_mem_free(&all);
}

void hs_sim_zones_deinit(struct hs_sim_zones *zones)
{
	hs_mem_free(&zones->all);
}

uint32_t hs_sim_zones_at(const struct hs_sim_zones *zones, int64_t value)
{
	const struct hs_sim_zone *zone = find_zone(zones, value);

	return zone ? (uint32_t)(zone - zones->all) : HS_SIM_NO_ZONE;
}
