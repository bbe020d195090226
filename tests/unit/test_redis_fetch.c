/* Goal: fetches and write-through at Redis servers on tracking connections (engine/redis/fetch.c): which
 * commands the flow sends, the order of invalidations and replies, when a reply carries no tracking session
 * (the value may not be cached), and when a session is invalidated.
 *
 * Method: scripts in which the test is the servers (tests/lib/flow_world.h): slot 1 is at port 1, slot 9000 at
 * port 2. The servers' answers are those of redis-server 7.0; test_engine_tracking.py runs the same cases
 * against real servers. */
#include "base/slot.h"
#include "tests/lib/flow_world.h"

#define TRACKING "CLIENT TRACKING ON OPTIN"
#define CACHING "CLIENT CACHING YES"
#define WRITE(set) CACHING "|MULTI|EXISTS a|" set "|EXISTS a|EXEC|PING"
#define CHANGED(key) ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\n" key "\r\n"
#define FLUSHED ">2\r\n$10\r\ninvalidate\r\n_\r\n"
#define QUEUED "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
#define EXECUTED "*3\r\n:1\r\n+OK\r\n:1\r\n"

static struct asked *tracked(struct flow_world *flow_world, struct asked *asked)
{
	asked->op.resp = 3;
	asked->op.track = true;
	return submit(flow_world, asked);
}

static struct asked *start_fetch(struct flow_world *flow_world, uint16_t slot, const char *text)
{
	return tracked(flow_world, make(flow_world, 0, HS_CMD_ID_GET, slot, text));
}

static struct asked *store(struct flow_world *flow_world, uint16_t slot, const char *text)
{
	return tracked(flow_world, make(flow_world, 7, HS_CMD_ID_SET, slot, text));
}

/* Opens a tracking connection to port 1 and fetches key a, whose value is 1. */
static struct asked *begin(struct flow_world *flow_world)
{
	struct asked *a = start_fetch(flow_world, 1, "GET a");

	up(flow_world, 1);
	sent(flow_world, 1, TRACKING "|" CACHING "|PTTL a|" CACHING "|GET a");
	reply(flow_world, 1, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n");
	told(flow_world, "done a");
	return a;
}

static bool holds(const struct asked *asked)
{
	return asked->done && asked->op.tracking_session &&
	       asked->op.tracking_epoch == hs_tracking_session_epoch(asked->op.tracking_session);
}

static void test_a_read_is_tracked(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *plain, *a = begin(flow_world);

	(void)state;
	got(a, "$1\r\n1\r\n");
	assert_true(holds(a));
	reply(flow_world, 1, CHANGED("a"));
	told(flow_world, "changed a");
	assert_ptr_equal(flow_world->changed_by, a->op.tracking_session);
	assert_true(holds(a)); /* the session stays valid: only key a is invalidated */
	/* Ordinary operations do not use the tracking connection, whether they are RESP2 or RESP3. */
	plain = make(flow_world, 1, HS_CMD_ID_GET, 1, "GET b");
	plain->op.resp = 3;
	submit(flow_world, plain);
	assert_int_equal(flow_world->pipes_count, 2);
	up(flow_world, 1);
	sent(flow_world, 1, "GET b");
	/* Key b was read by an ordinary operation, not fetched: the flow reports no invalidation. */
	reply(flow_world, 1, "$1\r\n2\r\n" CHANGED("b"));
	assert_null(plain->op.tracking_session);
	told(flow_world, "done b");
	assert_int_equal(flow_world->stats.connections.value, 2);
	flow_world_destroy(&flow_world);
}

/* The flow asks for the expiry (PTTL) together with the value, and reports none if the expiry may belong to
 * another value. */
static void test_how_long_a_key_has_to_live(void **state)
{
	static const struct {
		const char *replies;
		int64_t ttl_ms;
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
	struct flow_world *flow_world = flow_world_create(true, NULL);

	(void)state;
	begin(flow_world);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct asked *b = start_fetch(flow_world, 1, "GET b");

		sent(flow_world, 1, CACHING "|PTTL b|" CACHING "|GET b");
		reply(flow_world, 1, cases[i].replies);
		assert_true(holds(b));
		assert_int_equal(b->op.ttl_ms, cases[i].ttl_ms);
	}
	flow_world_destroy(&flow_world);
}

static void test_invalidations_come_in_order_with_replies(void **state)
{
	const char *text = CHANGED("b") "+OK\r\n:-1\r\n+OK\r\n$1\r\n2\r\n" CHANGED(
		"a") "+OK\r\n:-1\r\n+OK\r\n$1\r\n3\r\n"
		     ">2\r\n$10\r\ninvalidate\r\n*2\r\n$1\r\nc\r\n$1\r\nd\r\n";

	(void)state;
	for (size_t cut = 0; cut < strlen(text); cut++) {
		struct flow_world *flow_world = flow_world_create(true, NULL);
		char half[256];

		begin(flow_world);
		start_fetch(flow_world, 1, "GET a");
		start_fetch(flow_world, 1, "GET b");
		sent(flow_world, 1,
		     CACHING "|PTTL a|" CACHING "|GET a|" CACHING "|PTTL b|" CACHING "|GET b");
		snprintf(half, sizeof half, "%.*s", (int)cut, text);
		reply(flow_world, 1, half);
		reply(flow_world, 1, text + cut);
		told(flow_world, "changed b|done a|changed a|done b|changed c|changed d");
		flow_world_destroy(&flow_world);
	}
}

static void test_a_flush_invalidates_everything(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *before = begin(flow_world), *after;

	(void)state;
	after = start_fetch(flow_world, 1, "GET b");
	sent(flow_world, 1, CACHING "|PTTL b|" CACHING "|GET b");
	reply(flow_world, 1, FLUSHED "+OK\r\n:-1\r\n+OK\r\n_\r\n");
	told(flow_world, "changed *|done b");
	assert_false(holds(before));
	assert_null(after->op.tracking_session); /* the value may have been read before the flush */
	after = start_fetch(flow_world, 1, "GET c");
	sent(flow_world, 1, CACHING "|PTTL c|" CACHING "|GET c");
	reply(flow_world, 1, "+OK\r\n:-2\r\n+OK\r\n_\r\n");
	assert_true(holds(after));
	flow_world_destroy(&flow_world);
}

static void test_a_lost_connection_ends_its_tracking_session(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = begin(flow_world), *b, *c;

	(void)state;
	b = start_fetch(flow_world, 1, "GET b");
	sent(flow_world, 1, CACHING "|PTTL b|" CACHING "|GET b");
	down(flow_world, 1);
	assert_false(holds(a));
	assert_false(b->done); /* the flow retries a read */
	up(flow_world, 1);
	sent(flow_world, 1, TRACKING "|" CACHING "|PTTL b|" CACHING "|GET b");
	reply(flow_world, 1, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n$1\r\n2\r\n");
	assert_true(holds(b));
	assert_false(holds(a));
	/* The next connection uses the same session object. */
	assert_ptr_equal(a->op.tracking_session, b->op.tracking_session);
	/* The tracking session also ends when the server sends a malformed reply, because the flow closes the
	 * connection. */
	c = start_fetch(flow_world, 1, "GET c");
	reply(flow_world, 1, "HTTP/1.1 400\r\n");
	assert_false(holds(b));
	assert_false(c->done);
	flow_world_destroy(&flow_world);
}

static void test_a_write_through(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = begin(flow_world), *w = store(flow_world, 1, "SET a 2");

	(void)state;
	sent(flow_world, 1, WRITE("SET a 2"));
	reply(flow_world, 1, QUEUED EXECUTED);
	/* The write's invalidation may still come: the operation ends only with the reply to PING. */
	assert_false(w->done);
	reply(flow_world, 1, CHANGED("a"));
	reply(flow_world, 1, "+PONG\r\n");
	told(flow_world, "changed a|done a");
	got(w, "+OK\r\n");
	assert_true(holds(w));
	assert_true(holds(a));
	reply(flow_world, 1, CHANGED("a")); /* the write of another client */
	told(flow_world, "changed a");
	flow_world_destroy(&flow_world);
}

static void test_a_write_through_another_write_followed(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *w;

	(void)state;
	begin(flow_world);
	w = store(flow_world, 1, "SET a 2");
	sent(flow_world, 1, WRITE("SET a 2"));
	reply(flow_world, 1, QUEUED EXECUTED CHANGED("a") CHANGED("b") CHANGED("a") "+PONG\r\n");
	told(flow_world, "changed a|changed b|changed a|done a");
	got(w, "+OK\r\n");
	assert_null(w->op.tracking_session);
	w = store(flow_world, 1, "SET a 2");
	sent(flow_world, 1, WRITE("SET a 2"));
	reply(flow_world, 1, QUEUED EXECUTED CHANGED("a") FLUSHED "+PONG\r\n");
	told(flow_world, "changed a|changed *|done a");
	assert_null(w->op.tracking_session);
	/* The invalidation came before the transaction ran, or not at all: the value may have changed since,
	 * and is not cached. */
	w = store(flow_world, 1, "SET a 3");
	sent(flow_world, 1, WRITE("SET a 3"));
	reply(flow_world, 1, CHANGED("a") QUEUED CHANGED("a") EXECUTED "+PONG\r\n");
	told(flow_world, "changed a|changed a|done a");
	got(w, "+OK\r\n");
	assert_null(w->op.tracking_session);
	flow_world_destroy(&flow_world);
}

static void test_a_write_through_is_not_repeated(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *whole, *half, *unsent;
	struct hs_pipe *pipe;

	(void)state;
	begin(flow_world);
	pipe = pipe_to(flow_world, 1);
	whole = store(flow_world, 1, "SET a 2");
	half = store(flow_world, 2, "SET a 3");
	/* The last bytes of the PING after EXEC are not sent; the server may have run EXEC all the same. */
	pipe->upstream.sent = pipe->upstream.composed - 1;
	unsent = store(flow_world, 3, "SET a 4");
	pipe->upstream.out.len = 0;
	down(flow_world, 1);
	failed(whole, "-UNKNOWN the connection to h:1 was lost");
	failed(half, "-UNKNOWN");
	assert_null(whole->op.tracking_session);
	assert_false(unsent->done);
	up(flow_world, 1);
	sent(flow_world, 1, TRACKING "|" WRITE("SET a 4"));
	flow_world_destroy(&flow_world);
}

static void test_a_write_refused_by_the_transaction(void **state)
{
	static const char *const refusals[] = {
		/* EXISTS is not permitted. */
		"+OK\r\n+OK\r\n-NOPERM no\r\n+QUEUED\r\n-NOPERM no\r\n-EXECABORT x\r\n+PONG\r\n",
		/* EXISTS and MULTI are not permitted, and the SET that followed without a transaction is
		 * refused, too. */
		"+OK\r\n-NOPERM m\r\n:1\r\n-OOM x\r\n:1\r\n-ERR EXEC without MULTI\r\n+PONG\r\n",
		QUEUED "-EXECABORT Transaction discarded because of: OOM\r\n+PONG\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		struct flow_world *flow_world = flow_world_create(true, NULL);
		struct asked *w;

		begin(flow_world);
		w = store(flow_world, 1, "SET a 2");
		sent(flow_world, 1, WRITE("SET a 2"));
		reply(flow_world, 1, refusals[i]);
		assert_false(w->done); /* the flow sends the write again, as an ordinary write */
		up(flow_world, 1);
		sent(flow_world, 1, "SET a 2");
		reply(flow_world, 1, "+OK\r\n");
		got(w, "+OK\r\n");
		assert_null(w->op.tracking_session);
		flow_world_destroy(&flow_world);
	}
}

static void test_a_write_that_ran_without_a_transaction(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *w, *next;

	(void)state;
	begin(flow_world);
	w = store(flow_world, 1, "SET a 2");
	sent(flow_world, 1, WRITE("SET a 2"));
	reply(flow_world, 1,
	      "+OK\r\n-NOPERM m\r\n:1\r\n+OK\r\n:1\r\n-ERR EXEC without MULTI\r\n" CHANGED(
		      "a") "+PONG\r\n");
	got(w, "+OK\r\n");
	assert_null(w->op.tracking_session);
	next = store(flow_world, 1, "SET a 3"); /* the flow knows that this server refuses MULTI */
	up(flow_world, 1);
	sent(flow_world, 1, "SET a 3");
	reply(flow_world, 1, "+OK\r\n");
	got(next, "+OK\r\n");
	assert_null(next->op.tracking_session);
	flow_world_destroy(&flow_world);
}

static void test_a_write_through_answered_with_an_error(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *w;

	(void)state;
	begin(flow_world);
	w = store(flow_world, 1, "SET a 2");
	sent(flow_world, 1, WRITE("SET a 2"));
	reply(flow_world, 1,
	      "+OK\r\n+OK\r\n+QUEUED\r\n-OOM full\r\n+QUEUED\r\n-EXECABORT x\r\n+PONG\r\n");
	/* A refused write is not sent again as an ordinary write, which would be refused, too. */
	got(w, "-OOM full\r\n");
	w = store(flow_world, 1, "SET a 2");
	sent(flow_world, 1, WRITE("SET a 2"));
	reply(flow_world, 1, QUEUED "*3\r\n:1\r\n-ERR invalid expire time\r\n:1\r\n+PONG\r\n");
	got(w, "-ERR invalid expire time\r\n");
	assert_null(w->op.tracking_session);
	flow_world_destroy(&flow_world);
}

/* Before Redis 7, a server may send an invalidation in the middle of EXEC's reply. */
static void test_an_invalidation_in_the_middle_of_a_reply(void **state)
{
	static const char *const answers[] = {
		"*3\r\n:1\r\n" CHANGED("a") "+OK\r\n:1\r\n+PONG\r\n",
		"*3\r\n" CHANGED("a") ":0\r\n" CHANGED("a") "+OK\r\n:1\r\n+PONG\r\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
		struct flow_world *flow_world = flow_world_create(true, NULL);
		struct asked *a = begin(flow_world), *w, *b, *next;

		w = store(flow_world, 1, "SET a 2");
		b = start_fetch(flow_world, 1, "GET b");
		sent(flow_world, 1, WRITE("SET a 2") "|" CACHING "|PTTL b|" CACHING "|GET b");
		reply(flow_world, 1, QUEUED);
		reply(flow_world, 1, answers[i]);
		reply(flow_world, 1, "+OK\r\n:-1\r\n+OK\r\n$1\r\n2\r\n");
		got(w, "+OK\r\n");
		assert_null(w->op.tracking_session);
		assert_false(holds(a)); /* the invalidation took effect */
		got(b, "$1\r\n2\r\n");
		next = store(flow_world, 1, "SET a 3");
		up(flow_world, 1);
		sent(flow_world, 1, "SET a 3");
		reply(flow_world, 1, "+OK\r\n");
		assert_null(next->op.tracking_session);
		flow_world_destroy(&flow_world);
	}
}

static void test_redirects(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = begin(flow_world), *moved, *w, *asked;

	(void)state;
	start_fetch(flow_world, 9000, "GET z");
	up(flow_world, 2);
	sent(flow_world, 2, TRACKING "|" CACHING "|PTTL z|" CACHING "|GET z");
	reply(flow_world, 2, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n_\r\n");
	moved = start_fetch(flow_world, 1, "GET b");
	sent(flow_world, 1, CACHING "|PTTL b|" CACHING "|GET b");
	reply(flow_world, 1, "+OK\r\n-MOVED 1 h:2\r\n+OK\r\n-MOVED 1 h:2\r\n");
	sent(flow_world, 2, CACHING "|PTTL b|" CACHING "|GET b");
	assert_false(holds(a)); /* a server sends no invalidations for a slot that has moved away */
	reply(flow_world, 2, "+OK\r\n:-1\r\n+OK\r\n$1\r\n2\r\n");
	got(moved, "$1\r\n2\r\n");
	assert_true(holds(moved));
	assert_ptr_not_equal(moved->op.tracking_session, a->op.tracking_session);
	/* A write is redirected when the server queues it: the flow sends the whole transaction to the owner. */
	w = store(flow_world, 9000, "SET a 2");
	sent(flow_world, 2, WRITE("SET a 2"));
	reply(flow_world, 2,
	      "+OK\r\n+OK\r\n-MOVED 9000 h:1\r\n-MOVED 9000 h:1\r\n-MOVED 9000 h:1\r\n-EXECABORT "
	      "x\r\n+PONG\r\n");
	sent(flow_world, 1, WRITE("SET a 2"));
	reply(flow_world, 1, QUEUED EXECUTED CHANGED("a") "+PONG\r\n");
	got(w, "+OK\r\n");
	assert_true(holds(w));
	/* While the slot is moving, the reply carries no tracking session: a key missing at the old node may be
	 * created at the new one. */
	asked = start_fetch(flow_world, 9000, "GET c");
	sent(flow_world, 1, CACHING "|PTTL c|" CACHING "|GET c");
	reply(flow_world, 1, "+OK\r\n-ASK 9000 h:2\r\n+OK\r\n-ASK 9000 h:2\r\n");
	assert_false(holds(w));
	pass(flow_world, 0);
	up(flow_world, 2);
	pass(flow_world, 100);
	sent(flow_world, 1, CACHING "|PTTL c|" CACHING "|GET c");
	reply(flow_world, 1, "+OK\r\n-ASK 9000 h:2\r\n+OK\r\n-ASK 9000 h:2\r\n");
	sent(flow_world, 2, "ASKING|GET c");
	reply(flow_world, 2, "+OK\r\n_\r\n");
	got(asked, "_\r\n");
	assert_null(asked->op.tracking_session);
	flow_world_destroy(&flow_world);
}

static void test_refusals_that_pass(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a, *w;

	(void)state;
	begin(flow_world);
	a = start_fetch(flow_world, 1, "GET b");
	w = store(flow_world, 2, "SET a 2");
	sent(flow_world, 1, CACHING "|PTTL b|" CACHING "|GET b|" WRITE("SET a 2"));
	reply(flow_world, 1,
	      "+OK\r\n-LOADING x\r\n+OK\r\n-LOADING x\r\n+OK\r\n+OK\r\n-LOADING x\r\n-LOADING "
	      "x\r\n-LOADING x\r\n"
	      "-EXECABORT x\r\n+PONG\r\n");
	assert_false(a->done);
	assert_false(w->done);
	pass(flow_world, 100);
	sent(flow_world, 1, CACHING "|PTTL b|" CACHING "|GET b|" WRITE("SET a 2"));
	reply(flow_world, 1, "+OK\r\n:-1\r\n+OK\r\n_\r\n" QUEUED EXECUTED CHANGED("a") "+PONG\r\n");
	assert_true(holds(a));
	assert_true(holds(w));
	flow_world_destroy(&flow_world);
}

/* A slot moves away and back while a reply is in flight: the value may have been read before the moves. */
static void test_a_slot_that_moved_away_and_back(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *late;

	(void)state;
	begin(flow_world);
	late = start_fetch(flow_world, 1, "GET c");
	sent(flow_world, 1, CACHING "|PTTL c|" CACHING "|GET c");
	route(flow_world, 2, 1);
	route(flow_world, 1, 2);
	reply(flow_world, 1, "+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n");
	got(late, "$1\r\n1\r\n");
	assert_null(late->op.tracking_session);
	flow_world_destroy(&flow_world);
}

static void test_routes_that_take_slots_away(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = begin(flow_world), *b, *late;

	(void)state;
	route(flow_world, 1, 2);
	assert_true(holds(a)); /* the new routes leave slot 1 where it was */
	late = start_fetch(flow_world, 1, "GET c");
	sent(flow_world, 1, CACHING "|PTTL c|" CACHING "|GET c");
	route(flow_world, 3, 2);
	assert_false(holds(a));
	/* The value was read at the slot's old owner, which sends no more invalidations for it. */
	reply(flow_world, 1, "+OK\r\n:-1\r\n+OK\r\n_\r\n");
	got(late, "_\r\n");
	assert_null(late->op.tracking_session);
	b = start_fetch(flow_world, 1, "GET b");
	up(flow_world, 3);
	sent(flow_world, 3, TRACKING "|" CACHING "|PTTL b|" CACHING "|GET b");
	reply(flow_world, 3, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n_\r\n");
	assert_true(holds(b));
	assert_ptr_not_equal(b->op.tracking_session, a->op.tracking_session);
	/* When a server leaves the cluster, the next server gets its session object; entries of the old session
	 * are invalid. */
	pass(flow_world, 100);
	route(flow_world, 3, 4);
	start_fetch(flow_world, 9000, "GET z");
	up(flow_world, 4);
	sent(flow_world, 4, TRACKING "|" CACHING "|PTTL z|" CACHING "|GET z");
	reply(flow_world, 4, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n_\r\n");
	assert_false(holds(a));
	assert_true(holds(b));
	flow_world_destroy(&flow_world);
}

static void test_liveness_checks(void **state)
{
	struct flow_world *flow_world = flow_world_create(false, NULL);
	struct asked *a = begin(flow_world);
	struct hs_tracking_session *tracking_session = a->op.tracking_session;
	uint64_t begun_us = flow_world->now.mono_us, sent_us;

	(void)state;
	assert_int_equal(hs_tracking_session_caught_up_us(tracking_session), begun_us);
	hs_flow_check(flow_world->flow, flow_world->now);
	sent(flow_world, 1, ""); /* no reader has requested a check */
	hs_tracking_session_want_check(tracking_session);
	flow_world->now.mono_us += 10000;
	sent_us = flow_world->now.mono_us;
	hs_flow_check(flow_world->flow, flow_world->now);
	sent(flow_world, 1, "PING");
	assert_false(atomic_load(&tracking_session->check_wanted));
	hs_tracking_session_want_check(tracking_session);
	flow_world->now.mono_us += 10000;
	hs_flow_check(flow_world->flow, flow_world->now);
	sent(flow_world, 1, ""); /* one check is in flight already */
	assert_int_equal(hs_tracking_session_caught_up_us(tracking_session), begun_us);
	reply(flow_world, 1, "+PONG\r\n");
	assert_int_equal(
		hs_tracking_session_caught_up_us(tracking_session),
		sent_us); /* the session is up to date as of when the check was sent, not answered */
	/* This request came while the check was in flight. */
	assert_true(atomic_load(&tracking_session->check_wanted));
	told(flow_world, "");
	/* Any reply counts as a liveness check. */
	sent_us = flow_world->now.mono_us;
	start_fetch(flow_world, 1, "GET b");
	sent(flow_world, 1, CACHING "|PTTL b|" CACHING "|GET b");
	flow_world->now.mono_us += 10000;
	reply(flow_world, 1, "+OK\r\n:-1\r\n+OK\r\n_\r\n");
	assert_int_equal(hs_tracking_session_caught_up_us(tracking_session), sent_us);
	flow_world_destroy(&flow_world);
}

/* Requests a liveness check, sends it 5 ms later and answers it 5 ms after that. Returns the session's
 * caught-up time. */
static uint64_t catch_up(struct flow_world *flow_world, uint16_t port, const char *request,
			 const char *answer, struct hs_tracking_session *tracking_session)
{
	hs_tracking_session_want_check(tracking_session);
	flow_world->now.mono_us += 5000;
	hs_flow_check(flow_world->flow, flow_world->now);
	sent(flow_world, port, request);
	flow_world->now.mono_us += 5000;
	reply(flow_world, port, answer);
	return hs_tracking_session_caught_up_us(tracking_session);
}

/* In a cluster the check reads a key that was fetched from the server, to show that the server still owns the
 * slot. Port 2 owns the slot of "a". */
static void test_liveness_checks_in_a_cluster(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint16_t slot = hs_slot_of(HS_LIT("a"));
	struct asked *a = start_fetch(flow_world, slot, "GET a"), *c;
	uint64_t caught_up_us;

	(void)state;
	up(flow_world, 2);
	sent(flow_world, 2, TRACKING "|" CACHING "|PTTL a|" CACHING "|GET a");
	reply(flow_world, 2, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n");
	caught_up_us = catch_up(flow_world, 2, "EXISTS a", ":1\r\n", a->op.tracking_session);
	assert_true(caught_up_us > a->op.received.mono_us);
	assert_int_equal(
		catch_up(flow_world, 2, "EXISTS a", "-CLUSTERDOWN no\r\n", a->op.tracking_session),
		caught_up_us);
	assert_true(holds(a)); /* the session stays valid, but its caught-up time stands still */
	assert_true(catch_up(flow_world, 2, "EXISTS a", "-ASK 1 h:1\r\n", a->op.tracking_session) >
		    caught_up_us);
	/* The next check uses the key that was fetched last. */
	c = start_fetch(flow_world, slot, "GET {a}2");
	sent(flow_world, 2, CACHING "|PTTL {a}2|" CACHING "|GET {a}2");
	reply(flow_world, 2, "+OK\r\n:-1\r\n+OK\r\n_\r\n");
	caught_up_us = catch_up(flow_world, 2, "EXISTS {a}2", ":0\r\n", a->op.tracking_session);
	/* A MOVED reply to the check: the slot has another owner, and the session ends. */
	assert_int_equal(catch_up(flow_world, 2, "EXISTS {a}2", "-MOVED 15495 h:3\r\n",
				  a->op.tracking_session),
			 caught_up_us);
	assert_false(holds(a));
	assert_false(holds(c));
	assert_true(flow_world->stale_topology_reports > 0);
	/* No slot is known to belong to port 2, so a check could show nothing. */
	hs_flow_check(flow_world->flow, flow_world->now);
	sent(flow_world, 2, "");
	a = start_fetch(flow_world, slot, "GET a");
	up(flow_world, 3);
	sent(flow_world, 3, TRACKING "|" CACHING "|PTTL a|" CACHING "|GET a");
	reply(flow_world, 3, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n$1\r\n1\r\n");
	/* The check may not read the key: the error reply still shows that the server is alive. */
	caught_up_us =
		catch_up(flow_world, 3, "EXISTS a", "-NOPERM no\r\n", a->op.tracking_session);
	assert_int_equal(caught_up_us, flow_world->now.mono_us - 5000);
	catch_up(flow_world, 3, "PING", "+PONG\r\n", a->op.tracking_session);
	flow_world_destroy(&flow_world);
}

static void test_no_liveness_from_a_silent_connection(void **state)
{
	struct flow_world *flow_world = flow_world_create(false, NULL);
	struct asked *a = begin(flow_world);

	(void)state;
	hs_tracking_session_want_check(a->op.tracking_session);
	hs_flow_check(flow_world->flow, flow_world->now);
	sent(flow_world, 1, "PING");
	pass(flow_world, 900);
	assert_true(holds(a));
	pass(flow_world, 200);
	assert_int_equal(flow_world->closed, 1);
	assert_false(holds(a));
	/* The lost check was not a command of a client. */
	assert_int_equal(flow_world->stats.outcome_unknown.value, 0);
	assert_int_equal(flow_world->stats.connections.value, 0);
	flow_world_destroy(&flow_world);
}

static void test_a_server_that_does_not_track(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = start_fetch(flow_world, 1, "GET a"), *w = store(flow_world, 1, "SET a 2"),
		     *next;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, TRACKING "|" CACHING "|PTTL a|" CACHING "|GET a|" WRITE("SET a 2"));
	reply(flow_world, 1,
	      "-NOPERM no\r\n-ERR caching\r\n:-1\r\n-ERR caching\r\n$1\r\n1\r\n-ERR "
	      "caching\r\n+OK\r\n+QUEUED\r\n"
	      "+QUEUED\r\n+QUEUED\r\n" EXECUTED "+PONG\r\n");
	got(a, "$1\r\n1\r\n");
	got(w, "+OK\r\n"); /* the write ran, once */
	assert_null(a->op.tracking_session);
	assert_null(w->op.tracking_session);
	assert_int_equal(flow_world->tracking_refused, 1);
	next = start_fetch(flow_world, 1, "GET b"); /* sent as an ordinary read */
	up(flow_world, 1);
	sent(flow_world, 1, "GET b");
	reply(flow_world, 1, "$1\r\n2\r\n");
	got(next, "$1\r\n2\r\n");
	assert_null(next->op.tracking_session);
	pass(flow_world, 100);
	assert_int_equal(flow_world->pipes_count, 1); /* only the ordinary connection is open */
	/* After a minute the flow tries tracking again; a second refusal is not reported. */
	pass(flow_world, 70000);
	start_fetch(flow_world, 1, "GET c");
	up(flow_world, 1);
	sent(flow_world, 1, TRACKING "|" CACHING "|PTTL c|" CACHING "|GET c");
	reply(flow_world, 1, "-NOPERM no\r\n-ERR caching\r\n:-2\r\n-ERR caching\r\n_\r\n");
	assert_int_equal(flow_world->tracking_refused, 1);
	flow_world_destroy(&flow_world);
}

static void test_a_server_that_does_not_cache(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *b;

	(void)state;
	begin(flow_world);
	b = start_fetch(flow_world, 1, "GET b");
	sent(flow_world, 1, CACHING "|PTTL b|" CACHING "|GET b");
	reply(flow_world, 1, "-NOPERM no\r\n:-1\r\n-NOPERM no\r\n$1\r\n2\r\n");
	got(b, "$1\r\n2\r\n");
	assert_null(b->op.tracking_session);
	assert_int_equal(flow_world->tracking_refused, 1);
	flow_world_destroy(&flow_world);
}

static void test_a_server_without_resp3(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = start_fetch(flow_world, 1, "GET a"), *b, *plain;
	struct hs_pipe *pipe = pipe_to(flow_world, 1);

	(void)state;
	flow_world_forget(flow_world, pipe);
	hs_flow_down(flow_world->flow, flow_world->now, pipe,
		     "the server refuses the connection: NOPROTO no");
	failed(a, "-NOTRACKING h:1 does not speak RESP3; not sent");
	b = start_fetch(flow_world, 1, "GET b");
	failed(b, "-NOTRACKING"); /* the fetch fails without another connection */
	assert_int_equal(flow_world->tracking_refused, 1);
	assert_int_equal(flow_world->stats.refused.value, 0);
	plain = get(flow_world, 1, 1, "GET a"); /* ordinary operations are not affected */
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "$1\r\n1\r\n");
	got(plain, "$1\r\n1\r\n");
	flow_world_destroy(&flow_world);
}

/* The server refuses a second connection: the flow sends the fetch as an ordinary read on the first one. */
static void test_a_connection_that_cannot_be_opened(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *plain = get(flow_world, 1, 1, "GET p"), *a, *b;
	struct hs_pipe *pipe;

	(void)state;
	up(flow_world, 1);
	sent(flow_world, 1, "GET p");
	reply(flow_world, 1, "$1\r\n1\r\n");
	got(plain, "$1\r\n1\r\n");
	a = start_fetch(flow_world, 1, "GET a");
	pipe = pipe_to(flow_world, 1);
	flow_world_forget(flow_world, pipe);
	hs_flow_down(flow_world->flow, flow_world->now, pipe,
		     "the server refuses the connection: ERR max number of clients");
	up(flow_world, 1);
	sent(flow_world, 1, "GET a");
	reply(flow_world, 1, "$1\r\n1\r\n");
	got(a, "$1\r\n1\r\n");
	assert_null(a->op.tracking_session);
	pass(flow_world, 100); /* after a pause the flow opens a tracking connection again */
	b = start_fetch(flow_world, 1, "GET b");
	up(flow_world, 1);
	sent(flow_world, 1, TRACKING "|" CACHING "|PTTL b|" CACHING "|GET b");
	reply(flow_world, 1, "+OK\r\n+OK\r\n:-1\r\n+OK\r\n_\r\n");
	assert_true(holds(b));
	flow_world_destroy(&flow_world);
}

static void test_closed_when_nothing_is_cached(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = begin(flow_world);

	(void)state;
	hs_flow_set_caching(flow_world->flow, true);
	assert_true(hs_flow_wants_checks(flow_world->flow));
	for (int i = 0; i < 100; i++)
		pass(flow_world, 1000);
	assert_int_equal(flow_world->pipes_count, 1);
	assert_true(holds(a));
	hs_flow_set_caching(flow_world->flow, false);
	pass(flow_world, 20000);
	assert_int_equal(flow_world->pipes_count, 1);
	pass(flow_world, 20000);
	assert_int_equal(flow_world->pipes_count, 0);
	assert_false(hs_flow_wants_checks(flow_world->flow));
	assert_false(holds(a));
	flow_world_destroy(&flow_world);
}

/* Threads of other workers may still read the session after its flow is destroyed. */
static void test_a_tracking_session_outlives_its_flow(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct asked *a = begin(flow_world), *b = start_fetch(flow_world, 1, "GET b");

	(void)state;
	hs_flow_destroy(&flow_world->flow);
	assert_true(b->done);
	assert_false(holds(a));
	assert_int_equal(flow_world->pipes_count, 0);
	for (int i = 0; i < flow_world->ops_count; i++) {
		hs_buf_deinit(&flow_world->ops[i].out);
		hs_buf_deinit(&flow_world->ops[i].reply);
	}
	hs_buf_deinit(&flow_world->told);
	hs_tracking_sessions_destroy(&flow_world->tracking_sessions);
	hs_mem_free(&flow_world);
}

static void test_one_server(void **state)
{
	struct flow_world *flow_world = flow_world_create(false, NULL);
	struct asked *a = begin(flow_world);

	(void)state;
	assert_true(holds(a));
	route(flow_world, 5, 2); /* the slot has another owner now */
	assert_false(holds(a));
	flow_world_destroy(&flow_world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_read_is_tracked),
		cmocka_unit_test(test_how_long_a_key_has_to_live),
		cmocka_unit_test(test_invalidations_come_in_order_with_replies),
		cmocka_unit_test(test_a_flush_invalidates_everything),
		cmocka_unit_test(test_a_lost_connection_ends_its_tracking_session),
		cmocka_unit_test(test_a_write_through),
		cmocka_unit_test(test_a_write_through_another_write_followed),
		cmocka_unit_test(test_a_write_through_is_not_repeated),
		cmocka_unit_test(test_a_write_refused_by_the_transaction),
		cmocka_unit_test(test_a_write_that_ran_without_a_transaction),
		cmocka_unit_test(test_a_write_through_answered_with_an_error),
		cmocka_unit_test(test_an_invalidation_in_the_middle_of_a_reply),
		cmocka_unit_test(test_redirects),
		cmocka_unit_test(test_refusals_that_pass),
		cmocka_unit_test(test_a_slot_that_moved_away_and_back),
		cmocka_unit_test(test_routes_that_take_slots_away),
		cmocka_unit_test(test_liveness_checks),
		cmocka_unit_test(test_liveness_checks_in_a_cluster),
		cmocka_unit_test(test_no_liveness_from_a_silent_connection),
		cmocka_unit_test(test_a_server_that_does_not_track),
		cmocka_unit_test(test_a_server_that_does_not_cache),
		cmocka_unit_test(test_a_server_without_resp3),
		cmocka_unit_test(test_a_connection_that_cannot_be_opened),
		cmocka_unit_test(test_closed_when_nothing_is_cached),
		cmocka_unit_test(test_a_tracking_session_outlives_its_flow),
		cmocka_unit_test(test_one_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
