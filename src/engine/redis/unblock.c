/* CLIENT UNBLOCK: ends the wait of a client's blocking command at the server.
 *
 *     BLPOP ──── the client's own pipe ──────────► server, connection 42
 *     CLIENT UNBLOCK 42 ──── the shared pipe ────► the same server
 *
 * The two travel on different connections, so the order in which the server reads them is open. The
 * wish is kept with the pipe of the blocking command:
 *
 *   - while that pipe is still opening, until the command was written to it;
 *   - while the server answers that connection 42 does not wait (0): it has not read the command yet,
 *     or has answered it just now. Then it is asked again, as long as the command is under way.
 *
 * The pipe is not used for another client afterwards, since an UNBLOCK may arrive late. */
#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"

#include <stdio.h>

enum {
	TRIES_AT_ONCE = 8, /* as fast as the server answers; then one with each tick */
	TRIES_MAX = 64,	   /* a server that refuses it is not asked for ever */
};

/* A request that nobody but the flow waits for. hs_flow_finish frees it. */
struct unblock_request {
	struct hs_op op; /* `watcher`: the connection that it is about */
	struct hs_buf out;
	char text[96];
};

static void send(struct hs_flow *flow, struct hs_pipe *pipe)
{
	struct unblock_request *request;
	const char *how = pipe->unblock == HS_UNBLOCK_ERROR ? "ERROR" : "TIMEOUT";
	char number[24];
	int digits, len;

	if (pipe->unblock == HS_UNBLOCK_NO || pipe->unblocking || pipe->server_id == 0 ||
	    !pipe->flying.first || pipe->unblock_tries == TRIES_MAX)
		return;
	request = hs_mem_zalloc(sizeof *request);
	digits = snprintf(number, sizeof number, "%lld", (long long)pipe->server_id);
	len = snprintf(request->text, sizeof request->text,
		       "*4\r\n$6\r\nCLIENT\r\n$7\r\nUNBLOCK\r\n$%d\r\n%s\r\n$%zu\r\n%s\r\n", digits,
		       number, strlen(how), how);
	request->op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.command = hs_command_by_id(HS_CMD_ID_CLIENT),
		.resp = 2,
		.slot = HS_SLOT_NONE,
		.out = &request->out,
		.raw = {request->text, (size_t)len},
		.watcher = (uint64_t)pipe->server_id,
		.engine_data = pipe->node,
		.engine_state = HS_STATE_OURS,
		.engine_deadline_us = flow->now.mono_us + flow->options.timeout_us,
	};
	pipe->unblock_tries++;
	pipe->unblocking = true;
	if (!hs_flow_send(flow, pipe->node, &request->op, false))
		hs_flow_finish(flow, &request->op);
}

bool hs_flow_unblock(struct hs_flow *flow, struct hs_op *op, bool error)
{
	struct hs_pipe *pipe = op->engine_data;

	if (!pipe || !pipe->own || pipe->closing ||
	    (pipe->state == HS_PIPE_UP && pipe->server_id == 0))
		return false;
	pipe->unblocked = true;
	if (pipe->unblock == HS_UNBLOCK_NO)
		pipe->unblock = error ? HS_UNBLOCK_ERROR : HS_UNBLOCK_TIMEOUT;
	send(flow, pipe);
	return true;
}

void hs_unblock_up(struct hs_flow *flow, struct hs_pipe *pipe)
{
	send(flow, pipe);
}

void hs_unblock_answered(struct hs_flow *flow, const struct hs_op *op)
{
	struct hs_bytes reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	struct hs_pipe *pipe = NULL;

	for (struct hs_link *link = flow->owned.next; link != &flow->owned; link = link->next) {
		struct hs_pipe *own = hs_list_entry(link, struct hs_pipe, owns);

		if (own->unblocking && own->node == op->engine_data &&
		    (uint64_t)own->server_id == op->watcher)
			pipe = own;
	}
	if (!pipe)
		return; /* the wait is over */
	pipe->unblocking = false;
	if (hs_bytes_equal(reply, HS_LIT(":1\r\n")))
		pipe->unblock = HS_UNBLOCK_NO;
	else if (hs_bytes_equal(reply, HS_LIT(":0\r\n")) && pipe->unblock_tries < TRIES_AT_ONCE)
		send(flow, pipe);
}

void hs_unblock_tick(struct hs_flow *flow)
{
	for (struct hs_link *link = flow->owned.next; link != &flow->owned; link = link->next)
		send(flow, hs_list_entry(link, struct hs_pipe, owns));
}
