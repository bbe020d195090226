/* Errors for unknown commands and subcommands and for a wrong number of arguments. They begin with the text of
 * Redis 7.0, which clients parse; a hint for people follows. */
#include "core/unknown.h"

#include "base/nearest.h"
#include "command/not_embedded.h"
#include "core/engine_unavailable.h"

enum { SHOWN_BYTES = 128 };

static int shown(struct hs_bytes word)
{
	return (int)(word.len < SHOWN_BYTES ? word.len : SHOWN_BYTES);
}

/* The embedded engine has fewer commands than a server, and its errors say where to find the others. */
static bool is_embedded(const struct hs_core *core)
{
	return !core->world.shared_connections;
}

void hs_unknown_command(const struct hs_core *core, const struct hs_call *call, struct hs_buf *text)
{
	const struct hs_bytes *argv = call->argv;
	size_t start;

	hs_buf_printf(text,
		      "ERR unknown command '%.*s', with args beginning with: ", shown(argv[0]),
		      argv[0].data);
	start = text->len;
	for (size_t i = 1; i < call->argc && text->len - start < SHOWN_BYTES; i++) {
		size_t room = SHOWN_BYTES - (text->len - start);

		hs_buf_printf(text, "'%.*s' ", (int)(argv[i].len < room ? argv[i].len : room),
			      argv[i].data);
	}
	if (is_embedded(core))
		hs_not_embedded_note(argv[0], text);
}

/* The container's name in capitals: "HEAT". */
static void append_upper(struct hs_buf *text, const char *name)
{
	for (; *name; name++) {
		char c = *name >= 'a' && *name <= 'z' ? (char)(*name - ('a' - 'A')) : *name;

		hs_buf_append(text, &c, 1);
	}
}

/* Redis has no HEAT, so heatsink may word its errors: they suggest the nearest subcommand. */
static void append_nearest(struct hs_buf *text, const struct hs_command *parent,
			   struct hs_bytes name)
{
	struct hs_nearest nearest = hs_nearest_to(name);

	/* The rows of subcommands follow the row of their container. */
	for (size_t id = parent->id + 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *row = hs_command_by_id((enum hs_command_id)id);

		if (row->parent != parent->id)
			break;
		hs_nearest_try(&nearest, row->name + strlen(parent->name) + 1);
	}
	if (!nearest.name)
		return;
	hs_buf_append(text, " Did you mean HEAT ", 19);
	append_upper(text, nearest.name);
	hs_buf_append(text, "?", 1);
}

void hs_unknown_subcommand(const struct hs_core *core, const struct hs_command *parent,
			   struct hs_bytes name, struct hs_buf *text)
{
	struct hs_buf whole = {0};

	/* In Redis DEBUG checks its own arguments, and its error differs. */
	hs_buf_printf(text, "ERR unknown subcommand%s '%.*s'.",
		      parent->id == HS_CMD_ID_DEBUG ? " or wrong number of arguments for" : "",
		      shown(name), name.data);
	if (parent->id == HS_CMD_ID_HEAT)
		append_nearest(text, parent, name);
	hs_buf_append(text, " Try ", 5);
	append_upper(text, parent->name);
	hs_buf_append(text, " HELP.", 6);
	if (!is_embedded(core))
		return;
	hs_buf_printf(&whole, "%s|%.*s", parent->name, shown(name), name.data);
	hs_buf_append(text, " ", 1);
	hs_not_embedded_note(hs_buf_bytes(&whole), text);
	if (text->data[text->len - 1] == ' ')
		text->len--;
	hs_buf_deinit(&whole);
}

const char *hs_engine_unavailable(const struct hs_core *core,
				  char text[HS_ENGINE_UNAVAILABLE_BYTES])
{
	char unavailable_reason[HS_ENGINE_UNAVAILABLE_BYTES / 2] = "";

	if (core->world.calls->unavailable_reason)
		core->world.calls->unavailable_reason(core->world.context, unavailable_reason,
						      sizeof unavailable_reason);
	hs_engine_unavailable_text(unavailable_reason, text, HS_ENGINE_UNAVAILABLE_BYTES);
	return text;
}

void hs_unknown_arity(const struct hs_command *command, struct hs_buf *text)
{
	hs_buf_printf(text, "ERR wrong number of arguments for '%s' command", command->name);
	if (command->id == HS_CMD_ID_HEAT || command->parent == HS_CMD_ID_HEAT)
		hs_buf_append(text, ". Try HEAT HELP.", 16);
}
