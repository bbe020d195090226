/* CLIENT TRACKING: which connection gets which invalidation, and where in its output.
 *
 *     a key that was read on the connection     at once; to the connection whose own command changed it
 *       (default, OPTIN, OPTOUT)                after the reply of that command, or of EXEC; then the
 *                                               key is forgotten until it is read again
 *     a prefix (BCAST)                          at the end of the cycle, one message for each prefix
 *     everything (FLUSHALL, a full copy)        null, to every connection that tracks
 *
 * The table remembers a key for a connection, not for its mode at that time. So a connection that turns tracking off
 * and on again still gets invalidations for what it read before, as in Redis. */
#include "sim/server_internal.h"

#include "base/hash.h"
#include "base/mem.h"

enum { BUCKETS = 64, EFFORT = 100 };

/* An entry of `pending` begins with the length of the key, or with this for all keys. */
#define ALL UINT32_MAX

/* A key, and the connections that have read it. */
struct hs_sim_tracked {
	struct hs_sim_tracked *next; /* in its bucket */
	struct hs_sim_server_conn **clients;
	uint32_t conns_count, conns_cap;
	size_t len;
	char key[];
};

/* A prefix of BCAST, and the keys that changed in this cycle, sorted by their bytes. */
struct hs_sim_prefix {
	struct hs_sim_prefix *next;
	struct hs_sim_server_conn **clients;
	uint32_t conns_count, conns_cap;
	struct changed_key {
		struct changed_key *next;
		/* The connection that changed it first in this cycle. */
		const struct hs_sim_server_conn *by;
		size_t len;
		char key[];
	} * keys;
	size_t len;
	char bytes[];
};

/* ---- lists of connections ---- */

static bool has(struct hs_sim_server_conn *const *clients, uint32_t count,
		const struct hs_sim_server_conn *conn)
{
	for (uint32_t i = 0; i < count; i++) {
		if (clients[i] == conn)
			return true;
	}
	return false;
}

static void add(struct hs_sim_server_conn ***clients, uint32_t *count, uint32_t *cap,
		struct hs_sim_server_conn *conn)
{
	if (has(*clients, *count, conn))
		return;
	if (*count == *cap) {
		*cap = *cap ? *cap * 2 : 4;
		*clients = hs_mem_realloc(*clients, *cap * sizeof **clients);
	}
	(*clients)[(*count)++] = conn;
}

static void take_out(struct hs_sim_server_conn **clients, uint32_t *count,
		     const struct hs_sim_server_conn *conn)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < *count; i++) {
		if (clients[i] != conn)
			clients[kept++] = clients[i];
	}
	*count = kept;
}

/* ---- messages ---- */

/* `keys`: an array of keys or a null, as RESP. */
static void send(struct hs_sim_server_conn *conn, struct hs_bytes keys)
{
	struct hs_reply reply;

	if (conn->redirect) {
		struct hs_sim_server_conn *to =
			hs_sim_server_conn_by_id(conn->server, conn->redirect);

		if (!to) {
			conn->flags |= HS_SIM_CONN_BROKEN_REDIRECT;
			if (conn->resp < 3)
				return;
			reply = hs_sim_conn_reply(conn);
			hs_reply_push(&reply, 2);
			hs_reply_bulk_text(&reply, "tracking-redir-broken");
			hs_reply_int(&reply, (int64_t)conn->redirect);
			hs_sim_conn_wrote(conn);
			return;
		}
		reply = hs_sim_conn_reply(to);
		if (to->resp == 2 && !hs_sim_conn_listens(to))
			return;
		if (to->resp == 2) {
			hs_reply_array(&reply, 3);
			hs_reply_bulk_text(&reply, "message");
			hs_reply_bulk_text(&reply, "__redis__:invalidate");
		} else {
			hs_reply_push(&reply, 2);
			hs_reply_bulk_text(&reply, "invalidate");
		}
		conn = to;
	} else if (conn->resp == 3) {
		reply = hs_sim_conn_reply(conn);
		hs_reply_push(&reply, 2);
		hs_reply_bulk_text(&reply, "invalidate");
	} else {
		return;
	}
	hs_buf_append_bytes(&conn->out, keys);
	hs_sim_conn_wrote(conn);
}

static void send_key(struct hs_sim_server_conn *conn, struct hs_bytes key)
{
	struct hs_buf keys = {0};
	struct hs_reply reply = {.out = &keys, .resp = 3};

	hs_reply_array(&reply, 1);
	hs_reply_bulk(&reply, key);
	send(conn, hs_buf_bytes(&keys));
	hs_buf_deinit(&keys);
}

/* In the RESP version of the connection that tracks, even if it redirects: as Redis does. */
static void send_all(struct hs_sim_server_conn *conn)
{
	send(conn, conn->resp == 3 ? HS_LIT("_\r\n") : HS_LIT("$-1\r\n"));
}

static void put_off(struct hs_sim_server *server, const struct hs_bytes *key)
{
	uint32_t len = key ? (uint32_t)key->len : ALL;

	hs_buf_append(&server->pending, &len, sizeof len);
	if (key)
		hs_buf_append_bytes(&server->pending, *key);
}

void hs_sim_tracking_flush_pending(struct hs_sim_server *server)
{
	struct hs_buf *pending = &server->pending;

	for (size_t at = 0; at < pending->len;) {
		uint32_t len;

		memcpy(&len, pending->data + at, sizeof len);
		at += sizeof len;
		if (server->current && len == ALL)
			send_all(server->current);
		else if (server->current)
			send_key(server->current, (struct hs_bytes){pending->data + at, len});
		at += len == ALL ? 0 : len;
	}
	pending->len = 0;
}

/* ---- keys that were read ---- */

static struct hs_sim_tracked **find(struct hs_sim_server *server, struct hs_bytes key)
{
	struct hs_sim_tracked **at = &server->tracked[hs_hash(key, 0) % BUCKETS];

	while (*at && !hs_bytes_equal((struct hs_bytes){(*at)->key, (*at)->len}, key))
		at = &(*at)->next;
	return at;
}

static void forget_key(struct hs_sim_server *server, struct hs_sim_tracked **at)
{
	struct hs_sim_tracked *tracked = *at;

	*at = tracked->next;
	hs_mem_free(&tracked->clients);
	hs_mem_free(&tracked);
	server->tracked_count--;
}

static void remember(struct hs_sim_server_conn *conn, struct hs_bytes key)
{
	struct hs_sim_server *server = conn->server;
	struct hs_sim_tracked **at = find(server, key), *tracked = *at;

	if (!tracked) {
		tracked = hs_mem_alloc(sizeof *tracked + key.len);
		*tracked = (struct hs_sim_tracked){.len = key.len};
		if (key.len > 0)
			memcpy(tracked->key, key.data, key.len);
		*at = tracked;
		server->tracked_count++;
	}
	add(&tracked->clients, &tracked->conns_count, &tracked->conns_cap, conn);
}

void hs_sim_tracking_remember(struct hs_sim_server_conn *conn, const struct hs_command *command,
			      size_t argc, const struct hs_bytes *argv)
{
	bool caching = conn->flags & HS_SIM_CONN_CACHING;
	struct hs_key_walk walk;
	size_t at;

	if (conn->flags & HS_SIM_CONN_BCAST || command->flags & HS_CMD_PUBSUB)
		return;
	if ((conn->flags & HS_SIM_CONN_OPTIN && !caching) ||
	    (conn->flags & HS_SIM_CONN_OPTOUT && caching))
		return;
	hs_keys_begin(&walk, command, argc, argv);
	while ((at = hs_keys_next(&walk)) > 0)
		remember(conn, argv[at]);
}

/* ---- a change ---- */

static void note_for_prefixes(struct hs_sim_server *server, struct hs_bytes key)
{
	for (struct hs_sim_prefix *prefix = server->prefixes; prefix; prefix = prefix->next) {
		struct changed_key **at = &prefix->keys, *changed;
		int order = 1;

		if (prefix->len > key.len || memcmp(prefix->bytes, key.data, prefix->len) != 0)
			continue;
		for (; *at; at = &(*at)->next) {
			order = hs_bytes_compare((struct hs_bytes){(*at)->key, (*at)->len}, key);
			if (order >= 0)
				break;
		}
		if (*at && order == 0)
			continue;
		changed = hs_mem_alloc(sizeof *changed + key.len);
		*changed = (struct changed_key){.next = *at, .by = server->current, .len = key.len};
		if (key.len > 0)
			memcpy(changed->key, key.data, key.len);
		*at = changed;
		hs_sim_server_wake(server);
	}
}

static void tell_one(struct hs_sim_server *server, struct hs_sim_server_conn *conn,
		     const struct hs_bytes *key)
{
	if (!(conn->flags & HS_SIM_CONN_TRACKING) || conn->flags & HS_SIM_CONN_BCAST)
		return;
	if (conn->flags & HS_SIM_CONN_NOLOOP && conn == server->current)
		return;
	if (conn == server->current && server->executing && !server->cluster->options.pushes_first)
		put_off(server, key);
	else
		send_key(conn, *key);
}

static void tell_readers(struct hs_sim_server *server, struct hs_bytes key)
{
	struct hs_sim_tracked **at = find(server, key);

	if (!*at)
		return;
	for (uint32_t i = 0; i < (*at)->conns_count; i++)
		tell_one(server, (*at)->clients[i], &key);
	forget_key(server, at);
}

void hs_sim_tracking_invalidate(struct hs_sim_server *server, struct hs_bytes key)
{
	if (server->prefixes)
		note_for_prefixes(server, key);
	if (server->tracked_count > 0)
		tell_readers(server, key);
}

static void forget_all(struct hs_sim_server *server)
{
	for (int i = 0; server->tracked_count > 0 && i < BUCKETS; i++) {
		while (server->tracked[i])
			forget_key(server, &server->tracked[i]);
	}
}

void hs_sim_tracking_invalidate_all(struct hs_sim_server *server)
{
	for (struct hs_link *link = server->clients.next;
	     server->tracking_conns > 0 && link != &server->clients; link = link->next) {
		struct hs_sim_server_conn *conn =
			hs_list_entry(link, struct hs_sim_server_conn, link);

		if (!(conn->flags & HS_SIM_CONN_TRACKING))
			continue;
		if (conn == server->current)
			put_off(server, NULL);
		else
			send_all(conn);
	}
	forget_all(server);
}

/* ---- broadcasts ---- */

static void drop_keys(struct hs_sim_prefix *prefix)
{
	while (prefix->keys) {
		struct changed_key *key = prefix->keys;

		prefix->keys = key->next;
		hs_mem_free(&key);
	}
}

static void broadcast_to(struct hs_sim_prefix *prefix, struct hs_sim_server_conn *conn)
{
	struct hs_buf keys = {0};
	struct hs_reply reply = {.out = &keys, .resp = 3};
	size_t count = 0;

	for (struct changed_key *key = prefix->keys; key; key = key->next)
		count += !(conn->flags & HS_SIM_CONN_NOLOOP && key->by == conn);
	if (count == 0)
		return;
	hs_reply_array(&reply, count);
	for (struct changed_key *key = prefix->keys; key; key = key->next) {
		if (!(conn->flags & HS_SIM_CONN_NOLOOP && key->by == conn))
			hs_reply_bulk(&reply, (struct hs_bytes){key->key, key->len});
	}
	send(conn, hs_buf_bytes(&keys));
	hs_buf_deinit(&keys);
}

void hs_sim_tracking_broadcast(struct hs_sim_server *server)
{
	for (struct hs_sim_prefix *prefix = server->prefixes; prefix; prefix = prefix->next) {
		for (uint32_t i = 0; prefix->keys && i < prefix->conns_count; i++)
			broadcast_to(prefix, prefix->clients[i]);
		drop_keys(prefix);
	}
}

void hs_sim_prefix_join(struct hs_sim_server_conn *conn, struct hs_bytes bytes)
{
	struct hs_sim_prefix **at = &conn->server->prefixes, *prefix;
	int order = 1;

	for (; *at; at = &(*at)->next) {
		order = hs_bytes_compare((struct hs_bytes){(*at)->bytes, (*at)->len}, bytes);
		if (order >= 0)
			break;
	}
	prefix = *at;
	if (!prefix || order != 0) {
		prefix = hs_mem_alloc(sizeof *prefix + bytes.len);
		*prefix = (struct hs_sim_prefix){.next = *at, .len = bytes.len};
		if (bytes.len > 0)
			memcpy(prefix->bytes, bytes.data, bytes.len);
		*at = prefix;
	}
	add(&prefix->clients, &prefix->conns_count, &prefix->conns_cap, conn);
}

void hs_sim_prefix_leave_all(struct hs_sim_server_conn *conn)
{
	for (struct hs_sim_prefix **at = &conn->server->prefixes; *at;) {
		struct hs_sim_prefix *prefix = *at;

		take_out(prefix->clients, &prefix->conns_count, conn);
		for (struct changed_key *key = prefix->keys; key; key = key->next) {
			if (key->by == conn)
				key->by = NULL;
		}
		if (prefix->conns_count > 0) {
			at = &prefix->next;
			continue;
		}
		*at = prefix->next;
		drop_keys(prefix);
		hs_mem_free(&prefix->clients);
		hs_mem_free(&prefix);
	}
}

const struct hs_sim_prefix *hs_sim_prefix_next(const struct hs_sim_server_conn *conn,
					       const struct hs_sim_prefix *at,
					       struct hs_bytes *bytes)
{
	at = at ? at->next : conn->server->prefixes;
	while (at && !has(at->clients, at->conns_count, conn))
		at = at->next;
	if (at)
		*bytes = (struct hs_bytes){at->bytes, at->len};
	return at;
}

/* ---- the table's limit ---- */

/* Called before a command: while the table has too many keys, random ones are invalidated. */
void hs_sim_tracking_limit(struct hs_sim_server *server)
{
	struct hs_sim_cluster *cluster = server->cluster;
	size_t keys_max = cluster->options.tracking_keys_max;

	for (int effort = EFFORT; keys_max > 0 && server->tracked_count > keys_max && effort > 0;
	     effort--) {
		uint64_t number = hs_prng_below(&cluster->prng, server->tracked_count);
		struct hs_buf key = {0};

		for (int i = 0; i < BUCKETS && key.data == NULL; i++) {
			struct hs_sim_tracked *at = server->tracked[i];

			for (; at && number > 0; at = at->next)
				number--;
			if (!at)
				continue;
			hs_buf_reserve(&key, at->len + 1);
			hs_buf_append(&key, at->key, at->len);
		}
		tell_readers(server, hs_buf_bytes(&key));
		hs_buf_deinit(&key);
	}
}

/* ---- beginnings and ends ---- */

void hs_sim_tracking_begin(struct hs_sim_server *server)
{
	if (!server->tracked)
		server->tracked = hs_mem_zalloc(BUCKETS * sizeof(struct hs_sim_tracked *));
}

void hs_sim_tracking_forget(struct hs_sim_server_conn *conn)
{
	struct hs_sim_server *server = conn->server;

	hs_sim_tracking_stop(conn);
	for (int i = 0; server->tracked_count > 0 && i < BUCKETS; i++) {
		struct hs_sim_tracked *at = server->tracked[i];

		for (; at; at = at->next)
			take_out(at->clients, &at->conns_count, conn);
	}
	for (struct hs_sim_prefix *prefix = server->prefixes; prefix; prefix = prefix->next) {
		for (struct changed_key *key = prefix->keys; key; key = key->next) {
			if (key->by == conn)
				key->by = NULL;
		}
	}
}

void hs_sim_tracking_reset(struct hs_sim_server *server)
{
	forget_all(server);
	server->pending.len = 0;
}

void hs_sim_tracking_deinit(struct hs_sim_server *server)
{
	forget_all(server);
	hs_mem_free(&server->tracked);
	hs_buf_deinit(&server->pending);
}
