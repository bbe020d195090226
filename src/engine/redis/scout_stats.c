/* What servers count for their slots (CLUSTER SLOT-STATS), every few seconds from every master of a
 * cluster. A server that has no such command is not asked again until it was away: then it may have
 * come back as a newer one. What it says stays until its next answer, and is forgotten with it. */
#include "engine/redis/scout_internal.h"

#include "base/err.h"
#include "base/mem.h"

static bool starts(struct hs_bytes text, struct hs_bytes with)
{
	return text.len >= with.len && memcmp(text.data, with.data, with.len) == 0;
}

/* Not for now, as BUSY or LOADING would be, but for as long as it runs as it is. A user who may not
 * ask is not asked again either: each time would be a line in the server's ACL LOG. */
static bool is_final(struct hs_bytes reply)
{
	struct hs_answer head;

	return hs_answer_head(&head, reply.data, reply.len) > 0 && head.type == HS_ANSWER_ERROR &&
	       (starts(head.text, HS_LIT("ERR ")) || starts(head.text, HS_LIT("NOPERM ")));
}

void hs_scout_stats_forget(struct hs_scout_node *node)
{
	node->stats_ms = 0;
	node->stats = (struct hs_slot_look){0};
	node->sums = (struct hs_slot_sums){0};
}

void hs_scout_stats_told(struct hs_scout_node *node, struct hs_bytes reply)
{
	struct hs_scout *scout = node->scout;
	char why[HS_REDIS_WHY_BYTES];

	if (!node->master)
		return; /* since it was asked */
	if (!scout->looks)
		scout->looks = hs_mem_zalloc(sizeof *scout->looks);
	if (hs_slot_stats_look(scout->looks, &node->stats, reply, uv_hrtime() / 1000, &node->sums,
			       why, sizeof why) < 0) {
		uint64_t asked_ms = node->stats_ms;

		hs_log(scout->options.log, HS_LOG_DEBUG, "%s: %s", node->text, why);
		hs_scout_stats_forget(node);
		node->stats_ms = asked_ms;
		node->stats_refused = is_final(reply);
	}
	hs_scout_watch_numbers(scout, node->partition);
}

void hs_scout_stats_tick(struct hs_scout *scout)
{
	uint64_t now_ms = hs_scout_now_ms(scout);

	if (hs_scout_is_single(scout))
		return;
	for (struct hs_link *link = scout->nodes.next; link != &scout->nodes; link = link->next) {
		struct hs_scout_node *node = hs_list_entry(link, struct hs_scout_node, link);

		if (!node->master) {
			hs_scout_stats_forget(node);
		} else if (node->state == HS_SCOUT_UP && !node->stats_refused &&
			   (node->stats_ms == 0 || now_ms - node->stats_ms >= HS_SCOUT_STATS_MS)) {
			node->stats_ms = now_ms;
			hs_scout_node_want(node, HS_ASK_STATS);
		}
	}
}
