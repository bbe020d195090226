/* The way of a read to a copy, and back.
 *
 *     read ─ its turn is a copy's ─ the same command on the copy's name: an internal call
 *              ┌──────────────────────────────┘
 *              ├─ an answer: it is the read's
 *              ├─ an error, or what a missing key could have answered ─┐
 *              └─ nothing, for too long: it is not waited for ─────────┴─ the original is asked after all
 *
 * The read itself waits as if the engine had its operation. Nobody is worse off for copies: a partition
 * that has stopped keeps the reads of keys that live elsewhere for HS_COPIES_SLOW_US and the time to the next tick,
 * not longer.
 *
 * Order. The original may be asked late. So what a connection writes behind such a read waits for it
 * (hs_versions_session.reads_apart), and a read goes to a copy only if nothing of its connection can be sent behind it by
 * another way, or was let pass already: fold sends a read that it kept when the next command is admitted. Who watches keys or tracks them reads the original always. */
#include "absorb/copies/stage.h"

#include "base/mem.h"

static bool may_get(const struct hs_copies_stage *stage, const struct hs_session *session,
		    const struct hs_cache_entry *entry)
{
	return !session->tracks && !session->watches &&
	       hs_versions_is_since(&stage->versions, session, entry) &&
	       !hs_versions_has_write(&stage->versions, session, entry->key);
}

struct getters {
	const struct hs_copies_stage *stage;
	const struct hs_cache_entry *entry;
	bool all_may;
};

static void look_at(void *context, struct hs_request *request, bool followed)
{
	struct getters *getters = context;

	getters->all_may = getters->all_may && !followed &&
			   may_get(getters->stage, request->session, getters->entry);
}

/* Everybody who is to get the answer. None of them may have anything that is sent behind this read before
 * it is answered, without being held back: what stands in line for hot keys (absorb/fold/chain.c). */
static bool may_all_get(const struct hs_copies_stage *stage, struct hs_request *request,
			const struct hs_cache_entry *entry)
{
	struct getters getters = {stage, entry, true};

	if (request->session != stage->core->self)
		return request->session->delayed == 0 &&
		       request->session != stage->core->stages.admitting &&
		       may_get(stage, request->session, entry);
	return hs_stage_members(stage->core, request, look_at, &getters) && getters.all_may;
}

/* --- back --- */

static void release(struct hs_copies_stage *stage, struct hs_request *asker)
{
	if (asker->session != stage->core->self)
		hs_versions_session(&stage->versions, asker->session)->reads_apart--;
}

/* As if the engine had answered it, on the copy's partition. */
static void answer(struct hs_copies_stage *stage, struct hs_request *asker, struct hs_request *own)
{
	struct hs_part *part = &asker->parts[0];

	release(stage, asker);
	part->op.partition = own->parts[0].op.partition;
	hs_stage_answer(stage->core, stage->index, asker, part, hs_internal_reply(own, 0));
}

static void ask_original(struct hs_copies_stage *stage, struct hs_request *asker)
{
	release(stage, asker);
	hs_counter_add(&stage->stats.again, 1);
	hs_stage_send(stage->core, stage->index, asker, &asker->parts[0]);
}

/* The copy takes too long: its reader asks the original instead. What the copy answers after all is dropped. */
static void give_up(struct hs_copies_stage *stage, struct hs_copies_call *call)
{
	struct hs_request *asker = call->asker;

	call->asker = NULL;
	call->place->cool_until_us = stage->core->now.mono_us + HS_COPIES_COOL_DOWN_US;
	ask_original(stage, asker);
}

static void land(struct hs_core *core, struct hs_request *own)
{
	struct hs_copies_stage *stage = hs_internal_stage(core, own);
	struct hs_copies_call *call = hs_copies_call(stage, own);
	struct hs_request *asker = call->asker;
	bool believed;

	if (hs_internal_is_late(own)) {
		give_up(stage, call);
		return;
	}
	believed =
		hs_copies_place_answered(call->place, core->now.mono_us, hs_internal_reply(own, 0));
	if (call->ended)
		*call->ended = true;
	/* A client that has gone is told nothing. */
	else if (asker && (believed || (asker->session->gone && asker->session != core->self)))
		answer(stage, asker, own);
	else if (asker)
		ask_original(stage, asker);
	hs_copies_unref(&call->copies);
	hs_internal_end(core, own);
}

/* --- there --- */

static struct hs_request *prepare(struct hs_copies_stage *stage, const struct hs_request *asker,
				  struct hs_copies *copies, struct hs_copies_place *place)
{
	const struct hs_op *op = &asker->parts[0].op;
	struct hs_bytes *argv = hs_mem_alloc(op->argc * sizeof *argv);
	struct hs_internal internal = {
		.call = hs_call_of(op->command, op->argc, argv),
		.then = land,
		.slot = place->slot,
		.stage = stage->index + 1,
		.resp = asker->resp > 0 ? asker->resp : asker->session->resp,
		.timeout_us = HS_COPIES_SLOW_US,
	};
	struct hs_request *own;

	memcpy(argv, op->argv, op->argc * sizeof *argv);
	argv[1] = place->name;
	own = hs_internal_prepare(stage->core, &internal);
	hs_mem_free(&argv);
	*hs_copies_call(stage, own) = (struct hs_copies_call){
		.copies = hs_copies_ref(copies),
		.place = place,
	};
	return own;
}

/* False: it was refused at once. */
static bool send(struct hs_copies_stage *stage, struct hs_request *asker, struct hs_copies *copies,
		 struct hs_copies_place *place)
{
	struct hs_request *own = prepare(stage, asker, copies, place);
	bool ended = false;

	hs_counter_add(&stage->stats.reads, 1);
	hs_copies_place_asked(place, stage->core->now.mono_us);
	hs_copies_call(stage, own)->ended = &ended;
	hs_internal_send(stage->core, own);
	if (ended) {
		hs_counter_add(&stage->stats.again, 1);
		return false;
	}
	hs_copies_call(stage, own)->ended = NULL;
	hs_copies_call(stage, own)->asker = asker;
	hs_stage_divert(asker, &asker->parts[0]);
	if (asker->session != stage->core->self)
		hs_versions_session(&stage->versions, asker->session)->reads_apart++;
	return true;
}

enum hs_verdict hs_copies_depart(void *self, struct hs_request *request, struct hs_part *part)
{
	struct hs_copies_stage *stage = self;
	const struct hs_op *op = &part->op;
	struct hs_copies_key *copied;
	struct hs_copies_place *place;

	if (op->kind != HS_OP_COMMAND || !hs_cache_query_fits(op->command, op->argc) ||
	    op->slot == HS_SLOT_NONE || request->parts_count != 1)
		return HS_PASS;
	copied = hs_copies_find(stage, op->slot, op->argv[1]);
	if (!copied)
		return HS_PASS;
	copied->asked++;
	if (!hs_copies_valid(stage, copied)) {
		hs_copies_consider(stage, copied);
		return HS_PASS;
	}
	if (op->track || !may_all_get(stage, request, copied->copies->entry))
		return HS_PASS;
	copied->used_us = stage->core->now.mono_us;
	place = hs_copies_next(copied->copies, stage->core->now.mono_us);
	if (place != copied->copies->places)
		return send(stage, request, copied->copies, place) ? HS_TAKEN : HS_PASS;
	place->reads++;
	return HS_PASS;
}
