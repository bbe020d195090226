/* Reads the `arguments` text of a row and answers it in the nested form of COMMAND DOCS. The text
 * is written as in a manual page:
 *
 *     key             an argument, by its name; a few names stand for types (see syntax.c)
 *     WORD            said as it stands
 *     WORD name       said before the argument; it takes all plain arguments behind it
 *     a | b           one of them
 *     [ … ]           may be left out
 *     ( … )           belong together
 *     x ...           once or more often
 *
 * For command/ only. The texts are our own, so a mistake in one is no input error: it fails a
 * check, and a unit test reads them all. */
#ifndef HS_COMMAND_SYNTAX_H
#define HS_COMMAND_SYNTAX_H

#include "command/command.h"
#include "wire/reply.h"

/* `command->arguments` is not NULL. */
void hs_command_reply_syntax(struct hs_reply *reply, const struct hs_command *command);

#endif
