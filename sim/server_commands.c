/* Commands on the connection and the server: HELLO, CLIENT, PING … */
#include "sim/server_internal.h"

#include "base/mem.h"
#include "base/num.h"

#define NOPASS                                                                                     \
	"ERR AUTH <password> called without any password configured for the default user. Are "    \
	"you sure your configuration is correct?"
#define WRONGPASS "WRONGPASS invalid username-password pair or user is disabled."
#define HELLO_NOAUTH                                                                               \
	"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "  \
	"<proto> AUTH <user> <pass> option can be used to authenticate the client and select the " \
	"RESP protocol version at the same time"
#define NO_CLUSTER "ERR This instance has cluster support disabled"

/* ---- login and name ---- */

static bool log_in(struct hs_sim_server_conn *conn, struct hs_bytes user, struct hs_bytes password)
{
	const char *wanted = conn->server->cluster->options.password;

	if (!hs_bytes_equal(user, HS_LIT("default")) ||
	    (wanted && !hs_bytes_equal(password, hs_bytes_of(wanted))))
		return false;
	conn->flags |= HS_SIM_CONN_LOGGED_IN;
	return true;
}

static void run_auth(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		     struct hs_reply *reply)
{
	struct hs_bytes user = argc == 3 ? argv[1] : HS_LIT("default");

	if (argc > 3)
		hs_reply_error(reply, "ERR syntax error");
	else if (argc == 2 && !conn->server->cluster->options.password)
		hs_reply_error(reply, NOPASS);
	else if (!log_in(conn, user, argv[argc - 1]))
		hs_reply_error(reply, WRONGPASS);
	else
		hs_reply_ok(reply);
}

/* False: an invalid name; the error is written. */
static bool set_name(struct hs_sim_server_conn *conn, struct hs_bytes name, struct hs_reply *reply)
{
	for (size_t i = 0; i < name.len; i++) {
		if (name.data[i] < '!' || name.data[i] > '~') {
			hs_reply_error(reply, "ERR Client names cannot contain spaces, newlines or "
					      "special characters.");
			return false;
		}
	}
	hs_mem_free(&conn->name);
	if (name.len > 0)
		conn->name = hs_mem_dup(name.data, name.len);
	return true;
}

static void describe(const struct hs_sim_server_conn *conn, struct hs_reply *reply)
{
	const struct hs_sim_server *server = conn->server;
	bool cluster = server->cluster->options.cluster;

	hs_reply_map(reply, 7);
	hs_reply_bulk_text(reply, "server");
	hs_reply_bulk_text(reply, "redis");
	hs_reply_bulk_text(reply, "version");
	hs_reply_bulk_text(reply, HS_SIM_REDIS_VERSION);
	hs_reply_bulk_text(reply, "proto");
	hs_reply_int(reply, conn->resp);
	hs_reply_bulk_text(reply, "id");
	hs_reply_int(reply, (int64_t)conn->id);
	hs_reply_bulk_text(reply, "mode");
	hs_reply_bulk_text(reply, cluster ? "cluster" : "standalone");
	hs_reply_bulk_text(reply, "role");
	hs_reply_bulk_text(reply, hs_sim_server_is_master(server) ? "master" : "replica");
	hs_reply_bulk_text(reply, "modules");
	hs_reply_array(reply, 0);
}

static void run_hello(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		      struct hs_reply *reply)
{
	int64_t version = conn->resp;
	const struct hs_bytes *name = NULL;

	if (argc > 1 && !hs_num_parse_int(argv[1], &version)) {
		hs_reply_error(reply, "ERR Protocol version is not an integer or out of range");
		return;
	}
	if (version < 2 || version > 3) {
		hs_reply_error(reply, "NOPROTO unsupported protocol version");
		return;
	}
	for (size_t at = 2; at < argc; at++) {
		size_t more = argc - 1 - at;

		if (hs_bytes_is_word(argv[at], "auth") && more >= 2) {
			if (!log_in(conn, argv[at + 1], argv[at + 2])) {
				hs_reply_error(reply, WRONGPASS);
				return;
			}
			at += 2;
		} else if (hs_bytes_is_word(argv[at], "setname") && more >= 1) {
			name = &argv[++at];
		} else {
			hs_reply_errorf(reply, "ERR Syntax error in HELLO option '%.*s'",
					(int)argv[at].len, argv[at].data);
			return;
		}
	}
	if (!(conn->flags & HS_SIM_CONN_LOGGED_IN)) {
		hs_reply_error(reply, HELLO_NOAUTH);
		return;
	}
	if (name && !set_name(conn, *name, reply))
		return;
	conn->resp = (int)version;
	reply->resp = conn->resp;
	describe(conn, reply);
}

static void run_reset(struct hs_sim_server_conn *conn, struct hs_reply *reply)
{
	hs_sim_discard(conn);
	hs_sim_tracking_stop(conn);
	hs_sim_pubsub_forget(conn);
	hs_mem_free(&conn->name);
	conn->resp = 2;
	conn->flags = conn->server->cluster->options.password ? 0 : HS_SIM_CONN_LOGGED_IN;
	hs_reply_status(reply, "RESET");
}

static void run_quit(struct hs_sim_server_conn *conn, struct hs_reply *reply)
{
	hs_reply_ok(reply);
	conn->flags |= HS_SIM_CONN_CLOSING;
}

/* ---- CLIENT ---- */

static void run_client_reply(struct hs_sim_server_conn *conn, struct hs_bytes word,
			     struct hs_reply *reply)
{
	if (hs_bytes_is_word(word, "on")) {
		conn->flags &= ~(unsigned)(HS_SIM_CONN_NO_REPLY | HS_SIM_CONN_SKIP |
					   HS_SIM_CONN_SKIP_NEXT);
		hs_reply_ok(reply);
	} else if (hs_bytes_is_word(word, "off")) {
		conn->flags |= HS_SIM_CONN_NO_REPLY;
	} else if (hs_bytes_is_word(word, "skip")) {
		if (!(conn->flags & HS_SIM_CONN_NO_REPLY))
			conn->flags |= HS_SIM_CONN_SKIP_NEXT;
	} else {
		hs_reply_error(reply, "ERR syntax error");
	}
}

static void run_client_unblock(struct hs_sim_server_conn *conn, size_t argc,
			       const struct hs_bytes *argv, struct hs_reply *reply)
{
	struct hs_sim_server_conn *other;
	bool error = argc == 4 && hs_bytes_is_word(argv[3], "error");
	int64_t id;

	if (argc == 4 && !error && !hs_bytes_is_word(argv[3], "timeout")) {
		hs_reply_error(reply, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
		return;
	}
	if (!hs_num_parse_int(argv[2], &id)) {
		hs_reply_error(reply, "ERR value is not an integer or out of range");
		return;
	}
	other = hs_sim_server_conn_by_id(conn->server, (uint64_t)id);
	if (!other || !(other->flags & HS_SIM_CONN_BLOCKED)) {
		hs_reply_int(reply, 0);
		return;
	}
	hs_sim_unblock(other, error ? "UNBLOCKED client unblocked via CLIENT UNBLOCK" : NULL);
	hs_reply_int(reply, 1);
}

/* CLIENT KILL ID id, the only form that is supported. */
static void run_client_kill(struct hs_sim_server_conn *conn, size_t argc,
			    const struct hs_bytes *argv, struct hs_reply *reply)
{
	struct hs_sim_server_conn *other;
	int64_t id;

	if (argc != 4 || !hs_bytes_is_word(argv[2], "id") || !hs_num_parse_int(argv[3], &id)) {
		hs_reply_error(reply, "ERR syntax error");
		return;
	}
	other = hs_sim_server_conn_by_id(conn->server, (uint64_t)id);
	hs_reply_int(reply, other && other != conn);
	if (other && other != conn)
		hs_sim_conn_close(other);
}

static void run_client(struct hs_sim_server_conn *conn, const struct hs_command *command,
		       size_t argc, const struct hs_bytes *argv, struct hs_reply *reply)
{
	switch (command->id) {
	case HS_CMD_ID_CLIENT_ID:
		hs_reply_int(reply, (int64_t)conn->id);
		return;
	case HS_CMD_ID_CLIENT_GETNAME:
		if (conn->name)
			hs_reply_bulk_text(reply, conn->name);
		else
			hs_reply_null(reply);
		return;
	case HS_CMD_ID_CLIENT_SETNAME:
		if (set_name(conn, argv[2], reply))
			hs_reply_ok(reply);
		return;
	case HS_CMD_ID_CLIENT_TRACKING:
		hs_sim_tracking_command(conn, argc, argv, reply);
		return;
	case HS_CMD_ID_CLIENT_CACHING:
		hs_sim_tracking_caching(conn, argv[2], reply);
		return;
	case HS_CMD_ID_CLIENT_TRACKINGINFO:
		hs_sim_tracking_info(conn, reply);
		return;
	case HS_CMD_ID_CLIENT_GETREDIR:
		hs_reply_int(reply,
			     conn->flags & HS_SIM_CONN_TRACKING ? (int64_t)conn->redirect : -1);
		return;
	case HS_CMD_ID_CLIENT_NO_EVICT:
	case HS_CMD_ID_CLIENT_NO_TOUCH:
		hs_reply_ok(reply);
		return;
	case HS_CMD_ID_CLIENT_REPLY:
		run_client_reply(conn, argv[2], reply);
		return;
	case HS_CMD_ID_CLIENT_UNBLOCK:
		run_client_unblock(conn, argc, argv, reply);
		return;
	case HS_CMD_ID_CLIENT_KILL:
		run_client_kill(conn, argc, argv, reply);
		return;
	default:
		hs_reply_errorf(reply, "ERR '%s' is not simulated", command->name);
	}
}

/* ---- other commands ---- */

static void run_ping(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		     struct hs_reply *reply)
{
	if (conn->resp == 2 && hs_sim_conn_listens(conn)) {
		hs_reply_array(reply, 2);
		hs_reply_bulk_text(reply, "pong");
		hs_reply_bulk(reply, argc == 2 ? argv[1] : HS_LIT(""));
	} else if (argc == 2) {
		hs_reply_bulk(reply, argv[1]);
	} else if (argc > 2) {
		hs_reply_error(reply, "ERR wrong number of arguments for 'ping' command");
	} else {
		hs_reply_status(reply, "PONG");
	}
}

static void run_select(const struct hs_sim_server *server, struct hs_bytes word,
		       struct hs_reply *reply)
{
	int64_t db;

	/* Without a Cluster there are 16 databases; all of them show the keys of 0. */
	if (!hs_num_parse_int(word, &db))
		hs_reply_error(reply, "ERR value is not an integer or out of range");
	else if (db != 0 && server->cluster->options.cluster)
		hs_reply_error(reply, "ERR SELECT is not allowed in cluster mode");
	else if (db < 0 || db >= 16)
		hs_reply_error(reply, "ERR DB index is out of range");
	else
		hs_reply_ok(reply);
}

/* READONLY, READWRITE, ASKING. */
static void set_flag(struct hs_sim_server_conn *conn, unsigned flag, bool on,
		     struct hs_reply *reply)
{
	if (!conn->server->cluster->options.cluster) {
		hs_reply_error(reply, NO_CLUSTER);
		return;
	}
	conn->flags = on ? conn->flags | flag : conn->flags & ~flag;
	hs_reply_ok(reply);
}

static void run_command(const struct hs_sim_server *server, struct hs_reply *reply)
{
	struct hs_bytes text = server->cluster->options.command_reply;

	if (text.len > 0)
		hs_buf_append_bytes(reply->out, text);
	else
		hs_reply_array(reply, 0);
}

static void run_time(const struct hs_sim_server *server, struct hs_reply *reply)
{
	int64_t us = server->cluster->host.now->wall_us;

	hs_reply_array(reply, 2);
	hs_reply_bulk_int(reply, us / 1000000);
	hs_reply_bulk_int(reply, us % 1000000);
}

void hs_sim_commands_run(struct hs_sim_server_conn *conn, const struct hs_command *command,
			 size_t argc, const struct hs_bytes *argv, struct hs_reply *reply)
{
	struct hs_sim_server *server = conn->server;

	if (command->parent == HS_CMD_ID_CLIENT) {
		run_client(conn, command, argc, argv, reply);
		return;
	}
	if (command->parent == HS_CMD_ID_CLUSTER) {
		hs_sim_cluster_commands_run(conn, command, argc, argv, reply);
		return;
	}
	switch (command->id) {
	case HS_CMD_ID_PING:
		run_ping(conn, argc, argv, reply);
		return;
	case HS_CMD_ID_ECHO:
		hs_reply_bulk(reply, argv[1]);
		return;
	case HS_CMD_ID_HELLO:
		run_hello(conn, argc, argv, reply);
		return;
	case HS_CMD_ID_AUTH:
		run_auth(conn, argc, argv, reply);
		return;
	case HS_CMD_ID_RESET:
		run_reset(conn, reply);
		return;
	case HS_CMD_ID_QUIT:
		run_quit(conn, reply);
		return;
	case HS_CMD_ID_SELECT:
		run_select(server, argv[1], reply);
		return;
	case HS_CMD_ID_READONLY:
		set_flag(conn, HS_SIM_CONN_READONLY, true, reply);
		return;
	case HS_CMD_ID_READWRITE:
		set_flag(conn, HS_SIM_CONN_READONLY, false, reply);
		return;
	case HS_CMD_ID_ASKING:
		set_flag(conn, HS_SIM_CONN_ASKING, true, reply);
		return;
	case HS_CMD_ID_MULTI:
		hs_sim_multi(conn, reply);
		return;
	case HS_CMD_ID_DISCARD:
		if (conn->flags & HS_SIM_CONN_MULTI)
			hs_reply_ok(reply);
		else
			hs_reply_error(reply, "ERR DISCARD without MULTI");
		if (conn->flags & HS_SIM_CONN_MULTI)
			hs_sim_discard(conn);
		return;
	case HS_CMD_ID_WATCH:
		hs_sim_watch(conn, argc, argv, reply);
		return;
	case HS_CMD_ID_UNWATCH:
		if (!server->cluster->options.keeps_watches)
			hs_sim_unwatch(conn);
		hs_reply_ok(reply);
		return;
	case HS_CMD_ID_COMMAND:
		run_command(server, reply);
		return;
	case HS_CMD_ID_COMMAND_COUNT:
		hs_reply_int(reply, server->cluster->options.command_count);
		return;
	case HS_CMD_ID_INFO:
		hs_sim_info(server, argc, argv, reply);
		return;
	case HS_CMD_ID_CONFIG_GET:
		hs_reply_map(reply, 0);
		return;
	case HS_CMD_ID_CONFIG_SET:
		hs_reply_errorf(reply,
				"ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
				(int)argv[2].len, argv[2].data);
		return;
	case HS_CMD_ID_TIME:
		run_time(server, reply);
		return;
	default:
		hs_reply_errorf(reply, "ERR '%s' is not simulated", command->name);
	}
}
