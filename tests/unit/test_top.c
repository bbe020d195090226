/* Goal: the parts of `heatsink top` without the screen: numbers as people read them, replies as rows, keys as
 * commands.
 *
 * Method: numbers at the edges where a unit or a digit changes. Replies are read whole, in RESP2 and RESP3,
 * then cut at every byte and damaged at every byte: the model must accept or refuse each as a whole. Keys are
 * typed at a view. */
#include "cli/top.h"

#include "base/mem.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* ---- numbers ---- */

struct number {
	double value;
	const char *text;
};

static void check_numbers(void (*write)(double, char *), const struct number *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char text[HS_TOP_TEXT_MAX];

		write(numbers[i].value, text);
		assert_string_equal(text, numbers[i].text);
		assert_true(strlen(text) <= 6);
	}
}

#define CHECK(write, ...)                                                                          \
	check_numbers(write, (const struct number[]){__VA_ARGS__},                                 \
		      sizeof((const struct number[]){__VA_ARGS__}) / sizeof(struct number))

static void test_counts(void **state)
{
	(void)state;
	CHECK(hs_top_text_count, {0, "0"}, {0.01, "<0.1"}, {0.4, "0.4"}, {3, "3"}, {9.94, "9.9"},
	      {9.96, "10"}, {999.4, "999"}, {999.6, "1.00k"}, {1234, "1.23k"}, {9994, "9.99k"},
	      {9996, "10.0k"}, {12345, "12.3k"}, {99960, "100k"}, {999499, "999k"},
	      {999501, "1.00M"}, {4.5e6, "4.50M"}, {2e12, "2.00T"}, {1e18, "huge"}, {-1, "-"},
	      {NAN, "-"}, {INFINITY, "-"});
}

static void test_bytes_and_times(void **state)
{
	(void)state;
	CHECK(hs_top_text_bytes, {0, "0B"}, {999, "999B"}, {1.2e6, "1.20MB"}, {999.9e6, "1.00GB"},
	      {150e9, "150GB"}, {NAN, "-"});
	CHECK(hs_top_text_time_us, {0, "-"}, {0.2, "1us"}, {850, "850us"}, {999.7, "1.00ms"},
	      {1200, "1.20ms"}, {18400, "18.4ms"}, {2.5e6, "2.50s"}, {120e6, "120s"}, {NAN, "-"});
}

static void test_shares_and_ratios(void **state)
{
	(void)state;
	CHECK(hs_top_text_share, {0, "0%"}, {0.0001, "<0.1%"}, {0.041, "4.1%"}, {0.0996, "10%"},
	      {0.412, "41%"}, {1, "100%"}, {100, "huge"}, {NAN, "-"});
	CHECK(hs_top_text_ratio, {0, "0.00x"}, {2.312, "2.31x"}, {9.996, "10.0x"}, {64, "64.0x"},
	      {256, "256x"}, {5000, ">999x"}, {NAN, "-"});
	CHECK(hs_top_text_plain, {0, "0"}, {16383, "16383"}, {1e6, "1.00M"}, {NAN, "-"});
	CHECK(hs_top_text_uptime, {59, "59s"}, {60, "1m00s"}, {3599, "59m59s"}, {3600, "1h00m"},
	      {86399, "23h59m"}, {273900, "3d04h"}, {NAN, "-"});
}

static void check_split(double reads, double writes, const char *expected)
{
	char text[HS_TOP_TEXT_MAX];

	hs_top_text_split(reads, writes, text);
	assert_string_equal(text, expected);
}

static void test_splits(void **state)
{
	(void)state;
	check_split(90, 10, "90:10");
	check_split(5, 0, "100:0");
	check_split(0, 5, "0:100");
	check_split(9999, 1, "99:1"); /* rounded to 99, so that a few writes are visible */
	check_split(1, 9999, "1:99");
	check_split(0, 0, "-");
	check_split(NAN, 3, "-");
	check_split(INFINITY, 3, "-");
}

static void test_utf8(void **state)
{
	static const struct {
		uint32_t character;
		const char *text;
	} cases[] = {{'a', "a"}, {0xe9, "é"}, {0x2026, "…"}, {0x1f600, "😀"}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char text[4];
		size_t len = hs_top_text_utf8(cases[i].character, text);

		assert_int_equal(len, strlen(cases[i].text));
		assert_memory_equal(text, cases[i].text, len);
	}
}

/* ---- the model ---- */

#define INFO "$51\r\n# Server\r\nheatsink_version:1.2\r\nuptime_in_seconds:7\r\n\r\n"
#define PARTITIONS                                                                                 \
	"*3\r\n"                                                                                   \
	"%4\r\n$2\r\nid\r\n$1\r\n0\r\n$3\r\nops\r\n,12.5\r\n$5\r\nslots\r\n$3\r\n0-9\r\n"          \
	"$7\r\ntop_key\r\n$2\r\nk\n\r\n"                                                           \
	"%2\r\n+id\r\n:1\r\n+ops\r\n:8\r\n"                                                        \
	"%2\r\n+id\r\n+median\r\n+ops\r\n,10\r\n"
#define KEYS                                                                                       \
	"*2\r\n"                                                                                   \
	"%4\r\n$3\r\nkey\r\n$3\r\na:1\r\n$3\r\nops\r\n,9.5\r\n$7\r\nunknown\r\n*2\r\n:1\r\n"       \
	"%1\r\n+a\r\n+b\r\n$9\r\npartition\r\n:3\r\n"                                              \
	"%3\r\n$3\r\nkey\r\n$3\r\nb:1\r\n$5\r\nshare\r\n_\r\n$7\r\nops_low\r\n,4\r\n"
#define KEYS_RESP2                                                                                 \
	"*2\r\n"                                                                                   \
	"*8\r\n$3\r\nkey\r\n$3\r\na:1\r\n$3\r\nops\r\n$3\r\n9.5\r\n$7\r\nunknown\r\n*2\r\n:1\r\n"  \
	"*2\r\n+a\r\n+b\r\n$9\r\npartition\r\n:3\r\n"                                              \
	"*6\r\n$3\r\nkey\r\n$3\r\nb:1\r\n$5\r\nshare\r\n$-1\r\n$7\r\nops_low\r\n$1\r\n4\r\n"
#define PREFIXES "*1\r\n%2\r\n$6\r\nprefix\r\n$2\r\na:\r\n$5\r\nshare\r\n,0.5\r\n"

static void add_reply(struct hs_top_replies *replies, struct hs_bytes reply)
{
	hs_buf_append_bytes(&replies->bytes, reply);
	replies->ends[replies->count++] = replies->bytes.len;
}

static int read_replies(struct hs_top_model *model, const struct hs_top_query *query,
			const char *info, const char *partitions, const char *keys,
			const char *prefixes)
{
	struct hs_top_replies replies = {0};
	int rc;

	add_reply(&replies, hs_bytes_of(info));
	add_reply(&replies, hs_bytes_of(partitions));
	add_reply(&replies, hs_bytes_of(keys));
	if (prefixes)
		add_reply(&replies, hs_bytes_of(prefixes));
	rc = hs_top_model_read(model, query, &replies);
	hs_buf_deinit(&replies.bytes);
	return rc;
}

static void check_text(struct hs_bytes text, const char *expected)
{
	assert_int_equal(text.len, strlen(expected));
	assert_memory_equal(text.data, expected, text.len);
}

static void check_rows(const struct hs_top_model *model)
{
	assert_int_equal(model->rows_count, 2);
	check_text(model->rows[0].name, "a:1");
	assert_true(model->rows[0].ops == 9.5);
	assert_true(model->rows[0].partition == 3);
	assert_true(isnan(model->rows[0].share));
	check_text(model->rows[1].name, "b:1");
	/* A null in the reply means that the share is unknown. */
	assert_true(isnan(model->rows[1].share));
	assert_true(isnan(model->rows[1].ops));
	assert_true(model->rows[1].ops_low == 4);
}

static void test_model_reads_both_dialects(void **state)
{
	struct hs_top_query query = {0};
	struct hs_top_model model;

	(void)state;
	hs_top_model_init(&model);
	assert_false(model.loaded);
	assert_int_equal(read_replies(&model, &query, INFO, PARTITIONS, KEYS, PREFIXES), 0);
	assert_true(model.loaded);
	check_rows(&model);
	check_text(model.version, "1.2");
	assert_true(model.uptime_s == 7);
	assert_int_equal(model.partitions_count, 2);
	check_text(model.partitions[0].slots, "0-9");
	check_text(model.partitions[0].top_key, "k\n");
	check_text(model.partitions[1].id, "1"); /* the reply has a number in place of the text */
	assert_true(model.median.ops == 10);
	assert_int_equal(model.prefixes_count, 1);
	check_text(model.prefixes[0].name, "a:");
	assert_int_equal(read_replies(&model, &query, INFO, PARTITIONS, KEYS_RESP2, NULL), 0);
	check_rows(&model);
	assert_int_equal(model.prefixes_count, 0);
	hs_top_model_deinit(&model);
}

static void test_model_without_info_and_rows(void **state)
{
	struct hs_top_query query = {0};
	struct hs_top_model model;

	(void)state;
	hs_top_model_init(&model);
	assert_int_equal(read_replies(&model, &query, "-ERR no\r\n", "*0\r\n", "*-1\r\n", NULL), 0);
	assert_int_equal(model.version.len, 0);
	assert_true(isnan(model.uptime_s));
	assert_true(isnan(model.median.ops));
	assert_int_equal(model.rows_count, 0);
	hs_top_model_deinit(&model);
}

static void test_model_filters(void **state)
{
	struct hs_top_query query = {.prefix = "b:", .prefix_len = 2};
	struct hs_top_model model;

	(void)state;
	hs_top_model_init(&model);
	assert_int_equal(read_replies(&model, &query, INFO, PARTITIONS, KEYS, NULL), 0);
	assert_int_equal(model.rows_count, 1);
	check_text(model.rows[0].name, "b:1");
	query.dimension = HS_TOP_SLOTS; /* rows of slots have a number, not a name */
	assert_int_equal(read_replies(&model, &query, INFO, PARTITIONS, KEYS, NULL), 0);
	assert_int_equal(model.rows_count, 2);
	hs_top_model_deinit(&model);
}

static void test_model_stays_when_a_reply_is_odd(void **state)
{
	static const char *const odd[] = {
		":1\r\n",			  /* not a list of rows */
		"*1\r\n:1\r\n",			  /* a row that is a number */
		"*1\r\n*1\r\n+key\r\n",		  /* a field without a value */
		"*1\r\n%1\r\n*0\r\n+a\r\n",	  /* a name that is not a text */
		"*1\r\n%1\r\n*1\r\n+a\r\n+b\r\n", /* a name that is an array */
		"*2\r\n%0\r\n",			  /* incomplete */
		"",
	};
	struct hs_top_query query = {0};
	struct hs_top_model model;

	(void)state;
	hs_top_model_init(&model);
	assert_int_equal(read_replies(&model, &query, INFO, PARTITIONS, KEYS, PREFIXES), 0);
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		assert_true(read_replies(&model, &query, INFO, odd[i], KEYS, NULL) < 0);
		assert_true(read_replies(&model, &query, INFO, PARTITIONS, odd[i], NULL) < 0);
		assert_true(read_replies(&model, &query, INFO, PARTITIONS, KEYS, odd[i]) < 0);
		check_rows(&model);
		assert_int_equal(model.partitions_count, 2);
		assert_int_equal(model.prefixes_count, 1);
	}
	hs_top_model_deinit(&model);
}

/* Reads damaged bytes in place of all four replies. */
static void read_damaged(struct hs_top_model *model, const char *reply, size_t len)
{
	struct hs_top_query query = {0};
	struct hs_top_replies replies = {0};

	for (size_t i = 0; i < HS_TOP_REPLIES_MAX; i++)
		add_reply(&replies, (struct hs_bytes){reply, len});
	(void)!hs_top_model_read(model, &query, &replies);
	hs_top_model_sort(model, HS_TOP_BY_OPS);
	hs_buf_deinit(&replies.bytes);
}

static void test_model_survives_damage(void **state)
{
	static const char *const replies[] = {INFO, PARTITIONS, KEYS, KEYS_RESP2, PREFIXES};
	static const char bytes[] = {'*', '%', '$', ':', '-', '_', '|', '>', '9', '0', '\r', '\n'};
	struct hs_top_model model;

	(void)state;
	hs_top_model_init(&model);
	for (size_t r = 0; r < sizeof replies / sizeof *replies; r++) {
		size_t len = strlen(replies[r]);

		for (size_t i = 0; i <= len; i++)
			read_damaged(&model, replies[r], i);
		for (size_t i = 0; i < len * sizeof bytes; i++) {
			char *copy = hs_mem_dup(replies[r], len);

			copy[i / sizeof bytes] = bytes[i % sizeof bytes];
			read_damaged(&model, copy, len);
			hs_mem_free(&copy);
		}
	}
	hs_top_model_deinit(&model);
}

static void test_model_sorts(void **state)
{
	static const char rows[] =
		"*3\r\n"
		"%4\r\n+key\r\n+a\r\n+ops\r\n:9\r\n+ops_low\r\n:1\r\n+reads\r\n:5\r\n"
		"%4\r\n+key\r\n+b\r\n+ops\r\n:8\r\n+ops_low\r\n:7\r\n+bytes\r\n:1\r\n"
		"%4\r\n+key\r\n+c\r\n+ops\r\n:4\r\n+p99_us\r\n:3\r\n+writes\r\n:2\r\n";
	static const struct {
		enum hs_top_sort sort;
		const char *order;
		/* Expected order of the rows: by the lower bound if a row has one, else by the value. */
	} cases[] = {{HS_TOP_BY_OPS, "bca"},
		     {HS_TOP_BY_READS, "abc"},
		     {HS_TOP_BY_WRITES, "cab"},
		     {HS_TOP_BY_BYTES, "bac"},
		     {HS_TOP_BY_LATENCY, "cab"}};
	struct hs_top_query query = {0};
	struct hs_top_model model;

	(void)state;
	hs_top_model_init(&model);
	assert_int_equal(read_replies(&model, &query, INFO, "*0\r\n", rows, NULL), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		hs_top_model_sort(&model, cases[i].sort);
		for (size_t row = 0; row < 3; row++)
			assert_int_equal(model.rows[row].name.data[0], cases[i].order[row]);
	}
	hs_top_model_deinit(&model);
}

/* ---- the view ---- */

static struct hs_top_view fresh_view(void)
{
	struct hs_top_options options = {.interval_us = 1000000};
	struct hs_top_view view;

	hs_top_view_init(&view, &options);
	return view;
}

/* Types the text and returns the result of the last key. */
static enum hs_top_action type(struct hs_top_view *view, const char *text)
{
	enum hs_top_action wish = HS_TOP_ACTION_NONE;

	for (; *text; text++)
		wish = hs_top_view_key(view, (unsigned char)*text, 100);
	return wish;
}

static void test_choices(void **state)
{
	struct hs_top_view view = fresh_view();

	(void)state;
	/* No query: the rows are in this order already. */
	assert_int_equal(type(&view, "o"), HS_TOP_ACTION_NONE);
	assert_int_equal(type(&view, "l"), HS_TOP_ACTION_SORT);
	assert_int_equal(view.query.sort, HS_TOP_BY_LATENCY);
	assert_int_equal(type(&view, "p"), HS_TOP_ACTION_QUERY);
	assert_int_equal(view.query.dimension, HS_TOP_PREFIXES);
	assert_int_equal(type(&view, "WW"), HS_TOP_ACTION_QUERY);
	assert_int_equal(view.query.window, HS_TOP_LONG);
	assert_int_equal(type(&view, "\t"), HS_TOP_ACTION_QUERY);
	assert_int_equal(view.query.window, HS_TOP_AUTO);
	assert_int_equal(type(&view, " "), HS_TOP_ACTION_NONE);
	assert_true(view.paused);
	assert_int_equal(type(&view, " "), HS_TOP_ACTION_INTERVAL);
	assert_false(view.paused);
	assert_int_equal(type(&view, "x"), HS_TOP_ACTION_NONE);
	assert_int_equal(type(&view, "q"), HS_TOP_ACTION_QUIT);
}

static void test_help_swallows_one_key(void **state)
{
	struct hs_top_view view = fresh_view();

	(void)state;
	assert_int_equal(type(&view, "hq"), HS_TOP_ACTION_NONE);
	assert_false(view.help);
	assert_int_equal(type(&view, "q"), HS_TOP_ACTION_QUIT);
}

static void test_intervals(void **state)
{
	struct hs_top_view view = fresh_view();

	(void)state;
	type(&view, "+");
	assert_int_equal(view.interval_us, 2000000);
	type(&view, "--");
	assert_int_equal(view.interval_us, 500000);
	type(&view, "-------");
	assert_int_equal(view.interval_us, 100000);
	/* A value from --interval between two steps: the key selects the next step. */
	view.interval_us = 1500000;
	type(&view, "-");
	assert_int_equal(view.interval_us, 1000000);
	view.interval_us = 1500000;
	type(&view, "+");
	assert_int_equal(view.interval_us, 2000000);
	view.interval_us = 3600000000;
	type(&view, "+");
	assert_int_equal(view.interval_us, 3600000000);
}

static void test_filter(void **state)
{
	struct hs_top_view view = fresh_view();

	(void)state;
	/* The characters go into the filter, and q does not quit. */
	assert_int_equal(type(&view, "/quo"), HS_TOP_ACTION_NONE);
	assert_true(view.editing);
	hs_top_view_key(&view, 0x1f600, 100);
	hs_top_view_key(&view, 0xe9, 100);
	assert_int_equal(view.edit_len, 3 + 4 + 2);
	/* Removes a whole character of several bytes. */
	hs_top_view_key(&view, HS_TOP_KEY_BACKSPACE, 100);
	assert_int_equal(view.edit_len, 3 + 4);
	hs_top_view_key(&view, HS_TOP_KEY_UP, 100); /* an arrow key adds nothing to the filter */
	hs_top_view_key(&view, HS_TOP_KEY_BACKSPACE, 100);
	assert_int_equal(view.edit_len, 3);
	view.selected = 9;
	assert_int_equal(hs_top_view_key(&view, HS_TOP_KEY_ENTER, 100), HS_TOP_ACTION_QUERY);
	assert_false(view.editing);
	assert_int_equal(view.selected, 0);
	check_text((struct hs_bytes){view.query.prefix, view.query.prefix_len}, "quo");
	type(&view, "/"); /* opens the current filter for editing */
	assert_int_equal(view.edit_len, 3);
	assert_int_equal(hs_top_view_key(&view, HS_TOP_KEY_ENTER, 100), HS_TOP_ACTION_NONE);
	assert_int_equal(hs_top_view_key(&view, HS_TOP_KEY_ESCAPE, 100), HS_TOP_ACTION_QUERY);
	assert_int_equal(view.query.prefix_len, 0);
}

static void test_filter_has_an_end(void **state)
{
	struct hs_top_view view = fresh_view();

	(void)state;
	type(&view, "/");
	for (int i = 0; i < 2 * HS_TOP_PREFIX_MAX; i++)
		hs_top_view_key(&view, 0xe9, 100);
	assert_int_equal(view.edit_len, HS_TOP_PREFIX_MAX);
	for (int i = 0; i < HS_TOP_PREFIX_MAX; i++)
		hs_top_view_key(&view, HS_TOP_KEY_BACKSPACE, 100);
	assert_int_equal(view.edit_len, 0);
}

static void test_moving(void **state)
{
	struct hs_top_view view = fresh_view();

	(void)state;
	view.lines = 10;
	hs_top_view_key(&view, HS_TOP_KEY_UP, 100);
	assert_int_equal(view.selected, 0);
	hs_top_view_key(&view, HS_TOP_KEY_DOWN, 100);
	assert_int_equal(view.selected, 1);
	hs_top_view_key(&view, HS_TOP_KEY_PAGE_DOWN, 100);
	assert_int_equal(view.selected, 10);
	hs_top_view_key(&view, HS_TOP_KEY_END, 100);
	hs_top_view_key(&view, HS_TOP_KEY_DOWN, 100);
	assert_int_equal(view.selected, 99);
	hs_top_view_key(&view, HS_TOP_KEY_PAGE_UP, 50); /* the window has fewer rows than before */
	assert_int_equal(view.selected, 40);
	hs_top_view_key(&view, HS_TOP_KEY_HOME, 50);
	assert_int_equal(view.selected, 0);
	hs_top_view_key(&view, HS_TOP_KEY_DOWN, 0);
	assert_int_equal(view.selected, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_counts),
		cmocka_unit_test(test_bytes_and_times),
		cmocka_unit_test(test_shares_and_ratios),
		cmocka_unit_test(test_splits),
		cmocka_unit_test(test_utf8),
		cmocka_unit_test(test_model_reads_both_dialects),
		cmocka_unit_test(test_model_without_info_and_rows),
		cmocka_unit_test(test_model_filters),
		cmocka_unit_test(test_model_stays_when_a_reply_is_odd),
		cmocka_unit_test(test_model_survives_damage),
		cmocka_unit_test(test_model_sorts),
		cmocka_unit_test(test_choices),
		cmocka_unit_test(test_help_swallows_one_key),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_filter),
		cmocka_unit_test(test_filter_has_an_end),
		cmocka_unit_test(test_moving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
