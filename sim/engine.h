/* A simulated engine that behaves like the embedded one. Operations queue for their partition. A commit of the
 * partition runs the first 1 to 8 of them, in order. Each is answered some time after the commit. Reads that need
 * not queue are answered inside submit, from what was committed and shown to readers.
 *
 *     submit ─ queue of the partition ─ run (the first 1 to 8, in order) ─ sealed ─ … ─ done, one by one
 *                                                                            └─ shown to readers: now, or put off
 *
 * "Sealed" means that the redo log of the run is synced; until then readers see the previous state. A worker does not
 * decide by itself that a key has expired. While a partition's changes are put off, a read of a changed key is
 * refused and must queue; the refusal makes the partition show its changes soon.
 *
 * It knows no client and no contract. Planted bugs (planted_bugs.h) can be switched on to test the checkers. One
 * thread; the store must outlive it. */
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
	bool reads_at_once; /* reads that need no order are answered inside submit */
	/* SUBSCRIBE and UNSUBSCRIBE finish later, as they do over a connection. */
	bool listens_late;
	/* Some reads that could be answered inside submit are refused, and must be submitted again. */
	bool refuses;
	uint32_t commit_us_max;
	uint32_t answer_us_max;
	uint32_t seal_us_max;	 /* from the run to sealed */
	uint32_t put_off_us_max; /* how long sealed changes may be hidden from readers; 0: never */
	size_t bytes_max;	 /* of one partition's store; 0: no limit */
	enum hs_sim_bug bug;
};

struct hs_sim_engine;

/* `done` is called once for every operation that was queued. */
struct hs_sim_engine_host {
	struct hs_sim_store *store;
	struct hs_sim_events *events;
	const struct hs_now *now;
	void (*done)(void *context, struct hs_op *op);
	/* A key of this tracking session has changed; NULL: all its keys may have. */
	void (*changed)(void *context, uint32_t worker,
			const struct hs_tracking_session *tracking_session,
			const struct hs_bytes *key);
	/* The partition's log is synced: readers may see what it has run. */
	void (*sealed)(void *context, uint16_t partition);
	void *context;
};

struct hs_sim_engine *hs_sim_engine_create(const struct hs_sim_engine_options *options,
					   const struct hs_sim_engine_host *host);
/* No operation may be in flight. */
void hs_sim_engine_destroy(struct hs_sim_engine **engine);

enum hs_submit hs_sim_engine_submit(struct hs_sim_engine *engine, struct hs_op *op);

/* Within `done`: when the operation was run. */
uint64_t hs_sim_engine_ran_us(const struct hs_sim_engine *engine);

/* Whether the partition's last run is not sealed yet, so that readers cannot see it. */
bool hs_sim_engine_is_sealing(const struct hs_sim_engine *engine, uint16_t partition);
/* Removes expired keys of the partition and reports the changes. */
void hs_sim_engine_sweep(struct hs_sim_engine *engine, uint16_t partition);

/* The partition queues operations and runs none, until hs_sim_engine_go_on. */
void hs_sim_engine_stall(struct hs_sim_engine *engine, uint16_t partition);
void hs_sim_engine_go_on(struct hs_sim_engine *engine, uint16_t partition);

/* Answers the operations that the planted bug HS_SIM_LOSE_REPLY held back, so that a world can end. */
void hs_sim_engine_find_lost(struct hs_sim_engine *engine);

#endif
