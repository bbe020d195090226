/* A read's path through the cache, for keys whose rule has the contract `cache`.
 *
 *     read ─┬─ cached and fresh: answered here
 *           ├─ in the shared cache and fresh: another worker has fetched it (absorb/shared.h); answered here
 *           ├─ cached and stale, the rule has stale-while-revalidate: answered here, and fetched again
 *           ├─ cached and stale, the rule has stale-if-error, a fetch failed within the last second:
 *           │  answered here, and fetched again
 *           └─ otherwise: waits for a fetch, one for all readers (fetch.c)
 *
 * Why an answer is correct, as law 3 (bounded staleness, read-your-writes) requires. An entry's age counts from
 * the last liveness check of its tracking session (base/tracking_session.h), so no answer is older than the rule's
 * `stale` (except by stale-while-revalidate and stale-if-error, if the rule has them). A write through any worker
 * of this process changes the key's version before the write's client gets the reply (absorb/versions.c), so every
 * later read sees the write. The versions do not yet count a write in flight as done. So a session with a write of
 * a key in flight reads this key from the engine, behind the write. A client that uses WATCH or CLIENT TRACKING
 * always reads from the engine, because such a client may use an old value for longer than any bound.
 *
 * Order. A read that waits for a fetch is detached from its session's other requests. The session's replies still
 * come in the order of its requests. The session's later writes wait until the read is answered
 * (hs_versions_holds), so that the read does not see a later write.
 *
 * A key is admitted to the cache when it becomes hot (turn_hot), or, if its rule has admit=all, at its first
 * read. */
#include "absorb/cache/stage.h"
#include "core/report.h"

#include "base/mem.h"
#include "core/dispatch.h"
#include "wire/reply.h"

#include <math.h>

enum {
	/* Refresh-ahead begins at most cost_us × the rule's refresh-ahead × this before the entry's end. */
	REFRESH_AHEAD_COSTS_MAX = 20,
	/* For this long after a failed fetch, readers get the stale entry at once. */
	FAILING_US = 1000000,
	/* pins of a key (mostly fetches) at which further reads go to the engine */
	FETCHES_MAX = 32,
	PLAN_KEYS_MAX = 256, /* rows of one worker in HEAT PLAN */
	PLAN_HITS_MIN = 8,   /* a key with fewer hits gets no row in HEAT PLAN */
	/* For refresh-ahead, cost_us counts as at most 1 / COST_SHARE of the entry's lifetime. */
	COST_SHARE = 20,
};

/* --- rules --- */

/* Call when the rules have changed: the replies of these fetches will not be cached. The keys of the fetches are
 * pinned, so hs_cache_clear does not remove them; each is removed when its last fetch ends. */
static void discard_fetches(struct hs_link *fetches)
{
	hs_list_each(struct hs_cache_fetch, fetch, fetches, link) {
		fetch->discard = true;
		fetch->cached->rule = NULL;
	}
}

/* `admit` stays on after the last rule is gone, because requests may still wait for fetches, and hs_versions_holds
 * must hold the later writes of their sessions. */
static void want(struct hs_cache_stage *stage)
{
	const struct hs_rules *rules = stage->core->options.rules;

	stage->had_rule = stage->had_rule || (rules && hs_rules_any(rules, HS_CONTRACT_CACHE));
	hs_stage_want(stage->core, stage->index, HS_POINT_ADMIT, stage->had_rule);
	hs_stage_want(stage->core, stage->index, HS_POINT_HOT_READS, stage->enabled);
}

static void configure(void *self)
{
	struct hs_cache_stage *stage = self;
	const struct hs_core_options *options = &stage->core->options;
	struct hs_cache_limits limits = {
		.bytes_max = (options->cache_bytes - options->cache_bytes / HS_SHARED_PART) /
			     stage->core->world.workers,
		.entry_bytes_max = options->cache_entry_bytes,
	};
	bool enabled = stage->shared && options->rules && options->mitigate != HS_MITIGATE_OFF &&
		       hs_rules_any(options->rules, HS_CONTRACT_CACHE) && limits.bytes_max > 0;

	hs_cache_limit(stage->cache, &limits);
	if (options->rules == stage->rules && options->mitigate == stage->mitigate &&
	    enabled == stage->enabled)
		return;
	discard_fetches(&stage->sent);
	discard_fetches(&stage->claimed_elsewhere);
	hs_cache_clear(stage->cache);
	hs_cache_count_rules(stage, options->rules);
	if (options->rules)
		hs_rules_ref(options->rules);
	hs_rules_unref(&stage->rules);
	stage->rules = options->rules;
	stage->mitigate = options->mitigate;
	stage->enabled = enabled;
	want(stage);
}

/* --- which keys --- */

static struct hs_cache_key *admit(struct hs_cache_stage *stage, const struct hs_rule *rule,
				  uint64_t key_hash, struct hs_bytes key)
{
	struct hs_cache_key *cached = hs_cache_admit(stage->cache, key_hash, key);

	if (!cached)
		return NULL;
	cached->rule = rule;
	cached->slot = hs_slot_of(key);
	hs_list_init(&cached->fetches);
	return cached;
}

/* Returns the query's key if it is admitted, or admits it if its rule has admit=all. NULL: the read goes to the
 * engine. */
static struct hs_cache_key *find_key(struct hs_cache_stage *stage,
				     const struct hs_cache_query *query)
{
	struct hs_cache_key *cached = hs_cache_find(stage->cache, query->key_hash, query->key);
	const struct hs_rule *rule;

	if (cached)
		return cached->rule ? cached : NULL;
	rule = hs_rules_match(stage->rules, query->key);
	if (!rule || rule->contract != HS_CONTRACT_CACHE || !rule->admit_all)
		return NULL;
	return admit(stage, rule, query->key_hash, query->key);
}

static void turn_hot(void *self, struct hs_hot *hot, bool waited)
{
	struct hs_cache_stage *stage = self;
	const struct hs_rule *rule = hot->rule;

	(void)waited;
	if (!stage->enabled || !rule || rule->contract != HS_CONTRACT_CACHE || rule->admit_all)
		return;
	if (!hs_cache_find(stage->cache, hot->hash, hs_hot_key(hot)))
		admit(stage, rule, hot->hash, hs_hot_key(hot));
}

/* --- may this session get this entry --- */

static bool may_serve(const struct hs_cache_stage *stage, const struct hs_session *session,
		      const struct hs_cache_entry *entry, struct hs_bytes key)
{
	return hs_versions_is_after_barrier(&stage->versions, session, entry) &&
	       !hs_versions_has_write(&stage->versions, session, key);
}

/* Whether the session must read from the engine: it uses WATCH or CLIENT TRACKING, or has delayed requests, which
 * may be writes. */
static bool reads_from_engine(const struct hs_session *session)
{
	return session->tracks || session->watches || session->delayed > 0;
}

/* --- a hit --- */

/* Probabilistic early refresh (XFetch): the nearer the entry's end, the more likely this returns true. So usually
 * one of many readers refreshes the entry before it ends. */
static bool should_refresh_ahead(struct hs_cache_stage *stage, const struct hs_rule *rule,
				 const struct hs_cache_entry *entry)
{
	uint64_t end_us = entry->until_us;
	uint64_t now_us = stage->core->now.mono_us, cost_us = entry->cost_us;
	double span_us;

	if (!entry->tracking_session && entry->read_us + rule->stale_us < end_us)
		end_us = entry->read_us + rule->stale_us;
	/* On a busy machine a fetch may seem to take half the entry's lifetime; without this bound every read
	 * would refresh the entry. */
	if (cost_us > (end_us - entry->read_us) / COST_SHARE)
		cost_us = (end_us - entry->read_us) / COST_SHARE;
	span_us = (double)cost_us * rule->refresh_ahead;
	if (rule->refresh_ahead <= 0 || end_us == UINT64_MAX ||
	    (double)now_us + span_us * REFRESH_AHEAD_COSTS_MAX < (double)end_us)
		return false;
	return (double)now_us - span_us * log(1 - hs_prng_unit(&stage->core->prng)) >=
	       (double)end_us;
}

/* Answers the read from the entry, then refreshes the entry if `refresh`. Pins the key meanwhile, because counting
 * the hit may admit another key and evict this one. */
static void serve(struct hs_cache_stage *stage, struct hs_session *session,
		  const struct hs_call *call, struct hs_cache_key *cached,
		  const struct hs_cache_query *query, const struct hs_cache_entry *entry,
		  bool refresh)
{
	cached->pins++;
	hs_dispatch_answer(stage->core, session, call, cached->slot,
			   entry->reply[session->resp - 2]);
	if (refresh)
		hs_cache_refresh(stage, cached, query);
	cached->pins--;
}

/* Counts a hit. Returns whether the caller should refresh the entry after the answer. */
static bool count_hit(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		      struct hs_cache_entry *entry, uint64_t age_us)
{
	struct hs_cache_rule_stats *stats = hs_cache_key_stats(stage, cached);

	hs_counter_add(&stats->hits, 1);
	hs_counter_add(&stats->age[hs_coarse_histogram_bucket(age_us)], 1);
	if (age_us > hs_counter_get(&stats->age_max_us))
		hs_counter_set(&stats->age_max_us, age_us);
	cached->hits++;
	cached->unused_writes = 0;
	hs_cache_use(cached);
	return should_refresh_ahead(stage, cached->rule, entry);
}

/* Counts the reason why the entry is not fresh. */
static void count_end(struct hs_cache_rule_stats *stats, const struct hs_cache_entry *entry,
		      uint32_t done)
{
	if (entry->done != done)
		hs_counter_add(&stats->invalidated_by_write, 1);
	else if (atomic_load_explicit(&entry->invalid, memory_order_relaxed))
		hs_counter_add(&stats->invalidated_by_server, 1);
	else if (entry->tracking_session &&
		 hs_tracking_session_epoch(entry->tracking_session) != entry->tracking_epoch)
		hs_counter_add(&stats->invalidated_by_disconnect, 1);
	else
		hs_counter_add(&stats->expired, 1);
}

static bool may_serve_stale(const struct hs_cache_stage *stage, const struct hs_rule *rule,
			    const struct hs_cache_entry *entry, uint64_t age_us, uint64_t more_us)
{
	return more_us > 0 && age_us <= rule->stale_us + more_us &&
	       (entry->until_us > stage->core->now.mono_us ||
		stage->core->now.mono_us - entry->until_us <= more_us);
}

bool hs_cache_may_serve_on_error(const struct hs_cache_stage *stage,
				 const struct hs_cache_key *cached, struct hs_cache_entry *entry)
{
	struct hs_version version = hs_shared_version(stage->shared, entry->key_hash);
	const struct hs_rule *rule = cached->rule;
	uint64_t age_us;

	switch (hs_cache_entry_state(entry, rule, version, stage->core->now.mono_us, &age_us)) {
	case HS_CACHE_ENTRY_FRESH:
		return true;
	case HS_CACHE_ENTRY_STALE:
		return may_serve_stale(stage, rule, entry, age_us,
				       rule->stale_while_revalidate_us + rule->stale_if_error_us);
	case HS_CACHE_ENTRY_INVALID:
		break;
	}
	return false;
}

/* Whether a fetch of the key failed less than FAILING_US ago. Then a reader gets the stale entry at once; later
 * readers first wait for a new fetch. */
static bool is_failing(const struct hs_cache_stage *stage, const struct hs_cache_key *cached)
{
	return cached->failed_us > 0 && stage->core->now.mono_us - cached->failed_us <= FAILING_US;
}

/* Takes the query's entry from the shared cache into this worker's cache, if the entry is fresh. NULL: no such
 * entry, or no room for it. */
static struct hs_cache_entry *take_from_shared(struct hs_cache_stage *stage,
					       struct hs_cache_key *cached,
					       const struct hs_cache_query *query,
					       struct hs_version version, uint64_t *age_us)
{
	struct hs_cache_entry *entry = hs_shared_get(stage->shared, query), *taken = NULL;

	if (!entry)
		return NULL;
	if (hs_cache_entry_state(entry, cached->rule, version, stage->core->now.mono_us, age_us) ==
		    HS_CACHE_ENTRY_FRESH &&
	    hs_cache_put(stage->cache, cached, entry))
		taken = entry;
	hs_cache_entry_unref(&entry);
	return taken;
}

/* Returns the entry to answer the read with, and sets its age and whether to refresh it after the answer. NULL:
 * the cache cannot answer the read. */
static struct hs_cache_entry *find_usable(struct hs_cache_stage *stage,
					  const struct hs_session *session,
					  struct hs_cache_key *cached,
					  const struct hs_cache_query *query, uint64_t *age,
					  bool *refresh)
{
	struct hs_cache_rule_stats *stats = hs_cache_key_stats(stage, cached);
	struct hs_version version = hs_shared_version(stage->shared, query->key_hash);
	struct hs_cache_entry *entry = hs_cache_get(cached, query), *other;
	enum hs_cache_entry_state state = HS_CACHE_ENTRY_INVALID;
	uint64_t age_us = 0, other_age_us;
	bool aged;

	if (entry)
		state = hs_cache_entry_state(entry, cached->rule, version, stage->core->now.mono_us,
					     &age_us);
	aged = state == HS_CACHE_ENTRY_STALE;
	if (state != HS_CACHE_ENTRY_FRESH) {
		if (entry)
			count_end(stats, entry, version.done);
		other = take_from_shared(stage, cached, query, version, &other_age_us);
		if (other) {
			entry = other;
			age_us = other_age_us;
			state = HS_CACHE_ENTRY_FRESH;
			aged = false;
		} else {
			/* take_from_shared may have dropped the stale entry */
			entry = hs_cache_get(cached, query);
		}
	}
	if (!entry || state == HS_CACHE_ENTRY_INVALID ||
	    !may_serve(stage, session, entry, query->key))
		return NULL;
	if (aged &&
	    !may_serve_stale(stage, cached->rule, entry, age_us,
			     cached->rule->stale_while_revalidate_us) &&
	    !(is_failing(stage, cached) && hs_cache_may_serve_on_error(stage, cached, entry)))
		return NULL;
	*refresh = count_hit(stage, cached, entry, age_us);
	*age = age_us;
	if (aged) {
		hs_counter_add(&stats->stale_served, 1);
		*refresh = true;
	}
	return entry;
}

/* For `mitigate observe`: counts whether the cache would have answered the read, as if the server reported every
 * change. Stores an entry with a dummy reply, which is never served. */
static void observe(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		    const struct hs_cache_query *query)
{
	struct hs_cache_rule_stats *stats = hs_cache_key_stats(stage, cached);
	struct hs_version version = hs_shared_version(stage->shared, query->key_hash);
	struct hs_cache_entry *entry = hs_cache_get(cached, query);
	uint64_t now_us = stage->core->now.mono_us, age_us;

	hs_cache_use(cached);
	if (entry && hs_cache_entry_state(entry, cached->rule, version, now_us, &age_us) ==
			     HS_CACHE_ENTRY_FRESH) {
		hs_counter_add(&stats->would_hit, 1);
		return;
	}
	hs_counter_add(&stats->would_miss, 1);
	entry = hs_cache_entry_create(query, HS_LIT("$0\r\n\r\n"));
	if (!entry)
		return;
	entry->worker = stage->core->world.worker;
	entry->done = version.done;
	entry->tracking_session = &stage->observe_session;
	entry->read_us = now_us;
	entry->until_us = hs_cache_entry_until(&stage->core->prng, cached->rule, false, now_us);
	atomic_init(&entry->expires_us, UINT64_MAX);
	hs_cache_put(stage->cache, cached, entry);
	hs_cache_entry_unref(&entry);
}

/* --- a read --- */

/* Answers the MGET if the cache can answer all its keys. False: the whole command goes to the engine; the values
 * that the cache lacks are fetched as well, for later readers. */
static bool read_mget(struct hs_cache_stage *stage, struct hs_session *session,
		      struct hs_call *call)
{
	struct hs_reply reply = {.out = &stage->mget_reply, .resp = session->resp};
	bool all = true;

	hs_buf_clear(&stage->mget_reply, HS_IDLE_BUFFER_BYTES);
	hs_reply_array(&reply, call->argc - 1);
	for (size_t i = 1; i < call->argc; i++) {
		struct hs_bytes words[2];
		struct hs_cache_key *cached;
		struct hs_cache_entry *entry = NULL;
		struct hs_cache_query query;
		uint64_t age_us;
		bool refresh = false;

		hs_cache_query_get(&query, hs_shared_hash(stage->shared, call->argv[i]),
				   call->argv[i], words);
		cached = find_key(stage, &query);
		if (!cached) {
			all = false;
			continue;
		}
		if (stage->mitigate == HS_MITIGATE_OBSERVE)
			observe(stage, cached, &query);
		else
			entry = find_usable(stage, session, cached, &query, &age_us, &refresh);
		if (entry && all)
			hs_buf_append_bytes(&stage->mget_reply, entry->reply[session->resp - 2]);
		all = all && entry;
		if (refresh || (!entry && stage->mitigate == HS_MITIGATE_ON))
			hs_cache_refresh(stage, cached, &query);
	}
	if (all) {
		hs_call_slots(call);
		hs_dispatch_answer(stage->core, session, call, call->slot,
				   hs_buf_bytes(&stage->mget_reply));
	}
	return all;
}

static void wait_for_fetch(struct hs_cache_stage *stage, struct hs_session *session,
			   const struct hs_call *call, struct hs_cache_key *cached,
			   const struct hs_cache_query *query)
{
	struct hs_request *request = hs_request_single(stage->core, session, call, cached->slot);

	/* if the request is sent to the engine after all, it passes no stage */
	request->parts[0].stage = HS_STAGE_NONE;
	request->resp = session->resp;
	hs_cache_join(stage, cached, query, request);
}

static void count_miss(struct hs_cache_stage *stage, struct hs_cache_key *cached)
{
	cached->misses++;
	hs_counter_add(&hs_cache_key_stats(stage, cached)->misses, 1);
}

/* Whether the call is an equal read directly after a hit of the same session, in the same event. Then the same
 * entry answers it without another lookup: the client sent both reads before the entry was checked, and the core
 * has handled no other event since. Clients that multiplex one connection read a hot key like this. */
static bool is_repeated(const struct hs_cache_stage *stage, const struct hs_session *session,
			const struct hs_call *call)
{
	const struct hs_cache_last_hit *last_hit = &stage->last_hit;
	const struct hs_cache_entry *entry = last_hit->entry;

	if (call->number != last_hit->number + 1 || session != last_hit->session ||
	    stage->core->event != last_hit->event ||
	    hs_cache_removals(stage->cache) != last_hit->removals ||
	    call->command != entry->command || call->argc != entry->argc)
		return false;
	for (size_t i = 1; i < call->argc; i++) {
		if (!hs_bytes_equal(call->argv[i], entry->argv[i]))
			return false;
	}
	return true;
}

static void serve_repeated(struct hs_cache_stage *stage, struct hs_session *session,
			   struct hs_call *call)
{
	struct hs_cache_last_hit last_hit = stage->last_hit;
	bool refresh = count_hit(stage, last_hit.cached, last_hit.entry, last_hit.age_us);
	struct hs_cache_query query = {0};

	if (refresh)
		hs_check(hs_cache_query_of_call(&query, hs_shared_seed(stage->shared), call));
	stage->last_hit.number = call->number;
	serve(stage, session, call, last_hit.cached, &query, last_hit.entry, refresh);
}

/* Answers a read from the cache, or makes it wait for a fetch. HS_PASS: the read goes to the engine. */
static enum hs_stage_result read_one(struct hs_cache_stage *stage, struct hs_session *session,
				     struct hs_call *call)
{
	struct hs_cache_key *cached;
	struct hs_cache_entry *entry;
	struct hs_cache_query query;
	uint64_t age_us;
	bool refresh = false;

	if (reads_from_engine(session))
		return HS_PASS;
	if (call->command->id == HS_CMD_ID_MGET)
		return read_mget(stage, session, call) ? HS_ANSWERED : HS_PASS;
	if (!hs_cache_query_of_call(&query, hs_shared_seed(stage->shared), call))
		return HS_PASS;
	cached = find_key(stage, &query);
	if (!cached)
		return HS_PASS;
	if (stage->mitigate == HS_MITIGATE_OBSERVE) {
		observe(stage, cached, &query);
		return HS_PASS;
	}
	entry = find_usable(stage, session, cached, &query, &age_us, &refresh);
	if (entry) {
		if (!refresh)
			stage->last_hit = (struct hs_cache_last_hit){
				.session = session,
				.event = stage->core->event,
				.number = call->number,
				.removals = hs_cache_removals(stage->cache),
				.cached = cached,
				.entry = entry,
				.age_us = age_us,
			};
		serve(stage, session, call, cached, &query, entry, refresh);
		return HS_ANSWERED;
	}
	/* If the last reply was not cached and a later stage (copies) can answer the read, do not fetch again. */
	if (cached->uncached &&
	    hs_stage_served_behind(stage->core, stage->index, cached->slot, query.key))
		return HS_PASS;
	/* Three kinds of reads go to the engine: a read of a key that the session is writing; a read after a
	 * detached write of the session, because the engine answers it after the write; and a read of a key with
	 * FETCHES_MAX pins. */
	if (hs_versions_session(&stage->versions, session)->detached_writes > 0 ||
	    cached->pins >= FETCHES_MAX ||
	    hs_versions_has_write(&stage->versions, session, query.key)) {
		count_miss(stage, cached);
		return HS_PASS;
	}
	if (hs_reply_budget_holds(stage->core, session, call))
		return HS_ALREADY_HELD;
	count_miss(stage, cached);
	wait_for_fetch(stage, session, call, cached, &query);
	return HS_TAKEN;
}

static enum hs_stage_result admit_call(void *self, struct hs_session *session, struct hs_call *call)
{
	struct hs_cache_stage *stage = self;
	const struct hs_command *command = call->command;
	bool enabled = stage->enabled && !session->multi;
	enum hs_stage_result verdict = HS_PASS;

	if (is_repeated(stage, session, call)) {
		serve_repeated(stage, session, call);
		return HS_ANSWERED;
	}
	if (enabled && (command->cacheable || command->id == HS_CMD_ID_MGET))
		verdict = read_one(stage, session, call);
	if (verdict != HS_PASS)
		return verdict;
	if (hs_versions_holds(&stage->versions, session, command))
		return HS_HOLD;
	if (!enabled || command->id != HS_CMD_ID_SET)
		return HS_PASS;
	hs_call_slots(call);
	return hs_cache_write_through(stage, session, call) ? HS_TAKEN : HS_PASS;
}

/* --- invalidations --- */

/* The server reported a change of the key: drops the key's entries. The server also reports the writes of this
 * heatsink; entries dropped for such a write count as invalidated_by_write. */
static void drop_changed(struct hs_cache_stage *stage,
			 const struct hs_tracking_session *tracking_session, struct hs_bytes key)
{
	struct hs_cache *cache = stage->cache;
	uint64_t hash = hs_shared_hash(stage->shared, key);
	struct hs_cache_key *cached = hs_cache_find(cache, hash, key);
	uint32_t done = hs_shared_version(stage->shared, hash).done, dropped;
	struct hs_cache_rule_stats *stats;
	bool written;

	if (!cached || cached->entries_count == 0)
		return;
	written = cached->entries[0]->done != done;
	dropped = hs_cache_invalidate(cache, cached, tracking_session);
	if (!cached->rule)
		return;
	stats = hs_cache_key_stats(stage, cached);
	hs_counter_add(written ? &stats->invalidated_by_write : &stats->invalidated_by_server,
		       dropped);
}

static void changed(void *self, const struct hs_tracking_session *tracking_session,
		    const struct hs_bytes *key)
{
	struct hs_cache_stage *stage = self;

	if (!stage->shared)
		return;
	if (key)
		drop_changed(stage, tracking_session, *key);
	else
		hs_cache_invalidate_all(stage->cache, tracking_session);
}

/* --- HEAT PLAN --- */

static void plan_key(const struct hs_cache_stage *stage, const struct hs_cache_key *cached,
		     struct hs_reply *reply)
{
	uint16_t place = hs_core_partition(stage->core, cached->slot);
	struct hs_plan_number numbers[] = {
		{"hits", cached->hits},
		{"misses", cached->misses},
		{"fetches", cached->read},
		{"entries", cached->entries_count},
	};
	struct hs_plan_row row = {
		.mitigation = "cache",
		.state = cached->entries_count > 0 ? "cached" : "watched",
		.key = cached->key,
		.contract = "cache",
		.places = &place,
		.places_count = 1,
		.numbers = numbers,
		.numbers_count = sizeof numbers / sizeof *numbers,
	};

	hs_plan_row(stage->core, reply, &row);
}

/* Shows the keys with at least PLAN_HITS_MIN hits, at most PLAN_KEYS_MAX of them, because there may be very many
 * keys. */
static void report(void *self, struct hs_reply *reply)
{
	const struct hs_cache_stage *stage = self;
	const struct hs_cache_key *cached;
	size_t at = 0, shown = 0;

	while (shown < PLAN_KEYS_MAX && (cached = hs_cache_each(stage->cache, &at))) {
		if (!cached->rule || cached->hits < PLAN_HITS_MIN)
			continue;
		plan_key(stage, cached, reply);
		shown++;
	}
}

/* --- the stage --- */

static void *create(struct hs_core *core, uint32_t index)
{
	struct hs_cache_stage *stage = hs_mem_zalloc(sizeof *stage);
	struct hs_cache_limits limits = {0};

	stage->core = core;
	stage->shared = core->world.shared;
	stage->index = index;
	stage->request_at = core->stages.request_at[index];
	stage->versions = hs_versions_of(core);
	stage->rule_stats = hs_mem_zalloc(HS_RULES_MAX * sizeof *stage->rule_stats);
	stage->cache = hs_cache_create(core->world.worker, &limits);
	atomic_init(&stage->observe_session.caught_up_us, UINT64_MAX);
	hs_list_init(&stage->claimed_elsewhere);
	hs_list_init(&stage->sent);
	configure(stage);
	want(stage);
	return stage;
}

static void destroy(void *self)
{
	struct hs_cache_stage *stage = self;

	hs_check(hs_list_empty(&stage->sent) && hs_list_empty(&stage->claimed_elsewhere));
	hs_cache_destroy(&stage->cache);
	hs_mem_free(&stage->rule_stats);
	hs_rules_unref(&stage->rules);
	hs_buf_deinit(&stage->scratch);
	hs_buf_deinit(&stage->mget_reply);
	hs_mem_free(&stage);
}

const struct hs_stage hs_stage_cache = {
	.name = "cache",
	.request_bytes = sizeof(struct hs_cache_request),
	.counters = &hs_cache_counters,
	.counters_at = offsetof(struct hs_cache_stage, stats),
	.create = create,
	.destroy = destroy,
	.configure = configure,
	.admit = admit_call,
	.arrive = hs_cache_arrive,
	.hot = turn_hot,
	.changed = changed,
	.told = hs_cache_shared_fetch_done,
	.tick = hs_cache_tick,
	.report = report,
};
