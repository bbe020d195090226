/* The thread of the redis engine that drives the topology monitor (monitor.h) and the subscriber
 * (subscriber.h): a libuv loop, their connections, and what other threads ask of them and read.
 *
 * Workers never wait for it: they are sent new routes, and use the old ones until then. Calls are for any
 * thread unless they say otherwise. */
#ifndef HS_ENGINE_REDIS_MONITOR_THREAD_H
#define HS_ENGINE_REDIS_MONITOR_THREAD_H

#include "engine/redis/monitor.h"
#include "upstream/conn.h"

struct hs_monitor_thread;

struct hs_monitor_thread_options {
	const struct hs_redis_url *url; /* this and the next two outlive the thread */
	const struct hs_conn_config *conn_config;
	const struct hs_engine_host *host; /* of it learned, news, done and recounted are called */
	struct hs_slot_map *slots;	   /* kept up to date by this thread alone */
	uint64_t refresh_ms;		   /* between two looks at the topology, about */
	uint64_t start_ms_max;		   /* how long creation waits for the first answer */
	/* On the thread, or from inside its creation; the reference is handed over. */
	void (*routes)(void *context, const struct hs_routes *routes);
	void *context;
};

/* Starts the thread and waits until a server has answered, or none of them does. Servers that are away are
 * no error: the monitor goes on to look for them. The number of partitions that can be told apart is fixed
 * here. */
struct hs_monitor_thread *hs_monitor_thread_create(const struct hs_monitor_thread_options *options);
/* No asking any more; every op asked before is done first. */
void hs_monitor_thread_destroy(struct hs_monitor_thread **thread);

uint16_t hs_monitor_thread_capacity(const struct hs_monitor_thread *thread);
/* The last routes, NULL while there are none; the caller lets go of them. */
const struct hs_routes *hs_monitor_thread_routes(struct hs_monitor_thread *thread);

void hs_monitor_thread_suspect_topology(
	struct hs_monitor_thread *thread); /* hs_monitor_suspect_topology */
/* HS_OP_SUBSCRIBE, UNLISTEN, TRACK, UNTRACK, counted over all workers; and HS_OP_HOST, which is CONFIG
 * (hs_monitor_configure). Done through host->done. */
void hs_monitor_thread_submit(struct hs_monitor_thread *thread, struct hs_op *op);
/* hs_monitor_recount; returns the number. */
uint64_t hs_monitor_thread_recount(struct hs_monitor_thread *thread);

/* What the monitor last found out. */
void hs_monitor_thread_servers(struct hs_monitor_thread *thread, struct hs_engine_servers *servers);
void hs_monitor_thread_partition(struct hs_monitor_thread *thread, uint16_t partition,
				 struct hs_engine_partition *stats);
void hs_monitor_thread_failure_reason(struct hs_monitor_thread *thread, char *why, size_t why_size);

#endif
