/* A rectangle of characters. Every cell holds one printable character of known width: so no byte of a key can change
 * the width of a row or send a control code to the terminal. */
#include "cli/top.h"

#include "base/escape.h"
#include "base/mem.h"

#include <wchar.h>

static struct hs_top_cell *cell_at(const struct hs_top_grid *grid, size_t row, size_t col)
{
	return &grid->cells[row * grid->cols + col];
}

void hs_top_grid_init(struct hs_top_grid *grid, size_t rows, size_t cols, bool unicode)
{
	*grid = (struct hs_top_grid){
		.rows = rows,
		.cols = cols,
		.unicode = unicode,
		.cells = hs_mem_zalloc(rows * cols * sizeof *grid->cells),
		.cursor_row = SIZE_MAX,
		.cursor_col = SIZE_MAX,
	};
	for (size_t row = 0; row < rows; row++)
		hs_top_grid_clear(grid, row);
}

void hs_top_grid_clear(struct hs_top_grid *grid, size_t row)
{
	for (size_t col = 0; col < grid->cols; col++)
		*cell_at(grid, row, col) = (struct hs_top_cell){' ', HS_TOP_PLAIN};
}

void hs_top_grid_deinit(struct hs_top_grid *grid)
{
	hs_mem_free(&grid->cells);
}

/* The number of columns from `col` on, at most `cols`, that are inside the grid. */
static size_t inside(const struct hs_top_grid *grid, size_t row, size_t col, size_t cols)
{
	if (row >= grid->rows || col >= grid->cols)
		return 0;
	return cols < grid->cols - col ? cols : grid->cols - col;
}

void hs_top_grid_style(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		       enum hs_top_style style)
{
	cols = inside(grid, row, col, cols);
	for (size_t i = 0; i < cols; i++)
		cell_at(grid, row, col + i)->style = style;
}

size_t hs_top_grid_put(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
		       enum hs_top_style style, const char *text)
{
	struct hs_bytes rest = hs_bytes_of(text);

	cols = inside(grid, row, col, cols);
	while (rest.len > 0 && cols > 0) {
		uint32_t character = '?';
		size_t len = hs_escape_utf8(rest, &character);

		len = len ? len : 1; /* a byte of a host name that is not UTF-8 */
		*cell_at(grid, row, col) = (struct hs_top_cell){character, style};
		rest.data += len;
		rest.len -= len;
		col++;
		cols--;
	}
	return col;
}

size_t hs_top_grid_put_right(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			     enum hs_top_style style, const char *text)
{
	size_t len = strlen(text);
	size_t skip = len < cols ? cols - len : 0;

	return hs_top_grid_put(grid, row, col + skip, cols - skip, style, text);
}

/* ---- keys ---- */

/* The columns of a character; 0: it cannot be shown by itself. */
static size_t width_of(const struct hs_top_grid *grid, uint32_t character)
{
	int width;

	if (character < 0x80)
		return 1;
	width = grid->unicode ? wcwidth((wchar_t)character) : 0;
	return width == 1 || width == 2 ? (size_t)width : 0;
}

/* Marks a cell that continues the one before it: the right half of a wide character, the rest of an escape. A key is
 * never cut before such a cell. */
#define GOES_ON ((uint32_t)1 << 31)

static size_t add_ascii(uint32_t *cells, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		cells[i] = (unsigned char)text[i] | (i ? GOES_ON : 0);
	return len;
}

/* Takes the next character or escape of an escaped text. A character that cannot be shown becomes \xNN for each byte.
 * Returns the number of cells written: at most HS_ESCAPE_GROWTH per byte. */
static size_t next_cells(const struct hs_top_grid *grid, struct hs_bytes *rest, uint32_t *cells)
{
	uint32_t character;
	size_t len = hs_escape_utf8(*rest, &character), count = 0, width;

	hs_check(len > 0); /* escaped text is valid UTF-8 */
	width = width_of(grid, character);
	if (character == '\\') {
		hs_check(rest->len >= 2);
		len = rest->data[1] == 'x' ? 4 : 2;
		count = add_ascii(cells, rest->data, len);
	} else if (width > 0) {
		cells[count++] = character;
		if (width == 2)
			cells[count++] = GOES_ON;
	} else {
		for (size_t i = 0; i < len; i++) {
			char text[5];

			snprintf(text, sizeof text, "\\x%02x", (unsigned char)rest->data[i]);
			count += add_ascii(cells + count, text, 4);
		}
	}
	rest->data += len;
	rest->len -= len;
	return count;
}

/* Converts the whole key to cells; the caller frees them. */
static size_t expand(const struct hs_top_grid *grid, struct hs_bytes key, uint32_t **cells)
{
	struct hs_buf text = {0};
	struct hs_bytes rest;
	size_t count = 0;

	hs_escape(key, &text);
	rest = hs_buf_bytes(&text);
	*cells = hs_mem_alloc((rest.len * HS_ESCAPE_GROWTH + 1) * sizeof **cells);
	while (rest.len > 0)
		count += next_cells(grid, &rest, *cells + count);
	hs_buf_deinit(&text);
	return count;
}

static size_t copy_cells(struct hs_top_grid *grid, size_t row, size_t col, enum hs_top_style style,
			 const uint32_t *cells, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*cell_at(grid, row, col + i) = (struct hs_top_cell){cells[i] & ~GOES_ON, style};
	return col + count;
}

size_t hs_top_grid_put_key(struct hs_top_grid *grid, size_t row, size_t col, size_t cols,
			   enum hs_top_style style, struct hs_bytes key)
{
	const char *mark = grid->unicode ? "…" : "~";
	uint32_t *cells;
	size_t count, head, tail;

	cols = inside(grid, row, col, cols);
	if (cols == 0)
		return col;
	count = expand(grid, key, &cells);
	if (count <= cols) {
		col = copy_cells(grid, row, col, style, cells, count);
	} else {
		/* Keys of one kind often share their beginning and differ at the end: keep both ends. */
		tail = (cols - 1) / 3;
		head = cols - 1 - tail;
		while (head > 0 && cells[head] & GOES_ON)
			head--;
		while (tail > 0 && cells[count - tail] & GOES_ON)
			tail--;
		col = copy_cells(grid, row, col, style, cells, head);
		col = hs_top_grid_put(grid, row, col, 1, style, mark);
		col = copy_cells(grid, row, col, style, cells + count - tail, tail);
	}
	hs_mem_free(&cells);
	return col;
}

/* ---- text ---- */

static void print_cell(const struct hs_top_cell *cell, FILE *out)
{
	char text[4];
	size_t len = hs_top_text_utf8(cell->character, text);

	if (cell->character)
		fwrite(text, 1, len, out);
}

void hs_top_grid_print(const struct hs_top_grid *grid, FILE *out)
{
	for (size_t row = 0; row < grid->rows; row++) {
		size_t end = grid->cols;

		while (end > 0 && cell_at(grid, row, end - 1)->character == ' ')
			end--;
		for (size_t col = 0; col < end; col++)
			print_cell(cell_at(grid, row, col), out);
		putc('\n', out);
	}
}
