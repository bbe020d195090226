/* What comes back: replies, redirects, refusals, and connections that end. */
#include "base/list.h"
#include "base/mem.h"
#include "base/num.h"
#include "engine/redis/internal.h"
#include "wire/reply.h"

#include <stdio.h>

enum { SWAP_BYTES_MIN = 4096 };

#define UNKNOWN                                                                                    \
	"UNKNOWN the connection to %s was lost before it answered (%s): the command may or may "   \
	"not have run; heatsink does not repeat it"

/* ---- what an error means ---- */

enum verdict {
	PASS,	  /* it is the answer */
	REDIRECT, /* another node has the slot */
	LATER,	  /* not run, may be tried again */
	HEAL,	  /* the script is not there */
};

static bool starts(struct hs_bytes reply, const char *word)
{
	size_t len = strlen(word);

	return reply.len > len && memcmp(reply.data + 1, word, len) == 0 &&
	       (reply.data[1 + len] == ' ' || reply.data[1 + len] == '\r');
}

/* An error line's second word, and all behind it. False: there is no such thing. */
static bool split_words(struct hs_bytes reply, struct hs_bytes *second, struct hs_bytes *rest)
{
	const char *end = reply.data + reply.len - 2; /* before the line end */
	const char *at = memchr(reply.data, ' ', reply.len - 2);
	const char *next = at ? memchr(at + 1, ' ', (size_t)(end - at - 1)) : NULL;

	if (!next)
		return false;
	*second = (struct hs_bytes){at + 1, (size_t)(next - at - 1)};
	*rest = (struct hs_bytes){next + 1, (size_t)(end - next - 1)};
	return true;
}

bool hs_flow_read_redirect(struct hs_bytes reply, struct hs_redirect *redirect)
{
	struct hs_bytes number, address;
	const char *colon;
	uint64_t slot, port;

	redirect->ask = starts(reply, "ASK");
	if (!redirect->ask && !starts(reply, "MOVED"))
		return false;
	if (!split_words(reply, &number, &address) || !hs_num_parse_uint(number, &slot) ||
	    slot >= HS_SLOTS)
		return false;
	colon = address.len > 0 ? memrchr(address.data, ':', address.len) : NULL;
	if (!colon)
		return false;

	size_t host_len = (size_t)(colon - address.data);

	if (!hs_num_parse_uint((struct hs_bytes){colon + 1, address.len - host_len - 1}, &port) ||
	    port == 0 || port > UINT16_MAX)
		return false;
	redirect->slot = (uint16_t)slot;
	redirect->host = (struct hs_bytes){address.data, host_len};
	redirect->port = (uint16_t)port;
	return true;
}

/* The owner of a slot answers ASK: it is handing the slot over, and clients may create keys at the other
 * node that the owner lacks. An ASK of a node that does not own the slot any more says nothing: it answers
 * a request that was sent before the slot moved. */
static void note_ask(struct hs_flow *flow, const struct hs_node *by, uint16_t slot)
{
	struct hs_slot_state *state = &flow->slots[slot];

	if (by != hs_flow_owner(flow, slot))
		return;
	if (!hs_slot_is_leaving(flow, state))
		hs_fill_void(flow->nodes[state->node]);
	state->asked_s = (uint32_t)(flow->now.mono_us / 1000000) + 1;
}

struct hs_node *hs_flow_redirected(struct hs_flow *flow, const struct hs_pipe *pipe,
				   const struct hs_redirect *redirect)
{
	struct hs_bytes host = redirect->host;
	struct hs_node *node;

	/* A node that does not know its own name leaves the host out: it is the one that was asked.
	 */
	if (host.len == 0)
		host = (struct hs_bytes){pipe->node->at.host, strlen(pipe->node->at.host)};
	node = hs_flow_node(flow, host.data, host.len, redirect->port);
	if (redirect->ask) {
		note_ask(flow, pipe->node, redirect->slot);
		hs_flow_count(&flow->stats->asked, 1);
		return node;
	}
	hs_flow_count(&flow->stats->moved, 1);
	flow->calls->surprise(flow->context);
	if (node) {
		struct hs_node *owner = hs_flow_owner(flow, redirect->slot);

		if (!node->listed)
			hs_flow_set_partition(flow, node, pipe->node->at.partition);
		if (owner && owner != node)
			hs_fill_void(owner);
		if (owner)
			hs_replica_void(flow, owner);
		hs_replica_void(flow, node);
		flow->slots[redirect->slot].node = hs_flow_number(flow, node);
		flow->slots[redirect->slot].asked_s = 0;
	}
	return node;
}

/* A script may have written before it ended with an error of its own making, in whatever words. Only
 * those that the server itself uses, before it runs anything, say that it did not run. */
static bool is_script_s_own(const struct hs_op *op, struct hs_bytes reply)
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
		size_t len = strlen(words[i]);

		if (reply.len > len && memcmp(reply.data, words[i], len) == 0)
			return false;
	}
	return true;
}

static enum verdict judge(const struct hs_flow *flow, const struct hs_op *op, struct hs_bytes reply,
			  struct hs_redirect *redirect)
{
	if (flow->options.cluster && hs_flow_read_redirect(reply, redirect))
		return REDIRECT;
	if (is_script_s_own(op, reply))
		return PASS;
	if (flow->options.cluster && (starts(reply, "TRYAGAIN") || starts(reply, "CLUSTERDOWN") ||
				      starts(reply, "READONLY") || starts(reply, "MASTERDOWN")))
		return LATER;
	if (starts(reply, "LOADING"))
		return LATER;
	if (starts(reply, "NOSCRIPT") && !(op->engine_state & HS_STATE_HEALED))
		return HEAL;
	return PASS;
}

/* Whether a later operation of the same client on the same slot is under way: then this one cannot
 * be tried again, it would come behind it. */
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

/* The answer for the one who asked. `owned`: the reply is all of the pipe's partial buffer, which
 * may change hands. */
static void answer(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		   struct hs_bytes reply, bool owned)
{
	uint16_t slot = hs_flow_slot(flow, op);
	bool counted = op->engine_state & HS_STATE_COUNTED;

	hs_flow_leave(flow, op);
	if (counted && flow->slots[slot].hold > 0)
		hs_flow_overtaken(flow, op);
	if (op->kind == HS_OP_EXEC) {
		finish_exec(flow, op, reply);
	} else {
		if (owned && reply.len >= SWAP_BYTES_MIN && op->out->len == 0)
			hs_buf_swap(op->out, &pipe->partial);
		else
			op->answer = reply;
		hs_flow_finish(flow, op);
	}
	if (counted && flow->slots[slot].hold > 0)
		hs_flow_release(flow, slot);
}

/* Keeps what the server said, in case that is the last word. */
static void keep_words(struct hs_op *op, struct hs_bytes reply)
{
	op->out->len = 0;
	hs_buf_append_bytes(op->out, reply);
	op->engine_state |= HS_STATE_RETURNED;
}

/* A redirect is not for clients: those who know of clusters would follow it, past heatsink. */
static void keep_redirect(struct hs_op *op, struct hs_bytes reply)
{
	op->out->len = 0;
	hs_buf_printf(op->out, "-CLUSTERDOWN slot on the move (%.*s); not run\r\n",
		      (int)(reply.len - 3), reply.data + 1);
	op->engine_state |= HS_STATE_RETURNED;
}

static void follow(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		   const struct hs_redirect *redirect, struct hs_bytes reply)
{
	struct hs_node *node = hs_flow_redirected(flow, pipe, redirect);
	uint64_t delay_us = redirect->ask ? HS_AGAIN_US : 0;

	if (!node || flow->now.mono_us > op->engine_deadline_us) {
		struct hs_buf words = {0};

		keep_redirect(op, reply);
		hs_buf_swap(&words, op->out);
		answer(flow, pipe, op, hs_buf_bytes(&words), false);
		hs_buf_deinit(&words);
		return;
	}
	if (redirect->slot != op->slot) { /* nobody but the server knows where its keys are */
		hs_flow_leave(flow, op);
		op->slot = redirect->slot;
	} else if (redirect->ask && flow->slots[op->slot].hold == 0 &&
		   hs_flow_send(flow, node, op, true)) {
		return; /* still counted in its slot */
	}
	/* Sent to and fro between two that disagree: not in circles as fast as they answer. */
	if (op->engine_state & HS_STATE_RETURNED)
		delay_us = HS_AGAIN_US;
	hs_flow_leave(flow, op);
	keep_redirect(op, reply);
	hs_flow_park_back(flow, op, delay_us);
	hs_flow_release(flow, op->slot);
}

/* EVALSHA of a script that the server does not have: the script itself, if it is known here. */
static bool heal_script(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op)
{
	struct hs_bytes script = {NULL, 0};
	struct hs_buf request = {0};
	bool read_only = op->kind == HS_OP_COMMAND && op->argc >= 3 &&
			 hs_bytes_is_word(op->argv[0], "evalsha_ro");

	if (op->kind != HS_OP_COMMAND || op->argc < 3 ||
	    is_followed(flow, op, pipe->flying.first, false) ||
	    !(read_only || hs_bytes_is_word(op->argv[0], "evalsha")))
		return false;
	script = flow->calls->script(flow->context, op->argv[1]);
	if (script.len == 0)
		return false;
	hs_buf_printf(&request, "*%zu\r\n%s$%zu\r\n", op->argc,
		      read_only ? "$7\r\nEVAL_RO\r\n" : "$4\r\nEVAL\r\n", script.len);
	hs_buf_append_bytes(&request, script);
	hs_buf_append(&request, "\r\n", 2);
	for (size_t i = 2; i < op->argc; i++) {
		hs_buf_printf(&request, "$%zu\r\n", op->argv[i].len);
		hs_buf_append_bytes(&request, op->argv[i]);
		hs_buf_append(&request, "\r\n", 2);
	}
	op->engine_state |= HS_STATE_HEALED;
	/* Composed at once, so the request need not outlive this. */
	op->raw = hs_buf_bytes(&request);
	hs_pipe_compose(pipe, op, op->engine_state & HS_STATE_ASKED);
	op->raw = (struct hs_bytes){NULL, 0};
	hs_buf_deinit(&request);
	hs_flow_touch(flow, pipe);
	return true;
}

/* ---- those who serve nothing ---- */

static bool note_refusal(const struct hs_flow *flow, struct hs_refusals *refused)
{
	uint64_t now_us = flow->now.mono_us;

	if (refused->since_us == 0 || now_us - refused->last_us > HS_REFUSED_US_MAX)
		refused->since_us = now_us;
	refused->last_us = now_us;
	return now_us - refused->since_us > flow->options.timeout_us;
}

static bool begins(struct hs_bytes reply, const char *words)
{
	return reply.len >= strlen(words) && memcmp(reply.data, words, strlen(words)) == 0;
}

/* Whether one that was told "not now" has nothing to wait for: everybody has been told so for longer
 * than anybody waits. TRYAGAIN and the like end with a move or a failover, and are waited for. */
static bool is_hopeless(struct hs_flow *flow, struct hs_node *node, const struct hs_op *op,
			struct hs_bytes reply)
{
	bool down = begins(reply, "-CLUSTERDOWN The cluster is down");
	bool reads = begins(reply, "-CLUSTERDOWN The cluster is down and only accepts read");
	bool writes_hopeless, reads_hopeless;

	if (!down && starts(reply, "CLUSTERDOWN")) {
		flow->any_refused = true;
		return note_refusal(flow, &flow->refused[hs_flow_slot(flow, op)]);
	}
	if (!down && !starts(reply, "LOADING"))
		return false;
	writes_hopeless = note_refusal(flow, &node->refused_writes);
	reads_hopeless = !reads && note_refusal(flow, &node->refused_reads);
	return hs_op_is_read(op) ? reads_hopeless : writes_hopeless;
}

/* One with a key was served. */
static void note_served(struct hs_flow *flow, struct hs_node *node, const struct hs_op *op)
{
	/* Reads are never refused alone. */
	if (node->refused_writes.since_us == 0 && !flow->any_refused)
		return;
	flow->refused[hs_flow_slot(flow, op)].since_us = 0;
	node->refused_reads.since_us = 0;
	if (!hs_op_is_read(op))
		node->refused_writes.since_us = 0;
}

/* ---- errors ---- */

/* True: dealt with, it is not the answer. */
static bool handle_error(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			 struct hs_bytes reply)
{
	struct hs_redirect redirect;

	switch (judge(flow, op, reply, &redirect)) {
	case PASS:
		break;
	case REDIRECT:
		follow(flow, pipe, op, &redirect, reply);
		return true;
	case LATER:
		flow->calls->surprise(flow->context);
		if (hs_flow_slot(flow, op) == HS_SLOT_NONE)
			return false;
		if (is_hopeless(flow, pipe->node, op, reply) ||
		    flow->now.mono_us > op->engine_deadline_us) {
			answer(flow, pipe, op, reply, false); /* of EXEC too: this is why */
			return true;
		}
		hs_flow_count(&flow->stats->again, 1);
		hs_flow_leave(flow, op);
		keep_words(op, reply);
		hs_flow_park_back(flow, op, HS_AGAIN_US);
		return true;
	case HEAL:
		return heal_script(flow, pipe, op);
	}
	return false;
}

static void settle(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		   struct hs_bytes reply, bool owned)
{
	op->out->len = 0;
	if (reply.data[0] != '-' && op->slot != HS_SLOT_NONE)
		note_served(flow, pipe->node, op);
	else if (reply.data[0] == '-' && handle_error(flow, pipe, op, reply))
		return;
	answer(flow, pipe, op, reply, owned);
}

/* Of one that was to be tracked: if the server does not do that, as any other. */
static void take_fill_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
			    struct hs_bytes reply, bool owned)
{
	struct hs_buf said = {0};

	if (op->out->len > 0)
		hs_buf_swap(&said, op->out);
	switch (hs_fill_reply(flow, pipe, op, hs_buf_bytes(&said), &reply)) {
	case HS_FILL_DONE:
		break;
	case HS_FILL_ANSWER:
		settle(flow, pipe, op, reply, owned && said.len == 0);
		break;
	case HS_FILL_REFUSED:
		if (reply.len > 0 && handle_error(flow, pipe, op, reply))
			break;
		op->engine_state |= HS_STATE_PLAIN;
		hs_flow_leave(flow, op);
		hs_flow_park_back(flow, op, 0);
		hs_flow_release(flow, hs_flow_slot(flow, op));
		break;
	}
	hs_buf_deinit(&said);
}

static void take_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_bytes reply,
		       bool owned)
{
	struct hs_op *op = pipe->flying.first;

	if (reply.data[0] == '>') { /* told without being asked */
		if (pipe->fill)
			hs_fill_push(flow, pipe, reply);
		return;
	}
	if (!op) {
		pipe->doom = "it answers what was not asked";
		return;
	}
	if (op->engine_replies > 0) { /* ASKING, MULTI, QUEUED … */
		op->engine_replies--;
		if (pipe->fill)
			hs_fill_skip(pipe, op, reply);
		else if (reply.data[0] == '-' && op->out->len == 0)
			hs_buf_append_bytes(op->out, reply);
		return;
	}
	hs_ops_pop(&pipe->flying);
	if (op->kind == HS_OP_EXEC && op->out->len > 0) {
		/* A command was refused when it was queued: that is why, not EXECABORT. */
		struct hs_buf why = {0};

		hs_buf_swap(&why, op->out);
		if (pipe->own ? !hs_own_reply(flow, pipe, op, hs_buf_bytes(&why))
			      : !handle_error(flow, pipe, op, hs_buf_bytes(&why)))
			answer(flow, pipe, op, reply, false);
		hs_buf_deinit(&why);
		return;
	}
	if (pipe->fill) {
		take_fill_reply(flow, pipe, op, reply, owned);
		return;
	}
	if (pipe->own) {
		op->out->len = 0;
		if (!hs_own_reply(flow, pipe, op, reply))
			answer(flow, pipe, op, reply, owned);
		return;
	}
	if (pipe->replica) {
		op->out->len = 0;
		if (!hs_replica_reply(flow, pipe, op, reply))
			answer(flow, pipe, op, reply, owned);
		return;
	}
	settle(flow, pipe, op, reply, owned);
}

/* Every whole reply in `data`; returns how much of it that was. */
static size_t take_replies(struct hs_flow *flow, struct hs_pipe *pipe, const char *data, size_t len,
			   bool partial)
{
	size_t at = 0;

	while (at < len && !pipe->doom) {
		int64_t used = hs_answer_scan(&pipe->scan, data + at, len - at);

		if (used == 0)
			break;
		if (used < 0) {
			pipe->doom = "what it answers is not RESP";
			break;
		}
		take_reply(flow, pipe, (struct hs_bytes){data + at, (size_t)used},
			   partial && at == 0 && (size_t)used == len);
		at += (size_t)used;
	}
	return at;
}

void hs_flow_receive(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe,
		     const char *data, size_t len)
{
	flow->now = now;
	if (pipe->partial.len == 0) {
		size_t used = take_replies(flow, pipe, data, len, false);

		if (!pipe->doom)
			hs_buf_append(&pipe->partial, data + used, len - used);
	} else {
		if (data == pipe->partial.data + pipe->partial.len)
			pipe->partial.len += len;
		else
			hs_buf_append(&pipe->partial, data, len);

		size_t whole = pipe->partial.len;
		size_t used = take_replies(flow, pipe, pipe->partial.data, whole, true);

		/* It may have changed hands: then it is empty. */
		if (pipe->partial.len == whole && used > 0)
			hs_buf_consume(&pipe->partial, used);
		if (pipe->partial.len == 0)
			hs_buf_clear(&pipe->partial, HS_KEEP_BYTES);
	}
	if (pipe->partial.len > HS_READ_BYTES)
		pipe->moved_us = now.mono_us;
	if (!pipe->doom && pipe->partial.len > HS_ENGINE_REPLY_MAX)
		pipe->doom = "its reply is larger than 2 GiB";
	if (pipe->doom) {
		if (!pipe->closing) /* else it is doomed already, and not by its node's fault */
			hs_flow_doom(flow, pipe, pipe->doom, false);
		return;
	}
	hs_flow_pump(flow, pipe);
}

/* ---- connections that begin and end ---- */

void hs_flow_up(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe)
{
	struct hs_node *node = pipe->node;

	flow->now = now;
	pipe->state = HS_PIPE_UP;
	node->down_since_us = 0;
	node->open_at_us = 0;
	node->unreachable = false;
	hs_flow_count(&flow->stats->connections, 1);
	if (pipe->fill)
		hs_fill_up(flow, pipe);
	if (pipe->replica)
		hs_replica_up(flow, pipe);
	if (pipe->own) {
		while (pipe->waiting.first)
			hs_pipe_compose(pipe, hs_ops_pop(&pipe->waiting), pipe->asking);
		hs_flow_touch(flow, pipe);
		hs_unblock_up(flow, pipe);
	}
	hs_flow_pump(flow, pipe);
}

static bool node_refuses(const char *why)
{
	return begins(hs_bytes_of(why), "it refuses us") || begins(hs_bytes_of(why), HS_NO_LOGIN);
}

static void note_down(struct hs_flow *flow, const struct hs_pipe *pipe, bool was_up,
		      const char *why)
{
	struct hs_node *node = pipe->node;
	uint64_t delay_us;

	hs_flow_count(&flow->stats->failures, 1);
	if ((pipe->fill || pipe->replica) && node_refuses(why))
		return; /* others find out for themselves whether it lets them in */
	/* One of a kind of its own is no reason to think ill of a node that others talk to. */
	if ((pipe->own || pipe->fill || pipe->replica) &&
	    (node->pipes[0].state == HS_PIPE_UP || node->pipes[1].state == HS_PIPE_UP)) {
		flow->calls->surprise(flow->context);
		return;
	}
	node->unreachable = !was_up;
	/* One that lets everybody in and throws them out again is as good as away. */
	if (was_up && flow->now.mono_us - pipe->opened_us >= HS_OPEN_US_MAX)
		node->failures = 0;
	delay_us = 25000u << (node->failures < 6 ? node->failures : 6);
	if (node->down_since_us == 0)
		node->down_since_us = flow->now.mono_us;
	snprintf(node->down_why, sizeof node->down_why, "%s", why);
	node->no_login = begins(hs_bytes_of(why), HS_NO_LOGIN);
	/* Right away the first time, then slower and slower, not all workers at once. */
	if (was_up && node->failures == 0)
		delay_us = 0;
	else if (delay_us > HS_OPEN_US_MAX)
		delay_us = HS_OPEN_US_MAX;
	if (!was_up || node->failures > 0)
		delay_us += hs_prng_below(&flow->prng, delay_us / 2 + 1);
	node->failures++;
	node->open_at_us = flow->now.mono_us + delay_us;
	flow->calls->surprise(flow->context);
}

/* Whether an operation that was under way on a connection that is gone may be sent again. */
static bool may_repeat(const struct hs_flow *flow, const struct hs_op *op, uint64_t sent)
{
	if (op->engine_state & HS_STATE_OURS)
		return false;
	if (op->engine_mark > sent)
		return true; /* not wholly handed over: a server runs whole requests only */
	return hs_op_is_read(op) && flow->now.mono_us <= op->engine_deadline_us &&
	       !is_followed(flow, op, op->next, true);
}

void hs_flow_down(struct hs_flow *flow, struct hs_now now, struct hs_pipe *pipe, const char *why)
{
	bool was_up = pipe->state == HS_PIPE_UP;
	struct hs_ops flying = pipe->flying, waiting = pipe->waiting, again = {0}, lost = {0};
	char reason[160];
	struct hs_op *op;

	flow->now = now;
	snprintf(reason, sizeof reason, "%s", why ? why : "closed");
	pipe->state = HS_PIPE_DOWN;
	hs_list_remove(&pipe->dirty);
	if (was_up)
		hs_flow_count(&flow->stats->connections, -1);
	if (!pipe->blameless)
		note_down(flow, pipe, was_up, reason);
	if (pipe->own) {
		hs_own_down(flow, pipe, reason);
		return;
	}
	if (pipe->fill)
		hs_fill_down(flow, pipe, was_up, reason);
	if (pipe->replica)
		hs_replica_down(flow, pipe, was_up);
	pipe->flying = (struct hs_ops){0};
	pipe->waiting = (struct hs_ops){0};
	hs_flow_count_waiting(flow, pipe, -(int)waiting.count);
	/* First all are judged and taken out of their slots, then the first is sent again. */
	for (op = flying.first; op; op = op->next) {
		if (pipe->replica)
			hs_replica_give_up(flow, op);
		op->engine_replies = may_repeat(flow, op, pipe->sent);
	}
	while ((op = hs_ops_pop(&flying))) {
		bool repeat = op->engine_replies;

		hs_flow_leave(flow, op);
		op->out->len = 0;
		hs_ops_push(repeat ? &again : &lost, op);
	}
	while ((op = hs_ops_pop(&waiting))) {
		hs_flow_leave(flow, op);
		hs_ops_push(op->engine_state & HS_STATE_OURS ? &lost : &again, op);
	}
	hs_pipe_reset(pipe);
	/* Behind whatever of their slots is under way elsewhere, before what came since. */
	while ((op = hs_ops_pop(&again))) {
		if (hs_flow_slot(flow, op) != HS_SLOT_NONE)
			hs_flow_park_back(flow, op, 0);
		else
			hs_flow_place_again(flow, op);
	}
	while ((op = hs_ops_pop(&lost))) {
		if (!hs_op_is_read(op))
			hs_flow_overtaken(flow, op);
		if (!(op->engine_state & HS_STATE_OURS))
			hs_flow_count(&flow->stats->unknown, 1);
		hs_flow_fail(flow, op, UNKNOWN, pipe->node->text, reason);
	}
	for (uint16_t i = 0; i < flow->holds_count; i++) {
		if (flow->holds[i])
			hs_flow_release(flow, flow->holds[i]->slot);
	}
}
