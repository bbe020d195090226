/* A field that operators see: one name, one meaning, in RESP, JSON, metrics and `heatsink top`. Rows
 * of one kind have one table of fields; whoever shows a row walks the table. */
#ifndef HS_TELEMETRY_FIELD_H
#define HS_TELEMETRY_FIELD_H

#include "base/bytes.h"

#include <stddef.h>
#include <stdint.h>

enum { HS_FIELD_DECIMALS = 4 }; /* of a REAL, rounded already; zeros at the end are not shown */

enum hs_field_kind {
	HS_FIELD_INT,
	HS_FIELD_REAL,
	HS_FIELD_TEXT,	/* our own words: plain ASCII */
	HS_FIELD_BYTES, /* a client's: any bytes; shown as they are in RESP, escaped elsewhere */
};

struct hs_field_value {
	int64_t integer;
	double real;
	struct hs_bytes bytes; /* TEXT and BYTES: inside the row */
};

/* The member of a row that a field shows. */
enum hs_field_member {
	HS_MEMBER_NONE,	 /* the field has a `get` */
	HS_MEMBER_WHOLE, /* 16, 32 or 64 bits, never negative */
	/* A double or a float: an INT is the nearest whole number, a REAL has HS_FIELD_DECIMALS. */
	HS_MEMBER_REAL,
	HS_MEMBER_FLOOR, /* the same, rounded down: what adds up to a rounded sum, or less */
	HS_MEMBER_CEIL,	 /* the same, rounded up */
	HS_MEMBER_WORDS, /* an array of characters with a zero behind them */
};

#define HS_MEMBER(type, kind, path)                                                                \
	.member = HS_MEMBER_##kind, .at = offsetof(type, path), .size = sizeof((type *)0)->path

struct hs_field {
	const char *name;
	enum hs_field_kind kind;
	const char *help;
	enum hs_field_member member;
	size_t at, size; /* where it stands in the row, and how many bytes it has */
	struct hs_field_value (*get)(const void *row);
	/* As a metric: its name behind heatsink_partition_ (base units, _total), its type and what
	 * to multiply with; NULL: not a metric. */
	const char *metric;
	const char *metric_type; /* "gauge" or "counter" */
	const char *metric_help; /* NULL: the field's */
	double factor;		 /* of the metric, to base units; 0 means 1 */
	/* A counter counts since the start where the field is a rate; NULL: the field's value. */
	double (*metric_get)(const void *row);
};

struct hs_fields {
	const struct hs_field *fields;
	size_t count;
};

/* Those of an array. */
#define HS_FIELDS(array)                                                                           \
	{                                                                                          \
		.fields = (array), .count = sizeof(array) / sizeof *(array)                        \
	}

struct hs_field_value hs_field_get(const struct hs_field *field, const void *row);
/* A member that is a number, as it stands in the row. */
double hs_field_member(const struct hs_field *field, const void *row);

/* What a field is as a number. TEXT and BYTES are 0. */
static inline double hs_field_number(const struct hs_field *field, const void *row)
{
	struct hs_field_value value = hs_field_get(field, row);

	return field->kind == HS_FIELD_INT ? (double)value.integer : value.real;
}

/* The metric's value, in base units. */
static inline double hs_field_metric(const struct hs_field *field, const void *row)
{
	double value = field->metric_get ? field->metric_get(row) : hs_field_number(field, row);

	return field->factor == 0 ? value : value * field->factor;
}

#endif
