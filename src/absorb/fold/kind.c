/* What a request is to folding. Whatever is not known to be foldable is not: it costs a request, and
 * no answer can be wrong. */
#include "absorb/fold/fold.h"

#include "absorb/plain_set.h"
#include "base/hash.h"

static enum hs_fold_kind classify_add(struct hs_fold_member *ask)
{
	enum hs_command_id id = ask->command->id;
	bool down = id == HS_CMD_ID_DECR || id == HS_CMD_ID_DECRBY;

	if (id == HS_CMD_ID_INCR || id == HS_CMD_ID_DECR) {
		ask->number = down ? -1 : 1;
		return ask->argc == 2 ? HS_FOLD_ADD : HS_FOLD_NOT;
	}
	if (ask->argc != 3 || !hs_num_parse_int(ask->argv[2], &ask->number))
		return HS_FOLD_NOT;
	if (!down)
		return HS_FOLD_ADD;
	if (ask->number == INT64_MIN) /* its negative is no number: an error of its own */
		return HS_FOLD_NOT;
	ask->number = -ask->number;
	return HS_FOLD_ADD;
}

static enum hs_fold_kind classify_set(struct hs_fold_member *ask)
{
	return hs_plain_set(ask->argc, ask->argv, &ask->number) ? HS_FOLD_SET : HS_FOLD_NOT;
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; at && (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' '))
			return true;
	return false;
}

/* Whether the answer follows from the data and the time alone. Redis says so with a tip; before Redis
 * 7 there were none, so those that any server has are known by name here. */
static bool is_determined(const struct hs_command *command)
{
	static const char *const names[] = {
		"dump",	 "hrandfield",	"hscan",    "randomkey",   "scan",  "spop",
		"sscan", "srandmember", "xpending", "zrandmember", "zscan",
	};

	switch ((int)command->id) { /* Redis's tip is about the time */
	case HS_CMD_ID_TTL:
	case HS_CMD_ID_PTTL:
	case HS_CMD_ID_EXPIRETIME:
	case HS_CMD_ID_PEXPIRETIME:
		return true;
	}
	if (has_word(command->tips, "nondeterministic_output"))
		return false;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(command->name, names[i]) == 0)
			return false;
	return !strchr(command->name, '.'); /* a module's own: nobody knows */
}

static bool has_one_key(const struct hs_fold_member *ask)
{
	size_t first, batch;

	switch (ask->command->place) {
	case HS_PLACE_PARTITION:
		return hs_keys_only(ask->command, ask->argc) > 0;
	case HS_PLACE_SPLIT:
		return hs_command_keys(ask->command, ask->argc, &first, &batch) == 1;
	default:
		return false;
	}
}

static enum hs_fold_kind classify_read(const struct hs_fold_member *ask)
{
	const struct hs_command *command = ask->command;
	const unsigned never = HS_CMD_WRITE | HS_CMD_BLOCKING | HS_CMD_MOVABLEKEYS | HS_CMD_UNSURE |
			       HS_CMD_CONTAINER | HS_CMD_PUBSUB | HS_CMD_ADMIN;

	if (!(command->flags & HS_CMD_READONLY) || command->flags & never)
		return HS_FOLD_NOT;
	/* A subcommand speaks about a key rather than of its data: OBJECT, MEMORY, XINFO. */
	if (command->parent != HS_CMD_ID_NONE || command->key_specs)
		return HS_FOLD_NOT;
	if (!has_one_key(ask) || !is_determined(command))
		return HS_FOLD_NOT;
	return HS_FOLD_READ;
}

/* Lengths are part of it, so that the same bytes cut elsewhere are something else. */
static uint64_t sign(const struct hs_fold_member *ask)
{
	uint64_t hash = ((uint64_t)ask->command->id << 8) + ask->resp;

	for (size_t i = 1; i < ask->argc; i++)
		hash = hs_hash(ask->argv[i], hash + ask->argv[i].len);
	return hash;
}

static enum hs_fold_kind kind_of(struct hs_fold_member *ask)
{
	if (!hs_command_arity_fits(ask->command, ask->argc))
		return HS_FOLD_NOT;
	switch ((int)ask->command->id) {
	case HS_CMD_ID_GET:
		return HS_FOLD_GET;
	case HS_CMD_ID_STRLEN:
		return HS_FOLD_STRLEN;
	case HS_CMD_ID_EXISTS:
		return ask->argc == 2 ? HS_FOLD_EXISTS : HS_FOLD_NOT;
	case HS_CMD_ID_TTL:
		return HS_FOLD_TTL;
	case HS_CMD_ID_INCR:
	case HS_CMD_ID_DECR:
	case HS_CMD_ID_INCRBY:
	case HS_CMD_ID_DECRBY:
		return classify_add(ask);
	case HS_CMD_ID_SET:
		return classify_set(ask);
	default:
		return classify_read(ask);
	}
}

enum hs_fold_kind hs_fold_classify(struct hs_fold_member *ask)
{
	ask->signature = 0;
	ask->number = 0;
	ask->kind = kind_of(ask);
	if (ask->kind >= HS_FOLD_GET && ask->kind <= HS_FOLD_READ)
		ask->signature = sign(ask);
	return ask->kind;
}
