/* Decides for each command whether it enters the queue of its hot key, goes to the engine directly, or waits in
 * the client's input. The head of stage.c explains why. */
#include "absorb/fold/stage.h"

enum {
	/* A client's request is not folded while the client has this many other requests in flight in the
	 * bucket. */
	BEHIND_MAX = 8,
	/* With more bytes of pipelined input than this, the client evidently does not wait for each answer. */
	DEEP_BYTES = 128,
	/* When a client with more than DEEP_BYTES of pipelined input was held, this many of its next foldable
	 * requests are sent directly. */
	UNFOLDED = 64,
};

/* Whether this session sent all requests in flight for the queue's key (if none is in flight, the last ones), and
 * no request waits in the queue. */
static bool is_only_user(const struct hs_session *session, const struct hs_fold_queue *queue)
{
	return queue->sole_client == session->id && queue->waiting == 0;
}

/* Returns the call's fold kind and arguments. Computes them at the first call for each command. */
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

/* The queue that a command with all keys in one slot may enter. NULL: the command does not have exactly one key,
 * the key has no queue, the command is not foldable, or folding is bypassed for the key or the session. */
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
	/* A client that has turned on CLIENT TRACKING with NOLOOP gets no invalidation for its own writes: its
	 * writes must be sent under its own client id. */
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

/* Clears `far_from_overflow` of the queues whose key the command may set to any number. For a command that is sent
 * outside the queues. */
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
		return; /* a small add leaves the number far from the limits */
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

/* If only this session's members wait in the chain's queue, and nothing is in flight, sends all of them. False:
 * not so; the queue is unchanged. */
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
	/* The command has no keys, keys in several slots, or is EXEC, whose queued commands are not looked at
	 * here. */
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
		/* A chain of another bucket does not matter, unless it has a request of the same slot, which may
		 * have moved to another partition since. */
		if (!anywhere && i != bucket && !(chain->slots >> call->slot % 64 & 1))
			continue;
		if (!release_if_sole(stage, chain))
			return true;
	}
	return false;
}

/* Whether the session has a request of the slot in flight in another bucket. Such a request was sent when another
 * partition owned the slot, and will be redirected. The engine keeps the order of requests with the same client
 * id. A folded request carries the client id of its batch, and fold gives this id only to the session's requests
 * in the same bucket. So the engine would not keep the order of the two requests. */
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

/* True: the command goes on, and `stage->admitted` is the queue to enter, or NULL. False: the command must wait in
 * the client's input. */
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
	/* If the session has requests in a chain of the bucket, the request joins the queue in any case, because
	 * it must wait behind them anyway. */
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
