/* Which reads are recorded, and which connections get an invalidation.
 *
 * A client that tracks may cache the value of a read until it gets an invalidation of the key. The promise: a
 * client caches no overwritten value unless its invalidation is on the way. It follows from three orders.
 *
 *     worker      record k ─ submit GET k ───────────────────── reply ─ "k changed"
 *                                │                                ▲          ▲
 *     engine                     └─ read k ─ write k ─ event ─────┴──────────┘
 *
 * 1. A key is recorded in the event that submits its read. A write that the read did not see is reported in a
 *    later event, which finds the key recorded. If the key were recorded when the reply comes, a report that
 *    overtakes the reply would find no reader.
 *
 * 2. A change is reported when it is visible: a read after the report sees the change or a later one
 *    (engine/engine.h). So a key that is dropped here and recorded again by the next read is recorded for a
 *    value that is new enough.
 *
 * 3. The invalidation is sent behind the replies to everything that the connection has in flight (core/push.c).
 *    Among them may be the read of the old value: the client must get that reply first and the invalidation
 *    after it. In the other order it would cache the old value and get no further invalidation, because a key
 *    is dropped with its first one. A read that comes later is answered behind the invalidation.
 *
 * Errors are on the safe side: a client may get an invalidation of a key that did not change in the end, or
 * that it has read again since.
 *
 * Invalidations for another connection (REDIRECT) wait for the replies of the connection that read, as in
 * Redis, where a command is answered before the next one changes anything. If the other connection belongs to
 * another worker, they travel there in one call between workers: message bodies, one after the other, which
 * that worker puts into the connection's RESP version.
 *
 * The table is bounded (tracking-table-max-keys and HS_TRACKING_TABLE_BYTES_MAX, each worker has its share). A
 * new key is always recorded. When a command exceeds the limit, random keys are evicted after it was handed
 * over, at most FORGET_AT_ONCE per command and FORGET_WITH_TICK per tick; their readers get an invalidation, as
 * if the key had changed. A key with a write in flight is passed over. */
#include "push/tracking.h"
#include "core/internal.h"

#include "base/mem.h"
#include "core/event.h"
#include "core/push.h"
#include "core/reserved.h"
#include "core/state.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"

enum {
	FORGET_AT_ONCE = 1024,
	FORGET_WITH_TICK = 16384,
	/* at most as many keys are passed over because of a write in flight; then the next command or tick
	 * makes room */
	PASSED_MAX = 16,
};

struct hs_tracking *hs_tracking_create(uint64_t seed)
{
	struct hs_tracking *tracking = hs_mem_zalloc(sizeof *tracking);

	hs_list_init(&tracking->prefixes);
	tracking->table = hs_tracking_table_create(seed);
	tracking->table_bytes_max = HS_TRACKING_TABLE_BYTES_MAX;
	return tracking;
}

void hs_tracking_destroy(struct hs_tracking **tracking)
{
	hs_check(hs_list_empty(&(*tracking)->prefixes));
	hs_tracking_table_destroy(&(*tracking)->table);
	hs_buf_deinit(&(*tracking)->body);
	hs_buf_deinit(&(*tracking)->message);
	hs_mem_free(tracking);
}

void hs_tracking_count(struct hs_core *core)
{
	struct hs_push_stage *push = hs_push_of(core);
	const struct hs_tracking *tracking = push->tracking;

	hs_counter_set(&push->stats.tracking_clients, tracking->trackers);
	hs_counter_set(&push->stats.tracking_keys, tracking->table->keys.count);
	hs_counter_set(&push->stats.tracking_items, tracking->table->items);
	hs_counter_set(&push->stats.tracking_prefixes, tracking->prefixes_count);
}

/* --- messages --- */

/* Writes an invalidation in the connection's RESP version. A RESP2 connection gets it only if it is the target
 * of a REDIRECT and subscribed to messages. */
static void write_message(const struct hs_session *session, bool redirected, struct hs_bytes body,
			  struct hs_buf *out)
{
	struct hs_reply reply = {.out = out, .resp = session->resp};

	if (session->resp > 2) {
		hs_reply_push(&reply, 2);
		hs_reply_bulk_text(&reply, "invalidate");
	} else if (redirected && session->subscribed) {
		hs_reply_array(&reply, 3);
		hs_reply_bulk_text(&reply, "message");
		hs_reply_bulk_text(&reply, "__redis__:invalidate");
	} else {
		return;
	}
	if (body.data[0] == '_')
		hs_reply_null(&reply);
	else
		hs_buf_append_bytes(out, body);
}

void hs_tracking_send_behind(struct hs_core *core, struct hs_request *request, struct hs_bytes body)
{
	struct hs_buf *message = &hs_push_of(core)->tracking->message;
	const struct hs_session *session = request->session;
	const struct hs_tracker *tracker = hs_tracker_of(core, session);

	hs_counter_add(&hs_push_of(core)->stats.tracking_messages, 1);
	if (tracker->redirect > 0 && tracker->redirect != session->id) {
		hs_push_behind(core, request, tracker->redirect, tracker->redirect_worker, body);
		return;
	}
	hs_buf_clear(message, HS_IDLE_BUFFER_BYTES);
	write_message(session, tracker->redirect > 0, body, message);
	hs_push_behind(core, request, 0, 0, hs_buf_bytes(message));
}

static void tell(struct hs_core *core, struct hs_session *session, struct hs_bytes body)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;
	const struct hs_tracker *tracker = hs_tracker_of(core, session);

	hs_counter_add(&hs_push_of(core)->stats.tracking_messages, 1);
	if (tracker->redirect > 0 && tracker->redirect != session->id) {
		hs_push_redirected(core, session, tracker->redirect, tracker->redirect_worker,
				   body);
		return;
	}
	hs_buf_clear(&tracking->message, HS_IDLE_BUFFER_BYTES);
	write_message(session, tracker->redirect > 0, body, &tracking->message);
	hs_push(core, session, hs_buf_bytes(&tracking->message));
}

/* The connection that `from` redirects to has gone. */
static void tell_broken(struct hs_core *core, uint64_t from, uint64_t to)
{
	struct hs_session *session = hs_session_find(core, from);
	struct hs_buf *message = &hs_push_of(core)->tracking->message;
	struct hs_reply reply = {.out = message, .resp = 3};

	if (!session || !hs_tracker_of(core, session) ||
	    hs_tracker_of(core, session)->redirect != to)
		return;
	hs_tracker_of(core, session)->redirect_broken = true;
	if (session->resp < 3)
		return;
	hs_buf_clear(message, HS_IDLE_BUFFER_BYTES);
	hs_reply_push(&reply, 2);
	hs_reply_bulk_text(&reply, "tracking-redir-broken");
	hs_reply_int(&reply, (int64_t)to);
	hs_push(core, session, hs_buf_bytes(message));
}

/* False: the connection is not on this worker. */
static bool deliver_redirected(struct hs_core *core, uint64_t to, struct hs_bytes bodies)
{
	struct hs_session *session = hs_session_find(core, to);
	struct hs_buf *message = &hs_push_of(core)->tracking->message;

	if (!session)
		return false;
	hs_buf_clear(message, HS_IDLE_BUFFER_BYTES);
	while (bodies.len > 0) {
		int64_t len = hs_parse_reply_length(bodies.data, bodies.len);

		/* heatsink itself has written the bodies, so they are well-formed */
		hs_check(len > 0);
		write_message(session, true, (struct hs_bytes){bodies.data, (size_t)len}, message);
		bodies.data += len;
		bodies.len -= (size_t)len;
	}
	hs_push(core, session, hs_buf_bytes(message));
	return true;
}

/* The other worker has answered whether it could deliver the redirected messages. */
static void redirect_answered(struct hs_core *core, struct hs_request *request)
{
	const struct hs_op *op = &request->parts[0].op;
	struct hs_parsed_reply answer;
	uint64_t to;

	memcpy(&to, request->call.argv[1].data, sizeof to);
	if (hs_parse_reply_head(&answer, op->out->data, op->out->len) > 0 && answer.integer == 0)
		tell_broken(core, op->watcher, to);
	hs_internal_end(core, request);
}

void hs_tracking_forward(struct hs_core *core, uint64_t from, uint64_t to, uint32_t worker,
			 struct hs_bytes bodies)
{
	const struct hs_command *command = hs_command_by_id(HS_CMD_ID_CLIENT_TRACKING);
	struct hs_bytes argv[] = {HS_LIT(""), {(const char *)&to, sizeof to}, bodies};
	struct hs_internal internal = {
		.call = hs_call_of(command, 3, argv),
		.on_done = redirect_answered,
		.kind = HS_OP_PEER,
		.slot = HS_SLOT_NONE,
		/* No stage: a stage that first sends something of the same connection would have replies
		 * delivered inside this delivery. */
		.stage = HS_STAGE_NONE,
	};
	struct hs_request *request;

	if (worker == core->world.worker) {
		if (!deliver_redirected(core, to, bodies))
			tell_broken(core, from, to);
		return;
	}
	request = hs_internal_prepare(core, &internal);
	request->parts[0].op.partition = (uint16_t)worker;
	request->parts[0].op.watcher = from;
	hs_internal_send(core, request);
}

/* Another worker asks whether a connection is here, or sends messages for it. Replies 1 if it is here. */
static void tracking_part(struct hs_core *core, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	uint64_t id;

	memcpy(&id, op->argv[1].data, sizeof id);
	hs_reply_int(&reply, op->argc > 2 ? deliver_redirected(core, id, op->argv[2])
					  : hs_session_find(core, id) != NULL);
}

const struct hs_workers_run hs_workers_client_tracking = {.part = tracking_part};

/* --- reads --- */

static bool wants_keys(const struct hs_tracker *tracker)
{
	if (tracker->bcast)
		return false;
	return (!tracker->optin || tracker->caching) && (!tracker->optout || !tracker->caching);
}

/* As in Redis: a write tracks nothing; a script tracks every key it may read. */
static bool may_read(const struct hs_command *command)
{
	return command->flags & (HS_CMD_READONLY | HS_CMD_EFFECT_UNKNOWN);
}

void hs_tracking_read(struct hs_core *core, struct hs_session *session, const struct hs_call *call)
{
	struct hs_key_walk walk;
	size_t at;

	if (!may_read(call->command) || !wants_keys(hs_tracker_of(core, session)))
		return;
	hs_call_keys(call, &walk);
	while ((at = hs_keys_next(&walk)) > 0)
		hs_tracking_table_add(hs_push_of(core)->tracking->table, call->argv[at],
				      session->id);
}

void hs_tracking_write_key(struct hs_tracking *tracking, struct hs_bytes key)
{
	struct hs_reply reply = {.out = &tracking->body, .resp = 3};

	hs_buf_clear(&tracking->body, HS_IDLE_BUFFER_BYTES);
	hs_reply_array(&reply, 1);
	hs_reply_bulk(&reply, key);
}

/* Sends an invalidation to every connection that has read the key, then drops them. Two kinds stay recorded: a
 * NOLOOP connection that made the change itself (it gets no message), and a connection with an unanswered write
 * of the key (tracking_own_writes.c). */
static void tell_readers(struct hs_core *core, struct hs_tracked *tracked, uint64_t by)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;
	uint32_t keep = 0;

	hs_tracking_write_key(tracking, hs_tracked_key(tracked));
	for (uint32_t i = 0; i < tracked->count; i++) {
		struct hs_session *session = hs_session_find(core, tracked->ids[i]);

		if (!session || !hs_tracker_of(core, session) ||
		    hs_tracker_of(core, session)->bcast)
			continue;
		if (hs_tracker_of(core, session)->noloop && by == session->id) {
			tracked->ids[keep++] = session->id;
			continue;
		}
		tell(core, session, hs_buf_bytes(&tracking->body));
		if (hs_tracking_has_write(core, session, hs_tracked_key(tracked)))
			tracked->ids[keep++] = session->id;
	}
	hs_tracking_table_forget(tracking->table, tracked, keep);
}

/* This worker's share of the limit; UINT64_MAX: no limit. */
static uint64_t keys_max(const struct hs_core *core)
{
	uint64_t share = core->options.tracking_keys_max / core->world.workers;

	if (core->options.tracking_keys_max == 0)
		return UINT64_MAX;
	return share > 0 ? share : 1;
}

static bool too_full(const struct hs_core *core)
{
	const struct hs_tracking_table *table = hs_push_of(core)->tracking->table;
	uint64_t max = keys_max(core);

	return table->keys.count > max || table->items / HS_TRACKING_CLIENTS_PER_KEY > max ||
	       table->bytes > hs_push_of(core)->tracking->table_bytes_max;
}

/* Whether a connection that has read the key has a write of it in flight: the key must stay until that is
 * answered. */
static bool is_being_written(const struct hs_core *core, const struct hs_tracked *tracked)
{
	for (uint32_t i = 0; i < tracked->count; i++) {
		const struct hs_session *session = hs_session_find(core, tracked->ids[i]);

		if (session && hs_tracker_of(core, session) &&
		    hs_tracking_has_write(core, session, hs_tracked_key(tracked)))
			return true;
	}
	return false;
}

/* Evicts random keys until the table is within its limits. Their readers get an invalidation and read again
 * when they need to. A key that must stay is passed over. */
static void make_room(struct hs_core *core, size_t limit)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;
	size_t passed = 0;

	while (limit-- > 0 && passed < PASSED_MAX && tracking->table->keys.count > 0 &&
	       too_full(core)) {
		struct hs_tracked *tracked = hs_tracking_table_pick(tracking->table, &core->prng);

		if (is_being_written(core, tracked)) {
			passed++;
			continue;
		}
		tell_readers(core, tracked, 0);
		hs_counter_add(&hs_push_of(core)->stats.tracking_evicted, 1);
	}
}

/* CLIENT and its subcommands do not use up CLIENT CACHING. */
static bool is_client_command(const struct hs_call *call)
{
	const struct hs_command *command = hs_command_find(call->argv[0]);

	return command && command->id == HS_CMD_ID_CLIENT && call->argc > 1 &&
	       hs_command_sub(command, call->argv[1]);
}

void hs_tracking_settle(struct hs_core *core, struct hs_session *session,
			const struct hs_call *call)
{
	struct hs_tracker *tracker = hs_tracker_of(core, session);

	/* Only after the command was handed over: an invalidation of its own keys must come behind its reply. */
	make_room(core, FORGET_AT_ONCE);
	if (tracker->caching && !session->multi && !is_client_command(call))
		tracker->caching = false;
	hs_tracking_count(core);
}

void hs_tracking_tick(struct hs_core *core)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;

	if (tracking->table->keys.count > 0) {
		make_room(core, FORGET_WITH_TICK);
		hs_tracking_count(core);
	}
	hs_tracking_table_free_some(tracking->table);
}

/* --- the engine's events --- */

/* Writes to `body` the changed keys with this prefix, without those that only connection `except` changed (0:
 * none). False: there are none. */
static bool write_keys(const struct hs_core *core, const struct hs_event *event,
		       struct hs_bytes prefix, uint64_t except)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;
	bool hides = hs_core_reserves(core);
	struct hs_reply reply = {.out = &tracking->body, .resp = 3};
	size_t count = 0;

	for (int round = 0; round < 2; round++) {
		if (round == 1) {
			if (count == 0)
				return false;
			hs_buf_clear(&tracking->body, HS_IDLE_BUFFER_BYTES);
			hs_reply_array(&reply, count);
		}
		for (uint32_t i = 0; i < event->keys_count; i++) {
			if (!hs_bytes_begins(event->keys[i], prefix) ||
			    (hides && hs_is_reserved(event->keys[i])) ||
			    (except > 0 && event->by && event->by[i] == except))
				continue;
			if (round == 1)
				hs_reply_bulk(&reply, event->keys[i]);
			else
				count++;
		}
	}
	return true;
}

/* Sends one message with all changed keys to each connection that tracks the prefix. Most get the same body. */
static void tell_prefix(struct hs_core *core, const struct hs_event *event,
			const struct hs_prefix *prefix)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;
	bool any = write_keys(core, event, prefix->bytes, 0);

	if (!any)
		return;
	hs_list_each(const struct hs_prefix_member, member, &prefix->members, link) {
		struct hs_session *session = member->session;

		if (!hs_tracker_of(core, session)->noloop) {
			tell(core, session, hs_buf_bytes(&tracking->body));
			continue;
		}
		if (write_keys(core, event, prefix->bytes, session->id))
			tell(core, session, hs_buf_bytes(&tracking->body));
		write_keys(core, event, prefix->bytes, 0);
	}
}

static void tell_all(struct hs_core *core)
{
	hs_list_each(struct hs_session, session, &core->sessions, all) {
		if (!hs_tracker_of(core, session))
			continue;
		/* The reply of each write in flight will be followed by an invalidation, even if its key is not
		 * recorded (tracking_own_writes.c). */
		hs_push_session(core, session)->forgotten_requests = session->requests_made;
		tell(core, session, HS_TRACKING_ALL_KEYS);
	}
	hs_tracking_table_retire(&hs_push_of(core)->tracking->table);
}

void hs_tracking_event(struct hs_core *core, const struct hs_event *event)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;

	if (tracking->trackers == 0)
		return;
	if (event->kind == HS_EVENT_CHANGED_ALL)
		tell_all(core);
	for (uint32_t i = 0; i < event->keys_count; i++) {
		struct hs_tracked *tracked =
			hs_tracking_table_find(tracking->table, event->keys[i]);

		if (tracked)
			tell_readers(core, tracked, event->by ? event->by[i] : 0);
	}
	hs_list_each(struct hs_prefix, prefix, &tracking->prefixes, link)
		tell_prefix(core, event, prefix);
	hs_tracking_count(core);
}
