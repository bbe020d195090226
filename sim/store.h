/* What the partitions of a simulated engine hold, and how one operation runs there: the commands of
 * keyspace/ over maps in memory. It knows no time and no order: the engine around it (sim/engine.h) says
 * what runs when. One thread. */
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
	bool shows_late;  /* readers see what is there only after hs_sim_store_catch_up */
	enum hs_sim_bug bug;
	void (*event)(void *context, struct hs_event *event); /* takes over the reference */
	/* A key of the partition was changed just now; NULL: all of them may have been. By whomever, and
	 * each time, whether anybody tracks or not. May be NULL. */
	void (*changed)(void *context, uint16_t partition, const struct hs_bytes *key);
	void (*ran)(void *context, const struct hs_op *op); /* as often; may be NULL */
	void *context;
};

struct hs_sim_store;

struct hs_sim_store *hs_sim_store_create(const struct hs_sim_store_options *options);
void hs_sim_store_destroy(struct hs_sim_store **store);

/* Runs an operation as a transaction of its own, judging expiry at `now_ms`; the reply goes to
 * op->out, and to op->engine_order that it is the how manieth. Without `keep` nothing stays of it but the reply. */
void hs_sim_store_run(struct hs_sim_store *store, struct hs_op *op, int64_t now_ms, bool keep);
/* A read, from what readers see. False: it met a key that has expired; the reply is written all the same. */
bool hs_sim_store_read(struct hs_sim_store *store, struct hs_op *op, int64_t now_ms);

/* What a key holds: the reply to GET, in RESP2. *expire_ms is the last ms at which it is there; -1: it
 * stays, -2: there is nothing. */
void hs_sim_store_peek(struct hs_sim_store *store, uint16_t partition, struct hs_bytes key,
		       int64_t now_ms, struct hs_buf *reply, int64_t *expire_ms);
/* How long the key of an operation with one has to live, as in hs_op.ttl_ms: what is there, or what readers see
 * (`shown`). */
int64_t hs_sim_store_ttl(struct hs_sim_store *store, const struct hs_op *op, struct hs_now now,
			 bool shown);
/* Removes what has expired. */
void hs_sim_store_sweep(struct hs_sim_store *store, uint16_t partition, int64_t now_ms);

/* Readers of the partition see from now on what is there. They always do, but with `shows_late` and
 * HS_SIM_STALE_READ. */
void hs_sim_store_catch_up(struct hs_sim_store *store, uint16_t partition);
/* Whether the key was changed since, so that readers may see another record of it, or another absence, than what is
 * there. */
bool hs_sim_store_is_behind(const struct hs_sim_store *store, uint16_t partition,
			    struct hs_bytes key);
/* Tells which keys of the partition have been changed since the last time; and those that an operation will. */
void hs_sim_store_send_changes(struct hs_sim_store *store, uint16_t partition);
void hs_sim_store_send_changes_early(struct hs_sim_store *store, const struct hs_op *op);

/* A watcher's connection is gone, and with it what it watched. */
void hs_sim_store_unwatch(struct hs_sim_store *store, uint16_t partition, uint64_t watcher);

/* How many workers want to know which keys change. */
uint32_t hs_sim_store_trackers(const struct hs_sim_store *store);

#endif
