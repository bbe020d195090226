/* Cache entries. An entry is one allocation:
 *
 *     struct hs_cache_entry │ argv[] │ bytes of the arguments │ reply in RESP3 │ reply in RESP2, if it differs */
#include "absorb/entry.h"

#include "base/mem.h"
#include "wire/parse_reply.h"
#include "wire/resp3_to_resp2.h"

enum {
	MALLOC_BYTES = 16, /* approximate overhead of the heap per allocation */
	WANT_PART = 4,	   /* of `stale`: ask for a liveness check when the last one is older */
	SEEN_PART = 8,	   /* of `stale`: how much newer a liveness check must be to be recorded */
};

static bool is_same_command(const struct hs_command *a, const struct hs_command *b)
{
	/* A command learned again from a server has another row with the same name; the id may be shared. */
	return a == b || (a->id == b->id && strcmp(a->name, b->name) == 0);
}

bool hs_cache_entry_matches(const struct hs_cache_entry *entry, const struct hs_cache_query *query)
{
	if (entry->signature != query->signature || entry->argc != query->argc ||
	    !is_same_command(entry->command, query->command))
		return false;
	for (size_t i = 1; i < query->argc; i++)
		if (!hs_bytes_equal(entry->argv[i], query->argv[i]))
			return false;
	return true;
}

/* Whether the outermost element is null, 0, empty or "none". For commands about a whole key that means that the
 * key does not exist. */
static bool is_nothing(const struct hs_parsed_reply *answer)
{
	switch (answer->type) {
	case HS_PARSED_NULL:
		return true;
	case HS_PARSED_INT:
		return answer->integer == 0;
	case HS_PARSED_ARRAY:
	case HS_PARSED_MAP:
		return answer->count == 0;
	case HS_PARSED_STATUS: /* of TYPE */
		return hs_bytes_equal(answer->text, HS_LIT("none"));
	default:
		return false;
	}
}

static unsigned dialect_of(const struct hs_command *command)
{
	return (command->cacheable & HS_CACHEABLE_PAIRS ? HS_RESP2_FLAT_PAIRS : 0u) |
	       (command->cacheable & HS_CACHEABLE_NULL_ARRAYS ? HS_RESP2_NULL_ARRAYS : 0u);
}

static struct hs_cache_entry *create(const struct hs_cache_query *query, struct hs_bytes resp3,
				     struct hs_bytes resp2, bool differ)
{
	size_t bytes = sizeof(struct hs_cache_entry) + query->argc * sizeof(struct hs_bytes) +
		       resp3.len + (differ ? resp2.len : 0);
	struct hs_cache_entry *entry;
	struct hs_bytes *argv;
	char *room;

	for (size_t i = 0; i < query->argc; i++)
		bytes += query->argv[i].len;
	entry = hs_mem_alloc(bytes);
	argv = (struct hs_bytes *)(entry + 1);
	room = (char *)(argv + query->argc);
	*entry = (struct hs_cache_entry){
		.refs = 1,
		.signature = query->signature,
		.key_hash = query->key_hash,
		.until_us = UINT64_MAX,
		.expires_us = HS_CACHE_ENTRY_EXPIRY_UNKNOWN,
		.command = query->command,
		.argv = argv,
		.argc = query->argc,
		.bytes = bytes + MALLOC_BYTES,
	};
	for (size_t i = 0; i < query->argc; i++)
		argv[i] = hs_bytes_place(&room, query->argv[i]);
	entry->key = argv[1];
	entry->reply[1] = hs_bytes_place(&room, resp3);
	entry->reply[0] = differ ? hs_bytes_place(&room, resp2) : entry->reply[1];
	return entry;
}

struct hs_cache_entry *hs_cache_entry_create(const struct hs_cache_query *query,
					     struct hs_bytes resp3)
{
	struct hs_buf resp2 = {0};
	struct hs_parsed_reply answer;
	struct hs_cache_entry *entry;
	int64_t used = hs_parse_reply_head(&answer, resp3.data, resp3.len);
	int differ;

	/* Errors and replies with RESP3 attributes are not cached. */
	if (used <= 0 || answer.type == HS_PARSED_ERROR || answer.type == HS_PARSED_ATTRIBUTE)
		return NULL;
	differ = hs_resp3_to_resp2(resp3, dialect_of(query->command), &resp2);
	entry = differ < 0 ? NULL : create(query, resp3, hs_buf_bytes(&resp2), differ > 0);
	hs_buf_deinit(&resp2);
	if (!entry)
		return NULL;
	entry->has_expiring_fields = query->command->cacheable & HS_CACHEABLE_PARTS_EXPIRE;
	entry->missing =
		query->command->cacheable & HS_CACHEABLE_EMPTY_IS_MISSING && is_nothing(&answer);
	if (entry->missing) /* a missing key does not expire */
		entry->expires_us = UINT64_MAX;
	return entry;
}

void hs_cache_entry_ref(struct hs_cache_entry *entry)
{
	atomic_fetch_add_explicit(&entry->refs, 1, memory_order_relaxed);
}

void hs_cache_entry_unref(struct hs_cache_entry **entry)
{
	/* Acquire: other threads' accesses happen before the memory is freed. */
	if (*entry && atomic_fetch_sub_explicit(&(*entry)->refs, 1, memory_order_acq_rel) == 1)
		hs_mem_free(entry);
	*entry = NULL;
}

/* Sets `until_us` to the latest time at which the entry is known to equal the key: when it was fetched, or the
 * last time at which its tracking session had received all changes. False: the tracking session has ended.
 *
 * The order of the loads matters: first the session's caught-up time, then its epoch and `invalid`. The
 * reporting thread sets those two before it publishes a new caught-up time. */
static bool confirmed_until(struct hs_cache_entry *entry, bool writing, uint64_t now_us,
			    uint64_t *until_us)
{
	uint64_t caught_up_us;
	bool is_tracked;

	*until_us = entry->read_us;
	if (!entry->tracking_session)
		return true;
	caught_up_us = hs_tracking_session_caught_up_us(entry->tracking_session);
	is_tracked = hs_tracking_session_epoch(entry->tracking_session) == entry->tracking_epoch;
	if (!is_tracked || (caught_up_us == UINT64_MAX && writing)) {
		uint64_t confirmed_us =
			atomic_load_explicit(&entry->confirmed_us, memory_order_relaxed);

		if (confirmed_us > *until_us)
			*until_us = confirmed_us;
		return is_tracked;
	}
	if (caught_up_us == UINT64_MAX)
		caught_up_us = now_us;
	if (caught_up_us > *until_us)
		*until_us = caught_up_us;
	return true;
}

/* Records the liveness check under which the entry was used, for when the tracking session has ended or a write
 * is in flight. Not at every hit, because all workers read this cache line. If an older time overwrites a newer
 * one, the entry only seems older. */
static void note_confirmed(struct hs_cache_entry *entry, const struct hs_rule *rule,
			   uint64_t until_us)
{
	uint64_t confirmed_us = atomic_load_explicit(&entry->confirmed_us, memory_order_relaxed);

	if (until_us > entry->read_us && until_us > confirmed_us &&
	    until_us - confirmed_us > rule->stale_us / SEEN_PART)
		atomic_store_explicit(&entry->confirmed_us, until_us, memory_order_relaxed);
}

static uint64_t elapsed_us(uint64_t then_us, uint64_t now_us)
{
	return now_us > then_us ? now_us - then_us : 0; /* another worker's clock may be ahead */
}

enum hs_cache_entry_state hs_cache_entry_state(struct hs_cache_entry *entry,
					       const struct hs_rule *rule,
					       struct hs_version version, uint64_t now_us,
					       uint64_t *age_us)
{
	uint64_t until_us, expires_us;
	bool writing = version.begun != version.done, unknown;
	bool is_tracked = confirmed_until(entry, writing, now_us, &until_us);

	if (entry->done != version.done ||
	    atomic_load_explicit(&entry->invalid, memory_order_acquire))
		return HS_CACHE_ENTRY_INVALID;
	expires_us = atomic_load_explicit(&entry->expires_us, memory_order_relaxed);
	unknown = expires_us == HS_CACHE_ENTRY_EXPIRY_UNKNOWN;
	if (!unknown && now_us >= expires_us)
		return HS_CACHE_ENTRY_INVALID; /* the key has expired */
	*age_us = elapsed_us(until_us, now_us);
	if (entry->tracking_session && is_tracked) {
		note_confirmed(entry, rule, until_us);
		if (*age_us > rule->stale_us / WANT_PART)
			hs_tracking_session_want_check(entry->tracking_session);
	}
	/* The key, or a field of it, may have expired without a report. */
	if (unknown || entry->has_expiring_fields)
		*age_us = elapsed_us(entry->read_us, now_us);
	if (!is_tracked || *age_us > rule->stale_us || now_us >= entry->until_us)
		return HS_CACHE_ENTRY_STALE;
	return HS_CACHE_ENTRY_FRESH;
}

uint64_t hs_cache_entry_until(struct hs_prng *prng, const struct hs_rule *rule, bool missing,
			      uint64_t read_us)
{
	uint64_t ttl_us = missing ? rule->negative_ttl_us : rule->ttl_us;
	uint64_t most = (uint64_t)((double)ttl_us * rule->jitter);

	return read_us + ttl_us - (most > 0 ? hs_prng_below(prng, most + 1) : 0);
}
