/* CLIENT TRACKING: clients that keep what they have read, and must be told when it changes.
 *
 *     tracking.c          which reads are remembered, and who is told of a change, in which order
 *     tracking_own_writes.c      a connection is told of its own writes together with their replies
 *     tracking_command.c  CLIENT TRACKING, CACHING, GETREDIR, TRACKINGINFO
 *     tracking_table.c    key to connections
 *
 * Changes come as events of the engine (core/event.h), whoever made them. Private to push/. */
#ifndef HS_PUSH_TRACKING_H
#define HS_PUSH_TRACKING_H

#include "push/push.h"
#include "push/tracking_table.h"

/* A prefix that somebody wants to hear about (BCAST). */
struct hs_prefix {
	struct hs_link link;	/* in tracking->prefixes, ordered */
	struct hs_link members; /* those who do */
	struct hs_bytes bytes;	/* behind the struct */
};

struct hs_prefix_member {
	struct hs_link link; /* in prefix->members */
	struct hs_prefix *prefix;
	struct hs_session *session;
	struct hs_prefix_member *next; /* of the same session, ordered by prefix */
};

/* What one connection asked for. */
struct hs_tracker {
	bool bcast, optin, optout, noloop;
	bool caching;	      /* CLIENT CACHING was said: about the next command */
	bool redirect_broken; /* whom it redirects to has gone */
	/* Whom to tell instead; 0: the connection itself. */
	uint64_t redirect;
	uint32_t redirect_worker;
	struct hs_prefix_member *prefixes;
	uint32_t prefixes_count;
	size_t prefixes_bytes;
};

enum hs_tracking_engine { HS_TRACKING_OFF, HS_TRACKING_STARTING, HS_TRACKING_ON };

/* What a worker knows. */
struct hs_tracking {
	struct hs_tracking_table *table;
	uint64_t table_bytes_max; /* HS_TRACKING_TABLE_BYTES_MAX; less in tests */
	struct hs_link prefixes;
	uint32_t trackers;		/* connections that track, or wait for it */
	uint32_t prefixes_count;	/* different ones */
	enum hs_tracking_engine engine; /* whether it tells of changes */
	struct hs_request *waiting;	/* until it does: CLIENT TRACKING ON, linked by next */
	struct hs_buf body, message;	/* room to write in */
};

static inline struct hs_tracker *hs_tracker_of(const struct hs_core *core,
					       const struct hs_session *session)
{
	return hs_push_session(core, session)->tracker;
}

struct hs_tracking *hs_tracking_create(uint64_t seed);
void hs_tracking_destroy(struct hs_tracking **tracking);

/* tracking.c */

/* A command of a connection that tracks is handed over in this event: its keys are remembered, if it
 * reads. */
void hs_tracking_read(struct hs_core *core, struct hs_session *session, const struct hs_call *call);
/* It was handed over, or answered. */
void hs_tracking_settle(struct hs_core *core, struct hs_session *session,
			const struct hs_call *call);
void hs_tracking_event(struct hs_core *core, const struct hs_event *event);
/* The body of a message that names no key and means all of them. */
#define HS_TRACKING_ALL_KEYS HS_LIT("_\r\n")
/* Writes the body of a message about one key to tracking->body. */
void hs_tracking_write_key(struct hs_tracking *tracking, struct hs_bytes key);
/* Sends a message directly behind the reply of `request`, to its session, which tracks, or to the
 * connection that the session redirects to. */
void hs_tracking_send_behind(struct hs_core *core, struct hs_request *request,
			     struct hs_bytes body);
/* Messages of `from` for a connection of some worker: their bodies, one behind the other. */
void hs_tracking_forward(struct hs_core *core, uint64_t from, uint64_t to, uint32_t worker,
			 struct hs_bytes bodies);
void hs_tracking_tick(struct hs_core *core);
void hs_tracking_count(struct hs_core *core); /* the figures of INFO */

/* tracking_own_writes.c */

/* A request of a connection that tracks is answered, and its reply not delivered yet. */
void hs_tracking_send_own_writes(struct hs_core *core, struct hs_request *request);
/* Whether a write of the key by this connection is not answered yet, in front of servers. */
bool hs_tracking_has_write(const struct hs_core *core, const struct hs_session *session,
			   struct hs_bytes key);

/* tracking_command.c */

/* The connection tracks no more; it may never have. */
void hs_tracking_stop(struct hs_core *core, struct hs_session *session);

#endif
