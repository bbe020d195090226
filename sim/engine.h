/* An engine that is like the embedded one: operations queue to their partition, run together at its
 * next commit, and are answered some time after it, each in its own time. Reads that need not wait
 * may be answered at once, from what was committed and shown to readers.
 *
 *     submit ─ queue of the partition ─ run (all that wait, in order) ─ sealed ─ … ─ done, one by one
 *                                                                         └─ shown to readers: at once, or put off
 *
 * Until they are sealed, readers see what was there before. A worker does not say by itself that a key has expired.
 * While a partition's changes are put off, a read of a changed key is refused and must queue; it makes the
 * partition show its changes soon.
 *
 * It can be told to make a mistake, so that tests see whether the checkers notice. One thread. */
#ifndef HS_SIM_ENGINE_H
#define HS_SIM_ENGINE_H

#include "base/now.h"
#include "base/prng.h"
#include "core/op.h"
#include "sim/events.h"
#include "sim/store.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_sim_engine_options {
	uint64_t seed;
	uint16_t partitions;
	bool reads_at_once;	 /* unordered reads are answered inside submit */
	bool listens_late;	 /* LISTEN and UNLISTEN take their time, as behind a connection */
	bool refuses;		 /* now and then one of them must be submitted again */
	uint32_t commit_us_max;	 /* from the first operation queued to the commit */
	uint32_t answer_us_max;	 /* from the commit to the answer */
	uint32_t seal_us_max;	 /* from running to being shown or hidden: the log is synced */
	uint32_t put_off_us_max; /* how long changes may be hidden from readers; 0: never */
	size_t bytes_max;	 /* that a partition's store takes; 0: no limit */
	enum hs_sim_bug bug;
};

struct hs_sim_engine;

/* What an engine needs around it. `done` is called once for every operation it queued. */
struct hs_sim_engine_host {
	struct hs_sim_store *store;
	struct hs_sim_events *events;
	const struct hs_now *now;
	void (*done)(void *context, struct hs_op *op);
	/* Of what a vouch vouched for, a key has changed; NULL: all may have. */
	void (*changed)(void *context, uint32_t worker,
			const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	/* What this partition has run is logged: from now on it can be seen. */
	void (*sealed)(void *context, uint16_t partition);
	void *context;
};

struct hs_sim_engine *hs_sim_engine_create(const struct hs_sim_engine_options *options,
					   const struct hs_sim_engine_host *host);
/* No operation is under way any more. */
void hs_sim_engine_destroy(struct hs_sim_engine **engine);

enum hs_submit hs_sim_engine_submit(struct hs_sim_engine *engine, struct hs_op *op);

/* When the operation that is being handed back was run. */
uint64_t hs_sim_engine_ran_us(const struct hs_sim_engine *engine);

/* What this partition has run last can be seen by nobody yet. */
bool hs_sim_engine_is_sealing(const struct hs_sim_engine *engine, uint16_t partition);
/* Removes what has expired, and tells of it. */
void hs_sim_engine_sweep(struct hs_sim_engine *engine, uint16_t partition);

/* A partition that takes operations and runs none, until it is told to go on. */
void hs_sim_engine_stall(struct hs_sim_engine *engine, uint16_t partition);
void hs_sim_engine_go_on(struct hs_sim_engine *engine, uint16_t partition);

/* Answers what HS_SIM_LOSE_REPLY kept, so that a world can end. */
void hs_sim_engine_find_lost(struct hs_sim_engine *engine);

#endif
