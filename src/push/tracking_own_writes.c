/* In front of servers, the invalidation of a connection's own write follows the write's reply.
 *
 *     client      SET k ───────────────────── OK ─ "k changed" ─ … ─ "k changed"
 *                   │                         ▲                       ▲
 *     server        └─ runs it ─┬─ reply ─────┘                       │
 *                               └─ invalidation, another connection ──┘
 *
 * The server's invalidation comes over another connection than the reply and may be late. A client that has its
 * reply, but no invalidation yet, would serve the old value from its cache after its own write. So heatsink
 * composes the invalidation itself, from the keys of the command.
 *
 * It is sent directly behind the write's reply, as in Redis 7, and before the replies to the connection's later
 * commands. That is correct because the engine runs one connection's commands for a key in their order. A read
 * before the write is answered before the invalidation. A read behind the write sees it, so for such a read the
 * key stays recorded.
 *
 * The server's invalidation may also come first, while the write is still in flight here. It is then sent
 * behind everything in flight, which may be long after the write's reply. So the key stays recorded for the
 * invalidation with the reply (hs_tracking_has_write). The same holds for an invalidation of all keys (FLUSHALL
 * at the server, or a server that cannot be tracked): it drops all keys, so each write in flight at that time
 * gets an invalidation with its reply, whether or not the connection has read the key
 * (hs_push_session.forgotten_requests).
 *
 * The outcome does not matter: a write that failed, or whose outcome is unknown, is reported too. A command
 * that does not name the keys it writes (FLUSHALL, a script without key names) counts as a change of all keys.
 * The server's own invalidation follows for what the client has read since. A client with NOLOOP gets only the
 * server's invalidations. The embedded engine needs none of this: it reports a change before it answers the
 * write. */
#include "push/tracking.h"

/* BCAST mode: whether a prefix matches. Otherwise: whether the connection has read the key since its last
 * invalidation. */
static bool is_tracked(struct hs_core *core, struct hs_request *request, struct hs_bytes key)
{
	struct hs_tracking_table *table = hs_push_of(core)->tracking->table;
	const struct hs_session *session = request->session;
	struct hs_tracked *tracked;

	if (hs_tracker_of(core, session)->bcast) {
		for (const struct hs_prefix_member *member = hs_tracker_of(core, session)->prefixes;
		     member; member = member->next) {
			if (hs_bytes_begins(key, member->prefix->bytes))
				return true;
		}
		return false;
	}
	if (request->number <= hs_push_session(core, session)->forgotten_requests)
		return true;
	tracked = hs_tracking_table_find(table, key);
	if (!tracked)
		return false;
	if (hs_session_last_request(session) == request)
		return hs_tracking_table_remove(table, tracked, session->id);
	/* a later request in flight may have read the key */
	return hs_tracked_has(tracked, session->id);
}

/* Whether a command without key names may have written any key: FLUSHALL, a script, or a module's command with
 * unknown effects (law 8: an unknown command counts as a write of every key that it may touch). */
static bool writes_unnamed(const struct hs_command *command)
{
	return (command->flags & HS_CMD_WRITE) || strchr(command->name, '.');
}

static void send_written_keys(struct hs_core *core, struct hs_request *request,
			      const struct hs_call *call)
{
	struct hs_key_walk walk;
	bool named = false;
	size_t at;

	if (hs_command_only_reads(call->command))
		return;
	hs_call_keys(call, &walk);
	while ((at = hs_keys_next(&walk)) > 0) {
		named = true;
		if (hs_keys_flags(&walk) & HS_KEY_RO || !is_tracked(core, request, call->argv[at]))
			continue;
		hs_tracking_write_key(hs_push_of(core)->tracking, call->argv[at]);
		hs_tracking_send_behind(core, request,
					hs_buf_bytes(&hs_push_of(core)->tracking->body));
	}
	if (!named && writes_unnamed(call->command))
		hs_tracking_send_behind(core, request, HS_TRACKING_ALL_KEYS);
}

static bool names_key(const struct hs_call *call, struct hs_bytes key)
{
	struct hs_key_walk walk;
	size_t at;

	if (hs_command_only_reads(call->command))
		return false;
	hs_call_keys(call, &walk);
	while ((at = hs_keys_next(&walk)) > 0) {
		if (hs_bytes_equal(call->argv[at], key))
			return true;
	}
	return false;
}

static bool writes_key(const struct hs_request *request, struct hs_bytes key)
{
	const struct hs_op_tx *tx =
		request->multi && request->parts_count == 1 ? request->parts[0].op.tx : NULL;

	if (request->done || request->is_push || request->parts_count == 0)
		return false;
	for (size_t i = 0; tx && i < tx->count; i++) {
		struct hs_call call = hs_call_queued(&tx->commands[i]);

		if (names_key(&call, key))
			return true;
	}
	return names_key(&request->call, key);
}

bool hs_tracking_has_write(const struct hs_core *core, const struct hs_session *session,
			   struct hs_bytes key)
{
	if (!core->world.shared_connections || hs_tracker_of(core, session)->noloop)
		return false;
	hs_list_each(const struct hs_request, request, &session->requests, link) {
		if (writes_key(request, key))
			return true;
	}
	return false;
}

void hs_tracking_send_own_writes(struct hs_core *core, struct hs_request *request)
{
	const struct hs_op *op;

	if (!core->world.shared_connections || request->parts_count == 0 ||
	    hs_tracker_of(core, request->session)->noloop)
		return;
	op = &request->parts[0].op;
	if (op->kind == HS_OP_COMMAND) {
		/* The whole command, because each part of a split one has only some of its keys. */
		send_written_keys(core, request, &request->call);
	} else if (op->kind == HS_OP_EXEC) {
		for (size_t i = 0; i < op->tx->count; i++) {
			const struct hs_op_tx_command *queued = &op->tx->commands[i];

			struct hs_call call = hs_call_queued(queued);

			/* Also FLUSHALL, which runs after the commit and has only a placeholder reply here
			 * (core/deferred.c). */
			send_written_keys(core, request, &call);
		}
	}
	hs_tracking_count(core);
}
