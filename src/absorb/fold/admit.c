/* Who may join the queue of a hot key, who goes straight, and who has to wait with its input: see the
 * head of stage.c for why. */
#include "absorb/fold/stage.h"

enum {
	BEHIND_MAX = 8,	  /* others under way: with more the request is not folded */
	DEEP_BYTES = 128, /* more input than that: its client does not wait for single answers */
	UNFOLDED = 64,	  /* so many of such a client go straight when it was held up */
};

/* The session has something under way for the key, and nobody else has, nor waits. */
static bool is_only_user(const struct hs_session *session, const struct hs_fold_queue *queue)
{
	return queue->sole_client == session->id && queue->waiting == 0;
}

/* What the call is to folding, worked out once. */
static const struct hs_fold_member *classify(struct hs_fold_stage *stage,
					     const struct hs_session *session,
					     const struct hs_call *call)
{
	if (!stage->admitted_member.command) {
		stage->admitted_member = (struct hs_fold_member){.command = call->command,
								 .argv = call->argv,
								 .argc = call->argc,
								 .resp = session->resp};
		hs_fold_classify(&stage->admitted_member);
	}
	return &stage->admitted_member;
}

/* The queue for a command whose keys share a slot, if it has one key with a queue and can be folded. */
static struct hs_fold_queue *queue_for(struct hs_fold_stage *stage, struct hs_session *session,
				       struct hs_call *call)
{
	struct hs_fold_session *known = hs_fold_session(stage, session);
	struct hs_fold_queue *queue;
	size_t at;

	if (!hs_hot_may_have(&stage->core->hot_table, call->slot) || !stage->core->options.fold)
		return NULL;
	at = hs_call_only_key(call);
	queue = at > 0 ? hs_fold_find(stage, call, at) : NULL;
	if (queue && queue->bypass > 0) {
		queue->bypass--;
		return NULL;
	}
	if (!queue || classify(stage, session, call)->kind == HS_FOLD_NOT)
		return NULL;
	/* Who made a change matters to a client that does not want to hear of its own (NOLOOP). */
	if (session->tracks && (call->command->flags & HS_CMD_WRITE))
		return NULL;
	if (known->unfolded > 0) {
		known->unfolded--;
		return NULL;
	}
	if (queue->bypass_reads > 0 && (call->command->flags & HS_CMD_READONLY)) {
		queue->bypass_reads--;
		return NULL;
	}
	return queue;
}

/* A write that goes past the queues may leave a number anywhere: that it was far from the limits when
 * last seen says nothing any more. */
static void note_write(struct hs_fold_stage *stage, const struct hs_session *session,
		       struct hs_call *call)
{
	const struct hs_command *command = call->command;
	const struct hs_fold_member *member;
	const struct hs_fold_queue *only = NULL;
	bool one_slot = call->slots == HS_CALL_SLOTS_ONE;
	size_t at;

	if (one_slot && !hs_hot_may_have(&stage->core->hot_table, call->slot))
		return;
	if ((command->flags & HS_CMD_READONLY) ||
	    (command->place == HS_PLACE_CORE && command->id != HS_CMD_ID_EXEC))
		return;
	member = classify(stage, session, call);
	if (member->kind == HS_FOLD_ADD && hs_fold_is_simple(member))
		return; /* not far */
	at = one_slot ? hs_call_only_key(call) : 0;
	if (at > 0)
		only = hs_fold_find(stage, call, at);
	if (at > 0 && !only)
		return;
	hs_list_each(struct hs_fold_queue, queue, &stage->queues, link) {
		if (only ? queue == only : !one_slot || queue->hot->slot == call->slot)
			queue->fold.far_from_overflow = false;
	}
}

/* Sends what the session has waiting in a queue where nobody else is. */
static bool release_if_sole(struct hs_fold_stage *stage, const struct hs_fold_chain *chain)
{
	if (!chain->queue || chain->waiting < chain->total || chain->queue->in_flight > 0 ||
	    chain->queue->waiting > chain->total)
		return false;
	hs_fold_release(stage, chain->queue);
	return true;
}

/* Whether a command must wait for what its session has in its chains. */
static bool overtakes(struct hs_fold_stage *stage, const struct hs_session *session,
		      const struct hs_call *call, const struct hs_fold_queue *queue)
{
	/* No key, or several; a transaction's are not told here. */
	bool anywhere = call->slots != HS_CALL_SLOTS_ONE;
	uint32_t bucket = hs_core_partition(stage->core, call->slot) % HS_PARTITION_BUCKETS;

	switch (call->command->place) {
	case HS_PLACE_CORE:
		if (call->command->id != HS_CMD_ID_EXEC)
			return false;
		break;
	case HS_PLACE_HOST:
	case HS_PLACE_WORKERS:
		return false;
	default:
		break;
	}
	for (uint32_t i = 0; i < HS_PARTITION_BUCKETS; i++) {
		const struct hs_fold_chain *chain = &hs_fold_session(stage, session)->chains[i];

		if (chain->total == 0)
			continue;
		if (!anywhere && i == bucket && hs_chain_takes(chain, call->command, queue))
			continue;
		/* Of another bucket, unless the slot has moved: not both at a time. */
		if (!anywhere && i != bucket && !(chain->slots >> call->slot % 64 & 1))
			continue;
		if (!release_if_sole(stage, chain))
			return true;
	}
	return false;
}

/* Whether the session has a request of the slot in flight in another bucket: the request was sent when the slot belonged to
 * another partition, and will be redirected. The engine keeps the order of a client's requests by the client id. A folded
 * request has the id of its batch, which fold gives only to the session's requests in the same bucket. */
static bool has_elsewhere(const struct hs_session *session, uint16_t slot, uint32_t bucket)
{
	hs_list_each(const struct hs_request, request, &session->requests, link) {
		for (uint32_t i = 0; !request->done && i < request->parts_count; i++) {
			const struct hs_op *op = &request->parts[i].op;

			if (op->slot == slot && op->partition % HS_PARTITION_BUCKETS != bucket)
				return true;
		}
	}
	return false;
}

static bool follows_redirected(const struct hs_fold_stage *stage, const struct hs_session *session,
			       const struct hs_call *call, const struct hs_fold_queue *queue)
{
	const struct hs_fold_chain *chains = hs_fold_session(stage, session)->chains;
	uint32_t bucket;

	if (!stage->core->world.shared_connections || hs_core_partitions(stage->core) < 2 ||
	    session->inflight == 0 || call->slots != HS_CALL_SLOTS_ONE)
		return false;
	bucket = hs_core_partition(stage->core, call->slot) % HS_PARTITION_BUCKETS;
	return (queue || (chains && chains[bucket].total > 0)) &&
	       has_elsewhere(session, call->slot, bucket);
}

/* False: it must wait. Else `stage->admitted` is the queue it goes through, or NULL. */
static bool admit(struct hs_fold_stage *stage, struct hs_session *session, struct hs_call *call)
{
	struct hs_fold_queue *queue = NULL;
	uint32_t bucket, others;

	if (call->slots == HS_CALL_SLOTS_ONE)
		queue = queue_for(stage, session, call);
	if (session->delayed > 0 && hs_fold_session(stage, session)->chains &&
	    overtakes(stage, session, call, queue))
		return false;
	if (follows_redirected(stage, session, call, queue))
		return false;
	if (!queue) {
		note_write(stage, session, call);
		return true;
	}
	bucket = hs_core_partition(stage->core, call->slot) % HS_PARTITION_BUCKETS;
	others = hs_fold_others(stage, session, bucket);
	/* In the middle of a chain it may as well wait in a queue. */
	if (others == session->in_bucket[bucket] && others > 0 &&
	    (others >= BEHIND_MAX || is_only_user(session, queue)))
		note_write(stage, session, call);
	else
		stage->admitted = queue;
	return true;
}

enum hs_stage_result hs_fold_admit(void *self, struct hs_session *session, struct hs_call *call)
{
	struct hs_fold_stage *stage = self;

	stage->admitted = NULL;
	stage->admitted_call = call->number;
	stage->admitted_member.command = NULL;
	hs_call_slots(call);
	if (admit(stage, session, call))
		return HS_PASS;
	if (call->pipelined_bytes > DEEP_BYTES)
		hs_fold_session(stage, session)->unfolded = UNFOLDED;
	return HS_HOLD;
}
