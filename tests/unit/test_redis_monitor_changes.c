/* Goal: one log line describes the difference between two topologies; two replies to COMMAND with the same
 * content have the same hash, whatever the order of their entries.
 *
 * Method: pairs of topologies in short notation, and replies with their entries in another order. */
#include "engine/redis/monitor_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

/* Creates a topology from a short notation: "0-99 a b, 100 c" are two ranges of slots with the masters a and c;
 * b is a replica of a. Node a has the address a:1 and the id "a", node b has b:2. */
static struct hs_topology *make(const char *text, const struct hs_topology *before)
{
	struct hs_buf ranges = {0}, reply = {0};
	struct hs_topology *topology;
	char why[HS_REDIS_WHY_BYTES];
	int count = 0;

	for (; *text; count++) {
		unsigned first, last;
		size_t nodes = 0, len;

		assert_int_equal(sscanf(text, "%u-%u", &first, &last), 2);
		text += strspn(text, "0123456789-");
		len = strcspn(text, ",");
		hs_buf_printf(&ranges, "*%zu\r\n:%u\r\n:%u\r\n", len / 2 + 2, first, last);
		for (; nodes < len / 2; nodes++, text += 2)
			hs_buf_printf(&ranges, "*3\r\n$1\r\n%c\r\n:%d\r\n$1\r\n%c\r\n", text[1],
				      text[1] - 'a' + 1, text[1]);
		text += strspn(text, ", ");
	}
	hs_buf_printf(&reply, "*%d\r\n", count);
	hs_buf_append_bytes(&reply, hs_buf_bytes(&ranges));
	if (hs_topology_parse(&topology, hs_buf_bytes(&reply), "", 16, why, sizeof why) != 0)
		fail_msg("%s", why);
	hs_topology_update(before, topology);
	hs_buf_deinit(&ranges);
	hs_buf_deinit(&reply);
	return topology;
}

static void check(const char *was, const char *is, const char *requests_text)
{
	struct hs_topology *before = make(was, NULL), *after = make(is, before);
	struct hs_buf text = {0};

	hs_monitor_describe_change(before, after, &text);
	hs_buf_append(&text, "", 1);
	assert_string_equal(text.data, requests_text);
	hs_buf_deinit(&text);
	hs_topology_destroy(&before);
	hs_topology_destroy(&after);
}

static void test_changes(void **state)
{
	(void)state;
	check("0-99 a b, 100-16383 c", "0-99 b a, 100-16383 c",
	      "b:2 has replaced a:1 as master of partition 0");
	check("0-99 a b, 100-16383 c", "0-99 b, 100-16383 c",
	      "b:2 has replaced a:1 as master of partition 0; 0 replicas now, 1 before");
	check("0-99 a, 100-16383 b", "0-89 a, 90-16383 b", "10 slots moved");
	check("0-99 a, 100-16383 b", "0-98 a, 99-16383 b", "1 slot moved");
	check("0-99 a, 100-16383 b", "0-49 a, 50-99 c, 100-16383 b",
	      "c:3 joined as partition 2; 50 slots moved");
	check("0-99 a, 100-16383 b", "0-16383 b",
	      "a:1 has lost its last slot: partition 0 is removed; 100 slots moved");
	check("0-99 a, 100-16383 b", "100-16383 b",
	      "a:1 has lost its last slot: partition 0 is removed; 100 slots have no server");
	check("100-16383 b", "0-16383 b", "all slots have a server again");
	check("0-16383 a b", "0-16383 a c", "the replicas changed");
}

/* Even a cluster whose slots all have new owners is described in one line. */
static void test_many_changes(void **state)
{
	struct hs_topology *before, *after;
	struct hs_buf many = {0}, one = {0}, text = {0};

	(void)state;
	for (int i = 0; i < 12; i++)
		hs_buf_printf(&many, "%s%d-%d %c", i ? ", " : "", i, i < 11 ? i : 16383, 'a' + i);
	hs_buf_append(&many, "", 1);
	hs_buf_printf(&one, "0-16383 a");
	hs_buf_append(&one, "", 1);
	before = make(many.data, NULL);
	after = make(one.data, before);
	hs_monitor_describe_change(before, after, &text);
	hs_buf_append(&text, "", 1);
	assert_non_null(strstr(text.data, "partition 8 is removed; and more"));
	assert_null(strstr(text.data, "partition 9"));
	/* "and more" ends the line. */
	assert_string_equal(strstr(text.data, "and more"), "and more");
	assert_null(memchr(text.data, '\n', text.len));
	hs_buf_deinit(&many);
	hs_buf_deinit(&one);
	hs_buf_deinit(&text);
	hs_topology_destroy(&before);
	hs_topology_destroy(&after);
}

static void test_the_first_topology_is_no_change(void **state)
{
	struct hs_topology *first = make("0-16383 a", NULL);
	struct hs_buf text = {0};

	(void)state;
	hs_monitor_describe_change(NULL, first, &text);
	assert_int_equal(text.len, 0);
	hs_topology_destroy(&first);
}

/* ---- COMMAND ---- */

#define GET "*4\r\n$3\r\nget\r\n:2\r\n:1\r\n*2\r\n+readonly\r\n+fast\r\n"
#define SET "*4\r\n$3\r\nset\r\n:-3\r\n:1\r\n*1\r\n+write\r\n"
#define SUB(name) "*2\r\n$4\r\n" name "\r\n:2\r\n"
#define HOLDER(first, second) "*3\r\n$6\r\nobject\r\n:-2\r\n*2\r\n" first second

static uint64_t number(const char *reply)
{
	uint64_t hash = hs_monitor_command_hash(hs_bytes_of(reply));

	assert_int_not_equal(hash, 0);
	return hash;
}

static void test_the_order_of_commands_does_not_count(void **state)
{
	(void)state;
	assert_int_equal(number("*2\r\n" GET SET), number("*2\r\n" SET GET));
	assert_int_equal(number("*2\r\n" GET HOLDER(SUB("freq"), SUB("help"))),
			 number("*2\r\n" HOLDER(SUB("help"), SUB("freq")) GET));
}

static void test_everything_else_counts(void **state)
{
	uint64_t get = number("*1\r\n" GET);

	(void)state;
	assert_int_not_equal(get, number("*1\r\n" SET));
	assert_int_not_equal(get, number("*2\r\n" GET SET));
	assert_int_not_equal(get, number("*2\r\n" GET GET));
	/* The hash differs if elements are swapped, a flag differs, or an entry belongs to another command. */
	assert_int_not_equal(get, number("*1\r\n*4\r\n$3\r\nget\r\n:1\r\n:2\r\n*2\r\n+readonly\r\n"
					 "+fast\r\n"));
	assert_int_not_equal(get, number("*1\r\n*4\r\n$3\r\nget\r\n:2\r\n:1\r\n*2\r\n+readonly\r\n"
					 "+slow\r\n"));
	assert_int_not_equal(number("*2\r\n" HOLDER(SUB("freq"), SUB("help")) GET),
			     number("*2\r\n" HOLDER(SUB("freq"), GET) SUB("help")));
}

static void test_malformed_replies_have_no_hash(void **state)
{
	struct hs_buf deep = {0};

	(void)state;
	assert_int_equal(hs_monitor_command_hash(hs_bytes_of("*2\r\n" GET)), 0);
	assert_int_equal(hs_monitor_command_hash(hs_bytes_of("")), 0);
	for (int i = 0; i < 40; i++)
		hs_buf_printf(&deep, "*1\r\n");
	hs_buf_printf(&deep, ":1\r\n");
	assert_int_equal(hs_monitor_command_hash(hs_buf_bytes(&deep)), 0);
	hs_buf_deinit(&deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_many_changes),
		cmocka_unit_test(test_the_first_topology_is_no_change),
		cmocka_unit_test(test_the_order_of_commands_does_not_count),
		cmocka_unit_test(test_everything_else_counts),
		cmocka_unit_test(test_malformed_replies_have_no_hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
