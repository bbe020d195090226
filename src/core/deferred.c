/* Commands of a transaction that run after its commit: pub/sub commands, and those that the process, other
 * workers or other partitions answer. After the first of them everything that the core answers itself is
 * deferred, too. If the transaction depends on watched keys, and so may not run at all, all commands that the
 * core answers are deferred from the beginning.
 *
 *     EXEC ── engine: all commands on data ── committed ── SUBSCRIBE a ── PUBLISH a x ── PING ── reply
 *
 * So no client gets a message before the data that it announces is visible, nor a message of a transaction that
 * did not run. Messages that a client sends to itself stand in EXEC's reply where Redis puts them: before the
 * number that PUBLISH replies. Messages of other clients meanwhile follow EXEC's reply.
 *
 * PUBLISH goes to a server inside the transaction; what remains to do here is to correct the number of
 * receivers.
 *
 * A command over all partitions that writes no keys (DBSIZE, KEYS, SCRIPT LOAD) goes inside the transaction,
 * too, so that its own partition replies at the command's place. The core then asks the other partitions, which
 * the transaction does not touch, and merges the replies. SCAN, and what the process or other workers answer
 * (INFO, CONFIG, CLIENT LIST), see the data after the commit.
 *
 * Such an EXEC is the only command of its client in flight (core/dispatch.c). Its deferred commands run one by
 * one, as requests whose replies are appended to EXEC's. */
#include "core/deferred.h"

#include "base/mem.h"
#include "core/dispatch.h"
#include "core/fanout.h"
#include "core/multi.h"
#include "core/reserved.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"

struct hs_deferred {
	struct hs_buf engine;	/* the engine's reply to EXEC */
	struct hs_bytes rest;	/* the elements of `engine` not used yet */
	struct hs_buf reply;	/* EXEC's reply so far */
	struct hs_buf messages; /* messages from other clients meanwhile */
	size_t next;		/* index of the next command */
	bool begun;		/* the in/out state of hs_deferred_is */
	/* A command that is answered at once must not begin a second loop: while run_next is `looping`,
	 * hs_deferred_finished only sets `finished_at_once`. */
	bool looping, finished_at_once;
};

bool hs_deferred_is_local(const struct hs_command *command)
{
	return command->place == HS_PLACE_CORE ||
	       (command->place == HS_PLACE_PARENT && command->id < HS_CMD_IDS);
}

bool hs_deferred_begins(const struct hs_core *core, const struct hs_command *command)
{
	if (hs_command_is_pubsub(command))
		return true;
	switch (command->place) {
	case HS_PLACE_HOST:
	case HS_PLACE_WORKERS:
		return true;
	case HS_PLACE_ALL:
	case HS_PLACE_CURSOR:
		return core->world.op_scope != HS_OP_SCOPE_ALL;
	case HS_PLACE_SLOT:
		return hs_reserved_shows(core, command);
	default:
		return false;
	}
}

bool hs_deferred_is(const struct hs_core *core, const struct hs_command *command, bool *begun)
{
	bool begins = hs_deferred_begins(core, command);

	*begun = *begun || begins;
	return begins || (*begun && hs_deferred_is_local(command));
}

bool hs_deferred_in_engine(const struct hs_core *core, const struct hs_command *command)
{
	switch (command->place) {
	/* PUBLISH, SPUBLISH: servers run them; on the embedded engine the workers deliver. */
	case HS_PLACE_ANY:
	case HS_PLACE_PARTITION:
		return core->world.shared_connections;
	case HS_PLACE_ALL:
		return !(command->flags & HS_CMD_WRITE) || hs_core_partitions(core) == 1;
	default:
		return command->place == HS_PLACE_SLOT;
	}
}

struct hs_buf *hs_deferred_messages(struct hs_deferred *deferred)
{
	return &deferred->messages;
}

void hs_deferred_drop(struct hs_deferred **deferred)
{
	hs_buf_deinit(&(*deferred)->engine);
	hs_buf_deinit(&(*deferred)->reply);
	hs_buf_deinit(&(*deferred)->messages);
	hs_mem_free(deferred);
}

static void finish(struct hs_core *core, struct hs_request *exec)
{
	struct hs_session *session = exec->session;
	struct hs_buf messages = {0};

	hs_buf_swap(&exec->reply, &exec->deferred->reply);
	hs_buf_swap(&messages, &exec->deferred->messages);
	session->deferred = NULL;
	hs_dispatch_finish(core, exec); /* EXEC was alone in flight: its reply is in `out` now */
	if (!session->gone)
		hs_buf_append_bytes(&session->out, hs_buf_bytes(&messages));
	hs_buf_deinit(&messages);
}

/* Runs a command that writes its reply at once. */
static void run_local(struct hs_core *core, struct hs_request *exec, const struct hs_call *call)
{
	struct hs_reply reply = {.out = &exec->deferred->reply, .resp = exec->session->resp};
	size_t start = exec->deferred->reply.len;

	core->world.commands->run[call->command->id](core, exec->session, call, &reply);
	/* CLIENT REPLY writes nothing: every command has an element. */
	if (exec->deferred->reply.len == start)
		hs_reply_ok(&reply);
}

static void hide_copies(struct hs_request *exec, struct hs_bytes element)
{
	struct hs_buf reply = {0};

	hs_buf_append_bytes(&reply, element);
	hs_reserved_hide(&reply, 0, exec->session->resp);
	hs_buf_append_bytes(&exec->deferred->reply, hs_buf_bytes(&reply));
	hs_buf_deinit(&reply);
}

/* Runs one deferred command. `element`: the engine's reply to it inside the transaction; empty: the engine did
 * not get it. False: it is in flight. */
static bool run(struct hs_core *core, struct hs_request *exec, const struct hs_call *call,
		struct hs_bytes element)
{
	struct hs_session *session = exec->session;
	struct hs_deferred *deferred = exec->deferred;

	deferred->finished_at_once = false;
	if (call->command->starts) {
		core->world.commands->start[call->command->id](core, session, exec, call, element);
		return deferred->finished_at_once;
	}
	switch (call->command->place) {
	case HS_PLACE_HOST:
		hs_dispatch_host(core, session, exec, call);
		break;
	case HS_PLACE_WORKERS:
	case HS_PLACE_ALL:
		hs_fanout_all(core, session, exec, call, element);
		break;
	case HS_PLACE_CURSOR:
		hs_fanout_cursor(core, session, exec, call);
		break;
	case HS_PLACE_SLOT:
		hide_copies(exec, element);
		return true;
	default:
		run_local(core, exec, call);
		return true;
	}
	return deferred->finished_at_once;
}

static void run_next(struct hs_core *core, struct hs_request *exec)
{
	const struct hs_op_tx *tx = exec->parts[0].op.tx;
	struct hs_deferred *deferred = exec->deferred;

	deferred->looping = true;
	while (deferred->next < tx->count) {
		const struct hs_op_tx_command *command = &tx->commands[deferred->next++];
		struct hs_call call = hs_call_queued(command);
		struct hs_bytes element;

		hs_parse_reply_take(&deferred->rest, &element);
		/* An error in its place: its user may not run it any more, or the server refused it. */
		if (!hs_deferred_is(core, command->command, &deferred->begun) ||
		    (element.len > 0 && element.data[0] == '-')) {
			hs_buf_append_bytes(&deferred->reply, element);
			continue;
		}
		if (command->answered.len > 0)
			element.len = 0; /* only a placeholder */
		if (!run(core, exec, &call, element)) {
			deferred->looping = false;
			return;
		}
	}
	finish(core, exec);
}

bool hs_deferred_begin(struct hs_core *core, struct hs_request *exec)
{
	struct hs_parsed_reply head;
	int64_t len;
	bool all;

	if (!exec->multi || !hs_multi_is_deferred(exec->multi, &all))
		return false;
	len = hs_parse_reply_head(&head, exec->reply.data, exec->reply.len);
	if (len <= 0 || head.type != HS_PARSED_ARRAY)
		return false; /* the transaction did not run */
	exec->deferred = hs_mem_zalloc(sizeof *exec->deferred);
	exec->deferred->begun = all;
	hs_buf_swap(&exec->deferred->engine, &exec->reply);
	hs_buf_append(&exec->deferred->reply, exec->deferred->engine.data, (size_t)len);
	exec->deferred->rest = (struct hs_bytes){exec->deferred->engine.data + len,
						 exec->deferred->engine.len - (size_t)len};
	exec->session->deferred = exec;
	run_next(core, exec);
	return true;
}

void hs_deferred_finished(struct hs_core *core, struct hs_request *request)
{
	struct hs_request *exec = request->exec;

	hs_buf_append_bytes(&exec->deferred->reply, hs_buf_bytes(&request->reply));
	hs_request_put(core, request);
	if (exec->deferred->looping)
		exec->deferred->finished_at_once = true;
	else
		run_next(core, exec);
}

/* The next element of EXEC's reply that belongs to a command, without RESP3 push messages in between; empty: no
 * more. */
static struct hs_bytes next_element(struct hs_bytes *rest)
{
	struct hs_bytes element;

	while (hs_parse_reply_take(rest, &element) && element.data[0] == '>')
		;
	return element;
}

void hs_deferred_account(struct hs_core *core, const struct hs_request *exec, uint64_t time_us)
{
	const struct hs_op_tx *tx = exec->parts_count == 1 ? exec->parts[0].op.tx : NULL;
	struct hs_bytes rest = hs_parse_reply_elements(hs_buf_bytes(&exec->reply));

	if (!tx || rest.len == 0)
		return; /* the transaction did not run */
	for (size_t i = 0; i < tx->count; i++) {
		const struct hs_command *command = tx->commands[i].command;
		struct hs_core_command_stats *stats = &core->stats.command[command->id];
		struct hs_bytes element = next_element(&rest);

		/* Deferred commands were requests, and are counted already. */
		if (hs_deferred_begins(core, command) && command->place != HS_PLACE_SLOT)
			continue;
		hs_counter_add(&core->stats.commands, 1);
		hs_counter_add(&stats->calls, 1);
		hs_counter_add(&stats->time_ns, time_us * 1000 / tx->count);
		if (element.len > 0 && element.data[0] == '-') {
			hs_counter_add(&stats->failed, 1);
			hs_counter_add(&core->stats.errors, 1);
		}
	}
}
