/* Goal: the recorder of `storm --command all --verify` turns requests and replies into a history that is judged
 * correctly; refusals, lost connections and unknown outcomes have the right effect.
 *
 * Method: each test plays a few requests on one or two keys, closes the window (the history recorded so far)
 * and compares the findings. The checker of histories has tests of its own. */
#include "cli/storm_history.h"

#include "base/mem.h"
#include "cli/storm_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct world {
	struct hs_storm_options options;
	struct hs_storm_history *history;
};

static char folder[] = "/tmp/heatsink-storm-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	static const char *const keys[] = {"0-0", "1-0", "0-1"};
	char path[128];

	(void)state;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		snprintf(path, sizeof path, "%s/storm-history-key-00001234-%s.txt", folder,
			 keys[i]);
		unlink(path);
	}
	return rmdir(folder);
}

static struct world *begin(void)
{
	struct world *world = hs_mem_zalloc(sizeof *world);

	world->options.keys = 2;
	world->options.window = 1000;
	world->options.prefix = "key:";
	world->options.history_folder = folder;
	world->history = hs_storm_history_create(&world->options, 0x1234);
	return world;
}

static void end(struct world *world, uint64_t failures, const char *text)
{
	const struct hs_storm_findings *findings;

	hs_storm_history_close(world->history);
	findings = hs_storm_history_findings(world->history);
	if (findings->failed != failures)
		print_message("%s\n", findings->text[0]);
	assert_int_equal(findings->failed, failures);
	assert_int_equal(findings->undecided, 0);
	if (text)
		assert_non_null(strstr(findings->text[0], text));
	hs_storm_history_destroy(&world->history);
	hs_mem_free(&world);
}

static void name_is(const struct world *world, uint64_t key, const char *expected)
{
	char name[100];

	hs_storm_history_name(world->history, key, name, sizeof name);
	assert_string_equal(name, expected);
}

/* ---- requests ---- */

static struct hs_storm_request ask_of(struct world *world, uint32_t client, struct hs_sim_op op,
				      enum hs_storm_form form)
{
	op.client = client;
	return (struct hs_storm_request){
		.kind = HS_STORM_ACT,
		.key = op.key,
		.reply_shape = HS_STORM_REPLY_ONE,
		.record = hs_storm_history_add(world->history, &op, form),
		.records = 1,
	};
}

static struct hs_storm_request ask_get(struct world *world, uint32_t client)
{
	return ask_of(world, client, (struct hs_sim_op){.kind = HS_SIM_GET}, HS_STORM_FORM_VALUE);
}

static struct hs_storm_request ask_set(struct world *world, uint32_t client, int64_t value)
{
	return ask_of(world, client, (struct hs_sim_op){.kind = HS_SIM_SET, .argument = value},
		      HS_STORM_FORM_OK);
}

static struct hs_storm_request ask_add(struct world *world, uint32_t client, int64_t number)
{
	return ask_of(world, client, (struct hs_sim_op){.kind = HS_SIM_INCRBY, .argument = number},
		      HS_STORM_FORM_NUMBER);
}

/* A request of several operations: with `as_one` a transaction on one key, else one operation on each key. */
static struct hs_storm_request ask_both(struct world *world, enum hs_sim_kind kind,
					enum hs_storm_reply_shape reply_shape, bool as_one)
{
	struct hs_storm_request request = {
		.kind = HS_STORM_ACT, .reply_shape = (uint8_t)reply_shape, .records = 2};

	for (uint32_t i = 0; i < 2; i++) {
		struct hs_sim_op op = {.kind = kind,
				       .client = 1,
				       .key = as_one ? 0 : i,
				       .more = as_one && i == 0,
				       .argument = 100 + i};
		uint32_t record = hs_storm_history_add(world->history, &op,
						       kind == HS_SIM_SET ? HS_STORM_FORM_OK
									  : HS_STORM_FORM_VALUE);

		if (i == 0)
			request.record = record;
	}
	return request;
}

/* ---- replies ---- */

/* Passes in a reply, as the server sends it. */
static void reply(struct world *world, struct hs_storm_request request, const char *wire)
{
	struct hs_parsed_reply answer;
	int64_t head = hs_parse_reply_head(&answer, wire, strlen(wire));

	assert_true(head > 0);
	hs_storm_history_answer(world->history, &request, &answer, hs_bytes_of(wire + head));
}

static void get(struct world *world, const char *wire)
{
	reply(world, ask_get(world, 9), wire);
}

/* ---- answered requests ---- */

static void test_an_honest_window(void **state)
{
	struct world *world = begin();

	(void)state;
	reply(world, ask_set(world, 1, 5), "+OK\r\n");
	reply(world, ask_add(world, 2, 3), ":8\r\n");
	get(world, "$1\r\n8\r\n");
	reply(world,
	      ask_of(world, 1, (struct hs_sim_op){.kind = HS_SIM_EXISTS}, HS_STORM_FORM_NUMBER),
	      ":1\r\n");
	reply(world,
	      ask_of(world, 1, (struct hs_sim_op){.kind = HS_SIM_SETNX, .argument = 1},
		     HS_STORM_FORM_OK_NOT),
	      "$-1\r\n");
	reply(world, ask_of(world, 1, (struct hs_sim_op){.kind = HS_SIM_TTL}, HS_STORM_FORM_NUMBER),
	      ":-1\r\n");
	end(world, 0, NULL);
}

static void test_a_stale_read_is_named(void **state)
{
	struct world *world = begin();

	(void)state;
	reply(world, ask_set(world, 1, 5), "+OK\r\n");
	reply(world, ask_set(world, 1, 6), "+OK\r\n");
	get(world, "$1\r\n5\r\n");
	get(world, "$1\r\n6\r\n");
	end(world, 1, "GET key0 → 5");
}

static void test_a_window_without_an_order_is_kept(void **state)
{
	struct world *world = begin();
	struct hs_buf path = {0};
	FILE *out = tmpfile();
	const char *text, *at;

	(void)state;
	reply(world, ask_set(world, 1, 5), "+OK\r\n");
	reply(world, ask_set(world, 1, 6), "+OK\r\n");
	get(world, "$1\r\n5\r\n");
	hs_storm_history_close(world->history);
	text = hs_storm_history_findings(world->history)->text[0];
	at = strstr(text, "--check-history ");
	assert_non_null(at);
	hs_buf_printf(&path, "%.*s", (int)strcspn(at + 8, "'"), at + 8);
	hs_buf_append(&path, "", 1);
	assert_int_equal(hs_storm_check_file(path.data, out, out), 1);
	fclose(out);
	hs_buf_deinit(&path);
	end(world, 1, "GET key0 → 5");
}

static void test_pipelined_requests_keep_their_order(void **state)
{
	struct world *world = begin();
	struct hs_storm_request first, second;

	(void)state;
	first = ask_set(world, 1, 5);
	second = ask_get(world, 1);
	reply(world, first, "+OK\r\n");
	reply(world, second, "$-1\r\n");
	end(world, 1, "no order");

	world = begin();
	first = ask_set(world, 1, 5);
	second = ask_get(world, 2); /* a request of another client may run before the SET */
	reply(world, first, "+OK\r\n");
	reply(world, second, "$-1\r\n");
	end(world, 0, NULL);
}

static void test_replies_of_the_wrong_type(void **state)
{
	struct world *world = begin();

	(void)state;
	reply(world, ask_set(world, 1, 5), ":1\r\n");
	get(world, "$4\r\nword\r\n");
	reply(world, ask_both(world, HS_SIM_GET, HS_STORM_REPLY_EACH, false), "*1\r\n$-1\r\n");
	end(world, 3, "a reply of the wrong type");
}

static void test_replies_about_several_keys(void **state)
{
	struct world *world = begin();

	(void)state;
	reply(world, ask_both(world, HS_SIM_SET, HS_STORM_REPLY_SHARED, false), "+OK\r\n");
	reply(world, ask_both(world, HS_SIM_GET, HS_STORM_REPLY_EACH, false),
	      "*2\r\n$3\r\n100\r\n$3\r\n101\r\n");
	end(world, 0, NULL);

	world = begin();
	reply(world, ask_both(world, HS_SIM_SET, HS_STORM_REPLY_SHARED, false), "+OK\r\n");
	reply(world, ask_both(world, HS_SIM_GET, HS_STORM_REPLY_EACH, false),
	      "*2\r\n$3\r\n100\r\n$3\r\n100\r\n");
	end(world, 1, ":1:0: no order");
}

static void test_transactions_are_atomic(void **state)
{
	struct world *world = begin();
	struct hs_storm_request exec;

	(void)state;
	exec = ask_both(world, HS_SIM_GETSET, HS_STORM_REPLY_EACH, true);
	/* Runs while the transaction is in flight, but must not run inside it. */
	reply(world, ask_set(world, 2, 7), "+OK\r\n");
	reply(world, exec, "*2\r\n$-1\r\n$1\r\n7\r\n");
	end(world, 1, "no order");
}

static void test_a_watched_transaction(void **state)
{
	struct world *world = begin();
	struct hs_storm_request exec;

	(void)state;
	/* EXEC replies null, because a watched key changed: this is allowed, and the transaction counts as not
	 * run. */
	exec = ask_both(world, HS_SIM_SET, HS_STORM_REPLY_EACH, true);
	exec.depends_on_watch = true;
	reply(world, exec, "*-1\r\n");
	get(world, "$-1\r\n");
	end(world, 0, NULL);

	/* Without a watch, a transaction must run: null is a wrong reply. */
	world = begin();
	exec = ask_both(world, HS_SIM_SET, HS_STORM_REPLY_EACH, true);
	reply(world, exec, "*-1\r\n");
	end(world, 1, "no key was watched");
}

static void test_earlier_replies_count(void **state)
{
	struct world *world = begin();
	struct hs_sim_op op = {.kind = HS_SIM_GET, .client = 1, .more = 1};
	struct hs_storm_request exec = {
		.reply_shape = HS_STORM_REPLY_EACH, .records = 2, .depends_on_watch = true};

	(void)state;
	reply(world, ask_set(world, 2, 7), "+OK\r\n");
	exec.record = hs_storm_history_add(world->history, &op, HS_STORM_FORM_VALUE);
	hs_storm_history_set_answer(world->history, exec.record, 6);
	op = (struct hs_sim_op){.kind = HS_SIM_SET, .client = 1, .argument = 8};
	hs_storm_history_add(world->history, &op, HS_STORM_FORM_OK);
	reply(world, exec,
	      "*1\r\n+OK\r\n"); /* the client had read 6, but the key held 7: EXEC should have replied null */
	end(world, 1, "no order");
}

/* ---- unanswered requests ---- */

static void test_a_refused_write_did_not_run(void **state)
{
	static const char *const refusals[] = {"-BUSY too many wait\r\n",
					       "-CLUSTERDOWN nobody; not sent\r\n",
					       "-TRYAGAIN later\r\n", "-OOM store full\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		struct world *world = begin();

		reply(world, ask_set(world, 1, 5), refusals[i]);
		get(world, "$-1\r\n");
		name_is(world, 0, "key:00001234:0:0");
		end(world, 0, NULL);

		world = begin();
		reply(world, ask_set(world, 1, 5), refusals[i]);
		get(world, "$1\r\n5\r\n");
		end(world, 1, "no order");
	}
}

static void test_an_unknown_write_ran_at_most_once(void **state)
{
	static const char unknown[] = "-UNKNOWN the connection was lost\r\n";
	static const char *const seen[] = {"$-1\r\n", "$1\r\n1\r\n", "$1\r\n2\r\n"};

	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		for (int i = 0; i < 3; i++) {
			struct world *world = begin();
			struct hs_storm_request request = ask_add(world, 1, 1);

			if (lost)
				hs_storm_history_lost(world->history, &request);
			else
				reply(world, request, unknown);
			get(world, seen[i]);
			end(world, i == 2, i == 2 ? "no order" : NULL);
		}
	}
}

static void test_an_unknown_write_may_run_late(void **state)
{
	struct world *world = begin();
	struct hs_storm_request request = ask_add(world, 1, 1);

	(void)state;
	reply(world, request, "-UNKNOWN the connection was lost\r\n");
	reply(world, ask_add(world, 1, 10), ":10\r\n"); /* the next increment of the same client */
	get(world, "$2\r\n10\r\n");
	get(world, "$2\r\n11\r\n"); /* the first increment runs only after the second */
	end(world, 0, NULL);
}

static void test_a_key_with_unknown_writes_is_left(void **state)
{
	struct world *world = begin();
	struct hs_storm_request request = ask_add(world, 1, 1);

	(void)state;
	hs_storm_history_lost(world->history, &request);
	assert_true(hs_storm_history_touched(world->history, 0));
	assert_false(hs_storm_history_touched(world->history, 1));
	get(world, "$1\r\n1\r\n");
	hs_storm_history_close(world->history);
	name_is(world, 0, "key:00001234:0:1");
	name_is(world, 1, "key:00001234:1:0");
	assert_int_equal(hs_storm_history_findings(world->history)->unknown, 1);
	get(world, "$-1\r\n"); /* the window uses a new key, which is missing at first */
	end(world, 0, NULL);
}

static void test_reads_without_an_answer_say_nothing(void **state)
{
	struct world *world = begin();
	struct hs_storm_request request = ask_get(world, 1);

	(void)state;
	hs_storm_history_lost(world->history, &request);
	request = ask_both(world, HS_SIM_GET, HS_STORM_REPLY_EACH, false);
	hs_storm_history_lost(world->history, &request);
	hs_storm_history_close(world->history);
	name_is(world, 0, "key:00001234:0:0");
	end(world, 0, NULL);
}

static void test_a_write_of_several_keys_may_be_done_in_part(void **state)
{
	struct world *world = begin();

	(void)state;
	reply(world, ask_both(world, HS_SIM_SET, HS_STORM_REPLY_SHARED, false),
	      "-CLUSTERDOWN nobody\r\n");
	reply(world, ask_both(world, HS_SIM_GET, HS_STORM_REPLY_EACH, false),
	      "*2\r\n$3\r\n100\r\n$-1\r\n");
	end(world, 0, NULL);
}

static void test_a_discarded_transaction(void **state)
{
	struct world *world = begin();

	(void)state;
	/* The server refused MULTI, so each of the two SETs may have run by itself. */
	reply(world, ask_both(world, HS_SIM_SET, HS_STORM_REPLY_EACH, true),
	      "-ERR EXEC without MULTI\r\n");
	get(world, "$3\r\n100\r\n");
	get(world, "$3\r\n101\r\n");
	end(world, 0, NULL);
}

/* ---- windows ---- */

static void test_the_next_window_begins_where_the_last_ended(void **state)
{
	struct world *world = begin();

	(void)state;
	reply(world, ask_set(world, 1, 5), "+OK\r\n");
	get(world, "$1\r\n5\r\n");
	hs_storm_history_close(world->history);
	assert_int_equal(hs_storm_history_windows(world->history), 1);
	reply(world, ask_add(world, 1, 1), ":6\r\n");
	end(world, 0, NULL);

	world = begin();
	reply(world, ask_set(world, 1, 5), "+OK\r\n");
	get(world, "$1\r\n5\r\n");
	hs_storm_history_close(world->history);
	reply(world, ask_add(world, 1, 1), ":1\r\n");
	end(world, 1, "no order");
}

static void test_times_to_live_go_over_to_the_next(void **state)
{
	const struct hs_sim_op pttl = {.kind = HS_SIM_PTTL};

	(void)state;
	for (int forgotten = 0; forgotten < 2; forgotten++) {
		struct world *world = begin();
		const struct hs_sim_op set = {
			.kind = HS_SIM_SET, .argument = 5, .ttl_ms = 10000000};

		reply(world, ask_of(world, 1, set, HS_STORM_FORM_OK), "+OK\r\n");
		get(world, "$1\r\n5\r\n");
		reply(world, ask_of(world, 1, pttl, HS_STORM_FORM_NUMBER), ":9999999\r\n");
		hs_storm_history_close(world->history);
		reply(world, ask_of(world, 1, pttl, HS_STORM_FORM_NUMBER),
		      forgotten ? ":-1\r\n" : ":9999998\r\n");
		end(world, (uint64_t)forgotten, forgotten ? "PTTL" : NULL);
	}
}

static void test_a_window_is_full(void **state)
{
	struct world *world = begin();

	(void)state;
	world->options.window = 3;
	for (int i = 0; i < 3; i++) {
		assert_false(hs_storm_history_is_full(world->history));
		get(world, "$-1\r\n");
	}
	assert_true(hs_storm_history_is_full(world->history));
	hs_storm_history_close(world->history);
	assert_false(hs_storm_history_is_full(world->history));
	end(world, 0, NULL);
}

static void test_few_writes_are_blind(void **state)
{
	struct world *world = begin();
	struct hs_storm_request flights[100];
	int count = 0;

	(void)state;
	while (!hs_storm_history_is_blind(world->history, 0)) {
		assert_true(count < 100);
		flights[count] = ask_set(world, (uint32_t)count, count);
		count++;
	}
	assert_false(hs_storm_history_is_blind(world->history, 1));
	reply(world, flights[0], "+OK\r\n");
	assert_false(hs_storm_history_is_blind(world->history, 0));
	for (int i = 1; i < count; i++)
		reply(world, flights[i], "+OK\r\n");
	end(world, 0, NULL);
}

static void test_a_key_that_cannot_be_read(void **state)
{
	struct world *world = begin();

	(void)state;
	reply(world, ask_set(world, 1, 5), "+OK\r\n");
	hs_storm_history_unread(world->history, 0, false);
	hs_storm_history_close(world->history);
	/* A new key, because the old key's value is unknown. */
	name_is(world, 0, "key:00001234:0:1");
	hs_storm_history_unread(world->history, 0, true);
	end(world, 1, "could not be read at the end");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_an_honest_window),
		cmocka_unit_test(test_a_stale_read_is_named),
		cmocka_unit_test(test_a_window_without_an_order_is_kept),
		cmocka_unit_test(test_pipelined_requests_keep_their_order),
		cmocka_unit_test(test_replies_of_the_wrong_type),
		cmocka_unit_test(test_replies_about_several_keys),
		cmocka_unit_test(test_transactions_are_atomic),
		cmocka_unit_test(test_a_watched_transaction),
		cmocka_unit_test(test_earlier_replies_count),
		cmocka_unit_test(test_a_refused_write_did_not_run),
		cmocka_unit_test(test_an_unknown_write_ran_at_most_once),
		cmocka_unit_test(test_an_unknown_write_may_run_late),
		cmocka_unit_test(test_a_key_with_unknown_writes_is_left),
		cmocka_unit_test(test_reads_without_an_answer_say_nothing),
		cmocka_unit_test(test_a_write_of_several_keys_may_be_done_in_part),
		cmocka_unit_test(test_a_discarded_transaction),
		cmocka_unit_test(test_the_next_window_begins_where_the_last_ended),
		cmocka_unit_test(test_times_to_live_go_over_to_the_next),
		cmocka_unit_test(test_a_window_is_full),
		cmocka_unit_test(test_few_writes_are_blind),
		cmocka_unit_test(test_a_key_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
