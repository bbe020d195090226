/* Composes metrics in the text format of Prometheus, version 0.0.4. Every name starts with
 * heatsink_. A family is begun once, and all its samples follow before the next begins. */
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
	char name[HS_METRICS_NAME_MAX]; /* of the family under way */
};

/* The value is escaped as the format wants it; a client's bytes go through hs_escape before. */
struct hs_metrics_label {
	const char *name;
	struct hs_bytes value;
};

struct hs_metrics_labels {
	const struct hs_metrics_label *labels;
	size_t count;
};

/* HELP and TYPE. The name is `group` and `name` together: "partition_", "reads_total". */
void hs_metrics_family(struct hs_metrics *metrics, const char *group, const char *name,
		       const char *type, const char *help);

void hs_metrics_value(struct hs_metrics *metrics, struct hs_metrics_labels labels, double value);
/* A value that is text already, exact to the last digit. */
void hs_metrics_text(struct hs_metrics *metrics, struct hs_metrics_labels labels,
		     struct hs_bytes value);
/* Buckets, sum and count of a ladder of times in µs that were rounded up. */
void hs_metrics_histogram(struct hs_metrics *metrics, struct hs_metrics_labels labels,
			  const uint64_t counts[HS_COARSE_HISTOGRAM_BUCKETS], double sum_s);

#endif
