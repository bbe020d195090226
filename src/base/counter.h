/* A counter is a number that one thread adds to and any thread may read. The owner does a plain add without a
 * locked instruction; a reader never sees a torn value.
 *
 * A counter that operators see is one row in its owner's list. The list makes everything else:
 *
 *     #define HS_FOLD_COUNTERS(ROW) \
 *             ROW(requests, HS_COUNTER, "Stats", "fold_requests", "fold_requests_total", "Requests ...") \
 *             ROW(waiting, HS_GAUGE, "Stats", "fold_waiting", "fold_waiting", "Requests ...")
 *
 *     struct hs_fold_stats {HS_FOLD_COUNTERS(HS_COUNTER_FIELD)};
 *     const struct hs_counter_table hs_fold_counters = HS_COUNTER_TABLE(HS_FOLD_COUNTERS);
 *
 * The owner adds to a field: hs_counter_add(&stats->requests, 1). INFO, /metrics, the sum over the workers,
 * CONFIG RESETSTAT and docs/METRICS.md walk the table (serve/totals.h). */
#ifndef HS_BASE_COUNTER_H
#define HS_BASE_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_counter {
	_Atomic uint64_t value;
};

static inline uint64_t hs_counter_get(const struct hs_counter *counter)
{
	return atomic_load_explicit(&counter->value, memory_order_relaxed);
}

static inline void hs_counter_set(struct hs_counter *counter, uint64_t value)
{
	atomic_store_explicit(&counter->value, value, memory_order_relaxed);
}

/* Only the owning thread adds and subtracts. */
static inline void hs_counter_add(struct hs_counter *counter, uint64_t more)
{
	hs_counter_set(counter, hs_counter_get(counter) + more);
}

static inline void hs_counter_sub(struct hs_counter *counter, uint64_t less)
{
	hs_counter_set(counter, hs_counter_get(counter) - less);
}

enum hs_counter_kind {
	HS_GAUGE,   /* a value at this moment */
	HS_COUNTER, /* only grows; CONFIG RESETSTAT sets it to 0 */
	HS_TOTAL,   /* only grows; CONFIG RESETSTAT leaves it */
	HS_LARGEST, /* the largest value since the start; the total over threads is the maximum */
};

struct hs_counter_row {
	enum hs_counter_kind kind;
	const char *section; /* INFO section; NULL: not in INFO */
	const char *name;    /* the INFO field */
	const char *metric;  /* metric name without heatsink_; NULL: not in /metrics */
	const char *help;    /* help text of the metric */
	/* Optional in a row, as `.factor = 1e-6` behind the help. */
	double factor;	    /* the metric is the value times this; 0 means 1 */
	uint64_t divisor;   /* INFO shows the value divided by this; 0 means 1 */
	const char *engine; /* INFO shows it only with this engine; NULL: with any */
};

/* The counters of a table are contiguous, in the order of its rows. */
struct hs_counter_table {
	const struct hs_counter_row *rows;
	size_t count;
};

/* Macros to apply to a list, one for each use. HS_COUNTER_FIELD: a struct field that other threads may read.
 * HS_COUNTER_NUMBER: a struct field that is a plain number. HS_COUNTER_INDEX: an enum constant, the index into
 * an array of counters. HS_COUNTER_ROW: the row of the table. */
#define HS_COUNTER_FIELD(field, ...) struct hs_counter field;
#define HS_COUNTER_NUMBER(field, ...) uint64_t field;
#define HS_COUNTER_INDEX(constant, ...) constant,
#define HS_COUNTER_ROW(field, kind_, section_, name_, metric_, help_, ...)                         \
	{.kind = (kind_),                                                                          \
	 .section = (section_),                                                                    \
	 .name = (name_),                                                                          \
	 .metric = (metric_),                                                                      \
	 .help = (help_),                                                                          \
	 __VA_ARGS__},
#define HS_COUNTER_ROWS(LIST) ((const struct hs_counter_row[]){LIST(HS_COUNTER_ROW)})
#define HS_COUNTER_TABLE(LIST)                                                                     \
	{                                                                                          \
		HS_COUNTER_ROWS(LIST),                                                             \
			sizeof HS_COUNTER_ROWS(LIST) / sizeof(struct hs_counter_row)               \
	}

/* The metric's type. */
#define HS_COUNTER_TYPE(kind) ((kind) == HS_COUNTER || (kind) == HS_TOTAL ? "counter" : "gauge")

/* The value as INFO shows it. */
static inline uint64_t hs_counter_shown(const struct hs_counter_row *row, uint64_t value)
{
	return row->divisor == 0 ? value : value / row->divisor;
}

/* Only the owning thread: sets all counters from a struct of plain numbers with the table's fields. */
static inline void hs_counters_set(const struct hs_counter_table *table, void *counters,
				   const void *numbers)
{
	struct hs_counter *counter = counters;
	const uint64_t *number = numbers;

	for (size_t i = 0; i < table->count; i++)
		hs_counter_set(&counter[i], number[i]);
}

/* Adds one owner's counters to the totals over all owners. HS_LARGEST rows take the maximum instead. */
static inline void hs_counters_sum(const struct hs_counter_table *table, const void *counters,
				   void *numbers)
{
	const struct hs_counter *counter = counters;
	uint64_t *sums = numbers;

	for (size_t i = 0; i < table->count; i++) {
		uint64_t value = hs_counter_get(&counter[i]);

		if (table->rows[i].kind != HS_LARGEST)
			sums[i] += value;
		else if (value > sums[i])
			sums[i] = value;
	}
}

#endif
