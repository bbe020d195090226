/* Merges all workers' tables into one view. All tables have the same seed and shape, so a key is in the set
 * with the same number in each, and tables are merged set by set. Counts are added. Error bounds are added too:
 * a worker whose table does not have the key adds its upper bound for untracked keys. */
#include "heat/heat.h"

#include "base/mem.h"
#include "heat/internal.h"

#include <math.h>

/* Fewer requests in the window: the entry has cooled. By bytes, misses and conflicts less is enough: a huge or
 * missing key may matter with few requests. */
#define COOLED 0.5
#define COOLED_RARE 1e-3

static const double tau_s[HS_HEAT_WINDOWS] = {HS_HEAT_SHORT_US / 1e6, HS_HEAT_LONG_US / 1e6};

/* State that is the same for all rows of one query. */
struct frame {
	struct hs_heat *const *heats;
	size_t heats_count;
	struct hs_heat_set_view *views;	  /* one per worker, of the current set */
	double (*scale)[HS_HEAT_WINDOWS]; /* per worker: decayed counts to rates */
	struct hs_heat_sums *sums;	  /* per worker: all its requests */
	const struct hs_heat_table **tables;
};

/* Factor from a decayed count to a rate. While a window is not full, its length is the time since counting
 * began. */
static double rate_scale(const struct hs_heat *heat, int window, uint64_t now_us)
{
	uint64_t since_us = hs_heat_since_us(heat);
	double age_s = now_us > since_us + 1000 ? (double)(now_us - since_us) / 1e6 : 1e-3;

	return 1 / (tau_s[window] * -expm1(-age_s / tau_s[window]));
}

static void frame_init(struct frame *frame, struct hs_heat *const *heats, size_t heats_count,
		       enum hs_heat_what what, uint64_t now_us)
{
	*frame = (struct frame){.heats = heats, .heats_count = heats_count};
	frame->views = hs_mem_alloc(heats_count * sizeof *frame->views);
	frame->scale = hs_mem_alloc(heats_count * sizeof *frame->scale);
	frame->sums = hs_mem_alloc(heats_count * sizeof *frame->sums);
	frame->tables = hs_mem_alloc(heats_count * sizeof *frame->tables);
	for (size_t i = 0; i < heats_count; i++) {
		frame->tables[i] = hs_heat_table_of(heats[i], what);
		frame->sums[i] = hs_heat_read_sums(heats[i], now_us);
		for (int w = 0; w < HS_HEAT_WINDOWS; w++)
			frame->scale[i][w] = rate_scale(heats[i], w, now_us);
	}
}

static void frame_deinit(struct frame *frame)
{
	hs_mem_free(&frame->views);
	hs_mem_free(&frame->scale);
	hs_mem_free(&frame->sums);
	hs_mem_free(&frame->tables);
}

static void frame_read(struct frame *frame, uint32_t set, uint64_t now_us)
{
	for (size_t i = 0; i < frame->heats_count; i++) {
		if (frame->tables[i])
			hs_heat_table_read(frame->tables[i], set, now_us, &frame->views[i]);
		else
			frame->views[i] = (struct hs_heat_set_view){.unit = 1};
	}
}

static const struct hs_heat_entry *view_find(const struct hs_heat_set_view *view, uint64_t id)
{
	for (uint32_t i = 0; i < view->count; i++) {
		if (view->entries[i].id == id)
			return &view->entries[i];
	}
	return NULL;
}

/* Adds one worker's bounds for the entry to the row; `entry` NULL: the bounds of an untracked key. */
static void add_window(struct hs_heat_rates *rates, const struct hs_heat_set_view *view,
		       const struct hs_heat_entry *entry, int w, double scale,
		       const struct hs_heat_sums *sums)
{
	double error = entry ? entry->error[w] : view->absent[w];
	double ops = 0, bytes = 0;

	if (entry) {
		ops = entry->ops[0][w] + entry->ops[1][w];
		bytes = entry->bytes[w];
		rates->reads += entry->ops[0][w] * scale;
		rates->writes += entry->ops[1][w] * scale;
		rates->misses += entry->misses[w] * scale;
		rates->conflicts += entry->conflicts[w] * scale;
	}
	/* An upper bound is never more than the worker's total. */
	rates->ops_low += ops * scale;
	rates->ops_high +=
		(ops + error < sums->ops[w] ? ops + error : fmax(sums->ops[w], ops)) * scale;
	error *= view->unit;
	rates->bytes_low += bytes * scale;
	rates->bytes_high +=
		(bytes + error < sums->bytes[w] ? bytes + error : fmax(sums->bytes[w], bytes)) *
		scale;
}

static void add_detail(struct hs_heat_row *row, const struct hs_heat_entry *entry,
		       double histogram[HS_COARSE_HISTOGRAM_BUCKETS])
{
	double count = 0, weight = entry->ops[0][HS_HEAT_LONG] + entry->ops[1][HS_HEAT_LONG];

	row->full_len = entry->full_len;
	row->name_len = entry->full_len < HS_HEAT_NAME_BYTES ? entry->full_len : HS_HEAT_NAME_BYTES;
	memcpy(row->name, entry->name, row->name_len);
	row->public_id = entry->public_id;
	row->slot = entry->slot;
	row->partition = entry->partition;
	row->total_reads += entry->total_ops[0];
	row->total_writes += entry->total_ops[1];
	row->total_bytes += entry->total_bytes;
	row->total_ns += entry->total_ns;
	if (row->total_since_us == 0 || entry->total_since_us < row->total_since_us)
		row->total_since_us = entry->total_since_us;
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		count += entry->histogram[i];
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS && count > 0; i++)
		histogram[i] += entry->histogram[i] * weight / count;
}

/* Merges the row of an id from the views of its set. Returns its lower bound in the window, in requests. */
static double merge_row(const struct frame *frame, uint64_t id, enum hs_heat_window window,
			struct hs_heat_row *row)
{
	double histogram[HS_COARSE_HISTOGRAM_BUCKETS] = {0};
	double certain = 0;

	*row = (struct hs_heat_row){.id = id};
	for (size_t i = 0; i < frame->heats_count; i++) {
		const struct hs_heat_set_view *view = &frame->views[i];
		const struct hs_heat_entry *entry = view_find(view, id);

		for (int w = 0; w < HS_HEAT_WINDOWS; w++)
			add_window(&row->window[w], view, entry, w, frame->scale[i][w],
				   &frame->sums[i]);
		if (!entry)
			continue;
		row->workers++;
		certain += entry->ops[0][window] + entry->ops[1][window];
		if (entry->detail)
			add_detail(row, entry, histogram);
	}
	row->p50_us = hs_coarse_histogram_quantile(histogram, 0.5);
	row->p99_us = hs_coarse_histogram_quantile(histogram, 0.99);
	return certain;
}

static double rank_of(const struct hs_heat_row *row, const struct hs_heat_query *query)
{
	const struct hs_heat_rates *rates = &row->window[query->window];

	switch (query->by) {
	case HS_HEAT_BY_OPS:
		return rates->ops_low;
	case HS_HEAT_BY_READS:
		return rates->reads;
	case HS_HEAT_BY_WRITES:
		return rates->writes;
	case HS_HEAT_BY_BYTES:
		return rates->bytes_low;
	case HS_HEAT_BY_LATENCY:
		return row->p99_us;
	case HS_HEAT_BY_MISSES:
		return rates->misses;
	case HS_HEAT_BY_CONFLICTS:
		return rates->conflicts;
	}
	return 0;
}

/* The best rows so far: a heap with the lowest rank first. */
struct best {
	struct hs_heat_row *rows;
	double *ranks;
	size_t count, max;
};

static void swap_rows(struct best *best, size_t a, size_t b)
{
	struct hs_heat_row row = best->rows[a];
	double rank = best->ranks[a];

	best->rows[a] = best->rows[b];
	best->ranks[a] = best->ranks[b];
	best->rows[b] = row;
	best->ranks[b] = rank;
}

static void sink(struct best *best, size_t at)
{
	for (;;) {
		size_t least = at, child = 2 * at + 1;

		for (size_t i = child; i < child + 2 && i < best->count; i++)
			least = best->ranks[i] < best->ranks[least] ? i : least;
		if (least == at)
			return;
		swap_rows(best, at, least);
		at = least;
	}
}

static void keep(struct best *best, const struct hs_heat_row *row, double rank)
{
	size_t at;

	if (best->count == best->max) {
		if (rank <= best->ranks[0])
			return;
		best->rows[0] = *row;
		best->ranks[0] = rank;
		sink(best, 0);
		return;
	}
	at = best->count++;
	best->rows[at] = *row;
	best->ranks[at] = rank;
	for (; at > 0 && best->ranks[at] < best->ranks[(at - 1) / 2]; at = (at - 1) / 2)
		swap_rows(best, at, (at - 1) / 2);
}

/* Heap sort: moves the lowest rank behind the rest, repeatedly, so the highest is first. */
static void put_in_order(struct best *best)
{
	size_t all = best->count;

	while (best->count > 1) {
		swap_rows(best, 0, --best->count);
		sink(best, 0);
	}
	best->count = all;
}

/* Offers each named entry of the set once, whichever workers have it. */
static void look_at_set(const struct frame *frame, const struct hs_heat_query *query,
			struct best *best)
{
	bool rare = query->by == HS_HEAT_BY_BYTES || query->by == HS_HEAT_BY_MISSES ||
		    query->by == HS_HEAT_BY_CONFLICTS;
	double cooled = rare ? COOLED_RARE : COOLED;
	struct hs_heat_row row;

	for (size_t i = 0; i < frame->heats_count; i++) {
		for (uint32_t j = 0; j < frame->views[i].count; j++) {
			const struct hs_heat_entry *entry = &frame->views[i].entries[j];
			bool seen = !entry->detail;

			for (size_t k = 0; k < i && !seen; k++) {
				const struct hs_heat_entry *other =
					view_find(&frame->views[k], entry->id);

				seen = other && other->detail;
			}
			if (seen || merge_row(frame, entry->id, query->window, &row) < cooled)
				continue;
			if (!hs_bytes_begins((struct hs_bytes){row.name, row.name_len},
					     query->starts))
				continue;

			double rank = rank_of(&row, query);

			if (rank > 0)
				keep(best, &row, rank);
		}
	}
}

size_t hs_heat_top(struct hs_heat *const *heats, size_t heats_count,
		   const struct hs_heat_query *query, uint64_t now_us, struct hs_heat_row *rows,
		   size_t max)
{
	struct best best = {.rows = rows, .max = max};
	struct frame frame;
	uint32_t sets = 0;

	if (max == 0 || heats_count == 0)
		return 0;
	frame_init(&frame, heats, heats_count, query->what, now_us);
	best.ranks = hs_mem_alloc(max * sizeof *best.ranks);
	for (size_t i = 0; i < heats_count; i++) {
		if (frame.tables[i])
			sets = frame.tables[i]->sets_count;
	}
	for (uint32_t set = 0; set < sets; set++) {
		frame_read(&frame, set, now_us);
		look_at_set(&frame, query, &best);
	}
	put_in_order(&best);
	hs_mem_free(&best.ranks);
	frame_deinit(&frame);
	return best.count;
}

void hs_heat_find(struct hs_heat *const *heats, size_t heats_count, enum hs_heat_what what,
		  struct hs_bytes name, uint16_t slot, uint64_t now_us, struct hs_heat_row *row)
{
	struct frame frame;
	uint64_t id = 0, hash = what == HS_HEAT_SLOTS ? hs_heat_slot_hash(slot)
						      : hs_heat_hash(heats[0], name);
	uint32_t set = 0;

	frame_init(&frame, heats, heats_count, what, now_us);
	for (size_t i = 0; i < heats_count; i++) {
		if (!frame.tables[i])
			continue;
		id = hs_heat_id(frame.tables[i], hash);
		set = (uint32_t)(id & (frame.tables[i]->sets_count - 1));
	}
	frame_read(&frame, set, now_us);
	merge_row(&frame, id, HS_HEAT_LONG, row);
	row->public_id = hs_heat_public_id(heats[0], name);
	row->full_len = (uint32_t)name.len;
	row->name_len = name.len < HS_HEAT_NAME_BYTES ? (uint32_t)name.len : HS_HEAT_NAME_BYTES;
	if (row->name_len > 0)
		memcpy(row->name, name.data, row->name_len);
	if (row->workers == 0 || what == HS_HEAT_SLOTS)
		row->slot = slot;
	frame_deinit(&frame);
}

double hs_heat_total(struct hs_heat *const *heats, size_t heats_count, enum hs_heat_window window,
		     uint64_t now_us)
{
	double total = 0;

	for (size_t i = 0; i < heats_count; i++) {
		double ops = hs_heat_read_sums(heats[i], now_us).ops[window];

		if (ops < INFINITY)
			total += ops * rate_scale(heats[i], (int)window, now_us);
	}
	return total;
}
