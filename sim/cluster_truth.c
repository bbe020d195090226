/* The ground truth of the servers' data, for the checkers, and external changes. A key's true value is the one at
 * the node that owns its slot; while the slot moves, at the destination, if the key is there already. */
#include "sim/server_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/slot.h"
#include "keyspace/record.h"

/* The node that has the key, or would have it. */
static struct hs_sim_server *find_holder(struct hs_sim_cluster *cluster, uint16_t slot,
					 struct hs_bytes key)
{
	uint8_t owner = hs_sim_slots_owner(&cluster->truth, slot);
	struct hs_sim_server *server;
	const struct hs_sim_move *move;
	struct hs_bytes record;

	if (!cluster->options.cluster)
		return &cluster->servers[0];
	if (owner == HS_SIM_NO_NODE)
		return NULL;
	server = &cluster->servers[owner];
	move = hs_sim_view_move(&server->view, slot, false);
	if (!move)
		return server;
	if (hs_sim_keys_get(server, slot, key, &record) &&
	    (hs_sim_record_expiry(record) < 0 ||
	     hs_sim_now_ms(cluster) <= hs_sim_record_expiry(record)))
		return server;
	return &cluster->servers[move->other];
}

/* ---- peeking ---- */

static void peek(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key,
		 struct hs_buf *reply, int64_t *expire_ms)
{
	struct hs_reply writer = {.out = reply, .resp = 2};
	struct hs_record record;
	struct hs_bytes bytes;

	*expire_ms = -2;
	if (server && hs_sim_keys_get(server, slot, key, &bytes)) {
		hs_check(hs_record_decode(bytes, &record) == 0);
		if (record.expire_ms < 0 || hs_sim_now_ms(server->cluster) <= record.expire_ms) {
			*expire_ms = record.expire_ms;
			hs_reply_bulk(&writer, record.payload);
			return;
		}
	}
	hs_reply_null(&writer);
}

void hs_sim_cluster_peek(struct hs_sim_cluster *cluster, struct hs_bytes key, struct hs_buf *reply,
			 int64_t *expire_ms)
{
	uint16_t slot = hs_slot_of(key);

	peek(find_holder(cluster, slot, key), slot, key, reply, expire_ms);
}

void hs_sim_cluster_peek_at(struct hs_sim_cluster *cluster, uint8_t node, struct hs_bytes key,
			    struct hs_buf *reply, int64_t *expire_ms)
{
	peek(hs_sim_server_of(cluster, node), hs_slot_of(key), key, reply, expire_ms);
}

struct visit {
	void (*visit)(void *context, uint16_t slot, struct hs_bytes key);
	void *context;
};

static void visit_one(void *context, uint16_t slot, struct hs_bytes key, struct hs_bytes record)
{
	const struct visit *visit = context;

	(void)record;
	visit->visit(visit->context, slot, key);
}

void hs_sim_cluster_each_key(struct hs_sim_cluster *cluster, uint8_t node,
			     void (*function)(void *context, uint16_t slot, struct hs_bytes key),
			     void *context)
{
	struct visit visit = {function, context};

	hs_sim_keys_each(hs_sim_server_of(cluster, node), 0, HS_SLOTS - 1, visit_one, &visit);
}

/* ---- external commands ---- */

bool hs_sim_cluster_serves(const struct hs_sim_cluster *cluster, uint8_t node)
{
	const struct hs_sim_server *server = &cluster->servers[node];

	return hs_sim_server_runs(server) && server->loading_until_us == 0;
}

bool hs_sim_cluster_do_at(struct hs_sim_cluster *cluster, uint8_t node, size_t argc,
			  const struct hs_bytes *argv, struct hs_buf *reply)
{
	struct hs_sim_server *server = hs_sim_server_of(cluster, node);
	struct hs_sim_server_conn *conn;

	if (!hs_sim_cluster_serves(cluster, node) || !server->view.ok || server->paused ||
	    !hs_sim_server_is_master(server))
		return false;
	conn = hs_sim_server_open(server, NULL);
	conn->flags |= HS_SIM_CONN_HIDDEN | HS_SIM_CONN_LOGGED_IN;
	server->current = conn;
	hs_check(hs_sim_run_command(conn, argc, argv));
	server->current = NULL;
	hs_buf_append_bytes(reply, hs_buf_bytes(&conn->out));
	hs_sim_conn_free(conn);
	hs_sim_server_wake(server);
	return true;
}

bool hs_sim_cluster_do_external(struct hs_sim_cluster *cluster, size_t argc,
				const struct hs_bytes *argv, struct hs_buf *reply)
{
	uint16_t slot = hs_slot_of(argv[1]);
	struct hs_sim_server *server = find_holder(cluster, slot, argv[1]);
	uint8_t owner = cluster->options.cluster ? hs_sim_slots_owner(&cluster->truth, slot) : 0;

	/* An owner that does not answer redirects no request. */
	if (!server || !hs_sim_cluster_serves(cluster, owner))
		return false;
	if (server->number == owner && cluster->options.cluster &&
	    hs_sim_slots_owner(&server->view.slots, slot) != owner)
		return false;
	return hs_sim_cluster_do_at(cluster, server->number, argc, argv, reply);
}

void hs_sim_cluster_expire(struct hs_sim_cluster *cluster)
{
	for (uint8_t i = 0; i < cluster->count; i++) {
		if (hs_sim_cluster_serves(cluster, i))
			hs_sim_data_sweep(&cluster->servers[i]);
	}
}

bool hs_sim_cluster_evict(struct hs_sim_cluster *cluster, struct hs_bytes key)
{
	uint16_t slot = hs_slot_of(key);
	struct hs_sim_server *server = find_holder(cluster, slot, key);
	struct hs_bytes record;

	if (!server || !hs_sim_cluster_serves(cluster, server->number) || server->paused ||
	    !hs_sim_keys_get(server, slot, key, &record))
		return false;
	server->evicted++;
	hs_sim_data_remove(server, key, true);
	if (cluster->host.changed)
		cluster->host.changed(cluster->host.context, &(struct hs_sim_change){
								     .cause = HS_SIM_CHANGE_EVICTED,
								     .node = server->number,
								     .slot = slot,
								     .key = &key,
							     });
	hs_sim_stream_end_group(server);
	hs_sim_server_wake(server);
	return true;
}

/* ---- changes by faults ---- */

struct hs_sim_snapshot {
	struct hs_sim_cluster *cluster;
	const struct hs_sim_server *at; /* the node whose keys are being visited */
	uint8_t owner;
	struct hs_buf bytes; /* for each key: length of key, length of record, key, record */
	struct hs_changed keys;
};

static void remember(void *context, uint16_t slot, struct hs_bytes key, struct hs_bytes record)
{
	struct hs_sim_snapshot *snapshot = context;
	uint32_t lengths[2] = {(uint32_t)key.len, (uint32_t)record.len};

	if (hs_sim_slots_owner(&snapshot->cluster->truth, slot) != snapshot->owner ||
	    find_holder(snapshot->cluster, slot, key) != snapshot->at)
		return;
	hs_changed_add(&snapshot->keys, key);
	hs_buf_append(&snapshot->bytes, lengths, sizeof lengths);
	hs_buf_append_bytes(&snapshot->bytes, key);
	hs_buf_append_bytes(&snapshot->bytes, record);
}

struct hs_sim_snapshot *hs_sim_snapshot_create(struct hs_sim_cluster *cluster, uint8_t owner)
{
	struct hs_sim_snapshot *snapshot = hs_mem_zalloc(sizeof *snapshot);

	snapshot->cluster = cluster;
	snapshot->owner = owner;
	for (uint8_t i = 0; i < cluster->count; i++) {
		snapshot->at = &cluster->servers[i];
		hs_sim_keys_each(&cluster->servers[i], 0, HS_SLOTS - 1, remember, snapshot);
	}
	return snapshot;
}

static void tell_lost(struct hs_sim_snapshot *snapshot, uint16_t slot, struct hs_bytes key)
{
	const struct hs_sim_cluster_host *host = &snapshot->cluster->host;

	if (host->changed)
		host->changed(host->context, &(struct hs_sim_change){
						     .cause = HS_SIM_CHANGE_LOST,
						     .node = snapshot->owner,
						     .slot = slot,
						     .key = &key,
					     });
}

/* A key that the old owner did not have: its deletion is lost. */
static void report_new(void *context, uint16_t slot, struct hs_bytes key, struct hs_bytes record)
{
	struct hs_sim_snapshot *snapshot = context;
	uint32_t before = snapshot->keys.count;

	(void)record;
	if (hs_sim_slots_owner(&snapshot->cluster->truth, slot) != snapshot->owner ||
	    find_holder(snapshot->cluster, slot, key) != snapshot->at)
		return;
	hs_changed_add(&snapshot->keys, key);
	if (snapshot->keys.count > before)
		tell_lost(snapshot, slot, key);
}

void hs_sim_snapshot_compare(struct hs_sim_snapshot **pointer, uint8_t owner)
{
	struct hs_sim_snapshot *snapshot = *pointer;
	struct hs_sim_cluster *cluster = snapshot->cluster;
	uint32_t lengths[2];

	snapshot->owner = owner;
	for (size_t at = 0; at < snapshot->bytes.len; at += lengths[0] + lengths[1]) {
		struct hs_bytes key, record, now;
		struct hs_sim_server *holder;
		uint16_t slot;

		memcpy(lengths, snapshot->bytes.data + at, sizeof lengths);
		at += sizeof lengths;
		key = (struct hs_bytes){snapshot->bytes.data + at, lengths[0]};
		record = (struct hs_bytes){key.data + key.len, lengths[1]};
		slot = hs_slot_of(key);
		holder = find_holder(cluster, slot, key);
		if (!holder || !hs_sim_keys_get(holder, slot, key, &now) ||
		    !hs_bytes_equal(record, now))
			tell_lost(snapshot, slot, key);
	}
	for (uint8_t i = 0; i < cluster->count; i++) {
		snapshot->at = &cluster->servers[i];
		hs_sim_keys_each(&cluster->servers[i], 0, HS_SLOTS - 1, report_new, snapshot);
	}
	hs_buf_deinit(&snapshot->bytes);
	hs_changed_deinit(&snapshot->keys);
	hs_mem_free(pointer);
}
