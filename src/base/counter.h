/* A counter is a number that one thread adds to and any thread may read: a plain add on the owner's side, no
 * locked instruction, and no torn value on the reader's.
 *
 * A counter that operators see is one row of its owner's list, and the list makes the rest:
 *
 *     #define HS_FOLD_COUNTERS(ROW) \
 *             ROW(requests, HS_COUNTER, "Stats", "fold_requests", "fold_requests_total", "Requests ...") \
 *             ROW(waiting, HS_GAUGE, "Stats", "fold_waiting", "fold_waiting", "Requests ...")
 *
 *     struct hs_fold_stats {HS_FOLD_COUNTERS(HS_COUNTER_FIELD)};
 *     const struct hs_counter_table hs_fold_counters = HS_COUNTER_TABLE(HS_FOLD_COUNTERS);
 *
 * The owner adds to a field at a fixed offset: hs_counter_add(&stats->requests, 1). INFO, /metrics, the sum over the
 * workers, CONFIG RESETSTAT and docs/METRICS.md walk the table (serve/totals.h). */
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

/* By the owning thread only. */
static inline void hs_counter_add(struct hs_counter *counter, uint64_t more)
{
	hs_counter_set(counter, hs_counter_get(counter) + more);
}

static inline void hs_counter_sub(struct hs_counter *counter, uint64_t less)
{
	hs_counter_set(counter, hs_counter_get(counter) - less);
}

enum hs_counter_kind {
	HS_GAUGE,   /* a value of this moment */
	HS_COUNTER, /* only grows; CONFIG RESETSTAT sets it to 0 */
	HS_TOTAL,   /* only grows; CONFIG RESETSTAT leaves it */
	HS_LARGEST, /* the largest value since the start; over several threads, the largest of theirs */
};

struct hs_counter_row {
	enum hs_counter_kind kind;
	const char *section; /* of INFO; NULL: INFO does not have it */
	const char *name;    /* the INFO field */
	const char *
		metric; /* the name behind heatsink_, in base units; NULL: /metrics does not have it */
	const char *help; /* of the metric */
	/* For the rows that need it, as `.factor = 1e-6` behind the help. */
	double factor;	    /* the metric is the value times this; 0 means 1 */
	uint64_t divisor;   /* INFO shows the value divided by this; 0 means 1 */
	const char *engine; /* INFO has it in front of this engine alone; NULL: of any */
};

/* The counters of a table stand in memory in the order of its rows, with nothing between them. */
struct hs_counter_table {
	const struct hs_counter_row *rows;
	size_t count;
};

/* What a list makes of a row: a field that other threads read; a plain number; the index
 * into an array of counters; the row of the table. */
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

/* The type of the metric. */
#define HS_COUNTER_TYPE(kind) ((kind) == HS_COUNTER || (kind) == HS_TOTAL ? "counter" : "gauge")

/* What INFO shows. */
static inline uint64_t hs_counter_shown(const struct hs_counter_row *row, uint64_t value)
{
	return row->divisor == 0 ? value : value / row->divisor;
}

/* By the owning thread: the counters are what it has counted so far, a struct of numbers of the table. */
static inline void hs_counters_set(const struct hs_counter_table *table, void *counters,
				   const void *numbers)
{
	struct hs_counter *counter = counters;
	const uint64_t *number = numbers;

	for (size_t i = 0; i < table->count; i++)
		hs_counter_set(&counter[i], number[i]);
}

/* Adds the counters of one owner, a struct of fields of the table, to numbers that are sums over all owners. */
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
