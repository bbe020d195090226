/* Finds the function of a command by its identifier and runs it; also error replies and argument
 * parsing for all commands. */
#include "base/num.h"
#include "base/slot.h"
#include "command/texts.h"
#include "keyspace/internal.h"

static hs_run_function *const functions[HS_CMD_IDS] = {
#define ENGINE(function) function
#define ROW(identifier, function, ...) [HS_CMD_ID_##identifier] = function,
#include "command/rows.def"
};

int hs_keyspace_run(struct hs_keyspace *ks, const struct hs_command *command, uint16_t slot,
		    size_t argc, const struct hs_bytes *argv, struct hs_reply *reply)
{
	struct hs_run run = {
		.ks = ks,
		.command = command,
		.argc = argc,
		.argv = argv,
		.reply = reply,
		.reply_start = reply->out->len,
		.slot = slot,
	};

	hs_check(functions[command->id]);
	hs_check(hs_command_arity_fits(command, argc));

	int err = functions[command->id](&run);

	if (__builtin_expect(err < 0, 0)) {
		reply->out->len = run.reply_start;
		return err;
	}
	return 0;
}

int hs_run_fail(struct hs_run *run, const char *text)
{
	run->reply->out->len = run->reply_start;
	hs_reply_error(run->reply, text);
	return HS_ANSWERED;
}

int hs_run_fail_syntax(struct hs_run *run)
{
	return hs_run_fail(run, "ERR syntax error");
}

int hs_run_fail_arity(struct hs_run *run)
{
	hs_reply_errorf(run->reply, "ERR wrong number of arguments for '%s' command",
			run->command->name);
	return HS_ANSWERED;
}

int hs_run_fail_expire(struct hs_run *run)
{
	hs_reply_errorf(run->reply, "ERR invalid expire time in '%s' command", run->command->name);
	return HS_ANSWERED;
}

int hs_run_fail_type(struct hs_run *run)
{
	return hs_run_fail(run,
			   "WRONGTYPE Operation against a key holding the wrong kind of value");
}

int hs_run_integer(struct hs_run *run, size_t index, const char *error, int64_t *value)
{
	if (hs_num_parse_int(run->argv[index], value))
		return 0;
	return hs_run_fail(run, error ? error : HS_TEXT_NOT_INTEGER);
}

uint16_t hs_run_slot(const struct hs_run *run, struct hs_bytes key)
{
	return run->command->place == HS_PLACE_SPLIT ? hs_slot_of(key) : run->slot;
}
