/* Looks up names with getaddrinfo in detached threads: the call cannot be cancelled and may take many seconds when
 * name servers do not answer, and neither a loop nor the end of the process may wait for it. A cancelled lookup
 * leaves its thread running; the result is discarded. Lookups of the same host and port, on any loops, share one
 * thread until it ends: a retry joins the thread of a cancelled lookup.
 *
 * One struct hs_names serves all connections of an engine, on any thread. A lookup belongs to its loop's thread.
 * At most HS_LOOKUPS_MAX threads run at a time, those of cancelled lookups included; a lookup that needs one more
 * fails at once. */
#ifndef HS_UPSTREAM_NAMES_H
#define HS_UPSTREAM_NAMES_H

#include <stdint.h>

struct addrinfo;
struct hs_lookup;
struct hs_names;
struct uv_loop_s;

/* getaddrinfo; tests pass another function. */
typedef int hs_names_find(const char *host, const char *port, const struct addrinfo *hints,
			  struct addrinfo **found);

struct hs_names *hs_names_create(hs_names_find *find);
void hs_names_release(struct hs_names **names); /* running lookups may outlive it */

/* Called once, not from inside hs_lookup_start, with addresses that are valid during the call, or NULL and the
 * reason. */
typedef void hs_lookup_done(void *context, const struct addrinfo *found, const char *why);

struct hs_lookup *hs_lookup_start(struct hs_names *names, struct uv_loop_s *loop, const char *host,
				  uint16_t port, hs_lookup_done *done, void *context);
/* `done` will not be called. Only before `done` was called. */
void hs_lookup_cancel(struct hs_lookup **lookup);

#endif
