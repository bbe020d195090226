/* The pieces COMMAND's answers are made of. For command/ only. */
#ifndef HS_COMMAND_DESCRIBE_H
#define HS_COMMAND_DESCRIBE_H

#include "command/command.h"
#include "wire/reply.h"

/* Walks over the rows: the first subcommand of a container, or the first whole command for
 * HS_CMD_ID_NONE, and then the one behind `command`. NULL at the end. */
const struct hs_command *hs_command_next(enum hs_command_id parent,
					 const struct hs_command *command);
size_t hs_command_count(enum hs_command_id parent);

/* Takes the next word off the front of `rest` ("@read @fast" -> "@read"); empty at the end. */
struct hs_bytes hs_command_word(struct hs_bytes *rest);

/* One command as COMMAND INFO has it, and as COMMAND DOCS has it (without its name). */
void hs_command_reply_info(struct hs_reply *reply, const struct hs_command *command);
void hs_command_reply_docs(struct hs_reply *reply, const struct hs_command *command);

#endif
