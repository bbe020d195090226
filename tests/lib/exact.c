#include "tests/lib/exact.h"

#include "base/hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ROWS_MAX = 6000 }; /* more than any table has entries */

double exact_window_s(enum hs_heat_window window)
{
	return (window == HS_HEAT_SHORT ? HS_HEAT_SHORT_US : HS_HEAT_LONG_US) / 1e6;
}

static double decay(uint64_t from_us, uint64_t to_us, enum hs_heat_window window)
{
	return to_us > from_us ? exp(-(double)(to_us - from_us) / 1e6 / exact_window_s(window)) : 1;
}

void exact_init(struct exact *exact, uint64_t start_us)
{
	*exact = (struct exact){.start_us = start_us, .index_size = 1024};
	exact->index = hs_mem_zalloc(exact->index_size * sizeof *exact->index);
	exact->all.at_us = start_us;
}

void exact_deinit(struct exact *exact)
{
	for (size_t i = 0; i < exact->count; i++)
		hs_mem_release((void *)(uintptr_t)exact->items[i].name.data);
	hs_mem_free(&exact->items);
	hs_mem_free(&exact->index);
}

/* The index entry of the item, or the free one where it would be. */
static uint32_t *place(const struct exact *exact, enum hs_heat_what what, struct hs_bytes name,
		       uint16_t slot)
{
	uint64_t salt = (uint64_t)what << 32 | (what == HS_HEAT_SLOTS ? slot : 0);
	size_t at = hs_hash(name, salt) & (exact->index_size - 1);

	for (;; at = (at + 1) & (exact->index_size - 1)) {
		uint32_t number = exact->index[at];
		const struct exact_item *item = number ? &exact->items[number - 1] : NULL;

		if (!item || (item->what == what && hs_bytes_equal(item->name, name) &&
			      (what != HS_HEAT_SLOTS || item->slot == slot)))
			return &exact->index[at];
	}
}

static void grow(struct exact *exact)
{
	exact->cap = exact->cap ? exact->cap * 2 : 256;
	exact->items = hs_mem_realloc(exact->items, exact->cap * sizeof *exact->items);
	hs_mem_free(&exact->index);
	exact->index_size = exact->cap * 4;
	exact->index = hs_mem_zalloc(exact->index_size * sizeof *exact->index);
	for (size_t i = 0; i < exact->count; i++) {
		const struct exact_item *item = &exact->items[i];

		*place(exact, item->what, item->name, item->slot) = (uint32_t)i + 1;
	}
}

static void count(struct exact_item *item, const struct hs_heat_access *access, uint64_t times,
		  uint64_t now_us)
{
	double ops = (double)times;
	const double more[EXACT_COUNTS] = {
		[EXACT_OPS] = ops,
		[EXACT_READS] = access->write ? 0 : ops,
		[EXACT_WRITES] = access->write ? ops : 0,
		[EXACT_BYTES] = ops * (double)access->bytes,
		[EXACT_MISSES] = access->missed ? ops : 0,
		[EXACT_CONFLICTS] = access->conflicted ? ops : 0,
	};

	for (enum hs_heat_window window = 0; window < HS_HEAT_WINDOWS; window++) {
		double factor = decay(item->at_us, now_us, window);

		for (int i = 0; i < EXACT_COUNTS; i++)
			item->sum[window][i] = item->sum[window][i] * factor + more[i];
	}
	for (int i = 0; i < EXACT_COUNTS; i++)
		item->total[i] += more[i];
	if (now_us > item->at_us)
		item->at_us = now_us;
}

static void count_as(struct exact *exact, enum hs_heat_what what, struct hs_bytes name,
		     const struct hs_heat_access *access, uint64_t times, uint64_t now_us)
{
	uint32_t *number = place(exact, what, name, access->slot);

	if (!*number) {
		if (exact->count == exact->cap) {
			grow(exact);
			number = place(exact, what, name, access->slot);
		}
		exact->items[exact->count] = (struct exact_item){
			.name = {hs_mem_dup(name.data, name.len), name.len},
			.what = what,
			.slot = access->slot,
			.partition = access->partition,
			.at_us = now_us,
		};
		*number = (uint32_t)++exact->count;
	}
	count(&exact->items[*number - 1], access, times, now_us);
}

/* The largest recent access in bytes; decays ten times slower than the counts. */
static double largest(const struct exact *exact, enum hs_heat_window window, uint64_t now_us)
{
	return exact->largest[window] * pow(decay(exact->all.at_us, now_us, window), 0.1);
}

void exact_add(struct exact *exact, const struct hs_heat_access *access, uint64_t times,
	       uint64_t now_us)
{
	size_t levels = 0;

	for (enum hs_heat_window window = 0; window < HS_HEAT_WINDOWS; window++)
		exact->largest[window] =
			fmax(largest(exact, window, now_us), (double)access->bytes);
	count(&exact->all, access, times, now_us);
	count_as(exact, HS_HEAT_KEYS, access->key, access, times, now_us);
	count_as(exact, HS_HEAT_SLOTS, HS_LIT(""), access, times, now_us);
	for (size_t i = 0; i < access->key.len && i < HS_HEAT_PREFIX_BYTES; i++) {
		if (access->key.data[i] != ':')
			continue;
		count_as(exact, HS_HEAT_PREFIXES, (struct hs_bytes){access->key.data, i + 1},
			 access, times, now_us);
		if (++levels == HS_HEAT_PREFIX_LEVELS)
			break;
	}
}

void exact_reset(struct exact *exact, uint64_t now_us)
{
	exact->start_us = now_us;
	memset(exact->all.sum, 0, sizeof exact->all.sum);
	for (size_t i = 0; i < exact->count; i++)
		memset(exact->items[i].sum, 0, sizeof exact->items[i].sum);
}

struct exact_item *exact_find(const struct exact *exact, enum hs_heat_what what,
			      struct hs_bytes name, uint16_t slot)
{
	uint32_t number = *place(exact, what, name, slot);

	return number ? &exact->items[number - 1] : NULL;
}

double exact_sum(const struct exact_item *item, enum hs_heat_window window, enum exact_count which,
		 uint64_t now_us)
{
	return item->sum[window][which] * decay(item->at_us, now_us, window);
}

double exact_rate(const struct exact *exact, const struct exact_item *item,
		  enum hs_heat_window window, enum exact_count which, uint64_t now_us)
{
	double full = -expm1(-(double)(now_us - exact->start_us) / 1e6 / exact_window_s(window));

	return exact_sum(item, window, which, now_us) / (exact_window_s(window) * full);
}

/* ---- comparing heat with the exact counts ---- */

static const char *const what_names[] = {"key", "prefix", "slot"};
static const char *const window_names[] = {"short", "long"};

static const char *label(const struct exact_item *item, char *text, size_t size)
{
	if (item->what == HS_HEAT_SLOTS)
		snprintf(text, size, "slot %u", item->slot);
	else
		hs_bytes_escape((struct hs_bytes){item->name.data,
						  item->name.len < 60 ? item->name.len : 60},
				text, size);
	return text;
}

/* `low` and `high` are rates, the truth is one too. What is less than a thousandth of a request in
 * the window is nothing, even of a large one. */
static void check_bounds(const struct exact *exact, const struct exact_item *item,
			 enum hs_heat_window window, enum exact_count count, double low,
			 double high, uint64_t now_us)
{
	static const char *const names[] = {"ops",   "reads",  "writes",
					    "bytes", "misses", "conflicts"};
	double truth = exact_rate(exact, item, window, count, now_us);
	double nothing = 1e-3;
	char text[256];

	if (count == EXACT_BYTES)
		nothing *= fmax(1, largest(exact, window, now_us));
	nothing /= exact_window_s(window);
	if (low <= truth * (1 + EXACT_SLACK) + nothing &&
	    high >= truth * (1 - EXACT_SLACK) - nothing && low <= high * (1 + 1e-9) + nothing)
		return;
	fail_msg("%s \"%s\": %s in the %s window: %.9g is not in [%.9g, %.9g] (%" PRIu64
		 " us after the start)",
		 what_names[item->what], label(item, text, sizeof text), names[count],
		 window_names[window], truth, low, high, now_us - exact->start_us);
}

void exact_check_row(const struct exact *exact, const struct exact_item *item,
		     const struct hs_heat_row *row, uint64_t now_us)
{
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
		const struct hs_heat_rates *rates = &row->window[w];
		double off = fabs(rates->reads + rates->writes - rates->ops_low);

		check_bounds(exact, item, w, EXACT_OPS, rates->ops_low, rates->ops_high, now_us);
		check_bounds(exact, item, w, EXACT_BYTES, rates->bytes_low, rates->bytes_high,
			     now_us);
		check_bounds(exact, item, w, EXACT_READS, rates->reads, INFINITY, now_us);
		check_bounds(exact, item, w, EXACT_WRITES, rates->writes, INFINITY, now_us);
		check_bounds(exact, item, w, EXACT_MISSES, rates->misses, INFINITY, now_us);
		check_bounds(exact, item, w, EXACT_CONFLICTS, rates->conflicts, INFINITY, now_us);
		if (off > EXACT_SLACK * rates->ops_low)
			fail_msg("reads %g and writes %g do not add up to ops_low %g", rates->reads,
				 rates->writes, rates->ops_low);
		if (row->workers == 0 && (rates->ops_low > 0 || rates->bytes_low > 0))
			fail_msg("nobody tracks it and yet its low bound is above 0");
	}
	assert_true((double)row->total_reads <= item->total[EXACT_READS]);
	assert_true((double)row->total_writes <= item->total[EXACT_WRITES]);
	assert_true((double)row->total_bytes <= item->total[EXACT_BYTES]);
}

void exact_check(const struct exact *exact, struct hs_heat *const *heats, size_t count,
		 uint64_t now_us)
{
	for (size_t i = 0; i < exact->count; i++) {
		const struct exact_item *item = &exact->items[i];
		struct hs_heat_row row;

		hs_heat_find(heats, count, item->what, item->name, item->slot, now_us, &row);
		exact_check_row(exact, item, &row, now_us);
	}
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
		double total = hs_heat_total(heats, count, w, now_us);

		check_bounds(exact, &exact->all, w, EXACT_OPS, total, total, now_us);
	}
}

static double certain(const struct hs_heat_row *row, const struct hs_heat_query *query)
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
		break;
	}
	return rates->conflicts;
}

/* The item of a row. A shortened name is searched among the names with the same beginning and end. */
static const struct exact_item *item_of(const struct exact *exact, enum hs_heat_what what,
					const struct hs_heat_row *row, struct hs_heat *const *heats,
					size_t count, uint64_t now_us)
{
	struct hs_bytes name = {row->name, row->name_len};

	if (what == HS_HEAT_SLOTS || row->full_len <= HS_HEAT_NAME_BYTES) {
		if (what != HS_HEAT_SLOTS)
			assert_int_equal(row->full_len, row->name_len);
		return exact_find(exact, what, what == HS_HEAT_SLOTS ? HS_LIT("") : name,
				  row->slot);
	}
	assert_int_equal(row->name_len, HS_HEAT_NAME_BYTES);
	for (size_t i = 0; i < exact->count; i++) {
		const struct exact_item *item = &exact->items[i];
		struct hs_heat_row found;

		if (item->what != what || item->name.len != row->full_len ||
		    memcmp(item->name.data, name.data, name.len) != 0)
			continue;
		hs_heat_find(heats, count, what, item->name, item->slot, now_us, &found);
		if (found.id == row->id)
			return item;
	}
	return NULL;
}

static int by_id(const void *a, const void *b)
{
	const struct hs_heat_row *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

static void check_top(const struct exact *exact, struct hs_heat *const *heats, size_t count,
		      const struct hs_heat_query *query, struct hs_heat_row *rows, uint64_t now_us)
{
	size_t found = hs_heat_top(heats, count, query, now_us, rows, ROWS_MAX);

	assert_true(found <= ROWS_MAX);
	for (size_t i = 0; i < found; i++) {
		const struct hs_heat_row *row = &rows[i];
		const struct exact_item *item =
			item_of(exact, query->what, row, heats, count, now_us);
		struct hs_heat_row same;

		if (!item) {
			fail_msg("a %s \"%.*s\" (%u bytes, slot %u) that nobody asked for",
				 what_names[query->what], (int)row->name_len, row->name,
				 row->full_len, row->slot);
			return; /* fail_msg does not return, but is not declared noreturn */
		}
		if (i > 0)
			assert_true(certain(row - 1, query) >= certain(row, query));
		if (query->what != HS_HEAT_PREFIXES) {
			assert_int_equal(row->slot, item->slot);
			assert_int_equal(row->partition, item->partition);
		}
		assert_true(row->workers > 0);
		assert_true(row->workers <= count);
		exact_check_row(exact, item, row, now_us);
		hs_heat_find(heats, count, query->what, item->name, item->slot, now_us, &same);
		assert_true(same.id == row->id);
		if (query->what != HS_HEAT_SLOTS)
			assert_true(row->public_id == hs_heat_public_id(heats[0], item->name));
		assert_memory_equal(same.window, row->window, sizeof same.window);
		assert_true(same.p99_us == row->p99_us);
	}
	qsort(rows, found, sizeof *rows, by_id);
	for (size_t i = 1; i < found; i++)
		assert_true(rows[i - 1].id != rows[i].id);
}

/* A short list equals the beginning of a long one. */
static void check_first(struct hs_heat *const *heats, size_t count,
			const struct hs_heat_query *query, struct hs_heat_row *rows,
			uint64_t now_us)
{
	struct hs_heat_row first[7];
	size_t all = hs_heat_top(heats, count, query, now_us, rows, ROWS_MAX);
	size_t found = hs_heat_top(heats, count, query, now_us, first, 7);

	assert_int_equal(found, all < 7 ? all : 7);
	for (size_t i = 0; i < found; i++)
		assert_true(certain(&first[i], query) == certain(&rows[i], query));
}

void exact_check_tops(const struct exact *exact, struct hs_heat *const *heats, size_t count,
		      uint64_t now_us)
{
	struct hs_heat_row *rows = hs_mem_alloc(ROWS_MAX * sizeof *rows);
	struct hs_heat_query query = {0};

	for (enum hs_heat_what what = 0; what < HS_HEAT_TABLES; what++) {
		for (enum hs_heat_by by = 0; by <= HS_HEAT_BY_CONFLICTS; by++) {
			for (enum hs_heat_window window = 0; window < HS_HEAT_WINDOWS; window++) {
				query.what = what;
				query.by = by;
				query.window = window;
				check_top(exact, heats, count, &query, rows, now_us);
				check_first(heats, count, &query, rows, now_us);
			}
		}
	}
	hs_mem_free(&rows);
}
