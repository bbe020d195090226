/* Commands that go to several partitions, or to every worker: one request, several parts, one reply.
 *
 *     MGET a b c d ──┬── partition 1: MGET a c ──┐
 *                    └── partition 5: MGET b d ──┴── [a b c d]
 *
 * Each part is an ordinary operation and keeps its place among the connection's operations on that partition.
 * Keys of one partition (in front of a Cluster, of one slot) stay together, so they are read or written as one. */
#include "core/fanout.h"

#include "base/mem.h"
#include "base/num.h"
#include "core/dispatch.h"
#include "core/reserved.h"
#include "core/unknown.h"
#include "keyspace/keyspace.h"
#include "route/merge.h"
#include "route/slot_map.h"
#include "wire/reply.h"

#include <inttypes.h>
#include <stdio.h>

static void submit_all(struct hs_core *core, struct hs_request *request)
{
	uint32_t count = request->parts_count;

	/* The last reply may free the request: read the count first. */
	for (uint32_t i = 0; i < count; i++)
		hs_dispatch_submit(core, request, i);
}

/* Assigns the keys of a split command to parts, one part for each partition or slot (hs_op_scope). */
struct split_part {
	uint16_t slot; /* slot of its first key */
	uint16_t partition;
	uint32_t keys;
};

struct split {
	enum hs_op_scope op_scope;
	uint32_t *cells; /* hash table: index of a part, plus 1; 0: empty */
	uint32_t mask;
	struct split_part *parts; /* room for one part for each key */
	uint32_t count;
};

static void split_init(struct split *split, enum hs_op_scope op_scope, size_t keys)
{
	size_t cells = 4;

	while (cells < 2 * keys && cells < 2 * HS_SLOTS)
		cells *= 2;
	split->op_scope = op_scope;
	split->cells = hs_mem_zalloc(cells * sizeof *split->cells);
	split->mask = (uint32_t)cells - 1;
	split->parts = hs_mem_alloc((keys < HS_SLOTS ? keys : HS_SLOTS) * sizeof *split->parts);
	split->count = 0;
}

static uint32_t split_part(struct split *split, uint16_t slot, uint16_t partition)
{
	bool by_slot = split->op_scope == HS_OP_SCOPE_SLOT;

	for (uint32_t at = by_slot ? slot : partition;; at++) {
		uint32_t *cell = &split->cells[at & split->mask];

		if (*cell == 0) {
			split->parts[split->count] = (struct split_part){slot, partition, 0};
			*cell = ++split->count;
			return *cell - 1;
		}

		const struct split_part *there = &split->parts[*cell - 1];

		if (by_slot ? there->slot == slot : there->partition == partition)
			return *cell - 1;
	}
}

static void fill_parts(struct hs_request *request, const struct split *split, size_t first,
		       size_t step)
{
	hs_request_split(request, split->count);
	for (uint32_t i = 0; i < split->count; i++) {
		struct hs_part *part = &request->parts[i];

		part->argv = hs_mem_alloc((1 + split->parts[i].keys * step) * sizeof *part->argv);
		part->argv[0] = request->call.argv[0];
		part->op = (struct hs_op){
			.kind = HS_OP_COMMAND,
			.command = request->call.command,
			.slot = split->parts[i].slot,
			.partition = split->parts[i].partition,
			.argv = part->argv,
			.argc = 1,
		};
	}
	for (size_t i = 0; i < request->keys; i++) {
		struct hs_part *part = &request->parts[request->key_part[i]];

		for (size_t j = 0; j < step; j++)
			part->argv[part->op.argc++] = request->call.argv[first + i * step + j];
	}
}

void hs_fanout_split(struct hs_core *core, struct hs_session *session, const struct hs_call *call)
{
	struct hs_request *request = hs_request_make(core, session, call);
	struct split split;
	size_t first, step;

	request->keys = hs_command_keys(call->command, call->argc, &first, &step);
	if ((call->argc - first) % step != 0) {
		/* MSET with a key that has no value. */
		struct hs_reply reply = {.out = &request->reply, .resp = session->resp};

		hs_reply_errorf(&reply, "ERR wrong number of arguments for '%s' command",
				call->command->name);
		hs_dispatch_account(core, session, call, 0, true);
		hs_request_finish(core, request);
		return;
	}
	request->key_part = hs_mem_alloc(request->keys * sizeof *request->key_part);
	split_init(&split, core->world.op_scope, request->keys);
	for (size_t i = 0; i < request->keys; i++) {
		uint16_t slot = hs_slot_of(call->argv[first + i * step]);

		request->key_part[i] = split_part(&split, slot, hs_core_partition(core, slot));
		split.parts[request->key_part[i]].keys++;
	}
	fill_parts(request, &split, first, step);
	hs_mem_release(split.cells);
	hs_mem_release(split.parts);
	submit_all(core, request);
}

/* Lists the partitions in use; returns how many. */
static uint32_t list_partitions(const struct hs_core *core, uint16_t ids[HS_PARTITIONS_MAX])
{
	uint32_t count = 0;

	for (uint32_t i = hs_core_partition_from(core, 0); i < HS_PARTITIONS_MAX;
	     i = hs_core_partition_from(core, (uint16_t)(i + 1)))
		ids[count++] = (uint16_t)i;
	return count;
}

/* The part that the transaction `exec` has already answered. UINT32_MAX: none, because there is no transaction,
 * or its slot has moved to another partition since. */
static uint32_t answered_part(const struct hs_core *core, const struct hs_request *exec,
			      struct hs_bytes answered, const uint16_t *ids, uint32_t parts)
{
	const struct hs_op *op = exec ? &exec->parts[0].op : NULL;

	if (answered.len == 0 || !op || hs_core_partition(core, op->slot) != op->partition)
		return UINT32_MAX;
	for (uint32_t i = 0; i < parts; i++) {
		if (ids[i] == op->partition)
			return i;
	}
	return UINT32_MAX;
}

/* WAIT inside a transaction does not wait: it replies how many replicas have acknowledged so far. WAIT 0
 * outside one does the same. */
static void wait_for_none(struct hs_part *part)
{
	struct hs_op *op = &part->op;

	part->argv = hs_mem_alloc(op->argc * sizeof *part->argv);
	part->argv[0] = op->argv[0];
	for (size_t i = 1; i < op->argc; i++)
		part->argv[i] = i + 1 < op->argc ? HS_LIT("0") : HS_LIT("1");
	op->argv = part->argv;
	op->raw = (struct hs_bytes){NULL, 0};
}

/* Submits all parts but the one that is answered already. */
static void submit_others(struct hs_core *core, struct hs_request *request, uint32_t mine,
			  struct hs_bytes answered)
{
	uint32_t count = request->parts_count;

	if (mine < count) {
		hs_buf_append_bytes(&request->parts[mine].out, answered);
		request->parts[mine].op.resp = request->session->resp;
		request->parts[mine].time_us = 0;
		request->parts[mine].answered = true;
		if (--request->parts_left == 0) {
			hs_dispatch_answered(core, request);
			return;
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		if (i != mine)
			hs_dispatch_submit(core, request, i);
	}
}

void hs_fanout_all(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		   const struct hs_call *call, struct hs_bytes answered)
{
	struct hs_request *request = hs_request_make(core, session, call);
	bool waits = exec && hs_call_blocks(call);
	bool peers = call->command->place == HS_PLACE_WORKERS;
	const struct hs_workers_run *run =
		peers ? core->world.commands->workers[call->command->id] : NULL;
	uint16_t ids[HS_PARTITIONS_MAX];
	uint32_t parts = peers ? core->world.workers : list_partitions(core, ids);
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};
	char text[HS_ENGINE_UNAVAILABLE_BYTES];

	request->exec = exec;
	if (parts == 0)
		hs_reply_error(&reply, hs_engine_unavailable(core, text));
	if (parts == 0 || (run && run->check && !run->check(core, call, &reply))) {
		hs_dispatch_account(core, session, call, 0, true);
		hs_request_finish(core, request);
		return;
	}
	hs_request_split(request, parts);
	for (uint32_t i = 0; i < request->parts_count; i++) {
		request->parts[i].op = (struct hs_op){
			.kind = peers ? HS_OP_PEER : HS_OP_COMMAND,
			.command = call->command,
			.slot = HS_SLOT_NONE,
			.partition = peers ? (uint16_t)i : ids[i],
			.argv = request->call.argv,
			.argc = call->argc,
			.watcher = session->id,
			.raw = request->call.raw,
		};
		if (waits)
			wait_for_none(&request->parts[i]);
	}
	submit_others(core, request,
		      peers ? UINT32_MAX : answered_part(core, exec, answered, ids, parts),
		      answered);
}

/* SCAN where each partition has cursors of its own: the lowest bits of the client's cursor are the partition's
 * number. A single server gets the cursor unchanged. A partition that has gone is skipped, because its keys are
 * on the others. Returns the partition; HS_PARTITIONS_MAX: no partition is left. */
static uint16_t open_partition_cursor(const struct hs_core *core, struct hs_request *request)
{
	uint64_t cursor = 0;
	char text[HS_NUM_TEXT_MAX];
	struct hs_part *part = &request->parts[0];
	uint16_t wanted, found;

	if (core->world.op_scope == HS_OP_SCOPE_ALL)
		return 0;
	if (!hs_keyspace_parse_cursor(request->call.argv[1], &cursor)) {
		found = hs_core_partition_from(core, 0);
		/* Not a number: the server answers with an error. */
		return found < HS_PARTITIONS_MAX ? found : 0;
	}
	wanted = (uint16_t)(cursor % HS_PARTITIONS_MAX);
	found = hs_core_partition_from(core, wanted);
	if (cursor == 0 && found == HS_PARTITIONS_MAX)
		return 0; /* no partition is known yet: the engine answers with an error */
	snprintf(text, sizeof text, "%" PRIu64, found == wanted ? cursor / HS_PARTITIONS_MAX : 0);
	part->argv = hs_mem_alloc(request->call.argc * sizeof *part->argv);
	memcpy(part->argv, request->call.argv, request->call.argc * sizeof *part->argv);
	hs_buf_append(&request->cursor, text, strlen(text));
	part->argv[1] = hs_buf_bytes(&request->cursor);
	part->op.argv = part->argv;
	part->op.raw = (struct hs_bytes){NULL, 0};
	return found;
}

/* A cursor that is not a number, or has no valid slot, goes to the last partition, which answers with an error
 * or finds no keys. */
static uint16_t open_slot_cursor(struct hs_request *request)
{
	uint64_t cursor = 0;

	if (!hs_keyspace_parse_cursor(request->call.argv[1], &cursor) ||
	    hs_keyspace_cursor_slot(cursor) >= HS_SLOTS)
		return HS_SLOTS - 1;
	return hs_keyspace_cursor_slot(cursor);
}

void hs_fanout_cursor(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		      const struct hs_call *call)
{
	struct hs_request *request = hs_request_single(core, session, call, HS_SLOT_NONE);
	struct hs_op *op = &request->parts[0].op;

	request->exec = exec;
	if (core->world.op_scope == HS_OP_SCOPE_PARTITION) {
		op->slot = open_slot_cursor(request);
		op->partition = hs_core_partition(core, op->slot);
	} else {
		op->partition = open_partition_cursor(core, request);
	}
	if (op->partition == HS_PARTITIONS_MAX) {
		struct hs_reply reply = {.out = &request->reply, .resp = session->resp};

		hs_reply_array(&reply, 2);
		hs_reply_bulk_text(&reply, "0");
		hs_reply_array(&reply, 0);
		hs_dispatch_account(core, session, call, 0, false);
		hs_request_finish(core, request);
		return;
	}
	hs_dispatch_submit(core, request, 0);
}

static void merge_cursor(const struct hs_core *core, struct hs_request *request,
			 struct hs_reply *reply)
{
	uint16_t next = (uint16_t)(request->parts[0].op.partition + 1);
	uint16_t count = hs_core_partitions(core);
	struct hs_bytes part = hs_buf_bytes(&request->parts[0].out);
	uint64_t cursor = 0;

	if (core->world.op_scope == HS_OP_SCOPE_PARTITION) {
		if (next < count)
			cursor = (uint64_t)hs_slot_first(next, core->world.partitions) << 48;
		hs_merge_cursor(part, cursor, reply);
	} else if (core->world.op_scope == HS_OP_SCOPE_ALL) {
		hs_buf_append_bytes(reply->out, part);
	} else {
		hs_merge_partition_cursor(part, (uint16_t)(next - 1), count, reply);
	}
}

/* Whether a write that went to several servers failed at one and ran, or may have run, at another. */
static bool ran_partially(const struct hs_core *core, const struct hs_request *request,
			  const struct hs_bytes *parts)
{
	bool ran = false;

	if (!core->world.shared_connections || request->call.command->flags & HS_CMD_READONLY ||
	    request->reply.len == 0 || request->reply.data[0] != '-')
		return false;
	for (uint32_t i = 0; i < request->parts_count; i++)
		ran = ran || parts[i].len == 0 || parts[i].data[0] != '-' ||
		      hs_bytes_begins(parts[i], HS_LIT("-UNKNOWN"));
	return ran;
}

/* Replaces the error of one server by -UNKNOWN, with that error's text. */
static void report_partial_write(struct hs_request *request)
{
	struct hs_buf words = {0};

	hs_buf_swap(&words, &request->reply);
	hs_buf_append(&request->reply, "-", 1);
	hs_buf_printf(&request->reply,
		      "UNKNOWN the command ran, or may have run, at some servers; another says: ");
	hs_buf_append(&request->reply, words.data + 1, words.len - 1);
	hs_buf_deinit(&words);
}

static void merge(struct hs_core *core, struct hs_request *request)
{
	/* The protocol version at submission: HELLO may have changed it since. */
	struct hs_reply reply = {.out = &request->reply, .resp = request->parts[0].op.resp};
	struct hs_bytes *parts;

	if (hs_command_is_pubsub(request->call.command) ||
	    request->call.command->place == HS_PLACE_WORKERS) {
		core->world.commands->workers[request->call.command->id]->merge(core, request,
										&reply);
		return;
	}
	if (request->call.command->place == HS_PLACE_CURSOR) {
		merge_cursor(core, request, &reply);
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
		.how = request->call.command->merge,
		.name = request->call.command->name,
		.parts = parts,
		.count = request->parts_count,
		.key_part = request->key_part,
		.keys = request->keys,
		.first = (uint32_t)hs_prng_below(&core->prng, request->parts_count),
	};

	hs_merge_replies(&merge, &reply);
	if (ran_partially(core, request, parts))
		report_partial_write(request);
	hs_mem_release(parts);
}

/* Before RANDOMKEY's parts are merged: removes reserved names from each part. */
static void hide_drawn(struct hs_request *request)
{
	for (uint32_t i = 0; i < request->parts_count; i++)
		hs_reserved_hide(&request->parts[i].out, 0, request->parts[0].op.resp);
}

void hs_fanout_merge(struct hs_core *core, struct hs_request *request)
{
	bool hides = hs_reserved_shows(core, request->call.command);

	if (hides && request->call.command->id == HS_CMD_ID_RANDOMKEY)
		hide_drawn(request);
	merge(core, request);
	if (hides)
		hs_reserved_hide(&request->reply, 0, request->parts[0].op.resp);
}
