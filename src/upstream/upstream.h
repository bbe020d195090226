/* One connection to a Redis server, without the socket: requests composed into `out`, replies found in what
 * comes back, when to connect again, and why it was closed. Every connection of heatsink to a server is one:
 * the pipes of the engine, its subscriber and its topology monitor, `storm` and `top`.
 *
 *     DOWN ──open──► OPENING ──greeted──► UP ──lost, or closed with a reason──► DOWN
 *       ▲                │ failed                                                │
 *       └────────────────┴───────── backoff: not again before `open_at_us` ◄─────┘
 *
 * Three owners do not use its backoff. The engine's shared and private connections wait for their node's
 * (engine/redis/flow.h). The topology monitor opens a connection when it wants an answer of the node, which it
 * does at fixed intervals, and backs off between its looks at the topology. `top` connects with its next question.
 *
 * Liveness is judged from heard_us where any byte proves it (hs_upstream_is_silent): on connections on which the server
 * speaks unasked. Where replies come in the order of requests each reply has its own time: the engine's operations have a
 * deadline, which their own bytes prolong (hs_flow_close_overdue), the monitor's and top's questions have one that nothing
 * prolongs, storm's requests may wait until the run ends.
 *
 * Its owner decides; whoever drives it (conn.h on a libuv loop, the simulator's network) moves its bytes
 * and runs the greeting. One thread. */
#ifndef HS_UPSTREAM_UPSTREAM_H
#define HS_UPSTREAM_UPSTREAM_H

#include "base/buf.h"
#include "base/prng.h"
#include "wire/parse_reply.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_upstream_state { HS_UPSTREAM_DOWN, HS_UPSTREAM_OPENING, HS_UPSTREAM_UP };

/* Failures in a row make the pause before the next try longer: first_us, doubled up to max_us, and up to
 * half of it more by chance, so that not all connections come back in the same moment. */
struct hs_backoff {
	uint32_t failures;   /* in a row */
	uint64_t open_at_us; /* not before; 0: at once */
};

struct hs_backoff_limits {
	uint64_t first_us, max_us;
};

/* Another failure. */
void hs_backoff_wait(struct hs_backoff *backoff, const struct hs_backoff_limits *limits,
		     uint64_t now_us, struct hs_prng *prng);
/* A connection ended, or was not made (`was_up` false). One that was up may be opened again at once, unless
 * the server keeps accepting and dropping connections: one that lasted less than `max_us` does not end a
 * row of failures. */
void hs_backoff_lost(struct hs_backoff *backoff, const struct hs_backoff_limits *limits,
		     uint64_t now_us, struct hs_prng *prng, bool was_up, uint64_t opened_us);
static inline void hs_backoff_clear(struct hs_backoff *backoff)
{
	*backoff = (struct hs_backoff){0};
}

struct hs_upstream {
	enum hs_upstream_state state;
	uint8_t resp;	   /* the dialect that it is greeted in */
	bool blameless;	   /* it is closed for no fault of the server's */
	struct hs_buf out; /* what the driver has not taken yet */
	uint64_t
		composed; /* bytes ever, on this connection; an owner that wants to know counts them */
	uint64_t sent;	  /* bytes of this connection in the kernel's hands; the driver counts */
	struct hs_buf partial; /* the beginning of a reply */
	struct hs_parse_reply_scan scan;
	/* The last long array, of all connections that share it: one that equals it is not gone through again.
	 * NULL: all are. */
	struct hs_buf *last_array;
	uint64_t opened_us;	  /* when it was begun to be opened */
	uint64_t received_us;	  /* when bytes last came */
	const char *close_reason; /* NULL: it is to stay */
	int64_t server_id;	  /* the connection's number at the server; 0: not known */
	struct hs_backoff backoff;
	void *io; /* the driver's; NULL: none */
};

/* One whole reply or push. `owned`: it is all of `partial`, which may be swapped away. It may set
 * upstream->close_reason: nothing more is read then. */
typedef void hs_upstream_take(void *context, struct hs_bytes reply, bool owned);

void hs_upstream_init(struct hs_upstream *upstream, uint8_t resp);
void hs_upstream_deinit(struct hs_upstream *upstream);
/* A new connection begins; the backoff stays. */
void hs_upstream_reset(struct hs_upstream *upstream);
/* Resets it and says so: the driver is to connect. */
void hs_upstream_opening(struct hs_upstream *upstream, uint64_t now_us);

static inline bool hs_upstream_may_open(const struct hs_upstream *upstream, uint64_t now_us)
{
	return upstream->state == HS_UPSTREAM_DOWN && now_us >= upstream->backoff.open_at_us;
}

/* Whether no byte has come for `max_us`, since the last one or since `since_us`, when its owner asked for an
 * answer, whichever is later. */
static inline bool hs_upstream_is_silent(const struct hs_upstream *upstream, uint64_t since_us,
					 uint64_t now_us, uint64_t max_us)
{
	uint64_t last_us = upstream->received_us > since_us ? upstream->received_us : since_us;

	return now_us >= last_us + max_us;
}

/* Its owner wants it closed; the first reason counts. */
static inline void hs_upstream_close(struct hs_upstream *upstream, const char *reason)
{
	if (!upstream->close_reason)
		upstream->close_reason = reason;
}

/* Bytes came. What is no reply, or one of more than `reply_bytes_max`, is a reason to close it. */
void hs_upstream_receive(struct hs_upstream *upstream, uint64_t now_us, const char *data,
			 size_t len, size_t reply_bytes_max, hs_upstream_take *take, void *context);
/* Where the next bytes may be read to, so that a long reply is copied once; {NULL, 0}: anywhere. */
char *hs_upstream_room(struct hs_upstream *upstream, size_t *room);

#endif
