/* What copies counts. Any thread may read a counter. */
#ifndef HS_ABSORB_COPIES_STATS_H
#define HS_ABSORB_COPIES_STATS_H

#include "base/counter.h"

/* clang-format off */
#define HS_COPIES_COUNTERS(ROW) \
	ROW(keys, HS_GAUGE, "Stats", "copies_keys", "copies_keys", \
	    "Hot keys whose value lies on several partitions now, summed over the workers") \
	ROW(made, HS_COUNTER, "Stats", "copies_made", "copies_made_total", \
	    "Sets of copies of a hot value that were made") \
	ROW(failed, HS_COUNTER, "Stats", "copies_failed", "copies_failed_total", \
	    "Sets of copies that came to nothing: the key changed meanwhile, or a server refused") \
	ROW(ended, HS_COUNTER, "Stats", "copies_ended", "copies_ended_total", \
	    "Sets of copies that were in use and were ended: by a write, or because the key had cooled") \
	ROW(reads, HS_COUNTER, "Stats", "copies_reads", "copies_reads_total", \
	    "Reads of a hot key sent to a copy instead of the original") \
	ROW(retries, HS_COUNTER, "Stats", "copies_retries", "copies_retries_total", \
	    "Reads sent to a copy that then had to ask the original")
/* clang-format on */

struct hs_copies_stats {
	HS_COPIES_COUNTERS(HS_COUNTER_FIELD)
};

#endif
