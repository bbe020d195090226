/* The writer's side of a table that is not needed at every access: detail records change owners, sets enter a
 * new epoch. The head of heat/table.h explains the design. */
#include "heat/table.h"

#include "heat/lanes.h"

#include <math.h>

enum { LOOK_EVERY_MS = 8 };

/* An entry with a lower score is removed. */
#define NOTHING 1e-4f
/* An entry on trial must be this much hotter than the weakest permanent owner to replace it. */
#define CLEARLY 1.25f
/* A score must exceed its set's lowest by at least this for a detail record: by more than one access. */
#define MORE_THAN_ONE 1.5f
/* Per ms with a free detail record, the threshold for getting it falls by this factor. */
#define FORGIVE 0.99f

#define store(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)

/* Flushes tiny numbers to 0, because denormals are slow. */
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

void hs_heat_decay_factors(uint32_t epochs, double factor[HS_HEAT_WINDOWS])
{
	factor[HS_HEAT_SHORT] = exp(-(double)epochs * HS_HEAT_EPOCH_MS / HS_HEAT_SHORT_MS);
	factor[HS_HEAT_LONG] = exp(-(double)epochs * HS_HEAT_EPOCH_MS / HS_HEAT_LONG_MS);
}

size_t hs_heat_table_bytes(uint32_t sets, uint32_t details)
{
	size_t bytes = sets * (sizeof(struct hs_heat_line) + sizeof(struct hs_heat_side)) +
		       (details + 1) * sizeof(struct hs_heat_detail);

	return (bytes + 63) / 64 * 64;
}

/* Frees all detail records: the first are for trials, the others for permanent owners. */
static void free_all_details(struct hs_heat_table *table)
{
	table->trials_count = table->details_count / 4;
	if (table->trials_count > HS_HEAT_TRIALS_MAX)
		table->trials_count = HS_HEAT_TRIALS_MAX;
	table->next_trial = 0;
	table->free_count = 0;
	for (uint32_t i = 1; i <= table->details_count; i++) {
		struct hs_heat_detail *detail = &table->details[i];

		detail->owned = false;
		detail->trial = i <= table->trials_count;
		if (detail->trial)
			table->trials[i - 1] = (uint8_t)i;
		else
			table->free[table->free_count++] = (uint8_t)i;
	}
	table->weak_known = false;
	table->weakness = 0;
	table->trial_above = INFINITY;
	table->detail_below = NOTHING;
	table->trial_in = HS_HEAT_TRIAL_EVERY;
}

void hs_heat_table_init(struct hs_heat_table *table, void *memory, uint32_t sets, uint32_t details)
{
	struct hs_heat_line *lines = memory;
	struct hs_heat_side *sides = (struct hs_heat_side *)(void *)(lines + sets);

	hs_check((sets & (sets - 1)) == 0);
	hs_check(details <= HS_HEAT_DETAILS_MAX);
	*table = (struct hs_heat_table){
		.lines = lines,
		.sides = sides,
		.details = (struct hs_heat_detail *)(void *)(sides + sets),
		.sets_count = sets,
		.details_count = details,
	};
	free_all_details(table);
}

/* ---- detail records ---- */

/* Upper bound of what the owner of a detail record has had, as a weight. */
static double weight_of(const struct hs_heat_detail *detail, enum hs_heat_window window, float unit)
{
	return detail->ops[0][window] + detail->ops[1][window] +
	       detail->bytes[window] / (double)unit + detail->error[window];
}

/* Called inside a change of the owner's set. The entry is again bounded by short_bound, which must cover what
 * it had. */
static void release_detail(struct hs_heat_table *table, struct hs_heat_side *side, uint32_t way)
{
	struct hs_heat_detail *detail = &table->details[side->details[way]];
	float had;

	if (side->details[way] == 0)
		return;
	had = (float)weight_of(detail, HS_HEAT_SHORT, side->unit) * HS_HEAT_UP;
	if (had > side->short_bound)
		hs_heat_store(&side->short_bound, had);
	if (table->slot_details)
		hs_heat_slots_release_detail(table, (uint32_t)(side - table->sides), way,
					     weight_of(detail, HS_HEAT_LONG, side->unit));
	detail->owned = false;
	if (!detail->trial)
		table->free[table->free_count++] = side->details[way];
	store(&side->details[way], (uint8_t)0);
}

void hs_heat_table_release_detail(struct hs_heat_table *table, uint32_t number)
{
	struct hs_heat_detail *detail = &table->details[number];
	struct hs_heat_side *side = &table->sides[detail->cell / HS_HEAT_WAYS];

	if (!detail->owned)
		return;
	hs_heat_begin_change(side);
	release_detail(table, side, detail->cell % HS_HEAT_WAYS);
	hs_heat_end_change(side);
}

/* Lower bound of an owner's rate, in requests per ms, in the window where it is higher. */
static float strength(const struct hs_heat_table *table, const struct hs_heat_clock *clock,
		      const struct hs_heat_detail *detail)
{
	uint32_t set = detail->cell / HS_HEAT_WAYS, which;
	const struct hs_heat_line *line = &table->lines[set];
	uint32_t epochs = clock->epoch - table->sides[set].epoch;
	float steady =
		line->scores[detail->cell % HS_HEAT_WAYS] - hs_lanes_smallest(line->scores, &which);
	float counted = (float)(detail->ops[0][HS_HEAT_LONG] + detail->ops[1][HS_HEAT_LONG]);
	float recent = (float)(detail->ops[0][HS_HEAT_SHORT] + detail->ops[1][HS_HEAT_SHORT]);

	if (!detail->owned)
		return 0;
	if (table->slot_details) /* slots have no scores */
		steady = counted +
			 (float)(detail->bytes[HS_HEAT_LONG] / (double)table->sides[set].unit);
	steady = steady > counted ? steady : counted;
	steady /= clock->one.window[HS_HEAT_LONG] * (float)HS_HEAT_LONG_MS;
	if (epochs > 0)
		return steady * (float)exp(-(double)epochs * HS_HEAT_EPOCH_MS / HS_HEAT_LONG_MS);
	recent /= clock->one.window[HS_HEAT_SHORT] * (float)HS_HEAT_SHORT_MS;
	return recent > steady ? recent : steady;
}

/* Returns the number of a free detail record; 0: none may be assigned now. */
uint32_t hs_heat_table_find_free(struct hs_heat_table *table, const struct hs_heat_clock *clock)
{
	uint32_t number;
	struct hs_heat_detail *detail;

	if (table->free_count > 0)
		return table->free[--table->free_count];
	if (table->trials_count == 0)
		return 0;
	number = table->trials[table->next_trial];
	detail = &table->details[number];
	if (detail->owned && strength(table, clock, detail) > table->weakness * CLEARLY) {
		if (!table->weak_known)
			/* the entry on trial may deserve a permanent record, but the weakest permanent owner is
			 * not known: decided after the next hs_heat_table_find_weakest */
			return 0;
		hs_heat_table_release_detail(table, table->weakest);
		table->free_count--; /* the released record is for trials from now on */
		table->weak_known = false;
		detail->trial = false;
		number = table->weakest;
		detail = &table->details[number];
		detail->trial = true;
		table->trials[table->next_trial] = (uint8_t)number;
	} else {
		hs_heat_table_release_detail(table, number);
	}
	table->next_trial = (table->next_trial + 1) % table->trials_count;
	return number;
}

static void write_name(struct hs_heat_detail *detail, struct hs_bytes name)
{
	size_t len = name.len < HS_HEAT_NAME_BYTES ? name.len : HS_HEAT_NAME_BYTES;
	uint64_t words[HS_HEAT_NAME_WORDS] = {0};

	if (len > 0)
		memcpy(words, name.data, len);
	for (size_t i = 0; i < HS_HEAT_NAME_WORDS; i++)
		store(&detail->name[i], words[i]);
	store(&detail->full_len, (uint32_t)name.len);
}

void hs_heat_detail_fill(struct hs_heat_detail *detail, const struct hs_heat_clock *clock,
			 uint32_t cell, const float before[HS_HEAT_WINDOWS],
			 const struct hs_heat_touch *touch)
{
	/* An upper bound of the long window also bounds the short one; rescaled to it. */
	double most = (double)before[HS_HEAT_LONG] * clock->one_exact[HS_HEAT_SHORT] /
		      clock->one_exact[HS_HEAT_LONG];

	detail->cell = cell;
	detail->owned = true;
	write_name(detail, touch->name);
	hs_heat_store_sum(&detail->error[HS_HEAT_SHORT], fmin((double)before[HS_HEAT_SHORT], most));
	hs_heat_store_sum(&detail->error[HS_HEAT_LONG], (double)before[HS_HEAT_LONG]);
	store(&detail->since_us, clock->ms * 1000);
	store(&detail->public_id, touch->public_id);
	store(&detail->slot, touch->slot);
	store(&detail->partition, touch->partition);
	for (int i = 0; i < 2; i++) {
		clear(detail->ops[i]);
		store(&detail->total_ops[i], (uint64_t)0);
	}
	clear(detail->bytes);
	clear(detail->misses);
	clear(detail->conflicts);
	store(&detail->total_bytes, (uint64_t)0);
	store(&detail->total_ns, (uint64_t)0);
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS / 4; i++)
		store(&detail->histogram_words[i], (uint64_t)0);
}

/* The entry's count in the short window is unknown: at most its set's short_bound. */
uint32_t hs_heat_table_assign_detail(struct hs_heat_table *table, const struct hs_heat_clock *clock,
				     const struct hs_heat_found *found,
				     const struct hs_heat_touch *touch)
{
	struct hs_heat_side *side = &table->sides[found->set];
	uint32_t number = hs_heat_table_find_free(table, clock);

	table->trial_in = HS_HEAT_TRIAL_EVERY / 2 + (found->tag >> 1 & (HS_HEAT_TRIAL_EVERY - 1));
	if (number == 0)
		return 0;
	hs_heat_begin_change(side);
	hs_heat_detail_fill(&table->details[number], clock, found->set * HS_HEAT_WAYS + found->way,
			    found->before, touch);
	store(&side->details[found->way], (uint8_t)number);
	hs_heat_end_change(side);
	return number;
}

static void set_trial_above(struct hs_heat_table *table, const struct hs_heat_clock *clock)
{
	float trial_above = table->weakness * CLEARLY * (float)HS_HEAT_LONG_MS;

	trial_above = trial_above > MORE_THAN_ONE ? trial_above : MORE_THAN_ONE;
	table->trial_above = trial_above * clock->one.window[HS_HEAT_LONG];
	table->detail_below = table->free_count > 0 ? NOTHING : -1;
}

void hs_heat_table_find_weakest(struct hs_heat_table *table, const struct hs_heat_clock *clock)
{
	/* A free record is not assigned to the next entry at once: the threshold falls slowly. */
	if (table->free_count > 0) {
		table->weakness *= FORGIVE;
		table->weak_known = false;
		set_trial_above(table, clock);
		return;
	}
	if (!table->weak_known || clock->ms - table->looked_ms >= LOOK_EVERY_MS) {
		table->weakness = INFINITY;
		for (uint32_t i = 1; i <= table->details_count; i++) {
			float found = table->details[i].trial
					      ? INFINITY
					      : strength(table, clock, &table->details[i]);

			if (found < table->weakness) {
				table->weakness = found;
				table->weakest = (uint8_t)i;
			}
		}
		table->weak_known = true;
		table->looked_ms = clock->ms;
	}
	set_trial_above(table, clock);
}

void hs_heat_table_halve(struct hs_heat_detail *detail)
{
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		store(&detail->histogram[i], (uint16_t)(detail->histogram[i] / 2));
}

void hs_heat_table_count_failures(struct hs_heat_detail *detail, const struct hs_heat_clock *clock,
				  const struct hs_heat_touch *touch)
{
	hs_heat_add_sum(detail->misses, clock, touch->missed);
	hs_heat_add_sum(detail->conflicts, clock, touch->conflicted);
}

/* ---- a new epoch ---- */

void hs_heat_detail_scale(struct hs_heat_detail *detail, const double factor[HS_HEAT_WINDOWS],
			  double growth)
{
	scale(detail->ops[0], factor);
	scale(detail->ops[1], factor);
	scale(detail->bytes, factor);
	scale(detail->misses, factor);
	scale(detail->conflicts, factor);
	for (int i = 0; i < HS_HEAT_WINDOWS; i++)
		hs_heat_store_sum(&detail->error[i], detail->error[i] * growth);
	scale(detail->error, factor);
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		store(&detail->histogram[i],
		      (uint16_t)((double)detail->histogram[i] * factor[HS_HEAT_LONG]));
}

static void empty(struct hs_heat_table *table, uint32_t set, uint32_t way)
{
	release_detail(table, &table->sides[set], way);
	store(&table->lines[set].tags[way], 0u);
	if (!table->slot_details)
		hs_heat_store(&table->lines[set].scores[way], 0);
}

/* Rescales a set for the clock's epoch and unit. A score counts requests, bytes or both. In a smaller unit the
 * same bytes weigh more, so a score grows as if all of it were bytes, except where a detail record knows
 * better. No score may fall below the set's lowest, which bounds the keys that are not in the set. */
void hs_heat_table_enter(struct hs_heat_table *table, const struct hs_heat_clock *clock,
			 uint32_t set)
{
	struct hs_heat_line *line = &table->lines[set];
	struct hs_heat_side *side = &table->sides[set];
	double growth = side->unit > clock->unit ? (double)(side->unit / clock->unit) : 1;
	double factor[HS_HEAT_WINDOWS];
	uint32_t which;
	float up, least;

	hs_heat_decay_factors(clock->epoch - side->epoch, factor);
	up = (float)(factor[HS_HEAT_LONG] * growth) * HS_HEAT_UP;
	least = hs_lanes_smallest(line->scores, &which) * up;
	hs_heat_begin_change(side);
	hs_heat_store(&side->short_bound,
		      side->short_bound * (float)(factor[HS_HEAT_SHORT] * growth) * HS_HEAT_UP);
	hs_heat_store(&side->unit, clock->unit);
	for (uint32_t way = 0; way < HS_HEAT_WAYS; way++) {
		struct hs_heat_detail *detail = &table->details[side->details[way]];
		float score = line->scores[way] * up;

		if (line->tags[way] == 0)
			continue;
		if (side->details[way]) {
			hs_heat_detail_scale(detail, factor, growth);
			score = (float)weight_of(detail, HS_HEAT_LONG, clock->unit) * HS_HEAT_UP;
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
		hs_heat_store(&table->sides[set].short_bound, 0);
		hs_heat_end_change(&table->sides[set]);
	}
	if (table->slot_details)
		hs_heat_slots_clear(table);
	free_all_details(table);
}
