/* The redis engine's own thread: everything that is not a client's request.
 *
 *     where the slots are      CLUSTER SLOTS, at the start, on surprise, and now and then
 *     which commands there are COMMAND, at the start and whenever a server was away
 *     how the nodes are        INFO, once a second
 *     news                     pub/sub and changed keys, subscribed once for all clients
 *
 * Workers never wait for it: they are told of new routes and go on with the old ones until then.
 * Calls are for any thread unless they say otherwise. */
#ifndef HS_ENGINE_REDIS_SCOUT_H
#define HS_ENGINE_REDIS_SCOUT_H

#include "command/learned.h"
#include "core/news.h"
#include "engine/engine.h"
#include "engine/redis/conn.h"
#include "engine/redis/flow.h"
#include "engine/redis/topology.h"
#include "engine/redis/url.h"

struct hs_scout;

/* Called on the scout's thread. */
struct hs_scout_host {
	void *context;
	void (*routes)(void *context,
		       const struct hs_routes *routes);		    /* the caller's own reference */
	void (*learned)(void *context, struct hs_learned *learned); /* handed over */
	void (*news)(void *context, struct hs_news *news); /* the reference is handed over */
	void (*done)(void *context, struct hs_op *op); /* of hs_scout_ask; its reply in op->out */
	/* The calls of hs_scout_recount up to the one that returned this number are answered. */
	void (*recounted)(void *context, uint64_t number);
};

struct hs_scout_options {
	struct hs_redis_url url;
	struct hs_conn_identity identity; /* its texts and TLS context outlive the scout */
	struct hs_log *log;
	struct hs_slot_map *slots; /* kept up to date by the scout alone */
	uint64_t refresh_ms;	   /* between two looks at the topology, about */
	uint64_t start_ms_max;	   /* how long creation waits for the first answer */
};

/* Starts the thread and waits for a first answer of a server, or of all that there is none. Servers
 * that are away are no error: they are looked for until the end. The number of partitions that can be
 * told apart is fixed here (hs_scout_capacity). */
struct hs_scout *hs_scout_create(const struct hs_scout_options *options,
				 const struct hs_scout_host *host);
/* No asking any more; every op asked before is done first. */
void hs_scout_destroy(struct hs_scout **scout);

uint16_t hs_scout_capacity(const struct hs_scout *scout);
/* The last routes, NULL while there are none; the caller lets go of them. */
const struct hs_routes *hs_scout_routes(struct hs_scout *scout);

/* Somebody was surprised: look at the topology soon. Cheap, however often it is called. */
void hs_scout_surprise(struct hs_scout *scout);

/* HS_OP_LISTEN, UNLISTEN, TRACK, UNTRACK: counted over all workers, done through host.done. */
void hs_scout_ask(struct hs_scout *scout, struct hs_op *op);

/* CONFIG GET and CONFIG SET of the servers' options (server_options.h): done through host.done. op->out
 * holds `pairs` names and values of heatsink's own, behind which a GET puts the servers'. */
void hs_scout_configure(struct hs_scout *scout, struct hs_op *op, size_t pairs);
/* What all masters that answer INFO agree on. */
void hs_scout_servers(struct hs_scout *scout, struct hs_engine_servers *servers);

/* Asks the masters how many keys they have now: at host.recounted with this number, or a later one,
 * hs_scout_partition has the keys of every write that was acknowledged before the call. A master that does
 * not answer in time has those that it last told. Calls that wait are answered together. */
uint64_t hs_scout_recount(struct hs_scout *scout);
/* What the servers last said of themselves. */
void hs_scout_partition(struct hs_scout *scout, uint16_t partition,
			struct hs_engine_partition *stats);
/* Why nothing can be served; "" when it can. */
void hs_scout_trouble(struct hs_scout *scout, char *why, size_t why_size);

#endif
