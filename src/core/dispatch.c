/* From a parsed command to its execution.
 *
 * The order of the checks is Redis's (existence, arity, AUTH, transaction, ACL, slots), so that a command with
 * several errors gets the same error as from Redis.
 *
 * A read with nothing of its connection in flight is answered at once, straight into the session's out buffer.
 * Any other command becomes a request: its arguments are copied, its operation goes to the engine, and its
 * reply is delivered in turn. While a connection has an operation in flight on a partition, its later commands
 * for that partition queue behind it, reads too. So a pipelined SET and GET of one key agree (law 2: a strict
 * key is linearizable, also for clients that pipeline).
 *
 * Timing. Fast commands that are answered at once share one look at the clock: commands since the last look get
 * equal parts of the time (settle_timed). Slow ones and those with several keys are timed alone. */
#include "core/dispatch.h"

#include "core/count.h"
#include "core/deferred.h"
#include "core/fanout.h"
#include "core/hold.h"
#include "core/multi.h"
#include "core/reserved.h"
#include "core/slowlog.h"
#include "core/unknown.h"
#include "core/users.h"
#include "wire/reply.h"

#include <stdio.h>

/* Whether a command is timed alone: it may be slow, has several keys, or the slow log needs exact times. */
static bool timed_alone(const struct hs_core *core, const struct hs_command *command)
{
	return !(command->flags & HS_CMD_FAST) || command->key_first != command->key_last ||
	       command->key_specs ||
	       (core->options.slowlog_us >= 0 && core->options.slowlog_us < 1000);
}

/* Counts the noted reads. Stages get `hot` for them only if one asks (HS_POINT_HOT_READS). */
static void settle_heat(struct hs_core *core, uint64_t each_ns)
{
	struct hs_heat_warmth heat = hs_heat_settle(core->world.heat, each_ns);

	if (core->stages.want[HS_POINT_HOT_READS])
		hs_count_hot(core, heat, false);
}

/* Divides the time since the last look at the clock among the commands answered since. */
static void settle_timed(struct hs_core *core)
{
	uint64_t now_us = core->world.calls->mono_us(core->world.context);

	if (core->timed_count > 0) {
		uint64_t each_ns = (now_us - core->timing_start_us) * 1000 / core->timed_count;

		for (uint32_t i = 0; i < core->timed_count; i++)
			hs_counter_add(&core->stats.command[core->timed[i]].time_ns, each_ns);
		if (HS_CORE_HEAT && core->world.heat)
			settle_heat(core, each_ns);
	}
	core->timed_count = 0;
	core->timing_start_us = now_us;
}

void hs_dispatch_account(struct hs_core *core, struct hs_session *session,
			 const struct hs_call *call, uint64_t time_us, bool failed)
{
	struct hs_core_command_stats *stats = &core->stats.command[call->command->id];

	hs_counter_add(&core->stats.commands, 1);
	hs_counter_add(&stats->calls, 1);
	hs_counter_add(&stats->time_ns, time_us * 1000);
	if (failed) {
		hs_counter_add(&stats->failed, 1);
		hs_counter_add(&core->stats.errors, 1);
	}
	if (core->options.slowlog_us >= 0 && time_us >= (uint64_t)core->options.slowlog_us &&
	    !(call->command->flags & HS_CMD_SKIP_SLOWLOG))
		hs_slowlog_add(core, session, call, time_us);
}

/* Before a command that is answered at once. */
static void timing_begin(struct hs_core *core, const struct hs_command *command)
{
	if (timed_alone(core, command))
		settle_timed(core);
}

/* After it. Returns its time if it is timed alone, else 0. */
static uint64_t timing_end(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call, bool failed)
{
	uint64_t start_us = core->timing_start_us;
	uint64_t time_us = 0;

	if (timed_alone(core, call->command)) {
		settle_timed(core);
		time_us = core->timing_start_us - start_us;
	} else {
		core->timed[core->timed_count++] = call->command->id;
		if (core->timed_count == HS_TIMED_COMMANDS_MAX)
			settle_timed(core);
	}
	hs_dispatch_account(core, session, call, time_us, failed);
	return time_us;
}

/* A reply being written: to the session's out buffer if its turn is now, else to a request that keeps its
 * place. */
struct answer {
	struct hs_reply reply;
	struct hs_request *request;
	size_t start;
};

static void answer_begin(struct hs_core *core, struct hs_session *session,
			 const struct hs_command *command, struct answer *answer)
{
	answer->request = NULL;
	answer->reply = (struct hs_reply){.out = &session->out, .resp = session->resp};
	if (!hs_list_empty(&session->requests)) {
		answer->request = hs_request_get(core, session, command);
		answer->reply.out = &answer->request->reply;
	}
	answer->start = answer->reply.out->len;
}

/* Returns whether the reply is an error. */
static bool answer_end(struct hs_core *core, struct hs_session *session, struct answer *answer)
{
	struct hs_buf *out = answer->reply.out;
	bool failed = out->len > answer->start && out->data[answer->start] == '-';
	/* Decided after the command ran: CLIENT REPLY ON has a reply, CLIENT REPLY OFF has none. */
	bool muted = session->reply_mode == HS_REPLY_OFF || session->reply_mode == HS_REPLY_SKIP;

	if (answer->request) {
		answer->request->muted = muted;
		hs_request_finish(core, answer->request);
	} else if (muted) {
		out->len = answer->start;
	}
	return failed;
}

void hs_dispatch_reject(struct hs_core *core, struct hs_session *session,
			const struct hs_command *command, const char *text)
{
	struct answer answer;

	bool is_exec = command && command->id == HS_CMD_ID_EXEC;

	answer_begin(core, session, command, &answer);
	if (is_exec)
		hs_reply_errorf(&answer.reply, "EXECABORT Transaction discarded because of: %s",
				strncmp(text, "ERR ", 4) == 0 ? text + 4 : text);
	else
		hs_reply_error(&answer.reply, text);
	answer_end(core, session, &answer);
	hs_counter_add(&core->stats.errors, 1);
	if (command)
		hs_counter_add(&core->stats.command[command->id].rejected, 1);
	hs_multi_mark_failed(session);
	if (is_exec) {
		hs_multi_drop(&session->multi);
		hs_multi_unwatch(core, session);
	}
}

/* Until a server has sent its list of commands, an unknown command may be one of the server's. True: answered
 * with that error. */
static bool reject_unlearned(struct hs_core *core, struct hs_session *session)
{
	char text[HS_ENGINE_UNAVAILABLE_BYTES];

	if (!core->world.shared_connections || core->learned)
		return false;
	hs_dispatch_reject(core, session, NULL, hs_engine_unavailable(core, text));
	return true;
}

static void reject_unknown(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call, const struct hs_command *parent)
{
	struct hs_buf text = {0};

	if (reject_unlearned(core, session))
		return;
	if (parent)
		hs_unknown_subcommand(core, parent, call->argv[1], &text);
	else
		hs_unknown_command(core, call, &text);
	hs_buf_append(&text, "", 1);
	hs_dispatch_reject(core, session, NULL, text.data);
	hs_buf_deinit(&text);
}

static void reject_arity(struct hs_core *core, struct hs_session *session,
			 const struct hs_command *command)
{
	struct hs_buf text = {0};

	hs_unknown_arity(command, &text);
	hs_buf_append(&text, "", 1);
	hs_dispatch_reject(core, session, command, text.data);
	hs_buf_deinit(&text);
}

static void reject_refused(struct hs_core *core, struct hs_session *session,
			   const struct hs_command *command)
{
	char text[256];

	snprintf(text, sizeof text, "ERR '%s' is not for clients of heatsink: %s", command->name,
		 command->refused);
	hs_dispatch_reject(core, session, command, text);
}

static void run_local(struct hs_core *core, struct hs_session *session, const struct hs_call *call)
{
	struct answer answer;

	timing_begin(core, call->command);
	answer_begin(core, session, call->command, &answer);
	core->world.commands->run[call->command->id](core, session, call, &answer.reply);

	bool failed = answer_end(core, session, &answer);

	timing_end(core, session, call, failed);
}

static void finish_at(struct hs_core *core, struct hs_request *request, uint64_t now_us)
{
	hs_dispatch_account(core, request->session, &request->call, now_us - request->start_us,
			    request->reply.len > 0 && request->reply.data[0] == '-');
	if (request->multi)
		hs_deferred_account(core, request, now_us - request->start_us);
	hs_request_finish(core, request);
}

void hs_dispatch_answered(struct hs_core *core, struct hs_request *request)
{
	struct hs_session *session = request->session;
	uint64_t now_us = core->now.mono_us;

	if (request->on_done) {
		request->on_done(core, request);
		return;
	}
	hs_fanout_merge(core, request);
	if (session->running) {
		/* Answered inside the submission: core->now is from before it ran. */
		settle_timed(core);
		now_us = core->timing_start_us;
		for (uint32_t i = 0; i < request->parts_count; i++)
			request->parts[i].time_us = now_us - request->start_us;
	}
	hs_count_request(core, request, hs_buf_bytes(&request->reply));
	if (!hs_deferred_begin(core, request))
		finish_at(core, request, now_us);
}

void hs_dispatch_finish(struct hs_core *core, struct hs_request *request)
{
	if (request->session->running)
		settle_timed(core);
	finish_at(core, request,
		  request->session->running ? core->timing_start_us : core->now.mono_us);
}

/* The usual reply of a server: one part, the bytes lie in the connection's read buffer, and it is this
 * request's turn. The bytes go straight to the session's out buffer. False: this is not that case. */
static bool finish_straight(struct hs_core *core, struct hs_request *request,
			    const struct hs_op *op)
{
	struct hs_session *session = request->session;
	enum hs_command_place place = request->call.command->place;

	if (request->parts_count != 1 || op->kind != HS_OP_COMMAND || place == HS_PLACE_CURSOR ||
	    request->on_done || session->requests.next != &request->link ||
	    hs_reserved_shows(core, request->call.command))
		return false;
	hs_count_request(core, request, op->answer);
	hs_dispatch_account(core, session, &request->call, request->parts[0].time_us,
			    op->answer.data[0] == '-');
	hs_request_answer(core, request, op->answer);
	return true;
}

static void submit(struct hs_core *core, struct hs_request *request, struct hs_part *part)
{
	struct hs_session *session = request->session;
	struct hs_op *op = &part->op;
	uint16_t *in_bucket = &session->in_bucket[op->partition % HS_PARTITION_BUCKETS];
	bool for_engine = op->kind != HS_OP_PEER && op->kind != HS_OP_HOST;

	part->bucket = op->partition % HS_PARTITION_BUCKETS;
	op->resp = request->resp > 0 ? request->resp : session->resp;
	if (session != core->self)
		op->client = request->client ? request->client : session->id;
	op->received = core->now;
	op->since_us = request->delayed ? request->start_us : 0;
	op->out = &part->out;
	op->worker = core->world.worker;
	op->owner = request;
	op->ordered = *in_bucket > 0 || request->delayed;
	part->time_us = 0;
	part->answered = false;

	enum hs_submit submitted = core->world.calls->submit(core->world.context, op);

	if (submitted == HS_SUBMIT_REFUSED) {
		op->ordered = true;
		submitted = core->world.calls->submit(core->world.context, op);
		hs_check(submitted != HS_SUBMIT_REFUSED);
	}
	if (submitted == HS_SUBMIT_QUEUED) {
		if (op->kind == HS_OP_COMMAND && !request->blocks &&
		    hs_call_blocks(&request->call)) {
			request->blocks = true;
			hs_counter_add(&core->stats.blocked, 1);
		}
		if (for_engine) {
			*in_bucket += 1;
			if (HS_CORE_HEAT && core->world.heat)
				hs_heat_inflight(core->world.heat, op->partition, 1);
		}
		return;
	}
	if (part->marked)
		hs_stages_arrive(core, request, part, HS_STAGES_MAX);
	/* The request may wait for other parts, whose time is not this part's. */
	if (HS_CORE_HEAT && core->world.heat && request->parts_count > 1)
		part->time_us = core->world.calls->mono_us(core->world.context) - request->start_us;
	if (--request->parts_left == 0) {
		bool delayed = request->delayed;

		hs_dispatch_answered(core, request);
		/* Several delayed requests may be answered at once, in a row. */
		if (delayed && session->inflight > 0 && !session->gone)
			hs_core_check_output(core, session);
	}
}

void hs_dispatch_submit(struct hs_core *core, struct hs_request *request, uint32_t index)
{
	struct hs_part *part = &request->parts[index];
	bool reads = part->op.kind == HS_OP_COMMAND && hs_command_only_reads(part->op.command);
	const uint32_t *want = core->stages.want;
	uint32_t wanting = want[HS_POINT_DEPART] | (reads ? 0 : want[HS_POINT_DEPART_WRITES]);

	wanting = wanting >> part->stage << part->stage;
	if (wanting == 0 || !hs_stages_depart(core, request, part, wanting))
		submit(core, request, part);
}

/* Has the engine write a large reply, unless the client has disconnected or has so much unread that it is
 * closed. */
static void make_reply(struct hs_core *core, struct hs_session *session, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	bool wanted;

	if (session != core->self)
		hs_core_check_output(core, session);
	wanted = session == core->self || (!session->gone && !session->cut);
	core->world.calls->write_reply(core->world.context, op, wanted);
	if (!wanted)
		hs_reply_error(&reply, "ERR the client is gone or was cut off; not read");
}

void hs_dispatch_arrived(struct hs_core *core, struct hs_request *request, struct hs_part *part,
			 uint32_t below)
{
	struct hs_session *session = request->session;
	struct hs_op *op = &part->op;

	part->time_us = core->now.mono_us - request->start_us;
	part->answered = true;
	if (op->reply_unwritten)
		make_reply(core, session, op);
	if (core->options.engine_inflight_bytes_max > 0 && op->kind == HS_OP_COMMAND) {
		struct hs_call call = hs_call_of(op->command, op->argc, op->argv);

		hs_reply_budget_learn(core, session, &call,
				      op->answer.len > 0 ? op->answer.len : part->out.len);
	}
	if (part->marked)
		hs_stages_arrive(core, request, part, below);
	if (op->answer.len == 0 || !finish_straight(core, request, op)) {
		hs_buf_append_bytes(&part->out, op->answer);
		op->answer.len = 0;
		if (--request->parts_left > 0)
			return;
		hs_dispatch_answered(core, request);
	}
}

void hs_dispatch_complete(struct hs_core *core, struct hs_op *op)
{
	struct hs_request *request = op->owner;
	struct hs_session *session = request->session;
	struct hs_part *part = hs_list_entry(op, struct hs_part, op);

	if (op->kind != HS_OP_PEER && op->kind != HS_OP_HOST) {
		session->in_bucket[part->bucket]--;
		if (HS_CORE_HEAT && core->world.heat)
			hs_heat_inflight(core->world.heat, op->partition, -1);
	}
	hs_dispatch_arrived(core, request, part, HS_STAGES_MAX);
	/* The request may be freed, and `op` with it. */
	hs_core_resume(core, session);
}

void hs_dispatch_answer(struct hs_core *core, struct hs_session *session,
			const struct hs_call *call, uint16_t slot, struct hs_bytes reply)
{
	struct answer answer;
	uint64_t time_us;
	bool alone = timed_alone(core, call->command);

	timing_begin(core, call->command);
	answer_begin(core, session, call->command, &answer);
	hs_buf_append_bytes(answer.reply.out, reply);
	answer_end(core, session, &answer);
	if (!alone)
		hs_count_note(core, call, slot, reply, false);
	time_us = timing_end(core, session, call, reply.len > 0 && reply.data[0] == '-');
	if (alone)
		hs_count_read(core, call, reply, false, time_us);
}

/* The fast path: a read of a connection with nothing in flight. False: the engine wants it as a queued request. */
static bool run_read_now(struct hs_core *core, struct hs_session *session,
			 const struct hs_call *call, uint16_t slot, uint16_t partition)
{
	size_t start = session->out.len;
	struct hs_bytes reply;
	uint64_t time_us;
	bool alone;
	struct hs_op op = {
		.kind = HS_OP_COMMAND,
		.resp = session->resp,
		.slot = slot,
		.partition = partition,
		.command = call->command,
		.argv = call->argv,
		.argc = call->argc,
		.received = core->now,
		.out = &session->out,
		.worker = core->world.worker,
	};

	if (call->command->id == HS_CMD_ID_OBJECT_FREQ)
		op.frequency = hs_count_frequency(core, call->argv[2]);
	timing_begin(core, call->command);

	enum hs_submit submitted = core->world.calls->submit(core->world.context, &op);

	if (submitted == HS_SUBMIT_REFUSED)
		return false;
	hs_check(submitted == HS_SUBMIT_DONE);
	reply = (struct hs_bytes){session->out.data + start, session->out.len - start};
	alone = timed_alone(core, call->command);
	if (!alone)
		hs_count_note(core, call, slot, reply, op.missed);
	time_us = timing_end(core, session, call, reply.len > 0 && reply.data[0] == '-');
	if (alone)
		hs_count_read(core, call, reply, op.missed, time_us);
	if (session->reply_mode == HS_REPLY_OFF || session->reply_mode == HS_REPLY_SKIP)
		session->out.len = start;
	return true;
}

/* Runs a command on one partition. `slot` may be HS_SLOT_NONE. */
static void run_partition(struct hs_core *core, struct hs_session *session,
			  const struct hs_call *call, uint16_t slot)
{
	const struct hs_command *command = call->command;
	uint16_t partition = hs_core_partition(core, slot == HS_SLOT_NONE ? 0 : slot);
	bool at_once = core->world.reads_at_once && (command->flags & HS_CMD_READONLY) &&
		       session->in_bucket[partition % HS_PARTITION_BUCKETS] == 0;

	if (at_once && hs_list_empty(&session->requests) &&
	    run_read_now(core, session, call, slot, partition))
		return;

	struct hs_request *request = hs_request_single(core, session, call, slot);

	if (command->id == HS_CMD_ID_OBJECT_FREQ)
		request->parts[0].op.frequency = hs_count_frequency(core, call->argv[2]);
	hs_dispatch_submit(core, request, 0);
}

/* Runs a command that names a slot as an argument. */
static void run_slot(struct hs_core *core, struct hs_session *session, const struct hs_call *call)
{
	struct answer answer;
	uint16_t slot;
	const char *refused = hs_call_named_slot(call, &slot);

	if (!refused) {
		run_partition(core, session, call, slot);
		return;
	}
	answer_begin(core, session, call->command, &answer);
	hs_reply_error(&answer.reply, refused);
	answer_end(core, session, &answer);
	hs_dispatch_account(core, session, call, 0, true);
}

/* Records who runs an admin command, for the log. Recorded now, because the command may change its own user. */
static void record_client(const struct hs_session *session, struct hs_request *request)
{
	struct hs_bytes name = session->user ? hs_acl_user_name(session->user) : HS_LIT("(none)");
	char shown[64];

	if (!(request->call.command->flags & HS_CMD_ADMIN))
		return;
	hs_buf_printf(&request->cursor, "user %s at %s", hs_bytes_escape(name, shown, sizeof shown),
		      session->address);
	request->parts[0].op.raw = hs_buf_bytes(&request->cursor);
}

void hs_dispatch_host(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		      const struct hs_call *call)
{
	struct hs_request *request = hs_request_make(core, session, call);

	request->exec = exec;
	hs_request_split(request, 1);
	request->parts[0].op = (struct hs_op){
		.kind = HS_OP_HOST,
		.command = call->command,
		.argv = request->call.argv,
		.argc = call->argc,
		.watcher = session->id,
	};
	record_client(session, request);
	hs_dispatch_submit(core, request, 0);
}

static void run(struct hs_core *core, struct hs_session *session, struct hs_call *call)
{
	const struct hs_command *command = call->command;
	enum hs_call_slots slots = hs_call_slots(call);
	uint16_t slot = call->slot;

	if (command->starts) {
		timing_begin(core, command);
		core->world.commands->start[command->id](core, session, NULL, call,
							 (struct hs_bytes){NULL, 0});
		return;
	}
	switch (command->place) {
	case HS_PLACE_PARTITION:
	case HS_PLACE_ANY:
		/* Any partition will do. Do not insist on a slot that may have no server. */
		if (command->place == HS_PLACE_ANY && slots == HS_CALL_SLOTS_NONE)
			slot = HS_SLOT_NONE;
		run_partition(core, session, call, slot);
		break;
	case HS_PLACE_SPLIT:
		if (slots == HS_CALL_SLOTS_ONE || core->world.op_scope == HS_OP_SCOPE_ALL) {
			run_partition(core, session, call, slot);
		} else {
			timing_begin(core, command);
			hs_fanout_split(core, session, call);
		}
		break;
	case HS_PLACE_ALL:
	case HS_PLACE_WORKERS:
		timing_begin(core, command);
		hs_fanout_all(core, session, NULL, call, (struct hs_bytes){NULL, 0});
		break;
	case HS_PLACE_CURSOR:
		timing_begin(core, command);
		hs_fanout_cursor(core, session, NULL, call);
		break;
	case HS_PLACE_SLOT:
		run_slot(core, session, call);
		break;
	case HS_PLACE_HOST:
		hs_dispatch_host(core, session, NULL, call);
		break;
	case HS_PLACE_CORE:
		run_local(core, session, call);
		break;
	case HS_PLACE_PARENT: /* without a subcommand: COMMAND, or a server's container */
		if (command->id < HS_CMD_IDS)
			run_local(core, session, call);
		else
			run_partition(core, session, call, slot);
		break;
	case HS_PLACE_REFUSED:
		hs_check(false); /* dispatch has refused it */
	}
}

static void queue_in_multi(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call)
{
	struct answer answer;

	answer_begin(core, session, call->command, &answer);
	hs_multi_queue(core, session, call, &answer.reply);
	answer_end(core, session, &answer);
}

/* The first words of an HTTP request. A web page can make a browser send one here, with commands in its body.
 * As Redis does, heatsink closes the connection without a reply. */
static bool speaks_http(struct hs_bytes name)
{
	return hs_bytes_is_word(name, "post") || hs_bytes_is_word(name, "host:");
}

static void cut_off_browser(struct hs_core *core, struct hs_session *session)
{
	hs_log(core->world.log, HS_LOG_WARN,
	       "client %llu at %s cut off: it speaks HTTP, perhaps a web page that wants to write "
	       "here",
	       (unsigned long long)session->id, session->address);
	session->cut = true;
	hs_session_close(core, session);
}

static void reject_subscribed(struct hs_core *core, struct hs_session *session,
			      const struct hs_command *command)
{
	char text[256];

	snprintf(text, sizeof text,
		 "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / "
		 "RESET are allowed in this context",
		 command->name);
	hs_dispatch_reject(core, session, command, text);
}

/* Whether the command writes to all slots (FLUSHALL). In front of a Cluster order is kept slot by slot. A read
 * that is sent again, because a connection was lost or a slot moved, must not see its client's later flush. */
static bool writes_all_slots(const struct hs_core *core, const struct hs_call *call)
{
	return core->world.op_scope == HS_OP_SCOPE_SLOT && call->command->place == HS_PLACE_ALL &&
	       (call->command->flags & HS_CMD_WRITE);
}

/* Whether the command must be the only one of its client in flight: its row says so (`alone`); it changes the
 * protocol of push messages; it needs a server connection of its own; or it may change the connection that all
 * clients share. */
static bool must_be_alone(const struct hs_core *core, const struct hs_session *session,
			  const struct hs_call *call)
{
	if (call->command->alone)
		return !session->multi;
	if (call->command->id == HS_CMD_ID_EXEC && hs_multi_would_be_deferred(session))
		return true;
	if (session->subscriptions > 0 &&
	    (call->command->id == HS_CMD_ID_HELLO || call->command->id == HS_CMD_ID_RESET))
		return true;
	if (!core->world.shared_connections)
		return false;
	switch (call->command->id) {
	case HS_CMD_ID_EXEC:
		return session->watches != NULL;
	case HS_CMD_ID_WATCH:
	case HS_CMD_ID_HELLO: /* RESP2 and RESP3 replies come on different connections */
	case HS_CMD_ID_RESET:
		return true;
	default:
		return !session->multi && (hs_call_blocks(call) || writes_all_slots(core, call));
	}
}

bool hs_dispatch_is_blocked(const struct hs_core *core, const struct hs_session *session)
{
	const struct hs_request *request;

	if (!core->world.shared_connections || !session->alone)
		return false;
	request = hs_session_last_request(session);
	return request && request->blocks;
}

void hs_dispatch_cancel(struct hs_core *core, struct hs_session *session)
{
	struct hs_request *request;

	if (!hs_dispatch_is_blocked(core, session))
		return;
	request = hs_session_last_request(session);
	for (uint32_t i = 0; i < request->parts_count; i++) {
		if (!request->parts[i].answered)
			core->world.calls->cancel(core->world.context, &request->parts[i].op);
	}
}

bool hs_dispatch_unblock(struct hs_core *core, struct hs_session *session, bool error)
{
	struct hs_request *request;
	bool waited = false;

	if (!hs_dispatch_is_blocked(core, session))
		return false;
	request = hs_session_last_request(session);
	for (uint32_t i = 0; i < request->parts_count; i++) {
		struct hs_part *part = &request->parts[i];

		if (!part->answered &&
		    core->world.calls->unblock(core->world.context, &part->op, error))
			waited = true;
	}
	return waited;
}

/* The row of a command: heatsink's own, or learned from a server. NULL: unknown, and the client has its error. */
static const struct hs_command *find_command(struct hs_core *core, struct hs_session *session,
					     const struct hs_call *call)
{
	const struct hs_command *command = hs_command_find(call->argv[0]), *parent;

	if (!command)
		command = hs_learned_find(core->learned, call->argv[0]);
	if (command && command->place != HS_PLACE_PARENT && !(command->flags & HS_CMD_CONTAINER))
		return command;
	command = hs_learned_resolve(core->learned, call->argc, call->argv, &parent);
	if (command)
		return command;
	if (!parent && speaks_http(call->argv[0]))
		cut_off_browser(core, session);
	else
		reject_unknown(core, session, call, parent);
	return NULL;
}

/* False: the user's rules forbid it, and the client has its error. */
static bool user_may_run(struct hs_core *core, struct hs_session *session,
			 const struct hs_call *call)
{
	char text[512];
	const char *refused = hs_users_refuse(core, session, call, text, sizeof text);

	if (refused)
		hs_dispatch_reject(core, session, call->command, refused);
	return !refused;
}

/* True: refused, and the client has its error: a key has a reserved name, or the keys lie in several slots.
 * Only split commands may name several slots, and not inside a transaction; with HS_OP_SCOPE_ALL (a single
 * server) every command may. */
static bool refuse_keys(struct hs_core *core, struct hs_session *session, struct hs_call *call)
{
	const struct hs_command *command = call->command;

	if (hs_core_reserves(core) && hs_call_is_reserved(call)) {
		hs_dispatch_reject(core, session, command,
				   "ERR keys that begin with " HS_RESERVED_PREFIX
				   " are heatsink's own: copies of hot values");
		return true;
	}
	if (core->world.op_scope == HS_OP_SCOPE_ALL || hs_keys_single(command, call->argc) > 0 ||
	    (command->place == HS_PLACE_SPLIT && !session->multi) ||
	    hs_call_slots(call) != HS_CALL_SLOTS_SEVERAL)
		return false;
	hs_dispatch_reject(core, session, command,
			   "CROSSSLOT Keys in request don't hash to the same slot");
	return true;
}

/* The remaining checks. True: refused, and the client has its error. */
static bool refuse(struct hs_core *core, struct hs_session *session, struct hs_call *call)
{
	const struct hs_command *command = call->command;

	if (session->multi && (command->flags & HS_CMD_NO_MULTI)) {
		hs_dispatch_reject(core, session, command,
				   "ERR Command not allowed inside a transaction");
		return true;
	}
	if (session->limits && !user_may_run(core, session, call))
		return true;
	if (refuse_keys(core, session, call))
		return true;
	if (session->subscribed && session->resp == 2 && !command->runs_subscribed) {
		reject_subscribed(core, session, command);
		return true;
	}
	return false;
}

/* False: the session is held. `from`: the stage that held the command the last time; or 0. */
static bool dispatch(struct hs_core *core, struct hs_session *session, struct hs_call *call,
		     uint32_t from)
{
	const struct hs_command *command = find_command(core, session, call);

	if (!command)
		return true;
	call->command = command;
	session->last_command = command;
	if (!hs_command_arity_fits(command, call->argc)) {
		reject_arity(core, session, command);
		return true;
	}
	if (!hs_users_is_admitted(core, session) && !(command->flags & HS_CMD_NO_AUTH)) {
		hs_dispatch_reject(core, session, command, "NOAUTH Authentication required.");
		return true;
	}
	if (command->place == HS_PLACE_REFUSED) {
		reject_refused(core, session, command);
		return true;
	}
	session->alone = must_be_alone(core, session, call);
	if (session->alone && session->inflight > 0)
		return hs_hold(core, session, HS_HOLD_IN_FLIGHT);
	if (refuse(core, session, call))
		return true;
	if (core->pause.mode != HS_PAUSE_NONE && hs_pause_holds(core, session, call))
		return false;
	if (hs_command_is_pubsub(command) && !session->multi &&
	    core->world.commands->waits(core, session, call))
		return hs_hold(core, session, HS_HOLD_IN_FLIGHT);
	if (session->multi && !command->runs_inside_multi) {
		queue_in_multi(core, session, call);
		return true;
	}
	call->admitted = true;
	if (session->multi && command->id == HS_CMD_ID_EXEC)
		hs_multi_close(session->multi);
	if (core->stages.want[HS_POINT_ADMIT] &&
	    (!session->multi || command->id == HS_CMD_ID_EXEC)) {
		enum hs_stage_result verdict = hs_stages_admit(core, session, call, from);

		if (verdict != HS_PASS)
			return verdict != HS_HOLD && verdict != HS_ALREADY_HELD;
	}
	if (hs_reply_budget_holds(core, session, call))
		return false;
	run(core, session, call);
	return true;
}

bool hs_dispatch(struct hs_core *core, struct hs_session *session, struct hs_call *call)
{
	enum hs_session_reply_mode before = session->reply_mode;
	uint32_t from = session->hold == HS_HOLD_STAGE ? session->hold_stage : 0;

	hs_hold_end(session);
	if (!dispatch(core, session, call, from)) {
		session->next_reply_bytes = 0;
		return false;
	}
	session->next_reply_bytes = 0;
	if (session->observers)
		hs_stages_handled(core, session, call);
	/* CLIENT REPLY SKIP silences exactly the next command. */
	if (before == HS_REPLY_SKIP && session->reply_mode == HS_REPLY_SKIP)
		session->reply_mode = HS_REPLY_ON;
	else if (session->reply_mode == HS_REPLY_SKIP_NEXT)
		session->reply_mode = HS_REPLY_SKIP;
	return true;
}

void hs_dispatch_timing_begin(struct hs_core *core)
{
	core->timing_start_us = core->now.mono_us;
	core->timed_count = 0;
}

void hs_dispatch_timing_end(struct hs_core *core)
{
	if (core->timed_count > 0)
		settle_timed(core);
}
