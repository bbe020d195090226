/* Names, places and the choice of the next place. Pure functions over a set, apart from its reference counts. */
#include "absorb/copies/set.h"

#include "core/reserved.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/slot.h"
#include "wire/reply.h"
#include "wire/walk.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- names and places ---- */

enum {
	/* Hash tags tried for a partition. A partition with a hundredth of the slots is missed by all of them
	 * once in 10^17 cases; one with a single slot is usually missed and gets no copy. */
	TAGS_TRIED = 4096,
};

bool hs_copies_name(const struct hs_slot_map *slots, uint16_t partition,
		    const struct hs_copies_id *id, struct hs_bytes key, struct hs_buf *out)
{
	char tag[HS_NUM_TEXT_MAX];

	for (uint32_t i = 0; i < TAGS_TRIED; i++) {
		int len = snprintf(tag, sizeof tag, "%" PRIu32, i);
		uint16_t slot = hs_slot_of((struct hs_bytes){tag, (size_t)len});

		if (hs_slot_map_get(slots, slot) != partition)
			continue;
		hs_buf_printf(out, HS_RESERVED_PREFIX "{%s}:%016" PRIx64 ":%" PRIu64 ":", tag,
			      id->process, id->set);
		hs_buf_append_bytes(out, key);
		return true;
	}
	return false;
}

uint32_t hs_copies_wanted(uint8_t copies, uint32_t partitions, double key, double home, double all)
{
	uint32_t most = partitions < HS_COPIES_MAX ? partitions : HS_COPIES_MAX;
	double above, places;

	if (most < 2 || copies == 0)
		return 1;
	if (copies != HS_COPIES_AUTO)
		return copies < most ? copies : most;
	above = home - all / partitions;
	if (!(key > 0) || !(above > 0))
		return 1;
	if (above >= key)
		return most;
	/* With n places, key × (1 - 1/n) leaves the partition: as much as it has above the mean. */
	places = ceil(key / (key - above) - 1e-9);
	return places < most ? (uint32_t)places : most;
}

uint32_t hs_copies_choose(const struct hs_slot_map *slots, const struct hs_copies_loads *loads,
			  uint16_t home, uint32_t wanted, uint64_t salt,
			  uint16_t partitions[HS_COPIES_MAX])
{
	uint16_t partitions_count = hs_slot_map_count(slots);
	bool taken[HS_PARTITIONS_MAX] = {false};
	uint32_t count = 1;

	if (wanted > HS_COPIES_MAX)
		wanted = HS_COPIES_MAX;
	partitions[0] = home;
	taken[home] = true;
	while (count < wanted) {
		uint32_t best = HS_PARTITIONS_MAX;

		for (uint32_t i = 0; i < partitions_count; i++) {
			uint32_t p = (uint32_t)((salt + i) % partitions_count);

			if (!taken[p] && hs_slot_map_has(slots, (uint16_t)p) &&
			    (best == HS_PARTITIONS_MAX || loads->of[p] < loads->of[best]))
				best = p;
		}
		if (best == HS_PARTITIONS_MAX)
			break;
		taken[best] = true;
		partitions[count++] = (uint16_t)best;
	}
	return count;
}

/* ---- a set ---- */

void hs_copies_describe(const struct hs_bytes *names, size_t count, struct hs_buf *out)
{
	struct hs_reply reply = {.out = out, .resp = 3};

	hs_reply_array(&reply, count);
	for (size_t i = 0; i < count; i++)
		hs_reply_bulk(&reply, names[i]);
}

struct hs_copies *hs_copies_create(struct hs_cache_entry *entry, uint16_t home_slot)
{
	struct hs_walk walk = {entry->reply[1].data, entry->reply[1].len};
	struct hs_copies *copies;
	int64_t names;
	uint32_t count;

	if (hs_walk_array(&walk, &names) < 0 || names >= HS_COPIES_MAX)
		return NULL;
	count = (uint32_t)names + 1;
	copies = hs_mem_zalloc(sizeof *copies + count * sizeof *copies->places);
	copies->places[0].slot = home_slot;
	for (uint32_t i = 1; i < count; i++) {
		struct hs_copies_place *place = &copies->places[i];

		if (hs_walk_text(&walk, &place->name) < 0 || place->name.len == 0) {
			hs_mem_free(&copies);
			return NULL;
		}
		place->slot = hs_slot_of(place->name);
	}
	copies->refs = 1;
	copies->count = count;
	hs_cache_entry_ref(entry);
	copies->entry = entry;
	return copies;
}

struct hs_copies *hs_copies_ref(struct hs_copies *copies)
{
	copies->refs++;
	return copies;
}

void hs_copies_unref(struct hs_copies **pointer)
{
	struct hs_copies *copies = *pointer;

	*pointer = NULL;
	if (!copies || --copies->refs > 0)
		return;
	hs_cache_entry_unref(&copies->entry);
	hs_mem_free(&copies);
}

/* A read is outstanding and the place has answered nothing for too long. */
static bool is_slow(const struct hs_copies_place *place, uint64_t now_us)
{
	return place->in_flight > 0 && now_us - place->answered_us > HS_COPIES_SLOW_US;
}

struct hs_copies_place *hs_copies_next(struct hs_copies *copies, uint64_t now_us)
{
	for (uint32_t i = 0; i < copies->count; i++) {
		struct hs_copies_place *place = &copies->places[copies->next++ % copies->count];

		if (place == copies->places ||
		    (now_us >= place->cool_until_us && !is_slow(place, now_us)))
			return place;
	}
	return copies->places;
}

void hs_copies_place_asked(struct hs_copies_place *place, uint64_t now_us)
{
	if (place->in_flight++ == 0)
		place->answered_us = now_us;
	place->reads++;
}

bool hs_copies_place_answered(struct hs_copies_place *place, uint64_t now_us, struct hs_bytes reply)
{
	bool original = place->name.len == 0;

	place->in_flight--;
	place->answered_us = now_us;
	if (original || !hs_copies_may_be_missing(reply)) {
		place->rejected_in_row = 0;
		return true;
	}
	place->rejected++;
	place->rejected_in_row++;
	if (reply.len == 0 || reply.data[0] == '-' ||
	    place->rejected_in_row >= HS_COPIES_REJECTED_MAX) {
		place->rejected_in_row = 0;
		place->cool_until_us = now_us + HS_COPIES_COOL_DOWN_US;
	}
	return false;
}

bool hs_copies_misplaced(const struct hs_copies *copies, const struct hs_slot_map *slots)
{
	bool taken[HS_PARTITIONS_MAX] = {false};

	for (uint32_t i = 0; i < copies->count; i++) {
		uint16_t partition = hs_slot_map_get(slots, copies->places[i].slot);

		if (partition >= HS_PARTITIONS_MAX || taken[partition])
			return true;
		taken[partition] = true;
	}
	return false;
}

/* Whether an element with this head shows that the key exists. */
static bool says_something(const struct hs_parsed_reply *answer)
{
	switch (answer->type) {
	case HS_PARSED_NULL:
	case HS_PARSED_ERROR:
		return false;
	case HS_PARSED_INT: /* TTL replies -2 and BITPOS -1 for a missing key */
		return answer->integer > 0 || answer->integer < -2;
	case HS_PARSED_BOOL:
		return answer->integer != 0;
	case HS_PARSED_STATUS:
		return !hs_bytes_equal(answer->text, HS_LIT("none")); /* of TYPE */
	case HS_PARSED_BULK:
		return answer->text.len > 0;
	case HS_PARSED_DOUBLE:
		return true; /* a score: the member exists */
	default:
		return false; /* an aggregate: its elements decide */
	}
}

bool hs_copies_may_be_missing(struct hs_bytes reply)
{
	struct hs_parsed_reply answer;
	int64_t used;

	if (reply.len == 0 || reply.data[0] == '-')
		return true;
	while (reply.len > 0) {
		used = hs_parse_reply_head(&answer, reply.data, reply.len);
		if (used <= 0)
			return true;
		if (says_something(&answer))
			return false;
		reply = (struct hs_bytes){reply.data + used, reply.len - (size_t)used};
	}
	return true;
}

/* ---- when to make a set ---- */

void hs_copies_backoff(struct hs_copies_backoff *backoff, uint32_t places, uint64_t reads)
{
	if (reads >= (uint64_t)HS_COPIES_READS_WORTH * places) {
		backoff->backoff_us /= 2;
		if (backoff->backoff_us < HS_COPIES_BACKOFF_US_MIN)
			backoff->backoff_us = 0;
		return;
	}
	backoff->backoff_us *= 2;
	if (backoff->backoff_us < HS_COPIES_BACKOFF_US_MIN)
		backoff->backoff_us = HS_COPIES_BACKOFF_US_MIN;
	if (backoff->backoff_us > HS_COPIES_BACKOFF_US_MAX)
		backoff->backoff_us = HS_COPIES_BACKOFF_US_MAX;
}
