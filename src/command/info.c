/* One command in COMMAND INFO's form, for clients that route by key: ten elements (commands learned
 * from an older server: as many as the server sent; Redis 6 sends seven). */
#include "command/describe.h"

/* heatsink's own flags have no word. */
const struct hs_flag_word hs_command_flag_words[] = {
	{HS_CMD_WRITE, "write"},
	{HS_CMD_READONLY, "readonly"},
	{HS_CMD_DENYOOM, "denyoom"},
	{HS_CMD_ADMIN, "admin"},
	{HS_CMD_PUBSUB, "pubsub"},
	{HS_CMD_NOSCRIPT, "noscript"},
	{HS_CMD_LOADING, "loading"},
	{HS_CMD_STALE, "stale"},
	{HS_CMD_SKIP_MONITOR, "skip_monitor"},
	{HS_CMD_SKIP_SLOWLOG, "skip_slowlog"},
	{HS_CMD_FAST, "fast"},
	{HS_CMD_NO_AUTH, "no_auth"},
	{HS_CMD_NO_MANDATORY_KEYS, "no_mandatory_keys"},
	{HS_CMD_NO_ASYNC_LOADING, "no_async_loading"},
	{HS_CMD_NO_MULTI, "no_multi"},
	{HS_CMD_MOVABLEKEYS, "movablekeys"},
	{HS_CMD_ALLOW_BUSY, "allow_busy"},
	{HS_CMD_BLOCKING, "blocking"},
	{0, NULL},
};

void hs_command_reply_flags(struct hs_reply *reply, const struct hs_flag_word *words,
			    unsigned flags)
{
	size_t count = 0;

	for (size_t i = 0; words[i].word; i++)
		count += (flags & words[i].flag) != 0;
	hs_reply_set(reply, count);
	for (size_t i = 0; words[i].word; i++)
		if (flags & words[i].flag)
			hs_reply_status(reply, words[i].word);
}

/* A set with the words of a text, as status replies or as bulk strings. */
static void reply_words(struct hs_reply *reply, struct hs_bytes text, bool as_status)
{
	struct hs_bytes rest = text;
	char status[32];
	size_t count = 0;

	while (hs_command_word(&rest).len > 0)
		count++;
	hs_reply_set(reply, count);
	rest = text;
	for (size_t i = 0; i < count; i++) {
		struct hs_bytes word = hs_command_word(&rest);

		if (!as_status) {
			hs_reply_bulk(reply, word);
			continue;
		}
		hs_check(word.len < sizeof(status));
		memcpy(status, word.data, word.len);
		status[word.len] = '\0';
		hs_reply_status(reply, status);
	}
}

/* Keys at first, first + step …; `last` counts from the first one, or from the end if negative. */
static void reply_key_spec(struct hs_reply *reply, struct hs_bytes access, int first, int last,
			   int step)
{
	hs_reply_map(reply, 3);
	hs_reply_bulk_text(reply, "flags");
	reply_words(reply, access, true);

	hs_reply_bulk_text(reply, "begin_search");
	hs_reply_map(reply, 2);
	hs_reply_pair_text(reply, "type", "index");
	hs_reply_bulk_text(reply, "spec");
	hs_reply_map(reply, 1);
	hs_reply_pair_int(reply, "index", first);

	hs_reply_bulk_text(reply, "find_keys");
	hs_reply_map(reply, 2);
	hs_reply_pair_text(reply, "type", "range");
	hs_reply_bulk_text(reply, "spec");
	hs_reply_map(reply, 3);
	hs_reply_pair_int(reply, "lastkey", last);
	hs_reply_pair_int(reply, "keystep", step);
	hs_reply_pair_int(reply, "limit", 0);
}

static void reply_key_specs(struct hs_reply *reply, const struct hs_command *command)
{
	int first = command->key_first;
	int last = command->key_last;
	struct hs_bytes access, others;

	if (first == 0) {
		hs_reply_set(reply, 0);
		return;
	}
	others = hs_bytes_of(command->key_access);
	access = hs_bytes_cut(&others, ',');
	if (others.len == 0) {
		hs_reply_set(reply, 1);
		reply_key_spec(reply, access, first, last < 0 ? last : last - first,
			       command->key_step);
		return;
	}
	hs_reply_set(reply, 2);
	reply_key_spec(reply, access, first, 0, 1);
	reply_key_spec(reply, others, first + 1, 0, 1);
}

static void reply_own(struct hs_reply *reply, const struct hs_command *command)
{
	hs_reply_array(reply, 10);
	hs_reply_bulk_text(reply, command->name);
	hs_reply_int(reply, command->arity);
	hs_command_reply_flags(reply, hs_command_flag_words, command->flags);
	hs_reply_int(reply, command->key_first);
	hs_reply_int(reply, command->key_last);
	hs_reply_int(reply, command->key_step);
	reply_words(reply, hs_bytes_of(command->categories), true);
	reply_words(reply, hs_bytes_of(command->tips ? command->tips : ""), false);
	reply_key_specs(reply, command);
}

void hs_command_reply_info(struct hs_reply *reply, const struct hs_command *command,
			   const struct hs_learned *learned)
{
	struct hs_command_walk walk = {learned, command, 0};
	size_t subcommands = hs_command_walk_count(&walk);
	const struct hs_command *sub;

	if (command->id < HS_CMD_IDS)
		reply_own(reply, command);
	else if (!hs_learned_reply_raw_entry(reply, command))
		return;
	if (subcommands == 0) {
		hs_reply_set(reply, 0); /* as in Redis: an empty list is a set, others are arrays */
		return;
	}
	hs_reply_array(reply, subcommands);
	while ((sub = hs_command_walk_next(&walk)))
		hs_command_reply_info(reply, sub, learned);
}
