/* HTTP for operators: a table of routes answered by libmicrohttpd, without a thread of its own. It
 * runs inside somebody's event loop:
 *
 *     a socket was accepted ─ hs_http_add
 *     hs_http_fd is readable, or hs_http_wait_ms has passed ─ hs_http_run
 *
 * One thread. GET and HEAD only; nothing can be changed over HTTP.
 *
 * Every limit is in struct hs_http_options. When all places are taken, a new connection takes the place of
 * one that waits for a request: first of those that have sent no request line, the oldest first, then of
 * those that have sent half a request. When every place is busy with an answer, a new connection gets one
 * of the reserved places: routes marked `probe` are answered there, others are told 503 and when to try
 * again. So a health check is answered however many clients idle. A connection that does
 * not finish a request and take its answer in time is closed, however busily it trickles: from
 * connecting to the answer's last byte, and from there to the next. An answer that is too large, or
 * that would be too much together with those that nobody has read yet, is an error instead.
 *
 * A route may answer later (`begin`). Its request is out of the library's hands until hs_http_answer,
 * which comes in any case: a client that left meanwhile is noticed behind it. */
#ifndef HS_HTTP_HTTP_H
#define HS_HTTP_HTTP_H

#include "base/check.h"
#include "base/counter.h"
#include "base/log.h"
#include "http/kv.h"
#include "http/route.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

struct hs_http;

struct hs_http_options {
	struct hs_http_routes routes; /* outlive it */
	void *context;		      /* for the routes' compose */
	const struct hs_log *log;
	/* Answer only who addresses this machine as an IP address or localhost: a page elsewhere
	 * must not read us through a browser that runs here. */
	bool local_names_only;
	uint32_t connections_max;
	uint32_t reserved_max; /* places beyond these, for probes when all are busy */
	uint64_t timeout_us;   /* for a request and its answer */
	size_t request_bytes;  /* request line, headers and room to send from, per connection */
	size_t body_bytes;     /* one answer */
	size_t unread_bytes;   /* all answers not read yet */
};

/* clang-format off */
#define HS_HTTP_COUNTERS(ROW) \
	ROW(connections, HS_GAUGE, "Http", "http_connections", "http_connections", "HTTP connections open now") \
	ROW(requests, HS_TOTAL, "Http", "http_requests", "http_requests_total", "HTTP requests answered") \
	ROW(errors, HS_TOTAL, "Http", "http_errors", "http_errors_total", \
	    "HTTP requests answered with a status of 400 or more") \
	ROW(refused, HS_TOTAL, "Http", "http_refused", "http_refused_connections_total", \
	    "HTTP connections and requests refused because every connection was busy") \
	ROW(idle_closed, HS_TOTAL, "Http", "http_idle_closed", "http_idle_closed_total", \
	    "HTTP connections without a whole request, closed to let a new one in") \
	ROW(timeouts, HS_TOTAL, "Http", "http_timeouts", "http_timeouts_total", \
	    "HTTP connections closed because a request or its answer took too long") \
	ROW(not_modified, HS_TOTAL, "Http", "http_kv_not_modified", "http_kv_not_modified_total", \
	    "Requests for a key over HTTP answered with 304: the client had the value already")
/* clang-format on */

struct hs_http_stats {
	/* First: of its one thread. */
	HS_HTTP_COUNTERS(HS_COUNTER_NUMBER)
	uint64_t unread_bytes; /* in answers that are not sent yet */
};

extern const struct hs_counter_table hs_http_counters;

/* Of a route that answers later. */
struct hs_http_answer {
	unsigned status; /* any but 200: the body is words */
	struct hs_buf body;
	char etag[HS_KV_ETAG_BYTES];		       /* of a 200; "": none */
	char cache_control[HS_KV_CACHE_CONTROL_BYTES]; /* of a 200; "": no-store */
	uint32_t retry_s;			       /* Retry-After; 0: none, or a 503's own */
};

/* NULL when the library refuses; it says why in the log. */
struct hs_http *hs_http_create(const struct hs_http_options *options) HS_MUSTCHECK;
/* Closes every connection, answered or not. Nothing is left to be answered later. */
void hs_http_destroy(struct hs_http **http);

/* Takes over a connected socket, non-blocking. */
void hs_http_add(struct hs_http *http, int fd, const struct sockaddr *address, socklen_t len,
		 uint64_t now_us);

int hs_http_fd(const struct hs_http *http); /* an epoll descriptor: readable means: run */
void hs_http_run(struct hs_http *http, uint64_t now_us);
/* Run again after this long at most; negative: not before something is readable. */
int64_t hs_http_wait_ms(const struct hs_http *http, uint64_t now_us);

/* Once for each `begin`, from inside it or later, on the same thread. Takes the body over. It is
 * sent by hs_http_run, which is to be called soon: hs_http_fd does not tell. A 200 whose ETag the client has becomes a 304. */
void hs_http_answer(struct hs_http_pending *pending, struct hs_http_answer *answer);

const struct hs_http_stats *hs_http_stats(const struct hs_http *http);

#endif
