/* One connection to a Redis server, without the socket: a buffer of composed requests, a scanner for replies, the
 * state, the backoff and the close reason. The front door of this folder; every connection of heatsink to a Redis
 * server is a struct hs_upstream. The folder uses base/, wire/ and tls/, and of core/ only engine_unavailable.h,
 * for the words of a refused login. It knows no engine, operation or key.
 *
 *     DOWN ──open──► OPENING ──greeted──► UP ──lost, or closed with a reason──► DOWN
 *       ▲                │ failed                                                │
 *       └────────────────┴───────── backoff: not again before `open_at_us` ◄─────┘
 *
 *     upstream.h   state and bytes              conn.h    the socket, on a libuv loop
 *     greeting.h   the first requests           names.h   name lookups, in threads
 *     redirect.h   MOVED and ASK                url.h     redis:// and cluster:// URLs
 *
 * The owner decides: it composes requests, opens and closes, and judges liveness. A driver (conn.h, or the
 * simulator's network) moves the bytes and runs the greeting. One thread for owner and driver.
 *
 * Backoff: owners call hs_backoff_lost and hs_upstream_may_open. In the redis engine the pipes of a node share the
 * node's backoff (struct hs_node); its fetch and replica pipes observe one of their own as well. The topology
 * monitor and `top` connect when they have the next query.
 *
 * Liveness: hs_upstream_is_silent is for connections on which the server sends without being asked. Elsewhere the
 * owner sets a deadline per request.
 *
 * Bad days: bytes that are not RESP, or a reply larger than the owner's limit, set the close reason. */
#ifndef HS_UPSTREAM_UPSTREAM_H
#define HS_UPSTREAM_UPSTREAM_H

#include "base/buf.h"
#include "base/prng.h"
#include "wire/parse_reply.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_upstream_state { HS_UPSTREAM_DOWN, HS_UPSTREAM_OPENING, HS_UPSTREAM_UP };

/* Exponential backoff with jitter: the pause is first_us, doubled with each failure up to max_us, plus up to half of
 * it at random, so that not all connections are opened at the same moment. */
struct hs_backoff {
	uint32_t failures;   /* in a row */
	uint64_t open_at_us; /* no attempt before; 0: at once */
};

struct hs_backoff_limits {
	uint64_t first_us, max_us;
};

/* Counts a failure and sets the next attempt. */
void hs_backoff_wait(struct hs_backoff *backoff, const struct hs_backoff_limits *limits,
		     uint64_t now_us, struct hs_prng *prng);
/* A connection was lost, or could not be opened (`was_up` false). After one that was up the next attempt is
 * immediate, unless it lasted less than max_us behind other failures: a server that accepts and drops connections
 * counts as down. */
void hs_backoff_lost(struct hs_backoff *backoff, const struct hs_backoff_limits *limits,
		     uint64_t now_us, struct hs_prng *prng, bool was_up, uint64_t opened_us);
static inline void hs_backoff_clear(struct hs_backoff *backoff)
{
	*backoff = (struct hs_backoff){0};
}

struct hs_upstream {
	enum hs_upstream_state state;
	uint8_t resp; /* the dialect of HELLO */
	/* The close reason is ours: the owner does not count it as a failure of the server. */
	bool blameless;
	struct hs_buf out; /* not yet taken by the driver */
	/* All bytes ever composed on this connection, if the owner counts them. */
	uint64_t composed;
	uint64_t sent;	       /* bytes that the server may have got, counted by the driver */
	struct hs_buf partial; /* an unfinished reply */
	struct hs_parse_reply_scan scan;
	/* The last long array reply, shared by several connections: a reply with the same bytes is not parsed again.
	 * NULL: every reply is parsed. */
	struct hs_buf *last_array;
	uint64_t opened_us;	  /* start of the last attempt */
	uint64_t received_us;	  /* last bytes received */
	const char *close_reason; /* NULL: none; else the owner closes it soon */
	int64_t server_id;	  /* the connection's id at the server; 0: unknown */
	struct hs_backoff backoff;
	void *io; /* the driver's state; NULL: none */
};

/* Gets one whole reply or push. `owned`: it is all of `partial`, whose buffer may be swapped away. Setting
 * upstream->close_reason stops reading. */
typedef void hs_upstream_take(void *context, struct hs_bytes reply, bool owned);

void hs_upstream_init(struct hs_upstream *upstream, uint8_t resp);
void hs_upstream_deinit(struct hs_upstream *upstream);
/* For a new connection; the backoff stays. */
void hs_upstream_reset(struct hs_upstream *upstream);
/* Resets it and sets OPENING; the driver connects. */
void hs_upstream_opening(struct hs_upstream *upstream, uint64_t now_us);

static inline bool hs_upstream_may_open(const struct hs_upstream *upstream, uint64_t now_us)
{
	return upstream->state == HS_UPSTREAM_DOWN && now_us >= upstream->backoff.open_at_us;
}

/* No byte was received for `max_us`, counted from the later of the last byte and `since_us`, when the owner sent its
 * check. */
static inline bool hs_upstream_is_silent(const struct hs_upstream *upstream, uint64_t since_us,
					 uint64_t now_us, uint64_t max_us)
{
	uint64_t last_us = upstream->received_us > since_us ? upstream->received_us : since_us;

	return now_us >= last_us + max_us;
}

/* Sets the close reason; the first one counts. */
static inline void hs_upstream_close(struct hs_upstream *upstream, const char *reason)
{
	if (!upstream->close_reason)
		upstream->close_reason = reason;
}

/* Takes received bytes. Bytes that are not RESP, or a reply of more than `reply_bytes_max`, set the close reason. */
void hs_upstream_receive(struct hs_upstream *upstream, uint64_t now_us, const char *data,
			 size_t len, size_t reply_bytes_max, hs_upstream_take *take, void *context);
/* Where to read the next bytes of a long reply, so that it is copied once; NULL: anywhere. */
char *hs_upstream_room(struct hs_upstream *upstream, size_t *room);

#endif
