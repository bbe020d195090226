/* The texts about commands: COMMAND DOCS and the HELP of containers. */
#include "command/describe.h"
#include "command/syntax.h"

#include <stdio.h>

/* COMMAND DOCS of a learned command: a fixed summary, group and arity, because heatsink does not
 * ask the server for more. */
static void reply_learned(struct hs_reply *reply, const struct hs_command *command,
			  size_t subcommands)
{
	hs_reply_map(reply, 3 + (subcommands > 0 ? 1u : 0u));
	hs_reply_pair_text(reply, "summary", "A command of the server behind heatsink");
	hs_reply_pair_text(reply, "group", command->group ? command->group : "generic");
	hs_reply_pair_int(reply, "arity", command->arity);
}

static void reply_own(struct hs_reply *reply, const struct hs_command *command, size_t subcommands)
{
	hs_reply_map(reply, 4 + (command->deprecated ? 3u : 0u) + (command->arguments ? 1u : 0u) +
				    (subcommands > 0 ? 1u : 0u));
	hs_reply_pair_text(reply, "summary", command->summary);
	hs_reply_pair_text(reply, "since", command->since);
	hs_reply_pair_text(reply, "group", command->group);
	hs_reply_pair_text(reply, "complexity", command->complexity);
	if (command->deprecated) {
		hs_reply_bulk_text(reply, "doc_flags");
		hs_reply_set(reply, 1);
		hs_reply_status(reply, "deprecated");
		hs_reply_pair_text(reply, "deprecated_since", command->deprecated);
		hs_reply_pair_text(reply, "replaced_by", command->replaced_by);
	}
	if (command->arguments) {
		hs_reply_bulk_text(reply, "arguments");
		hs_command_reply_syntax(reply, command);
	}
}

void hs_command_reply_docs(struct hs_reply *reply, const struct hs_command *command,
			   const struct hs_learned *learned)
{
	struct hs_command_walk walk = {learned, command, 0};
	size_t subcommands = hs_command_walk_count(&walk);
	const struct hs_command *sub;

	if (command->id < HS_CMD_IDS)
		reply_own(reply, command, subcommands);
	else
		reply_learned(reply, command, subcommands);
	if (subcommands == 0)
		return;
	hs_reply_bulk_text(reply, "subcommands");
	hs_reply_map(reply, subcommands);
	while ((sub = hs_command_walk_next(&walk))) {
		hs_reply_bulk_text(reply, sub->name);
		hs_command_reply_docs(reply, sub, learned);
	}
}

enum { NAME_BYTES = 32 };

static char *capitals(const char *text, char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, "%s", text);
	for (char *at = name; *at != '\0'; at++)
		if (*at >= 'a' && *at <= 'z')
			*at = (char)(*at - 'a' + 'A');
	return name;
}

/* One subcommand of HELP: "KILL ip:port | …", then its summary. */
static void reply_help_lines(struct hs_reply *reply, const struct hs_command *sub)
{
	char line[256];
	char name[NAME_BYTES];

	snprintf(line, sizeof(line), "%s%s%s", capitals(strchr(sub->name, '|') + 1, name),
		 sub->arguments ? " " : "", sub->arguments ? sub->arguments : "");
	hs_reply_status(reply, line);
	snprintf(line, sizeof(line), "    %s.", sub->summary);
	hs_reply_status(reply, line);
}

void hs_command_help(const struct hs_command *parent, struct hs_reply *reply)
{
	const struct hs_command *help = hs_command_sub(parent, HS_LIT("help"));
	struct hs_command_walk walk = {NULL, parent, 0};
	const struct hs_command *sub;
	bool alone = parent->arity == -1; /* the container is also a command without subcommand */
	char line[128];
	char name[NAME_BYTES];

	hs_reply_array(reply, 1 + (alone ? 2u : 0u) + 2 * hs_command_walk_count(&walk));
	snprintf(line, sizeof(line), "%s <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
		 capitals(parent->name, name));
	hs_reply_status(reply, line);
	if (alone) {
		hs_reply_status(reply, "(no subcommand)");
		snprintf(line, sizeof(line), "    %s.", parent->summary);
		hs_reply_status(reply, line);
	}
	while ((sub = hs_command_walk_next(&walk)))
		if (sub != help)
			reply_help_lines(reply, sub);
	if (help)
		reply_help_lines(reply, help);
}
