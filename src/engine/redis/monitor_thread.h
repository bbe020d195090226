/* The thread of the redis engine that drives the topology monitor (monitor.h) and the subscriber (subscriber.h): a
 * libuv loop, their connections, a queue of ops from other threads, and a copy of the results for other threads.
 * It knows no flow: routes go to `options.routes`.
 *
 * Workers never wait for this thread: they use their routes until they get new ones. Every function but create and
 * destroy may be called by any thread. */
#ifndef HS_ENGINE_REDIS_MONITOR_THREAD_H
#define HS_ENGINE_REDIS_MONITOR_THREAD_H

#include "engine/redis/monitor.h"
#include "upstream/conn.h"

struct hs_monitor_thread;

struct hs_monitor_thread_options {
	const struct hs_redis_url *url; /* url, conn_config and host outlive the thread */
	const struct hs_conn_config *conn_config;
	const struct hs_engine_host *host; /* the thread calls learned, event, done and recounted */
	struct hs_slot_map *slots;	   /* only this thread writes it */
	uint64_t refresh_ms;		   /* average time between polls of the topology */
	uint64_t start_ms_max;		   /* how long hs_monitor_thread_create waits at most */
	/* Called on the thread, or inside hs_monitor_thread_create. The callee takes over the reference. */
	void (*routes)(void *context, const struct hs_routes *routes);
	void *context;
};

/* Starts the thread and waits, at most start_ms_max, until a server has answered or all have failed. Servers that
 * do not answer are no error: the monitor keeps trying. When create returns, the number of partitions is fixed. */
struct hs_monitor_thread *hs_monitor_thread_create(const struct hs_monitor_thread_options *options);
/* The caller submits nothing afterwards. Completes the submitted ops, then waits for the thread to end. */
void hs_monitor_thread_destroy(struct hs_monitor_thread **thread);

uint16_t hs_monitor_thread_capacity(const struct hs_monitor_thread *thread);
/* The last routes, with a reference for the caller; NULL: no routes are known yet. */
const struct hs_routes *hs_monitor_thread_routes(struct hs_monitor_thread *thread);

void hs_monitor_thread_suspect_topology(
	struct hs_monitor_thread *thread); /* calls hs_monitor_suspect_topology on the thread */
/* HS_OP_SUBSCRIBE, UNSUBSCRIBE, TRACK and UNTRACK go to the subscriber, HS_OP_HOST (CONFIG) to the monitor.
 * host->done completes the op. */
void hs_monitor_thread_submit(struct hs_monitor_thread *thread, struct hs_op *op);
/* Calls hs_monitor_recount on the thread; returns the number that host->recounted will report. */
uint64_t hs_monitor_thread_recount(struct hs_monitor_thread *thread);

/* The monitor's last results. */
void hs_monitor_thread_servers(struct hs_monitor_thread *thread, struct hs_engine_servers *servers);
void hs_monitor_thread_partition(struct hs_monitor_thread *thread, uint16_t partition,
				 struct hs_engine_partition *stats);
void hs_monitor_thread_unavailable_reason(struct hs_monitor_thread *thread, char *why,
					  size_t why_size);

#endif
