#include "engine/redis/pipe.h"

#include "base/check.h"
#include "wire/compose.h"
#include "wire/reply.h"

#include <string.h>

void hs_pipe_init(struct hs_pipe *pipe, const struct hs_pipe_kind *kind, struct hs_node *node)
{
	*pipe = (struct hs_pipe){.kind = kind, .node = node};
	hs_upstream_init(&pipe->upstream, kind->resp);
	hs_list_init(&pipe->dirty);
}

void hs_pipe_reset(struct hs_pipe *pipe)
{
	hs_upstream_reset(&pipe->upstream);
	pipe->sent_seen = 0;
	pipe->progress_us = 0;
}

void hs_pipe_deinit(struct hs_pipe *pipe)
{
	hs_check(!pipe->waiting.first && !pipe->in_flight.first);
	hs_list_remove(&pipe->dirty);
	hs_upstream_deinit(&pipe->upstream);
}

/* Composes MULTI, the commands that the server runs, and EXEC in one run of bytes, so that no other client's
 * command comes between. One ASKING in front of MULTI is enough: the server applies it to all commands up to
 * EXEC. */
static uint32_t compose_exec(struct hs_buf *out, const struct hs_op_tx *tx, bool asking)
{
	uint32_t replies = asking ? 2 : 1;

	if (asking)
		hs_compose_line(out, "ASKING");
	hs_compose_line(out, "MULTI");
	for (size_t i = 0; i < tx->count; i++) {
		if (tx->commands[i].answered.len > 0)
			continue;
		hs_compose(out, tx->commands[i].argc, tx->commands[i].argv);
		replies++;
	}
	hs_compose_line(out, "EXEC");
	return replies;
}

void hs_pipe_compose_op(struct hs_buf *out, const struct hs_op *op)
{
	if (op->raw.len > 0)
		hs_buf_append_bytes(out, op->raw);
	else
		hs_compose(out, op->argc, op->argv);
}

void hs_pipe_compose_behind(struct hs_pipe *pipe, struct hs_op *op, bool asking, size_t start,
			    uint32_t replies)
{
	struct hs_buf *out = &pipe->upstream.out;

	if (op->kind == HS_OP_EXEC) {
		replies += compose_exec(out, op->tx, asking);
	} else {
		if (asking)
			replies += (uint32_t)hs_compose_line(out, "ASKING");
		if (op->kind == HS_OP_UNWATCH)
			hs_compose_line(out, "UNWATCH");
		else
			hs_pipe_compose_op(out, op);
	}
	pipe->upstream.composed += out->len - start;
	op->engine_mark = pipe->upstream.composed;
	op->engine_replies = replies;
	hs_ops_push(&pipe->in_flight, op);
}

void hs_pipe_compose(struct hs_pipe *pipe, struct hs_op *op, bool asking)
{
	hs_pipe_compose_behind(pipe, op, asking, pipe->upstream.out.len, 0);
}

void hs_pipe_keep_error(struct hs_pipe *pipe, struct hs_op *op, struct hs_bytes reply)
{
	(void)pipe;
	if (reply.data[0] == '-' && op->out->len == 0)
		hs_buf_append_bytes(op->out, reply);
}

bool hs_pipe_splice(const struct hs_op *op, struct hs_bytes reply, struct hs_buf *out)
{
	struct hs_reply writer = {.out = out, .resp = op->resp};
	struct hs_bytes rest = hs_parse_reply_elements(reply);

	hs_reply_array(&writer, op->tx->count);
	for (size_t i = 0; i < op->tx->count; i++) {
		struct hs_bytes answered = op->tx->commands[i].answered;

		if (answered.len == 0 && !hs_parse_reply_take(&rest, &answered))
			return false;
		hs_buf_append_bytes(out, answered);
	}
	return rest.len == 0;
}
