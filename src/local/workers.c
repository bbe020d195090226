/* Commands that every worker runs a part of: SLOWLOG, ACL LOG, HEAT PLAN. The worker that got the command sends
 * a part to each worker's core, its own included, and merges the parts. */
#include "local/local.h"

#include "base/mem.h"
#include "base/num.h"
#include "core/acl_log.h"
#include "core/slowlog.h"
#include "wire/reply.h"
#include "wire/walk.h"

enum { LOG_COUNT_DEFAULT = 10 };

int64_t hs_workers_sum(const struct hs_request *request)
{
	int64_t total = 0;

	for (uint32_t i = 0; i < request->parts_count; i++) {
		const struct hs_buf *out = &request->parts[i].out;
		struct hs_parsed_reply answer;

		if (hs_parse_reply_head(&answer, out->data, out->len) > 0)
			total += answer.integer;
	}
	return total;
}

void hs_workers_merge_sum(const struct hs_core *core, struct hs_request *request,
			  struct hs_reply *reply)
{
	(void)core;
	hs_reply_int(reply, hs_workers_sum(request));
}

void hs_workers_merge_ok(const struct hs_core *core, struct hs_request *request,
			 struct hs_reply *reply)
{
	(void)core, (void)request;
	hs_reply_ok(reply);
}

/* ---- SLOWLOG ---- */

static void merge_log(const struct hs_request *request, int64_t count, struct hs_reply *reply)
{
	struct hs_bytes *exports = hs_mem_alloc(request->parts_count * sizeof *exports);

	for (uint32_t i = 0; i < request->parts_count; i++)
		exports[i] = hs_buf_bytes(&request->parts[i].out);
	hs_slowlog_merge(exports, request->parts_count, count < 0 ? SIZE_MAX : (size_t)count,
			 reply);
	hs_mem_release(exports);
}

static int64_t count_wanted(const struct hs_request *request)
{
	int64_t count = LOG_COUNT_DEFAULT;

	if (request->call.argc > 2)
		hs_num_parse_int(request->call.argv[2], &count);
	return count;
}

static bool check_slowlog_get(const struct hs_core *core, const struct hs_call *call,
			      struct hs_reply *reply)
{
	int64_t count;

	(void)core;
	if (call->argc < 3 ||
	    (hs_num_parse_int(call->argv[2], &count) && count >= -1 && count <= INT32_MAX))
		return true;
	hs_reply_error(reply, "ERR count should be greater than or equal to -1");
	return false;
}

static void slowlog_get_part(struct hs_core *core, struct hs_op *op)
{
	hs_slowlog_export(core->slowlog, op->resp, op->out);
}

static void merge_slowlog_get(const struct hs_core *core, struct hs_request *request,
			      struct hs_reply *reply)
{
	(void)core;
	merge_log(request, count_wanted(request), reply);
}

static void slowlog_len_part(struct hs_core *core, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	hs_reply_int(&reply, (int64_t)hs_slowlog_len(core->slowlog));
}

static void slowlog_reset_part(struct hs_core *core, struct hs_op *op)
{
	(void)op;
	hs_slowlog_reset(core->slowlog);
}

const struct hs_workers_run hs_workers_slowlog_get = {check_slowlog_get, slowlog_get_part,
						      merge_slowlog_get};
const struct hs_workers_run hs_workers_slowlog_len = {.part = slowlog_len_part,
						      .merge = hs_workers_merge_sum};
const struct hs_workers_run hs_workers_slowlog_reset = {.part = slowlog_reset_part,
							.merge = hs_workers_merge_ok};

/* ---- ACL LOG [count | RESET] ---- */

static bool resets_acl_log(size_t argc, const struct hs_bytes *argv)
{
	return argc > 2 && hs_bytes_is_word(argv[2], "reset");
}

static bool check_acl_log(const struct hs_core *core, const struct hs_call *call,
			  struct hs_reply *reply)
{
	int64_t count;

	(void)core;
	if (call->argc > 3)
		hs_local_reply_arity("ACL", call->argv[1], reply);
	else if (call->argc < 3 || resets_acl_log(call->argc, call->argv) ||
		 hs_num_parse_int(call->argv[2], &count))
		return true;
	else
		hs_reply_error(reply, "ERR value is not an integer or out of range");
	return false;
}

static void acl_log_part(struct hs_core *core, struct hs_op *op)
{
	if (resets_acl_log(op->argc, op->argv))
		hs_acl_log_reset(core->acl_log);
	else
		hs_acl_log_export(core, op->resp, op->out);
}

static void merge_acl_log(const struct hs_core *core, struct hs_request *request,
			  struct hs_reply *reply)
{
	int64_t count = count_wanted(request);

	(void)core;
	if (resets_acl_log(request->call.argc, request->call.argv))
		hs_reply_ok(reply);
	else
		merge_log(request, count < 0 ? 0 : count, reply);
}

const struct hs_workers_run hs_workers_acl_log = {check_acl_log, acl_log_part, merge_acl_log};

/* ---- HEAT PLAN ---- */

static void plan_part(struct hs_core *core, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	hs_stages_report(core, &reply);
}

/* Each part is a sequence of rows; the reply is one array of them all. */
static void merge_plan(const struct hs_core *core, struct hs_request *request,
		       struct hs_reply *reply)
{
	size_t rows = 0;

	(void)core;
	for (uint32_t i = 0; i < request->parts_count; i++) {
		const struct hs_buf *out = &request->parts[i].out;
		struct hs_walk walk = {out->data, out->len};

		while (walk.len > 0 && hs_walk_skip(&walk) == 0)
			rows++;
	}
	hs_reply_array(reply, rows);
	for (uint32_t i = 0; i < request->parts_count; i++)
		hs_buf_append_bytes(reply->out, hs_buf_bytes(&request->parts[i].out));
}

const struct hs_workers_run hs_workers_heat_plan = {.part = plan_part, .merge = merge_plan};
