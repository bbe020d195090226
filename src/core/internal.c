#include "core/internal.h"

#include "base/mem.h"
#include "core/dispatch.h"
#include "core/state.h"

#include <string.h>

/* Ids of connections count up from 1; these count down, each worker in steps of its own. */
uint64_t hs_internal_client(struct hs_core *core)
{
	return UINT64_MAX - (core->internal_clients++ * core->world.workers + core->world.worker);
}

static void fill_op(struct hs_core *core, const struct hs_request *request, struct hs_op *op,
		    enum hs_op_kind kind, uint16_t slot, uint64_t client)
{
	*op = (struct hs_op){
		.kind = kind,
		.command = request->call.command,
		.argv = request->call.argv,
		.argc = request->call.argc,
		.raw = request->call.raw,
		.slot = slot,
		.client = client > 0 ? client : hs_internal_client(core),
	};
}

struct hs_request *hs_internal_prepare_parts(struct hs_core *core,
					     const struct hs_internal *internal, uint32_t parts)
{
	struct hs_request *request = hs_request_get(core, core->self, internal->call.command);

	hs_check(!internal->borrowed || internal->timeout_us == 0);
	if (internal->borrowed)
		request->call = internal->call;
	else
		hs_request_copy_call(request, &internal->call);
	request->on_done = internal->on_done;
	request->context = internal->context;
	request->sender_stage = (uint8_t)internal->stage;
	request->resp = internal->resp > 0 ? internal->resp : 3;
	request->timeout_us = internal->timeout_us;
	hs_list_init(&request->due);
	hs_request_split(request, parts);
	for (uint32_t i = 0; i < parts; i++) {
		fill_op(core, request, &request->parts[i].op, internal->kind, internal->slot,
			internal->client);
		request->parts[i].stage = (uint8_t)internal->stage;
	}
	return request;
}

struct hs_request *hs_internal_prepare(struct hs_core *core, const struct hs_internal *internal)
{
	return hs_internal_prepare_parts(core, internal, 1);
}

void hs_internal_prepare_again(struct hs_core *core, struct hs_request *request)
{
	enum hs_op_kind kind = request->parts[0].op.kind;
	uint16_t slot = request->parts[0].op.slot;

	hs_check(request->parts_count == 1 && request->parts_left == 0);
	hs_list_remove(&request->due);
	request->timed_out = false;
	hs_request_drop_parts(request);
	hs_request_split(request, 1);
	fill_op(core, request, &request->parts[0].op, kind, slot, 0);
	request->parts[0].stage = request->sender_stage;
}

void hs_internal_part(struct hs_request *request, uint32_t index, struct hs_bytes key,
		      uint16_t slot)
{
	struct hs_part *part = &request->parts[index];
	size_t argc = request->call.argc;

	char *copy; /* the key's bytes, behind the array of arguments */

	part->argv = hs_mem_alloc(argc * sizeof *part->argv + key.len);
	memcpy(part->argv, request->call.argv, argc * sizeof *part->argv);
	copy = (char *)(part->argv + argc);
	memcpy(copy, key.data, key.len);
	part->argv[1] = (struct hs_bytes){copy, key.len};
	part->op.argv = part->argv;
	part->op.raw = (struct hs_bytes){NULL, 0};
	part->op.slot = slot;
}

/* Inserts in order of deadline. Timeouts are alike, so the place is nearly always the end. */
static void start_timer(struct hs_core *core, struct hs_request *request)
{
	struct hs_link *after = core->internal_due.prev;

	request->due_us = core->now.mono_us + request->timeout_us;
	while (after != &core->internal_due &&
	       hs_list_entry(after, struct hs_request, due)->due_us > request->due_us)
		after = after->prev;
	hs_list_append(after->next, &request->due); /* before the next one */
}

void hs_internal_send(struct hs_core *core, struct hs_request *request)
{
	uint32_t count = request->parts_count;

	hs_check(core->stages.sends_forbidden == 0);
	for (uint32_t i = 0; i < count; i++) {
		struct hs_op *op = &request->parts[i].op;

		hs_check(!op->tx || request->timeout_us == 0);
		if (op->slot != HS_SLOT_NONE)
			op->partition = hs_core_partition(core, op->slot);
	}
	if (request->timeout_us > 0)
		start_timer(core, request);
	/* The last reply may end the request: read parts_count first. */
	for (uint32_t i = 0; i < count; i++)
		hs_dispatch_submit(core, request, i);
}

struct hs_bytes hs_internal_reply(const struct hs_request *request, uint32_t index)
{
	return hs_buf_bytes(&request->parts[index].out);
}

/* All parts of a call that had timed out are answered. */
static void drop(struct hs_core *core, struct hs_request *request)
{
	hs_request_put(core, request);
}

void hs_internal_end(struct hs_core *core, struct hs_request *request)
{
	if (request->timeout_us > 0)
		hs_list_remove(&request->due);
	if (hs_internal_timed_out(request))
		request->on_done = drop;
	else
		hs_request_put(core, request);
}

void hs_internal_tick(struct hs_core *core)
{
	while (!hs_list_empty(&core->internal_due)) {
		struct hs_request *request =
			hs_list_entry(core->internal_due.next, struct hs_request, due);

		if (request->due_us > core->now.mono_us)
			break;
		hs_list_remove(&request->due);
		request->timed_out = true;
		request->on_done(core, request);
	}
}
