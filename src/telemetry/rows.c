/* Rows of keys, prefixes and slots: the merged heat, with share, name and totals as shown to operators. */
#include "telemetry/internal.h"

#include <stdio.h>

static const struct hs_heat_rates *shown(const struct hs_board_row *row)
{
	return &row->heat.window[row->window];
}

/* The stored beginning of a long key does not identify it; its length and hash do. */
uint32_t hs_board_show_name(uint64_t hash, struct hs_bytes kept, uint32_t full_len,
			    char name[HS_BOARD_NAME_BYTES])
{
	char rest[HS_BOARD_NAME_BYTES - HS_HEAT_NAME_BYTES];
	int more;

	hs_check(kept.len <= HS_HEAT_NAME_BYTES);
	if (kept.len > 0)
		memcpy(name, kept.data, kept.len);
	if (full_len <= kept.len)
		return (uint32_t)kept.len;
	more = snprintf(rest, sizeof rest, "…(%lu bytes, #%016llx)", (unsigned long)full_len,
			(unsigned long long)hash);
	hs_check(more > 0);
	hs_check((size_t)more < sizeof rest);
	memcpy(name + kept.len, rest, (size_t)more);
	return (uint32_t)(kept.len + (size_t)more);
}

static void fill_name(struct hs_board_row *row)
{
	const struct hs_heat_row *heat = &row->heat;

	row->name_len =
		hs_board_show_name(heat->public_id, (struct hs_bytes){heat->name, heat->name_len},
				   heat->full_len, row->name);
}

static double whole_of(const struct hs_board *board, enum hs_heat_what what,
		       const struct hs_board_row *row)
{
	if (what == HS_HEAT_PREFIXES)
		return hs_heat_total(board->heats, board->heats_count, row->window,
				     board->now.mono_us);
	if (row->heat.partition >= board->partitions)
		return 0;
	return hs_board_partition_ops(board, row->heat.partition, row->window);
}

/* A fraction between 0 and 1; 0 if the whole is 0. */
static double share_of(double part, double whole)
{
	if (!(part > 0) || !(whole > 0))
		return 0;
	return part < whole ? part / whole : 1;
}

void hs_board_fill(const struct hs_board *board, enum hs_heat_what what, enum hs_heat_window window,
		   struct hs_board_row *row)
{
	row->window = window;
	row->share = share_of(shown(row)->ops_low, whole_of(board, what, row));
	snprintf(row->hash, sizeof row->hash, "%016llx", (unsigned long long)row->heat.public_id);
	row->total_s = 0;
	if (row->heat.total_since_us > 0 && row->heat.total_since_us < board->now.mono_us)
		row->total_s = (double)(board->now.mono_us - row->heat.total_since_us) / 1e6;
	row->name_len = 0;
	if (what != HS_HEAT_SLOTS)
		fill_name(row);
}

struct hs_bytes hs_board_name(const struct hs_board_row *row)
{
	return (struct hs_bytes){row->name, row->name_len};
}

size_t hs_board_top(struct hs_board *board, const struct hs_heat_query *query,
		    struct hs_board_row *rows, size_t max)
{
	size_t count = hs_heat_top(board->heats, board->heats_count, query, board->now.mono_us,
				   board->scratch, max < HS_BOARD_SCRATCH ? max : HS_BOARD_SCRATCH);

	for (size_t i = 0; i < count; i++) {
		rows[i].heat = board->scratch[i];
		hs_board_fill(board, query->what, query->window, &rows[i]);
	}
	return count;
}

void hs_board_key(struct hs_board *board, struct hs_bytes key, uint16_t slot, uint16_t partition,
		  struct hs_board_row *row)
{
	struct hs_heat_row *heat = &row->heat;

	hs_heat_find(board->heats, board->heats_count, HS_HEAT_KEYS, key, slot, board->now.mono_us,
		     heat);
	heat->slot = slot;
	heat->partition = partition;
	hs_board_fill(board, HS_HEAT_KEYS, hs_board_window(board), row);
}
