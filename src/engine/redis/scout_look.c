/* Looking for the topology. Any node can tell it, so they are asked one by one in random order,
 * those that are connected first, until an answer is good:
 *
 *     no answer, no cluster       the next one; after a moment another one is asked beside it
 *     another cluster's           the next one
 *     older than what is known    the next one; it is taken when nobody knows better
 *     the same                    done
 *     a change                    routes for the workers, partitions for everybody
 *
 * How old an answer is, is told by the cluster's epoch, which grows with every change of owner: a
 * node that was cut off from the others must not bring back what was. */
#include "engine/redis/scout_internal.h"

#include "base/mem.h"
#include "base/num.h"
#include "core/unserved.h"

#include <stdio.h>

static void ask_another(struct hs_scout *scout);

/* ---- when ---- */

static void on_look_timer(uv_timer_t *timer)
{
	hs_scout_look_start(timer->data);
}

static void schedule(struct hs_scout *scout, uint64_t delay_ms)
{
	uv_timer_start(&scout->look_timer, on_look_timer, delay_ms, 0);
}

static void schedule_next(struct hs_scout *scout)
{
	double jitter = 0.75 + 0.5 * hs_prng_unit(&scout->prng);

	schedule(scout, (uint64_t)((double)scout->options.refresh_ms * jitter));
}

void hs_scout_look_soon(struct hs_scout *scout)
{
	uint64_t since_ms = hs_scout_now_ms(scout) - scout->look_ended_ms;
	uint64_t due_ms;

	if (hs_scout_is_single(scout) || scout->look.running || !scout->topology)
		return; /* it is looked for anyway */
	if (since_ms > 10 * (uint64_t)HS_SCOUT_GAP_MS_MAX)
		scout->gap_ms = HS_SCOUT_GAP_MS_MIN;
	due_ms = since_ms < scout->gap_ms ? scout->gap_ms - since_ms : 0;
	if (!uv_is_active((uv_handle_t *)&scout->look_timer) ||
	    uv_timer_get_due_in(&scout->look_timer) > due_ms)
		schedule(scout, due_ms);
}

/* ---- whom ---- */

static void shuffle(struct hs_scout *scout, struct hs_scout_node **nodes, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t other = (size_t)hs_prng_below(&scout->prng, i);
		struct hs_scout_node *node = nodes[i - 1];

		nodes[i - 1] = nodes[other];
		nodes[other] = node;
	}
}

static void choose_order(struct hs_scout *scout)
{
	struct hs_scout_look *look = &scout->look;
	size_t up = 0, down = scout->nodes_count;

	look->order = hs_mem_alloc(scout->nodes_count * sizeof(struct hs_scout_node *));
	look->count = scout->nodes_count;
	for (struct hs_link *link = scout->nodes.next; link != &scout->nodes; link = link->next) {
		struct hs_scout_node *node = hs_list_entry(link, struct hs_scout_node, link);

		look->order[node->state == HS_SCOUT_UP ? up++ : --down] = node;
	}
	shuffle(scout, look->order, up);
	shuffle(scout, look->order + up, look->count - up);
}

void hs_scout_look_start(struct hs_scout *scout)
{
	struct hs_scout_look *look = &scout->look;

	if (look->running)
		return;
	uv_timer_stop(&scout->look_timer);
	atomic_store(&scout->surprised, false);
	*look = (struct hs_scout_look){.running = true};
	choose_order(scout);
	ask_another(scout);
}

static void end(struct hs_scout *scout)
{
	struct hs_scout_look *look = &scout->look;

	for (size_t i = 0; i < look->next; i++)
		look->order[i]->looked_at = false;
	hs_topology_destroy(&look->behind);
	hs_mem_free(&look->order);
	look->next = 0;
	look->running = false;
	scout->look_ended_ms = hs_scout_now_ms(scout);
}

void hs_scout_look_deinit(struct hs_scout *scout)
{
	end(scout);
	hs_topology_destroy(&scout->topology);
}

/* ---- answers ---- */

/* How many partitions can be told apart is fixed with the first topology, or without one when
 * creation does not wait any longer. */
static uint16_t fix_capacity(struct hs_scout *scout, const struct hs_topology *topology)
{
	uint32_t wanted = 2u * topology->shards_count;
	uint16_t capacity;

	if (wanted < HS_SCOUT_SHARDS_ROOM)
		wanted = HS_SCOUT_SHARDS_ROOM;
	uv_mutex_lock(&scout->mutex);
	if (scout->capacity == 0)
		scout->capacity =
			(uint16_t)(wanted < HS_PARTITIONS_MAX ? wanted : HS_PARTITIONS_MAX);
	capacity = scout->capacity;
	uv_mutex_unlock(&scout->mutex);
	return capacity;
}

static void found(struct hs_scout *scout, bool changed)
{
	hs_scout_set_trouble(scout, "%s", "");
	scout->retry_ms = HS_SCOUT_RETRY_MS_MIN;
	scout->foreign = false;
	scout->waiting = false;
	if (changed)
		scout->gap_ms = HS_SCOUT_GAP_MS_MIN;
	else if (scout->gap_ms < HS_SCOUT_GAP_MS_MAX)
		scout->gap_ms *= 2;
	end(scout);
	schedule_next(scout);
	if (atomic_load(&scout->surprised))
		hs_scout_look_soon(scout);
}

/* Takes over a topology of this cluster. */
static void take(struct hs_scout *scout, struct hs_topology *topology, uint64_t epoch)
{
	bool changed = hs_topology_update(scout->topology, topology) == HS_TOPOLOGY_CHANGED;

	scout->epoch = epoch;
	scout->behind_looks = 0;
	if (changed)
		hs_scout_install(scout, topology);
	else
		hs_topology_destroy(&topology);
	found(scout, changed);
}

static void note_failure(struct hs_scout_node *node, const char *why)
{
	struct hs_scout_look *look = &node->scout->look;

	if (look->failed++ == 0)
		snprintf(look->why, sizeof look->why, "%s: %s", node->text, why);
}

static const char foreign_text[] = "another cluster answers there than the one known so far";

static void refuse_foreign(struct hs_scout_node *node)
{
	struct hs_scout *scout = node->scout;

	if (!scout->foreign)
		hs_log(scout->options.log, HS_LOG_ERROR, "%s: %s; it is left alone", node->text,
		       foreign_text);
	scout->foreign = true;
	note_failure(node, foreign_text);
	hs_scout_node_hang_up(node); /* the next time the address may lead back to the right one */
}

static void nobody(struct hs_scout *scout)
{
	struct hs_scout_look *look = &scout->look;
	char more[32] = "";

	if (look->failed > 1)
		snprintf(more, sizeof more, ", and %zu more", look->failed - 1);
	if (strstr(look->why, HS_NO_LOGIN)) {
		hs_scout_set_trouble(scout, "%s%s", look->why, more);
		if (!scout->waiting)
			hs_log(scout->options.log, HS_LOG_WARN, "%s%s: waiting", look->why, more);
	} else {
		hs_scout_set_trouble(scout,
				     "none of %zu nodes answers as one of the cluster (%s%s)",
				     look->count, look->why, more);
		if (!scout->waiting)
			hs_log(scout->options.log, HS_LOG_WARN,
			       "none of %zu %s answers as one of the cluster (%s%s): waiting",
			       look->count, scout->topology ? "nodes" : "seeds", look->why, more);
	}
	scout->waiting = true;
	end(scout);
	hs_scout_settle(scout);
	schedule(scout, scout->retry_ms);
	scout->retry_ms = scout->retry_ms * 2 < HS_SCOUT_RETRY_MS_MAX ? scout->retry_ms * 2
								      : HS_SCOUT_RETRY_MS_MAX;
}

/* Everybody was asked. */
static void conclude(struct hs_scout *scout)
{
	struct hs_scout_look *look = &scout->look;
	struct hs_topology *behind = look->behind;

	look->behind = NULL;
	if (!behind) {
		nobody(scout);
	} else if (++scout->behind_looks < HS_SCOUT_BEHIND_LOOKS) {
		/* Those who know better may only be slow. */
		hs_topology_destroy(&behind);
		end(scout);
		schedule(scout, scout->retry_ms);
	} else {
		take(scout, behind, look->behind_epoch);
	}
}

static void ask_another(struct hs_scout *scout)
{
	struct hs_scout_look *look = &scout->look;
	struct hs_scout_node *node;

	if (look->next == look->count) {
		if (look->underway == 0)
			conclude(scout);
		return;
	}
	node = look->order[look->next++];
	look->underway++;
	node->looked_at = true;
	look->asked_ms = hs_scout_now_ms(scout);
	hs_scout_node_want(node, HS_ASK_EPOCH);
}

void hs_scout_look_tick(struct hs_scout *scout)
{
	const struct hs_scout_look *look = &scout->look;

	if (look->running && look->next < look->count &&
	    hs_scout_now_ms(scout) - look->asked_ms >= HS_SCOUT_HEDGE_MS)
		ask_another(scout);
}

/* Whether it was asked in this look: an answer may also come late, to a question of the last. */
static bool is_asked(struct hs_scout_node *node)
{
	bool asked = node->looked_at;

	node->looked_at = false;
	if (asked)
		node->scout->look.underway--;
	return asked;
}

static void go_on(struct hs_scout_node *node, const char *why)
{
	note_failure(node, why);
	ask_another(node->scout);
}

void hs_scout_look_failed(struct hs_scout_node *node, const char *why)
{
	if (is_asked(node))
		go_on(node, why);
}

/* cluster_current_epoch:12 among other lines. */
static uint64_t read_epoch(struct hs_bytes reply)
{
	static const char name[] = "cluster_current_epoch:";
	const char *at = memmem(reply.data, reply.len, name, sizeof name - 1);
	const char *end = reply.data + reply.len;
	uint64_t epoch = 0;

	if (!at)
		return 0;
	for (at += sizeof name - 1; at < end && *at >= '0' && *at <= '9'; at++)
		epoch = epoch * 10 + (uint64_t)(*at - '0');
	return epoch;
}

void hs_scout_look_epoch(struct hs_scout_node *node, struct hs_bytes reply)
{
	hs_scout_state_told(node, reply);
	node->epoch = read_epoch(reply); /* 0 when it may not be asked: then the answer counts */
	hs_scout_node_want(node, HS_ASK_SLOTS);
}

static void note_behind(struct hs_scout *scout, struct hs_topology *topology, uint64_t epoch)
{
	struct hs_scout_look *look = &scout->look;

	if (look->behind && look->behind_epoch >= epoch) {
		hs_topology_destroy(&topology);
		return;
	}
	hs_topology_destroy(&look->behind);
	look->behind = topology;
	look->behind_epoch = epoch;
}

void hs_scout_look_slots(struct hs_scout_node *node, struct hs_bytes reply)
{
	struct hs_scout *scout = node->scout;
	struct hs_topology *topology;
	char why[HS_REDIS_WHY_BYTES];

	if (!is_asked(node))
		return;
	if (hs_topology_parse(&topology, reply, node->address.host, HS_PARTITIONS_MAX, why,
			      sizeof why) < 0) {
		if (strstr(why, "cluster support disabled"))
			snprintf(why, sizeof why, "it is a server without a cluster: use redis://");
		go_on(node, why);
		return;
	}
	topology->capacity = fix_capacity(scout, topology);
	if (hs_topology_update(scout->topology, topology) == HS_TOPOLOGY_FOREIGN) {
		hs_topology_destroy(&topology);
		refuse_foreign(node);
		ask_another(scout);
	} else if (node->epoch > 0 && node->epoch < scout->epoch) {
		note_behind(scout, topology, node->epoch);
		ask_another(scout);
	} else {
		take(scout, topology, node->epoch);
	}
}
