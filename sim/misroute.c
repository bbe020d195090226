#include "sim/misroute.h"

#include "core/reserved.h"
#include "sim/cluster.h"
#include "wire/compose.h"
#include "wire/reply.h"

enum {
	MESSAGE_ONE_IN = 4,
	LATE_CHECKS = 32, /* HS_SIM_PUSH_LATE: behind so many liveness checks at most */
};

void hs_sim_misroute_init(struct hs_sim_misroute *misroute, enum hs_sim_mistake mistake,
			  uint64_t seed)
{
	misroute->mistake = mistake;
	misroute->partial = (struct hs_buf){0};
	hs_prng_init(&misroute->prng, seed);
}

void hs_sim_misroute_deinit(struct hs_sim_misroute *misroute)
{
	hs_buf_deinit(&misroute->partial);
	hs_event_unref(&misroute->held);
}

static bool is_write(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && (op->command->flags & HS_CMD_WRITE);
}

static bool is_increment(const struct hs_op *op)
{
	uint32_t id = op->kind == HS_OP_COMMAND ? op->command->id : HS_CMD_ID_NONE;

	return id == HS_CMD_ID_INCR || id == HS_CMD_ID_INCRBY || id == HS_CMD_ID_DECR ||
	       id == HS_CMD_ID_DECRBY;
}

static bool is_called(const struct hs_op *op, const char *name)
{
	return op->kind == HS_OP_COMMAND && strcmp(op->command->name, name) == 0;
}

/* ---- around an event ---- */

static struct hs_fetch_pipe *fetch_of(const struct hs_flow *flow, uint16_t number)
{
	struct hs_node *node = flow->nodes[number];

	return node && node->fetch.tracking_session ? &node->fetch : NULL;
}

void hs_sim_misroute_before(struct hs_sim_misroute *misroute, struct hs_flow *flow)
{
	misroute->flow = flow;
	for (uint16_t i = 0; misroute->mistake != HS_SIM_NO_MISTAKE && i < flow->nodes_count; i++) {
		const struct hs_fetch_pipe *fetch = fetch_of(flow, i);

		misroute->epochs[i] =
			fetch ? hs_tracking_session_epoch(fetch->tracking_session) : UINT64_MAX;
		misroute->checked[i] =
			fetch ? hs_tracking_session_caught_up_us(fetch->tracking_session) : 0;
	}
}

/* HS_SIM_REDIRECT_OVERTAKES: what came since goes before what was turned away. */
static void swap_held(struct hs_flow *flow)
{
	for (struct hs_link *link = flow->holds.next; link != &flow->holds; link = link->next) {
		struct hs_slot_hold *hold = hs_list_entry(link, struct hs_slot_hold, link);
		struct hs_ops fresh = hold->fresh;

		if (!hold->back.first || !fresh.first || hold->releasing)
			continue;
		hold->fresh = hold->back;
		hold->back = fresh;
	}
}

/* HS_SIM_ASKED_REFUSED: marks commands that were sent on with ASK as overtaken. HS_SIM_EMPTY_FORGOTTEN: has the flow's
 * next tick close the connection to a node without slots. */
static void give_up_asked(const struct hs_sim_misroute *misroute, struct hs_node *node)
{
	if (misroute->mistake == HS_SIM_EMPTY_FORGOTTEN)
		node->asked_us = 0;
	for (uint32_t i = 0; misroute->mistake == HS_SIM_ASKED_REFUSED && i < 2; i++) {
		for (struct hs_op *op = node->shared[i].in_flight.first; op; op = op->next) {
			if (op->engine_state & HS_STATE_ASKED)
				op->engine_state |= HS_STATE_OVERTAKEN;
		}
	}
}

static void believe(struct hs_sim_misroute *misroute, uint16_t number)
{
	struct hs_node *node = misroute->flow->nodes[number];
	struct hs_fetch_pipe *fetch = fetch_of(misroute->flow, number);
	uint64_t now_us = misroute->flow->now.mono_us;
	bool up = fetch && fetch->tracking;
	bool voided =
		fetch && misroute->epochs[number] != UINT64_MAX &&
		hs_tracking_session_epoch(fetch->tracking_session) != misroute->epochs[number];

	if (voided && ((misroute->mistake == HS_SIM_BELIEVED_AFTER_MOVE && up) ||
		       (misroute->mistake == HS_SIM_DEAD_VOUCH && !up)))
		atomic_store(&fetch->tracking_session->epoch, misroute->epochs[number]);
	/* That slots have moved was the answer to a liveness check: it lives. */
	if (voided && misroute->mistake == HS_SIM_BELIEVED_AFTER_MOVE && up)
		atomic_store(&fetch->tracking_session->caught_up_us, now_us);
	if (fetch && misroute->mistake == HS_SIM_PROOF_AT_REPLY &&
	    hs_tracking_session_caught_up_us(fetch->tracking_session) != misroute->checked[number])
		atomic_store(&fetch->tracking_session->caught_up_us, now_us);
	if (node && node->master && misroute->mistake == HS_SIM_REPLICA_UNPROVED)
		node->caught_up_us = now_us;
	if (node)
		give_up_asked(misroute, node);
}

void hs_sim_misroute_after(struct hs_sim_misroute *misroute)
{
	for (uint16_t i = 0;
	     misroute->mistake != HS_SIM_NO_MISTAKE && i < misroute->flow->nodes_count; i++)
		believe(misroute, i);
	if (misroute->mistake == HS_SIM_REDIRECT_OVERTAKES)
		swap_held(misroute->flow);
}

/* ---- connections ---- */

/* What a mistake takes for not sent when its connection is lost. */
static bool is_resent(const struct hs_op *op, enum hs_sim_mistake mistake)
{
	switch (mistake) {
	case HS_SIM_WRITE_RESENT:
		return is_write(op);
	case HS_SIM_FAILOVER_RESENT:
		return is_increment(op);
	case HS_SIM_MSET_RESENT:
		return is_called(op, "mset");
	case HS_SIM_UNKNOWN_RESENT:
		return is_called(op, "x.swap") || is_called(op, "x.both") ||
		       is_called(op, "x.pair");
	case HS_SIM_EXEC_RESENT:
		return op->kind == HS_OP_EXEC;
	case HS_SIM_ELEMENT_LOST:
		return is_called(op, "blpop");
	case HS_SIM_ELEMENT_TWICE:
		return is_called(op, "rpush");
	default:
		return false;
	}
}

void hs_sim_misroute_down(struct hs_sim_misroute *misroute, struct hs_pipe *pipe)
{
	for (struct hs_op *op = pipe->in_flight.first; op; op = op->next) {
		if (is_resent(op, misroute->mistake))
			op->engine_mark = UINT64_MAX; /* as if it had never left */
	}
	if (misroute->mistake != HS_SIM_HALF_REPLY_KEPT || pipe->upstream.partial.len == 0)
		return;
	misroute->partial.len = 0;
	hs_buf_append_bytes(&misroute->partial, hs_buf_bytes(&pipe->upstream.partial));
}

void hs_sim_misroute_up(struct hs_sim_misroute *misroute, struct hs_pipe *pipe)
{
	if (misroute->mistake != HS_SIM_HALF_REPLY_KEPT)
		return;
	hs_buf_append_bytes(&pipe->upstream.partial, hs_buf_bytes(&misroute->partial));
	misroute->partial.len = 0;
}

/* ---- operations ---- */

/* What a mistake does not send. */
static bool is_dropped(const struct hs_op *op, enum hs_sim_mistake mistake)
{
	enum hs_command_id id = op->kind == HS_OP_COMMAND ? op->command->id : HS_CMD_ID_GET;

	switch (mistake) {
	case HS_SIM_FLUSH_ONE:
		return id == HS_CMD_ID_FLUSHALL && op->partition != 0;
	case HS_SIM_COPIES_LEFT:
		return id == HS_CMD_ID_UNLINK && hs_is_reserved(op->argv[1]);
	case HS_SIM_WATCH_LEFT:
		return op->kind == HS_OP_UNWATCH;
	default:
		return false;
	}
}

bool hs_sim_misroute_submit(struct hs_sim_misroute *misroute, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	if (!is_dropped(op, misroute->mistake))
		return false;
	hs_reply_ok(&reply);
	return true;
}

static bool is_owed(const struct hs_pipe *pipe)
{
	return pipe->in_flight.first && pipe->in_flight.first->engine_mark <= pipe->upstream.sent;
}

static bool owes(const struct hs_node *node)
{
	for (int i = 0; i < HS_NODE_PIPES; i++) {
		if (is_owed(node->pipes[i]))
			return true;
	}
	return false;
}

bool hs_sim_misroute_holds(const struct hs_sim_misroute *misroute, const struct hs_flow *flow)
{
	bool waits = misroute->mistake == HS_SIM_WAITS_FOR_ALL,
	     parks = misroute->mistake == HS_SIM_PARKS_ALL;

	for (uint16_t i = 0; (waits || parks) && i < flow->nodes_count; i++) {
		const struct hs_node *node = flow->nodes[i];

		if (node && ((waits && owes(node)) || (parks && node->down_since_us > 0)))
			return true;
	}
	return false;
}

bool hs_sim_misroute_delays(const struct hs_sim_misroute *misroute, const struct hs_flow *flow,
			    const struct hs_pipe *pipe)
{
	if (misroute->mistake != HS_SIM_FETCH_WAITS_FOR_ALL || pipe != &pipe->node->fetch.pipe)
		return false;
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		const struct hs_node *node = flow->nodes[i];

		if (node && node != pipe->node && is_owed(&node->fetch.pipe))
			return true;
	}
	return false;
}

void hs_sim_misroute_resume(const struct hs_sim_misroute *misroute, struct hs_flow *flow)
{
	for (uint16_t i = 0;
	     misroute->mistake == HS_SIM_FETCH_WAITS_FOR_ALL && i < flow->nodes_count; i++) {
		struct hs_pipe *pipe = flow->nodes[i] ? &flow->nodes[i]->fetch.pipe : NULL;

		if (pipe && pipe->upstream.out.len > 0 && pipe->upstream.state == HS_UPSTREAM_UP &&
		    !hs_sim_misroute_delays(misroute, flow, pipe))
			hs_flow_touch(flow, pipe);
	}
}

uint32_t hs_sim_misroute_event(struct hs_sim_misroute *misroute, struct hs_event *event,
			       struct hs_event **behind)
{
	*behind = NULL;
	if ((event->kind != HS_EVENT_MESSAGE && event->kind != HS_EVENT_SHARD_MESSAGE) ||
	    misroute->mistake < HS_SIM_MESSAGE_LOST || misroute->mistake > HS_SIM_MESSAGE_OVERTAKES)
		return 1;
	if (misroute->held) {
		*behind = misroute->held;
		misroute->held = NULL;
		return 1;
	}
	if (hs_prng_below(&misroute->prng, MESSAGE_ONE_IN) > 0)
		return 1;
	if (misroute->mistake == HS_SIM_MESSAGE_TWICE)
		return 2;
	if (misroute->mistake == HS_SIM_MESSAGE_OVERTAKES) {
		hs_event_ref(event, 1);
		misroute->held = event;
	}
	return 0;
}

void hs_sim_misroute_finished(struct hs_sim_misroute *misroute, struct hs_op *op)
{
	struct hs_bytes reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	struct hs_reply missing = {.out = op->out, .resp = op->resp};

	if (misroute->mistake != HS_SIM_ERROR_AS_MISSING || op->kind != HS_OP_COMMAND ||
	    op->command->id != HS_CMD_ID_GET || reply.len == 0 || reply.data[0] != '-')
		return;
	op->answer = (struct hs_bytes){NULL, 0};
	op->out->len = 0;
	hs_reply_null(&missing);
}

uint64_t hs_sim_misroute_change(struct hs_sim_misroute *misroute, uint64_t liveness_us)
{
	if (misroute->mistake == HS_SIM_PUSH_LOST)
		return UINT64_MAX;
	if (misroute->mistake != HS_SIM_PUSH_LATE)
		return 0;
	return hs_prng_below(&misroute->prng, LATE_CHECKS * (liveness_us + 1));
}

static void send_again(const struct hs_op *op, struct hs_sim_cluster *cluster)
{
	uint8_t owner =
		op->slot == HS_SLOT_NONE ? HS_SIM_NOBODY : hs_sim_cluster_owner(cluster, op->slot);
	struct hs_sim_server_conn *conn;
	struct hs_buf request = {0};

	if (!is_write(op) || owner == HS_SIM_NOBODY)
		return;
	conn = hs_sim_cluster_connect(cluster, owner, NULL);
	hs_compose(&request, op->argc, op->argv);
	if (conn)
		hs_sim_server_receive(conn, request.data, request.len);
	hs_buf_deinit(&request);
}

void hs_sim_misroute_died(struct hs_sim_misroute *misroute, struct hs_flow *flow,
			  struct hs_sim_cluster *cluster)
{
	for (uint16_t i = 0; misroute->mistake == HS_SIM_DIED_RESENT && i < flow->nodes_count;
	     i++) {
		struct hs_node *node = flow->nodes[i];

		for (int j = 0; node && j < HS_NODE_PIPES; j++) {
			for (struct hs_op *op = node->pipes[j]->in_flight.first; op; op = op->next)
				send_again(op, cluster);
		}
	}
}
