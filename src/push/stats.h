/* What push counts. Any thread may read a counter. */
#ifndef HS_PUSH_STATS_H
#define HS_PUSH_STATS_H

#include "base/counter.h"
#include "core/core.h"
#include "core/stage.h"

extern const struct hs_stage hs_stage_push;

/* clang-format off */
#define HS_PUSH_COUNTERS(ROW) \
	/* above 0 from before an engine is asked to tell of changes until it need not any more */ \
	ROW(tracking_clients, HS_GAUGE, "Clients", "tracking_clients", "tracking_clients", \
	    "Clients that track keys (CLIENT TRACKING)") \
	ROW(subscriptions, HS_GAUGE, "Stats", "pubsub_subscriptions", "pubsub_subscriptions", \
	    "Subscriptions of clients to channels, shard channels and patterns") \
	ROW(messages, HS_COUNTER, "Stats", "pubsub_messages", "pubsub_messages_total", \
	    "Messages sent to clients that had subscribed") \
	ROW(tracking_keys, HS_GAUGE, "Stats", "tracking_total_keys", "tracking_keys", \
	    "Keys remembered for clients that track them") \
	ROW(tracking_items, HS_GAUGE, "Stats", "tracking_total_items", "tracking_items", \
	    "Clients that wait for news of a tracked key, summed over the keys") \
	ROW(tracking_prefixes, HS_GAUGE, "Stats", "tracking_total_prefixes", "tracking_prefixes", \
	    "Prefixes that clients track (BCAST), summed over the workers") \
	ROW(tracking_messages, HS_COUNTER, "Stats", "tracking_messages", "tracking_messages_total", \
	    "Messages to clients that a tracked key changed") \
	ROW(tracking_evicted, HS_COUNTER, "Stats", "tracking_evicted_keys", "tracking_evicted_keys_total", \
	    "Tracked keys forgotten because there were too many")
/* clang-format on */

struct hs_push_stats {
	HS_PUSH_COUNTERS(HS_COUNTER_FIELD)
};

static inline const struct hs_push_stats *hs_push_stats(const struct hs_core *core)
{
	return hs_core_stage_stats(core, &hs_stage_push);
}

#endif
