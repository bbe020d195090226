/* HTTP inside the control thread's loop: accepts connections, and lets http/http.h run when one of
 * them has something to say or has said nothing for too long.
 *
 *     main ────── open ── … ── (close, when nothing was started)
 *     control ─── start ── its loop runs ── stop
 *
 * Nothing here is shared: before the control thread starts all of it is the main thread's, then all
 * of it is the control thread's. */
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
	uv_timer_t pause; /* until accepting is tried again */
};

/* Listens as the options say. Without HTTP it is fine too: when none is asked for, or when the
 * default port is taken, which is said in the log. Negative when it must not start. Sets
 * host->http_port. */
int hs_http_loop_open(struct hs_http_loop *http, struct hs_host *host) HS_MUSTCHECK;
void hs_http_loop_close(struct hs_http_loop *http); /* opened and never started */

/* host->http is set from here on. */
void hs_http_loop_start(struct hs_http_loop *http, uv_loop_t *loop);
/* On the loop's thread: closes every connection, and its handles. */
void hs_http_loop_stop(struct hs_http_loop *http);

#endif
