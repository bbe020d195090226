/* Names to addresses, looked up by threads of their own: the system's lookup cannot be called off
 * and may take many seconds when name servers are away, and nobody who ends may have to wait for
 * that. A lookup that is cancelled goes on without anybody, and takes its result with it. Connections
 * that want the same name at the same time share one lookup by the system, on whatever loops they are.
 *
 * Shared by all connections of an engine; any thread. A lookup belongs to its loop's thread.
 * HS_LOOKUPS_MAX names may be under way; another one fails. */
#ifndef HS_UPSTREAM_NAMES_H
#define HS_UPSTREAM_NAMES_H

#include <stdint.h>

struct addrinfo;
struct hs_lookup;
struct hs_names;
struct uv_loop_s;

/* As getaddrinfo, which it is but in tests. */
typedef int hs_names_find(const char *host, const char *port, const struct addrinfo *hints,
			  struct addrinfo **found);

struct hs_names *hs_names_create(hs_names_find *find);
void hs_names_release(struct hs_names **names); /* lookups may still be under way */

/* Called once, not from inside hs_lookup_start: addresses, valid during the call, or NULL and why not. */
typedef void hs_lookup_done(void *context, const struct addrinfo *found, const char *why);

struct hs_lookup *hs_lookup_start(struct hs_names *names, struct uv_loop_s *loop, const char *host,
				  uint16_t port, hs_lookup_done *done, void *context);
/* Not called any more. Before `done`. */
void hs_lookup_cancel(struct hs_lookup **lookup);

#endif
