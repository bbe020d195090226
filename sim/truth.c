/* The ground truth: writes every change of a key to its timeline (sim/timeline.h), external ones as well; reports
 * commands that servers ran to the checkers that want them; and runs external commands directly at the servers. */
#include "sim/world_internal.h"

#include "base/num.h"
#include "base/slot.h"
#include "route/slot_map.h"
#include "sim/cluster.h"
#include "sim/history.h"
#include "sim/names.h"
#include "wire/parse_reply.h"

#include <inttypes.h>
#include <stdio.h>

enum { SWEEP_US_MAX = 3000 };

/* --- keys --- */

static struct hs_bytes name_of(const struct hs_sim_world *world, uint32_t key,
			       char text[HS_SIM_NAME_BYTES_MAX])
{
	return hs_bytes_of(hs_sim_name(world->options.tied, key, text));
}

/* False: the key has no timeline. */
static bool number_of(const struct hs_sim_world *world, struct hs_bytes name, uint32_t *key)
{
	return hs_sim_name_number(name, key) && *key < world->timelines.keys_count;
}

static uint16_t partition_of(const struct hs_sim_world *world, struct hs_bytes key)
{
	return hs_slot_partition(hs_slot_of(key), world->options.engine.partitions);
}

static int64_t value_of(struct hs_bytes reply)
{
	struct hs_parsed_reply answer;
	int64_t value, text = 0;

	hs_check(hs_parse_reply_head(&answer, reply.data, reply.len) > 0);
	if (answer.type == HS_PARSED_NULL)
		return HS_SIM_NOTHING;
	if (answer.text.len > 0 && answer.text.data[0] == 't') {
		answer.text.data++;
		answer.text.len--;
		text = HS_SIM_TEXT;
	}
	hs_check(hs_num_parse_int(answer.text, &value));
	return value + text;
}

/* --- timelines --- */

static void peek(struct hs_sim_world *world, uint32_t key, struct hs_buf *reply, int64_t *expire_ms)
{
	char text[HS_SIM_NAME_BYTES_MAX];
	struct hs_bytes name = name_of(world, key, text);

	if (world->cluster)
		hs_sim_cluster_peek(world->cluster, name, reply, expire_ms);
	else
		hs_sim_store_peek(world->store, partition_of(world, name), name,
				  hs_now_wall_ms(world->now), reply, expire_ms);
}

int64_t hs_sim_world_peek(struct hs_sim_world *world, uint32_t key, int64_t *ttl_ms)
{
	struct hs_buf reply = {0};
	int64_t value, expire_ms;

	peek(world, key, &reply, &expire_ms);
	value = value_of(hs_buf_bytes(&reply));
	*ttl_ms = expire_ms < 0 ? 0 : expire_ms + 1 - hs_now_wall_ms(world->now);
	hs_buf_deinit(&reply);
	return value;
}

/* The simulated embedded engine has not synced what the partition ran. An expired key is missing all the same,
 * unless its time to live comes from that run. */
static bool is_hidden(const struct hs_sim_world *world, uint32_t key, bool expired)
{
	char text[HS_SIM_NAME_BYTES_MAX];

	if (!world->engine || expired)
		return world->timelines.keys[key].hidden;
	return hs_sim_engine_is_sealing(world->engine,
					partition_of(world, name_of(world, key, text)));
}

/* Adds a span to the key's timeline. Returns its expiry as hs_sim_store_peek does. */
static int64_t note(struct hs_sim_world *world, uint32_t key, bool expired, int64_t from_us)
{
	struct hs_sim_value_span span = {
		.from = ++world->steps,
		.from_us = from_us,
		.expired = expired,
		.hidden = is_hidden(world, key, expired),
	};
	struct hs_buf reply = {0};
	int64_t expire_ms;

	peek(world, key, &reply, &expire_ms);
	span.value = value_of(hs_buf_bytes(&reply));
	hs_sim_timelines_note(&world->timelines, key, &span);
	hs_buf_deinit(&reply);
	return expire_ms;
}

/* The first µs at which a key is missing whose last ms is `expire_ms`. */
static int64_t gone_us(int64_t expire_ms)
{
	return (expire_ms + 1) * 1000;
}

static void sweep(void *context, void *target, uint64_t partition)
{
	struct hs_sim_world *world = context;

	(void)target;
	if (world->cluster) {
		hs_sim_cluster_expire(world->cluster);
		return;
	}
	hs_sim_engine_sweep(world->engine, (uint16_t)partition);
}

/* The key expires, unless its time to live has changed; the server deletes it a little later. */
static void expire(void *context, void *target, uint64_t key)
{
	struct hs_sim_world *world = context;
	struct hs_sim_event event = {.run = sweep, .context = world};
	char text[HS_SIM_NAME_BYTES_MAX];

	(void)target;
	note(world, (uint32_t)key, true, world->now.wall_us);
	event.at_us = world->now.mono_us + hs_prng_below(&world->prng, SWEEP_US_MAX);
	event.number = partition_of(world, name_of(world, (uint32_t)key, text));
	hs_sim_events_plan(&world->events, event);
}

static void note_change(struct hs_sim_world *world, uint32_t key)
{
	struct hs_sim_event event = {.run = expire, .context = world, .number = key};
	int64_t expire_ms = note(world, key, false, world->now.wall_us);

	if (expire_ms < 0)
		return;
	event.at_us = world->now.mono_us + (uint64_t)(gone_us(expire_ms) - world->now.wall_us);
	hs_sim_events_plan(&world->events, event);
}

static void note_all(struct hs_sim_world *world, uint16_t partition)
{
	char text[HS_SIM_NAME_BYTES_MAX];

	for (uint32_t key = 0; key < world->timelines.keys_count; key++) {
		if (partition_of(world, name_of(world, key, text)) == partition)
			note_change(world, key);
	}
}

void hs_sim_truth_changed(void *context, uint16_t partition, const struct hs_bytes *name)
{
	struct hs_sim_world *world = context;
	uint32_t key;

	if (!name)
		note_all(world, partition);
	else if (number_of(world, *name, &key))
		note_change(world, key);
}

void hs_sim_truth_sealed(void *context, uint16_t partition)
{
	struct hs_sim_heatsink *heatsink = context;
	struct hs_sim_world *world = heatsink->world;
	char text[HS_SIM_NAME_BYTES_MAX];

	for (uint32_t key = 0; key < world->timelines.keys_count; key++) {
		if (partition_of(world, name_of(world, key, text)) == partition)
			hs_sim_timelines_reveal(&world->timelines, key, &world->steps,
						world->now.wall_us);
	}
}

void hs_sim_truth_changed_at(void *context, const struct hs_sim_change *change)
{
	struct hs_sim_world *world = context;
	uint32_t key;

	if (change->void_already) /* no span: the checkers must find that an acknowledged write is lost */
		return;
	for (key = 0; !change->key && key < world->timelines.keys_count; key++)
		note_change(world, key);
	if (change->key && number_of(world, *change->key, &key))
		note_change(world, key);
	if (change->key && change->cause == HS_SIM_CHANGE_LOST &&
	    hs_sim_name_number(*change->key, &key) && world->lost)
		world->lost(world->lost_context, key);
}

/* Adds a line to the script (sim/faults.h): the command that a server ran or refused. */
static void note_ran(struct hs_sim_world *world, const char *does, const struct hs_sim_ran *ran)
{
	char words[100] = "", word[40], reply[40];

	if (!world->options.script)
		return;
	for (size_t i = 0; i < ran->argc && strlen(words) + sizeof word + 1 < sizeof words; i++)
		snprintf(words + strlen(words), sizeof word + 1, " %s",
			 hs_bytes_escape(ran->argv[i], word, sizeof word));
	hs_sim_script_note(world, "node %u %s%s on %" PRIu64 "%s: %s", ran->node, does, words,
			   ran->conn ? hs_sim_server_conn_id(ran->conn) : 0,
			   ran->in_exec ? " in EXEC" : "",
			   hs_bytes_escape(ran->reply, reply, sizeof reply));
}

void hs_sim_truth_ran_at(void *context, const struct hs_sim_ran *ran)
{
	struct hs_sim_world *world = context;
	uint32_t key;

	note_ran(world, "runs", ran);
	if (!ran->conn)
		return;
	if (world->ran)
		world->ran(world->ran_context, ran);
	hs_sim_executions_ran(&world->executions, ran);
	for (size_t i = 1; i < ran->argc; i++) {
		if (number_of(world, ran->argv[i], &key))
			hs_sim_timelines_server_read(&world->timelines, key, world->now.wall_us);
	}
	hs_sim_duplicates_note(world, ran);
}

void hs_sim_truth_refused_at(void *context, const struct hs_sim_ran *not_run)
{
	note_ran(context, "refuses", not_run);
}

static void add_words(struct hs_buf *words, size_t argc, const struct hs_bytes *argv)
{
	for (size_t i = 0; i < argc; i++) {
		hs_buf_append(words, " ", 1);
		hs_buf_append_bytes(words, argv[i]);
	}
}

/* The same for the simulated embedded engine. */
static void note_engine_ran(struct hs_sim_world *world, const struct hs_op *op)
{
	struct hs_buf words = {0};
	char text[160];

	if (!world->options.script)
		return;
	for (size_t i = 0; op->tx && i < op->tx->count; i++)
		add_words(&words, op->tx->commands[i].argc, op->tx->commands[i].argv);
	add_words(&words, op->argc, op->argv);
	hs_sim_script_note(world, "partition %u runs%s for worker %u", op->partition,
			   hs_bytes_escape(hs_buf_bytes(&words), text, sizeof text), op->worker);
	hs_buf_deinit(&words);
}

void hs_sim_truth_ran(void *context, const struct hs_op *op)
{
	struct hs_sim_world *world = context;
	uint32_t key;

	note_engine_ran(world, op);
	for (size_t i = 1; i < op->argc; i++) {
		if (number_of(world, op->argv[i], &key))
			hs_sim_timelines_server_read(&world->timelines, key, world->now.wall_us);
	}
}

/* --- external commands --- */

/* In front of a Cluster: the same server at the moment, and neither slot is moving. */
bool hs_sim_world_same_partition(const struct hs_sim_world *world, uint32_t key, uint32_t other)
{
	char text[HS_SIM_NAME_BYTES_MAX];
	struct hs_bytes name = name_of(world, key, text);
	uint16_t slot = hs_slot_of(name), other_slot;

	name = name_of(world, other, text);
	other_slot = hs_slot_of(name);
	if (!world->cluster)
		return hs_slot_partition(slot, world->options.engine.partitions) ==
		       hs_slot_partition(other_slot, world->options.engine.partitions);
	return hs_sim_cluster_owner(world->cluster, slot) ==
		       hs_sim_cluster_owner(world->cluster, other_slot) &&
	       hs_sim_cluster_moving_to(world->cluster, slot) == HS_SIM_NO_NODE &&
	       hs_sim_cluster_moving_to(world->cluster, other_slot) == HS_SIM_NO_NODE;
}

bool hs_sim_world_do_external(struct hs_sim_world *world, struct hs_bytes key, size_t argc,
			      const struct hs_bytes *argv, struct hs_buf *reply)
{
	uint8_t owner;
	bool done;

	if (!world->cluster)
		return false;
	owner = hs_sim_cluster_owner(world->cluster, hs_slot_of(key));
	done = argc > 1 ? hs_sim_cluster_do_external(world->cluster, argc, argv, reply)
			: owner != HS_SIM_NO_NODE &&
				  hs_sim_cluster_do_at(world->cluster, owner, argc, argv, reply);
	world->external += done;
	return done;
}
