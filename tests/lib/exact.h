/* Heat counted exactly: what the tables of src/heat estimate in little memory, kept here for every
 * key, prefix and slot without a limit, in doubles, decayed to the microsecond. The yardstick of the
 * tests of heat. One `exact` stands for any number of workers together. */
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
	struct hs_bytes name; /* whole; slots have none */
	enum hs_heat_what what;
	uint16_t slot, partition;
	uint64_t at_us; /* when the sums were decayed last */
	double sum[HS_HEAT_WINDOWS][EXACT_COUNTS];
	double total[EXACT_COUNTS]; /* never decayed, never reset */
};

struct exact {
	struct exact_item *items;
	size_t count, cap;
	uint32_t *index; /* item number + 1 by hash; 0 is free; twice as many as items at least */
	size_t index_size;
	uint64_t start_us;		 /* when counting began, or began again */
	double largest[HS_HEAT_WINDOWS]; /* bytes of one access, see exact.c */
	struct exact_item all;		 /* every access, whatever its key */
};

void exact_init(struct exact *exact, uint64_t start_us);
void exact_deinit(struct exact *exact);

/* Counts the access, so many times, for its key, its prefixes and its slot. */
void exact_add(struct exact *exact, const struct hs_heat_access *access, uint64_t times,
	       uint64_t now_us);
/* Forgets everything but the names and the totals. */
void exact_reset(struct exact *exact, uint64_t now_us);

/* NULL: nobody ever asked for it. A slot is found by its number, the others by their name. */
struct exact_item *exact_find(const struct exact *exact, enum hs_heat_what what,
			      struct hs_bytes name, uint16_t slot);

/* Per second, corrected for a window that is not full yet: what heat's rates stand for. */
double exact_rate(const struct exact *exact, const struct exact_item *item,
		  enum hs_heat_window window, enum exact_count count, uint64_t now_us);
/* Requests (or bytes) in the window: each weighs less the longer ago it was. */
double exact_sum(const struct exact_item *item, enum hs_heat_window window, enum exact_count count,
		 uint64_t now_us);
double exact_window_s(enum hs_heat_window window);

/* ---- heat against it; each fails the test with a line that says what and where ---- */

/* What float arithmetic over many additions may cost, of a value. */
#define EXACT_SLACK 1e-3

/* Every interval of every key, prefix and slot there ever was contains the truth, tracked or not. */
void exact_check(const struct exact *exact, struct hs_heat *const *heats, size_t count,
		 uint64_t now_us);
/* One row: its bounds, its certain parts and its totals. */
void exact_check_row(const struct exact *exact, const struct exact_item *item,
		     const struct hs_heat_row *row, uint64_t now_us);
/* Every list of the hottest: sorted, nothing twice, nothing that does not exist, every name, slot
 * and partition its own, every interval right, the same numbers as hs_heat_find has. */
void exact_check_tops(const struct exact *exact, struct hs_heat *const *heats, size_t count,
		      uint64_t now_us);

#endif
