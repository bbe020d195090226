/* Decides for each command: enter the queue of its hot key, go directly to the engine, or wait in the client's
 * input. The head of stage.c explains why. */
#include "absorb/fold/stage.h"

enum {
	BEHIND_MAX = 8, /* with as many other requests in flight a client's request is not folded */
	/* more pipelined input than this: the client does not wait for each answer */
	DEEP_BYTES = 128,
	/* after a client with more pipelined input than DEEP_BYTES was held: number of its foldable requests
	 * that are sent directly */
	UNFOLDED = 64,
};

/* The session is the only one with requests in flight for the key, and nothing waits. */
static bool is_only_user(const struct hs_session *session, const struct hs_fold_queue *queue)
{
	return queue->sole_client == session->id && queue->waiting == 0;
}

/* The call's fold kind and arguments, computed once per call. */
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

/* The queue for a command whose keys share a slot; NULL unless it has one key with a queue and is foldable. */
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
	/* A client with NOLOOP gets no invalidation for its own writes: they must keep its client id. */
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

/* A write outside the queues may set any number: forget that the number was far from the limits. */
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
		return; /* it moves the number too little */
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

/* Empties the queue if only this session waits in it. */
static bool release_if_sole(struct hs_fold_stage *stage, const struct hs_fold_chain *chain)
{
	if (!chain->queue || chain->waiting < chain->total || chain->queue->in_flight > 0 ||
	    chain->queue->waiting > chain->total)
		return false;
	hs_fold_release(stage, chain->queue);
	return true;
}

/* Whether the command must wait for requests in its session's chains. */
static bool overtakes(struct hs_fold_stage *stage, const struct hs_session *session,
		      const struct hs_call *call, const struct hs_fold_queue *queue)
{
	/* It has no key or several; a transaction's keys are not looked at here. */
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
		/* Another bucket does not matter, unless the slot may have moved from there. */
		if (!anywhere && i != bucket && !(chain->slots >> call->slot % 64 & 1))
			continue;
		if (!release_if_sole(stage, chain))
			return true;
	}
	return false;
}

/* Whether the session has a request of the slot in flight in another bucket. Such a request was sent when the
 * slot belonged to another partition, and will be redirected. The engine keeps the order of a client's requests
 * by the client id. A folded request carries its batch's id, which fold gives only to the session's requests in
 * the same bucket. */
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

/* False: the command must wait. True: `stage->admitted` is the queue that it enters, or NULL. */
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
	/* With requests of its chain in the bucket, the request may as well wait in a queue. */
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
