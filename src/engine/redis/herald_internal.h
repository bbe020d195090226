/* Private to the herald: its book's state, and what its files ask of each other.
 *
 *     herald.c        the libuv side
 *     herald_book.c   what comes from outside; which lines there are; home
 *     herald_topics.c who listens to what, and their seats
 *     herald_extras.c key events, which every master tells by itself
 *     herald_line.c   requests out, replies and pushes in
 *     herald_track.c  changed keys, and whether all masters are watched */
#ifndef HS_ENGINE_REDIS_HERALD_INTERNAL_H
#define HS_ENGINE_REDIS_HERALD_INTERNAL_H

#include "base/limits.h"
#include "engine/redis/herald_book.h"
#include "engine/redis/walk.h"

#define HS_HERALD_OUT_BYTES_MAX (4 * HS_MIB) /* composed and unsent on a line: more waits */

enum hs_herald_kind {
	HS_HERALD_CHANNEL,
	HS_HERALD_PATTERN,
	HS_HERALD_SHARD,
	HS_HERALD_KINDS,
};

enum hs_herald_what { HS_TURN_SUBSCRIBE, HS_TURN_UNSUBSCRIBE, HS_TURN_TRACK, HS_TURN_PING };

struct hs_herald_workers {
	uint64_t bits[HS_WORKERS_MAX / 64];
};

/* A topic's place at a line. */
struct hs_herald_seat {
	struct hs_link link; /* in line->seats[state] */
	struct hs_herald_topic *topic;
	struct hs_herald_line *line; /* NULL: it has none */
	enum hs_herald_seat_state state;
	uint64_t turn; /* ASKED: the number of the request */
	/* One of topic->extras, allocated: key events of a master that is not home. */
	bool extra;
	struct hs_link of_topic;
};

struct hs_herald_topic {
	struct hs_herald_topic *next; /* in its bucket */
	uint64_t hash;
	enum hs_herald_kind kind;
	uint16_t slot;
	struct hs_herald_workers workers; /* who was told that it is listened to */
	struct hs_link waits;		  /* LISTENs that are not confirmed yet */
	struct hs_herald_seat seats[2];
	uint8_t now;	 /* the seat it is heard from, or will be; the other is its next */
	bool everywhere; /* may be, or match, key events: each master of a cluster tells its own */
	struct hs_link extras; /* its seats at the masters where it has none of those two */
	bool is_missing;       /* in book->missing: told, and heard from nowhere */
	struct hs_link missing;
	uint64_t missing_ms;
	size_t len;
	char name[];
};

/* A LISTEN or TRACK under way. */
struct hs_herald_wait {
	struct hs_link of_topic;       /* or book->track_waits */
	struct hs_link of_book;	       /* in the order of deadlines */
	struct hs_herald_topic *topic; /* NULL: TRACK */
	struct hs_op *op;
	uint64_t until_ms;
};

struct hs_herald_book {
	struct hs_herald_book_options options;
	const struct hs_herald_calls *calls;
	void *context;
	uint64_t now_ms; /* of the event being handled */
	const struct hs_routes *routes;
	struct hs_herald_line **at_node; /* of the routes, for shard channels; NULL: look for it */
	struct hs_link lines, dirty;
	bool unsettled; /* lines may have to be opened or closed */

	struct hs_herald_topic **buckets;
	size_t buckets_count; /* a power of two */
	uint64_t topics_count, names_bytes;
	uint32_t kinds[HS_HERALD_KINDS];
	struct hs_herald_line *home; /* NULL: nobody needs it */
	struct hs_link waits;	     /* all, by deadline */
	struct hs_link missing;
	uint64_t retried_ms;

	struct hs_herald_workers trackers;
	struct hs_link track_waits;
	bool *masters; /* which nodes of the routes have slots */
	uint32_t masters_count;
	bool covered;  /* all masters are watched */
	bool tell_all; /* something may have been missed */
	uint64_t told_ms;
	struct hs_bytes *keys; /* that changed, of the bytes being read */
	uint32_t keys_count, keys_cap;
};

static inline bool hs_herald_any(const struct hs_herald_workers *workers)
{
	uint64_t all = 0;

	for (int i = 0; i < HS_WORKERS_MAX / 64; i++)
		all |= workers->bits[i];
	return all != 0;
}

static inline void hs_herald_set(struct hs_herald_workers *workers, uint32_t worker, bool in)
{
	uint64_t bit = 1ull << worker % 64;

	hs_check(worker < HS_WORKERS_MAX);
	if (in)
		workers->bits[worker / 64] |= bit;
	else
		workers->bits[worker / 64] &= ~bit;
}

/* Whether all of a kind have their seats at home. */
static inline bool hs_herald_at_home(const struct hs_herald_book *book, enum hs_herald_kind kind)
{
	return kind != HS_HERALD_SHARD || !book->options.cluster;
}

/* herald_book.c */
void hs_herald_finish(struct hs_herald_book *book, struct hs_op *op); /* with OK */
void hs_herald_fail(struct hs_herald_book *book, struct hs_op *op, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void hs_herald_wait_end(struct hs_herald_wait **wait);
struct hs_herald_wait *hs_herald_wait_begin(struct hs_herald_book *book, struct hs_op *op,
					    struct hs_herald_topic *topic, struct hs_link *list);
/* The line to a node; made when there is none yet. */
struct hs_herald_line *hs_herald_line_get(struct hs_herald_book *book, uint16_t node, bool tracks);
bool hs_herald_line_has_seats(const struct hs_herald_line *line);

/* herald_extras.c: key events (__keyspace@0__:…, __keyevent@0__:…) of all masters. */
/* Sees to it that a topic has a seat at every master. */
void hs_herald_settle_extras(struct hs_herald_book *book, struct hs_herald_topic *topic);
void hs_herald_drop_extra(
	struct hs_herald_book *book, const struct hs_herald_topic *topic,
	const struct hs_herald_line *line); /* that at this line, if there is one */
void hs_herald_drop_extras(struct hs_herald_book *book, struct hs_herald_topic *topic);
/* Whether key events of all masters that can be reached are heard. */
bool hs_herald_extras_on(const struct hs_herald_topic *topic);
/* Whether a message that came on `line` is heard from there, beside home. */
bool hs_herald_hears_extra(const struct hs_herald_topic *topic, const struct hs_herald_line *line,
			   struct hs_bytes channel);

/* herald_topics.c */
/* A seat's beginning and end; the second returns true if `op` will be done by the server's answer. */
void hs_herald_take_seat(struct hs_herald_book *book, struct hs_herald_seat *seat,
			 struct hs_herald_line *line);
bool hs_herald_leave_seat(struct hs_herald_book *book, struct hs_herald_seat *seat,
			  struct hs_op *op);
void hs_herald_listen(struct hs_herald_book *book, struct hs_op *op);
void hs_herald_unlisten(struct hs_herald_book *book, struct hs_op *op);
struct hs_herald_topic *hs_herald_topic_find(const struct hs_herald_book *book,
					     enum hs_herald_kind kind, struct hs_bytes name);
uint64_t hs_herald_topic_hash(const struct hs_herald_book *book, enum hs_herald_kind kind,
			      struct hs_bytes name);
static inline struct hs_bytes hs_herald_topic_name(const struct hs_herald_topic *topic)
{
	return (struct hs_bytes){topic->name, topic->len};
}
/* Sees to it that all topics (those at home alone) have the seats that the routes and home want. */
void hs_herald_settle_all(struct hs_herald_book *book, bool at_home_alone);
void hs_herald_confirmed(struct hs_herald_book *book, struct hs_herald_seat *seat);
void hs_herald_refused(struct hs_herald_book *book, struct hs_herald_seat *seat,
		       struct hs_bytes error);
/* The server unsubscribed it by itself. */
void hs_herald_dropped(struct hs_herald_book *book, struct hs_herald_line *line,
		       enum hs_herald_kind kind, struct hs_bytes name);
/* Everything on it must be asked for again. */
void hs_herald_unseat(struct hs_herald_book *book, struct hs_herald_line *line);
void hs_herald_late(struct hs_herald_book *book, struct hs_herald_wait *wait);
void hs_herald_topics_tick(struct hs_herald_book *book);
void hs_herald_topics_deinit(struct hs_herald_book *book); /* nobody waits any more */

/* herald_line.c */
void hs_herald_line_reset(struct hs_herald_book *book, struct hs_herald_line *line);
void hs_herald_line_pump(struct hs_herald_book *book, struct hs_herald_line *line);
void hs_herald_line_unsubscribe(struct hs_herald_book *book, struct hs_herald_line *line,
				const struct hs_herald_topic *topic, struct hs_op *op);
void hs_herald_line_track(struct hs_herald_book *book, struct hs_herald_line *line);
void hs_herald_line_ping(struct hs_herald_book *book, struct hs_herald_line *line);
void hs_herald_line_forget(struct hs_herald_line *line, uint64_t turn); /* its seat is gone */
void hs_herald_line_take(struct hs_herald_book *book, struct hs_herald_line *line, const char *data,
			 size_t len);

/* herald_track.c */
void hs_herald_track(struct hs_herald_book *book, struct hs_op *op);
void hs_herald_untrack(struct hs_herald_book *book, struct hs_op *op);
bool hs_herald_tracking(const struct hs_herald_book *book); /* lines are wanted for it */
void hs_herald_track_confirmed(struct hs_herald_book *book, struct hs_herald_line *line);
void hs_herald_track_refused(struct hs_herald_book *book, struct hs_herald_line *line,
			     struct hs_bytes error);
/* The rest of an `invalidate`; false: it makes no sense. */
bool hs_herald_track_hear(struct hs_herald_book *book, struct hs_walk *walk);
void hs_herald_track_flush(struct hs_herald_book *book); /* what was heard is told */
void hs_herald_track_check(struct hs_herald_book *book); /* whether all is watched */
void hs_herald_track_late(struct hs_herald_book *book, struct hs_herald_wait *wait);

#endif
