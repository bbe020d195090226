/* The pipe of a node that vouches for values (hs_op.track): what is read on it the server tracks, and
 * what has changed of it is told on the same connection, in order with the replies.
 *
 *     up ──► CLIENT TRACKING ON OPTIN
 *     read ──► CACHING YES, PTTL, CACHING YES, GET ──► reply ──► kept, vouched for ──► invalidate ──► changed
 *     now and then ──► PING ──► reply: whatever changed before the PING was told
 *
 * Nothing else travels on it: a server remembers what was asked for and no more.
 *
 * Why not NOLOOP, so that our own SETs go untold. It hides more: keys that the server evicts, or
 * forgets to track because its table is full, while it runs a command of ours. Those would be missed
 * for ever. So a SET is told to us too, and it must be known from somebody else's that comes right
 * behind it. The key is read before the SET in the same transaction: it is tracked, and the SET is
 * told of, behind the reply to EXEC (pipe.c has the whole run). Up to the reply to a PING behind it
 * the key must be told of exactly once: more often, and somebody has changed it since; not at all,
 * and this is a server that we do not understand. Nobody vouches then. What is told meanwhile is
 * passed on as any change is; the SET is finished behind it.
 *
 * Why not PING in a cluster. A master that was replaced, or that the others cannot reach, answers it
 * as before, and hears of no change any more. It does not answer for a key: so it is asked whether one
 * of those exists that were read there.
 *
 * A server that refuses any of this serves the operation like any other, and nobody vouches. */
#include "base/mem.h"
#include "base/num.h"
#include "base/slot.h"
#include "engine/redis/internal.h"

#include <stdio.h>

/* Before a server that does not track is asked again. */
#define REFUSED_US 60000000
#define OPEN_US_MIN 25000
#define IDLE_US 30000000
#define PROOF_KEY_BYTES_MAX (64 * HS_KIB) /* a longer one is not asked for */

#define TRACKING "*4\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nOPTIN\r\n"
#define PING "*1\r\n$4\r\nPING\r\n"

/* A request of our own, with what it needs. */
struct own_request {
	struct hs_op op;
	struct hs_buf out;
};

void hs_flow_ask(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes text)
{
	struct own_request *request = hs_mem_zalloc(sizeof *request);
	uint64_t patience_us = pipe->replica && pipe->node->master ? HS_REPLICA_PATIENCE_US
								   : flow->options.timeout_us;

	request->op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.command = hs_command_by_id(HS_CMD_ID_PING),
		.resp = 3,
		.slot = HS_SLOT_NONE,
		.out = &request->out,
		.raw = text,
		.received = flow->now,
		.engine_state = HS_STATE_OURS,
		.engine_deadline_us = flow->now.mono_us + patience_us,
	};
	hs_pipe_compose(pipe, &request->op, false);
	hs_flow_touch(flow, pipe);
}

/* ---- which pipe ---- */

bool hs_fill_is_for(const struct hs_flow *flow, const struct hs_node *node, const struct hs_op *op)
{
	const struct hs_pipe *pipe = &node->pipes[HS_PIPE_FILL];

	if (!op->track || op->resp != 3 || op->engine_state & HS_STATE_PLAIN ||
	    !flow->options.vouches)
		return false;
	if (op->command->flags & HS_CMD_WRITE && node->writes_plain)
		return false;
	return flow->now.mono_us >= pipe->open_at_us;
}

/* ---- beginnings and ends ---- */

void hs_fill_up(struct hs_flow *flow, struct hs_pipe *pipe)
{
	if (!pipe->vouch)
		pipe->vouch = hs_vouches_get(flow->options.vouches);
	hs_flow_ask(flow, pipe, HS_LIT(TRACKING));
	pipe->used_us = flow->now.mono_us;
	pipe->node->resp2_only = false;
	flow->fills++;
}

static void wait_before_opening(struct hs_flow *flow, struct hs_pipe *pipe)
{
	uint64_t delay_us = (uint64_t)OPEN_US_MIN << (pipe->failures < 10 ? pipe->failures : 10);

	delay_us = delay_us < HS_OPEN_US_MAX ? delay_us : HS_OPEN_US_MAX;
	pipe->failures++;
	pipe->open_at_us = flow->now.mono_us + delay_us + hs_prng_below(&flow->prng, delay_us / 2);
}

void hs_fill_down(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up, const char *why)
{
	if (was_up) {
		flow->fills--;
		hs_vouches_void(pipe->vouch);
	}
	if (flow->now.mono_us < pipe->open_at_us)
		return; /* refused: that is known already */
	if (!was_up && strstr(why, "NOPROTO")) {
		pipe->node->resp2_only = true;
		hs_fill_refused(flow, pipe, why);
		return;
	}
	/* One that let us in may be wanted again at once, unless it does nothing but throw us out. */
	if (was_up && flow->now.mono_us - pipe->opened_us >= HS_OPEN_US_MAX)
		pipe->failures = 0;
	if (!was_up || pipe->failures > 0)
		wait_before_opening(flow, pipe);
	else
		pipe->failures = 1;
}

void hs_fill_refused(struct hs_flow *flow, struct hs_pipe *pipe, const char *why)
{
	struct hs_node *node = pipe->node;

	pipe->open_at_us = flow->now.mono_us + REFUSED_US;
	if (!node->told_untracked)
		flow->calls->untracked(flow->context, node, why);
	node->told_untracked = true;
}

void hs_fill_void(struct hs_node *node)
{
	struct hs_pipe *pipe = &node->pipes[HS_PIPE_FILL];

	if (pipe->vouch)
		hs_vouches_void(pipe->vouch);
	pipe->proof.len = 0; /* of a key that may be elsewhere */
}

void hs_fill_deinit(struct hs_flow *flow, struct hs_pipe *pipe)
{
	if (pipe->vouch)
		hs_vouches_put(flow->options.vouches, &pipe->vouch);
}

/* ---- what is told ---- */

/* What is told now came behind EXEC of a write, or behind PTTL of a read. */
static bool is_near_the_end(const struct hs_op *op)
{
	if (!op || !op->track || op->engine_state & HS_STATE_OURS)
		return false;
	return op->command->flags & HS_CMD_WRITE ? op->engine_replies == HS_PIPE_WRITE_EXEC
						 : op->engine_replies <= HS_PIPE_READ_PTTL;
}

static void tell(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes key)
{
	const struct hs_op *op = pipe->flying.first;

	if (is_near_the_end(op) && hs_bytes_equal(op->argv[1], key))
		pipe->changes_behind++;
	flow->calls->changed(flow->context, flow->now, pipe->vouch, &key);
}

/* ">2 invalidate [key …]"; a null for the keys stands for all there are. */
void hs_fill_push(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes push)
{
	struct hs_answer head, key;
	int64_t at = hs_answer_head(&head, push.data, push.len);
	int64_t used = hs_answer_head(&key, push.data + at, push.len - (size_t)at);

	if (head.count != 2 || used <= 0 || !hs_bytes_equal(key.text, HS_LIT("invalidate")))
		return;
	at += used;
	used = hs_answer_head(&head, push.data + at, push.len - (size_t)at);
	if (used <= 0 || head.type != HS_ANSWER_ARRAY) {
		hs_vouches_void(pipe->vouch);
		flow->calls->changed(flow->context, flow->now, pipe->vouch, NULL);
		return;
	}
	for (at += used; head.count > 0; head.count--, at += used) {
		used = hs_answer_head(&key, push.data + at, push.len - (size_t)at);
		if (used <= 0 || key.type != HS_ANSWER_BULK)
			return;
		tell(flow, pipe, key.text);
	}
}

/* ---- replies ---- */

static void keep_first(struct hs_op *op, struct hs_bytes reply)
{
	if (reply.data[0] == '-' && op->out->len == 0)
		hs_buf_append_bytes(op->out, reply);
}

/* What it is answered if MULTI was refused: the server has run it, or refused it for itself. */
static void keep_own(struct hs_op *op, struct hs_bytes reply)
{
	if (hs_bytes_equal(reply, HS_LIT("+QUEUED\r\n")))
		return;
	if (reply.data[0] == '-' && op->out->len > 0)
		return;
	op->out->len = 0;
	hs_buf_append_bytes(op->out, reply);
	op->engine_state |= HS_STATE_OWN_WORD;
}

/* Servers before Redis 7 tell of a change in the middle of EXEC's reply, in the place of an element:
 * as many come behind it. */
static uint32_t count_told(struct hs_bytes exec)
{
	struct hs_answer head;
	int64_t used = hs_answer_head(&head, exec.data, exec.len);
	uint32_t told = 0;

	for (size_t at = (size_t)used; used > 0 && at < exec.len; at += (size_t)used) {
		used = hs_answer_length(exec.data + at, exec.len - at);
		told += exec.data[at] == '>';
	}
	return told;
}

static void keep_exec(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply)
{
	pipe->changes_behind = 0;
	if (reply.data[0] != '*' || reply.data[1] == '-') {
		keep_first(op, reply);
		return;
	}
	op->engine_state &= ~(unsigned)HS_STATE_OWN_WORD;
	op->out->len = 0;
	hs_buf_append_bytes(op->out, reply);
	op->engine_replies = count_told(reply);
	if (op->engine_replies > 0) {
		op->engine_state |= HS_STATE_MIXED;
		pipe->node->writes_plain = true;
		hs_vouches_void(pipe->vouch); /* whatever it told of */
	}
}

/* Who may not ask for it does not know. */
static void keep_pttl(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply)
{
	int64_t left_ms = 0;

	pipe->changes_behind = 0;
	if (reply.data[0] != ':' ||
	    !hs_num_parse_int((struct hs_bytes){reply.data + 1, reply.len - 3}, &left_ms))
		return;
	op->left_ms = left_ms >= 0 ? left_ms + 1 : left_ms == -1 ? -1 : 0;
}

void hs_fill_skip(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply)
{
	if (!op->track || op->engine_state & HS_STATE_OURS) {
		keep_first(op, reply);
		return;
	}
	if (!(op->command->flags & HS_CMD_WRITE)) {
		if (op->engine_replies == HS_PIPE_READ_PTTL)
			keep_pttl(pipe, op, reply);
		else
			keep_first(op, reply);
		return;
	}
	if (op->engine_state & HS_STATE_MIXED) {
		hs_buf_append_bytes(op->out, reply);
		return;
	}
	switch (op->engine_replies) {
	case HS_PIPE_WRITE_CACHING: /* refused: then nothing is told, and nobody vouches */
		break;
	case HS_PIPE_WRITE_ITSELF:
		keep_own(op, reply);
		break;
	case HS_PIPE_WRITE_EXEC:
		keep_exec(pipe, op, reply);
		break;
	default:
		keep_first(op, reply);
	}
}

/* Whether this connection hears of every change of what was just read or written there. */
static bool does_vouch(struct hs_flow *flow, const struct hs_pipe *pipe, const struct hs_op *op)
{
	/* What was voided since it was sent may concern it: flushed behind the SET, or its slot was
	 * elsewhere for a while. */
	return pipe->tracking && !pipe->closing && op->vouch_epoch == hs_vouch_epoch(pipe->vouch) &&
	       hs_flow_owner(flow, hs_flow_slot(flow, op)) == pipe->node;
}

/* What the next proof asks for; another key each time, because slots are lost one by one. */
static void note_key(struct hs_pipe *pipe, struct hs_bytes key)
{
	if (key.len > PROOF_KEY_BYTES_MAX)
		return;
	pipe->proof.len = 0;
	pipe->proof_used = false;
	hs_buf_printf(&pipe->proof, "*2\r\n$6\r\nEXISTS\r\n$%zu\r\n", key.len);
	hs_buf_append_bytes(&pipe->proof, key);
	hs_buf_append(&pipe->proof, "\r\n", 2);
}

static void vouch_for(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op)
{
	if (!does_vouch(flow, pipe, op))
		return;
	if (flow->options.cluster && (pipe->proof.len == 0 || pipe->proof_used) && op->argc > 1 &&
	    hs_slot_of(op->argv[1]) == op->slot)
		note_key(pipe, op->argv[1]);
	op->vouch = pipe->vouch;
}

/* The element of EXEC's reply that is the SET's: the second, told changes aside. */
static bool find_own(struct hs_bytes exec, struct hs_bytes *own)
{
	struct hs_answer head;
	int64_t used = hs_answer_head(&head, exec.data, exec.len);
	int element = 0;

	for (size_t at = (size_t)used; used > 0 && at < exec.len; at += (size_t)used) {
		used = hs_answer_length(exec.data + at, exec.len - at);
		if (used > 0 && exec.data[at] != '>' && element++ == 1) {
			*own = (struct hs_bytes){exec.data + at, (size_t)used};
			return true;
		}
	}
	return false;
}

static enum hs_fill_verdict take_write(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
				       struct hs_bytes said, struct hs_bytes *reply)
{
	*reply = said;
	if (op->engine_state & HS_STATE_OWN_WORD) {
		if (said.data[0] != '-')
			pipe->node->writes_plain = true; /* it does without MULTI */
		return HS_FILL_ANSWER;
	}
	if (said.len == 0 || said.data[0] == '-')
		return HS_FILL_REFUSED;
	if (!find_own(said, reply)) {
		*reply = HS_LIT("-UNKNOWN the engine's reply to EXEC has the wrong number of "
				"elements: the command may or may not have run\r\n");
		return HS_FILL_ANSWER;
	}
	if (reply->data[0] == '+' && pipe->changes_behind == 1 &&
	    !(op->engine_state & HS_STATE_MIXED))
		vouch_for(flow, pipe, op);
	return HS_FILL_ANSWER;
}

static bool begins(struct hs_bytes reply, const char *words)
{
	return reply.len >= strlen(words) && memcmp(reply.data, words, strlen(words)) == 0;
}

static void take_proof(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		       struct hs_bytes reply)
{
	struct hs_redirect redirect;

	pipe->proving = false;
	if (reply.data[0] == '-' && hs_flow_read_redirect(reply, &redirect) && !redirect.ask) {
		hs_flow_redirected(flow, pipe, &redirect);
		hs_fill_void(pipe->node); /* whatever was known of the slot */
		return;
	}
	if (begins(reply, "-NOPERM "))
		pipe->node->proves_plain = true;
	else if (reply.data[0] == '-' && !begins(reply, "-ASK "))
		return; /* it does not serve now */
	hs_vouches_prove(pipe->vouch, op->received.mono_us);
}

static void take_own(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		     struct hs_bytes reply)
{
	char why[128];

	if (pipe->tracking) {
		take_proof(flow, pipe, op, reply);
	} else if (reply.data[0] == '+') {
		pipe->tracking = true;
		hs_vouches_prove(pipe->vouch, op->received.mono_us);
	} else {
		snprintf(why, sizeof why, "CLIENT TRACKING: %.*s", (int)(reply.len - 3),
			 reply.data + 1);
		hs_fill_refused(flow, pipe, why);
	}
	hs_flow_finish(flow, op);
}

enum hs_fill_verdict hs_fill_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
				   struct hs_bytes said, struct hs_bytes *reply)
{
	if (op->engine_state & HS_STATE_OURS) {
		take_own(flow, pipe, op, *reply);
		return HS_FILL_DONE;
	}
	/* To serve somebody proves as much as to answer us. */
	if (pipe->tracking && (said.len > 0 ? said.data[0] == '*' : reply->data[0] != '-'))
		hs_vouches_prove(pipe->vouch, op->received.mono_us);
	if (op->command->flags & HS_CMD_WRITE)
		return take_write(flow, pipe, op, said, reply);
	if (pipe->changes_behind > 0)
		op->left_ms = 0; /* that was of another value */
	if (said.len == 0 && reply->data[0] != '-')
		vouch_for(flow, pipe, op);
	else if (said.len > 0 && pipe->tracking)
		hs_fill_refused(flow, pipe, "CLIENT CACHING is refused");
	return HS_FILL_ANSWER;
}

/* ---- time ---- */

void hs_flow_keep(struct hs_flow *flow, bool keeping)
{
	flow->keeping = keeping;
}

bool hs_flow_proves(const struct hs_flow *flow)
{
	return flow->fills > 0 || flow->replicas_wanted_us > 0;
}

/* In a cluster not without a key: then there is nothing yet, under this epoch, that it vouches for. */
static bool can_prove(const struct hs_flow *flow, const struct hs_pipe *pipe)
{
	return !flow->options.cluster || pipe->proof.len > 0 || pipe->node->proves_plain;
}

void hs_flow_prove(struct hs_flow *flow, struct hs_now now)
{
	flow->now = now;
	for (uint16_t i = 0; i < flow->nodes_count && flow->fills > 0; i++) {
		struct hs_pipe *pipe = flow->nodes[i] ? &flow->nodes[i]->pipes[HS_PIPE_FILL] : NULL;

		if (!pipe || pipe->state != HS_PIPE_UP || !pipe->tracking || pipe->proving ||
		    pipe->closing || !can_prove(flow, pipe) ||
		    !atomic_exchange_explicit(&pipe->vouch->wanted, false, memory_order_relaxed))
			continue;
		pipe->proving = true;
		pipe->proof_used = true;
		hs_flow_ask(flow, pipe,
			    pipe->node->proves_plain || !flow->options.cluster
				    ? HS_LIT(PING)
				    : hs_buf_bytes(&pipe->proof));
	}
	hs_replica_prove(flow);
	hs_flow_flush(flow, now);
}

void hs_fill_tick(struct hs_flow *flow, struct hs_pipe *pipe)
{
	bool refused = flow->now.mono_us < pipe->open_at_us; /* what is under way is waited for */

	if (pipe->flying.first || pipe->waiting.first || (flow->keeping && !refused))
		pipe->used_us = flow->now.mono_us;
	else if (pipe->state == HS_PIPE_UP &&
		 (refused || flow->now.mono_us - pipe->used_us > IDLE_US))
		hs_flow_doom(flow, pipe, refused ? "it does not track" : "nothing is kept any more",
			     true);
}
