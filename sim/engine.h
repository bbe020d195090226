/* The simulated world's engine: the commands of keyspace/ over maps in memory, partition by
 * partition, with the timing of a real one. Operations queue to their partition, run together at
 * its next commit, and are answered some time after it, each in its own time.
 *
 *     submit ─ queue of the partition ─ commit (all run, in order) ─ … ─ done, one by one
 *
 * It can be told to make a mistake, so that tests see whether the checkers notice. One thread. */
#ifndef HS_SIM_ENGINE_H
#define HS_SIM_ENGINE_H

#include "base/now.h"
#include "base/prng.h"
#include "core/news.h"
#include "core/op.h"
#include "sim/events.h"

#include <stdbool.h>
#include <stdint.h>

/* Ways of being wrong, each against one of the laws. Every one strikes now and then, not always. */
enum hs_sim_mistake {
	HS_SIM_NO_MISTAKE,
	HS_SIM_READ_TOO_EARLY, /* a read overtakes its connection's own writes */
	HS_SIM_SWAP_RUNS,      /* two operations of one partition run in the other order */
	HS_SIM_SWAP_REPLIES,   /* two operations get each other's reply */
	HS_SIM_RUN_TWICE,      /* an operation is applied twice */
	HS_SIM_LOSE_COMMIT,    /* what was acknowledged is not there */
	HS_SIM_LOSE_REPLY,     /* an operation is never answered */
	HS_SIM_STALE_READ,     /* a read is answered from an earlier commit */
	HS_SIM_NEWS_LOST,      /* a change is not told */
	HS_SIM_NEWS_TOO_EARLY, /* a change is told before it can be seen */
	/* Not the engine's, but the world's around it. */
	HS_SIM_COUNT_TWICE,	     /* an operation is heat twice */
	HS_SIM_COUNT_NEVER,	     /* a core does not count at all */
	HS_SIM_READ_REMEMBERED_LATE, /* news of a key finds nobody whose read is under way */
	HS_SIM_NEWS_OVERTAKE, /* what a client is told overtakes replies that were under way */
	HS_SIM_MISTAKES,
};

struct hs_sim_engine_options {
	uint64_t seed;
	uint16_t partitions;
	bool reads_at_once;	/* unordered reads are answered inside submit */
	bool listens_late;	/* LISTEN and UNLISTEN take their time, as behind a connection */
	bool refuses;		/* now and then one of them must be submitted again */
	uint32_t commit_us_max; /* from the first operation queued to the commit */
	uint32_t answer_us_max; /* from the commit to the answer */
	size_t bytes_max;	/* of one partition; 0: no limit */
	enum hs_sim_mistake mistake;
};

struct hs_sim_engine;

/* What the engine needs around it. `done` is called once for every operation it queued. */
struct hs_sim_engine_host {
	struct hs_sim_events *events;
	const struct hs_now *now;
	void (*done)(void *context, struct hs_op *op);
	/* As an engine's (engine/engine.h): takes over the reference. */
	void (*news)(void *context, struct hs_news *news);
	void *context;
};

struct hs_sim_engine *hs_sim_engine_create(const struct hs_sim_engine_options *options,
					   const struct hs_sim_engine_host *host);
/* No operation is under way any more. */
void hs_sim_engine_destroy(struct hs_sim_engine **engine);

enum hs_submit hs_sim_engine_submit(struct hs_sim_engine *engine, struct hs_op *op);

/* A partition that takes operations and runs none, until it is told to go on. */
void hs_sim_engine_stall(struct hs_sim_engine *engine, uint16_t partition);
void hs_sim_engine_go_on(struct hs_sim_engine *engine, uint16_t partition);

/* How many workers want to know which keys change. */
uint32_t hs_sim_engine_trackers(const struct hs_sim_engine *engine);

/* Answers what HS_SIM_LOSE_REPLY kept, so that a world can end. */
void hs_sim_engine_find_lost(struct hs_sim_engine *engine);

#endif
