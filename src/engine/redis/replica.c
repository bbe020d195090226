/* Reads from replicas (hs_op.replica_since_us), and how the flow knows how fresh a replica is.
 *
 *     T: master, INFO ──► replication id s, offset o ──► replica, INFO ──► id s, offset >= o:
 *                                                  the replica has all that the master had at T
 *
 * T is the time when INFO was sent to the master, not the time of its reply: the replica may lack writes that came
 * after the INFO. A replica's offset only grows, so this result can be used until T is too old for a read. The
 * result holds for one replication id, one master and one set of slots: another id, a lost link or connection, and
 * any change of the routes make the result void (hs_replica_invalidate).
 *
 * These requests and reads use one RESP3 pipe per node, apart from the shared pipes: READONLY must apply to a
 * replica's connection only, because a demoted master must redirect other commands. A replica has a shorter
 * timeout than a master. If a replica answers with an error or late, the read goes to the master.
 *
 * If no read wants a replica, the flow stops the checks and, after a while, closes the connections. */
#include "engine/redis/internal.h"
#include "engine/redis/node_info.h"

#include <stdio.h>

/* WANTED_US: how long the checks go on after the last read that wanted a replica. CHECKS_MAX: how many checks
 * follow that read at most, because a rule with a staleness of 1 ms makes the checks follow each other closely. */
#define WANTED_US 1000000
#define CHECKS_MAX 200
/* a connection that no read or check has used for this time is closed */
#define IDLE_US 30000000
#define NODES_FULL (HS_NODES_MAX / 2) /* with this many nodes, no replica is added */

/* ---- replicas of masters ---- */

static void forget_progress(struct hs_node *replica)
{
	replica->caught_up_us = 0;
	replica->catch_up_target.us = 0;
}

void hs_replica_invalidate(struct hs_flow *flow, struct hs_node *node)
{
	node->replicas_invalid_us = flow->now.mono_us;
	node->progress.us = 0;
	for (uint16_t i = 0; i < node->replicas_count; i++)
		forget_progress(node->replicas[i]);
}

/* Adds the node at `at` to the master's replicas. False: the table is full, or the node has slots or another
 * master. */
static bool add(struct hs_flow *flow, struct hs_node *master, const struct hs_route_node *at)
{
	struct hs_node *node;

	if (master->replicas_count == HS_REPLICAS_MAX)
		return false;
	node = hs_flow_node(flow, hs_bytes_of(at->host), at->port);
	if (!node || node->listed) /* the node has slots, or another master */
		return false;
	hs_flow_set_partition(flow, node, at->partition);
	node->at = *at;
	node->listed = true;
	node->master = master;
	master->replicas[master->replicas_count++] = node;
	return true;
}

void hs_replica_route(struct hs_flow *flow)
{
	const struct hs_routes *routes = flow->routes;
	uint32_t listed = 0;

	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		if (!node)
			continue;
		listed += node->listed;
		hs_replica_invalidate(flow, node);
		forget_progress(node);
		node->replicas_count = 0;
		node->master = NULL;
	}
	for (uint32_t i = routes->nodes_count;
	     i < (uint32_t)routes->nodes_count + routes->replicas_count; i++) {
		uint16_t master = flow->numbers[routes->nodes[i].master];

		if (master != HS_NODE_NONE && listed < NODES_FULL)
			listed += add(flow, flow->nodes[master], &routes->nodes[i]);
	}
}

/* ---- a read ---- */

/* Chooses a replica, round robin. NULL: none is known to be fresh enough and can take the read. */
static struct hs_node *choose(const struct hs_flow *flow, struct hs_node *master, uint64_t since_us)
{
	for (uint16_t i = 0; i < master->replicas_count; i++) {
		uint16_t at = (uint16_t)((master->replicas_next + i) % master->replicas_count);
		struct hs_node *replica = master->replicas[at];

		if (replica->caught_up_us >= since_us &&
		    !replica->replica.pipe.upstream.close_reason &&
		    hs_pipe_has_room(flow, &replica->replica.pipe)) {
			master->replicas_next = (uint16_t)(at + 1);
			return replica;
		}
	}
	return NULL;
}

static void open_all(struct hs_flow *flow, struct hs_node *master)
{
	hs_flow_open(flow, &master->replica.pipe);
	for (uint16_t i = 0; i < master->replicas_count; i++)
		hs_flow_open(flow, &master->replicas[i]->replica.pipe);
}

bool hs_replica_send(struct hs_flow *flow, struct hs_op *op)
{
	struct hs_node *replica, *master;
	struct hs_pipe *pipe;

	op->replica_caught_up_us = 0;
	if (!flow->options.cluster || !hs_flow_is_routed(flow) || op->slot == HS_SLOT_NONE ||
	    op->resp != 3 || op->track || !hs_op_is_read(op) || hs_private_is_for(op))
		return false;
	master = hs_flow_owner(flow, op->slot);
	if (!master || master->replicas_count == 0)
		return false;
	master->replicas_wanted_us = flow->now.mono_us;
	master->replicas_checks = 0;
	flow->replicas_wanted_us = flow->now.mono_us;
	/* While the slot migrates, a key that the replica lacks may be at the importing node. */
	if (hs_flow_slot_state(flow, op->slot)->hold || hs_slot_is_migrating(flow, op->slot))
		return false;
	replica = choose(flow, master, op->replica_since_us);
	if (!replica) {
		open_all(flow, master);
		return false;
	}
	pipe = &replica->replica.pipe;
	op->replica_caught_up_us = replica->caught_up_us;
	if (op->engine_deadline_us > flow->now.mono_us + HS_REPLICA_TIMEOUT_US)
		op->engine_deadline_us = flow->now.mono_us + HS_REPLICA_TIMEOUT_US;
	hs_pipe_compose(pipe, op, false);
	hs_flow_mark_dirty(flow, pipe);
	return true;
}

static void give_up(struct hs_flow *flow, struct hs_op *op)
{
	op->replica_caught_up_us = 0;
	if (!(op->engine_state & HS_STATE_INTERNAL))
		op->engine_deadline_us = hs_flow_deadline(flow, op);
}

/* ---- freshness ---- */

static bool is_wanted(const struct hs_flow *flow, const struct hs_node *master, uint64_t for_us)
{
	return master->listed && master->replicas_count > 0 && master->replicas_wanted_us > 0 &&
	       flow->now.mono_us - master->replicas_wanted_us <= for_us;
}

static void send(struct hs_flow *flow, struct hs_pipe *pipe, const char *line)
{
	uint64_t timeout_us = pipe->node->master ? HS_REPLICA_TIMEOUT_US : flow->options.timeout_us;

	hs_flow_send_internal(flow, pipe, hs_flow_request(flow, 3, timeout_us, line));
}

static void ask(struct hs_flow *flow, struct hs_node *node)
{
	struct hs_pipe *pipe = &node->replica.pipe;

	if (pipe->upstream.state != HS_UPSTREAM_UP || pipe->upstream.close_reason ||
	    node->replica.checking)
		return;
	node->replica.checking = true;
	send(flow, pipe, "INFO replication");
}

void hs_replica_check(struct hs_flow *flow)
{
	bool any = false;

	for (uint16_t i = 0; i < flow->nodes_count && flow->replicas_wanted_us > 0; i++) {
		struct hs_node *node = flow->nodes[i];

		if (!node || !is_wanted(flow, node, WANTED_US) ||
		    node->replicas_checks == CHECKS_MAX)
			continue;
		any = true;
		node->replicas_checks++;
		open_all(flow, node);
		ask(flow, node);
	}
	if (!any)
		flow->replicas_wanted_us = 0;
}

/* Takes the master's offset from its INFO, and sends INFO to its replicas: they may have reached the offset. */
static void note_master(struct hs_flow *flow, struct hs_node *master,
			const struct hs_node_info *info, uint64_t asked_us)
{
	if (info->role != HS_NODE_MASTER || info->replication_id[0] == '\0') {
		hs_replica_invalidate(flow, master);
		return;
	}
	if (asked_us <= master->replicas_invalid_us)
		return;
	if (strcmp(info->replication_id, master->replication_id) != 0) {
		hs_replica_invalidate(flow, master);
		snprintf(master->replication_id, sizeof master->replication_id, "%s",
			 info->replication_id);
	}
	master->progress = (struct hs_progress){asked_us, info->offset};
	for (uint16_t i = 0; i < master->replicas_count; i++) {
		struct hs_node *replica = master->replicas[i];

		if (replica->catch_up_target.us == 0)
			replica->catch_up_target = master->progress;
		ask(flow, replica);
	}
}

static void note_replica(struct hs_node *replica, const struct hs_node_info *info)
{
	const struct hs_node *master = replica->master;

	if (info->role != HS_NODE_REPLICA || info->link_down ||
	    strcmp(info->replication_id, master->replication_id) != 0) {
		forget_progress(replica);
		return;
	}
	if (replica->catch_up_target.us == 0 || info->offset < replica->catch_up_target.offset)
		/* The target stays. If it moved on with the master, a replica that always lags would never reach
		 * it. */
		return;
	replica->caught_up_us = replica->catch_up_target.us;
	replica->catch_up_target.us = 0;
	if (master->progress.us > 0 && info->offset >= master->progress.offset)
		replica->caught_up_us = master->progress.us;
	else
		replica->catch_up_target = master->progress;
}

static void take_info(struct hs_flow *flow, struct hs_pipe *pipe, const struct hs_op *op,
		      struct hs_bytes reply)
{
	struct hs_node *node = pipe->node;
	struct hs_node_info info = {0};
	struct hs_parsed_reply head;

	node->replica.checking = false;
	if (hs_parse_reply_head(&head, reply.data, reply.len) <= 0 || head.type != HS_PARSED_BULK ||
	    hs_node_info_parse(&info, head.text) < 0)
		info.role = HS_NODE_UNKNOWN; /* the reply is an error, most likely */
	if (node->master)
		note_replica(node, &info);
	else
		note_master(flow, node, &info, op->received.mono_us);
}

static void take_reply(struct hs_flow *flow, struct hs_pipe *pipe, struct hs_op *op,
		       struct hs_bytes reply, bool owned)
{
	op->out->len = 0;
	if (op->engine_state & HS_STATE_INTERNAL) {
		if (reply.data[0] != '+') /* `+OK` is the reply to READONLY */
			take_info(flow, pipe, op, reply);
		hs_flow_finish(flow, op);
	} else if (reply.data[0] != '-') {
		hs_flow_answer(flow, pipe, op, reply, owned);
	} else {
		/* The replica lost its master, loads its data or follows another master; or the master would
		 * answer the read with an error, too. */
		forget_progress(pipe->node);
		give_up(flow, op);
		if (!hs_flow_place_again(flow, op))
			hs_flow_finish(flow, op);
	}
}

/* ---- connections ---- */

static void up(struct hs_flow *flow, struct hs_pipe *pipe)
{
	send(flow, pipe, "READONLY");
	ask(flow, pipe->node);
}

/* The connection is lost: reads in flight on it go to the master. */
static void down(struct hs_flow *flow, struct hs_pipe *pipe, bool was_up, const char *why)
{
	pipe->node->replica.checking = false;
	pipe->node->progress.us = 0;
	forget_progress(pipe->node);
	/* The backoff applies also to a node that refuses the connection: otherwise every check would try to
	 * connect. */
	hs_backoff_lost(&pipe->upstream.backoff, &hs_flow_backoff, flow->now.mono_us, &flow->prng,
			was_up, pipe->upstream.opened_us);
	for (struct hs_op *op = pipe->in_flight.first; op; op = op->next)
		give_up(flow, op);
	hs_flow_requeue(flow, pipe, why);
}

static void tick(struct hs_flow *flow, struct hs_pipe *pipe)
{
	const struct hs_node *node = pipe->node, *master = node->master ? node->master : node;

	if (pipe->upstream.state == HS_UPSTREAM_UP && !pipe->in_flight.first &&
	    !is_wanted(flow, master, IDLE_US))
		hs_flow_close(flow, pipe, "no read uses a replica", true);
}

const struct hs_pipe_kind hs_replica_pipes = {
	.resp = 3,
	.timeout_reason = "no reply in time",
	.timeout_blameless = true,
	.compose = hs_pipe_compose,
	.up = up,
	.down = down,
	.skipped = hs_pipe_keep_error,
	.reply = take_reply,
	.tick = tick,
};
