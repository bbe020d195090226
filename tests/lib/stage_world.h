/* A fixture for unit tests of core/stage.h: three identical test stages in a row, in a core whose engine is played by
 * the test.
 *
 * Each stage records at which points the core calls it, and does what the test orders: it answers, takes, holds,
 * marks or rewrites a command, asks for `flush` at a point, or ends at a point all requests that it has taken. The
 * engine holds operations until the test answers them. One thread; the world is one static variable, reset by
 * open_world. Limits: OPS operations, POINTS_BYTES of recorded points. */
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

enum { OPS = 64, STAGES = 3, POINTS_BYTES = 4096 };

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
	AT_EVENT,
	AT_TOLD,
	AT_TICK,
	AT_DEADLINE,
	AT_STOP,
	AT_FORGET,
	AT_OPEN,
};

/* How a stage ends a request that it has taken. */
enum ending {
	SENT,	      /* the engine queues it */
	SENT_AT_ONCE, /* the engine answers it inside the submission */
	ANSWERED,
	SHARED,
	ENDINGS,
};

/* The test's orders to a stage. */
struct orders {
	enum hs_stage_result admit, depart;
	const char
		*reject; /* the error with which `admit` rejects the command; NULL: it does not */
	enum hs_part_taken take; /* HS_PART_FREE: the test itself calls hs_stage_delay or _divert */
	enum point end_at;	 /* the point at which it ends all taken requests */
	enum ending end_by;
	enum point flush_at; /* the point at which it asks for `flush`; `flushes`: how often */
	int flushes;
	bool asks_members;   /* `depart` asks for the requests that an internal call stands for */
	const char *rewrite; /* the new key of departing operations; NULL: unchanged */
	bool mark;
	bool answer_arrived; /* puts its own reply in place of the engine's */
};

struct stage_state { /* state of a stage */
	struct hs_core *core;
	uint32_t index;
	struct hs_request *taken[OPS];
	size_t taken_count;
};

struct session_state {
	uint32_t admitted;
};

struct request_state {
	uint32_t departed; /* the request's number plus the stage's index */
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
	const char *at_once; /* reply given inside submit; NULL: the test answers later */
	struct orders orders[STAGES];
	struct stage_state *stage_states[STAGES];
	bool all_points; /* rare points are recorded, too */
	bool lost_permission;
	struct hs_event *told;
	char points_seen[POINTS_BYTES];
	char arrived[64]; /* the reply that `arrive` saw last */
	char exec_command
		[64];	  /* the commands and first arguments of the EXEC that `admit` saw last */
	char hot_key[16]; /* the key that `hot` saw last */
	char members_text
		[64]; /* requests of the last internal call: "CLIENT:NUMBER", + if followed */
	uint32_t closed;
} world;

static inline void note_point(const struct stage_state *stage_state, const char *point)
{
	size_t len = strlen(world.points_seen);

	snprintf(world.points_seen + len, sizeof world.points_seen - len, "%s%s%u", len ? " " : "",
		 point, stage_state->index);
}

/* Asserts the points recorded since the last call. */
static inline void expect_points(const char *expected)
{
	assert_string_equal(world.points_seen, expected);
	world.points_seen[0] = '\0';
}

/* --- the stages --- */

static inline void end_request(struct stage_state *stage_state, struct hs_request *request,
			       enum ending ending)
{
	static const struct hs_bytes reply = HS_LIT("$1\r\nk\r\n");
	struct hs_session *session = request->session;

	switch (ending) {
	case SENT:
	case SENT_AT_ONCE:
		world.at_once = ending == SENT_AT_ONCE ? reply.data : NULL;
		hs_stage_send(stage_state->core, stage_state->index, request, &request->parts[0]);
		world.at_once = NULL;
		break;
	case ANSWERED:
		hs_stage_answer(stage_state->core, stage_state->index, request, &request->parts[0],
				reply);
		break;
	case SHARED:
		hs_core_resume_later(stage_state->core, session); /* hs_stage_share does not */
		hs_stage_share(stage_state->core, stage_state->index, request, reply);
		break;
	case ENDINGS:
		break;
	}
}

/* Carries out the test's orders for this point. */
static inline void act(struct stage_state *stage_state, enum point point)
{
	struct orders *orders = &world.orders[stage_state->index];
	size_t count = stage_state->taken_count;

	if (orders->flush_at == point && orders->flushes > 0) {
		orders->flushes--;
		hs_stage_want(stage_state->core, stage_state->index, HS_POINT_FLUSH, true);
	}
	if (orders->end_at != point)
		return;
	stage_state->taken_count = 0;
	for (size_t i = 0; i < count; i++)
		end_request(stage_state, stage_state->taken[i], orders->end_by);
}

static inline void note_member(void *context, struct hs_request *request, bool followed)
{
	size_t len = strlen(world.members_text);

	(void)context;
	snprintf(world.members_text + len, sizeof world.members_text - len, "%s%u:%u%s",
		 len ? " " : "", (unsigned)request->session->id, (unsigned)request->number,
		 followed ? "+" : "");
}

static inline void *create(struct hs_core *core, uint32_t index)
{
	static struct stage_state stage_states[STAGES];

	stage_states[index] = (struct stage_state){.core = core, .index = index};
	world.stage_states[index] = &stage_states[index];
	hs_stage_want(core, index, HS_POINT_ADMIT, true);
	hs_stage_want(core, index, HS_POINT_DEPART, true);
	return &stage_states[index];
}

static inline void destroy(void *self)
{
	struct stage_state *stage_state = self;
	struct hs_link *keys = &stage_state->core->hot_table.keys;

	note_point(self, "end");
	for (struct hs_link *link = keys->next; link != keys; link = link->next)
		hs_list_entry(link, struct hs_hot, link)->state[stage_state->index] = NULL;
}

static inline void close_session(void *self, struct hs_session *session)
{
	const struct stage_state *stage_state = self;
	const struct session_state *state =
		hs_stage_session(session, stage_state->core->stages.session_at[stage_state->index]);

	world.closed += state->admitted;
}

static inline void note_queued(const struct hs_multi *multi)
{
	world.exec_command[0] = '\0';
	for (size_t i = 0; i < hs_multi_count(multi); i++) {
		struct hs_call call = hs_multi_call(multi, i);
		size_t len = strlen(world.exec_command);

		snprintf(world.exec_command + len, sizeof world.exec_command - len, "%s%s %.*s",
			 i ? ", " : "", call.command->name, (int)call.argv[1].len,
			 call.argv[1].data);
	}
}

static inline enum hs_stage_result admit(void *self, struct hs_session *session,
					 struct hs_call *call)
{
	struct stage_state *stage_state = self;
	struct orders *orders = &world.orders[stage_state->index];
	struct session_state *state =
		hs_stage_session(session, stage_state->core->stages.session_at[stage_state->index]);
	enum hs_stage_result verdict = orders->admit;

	note_point(self, "admit");
	act(self, AT_ADMIT);
	state->admitted++;
	if (session->multi)
		note_queued(session->multi);
	if (orders->reject) {
		hs_dispatch_reject(stage_state->core, session, call->command, orders->reject);
		return HS_ANSWERED;
	}
	if (verdict == HS_ANSWERED)
		hs_dispatch_answer(stage_state->core, session, call, 0, HS_LIT("+STAGE\r\n"));
	if (verdict == HS_TAKEN) {
		if (hs_reply_budget_holds(stage_state->core, session, call))
			return HS_ALREADY_HELD;
		hs_call_slots(call);
		stage_state->taken[stage_state->taken_count++] =
			hs_request_single(stage_state->core, session, call, call->slot);
	}
	if (verdict == HS_HOLD)
		orders->admit = HS_PASS; /* the next time */
	return verdict;
}

static inline enum hs_stage_result depart(void *self, struct hs_request *request,
					  struct hs_part *part)
{
	static struct hs_bytes argv[STAGES][2];
	struct stage_state *stage_state = self;
	const struct orders *orders = &world.orders[stage_state->index];
	struct request_state *state =
		hs_stage_request(request, stage_state->core->stages.request_at[stage_state->index]);

	note_point(self, "depart");
	act(self, AT_DEPART);
	if (orders->asks_members && request->session == stage_state->core->self &&
	    !hs_stage_members(stage_state->core, request, note_member, NULL))
		snprintf(world.members_text, sizeof world.members_text, "nobody");
	if (orders->rewrite) {
		argv[stage_state->index][0] = part->op.argv[0];
		argv[stage_state->index][1] = hs_bytes_of(orders->rewrite);
		part->op.argv = argv[stage_state->index];
		part->op.raw = (struct hs_bytes){NULL, 0};
	}
	if (orders->mark) {
		part->marked |= 1u << stage_state->index;
		state->departed = (uint32_t)request->number + stage_state->index;
	}
	if (orders->depart == HS_TAKEN)
		stage_state->taken[stage_state->taken_count++] = request;
	if (orders->depart == HS_TAKEN && orders->take == HS_PART_DELAYED)
		hs_stage_delay(request, part);
	if (orders->depart == HS_TAKEN && orders->take == HS_PART_DIVERTED)
		hs_stage_divert(request, part);
	return orders->depart;
}

static inline void arrive(void *self, struct hs_request *request, struct hs_part *part)
{
	struct stage_state *stage_state = self;
	const struct request_state *state =
		hs_stage_request(request, stage_state->core->stages.request_at[stage_state->index]);
	struct hs_bytes reply;

	note_point(self, "arrive");
	act(self, AT_ARRIVE);
	reply = part->op.answer.len > 0 ? part->op.answer : hs_buf_bytes(&part->out);
	snprintf(world.arrived, sizeof world.arrived, "%.*s", (int)reply.len, reply.data);
	assert_int_equal(state->departed, request->number + stage_state->index);
	if (world.orders[stage_state->index].answer_arrived) {
		part->op.answer.len = 0;
		part->out.len = 0;
		hs_buf_append_bytes(&part->out, HS_LIT("+CHANGED\r\n"));
	}
}

static inline void flush(void *self)
{
	note_point(self, "flush");
	act(self, AT_FLUSH);
}

static inline void forget(void *self, struct hs_session *session)
{
	(void)session;
	note_point(self, "forget");
	act(self, AT_FORGET);
}

static inline void hot(void *self, struct hs_hot *key, bool waited)
{
	struct stage_state *stage_state = self;

	note_point(self, waited ? "hot" : "hot-read");
	snprintf(world.hot_key, sizeof world.hot_key, "%.*s", (int)key->key_len, key->key);
	act(self, AT_HOT);
	key->state[stage_state->index] = self;
}

static inline void cool(void *self, struct hs_hot *key, bool is_cool)
{
	struct stage_state *stage_state = self;

	if (!is_cool)
		return;
	note_point(self, "cool");
	act(self, AT_COOL);
	key->state[stage_state->index] = NULL;
}

/* --- the rarer points --- */

static inline void note_rare_point(const struct stage_state *stage_state, const char *point)
{
	if (world.all_points)
		note_point(stage_state, point);
}

static inline void open_session(void *self, struct hs_session *session)
{
	(void)session;
	note_rare_point(self, "open");
	act(self, AT_OPEN);
}

static inline void configure(void *self)
{
	note_rare_point(self, "configure");
	act(self, AT_CONFIGURE);
}

static inline void changed(void *self, const struct hs_tracking_session *tracking_session,
			   const struct hs_bytes *key)
{
	(void)tracking_session;
	note_rare_point(self, key ? "changed" : "changed-all");
	act(self, AT_CHANGED);
}

static inline void told(void *self)
{
	note_rare_point(self, "told");
	act(self, AT_TOLD);
}

static inline void tick(void *self)
{
	note_rare_point(self, "tick");
	act(self, AT_TICK);
}

static inline void deadline(void *self)
{
	note_rare_point(self, "deadline");
	act(self, AT_DEADLINE);
}

static inline void stop(void *self)
{
	note_rare_point(self, "stop");
	act(self, AT_STOP);
}

static inline void engine_event(void *self, const struct hs_event *event)
{
	(void)event;
	note_rare_point(self, "news");
	act(self, AT_EVENT);
}

static inline bool serves(void *self, struct hs_hot *key)
{
	const struct stage_state *stage_state = self;

	(void)key;
	note_rare_point(self, "serves");
	return stage_state->index == 2;
}

static inline void exec_command(void *self, struct hs_session *session, const struct hs_call *call)
{
	(void)session, (void)call;
	note_rare_point(self, "queued");
}

static inline void handled(void *self, struct hs_session *session, const struct hs_call *call)
{
	(void)session, (void)call;
	note_rare_point(self, "handled");
	act(self, AT_HANDLED);
}

static inline void finish(void *self, struct hs_request *request)
{
	(void)request;
	note_rare_point(self, "finish");
	act(self, AT_FINISH);
}

static inline bool lost_permission(void *self, const struct hs_session *session,
				   const struct hs_acl_user *old, const struct hs_acl_user *user)
{
	const struct stage_state *stage_state = self;

	(void)session, (void)old, (void)user;
	note_rare_point(self, "loses");
	return world.lost_permission && stage_state->index == 1;
}

/* The members of an internal call are the requests that its stage has taken. */
static inline void askers(void *self, const struct hs_request *internal, hs_stage_member *tell_of,
			  void *context)
{
	const struct stage_state *stage_state = self;

	assert_int_equal(internal->sender_stage, stage_state->index + 1);
	for (size_t i = 0; i < stage_state->taken_count; i++) {
		struct hs_request *request = stage_state->taken[i];

		tell_of(context, request, hs_session_last_request(request->session) != request);
	}
}

static inline void report(void *self, struct hs_reply *reply)
{
	const struct stage_state *stage_state = self;

	hs_reply_array(reply, 1);
	hs_reply_int(reply, stage_state->index);
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
	.serves_reads = serves,
	.exec_command = exec_command,
	.handled = handled,
	.before_reply = finish,
	.lost_permission = lost_permission,
	.report = report,
	.members = askers,
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
	world.calls =
		(struct hs_core_calls){.submit = submit, .broadcast = tell, .mono_us = mono_us};
	world.now.mono_us = 1;
	world.heat = heat;
	world.options = (struct hs_core_options){
		.output_bytes_max = 1 << 20,
		.slowlog_us = -1,
		.hot = {.share = 0.5, .share_exit = 0.5, .requests = 1, .cool_down_us = 10},
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

/* As open_world; the engine answers reads at once, and heat is counted. */
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
	world.points_seen[0] = '\0';
	if (world.client) {
		hs_core_disconnect(world.core, world.client);
		expect_points("forget0 forget1 forget2");
	}
	assert_int_equal(hs_counter_get(&hs_core_stats(world.core)->inflight), 0);
	hs_core_destroy(&world.core);
	expect_points("end2 end1 end0");
	if (world.heat)
		hs_heat_destroy(&world.heat);
	return 0;
}

static inline void say(const char *text)
{
	hs_core_receive(world.core, world.client, world.now, text, strlen(text));
	hs_core_flush(world.core, world.now);
}

static inline void received(const char *expected)
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

/* Asserts that neither the client nor the core itself has anything in flight. */
static inline void is_idle(void)
{
	const struct hs_session *sessions[] = {world.core->self, world.client};

	for (size_t s = 0; s < (world.client ? 2 : 1); s++) {
		for (int i = 0; i < HS_PARTITION_BUCKETS; i++)
			assert_int_equal(sessions[s]->in_bucket[i], 0);
		assert_int_equal(sessions[s]->inflight, 0);
		assert_int_equal(sessions[s]->delayed, 0);
		assert_int_equal(sessions[s]->reply_bytes, 0);
	}
}

#endif
