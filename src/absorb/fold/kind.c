/* Classifies a request for folding. A command that is not known to be foldable gets HS_FOLD_NOT and is sent to the
 * engine by itself, which costs one engine request and is always correct. */
#include "absorb/fold/fold.h"

#include "absorb/plain_set.h"
#include "base/hash.h"

static enum hs_fold_kind classify_add(struct hs_fold_member *member)
{
	enum hs_command_id id = member->command->id;
	bool down = id == HS_CMD_ID_DECR || id == HS_CMD_ID_DECRBY;

	if (id == HS_CMD_ID_INCR || id == HS_CMD_ID_DECR) {
		member->number = down ? -1 : 1;
		return member->argc == 2 ? HS_FOLD_ADD : HS_FOLD_NOT;
	}
	if (member->argc != 3 || !hs_num_parse_int(member->argv[2], &member->number))
		return HS_FOLD_NOT;
	if (!down)
		return HS_FOLD_ADD;
	/* -INT64_MIN does not fit in int64: the engine replies with the error. */
	if (member->number == INT64_MIN)
		return HS_FOLD_NOT;
	member->number = -member->number;
	return HS_FOLD_ADD;
}

static enum hs_fold_kind classify_set(struct hs_fold_member *member)
{
	return hs_plain_set(member->argc, member->argv, &member->number) ? HS_FOLD_SET
									 : HS_FOLD_NOT;
}

static bool has_word(const char *words, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = words; at && (at = strstr(at, word)); at += len)
		if ((at == words || at[-1] == ' ') && (at[len] == '\0' || at[len] == ' '))
			return true;
	return false;
}

/* Whether the command's reply depends on the key's data and the time alone. Redis 7 marks commands with a random
 * or unordered reply by the tip nondeterministic_output. Older servers send no tips, so `names` lists the commands
 * with that tip that every server has. */
static bool is_determined(const struct hs_command *command)
{
	static const char *const names[] = {
		"dump",	 "hrandfield",	"hscan",    "randomkey",   "scan",  "spop",
		"sscan", "srandmember", "xpending", "zrandmember", "zscan",
	};

	/* Redis gives some of these the tip because their reply depends on the time. Folding them is right all the
	 * same: all members of a batch are answered at one time. */
	switch ((int)command->id) {
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
	/* a module's command: its reply may depend on anything */
	return !strchr(command->name, '.');
}

static bool has_one_key(const struct hs_fold_member *member)
{
	size_t first, batch;

	switch (member->command->place) {
	case HS_PLACE_PARTITION:
		return hs_keys_single(member->command, member->argc) > 0;
	case HS_PLACE_SPLIT:
		return hs_command_keys(member->command, member->argc, &first, &batch) == 1;
	default:
		return false;
	}
}

static enum hs_fold_kind classify_read(const struct hs_fold_member *member)
{
	const struct hs_command *command = member->command;
	const unsigned never = HS_CMD_WRITE | HS_CMD_BLOCKING | HS_CMD_MOVABLEKEYS |
			       HS_CMD_EFFECT_UNKNOWN | HS_CMD_CONTAINER | HS_CMD_PUBSUB |
			       HS_CMD_ADMIN;

	if (!(command->flags & HS_CMD_READONLY) || command->flags & never)
		return HS_FOLD_NOT;
	/* Subcommands (OBJECT ENCODING, MEMORY USAGE, XINFO STREAM) report on how a key is stored, not on its
	 * data. A command with key_specs may name keys in places that has_one_key does not look at. */
	if (command->parent != HS_CMD_ID_NONE || command->key_specs)
		return HS_FOLD_NOT;
	if (!has_one_key(member) || !is_determined(command))
		return HS_FOLD_NOT;
	return HS_FOLD_READ;
}

/* The hash covers the arguments' lengths, so that "ab" "c" and "a" "bc" get different hashes. */
static uint64_t hash_of(const struct hs_fold_member *member)
{
	uint64_t hash = ((uint64_t)member->command->id << 8) + member->resp;

	for (size_t i = 1; i < member->argc; i++)
		hash = hs_hash(member->argv[i], hash + member->argv[i].len);
	return hash;
}

static enum hs_fold_kind kind_of(struct hs_fold_member *member)
{
	if (!hs_command_arity_fits(member->command, member->argc))
		return HS_FOLD_NOT;
	switch ((int)member->command->id) {
	case HS_CMD_ID_GET:
		return HS_FOLD_GET;
	case HS_CMD_ID_STRLEN:
		return HS_FOLD_STRLEN;
	case HS_CMD_ID_EXISTS:
		return member->argc == 2 ? HS_FOLD_EXISTS : HS_FOLD_NOT;
	case HS_CMD_ID_TTL:
		return HS_FOLD_TTL;
	case HS_CMD_ID_INCR:
	case HS_CMD_ID_DECR:
	case HS_CMD_ID_INCRBY:
	case HS_CMD_ID_DECRBY:
		return classify_add(member);
	case HS_CMD_ID_SET:
		return classify_set(member);
	default:
		return classify_read(member);
	}
}

enum hs_fold_kind hs_fold_classify(struct hs_fold_member *member)
{
	member->signature = 0;
	member->number = 0;
	member->kind = kind_of(member);
	if (member->kind >= HS_FOLD_GET && member->kind <= HS_FOLD_READ)
		member->signature = hash_of(member);
	return member->kind;
}
