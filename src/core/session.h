/* Private to src/core: one connection and the requests it waits for.
 *
 * A session keeps its requests in arrival order; replies leave in that order (law 1). A command
 * that is answered at once while nothing is waiting is written straight to `out` and never becomes
 * a request at all. */
#ifndef HS_CORE_SESSION_H
#define HS_CORE_SESSION_H

#include "absorb/copies.h"
#include "absorb/fold.h"
#include "absorb/shelf.h"
#include "base/list.h"
#include "base/prng.h"
#include "core/core.h"
#include "core/topics.h"
#include "wire/reply.h"
#include "wire/request.h"

struct hs_multi;   /* what MULTI has queued: core/multi.c */
struct hs_watches; /* what WATCH watches: core/multi.c */
struct hs_slowlog;
struct hs_tracker;  /* what a connection that tracks wants: core/tracking.h */
struct hs_tracking; /* what a worker knows of all that do */
struct hs_acl_log;
struct hs_folds;
struct hs_wish;	   /* a topic of SUBSCRIBE or UNSUBSCRIBE: core/pubsub.c */
struct hs_late;	   /* what EXEC does behind its commit: core/late.c */
struct hs_queue;   /* of a hot key: core/folds.c */
struct hs_folding; /* what a session has in such queues */
struct hs_caching; /* what a core keeps of replies: core/cached.c */
struct hs_fill;	   /* a reply being read to be kept */
struct hs_copying; /* which values lie in several places: core/copied.c */
struct hs_copied;

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
	/* core/flight.c */
	uint64_t flight_bytes;	 /* reckoned for its replies in flight */
	uint64_t usual_bytes;	 /* the largest of its last replies, shrinking with smaller ones */
	uint32_t next_bytes;	 /* reckoned for the request that is being served */
	uint16_t next_partition; /* of it */
	bool held;		 /* its next request does not fit */
	struct hs_link holding;	 /* in core->flight.held, or alone */
	uint32_t inflight;	 /* requests in `requests` */
	uint64_t asked;		 /* requests there ever were */
	uint16_t lane[HS_LANES]; /* operations under way, by partition modulo HS_LANES */
	uint32_t
		folded; /* of its requests: those that wait for a hot key, or were sent with others */
	struct hs_folding *folding; /* its chains, by lane; NULL: nothing ever was */
	uint32_t
		unfolded; /* so many that could be folded are not: it was held up with much to do */
	size_t behind;	  /* input behind the request that is being served */
	uint32_t
		writing; /* operations under way that are in the stamps of keys: core/cached_write.c */
	uint32_t filling; /* requests that wait for a reply that is read to be kept */
	uint32_t fenced;  /* requests under way on another way than usual: others wait for them */
	uint64_t barrier_us; /* what is kept must have been proved since then; 0: no matter when */

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
	struct hs_multi *multi;			/* NULL outside MULTI */
	struct hs_watches *watches;		/* NULL: none */
	struct hs_tracker *tracker;		/* CLIENT TRACKING; NULL: off */
	struct hs_session *same_id;		/* in core->ids: the next of its bucket */
	struct hs_link listens[HS_TOPIC_KINDS]; /* subscriptions, oldest first */
	uint32_t listens_heard[HS_TOPIC_KINDS];
	uint32_t listens_held;	 /* all of them, with those the engine is still asked about */
	struct hs_request *late; /* an EXEC that has committed and goes on, or NULL */
	uint8_t resp;
	enum hs_session_reply_mode reply_mode;
	const struct hs_acl_user *user;	  /* in the core's set */
	const struct hs_acl_user *limits; /* the same; NULL: it may do everything */
	bool authenticated;
	bool own; /* the process itself is the client: no user's limits are its own */
	bool no_evict;
	bool no_touch;
	bool paused;   /* a command of it waits for the end of CLIENT PAUSE */
	bool readonly; /* READONLY: it would take a replica's word */
	bool tls;
	bool ended;	     /* the client sends no more */
	bool closing;	     /* nothing more is read; closed when all is sent */
	bool gives_up;	     /* closed without the answer to what it waits for */
	bool cut;	     /* closed at once */
	bool gone;	     /* disconnected; waits for its operations */
	bool running;	     /* inside hs_core_receive: a completion must not parse on */
	bool alone;	     /* goes on when nothing of it is under way */
	struct hs_bytes raw; /* the request being dispatched as it came; empty: an inline one */
	void *io;
};

/* One part of a request: an operation and where its reply goes. */
struct hs_part {
	struct hs_op op;
	struct hs_buf out;
	struct hs_bytes *argv; /* a split command's own arguments, owned; or NULL */
	uint64_t time_us;      /* from the request's start to this part's answer */
	bool answered;
	uint8_t lane;		/* its session counts it there while it is under way */
	uint8_t stamped;	/* its keys' stamps say that it is under way */
	struct hs_stamp before; /* what that of its last key was */
};

struct hs_request {
	struct hs_link link;   /* in session->requests, or in the core's pool */
	uint32_t flight_bytes; /* reckoned for its reply: core/flight.c */
	uint16_t flight_partition;
	struct hs_session *session;
	const struct hs_command *command;
	struct hs_bytes *argv; /* in argv_inline or owned; the bytes are in `args` */
	size_t argc;
	struct hs_bytes argv_inline[8];
	struct hs_buf args;    /* the arguments' bytes, copied: the client's buffer goes on */
	struct hs_buf reply;   /* filled in turn or out of turn */
	struct hs_part *parts; /* one: &single; more: owned */
	struct hs_part single;
	uint32_t parts_count;
	uint32_t parts_left;
	uint32_t *key_part; /* HS_MERGE_BY_KEY: which part answers key i, owned */
	size_t keys;
	struct hs_buf cursor;	 /* SCAN: the partition's own cursor; HS_OP_HOST: who asks */
	struct hs_multi *multi;	 /* EXEC: the commands, owned until it is answered */
	struct hs_wish *wishes;	 /* SUBSCRIBE, UNSUBSCRIBE: one for each topic, owned */
	struct hs_late *late;	 /* EXEC: what is left behind its commit, owned; or NULL */
	struct hs_request *exec; /* the EXEC this is a part of: its reply goes there; or NULL */
	uint64_t start_us;
	bool done;
	bool blocks; /* waits for what others do */
	bool muted;  /* CLIENT REPLY OFF or SKIP */
	/* Nobody's request but a place in the order of replies: what must not come before those of
	 * the requests ahead of it (push.c). */
	bool push;
	bool forgotten; /* all tracked keys were forgotten while it was in flight (tracking_own.c) */
	uint64_t letter_to;	/* a push for another connection, of this number; 0: for this one */
	uint32_t letter_worker; /* where that one is */
	struct hs_request *next; /* in a list of those who wait for the same thing */
	/* In the queue of a hot key; NULL: in none. Its operation is not submitted then, unless it goes
	 * by itself; or it is the core's own, sent for all asks of `step`. */
	struct hs_queue *queue;
	struct hs_fold_step *step;
	struct hs_folding *folding; /* the chain of its session that it is in, or NULL */
	struct hs_fold_ask ask;
	bool waiting; /* not planned yet */
	uint8_t resp; /* the dialect of its reply; 0: as its session has it */
	bool fenced;  /* counted in session->fenced */
	/* Among those who wait for a reply that is read to be kept; or among reads of copies. */
	struct hs_link fill_link;
	struct hs_fill *fill; /* the core's own: what it reads; NULL: nothing */
	bool behind;	      /* in its chain, behind those that wait in a queue */
	uint64_t flight; /* the name that it is sent under, instead of its session's number; or 0 */
	uint64_t number; /* among its session's */
	struct hs_copied *copied; /* the core's own: the key whose copies it is about; or NULL */
	struct hs_copies *copies; /* the core's own: the set it asks, a reference; or NULL */
	struct hs_place *place;	  /* the core's own: the copy it reads; or NULL */
	struct hs_request *asker; /* for whom; or NULL */
	/* What is done when all parts are answered, instead of merging them; NULL: nothing else. */
	void (*then)(struct hs_core *core, struct hs_request *request);
};

enum { HS_BATCH_TIMED_MAX = 64 };

_Static_assert((int)HS_BATCH_TIMED_MAX <= (int)HS_HEAT_NOTES_MAX,
	       "a batch's heat is noted until it is timed");

#define HS_UNHEARD "ERR the engine does not listen to this channel any more; try again"
enum { HS_UNSERVED_BYTES = 512 };

/* Compiled without (-DHS_HEAT_OFF) to measure what counting costs. */
#ifdef HS_HEAT_OFF
enum { HS_CORE_HEAT = 0 };
#else
enum { HS_CORE_HEAT = 1 };
#endif

enum { HS_FLIGHT_SIZES = 4096 };

/* The last reply for a key, by its hash. */
struct hs_flight_size {
	uint32_t tag; /* of the hash; 0: none */
	uint32_t bytes;
};

/* Replies in flight: flight.c. */
struct hs_flight {
	uint64_t bytes[HS_PARTITIONS_MAX + 1]; /* reckoned, by partition */
	struct hs_link held;		       /* sessions whose next request does not fit */
	bool freed;			       /* something has landed since they were looked at */
	uint64_t large_until_us;	       /* until then `sizes` is used */
	struct hs_flight_size sizes[HS_FLIGHT_SIZES];
};

enum hs_pause_mode { HS_PAUSE_NONE, HS_PAUSE_WRITES, HS_PAUSE_ALL };

struct hs_pause {
	enum hs_pause_mode mode;
	uint64_t until_us; /* mono */
	uint32_t sessions; /* that wait for it to end */
};

struct hs_core {
	struct hs_core_world world;
	struct hs_core_options options;
	const struct hs_learned *learned; /* the commands of a server behind it; or NULL */
	struct hs_core_stats stats;
	struct hs_link sessions;
	struct hs_link sendable;
	struct hs_link sleepers;
	struct hs_session **ids; /* who is connected, by number: a hash table */
	size_t ids_mask;
	size_t ids_count;
	struct hs_session *self; /* nobody: owns the requests that are the core's own */
	struct hs_tracking *tracking;
	struct hs_folds *folds;
	struct hs_caching *caching;
	struct hs_copying *copying;
	struct hs_link request_pool; /* finished requests, kept for the next */
	uint32_t request_pool_len;
	uint32_t orphans; /* sessions gone with operations under way */
	struct hs_acl *acl;
	bool open; /* the default user is on and has no password: nobody has to say who it is */
	struct hs_slowlog *slowlog;
	struct hs_pause pause;
	struct hs_flight flight;
	struct hs_acl_log *acl_log;
	struct hs_topics topics;
	struct hs_buf message; /* one being composed, for all who hear it */
	struct hs_prng prng;
	struct hs_now now;     /* of the event being handled */
	uint64_t idle_scan_us; /* when idle sessions are looked at next */
	/* Commands answered in this batch that share its time evenly. */
	enum hs_command_id batch[HS_BATCH_TIMED_MAX];
	uint32_t batch_len;
	uint64_t batch_start_us;
};

/* folds.c: the queues of hot keys. */
struct hs_folds *hs_folds_create(void);
void hs_folds_destroy(struct hs_core *core); /* nothing is in them */
/* The queue a command goes through, NULL for none. False: not now, but when the session's others are
 * answered. */
bool hs_folds_admit(struct hs_core *core, struct hs_session *session,
		    const struct hs_command *command, int slot_state, uint16_t slot, size_t argc,
		    const struct hs_bytes *argv, struct hs_queue **queue);
/* The request goes through a queue it was admitted to: to the engine if nothing is ahead of it. */
void hs_folds_take(struct hs_core *core, struct hs_queue *queue, struct hs_request *request);
/* A request that goes through no queue: true if it is behind others that do, and is sent after them. */
bool hs_folds_follow(struct hs_core *core, struct hs_request *request);
/* A request of a queue was answered by the engine, and is about to be finished; then, that is done. */
void hs_folds_leave(struct hs_core *core, struct hs_request *request);
void hs_folds_landed(struct hs_core *core, struct hs_queue *queue);
/* A client has gone: what it has waiting is not sent. */
void hs_folds_drop(struct hs_core *core, struct hs_session *session);
/* How warm a key is, as counted just now. */
void hs_folds_heat(struct hs_core *core, const struct hs_heat_access *access,
		   struct hs_heat_warmth warmth);
void hs_folds_tick(struct hs_core *core); /* keys that have cooled are folded no more */

/* cached.c: replies that are kept, where rules allow it. */
void hs_cached_create(struct hs_core *core);
void hs_cached_destroy(struct hs_core *core);
void hs_cached_configure(struct hs_core *core); /* the options are others */
/* Answers a read if a good reply is at hand: the fast way, before its slot is worked out. */
bool hs_cached_hit(struct hs_core *core, struct hs_session *session,
		   const struct hs_command *command, size_t argc, const struct hs_bytes *argv);
/* Answers a read from what is kept, or has it wait for that. False: it goes its ordinary way. */
bool hs_cached_read(struct hs_core *core, struct hs_session *session,
		    const struct hs_command *command, uint16_t slot, size_t argc,
		    const struct hs_bytes *argv);
/* How warm a key is, as counted just now. */
void hs_cached_heat(struct hs_core *core, struct hs_heat_warmth warmth);
void hs_cached_tick(struct hs_core *core);
void hs_cached_told(struct hs_core *core); /* another worker has read something */

/* cached_write.c: a part is about to be handed to the engine; it is answered, its client not yet. */
void hs_cached_begin(struct hs_core *core, struct hs_session *session, struct hs_part *part);
void hs_cached_end(struct hs_core *core, struct hs_session *session, struct hs_part *part);
/* Sends a plain SET so that what it leaves behind can be kept. False: it goes its ordinary way. */
bool hs_cached_set(struct hs_core *core, struct hs_session *session,
		   const struct hs_command *command, uint16_t slot, size_t argc,
		   const struct hs_bytes *argv);
/* Whether a command must wait for what its session has under way on other ways. */
bool hs_cached_holds(const struct hs_core *core, const struct hs_session *session,
		     const struct hs_command *command);
/* Unknown means write. */
bool hs_cached_only_reads(const struct hs_command *command);
/* May write keys that are not among its arguments: a script. */
bool hs_cached_may_write_others(const struct hs_command *command);

/* copied.c: copies of hot values, where rules allow them. */
void hs_copied_create(struct hs_core *core);
void hs_copied_destroy(struct hs_core *core);
void hs_copied_configure(struct hs_core *core); /* the options are others */
void hs_copied_stop(struct hs_core *core);	/* all copies are taken away, no more are made */
void hs_copied_heat(struct hs_core *core, struct hs_heat_warmth warmth);
/* A read is about to be handed to the engine. True: a copy is asked instead, and its operation is
 * completed when that has answered. */
bool hs_copied_read(struct hs_core *core, struct hs_request *request);
/* Whether reads of a key go to copies of it now. */
bool hs_copied_takes(struct hs_core *core, uint16_t slot, struct hs_bytes key);
void hs_copied_changed(struct hs_core *core, const struct hs_vouch *vouch,
		       const struct hs_bytes *key);
void hs_copied_tick(struct hs_core *core);

/* The time of an event. */
static inline void hs_core_set_now(struct hs_core *core, struct hs_now now)
{
	core->now = now;
	if (HS_CORE_HEAT && core->world.heat)
		hs_heat_now(core->world.heat, now.mono_us);
}

static inline uint16_t hs_core_partition(const struct hs_core *core, uint16_t slot)
{
	return core->world.slots ? hs_slot_map_get(core->world.slots, slot)
				 : hs_slot_partition(slot, core->world.partitions);
}

/* How many partitions there are now; 0 while the engine does not know. */
static inline uint16_t hs_core_partitions(const struct hs_core *core)
{
	return core->world.slots ? hs_slot_map_count(core->world.slots) : core->world.partitions;
}

/* Listens to something: in RESP2 it may do little else. */
static inline bool hs_session_subscribed(const struct hs_session *session)
{
	return session->listens_heard[HS_TOPIC_CHANNEL] > 0 ||
	       session->listens_heard[HS_TOPIC_PATTERN] > 0 ||
	       session->listens_heard[HS_TOPIC_SHARD] > 0;
}

/* The first partition that is there from number `from` on; HS_PARTITIONS_MAX: none is. */
static inline uint16_t hs_core_partition_from(const struct hs_core *core, uint16_t from)
{
	const struct hs_slot_map *slots = core->world.slots;

	while (from < HS_PARTITIONS_MAX &&
	       !(slots ? hs_slot_map_has(slots, from) : from < core->world.partitions))
		from++;
	return from;
}

/* session.c */
struct hs_session *hs_session_create(struct hs_core *core, const struct hs_core_client *client);
void hs_session_destroy(struct hs_core *core, struct hs_session **session);
/* The one with that number, if it is connected here. */
struct hs_session *hs_session_find(const struct hs_core *core, uint64_t id);
void hs_session_forget_id(struct hs_core *core, struct hs_session *session);
struct hs_session *hs_session_create_self(void);
void hs_session_mark_sendable(struct hs_core *core, struct hs_session *session);
void hs_session_close(struct hs_core *core, struct hs_session *session); /* when all is sent */
/* Takes nothing more from the session until then, and answers `command` with OK. */
void hs_session_sleep(struct hs_core *core, struct hs_session *session,
		      const struct hs_command *command, uint64_t until_us);

/* request.c: the pool, and finishing in order. */
struct hs_request *hs_request_get(struct hs_core *core, struct hs_session *session,
				  const struct hs_command *command);
void hs_request_keep_args(struct hs_request *request, size_t argc, const struct hs_bytes *argv);
struct hs_bytes hs_request_raw(const struct hs_request *request); /* empty: not kept as it came */
void hs_request_split(struct hs_request *request, uint32_t parts);
void hs_request_drop_parts(struct hs_request *request); /* to split it anew */
/* Marks it done and moves every reply whose turn has come to the session's out buffer. */
void hs_request_finish(struct hs_core *core, struct hs_request *request);
/* The same for the request whose turn it is, with a reply that lies elsewhere. */
void hs_request_answer(struct hs_core *core, struct hs_request *request, struct hs_bytes reply);
/* The same for one that was not sent by itself and shares the reply of another: counted and accounted
 * for here. Its session must not be resumed before all who share it have it. */
void hs_request_share(struct hs_core *core, struct hs_request *request, struct hs_bytes reply);
void hs_request_put(struct hs_core *core, struct hs_request *request);
void hs_request_pool_deinit(struct hs_core *core);

/* step.c: a parsed command to whoever runs it. */
/* False: not now, but again when nothing of the session is under way, or no pause keeps it. */
bool hs_step_dispatch(struct hs_core *core, struct hs_session *session, size_t argc,
		      const struct hs_bytes *argv);
/* Whether it waits for what may never come; and gives up what a session that is gone waits for. */
bool hs_step_blocked(const struct hs_core *core, const struct hs_session *session);
void hs_step_cancel(struct hs_core *core, struct hs_session *session);
/* CLIENT UNBLOCK: false when it does not wait. */
bool hs_step_unblock(struct hs_core *core, struct hs_session *session, bool error);
/* Sends part `index`. When it was the last to be answered, and at once, the request is gone. */
void hs_step_submit(struct hs_core *core, struct hs_request *request, uint32_t index);
/* All parts of a request are answered, and were not submitted. */
void hs_step_answered(struct hs_core *core, struct hs_request *request);
/* Has the process run a command. `exec`: the transaction that asks, or NULL. */
void hs_step_host(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		  const struct hs_command *command, size_t argc, const struct hs_bytes *argv);
/* The end of a request whose reply is written: accounted for, and delivered in its turn. */
void hs_step_finish(struct hs_core *core, struct hs_request *request);
/* The common end of every command: counters, slow log. */
void hs_step_account(struct hs_core *core, struct hs_session *session,
		     const struct hs_command *command, size_t argc, const struct hs_bytes *argv,
		     uint64_t time_us, bool failed);

/* Answers a read with a reply that lies elsewhere, and counts it like one that an engine answered at once. */
void hs_step_answer(struct hs_core *core, struct hs_session *session,
		    const struct hs_command *command, uint16_t slot, size_t argc,
		    const struct hs_bytes *argv, struct hs_bytes reply);

void hs_step_batch_begin(struct hs_core *core);
void hs_step_batch_end(struct hs_core *core);

/* unknown.c: append the error of a request that names no command, no subcommand of `parent`, or the
 * wrong number of arguments. */
void hs_unknown_command(const struct hs_core *core, size_t argc, const struct hs_bytes *argv,
			struct hs_buf *text);
void hs_unknown_subcommand(const struct hs_core *core, const struct hs_command *parent,
			   struct hs_bytes name, struct hs_buf *text);
void hs_unknown_arity(const struct hs_command *command, struct hs_buf *text);
/* The error for what the engine's servers should answer, while none is known. Returns `text`. */
const char *hs_unserved(const struct hs_core *core, char text[HS_UNSERVED_BYTES]);

/* count.c: commands as heat. A read of one key that shares the time of its batch is noted, and
 * counted with the batch: its arguments stay until then. Others are counted when they are done. */
void hs_count_note(struct hs_core *core, const struct hs_op *op, struct hs_bytes reply);
void hs_count_read(struct hs_core *core, const struct hs_op *op, struct hs_bytes reply,
		   uint64_t time_us);
void hs_count_request(struct hs_core *core, const struct hs_request *request,
		      struct hs_bytes reply);
uint8_t hs_count_frequency(const struct hs_core *core, struct hs_bytes key); /* OBJECT FREQ */

/* push.c: what a connection is told without having asked, behind everything that is under way for
 * it; at once if nothing is, or if that may wait for ever. */
void hs_push(struct hs_core *core, struct hs_session *session, struct hs_bytes bytes);
/* The same for another connection, on this worker or another: it leaves when all replies of
 * `session` that are under way now have gone out. */
void hs_push_letter(struct hs_core *core, struct hs_session *session, uint64_t to, uint32_t worker,
		    struct hs_bytes letter);
/* Directly behind the reply of `request`, which is answered and not delivered yet, and ahead of the
 * replies of what its session asked later. `to`: the connection that gets it; 0: the session itself. */
void hs_push_behind(struct hs_core *core, struct hs_request *request, uint64_t to, uint32_t worker,
		    struct hs_bytes bytes);
/* The last that somebody asked for; NULL: none. */
struct hs_request *hs_session_last_request(const struct hs_session *session);

/* flight.c: whether the next request must wait, because its reply would not fit; what a reply has cost; a
 * request is done; those that were held may go on. */
bool hs_flight_holds(struct hs_core *core, struct hs_session *session,
		     const struct hs_command *command, uint16_t slot, size_t argc,
		     const struct hs_bytes *argv);
void hs_flight_learn(struct hs_core *core, struct hs_session *session,
		     const struct hs_command *command, size_t argc, const struct hs_bytes *argv,
		     size_t bytes);
void hs_flight_land(struct hs_core *core, struct hs_request *request);
void hs_flight_resume(struct hs_core *core);

/* core.c: replies that wait somewhere for this client. */
size_t hs_session_unsent(const struct hs_session *session);
/* core.c: who has too much unread is cut off. */
void hs_core_check_output(struct hs_core *core, struct hs_session *session);

/* core.c: goes on with the input of a session that had to pause, frees one that is gone. */
void hs_core_resume(struct hs_core *core, struct hs_session *session);
/* Something the client did not ask for now, composed for RESP2: RESP3 differs in the first byte. A
 * client that reads too slowly is cut off instead. `publisher`: the request that causes it, of this
 * worker; or NULL. False: the client does not get it. */
bool hs_core_message(struct hs_core *core, struct hs_session *session, struct hs_bytes message,
		     struct hs_request *publisher);

/* pubsub.c: SUBSCRIBE and its like; what others publish. */
enum hs_topic_kind hs_pubsub_kind(const struct hs_command *command);
bool hs_pubsub_subscribes(const struct hs_command *command);
bool hs_pubsub_unsubscribes(const struct hs_command *command);
/* `exec`: the transaction that asks, or NULL. */
void hs_pubsub_run(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		   const struct hs_command *command, size_t argc, const struct hs_bytes *argv);
void hs_pubsub_told(struct hs_core *core, struct hs_op *op); /* a LISTEN or UNLISTEN is done */
void hs_pubsub_drop(struct hs_core *core, struct hs_session *session); /* all, silently */
/* RESET of a client that listens. */
void hs_pubsub_reset(struct hs_core *core, struct hs_session *session,
		     const struct hs_command *command, size_t argc, const struct hs_bytes *argv);
/* To all who hear the topic; how many. */
int64_t hs_pubsub_deliver(struct hs_core *core, const struct hs_topic *topic,
			  struct hs_bytes channel, struct hs_bytes payload,
			  struct hs_request *publisher);

/* publish.c: PUBLISH, SPUBLISH and PUBSUB, to which every worker contributes, and an engine behind
 * connections as well. `counted`: what the engine answered to it in `exec`, or empty. */
void hs_publish_run(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		    const struct hs_command *command, size_t argc, const struct hs_bytes *argv,
		    struct hs_bytes counted);
void hs_publish_part(struct hs_core *core, struct hs_op *op); /* this worker's */
void hs_publish_merge(const struct hs_core *core, const struct hs_request *request,
		      struct hs_reply *reply);
/* Whether it must wait for what its client has under way. */
bool hs_publish_waits(const struct hs_core *core, const struct hs_session *session,
		      const struct hs_command *command, uint16_t slot);

/* late.c: commands of a transaction that run when it has committed. */
/* Whether the core answers it by itself, at once. */
bool hs_late_is_local(const struct hs_command *command);
/* Whether it runs behind the commit whatever stands before it. */
bool hs_late_begins(const struct hs_core *core, const struct hs_command *command);
/* Whether this one does, behind those before it (`*begun` begins as false, or as true for all). */
bool hs_late_is(const struct hs_core *core, const struct hs_command *command, bool *begun);
/* Of one that does: whether the engine runs it in the transaction as well, and the reply is only
 * completed behind the commit. */
bool hs_late_in_engine(const struct hs_core *core, const struct hs_command *command);
/* The engine has answered EXEC. True: it is finished later. */
bool hs_late_begin(struct hs_core *core, struct hs_request *exec);
void hs_late_finished(struct hs_core *core, struct hs_request *request); /* one of its commands */
struct hs_buf *hs_late_behind(struct hs_late *late); /* where messages of others go meanwhile */
void hs_late_drop(struct hs_late **late);
/* EXEC is answered: counts the commands that ran inside it, each with an even share of its time. */
void hs_late_account(struct hs_core *core, const struct hs_request *exec, uint64_t time_us);

/* fan.c: commands that concern several partitions or workers. */
void hs_fan_split(struct hs_core *core, struct hs_session *session,
		  const struct hs_command *command, size_t argc, const struct hs_bytes *argv);
/* `exec`: the transaction that asks, or NULL; `own`: what its partition answered in it, or empty. */
void hs_fan_all(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		const struct hs_command *command, size_t argc, const struct hs_bytes *argv,
		struct hs_bytes own);
void hs_fan_cursor(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		   const struct hs_command *command, size_t argc, const struct hs_bytes *argv);
void hs_fan_merge(struct hs_core *core, struct hs_request *request);

/* multi.c: MULTI to EXEC. */
void hs_multi_queue(struct hs_core *core, struct hs_session *session,
		    const struct hs_command *command, size_t argc, const struct hs_bytes *argv,
		    struct hs_reply *reply);
void hs_multi_spoil(struct hs_session *session); /* a refused command: EXEC will abort */
void hs_multi_exec(struct hs_core *core, struct hs_session *session,
		   const struct hs_command *command);
void hs_multi_watch(struct hs_core *core, struct hs_session *session,
		    const struct hs_command *command, size_t argc, const struct hs_bytes *argv);
void hs_multi_drop(struct hs_multi **multi);
size_t hs_multi_count(const struct hs_multi *multi); /* commands queued */
bool hs_multi_writes(const struct hs_multi *multi);  /* one of them may */
/* Whether some run behind its commit (late.c), and whether that is all that needs no engine. */
bool hs_multi_is_late(const struct hs_multi *multi, bool *all);
bool hs_multi_would_be_late(const struct hs_session *session); /* if EXEC came now */
void hs_multi_unwatch(struct hs_core *core, struct hs_session *session);
/* Of a transaction that was sent: the next key it watched, as far as names are remembered. `at`
 * begins at 0. */
bool hs_multi_watched(const struct hs_multi *multi, size_t *at, struct hs_bytes *name);

/* local.c, client.c, hello.c, cluster.c: commands the core answers itself, by identifier. */
typedef void hs_local_run(struct hs_core *core, struct hs_session *session,
			  const struct hs_command *command, size_t argc,
			  const struct hs_bytes *argv, struct hs_reply *reply);
hs_local_run *hs_local_find(enum hs_command_id id);
hs_local_run hs_local_hello, hs_local_auth, hs_local_reset;
hs_local_run hs_local_client_info, hs_local_client_reply, hs_local_client_setname,
	hs_local_client_getname, hs_local_client_id, hs_local_client_no_evict,
	hs_local_client_no_touch, hs_local_client_setinfo, hs_local_client_caching,
	hs_local_client_getredir, hs_local_client_trackinginfo;
hs_local_run hs_local_cluster, hs_local_readonly;
hs_local_run hs_local_multi, hs_local_discard, hs_local_unwatch, hs_local_quit;

hs_local_run hs_local_acl_whoami, hs_local_acl_users, hs_local_acl_getuser, hs_local_acl_cat,
	hs_local_acl_dryrun, hs_local_acl_file;

/* users.c: who a connection is, and what it may. */
static inline bool hs_users_let_in(const struct hs_core *core, const struct hs_session *session)
{
	return session->authenticated || core->open;
}
void hs_users_adopt(struct hs_core *core, const struct hs_acl *acl);
void hs_users_reset(struct hs_core *core, struct hs_session *session); /* as it came */
/* False: not with this password. `how` is the command that tried. */
bool hs_users_login(struct hs_core *core, struct hs_session *session, struct hs_bytes name,
		    struct hs_bytes password, struct hs_bytes how);
/* Of a session with limits: why it may not run this, perhaps written to `text`; NULL: it may. */
const char *hs_users_refuse(struct hs_core *core, struct hs_session *session,
			    const struct hs_command *command, size_t argc,
			    const struct hs_bytes *argv, char *text, size_t text_size);
/* The same at EXEC: rules may have changed since the command was queued. True: the error is
 * written. */
bool hs_users_refuse_queued(struct hs_core *core, struct hs_session *session,
			    const struct hs_command *command, size_t argc,
			    const struct hs_bytes *argv, struct hs_reply *reply);
void hs_users_reply_arity(const struct hs_bytes *argv, struct hs_reply *reply);

/* acl_log.c: who was refused. `reason` and `context` are literals. */
struct hs_acl_log *hs_acl_log_create(void);
void hs_acl_log_destroy(struct hs_acl_log **log);
void hs_acl_log_add(struct hs_core *core, const struct hs_session *session, const char *reason,
		    const char *context, struct hs_bytes object, struct hs_bytes user);
void hs_acl_log_reset(struct hs_acl_log *log);
void hs_acl_log_export(const struct hs_core *core, int resp,
		       struct hs_buf *out); /* as slowlog.c's */

/* cluster.c: the slot that CLUSTER COUNTKEYSINSLOT or GETKEYSINSLOT names. Returns what is wrong with
 * the arguments, or NULL. */
const char *hs_cluster_slot(const struct hs_command *command, const struct hs_bytes *argv,
			    uint16_t *slot);

/* pause.c: CLIENT PAUSE. */
/* False: the error is written. `reply` may be NULL when the arguments were checked before. */
bool hs_pause_parse(size_t argc, const struct hs_bytes *argv, enum hs_pause_mode *mode,
		    uint64_t *timeout_us, struct hs_reply *reply);
void hs_pause_begin(struct hs_core *core, enum hs_pause_mode mode, uint64_t until_us);
void hs_pause_end(struct hs_core *core);
/* While there is a pause: whether this command must wait; the session then waits with it. */
bool hs_pause_holds(struct hs_core *core, struct hs_session *session,
		    const struct hs_command *command, size_t argc, const struct hs_bytes *argv);
void hs_pause_release(struct hs_core *core, struct hs_session *session); /* it waits no more */
bool hs_pause_is_write(const struct hs_command *command);

/* peer.c: commands to which every worker contributes. */
/* Checks the arguments once, before all are asked; false: the error is written. */
bool hs_peer_check(const struct hs_core *core, const struct hs_command *command, size_t argc,
		   const struct hs_bytes *argv, struct hs_reply *reply);
void hs_peer_merge(struct hs_request *request, struct hs_reply *reply);

/* client.c: which sessions CLIENT LIST and CLIENT KILL mean. */
enum hs_client_type {
	HS_CLIENT_ANY,
	HS_CLIENT_NORMAL,
	HS_CLIENT_PUBSUB, /* listens to something */
	HS_CLIENT_NONE,	  /* a type of which heatsink has no clients */
};

struct hs_client_filter {
	const struct hs_bytes *ids; /* LIST ID: arguments that are numbers */
	size_t ids_count;
	struct hs_bytes address; /* empty: any */
	struct hs_bytes local_address;
	struct hs_bytes user;
	uint64_t id;	  /* 0: any */
	uint64_t skip_id; /* 0: none */
	enum hs_client_type type;
	bool old_form; /* CLIENT KILL ip:port */
};
/* False: the error is written. `reply` may be NULL when the arguments were checked before. */
bool hs_client_parse_list(struct hs_client_filter *filter, size_t argc, const struct hs_bytes *argv,
			  struct hs_reply *reply);
bool hs_client_parse_kill(const struct hs_core *core, struct hs_client_filter *filter, size_t argc,
			  const struct hs_bytes *argv, uint64_t caller, struct hs_reply *reply);
/* One line of CLIENT LIST. */
void hs_client_describe(const struct hs_core *core, const struct hs_session *session,
			struct hs_buf *text);
/* Writes the error when a name has a space, a line break or worse in it. */
bool hs_client_name_fits(struct hs_bytes name, struct hs_reply *reply);
void hs_client_set_name(struct hs_session *session, struct hs_bytes name); /* empty: none */
void hs_client_list(struct hs_core *core, const struct hs_client_filter *filter,
		    struct hs_buf *text);
int64_t hs_client_kill(struct hs_core *core, const struct hs_client_filter *filter,
		       uint64_t caller);
/* Too many arguments for a subcommand that takes several numbers of them. Returns false. */
bool hs_client_refuse_count(struct hs_bytes name, struct hs_reply *reply);
/* CLIENT UNBLOCK. False: the error is written; `reply` may be NULL as above. */
bool hs_client_parse_unblock(size_t argc, const struct hs_bytes *argv, int64_t *id, bool *error,
			     struct hs_reply *reply);
bool hs_client_unblock(struct hs_core *core, int64_t id,
		       bool error); /* whether it is one of ours and waited */

/* plan.c: HEAT PLAN, this worker's part; and all of them as one. */
void hs_plan_export(struct hs_core *core, struct hs_reply *reply);
void hs_plan_merge(const struct hs_request *request, struct hs_reply *reply);

/* slowlog.c: the slowest commands of this worker, newest last, bounded. */
struct hs_slowlog *hs_slowlog_create(void);
void hs_slowlog_destroy(struct hs_slowlog **slowlog);
void hs_slowlog_add(struct hs_core *core, const struct hs_session *session, size_t argc,
		    const struct hs_bytes *argv, uint64_t time_us);
void hs_slowlog_reset(struct hs_slowlog *slowlog);
size_t hs_slowlog_len(const struct hs_slowlog *slowlog);
/* Entries for the worker that asked: each 8 bytes of number, 8 of length, and that much of reply.
 */
void hs_slowlog_export(const struct hs_slowlog *slowlog, int resp, struct hs_buf *out);
/* All workers' exports as one reply, newest first, `count` at most. */
void hs_slowlog_merge(const struct hs_bytes *exports, size_t exports_count, size_t count,
		      struct hs_reply *reply);

#endif
