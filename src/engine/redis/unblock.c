/* CLIENT UNBLOCK: ends the wait of a client's blocking command at the server.
 *
 *     BLPOP ──── the client's own pipe ──────────► server, connection 42
 *     CLIENT UNBLOCK 42 ──── the shared pipe ────► the same server
 *
 * BLPOP and CLIENT UNBLOCK travel on different connections, so the server may read them in either order. So the
 * flow stores the request for CLIENT UNBLOCK in the pipe of the blocking command (hs_private_pipe.unblock):
 *
 *   - while that pipe is opening, until the command was written to it;
 *   - while the server answers 0, connection 42 does not wait: the server has not read the command yet, or
 *     has just answered it. Then UNBLOCK is sent again, as long as the command is in flight.
 *
 * The pipe serves no other client afterwards, because an UNBLOCK may arrive late. */
#include "base/list.h"
#include "engine/redis/internal.h"

#include <stdio.h>

enum {
	TRIES_AT_ONCE = 8, /* tries without a pause; afterwards one each tick */
	TRIES_MAX = 64,	   /* most tries, for a server that refuses the command */
};

static void answered(struct hs_flow *flow, const struct hs_op *op);

void hs_unblock_send(struct hs_flow *flow, struct hs_private_pipe *priv)
{
	struct hs_pipe *pipe = &priv->pipe;
	struct hs_flow_request *request;
	char line[64];

	if (priv->unblock == HS_UNBLOCK_NO || priv->unblocking || pipe->upstream.server_id == 0 ||
	    !pipe->in_flight.first || priv->unblock_tries == TRIES_MAX)
		return;
	snprintf(line, sizeof line, "CLIENT UNBLOCK %lld %s", (long long)pipe->upstream.server_id,
		 priv->unblock == HS_UNBLOCK_ERROR ? "ERROR" : "TIMEOUT");
	request = hs_flow_request(flow, 2, flow->options.timeout_us, line);
	request->answered = answered;
	/* finds the pipe when the reply comes */
	request->op.watcher = (uint64_t)pipe->upstream.server_id;
	request->op.engine_data = pipe->node;
	priv->unblock_tries++;
	priv->unblocking = true;
	hs_flow_send_internal_to_node(flow, pipe->node, request);
}

bool hs_flow_unblock(struct hs_flow *flow, struct hs_op *op, bool error)
{
	struct hs_private_pipe *priv = hs_private_of(op);
	const struct hs_upstream *upstream = priv ? &priv->pipe.upstream : NULL;

	if (!priv || upstream->close_reason ||
	    (upstream->state == HS_UPSTREAM_UP && upstream->server_id == 0))
		return false;
	priv->unblocked = true;
	if (priv->unblock == HS_UNBLOCK_NO)
		priv->unblock = error ? HS_UNBLOCK_ERROR : HS_UNBLOCK_TIMEOUT;
	hs_unblock_send(flow, priv);
	return true;
}

static void answered(struct hs_flow *flow, const struct hs_op *op)
{
	struct hs_bytes reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	struct hs_private_pipe *priv = NULL;

	hs_list_each(struct hs_private_pipe, other, &flow->private_pipes, link) {
		if (other->unblocking && other->pipe.node == op->engine_data &&
		    (uint64_t)other->pipe.upstream.server_id == op->watcher)
			priv = other;
	}
	if (!priv)
		return; /* the wait is over, and the pipe is closed */
	priv->unblocking = false;
	if (hs_bytes_equal(reply, HS_LIT(":1\r\n")))
		priv->unblock = HS_UNBLOCK_NO;
	else if (hs_bytes_equal(reply, HS_LIT(":0\r\n")) && priv->unblock_tries < TRIES_AT_ONCE)
		hs_unblock_send(flow, priv);
}
