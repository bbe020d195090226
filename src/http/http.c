/* Routes on libmicrohttpd. A connection's life, and the flags that mark it:
 *
 *     on_connection ─▶ waits ─ on_target ─▶ has_request_line ─ answer_request ─▶ answering ─ on_completed ─▶ waits …
 *                                                                └─ `begin`: suspended until hs_http_answer
 */
#include "http/http.h"

#include "base/err.h"
#include "base/list.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* The library's own connection limit is ours plus SPARE_CONNECTIONS, so that ours is reached first. Answers up to
 * SMALL_BODY_BYTES are sent whatever unread_bytes says. */
enum { SPARE_CONNECTIONS = 8, SMALL_BODY_BYTES = 4096, RETRY_S = 1 };

#define RETRY_TEXT "1" /* RETRY_S */
#define PLAIN_TYPE "text/plain; charset=utf-8"
#define NO_STORE "no-store"
#define FULL_TEXT "all connections are busy with answers: try again\n"

struct hs_http {
	struct hs_http_options options;
	struct MHD_Daemon *daemon;
	struct hs_link connections; /* nearest deadline first */
	struct hs_http_stats stats;
	uint32_t reserved; /* connections in a reserved place */
	/* The answer of a `shared` route, for all its requests in this run. */
	struct MHD_Response *shared;
	const struct hs_http_route *shared_route;
	uint64_t now_us; /* the time of this call, for the library's callbacks */
};

/* A request that is answered later. */
struct hs_http_pending {
	struct hs_http *http;
	struct MHD_Connection *peer;
	struct hs_http_answer answer;
	bool begun;	/* the route's `begin` was called, and the request has not ended */
	bool suspended; /* the library ignores the connection until it is resumed */
	bool answered;
};

struct connection {
	struct hs_link link;
	struct MHD_Connection *peer;
	uint64_t deadline_us;
	bool is_shut_down;     /* its socket is shut down; the library closes it in its next run */
	bool has_request_line; /* the client has sent a request line */
	bool answering;	       /* a request waits for its answer, or the answer is being sent */
	bool reserved;	       /* in a reserved place: only probes are answered */
	bool cut_by_nul;       /* the path has %00, so the library's decoded path is cut */
	struct hs_buf encoded_path; /* of a request whose route has a suffix */
	struct hs_http_pending pending;
};

struct answer {
	struct hs_http *http;
	struct hs_buf body;
};

/* ---- answers ---- */

static void free_answer(void *context)
{
	struct answer *answer = context;

	answer->http->stats.unread_bytes -= answer->body.len;
	hs_buf_deinit(&answer->body);
	hs_mem_free(&answer);
}

/* Takes over the body's bytes. NULL when the library has no memory. */
static struct MHD_Response *create_response(struct hs_http *http, const char *type,
					    const char *cache_control, struct hs_buf *body)
{
	struct answer *answer = hs_mem_zalloc(sizeof *answer);
	struct MHD_Response *response;

	answer->http = http;
	hs_buf_swap(&answer->body, body);
	http->stats.unread_bytes += answer->body.len;
	response = MHD_create_response_from_buffer_with_free_callback_cls(
		answer->body.len, answer->body.data ? answer->body.data : "", free_answer, answer);
	if (!response) {
		free_answer(answer);
		return NULL;
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, cache_control);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	return response;
}

static struct connection *connection_of(struct MHD_Connection *peer)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(peer, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static enum MHD_Result send_response(struct hs_http *http, struct MHD_Connection *peer,
				     unsigned status, struct MHD_Response *response)
{
	struct connection *connection = connection_of(peer);

	if (connection)
		connection->answering = true;
	http->stats.requests++;
	http->stats.errors += status >= MHD_HTTP_BAD_REQUEST;
	http->stats.not_modified += status == MHD_HTTP_NOT_MODIFIED;
	return MHD_queue_response(peer, status, response);
}

static void forget_shared(struct hs_http *http)
{
	if (http->shared)
		MHD_destroy_response(http->shared);
	http->shared = NULL;
	http->shared_route = NULL;
}

static enum MHD_Result send_answer(struct hs_http *http, struct MHD_Connection *peer,
				   const struct hs_http_route *route, struct hs_http_answer *answer)
{
	const struct connection *connection = connection_of(peer);
	unsigned status = answer->status;
	bool is_value = status == MHD_HTTP_OK ||
			status == MHD_HTTP_NOT_MODIFIED; /* else the body is a plain-text message */
	bool cached = is_value && answer->cache_control[0];
	struct MHD_Response *response =
		create_response(http, is_value ? route->type : PLAIN_TYPE,
				cached ? answer->cache_control : NO_STORE, &answer->body);
	enum MHD_Result result;
	char retry[16];

	if (!response)
		return MHD_NO;
	if (is_value && answer->etag[0])
		MHD_add_response_header(response, MHD_HTTP_HEADER_ETAG, answer->etag);
	if (is_value && route->begin)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ACCEPT_RANGES, "none");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE && answer->retry_s == 0)
		answer->retry_s = RETRY_S;
	snprintf(retry, sizeof retry, "%u", answer->retry_s);
	if (answer->retry_s > 0)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, retry);
	if (!is_value && connection && connection->reserved) /* frees the reserved place */
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	result = send_response(http, peer, status, response);
	if (!is_value || !route->shared) {
		MHD_destroy_response(response);
		return result;
	}
	forget_shared(http);
	http->shared = response;
	http->shared_route = route;
	return result;
}

/* Replaces an answer that exceeds a limit of memory by an error. */
static void replace_if_too_large(const struct hs_http *http, struct hs_http_answer *answer)
{
	const struct hs_http_options *options = &http->options;
	struct hs_buf *body = &answer->body;
	size_t len = body->len;

	if (len > options->body_bytes) {
		hs_buf_deinit(body);
		hs_buf_printf(body,
			      "the answer has %zu bytes, at most %zu are sent: ask for less\n", len,
			      options->body_bytes);
		answer->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
		return;
	}
	/* Small answers are bounded by the number of connections; so a probe is always answered. */
	if (len > SMALL_BODY_BYTES && http->stats.unread_bytes + len > options->unread_bytes) {
		hs_buf_deinit(body);
		hs_buf_printf(body, "%llu bytes of other answers are still being sent: try again\n",
			      (unsigned long long)http->stats.unread_bytes);
		answer->status = MHD_HTTP_SERVICE_UNAVAILABLE;
	}
}

/* ---- requests ---- */

struct query {
	struct hs_http_request request;
	struct hs_buf *why; /* the error; empty: none */
};

static enum MHD_Result take_parameter(void *context, enum MHD_ValueKind kind, const char *name,
				      size_t name_len, const char *value, size_t value_len)
{
	struct query *query = context;
	struct hs_bytes text = {value, value ? value_len : 0};
	int status;

	(void)kind;
	status = hs_http_request_set(&query->request, (struct hs_bytes){name, name_len}, text,
				     query->why);
	return status == 0 ? MHD_YES : MHD_NO;
}

static bool is_local_name(struct hs_bytes name)
{
	char text[INET6_ADDRSTRLEN];
	struct in_addr v4;
	struct in6_addr v6;

	if (hs_bytes_is_word(name, "localhost"))
		return true;
	if (name.len == 0 || name.len >= sizeof text)
		return false;
	memcpy(text, name.data, name.len);
	text[name.len] = '\0';
	return inet_pton(AF_INET, text, &v4) == 1 || inet_pton(AF_INET6, text, &v6) == 1;
}

struct hosts {
	const char *first; /* NULL: no Host header */
	unsigned count;
};

static enum MHD_Result count_host(void *context, enum MHD_ValueKind kind, const char *name,
				  const char *value)
{
	struct hosts *hosts = context;

	(void)kind;
	if (strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0 && hosts->count++ == 0)
		hosts->first = value ? value : "";
	return MHD_YES;
}

/* True for 127.0.0.1:8380, [::1]:8380, localhost, and no Host header (HTTP/1.0). Only a port may follow the name:
 * [::1].example.com is a foreign name. */
static bool is_addressed_locally(const char *host)
{
	struct hs_bytes name;
	const char *suffix;

	if (!host)
		return true;
	if (*host == '[') {
		name = (struct hs_bytes){host + 1, strcspn(host + 1, "]")};
		suffix = name.data + name.len;
		if (*suffix != ']')
			return false;
		suffix++;
	} else {
		name = (struct hs_bytes){host, strcspn(host, ":")};
		suffix = name.data + name.len;
	}
	if (*suffix == ':')
		suffix += 1 + strspn(suffix + 1, "0123456789");
	return *suffix == '\0' && is_local_name(name);
}

static bool is_reading(const char *method)
{
	return strcmp(method, MHD_HTTP_METHOD_GET) == 0 ||
	       strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
}

/* Checks a request before its route sees it. Returns the status of the error, or 0. */
static unsigned refuse(const struct hs_http *http, struct MHD_Connection *peer, const char *method,
		       const struct hs_http_route *route, struct hs_buf *text)
{
	struct hosts hosts = {0};

	MHD_get_connection_values(peer, MHD_HEADER_KIND, count_host, &hosts);
	if (hosts.count > 1) {
		hs_buf_printf(text, "the request has %u Host headers, one is allowed\n",
			      hosts.count);
		return MHD_HTTP_BAD_REQUEST;
	}
	if (http->options.local_names_only && !is_addressed_locally(hosts.first)) {
		hs_buf_printf(text, "this server listens on loopback only: use its IP address or "
				    "localhost as the host name\n");
		return MHD_HTTP_MISDIRECTED_REQUEST;
	}
	if (!route) {
		hs_buf_printf(text, "no such page. The pages are:\n\n");
		hs_http_routes_describe(&http->options.routes, text);
		return MHD_HTTP_NOT_FOUND;
	}
	if (!is_reading(method)) {
		hs_buf_printf(text, "%s allows only GET and HEAD\n", route->path);
		return MHD_HTTP_METHOD_NOT_ALLOWED;
	}
	return 0;
}

/* The library calls this with the request target, before it decodes the path. The decoded path is a C string and ends
 * at a %00 of the client: such a path must not match the route of its first part. Returns the first `state` of
 * on_request. */
static void *on_target(void *context, const char *target, struct MHD_Connection *peer)
{
	struct connection *connection = connection_of(peer);
	const struct hs_http *http = context;
	const char *nul = strstr(target, "%00");
	struct hs_bytes path = {target, strcspn(target, "?")};

	if (!connection)
		return NULL;
	connection->has_request_line = true;
	connection->cut_by_nul = nul && nul < target + path.len;
	hs_buf_clear(&connection->encoded_path, 0);
	if (hs_http_route_find_by_prefix(&http->options.routes, path))
		hs_buf_append_bytes(&connection->encoded_path, path);
	return NULL;
}

static const struct hs_http_route *find_route(const struct hs_http *http,
					      const struct connection *connection, const char *path)
{
	if (connection && connection->encoded_path.len > 0)
		return hs_http_route_find_by_prefix(&http->options.routes,
						    hs_buf_bytes(&connection->encoded_path));
	if (connection && connection->cut_by_nul)
		return NULL;
	return hs_http_route_find(&http->options.routes, hs_bytes_of(path));
}

/* ---- answers that come later ---- */

struct condition {
	const char *etag;
	bool holds;
};

static enum MHD_Result compare_etag(void *context, enum MHD_ValueKind kind, const char *name,
				    const char *value)
{
	struct condition *condition = context;

	(void)kind;
	if (value && strcasecmp(name, MHD_HTTP_HEADER_IF_NONE_MATCH) == 0)
		condition->holds |= hs_kv_names_etag(hs_bytes_of(value), condition->etag);
	return MHD_YES;
}

/* True if the client has this value already (If-None-Match). */
static bool has_already(struct MHD_Connection *peer, const struct hs_http_answer *answer)
{
	struct condition condition = {.etag = answer->etag};

	if (answer->status != MHD_HTTP_OK || !answer->etag[0])
		return false;
	MHD_get_connection_values(peer, MHD_HEADER_KIND, compare_etag, &condition);
	return condition.holds;
}

static enum MHD_Result send_pending(struct hs_http_pending *pending,
				    const struct hs_http_route *route)
{
	struct hs_http_answer *answer = &pending->answer;

	/* With 304 the library sends the length of the body, but not the body. */
	if (has_already(pending->peer, answer))
		answer->status = MHD_HTTP_NOT_MODIFIED;
	else
		replace_if_too_large(pending->http, answer);
	return send_answer(pending->http, pending->peer, route, answer);
}

static enum MHD_Result begin_pending(struct hs_http *http, struct connection *connection,
				     struct hs_http_request *request)
{
	struct hs_http_pending *pending = &connection->pending;

	*pending = (struct hs_http_pending){.http = http, .peer = connection->peer, .begun = true};
	request->suffix = hs_buf_bytes(&connection->encoded_path);
	request->suffix.data += strlen(request->route->path);
	request->suffix.len -= strlen(request->route->path);
	request->route->begin(http->options.context, request, pending);
	if (pending->answered)
		return send_pending(pending, request->route);
	pending->suspended = true;
	connection->answering = true;
	MHD_suspend_connection(connection->peer);
	return MHD_YES;
}

void hs_http_answer(struct hs_http_pending *pending, struct hs_http_answer *answer)
{
	hs_check(pending->begun && !pending->answered);
	pending->answer = *answer;
	answer->body = (struct hs_buf){0};
	pending->answered = true;
	if (!pending->suspended)
		return;
	pending->suspended = false;
	MHD_resume_connection(pending->peer);
}

/* The request has ended, whether or not its answer was sent: frees the pending answer. */
static void free_pending(struct hs_http_pending *pending)
{
	hs_check(!pending->suspended);
	hs_buf_deinit(&pending->answer.body);
	*pending = (struct hs_http_pending){0};
}

/* ---- routes ---- */

/* Moves a connection from a reserved place to an ordinary one, if one has become free. */
static bool take_free_place(struct hs_http *http, struct connection *connection)
{
	if (http->stats.connections - http->reserved >= http->options.connections_max)
		return false;
	connection->reserved = false;
	http->reserved--;
	return true;
}

static enum MHD_Result answer_request(struct hs_http *http, struct MHD_Connection *peer,
				      const char *url, const char *method)
{
	struct connection *connection = connection_of(peer);
	const struct hs_http_route *route = find_route(http, connection, url);
	struct hs_http_answer answer = {0};
	struct query query = {.why = &answer.body};

	if (connection && connection->pending.answered)
		return send_pending(&connection->pending, route);
	answer.status = refuse(http, peer, method, route, &answer.body);
	if (answer.status)
		return send_answer(http, peer, route, &answer);
	if (connection && connection->reserved && !route->probe &&
	    !take_free_place(http, connection)) {
		http->stats.refused++;
		hs_buf_printf(&answer.body, FULL_TEXT);
		answer.status = MHD_HTTP_SERVICE_UNAVAILABLE;
		return send_answer(http, peer, route, &answer);
	}
	hs_http_request_init(&query.request, route);
	MHD_get_connection_values_n(peer, MHD_GET_ARGUMENT_KIND, take_parameter, &query);
	if (answer.body.len > 0) {
		answer.status = MHD_HTTP_BAD_REQUEST;
		return send_answer(http, peer, route, &answer);
	}
	if (route->begin)
		return connection ? begin_pending(http, connection, &query.request) : MHD_NO;
	if (route == http->shared_route)
		return send_response(http, peer, MHD_HTTP_OK, http->shared);
	answer.status = route->compose(http->options.context, &query.request, &answer.body);
	replace_if_too_large(http, &answer);
	return send_answer(http, peer, route, &answer);
}

/* The library calls this with the headers, with each part of a body, and at the end; `state` is NULL the first time.
 * A client that is answered before the end is disconnected afterwards: only clients that send a body are answered
 * early. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *peer, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_len, void **state)
{
	bool first = *state == NULL;

	(void)version;
	(void)upload;
	*state = context;
	if (first && is_reading(method))
		return MHD_YES;
	if (*upload_len > 0) {
		*upload_len = 0;
		return MHD_YES;
	}
	return answer_request(context, peer, url, method);
}

/* ---- connections ---- */

static void renew(struct hs_http *http, struct connection *connection)
{
	connection->deadline_us = http->now_us + http->options.timeout_us;
	hs_list_remove(&connection->link);
	hs_list_append(&http->connections, &connection->link);
}

static void on_connection(void *context, struct MHD_Connection *peer, void **state,
			  enum MHD_ConnectionNotificationCode what)
{
	struct hs_http *http = context;
	struct connection *connection = *state;

	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		connection = hs_mem_zalloc(sizeof *connection);
		connection->peer = peer;
		hs_list_init(&connection->link);
		renew(http, connection);
		connection->reserved =
			http->stats.connections - http->reserved >= http->options.connections_max;
		*state = connection;
		http->stats.connections++;
		http->reserved += connection->reserved;
		return;
	}
	free_pending(&connection->pending);
	hs_buf_deinit(&connection->encoded_path);
	hs_list_remove(&connection->link);
	http->reserved -= connection->reserved;
	hs_mem_free(&connection);
	*state = NULL;
	http->stats.connections--;
}

static void on_completed(void *context, struct MHD_Connection *peer, void **request,
			 enum MHD_RequestTerminationCode why)
{
	struct connection *connection = connection_of(peer);

	(void)request;
	if (connection) {
		free_pending(&connection->pending);
		connection->has_request_line = false;
		connection->answering = false;
	}
	if (why == MHD_REQUEST_TERMINATED_COMPLETED_OK && connection && !connection->is_shut_down)
		renew(context, connection);
}

/* Shuts the socket down; the library sees that in its next run and closes the connection. */
static bool shut_down(struct connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection->peer, MHD_CONNECTION_INFO_CONNECTION_FD);

	if (connection->is_shut_down || !info)
		return false;
	connection->is_shut_down = true;
	shutdown(info->connect_fd, SHUT_RDWR);
	return true;
}

static void end_timed_out(struct hs_http *http)
{
	hs_list_each_safe(struct connection, connection, &http->connections, link) {
		if (connection->deadline_us > http->now_us)
			return;
		http->stats.timeouts += shut_down(connection);
	}
}

/* Shuts down the oldest connection that waits for a request, among those with or without a request line. */
static bool end_idle(struct hs_http *http, bool has_request_line)
{
	hs_list_each(struct connection, connection, &http->connections, link) {
		if (!connection->answering && connection->has_request_line == has_request_line &&
		    shut_down(connection)) {
			http->stats.idle_closed++;
			return true;
		}
	}
	return false;
}

/* ---- libmicrohttpd's daemon: log, start, stop, run ---- */

static void on_log(void *context, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));
static void on_log(void *context, const char *format, va_list args)
{
	struct hs_http *http = context;
	char line[256], shown[512];

	vsnprintf(line, sizeof line, format, args);
	line[strcspn(line, "\r\n")] = '\0';
	hs_log(http->options.log, HS_LOG_DEBUG, "http: %s",
	       hs_bytes_escape(hs_bytes_of(line), shown, sizeof shown));
}

struct hs_http *hs_http_create(const struct hs_http_options *options)
{
	struct hs_http *http = hs_mem_zalloc(sizeof *http);

	http->options = *options;
	hs_list_init(&http->connections);
	http->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_USE_ERROR_LOG |
			MHD_ALLOW_SUSPEND_RESUME,
		0, NULL, NULL, on_request, http, MHD_OPTION_EXTERNAL_LOGGER, on_log, http,
		MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)(options->connections_max + options->reserved_max + SPARE_CONNECTIONS),
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, options->request_bytes,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, http, MHD_OPTION_URI_LOG_CALLBACK, on_target, http,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1,
		MHD_OPTION_END);
	if (!http->daemon) {
		hs_log(options->log, HS_LOG_ERROR,
		       "http: libmicrohttpd does not start: HTTP is not available");
		hs_mem_free(&http);
	}
	return http;
}

void hs_http_destroy(struct hs_http **http)
{
	if (!*http)
		return;
	forget_shared(*http);
	MHD_run((*http)->daemon); /* sends the answers given since the last run */
	MHD_stop_daemon((*http)->daemon);
	hs_check(hs_list_empty(&(*http)->connections));
	hs_mem_free(http);
}

/* Closes a connection without a complete request if all ordinary places are taken. Requests that have arrived are run
 * first, so that their connections count as answering. */
static void make_room(struct hs_http *http)
{
	hs_http_run(http, http->now_us);
	if (http->stats.connections < http->options.connections_max)
		return;
	if (end_idle(http, false) || end_idle(http, true))
		hs_http_run(http, http->now_us);
}

/* All reserved places are busy, too. Best effort: the socket is new and its buffer empty. */
static void refuse_connection(struct hs_http *http, int fd)
{
	char text[256];
	int len = snprintf(text, sizeof text,
			   "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n"
			   "Retry-After: " RETRY_TEXT "\r\nContent-Length: %zu\r\n\r\n" FULL_TEXT,
			   sizeof FULL_TEXT - 1);

	http->stats.refused++;
	(void)!write(fd, text, (size_t)len);
	close(fd);
}

void hs_http_add(struct hs_http *http, int fd, const struct sockaddr *address, socklen_t len,
		 uint64_t now_us)
{
	const struct hs_http_options *options = &http->options;

	http->now_us = now_us;
	if (http->stats.connections >= options->connections_max)
		make_room(http);
	if (http->stats.connections >= options->connections_max + options->reserved_max) {
		refuse_connection(http, fd);
		return;
	}
	/* Closes the socket when it fails. */
	if (MHD_add_connection(http->daemon, fd, address, len) != MHD_YES)
		http->stats.refused++;
}

int hs_http_fd(const struct hs_http *http)
{
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);

	hs_check(info != NULL);
	return info->epoll_fd;
}

void hs_http_run(struct hs_http *http, uint64_t now_us)
{
	http->now_us = now_us;
	end_timed_out(http);
	MHD_run(http->daemon);
	forget_shared(http);
}

int64_t hs_http_wait_ms(const struct hs_http *http, uint64_t now_us)
{
	MHD_UNSIGNED_LONG_LONG ms;
	int64_t wait = -1;

	hs_list_each(const struct connection, connection, &http->connections, link) {
		if (connection->is_shut_down)
			continue;
		wait = connection->deadline_us <= now_us
			       ? 0
			       : (int64_t)((connection->deadline_us - now_us) / 1000 + 1);
		break;
	}
	if (MHD_get_timeout(http->daemon, &ms) == MHD_YES && (wait < 0 || (int64_t)ms < wait))
		wait = (int64_t)ms;
	return wait;
}

const struct hs_counter_table hs_http_counters = HS_COUNTER_TABLE(HS_HTTP_COUNTERS);

const struct hs_http_stats *hs_http_stats(const struct hs_http *http)
{
	return &http->stats;
}
