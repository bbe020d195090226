/* The stage `fold`: puts requests for hot keys into queues and sends the batches that absorb/fold/fold.h plans.
 *
 *     admit ─┬─ no queue: sent to the engine directly
 *            ├─ queue: waits ─ … ─ end of the round, nothing in flight ─ planned ─ sent
 *            └─ hold: the session has other requests in flight that this one must not overtake
 *
 * When the last reply to a queue's operations has come, all waiting members of the queue are planned and sent at
 * the end of that round of events. Without folding, too, the engine sends submitted operations only at the end of
 * a round. So a request for an uncontended key waits no longer than without folding, and requests of the same
 * round share a batch at no cost. Where clients pipeline requests for several hot keys, a round has several
 * passes, and a queue may send one plan in each pass (chain.c).
 *
 * Order, as law 2 (linearizable per key, pipelined clients included) requires. Only foldable requests enter a
 * queue. The order among clients is free until the engine runs their requests. A chain keeps the order of one
 * client: while the client has requests waiting in a partition bucket, its further requests for that bucket wait
 * behind these. While requests of the chain are in flight, further commands of the client for that bucket stay in
 * the client's input until these requests are answered; only a command for the chain's last queue may still enter
 * this queue. So no later request of the client can come in between, even if a folded request has to be sent a
 * second time.
 *
 * When folding does not help, requests are sent directly:
 * - If only one client waits in a queue and sends a command that cannot join its chain, hs_fold_release sends all
 *   requests of the queue.
 * - A client with BEHIND_MAX or more other requests in flight in the partition bucket, and none in a chain there,
 *   is not folded: the client would lose more by waiting than the key gains. The same holds for a client with
 *   requests in flight that is alone on the key.
 * - A client that was held while it had more than DEEP_BYTES of pipelined input is not folded for its next
 *   UNFOLDED requests: the client would pay a round trip for nearly each request.
 * - A key whose batches had too few members is not folded for its next BYPASS requests; a key whose reads nearly
 *   all differed, for its next BYPASS_READS reads.
 *
 * Requests that are in flight when a key becomes hot are not queued afterwards. keys.c makes and removes
 * queues. */
#include "absorb/fold/stage.h"

#include "base/mem.h"
#include "core/count.h"
#include "core/dispatch.h"
#include "core/internal.h"
#include "core/state.h"
#include "wire/reply.h"

enum {
	/* reads of the key that bypass the queue after folding its reads did not pay */
	BYPASS_READS = 1024,
	READS_JUDGED_MIN = 8, /* the reads of a plan with fewer reads are not judged */
	/* number of batches of a key after which judge() looks at the gain */
	BATCHES_JUDGED = 32,
	/* requests for the key that bypass the queue after folding did not pay */
	BYPASS = 1024,
};

/* --- a request's path through a queue --- */

void hs_fold_make_ready(struct hs_fold_stage *stage, struct hs_fold_queue *queue)
{
	if (!hs_fold_may_launch(stage, queue) || !hs_list_empty(&queue->ready))
		return;
	hs_list_append(&stage->ready, &queue->ready);
	hs_stage_want(stage->core, stage->index, HS_POINT_FLUSH, true);
}

/* Sends the request to the engine unchanged. The request may be freed when this function returns. */
static void send_as_it_came(struct hs_fold_stage *stage, struct hs_fold_request *folded)
{
	struct hs_fold_queue *queue = folded->queue;
	uint64_t id = folded->request->session->id;

	queue->sole_client = queue->in_flight == 0 || queue->sole_client == id ? id : 0;
	queue->in_flight++;
	hs_stage_send(stage->core, stage->index, folded->request, &folded->request->parts[0]);
}

static void refuse(struct hs_fold_stage *stage, struct hs_request *request)
{
	struct hs_reply reply = {.out = &request->reply, .resp = request->resp};

	hs_reply_errorf(&reply,
			"BUSY %u requests already wait for this key (fold-waiters-max); not run",
			stage->core->options.fold_waiters_max);
	hs_counter_add(&stage->stats.busy, 1);
	request->parts[0].time_us = 0;
	hs_stage_release(stage->core, stage->index, request);
	hs_count_request(stage->core, request, hs_buf_bytes(&request->reply));
	hs_dispatch_finish(stage->core, request);
}

/* Marks the request so that the core calls `arrive`, and initialises this stage's state in the request. */
static struct hs_fold_request *mark(struct hs_fold_stage *stage, struct hs_request *request)
{
	struct hs_fold_request *folded = hs_fold_of(stage, request);

	request->parts[0].marked |= 1u << stage->index;
	request->delayed = true;
	*folded = (struct hs_fold_request){.request = request};
	hs_list_init(&folded->member.link);
	return folded;
}

/* Puts the request into the queue, or refuses it with BUSY if fold-waiters-max requests wait for the key
 * already. */
static void take(struct hs_fold_stage *stage, struct hs_fold_queue *queue,
		 struct hs_request *request)
{
	struct hs_fold_request *folded = mark(stage, request);

	folded->queue = queue;
	folded->member = stage->admitted_member;
	folded->member.argv = request->call.argv; /* the request's own copy */
	folded->member.raw = request->call.raw;
	hs_list_init(&folded->member.link);
	request->resp = request->session->resp;
	if (queue->waiting + queue->behind < stage->core->options.fold_waiters_max)
		hs_chain_add(stage, hs_chain_of(stage, request->session, hs_fold_bucket(request)),
			     folded);
	else
		refuse(stage, request);
}

/* Puts a request without a queue into its session's chain, if the chain has requests that this one must not
 * overtake. False: no chain, or an empty one; the request goes on to the engine. */
static bool follow(struct hs_fold_stage *stage, struct hs_request *request)
{
	struct hs_fold_chain *chains = hs_fold_session(stage, request->session)->chains;
	struct hs_fold_chain *chain = chains ? &chains[hs_fold_bucket(request)] : NULL;

	if (!chain || chain->total == 0)
		return false;
	hs_chain_add(stage, chain, mark(stage, request));
	return true;
}

/* Whether the request is a read that the engine answers at once (embedded engine). True only if the session has
 * nothing in flight in the bucket and an earlier request whose reply is still due. Then only the read's reply
 * waits, for the earlier replies, and queueing the read gains nothing. */
static bool is_at_once(const struct hs_core *core, const struct hs_request *request)
{
	const struct hs_session *session = request->session;

	return core->world.reads_at_once && (request->call.command->flags & HS_CMD_READONLY) &&
	       session->in_bucket[hs_fold_bucket(request)] == 0 &&
	       session->requests.next != &request->link;
}

/* Call before a request is sent under its session's own client id. Gives this id back to the session's earlier
 * requests in flight that carry the id of a round, so that the engine keeps the order of all of them. */
static void restore_clients(struct hs_fold_stage *stage, const struct hs_request *request)
{
	const struct hs_fold_session *known = hs_fold_session(stage, request->session);

	/* Goes through all buckets, not only the request's bucket: the slot may have moved since the session's
	 * earlier requests were sent. */
	for (uint32_t i = 0; known->relabelled > 0 && i < HS_PARTITION_BUCKETS; i++) {
		if (known->chains[i].total == 0)
			hs_chain_restore_client(stage, &known->chains[i]);
	}
}

static enum hs_stage_result depart(void *self, struct hs_request *request, struct hs_part *part)
{
	struct hs_fold_stage *stage = self;
	struct hs_fold_queue *queue =
		request->call.number == stage->admitted_call ? stage->admitted : NULL;

	if (request->session == stage->core->self)
		return HS_PASS;
	if (part->op.kind != HS_OP_COMMAND || request->parts_count > 1) {
		restore_clients(stage, request);
		return HS_PASS;
	}
	if (queue && !is_at_once(stage->core, request)) {
		stage->admitted = NULL;
		take(stage, queue, request);
		return HS_TAKEN;
	}
	if (follow(stage, request))
		return HS_TAKEN;
	restore_clients(stage, request);
	return HS_PASS;
}

/* --- batches in flight --- */

/* Takes the request out of session->in_bucket and out of its chain. */
static void leave_bucket(struct hs_fold_stage *stage, struct hs_fold_request *folded)
{
	folded->request->session->in_bucket[hs_fold_bucket(folded->request)]--;
	hs_chain_leave(stage, folded);
}

static void answer(void *context, struct hs_fold_member *member, struct hs_bytes reply)
{
	struct hs_fold_stage *stage = context;
	struct hs_fold_request *folded = hs_fold_request_of(&member->link);
	struct hs_request *request = folded->request;

	leave_bucket(stage, folded);
	hs_core_resume_later(stage->core, request->session);
	hs_counter_add(&stage->stats.requests, 1);
	hs_stage_share(stage->core, stage->index, request, reply);
}

static void retry(void *context, struct hs_fold_member *member)
{
	static const struct hs_bytes too_late =
		HS_LIT("-BUSY the batch with this command was refused, and a later command of this "
		       "client was already sent; not run\r\n");
	struct hs_fold_stage *stage = context;
	struct hs_fold_request *folded = hs_fold_request_of(&member->link);
	struct hs_request *request = folded->request;
	struct hs_fold_chain *chain;

	if (member->no_retry) {
		hs_counter_add(&stage->stats.busy, 1);
		answer(context, member, too_late);
		return;
	}
	chain = folded->chain;
	leave_bucket(stage, folded);
	hs_core_resume_later(stage->core, request->session);
	hs_counter_add(&stage->stats.retry, 1);
	if (!request->session->gone) {
		hs_chain_restore_client(stage, chain);
		send_as_it_came(stage, folded);
		return;
	}
	hs_stage_release(stage->core, stage->index, request);
	hs_request_finish(stage->core, request);
}

static void op_done(struct hs_fold_stage *stage, struct hs_fold_queue *queue)
{
	queue->in_flight--;
	if (queue->waiting > 0)
		hs_fold_make_ready(stage, queue);
}

static void batch_done(struct hs_core *core, struct hs_request *internal_request)
{
	static const struct hs_fold_calls calls = {.answer = answer, .retry = retry};
	struct hs_fold_stage *stage = hs_internal_stage(core, internal_request);
	struct hs_fold_request *folded = hs_fold_of(stage, internal_request);
	struct hs_fold_queue *queue = folded->queue;

	hs_count_run_begin(core, hs_hot_key(queue->hot));
	hs_fold_answer(folded->batch, hs_internal_reply(internal_request, 0), &stage->scratch,
		       &calls, stage);
	hs_count_run_end(core);
	hs_fold_free(&folded->batch);
	hs_buf_clear(&stage->scratch, HS_IDLE_BUFFER_BYTES);
	hs_internal_end(core, internal_request);
	op_done(stage, queue);
}

/* Returns the client id to send a batch under, so that the engine keeps every member's order. If no member's
 * session has other requests in the bucket that are in flight or follow in this round, the batch gets a new id.
 * Otherwise the batch gets the round's id, and so do the sessions' requests in flight outside their chains. */
static uint64_t client_of_batch(struct hs_fold_stage *stage, const struct hs_fold_batch *batch)
{
	bool shared = false;

	hs_list_each(const struct hs_fold_request, folded, &batch->members, member.link) {
		const struct hs_request *request = folded->request;

		if (hs_fold_others(stage, request->session, hs_fold_bucket(request)) > 0) {
			hs_chain_use_client_for_others(stage, folded->chain);
			shared = true;
		}
		shared = shared || hs_chain_is_long(folded->chain);
	}
	return shared ? hs_chain_client(stage) : hs_internal_client(stage->core);
}

/* Sends a batch of several members as one internal call. */
static void send_together(struct hs_fold_stage *stage, struct hs_fold_queue *queue,
			  struct hs_fold_batch *batch)
{
	struct hs_internal internal = {
		.call = hs_call_of(batch->command, batch->argc, batch->argv),
		.on_done = batch_done,
		.slot = queue->hot->slot,
		.borrowed = true,
		.resp = batch->resp,
		.client = client_of_batch(stage, batch),
		.stage = stage->index + 1,
	};
	struct hs_fold_request *folded;
	struct hs_request *internal_request;

	for (struct hs_link *link = batch->members.next; link != &batch->members; link = link->next)
		hs_chain_sent(stage, hs_fold_request_of(link));
	internal.call.raw = batch->raw;
	internal_request = hs_internal_prepare(stage->core, &internal);
	internal_request->delayed = true;
	internal_request->start_us = hs_fold_request_of(batch->members.next)->request->start_us;
	folded = hs_fold_of(stage, internal_request);
	folded->queue = queue;
	folded->batch = batch;
	queue->in_flight++;
	queue->sole_client = 0;
	hs_counter_add(&stage->stats.commands, 1);
	hs_internal_send(stage->core, internal_request);
}

/* Takes one waiting member out of the queue and sends it by itself. If the chain is long (hs_chain_is_long), the
 * member stays in the chain until it is answered, and is sent under the round's client id. */
static void send_member(struct hs_fold_stage *stage, struct hs_fold_request *folded)
{
	bool stays = hs_chain_is_long(folded->chain);

	hs_list_remove(&folded->member.link);
	hs_chain_sent(stage, folded);
	if (stays) {
		hs_chain_use_client(stage, folded);
		folded->request->session->in_bucket[hs_fold_bucket(folded->request)]--;
	} else {
		struct hs_fold_chain *chain = folded->chain;

		leave_bucket(stage, folded);
		hs_chain_restore_client(stage, chain);
	}
	send_as_it_came(stage, folded);
}

void hs_fold_release(struct hs_fold_stage *stage, struct hs_fold_queue *queue)
{
	struct hs_link *waiting = &queue->fold.waiting;

	for (uint32_t remaining = queue->waiting; remaining > 0; remaining--)
		send_member(stage, hs_fold_request_of(waiting->next));
}

static void send_alone(struct hs_fold_stage *stage, struct hs_fold_request *folded)
{
	hs_core_resume_later(stage->core, folded->request->session);
	send_member(stage, folded);
}

static void send_batch(struct hs_fold_stage *stage, struct hs_fold_queue *queue,
		       struct hs_fold_batch *batch)
{
	struct hs_fold_request *folded;

	if (batch->count > 1) {
		send_together(stage, queue, batch);
		return;
	}
	folded = hs_fold_request_of(batch->members.next);
	hs_list_remove(&folded->member.link);
	hs_fold_free(&batch);
	send_alone(stage, folded);
}

/* Counts the members and batches of a plan. After BATCHES_JUDGED batches with fewer than fold-gain-min members on
 * average, the key's next BYPASS requests bypass the queue: if clients rarely wait together, they lose more by
 * waiting than the engine gains. */
static void judge(const struct hs_fold_stage *stage, struct hs_fold_queue *queue, uint32_t members,
		  uint32_t batches)
{
	queue->judged_members += members;
	queue->judged_batches += batches;
	if (queue->judged_batches < BATCHES_JUDGED)
		return;
	if (queue->judged_members < stage->core->options.hot.fold_gain_min * queue->judged_batches)
		queue->bypass = BYPASS;
	queue->judged_members = 0;
	queue->judged_batches = 0;
}

/* Moves the members that the plan left in the queue to `deferred` until the round ends. They must not go with a
 * later pass of this round: an earlier member of the same client is in flight, and if its batch fails this member
 * must be sent again first. */
static void defer_rest(struct hs_fold_stage *stage, struct hs_fold_queue *queue)
{
	struct hs_link *waiting = &queue->fold.waiting;

	while (!hs_list_empty(waiting)) {
		struct hs_link *link = waiting->next;

		hs_list_remove(link);
		hs_list_append(&queue->deferred, link);
		if (hs_list_empty(&queue->remaining))
			hs_list_append(&stage->remaining, &queue->remaining);
	}
}

static void requeue_deferred(struct hs_fold_stage *stage)
{
	struct hs_link *remaining = &stage->remaining;

	while (!hs_list_empty(remaining)) {
		struct hs_fold_queue *queue =
			hs_list_entry(remaining->next, struct hs_fold_queue, remaining);

		hs_list_remove(&queue->remaining);
		while (!hs_list_empty(&queue->deferred)) {
			struct hs_link *link = queue->deferred.next;

			hs_list_remove(link);
			hs_list_append(&queue->fold.waiting, link);
		}
		hs_fold_make_ready(stage, queue);
	}
}

static void launch(struct hs_fold_stage *stage, struct hs_fold_queue *queue)
{
	uint32_t members = 0, batches = 0, reads = 0, read_batches = 0;
	struct hs_link *waiting = &queue->fold.waiting;
	struct hs_fold_request *first = hs_fold_request_of(waiting->next);
	struct hs_link plan;

	queue->round = stage->round;
	if (waiting->next == waiting->prev && hs_fold_is_simple(&first->member)) {
		judge(stage, queue, 1, 1);
		send_alone(stage, first);
		return;
	}
	hs_list_init(&plan);
	hs_fold_plan(&queue->fold, &plan);
	defer_rest(stage, queue);
	while (!hs_list_empty(&plan)) {
		struct hs_fold_batch *batch = hs_list_entry(plan.next, struct hs_fold_batch, link);

		members += batch->count;
		batches++;
		if (batch->kind == HS_FOLD_READ) {
			reads += batch->count;
			read_batches++;
		}
		hs_list_remove(&batch->link);
		send_batch(stage, queue, batch);
	}
	judge(stage, queue, members, batches);
	/* Nearly every read of this plan needed a batch of its own (a hash read field by field): waiting gains
	 * nothing. */
	if (reads >= READS_JUDGED_MIN && reads < 2 * read_batches)
		queue->bypass_reads = BYPASS_READS;
}

static bool has_ready(const struct hs_fold_stage *stage)
{
	return !hs_list_empty(&stage->ready) || !hs_list_empty(&stage->advancing);
}

static void begin_round(struct hs_fold_stage *stage)
{
	stage->round++;
	stage->round_client = 0;
}

static void run_passes(struct hs_fold_stage *stage)
{
	struct hs_link *ready = &stage->ready;

	while (has_ready(stage)) {
		hs_chain_advance(stage);
		while (!hs_list_empty(ready)) {
			struct hs_fold_queue *queue =
				hs_list_entry(ready->next, struct hs_fold_queue, ready);

			hs_list_remove(&queue->ready);
			if (hs_fold_may_launch(stage, queue) &&
			    !hs_list_empty(&queue->fold.waiting))
				launch(stage, queue);
		}
	}
}

static void flush(void *self)
{
	struct hs_fold_stage *stage = self;

	if (!has_ready(stage))
		return;
	begin_round(stage);
	run_passes(stage);
	begin_round(stage); /* requests that arrive after this flush belong to the next round */
	requeue_deferred(stage);
}

/* The core calls this when a request that was sent by itself, from a queue or as a plain request of a chain, is
 * answered. */
static void arrive(void *self, struct hs_request *request, struct hs_part *part)
{
	struct hs_fold_stage *stage = self;
	struct hs_fold_request *folded = hs_fold_of(stage, request);

	(void)part;
	if (folded->chain)
		hs_chain_leave(stage, folded);
	if (folded->queue)
		op_done(stage, folded->queue);
}

static void forget(void *self, struct hs_session *session)
{
	struct hs_fold_stage *stage = self;
	struct hs_request *last = NULL;

	hs_list_each(struct hs_request, request, &session->requests, link) {
		struct hs_fold_request *folded = hs_fold_of(stage, request);

		if (request->parts_count != 1 || !(request->parts[0].marked >> stage->index & 1) ||
		    !folded->chain || !folded->waiting)
			continue;
		session->in_bucket[hs_fold_bucket(request)]--;
		hs_chain_drop(stage, folded);
		hs_stage_release(stage->core, stage->index, request);
		request->done = true;
		last = request;
	}
	if (last)
		hs_request_finish(stage->core, last);
}

static void list_members(void *self, const struct hs_request *internal, hs_stage_member *tell,
			 void *context)
{
	struct hs_fold_stage *stage = self;
	struct hs_link *members = &hs_fold_of(stage, internal)->batch->members;

	hs_list_each(const struct hs_fold_request, folded, members, member.link)
		tell(context, folded->request, !hs_list_empty(&folded->chain->behind));
}

/* --- the stage --- */

static void *create(struct hs_core *core, uint32_t index)
{
	struct hs_fold_stage *stage = hs_mem_zalloc(sizeof *stage);

	stage->core = core;
	stage->index = index;
	stage->session_at = core->stages.session_at[index];
	stage->request_at = core->stages.request_at[index];
	hs_list_init(&stage->queues);
	hs_list_init(&stage->ready);
	hs_list_init(&stage->remaining);
	hs_list_init(&stage->advancing);
	stage->round = 1;
	return stage;
}

static void destroy(void *self)
{
	struct hs_fold_stage *stage = self;

	while (!hs_list_empty(&stage->queues)) {
		struct hs_fold_queue *queue =
			hs_list_entry(stage->queues.next, struct hs_fold_queue, link);

		hs_check(queue->in_flight == 0 && queue->waiting == 0 && queue->behind == 0);
		hs_fold_cool(stage, queue->hot, true);
	}
	hs_buf_deinit(&stage->scratch);
	hs_mem_free(&stage);
}

static void close_session(void *self, struct hs_session *session)
{
	struct hs_fold_stage *stage = self;
	struct hs_fold_session *known = hs_fold_session(stage, session);

	for (uint32_t i = 0; known->chains && i < HS_PARTITION_BUCKETS; i++)
		hs_chain_restore_client(stage, &known->chains[i]);
	hs_mem_free(&known->chains);
}

static const struct hs_counter_table counters = HS_COUNTER_TABLE(HS_FOLD_COUNTERS);

const struct hs_stage hs_stage_fold = {
	.name = "fold",
	.session_bytes = sizeof(struct hs_fold_session),
	.request_bytes = sizeof(struct hs_fold_request),
	.counters = &counters,
	.counters_at = offsetof(struct hs_fold_stage, stats),
	.create = create,
	.destroy = destroy,
	.close = close_session,
	.admit = hs_fold_admit,
	.depart = depart,
	.arrive = arrive,
	.flush = flush,
	.hot = hs_fold_hot,
	.cool = hs_fold_cool,
	.forget = forget,
	.report = hs_fold_report,
	.members = list_members,
};
