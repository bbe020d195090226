/* How learned rows are made. Only for command/learned*.c. The thread that makes the set calls it. */
#ifndef HS_COMMAND_LEARNED_ROW_H
#define HS_COMMAND_LEARNED_ROW_H

#include "command/command.h"

/* Memory that is freed only as a whole. */
struct hs_arena_chunk;
struct hs_arena {
	struct hs_arena_chunk *chunks;
};
void *hs_arena_take(struct hs_arena *arena, size_t bytes);
char *hs_arena_text(struct hs_arena *arena, struct hs_bytes text); /* zero-terminated */

/* A row and what it was made from. */
struct hs_learned_row {
	/* must be first: the row's pointer is cast to struct hs_learned_row */
	struct hs_command command;
	struct hs_bytes raw_entry; /* see hs_learned_raw_entry */
	uint8_t elements;
	uint64_t hash; /* of name and entry: an equal entry gets the same row */
};

/* One entry of COMMAND's reply, split into its elements. All of them point into the reply. */
struct hs_learned_entry {
	/* in lower case; of a subcommand with its container: "config|get" */
	char name[HS_LEARNED_NAME_BYTES_MAX + 1];
	struct hs_bytes raw_entry;
	uint8_t elements;
	int64_t arity, key_first, key_last, key_step;
	struct hs_bytes flags, categories, tips,
		key_specs; /* each a whole RESP element, or empty */
	struct hs_bytes subcommands;
	bool container;	    /* it has subcommands */
	bool fields_expire; /* hash fields of this server may expire; the caller sets it */
};

/* Splits the first entry off `rest` and reads it. 1: done. 0: skipped, because the entry describes
 * no command that could have a row. Negative: not a reply, or not a reply to COMMAND. `parent`: the
 * name of the container of a subcommand, or NULL. */
int hs_learned_entry_read(struct hs_learned_entry *entry, struct hs_bytes *rest,
			  const char *parent);

/* Fills in the row except for the identifiers. */
void hs_learned_fill(struct hs_command *row, const struct hs_learned_entry *entry,
		     struct hs_arena *arena);

/* Built-in knowledge about a server's command whose COMMAND entry lacks something: one row of
 * learned_hints.c. */
struct hs_builtin_hint {
	const char *name;
	/* if the entry has no tips, route it to `place` and merge the replies by `merge` */
	bool routed;
	enum hs_command_place place;
	enum hs_command_merge merge;
	/* it blocks until replicas acknowledge, though COMMAND does not flag it as blocking */
	bool blocks;
	unsigned cacheable;		/* enum hs_command_cacheable; 0: replies are not cached */
	const struct hs_key_spec *keys; /* NULL: the server's own specs are enough */
	uint8_t keys_count;
	/* use `keys` even if the server has specs, because those are incomplete */
	bool keys_always;
};
/* The built-in hint for a command, or NULL. */
const struct hs_builtin_hint *hs_builtin_hint(const char *name);
/* The next hint for a subcommand of a container, after `before` (NULL: the first). NULL: no more. */
const struct hs_builtin_hint *hs_builtin_hint_sub(const char *parent,
						  const struct hs_builtin_hint *before);
/* The reason why heatsink refuses a command, or its whole container, on every engine; NULL: it does
 * not. */
const char *hs_builtin_refused(const char *name);
/* Whether a command may do more than its arguments say (HS_CMD_UNCHECKED). `categories`: as in the
 * row; `is_module`: the server says that a module provides it; `has_keys`: its row has key
 * positions. */
bool hs_builtin_unchecked(const char *name, const char *categories, bool is_module, bool has_keys);

#endif
