/* What can be asked over HTTP: a table of routes, each with its parameters. Parsing and checking a
 * query, the index page, the 404 and the words of a 400 all come from these rows.
 *
 * Knows no socket and no libmicrohttpd. */
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
	HS_HTTP_TEXT, /* any bytes, percent-encoded on the way */
};

struct hs_http_parameter {
	const char *name;
	enum hs_http_kind kind;
	const char *const *words; /* WORD: its number is its place */
	int64_t min, max;
	int64_t fallback; /* INT and WORD that are not given; TEXT is empty then */
};

struct hs_http_value {
	int64_t number;	      /* INT, and WORD: which */
	struct hs_bytes text; /* TEXT; valid while the request is answered */
	bool given;
};

struct hs_http_pending; /* http.h */

struct hs_http_request {
	const struct hs_http_route *route;
	/* What stands behind the path of a route with a `rest`, as it was sent: percent-encoded. Valid
	 * until the request is answered. */
	struct hs_bytes suffix;
	struct hs_http_value values[HS_HTTP_PARAMETERS_MAX]; /* as the route's parameters */
};

struct hs_http_route {
	const char *path;
	const char *
		suffix; /* what stands behind the path, for the index: "<key>"; NULL: nothing may */
	const char *type; /* of a 200 answer; everything else is plain text */
	const struct hs_http_parameter *parameters;
	size_t parameters_count;
	/* Costs something: all who ask at the same moment get one and the same answer. Takes no
	 * parameters. */
	bool shared;
	/* Asked by programs that watch over this one: answered also when every place is taken. Its
	 * answer is small. */
	bool probe;
	/* Appends the answer to `body` and returns its HTTP status. Any but 200 is an error and its
	 * words. */
	unsigned (*compose)(void *context, const struct hs_http_request *request,
			    struct hs_buf *body);
	/* Or, instead of that: has it answered by hs_http_answer, now or later. */
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
/* The same of those with a rest, for a path that is not decoded: what is encoded in a rest may mean
 * anything. */
const struct hs_http_route *hs_http_route_find_by_prefix(const struct hs_http_routes *routes,
							 struct hs_bytes encoded);

/* A request with every parameter at its default. */
void hs_http_request_init(struct hs_http_request *request, const struct hs_http_route *route);
/* One parameter of the query, already decoded. When it is unknown, given twice or wrong, writes a
 * line that names it to `why` and returns HS_EINVAL. The value's bytes are borrowed. */
int hs_http_request_set(struct hs_http_request *request, struct hs_bytes name,
			struct hs_bytes value, struct hs_buf *why) HS_MUSTCHECK;

/* Every route with its parameters, a line each. */
void hs_http_routes_describe(const struct hs_http_routes *routes, struct hs_buf *text);

#endif
