/* Goal: the checker of stale reads accepts what a contract (the staleness that a rule allows) permits, and
 * nothing else; simulated servers invalidate a tracked key once and in order; entries of a silent connection
 * are served only as long as the contract allows; schedules with contracts break no law, and planted bugs are
 * found.
 *
 * Method: histories written by hand with the true timeline of the key; scripts; many schedules, with and
 * without planted bugs. */
#include "absorb/cache/stats.h"
#include "base/err.h"
#include "sim/check.h"
#include "sim/load.h"
#include "sim/schedule.h"
#include "sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	SCHEDULES = 600, /* number of schedules that must all pass */
#else
	SCHEDULES = 2500,
#endif
	BUG_SCHEDULES = 500, /* a planted bug must be found within this number of schedules */
	STALE_MS = 10,	     /* allowed staleness in the histories below */
};

#define NOTHING HS_SIM_NOTHING
#define NEVER HS_SIM_NEVER

/* --- histories written by hand --- */

/* An operation of a history; times are in milliseconds. Reads may be stale, except those with `strict` or
 * `off`. */
struct line {
	uint32_t client;
	enum hs_sim_kind kind;
	int64_t argument, answer;
	uint64_t asked, answered;
	bool external, off, strict;
	uint32_t more;
	int64_t keep_ms;
};

struct version {
	int64_t value;
	uint64_t from;
	bool expired;
};

struct story {
	const struct version *versions;
	size_t versions_count;
	const struct line *lines;
	size_t lines_count;
	const uint64_t *asked; /* times when heatsink read from the server; NULL: only at 0 */
	size_t asked_count;
};

static int judge(const struct story *story, int *law)
{
	struct hs_sim_history history = {0};
	struct hs_sim_verdict verdict = {0};
	struct hs_sim_timelines timelines;
	int err;

	hs_sim_timelines_init(&timelines, 1);
	for (size_t i = 0; i < story->versions_count; i++) {
		const struct hs_sim_value_span version = {
			.value = story->versions[i].value,
			.from = story->versions[i].from,
			.from_us = (int64_t)story->versions[i].from * 1000,
			.expired = story->versions[i].expired,
		};

		hs_sim_timelines_note(&timelines, 0, &version);
	}
	for (size_t i = 0; i < story->asked_count; i++)
		hs_sim_timelines_server_read(&timelines, 0, (int64_t)story->asked[i] * 1000);
	for (size_t i = 0; i < story->lines_count; i++) {
		const struct line *line = &story->lines[i];
		bool read = hs_sim_kind_reads(line->kind) && !line->strict;
		const struct hs_sim_op op = {
			.kind = line->kind,
			.client = line->client,
			.argument = line->argument,
			.answer = line->answer,
			.asked = line->asked,
			.answered = line->answered,
			.asked_us = (int64_t)line->asked * 1000,
			.answered_us = (int64_t)line->answered * 1000,
			.external = line->external,
			.more = line->more,
			.may_be_stale = read && !line->off,
			.off = line->off,
			.stale_us = read && !line->off ? STALE_MS * 1000 : 0,
			.max_age_us = line->keep_ms * 1000,
		};

		hs_sim_history_add(&history, &op);
	}
	err = hs_sim_check_stale(&history, &timelines, &verdict);
	*law = verdict.law;
	hs_sim_history_deinit(&history);
	hs_sim_timelines_deinit(&timelines);
	return err;
}

#define COUNT(all) (sizeof(all) / sizeof *(all))
#define JUDGE(expected, number, seen, ...)                                                         \
	do {                                                                                       \
		const struct line said[] = {__VA_ARGS__};                                          \
		const struct story changes = {(seen), COUNT(seen), said, COUNT(said), NULL, 0};    \
		int broken;                                                                        \
                                                                                                   \
		assert_int_equal(judge(&changes, &broken), expected);                              \
		assert_int_equal(broken, number);                                                  \
	} while (0)
#define GOOD(seen, ...) JUDGE(0, 0, seen, __VA_ARGS__)
#define BAD_BY(number, seen, ...) JUDGE(HS_EINVAL, number, seen, __VA_ARGS__)
#define BAD(seen, ...) BAD_BY(3, seen, __VA_ARGS__)

#define OP(who, what, with, got, from, to)                                                         \
	{                                                                                          \
		.client = (who), .kind = (what), .argument = (with), .answer = (got),              \
		.asked = (from), .answered = (to)                                                  \
	}
#define GET(who, got, from, to) OP(who, HS_SIM_GET, 0, got, from, to)
#define SET(who, with, from, to) OP(who, HS_SIM_SET, with, 0, from, to)
#define BEHIND(what, with, at)                                                                     \
	{                                                                                          \
		.client = 99, .kind = (what), .argument = (with), .answer = 1, .asked = (at),      \
		.answered = (at), .external = true                                                 \
	}
#define OFF(who, got, from, to)                                                                    \
	{                                                                                          \
		.client = (who), .kind = HS_SIM_GET, .answer = (got), .asked = (from),             \
		.answered = (to), .off = true                                                      \
	}

static void test_staleness_of_answers(void **state)
{
	/* True values of the key: 5000 from 10 to 20, then 6000. Both were written directly at the server. */
	const struct version seen[] = {{5000, 10, false}, {6000, 20, false}};

	(void)state;
	GOOD(seen, GET(0, 5000, 15, 16), GET(0, 6000, 25, 26));
	/* Value 5000 ended at 20: reads may return it until 30. Value 6000 began at 20: reads may return it
	 * from then on. */
	GOOD(seen, GET(0, 5000, 30, 31));
	BAD(seen, GET(0, 5000, 31, 32));
	BAD(seen, GET(0, 6000, 15, 19));
	GOOD(seen, GET(0, 6000, 15, 21));
	/* Before 10 the key was missing: reads may return that until 20. */
	GOOD(seen, GET(0, NOTHING, 20, 21));
	BAD(seen, GET(0, NOTHING, 21, 22));
	/* The time of the request counts, not the time of the reply. */
	GOOD(seen, GET(0, 5000, 30, 90));
	/* No read may return a value that the key never had. */
	BAD(seen, GET(0, 7000, 25, 26));
	/* A stale read may return an older value than the read before it. */
	GOOD(seen, GET(0, 6000, 22, 23), GET(0, 5000, 24, 25));
	/* With mitigations off no read may be stale: law 7. */
	GOOD(seen, OFF(0, 6000, 21, 22), OFF(0, 5000, 15, 16), OFF(0, 5000, 18, 25));
	BAD_BY(7, seen, OFF(0, 5000, 21, 22));
	/* Other commands that read the value follow the same rules. */
	GOOD(seen, OP(0, HS_SIM_STRLEN, 0, 4, 40, 41), OP(0, HS_SIM_EXISTS, 0, 1, 40, 41),
	     OP(0, HS_SIM_GETRANGE, 0, 6000, 40, 41));
	BAD(seen, OP(0, HS_SIM_STRLEN, 0, 0, 40, 41));
	BAD(seen, OP(0, HS_SIM_EXISTS, 0, 0, 40, 41));
}

static void test_writes_through_us_are_seen_at_once(void **state)
{
	const struct version seen[] = {{5000, 10, false}, {6000, 20, false}};
	const struct version counted[] = {{5000, 10, false}, {5002, 20, false}};
	const struct version again[] = {{2, 10, false}, {NOTHING, 20, false}, {5, 35, false}};

	(void)state;
	/* The write of 6000 was acknowledged at 22: later reads must see it, although 5000 is not too old. */
	BAD(seen, SET(0, 6000, 18, 22), GET(1, 5000, 23, 24));
	GOOD(seen, SET(0, 6000, 18, 22), GET(1, 5000, 21, 24));
	GOOD(seen, SET(0, 6000, 18, 22), GET(1, 6000, 23, 24));
	/* An external write does not go through heatsink: reads may miss it for the allowed time. */
	GOOD(seen, BEHIND(HS_SIM_SET, 6000, 20), GET(1, 5000, 23, 24));
	/* A write with an unknown outcome ran at an unknown time or never: reads may miss it. */
	GOOD(seen, SET(0, 6000, 18, NEVER), GET(1, 5000, 23, 24));
	/* Reads may miss a write that changed nothing, but not a write that changed the key. */
	GOOD(seen, OP(0, HS_SIM_SETNX, 7000, 0, 18, 22), GET(1, 5000, 23, 24));
	BAD(seen, OP(0, HS_SIM_SETXX, 6000, 1, 18, 22), GET(1, 5000, 23, 24));
	BAD(seen, OP(0, HS_SIM_GETSET, 6000, 5000, 18, 22), GET(1, 5000, 23, 24));
	/* heatsink folded two increments into one: clients got 5001 and 5002, the server only ever had 5002.
	 * Reads may return 5001 while the second increment is in flight. */
	BAD(counted, OP(0, HS_SIM_INCRBY, 1, 5001, 18, 22), OP(1, HS_SIM_INCRBY, 1, 5002, 18, 30),
	    GET(2, 5000, 23, 24));
	GOOD(counted, OP(0, HS_SIM_INCRBY, 1, 5001, 18, 22), OP(1, HS_SIM_INCRBY, 1, 5002, 18, 30),
	     GET(2, 5001, 19, 24), GET(2, 5002, 23, 24));
	/* Reads must not return 5001 if no other increment is in flight. */
	BAD(counted, OP(0, HS_SIM_INCRBY, 1, 5001, 18, 22), GET(2, 5001, 23, 24));
	/* The key had the value 2 earlier, too: the increment that returned 2 does not belong to that earlier
	 * time. */
	GOOD(again, OP(0, HS_SIM_INCRBY, 1, 2, 9, 40), OP(1, HS_SIM_INCRBY, 3, 5, 9, 40),
	     GET(0, 2, 31, 41));
	BAD(again, OP(0, HS_SIM_INCRBY, 1, 2, 9, 40), OP(1, HS_SIM_INCRBY, 3, 5, 9, 40),
	    GET(0, 2, 41, 42));
}

static void test_deleted_and_expired_keys(void **state)
{
	const struct version seen[] = {
		{5000, 10, false}, {NOTHING, 20, false}, {6000, 30, false}, {NOTHING, 50, true}};

	(void)state;
	BAD(seen, OP(0, HS_SIM_DEL, 0, 1, 18, 22), GET(1, 5000, 23, 24));
	GOOD(seen, OP(0, HS_SIM_DEL, 0, 0, 2, 4), GET(1, 5000, 23, 24));
	BAD(seen, OP(0, HS_SIM_GETDEL, 0, 5000, 18, 22), GET(1, 5000, 23, 24));
	/* FLUSHALL ran when the key was first missing during the request, or later. */
	BAD(seen, OP(0, HS_SIM_CLEAR, 0, 0, 18, 22), GET(1, 5000, 23, 24));
	GOOD(seen, OP(0, HS_SIM_CLEAR, 0, 0, 25, 35), GET(1, 6000, 36, 37));
	BAD(seen, OP(0, HS_SIM_CLEAR, 0, 0, 25, 27), GET(1, 5000, 28, 29));
	/* The key expired at 50: reads may return its value until 60. */
	GOOD(seen, GET(0, 6000, 60, 61));
	BAD(seen, GET(0, 6000, 61, 62));
	GOOD(seen, GET(0, NOTHING, 49, 50));
	BAD(seen, GET(0, NOTHING, 42, 49));
}

static void test_own_writes_are_seen(void **state)
{
	const struct version seen[] = {{5000, 10, false}, {6000, 20, false}, {7000, 30, false}};

	(void)state;
	/* A client's read after its own write must see the write, even if the read was sent before the write
	 * was answered. */
	BAD(seen, SET(0, 6000, 15, 22), GET(0, 5000, 15, 23));
	GOOD(seen, SET(0, 6000, 15, 22), GET(0, 6000, 15, 23));
	GOOD(seen, SET(0, 6000, 15, 22), GET(1, 5000, 15, 23));
	/* A read sent before the client's own write must not see that write, however late the read is answered. */
	GOOD(seen, GET(0, 5000, 15, 22), SET(0, 6000, 15, 23));
	BAD(seen, GET(0, 6000, 15, 22), SET(0, 6000, 15, 23));
	/* A later value of another client is correct, too. */
	GOOD(seen, SET(0, 6000, 15, 22), GET(0, 7000, 31, 32));
	/* Of a transaction that writes the key twice, a later read must see the final value. */
	BAD(seen,
	    {.client = 0,
	     .kind = HS_SIM_SET,
	     .argument = 5500,
	     .asked = 15,
	     .answered = 22,
	     .more = 1},
	    SET(0, 6000, 15, 22), GET(0, 5000, 16, 23));
}

static void test_entries_beyond_their_ttl(void **state)
{
	const uint64_t asked[] = {5, 40};
	const struct line lines[] = {
		{.kind = HS_SIM_GET, .answer = NOTHING, .asked = 25, .answered = 26, .keep_ms = 20},
		{.kind = HS_SIM_GET, .answer = NOTHING, .asked = 30, .answered = 41, .keep_ms = 20},
		{.kind = HS_SIM_GET, .answer = NOTHING, .asked = 26, .answered = 27, .keep_ms = 20},
	};
	int law;

	(void)state;
	assert_int_equal(judge(&(const struct story){.lines = lines,
						     .lines_count = 2,
						     .asked = asked,
						     .asked_count = 2},
			       &law),
			 0);
	assert_int_equal(judge(&(const struct story){.lines = lines,
						     .lines_count = 3,
						     .asked = asked,
						     .asked_count = 2},
			       &law),
			 HS_EINVAL);
	assert_int_equal(law, 3);
}

/* --- scripts --- */

/* A world with one worker, one server and one rule, without latencies. */
static struct hs_sim_world_options one_rule(uint32_t stale_us)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);

	options.engine.partitions = 1;
	options.servers = (struct hs_sim_servers_options){
		.on = true,
		.in_flight_max = 100,
		.waiting_max = 100,
		.private_max = 100,
		.timeout_us = 1000000,
		.liveness_us = stale_us / 4,
	};
	options.op_scope = HS_OP_SCOPE_ALL;
	options.rules_count = 1;
	options.rules[0] = (struct hs_sim_rule){
		.stale_us = stale_us,
		.ttl_us = 1000000,
		.negative_ttl_us = 1000000,
		.admit_all = true,
	};
	return options;
}

static void assert_reads(struct hs_sim_client *client, const char *words, const char *reply)
{
	hs_sim_client_request(client, words);
	hs_sim_world_settle(client->world);
	assert_int_equal(client->received.len, strlen(reply));
	assert_memory_equal(client->received.data, reply, strlen(reply));
	hs_buf_clear(&client->received, 0);
}

static void write_external(struct hs_sim_world *world, const char *value)
{
	const struct hs_bytes argv[] = {HS_LIT("SET"), HS_LIT("key0"), hs_bytes_of(value)};
	struct hs_buf reply = {0};

	assert_true(hs_sim_world_do_external(world, argv[1], 3, argv, &reply));
	hs_buf_deinit(&reply);
}

static uint64_t fetches_of(struct hs_sim_world *world)
{
	return hs_counter_get(&hs_cache_rule_stats(hs_sim_world_core(world, 0), 0)->fetches);
}

static void test_a_server_says_what_changed(void **state)
{
	struct hs_sim_world_options options = one_rule(1000000);
	struct hs_sim_world *world = hs_sim_world_create(&options);
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	write_external(world, "1");
	assert_reads(client, "GET key0", "$1\r\n1\r\n");
	assert_reads(client, "GET key0", "$1\r\n1\r\n");
	assert_int_equal(fetches_of(world), 1);
	write_external(world, "2");
	hs_sim_world_settle(world);
	assert_reads(client, "GET key0", "$1\r\n2\r\n");
	assert_int_equal(fetches_of(world), 2);
	/* The server invalidated the key once: until heatsink fetches it again, the server sends no
	 * invalidation. */
	write_external(world, "3");
	write_external(world, "4");
	hs_sim_world_settle(world);
	assert_reads(client, "GET key0", "$1\r\n4\r\n");
	assert_int_equal(fetches_of(world), 3);
	hs_sim_world_destroy(&world);
}

/* The tracking connection is silent: heatsink serves entries for as long as the rule allows, and no longer. */
static void test_a_silent_connection_is_not_trusted_for_long(void **state)
{
	struct hs_sim_world_options options = one_rule(100000);
	struct hs_sim_world *world;
	struct hs_sim_client *client;

	(void)state;
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	write_external(world, "1");
	assert_reads(client, "GET key0", "$1\r\n1\r\n");
	/* The server sends nothing more. */
	hs_sim_redis_silence(world->heatsinks[0].redis, 0);
	write_external(world, "2");
	hs_sim_world_pass(world, 30000);
	hs_sim_client_request(client, "GET key0");
	assert_int_equal(client->received.len, 7);
	assert_memory_equal(client->received.data, "$1\r\n1\r\n", 7);
	hs_buf_clear(&client->received, 0);
	hs_sim_world_pass(world, 100000);
	hs_sim_client_request(client, "GET key0");
	assert_int_equal(client->received.len, 0);
	hs_sim_world_settle(world);
	hs_sim_world_destroy(&world);
}

/* --- whole schedules --- */

static void test_every_law_holds(void **state)
{
	struct hs_sim_runner runner;
	uint64_t requests = 0, cached = 0, replica_reads = 0, copied = 0, external = 0, beside = 0;

	(void)state;
	hs_sim_runner_init(&runner, HS_SIM_NO_BUG);
	runner.focus = HS_SIM_FOCUS_RULES;
	for (uint64_t seed = 1; seed <= SCHEDULES; seed++) {
		struct hs_sim_result result;
		int err = hs_sim_check(&runner, seed, &result);

		requests += result.requests;
		cached += result.cached;
		replica_reads += result.replica_reads;
		copied += result.copied;
		external += result.external;
		beside += result.coverage.of[HS_SIM_COVERAGE_BESIDE_FAULT];
		if (err)
			fail_msg("%.*s", (int)result.text.len,
				 result.text.len > 0 ? result.text.data : "not decided");
		hs_buf_deinit(&result.text);
	}
	hs_sim_runner_deinit(&runner);
	/* The schedules must use cache entries, replicas and copies. */
	assert_true(cached > requests / 10);
	assert_true(replica_reads > SCHEDULES / 10);
	assert_true(copied > SCHEDULES / 10);
	assert_true(external > SCHEDULES);
	assert_true(beside > SCHEDULES);
}

/* Returns the seed of the first schedule that finds the bug; 0: none of them does. */
static uint64_t find_bug(enum hs_sim_bug bug, int *law)
{
	struct hs_sim_runner runner;
	uint64_t found = 0;

	hs_sim_runner_init(&runner, bug);
	runner.focus = HS_SIM_FOCUS_RULES;
	for (uint64_t seed = 1; seed <= BUG_SCHEDULES && found == 0; seed++) {
		struct hs_sim_result result;
		int err = hs_sim_check(&runner, seed, &result);

		*law = result.verdict.law;
		if (err == HS_EINVAL)
			found = seed;
		hs_buf_deinit(&result.text);
	}
	hs_sim_runner_deinit(&runner);
	return found;
}

/* Bugs of one faulty server are found without rules, too (test_sim.c). */
static void test_planted_bugs_are_found(void **state)
{
	(void)state;
	for (int i = HS_SIM_NO_BUG + 1; i < HS_SIM_BUGS; i++) {
		enum hs_sim_bug bug = (enum hs_sim_bug)i;
		uint64_t seed;
		int law;

		if (hs_sim_bug_where(bug) != HS_SIM_IN_RULES &&
		    hs_sim_bug_where(bug) != HS_SIM_IN_ONE_FAULTY)
			continue;
		seed = find_bug(bug, &law);
		if (seed == 0)
			fail_msg("%s was not found", hs_sim_bug_name(bug));
		print_message("%s: found by schedule %llu\n", hs_sim_bug_name(bug),
			      (unsigned long long)seed);
		if (!hs_sim_bug_breaks(bug, law))
			fail_msg("%s breaks law %d", hs_sim_bug_name(bug), law);
		assert_int_equal(hs_sim_bug_find(hs_sim_bug_name(bug)), bug);
	}
}

static void test_the_same_seed_is_the_same_schedule(void **state)
{
	struct hs_sim_runner runner;

	(void)state;
	hs_sim_runner_init(&runner, HS_SIM_PUSH_LATE);
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct hs_sim_result a, b;

		assert_int_equal(hs_sim_check(&runner, seed, &a), hs_sim_check(&runner, seed, &b));
		assert_int_equal(a.steps, b.steps);
		assert_int_equal(a.cached, b.cached);
		assert_true(hs_bytes_equal(hs_buf_bytes(&a.text), hs_buf_bytes(&b.text)));
		hs_buf_deinit(&a.text);
		hs_buf_deinit(&b.text);
	}
	hs_sim_runner_deinit(&runner);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_staleness_of_answers),
		cmocka_unit_test(test_writes_through_us_are_seen_at_once),
		cmocka_unit_test(test_deleted_and_expired_keys),
		cmocka_unit_test(test_own_writes_are_seen),
		cmocka_unit_test(test_entries_beyond_their_ttl),
		cmocka_unit_test(test_a_server_says_what_changed),
		cmocka_unit_test(test_a_silent_connection_is_not_trusted_for_long),
		cmocka_unit_test(test_every_law_holds),
		cmocka_unit_test(test_planted_bugs_are_found),
		cmocka_unit_test(test_the_same_seed_is_the_same_schedule),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
