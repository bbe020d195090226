/* The reader's side of a table: any thread, at any time, without stopping the writer. */
#include "heat/table.h"

#include <math.h>

enum { READ_TRIES = 1000 };

#define load(place) __atomic_load_n(place, __ATOMIC_ACQUIRE)

double hs_heat_decay(uint32_t epoch, enum hs_heat_window window, uint64_t now_us)
{
	double age_ms = (double)now_us / 1000 - ((double)epoch - 1) * HS_HEAT_EPOCH_MS;

	/* Clamp: a `now_us` before the epoch gives a wrong but finite factor. */
	if (age_ms < -HS_HEAT_SHORT_MS)
		age_ms = -HS_HEAT_SHORT_MS;
	return exp(-age_ms / (window == HS_HEAT_SHORT ? HS_HEAT_SHORT_MS : HS_HEAT_LONG_MS));
}

static inline double load_float(const float *place)
{
	float value;

	__atomic_load(place, &value, __ATOMIC_ACQUIRE);
	return (double)value;
}

static void read_sum(const double sum[HS_HEAT_WINDOWS], const double factor[HS_HEAT_WINDOWS],
		     double values[HS_HEAT_WINDOWS])
{
	for (int i = 0; i < HS_HEAT_WINDOWS; i++) {
		double value;

		__atomic_load(&sum[i], &value, __ATOMIC_ACQUIRE);
		values[i] = value * factor[i];
	}
}

static void read_detail(const struct hs_heat_detail *detail, const double factor[HS_HEAT_WINDOWS],
			struct hs_heat_entry *entry)
{
	for (size_t i = 0; i < HS_HEAT_NAME_WORDS; i++) {
		uint64_t word = load(&detail->name[i]);

		memcpy(entry->name + i * sizeof word, &word, sizeof word);
	}
	entry->public_id = load(&detail->public_id);
	entry->full_len = load(&detail->full_len);
	entry->slot = load(&detail->slot);
	entry->partition = load(&detail->partition);
	read_sum(detail->ops[0], factor, entry->ops[0]);
	read_sum(detail->ops[1], factor, entry->ops[1]);
	read_sum(detail->bytes, factor, entry->bytes);
	read_sum(detail->misses, factor, entry->misses);
	read_sum(detail->conflicts, factor, entry->conflicts);
	read_sum(detail->error, factor, entry->error);
	entry->total_ops[0] = load(&detail->total_ops[0]);
	entry->total_ops[1] = load(&detail->total_ops[1]);
	entry->total_bytes = load(&detail->total_bytes);
	entry->total_ns = load(&detail->total_ns);
	entry->total_since_us = load(&detail->since_us);
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		entry->histogram[i] = load(&detail->histogram[i]);
}

static void read_entry(const struct hs_heat_table *table, uint32_t set, uint32_t way, uint32_t tag,
		       const double factor[HS_HEAT_WINDOWS], double short_bound,
		       struct hs_heat_entry *entry)
{
	uint32_t number = load(&table->sides[set].details[way]);
	double score = load_float(&table->lines[set].scores[way]) * factor[HS_HEAT_LONG];

	memset(entry, 0, sizeof *entry);
	entry->id = (uint64_t)tag << 32 | set;
	entry->detail = number != 0;
	entry->error[HS_HEAT_SHORT] = short_bound;
	entry->error[HS_HEAT_LONG] = score;
	if (number)
		read_detail(&table->details[number], factor, entry);
	/* An upper bound of the long window also bounds the short one. */
	if (entry->error[HS_HEAT_SHORT] > score)
		entry->error[HS_HEAT_SHORT] = score;
}

static void read_once(const struct hs_heat_table *table, uint32_t set, uint64_t now_us,
		      struct hs_heat_set_view *view)
{
	const struct hs_heat_line *line = &table->lines[set];
	const struct hs_heat_side *side = &table->sides[set];
	const double factor[HS_HEAT_WINDOWS] = {
		hs_heat_decay(load(&side->epoch), HS_HEAT_SHORT, now_us),
		hs_heat_decay(load(&side->epoch), HS_HEAT_LONG, now_us),
	};
	double lowest = INFINITY,
	       short_bound = load_float(&side->short_bound) * factor[HS_HEAT_SHORT];
	uint32_t tags[HS_HEAT_WAYS];

	view->unit = load_float(&side->unit);
	view->count = 0;
	/* All tags before any score: an entry that moves meanwhile and is seen in neither place had at most the
	 * new lowest score. */
	for (uint32_t way = 0; way < HS_HEAT_WAYS; way++)
		tags[way] = load(&line->tags[way]);
	for (uint32_t way = 0; way < HS_HEAT_WAYS; way++) {
		double score = load_float(&line->scores[way]) * factor[HS_HEAT_LONG];

		lowest = score < lowest ? score : lowest;
		if (tags[way] != 0)
			read_entry(table, set, way, tags[way], factor, short_bound,
				   &view->entries[view->count++]);
	}
	view->absent[HS_HEAT_SHORT] = short_bound < lowest ? short_bound : lowest;
	view->absent[HS_HEAT_LONG] = lowest;
}

void hs_heat_table_read(const struct hs_heat_table *table, uint32_t set, uint64_t now_us,
			struct hs_heat_set_view *view)
{
	for (int i = 0; i < READ_TRIES; i++) {
		uint32_t version = load(&table->sides[set].version);

		if (version % 2 == 1)
			continue;
		read_once(table, set, now_us, view);
		if (load(&table->sides[set].version) == version)
			return;
	}
	/* The worker was stopped in the middle of a change: the set is unknown. */
	view->count = 0;
	view->unit = 1;
	view->absent[HS_HEAT_SHORT] = INFINITY;
	view->absent[HS_HEAT_LONG] = INFINITY;
}
