#include "serve/http_loop.h"

#include "base/err.h"
#include "http/http.h"
#include "serve/clock.h"
#include "serve/key_reader.h"
#include "serve/listen.h"
#include "serve/pages.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { ACCEPT_BURST = 64, PAUSE_MS = 100 /* a log line names it */ };

static bool is_default_port(int64_t port)
{
	return port == atoi(hs_option_find(HS_LIT("http"))->fallback);
}

int hs_http_loop_open(struct hs_http_loop *http, struct hs_host *host)
{
	const struct hs_options *options = host->options;
	int port = (int)options->http;
	char error[256];

	http->host = host;
	http->fd = -1;
	if (port < 0)
		return 0;
	http->fd = hs_listen(options->http_bind, &port, (int)options->tcp_backlog, error,
			     sizeof error);
	if (http->fd == HS_EBUSY && is_default_port(options->http)) {
		hs_log(host->log, HS_LOG_WARN,
		       "http: %s; HTTP is disabled. Choose another port with --http", error);
		http->fd = -1;
		return 0;
	}
	if (http->fd < 0) {
		hs_log(host->log, HS_LOG_ERROR, "http: %s%s", error,
		       http->fd == HS_EBUSY ? "; choose another port with --http" : "");
		return -1;
	}
	host->http_port = port;
	if (!hs_options_is_loopback(options->http_bind))
		hs_log(host->log, HS_LOG_WARN,
		       "http-bind %s is not a loopback address: HTTP has no password, and anyone "
		       "who reaches it "
		       "can read key names",
		       options->http_bind);
	return 0;
}

void hs_http_loop_close(struct hs_http_loop *http)
{
	if (http->fd >= 0)
		close(http->fd);
	http->fd = -1;
}

static void on_timer(uv_timer_t *timer);

/* Runs HTTP, and sets the timer for its next deadline. */
static void run(struct hs_http_loop *http)
{
	uint64_t now_us = hs_clock_mono_us();
	int64_t wait_ms;

	hs_http_run(http->host->http, now_us);
	wait_ms = hs_http_wait_ms(http->host->http, now_us);
	if (wait_ms >= 0)
		uv_timer_start(&http->timer, on_timer, (uint64_t)wait_ms, 0);
	else
		uv_timer_stop(&http->timer);
}

static void on_timer(uv_timer_t *timer)
{
	run(timer->data);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
	(void)status;
	(void)events;
	run(poll->data);
}

static void on_connect(uv_poll_t *poll, int status, int events);

static void on_pause_over(uv_timer_t *timer)
{
	struct hs_http_loop *http = timer->data;

	uv_poll_start(&http->listener, UV_READABLE, on_connect);
}

/* Most likely no file descriptor is free. The listener stays readable, so polling stops for a while. */
static void pause_accepting(struct hs_http_loop *http, int error)
{
	hs_log(http->host->log, HS_LOG_WARN,
	       "http: cannot accept a connection: %s; accepting pauses for 100 ms",
	       strerror(error));
	uv_poll_stop(&http->listener);
	uv_timer_start(&http->pause, on_pause_over, PAUSE_MS, 0);
}

static void on_connect(uv_poll_t *poll, int status, int events)
{
	struct hs_http_loop *http = poll->data;
	uint64_t now_us = hs_clock_mono_us();

	(void)status;
	(void)events;
	for (int i = 0; i < ACCEPT_BURST; i++) {
		struct sockaddr_storage address;
		socklen_t len = sizeof address;
		int fd = accept4(http->fd, (struct sockaddr *)&address, &len,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			hs_http_add(http->host->http, fd, (struct sockaddr *)&address, len, now_us);
		} else if (errno != EINTR && errno != ECONNABORTED) {
			if (errno != EAGAIN)
				pause_accepting(http, errno);
			break;
		}
	}
	run(http);
}

/* hs_http_run sends the answer in the next round of the loop. */
static void on_fetched(void *owner, void *context, struct hs_key_read_result *result)
{
	struct hs_http_loop *http = owner;

	hs_kv_page_done(http->host, context, result);
	if (!uv_is_closing((uv_handle_t *)&http->timer))
		uv_timer_start(&http->timer, on_timer, 0, 0);
}

void hs_http_loop_start(struct hs_http_loop *http, uv_loop_t *loop)
{
	struct hs_host *host = http->host;
	struct hs_http_options options = {
		.routes = hs_pages,
		.context = host,
		.log = host->log,
		.local_names_only = hs_options_is_loopback(host->options->http_bind),
		.connections_max = HS_HTTP_CONNECTIONS_MAX,
		.reserved_max = HS_HTTP_RESERVED_MAX,
		.timeout_us = (uint64_t)host->options->http_timeout * 1000000,
		.request_bytes = HS_HTTP_REQUEST_BYTES_MAX,
		.body_bytes = HS_HTTP_BODY_BYTES_MAX,
		.unread_bytes = HS_HTTP_UNREAD_BYTES_MAX,
	};

	if (http->fd < 0)
		return;
	host->http = hs_http_create(&options);
	hs_check(host->http != NULL);
	/* Half of http-timeout, so that the client still gets the 504. */
	host->key_reader =
		hs_key_reader_create(loop, host, options.timeout_us / 2, on_fetched, http);
	uv_timer_init(loop, &http->timer);
	uv_timer_init(loop, &http->pause);
	hs_check(uv_poll_init(loop, &http->events, hs_http_fd(host->http)) == 0);
	hs_check(uv_poll_init(loop, &http->listener, http->fd) == 0);
	http->timer.data = http;
	http->pause.data = http;
	http->events.data = http;
	http->listener.data = http;
	uv_poll_start(&http->events, UV_READABLE, on_event);
	uv_poll_start(&http->listener, UV_READABLE, on_connect);
}

void hs_http_loop_stop(struct hs_http_loop *http)
{
	if (http->fd < 0)
		return;
	uv_close((uv_handle_t *)&http->timer, NULL);
	uv_close((uv_handle_t *)&http->pause, NULL);
	uv_close((uv_handle_t *)&http->events, NULL);
	uv_close((uv_handle_t *)&http->listener, NULL);
	hs_key_reader_destroy(&http->host->key_reader);
	hs_http_destroy(&http->host->http);
	hs_http_loop_close(http);
}
