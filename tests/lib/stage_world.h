/* Stages made for the tests of core/stage.h, in a core whose engine is the test.
 *
 * Three stages, all alike, stand in a row. Each writes down at which points the core calls it, and does what the
 * test orders: it answers, takes, holds, marks or rewrites a command, asks for `flush` at a point, or ends at a point
 * every request that it has taken. The engine keeps operations until the test answers them. Single-threaded. */
#ifndef HS_TESTS_STAGE_WORLD_H
#define HS_TESTS_STAGE_WORLD_H

#include "stages/stages.h"

#include "core/count.h"
#include "core/dispatch.h"
#include "core/event.h"
#include "core/hold.h"
#include "core/internal.h"
#include "core/multi.h"
#include "core/reply_budget.h"
#include "core/stage.h"
#include "core/state.h"
#include "wire/reply.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OPS = 64, STAGES = 3, SEEN_BYTES = 4096 };

/* The points at which a stage can be told to act. */
enum point {
	NOWHERE,
	AT_ADMIT,
	AT_DEPART,
	AT_ARRIVE,
	AT_FLUSH,
	AT_HOT,
	AT_COOL,
	AT_CONFIGURE,
	AT_CHANGED,
	AT_HANDLED,
	AT_FINISH,
	AT_NEWS,
	AT_TOLD,
	AT_TICK,
	AT_DEADLINE,
	AT_STOP,
	AT_FORGET,
	AT_OPEN,
};

/* How a stage ends a request that it has taken. */
enum way {
	SENT,	      /* the engine queues it */
	SENT_AT_ONCE, /* the engine answers it inside the submission */
	ANSWERED,
	SHARED,
	WAYS,
};

/* What a stage does next at a point. */
struct orders {
	enum hs_verdict admit, depart;
	const char *reject; /* what `admit` rejects the command with; NULL: see `admit` */
	enum hs_part_taken
		take;	   /* how `depart` takes a part; HS_PART_FREE: the test says so later */
	enum point end_at; /* where it ends every request that it has taken, and how */
	enum way end_by;
	enum point flush_at; /* where it asks for `flush`, so many times */
	int flushes;
	bool asks_who;	     /* `depart` asks for the requests that an internal call stands for */
	const char *rewrite; /* the key that departing operations get; NULL: their own */
	bool mark;
	bool answer_arrived; /* puts its own reply in place of the engine's */
};

struct mind { /* state of a stage */
	struct hs_core *core;
	uint32_t index;
	struct hs_request *taken[OPS];
	size_t taken_count;
};

struct session_state {
	uint32_t admitted;
};

struct request_state {
	uint32_t departed; /* the number of the request, plus the stage's */
};

static struct {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_core_options options;
	struct hs_core *core;
	struct hs_session *client; /* NULL: the test has disconnected it */
	struct hs_session *other;  /* a second client; NULL: none */
	struct hs_heat *heat;	   /* NULL: nothing is counted */
	struct hs_now now;
	struct hs_op *ops[OPS];
	size_t ops_count;
	const char *at_once; /* how operations are answered inside submit; NULL: by hand */
	struct orders orders[STAGES];
	struct mind *minds[STAGES];
	bool all_points; /* the rarer ones are written down, too */
	bool loses;
	struct hs_event *told;
	char seen[SEEN_BYTES];
	char arrived[64]; /* the reply that `arrive` saw last */
	char queued[64];  /* the commands and first arguments of the EXEC that `admit` saw last */
	char hot_key[16]; /* the key that `hot` saw last */
	char asked[64]; /* whom the last internal call stands for: "CLIENT:NUMBER", + if followed */
	uint32_t closed;
} world;

static inline void see(const struct mind *mind, const char *point)
{
	size_t len = strlen(world.seen);

	snprintf(world.seen + len, sizeof world.seen - len, "%s%s%u", len ? " " : "", point,
		 mind->index);
}

/* What was seen since the last look. */
static inline void saw(const char *expected)
{
	assert_string_equal(world.seen, expected);
	world.seen[0] = '\0';
}

/* --- the stages --- */

static inline void end_request(struct mind *mind, struct hs_request *request, enum way way)
{
	static const struct hs_bytes reply = HS_LIT("$1\r\nk\r\n");
	struct hs_session *session = request->session;

	switch (way) {
	case SENT:
	case SENT_AT_ONCE:
		world.at_once = way == SENT_AT_ONCE ? reply.data : NULL;
		hs_stage_send(mind->core, mind->index, request, &request->parts[0]);
		world.at_once = NULL;
		break;
	case ANSWERED:
		hs_stage_answer(mind->core, mind->index, request, &request->parts[0], reply);
		break;
	case SHARED:
		hs_core_resume_later(mind->core, session); /* hs_stage_share does not */
		hs_stage_share(mind->core, mind->index, request, reply);
		break;
	case WAYS:
		break;
	}
}

/* Does what the stage was told to do at this point. */
static inline void act(struct mind *mind, enum point point)
{
	struct orders *orders = &world.orders[mind->index];
	size_t count = mind->taken_count;

	if (orders->flush_at == point && orders->flushes > 0) {
		orders->flushes--;
		hs_stage_want(mind->core, mind->index, HS_POINT_FLUSH, true);
	}
	if (orders->end_at != point)
		return;
	mind->taken_count = 0;
	for (size_t i = 0; i < count; i++)
		end_request(mind, mind->taken[i], orders->end_by);
}

static inline void note_asker(void *context, struct hs_request *request, bool followed)
{
	size_t len = strlen(world.asked);

	(void)context;
	snprintf(world.asked + len, sizeof world.asked - len, "%s%u:%u%s", len ? " " : "",
		 (unsigned)request->session->id, (unsigned)request->number, followed ? "+" : "");
}

static inline void *create(struct hs_core *core, uint32_t index)
{
	static struct mind minds[STAGES];

	minds[index] = (struct mind){.core = core, .index = index};
	world.minds[index] = &minds[index];
	hs_stage_want(core, index, HS_POINT_ADMIT, true);
	hs_stage_want(core, index, HS_POINT_DEPART, true);
	return &minds[index];
}

static inline void destroy(void *self)
{
	struct mind *mind = self;
	struct hs_link *keys = &mind->core->hots.keys;

	see(self, "end");
	for (struct hs_link *link = keys->next; link != keys; link = link->next)
		hs_list_entry(link, struct hs_hot, link)->state[mind->index] = NULL;
}

static inline void close_session(void *self, struct hs_session *session)
{
	const struct mind *mind = self;
	const struct session_state *state =
		hs_stage_session(session, mind->core->stages.session_at[mind->index]);

	world.closed += state->admitted;
}

static inline void see_queued(const struct hs_multi *multi)
{
	world.queued[0] = '\0';
	for (size_t i = 0; i < hs_multi_count(multi); i++) {
		struct hs_call call = hs_multi_call(multi, i);
		size_t len = strlen(world.queued);

		snprintf(world.queued + len, sizeof world.queued - len, "%s%s %.*s", i ? ", " : "",
			 call.command->name, (int)call.argv[1].len, call.argv[1].data);
	}
}

static inline enum hs_verdict admit(void *self, struct hs_session *session, struct hs_call *call)
{
	struct mind *mind = self;
	struct orders *orders = &world.orders[mind->index];
	struct session_state *state =
		hs_stage_session(session, mind->core->stages.session_at[mind->index]);
	enum hs_verdict verdict = orders->admit;

	see(self, "admit");
	act(self, AT_ADMIT);
	state->admitted++;
	if (session->multi)
		see_queued(session->multi);
	if (orders->reject) {
		hs_dispatch_reject(mind->core, session, call->command, orders->reject);
		return HS_ANSWERED;
	}
	if (verdict == HS_ANSWERED)
		hs_dispatch_answer(mind->core, session, call, 0, HS_LIT("+STAGE\r\n"));
	if (verdict == HS_TAKEN) {
		if (hs_reply_budget_holds(mind->core, session, call))
			return HS_HELD;
		hs_call_slots(call);
		mind->taken[mind->taken_count++] =
			hs_request_single(mind->core, session, call, call->slot);
	}
	if (verdict == HS_HOLD)
		orders->admit = HS_PASS; /* the next time */
	return verdict;
}

static inline enum hs_verdict depart(void *self, struct hs_request *request, struct hs_part *part)
{
	static struct hs_bytes argv[STAGES][2];
	struct mind *mind = self;
	const struct orders *orders = &world.orders[mind->index];
	struct request_state *state =
		hs_stage_request(request, mind->core->stages.request_at[mind->index]);

	see(self, "depart");
	act(self, AT_DEPART);
	if (orders->asks_who && request->session == mind->core->self &&
	    !hs_stage_members(mind->core, request, note_asker, NULL))
		snprintf(world.asked, sizeof world.asked, "nobody");
	if (orders->rewrite) {
		argv[mind->index][0] = part->op.argv[0];
		argv[mind->index][1] = hs_bytes_of(orders->rewrite);
		part->op.argv = argv[mind->index];
		part->op.raw = (struct hs_bytes){NULL, 0};
	}
	if (orders->mark) {
		part->marked |= 1u << mind->index;
		state->departed = (uint32_t)request->number + mind->index;
	}
	if (orders->depart == HS_TAKEN)
		mind->taken[mind->taken_count++] = request;
	if (orders->depart == HS_TAKEN && orders->take == HS_PART_DELAYED)
		hs_stage_delay(request, part);
	if (orders->depart == HS_TAKEN && orders->take == HS_PART_DIVERTED)
		hs_stage_divert(request, part);
	return orders->depart;
}

static inline void arrive(void *self, struct hs_request *request, struct hs_part *part)
{
	struct mind *mind = self;
	const struct request_state *state =
		hs_stage_request(request, mind->core->stages.request_at[mind->index]);
	struct hs_bytes reply;

	see(self, "arrive");
	act(self, AT_ARRIVE);
	reply = part->op.answer.len > 0 ? part->op.answer : hs_buf_bytes(&part->out);
	snprintf(world.arrived, sizeof world.arrived, "%.*s", (int)reply.len, reply.data);
	assert_int_equal(state->departed, request->number + mind->index);
	if (world.orders[mind->index].answer_arrived) {
		part->op.answer.len = 0;
		part->out.len = 0;
		hs_buf_append_bytes(&part->out, HS_LIT("+CHANGED\r\n"));
	}
}

static inline void flush(void *self)
{
	see(self, "flush");
	act(self, AT_FLUSH);
}

static inline void forget(void *self, struct hs_session *session)
{
	(void)session;
	see(self, "forget");
	act(self, AT_FORGET);
}

static inline void hot(void *self, struct hs_hot *key, bool waited)
{
	struct mind *mind = self;

	see(self, waited ? "hot" : "hot-read");
	snprintf(world.hot_key, sizeof world.hot_key, "%.*s", (int)key->key_len, key->key);
	act(self, AT_HOT);
	key->state[mind->index] = self;
}

static inline void cool(void *self, struct hs_hot *key, bool is_cool)
{
	struct mind *mind = self;

	if (!is_cool)
		return;
	see(self, "cool");
	act(self, AT_COOL);
	key->state[mind->index] = NULL;
}

/* --- the rarer points --- */

static inline void see_rare(const struct mind *mind, const char *point)
{
	if (world.all_points)
		see(mind, point);
}

static inline void open_session(void *self, struct hs_session *session)
{
	(void)session;
	see_rare(self, "open");
	act(self, AT_OPEN);
}

static inline void configure(void *self)
{
	see_rare(self, "configure");
	act(self, AT_CONFIGURE);
}

static inline void changed(void *self, const struct hs_tracking_session *tracking_session,
			   const struct hs_bytes *key)
{
	(void)tracking_session;
	see_rare(self, key ? "changed" : "changed-all");
	act(self, AT_CHANGED);
}

static inline void told(void *self)
{
	see_rare(self, "told");
	act(self, AT_TOLD);
}

static inline void tick(void *self)
{
	see_rare(self, "tick");
	act(self, AT_TICK);
}

static inline void deadline(void *self)
{
	see_rare(self, "deadline");
	act(self, AT_DEADLINE);
}

static inline void stop(void *self)
{
	see_rare(self, "stop");
	act(self, AT_STOP);
}

static inline void engine_event(void *self, const struct hs_event *event)
{
	(void)event;
	see_rare(self, "news");
	act(self, AT_NEWS);
}

static inline bool serves(void *self, struct hs_hot *key)
{
	const struct mind *mind = self;

	(void)key;
	see_rare(self, "serves");
	return mind->index == 2;
}

static inline void queued(void *self, struct hs_session *session, const struct hs_call *call)
{
	(void)session, (void)call;
	see_rare(self, "queued");
}

static inline void handled(void *self, struct hs_session *session, const struct hs_call *call)
{
	(void)session, (void)call;
	see_rare(self, "handled");
	act(self, AT_HANDLED);
}

static inline void finish(void *self, struct hs_request *request)
{
	(void)request;
	see_rare(self, "finish");
	act(self, AT_FINISH);
}

static inline bool loses(void *self, const struct hs_session *session,
			 const struct hs_acl_user *old, const struct hs_acl_user *user)
{
	const struct mind *mind = self;

	(void)session, (void)old, (void)user;
	see_rare(self, "loses");
	return world.loses && mind->index == 1;
}

/* The stage has taken every request that an internal call of its own stands for. */
static inline void askers(void *self, const struct hs_request *internal, hs_stage_member *tell_of,
			  void *context)
{
	const struct mind *mind = self;

	assert_int_equal(internal->sender, mind->index + 1);
	for (size_t i = 0; i < mind->taken_count; i++) {
		struct hs_request *request = mind->taken[i];

		tell_of(context, request, hs_session_last_request(request->session) != request);
	}
}

static inline void report(void *self, struct hs_reply *reply)
{
	const struct mind *mind = self;

	hs_reply_array(reply, 1);
	hs_reply_int(reply, mind->index);
}

static const struct hs_stage stage = {
	.name = "test",
	.session_bytes = sizeof(struct session_state),
	.request_bytes = sizeof(struct request_state),
	.create = create,
	.destroy = destroy,
	.close = close_session,
	.admit = admit,
	.depart = depart,
	.arrive = arrive,
	.hot = hot,
	.cool = cool,
	.flush = flush,
	.forget = forget,
	.open = open_session,
	.configure = configure,
	.changed = changed,
	.told = told,
	.tick = tick,
	.deadline = deadline,
	.stop = stop,
	.event = engine_event,
	.serves = serves,
	.queued = queued,
	.handled = handled,
	.finish = finish,
	.loses = loses,
	.report = report,
	.askers = askers,
};

/* --- the world --- */

static inline enum hs_submit submit(void *context, struct hs_op *op)
{
	(void)context;
	if (world.at_once) {
		hs_buf_append(op->out, world.at_once, strlen(world.at_once));
		return HS_SUBMIT_DONE;
	}
	assert_true(world.ops_count < OPS);
	world.ops[world.ops_count++] = op;
	return HS_SUBMIT_QUEUED;
}

static inline void tell(void *context, struct hs_event *event)
{
	(void)context;
	hs_event_unref(&world.told);
	world.told = event;
}

static inline uint64_t mono_us(void *context)
{
	(void)context;
	return world.now.mono_us;
}

static inline struct hs_session *connect_client(uint64_t id)
{
	struct hs_core_client client = {.id = id, .address = "a", .local_address = "b"};

	return hs_core_connect(world.core, world.now, &client);
}

static inline void start_world(struct hs_heat *heat)
{
	static const struct hs_stage *const stages[] = {&stage, &stage, &stage, NULL};
	struct hs_core_world core_world = {
		.commands = &hs_commands,
		.calls = &world.calls,
		.log = &world.log,
		.workers = 1,
		.partitions = 4,
		.reads_at_once = heat != NULL,
		.heat = heat,
		.node_id = "0123456789abcdef0123456789abcdef01234567",
		.slowlog_ids = &world.slowlog_ids,
		.stages = stages,
	};

	memset(&world, 0, sizeof world);
	world.calls = (struct hs_core_calls){.submit = submit, .tell = tell, .mono_us = mono_us};
	world.now.mono_us = 1;
	world.heat = heat;
	world.options = (struct hs_core_options){
		.output_bytes_max = 1 << 20,
		.slowlog_us = -1,
		.hot = {.share = 0.5, .share_least = 0.5, .requests = 1, .cool_us = 10},
	};
	world.core = hs_core_create(&core_world, &world.options);
	world.client = connect_client(1);
}

static inline int open_world(void **state)
{
	(void)state;
	start_world(NULL);
	return 0;
}

/* The engine answers reads at once, and requests are counted. */
static inline int open_counting_world(void **state)
{
	(void)state;
	start_world(hs_heat_create(&(struct hs_heat_options){.partitions = 4, .key_sets = 64}));
	return 0;
}

static inline int close_world(void **state)
{
	(void)state;
	world.all_points = false;
	hs_event_unref(&world.told);
	if (world.other)
		hs_core_disconnect(world.core, world.other);
	world.seen[0] = '\0';
	if (world.client) {
		hs_core_disconnect(world.core, world.client);
		saw("forget0 forget1 forget2");
	}
	assert_int_equal(hs_counter_get(&hs_core_stats(world.core)->inflight), 0);
	hs_core_destroy(&world.core);
	saw("end2 end1 end0");
	if (world.heat)
		hs_heat_destroy(&world.heat);
	return 0;
}

static inline void say(const char *text)
{
	hs_core_receive(world.core, world.client, world.now, text, strlen(text));
	hs_core_flush(world.core, world.now);
}

static inline void heard(const char *expected)
{
	struct hs_buf *out = hs_session_out(world.client);

	assert_int_equal(out->len, strlen(expected));
	if (out->len > 0)
		assert_memory_equal(out->data, expected, out->len);
	out->len = 0;
}

static inline void answer(size_t number, const char *text)
{
	hs_buf_append(world.ops[number]->out, text, strlen(text));
	hs_core_complete(world.core, world.now, world.ops[number]);
}

/* Nothing of the client, or of the core itself, is in flight. */
static inline void is_idle(void)
{
	const struct hs_session *sessions[] = {world.core->self, world.client};

	for (size_t s = 0; s < (world.client ? 2 : 1); s++) {
		for (int i = 0; i < HS_PARTITION_BUCKETS; i++)
			assert_int_equal(sessions[s]->in_bucket[i], 0);
		assert_int_equal(sessions[s]->inflight, 0);
		assert_int_equal(sessions[s]->delayed, 0);
		assert_int_equal(sessions[s]->flight_bytes, 0);
	}
}

#endif
