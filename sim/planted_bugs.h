/* Ways of being wrong, to be planted in a simulated world: each breaks one of the laws, and the
 * checkers must notice. None of this is in the product. Every one strikes now and then, not always.
 */
#ifndef HS_SIM_PLANTED_BUGS_H
#define HS_SIM_PLANTED_BUGS_H

#include <stdbool.h>

enum hs_sim_bug {
	HS_SIM_NO_BUG,
	/* Of the engine that is like the embedded one (sim/engine.c, sim/store.c). */
	HS_SIM_READ_TOO_EARLY,	       /* a read overtakes its connection's own writes */
	HS_SIM_SWAP_RUNS,	       /* two operations of one partition run in the other order */
	HS_SIM_SWAP_REPLIES,	       /* two operations get each other's reply */
	HS_SIM_RUN_TWICE,	       /* an operation is applied twice */
	HS_SIM_LOSE_COMMIT,	       /* what was acknowledged is not there */
	HS_SIM_LOSE_REPLY,	       /* an operation is never answered */
	HS_SIM_STALE_READ,	       /* a read is answered from an earlier commit */
	HS_SIM_EXPIRED_AT_ONCE,	       /* a worker says by itself that a key has expired */
	HS_SIM_READ_UNDATED,	       /* a read takes a time from before the data that it sees */
	HS_SIM_INVALIDATION_LOST,      /* a change is not told */
	HS_SIM_INVALIDATION_TOO_EARLY, /* a change is told before it can be seen */
	/* Of the world around the cores (sim/heatsink.c, sim/core_events.c, sim/driver.c). */
	HS_SIM_COUNT_TWICE,	  /* an operation is heat twice */
	HS_SIM_COUNT_NEVER,	  /* a core does not count at all */
	HS_SIM_READ_TRACKED_LATE, /* news of a key finds nobody whose read is under way */
	HS_SIM_EVENT_OVERTAKES,	  /* what a client is told overtakes replies that were under way */
	HS_SIM_KEY_LEFT,	  /* a key of its own is not taken away */
	HS_SIM_VALUE_LEFT,	  /* when it stops, a SET of before is sent once more */
	/* Of what the cores are told (sim/heatsink.c, sim/rules.c, sim/schedule.c). */
	HS_SIM_WAITERS_UNLIMITED, /* more may wait for a key than the limit says */
	HS_SIM_CACHE_UNLIMITED,	  /* more may be kept than the limit says */
	HS_SIM_TRACKED_UNLIMITED, /* more keys may be tracked than the limit says */
	HS_SIM_OUTPUT_UNLIMITED,  /* more may be unsent than the limit says */
	HS_SIM_PIPELINE_UNLIMITED, /* a client may have more requests in flight than the limit says */
	HS_SIM_HOT_UNLIMITED,	   /* more keys may be hot than the limit says */
	HS_SIM_CACHES_APART,	   /* a worker does not know what others have written */
	HS_SIM_SWITCH_IGNORED,	   /* a worker does not hear that mitigations are off */
	HS_SIM_UNKNOWN_READS,	   /* an unknown command is taken for a read */
	HS_SIM_WAITS_FOR_COPY,	   /* a read waits for a copy for as long as its server takes */
	/* Between core and engine: what one does who thinks that a hot key is easy (sim/op_bugs.c). */
	HS_SIM_JOINS_READ_IN_FLIGHT, /* a read takes the answer of one like it that is under way */
	HS_SIM_TWO_QUEUES,	     /* a key's reads queue apart from its writes */
	HS_SIM_RESEND_LOST,	     /* an increment whose outcome is unknown is sent again */
	HS_SIM_DROP_ORDER,	     /* a key turns hot: what comes overtakes what is under way */
	HS_SIM_OVERTAKE,	/* a later request for one key goes before an earlier for another */
	HS_SIM_MISSING_AS_ZERO, /* a GET of a missing key beside an INCR is answered "0" */
	HS_SIM_ASSERTION_FAILS, /* it ends the process: each schedule needs one of its own */
	HS_SIM_REFUSED_BUT_RUN, /* told that it was not sent, though it ran */
	/* Around the real engine in front of servers (sim/redis_bugs.c, sim/redis_engine.c, sim/servers.c). Of the tracked connections: */
	HS_SIM_PUSH_LOST,    /* a change is not told */
	HS_SIM_PUSH_LATE,    /* what is told comes behind later replies */
	HS_SIM_DEAD_SESSION, /* a connection is lost, and its tracking session is believed */
	HS_SIM_LIVENESS_AT_REPLY, /* a liveness check counts from when it was answered, not from when it was sent */
	HS_SIM_SESSION_SURVIVES_MOVE, /* a tracking session is believed after its slots have moved */
	HS_SIM_REPLICA_BEHIND,	      /* a replica is read that may lack what its master has */
	HS_SIM_TRACKING_GAP_HIDDEN, /* clients that track are not told that changes may have been missed */
	/* Of redirects and lost connections: */
	HS_SIM_REDIRECT_OVERTAKES, /* what came later goes before what was turned away */
	/* A command that was sent on with ASK is refused when it comes back, though no later command ran. */
	HS_SIM_ASK_REFUSED,
	HS_SIM_EMPTY_MASTER_DROPPED, /* the connection to a master without slots is not kept */
	HS_SIM_WRITE_RESENT,	     /* a write whose outcome is unknown is sent again */
	HS_SIM_FAILOVER_RESENT, /* an increment whose outcome is unknown is sent again, to the new master */
	HS_SIM_MSET_RESENT, /* several values at once, whose outcome is unknown, are sent again */
	HS_SIM_UNKNOWN_RESENT,	  /* an unknown command whose outcome is unknown is sent again */
	HS_SIM_EXEC_RESENT,	  /* a transaction whose outcome is unknown is sent again */
	HS_SIM_HALF_REPLY_REUSED, /* the rest of a lost reply is looked for on the next connection */
	HS_SIM_DIED_RESENT,	  /* what a process had under way when it died is sent again */
	HS_SIM_ERROR_AS_MISSING,  /* an error counts as a missing key */
	HS_SIM_FLUSH_ONE,	  /* FLUSHALL reaches one master */
	HS_SIM_COPIES_LEFT,	  /* copies of a hot value are not taken away */
	HS_SIM_WATCH_LEFT,	  /* a client goes, and its watch stays */
	HS_SIM_WAITS_FOR_ALL,	  /* nothing is sent while any server owes an answer */
	HS_SIM_PARKS_ALL,	  /* nothing is sent while any server is away */
	HS_SIM_FETCH_WAITS_FOR_ALL, /* no fetch is sent while any other server owes one */
	/* Of those who wait and listen (sim/companions.h): */
	HS_SIM_PRIVATE_UNLIMITED, /* more connections may serve one client each than the limit says */
	HS_SIM_UNBLOCK_IGNORED,	  /* CLIENT UNBLOCK is answered, and nobody is woken */
	HS_SIM_ELEMENT_LOST,  /* a BLPOP whose outcome is unknown is said not to have been sent */
	HS_SIM_ELEMENT_TWICE, /* an RPUSH whose outcome is unknown is sent again */
	HS_SIM_MESSAGE_LOST,  /* a message is not told */
	HS_SIM_MESSAGE_TWICE, /* a message is told twice */
	HS_SIM_MESSAGE_OVERTAKES, /* a message comes behind the next one */
	/* Of the simulated servers and the network, which do what a wrong heatsink would have them do (sim/servers.c hands
	 * them on to sim/server_route.c, sim/server_commands.c and sim/network.c): */
	HS_SIM_STALE_MAP_WRITE, /* a write goes to the owner of before, which takes it */
	HS_SIM_STALE_MAP_READ,	/* the same of a read */
	HS_SIM_HALF_SLOT_SERVED, /* several keys of a slot on the move are taken for those that are there */
	HS_SIM_WATCH_REUSED,	/* a private connection is used again with the WATCH of before */
	HS_SIM_CONNECTION_LEFT, /* a connection is given up, and not closed */
	/* Around the cores: what one does who thinks that a cache is easy (sim/cache_bugs.c). */
	HS_SIM_VERSION_NOT_BUMPED,     /* an increment leaves kept values as they are */
	HS_SIM_RACED_FETCH_CACHED,     /* what was read while it was written is kept */
	HS_SIM_NEGATIVE_FOREVER,       /* that a key is missing is kept past its time */
	HS_SIM_MISSING_CACHED_IN_MOVE, /* that a key is missing is believed while its slot moves */
	HS_SIM_OWN_WRITE_UNSEEN, /* a read is answered while its client's own write is under way */
	HS_SIM_COPIES_NOT_INVALIDATED, /* a write does not end the copies of a hot value */
	HS_SIM_DOUBLE_FETCH, /* a worker forgets that it is just reading a key, and reads it again */
	HS_SIM_OLD_DURING_FETCH, /* what was written is answered as it was, while it is read again */
	/* Of a stage in the row (sim/stage.c). */
	HS_SIM_STAGE_OVERTAKEN, /* it delays a request, and later ones pass it */
	HS_SIM_STAGE_FORGETS,	/* it is switched off, and what it has taken stays with it */
	HS_SIM_BUGS,
};

/* The mistake's name on the command line, and the other way round (HS_SIM_BUGS: none such). */
const char *hs_sim_bug_name(enum hs_sim_bug bug);
enum hs_sim_bug hs_sim_bug_find(const char *name);

/* Where it can strike at all. */
enum hs_sim_bug_where {
	HS_SIM_ANYWHERE,
	HS_SIM_IN_ENGINE,	   /* like the embedded one */
	HS_SIM_IN_SLOWNESS,	   /* the same on a machine under load */
	HS_SIM_IN_SERVERS,	   /* in front of servers, where things fail */
	HS_SIM_IN_HEALTHY_SERVERS, /* in front of servers, where nothing does */
	HS_SIM_IN_TRACKING,	   /* with clients that keep what they read */
	HS_SIM_IN_FOLD,		   /* where requests wait for a hot key */
	HS_SIM_IN_RULES,	   /* where keys have contracts */
	HS_SIM_IN_STAGE,	   /* where a stage delays requests */
	HS_SIM_IN_MOVES,	   /* in front of a Cluster whose slots move */
	HS_SIM_IN_FAILOVERS, /* in front of a Cluster whose masters are lost, and nothing else goes wrong */
	HS_SIM_IN_ONE_FAULTY,	   /* in front of a Cluster of which one server is troubled */
	HS_SIM_IN_FLEET,	   /* with several heatsinks, which die */
	HS_SIM_IN_TRACKING_FAULTS, /* clients that keep what they read, in front of servers that fail */
	HS_SIM_IN_COMPANIONS,	   /* with clients that wait and listen, in front of servers */
	HS_SIM_IN_COMPANIONS_FAULTS, /* the same where servers fail */
};
enum hs_sim_bug_where hs_sim_bug_where(enum hs_sim_bug bug);
/* Whether the law of a verdict is one that the mistake can break: another one was broken by something else. */
bool hs_sim_bug_breaks(enum hs_sim_bug bug, int law);

#endif
