/* The columns of the tables: what each shows, and which give way when there is little room. */
#include "cli/top.h"

#include <math.h>

/* From here on a partition's load, or a key's share, is worth a colour. */
#define WARM_LOAD 1.3
#define HOT_LOAD 2.0
#define WARM_SHARE 0.2
#define HOT_SHARE 0.5

static double field_of(const struct hs_top_column *column, const void *item)
{
	return hs_top_number(item, column->field);
}

static enum hs_top_style load_style(double load)
{
	return load >= HOT_LOAD ? HS_TOP_HOT : load >= WARM_LOAD ? HS_TOP_WARM : HS_TOP_COOL;
}

static enum hs_top_style share_style(double share)
{
	return share >= HOT_SHARE ? HS_TOP_HOT : share >= WARM_SHARE ? HS_TOP_WARM : HS_TOP_PLAIN;
}

/* ---- cells ---- */

static void put_value(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		      enum hs_top_style style, const struct hs_top_column *column, double value)
{
	char text[HS_TOP_TEXT_MAX];

	column->text(value, text);
	if (column->left)
		hs_top_grid_put(grid, row, col, cols, style, text);
	else
		hs_top_grid_put_right(grid, row, col, cols, style, text);
}

static void write_number(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			 const struct hs_top_column *column, const void *item, const void *context)
{
	(void)context;
	put_value(grid, row, col, cols, HS_TOP_PLAIN, column, field_of(column, item));
}

static void write_share(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			const struct hs_top_column *column, const void *item, const void *context)
{
	double share = field_of(column, item);

	(void)context;
	put_value(grid, row, col, cols, share_style(share), column, share);
}

static void write_load(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		       const struct hs_top_column *column, const void *item, const void *context)
{
	double load = field_of(column, item);

	(void)context;
	put_value(grid, row, col, cols, load_style(load), column, load);
}

static void write_text(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		       const struct hs_top_column *column, const void *item, const void *context)
{
	const struct hs_bytes *text =
		(const struct hs_bytes *)(const void *)((const char *)item + column->field);

	(void)context;
	hs_top_grid_put_key(grid, row, col, cols, HS_TOP_PLAIN, *text);
}

static void write_name(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		       const struct hs_top_column *column, const void *item, const void *context)
{
	const struct hs_top_row *of = item;

	(void)column, (void)context;
	/* The empty key is a key. Quotes cannot be meant: a key's own are escaped. */
	if (of->name.len == 0)
		hs_top_grid_put(grid, row, col, cols, share_style(of->share), "\"\"");
	else
		hs_top_grid_put_key(grid, row, col, cols, share_style(of->share), of->name);
}

static void write_row_split(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			    const struct hs_top_column *column, const void *item,
			    const void *context)
{
	const struct hs_top_row *of = item;
	char text[HS_TOP_TEXT_MAX];

	(void)column, (void)context;
	hs_top_text_split(of->reads, of->writes, text);
	hs_top_grid_put_right(grid, row, col, cols, HS_TOP_PLAIN, text);
}

static void write_partition_split(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
				  const struct hs_top_column *column, const void *item,
				  const void *context)
{
	const struct hs_top_partition *of = item;
	char text[HS_TOP_TEXT_MAX];

	(void)column, (void)context;
	hs_top_text_split(of->reads, of->writes, text);
	hs_top_grid_put_right(grid, row, col, cols, HS_TOP_PLAIN, text);
}

/* Its share of the partition's requests, then the key. */
static void write_top_key(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			  const struct hs_top_column *column, const void *item, const void *context)
{
	const struct hs_top_partition *of = item;
	char text[HS_TOP_TEXT_MAX];

	(void)column, (void)context;
	if (of->top_key.len == 0)
		return;
	hs_top_text_share(of->top_key_share, text);
	hs_top_grid_put_right(grid, row, col, 5, share_style(of->top_key_share), text);
	if (cols > 6)
		hs_top_grid_put_key(grid, row, col + 6, cols - 6, HS_TOP_PLAIN, of->top_key);
}

/* How many of `cols` a value takes. */
static size_t cells_of(double value, double end, size_t cols)
{
	if (!isfinite(value) || value <= 0 || end <= 0)
		return 0;
	return value >= end ? cols : (size_t)lround(value / end * (double)cols);
}

/* What is wrong with it, instead of its bar: that says more. */
static void write_ill(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		      const struct hs_top_partition *of)
{
	size_t end = col + cols;

	col = hs_top_grid_put_key(grid, row, col, cols, HS_TOP_HOT, of->state);
	if (of->trouble.len > 0 && col + 3 < end) {
		col = hs_top_grid_put(grid, row, col, 2, HS_TOP_HOT, ": ");
		hs_top_grid_put_key(grid, row, col, end - col, HS_TOP_PLAIN, of->trouble);
	}
}

static void write_bar(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		      const struct hs_top_column *column, const void *item, const void *context)
{
	const struct hs_top_partition *of = item;
	const struct hs_top_scale *scale = context;
	bool is_median = hs_bytes_equal(of->id, HS_LIT("median"));
	size_t len = is_median ? 0 : cells_of(of->ops, scale->end, cols);
	size_t mark = cells_of(scale->median, scale->end, cols);

	(void)column;
	if (hs_top_is_ill(of)) {
		write_ill(grid, row, col, cols, of);
		return;
	}
	for (size_t i = 0; i < len; i++)
		hs_top_grid_put(grid, row, col + i, 1, load_style(of->load),
				grid->unicode ? "█" : "#");
	if (scale->median > 0)
		hs_top_grid_put(grid, row, col + (mark < cols ? mark : cols - 1), 1, HS_TOP_STRONG,
				grid->unicode ? "│" : "|");
}

/* ---- the tables ---- */

/* A column a row; ranks say who gives way. */
/* clang-format off */

#define OF(member) .field = offsetof(struct hs_top_partition, member)

static const struct hs_top_column partition_columns[] = {
	{.title = "PART", .rank = 1, .width = 6, .left = true, .write = write_text, OF(id), .sort = -1},
	{.title = "ADDRESS", .rank = 9, .server = true, .width = 21, .left = true,
	 .write = write_text, OF(address), .sort = -1},
	{.title = "LOAD", .rank = 2, .width = 5, .write = write_load, OF(load),
	 .text = hs_top_text_ratio, .sort = -1},
	{.title = "", .rank = 4, .width = 8, .wanted = 18, .most = 60, .grow = 1, .write = write_bar,
	 .sort = -1},
	{.title = "OPS/S", .rank = 3, .width = 5, .write = write_number, OF(ops),
	 .text = hs_top_text_count, .sort = -1},
	{.title = "R:W", .rank = 10, .optional = true, .width = 5, .write = write_partition_split,
	 .sort = -1},
	{.title = "BYTES/S", .rank = 13, .optional = true, .width = 7, .write = write_number, OF(bytes),
	 .text = hs_top_text_bytes, .sort = -1},
	{.title = "P50", .rank = 12, .optional = true, .width = 6, .write = write_number, OF(p50_us),
	 .text = hs_top_text_time_us, .sort = -1},
	{.title = "P99", .rank = 5, .width = 6, .write = write_number, OF(p99_us),
	 .text = hs_top_text_time_us, .sort = -1},
	{.title = "COMMIT", .rank = 14, .optional = true, .width = 6, .write = write_number,
	 OF(commit_p99_us), .text = hs_top_text_time_us, .sort = -1},
	{.title = "INFLIGHT", .rank = 15, .optional = true, .width = 8, .write = write_number,
	 OF(inflight), .text = hs_top_text_count, .sort = -1},
	{.title = "QUEUE", .rank = 6, .width = 5, .write = write_number, OF(queued),
	 .text = hs_top_text_count, .sort = -1},
	{.title = "ERR/S", .rank = 11, .optional = true, .width = 5, .write = write_number, OF(errors),
	 .text = hs_top_text_count, .sort = -1},
	{.title = "MEMORY", .rank = 16, .optional = true, .width = 6, .write = write_number, OF(memory),
	 .text = hs_top_text_bytes, .sort = -1},
	{.title = "SLOTS", .rank = 17, .optional = true, .width = 12, .left = true, .write = write_text,
	 OF(slots), .sort = -1},
	{.title = "CPU", .rank = 8, .server = true, .width = 4, .write = write_number, OF(cpu),
	 .text = hs_top_text_share, .sort = -1},
	{.title = "LAG", .rank = 18, .optional = true, .server = true, .width = 4, .write = write_number,
	 OF(replica_lag), .text = hs_top_text_count, .sort = -1},
	{.title = "  TOP KEY", .rank = 7, .width = 16, .wanted = 26, .most = 66, .grow = 1, .left = true,
	 .write = write_top_key, .sort = -1},
};

#undef OF
#define OF(member) .field = offsetof(struct hs_top_row, member)

#define NAME(words) \
	{.title = (words), .rank = 1, .width = 10, .wanted = 24, .most = 100, .grow = 1, \
	 .left = true, .write = write_name, .sort = -1}
#define OPS \
	{.title = "OPS/S", .rank = 2, .width = 6, .write = write_number, OF(ops), \
	 .text = hs_top_text_count, .sort = HS_TOP_BY_OPS}
#define LEAST \
	{.title = "LEAST", .rank = 6, .width = 6, .write = write_number, OF(ops_low), \
	 .text = hs_top_text_count, .sort = -1}
#define SHARE \
	{.title = "SHARE", .rank = 3, .width = 5, .write = write_share, OF(share), \
	 .text = hs_top_text_share, .sort = -1}
#define SPLIT \
	{.title = "R:W", .rank = 4, .width = 5, .write = write_row_split, .sort = -1}
#define READS \
	{.title = "READS", .rank = 10, .optional = true, .width = 6, .write = write_number, \
	 OF(reads), .text = hs_top_text_count, .sort = HS_TOP_BY_READS}
#define WRITES \
	{.title = "WRITES", .rank = 11, .optional = true, .width = 6, .write = write_number, \
	 OF(writes), .text = hs_top_text_count, .sort = HS_TOP_BY_WRITES}
#define BYTES \
	{.title = "BYTES/S", .rank = 8, .width = 7, .write = write_number, OF(bytes), \
	 .text = hs_top_text_bytes, .sort = HS_TOP_BY_BYTES}
#define P99 \
	{.title = "P99", .rank = 7, .width = 6, .write = write_number, OF(p99_us), \
	 .text = hs_top_text_time_us, .sort = HS_TOP_BY_LATENCY}
#define PART \
	{.title = "PART", .rank = 5, .width = 4, .write = write_number, OF(partition), \
	 .text = hs_top_text_plain, .sort = -1}
static const struct hs_top_column key_columns[] = {
	NAME("KEY"), OPS, LEAST, SHARE, SPLIT, READS, WRITES, BYTES, P99, PART,
	{.title = "SLOT", .rank = 9, .width = 5, .write = write_number, OF(slot),
	 .text = hs_top_text_plain, .sort = -1},
};

static const struct hs_top_column prefix_columns[] = {
	NAME("PREFIX"), OPS, LEAST, SHARE, SPLIT, READS, WRITES, BYTES, P99,
};

static const struct hs_top_column slot_columns[] = {
	{.title = "SLOT", .rank = 1, .width = 6, .most = 12, .grow = 1, .left = true,
	 .write = write_number, OF(slot), .text = hs_top_text_plain, .sort = -1},
	OPS, LEAST, SHARE, SPLIT, READS, WRITES, BYTES, P99, PART,
};

/* clang-format on */

#define COUNT(columns) (sizeof(columns) / sizeof *(columns))

void hs_top_columns_partitions(struct hs_top_layout *layout, bool servers, size_t cols)
{
	hs_top_layout_init(layout, partition_columns, COUNT(partition_columns), servers, cols);
}

void hs_top_columns_rows(struct hs_top_layout *layout, enum hs_top_what what, size_t cols)
{
	switch (what) {
	case HS_TOP_PREFIXES:
		hs_top_layout_init(layout, prefix_columns, COUNT(prefix_columns), false, cols);
		return;
	case HS_TOP_SLOTS:
		hs_top_layout_init(layout, slot_columns, COUNT(slot_columns), false, cols);
		return;
	case HS_TOP_KEYS:
	case HS_TOP_WHATS:
		hs_top_layout_init(layout, key_columns, COUNT(key_columns), false, cols);
	}
}
