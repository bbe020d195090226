/* How learned rows are made. For command/learned*.c only. */
#ifndef HS_COMMAND_LEARNED_ROW_H
#define HS_COMMAND_LEARNED_ROW_H

#include "command/command.h"

/* Memory that is only given back all at once. */
struct hs_arena_chunk;
struct hs_arena {
	struct hs_arena_chunk *chunks;
};
void *hs_arena_take(struct hs_arena *arena, size_t bytes);
char *hs_arena_text(struct hs_arena *arena, struct hs_bytes text); /* zero-terminated */

/* A row with what it was made from. */
struct hs_learned_row {
	struct hs_command command; /* first: whoever has the row has this */
	struct hs_bytes raw_entry; /* as hs_learned_raw_entry */
	uint8_t elements;
	uint64_t hash; /* of the name and what was said: the same again is the same row */
};

/* One entry of COMMAND's reply, split into its elements; all point into the reply. */
struct hs_learned_entry {
	char name[HS_LEARNED_NAME_BYTES_MAX +
		  1]; /* lower case, a subcommand's with its container */
	struct hs_bytes raw_entry;
	uint8_t elements;
	int64_t arity, key_first, key_last, key_step;
	struct hs_bytes flags, categories, tips, key_specs; /* whole replies, or empty */
	struct hs_bytes subcommands;
	bool container;	    /* it has some */
	bool fields_expire; /* at this server: the caller says so, the entry does not */
};

/* Reads the entry at the front of `rest` and takes it off. 1: read; 0: passed over, because it
 * describes no command that could have a row; negative: not a reply, or not of this kind. `parent`
 * is the name of the container whose subcommand it is, or NULL. */
int hs_learned_entry_read(struct hs_learned_entry *entry, struct hs_bytes *rest,
			  const char *parent);

/* Fills in everything but the identifiers. */
void hs_learned_fill(struct hs_command *row, const struct hs_learned_entry *entry,
		     struct hs_arena *arena);

/* What is known of a command of which servers say too little: one row of learned_hints.c. */
struct hs_builtin_hint {
	const char *name;
	bool routed; /* without tips, it goes to `place`, and the replies are put together as `merge` says */
	enum hs_command_place place;
	enum hs_command_merge merge;
	bool blocks;	    /* for others, although no server says so of it */
	unsigned cacheable; /* enum hs_command_cacheable; 0: replies are not to be kept */
	const struct hs_key_spec *keys; /* NULL: the server's own words will do */
	uint8_t keys_count;
	bool keys_always; /* also when the server has specs: they do not say everything */
};
const struct hs_builtin_hint *hs_builtin_hint(const char *name); /* NULL: nothing */
/* The rows of the subcommands of a container, from the one behind `before` on; NULL: no more. */
const struct hs_builtin_hint *hs_builtin_hint_sub(const char *parent,
						  const struct hs_builtin_hint *before);
/* Why a command, or its whole container, is not for clients of heatsink; NULL: it is. */
const char *hs_builtin_refused(const char *name);
/* Whether a command may do more than its arguments say (HS_CMD_UNCHECKED). `categories` as in the row;
 * `is_module`: the server says that a module brought it; `has_keys`: its row says where its keys are. */
bool hs_builtin_unchecked(const char *name, const char *categories, bool is_module, bool has_keys);

#endif
