/* src/http: HTTP, in two roles: pages for operators and their tools (heat as JSON, Prometheus metrics, health
 * checks), and GET /kv/<key>, which serves the value of a key to browsers and to the HTTP caches in front of them.
 *
 * This file answers a table of routes with libmicrohttpd; route.h has routes and parameters, api.h heat as JSON,
 * metrics.h and board_metrics.h the Prometheus text, kv.h the headers of GET /kv/<key>. GET and HEAD only: nothing
 * can be changed over HTTP. The folder knows the board (telemetry/) and rules (contract/), but no engine, no
 * options and no thread: src/serve composes the pages and calls it from the control thread's loop:
 *
 *     a socket was accepted ─ hs_http_add
 *     hs_http_fd is readable, or hs_http_wait_ms has passed ─ hs_http_run
 *
 * One thread: that of the loop. hs_http_answer takes over the buffer of an answer; it is freed when the library
 * has sent it.
 *
 * Limits (struct hs_http_options) and what happens at each, in this order:
 *
 *     connections_max is reached       requests that have arrived are run; then the new connection replaces one that
 *                                      waits for a request: the oldest without a request line, else the oldest
 *                                      with half a request
 *     all connections are answering    the new connection gets a reserved place: routes marked `probe` are answered,
 *                                      others get 503 with Retry-After
 *     reserved_max is reached, too     503 with Retry-After, and the socket is closed; the request is not read, so a
 *                                      probe gets 503 as well
 *     timeout_us                       runs from connect to the last byte of the response, then anew for each request;
 *                                      slow progress does not extend it. The connection is closed
 *     body_bytes                       a larger answer becomes a 500
 *     unread_bytes                     an answer that would exceed it together with answers still being sent becomes
 *                                      a 503. Answers of at most 4096 bytes are always sent
 *
 * A route may answer later (`begin`): its request is suspended until hs_http_answer, which must come exactly once. If
 * the client disconnects before that, the library notices it only after the answer. */
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
	struct hs_http_routes routes; /* must outlive the hs_http */
	void *context;		      /* for the routes' compose and begin */
	const struct hs_log *log;
	/* Answer only requests whose Host is an IP address or localhost: a web page from elsewhere must not read this
	 * server through a browser on this machine (DNS rebinding). */
	bool local_names_only;
	uint32_t connections_max;
	uint32_t reserved_max; /* more connections, for probes when all others are busy */
	uint64_t timeout_us;   /* for one request and its response */
	size_t request_bytes;  /* per connection: request line, headers, and the send buffer */
	size_t body_bytes;     /* one answer */
	size_t unread_bytes;   /* all answers that are still being sent */
};

/* clang-format off */
#define HS_HTTP_COUNTERS(ROW) \
	ROW(connections, HS_GAUGE, "Http", "http_connections", "http_connections", "HTTP connections open now") \
	ROW(requests, HS_TOTAL, "Http", "http_requests", "http_requests_total", "HTTP requests answered") \
	ROW(errors, HS_TOTAL, "Http", "http_errors", "http_errors_total", \
	    "HTTP requests answered with a status of 400 or more") \
	ROW(refused, HS_TOTAL, "Http", "http_refused", "http_refused_connections_total", \
	    "HTTP connections and requests refused: answered with 503 because all connections were busy, " \
	    "or closed because libmicrohttpd failed") \
	ROW(idle_closed, HS_TOTAL, "Http", "http_idle_closed", "http_idle_closed_total", \
	    "HTTP connections without a complete request that were closed to make room for a new one") \
	ROW(timeouts, HS_TOTAL, "Http", "http_timeouts", "http_timeouts_total", \
	    "HTTP connections closed because a request and its response took longer than http-timeout") \
	ROW(not_modified, HS_TOTAL, "Http", "http_kv_not_modified", "http_kv_not_modified_total", \
	    "Requests for /kv/<key> answered with 304: the client had the value already")
/* clang-format on */

struct hs_http_stats {
	/* Must be first. One thread counts. */
	HS_HTTP_COUNTERS(HS_COUNTER_NUMBER)
	uint64_t unread_bytes; /* of answers that are still being sent */
};

extern const struct hs_counter_table hs_http_counters;

/* The answer of a route that answers later. */
struct hs_http_answer {
	unsigned status; /* with any but 200 the body is a plain-text message */
	struct hs_buf body;
	char etag[HS_KV_ETAG_BYTES];		       /* with 200; "": no header */
	char cache_control[HS_KV_CACHE_CONTROL_BYTES]; /* with 200; "": no-store */
	uint32_t retry_s; /* Retry-After; 0: no header, or the default for a 503 */
};

/* NULL if the library does not start; the log says so. */
struct hs_http *hs_http_create(const struct hs_http_options *options) HS_MUSTCHECK;
/* Closes every connection, answered or not. No pending answer may be left. */
void hs_http_destroy(struct hs_http **http);

/* Takes over a connected, non-blocking socket. */
void hs_http_add(struct hs_http *http, int fd, const struct sockaddr *address, socklen_t len,
		 uint64_t now_us);

int hs_http_fd(const struct hs_http *http); /* an epoll descriptor: call run when it is readable */
void hs_http_run(struct hs_http *http, uint64_t now_us);
/* Call run again after this time at most; negative: only when readable. */
int64_t hs_http_wait_ms(const struct hs_http *http, uint64_t now_us);

/* Exactly once for each `begin`, from inside it or later, on the same thread. Takes the body over. hs_http_run sends
 * it: the caller must call that soon, since hs_http_fd does not become readable. A 200 whose ETag the client has
 * becomes a 304. */
void hs_http_answer(struct hs_http_pending *pending, struct hs_http_answer *answer);

const struct hs_http_stats *hs_http_stats(const struct hs_http *http);

#endif
