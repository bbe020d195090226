/* The checks of one command, in Redis's order: is it known, allowed before AUTH, allowed in a transaction, served by
 * this node; may this node write, is it loading, are writes paused? Then it is queued or run. */
#include "sim/server_internal.h"

#include "base/buf.h"

#include <stdio.h>

enum { SHOWN_BYTES = 128 };

/* Whether Redis 7.0 has the command: some rows are heatsink's own, or newer. */
static bool is_of_redis(const struct hs_command *command)
{
	return command->since[0] != '0' && strcmp(command->since, "7.1") < 0;
}

const struct hs_command *hs_sim_command_find(size_t argc, const struct hs_bytes *argv)
{
	const struct hs_command *command = hs_command_find(argv[0]);

	if (command && command->place == HS_PLACE_PARENT && argc > 1) {
		const struct hs_command *sub = hs_command_sub(command, argv[1]);

		if (sub && is_of_redis(sub))
			return sub;
	}
	if (command)
		return is_of_redis(command) ? command : NULL;
	for (command = hs_sim_extras; command->name; command++) {
		if (hs_bytes_is_word(argv[0], command->name))
			return command;
	}
	return NULL;
}

void hs_sim_note_refused(const struct hs_sim_server_conn *conn, const char *text)
{
	const struct hs_sim_cluster_host *host = &conn->server->cluster->host;

	if (host->refused && !(conn->flags & HS_SIM_CONN_HIDDEN))
		host->refused(host->context, &(struct hs_sim_ran){
						     .node = conn->server->number,
						     .conn = conn,
						     .io = conn->io,
						     .argc = conn->request.argc,
						     .argv = conn->request.argv,
						     .reply = hs_bytes_of(text),
						     .error = true,
					     });
}

void hs_sim_reject(struct hs_sim_server_conn *conn, const char *text)
{
	struct hs_reply reply = hs_sim_conn_reply(conn);

	hs_sim_note_refused(conn, text);
	if (conn->flags & HS_SIM_CONN_MULTI)
		conn->flags |= HS_SIM_CONN_DIRTY_EXEC;
	if (conn->command && conn->command->id == HS_CMD_ID_EXEC) {
		hs_sim_discard(conn);
		hs_reply_errorf(&reply, "EXECABORT Transaction discarded because of: %s", text);
		return;
	}
	hs_reply_error(&reply, text);
}

static int shown(struct hs_bytes word)
{
	return (int)(word.len < SHOWN_BYTES ? word.len : SHOWN_BYTES);
}

static void reject_unknown(struct hs_sim_server_conn *conn, size_t argc,
			   const struct hs_bytes *argv)
{
	struct hs_buf text = {0};
	size_t start;

	hs_buf_printf(&text,
		      "ERR unknown command '%.*s', with args beginning with: ", shown(argv[0]),
		      argv[0].data);
	start = text.len;
	for (size_t i = 1; i < argc && text.len - start < SHOWN_BYTES; i++) {
		size_t room = SHOWN_BYTES - (text.len - start);

		hs_buf_printf(&text, "'%.*s' ", (int)(argv[i].len < room ? argv[i].len : room),
			      argv[i].data);
	}
	hs_buf_append(&text, "", 1);
	hs_sim_reject(conn, text.data);
	hs_buf_deinit(&text);
}

static void reject_subcommand(struct hs_sim_server_conn *conn, const struct hs_command *parent,
			      struct hs_bytes name)
{
	char text[2 * SHOWN_BYTES + 64];
	char upper[32] = "";

	for (size_t i = 0; parent->name[i] && i + 1 < sizeof upper; i++)
		upper[i] = (char)(parent->name[i] - ('a' - 'A'));
	snprintf(text, sizeof text, "ERR unknown subcommand '%.*s'. Try %s HELP.", shown(name),
		 name.data, upper);
	hs_sim_reject(conn, text);
}

static void reject_arity(struct hs_sim_server_conn *conn, const struct hs_command *command)
{
	char text[SHOWN_BYTES];

	snprintf(text, sizeof text, "ERR wrong number of arguments for '%s' command",
		 command->name);
	hs_sim_reject(conn, text);
}

/* Finds the command's row; false: the error is written. */
static bool look_up(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv)
{
	const struct hs_command *command = hs_sim_command_find(argc, argv);

	conn->command = command;
	if (!command || (hs_sim_extras_has(command) && command->name[1] == '.' &&
			 !conn->server->cluster->options.extras)) {
		conn->command = NULL;
		reject_unknown(conn, argc, argv);
		return false;
	}
	if (command->place == HS_PLACE_PARENT && argc > 1) {
		reject_subcommand(conn, command, argv[1]);
		return false;
	}
	if (!hs_command_arity_fits(command, argc)) {
		reject_arity(conn, command);
		return false;
	}
	return true;
}

/* Whether the command has the flag; for EXEC: whether a queued command has it. */
static bool has_flag(const struct hs_sim_server_conn *conn, const struct hs_command *command,
		     unsigned flag)
{
	if (command->id == HS_CMD_ID_EXEC)
		return conn->queue.any_flags & flag;
	return command->flags & flag;
}

/* Whether the command has the flag; for EXEC: whether all queued commands have it. */
static bool has_flag_always(const struct hs_sim_server_conn *conn, const struct hs_command *command,
			    unsigned flag)
{
	if (command->id == HS_CMD_ID_EXEC)
		return conn->queue.all_flags & command->flags & flag;
	return command->flags & flag;
}

static bool is_for_subscribers(enum hs_command_id id)
{
	switch (id) {
	case HS_CMD_ID_SUBSCRIBE:
	case HS_CMD_ID_PSUBSCRIBE:
	case HS_CMD_ID_SSUBSCRIBE:
	case HS_CMD_ID_UNSUBSCRIBE:
	case HS_CMD_ID_PUNSUBSCRIBE:
	case HS_CMD_ID_SUNSUBSCRIBE:
	case HS_CMD_ID_PING:
	case HS_CMD_ID_QUIT:
	case HS_CMD_ID_RESET:
		return true;
	default:
		return false;
	}
}

static bool is_allowed(struct hs_sim_server_conn *conn, const struct hs_command *command,
		       size_t argc, const struct hs_bytes *argv)
{
	struct hs_sim_server *server = conn->server;
	char text[256];

	if (!(conn->flags & HS_SIM_CONN_LOGGED_IN) && !(command->flags & HS_CMD_NO_AUTH)) {
		hs_sim_reject(conn, "NOAUTH Authentication required.");
		return false;
	}
	if (conn->flags & HS_SIM_CONN_MULTI && command->flags & HS_CMD_NO_MULTI) {
		hs_sim_reject(conn, "ERR Command not allowed inside a transaction");
		return false;
	}
	if (!hs_sim_route(conn, command, argc, argv))
		return false;
	if (server->tracking_conns > 0)
		hs_sim_tracking_limit(server);
	if (!hs_sim_server_is_master(server) && has_flag(conn, command, HS_CMD_WRITE)) {
		hs_sim_reject(conn, "READONLY You can't write against a read only replica.");
		return false;
	}
	if (conn->resp == 2 && hs_sim_conn_listens(conn) && !is_for_subscribers(command->id)) {
		snprintf(text, sizeof text,
			 "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / "
			 "QUIT / RESET are allowed in this context",
			 command->name);
		hs_sim_reject(conn, text);
		return false;
	}
	if (server->refuses_stale && !hs_sim_server_is_master(server) && !server->link_up &&
	    !has_flag_always(conn, command, HS_CMD_STALE)) {
		hs_sim_reject(conn, "MASTERDOWN Link with MASTER is down and "
				    "replica-serve-stale-data is set to 'no'.");
		return false;
	}
	if (server->loading_until_us > 0 && !has_flag_always(conn, command, HS_CMD_LOADING)) {
		hs_sim_reject(conn, "LOADING Redis is loading the dataset in memory");
		return false;
	}
	return true;
}

static bool is_queued(const struct hs_sim_server_conn *conn, const struct hs_command *command)
{
	switch (command->id) {
	case HS_CMD_ID_EXEC:
	case HS_CMD_ID_DISCARD:
	case HS_CMD_ID_MULTI:
	case HS_CMD_ID_WATCH:
	case HS_CMD_ID_QUIT:
	case HS_CMD_ID_RESET:
		return false;
	default:
		return conn->flags & HS_SIM_CONN_MULTI;
	}
}

/* Called at the end of every command: clears flags that were for this command only. */
static void reset(struct hs_sim_server_conn *conn)
{
	const struct hs_command *command = conn->command;
	bool client =
		command && (command->id == HS_CMD_ID_CLIENT || command->parent == HS_CMD_ID_CLIENT);

	if (!(conn->flags & HS_SIM_CONN_MULTI) && !(command && command->id == HS_CMD_ID_ASKING) &&
	    !conn->server->cluster->options.keeps_asking)
		conn->flags &= ~(unsigned)HS_SIM_CONN_ASKING;
	if (!(conn->flags & HS_SIM_CONN_MULTI) && !client)
		conn->flags &= ~(unsigned)HS_SIM_CONN_CACHING;
	conn->flags &= ~(unsigned)HS_SIM_CONN_SKIP;
	if (conn->flags & HS_SIM_CONN_SKIP_NEXT) {
		conn->flags |= HS_SIM_CONN_SKIP;
		conn->flags &= ~(unsigned)HS_SIM_CONN_SKIP_NEXT;
	}
}

static void note_ran(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		     size_t start)
{
	const struct hs_sim_cluster_host *host = &conn->server->cluster->host;
	bool hidden = conn->flags & HS_SIM_CONN_HIDDEN;
	struct hs_bytes reply = {0};

	if (conn->out.len > start)
		reply = (struct hs_bytes){conn->out.data + start, conn->out.len - start};
	host->ran(host->context, &(struct hs_sim_ran){
					 .node = conn->server->number,
					 .conn = hidden ? NULL : conn,
					 .io = conn->io,
					 .argc = argc,
					 .argv = argv,
					 .reply = reply,
					 .error = reply.len > 0 && reply.data[0] == '-',
					 .in_exec = conn->server->in_exec,
				 });
}

/* Whether keyspace/ runs it. */
static bool is_of_data(const struct hs_command *command)
{
	switch (command->place) {
	case HS_PLACE_PARTITION:
	case HS_PLACE_SPLIT:
	case HS_PLACE_ALL:
	case HS_PLACE_CURSOR:
	case HS_PLACE_SLOT:
		return command->id != HS_CMD_ID_WATCH && !(command->flags & HS_CMD_PUBSUB) &&
		       command->id != HS_CMD_ID_FUNCTION_FLUSH;
	default:
		return command->id == HS_CMD_ID_OBJECT_HELP;
	}
}

static void call(struct hs_sim_server_conn *conn, const struct hs_command *command, size_t argc,
		 const struct hs_bytes *argv)
{
	struct hs_reply reply = hs_sim_conn_reply(conn);

	if (hs_sim_extras_has(command))
		hs_sim_extras_run(conn, command, argc, argv, &reply);
	else if (command->parent == HS_CMD_ID_CLUSTER && !conn->server->cluster->options.cluster)
		hs_reply_error(&reply, "ERR This instance has cluster support disabled");
	else if (is_of_data(command))
		hs_sim_data_run(conn, command, argc, argv, &reply);
	else if (command->id == HS_CMD_ID_EXEC)
		hs_sim_exec(conn);
	else if (!hs_sim_pubsub_run(conn, command, argc, argv))
		hs_sim_commands_run(conn, command, argc, argv, &reply);
}

/* Drops the reply if CLIENT REPLY says so. Pushes stand after the reply and stay. */
static void take_back(struct hs_sim_server_conn *conn, size_t start)
{
	if (conn->flags & (HS_SIM_CONN_NO_REPLY | HS_SIM_CONN_SKIP) && conn->out.len > start)
		conn->out.len = start;
}

void hs_sim_call(struct hs_sim_server_conn *conn, const struct hs_command *command, size_t argc,
		 const struct hs_bytes *argv)
{
	struct hs_sim_server *server = conn->server;
	size_t start = conn->out.len;

	server->commands++;
	server->executing = true;
	call(conn, command, argc, argv);
	if (server->cluster->host.ran && command->id != HS_CMD_ID_EXEC)
		note_ran(conn, argc, argv, start);
	if (command->flags & HS_CMD_READONLY && conn->flags & HS_SIM_CONN_TRACKING)
		hs_sim_tracking_remember(conn, command, argc, argv);
	if (!server->in_exec) {
		server->executing = false;
		take_back(conn, start);
		hs_sim_stream_end_group(server);
		hs_sim_tracking_flush_pending(server);
		if (server->lists_grew) {
			hs_sim_lists_serve(server);
			hs_sim_stream_end_group(server);
		}
	}
}

bool hs_sim_run_command(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv)
{
	size_t start = conn->out.len;
	const struct hs_command *command;

	hs_sim_conn_wrote(conn);
	if (!look_up(conn, argc, argv) || !is_allowed(conn, conn->command, argc, argv)) {
		take_back(conn, start);
		reset(conn);
		return true;
	}
	command = conn->command;
	if (conn->server->paused && has_flag(conn, command, HS_CMD_WRITE | HS_CMD_MAY_REPLICATE))
		return false;
	if (is_queued(conn, command))
		hs_sim_queue_add(conn, command, argc, argv);
	else
		hs_sim_call(conn, command, argc, argv);
	reset(conn);
	return true;
}
