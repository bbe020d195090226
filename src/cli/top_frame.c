/* The whole frame. The figures that an operator needs first come first:
 *
 *     heatsink 0.1.0  127.0.0.1:6380  up 3d04h                the server, the window and the order
 *     1.20M ops/s  reads 1.10M  writes 100k  90MB/s           totals
 *     PART  LOAD             OPS/S   P99 QUEUE  TOP KEY       each partition, against the median
 *     …
 *     prefixes  user: 41% …                                   prefixes: one tenant with many keys
 *     KEY             OPS/S  LEAST SHARE   R:W … PART SLOT    each key: upper and lower bound
 *     …
 *     user:42                             1/100 h help q quit the selected key in full; errors
 *
 * The columns are in top_columns.c. */
#include "cli/top.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

enum {
	ONCE_PARTITION_LINES =
		18, /* lines for partitions with --once, whose frame has no fixed height */
	PARTITION_LINES_MIN = 3, /* one partition, the line about the others, the median */
};

struct area {
	struct hs_top_grid *grid;
	struct hs_top_view *view;
	const struct hs_top_model *model;
	size_t row; /* the next free row */
};

/* ---- the head ---- */

static double sum_of(const struct hs_top_model *model, size_t field)
{
	double sum = 0;

	for (size_t i = 0; i < model->partitions_count; i++) {
		double value = hs_top_number(&model->partitions[i], field);

		sum += isfinite(value) ? value : 0;
	}
	return model->loaded ? sum : NAN;
}

#define SUM(model, name) sum_of(model, offsetof(struct hs_top_partition, name))

static size_t put(const struct area *area, size_t col, enum hs_top_style style, const char *text)
{
	return hs_top_grid_put(area->grid, area->row, col, SIZE_MAX, style, text);
}

/* Writes a value between two texts after column `col`, or nothing if it does not fit. Returns the column after it. */
static size_t put_pair(const struct area *area, size_t col, const char *before, const char *value,
		       const char *after)
{
	size_t from = col ? col + 2 : 0;

	if (from + strlen(before) + strlen(value) + strlen(after) > area->grid->cols)
		return col;
	col = put(area, from, HS_TOP_PLAIN, before);
	col = put(area, col, HS_TOP_STRONG, value);
	return put(area, col, HS_TOP_PLAIN, after);
}

/* Writes the text at the right end, if there is room after column `col`. */
static void put_at_end(const struct area *area, size_t col, const char *text)
{
	size_t cols = area->grid->cols;

	if (col + 2 + strlen(text) <= cols)
		hs_top_grid_put_right(area->grid, area->row, 0, cols, HS_TOP_PLAIN, text);
}

static void write_title(struct area *area)
{
	const struct hs_top_view *view = area->view;
	struct hs_bytes version = area->model->version;
	char uptime[HS_TOP_TEXT_MAX], how[80], rhythm[24] = "";
	size_t col = 0;

	/* If there is little room, the address is more important than the version. */
	if (9 + version.len + 2 + strlen(view->target) <= area->grid->cols) {
		col = put(area, 0, HS_TOP_STRONG, "heatsink ");
		col = hs_top_grid_put_key(area->grid, area->row, col, 20, HS_TOP_PLAIN, version);
	}
	col = hs_top_grid_put_key(area->grid, area->row, col ? col + 2 : 0, SIZE_MAX, HS_TOP_STRONG,
				  hs_bytes_of(view->target));
	if (view->interactive)
		snprintf(rhythm, sizeof rhythm, "  every %gs", (double)view->interval_us / 1e6);
	snprintf(how, sizeof how, "window %s  sort %s%s", hs_top_windows[view->query.window],
		 hs_top_sorts[view->query.sort], rhythm);
	hs_top_text_uptime(area->model->uptime_s, uptime);
	if (col + 2 + 3 + strlen(uptime) + 2 + strlen(how) <= area->grid->cols)
		col = put_pair(area, col, "up ", uptime, "");
	put_at_end(area, col, how);
	area->row++;
}

static void write_filter(const struct area *area, size_t col)
{
	const struct hs_top_query *query = &area->view->query;
	struct hs_bytes prefix = {query->prefix, query->prefix_len};

	if (prefix.len == 0 || col + 10 > area->grid->cols)
		return;
	col = put(area, col + 2, HS_TOP_WARM, "only ");
	hs_top_grid_put_key(area->grid, area->row, col, SIZE_MAX, HS_TOP_STRONG, prefix);
}

/* Marks figures that could not be updated, in front of them. */
static size_t write_stale(const struct area *area)
{
	char age[HS_TOP_TEXT_MAX], text[64];

	if (!area->view->stale)
		return 0;
	hs_top_text_uptime(area->view->age_s, age);
	snprintf(text, sizeof text, "stale, last answer %s ago", age);
	if (strlen(text) > area->grid->cols)
		snprintf(text, sizeof text, "stale %s", age);
	return put(area, 0, HS_TOP_ALERT, text);
}

static size_t write_unhealthy(const struct area *area, size_t col)
{
	const struct hs_top_model *model = area->model;
	size_t from = col, ill = 0;
	char text[HS_TOP_TEXT_MAX];

	for (size_t i = 0; i < model->partitions_count; i++)
		ill += hs_top_is_unhealthy(&model->partitions[i]);
	if (ill == 0)
		return col;
	hs_top_text_count((double)ill, text);
	col = put_pair(area, col, "", text, ill == 1 ? " partition not ok" : " partitions not ok");
	hs_top_grid_style(area->grid, area->row, from, col - from, HS_TOP_HOT);
	return col;
}

static void write_totals(struct area *area)
{
	const struct hs_top_model *model = area->model;
	char text[HS_TOP_TEXT_MAX];
	double errors = SUM(model, errors);
	size_t col = write_stale(area);

	hs_top_text_count(SUM(model, ops), text);
	col = put_pair(area, col, "", text, " ops/s");
	hs_top_text_count(SUM(model, reads), text);
	col = put_pair(area, col, "reads ", text, "");
	hs_top_text_count(SUM(model, writes), text);
	col = put_pair(area, col, "writes ", text, "");
	hs_top_text_bytes(SUM(model, bytes), text);
	col = put_pair(area, col, "", text, "/s");
	if (errors > 0) {
		size_t from = col;

		hs_top_text_count(errors, text);
		col = put_pair(area, col, "errors ", text, "/s");
		hs_top_grid_style(area->grid, area->row, from, col - from, HS_TOP_HOT);
	}
	col = write_unhealthy(area, col);
	write_filter(area, col);
	area->row++;
}

/* ---- partitions ---- */

static double known(double ops)
{
	return isfinite(ops) ? ops : -1;
}

/* Orders partitions: those that are not ok first, then by requests. */
static int hotter(const void *a, const void *b)
{
	const struct hs_top_partition *left = *(const struct hs_top_partition *const *)a;
	const struct hs_top_partition *right = *(const struct hs_top_partition *const *)b;
	double more = known(right->ops) - known(left->ops);

	if (hs_top_is_unhealthy(left) != hs_top_is_unhealthy(right))
		return hs_top_is_unhealthy(left) ? -1 : 1;
	if (more != 0)
		return more > 0 ? 1 : -1;
	return (left > right) - (left < right);
}

/* The scale of the bars: if all partitions have equal load, the bars end in the middle, at the median. */
static struct hs_top_scale scale_of(const struct hs_top_model *model)
{
	struct hs_top_scale scale = {.median = model->median.ops};

	if (isfinite(scale.median))
		scale.end = 2 * scale.median;
	for (size_t i = 0; i < model->partitions_count; i++) {
		if (model->partitions[i].ops > scale.end)
			scale.end = model->partitions[i].ops;
	}
	return scale;
}

static void write_more(struct area *area, size_t more, const struct hs_top_partition **rest)
{
	char text[96], ops[HS_TOP_TEXT_MAX];
	double most = rest[0]->ops;

	for (size_t i = 1; i < more; i++) {
		if (known(rest[i]->ops) > known(most))
			most = rest[i]->ops;
	}
	hs_top_text_count(most, ops);
	snprintf(text, sizeof text, "%zu more partitions, none above %s ops/s", more, ops);
	hs_top_grid_put(area->grid, area->row++, 0, SIZE_MAX, HS_TOP_DIM, text);
}

/* Writes all partitions in order if they fit the lines, else those that are not ok and the hottest. */
static void write_partitions(struct area *area, size_t lines)
{
	const struct hs_top_model *model = area->model;
	bool median = isfinite(model->median.ops);
	size_t count = model->partitions_count, shown = count;
	const struct hs_top_partition **order = hs_mem_alloc((count + 1) * sizeof(void *));
	struct hs_top_scale scale = scale_of(model);
	struct hs_top_layout layout;
	bool servers = false;

	for (size_t i = 0; i < count; i++) {
		order[i] = &model->partitions[i];
		servers = servers || order[i]->address.len > 0;
	}
	if (count + median > lines) {
		shown = lines - 1 - median;
		qsort(order, count, sizeof *order, hotter);
	}
	hs_top_columns_partitions(&layout, servers, area->grid->cols);
	hs_top_layout_head(&layout, area->grid, area->row++, SIZE_MAX);
	for (size_t i = 0; i < shown; i++)
		hs_top_layout_row(&layout, area->grid, area->row++, order[i], &scale);
	if (shown < count)
		write_more(area, count - shown, order + shown);
	if (median)
		hs_top_layout_row(&layout, area->grid, area->row++, &model->median, &scale);
	hs_mem_free(&order);
}

/* ---- prefixes, keys, slots ---- */

static void write_prefix_line(struct area *area)
{
	const struct hs_top_model *model = area->model;
	size_t col = put(area, 0, HS_TOP_DIM, model->prefixes_count ? "prefixes" : "");

	for (size_t i = 0; i < model->prefixes_count; i++) {
		const struct hs_top_row *row = &model->prefixes[i];
		char text[HS_TOP_TEXT_MAX];

		if (col + 2 + 12 > area->grid->cols)
			break;
		col = hs_top_grid_put_key(area->grid, area->row, col + 2,
					  area->grid->cols - col - 8, HS_TOP_PLAIN, row->name);
		hs_top_text_share(row->share, text);
		col = put(area, col + 1, HS_TOP_STRONG, text);
	}
	area->row++;
}

static void write_nothing(struct area *area)
{
	const struct hs_top_query *query = &area->view->query;
	const char *what = hs_top_dimensions[area->model->dimension];
	char text[64];
	size_t col;

	if (!area->model->loaded) {
		put(area, 0, HS_TOP_DIM, "waiting for the first answer");
	} else if (query->prefix_len && area->model->dimension != HS_TOP_SLOTS) {
		snprintf(text, sizeof text, "no hot %s start with ", what);
		col = put(area, 0, HS_TOP_DIM, text);
		hs_top_grid_put_key(area->grid, area->row, col, SIZE_MAX, HS_TOP_DIM,
				    (struct hs_bytes){query->prefix, query->prefix_len});
	} else {
		snprintf(text, sizeof text, "no %s stand out in the last seconds", what);
		put(area, 0, HS_TOP_DIM, text);
	}
	area->row++;
}

/* Scrolls so that the selected row is visible. */
static void scroll(struct hs_top_view *view, size_t rows, size_t lines)
{
	view->lines = lines;
	if (view->selected >= rows)
		view->selected = rows ? rows - 1 : 0;
	if (view->scroll + lines > rows)
		view->scroll = rows > lines ? rows - lines : 0;
	if (view->selected < view->scroll)
		view->scroll = view->selected;
	if (lines && view->selected >= view->scroll + lines)
		view->scroll = view->selected - lines + 1;
}

static void write_table(struct area *area, size_t lines)
{
	const struct hs_top_model *model = area->model;
	struct hs_top_view *view = area->view;
	struct hs_top_layout layout;

	hs_top_columns_rows(&layout, model->dimension, area->grid->cols);
	hs_top_layout_head(&layout, area->grid, area->row++, hs_top_sort_fields[view->query.sort]);
	scroll(view, model->rows_count, lines);
	if (model->rows_count == 0 && lines)
		write_nothing(area);
	for (size_t i = view->scroll; i < model->rows_count && i < view->scroll + lines; i++) {
		hs_top_layout_row(&layout, area->grid, area->row, &model->rows[i], NULL);
		if (view->interactive && i == view->selected)
			hs_top_grid_style(area->grid, area->row, 0, SIZE_MAX, HS_TOP_SELECTED);
		area->row++;
	}
}

/* ---- the last line ---- */

static void write_edit(struct area *area)
{
	const struct hs_top_view *view = area->view;
	static const char hint[] = "   Enter: show these   Esc: all";
	size_t cols = area->grid->cols;
	size_t col = put(area, 0, HS_TOP_STRONG, "starts with: ");

	col = hs_top_grid_put_key(area->grid, area->row, col, cols - col - 1, HS_TOP_PLAIN,
				  (struct hs_bytes){view->edit, view->edit_len});
	area->grid->cursor_row = area->row;
	area->grid->cursor_col = col;
	if (col + sizeof hint <= cols)
		put(area, col, HS_TOP_DIM, hint);
}

static const char again[] = "; trying again";

static size_t error_lines(const struct hs_top_view *view, size_t cols)
{
	return *view->error && strlen(view->error) + sizeof again > cols ? 2 : 1;
}

/* Writes the error, wrapped between words if it needs two lines. */
static void write_error(struct area *area)
{
	char text[HS_TOP_ERROR_MAX + sizeof again];
	size_t cols = area->grid->cols, cut = cols;

	snprintf(text, sizeof text, "%s%s", area->view->error, again);
	if (error_lines(area->view, cols) == 2) {
		while (cut > 0 && text[cut] != ' ')
			cut--;
		cut = cut ? cut : cols;
		hs_top_grid_style(area->grid, area->row, 0, cols, HS_TOP_ALERT);
		hs_top_grid_put(area->grid, area->row++, 0, cut, HS_TOP_ALERT, text);
		memmove(text, text + cut, strlen(text + cut) + 1);
	}
	hs_top_grid_style(area->grid, area->row, 0, cols, HS_TOP_ALERT);
	put(area, 0, HS_TOP_ALERT, text + (text[0] == ' '));
}

static void write_selected(struct area *area)
{
	const struct hs_top_view *view = area->view;
	const struct hs_top_model *model = area->model;
	char text[64];
	size_t cols = area->grid->cols, left, col = 0;

	snprintf(text, sizeof text, "  %zu/%zu  h help  q quit",
		 model->rows_count ? view->selected + 1 : 0, model->rows_count);
	hs_top_grid_put_right(area->grid, area->row, 0, cols, HS_TOP_DIM, text);
	left = cols > strlen(text) ? cols - strlen(text) : 0;
	if (view->paused)
		col = hs_top_grid_put(area->grid, area->row, 0, left, HS_TOP_WARM, "PAUSED  ");
	left -= col;
	if (view->waiting_s > 0) {
		snprintf(text, sizeof text, "no answer for %.0f s, still waiting", view->waiting_s);
		hs_top_grid_put(area->grid, area->row, col, left, HS_TOP_WARM, text);
	} else if (view->selected < model->rows_count) {
		hs_top_grid_put_key(area->grid, area->row, col, left, HS_TOP_STRONG,
				    model->rows[view->selected].name);
	}
}

static void write_status(struct area *area)
{
	size_t lines = error_lines(area->view, area->grid->cols);

	area->row = area->grid->rows - 1;
	hs_top_grid_clear(area->grid, area->row); /* on a small screen it replaces a row */
	if (area->view->editing) {
		write_edit(area);
	} else if (*area->view->error) {
		area->row = area->grid->rows > lines ? area->grid->rows - lines : 0;
		write_error(area);
	} else {
		write_selected(area);
	}
}

static void write_help(struct area *area)
{
	static const char text[] =
		"\n" HS_TOP_KEYS_HELP "\n"
		"  The mark in the bars is the median; LOAD is the ratio to the mean.\n"
		"  OPS/S is the upper bound of requests per second, LEAST the lower bound.\n"
		"  SHARE is the share of its partition's requests (for prefixes: of all).\n"
		"  R:W is reads and writes in percent. P99 is the 99th percentile of latency.\n"
		"\n"
		"  any key goes back\n";
	size_t len;

	for (const char *line = text; *line; line += len + 1) {
		len = strcspn(line, "\n");
		hs_top_grid_put(area->grid, area->row++, 0, len, HS_TOP_PLAIN, line);
	}
}

/* ---- the frame ---- */

/* Lines of each part of the frame. */
struct plan {
	size_t rows, partitions, table;
	bool gaps; /* with blank lines between the parts */
};

/* Lines for all partitions and the median. */
static size_t wanted_lines(const struct hs_top_model *model)
{
	size_t median = isfinite(model->median.ops) ? 1 : 0;

	return model->partitions_count ? model->partitions_count + median : 0;
}

static struct plan plan_once(const struct hs_top_model *model)
{
	struct plan plan = {.partitions = wanted_lines(model), .gaps = true};

	if (plan.partitions > ONCE_PARTITION_LINES)
		plan.partitions = ONCE_PARTITION_LINES;
	plan.table = model->rows_count ? model->rows_count : 1;
	plan.rows = 2 + (plan.partitions ? plan.partitions + 2 : 0) + 1 +
		    (model->prefixes_count > 0) + 1 + plan.table;
	return plan;
}

static struct plan plan_screen(const struct hs_top_view *view, const struct hs_top_model *model,
			       size_t rows, size_t cols)
{
	struct plan plan = {.rows = rows, .partitions = wanted_lines(model)};
	/* Title and totals, prefixes, heading, status. */
	size_t fixed = 2 + 1 + 1 + error_lines(view, cols);
	size_t left = rows > fixed ? rows - fixed : 0;
	size_t most = left > 0 ? (left - 1) / 2 : 0; /* minus the partitions' heading */

	if (plan.partitions > most)
		plan.partitions = most;
	if (plan.partitions < wanted_lines(model) && plan.partitions < PARTITION_LINES_MIN)
		plan.partitions = 0;
	plan.table = left - (plan.partitions ? plan.partitions + 1 : 0);
	return plan;
}

void hs_top_frame(struct hs_top_grid *grid, struct hs_top_view *view,
		  const struct hs_top_model *model, size_t rows, size_t cols)
{
	struct plan plan = rows ? plan_screen(view, model, rows, cols) : plan_once(model);
	struct area area = {.grid = grid, .view = view, .model = model};

	hs_top_grid_init(grid, plan.rows, cols, view->unicode);
	write_title(&area);
	write_totals(&area);
	if (view->help) {
		write_help(&area);
	} else {
		if (plan.partitions) {
			area.row += plan.gaps;
			write_partitions(&area, plan.partitions);
		}
		area.row += plan.gaps;
		if (!plan.gaps || model->prefixes_count)
			write_prefix_line(&area);
		write_table(&area, plan.table);
	}
	if (view->interactive && plan.rows)
		write_status(&area);
}
