/* Goal: when servers say for longer than anybody waits that they serve nothing, the first are kept
 * waiting for them to get well, and nobody after that; and the first one that can be served again is
 * served.
 *
 * Method: a flow without a network (tests/lib/flow.h); the test is the cluster that is down, and
 * says what it would say. engine-timeout is a second. */
#include "tests/lib/flow.h"

#define DOWN "-CLUSTERDOWN The cluster is down\r\n"
#define READS_ONLY "-CLUSTERDOWN The cluster is down and only accepts read commands\r\n"
#define NOT_SERVED "-CLUSTERDOWN Hash slot not served\r\n"
#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"

/* What is at port 1 is turned away with these words for so long. */
static void refuse_for(struct town *town, uint64_t ms, const char *words)
{
	for (uint64_t at = 0; at < ms; at += 100) {
		struct hs_pipe *pipe = pipe_to(town, 1);

		pipe->upstream.sent += pipe->upstream.out.len;
		pipe->upstream.out.len = 0;
		while (pipe->in_flight.first)
			reply(town, 1, words);
		pass(town, 100);
	}
}

/* A town whose port 1 has said these words for a second and more, to somebody who waited it out. */
static struct town *town_refused(const char *words)
{
	struct town *town = town_create(true, NULL);
	struct asked *first = set(town, 1, 1, "SET a 1");

	up(town, 1);
	refuse_for(town, 900, words);
	assert_false(first->done);
	refuse_for(town, 300, words);
	got(first, words);
	return town;
}

static void refused_at_once(struct town *town, struct asked *asked, const char *request,
			    const char *words)
{
	sent(town, 1, request); /* it is asked all the same: it may be well again */
	reply(town, 1, words);
	got(asked, words);
}

static void served(struct town *town, struct asked *asked, const char *request)
{
	sent(town, 1, request);
	reply(town, 1, "+OK\r\n");
	got(asked, "+OK\r\n");
}

static void waits(struct town *town, struct asked *asked, const char *request, const char *words)
{
	sent(town, 1, request);
	reply(town, 1, words);
	assert_false(asked->done);
	pass(town, 100);
	served(town, asked, request);
}

static void test_nobody_waits_for_long(void **state)
{
	struct town *town = town_refused(DOWN);
	struct asked *other;

	(void)state;
	refused_at_once(town, set(town, 1, 1, "SET a 2"), "SET a 2", DOWN);
	refused_at_once(town, set(town, 2, 7, "SET b 1"), "SET b 1",
			DOWN); /* any slot of the node */
	refused_at_once(town, get(town, 2, 9, "GET c"), "GET c", DOWN);

	/* Not of other nodes, about which nothing is known. */
	other = get(town, 2, 9000, "GET d");
	up(town, 2);
	sent(town, 2, "GET d");
	reply(town, 2, DOWN);
	assert_false(other->done);
	town_destroy(&town);
}

static void test_those_who_wait_already(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *first = set(town, 1, 1, "SET a 1"), *later;

	(void)state;
	up(town, 1);
	refuse_for(town, 800, DOWN);
	later = set(town, 2, 2, "SET b 1");
	refuse_for(town, 400, DOWN);
	got(first, DOWN);
	got(later, DOWN); /* it would have waited for longer, for nothing */
	town_destroy(&town);
}

static void test_well_again(void **state)
{
	struct town *town = town_refused(DOWN);

	(void)state;
	served(town, set(town, 1, 1, "SET a 2"), "SET a 2");
	waits(town, set(town, 1, 1, "SET a 3"), "SET a 3", DOWN); /* that is news */
	town_destroy(&town);
}

/* An error is no service: some are said before the state of the cluster is looked at. And what has no
 * key is served by any node. */
static void test_what_is_no_sign_of_health(void **state)
{
	struct town *town = town_refused(DOWN);
	struct asked *asked = set(town, 1, 1, "SET a");

	(void)state;
	sent(town, 1, "SET a");
	reply(town, 1, "-ERR wrong number of arguments for 'set' command\r\n");
	failed(asked, "-ERR wrong");
	asked = submit(town, make(town, 1, HS_CMD_ID_DBSIZE, HS_SLOT_NONE, "DBSIZE"));
	sent(town, 1, "DBSIZE");
	reply(town, 1, ":0\r\n");
	got(asked, ":0\r\n");
	refused_at_once(town, set(town, 1, 1, "SET a 2"), "SET a 2", DOWN);
	town_destroy(&town);
}

static void read_served(struct town *town)
{
	struct asked *read = get(town, 1, 1, "GET a");

	sent(town, 1, "GET a");
	reply(town, 1, "$1\r\n1\r\n");
	got(read, "$1\r\n1\r\n");
}

static void test_reads_may_be_served(void **state)
{
	struct town *town = town_refused(READS_ONLY);

	(void)state;
	waits(town, get(town, 1, 1, "GET a"), "GET a", DOWN); /* nobody said so of reads before */
	read_served(town);
	refused_at_once(town, set(town, 1, 1, "SET a 2"), "SET a 2", READS_ONLY);
	served(town, set(town, 1, 1, "SET a 2"), "SET a 2");
	waits(town, set(town, 1, 1, "SET a 3"), "SET a 3", READS_ONLY);
	town_destroy(&town);
}

static void test_reads_are_served_first(void **state)
{
	struct town *town = town_refused(DOWN);

	(void)state;
	read_served(town);
	waits(town, get(town, 1, 1, "GET a"), "GET a", DOWN);
	refused_at_once(town, set(town, 1, 1, "SET a 2"), "SET a 2", READS_ONLY);
	town_destroy(&town);
}

static void test_one_slot(void **state)
{
	struct town *town = town_refused(NOT_SERVED);

	(void)state;
	served(town, set(town, 1, 2, "SET b 1"),
	       "SET b 1"); /* of another slot: that proves nothing */
	refused_at_once(town, set(town, 1, 1, "SET a 2"), "SET a 2", NOT_SERVED);
	waits(town, set(town, 1, 2, "SET b 2"), "SET b 2", NOT_SERVED);
	served(town, set(town, 1, 1, "SET a 2"), "SET a 2");
	waits(town, set(town, 1, 1, "SET a 3"), "SET a 3", NOT_SERVED);
	town_destroy(&town);
}

static void test_loading(void **state)
{
	struct town *town = town_refused(LOADING);

	(void)state;
	refused_at_once(town, get(town, 2, 5, "GET b"), "GET b", LOADING);
	served(town, set(town, 2, 5, "SET b 1"), "SET b 1");
	waits(town, set(town, 1, 1, "SET a 3"), "SET a 3", LOADING);
	town_destroy(&town);
}

/* Moves and failovers end: they are waited for, however many have been. */
static void test_others_are_waited_for(void **state)
{
	struct town *town = town_refused("-TRYAGAIN Multiple keys request\r\n");

	(void)state;
	waits(town, set(town, 1, 1, "SET a 2"), "SET a 2", "-TRYAGAIN Multiple keys request\r\n");
	town_destroy(&town);
}

static void test_long_ago(void **state)
{
	struct town *town = town_refused(DOWN);

	(void)state;
	pass(town, HS_REFUSED_US_MAX / 1000 - 1000);
	refused_at_once(town, set(town, 1, 1, "SET a 2"), "SET a 2", DOWN);
	pass(town, HS_REFUSED_US_MAX / 1000 + 1);
	waits(town, set(town, 1, 1, "SET a 3"), "SET a 3", DOWN);
	town_destroy(&town);
}

/* Its commands are refused one by one, and then EXEC is: what is told is why. */
static void test_transactions(void **state)
{
	struct town *town = town_refused(DOWN);
	struct hs_op_tx_command command = {.command = hs_command_by_id(HS_CMD_ID_SET)};
	struct asked *asked = make(town, 1, HS_CMD_ID_EXEC, 1, "EXEC");
	struct hs_bytes words[] = {HS_LIT("SET"), HS_LIT("a"), HS_LIT("1")};

	(void)state;
	command.argc = 3;
	command.argv = words;
	asked->tx = (struct hs_op_tx){.commands = &command, .count = 1};
	asked->op.kind = HS_OP_EXEC;
	asked->op.tx = &asked->tx;
	submit(town, asked);
	sent(town, 1, "MULTI|SET a 1|EXEC");
	reply(town, 1, "+OK\r\n" DOWN);
	assert_false(asked->done);
	reply(town, 1, "-EXECABORT Transaction discarded because of previous errors.\r\n");
	got(asked, DOWN);
	town_destroy(&town);
}

/* A client's commands for a slot that were turned away before do not come behind one that was told
 * so now. */
static void test_order(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *first = set(town, 1, 1, "SET a 1"), *a, *b;

	(void)state;
	up(town, 1);
	refuse_for(town, 1000, DOWN);
	a = set(town, 2, 1, "SET a 2"); /* behind the first, which is parked */
	b = set(town, 2, 1, "SET a 3");
	assert_false(a->done);
	refuse_for(town, 200, DOWN);
	got(first, DOWN);
	got(a, DOWN);
	got(b, DOWN);
	assert_int_equal(town->finished[0], 0);
	assert_int_equal(town->finished[1], 1);
	assert_int_equal(town->finished[2], 2);
	town_destroy(&town);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nobody_waits_for_long),
		cmocka_unit_test(test_those_who_wait_already),
		cmocka_unit_test(test_well_again),
		cmocka_unit_test(test_what_is_no_sign_of_health),
		cmocka_unit_test(test_reads_may_be_served),
		cmocka_unit_test(test_reads_are_served_first),
		cmocka_unit_test(test_one_slot),
		cmocka_unit_test(test_loading),
		cmocka_unit_test(test_others_are_waited_for),
		cmocka_unit_test(test_long_ago),
		cmocka_unit_test(test_transactions),
		cmocka_unit_test(test_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
