/* Chains: a client's pipelined requests for several hot keys, and the plain requests (without a queue) between
 * them, are sent together and in their order.
 *
 *     client 1   INCR a   INCR b   SET x 1   INCR a
 *     client 2   INCR b   INCR a
 *     client 3   INCR b   INCR a
 *
 *     pass 1     INCR a (client 1)     INCRBY b 2 (clients 2, 3)
 *     pass 2     INCR b (client 1)     INCRBY a 2 (clients 2, 3)
 *     pass 3     SET x 1 (client 1)    INCR a (client 1)
 *
 * A session waits in one queue of a partition bucket at a time; the session's later requests for other keys of the
 * bucket wait behind (chain->behind). A round has as many passes as the longest chain needs. In each pass every
 * queue with waiting members is planned and sent; then the chains whose members were all sent move on to their
 * next queue. With many clients a pass has one batch for each key, whatever the order of keys in each client's
 * pipeline.
 *
 * Why the order holds. All requests of a session in one round go to the same connection of a partition, one after
 * the other: the members of a session with several requests have `fixed_dialect`, so they are sent in the
 * session's RESP version. All requests of a long chain (hs_chain_is_long) carry the round's client id in
 * op->client (on engines with shared connections), and so do the session's other requests in flight in the
 * bucket. The engine keeps the order of the requests with one client id, as it does for a pipelining client. In
 * particular, when a connection is lost or a server redirects requests, the engine does not resend a request if a
 * later request with the same id may have run; and it never resends a write that may have run. Each round has a
 * client id of its own. So if the next queue of a chain has operations in flight, the chain advances only when
 * all its sent requests are answered; until then the client's new commands for other queues are held.
 *
 * A member of a batch may have to be sent again by itself (absorb/fold/fold.h), which must not happen after a
 * later request of the same client was sent. So members with later requests behind them are marked `no_retry`, and
 * the plan puts them only into batches whose error would be their own. An add with `no_retry` needs a number that
 * is far from the limits, as far as heatsink knows (`far_from_overflow`). Otherwise the chain is `exclusive`: no
 * request for another queue is sent after the add until the add is answered. */
#include "absorb/fold/stage.h"

#include "base/mem.h"
#include "core/internal.h"
#include "core/state.h"

struct hs_fold_chain *hs_chain_of(struct hs_fold_stage *stage, struct hs_session *session,
				  uint32_t bucket)
{
	struct hs_fold_session *known = hs_fold_session(stage, session);

	if (known->chains)
		return &known->chains[bucket];
	known->chains = hs_mem_zalloc(HS_PARTITION_BUCKETS * sizeof *known->chains);
	for (uint32_t i = 0; i < HS_PARTITION_BUCKETS; i++) {
		known->chains[i].session = session;
		hs_list_init(&known->chains[i].behind);
		hs_list_init(&known->chains[i].advancing);
	}
	return &known->chains[bucket];
}

static struct hs_fold_request *first_behind(const struct hs_fold_chain *chain)
{
	return hs_list_entry(chain->behind.next, struct hs_fold_request, member.link);
}

/* Whether the command, with all its keys in one slot, becomes exactly one operation for one partition. */
static bool is_plain(const struct hs_command *command)
{
	return (command->place == HS_PLACE_PARTITION || command->place == HS_PLACE_ANY ||
		command->place == HS_PLACE_SPLIT) &&
	       !command->starts;
}

/* Whether a new request for `queue` would directly follow the chain's last request in the same queue. */
static bool is_of_same_queue(const struct hs_fold_chain *chain, const struct hs_fold_queue *queue)
{
	return queue && chain->queue == queue && hs_list_empty(&chain->behind);
}

bool hs_chain_takes(const struct hs_fold_chain *chain, const struct hs_command *command,
		    const struct hs_fold_queue *queue)
{
	if (is_of_same_queue(chain, queue))
		return true;
	/* With CLIENT TRACKING, the invalidations that a session gets depend on the client that made a change. So
	 * the requests of this session keep the session's client id. */
	if (chain->sent > 0 || chain->exclusive || chain->session->tracks)
		return false;
	return queue || is_plain(command);
}

static void wait_in_queue(struct hs_fold_stage *stage, struct hs_fold_chain *chain,
			  struct hs_fold_request *folded)
{
	chain->queue = folded->queue;
	chain->waiting++;
	hs_fold_add(&folded->queue->fold, &folded->member);
	folded->queue->waiting++;
	hs_fold_make_ready(stage, folded->queue);
}

static void count_waiting(struct hs_fold_stage *stage, int change)
{
	struct hs_counter *waiting = &stage->stats.waiting;

	hs_counter_set(waiting, hs_counter_get(waiting) + (uint64_t)(int64_t)change);
}

void hs_chain_add(struct hs_fold_stage *stage, struct hs_fold_chain *chain,
		  struct hs_fold_request *folded)
{
	struct hs_fold_queue *queue = folded->queue;
	struct hs_session *session = folded->request->session;
	uint32_t bucket = hs_fold_bucket(folded->request);

	chain->client.fixed_dialect =
		chain->client.fixed_dialect || hs_fold_others(stage, session, bucket) > 0;
	folded->chain = chain;
	folded->waiting = true;
	folded->member.client = &chain->client;
	session->delayed++;
	if (stage->taken++ == 0)
		hs_fold_want(stage);
	session->in_bucket[bucket]++;
	chain->slots |= UINT64_C(1) << (folded->request->parts[0].op.slot % 64);
	if (queue) {
		chain->exclusive = chain->exclusive || (folded->member.kind == HS_FOLD_ADD &&
							!queue->fold.far_from_overflow);
		count_waiting(stage, 1);
	}
	if (chain->total++ == 0 || is_of_same_queue(chain, queue)) {
		hs_check(queue);
		wait_in_queue(stage, chain, folded);
		return;
	}
	folded->behind = true;
	chain->client.no_retry = true;
	chain->client.fixed_dialect = true;
	hs_list_append(&chain->behind, &folded->member.link);
	if (queue)
		queue->behind++;
}

static struct hs_fold_request *take_behind(struct hs_fold_chain *chain)
{
	struct hs_fold_request *folded = first_behind(chain);

	hs_list_remove(&folded->member.link);
	folded->behind = false;
	if (folded->queue)
		folded->queue->behind--;
	chain->client.no_retry = !hs_list_empty(&chain->behind);
	return folded;
}

void hs_chain_drop(struct hs_fold_stage *stage, struct hs_fold_request *folded)
{
	struct hs_fold_chain *chain = folded->chain;

	if (folded->queue)
		count_waiting(stage, -1);
	hs_list_remove(&folded->member.link);
	if (folded->behind) {
		folded->behind = false;
		if (folded->queue)
			folded->queue->behind--;
	} else {
		hs_check(folded->queue);
		folded->queue->waiting--;
		chain->waiting--;
	}
	folded->waiting = false;
	folded->queue = NULL;
	chain->sent++; /* hs_chain_leave decrements `sent` */
	hs_chain_leave(stage, folded);
	if (hs_list_empty(&chain->behind))
		hs_list_remove(&chain->advancing);
	chain->client.no_retry = !hs_list_empty(&chain->behind);
}

/* Puts the chain into stage->advancing if its `behind` list has requests and none of its requests waits in a
 * queue. */
static void may_advance(struct hs_fold_stage *stage, struct hs_fold_chain *chain)
{
	if (chain->waiting > 0 || hs_list_empty(&chain->behind) ||
	    !hs_list_empty(&chain->advancing))
		return;
	hs_list_append(&stage->advancing, &chain->advancing);
	hs_stage_want(stage->core, stage->index, HS_POINT_FLUSH, true);
}

void hs_chain_sent(struct hs_fold_stage *stage, struct hs_fold_request *folded)
{
	struct hs_fold_chain *chain = folded->chain;

	folded->waiting = false;
	folded->queue->waiting--;
	count_waiting(stage, -1);
	chain->waiting--;
	chain->sent++;
	may_advance(stage, chain);
}

void hs_chain_leave(struct hs_fold_stage *stage, struct hs_fold_request *folded)
{
	struct hs_fold_chain *chain = folded->chain;

	folded->chain = NULL;
	folded->request->session->delayed--;
	if (--stage->taken == 0)
		hs_fold_want(stage);
	chain->sent--;
	if (--chain->total == 0) {
		chain->queue = NULL;
		chain->exclusive = false;
		chain->slots = 0;
		chain->client.fixed_dialect = false;
	}
	if (chain->sent == 0)
		may_advance(stage, chain);
}

bool hs_chain_is_long(const struct hs_fold_chain *chain)
{
	return chain->sent > 0 || !hs_list_empty(&chain->behind);
}

uint64_t hs_chain_client(struct hs_fold_stage *stage)
{
	if (stage->round_client == 0)
		stage->round_client = hs_internal_client(stage->core);
	return stage->round_client;
}

/* Sets the client id of the session's requests, in flight or delayed, in the chain's bucket. `client` 0: the
 * session's own id. */
static void set_client(struct hs_fold_stage *stage, const struct hs_fold_chain *chain,
		       uint64_t client)
{
	const struct hs_session *session = chain->session;
	uint32_t bucket = (uint32_t)(chain - hs_fold_session(stage, session)->chains);

	hs_list_each(struct hs_request, request, &session->requests, link) {
		for (uint32_t i = 0; i < request->parts_count; i++) {
			struct hs_op *op = &request->parts[i].op;

			if (op->kind == HS_OP_PEER || op->kind == HS_OP_HOST ||
			    op->partition % HS_PARTITION_BUCKETS != bucket)
				continue;
			op->client = client > 0 ? client : session->id;
			if (request->parts[i].taken != HS_PART_FREE)
				/* the core uses it when it sends the request */
				request->client = client;
		}
	}
}

static void relabel(struct hs_fold_stage *stage, struct hs_fold_chain *chain, bool relabelled)
{
	if (chain->relabelled == relabelled)
		return;
	chain->relabelled = relabelled;
	stage->relabelled += relabelled ? 1u : UINT32_MAX;
	hs_fold_session(stage, chain->session)->relabelled += relabelled ? 1u : UINT32_MAX;
	hs_fold_want(stage);
}

void hs_chain_use_client_for_others(struct hs_fold_stage *stage, struct hs_fold_chain *chain)
{
	/* An engine without shared connections does not use the client id, and its thread may be reading the
	 * operation. */
	if (!stage->core->world.shared_connections)
		return;
	set_client(stage, chain, hs_chain_client(stage));
	relabel(stage, chain, true);
}

void hs_chain_restore_client(struct hs_fold_stage *stage, struct hs_fold_chain *chain)
{
	if (!chain->relabelled)
		return;
	set_client(stage, chain, 0);
	relabel(stage, chain, false);
}

void hs_chain_use_client(struct hs_fold_stage *stage, struct hs_fold_request *folded)
{
	struct hs_request *request = folded->request;

	if (!stage->core->world.shared_connections)
		return;
	request->client = hs_chain_client(stage);
	if (hs_fold_others(stage, request->session, hs_fold_bucket(request)) > 0)
		hs_chain_use_client_for_others(stage, folded->chain);
}

/* Sends a request that has no queue. The request may be freed when this function returns. */
static void send_plain(struct hs_fold_stage *stage, struct hs_fold_chain *chain,
		       struct hs_fold_request *folded)
{
	folded->waiting = false;
	hs_chain_use_client(stage, folded);
	chain->queue = NULL;
	chain->sent++;
	chain->session->in_bucket[hs_fold_bucket(folded->request)]--;
	hs_stage_send(stage->core, stage->index, folded->request, &folded->request->parts[0]);
}

static void advance(struct hs_fold_stage *stage, struct hs_fold_chain *chain)
{
	while (!hs_list_empty(&chain->behind)) {
		struct hs_fold_queue *queue = first_behind(chain)->queue;

		if (chain->waiting > 0 && queue != chain->queue)
			break;
		if (!queue) {
			send_plain(stage, chain, take_behind(chain));
			continue;
		}
		/* The queue cannot send in this round. The requests that the chain has sent carry this round's
		 * client id; a request sent in a later round would carry another id, so the engine would not keep
		 * the order. */
		if (chain->sent > 0 && !hs_fold_may_launch(stage, queue))
			break;
		wait_in_queue(stage, chain, take_behind(chain));
	}
	if (hs_list_empty(&chain->behind))
		/* The `behind` list is empty. send_plain may have sent a request that the engine answered at once;
		 * hs_chain_leave then put the chain back into `advancing`. */
		hs_list_remove(&chain->advancing);
}

void hs_chain_advance(struct hs_fold_stage *stage)
{
	struct hs_link *advancing = &stage->advancing;
	struct hs_link now;

	hs_list_init(&now);
	while (!hs_list_empty(advancing)) {
		struct hs_link *link = advancing->next;

		hs_list_remove(link);
		hs_list_append(&now, link);
	}
	while (!hs_list_empty(&now)) {
		struct hs_fold_chain *chain =
			hs_list_entry(now.next, struct hs_fold_chain, advancing);

		hs_list_remove(&chain->advancing);
		advance(stage, chain);
	}
}
