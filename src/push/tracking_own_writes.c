/* In front of servers, a connection that tracks is told of its own write together with the reply.
 *
 *     client      SET k ───────────────────── OK ─ "k changed" ─ … ─ "k changed"
 *                   │                         ▲                       ▲
 *     server        └─ runs it ─┬─ reply ─────┘                       │
 *                               └─ invalidation, another connection ──┘
 *
 * The server's invalidation comes over another connection than the reply and may be late. A client
 * that has its reply and was not told yet would serve the old value from its cache, after its own
 * write. So push composes the message itself, from what it knows of the command.
 *
 * The message stands directly behind the reply, as in Redis 7, and ahead of the replies of what the
 * connection asked later. That is right because the engine runs one connection's commands for one
 * key in their order: a read ahead of the write is answered ahead of the message; a read behind the
 * write sees it. For such a read the key stays remembered.
 *
 * The server's message may also come first, while the write is under way here. It then lies behind all
 * that is under way, which may be far behind the write's reply, and the key stays remembered for the
 * message with the reply (hs_tracking_has_write). So may a message that everything changed: the server's
 * FLUSHALL, or a server that cannot be watched. It forgets all keys, so each write that is under way then
 * is told with its reply, whether the connection has read the key or not (hs_push_session.forgotten).
 *
 * The outcome does not matter: a write that failed or whose outcome is unknown is told as well. A
 * command of which it is not known which keys it writes (FLUSHALL, a script that names no keys) is
 * told as a change of everything. The server's own message follows for what the client has read
 * since. A client with NOLOOP does not want to hear of its own writes, and gets the server's message
 * only. The embedded engine needs none of this: it reports a change before it answers the write. */
#include "push/tracking.h"

/* In BCAST mode by prefix, else if the connection has read the key since it was told last. */
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
	return hs_tracked_has(tracked, session->id); /* a request behind it may read the key */
}

/* Whether a command that named no key may have written any: FLUSHALL, a script; and a module's command
 * that does not say what it does (law 8). */
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
		/* The whole command: each part of one that was split has some of its keys. */
		send_written_keys(core, request, &request->call);
	} else if (op->kind == HS_OP_EXEC) {
		for (size_t i = 0; i < op->tx->count; i++) {
			const struct hs_op_tx_command *queued = &op->tx->commands[i];

			struct hs_call call = hs_call_queued(queued);

			/* FLUSHALL, too: its `answered` only keeps its place until it runs behind the commit (core/deferred.c). */
			send_written_keys(core, request, &call);
		}
	}
	hs_tracking_count(core);
}
