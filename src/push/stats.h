/* Counters of push. Any thread may read them. */
#ifndef HS_PUSH_STATS_H
#define HS_PUSH_STATS_H

#include "base/counter.h"
#include "core/core.h"
#include "core/stage.h"

extern const struct hs_stage hs_stage_push;

/* clang-format off */
#define HS_PUSH_COUNTERS(ROW) \
	/* > 0 from before HS_OP_TRACK is sent to the engine until after HS_OP_UNTRACK (core/op.h) */ \
	ROW(tracking_clients, HS_GAUGE, "Clients", "tracking_clients", "tracking_clients", \
	    "Clients with CLIENT TRACKING on") \
	ROW(subscriptions, HS_GAUGE, "Stats", "pubsub_subscriptions", "pubsub_subscriptions", \
	    "Subscriptions of clients to channels, shard channels and patterns") \
	ROW(messages, HS_COUNTER, "Stats", "pubsub_messages", "pubsub_messages_total", \
	    "Pub/sub messages sent to clients") \
	ROW(tracking_keys, HS_GAUGE, "Stats", "tracking_total_keys", "tracking_keys", \
	    "Keys recorded for clients that track them (CLIENT TRACKING)") \
	ROW(tracking_items, HS_GAUGE, "Stats", "tracking_total_items", "tracking_items", \
	    "Clients recorded as readers of a tracked key, summed over the keys") \
	ROW(tracking_prefixes, HS_GAUGE, "Stats", "tracking_total_prefixes", "tracking_prefixes", \
	    "Prefixes that clients track in BCAST mode, summed over the workers") \
	ROW(tracking_messages, HS_COUNTER, "Stats", "tracking_messages", "tracking_messages_total", \
	    "Invalidation messages sent to tracking clients") \
	ROW(tracking_evicted, HS_COUNTER, "Stats", "tracking_evicted_keys", "tracking_evicted_keys_total", \
	    "Tracked keys evicted because the table was full; their clients got an invalidation")
/* clang-format on */

struct hs_push_stats {
	HS_PUSH_COUNTERS(HS_COUNTER_FIELD)
};

static inline const struct hs_push_stats *hs_push_stats(const struct hs_core *core)
{
	return hs_core_stage_stats(core, &hs_stage_push);
}

#endif
