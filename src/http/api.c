/* JSON with jansson, one row at a time: no tree of the whole answer is built. */
#include "http/api.h"

#include "base/escape.h"
#include "base/mem.h"

#include <jansson.h>
#include <math.h>

enum { OK = 200, BAD_REQUEST = 400 };

/* ---- JSON ---- */

static int append_json(const char *data, size_t len, void *text)
{
	hs_buf_append(text, data, len);
	return 0;
}

/* 15 digits: fields are rounded already, and 0.1234 must not become 0.12340000000000001. */
static void append_value(json_t *value, struct hs_buf *text)
{
	hs_check(value != NULL);
	hs_check(json_dump_callback(value, append_json, text,
				    JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15)) == 0);
	json_decref(value);
}

static json_t *bytes_value(struct hs_bytes bytes)
{
	struct hs_buf text = {0};
	json_t *value;

	hs_escape(bytes, &text);
	value = json_stringn(text.data ? text.data : "", text.len);
	hs_buf_deinit(&text);
	return value;
}

static json_t *field_value(const struct hs_field *field, const void *row)
{
	struct hs_field_value value = hs_field_get(field, row);

	switch (field->kind) {
	case HS_FIELD_INT:
		return json_integer(value.integer);
	case HS_FIELD_REAL:
		return isfinite(value.real) ? json_real(value.real) : json_null();
	case HS_FIELD_TEXT:
	case HS_FIELD_BYTES:
		break;
	}
	return bytes_value(value.bytes);
}

static void append_row(const struct hs_fields *fields, const void *row, struct hs_buf *text)
{
	json_t *object = json_object();

	for (size_t i = 0; i < fields->count; i++) {
		const struct hs_field *field = &fields->fields[i];

		hs_check(json_object_set_new(object, field->name, field_value(field, row)) == 0);
	}
	append_value(object, text);
}

static void append_rows(const struct hs_fields *fields, const void *rows, size_t row_size,
			size_t count, struct hs_buf *text)
{
	hs_buf_append(text, "[", 1);
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			hs_buf_append(text, ",", 1);
		append_row(fields, (const char *)rows + i * row_size, text);
	}
	hs_buf_append(text, "]", 1);
}

static void begin_envelope(struct hs_now now, const char *name, const char *word,
			   struct hs_buf *text)
{
	hs_buf_printf(text, "{\"time\":%lld.%06lld,\"%s\":\"%s\",\"rows\":",
		      (long long)(now.wall_us / 1000000), (long long)(now.wall_us % 1000000), name,
		      word);
}

static void end_envelope(struct hs_buf *text)
{
	hs_buf_append(text, "}\n", 2);
}

/* ---- windows ---- */

#define WINDOW_PARAMETER                                                                           \
	{                                                                                          \
		.name = "window", .kind = HS_HTTP_WORD, .words = hs_board_window_words,            \
		.fallback = -1                                                                     \
	}

static enum hs_heat_window window_asked(const struct hs_board *board,
					const struct hs_http_value *value)
{
	return value->given ? (enum hs_heat_window)value->number : hs_board_window(board);
}

/* ---- /api/heat ---- */

enum { HEAT_WHAT, HEAT_COUNT, HEAT_BY, HEAT_WINDOW, HEAT_PREFIX };

const struct hs_http_parameter hs_api_heat_parameters[HS_API_HEAT_PARAMETERS] = {
	[HEAT_WHAT] = {.name = "what",
		       .kind = HS_HTTP_WORD,
		       .words = HS_WORDS("keys", "prefixes", "slots")},
	[HEAT_COUNT] = {.name = "count",
			.kind = HS_HTTP_INT,
			.min = 1,
			.max = HS_BOARD_TOP_MAX,
			.fallback = HS_BOARD_TOP_DEFAULT},
	[HEAT_BY] = {.name = "by", .kind = HS_HTTP_WORD, .words = hs_board_by_words},
	[HEAT_WINDOW] = WINDOW_PARAMETER,
	[HEAT_PREFIX] = {.name = "prefix", .kind = HS_HTTP_TEXT},
};
_Static_assert(HS_HEAT_KEYS == 0 && HS_HEAT_PREFIXES == 1 && HS_HEAT_SLOTS == 2,
	       "the order of the words");

unsigned hs_api_heat(struct hs_board *board, struct hs_now now,
		     const struct hs_http_request *request, struct hs_buf *body)
{
	const struct hs_http_value *values = request->values;
	size_t count = (size_t)values[HEAT_COUNT].number;
	struct hs_heat_query query = {
		.what = (enum hs_heat_what)values[HEAT_WHAT].number,
		.by = (enum hs_heat_by)values[HEAT_BY].number,
		.window = window_asked(board, &values[HEAT_WINDOW]),
		.starts = values[HEAT_PREFIX].text,
	};
	struct hs_field room[HS_BOARD_FIELDS_MAX];
	struct hs_fields fields;
	struct hs_board_row *rows;

	if (query.what == HS_HEAT_SLOTS && query.starts.len > 0) {
		hs_buf_printf(body,
			      "prefix= works with what=keys and what=prefixes only: slots have no "
			      "names\n");
		return BAD_REQUEST;
	}
	rows = hs_mem_alloc(count * sizeof *rows);
	count = hs_board_top(board, &query, rows, count);
	begin_envelope(now, "window", hs_board_window_words[query.window], body);
	fields = hs_board_fields_by(query.what, query.by, room);
	append_rows(&fields, rows, sizeof *rows, count, body);
	end_envelope(body);
	hs_mem_free(&rows);
	return OK;
}

/* ---- /api/partitions ---- */

const struct hs_http_parameter hs_api_partitions_parameters[HS_API_PARTITIONS_PARAMETERS] = {
	WINDOW_PARAMETER,
};

unsigned hs_api_partitions(struct hs_board *board, struct hs_now now,
			   const struct hs_http_request *request, struct hs_buf *body)
{
	enum hs_heat_window window = window_asked(board, &request->values[0]);
	size_t count = (size_t)hs_board_partitions_count(board) + 1;
	struct hs_board_partition *rows = hs_mem_alloc(count * sizeof *rows);

	hs_board_partitions(board, window, rows);
	begin_envelope(now, "window", hs_board_window_words[window], body);
	append_rows(&hs_board_partition_fields, rows, sizeof *rows, count, body);
	end_envelope(body);
	hs_mem_free(&rows);
	return OK;
}

/* ---- /api/history ---- */

enum { HISTORY_WHAT, HISTORY_SECONDS };
const struct hs_http_parameter hs_api_history_parameters[HS_API_HISTORY_PARAMETERS] = {
	[HISTORY_WHAT] = {.name = "what", .kind = HS_HTTP_WORD, .words = hs_board_second_words},
	[HISTORY_SECONDS] = {.name = "seconds",
			     .kind = HS_HTTP_INT,
			     .min = 1,
			     .max = HS_BOARD_SECONDS,
			     .fallback = HS_BOARD_SECONDS_DEFAULT},
};

static void append_ranges(const float *ranges, struct hs_buf *text)
{
	json_t *array = json_array();

	for (size_t i = 0; i < HS_HEAT_RANGES; i++)
		hs_check(json_array_append_new(array,
					       json_integer((json_int_t)roundf(ranges[i]))) == 0);
	append_value(array, text);
}

static void append_second(const struct hs_board_second *second, int64_t what, struct hs_buf *text)
{
	hs_buf_printf(text, "{\"time\":%lld,", (long long)second->wall_s);
	switch (what) {
	case HS_BOARD_SECOND_PARTITIONS:
		hs_buf_printf(text, "\"partitions\":");
		append_rows(&hs_board_second_partition_fields, second->partitions,
			    sizeof *second->partitions, second->partitions_count, text);
		break;
	case HS_BOARD_SECOND_TOP:
		hs_buf_printf(text,
			      "\"window\":\"%s\",\"keys\":", hs_board_window_words[second->window]);
		append_rows(hs_board_fields(HS_HEAT_KEYS), second->keys, sizeof *second->keys,
			    second->keys_count, text);
		break;
	default:
		hs_buf_printf(text, "\"ranges\":");
		append_ranges(second->ranges, text);
	}
	hs_buf_append(text, "}", 1);
}

/* The number of seconds that fit one answer. */
static size_t seconds_max(const struct hs_board *board, int64_t what)
{
	size_t rows = what == HS_BOARD_SECOND_PARTITIONS ? hs_board_second_partitions_max(board)
		      : what == HS_BOARD_SECOND_TOP	 ? (size_t)HS_BOARD_HISTORY_KEYS
							 : 1;
	size_t most = HS_API_ROWS_MAX / rows;

	return most < HS_BOARD_SECONDS ? most : HS_BOARD_SECONDS;
}

unsigned hs_api_history(struct hs_board *board, struct hs_now now,
			const struct hs_http_request *request, struct hs_buf *body)
{
	int64_t what = request->values[HISTORY_WHAT].number;
	size_t asked = (size_t)request->values[HISTORY_SECONDS].number;
	size_t most = seconds_max(board, what), count;

	if (asked > most) {
		hs_buf_printf(body,
			      "seconds=%zu: with %u partitions, an answer can have at most %zu\n",
			      asked, hs_board_second_partitions_max(board), most);
		return BAD_REQUEST;
	}
	count = hs_board_seconds(board, asked);
	begin_envelope(now, "what", hs_board_second_words[what], body);
	for (size_t i = 0; i < count; i++) {
		struct hs_board_second second = hs_board_second(board, asked, i);

		hs_buf_append(body, i == 0 ? "[" : ",", 1);
		append_second(&second, what, body);
	}
	hs_buf_printf(body, "%s]", count == 0 ? "[" : "");
	end_envelope(body);
	return OK;
}
