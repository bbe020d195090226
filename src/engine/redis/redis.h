/* The redis engine: executes operations on a Redis or Valkey server, or on a Cluster of them, over the network.
 * The front door of this folder; engine/engine.h says which thread makes which call. The folder knows no stage, no
 * rule and no client connection. Memory: ops belong to the core (engine.h); the engine copies its options' texts.
 *
 *     flow.h         one worker: routing, order, retries, deadlines; pipe.h: one connection's operations
 *     monitor.h      topology, commands, telemetry and options of the servers
 *     subscriber.h   pub/sub messages and invalidations, once for all workers
 *     topology.h node_info.h slot_stats.h invalidation.h   pure readers of replies
 *
 * Everything but redis.c, monitor_thread.c and scripts.c is sans-IO: the simulator runs it too.
 *
 * Bad days: a connection is lost, a node is away or its queue is full (flow.h); slots move (flow.h, slots.c); no
 * server answers at the start (the engine starts and waits for one, `unavailable_reason`); an invalidation may be
 * missed (subscriber.h, fetch.c). */
#ifndef HS_ENGINE_REDIS_REDIS_H
#define HS_ENGINE_REDIS_REDIS_H

#include "engine/engine.h"

struct hs_redis_options {
	const char *url; /* redis:// rediss:// cluster:// clusters://, see upstream/url.h */
	const char *user, *password; /* used if the URL has none */
	uint64_t timeout_ms;	     /* how long an operation waits at most */
	uint32_t in_flight_max;	     /* most operations in flight on one connection */
	/* most operations of one worker that wait for one pipe, or are parked */
	uint32_t waiting_max;
	uint32_t private_max; /* most connections of one worker for blocking commands and WATCH */
	uint64_t refresh_ms;  /* average time between two polls of a Cluster's topology */
	/* Used for rediss:// and clusters://. */
	const char *tls_ca_cert_file, *tls_ca_cert_dir, *tls_cert_file, *tls_key_file;
	bool tls_skip_verify;
};

/* The name of an engine is a URL that this engine serves. */
bool hs_redis_is_url(const char *name);

/* An invalid URL or certificate is an error: `error` then holds one line that explains it. Servers that do not
 * answer are no error. */
int hs_redis_create(const struct hs_redis_options *options, const struct hs_engine_host *host,
		    struct hs_engine **engine, char *error, size_t error_size) HS_MUSTCHECK;

#endif
