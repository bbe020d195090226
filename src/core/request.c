/* Requests: taken from a pool, answered in any order, delivered in their order (law 1: replies to a connection
 * come in the order of its requests). */
#include "core/request.h"

#include "base/mem.h"
#include "core/count.h"
#include "core/deferred.h"
#include "core/dispatch.h"
#include "core/multi.h"
#include "core/state.h"

enum { POOL_MAX = 4096, POOL_BUF_KEEP = 1024 };

struct hs_request *hs_request_get(struct hs_core *core, struct hs_session *session,
				  const struct hs_command *command)
{
	struct hs_request *request;

	if (hs_list_empty(&core->request_pool)) {
		request = hs_mem_zalloc(core->stages.request_bytes);
		hs_list_init(&request->link);
	} else {
		request = hs_list_entry(core->request_pool.next, struct hs_request, link);
		hs_list_remove(&request->link);
		core->request_pool_len--;
	}
	request->session = session;
	request->call = (struct hs_call){.command = command, .argv = request->argv_inline};
	request->argv = request->argv_inline;
	request->exec = NULL;
	request->parts = NULL;
	request->parts_count = 0;
	request->parts_left = 0;
	request->start_us = session->running ? core->timing_start_us : core->now.mono_us;
	request->done = false;
	request->blocks = false;
	request->is_push = false;
	request->redirect_to = 0;
	request->on_done = NULL;
	request->timeout_us = 0;
	request->sender_stage = 0;
	request->timed_out = false;
	request->reply_bytes = session->next_reply_bytes;
	if (session->next_reply_bytes > 0) {
		request->reply_partition = session->next_reply_partition;
		session->reply_bytes += session->next_reply_bytes;
		core->reply_budget.bytes[session->next_reply_partition] +=
			session->next_reply_bytes;
		session->next_reply_bytes = 0;
	}
	request->delayed = false;
	request->client = 0;
	request->resp = 0;
	request->number = ++session->requests_made;
	request->muted =
		session->reply_mode == HS_REPLY_OFF || session->reply_mode == HS_REPLY_SKIP;
	hs_list_append(&session->requests, &request->link);
	session->inflight++;
	hs_counter_add(&core->stats.inflight, 1);
	return request;
}

void hs_request_copy_call(struct hs_request *request, const struct hs_call *call)
{
	size_t argc = call->argc, bytes = 0;
	struct hs_bytes raw = call->raw;

	request->call = *call;
	if (argc > sizeof request->argv_inline / sizeof *request->argv_inline)
		request->argv = hs_mem_alloc(argc * sizeof *request->argv);
	request->call.argv = request->argv;
	/* In one piece, as the client sent it, because an engine may pass it on unchanged. */
	if (raw.len > 0) {
		const char *start = hs_buf_reserve(&request->args, raw.len);

		hs_buf_append_bytes(&request->args, raw);
		request->call.raw.data = start;
		for (size_t i = 0; i < argc; i++)
			request->argv[i] = (struct hs_bytes){
				start + (call->argv[i].data - raw.data), call->argv[i].len};
		return;
	}
	for (size_t i = 0; i < argc; i++)
		bytes += call->argv[i].len;
	/* Reserve everything at once: the pointers below must not move. */
	hs_buf_reserve(&request->args, bytes + 1);
	for (size_t i = 0; i < argc; i++) {
		request->argv[i] = (struct hs_bytes){request->args.data + request->args.len,
						     call->argv[i].len};
		hs_buf_append_bytes(&request->args, call->argv[i]);
	}
}

struct hs_request *hs_request_make(struct hs_core *core, struct hs_session *session,
				   const struct hs_call *call)
{
	struct hs_request *request = hs_request_get(core, session, call->command);

	hs_request_copy_call(request, call);
	return request;
}

struct hs_request *hs_request_single(struct hs_core *core, struct hs_session *session,
				     const struct hs_call *call, uint16_t slot)
{
	struct hs_request *request = hs_request_make(core, session, call);

	hs_request_split(request, 1);
	request->parts[0].op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.command = call->command,
		.slot = slot,
		.partition = hs_core_partition(core, slot == HS_SLOT_NONE ? 0 : slot),
		.argv = request->call.argv,
		.argc = call->argc,
		.raw = request->call.raw,
	};
	return request;
}

void hs_request_split(struct hs_request *request, uint32_t parts)
{
	request->parts =
		parts == 1 ? &request->single : hs_mem_zalloc(parts * sizeof *request->parts);
	request->parts_count = parts;
	request->parts_left = parts;
	request->single.stage = 0;
	request->single.taken = HS_PART_FREE;
	request->single.marked = 0;
}

void hs_request_drop_parts(struct hs_request *request)
{
	for (uint32_t i = 0; i < request->parts_count; i++) {
		hs_mem_free(&request->parts[i].argv);
		if (request->parts != &request->single)
			hs_buf_deinit(&request->parts[i].out);
		else
			hs_buf_clear(&request->single.out, POOL_BUF_KEEP);
	}
	if (request->parts != &request->single)
		hs_mem_free(&request->parts);
	request->parts = NULL;
	request->parts_count = 0;
}

static void release(struct hs_request *request)
{
	hs_buf_deinit(&request->args);
	hs_buf_deinit(&request->reply);
	hs_buf_deinit(&request->single.out);
	hs_mem_release(request);
}

void hs_request_put(struct hs_core *core, struct hs_request *request)
{
	struct hs_session *session = request->session;

	hs_list_remove(&request->link);
	session->inflight--;
	if (request->reply_bytes > 0)
		hs_reply_budget_release(core, request);
	hs_counter_sub(&core->stats.inflight, 1);
	if (request->blocks)
		hs_counter_sub(&core->stats.blocked, 1);
	hs_request_drop_parts(request);
	hs_mem_free(&request->key_part);
	hs_multi_drop(&request->multi);
	if (request->argv != request->argv_inline)
		hs_mem_free(&request->argv);
	hs_buf_clear(&request->args, POOL_BUF_KEEP);
	if (request->deferred)
		hs_deferred_drop(&request->deferred);
	hs_buf_clear(&request->reply, POOL_BUF_KEEP);
	hs_buf_deinit(&request->cursor);
	if (core->request_pool_len >= POOL_MAX) {
		release(request);
		return;
	}
	hs_list_append(&core->request_pool, &request->link);
	core->request_pool_len++;
}

static void deliver(struct hs_core *core, struct hs_request *request)
{
	struct hs_session *session = request->session;

	session->held_bytes -= request->reply.len;
	if (request->redirect_to > 0) {
		hs_session_mark_sendable(core, session); /* its own replies are sent first */
		core->forward(core, session->id, request->redirect_to, request->redirect_worker,
			      hs_buf_bytes(&request->reply));
	} else if (!request->muted && !session->gone && !session->cut) {
		/* A long reply changes owner instead of being copied. */
		if (session->out.len == 0 && request->reply.len > POOL_BUF_KEEP)
			hs_buf_swap(&session->out, &request->reply);
		else
			hs_buf_append_bytes(&session->out, hs_buf_bytes(&request->reply));
	}
	hs_request_put(core, request);
}

/* Delivers every reply whose turn has come. */
static void deliver_done(struct hs_core *core, struct hs_session *session)
{
	while (!hs_list_empty(&session->requests)) {
		struct hs_request *head =
			hs_list_entry(session->requests.next, struct hs_request, link);

		if (!head->done)
			break;
		deliver(core, head);
	}
	hs_session_mark_sendable(core, session);
}

void hs_request_finish(struct hs_core *core, struct hs_request *request)
{
	struct hs_session *session = request->session;

	if (request->exec) {
		hs_deferred_finished(core, request);
		return;
	}
	/* Internal calls have no order and end by hs_internal_end. If one waited for its turn behind another,
	 * it could wait for ever, and so would a server that stops. */
	hs_check(session != core->self);
	request->done = true;
	if (session->gone || session->cut)
		hs_buf_clear(&request->reply, POOL_BUF_KEEP); /* the client cannot read it */
	session->held_bytes += request->reply.len;
	if (session->observers)
		hs_stages_finish(core, request);
	deliver_done(core, session);
}

void hs_request_answer(struct hs_core *core, struct hs_request *request, struct hs_bytes reply)
{
	struct hs_session *session = request->session;

	if (!request->muted && !session->gone && !session->cut)
		hs_buf_append_bytes(&session->out, reply);
	if (session->observers)
		hs_stages_finish(core, request);
	hs_request_put(core, request);
	deliver_done(core, session);
}

void hs_request_share(struct hs_core *core, struct hs_request *request, struct hs_bytes reply)
{
	struct hs_session *session = request->session;
	uint64_t time_us = core->now.mono_us - request->start_us;

	request->parts[0].time_us = time_us;
	if (core->options.engine_inflight_bytes_max > 0)
		hs_reply_budget_learn(core, session, &request->call, reply.len);
	hs_count_request(core, request, reply);
	hs_dispatch_account(core, session, &request->call, time_us,
			    reply.len > 0 && reply.data[0] == '-');
	/* A single reply may exceed the limit; one with more behind it may not, and one behind it is not even
	 * written. */
	if (!session->gone)
		hs_core_check_output(core, session);
	if (session->requests.next == &request->link) {
		hs_request_answer(core, request, reply);
	} else {
		if (!session->gone && !session->cut)
			hs_buf_append_bytes(&request->reply, reply);
		hs_request_finish(core, request);
	}
	if (session->inflight > 0 && !session->gone)
		hs_core_check_output(core, session);
}

void hs_request_pool_deinit(struct hs_core *core)
{
	hs_list_each_safe(struct hs_request, request, &core->request_pool, link)
		release(request);
}
