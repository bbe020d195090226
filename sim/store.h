/* The data of the simulated embedded engine: the commands of keyspace/ over maps in memory, and how one operation
 * runs on them. It knows no order and no delays: the engine around it (sim/engine.h) says what runs when. One
 * thread. */
#ifndef HS_SIM_STORE_H
#define HS_SIM_STORE_H

#include "core/event.h"
#include "core/op.h"
#include "sim/planted_bugs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_sim_store_options {
	uint64_t seed;
	uint16_t partitions;
	size_t bytes_max; /* of one partition; 0: no limit */
	bool shows_late;  /* readers see changes only after hs_sim_store_catch_up */
	enum hs_sim_bug bug;
	void (*event)(void *context, struct hs_event *event); /* takes over the reference */
	/* A key of the partition has changed; NULL: all keys may have. Called for every change, whether clients
	 * track or not. May be NULL. */
	void (*changed)(void *context, uint16_t partition, const struct hs_bytes *key);
	void (*ran)(void *context,
		    const struct hs_op *op); /* every operation that ran; may be NULL */
	void *context;
};

struct hs_sim_store;

struct hs_sim_store *hs_sim_store_create(const struct hs_sim_store_options *options);
void hs_sim_store_destroy(struct hs_sim_store **store);

/* Runs an operation as a transaction of its own; `now_ms` decides what has expired. The reply goes to op->out, the
 * running number of the operation to op->engine_order. Without `keep` its changes are undone afterwards. */
void hs_sim_store_run(struct hs_sim_store *store, struct hs_op *op, int64_t now_ms, bool keep);
/* Runs a read on what readers see. False: it met an expired key; the reply is written all the same. */
bool hs_sim_store_read(struct hs_sim_store *store, struct hs_op *op, int64_t now_ms);

/* The value of a key: the reply to GET, in RESP2. *expire_ms is the last ms at which it exists; -1: no time to live,
 * -2: it is missing. */
void hs_sim_store_peek(struct hs_sim_store *store, uint16_t partition, struct hs_bytes key,
		       int64_t now_ms, struct hs_buf *reply, int64_t *expire_ms);
/* The remaining time to live of an operation's only key, as in hs_op.ttl_ms: in the latest state or (`shown`)
 * as readers see it. */
int64_t hs_sim_store_ttl(struct hs_sim_store *store, const struct hs_op *op, struct hs_now now,
			 bool shown);
/* Deletes expired keys. */
void hs_sim_store_sweep(struct hs_sim_store *store, uint16_t partition, int64_t now_ms);

/* Readers of the partition see the latest state from now on. Without `shows_late` and the planted bug
 * HS_SIM_STALE_READ they always do. */
void hs_sim_store_catch_up(struct hs_sim_store *store, uint16_t partition);
/* Whether the key has changed since hs_sim_store_catch_up was last called, so that readers may see another
 * record than the latest one. */
bool hs_sim_store_is_behind(const struct hs_sim_store *store, uint16_t partition,
			    struct hs_bytes key);
/* Reports the keys of the partition that have changed since the last call; and, as a planted bug, those that an
 * operation is about to change. */
void hs_sim_store_send_changes(struct hs_sim_store *store, uint16_t partition);
void hs_sim_store_send_changes_early(struct hs_sim_store *store, const struct hs_op *op);

/* A watcher's connection has ended, and its watches with it. */
void hs_sim_store_unwatch(struct hs_sim_store *store, uint16_t partition, uint64_t watcher);

/* How many workers track changes of keys. */
uint32_t hs_sim_store_trackers(const struct hs_sim_store *store);

#endif
