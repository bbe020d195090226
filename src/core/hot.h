/* The hot keys of one worker: keys with more than `hot-share` of its requests. All mitigations share this
 * table, so a key is looked up once and the threshold is tested in one place.
 *
 *     request counted ─ share of the short window ─┬─ at least `share`: the key enters
 *                                                  ├─ at least `share_exit`: it stays
 *                                                  └─ less, for `cool_down_us`: it leaves
 *
 * The two thresholds are a hysteresis: a key at the threshold does not enter and leave with every request. Each
 * mitigation keeps its own state of a key in `state`. A key that has cooled down leaves when no mitigation has
 * state for it: requests in flight for it end first.
 *
 * The table must not know what a mitigation does with a key. Limits: HS_HOT_KEYS_MAX keys with HS_HOT_BYTES_MAX
 * bytes of names. A key that finds no room is counted (hot_keys_full), and tried again with its next request.
 *
 * Worker's thread only. */
#ifndef HS_CORE_HOT_H
#define HS_CORE_HOT_H

#include "base/bytes.h"
#include "base/list.h"
#include "contract/contract.h"
#include "heat/heat.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_call;
struct hs_core;

enum { HS_HOT_STAGES = 8 };

struct hs_hot {
	struct hs_link link; /* in hot_table->keys */
	struct hs_hot *next; /* next in the same bucket */
	uint64_t hash;
	uint16_t slot;
	uint64_t since_us;	    /* when it entered the table */
	struct hs_heat_warmth heat; /* at the last count */
	uint64_t seen_us;	    /* when it was last above share_exit */
	const struct hs_rule *rule; /* the rule that matches the key; NULL: none */
	/* A bit for each stage that may act on the key. All bits are set: the control loop that will clear some
	 * of them is not built yet. A stage without its bit does not get `hot`, and gets `cool` with the next
	 * tick. */
	uint32_t plan;
	void *state[HS_HOT_STAGES]; /* by stage number; NULL: none */
	size_t key_len;
	char key[];
};

enum { HS_HOT_BUCKETS = 1024 };

struct hs_hot_table {
	struct hs_link keys;
	uint32_t count;
	size_t key_bytes;
	uint64_t seed;
	struct hs_hot *buckets[HS_HOT_BUCKETS]; /* by hash */
	/* Hot keys by slot modulo HS_HOT_BUCKETS; usually 0, and then no key is hashed. */
	uint16_t of_slot[HS_HOT_BUCKETS];
};

static inline struct hs_bytes hs_hot_key(const struct hs_hot *hot)
{
	return (struct hs_bytes){hot->key, hot->key_len};
}

void hs_hot_table_init(struct hs_hot_table *hot_table, uint64_t seed);
void hs_hot_table_deinit(struct hs_hot_table *hot_table); /* no stage has state left */

/* False: no key of the slot is hot. */
static inline bool hs_hot_may_have(const struct hs_hot_table *hot_table, uint16_t slot)
{
	return hot_table->of_slot[slot % HS_HOT_BUCKETS] > 0;
}

/* NULL: the key is not hot. */
struct hs_hot *hs_hot_find(const struct hs_hot_table *hot_table, uint16_t slot,
			   struct hs_bytes key);
/* The only key of a call. NULL: not hot, no key, or several keys. */
struct hs_hot *hs_hot_of_only_key(const struct hs_hot_table *hot_table, struct hs_call *call);
/* The same where the key's index in argv and its slot are known. */
struct hs_hot *hs_hot_of_call(const struct hs_hot_table *hot_table, struct hs_call *call,
			      size_t at);

/* A request for a key was counted: enters or refreshes the key. Returns the key if its share is at least
 * `share`, else NULL. */
struct hs_hot *hs_hot_note(struct hs_core *core, struct hs_heat_warmth heat);
void hs_hot_configure(struct hs_core *core); /* the rules have changed */
/* Whether the key was below share_exit for `cool_down_us`. */
bool hs_hot_is_cool(const struct hs_core *core, const struct hs_hot *hot);
/* Removes a key that has cooled down, unless a stage has state for it. */
void hs_hot_leave(struct hs_core *core, struct hs_hot *hot);

#endif
