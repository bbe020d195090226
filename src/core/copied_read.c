/* The way of a read to a copy, and back.
 *
 *     read ─ its turn is a copy's ─ the same command on the copy's name: a request of the core's own
 *              ┌──────────────────────────────┘
 *              ├─ an answer: it is the read's
 *              ├─ an error, or what a missing key could have answered ─┐
 *              └─ nothing, for too long: it is not waited for ─────────┴─ the original is asked after all
 *
 * The read itself waits as if the engine had its operation. Nobody is worse off for copies: a partition
 * that has stopped keeps the reads of keys that live elsewhere for HS_COPIES_SLOW_US, not longer.
 *
 * Order. The original may be asked late. So what a connection writes behind such a read waits for it
 * (session->filling), and a read goes to a copy only if nothing of its connection can be sent behind it by
 * another way. Who watches keys or tracks them reads the original always. */
#include "core/copied.h"

#include "base/mem.h"
#include "core/cached.h"
#include "core/internal.h"

static bool may_get(const struct hs_session *session, const struct hs_kept *kept)
{
	return !session->tracker && !session->watches && hs_cached_is_since(kept, session) &&
	       !hs_cached_has_write(session, kept->key);
}

struct getters {
	const struct hs_kept *kept;
	bool all_may;
};

static void look_at(void *context, struct hs_request *request, bool followed)
{
	struct getters *getters = context;

	getters->all_may =
		getters->all_may && !followed && may_get(request->session, getters->kept);
}

/* Everybody who is to get the answer. None of them may have anything that is sent behind this read before
 * it is answered, without being held back: what stands in line for hot keys (core/folds_chain.c). */
static bool may_all_get(const struct hs_core *core, struct hs_request *request,
			const struct hs_kept *kept)
{
	struct getters getters = {kept, true};

	if (request->session != core->self)
		return request->session->taken == 0 && may_get(request->session, kept);
	return hs_stages_askers(core, request, look_at, &getters) && getters.all_may;
}

/* --- back --- */

static void count_inflight(struct hs_core *core, const struct hs_op *op)
{
	if (HS_CORE_HEAT && core->world.heat)
		hs_heat_inflight(core->world.heat, op->partition, 1);
}

static void release(struct hs_core *core, struct hs_request *asker)
{
	if (asker->session != core->self)
		asker->session->filling--;
}

/* As if the engine had answered it, on the copy's partition. */
static void answer(struct hs_core *core, struct hs_request *asker, struct hs_request *own)
{
	struct hs_op *op = &asker->parts[0].op;

	release(core, asker);
	op->partition = own->parts[0].op.partition;
	count_inflight(core, op); /* until now it was the core's own that was */
	op->answer = hs_buf_bytes(&own->parts[0].out);
	hs_core_complete(core, core->now, op);
}

static void ask_original(struct hs_core *core, struct hs_request *asker)
{
	struct hs_op *op = &asker->parts[0].op;
	enum hs_submit submitted;

	release(core, asker);
	hs_counter_add(&core->stats.copies_again, 1);
	count_inflight(core, op);
	op->received = core->now;
	submitted = core->world.calls->submit(core->world.context, op);
	hs_check(submitted != HS_SUBMIT_REFUSED); /* of engines that answer at once */
	if (submitted == HS_SUBMIT_DONE)
		hs_core_complete(core, core->now, op);
}

static void end(struct hs_core *core, struct hs_request *own)
{
	hs_copies_unref(&own->copies);
	hs_internal_end(core, own);
}

/* The copy takes too long: its reader asks the original instead. What the copy answers after all is nobody's. */
static void give_up(struct hs_core *core, struct hs_request *own)
{
	struct hs_request *asker = own->asker;

	own->asker = NULL;
	own->place->shunned_us = core->now.mono_us + HS_COPIES_SHUN_US;
	ask_original(core, asker);
}

static void land(struct hs_core *core, struct hs_request *own)
{
	struct hs_request *asker = own->asker;
	bool believed;

	if (hs_internal_is_late(own)) {
		give_up(core, own);
		return;
	}
	believed = hs_place_answered(own->place, core->now.mono_us, hs_internal_reply(own, 0));
	if (core->copying->sending == own)
		core->copying->sending = NULL;
	/* Who has gone is told nothing. */
	else if (asker && (believed || (asker->session->gone && asker->session != core->self)))
		answer(core, asker, own);
	else if (asker)
		ask_original(core, asker);
	end(core, own);
}

/* --- there --- */

static struct hs_request *prepare(struct hs_core *core, const struct hs_request *asker,
				  struct hs_copies *copies, struct hs_place *place)
{
	const struct hs_op *op = &asker->parts[0].op;
	struct hs_bytes *argv = hs_mem_alloc(op->argc * sizeof *argv);
	struct hs_internal internal = {
		.call = hs_call_of(op->command, op->argc, argv),
		.then = land,
		.slot = place->slot,
		.resp = op->resp,
		.timeout_us = HS_COPIES_SLOW_US,
	};
	struct hs_request *own;

	memcpy(argv, op->argv, op->argc * sizeof *argv);
	argv[1] = place->name;
	own = hs_internal_prepare(core, &internal);
	hs_mem_free(&argv);
	own->copies = hs_copies_ref(copies);
	own->place = place;
	return own;
}

/* False: it was refused at once. */
static bool send(struct hs_core *core, struct hs_request *asker, struct hs_copies *copies,
		 struct hs_place *place)
{
	struct hs_copying *copying = core->copying;
	struct hs_request *own = prepare(core, asker, copies, place);

	hs_counter_add(&core->stats.copies_reads, 1);
	hs_place_asked(place, core->now.mono_us);
	copying->sending = own;
	hs_internal_send(core, own);
	if (!copying->sending) {
		hs_counter_add(&core->stats.copies_again, 1);
		return false;
	}
	copying->sending = NULL;
	own->asker = asker;
	if (asker->session != core->self)
		asker->session->filling++;
	return true;
}

bool hs_copied_read(struct hs_core *core, struct hs_request *request)
{
	const struct hs_op *op = &request->parts[0].op;
	struct hs_copied *copied;
	struct hs_place *place;
	struct hs_ask ask;

	/* The core's own read of a copy is nobody's. */
	if (!op->command->keep || op->slot == HS_SLOT_NONE || request->parts_count != 1 ||
	    request->place)
		return false;
	copied = hs_copied_find(core, op->slot, op->argv[1]);
	if (!copied || !hs_ask_init(&ask, 0, op->command, op->argc, op->argv))
		return false;
	copied->asked++;
	if (!hs_copied_valid(core, copied)) {
		hs_copied_want(core, copied);
		return false;
	}
	if (op->track || !may_all_get(core, request, copied->copies->kept))
		return false;
	copied->used_us = core->now.mono_us;
	place = hs_copies_next(copied->copies, core->now.mono_us);
	if (place != copied->copies->places)
		return send(core, request, copied->copies, place);
	place->reads++;
	return false;
}
