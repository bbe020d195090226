/* Internal requests of the engine: CLIENT TRACKING, PING, EXISTS, READONLY, INFO, CLIENT UNBLOCK. The flow sends
 * them as operations without a client. */
#include "base/mem.h"
#include "engine/redis/internal.h"
#include "wire/compose.h"

struct hs_flow_request *hs_flow_request(const struct hs_flow *flow, uint8_t resp,
					uint64_t timeout_us, const char *line)
{
	struct hs_flow_request *request = hs_mem_zalloc(sizeof *request);

	request->op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		/* stands in for every internal request: a command without a key */
		.command = hs_command_by_id(HS_CMD_ID_PING),
		.resp = resp,
		.slot = HS_SLOT_NONE,
		.out = &request->out,
		.received = flow->now,
		.engine_state = HS_STATE_INTERNAL,
		.engine_deadline_us = flow->now.mono_us + timeout_us,
	};
	if (line)
		hs_compose_line(&request->text, line);
	return request;
}

void hs_flow_send_internal(struct hs_flow *flow, struct hs_pipe *pipe,
			   struct hs_flow_request *request)
{
	request->op.raw = hs_buf_bytes(&request->text);
	pipe->kind->compose(pipe, &request->op, false);
	hs_flow_mark_dirty(flow, pipe);
}

void hs_flow_send_internal_to_node(struct hs_flow *flow, struct hs_node *node,
				   struct hs_flow_request *request)
{
	request->op.raw = hs_buf_bytes(&request->text);
	if (!hs_flow_send(flow, node, &request->op, false))
		hs_flow_finish(flow, &request->op);
}

void hs_flow_request_done(struct hs_flow *flow, struct hs_op *op)
{
	struct hs_flow_request *request = (struct hs_flow_request *)op;

	if (request->answered)
		request->answered(flow, op);
	hs_buf_deinit(&request->out);
	hs_buf_deinit(&request->text);
	hs_mem_free(&request);
}
