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
#include "core/cached.h"

#include "base/mem.h"

enum {
	FOREIGN_US_MAX = 100000, /* another worker that takes longer is not waited for */
	SLOW_US = 500000,	 /* a read that takes longer counts as failing */
};

/* Connections have small numbers, those of folded requests (folds.c) the largest. */
static uint64_t nobody(struct hs_caching *caching)
{
	return UINT64_MAX / 2 + caching->asked++;
}

/* --- those who wait --- */

static void resume_later(struct hs_link *resuming, struct hs_session *session)
{
	if (hs_list_empty(&session->resuming))
		hs_list_append(resuming, &session->resuming);
}

static void resume_all(struct hs_core *core, struct hs_link *resuming)
{
	while (!hs_list_empty(resuming)) {
		struct hs_session *session =
			hs_list_entry(resuming->next, struct hs_session, resuming);

		hs_list_remove(&session->resuming);
		hs_core_resume(core, session);
	}
}

static struct hs_request *take_waiter(struct hs_link *waiters)
{
	struct hs_request *request = hs_list_entry(waiters->next, struct hs_request, fill_link);

	hs_list_remove(&request->fill_link);
	request->session->filling--;
	return request;
}

/* An error is of when it was asked for. Who has to see more than that goes to the engine itself. */
static void answer_all(struct hs_core *core, const struct hs_fill *fill, struct hs_link *waiters,
		       const struct hs_kept *kept, struct hs_bytes error, struct hs_link *resuming)
{
	while (!hs_list_empty(waiters)) {
		struct hs_request *request = take_waiter(waiters);
		uint64_t barrier_us = request->session->barrier_us;

		resume_later(resuming, request->session);
		if (kept ? !hs_cached_is_since(kept, request->session)
			 : barrier_us > 0 && fill->start_us <= barrier_us)
			hs_step_submit(core, request, 0);
		else
			hs_request_share(core, request,
					 kept ? kept->reply[request->resp - 2] : error);
	}
}

/* Each to the engine, as it came. */
static void send_all(struct hs_core *core, struct hs_link *waiters, struct hs_link *resuming)
{
	while (!hs_list_empty(waiters)) {
		struct hs_request *request = take_waiter(waiters);

		resume_later(resuming, request->session);
		hs_step_submit(core, request, 0);
	}
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

static struct hs_fill *create(struct hs_core *core, struct hs_cached *cached,
			      const struct hs_ask *ask)
{
	struct hs_fill *fill = hs_mem_zalloc(sizeof *fill);
	struct hs_request *own = hs_request_get(core, core->self, ask->command);

	hs_request_keep_args(own, ask->argc, ask->argv);
	own->resp = 3;
	own->fill = fill;
	own->then = land;
	fill->own = own;
	fill->cached = cached;
	fill->ask = *ask;
	fill->ask.argv = own->argv;
	fill->ask.key = own->argv[1];
	hs_list_init(&fill->waiters);
	hs_list_init(&fill->late);
	hs_list_init(&fill->link);
	cached->pins++;
	hs_list_append(&cached->fills, &fill->of_key);
	return fill;
}

static void destroy(struct hs_core *core, struct hs_fill *fill)
{
	struct hs_cached *cached = fill->cached;

	hs_check(hs_list_empty(&fill->waiters) && hs_list_empty(&fill->late));
	hs_list_remove(&fill->link);
	hs_list_remove(&fill->of_key);
	hs_request_put(core, fill->own);
	if (--cached->pins == 0 && !cached->rule)
		hs_cache_remove(core->caching->cache, cached);
	hs_mem_free(&fill);
}

static void send(struct hs_core *core, struct hs_fill *fill)
{
	struct hs_caching *caching = core->caching;
	struct hs_request *own = fill->own;

	fill->stamp = hs_shelf_stamp(core->world.shelf, fill->ask.key_hash);
	if (fill->stamp.done != fill->cached->seen_done)
		fill->replica_since_us = 0; /* written by another worker in this very moment */
	fill->start_us = core->now.mono_us;
	fill->foreign_us = 0;
	fill->foreign = false;
	hs_list_remove(&fill->link);
	hs_list_append(&caching->sent, &fill->link);
	fill->cached->read++;
	own->start_us = core->now.mono_us;
	hs_request_split(own, 1);
	own->parts[0].op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.command = own->command,
		.track = fill->replica_since_us == 0,
		.replica_since_us = fill->replica_since_us,
		.slot = fill->cached->slot,
		.partition = hs_core_partition(core, fill->cached->slot),
		.argv = own->argv,
		.argc = own->argc,
		.client = nobody(caching),
	};
	if (fill->cached->rule && fill->replica_since_us == 0)
		hs_counter_add(&hs_cached_stats(core, fill->cached)->fills, 1);
	hs_step_submit(core, own, 0);
}

/* Sends it, unless another worker is reading the same just now. It may be gone when this returns. */
static void start(struct hs_core *core, struct hs_fill *fill)
{
	uint32_t worker = core->world.worker, by = worker;

	if (fill->replica_since_us > 0) { /* nothing that others could use */
		send(core, fill);
		return;
	}
	fill->claimed = core->world.calls->tell && !fill->is_void &&
			hs_shelf_claim(core->world.shelf, fill->ask.signature, worker, &by);
	if (fill->claimed || by == worker) {
		send(core, fill);
		return;
	}
	if (fill->foreign_us == 0) /* however often it is looked for */
		fill->foreign_us = core->now.mono_us;
	fill->foreign = true;
	fill->start_us = core->now.mono_us;
	hs_list_remove(&fill->link); /* it may have been sent before */
	hs_list_append(&core->caching->foreign, &fill->link);
}

/* Whether one that is under way brings what this one may get: it must have begun since the last write, and
 * not too long ago. */
static bool serves(const struct hs_core *core, const struct hs_fill *fill,
		   const struct hs_session *session)
{
	uint64_t read_us = fill->start_us;

	if (fill->foreign)
		return true;
	if (fill->own->parts[0].op.replica_proved_us > 0)
		read_us = fill->own->parts[0].op.replica_proved_us;
	return fill->stamp.done == hs_shelf_stamp(core->world.shelf, fill->ask.key_hash).done &&
	       core->now.mono_us <= read_us + fill->cached->rule->stale_us &&
	       (session->barrier_us == 0 || read_us > session->barrier_us);
}

void hs_cached_join(struct hs_core *core, struct hs_cached *cached, const struct hs_ask *ask,
		    struct hs_request *request)
{
	struct hs_fill *fill = find(cached, ask);
	bool begin = !fill;

	if (begin) {
		fill = create(core, cached, ask);
		fill->replica_since_us =
			hs_cached_replica_since(core, request->session, cached, ask);
	}
	request->session->filling++;
	if (begin || serves(core, fill, request->session))
		hs_list_append(&fill->waiters, &request->fill_link);
	else
		hs_list_append(&fill->late, &request->fill_link);
	if (begin)
		start(core, fill);
}

void hs_cached_refresh(struct hs_core *core, struct hs_cached *cached, const struct hs_ask *ask)
{
	if (!cached->rule || find(cached, ask))
		return;
	hs_counter_add(&hs_cached_stats(core, cached)->refreshes, 1);
	start(core, create(core, cached, ask));
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

static struct hs_kept *make_kept(struct hs_core *core, const struct hs_fill *fill,
				 struct hs_bytes reply)
{
	const struct hs_op *op = &fill->own->parts[0].op;
	struct hs_kept *kept = hs_kept_create(&fill->ask, reply);

	if (!kept)
		return NULL;
	kept->worker = core->world.worker;
	kept->done = fill->stamp.done;
	kept->vouch = op->vouch;
	kept->vouch_epoch = op->vouch_epoch;
	kept->read_us = op->replica_proved_us > 0 ? op->replica_proved_us : fill->start_us;
	kept->cost_us = core->now.mono_us - fill->start_us;
	if (!kept->missing)
		atomic_init(&kept->expires_us, expires_at(fill, op->left_ms, core->now.mono_us));
	if (fill->cached->rule)
		kept->until_us =
			hs_cached_until(core, fill->cached->rule, kept->missing, fill->start_us);
	return kept;
}

/* It has been read, and is not what was kept: that is known to have changed. */
static void forget_old(struct hs_core *core, const struct hs_fill *fill)
{
	struct hs_kept *old = hs_cached_reply(fill->cached, &fill->ask);

	if (old)
		hs_cache_forget(core->caching->cache, fill->cached, old);
}

static void keep(struct hs_core *core, const struct hs_fill *fill, struct hs_kept *kept)
{
	struct hs_shelf *shelf = core->world.shelf;
	struct hs_cached *cached = fill->cached;
	struct hs_core_rule_stats *stats;

	if (fill->is_void || !cached->rule)
		return;
	stats = hs_cached_stats(core, cached);
	hs_cached_note_size(core, cached, kept);
	if (!is_equal(fill->stamp, hs_shelf_stamp(shelf, fill->ask.key_hash)))
		hs_counter_add(&stats->raced, 1);
	else if (kept->missing && cached->rule->negative_us == 0)
		forget_old(core, fill);
	else if (hs_cache_keep(core->caching->cache, cached, kept))
		hs_shelf_put(shelf, kept);
	cached->unkept = hs_cached_reply(cached, &fill->ask) != kept;
}

/* After the shelf has it: others may look there. */
static void tell_others(struct hs_core *core, struct hs_fill *fill)
{
	struct hs_news news = {.kind = HS_NEWS_FILLED};

	if (fill->claimed &&
	    hs_shelf_release(core->world.shelf, fill->ask.signature, core->world.worker))
		core->world.calls->tell(core->world.context, hs_news_create(&news));
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
static struct hs_kept *old_one(const struct hs_core *core, const struct hs_fill *fill)
{
	struct hs_kept *kept;

	if (fill->is_void || !fill->cached->rule || fill->cached->rule->stale_if_error_us == 0)
		return NULL;
	kept = hs_cached_reply(fill->cached, &fill->ask);
	return kept && hs_cached_outlives_error(core, fill->cached, kept) ? kept : NULL;
}

static void answer_old(struct hs_core *core, struct hs_fill *fill, struct hs_link *waiters,
		       struct hs_link *resuming, const struct hs_kept *old)
{
	struct hs_core_rule_stats *stats = hs_cached_stats(core, fill->cached);

	for (struct hs_link *link = waiters->next; link != waiters; link = link->next)
		hs_counter_add(&stats->stale, 1);
	answer_all(core, fill, waiters, old, (struct hs_bytes){NULL, 0}, resuming);
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
static bool asks_again(struct hs_core *core, struct hs_fill *fill, const struct hs_kept *kept)
{
	struct hs_core_rule_stats *stats;

	if (fill->replica_since_us == 0)
		return false;
	if (fill->cached->rule) {
		stats = hs_cached_stats(core, fill->cached);
		hs_counter_add(fill->own->parts[0].op.replica_proved_us > 0 ? &stats->replica_reads
									    : &stats->fills,
			       1);
	}
	if (kept && kept->bytes > core->options.cache_entry_bytes)
		return false;
	fill->cached->large_ask = 0;
	fill->replica_since_us = 0;
	return true;
}

static void start_again(struct hs_core *core, struct hs_fill *fill)
{
	hs_request_drop_parts(fill->own);
	hs_list_remove(&fill->link);
	start(core, fill);
}

static void land(struct hs_core *core, struct hs_request *own)
{
	struct hs_fill *fill = own->fill;
	struct hs_bytes reply = hs_buf_bytes(&own->parts[0].out);
	bool failed = reply.len > 0 && reply.data[0] == '-';
	bool no_vouch = is_no_vouch(reply), trouble = is_trouble(reply) && !no_vouch;
	struct hs_kept *kept = failed ? NULL : make_kept(core, fill, reply);
	struct hs_kept *old = trouble ? old_one(core, fill) : NULL;
	struct hs_link resuming, late;

	if (asks_again(core, fill, kept)) {
		if (kept)
			hs_kept_unref(&kept);
		start_again(core, fill);
		return;
	}
	hs_list_init(&resuming);
	hs_list_init(&late);
	fill->cached->failed_us = trouble ? core->now.mono_us : 0;
	if (kept && fill->replica_since_us == 0)
		keep(core, fill, kept);
	else if (failed && !trouble && !no_vouch)
		forget_old(core, fill);
	tell_others(core, fill);
	if (old)
		answer_old(core, fill, &fill->waiters, &resuming, old);
	else if (kept || (failed && !no_vouch))
		answer_all(core, fill, &fill->waiters, kept, reply, &resuming);
	else
		send_all(core, &fill->waiters, &resuming);
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
		start_again(core, fill);
	} else {
		send_all(core, &fill->late, &resuming);
		destroy(core, fill);
	}
	resume_all(core, &resuming);
}

/* --- what another worker brought --- */

static void look_again(struct hs_core *core, struct hs_fill *fill)
{
	struct hs_shelf *shelf = core->world.shelf;
	struct hs_kept *kept = hs_shelf_get(shelf, &fill->ask);
	struct hs_link resuming;
	uint64_t age_us;

	hs_list_init(&resuming);
	hs_list_remove(&fill->link);
	if (kept && fill->cached->rule &&
	    hs_kept_state(kept, fill->cached->rule, hs_shelf_stamp(shelf, fill->ask.key_hash).done,
			  core->now.mono_us, &age_us) == HS_KEPT_FRESH) {
		hs_cache_keep(core->caching->cache, fill->cached, kept);
		answer_all(core, fill, &fill->waiters, kept, (struct hs_bytes){NULL, 0}, &resuming);
		/* Clients that read behind a write while this worker's own fetch was in flight. */
		answer_all(core, fill, &fill->late, kept, (struct hs_bytes){NULL, 0}, &resuming);
		destroy(core, fill);
	} else {
		start(core, fill);
	}
	if (kept)
		hs_kept_unref(&kept);
	resume_all(core, &resuming);
}

/* Those of this signature, and those that share the cell of its claim, which nobody here can tell. */
void hs_cached_told(struct hs_core *core)
{
	struct hs_link mine = core->caching->foreign;

	if (hs_list_empty(&core->caching->foreign))
		return;
	mine.next->prev = &mine;
	mine.prev->next = &mine;
	hs_list_init(&core->caching->foreign);
	while (!hs_list_empty(&mine))
		look_again(core, hs_list_entry(mine.next, struct hs_fill, link));
}

static void count_kept(struct hs_core *core)
{
	struct hs_cache_counts counts = hs_cache_counts(core->caching->cache);

	hs_counter_set(&core->stats.cache_keys, counts.keys);
	hs_counter_set(&core->stats.cache_replies, counts.replies);
	hs_counter_set(&core->stats.cache_bytes, counts.bytes);
	hs_counter_set(&core->stats.cache_evicted, counts.evicted);
	hs_counter_set(&core->stats.cache_too_large, counts.too_large);
}

void hs_cached_tick(struct hs_core *core)
{
	struct hs_caching *caching = core->caching;
	struct hs_link *link, *next, resuming, mine;

	count_kept(core);
	hs_list_init(&resuming);
	hs_list_init(&mine);
	for (link = caching->foreign.next; link != &caching->foreign; link = next) {
		struct hs_fill *fill = hs_list_entry(link, struct hs_fill, link);

		next = link->next;
		if (core->now.mono_us - fill->foreign_us <= FOREIGN_US_MAX)
			continue;
		hs_list_remove(&fill->link);
		hs_list_append(&mine, &fill->link);
	}
	while (!hs_list_empty(&mine))
		send(core, hs_list_entry(mine.next, struct hs_fill, link));
	for (link = caching->sent.next; link != &caching->sent; link = link->next) {
		struct hs_fill *fill = hs_list_entry(link, struct hs_fill, link);
		struct hs_kept *old;

		if (core->now.mono_us - fill->start_us <= SLOW_US)
			continue;
		old = old_one(core, fill);
		fill->cached->failed_us = core->now.mono_us;
		if (old)
			answer_old(core, fill, &fill->waiters, &resuming, old);
	}
	resume_all(core, &resuming);
}
