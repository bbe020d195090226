/* Private to the core, its stages and local/: one client connection.
 *
 * A session keeps its requests in arrival order, and their replies leave in that order (law 1: replies to a
 * connection come in the order of its requests). A command that is answered at once while nothing is in flight
 * is written straight to `out` and never becomes a request (core/request.h).
 *
 * The worker's thread owns it. After the client has disconnected (`gone`) the session lives until its
 * operations in flight have completed. */
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
	struct hs_link sendable; /* in core->sendable, or unlinked */
	struct hs_link sleeping; /* in core->sleepers, or unlinked */
	struct hs_link resuming; /* in core->resuming, or unlinked */
	struct hs_link requests; /* in flight, or answered before their turn; oldest first */
	struct hs_wire_request parser;
	/* Input that has not run: an incomplete request, or commands of a held session. */
	struct hs_buf in;
	struct hs_buf out;    /* replies the driver has not taken yet */
	size_t sending_bytes; /* swapped away by the driver and not sent */
	size_t held_bytes;    /* replies finished before their turn */
	/* For core/reply_budget.h. */
	uint64_t reply_bytes; /* estimated for its replies in flight */
	/* The largest of its recent replies; decays with smaller ones. */
	uint64_t typical_reply_bytes;
	uint32_t next_reply_bytes;		  /* estimated for the command being dispatched */
	uint16_t next_reply_partition;		  /* where that command goes */
	struct hs_link budget_link;		  /* in core->reply_budget.held, or unlinked */
	uint32_t inflight;			  /* requests in `requests` */
	uint32_t inflight_max;			  /* at that many the next command is held */
	uint64_t requests_made;			  /* requests since it connected */
	uint16_t in_bucket[HS_PARTITION_BUCKETS]; /* operations in flight, by partition bucket */
	/* Parts that a stage delays (hs_stage_delay). Stages that answer reads let this session's reads pass
	 * meanwhile, because they do not know of its delayed writes. */
	uint32_t delayed;

	uint64_t id;
	char address[64];
	char local_address[64];
	int fd;
	char *name;	/* CLIENT SETNAME, or NULL */
	char *lib_name; /* CLIENT SETINFO, or NULL */
	char *lib_ver;
	uint64_t connected_us;
	uint64_t last_active_us;
	uint64_t sleep_until_us; /* end of DEBUG SLEEP; 0: none */
	const struct hs_command *last_command;
	struct hs_multi *multi;	    /* NULL outside MULTI */
	struct hs_watches *watches; /* NULL: no watched keys */
	struct hs_hash_node by_id;  /* in core->ids, until the client disconnects */
	uint32_t observers;	    /* a bit for each stage that observes it (hs_stage_observe) */
	uint32_t subscriptions;	    /* including those that the engine has not confirmed */
	/* The EXEC whose deferred commands run (core/deferred.h), or NULL. */
	struct hs_request *deferred;
	uint8_t resp;
	enum hs_session_reply_mode reply_mode;
	const struct hs_acl_user *user;	  /* in core->acl */
	const struct hs_acl_user *limits; /* the same user; NULL: it may run everything */
	bool authenticated;
	bool internal; /* internal client of the process: always logged in, no ACL rules apply */
	bool no_evict;
	bool no_touch;
	bool readonly;	 /* READONLY: it accepts reads from a replica */
	bool subscribed; /* has subscriptions: in RESP2 few other commands are allowed */
	/* CLIENT TRACKING: the client caches values itself, so its reads must be exact. */
	bool tracks;
	bool tls;
	bool ended;		/* the client has closed its side */
	bool closing;		/* no more input is read; closed when all is sent */
	bool closes_unanswered; /* closed without the reply to its blocked command */
	bool cut;		/* closed at once, without sending the rest */
	bool gone;		/* disconnected; freed when its operations have completed */
	bool running;		/* its input is being run: a completion inside must not parse on */
	bool alone;		/* the command in flight must stay the only one */
	enum hs_hold hold;	/* why its next command is held */
	uint8_t hold_stage;	/* HS_HOLD_STAGE: the stage */
	void *io;
};

struct hs_session *hs_session_create(struct hs_core *core, const struct hs_core_client *client);
void hs_session_destroy(struct hs_core *core, struct hs_session **session);
/* The session with that id, if it is connected to this core; else NULL. */
struct hs_session *hs_session_find(const struct hs_core *core, uint64_t id);

struct hs_session *hs_session_create_self(struct hs_core *core);
void hs_session_mark_sendable(struct hs_core *core, struct hs_session *session);
/* Closes after sending `out`. */
void hs_session_close(struct hs_core *core, struct hs_session *session);

/* The last request of the client, pushes left out; NULL: none. */
struct hs_request *hs_session_last_request(const struct hs_session *session);

#endif
