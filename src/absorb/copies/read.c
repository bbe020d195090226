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

static bool may_read(const struct hs_copies_stage *stage, const struct hs_session *session,
		     const struct hs_cache_entry *entry)
{
	return !session->tracks && !session->watches &&
	       hs_versions_is_after_barrier(&stage->versions, session, entry) &&
	       !hs_versions_has_write(&stage->versions, session, entry->key);
}

struct readers {
	const struct hs_copies_stage *stage;
	const struct hs_cache_entry *entry;
	bool all_may;
};

static void check_reader(void *context, struct hs_request *request, bool followed)
{
	struct readers *readers = context;

	readers->all_may = readers->all_may && !followed &&
			   may_read(readers->stage, request->session, readers->entry);
}

/* Everybody who is to get the answer. None of them may have anything that is sent behind this read before
 * it is answered, without being held back: what stands in line for hot keys (absorb/fold/chain.c). */
static bool may_all_read(const struct hs_copies_stage *stage, struct hs_request *request,
			 const struct hs_cache_entry *entry)
{
	struct readers readers = {stage, entry, true};

	if (request->session != stage->core->self)
		return request->session->delayed == 0 &&
		       request->session != stage->core->stages.admitting &&
		       may_read(stage, request->session, entry);
	return hs_stage_members(stage->core, request, check_reader, &readers) && readers.all_may;
}

/* --- back --- */

static void release(struct hs_copies_stage *stage, struct hs_request *reader)
{
	if (reader->session != stage->core->self)
		hs_versions_session(&stage->versions, reader->session)->detached_reads--;
}

/* As if the engine had answered it, on the copy's partition. */
static void answer(struct hs_copies_stage *stage, struct hs_request *reader,
		   struct hs_request *internal_request)
{
	struct hs_part *part = &reader->parts[0];

	release(stage, reader);
	part->op.partition = internal_request->parts[0].op.partition;
	hs_stage_answer(stage->core, stage->index, reader, part,
			hs_internal_reply(internal_request, 0));
}

static void send_to_original(struct hs_copies_stage *stage, struct hs_request *reader)
{
	release(stage, reader);
	hs_counter_add(&stage->stats.retries, 1);
	hs_stage_send(stage->core, stage->index, reader, &reader->parts[0]);
}

/* The copy takes too long: its reader asks the original instead. What the copy answers after all is dropped. */
static void give_up(struct hs_copies_stage *stage, struct hs_copies_call *call)
{
	struct hs_request *reader = call->reader;

	call->reader = NULL;
	call->place->cool_until_us = stage->core->now.mono_us + HS_COPIES_COOL_DOWN_US;
	send_to_original(stage, reader);
}

static void copy_answered(struct hs_core *core, struct hs_request *internal_request)
{
	struct hs_copies_stage *stage = hs_internal_stage(core, internal_request);
	struct hs_copies_call *call = hs_copies_call(stage, internal_request);
	struct hs_request *reader = call->reader;
	bool accepted;

	if (hs_internal_timed_out(internal_request)) {
		give_up(stage, call);
		return;
	}
	accepted = hs_copies_place_answered(call->place, core->now.mono_us,
					    hs_internal_reply(internal_request, 0));
	if (call->answered_at_once)
		*call->answered_at_once = true;
	/* A client that has gone is told nothing. */
	else if (reader && (accepted || (reader->session->gone && reader->session != core->self)))
		answer(stage, reader, internal_request);
	else if (reader)
		send_to_original(stage, reader);
	hs_copies_unref(&call->copies);
	hs_internal_end(core, internal_request);
}

/* --- there --- */

static struct hs_request *prepare(struct hs_copies_stage *stage, const struct hs_request *reader,
				  struct hs_copies *copies, struct hs_copies_place *place)
{
	const struct hs_op *op = &reader->parts[0].op;
	struct hs_bytes *argv = hs_mem_alloc(op->argc * sizeof *argv);
	struct hs_internal internal = {
		.call = hs_call_of(op->command, op->argc, argv),
		.on_done = copy_answered,
		.slot = place->slot,
		.stage = stage->index + 1,
		.resp = reader->resp > 0 ? reader->resp : reader->session->resp,
		.timeout_us = HS_COPIES_SLOW_US,
	};
	struct hs_request *internal_request;

	memcpy(argv, op->argv, op->argc * sizeof *argv);
	argv[1] = place->name;
	internal_request = hs_internal_prepare(stage->core, &internal);
	hs_mem_free(&argv);
	*hs_copies_call(stage, internal_request) = (struct hs_copies_call){
		.copies = hs_copies_ref(copies),
		.place = place,
	};
	return internal_request;
}

/* False: it was refused at once. */
static bool send(struct hs_copies_stage *stage, struct hs_request *reader, struct hs_copies *copies,
		 struct hs_copies_place *place)
{
	struct hs_request *internal_request = prepare(stage, reader, copies, place);
	bool answered_at_once = false;

	hs_counter_add(&stage->stats.reads, 1);
	hs_copies_place_asked(place, stage->core->now.mono_us);
	hs_copies_call(stage, internal_request)->answered_at_once = &answered_at_once;
	hs_internal_send(stage->core, internal_request);
	if (answered_at_once) {
		hs_counter_add(&stage->stats.retries, 1);
		return false;
	}
	hs_copies_call(stage, internal_request)->answered_at_once = NULL;
	hs_copies_call(stage, internal_request)->reader = reader;
	hs_stage_divert(reader, &reader->parts[0]);
	if (reader->session != stage->core->self)
		hs_versions_session(&stage->versions, reader->session)->detached_reads++;
	return true;
}

enum hs_stage_result hs_copies_depart(void *self, struct hs_request *request, struct hs_part *part)
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
	copied->recent_reads++;
	if (!hs_copies_valid(stage, copied)) {
		hs_copies_consider(stage, copied);
		return HS_PASS;
	}
	if (op->track || !may_all_read(stage, request, copied->copies->entry))
		return HS_PASS;
	copied->used_us = stage->core->now.mono_us;
	place = hs_copies_next(copied->copies, stage->core->now.mono_us);
	if (place != copied->copies->places)
		return send(stage, request, copied->copies, place) ? HS_TAKEN : HS_PASS;
	place->reads++;
	return HS_PASS;
}
