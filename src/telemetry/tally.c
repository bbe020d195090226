/* Both the last reading and the new one are sorted by id and merged in one pass. */
#include "telemetry/tally.h"

#include <stdlib.h>

_Static_assert((int)HS_TALLY_ROWS >= (int)HS_HEAT_DETAILS_MAX, "a reading holds all there can be");

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct hs_heat_row *)a)->id, y = ((const struct hs_heat_row *)b)->id;

	return (x > y) - (x < y);
}

static struct hs_tally_reading reading_of(const struct hs_heat_row *row)
{
	return (struct hs_tally_reading){
		.id = row->id,
		.since_us = row->total_since_us,
		.bytes = row->total_bytes,
		.ns = row->total_ns,
	};
}

void hs_tally_begin(struct hs_tally *tally, struct hs_heat_row *rows, size_t count, uint64_t now_us)
{
	hs_check(count <= HS_TALLY_ROWS);
	qsort(rows, count, sizeof *rows, by_id);
	tally->begun_us = now_us;
	tally->count = count;
	for (size_t i = 0; i < count; i++)
		tally->readings[i] = reading_of(&rows[i]);
}

/* For a row of the previous reading. */
static void differ_from(struct hs_heat_row *row, const struct hs_tally_reading *last)
{
	if (row->total_since_us != last->since_us || row->total_bytes < last->bytes ||
	    row->total_ns < last->ns)
		return;
	row->total_bytes -= last->bytes;
	row->total_ns -= last->ns;
}

/* For a new row. If it started counting before the tally began, its earlier total is unknown: it counts from
 * now on. */
static void differ_from_nothing(struct hs_heat_row *row, uint64_t begun_us)
{
	if (row->total_since_us == 0 || row->total_since_us + HS_TALLY_SLACK_US >= begun_us)
		return;
	row->total_bytes = 0;
	row->total_ns = 0;
}

void hs_tally_differ(struct hs_tally *tally, struct hs_heat_row *rows, size_t count)
{
	struct hs_tally_reading next[HS_TALLY_READINGS_MAX + HS_TALLY_ROWS];
	bool unseen[HS_TALLY_READINGS_MAX + HS_TALLY_ROWS] = {false};
	size_t next_count = 0, at = 0, kept = 0;

	hs_check(count <= HS_TALLY_ROWS);
	qsort(rows, count, sizeof *rows, by_id);
	for (size_t i = 0; i < count || at < tally->count;) {
		const struct hs_tally_reading *last = &tally->readings[at];

		unseen[next_count] = i == count || (at < tally->count && last->id < rows[i].id);
		if (unseen[next_count]) {
			next[next_count++] = *last;
			at++;
			continue;
		}
		next[next_count++] = reading_of(&rows[i]);
		if (at < tally->count && last->id == rows[i].id) {
			differ_from(&rows[i], last);
			at++;
		} else {
			differ_from_nothing(&rows[i], tally->begun_us);
		}
		i++;
	}
	/* If the readings overflow, drop rows that are not in this reading: with hundreds of keys replacing
	 * each other, the workers have dropped their totals as well. */
	for (size_t i = 0; i < next_count; i++) {
		if (next_count <= HS_TALLY_READINGS_MAX || !unseen[i])
			tally->readings[kept++] = next[i];
	}
	tally->count = kept;
}
