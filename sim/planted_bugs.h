/* Planted bugs: each makes a simulated world break a law now and then, to show that the checkers notice (--bug
 * NAME). None of them is in the product. The table in planted_bugs.c says in which worlds each can strike and which
 * laws it breaks. */
#ifndef HS_SIM_PLANTED_BUGS_H
#define HS_SIM_PLANTED_BUGS_H

#include <stdbool.h>

enum hs_sim_bug {
	HS_SIM_NO_BUG,
	/* In the simulated embedded engine (sim/engine.c, sim/store.c): */
	HS_SIM_READ_TOO_EARLY,	       /* a read overtakes its connection's own writes */
	HS_SIM_SWAP_RUNS,	       /* two operations of one partition run in the wrong order */
	HS_SIM_SWAP_REPLIES,	       /* two operations get each other's reply */
	HS_SIM_RUN_TWICE,	       /* an operation is applied twice */
	HS_SIM_LOSE_COMMIT,	       /* an acknowledged write is lost */
	HS_SIM_LOSE_REPLY,	       /* an operation is never answered */
	HS_SIM_STALE_READ,	       /* a read is answered from an earlier commit */
	HS_SIM_EXPIRED_AT_ONCE,	       /* a worker decides by itself that a key has expired */
	HS_SIM_READ_UNDATED,	       /* a read uses a time from before the data that it sees */
	HS_SIM_INVALIDATION_LOST,      /* a change is not reported */
	HS_SIM_INVALIDATION_TOO_EARLY, /* a change is reported before readers can see it */
	/* In the world around the cores (sim/heatsink.c, sim/core_events.c, sim/driver.c): */
	HS_SIM_COUNT_TWICE, /* an operation is counted as heat twice */
	HS_SIM_COUNT_NEVER, /* a core counts no heat */
	/* A core that is reading a key gets no event when the key changes. */
	HS_SIM_READ_TRACKED_LATE,
	HS_SIM_EVENT_OVERTAKES, /* a push overtakes replies that were in flight */
	HS_SIM_KEY_LEFT,	/* a key that heatsink made for itself is not deleted */
	HS_SIM_VALUE_LEFT,	/* when a heatsink stops, an old SET is sent once more */
	/* In the limits and settings of the cores (sim/heatsink.c, sim/rules.c, sim/schedule.c, sim/world.c): */
	HS_SIM_WAITERS_UNLIMITED, /* more requests may wait for a key than the limit allows */
	HS_SIM_CACHE_UNLIMITED,	  /* the cache may hold more than the limit allows */
	HS_SIM_TRACKED_UNLIMITED, /* more keys may be tracked than the limit allows */
	HS_SIM_OUTPUT_UNLIMITED,  /* a client may have more unsent output than the limit allows */
	/* A client may have more requests in flight than the limit allows. */
	HS_SIM_PIPELINE_UNLIMITED,
	HS_SIM_HOT_UNLIMITED, /* more keys may be hot than the limit allows */
	HS_SIM_CACHES_APART, /* workers do not share their cache: one misses the writes of others */
	HS_SIM_SWITCH_IGNORED, /* a worker does not notice that mitigations are off */
	HS_SIM_UNKNOWN_READS,  /* an unknown command is taken for a read */
	HS_SIM_WAITS_FOR_COPY, /* a read waits for a copy however long its server takes */
	/* Between core and engine (sim/op_bugs.c): */
	HS_SIM_JOINS_READ_IN_FLIGHT, /* a read takes the reply of an equal read that is in flight */
	HS_SIM_TWO_QUEUES,	     /* a key's reads and writes queue separately */
	HS_SIM_RESEND_LOST,	     /* an increment with an unknown outcome is sent again */
	HS_SIM_DROP_ORDER,	     /* a key turns hot: new requests overtake those in flight */
	HS_SIM_OVERTAKE, /* a later request for one key overtakes an earlier one for another key */
	HS_SIM_MISSING_AS_ZERO, /* a GET of a missing key beside an INCR is answered "0" */
	HS_SIM_ASSERTION_FAILS, /* the process ends: each schedule needs a separate process */
	HS_SIM_REFUSED_BUT_RUN, /* a request that ran is answered as not sent */
	/* Around the real redis engine (sim/redis_bugs.c, sim/redis_engine.c, sim/servers.c). Tracking: */
	HS_SIM_PUSH_LOST,    /* an invalidation is dropped */
	HS_SIM_PUSH_LATE,    /* an invalidation arrives after later replies */
	HS_SIM_DEAD_SESSION, /* a connection is lost, and its tracking session stays valid */
	/* A liveness check counts from its answer, not from when it was sent. */
	HS_SIM_LIVENESS_AT_REPLY,
	/* A tracking session stays valid after its slots have moved. */
	HS_SIM_SESSION_SURVIVES_MOVE,
	HS_SIM_REPLICA_BEHIND, /* a read goes to a replica that may lag behind its master */
	/* Clients that track get no message when invalidations may have been missed. */
	HS_SIM_TRACKING_GAP_HIDDEN,
	/* Redirects and lost connections: */
	HS_SIM_REDIRECT_OVERTAKES, /* later requests overtake a redirected one */
	/* A command that was redirected with ASK is refused when it comes back, though no later command ran. */
	HS_SIM_ASK_REFUSED,
	HS_SIM_EMPTY_MASTER_DROPPED, /* the connection to a master without slots is closed */
	HS_SIM_WRITE_RESENT,	     /* a write with an unknown outcome is sent again */
	/* An increment with an unknown outcome is sent again, to the new master. */
	HS_SIM_FAILOVER_RESENT,
	HS_SIM_MSET_RESENT,	  /* an MSET with an unknown outcome is sent again */
	HS_SIM_UNKNOWN_RESENT,	  /* an unknown command with an unknown outcome is sent again */
	HS_SIM_EXEC_RESENT,	  /* a transaction with an unknown outcome is sent again */
	HS_SIM_HALF_REPLY_REUSED, /* the rest of a lost reply is expected on the next connection */
	HS_SIM_DIED_RESENT,	  /* requests in flight of a process that died are sent again */
	HS_SIM_ERROR_AS_MISSING,  /* an error reply is taken for a missing key */
	HS_SIM_FLUSH_ONE,	  /* FLUSHALL reaches only one master */
	HS_SIM_COPIES_LEFT,	  /* copies of a hot value are not deleted */
	HS_SIM_WATCH_LEFT,	  /* a client disconnects, and its WATCH stays */
	HS_SIM_WAITS_FOR_ALL,	  /* nothing is sent while a reply of any server is outstanding */
	HS_SIM_PARKS_ALL,	  /* nothing is sent while any server is unreachable */
	/* No fetch is sent while a reply of any other server is outstanding. */
	HS_SIM_FETCH_WAITS_FOR_ALL,
	/* Blocked clients and subscribers (sim/companions.h): */
	HS_SIM_PRIVATE_UNLIMITED, /* there may be more private connections than the limit allows */
	/* CLIENT UNBLOCK is answered, and the blocked client stays blocked. */
	HS_SIM_UNBLOCK_IGNORED,
	HS_SIM_ELEMENT_LOST,	  /* a BLPOP with an unknown outcome is answered as not sent */
	HS_SIM_ELEMENT_TWICE,	  /* an RPUSH with an unknown outcome is sent again */
	HS_SIM_MESSAGE_LOST,	  /* a message is dropped */
	HS_SIM_MESSAGE_TWICE,	  /* a message is delivered twice */
	HS_SIM_MESSAGE_OVERTAKES, /* a message is delivered after the next one */
	/* In the simulated servers and the network, which do what a wrong heatsink would have them do (sim/servers.c
	 * passes them to sim/server_route.c, sim/server_commands.c and sim/network.c): */
	HS_SIM_STALE_MAP_WRITE, /* a write goes to the previous owner, which accepts it */
	HS_SIM_STALE_MAP_READ,	/* the same for a read */
	/* A command for several keys of a moving slot sees only those that are there. */
	HS_SIM_HALF_SLOT_SERVED,
	HS_SIM_WATCH_REUSED,	/* a private connection is reused with its old WATCH */
	HS_SIM_CONNECTION_LEFT, /* a connection is abandoned without being closed */
	/* In the cache (sim/cache_bugs.c): */
	HS_SIM_VERSION_NOT_BUMPED,     /* an increment does not end cache entries of its key */
	HS_SIM_RACED_FETCH_CACHED,     /* a value that was fetched during a write is cached */
	HS_SIM_NEGATIVE_FOREVER,       /* a cached missing key is served beyond its time */
	HS_SIM_MISSING_CACHED_IN_MOVE, /* a cached missing key is served while its slot moves */
	/* A read is answered from the cache while a write of its client is in flight. */
	HS_SIM_OWN_WRITE_UNSEEN,
	HS_SIM_COPIES_NOT_INVALIDATED, /* a write does not invalidate the copies of a hot value */
	HS_SIM_DOUBLE_FETCH,	 /* a worker sends a second fetch of a key while one is in flight */
	HS_SIM_OLD_DURING_FETCH, /* the old value is served while a write's new value is fetched */
	/* In a stage of the row (sim/stage.c): */
	HS_SIM_STAGE_OVERTAKEN, /* it delays a request, and later ones overtake it */
	HS_SIM_STAGE_FORGETS,	/* it is switched off and does not send what it has taken */
	HS_SIM_BUGS,
};

/* The bug's name on the command line, and back (HS_SIM_BUGS: no such name). */
const char *hs_sim_bug_name(enum hs_sim_bug bug);
enum hs_sim_bug hs_sim_bug_find(const char *name);

/* The kind of world in which a bug can strike. */
enum hs_sim_bug_where {
	HS_SIM_ANYWHERE,
	HS_SIM_IN_ENGINE,	     /* the simulated embedded engine */
	HS_SIM_IN_SLOWNESS,	     /* the same with slow workers */
	HS_SIM_IN_SERVERS,	     /* servers with faults */
	HS_SIM_IN_HEALTHY_SERVERS,   /* servers without faults */
	HS_SIM_IN_TRACKING,	     /* clients that track keys */
	HS_SIM_IN_FOLD,		     /* requests wait for a hot key */
	HS_SIM_IN_RULES,	     /* keys have contracts */
	HS_SIM_IN_STAGE,	     /* a stage delays requests */
	HS_SIM_IN_MOVES,	     /* a Cluster whose slots move */
	HS_SIM_IN_FAILOVERS,	     /* a Cluster whose masters are lost, without other faults */
	HS_SIM_IN_ONE_FAULTY,	     /* a Cluster with one faulty server */
	HS_SIM_IN_FLEET,	     /* several heatsinks, which die */
	HS_SIM_IN_TRACKING_FAULTS,   /* clients that track keys, servers with faults */
	HS_SIM_IN_COMPANIONS,	     /* companion clients, servers without faults */
	HS_SIM_IN_COMPANIONS_FAULTS, /* companion clients, servers with faults */
};
enum hs_sim_bug_where hs_sim_bug_where(enum hs_sim_bug bug);
/* Whether the bug can break this law; if not, something else broke it. */
bool hs_sim_bug_breaks(enum hs_sim_bug bug, int law);

#endif
