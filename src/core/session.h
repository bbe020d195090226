/* Private to the core, its stages and local/: one connection.
 *
 * A session keeps its requests in arrival order; replies leave in that order (law 1). A command
 * that is answered at once while nothing is waiting is written straight to `out` and never becomes
 * a request at all (core/request.h). */
#ifndef HS_CORE_SESSION_H
#define HS_CORE_SESSION_H

#include "base/buf.h"
#include "base/hash_table.h"
#include "base/list.h"
#include "core/core.h"
#include "wire/request.h"

struct hs_multi;
struct hs_request;
struct hs_watches;

enum hs_session_reply_mode { HS_REPLY_ON, HS_REPLY_OFF, HS_REPLY_SKIP_NEXT, HS_REPLY_SKIP };

struct hs_session {
	struct hs_link all;	 /* in core->sessions */
	struct hs_link sendable; /* in core->sendable, or alone */
	struct hs_link sleeping; /* in core->sleepers, or alone */
	struct hs_link resuming; /* among those that go on soon, or alone */
	struct hs_link requests; /* waiting or answered out of turn, oldest first */
	struct hs_wire_request parser;
	struct hs_buf in;     /* an unfinished request, or what waits while the session is paused */
	struct hs_buf out;    /* replies the driver has not taken yet */
	size_t sending_bytes; /* taken by the driver, not sent yet */
	size_t held_bytes;    /* replies finished out of turn */
	/* core/reply_budget.c */
	uint64_t reply_bytes; /* reckoned for its replies in flight */
	uint64_t
		typical_reply_bytes; /* the largest of its last replies, shrinking with smaller ones */
	uint32_t next_reply_bytes;     /* reckoned for the request that is being served */
	uint16_t next_reply_partition; /* of it */
	struct hs_link budget_link;    /* in core->flight.held, or alone */
	uint32_t inflight;	       /* requests in `requests` */
	uint32_t inflight_max;	       /* with so many of them the next one is held */
	uint64_t requests_made;	       /* requests there ever were */
	uint16_t in_bucket[HS_PARTITION_BUCKETS]; /* operations in flight, by partition bucket */
	uint32_t
		delayed; /* parts that a stage delays (hs_stage_delay): stages that answer reads let this
			   * session's pass meanwhile, since they do not know of what it wrote */

	uint64_t id;
	char address[64];
	char local_address[64];
	int fd;
	char *name;	/* CLIENT SETNAME, or NULL */
	char *lib_name; /* CLIENT SETINFO, or NULL */
	char *lib_ver;
	uint64_t connected_us;
	uint64_t last_active_us;
	uint64_t sleep_until_us; /* DEBUG SLEEP; 0: awake */
	const struct hs_command *last_command;
	struct hs_multi *multi;	    /* NULL outside MULTI */
	struct hs_watches *watches; /* NULL: none */
	struct hs_hash_node by_id;  /* in core->ids, until its client is gone */
	uint32_t observers;	/* a bit for each stage that hears of its commands and answers */
	uint32_t subscriptions; /* with those that the engine is still asked about */
	struct hs_request *deferred; /* an EXEC that has committed and goes on, or NULL */
	uint8_t resp;
	enum hs_session_reply_mode reply_mode;
	const struct hs_acl_user *user;	  /* in the core's set */
	const struct hs_acl_user *limits; /* the same; NULL: it may do everything */
	bool authenticated;
	bool internal; /* the process itself is the client: no user's limits are its own */
	bool no_evict;
	bool no_touch;
	bool readonly;	 /* READONLY: it would take a replica's word */
	bool subscribed; /* to something: in RESP2 it may do little else */
	bool tracks;	 /* it caches values itself (CLIENT TRACKING): they must be exact */
	bool tls;
	bool ended;		/* the client sends no more */
	bool closing;		/* nothing more is read; closed when all is sent */
	bool closes_unanswered; /* closed without the answer to what it waits for */
	bool cut;		/* closed at once */
	bool gone;		/* disconnected; waits for its operations */
	bool running;		/* its input is being run: a completion must not parse on */
	bool alone;		/* the command in flight must be the only one */
	enum hs_hold hold;	/* why its next command waits */
	uint8_t hold_stage;	/* HS_HOLD_STAGE: which */
	void *io;
};

struct hs_session *hs_session_create(struct hs_core *core, const struct hs_core_client *client);
void hs_session_destroy(struct hs_core *core, struct hs_session **session);
/* The one with that number, if it is connected here. */
struct hs_session *hs_session_find(const struct hs_core *core, uint64_t id);

struct hs_session *hs_session_create_self(struct hs_core *core);
void hs_session_mark_sendable(struct hs_core *core, struct hs_session *session);
void hs_session_close(struct hs_core *core, struct hs_session *session); /* when all is sent */

/* The last that somebody asked for; NULL: none. */
struct hs_request *hs_session_last_request(const struct hs_session *session);

#endif
