/* Values for HTTP: the control thread reads keys the way every client does. It hands one end of a socket
 * pair to a worker, as if that had been accepted, and asks `GET key` on the other:
 *
 *     HTTP ── hs_key_reader_get ── channel ══ socket pair ══ a worker's connection ── contract, cache, heat, engine
 *              done ◀───────────┘
 *
 * So what a worker has kept is what is answered, and nothing in the request path knows of HTTP. A channel has one
 * request at a time: a partition that is slow delays nobody else. Channels are opened when they are needed, in
 * turn on all workers (one of whom fills for all), a few stay. A worker sees the process's own client: let in
 * whoever the users are, ended like any other when it is quiet and the server stops, or by CLIENT KILL.
 *
 * One thread: the loop's. Limits: HS_HTTP_KEY_READS_MAX at a time, HS_HTTP_BODY_BYTES_MAX for a value,
 * HS_HTTP_UNREAD_BYTES_MAX for all that are large, with what waits to be sent; and a time for each. */
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
	HS_KEY_READ_WRONG_TYPE, /* the value is no string */
	HS_KEY_READ_ERROR,	/* `word` */
	HS_KEY_READ_TOO_LARGE,	/* more than may be sent */
	HS_KEY_READ_NO_ROOM,	/* large, and too much of it is under way */
	HS_KEY_READ_BUSY,	/* too many at a time */
	HS_KEY_READ_TIMEOUT,
	HS_KEY_READ_CONNECTION_LOST, /* the worker ended the connection, or the server stops */
};

struct hs_key_read_result {
	enum hs_key_read_outcome outcome;
	struct hs_buf key;	    /* the callback may take it */
	struct hs_buf value;	    /* VALUE; the callback may take it */
	struct hs_bytes error_word; /* ERROR: what it begins with, "CLUSTERDOWN" */
};

/* clang-format off */
#define HS_KEY_READER_COUNTERS(ROW) \
	/* counted by who asks: also those that need no value */ \
	ROW(requests, HS_TOTAL, "Http", "http_kv_requests", "http_kv_requests_total", \
	    "Requests for a key over HTTP, whatever became of them") \
	ROW(waiting, HS_GAUGE, "Http", "http_kv_waiting", "http_kv_waiting", "Values being read for HTTP now") \
	ROW(refused, HS_TOTAL, "Http", "http_kv_refused", "http_kv_refused_total", \
	    "Requests for a key told to come again: too many values, or too large ones, were being read") \
	ROW(timeouts, HS_TOTAL, "Http", "http_kv_timeouts", "http_kv_timeouts_total", \
	    "Requests for a key whose value did not come in time")
/* clang-format on */

struct hs_key_reader_stats {
	HS_KEY_READER_COUNTERS(HS_COUNTER_NUMBER)
};

typedef void hs_key_reader_done(void *owner, void *context, struct hs_key_read_result *result);

/* A value that is not there after `patience_us` is HS_KEY_READ_TIMEOUT. */
struct hs_key_reader *hs_key_reader_create(uv_loop_t *loop, struct hs_host *host,
					   uint64_t timeout_us, hs_key_reader_done *done,
					   void *owner);
/* Whoever waits is told HS_KEY_READ_CONNECTION_LOST. On the loop's thread; the loop runs on until the handles are closed. */
void hs_key_reader_destroy(struct hs_key_reader **reader);

/* Takes the key over. `done` is called once, perhaps before this returns. */
void hs_key_reader_get(struct hs_key_reader *reader, struct hs_buf *key, void *context);

struct hs_key_reader_stats *hs_key_reader_stats(struct hs_key_reader *reader);

#endif
