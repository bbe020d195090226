/* One heatsink of a simulated world: a process with workers, each of which runs a real core, a shared cache,
 * and an engine: one of its own (sim/engine.h), or the real redis engine in front of simulated servers
 * (sim/redis_engine.h). It can die between any two of its commands and start again. */
#ifndef HS_SIM_HEATSINK_H
#define HS_SIM_HEATSINK_H

#include "base/list.h"
#include "core/op.h"
#include "sim/cache_bugs.h"
#include "sim/op_bugs.h"
#include "sim/redis_engine.h"

enum { HS_SIM_HEATSINKS_MAX = 3 };

struct hs_sim_world;

/* What others' requests may have to wait for, counted for law 9 (sim/load_delay.c). */
struct hs_sim_progress {
	uint64_t
		internal; /* fetches and commands about copies that a server which is well has answered */
	uint64_t diverted; /* reads sent to a copy on the troubled server */
};

struct hs_sim_heatsink {
	struct hs_sim_world *world;
	uint32_t number;
	/* Its workers are `options.workers` from here on among those of the world. Inside of it they are
	 * numbered from 0 (hs_op.worker). */
	uint32_t first;
	bool dead;
	bool in_engine;				/* the redis engine is in the middle of an event */
	struct hs_sim_op_bugs *op_bugs;		/* in front of the engine, or NULL */
	struct hs_sim_cache_bugs *cache_bugs;	/* in front of that, or NULL */
	struct hs_sim_redis *redis;		/* NULL: the world's engine, or dead */
	struct hs_sim_redis **previous_engines; /* of its lives before: events may name them */
	uint32_t lives;
	struct hs_link peers; /* operations on their way between its workers */
	_Atomic uint64_t slowlog_ids;
	struct hs_sim_progress progress;
};

void hs_sim_heatsink_init(struct hs_sim_heatsink *heatsink, struct hs_sim_world *world,
			  uint32_t number);
/* Its cores are gone, and no event runs any more. */
void hs_sim_heatsink_deinit(struct hs_sim_heatsink *heatsink);

/* A new process: new cores, an empty cache. */
void hs_sim_heatsink_start(struct hs_sim_heatsink *heatsink);
/* It stops: clients have hung up, and nothing is under way. */
void hs_sim_heatsink_stop(struct hs_sim_heatsink *heatsink);
/* kill -9: its clients and its servers lose it. What is on its way to the servers arrives, or up to some byte
 * of each connection (`lost`). */
void hs_sim_heatsink_kill(struct hs_sim_heatsink *heatsink, bool lost);

/* What an engine hands back: an operation of this heatsink (the context), a changed key. */
void hs_sim_heatsink_done(void *context, struct hs_op *op);
void hs_sim_heatsink_changed(void *context, uint32_t worker,
			     const struct hs_tracking_session *tracking_session,
			     const struct hs_bytes *key);

#endif
