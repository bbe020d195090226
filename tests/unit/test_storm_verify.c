/* Goal: the checker behind `storm --verify` accepts possible histories and rejects impossible ones.
 *
 * Method: each test plays a short history: requests, and the order of their replies. Histories that must be
 * accepted are as important as those that must be rejected: a false alarm makes the checker useless. */
#include "cli/storm.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { STRING = 0, COUNTER = 1, VALUE_BYTES = 40 };

struct world {
	int64_t seen; /* the result of recording the last reply */
	enum hs_storm_phase phase;
	struct hs_storm_options options;
	struct hs_storm_verify *verify;
	/* The values of SETs, by the number that the test gives to each value. */
	char values[16][VALUE_BYTES];
};

static struct world *begin(void)
{
	struct world *world = hs_mem_zalloc(sizeof *world);

	world->options.keys = 2;
	world->options.command = HS_STORM_COMMAND_MIXED;
	world->options.value_bytes = VALUE_BYTES;
	world->options.prefix = "key:";
	world->phase = HS_STORM_PHASE_RUN;
	world->verify = hs_storm_verify_create(&world->options, 1234);
	return world;
}

static void end(struct world *world, uint64_t failures, const char *text)
{
	const struct hs_storm_findings *findings = hs_storm_verify_findings(world->verify);

	if (findings->failed != failures)
		print_message("%s\n", findings->text[0]);
	assert_int_equal(findings->failed, failures);
	if (text)
		assert_non_null(strstr(findings->text[0], text));
	hs_storm_verify_destroy(&world->verify);
	hs_mem_free(&world);
}

static struct hs_storm_request ask(struct world *world, enum hs_storm_kind kind, uint64_t key)
{
	struct hs_storm_request request = {.kind = kind, .key = key, .counter = key == COUNTER};

	hs_storm_verify_send(world->verify, &request);
	return request;
}

static struct hs_storm_request send_set(struct world *world, int number)
{
	struct hs_storm_request request = ask(world, HS_STORM_SET, STRING);

	hs_storm_verify_value(world->verify, &request, world->values[number]);
	return request;
}

static void reply(struct world *world, struct hs_storm_request request,
		  struct hs_parsed_reply answer)
{
	world->seen = hs_storm_verify_reply(world->verify, &request, &answer, world->phase);
}

static void reply_ok(struct world *world, struct hs_storm_request request)
{
	reply(world, request,
	      (struct hs_parsed_reply){.type = HS_PARSED_STATUS, .text = HS_LIT("OK")});
}

static void reply_error(struct world *world, struct hs_storm_request request, const char *text)
{
	reply(world, request,
	      (struct hs_parsed_reply){.type = HS_PARSED_ERROR, .text = hs_bytes_of(text)});
}

static void reply_null(struct world *world, struct hs_storm_request request)
{
	reply(world, request, (struct hs_parsed_reply){.type = HS_PARSED_NULL});
}

static void reply_text(struct world *world, struct hs_storm_request request, const char *text)
{
	reply(world, request,
	      (struct hs_parsed_reply){.type = HS_PARSED_BULK, .text = hs_bytes_of(text)});
}

static void reply_value(struct world *world, struct hs_storm_request request, int number)
{
	struct hs_bytes value = {world->values[number], VALUE_BYTES};

	reply(world, request, (struct hs_parsed_reply){.type = HS_PARSED_BULK, .text = value});
}

static void reply_int(struct world *world, struct hs_storm_request request, int64_t value)
{
	reply(world, request, (struct hs_parsed_reply){.type = HS_PARSED_INT, .integer = value});
}

static void set(struct world *world, int number)
{
	reply_ok(world, send_set(world, number));
}

static void get(struct world *world, int number)
{
	reply_value(world, ask(world, HS_STORM_GET, STRING), number);
}

/* ---- strings ---- */

static void test_sequential_requests_pass(void **state)
{
	struct world *world = begin();

	(void)state;
	reply_text(world, ask(world, HS_STORM_GET, STRING), "something old");
	set(world, 1);
	get(world, 1);
	set(world, 2);
	get(world, 2);
	get(world, 2);
	end(world, 0, NULL);
}

static void test_lost_write(void **state)
{
	struct world *world = begin();

	(void)state;
	set(world, 1);
	reply_null(world, ask(world, HS_STORM_GET, STRING));
	end(world, 1, "lost: no value");
}

static void test_lost_write_brings_the_past_back(void **state)
{
	struct world *world = begin();

	(void)state;
	set(world, 1);
	world->phase = HS_STORM_PHASE_FINAL;
	reply_text(world, ask(world, HS_STORM_GET, STRING), "something old");
	end(world, 1, "lost: a value from before the run was read at the end");
}

static void test_stale_read(void **state)
{
	struct world *world = begin();

	(void)state;
	set(world, 1);
	set(world, 2);
	get(world, 1);
	end(world, 1, "a later acknowledged SET had replaced");
}

/* A read that was in flight together with a write may return the older value; a read sent after the
 * acknowledgement may not. */
static void test_reads_beside_a_write(void **state)
{
	struct world *world = begin();
	struct hs_storm_request early, late, write;

	(void)state;
	set(world, 1);
	early = ask(world, HS_STORM_GET, STRING);
	write = send_set(world, 2);
	get(world, 1); /* the write is in flight: a read may return either value */
	reply_ok(world, write);
	late = ask(world, HS_STORM_GET, STRING);
	reply_value(world, early, 1);
	reply_value(world, late, 2);
	end(world, 0, NULL);
}

/* Once one read has returned the new value, no later read may return the old one, whether the write is
 * acknowledged or not. */
static void test_new_then_old(void **state)
{
	struct world *world = begin();
	struct hs_storm_request write;

	(void)state;
	set(world, 1);
	write = send_set(world, 2);
	get(world, 2);
	get(world, 1);
	reply_ok(world, write);
	end(world, 1, "SET");
}

/* Concurrent writes may take effect in either order, but all readers must see one order. */
static void test_concurrent_writes(void **state)
{
	for (int swap = 0; swap < 2; swap++) {
		struct world *world = begin();
		struct hs_storm_request one = send_set(world, 1), two = send_set(world, 2);

		(void)state;
		reply_ok(world, swap ? two : one);
		reply_ok(world, swap ? one : two);
		get(world, 1);
		get(world, 1);
		end(world, 0, NULL);

		world = begin();
		one = send_set(world, 1), two = send_set(world, 2);
		reply_ok(world, swap ? two : one);
		reply_ok(world, swap ? one : two);
		get(world, 1);
		get(world, 2);
		get(world, 1);
		end(world, 1, NULL);
	}
}

static void test_unknown_outcome_may_come_late(void **state)
{
	struct world *world = begin();
	struct hs_storm_request lost = send_set(world, 1), error;

	(void)state;
	hs_storm_verify_lost(world->verify, &lost);
	error = send_set(world, 2);
	reply_error(world, error, "ERR the outcome is unknown");
	set(world, 3);
	get(world, 3);
	get(world, 1); /* the lost write may run this late */
	get(world, 2);
	assert_int_equal(hs_storm_verify_findings(world->verify)->unknown, 2);
	get(world, 1); /* the lost write has run already, and runs only once */
	end(world, 1, NULL);
}

static void test_refused_write_does_not_show(void **state)
{
	struct world *world = begin();

	(void)state;
	set(world, 1);
	reply_error(world, send_set(world, 2), "OOM store full");
	get(world, 1);
	get(world, 2);
	end(world, 1, "refused");
}

static void test_damaged_value(void **state)
{
	struct world *world = begin();

	(void)state;
	set(world, 1);
	set(world, 2);
	world->values[2][VALUE_BYTES - 1] = world->values[1][VALUE_BYTES - 1];
	get(world, 2);
	end(world, 1, "damaged");
}

static void test_wrong_type(void **state)
{
	struct world *world = begin();

	(void)state;
	reply_int(world, send_set(world, 1), 1);
	end(world, 1, "wrong type");
}

/* Requests of one connection that are in flight together: a later reply must not contradict an earlier one. */
static void test_a_connection_sees_its_own_past(void **state)
{
	for (int old = 0; old < 2; old++) {
		struct world *world = begin();
		struct hs_storm_request write, read;

		(void)state;
		set(world, 1);
		write = send_set(world, 2);
		read = ask(world, HS_STORM_GET, STRING);
		reply_ok(world, write);
		read.floor = world->seen;
		reply_value(world, read, old ? 1 : 2);
		end(world, (uint64_t)old, old ? "already been told" : NULL);
	}
}

/* The checker drops values that no read can return any more, which changes no finding. */
static void test_horizon(void **state)
{
	struct world *world = begin();
	uint64_t stamp;

	(void)state;
	for (int i = 0; i < 2000; i++) {
		set(world, i % 3);
		get(world, i % 3);
		if (hs_storm_verify_wants_horizon(world->verify, &stamp))
			hs_storm_verify_horizon(world->verify, stamp);
	}
	get(world, 1999 % 3);
	get(world, 1998 % 3);
	end(world, 1, NULL);
}

/* ---- counters ---- */

static void base(struct world *world, const char *value)
{
	world->phase = HS_STORM_PHASE_BASE;
	reply_text(world, ask(world, HS_STORM_GET, COUNTER), value);
	world->phase = HS_STORM_PHASE_RUN;
}

static void incr(struct world *world, int64_t value)
{
	reply_int(world, ask(world, HS_STORM_INCR, COUNTER), value);
}

static void final(struct world *world, const char *value)
{
	world->phase = HS_STORM_PHASE_FINAL;
	reply_text(world, ask(world, HS_STORM_GET, COUNTER), value);
}

static void test_counting(void **state)
{
	struct world *world = begin();
	struct hs_storm_request one, two;

	(void)state;
	base(world, "41");
	assert_false(hs_storm_verify_touched(world->verify, COUNTER));
	one = ask(world, HS_STORM_INCR, COUNTER);
	two = ask(world, HS_STORM_INCR, COUNTER);
	reply_int(world, two, 43);
	reply_int(world, one, 42);
	reply_text(world, ask(world, HS_STORM_GET, COUNTER), "43");
	for (int i = 44; i < 300; i++)
		incr(world, i);
	assert_true(hs_storm_verify_touched(world->verify, COUNTER));
	final(world, "299");
	end(world, 0, NULL);
}

static void test_answered_twice(void **state)
{
	struct world *world = begin();
	struct hs_storm_request one, two;

	(void)state;
	one = ask(world, HS_STORM_INCR, COUNTER);
	two = ask(world, HS_STORM_INCR, COUNTER);
	reply_int(world, one, 1);
	reply_int(world, two, 1);
	end(world, 1, "two INCRs were answered 1");
}

static void test_counter_goes_back(void **state)
{
	struct world *world = begin();

	(void)state;
	base(world, "0");
	incr(world, 1);
	incr(world, 2);
	reply_text(world, ask(world, HS_STORM_GET, COUNTER), "1");
	end(world, 1, "GET answered 1, possible was 2 to 2");
}

static void test_counter_jumps(void **state)
{
	struct world *world = begin();

	(void)state;
	incr(world, 2);
	end(world, 1, "INCR answered 2, possible was 1 to 1");
}

static void test_final_sums(void **state)
{
	static const struct {
		const char *value;
		uint64_t failures;
	} cases[] = {{"1", 1}, {"2", 0}, {"3", 0}, {"4", 1}};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct world *world = begin();
		struct hs_storm_request lost;

		incr(world, 1);
		lost = ask(world, HS_STORM_INCR, COUNTER);
		hs_storm_verify_lost(world->verify, &lost);
		reply_error(world, ask(world, HS_STORM_INCR, COUNTER), "OOM store full");
		incr(world, 2);
		final(world, cases[i].value);
		end(world, cases[i].failures, cases[i].failures ? "the sum is" : NULL);
	}
}

static void test_no_number(void **state)
{
	struct world *world = begin();

	(void)state;
	incr(world, 1);
	final(world, "one");
	end(world, 1, "no number");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sequential_requests_pass),
		cmocka_unit_test(test_lost_write),
		cmocka_unit_test(test_lost_write_brings_the_past_back),
		cmocka_unit_test(test_stale_read),
		cmocka_unit_test(test_reads_beside_a_write),
		cmocka_unit_test(test_new_then_old),
		cmocka_unit_test(test_concurrent_writes),
		cmocka_unit_test(test_unknown_outcome_may_come_late),
		cmocka_unit_test(test_refused_write_does_not_show),
		cmocka_unit_test(test_damaged_value),
		cmocka_unit_test(test_wrong_type),
		cmocka_unit_test(test_a_connection_sees_its_own_past),
		cmocka_unit_test(test_horizon),
		cmocka_unit_test(test_counting),
		cmocka_unit_test(test_answered_twice),
		cmocka_unit_test(test_counter_goes_back),
		cmocka_unit_test(test_counter_jumps),
		cmocka_unit_test(test_final_sums),
		cmocka_unit_test(test_no_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
