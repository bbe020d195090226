/* COMMAND and its subcommands, in the shapes Redis 7.0 gives them. */
#include "command/describe.h"

#include "base/glob.h"
#include "command/rows.h"

const struct hs_command *hs_command_next(enum hs_command_id parent,
					 const struct hs_command *command)
{
	for (size_t id = (command ? command->id : parent) + 1; id < HS_CMD_IDS; id++)
		if (hs_command_table[id]->parent == parent)
			return hs_command_table[id];
	return NULL;
}

size_t hs_command_count(enum hs_command_id parent)
{
	const struct hs_command *command = NULL;
	size_t count = 0;

	while ((command = hs_command_next(parent, command)))
		count++;
	return count;
}

struct hs_bytes hs_command_word(struct hs_bytes *rest)
{
	struct hs_bytes word;
	size_t len = 0;

	while (rest->len > 0 && rest->data[0] == ' ') {
		rest->data++;
		rest->len--;
	}
	while (len < rest->len && rest->data[len] != ' ')
		len++;
	word = (struct hs_bytes){rest->data, len};
	rest->data += len;
	rest->len -= len;
	return word;
}

/* A command by its full name: "get", "client|id". */
static const struct hs_command *find_full(struct hs_bytes name)
{
	const char *bar = name.len > 0 ? memchr(name.data, '|', name.len) : NULL;
	struct hs_bytes head = name;
	const struct hs_command *command;

	if (bar)
		head.len = (size_t)(bar - name.data);
	command = hs_command_find(head);
	if (!command || !bar)
		return command;
	return hs_command_sub(command, (struct hs_bytes){bar + 1, name.len - head.len - 1});
}

static void reply_info(struct hs_reply *reply, size_t names, const struct hs_bytes *name)
{
	const struct hs_command *command = NULL;

	if (names == 0) {
		hs_reply_array(reply, hs_command_count(HS_CMD_ID_NONE));
		while ((command = hs_command_next(HS_CMD_ID_NONE, command)))
			hs_command_reply_info(reply, command);
		return;
	}
	hs_reply_array(reply, names);
	for (size_t i = 0; i < names; i++) {
		command = find_full(name[i]);
		if (command)
			hs_command_reply_info(reply, command);
		else
			hs_reply_null(reply);
	}
}

static void reply_named_docs(struct hs_reply *reply, const struct hs_command *command)
{
	hs_reply_bulk_text(reply, command->name);
	hs_command_reply_docs(reply, command);
}

/* Unlike INFO, DOCS leaves out the names it does not know. */
static void reply_docs(struct hs_reply *reply, size_t names, const struct hs_bytes *name)
{
	const struct hs_command *command = NULL;
	size_t known = 0;

	if (names == 0) {
		hs_reply_map(reply, hs_command_count(HS_CMD_ID_NONE));
		while ((command = hs_command_next(HS_CMD_ID_NONE, command)))
			reply_named_docs(reply, command);
		return;
	}
	for (size_t i = 0; i < names; i++)
		if (find_full(name[i]))
			known++;
	hs_reply_map(reply, known);
	for (size_t i = 0; i < names; i++) {
		command = find_full(name[i]);
		if (command)
			reply_named_docs(reply, command);
	}
}

enum list_filter { LIST_ALL, LIST_MODULE, LIST_ACLCAT, LIST_PATTERN };

/* `wanted` is a category without its "@". */
static bool has_category(const struct hs_command *command, struct hs_bytes wanted)
{
	struct hs_bytes rest = hs_bytes_of(command->categories);
	struct hs_bytes word;
	char category[32];

	for (word = hs_command_word(&rest); word.len > 0; word = hs_command_word(&rest)) {
		hs_check(word.len < sizeof(category));
		memcpy(category, word.data + 1, word.len - 1);
		category[word.len - 1] = '\0';
		if (hs_bytes_is_word(wanted, category))
			return true;
	}
	return false;
}

static bool listed(const struct hs_command *command, enum list_filter filter, struct hs_bytes value)
{
	switch (filter) {
	case LIST_ALL:
		return true;
	case LIST_MODULE: /* there are no modules, so no command comes from one */
		return false;
	case LIST_ACLCAT:
		return has_category(command, value);
	case LIST_PATTERN:
		return hs_glob_match(value, hs_bytes_of(command->name), true);
	}
	return false;
}

static bool parse_filter(size_t argc, const struct hs_bytes *argv, enum list_filter *filter)
{
	if (argc != 3 || !hs_bytes_is_word(argv[0], "filterby"))
		return false;
	if (hs_bytes_is_word(argv[1], "module"))
		*filter = LIST_MODULE;
	else if (hs_bytes_is_word(argv[1], "aclcat"))
		*filter = LIST_ACLCAT;
	else if (hs_bytes_is_word(argv[1], "pattern"))
		*filter = LIST_PATTERN;
	else
		return false;
	return true;
}

static void reply_list(struct hs_reply *reply, size_t argc, const struct hs_bytes *argv)
{
	enum list_filter filter = LIST_ALL;
	struct hs_bytes value = {NULL, 0};
	size_t count = 0;

	if (argc > 0) {
		if (!parse_filter(argc, argv, &filter)) {
			hs_reply_error(reply, "ERR syntax error");
			return;
		}
		value = argv[2];
	}
	for (size_t id = 1; id < HS_CMD_IDS; id++)
		if (listed(hs_command_table[id], filter, value))
			count++;
	hs_reply_array(reply, count);
	for (size_t id = 1; id < HS_CMD_IDS; id++)
		if (listed(hs_command_table[id], filter, value))
			hs_reply_bulk_text(reply, hs_command_table[id]->name);
}

static void reply_keys(struct hs_reply *reply, size_t argc, const struct hs_bytes *argv)
{
	const struct hs_command *command = hs_command_find(argv[0]);
	size_t first, step, count;

	if (command && command->place == HS_PLACE_PARENT && argc > 1)
		command = hs_command_sub(command, argv[1]);
	if (!command) {
		hs_reply_error(reply, "ERR Invalid command specified");
		return;
	}
	if (command->key_first == 0) {
		hs_reply_error(reply, "ERR The command has no key arguments");
		return;
	}
	if (!hs_command_arity_fits(command, argc)) {
		hs_reply_error(reply, "ERR Invalid number of arguments specified for command");
		return;
	}
	count = hs_command_keys(command, argc, &first, &step);
	hs_reply_array(reply, count);
	for (size_t i = 0; i < count; i++)
		hs_reply_bulk(reply, argv[first + i * step]);
}

void hs_command_describe(const struct hs_command *command, struct hs_reply *reply, size_t argc,
			 const struct hs_bytes *argv)
{
	switch (command->id) {
	case HS_CMD_ID_COMMAND:
		reply_info(reply, 0, NULL);
		return;
	case HS_CMD_ID_COMMAND_COUNT:
		hs_reply_int(reply, (int64_t)hs_command_count(HS_CMD_ID_NONE));
		return;
	case HS_CMD_ID_COMMAND_INFO:
		reply_info(reply, argc - 2, argv + 2);
		return;
	case HS_CMD_ID_COMMAND_DOCS:
		reply_docs(reply, argc - 2, argv + 2);
		return;
	case HS_CMD_ID_COMMAND_LIST:
		reply_list(reply, argc - 2, argv + 2);
		return;
	case HS_CMD_ID_COMMAND_GETKEYS:
		reply_keys(reply, argc - 2, argv + 2);
		return;
	default:
		hs_check(command->id == HS_CMD_ID_COMMAND_HELP);
		hs_command_help(hs_command_by_id(HS_CMD_ID_COMMAND), reply);
	}
}
