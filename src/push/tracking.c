/* Who keeps what, and who is told.
 *
 * A client that tracks may keep the value of a read until it is told that the key changed. The
 * promise: no client keeps a value that was overwritten unless the message about it is on its way.
 * It holds because of three orders.
 *
 *     worker      remember k ─ submit GET k ──────────────── reply ─ "k changed"
 *                                  │                           ▲          ▲
 *     engine                       └─ read k ─ write k ─ news ─┴──────────┘
 *
 * 1. A key is remembered in the event that submits its read. So the news of a write that the read did not
 *    see, which is a later event, finds the key remembered. Were it remembered when the reply comes,
 *    news that overtakes the reply would find nobody.
 *
 * 2. News is told when the change can be seen: whoever reads after having heard it sees the change
 *    or a later one (engine/engine.h). So a key that is forgotten here and remembered again by the
 *    next read is remembered for a value that is new enough.
 *
 * 3. The message leaves behind the replies of everything the connection has under way (core/push.c).
 *    Among them may be the read of the old value: the client must get that first and the message
 *    after it. The other way round it would keep the old value, and never hear of it again, because
 *    a key is forgotten with its first message. What is read later lies behind the message.
 *
 * What errs on the safe side: a message too many. A key may be told that did not change in the end,
 * or that the client has read anew since.
 *
 * Messages for another connection (REDIRECT) wait for the replies of the one that read, and go then:
 * as in Redis, where a command is answered before the next one can change anything. If the other
 * connection is a different worker's, they travel there in one call between workers: bodies of messages, one behind
 * the other, which that worker puts into the connection's dialect. */
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
	PASSED_MAX = 16, /* keys that must stay; then room is made with a later command or tick */
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

/* A message with this body, in the dialect of the connection that gets it. One that speaks RESP2
 * hears nothing unless it is told for another and waits for messages. */
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

/* Whom `from` redirects to is not there any more. */
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

/* False: it is not here. */
static bool deliver_redirected(struct hs_core *core, uint64_t to, struct hs_bytes bodies)
{
	struct hs_session *session = hs_session_find(core, to);
	struct hs_buf *message = &hs_push_of(core)->tracking->message;

	if (!session)
		return false;
	hs_buf_clear(message, HS_IDLE_BUFFER_BYTES);
	while (bodies.len > 0) {
		int64_t len = hs_parse_reply_length(bodies.data, bodies.len);

		hs_check(len > 0); /* a worker wrote it */
		write_message(session, true, (struct hs_bytes){bodies.data, (size_t)len}, message);
		bodies.data += len;
		bodies.len -= (size_t)len;
	}
	hs_push(core, session, hs_buf_bytes(message));
	return true;
}

/* The worker that got redirected messages says whether they could be delivered. */
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
		/* A stage that sends something of the same connection first would have replies delivered
		 * within the delivery of this message. */
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

/* Another worker asks for a connection of this one, or has messages for it: 1 if it is here. */
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

/* As in Redis, what writes tracks nothing; a script tracks what it reads, which may be any of its
 * keys. */
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

/* Tells every connection that has read the key, except a connection that certainly made the change
 * itself and does not want to hear of that: its next value stays remembered. So does that of a
 * connection whose own write of the key is not answered yet (tracking_own_writes.c). */
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

/* This worker's share of what may be tracked; UINT64_MAX: no limit. */
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

/* Whether a connection that has read the key has a write of it in flight: the key must stay until that is answered. */
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

/* Keys are forgotten, whichever they are, until there is room: who has read one is told, and asks
 * again when it needs to. A key that must stay is passed over, and nobody is told. */
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

/* CLIENT and its subcommands leave alone what CLIENT CACHING said. */
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

	/* Not before the command was handed over: a message about one of its own keys must lie
	 * behind its reply. */
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

/* --- news --- */

/* The changed keys that begin so, but those that only `except` changed (0: nobody), as a body.
 * False: there are none. */
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

/* One message with all the keys for each who wants that prefix. Most get the same. */
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
		/* A write in flight is told of with its reply, its key tracked or not (tracking_own_writes.c). */
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
