/* MULTI to EXEC, and WATCH.
 *
 * Queued commands are copied into one buffer. EXEC sends all of them as one operation to the partition that
 * owns their slot. Commands that need no engine (PING, TIME, CLIENT …) are answered here at that moment, and
 * their replies travel with the operation. If the transaction watches keys, it may not run at all; then these
 * commands wait until it has run (core/deferred.c), so that CLIENT SETNAME in a transaction that did not run
 * has no effect. A transaction lives on one slot, as in Redis Cluster.
 *
 * Commands that other partitions, other workers or the process answer (DBSIZE, INFO, CLIENT LIST) run after the
 * commit (core/deferred.c). A write to every partition (FLUSHDB) cannot be atomic with keys of one slot: EXEC
 * refuses a transaction that has both. */
#include "core/multi.h"

#include "base/mem.h"
#include "core/count.h"
#include "core/deferred.h"
#include "core/dispatch.h"
#include "core/internal.h"
#include "core/users.h"
#include "wire/reply.h"

#include <stdio.h>

struct queued {
	const struct hs_command *command;
	size_t first; /* index of its first argument in hs_multi.args */
	size_t argc;
	size_t answered; /* offset of its reply in hs_multi.answered, plus 1; 0: none */
	size_t answered_len;
};

/* The names serve heat alone: a transaction that did not run counts as contention on its watched keys. Names
 * beyond the limit are watched, but not remembered. */
struct hs_watches {
	uint16_t slot;
	uint32_t keys;	     /* watched keys, duplicates counted */
	struct hs_buf names; /* each name once: two bytes of length, and the name */
};

_Static_assert(HS_WATCH_NAMES_BYTES_MAX <= UINT16_MAX, "a name's length takes two bytes");

struct hs_multi {
	struct hs_buf bytes;   /* the bytes of all arguments */
	struct hs_bytes *args; /* until `closed`, `data` is an offset into `bytes` */
	bool closed;	       /* EXEC has come: nothing more is queued */
	size_t args_count, args_cap;
	struct queued *queued;
	size_t count, cap;
	int32_t slot;	    /* slot of the keys; -1: no keys so far */
	bool several_slots; /* EXEC will refuse */
	/* A queued command that writes to every partition; NULL: none. */
	const struct hs_command *write_to_all;
	bool failed;	     /* a command was refused: EXEC will abort */
	bool writes;	     /* a queued command may write */
	bool local;	     /* has commands that the core answers */
	bool deferred;	     /* some commands run after the commit */
	bool local_deferred; /* all commands that the core answers run after the commit */
	bool engine;	     /* has commands for the engine; known at EXEC */

	/* Made by EXEC. */
	struct hs_buf answered;
	struct hs_op_tx_command *commands;
	struct hs_op_tx tx;
	struct hs_watches *watches; /* the keys it depends on; NULL: none */
};

static void drop_watches(struct hs_watches **watches)
{
	if (!*watches)
		return;
	hs_buf_deinit(&(*watches)->names);
	hs_mem_free(watches);
}

void hs_multi_drop(struct hs_multi **multi)
{
	if (!*multi)
		return;
	hs_buf_deinit(&(*multi)->bytes);
	hs_buf_deinit(&(*multi)->answered);
	hs_mem_free(&(*multi)->args);
	hs_mem_free(&(*multi)->queued);
	hs_mem_free(&(*multi)->commands);
	drop_watches(&(*multi)->watches);
	hs_mem_free(multi);
}

size_t hs_multi_count(const struct hs_multi *multi)
{
	return multi->count;
}

bool hs_multi_writes(const struct hs_multi *multi)
{
	return multi->writes;
}

bool hs_multi_is_deferred(const struct hs_multi *multi, bool *all)
{
	*all = multi->local_deferred;
	return multi->deferred;
}

bool hs_multi_would_be_deferred(const struct hs_session *session)
{
	const struct hs_multi *multi = session->multi;

	return multi && (multi->deferred || (multi->local && session->watches));
}

void hs_multi_mark_failed(struct hs_session *session)
{
	if (session->multi)
		session->multi->failed = true;
}

static void add(struct hs_multi *multi, const struct hs_call *call)
{
	if (multi->count == multi->cap) {
		multi->cap = multi->cap ? multi->cap * 2 : 8;
		multi->queued = hs_mem_realloc(multi->queued, multi->cap * sizeof *multi->queued);
	}
	while (multi->args_count + call->argc > multi->args_cap) {
		multi->args_cap = multi->args_cap ? multi->args_cap * 2 : 32;
		multi->args = hs_mem_realloc(multi->args, multi->args_cap * sizeof *multi->args);
	}
	multi->queued[multi->count++] = (struct queued){
		.command = call->command, .first = multi->args_count, .argc = call->argc};
	for (size_t i = 0; i < call->argc; i++) {
		/* An offset, because the buffer still grows. */
		multi->args[multi->args_count++] = (struct hs_bytes){
			(const char *)(uintptr_t)multi->bytes.len, call->argv[i].len};
		hs_buf_append_bytes(&multi->bytes, call->argv[i]);
	}
}

/* The slot that a command needs; -1: any. */
static int32_t slot_of(const struct hs_call *call)
{
	struct hs_key_walk walk;
	uint16_t slot;
	size_t at;

	if (call->command->place == HS_PLACE_SLOT)
		return hs_call_named_slot(call, &slot) ? -1 : slot;
	hs_call_keys(call, &walk);
	at = hs_keys_next(&walk);
	return at > 0 ? hs_slot_of(call->argv[at]) : -1;
}

static bool writes_everywhere(const struct hs_core *core, const struct hs_command *command)
{
	return command->place == HS_PLACE_ALL && (command->flags & HS_CMD_WRITE) &&
	       core->world.op_scope != HS_OP_SCOPE_ALL && hs_core_partitions(core) != 1;
}

void hs_multi_queue(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		    struct hs_reply *reply)
{
	struct hs_multi *multi = session->multi;
	size_t bytes = 0;
	int32_t slot;

	for (size_t i = 0; i < call->argc; i++)
		bytes += call->argv[i].len;
	if (call->command->unqueued) {
		hs_reply_errorf(reply,
				"ERR '%s' %s and cannot be part of a transaction; send it before "
				"MULTI",
				call->command->name, call->command->unqueued);
		multi->failed = true;
		return;
	}
	if (multi->count == HS_MULTI_COMMANDS_MAX ||
	    multi->bytes.len + bytes > HS_MULTI_BYTES_MAX) {
		hs_reply_error(reply, "ERR transaction too large: at most 1048576 commands and "
				      "512 MiB of arguments");
		multi->failed = true;
		return;
	}
	if (multi->failed) {
		/* EXEC will abort. As in Redis, further commands are not stored. */
		hs_reply_status(reply, "QUEUED");
		return;
	}
	slot = slot_of(call);
	if (slot >= 0) {
		if (multi->slot >= 0 && multi->slot != slot &&
		    core->world.op_scope != HS_OP_SCOPE_ALL)
			multi->several_slots = true;
		multi->slot = slot;
	}
	if (writes_everywhere(core, call->command))
		multi->write_to_all = call->command;
	multi->writes = multi->writes || hs_pause_is_write(call->command);
	add(multi, call);
	multi->deferred = multi->deferred || hs_deferred_begins(core, call->command);
	multi->local = multi->local || hs_deferred_is_local(call->command);
	hs_reply_status(reply, "QUEUED");
}

static struct hs_call call_of(const struct hs_multi *multi, const struct queued *queued)
{
	return hs_call_of(queued->command, queued->argc, multi->args + queued->first);
}

/* Writes the reply of a command that the core answers, or a placeholder for one that is deferred. */
static void answer_queued(struct hs_core *core, struct hs_session *session, struct hs_multi *multi,
			  struct queued *queued, bool deferred)
{
	struct hs_reply reply = {.out = &multi->answered, .resp = session->resp};
	struct hs_call call = call_of(multi, queued);
	size_t start = multi->answered.len;

	if (deferred)
		hs_reply_status(&reply, "LATER");
	else
		core->world.commands->run[queued->command->id](core, session, &call, &reply);
	/* CLIENT REPLY OFF writes nothing: every command has an element. */
	if (multi->answered.len == start)
		hs_reply_ok(&reply);
	queued->answered = start + 1;
	queued->answered_len = multi->answered.len - start;
}

/* Whether a queued command may not run at EXEC: its user has lost the permission, or its slot argument is
 * wrong. If so, the error is its reply. */
static bool refuse_queued(struct hs_core *core, struct hs_session *session, struct hs_multi *multi,
			  struct queued *queued)
{
	struct hs_reply reply = {.out = &multi->answered, .resp = session->resp};
	struct hs_call call = call_of(multi, queued);
	size_t start = multi->answered.len;
	const char *wrong = NULL;
	uint16_t slot;

	if (!hs_users_refuse_queued(core, session, &call, &reply)) {
		if (queued->command->place == HS_PLACE_SLOT)
			wrong = hs_call_named_slot(&call, &slot);
		if (!wrong)
			return false;
		hs_reply_error(&reply, wrong);
	}
	queued->answered = start + 1;
	queued->answered_len = multi->answered.len - start;
	return true;
}

void hs_multi_close(struct hs_multi *multi)
{
	for (size_t i = 0; !multi->closed && i < multi->args_count; i++)
		multi->args[i].data = multi->bytes.data + (uintptr_t)multi->args[i].data;
	multi->closed = true;
}

struct hs_call hs_multi_call(const struct hs_multi *multi, size_t index)
{
	hs_check(multi->closed && index < multi->count);
	return call_of(multi, &multi->queued[index]);
}

/* Answers the commands that need no engine or may not run, and writes the list of commands of the operation. */
static void prepare_commands(struct hs_core *core, struct hs_session *session,
			     struct hs_multi *multi)
{
	bool begun = multi->local_deferred;

	for (size_t i = 0; i < multi->count; i++) {
		struct queued *queued = &multi->queued[i];
		bool deferred = hs_deferred_is(core, queued->command, &begun);

		if (refuse_queued(core, session, multi, queued))
			continue;
		if (deferred ? !hs_deferred_in_engine(core, queued->command)
			     : hs_deferred_is_local(queued->command)) {
			answer_queued(core, session, multi, queued, deferred);
			continue;
		}
		multi->engine = true;
		if (session->observers) {
			struct hs_call call = call_of(multi, queued);

			hs_stages_queued(core, session, &call);
		}
	}
	multi->commands = hs_mem_zalloc(multi->count * sizeof *multi->commands);
	for (size_t i = 0; i < multi->count; i++) {
		const struct queued *queued = &multi->queued[i];

		multi->commands[i] = (struct hs_op_tx_command){
			.command = queued->command,
			.argv = multi->args + queued->first,
			.argc = queued->argc,
		};
		if (queued->command->id == HS_CMD_ID_OBJECT_FREQ)
			multi->commands[i].frequency =
				hs_count_frequency(core, multi->commands[i].argv[2]);
		if (queued->answered > 0)
			multi->commands[i].answered = (struct hs_bytes){
				multi->answered.data + queued->answered - 1, queued->answered_len};
	}
	multi->tx = (struct hs_op_tx){.commands = multi->commands, .count = multi->count};
}

/* Why EXEC cannot run, a literal or written to `text`; NULL: it can. */
static const char *exec_refused(const struct hs_core *core, const struct hs_session *session,
				const struct hs_multi *multi, char *text, size_t text_size)
{
	bool one_slot = core->world.op_scope != HS_OP_SCOPE_ALL;

	if (!multi)
		return "ERR EXEC without MULTI";
	if (multi->several_slots || (one_slot && session->watches && multi->slot >= 0 &&
				     session->watches->slot != multi->slot))
		return "CROSSSLOT Keys in request don't hash to the same slot";
	if (multi->failed)
		return "EXECABORT Transaction discarded because of previous errors.";
	if (!multi->write_to_all || (multi->slot < 0 && !session->watches))
		return NULL;
	snprintf(text, text_size,
		 "EXECABORT Transaction discarded because of: '%s' writes to every partition and "
		 "cannot be atomic with keys of one slot; send it outside of MULTI, or in a "
		 "transaction without keys and WATCH",
		 multi->write_to_all->name);
	return text;
}

/* No command is for the engine: EXEC's reply is made of the replies written here. */
static void answer_without_engine(struct hs_core *core, struct hs_request *request)
{
	struct hs_part *part = &request->parts[0];
	struct hs_reply reply = {.out = &part->out, .resp = request->session->resp};

	hs_reply_array(&reply, request->multi->count);
	hs_buf_append_bytes(&part->out, hs_buf_bytes(&request->multi->answered));
	part->op.resp = request->session->resp;
	part->time_us = 0;
	part->answered = true;
	request->parts_left = 0;
	hs_dispatch_answered(core, request);
}

void hs_multi_exec(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		   const struct hs_call *call, struct hs_bytes element)
{
	struct hs_request *request = hs_request_get(core, session, call->command);
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};
	char text[256];
	const char *refused = exec_refused(core, session, session->multi, text, sizeof text);
	int32_t slot;

	(void)exec, (void)element; /* EXEC is never queued */
	request->multi = session->multi;
	session->multi = NULL;
	if (refused) {
		hs_reply_error(&reply, refused);
		if (request->multi)
			hs_multi_unwatch(core, session);
		hs_dispatch_account(core, session, call, 0, true);
		hs_request_finish(core, request);
		return;
	}
	/* EXEC takes the watches over: an UNWATCH among its commands finds none. */
	request->multi->watches = session->watches;
	session->watches = NULL;
	request->multi->local_deferred = request->multi->local && request->multi->watches;
	request->multi->deferred = request->multi->deferred || request->multi->local_deferred;
	prepare_commands(core, session, request->multi);
	slot = request->multi->slot;
	if (slot < 0)
		slot = request->multi->watches ? request->multi->watches->slot : 0;
	hs_request_copy_call(request, call);
	hs_request_split(request, 1);
	request->parts[0].op = (struct hs_op){
		.kind = HS_OP_EXEC,
		.command = call->command,
		.slot = (uint16_t)slot,
		.partition = hs_core_partition(core, (uint16_t)slot),
		.argv = request->call.argv,
		.argc = call->argc,
		.tx = &request->multi->tx,
		.watcher = request->multi->watches ? session->id : 0,
	};
	if (request->multi->engine || request->multi->watches)
		hs_dispatch_submit(core, request, 0);
	else
		answer_without_engine(core, request);
}

void hs_multi_run_multi(struct hs_core *core, struct hs_session *session,
			const struct hs_call *call, struct hs_reply *reply)
{
	(void)core, (void)call;
	if (session->multi) {
		hs_reply_error(reply, "ERR MULTI calls can not be nested");
		return;
	}
	session->multi = hs_mem_zalloc(sizeof *session->multi);
	session->multi->slot = -1;
	hs_reply_ok(reply);
}

void hs_multi_run_discard(struct hs_core *core, struct hs_session *session,
			  const struct hs_call *call, struct hs_reply *reply)
{
	(void)call;
	if (!session->multi) {
		hs_reply_error(reply, "ERR DISCARD without MULTI");
		return;
	}
	hs_multi_drop(&session->multi);
	hs_reply_ok(reply);
	hs_multi_unwatch(core, session);
}

void hs_multi_run_unwatch(struct hs_core *core, struct hs_session *session,
			  const struct hs_call *call, struct hs_reply *reply)
{
	(void)call;
	hs_reply_ok(reply);
	hs_multi_unwatch(core, session);
}

/* The client has its reply already, or has disconnected. UNWATCH is an internal call, because a slow server
 * must not delay the replies of later commands. The engine runs it after the client's WATCH and before the next
 * one. */
void hs_multi_unwatch(struct hs_core *core, struct hs_session *session)
{
	struct hs_internal internal = {
		.call = hs_call_of(hs_command_by_id(HS_CMD_ID_UNWATCH), 0, NULL),
		.on_done = hs_internal_end,
		.kind = HS_OP_UNWATCH,
		.client = session->id,
		.stage = HS_STAGE_NONE,
	};
	struct hs_request *request;

	if (!session->watches)
		return;
	internal.slot = session->watches->slot;
	drop_watches(&session->watches);
	request = hs_internal_prepare(core, &internal);
	request->parts[0].op.watcher = session->id;
	request->parts[0].op.has_watches = true;
	hs_internal_send(core, request);
}

static bool next_name(const struct hs_watches *watches, size_t *at, struct hs_bytes *name)
{
	uint16_t len;

	if (*at == watches->names.len)
		return false;
	memcpy(&len, watches->names.data + *at, sizeof len);
	*name = (struct hs_bytes){watches->names.data + *at + sizeof len, len};
	*at += sizeof len + len;
	return true;
}

bool hs_multi_watched(const struct hs_multi *multi, size_t *at, struct hs_bytes *name)
{
	return multi->watches && next_name(multi->watches, at, name);
}

static void remember_name(struct hs_watches *watches, struct hs_bytes name)
{
	uint16_t len = (uint16_t)name.len;
	struct hs_bytes known;
	size_t at = 0;

	if (watches->names.len + sizeof len + name.len > HS_WATCH_NAMES_BYTES_MAX)
		return;
	while (next_name(watches, &at, &known)) {
		if (hs_bytes_equal(known, name))
			return;
	}
	hs_buf_append(&watches->names, &len, sizeof len);
	hs_buf_append_bytes(&watches->names, name);
}

static void remember(struct hs_core *core, struct hs_session *session, uint16_t slot, size_t argc,
		     const struct hs_bytes *argv)
{
	if (!session->watches)
		session->watches = hs_mem_zalloc(sizeof *session->watches);
	session->watches->slot = slot;
	session->watches->keys += (uint32_t)(argc - 1);
	for (size_t i = 1; HS_CORE_HEAT && core->world.heat && i < argc; i++)
		remember_name(session->watches, argv[i]);
}

void hs_multi_watch(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		    const struct hs_call *call, struct hs_bytes element)
{
	uint16_t slot = hs_slot_of(call->argv[1]);
	struct hs_request *request = hs_request_single(core, session, call, slot);
	struct hs_op *op = &request->parts[0].op;
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};
	size_t watched = session->watches ? session->watches->keys : 0;
	const char *refused = NULL;

	(void)exec, (void)element; /* WATCH is never queued */
	op->kind = HS_OP_WATCH;
	if (session->multi)
		refused = "ERR WATCH inside MULTI is not allowed";
	else if (core->world.op_scope != HS_OP_SCOPE_ALL && session->watches &&
		 session->watches->slot != slot)
		refused = "CROSSSLOT Keys in request don't hash to the same slot";
	else if (watched + call->argc - 1 > HS_WATCH_KEYS_MAX)
		refused = "ERR too many watched keys: at most 1024 for one connection";
	if (refused) {
		hs_reply_error(&reply, refused);
		hs_dispatch_account(core, session, call, 0, true);
		hs_request_finish(core, request);
		return;
	}
	remember(core, session, slot, call->argc, call->argv);
	op->watcher = session->id;
	op->has_watches = watched > 0;
	hs_dispatch_submit(core, request, 0);
}
