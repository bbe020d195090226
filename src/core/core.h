/* The front door of src/core: one worker's request path. A core parses the bytes of its clients, checks each
 * command, sends it to the engine as operations, and delivers the replies of each connection in order. A
 * mitigation plugs in as a stage (core/stage.h).
 *
 *     connect ─ receive ─┬─ session->out                                   (answered at once)
 *                        └─ calls->submit ─ engine ─ complete ─ session->out, in order
 *
 * After any call that may have answered something the driver walks hs_core_next_sendable.
 *
 * The core must not know: file descriptors, threads, clocks, random sources, any engine (it has struct
 * hs_core_calls), and any mitigation. Options of mitigations pass through struct hs_core_options; only stages
 * read them. Of keyspace/ it knows two formats: SCAN cursors (fanout.c) and lists of changed keys (event.c). Time,
 * client bytes and finished operations come in as calls. The libuv driver (serve/) is one caller, the simulator
 * (sim/) another.
 *
 * Threads. One core belongs to one worker thread, which makes every call. Two exceptions: any thread may read
 * the counters (hs_core_stats, hs_core_stage_stats), and an engine may change the slot map while the core runs.
 *
 * Memory. The core uses or copies client bytes before hs_core_receive returns. It owns an operation from submit
 * to completion, and a session until hs_core_disconnect.
 *
 * Bad days (the counters are in core/stats.h):
 *     A client sends too fast.      The core holds its next command (core/hold.h), and the driver stops reading.
 *     A client does not read.       The core closes it beyond `output_bytes_max`, except for a single reply.
 *     A request exceeds a limit.    The client gets an error or is closed; others do not notice.
 *     A client disconnects.         Operations in flight complete and their replies are dropped. A write is not
 *                                   cancelled. A command that blocks on a server (BLPOP) is (calls->cancel).
 *     The engine knows no server.   Commands for it get an error with the reason (core/engine_unavailable.h).
 *
 * Laws. Comments cite the laws of docs/ARCHITECTURE.md ("Laws"). This folder answers for
 *     law 1 (replies in request order): session->requests, core/request.c;
 *     law 2 (linearizable per key): a connection's operations on one partition keep their order, core/dispatch.c;
 *     law 6 (every queue has a limit, and reaching it is a clear error): core/hold.h, base/limits.h;
 *     law 8 (an unknown command counts as a write to every key it may touch): core/pause.c;
 *     law 9 (a slow partition does not delay requests to others): core/reply_budget.h. */
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

/* The keys that the engine accepts in one operation. */
enum hs_op_scope {
	/* Keys of one partition when a command is split; one slot in any other command. */
	HS_OP_SCOPE_PARTITION,
	HS_OP_SCOPE_SLOT, /* keys of one slot */
	HS_OP_SCOPE_ALL,  /* any keys: a single server */
};

/* The functions by which a core reaches the engine and the other workers. */
struct hs_core_calls {
	/* Hands an operation to the engine. The engine runs `ordered` operations of one session on one
	 * partition in the order of these calls. */
	enum hs_submit (*submit)(void *context, struct hs_op *op);
	/* Cancels an operation that may block without end (BLPOP), because its client has disconnected. It
	 * still completes soon; the core ignores its reply. NULL: no operation of this engine blocks. */
	void (*cancel)(void *context, struct hs_op *op);
	/* Ends the wait of a blocked operation as if its timeout had passed, or with an error (CLIENT UNBLOCK).
	 * False: the operation does not wait. NULL: no operation of this engine blocks. */
	bool (*unblock)(void *context, struct hs_op *op, bool error);
	/* Writes the reply of a completed operation with `reply_unwritten`. Not `wanted`: only releases what
	 * the engine has set aside for it. NULL: the engine always writes replies itself. */
	void (*write_reply)(void *context, struct hs_op *op, bool wanted);
	/* Sends an event to all cores of the process, this one included, and takes over the caller's reference.
	 * NULL: this is the only core. */
	void (*broadcast)(void *context, struct hs_event *event);
	/* Writes to `text` why the engine knows no server; "" when the engine gives no reason. May be NULL. */
	void (*unavailable_reason)(void *context, char *text, size_t size);
	/* The text of the script with this digest (EVALSHA); empty: unknown. Valid until the next call. NULL:
	 * the engine has no scripts. */
	struct hs_bytes (*script)(void *context, struct hs_bytes digest);
	/* Reads the monotonic clock, to time the commands of one event. It is the only time that a core reads;
	 * all other times come in with the event. */
	uint64_t (*mono_us)(void *context);
};

/* Whether mitigations that the rules allow are applied. */
enum hs_mitigate {
	HS_MITIGATE_ON,
	/* Mitigations change nothing, and count what they would have saved. */
	HS_MITIGATE_OBSERVE,
	HS_MITIGATE_OFF,
};

/* When a key is hot. All numbers are lower bounds of the key's requests on this worker in the short window of
 * heat. A key becomes hot at `share`. It stops being hot when it has had less than `share_exit` (or `share`, if
 * that is smaller) for `cool_down_us`. */
struct hs_core_hot {
	double share; /* to become hot: part of the requests for all keys, 0 to 1 */
	double share_exit;
	/* And at least that many requests in the short window: fewer are no evidence. */
	double requests;
	uint64_t cool_down_us;
	/* Fewer client requests per engine command than this suspend folding for a while; 0: never. */
	uint32_t fold_gain_min;
	uint32_t keys_max; /* hot keys at once; 0: HS_HOT_KEYS_MAX */
};

static inline bool hs_core_stays_hot(const struct hs_core_hot *bounds, double share,
				     double requests)
{
	return (share >= bounds->share_exit || share >= bounds->share) &&
	       requests >= bounds->requests;
}

/* Options that may change at run time: the caller hands in a whole new struct (hs_core_configure). The core
 * holds a reference to the users and one to the rules. */
struct hs_core_options {
	const struct hs_acl *acl;  /* the users; NULL: every client may run everything */
	uint64_t output_bytes_max; /* unsent bytes at which a client is closed */
	/* Requests in flight of one client, for clients that connect later; 0: HS_SESSION_INFLIGHT_MAX. */
	uint32_t session_inflight_max;
	/* Estimated bytes of replies in flight from one partition; 0: no limit. */
	uint64_t engine_inflight_bytes_max;
	int64_t slowlog_us; /* log commands slower than this; negative: none */
	uint32_t slowlog_len_max;
	uint32_t acllog_len_max; /* entries of ACL LOG */
	uint32_t idle_s_max;	 /* close clients idle for longer; 0: never */
	/* Keys tracked for CLIENT TRACKING by all workers, an even share each; 0: no limit. */
	uint64_t tracking_keys_max;
	/* The address and ports that CLUSTER replies tell clients to use; "" and 0: those the client is
	 * connected to. */
	char announce_host[HS_HOST_NAME_MAX + 1];
	uint16_t announce_port, announce_tls_port;
	struct hs_core_hot hot; /* without hs_core_world.heat no key is hot */
	bool fold; /* coalesce concurrent requests for one hot key (absorb/fold/fold.h) */
	/* Requests waiting for one key; the next one gets a BUSY error. */
	uint32_t fold_waiters_max;
	const struct hs_rules *rules; /* contracts; NULL: no rules */
	enum hs_mitigate mitigate;
	/* Memory of the cache, all workers together; 0: nothing is cached. */
	uint64_t cache_bytes;
	uint64_t cache_entry_bytes; /* a larger reply is not cached */
};

/* Constants of one core, handed in at creation. */
struct hs_core_world {
	const struct hs_core_calls *calls;
	void *context;
	const struct hs_log *log;
	uint32_t worker; /* this core's number among `workers` */
	uint32_t workers;
	uint16_t partitions;
	bool reads_at_once; /* the engine answers unordered reads inside submit */
	enum hs_op_scope op_scope;
	/* The partition of each slot; NULL: slots lie in even ranges over `partitions`. The engine's thread
	 * changes it while the core runs. */
	const struct hs_slot_map *slots;
	/* The engine's connections to servers are shared by all clients: a command that needs a connection of
	 * its own (WATCH, BLPOP) runs as the only command of its client in flight. */
	bool shared_connections;
	/* HS_NODE_ID_LEN hex digits: heatsink's node id in CLUSTER replies. */
	const char *node_id;
	_Atomic uint64_t *slowlog_ids; /* shared by all cores: the next SLOWLOG entry id */
	uint64_t seed;
	uint64_t key_seed;	      /* seed of key hashes, the same in all cores */
	struct hs_heat *heat;	      /* this worker's heat tables; NULL: heat is not counted */
	struct hs_heat *const *heats; /* of all workers, for OBJECT FREQ */
	size_t heats_count;
	/* Data that the stages of all workers share (absorb/shared.h); or NULL. */
	struct hs_shared *shared;
	/* Functions of commands that need no engine (core/commands.h). */
	const struct hs_core_commands *commands;
	/* In call order, NULL at the end (stages/stages.c). */
	const struct hs_stage *const *stages;
};

struct hs_core *hs_core_create(const struct hs_core_world *world,
			       const struct hs_core_options *options);
/* The caller has disconnected all sessions, and all operations are completed. */
void hs_core_destroy(struct hs_core **core);

void hs_core_configure(struct hs_core *core, const struct hs_core_options *options);

/* Replaces the set of commands that the engine's servers have; NULL: none. The caller keeps the previous set
 * alive until this call has returned in all cores. */
void hs_core_learn(struct hs_core *core, const struct hs_learned *learned);
struct hs_core_stats *hs_core_stats(struct hs_core *core);
/* The counters of a stage, laid out as its counter table says (hs_stage.counters). Any thread. */
const void *hs_core_stage_stats(const struct hs_core *core, const struct hs_stage *stage);

/* A new connection; the core copies the texts. */
struct hs_core_client {
	uint64_t id; /* unique in the process */
	const char *address;
	const char *local_address;
	int fd;	       /* shown in CLIENT LIST, otherwise unused */
	bool tls;      /* CLUSTER replies announce the TLS port to it */
	bool internal; /* internal client of the process: always logged in, no ACL rules apply */
};

struct hs_session *hs_core_connect(struct hs_core *core, struct hs_now now,
				   const struct hs_core_client *client);

/* Hands in bytes of a client. The core uses or copies them before this returns. */
void hs_core_receive(struct hs_core *core, struct hs_session *session, struct hs_now now,
		     const char *data, size_t len);

/* Where to read the client's next bytes, to avoid a second copy of a large argument: the session's own buffer
 * while a request is incomplete; NULL with *room 0: any buffer. The driver passes the bytes it read there to
 * hs_core_receive unchanged. */
char *hs_core_read_room(struct hs_session *session, size_t *room);

/* False: the session is held and has enough unread input: the driver stops reading from its socket. */
bool hs_core_wants_input(const struct hs_session *session);

/* The client has closed its side of the connection and still reads: the core answers all requests it has, then
 * closes the session. A blocked command (BLPOP) is given up instead. */
void hs_core_end(struct hs_core *core, struct hs_session *session);

/* The connection is gone: the session is not the caller's after this. The core drops input that has not run and
 * the session's transaction, unwatches its keys, and cancels a blocked command. Operations in flight complete;
 * their replies are dropped. The session's memory is freed with the last of them. */
void hs_core_disconnect(struct hs_core *core, struct hs_session *session);

/* An operation for which submit returned HS_SUBMIT_QUEUED is finished; its reply is in op->out or op->answer,
 * or op->reply_unwritten is set. */
void hs_core_complete(struct hs_core *core, struct hs_now now, struct hs_op *op);

/* End of a round of events: stages submit what they gathered (batches of fold, for example). Call it before
 * flushing the engine. True: something was submitted, and replies may be ready. */
bool hs_core_flush(struct hs_core *core, struct hs_now now);
bool hs_core_needs_flush(const struct hs_core *core); /* false: hs_core_flush would do nothing */

/* For the simulator: calls `visit` for each client request that an operation stands for. A batch stands for
 * several. `client` is the connection's id; `number` counts the connection's requests from 1. */
void hs_core_members(const struct hs_core *core, const struct hs_op *op,
		     void (*visit)(void *context, uint64_t client, uint64_t number), void *context);

/* Runs this worker's part of a command for all workers (HS_OP_PEER), and writes its reply to op->out. */
void hs_core_peer(struct hs_core *core, struct hs_now now, struct hs_op *op);

/* The key may have changed at the server; NULL: every key read in this tracking session may have. Call it
 * before completing any later reply of that tracking session. */
void hs_core_changed(struct hs_core *core, struct hs_now now,
		     const struct hs_tracking_session *tracking_session,
		     const struct hs_bytes *key);

/* An event of the engine or of another core. The caller keeps its reference. */
void hs_core_event(struct hs_core *core, struct hs_now now, const struct hs_event *event);

/* Runs timers: DEBUG SLEEP, CLIENT PAUSE, deadlines of stages. Call it at hs_core_deadline or later. */
void hs_core_alarm(struct hs_core *core, struct hs_now now);
/* Monotonic µs of the next timer; 0: none. */
uint64_t hs_core_deadline(const struct hs_core *core);
/* hs_core_alarm, and the periodic work: idle clients, keys that cool down, internal calls that time out. Call
 * it every 100 ms. */
void hs_core_tick(struct hs_core *core, struct hs_now now);

/* Shutdown, called repeatedly: closes every session with nothing in flight that has been quiet for `quiet_us`.
 * 0: takes no more input, and closes each session when its requests are answered. Returns how many sessions and
 * internal calls remain. */
uint32_t hs_core_drain(struct hs_core *core, struct hs_now now, uint64_t quiet_us);

/* The next session with bytes to send or to be closed; each is returned once. NULL: no more. */
struct hs_session *hs_core_next_sendable(struct hs_core *core);

/* Whether a session is held until its client has read replies. After sending bytes to such a session the driver
 * calls hs_core_sent. */
bool hs_core_waits_for_reader(const struct hs_session *session);
void hs_core_sent(struct hs_core *core, struct hs_session *session, struct hs_now now);

/* --- the driver's side of a session --- */

/* The driver sends and clears it, or swaps it with a buffer of its own. */
struct hs_buf *hs_session_out(struct hs_session *session);
/* Bytes the driver has swapped away and not sent. */
void hs_session_sending(struct hs_session *session, size_t bytes);
bool hs_session_closing(const struct hs_session *session); /* disconnect after sending `out` */
bool hs_session_cut(const struct hs_session *session); /* disconnect now, without sending `out` */
void hs_session_set_io(struct hs_session *session, void *io);
void *hs_session_io(const struct hs_session *session);

#endif
