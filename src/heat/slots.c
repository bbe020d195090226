/* The table of slots. Slots without a detail record share one counter per range of 64 slots: it is the upper
 * bound for each of them. A map of 16,384 bytes gives each slot's detail record:
 *
 *     slot ─ map ─┬─ detail record: counted there
 *                 └─ none: added to its range's bound; about every 128th access gets a record on trial
 *
 * In the structs of heat/table.h a range is a set. Way 0 holds no slot: its score is the range's bound in the
 * long window, as short_bound is in the short one. The other ways hold slots with a detail record, and their
 * scores are infinite. */
#include "heat/table.h"

#include <math.h>

#define store(place, value) __atomic_store_n(place, value, __ATOMIC_RELEASE)

void hs_heat_slots_init(struct hs_heat_table *table, uint8_t *slot_details)
{
	hs_check(table->sets_count == HS_HEAT_RANGES);
	table->slot_details = slot_details;
	for (uint32_t range = 0; range < HS_HEAT_RANGES; range++) {
		for (uint32_t way = 1; way < HS_HEAT_WAYS; way++)
			hs_heat_store(&table->lines[range].scores[way], INFINITY);
	}
}

void hs_heat_slots_release_detail(struct hs_heat_table *table, uint32_t range, uint32_t way,
				  double most)
{
	struct hs_heat_line *line = &table->lines[range];
	const struct hs_heat_detail *detail = &table->details[table->sides[range].details[way]];

	if ((float)most * HS_HEAT_UP > line->scores[0])
		hs_heat_store(&line->scores[0], (float)most * HS_HEAT_UP);
	store(&line->tags[way], 0u);
	table->slot_details[detail->slot] = 0;
}

void hs_heat_slots_clear(struct hs_heat_table *table)
{
	for (uint32_t range = 0; range < HS_HEAT_RANGES; range++)
		hs_heat_store(&table->lines[range].scores[0], 0);
	memset(table->slot_details, 0, HS_SLOTS);
}

/* Rescales a range for the clock's epoch and unit, as hs_heat_table_enter does for a set. */
void hs_heat_slots_enter(struct hs_heat_table *table, const struct hs_heat_clock *clock,
			 uint32_t range)
{
	struct hs_heat_line *line = &table->lines[range];
	struct hs_heat_side *side = &table->sides[range];
	double growth = side->unit > clock->unit ? (double)(side->unit / clock->unit) : 1;
	double factor[HS_HEAT_WINDOWS];

	hs_heat_decay_factors(clock->epoch - side->epoch, factor);
	hs_heat_begin_change(side);
	hs_heat_store(&side->short_bound,
		      side->short_bound * (float)(factor[HS_HEAT_SHORT] * growth) * HS_HEAT_UP);
	hs_heat_store(&line->scores[0],
		      line->scores[0] * (float)(factor[HS_HEAT_LONG] * growth) * HS_HEAT_UP);
	hs_heat_store(&side->unit, clock->unit);
	for (uint32_t way = 1; way < HS_HEAT_WAYS; way++) {
		if (side->details[way])
			hs_heat_detail_scale(&table->details[side->details[way]], factor, growth);
	}
	store(&side->epoch, clock->epoch);
	hs_heat_end_change(side);
}

uint32_t hs_heat_slots_assign_detail(struct hs_heat_table *table, const struct hs_heat_clock *clock,
				     const float before[HS_HEAT_WINDOWS],
				     const struct hs_heat_touch *touch)
{
	uint32_t range = touch->slot / (HS_SLOTS / HS_HEAT_RANGES), way = 1, number;
	struct hs_heat_side *side = &table->sides[range];

	number = hs_heat_table_find_free(table, clock);
	while (way < HS_HEAT_WAYS && side->details[way])
		way++;
	if (number == 0)
		return 0;
	if (way == HS_HEAT_WAYS) {
		/* At most seven detail records per range. */
		if (!table->details[number].trial)
			table->free[table->free_count++] = (uint8_t)number;
		return 0;
	}
	hs_heat_begin_change(side);
	hs_heat_detail_fill(&table->details[number], clock, range * HS_HEAT_WAYS + way, before,
			    touch);
	store(&side->details[way], (uint8_t)number);
	store(&table->lines[range].tags[way], (uint32_t)touch->slot << 1 | 1);
	table->slot_details[touch->slot] = (uint8_t)number;
	hs_heat_end_change(side);
	return number;
}
