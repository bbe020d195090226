/* CLIENT TRACKING: clients that cache what they have read and must get an invalidation when it changes.
 *
 *     tracking.c              which reads are recorded, who gets an invalidation, in which order
 *     tracking_own_writes.c   an invalidation of a connection's own write follows the write's reply
 *     tracking_command.c      CLIENT TRACKING, CACHING, GETREDIR, TRACKINGINFO
 *     tracking_table.c        key to connections
 *
 * The engine reports changes by any client as events (core/event.h). Private to push/; the worker's thread. */
#ifndef HS_PUSH_TRACKING_H
#define HS_PUSH_TRACKING_H

#include "push/push.h"
#include "push/tracking_table.h"

/* A prefix that connections track in BCAST mode. */
struct hs_prefix {
	struct hs_link link;	/* in tracking->prefixes, sorted */
	struct hs_link members; /* connections that track it */
	struct hs_bytes bytes;	/* lie behind the struct */
};

struct hs_prefix_member {
	struct hs_link link; /* in prefix->members */
	struct hs_prefix *prefix;
	struct hs_session *session;
	struct hs_prefix_member *next; /* next of the same session, sorted by prefix */
};

/* Settings of one connection. */
struct hs_tracker {
	bool bcast, optin, optout, noloop;
	bool caching;	      /* CLIENT CACHING was called; it applies to the next command */
	bool redirect_broken; /* the connection that it redirects to has gone */
	/* Client id that gets the invalidations; 0: the connection itself. */
	uint64_t redirect;
	uint32_t redirect_worker;
	struct hs_prefix_member *prefixes;
	uint32_t prefixes_count;
	size_t prefixes_bytes;
};

enum hs_tracking_engine { HS_TRACKING_OFF, HS_TRACKING_STARTING, HS_TRACKING_ON };

/* A worker's tracking state. */
struct hs_tracking {
	struct hs_tracking_table *table;
	uint64_t table_bytes_max; /* HS_TRACKING_TABLE_BYTES_MAX; tests set less */
	struct hs_link prefixes;
	uint32_t trackers;	 /* connections that track, or wait for the engine to start */
	uint32_t prefixes_count; /* number of distinct prefixes */
	enum hs_tracking_engine engine; /* whether the engine reports changes */
	/* CLIENT TRACKING ON requests that wait for the engine, linked by `next` */
	struct hs_request *waiting;
	struct hs_buf body, message; /* scratch for composing */
};

static inline struct hs_tracker *hs_tracker_of(const struct hs_core *core,
					       const struct hs_session *session)
{
	return hs_push_session(core, session)->tracker;
}

struct hs_tracking *hs_tracking_create(uint64_t seed);
void hs_tracking_destroy(struct hs_tracking **tracking);

/* tracking.c */

/* A tracking connection's command is handed to the engine in this event: records its keys if it reads. */
void hs_tracking_read(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
/* The command was handed over or answered: makes room in the table. */
void hs_tracking_settle(struct hs_core *core, struct hs_session *session,
			const struct hs_call *call);
void hs_tracking_event(struct hs_core *core, const struct hs_event *event);
/* Body of an invalidation of all keys. */
#define HS_TRACKING_ALL_KEYS HS_LIT("_\r\n")
/* Writes the body of a message about one key to tracking->body. */
void hs_tracking_write_key(struct hs_tracking *tracking, struct hs_bytes key);
/* Sends an invalidation directly behind the reply of `request`, to its session or to the connection that the
 * session redirects to. The session tracks. */
void hs_tracking_send_behind(struct hs_core *core, struct hs_request *request,
			     struct hs_bytes body);
/* Sends messages of `from` to connection `to` on some worker. `bodies`: message bodies, one after the other. */
void hs_tracking_forward(struct hs_core *core, uint64_t from, uint64_t to, uint32_t worker,
			 struct hs_bytes bodies);
void hs_tracking_tick(struct hs_core *core);
void hs_tracking_count(struct hs_core *core); /* updates the counters for INFO */

/* tracking_own_writes.c */

/* A tracking connection's request was answered and its reply is not sent yet: adds the invalidations of its
 * writes. */
void hs_tracking_send_own_writes(struct hs_core *core, struct hs_request *request);
/* Whether this connection has an unanswered write of the key, in front of servers. False with the embedded
 * engine and for NOLOOP. */
bool hs_tracking_has_write(const struct hs_core *core, const struct hs_session *session,
			   struct hs_bytes key);

/* tracking_command.c */

/* Ends tracking of the connection, if it tracks. */
void hs_tracking_stop(struct hs_core *core, struct hs_session *session);

#endif
