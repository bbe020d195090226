/* Writes, where replies are kept: everybody sees them when they are acknowledged, and a plain SET leaves
 * its value behind.
 *
 * Every operation that may write says so in the stamps of its keys before it is handed to the engine and
 * again when it is answered, whatever the answer: one whose outcome is unknown may have written. A command
 * that is not known to read only counts as a write of all its keys (law 8). One that may write keys it does
 * not name, a script, is told of by the server like any write behind us; the connection that sent it reads
 * nothing kept that was not proved since (session->barrier_us).
 *
 * What a SET leaves behind. The engine is asked to tell of changes from the SET on, so that the value is
 * vouched for like one that was read. It is kept if no other write of the key (or one that shares its stamp)
 * was under way at any time meanwhile, since nobody here would know which came last. Such a SET takes
 * another way to the server than its connection's other commands: it goes when none of them is under way
 * there, and those behind it wait (session->fenced). */
#include "core/cached.h"

#include "absorb/fold.h"

enum { UNUSED_WRITES_MAX = 2 }; /* values left behind in a row that nobody read: then none is */

enum stamped { NOT_STAMPED, STAMPED_KEYS, STAMPED_ALL };

bool hs_cached_only_reads(const struct hs_command *command)
{
	if (command->flags & HS_CMD_READONLY)
		return true;
	/* Of our own it is known; of those learned from a server, unknown means write. */
	return command->id < HS_CMD_IDS && !(command->flags & (HS_CMD_WRITE | HS_CMD_UNSURE));
}

bool hs_cached_may_write_others(const struct hs_command *command)
{
	return command->id >= HS_CMD_IDS && !hs_cached_only_reads(command) &&
	       (command->flags & (HS_CMD_UNSURE | HS_CMD_MOVABLEKEYS) ||
		!(command->flags & HS_CMD_WRITE) || strchr(command->name, '.'));
}

/* FLUSHALL and the like; and what writes and has no keys to name, SWAPDB: a server does not tell of that. */
static bool writes_all(const struct hs_command *command)
{
	return command->flags & HS_CMD_WRITE &&
	       (command->place == HS_PLACE_ALL || !hs_command_has_keys(command));
}

/* --- stamps --- */

struct visit {
	struct hs_shelf *shelf;
	struct hs_stamp before; /* of the last key */
	bool all, others;
	bool end;
};

static void visit_command(struct visit *visit, const struct hs_call *call)
{
	struct hs_key_walk walk;
	size_t at;

	if (hs_cached_only_reads(call->command))
		return;
	visit->all = visit->all || writes_all(call->command);
	visit->others = visit->others || hs_cached_may_write_others(call->command);
	hs_call_keys(call, &walk);
	while ((at = hs_keys_next(&walk)) > 0) {
		uint64_t hash = hs_shelf_hash(visit->shelf, call->argv[at]);

		if (visit->end)
			hs_shelf_end(visit->shelf, hash);
		else
			visit->before = hs_shelf_begin(visit->shelf, hash);
	}
}

static void visit_op(struct visit *visit, const struct hs_op *op)
{
	if (op->kind == HS_OP_COMMAND) {
		struct hs_call call = hs_call_of(op->command, op->argc, op->argv);

		visit_command(visit, &call);
	} else if (op->kind == HS_OP_EXEC) {
		for (size_t i = 0; i < op->tx->count; i++) {
			const struct hs_op_tx_command *queued = &op->tx->commands[i];

			struct hs_call call = hs_call_queued(queued);

			visit_command(visit, &call);
		}
	}
	if (!visit->all)
		return;
	if (visit->end)
		hs_shelf_end_all(visit->shelf);
	else
		hs_shelf_begin_all(visit->shelf);
}

static bool may_write(const struct hs_op *op)
{
	return op->kind == HS_OP_EXEC ||
	       (op->kind == HS_OP_COMMAND && !hs_cached_only_reads(op->command));
}

void hs_cached_begin(struct hs_core *core, struct hs_session *session, struct hs_part *part)
{
	struct visit visit = {.shelf = core->world.shelf};

	part->stamped = NOT_STAMPED;
	if (!may_write(&part->op))
		return;
	visit_op(&visit, &part->op);
	part->before = visit.before;
	part->stamped = STAMPED_KEYS;
	session->writing++;
}

static void leave_behind(struct hs_core *core, const struct hs_part *part);

void hs_cached_end(struct hs_core *core, struct hs_session *session, struct hs_part *part)
{
	struct visit visit = {.shelf = core->world.shelf, .end = true};

	if (part->stamped == NOT_STAMPED) {
		struct visit begin = {.shelf = core->world.shelf};

		/* Keeping began while it was under way: it counts from its answer on. */
		if (!may_write(&part->op))
			return;
		visit_op(&begin, &part->op);
	} else {
		session->writing--;
	}
	visit_op(&visit, &part->op);
	/* Behind the stamp. Before it, a write of another worker could take the number that the value is
	 * kept under, and its own client would be given the value from before. */
	if (part->stamped != NOT_STAMPED && part->op.track)
		leave_behind(core, part);
	part->stamped = NOT_STAMPED;
	if (visit.others)
		session->barrier_us = core->now.mono_us;
}

/* --- what a SET leaves behind --- */

static bool is_plain_set(const struct hs_call *call, int64_t *expire_ms)
{
	struct hs_fold_ask ask = {
		.command = call->command, .argv = call->argv, .argc = call->argc, .resp = 3};

	if (call->command->id != HS_CMD_ID_SET || hs_fold_classify(&ask) != HS_FOLD_SET)
		return false;
	*expire_ms = ask.number;
	return true;
}

/* Nobody else wrote the key while this one was under way, up to now, when it is over. */
static bool was_alone(const struct hs_part *part, struct hs_stamp now)
{
	return part->before.begun == part->before.done && now.begun == part->before.begun + 1 &&
	       now.done == part->before.done + 1;
}

static void leave_behind(struct hs_core *core, const struct hs_part *part)
{
	struct hs_caching *caching = core->caching;
	const struct hs_op *op = &part->op;
	struct hs_call call = hs_call_of(op->command, op->argc, op->argv);
	struct hs_bytes answer = op->answer.len > 0 ? op->answer : hs_buf_bytes(&part->out);
	struct hs_reply value = {.out = &caching->scratch, .resp = 3};
	struct hs_bytes words[2];
	struct hs_cached *cached;
	struct hs_kept *kept;
	struct hs_ask ask;
	int64_t expire_ms;

	if (caching->mitigate != HS_MITIGATE_ON || !hs_bytes_equal(answer, HS_LIT("+OK\r\n")) ||
	    !op->vouch || !is_plain_set(&call, &expire_ms))
		return;
	hs_ask_get(&ask, hs_shelf_seed(core->world.shelf), op->argv[1], words);
	if (!was_alone(part, hs_shelf_stamp(core->world.shelf, ask.key_hash)))
		return;
	cached = hs_cache_find(caching->cache, ask.key_hash, ask.key);
	if (!cached || !cached->rule)
		return;
	hs_buf_clear(&caching->scratch, HS_KEEP_BYTES);
	hs_reply_bulk(&value, op->argv[2]);
	kept = hs_kept_create(&ask, hs_buf_bytes(&caching->scratch));
	if (!kept)
		return;
	kept->worker = core->world.worker;
	kept->done = part->before.done + 1; /* of this very write: the next one changes it */
	kept->vouch = op->vouch;
	kept->vouch_epoch = op->vouch_epoch;
	kept->read_us = op->received.mono_us;
	kept->cost_us = core->now.mono_us - op->received.mono_us;
	kept->until_us = hs_cached_until(core, cached->rule, false, kept->read_us);
	atomic_init(&kept->expires_us,
		    expire_ms > 0 ? kept->read_us + (uint64_t)expire_ms * 1000 : UINT64_MAX);
	cached->unused_writes++;
	if (hs_cache_keep(caching->cache, cached, kept)) {
		hs_shelf_put(core->world.shelf, kept);
		hs_counter_add(&hs_cached_stats(core, cached)->left, 1);
	}
	hs_kept_unref(&kept);
}

/* Whether what it leaves behind is wanted: somebody reads the key, and read what the last one left. With
 * other writes under way it would leave nothing: those had better be folded. */
static bool is_wanted(struct hs_core *core, struct hs_bytes key)
{
	uint64_t hash = hs_shelf_hash(core->world.shelf, key);
	struct hs_cached *cached = hs_cache_find(core->caching->cache, hash, key);
	struct hs_stamp stamp = hs_shelf_stamp(core->world.shelf, hash);

	return stamp.begun == stamp.done && cached && cached->rule && cached->replies_count > 0 &&
	       cached->unused_writes < UNUSED_WRITES_MAX;
}

bool hs_cached_set(struct hs_core *core, struct hs_session *session, const struct hs_call *call)
{
	uint16_t partition = hs_core_partition(core, call->slot);
	struct hs_request *request;
	int64_t expire_ms;

	if (core->caching->mitigate != HS_MITIGATE_ON || session->tracker ||
	    session->lane[partition % HS_LANES] > 0 || session->taken > 0 ||
	    !is_plain_set(call, &expire_ms) || !is_wanted(core, call->argv[1]))
		return false;
	request = hs_request_single(core, session, call, call->slot);
	request->resp = 3;
	request->parts[0].op.track = true;
	request->fenced = core->world.shared_connections;
	session->fenced += request->fenced;
	hs_step_submit(core, request, 0);
	return true;
}

bool hs_cached_holds(const struct hs_session *session, const struct hs_command *command)
{
	bool writes = !hs_cached_only_reads(command) || command->id == HS_CMD_ID_EXEC;

	if (session->fenced == 0 && (session->filling == 0 || !writes))
		return false;
	switch (command->place) {
	case HS_PLACE_CORE:
		return command->id == HS_CMD_ID_EXEC;
	case HS_PLACE_HOST:
	case HS_PLACE_WORKERS:
		return false;
	default:
		return true;
	}
}
