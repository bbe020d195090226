/* The columns of the tables: what each shows, and which are left out if there is little room. */
#include "cli/top.h"

#include <math.h>

/* Thresholds of colours: a partition's load, a key's share. */
#define WARM_LOAD 1.3
#define HOT_LOAD 2.0
#define WARM_SHARE 0.2
#define HOT_SHARE 0.5

static enum hs_top_style load_style(double load)
{
	return load >= HOT_LOAD ? HS_TOP_HOT : load >= WARM_LOAD ? HS_TOP_WARM : HS_TOP_COOL;
}

static enum hs_top_style share_style(double share)
{
	return share >= HOT_SHARE ? HS_TOP_HOT : share >= WARM_SHARE ? HS_TOP_WARM : HS_TOP_PLAIN;
}

/* ---- cells ---- */

static void write_text(const struct hs_top_cell_area *at, const struct hs_top_column *column,
		       const void *item)
{
	struct hs_bytes text;

	memcpy(&text, (const char *)item + column->field, sizeof text);
	hs_top_grid_put_key(at->grid, at->row, at->col, at->cols, HS_TOP_PLAIN, text);
}

static void write_name(const struct hs_top_cell_area *at, const struct hs_top_column *column,
		       const void *item)
{
	const struct hs_top_row *of = item;
	enum hs_top_style style = share_style(of->share);

	(void)column;
	/* The empty key is shown as two quotes. A key cannot look like that: its quotes are escaped. */
	if (of->name.len == 0)
		hs_top_grid_put(at->grid, at->row, at->col, at->cols, style, "\"\"");
	else
		hs_top_grid_put_key(at->grid, at->row, at->col, at->cols, style, of->name);
}

/* The ratio of reads to writes, in percent. */
static void write_split(const struct hs_top_cell_area *at, const struct hs_top_column *column,
			const void *item)
{
	char text[HS_TOP_TEXT_MAX];

	hs_top_text_split(hs_top_number(item, column->field), hs_top_number(item, column->second),
			  text);
	hs_top_grid_put_right(at->grid, at->row, at->col, at->cols, HS_TOP_PLAIN, text);
}

/* The hottest key: its share of the partition's requests, then its name. */
static void write_top_key(const struct hs_top_cell_area *at, const struct hs_top_column *column,
			  const void *item)
{
	const struct hs_top_partition *of = item;
	char text[HS_TOP_TEXT_MAX];

	(void)column;
	if (of->top_key.len == 0)
		return;
	hs_top_text_share(of->top_key_share, text);
	hs_top_grid_put_right(at->grid, at->row, at->col, 5, share_style(of->top_key_share), text);
	if (at->cols > 6)
		hs_top_grid_put_key(at->grid, at->row, at->col + 6, at->cols - 6, HS_TOP_PLAIN,
				    of->top_key);
}

/* The length of a bar of at most `cols` cells. */
static size_t cells_of(double value, double end, size_t cols)
{
	if (!isfinite(value) || value <= 0 || end <= 0)
		return 0;
	return value >= end ? cols : (size_t)lround(value / end * (double)cols);
}

/* State and reason of a partition that is not ok, in place of its bar. */
static void write_unhealthy(const struct hs_top_cell_area *at, const struct hs_top_partition *of)
{
	size_t end = at->col + at->cols, col;

	col = hs_top_grid_put_key(at->grid, at->row, at->col, at->cols, HS_TOP_HOT, of->state);
	if (of->reason.len > 0 && col + 3 < end) {
		col = hs_top_grid_put(at->grid, at->row, col, 2, HS_TOP_HOT, ": ");
		hs_top_grid_put_key(at->grid, at->row, col, end - col, HS_TOP_PLAIN, of->reason);
	}
}

static void write_bar(const struct hs_top_cell_area *at, const struct hs_top_column *column,
		      const void *item)
{
	const struct hs_top_partition *of = item;
	bool unicode = at->grid->unicode, is_median = hs_bytes_equal(of->id, HS_LIT("median"));
	size_t len = is_median ? 0 : cells_of(of->ops, at->scale->end, at->cols);
	size_t mark = cells_of(at->scale->median, at->scale->end, at->cols);

	(void)column;
	if (hs_top_is_unhealthy(of)) {
		write_unhealthy(at, of);
		return;
	}
	for (size_t i = 0; i < len; i++)
		hs_top_grid_put(at->grid, at->row, at->col + i, 1, load_style(of->load),
				unicode ? "█" : "#");
	if (at->scale->median > 0)
		hs_top_grid_put(at->grid, at->row,
				at->col + (mark < at->cols ? mark : at->cols - 1), 1, HS_TOP_STRONG,
				unicode ? "│" : "|");
}

/* ---- the tables ---- */

/* One row per column; columns with a high rank are left out first. */
/* clang-format off */

#define NUMBER(member, as) .field = offsetof(struct ITEM, member), .text = hs_top_text_##as
#define WRITTEN(member, by) .field = offsetof(struct ITEM, member), .write = write_##by

#define ITEM hs_top_partition
static const struct hs_top_column partition_columns[] = {
	{"PART", 1, .width = 6, .left = true, WRITTEN(id, text)},
	{"ADDRESS", 9, .tables = HS_TOP_TABLE_SERVERS, .width = 21, .left = true,
	 WRITTEN(address, text)},
	{"LOAD", 2, .width = 5, NUMBER(load, ratio), .style = load_style},
	{"", 4, .width = 8, .wanted = 18, .most = 60, .grow = 1, WRITTEN(ops, bar)},
	{"OPS/S", 3, .width = 5, NUMBER(ops, count)},
	{"R:W", 10, .optional = true, .width = 5, WRITTEN(reads, split),
	 .second = offsetof(struct ITEM, writes)},
	{"BYTES/S", 13, .optional = true, .width = 7, NUMBER(bytes, bytes)},
	{"P50", 12, .optional = true, .width = 6, NUMBER(p50_us, time_us)},
	{"P99", 5, .width = 6, NUMBER(p99_us, time_us)},
	{"COMMIT", 14, .optional = true, .width = 6, NUMBER(commit_p99_us, time_us)},
	{"INFLIGHT", 15, .optional = true, .width = 8, NUMBER(inflight, count)},
	{"QUEUE", 6, .width = 5, NUMBER(queued, count)},
	{"ERR/S", 11, .optional = true, .width = 5, NUMBER(errors, count)},
	{"MEMORY", 16, .optional = true, .width = 6, NUMBER(memory, bytes)},
	{"SLOTS", 17, .optional = true, .width = 12, .left = true, WRITTEN(slots, text)},
	{"CPU", 8, .tables = HS_TOP_TABLE_SERVERS, .width = 4, NUMBER(cpu, share)},
	{"LAG", 18, .tables = HS_TOP_TABLE_SERVERS, .optional = true, .width = 4,
	 NUMBER(replica_lag, count)},
	{"  TOP KEY", 7, .width = 16, .wanted = 26, .most = 66, .grow = 1, .left = true,
	 WRITTEN(top_key, top_key)},
};
#undef ITEM

#define ITEM hs_top_row
static const struct hs_top_column row_columns[] = {
	{"KEY", 1, .tables = HS_TOP_TABLE_KEYS, .width = 10, .wanted = 24, .most = 100, .grow = 1,
	 .left = true, WRITTEN(name, name)},
	{"PREFIX", 1, .tables = HS_TOP_TABLE_PREFIXES, .width = 10, .wanted = 24, .most = 100,
	 .grow = 1, .left = true, WRITTEN(name, name)},
	{"SLOT", 1, .tables = HS_TOP_TABLE_SLOTS, .width = 6, .most = 12, .grow = 1, .left = true,
	 NUMBER(slot, plain)},
	{"OPS/S", 2, .width = 6, NUMBER(ops, count)},
	{"LEAST", 6, .width = 6, NUMBER(ops_low, count)},
	{"SHARE", 3, .width = 5, NUMBER(share, share), .style = share_style},
	{"R:W", 4, .width = 5, WRITTEN(reads, split), .second = offsetof(struct ITEM, writes)},
	{"READS", 10, .optional = true, .width = 6, NUMBER(reads, count)},
	{"WRITES", 11, .optional = true, .width = 6, NUMBER(writes, count)},
	{"BYTES/S", 8, .width = 7, NUMBER(bytes, bytes)},
	{"P99", 7, .width = 6, NUMBER(p99_us, time_us)},
	{"PART", 5, .tables = HS_TOP_TABLE_KEYS | HS_TOP_TABLE_SLOTS, .width = 4,
	 NUMBER(partition, plain)},
	{"SLOT", 9, .tables = HS_TOP_TABLE_KEYS, .width = 5, NUMBER(slot, plain)},
};
#undef ITEM

/* clang-format on */

void hs_top_columns_partitions(struct hs_top_layout *layout, bool servers, size_t cols)
{
	hs_top_layout_init(layout, partition_columns,
			   sizeof partition_columns / sizeof *partition_columns,
			   servers ? HS_TOP_TABLE_SERVERS : 0, cols);
}

void hs_top_columns_rows(struct hs_top_layout *layout, enum hs_top_dimension dimension, size_t cols)
{
	hs_top_layout_init(layout, row_columns, sizeof row_columns / sizeof *row_columns,
			   1u << dimension, cols);
}
