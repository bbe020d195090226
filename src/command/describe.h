/* The pieces COMMAND's answers are made of. For command/ only. */
#ifndef HS_COMMAND_DESCRIBE_H
#define HS_COMMAND_DESCRIBE_H

#include "command/command.h"
#include "command/learned.h"
#include "wire/reply.h"

/* Answers COMMAND or a subcommand of it: the function that its row names. `argc` fits its arity. */
typedef void hs_describe_run(struct hs_reply *reply, const struct hs_learned *learned, size_t argc,
			     const struct hs_bytes *argv);
#define OTHER
#define DESCRIBE(function) hs_describe_run function;
#define ROW(identifier, function, ...) function
#include "command/rows.def"

/* A walk over the rows that COMMAND shows: the subcommands of a container, or the whole commands;
 * ours and then the learned ones. */
struct hs_command_walk {
	const struct hs_learned *learned; /* or NULL */
	const struct hs_command *parent;  /* NULL: whole commands */
	size_t next;
};
const struct hs_command *hs_command_walk_next(struct hs_command_walk *walk); /* NULL at the end */
size_t hs_command_walk_count(const struct hs_command_walk *walk);	     /* from here to it */

/* Takes the next word off the front of `rest` ("@read @fast" -> "@read"); empty at the end. */
struct hs_bytes hs_command_word(struct hs_bytes *rest);

/* The flags that COMMAND INFO shows, and a set of the words of those that are there. */
extern const struct hs_flag_word hs_command_flag_words[];
void hs_command_reply_flags(struct hs_reply *reply, const struct hs_flag_word *words,
			    unsigned flags);

/* One command as COMMAND INFO has it, and as COMMAND DOCS has it (without its name). */
void hs_command_reply_info(struct hs_reply *reply, const struct hs_command *command,
			   const struct hs_learned *learned);
void hs_command_reply_docs(struct hs_reply *reply, const struct hs_command *command,
			   const struct hs_learned *learned);

/* What a server said of a row, without its subcommands, in the dialect of the reply: the header of
 * the array of elements (with one more when subcommands are to follow, which is returned) and the
 * elements. learned_info.c. */
bool hs_learned_reply_raw_entry(struct hs_reply *reply, const struct hs_command *row);

#endif
