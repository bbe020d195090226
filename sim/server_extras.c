/* Commands that heatsink's table does not have: DUMP, RESTORE, MIGRATE, commands that block, and three module
 * commands that no real server has. X.SWAP key value is GETSET. X.BOTH key value sets the key and, as a script
 * might, key0 without naming it. X.PAIR key value key value is an MSET of two keys.
 *
 * RPUSH and BLPOP are in sim/server_lists.c. */
#include "sim/server_internal.h"

#include "base/num.h"
#include "base/slot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum extra {
	X_SWAP = HS_CMD_IDS,
	X_BOTH,
	X_PAIR,
	DUMP,
	RESTORE,
	RESTORE_ASKING,
	MIGRATE,
	WAIT,
	BLPOP,
	RPUSH,
};

#define DUMP_HEAD "simulated:"
#define BLOCKED_US_MAX UINT64_C(1000000000000)

#define ROW(word, number, args, bits, first, last)                                                 \
	{                                                                                          \
		.name = (word), .id = (enum hs_command_id)(number), .place = HS_PLACE_CORE,        \
		.arity = (args), .flags = (bits), .key_first = (first), .key_last = (last),        \
		.key_step = 1,                                                                     \
	}

const struct hs_command hs_sim_extras[] = {
	ROW("x.swap", X_SWAP, 3, HS_CMD_WRITE, 1, 1),
	ROW("x.both", X_BOTH, 3, HS_CMD_WRITE, 1, 1),
	{
		.name = "x.pair",
		.id = (enum hs_command_id)X_PAIR,
		.place = HS_PLACE_CORE,
		.arity = 5,
		.flags = HS_CMD_WRITE,
		.key_first = 1,
		.key_last = 3,
		.key_step = 2,
	},
	ROW("dump", DUMP, 2, HS_CMD_READONLY, 1, 1),
	ROW("restore", RESTORE, -4, HS_CMD_WRITE | HS_CMD_DENYOOM, 1, 1),
	ROW("restore-asking", RESTORE_ASKING, -4, HS_CMD_WRITE | HS_CMD_DENYOOM, 1, 1),
	ROW("migrate", MIGRATE, -6, HS_CMD_WRITE, 0, 0),
	ROW("wait", WAIT, 3, HS_CMD_BLOCKING, 0, 0),
	ROW("blpop", BLPOP, -3, HS_CMD_WRITE | HS_CMD_BLOCKING, 1, -2),
	ROW("rpush", RPUSH, -3, HS_CMD_WRITE | HS_CMD_DENYOOM, 1, 1),
	{.name = NULL},
};

bool hs_sim_extras_has(const struct hs_command *command)
{
	return command->id >= HS_CMD_IDS;
}

/* ---- X commands ---- */

static void run_as(struct hs_sim_server_conn *conn, enum hs_command_id id, size_t argc,
		   const struct hs_bytes *argv, struct hs_reply *reply)
{
	hs_sim_data_run(conn, hs_command_by_id(id), argc, argv, reply);
}

static void run_both(struct hs_sim_server_conn *conn, const struct hs_bytes *argv,
		     struct hs_reply *reply)
{
	const struct hs_bytes unnamed_key[] = {HS_LIT("SET"), HS_LIT("key0"), argv[2]};
	const struct hs_bytes named[] = {HS_LIT("SET"), argv[1], argv[2]};
	const struct hs_command *set = hs_command_by_id(HS_CMD_ID_SET);
	struct hs_buf out = {0};
	struct hs_reply nobody = {.out = &out, .resp = 2};

	/* As a script that names no keys: it may use keys that this node has. (A script on a node that imports
	 * the slot may even write a key that is still at the source, and that write is lost when the key
	 * arrives.) */
	if (!hs_sim_route_serves(conn, set, 3, unnamed_key)) {
		hs_reply_error(reply, "ERR Script attempted to access a non local key in a cluster "
				      "node");
		return;
	}
	run_as(conn, HS_CMD_ID_SET, 3, named, reply);
	run_as(conn, HS_CMD_ID_SET, 3, unnamed_key, &nobody);
	hs_buf_deinit(&out);
}

/* ---- DUMP, RESTORE, MIGRATE ---- */

static void run_dump(struct hs_sim_server_conn *conn, const struct hs_bytes *argv,
		     struct hs_reply *reply)
{
	struct hs_sim_server *server = conn->server;
	struct hs_buf value = {0};
	struct hs_bytes head;

	hs_sim_data_expire(server, hs_slot_of(argv[1]), argv[1]);
	if (!hs_sim_keys_value(server, argv[1], &value)) {
		hs_reply_null(reply);
		return;
	}
	head = HS_LIT(DUMP_HEAD);
	hs_buf_printf(reply->out, "$%zu\r\n" DUMP_HEAD, head.len + value.len);
	hs_buf_append(reply->out, value.data, value.len);
	hs_buf_append(reply->out, "\r\n", 2);
	hs_buf_deinit(&value);
}

static void run_restore(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
			struct hs_reply *reply)
{
	static const struct hs_bytes head = HS_LIT(DUMP_HEAD);
	const struct hs_bytes exists[] = {HS_LIT("EXISTS"), argv[1]};
	struct hs_bytes set[5] = {HS_LIT("SET"), argv[1]};
	bool replace = false, absolute = false;
	struct hs_buf out = {0};
	struct hs_reply nobody = {.out = &out, .resp = 2};
	int64_t ttl_ms;

	for (size_t i = 4; i < argc; i++) {
		replace = replace || hs_bytes_is_word(argv[i], "replace");
		absolute = absolute || hs_bytes_is_word(argv[i], "absttl");
	}
	run_as(conn, HS_CMD_ID_EXISTS, 2, exists, &nobody);
	if (out.data[1] == '1' && !replace) {
		hs_reply_error(reply, "BUSYKEY Target key name already exists.");
	} else if (!hs_num_parse_int(argv[2], &ttl_ms)) {
		hs_reply_error(reply, "ERR value is not an integer or out of range");
	} else if (ttl_ms < 0) {
		hs_reply_error(reply, "ERR Invalid TTL value, must be >= 0");
	} else if (argv[3].len < head.len || memcmp(argv[3].data, head.data, head.len) != 0) {
		hs_reply_error(reply, "ERR DUMP payload version or checksum are wrong");
	} else {
		set[2] = (struct hs_bytes){argv[3].data + head.len, argv[3].len - head.len};
		set[3] = absolute ? HS_LIT("PXAT") : HS_LIT("PX");
		set[4] = argv[2];
		run_as(conn, HS_CMD_ID_SET, ttl_ms > 0 ? 5 : 3, set, reply);
	}
	hs_buf_deinit(&out);
}

static struct hs_sim_server *find_target(struct hs_sim_server *server, struct hs_bytes host,
					 struct hs_bytes port)
{
	struct hs_sim_cluster *cluster = server->cluster;
	uint64_t number;

	for (uint8_t i = 0; hs_num_parse_uint(port, &number) && i < cluster->count; i++) {
		struct hs_sim_server *other = &cluster->servers[i];

		if (other->port == number && hs_bytes_equal(host, hs_bytes_of(other->host)))
			return other;
	}
	return NULL;
}

/* MIGRATE host port key|"" 0 timeout [COPY] [REPLACE] [KEYS key …] */
static void run_migrate(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
			struct hs_reply *reply)
{
	struct hs_sim_server *server = conn->server, *to = find_target(server, argv[1], argv[2]);
	const struct hs_bytes *keys = &argv[3];
	bool copy = false, replace = false;
	const char *error = NULL;
	size_t count = 1, moved = 0;

	for (size_t i = 6; i < argc; i++) {
		copy = copy || hs_bytes_is_word(argv[i], "copy");
		replace = replace || hs_bytes_is_word(argv[i], "replace");
		if (!hs_bytes_is_word(argv[i], "keys"))
			continue;
		keys = &argv[i + 1];
		count = argc - i - 1;
		break;
	}
	if (!to || !hs_sim_servers_talk(server, to)) {
		hs_reply_error(reply, "IOERR error or timeout connecting to the client");
		return;
	}
	for (size_t i = 0; i < count && !error; i++) {
		uint16_t slot = hs_slot_of(keys[i]);
		struct hs_bytes record;

		if (hs_sim_data_expire(server, slot, keys[i]) ||
		    !hs_sim_keys_get(server, slot, keys[i], &record))
			continue;
		error = hs_sim_migrate_key(server, to, keys[i], copy, replace);
		moved += !error;
	}
	if (error)
		hs_reply_errorf(reply, "ERR Target instance replied with error: %s", error);
	else
		hs_reply_status(reply, moved > 0 ? "OK" : "NOKEY");
}

/* ---- blocked connections ---- */

void hs_sim_unblock(struct hs_sim_server_conn *conn, const char *error)
{
	struct hs_reply reply = hs_sim_conn_reply(conn);

	conn->flags &= ~(unsigned)HS_SIM_CONN_BLOCKED;
	if (error)
		hs_reply_error(&reply, error);
	else if (conn->wait == HS_SIM_WAIT_LIST)
		hs_reply_null_array(&reply);
	else
		hs_reply_int(&reply, hs_sim_stream_count(conn->server, conn->wait_offset));
	hs_sim_conn_wrote(conn);
	hs_sim_conn_ready(conn);
}

static void run_timeout(void *context, void *target, uint64_t number)
{
	struct hs_sim_server *server = target;

	(void)context;
	for (struct hs_link *link = server->clients.next; link != &server->clients;
	     link = link->next) {
		struct hs_sim_server_conn *conn =
			hs_list_entry(link, struct hs_sim_server_conn, link);

		if (conn->flags & HS_SIM_CONN_BLOCKED && conn->wait_number == number) {
			hs_sim_unblock(conn, NULL);
			return;
		}
	}
}

static void block(struct hs_sim_server_conn *conn, enum hs_sim_wait wait, uint64_t timeout_us)
{
	struct hs_sim_server *server = conn->server;

	conn->flags |= HS_SIM_CONN_BLOCKED;
	conn->wait = wait;
	conn->wait_number = ++server->waits;
	if (timeout_us == 0 || timeout_us > BLOCKED_US_MAX)
		return;
	hs_sim_events_plan(server->cluster->host.events,
			   (struct hs_sim_event){
				   .at_us = hs_sim_now_us(server->cluster) + timeout_us,
				   .run = run_timeout,
				   .context = server->cluster,
				   .target = server,
				   .number = conn->wait_number,
			   });
}

static void run_wait(struct hs_sim_server_conn *conn, const struct hs_bytes *argv,
		     struct hs_reply *reply)
{
	struct hs_sim_server *server = conn->server;
	int64_t replicas, timeout_ms, count;

	if (!hs_num_parse_int(argv[1], &replicas)) {
		hs_reply_error(reply, "ERR value is not an integer or out of range");
		return;
	}
	if (!hs_num_parse_int(argv[2], &timeout_ms)) {
		hs_reply_error(reply, "ERR timeout is not an integer or out of range");
		return;
	}
	if (timeout_ms < 0) {
		hs_reply_error(reply, "ERR timeout is negative");
		return;
	}
	if (!hs_sim_server_is_master(server)) {
		hs_reply_error(reply, "ERR WAIT cannot be used with replica instances. Please also "
				      "note that since Redis 4.0 if a replica is configured to be "
				      "writable (which is not the default) writes to replicas are "
				      "just local and are not propagated.");
		return;
	}
	conn->wait_offset = hs_sim_stream_offset(server);
	conn->wait_replicas = replicas > 0 ? (uint64_t)replicas : 0;
	count = hs_sim_stream_count(server, conn->wait_offset);
	if (count >= replicas || server->in_exec)
		hs_reply_int(reply, count);
	else
		block(conn, HS_SIM_WAIT_REPLICAS, (uint64_t)timeout_ms * 1000);
}

static void run_blpop(struct hs_sim_server_conn *conn, size_t argc, const struct hs_bytes *argv,
		      struct hs_reply *reply)
{
	char text[HS_NUM_TEXT_MAX] = "", *end;
	struct hs_bytes number = argv[argc - 1];
	double timeout_s;

	if (number.len < sizeof text)
		memcpy(text, number.data, number.len);
	timeout_s = strtod(text, &end);
	if (text[0] == '\0' || *end || !isfinite(timeout_s)) {
		hs_reply_error(reply, "ERR timeout is not a float or out of range");
		return;
	}
	if (timeout_s < 0) {
		hs_reply_error(reply, "ERR timeout is negative");
		return;
	}
	if (hs_sim_lists_pop(conn, argc - 2, argv + 1, reply))
		return;
	if (conn->server->in_exec || conn->flags & HS_SIM_CONN_HIDDEN) {
		hs_reply_null_array(reply);
		return;
	}
	conn->wait_offset = hs_slot_of(argv[1]);
	hs_sim_lists_wait(conn, argc - 2, argv + 1);
	block(conn, HS_SIM_WAIT_LIST, (uint64_t)(timeout_s * 1e6));
}

/* Calls `what` for every blocked connection; `what` may unblock it. */
static void each_blocked(struct hs_sim_server *server,
			 void (*what)(struct hs_sim_server_conn *conn, const void *context),
			 const void *context)
{
	for (struct hs_link *link = server->clients.next; link != &server->clients;
	     link = link->next) {
		struct hs_sim_server_conn *conn =
			hs_list_entry(link, struct hs_sim_server_conn, link);

		if (conn->flags & HS_SIM_CONN_BLOCKED)
			what(conn, context);
	}
}

static void end_satisfied(struct hs_sim_server_conn *conn, const void *context)
{
	(void)context;
	if (conn->wait == HS_SIM_WAIT_REPLICAS &&
	    (uint64_t)hs_sim_stream_count(conn->server, conn->wait_offset) >= conn->wait_replicas)
		hs_sim_unblock(conn, NULL);
}

void hs_sim_unblock_waits(struct hs_sim_server *server)
{
	each_blocked(server, end_satisfied, NULL);
}

static void end_moved(struct hs_sim_server_conn *conn, const void *context)
{
	struct hs_sim_server *server = conn->server;
	uint16_t slot = (uint16_t)conn->wait_offset;
	uint8_t owner;
	char text[64];

	(void)context;
	if (conn->wait != HS_SIM_WAIT_LIST)
		return;
	if (!server->view.ok) {
		hs_sim_unblock(conn, "CLUSTERDOWN The cluster is down");
		return;
	}
	owner = hs_sim_slots_owner(&server->view.slots, slot);
	if (owner == server->number || owner == HS_SIM_NO_NODE)
		return;
	snprintf(text, sizeof text, "MOVED %u %s:%u", slot, server->cluster->servers[owner].host,
		 server->cluster->servers[owner].port);
	hs_sim_unblock(conn, text);
}

void hs_sim_unblock_moved(struct hs_sim_server *server)
{
	each_blocked(server, end_moved, NULL);
}

/* Ends the wait with an error and closes the connection, as Redis does. */
static void end_with(struct hs_sim_server_conn *conn, const void *context)
{
	hs_sim_unblock(conn, context);
	conn->flags |= HS_SIM_CONN_CLOSING;
}

void hs_sim_unblock_all(struct hs_sim_server *server, const char *error)
{
	each_blocked(server, end_with, error);
}

/* ---- dispatch ---- */

void hs_sim_extras_run(struct hs_sim_server_conn *conn, const struct hs_command *command,
		       size_t argc, const struct hs_bytes *argv, struct hs_reply *reply)
{
	switch ((enum extra)command->id) {
	case X_SWAP:
		run_as(conn, HS_CMD_ID_GETSET, argc, argv, reply);
		return;
	case X_BOTH:
		run_both(conn, argv, reply);
		return;
	case X_PAIR:
		run_as(conn, HS_CMD_ID_MSET, argc, argv, reply);
		return;
	case DUMP:
		run_dump(conn, argv, reply);
		return;
	case RESTORE:
	case RESTORE_ASKING:
		run_restore(conn, argc, argv, reply);
		return;
	case MIGRATE:
		run_migrate(conn, argc, argv, reply);
		return;
	case WAIT:
		run_wait(conn, argv, reply);
		return;
	case BLPOP:
		run_blpop(conn, argc, argv, reply);
		return;
	case RPUSH:
		hs_sim_lists_push(conn, argc, argv, reply);
		return;
	}
}
