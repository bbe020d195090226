#include "sim/slots.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"

#include <string.h>

enum { RANGES_MIN = 16 };

static void reserve(struct hs_sim_slots *slots, uint16_t count)
{
	if (count <= slots->cap)
		return;
	slots->cap = (uint16_t)(count < RANGES_MIN ? RANGES_MIN : count * 2);
	slots->ranges = hs_mem_realloc(slots->ranges, slots->cap * sizeof *slots->ranges);
}

void hs_sim_slots_init(struct hs_sim_slots *slots, uint8_t node)
{
	*slots = (struct hs_sim_slots){0};
	reserve(slots, 1);
	slots->ranges[0] = (struct hs_sim_range){HS_SLOTS - 1, node};
	slots->count = 1;
}

void hs_sim_slots_deinit(struct hs_sim_slots *slots)
{
	hs_mem_free(&slots->ranges);
}

void hs_sim_slots_copy(struct hs_sim_slots *to, const struct hs_sim_slots *from)
{
	reserve(to, from->count);
	memcpy(to->ranges, from->ranges, from->count * sizeof *from->ranges);
	to->count = from->count;
}

static uint16_t index_of(const struct hs_sim_slots *slots, uint16_t slot)
{
	uint16_t at = 0;

	hs_check(slot < HS_SLOTS);
	while (slots->ranges[at].last < slot)
		at++;
	return at;
}

const struct hs_sim_range *hs_sim_slots_find(const struct hs_sim_slots *slots, uint16_t slot)
{
	return &slots->ranges[index_of(slots, slot)];
}

/* Splits ranges so that one ends at `last`; returns the index of the next one. */
static uint16_t cut_behind(struct hs_sim_slots *slots, uint16_t last)
{
	uint16_t at = index_of(slots, last);

	if (slots->ranges[at].last > last) {
		reserve(slots, (uint16_t)(slots->count + 1));
		memmove(&slots->ranges[at + 1], &slots->ranges[at],
			(size_t)(slots->count - at) * sizeof *slots->ranges);
		slots->ranges[at].last = last;
		slots->count++;
	}
	return (uint16_t)(at + 1);
}

static void drop(struct hs_sim_slots *slots, uint16_t from, uint16_t to)
{
	memmove(&slots->ranges[from], &slots->ranges[to],
		(size_t)(slots->count - to) * sizeof *slots->ranges);
	slots->count = (uint16_t)(slots->count - (to - from));
}

void hs_sim_slots_give(struct hs_sim_slots *slots, uint16_t first, uint16_t last, uint8_t node)
{
	uint16_t from = first > 0 ? cut_behind(slots, (uint16_t)(first - 1)) : 0;
	uint16_t to = cut_behind(slots, last);

	slots->ranges[from] = (struct hs_sim_range){last, node};
	drop(slots, (uint16_t)(from + 1), to);
	/* Neighbouring ranges of one node are merged, so that equal views are equal bytes. */
	if (from + 1 < slots->count && slots->ranges[from + 1].node == node)
		drop(slots, from, (uint16_t)(from + 1));
	if (from > 0 && slots->ranges[from - 1].node == node)
		drop(slots, (uint16_t)(from - 1), from);
}

uint32_t hs_sim_slots_count(const struct hs_sim_slots *slots, uint8_t node)
{
	uint32_t count = 0, first = 0;

	for (uint16_t i = 0; i < slots->count; i++) {
		if (slots->ranges[i].node == node)
			count += slots->ranges[i].last + 1 - first;
		first = slots->ranges[i].last + 1u;
	}
	return count;
}
