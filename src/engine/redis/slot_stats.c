/* The reply is an array of [ slot, { "key-count" 7 "cpu-usec" 12 … } ]. It is read twice: the first
 * time only to see that all of it is what it should be. */
#include "engine/redis/slot_stats.h"

#include "engine/redis/walk.h"

#include <stdio.h>

static int parse_values(struct hs_walk *walk, struct hs_slot_stats *stats)
{
	const struct {
		const char *name;
		uint64_t *to;
	} rows[] = {
		{"key-count", &stats->keys},
		{"cpu-usec", &stats->cpu_us},
		{"memory-bytes", &stats->memory_bytes},
		{"network-bytes-in", &stats->bytes_in},
		{"network-bytes-out", &stats->bytes_out},
	};
	int64_t count;

	if (hs_walk_map(walk, &count) < 0)
		return HS_EPROTO;
	for (int64_t i = 0; i < count; i++) {
		uint64_t ignored, *to = &ignored;
		struct hs_bytes name;
		int64_t value;

		if (hs_walk_text(walk, &name) < 0)
			return HS_EPROTO;
		for (size_t j = 0; j < sizeof rows / sizeof *rows; j++) {
			if (hs_bytes_is_word(name, rows[j].name))
				to = rows[j].to;
		}
		if (to == &ignored) {
			if (hs_walk_skip(walk) < 0)
				return HS_EPROTO;
			continue;
		}
		if (hs_walk_int(walk, 0, INT64_MAX, &value) < 0)
			return HS_EPROTO;
		*to = (uint64_t)value;
	}
	return 0;
}

/* `table` is NULL the first time. */
static int parse_slots(struct hs_walk walk, struct hs_slot_stats *table)
{
	int64_t count, fields, slot;

	if (hs_walk_array(&walk, &count) < 0 || count > HS_SLOTS)
		return HS_EPROTO;
	for (int64_t i = 0; i < count; i++) {
		struct hs_slot_stats stats = {0};

		if (hs_walk_array(&walk, &fields) < 0 || fields != 2 ||
		    hs_walk_int(&walk, 0, HS_SLOTS - 1, &slot) < 0 ||
		    parse_values(&walk, &stats) < 0)
			return HS_EPROTO;
		if (table)
			table[slot] = stats;
	}
	return walk.len == 0 ? (int)count : HS_EPROTO;
}

int hs_slot_stats_parse(struct hs_slot_stats table[HS_SLOTS], struct hs_bytes reply, char *why,
			size_t why_size)
{
	struct hs_walk walk = {reply.data, reply.len}, head = walk;
	struct hs_answer answer;

	if (hs_walk_next(&head, &answer) == 0 && answer.type == HS_ANSWER_ERROR) {
		char text[128];

		snprintf(why, why_size, "CLUSTER SLOT-STATS was answered with \"%s\"",
			 hs_bytes_escape(answer.text, text, sizeof text));
		return HS_EINVAL;
	}
	if (parse_slots(walk, NULL) < 0) {
		snprintf(why, why_size,
			 "the reply to CLUSTER SLOT-STATS is none: it must be slots from 0 to "
			 "16383 with their counters");
		return HS_EPROTO;
	}
	return parse_slots(walk, table);
}

void hs_slot_stats_sum(const struct hs_slot_stats table[HS_SLOTS], const struct hs_slot_map *map,
		       struct hs_slot_stats *sums, uint16_t partitions)
{
	memset(sums, 0, partitions * sizeof *sums);
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++) {
		uint16_t partition = hs_slot_map_get(map, (uint16_t)slot);
		struct hs_slot_stats *sum = &sums[partition];

		if (partition >= partitions)
			continue;
		sum->keys += table[slot].keys;
		sum->cpu_us += table[slot].cpu_us;
		sum->memory_bytes += table[slot].memory_bytes;
		sum->bytes_in += table[slot].bytes_in;
		sum->bytes_out += table[slot].bytes_out;
	}
}
