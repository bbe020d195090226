/* The queues of hot keys: where requests meet absorb/fold.h.
 *
 *     admit ─┬─ no queue: straight to the engine
 *            ├─ joins: waits ─ … ─ the round ends, nothing is under way ─ planned ─ sent
 *            └─ not now: the session has others under way that it must not overtake
 *
 * A queue has one flight under way at most. Everything that waits is planned and sent together when
 * its last reply is in, at the end of the round of events: what is handed to the engine leaves then
 * anyway, so that an uncontended key waits for nobody, and what came in the same round shares a flight
 * at no cost. Where clients pipeline several hot keys a flight has several passes (folds_chain.c).
 *
 * Order (law 2). Only what can be folded goes through a queue, and it goes by what other clients ask:
 * the engine takes one thing after the other, whoever sends them. A client's own order is kept by its
 * chain: what it asks of a lane while it has requests waiting there stands in line behind them. While it
 * has some under way with others', what else it asks of that lane is not taken from its input until they
 * are answered. So whatever a folded request needs, a second try by itself included, nothing of its client
 * can have come in between.
 *
 * Nobody waits in vain. Requests of one client alone are sent as they came when it goes on to what cannot
 * stand in line. Who has many others under way would lose more by waiting than the key gains, and where
 * nobody else is there the key gains nothing at all: such a request goes straight, and not through the
 * queue. So do the next ones of a client that was held up while it had sent much more: it would pay a
 * round trip for nearly each of its requests.
 *
 * A key turns hot when its heat is counted (core/count.c), with what is under way for it left as it
 * is. It is folded no more when it has been cool for a while and nothing is in its queue. */
#include "core/folds.h"

#include "base/mem.h"
#include "core/internal.h"

enum {
	READS_APART = 1024,   /* so many go straight when folding them did not help */
	READS_JUDGED_MIN = 8, /* a flight of fewer says nothing about that */
	STEPS_JUDGED = 32,    /* after so many it is seen whether folding was worth it */
	RESTS = 1024,	      /* so many requests go straight when it was not */
};

/* --- a request's way through a queue --- */

void hs_folds_make_ready(struct hs_core *core, struct hs_queue *queue)
{
	if (hs_folds_may_launch(core->folds, queue) && hs_list_empty(&queue->ready))
		hs_list_append(&core->folds->ready, &queue->ready);
}

void hs_folds_send_lone(struct hs_core *core, struct hs_request *request)
{
	struct hs_queue *queue = request->queue;
	uint64_t id = request->session->id;

	queue->alone = queue->under_way == 0 || queue->alone == id ? id : 0;
	queue->under_way++;
	hs_step_submit(core, request, 0);
}

static void refuse(struct hs_core *core, struct hs_request *request)
{
	struct hs_reply reply = {.out = &request->reply, .resp = request->ask.resp};

	request->queue = NULL;
	hs_reply_errorf(&reply,
			"BUSY %u requests wait for this key already (fold-waiters-max); not run",
			core->options.fold_waiters_max);
	hs_counter_add(&core->stats.fold_busy, 1);
	request->parts[0].time_us = 0;
	hs_count_request(core, request, hs_buf_bytes(&request->reply));
	hs_step_finish(core, request);
}

void hs_folds_take(struct hs_core *core, struct hs_queue *queue, struct hs_request *request)
{
	request->queue = queue;
	request->waiting = false;
	request->ask = (struct hs_fold_ask){
		.resp = request->session->resp,
		.command = request->call.command,
		.argv = request->call.argv,
		.argc = request->call.argc,
		.raw = request->call.raw,
	};
	hs_fold_classify(&request->ask);
	hs_list_init(&request->ask.link);
	if (queue->waiting + queue->coming < core->options.fold_waiters_max)
		hs_chain_add(core, hs_chain_of(request->session, hs_folds_lane(request)), request);
	else
		refuse(core, request);
}

bool hs_folds_follow(struct hs_core *core, struct hs_request *request)
{
	struct hs_folding *chain = &request->session->folding[hs_folds_lane(request)];

	if (chain->joined == 0)
		return false;
	hs_list_init(&request->ask.link);
	hs_chain_add(core, chain, request);
	return true;
}

/* --- flights --- */

/* Sessions that may go on when nobody is in the middle of handing out replies, or of sending what may be
 * refused at once. */
static void resume_later(struct hs_core *core, struct hs_session *session)
{
	if (hs_list_empty(&session->resuming))
		hs_list_append(&core->folds->resuming, &session->resuming);
}

static void resume_all(struct hs_core *core)
{
	struct hs_link *resuming = &core->folds->resuming;

	while (core->folds->busy == 0 && !hs_list_empty(resuming)) {
		struct hs_session *session =
			hs_list_entry(resuming->next, struct hs_session, resuming);

		hs_list_remove(&session->resuming);
		hs_core_resume(core, session);
	}
}

/* It is not under way any more for its session. */
static void leave_lane(struct hs_core *core, struct hs_request *request)
{
	request->session->lane[hs_folds_lane(request)]--;
	hs_chain_leave(core, request);
}

static void answer(void *context, struct hs_fold_ask *ask, struct hs_bytes reply)
{
	struct hs_core *core = context;
	struct hs_request *request = hs_list_entry(ask, struct hs_request, ask);

	leave_lane(core, request);
	resume_later(core, request->session);
	hs_counter_add(&core->stats.fold_requests, 1);
	hs_request_share(core, request, reply);
}

static void again(void *context, struct hs_fold_ask *ask)
{
	static const struct hs_bytes too_late =
		HS_LIT("-BUSY refused together with others, and a later command of this client was "
		       "sent already; not run\r\n");
	struct hs_core *core = context;
	struct hs_request *request = hs_list_entry(ask, struct hs_request, ask);

	if (ask->firm) {
		hs_counter_add(&core->stats.fold_busy, 1);
		answer(context, ask, too_late);
		return;
	}
	leave_lane(core, request);
	resume_later(core, request->session);
	hs_counter_add(&core->stats.fold_again, 1);
	if (!request->session->gone)
		hs_folds_send_lone(core, request);
	else
		hs_request_finish(core, request);
}

/* The engine's reply to a step for many. */
static void land(struct hs_core *core, struct hs_request *own)
{
	static const struct hs_fold_calls calls = {.answer = answer, .again = again};

	core->folds->busy++;
	hs_fold_answer(own->step, hs_internal_reply(own, 0), &core->folds->scratch, &calls, core);
	hs_fold_free(&own->step);
	hs_buf_clear(&core->folds->scratch, HS_KEEP_BYTES);
	hs_internal_end(core, own);
	core->folds->busy--;
	resume_all(core);
}

/* Whom a step for many is of, for who keeps the order of clients: of nobody who has anything else under
 * way; or of the whole round, where some have. Connections have small numbers. */
static uint64_t name_step(struct hs_core *core, const struct hs_fold_step *step)
{
	bool shared = false;

	for (struct hs_link *link = step->asks.next; link != &step->asks; link = link->next) {
		const struct hs_request *request = hs_list_entry(link, struct hs_request, ask.link);

		if (hs_folds_others(request->session, hs_folds_lane(request)) > 0) {
			hs_chain_rename_others(core, request->folding);
			shared = true;
		}
		shared = shared || hs_chain_is_long(request->folding);
	}
	return shared ? hs_chain_name(core) : hs_internal_client(core);
}

/* A step for many is a request of the core's own. */
static void send_together(struct hs_core *core, struct hs_queue *queue, struct hs_fold_step *step)
{
	struct hs_internal internal = {
		.call = hs_call_of(step->command, step->argc, step->argv),
		.then = land,
		.slot = queue->hot->slot,
		.borrowed = true,
		.resp = step->resp,
		.client = name_step(core, step),
	};
	struct hs_request *own;

	for (struct hs_link *link = step->asks.next; link != &step->asks; link = link->next)
		hs_chain_sent(core, hs_list_entry(link, struct hs_request, ask.link));
	internal.call.raw = step->raw;
	own = hs_internal_prepare(core, &internal);
	own->queue = queue;
	own->step = step;
	own->ask.resp = step->resp;
	own->start_us = hs_list_entry(step->asks.next, struct hs_request, ask.link)->start_us;
	queue->under_way++;
	queue->alone = 0;
	hs_counter_add(&core->stats.fold_commands, 1);
	hs_internal_send(core, own);
}

/* One that waits, by itself. In the middle of a chain it stays in it until it is answered. */
static void send_ask(struct hs_core *core, struct hs_fold_ask *ask)
{
	struct hs_request *request = hs_list_entry(ask, struct hs_request, ask);
	bool stays = hs_chain_is_long(request->folding);

	hs_list_remove(&ask->link);
	hs_chain_sent(core, request);
	if (stays) {
		hs_chain_name_request(core, request);
		request->session->lane[hs_folds_lane(request)]--;
	} else {
		leave_lane(core, request);
	}
	hs_folds_send_lone(core, request);
}

void hs_folds_release(struct hs_core *core, struct hs_queue *queue)
{
	struct hs_link *waiting = &queue->fold.waiting;

	for (uint32_t left = queue->waiting; left > 0; left--)
		send_ask(core, hs_list_entry(waiting->next, struct hs_fold_ask, link));
}

static void send_alone(struct hs_core *core, struct hs_fold_ask *ask)
{
	resume_later(core, hs_list_entry(ask, struct hs_request, ask)->session);
	send_ask(core, ask);
}

static void send_step(struct hs_core *core, struct hs_queue *queue, struct hs_fold_step *step)
{
	struct hs_fold_ask *ask;

	if (step->count > 1) {
		send_together(core, queue, step);
		return;
	}
	ask = hs_list_entry(step->asks.next, struct hs_fold_ask, link);
	hs_list_remove(&ask->link);
	hs_fold_free(&step);
	send_alone(core, ask);
}

/* A few clients that rarely meet pay more for the queue than the engine gains. */
static void judge(const struct hs_core *core, struct hs_queue *queue, uint32_t asks, uint32_t steps)
{
	queue->judged_asks += asks;
	queue->judged_steps += steps;
	if (queue->judged_steps < STEPS_JUDGED)
		return;
	if (queue->judged_asks < core->options.hot.worth * queue->judged_steps)
		queue->resting = RESTS;
	queue->judged_asks = 0;
	queue->judged_steps = 0;
}

/* Those for whom the plan had no place do not go with a later pass of this round: what they have in it may
 * have to be run again. */
static void set_aside(struct hs_core *core, struct hs_queue *queue)
{
	struct hs_link *waiting = &queue->fold.waiting;

	while (!hs_list_empty(waiting)) {
		struct hs_link *link = waiting->next;

		hs_list_remove(link);
		hs_list_append(&queue->later, link);
		if (hs_list_empty(&queue->left))
			hs_list_append(&core->folds->left, &queue->left);
	}
}

static void put_back(struct hs_core *core)
{
	struct hs_link *left = &core->folds->left;

	while (!hs_list_empty(left)) {
		struct hs_queue *queue = hs_list_entry(left->next, struct hs_queue, left);

		hs_list_remove(&queue->left);
		while (!hs_list_empty(&queue->later)) {
			struct hs_link *link = queue->later.next;

			hs_list_remove(link);
			hs_list_append(&queue->fold.waiting, link);
		}
		hs_folds_make_ready(core, queue);
	}
}

static void launch(struct hs_core *core, struct hs_queue *queue)
{
	uint32_t asks = 0, steps = 0, reads = 0, read_steps = 0;
	struct hs_link *waiting = &queue->fold.waiting;
	struct hs_fold_ask *first = hs_list_entry(waiting->next, struct hs_fold_ask, link);
	struct hs_link plan;

	queue->round = core->folds->round;
	if (waiting->next == waiting->prev && hs_fold_is_simple(first)) {
		judge(core, queue, 1, 1);
		send_alone(core, first);
		return;
	}
	hs_list_init(&plan);
	hs_fold_plan(&queue->fold, &plan);
	set_aside(core, queue);
	while (!hs_list_empty(&plan)) {
		struct hs_fold_step *step = hs_list_entry(plan.next, struct hs_fold_step, link);

		asks += step->count;
		steps++;
		if (step->kind == HS_FOLD_READ) {
			reads += step->count;
			read_steps++;
		}
		hs_list_remove(&step->link);
		send_step(core, queue, step);
	}
	judge(core, queue, asks, steps);
	/* All different, a hash read field by field: waiting for each other brings nothing. */
	if (reads >= READS_JUDGED_MIN && reads < 2 * read_steps)
		queue->reads_apart = READS_APART;
}

static bool has_ready(const struct hs_core *core)
{
	return !hs_list_empty(&core->folds->ready) || !hs_list_empty(&core->folds->moving);
}

bool hs_core_needs_flush(const struct hs_core *core)
{
	return has_ready(core) || (core->flight.freed && !hs_list_empty(&core->flight.held));
}

static void begin_round(struct hs_folds *folds)
{
	folds->round++;
	folds->flight = 0;
}

static void run_passes(struct hs_core *core)
{
	struct hs_link *ready = &core->folds->ready;

	while (has_ready(core)) {
		hs_chain_move(core);
		while (!hs_list_empty(ready)) {
			struct hs_queue *queue = hs_list_entry(ready->next, struct hs_queue, ready);

			hs_list_remove(&queue->ready);
			if (hs_folds_may_launch(core->folds, queue) &&
			    !hs_list_empty(&queue->fold.waiting))
				launch(core, queue);
		}
	}
}

bool hs_core_flush(struct hs_core *core, struct hs_now now)
{
	struct hs_folds *folds = core->folds;

	if (!hs_core_needs_flush(core))
		return false;
	hs_core_set_now(core, now);
	hs_flight_resume(core);
	while (has_ready(core)) {
		begin_round(folds);
		folds->busy++;
		run_passes(core);
		begin_round(folds); /* what comes from now on is for another one */
		put_back(core);
		folds->busy--;
		resume_all(core);
	}
	return true;
}

void hs_folds_leave(struct hs_core *core, struct hs_request *request)
{
	if (request->folding)
		hs_chain_leave(core, request);
}

void hs_folds_landed(struct hs_core *core, struct hs_queue *queue)
{
	queue->under_way--;
	if (queue->waiting > 0)
		hs_folds_make_ready(core, queue);
}

void hs_folds_drop(struct hs_core *core, struct hs_session *session)
{
	struct hs_request *last = NULL;

	for (struct hs_link *link = session->requests.next; link != &session->requests;
	     link = link->next) {
		struct hs_request *request = hs_list_entry(link, struct hs_request, link);

		if (!request->folding || !request->waiting)
			continue;
		session->lane[hs_folds_lane(request)]--;
		hs_chain_drop(core, request);
		request->done = true;
		last = request;
	}
	if (last)
		hs_request_finish(core, last);
}
