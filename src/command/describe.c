/* COMMAND and its subcommands, in the form of Redis 7.0. */
#include "command/describe.h"

#include "base/glob.h"
#include "base/words.h"

/* Is a row listed? Not listed are refused commands, rows derived for a server that does not know
 * them, and own rows that a server's row replaces (HS_CMD_UNTIL_LEARNED). */
static bool is_shown(const struct hs_learned *learned, const struct hs_command *command)
{
	size_t elements;

	if (command->id >= HS_CMD_IDS) {
		hs_learned_raw_entry(command, &elements);
		return elements > 0 && !command->refused;
	}
	return !(command->flags & HS_CMD_UNTIL_LEARNED) ||
	       !hs_learned_sub(learned, hs_command_by_id(command->parent),
			       hs_bytes_of(strchr(command->name, '|') + 1));
}

static bool is_below(const struct hs_command *command, const struct hs_command *parent)
{
	if (!parent)
		return command->parent == HS_CMD_ID_NONE;
	return command->parent == parent->id && hs_command_names_sub(command->name, parent->name);
}

const struct hs_command *hs_command_walk_next(struct hs_command_walk *walk)
{
	const struct hs_command *command;

	if (walk->parent && walk->parent->place != HS_PLACE_PARENT)
		return NULL;
	while ((command = hs_learned_row_at(walk->learned, walk->next))) {
		walk->next++;
		if (is_below(command, walk->parent) && is_shown(walk->learned, command))
			return command;
	}
	return NULL;
}

size_t hs_command_walk_count(const struct hs_command_walk *walk)
{
	struct hs_command_walk rest = *walk;
	size_t count = 0;

	while (hs_command_walk_next(&rest))
		count++;
	return count;
}

struct hs_bytes hs_command_word(struct hs_bytes *rest)
{
	struct hs_bytes word = {"", 0};

	while (rest->len > 0 && word.len == 0)
		word = hs_bytes_cut(rest, ' ');
	return word;
}

/* Finds a command by its full name: "get", "client|id". NULL for one that is not listed. */
static const struct hs_command *find_full(const struct hs_learned *learned, struct hs_bytes name)
{
	struct hs_bytes sub = name, words[2];
	const struct hs_command *command, *parent;
	bool bar;

	words[0] = hs_bytes_cut(&sub, '|');
	words[1] = sub;
	bar = words[0].len < name.len;
	command = hs_learned_resolve(learned, bar ? 2 : 1, words, &parent);
	if (!command || !is_shown(learned, command) || (bar && command->parent == HS_CMD_ID_NONE))
		return NULL;
	return command;
}

/* COMMAND INFO, and COMMAND alone: without names, all commands. */
void hs_describe_info(struct hs_reply *reply, const struct hs_learned *learned, size_t argc,
		      const struct hs_bytes *argv)
{
	struct hs_command_walk walk = {learned, NULL, 0};
	size_t names = argc > 2 ? argc - 2 : 0;
	const struct hs_command *command;

	if (names == 0) {
		hs_reply_array(reply, hs_command_walk_count(&walk));
		while ((command = hs_command_walk_next(&walk)))
			hs_command_reply_info(reply, command, learned);
		return;
	}
	hs_reply_array(reply, names);
	for (size_t i = 0; i < names; i++) {
		command = find_full(learned, argv[i + 2]);
		if (command)
			hs_command_reply_info(reply, command, learned);
		else
			hs_reply_null(reply);
	}
}

void hs_describe_count(struct hs_reply *reply, const struct hs_learned *learned, size_t argc,
		       const struct hs_bytes *argv)
{
	struct hs_command_walk whole = {learned, NULL, 0};

	(void)argc, (void)argv;
	hs_reply_int(reply, (int64_t)hs_command_walk_count(&whole));
}

static void reply_named_docs(struct hs_reply *reply, const struct hs_learned *learned,
			     const struct hs_command *command)
{
	hs_reply_bulk_text(reply, command->name);
	hs_command_reply_docs(reply, command, learned);
}

/* Unlike INFO, DOCS leaves out the names it does not know. */
void hs_describe_docs(struct hs_reply *reply, const struct hs_learned *learned, size_t argc,
		      const struct hs_bytes *argv)
{
	struct hs_command_walk walk = {learned, NULL, 0};
	const struct hs_command *command;
	size_t known = 0;

	if (argc == 2) {
		hs_reply_map(reply, hs_command_walk_count(&walk));
		while ((command = hs_command_walk_next(&walk)))
			reply_named_docs(reply, learned, command);
		return;
	}
	for (size_t i = 2; i < argc; i++)
		if (find_full(learned, argv[i]))
			known++;
	hs_reply_map(reply, known);
	for (size_t i = 2; i < argc; i++) {
		command = find_full(learned, argv[i]);
		if (command)
			reply_named_docs(reply, learned, command);
	}
}

enum list_filter { LIST_MODULE, LIST_ACLCAT, LIST_PATTERN, LIST_ALL };
static const char *const filter_words[] = {"module", "aclcat", "pattern", NULL};

/* `wanted` is a category without its "@". */
static bool has_category(const struct hs_command *command, struct hs_bytes wanted)
{
	struct hs_bytes rest = hs_bytes_of(command->categories);
	struct hs_bytes word;
	char category[64];

	for (word = hs_command_word(&rest); word.len > 0; word = hs_command_word(&rest)) {
		if (word.len > sizeof category) /* a server may send a longer word */
			continue;
		memcpy(category, word.data + 1, word.len - 1);
		category[word.len - 1] = '\0';
		if (hs_bytes_is_word(wanted, category))
			return true;
	}
	return false;
}

static bool listed(const struct hs_learned *learned, const struct hs_command *command, int filter,
		   struct hs_bytes value)
{
	if (!is_shown(learned, command))
		return false;
	switch ((enum list_filter)filter) {
	case LIST_ALL:
		return true;
	case LIST_MODULE: /* servers do not say which command comes from a module */
		return false;
	case LIST_ACLCAT:
		return has_category(command, value);
	case LIST_PATTERN:
		return hs_glob_match(value, hs_bytes_of(command->name), true);
	}
	return false;
}

void hs_describe_list(struct hs_reply *reply, const struct hs_learned *learned, size_t argc,
		      const struct hs_bytes *argv)
{
	int filter = LIST_ALL;
	struct hs_bytes value = {NULL, 0};
	const struct hs_command *command;
	size_t count = 0;

	if (argc > 2) {
		filter = argc == 5 && hs_bytes_is_word(argv[2], "filterby")
				 ? hs_words_index(filter_words, argv[3])
				 : -1;
		if (filter < 0) {
			hs_reply_error(reply, "ERR syntax error");
			return;
		}
		value = argv[4];
	}
	for (size_t i = 0; (command = hs_learned_row_at(learned, i)); i++)
		if (listed(learned, command, filter, value))
			count++;
	hs_reply_array(reply, count);
	for (size_t i = 0; (command = hs_learned_row_at(learned, i)); i++)
		if (listed(learned, command, filter, value))
			hs_reply_bulk_text(reply, command->name);
}

static void reply_key(struct hs_reply *reply, const struct hs_key_walk *walk, bool with_flags)
{
	if (with_flags)
		hs_reply_array(reply, 2);
	hs_reply_bulk(reply, walk->argv[walk->at]);
	if (with_flags)
		hs_command_reply_flags(reply, hs_key_flag_words, hs_keys_flags(walk));
}

/* COMMAND GETKEYS and COMMAND GETKEYSANDFLAGS. */
static void reply_keys(struct hs_reply *reply, const struct hs_learned *learned, size_t argc,
		       const struct hs_bytes *argv, bool with_flags)
{
	const struct hs_command *parent;
	const struct hs_command *command = hs_learned_resolve(learned, argc, argv, &parent);
	struct hs_key_walk walk;
	size_t count = 0;

	if (!command) {
		hs_reply_error(reply, "ERR Invalid command specified");
		return;
	}
	if (hs_command_is_pubsub(command) || !hs_command_has_real_keys(command)) {
		hs_reply_error(reply, "ERR The command has no key arguments");
		return;
	}
	if (!hs_command_arity_fits(command, argc)) {
		hs_reply_error(reply, "ERR Invalid number of arguments specified for command");
		return;
	}
	hs_keys_begin(&walk, command, argc, argv);
	while (hs_keys_next(&walk) > 0)
		count += !(hs_keys_flags(&walk) & HS_KEY_NOT_KEY);
	if (walk.wrong)
		count = 0;
	if (count == 0 && !(command->flags & HS_CMD_NO_MANDATORY_KEYS)) {
		hs_reply_error(reply, "ERR Invalid arguments specified for command");
		return;
	}
	hs_reply_array(reply, count);
	hs_keys_begin(&walk, command, argc, argv);
	while (count > 0 && hs_keys_next(&walk) > 0)
		if (!(hs_keys_flags(&walk) & HS_KEY_NOT_KEY))
			reply_key(reply, &walk, with_flags);
}

void hs_describe_getkeys(struct hs_reply *reply, const struct hs_learned *learned, size_t argc,
			 const struct hs_bytes *argv)
{
	reply_keys(reply, learned, argc - 2, argv + 2, false);
}

void hs_describe_getkeysandflags(struct hs_reply *reply, const struct hs_learned *learned,
				 size_t argc, const struct hs_bytes *argv)
{
	reply_keys(reply, learned, argc - 2, argv + 2, true);
}

static hs_describe_run *const functions[HS_CMD_IDS] = {
#define DESCRIBE(function) function
#define ROW(identifier, function, ...) [HS_CMD_ID_##identifier] = function,
#include "command/rows.def"
};

void hs_command_describe(const struct hs_command *command, const struct hs_learned *learned,
			 struct hs_reply *reply, size_t argc, const struct hs_bytes *argv)
{
	functions[command->id](reply, learned, argc, argv);
}
