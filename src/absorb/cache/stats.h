/* Counters of the cache, in total and for each rule. Any thread may read them. */
#ifndef HS_ABSORB_CACHE_STATS_H
#define HS_ABSORB_CACHE_STATS_H

#include "absorb/absorb.h"
#include "base/coarse_histogram.h"
#include "base/counter.h"
#include "core/core.h"

/* clang-format off */
#define HS_CACHE_COUNTERS(ROW) \
	ROW(keys, HS_GAUGE, "Stats", "cache_keys", "cache_keys", \
	    "Keys admitted to the cache; a key counts once for each worker that has it") \
	ROW(entries, HS_GAUGE, "Stats", "cache_entries", "cache_entries", \
	    "Cache entries; an entry counts once for each worker that has it") \
	ROW(bytes, HS_GAUGE, "Stats", "cache_bytes", "cache_bytes", \
	    "Memory of cached keys and entries, summed over the workers (limit: cache-bytes)") \
	ROW(evicted, HS_COUNTER, "Stats", "cache_evicted_keys", "cache_evicted_keys_total", \
	    "Keys evicted from a worker's cache because it was full") \
	ROW(too_large, HS_COUNTER, "Stats", "cache_too_large", "cache_too_large_total", \
	    "Replies not cached because they are larger than cache-entry-bytes or than a worker's cache")

/* The counters of a rule. HEAT RULE LIST and the rule's line in INFO show them as fields, and the metrics have the
 * prefix heatsink_rule_. */
#define HS_CACHE_RULE_COUNTERS(ROW) \
	ROW(hits, HS_TOTAL, NULL, "hits", "hits_total", "Cache hits: reads answered from a cache entry") \
	ROW(misses, HS_TOTAL, NULL, "misses", "misses_total", \
	    "Cache misses: reads that had to wait for a fetch or for the engine") \
	ROW(fetches, HS_TOTAL, NULL, "fetches", "fetches_total", \
	    "Fetches: reads of the engine whose reply is to be cached") \
	ROW(refreshes, HS_TOTAL, NULL, "refreshes", "refreshes_total", \
	    "Fetches that no read waited for (refresh-ahead, stale-while-revalidate, keys of an MGET)") \
	ROW(write_through, HS_TOTAL, NULL, "write_through", "write_through_total", \
	    "Values stored in the cache by a SET (write-through)") \
	ROW(fetches_discarded, HS_TOTAL, NULL, "fetches_discarded", "fetches_discarded_total", \
	    "Fetched replies not cached because the key was written meanwhile") \
	ROW(stale_served, HS_TOTAL, NULL, "stale_served", "stale_served_total", \
	    "Hits on entries older than stale (stale-while-revalidate, stale-if-error)") \
	ROW(replica_reads, HS_TOTAL, NULL, "replica_reads", "replica_reads_total", \
	    "Reads sent to a replica because the value is too large for the cache (replica-reads)") \
	ROW(invalidated_by_write, HS_TOTAL, NULL, "invalidated_by_write", "invalidated_by_write_total", \
	    "Cache entries found invalid: the key was written through this heatsink") \
	ROW(invalidated_by_server, HS_TOTAL, NULL, "invalidated_by_server", "invalidated_by_server_total", \
	    "Cache entries found invalid: the server reported another client's change of the key") \
	ROW(invalidated_by_disconnect, HS_TOTAL, NULL, "invalidated_by_disconnect", "invalidated_by_disconnect_total", \
	    "Cache entries found stale: the connection that reports changes of the key was lost") \
	ROW(expired, HS_TOTAL, NULL, "expired", "expired_total", \
	    "Cache entries found stale or ended: older than stale or ttl allows, or the key has expired") \
	ROW(would_hit, HS_TOTAL, NULL, "would_hit", "would_hit_total", \
	    "While mitigate is observe: reads that the cache would have answered") \
	ROW(would_miss, HS_TOTAL, NULL, "would_miss", "would_miss_total", \
	    "While mitigate is observe: reads that the cache would not have answered") \
	ROW(age_max_us, HS_LARGEST, NULL, "age_max_us", "age_max_seconds", \
	    "Greatest age of a value served from the cache, as an upper bound, since the start", .factor = 1e-6)
/* clang-format on */

struct hs_cache_stats {
	HS_CACHE_COUNTERS(HS_COUNTER_FIELD)
};

struct hs_cache_rule_stats {
	HS_CACHE_RULE_COUNTERS(HS_COUNTER_FIELD)
	/* histogram of hits by the entry's age in µs */
	struct hs_counter age[HS_COARSE_HISTOGRAM_BUCKETS];
};

extern const struct hs_counter_table hs_cache_counters, hs_cache_rule_counters;

/* The counters of the rule with this number, of this worker. Any thread may read them. */
const struct hs_cache_rule_stats *hs_cache_rule_stats(const struct hs_core *core, uint32_t number);

#endif
