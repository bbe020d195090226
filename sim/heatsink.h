/* One heatsink of a simulated world: a process with workers. Each worker runs a real core; all share a shared cache
 * and an engine: the simulated embedded one (sim/engine.h) or the real redis engine in front of simulated servers
 * (sim/redis_engine.h).
 *
 * A heatsink can die between any two of its commands and start again as a new process: its clients and servers lose
 * their connections, and what its workers had in flight is finished with errors. A dead heatsink keeps its old
 * engines until the world ends, because events in flight may name them. One thread; the world owns it. */
#ifndef HS_SIM_HEATSINK_H
#define HS_SIM_HEATSINK_H

#include "base/list.h"
#include "core/op.h"
#include "sim/cache_bugs.h"
#include "sim/op_bugs.h"
#include "sim/redis_engine.h"

enum { HS_SIM_HEATSINKS_MAX = 3 };

struct hs_sim_world;

/* Counts of events that requests for keys of healthy servers may have to wait for; law 9 allows for them
 * (sim/load_delay.c). */
struct hs_sim_progress {
	/* Fetches and commands about copies that healthy servers have answered. */
	uint64_t internal;
	uint64_t diverted; /* reads sent to a copy on the faulty server */
};

struct hs_sim_heatsink {
	struct hs_sim_world *world;
	uint32_t number;
	/* Index in world->workers of its first worker. Its world->options.workers workers follow one another
	 * there. Within the heatsink they are numbered from 0 (hs_op.worker). */
	uint32_t first;
	bool dead;
	/* The redis engine is handling an event: replies are sent when it has finished. */
	bool in_engine;
	struct hs_sim_op_bugs *op_bugs;	      /* planted bugs between cores and engine, or NULL */
	struct hs_sim_cache_bugs *cache_bugs; /* planted bugs of caches, or NULL */
	/* NULL: the simulated embedded engine is in use, or the heatsink is dead. */
	struct hs_sim_redis *redis;
	/* Engines of its previous lives, which events in flight may point to. */
	struct hs_sim_redis **previous_engines;
	uint32_t lives;		      /* how many redis engines previous_engines holds */
	struct hs_link peers;	      /* operations in flight between its workers */
	_Atomic uint64_t slowlog_ids; /* the next SLOWLOG entry id */
	struct hs_sim_progress progress;
};

void hs_sim_heatsink_init(struct hs_sim_heatsink *heatsink, struct hs_sim_world *world,
			  uint32_t number);
/* After hs_sim_heatsink_stop or _kill, when no more events run. */
void hs_sim_heatsink_deinit(struct hs_sim_heatsink *heatsink);

/* A new process: new cores, an empty cache. */
void hs_sim_heatsink_start(struct hs_sim_heatsink *heatsink);
/* Orderly end: all clients have disconnected and nothing is in flight. */
void hs_sim_heatsink_stop(struct hs_sim_heatsink *heatsink);
/* Kill -9: clients and servers lose their connections. Requests in flight to servers still arrive; with `lost` only
 * up to some byte of each connection. */
void hs_sim_heatsink_kill(struct hs_sim_heatsink *heatsink, bool lost);

/* An engine hands back an operation of this heatsink (the context), or reports a changed key. */
void hs_sim_heatsink_done(void *context, struct hs_op *op);
void hs_sim_heatsink_changed(void *context, uint32_t worker,
			     const struct hs_tracking_session *tracking_session,
			     const struct hs_bytes *key);

#endif
