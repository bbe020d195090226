/* The routes of HTTP: a table of paths with their parameters. Parsing and checking a query, the index page, the 404
 * and the text of a 400 all come from these rows.
 *
 * It knows no socket and no libmicrohttpd, keeps no state, and borrows the bytes of requests. Any thread. */
#ifndef HS_HTTP_ROUTE_H
#define HS_HTTP_ROUTE_H

#include "base/buf.h"
#include "base/check.h"
#include "base/words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HS_HTTP_PARAMETERS_MAX = 8 }; /* of one route */

enum hs_http_kind {
	HS_HTTP_INT,
	HS_HTTP_WORD, /* one of `words` */
	HS_HTTP_TEXT, /* any bytes; the library has decoded them */
};

struct hs_http_parameter {
	const char *name;
	enum hs_http_kind kind;
	const char *const *words; /* WORD: up to a NULL; the value is the index */
	int64_t min, max;
	int64_t fallback; /* INT and WORD that are not given; TEXT is empty then */
};

struct hs_http_value {
	int64_t number;	      /* INT; WORD: its index */
	struct hs_bytes text; /* TEXT; valid until the request is answered */
	bool given;
};

struct hs_http_pending; /* http.h */

struct hs_http_request {
	const struct hs_http_route *route;
	/* The rest of the path behind a route with a `suffix`, percent-encoded as the client sent it. Valid until the
	 * request is answered. */
	struct hs_bytes suffix;
	/* In the order of the route's parameters. */
	struct hs_http_value values[HS_HTTP_PARAMETERS_MAX];
};

struct hs_http_route {
	const char *path;
	/* Shown in the index for the rest of the path: "<key>". NULL: the path is complete. */
	const char *suffix;
	const char *type; /* of a 200; other answers are plain text */
	const struct hs_http_parameter *parameters;
	size_t parameters_count;
	/* Expensive: requests that arrive in the same run get one and the same answer. No parameters. */
	bool shared;
	/* A health check: answered in a reserved place, too. Its answer is small. */
	bool probe;
	/* Appends the answer to `body` and returns its HTTP status. With any but 200, `body` is the error's text. */
	unsigned (*compose)(void *context, const struct hs_http_request *request,
			    struct hs_buf *body);
	/* Instead of `compose`: has the request answered by hs_http_answer, now or later. */
	void (*begin)(void *context, const struct hs_http_request *request,
		      struct hs_http_pending *pending);
	const char *help;
};

struct hs_http_routes {
	const struct hs_http_route *routes;
	size_t count;
};

/* The route of a path, or NULL. */
const struct hs_http_route *hs_http_route_find(const struct hs_http_routes *routes,
					       struct hs_bytes path);
/* The route with a suffix that this path begins with, or NULL. The path is not decoded: an encoded slash belongs
 * to the suffix. */
const struct hs_http_route *hs_http_route_find_by_prefix(const struct hs_http_routes *routes,
							 struct hs_bytes encoded);

/* A request with every parameter at its default. */
void hs_http_request_init(struct hs_http_request *request, const struct hs_http_route *route);
/* Sets one decoded parameter of the query. If it is unknown, given twice or invalid, appends a line that names it to
 * `why` and returns HS_EINVAL. Borrows the bytes of the value. */
int hs_http_request_set(struct hs_http_request *request, struct hs_bytes name,
			struct hs_bytes value, struct hs_buf *why) HS_MUSTCHECK;

/* Appends all routes with their parameters, one line each. */
void hs_http_routes_describe(const struct hs_http_routes *routes, struct hs_buf *text);

#endif
