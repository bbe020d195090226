/* Goal: the text is valid for Prometheus: escaped, integers without fraction, histograms that add up.
 *
 * Method: single families are composed and compared byte by byte. */
#include "http/metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct hs_metrics_labels none = {NULL, 0};

static void check(struct hs_buf *text, const char *expected)
{
	hs_buf_append(text, "", 1);
	assert_string_equal(text->data, expected);
	hs_buf_deinit(text);
}

static void test_a_family(void **state)
{
	struct hs_buf text = {0};
	struct hs_metrics metrics = {.text = &text};
	struct hs_metrics_label labels[] = {{"partition", HS_LIT("0")}, {"mode", HS_LIT("x")}};

	(void)state;
	hs_metrics_family(&metrics, "", "keys", "gauge", "All keys");
	hs_metrics_value(&metrics, none, 3);
	hs_metrics_family(&metrics, "partition_", "reads_total", "counter", "Reads");
	hs_metrics_value(&metrics, (struct hs_metrics_labels){labels, 1}, 4);
	hs_metrics_text(&metrics, (struct hs_metrics_labels){labels, 2},
			HS_LIT("18446744073709551615"));
	check(&text, "# HELP heatsink_keys All keys\n"
		     "# TYPE heatsink_keys gauge\n"
		     "heatsink_keys 3\n"
		     "# HELP heatsink_partition_reads_total Reads\n"
		     "# TYPE heatsink_partition_reads_total counter\n"
		     "heatsink_partition_reads_total{partition=\"0\"} 4\n"
		     "heatsink_partition_reads_total{partition=\"0\",mode=\"x\"} "
		     "18446744073709551615\n");
}

static void test_escapes(void **state)
{
	struct hs_buf text = {0};
	struct hs_metrics metrics = {.text = &text};
	struct hs_metrics_label label = {"key", HS_LIT("a\"b\\c\nd\u00e4")};

	(void)state;
	hs_metrics_family(&metrics, "", "x", "gauge", "A \"word\", a \\ and a\nline");
	hs_metrics_value(&metrics, (struct hs_metrics_labels){&label, 1}, 1);
	check(&text, "# HELP heatsink_x A \"word\", a \\\\ and a\\nline\n"
		     "# TYPE heatsink_x gauge\n"
		     "heatsink_x{key=\"a\\\"b\\\\c\\nd\u00e4\"} 1\n");
}

static void test_numbers(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{0, "0\n"},
		{-5, "-5\n"},
		{4503599627370496.0, "4503599627370496\n"},
		{8999999999999999.0, "8999999999999999\n"},
		{0.000123, "0.000123\n"},
		{1e-9, "1e-09\n"},
		{1234567.890123, "1234567.890123\n"},
		{1e18, "1e+18\n"},
		{NAN, "NaN\n"},
		{INFINITY, "+Inf\n"},
		{-INFINITY, "-Inf\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_buf text = {0};
		struct hs_metrics metrics = {.text = &text, .name = "n"};

		hs_metrics_value(&metrics, none, cases[i].value);
		hs_buf_consume(&text, 2);
		check(&text, cases[i].text);
	}
}

/* Each bucket counts the times up to its bound; the last bucket counts all. */
static void test_coarse_histogram(void **state)
{
	uint64_t counts[HS_COARSE_HISTOGRAM_BUCKETS] = {0};
	static const uint64_t times_us[] = {
		0, 1, 2, 3, 4, 7, 8, 100, 127, 128, 4194303, 4194304, 8388607, 8388608, 1000000000};
	const size_t times = sizeof times_us / sizeof *times_us;
	struct hs_buf text = {0};
	struct hs_metrics metrics = {.text = &text, .name = "h"};
	struct hs_metrics_label label = {"p", HS_LIT("1")};
	char *line, *rest;
	size_t buckets = 0;

	(void)state;
	for (size_t i = 0; i < times; i++)
		counts[hs_coarse_histogram_bucket(times_us[i])]++;
	hs_metrics_histogram(&metrics, (struct hs_metrics_labels){&label, 1}, counts, 12.5);
	hs_buf_append(&text, "", 1);
	assert_non_null(strstr(text.data, "h_bucket{p=\"1\",le=\"+Inf\"} 15\n"
					  "h_sum{p=\"1\"} 12.5\n"
					  "h_count{p=\"1\"} 15\n"));
	for (rest = text.data; (line = strsep(&rest, "\n"));) {
		double bound;
		unsigned long long count;
		uint64_t expected = 0;

		if (sscanf(line, "h_bucket{p=\"1\",le=\"%lf\"} %llu", &bound, &count) != 2 ||
		    isinf(bound))
			continue;
		for (size_t i = 0; i < times; i++)
			expected += (double)times_us[i] <= bound * 1e6 + 1e-6;
		if (count != expected)
			fail_msg("%s: %llu expected", line, (unsigned long long)expected);
		buckets++;
	}
	assert_int_equal(buckets, HS_COARSE_HISTOGRAM_BUCKETS / 2 - 1);
	hs_buf_deinit(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_family),
		cmocka_unit_test(test_escapes),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_coarse_histogram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
