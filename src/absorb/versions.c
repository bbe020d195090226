/* Counts writes: visits every key of an operation that may write, when the operation departs and when it
 * arrives. Runs on the worker's thread; the counters in shared.c are atomic. */
#include "absorb/versions.h"

#include "base/mem.h"
#include "core/call.h"

enum {
	/* requests in flight to look through; beyond that the key counts as being written */
	OWN_WRITES_SEEN = 32,
};

struct versions {
	struct hs_core *core;
	struct hs_shared *shared;
	struct hs_versions at;
};

/* Of a counted request with one part: the version of its last key before the write. */
struct versions_request {
	struct hs_version before;
};

struct hs_versions hs_versions_of(const struct hs_core *core)
{
	uint32_t index = hs_stage_index(core, &hs_stage_versions);

	return (struct hs_versions){
		.session_at = core->stages.session_at[index],
		.request_at = core->stages.request_at[index],
		.index = index,
	};
}

/* --- counting --- */

/* FLUSHALL and the like. Also SWAPDB, a write without keys, for which servers send no invalidation. */
static bool writes_all(const struct hs_command *command)
{
	return command->flags & HS_CMD_WRITE &&
	       (command->place == HS_PLACE_ALL || !hs_command_has_keys(command));
}

struct visit {
	struct hs_shared *shared;
	struct hs_version before; /* of the last key */
	bool all, others;
	bool end;
};

static void visit_command(struct visit *visit, struct hs_call *call)
{
	struct hs_key_walk walk;
	size_t at, only;

	if (hs_command_only_reads(call->command))
		return;
	visit->all = visit->all || writes_all(call->command);
	visit->others = visit->others || hs_command_may_write_others(call->command);
	only = hs_call_only_key(call);
	hs_call_keys(call, &walk);
	while ((at = hs_keys_next(&walk)) > 0) {
		struct hs_bytes key = call->argv[at];
		uint64_t hash = only ? hs_call_hash(call, key, hs_shared_seed(visit->shared))
				     : hs_shared_hash(visit->shared, key);

		if (visit->end)
			hs_shared_write_end(visit->shared, hash);
		else
			visit->before = hs_shared_write_begin(visit->shared, hash);
	}
}

static void visit_op(struct visit *visit, struct hs_request *request, const struct hs_op *op)
{
	if (op->kind == HS_OP_COMMAND && op->argv == request->call.argv) {
		visit_command(visit, &request->call); /* uses the call's cached hash */
	} else if (op->kind == HS_OP_COMMAND) {
		struct hs_call call = hs_call_of(op->command, op->argc, op->argv);

		visit_command(visit, &call);
	} else if (op->kind == HS_OP_EXEC) {
		for (size_t i = 0; i < op->tx->count; i++) {
			struct hs_call call = hs_call_queued(&op->tx->commands[i]);

			visit_command(visit, &call);
		}
	}
	if (!visit->all)
		return;
	if (visit->end)
		hs_shared_write_end_all(visit->shared);
	else
		hs_shared_write_begin_all(visit->shared);
}

static bool is_counted(const struct hs_versions *at, const struct hs_part *part)
{
	return (part->marked & part->stage_bits) >> at->index & 1;
}

static enum hs_stage_result depart(void *self, struct hs_request *request, struct hs_part *part)
{
	struct versions *versions = self;
	struct visit visit = {.shared = versions->shared};
	struct versions_request *state = hs_stage_request(request, versions->at.request_at);
	uint32_t bit = UINT32_C(1) << versions->at.index;

	if (part->op.kind != HS_OP_COMMAND && part->op.kind != HS_OP_EXEC)
		return HS_PASS;
	part->marked |= bit;
	part->stage_bits &= ~bit;
	if (!hs_shared_in_use(versions->shared))
		return HS_PASS;
	visit_op(&visit, request, &part->op);
	state->before = visit.before;
	part->stage_bits |= bit;
	hs_versions_session(&versions->at, request->session)->writes_in_flight++;
	return HS_PASS;
}

static void arrive(void *self, struct hs_request *request, struct hs_part *part)
{
	struct versions *versions = self;
	struct hs_versions_session *session = hs_versions_session(&versions->at, request->session);
	struct visit begin = {.shared = versions->shared};
	struct visit end = {.shared = versions->shared, .end = true};

	if (is_counted(&versions->at, part)) {
		session->writes_in_flight--;
	} else {
		/* Counting was switched on while the operation was in flight: count begin and end at its
		 * answer. */
		if (!hs_shared_in_use(versions->shared))
			return;
		visit_op(&begin, request, &part->op);
	}
	visit_op(&end, request, &part->op);
	if (end.others)
		session->barrier_us = versions->core->now.mono_us;
}

bool hs_versions_had_no_other_write(const struct hs_versions *versions,
				    const struct hs_shared *shared,
				    const struct hs_request *request, uint64_t key_hash,
				    struct hs_version *before)
{
	const struct versions_request *state = hs_stage_request(request, versions->request_at);
	struct hs_version now = hs_shared_version(shared, key_hash);

	if (request->parts_count != 1 || !is_counted(versions, &request->parts[0]))
		return false;
	*before = state->before;
	return before->begun == before->done && now.begun == before->begun + 1 &&
	       now.done == before->done + 1;
}

/* --- read your writes --- */

bool hs_versions_has_write(const struct hs_versions *versions, const struct hs_session *session,
			   struct hs_bytes key)
{
	uint32_t seen = 0, left = hs_versions_session(versions, session)->writes_in_flight;

	if (left == 0)
		return false;
	hs_list_each(const struct hs_request, request, &session->requests, link) {
		const struct hs_command *command = request->call.command;
		size_t at;

		if (request->done || !command ||
		    (hs_command_only_reads(command) && command->id != HS_CMD_ID_EXEC))
			continue;
		at = hs_keys_single(command, request->call.argc);
		if (at == 0 || ++seen > OWN_WRITES_SEEN ||
		    hs_bytes_equal(request->call.argv[at], key) ||
		    hs_command_may_write_others(command))
			return true;
		/* Stop here: behind the last write there may be thousands of reads. */
		if (request->parts_count > 0 && is_counted(versions, &request->parts[0]) &&
		    --left == 0)
			break;
	}
	return false;
}

/* Another worker may be recording an invalidation at this moment. So the session's caught-up time is loaded
 * first, then its epoch and `invalid` (absorb/entry.c). An entry with unknown expiry is never revalidated: the
 * key may have been created where no invalidation is sent. */
bool hs_versions_is_after_barrier(const struct hs_versions *versions,
				  const struct hs_session *session,
				  const struct hs_cache_entry *entry)
{
	uint64_t barrier_us = hs_versions_session(versions, session)->barrier_us;

	return barrier_us == 0 || entry->read_us > barrier_us ||
	       (entry->tracking_session &&
		atomic_load_explicit(&entry->expires_us, memory_order_relaxed) !=
			HS_CACHE_ENTRY_EXPIRY_UNKNOWN &&
		hs_tracking_session_caught_up_us(entry->tracking_session) > barrier_us &&
		hs_tracking_session_epoch(entry->tracking_session) == entry->tracking_epoch &&
		!atomic_load_explicit(&entry->invalid, memory_order_acquire));
}

bool hs_versions_holds(const struct hs_versions *versions, const struct hs_session *session,
		       const struct hs_command *command)
{
	const struct hs_versions_session *state = hs_versions_session(versions, session);
	bool writes = !hs_command_only_reads(command) || command->id == HS_CMD_ID_EXEC;

	if (state->detached_writes == 0 && (state->detached_reads == 0 || !writes))
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

/* --- the stage --- */

/* Counting is switched on for all workers at once, before any of them caches a value (hs_shared_use). So the
 * stage checks the flag itself, at every write. */
static void *create(struct hs_core *core, uint32_t index)
{
	struct versions *versions = hs_mem_zalloc(sizeof *versions);

	versions->core = core;
	versions->shared = core->world.shared;
	versions->at = hs_versions_of(core);
	/* hs_hot.hash also selects the key's version (hs_shared_version), so both hashes must have the same
	 * seed. */
	hs_check(!versions->shared || hs_shared_seed(versions->shared) == core->world.key_seed);
	hs_stage_want(core, index, HS_POINT_DEPART_WRITES, versions->shared);
	return versions;
}

static void destroy(void *self)
{
	struct versions *versions = self;

	hs_mem_free(&versions);
}

const struct hs_stage hs_stage_versions = {
	.name = "versions",
	.session_bytes = sizeof(struct hs_versions_session),
	.request_bytes = sizeof(struct versions_request),
	.create = create,
	.destroy = destroy,
	.depart = depart,
	.arrive = arrive,
};
