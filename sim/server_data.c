/* Commands on keys: keyspace/ runs them over the node's map, each as a transaction of its own. Changes go to
 * watchers (by keyspace/), to tracking clients, to the replicas and to the host. */
#include "sim/server_internal.h"

#include "base/err.h"
#include "base/num.h"
#include "base/slot.h"
#include "keyspace/watch.h"

enum { SWEEP_MAX = 1000 };

#define OOM "OOM command not allowed when used memory > 'maxmemory'."

struct hs_keyspace hs_sim_keyspace(struct hs_sim_server *server)
{
	return (struct hs_keyspace){
		.kv = hs_memkv_kv(server->map),
		.now_ms = hs_sim_now_ms(server->cluster),
		.hash_seed = server->cluster->hash_seed,
		.prng = &server->cluster->prng,
		.watch = server->watch,
		.changed = &server->changed,
		.counts = &server->counts,
	};
}

/* ---- effects of a change ---- */

/* Whether a change of the slot at this node changes the true value. */
static bool is_true(const struct hs_sim_server *server, uint16_t slot)
{
	const struct hs_sim_cluster *cluster = server->cluster;
	const struct hs_sim_move *move;
	uint8_t owner;

	if (!cluster->options.cluster)
		return true;
	owner = hs_sim_slots_owner(&cluster->truth, slot);
	if (owner == server->number)
		return true;
	if (owner == HS_SIM_NO_NODE)
		return false;
	move = hs_sim_view_move((struct hs_sim_view *)&cluster->servers[owner].view, slot, false);
	return move && move->other == server->number;
}

static void tell_host(struct hs_sim_server *server, enum hs_sim_change_cause cause,
		      const struct hs_bytes *key)
{
	const struct hs_sim_cluster_host *host = &server->cluster->host;
	uint16_t slot = key ? hs_slot_of(*key) : 0;
	const struct hs_sim_server_conn *conn = server->current;

	host->changed(host->context,
		      &(struct hs_sim_change){
			      .cause = cause,
			      .node = server->number,
			      .slot = slot,
			      .key = key,
			      .void_already = key && !is_true(server, slot),
			      .conn = conn && conn->flags & HS_SIM_CONN_HIDDEN ? NULL : conn,
		      });
}

static void tell(struct hs_sim_server *server, enum hs_sim_change_cause cause,
		 const struct hs_bytes *key)
{
	bool leads = hs_sim_server_is_master(server);

	if (key) {
		hs_sim_tracking_invalidate(server, *key);
		if (leads)
			hs_sim_stream_note_key(server, hs_slot_of(*key), *key);
	} else {
		hs_sim_tracking_invalidate_all(server);
		if (leads)
			hs_sim_stream_note_all(server);
	}
	if (leads && server->cluster->host.changed)
		tell_host(server, cause, key);
}

void hs_sim_data_notify(struct hs_sim_server *server, enum hs_sim_change_cause cause)
{
	struct hs_changed *changed = &server->changed;

	if (changed->all)
		tell(server, cause, NULL);
	for (uint32_t i = 0; i < changed->count; i++) {
		struct hs_bytes key = hs_changed_name(changed, i);

		tell(server, cause, &key);
	}
	hs_changed_clear(changed);
}

/* ---- expiry ---- */

void hs_sim_data_remove(struct hs_sim_server *server, struct hs_bytes key, bool tells)
{
	uint16_t slot = hs_slot_of(key);

	hs_memkv_begin(server->map);
	hs_sim_keys_put(server, slot, key, (struct hs_bytes){0});
	if (tells && server->watch) {
		struct hs_keyspace ks = hs_sim_keyspace(server);

		hs_watch_touch(server->watch, &ks, slot, key);
	}
	hs_memkv_commit(server->map);
	if (!tells)
		return;
	hs_sim_tracking_invalidate(server, key);
	if (hs_sim_server_is_master(server))
		hs_sim_stream_note_key(server, slot, key);
}

bool hs_sim_data_is_expired(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key)
{
	struct hs_bytes record;
	int64_t expire_ms;

	if (hs_sim_keys_count_expiring(server) == 0 || !hs_sim_keys_get(server, slot, key, &record))
		return false;
	expire_ms = hs_sim_record_expiry(record);
	return expire_ms >= 0 && hs_sim_now_ms(server->cluster) > expire_ms;
}

bool hs_sim_data_expire(struct hs_sim_server *server, uint16_t slot, struct hs_bytes key)
{
	if (!hs_sim_data_is_expired(server, slot, key))
		return false;
	/* A replica waits for its master's DEL, and a master that is about to hand over changes nothing. */
	if (!hs_sim_server_is_master(server) || server->paused)
		return true;
	hs_sim_data_remove(server, key, true);
	server->counts.expired++;
	if (server->cluster->host.changed)
		tell_host(server, HS_SIM_CHANGE_EXPIRED, &key);
	return true;
}

/* Every command deletes its expired keys first. */
static void expire_keys(struct hs_sim_server *server, const struct hs_command *command, size_t argc,
			const struct hs_bytes *argv)
{
	struct hs_key_walk walk;
	size_t at;

	if (hs_sim_keys_count_expiring(server) == 0)
		return;
	hs_keys_begin(&walk, command, argc, argv);
	while ((at = hs_keys_next(&walk)) > 0)
		hs_sim_data_expire(server, hs_slot_of(argv[at]), argv[at]);
}

void hs_sim_data_sweep(struct hs_sim_server *server)
{
	struct hs_keyspace ks = hs_sim_keyspace(server);
	int swept;

	if (!hs_sim_server_is_master(server) || server->paused ||
	    hs_sim_keys_count_expiring(server) == 0)
		return;
	hs_memkv_begin(server->map);
	swept = hs_keyspace_sweep(&ks, SWEEP_MAX);
	hs_check(swept >= 0);
	hs_memkv_commit(server->map);
	hs_sim_data_notify(server, HS_SIM_CHANGE_EXPIRED);
	hs_sim_stream_end_group(server);
	hs_sim_server_wake(server); /* for broadcasts */
}

/* ---- commands ---- */

/* The slot of a command whose keys share one; keyspace/ finds the slots of other commands itself. */
static uint16_t slot_of(const struct hs_command *command, size_t argc, const struct hs_bytes *argv)
{
	struct hs_key_walk walk;
	size_t at;

	if (command->place != HS_PLACE_PARTITION)
		return 0;
	hs_keys_begin(&walk, command, argc, argv);
	at = hs_keys_next(&walk);
	return at > 0 ? hs_slot_of(argv[at]) : 0;
}

/* RENAME reports the old name first. */
static void put_in_order(struct hs_changed *changed, const struct hs_command *command)
{
	struct hs_changed_key key;

	if ((command->id != HS_CMD_ID_RENAME && command->id != HS_CMD_ID_RENAMENX) ||
	    changed->count != 2)
		return;
	key = changed->keys[0];
	changed->keys[0] = changed->keys[1];
	changed->keys[1] = key;
}

/* Reads the slot of CLUSTER COUNTKEYSINSLOT and GETKEYSINSLOT. False: it is invalid; the error is written. */
static bool read_slot(const struct hs_command *command, const struct hs_bytes *argv,
		      struct hs_reply *reply, uint16_t *slot)
{
	bool counts = command->id == HS_CMD_ID_CLUSTER_COUNTKEYSINSLOT;
	int64_t number, keys = 0;

	if (!hs_num_parse_int(argv[2], &number) || (!counts && !hs_num_parse_int(argv[3], &keys))) {
		hs_reply_error(reply, "ERR value is not an integer or out of range");
		return false;
	}
	if (number < 0 || number >= HS_SLOTS || keys < 0) {
		hs_reply_error(reply,
			       counts ? "ERR Invalid slot" : "ERR Invalid slot or number of keys");
		return false;
	}
	*slot = (uint16_t)number;
	return true;
}

/* DBSIZE and CLUSTER COUNTKEYSINSLOT. Redis also counts expired keys that it has not deleted. False: another
 * command. */
static bool run_count(struct hs_sim_server *server, const struct hs_command *command, uint16_t slot,
		      struct hs_reply *reply)
{
	if (command->id == HS_CMD_ID_DBSIZE)
		hs_reply_int(reply, (int64_t)hs_sim_keys_count(server));
	else if (command->id == HS_CMD_ID_CLUSTER_COUNTKEYSINSLOT)
		hs_reply_int(reply, (int64_t)hs_sim_keys_count_slot(server, slot));
	else
		return false;
	return true;
}

/* A server without a Cluster accepts keys of different slots, but keyspace/ looks for all keys of such a command in
 * one slot. So the other keys' records are moved there while the command runs. */
static void change_slots(struct hs_sim_server *server, const struct hs_command *command,
			 size_t argc, const struct hs_bytes *argv, uint16_t slot, bool back)
{
	struct hs_key_walk walk;
	size_t at;

	hs_keys_begin(&walk, command, argc, argv);
	while ((at = hs_keys_next(&walk)) > 0) {
		uint16_t own = hs_slot_of(argv[at]);

		if (own != slot)
			hs_sim_keys_shift(server, argv[at], back ? slot : own, back ? own : slot);
	}
}

static bool needs_one_slot(const struct hs_sim_server *server, const struct hs_command *command)
{
	return !server->cluster->options.cluster && command->place == HS_PLACE_PARTITION &&
	       command->key_first != command->key_last;
}

void hs_sim_data_run(struct hs_sim_server_conn *conn, const struct hs_command *command, size_t argc,
		     const struct hs_bytes *argv, struct hs_reply *reply)
{
	struct hs_sim_server *server = conn->server;
	uint16_t slot = slot_of(command, argc, argv);
	struct hs_keyspace ks;
	int err;

	if (command->place == HS_PLACE_SLOT && !read_slot(command, argv, reply, &slot))
		return;
	if (run_count(server, command, slot, reply))
		return;
	expire_keys(server, command, argc, argv);
	ks = hs_sim_keyspace(server);
	hs_memkv_begin(server->map);
	if (needs_one_slot(server, command))
		change_slots(server, command, argc, argv, slot, false);
	err = hs_keyspace_run(&ks, command, slot, argc, argv, reply);
	if (!err && needs_one_slot(server, command))
		change_slots(server, command, argc, argv, slot, true);
	if (err) {
		hs_check(err == HS_EFULL);
		hs_memkv_abort(server->map);
		hs_changed_clear(&server->changed);
		hs_reply_error(reply, OOM);
		return;
	}
	hs_memkv_commit(server->map);
	put_in_order(&server->changed, command);
	hs_sim_data_notify(server, HS_SIM_CHANGE_COMMAND);
}
