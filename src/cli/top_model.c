/* Parses replies into rows. Fields are found by name: unknown fields are ignored, missing ones stay unknown, so top
 * works with older and newer servers. Rows are maps in RESP3 and flat arrays of fields and values in RESP2; both are
 * read the same way. */
#include "cli/top.h"

#include "base/err.h"
#include "base/mem.h"
#include "wire/walk.h"

#include <math.h>
#include <stdlib.h>

struct field {
	const char *name;
	bool text;
	size_t at;
};

/* clang-format off */
#define ROW_NUMBER(name) {#name, false, offsetof(struct hs_top_row, name)},
#define PARTITION_NUMBER(name) {#name, false, offsetof(struct hs_top_partition, name)},
#define PARTITION_TEXT(name) {#name, true, offsetof(struct hs_top_partition, name)},

static const struct field row_fields[] = {
	{"key", true, offsetof(struct hs_top_row, name)},
	{"prefix", true, offsetof(struct hs_top_row, name)},
	HS_TOP_ROW_NUMBERS(ROW_NUMBER)
};

static const struct field partition_fields[] = {
	HS_TOP_PARTITION_TEXTS(PARTITION_TEXT)
	HS_TOP_PARTITION_NUMBERS(PARTITION_NUMBER)
};
/* clang-format on */

struct kind {
	const struct field *fields;
	size_t fields_count;
	size_t bytes; /* size of one row */
};

static const struct kind row_kind = {row_fields, sizeof row_fields / sizeof *row_fields,
				     sizeof(struct hs_top_row)};
static const struct kind partition_kind = {partition_fields,
					   sizeof partition_fields / sizeof *partition_fields,
					   sizeof(struct hs_top_partition)};

/* ---- walking a reply ---- */

static double number_of(const struct hs_parsed_reply *answer)
{
	char text[64], *end;
	double value;

	if (answer->type == HS_PARSED_INT || answer->type == HS_PARSED_BOOL)
		return (double)answer->integer;
	if (answer->text.len == 0 || answer->text.len >= sizeof text)
		return NAN;
	memcpy(text, answer->text.data, answer->text.len);
	text[answer->text.len] = '\0';
	value = strtod(text, &end);
	return *end ? NAN : value;
}

/* The digits of the integer that was just read. */
static struct hs_bytes digits_before(const struct hs_walk *walk, const struct hs_walk *before)
{
	const char *colon = memrchr(before->data, ':', (size_t)(walk->data - before->data));

	return (struct hs_bytes){colon + 1, (size_t)(walk->data - colon) - 3};
}

static const struct field *find_field(const struct kind *kind, struct hs_bytes name)
{
	for (size_t i = 0; i < kind->fields_count; i++) {
		if (hs_bytes_equal(name, hs_bytes_of(kind->fields[i].name)))
			return &kind->fields[i];
	}
	return NULL;
}

static void set_number(void *row, size_t at, double value)
{
	memcpy((char *)row + at, &value, sizeof value);
}

static void clear(const struct kind *kind, void *row)
{
	memset(row, 0, kind->bytes);
	for (size_t i = 0; i < kind->fields_count; i++) {
		if (!kind->fields[i].text)
			set_number(row, kind->fields[i].at, NAN);
	}
}

/* Reads one field: name and value. */
static bool read_pair(struct hs_walk *walk, const struct kind *kind, void *row)
{
	struct hs_bytes name;
	struct hs_parsed_reply value;
	const struct field *field;
	struct hs_walk before;

	if (hs_walk_text(walk, &name) < 0)
		return false;
	before = *walk;
	if (hs_walk_next(walk, &value) < 0)
		return false;
	if (value.count) { /* a nested value: not used */
		*walk = before;
		return hs_walk_skip(walk) == 0;
	}
	field = find_field(kind, name);
	if (!field)
		return true;
	if (field->text && value.type == HS_PARSED_INT) /* a partition's id may be one */
		value.text = digits_before(walk, &before);
	if (field->text)
		memcpy((char *)row + field->at, &value.text, sizeof value.text);
	else
		set_number(row, field->at, number_of(&value));
	return true;
}

static bool read_row(struct hs_walk *walk, const struct kind *kind, void *row)
{
	int64_t pairs;

	if (hs_walk_map(walk, &pairs) < 0)
		return false;
	clear(kind, row);
	for (int64_t i = 0; i < pairs; i++) {
		if (!read_pair(walk, kind, row))
			return false;
	}
	return true;
}

/* Reads the rows of a reply, at most `max`, into new memory. */
static bool read_rows(struct hs_bytes reply, const struct kind *kind, size_t max, void **rows,
		      size_t *count)
{
	struct hs_walk walk = {reply.data, reply.len};
	struct hs_parsed_reply head;

	if (hs_walk_next(&walk, &head) < 0)
		return false;
	if (head.type != HS_PARSED_ARRAY && head.type != HS_PARSED_NULL)
		return false;
	if ((uint64_t)head.count < max)
		max = (size_t)head.count;
	*rows = hs_mem_zalloc((max ? max : 1) * kind->bytes);
	for (*count = 0; *count < max; ++*count) {
		if (!read_row(&walk, kind, (char *)*rows + *count * kind->bytes))
			return false;
	}
	return true;
}

/* ---- the model ---- */

void hs_top_model_init(struct hs_top_model *model)
{
	*model = (struct hs_top_model){.uptime_s = NAN};
	clear(&partition_kind, &model->median);
}

void hs_top_model_deinit(struct hs_top_model *model)
{
	hs_buf_deinit(&model->bytes);
	hs_mem_free(&model->rows);
	hs_mem_free(&model->prefixes);
	hs_mem_free(&model->partitions);
	hs_top_model_init(model);
}

/* The value of the line "name:value" of INFO; empty if there is none. */
static struct hs_bytes info_field(struct hs_bytes info, const char *name)
{
	while (info.len > 0) {
		struct hs_bytes value = hs_bytes_cut(&info, '\n');

		if (hs_bytes_equal(hs_bytes_cut(&value, ':'), hs_bytes_of(name)))
			return hs_bytes_cut(&value, '\r');
	}
	return (struct hs_bytes){NULL, 0};
}

/* INFO may be an error (no permission): version and uptime stay unknown. */
static void read_info(struct hs_top_model *model, struct hs_bytes reply)
{
	struct hs_walk walk = {reply.data, reply.len};
	struct hs_parsed_reply head;

	if (hs_walk_next(&walk, &head) < 0 || head.type != HS_PARSED_BULK)
		return;
	model->version = info_field(head.text, "heatsink_version");
	head.text = info_field(head.text, "uptime_in_seconds");
	model->uptime_s = number_of(&head);
}

/* Moves the row `median` out of the rows of partitions. */
static void take_median(struct hs_top_model *model)
{
	size_t kept = 0;

	for (size_t i = 0; i < model->partitions_count; i++) {
		if (hs_bytes_equal(model->partitions[i].id, HS_LIT("median")))
			model->median = model->partitions[i];
		else
			model->partitions[kept++] = model->partitions[i];
	}
	model->partitions_count = kept;
}

/* The server cannot filter HEAT PREFIXES, so top does. Rows of HEAT TOP are filtered already; filtering again is
 * harmless. */
static void filter(struct hs_top_model *model, const struct hs_top_query *query)
{
	struct hs_bytes prefix = {query->prefix, query->prefix_len};
	size_t kept = 0;

	if (query->dimension == HS_TOP_SLOTS)
		return;
	for (size_t i = 0; i < model->rows_count; i++) {
		const struct hs_top_row *row = &model->rows[i];

		if (hs_bytes_begins(row->name, prefix))
			model->rows[kept++] = *row;
	}
	model->rows_count = kept;
}

static bool read_all(struct hs_top_model *model, const struct hs_top_query *query,
		     const struct hs_top_replies *replies)
{
	struct hs_bytes reply[HS_TOP_REPLIES_MAX];

	if (replies->count < 3 || replies->bytes.len == 0)
		return false;
	hs_buf_append_bytes(&model->bytes, hs_buf_bytes(&replies->bytes));
	for (size_t i = 0, at = 0; i < replies->count; at = replies->ends[i++])
		reply[i] = (struct hs_bytes){model->bytes.data + at, replies->ends[i] - at};
	read_info(model, reply[0]);
	if (!read_rows(reply[1], &partition_kind, HS_TOP_PARTITIONS_MAX,
		       (void **)&model->partitions, &model->partitions_count))
		return false;
	take_median(model);
	if (!read_rows(reply[2], &row_kind, HS_TOP_ROWS_MAX, (void **)&model->rows,
		       &model->rows_count))
		return false;
	filter(model, query);
	model->dimension = query->dimension;
	model->loaded = true;
	return replies->count < 4 || read_rows(reply[3], &row_kind, HS_TOP_PREFIX_ROWS,
					       (void **)&model->prefixes, &model->prefixes_count);
}

int hs_top_model_read(struct hs_top_model *model, const struct hs_top_query *query,
		      const struct hs_top_replies *replies)
{
	struct hs_top_model fresh;

	hs_top_model_init(&fresh);
	if (!read_all(&fresh, query, replies)) {
		hs_top_model_deinit(&fresh);
		return HS_EPROTO;
	}
	hs_top_model_deinit(model);
	*model = fresh;
	return 0;
}

/* ---- order ---- */

const size_t hs_top_sort_fields[HS_TOP_SORTS] = {
	[HS_TOP_BY_OPS] = offsetof(struct hs_top_row, ops),
	[HS_TOP_BY_READS] = offsetof(struct hs_top_row, reads),
	[HS_TOP_BY_WRITES] = offsetof(struct hs_top_row, writes),
	[HS_TOP_BY_BYTES] = offsetof(struct hs_top_row, bytes),
	[HS_TOP_BY_LATENCY] = offsetof(struct hs_top_row, p99_us),
};

static double weight(const struct hs_top_row *row, enum hs_top_sort sort)
{
	double value = hs_top_number(row, hs_top_sort_fields[sort]);

	if (sort == HS_TOP_BY_OPS && isfinite(row->ops_low))
		value = row->ops_low;
	return isfinite(value) ? value : -1;
}

static int compare(const void *a, const void *b, void *context)
{
	const struct hs_top_row *left = a, *right = b;
	enum hs_top_sort sort = *(const enum hs_top_sort *)context;
	double difference = weight(right, sort) - weight(left, sort);
	int names = hs_bytes_compare(left->name, right->name);

	if (difference != 0)
		return difference > 0 ? 1 : -1;
	return names ? names : (left->slot > right->slot) - (left->slot < right->slot);
}

void hs_top_model_sort(struct hs_top_model *model, enum hs_top_sort sort)
{
	if (model->rows_count)
		qsort_r(model->rows, model->rows_count, sizeof *model->rows, compare, &sort);
}
