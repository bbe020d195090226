/* Wires the real code of src/engine/redis to the simulated world: callbacks of flows, topology monitor and
 * subscriber on one side, simulated connections and the event queue on the other. */
#include "sim/redis_engine.h"

#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"
#include "engine/redis/monitor.h"
#include "engine/redis/subscriber_internal.h"
#include "sim/cluster.h"
#include "sim/executions.h"
#include "sim/redis_bugs.h"
#include "wire/reply.h"

#include <stdio.h>

struct worker {
	struct hs_sim_redis *redis;
	uint32_t number;
	struct hs_flow *flow;
	struct hs_flow_stats *stats;
	struct hs_tracking_sessions *tracking_sessions;
	bool liveness_planned;
	bool routed;
	uint64_t message_us; /* when the last message arrives: messages arrive in order */
	/* The connection whose replies are being handled; or NULL. */
	struct hs_sim_connection *receiving_from;
};

/* A message from the engine's thread to a worker. */
struct message {
	struct hs_link link; /* in redis->messages */
	struct worker *worker;
	const struct hs_routes *routes; /* new routes, or */
	struct hs_op *op;		/* an operation that is done, or */
	/* A tracking session whose `key` has changed, or (`all`) all of whose keys may have. */
	const struct hs_tracking_session *tracking_session;
	struct hs_buf key;
	bool all;
};

struct hs_sim_redis {
	struct hs_sim_redis_options options;
	struct hs_sim_redis_host host;
	struct hs_prng prng;
	struct hs_login login;
	struct hs_redis_url url;
	struct hs_slot_map *slots;
	struct hs_monitor *monitor;
	struct hs_subscriber *subscriber;
	/* The node where channels were subscribed last; "". */
	char pubsub_conn[HS_HOST_BYTES_MAX + 16];
	bool pubsub_conn_has_moved;
	struct hs_link messages;
	uint64_t monitor_us; /* when its next tick is planned */
	char unavailable_reason[HS_REDIS_WHY_BYTES];
	bool ended, lost;
	struct hs_sim_redis_bugs redis_bugs;
	struct worker workers[];
};

/* ---- time ---- */

static struct hs_now now_of(const struct hs_sim_redis *redis)
{
	return *redis->host.now;
}

static uint64_t now_us(const struct hs_sim_redis *redis)
{
	return redis->host.now->mono_us;
}

static void plan(struct hs_sim_redis *redis, uint64_t at_us, hs_sim_event_run *run, void *target)
{
	hs_sim_events_plan(redis->host.events,
			   (struct hs_sim_event){
				   .at_us = at_us, .run = run, .context = redis, .target = target});
}

/* ---- messages to workers ---- */

static void answer_ended(struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	op->out->len = 0;
	op->answer = (struct hs_bytes){NULL, 0};
	hs_reply_error(&reply, "ERR shutting down: the outcome of this command is unknown");
}

static void free_message(struct message **message)
{
	hs_list_remove(&(*message)->link);
	hs_buf_deinit(&(*message)->key);
	hs_routes_unref(&(*message)->routes);
	hs_mem_free(message);
}

static void deliver_message(void *context, void *target, uint64_t number)
{
	struct hs_sim_redis *redis = context;
	struct message *message = target;
	struct worker *worker = message->worker;

	(void)number;
	if (redis->ended)
		return; /* freed by hs_sim_redis_destroy */
	if (message->op) {
		redis->host.done(redis->host.context, message->op);
	} else {
		worker->routed = true;
		hs_sim_redis_bugs_before(&redis->redis_bugs, worker->flow);
		hs_flow_route(worker->flow, now_of(redis), message->routes);
		hs_sim_redis_bugs_after(&redis->redis_bugs);
		hs_flow_flush(worker->flow, now_of(redis));
	}
	free_message(&message);
	redis->host.handled(redis->host.context, worker->number);
}

static void send_message(struct worker *worker, const struct hs_routes *routes, struct hs_op *op)
{
	struct hs_sim_redis *redis = worker->redis;
	struct message *message = hs_mem_zalloc(sizeof *message);
	uint64_t at_us =
		now_us(redis) + 1 + hs_prng_below(&redis->prng, redis->options.message_us_max + 1);

	if (at_us < worker->message_us)
		at_us = worker->message_us;
	worker->message_us = at_us;
	*message = (struct message){.worker = worker, .routes = routes, .op = op};
	hs_list_init(&message->link);
	hs_list_append(&redis->messages, &message->link);
	plan(redis, at_us, deliver_message, message);
}

/* ---- connections ---- */

static void open_connection(struct hs_sim_redis *redis, struct hs_upstream *upstream,
			    const struct hs_sim_connection_options *options)
{
	struct hs_sim_connection_options all = *options;

	all.upstream = upstream;
	all.greeting.login = &redis->login;
	all.greeting.resp = upstream->resp;
	upstream->io = hs_sim_connection_open(redis->host.network, &all);
}

static void close_connection(struct hs_sim_redis *redis, struct hs_upstream *upstream)
{
	struct hs_sim_connection *connection = upstream->io;

	upstream->io = NULL;
	if (connection)
		hs_sim_connection_close(&connection, redis->lost);
}

/* Called after every event of the subscriber. */
static void note_pubsub_conn(struct hs_sim_redis *redis)
{
	const struct hs_subscriber_conn *pubsub_conn = redis->subscriber->pubsub_conn;

	if (!pubsub_conn || strcmp(pubsub_conn->text, redis->pubsub_conn) == 0)
		return;
	redis->pubsub_conn_has_moved =
		redis->pubsub_conn_has_moved || redis->pubsub_conn[0] != '\0';
	snprintf(redis->pubsub_conn, sizeof redis->pubsub_conn, "%s", pubsub_conn->text);
}

/* ---- data pipes ---- */

static struct hs_pipe *pipe_of(struct hs_upstream *upstream)
{
	return hs_list_entry(upstream, struct hs_pipe, upstream);
}

static void plan_liveness(struct worker *worker);

static void handled(struct worker *worker)
{
	worker->redis->host.handled(worker->redis->host.context, worker->number);
	plan_liveness(worker);
}

static void pipe_up(void *context, struct hs_upstream *upstream)
{
	struct worker *worker = context;
	struct hs_now now = now_of(worker->redis);

	hs_sim_redis_bugs_up(&worker->redis->redis_bugs, pipe_of(upstream));
	hs_flow_up(worker->flow, now, pipe_of(upstream));
	hs_flow_flush(worker->flow, now);
	handled(worker);
}

static void pipe_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct worker *worker = context;

	upstream->io = NULL;
	hs_sim_redis_bugs_before(&worker->redis->redis_bugs, worker->flow);
	hs_sim_redis_bugs_down(&worker->redis->redis_bugs, pipe_of(upstream));
	hs_flow_down(worker->flow, now_of(worker->redis), pipe_of(upstream), why);
	hs_sim_redis_bugs_after(&worker->redis->redis_bugs);
	handled(worker);
}

static void pipe_receive(void *context, struct hs_upstream *upstream, const char *data, size_t len)
{
	struct worker *worker = context;

	hs_sim_redis_bugs_before(&worker->redis->redis_bugs, worker->flow);
	worker->receiving_from = upstream->io;
	hs_flow_receive(worker->flow, now_of(worker->redis), pipe_of(upstream), data, len);
	worker->receiving_from = NULL;
	hs_sim_redis_bugs_after(&worker->redis->redis_bugs);
	handled(worker);
}

static const struct hs_sim_connection_calls pipe_calls = {pipe_up, pipe_down, pipe_receive};

static void flow_finished(void *context, struct hs_now now, struct hs_op *op)
{
	struct worker *worker = context;

	(void)now;
	hs_sim_executions_find(worker->receiving_from, op);
	hs_sim_redis_bugs_finished(&worker->redis->redis_bugs, op);
	worker->redis->host.finished(worker->redis->host.context, op);
}

static void flow_open(void *context, struct hs_pipe *pipe)
{
	struct worker *worker = context;
	const struct hs_sim_connection_options options = {
		.host = pipe->node->at.host,
		.port = pipe->node->at.port,
		.greeting =
			{
				.expected_id = pipe->hello_only ? "" : pipe->node->at.id,
				.hello_only = pipe->hello_only,
			},
		.calls = &pipe_calls,
		.context = worker,
		.ordered = pipe != &pipe->node->fetch.pipe && pipe != &pipe->node->replica.pipe,
	};

	open_connection(worker->redis, &pipe->upstream, &options);
}

static void flow_close(void *context, struct hs_pipe *pipe)
{
	struct worker *worker = context;

	if (worker->receiving_from == pipe->upstream.io)
		worker->receiving_from = NULL;
	close_connection(worker->redis, &pipe->upstream);
}

static void flow_send(void *context, struct hs_pipe *pipe)
{
	struct worker *worker = context;

	if (!hs_sim_redis_bugs_delays(&worker->redis->redis_bugs, worker->flow, pipe))
		hs_sim_connection_send(pipe->upstream.io);
}

static void flow_topology_suspect(void *context)
{
	struct worker *worker = context;

	if (!worker->redis->ended)
		hs_monitor_suspect_topology(worker->redis->monitor, now_us(worker->redis));
}

static void flow_unavailable_reason(void *context, char *text, size_t size)
{
	struct worker *worker = context;

	snprintf(text, size, "%s", worker->redis->unavailable_reason);
}

static struct hs_bytes flow_script(void *context, struct hs_bytes digest)
{
	(void)context, (void)digest;
	return (struct hs_bytes){NULL, 0};
}

/* HS_SIM_PUSH_LATE: delivers a delayed invalidation. */
static void deliver_change(void *context, void *target, uint64_t number)
{
	struct hs_sim_redis *redis = context;
	struct message *message = target;
	struct hs_bytes key = hs_buf_bytes(&message->key);

	(void)number;
	if (redis->ended)
		return;
	redis->host.changed(redis->host.context, message->worker->number, message->tracking_session,
			    message->all ? NULL : &key);
	free_message(&message);
}

static void flow_changed(void *context, struct hs_now now,
			 const struct hs_tracking_session *tracking_session,
			 const struct hs_bytes *key)
{
	struct worker *worker = context;
	struct hs_sim_redis *redis = worker->redis;
	uint64_t later_us =
		hs_sim_redis_bugs_change(&redis->redis_bugs, redis->options.liveness_us);
	struct message *message;

	if (later_us == 0)
		redis->host.changed(redis->host.context, worker->number, tracking_session, key);
	if (later_us == 0 || later_us == UINT64_MAX)
		return;
	message = hs_mem_zalloc(sizeof *message);
	*message = (struct message){
		.worker = worker, .tracking_session = tracking_session, .all = !key};
	if (key)
		hs_buf_append_bytes(&message->key, *key);
	hs_list_init(&message->link);
	hs_list_append(&redis->messages, &message->link);
	plan(redis, now.mono_us + later_us, deliver_change, message);
}

static void flow_tracking_refused(void *context, const struct hs_node *node, const char *why)
{
	(void)context, (void)node, (void)why;
}

static const struct hs_flow_calls flow_calls = {
	.finished = flow_finished,
	.open = flow_open,
	.close = flow_close,
	.send = flow_send,
	.topology_suspect = flow_topology_suspect,
	.unavailable_reason = flow_unavailable_reason,
	.script = flow_script,
	.changed = flow_changed,
	.tracking_refused = flow_tracking_refused,
};

/* ---- a worker's time ---- */

static void check_liveness(void *context, void *target, uint64_t number)
{
	struct hs_sim_redis *redis = context;
	struct worker *worker = target;

	(void)number;
	worker->liveness_planned = false;
	if (redis->ended)
		return;
	hs_flow_check(worker->flow, now_of(redis));
	handled(worker);
}

static void plan_liveness(struct worker *worker)
{
	struct hs_sim_redis *redis = worker->redis;

	if (redis->ended || worker->liveness_planned || redis->options.liveness_us == 0 ||
	    !hs_flow_wants_checks(worker->flow))
		return;
	worker->liveness_planned = true;
	plan(redis, now_us(redis) + redis->options.liveness_us, check_liveness, worker);
}

static void tick_worker(void *context, void *target, uint64_t number)
{
	struct hs_sim_redis *redis = context;
	struct worker *worker = target;

	(void)number;
	if (redis->ended)
		return;
	hs_flow_tick(worker->flow, now_of(redis));
	handled(worker);
	plan(redis, now_us(redis) + HS_SIM_TICK_US, tick_worker, worker);
}

/* ---- the topology monitor ---- */

static void plan_monitor(struct hs_sim_redis *redis);

static void monitor_up(void *context, struct hs_upstream *upstream)
{
	struct hs_sim_redis *redis = context;

	hs_monitor_up(redis->monitor, now_us(redis), upstream);
	plan_monitor(redis);
}

static void monitor_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct hs_sim_redis *redis = context;

	upstream->io = NULL;
	hs_monitor_down(redis->monitor, now_us(redis), upstream, why);
	plan_monitor(redis);
}

static void monitor_receive(void *context, struct hs_upstream *upstream, const char *data,
			    size_t len)
{
	struct hs_sim_redis *redis = context;

	hs_monitor_receive(redis->monitor, now_us(redis), upstream, data, len);
	plan_monitor(redis);
}

static const struct hs_sim_connection_calls monitor_wire_calls = {monitor_up, monitor_down,
								  monitor_receive};

static void monitor_open(void *context, struct hs_upstream *upstream,
			 const struct hs_redis_address *at)
{
	struct hs_sim_redis *redis = context;
	const struct hs_sim_connection_options options = {
		.host = at->host,
		.port = at->port,
		.greeting = {.expected_id = ""},
		.calls = &monitor_wire_calls,
		.context = redis,
	};

	open_connection(redis, upstream, &options);
}

static void engine_close(void *context, struct hs_upstream *upstream)
{
	close_connection(context, upstream);
}

static void engine_send(void *context, struct hs_upstream *upstream)
{
	(void)context;
	hs_sim_connection_send(upstream->io);
}

static uint16_t monitor_capacity(void *context, uint16_t wanted)
{
	struct hs_sim_redis *redis = context;

	(void)wanted;
	return redis->options.partitions;
}

static void monitor_routes(void *context, const struct hs_routes *routes)
{
	struct hs_sim_redis *redis = context;

	for (uint32_t i = 0; i < redis->options.workers; i++) {
		hs_routes_ref(routes, 1);
		send_message(&redis->workers[i], routes, NULL);
	}
	hs_subscriber_route(redis->subscriber, now_us(redis), routes);
	note_pubsub_conn(redis);
	hs_routes_unref(&routes);
}

/* Not needed: the world gives its cores the commands that the simulated servers have
 * (hs_sim_world_options.learned). */
static void monitor_learned(void *context, struct hs_learned *learned)
{
	(void)context;
	hs_learned_destroy(&learned);
}

static void monitor_partition(void *context, uint16_t partition,
			      const struct hs_engine_partition *stats)
{
	(void)context, (void)partition, (void)stats;
}

static void monitor_servers(void *context, const struct hs_engine_servers *servers)
{
	(void)context, (void)servers;
}

static void monitor_unavailable_reason(void *context, const char *why)
{
	struct hs_sim_redis *redis = context;

	snprintf(redis->unavailable_reason, sizeof redis->unavailable_reason, "%s", why);
}

static void monitor_startup_done(void *context)
{
	(void)context;
}

static void monitor_done(void *context, struct hs_op *op)
{
	(void)context, (void)op;
	hs_check(false); /* no part of a world asks for server options */
}

static void monitor_recounted(void *context, uint64_t number)
{
	(void)context, (void)number;
}

static const struct hs_monitor_calls monitor_calls = {
	.open = monitor_open,
	.close = engine_close,
	.send = engine_send,
	.capacity = monitor_capacity,
	.routes = monitor_routes,
	.learned = monitor_learned,
	.partition = monitor_partition,
	.servers = monitor_servers,
	.unavailable_reason = monitor_unavailable_reason,
	.startup_done = monitor_startup_done,
	.done = monitor_done,
	.recounted = monitor_recounted,
};

static void tick_monitor(void *context, void *target, uint64_t at_us)
{
	struct hs_sim_redis *redis = context;

	(void)target;
	if (redis->ended || redis->monitor_us != at_us)
		return; /* an earlier tick was planned meanwhile */
	redis->monitor_us = 0;
	hs_monitor_tick(redis->monitor, now_us(redis));
	plan_monitor(redis);
}

static void plan_monitor(struct hs_sim_redis *redis)
{
	uint64_t at_us = hs_monitor_deadline_us(redis->monitor);

	if (at_us <= now_us(redis))
		at_us = now_us(redis) + 1;
	if (redis->monitor_us > 0 && redis->monitor_us <= at_us)
		return;
	redis->monitor_us = at_us;
	hs_sim_events_plan(redis->host.events, (struct hs_sim_event){.at_us = at_us,
								     .run = tick_monitor,
								     .context = redis,
								     .number = at_us});
}

/* ---- the subscriber ---- */

static void subscriber_up(void *context, struct hs_upstream *upstream)
{
	struct hs_sim_redis *redis = context;

	hs_subscriber_up(redis->subscriber, now_us(redis), upstream);
	note_pubsub_conn(redis);
}

static void subscriber_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct hs_sim_redis *redis = context;

	upstream->io = NULL;
	hs_subscriber_down(redis->subscriber, now_us(redis), upstream, why);
	note_pubsub_conn(redis);
}

static void subscriber_receive(void *context, struct hs_upstream *upstream, const char *data,
			       size_t len)
{
	struct hs_sim_redis *redis = context;

	hs_subscriber_receive(redis->subscriber, now_us(redis), upstream, data, len);
	note_pubsub_conn(redis);
}

static const struct hs_sim_connection_calls subscriber_wire_calls = {subscriber_up, subscriber_down,
								     subscriber_receive};

static void subscriber_open(void *context, struct hs_upstream *upstream,
			    const struct hs_route_node *at)
{
	struct hs_sim_redis *redis = context;
	const struct hs_sim_connection_options options = {
		.host = at->host,
		.port = at->port,
		.greeting = {.expected_id = at->id},
		.calls = &subscriber_wire_calls,
		.context = redis,
	};

	open_connection(redis, upstream, &options);
}

static void subscriber_event(void *context, struct hs_event *event)
{
	struct hs_sim_redis *redis = context;
	struct hs_event *behind;
	uint32_t times = hs_sim_redis_bugs_event(&redis->redis_bugs, event, &behind);

	if (redis->ended || (redis->options.bug == HS_SIM_TRACKING_GAP_HIDDEN &&
			     event->kind == HS_EVENT_CHANGED_ALL))
		times = 0;
	for (uint32_t i = 0; i < times; i++) {
		hs_event_ref(event, 1);
		redis->host.event(redis->host.context, event);
	}
	if (behind)
		redis->host.event(redis->host.context, behind);
	hs_event_unref(&event);
}

static void subscriber_done(void *context, struct hs_op *op)
{
	struct hs_sim_redis *redis = context;

	if (redis->ended)
		redis->host.done(redis->host.context, op);
	else
		send_message(&redis->workers[op->worker], NULL, op);
}

static void subscriber_topology_suspect(void *context)
{
	struct hs_sim_redis *redis = context;

	if (!redis->ended)
		hs_monitor_suspect_topology(redis->monitor, now_us(redis));
}

static const struct hs_subscriber_calls subscriber_calls = {
	.open = subscriber_open,
	.close = engine_close,
	.send = engine_send,
	.event = subscriber_event,
	.done = subscriber_done,
	.topology_suspect = subscriber_topology_suspect,
};

static void tick_subscriber(void *context, void *target, uint64_t number)
{
	struct hs_sim_redis *redis = context;

	(void)target, (void)number;
	if (redis->ended)
		return;
	hs_subscriber_tick(redis->subscriber, now_us(redis));
	note_pubsub_conn(redis);
	plan(redis, now_us(redis) + HS_SIM_TICK_US, tick_subscriber, NULL);
}

/* ---- the host's calls ---- */

enum hs_submit hs_sim_redis_submit(struct hs_sim_redis *redis, struct hs_op *op)
{
	enum hs_submit submitted;

	if (redis->ended) {
		answer_ended(op);
		return HS_SUBMIT_DONE;
	}
	if (hs_sim_redis_bugs_submit(&redis->redis_bugs, op))
		return HS_SUBMIT_DONE;
	switch (op->kind) {
	case HS_OP_SUBSCRIBE:
	case HS_OP_UNSUBSCRIBE:
	case HS_OP_TRACK:
	case HS_OP_UNTRACK:
		hs_subscriber_submit(redis->subscriber, now_us(redis), op);
		note_pubsub_conn(redis);
		return HS_SUBMIT_QUEUED;
	default:
		submitted = hs_flow_submit(redis->workers[op->worker].flow, op);
		plan_liveness(&redis->workers[op->worker]);
		return submitted;
	}
}

void hs_sim_redis_cancel(struct hs_sim_redis *redis, struct hs_op *op)
{
	if (!redis->ended)
		hs_flow_cancel(redis->workers[op->worker].flow, op);
}

bool hs_sim_redis_unblock(struct hs_sim_redis *redis, struct hs_op *op, bool error)
{
	if (redis->ended || redis->options.bug == HS_SIM_UNBLOCK_IGNORED)
		return !redis->ended;
	return hs_flow_unblock(redis->workers[op->worker].flow, op, error);
}

bool hs_sim_redis_pubsub_conn_has_moved(const struct hs_sim_redis *redis)
{
	return redis->pubsub_conn_has_moved;
}

bool hs_sim_redis_flush(struct hs_sim_redis *redis, uint32_t worker)
{
	struct hs_flow *flow = redis->workers[worker].flow;

	if (!redis->ended)
		hs_sim_redis_bugs_resume(&redis->redis_bugs, flow);
	if (redis->ended || !hs_flow_needs_flush(flow) ||
	    hs_sim_redis_bugs_holds(&redis->redis_bugs, flow))
		return false;
	hs_flow_flush(flow, now_of(redis));
	return true;
}

void hs_sim_redis_unavailable_reason(const struct hs_sim_redis *redis, char *text, size_t size)
{
	snprintf(text, size, "%s", redis->unavailable_reason);
}

void hs_sim_redis_set_liveness(struct hs_sim_redis *redis, uint32_t liveness_us)
{
	redis->options.liveness_us = liveness_us;
	for (uint32_t i = 0; i < redis->options.workers; i++)
		plan_liveness(&redis->workers[i]);
}

void hs_sim_redis_silence(struct hs_sim_redis *redis, uint32_t worker)
{
	const struct hs_flow *flow = redis->workers[worker].flow;

	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		const struct hs_node *node = flow->nodes[i];

		if (node && node->fetch.pipe.upstream.io)
			hs_sim_connection_silence(node->fetch.pipe.upstream.io);
	}
}

const struct hs_slot_map *hs_sim_redis_slots(const struct hs_sim_redis *redis)
{
	return redis->slots;
}

bool hs_sim_redis_is_routed(const struct hs_sim_redis *redis)
{
	for (uint32_t i = 0; i < redis->options.workers; i++) {
		if (!redis->workers[i].routed)
			return false;
	}
	return true;
}

/* ---- beginning and end ---- */

/* The URL names the first nodes; each of them reports the others. */
static void fill_url(struct hs_sim_redis *redis)
{
	const struct hs_sim_cluster *cluster = redis->host.cluster;
	struct hs_redis_url *url = &redis->url;

	url->kind = redis->options.cluster ? HS_REDIS_CLUSTER : HS_REDIS_SINGLE;
	url->seeds_count = redis->options.cluster && hs_sim_cluster_nodes(cluster) > 1 ? 2 : 1;
	for (size_t i = 0; i < url->seeds_count; i++) {
		snprintf(url->seeds[i].host, sizeof url->seeds[i].host, "%s",
			 hs_sim_cluster_host(cluster, (uint8_t)i));
		url->seeds[i].port = hs_sim_cluster_port(cluster, (uint8_t)i);
	}
}

static void start_worker(struct hs_sim_redis *redis, uint32_t number)
{
	struct worker *worker = &redis->workers[number];
	struct hs_flow_options options = {
		.cluster = redis->options.cluster,
		.timeout_us = redis->options.timeout_us,
		.in_flight_max = redis->options.in_flight_max,
		.waiting_max = redis->options.waiting_max,
		.private_max = redis->options.private_max,
		.seed = hs_prng_next(&redis->prng),
	};

	worker->redis = redis;
	worker->number = number;
	worker->stats = hs_mem_zalloc(sizeof *worker->stats);
	worker->tracking_sessions = options.tracking_sessions = hs_tracking_sessions_create();
	worker->flow = hs_flow_create(&options, &flow_calls, worker, worker->stats);
	hs_flow_set_caching(worker->flow, redis->options.liveness_us > 0);
	plan(redis, now_us(redis) + 1 + hs_prng_below(&redis->prng, HS_SIM_TICK_US), tick_worker,
	     worker);
}

struct hs_sim_redis *hs_sim_redis_create(const struct hs_sim_redis_options *options,
					 const struct hs_sim_redis_host *host)
{
	struct hs_sim_redis *redis =
		hs_mem_zalloc(sizeof *redis + options->workers * sizeof *redis->workers);
	struct hs_subscriber_options subscriber = {.log = options->log,
						   .cluster = options->cluster};
	struct hs_monitor_options monitor = {
		.url = &redis->url,
		.refresh_ms = options->refresh_ms,
		.log = options->log,
	};

	redis->options = *options;
	redis->host = *host;
	redis->login = (struct hs_login){
		.user = "", .password = "", .login_options = "", .tls_on = "", .tls_off = ""};
	hs_prng_init(&redis->prng, options->seed);
	hs_list_init(&redis->messages);
	hs_sim_redis_bugs_init(&redis->redis_bugs, options->bug, hs_prng_next(&redis->prng));
	fill_url(redis);
	redis->slots = monitor.slots = hs_mem_zalloc(sizeof *redis->slots);
	subscriber.seed = hs_prng_next(&redis->prng);
	monitor.seed = hs_prng_next(&redis->prng);
	for (uint32_t i = 0; i < options->workers; i++)
		start_worker(redis, i);
	redis->subscriber = hs_subscriber_create(&subscriber, &subscriber_calls, redis);
	plan(redis, now_us(redis) + 1 + hs_prng_below(&redis->prng, HS_SIM_TICK_US),
	     tick_subscriber, NULL);
	redis->monitor = hs_monitor_create(&monitor, &monitor_calls, redis);
	hs_monitor_start(redis->monitor, now_us(redis));
	plan_monitor(redis);
	return redis;
}

void hs_sim_redis_end(struct hs_sim_redis *redis, bool lost)
{
	for (uint32_t i = 0; lost && i < redis->options.workers; i++)
		hs_sim_redis_bugs_died(&redis->redis_bugs, redis->workers[i].flow,
				       redis->host.cluster);
	redis->ended = true;
	redis->lost = lost;
	hs_subscriber_destroy(&redis->subscriber);
	hs_monitor_destroy(&redis->monitor);
	for (uint32_t i = 0; i < redis->options.workers; i++)
		hs_flow_destroy(&redis->workers[i].flow);
	for (struct hs_link *link = redis->messages.next; link != &redis->messages;
	     link = link->next) {
		struct message *message = hs_list_entry(link, struct message, link);

		if (message->op) {
			answer_ended(message->op);
			redis->host.done(redis->host.context, message->op);
			message->op = NULL;
		}
	}
}

uint32_t hs_sim_redis_private_of(const struct hs_sim_redis *redis, uint32_t worker)
{
	const struct hs_flow *flow = redis->workers[worker].flow;
	uint32_t count = flow->private_count;

	hs_list_each(const struct hs_private_pipe, priv, &flow->private_pipes, link)
		count -= priv->pipe.upstream.close_reason && !priv->given_up;
	return count;
}

uint32_t hs_sim_redis_private(const struct hs_sim_redis *redis)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < redis->options.workers; i++) {
		const struct hs_link *pipes = &redis->workers[i].flow->private_pipes;

		for (const struct hs_link *link = pipes->next; link != pipes; link = link->next)
			count++;
	}
	return count;
}

void hs_sim_redis_destroy(struct hs_sim_redis **pointer)
{
	struct hs_sim_redis *redis = *pointer;

	if (!redis)
		return;
	hs_check(redis->ended);
	while (!hs_list_empty(&redis->messages)) {
		struct message *message = hs_list_entry(redis->messages.next, struct message, link);

		free_message(&message);
	}
	for (uint32_t i = 0; i < redis->options.workers; i++) {
		hs_tracking_sessions_destroy(&redis->workers[i].tracking_sessions);
		hs_mem_free(&redis->workers[i].stats);
	}
	hs_sim_redis_bugs_deinit(&redis->redis_bugs);
	hs_mem_free(&redis->slots);
	hs_mem_free(pointer);
}
