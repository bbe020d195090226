/* A cache entry: a reply, and whether it may still be served. It does not change but for two marks, is
 * shared by the workers of a process, and is freed by the last to let go.
 *
 * Three things can end it, and all are looked at when it is used, so that nobody has to be told:
 *
 *     a write through this process     its key's version is another (absorb/shared.h)
 *     a write behind it                `dead`, set by the worker that read it, who hears of changes;
 *                                      or the one who vouched is gone
 *     time                             its proof is older than `stale`, its time to live is over, or
 *                                      the key's own */
#ifndef HS_ABSORB_ENTRY_H
#define HS_ABSORB_ENTRY_H

#include "base/bytes.h"
#include "base/prng.h"
#include "base/tracking_session.h"
#include "command/command.h"
#include "contract/contract.h"

#include <stdatomic.h>

/* A read of one key, as the cache sees it: what is asked, not by whom or in which dialect. */
struct hs_call;

struct hs_cache_query {
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	struct hs_bytes key;
	uint64_t key_hash;  /* hs_shared_hash */
	uint64_t signature; /* of the command and all arguments, their lengths included */
};

/* Whether replies of a command can be cached: a read of one key whose answer follows from the value of
 * that key alone, and which can be written in both dialects (enum hs_command_cacheable). Of MGET each key is
 * a GET of its own: see hs_cache_query_get. */
bool hs_cache_query_fits(const struct hs_command *command, size_t argc);
/* False: it does not fit. Else everything is filled in; `seed` is the shared cache's (hs_shared_seed). What it points to
 * is the call's. */
bool hs_cache_query_of_call(struct hs_cache_query *query, uint64_t seed, struct hs_call *call);
/* "GET key" in `argv`, which has room for two and outlives the ask; `hash` is the key's (hs_shared_hash). */
void hs_cache_query_get(struct hs_cache_query *query, uint64_t hash, struct hs_bytes key,
			struct hs_bytes argv[2]);

/* The writes of a key through this process (absorb/shared.h): handed to an engine, and answered. */
struct hs_version {
	uint32_t begun, done;
};

enum { HS_CACHE_ENTRY_EXPIRY_UNKNOWN = 0 };

struct hs_cache_entry {
	_Atomic uint32_t refs;
	_Atomic bool invalid; /* it changed behind us, or who would hear of that has forgotten it */
	uint32_t worker;      /* who read it, and hears of changes */
	uint32_t done;	      /* of its key's version, when it was read */
	uint64_t signature, key_hash;
	struct hs_tracking_session
		*tracking_session; /* NULL: nobody would say; it is as old as its reading */
	uint64_t tracking_epoch;
	uint64_t read_us;  /* mono: no older than that when it was read */
	uint64_t cost_us;  /* what reading it took */
	uint64_t until_us; /* its time to live ends, jitter included; UINT64_MAX: never */
	/* The key's own end; UINT64_MAX: it has none; HS_CACHE_ENTRY_EXPIRY_UNKNOWN: nobody knows. */
	_Atomic uint64_t expires_us;
	_Atomic uint64_t confirmed_us; /* the latest proof it was used under */
	bool has_expiring_fields; /* parts of the value may expire unseen: it is as old as its reading */
	bool missing; /* there is no such key, as far as the reply tells; it has no expiry then */
	/* Everything below lies behind the struct. */
	struct hs_bytes key;
	const struct hs_command *command;
	const struct hs_bytes *argv; /* as asked: signatures may collide */
	size_t argc;
	struct hs_bytes reply[2]; /* in RESP2 and RESP3; often the same bytes */
	size_t bytes;		  /* of memory */
};

/* When a reply that is read at `read_us` has to go, by its rule; `missing`: there was no such key. */
uint64_t hs_cache_entry_until(struct hs_prng *prng, const struct hs_rule *rule, bool missing,
			      uint64_t read_us);

/* Of a reply in RESP3; NULL when it cannot be written in RESP2, or is an error. The times, vouch and
 * version are the caller's to fill in. One reference. */
struct hs_cache_entry *hs_cache_entry_create(const struct hs_cache_query *query,
					     struct hs_bytes resp3);
void hs_cache_entry_ref(struct hs_cache_entry *entry);
void hs_cache_entry_unref(struct hs_cache_entry **entry);
bool hs_cache_entry_matches(const struct hs_cache_entry *entry, const struct hs_cache_query *query);

enum hs_cache_entry_state {
	HS_CACHE_ENTRY_FRESH,
	HS_CACHE_ENTRY_STALE,	/* not known to have changed, but its time is over */
	HS_CACHE_ENTRY_INVALID, /* written since, or what vouched for it forgot it */
};

/* `version`: its key's now. `age_us`: how old it may be, known for FRESH and AGED. What was kept
 * under another epoch of its vouch is AGED, and so is, `stale` after it was read, what may have expired
 * because nobody asked when it does.
 *
 * A vouch that can miss nothing proves nothing while a write is in flight: others may have seen it in the engine before
 * its answer is here. So from then on an entry is as old as the last time it was used without one. */
enum hs_cache_entry_state hs_cache_entry_state(struct hs_cache_entry *entry,
					       const struct hs_rule *rule,
					       struct hs_version version, uint64_t now_us,
					       uint64_t *age_us);

#endif
