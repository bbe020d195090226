/* CLUSTER …: a node's view of the Cluster as replies, and the commands that change it. */
#include "sim/server_internal.h"

#include "base/num.h"
#include "base/slot.h"

#include <inttypes.h>

/* ---- INFO ---- */

static void add_info(const struct hs_sim_server *server, struct hs_buf *out)
{
	const struct hs_sim_view *view = &server->view;
	uint32_t assigned = 0, failed = 0, silent = 0, size = 0;
	uint8_t master = view->nodes[server->number].master;

	for (uint8_t i = 0; i < server->cluster->count; i++) {
		uint32_t slots = hs_sim_slots_count(&view->slots, i);

		assigned += slots;
		size += slots > 0;
		if (view->nodes[i].failed)
			failed += slots;
		else if (view->nodes[i].silent)
			silent += slots;
	}
	hs_buf_printf(out,
		      "cluster_state:%s\r\ncluster_slots_assigned:%u\r\ncluster_slots_ok:%u\r\n"
		      "cluster_slots_pfail:%u\r\ncluster_slots_fail:%u\r\n"
		      "cluster_known_nodes:%u\r\ncluster_size:%u\r\n"
		      "cluster_current_epoch:%" PRIu64 "\r\ncluster_my_epoch:%" PRIu64 "\r\n"
		      "cluster_stats_messages_sent:0\r\ncluster_stats_messages_received:0\r\n"
		      "total_cluster_links_buffer_limit_exceeded:0\r\n",
		      view->ok ? "ok" : "fail", assigned, assigned - failed - silent, silent,
		      failed, server->cluster->count, size, view->epoch,
		      view->nodes[master == HS_SIM_NO_NODE ? server->number : master].config_epoch);
}

static void run_info(const struct hs_sim_server *server, struct hs_reply *reply)
{
	struct hs_buf text = {0};

	add_info(server, &text);
	hs_reply_verbatim(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

/* ---- SLOTS ---- */

static void add_node(const struct hs_sim_server *node, struct hs_reply *reply)
{
	hs_reply_array(reply, 4);
	hs_reply_bulk_text(reply, node->host);
	hs_reply_int(reply, node->port);
	hs_reply_bulk_text(reply, node->id);
	hs_reply_map(reply, 0);
}

static bool is_replica_of(const struct hs_sim_server *server, uint8_t node, uint8_t master)
{
	const struct hs_sim_peer_view *seen = &server->view.nodes[node];

	return seen->master == master && !seen->failed;
}

static void run_slots(const struct hs_sim_server *server, struct hs_reply *reply)
{
	const struct hs_sim_cluster *cluster = server->cluster;
	const struct hs_sim_slots *slots = &server->view.slots;
	size_t count = 0;
	uint32_t first = 0;

	for (uint16_t i = 0; i < slots->count; i++)
		count += slots->ranges[i].node != HS_SIM_NO_NODE;
	hs_reply_array(reply, count);
	for (uint16_t i = 0; i < slots->count; first = slots->ranges[i++].last + 1u) {
		uint8_t owner = slots->ranges[i].node;
		size_t nodes = 1;

		if (owner == HS_SIM_NO_NODE)
			continue;
		for (uint8_t j = 0; j < cluster->count; j++)
			nodes += is_replica_of(server, j, owner);
		hs_reply_array(reply, 2 + nodes);
		hs_reply_int(reply, first);
		hs_reply_int(reply, slots->ranges[i].last);
		add_node(&cluster->servers[owner], reply);
		for (uint8_t j = 0; j < cluster->count; j++) {
			if (is_replica_of(server, j, owner))
				add_node(&cluster->servers[j], reply);
		}
	}
}

/* ---- NODES ---- */

static void add_line(const struct hs_sim_server *server, uint8_t node, struct hs_buf *out)
{
	const struct hs_sim_cluster *cluster = server->cluster;
	const struct hs_sim_view *view = &server->view;
	const struct hs_sim_peer_view *seen = &view->nodes[node];
	const struct hs_sim_server *other = &cluster->servers[node];
	bool master = seen->master == HS_SIM_NO_NODE;
	uint32_t first = 0;

	hs_buf_printf(out, "%s %s:%u@%u %s%s%s%s %s 0 0 %" PRIu64 " %s", other->id, other->host,
		      other->port, other->port + 10000u, node == server->number ? "myself," : "",
		      master ? "master" : "slave", seen->failed ? ",fail" : "",
		      seen->silent && !seen->failed ? ",fail?" : "",
		      master ? "-" : cluster->servers[seen->master].id,
		      master ? seen->config_epoch : view->nodes[seen->master].config_epoch,
		      seen->silent ? "disconnected" : "connected");
	for (uint16_t i = 0; i < view->slots.count; first = view->slots.ranges[i++].last + 1u) {
		if (view->slots.ranges[i].node != node)
			continue;
		if (view->slots.ranges[i].last == first)
			hs_buf_printf(out, " %u", first);
		else
			hs_buf_printf(out, " %u-%u", first, view->slots.ranges[i].last);
	}
	for (uint16_t i = 0; node == server->number && i < view->moves_count; i++)
		hs_buf_printf(out, " [%u-%c-%s]", view->moves[i].slot,
			      view->moves[i].importing ? '<' : '>',
			      cluster->servers[view->moves[i].other].id);
	hs_buf_append(out, "\n", 1);
}

static void run_nodes(const struct hs_sim_server *server, struct hs_reply *reply)
{
	struct hs_buf text = {0};

	for (uint8_t i = 0; i < server->cluster->count; i++)
		add_line(server, i, &text);
	hs_reply_verbatim(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

/* ---- ADDSLOTS, DELSLOTS ---- */

/* For an operator who knows that all nodes agree: only gossip informs the others. */
static void run_slots_change(struct hs_sim_server *server, size_t argc, const struct hs_bytes *argv,
			     bool add, struct hs_reply *reply)
{
	int64_t slot;

	for (size_t i = 2; i < argc; i++) {
		uint8_t owner;

		if (!hs_num_parse_int(argv[i], &slot) || slot < 0 || slot >= HS_SLOTS) {
			hs_reply_error(reply, "ERR Invalid or out of range slot");
			return;
		}
		owner = hs_sim_slots_owner(&server->view.slots, (uint16_t)slot);
		if (add != (owner == HS_SIM_NO_NODE)) {
			hs_reply_errorf(reply, "ERR Slot %d is already %s", (int)slot,
					add ? "busy" : "unassigned");
			return;
		}
	}
	for (size_t i = 2; i < argc; i++) {
		hs_check(hs_num_parse_int(argv[i], &slot));
		hs_sim_view_give(server, (uint16_t)slot, (uint16_t)slot,
				 add ? server->number : HS_SIM_NO_NODE);
	}
	hs_sim_gossip(server);
	hs_reply_ok(reply);
}

/* ---- dispatch ---- */

static void run_failover(struct hs_sim_server *server, size_t argc, const struct hs_bytes *argv,
			 struct hs_reply *reply)
{
	bool force = argc == 3 &&
		     (hs_bytes_is_word(argv[2], "force") || hs_bytes_is_word(argv[2], "takeover"));
	const char *error = argc > 3 || (argc == 3 && !force) ? "ERR syntax error"
							      : hs_sim_failover_ask(server, force);

	if (error)
		hs_reply_error(reply, error);
	else
		hs_reply_ok(reply);
}

void hs_sim_cluster_commands_run(struct hs_sim_server_conn *conn, const struct hs_command *command,
				 size_t argc, const struct hs_bytes *argv, struct hs_reply *reply)
{
	struct hs_sim_server *server = conn->server;

	switch (command->id) {
	case HS_CMD_ID_CLUSTER_INFO:
		run_info(server, reply);
		return;
	case HS_CMD_ID_CLUSTER_SLOTS:
		run_slots(server, reply);
		return;
	case HS_CMD_ID_CLUSTER_NODES:
		run_nodes(server, reply);
		return;
	case HS_CMD_ID_CLUSTER_MYID:
		hs_reply_bulk_text(reply, server->id);
		return;
	case HS_CMD_ID_CLUSTER_KEYSLOT:
		hs_reply_int(reply, hs_slot_of(argv[2]));
		return;
	case HS_CMD_ID_CLUSTER_SETSLOT:
		hs_sim_setslot(server, argc, argv, reply);
		return;
	case HS_CMD_ID_CLUSTER_ADDSLOTS:
	case HS_CMD_ID_CLUSTER_DELSLOTS:
		run_slots_change(server, argc, argv, command->id == HS_CMD_ID_CLUSTER_ADDSLOTS,
				 reply);
		return;
	case HS_CMD_ID_CLUSTER_FAILOVER:
		run_failover(server, argc, argv, reply);
		return;
	default:
		hs_reply_errorf(reply, "ERR '%s' is not simulated", command->name);
	}
}
