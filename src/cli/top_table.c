/* The layout of columns. Columns get room in the order of their rank, so a narrow terminal shows the most important
 * columns and a wide one shows all:
 *
 *     1. columns that are not optional, at their least width
 *     2. optional columns, if those that grow still get their wanted width
 *     3. the remaining room goes to columns that grow, up to their largest width */
#include "cli/top.h"

/* The width that a column counts with in step 1 (not generous) and 2 (generous). */
static size_t claim(const struct hs_top_column *column, bool generous)
{
	return generous && column->wanted > column->width ? column->wanted : column->width;
}

/* The width of all shown columns and the spaces between them. */
static size_t used(const struct hs_top_layout *layout, bool generous)
{
	size_t sum = 0, count = 0;

	for (size_t i = 0; i < layout->count; i++) {
		if (layout->width[i]) {
			sum += claim(&layout->columns[i], generous);
			count++;
		}
	}
	return sum + (count ? count - 1 : 0);
}

static void place(struct hs_top_layout *layout, size_t i, size_t cols)
{
	const struct hs_top_column *column = &layout->columns[i];

	layout->width[i] = column->width;
	if (used(layout, column->optional) > cols)
		layout->width[i] = 0;
}

static void grow(struct hs_top_layout *layout, size_t cols)
{
	size_t parts = 0, left = cols - used(layout, false);

	for (size_t i = 0; i < layout->count; i++)
		parts += layout->width[i] ? layout->columns[i].grow : 0;
	for (size_t i = 0; i < layout->count && parts; i++) {
		size_t mine = layout->width[i] ? layout->columns[i].grow : 0;
		size_t more = left * mine / parts;

		if (mine && more > layout->columns[i].most - layout->width[i])
			more = layout->columns[i].most - layout->width[i];
		layout->width[i] += more;
		left -= more;
		parts -= mine;
	}
}

void hs_top_layout_init(struct hs_top_layout *layout, const struct hs_top_column *columns,
			size_t count, unsigned table, size_t cols)
{
	size_t at = 0;

	hs_check(count <= HS_TOP_COLUMNS_MAX);
	*layout = (struct hs_top_layout){.columns = columns, .count = count};
	for (int rank = 1; rank <= HS_TOP_COLUMNS_MAX; rank++) {
		for (size_t i = 0; i < count; i++) {
			if (columns[i].rank == rank &&
			    (columns[i].tables == 0 || (columns[i].tables & table)))
				place(layout, i, cols);
		}
	}
	if (used(layout, false) < cols)
		grow(layout, cols);
	for (size_t i = 0; i < count; i++) {
		layout->at[i] = at;
		at += layout->width[i] ? layout->width[i] + 1 : 0;
	}
}

/* Writes trusted text, aligned as the column says. */
static void put(const struct hs_top_cell_area *at, const struct hs_top_column *column,
		enum hs_top_style style, const char *text)
{
	(column->left ? hs_top_grid_put : hs_top_grid_put_right)(at->grid, at->row, at->col,
								 at->cols, style, text);
}

static void put_number(const struct hs_top_cell_area *at, const struct hs_top_column *column,
		       const void *item)
{
	double value = hs_top_number(item, column->field);
	char text[HS_TOP_TEXT_MAX];

	column->text(value, text);
	put(at, column, column->style ? column->style(value) : HS_TOP_PLAIN, text);
}

void hs_top_layout_head(const struct hs_top_layout *layout, struct hs_top_grid *grid, size_t row,
			size_t sorted)
{
	hs_top_grid_style(grid, row, 0, grid->cols, HS_TOP_HEAD);
	for (size_t i = 0; i < layout->count; i++) {
		const struct hs_top_column *column = &layout->columns[i];
		struct hs_top_cell_area at = {grid, row, layout->at[i], layout->width[i], NULL};

		if (at.cols)
			put(&at, column,
			    !column->write && column->field == sorted ? HS_TOP_STRONG : HS_TOP_HEAD,
			    column->title);
	}
}

void hs_top_layout_row(const struct hs_top_layout *layout, struct hs_top_grid *grid, size_t row,
		       const void *item, const struct hs_top_scale *scale)
{
	for (size_t i = 0; i < layout->count; i++) {
		const struct hs_top_column *column = &layout->columns[i];
		struct hs_top_cell_area at = {grid, row, layout->at[i], layout->width[i], scale};

		if (at.cols)
			(column->write ? column->write : put_number)(&at, column, item);
	}
}
