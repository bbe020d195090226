/* A cache entry: a reply, and whether it may still be served. The workers of a process share it; it is
 * reference counted and immutable except for its atomic fields.
 *
 * Three events can end an entry. Each is checked when the entry is used, so no one has to be notified:
 *
 *     a write through this process     the version of its key has changed (absorb/shared.h)
 *     a write by another client of     `invalid`, set by the worker that fetched it and gets the server's
 *     the server                       invalidations; or the tracking session has ended (then the entry is
 *                                      only STALE)
 *     time                             the last liveness check is older than `stale`, its TTL is over, or the
 *                                      key itself has expired
 *
 * Any thread may read an entry that it holds a reference to. */
#ifndef HS_ABSORB_ENTRY_H
#define HS_ABSORB_ENTRY_H

#include "base/bytes.h"
#include "base/prng.h"
#include "base/tracking_session.h"
#include "command/command.h"
#include "contract/contract.h"

#include <stdatomic.h>

struct hs_call;

/* A read of one key as the cache sees it: the command and its arguments, without the client or its RESP
 * version. The pointers are the caller's. */
struct hs_cache_query {
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	struct hs_bytes key;
	uint64_t key_hash;  /* hs_shared_hash of `key` */
	uint64_t signature; /* hash of the command and all arguments, lengths included */
};

/* Whether replies to the command can be cached: it reads one key, its reply depends on the value of that key
 * alone, and the reply can be written in both RESP versions (enum hs_command_cacheable). MGET counts as one GET
 * per key: see hs_cache_query_get. */
bool hs_cache_query_fits(const struct hs_command *command, size_t argc);
/* Fills in the query, which points into the call. False: not cacheable. `seed` is the shared cache's
 * (hs_shared_seed). */
bool hs_cache_query_of_call(struct hs_cache_query *query, uint64_t seed, struct hs_call *call);
/* Makes the query "GET key". `argv` has room for two and must outlive the query; `hash` is the key's
 * hs_shared_hash. */
void hs_cache_query_get(struct hs_cache_query *query, uint64_t hash, struct hs_bytes key,
			struct hs_bytes argv[2]);

/* Writes of a key through this process (absorb/shared.h): handed to an engine, and answered. */
struct hs_version {
	uint32_t begun, done;
};

enum { HS_CACHE_ENTRY_EXPIRY_UNKNOWN = 0 };

struct hs_cache_entry {
	_Atomic uint32_t refs;
	/* set when a write by another client was reported, or when the worker that gets the reports evicted the
	 * key */
	_Atomic bool invalid;
	uint32_t worker; /* the worker that fetched it and gets the invalidations */
	uint32_t done;	 /* `done` of its key's version when it was fetched */
	uint64_t signature, key_hash;
	/* NULL: no connection reports changes of the key; age counts from read_us */
	struct hs_tracking_session *tracking_session;
	uint64_t tracking_epoch;
	uint64_t read_us;  /* monotonic: when the fetch began; the value is not older */
	uint64_t cost_us;  /* how long the fetch took */
	uint64_t until_us; /* end of its TTL by the rule, jitter included; UINT64_MAX: none */
	/* When the key itself expires; UINT64_MAX: never; HS_CACHE_ENTRY_EXPIRY_UNKNOWN: not known. */
	_Atomic uint64_t expires_us;
	/* time of the latest liveness check that it was used under */
	_Atomic uint64_t confirmed_us;
	/* fields of the value may expire without an invalidation: age counts from read_us */
	bool has_expiring_fields;
	/* The reply says that the key does not exist. Then expires_us is UINT64_MAX, or, in front of a Cluster,
	 * unknown (may_appear_unseen in cache/fetch.c). */
	bool missing;
	/* The bytes of all that follows lie behind the struct. */
	struct hs_bytes key;
	const struct hs_command *command;
	const struct hs_bytes *argv; /* compared on lookup, because signatures may collide */
	size_t argc;
	struct hs_bytes reply[2]; /* in RESP2 and RESP3; often the same bytes */
	size_t bytes;		  /* memory that it takes */
};

/* End of the TTL, by the rule, of a reply fetched at `read_us`. `missing`: the key did not exist. */
uint64_t hs_cache_entry_until(struct hs_prng *prng, const struct hs_rule *rule, bool missing,
			      uint64_t read_us);

/* Makes an entry from a reply in RESP3, with one reference. NULL: the reply is an error, or RESP2 cannot
 * express it. The caller fills in times, tracking session and version. */
struct hs_cache_entry *hs_cache_entry_create(const struct hs_cache_query *query,
					     struct hs_bytes resp3);
void hs_cache_entry_ref(struct hs_cache_entry *entry);
void hs_cache_entry_unref(struct hs_cache_entry **entry);
bool hs_cache_entry_matches(const struct hs_cache_entry *entry, const struct hs_cache_query *query);

enum hs_cache_entry_state {
	HS_CACHE_ENTRY_FRESH,
	HS_CACHE_ENTRY_STALE, /* not known to have changed, but older than the rule allows */
	/* the key was written or reported as changed, its worker evicted it, or the key has expired */
	HS_CACHE_ENTRY_INVALID,
};

/* `version`: the key's current version. `age_us`: upper bound of the entry's age, set for FRESH and STALE.
 *
 * An entry is also STALE when its tracking session has a new epoch, and when its expiry is unknown and it was
 * fetched longer than `stale` ago, because the key may have expired without a report.
 *
 * A tracking session that cannot miss changes (embedded engine) proves nothing while a write of the key is in
 * flight: other clients may have seen the new value in the engine before the write's reply is here. Then the
 * age counts from the last use of the entry with no write in flight. */
enum hs_cache_entry_state hs_cache_entry_state(struct hs_cache_entry *entry,
					       const struct hs_rule *rule,
					       struct hs_version version, uint64_t now_us,
					       uint64_t *age_us);

#endif
