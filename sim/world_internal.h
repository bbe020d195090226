/* Private to sim/world.c, core_events.c, truth.c and driver.c: one core and where it stands. */
#ifndef HS_SIM_WORLD_INTERNAL_H
#define HS_SIM_WORLD_INTERNAL_H

#include "sim/world.h"

enum { HS_SIM_BUG_ONE_IN = 8 };

/* The context of a core's calls. */
struct hs_sim_worker {
	struct hs_sim_world *world;
	struct hs_sim_heatsink *heatsink;
	struct hs_core *core;
	uint32_t number;  /* among all of the world */
	uint64_t tick_us; /* when a tick is planned for its sleepers; 0: none */
	bool round_planned;
	bool reading_planned;
	uint64_t clock_us; /* what it read there last: it never reads an earlier time */
	uint64_t turn_us;  /* when the last change of options does */
	uint64_t
		tracked_more; /* requests that were under way since it tracks more keys than the limit says */
	uint64_t under_way_before; /* requests, when that was looked at last */
	uint64_t peer_us;  /* when the last message of another worker does: they keep their order */
	uint64_t event_us; /* when the last piece of news gets there: they keep their order */
};

static inline bool hs_sim_world_bug_strikes(struct hs_sim_world *world, enum hs_sim_bug bug)
{
	return world->options.engine.bug == bug &&
	       hs_prng_below(&world->prng, HS_SIM_BUG_ONE_IN) == 0;
}

/* The time as a worker knows it that goes on now. It has read the clock not before `since_us`. */
struct hs_now hs_sim_worker_now(struct hs_sim_world *world, struct hs_sim_worker *worker,
				uint64_t since_us);

/* driver.c: after every call into a core, replies go out, and who had to wait with its bytes goes
 * on. */
void hs_sim_after_core(struct hs_sim_world *world, uint32_t worker);

/* The worker of an operation that left one of this heatsink's cores. */
static inline struct hs_sim_worker *hs_sim_worker_of(const struct hs_sim_heatsink *heatsink,
						     const struct hs_op *op)
{
	return &heatsink->world->workers[heatsink->first + op->worker];
}

/* heatsink.c: what a core is told that has a mistake instead of a limit. */
void hs_sim_heatsink_plant_limit_bug(enum hs_sim_bug bug, struct hs_core_options *options);

/* rules.c */
void hs_sim_rules_create(struct hs_sim_world *world);
void hs_sim_rules_destroy(struct hs_sim_world *world);
/* The shared cache of a heatsink's workers: of a process that begins, and of one that is gone. */
void hs_sim_rules_start(struct hs_sim_heatsink *heatsink);
void hs_sim_rules_stop(struct hs_sim_heatsink *heatsink);
/* A read that is to be kept is under way (nobody must be at the same already); any operation is back. */
void hs_sim_rules_sent(struct hs_sim_worker *worker, const struct hs_op *op);
void hs_sim_rules_back(struct hs_sim_worker *worker, const struct hs_op *op);
/* A read of a key that has a contract. */
bool hs_sim_world_read_may_be_stale(const struct hs_sim_world *world, const struct hs_op *op);

/* truth.c: the store says that a key has changed (none: all of a partition); that something ran. */
void hs_sim_truth_changed(void *context, uint16_t partition, const struct hs_bytes *key);
void hs_sim_truth_ran(void *context, const struct hs_op *op);
/* An engine of one's own has logged what it ran in this partition; the context is its heatsink. */
void hs_sim_truth_sealed(void *context, uint16_t partition);

/* servers.c */
struct hs_sim_redis *hs_sim_servers_create_redis(struct hs_sim_world *world,
						 const struct hs_sim_redis_host *host);

/* truth.c: the same, of simulated servers. */
struct hs_sim_change;
struct hs_sim_ran;
void hs_sim_truth_changed_at(void *context, const struct hs_sim_change *change);
void hs_sim_truth_ran_at(void *context, const struct hs_sim_ran *ran);
void hs_sim_truth_refused_at(void *context, const struct hs_sim_ran *not_run);

/* core_events.c: to every worker of a heatsink (the context), each in its own time, in the order told. */
void hs_sim_core_events_send(void *context, struct hs_event *event);
/* Whatever is on its way to the workers of a heatsink that dies is heard now. True: something was. */
bool hs_sim_core_events_deliver_now(struct hs_sim_heatsink *heatsink);
void hs_sim_core_events_destroy(struct hs_sim_world *world); /* what is still on its way */
/* For HS_SIM_READ_TRACKED_LATE: a read is under way; it is answered. */
void hs_sim_core_events_note_read(struct hs_sim_world *world, struct hs_op *op);
void hs_sim_core_events_forget_read(struct hs_sim_world *world, const struct hs_op *op);

#endif
