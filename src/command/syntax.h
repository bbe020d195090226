/* Parses the `arguments` text of a row and writes it in the nested form of COMMAND DOCS. The text
 * is written as in a manual page:
 *
 *     key             an argument, by its name; a few names stand for types (see syntax.c)
 *     WORD            a literal token
 *     WORD name       a token before the argument; it takes all plain arguments after it
 *     a | b           one of them
 *     [ … ]           optional
 *     ( … )           a group
 *     x ...           once or more often
 *
 * Only for command/. No state: any thread. The texts are heatsink's own, so a mistake in one fails
 * an assertion; a unit test reads them all. */
#ifndef HS_COMMAND_SYNTAX_H
#define HS_COMMAND_SYNTAX_H

#include "command/command.h"
#include "wire/reply.h"

/* `command->arguments` is not NULL. */
void hs_command_reply_syntax(struct hs_reply *reply, const struct hs_command *command);

#endif
