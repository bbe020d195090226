/* Who vouches for values of a Redis server (engine/redis/fetch.c): what is read so that it is tracked,
 * what is told of changes and in which order, when nobody vouches, and when what was vouched for is
 * void.
 *
 * Scripts in which the test is the servers (tests/lib/flow.h): slot 1 is at port 1, slot 9000 at port
 * 2. What a server answers in them is what redis-server 7.0 does; test_engine_tracking.py holds it
 * against one. */
#include "base/slot.h"
#include "tests/lib/flow.h"

#define TRACKING "CLIENT TRACKING ON OPTIN"
#define CACHING "CLIENT CACHING YES"
#define WRITE(set) CACHING "|MULTI|EXISTS a|" set "|EXISTS a|EXEC|PING"
#define CHANGED(key) ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\n" key "\r\n"
#define FLUSHED ">2\r\n$10\r\ninvalidate\r\n_\r\n"
#define QUEUED "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
#define EXECUTED "*3\r\n:1\r\n+OK\r\n:1\r\n"

static struct asked *tracked(struct town *town, struct asked *asked)
{
	asked->op.resp = 3;
	asked->op.track = true;
	return submit(town, asked);
}

static struct asked *fill(struct town *town, uint16_t slot, const char *text)
{
	return tracked(town, make(town, 0, HS_CMD_ID_GET, slot, text));
}

static struct asked *store(struct town *town, uint16_t slot, const char *text)
{
	return tracked(town, make(town, 7, HS_CMD_ID_SET, slot, text));
}

/* A connection that vouches, with one value read. */
static struct asked *begin(struct town *town)
{
	struct asked *a = fill(town, 1, "GET a");

	up(town, 1);
	sent(town, 1, TRACKING "|" CACHING "|PTTL a|" CACHING "|GET a");
	reply(town, 1, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n");
	told(town, "done a");
	return a;
}

static bool holds(const struct asked *asked)
{
	return asked->done && asked->op.tracking_session &&
	       asked->op.tracking_epoch == hs_tracking_session_epoch(asked->op.tracking_session);
}

static void test_a_read_is_tracked(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *plain, *a = begin(town);

	(void)state;
	got(a, "$1\r\n1\r\n");
	assert_true(holds(a));
	reply(town, 1, CHANGED("a"));
	told(town, "changed a");
	assert_ptr_equal(town->told_by, a->op.tracking_session);
	assert_true(holds(a)); /* nothing but that key */
	/* Nothing else goes that way, of whichever dialect. */
	plain = make(town, 1, HS_CMD_ID_GET, 1, "GET b");
	plain->op.resp = 3;
	submit(town, plain);
	assert_int_equal(town->pipes_count, 2);
	up(town, 1);
	sent(town, 1, "GET b");
	reply(town, 1, "$1\r\n2\r\n" CHANGED("b")); /* nobody asked: not told */
	assert_null(plain->op.tracking_session);
	told(town, "done b");
	assert_int_equal(town->stats.connections.value, 2);
	town_destroy(&town);
}

/* With its value; and not if it may be of another one. */
static void test_how_long_a_key_has_to_live(void **state)
{
	static const struct {
		const char *replies;
		int64_t left_ms;
	} cases[] = {
		{"+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n", -1},
		{"+OK\r\n:0\r\n+OK\r\n$1\r\n1\r\n", 1},
		{"+OK\r\n:1500\r\n+OK\r\n$1\r\n1\r\n", 1501},
		{"+OK\r\n:-2\r\n+OK\r\n_\r\n", 0},
		{"+OK\r\n-NOPERM no\r\n+OK\r\n$1\r\n1\r\n", 0},
		{CHANGED("b") "+OK\r\n:5\r\n+OK\r\n$1\r\n1\r\n", 6},
		{"+OK\r\n" CHANGED("b") ":5\r\n+OK\r\n$1\r\n1\r\n", 6},
		{"+OK\r\n:5\r\n" CHANGED("b") "+OK\r\n$1\r\n1\r\n", 0},
		{"+OK\r\n:5\r\n+OK\r\n" CHANGED("b") "$1\r\n1\r\n", 0},
		{"+OK\r\n:5\r\n+OK\r\n" CHANGED("a") "$1\r\n1\r\n", 6},
	};
	struct town *town = town_create(true, NULL);

	(void)state;
	begin(town);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct asked *b = fill(town, 1, "GET b");

		sent(town, 1, CACHING "|PTTL b|" CACHING "|GET b");
		reply(town, 1, cases[i].replies);
		assert_true(holds(b));
		assert_int_equal(b->op.left_ms, cases[i].left_ms);
	}
	town_destroy(&town);
}

static void test_changes_are_told_in_order_with_replies(void **state)
{
	const char *text = CHANGED("b") "+OK\r\n:-1\r\n+OK\r\n$1\r\n2\r\n" CHANGED(
		"a") "+OK\r\n:-1\r\n+OK\r\n$1\r\n3\r\n"
		     ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nc\r\n$1\r\nd\r\n";

	(void)state;
	for (size_t cut = 0; cut < strlen(text); cut++) {
		struct town *town = town_create(true, NULL);
		char half[256];

		begin(town);
		fill(town, 1, "GET a");
		fill(town, 1, "GET b");
		sent(town, 1,
		     CACHING "|PTTL a|" CACHING "|GET a|" CACHING "|PTTL b|" CACHING "|GET b");
		snprintf(half, sizeof half, "%.*s", (int)cut, text);
		reply(town, 1, half);
		reply(town, 1, text + cut);
		told(town, "changed b|done a|changed a|done b|changed c|changed d");
		town_destroy(&town);
	}
}

static void test_everything_was_flushed(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *before = begin(town), *after;

	(void)state;
	after = fill(town, 1, "GET b");
	sent(town, 1, CACHING "|PTTL b|" CACHING "|GET b");
	reply(town, 1, FLUSHED "+OK\r\n:-1\r\n+OK\r\n_\r\n");
	told(town, "changed *|done b");
	assert_false(holds(before));
	assert_null(after->op.tracking_session); /* it may have been read before, for all we know */
	after = fill(town, 1, "GET c");
	sent(town, 1, CACHING "|PTTL c|" CACHING "|GET c");
	reply(town, 1, "+OK\r\n:-2\r\n+OK\r\n_\r\n");
	assert_true(holds(after));
	town_destroy(&town);
}

static void test_a_lost_connection_ends_its_tracking_session(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = begin(town), *b, *c;

	(void)state;
	b = fill(town, 1, "GET b");
	sent(town, 1, CACHING "|PTTL b|" CACHING "|GET b");
	down(town, 1);
	assert_false(holds(a));
	assert_false(b->done); /* a read is repeated */
	up(town, 1);
	sent(town, 1, TRACKING "|" CACHING "|PTTL b|" CACHING "|GET b");
	reply(town, 1, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n$1\r\n2\r\n");
	assert_true(holds(b));
	assert_false(holds(a));
	assert_ptr_equal(a->op.tracking_session, b->op.tracking_session); /* the address stays */
	/* Closed by us, too: what it says cannot be read. */
	c = fill(town, 1, "GET c");
	reply(town, 1, "HTTP/1.1 400\r\n");
	assert_false(holds(b));
	assert_false(c->done);
	town_destroy(&town);
}

static void test_a_write_leaves_its_value_behind(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = begin(town), *w = store(town, 1, "SET a 2");

	(void)state;
	sent(town, 1, WRITE("SET a 2"));
	reply(town, 1, QUEUED EXECUTED);
	assert_false(w->done); /* whether it was told once is not known yet */
	reply(town, 1, CHANGED("a"));
	reply(town, 1, "+PONG\r\n");
	told(town, "changed a|done a");
	got(w, "+OK\r\n");
	assert_true(holds(w));
	assert_true(holds(a));
	reply(town, 1, CHANGED("a")); /* somebody else's */
	told(town, "changed a");
	town_destroy(&town);
}

static void test_a_write_that_somebody_followed(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *w;

	(void)state;
	begin(town);
	w = store(town, 1, "SET a 2");
	sent(town, 1, WRITE("SET a 2"));
	reply(town, 1, QUEUED EXECUTED CHANGED("a") CHANGED("b") CHANGED("a") "+PONG\r\n");
	told(town, "changed a|changed b|changed a|done a");
	got(w, "+OK\r\n");
	assert_null(w->op.tracking_session);
	w = store(town, 1, "SET a 2");
	sent(town, 1, WRITE("SET a 2"));
	reply(town, 1, QUEUED EXECUTED CHANGED("a") FLUSHED "+PONG\r\n");
	told(town, "changed a|changed *|done a");
	assert_null(w->op.tracking_session);
	/* Told before the transaction, or not at all: nothing is known of what comes behind it. */
	w = store(town, 1, "SET a 3");
	sent(town, 1, WRITE("SET a 3"));
	reply(town, 1, CHANGED("a") QUEUED CHANGED("a") EXECUTED "+PONG\r\n");
	told(town, "changed a|changed a|done a");
	got(w, "+OK\r\n");
	assert_null(w->op.tracking_session);
	town_destroy(&town);
}

static void test_a_write_is_not_repeated(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *whole, *half, *unsent;
	struct hs_pipe *pipe;

	(void)state;
	begin(town);
	pipe = pipe_to(town, 1);
	whole = store(town, 1, "SET a 2");
	half = store(town, 2, "SET a 3");
	/* Without the last bytes of PING, which change nothing about EXEC. */
	pipe->upstream.sent = pipe->upstream.composed - 1;
	unsent = store(town, 3, "SET a 4");
	pipe->upstream.out.len = 0;
	down(town, 1);
	failed(whole, "-UNKNOWN the connection to h:1 was lost");
	failed(half, "-UNKNOWN");
	assert_null(whole->op.tracking_session);
	assert_false(unsent->done);
	up(town, 1);
	sent(town, 1, TRACKING "|" WRITE("SET a 4"));
	town_destroy(&town);
}

static void test_a_write_refused_by_the_transaction(void **state)
{
	static const char *const refusals[] = {
		/* EXISTS is not allowed */
		"+OK\r\n+OK\r\n-NOPERM no\r\n+QUEUED\r\n-NOPERM no\r\n-EXECABORT x\r\n+PONG\r\n",
		/* nor are MULTI and the SET outside of it */
		"+OK\r\n-NOPERM m\r\n:1\r\n-OOM x\r\n:1\r\n-ERR EXEC without MULTI\r\n+PONG\r\n",
		QUEUED "-EXECABORT Transaction discarded because of: OOM\r\n+PONG\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		struct town *town = town_create(true, NULL);
		struct asked *w;

		begin(town);
		w = store(town, 1, "SET a 2");
		sent(town, 1, WRITE("SET a 2"));
		reply(town, 1, refusals[i]);
		assert_false(w->done); /* as any other, then */
		up(town, 1);
		sent(town, 1, "SET a 2");
		reply(town, 1, "+OK\r\n");
		got(w, "+OK\r\n");
		assert_null(w->op.tracking_session);
		town_destroy(&town);
	}
}

static void test_a_write_that_ran_without_a_transaction(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *w, *next;

	(void)state;
	begin(town);
	w = store(town, 1, "SET a 2");
	sent(town, 1, WRITE("SET a 2"));
	reply(town, 1,
	      "+OK\r\n-NOPERM m\r\n:1\r\n+OK\r\n:1\r\n-ERR EXEC without MULTI\r\n" CHANGED(
		      "a") "+PONG\r\n");
	got(w, "+OK\r\n");
	assert_null(w->op.tracking_session);
	next = store(town, 1, "SET a 3"); /* that is known now */
	up(town, 1);
	sent(town, 1, "SET a 3");
	reply(town, 1, "+OK\r\n");
	got(next, "+OK\r\n");
	assert_null(next->op.tracking_session);
	town_destroy(&town);
}

static void test_a_write_with_an_error_of_its_own(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *w;

	(void)state;
	begin(town);
	w = store(town, 1, "SET a 2");
	sent(town, 1, WRITE("SET a 2"));
	reply(town, 1,
	      "+OK\r\n+OK\r\n+QUEUED\r\n-OOM full\r\n+QUEUED\r\n-EXECABORT x\r\n+PONG\r\n");
	got(w, "-OOM full\r\n"); /* not sent once more to hear it again */
	w = store(town, 1, "SET a 2");
	sent(town, 1, WRITE("SET a 2"));
	reply(town, 1, QUEUED "*3\r\n:1\r\n-ERR invalid expire time\r\n:1\r\n+PONG\r\n");
	got(w, "-ERR invalid expire time\r\n");
	assert_null(w->op.tracking_session);
	town_destroy(&town);
}

/* Before Redis 7: in the middle of EXEC's reply. */
static void test_told_in_the_middle_of_an_answer(void **state)
{
	static const char *const answers[] = {
		"*3\r\n:1\r\n" CHANGED("a") "+OK\r\n:1\r\n+PONG\r\n",
		"*3\r\n" CHANGED("a") ":0\r\n" CHANGED("a") "+OK\r\n:1\r\n+PONG\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct town *town = town_create(true, NULL);
		struct asked *a = begin(town), *w, *b, *next;

		w = store(town, 1, "SET a 2");
		b = fill(town, 1, "GET b");
		sent(town, 1, WRITE("SET a 2") "|" CACHING "|PTTL b|" CACHING "|GET b");
		reply(town, 1, QUEUED);
		reply(town, 1, answers[i]);
		reply(town, 1, "+OK\r\n:-1\r\n+OK\r\n$1\r\n2\r\n");
		got(w, "+OK\r\n");
		assert_null(w->op.tracking_session);
		assert_false(holds(a)); /* it was told, after all */
		got(b, "$1\r\n2\r\n");
		next = store(town, 1, "SET a 3");
		up(town, 1);
		sent(town, 1, "SET a 3");
		reply(town, 1, "+OK\r\n");
		assert_null(next->op.tracking_session);
		town_destroy(&town);
	}
}

static void test_redirects(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = begin(town), *moved, *w, *asked;

	(void)state;
	fill(town, 9000, "GET z");
	up(town, 2);
	sent(town, 2, TRACKING "|" CACHING "|PTTL z|" CACHING "|GET z");
	reply(town, 2, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n_\r\n");
	moved = fill(town, 1, "GET b");
	sent(town, 1, CACHING "|PTTL b|" CACHING "|GET b");
	reply(town, 1, "+OK\r\n-MOVED 1 h:2\r\n+OK\r\n-MOVED 1 h:2\r\n");
	sent(town, 2, CACHING "|PTTL b|" CACHING "|GET b");
	assert_false(holds(a)); /* it hears of that slot no more */
	reply(town, 2, "+OK\r\n:-1\r\n+OK\r\n$1\r\n2\r\n");
	got(moved, "$1\r\n2\r\n");
	assert_true(holds(moved));
	assert_ptr_not_equal(moved->op.tracking_session, a->op.tracking_session);
	/* A write: refused when it was queued. */
	w = store(town, 9000, "SET a 2");
	sent(town, 2, WRITE("SET a 2"));
	reply(town, 2,
	      "+OK\r\n+OK\r\n-MOVED 9000 h:1\r\n-MOVED 9000 h:1\r\n-MOVED 9000 h:1\r\n-EXECABORT "
	      "x\r\n+PONG\r\n");
	sent(town, 1, WRITE("SET a 2"));
	reply(town, 1, QUEUED EXECUTED CHANGED("a") "+PONG\r\n");
	got(w, "+OK\r\n");
	assert_true(holds(w));
	/* On the move: nobody vouches, and what is missing where it was may be made elsewhere. */
	asked = fill(town, 9000, "GET c");
	sent(town, 1, CACHING "|PTTL c|" CACHING "|GET c");
	reply(town, 1, "+OK\r\n-ASK 9000 h:2\r\n+OK\r\n-ASK 9000 h:2\r\n");
	assert_false(holds(w));
	pass(town, 0);
	up(town, 2);
	pass(town, 100);
	sent(town, 1, CACHING "|PTTL c|" CACHING "|GET c");
	reply(town, 1, "+OK\r\n-ASK 9000 h:2\r\n+OK\r\n-ASK 9000 h:2\r\n");
	sent(town, 2, "ASKING|GET c");
	reply(town, 2, "+OK\r\n_\r\n");
	got(asked, "_\r\n");
	assert_null(asked->op.tracking_session);
	town_destroy(&town);
}

static void test_not_now(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a, *w;

	(void)state;
	begin(town);
	a = fill(town, 1, "GET b");
	w = store(town, 2, "SET a 2");
	sent(town, 1, CACHING "|PTTL b|" CACHING "|GET b|" WRITE("SET a 2"));
	reply(town, 1,
	      "+OK\r\n-LOADING x\r\n+OK\r\n-LOADING x\r\n+OK\r\n+OK\r\n-LOADING x\r\n-LOADING "
	      "x\r\n-LOADING x\r\n"
	      "-EXECABORT x\r\n+PONG\r\n");
	assert_false(a->done);
	assert_false(w->done);
	pass(town, 100);
	sent(town, 1, CACHING "|PTTL b|" CACHING "|GET b|" WRITE("SET a 2"));
	reply(town, 1, "+OK\r\n:-1\r\n+OK\r\n_\r\n" QUEUED EXECUTED CHANGED("a") "+PONG\r\n");
	assert_true(holds(a));
	assert_true(holds(w));
	town_destroy(&town);
}

/* There and back while a reply is on its way: what it says may be from before. */
static void test_a_slot_that_was_elsewhere_meanwhile(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *late;

	(void)state;
	begin(town);
	late = fill(town, 1, "GET c");
	sent(town, 1, CACHING "|PTTL c|" CACHING "|GET c");
	route(town, 2, 1);
	route(town, 1, 2);
	reply(town, 1, "+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n");
	got(late, "$1\r\n1\r\n");
	assert_null(late->op.tracking_session);
	town_destroy(&town);
}

static void test_routes_that_take_slots_away(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = begin(town), *b, *late;

	(void)state;
	route(town, 1, 2);
	assert_true(holds(a)); /* nothing has changed */
	late = fill(town, 1, "GET c");
	sent(town, 1, CACHING "|PTTL c|" CACHING "|GET c");
	route(town, 3, 2);
	assert_false(holds(a));
	/* Read where the slot was: it will not be told there. */
	reply(town, 1, "+OK\r\n:-1\r\n+OK\r\n_\r\n");
	got(late, "_\r\n");
	assert_null(late->op.tracking_session);
	b = fill(town, 1, "GET b");
	up(town, 3);
	sent(town, 3, TRACKING "|" CACHING "|PTTL b|" CACHING "|GET b");
	reply(town, 3, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n_\r\n");
	assert_true(holds(b));
	assert_ptr_not_equal(b->op.tracking_session, a->op.tracking_session);
	/* The server that went leaves its vouch to the next that comes; what it vouched for is void. */
	pass(town, 100);
	route(town, 3, 4);
	fill(town, 9000, "GET z");
	up(town, 4);
	sent(town, 4, TRACKING "|" CACHING "|PTTL z|" CACHING "|GET z");
	reply(town, 4, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n_\r\n");
	assert_false(holds(a));
	assert_true(holds(b));
	town_destroy(&town);
}

static void test_proofs(void **state)
{
	struct town *town = town_create(false, NULL);
	struct asked *a = begin(town);
	struct hs_tracking_session *tracking_session = a->op.tracking_session;
	uint64_t begun_us = town->now.mono_us, sent_us;

	(void)state;
	assert_int_equal(hs_tracking_session_caught_up_us(tracking_session), begun_us);
	hs_flow_check(town->flow, town->now);
	sent(town, 1, ""); /* nobody wants to know */
	hs_tracking_session_want_check(tracking_session);
	town->now.mono_us += 10000;
	sent_us = town->now.mono_us;
	hs_flow_check(town->flow, town->now);
	sent(town, 1, "PING");
	assert_false(atomic_load(&tracking_session->check_wanted));
	hs_tracking_session_want_check(tracking_session);
	town->now.mono_us += 10000;
	hs_flow_check(town->flow, town->now);
	sent(town, 1, ""); /* one at a time */
	assert_int_equal(hs_tracking_session_caught_up_us(tracking_session), begun_us);
	reply(town, 1, "+PONG\r\n");
	assert_int_equal(hs_tracking_session_caught_up_us(tracking_session),
			 sent_us);				   /* not when it was answered */
	assert_true(atomic_load(&tracking_session->check_wanted)); /* since */
	told(town, "");
	/* Any reply proves as much. */
	sent_us = town->now.mono_us;
	fill(town, 1, "GET b");
	sent(town, 1, CACHING "|PTTL b|" CACHING "|GET b");
	town->now.mono_us += 10000;
	reply(town, 1, "+OK\r\n:-1\r\n+OK\r\n_\r\n");
	assert_int_equal(hs_tracking_session_caught_up_us(tracking_session), sent_us);
	town_destroy(&town);
}

/* Wanted, asked for, answered 5 ms later: what is proved then. */
static uint64_t prove(struct town *town, uint16_t port, const char *request, const char *answer,
		      struct hs_tracking_session *tracking_session)
{
	hs_tracking_session_want_check(tracking_session);
	town->now.mono_us += 5000;
	hs_flow_check(town->flow, town->now);
	sent(town, port, request);
	town->now.mono_us += 5000;
	reply(town, port, answer);
	return hs_tracking_session_caught_up_us(tracking_session);
}

/* In a cluster a server proves itself with a key that it has: port 2 has the slot of "a". */
static void test_proofs_in_a_cluster(void **state)
{
	struct town *town = town_create(true, NULL);
	uint16_t slot = hs_slot_of(HS_LIT("a"));
	struct asked *a = fill(town, slot, "GET a"), *c;
	uint64_t caught_up_us;

	(void)state;
	up(town, 2);
	sent(town, 2, TRACKING "|" CACHING "|PTTL a|" CACHING "|GET a");
	reply(town, 2, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n");
	caught_up_us = prove(town, 2, "EXISTS a", ":1\r\n", a->op.tracking_session);
	assert_true(caught_up_us > a->op.received.mono_us);
	assert_int_equal(prove(town, 2, "EXISTS a", "-CLUSTERDOWN no\r\n", a->op.tracking_session),
			 caught_up_us);
	assert_true(holds(a)); /* but nobody believes it for long */
	assert_true(prove(town, 2, "EXISTS a", "-ASK 1 h:1\r\n", a->op.tracking_session) >
		    caught_up_us);
	/* The next key that is read, the next time. */
	c = fill(town, slot, "GET {a}2");
	sent(town, 2, CACHING "|PTTL {a}2|" CACHING "|GET {a}2");
	reply(town, 2, "+OK\r\n:-1\r\n+OK\r\n_\r\n");
	caught_up_us = prove(town, 2, "EXISTS {a}2", ":0\r\n", a->op.tracking_session);
	/* Somebody else's by now. */
	assert_int_equal(
		prove(town, 2, "EXISTS {a}2", "-MOVED 15495 h:3\r\n", a->op.tracking_session),
		caught_up_us);
	assert_false(holds(a));
	assert_false(holds(c));
	assert_true(town->surprises > 0);
	/* Nothing of what it has is known to be its own: an answer would prove nothing. */
	hs_flow_check(town->flow, town->now);
	sent(town, 2, "");
	a = fill(town, slot, "GET a");
	up(town, 3);
	sent(town, 3, TRACKING "|" CACHING "|PTTL a|" CACHING "|GET a");
	reply(town, 3, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n");
	/* May not be asked for: as good as it gets. */
	caught_up_us = prove(town, 3, "EXISTS a", "-NOPERM no\r\n", a->op.tracking_session);
	assert_int_equal(caught_up_us, town->now.mono_us - 5000);
	prove(town, 3, "PING", "+PONG\r\n", a->op.tracking_session);
	town_destroy(&town);
}

static void test_no_proof_from_a_silent_connection(void **state)
{
	struct town *town = town_create(false, NULL);
	struct asked *a = begin(town);

	(void)state;
	hs_tracking_session_want_check(a->op.tracking_session);
	hs_flow_check(town->flow, town->now);
	sent(town, 1, "PING");
	pass(town, 900);
	assert_true(holds(a));
	pass(town, 200);
	assert_int_equal(town->closed, 1);
	assert_false(holds(a));
	assert_int_equal(town->stats.unknown.value, 0); /* nobody's command */
	assert_int_equal(town->stats.connections.value, 0);
	town_destroy(&town);
}

static void test_a_server_that_does_not_track(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = fill(town, 1, "GET a"), *w = store(town, 1, "SET a 2"), *next;

	(void)state;
	up(town, 1);
	sent(town, 1, TRACKING "|" CACHING "|PTTL a|" CACHING "|GET a|" WRITE("SET a 2"));
	reply(town, 1,
	      "-NOPERM no\r\n-ERR caching\r\n:-1\r\n-ERR caching\r\n$1\r\n1\r\n-ERR "
	      "caching\r\n+OK\r\n+QUEUED\r\n"
	      "+QUEUED\r\n+QUEUED\r\n" EXECUTED "+PONG\r\n");
	got(a, "$1\r\n1\r\n");
	got(w, "+OK\r\n"); /* it ran, once */
	assert_null(a->op.tracking_session);
	assert_null(w->op.tracking_session);
	assert_int_equal(town->untracked, 1);
	next = fill(town, 1, "GET b"); /* as any other */
	up(town, 1);
	sent(town, 1, "GET b");
	reply(town, 1, "$1\r\n2\r\n");
	got(next, "$1\r\n2\r\n");
	assert_null(next->op.tracking_session);
	pass(town, 100);
	assert_int_equal(town->pipes_count, 1); /* the one is closed */
	/* Asked again after a while, and not told of again. */
	pass(town, 70000);
	fill(town, 1, "GET c");
	up(town, 1);
	sent(town, 1, TRACKING "|" CACHING "|PTTL c|" CACHING "|GET c");
	reply(town, 1, "-NOPERM no\r\n-ERR caching\r\n:-2\r\n-ERR caching\r\n_\r\n");
	assert_int_equal(town->untracked, 1);
	town_destroy(&town);
}

static void test_a_server_that_does_not_cache(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *b;

	(void)state;
	begin(town);
	b = fill(town, 1, "GET b");
	sent(town, 1, CACHING "|PTTL b|" CACHING "|GET b");
	reply(town, 1, "-NOPERM no\r\n:-1\r\n-NOPERM no\r\n$1\r\n2\r\n");
	got(b, "$1\r\n2\r\n");
	assert_null(b->op.tracking_session);
	assert_int_equal(town->untracked, 1);
	town_destroy(&town);
}

static void test_a_server_without_resp3(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = fill(town, 1, "GET a"), *b, *plain;
	struct hs_pipe *pipe = pipe_to(town, 1);

	(void)state;
	town_forget(town, pipe);
	hs_flow_down(town->flow, town->now, pipe, "it refuses us: NOPROTO no");
	failed(a, "-NOVOUCH h:1 does not speak RESP3; not sent");
	b = fill(town, 1, "GET b");
	failed(b, "-NOVOUCH"); /* at once */
	assert_int_equal(town->untracked, 1);
	assert_int_equal(town->stats.refused.value, 0);
	plain = get(town, 1, 1, "GET a"); /* nobody thinks ill of it */
	up(town, 1);
	sent(town, 1, "GET a");
	reply(town, 1, "$1\r\n1\r\n");
	got(plain, "$1\r\n1\r\n");
	town_destroy(&town);
}

/* One connection more is too many for it: then as any other. */
static void test_a_connection_that_cannot_be_had(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *plain = get(town, 1, 1, "GET p"), *a, *b;
	struct hs_pipe *pipe;

	(void)state;
	up(town, 1);
	sent(town, 1, "GET p");
	reply(town, 1, "$1\r\n1\r\n");
	got(plain, "$1\r\n1\r\n");
	a = fill(town, 1, "GET a");
	pipe = pipe_to(town, 1);
	town_forget(town, pipe);
	hs_flow_down(town->flow, town->now, pipe, "it refuses us: ERR max number of clients");
	up(town, 1);
	sent(town, 1, "GET a");
	reply(town, 1, "$1\r\n1\r\n");
	got(a, "$1\r\n1\r\n");
	assert_null(a->op.tracking_session);
	pass(town, 100); /* soon it is tried again */
	b = fill(town, 1, "GET b");
	up(town, 1);
	sent(town, 1, TRACKING "|" CACHING "|PTTL b|" CACHING "|GET b");
	reply(town, 1, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n_\r\n");
	assert_true(holds(b));
	town_destroy(&town);
}

static void test_closed_when_nothing_is_kept(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = begin(town);

	(void)state;
	hs_flow_keep(town->flow, true);
	assert_true(hs_flow_wants_checks(town->flow));
	for (int i = 0; i < 100; i++)
		pass(town, 1000);
	assert_int_equal(town->pipes_count, 1);
	assert_true(holds(a));
	hs_flow_keep(town->flow, false);
	pass(town, 20000);
	assert_int_equal(town->pipes_count, 1);
	pass(town, 20000);
	assert_int_equal(town->pipes_count, 0);
	assert_false(hs_flow_wants_checks(town->flow));
	assert_false(holds(a));
	town_destroy(&town);
}

/* Other workers may still look at it. */
static void test_a_tracking_session_outlives_its_flow(void **state)
{
	struct town *town = town_create(true, NULL);
	struct asked *a = begin(town), *b = fill(town, 1, "GET b");

	(void)state;
	hs_flow_destroy(&town->flow);
	assert_true(b->done);
	assert_false(holds(a));
	assert_int_equal(town->pipes_count, 0);
	for (int i = 0; i < town->ops_count; i++) {
		hs_buf_deinit(&town->ops[i].out);
		hs_buf_deinit(&town->ops[i].reply);
	}
	hs_buf_deinit(&town->told);
	hs_tracking_sessions_destroy(&town->tracking_sessions);
	hs_mem_free(&town);
}

static void test_one_server(void **state)
{
	struct town *town = town_create(false, NULL);
	struct asked *a = begin(town);

	(void)state;
	assert_true(holds(a));
	route(town, 5, 2); /* it is elsewhere now */
	assert_false(holds(a));
	town_destroy(&town);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_read_is_tracked),
		cmocka_unit_test(test_how_long_a_key_has_to_live),
		cmocka_unit_test(test_changes_are_told_in_order_with_replies),
		cmocka_unit_test(test_everything_was_flushed),
		cmocka_unit_test(test_a_lost_connection_ends_its_tracking_session),
		cmocka_unit_test(test_a_write_leaves_its_value_behind),
		cmocka_unit_test(test_a_write_that_somebody_followed),
		cmocka_unit_test(test_a_write_is_not_repeated),
		cmocka_unit_test(test_a_write_refused_by_the_transaction),
		cmocka_unit_test(test_a_write_that_ran_without_a_transaction),
		cmocka_unit_test(test_a_write_with_an_error_of_its_own),
		cmocka_unit_test(test_told_in_the_middle_of_an_answer),
		cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_not_now),
		cmocka_unit_test(test_a_slot_that_was_elsewhere_meanwhile),
		cmocka_unit_test(test_routes_that_take_slots_away),
		cmocka_unit_test(test_proofs),
		cmocka_unit_test(test_proofs_in_a_cluster),
		cmocka_unit_test(test_no_proof_from_a_silent_connection),
		cmocka_unit_test(test_a_server_that_does_not_track),
		cmocka_unit_test(test_a_server_that_does_not_cache),
		cmocka_unit_test(test_a_server_without_resp3),
		cmocka_unit_test(test_a_connection_that_cannot_be_had),
		cmocka_unit_test(test_closed_when_nothing_is_kept),
		cmocka_unit_test(test_a_tracking_session_outlives_its_flow),
		cmocka_unit_test(test_one_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
