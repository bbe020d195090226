/* The cluster that clients see: heatsink alone, one node that owns every slot.
 *
 * A cluster-aware client asks where the slots are, learns that all of them are where it is already connected,
 * and works as with any cluster. The partitions behind the engine stay hidden: their slots may move while the
 * client goes on.
 *
 *     client ── CLUSTER SLOTS ──▶ heatsink: 0-16383 at the address that the client is connected to
 *
 * That address is right for every client: a server with several addresses reports to each client the one it
 * uses. Only where addresses are translated in between (containers, load balancers), cluster-announce-ip and
 * cluster-announce-port must say what clients can reach. */
#include "local/local.h"

#include "base/address.h"
#include "base/slot.h"
#include "wire/reply.h"

/* The topology never changes, so the config epoch is constant. */
enum { EPOCH = 1 };

struct endpoint {
	struct hs_bytes host; /* empty: the client uses the address that it is connected to */
	unsigned port;
};

static struct endpoint endpoint_for(const struct hs_core *core, const struct hs_session *session)
{
	const struct hs_core_options *options = &core->options;
	uint16_t port = session->tls ? options->announce_tls_port : options->announce_port;
	struct endpoint endpoint = {{"", 0}, 0};

	if (!hs_address_split(session->local_address, &endpoint.host, &endpoint.port))
		endpoint.host.len = 0;
	if (options->announce_host[0] != '\0')
		endpoint.host = hs_bytes_of(options->announce_host);
	if (port > 0)
		endpoint.port = port;
	return endpoint;
}

static struct hs_bytes node_id(const struct hs_core *core)
{
	return (struct hs_bytes){core->world.node_id, HS_NODE_ID_LEN};
}

void hs_local_cluster_slots(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, struct hs_reply *reply)
{
	struct endpoint endpoint = endpoint_for(core, session);

	(void)call;
	hs_reply_array(reply, 1);
	hs_reply_array(reply, 3);
	hs_reply_int(reply, 0);
	hs_reply_int(reply, HS_SLOTS - 1);
	hs_reply_array(reply, 4);
	hs_reply_bulk(reply, endpoint.host);
	hs_reply_int(reply, endpoint.port);
	hs_reply_bulk(reply, node_id(core));
	hs_reply_map(reply, 0); /* metadata of the node: no other host names */
}

void hs_local_cluster_shards(struct hs_core *core, struct hs_session *session,
			     const struct hs_call *call, struct hs_reply *reply)
{
	struct endpoint endpoint = endpoint_for(core, session);

	(void)call;
	hs_reply_array(reply, 1);
	hs_reply_map(reply, 2);
	hs_reply_bulk_text(reply, "slots");
	hs_reply_array(reply, 2);
	hs_reply_int(reply, 0);
	hs_reply_int(reply, HS_SLOTS - 1);
	hs_reply_bulk_text(reply, "nodes");
	hs_reply_array(reply, 1);
	hs_reply_map(reply, 7);
	hs_reply_pair(reply, "id", node_id(core));
	hs_reply_pair_int(reply, session->tls ? "tls-port" : "port", endpoint.port);
	hs_reply_pair(reply, "ip", endpoint.host);
	hs_reply_pair(reply, "endpoint", endpoint.host);
	hs_reply_pair_text(reply, "role", "master");
	hs_reply_pair_int(reply, "replication-offset", 0);
	hs_reply_pair_text(reply, "health", "online");
}

/* CLUSTER NODES. heatsink has no cluster bus, so its port is 0. */
void hs_local_cluster_nodes(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, struct hs_reply *reply)
{
	struct endpoint endpoint = endpoint_for(core, session);
	struct hs_buf text = {0};

	(void)call;
	hs_buf_printf(&text, "%s %.*s:%u@0 myself,master - 0 0 %d connected 0-%d\n",
		      core->world.node_id, (int)endpoint.host.len, endpoint.host.data,
		      endpoint.port, EPOCH, HS_SLOTS - 1);
	hs_reply_verbatim(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

/* Slots that cannot be served; all of them while the engine does not know its partitions. */
static int slots_failed(const struct hs_core *core)
{
	if (hs_core_partitions(core) == 0)
		return HS_SLOTS;
	return core->world.slots ? hs_slot_map_failed(core->world.slots) : 0;
}

/* CLUSTER INFO. One failed slot makes the state `fail`, as with cluster-require-full-coverage; but heatsink
 * still serves the other slots. */
void hs_local_cluster_info(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call, struct hs_reply *reply)
{
	int failed = slots_failed(core);
	struct hs_buf text = {0};

	(void)session, (void)call;
	hs_buf_printf(&text,
		      "cluster_state:%s\r\n"
		      "cluster_slots_assigned:%d\r\n"
		      "cluster_slots_ok:%d\r\n"
		      "cluster_slots_pfail:0\r\n"
		      "cluster_slots_fail:%d\r\n"
		      "cluster_known_nodes:1\r\n"
		      "cluster_size:1\r\n"
		      "cluster_current_epoch:%d\r\n"
		      "cluster_my_epoch:%d\r\n"
		      "cluster_stats_messages_sent:0\r\n"
		      "cluster_stats_messages_received:0\r\n"
		      "total_cluster_links_buffer_limit_exceeded:0\r\n",
		      failed == 0 ? "ok" : "fail", HS_SLOTS, HS_SLOTS - failed, failed, EPOCH,
		      EPOCH);
	hs_reply_verbatim(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

void hs_local_cluster_keyslot(struct hs_core *core, struct hs_session *session,
			      const struct hs_call *call, struct hs_reply *reply)
{
	(void)core, (void)session;
	hs_reply_int(reply, hs_slot_of(call->argv[2]));
}

void hs_local_cluster_myid(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call, struct hs_reply *reply)
{
	(void)session, (void)call;
	hs_reply_bulk(reply, node_id(core));
}

/* CLUSTER LINKS, REPLICAS, SLAVES and COUNT-FAILURE-REPORTS: heatsink is one node without links and replicas,
 * so the reply is empty or 0. */
void hs_local_cluster_none(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call, struct hs_reply *reply)
{
	(void)session;
	if (call->argc > 2 && !hs_bytes_equal(call->argv[2], node_id(core)))
		hs_reply_errorf(reply, "ERR Unknown node %.*s", (int)call->argv[2].len,
				call->argv[2].data);
	else if (call->command->id == HS_CMD_ID_CLUSTER_COUNT_FAILURE_REPORTS)
		hs_reply_int(reply, 0);
	else
		hs_reply_array(reply, 0);
}

void hs_local_cluster_refuse(struct hs_core *core, struct hs_session *session,
			     const struct hs_call *call, struct hs_reply *reply)
{
	(void)core, (void)session;
	hs_reply_errorf(reply,
			"ERR '%s' would change the cluster: heatsink is one node that owns "
			"every slot, and stays so",
			call->command->name);
}

void hs_local_readonly(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		       struct hs_reply *reply)
{
	(void)core;
	if (call->command->id != HS_CMD_ID_ASKING)
		session->readonly = call->command->id == HS_CMD_ID_READONLY;
	hs_reply_ok(reply);
}
