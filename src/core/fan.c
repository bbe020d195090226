/* Commands that concern several partitions, or every worker: one request, many parts, one reply.
 *
 *     MGET a b c d ──┬── partition 1: MGET a c ──┐
 *                    └── partition 5: MGET b d ──┴── [a b c d]
 *
 * Each part is an operation like any other and keeps its place among the connection's operations on
 * that partition. Keys of one partition stay together, so they are read or written as one. */
#include "core/session.h"

#include "base/mem.h"
#include "keyspace/keyspace.h"
#include "route/merge.h"
#include "route/slot.h"

static void submit_all(struct hs_core *core, struct hs_request *request)
{
	uint32_t count = request->parts_count;

	/* The last answer may finish and free the request: count first. */
	for (uint32_t i = 0; i < count; i++)
		hs_step_submit(core, request, i);
}

/* Which part of a split command each of its keys goes to. */
struct split {
	uint16_t part_of[HS_PARTITIONS_MAX]; /* partition to part, +1; 0: none yet */
	uint16_t partition[HS_PARTITIONS_MAX];
	uint32_t keys[HS_PARTITIONS_MAX];
	uint32_t count;
};

static uint32_t split_part(struct split *split, uint16_t partition)
{
	if (split->part_of[partition] == 0) {
		split->partition[split->count] = partition;
		split->keys[split->count] = 0;
		split->part_of[partition] = (uint16_t)++split->count;
	}
	return split->part_of[partition] - 1u;
}

static void fill_parts(struct hs_request *request, const struct split *split, size_t first,
		       size_t step)
{
	hs_request_split(request, split->count);
	for (uint32_t i = 0; i < split->count; i++) {
		struct hs_part *part = &request->parts[i];

		part->argv = hs_mem_alloc((1 + split->keys[i] * step) * sizeof *part->argv);
		part->argv[0] = request->argv[0];
		part->op = (struct hs_op){
			.kind = HS_OP_COMMAND,
			.command = request->command,
			.partition = split->partition[i],
			.argv = part->argv,
			.argc = 1,
		};
	}
	for (size_t i = 0; i < request->keys; i++) {
		struct hs_part *part = &request->parts[request->key_part[i]];

		for (size_t j = 0; j < step; j++)
			part->argv[part->op.argc++] = request->argv[first + i * step + j];
	}
}

void hs_fan_split(struct hs_core *core, struct hs_session *session,
		  const struct hs_command *command, size_t argc, const struct hs_bytes *argv)
{
	struct hs_request *request = hs_request_get(core, session, command);
	struct split split = {0};
	size_t first, step;

	hs_request_keep_args(request, argc, argv);
	request->keys = hs_command_keys(command, argc, &first, &step);
	if ((argc - first) % step != 0) {
		/* MSET with a key that has no value. */
		struct hs_reply reply = {.out = &request->reply, .resp = session->resp};

		hs_reply_errorf(&reply, "ERR wrong number of arguments for '%s' command",
				command->name);
		hs_step_account(core, session, command, argc, argv, 0, true);
		hs_request_finish(core, request);
		return;
	}
	request->key_part = hs_mem_alloc(request->keys * sizeof *request->key_part);
	for (size_t i = 0; i < request->keys; i++) {
		uint16_t slot = hs_slot_of(argv[first + i * step]);

		request->key_part[i] =
			split_part(&split, hs_slot_partition(slot, core->world.partitions));
		split.keys[request->key_part[i]]++;
	}
	fill_parts(request, &split, first, step);
	submit_all(core, request);
}

void hs_fan_all(struct hs_core *core, struct hs_session *session, const struct hs_command *command,
		size_t argc, const struct hs_bytes *argv)
{
	struct hs_request *request = hs_request_get(core, session, command);
	bool peers = command->place == HS_PLACE_WORKERS;
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};

	hs_request_keep_args(request, argc, argv);
	if (peers && !hs_peer_check(command, argc, argv, &reply)) {
		hs_step_account(core, session, command, argc, argv, 0, true);
		hs_request_finish(core, request);
		return;
	}
	hs_request_split(request, peers ? core->world.workers : core->world.partitions);
	for (uint32_t i = 0; i < request->parts_count; i++) {
		request->parts[i].op = (struct hs_op){
			.kind = peers ? HS_OP_PEER : HS_OP_COMMAND,
			.command = command,
			.partition = (uint16_t)i,
			.argv = request->argv,
			.argc = argc,
			.watcher = session->id,
		};
	}
	submit_all(core, request);
}

void hs_fan_cursor(struct hs_core *core, struct hs_session *session,
		   const struct hs_command *command, size_t argc, const struct hs_bytes *argv)
{
	struct hs_request *request = hs_request_get(core, session, command);
	uint64_t cursor = 0;
	uint16_t slot;

	/* A cursor that is no number, or none of ours, goes to the last partition, which says what
	 * is wrong with it or finds nothing there. */
	if (!hs_keyspace_parse_cursor(argv[1], &cursor) ||
	    hs_keyspace_cursor_slot(cursor) >= HS_SLOTS)
		cursor = UINT64_MAX;
	slot = cursor == UINT64_MAX ? HS_SLOTS - 1 : hs_keyspace_cursor_slot(cursor);
	hs_request_keep_args(request, argc, argv);
	hs_request_split(request, 1);
	request->parts[0].op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.command = command,
		.slot = slot,
		.partition = hs_slot_partition(slot, core->world.partitions),
		.argv = request->argv,
		.argc = argc,
	};
	hs_step_submit(core, request, 0);
}

static void merge_cursor(const struct hs_core *core, struct hs_request *request,
			 struct hs_reply *reply)
{
	uint16_t next = (uint16_t)(request->parts[0].op.partition + 1);
	uint64_t cursor = 0;

	if (next < core->world.partitions)
		cursor = (uint64_t)hs_slot_first(next, core->world.partitions) << 48;
	hs_merge_cursor(hs_buf_bytes(&request->parts[0].out), cursor, reply);
}

void hs_fan_merge(struct hs_core *core, struct hs_request *request)
{
	/* The dialect of the time of asking: HELLO may have come since. */
	struct hs_reply reply = {.out = &request->reply, .resp = request->parts[0].op.resp};
	struct hs_bytes *parts;

	if (request->command->place == HS_PLACE_CURSOR) {
		merge_cursor(core, request, &reply);
		return;
	}
	if (request->command->place == HS_PLACE_WORKERS) {
		hs_peer_merge(request, &reply);
		return;
	}
	if (request->parts_count == 1) {
		hs_buf_swap(&request->reply, &request->parts[0].out);
		return;
	}
	parts = hs_mem_alloc(request->parts_count * sizeof *parts);
	for (uint32_t i = 0; i < request->parts_count; i++)
		parts[i] = hs_buf_bytes(&request->parts[i].out);

	struct hs_merge merge = {
		.how = request->command->merge,
		.parts = parts,
		.count = request->parts_count,
		.key_part = request->key_part,
		.keys = request->keys,
		.first = (uint32_t)hs_prng_below(&core->prng, request->parts_count),
	};

	hs_merge_replies(&merge, &reply);
	hs_mem_release(parts);
}
