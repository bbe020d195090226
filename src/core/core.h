/* One worker's whole request path, without a file descriptor, a thread or a clock. Time, client
 * bytes and finished operations come in as calls; bytes for clients lie in the sessions' out
 * buffers, and operations go out through struct hs_core_calls. The libuv driver (serve/) is one
 * caller, the simulated world (sim/) another.
 *
 *     connect ─ receive ─┬─ session->out            (answered at once)
 *                        └─ calls->submit ─ … ─ complete ─ session->out, in order
 *
 * After any call that may have answered something the driver walks hs_core_next_sendable.
 *
 * One core belongs to one thread. Its counters may be read by any. */
#ifndef HS_CORE_CORE_H
#define HS_CORE_CORE_H

#include "acl/acl.h"
#include "base/buf.h"
#include "base/check.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/now.h"
#include "command/command.h"
#include "command/learned.h"
#include "contract/contract.h"
#include "core/event.h"
#include "core/op.h"
#include "core/stats.h"
#include "heat/heat.h"
#include "route/slot_map.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_core;
struct hs_session;
struct hs_shared;
struct hs_stage;

/* What may be asked of an engine in one operation. */
enum hs_op_scope {
	HS_OP_SCOPE_PARTITION, /* keys of one partition; whole commands only within a slot */
	HS_OP_SCOPE_SLOT,      /* keys of one slot */
	HS_OP_SCOPE_ALL,       /* any keys: there is one server */
};

/* What a core may ask of the world around it. */
struct hs_core_calls {
	/* Takes an operation. Ops of one session to one partition keep the order of these calls
	 * when they are `ordered`. */
	enum hs_submit (*submit)(void *context, struct hs_op *op);
	/* Gives up an operation that may wait for ever: its client has gone. It is completed soon,
	 * with whatever reply. NULL where nothing waits for ever. */
	void (*cancel)(void *context, struct hs_op *op);
	/* Ends the wait of such an operation as if its time were over, or with an error (CLIENT
	 * UNBLOCK). False: it does not wait. NULL where nothing does. */
	bool (*unblock)(void *context, struct hs_op *op, bool error);
	/* Writes the reply of a completed operation that is `reply_unwritten`; not `wanted`: only gives back what
	 * the engine has set aside for it. NULL where no engine leaves replies reply_unwritten. */
	void (*write_reply)(void *context, struct hs_op *op, bool wanted);
	/* Tells all cores of the process, this one included, and takes the news over. NULL: this one is
	 * alone. */
	void (*broadcast)(void *context, struct hs_event *event);
	/* Why the engine knows no server, as text; "" when it does not say. May be NULL. */
	void (*unavailable_reason)(void *context, char *text, size_t size);
	/* The text of a script with this digest (EVALSHA); empty: it is not known. Valid until the next
	 * call. NULL where nobody knows scripts. */
	struct hs_bytes (*script)(void *context, struct hs_bytes digest);
	/* The clock again, for timing a batch that goes on: the only time a core pulls. */
	uint64_t (*mono_us)(void *context);
};

/* Whether what the rules allow is done. */
enum hs_mitigate {
	HS_MITIGATE_ON,
	HS_MITIGATE_OBSERVE, /* nothing is changed; what would have been saved is counted */
	HS_MITIGATE_OFF,
};

/* From when on a key is hot: what it has of this worker's requests, over the short window of heat, for
 * certain. It is hot until it has had less than `share_exit`, or `share` if that is smaller, for `cool_down_us`. */
struct hs_core_hot {
	double share; /* of all keys' requests */
	double share_exit;
	double requests; /* and at least so many: fewer prove nothing */
	uint64_t cool_down_us;
	/* Requests for each command that is sent for them: with fewer, folding rests for a while. 0: it
	 * never does. */
	uint32_t fold_gain_min;
	uint32_t keys_max; /* hot at once; 0: HS_HOT_KEYS_MAX */
};

/* Whether a key that is hot stays so. */
static inline bool hs_core_stays_hot(const struct hs_core_hot *bounds, double share,
				     double requests)
{
	return (share >= bounds->share_exit || share >= bounds->share) &&
	       requests >= bounds->requests;
}

/* Options that may change while running: a new struct is handed in whole (hs_core_configure). The
 * core holds the users and the rules as long as it needs them. */
struct hs_core_options {
	const struct hs_acl *acl;  /* the users; NULL: whoever comes may do everything */
	uint64_t output_bytes_max; /* unsent bytes at which a client is cut off */
	/* Requests in flight of a client that connects from now on; 0: HS_SESSION_INFLIGHT_MAX. */
	uint32_t session_inflight_max;
	uint64_t
		engine_inflight_bytes_max; /* reckoned replies in flight from one partition; 0: no limit */
	int64_t slowlog_us;		   /* log commands slower than this; negative: none */
	uint32_t slowlog_len_max;
	uint32_t acllog_len_max;    /* entries of ACL LOG */
	uint32_t idle_s_max;	    /* close clients idle for longer; 0: never */
	uint64_t tracking_keys_max; /* of all workers, who share it evenly; 0: no limit */
	/* What CLUSTER says where clients reach us; "" and 0: where they are connected. */
	char announce_host[HS_HOST_NAME_MAX + 1];
	uint16_t announce_port, announce_tls_port;
	struct hs_core_hot hot; /* without heat no key is */
	bool fold; /* requests that wait for one hot key become few (absorb/fold/fold.h) */
	uint32_t fold_waiters_max;    /* of one key; one more is told BUSY */
	const struct hs_rules *rules; /* contracts; NULL: there are none */
	enum hs_mitigate mitigate;
	uint64_t cache_bytes;	    /* of all workers, who share it evenly; 0: nothing is kept */
	uint64_t cache_entry_bytes; /* a larger reply is not kept */
};

/* What never changes for a core. */
struct hs_core_world {
	const struct hs_core_calls *calls;
	void *context;
	const struct hs_log *log;
	uint32_t worker; /* this core's number among `workers` */
	uint32_t workers;
	uint16_t partitions;
	bool reads_at_once; /* the engine answers unordered reads inside submit */
	enum hs_op_scope op_scope;
	/* Where slots are; NULL: in even ranges over `partitions`. The engine changes it while the
	 * core runs. */
	const struct hs_slot_map *slots;
	/* The engine is behind connections that clients share: a command that needs one of its own
	 * (WATCH, BLPOP) runs alone among its client's. */
	bool shared_connections;
	const char *node_id; /* HS_NODE_ID_LEN hex digits: who we are among a cluster's nodes */
	_Atomic uint64_t *slowlog_ids; /* shared by all cores: entries are numbered over all */
	uint64_t seed;
	uint64_t key_seed;	      /* of the hashes of keys, the same in all cores */
	struct hs_heat *heat;	      /* NULL: nothing is counted */
	struct hs_heat *const *heats; /* all workers', for OBJECT FREQ */
	size_t heats_count;
	struct hs_shared
		*shared; /* what the stages of all cores share, handed on to them; or NULL */
	const struct hs_core_commands *commands; /* that need no engine (core/commands.h) */
	const struct hs_stage *const *stages; /* in their order, NULL at the end (core/stage.h) */
};

struct hs_core *hs_core_create(const struct hs_core_world *world,
			       const struct hs_core_options *options);
/* All sessions are closed and all operations completed. */
void hs_core_destroy(struct hs_core **core);

void hs_core_configure(struct hs_core *core, const struct hs_core_options *options);

/* The commands of the server behind the engine, from now on; NULL: none. The caller keeps the set
 * that was there before until this has returned in all cores. */
void hs_core_learn(struct hs_core *core, const struct hs_learned *learned);
struct hs_core_stats *hs_core_stats(struct hs_core *core);
/* The counters of a stage, a struct of fields of its table (core/stage.h). Any thread. */
const void *hs_core_stage_stats(const struct hs_core *core, const struct hs_stage *stage);

/* Who connected; the texts are copied. */
struct hs_core_client {
	uint64_t id; /* unique in the process */
	const char *address;
	const char *local_address;
	int fd;	       /* shown in CLIENT LIST, otherwise unused */
	bool tls;      /* which port is announced to it */
	bool internal; /* the process itself: let in, whoever the users are, and without their limits */
};

struct hs_session *hs_core_connect(struct hs_core *core, struct hs_now now,
				   const struct hs_core_client *client);

/* Bytes of a client. They are used or copied before this returns. */
void hs_core_receive(struct hs_core *core, struct hs_session *session, struct hs_now now,
		     const char *data, size_t len);

/* Where the next bytes may be read to, so that a large argument is not copied twice: the session's
 * own buffer while a request is unfinished, else {NULL, 0}: any buffer will do. What was read there
 * is then handed to hs_core_receive as it is. */
char *hs_core_read_room(struct hs_session *session, size_t *room);

/* False while the session has more under way than it may: the driver stops reading from it. */
bool hs_core_wants_input(const struct hs_session *session);

/* The client will send no more, but still reads: what it has sent is answered, then it is closed.
 */
void hs_core_end(struct hs_core *core, struct hs_session *session);

/* The connection is gone. The session must not be used afterwards. */
void hs_core_disconnect(struct hs_core *core, struct hs_session *session);

/* An operation that submit queued is finished, its reply in op->out. */
void hs_core_complete(struct hs_core *core, struct hs_now now, struct hs_op *op);

/* The events of a round are handled: what they gathered for hot keys is submitted. Call it before the
 * engine is flushed. True: something was, and replies may have come of it already. */
bool hs_core_flush(struct hs_core *core, struct hs_now now);
bool hs_core_needs_flush(const struct hs_core *core); /* else it would do nothing */

/* For whoever checks an engine: the requests of clients that an operation stands for, each with the number of
 * its connection and its own, counted from 1 in the order in which that connection asked. */
void hs_core_members(const struct hs_core *core, const struct hs_op *op,
		     void (*broadcast)(void *context, uint64_t client, uint64_t number),
		     void *context);

/* Does this core's part of a command that concerns all workers (HS_OP_PEER), into op->out. */
void hs_core_peer(struct hs_core *core, struct hs_now now, struct hs_op *op);

/* What `vouch` vouches for of a key has changed; no key: everything has. On the core's thread, before any
 * later reply under that vouch is completed. */
void hs_core_changed(struct hs_core *core, struct hs_now now,
		     const struct hs_tracking_session *tracking_session,
		     const struct hs_bytes *key);

/* News of the engine; `news` is the caller's. */
void hs_core_event(struct hs_core *core, struct hs_now now, const struct hs_event *event);

/* Time passes: sleepers wake, pauses end, stages have deadlines. Call at hs_core_deadline or later. */
void hs_core_alarm(struct hs_core *core, struct hs_now now);
uint64_t hs_core_deadline(const struct hs_core *core); /* mono_us of the next of them; 0: none */
/* The same, and what is looked at now and then: idle clients, keys that cool, late internal calls. Call it each
 * 100 ms. */
void hs_core_tick(struct hs_core *core, struct hs_now now);

/* Shutting down, called again and again: closes every session that has nothing under way and has
 * been quiet for `quiet_us`. With 0 nothing more is taken from anybody. Returns how many are left.
 */
uint32_t hs_core_drain(struct hs_core *core, struct hs_now now, uint64_t quiet_us);

/* The next session with bytes to send or to be closed, each once; NULL when there are no more. */
struct hs_session *hs_core_next_sendable(struct hs_core *core);

/* Whether a session waits until its client has read; and it has read some: call it when bytes were
 * sent to such a one. */
bool hs_core_waits_for_reader(const struct hs_session *session);
void hs_core_sent(struct hs_core *core, struct hs_session *session, struct hs_now now);

/* The driver's side of a session. */
struct hs_buf *hs_session_out(struct hs_session *session); /* send and clear it, or swap it away */
void hs_session_sending(struct hs_session *session, size_t bytes); /* swapped away and unsent */
bool hs_session_closing(const struct hs_session *session);	   /* disconnect when all is sent */
bool hs_session_cut(const struct hs_session *session); /* disconnect now, unsent or not */
void hs_session_set_io(struct hs_session *session, void *io);
void *hs_session_io(const struct hs_session *session);

#endif
