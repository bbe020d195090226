/* What a core counts. Any thread may read a counter. */
#ifndef HS_CORE_STATS_H
#define HS_CORE_STATS_H

#include "base/counter.h"
#include "base/ladder.h"
#include "command/command.h"

struct hs_core_command_stats {
	struct hs_counter calls;
	struct hs_counter time_ns;  /* a queued command's: with the commit it waited for */
	struct hs_counter rejected; /* refused before it ran */
	struct hs_counter failed;   /* answered with an error */
};

/* Why a client's next command waits: core/hold.h. */
enum hs_hold {
	HS_HOLD_NONE,
	HS_HOLD_OWN,
	HS_HOLD_PIPELINE,
	HS_HOLD_STAGE,
	HS_HOLD_PAUSE,
	HS_HOLD_INFLIGHT,
	HS_HOLD_SLEEP,
	HS_HOLDS
};

struct hs_core_stats {
	struct hs_counter sessions;    /* connected now */
	struct hs_counter connections; /* ever accepted */
	struct hs_counter commands;
	struct hs_counter input_bytes;
	struct hs_counter output_bytes;
	struct hs_counter errors;     /* error replies */
	struct hs_counter cut_output; /* clients cut off at their output limit */
	struct hs_counter cut_query;  /* clients cut off at their query limit */
	struct hs_counter
		holds[HS_HOLDS]; /* times that a client's next command had to wait, by why */
	struct hs_counter protocol_errors;
	struct hs_counter subscriptions; /* of clients to channels and patterns now */
	struct hs_counter messages;	 /* that clients got because they had subscribed */
	struct hs_counter inflight;	 /* requests waiting for an engine now */
	struct hs_counter blocked; /* clients waiting for what others do, or for a pause to end */
	/* CLIENT TRACKING. The first is above 0 from before an engine is asked to tell of changes
	 * until it need not any more. */
	struct hs_counter tracking_clients;
	struct hs_counter tracking_keys;     /* remembered now */
	struct hs_counter tracking_items;    /* connections that wait for them, over all */
	struct hs_counter tracking_prefixes; /* different ones, of BCAST */
	struct hs_counter tracking_messages; /* sent */
	struct hs_counter tracking_evicted;  /* keys forgotten for want of room */
	struct hs_counter hot_keys;	     /* now */
	struct hs_counter hot_keys_full;     /* requests for a key that found no room among them */
	struct hs_counter fold_keys;	     /* folded now */
	struct hs_counter fold_waiting;	     /* requests that wait for them now */
	struct hs_counter fold_requests;     /* answered together with others */
	struct hs_counter fold_commands;     /* sent to the engine for those */
	struct hs_counter fold_again;	     /* of them run by themselves after all */
	struct hs_counter fold_busy;	     /* refused: too many were waiting */
	/* What is kept, as of the last tick. */
	struct hs_counter cache_keys, cache_replies, cache_bytes; /* now */
	struct hs_counter cache_evicted;			  /* keys that had to make room */
	struct hs_counter cache_too_large; /* replies that were not kept for that */
	struct hs_counter copies_keys;	   /* that have copies now */
	struct hs_counter copies_made;	   /* sets, ever */
	struct hs_counter copies_failed;   /* that came to nothing */
	struct hs_counter copies_ended;	   /* that were in use and are over */
	struct hs_counter copies_reads;	   /* sent to copies */
	struct hs_counter copies_again;	   /* of them asked again of the original */
	struct hs_core_command_stats command[HS_CMD_IDS_ALL]; /* by identifier */
};

/* Of the keys of a rule. */
struct hs_core_rule_stats {
	struct hs_counter hits;	     /* reads answered with what was kept */
	struct hs_counter misses;    /* reads that waited for the engine */
	struct hs_counter fetches;   /* reads of the engine, to be kept */
	struct hs_counter refreshes; /* of them: before anybody had to wait */
	struct hs_counter left;	     /* values that SETs left behind */
	struct hs_counter raced;     /* fills thrown away: the key was written meanwhile */
	struct hs_counter stale;     /* hits on what was older than `stale` (swr, stale-if-error) */
	/* What was kept and found to be over: written through us, told by the server, because the one
	 * who would have told was lost, too old. */
	struct hs_counter ended_written, ended_told, ended_lost, ended_aged;
	struct hs_counter replica_reads;	 /* reads of replicas, for those who waited */
	struct hs_counter would_hit, would_miss; /* while observing */
	struct hs_counter age[HS_LADDER_STEPS];	 /* of hits, µs: how old they may have been */
	struct hs_counter age_max_us;
};

#endif
