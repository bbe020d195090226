/* Private to core/cached*.c: what a core keeps of replies, and what is being read to be kept. cached.c
 * tells the whole story. */
#ifndef HS_CORE_CACHED_H
#define HS_CORE_CACHED_H

#include "absorb/cache.h"
#include "absorb/shelf.h"
#include "core/session.h"

struct hs_caching {
	struct hs_cache *cache;
	const struct hs_rules *rules; /* held: keys in the cache point to them; NULL: none */
	enum hs_mitigate mitigate;
	bool any;		/* a rule allows to keep something, and that is wanted */
	struct hs_link foreign; /* fills that another worker is at */
	struct hs_link sent;	/* fills under way */
	struct hs_buf scratch;
	struct hs_vouch believed;	  /* observing: as if all changes were told */
	struct hs_core_rule_stats *stats; /* by the rule's number */
	uint32_t stage;			  /* in the array */
	bool used;			  /* a rule was there, now or before */
};

/* A reply being read, for those who wait and to be kept. */
struct hs_fill {
	struct hs_link of_key;	  /* in cached->fills */
	struct hs_link link;	  /* in caching->sent or ->foreign */
	struct hs_cached *cached; /* pinned */
	struct hs_link waiters;	  /* requests that get what it brings */
	struct hs_link late;	/* those that must not: it began before a write they have to see */
	struct hs_request *own; /* what is sent, and whose arguments these are */
	struct hs_ask ask;
	struct hs_stamp stamp; /* before it was sent */
	uint64_t start_us;
	uint64_t foreign_us; /* since when another worker is waited for; 0: it is not */
	uint64_t
		replica_since_us; /* is not kept, so a replica that had all at that time may answer; or 0 */
	bool claimed;		  /* for all workers */
	bool foreign;		  /* another has claimed it: nothing is sent */
	bool is_void;		  /* what it brings is not kept: the rules have changed */
};

/* Writes have to be stamped. */
static inline bool hs_core_keeps(const struct hs_core *core)
{
	return core->world.shelf && hs_shelf_in_use(core->world.shelf);
}

/* cached_fill.c */

/* The request waits for a read of this ask: one under way, or a new one. It may be answered, and gone,
 * when this returns. */
void hs_cached_join(struct hs_core *core, struct hs_cached *cached, const struct hs_ask *ask,
		    struct hs_request *request);
/* Reads it again for nobody in particular, unless somebody is at it. */
void hs_cached_refresh(struct hs_core *core, struct hs_cached *cached, const struct hs_ask *ask);
/* cached_replica.c */

/* Of a read that is not answered with what is kept: what a replica must have had at least, to answer it
 * instead of the key's master. 0: it is the master's. */
uint64_t hs_cached_replica_since(struct hs_core *core, const struct hs_session *session,
				 struct hs_cached *cached, const struct hs_ask *ask);
/* Remembers whether what was read is too large to be kept. */
void hs_cached_note_size(const struct hs_core *core, struct hs_cached *cached,
			 const struct hs_kept *kept);

/* cached.c */
bool hs_cached_is_since(const struct hs_kept *kept, const struct hs_session *session);
/* Whether the session has something under way that may write the key. */
bool hs_cached_has_write(const struct hs_session *session, struct hs_bytes key);
struct hs_core_rule_stats *hs_cached_stats(const struct hs_core *core,
					   const struct hs_cached *cached);
/* When a reply that is read now has to go. */
uint64_t hs_cached_until(struct hs_core *core, const struct hs_rule *rule, bool missing,
			 uint64_t read_us);
/* Whether it is from behind that time, for who has written something without naming its keys. */
/* Whether an old reply may be given because it cannot be read again. */
bool hs_cached_outlives_error(const struct hs_core *core, const struct hs_cached *cached,
			      struct hs_kept *kept);

#endif
