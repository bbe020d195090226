#include "absorb/versions.h"

#include "base/mem.h"
#include "core/call.h"

enum {
	OWN_WRITES_SEEN =
		32, /* requests in flight that are looked through; with more one counts as found */
};

struct versions {
	struct hs_core *core;
	struct hs_shared *shared;
	struct hs_versions at;
};

/* Of a request with one part that was counted: the version of its last key before it. */
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

/* FLUSHALL and the like; and a write without keys, SWAPDB, of which a server does not tell. */
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
		visit_command(visit, &request->call); /* its key is hashed once */
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
		/* Versions came into use while it was in flight: it counts from its answer on. */
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

/* --- a session's own --- */

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
		/* Behind the last one stand reads, perhaps thousands. */
		if (request->parts_count > 0 && is_counted(versions, &request->parts[0]) &&
		    --left == 0)
			break;
	}
	return false;
}

/* Another worker may be told of a change just now: so the time of the last revalidation is looked at first,
 * and then whether it is of this reply (absorb/entry.c). An entry that is as old as its reading is not
 * revalidated: a missing key may have been created where nobody tells of it. */
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

/* Whether versions are in use changes for all workers at once, before any of them caches anything
 * (hs_shared_use): so the stage looks for itself, with every write. */
static void *create(struct hs_core *core, uint32_t index)
{
	struct versions *versions = hs_mem_zalloc(sizeof *versions);

	versions->core = core;
	versions->shared = core->world.shared;
	versions->at = hs_versions_of(core);
	/* Hashes of hot keys are those of versions. */
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
