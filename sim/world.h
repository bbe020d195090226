/* A whole heatsink without a machine: real cores (the very objects that serve clients), a virtual
 * clock, clients that are byte queues, and the simulated engine. It does what the libuv driver does
 * between a core and the outside, and everything that is chance comes from one seed: the same
 * options and the same calls give the same world, byte for byte.
 *
 * Two ways of use. A test writes a script: connect, send, settle, look at what came back. The
 * random load (sim/load.h) plans events of its own and lets hs_sim_world_settle run them. One
 * thread. */
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

/* The contract of one key: rule i is that of key%u with i. Times are in µs. */
struct hs_sim_rule {
	uint32_t stale_us, stale_while_revalidate_us, stale_if_error_us, ttl_us, negative_ttl_us;
	uint32_t jitter_percent, refresh_ahead;
	bool admit_all;
	bool replica_reads;
	uint8_t copies; /* as in the contract: 0, places, or HS_COPIES_AUTO */
};

struct hs_sim_world_options {
	uint32_t heatsinks; /* processes, in front of the same servers; an engine of one's own: 1 */
	uint32_t workers;   /* of each */
	struct hs_sim_engine_options engine; /* its seed, partitions and mistake are the world's */
	struct hs_sim_servers_options servers; /* when they are on: instead of the engine */
	enum hs_op_scope op_scope;	       /* in front of servers */
	struct hs_core_options core;
	uint32_t peer_us_max;  /* from one core to another */
	uint32_t event_us_max; /* from the engine to a core */
	uint32_t heat_sets;    /* of each core's heat, for keys; 0: nothing is counted */
	uint32_t round_us_max; /* how long a round of events lasts: what waits leaves behind it */
	struct hs_sim_rule rules[HS_SIM_RULES_MAX];
	uint32_t rules_count;
	uint32_t tied;			  /* keys 1 … so many are of key0's slot (sim/names.h) */
	const struct hs_learned *learned; /* commands of the server beside ours; NULL: none */
	/* How long a worker may be kept from going on after it has read the clock. */
	uint32_t slow_us_max;
	bool stage;	  /* a stage that delays and holds at random is in the row (sim/stage.h) */
	uint32_t look_us; /* what a look at the clock costs: makes commands slow */
	bool script;	  /* what happens to servers, and what they run, is written down */
	/* Called with each line of the script as it is written, for a process that may not live to print it; or NULL. */
	void (*print_line)(struct hs_bytes line);
	const struct hs_log *log; /* NULL: nobody listens */
};

/* One worker, four partitions that answer reads at once, generous limits. */
struct hs_sim_world_options hs_sim_world_defaults(uint64_t seed);

struct hs_sim_client;
struct hs_sim_ran;

/* A read under way that is to be kept, and the worker that asked for it. */
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
	struct hs_sim_cluster *cluster; /* instead of store and engine, or NULL */
	struct hs_sim_network *network; /* to it */
	struct hs_sim_faults faults;
	struct hs_sim_heatsink heatsinks[HS_SIM_HEATSINKS_MAX];
	const struct hs_stage *stages[HS_STAGES_MAX + 1]; /* with one for the simulator */
	struct hs_shared **shared_caches;		  /* of each worker: all the same one */
	const struct hs_rules *rules;			  /* all there are */
	const struct hs_rules *no_rules;
	bool rules_on;			   /* as they shall be; some workers may not know yet */
	enum hs_mitigate mitigate;	   /* the same */
	uint32_t unaware_workers;	   /* so many do not */
	uint64_t switches;		   /* how often that was changed */
	struct hs_sim_timelines timelines; /* what keys held; nothing is noted before it is made */
	struct hs_sim_duplicates duplicates; /* what servers have run, and must run once */
	uint64_t tainted; /* a bit for each key whose order nobody can tell: sim/client_caches.c */
	/* A server has run something; NULL: nobody wants to know. */
	void (*ran)(void *context, const struct hs_sim_ran *ran);
	void *ran_context;
	/* A failover has lost what this key held; NULL: nobody wants to know. */
	void (*lost)(void *context, uint32_t key);
	void *lost_context;
	struct hs_sim_fetch_in_flight *fetches; /* reads under way that are to be kept */
	size_t fetches_count, fetches_cap;
	struct hs_log silence;
	uint32_t workers_count; /* of all heatsinks */
	struct hs_sim_worker *workers;
	struct hs_heat **heats;	       /* one of each worker, or NULL */
	uint64_t start_us;	       /* when they began to count */
	struct hs_sim_client *clients; /* newest first */
	uint64_t client_ids;
	uint64_t steps;	      /* counts what happens: finer than the clock */
	uint64_t external;    /* commands that servers ran past heatsink */
	struct hs_link event; /* on its way to workers */
	struct hs_op **reads; /* HS_SIM_READ_TRACKED_LATE: under way */
	size_t reads_count, reads_cap;
	struct hs_sim_executions executions;
	struct hs_sim_coverage_counts coverage;
	bool faults_stopped;	      /* nothing goes wrong any more */
	bool stuck;		      /* requests are under way that no server will answer */
	struct hs_sim_verdict broken; /* of the limits that must hold at every moment: law 6 */
};

typedef void hs_sim_client_orphaned(void *context, struct hs_sim_client *client);
/* Where the replies of one client go, one call each. NULL: they stay in `received`. */
typedef void hs_sim_client_on_reply(void *context, struct hs_sim_client *client,
				    struct hs_bytes reply);

struct hs_sim_client {
	struct hs_sim_client *next;
	struct hs_sim_world *world;
	uint32_t worker;
	struct hs_session *session; /* NULL: the connection has ended */
	uint64_t id;		    /* the session's */
	struct hs_buf received;	    /* what came back and was not heard yet */
	uint64_t arrived_us;	    /* when the last bytes did that the core has not taken */
	struct hs_buf unread;	    /* sent, but the core takes no input now */
	struct hs_buf unsent;	    /* replies while the client does not read */
	bool reading_paused;	    /* does not read */
	bool cut;		    /* was cut off, not closed */
	bool orphan;		    /* its heatsink has died */
	bool broken;		    /* something came that is no reply */
	hs_sim_client_on_reply *on_reply;
	hs_sim_client_orphaned *orphaned; /* its heatsink has died; may be NULL */
	void *context;
};

struct hs_sim_world *hs_sim_world_create(const struct hs_sim_world_options *options);
/* Ends every connection and lets everything under way come to its end first. */
void hs_sim_world_destroy(struct hs_sim_world **world);

struct hs_core *hs_sim_world_core(struct hs_sim_world *world, uint32_t worker);

/* Whether there is a heatsink to connect to. */
bool hs_sim_world_is_up(const struct hs_sim_world *world);

/* The regular work of every core. */
void hs_sim_world_tick(struct hs_sim_world *world);
/* As CONFIG SET fold: every core is told. */
void hs_sim_world_set_fold(struct hs_sim_world *world, bool fold);
/* As HEAT MITIGATE and HEAT RULE: every core is told, each in its own time. */
void hs_sim_world_set_mitigations(struct hs_sim_world *world, enum hs_mitigate mitigate,
				  bool rules_on);
/* The contract that this key has now, with some worker at least; NULL: it is strict with all. */
const struct hs_sim_rule *hs_sim_world_rule(const struct hs_sim_world *world, uint32_t key);
/* The true value of a key, and for how many ms it will be there; 0: it stays. */
int64_t hs_sim_world_peek(struct hs_sim_world *world, uint32_t key, int64_t *ttl_ms);
bool hs_sim_world_same_partition(const struct hs_sim_world *world, uint32_t key, uint32_t other);
/* Somebody else does this at the key's server, now. False: that takes nothing just now. The reply, in
 * RESP2, is appended. */
bool hs_sim_world_do_external(struct hs_sim_world *world, struct hs_bytes key, size_t argc,
			      const struct hs_bytes *argv, struct hs_buf *reply);
/* From now on nothing goes wrong any more. */
void hs_sim_world_stop_faults(struct hs_sim_world *world);
/* Everybody hangs up, and everything under way comes to its end. */
void hs_sim_world_hang_up(struct hs_sim_world *world);

/* Runs events until none is left; sleepers sleep out. */
void hs_sim_world_settle(struct hs_sim_world *world);
/* Runs the earliest event; false when there is none. */
bool hs_sim_world_step(struct hs_sim_world *world);
/* Lets this much time pass, and runs what falls into it, the regular ticks as well. */
void hs_sim_world_pass(struct hs_sim_world *world, uint64_t us);

/* Plans a call some microseconds from now: where a load's own events come from. */
void hs_sim_world_plan(struct hs_sim_world *world, uint64_t in_us, hs_sim_event_run *run,
		       void *context, void *target);

/* Clients live as long as their world. */
struct hs_sim_client *hs_sim_client_connect(struct hs_sim_world *world, uint32_t worker);
/* Bytes arrive at the worker now. Without a connection they are lost. */
void hs_sim_client_send(struct hs_sim_client *client, struct hs_bytes bytes);
/* One request, from words split at spaces: "SET k v". */
void hs_sim_client_request(struct hs_sim_client *client, const char *words);
void hs_sim_client_disconnect(struct hs_sim_client *client);
void hs_sim_client_lose(struct hs_sim_client *client); /* its heatsink has died */
/* A deaf client takes no replies; one that hears again gets what piled up. */
void hs_sim_client_pause_reading(struct hs_sim_client *client, bool reading_paused);

#endif
