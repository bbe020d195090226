/* How many keys the masters have now, for the INFO of a client.
 *
 *     hs_scout_recount ──► round: INFO keyspace to every master ──► all answered, or 500 ms ──► recounted
 *
 * INFO once a second (scout_watch.c) is too old for a client that has just written. One round runs at a
 * time. Requests that come during a round are answered by the next one, all together: a master may have
 * answered the round under way before their writes.
 *
 * A master that does not answer in time is left out of later rounds until it has answered something, so
 * that a frozen one delays INFO once. After a round in which a connection failed, the next one begins at the
 * next tick: however often clients ask, a dead master is connected to ten times a second at most. */
#include "engine/redis/scout_internal.h"

/* The round ends in hs_scout_keys_step: the caller may be in the middle of the list of nodes. */
static void one_less(struct hs_scout *scout)
{
	if (--scout->recount.left == 0)
		uv_async_send(&scout->wake);
}

static void node_done(struct hs_scout_node *node)
{
	if (!node->counting)
		return;
	node->counting = false;
	one_less(node->scout);
}

void hs_scout_keys_told(struct hs_scout_node *node, struct hs_bytes reply)
{
	struct hs_answer head;

	/* A node that refuses INFO keeps the numbers that it has told in another way. */
	if (hs_answer_head(&head, reply.data, reply.len) > 0 && head.type == HS_ANSWER_BULK &&
	    hs_node_info_parse_keyspace(&node->info, head.text) == 0 && node->listed)
		hs_scout_watch_numbers(node->scout, node->partition);
	node->count_late = false;
	node_done(node);
}

void hs_scout_keys_forget(struct hs_scout_node *node)
{
	node->scout->recount.resting |= node->counting;
	node_done(node);
}

static void begin(struct hs_scout *scout)
{
	struct hs_scout_recount *recount = &scout->recount;

	recount->answers = atomic_load(&recount->wanted);
	recount->running = true;
	recount->began_ms = hs_scout_now_ms(scout);
	recount->left = 1; /* this function's, until every node is asked */
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		node->counting = node->master && !node->count_late;
		recount->left += node->counting;
	}
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		if (!node->counting)
			continue;
		/* Numbers count from the first INFO on, which goes ahead of INFO keyspace. */
		if (!node->informed)
			hs_scout_node_want(node, HS_ASK_INFO);
		if (node->counting)
			hs_scout_node_want(node, HS_ASK_KEYS);
	}
	one_less(scout);
}

void hs_scout_keys_step(struct hs_scout *scout)
{
	struct hs_scout_recount *recount = &scout->recount;

	if (recount->running && recount->left == 0) {
		recount->running = false;
		scout->host.recounted(scout->host.context, recount->answers);
	}
	if (!recount->running && !recount->resting &&
	    recount->answers != atomic_load(&recount->wanted))
		begin(scout);
}

static void give_up(struct hs_scout *scout)
{
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		if (!node->counting)
			continue;
		node->count_late = true;
		/* If it were sent later, its answer could be taken for one of the next round, though it
		 * may be older than the writes that came before that round. */
		node->wants &= ~(1u << HS_ASK_KEYS);
		node_done(node);
	}
}

void hs_scout_keys_tick(struct hs_scout *scout)
{
	struct hs_scout_recount *recount = &scout->recount;

	recount->resting = false;
	if (recount->running && hs_scout_now_ms(scout) - recount->began_ms > HS_SCOUT_KEYS_MS_MAX)
		give_up(scout);
	hs_scout_keys_step(scout);
}

/* ---- from any thread ---- */

uint64_t hs_scout_recount(struct hs_scout *scout)
{
	uint64_t number = atomic_fetch_add(&scout->recount.wanted, 1) + 1;

	uv_async_send(&scout->wake);
	return number;
}
