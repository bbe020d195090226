/* Exact heat, the reference for tests of src/heat: counts for every key, prefix and slot, without a limit and in
 * doubles, decayed to the microsecond. src/heat estimates the same numbers in bounded memory. One `exact` stands for
 * all workers together. One thread; the struct owns its items until exact_deinit. The exact_check functions fail the
 * test with the name and both numbers. */
#ifndef HS_TESTS_EXACT_H
#define HS_TESTS_EXACT_H

#include "heat/heat.h"

enum exact_count {
	EXACT_OPS,
	EXACT_READS,
	EXACT_WRITES,
	EXACT_BYTES,
	EXACT_MISSES,
	EXACT_CONFLICTS,
	EXACT_COUNTS,
};

struct exact_item {
	struct hs_bytes name; /* the whole name; empty for a slot */
	enum hs_heat_what what;
	uint16_t slot, partition;
	uint64_t at_us; /* time of the last decay of the sums */
	double sum[HS_HEAT_WINDOWS][EXACT_COUNTS];
	double total[EXACT_COUNTS]; /* never decayed, never reset */
};

struct exact {
	struct exact_item *items;
	size_t count, cap;
	uint32_t *index; /* item number + 1 by hash; 0: free; at least twice as many as items */
	size_t index_size;
	uint64_t start_us;		 /* time of the start or of the last reset */
	double largest[HS_HEAT_WINDOWS]; /* bytes of one access, see exact.c */
	struct exact_item all;		 /* totals over all accesses */
};

void exact_init(struct exact *exact, uint64_t start_us);
void exact_deinit(struct exact *exact);

/* Counts the access `times` times, for its key, its prefixes and its slot. */
void exact_add(struct exact *exact, const struct hs_heat_access *access, uint64_t times,
	       uint64_t now_us);
/* Resets all sums; names and totals stay. */
void exact_reset(struct exact *exact, uint64_t now_us);

/* NULL: no access was counted for it. A slot is found by its number, other items by their name. */
struct exact_item *exact_find(const struct exact *exact, enum hs_heat_what what,
			      struct hs_bytes name, uint16_t slot);

/* The exact rate per second, corrected for a window that is not full yet. */
double exact_rate(const struct exact *exact, const struct exact_item *item,
		  enum hs_heat_window window, enum exact_count count, uint64_t now_us);
/* Requests (or bytes) in the window, with exponential decay. */
double exact_sum(const struct exact_item *item, enum hs_heat_window window, enum exact_count count,
		 uint64_t now_us);
double exact_window_s(enum hs_heat_window window);

/* ---- comparing src/heat with the exact counts ---- */

/* The relative error allowed for float arithmetic over many additions. */
#define EXACT_SLACK 1e-3

/* Asserts that heat's bounds contain the exact value for every key, prefix and slot, tracked or not. */
void exact_check(const struct exact *exact, struct hs_heat *const *heats, size_t count,
		 uint64_t now_us);
/* Asserts the bounds and totals of one row. */
void exact_check_row(const struct exact *exact, const struct exact_item *item,
		     const struct hs_heat_row *row, uint64_t now_us);
/* Asserts that every list of the hottest is sorted, without duplicates and without unknown items, that names,
 * slots and partitions match, that all bounds hold, and that the numbers equal those of hs_heat_find. */
void exact_check_tops(const struct exact *exact, struct hs_heat *const *heats, size_t count,
		      uint64_t now_us);

#endif
