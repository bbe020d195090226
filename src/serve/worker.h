/* A worker: one thread, one libuv loop, one core. It owns its connections from the moment the
 * server hands it a socket. Other threads reach it only through its queues:
 *
 *     main ────── mail: a socket, drain ─────────────────┐
 *     control ─── mail: new options, a socket of its own ┤
 *     engine ──── done: finished operations ─────────────┼──▶ one wake-up ──▶ the worker's loop
 *     workers ─── asked: CLIENT LIST and the like ───────┘
 */
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
	HS_WORKER_CLIENT,
	HS_WORKER_CONFIGURE,
	HS_WORKER_LEARN,
	HS_WORKER_DRAIN
};

struct hs_worker_message {
	struct hs_worker_message *next;
	enum hs_worker_message_kind kind;
	int fd;				/* CLIENT */
	bool tls;			/* CLIENT: it came in on the TLS port */
	bool internal;			/* CLIENT: the other end is the control thread's */
	uint64_t client_id;		/* CLIENT */
	struct hs_core_options options; /* CONFIGURE; the receiver holds users and rules */
	struct hs_tls_context *context; /* CONFIGURE: for new clients; the receiver releases it */
	uint64_t grace_us;		/* DRAIN: then nothing more is taken from anybody */
};

/* clang-format off */
#define HS_WORKER_COUNTERS(ROW) /* beside those of its core */ \
	ROW(tls_clients, HS_GAUGE, "Clients", "tls_clients", "tls_clients", "Clients connected now that speak TLS") \
	ROW(tls_failures, HS_COUNTER, "Stats", "tls_handshake_failures", "tls_handshake_failures_total", \
	    "TLS handshakes of clients that came to nothing") \
	/* any thread adds to it, with an atomic addition */ \
	ROW(events_dropped, HS_COUNTER, "Stats", "events_dropped", "events_dropped_total", \
	    "Messages and changes of keys dropped because a worker did not keep up")
/* clang-format on */

struct hs_worker_stats {
	HS_WORKER_COUNTERS(HS_COUNTER_FIELD)
};

struct hs_worker {
	struct hs_host *host; /* the process around it: other workers, log, users */
	struct hs_engine *engine;
	uint32_t index;
	uv_thread_t thread;
	uv_loop_t loop;
	uv_async_t wake;
	uv_timer_t tick;
	uv_timer_t alarm;     /* the next sleeper */
	uv_idle_t poll_again; /* while on, the loop looks for events but waits for none */
	bool ops_completed;   /* the engine has finished something in this round */
	bool flush_delayed;   /* what hot keys have gathered is held back for one round */
	uv_check_t check; /* behind each round of events: what was submitted goes to the engine */
	struct hs_mpsc message, done, peer_ops;
	struct hs_event_queue event;
	struct hs_core *core;
	_Atomic uint32_t clients; /* connected or on their way here */
	uint32_t tcp_keepalive_s;
	bool draining;
	uint64_t drain_until_us;
	_Atomic bool drained; /* has nobody left; still answers the other workers until all are */
	char *read_buffer;    /* HS_READ_BYTES, shared by all connections that owe us nothing */

	size_t received_bytes;		   /* from clients, since their replies were last sent */
	struct hs_tls_context *tls;	   /* of new clients on the TLS port; NULL: there is none */
	uint64_t tls_handshake_timeout_us; /* for a handshake */
	struct hs_link handshakes;	   /* connections that are still at it, oldest first */
	struct hs_buf decrypted;	   /* what was just decrypted */
	struct hs_buf encrypted; /* what is just being sent encrypted; empty between events */
	struct hs_worker_stats stats;
};

void hs_worker_init(struct hs_worker *worker, struct hs_host *host, uint32_t index, uint64_t seed);
void hs_worker_start(struct hs_worker *worker);
void hs_worker_join(struct hs_worker *worker); /* after HS_WORKER_DRAIN to all of them */
/* Frees everything. Whoever might still post, ask or complete has ended. */
void hs_worker_deinit(struct hs_worker *worker);

/* Any thread. Takes over `mail`, which was made by hs_worker_message_create. */
struct hs_worker_message *hs_worker_message_create(enum hs_worker_message_kind kind);
void hs_worker_post(struct hs_worker *worker, struct hs_worker_message *message);
void hs_worker_complete(struct hs_worker *worker, struct hs_op *chain);
/* Every worker is told. Takes the reference over. */
void hs_workers_broadcast(struct hs_host *host, struct hs_event *event);
/* The worker's own thread. What was submitted in this round of events goes to the engine, and replies to the clients. */
void hs_worker_end_round(struct hs_worker *worker);

/* What of the options concerns a core. The caller holds the users: drop them when
 * the core has them. */
void hs_worker_core_options(const struct hs_options *options, struct hs_core_options *core);

/* The worker's own thread: everything posted so far. Before requests are taken from a socket, so that
 * one that was sent after a change was acknowledged elsewhere finds it made. */
void hs_worker_read_messages(struct hs_worker *worker);

/* connection.c: sockets of this worker. */
void hs_connection_open(struct hs_worker *worker, const struct hs_worker_message *client);
/* Ends handshakes that take too long. Call every now and then. */
void hs_connection_tick(struct hs_worker *worker);
/* Everything the core wants sent or closed. False: there was nothing. */
bool hs_connection_flush(struct hs_worker *worker);

#endif
