/* Translates a command to heat: which keys it touched, how many bytes of the command and its reply belong to
 * each, and its outcome.
 *
 * Every key of a command counts as one request for that key, its slot and its partition. So the sum over the
 * keys of a partition equals the partition's count. A read that is answered at once is noted, and counted at
 * the end of its run of commands, when the time is known; all others are counted when they are finished. A
 * command for several partitions has a time and an outcome for each of them: one slow or full partition does
 * not make the others look slow or full. */
#include "core/count.h"

#include "core/multi.h"
#include "wire/parse_reply.h"

#include <math.h>

/* A null reply. */
static bool is_null(struct hs_bytes reply)
{
	return reply.len >= 3 &&
	       ((reply.data[0] == '$' && reply.data[1] == '-') ||
		(reply.data[0] == '*' && reply.data[1] == '-') || reply.data[0] == '_');
}

static bool is_zero(struct hs_bytes reply)
{
	return reply.len == 4 && reply.data[0] == ':' && reply.data[1] == '0';
}

static bool is_error(struct hs_bytes reply)
{
	return reply.len > 0 && reply.data[0] == '-';
}

/* SET with GET replies with the old value: with NX an old value, with XX its absence means that nothing was
 * set. */
static bool set_is_refused(const struct hs_call *call, struct hs_bytes reply)
{
	bool get = false, nx = false, xx = false;

	for (size_t i = 3; i < call->argc; i++) {
		get = get || hs_bytes_is_word(call->argv[i], "get");
		nx = nx || hs_bytes_is_word(call->argv[i], "nx");
		xx = xx || hs_bytes_is_word(call->argv[i], "xx");
	}
	if (get && nx)
		return !is_null(reply);
	return is_null(reply) && (!get || xx);
}

/* A conditional write whose condition did not hold. */
static bool is_refused(const struct hs_call *call, struct hs_bytes reply)
{
	if (!(call->command->flags & HS_CMD_CONDITIONAL) || is_error(reply))
		return false;
	if (call->command->id == HS_CMD_ID_SET)
		return set_is_refused(call, reply);
	return is_zero(reply);
}

/* The elements of an array reply without its header; of another reply the whole. */
static struct hs_bytes elements_of(struct hs_bytes reply)
{
	struct hs_parsed_reply head;
	int64_t len = hs_parse_reply_head(&head, reply.data, reply.len);

	if (len > 0 && head.type == HS_PARSED_ARRAY)
		return (struct hs_bytes){reply.data + len, reply.len - (size_t)len};
	return reply;
}

/* A finished command, or one of a transaction, to be counted for each of its keys. */
struct counted {
	struct hs_core *core;
	struct hs_call call;
	struct hs_bytes reply;
	bool missed;  /* the engine's hs_op.missed */
	bool at_once; /* a read answered without a request */
	uint64_t time_us;
	const struct hs_request *split; /* a split request, with a reply for each part; or NULL */
};

/* OBJECT inspects a key without using it: a monitor that asks for the frequency of all keys must not make them
 * hot. */
static void count_lookup(const struct counted *counted)
{
	uint16_t slot = hs_slot_of(counted->call.argv[counted->call.command->key_first]);

	hs_heat_add_keyless(counted->core->world.heat, hs_core_partition(counted->core, slot),
			    false, is_error(counted->reply), counted->reply.len,
			    counted->time_us * 1000);
}

static size_t count_keys(const struct counted *counted)
{
	struct hs_key_walk walk;
	size_t count = 0;

	hs_call_keys(&counted->call, &walk);
	while (hs_keys_next(&walk) > 0)
		count++;
	return count;
}

/* Of several keys that share one reply it is only ever known that all of them were missing. */
static void count_each_key(const struct counted *counted)
{
	const struct hs_command *command = counted->call.command;
	struct hs_key_walk walk;
	size_t count = count_keys(counted), at, next;
	bool by_key = command->merge == HS_MERGE_BY_KEY && !is_error(counted->reply);
	struct hs_bytes rest = by_key ? elements_of(counted->reply) : counted->reply;
	struct hs_heat_access access = {
		.write = (command->flags & HS_CMD_WRITE) != 0,
		.failed = is_error(counted->reply),
		.conflicted = is_refused(&counted->call, counted->reply),
	};
	uint64_t time_us = counted->time_us;
	bool missed = counted->missed;
	struct hs_heat_warmth warmth = {0};

	hs_call_keys(&counted->call, &walk);
	at = hs_keys_next(&walk);
	for (size_t i = 0; i < count; i++, at = next) {
		struct hs_bytes reply = counted->reply;

		if (by_key)
			hs_parse_reply_take(&rest, &reply);
		next = hs_keys_next(&walk);
		access.key = counted->call.argv[at];
		access.bytes = by_key ? reply.len : reply.len / count;
		for (size_t j = at; j < (next > 0 ? next : counted->call.argc); j++)
			access.bytes += counted->call.argv[j].len;
		access.slot = hs_slot_of(access.key);
		access.partition = hs_core_partition(counted->core, access.slot);
		if (counted->split) {
			const struct hs_request *split = counted->split;
			const struct hs_part *part = &split->parts[split->key_part[i]];

			access.failed = is_error(hs_buf_bytes(&part->out));
			missed = part->op.missed;
			time_us = part->time_us;
		}
		access.missed = !access.write && !access.failed && (is_null(reply) || missed);
		warmth = hs_heat_add(counted->core->world.heat, &access, time_us * 1000);
	}
	if (count == 1 && (!counted->at_once || counted->core->stages.want[HS_POINT_HOT_READS]))
		hs_count_hot(counted->core, warmth, !counted->at_once);
}

static void count_command(const struct counted *counted)
{
	const struct hs_command *command = counted->call.command;

	if (hs_command_is_pubsub(command))
		return; /* channels are not keys */
	if (command->parent == HS_CMD_ID_OBJECT && command->key_first > 0)
		count_lookup(counted);
	else
		count_each_key(counted);
}

void hs_count_note(struct hs_core *core, const struct hs_call *call, uint16_t slot,
		   struct hs_bytes reply, bool missed)
{
	struct hs_heat_access access = {
		.key = call->argv[call->command->key_first],
		.bytes = reply.len,
		.slot = slot,
		.partition = hs_core_partition(core, slot),
		.failed = is_error(reply),
		.missed = is_null(reply) || (missed && !is_error(reply)),
	};

	if (!HS_CORE_HEAT || !core->world.heat)
		return;
	for (size_t i = 1; i < call->argc; i++)
		access.bytes += call->argv[i].len;
	hs_heat_note(core->world.heat, &access);
}

void hs_count_read(struct hs_core *core, const struct hs_call *call, struct hs_bytes reply,
		   bool missed, uint64_t time_us)
{
	struct counted counted = {
		.core = core,
		.call = *call,
		.reply = reply,
		.missed = missed,
		.at_once = true,
		.time_us = time_us,
	};

	if (HS_CORE_HEAT && core->world.heat)
		count_command(&counted);
}

/* A transaction that was not run, because another client wrote a watched key. The reply does not say which one,
 * so each watched key counts as contended. The queued commands did not run and do not count. */
static void count_lost(struct hs_core *core, const struct hs_request *request)
{
	const struct hs_part *part = &request->parts[0];
	struct hs_heat_access access = {
		.slot = part->op.slot,
		.partition = part->op.partition,
		.write = true,
		.conflicted = true,
	};
	size_t at = 0;

	while (hs_multi_watched(request->multi, &at, &access.key)) {
		access.bytes = access.key.len;
		hs_heat_add(core->world.heat, &access, part->time_us * 1000);
	}
	if (at == 0) /* no name is remembered: count the partition alone */
		hs_heat_add_keyless(core->world.heat, part->op.partition, true, false, 0,
				    part->time_us * 1000);
}

static void count_exec(struct hs_core *core, const struct hs_request *request,
		       struct hs_bytes reply)
{
	const struct hs_op_tx *tx = request->parts[0].op.tx;
	bool failed = is_error(reply);
	struct hs_bytes rest = failed ? reply : elements_of(reply);

	for (size_t i = 0; i < tx->count; i++) {
		const struct hs_op_tx_command *command = &tx->commands[i];
		struct counted counted = {
			.core = core,
			.call = hs_call_queued(command),
			.reply = reply,
			.missed = command->missed,
			.time_us = request->parts[0].time_us,
		};

		if (!failed)
			hs_parse_reply_take(&rest, &counted.reply);
		count_command(&counted);
	}
}

static void count_keyless(struct hs_core *core, const struct hs_request *request,
			  struct hs_bytes whole)
{
	for (uint32_t i = 0; i < request->parts_count; i++) {
		const struct hs_part *part = &request->parts[i];
		struct hs_bytes reply = request->parts_count > 1 ? hs_buf_bytes(&part->out) : whole;

		if (part->op.kind == HS_OP_PEER)
			continue; /* PUBLISH has parts for engines and for workers */
		hs_heat_add_keyless(core->world.heat, part->op.partition,
				    request->call.command->flags & HS_CMD_WRITE, is_error(reply),
				    reply.len, part->time_us * 1000);
	}
}

/* A row may have keys and the command none: EVAL with a number of 0. */
static bool has_keys(const struct hs_request *request)
{
	struct hs_key_walk walk;

	if (hs_command_is_pubsub(request->call.command))
		return false;
	hs_call_keys(&request->call, &walk);
	return hs_keys_next(&walk) > 0;
}

/* The usual command, with one key: reuses the slot and partition of its operation. */
static void count_one(struct hs_core *core, const struct hs_request *request, size_t at,
		      struct hs_bytes reply)
{
	const struct hs_command *command = request->call.command;
	const struct hs_part *part = &request->parts[0];
	struct hs_heat_access access = {
		.key = request->call.argv[at],
		.bytes = reply.len,
		.slot = part->op.slot,
		.partition = part->op.partition,
		.write = (command->flags & HS_CMD_WRITE) != 0,
		.failed = is_error(reply),
		.conflicted = is_refused(&request->call, reply),
	};
	struct hs_heat_warmth warmth;

	for (size_t i = at; i < request->call.argc; i++)
		access.bytes += request->call.argv[i].len;
	access.missed = !access.write && !access.failed && (is_null(reply) || part->op.missed);
	if (core->run_key.len > 0 && hs_bytes_equal(access.key, core->run_key)) {
		access.key = core->run_key; /* the run's key outlives the request */
		hs_heat_run_add(core->world.heat, &access, part->time_us * 1000);
		return;
	}
	warmth = hs_heat_add(core->world.heat, &access, part->time_us * 1000);
	hs_count_hot(core, warmth, true);
}

void hs_count_request(struct hs_core *core, const struct hs_request *request, struct hs_bytes reply)
{
	const struct hs_part *part = request->parts_count > 0 ? &request->parts[0] : NULL;
	struct counted counted = {
		.core = core,
		.call = request->call,
		.reply = reply,
		.split = request->parts_count > 1 ? request : NULL,
	};

	if (!HS_CORE_HEAT || !core->world.heat || !part)
		return;
	counted.time_us = part->time_us;
	counted.missed = part->op.missed;
	switch (part->op.kind) {
	case HS_OP_EXEC:
		if (is_null(reply))
			count_lost(core, request);
		else
			count_exec(core, request, reply);
		break;
	case HS_OP_COMMAND:
		if (request->parts_count == 1 && request->call.command->merge != HS_MERGE_BY_KEY &&
		    request->call.command->parent != HS_CMD_ID_OBJECT &&
		    hs_keys_single(request->call.command, request->call.argc) > 0) {
			count_one(core, request,
				  hs_keys_single(request->call.command, request->call.argc), reply);
			break;
		}
		/* fall through */
	case HS_OP_WATCH:
		if (!has_keys(request))
			count_keyless(core, request, reply);
		else
			count_command(&counted);
		break;
	case HS_OP_UNWATCH:
	case HS_OP_SUBSCRIBE:
	case HS_OP_UNSUBSCRIBE:
	case HS_OP_TRACK:
	case HS_OP_UNTRACK:
	case HS_OP_PEER:
	case HS_OP_HOST:
		break;
	}
}

void hs_count_run_begin(struct hs_core *core, struct hs_bytes key)
{
	hs_count_run_end(core);
	core->run_key = key;
}

void hs_count_run_end(struct hs_core *core)
{
	struct hs_heat_warmth heat = {0};

	if (HS_CORE_HEAT && core->world.heat)
		heat = hs_heat_run_end(core->world.heat);
	if (heat.key.len > 0)
		hs_count_hot(core, heat, true);
	core->run_key.len = 0;
}

void hs_count_hot(struct hs_core *core, struct hs_heat_warmth heat, bool waited)
{
	struct hs_hot *hot;

	if (!hs_core_stays_hot(&core->options.hot, heat.share, heat.requests))
		return; /* most keys are not hot */
	hot = hs_hot_note(core, heat);
	if (hot)
		hs_stages_hot(core, hot, waited);
}

/* As in Redis the frequency is a logarithm that reaches 255 at about a million requests. Here it counts the
 * requests in the long window of all workers; while that window is not full yet, those it would have at the
 * present rate. */
uint8_t hs_count_frequency(const struct hs_core *core, struct hs_bytes key)
{
	struct hs_heat_row row;
	double requests;

	if (!core->world.heats || core->world.heats_count == 0)
		return 0;
	hs_heat_find(core->world.heats, core->world.heats_count, HS_HEAT_KEYS, key, 0,
		     core->now.mono_us, &row);
	requests = row.window[HS_HEAT_LONG].ops_low * (HS_HEAT_LONG_US / 1e6);
	return (uint8_t)fmin(255, log2(1 + requests) * 255 / 20);
}
