/* Reads the values of keys for GET /kv/<key>. The control thread reads a key the way a client does: it hands one end
 * of a socket pair to a worker, as if that end had been accepted, and sends `GET key` on the other:
 *
 *     HTTP ── hs_key_reader_get ── channel ══ socket pair ══ a worker's connection ── contract, cache, heat, engine
 *              done ◀───────────────┘
 *
 * So the rule's cache answers as it does for clients, the read counts as heat, and nothing in the request path knows
 * HTTP. A channel has one request in flight: a slow partition delays only the requests for its keys. Channels are
 * opened on demand, round robin over the workers; up to IDLE_MAX idle ones stay open. The worker treats a channel as
 * an internal client, which needs no login; shutdown and CLIENT KILL close it like any other.
 *
 * The loop's thread only. It owns the keys and replies in flight; the callback may take key and value.
 *
 * Limits: HS_HTTP_KEY_READS_MAX in flight (BUSY), HS_HTTP_BODY_BYTES_MAX for a value (TOO_LARGE),
 * HS_HTTP_UNREAD_BYTES_MAX for all large values together with the answers not sent yet (NO_ROOM), and `timeout_us`
 * for each (TIMEOUT). When a worker closes an idle channel just as a request is sent on it, the request is sent once
 * more on a new channel. */
#ifndef HS_SERVE_KEY_READER_H
#define HS_SERVE_KEY_READER_H

#include "base/buf.h"
#include "base/counter.h"
#include "serve/host.h"

#include <uv.h>

struct hs_key_reader;

enum hs_key_read_outcome {
	HS_KEY_READ_VALUE,
	HS_KEY_READ_MISSING,
	HS_KEY_READ_WRONG_TYPE, /* the key holds no string */
	HS_KEY_READ_ERROR,	/* the engine or the core refused it: `error_word` */
	HS_KEY_READ_TOO_LARGE,	/* over HS_HTTP_BODY_BYTES_MAX */
	/* all large values and unsent answers together would exceed HS_HTTP_UNREAD_BYTES_MAX */
	HS_KEY_READ_NO_ROOM,
	HS_KEY_READ_BUSY, /* HS_HTTP_KEY_READS_MAX are in flight */
	HS_KEY_READ_TIMEOUT,
	HS_KEY_READ_CONNECTION_LOST, /* the worker closed the channel, or the server stops */
};

struct hs_key_read_result {
	enum hs_key_read_outcome outcome;
	struct hs_buf key;	    /* the callback may take it */
	struct hs_buf value;	    /* VALUE; the callback may take it */
	struct hs_bytes error_word; /* ERROR: its first word, such as "CLUSTERDOWN" */
};

/* clang-format off */
#define HS_KEY_READER_COUNTERS(ROW) \
	/* counted by the caller, for every request of /kv/ */ \
	ROW(requests, HS_TOTAL, "Http", "http_kv_requests", "http_kv_requests_total", \
	    "Requests for /kv/<key>, with any result") \
	ROW(waiting, HS_GAUGE, "Http", "http_kv_waiting", "http_kv_waiting", "Values being read for /kv/<key> now") \
	ROW(refused, HS_TOTAL, "Http", "http_kv_refused", "http_kv_refused_total", \
	    "Requests for /kv/<key> answered with 503: too many values, or too many large ones, were being read") \
	ROW(timeouts, HS_TOTAL, "Http", "http_kv_timeouts", "http_kv_timeouts_total", \
	    "Requests for /kv/<key> answered with 504: the value did not arrive within half of http-timeout")
/* clang-format on */

struct hs_key_reader_stats {
	HS_KEY_READER_COUNTERS(HS_COUNTER_NUMBER)
};

typedef void hs_key_reader_done(void *owner, void *context, struct hs_key_read_result *result);

/* `timeout_us` is the time for one read. `done` is called on the loop's thread. */
struct hs_key_reader *hs_key_reader_create(uv_loop_t *loop, struct hs_host *host,
					   uint64_t timeout_us, hs_key_reader_done *done,
					   void *owner);
/* Reads in flight end with HS_KEY_READ_CONNECTION_LOST. The loop must run until the handles are closed. */
void hs_key_reader_destroy(struct hs_key_reader **reader);

/* Takes the key over. `done` is called exactly once, possibly before this returns. */
void hs_key_reader_get(struct hs_key_reader *reader, struct hs_buf *key, void *context);

struct hs_key_reader_stats *hs_key_reader_stats(struct hs_key_reader *reader);

#endif
