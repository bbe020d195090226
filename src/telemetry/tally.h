/* Turns successive readings of one worker's table into differences. A row's totals (heat/heat.h) run from the
 * moment the worker found the key hot, and restart when the key cools and becomes hot again. A tally stores the
 * last reading and computes what each new one has added.
 *
 *     read 1   a 100            begin: nothing is added yet
 *     read 2   a 130   b 20     a 30, b 20: b is new, all of it was added since
 *     read 3   a 10    b 25     a 10, b 5: a is smaller, so it has restarted
 *
 * A row that is missing from a reading is remembered, because a quiet key may reappear with the same totals.
 * When a reading would bring more than HS_TALLY_READINGS_MAX rows, all rows missing from it are dropped. One
 * thread, the control thread; fixed memory. */
#ifndef HS_TELEMETRY_TALLY_H
#define HS_TELEMETRY_TALLY_H

#include "heat/heat.h"

enum {
	/* rows in one reading: at least as many as a worker has detail records */
	HS_TALLY_ROWS = 256,
	HS_TALLY_READINGS_MAX = 2 * HS_TALLY_ROWS, /* rows remembered */
	/* A row whose count began at most this long before hs_tally_begin, and that was not in that reading,
	 * counts as new: a worker reads the clock less often than the control thread. */
	HS_TALLY_SLACK_US = 100000,
};

struct hs_tally_reading {
	uint64_t id;
	uint64_t since_us, bytes, ns;
};

struct hs_tally {
	uint64_t begun_us;
	size_t count;
	struct hs_tally_reading readings[HS_TALLY_READINGS_MAX]; /* sorted by id */
};

/* Stores the reading at START of the HOTKEYS session; it adds nothing. */
void hs_tally_begin(struct hs_tally *tally, struct hs_heat_row *rows, size_t count,
		    uint64_t now_us);
/* Takes a later reading: each row's total_bytes and total_ns become what was added since the previous one. Both
 * functions sort the rows by id. */
void hs_tally_differ(struct hs_tally *tally, struct hs_heat_row *rows, size_t count);

#endif
