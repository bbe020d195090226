/* The front door of the simulator: one simulated world.
 *
 * The simulator runs whole heatsinks in virtual time, without a machine: the real cores and stages (the objects that
 * serve clients in production), the real code of src/engine/redis above its sockets, simulated clients, and either a
 * simulated engine like the embedded one or a simulated network with simulated Redis servers that fail. Checkers
 * then compare what clients saw with the laws of docs/ARCHITECTURE.md. `heatsink sim check` does that a thousand
 * times a second on one core; docs/SIMULATOR.md says what a world contains, what never happens in it, and which law
 * is checked where.
 *
 *     a schedule     schedule.h (run and check one), plan.h (what a seed draws), shrink.c (a smaller plan, same law)
 *     the world      world.h, events.h (virtual time), heatsink.h (one process), driver.c (the I/O side of a core),
 *                    core_events.c, rules.c, truth.c
 *     engines        engine.h on store.h (like the embedded one), redis_engine.h (the real redis engine)
 *     servers        servers.h, cluster.h, server_internal.h, network.h, faults.h (what fails, and when)
 *     clients        load.h (random), client_caches.h (CLIENT TRACKING), companions.h (BLPOP, SUBSCRIBE)
 *     checkers       check.h, order.h (linearizability), executions.h, duplicates.h, leftovers.h, timeline.h
 *     planted bugs   planted_bugs.h (the list), cache_bugs.h, op_bugs.h, redis_bugs.h, stage.h
 *
 * The simulator does not know real clocks, threads, sockets, files and random sources. All chance comes from the
 * seed, so that the same options and the same calls give the same world, byte for byte, on every machine. Of src
 * it includes engine and the layers below it (base, wire, command, keyspace, acl, heat, route, core, push,
 * absorb, stages, upstream; LAYERS in tests/lib/source_rules.py), also core/internal.h, engine/redis/internal.h
 * and engine/redis/subscriber_internal.h. It must not include serve or cli, and does not need http or tls. Of
 * src, only src/cli includes sim (tests/lib/source_rules.py); tests and fuzz include it, too. A world is
 * single-threaded; `heatsink sim check --jobs` runs worlds in several processes.
 *
 * When a checker finds a violation, it fills a struct hs_sim_verdict with the law and a sentence, and hs_sim_check
 * (schedule.h) returns HS_EINVAL. `heatsink sim check` prints the seed, shrinks the plan, prints the smallest
 * schedule (script, plan, law, history) to stdout and exits with 1. It writes no file: the seed replays the
 * schedule (`--seed N --schedules 1` with the same --focus and --bug). A violation that is found while the world
 * runs (a limit is exceeded, a command runs twice) is noted in `broken`, which hs_sim_load_check reads when it
 * begins; one that is found later, during the last checks, is not reported. A search for an order that undoes more
 * choices for one key than ORDER_STEPS_MAX (load_check.c) is HS_ELIMIT ("undecided"): no law is known to be
 * broken, and the later checks of the schedule (heat, gauges, leftovers) are skipped. `heatsink sim check` then
 * prints the seed to stderr, does not shrink the plan, goes on with the other seeds, and exits with 1, too.
 *
 * A world is used in two ways. A test writes a script: connect, send, settle, compare what came back. The random
 * load (load.h) plans events of its own and lets hs_sim_world_settle run them. */
#ifndef HS_SIM_WORLD_H
#define HS_SIM_WORLD_H

#include "base/buf.h"
#include "base/log.h"
#include "base/now.h"
#include "base/prng.h"
#include "core/core.h"
#include "core/stage.h"
#include "sim/check.h"
#include "sim/coverage.h"
#include "sim/duplicates.h"
#include "sim/engine.h"
#include "sim/events.h"
#include "sim/executions.h"
#include "sim/faults.h"
#include "sim/heatsink.h"
#include "sim/servers.h"
#include "sim/timeline.h"

#include <stdbool.h>
#include <stdint.h>

enum { HS_SIM_RULES_MAX = 4 };

/* The contract of one key: rules[i] is that of key number i (names.h). Times are in µs. */
struct hs_sim_rule {
	uint32_t stale_us, stale_while_revalidate_us, stale_if_error_us, ttl_us, negative_ttl_us;
	uint32_t jitter_percent, refresh_ahead;
	bool admit_all;
	bool replica_reads;
	uint8_t copies; /* as in the contract: 0, the number of copies, or HS_COPIES_AUTO */
};

struct hs_sim_world_options {
	/* Processes in front of the same servers; with the simulated embedded engine: 1. */
	uint32_t heatsinks;
	uint32_t workers; /* of each heatsink */
	/* Its seed, partitions and planted bug are the world's. */
	struct hs_sim_engine_options engine;
	struct hs_sim_servers_options servers; /* when `on`: in place of `engine` */
	enum hs_op_scope op_scope; /* with `servers`: how far a client's order reaches */
	struct hs_core_options core;
	uint32_t peer_us_max;  /* upper bound of the delay of a message from one core to another */
	uint32_t event_us_max; /* upper bound of the delay of an event from the engine to a core */
	/* Sets of each worker's table of hot keys (heat/heat.h); 0: heat is not counted. */
	uint32_t heat_sets;
	/* How long a round of events lasts at most; replies and requests are flushed at its end. */
	uint32_t round_us_max;
	struct hs_sim_rule rules[HS_SIM_RULES_MAX];
	uint32_t rules_count;
	uint32_t tied; /* keys 1 to `tied` share the slot of key0 (sim/names.h) */
	/* Commands that the servers have beyond heatsink's table; NULL: none. */
	const struct hs_learned *learned;
	/* How long a worker may be delayed after it has read the clock: a machine under load. */
	uint32_t slow_us_max;
	/* Adds the stage of sim/stage.h, which delays requests and holds clients at random. */
	bool stage;
	/* Virtual time that each reading of the clock costs: makes commands slow. */
	uint32_t look_us;
	bool script; /* write the script: faults, requests, replies, what servers ran and refused */
	/* Called with each line of the script as it is written, for a process that may die before it can print the
	 * whole; or NULL. */
	void (*print_line)(struct hs_bytes line);
	const struct hs_log *log; /* NULL: log lines are dropped */
};

/* One worker, four partitions that answer reads at once, generous limits. */
struct hs_sim_world_options hs_sim_world_defaults(uint64_t seed);

struct hs_sim_client;
struct hs_sim_ran;

/* A fetch in flight: a read whose reply the cache of this worker will store. */
struct hs_sim_fetch_in_flight {
	const struct hs_sim_worker *worker;
	const struct hs_op *op;
};

struct hs_sim_world {
	struct hs_sim_world_options options;
	struct hs_now now;
	struct hs_sim_events events;
	struct hs_prng prng;
	struct hs_sim_store *store;
	struct hs_sim_engine *engine;
	/* In place of store and engine; NULL: there are no servers. */
	struct hs_sim_cluster *cluster;
	struct hs_sim_network *network; /* between heatsinks and cluster */
	struct hs_sim_faults faults;
	struct hs_sim_heatsink heatsinks[HS_SIM_HEATSINKS_MAX];
	/* The row of stages with sim/stage.h in it. */
	const struct hs_stage *stages[HS_STAGES_MAX + 1];
	/* The shared cache of each worker; all workers of a heatsink have the same one. */
	struct hs_shared **shared_caches;
	const struct hs_rules *rules; /* every rule of the options */
	const struct hs_rules *no_rules;
	bool rules_on;		   /* the latest setting; `unaware_workers` have an older one */
	enum hs_mitigate mitigate; /* the latest setting, too */
	uint32_t unaware_workers;  /* workers that the latest setting has not reached */
	uint64_t switches;	   /* changes of these settings */
	/* The true values of keys; empty until a load inits it. */
	struct hs_sim_timelines timelines;
	struct hs_sim_duplicates duplicates; /* commands that servers must run only once */
	/* A bit for each key that the order of law 2 is not checked for (sim/client_caches.c). */
	uint64_t tainted;
	/* A server has run a command; may be NULL. */
	void (*ran)(void *context, const struct hs_sim_ran *ran);
	void *ran_context;
	/* A failover or an empty restart has lost the last writes of this key; may be NULL. */
	void (*lost)(void *context, uint32_t key);
	void *lost_context;
	struct hs_sim_fetch_in_flight *fetches; /* in no order */
	size_t fetches_count, fetches_cap;
	struct hs_log silence;	/* drops all lines: for options without a log */
	uint32_t workers_count; /* of all heatsinks together */
	struct hs_sim_worker *workers;
	struct hs_heat **heats;	       /* one for each worker; NULL: heat is not counted */
	uint64_t start_us;	       /* when the heats began to count */
	struct hs_sim_client *clients; /* newest first */
	uint64_t client_ids;
	uint64_t steps;	      /* counts events: a finer clock than `now` */
	uint64_t external;    /* commands that other clients ran directly at the servers */
	struct hs_link event; /* events in flight to workers (core_events.c) */
	struct hs_op **reads; /* HS_SIM_READ_TRACKED_LATE: reads in flight */
	size_t reads_count, reads_cap;
	struct hs_sim_executions executions;
	struct hs_sim_coverage_counts coverage;
	bool faults_stopped; /* hs_sim_world_stop_faults was called */
	bool stuck;	     /* some requests in flight will never be answered */
	/* The first violation that was found while the world ran; read by hs_sim_load_check. */
	struct hs_sim_verdict broken;
};

typedef void hs_sim_client_orphaned(void *context, struct hs_sim_client *client);
/* Gets the replies of one client, one call for each. NULL: they stay in `received`. */
typedef void hs_sim_client_on_reply(void *context, struct hs_sim_client *client,
				    struct hs_bytes reply);

struct hs_sim_client {
	struct hs_sim_client *next;
	struct hs_sim_world *world;
	uint32_t worker;	    /* index in world->workers */
	struct hs_session *session; /* NULL: the connection has ended */
	uint64_t id;		    /* the session's id */
	struct hs_buf received;	    /* replies that on_reply has not taken */
	uint64_t arrived_us;	    /* when the last bytes of `unread` arrived */
	struct hs_buf unread;	    /* requests that the core does not take at the moment */
	struct hs_buf unsent;	    /* replies while reading_paused */
	bool reading_paused;
	bool cut;    /* the core cut it off at the output limit */
	bool orphan; /* its heatsink has died */
	bool broken; /* bytes arrived that are no RESP reply */
	hs_sim_client_on_reply *on_reply;
	hs_sim_client_orphaned *orphaned; /* called when its heatsink dies; may be NULL */
	void *context;
};

struct hs_sim_world *hs_sim_world_create(const struct hs_sim_world_options *options);
/* Ends every connection and runs everything in flight to its end first. */
void hs_sim_world_destroy(struct hs_sim_world **world);

struct hs_core *hs_sim_world_core(struct hs_sim_world *world, uint32_t worker);

/* Whether at least one heatsink runs. */
bool hs_sim_world_is_up(const struct hs_sim_world *world);

/* Runs the periodic work of every core (hs_core_tick). */
void hs_sim_world_tick(struct hs_sim_world *world);
/* As CONFIG SET fold, on every core. */
void hs_sim_world_set_fold(struct hs_sim_world *world, bool fold);
/* As HEAT MITIGATE and HEAT RULE. The change reaches each core after a delay of its own. */
void hs_sim_world_set_mitigations(struct hs_sim_world *world, enum hs_mitigate mitigate,
				  bool rules_on);
/* The contract that this key has on at least one worker at the moment; NULL: every worker treats it as strict. */
const struct hs_sim_rule *hs_sim_world_rule(const struct hs_sim_world *world, uint32_t key);
/* The true value of a key. *ttl_ms is its remaining time to live; 0: it does not expire. */
int64_t hs_sim_world_peek(struct hs_sim_world *world, uint32_t key, int64_t *ttl_ms);
bool hs_sim_world_same_partition(const struct hs_sim_world *world, uint32_t key, uint32_t other);
/* Another client runs this command directly at the key's server, now. False: the server takes no commands at
 * the moment, or the engine is the simulated embedded one, which has no other clients. The reply, in RESP2, is
 * appended. */
bool hs_sim_world_do_external(struct hs_sim_world *world, struct hs_bytes key, size_t argc,
			      const struct hs_bytes *argv, struct hs_buf *reply);
/* Ends all faults and starts no new ones; returns when all servers serve again. */
void hs_sim_world_stop_faults(struct hs_sim_world *world);
/* Disconnects every client and runs everything in flight to its end. */
void hs_sim_world_hang_up(struct hs_sim_world *world);

/* Runs events until everything is answered and has arrived. With the simulated embedded engine that is until no
 * event is left. In front of servers events never end: it is until nothing is in flight, and a short time more. */
void hs_sim_world_settle(struct hs_sim_world *world);
/* Runs the earliest event; false: there is none. */
bool hs_sim_world_step(struct hs_sim_world *world);
/* Lets this much virtual time pass: runs the events that fall into it, and the periodic ticks. */
void hs_sim_world_pass(struct hs_sim_world *world, uint64_t us);

/* Plans a call `in_us` from now. A load plans its own events with it. */
void hs_sim_world_plan(struct hs_sim_world *world, uint64_t in_us, hs_sim_event_run *run,
		       void *context, void *target);

/* Clients live as long as their world. */
struct hs_sim_client *hs_sim_client_connect(struct hs_sim_world *world, uint32_t worker);
/* Bytes arrive at the worker now. They are lost if the connection has ended. */
void hs_sim_client_send(struct hs_sim_client *client, struct hs_bytes bytes);
/* Sends one request, given as words separated by spaces: "SET k v". */
void hs_sim_client_request(struct hs_sim_client *client, const char *words);
void hs_sim_client_disconnect(struct hs_sim_client *client);
void hs_sim_client_lose(struct hs_sim_client *client); /* its heatsink has died */
/* Replies pile up while reading is paused, and arrive when it is resumed. */
void hs_sim_client_pause_reading(struct hs_sim_client *client, bool reading_paused);

#endif
