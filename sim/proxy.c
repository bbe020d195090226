#include "sim/proxy.h"

#include "base/list.h"
#include "base/mem.h"
#include "engine/redis/internal.h"
#include "engine/redis/monitor.h"
#include "engine/redis/subscriber_internal.h"
#include "sim/cluster.h"
#include "sim/misroute.h"
#include "sim/runs.h"
#include "wire/reply.h"

#include <stdio.h>

struct worker {
	struct hs_sim_proxy *proxy;
	uint32_t number;
	struct hs_flow *flow;
	struct hs_flow_stats *stats;
	struct hs_tracking_sessions *tracking_sessions;
	bool liveness_planned;
	bool routed;
	uint64_t told_us;	     /* when the last message gets there: they keep their order */
	struct hs_sim_wire *hearing; /* replies come from it just now; or NULL */
};

/* From the engine's thread to a worker. */
struct message {
	struct hs_link link; /* in proxy->messages */
	struct worker *worker;
	const struct hs_routes *routes;			    /* or */
	struct hs_op *op;				    /* that is done, or */
	const struct hs_tracking_session *tracking_session; /* of which a key has changed, or all */
	struct hs_buf key;
	bool all;
};

struct hs_sim_proxy {
	struct hs_sim_proxy_options options;
	struct hs_sim_proxy_host host;
	struct hs_prng prng;
	struct hs_login login;
	struct hs_redis_url url;
	struct hs_slot_map *slots;
	struct hs_monitor *monitor;
	struct hs_subscriber *subscriber;
	char home[HS_HOST_BYTES_MAX + 16]; /* where channels were subscribed last; "" */
	bool home_has_moved;
	struct hs_link messages;
	uint64_t monitor_us; /* when its next tick is planned */
	char trouble[HS_REDIS_WHY_BYTES];
	bool ended, lost;
	struct hs_sim_misroute misroute;
	struct worker workers[];
};

/* ---- time ---- */

static struct hs_now now_of(const struct hs_sim_proxy *proxy)
{
	return *proxy->host.now;
}

static uint64_t now_us(const struct hs_sim_proxy *proxy)
{
	return proxy->host.now->mono_us;
}

static void plan(struct hs_sim_proxy *proxy, uint64_t at_us, hs_sim_event_run *run, void *target)
{
	hs_sim_events_plan(proxy->host.events,
			   (struct hs_sim_event){
				   .at_us = at_us, .run = run, .context = proxy, .target = target});
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

static void hear(void *context, void *target, uint64_t number)
{
	struct hs_sim_proxy *proxy = context;
	struct message *message = target;
	struct worker *worker = message->worker;

	(void)number;
	if (proxy->ended)
		return; /* it is freed with the proxy */
	if (message->op) {
		proxy->host.done(proxy->host.context, message->op);
	} else {
		worker->routed = true;
		hs_sim_misroute_before(&proxy->misroute, worker->flow);
		hs_flow_route(worker->flow, now_of(proxy), message->routes);
		hs_sim_misroute_after(&proxy->misroute);
		hs_flow_flush(worker->flow, now_of(proxy));
	}
	free_message(&message);
	proxy->host.handled(proxy->host.context, worker->number);
}

static void tell(struct worker *worker, const struct hs_routes *routes, struct hs_op *op)
{
	struct hs_sim_proxy *proxy = worker->proxy;
	struct message *message = hs_mem_zalloc(sizeof *message);
	uint64_t at_us =
		now_us(proxy) + 1 + hs_prng_below(&proxy->prng, proxy->options.message_us_max + 1);

	if (at_us < worker->told_us)
		at_us = worker->told_us;
	worker->told_us = at_us;
	*message = (struct message){.worker = worker, .routes = routes, .op = op};
	hs_list_init(&message->link);
	hs_list_append(&proxy->messages, &message->link);
	plan(proxy, at_us, hear, message);
}

/* ---- connections ---- */

static void open_wire(struct hs_sim_proxy *proxy, struct hs_upstream *upstream,
		      const struct hs_sim_wire_options *options)
{
	struct hs_sim_wire_options all = *options;

	all.upstream = upstream;
	all.greeting.login = &proxy->login;
	all.greeting.resp = upstream->resp;
	upstream->io = hs_sim_wire_open(proxy->host.network, &all);
}

static void close_wire(struct hs_sim_proxy *proxy, struct hs_upstream *upstream)
{
	struct hs_sim_wire *wire = upstream->io;

	upstream->io = NULL;
	if (wire)
		hs_sim_wire_close(&wire, proxy->lost);
}

/* After every event of the subscriber. */
static void note_home(struct hs_sim_proxy *proxy)
{
	const struct hs_subscriber_conn *home = proxy->subscriber->home;

	if (!home || strcmp(home->text, proxy->home) == 0)
		return;
	proxy->home_has_moved = proxy->home_has_moved || proxy->home[0] != '\0';
	snprintf(proxy->home, sizeof proxy->home, "%s", home->text);
}

/* ---- data pipes ---- */

static struct hs_pipe *pipe_of(struct hs_upstream *upstream)
{
	return hs_list_entry(upstream, struct hs_pipe, upstream);
}

static void plan_liveness(struct worker *worker);

static void handled(struct worker *worker)
{
	worker->proxy->host.handled(worker->proxy->host.context, worker->number);
	plan_liveness(worker);
}

static void pipe_up(void *context, struct hs_upstream *upstream)
{
	struct worker *worker = context;
	struct hs_now now = now_of(worker->proxy);

	hs_sim_misroute_up(&worker->proxy->misroute, pipe_of(upstream));
	hs_flow_up(worker->flow, now, pipe_of(upstream));
	hs_flow_flush(worker->flow, now);
	handled(worker);
}

static void pipe_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct worker *worker = context;

	upstream->io = NULL;
	hs_sim_misroute_before(&worker->proxy->misroute, worker->flow);
	hs_sim_misroute_down(&worker->proxy->misroute, pipe_of(upstream));
	hs_flow_down(worker->flow, now_of(worker->proxy), pipe_of(upstream), why);
	hs_sim_misroute_after(&worker->proxy->misroute);
	handled(worker);
}

static void pipe_receive(void *context, struct hs_upstream *upstream, const char *data, size_t len)
{
	struct worker *worker = context;

	hs_sim_misroute_before(&worker->proxy->misroute, worker->flow);
	worker->hearing = upstream->io;
	hs_flow_receive(worker->flow, now_of(worker->proxy), pipe_of(upstream), data, len);
	worker->hearing = NULL;
	hs_sim_misroute_after(&worker->proxy->misroute);
	handled(worker);
}

static const struct hs_sim_wire_calls pipe_calls = {pipe_up, pipe_down, pipe_receive};

static void flow_finished(void *context, struct hs_now now, struct hs_op *op)
{
	struct worker *worker = context;

	(void)now;
	hs_sim_runs_find(worker->hearing, op);
	hs_sim_misroute_finished(&worker->proxy->misroute, op);
	worker->proxy->host.finished(worker->proxy->host.context, op);
}

static void flow_open(void *context, struct hs_pipe *pipe)
{
	struct worker *worker = context;
	const struct hs_sim_wire_options options = {
		.host = pipe->node->at.host,
		.port = pipe->node->at.port,
		.greeting =
			{
				.expected_id = pipe->bare ? "" : pipe->node->at.id,
				.bare = pipe->bare,
			},
		.calls = &pipe_calls,
		.context = worker,
		.ordered = pipe != &pipe->node->fetch.pipe && pipe != &pipe->node->replica.pipe,
	};

	open_wire(worker->proxy, &pipe->upstream, &options);
}

static void flow_close(void *context, struct hs_pipe *pipe)
{
	struct worker *worker = context;

	if (worker->hearing == pipe->upstream.io)
		worker->hearing = NULL;
	close_wire(worker->proxy, &pipe->upstream);
}

static void flow_send(void *context, struct hs_pipe *pipe)
{
	struct worker *worker = context;

	if (!hs_sim_misroute_delays(&worker->proxy->misroute, worker->flow, pipe))
		hs_sim_wire_send(pipe->upstream.io);
}

static void flow_surprise(void *context)
{
	struct worker *worker = context;

	if (!worker->proxy->ended)
		hs_monitor_surprised(worker->proxy->monitor, now_us(worker->proxy));
}

static void flow_trouble(void *context, char *text, size_t size)
{
	struct worker *worker = context;

	snprintf(text, size, "%s", worker->proxy->trouble);
}

static struct hs_bytes flow_script(void *context, struct hs_bytes digest)
{
	(void)context, (void)digest;
	return (struct hs_bytes){NULL, 0};
}

/* HS_SIM_PUSH_LATE: on its way. */
static void tell_change(void *context, void *target, uint64_t number)
{
	struct hs_sim_proxy *proxy = context;
	struct message *message = target;
	struct hs_bytes key = hs_buf_bytes(&message->key);

	(void)number;
	if (proxy->ended)
		return;
	proxy->host.changed(proxy->host.context, message->worker->number, message->tracking_session,
			    message->all ? NULL : &key);
	free_message(&message);
}

static void flow_changed(void *context, struct hs_now now,
			 const struct hs_tracking_session *tracking_session,
			 const struct hs_bytes *key)
{
	struct worker *worker = context;
	struct hs_sim_proxy *proxy = worker->proxy;
	uint64_t later_us = hs_sim_misroute_change(&proxy->misroute, proxy->options.liveness_us);
	struct message *message;

	if (later_us == 0)
		proxy->host.changed(proxy->host.context, worker->number, tracking_session, key);
	if (later_us == 0 || later_us == UINT64_MAX)
		return;
	message = hs_mem_zalloc(sizeof *message);
	*message = (struct message){
		.worker = worker, .tracking_session = tracking_session, .all = !key};
	if (key)
		hs_buf_append_bytes(&message->key, *key);
	hs_list_init(&message->link);
	hs_list_append(&proxy->messages, &message->link);
	plan(proxy, now.mono_us + later_us, tell_change, message);
}

static void flow_untracked(void *context, const struct hs_node *node, const char *why)
{
	(void)context, (void)node, (void)why;
}

static const struct hs_flow_calls flow_calls = {
	.finished = flow_finished,
	.open = flow_open,
	.close = flow_close,
	.send = flow_send,
	.surprise = flow_surprise,
	.trouble = flow_trouble,
	.script = flow_script,
	.changed = flow_changed,
	.untracked = flow_untracked,
};

/* ---- a worker's time ---- */

static void check_liveness(void *context, void *target, uint64_t number)
{
	struct hs_sim_proxy *proxy = context;
	struct worker *worker = target;

	(void)number;
	worker->liveness_planned = false;
	if (proxy->ended)
		return;
	hs_flow_check(worker->flow, now_of(proxy));
	handled(worker);
}

static void plan_liveness(struct worker *worker)
{
	struct hs_sim_proxy *proxy = worker->proxy;

	if (proxy->ended || worker->liveness_planned || proxy->options.liveness_us == 0 ||
	    !hs_flow_wants_checks(worker->flow))
		return;
	worker->liveness_planned = true;
	plan(proxy, now_us(proxy) + proxy->options.liveness_us, check_liveness, worker);
}

static void tick_worker(void *context, void *target, uint64_t number)
{
	struct hs_sim_proxy *proxy = context;
	struct worker *worker = target;

	(void)number;
	if (proxy->ended)
		return;
	hs_flow_tick(worker->flow, now_of(proxy));
	handled(worker);
	plan(proxy, now_us(proxy) + HS_SIM_TICK_US, tick_worker, worker);
}

/* ---- the topology monitor ---- */

static void plan_monitor(struct hs_sim_proxy *proxy);

static void monitor_up(void *context, struct hs_upstream *upstream)
{
	struct hs_sim_proxy *proxy = context;

	hs_monitor_up(proxy->monitor, now_us(proxy), upstream);
	plan_monitor(proxy);
}

static void monitor_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct hs_sim_proxy *proxy = context;

	upstream->io = NULL;
	hs_monitor_down(proxy->monitor, now_us(proxy), upstream, why);
	plan_monitor(proxy);
}

static void monitor_receive(void *context, struct hs_upstream *upstream, const char *data,
			    size_t len)
{
	struct hs_sim_proxy *proxy = context;

	hs_monitor_receive(proxy->monitor, now_us(proxy), upstream, data, len);
	plan_monitor(proxy);
}

static const struct hs_sim_wire_calls monitor_wire_calls = {monitor_up, monitor_down,
							    monitor_receive};

static void monitor_open(void *context, struct hs_upstream *upstream,
			 const struct hs_redis_address *at)
{
	struct hs_sim_proxy *proxy = context;
	const struct hs_sim_wire_options options = {
		.host = at->host,
		.port = at->port,
		.greeting = {.expected_id = ""},
		.calls = &monitor_wire_calls,
		.context = proxy,
	};

	open_wire(proxy, upstream, &options);
}

static void engine_close(void *context, struct hs_upstream *upstream)
{
	close_wire(context, upstream);
}

static void engine_send(void *context, struct hs_upstream *upstream)
{
	(void)context;
	hs_sim_wire_send(upstream->io);
}

static uint16_t monitor_capacity(void *context, uint16_t wanted)
{
	struct hs_sim_proxy *proxy = context;

	(void)wanted;
	return proxy->options.partitions;
}

static void monitor_routes(void *context, const struct hs_routes *routes)
{
	struct hs_sim_proxy *proxy = context;

	for (uint32_t i = 0; i < proxy->options.workers; i++) {
		hs_routes_ref(routes, 1);
		tell(&proxy->workers[i], routes, NULL);
	}
	hs_subscriber_route(proxy->subscriber, now_us(proxy), routes);
	note_home(proxy);
	hs_routes_unref(&routes);
}

/* The simulated servers have none but those that the world tells its cores of. */
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

static void monitor_trouble(void *context, const char *why)
{
	struct hs_sim_proxy *proxy = context;

	snprintf(proxy->trouble, sizeof proxy->trouble, "%s", why);
}

static void monitor_settled(void *context)
{
	(void)context;
}

static void monitor_done(void *context, struct hs_op *op)
{
	(void)context, (void)op;
	hs_check(false); /* nobody asks for options */
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
	.trouble = monitor_trouble,
	.settled = monitor_settled,
	.done = monitor_done,
	.recounted = monitor_recounted,
};

static void tick_monitor(void *context, void *target, uint64_t at_us)
{
	struct hs_sim_proxy *proxy = context;

	(void)target;
	if (proxy->ended || proxy->monitor_us != at_us)
		return; /* it was planned anew, for earlier */
	proxy->monitor_us = 0;
	hs_monitor_tick(proxy->monitor, now_us(proxy));
	plan_monitor(proxy);
}

static void plan_monitor(struct hs_sim_proxy *proxy)
{
	uint64_t at_us = hs_monitor_deadline_us(proxy->monitor);

	if (at_us <= now_us(proxy))
		at_us = now_us(proxy) + 1;
	if (proxy->monitor_us > 0 && proxy->monitor_us <= at_us)
		return;
	proxy->monitor_us = at_us;
	hs_sim_events_plan(proxy->host.events, (struct hs_sim_event){.at_us = at_us,
								     .run = tick_monitor,
								     .context = proxy,
								     .number = at_us});
}

/* ---- the subscriber ---- */

static void subscriber_up(void *context, struct hs_upstream *upstream)
{
	struct hs_sim_proxy *proxy = context;

	hs_subscriber_up(proxy->subscriber, now_us(proxy), upstream);
	note_home(proxy);
}

static void subscriber_down(void *context, struct hs_upstream *upstream, const char *why)
{
	struct hs_sim_proxy *proxy = context;

	upstream->io = NULL;
	hs_subscriber_down(proxy->subscriber, now_us(proxy), upstream, why);
	note_home(proxy);
}

static void subscriber_receive(void *context, struct hs_upstream *upstream, const char *data,
			       size_t len)
{
	struct hs_sim_proxy *proxy = context;

	hs_subscriber_receive(proxy->subscriber, now_us(proxy), upstream, data, len);
	note_home(proxy);
}

static const struct hs_sim_wire_calls subscriber_wire_calls = {subscriber_up, subscriber_down,
							       subscriber_receive};

static void subscriber_open(void *context, struct hs_upstream *upstream,
			    const struct hs_route_node *at)
{
	struct hs_sim_proxy *proxy = context;
	const struct hs_sim_wire_options options = {
		.host = at->host,
		.port = at->port,
		.greeting = {.expected_id = at->id},
		.calls = &subscriber_wire_calls,
		.context = proxy,
	};

	open_wire(proxy, upstream, &options);
}

static void subscriber_news(void *context, struct hs_event *event)
{
	struct hs_sim_proxy *proxy = context;
	struct hs_event *behind;
	uint32_t times = hs_sim_misroute_event(&proxy->misroute, event, &behind);

	if (proxy->ended ||
	    (proxy->options.mistake == HS_SIM_COVER_LOST && event->kind == HS_EVENT_CHANGED_ALL))
		times = 0;
	for (uint32_t i = 0; i < times; i++) {
		hs_event_ref(event, 1);
		proxy->host.event(proxy->host.context, event);
	}
	if (behind)
		proxy->host.event(proxy->host.context, behind);
	hs_event_unref(&event);
}

static void subscriber_done(void *context, struct hs_op *op)
{
	struct hs_sim_proxy *proxy = context;

	if (proxy->ended)
		proxy->host.done(proxy->host.context, op);
	else
		tell(&proxy->workers[op->worker], NULL, op);
}

static void subscriber_surprise(void *context)
{
	struct hs_sim_proxy *proxy = context;

	if (!proxy->ended)
		hs_monitor_surprised(proxy->monitor, now_us(proxy));
}

static const struct hs_subscriber_calls subscriber_calls = {
	.open = subscriber_open,
	.close = engine_close,
	.send = engine_send,
	.event = subscriber_news,
	.done = subscriber_done,
	.surprise = subscriber_surprise,
};

static void tick_subscriber(void *context, void *target, uint64_t number)
{
	struct hs_sim_proxy *proxy = context;

	(void)target, (void)number;
	if (proxy->ended)
		return;
	hs_subscriber_tick(proxy->subscriber, now_us(proxy));
	note_home(proxy);
	plan(proxy, now_us(proxy) + HS_SIM_TICK_US, tick_subscriber, NULL);
}

/* ---- the host's calls ---- */

enum hs_submit hs_sim_proxy_submit(struct hs_sim_proxy *proxy, struct hs_op *op)
{
	enum hs_submit submitted;

	if (proxy->ended) {
		answer_ended(op);
		return HS_SUBMIT_DONE;
	}
	if (hs_sim_misroute_submit(&proxy->misroute, op))
		return HS_SUBMIT_DONE;
	switch (op->kind) {
	case HS_OP_SUBSCRIBE:
	case HS_OP_UNSUBSCRIBE:
	case HS_OP_TRACK:
	case HS_OP_UNTRACK:
		hs_subscriber_ask(proxy->subscriber, now_us(proxy), op);
		note_home(proxy);
		return HS_SUBMIT_QUEUED;
	default:
		submitted = hs_flow_submit(proxy->workers[op->worker].flow, op);
		plan_liveness(&proxy->workers[op->worker]);
		return submitted;
	}
}

void hs_sim_proxy_cancel(struct hs_sim_proxy *proxy, struct hs_op *op)
{
	if (!proxy->ended)
		hs_flow_cancel(proxy->workers[op->worker].flow, op);
}

bool hs_sim_proxy_unblock(struct hs_sim_proxy *proxy, struct hs_op *op, bool error)
{
	if (proxy->ended || proxy->options.mistake == HS_SIM_UNBLOCK_LOST)
		return !proxy->ended;
	return hs_flow_unblock(proxy->workers[op->worker].flow, op, error);
}

bool hs_sim_proxy_home_has_moved(const struct hs_sim_proxy *proxy)
{
	return proxy->home_has_moved;
}

bool hs_sim_proxy_flush(struct hs_sim_proxy *proxy, uint32_t worker)
{
	struct hs_flow *flow = proxy->workers[worker].flow;

	if (!proxy->ended)
		hs_sim_misroute_resume(&proxy->misroute, flow);
	if (proxy->ended || !hs_flow_needs_flush(flow) ||
	    hs_sim_misroute_holds(&proxy->misroute, flow))
		return false;
	hs_flow_flush(flow, now_of(proxy));
	return true;
}

void hs_sim_proxy_trouble(const struct hs_sim_proxy *proxy, char *text, size_t size)
{
	snprintf(text, size, "%s", proxy->trouble);
}

void hs_sim_proxy_set_liveness(struct hs_sim_proxy *proxy, uint32_t liveness_us)
{
	proxy->options.liveness_us = liveness_us;
	for (uint32_t i = 0; i < proxy->options.workers; i++)
		plan_liveness(&proxy->workers[i]);
}

void hs_sim_proxy_silence(struct hs_sim_proxy *proxy, uint32_t worker)
{
	const struct hs_flow *flow = proxy->workers[worker].flow;

	for (uint16_t i = 0; i < flow->nodes_count; i++) {
		const struct hs_node *node = flow->nodes[i];

		if (node && node->fetch.pipe.upstream.io)
			hs_sim_wire_silence(node->fetch.pipe.upstream.io);
	}
}

const struct hs_slot_map *hs_sim_proxy_slots(const struct hs_sim_proxy *proxy)
{
	return proxy->slots;
}

bool hs_sim_proxy_is_routed(const struct hs_sim_proxy *proxy)
{
	for (uint32_t i = 0; i < proxy->options.workers; i++) {
		if (!proxy->workers[i].routed)
			return false;
	}
	return true;
}

/* ---- beginning and end ---- */

/* The first nodes: any of them tells of the others. */
static void fill_url(struct hs_sim_proxy *proxy)
{
	const struct hs_sim_cluster *cluster = proxy->host.cluster;
	struct hs_redis_url *url = &proxy->url;

	url->kind = proxy->options.cluster ? HS_REDIS_CLUSTER : HS_REDIS_SINGLE;
	url->seeds_count = proxy->options.cluster && hs_sim_cluster_nodes(cluster) > 1 ? 2 : 1;
	for (size_t i = 0; i < url->seeds_count; i++) {
		snprintf(url->seeds[i].host, sizeof url->seeds[i].host, "%s",
			 hs_sim_cluster_host(cluster, (uint8_t)i));
		url->seeds[i].port = hs_sim_cluster_port(cluster, (uint8_t)i);
	}
}

static void start_worker(struct hs_sim_proxy *proxy, uint32_t number)
{
	struct worker *worker = &proxy->workers[number];
	struct hs_flow_options options = {
		.cluster = proxy->options.cluster,
		.timeout_us = proxy->options.timeout_us,
		.in_flight_max = proxy->options.in_flight_max,
		.waiting_max = proxy->options.waiting_max,
		.private_max = proxy->options.private_max,
		.seed = hs_prng_next(&proxy->prng),
	};

	worker->proxy = proxy;
	worker->number = number;
	worker->stats = hs_mem_zalloc(sizeof *worker->stats);
	worker->tracking_sessions = options.tracking_sessions = hs_tracking_sessions_create();
	worker->flow = hs_flow_create(&options, &flow_calls, worker, worker->stats);
	hs_flow_keep(worker->flow, proxy->options.liveness_us > 0);
	plan(proxy, now_us(proxy) + 1 + hs_prng_below(&proxy->prng, HS_SIM_TICK_US), tick_worker,
	     worker);
}

struct hs_sim_proxy *hs_sim_proxy_create(const struct hs_sim_proxy_options *options,
					 const struct hs_sim_proxy_host *host)
{
	struct hs_sim_proxy *proxy =
		hs_mem_zalloc(sizeof *proxy + options->workers * sizeof *proxy->workers);
	struct hs_subscriber_options subscriber = {.log = options->log,
						   .cluster = options->cluster};
	struct hs_monitor_options monitor = {
		.url = &proxy->url,
		.refresh_ms = options->refresh_ms,
		.log = options->log,
	};

	proxy->options = *options;
	proxy->host = *host;
	proxy->login = (struct hs_login){
		.user = "", .password = "", .login_options = "", .tls_on = "", .tls_off = ""};
	hs_prng_init(&proxy->prng, options->seed);
	hs_list_init(&proxy->messages);
	hs_sim_misroute_init(&proxy->misroute, options->mistake, hs_prng_next(&proxy->prng));
	fill_url(proxy);
	proxy->slots = monitor.slots = hs_mem_zalloc(sizeof *proxy->slots);
	subscriber.seed = hs_prng_next(&proxy->prng);
	monitor.seed = hs_prng_next(&proxy->prng);
	for (uint32_t i = 0; i < options->workers; i++)
		start_worker(proxy, i);
	proxy->subscriber = hs_subscriber_create(&subscriber, &subscriber_calls, proxy);
	plan(proxy, now_us(proxy) + 1 + hs_prng_below(&proxy->prng, HS_SIM_TICK_US),
	     tick_subscriber, NULL);
	proxy->monitor = hs_monitor_create(&monitor, &monitor_calls, proxy);
	hs_monitor_start(proxy->monitor, now_us(proxy));
	plan_monitor(proxy);
	return proxy;
}

void hs_sim_proxy_end(struct hs_sim_proxy *proxy, bool lost)
{
	for (uint32_t i = 0; lost && i < proxy->options.workers; i++)
		hs_sim_misroute_died(&proxy->misroute, proxy->workers[i].flow, proxy->host.cluster);
	proxy->ended = true;
	proxy->lost = lost;
	hs_subscriber_destroy(&proxy->subscriber);
	hs_monitor_destroy(&proxy->monitor);
	for (uint32_t i = 0; i < proxy->options.workers; i++)
		hs_flow_destroy(&proxy->workers[i].flow);
	for (struct hs_link *link = proxy->messages.next; link != &proxy->messages;
	     link = link->next) {
		struct message *message = hs_list_entry(link, struct message, link);

		if (message->op) {
			answer_ended(message->op);
			proxy->host.done(proxy->host.context, message->op);
			message->op = NULL;
		}
	}
}

uint32_t hs_sim_proxy_private_of(const struct hs_sim_proxy *proxy, uint32_t worker)
{
	const struct hs_flow *flow = proxy->workers[worker].flow;
	uint32_t count = flow->private_count;

	hs_list_each(const struct hs_private_pipe, priv, &flow->private_pipes, link)
		count -= priv->pipe.upstream.close_reason && !priv->given_up;
	return count;
}

uint32_t hs_sim_proxy_private(const struct hs_sim_proxy *proxy)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < proxy->options.workers; i++) {
		const struct hs_link *pipes = &proxy->workers[i].flow->private_pipes;

		for (const struct hs_link *link = pipes->next; link != pipes; link = link->next)
			count++;
	}
	return count;
}

void hs_sim_proxy_destroy(struct hs_sim_proxy **pointer)
{
	struct hs_sim_proxy *proxy = *pointer;

	if (!proxy)
		return;
	hs_check(proxy->ended);
	while (!hs_list_empty(&proxy->messages)) {
		struct message *message = hs_list_entry(proxy->messages.next, struct message, link);

		free_message(&message);
	}
	for (uint32_t i = 0; i < proxy->options.workers; i++) {
		hs_tracking_sessions_destroy(&proxy->workers[i].tracking_sessions);
		hs_mem_free(&proxy->workers[i].stats);
	}
	hs_sim_misroute_deinit(&proxy->misroute);
	hs_mem_free(&proxy->slots);
	hs_mem_free(pointer);
}
