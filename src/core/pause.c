/* CLIENT PAUSE: commands of clients wait until its time is over or CLIENT UNPAUSE comes. Operations already
 * sent, or taken by a stage, continue. Every worker keeps the pause for its own sessions; the client that sent
 * CLIENT PAUSE has its reply when all workers have set it.
 *
 * A held command stays unread in its session's input, and the driver stops reading from the session. So a pause
 * costs as much memory as incomplete requests do. */
#include "core/pause.h"
#include "core/hold.h"
#include "core/multi.h"
#include "core/state.h"

/* A second pause during a pause: the stricter mode until the later end, as in Redis. */
void hs_pause_begin(struct hs_core *core, enum hs_pause_mode mode, uint64_t until_us)
{
	struct hs_pause *pause = &core->pause;

	if (pause->mode != HS_PAUSE_NONE && pause->until_us <= core->now.mono_us)
		hs_pause_end(core);
	if (until_us <= core->now.mono_us)
		return;
	if (pause->mode < mode)
		pause->mode = mode;
	if (pause->until_us < until_us)
		pause->until_us = until_us;
}

void hs_pause_end(struct hs_core *core)
{
	core->pause.mode = HS_PAUSE_NONE;
	core->pause.until_us = 0;
	hs_list_each_safe(struct hs_session, session, &core->sessions, all) {
		if (core->pause.sessions == 0)
			break;
		if (session->hold != HS_HOLD_PAUSE)
			continue;
		hs_pause_release(core, session);
		hs_core_resume(core, session);
	}
}

void hs_pause_release(struct hs_core *core, struct hs_session *session)
{
	if (session->hold != HS_HOLD_PAUSE)
		return;
	hs_hold_end(session);
	core->pause.sessions--;
	hs_counter_sub(&core->stats.blocked, 1);
}

/* A module's command whose row has neither the read nor the write flag may write (law 8: an unknown command
 * counts as a write). A server's own command without these flags (SCRIPT EXISTS) has no keys, or counts as a
 * write already (command/learned_row.c). */
bool hs_pause_is_write(const struct hs_command *command)
{
	return (command->flags & (HS_CMD_WRITE | HS_CMD_MAY_REPLICATE)) ||
	       ((unsigned)command->id >= HS_CMD_IDS && !(command->flags & HS_CMD_READONLY) &&
		strchr(command->name, '.'));
}

/* Whether a script's first line declares that it does not write: "#!lua flags=no-writes,allow-oom". */
static bool says_no_writes(struct hs_bytes script)
{
	static const struct hs_bytes engine = HS_LIT("#!lua"), list = HS_LIT("flags=");
	struct hs_bytes line, word, flag;

	if (script.len == 0) /* unknown script: it may write */
		return false;
	line = hs_bytes_cut(&script, '\n');
	if (!hs_bytes_equal(hs_bytes_cut(&line, ' '), engine))
		return false;
	while (line.len > 0) {
		word = hs_bytes_cut(&line, ' ');
		if (!hs_bytes_begins(word, list))
			continue;
		word.data += list.len;
		word.len -= list.len;
		while (word.len > 0) {
			flag = hs_bytes_cut(&word, ',');
			if (hs_bytes_equal(flag, HS_LIT("no-writes")))
				return true;
		}
	}
	return false;
}

/* EVAL and EVALSHA of a script that declares no-writes. What a function (FCALL) declares is not known. */
static bool is_reading_script(const struct hs_core *core, const struct hs_call *call)
{
	struct hs_bytes script;

	if ((unsigned)call->command->id < HS_CMD_IDS || call->argc < 3)
		return false;
	if (strcmp(call->command->name, "eval") == 0)
		return says_no_writes(call->argv[1]);
	if (strcmp(call->command->name, "evalsha") != 0 || !core->world.calls->script)
		return false;
	script = core->world.calls->script(core->world.context, call->argv[1]);
	return says_no_writes(script);
}

static bool may_write(const struct hs_core *core, const struct hs_session *session,
		      const struct hs_call *call)
{
	/* As in Redis, a transaction is a write if a queued command is one by its row, whatever its script
	 * declares. */
	if (call->command->id == HS_CMD_ID_EXEC)
		return session->multi && hs_multi_writes(session->multi);
	return hs_pause_is_write(call->command) && !is_reading_script(core, call);
}

bool hs_pause_holds(struct hs_core *core, struct hs_session *session, const struct hs_call *call)
{
	struct hs_pause *pause = &core->pause;

	if (pause->until_us <= core->now.mono_us || call->command->id == HS_CMD_ID_QUIT)
		return false;
	if (pause->mode == HS_PAUSE_WRITES && !may_write(core, session, call))
		return false;
	hs_hold(core, session, HS_HOLD_PAUSE);
	pause->sessions++;
	hs_counter_add(&core->stats.blocked, 1);
	return true;
}
