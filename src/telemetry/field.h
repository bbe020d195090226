/* A field that operators see: one name and one meaning in RESP, JSON, metrics and `heatsink top`. Each kind of
 * row has one table of fields; RESP, JSON and metrics are written by walking the table. Knows no output format.
 * Pure: any thread that may read the row. */
#ifndef HS_TELEMETRY_FIELD_H
#define HS_TELEMETRY_FIELD_H

#include "base/bytes.h"

#include <stddef.h>
#include <stdint.h>

enum { HS_FIELD_DECIMALS = 4 }; /* of a REAL, rounded; trailing zeros are not shown */

enum hs_field_kind {
	HS_FIELD_INT,
	HS_FIELD_REAL,
	HS_FIELD_TEXT,	/* heatsink's own words: plain ASCII */
	HS_FIELD_BYTES, /* a client's bytes: shown unchanged in RESP, escaped elsewhere */
};

struct hs_field_value {
	int64_t integer;
	double real;
	struct hs_bytes bytes; /* TEXT and BYTES: point into the row */
};

/* How a field finds its value in the row. */
enum hs_field_member {
	HS_MEMBER_NONE,	 /* by the field's `get` */
	HS_MEMBER_WHOLE, /* unsigned, 16, 32 or 64 bits */
	/* A double or a float. An INT is rounded to the nearest whole number, a REAL to HS_FIELD_DECIMALS. */
	HS_MEMBER_REAL,
	HS_MEMBER_FLOOR, /* as REAL, rounded down: a lower bound, or a part of a rounded sum */
	HS_MEMBER_CEIL,	 /* as REAL, rounded up: an upper bound */
	HS_MEMBER_WORDS, /* a char array that ends with a zero byte */
};

#define HS_MEMBER(type, kind, path)                                                                \
	.member = HS_MEMBER_##kind, .at = offsetof(type, path), .size = sizeof((type *)0)->path

struct hs_field {
	const char *name;
	enum hs_field_kind kind;
	const char *help;
	enum hs_field_member member;
	size_t at, size; /* offset and size of the member in the row */
	struct hs_field_value (*get)(const void *row);
	/* As a metric: name behind the prefix heatsink_partition_ (base units, _total), type, and factor. NULL:
	 * not a metric. */
	const char *metric;
	const char *metric_type; /* "gauge" or "counter" */
	const char *metric_help; /* NULL: the field's help */
	double factor;		 /* to base units; 0 means 1 */
	/* Value exported as a metric, for fields that show a rate but export the total since the start; NULL:
	 * the field's value. */
	double (*metric_get)(const void *row);
};

struct hs_fields {
	const struct hs_field *fields;
	size_t count;
};

/* The table of fields in an array. */
#define HS_FIELDS(array)                                                                           \
	{                                                                                          \
		.fields = (array), .count = sizeof(array) / sizeof *(array)                        \
	}

struct hs_field_value hs_field_get(const struct hs_field *field, const void *row);
/* A numeric member, unrounded. */
double hs_field_member(const struct hs_field *field, const void *row);

/* The field as a number; TEXT and BYTES are 0. */
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
