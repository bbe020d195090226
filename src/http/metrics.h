/* Composes metrics in the text format of Prometheus, version 0.0.4. Every name starts with heatsink_. The caller
 * begins a family once and writes all its samples before the next. It knows no metric and keeps no state but the
 * family's name; any thread, appending to the caller's buffer. A name over HS_METRICS_NAME_MAX is a failed
 * assertion. */
#ifndef HS_HTTP_METRICS_H
#define HS_HTTP_METRICS_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/coarse_histogram.h"

#include <stddef.h>
#include <stdint.h>

#define HS_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum { HS_METRICS_NAME_MAX = 128 };

struct hs_metrics {
	struct hs_buf *text;
	char name[HS_METRICS_NAME_MAX]; /* of the current family */
};

/* The value is escaped for this format. Bytes from clients must go through hs_escape first. */
struct hs_metrics_label {
	const char *name;
	struct hs_bytes value;
};

struct hs_metrics_labels {
	const struct hs_metrics_label *labels;
	size_t count;
};

/* Writes HELP and TYPE. The name is `group` followed by `name`: "partition_", "reads_total". */
void hs_metrics_family(struct hs_metrics *metrics, const char *group, const char *name,
		       const char *type, const char *help);

void hs_metrics_value(struct hs_metrics *metrics, struct hs_metrics_labels labels, double value);
/* A sample whose value the caller has formatted already. It is written unchanged, so a 64-bit counter keeps every
 * digit. */
void hs_metrics_text(struct hs_metrics *metrics, struct hs_metrics_labels labels,
		     struct hs_bytes value);
/* Writes the buckets, the sum (in seconds) and the count of a histogram. Its times were rounded up to whole µs
 * before they were counted. */
void hs_metrics_histogram(struct hs_metrics *metrics, struct hs_metrics_labels labels,
			  const uint64_t counts[HS_COARSE_HISTOGRAM_BUCKETS], double sum_s);

#endif
