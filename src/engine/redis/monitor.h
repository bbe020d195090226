/* The topology monitor: asks the servers, on connections of its own, for everything that is not a client's
 * request.
 *
 *     CLUSTER SLOTS   which node has which slot: at the start, when the topology is suspect, every `refresh_ms`
 *     COMMAND         the servers' commands: at the start and after a server was away
 *     INFO            state of the servers, once a second; of a Cluster's masters also CLUSTER SLOT-STATS
 *     INFO keyspace   numbers of keys, when a client asks for INFO
 *     CONFIG          options of the servers, for a client's CONFIG GET or CONFIG SET
 *
 * It knows no client, op queue or cache. It is sans-IO: each call brings the time, and the monitor acts through
 * struct hs_monitor_calls. Its drivers are monitor_thread.h, the simulator and unit tests. A driver connects,
 * greets and moves bytes (struct hs_upstream), and calls hs_monitor_tick at hs_monitor_deadline_us or a little
 * later; any other call may bring the deadline forward.
 *
 * One thread. From inside one of the monitor's own calls, only hs_monitor_suspect_topology, hs_monitor_configure
 * and hs_monitor_recount may be called.
 *
 * Bad days: a node that does not answer within 2 s is down, its partition is published as down, and others are
 * asked (monitor_poll.c). No node answers: the last routes stay, and the poll repeats with backoff. A different
 * Cluster answers at an address: that node is ignored, with an error in the log. */
#ifndef HS_ENGINE_REDIS_MONITOR_H
#define HS_ENGINE_REDIS_MONITOR_H

#include "command/learned.h"
#include "engine/engine.h"
#include "engine/redis/flow.h"
#include "upstream/upstream.h"
#include "upstream/url.h"

struct hs_monitor;

struct hs_monitor_calls {
	/* Connect to this address, whichever node is there, and greet in `upstream->resp`. Then call hs_monitor_up
	 * or hs_monitor_down, never from inside. `at` is valid as long as the connection. */
	void (*open)(void *context, struct hs_upstream *upstream,
		     const struct hs_redis_address *at);
	/* disconnect; do not call hs_monitor_down */
	void (*close)(void *context, struct hs_upstream *upstream);
	void (*send)(void *context, struct hs_upstream *upstream); /* upstream->out has bytes */

	/* Returns the largest possible number of partitions, which the host fixes at the first call. `wanted`: the
	 * number that the monitor wishes. Called with each new topology of a Cluster. */
	uint16_t (*capacity)(void *context, uint16_t wanted);
	/* New routes; the host takes over the reference. */
	void (*routes)(void *context, const struct hs_routes *routes);
	/* the host takes over `learned` */
	void (*learned)(void *context, struct hs_learned *learned);
	/* The state of a partition has changed. The host treats a partition that was never reported as absent. */
	void (*partition)(void *context, uint16_t partition,
			  const struct hs_engine_partition *stats);
	/* The settings that are equal at all masters whose INFO the monitor has. */
	void (*servers)(void *context, const struct hs_engine_servers *servers);
	/* `why`: the reason why no request can be served; "": the servers are available again. */
	void (*unavailable_reason)(void *context, const char *why);
	/* The servers are known, or none has answered: startup need not wait longer. May be called more than
	 * once. */
	void (*startup_done)(void *context);
	/* `op` of hs_monitor_configure is complete, with its reply in op->out. */
	void (*done)(void *context, struct hs_op *op);
	/* All calls of hs_monitor_recount with this number or a lower one are answered. */
	void (*recounted)(void *context, uint64_t number);
};

struct hs_monitor_options {
	const struct hs_redis_url *url; /* outlives the monitor */
	uint64_t refresh_ms;		/* average time between two polls of the topology */
	uint64_t seed;
	struct hs_log *log;
	struct hs_slot_map *slots; /* only the monitor writes it */
};

struct hs_monitor *hs_monitor_create(const struct hs_monitor_options *options,
				     const struct hs_monitor_calls *calls, void *context);
/* Closes the connections and completes pending ops with an error. */
void hs_monitor_destroy(struct hs_monitor **monitor);

/* The first call, once. A single server's routes are known at once. */
void hs_monitor_start(struct hs_monitor *monitor, uint64_t now_us);
void hs_monitor_tick(struct hs_monitor *monitor, uint64_t now_us);
uint64_t hs_monitor_deadline_us(const struct hs_monitor *monitor);

/* Events of a connection that calls->open was asked for. */
void hs_monitor_up(struct hs_monitor *monitor, uint64_t now_us, struct hs_upstream *upstream);
void hs_monitor_down(struct hs_monitor *monitor, uint64_t now_us, struct hs_upstream *upstream,
		     const char *why);
void hs_monitor_receive(struct hs_monitor *monitor, uint64_t now_us, struct hs_upstream *upstream,
			const char *data, size_t len);

/* The routes may be stale, for example because a server answered MOVED: the monitor polls the topology soon. The
 * call is cheap: make it for every MOVED. */
void hs_monitor_suspect_topology(struct hs_monitor *monitor, uint64_t now_us);

/* Answers CONFIG GET and CONFIG SET of the servers' options (server_options.h). The caller has written
 * op->engine_mark pairs of heatsink's own options to op->out. For a GET the monitor appends the servers' pairs and
 * puts the header in front. */
void hs_monitor_configure(struct hs_monitor *monitor, uint64_t now_us, struct hs_op *op);

/* Asks the masters how many keys they have. `number`: 1, then higher with each call. When calls->recounted is
 * called with this number or a higher one, the partitions count the keys of every write that was acknowledged
 * before this call. A master that does not answer in time keeps its previous count. */
void hs_monitor_recount(struct hs_monitor *monitor, uint64_t now_us, uint64_t number);

#endif
