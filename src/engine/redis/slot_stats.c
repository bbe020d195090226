/* The reply is an array of [ slot, { "key-count" 7 "cpu-usec" 12 … } ]. hs_slot_stats_sample reads the reply
 * twice. The first pass only checks the reply, so that a malformed one changes nothing. */
#include "engine/redis/slot_stats.h"

#include "wire/walk.h"

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

/* Adds the growth of a slot's counters. If a counter went back, adds nothing. */
static void add_growth(struct hs_slot_sums *sums, const struct hs_slot_stats *before,
		       const struct hs_slot_stats *after)
{
	if (after->cpu_us < before->cpu_us || after->bytes_in < before->bytes_in ||
	    after->bytes_out < before->bytes_out)
		return;
	sums->cpu += (double)(after->cpu_us - before->cpu_us);
	sums->bytes_in += (double)(after->bytes_in - before->bytes_in);
	sums->bytes_out += (double)(after->bytes_out - before->bytes_out);
}

static void take(struct hs_slot_samples *samples, uint64_t last, uint16_t slot,
		 const struct hs_slot_stats *stats, struct hs_slot_sums *sums)
{
	if (samples->slots[slot].sample == samples->count)
		return; /* the reply lists the slot twice */
	if (last > 0 && samples->slots[slot].sample == last)
		add_growth(sums, &samples->slots[slot].stats, stats);
	sums->keys += stats->keys < INT64_MAX - sums->keys ? stats->keys : INT64_MAX - sums->keys;
	samples->slots[slot].sample = samples->count;
	samples->slots[slot].stats = *stats;
}

/* Reads the reply. `samples` NULL: only checks it. Returns the number of slots or HS_EPROTO. */
static int parse_slots(struct hs_walk walk, struct hs_slot_samples *samples, uint64_t last,
		       struct hs_slot_sums *sums)
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
		if (samples)
			take(samples, last, (uint16_t)slot, &stats, sums);
	}
	return walk.len == 0 ? (int)count : HS_EPROTO;
}

/* Divides the growth by the elapsed time. */
static void make_rates(struct hs_slot_sums *sums, uint64_t elapsed_us)
{
	double elapsed = (double)elapsed_us;

	if (elapsed_us == 0) {
		*sums = (struct hs_slot_sums){.keys = sums->keys};
		return;
	}
	sums->cpu /= elapsed;
	sums->bytes_in *= 1e6 / elapsed;
	sums->bytes_out *= 1e6 / elapsed;
}

int hs_slot_stats_sample(struct hs_slot_samples *samples, struct hs_slot_sample *last,
			 struct hs_bytes reply, uint64_t now_us, struct hs_slot_sums *sums,
			 char *why, size_t why_size)
{
	struct hs_walk walk = {reply.data, reply.len}, head = walk;
	struct hs_slot_sample before = *last;
	struct hs_parsed_reply answer;
	int count;

	if (hs_walk_next(&head, &answer) == 0 && answer.type == HS_PARSED_ERROR) {
		char text[128];

		return hs_err_set(HS_EINVAL, why, why_size,
				  "CLUSTER SLOT-STATS was answered with \"%s\"",
				  hs_bytes_escape(answer.text, text, sizeof text));
	}
	if (parse_slots(walk, NULL, 0, NULL) < 0)
		return hs_err_set(
			HS_EPROTO, why, why_size,
			"malformed reply to CLUSTER SLOT-STATS: it must be slots from 0 to 16383 "
			"with their counters");
	*sums = (struct hs_slot_sums){0};
	*last = (struct hs_slot_sample){++samples->count, now_us};
	count = parse_slots(walk, samples, before.number, sums);
	make_rates(sums, before.number > 0 && now_us > before.at_us ? now_us - before.at_us : 0);
	return count;
}
