/* Events in. Each event sets the time, does its work through dispatch.c, and puts sessions that have bytes to
 * send or are to be closed on the sendable list. Its last step resumes the sessions that were queued meanwhile
 * (hs_core_resume_all), so that no command runs in the middle of another event's work. */
#include "core/core.h"

#include "base/mem.h"
#include "core/acl_log.h"
#include "core/deferred.h"
#include "core/dispatch.h"
#include "core/event.h"
#include "core/hold.h"
#include "core/internal.h"
#include "core/multi.h"
#include "core/slowlog.h"
#include "core/state.h"
#include "core/users.h"
#include "wire/reply.h"

const struct hs_counter_table hs_core_counters = HS_COUNTER_TABLE(HS_CORE_COUNTERS);
const struct hs_counter_table hs_hold_counters = HS_COUNTER_TABLE(HS_HOLD_COUNTERS);
const struct hs_counter_table hs_command_counters = HS_COUNTER_TABLE(HS_COMMAND_COUNTERS);

enum { IDLE_SCAN_US = 1000000, READ_ROOM_MAX = 1 << 20 };

struct hs_core *hs_core_create(const struct hs_core_world *world,
			       const struct hs_core_options *options)
{
	struct hs_core *core = hs_mem_zalloc(sizeof *core);

	core->world = *world;
	core->options = *options;
	hs_hash_table_init(&core->ids);
	hs_list_init(&core->sessions);
	hs_list_init(&core->sendable);
	hs_list_init(&core->sleepers);
	hs_list_init(&core->request_pool);
	hs_list_init(&core->reply_budget.held);
	hs_list_init(&core->internal_due);
	hs_list_init(&core->resuming);
	hs_prng_init(&core->prng, world->seed);
	core->slowlog = hs_slowlog_create();
	hs_stages_init(core, world->stages);
	core->self = hs_session_create_self(core);
	hs_hot_table_init(&core->hot_table, world->key_seed);
	core->acl_log = hs_acl_log_create();
	hs_users_adopt(core, options->acl, hs_stages_lost_permission);
	if (options->rules)
		hs_rules_ref(options->rules);
	hs_stages_create(core);
	return core;
}

void hs_core_destroy(struct hs_core **pointer)
{
	struct hs_core *core = *pointer;

	hs_check(hs_list_empty(&core->sessions));
	hs_check(hs_list_empty(&core->self->requests));
	hs_stages_deinit(core);
	hs_hot_table_deinit(&core->hot_table);
	hs_request_pool_deinit(core);
	hs_mem_free(&core->self);
	hs_hash_table_deinit(&core->ids);
	hs_slowlog_destroy(&core->slowlog);
	hs_acl_log_destroy(&core->acl_log);
	hs_acl_unref(&core->acl);
	hs_rules_unref(&core->options.rules);
	hs_mem_free(pointer);
}

void hs_core_configure(struct hs_core *core, const struct hs_core_options *options)
{
	const struct hs_rules *old = core->options.rules;

	if (options->rules)
		hs_rules_ref(options->rules);
	core->options = *options;
	hs_users_adopt(core, options->acl, hs_stages_lost_permission);
	hs_hot_configure(core);
	hs_stages_configure(core);
	hs_rules_unref(&old); /* stages used the old rules until now */
	hs_core_resume_all(core);
}

void hs_core_learn(struct hs_core *core, const struct hs_learned *learned)
{
	core->learned = learned;
}

struct hs_core_stats *hs_core_stats(struct hs_core *core)
{
	return &core->stats;
}

const void *hs_core_stage_stats(const struct hs_core *core, const struct hs_stage *stage)
{
	return (const char *)core->stages.self[hs_stage_index(core, stage)] + stage->counters_at;
}

void hs_core_event(struct hs_core *core, struct hs_now now, const struct hs_event *event)
{
	hs_core_set_now(core, now);
	if (event->kind == HS_EVENT_STAGE)
		hs_stages_told(core, event->stage);
	else
		hs_stages_event(core, event);
	hs_core_resume_all(core);
}

void hs_core_peer(struct hs_core *core, struct hs_now now, struct hs_op *op)
{
	hs_core_set_now(core, now);
	core->world.commands->workers[op->command->id]->part(core, op);
	hs_core_resume_all(core);
}

void hs_core_changed(struct hs_core *core, struct hs_now now,
		     const struct hs_tracking_session *tracking_session, const struct hs_bytes *key)
{
	hs_core_set_now(core, now);
	hs_stages_changed(core, tracking_session, key);
	hs_core_resume_all(core);
}

struct hs_session *hs_core_connect(struct hs_core *core, struct hs_now now,
				   const struct hs_core_client *client)
{
	struct hs_session *session;

	hs_core_set_now(core, now);
	session = hs_session_create(core, client);
	hs_users_reset(core, session);
	hs_stages_open(core, session);
	hs_core_resume_all(core);
	return session;
}

static void end_session(struct hs_core *core, struct hs_session *session)
{
	hs_multi_drop(&session->multi);
	hs_stages_close(core, session);
	hs_session_destroy(core, &session);
}

size_t hs_core_unsent(const struct hs_session *session)
{
	size_t behind =
		session->deferred ? hs_deferred_messages(session->deferred->deferred)->len : 0;

	return session->out.len + session->sending_bytes + session->held_bytes + behind;
}

static void cut(struct hs_core *core, struct hs_session *session, struct hs_counter *counter,
		const char *why)
{
	hs_counter_add(counter, 1);
	hs_log(core->world.log, HS_LOG_WARN, "client %llu at %s cut off: %s",
	       (unsigned long long)session->id, session->address, why);
	session->cut = true;
	session->closing = true;
	hs_session_mark_sendable(core, session);
}

static void cut_off_at_output_limit(struct hs_core *core, struct hs_session *session)
{
	cut(core, session, &core->stats.cut_output, "its unread replies reached output-limit");
}

void hs_core_check_output(struct hs_core *core, struct hs_session *session)
{
	if (!session->cut && hs_core_unsent(session) > core->options.output_bytes_max)
		cut_off_at_output_limit(core, session);
}

bool hs_core_message(struct hs_core *core, struct hs_session *session, struct hs_bytes message,
		     struct hs_request *publisher)
{
	struct hs_buf *out = &session->out;
	size_t unsent = hs_core_unsent(session);

	if (session->closing || session->gone)
		return false;
	/* A single message may exceed the limit; one behind other unsent bytes may not. */
	if (unsent > 0 && unsent + message.len > core->options.output_bytes_max) {
		cut_off_at_output_limit(core, session);
		return false;
	}
	if (publisher && publisher->session == session && !publisher->muted)
		out = &publisher->reply; /* before PUBLISH's own reply */
	else if (session->deferred)
		out = hs_deferred_messages(session->deferred->deferred);
	hs_buf_append_bytes(out, message);
	if (session->resp == 3)
		out->data[out->len - message.len] = '>';
	hs_session_mark_sendable(core, session);
	return true;
}

static bool may_run(const struct hs_session *session)
{
	return !session->closing && !session->gone && hs_hold_allows_next(session);
}

static void protocol_error(struct hs_core *core, struct hs_session *session)
{
	struct hs_request *request = hs_request_get(core, session, NULL);
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};

	hs_reply_errorf(&reply, "ERR %s", session->parser.error);
	hs_request_finish(core, request);
	hs_counter_add(&core->stats.protocol_errors, 1);
	hs_log(core->world.log, HS_LOG_DEBUG, "client %llu at %s: %s",
	       (unsigned long long)session->id, session->address, session->parser.error);
	hs_session_close(core, session);
}

/* Runs the commands in `data`; returns how many bytes are done with. */
static size_t run_input(struct hs_core *core, struct hs_session *session, const char *data,
			size_t len)
{
	size_t at = 0;

	session->running = true;
	hs_dispatch_timing_begin(core);
	while (at < len && may_run(session)) {
		/* The parser reuses its buffer for the words of an inline command: count noted reads before
		 * parsing, because they point to keys there. */
		if (data[at] != '*')
			hs_dispatch_timing_end(core);

		int64_t used = hs_wire_request_parse(&session->parser, data + at, len - at,
						     hs_users_is_admitted(core, session));

		if (used == 0) {
			hs_hold_end(session); /* the held input was not a whole command */
			break;
		}
		if (used < 0) {
			protocol_error(core, session);
			break;
		}
		if (session->parser.argc == 0) {
			at += (size_t)used;
			continue;
		}
		if (hs_core_unsent(session) > core->options.output_bytes_max) {
			cut_off_at_output_limit(core, session);
			break;
		}

		struct hs_call call = {
			.argv = session->parser.argv,
			.argc = session->parser.argc,
			.number = ++core->calls,
			.raw = {data + at, data[at] == '*' ? (size_t)used : 0},
			.pipelined_bytes = len - at - (size_t)used,
		};

		if (!hs_dispatch(core, session, &call))
			break;
		at += (size_t)used;
	}
	hs_dispatch_timing_end(core);
	session->running = false;
	if (session->out.len > 0)
		hs_session_mark_sendable(core, session);
	return session->closing ? len : at;
}

static void run_buffered_input(struct hs_core *core, struct hs_session *session)
{
	size_t used = run_input(core, session, session->in.data, session->in.len);

	hs_buf_consume(&session->in, used);
	if (session->in.len == 0)
		hs_buf_deinit(&session->in);
	else
		hs_hold_pending_input(core, session);
}

/* The client has closed its side: closes the session when all its requests are answered. A held session may
 * still have whole commands to run; otherwise only an incomplete one is left, and the session can close.
 *
 * The exception is a blocked command (BLPOP). Its client has most likely gone, and an element that it popped
 * would be lost. So, as in Redis, no more commands are run or answered; only replies to earlier commands are
 * sent. */
static void close_when_answered(struct hs_core *core, struct hs_session *session)
{
	session->closes_unanswered = hs_dispatch_is_blocked(core, session);
	if (session->closes_unanswered || may_run(session))
		hs_session_close(core, session);
}

void hs_core_resume(struct hs_core *core, struct hs_session *session)
{
	if (session->hold == HS_HOLD_REPLY_BUDGET) {
		hs_hold_end(session); /* the command is dispatched again */
		hs_list_remove(&session->budget_link);
	}
	if (session->gone) {
		if (session->inflight == 0 && session != core->self) {
			core->orphans--;
			end_session(core, session);
		}
		return;
	}
	/* A single reply may exceed the limit; one with more behind it may not. */
	if (session->inflight > 0 || session->in.len > 0)
		hs_core_check_output(core, session);
	if (!session->running && session->in.len > 0 && may_run(session))
		run_buffered_input(core, session);
	if (session->ended && !session->closing)
		close_when_answered(core, session);
}

void hs_core_end(struct hs_core *core, struct hs_session *session)
{
	session->ended = true;
	close_when_answered(core, session);
}

static void receive(struct hs_core *core, struct hs_session *session, const char *data, size_t len)
{
	if (session->in.data && data == session->in.data + session->in.len) {
		/* The driver has read into the session's buffer (hs_core_read_room). */
		session->in.len += len;
	} else if (session->in.len > 0 || !may_run(session)) {
		hs_buf_append(&session->in, data, len);
	} else {
		size_t used = run_input(core, session, data, len);

		if (used < len) {
			hs_buf_append(&session->in, data + used, len - used);
			hs_hold_pending_input(core, session);
		}
		return;
	}
	if (may_run(session))
		run_buffered_input(core, session);
	else
		hs_hold_pending_input(core, session);
	if (session->in.len + session->parser.argc * sizeof *session->parser.argv >
	    HS_QUERY_BYTES_MAX)
		cut(core, session, &core->stats.cut_query, "its request is larger than 1 GiB");
}

void hs_core_receive(struct hs_core *core, struct hs_session *session, struct hs_now now,
		     const char *data, size_t len)
{
	hs_core_set_now(core, now);
	session->last_active_us = now.mono_us;
	hs_counter_add(&core->stats.input_bytes, len);
	if (session->closing)
		return;
	receive(core, session, data, len);
	hs_core_resume_all(core);
}

char *hs_core_read_room(struct hs_session *session, size_t *room)
{
	size_t want;

	if (session->in.len == 0 || session->parser.need <= session->in.len) {
		*room = 0;
		return NULL;
	}
	/* Grow with the bytes that arrive, not with the length that the header announces. */
	want = session->parser.need - session->in.len;
	if (want < HS_IDLE_BUFFER_BYTES)
		want = HS_IDLE_BUFFER_BYTES;
	if (want > READ_ROOM_MAX)
		want = READ_ROOM_MAX;
	*room = want;
	return hs_buf_reserve(&session->in, want);
}

struct hs_session *hs_core_next_sendable(struct hs_core *core)
{
	if (hs_list_empty(&core->sendable))
		return NULL;

	struct hs_session *session =
		hs_list_entry(core->sendable.next, struct hs_session, sendable);

	hs_list_remove(&session->sendable);
	return session;
}

bool hs_core_wants_input(const struct hs_session *session)
{
	return may_run(session) || session->in.len < HS_READ_BYTES;
}

void hs_core_sleep(struct hs_core *core, struct hs_session *session,
		   const struct hs_command *command, uint64_t until_us)
{
	hs_request_get(core, session, command); /* hs_core_alarm answers it */
	session->sleep_until_us = until_us;
	hs_hold(core, session, HS_HOLD_SLEEP);
	hs_list_append(&core->sleepers, &session->sleeping);
}

/* Answers DEBUG SLEEP, which is the session's last request. */
static void end_sleep(struct hs_core *core, struct hs_session *session)
{
	struct hs_request *request = hs_session_last_request(session);
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};

	hs_list_remove(&session->sleeping);
	session->sleep_until_us = 0;
	hs_hold_end(session);
	hs_reply_ok(&reply);
	hs_request_finish(core, request);
}

void hs_core_disconnect(struct hs_core *core, struct hs_session *session)
{
	hs_list_remove(&session->sendable);
	session->gone = true; /* first: nothing below may send to this session */
	hs_hash_table_remove(&core->ids, &session->by_id);
	core->orphans++;
	hs_buf_deinit(&session->in);
	hs_pause_release(core, session);
	hs_dispatch_cancel(core, session);
	hs_stages_forget(core, session);
	if (session->sleep_until_us > 0)
		end_sleep(core, session);
	hs_multi_unwatch(core, session);
	hs_core_resume(core, session);
	hs_core_resume_all(core);
}

void hs_core_resume_later(struct hs_core *core, struct hs_session *session)
{
	if (hs_list_empty(&session->resuming))
		hs_list_append(&core->resuming, &session->resuming);
}

void hs_core_complete(struct hs_core *core, struct hs_now now, struct hs_op *op)
{
	hs_core_set_now(core, now);
	hs_dispatch_complete(core, op);
	hs_core_resume_all(core);
}

bool hs_core_waits_for_reader(const struct hs_session *session)
{
	return session->hold == HS_HOLD_REPLY_BUDGET;
}

void hs_core_sent(struct hs_core *core, struct hs_session *session, struct hs_now now)
{
	hs_core_set_now(core, now);
	hs_core_resume(core, session);
	hs_core_resume_all(core);
}

void hs_core_resume_others(struct hs_core *core)
{
	while (!hs_list_empty(&core->resuming)) {
		struct hs_session *session =
			hs_list_entry(core->resuming.next, struct hs_session, resuming);

		hs_list_remove(&session->resuming);
		hs_core_resume(core, session);
	}
}

bool hs_core_needs_flush(const struct hs_core *core)
{
	return core->stages.want[HS_POINT_FLUSH] ||
	       (core->reply_budget.freed && !hs_list_empty(&core->reply_budget.held));
}

bool hs_core_flush(struct hs_core *core, struct hs_now now)
{
	if (!hs_core_needs_flush(core))
		return false;
	hs_core_set_now(core, now);
	hs_reply_budget_resume(core);
	hs_core_resume_all(core);
	while (core->stages.want[HS_POINT_FLUSH]) {
		hs_stages_flush(core);
		hs_core_resume_all(core);
	}
	return true;
}

static void wake(struct hs_core *core, struct hs_session *session)
{
	end_sleep(core, session);
	hs_core_resume(core, session);
}

static void cool_keys(struct hs_core *core)
{
	hs_list_each_safe(struct hs_hot, hot, &core->hot_table.keys, link) {
		bool cool = hs_hot_is_cool(core, hot);

		hs_stages_cool(core, hot, cool);
		if (cool)
			hs_hot_leave(core, hot);
	}
}

void hs_core_alarm(struct hs_core *core, struct hs_now now)
{
	hs_core_set_now(core, now);
	hs_stages_deadline(core);
	hs_list_each_safe(struct hs_session, session, &core->sleepers, sleeping) {
		if (session->sleep_until_us <= now.mono_us)
			wake(core, session);
	}
	if (core->pause.mode != HS_PAUSE_NONE && core->pause.until_us <= now.mono_us)
		hs_pause_end(core);
	hs_core_resume_all(core);
}

void hs_core_tick(struct hs_core *core, struct hs_now now)
{
	hs_core_alarm(core, now);
	hs_internal_tick(core);
	cool_keys(core);
	hs_stages_tick(core);
	hs_core_resume_all(core);
	if (now.mono_us < core->idle_scan_us)
		return;
	core->idle_scan_us = now.mono_us + IDLE_SCAN_US;
	hs_list_each(struct hs_session, session, &core->sessions, all) {
		uint64_t idle_us = now.mono_us - session->last_active_us;

		if (session->gone || session->inflight > 0 || session->hold == HS_HOLD_PAUSE ||
		    idle_us < IDLE_SCAN_US)
			continue;
		if (session->out.len == 0)
			hs_buf_deinit(&session->out);
		/* Subscribers are expected to be silent. */
		if (core->options.idle_s_max > 0 && !session->subscribed &&
		    idle_us > (uint64_t)core->options.idle_s_max * 1000000)
			hs_session_close(core, session);
	}
}

uint64_t hs_core_deadline(const struct hs_core *core)
{
	uint64_t first = core->stages.first_due_us;

	if (core->pause.sessions > 0 && (first == 0 || core->pause.until_us < first))
		first = core->pause.until_us;

	hs_list_each(struct hs_session, session, &core->sleepers, sleeping) {
		if (first == 0 || session->sleep_until_us < first)
			first = session->sleep_until_us;
	}
	return first;
}

uint32_t hs_core_drain(struct hs_core *core, struct hs_now now, uint64_t quiet_us)
{
	uint32_t left;

	hs_core_set_now(core, now);
	hs_stages_stop(core);
	hs_core_resume_all(core);
	left = core->orphans + core->self->inflight;
	hs_list_each(struct hs_session, session, &core->sessions, all) {
		bool blocked = hs_dispatch_is_blocked(core, session);
		/* Commands held by CLIENT PAUSE never run; their clients have no reply that says otherwise. */
		bool waits = (session->inflight > 0 && !blocked) ||
			     (session->in.len > 0 && session->hold != HS_HOLD_PAUSE);

		if (session->gone)
			continue;
		left++;
		/* The shutdown timeout is over: do not wait for DEBUG SLEEP. */
		if (blocked || (quiet_us == 0 && session->sleep_until_us > 0))
			session->cut = true;
		if (quiet_us == 0 || (!waits && now.mono_us - session->last_active_us >= quiet_us))
			hs_session_close(core, session);
	}
	return left;
}

struct member_visitor {
	void (*visit)(void *context, uint64_t client, uint64_t number);
	void *context;
};

static void visit_member(void *context, struct hs_request *request, bool followed)
{
	const struct member_visitor *member_visitor = context;

	(void)followed;
	member_visitor->visit(member_visitor->context, request->session->id, request->number);
}

void hs_core_members(const struct hs_core *core, const struct hs_op *op,
		     void (*visit)(void *context, uint64_t client, uint64_t number), void *context)
{
	struct hs_request *request = op->owner;
	struct member_visitor member_visitor = {visit, context};

	if (!request)
		return;
	if (request->session != core->self ||
	    !hs_stage_members(core, request, visit_member, &member_visitor))
		visit_member(&member_visitor, request, false);
}
