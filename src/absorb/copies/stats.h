/* Counters of copies. Any thread may read them. */
#ifndef HS_ABSORB_COPIES_STATS_H
#define HS_ABSORB_COPIES_STATS_H

#include "base/counter.h"

/* clang-format off */
#define HS_COPIES_COUNTERS(ROW) \
	ROW(keys, HS_GAUGE, "Stats", "copies_keys", "copies_keys", \
	    "Hot keys with copies on several partitions, summed over the workers") \
	ROW(made, HS_COUNTER, "Stats", "copies_made", "copies_made_total", "Sets of copies made") \
	ROW(failed, HS_COUNTER, "Stats", "copies_failed", "copies_failed_total", \
	    "Sets of copies that could not be made: the key changed meanwhile, or a server refused (see HEAT " \
	    "PLAN)") \
	ROW(ended, HS_COUNTER, "Stats", "copies_ended", "copies_ended_total", \
	    "Sets of copies in use that were given up: the key was written or has cooled, the TTL of the set is " \
	    "over, slots have moved, or the rules changed") \
	ROW(reads, HS_COUNTER, "Stats", "copies_reads", "copies_reads_total", \
	    "Reads of a hot key sent to a copy instead of the original") \
	ROW(retries, HS_COUNTER, "Stats", "copies_retries", "copies_retries_total", \
	    "Reads sent to a copy and then to the original, because the copy was slow, missing or in error")
/* clang-format on */

struct hs_copies_stats {
	HS_COPIES_COUNTERS(HS_COUNTER_FIELD)
};

#endif
