/* The table of commands that need no engine (core/commands.h), and the small ones among them: what concerns the
 * connection, the table of commands or the time. */
#include "local/local.h"

#include "base/num.h"
#include "core/multi.h"
#include "push/tracking.h"
#include "wire/reply.h"

#include <math.h>
#include <stdlib.h>

#define UNUSED(core, session, call) ((void)(core), (void)(session), (void)(call))

/* To a client that waits for messages: it looks like one. */
static void reply_ping_as_message(struct hs_reply *reply, struct hs_bytes text)
{
	hs_reply_array(reply, 2);
	hs_reply_bulk_text(reply, "pong");
	hs_reply_bulk(reply, text);
}

static void run_ping(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		     struct hs_reply *reply)
{
	UNUSED(core, session, call);
	if (call->argc > 2)
		hs_reply_error(reply, "ERR wrong number of arguments for 'ping' command");
	else if (session->resp == 2 && session->subscribed)
		reply_ping_as_message(reply,
				      call->argc == 2 ? call->argv[1] : (struct hs_bytes){"", 0});
	else if (call->argc == 2)
		hs_reply_bulk(reply, call->argv[1]);
	else
		hs_reply_status(reply, "PONG");
}

static void run_echo(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		     struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_reply_bulk(reply, call->argv[1]);
}

static void run_time(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		     struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_reply_array(reply, 2);
	hs_reply_bulk_int(reply, core->now.wall_us / 1000000);
	hs_reply_bulk_int(reply, core->now.wall_us % 1000000);
}

static void run_select(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		       struct hs_reply *reply)
{
	int64_t index;

	UNUSED(core, session, call);
	if (!hs_num_parse_int(call->argv[1], &index))
		hs_reply_error(reply, "ERR value is not an integer or out of range");
	else if (index < INT32_MIN || index > INT32_MAX)
		hs_reply_error(reply, "ERR value is out of range, value must between -2147483648 "
				      "and 2147483647");
	else if (index != 0)
		hs_reply_error(reply, "ERR SELECT is not allowed in cluster mode");
	else
		hs_reply_ok(reply);
}

static void run_quit(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		     struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_reply_ok(reply);
	hs_session_close(core, session);
}

static void run_describe(struct hs_core *core, struct hs_session *session,
			 const struct hs_call *call, struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_command_describe(call->command, core->learned, reply, call->argc, call->argv);
}

static void run_help(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		     struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_command_help(hs_command_by_id(call->command->parent), reply);
}

/* Sleeps the connection that asks, nobody else. The reply comes when hs_core_alarm wakes it. */
static void run_debug_sleep(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, struct hs_reply *reply)
{
	char text[64];
	size_t len = call->argv[2].len < sizeof text - 1 ? call->argv[2].len : sizeof text - 1;
	double seconds;

	UNUSED(core, session, call);
	memcpy(text, call->argv[2].data, len);
	text[len] = '\0';
	seconds = strtod(text, NULL);
	if (!isfinite(seconds) || seconds <= 0) {
		hs_reply_ok(reply);
		return;
	}
	if (seconds > 86400)
		seconds = 86400;
	hs_core_sleep(core, session, call->command, core->now.mono_us + (uint64_t)(seconds * 1e6));
}

static void run_latency_latest(struct hs_core *core, struct hs_session *session,
			       const struct hs_call *call, struct hs_reply *reply)
{
	UNUSED(core, session, call);
	/* latency-monitor-threshold is 0, as in Redis by default: no event is ever recorded. */
	hs_reply_array(reply, 0);
}

static void run_latency_reset(struct hs_core *core, struct hs_session *session,
			      const struct hs_call *call, struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_reply_int(reply, 0);
}

static void run_function_flush(struct hs_core *core, struct hs_session *session,
			       const struct hs_call *call, struct hs_reply *reply)
{
	UNUSED(core, session, call);
	if (call->argc == 3 && !hs_bytes_is_word(call->argv[2], "async") &&
	    !hs_bytes_is_word(call->argv[2], "sync"))
		hs_reply_error(reply, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
	else if (call->argc > 3)
		hs_reply_error(reply,
			       "ERR unknown subcommand or wrong number of arguments for 'flush'. "
			       "Try FUNCTION HELP.");
	else
		hs_reply_ok(reply);
}

static hs_local_run *find(enum hs_command_id id)
{
	static hs_local_run *const table[HS_CMD_IDS] = {
		[HS_CMD_ID_ACL_CAT] = hs_local_acl_cat,
		[HS_CMD_ID_ACL_DRYRUN] = hs_local_acl_dryrun,
		[HS_CMD_ID_ACL_GETUSER] = hs_local_acl_getuser,
		[HS_CMD_ID_ACL_HELP] = run_help,
		[HS_CMD_ID_ACL_LIST] = hs_local_acl_users,
		[HS_CMD_ID_ACL_LOAD] = hs_local_acl_file,
		[HS_CMD_ID_ACL_SAVE] = hs_local_acl_file,
		[HS_CMD_ID_ACL_USERS] = hs_local_acl_users,
		[HS_CMD_ID_ACL_WHOAMI] = hs_local_acl_whoami,
		[HS_CMD_ID_ASKING] = hs_local_readonly,
		[HS_CMD_ID_AUTH] = hs_local_auth,
		[HS_CMD_ID_CLIENT_CACHING] = hs_local_client_caching,
		[HS_CMD_ID_CLIENT_GETNAME] = hs_local_client_getname,
		[HS_CMD_ID_CLIENT_GETREDIR] = hs_local_client_getredir,
		[HS_CMD_ID_CLIENT_HELP] = run_help,
		[HS_CMD_ID_CLIENT_ID] = hs_local_client_id,
		[HS_CMD_ID_CLIENT_INFO] = hs_local_client_info,
		[HS_CMD_ID_CLIENT_NO_EVICT] = hs_local_client_no_evict,
		[HS_CMD_ID_CLIENT_NO_TOUCH] = hs_local_client_no_touch,
		[HS_CMD_ID_CLIENT_REPLY] = hs_local_client_reply,
		[HS_CMD_ID_CLIENT_SETINFO] = hs_local_client_setinfo,
		[HS_CMD_ID_CLIENT_SETNAME] = hs_local_client_setname,
		[HS_CMD_ID_CLIENT_TRACKINGINFO] = hs_local_client_trackinginfo,
		[HS_CMD_ID_CLUSTER_ADDSLOTSRANGE] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_ADDSLOTS] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_BUMPEPOCH] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_COUNT_FAILURE_REPORTS] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_DELSLOTSRANGE] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_DELSLOTS] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_FAILOVER] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_FLUSHSLOTS] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_FORGET] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_HELP] = run_help,
		[HS_CMD_ID_CLUSTER_INFO] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_KEYSLOT] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_LINKS] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_MEET] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_MYID] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_MYSHARDID] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_NODES] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_REPLICAS] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_REPLICATE] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_RESET] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_SAVECONFIG] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_SETSLOT] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_SET_CONFIG_EPOCH] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_SHARDS] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_SLAVES] = hs_local_cluster,
		[HS_CMD_ID_CLUSTER_SLOTS] = hs_local_cluster,
		[HS_CMD_ID_COMMAND] = run_describe,
		[HS_CMD_ID_COMMAND_COUNT] = run_describe,
		[HS_CMD_ID_COMMAND_DOCS] = run_describe,
		[HS_CMD_ID_COMMAND_GETKEYS] = run_describe,
		[HS_CMD_ID_COMMAND_GETKEYSANDFLAGS] = run_describe,
		[HS_CMD_ID_COMMAND_HELP] = run_help,
		[HS_CMD_ID_COMMAND_INFO] = run_describe,
		[HS_CMD_ID_COMMAND_LIST] = run_describe,
		[HS_CMD_ID_CONFIG_HELP] = run_help,
		[HS_CMD_ID_DEBUG_HELP] = run_help,
		[HS_CMD_ID_DEBUG_SLEEP] = run_debug_sleep,
		[HS_CMD_ID_DISCARD] = hs_multi_run_discard,
		[HS_CMD_ID_ECHO] = run_echo,
		[HS_CMD_ID_FUNCTION_FLUSH] = run_function_flush,
		[HS_CMD_ID_HEAT_HELP] = run_help,
		[HS_CMD_ID_HELLO] = hs_local_hello,
		[HS_CMD_ID_HOTKEYS_HELP] = run_help,
		[HS_CMD_ID_LATENCY_HELP] = run_help,
		[HS_CMD_ID_LATENCY_LATEST] = run_latency_latest,
		[HS_CMD_ID_LATENCY_RESET] = run_latency_reset,
		[HS_CMD_ID_MULTI] = hs_multi_run_multi,
		[HS_CMD_ID_OBJECT_HELP] = run_help,
		[HS_CMD_ID_PING] = run_ping,
		[HS_CMD_ID_PUBSUB_HELP] = run_help,
		[HS_CMD_ID_QUIT] = run_quit,
		[HS_CMD_ID_READONLY] = hs_local_readonly,
		[HS_CMD_ID_READWRITE] = hs_local_readonly,
		[HS_CMD_ID_RESET] = hs_local_reset,
		[HS_CMD_ID_SELECT] = run_select,
		[HS_CMD_ID_SLOWLOG_HELP] = run_help,
		[HS_CMD_ID_TIME] = run_time,
		[HS_CMD_ID_UNWATCH] = hs_multi_run_unwatch,
	};

	hs_check(id < HS_CMD_IDS);
	return table[id];
}

static void start(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		  const struct hs_call *call, struct hs_bytes element)
{
	if (call->command->id == HS_CMD_ID_CLIENT_TRACKING)
		hs_tracking_run(core, session, call);
	else if (call->command->id == HS_CMD_ID_RESET)
		hs_pubsub_reset(core, session, call, hs_local_reset);
	else if (hs_command_subscribes(call->command) || hs_command_unsubscribes(call->command))
		hs_pubsub_run(core, session, exec, call);
	else
		hs_publish_run(core, session, exec, call, element);
}

const struct hs_core_commands hs_commands = {
	.find = find,
	.start = start,
	.waits = hs_publish_waits,
	.check = hs_workers_check,
	.part = hs_workers_part,
	.merge = hs_workers_merge,
	.describe = hs_client_describe,
};
