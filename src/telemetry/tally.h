/* What was added between two readings of one worker's table. The totals of a row (heat/heat.h) run
 * from the moment the worker found the key hot, and start again when the key cools and comes back;
 * a tally remembers the last reading and turns each new one into differences.
 *
 *     read 1   a 100            begin: nothing is added yet
 *     read 2   a 130   b 20     a 30, b 20: b is new, all of it was added since
 *     read 3   a 10    b 25     a 10, b 5: a came down, so it started again
 *
 * A row that is not in a reading is remembered for a while: a quiet key drops out of sight and
 * comes back with the totals it had. Pure, one thread, fixed memory. */
#ifndef HS_TELEMETRY_TALLY_H
#define HS_TELEMETRY_TALLY_H

#include "heat/heat.h"

enum {
	HS_TALLY_ROWS = 256, /* in one reading: as many as a worker has totals for, and more */
	HS_TALLY_READINGS_MAX = 2 * HS_TALLY_ROWS, /* remembered */
	/* What began this long before the first reading and was not in it began with it: a worker
	 * looks at the time less often than we do. */
	HS_TALLY_SLACK_US = 100000,
};

struct hs_tally_reading {
	uint64_t id;
	uint64_t since_us, bytes, ns;
};

struct hs_tally {
	uint64_t begun_us;
	size_t count;
	struct hs_tally_reading readings[HS_TALLY_READINGS_MAX]; /* by id */
};

/* The first reading, or the first of a new count. */
void hs_tally_begin(struct hs_tally *tally, struct hs_heat_row *rows, size_t count,
		    uint64_t now_us);
/* A later one: total_bytes and total_ns of each row become what was added since the reading
 * before. Both calls put the rows in the order of their ids. */
void hs_tally_differ(struct hs_tally *tally, struct hs_heat_row *rows, size_t count);

#endif
