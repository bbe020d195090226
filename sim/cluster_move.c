/* Slot moves, key by key. Until SETSLOT NODE at the destination, the source owns the slot and redirects requests for
 * missing keys with ASK; from then on the destination owns it, and gossip informs the others.
 *
 * MIGRATE of a key is one step here: the key is always at exactly one place. At the source it counts as a deletion,
 * at the destination as a new key. */
#include "sim/server_internal.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/slot.h"
#include "keyspace/watch.h"

#include <stdio.h>

/* ---- moves in a view ---- */

void hs_sim_view_begin_move(struct hs_sim_view *view, uint16_t slot, uint8_t other, bool importing)
{
	struct hs_sim_move *move = hs_sim_view_move(view, slot, importing);

	if (!move) {
		if (view->moves_count == view->moves_cap) {
			view->moves_cap = (uint16_t)(view->moves_cap ? view->moves_cap * 2 : 4);
			view->moves =
				hs_mem_realloc(view->moves, view->moves_cap * sizeof *view->moves);
		}
		move = &view->moves[view->moves_count++];
	}
	*move = (struct hs_sim_move){.slot = slot, .other = other, .importing = importing};
}

void hs_sim_view_end_move(struct hs_sim_view *view, uint16_t slot, bool importing)
{
	struct hs_sim_move *move = hs_sim_view_move(view, slot, importing);

	if (move)
		*move = view->moves[--view->moves_count];
}

/* ---- CLUSTER SETSLOT ---- */

static uint8_t find_node(const struct hs_sim_cluster *cluster, struct hs_bytes id)
{
	for (uint8_t i = 0; i < cluster->count; i++) {
		if (hs_bytes_equal(id, hs_bytes_of(cluster->servers[i].id)))
			return i;
	}
	return HS_SIM_NO_NODE;
}

static bool owns(const struct hs_sim_server *server, uint16_t slot)
{
	return hs_sim_slots_owner(&server->view.slots, slot) == server->number;
}

/* Returns an error's text, or NULL. */
static const char *set_node(struct hs_sim_server *server, uint16_t slot, uint8_t node)
{
	struct hs_sim_view *view = &server->view;
	bool mine = owns(server, slot);
	size_t keys = hs_sim_keys_count_slot(server, slot);

	if (mine && node != server->number && keys > 0)
		return "ERR Can't assign hashslot %u to a different node while I still hold keys "
		       "for this hash slot.";
	if (keys == 0)
		hs_sim_view_end_move(view, slot, false);
	hs_sim_view_give(server, slot, slot, node);
	if (node == server->number && hs_sim_view_move(view, slot, true)) {
		hs_sim_view_bump(server);
		hs_sim_view_end_move(view, slot, true);
	}
	if (node == server->number)
		hs_sim_truth_give(server->cluster, slot, slot, node);
	hs_sim_unblock_moved(server);
	hs_sim_gossip(server);
	return NULL;
}

static const char *set(struct hs_sim_server *server, uint16_t slot, struct hs_bytes word,
		       const struct hs_bytes *id)
{
	uint8_t node = id ? find_node(server->cluster, *id) : HS_SIM_NO_NODE;
	struct hs_sim_view *view = &server->view;
	bool migrating = hs_bytes_is_word(word, "migrating");
	bool importing = hs_bytes_is_word(word, "importing");

	if (hs_bytes_is_word(word, "stable") && !id) {
		hs_sim_view_end_move(view, slot, false);
		hs_sim_view_end_move(view, slot, true);
		return NULL;
	}
	if (!id || (!migrating && !importing && !hs_bytes_is_word(word, "node")))
		return "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER "
		       "HELP";
	if (migrating && !owns(server, slot))
		return "ERR I'm not the owner of hash slot %u";
	if (importing && owns(server, slot))
		return "ERR I'm already the owner of hash slot %u";
	if (node == HS_SIM_NO_NODE)
		return migrating || importing ? "ERR I don't know about node %.*s"
					      : "ERR Unknown node %.*s";
	if (view->nodes[node].master != HS_SIM_NO_NODE)
		return "ERR Target node is not a master";
	if (!migrating && !importing)
		return set_node(server, slot, node);
	hs_sim_view_begin_move(view, slot, node, importing);
	return NULL;
}

void hs_sim_setslot(struct hs_sim_server *server, size_t argc, const struct hs_bytes *argv,
		    struct hs_reply *reply)
{
	const char *error;
	char text[256];
	int64_t slot;

	if (!hs_sim_server_is_master(server)) {
		hs_reply_error(reply, "ERR Please use SETSLOT only with masters.");
		return;
	}
	if (!hs_num_parse_int(argv[2], &slot) || slot < 0 || slot >= HS_SLOTS) {
		hs_reply_error(reply, "ERR Invalid or out of range slot");
		return;
	}
	error = set(server, (uint16_t)slot, argv[3], argc > 4 ? &argv[4] : NULL);
	if (!error) {
		hs_reply_ok(reply);
		return;
	}
	/* The text's %.*s: the slot, or the node that was named. */
	if (strstr(error, "%.*s"))
		snprintf(text, sizeof text, "%.*s%.*s", (int)(strlen(error) - 4), error,
			 (int)argv[4].len, argv[4].data);
	else if (strstr(error, "%u"))
		snprintf(text, sizeof text, "%.*s%u%s", (int)(strstr(error, "%u") - error), error,
			 (unsigned)slot, strstr(error, "%u") + 2);
	else
		snprintf(text, sizeof text, "%s", error);
	hs_reply_error(reply, text);
}

/* ---- keys ---- */

static bool takes_key(const struct hs_sim_server *to, uint16_t slot)
{
	return owns(to, slot) || hs_sim_view_move((struct hs_sim_view *)&to->view, slot, true);
}

const char *hs_sim_migrate_key(struct hs_sim_server *from, struct hs_sim_server *to,
			       struct hs_bytes key, bool copy, bool replace)
{
	uint16_t slot = hs_slot_of(key);
	struct hs_bytes record, old;
	struct hs_buf bytes = {0};
	struct hs_keyspace ks;

	if (!takes_key(to, slot))
		return "MOVED"; /* no test compares the rest of the text */
	if (!hs_sim_keys_get(from, slot, key, &record))
		return NULL;
	if (!hs_sim_data_expire(to, slot, key) && hs_sim_keys_get(to, slot, key, &old) && !replace)
		return "BUSYKEY Target key name already exists.";
	hs_buf_append_bytes(&bytes, record);
	hs_memkv_begin(to->map);
	if (to->watch) {
		ks = hs_sim_keyspace(to);
		hs_watch_touch(to->watch, &ks, slot, key);
	}
	hs_sim_keys_put(to, slot, key, hs_buf_bytes(&bytes));
	hs_memkv_commit(to->map);
	hs_buf_deinit(&bytes);
	hs_sim_tracking_invalidate(to, key);
	hs_sim_stream_note_key(to, slot, key);
	hs_sim_lists_serve(to);
	hs_sim_stream_end_group(to);
	hs_sim_server_wake(to);
	if (!copy)
		hs_sim_data_remove(from, key, !from->cluster->options.moves_silent);
	return NULL;
}

/* ---- calls of the host ---- */

static struct hs_sim_server *owner_of(struct hs_sim_cluster *cluster, uint16_t slot)
{
	uint8_t owner = hs_sim_slots_owner(&cluster->truth, slot);

	return owner == HS_SIM_NO_NODE ? NULL : &cluster->servers[owner];
}

/* The nodes of a slot's move; false: it is not moving, or one of them does not run. */
static bool find_move(struct hs_sim_cluster *cluster, uint16_t slot, struct hs_sim_server **from,
		      struct hs_sim_server **to)
{
	const struct hs_sim_move *move;

	*from = owner_of(cluster, slot);
	move = *from ? hs_sim_view_move(&(*from)->view, slot, false) : NULL;
	if (!move)
		return false;
	*to = &cluster->servers[move->other];
	return hs_sim_servers_talk(*from, *to) && !(*to)->replaced && owns(*from, slot) &&
	       (*from)->loading_until_us == 0 && (*to)->loading_until_us == 0 && !(*from)->paused &&
	       !(*to)->paused && hs_sim_server_is_master(*from) && hs_sim_server_is_master(*to) &&
	       hs_sim_view_move(&(*to)->view, slot, true);
}

/* Both nodes must know the same owner: a node ignores gossip about a slot that it imports. */
bool hs_sim_cluster_move_begin(struct hs_sim_cluster *cluster, uint16_t slot, uint8_t number)
{
	struct hs_sim_server *from = owner_of(cluster, slot), *to = &cluster->servers[number];

	if (!cluster->options.cluster || !from || from == to || !hs_sim_servers_talk(from, to) ||
	    !owns(from, slot) || to->replaced ||
	    hs_sim_slots_owner(&to->view.slots, slot) != from->number ||
	    !hs_sim_server_is_master(from) || !hs_sim_server_is_master(to) || from->paused ||
	    to->paused || hs_sim_view_move(&from->view, slot, false) ||
	    hs_sim_view_move(&to->view, slot, true))
		return false;
	hs_sim_view_begin_move(&to->view, slot, from->number, true);
	hs_sim_view_begin_move(&from->view, slot, to->number, false);
	return true;
}

/* The move as the source has it; NULL: the slot is not moving. */
static const struct hs_sim_move *find_source(const struct hs_sim_cluster *cluster, uint16_t slot)
{
	const struct hs_sim_server *from = owner_of((struct hs_sim_cluster *)cluster, slot);

	return from ? hs_sim_view_move((struct hs_sim_view *)&from->view, slot, false) : NULL;
}

uint8_t hs_sim_cluster_moving_to(const struct hs_sim_cluster *cluster, uint16_t slot)
{
	const struct hs_sim_move *move = find_source(cluster, slot);

	return move ? move->other : HS_SIM_NO_NODE;
}

static void move_key(struct hs_sim_server *from, struct hs_sim_server *to, struct hs_bytes key)
{
	if (hs_sim_data_expire(from, hs_slot_of(key), key))
		return;
	hs_sim_migrate_key(from, to, key, false, true);
	hs_sim_stream_end_group(from);
	hs_sim_server_wake(from);
}

static void move_number(struct hs_sim_server *from, struct hs_sim_server *to, uint16_t slot,
			size_t number)
{
	struct hs_buf key = {0};

	hs_buf_reserve(&key, 1);
	if (hs_sim_keys_at(from, slot, number, &key))
		move_key(from, to, hs_buf_bytes(&key));
	hs_buf_deinit(&key);
}

bool hs_sim_cluster_move_key(struct hs_sim_cluster *cluster, uint16_t slot)
{
	struct hs_sim_server *from, *to;
	size_t count;

	if (!find_move(cluster, slot, &from, &to))
		return false;
	count = hs_sim_keys_count_slot(from, slot);
	if (count == 0)
		return false;
	move_number(from, to, slot, hs_prng_below(&cluster->prng, count));
	return true;
}

bool hs_sim_cluster_move_this(struct hs_sim_cluster *cluster, uint16_t slot, struct hs_bytes key)
{
	struct hs_sim_server *from, *to;
	struct hs_bytes record;

	if (!find_move(cluster, slot, &from, &to) || !hs_sim_keys_get(from, slot, key, &record))
		return false;
	move_key(from, to, key);
	return true;
}

bool hs_sim_cluster_move_end(struct hs_sim_cluster *cluster, uint16_t slot)
{
	struct hs_sim_server *from, *to;

	if (!find_move(cluster, slot, &from, &to))
		return false;
	while (hs_sim_keys_count_slot(from, slot) > 0)
		move_number(from, to, slot, 0);
	hs_check(!set_node(to, slot, to->number));
	hs_check(!set_node(from, slot, to->number));
	hs_sim_cover(cluster->host.coverage, HS_SIM_COVERAGE_MOVES);
	return true;
}

bool hs_sim_cluster_move_undo(struct hs_sim_cluster *cluster, uint16_t slot)
{
	struct hs_sim_server *from, *to;

	if (!find_move(cluster, slot, &from, &to))
		return false;
	/* Tools do this in the other order; meanwhile the source serves the slot without the keys that have moved. */
	while (hs_sim_keys_count_slot(to, slot) > 0)
		move_number(to, from, slot, 0);
	hs_sim_view_end_move(&from->view, slot, false);
	hs_sim_view_end_move(&to->view, slot, true);
	return true;
}
