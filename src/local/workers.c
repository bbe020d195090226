/* Commands that concern every worker: CLIENT LIST, KILL, PAUSE, UNBLOCK, SLOWLOG, ACL LOG, HEAT PLAN. Whoever
 * got the command asks each worker's core, its own included, for its part, and puts the parts together. */
#include "local/local.h"

#include "base/mem.h"
#include "base/num.h"
#include "core/acl_log.h"
#include "core/slowlog.h"
#include "push/tracking.h"
#include "wire/answer.h"
#include "wire/reply.h"

#include <stdlib.h>

enum { LOG_COUNT_DEFAULT = 10 };

static bool check_slowlog_count(size_t argc, const struct hs_bytes *argv, struct hs_reply *reply)
{
	int64_t count;

	if (argc < 3)
		return true;
	if (hs_num_parse_int(argv[2], &count) && count >= -1 && count <= INT32_MAX)
		return true;
	hs_reply_error(reply, "ERR count should be greater than or equal to -1");
	return false;
}

/* ACL LOG [count | RESET] */
static bool check_acl_log(size_t argc, const struct hs_bytes *argv, struct hs_reply *reply)
{
	int64_t count;

	if (argc > 3) {
		hs_acl_reply_arity(argv, reply);
		return false;
	}
	if (argc < 3 || hs_bytes_is_word(argv[2], "reset") || hs_num_parse_int(argv[2], &count))
		return true;
	hs_reply_error(reply, "ERR value is not an integer or out of range");
	return false;
}

bool hs_workers_check(const struct hs_core *core, const struct hs_call *call,
		      struct hs_reply *reply)
{
	struct hs_client_filter filter;
	enum hs_pause_mode mode;
	uint64_t timeout_us;
	int64_t id;
	bool error;

	switch (call->command->id) {
	case HS_CMD_ID_ACL_LOG:
		return check_acl_log(call->argc, call->argv, reply);
	case HS_CMD_ID_CLIENT_LIST:
		return hs_client_parse_list(&filter, call->argc, call->argv, reply);
	case HS_CMD_ID_CLIENT_KILL:
		return hs_client_parse_kill(core, &filter, call->argc, call->argv, 0, reply);
	case HS_CMD_ID_CLIENT_PAUSE:
		return hs_client_parse_pause(call->argc, call->argv, &mode, &timeout_us, reply);
	case HS_CMD_ID_CLIENT_UNBLOCK:
		return hs_client_parse_unblock(call->argc, call->argv, &id, &error, reply);
	case HS_CMD_ID_SLOWLOG_GET:
		return check_slowlog_count(call->argc, call->argv, reply);
	default:
		return true;
	}
}

void hs_workers_part(struct hs_core *core, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	struct hs_client_filter filter;
	enum hs_pause_mode mode;
	uint64_t timeout_us;
	int64_t id;
	bool error;

	if (hs_command_is_pubsub(op->command)) {
		hs_publish_part(core, op);
		return;
	}
	switch (op->command->id) {
	case HS_CMD_ID_ACL_LOG:
		if (op->argc > 2 && hs_bytes_is_word(op->argv[2], "reset"))
			hs_acl_log_reset(core->acl_log);
		else
			hs_acl_log_export(core, op->resp, op->out);
		break;
	case HS_CMD_ID_CLIENT_LIST:
		hs_client_parse_list(&filter, op->argc, op->argv, NULL);
		hs_client_list(core, &filter, op->out);
		break;
	case HS_CMD_ID_CLIENT_KILL:
		hs_client_parse_kill(core, &filter, op->argc, op->argv, op->watcher, NULL);
		hs_reply_int(&reply, hs_client_kill(core, &filter, op->watcher));
		break;
	case HS_CMD_ID_CLIENT_PAUSE:
		hs_client_parse_pause(op->argc, op->argv, &mode, &timeout_us, NULL);
		hs_pause_begin(core, mode, op->received.mono_us + timeout_us);
		break;
	case HS_CMD_ID_CLIENT_UNPAUSE:
		hs_pause_end(core);
		break;
	case HS_CMD_ID_CLIENT_UNBLOCK:
		hs_client_parse_unblock(op->argc, op->argv, &id, &error, NULL);
		hs_reply_int(&reply, hs_client_unblock(core, id, error));
		break;
	case HS_CMD_ID_CLIENT_TRACKING:
		hs_reply_int(&reply, hs_tracking_peer(core, op));
		break;
	case HS_CMD_ID_HEAT_PLAN:
		hs_stages_report(core, &reply);
		break;
	case HS_CMD_ID_SLOWLOG_LEN:
		hs_reply_int(&reply, (int64_t)hs_slowlog_len(core->slowlog));
		break;
	case HS_CMD_ID_SLOWLOG_RESET:
		hs_slowlog_reset(core->slowlog);
		break;
	case HS_CMD_ID_SLOWLOG_GET:
		hs_slowlog_export(core->slowlog, op->resp, op->out);
		break;
	default:
		hs_check(op->command->place ==
			 HS_PLACE_PARTITION); /* never: not a peer's command */
	}
}

static int64_t sum(const struct hs_request *request)
{
	int64_t total = 0;

	for (uint32_t i = 0; i < request->parts_count; i++) {
		const struct hs_buf *out = &request->parts[i].out;
		struct hs_answer answer;

		if (hs_answer_head(&answer, out->data, out->len) > 0)
			total += answer.integer;
	}
	return total;
}

static void merge_list(const struct hs_request *request, struct hs_reply *reply)
{
	struct hs_buf text = {0};

	for (uint32_t i = 0; i < request->parts_count; i++)
		hs_buf_append_bytes(&text, hs_buf_bytes(&request->parts[i].out));
	hs_reply_verbatim(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

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

static void merge_acl_log(const struct hs_request *request, struct hs_reply *reply)
{
	int64_t count = count_wanted(request);

	if (request->call.argc > 2 && hs_bytes_is_word(request->call.argv[2], "reset"))
		hs_reply_ok(reply);
	else
		merge_log(request, count < 0 ? 0 : count, reply);
}

/* Every worker writes the rows of its stages one behind the other; together they are one array. */
static void merge_plan(const struct hs_request *request, struct hs_reply *reply)
{
	size_t rows = 0;

	for (uint32_t i = 0; i < request->parts_count; i++) {
		struct hs_bytes rest = hs_buf_bytes(&request->parts[i].out);
		int64_t used;

		while (rest.len > 0 && (used = hs_answer_length(rest.data, rest.len)) > 0) {
			rows++;
			rest = (struct hs_bytes){rest.data + used, rest.len - (size_t)used};
		}
	}
	hs_reply_array(reply, rows);
	for (uint32_t i = 0; i < request->parts_count; i++)
		hs_buf_append_bytes(reply->out, hs_buf_bytes(&request->parts[i].out));
}

void hs_workers_merge(const struct hs_core *core, struct hs_request *request,
		      struct hs_reply *reply)
{
	if (hs_command_is_pubsub(request->call.command)) {
		hs_publish_merge(core, request, reply);
		return;
	}
	switch (request->call.command->id) {
	case HS_CMD_ID_ACL_LOG:
		merge_acl_log(request, reply);
		break;
	case HS_CMD_ID_CLIENT_LIST:
		merge_list(request, reply);
		break;
	case HS_CMD_ID_CLIENT_KILL:
		if (request->call.argc > 3)
			hs_reply_int(reply, sum(request));
		else if (sum(request) > 0)
			hs_reply_ok(reply);
		else
			hs_reply_error(reply, "ERR No such client");
		break;
	case HS_CMD_ID_HEAT_PLAN:
		merge_plan(request, reply);
		break;
	case HS_CMD_ID_SLOWLOG_GET:
		merge_log(request, count_wanted(request), reply);
		break;
	case HS_CMD_ID_CLIENT_PAUSE:
	case HS_CMD_ID_CLIENT_UNPAUSE:
	case HS_CMD_ID_SLOWLOG_RESET:
		hs_reply_ok(reply);
		break;
	default:
		hs_reply_int(reply, sum(request));
	}
}
