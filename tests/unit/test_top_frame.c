/* Goal: the grid, the columns and the frame of `heatsink top`, without a terminal.
 *
 * Method: special cases: keys that are cut, columns that are dropped, sizes too small for any content. No size
 * and no number may write outside the grid. test_top.py compares whole frames with expected ones. */
#include "cli/top.h"

#include "base/mem.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns the text of the grid; the caller frees it. */
static char *text_of(const struct hs_top_grid *grid)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	hs_top_grid_print(grid, out);
	fclose(out);
	return text;
}

/* ---- keys in a grid ---- */

static void check_key(const char *key, size_t len, size_t cols, bool unicode, const char *expected)
{
	struct hs_top_grid grid;
	char *text;
	size_t end;

	hs_top_grid_init(&grid, 1, 40, unicode);
	end = hs_top_grid_put_key(&grid, 0, 0, cols, HS_TOP_PLAIN, (struct hs_bytes){key, len});
	assert_true(end <= cols);
	text = text_of(&grid);
	text[strlen(text) - 1] = '\0';
	assert_string_equal(text, expected);
	free(text);
	hs_top_grid_deinit(&grid);
}

#define KEY(key, cols, unicode, expected) check_key(key, sizeof(key) - 1, cols, unicode, expected)

static void test_keys_are_escaped(void **state)
{
	(void)state;
	KEY("plain", 40, true, "plain");
	KEY("a\nb\tc\\d\"e", 40, true, "a\\nb\\tc\\\\d\\\"e");
	KEY("\xff\x1b[2J\0x", 40, true, "\\xff\\x1b[2J\\x00x");
	KEY("é日", 40, true, "é日");
	KEY("é日", 40, false, "\\xc3\\xa9\\xe6\\x97\\xa5");
	/* A combining character has no width of its own: it is shown as an escape. */
	KEY("e\xcc\x81", 40, true, "e\\xcc\\x81");
	KEY("a\xe2\x80\x8b", 40, true, "a\\xe2\\x80\\x8b"); /* a character without any width */
	KEY("", 40, true, "");
}

static void test_long_keys_keep_both_ends(void **state)
{
	(void)state;
	KEY("0123456789", 10, true, "0123456789");
	KEY("0123456789", 9, true, "012345…89");
	KEY("0123456789", 9, false, "012345~89");
	KEY("0123456789", 2, true, "0…");
	KEY("0123456789", 1, true, "…");
	KEY("0123456789", 0, true, "");
	/* Neither a wide character nor an escape is cut in the middle. */
	KEY("日本語日本語", 8, true, "日本…語");
	KEY("日本語日本語", 9, true, "日本語…語");
	KEY("abc\ndefghi", 6, true, "abc…i");
	KEY("\x01\x02\x03", 7, true, "\\x01…");
}

static void test_nothing_is_written_outside(void **state)
{
	struct hs_top_grid grid;
	char *text;

	(void)state;
	hs_top_grid_init(&grid, 2, 5, true);
	hs_top_grid_put(&grid, 0, 3, SIZE_MAX, HS_TOP_PLAIN, "abcdef");
	hs_top_grid_put(&grid, 1, 0, 3, HS_TOP_PLAIN, "\xff");
	hs_top_grid_put(&grid, 5, 0, 3, HS_TOP_PLAIN, "abc");
	hs_top_grid_put(&grid, 0, 9, 3, HS_TOP_PLAIN, "abc");
	hs_top_grid_put_right(&grid, 1, 0, 5, HS_TOP_PLAIN, "xyz");
	hs_top_grid_put_key(&grid, 9, 9, 9, HS_TOP_PLAIN, HS_LIT("key"));
	hs_top_grid_style(&grid, 1, 4, SIZE_MAX, HS_TOP_HOT);
	hs_top_grid_style(&grid, 2, 0, 1, HS_TOP_HOT);
	text = text_of(&grid);
	assert_string_equal(text, "   ab\n? xyz\n");
	assert_int_equal(grid.cells[9].style, HS_TOP_HOT);
	free(text);
	hs_top_grid_deinit(&grid);
}

/* ---- columns ---- */

static bool has_column(const struct hs_top_layout *layout, const char *title)
{
	for (size_t i = 0; i < layout->count; i++) {
		if (strcmp(layout->columns[i].title, title) == 0 && layout->width[i])
			return true;
	}
	return false;
}

static void test_columns_give_way_in_order(void **state)
{
	struct hs_top_layout layout;

	(void)state;
	hs_top_columns_rows(&layout, HS_TOP_KEYS, 20);
	assert_true(has_column(&layout, "KEY"));
	assert_true(has_column(&layout, "OPS/S"));
	assert_false(has_column(&layout, "SHARE"));
	hs_top_columns_rows(&layout, HS_TOP_KEYS, 80);
	assert_true(has_column(&layout, "LEAST"));
	assert_true(has_column(&layout, "SLOT"));
	assert_false(has_column(&layout, "READS"));
	hs_top_columns_rows(&layout, HS_TOP_KEYS, 120);
	assert_true(has_column(&layout, "READS"));
	hs_top_columns_partitions(&layout, true, 80);
	assert_true(has_column(&layout, "  TOP KEY"));
	assert_false(has_column(&layout, "ADDRESS"));
	hs_top_columns_partitions(&layout, true, 250);
	assert_true(has_column(&layout, "SLOTS"));
}

/* A server's CPU and address are shown whenever the window has room for them. The embedded engine has neither,
 * and the other columns use the room. */
static void test_server_columns_stay(void **state)
{
	struct hs_top_layout layout;

	(void)state;
	for (size_t cols = 62; cols <= HS_TOP_COLS_MAX; cols++) {
		hs_top_columns_partitions(&layout, true, cols);
		assert_true(has_column(&layout, "  TOP KEY"));
		assert_true(has_column(&layout, "CPU"));
		assert_int_equal(has_column(&layout, "ADDRESS"), cols >= 84);
		hs_top_columns_partitions(&layout, false, cols);
		assert_false(has_column(&layout, "CPU"));
		assert_false(has_column(&layout, "ADDRESS"));
	}
	hs_top_columns_partitions(&layout, false, 120);
	assert_true(has_column(&layout, "P50"));
}

/* Checks that the shown columns, with one blank between them, are never wider than the window. */
static void check_layout(const struct hs_top_layout *layout, size_t cols)
{
	size_t at = 0;

	for (size_t i = 0; i < layout->count; i++) {
		if (!layout->width[i])
			continue;
		assert_int_equal(layout->at[i], at);
		at += layout->width[i] + 1;
	}
	assert_true(at <= cols + 1);
}

static void test_columns_fit_every_width(void **state)
{
	struct hs_top_layout layout;

	(void)state;
	for (size_t cols = 0; cols <= HS_TOP_COLS_MAX; cols++) {
		hs_top_columns_partitions(&layout, cols % 2, cols);
		check_layout(&layout, cols);
		for (int what = 0; what < HS_TOP_DIMENSIONS; what++) {
			hs_top_columns_rows(&layout, (enum hs_top_dimension)what, cols);
			check_layout(&layout, cols);
		}
	}
}

/* ---- frames ---- */

enum { KEYS = 30 };

struct world {
	struct hs_top_options options;
	struct hs_top_view view;
	struct hs_top_model model;
	struct hs_top_grid grid;
	char *text;
};

/* A world of partitions with 100 requests each, except number 2, which has 900; the keys are k0, k1 and so on. */
static struct world *begin(size_t partitions, size_t keys)
{
	struct world *world = hs_mem_zalloc(sizeof *world);
	struct hs_top_model *model = &world->model;

	snprintf(world->options.target.text, sizeof world->options.target.text, "host:1");
	world->options.interval_us = 1000000;
	hs_top_view_init(&world->view, &world->options);
	world->view.unicode = true;
	hs_top_model_init(model);
	model->loaded = true;
	model->partitions = hs_mem_zalloc((partitions + 1) * sizeof *model->partitions);
	model->partitions_count = partitions;
	for (size_t i = 0; i < partitions; i++) {
		struct hs_top_partition *row = &model->partitions[i];

		hs_buf_printf(&model->bytes, "%04zu", i);
		row->ops = i == 2 ? 900 : 100;
		row->load = i == 2 ? 6.1 : 0.7;
	}
	for (size_t i = 0; i < partitions; i++)
		model->partitions[i].id = (struct hs_bytes){model->bytes.data + 4 * i, 4};
	model->median.id = HS_LIT("median");
	model->median.ops = 100;
	model->rows = hs_mem_zalloc((keys + 1) * sizeof *model->rows);
	model->rows_count = keys;
	for (size_t i = 0; i < keys; i++)
		model->rows[i] =
			(struct hs_top_row){.name = HS_LIT("key"), .ops = (double)(keys - i)};
	return world;
}

static void paint(struct world *world, size_t rows, size_t cols)
{
	free(world->text);
	hs_top_grid_deinit(&world->grid);
	hs_top_frame(&world->grid, &world->view, &world->model, rows, cols);
	world->text = text_of(&world->grid);
}

static void end(struct world *world)
{
	free(world->text);
	hs_top_grid_deinit(&world->grid);
	hs_top_model_deinit(&world->model);
	hs_mem_free(&world);
}

#define SHOWS(world, words) assert_non_null(strstr((world)->text, words))
#define HIDES(world, words) assert_null(strstr((world)->text, words))

static void test_partitions_in_order_or_hottest_first(void **state)
{
	struct world *world = begin(4, 1);

	(void)state;
	paint(world, 24, 80);
	assert_true(strstr(world->text, "\n0000") < strstr(world->text, "\n0002"));
	HIDES(world, "more partitions");
	end(world);
	world = begin(100, 1);
	paint(world, 24, 80);
	assert_true(strstr(world->text, "\n0002") < strstr(world->text, "\n0000"));
	SHOWS(world, "93 more partitions, none above 100 ops/s");
	SHOWS(world, "\nmedian");
	end(world);
}

static void test_failing_partitions(void **state)
{
	struct world *world = begin(4, 1);

	(void)state;
	paint(world, 24, 80);
	HIDES(world, "not ok");
	world->model.partitions[1].state = HS_LIT("ok");
	world->model.partitions[3].state = HS_LIT("down");
	world->model.partitions[3].reason = HS_LIT("connection refused");
	paint(world, 24, 80);
	SHOWS(world, "  1 partition not ok");
	SHOWS(world, "\n0003   0.70x down: conn");
	HIDES(world, "\n0003   0.70x █");
	world->model.partitions[0].state = HS_LIT("full");
	paint(world, 24, 60);
	SHOWS(world, "\n0000   0.70x full");
	paint(world, 24, 120);
	SHOWS(world, "  2 partitions not ok");
	end(world);

	world = begin(100, 1);
	world->model.partitions[90].state = HS_LIT("down");
	world->model.partitions[90].ops = 0;
	paint(world, 24, 80);
	assert_true(strstr(world->text, "\n0090") < strstr(world->text, "\n0002"));
	SHOWS(world, "93 more partitions, none above 100 ops/s");
	for (size_t i = 50; i < 70; i++) {
		world->model.partitions[i].state = HS_LIT("down");
		world->model.partitions[i].ops = 0;
	}
	paint(world, 24, 80);
	SHOWS(world, "93 more partitions, none above 900 ops/s");
	end(world);
}

static void test_bars_and_the_median(void **state)
{
	struct world *world = begin(4, 1);

	(void)state;
	paint(world, 24, 80);
	/* The scale of the bars ends at the hottest partition; the mark of the median is at a ninth of the
	 * scale. */
	SHOWS(world, "\n0000   0.70x ██│ ");
	SHOWS(world, "\n0002   6.10x ██│████████████████ ");
	SHOWS(world, "\nmedian     -   │ ");
	world->model.partitions[2].ops = 100; /* the load is even: every bar ends in the middle */
	world->view.unicode = false;
	paint(world, 24, 80);
	SHOWS(world, "\n0002   6.10x ##########| ");
	world->model.median.ops = NAN;
	paint(world, 24, 80);
	HIDES(world, "|");
	HIDES(world, "median");
	end(world);
}

static void test_impossible_numbers(void **state)
{
	static const double odd[] = {NAN, INFINITY, -INFINITY, -1, 0, 1e300, 1e-300};
	struct world *world = begin(3, 3);

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		for (size_t field = offsetof(struct hs_top_partition, ops);
		     field < sizeof(struct hs_top_partition); field += sizeof(double)) {
			*(double *)((char *)&world->model.partitions[1] + field) = odd[i];
			*(double *)((char *)&world->model.median + field) = odd[i];
		}
		for (size_t field = offsetof(struct hs_top_row, ops);
		     field < sizeof(struct hs_top_row); field += sizeof(double))
			*(double *)((char *)&world->model.rows[1] + field) = odd[i];
		paint(world, 24, 200);
		SHOWS(world, "key");
	}
	end(world);
}

static void test_every_size(void **state)
{
	struct world *world = begin(40, KEYS);

	(void)state;
	world->view.error = "something went wrong with the server that you wanted to look at";
	for (int pass = 0; pass < 4; pass++) {
		for (size_t rows = 1; rows <= 45; rows++) {
			for (size_t cols = 1; cols <= 130; cols += 3)
				paint(world, rows, cols);
		}
		world->view.error = "";
		world->view.help = pass == 1;
		world->view.editing = pass == 2;
	}
	end(world);
}

static void test_scrolls_to_the_selected_row(void **state)
{
	struct world *world = begin(2, KEYS);

	(void)state;
	paint(world, 24, 80);
	assert_int_equal(world->view.scroll, 0);
	assert_true(world->view.lines > 10);
	world->view.selected = KEYS - 1;
	paint(world, 24, 80);
	assert_int_equal(world->view.scroll, KEYS - world->view.lines);
	SHOWS(world, "30/30");
	world->view.selected = 0;
	paint(world, 24, 80);
	assert_int_equal(world->view.scroll, 0);
	world->view.selected = KEYS + 5; /* the selected row does not exist any more */
	paint(world, 24, 80);
	assert_int_equal(world->view.selected, KEYS - 1);
	world->model.rows_count = 0;
	paint(world, 24, 80);
	assert_int_equal(world->view.selected, 0);
	SHOWS(world, "no keys stand out");
	end(world);
}

static void test_selected_row_stands_out(void **state)
{
	struct world *world = begin(2, 3);
	size_t seen = 0;

	(void)state;
	world->view.selected = 1;
	paint(world, 24, 80);
	for (size_t row = 0; row < 24; row++)
		seen += world->grid.cells[row * 80].style == HS_TOP_SELECTED;
	assert_int_equal(seen, 1);
	world->view.interactive = false;
	paint(world, 0, 80);
	for (size_t row = 0; row < world->grid.rows; row++)
		assert_int_not_equal(world->grid.cells[row * 80].style, HS_TOP_SELECTED);
	HIDES(world, "q quit");
	end(world);
}

static void test_last_line(void **state)
{
	struct world *world = begin(2, 3);

	(void)state;
	world->view.paused = true;
	paint(world, 24, 80);
	SHOWS(world, "\nPAUSED  key");
	world->view.waiting_s = 3.2;
	paint(world, 24, 80);
	SHOWS(world, "no answer for 3 s");
	world->view.error = "host:1 is gone";
	paint(world, 24, 80);
	SHOWS(world, "\nhost:1 is gone; trying again");
	world->view.error =
		"this one is so long that it takes two lines to say it to the end of it: "
		"so it is broken between words";
	paint(world, 24, 80);
	SHOWS(world, "it: so it is\nbroken between words; trying again\n");
	world->view.editing = true;
	memcpy(world->view.edit, "ab", 2);
	world->view.edit_len = 2;
	paint(world, 24, 80);
	SHOWS(world, "\nstarts with: ab   Enter");
	assert_int_equal(world->grid.cursor_row, 23);
	assert_int_equal(world->grid.cursor_col, 15);
	end(world);
}

static void test_head(void **state)
{
	struct world *world = begin(3, 1);

	(void)state;
	world->model.version = HS_LIT("1.2.3");
	world->model.uptime_s = 90;
	memcpy(world->view.query.prefix, "u:\n", 3);
	world->view.query.prefix_len = 3;
	world->model.partitions[0].errors = 2;
	paint(world, 24, 80);
	SHOWS(world, "heatsink 1.2.3  host:1  up 1m30s ");
	SHOWS(world, "  window auto  sort ops  every 1s\n");
	SHOWS(world, "1.10k ops/s ");
	SHOWS(world, "errors 2/s  only u:\\n\n");
	paint(world, 24, 24); /* in a narrow window the server's name remains */
	SHOWS(world, "heatsink 1.2.3  host:1\n");
	paint(world, 24, 20);
	assert_memory_equal(world->text, "host:1\n", 7);
	end(world);
}

static void test_stale_figures(void **state)
{
	struct world *world = begin(3, 1);

	(void)state;
	world->view.error = "host:1 is gone";
	paint(world, 24, 80);
	HIDES(world, "stale");
	world->view.stale = true;
	paint(world, 24, 80);
	SHOWS(world, "\nstale, last answer 0s ago  1.10k ops/s  reads ");
	assert_int_equal(world->grid.cells[80].style, HS_TOP_ALERT);
	world->view.age_s = 72.9;
	paint(world, 24, 80);
	SHOWS(world, "\nstale, last answer 1m12s ago  1.10k ops/s ");
	paint(world, 24, 28);
	SHOWS(world, "\nstale, last answer 1m12s ago\n");
	paint(world, 24, 20);
	SHOWS(world, "\nstale 1m12s ");
	end(world);
}

static void test_before_the_first_answer(void **state)
{
	struct world *world = begin(0, 0);

	(void)state;
	world->model.loaded = false;
	paint(world, 24, 80);
	SHOWS(world, "waiting for the first answer");
	SHOWS(world, "- ops/s");
	HIDES(world, "LOAD");
	end(world);
}

static int set_unicode(void **state)
{
	(void)state;
	return setlocale(LC_CTYPE, "C.UTF-8") ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keys_are_escaped),
		cmocka_unit_test(test_long_keys_keep_both_ends),
		cmocka_unit_test(test_nothing_is_written_outside),
		cmocka_unit_test(test_columns_give_way_in_order),
		cmocka_unit_test(test_server_columns_stay),
		cmocka_unit_test(test_columns_fit_every_width),
		cmocka_unit_test(test_partitions_in_order_or_hottest_first),
		cmocka_unit_test(test_failing_partitions),
		cmocka_unit_test(test_bars_and_the_median),
		cmocka_unit_test(test_impossible_numbers),
		cmocka_unit_test(test_every_size),
		cmocka_unit_test(test_scrolls_to_the_selected_row),
		cmocka_unit_test(test_selected_row_stands_out),
		cmocka_unit_test(test_last_line),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_stale_figures),
		cmocka_unit_test(test_before_the_first_answer),
	};

	return cmocka_run_group_tests(tests, set_unicode, NULL);
}
