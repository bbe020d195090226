/* Replication. A master's stream holds the effects of commands, key by key; its offset counts bytes. Every replica
 * has the same bytes at the same offsets. So a promoted replica continues the stream, and one that was away gets the
 * missing part, or a full copy when the streams differ.
 *
 *     group:  item … end      applied together: one command, or a whole EXEC
 *     item:   kind, slot, length of key, length of record, key, record (empty: deleted)
 *
 * A replica gets the stream after a delay, in pieces that end with a group. */
#include "sim/server_internal.h"

#include "base/mem.h"
#include "keyspace/watch.h"

enum kind { END, KEY, ALL };

struct item {
	uint8_t kind;
	uint16_t slot;
	uint32_t key_len, record_len;
} __attribute__((packed));

/* ---- a master writes ---- */

static bool is_kept(const struct hs_sim_server *server)
{
	return server->cluster->options.replicas > 0;
}

static void note(struct hs_sim_server *server, struct item item, struct hs_bytes key,
		 struct hs_bytes record)
{
	hs_buf_append(&server->log, &item, sizeof item);
	hs_buf_append_bytes(&server->log, key);
	hs_buf_append_bytes(&server->log, record);
	server->log_open = true;
}

void hs_sim_stream_note_key(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key)
{
	struct hs_bytes record = {0};

	if (!is_kept(server))
		return;
	if (!hs_sim_keys_get(server, slot, key, &record))
		record.len = 0;
	note(server, (struct item){KEY, slot, (uint32_t)key.len, (uint32_t)record.len}, key,
	     record);
}

void hs_sim_stream_note_all(struct hs_sim_server *server)
{
	if (is_kept(server))
		note(server, (struct item){.kind = ALL}, (struct hs_bytes){0},
		     (struct hs_bytes){0});
}

void hs_sim_stream_end_group(struct hs_sim_server *server)
{
	if (!server->log_open)
		return;
	note(server, (struct item){.kind = END}, (struct hs_bytes){0}, (struct hs_bytes){0});
	server->log_open = false;
	/* For changes outside a cycle. */
	hs_sim_stream_push(server);
}

/* ---- a replica applies ---- */

static void apply_key(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key,
		      struct hs_bytes record)
{
	struct hs_keyspace ks;

	hs_memkv_begin(server->map);
	/* The watch table compares with the map: before a key is written, after it is deleted. */
	ks = hs_sim_keyspace(server);
	if (server->watch && record.len > 0)
		hs_watch_touch(server->watch, &ks, slot, key);
	hs_sim_keys_put(server, slot, key, record);
	if (server->watch && record.len == 0)
		hs_watch_touch(server->watch, &ks, slot, key);
	hs_memkv_commit(server->map);
	hs_sim_tracking_invalidate(server, key);
}

static void apply_all(struct hs_sim_server *server)
{
	hs_memkv_begin(server->map);
	if (server->watch) {
		struct hs_keyspace ks = hs_sim_keyspace(server);

		hs_watch_touch_all(server->watch, &ks);
	}
	hs_sim_keys_clear(server);
	hs_memkv_commit(server->map);
	hs_sim_tracking_invalidate_all(server);
}

/* Applies complete groups. */
static void apply(struct hs_sim_server *server, const char *bytes, size_t len)
{
	struct item item;

	for (size_t at = 0; at < len; at += item.key_len + item.record_len) {
		struct hs_bytes key, record;

		memcpy(&item, bytes + at, sizeof item);
		at += sizeof item;
		key = (struct hs_bytes){bytes + at, item.key_len};
		record = (struct hs_bytes){bytes + at + item.key_len, item.record_len};
		if (item.kind == KEY)
			apply_key(server, item.slot, key, record);
		else if (item.kind == ALL)
			apply_all(server);
	}
	hs_buf_append(&server->log, bytes, len);
	hs_sim_server_wake(server); /* for broadcasts */
}

static struct hs_sim_server *master_of(const struct hs_sim_server *server)
{
	uint8_t master = server->view.nodes[server->number].master;

	return master == HS_SIM_NO_NODE ? NULL : hs_sim_server_of(server->cluster, master);
}

/* A replica may itself have a replica that does not know of a failover yet. */
static bool can_receive(const struct hs_sim_server *server, const struct hs_sim_server *master)
{
	return master && server->link_up && hs_sim_servers_talk(server, master) &&
	       strcmp(server->stream, master->stream) == 0;
}

bool hs_sim_stream_has_all(const struct hs_sim_server *replica, const struct hs_sim_server *master)
{
	return can_receive(replica, master) &&
	       hs_sim_stream_offset(replica) == hs_sim_stream_offset(master);
}

void hs_sim_stream_catch_up(struct hs_sim_server *server)
{
	struct hs_sim_server *master = master_of(server);
	uint64_t offset = hs_sim_stream_offset(server), end;

	if (!can_receive(server, master))
		return;
	hs_sim_stream_end_group(master); /* keys that expired outside of its cycles */
	end = hs_sim_stream_offset(master);
	if (offset < master->log_start || offset >= end)
		return;
	apply(server, master->log.data + (offset - master->log_start), end - offset);
	hs_sim_unblock_waits(master_of(server));
}

int64_t hs_sim_stream_count(const struct hs_sim_server *master, uint64_t offset)
{
	const struct hs_sim_cluster *cluster = master->cluster;
	int64_t count = 0;

	for (uint8_t i = 0; i < cluster->count; i++) {
		const struct hs_sim_server *other = &cluster->servers[i];

		count += i != master->number && master_of(other) == master &&
			 can_receive(other, master) && hs_sim_stream_offset(other) >= offset;
	}
	return count;
}

static void run_pull(void *context, void *target, uint64_t number)
{
	struct hs_sim_server *server = target;

	(void)context;
	if (number != server->life)
		return;
	server->stream_planned = false;
	if (!server->stream_held)
		hs_sim_stream_catch_up(server);
}

void hs_sim_stream_pull(struct hs_sim_server *server)
{
	const struct hs_sim_server *master = master_of(server);

	if (server->stream_planned || server->stream_held || !can_receive(server, master) ||
	    hs_sim_stream_offset(server) >= hs_sim_stream_offset(master))
		return;
	server->stream_planned = true;
	hs_sim_server_plan(server, server->cluster->options.stream_us_max, run_pull, server->life);
}

void hs_sim_stream_push(struct hs_sim_server *master)
{
	struct hs_sim_cluster *cluster = master->cluster;

	if (!is_kept(master) || master->log.len == master->log_pushed)
		return;
	master->log_pushed = master->log.len;
	for (uint8_t i = 0; i < cluster->count; i++) {
		if (cluster->servers[i].view.nodes[i].master == master->number)
			hs_sim_stream_pull(&cluster->servers[i]);
	}
}

/* ---- beginnings ---- */

static void copy_one(void *context, uint16_t slot, struct hs_bytes key, struct hs_bytes record)
{
	hs_sim_keys_put(context, slot, key, record);
}

static void copy_all(struct hs_sim_server *server, struct hs_sim_server *master)
{
	apply_all(server);
	hs_memkv_begin(server->map);
	hs_sim_keys_each(master, 0, HS_SLOTS - 1, copy_one, server);
	hs_memkv_commit(server->map);
	server->log_start = hs_sim_stream_offset(master);
	server->log.len = 0;
	server->log_pushed = 0;
	hs_sim_server_wake(server);
}

/* Whether the server's stream is a prefix of its master's. */
static bool can_go_on(const struct hs_sim_server *server, const struct hs_sim_server *master)
{
	uint64_t offset = hs_sim_stream_offset(server);

	if (offset < master->log_start || offset > hs_sim_stream_offset(master))
		return false;
	return strcmp(server->stream, master->stream) == 0 ||
	       (strcmp(server->stream, master->stream_before) == 0 &&
		offset <= master->stream_before_end);
}

static void join(struct hs_sim_server *server, struct hs_sim_server *master)
{
	hs_sim_stream_end_group(master);
	if (!can_go_on(server, master))
		copy_all(server, master);
	memcpy(server->stream, master->stream, sizeof server->stream);
	memcpy(server->stream_before, master->stream_before, sizeof server->stream_before);
	server->stream_before_end = master->stream_before_end;
	server->link_up = true;
	hs_sim_stream_pull(server);
}

static void run_join(void *context, void *target, uint64_t number)
{
	struct hs_sim_server *server = target, *master = master_of(server);

	(void)context;
	if (number != server->follows || !master || server->link_up)
		return;
	/* A replica of a replica waits until that has become a master. */
	if (hs_sim_servers_talk(server, master) && master->loading_until_us == 0 &&
	    hs_sim_server_is_master(master)) {
		join(server, master);
	} else if (hs_sim_server_runs(server) && !server->cut) {
		hs_sim_events_plan(server->cluster->host.events,
				   (struct hs_sim_event){
					   .at_us = hs_sim_now_us(server->cluster) +
						    server->cluster->options.gossip_us_max + 1000,
					   .run = run_join,
					   .context = context,
					   .target = target,
					   .number = number,
				   });
	}
}

void hs_sim_stream_follow(struct hs_sim_server *server)
{
	hs_sim_stream_end_group(server); /* of its changes as a master */
	server->link_up = false;
	server->follows++;
	hs_sim_server_plan(server, server->cluster->options.sync_us_max, run_join, server->follows);
}

void hs_sim_stream_lead(struct hs_sim_server *server)
{
	memcpy(server->stream_before, server->stream, sizeof server->stream);
	server->stream_before_end = hs_sim_stream_offset(server);
	hs_sim_id_draw(&server->cluster->prng, server->stream);
	server->link_up = false;
	server->follows++;
}
