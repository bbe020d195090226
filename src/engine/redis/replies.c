/* Replies, redirects, refusals, and lost connections. */
#include "base/list.h"
#include "engine/redis/internal.h"
#include "wire/compose.h"

#include <stdio.h>

enum { SWAP_BYTES_MIN = 4096 };

const struct hs_backoff_limits hs_flow_backoff = {.first_us = 25000, .max_us = HS_RECONNECT_US_MAX};

/* ---- what an error means ---- */

enum verdict {
	PASS,	       /* the error is the answer */
	REDIRECT,      /* another node has the slot */
	RETRY_LATER,   /* the operation did not run and may be sent again */
	RESEND_SCRIPT, /* NOSCRIPT: send the script's text */
};

static bool starts(struct hs_bytes reply, const char *word)
{
	size_t len = strlen(word);

	return reply.len > len && memcmp(reply.data + 1, word, len) == 0 &&
	       (reply.data[1 + len] == ' ' || reply.data[1 + len] == '\r');
}

/* Records that the slot migrates: its owner answers ASK, and clients may create keys at the importing node that
 * the owner does not see. An ASK from a node that is not the owner shows nothing, because it answers a request
 * from before the slot moved. */
static void note_ask(struct hs_flow *flow, struct hs_node *by, uint16_t slot)
{
	if (by != hs_flow_owner(flow, slot))
		return;
	if (!hs_slot_is_migrating(flow, slot))
		hs_fetch_pipe_invalidate(by);
	hs_flow_chunk(flow, slot)->rare[slot % HS_CHUNK_SLOTS].ask_seen_s =
		(uint32_t)(flow->now.mono_us / 1000000) + 1;
}

struct hs_node *hs_flow_redirected(struct hs_flow *flow, const struct hs_pipe *pipe,
				   const struct hs_redirect *redirect)
{
	struct hs_bytes host =
		redirect->host.len > 0 ? redirect->host : hs_bytes_of(pipe->node->at.host);
	struct hs_node *node = NULL, *owner;

	if (!hs_bytes_equal(host, HS_LIT("?")))
		node = hs_flow_node(flow, host, redirect->port);
	if (redirect->ask) {
		note_ask(flow, pipe->node, redirect->slot);
		hs_counter_add(&flow->stats->ask_redirects, 1);
		return node;
	}
	hs_counter_add(&flow->stats->moved_redirects, 1);
	flow->calls->topology_suspect(flow->context);
	owner = hs_flow_owner(flow, redirect->slot);
	if (owner && owner != node)
		hs_fetch_pipe_invalidate(owner);
	if (owner)
		hs_replica_invalidate(flow, owner);
	if (!node)
		return NULL;
	if (!node->listed)
		hs_flow_set_partition(flow, node, pipe->node->at.partition);
	hs_replica_invalidate(flow, node);
	hs_slot_set_owner(flow, redirect->slot, node->number);
	return node;
}

/* A script may have written before it ended with an error of any wording. Only the errors that a server sends
 * before it runs a script show that the script did not run. */
static bool is_error_of_script(const struct hs_op *op, struct hs_bytes reply)
{
	static const char *const names[] = {"eval", "evalsha", "fcall"};
	static const char *const words[] = {
		"-TRYAGAIN Multiple keys request during rehashing of slot",
		"-CLUSTERDOWN Hash slot not served",
		"-CLUSTERDOWN The cluster is down",
		"-READONLY You can't write against a read only replica.",
		"-MASTERDOWN Link with MASTER is down",
		"-LOADING Redis is loading the dataset in memory",
		"-LOADING Valkey is loading the dataset in memory",
		"-NOSCRIPT No matching script.",
	};
	bool script = false;

	for (size_t i = 0; i < sizeof names / sizeof *names && op->kind == HS_OP_COMMAND; i++)
		script = script || strcmp(op->command->name, names[i]) == 0;
	if (!script)
		return false;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (hs_bytes_begins(reply, hs_bytes_of(words[i])))
			return false;
	}
	return true;
}

static enum verdict judge(const struct hs_flow *flow, const struct hs_op *op, struct hs_bytes reply,
			  struct hs_redirect *redirect)
{
	if (flow->options.cluster && hs_flow_is_redirect(reply, redirect))
		return REDIRECT;
	if (is_error_of_script(op, reply))
		return PASS;
	if (flow->options.cluster && (starts(reply, "TRYAGAIN") || starts(reply, "CLUSTERDOWN") ||
				      starts(reply, "READONLY") || starts(reply, "MASTERDOWN")))
		return RETRY_LATER;
	if (starts(reply, "LOADING"))
		return RETRY_LATER;
	if (starts(reply, "NOSCRIPT") && !(op->engine_state & HS_STATE_SCRIPT_RESENT))
		return RESEND_SCRIPT;
	return PASS;
}

/* A later operation of the same client and slot is in flight: `op` must not be sent again, because it would run
 * after the later one. */
static bool is_followed(const struct hs_flow *flow, const struct hs_op *op,
			const struct hs_op *later, bool writes_only)
{
	for (; later; later = later->next) {
		if (later->client == op->client &&
		    hs_flow_slot(flow, later) == hs_flow_slot(flow, op) &&
		    !(writes_only && hs_op_is_read(later)))
			return true;
	}
	return false;
}

/* ---- a reply ---- */

static void finish_exec(struct hs_flow *flow, struct hs_op *op, struct hs_bytes reply)
{
	bool needs_splice = false;
	struct hs_buf whole = {0};

	for (size_t i = 0; i < op->tx->count; i++)
		needs_splice = needs_splice || op->tx->commands[i].answered.len > 0;
	if (!needs_splice || reply.data[0] != '*' || reply.data[1] == '-') {
		op->answer = reply;
		hs_flow_finish(flow, op);
		return;
	}
	if (!hs_pipe_splice(op, reply, &whole)) {
		hs_buf_deinit(&whole);
		hs_flow_fail(flow, op,
			     "ERR the engine's reply to EXEC has the wrong number of "
			     "elements; the transaction ran");
		return;
	}
	hs_buf_swap(op->out, &whole);
	hs_buf_deinit(&whole);
	hs_flow_finish(flow, op);
}

static void hand_over(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		      struct hs_bytes reply, bool owned)
{
	if (op->kind == HS_OP_EXEC) {
		finish_exec(flow, op, reply);
		return;
	}
	if (owned && reply.len >= SWAP_BYTES_MIN)
		hs_buf_swap(op->out, &pipe->upstream.partial);
	else
		op->answer = reply;
	hs_flow_finish(flow, op);
}

void hs_flow_answer(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		    struct hs_bytes reply, bool owned)
{
	uint16_t slot = hs_flow_slot(flow, op);

	if (op->engine_state & HS_STATE_COUNTED) {
		struct hs_slot_state *state = hs_flow_slot_state(flow, slot);

		op->engine_state &= ~(unsigned)HS_STATE_COUNTED;
		state->underway--;
		hs_slot_forget_asking(flow, op);
		if (__builtin_expect(flow->ask_redirects.count > 0, 0) || state->hold)
			hs_flow_overtaken(flow, op);
		if (state->hold) {
			hand_over(flow, pipe, op, reply, owned);
			hs_flow_release(flow, slot);
			return;
		}
	}
	hand_over(flow, pipe, op, reply, owned);
}

/* Stores the error: if the operation is not sent again, the client gets this error. */
static void note_error(struct hs_op *op, struct hs_bytes reply)
{
	op->out->len = 0;
	hs_buf_append_bytes(op->out, reply);
	op->engine_state |= HS_STATE_REJECTED;
}

/* Stores an error in place of the redirect. Clients get no redirects: a client that knows Cluster would follow one
 * past heatsink. */
static void note_redirect(struct hs_op *op, struct hs_bytes reply)
{
	op->out->len = 0;
	hs_buf_printf(op->out, "-CLUSTERDOWN slot is migrating (%.*s); not run\r\n",
		      (int)(reply.len - 3), reply.data + 1);
	op->engine_state |= HS_STATE_REJECTED;
}

/* An operation that was answered ASK may go to the importing node if no earlier operation of its slot is parked. A
 * single command may go: all of its keys are there, and a later command of the client for one of these keys
 * follows it there. An EXEC may find some of its keys still at the owner. So later operations of the slot wait for
 * EXEC (send_on), and EXEC waits until no other operation of its client is in flight. */
static bool may_go_on(const struct hs_flow *flow, const struct hs_pipe *pipe,
		      const struct hs_op *op, const struct hs_slot_hold *hold)
{
	if ((op->engine_state & HS_STATE_OVERTAKEN) ||
	    (hold && hold->retries.first && hold->retries.first->engine_order < op->engine_order))
		return false;
	return op->kind != HS_OP_EXEC || (!is_followed(flow, op, pipe->in_flight.first, false) &&
					  !is_followed(flow, op, pipe->waiting.first, false));
}

static bool send_on(struct hs_flow *flow, const struct hs_pipe *pipe, struct hs_op *op,
		    struct hs_node *node)
{
	struct hs_slot_state *state = hs_flow_slot_state(flow, hs_flow_slot(flow, op));

	if (!may_go_on(flow, pipe, op, state->hold) || !hs_flow_send(flow, node, op, true))
		return false;
	if (op->kind == HS_OP_EXEC)
		state->sent_to = node->number;
	return true;
}

static void follow(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		   const struct hs_redirect *redirect, struct hs_bytes reply)
{
	struct hs_node *node = hs_flow_redirected(flow, pipe, redirect);
	/* If the redirect has no address, the topology monitor may find it during the delay. */
	uint64_t delay_us = redirect->ask || !node ? HS_RETRY_US : 0;
	uint16_t slot = redirect->slot;

	hs_slot_forget_asking(flow, op);
	if (hs_flow_is_late(flow, op)) {
		struct hs_buf words = {0};

		note_redirect(op, reply);
		hs_buf_swap(&words, op->out);
		hs_flow_answer(flow, pipe, op, hs_buf_bytes(&words), false);
		hs_buf_deinit(&words);
		return;
	}
	if (slot != op->slot) { /* only the server knows the command's keys */
		hs_flow_leave_slot(flow, op);
		op->slot = slot;
	} else if (node && redirect->ask && send_on(flow, pipe, op, node)) {
		return; /* the operation stays counted in the slot's `underway` */
	}
	/* The operation was rejected before: two nodes may disagree and send it back and forth. The delay limits
	 * the rate. */
	if (op->engine_state & HS_STATE_REJECTED)
		delay_us = HS_RETRY_US;
	hs_flow_leave_slot(flow, op);
	note_redirect(op, reply);
	if (redirect->ask && op->kind == HS_OP_EXEC)
		op->engine_state |= HS_STATE_SEND_ALONE;
	if (!hs_flow_park_retry(flow, op, delay_us))
		hs_flow_finish(flow, op);
	hs_flow_release(flow, slot);
}

/* NOSCRIPT for an EVALSHA: sends the script's text with EVAL, if heatsink knows it. */
static bool resend_with_script(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op)
{
	struct hs_bytes script = {NULL, 0};
	struct hs_buf request = {0};
	bool read_only = op->kind == HS_OP_COMMAND && op->argc >= 3 &&
			 hs_bytes_is_word(op->argv[0], "evalsha_ro");

	if (op->kind != HS_OP_COMMAND || op->argc < 3 ||
	    is_followed(flow, op, pipe->in_flight.first, false) ||
	    !(read_only || hs_bytes_is_word(op->argv[0], "evalsha")))
		return false;
	script = flow->calls->script(flow->context, op->argv[1]);
	if (script.len == 0)
		return false;
	hs_compose_header(&request, op->argc);
	hs_compose_text(&request, read_only ? "EVAL_RO" : "EVAL");
	hs_compose_word(&request, script);
	for (size_t i = 2; i < op->argc; i++)
		hs_compose_word(&request, op->argv[i]);
	op->engine_state |= HS_STATE_SCRIPT_RESENT;
	/* The request is composed at once, so `request` need not live longer than this call. */
	op->raw = hs_buf_bytes(&request);
	pipe->kind->compose(pipe, op, op->engine_state & HS_STATE_ASKING);
	op->raw = (struct hs_bytes){NULL, 0};
	hs_buf_deinit(&request);
	hs_flow_mark_dirty(flow, pipe);
	return true;
}

/* ---- nodes that refuse everything ---- */

/* The refusals of the operation's slot. */
static struct hs_refusals *refusals_of(struct hs_flow *flow, const struct hs_op *op)
{
	uint16_t slot = hs_flow_slot(flow, op);

	return &hs_flow_chunk(flow, slot)->rare[slot % HS_CHUNK_SLOTS].refused;
}

static bool note_refusal(const struct hs_flow *flow, struct hs_refusals *refused)
{
	uint64_t now_us = flow->now.mono_us;

	if (refused->since_us == 0 || now_us - refused->last_us > HS_REFUSAL_ROW_US_MAX)
		refused->since_us = now_us;
	refused->last_us = now_us;
	return now_us - refused->since_us > flow->options.timeout_us;
}

/* The server has refused operations for longer than the timeout (CLUSTERDOWN, LOADING): the client gets the error.
 * TRYAGAIN, READONLY and MASTERDOWN end with a migration or a failover, so the flow always retries after them. */
static bool is_refused_too_long(struct hs_flow *flow, struct hs_node *node, const struct hs_op *op,
				struct hs_bytes reply)
{
	bool down = hs_bytes_begins(reply, HS_LIT("-CLUSTERDOWN The cluster is down"));
	bool reads = hs_bytes_begins(
		reply, HS_LIT("-CLUSTERDOWN The cluster is down and only accepts read"));
	bool writes_hopeless, reads_hopeless;

	if (!down && starts(reply, "CLUSTERDOWN")) {
		flow->any_refused = true;
		return note_refusal(flow, refusals_of(flow, op));
	}
	if (!down && !starts(reply, "LOADING"))
		return false;
	writes_hopeless = note_refusal(flow, &node->refused_writes);
	reads_hopeless = !reads && note_refusal(flow, &node->refused_reads);
	return hs_op_is_read(op) ? reads_hopeless : writes_hopeless;
}

/* A served operation with a key ends a row of refusals. A node that serves a write serves reads, too, so a served
 * write ends both rows; a served read ends only the row of reads. */
static void note_served(struct hs_flow *flow, struct hs_node *node, const struct hs_op *op)
{
	refusals_of(flow, op)->since_us = 0;
	node->refused_reads.since_us = 0;
	if (!hs_op_is_read(op))
		node->refused_writes.since_us = 0;
}

/* ---- errors ---- */

bool hs_flow_handle_error(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			  struct hs_bytes reply)
{
	struct hs_redirect redirect;

	switch (judge(flow, op, reply, &redirect)) {
	case PASS:
		break;
	case REDIRECT:
		follow(flow, pipe, op, &redirect, reply);
		return true;
	case RETRY_LATER:
		flow->calls->topology_suspect(flow->context);
		if (hs_flow_slot(flow, op) == HS_SLOT_NONE)
			return false;
		if (is_refused_too_long(flow, pipe->node, op, reply) || hs_flow_is_late(flow, op)) {
			/* also the answer to EXEC: this error caused EXEC's error */
			hs_flow_answer(flow, pipe, op, reply, false);
			return true;
		}
		hs_counter_add(&flow->stats->retries, 1);
		hs_flow_leave_slot(flow, op);
		note_error(op, reply);
		if (!hs_flow_park_retry(flow, op, HS_RETRY_US))
			hs_flow_finish(flow, op);
		return true;
	case RESEND_SCRIPT:
		return resend_with_script(flow, pipe, op);
	}
	return false;
}

struct hs_bytes hs_flow_cause(struct hs_op *op, struct hs_bytes reply, struct hs_buf *said)
{
	struct hs_redirect redirect;
	bool moved = reply.data[0] == '-' && hs_flow_is_redirect(reply, &redirect);

	if (op->kind == HS_OP_EXEC && op->out->len > 0 && !moved) {
		hs_buf_swap(said, op->out);
		return hs_buf_bytes(said);
	}
	op->out->len = 0;
	return reply;
}

static void handle_reply_rare(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			      struct hs_bytes reply, bool owned)
{
	struct hs_buf said = {0};
	struct hs_bytes cause = hs_flow_cause(op, reply, &said);

	if (reply.data[0] != '-' && op->slot != HS_SLOT_NONE)
		note_served(flow, pipe->node, op);
	if (reply.data[0] != '-' || !hs_flow_handle_error(flow, pipe, op, cause))
		hs_flow_answer(flow, pipe, op, reply, owned);
	hs_buf_deinit(&said);
}

void hs_flow_handle_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			  struct hs_bytes reply, bool owned)
{
	if (reply.data[0] == '-' || pipe->node->refused_writes.since_us || flow->any_refused) {
		handle_reply_rare(flow, pipe, op, reply, owned);
		return;
	}
	op->out->len = 0;
	hs_flow_answer(flow, pipe, op, reply, owned);
}

struct receiver {
	struct hs_flow *flow;
	struct hs_pipe *pipe;
};

static void take_reply(void *context, struct hs_bytes reply, bool owned)
{
	const struct receiver *receiver = context;
	struct hs_flow *flow = receiver->flow;
	struct hs_pipe *pipe = receiver->pipe;
	struct hs_op *op = pipe->in_flight.first;

	if (reply.data[0] == '>') { /* a push */
		if (pipe->kind->push)
			pipe->kind->push(flow, pipe, reply);
	} else if (!op) {
		hs_upstream_close(&pipe->upstream, "it sent a reply without a request");
	} else if (op->engine_replies > 0) { /* a reply to ASKING, MULTI, QUEUED … */
		op->engine_replies--;
		pipe->kind->skipped(pipe, op, reply);
	} else {
		hs_ops_pop(&pipe->in_flight);
		pipe->kind->reply(flow, pipe, op, reply, owned);
	}
}

void hs_flow_receive(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe,
		     const char *data, size_t len)
{
	struct receiver receiver = {flow, pipe};

	flow->now = now;
	hs_upstream_receive(&pipe->upstream, now.mono_us, data, len, HS_ENGINE_REPLY_MAX,
			    take_reply, &receiver);
	if (pipe->upstream.partial.len > HS_READ_BYTES)
		pipe->progress_us = now.mono_us;
	if (pipe->upstream.close_reason)
		hs_flow_mark_dirty(flow, pipe);
	else
		hs_flow_pump(flow, pipe);
}

/* ---- connections open and close ---- */

void hs_flow_up(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe)
{
	struct hs_node *node = pipe->node;

	flow->now = now;
	pipe->upstream.state = HS_UPSTREAM_UP;
	node->down_since_us = 0;
	node->backoff.open_at_us = 0;
	node->unreachable = false;
	hs_counter_add(&flow->stats->connections, 1);
	if (pipe->kind->up)
		pipe->kind->up(flow, pipe);
	hs_flow_pump(flow, pipe);
}

bool hs_node_is_reached(const struct hs_node *node)
{
	bool reached = false;

	for (int i = 0; i < HS_NODE_PIPES; i++)
		reached = reached || (node->pipes[i]->kind->is_health &&
				      node->pipes[i]->upstream.state == HS_UPSTREAM_UP);
	return reached;
}

static bool node_refuses(const char *why)
{
	return hs_bytes_begins(hs_bytes_of(why), HS_LIT(HS_GREETING_REFUSED)) ||
	       hs_bytes_begins(hs_bytes_of(why), HS_LIT(HS_LOGIN_REFUSED));
}

static void note_down(struct hs_flow *flow, const struct hs_pipe *pipe, bool was_up,
		      const char *why)
{
	struct hs_node *node = pipe->node;

	hs_counter_add(&flow->stats->connection_failures, 1);
	if (!pipe->kind->shares_login && node_refuses(why))
		return; /* pipes with `shares_login` report the refused login */
	if (!pipe->kind->is_health && hs_node_is_reached(node)) {
		flow->calls->topology_suspect(flow->context);
		return;
	}
	node->unreachable = !was_up;
	hs_backoff_lost(&node->backoff, &hs_flow_backoff, flow->now.mono_us, &flow->prng, was_up,
			pipe->upstream.opened_us);
	if (node->down_since_us == 0)
		node->down_since_us = flow->now.mono_us;
	snprintf(node->down_why, sizeof node->down_why, "%s", why);
	node->no_login = hs_bytes_begins(hs_bytes_of(why), HS_LIT(HS_LOGIN_REFUSED));
	flow->calls->topology_suspect(flow->context);
}

/* An operation that was in flight on a lost connection may be sent again (flow.h, Retries). */
static bool may_repeat(const struct hs_flow *flow, const struct hs_op *op, uint64_t sent)
{
	if (op->engine_state & HS_STATE_INTERNAL)
		return false;
	if (op->engine_mark > sent)
		return true; /* a server runs only whole requests */
	return hs_op_is_read(op) && !hs_flow_is_late(flow, op) &&
	       !is_followed(flow, op, op->next, true);
}

void hs_flow_down(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe, const char *why)
{
	bool was_up = pipe->upstream.state == HS_UPSTREAM_UP;
	char reason[160];

	flow->now = now;
	snprintf(reason, sizeof reason, "%s", why ? why : "closed");
	pipe->upstream.state = HS_UPSTREAM_DOWN;
	hs_list_remove(&pipe->dirty);
	if (was_up)
		hs_counter_sub(&flow->stats->connections, 1);
	if (!pipe->upstream.blameless)
		note_down(flow, pipe, was_up, reason);
	pipe->kind->down(flow, pipe, was_up, reason);
}

static void shared_down(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up, const char *why)
{
	(void)was_up;
	hs_flow_requeue(flow, pipe, why);
}

void hs_flow_requeue(struct hs_flow *flow, struct hs_pipe *pipe, const char *why)
{
	struct hs_ops in_flight = pipe->in_flight, waiting = pipe->waiting;
	struct hs_ops again = {0}, lost = {0}, over = {0};
	struct hs_op *op;

	pipe->in_flight = (struct hs_ops){0};
	pipe->waiting = (struct hs_ops){0};
	hs_flow_count_waiting(flow, pipe, -(int)waiting.count);
	/* Decides for all operations and takes all of them out of their slots' counts before it sends the first
	 * one again. */
	for (op = in_flight.first; op; op = op->next)
		op->engine_replies = may_repeat(flow, op, pipe->upstream.sent);
	while ((op = hs_ops_pop(&in_flight))) {
		bool repeat = op->engine_replies;

		hs_flow_leave_slot(flow, op);
		op->out->len = 0;
		hs_ops_push(repeat ? &again : &lost, op);
	}
	while ((op = hs_ops_pop(&waiting))) {
		hs_flow_leave_slot(flow, op);
		hs_ops_push(op->engine_state & HS_STATE_INTERNAL ? &lost : &again, op);
	}
	hs_pipe_reset(pipe);
	/* Parks the operations to be sent again: they go behind operations of their slots in flight at other
	 * nodes, and in front of operations submitted later. */
	while ((op = hs_ops_pop(&again))) {
		if (hs_flow_slot(flow, op) != HS_SLOT_NONE ? !hs_flow_park_retry(flow, op, 0)
							   : !hs_flow_place_again(flow, op))
			hs_ops_push(&over, op);
	}
	hs_flow_finish_all(flow, &over);
	while ((op = hs_ops_pop(&lost))) {
		if (!hs_op_is_read(op))
			hs_flow_overtaken(flow, op);
		if (!(op->engine_state & HS_STATE_INTERNAL))
			hs_counter_add(&flow->stats->outcome_unknown, 1);
		hs_flow_fail(flow, op, HS_FLOW_UNKNOWN, pipe->node->text, why);
	}
	hs_flow_release_all(flow);
}

/* ---- the shared pipes ---- */

#define SHARED                                                                                     \
	.is_health = true, .shares_login = true,                                                   \
	.timeout_reason = "no reply within engine-timeout", .compose = hs_pipe_compose,            \
	.down = shared_down, .skipped = hs_pipe_keep_error, .reply = hs_flow_handle_reply

const struct hs_pipe_kind hs_resp2_pipes = {.resp = 2, SHARED};
const struct hs_pipe_kind hs_resp3_pipes = {.resp = 3, SHARED};
