/* A read's path to a copy, and back.
 *
 *     read ─ the next place is a copy ─ the same command on the copy's name: an internal call
 *              ┌────────────────────────────┘
 *              ├─ an answer: it becomes the read's answer
 *              ├─ an error, or an answer that a missing key could give ─┐
 *              └─ no answer for too long ───────────────────────────────┴─ the read goes to the original
 *
 * The client's read stays in flight meanwhile, as if the engine had it. A stopped partition delays reads of
 * keys of other partitions by at most HS_COPIES_SLOW_US plus one tick.
 *
 * Order. The original may be read late. So the session's later writes wait for such a read
 * (hs_versions_session.detached_reads), and a read goes to a copy only if no later command of its session can
 * reach the engine before it is answered. That includes commands that an earlier stage has already passed: fold
 * may send a read that it held back while the next command is admitted. A session that uses WATCH or CLIENT
 * TRACKING always reads the original. */
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

/* Whether the read may go to a copy. Each client request that this read will answer must be allowed to read a
 * copy (may_read), and must not be followed by a request of its session that another stage may send before the
 * read is answered (absorb/fold/chain.c). */
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

/* Answers the read as if the engine had, on the copy's partition. */
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

/* The copy takes too long: the read goes to the original, and a late answer of the copy is dropped. */
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
	/* Clients that have gone need no second try. */
	else if (reader && (accepted || (reader->session->gone && reader->session != core->self)))
		answer(stage, reader, internal_request);
	else if (reader)
		send_to_original(stage, reader);
	hs_copies_unref(&call->copies);
	hs_internal_end(core, internal_request);
}

/* --- out --- */

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

/* False: the call was answered at once, with an error; the read goes to the original. */
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
