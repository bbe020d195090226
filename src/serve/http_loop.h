/* HTTP on the control thread's loop: accepts connections and runs http/http.h when a socket is readable or a
 * deadline has passed. It hands the routes of pages.h to http/http.h and finished reads of keys to kv_page.c; it
 * composes no page and parses no HTTP.
 *
 *     main ────── open ── start ── … (close instead of start, if the server cannot start)
 *     control ───────────────── its loop runs ── stop
 *
 * One thread at a time: the main thread until the control thread starts, then the control thread.
 *
 * Bad days: the default port is in use: HTTP is disabled, with a warning. Any other port in use: the process does not
 * start. No file descriptor for a new connection: a warning, and accepting pauses for 100 ms. */
#ifndef HS_SERVE_HTTP_LOOP_H
#define HS_SERVE_HTTP_LOOP_H

#include "base/check.h"
#include "serve/host.h"

#include <uv.h>

struct hs_http_loop {
	struct hs_host *host;
	int fd; /* listens; -1: none */
	uv_poll_t listener;
	uv_poll_t events;
	uv_timer_t timer;
	uv_timer_t pause; /* until accepting resumes after an error */
};

/* Listens as the options say and sets host->http_port. 0 with fd -1: HTTP is disabled, because `http -1` says so or
 * because the default port is in use (a warning is logged). Negative: the process must not start; the log says
 * why. */
int hs_http_loop_open(struct hs_http_loop *http, struct hs_host *host) HS_MUSTCHECK;
void hs_http_loop_close(struct hs_http_loop *http); /* if start was not called */

/* Sets host->http and host->key_reader. */
void hs_http_loop_start(struct hs_http_loop *http, uv_loop_t *loop);
/* The loop's thread: closes every connection and all handles. */
void hs_http_loop_stop(struct hs_http_loop *http);

#endif
