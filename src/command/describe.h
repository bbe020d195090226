/* The pieces of COMMAND's replies. Only for command/. No state: any thread. */
#ifndef HS_COMMAND_DESCRIBE_H
#define HS_COMMAND_DESCRIBE_H

#include "command/command.h"
#include "command/learned.h"
#include "wire/reply.h"

/* Replies to COMMAND or one of its subcommands: the function that its row names. `argc` fits the
 * arity. */
typedef void hs_describe_run(struct hs_reply *reply, const struct hs_learned *learned, size_t argc,
			     const struct hs_bytes *argv);
#define OTHER
#define DESCRIBE(function) hs_describe_run function;
#define ROW(identifier, function, ...) function
#include "command/rows.def"

/* A walk over the rows that COMMAND lists: the subcommands of a container, or the whole commands;
 * first heatsink's own, then the learned ones. */
struct hs_command_walk {
	const struct hs_learned *learned; /* or NULL */
	const struct hs_command *parent;  /* NULL: whole commands */
	size_t next;
};
const struct hs_command *hs_command_walk_next(struct hs_command_walk *walk); /* NULL at the end */
size_t hs_command_walk_count(const struct hs_command_walk *walk); /* rows left in the walk */

/* Splits the next word off the front of `rest` ("@read @fast" -> "@read"); empty at the end. */
struct hs_bytes hs_command_word(struct hs_bytes *rest);

/* The words of the flags that COMMAND INFO shows. */
extern const struct hs_flag_word hs_command_flag_words[];
/* Replies with a set: the words, out of `words`, of the bits in `flags`. */
void hs_command_reply_flags(struct hs_reply *reply, const struct hs_flag_word *words,
			    unsigned flags);

/* One command in the form of COMMAND INFO, and in that of COMMAND DOCS (without its name). */
void hs_command_reply_info(struct hs_reply *reply, const struct hs_command *command,
			   const struct hs_learned *learned);
void hs_command_reply_docs(struct hs_reply *reply, const struct hs_command *command,
			   const struct hs_learned *learned);

/* Writes a learned row's entry of the server's COMMAND reply, re-encoded for the RESP version of
 * `reply`: the header of its array and its elements, without the subcommands. True: the header
 * counts one element more, and the caller must write the subcommands. learned_info.c. */
bool hs_learned_reply_raw_entry(struct hs_reply *reply, const struct hs_command *row);

#endif
