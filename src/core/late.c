/* Commands of a transaction that run when it has committed: those about channels, and behind the
 * first of them everything that the core answers itself; all of that from the beginning, if it may
 * turn out that the transaction does not take place.
 *
 *     EXEC ── engine: all that is data ── committed ── SUBSCRIBE a ── PUBLISH a x ── PING ── reply
 *
 * Nobody hears a message before the data it speaks of is there, nor one of a transaction that lost;
 * and the messages that a client sends to itself stand in the reply where Redis puts them: in front
 * of the number that PUBLISH answers. What others send it meanwhile comes behind the reply.
 *
 * To an engine behind connections PUBLISH goes with the transaction; what is left to do here is to
 * correct the number of receivers.
 *
 * Such an EXEC is the only command of its client under way (core/step.c), and its own commands run
 * one by one, as requests whose reply is added to that of EXEC. */
#include "core/session.h"

#include "base/mem.h"
#include "wire/answer.h"

struct hs_late {
	struct hs_buf engine; /* its reply */
	struct hs_bytes rest; /* of it, element by element */
	struct hs_buf reply;  /* what becomes of it */
	struct hs_buf behind; /* messages of others meanwhile */
	size_t next;	      /* the command that is looked at next */
	bool begun;	      /* hs_late_is */
	bool looping,
		stepped; /* a command that is answered at once does not begin a loop of its own */
};

bool hs_late_is(const struct hs_command *command, bool *begun)
{
	*begun = *begun || hs_command_is_pubsub(command);
	return *begun && (hs_command_is_pubsub(command) || command->place == HS_PLACE_CORE);
}

bool hs_late_counted(const struct hs_core *core, const struct hs_command *command)
{
	return core->world.shared_connections &&
	       (command->id == HS_CMD_ID_PUBLISH || command->id == HS_CMD_ID_SPUBLISH);
}

struct hs_buf *hs_late_behind(struct hs_late *late)
{
	return &late->behind;
}

void hs_late_drop(struct hs_late **late)
{
	hs_buf_deinit(&(*late)->engine);
	hs_buf_deinit(&(*late)->reply);
	hs_buf_deinit(&(*late)->behind);
	hs_mem_free(late);
}

static void finish(struct hs_core *core, struct hs_request *exec)
{
	struct hs_session *session = exec->session;
	struct hs_buf behind = {0};

	hs_buf_swap(&exec->reply, &exec->late->reply);
	hs_buf_swap(&behind, &exec->late->behind);
	session->late = NULL;
	hs_step_finish(core, exec); /* it was the only one: its reply is out */
	if (!session->gone)
		hs_buf_append_bytes(&session->out, hs_buf_bytes(&behind));
	hs_buf_deinit(&behind);
}

/* False: it is under way. */
static bool run(struct hs_core *core, struct hs_request *exec,
		const struct hs_op_tx_command *command, struct hs_bytes element)
{
	struct hs_session *session = exec->session;
	struct hs_late *late = exec->late;
	struct hs_reply reply = {.out = &late->reply, .resp = session->resp};
	enum hs_command_id id = command->command->id;

	late->stepped = false;
	if (id == HS_CMD_ID_SSUBSCRIBE) {
		hs_reply_error(&reply, "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
		return true;
	}
	if (hs_pubsub_subscribes(command->command) || hs_pubsub_unsubscribes(command->command)) {
		hs_pubsub_run(core, session, exec, command->command, command->argc, command->argv);
	} else if (hs_command_is_pubsub(command->command)) {
		if (!hs_late_counted(core, command->command))
			element.len = 0;
		hs_publish_run(core, session, exec, command->command, command->argc, command->argv,
			       element);
	} else {
		size_t start = late->reply.len;

		hs_local_find(id)(core, session, command->command, command->argc, command->argv,
				  &reply);
		if (late->reply.len == start) /* every command has its element */
			hs_reply_ok(&reply);
		return true;
	}
	return late->stepped;
}

static void go_on(struct hs_core *core, struct hs_request *exec)
{
	const struct hs_op_tx *tx = exec->parts[0].op.tx;
	struct hs_late *late = exec->late;

	late->looping = true;
	while (late->next < tx->count) {
		const struct hs_op_tx_command *command = &tx->commands[late->next++];
		int64_t len = hs_answer_length(late->rest.data, late->rest.len);
		struct hs_bytes element = {late->rest.data, len > 0 ? (size_t)len : 0};

		late->rest.data += element.len;
		late->rest.len -= element.len;
		/* An error in its place: its user may no longer run it, or the server refused. */
		if (!hs_late_is(command->command, &late->begun) ||
		    (element.len > 0 && element.data[0] == '-')) {
			hs_buf_append_bytes(&late->reply, element);
		} else if (!run(core, exec, command, element)) {
			late->looping = false;
			return;
		}
	}
	finish(core, exec);
}

bool hs_late_begin(struct hs_core *core, struct hs_request *exec)
{
	struct hs_answer head;
	int64_t len;
	bool all;

	if (!exec->multi || !hs_multi_is_late(exec->multi, &all))
		return false;
	len = hs_answer_head(&head, exec->reply.data, exec->reply.len);
	if (len <= 0 || head.type != HS_ANSWER_ARRAY)
		return false; /* it did not take place */
	exec->late = hs_mem_zalloc(sizeof *exec->late);
	exec->late->begun = all;
	hs_buf_swap(&exec->late->engine, &exec->reply);
	hs_buf_append(&exec->late->reply, exec->late->engine.data, (size_t)len);
	exec->late->rest = (struct hs_bytes){exec->late->engine.data + len,
					     exec->late->engine.len - (size_t)len};
	exec->session->late = exec;
	go_on(core, exec);
	return true;
}

void hs_late_finished(struct hs_core *core, struct hs_request *request)
{
	struct hs_request *exec = request->exec;

	hs_buf_append_bytes(&exec->late->reply, hs_buf_bytes(&request->reply));
	hs_request_put(core, request);
	if (exec->late->looping)
		exec->late->stepped = true;
	else
		go_on(core, exec);
}
