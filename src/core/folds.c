/* The queues of hot keys: where requests meet absorb/fold.h.
 *
 *     admit ─┬─ no queue: straight to the engine
 *            ├─ joins: waits ─ … ─ the round ends, nothing is under way ─ planned ─ sent
 *            └─ not now: the session has others under way that it must not overtake
 *
 * A queue has one flight under way at most. Everything that waits is planned and sent together when
 * its last reply is in, at the end of the round of events: what is handed to the engine leaves then
 * anyway, so that an uncontended key waits for nobody, and what came in the same round shares a flight
 * at no cost.
 *
 * Order (law 2). Only what can be folded goes through a queue, and it goes by what other clients ask:
 * the engine takes one thing after the other, whoever sends them. A client's own order is kept by
 * making it wait: while it has requests in a queue (waiting, or sent together with others'), what
 * else it asks of that lane is not taken from its input until they are answered; and while it has
 * others under way in a lane, it does not join a queue there. So whatever a folded request needs, a
 * second try by itself included, nothing of its client can have come in between.
 *
 * Nobody waits in vain. Requests of one client alone are sent as they came when it goes on to other
 * keys; one that has others in front of it goes straight, in its lane's order, if nobody waits for the
 * key and nothing is under way for it (and keeps the queue busy: it is `lone`). It never goes by those
 * who wait: they would not get their turn as long as such come, and among them may be its client's own.
 * Who has many others under way would lose more by waiting than the key gains, and where nobody else
 * is there the key gains nothing at all: such a request goes straight, too, and not through the queue.
 * So do the next ones of a client that was held up while it had sent much more: it pipelines several
 * keys, and would pay a round trip for nearly each of its requests.
 *
 * A key turns hot when its heat is counted (core/count.c), with what is under way for it left as it
 * is: those are the "others" above. It is folded no more when it has been cool for a while and
 * nothing is in its queue. */
#include "core/folds.h"

#include "base/mem.h"

enum {
	READS_APART = 1024,   /* so many go straight when folding them did not help */
	READS_JUDGED_MIN = 8, /* a flight of fewer says nothing about that */
	STEPS_JUDGED = 32,    /* after so many it is seen whether folding was worth it */
	RESTS = 1024,	      /* so many requests go straight when it was not */
};

/* --- a request's way through a queue --- */

static uint32_t lane_of(const struct hs_request *request)
{
	return request->parts[0].op.partition % HS_LANES;
}

/* Remembers that the session has one more in the queue. A lone request in a lane where it has one in
 * another queue is not remembered: it is one of the "others". */
static void become_member(struct hs_request *request)
{
	struct hs_session *session = request->session;
	struct hs_folding *folding;

	if (!session->folding)
		session->folding = hs_mem_zalloc(HS_LANES * sizeof *session->folding);
	folding = &session->folding[lane_of(request)];
	if (folding->queue && folding->queue != request->queue)
		folding = NULL;
	request->folding = folding;
	if (!folding)
		return;
	folding->queue = request->queue;
	folding->members++;
}

static void end_membership(struct hs_request *request)
{
	struct hs_folding *folding = request->folding;

	request->folding = NULL;
	if (folding && --folding->members == 0)
		folding->queue = NULL;
}

static void make_ready(struct hs_core *core, struct hs_queue *queue)
{
	if (queue->under_way == 0 && hs_list_empty(&queue->ready))
		hs_list_append(&core->folds->ready, &queue->ready);
}

/* A request that waits, or is sent with others, is under way for its session like any other. */
static void join(struct hs_core *core, struct hs_request *request)
{
	struct hs_session *session = request->session;

	become_member(request);
	hs_check(request->folding);
	request->folding->joined++;
	session->folded++;
	session->lane[lane_of(request)]++;
	request->ask.client = &request->folding->client;
	request->waiting = true;
	hs_fold_add(&request->queue->fold, &request->ask);
	request->queue->waiting++;
	hs_counter_add(&core->stats.fold_waiting, 1);
	make_ready(core, request->queue);
}

static void leave_fold(struct hs_request *request)
{
	struct hs_session *session = request->session;

	request->folding->joined--;
	session->folded--;
	session->lane[lane_of(request)]--;
}

static void end_wait(struct hs_core *core, struct hs_request *request)
{
	request->waiting = false;
	request->queue->waiting--;
	hs_counter_set(&core->stats.fold_waiting, hs_counter_get(&core->stats.fold_waiting) - 1);
}

/* To the engine as it came. The request may be gone when this returns. */
static void send_lone(struct hs_core *core, struct hs_request *request)
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
		.command = request->command,
		.argv = request->argv,
		.argc = request->argc,
		.raw = hs_request_raw(request),
	};
	hs_fold_classify(&request->ask);
	hs_list_init(&request->ask.link);
	if (hs_folds_others(request->session, lane_of(request), queue) > 0) {
		become_member(request);
		send_lone(core, request);
	} else if (queue->waiting < core->options.fold_waiters_max) {
		join(core, request);
	} else {
		refuse(core, request);
	}
}

/* --- flights --- */

/* While replies are handed out, or requests sent that may be refused at once: sessions that may go on
 * when that is done. */
struct landing {
	struct hs_core *core;
	struct hs_link resuming;
};

static void resume_later(struct landing *landing, struct hs_session *session)
{
	if (hs_list_empty(&session->resuming))
		hs_list_append(&landing->resuming, &session->resuming);
}

static void resume_all(struct landing *landing)
{
	while (!hs_list_empty(&landing->resuming)) {
		struct hs_session *session =
			hs_list_entry(landing->resuming.next, struct hs_session, resuming);

		hs_list_remove(&session->resuming);
		hs_core_resume(landing->core, session);
	}
}

static void answer(void *context, struct hs_fold_ask *ask, struct hs_bytes reply)
{
	struct landing *landing = context;
	struct hs_core *core = landing->core;
	struct hs_request *request = hs_list_entry(ask, struct hs_request, ask);
	struct hs_session *session = request->session;
	uint64_t time_us = core->now.mono_us - request->start_us;

	leave_fold(request);
	end_membership(request);
	resume_later(landing, session);
	request->parts[0].time_us = time_us;
	hs_count_request(core, request, reply);
	hs_step_account(core, session, request->command, request->argc, request->argv, time_us,
			reply.len > 0 && reply.data[0] == '-');
	hs_counter_add(&core->stats.fold_requests, 1);
	if (session->requests.next == &request->link) {
		hs_request_answer(core, request, reply);
	} else {
		hs_buf_append_bytes(&request->reply, reply);
		hs_request_finish(core, request);
	}
	/* One reply may be larger than the limit; one with more behind it may not. */
	if (session->inflight > 0 && !session->gone)
		hs_core_check_output(core, session);
}

static void again(void *context, struct hs_fold_ask *ask)
{
	struct landing *landing = context;
	struct hs_request *request = hs_list_entry(ask, struct hs_request, ask);

	leave_fold(request);
	resume_later(landing, request->session);
	hs_counter_add(&landing->core->stats.fold_again, 1);
	if (!request->session->gone) {
		send_lone(landing->core, request);
		return;
	}
	end_membership(request);
	hs_request_finish(landing->core, request);
}

/* The engine's reply to a step for many. */
static void land(struct hs_core *core, struct hs_request *own)
{
	static const struct hs_fold_calls calls = {.answer = answer, .again = again};
	struct landing landing = {.core = core};

	hs_list_init(&landing.resuming);
	hs_fold_answer(own->step, hs_buf_bytes(&own->parts[0].out), &core->folds->scratch, &calls,
		       &landing);
	hs_fold_free(&own->step);
	hs_buf_clear(&core->folds->scratch, HS_KEEP_BYTES);
	hs_request_put(core, own);
	resume_all(&landing);
}

/* A step for many is a request of the core's own. */
static void send_together(struct hs_core *core, struct hs_queue *queue, struct hs_fold_step *step)
{
	struct hs_request *own = hs_request_get(core, core->self, step->command);

	for (struct hs_link *link = step->asks.next; link != &step->asks; link = link->next)
		end_wait(core, hs_list_entry(link, struct hs_request, ask.link));
	own->queue = queue;
	own->step = step;
	own->then = land;
	own->ask.resp = step->resp;
	own->start_us = hs_list_entry(step->asks.next, struct hs_request, ask.link)->start_us;
	hs_request_split(own, 1);
	own->parts[0].op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.command = step->command,
		.slot = queue->slot,
		.partition = hs_core_partition(core, queue->slot),
		.argv = step->argv,
		.argc = step->argc,
		.raw = step->raw,
		/* Of nobody who has anything else under way. Connections have small numbers. */
		.client = UINT64_MAX - core->folds->sent++,
	};
	queue->under_way++;
	queue->alone = 0;
	hs_counter_add(&core->stats.fold_commands, 1);
	hs_step_submit(core, own, 0);
}

/* The one that waits, by itself. */
static void send_ask(struct hs_core *core, struct hs_fold_ask *ask)
{
	struct hs_request *request = hs_list_entry(ask, struct hs_request, ask);

	hs_list_remove(&ask->link);
	end_wait(core, request);
	leave_fold(request);
	send_lone(core, request);
}

void hs_folds_release(struct hs_core *core, struct hs_queue *queue)
{
	struct hs_link *waiting = &queue->fold.waiting;

	for (uint32_t left = queue->waiting; left > 0; left--)
		send_ask(core, hs_list_entry(waiting->next, struct hs_fold_ask, link));
}

static void send_alone(struct landing *landing, struct hs_fold_ask *ask)
{
	resume_later(landing, hs_list_entry(ask, struct hs_request, ask)->session);
	send_ask(landing->core, ask);
}

static void send_step(struct landing *landing, struct hs_queue *queue, struct hs_fold_step *step)
{
	struct hs_fold_ask *ask;

	if (step->count > 1) {
		send_together(landing->core, queue, step);
		return;
	}
	ask = hs_list_entry(step->asks.next, struct hs_fold_ask, link);
	hs_list_remove(&ask->link);
	hs_fold_free(&step);
	send_alone(landing, ask);
}

/* A few clients that rarely meet pay more for the queue than the engine gains. */
static void judge(const struct hs_core *core, struct hs_queue *queue, uint32_t asks, uint32_t steps)
{
	queue->judged_asks += asks;
	queue->judged_steps += steps;
	if (queue->judged_steps < STEPS_JUDGED)
		return;
	if (queue->judged_asks < core->world.hot.worth * queue->judged_steps)
		queue->resting = RESTS;
	queue->judged_asks = 0;
	queue->judged_steps = 0;
}

static void launch(struct landing *landing, struct hs_queue *queue)
{
	uint32_t asks = 0, steps = 0, reads = 0, read_steps = 0;
	struct hs_link plan;

	if (queue->waiting == 1) {
		judge(landing->core, queue, 1, 1);
		send_alone(landing,
			   hs_list_entry(queue->fold.waiting.next, struct hs_fold_ask, link));
		return;
	}
	hs_list_init(&plan);
	hs_fold_plan(&queue->fold, &plan);
	while (!hs_list_empty(&plan)) {
		struct hs_fold_step *step = hs_list_entry(plan.next, struct hs_fold_step, link);

		asks += step->count;
		steps++;
		if (step->kind == HS_FOLD_READ) {
			reads += step->count;
			read_steps++;
		}
		hs_list_remove(&step->link);
		send_step(landing, queue, step);
	}
	judge(landing->core, queue, asks, steps);
	/* All different, a hash read field by field: waiting for each other brings nothing. */
	if (reads >= READS_JUDGED_MIN && reads < 2 * read_steps)
		queue->reads_apart = READS_APART;
}

bool hs_core_needs_flush(const struct hs_core *core)
{
	return !hs_list_empty(&core->folds->ready);
}

bool hs_core_flush(struct hs_core *core, struct hs_now now)
{
	struct hs_link *ready = &core->folds->ready;
	struct landing landing = {.core = core};

	if (!hs_core_needs_flush(core))
		return false;
	hs_list_init(&landing.resuming);
	hs_core_set_now(core, now);
	while (!hs_list_empty(ready)) {
		struct hs_queue *queue = hs_list_entry(ready->next, struct hs_queue, ready);

		hs_list_remove(&queue->ready);
		if (queue->under_way == 0 && queue->waiting > 0)
			launch(&landing, queue);
		resume_all(&landing);
	}
	return true;
}

void hs_folds_leave(struct hs_core *core, struct hs_request *request)
{
	(void)core;
	if (!request->step)
		end_membership(request);
}

void hs_folds_landed(struct hs_core *core, struct hs_queue *queue)
{
	queue->under_way--;
	if (queue->waiting > 0)
		make_ready(core, queue);
}

void hs_folds_drop(struct hs_core *core, struct hs_session *session)
{
	struct hs_request *last = NULL;

	for (struct hs_link *link = session->requests.next; link != &session->requests;
	     link = link->next) {
		struct hs_request *request = hs_list_entry(link, struct hs_request, link);

		if (!request->queue || !request->waiting)
			continue;
		hs_fold_remove(&request->ask);
		end_wait(core, request);
		leave_fold(request);
		end_membership(request);
		request->queue = NULL;
		request->done = true;
		last = request;
	}
	if (last)
		hs_request_finish(core, last);
}
