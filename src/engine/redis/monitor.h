/* The topology monitor of the redis engine: on connections of its own it asks the servers for everything
 * that is not a client's request.
 *
 *     CLUSTER SLOTS   where the slots are: at the start, soon after a surprise, and every `refresh_ms`
 *     COMMAND         which commands the servers have: at the start and after a server was away
 *     INFO            how the servers are, once a second; of a cluster's masters also CLUSTER SLOT-STATS
 *     INFO keyspace   how many keys there are, when a client asks for INFO
 *     CONFIG          options of the servers, when a client asks for CONFIG GET or CONFIG SET
 *
 * The monitor is sans-IO: each call into it brings the time, and what it wants and what it finds out
 * leaves through struct hs_monitor_calls. Its drivers are a thread of the engine (monitor_thread.h), the
 * simulator and unit tests.
 *
 * One thread. From inside a call of its own, the monitor may be told hs_monitor_suspect_topology,
 * hs_monitor_configure and hs_monitor_recount, and nothing else.
 *
 * A driver connects, greets and moves bytes (struct hs_upstream), and calls hs_monitor_tick at
 * hs_monitor_deadline_us or a little later. Any other call may bring the deadline forward. */
#ifndef HS_ENGINE_REDIS_MONITOR_H
#define HS_ENGINE_REDIS_MONITOR_H

#include "command/learned.h"
#include "engine/engine.h"
#include "engine/redis/flow.h"
#include "upstream/upstream.h"
#include "upstream/url.h"

struct hs_monitor;

struct hs_monitor_calls {
	/* Connect to this address and greet in `upstream->resp`, whichever node it is: hs_monitor_up or
	 * hs_monitor_down follows, not from inside. `at` lasts as long as the connection. */
	void (*open)(void *context, struct hs_upstream *upstream,
		     const struct hs_redis_address *at);
	void (*close)(void *context, struct hs_upstream *upstream); /* the monitor forgets it */
	void (*send)(void *context, struct hs_upstream *upstream);  /* what is in upstream->out */

	/* How many partitions can be told apart from now on; the monitor wants so many. Asked with each
	 * topology of a cluster: the number is fixed once by the host. */
	uint16_t (*capacity)(void *context, uint16_t wanted);
	/* Where the slots are from now on; the reference is handed over. */
	void (*routes)(void *context, const struct hs_routes *routes);
	void (*learned)(void *context, struct hs_learned *learned); /* handed over */
	/* What is known of a partition now; `absent` too. Nothing was said of it yet: it is absent. */
	void (*partition)(void *context, uint16_t partition,
			  const struct hs_engine_partition *stats);
	/* What all masters that answer INFO agree on. */
	void (*servers)(void *context, const struct hs_engine_servers *servers);
	void (*unavailable_reason)(void *context,
				   const char *why); /* nothing can be served; "": it can again */
	/* The servers are known, or none of them answers: who waits for the first answer goes on. May
	 * be called again. */
	void (*startup_done)(void *context);
	/* An op of hs_monitor_configure is done, with its reply in op->out. */
	void (*done)(void *context, struct hs_op *op);
	/* Calls of hs_monitor_recount with numbers up to this one are answered. */
	void (*recounted)(void *context, uint64_t number);
};

struct hs_monitor_options {
	const struct hs_redis_url *url; /* outlives the monitor */
	uint64_t refresh_ms;		/* between two looks at the topology, about */
	uint64_t seed;
	struct hs_log *log;
	struct hs_slot_map *slots; /* kept up to date by the monitor alone */
};

struct hs_monitor *hs_monitor_create(const struct hs_monitor_options *options,
				     const struct hs_monitor_calls *calls, void *context);
/* Closes the connections; ops that are not done yet are done now, with an error. */
void hs_monitor_destroy(struct hs_monitor **monitor);

/* Once, first: begins to ask. Of a single server the routes are known at once. */
void hs_monitor_start(struct hs_monitor *monitor, uint64_t now_us);
void hs_monitor_tick(struct hs_monitor *monitor, uint64_t now_us);
uint64_t hs_monitor_deadline_us(const struct hs_monitor *monitor);

/* What happened to a connection that `open` was called for. */
void hs_monitor_up(struct hs_monitor *monitor, uint64_t now_us, struct hs_upstream *upstream);
void hs_monitor_down(struct hs_monitor *monitor, uint64_t now_us, struct hs_upstream *upstream,
		     const char *why);
void hs_monitor_receive(struct hs_monitor *monitor, uint64_t now_us, struct hs_upstream *upstream,
			const char *data, size_t len);

/* A server was not what the routes say, for example it answered MOVED: the monitor looks at the topology
 * soon. Cheap, however often it is called. */
void hs_monitor_suspect_topology(struct hs_monitor *monitor, uint64_t now_us);

/* CONFIG GET and CONFIG SET of the servers' options (server_options.h). op->out holds names and values of
 * heatsink's own, as many pairs as op->engine_mark says; a GET adds the servers' and puts the header in
 * front. */
void hs_monitor_configure(struct hs_monitor *monitor, uint64_t now_us, struct hs_op *op);

/* Asks the masters how many keys they have now: when calls->recounted is called with this number or a
 * later one, the partitions were told with the keys of every write that was acknowledged before this
 * call. A master that does not answer in time has those that it last told. Numbers grow with each call,
 * from 1 on. */
void hs_monitor_recount(struct hs_monitor *monitor, uint64_t now_us, uint64_t number);

#endif
