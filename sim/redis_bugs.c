/* Planted bugs of a wrong redis engine (sim/planted_bugs.h): each changes what a flow remembers around one of its
 * events. */
#include "sim/redis_bugs.h"

#include "core/reserved.h"
#include "sim/cluster.h"
#include "wire/compose.h"
#include "wire/reply.h"

enum {
	MESSAGE_ONE_IN = 4,
	/* HS_SIM_PUSH_LATE: upper bound of the delay, in times between two liveness checks. */
	LATE_CHECKS = 32,
};

void hs_sim_redis_bugs_init(struct hs_sim_redis_bugs *redis_bugs, enum hs_sim_bug bug,
			    uint64_t seed)
{
	redis_bugs->bug = bug;
	redis_bugs->partial = (struct hs_buf){0};
	hs_prng_init(&redis_bugs->prng, seed);
}

void hs_sim_redis_bugs_deinit(struct hs_sim_redis_bugs *redis_bugs)
{
	hs_buf_deinit(&redis_bugs->partial);
	hs_event_unref(&redis_bugs->held);
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

void hs_sim_redis_bugs_before(struct hs_sim_redis_bugs *redis_bugs, struct hs_flow *flow)
{
	redis_bugs->flow = flow;
	for (uint16_t i = 0; redis_bugs->bug != HS_SIM_NO_BUG && i < flow->nodes_count; i++) {
		const struct hs_fetch_pipe *fetch = fetch_of(flow, i);

		redis_bugs->epochs[i] =
			fetch ? hs_tracking_session_epoch(fetch->tracking_session) : UINT64_MAX;
		redis_bugs->checked[i] =
			fetch ? hs_tracking_session_caught_up_us(fetch->tracking_session) : 0;
	}
}

/* HS_SIM_REDIRECT_OVERTAKES: later requests go before the redirected ones. */
static void swap_held(struct hs_flow *flow)
{
	for (struct hs_link *link = flow->holds.next; link != &flow->holds; link = link->next) {
		struct hs_slot_hold *hold = hs_list_entry(link, struct hs_slot_hold, link);
		struct hs_ops fresh = hold->arrivals;

		if (!hold->retries.first || !fresh.first || hold->releasing)
			continue;
		hold->arrivals = hold->retries;
		hold->retries = fresh;
	}
}

/* HS_SIM_ASK_REFUSED: marks commands that were redirected with ASK as overtaken. HS_SIM_EMPTY_MASTER_DROPPED: has
 * the flow's next tick close the connection to a node without slots. */
static void give_up_asked(const struct hs_sim_redis_bugs *redis_bugs, struct hs_node *node)
{
	if (redis_bugs->bug == HS_SIM_EMPTY_MASTER_DROPPED)
		node->asking_us = 0;
	for (uint32_t i = 0; redis_bugs->bug == HS_SIM_ASK_REFUSED && i < 2; i++) {
		for (struct hs_op *op = node->shared[i].in_flight.first; op; op = op->next) {
			if (op->engine_state & HS_STATE_ASKING)
				op->engine_state |= HS_STATE_OVERTAKEN;
		}
	}
}

static void restore_session(struct hs_sim_redis_bugs *redis_bugs, uint16_t number)
{
	struct hs_node *node = redis_bugs->flow->nodes[number];
	struct hs_fetch_pipe *fetch = fetch_of(redis_bugs->flow, number);
	uint64_t now_us = redis_bugs->flow->now.mono_us;
	bool up = fetch && fetch->tracking;
	bool voided =
		fetch && redis_bugs->epochs[number] != UINT64_MAX &&
		hs_tracking_session_epoch(fetch->tracking_session) != redis_bugs->epochs[number];

	if (voided && ((redis_bugs->bug == HS_SIM_SESSION_SURVIVES_MOVE && up) ||
		       (redis_bugs->bug == HS_SIM_DEAD_SESSION && !up)))
		atomic_store(&fetch->tracking_session->epoch, redis_bugs->epochs[number]);
	/* The answer of a liveness check said that slots have moved: the session is alive. */
	if (voided && redis_bugs->bug == HS_SIM_SESSION_SURVIVES_MOVE && up)
		atomic_store(&fetch->tracking_session->caught_up_us, now_us);
	if (fetch && redis_bugs->bug == HS_SIM_LIVENESS_AT_REPLY &&
	    hs_tracking_session_caught_up_us(fetch->tracking_session) !=
		    redis_bugs->checked[number])
		atomic_store(&fetch->tracking_session->caught_up_us, now_us);
	if (node && node->master && redis_bugs->bug == HS_SIM_REPLICA_BEHIND)
		node->caught_up_us = now_us;
	if (node)
		give_up_asked(redis_bugs, node);
}

void hs_sim_redis_bugs_after(struct hs_sim_redis_bugs *redis_bugs)
{
	for (uint16_t i = 0; redis_bugs->bug != HS_SIM_NO_BUG && i < redis_bugs->flow->nodes_count;
	     i++)
		restore_session(redis_bugs, i);
	if (redis_bugs->bug == HS_SIM_REDIRECT_OVERTAKES)
		swap_held(redis_bugs->flow);
}

/* ---- connections ---- */

/* Whether the bug takes the operation for not sent when its connection is lost. */
static bool is_resent(const struct hs_op *op, enum hs_sim_bug bug)
{
	switch (bug) {
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

void hs_sim_redis_bugs_down(struct hs_sim_redis_bugs *redis_bugs, struct hs_pipe *pipe)
{
	for (struct hs_op *op = pipe->in_flight.first; op; op = op->next) {
		if (is_resent(op, redis_bugs->bug))
			op->engine_mark = UINT64_MAX; /* as if it had never been sent */
	}
	if (redis_bugs->bug != HS_SIM_HALF_REPLY_REUSED || pipe->upstream.partial.len == 0)
		return;
	redis_bugs->partial.len = 0;
	hs_buf_append_bytes(&redis_bugs->partial, hs_buf_bytes(&pipe->upstream.partial));
}

void hs_sim_redis_bugs_up(struct hs_sim_redis_bugs *redis_bugs, struct hs_pipe *pipe)
{
	if (redis_bugs->bug != HS_SIM_HALF_REPLY_REUSED)
		return;
	hs_buf_append_bytes(&pipe->upstream.partial, hs_buf_bytes(&redis_bugs->partial));
	redis_bugs->partial.len = 0;
}

/* ---- operations ---- */

/* Whether the bug answers the operation without sending it. */
static bool is_dropped(const struct hs_op *op, enum hs_sim_bug bug)
{
	enum hs_command_id id = op->kind == HS_OP_COMMAND ? op->command->id : HS_CMD_ID_GET;

	switch (bug) {
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

bool hs_sim_redis_bugs_submit(struct hs_sim_redis_bugs *redis_bugs, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	if (!is_dropped(op, redis_bugs->bug))
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

bool hs_sim_redis_bugs_holds(const struct hs_sim_redis_bugs *redis_bugs, const struct hs_flow *flow)
{
	bool waits = redis_bugs->bug == HS_SIM_WAITS_FOR_ALL,
	     parks = redis_bugs->bug == HS_SIM_PARKS_ALL;

	for (uint16_t i = 0; (waits || parks) && i < flow->nodes_count; i++) {
		const struct hs_node *node = flow->nodes[i];

		if (node && ((waits && owes(node)) || (parks && node->down_since_us > 0)))
			return true;
	}
	return false;
}

bool hs_sim_redis_bugs_delays(const struct hs_sim_redis_bugs *redis_bugs,
			      const struct hs_flow *flow, const struct hs_pipe *pipe)
{
	if (redis_bugs->bug != HS_SIM_FETCH_WAITS_FOR_ALL || pipe != &pipe->node->fetch.pipe)
		return false;
	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		const struct hs_node *node = flow->nodes[i];

		if (node && node != pipe->node && is_owed(&node->fetch.pipe))
			return true;
	}
	return false;
}

void hs_sim_redis_bugs_resume(const struct hs_sim_redis_bugs *redis_bugs, struct hs_flow *flow)
{
	for (uint16_t i = 0; redis_bugs->bug == HS_SIM_FETCH_WAITS_FOR_ALL && i < flow->nodes_count;
	     i++) {
		struct hs_pipe *pipe = flow->nodes[i] ? &flow->nodes[i]->fetch.pipe : NULL;

		if (pipe && pipe->upstream.out.len > 0 && pipe->upstream.state == HS_UPSTREAM_UP &&
		    !hs_sim_redis_bugs_delays(redis_bugs, flow, pipe))
			hs_flow_mark_dirty(flow, pipe);
	}
}

uint32_t hs_sim_redis_bugs_event(struct hs_sim_redis_bugs *redis_bugs, struct hs_event *event,
				 struct hs_event **behind)
{
	*behind = NULL;
	if ((event->kind != HS_EVENT_MESSAGE && event->kind != HS_EVENT_SHARD_MESSAGE) ||
	    redis_bugs->bug < HS_SIM_MESSAGE_LOST || redis_bugs->bug > HS_SIM_MESSAGE_OVERTAKES)
		return 1;
	if (redis_bugs->held) {
		*behind = redis_bugs->held;
		redis_bugs->held = NULL;
		return 1;
	}
	if (hs_prng_below(&redis_bugs->prng, MESSAGE_ONE_IN) > 0)
		return 1;
	if (redis_bugs->bug == HS_SIM_MESSAGE_TWICE)
		return 2;
	if (redis_bugs->bug == HS_SIM_MESSAGE_OVERTAKES) {
		hs_event_ref(event, 1);
		redis_bugs->held = event;
	}
	return 0;
}

void hs_sim_redis_bugs_finished(struct hs_sim_redis_bugs *redis_bugs, struct hs_op *op)
{
	struct hs_bytes reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	struct hs_reply missing = {.out = op->out, .resp = op->resp};

	if (redis_bugs->bug != HS_SIM_ERROR_AS_MISSING || op->kind != HS_OP_COMMAND ||
	    op->command->id != HS_CMD_ID_GET || reply.len == 0 || reply.data[0] != '-')
		return;
	op->answer = (struct hs_bytes){NULL, 0};
	op->out->len = 0;
	hs_reply_null(&missing);
}

uint64_t hs_sim_redis_bugs_change(struct hs_sim_redis_bugs *redis_bugs, uint64_t liveness_us)
{
	if (redis_bugs->bug == HS_SIM_PUSH_LOST)
		return UINT64_MAX;
	if (redis_bugs->bug != HS_SIM_PUSH_LATE)
		return 0;
	return hs_prng_below(&redis_bugs->prng, LATE_CHECKS * (liveness_us + 1));
}

static void send_again(const struct hs_op *op, struct hs_sim_cluster *cluster)
{
	uint8_t owner =
		op->slot == HS_SLOT_NONE ? HS_SIM_NO_NODE : hs_sim_cluster_owner(cluster, op->slot);
	struct hs_sim_server_conn *conn;
	struct hs_buf request = {0};

	if (!is_write(op) || owner == HS_SIM_NO_NODE)
		return;
	conn = hs_sim_cluster_connect(cluster, owner, NULL);
	hs_compose(&request, op->argc, op->argv);
	if (conn)
		hs_sim_server_receive(conn, request.data, request.len);
	hs_buf_deinit(&request);
}

void hs_sim_redis_bugs_died(struct hs_sim_redis_bugs *redis_bugs, struct hs_flow *flow,
			    struct hs_sim_cluster *cluster)
{
	for (uint16_t i = 0; redis_bugs->bug == HS_SIM_DIED_RESENT && i < flow->nodes_count; i++) {
		struct hs_node *node = flow->nodes[i];

		for (int j = 0; node && j < HS_NODE_PIPES; j++) {
			for (struct hs_op *op = node->pipes[j]->in_flight.first; op; op = op->next)
				send_again(op, cluster);
		}
	}
}
