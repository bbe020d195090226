/* News from Redis servers: pub/sub messages and changed keys, subscribed once for all clients of all
 * workers. It runs on the scout's thread and loop; every call here is that thread's, and so are the
 * calls it makes. What is decided is in herald_book.h; here are the connections and the clock.
 *
 * What it promises, and what it does not:
 *
 *   - A LISTEN that is done hears what is published from then on, until its UNLISTEN or until
 *     HS_NEWS_UNLISTENED says otherwise. Messages published while a connection is lost are lost, as
 *     they are to any client of Redis: a server that finds us too slow (client-output-buffer-limit
 *     pubsub) ends the connection and has the same effect. It is logged once for each such time.
 *   - A shard channel is followed when its slot moves; what is published between the two owners may
 *     be missed. HS_NEWS_UNLISTENED is told only when nobody could be found for half a minute.
 *   - While somebody tracks, every change of a key is told as HS_NEWS_CHANGED as soon as the server
 *     says so. When a master is not watched, because its connection is lost, silent or new, or
 *     because a slot has another owner, HS_NEWS_CHANGED_ALL is told at once, then EVERY SECOND until
 *     all masters are watched, and once more then: nobody may keep for long what nobody watches.
 *     A master that has no slots yet is not among the routes and is not watched: what is written to
 *     it while its first slot is on the way there is told when that slot has arrived.
 *
 * Limits: HS_CHANNELS_MAX, HS_CHANNEL_NAMES_BYTES_MAX and HS_NEWS_BYTES_MAX (base/limits.h). */
#ifndef HS_ENGINE_REDIS_HERALD_H
#define HS_ENGINE_REDIS_HERALD_H

#include "base/log.h"
#include "core/news.h"
#include "engine/redis/conn.h"
#include "engine/redis/flow.h"

struct hs_herald;

struct hs_herald_options {
	const struct hs_conn_identity *identity; /* outlives the herald */
	struct hs_log *log;
	bool cluster; /* false: one server, which has everything */
};

struct hs_herald_host {
	void *context;
	void (*news)(void *context, struct hs_news *news); /* the reference is handed over */
	void (*done)(void *context, struct hs_op *op);	   /* of hs_herald_ask; reply in op->out */
	void (*surprise)(void *context); /* slots are not where the routes say; may be NULL */
};

struct hs_herald *hs_herald_create(struct uv_loop_s *loop, const struct hs_herald_options *options,
				   const struct hs_herald_host *host);
/* Every op asked before is done first, with an error if need be. The memory is freed by the loop, which
 * must run once more. */
void hs_herald_destroy(struct hs_herald **herald);

/* HS_OP_LISTEN, UNLISTEN, TRACK, UNTRACK, of any worker. Done, from inside or later, when the server
 * (or all masters) confirmed; with an error when it refuses or cannot be asked in time. */
void hs_herald_ask(struct hs_herald *herald, struct hs_op *op);

/* Where everything is from now on; the caller keeps its own reference. */
void hs_herald_route(struct hs_herald *herald, const struct hs_routes *routes);

#endif
