/* Whole numbers are formatted without printf: a page has thousands of samples. */
#include "http/metrics.h"

#include "base/check.h"
#include "base/num.h"

#include <math.h>
#include <stdio.h>

static void append_text(struct hs_buf *text, const char *words)
{
	hs_buf_append(text, words, strlen(words));
}

static void append_count(struct hs_buf *text, uint64_t count)
{
	char digits[HS_NUM_TEXT_MAX];

	hs_buf_append(text, digits, hs_num_format_int((int64_t)count, digits));
	hs_buf_append(text, "\n", 1);
}

static void append_escaped(struct hs_bytes value, bool quotes, struct hs_buf *text)
{
	for (size_t i = 0; i < value.len; i++) {
		char byte = value.data[i];

		if (byte == '\n')
			hs_buf_append(text, "\\n", 2);
		else if (byte == '\\' || (quotes && byte == '"'))
			hs_buf_append(text, (char[]){'\\', byte}, 2);
		else
			hs_buf_append(text, &byte, 1);
	}
}

void hs_metrics_family(struct hs_metrics *metrics, const char *group, const char *name,
		       const char *type, const char *help)
{
	int len = snprintf(metrics->name, sizeof metrics->name, "heatsink_%s%s", group, name);

	hs_check(len > 0);
	hs_check((size_t)len < sizeof metrics->name);
	hs_buf_printf(metrics->text, "# HELP %s ", metrics->name);
	append_escaped(hs_bytes_of(help), false, metrics->text);
	hs_buf_printf(metrics->text, "\n# TYPE %s %s\n", metrics->name, type);
}

static void append_label(struct hs_metrics *metrics, char mark, const char *name,
			 struct hs_bytes value)
{
	hs_buf_append(metrics->text, &mark, 1);
	append_text(metrics->text, name);
	append_text(metrics->text, "=\"");
	append_escaped(value, true, metrics->text);
	hs_buf_append(metrics->text, "\"", 1);
}

/* name_suffix{labels,le="…"} and a space. */
static void begin_sample(struct hs_metrics *metrics, const char *suffix,
			 struct hs_metrics_labels labels, const char *le)
{
	char mark = '{';

	append_text(metrics->text, metrics->name);
	append_text(metrics->text, suffix);
	for (size_t i = 0; i < labels.count; i++) {
		append_label(metrics, mark, labels.labels[i].name, labels.labels[i].value);
		mark = ',';
	}
	if (le) {
		append_label(metrics, mark, "le", hs_bytes_of(le));
		mark = ',';
	}
	append_text(metrics->text, mark == ',' ? "} " : " ");
}

/* Counters stay whole numbers as long as a double can hold them. */
static void append_number(double value, struct hs_buf *text)
{
	if (value >= 0 && value < 9e15 && value == floor(value))
		append_count(text, (uint64_t)value);
	else if (isnan(value))
		append_text(text, "NaN\n");
	else if (isinf(value))
		append_text(text, value > 0 ? "+Inf\n" : "-Inf\n");
	else
		hs_buf_printf(text, "%.15g\n", value);
}

void hs_metrics_value(struct hs_metrics *metrics, struct hs_metrics_labels labels, double value)
{
	begin_sample(metrics, "", labels, NULL);
	append_number(value, metrics->text);
}

void hs_metrics_text(struct hs_metrics *metrics, struct hs_metrics_labels labels,
		     struct hs_bytes value)
{
	begin_sample(metrics, "", labels, NULL);
	hs_buf_append_bytes(metrics->text, value);
	hs_buf_append(metrics->text, "\n", 1);
}

static void append_bucket(struct hs_metrics *metrics, struct hs_metrics_labels labels,
			  const char *le, uint64_t count)
{
	begin_sample(metrics, "_bucket", labels, le);
	append_count(metrics->text, count);
}

/* One bucket per power of two. Its bound is one microsecond less: times were rounded up to whole microseconds, so
 * that is the exact upper bound. */
void hs_metrics_histogram(struct hs_metrics *metrics, struct hs_metrics_labels labels,
			  const uint64_t counts[HS_COARSE_HISTOGRAM_BUCKETS], double sum_s)
{
	uint64_t sum = 0;
	char le[32];

	for (uint32_t step = 0; step < HS_COARSE_HISTOGRAM_BUCKETS; step++) {
		if (step > 0 && step % 2 == 0) {
			snprintf(le, sizeof le, "%.9g",
				 (double)(hs_coarse_histogram_floor(step) - 1) * 1e-6);
			append_bucket(metrics, labels, le, sum);
		}
		sum += counts[step];
	}
	append_bucket(metrics, labels, "+Inf", sum);
	begin_sample(metrics, "_sum", labels, NULL);
	append_number(sum_s, metrics->text);
	begin_sample(metrics, "_count", labels, NULL);
	append_count(metrics->text, sum);
}
