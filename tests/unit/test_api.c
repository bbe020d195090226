/* Goal: the board as JSON and as metrics is valid for any bytes in keys, has every field under its own name, and
 * shows the board's numbers.
 *
 * Method: a board over the heat of one worker. Answers are parsed with jansson and compared with the rows of the
 * board. */
#include "http/api.h"

#include "base/escape.h"
#include "base/mem.h"
#include "http/board_metrics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <jansson.h>

enum { PARTITIONS = 4, SECOND_US = 1000000 };

static const struct hs_bytes names[] = {
	{"user:1", 6}, {"a\"b\\c", 5}, {"line\nfeed\r\t", 11}, {"\xff\xfe\0x", 4}, {"\xc3\xa4", 2},
};
enum { NAMES = sizeof names / sizeof *names };

struct world {
	struct hs_heat *heat;
	struct hs_board *board;
	struct hs_engine_partition facts[PARTITIONS];
	struct hs_now now;
	struct hs_buf body;
};

static int setup(void **state)
{
	struct world *world = hs_mem_zalloc(sizeof *world);
	struct hs_heat_options options = {.seed = 7, .partitions = PARTITIONS};

	world->heat = hs_heat_create(&options);
	world->board = hs_board_create(&world->heat, 1, PARTITIONS);
	world->now = (struct hs_now){.mono_us = 5 * SECOND_US, .wall_us = 1700000000000000};
	for (size_t i = 0; i < PARTITIONS; i++)
		snprintf(world->facts[i].slots, sizeof world->facts[i].slots, "%zu-%zu", i * 4096,
			 i * 4096 + 4095);
	hs_heat_now(world->heat, world->now.mono_us);
	hs_board_sample(world->board, world->now, world->facts);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	hs_board_destroy(&world->board);
	hs_heat_destroy(&world->heat);
	hs_buf_deinit(&world->body);
	hs_mem_free(&world);
	return 0;
}

/* Three and a half seconds of traffic: every 100 ms, name i gets 100 · (i + 1) requests. */
static void live(struct world *world)
{
	for (int tenth = 0; tenth < 35; tenth++) {
		for (size_t i = 0; i < NAMES; i++) {
			struct hs_heat_access access = {
				.key = names[i],
				.bytes = 100,
				.slot = (uint16_t)(4096 * (i % PARTITIONS) + i),
				.partition = (uint16_t)(i % PARTITIONS),
				.write = i % 2 == 1,
			};

			for (size_t j = 0; j < 100 * (i + 1); j++)
				hs_heat_add(world->heat, &access, 50000);
		}
		world->now.mono_us += SECOND_US / 10;
		world->now.wall_us += SECOND_US / 10;
		hs_heat_now(world->heat, world->now.mono_us);
		hs_board_sample(world->board, world->now, world->facts);
	}
}

typedef unsigned compose(struct hs_board *board, struct hs_now now,
			 const struct hs_http_request *request, struct hs_buf *body);

/* Calls `function` with a query of "name=value" words and parses the JSON. */
static json_t *ask(struct world *world, compose *function,
		   const struct hs_http_parameter *parameters, size_t parameters_count,
		   const char *query, unsigned status)
{
	struct hs_http_route route = {
		.path = "/api", .parameters = parameters, .parameters_count = parameters_count};
	struct hs_http_request request;
	struct hs_buf why = {0};
	json_t *answer;

	hs_http_request_init(&request, &route);
	while (*query) {
		size_t len = strcspn(query, "&"), name = strcspn(query, "=");

		assert_int_equal(hs_http_request_set(
					 &request, (struct hs_bytes){query, name},
					 (struct hs_bytes){query + name + 1, len - name - 1}, &why),
				 0);
		query += len + (query[len] == '&');
	}
	world->body.len = 0;
	assert_int_equal(function(world->board, world->now, &request, &world->body), status);
	if (status != 200)
		return NULL;
	answer = json_loadb(world->body.data, world->body.len, 0, NULL);
	assert_non_null(answer);
	return answer;
}

static json_t *ask_heat(struct world *world, const char *query)
{
	return ask(world, hs_api_heat, hs_api_heat_parameters, HS_API_HEAT_PARAMETERS, query, 200);
}

static void assert_word(json_t *object, const char *name, const char *word)
{
	assert_non_null(json_object_get(object, name));
	assert_string_equal(json_string_value(json_object_get(object, name)), word);
}

/* A JSON row has exactly the fields of the table, in order, with the values of `row`. */
static void assert_row(json_t *object, const struct hs_fields *fields, const void *row)
{
	void *member = json_object_iter(object);

	for (size_t i = 0; i < fields->count; i++) {
		const struct hs_field *field = &fields->fields[i];
		json_t *value = json_object_iter_value(member);
		struct hs_buf text = {0};

		assert_string_equal(json_object_iter_key(member), field->name);
		switch (field->kind) {
		case HS_FIELD_INT:
			assert_int_equal(json_integer_value(value),
					 hs_field_get(field, row).integer);
			break;
		case HS_FIELD_REAL:
			assert_true(json_is_real(value));
			assert_true(json_real_value(value) == hs_field_get(field, row).real);
			break;
		case HS_FIELD_TEXT:
		case HS_FIELD_BYTES:
			hs_escape(hs_field_get(field, row).bytes, &text);
			assert_int_equal(json_string_length(value), text.len);
			assert_memory_equal(json_string_value(value), text.data, text.len);
			hs_buf_deinit(&text);
		}
		member = json_object_iter_next(object, member);
	}
	assert_null(member);
}

static void test_heat(void **state)
{
	static const struct {
		const char *query;
		enum hs_heat_what what;
		enum hs_heat_by by;
		enum hs_heat_window window;
		size_t count;
	} cases[] = {
		{"window=short", HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_SHORT, NAMES},
		{"window=long&count=2", HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_LONG, 2},
		{"window=long&by=writes&count=2", HS_HEAT_KEYS, HS_HEAT_BY_WRITES, HS_HEAT_LONG, 2},
		{"window=long&what=prefixes", HS_HEAT_PREFIXES, HS_HEAT_BY_OPS, HS_HEAT_LONG, 1},
		{"window=long&what=slots", HS_HEAT_SLOTS, HS_HEAT_BY_OPS, HS_HEAT_LONG, NAMES},
	};
	struct world *world = *state;

	live(world);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_heat_query query = {
			.what = cases[i].what, .by = cases[i].by, .window = cases[i].window};
		struct hs_board_row rows[10];
		json_t *answer = ask_heat(world, cases[i].query);
		json_t *list = json_object_get(answer, "rows");
		size_t count = hs_board_top(world->board, &query, rows, cases[i].count);

		assert_word(answer, "window", query.window == HS_HEAT_SHORT ? "short" : "long");
		assert_true(json_real_value(json_object_get(answer, "time")) == 1700000003.5);
		assert_int_equal(count, cases[i].count);
		assert_int_equal(json_array_size(list), count);
		for (size_t j = 0; j < count; j++)
			assert_row(json_array_get(list, j), hs_board_fields(query.what), &rows[j]);
		json_decref(answer);
	}
}

static void test_names_start_alike(void **state)
{
	struct world *world = *state;
	json_t *answer;

	live(world);
	answer = ask_heat(world, "prefix=us");
	assert_int_equal(json_array_size(json_object_get(answer, "rows")), 1);
	assert_word(json_array_get(json_object_get(answer, "rows"), 0), "key", "user:1");
	json_decref(answer);
	answer = ask_heat(world, "prefix=nothing");
	assert_int_equal(json_array_size(json_object_get(answer, "rows")), 0);
	json_decref(answer);
	ask(world, hs_api_heat, hs_api_heat_parameters, HS_API_HEAT_PARAMETERS,
	    "what=slots&prefix=a", 400);
}

static void test_an_idle_board(void **state)
{
	struct world *world = *state;
	json_t *answer = ask_heat(world, "");

	assert_word(answer, "window", "long");
	assert_int_equal(json_array_size(json_object_get(answer, "rows")), 0);
	json_decref(answer);
	answer = ask(world, hs_api_history, hs_api_history_parameters, HS_API_HISTORY_PARAMETERS,
		     "", 200);
	assert_int_equal(json_array_size(json_object_get(answer, "rows")), 0);
	json_decref(answer);
}

static void test_partitions(void **state)
{
	struct world *world = *state;
	struct hs_board_partition rows[PARTITIONS + 1];
	json_t *answer, *list;

	live(world);
	hs_board_partitions(world->board, HS_HEAT_SHORT, rows);
	answer = ask(world, hs_api_partitions, hs_api_partitions_parameters,
		     HS_API_PARTITIONS_PARAMETERS, "window=short", 200);
	list = json_object_get(answer, "rows");
	assert_int_equal(json_array_size(list), PARTITIONS + 1);
	for (size_t i = 0; i <= PARTITIONS; i++)
		assert_row(json_array_get(list, i), &hs_board_partition_fields, &rows[i]);
	assert_word(json_array_get(list, PARTITIONS), "id", "median");
	json_decref(answer);
}

static void test_history(void **state)
{
	static const char *const kinds[] = {"partitions", "top", "ranges"};
	static const char *const lists[] = {"partitions", "keys", "ranges"};
	struct world *world = *state;

	live(world);
	for (size_t kind = 0; kind < 3; kind++) {
		char query[64];
		json_t *answer, *seconds;

		snprintf(query, sizeof query, "what=%s&seconds=2", kinds[kind]);
		answer = ask(world, hs_api_history, hs_api_history_parameters,
			     HS_API_HISTORY_PARAMETERS, query, 200);
		seconds = json_object_get(answer, "rows");
		assert_word(answer, "what", kinds[kind]);
		assert_int_equal(json_array_size(seconds), 2);
		for (size_t i = 0; i < 2; i++) {
			struct hs_board_second second = hs_board_second(world->board, 2, i);
			json_t *object = json_array_get(seconds, i);
			json_t *list = json_object_get(object, lists[kind]);

			assert_int_equal(json_integer_value(json_object_get(object, "time")),
					 second.wall_s);
			assert_int_equal(second.wall_s, 1700000001 + (int64_t)i);
			if (kind == 0) {
				assert_int_equal(json_array_size(list), PARTITIONS);
				for (size_t j = 0; j < PARTITIONS; j++)
					assert_row(json_array_get(list, j),
						   &hs_board_second_partition_fields,
						   &second.partitions[j]);
			} else if (kind == 1) {
				assert_word(object, "window",
					    second.window == HS_HEAT_SHORT ? "short" : "long");
				assert_int_equal(json_array_size(list), NAMES);
				for (size_t j = 0; j < NAMES; j++)
					assert_row(json_array_get(list, j),
						   hs_board_fields(HS_HEAT_KEYS), &second.keys[j]);
			} else {
				assert_int_equal(json_array_size(list), HS_HEAT_RANGES);
				assert_int_equal(json_integer_value(json_array_get(list, 0)), 6000);
			}
		}
		json_decref(answer);
	}
}

static void test_history_is_bounded(void **state)
{
	enum { MANY = 256 };
	struct world *world = *state;
	struct hs_heat_options options = {.partitions = MANY};
	struct hs_heat *heat = hs_heat_create(&options);
	struct hs_board *board = hs_board_create(&heat, 1, MANY), *few = world->board;

	world->board = board;
	ask(world, hs_api_history, hs_api_history_parameters, HS_API_HISTORY_PARAMETERS,
	    "seconds=79", 400);
	hs_buf_append(&world->body, "", 1);
	assert_string_equal(world->body.data,
			    "seconds=79: with 256 partitions, an answer can have at most 78\n");
	json_decref(ask(world, hs_api_history, hs_api_history_parameters, HS_API_HISTORY_PARAMETERS,
			"seconds=78", 200));
	json_decref(ask(world, hs_api_history, hs_api_history_parameters, HS_API_HISTORY_PARAMETERS,
			"what=ranges&seconds=600", 200));
	json_decref(ask(world, hs_api_history, hs_api_history_parameters, HS_API_HISTORY_PARAMETERS,
			"what=top&seconds=600", 200));
	world->board = few;
	hs_board_destroy(&board);
	hs_heat_destroy(&heat);
}

static void assert_line(const struct hs_buf *text, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void assert_line(const struct hs_buf *text, const char *format, ...)
{
	char line[256];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	if (!memmem(text->data, text->len, line, strlen(line)))
		fail_msg("no %s in:\n%.*s", line, (int)text->len, text->data);
}

static void test_partitions_as_metrics(void **state)
{
	struct world *world = *state;
	struct hs_metrics metrics = {.text = &world->body};
	const struct hs_fields *fields = &hs_board_partition_fields;
	size_t families = 0;

	live(world);
	hs_metrics_partitions(&metrics, world->board);
	for (size_t i = 0; i < fields->count; i++) {
		if (!fields->fields[i].metric)
			continue;
		families++;
		assert_line(&world->body,
			    "\n# TYPE heatsink_partition_%s %s\nheatsink_partition_%s"
			    "{partition=\"0\"} ",
			    fields->fields[i].metric, fields->fields[i].metric_type,
			    fields->fields[i].metric);
	}
	assert_true(families > 8);
	/* Partition 0 holds names 0 and 4. They got 100 and 500 requests of 50 µs, 35 times. */
	assert_line(&world->body, "\nheatsink_partition_ops_total{partition=\"0\"} 21000\n");
	assert_line(&world->body, "\nheatsink_partition_reads_total{partition=\"0\"} 21000\n");
	assert_line(&world->body, "\nheatsink_partition_writes_total{partition=\"1\"} 7000\n");
	assert_line(&world->body, "\nheatsink_partition_bytes_total{partition=\"1\"} 700000\n");
	assert_line(&world->body, "\nheatsink_partition_request_duration_seconds_bucket{"
				  "partition=\"0\",le=\"3.1e-05\"} 0\n");
	assert_line(&world->body, "\nheatsink_partition_request_duration_seconds_bucket{"
				  "partition=\"0\",le=\"6.3e-05\"} 21000\n");
	assert_line(&world->body, "\nheatsink_partition_request_duration_seconds_sum{"
				  "partition=\"0\"} 1.05\n");
	assert_line(&world->body, "\nheatsink_partition_request_duration_seconds_count{"
				  "partition=\"0\"} 21000\n");
	assert_null(memmem(world->body.data, world->body.len, "median", 6));
}

static void test_keys_as_metrics(void **state)
{
	struct world *world = *state;
	struct hs_metrics metrics = {.text = &world->body};
	struct hs_heat_query query = {.window = HS_HEAT_LONG};
	struct hs_board_row rows[NAMES];

	live(world);
	assert_int_equal(hs_board_top(world->board, &query, rows, NAMES), NAMES);
	hs_metrics_keys(&metrics, world->board, 2, false);
	assert_line(&world->body,
		    "\nheatsink_key_ops{key=\"%s\"} %lld\nheatsink_key_ops{key=\"%s\"} ",
		    rows[0].hash, (long long)ceil(rows[0].heat.window[1].ops_high), rows[1].hash);
	assert_null(memmem(world->body.data, world->body.len, rows[2].hash, 16));
	assert_null(memmem(world->body.data, world->body.len, "\u00e4", 2));
	world->body.len = 0;
	hs_metrics_keys(&metrics, world->board, HS_METRICS_KEYS_MAX, true);
	assert_line(&world->body, "\nheatsink_key_ops{key=\"user:1\"} ");
	assert_line(&world->body, "\nheatsink_key_ops{key=\"a\\\\\\\"b\\\\\\\\c\"} ");
	assert_line(&world->body, "\nheatsink_key_ops{key=\"line\\\\nfeed\\\\r\\\\t\"} ");
	assert_line(&world->body, "\nheatsink_key_ops{key=\"\\\\xff\\\\xfe\\\\x00x\"} ");
	assert_line(&world->body, "\nheatsink_key_ops{key=\"\u00e4\"} ");
	world->body.len = 0;
	hs_metrics_keys(&metrics, world->board, 0, true);
	assert_null(memmem(world->body.data, world->body.len, "{", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_heat, setup, teardown),
		cmocka_unit_test_setup_teardown(test_names_start_alike, setup, teardown),
		cmocka_unit_test_setup_teardown(test_an_idle_board, setup, teardown),
		cmocka_unit_test_setup_teardown(test_partitions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_history, setup, teardown),
		cmocka_unit_test_setup_teardown(test_history_is_bounded, setup, teardown),
		cmocka_unit_test_setup_teardown(test_partitions_as_metrics, setup, teardown),
		cmocka_unit_test_setup_teardown(test_keys_as_metrics, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
