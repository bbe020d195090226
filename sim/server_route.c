/* Which node serves a command, by Redis 7.0's rules. Its keys must share a slot. The node must own that slot; or
 * import it, and the connection has sent ASKING; or replicate its owner, and the connection is READONLY. While a
 * slot moves, it depends on which of the keys are at the node. */
#include "sim/server_internal.h"

#include "base/mem.h"
#include "base/slot.h"

#include <stdio.h>

struct hs_sim_move *hs_sim_view_move(struct hs_sim_view *view, uint16_t slot, bool importing)
{
	for (uint16_t i = 0; i < view->moves_count; i++) {
		if (view->moves[i].slot == slot && view->moves[i].importing == importing)
			return &view->moves[i];
	}
	return NULL;
}

/* The slot and state of a request's keys. */
struct route {
	struct hs_sim_server *server;
	uint16_t slot;
	uint8_t owner;
	bool any, unbound, crossed;
	bool several; /* different keys */
	struct hs_bytes first;
	struct hs_sim_move *migrating, *importing;
	uint32_t here, missing; /* keys of a moving slot: at this node, or not */
	bool channels;		/* the names are shard channels, not keys */
};

static void look_at(struct route *route, struct hs_bytes key)
{
	struct hs_sim_server *server = route->server;
	struct hs_sim_view *view = &server->view;
	uint16_t slot = hs_slot_of(key);
	struct hs_bytes record;

	if (!route->any) {
		route->any = true;
		route->first = key;
		route->slot = slot;
		route->owner = hs_sim_slots_owner(&view->slots, slot);
		route->unbound = route->owner == HS_SIM_NO_NODE;
		if (view->moves_count > 0 && !route->unbound) {
			if (route->owner == server->number)
				route->migrating = hs_sim_view_move(view, slot, false);
			if (!route->migrating)
				route->importing = hs_sim_view_move(view, slot, true);
		}
	} else if (!hs_bytes_equal(route->first, key)) {
		route->crossed = route->crossed || route->slot != slot;
		route->several = true;
	}
	if ((!route->migrating && !route->importing) || route->channels || route->crossed)
		return;
	if (hs_sim_data_is_expired(server, slot, key) ||
	    !hs_sim_keys_get(server, slot, key, &record))
		route->missing++;
	else
		route->here++;
}

/* False: the error is known. */
static bool look_at_all(struct route *route, const struct hs_command *command, size_t argc,
			const struct hs_bytes *argv)
{
	struct hs_key_walk walk;
	size_t at;

	hs_keys_begin(&walk, command, argc, argv);
	while ((at = hs_keys_next(&walk)) > 0) {
		look_at(route, argv[at]);
		if (route->unbound || route->crossed)
			return false;
	}
	return true;
}

static void look_at_queue(struct route *route, const struct hs_sim_queue *queue)
{
	struct hs_bytes inline_argv[HS_ARGC_INLINE];

	for (size_t i = 0; i < queue->count; i++) {
		const struct hs_sim_queued *queued = &queue->commands[i];
		struct hs_bytes *argv = inline_argv;
		bool fine;

		if (queued->argc > HS_ARGC_INLINE)
			argv = hs_mem_alloc(queued->argc * sizeof *argv);
		hs_sim_queue_get(queue, i, argv);
		fine = look_at_all(route, queued->command, queued->argc, argv);
		if (argv != inline_argv)
			hs_mem_free(&argv);
		if (!fine)
			return;
	}
}

static void count(const struct hs_sim_server_conn *conn, const char *text)
{
	static const struct {
		const char *word;
		enum hs_sim_coverage what;
	} words[] = {
		{"MOVED ", HS_SIM_COVERAGE_MOVED},
		{"ASK ", HS_SIM_COVERAGE_ASK},
		{"TRYAGAIN ", HS_SIM_COVERAGE_TRYAGAIN},
		{"CLUSTERDOWN ", HS_SIM_COVERAGE_CLUSTERDOWN},
	};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (strncmp(text, words[i].word, strlen(words[i].word)) == 0)
			hs_sim_cover(conn->server->cluster->host.coverage, words[i].what);
	}
}

static bool refuse(struct hs_sim_server_conn *conn, const char *text)
{
	struct hs_reply reply = hs_sim_conn_reply(conn);

	count(conn, text);
	hs_sim_note_refused(conn, text);
	if (conn->command->id == HS_CMD_ID_EXEC)
		hs_sim_discard(conn);
	else if (conn->flags & HS_SIM_CONN_MULTI)
		conn->flags |= HS_SIM_CONN_DIRTY_EXEC;
	hs_reply_error(&reply, text);
	return false;
}

static bool redirect(struct hs_sim_server_conn *conn, const char *word, uint16_t slot, uint8_t to)
{
	const struct hs_sim_server *node = hs_sim_server_of(conn->server->cluster, to);
	char text[64];

	snprintf(text, sizeof text, "%s %u %s:%u", word, slot, node->host, node->port);
	return refuse(conn, text);
}

static bool writes(const struct hs_sim_server_conn *conn, const struct hs_command *command)
{
	return (command->id == HS_CMD_ID_EXEC ? conn->queue.any_flags : command->flags) &
	       HS_CMD_WRITE;
}

/* Some of the keys are here and some are not: TRYAGAIN. */
static bool try_again(struct hs_sim_server_conn *conn)
{
	return conn->server->cluster->options.serves_half_slots ||
	       refuse(conn, "TRYAGAIN Multiple keys request during rehashing of slot");
}

static bool decide(struct hs_sim_server_conn *conn, const struct hs_command *command,
		   const struct route *route)
{
	struct hs_sim_server *server = conn->server;
	bool asked = conn->flags & HS_SIM_CONN_ASKING;

	if (!server->view.ok && !route->channels) /* cluster-allow-pubsubshard-when-down yes */
		return refuse(conn, "CLUSTERDOWN The cluster is down");
	if (route->migrating && route->missing > 0) {
		if (route->here > 0)
			return try_again(conn);
		return redirect(conn, "ASK", route->slot, route->migrating->other);
	}
	if (route->importing && asked) {
		if (route->several && route->missing > 0)
			return try_again(conn);
		return true;
	}
	if (route->owner == server->number)
		return true;
	if ((conn->flags & HS_SIM_CONN_READONLY || route->channels) && !writes(conn, command) &&
	    server->view.nodes[server->number].master == route->owner)
		return true;
	if (!route->channels &&
	    (writes(conn, command) ? server->cluster->options.serves_lost_writes
				   : server->cluster->options.serves_lost_reads))
		return true;
	return redirect(conn, "MOVED", route->slot, route->owner);
}

bool hs_sim_route(struct hs_sim_server_conn *conn, const struct hs_command *command, size_t argc,
		  const struct hs_bytes *argv)
{
	struct hs_sim_server *server = conn->server;
	struct route route = {.server = server};

	if (!server->cluster->options.cluster || conn->flags & HS_SIM_CONN_HIDDEN)
		return true;
	route.channels = command->flags & HS_CMD_PUBSUB;
	if (command->id == HS_CMD_ID_EXEC) {
		if (!(conn->flags & HS_SIM_CONN_MULTI))
			return true;
		look_at_queue(&route, &conn->queue);
	} else {
		look_at_all(&route, command, argc, argv);
	}
	if (route.unbound)
		return refuse(conn, "CLUSTERDOWN Hash slot not served");
	if (route.crossed)
		return refuse(conn, "CROSSSLOT Keys in request don't hash to the same slot");
	if (!route.any)
		return true;
	return decide(conn, command, &route);
}

bool hs_sim_route_serves(struct hs_sim_server_conn *conn, const struct hs_command *command,
			 size_t argc, const struct hs_bytes *argv)
{
	struct hs_sim_server *server = conn->server;
	struct route route = {.server = server};

	if (!server->cluster->options.cluster)
		return true;
	if (!look_at_all(&route, command, argc, argv))
		return false;
	if (!route.any)
		return true;
	if (route.importing && conn->flags & HS_SIM_CONN_ASKING)
		return route.missing == 0;
	return route.owner == server->number && !(route.migrating && route.missing > 0);
}
