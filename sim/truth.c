/* What really happens to keys, whoever does it: written down for the checker (sim/past.h), and told to
 * those who asked to be. */
#include "sim/world_internal.h"

#include "base/num.h"
#include "base/slot.h"
#include "route/slot.h"
#include "sim/history.h"
#include "wire/answer.h"

#include <stdio.h>

enum { SWEEP_US_MAX = 3000, KEY_BYTES_MAX = 16 };

/* --- keys --- */

static struct hs_bytes name_of(uint32_t key, char text[KEY_BYTES_MAX])
{
	int len = snprintf(text, KEY_BYTES_MAX, "key%u", key);

	return (struct hs_bytes){text, (size_t)len};
}

/* False: it is none of those that are written down. */
static bool number_of(const struct hs_sim_world *world, struct hs_bytes name, uint32_t *key)
{
	int64_t number;

	if (name.len < 4 || memcmp(name.data, "key", 3) != 0 ||
	    !hs_num_parse_int((struct hs_bytes){name.data + 3, name.len - 3}, &number) ||
	    number < 0 || number >= (int64_t)world->past.keys_count)
		return false;
	*key = (uint32_t)number;
	return true;
}

static uint16_t partition_of(const struct hs_sim_world *world, struct hs_bytes key)
{
	return hs_slot_partition(hs_slot_of(key), world->options.engine.partitions);
}

static int64_t value_of(struct hs_bytes reply)
{
	struct hs_answer answer;
	int64_t value, text = 0;

	hs_check(hs_answer_head(&answer, reply.data, reply.len) > 0);
	if (answer.type == HS_ANSWER_NULL)
		return HS_SIM_NOTHING;
	if (answer.text.len > 0 && answer.text.data[0] == 't') {
		answer.text.data++;
		answer.text.len--;
		text = HS_SIM_TEXT;
	}
	hs_check(hs_num_parse_int(answer.text, &value));
	return value + text;
}

/* --- what is written down --- */

/* Returns when it expires, as hs_sim_store_peek does. */
static int64_t note(struct hs_sim_world *world, uint32_t key, bool expired, int64_t from_us)
{
	struct hs_sim_version version = {
		.from = ++world->steps,
		.from_us = from_us,
		.expired = expired,
	};
	struct hs_buf reply = {0};
	char text[KEY_BYTES_MAX];
	struct hs_bytes name = name_of(key, text);
	int64_t expire_ms;

	hs_sim_store_peek(world->store, partition_of(world, name), name, hs_now_wall_ms(world->now),
			  &reply, &expire_ms);
	version.value = value_of(hs_buf_bytes(&reply));
	hs_sim_past_note(&world->past, key, &version);
	hs_buf_deinit(&reply);
	return expire_ms;
}

/* The first moment at which a key that is there up to this millisecond is not any more. */
static int64_t gone_us(int64_t expire_ms)
{
	return (expire_ms + 1) * 1000;
}

static void sweep(void *context, void *target, uint64_t partition)
{
	struct hs_sim_world *world = context;

	(void)target;
	if (world->links && !hs_sim_links_serves(world->links, (uint16_t)partition))
		return;
	hs_sim_store_sweep(world->store, (uint16_t)partition, hs_now_wall_ms(world->now));
	hs_sim_store_tell(world->store);
}

/* Its time is up, if nobody gave it more; the server finds out later. */
static void expire(void *context, void *target, uint64_t key)
{
	struct hs_sim_world *world = context;
	struct hs_sim_event event = {.run = sweep, .context = world};
	char text[KEY_BYTES_MAX];

	(void)target;
	note(world, (uint32_t)key, true, world->now.wall_us);
	event.at_us = world->now.mono_us + hs_prng_below(&world->prng, SWEEP_US_MAX);
	event.number = partition_of(world, name_of((uint32_t)key, text));
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
	char text[KEY_BYTES_MAX];

	for (uint32_t key = 0; key < world->past.keys_count; key++) {
		if (partition_of(world, name_of(key, text)) == partition)
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
	if (world->links)
		hs_sim_links_changed(world->links, partition, name);
}

void hs_sim_truth_ran(void *context, const struct hs_op *op)
{
	struct hs_sim_world *world = context;
	uint32_t key;

	for (size_t i = 1; !world->behind && i < op->argc; i++) {
		if (number_of(world, op->argv[i], &key))
			hs_sim_past_asked(&world->past, key, world->now.wall_us);
	}
}

/* --- behind our back --- */

bool hs_sim_world_same_partition(const struct hs_sim_world *world, uint32_t key, uint32_t other)
{
	char text[KEY_BYTES_MAX];
	uint16_t partition = partition_of(world, name_of(key, text));

	return partition_of(world, name_of(other, text)) == partition;
}

bool hs_sim_world_do_behind(struct hs_sim_world *world, struct hs_bytes key, size_t argc,
			    const struct hs_bytes *argv, struct hs_buf *reply)
{
	struct hs_op op = {
		.kind = HS_OP_COMMAND,
		.resp = 2,
		.command = hs_command_find(argv[0]),
		.argv = argv,
		.argc = argc,
		.slot = hs_slot_of(key),
		.partition = partition_of(world, key),
		.out = reply,
	};

	if (!world->links || !hs_sim_links_serves(world->links, op.partition))
		return false;
	world->behind = true;
	hs_sim_store_run(world->store, &op, hs_now_wall_ms(world->now), true);
	world->behind = false;
	hs_sim_store_tell(world->store);
	return true;
}
