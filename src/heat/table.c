#include "heat/table.h"

#include "heat/lanes.h"

#include <math.h>

enum { LOOK_EVERY_MS = 8 };

/* Below this an entry is nothing, and its place is free. */
#define NOTHING 1e-4f
/* How much hotter than the weakest of the established one must be to take its place. */
#define CLEARLY 1.25f
/* What a hot is given for at least: more than one access. */
#define MORE_THAN_ONE 1.5f
/* What remains of a demand after a millisecond in which nobody met it. */
#define FORGIVE 0.99f

#define store(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)

/* No numbers so small that the processor becomes slow with them. */
static void scale(double sum[HS_HEAT_WINDOWS], const double factor[HS_HEAT_WINDOWS])
{
	for (int i = 0; i < HS_HEAT_WINDOWS; i++)
		hs_heat_store_sum(&sum[i], sum[i] * factor[i] > 1e-100 ? sum[i] * factor[i] : 0);
}

static void clear(double sum[HS_HEAT_WINDOWS])
{
	for (int i = 0; i < HS_HEAT_WINDOWS; i++)
		hs_heat_store_sum(&sum[i], 0);
}

void hs_heat_fade(uint32_t epochs, double factor[HS_HEAT_WINDOWS])
{
	factor[HS_HEAT_SHORT] = exp(-(double)epochs * HS_HEAT_EPOCH_MS / HS_HEAT_SHORT_MS);
	factor[HS_HEAT_LONG] = exp(-(double)epochs * HS_HEAT_EPOCH_MS / HS_HEAT_LONG_MS);
}

size_t hs_heat_table_bytes(uint32_t sets, uint32_t hots)
{
	size_t bytes = sets * (sizeof(struct hs_heat_line) + sizeof(struct hs_heat_side)) +
		       (hots + 1) * sizeof(struct hs_heat_hot);

	return (bytes + 63) / 64 * 64;
}

/* All hots without owner: the first are for trials, the others to be had. */
static void free_all_hots(struct hs_heat_table *table)
{
	table->trials_count = table->hots_count / 4;
	if (table->trials_count > HS_HEAT_TRIALS_MAX)
		table->trials_count = HS_HEAT_TRIALS_MAX;
	table->trials_at = 0;
	table->free_count = 0;
	for (uint32_t i = 1; i <= table->hots_count; i++) {
		struct hs_heat_hot *hot = &table->hots[i];

		hot->owned = false;
		hot->trial = i <= table->trials_count;
		if (hot->trial)
			table->trials[i - 1] = (uint8_t)i;
		else
			table->free[table->free_count++] = (uint8_t)i;
	}
	table->weak_known = false;
	table->weakness = 0;
	table->claim = INFINITY;
	table->room = NOTHING;
	table->trial_in = HS_HEAT_TRIAL_EVERY;
}

void hs_heat_table_init(struct hs_heat_table *table, void *memory, uint32_t sets, uint32_t hots)
{
	struct hs_heat_line *lines = memory;
	struct hs_heat_side *sides = (struct hs_heat_side *)(void *)(lines + sets);

	hs_check((sets & (sets - 1)) == 0);
	hs_check(hots <= HS_HEAT_HOTS_MAX);
	*table = (struct hs_heat_table){
		.lines = lines,
		.sides = sides,
		.hots = (struct hs_heat_hot *)(void *)(sides + sets),
		.sets_count = sets,
		.hots_count = hots,
	};
	free_all_hots(table);
}

/* ---- hots ---- */

/* The most that the owner of a hot may have had, as a weight. */
static double weight_of(const struct hs_heat_hot *hot, enum hs_heat_window window, float unit)
{
	return hot->ops[0][window] + hot->ops[1][window] + hot->bytes[window] / (double)unit +
	       hot->error[window];
}

/* Inside a change of the owner's set. The owner is one of the crowd again, of which none had more
 * than `crowd`. */
static void give_up_hot(struct hs_heat_table *table, struct hs_heat_side *side, uint32_t way)
{
	struct hs_heat_hot *hot = &table->hots[side->hots[way]];
	float had;

	if (side->hots[way] == 0)
		return;
	had = (float)weight_of(hot, HS_HEAT_SHORT, side->unit) * HS_HEAT_UP;
	if (had > side->crowd)
		hs_heat_store(&side->crowd, had);
	if (table->slot_hots)
		hs_heat_slots_leave(table, (uint32_t)(side - table->sides), way,
				    weight_of(hot, HS_HEAT_LONG, side->unit));
	hot->owned = false;
	if (!hot->trial)
		table->free[table->free_count++] = side->hots[way];
	store(&side->hots[way], (uint8_t)0);
}

void hs_heat_table_take(struct hs_heat_table *table, uint32_t number)
{
	struct hs_heat_hot *hot = &table->hots[number];
	struct hs_heat_side *side = &table->sides[hot->cell / HS_HEAT_WAYS];

	if (!hot->owned)
		return;
	hs_heat_begin_change(side);
	give_up_hot(table, side, hot->cell % HS_HEAT_WAYS);
	hs_heat_end_change(side);
}

/* What an owner certainly has, in requests per ms, by the window in which it is higher. */
static float strength(const struct hs_heat_table *table, const struct hs_heat_clock *clock,
		      const struct hs_heat_hot *hot)
{
	uint32_t set = hot->cell / HS_HEAT_WAYS, which;
	const struct hs_heat_line *line = &table->lines[set];
	uint32_t epochs = clock->epoch - table->sides[set].epoch;
	float steady =
		line->scores[hot->cell % HS_HEAT_WAYS] - hs_lanes_smallest(line->scores, &which);
	float counted = (float)(hot->ops[0][HS_HEAT_LONG] + hot->ops[1][HS_HEAT_LONG]);
	float recent = (float)(hot->ops[0][HS_HEAT_SHORT] + hot->ops[1][HS_HEAT_SHORT]);

	if (!hot->owned)
		return 0;
	if (table->slot_hots) /* no scores there */
		steady = counted +
			 (float)(hot->bytes[HS_HEAT_LONG] / (double)table->sides[set].unit);
	steady = steady > counted ? steady : counted;
	steady /= clock->one.window[HS_HEAT_LONG] * (float)HS_HEAT_LONG_MS;
	if (epochs > 0)
		return steady * (float)exp(-(double)epochs * HS_HEAT_EPOCH_MS / HS_HEAT_LONG_MS);
	recent /= clock->one.window[HS_HEAT_SHORT] * (float)HS_HEAT_SHORT_MS;
	return recent > steady ? recent : steady;
}

/* The number of a hot without owner; 0 when it is better not given away now. */
uint32_t hs_heat_table_find(struct hs_heat_table *table, const struct hs_heat_clock *clock)
{
	uint32_t number;
	struct hs_heat_hot *hot;

	if (table->free_count > 0)
		return table->free[--table->free_count];
	if (table->trials_count == 0)
		return 0;
	number = table->trials[table->trials_at];
	hot = &table->hots[number];
	if (hot->owned && strength(table, clock, hot) > table->weakness * CLEARLY) {
		if (!table->weak_known)
			return 0; /* it may be worth more than a trial: after the next look */
		hs_heat_table_take(table, table->weakest);
		table->free_count--; /* the one taken: it is for trials from now on */
		table->weak_known = false;
		hot->trial = false;
		number = table->weakest;
		hot = &table->hots[number];
		hot->trial = true;
		table->trials[table->trials_at] = (uint8_t)number;
	} else {
		hs_heat_table_take(table, number);
	}
	table->trials_at = (table->trials_at + 1) % table->trials_count;
	return number;
}

static void write_name(struct hs_heat_hot *hot, struct hs_bytes name)
{
	size_t len = name.len < HS_HEAT_NAME_BYTES ? name.len : HS_HEAT_NAME_BYTES;
	uint64_t words[HS_HEAT_NAME_WORDS] = {0};

	if (len > 0)
		memcpy(words, name.data, len);
	for (size_t i = 0; i < HS_HEAT_NAME_WORDS; i++)
		store(&hot->name[i], words[i]);
	store(&hot->full_len, (uint32_t)name.len);
}

void hs_heat_hot_fill(struct hs_heat_hot *hot, const struct hs_heat_clock *clock, uint32_t cell,
		      const float before[HS_HEAT_WINDOWS], const struct hs_heat_touch *touch)
{
	/* No window can have had more than the longer one: that on the scale of the short. */
	double most = (double)before[HS_HEAT_LONG] * clock->one_exact[HS_HEAT_SHORT] /
		      clock->one_exact[HS_HEAT_LONG];

	hot->cell = cell;
	hot->owned = true;
	write_name(hot, touch->name);
	hs_heat_store_sum(&hot->error[HS_HEAT_SHORT], fmin((double)before[HS_HEAT_SHORT], most));
	hs_heat_store_sum(&hot->error[HS_HEAT_LONG], (double)before[HS_HEAT_LONG]);
	store(&hot->since_us, clock->ms * 1000);
	store(&hot->shown, touch->shown);
	store(&hot->slot, touch->slot);
	store(&hot->partition, touch->partition);
	for (int i = 0; i < 2; i++) {
		clear(hot->ops[i]);
		store(&hot->total_ops[i], (uint64_t)0);
	}
	clear(hot->bytes);
	clear(hot->misses);
	clear(hot->conflicts);
	store(&hot->total_bytes, (uint64_t)0);
	store(&hot->total_ns, (uint64_t)0);
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS / 4; i++)
		store(&hot->histogram_words[i], (uint64_t)0);
}

/* Gives an entry a hot if there is one for it; returns its number, or 0. What the entry had in the
 * short window is not known: at most what the crowd had, of which it was one. */
uint32_t hs_heat_table_give(struct hs_heat_table *table, const struct hs_heat_clock *clock,
			    const struct hs_heat_found *found, const struct hs_heat_touch *touch)
{
	struct hs_heat_side *side = &table->sides[found->set];
	uint32_t number = hs_heat_table_find(table, clock);

	table->trial_in = HS_HEAT_TRIAL_EVERY / 2 + (found->tag >> 1 & (HS_HEAT_TRIAL_EVERY - 1));
	if (number == 0)
		return 0;
	hs_heat_begin_change(side);
	hs_heat_hot_fill(&table->hots[number], clock, found->set * HS_HEAT_WAYS + found->way,
			 found->before, touch);
	store(&side->hots[found->way], (uint8_t)number);
	hs_heat_end_change(side);
	return number;
}

static void set_claim(struct hs_heat_table *table, const struct hs_heat_clock *clock)
{
	float claim = table->weakness * CLEARLY * (float)HS_HEAT_LONG_MS;

	claim = claim > MORE_THAN_ONE ? claim : MORE_THAN_ONE;
	table->claim = claim * clock->one.window[HS_HEAT_LONG];
	table->room = table->free_count > 0 ? NOTHING : -1;
}

void hs_heat_table_look(struct hs_heat_table *table, const struct hs_heat_clock *clock)
{
	/* A hot that becomes free is not for the next best, but for ever less. */
	if (table->free_count > 0) {
		table->weakness *= FORGIVE;
		table->weak_known = false;
		set_claim(table, clock);
		return;
	}
	if (!table->weak_known || clock->ms - table->looked_ms >= LOOK_EVERY_MS) {
		table->weakness = INFINITY;
		for (uint32_t i = 1; i <= table->hots_count; i++) {
			float found = table->hots[i].trial
					      ? INFINITY
					      : strength(table, clock, &table->hots[i]);

			if (found < table->weakness) {
				table->weakness = found;
				table->weakest = (uint8_t)i;
			}
		}
		table->weak_known = true;
		table->looked_ms = clock->ms;
	}
	set_claim(table, clock);
}

void hs_heat_table_halve(struct hs_heat_hot *hot)
{
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		store(&hot->histogram[i], (uint16_t)(hot->histogram[i] / 2));
}

void hs_heat_table_fail(struct hs_heat_hot *hot, const struct hs_heat_clock *clock,
			const struct hs_heat_touch *touch)
{
	hs_heat_add_sum(hot->misses, clock, touch->missed);
	hs_heat_add_sum(hot->conflicts, clock, touch->conflicted);
}

/* ---- a new epoch ---- */

void hs_heat_hot_scale(struct hs_heat_hot *hot, const double factor[HS_HEAT_WINDOWS], double growth)
{
	scale(hot->ops[0], factor);
	scale(hot->ops[1], factor);
	scale(hot->bytes, factor);
	scale(hot->misses, factor);
	scale(hot->conflicts, factor);
	for (int i = 0; i < HS_HEAT_WINDOWS; i++)
		hs_heat_store_sum(&hot->error[i], hot->error[i] * growth);
	scale(hot->error, factor);
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		store(&hot->histogram[i],
		      (uint16_t)((double)hot->histogram[i] * factor[HS_HEAT_LONG]));
}

static void empty(struct hs_heat_table *table, uint32_t set, uint32_t way)
{
	give_up_hot(table, &table->sides[set], way);
	store(&table->lines[set].tags[way], 0u);
	if (!table->slot_hots)
		hs_heat_store(&table->lines[set].scores[way], 0);
}

/* Brings a set to the scale and the unit of the epoch. A score is so many requests, or so many
 * bytes, or some of both; in a smaller unit the same bytes weigh more, so what may be bytes grows:
 * all of it, but for what a hot has counted. No score may fall below what the lowest says of those
 * who are not here. */
void hs_heat_table_enter(struct hs_heat_table *table, const struct hs_heat_clock *clock,
			 uint32_t set)
{
	struct hs_heat_line *line = &table->lines[set];
	struct hs_heat_side *side = &table->sides[set];
	double growth = side->unit > clock->unit ? (double)(side->unit / clock->unit) : 1;
	double factor[HS_HEAT_WINDOWS];
	uint32_t which;
	float up, least;

	hs_heat_fade(clock->epoch - side->epoch, factor);
	up = (float)(factor[HS_HEAT_LONG] * growth) * HS_HEAT_UP;
	least = hs_lanes_smallest(line->scores, &which) * up;
	hs_heat_begin_change(side);
	hs_heat_store(&side->crowd,
		      side->crowd * (float)(factor[HS_HEAT_SHORT] * growth) * HS_HEAT_UP);
	hs_heat_store(&side->unit, clock->unit);
	for (uint32_t way = 0; way < HS_HEAT_WAYS; way++) {
		struct hs_heat_hot *hot = &table->hots[side->hots[way]];
		float score = line->scores[way] * up;

		if (line->tags[way] == 0)
			continue;
		if (side->hots[way]) {
			hs_heat_hot_scale(hot, factor, growth);
			score = (float)weight_of(hot, HS_HEAT_LONG, clock->unit) * HS_HEAT_UP;
		}
		hs_heat_store(&line->scores[way], score > least ? score : least);
		if (line->scores[way] < NOTHING)
			empty(table, set, way);
	}
	store(&side->epoch, clock->epoch);
	hs_heat_end_change(side);
}

void hs_heat_table_clear(struct hs_heat_table *table)
{
	for (uint32_t set = 0; set < table->sets_count; set++) {
		hs_heat_begin_change(&table->sides[set]);
		for (uint32_t way = 0; way < HS_HEAT_WAYS; way++)
			empty(table, set, way);
		hs_heat_store(&table->sides[set].crowd, 0);
		hs_heat_end_change(&table->sides[set]);
	}
	if (table->slot_hots)
		hs_heat_slots_clear(table);
	free_all_hots(table);
}
