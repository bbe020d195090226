/* From a command's identifier to the function that runs it, and what all of them need: error
 * replies and arguments. */
#include "base/num.h"
#include "base/slot.h"
#include "command/texts.h"
#include "keyspace/internal.h"

static hs_run_function *const functions[HS_CMD_IDS] = {
	/* strings.c */
	[HS_CMD_ID_GET] = hs_run_get,
	[HS_CMD_ID_SET] = hs_run_set,
	[HS_CMD_ID_SETNX] = hs_run_setnx,
	[HS_CMD_ID_SETEX] = hs_run_setex,
	[HS_CMD_ID_PSETEX] = hs_run_setex,
	[HS_CMD_ID_GETSET] = hs_run_getset,
	[HS_CMD_ID_GETDEL] = hs_run_getdel,
	[HS_CMD_ID_GETEX] = hs_run_getex,
	[HS_CMD_ID_MGET] = hs_run_mget,
	[HS_CMD_ID_MSET] = hs_run_mset,
	[HS_CMD_ID_MSETNX] = hs_run_msetnx,
	/* counters.c */
	[HS_CMD_ID_INCR] = hs_run_incr,
	[HS_CMD_ID_DECR] = hs_run_incr,
	[HS_CMD_ID_INCRBY] = hs_run_incrby,
	[HS_CMD_ID_DECRBY] = hs_run_incrby,
	[HS_CMD_ID_INCRBYFLOAT] = hs_run_incrbyfloat,
	/* ranges.c */
	[HS_CMD_ID_APPEND] = hs_run_append,
	[HS_CMD_ID_STRLEN] = hs_run_strlen,
	[HS_CMD_ID_GETRANGE] = hs_run_getrange,
	[HS_CMD_ID_SUBSTR] = hs_run_getrange,
	[HS_CMD_ID_SETRANGE] = hs_run_setrange,
	/* bits.c */
	[HS_CMD_ID_GETBIT] = hs_run_getbit,
	[HS_CMD_ID_SETBIT] = hs_run_setbit,
	[HS_CMD_ID_BITCOUNT] = hs_run_bitcount,
	[HS_CMD_ID_BITPOS] = hs_run_bitpos,
	/* lcs.c */
	[HS_CMD_ID_LCS] = hs_run_lcs,
	/* keys.c */
	[HS_CMD_ID_DEL] = hs_run_del,
	[HS_CMD_ID_UNLINK] = hs_run_del,
	[HS_CMD_ID_EXISTS] = hs_run_exists,
	[HS_CMD_ID_TOUCH] = hs_run_exists,
	[HS_CMD_ID_TYPE] = hs_run_type,
	[HS_CMD_ID_RENAME] = hs_run_rename,
	[HS_CMD_ID_RENAMENX] = hs_run_rename,
	[HS_CMD_ID_COPY] = hs_run_copy,
	/* object.c */
	[HS_CMD_ID_OBJECT_ENCODING] = hs_run_object_encoding,
	[HS_CMD_ID_OBJECT_FREQ] = hs_run_object_freq,
	[HS_CMD_ID_OBJECT_HELP] = hs_run_object_help,
	[HS_CMD_ID_OBJECT_IDLETIME] = hs_run_object_idletime,
	[HS_CMD_ID_OBJECT_REFCOUNT] = hs_run_object_refcount,
	/* expire.c */
	[HS_CMD_ID_EXPIRE] = hs_run_expire,
	[HS_CMD_ID_PEXPIRE] = hs_run_expire,
	[HS_CMD_ID_EXPIREAT] = hs_run_expire,
	[HS_CMD_ID_PEXPIREAT] = hs_run_expire,
	[HS_CMD_ID_TTL] = hs_run_ttl,
	[HS_CMD_ID_PTTL] = hs_run_ttl,
	[HS_CMD_ID_EXPIRETIME] = hs_run_ttl,
	[HS_CMD_ID_PEXPIRETIME] = hs_run_ttl,
	[HS_CMD_ID_PERSIST] = hs_run_persist,
	/* scan.c */
	[HS_CMD_ID_CLUSTER_COUNTKEYSINSLOT] = hs_run_countkeysinslot,
	[HS_CMD_ID_CLUSTER_GETKEYSINSLOT] = hs_run_getkeysinslot,
	[HS_CMD_ID_KEYS] = hs_run_keys,
	[HS_CMD_ID_SCAN] = hs_run_scan,
	[HS_CMD_ID_RANDOMKEY] = hs_run_randomkey,
	[HS_CMD_ID_DBSIZE] = hs_run_dbsize,
	[HS_CMD_ID_FLUSHALL] = hs_run_flush,
	[HS_CMD_ID_FLUSHDB] = hs_run_flush,
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
