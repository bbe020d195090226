/* The herald without a socket or a clock: what is to be subscribed where, what is confirmed, what
 * to send next, and what comes in.
 *
 *     LISTEN a ──► topic a ──► seat at a line ──► SUBSCRIBE a ──► confirmed ──► done
 *                                  │  ▲
 *                    lost, moved,  ▼  │  another line's, or the same again
 *                    refused     wanted
 *
 * A topic is a channel, pattern or shard channel that at least one worker wants. A line is a
 * connection to a node: one for topics, and one that tracks keys. Channels and patterns have their
 * seats at one node, home: that of partition 0, where PUBLISH goes to, or another while it is away.
 * Key events have a seat at every other master as well (herald_extras.c). Shard channels have theirs at
 * the owner of their slot. A topic that must move keeps the old seat until the new one is confirmed, and
 * is heard from one of them only.
 *
 * One request names one topic, so one reply answers it: confirmations are pushes, refusals are
 * errors, both in the order asked. Besides them pushes come unasked.
 *
 * One thread. Times are milliseconds of any clock that does not go back. */
#ifndef HS_ENGINE_REDIS_HERALD_BOOK_H
#define HS_ENGINE_REDIS_HERALD_BOOK_H

#include "base/buf.h"
#include "base/list.h"
#include "base/log.h"
#include "core/news.h"
#include "core/op.h"
#include "engine/redis/flow.h"
#include "wire/answer.h"

enum {
	HS_HERALD_WAIT_MS_MAX = 5000,	 /* a LISTEN or TRACK is confirmed within this, or fails */
	HS_HERALD_FOLLOW_MS_MAX = 30000, /* for so long a shard channel without a server is kept */
	HS_HERALD_RETRY_MS = 200,	 /* between two times of asking for what was refused */
	HS_HERALD_PING_MS = 1000,	 /* a line that is silent for so long is asked */
	HS_HERALD_SUSPECT_MS = 1000,	 /* and watches nothing when it does not answer in this */
	HS_HERALD_SILENT_MS_MAX = 15000, /* and is lost after this */
	HS_HERALD_TELL_MS = 1000,	 /* between two CHANGED_ALL while a master is not watched */
	HS_HERALD_OPEN_MS_MIN = 50,	 /* between two tries to connect */
	HS_HERALD_OPEN_MS_MAX = 2000,
	HS_HERALD_STEADY_MS = 2000, /* a line that is up for so long has no past */
	HS_HERALD_KEEP_MS = 10000,  /* a line that nobody needs is kept so long */
	HS_HERALD_TURNS_MAX = 4096, /* subscriptions under way on one line; more wait */
};

enum hs_herald_line_state { HS_LINE_DOWN, HS_LINE_OPENING, HS_LINE_UP };

enum hs_herald_seat_state {
	HS_SEAT_WANTED,	 /* to be asked for */
	HS_SEAT_ASKED,	 /* the server has not answered */
	HS_SEAT_REFUSED, /* not now: asked for again a little later */
	HS_SEAT_ON,
	HS_SEAT_STATES,
};

/* A request whose reply is still to come. */
struct hs_herald_turn {
	uint8_t what, kind;
	uint16_t slot;
	uint64_t hash;		     /* of the topic */
	struct hs_herald_seat *seat; /* of a subscription that is still wanted, or NULL */
	struct hs_op *op;	     /* done with the reply, or NULL */
};

struct hs_herald_line {
	/* For the driver. */
	struct hs_route_node at;
	struct hs_buf out; /* what it has not taken yet */
	uint64_t sent;
	void *driver, *io;

	/* The book's own. */
	struct hs_link link, dirty;
	char text[HS_HOST_BYTES_MAX + 16]; /* host:port */
	bool tracks;			   /* keys; else topics */
	bool listed;			   /* in the routes */
	bool master;			   /* has slots there */
	bool watching;			   /* tracks, and the server confirmed it */
	enum hs_herald_line_state state;
	struct hs_link seats[HS_SEAT_STATES];
	struct hs_herald_turn *turns; /* a ring */
	uint32_t turns_cap, turns_count;
	uint64_t turns_first; /* number of the oldest one under way */
	struct hs_buf partial;
	struct hs_answer_scan scan;
	uint32_t failures; /* in a row */
	bool returns;	   /* it was lost, and not everything is there again */
	uint64_t up_ms, open_at_ms, needed_ms, heard_ms, ping_ms;
	const char *doom; /* why it is to be closed */
	char why[160];	  /* it was lost or could not be opened, or refuses */
};

struct hs_herald_book_options {
	struct hs_log *log;
	bool cluster;
	uint64_t seed;
};

struct hs_herald_calls {
	/* Connect, in RESP3: hs_herald_book_up or _down follows, not from inside. */
	void (*open)(void *context, struct hs_herald_line *line);
	void (*close)(void *context, struct hs_herald_line *line); /* and no word more about it */
	void (*send)(void *context, struct hs_herald_line *line);  /* line->out has something */
	void (*news)(void *context, struct hs_news *news); /* the reference is handed over */
	void (*done)(void *context, struct hs_op *op);
	void (*surprise)(void *context);
};

struct hs_herald_book;

struct hs_herald_book *hs_herald_book_create(const struct hs_herald_book_options *options,
					     const struct hs_herald_calls *calls, void *context);
/* Every op is done first. */
void hs_herald_book_destroy(struct hs_herald_book **book);

void hs_herald_book_ask(struct hs_herald_book *book, uint64_t now_ms, struct hs_op *op);
void hs_herald_book_route(struct hs_herald_book *book, uint64_t now_ms,
			  const struct hs_routes *routes);
void hs_herald_book_tick(struct hs_herald_book *book, uint64_t now_ms); /* every 100 ms or so */

/* What happened to a line. */
void hs_herald_book_up(struct hs_herald_book *book, uint64_t now_ms, struct hs_herald_line *line);
void hs_herald_book_down(struct hs_herald_book *book, uint64_t now_ms, struct hs_herald_line *line,
			 const char *why);
void hs_herald_book_receive(struct hs_herald_book *book, uint64_t now_ms,
			    struct hs_herald_line *line, const char *data, size_t len);
/* Where the next bytes may be read to, so that a long message is copied once; NULL: anywhere. */
char *hs_herald_line_room(struct hs_herald_line *line, size_t *room);

#endif
