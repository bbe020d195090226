/* The redis engine of one simulated heatsink: the real code of src/engine/redis above the sockets, driven by virtual
 * time over the simulated network. The module does what engine/redis/redis.c and monitor_thread.c do with libuv: a
 * flow for each worker, one topology monitor and one subscriber for all.
 *
 *     worker ── submit ──► flow ──► pipes ──► network ──► servers
 *     monitor ── routes, after a delay ──► flows; subscriber ── events ──► host
 *
 * A message from the engine's thread to a worker takes time, as it does between real threads. It knows no client.
 * One thread. */
#ifndef HS_SIM_REDIS_ENGINE_H
#define HS_SIM_REDIS_ENGINE_H

#include "base/log.h"
#include "core/event.h"
#include "core/op.h"
#include "route/slot_map.h"
#include "sim/network.h"
#include "sim/planted_bugs.h"

struct hs_sim_redis;

struct hs_sim_redis_options {
	uint64_t seed;
	bool cluster; /* false: one server */
	uint32_t workers;
	uint16_t partitions; /* upper bound of the masters that are counted separately */
	uint32_t timeout_us; /* engine-timeout */
	uint32_t in_flight_max, waiting_max, private_max;
	uint32_t refresh_ms;
	/* Between two liveness checks of the connections whose invalidations the cache depends on; 0: no
	 * checks. */
	uint32_t liveness_us;
	uint32_t message_us_max; /* from the engine's thread to a worker */
	enum hs_sim_bug bug;
	struct hs_log *log;
};

struct hs_sim_redis_host {
	struct hs_sim_events *events;
	const struct hs_now *now;
	struct hs_sim_network *network;
	struct hs_sim_cluster *cluster;
	/* As in engine/engine.h. */
	void (*finished)(void *context, struct hs_op *op);
	void (*changed)(void *context, uint32_t worker,
			const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	void (*event)(void *context, struct hs_event *event);
	void (*done)(
		void *context,
		struct hs_op *op); /* of SUBSCRIBE, TRACK and their like, on the worker's thread */
	/* An event of this worker has been handled: replies go out, and what is submitted is flushed. */
	void (*handled)(void *context, uint32_t worker);
	void *context;
};

/* The monitor begins to look for servers; until it has routes, operations are refused. */
struct hs_sim_redis *hs_sim_redis_create(const struct hs_sim_redis_options *options,
					 const struct hs_sim_redis_host *host);
/* The process stops or dies. Connections end; with `lost`, what is in flight on them arrives only in part.
 * Operations in flight are finished with an error, and so are those that the host submits from inside or later. */
void hs_sim_redis_end(struct hs_sim_redis *redis, bool lost);
/* After hs_sim_redis_end, when no more events run. */
void hs_sim_redis_destroy(struct hs_sim_redis **redis);

const struct hs_slot_map *hs_sim_redis_slots(const struct hs_sim_redis *redis);
/* Whether channels and patterns were subscribed at one node and later at another one. */
bool hs_sim_redis_pubsub_conn_has_moved(const struct hs_sim_redis *redis);
bool hs_sim_redis_is_routed(const struct hs_sim_redis *redis); /* all workers have routes */

enum hs_submit hs_sim_redis_submit(struct hs_sim_redis *redis, struct hs_op *op);
void hs_sim_redis_cancel(struct hs_sim_redis *redis, struct hs_op *op);
/* As hs_flow_unblock. */
bool hs_sim_redis_unblock(struct hs_sim_redis *redis, struct hs_op *op, bool error);
bool hs_sim_redis_flush(struct hs_sim_redis *redis, uint32_t worker); /* true: something was sent */
void hs_sim_redis_unavailable_reason(const struct hs_sim_redis *redis, char *text, size_t size);
/* Private connections that are reserved for a client at the moment. */
uint32_t hs_sim_redis_private(const struct hs_sim_redis *redis);
/* Private connections of one worker: reserved and idle ones, without those that are about to be closed. */
uint32_t hs_sim_redis_private_of(const struct hs_sim_redis *redis, uint32_t worker);
/* Changes the time between two liveness checks; 0: none. */
void hs_sim_redis_set_liveness(struct hs_sim_redis *redis, uint32_t liveness_us);
/* The connection on which this worker fetches falls silent. For test scripts. */
void hs_sim_redis_silence(struct hs_sim_redis *redis, uint32_t worker);

#endif
