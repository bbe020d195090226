/* Reading what is to be kept: one read at a time for all who ask for the same thing, of this worker and
 * of the others.
 *
 *     join ─┬─ one is under way that began since the last write: wait for it
 *           ├─ one is under way from before: wait for the next, which is sent when it is back
 *           ├─ another worker is at it: wait until it says so, then look on the shelf
 *           └─ none: it is sent, tracked
 *
 * A reply that is too large to be kept need not be tracked: where the rule allows it a replica is asked
 * (cached_replica.c).
 *
 * When it is back, everybody is answered with it, an error included; it is kept if no write of the key
 * began or ended meanwhile. A read that cannot be tracked (an old server) is not tried that way again by
 * those who wait: each goes by itself. */
#include "absorb/cache/stage.h"

#include "base/mem.h"
#include "core/internal.h"
#include "core/state.h"
#include "core/step.h"

enum {
	FOREIGN_US_MAX = 100000, /* another worker that takes longer is not waited for */
	SLOW_US = 500000,	 /* a read that takes longer counts as failing */
};

/* --- those who wait --- */

static struct hs_request *take_waiter(const struct hs_cache_stage *stage, struct hs_link *waiters)
{
	struct hs_cache_request *waiter =
		hs_list_entry(waiters->next, struct hs_cache_request, link);
	struct hs_request *request = waiter->request;

	hs_list_remove(&waiter->link);
	hs_versions_session(&stage->versions, request->session)->reads_apart--;
	return request;
}

/* To the engine, as it came: not through the stages between, which it has not been admitted to. */
static void send_waiter(struct hs_cache_stage *stage, struct hs_request *request)
{
	hs_core_resume_later(stage->core, request->session);
	hs_step_submit(stage->core, request, 0);
}

/* An error is of when it was asked for. Who has to see more than that goes to the engine itself. */
static void answer_all(struct hs_cache_stage *stage, const struct hs_fill *fill,
		       struct hs_link *waiters, const struct hs_kept *kept, struct hs_bytes error)
{
	while (!hs_list_empty(waiters)) {
		struct hs_request *request = take_waiter(stage, waiters);
		uint64_t barrier_us =
			hs_versions_session(&stage->versions, request->session)->barrier_us;

		hs_core_resume_later(stage->core, request->session);
		if (kept ? !hs_versions_is_since(&stage->versions, request->session, kept)
			 : barrier_us > 0 && fill->start_us <= barrier_us)
			send_waiter(stage, request);
		else
			hs_request_share(stage->core, request,
					 kept ? kept->reply[request->resp - 2] : error);
	}
}

/* Each to the engine, as it came. */
static void send_all(struct hs_cache_stage *stage, struct hs_link *waiters)
{
	while (!hs_list_empty(waiters))
		send_waiter(stage, take_waiter(stage, waiters));
}

/* --- a fill's life --- */

static struct hs_fill *find(const struct hs_cached *cached, const struct hs_ask *ask)
{
	for (struct hs_link *link = cached->fills.next; link != &cached->fills; link = link->next) {
		struct hs_fill *fill = hs_list_entry(link, struct hs_fill, of_key);

		if (fill->ask.signature == ask->signature)
			return fill;
	}
	return NULL;
}

static void land(struct hs_core *core, struct hs_request *own);

static struct hs_fill *create(struct hs_cache_stage *stage, struct hs_cached *cached,
			      const struct hs_ask *ask)
{
	struct hs_fill *fill = hs_mem_zalloc(sizeof *fill);
	struct hs_internal internal = {
		.call = hs_call_of(ask->command, ask->argc, ask->argv),
		.then = land,
		.context = fill,
		.stage = stage->index + 1,
		.slot = cached->slot,
	};
	struct hs_request *own = hs_internal_prepare(stage->core, &internal);

	fill->own = own;
	fill->cached = cached;
	fill->ask = *ask;
	fill->ask.argv = own->call.argv;
	fill->ask.key = own->call.argv[1];
	hs_list_init(&fill->waiters);
	hs_list_init(&fill->late);
	hs_list_init(&fill->link);
	cached->pins++;
	hs_list_append(&cached->fills, &fill->of_key);
	return fill;
}

static void destroy(struct hs_cache_stage *stage, struct hs_fill *fill)
{
	struct hs_cached *cached = fill->cached;

	hs_list_remove(&fill->link);
	hs_list_remove(&fill->of_key);
	hs_internal_end(stage->core, fill->own);
	if (--cached->pins == 0 && !cached->rule)
		hs_cache_remove(stage->cache, cached);
	hs_mem_free(&fill);
}

static void send(struct hs_cache_stage *stage, struct hs_fill *fill)
{
	struct hs_request *own = fill->own;

	fill->stamp = hs_shelf_stamp(stage->shelf, fill->ask.key_hash);
	if (fill->stamp.done != fill->cached->seen_done)
		fill->replica_since_us = 0; /* written by another worker in this very moment */
	fill->start_us = stage->core->now.mono_us;
	fill->foreign_us = 0;
	fill->foreign = false;
	hs_list_remove(&fill->link);
	hs_list_append(&stage->sent, &fill->link);
	fill->cached->read++;
	own->start_us = stage->core->now.mono_us;
	own->parts[0].op.track = fill->replica_since_us == 0;
	own->parts[0].op.replica_since_us = fill->replica_since_us;
	if (fill->cached->rule && fill->replica_since_us == 0)
		hs_counter_add(&hs_cached_stats(stage, fill->cached)->fills, 1);
	hs_internal_send(stage->core, own);
}

/* Sends it, unless another worker is reading the same just now. It may be gone when this returns. */
static void start(struct hs_cache_stage *stage, struct hs_fill *fill)
{
	uint32_t worker = stage->core->world.worker, by = worker;

	if (fill->replica_since_us > 0) { /* nothing that others could use */
		send(stage, fill);
		return;
	}
	fill->claimed = stage->core->world.calls->tell && !fill->is_void &&
			hs_shelf_claim(stage->shelf, fill->ask.signature, worker, &by);
	if (fill->claimed || by == worker) {
		send(stage, fill);
		return;
	}
	if (fill->foreign_us == 0) /* however often it is looked for */
		fill->foreign_us = stage->core->now.mono_us;
	fill->foreign = true;
	fill->start_us = stage->core->now.mono_us;
	hs_list_remove(&fill->link); /* it may have been sent before */
	hs_list_append(&stage->foreign, &fill->link);
}

/* Whether one that is under way brings what this one may get: it must have begun since the last write, and
 * not too long ago. */
static bool serves(const struct hs_cache_stage *stage, const struct hs_fill *fill,
		   const struct hs_session *session)
{
	uint64_t read_us = fill->start_us;
	uint64_t barrier_us = hs_versions_session(&stage->versions, session)->barrier_us;

	if (fill->foreign)
		return true;
	if (fill->own->parts[0].op.replica_proved_us > 0)
		read_us = fill->own->parts[0].op.replica_proved_us;
	return fill->stamp.done == hs_shelf_stamp(stage->shelf, fill->ask.key_hash).done &&
	       stage->core->now.mono_us <= read_us + fill->cached->rule->stale_us &&
	       (barrier_us == 0 || read_us > barrier_us);
}

void hs_cached_join(struct hs_cache_stage *stage, struct hs_cached *cached,
		    const struct hs_ask *ask, struct hs_request *request)
{
	struct hs_cache_request *waiter = hs_cache_request(stage, request);
	struct hs_fill *fill = find(cached, ask);
	bool begin = !fill;

	if (begin) {
		fill = create(stage, cached, ask);
		fill->replica_since_us =
			hs_cached_replica_since(stage, request->session, cached, ask);
	}
	hs_versions_session(&stage->versions, request->session)->reads_apart++;
	if (begin || serves(stage, fill, request->session))
		hs_list_append(&fill->waiters, &waiter->link);
	else
		hs_list_append(&fill->late, &waiter->link);
	if (begin)
		start(stage, fill);
}

void hs_cached_refresh(struct hs_cache_stage *stage, struct hs_cached *cached,
		       const struct hs_ask *ask)
{
	if (!cached->rule || find(cached, ask))
		return;
	hs_counter_add(&hs_cached_stats(stage, cached)->refreshes, 1);
	start(stage, create(stage, cached, ask));
}

/* --- what it brought --- */

static bool is_equal(struct hs_stamp a, struct hs_stamp b)
{
	return a.begun == b.begun && a.done == b.done;
}

/* When the key ends by itself. It was asked about at some time since the fill began: where the rule lets
 * it be that old, it is taken for there until it is certain to be gone, so that who asks then finds that. */
static uint64_t expires_at(const struct hs_fill *fill, int64_t left_ms, uint64_t now_us)
{
	const struct hs_rule *rule = fill->cached->rule;
	/* And it was rounded up. */
	bool late = rule && now_us - fill->start_us + 1000 <= rule->stale_us;

	if (left_ms <= 0)
		return left_ms == 0 ? HS_KEPT_EXPIRY_UNKNOWN : UINT64_MAX;
	return (late ? now_us : fill->start_us) + (uint64_t)left_ms * 1000;
}

static struct hs_kept *make_kept(struct hs_cache_stage *stage, const struct hs_fill *fill,
				 struct hs_bytes reply)
{
	const struct hs_op *op = &fill->own->parts[0].op;
	struct hs_kept *kept = hs_kept_create(&fill->ask, reply);

	if (!kept)
		return NULL;
	kept->worker = stage->core->world.worker;
	kept->done = fill->stamp.done;
	kept->vouch = op->vouch;
	kept->vouch_epoch = op->vouch_epoch;
	kept->read_us = op->replica_proved_us > 0 ? op->replica_proved_us : fill->start_us;
	kept->cost_us = stage->core->now.mono_us - fill->start_us;
	if (!kept->missing)
		atomic_init(&kept->expires_us,
			    expires_at(fill, op->left_ms, stage->core->now.mono_us));
	if (fill->cached->rule)
		kept->until_us = hs_entry_until(&stage->core->prng, fill->cached->rule,
						kept->missing, fill->start_us);
	return kept;
}

/* It has been read, and is not what was kept: that is known to have changed. */
static void forget_old(struct hs_cache_stage *stage, const struct hs_fill *fill)
{
	struct hs_kept *old = hs_cached_reply(fill->cached, &fill->ask);

	if (old)
		hs_cache_forget(stage->cache, fill->cached, old);
}

static void keep(struct hs_cache_stage *stage, const struct hs_fill *fill, struct hs_kept *kept)
{
	struct hs_shelf *shelf = stage->shelf;
	struct hs_cached *cached = fill->cached;
	struct hs_core_rule_stats *stats;

	if (fill->is_void || !cached->rule)
		return;
	stats = hs_cached_stats(stage, cached);
	hs_cached_note_size(stage, cached, kept);
	if (!is_equal(fill->stamp, hs_shelf_stamp(shelf, fill->ask.key_hash)))
		hs_counter_add(&stats->raced, 1);
	else if (kept->missing && cached->rule->negative_us == 0)
		forget_old(stage, fill);
	else if (hs_cache_keep(stage->cache, cached, kept))
		hs_shelf_put(shelf, kept);
	cached->unkept = hs_cached_reply(cached, &fill->ask) != kept;
}

/* After the shelf has it: others may look there. */
static void tell_others(struct hs_cache_stage *stage, struct hs_fill *fill)
{
	if (fill->claimed &&
	    hs_shelf_release(stage->shelf, fill->ask.signature, stage->core->world.worker))
		hs_stage_tell(stage->core, stage->index);
	fill->claimed = false;
}

/* Not the data's fault: it could not be read. */
static bool is_trouble(struct hs_bytes reply)
{
	static const char *const about_data[] = {"-WRONGTYPE", "-ERR", "-NOPERM", "-NOAUTH"};

	if (reply.len == 0 || reply.data[0] != '-')
		return false;
	for (size_t i = 0; i < sizeof about_data / sizeof *about_data; i++) {
		if (reply.len > strlen(about_data[i]) &&
		    memcmp(reply.data, about_data[i], strlen(about_data[i])) == 0)
			return false;
	}
	return true;
}

/* What was kept before, if the rule lets it be given now that it cannot be read. */
static struct hs_kept *old_one(const struct hs_cache_stage *stage, const struct hs_fill *fill)
{
	struct hs_kept *kept;

	if (fill->is_void || !fill->cached->rule || fill->cached->rule->stale_if_error_us == 0)
		return NULL;
	kept = hs_cached_reply(fill->cached, &fill->ask);
	return kept && hs_cached_outlives_error(stage, fill->cached, kept) ? kept : NULL;
}

static void answer_old(struct hs_cache_stage *stage, struct hs_fill *fill, struct hs_link *waiters,
		       const struct hs_kept *old)
{
	struct hs_core_rule_stats *stats = hs_cached_stats(stage, fill->cached);

	for (struct hs_link *link = waiters->next; link != waiters; link = link->next)
		hs_counter_add(&stats->stale, 1);
	answer_all(stage, fill, waiters, old, (struct hs_bytes){NULL, 0});
}

/* The engine cannot read it so that it may be kept. */
static bool is_no_vouch(struct hs_bytes reply)
{
	struct hs_bytes word = HS_LIT("-NOVOUCH");

	return reply.len > word.len && memcmp(reply.data, word.data, word.len) == 0;
}

/* What a replica, or the master in its stead, was asked for. True: it is to be read once more, to be kept. A
 * replica of a node that hands its slot to another shows keys as missing that have moved already, so what
 * is not there, or is an error, is never its word. */
static bool asks_again(struct hs_cache_stage *stage, struct hs_fill *fill,
		       const struct hs_kept *kept)
{
	struct hs_core_rule_stats *stats;

	if (fill->replica_since_us == 0)
		return false;
	if (fill->cached->rule) {
		stats = hs_cached_stats(stage, fill->cached);
		hs_counter_add(fill->own->parts[0].op.replica_proved_us > 0 ? &stats->replica_reads
									    : &stats->fills,
			       1);
	}
	if (kept && kept->bytes > stage->core->options.cache_entry_bytes)
		return false;
	fill->cached->large_ask = 0;
	fill->replica_since_us = 0;
	return true;
}

static void start_again(struct hs_cache_stage *stage, struct hs_fill *fill)
{
	hs_internal_prepare_again(stage->core, fill->own);
	hs_list_remove(&fill->link);
	start(stage, fill);
}

static void land(struct hs_core *core, struct hs_request *own)
{
	struct hs_fill *fill = own->context;
	struct hs_cache_stage *stage = hs_internal_stage(core, own);
	struct hs_bytes reply = hs_buf_bytes(&own->parts[0].out);
	bool failed = reply.len > 0 && reply.data[0] == '-';
	bool no_vouch = is_no_vouch(reply), trouble = is_trouble(reply) && !no_vouch;
	struct hs_kept *kept = failed ? NULL : make_kept(stage, fill, reply);
	struct hs_kept *old = trouble ? old_one(stage, fill) : NULL;

	if (asks_again(stage, fill, kept)) {
		if (kept)
			hs_kept_unref(&kept);
		start_again(stage, fill);
		return;
	}
	fill->cached->failed_us = trouble ? stage->core->now.mono_us : 0;
	if (kept && fill->replica_since_us == 0)
		keep(stage, fill, kept);
	else if (failed && !trouble && !no_vouch)
		forget_old(stage, fill);
	tell_others(stage, fill);
	if (old)
		answer_old(stage, fill, &fill->waiters, old);
	else if (kept || (failed && !no_vouch))
		answer_all(stage, fill, &fill->waiters, kept, reply);
	else
		send_all(stage, &fill->waiters);
	if (kept)
		hs_kept_unref(&kept);
	if (!hs_list_empty(&fill->late) && !fill->is_void) {
		struct hs_link waiters = fill->late;

		/* The next one, for those who came behind a write. */
		fill->late.next->prev = &fill->waiters;
		fill->late.prev->next = &fill->waiters;
		fill->waiters = waiters;
		hs_list_init(&fill->late);
		fill->replica_since_us = 0;
		start_again(stage, fill);
	} else {
		send_all(stage, &fill->late);
		destroy(stage, fill);
	}
}

/* --- what another worker brought --- */

static void look_again(struct hs_cache_stage *stage, struct hs_fill *fill)
{
	struct hs_shelf *shelf = stage->shelf;
	struct hs_kept *kept = hs_shelf_get(shelf, &fill->ask);
	uint64_t age_us;

	hs_list_remove(&fill->link);
	if (kept && fill->cached->rule &&
	    hs_kept_state(kept, fill->cached->rule, hs_shelf_stamp(shelf, fill->ask.key_hash).done,
			  stage->core->now.mono_us, &age_us) == HS_KEPT_FRESH) {
		hs_cache_keep(stage->cache, fill->cached, kept);
		answer_all(stage, fill, &fill->waiters, kept, (struct hs_bytes){NULL, 0});
		destroy(stage, fill);
	} else {
		start(stage, fill);
	}
	if (kept)
		hs_kept_unref(&kept);
}

/* Those of this signature, and those that share the cell of its claim, which nobody here can tell. */
void hs_cached_told(void *self)
{
	struct hs_cache_stage *stage = self;
	struct hs_link mine = stage->foreign;

	if (hs_list_empty(&stage->foreign))
		return;
	mine.next->prev = &mine;
	mine.prev->next = &mine;
	hs_list_init(&stage->foreign);
	while (!hs_list_empty(&mine))
		look_again(stage, hs_list_entry(mine.next, struct hs_fill, link));
}

static void count_kept(struct hs_cache_stage *stage)
{
	struct hs_cache_counts counts = hs_cache_counts(stage->cache);

	hs_counter_set(&stage->core->stats.cache_keys, counts.keys);
	hs_counter_set(&stage->core->stats.cache_replies, counts.replies);
	hs_counter_set(&stage->core->stats.cache_bytes, counts.bytes);
	hs_counter_set(&stage->core->stats.cache_evicted, counts.evicted);
	hs_counter_set(&stage->core->stats.cache_too_large, counts.too_large);
}

void hs_cached_tick(void *self)
{
	struct hs_cache_stage *stage = self;
	struct hs_link *link, *next, mine;

	count_kept(stage);
	hs_list_init(&mine);
	for (link = stage->foreign.next; link != &stage->foreign; link = next) {
		struct hs_fill *fill = hs_list_entry(link, struct hs_fill, link);

		next = link->next;
		if (stage->core->now.mono_us - fill->foreign_us <= FOREIGN_US_MAX)
			continue;
		hs_list_remove(&fill->link);
		hs_list_append(&mine, &fill->link);
	}
	while (!hs_list_empty(&mine))
		send(stage, hs_list_entry(mine.next, struct hs_fill, link));
	for (link = stage->sent.next; link != &stage->sent; link = link->next) {
		struct hs_fill *fill = hs_list_entry(link, struct hs_fill, link);
		struct hs_kept *old;

		if (stage->core->now.mono_us - fill->start_us <= SLOW_US)
			continue;
		old = old_one(stage, fill);
		fill->cached->failed_us = stage->core->now.mono_us;
		if (old)
			answer_old(stage, fill, &fill->waiters, old);
	}
}
