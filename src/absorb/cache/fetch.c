/* Fetches: one read of the engine for all requests that want the same value (single-flight), across all workers.
 *
 *     join ─┬─ a fetch is in flight that began after the last write: wait for it
 *           ├─ a fetch is in flight that began before the last write: wait for the next fetch, sent after it
 *           ├─ another worker has claimed the fetch: wait for that worker's message, then look in the shared cache
 *           └─ else: send a fetch on a tracking connection
 *
 * If the last reply to the same query was too large for the cache and the rule has replica-reads, a replica may
 * answer the fetch (replica.c). Such a fetch needs no tracking connection.
 *
 * When the fetch returns, all waiting requests get its reply, errors included. The reply is cached if no write of
 * the key began or ended during the fetch. If the server cannot track the read (an old server), or RESP2 cannot
 * express the reply, each waiting request is sent to the engine by itself.
 *
 * Bad days. If the server is down, waiting requests get a stale entry of this worker's cache if the rule's
 * stale-if-error allows it, else the error. A fetch that takes longer than SLOW_US counts as failed: the waiting
 * requests then get the stale entry, or, if stale-if-error does not allow it, wait until the engine answers. For
 * one second after a failure (FAILING_US in read.c) new readers get the stale entry at once if stale-if-error
 * allows it; other readers wait for the next fetch. A worker that waits for another worker's fetch sends its own
 * when the other fetch has ended without a fresh entry, or after CLAIMED_ELSEWHERE_US_MAX (the bad day in
 * stage.h). An error about the data (-ERR, -WRONGTYPE, -NOPERM, -NOAUTH) goes to the clients, drops the old
 * entry, and does not count as a failure. */
#include "absorb/cache/stage.h"

#include "base/mem.h"
#include "core/dispatch.h"
#include "core/internal.h"
#include "core/state.h"

enum {
	/* a worker waits at most this long for another worker's fetch */
	CLAIMED_ELSEWHERE_US_MAX = 100000,
	SLOW_US = 500000, /* a fetch that takes longer counts as failed */
};

/* --- waiting requests --- */

static struct hs_request *take_waiter(const struct hs_cache_stage *stage, struct hs_link *waiters)
{
	struct hs_cache_request *waiter =
		hs_list_entry(waiters->next, struct hs_cache_request, link);
	struct hs_request *request = waiter->request;

	hs_list_remove(&waiter->link);
	hs_versions_session(&stage->versions, request->session)->detached_reads--;
	return request;
}

/* Sends the request to the engine by itself. The stages between this one and the engine do not get it, because
 * they have not admitted its command. */
static void send_waiter(struct hs_cache_stage *stage, struct hs_request *request)
{
	hs_core_resume_later(stage->core, request->session);
	hs_dispatch_submit(stage->core, request, 0);
}

/* Answers all waiting requests with the entry's reply, or with `error` if `entry` is NULL. A request is sent to
 * the engine by itself if its session has a read-your-writes barrier and the entry (for an error: the fetch's
 * start) is not after the barrier. */
static void answer_all(struct hs_cache_stage *stage, const struct hs_cache_fetch *fetch,
		       struct hs_link *waiters, const struct hs_cache_entry *entry,
		       struct hs_bytes error)
{
	while (!hs_list_empty(waiters)) {
		struct hs_request *request = take_waiter(stage, waiters);
		uint64_t barrier_us =
			hs_versions_session(&stage->versions, request->session)->barrier_us;

		hs_core_resume_later(stage->core, request->session);
		if (entry ? !hs_versions_is_after_barrier(&stage->versions, request->session, entry)
			  : barrier_us > 0 && fetch->start_us <= barrier_us)
			send_waiter(stage, request);
		else
			hs_stage_share(stage->core, stage->index, request,
				       entry ? entry->reply[request->resp - 2] : error);
	}
}

/* Sends each waiting request to the engine by itself. */
static void send_all(struct hs_cache_stage *stage, struct hs_link *waiters)
{
	while (!hs_list_empty(waiters))
		send_waiter(stage, take_waiter(stage, waiters));
}

/* --- a fetch's life --- */

static struct hs_cache_fetch *find(const struct hs_cache_key *cached,
				   const struct hs_cache_query *query)
{
	hs_list_each(struct hs_cache_fetch, fetch, &cached->fetches, of_key) {
		if (fetch->query.signature == query->signature)
			return fetch;
	}
	return NULL;
}

static void fetch_done(struct hs_core *core, struct hs_request *internal_request);

static struct hs_cache_fetch *create(struct hs_cache_stage *stage, struct hs_cache_key *cached,
				     const struct hs_cache_query *query)
{
	struct hs_cache_fetch *fetch = hs_mem_zalloc(sizeof *fetch);
	struct hs_internal internal = {
		.call = hs_call_of(query->command, query->argc, query->argv),
		.on_done = fetch_done,
		.context = fetch,
		.stage = stage->index + 1,
		.slot = cached->slot,
	};
	struct hs_request *internal_request = hs_internal_prepare(stage->core, &internal);

	fetch->internal_request = internal_request;
	fetch->cached = cached;
	fetch->query = *query;
	fetch->query.argv = internal_request->call.argv;
	fetch->query.key = internal_request->call.argv[1];
	hs_list_init(&fetch->waiters);
	hs_list_init(&fetch->next_waiters);
	hs_list_init(&fetch->link);
	cached->pins++;
	hs_list_append(&cached->fetches, &fetch->of_key);
	return fetch;
}

static void destroy(struct hs_cache_stage *stage, struct hs_cache_fetch *fetch)
{
	struct hs_cache_key *cached = fetch->cached;

	hs_check(hs_list_empty(&fetch->waiters) && hs_list_empty(&fetch->next_waiters));
	hs_list_remove(&fetch->link);
	hs_list_remove(&fetch->of_key);
	hs_internal_end(stage->core, fetch->internal_request);
	if (--cached->pins == 0 && !cached->rule)
		hs_cache_remove(stage->cache, cached);
	hs_mem_free(&fetch);
}

static void send(struct hs_cache_stage *stage, struct hs_cache_fetch *fetch)
{
	struct hs_request *internal_request = fetch->internal_request;

	fetch->version = hs_shared_version(stage->shared, fetch->query.key_hash);
	if (fetch->version.done != fetch->cached->seen_done)
		/* the key was written after the bound for the replica was computed */
		fetch->replica_since_us = 0;
	fetch->start_us = stage->core->now.mono_us;
	fetch->claimed_elsewhere_us = 0;
	fetch->claimed_elsewhere = false;
	hs_list_remove(&fetch->link);
	hs_list_append(&stage->sent, &fetch->link);
	fetch->cached->read++;
	internal_request->start_us = stage->core->now.mono_us;
	internal_request->parts[0].op.track = fetch->replica_since_us == 0;
	internal_request->parts[0].op.replica_since_us = fetch->replica_since_us;
	if (fetch->cached->rule && fetch->replica_since_us == 0)
		hs_counter_add(&hs_cache_key_stats(stage, fetch->cached)->fetches, 1);
	hs_internal_send(stage->core, internal_request);
}

/* Sends the fetch, unless another worker has claimed it; then the fetch waits in `claimed_elsewhere`. The fetch
 * may be freed when this function returns. */
static void start(struct hs_cache_stage *stage, struct hs_cache_fetch *fetch)
{
	uint32_t worker = stage->core->world.worker, by = worker;

	/* Workers do not share the reply of a replica, so this fetch needs no claim. */
	if (fetch->replica_since_us > 0) {
		send(stage, fetch);
		return;
	}
	fetch->claimed = stage->core->world.calls->broadcast && !fetch->discard &&
			 hs_shared_claim(stage->shared, fetch->query.signature, worker, &by);
	if (fetch->claimed || by == worker) {
		send(stage, fetch);
		return;
	}
	/* The first attempt sets the time. Later attempts leave it, so that the wait for other workers is
	 * bounded. */
	if (fetch->claimed_elsewhere_us == 0)
		fetch->claimed_elsewhere_us = stage->core->now.mono_us;
	fetch->claimed_elsewhere = true;
	fetch->start_us = stage->core->now.mono_us;
	hs_list_remove(&fetch->link); /* the fetch may be in `sent` from an earlier attempt */
	hs_list_append(&stage->claimed_elsewhere, &fetch->link);
}

/* Whether the session may use the reply of this fetch. A fetch that is not sent yet may be used. A fetch in flight
 * must have begun after the key's last acknowledged write and after the session's read-your-writes barrier, and no
 * longer than `stale` ago. */
static bool serves(const struct hs_cache_stage *stage, const struct hs_cache_fetch *fetch,
		   const struct hs_session *session)
{
	uint64_t read_us = fetch->start_us;
	uint64_t barrier_us = hs_versions_session(&stage->versions, session)->barrier_us;

	if (fetch->claimed_elsewhere)
		return true;
	if (fetch->internal_request->parts[0].op.replica_caught_up_us > 0)
		read_us = fetch->internal_request->parts[0].op.replica_caught_up_us;
	return fetch->version.done ==
		       hs_shared_version(stage->shared, fetch->query.key_hash).done &&
	       stage->core->now.mono_us <= read_us + fetch->cached->rule->stale_us &&
	       (barrier_us == 0 || read_us > barrier_us);
}

void hs_cache_join(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		   const struct hs_cache_query *query, struct hs_request *request)
{
	struct hs_cache_request *waiter = hs_cache_request(stage, request);
	struct hs_cache_fetch *fetch = find(cached, query);
	bool begin = !fetch;

	if (begin) {
		fetch = create(stage, cached, query);
		fetch->replica_since_us =
			hs_cache_replica_since(stage, request->session, cached, query);
	}
	hs_versions_session(&stage->versions, request->session)->detached_reads++;
	if (begin || serves(stage, fetch, request->session))
		hs_list_append(&fetch->waiters, &waiter->link);
	else
		hs_list_append(&fetch->next_waiters, &waiter->link);
	if (begin)
		start(stage, fetch);
}

void hs_cache_refresh(struct hs_cache_stage *stage, struct hs_cache_key *cached,
		      const struct hs_cache_query *query)
{
	if (!cached->rule || find(cached, query))
		return;
	hs_counter_add(&hs_cache_key_stats(stage, cached)->refreshes, 1);
	start(stage, create(stage, cached, query));
}

/* --- the reply --- */

static bool is_equal(struct hs_version a, struct hs_version b)
{
	return a.begun == b.begun && a.done == b.done;
}

/* Returns when the key expires. The server read the TTL at some time between start_us and now_us. If the rule's
 * `stale` allows this uncertainty, the TTL counts from now_us, so that the entry never ends before the key
 * expires; otherwise it counts from start_us, so that the entry outlives the key by less than 1 ms. */
static uint64_t expires_at(const struct hs_cache_fetch *fetch, int64_t ttl_ms, uint64_t now_us)
{
	const struct hs_rule *rule = fetch->cached->rule;
	/* 1000 µs more, because the engine rounded the TTL up to ms. */
	bool late = rule && now_us - fetch->start_us + 1000 <= rule->stale_us;

	if (ttl_ms <= 0)
		return ttl_ms == 0 ? HS_CACHE_ENTRY_EXPIRY_UNKNOWN : UINT64_MAX;
	return (late ? now_us : fetch->start_us) + (uint64_t)ttl_ms * 1000;
}

/* Whether a missing key can be created without an invalidation. Usually the server reports the creation, so an
 * entry for a missing key needs no expiry. In a Cluster the report can be missing: while a slot moves, and until
 * heatsink knows that it has moved, a client may create the key on the new node, which never saw the read; and the
 * old node, which saw the read, has nothing to report. Then the entry's expiry is unknown, and its age counts from
 * the fetch. */
static bool may_appear_unseen(const struct hs_cache_stage *stage)
{
	return stage->core->world.op_scope == HS_OP_SCOPE_SLOT;
}

static struct hs_cache_entry *make_entry(struct hs_cache_stage *stage,
					 const struct hs_cache_fetch *fetch, struct hs_bytes reply)
{
	const struct hs_op *op = &fetch->internal_request->parts[0].op;
	struct hs_cache_entry *entry = hs_cache_entry_create(&fetch->query, reply);

	if (!entry)
		return NULL;
	entry->worker = stage->core->world.worker;
	entry->done = fetch->version.done;
	entry->tracking_session = op->tracking_session;
	entry->tracking_epoch = op->tracking_epoch;
	entry->read_us = op->replica_caught_up_us > 0 ? op->replica_caught_up_us : fetch->start_us;
	entry->cost_us = stage->core->now.mono_us - fetch->start_us;
	if (!entry->missing)
		atomic_init(&entry->expires_us,
			    expires_at(fetch, op->ttl_ms, stage->core->now.mono_us));
	else if (may_appear_unseen(stage))
		atomic_init(&entry->expires_us, HS_CACHE_ENTRY_EXPIRY_UNKNOWN);
	if (fetch->cached->rule)
		entry->until_us = hs_cache_entry_until(&stage->core->prng, fetch->cached->rule,
						       entry->missing, fetch->start_us);
	return entry;
}

/* Drops the query's old entry, because the fetch has shown that it is outdated. */
static void drop_old(struct hs_cache_stage *stage, const struct hs_cache_fetch *fetch)
{
	struct hs_cache_entry *old = hs_cache_get(fetch->cached, &fetch->query);

	if (old)
		hs_cache_drop(stage->cache, fetch->cached, old);
}

static void store_entry(struct hs_cache_stage *stage, const struct hs_cache_fetch *fetch,
			struct hs_cache_entry *entry)
{
	struct hs_shared *shared = stage->shared;
	struct hs_cache_key *cached = fetch->cached;
	struct hs_cache_rule_stats *stats;

	if (fetch->discard || !cached->rule)
		return;
	stats = hs_cache_key_stats(stage, cached);
	hs_cache_note_size(stage, cached, entry);
	if (!is_equal(fetch->version, hs_shared_version(shared, fetch->query.key_hash)))
		hs_counter_add(&stats->fetches_discarded, 1);
	else if (entry->missing && cached->rule->negative_ttl_us == 0)
		drop_old(stage, fetch);
	else if (hs_cache_put(stage->cache, cached, entry))
		hs_shared_put(shared, entry);
	cached->uncached = hs_cache_get(cached, &fetch->query) != entry;
}

/* Releases the claim and tells the other workers, which then look in the shared cache. Call this function after
 * hs_shared_put, so that they find the entry. */
static void release_claim(struct hs_cache_stage *stage, struct hs_cache_fetch *fetch)
{
	if (fetch->claimed &&
	    hs_shared_release(stage->shared, fetch->query.signature, stage->core->world.worker))
		hs_stage_tell(stage->core, stage->index);
	fetch->claimed = false;
}

/* Whether the reply is an error that says that the engine could not read the key, not an error about the data. */
static bool is_unavailable(struct hs_bytes reply)
{
	static const struct hs_bytes about_data[] = {HS_LIT("-WRONGTYPE"), HS_LIT("-ERR"),
						     HS_LIT("-NOPERM"), HS_LIT("-NOAUTH")};

	if (reply.len == 0 || reply.data[0] != '-')
		return false;
	for (size_t i = 0; i < sizeof about_data / sizeof *about_data; i++) {
		if (hs_bytes_begins(reply, about_data[i]))
			return false;
	}
	return true;
}

/* Returns the old entry if stale-if-error allows it to be served while the key cannot be read; else NULL. */
static struct hs_cache_entry *servable_old(const struct hs_cache_stage *stage,
					   const struct hs_cache_fetch *fetch)
{
	struct hs_cache_entry *entry;

	if (fetch->discard || !fetch->cached->rule || fetch->cached->rule->stale_if_error_us == 0)
		return NULL;
	entry = hs_cache_get(fetch->cached, &fetch->query);
	return entry && hs_cache_may_serve_on_error(stage, fetch->cached, entry) ? entry : NULL;
}

static void answer_old(struct hs_cache_stage *stage, struct hs_cache_fetch *fetch,
		       struct hs_link *waiters, const struct hs_cache_entry *old)
{
	struct hs_cache_rule_stats *stats = hs_cache_key_stats(stage, fetch->cached);

	for (struct hs_link *link = waiters->next; link != waiters; link = link->next)
		hs_counter_add(&stats->stale_served, 1);
	answer_all(stage, fetch, waiters, old, (struct hs_bytes){NULL, 0});
}

/* Whether the reply is the error that the engine cannot read the key on a tracking connection. */
static bool is_no_tracking(struct hs_bytes reply)
{
	return hs_bytes_begins(reply, HS_LIT("-NOTRACKING"));
}

/* For the reply to a fetch that a replica was allowed to answer. True: the reply must not be used, and the master
 * must be read on a tracking connection. Only a reply that is too large for the cache may be used. A missing key
 * or an error is not accepted: while a node hands over a slot, its replica shows moved keys as missing. */
static bool must_read_master(struct hs_cache_stage *stage, struct hs_cache_fetch *fetch,
			     const struct hs_cache_entry *entry)
{
	struct hs_cache_rule_stats *stats;

	if (fetch->replica_since_us == 0)
		return false;
	if (fetch->cached->rule) {
		stats = hs_cache_key_stats(stage, fetch->cached);
		hs_counter_add(fetch->internal_request->parts[0].op.replica_caught_up_us > 0
				       ? &stats->replica_reads
				       : &stats->fetches,
			       1);
	}
	if (entry && hs_cache_is_large(stage, entry))
		return false;
	fetch->cached->large_query = 0;
	fetch->replica_since_us = 0;
	return true;
}

static void restart(struct hs_cache_stage *stage, struct hs_cache_fetch *fetch)
{
	hs_internal_prepare_again(stage->core, fetch->internal_request);
	hs_list_remove(&fetch->link);
	start(stage, fetch);
}

static void fetch_done(struct hs_core *core, struct hs_request *internal_request)
{
	struct hs_cache_fetch *fetch = internal_request->context;
	struct hs_cache_stage *stage = hs_internal_stage(core, internal_request);
	struct hs_bytes reply = hs_buf_bytes(&internal_request->parts[0].out);
	bool failed = reply.len > 0 && reply.data[0] == '-';
	bool no_tracking_session = is_no_tracking(reply),
	     unavailable = is_unavailable(reply) && !no_tracking_session;
	struct hs_cache_entry *entry = failed ? NULL : make_entry(stage, fetch, reply);
	struct hs_cache_entry *old = unavailable ? servable_old(stage, fetch) : NULL;

	if (must_read_master(stage, fetch, entry)) {
		if (entry)
			hs_cache_entry_unref(&entry);
		restart(stage, fetch);
		return;
	}
	fetch->cached->failed_us = unavailable ? stage->core->now.mono_us : 0;
	if (entry && fetch->replica_since_us == 0)
		store_entry(stage, fetch, entry);
	else if (failed && !unavailable && !no_tracking_session)
		drop_old(stage, fetch);
	release_claim(stage, fetch);
	if (old)
		answer_old(stage, fetch, &fetch->waiters, old);
	else if (entry || (failed && !no_tracking_session))
		answer_all(stage, fetch, &fetch->waiters, entry, reply);
	else
		send_all(stage, &fetch->waiters);
	if (entry)
		hs_cache_entry_unref(&entry);
	if (!hs_list_empty(&fetch->next_waiters) && !fetch->discard) {
		struct hs_link waiters = fetch->next_waiters;

		/* The requests in next_waiters need a reply read after the last write: they wait for the next
		 * fetch. */
		fetch->next_waiters.next->prev = &fetch->waiters;
		fetch->next_waiters.prev->next = &fetch->waiters;
		fetch->waiters = waiters;
		hs_list_init(&fetch->next_waiters);
		fetch->replica_since_us = 0;
		restart(stage, fetch);
	} else {
		send_all(stage, &fetch->next_waiters);
		destroy(stage, fetch);
	}
}

/* --- another worker's fetch --- */

static void check_shared(struct hs_cache_stage *stage, struct hs_cache_fetch *fetch)
{
	struct hs_shared *shared = stage->shared;
	struct hs_cache_entry *entry = hs_shared_get(shared, &fetch->query);
	uint64_t age_us;

	hs_list_remove(&fetch->link);
	if (entry && fetch->cached->rule &&
	    hs_cache_entry_state(entry, fetch->cached->rule,
				 hs_shared_version(shared, fetch->query.key_hash),
				 stage->core->now.mono_us, &age_us) == HS_CACHE_ENTRY_FRESH) {
		hs_cache_put(stage->cache, fetch->cached, entry);
		answer_all(stage, fetch, &fetch->waiters, entry, (struct hs_bytes){NULL, 0});
		/* These requests came after a write, while this worker's earlier attempt was in flight. */
		answer_all(stage, fetch, &fetch->next_waiters, entry, (struct hs_bytes){NULL, 0});
		destroy(stage, fetch);
	} else {
		start(stage, fetch);
	}
	if (entry)
		hs_cache_entry_unref(&entry);
}

/* Another worker has released a claim. The message does not name the key, so every fetch that waits for another
 * worker is checked. */
void hs_cache_shared_fetch_done(void *self)
{
	struct hs_cache_stage *stage = self;
	struct hs_link claimed = stage->claimed_elsewhere;

	if (hs_list_empty(&stage->claimed_elsewhere))
		return;
	claimed.next->prev = &claimed;
	claimed.prev->next = &claimed;
	hs_list_init(&stage->claimed_elsewhere);
	while (!hs_list_empty(&claimed))
		check_shared(stage, hs_list_entry(claimed.next, struct hs_cache_fetch, link));
}

void hs_cache_tick(void *self)
{
	struct hs_cache_stage *stage = self;
	struct hs_cache_counts counts = hs_cache_counts(stage->cache);
	struct hs_link claimed;

	hs_counters_set(&hs_cache_counters, &stage->stats, &counts);
	hs_list_init(&claimed);
	hs_list_each_safe(struct hs_cache_fetch, fetch, &stage->claimed_elsewhere, link) {
		if (stage->core->now.mono_us - fetch->claimed_elsewhere_us <=
		    CLAIMED_ELSEWHERE_US_MAX)
			continue;
		hs_list_remove(&fetch->link);
		hs_list_append(&claimed, &fetch->link);
	}
	while (!hs_list_empty(&claimed))
		send(stage, hs_list_entry(claimed.next, struct hs_cache_fetch, link));
	hs_list_each(struct hs_cache_fetch, fetch, &stage->sent, link) {
		struct hs_cache_entry *old;

		if (stage->core->now.mono_us - fetch->start_us <= SLOW_US)
			continue;
		old = servable_old(stage, fetch);
		fetch->cached->failed_us = stage->core->now.mono_us;
		if (old)
			answer_old(stage, fetch, &fetch->waiters, old);
	}
}
