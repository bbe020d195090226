/* The table of commands that need no engine (core/commands.h), and the small ones: about the connection, the
 * table of commands, or the time. */
#include "local/local.h"

#include "base/num.h"
#include "push/push.h"
#include "wire/reply.h"

#include <math.h>
#include <stdlib.h>

#define UNUSED(core, session, call) ((void)(core), (void)(session), (void)(call))

void hs_local_reply_arity(const char *container, struct hs_bytes name, struct hs_reply *reply)
{
	hs_reply_errorf(reply,
			"ERR unknown subcommand or wrong number of arguments for '%.*s'. "
			"Try %s HELP.",
			(int)(name.len < 128 ? name.len : 128), name.data, container);
}

/* For a RESP2 client with subscriptions: the reply has the form of a message. */
static void reply_ping_as_message(struct hs_reply *reply, struct hs_bytes text)
{
	hs_reply_array(reply, 2);
	hs_reply_bulk_text(reply, "pong");
	hs_reply_bulk(reply, text);
}

void hs_local_ping(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
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

void hs_local_echo(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		   struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_reply_bulk(reply, call->argv[1]);
}

void hs_local_time(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		   struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_reply_array(reply, 2);
	hs_reply_bulk_int(reply, core->now.wall_us / 1000000);
	hs_reply_bulk_int(reply, core->now.wall_us % 1000000);
}

void hs_local_select(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
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

void hs_local_quit(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		   struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_reply_ok(reply);
	hs_session_close(core, session);
}

static void describe(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		     struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_command_describe(call->command, core->learned, reply, call->argc, call->argv);
}

void hs_local_help(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		   struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_command_help(hs_command_by_id(call->command->parent), reply);
}

/* DEBUG SLEEP. Holds only the connection that sends it. The reply comes when hs_core_alarm wakes the session. */
void hs_local_debug_sleep(struct hs_core *core, struct hs_session *session,
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

void hs_local_latency_latest(struct hs_core *core, struct hs_session *session,
			     const struct hs_call *call, struct hs_reply *reply)
{
	UNUSED(core, session, call);
	/* latency-monitor-threshold is 0, as is Redis's default: no event is ever recorded. */
	hs_reply_array(reply, 0);
}

void hs_local_latency_reset(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, struct hs_reply *reply)
{
	UNUSED(core, session, call);
	hs_reply_int(reply, 0);
}

void hs_local_function_flush(struct hs_core *core, struct hs_session *session,
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

static hs_local_run *const functions[HS_CMD_IDS] = {
#define LOCAL(function) function
#define DESCRIBE(function) describe
#define ROW(identifier, function, ...) [HS_CMD_ID_##identifier] = function,
#include "command/rows.def"
};

static const struct hs_workers_run *const workers[HS_CMD_IDS] = {
#define WORKERS(run) &run
#define ROW(identifier, function, ...) [HS_CMD_ID_##identifier] = function,
#include "command/rows.def"
};

static hs_start_run *const starts[HS_CMD_IDS] = {
#define START(function, besides) function
#define ROW(identifier, function, ...) [HS_CMD_ID_##identifier] = function,
#include "command/rows.def"
};

const struct hs_core_commands hs_commands = {
	.run = functions,
	.start = starts,
	.workers = workers,
	.waits = hs_publish_waits,
	.describe = hs_client_describe,
};
