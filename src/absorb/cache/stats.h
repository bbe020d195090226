/* What the cache counts: in all, and of each rule. Any thread may read a counter. */
#ifndef HS_ABSORB_CACHE_STATS_H
#define HS_ABSORB_CACHE_STATS_H

#include "absorb/absorb.h"
#include "base/coarse_histogram.h"
#include "base/counter.h"
#include "core/core.h"

/* clang-format off */
#define HS_CACHE_COUNTERS(ROW) \
	ROW(keys, HS_GAUGE, "Stats", "cache_keys", "cache_keys", \
	    "Keys that replies are kept of, each worker's counted") \
	ROW(entries, HS_GAUGE, "Stats", "cache_entries", "cache_entries", \
	    "Replies that are kept, each worker's counted") \
	ROW(bytes, HS_GAUGE, "Stats", "cache_bytes", "cache_bytes", \
	    "Memory of what is kept, each worker's counted (cache-bytes is the most)") \
	ROW(evicted, HS_COUNTER, "Stats", "cache_evicted_keys", "cache_evicted_keys_total", \
	    "Keys that had to make room for others") \
	ROW(too_large, HS_COUNTER, "Stats", "cache_too_large", "cache_too_large_total", \
	    "Replies not kept because they are larger than cache-entry-bytes, or than all room")

/* Fields of a rule, in HEAT RULE LIST, in its line of INFO and as metrics behind heatsink_rule_. */
#define HS_CACHE_RULE_COUNTERS(ROW) \
	ROW(hits, HS_TOTAL, NULL, "hits", "hits_total", "Reads answered with what is kept") \
	ROW(misses, HS_TOTAL, NULL, "misses", "misses_total", \
	    "Reads that waited for the engine because nothing good was kept") \
	ROW(fetches, HS_TOTAL, NULL, "fetches", "fetches_total", "Reads of the engine, to keep the reply") \
	ROW(refreshes, HS_TOTAL, NULL, "refreshes", "refreshes_total", "Of the fetches, those that nobody waited for") \
	ROW(write_through, HS_TOTAL, NULL, "write_through", "write_through_total", "Values that a SET write_through behind") \
	ROW(fetches_discarded, HS_TOTAL, NULL, "fetches_discarded", "fetches_discarded_total", \
	    "Fills thrown away because the key was written meanwhile") \
	ROW(stale_served, HS_TOTAL, NULL, "stale_served", "stale_served_total", \
	    "Hits on what was older than stale (stale-while-revalidate, stale-if-error)") \
	ROW(replica_reads, HS_TOTAL, NULL, "replica_reads", "replica_reads_total", \
	    "Reads of replicas, of what is too large to be kept (replica-reads)") \
	ROW(invalidated_by_write, HS_TOTAL, NULL, "invalidated_by_write", "invalidated_by_write_total", \
	    "Kept replies found over: written through this server") \
	ROW(invalidated_by_server, HS_TOTAL, NULL, "invalidated_by_server", "invalidated_by_server_total", \
	    "Kept replies found over: the engine's server said that they changed") \
	ROW(invalidated_by_disconnect, HS_TOTAL, NULL, "invalidated_by_disconnect", "invalidated_by_disconnect_total", \
	    "Kept replies found over: the connection that would have said so was lost") \
	ROW(expired, HS_TOTAL, NULL, "expired", "expired_total", "Kept replies found over: too old") \
	ROW(would_hit, HS_TOTAL, NULL, "would_hit", "would_hit_total", \
	    "While observing: reads that would have been hits") \
	ROW(would_miss, HS_TOTAL, NULL, "would_miss", "would_miss_total", \
	    "While observing: reads that would have been misses") \
	ROW(age_max_us, HS_LARGEST, NULL, "age_max_us", "age_max_seconds", \
	    "How old the oldest hit may have been, since the start", .factor = 1e-6)
/* clang-format on */

struct hs_cache_stats {
	HS_CACHE_COUNTERS(HS_COUNTER_FIELD)
};

struct hs_cache_rule_stats {
	HS_CACHE_RULE_COUNTERS(HS_COUNTER_FIELD)
	struct hs_counter
		age[HS_COARSE_HISTOGRAM_BUCKETS]; /* of hits, µs: how old they may have been */
};

extern const struct hs_counter_table hs_cache_counters, hs_cache_rule_counters;

/* By the number of the rule. Any thread. */
const struct hs_cache_rule_stats *hs_cache_rule_stats(const struct hs_core *core, uint32_t number);

#endif
