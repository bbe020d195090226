/* Private to the files of the world (world.c, driver.c, heatsink.c, core_events.c, rules.c, servers.c,
 * faults.c, leftovers.c, truth.c, stage.c and cache_bugs.c): one worker, and the functions that these files
 * call in each other. */
#ifndef HS_SIM_WORLD_INTERNAL_H
#define HS_SIM_WORLD_INTERNAL_H

#include "sim/world.h"

enum { HS_SIM_BUG_ONE_IN = 8 };

/* One worker: a core, and the delays of everything on its way to it. The context of the core's calls. */
struct hs_sim_worker {
	struct hs_sim_world *world;
	struct hs_sim_heatsink *heatsink;
	struct hs_core *core;
	uint32_t number;      /* among the workers of all heatsinks */
	uint64_t tick_us;     /* when the next alarm of its core is planned; 0: none */
	bool round_planned;   /* the flush at the end of its round is planned */
	bool reading_planned; /* it will read later what its clients have sent (slow_us_max) */
	uint64_t clock_us;    /* its last reading of the clock: a worker's clock never goes back */
	uint64_t turn_us;     /* when the last change of options arrives: they arrive in order */
	/* Requests that were in flight when it exceeded the limit of tracked keys. */
	uint64_t tracked_more;
	uint64_t under_way_before; /* requests in flight when the limit was checked last */
	/* When the last message of another worker arrives: they arrive in order. */
	uint64_t peer_us;
	uint64_t event_us; /* when the last event arrives: they arrive in order */
};

static inline bool hs_sim_world_bug_strikes(struct hs_sim_world *world, enum hs_sim_bug bug)
{
	return world->options.engine.bug == bug &&
	       hs_prng_below(&world->prng, HS_SIM_BUG_ONE_IN) == 0;
}

/* The time as a running worker reads it: it has read the clock at `since_us` or later. */
struct hs_now hs_sim_worker_now(struct hs_sim_world *world, struct hs_sim_worker *worker,
				uint64_t since_us);

/* driver.c: after every call into a core, sends the replies and reads what clients had to hold back. */
void hs_sim_after_core(struct hs_sim_world *world, uint32_t worker);

/* The worker that submitted an operation of this heatsink. */
static inline struct hs_sim_worker *hs_sim_worker_of(const struct hs_sim_heatsink *heatsink,
						     const struct hs_op *op)
{
	return &heatsink->world->workers[heatsink->first + op->worker];
}

/* heatsink.c: removes the limit that the planted bug is about. */
void hs_sim_heatsink_plant_limit_bug(enum hs_sim_bug bug, struct hs_core_options *options);

void hs_sim_rules_create(struct hs_sim_world *world);
void hs_sim_rules_destroy(struct hs_sim_world *world);
/* Creates and destroys the shared cache of a heatsink, with its process. */
void hs_sim_rules_start(struct hs_sim_heatsink *heatsink);
void hs_sim_rules_stop(struct hs_sim_heatsink *heatsink);
/* A fetch was sent: no other of the same key may be in flight on this worker. An operation has come back. */
void hs_sim_rules_sent(struct hs_sim_worker *worker, const struct hs_op *op);
void hs_sim_rules_back(struct hs_sim_worker *worker, const struct hs_op *op);
/* Whether the operation reads a key that has a contract. */
bool hs_sim_world_read_may_be_stale(const struct hs_sim_world *world, const struct hs_op *op);

/* truth.c: the store has changed a key (NULL: all keys of the partition), and has run an operation. */
void hs_sim_truth_changed(void *context, uint16_t partition, const struct hs_bytes *key);
void hs_sim_truth_ran(void *context, const struct hs_op *op);
/* The simulated embedded engine has synced the log of what this partition ran; the context is its heatsink. */
void hs_sim_truth_sealed(void *context, uint16_t partition);

struct hs_sim_redis *hs_sim_servers_create_redis(struct hs_sim_world *world,
						 const struct hs_sim_redis_host *host);

/* truth.c: the same for simulated servers; and a command that a server refused. */
struct hs_sim_change;
struct hs_sim_ran;
void hs_sim_truth_changed_at(void *context, const struct hs_sim_change *change);
void hs_sim_truth_ran_at(void *context, const struct hs_sim_ran *ran);
void hs_sim_truth_refused_at(void *context, const struct hs_sim_ran *not_run);

/* core_events.c: delivers an event to every worker of a heatsink (the context), each after a delay of its own, in
 * order. Takes over the reference. */
void hs_sim_core_events_send(void *context, struct hs_event *event);
/* Delivers at once what is in flight to the workers of a heatsink that dies. True: there was something. */
bool hs_sim_core_events_deliver_now(struct hs_sim_heatsink *heatsink);
void hs_sim_core_events_destroy(struct hs_sim_world *world); /* drops what is in flight */
/* For HS_SIM_READ_TRACKED_LATE: a read was sent; it is answered. */
void hs_sim_core_events_note_read(struct hs_sim_world *world, struct hs_op *op);
void hs_sim_core_events_forget_read(struct hs_sim_world *world, const struct hs_op *op);

#endif
