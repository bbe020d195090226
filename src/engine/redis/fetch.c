/* The fetch pipe of a node: for reads and SETs whose value a cache wants to store (hs_op.track). The server tracks
 * the keys that are read on this connection and sends invalidations on it, in order with its replies.
 *
 *     up ──► CLIENT TRACKING ON OPTIN
 *     fetch ──► CACHING YES, PTTL, CACHING YES, GET ──► reply ──► cache entry ──► invalidate ──► changed
 *     check ──► PING ──► reply: every change before the PING was reported
 *
 * A cache entry is valid as long as its tracking session (base/tracking_session.h): until the connection is lost,
 * the server flushes, or slots move. No other traffic uses the pipe, so the server tracks only keys that a cache
 * wants (OPTIN).
 *
 * Why not NOLOOP, which would suppress the invalidations for heatsink's own SETs: while the server runs a command
 * of this connection, it may evict another key, or stop tracking one because its table is full. NOLOOP suppresses
 * these invalidations as well, and the cache would serve the keys for ever. So the server reports heatsink's SET
 * as well, and the flow must tell this invalidation from one that another client's write causes right behind the
 * SET. The transaction reads the key before the SET: the key is tracked, and the server reports the SET behind the
 * reply to EXEC (compose). Between the replies to EXEC and PING the server must report the key exactly once. Twice
 * or more: another client wrote. Not at all: the server does not work as expected. In both cases the value is not
 * cached. The flow passes each invalidation on (calls->changed) and finishes the SET afterwards.
 *
 * Why the liveness check is not PING in a Cluster: a master that was replaced or partitioned still answers PING,
 * but gets no writes any more. Such a master rejects commands for keys that it does not own. So the check is
 * EXISTS of a key that was read there.
 *
 * If a server refuses any of these commands, the flow sends the operation without tracking, and the cache does not
 * store its value. */
#include "base/num.h"
#include "base/slot.h"
#include "engine/redis/internal.h"
#include "engine/redis/invalidation.h"
#include "wire/compose.h"

#include <stdio.h>

/* Pause before the flow asks a server again that refused to track. */
#define REFUSED_US 60000000
#define IDLE_US 30000000
#define CHECK_KEY_BYTES_MAX (64 * HS_KIB) /* a longer key is not used for liveness checks */

static struct hs_fetch_pipe *fetch_of(struct hs_pipe *pipe)
{
	return (struct hs_fetch_pipe *)pipe;
}

/* ---- which pipe ---- */

bool hs_fetch_pipe_is_for(const struct hs_flow *flow, const struct hs_node *node,
			  const struct hs_op *op)
{
	if (!op->track || op->resp != 3 || op->engine_state & HS_STATE_UNTRACKED ||
	    !flow->options.tracking_sessions)
		return false;
	if (op->command->flags & HS_CMD_WRITE && node->fetch.writes_untracked)
		return false;
	return flow->now.mono_us >= node->fetch.pipe.upstream.backoff.open_at_us;
}

/* ---- requests ---- */

/* The replies to a tracked SET, from the last to the first. Each name is the value of op->engine_replies while
 * that reply is handled: the number of replies still to be skipped. The reply to PING follows them and is not
 * skipped. */
enum {
	WRITE_EXEC,
	WRITE_EXISTS,
	WRITE_ITSELF,
	WRITE_EXISTED,
	WRITE_MULTI,
	WRITE_CACHING,
	WRITE_REPLIES,
};

/* The replies to a tracked read, numbered like the replies to a tracked SET. The reply to the read itself follows
 * them and is not skipped. */
enum { READ_CACHING, READ_PTTL, READ_FIRST, READ_REPLIES };

/* A read, and the TTL of its key. Both commands are tracked, so the server reports a change of the key between
 * them.
 *
 *     CLIENT CACHING YES, PTTL key, CLIENT CACHING YES, GET key
 *
 * A SET, in one run of bytes:
 *
 *     CLIENT CACHING YES, MULTI, EXISTS key, SET key …, EXISTS key, EXEC, PING
 *
 * A write does not make the server track its key. The second EXISTS does so before another client can change the
 * value. The first one makes sure that the key is tracked before the SET, so that the server reports the SET once,
 * between the replies to EXEC and PING. */
static void compose(struct hs_pipe *pipe, struct hs_op *op, bool asking)
{
	const struct hs_bytes key = op->track ? op->argv[1] : (struct hs_bytes){NULL, 0};
	const struct hs_bytes pttl[] = {HS_LIT("PTTL"), key}, exists[] = {HS_LIT("EXISTS"), key};
	struct hs_buf *out = &pipe->upstream.out;
	uint64_t start = pipe->upstream.composed - out->len;

	if (!op->track) {
		hs_pipe_compose(pipe, op, asking);
		return;
	}
	/* When the reply has arrived, does_track compares this epoch with the session's. */
	op->tracking_epoch = hs_tracking_session_epoch(fetch_of(pipe)->tracking_session);
	op->ttl_ms = 0;
	hs_compose_line(out, "CLIENT CACHING YES");
	if (!(op->command->flags & HS_CMD_WRITE)) {
		hs_compose(out, 2, pttl);
		hs_compose_line(out, "CLIENT CACHING YES");
		hs_pipe_compose_op(out, op);
		op->engine_mark = start + out->len;
		op->engine_replies = READ_REPLIES;
	} else {
		hs_compose_line(out, "MULTI");
		hs_compose(out, 2, exists);
		hs_pipe_compose_op(out, op);
		/* A server that refuses MULTI runs the SET as soon as it has read it: so the mark is behind the
		 * SET, not behind EXEC. */
		op->engine_mark = start + out->len;
		hs_compose(out, 2, exists);
		hs_compose_line(out, "EXEC");
		hs_compose_line(out, "PING");
		op->engine_replies = WRITE_REPLIES;
	}
	pipe->upstream.composed = start + out->len;
	hs_ops_push(&pipe->in_flight, op);
}

/* ---- opening and closing ---- */

/* The server refuses to track: the pipe may not be opened again for REFUSED_US. Reports the first refusal of the
 * node. */
static void refused(struct hs_flow *flow, struct hs_fetch_pipe *fetch, const char *why)
{
	fetch->pipe.upstream.backoff.open_at_us = flow->now.mono_us + REFUSED_US;
	if (!fetch->tracking_refusal_reported)
		flow->calls->tracking_refused(flow->context, fetch->pipe.node, why);
	fetch->tracking_refusal_reported = true;
}

static void up(struct hs_flow *flow, struct hs_pipe *pipe)
{
	struct hs_fetch_pipe *fetch = fetch_of(pipe);

	if (!fetch->tracking_session)
		fetch->tracking_session = hs_tracking_sessions_get(flow->options.tracking_sessions);
	hs_flow_send_internal(
		flow, pipe,
		hs_flow_request(flow, 3, flow->options.timeout_us, "CLIENT TRACKING ON OPTIN"));
	fetch->used_us = flow->now.mono_us;
	fetch->resp2_only = false;
	flow->fetch_pipes++;
}

/* Sets the time before which the pipe may not be opened again. */
static void back_off(struct hs_flow *flow, struct hs_fetch_pipe *fetch, bool was_up,
		     const char *why)
{
	struct hs_upstream *upstream = &fetch->pipe.upstream;

	if (flow->now.mono_us < upstream->backoff.open_at_us)
		return; /* `refused` has set open_at_us */
	if (!was_up && strstr(why, "NOPROTO")) {
		fetch->resp2_only = true;
		refused(flow, fetch, why);
		return;
	}
	hs_backoff_lost(&upstream->backoff, &hs_flow_backoff, flow->now.mono_us, &flow->prng,
			was_up, upstream->opened_us);
}

static void down(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up, const char *why)
{
	struct hs_fetch_pipe *fetch = fetch_of(pipe);

	if (was_up) {
		flow->fetch_pipes--;
		hs_tracking_sessions_invalidate(fetch->tracking_session);
	}
	fetch->tracking = false;
	fetch->checking = false;
	fetch->key.len = 0;
	back_off(flow, fetch, was_up, why);
	hs_flow_requeue(flow, pipe, why);
}

void hs_fetch_pipe_invalidate(struct hs_node *node)
{
	if (node->fetch.tracking_session)
		hs_tracking_sessions_invalidate(node->fetch.tracking_session);
	node->fetch.key.len = 0; /* another node may own the slot of this key */
}

static void deinit(struct hs_pipe *pipe)
{
	struct hs_fetch_pipe *fetch = fetch_of(pipe);

	if (fetch->tracking_session)
		hs_tracking_sessions_put(&fetch->tracking_session);
	hs_buf_deinit(&fetch->key);
}

/* ---- invalidations ---- */

/* An invalidation that arrives at this moment follows the reply to EXEC (of a SET) or to PTTL (of a read). */
static bool is_after_its_value(const struct hs_op *op)
{
	if (!op || !op->track || op->engine_state & HS_STATE_INTERNAL)
		return false;
	return op->command->flags & HS_CMD_WRITE ? op->engine_replies == WRITE_EXEC
						 : op->engine_replies <= READ_PTTL;
}

static void take_invalidated_key(struct hs_flow *flow, struct hs_fetch_pipe *fetch,
				 struct hs_bytes key)
{
	const struct hs_op *op = fetch->pipe.in_flight.first;

	if (is_after_its_value(op) && hs_bytes_equal(op->argv[1], key))
		fetch->invalidations_of_key++;
	flow->calls->changed(flow->context, flow->now, fetch->tracking_session, &key);
}

static void push(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes text)
{
	struct hs_fetch_pipe *fetch = fetch_of(pipe);
	struct hs_walk walk = {text.data, text.len};
	struct hs_invalidation invalidation;
	struct hs_parsed_reply head;
	struct hs_bytes what, key;
	int rc;

	if (hs_walk_next(&walk, &head) < 0 || hs_walk_text(&walk, &what) < 0 ||
	    !hs_bytes_equal(what, HS_LIT("invalidate")))
		return;
	rc = hs_invalidation_begin(&invalidation, walk);
	while (rc >= 0 && (rc = hs_invalidation_next(&invalidation, &key)) > 0)
		take_invalidated_key(flow, fetch, key);
	if (rc == 0 && !invalidation.all)
		return;
	hs_tracking_sessions_invalidate(fetch->tracking_session);
	flow->calls->changed(flow->context, flow->now, fetch->tracking_session, NULL);
}

/* ---- replies ---- */

/* MULTI was refused, so the server has run the SET by itself, or refused it: `reply` answers the SET, not
 * QUEUED. */
static void take_set_reply(struct hs_op *op, struct hs_bytes reply)
{
	if (hs_bytes_equal(reply, HS_LIT("+QUEUED\r\n")))
		return;
	if (reply.data[0] == '-' && op->out->len > 0)
		return;
	op->out->len = 0;
	hs_buf_append_bytes(op->out, reply);
	op->engine_state |= HS_STATE_SET_REPLY;
}

/* Returns the number of invalidations inside EXEC's reply. Servers before Redis 7 put one there in place of an
 * element, and as many elements follow behind the reply. */
static uint32_t count_pushes(struct hs_bytes exec)
{
	struct hs_bytes rest = hs_parse_reply_elements(exec), element;
	uint32_t told = 0;

	while (hs_parse_reply_take(&rest, &element))
		told += element.data[0] == '>';
	return told;
}

static void take_exec_reply(struct hs_fetch_pipe *fetch, struct hs_op *op, struct hs_bytes reply)
{
	fetch->invalidations_of_key = 0;
	if (reply.data[0] != '*' || reply.data[1] == '-') {
		hs_pipe_keep_error(&fetch->pipe, op, reply);
		return;
	}
	op->engine_state &= ~(unsigned)HS_STATE_SET_REPLY;
	op->out->len = 0;
	hs_buf_append_bytes(op->out, reply);
	op->engine_replies = count_pushes(reply);
	if (op->engine_replies > 0) {
		op->engine_state |= HS_STATE_PUSH_IN_EXEC;
		fetch->writes_untracked = true;
		/* The keys in the invalidation are not read: every cache entry of the session becomes invalid. */
		hs_tracking_sessions_invalidate(fetch->tracking_session);
	}
}

/* Stores the TTL in op->ttl_ms. After an error (PTTL is not permitted) it is 0: unknown. */
static void take_pttl_reply(struct hs_fetch_pipe *fetch, struct hs_op *op, struct hs_bytes reply)
{
	int64_t ttl_ms = 0;

	fetch->invalidations_of_key = 0;
	if (reply.data[0] != ':' ||
	    !hs_num_parse_int((struct hs_bytes){reply.data + 1, reply.len - 3}, &ttl_ms))
		return;
	op->ttl_ms = ttl_ms >= 0 ? ttl_ms + 1 : ttl_ms == -1 ? -1 : 0;
}

static void skipped(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply)
{
	bool write = op->track && op->command->flags & HS_CMD_WRITE;

	if (write && op->engine_state & HS_STATE_PUSH_IN_EXEC) {
		hs_buf_append_bytes(op->out, reply);
	} else if (write && op->engine_replies == WRITE_CACHING) {
		return; /* the server reports no change of the key, so the SET is not cached */
	} else if (write && op->engine_replies == WRITE_ITSELF) {
		take_set_reply(op, reply);
	} else if (write && op->engine_replies == WRITE_EXEC) {
		take_exec_reply(fetch_of(pipe), op, reply);
	} else if (op->track && !write && op->engine_replies == READ_PTTL) {
		take_pttl_reply(fetch_of(pipe), op, reply);
	} else {
		hs_pipe_keep_error(pipe, op, reply);
	}
}

/* The tracking session covers the key that `op` has just read or written on this connection. */
static bool does_track(struct hs_flow *flow, const struct hs_fetch_pipe *fetch,
		       const struct hs_op *op)
{
	/* The epoch has changed if a flush or a moved slot invalidated the session while `op` was in flight. */
	return fetch->tracking && !fetch->pipe.upstream.close_reason &&
	       op->tracking_epoch == hs_tracking_session_epoch(fetch->tracking_session) &&
	       hs_flow_owner(flow, hs_flow_slot(flow, op)) == fetch->pipe.node;
}

/* The next liveness check sends EXISTS with this key. Each check uses another key, because slots move one by
 * one. */
static void note_check_key(struct hs_fetch_pipe *fetch, struct hs_bytes key)
{
	if (key.len > CHECK_KEY_BYTES_MAX)
		return;
	fetch->key.len = 0;
	fetch->check_key_used = false;
	hs_buf_append_bytes(&fetch->key, key);
}

static void track_in(struct hs_flow *flow, struct hs_fetch_pipe *fetch, struct hs_op *op)
{
	if (!does_track(flow, fetch, op))
		return;
	if (flow->options.cluster && (fetch->key.len == 0 || fetch->check_key_used) &&
	    op->argc > 1 && hs_slot_of(op->argv[1]) == op->slot)
		note_check_key(fetch, op->argv[1]);
	op->tracking_session = fetch->tracking_session;
}

/* Writes the SET's reply to `own`: the second element of EXEC's reply, not counting invalidations. */
static bool find_set_reply(struct hs_bytes exec, struct hs_bytes *own)
{
	struct hs_bytes rest = hs_parse_reply_elements(exec);
	int element = 0;

	while (hs_parse_reply_take(&rest, own)) {
		if (own->data[0] != '>' && element++ == 1)
			return true;
	}
	return false;
}

/* Writes the SET's reply to `*reply`. `said`: EXEC's reply. False: the SET did not run, and `*reply` is the error;
 * an empty one: unknown error. */
static bool take_set(struct hs_flow *flow, struct hs_fetch_pipe *fetch, struct hs_op *op,
		     struct hs_bytes said, struct hs_bytes *reply)
{
	*reply = said;
	if (op->engine_state & HS_STATE_SET_REPLY) {
		if (said.data[0] != '-')
			/* this server runs a SET outside of MULTI */
			fetch->writes_untracked = true;
		return true;
	}
	if (said.len == 0 || said.data[0] == '-')
		return false;
	if (!find_set_reply(said, reply)) {
		*reply = HS_LIT("-UNKNOWN the engine's reply to EXEC has the wrong number of "
				"elements: the command may or may not have run\r\n");
		return true;
	}
	if (reply->data[0] == '+' && fetch->invalidations_of_key == 1 &&
	    !(op->engine_state & HS_STATE_PUSH_IN_EXEC))
		track_in(flow, fetch, op);
	return true;
}

static void take_check(struct hs_flow *flow, struct hs_fetch_pipe *fetch, struct hs_op *op,
		       struct hs_bytes reply)
{
	struct hs_redirect redirect;

	fetch->checking = false;
	if (reply.data[0] == '-' && hs_flow_is_redirect(reply, &redirect) && !redirect.ask) {
		hs_flow_redirected(flow, &fetch->pipe, &redirect);
		hs_fetch_pipe_invalidate(fetch->pipe.node);
		return;
	}
	if (hs_bytes_begins(reply, HS_LIT("-NOPERM ")))
		fetch->checks_by_ping = true;
	else if (reply.data[0] == '-' && !hs_bytes_begins(reply, HS_LIT("-ASK ")))
		/* the server refuses commands for a while: nothing is known of its liveness */
		return;
	hs_tracking_sessions_caught_up(fetch->tracking_session, op->received.mono_us);
}

/* Takes the reply to CLIENT TRACKING or to a liveness check. */
static void take_internal(struct hs_flow *flow, struct hs_fetch_pipe *fetch, struct hs_op *op,
			  struct hs_bytes reply)
{
	char why[128];

	if (fetch->tracking) {
		take_check(flow, fetch, op, reply);
	} else if (reply.data[0] == '+') {
		fetch->tracking = true;
		hs_tracking_sessions_caught_up(fetch->tracking_session, op->received.mono_us);
	} else {
		snprintf(why, sizeof why, "CLIENT TRACKING: %.*s", (int)(reply.len - 3),
			 reply.data + 1);
		refused(flow, fetch, why);
	}
	hs_flow_finish(flow, op);
}

static void take_read(struct hs_flow *flow, struct hs_fetch_pipe *fetch, struct hs_op *op,
		      struct hs_bytes said, struct hs_bytes reply)
{
	if (fetch->invalidations_of_key > 0)
		op->ttl_ms = 0; /* another client has changed the key since PTTL */
	if (said.len == 0 && reply.data[0] != '-')
		track_in(flow, fetch, op);
	else if (said.len > 0 && fetch->tracking)
		refused(flow, fetch, "CLIENT CACHING is refused");
}

/* Sends the operation again without tracking, unless the error would also stop an untracked request. */
static void send_untracked(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			   struct hs_bytes reply)
{
	uint16_t slot = hs_flow_slot(flow, op);

	if (reply.len > 0 && hs_flow_handle_error(flow, pipe, op, reply))
		return;
	op->engine_state |= HS_STATE_UNTRACKED;
	hs_flow_leave_slot(flow, op);
	if (!hs_flow_park_retry(flow, op, 0))
		hs_flow_finish(flow, op);
	hs_flow_release(flow, slot);
}

static void take_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		       struct hs_bytes reply, bool owned)
{
	struct hs_fetch_pipe *fetch = fetch_of(pipe);
	struct hs_buf kept = {0};
	struct hs_bytes said;

	if (op->engine_state & HS_STATE_INTERNAL) {
		take_internal(flow, fetch, op, reply);
		return;
	}
	hs_buf_swap(&kept, op->out);
	said = hs_buf_bytes(&kept);
	/* Like the reply to a liveness check, a successful reply shows that every earlier change was reported. */
	if (fetch->tracking && (said.len > 0 ? said.data[0] == '*' : reply.data[0] != '-'))
		hs_tracking_sessions_caught_up(fetch->tracking_session, op->received.mono_us);
	if (!(op->command->flags & HS_CMD_WRITE)) {
		take_read(flow, fetch, op, said, reply);
		hs_flow_handle_reply(flow, pipe, op, reply, owned && said.len == 0);
	} else if (take_set(flow, fetch, op, said, &reply)) {
		hs_flow_handle_reply(flow, pipe, op, reply, false);
	} else {
		send_untracked(flow, pipe, op, reply);
	}
	hs_buf_deinit(&kept);
}

/* ---- time ---- */

void hs_flow_set_caching(struct hs_flow *flow, bool caching)
{
	flow->caching = caching;
}

bool hs_flow_wants_checks(const struct hs_flow *flow)
{
	return flow->fetch_pipes > 0 || flow->replicas_wanted_us > 0;
}

/* Sends a liveness check if a cache wants one. In a Cluster the check needs a key. Without one, no key was read
 * since the session was last invalidated, so there is nothing to check. */
static void check(struct hs_flow *flow, struct hs_fetch_pipe *fetch)
{
	const struct hs_upstream *upstream = &fetch->pipe.upstream;
	const struct hs_bytes exists[] = {HS_LIT("EXISTS"), hs_buf_bytes(&fetch->key)};
	bool plain = !flow->options.cluster || fetch->checks_by_ping;
	struct hs_flow_request *request;

	if (upstream->state != HS_UPSTREAM_UP || upstream->close_reason || !fetch->tracking ||
	    fetch->checking || !(plain || fetch->key.len > 0) ||
	    !atomic_exchange_explicit(&fetch->tracking_session->check_wanted, false,
				      memory_order_relaxed))
		return;
	fetch->checking = true;
	fetch->check_key_used = true;
	request = hs_flow_request(flow, 3, flow->options.timeout_us, plain ? "PING" : NULL);
	if (!plain)
		hs_compose(&request->text, 2, exists);
	hs_flow_send_internal(flow, &fetch->pipe, request);
}

void hs_flow_check(struct hs_flow *flow, struct hs_now now)
{
	flow->now = now;
	for (uint16_t i = 0; i < flow->nodes_count && flow->fetch_pipes > 0; i++) {
		if (flow->nodes[i])
			check(flow, &flow->nodes[i]->fetch);
	}
	hs_replica_check(flow);
	hs_flow_flush(flow, now);
}

static void tick(struct hs_flow *flow, struct hs_pipe *pipe)
{
	struct hs_fetch_pipe *fetch = fetch_of(pipe);
	/* A refused pipe is closed when no operation is in flight on it. */
	bool is_refused = flow->now.mono_us < pipe->upstream.backoff.open_at_us;

	if (pipe->in_flight.first || pipe->waiting.first || (flow->caching && !is_refused))
		fetch->used_us = flow->now.mono_us;
	else if (pipe->upstream.state == HS_UPSTREAM_UP &&
		 (is_refused || flow->now.mono_us - fetch->used_us > IDLE_US))
		hs_flow_close(flow, pipe,
			      is_refused ? "the server refuses to track" : "no rule caches values",
			      true);
}

const struct hs_pipe_kind hs_fetch_pipes = {
	.resp = 3,
	.timeout_reason = "no reply within engine-timeout",
	.compose = compose,
	.up = up,
	.down = down,
	.skipped = skipped,
	.reply = take_reply,
	.push = push,
	.tick = tick,
	.deinit = deinit,
};
