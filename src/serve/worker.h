/* A worker: one thread, one libuv loop, one core. It owns its connections from the moment the main thread hands it a
 * socket until they are closed; no client moves to another worker. It knows no command: bytes go to the core, replies
 * come from it. Other threads reach it only through its queues:
 *
 *     main ────── messages: a socket, learn, drain ────────────────────────────┐
 *     control ─── messages: new options, an internal socket; done: its replies ┤
 *     engine ──── messages: learn; done: finished operations ──────────────────┼─▶ one wake-up ─▶ the worker's loop
 *     workers ─── peer_ops: CLIENT LIST and the like; done: their parts of it ─┤
 *     any ─────── events: pub/sub, changed keys ───────────────────────────────┘
 *
 * Bad days. A client that does not read: the kernel's buffer fills, then `sending`, then the core's buffer; the core
 * stops reading from it and cuts it off beyond output-limit, except for a single reply. A worker that falls behind:
 * events are dropped beyond HS_EVENT_QUEUE_BYTES_MAX (event_queue.h); operations and messages are never dropped. A
 * worker that hangs: /readyz answers 503 (sample.c). Shutdown: server.h. */
#ifndef HS_SERVE_WORKER_H
#define HS_SERVE_WORKER_H

#include "base/list.h"
#include "base/mpsc.h"
#include "core/core.h"
#include "engine/engine.h"
#include "serve/event_queue.h"
#include "serve/options.h"
#include "tls/tls.h"

#include <stdatomic.h>
#include <uv.h>

struct hs_host; /* serve/host.h */

enum hs_worker_message_kind {
	HS_WORKER_CLIENT,    /* a new connection */
	HS_WORKER_CONFIGURE, /* changed options */
	HS_WORKER_LEARN,     /* the servers' commands are in host->learned */
	HS_WORKER_DRAIN	     /* the process stops */
};

struct hs_worker_message {
	struct hs_worker_message *next;
	enum hs_worker_message_kind kind;
	int fd;				/* CLIENT */
	bool tls;			/* CLIENT: it came in on the TLS port */
	bool internal;			/* CLIENT: the other end is key_reader.h, not a user */
	uint64_t client_id;		/* CLIENT */
	struct hs_core_options options; /* CONFIGURE; the receiver releases it */
	/* CONFIGURE: for new clients of the TLS port; the receiver releases it. */
	struct hs_tls_context *context;
	uint64_t grace_us; /* DRAIN: after this time no request is read any more */
};

/* clang-format off */
#define HS_WORKER_COUNTERS(ROW) /* besides the counters of its core */ \
	ROW(tls_clients, HS_GAUGE, "Clients", "tls_clients", "tls_clients", "Clients connected now that speak TLS") \
	ROW(tls_failures, HS_COUNTER, "Stats", "tls_handshake_failures", "tls_handshake_failures_total", \
	    "TLS handshakes of clients that failed or timed out") \
	/* the one counter that any thread adds to, atomically */ \
	ROW(events_dropped, HS_COUNTER, "Stats", "events_dropped", "events_dropped_total", \
	    "Pub/sub messages and key changes dropped because a worker's event queue was full")
/* clang-format on */

struct hs_worker_stats {
	HS_WORKER_COUNTERS(HS_COUNTER_FIELD)
};

struct hs_worker {
	struct hs_host *host; /* shared by all threads */
	struct hs_engine *engine;
	uint32_t index;
	uv_thread_t thread;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t tick;
	uv_timer_t alarm;     /* the nearest deadline of the core */
	uv_idle_t poll_again; /* while active, the loop polls without waiting */
	bool ops_completed;   /* in this round the engine completed an operation */
	bool flush_delayed;   /* folded batches wait one round of the loop before they leave */
	uv_check_t check;     /* after each round of events: sends to the engine and to clients */
	struct hs_mpsc messages, done, peer_ops;
	struct hs_event_queue events;
	struct hs_core *core;
	/* Connected, or in `messages`: main and control add, the worker subtracts. */
	_Atomic uint32_t clients;
	uint32_t tcp_keepalive_s;
	bool draining;
	uint64_t drain_until_us;
	/* Has no client left; it answers other workers' peer_ops until all are drained. */
	_Atomic bool drained;
	char *read_buffer; /* HS_READ_BYTES; of all connections without an unfinished request */

	size_t received_bytes;	    /* read from clients since replies were last sent */
	struct hs_tls_context *tls; /* for new clients of the TLS port; NULL: no TLS port */
	uint64_t tls_handshake_timeout_us;
	struct hs_link handshakes; /* connections in their TLS handshake, oldest first */
	struct hs_buf decrypted;   /* scratch: bytes just decrypted */
	struct hs_buf encrypted;   /* scratch: bytes to send, encrypted; empty between events */
	struct hs_worker_stats stats;
};

void hs_worker_init(struct hs_worker *worker, struct hs_host *host, uint32_t index, uint64_t seed);
void hs_worker_start(struct hs_worker *worker);
void hs_worker_join(struct hs_worker *worker); /* after HS_WORKER_DRAIN to all of them */
/* After every thread that could post, ask or complete has ended. */
void hs_worker_deinit(struct hs_worker *worker);

/* Any thread. Takes `message` over. */
struct hs_worker_message *hs_worker_message_create(enum hs_worker_message_kind kind);
void hs_worker_post(struct hs_worker *worker, struct hs_worker_message *message);
/* Any thread: finished operations, linked by `next`, for the core. */
void hs_worker_complete(struct hs_worker *worker, struct hs_op *chain);
/* Any thread: puts the event into the queue of every worker that has a use for it. Takes the reference over. */
void hs_workers_broadcast(struct hs_host *host, struct hs_event *event);
/* The worker's thread: operations of this round go to the engine, replies to the clients. */
void hs_worker_end_round(struct hs_worker *worker);

/* The part of the options that a core needs. `core` then holds users and rules: release them when the core has taken
 * its own references. */
void hs_worker_core_options(const struct hs_options *options, struct hs_core_options *core);

/* The worker's thread: handles all messages posted so far. It runs before requests are read from a socket: a request
 * sent after CONFIG SET was acknowledged on another connection must find the change made. */
void hs_worker_read_messages(struct hs_worker *worker);

/* connection.c, all on the worker's thread. */
void hs_connection_open(struct hs_worker *worker, const struct hs_worker_message *client);
/* Closes connections whose handshake exceeds tls-handshake-timeout. Called on every tick. */
void hs_connection_tick(struct hs_worker *worker);
/* Sends replies and closes connections as the core asks. False: there was nothing to do. */
bool hs_connection_flush(struct hs_worker *worker);

#endif
