/* Sets of learned rows.
 *
 *     set 1 ──┐            ┌── pool: names by identifier, every row ever made
 *     set 2 ──┴── refers ──┘
 *
 * Sets that were made one from another share a pool. It gives each name its identifier once, and
 * keeps every row, because requests point at rows as long as they run. A command with the same
 * description as before has the same row as before. So repeated replies, also of servers of two
 * versions in turn, add nothing: the pool grows only with new descriptions.
 *
 * A set is an open hash table from names to rows. The cell of a subcommand has its container, too. */
#include "command/learned.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "command/learned_row.h"
#include "command/name.h"
#include "wire/parse_reply.h"

#include <stdio.h>

#define SHARED_ID ((enum hs_command_id)(HS_CMD_IDS_ALL - 1))

struct pool {
	uint32_t sets; /* number of sets that refer to it */
	struct hs_arena arena;
	struct hs_learned_row **rows;
	uint32_t rows_count, rows_cap;
	const char
		*names[HS_LEARNED_MAX]; /* by identifier; all further commands share the last one */
	uint32_t names_count;
};

struct cell {
	struct hs_name name; /* the first 16 bytes */
	uint32_t len;
	uint32_t parent; /* the container's identifier, or HS_CMD_ID_NONE */
	const struct hs_command *row;
};

struct hs_learned {
	struct pool *pool;
	const struct hs_command **rows;
	uint32_t count, cap;
	struct cell *cells;
	uint32_t cells_mask;
	/* a copy of the pool's names when this set was made; the pool may grow meanwhile */
	const char *names[HS_LEARNED_MAX];
};

/* --- the arena --- */

enum { CHUNK_BYTES = 32 << 10 };

struct hs_arena_chunk {
	struct hs_arena_chunk *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

void *hs_arena_take(struct hs_arena *arena, size_t bytes)
{
	struct hs_arena_chunk *chunk = arena->chunks;
	void *taken;

	bytes = (bytes + 15) / 16 * 16;
	if (!chunk || chunk->size - chunk->used < bytes) {
		size_t size = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;

		chunk = hs_mem_alloc(sizeof *chunk + size);
		chunk->next = arena->chunks;
		chunk->used = 0;
		chunk->size = size;
		arena->chunks = chunk;
	}
	taken = chunk->bytes + chunk->used;
	chunk->used += bytes;
	return taken;
}

char *hs_arena_text(struct hs_arena *arena, struct hs_bytes text)
{
	char *kept = hs_arena_take(arena, text.len + 1);

	if (text.len > 0)
		memcpy(kept, text.data, text.len);
	kept[text.len] = '\0';
	return kept;
}

static void arena_deinit(struct hs_arena *arena)
{
	while (arena->chunks) {
		struct hs_arena_chunk *next = arena->chunks->next;

		hs_mem_release(arena->chunks);
		arena->chunks = next;
	}
}

/* --- the pool --- */

static unsigned pool_id(struct pool *pool, const char *name)
{
	for (uint32_t i = 0; i < pool->names_count; i++)
		if (strcmp(pool->names[i], name) == 0)
			return HS_CMD_IDS + i;
	if (pool->names_count < HS_LEARNED_MAX - 1) {
		pool->names[pool->names_count] = hs_arena_text(&pool->arena, hs_bytes_of(name));
		return HS_CMD_IDS + pool->names_count++;
	}
	pool->names[HS_LEARNED_MAX - 1] = "other";
	return SHARED_ID;
}

/* The row for an entry: an existing one if name and contents are the same, otherwise a new one.
 * NULL: too many rows. `as_said`: false for a derived row. */
static const struct hs_command *pool_row(struct pool *pool, const struct hs_learned_entry *entry,
					 const struct hs_command *parent, bool as_said)
{
	uint64_t seed = (uint64_t)entry->container | (uint64_t)as_said << 1 |
			(uint64_t)entry->fields_expire << 2;
	uint64_t hash = hs_hash(entry->raw_entry, hs_hash(hs_bytes_of(entry->name), seed));
	struct hs_learned_row *row;

	for (uint32_t i = 0; i < pool->rows_count; i++)
		if (pool->rows[i]->hash == hash &&
		    strcmp(pool->rows[i]->command.name, entry->name) == 0)
			return &pool->rows[i]->command;
	if (pool->rows_count == HS_LEARNED_ROWS_MAX)
		return NULL;
	if (pool->rows_count == pool->rows_cap) {
		pool->rows_cap = pool->rows_cap ? pool->rows_cap * 2 : 512;
		pool->rows = hs_mem_realloc(pool->rows, pool->rows_cap * sizeof(void *));
	}
	row = hs_arena_take(&pool->arena, sizeof *row);
	*row = (struct hs_learned_row){.hash = hash};
	hs_learned_fill(&row->command, entry, &pool->arena);
	row->command.id = pool_id(pool, entry->name);
	row->command.parent = parent ? parent->id : HS_CMD_ID_NONE;
	if (as_said) {
		row->elements = entry->elements;
		row->raw_entry.data = hs_arena_text(&pool->arena, entry->raw_entry);
		row->raw_entry.len = entry->raw_entry.len;
	}
	pool->rows[pool->rows_count++] = row;
	return &row->command;
}

static void pool_put(struct pool **pool)
{
	if (--(*pool)->sets > 0)
		return;
	arena_deinit(&(*pool)->arena);
	hs_mem_free(&(*pool)->rows);
	hs_mem_free(pool);
}

/* --- the table --- */

static struct hs_name pack(struct hs_bytes name)
{
	return hs_name_pack((struct hs_bytes){
		name.data, name.len < HS_NAME_BYTES_MAX ? name.len : HS_NAME_BYTES_MAX});
}

static uint32_t cell_of(struct hs_name name, uint32_t parent)
{
	uint64_t mixed = (name.head ^ name.tail * 0x9e3779b97f4a7c15 ^ parent) * 0xe1988ad9f06c144b;

	return (uint32_t)(mixed >> 40);
}

/* The name of a row without its container. */
static const char *short_name(const struct hs_command *row)
{
	const char *bar = strchr(row->name, '|');

	return bar ? bar + 1 : row->name;
}

/* Containers that share the last identifier are compared by name. */
static bool is_below(const struct hs_command *row, const struct hs_command *parent)
{
	return !parent || parent->id != SHARED_ID || hs_command_names_sub(row->name, parent->name);
}

static const struct hs_command *look_up(const struct hs_learned *learned,
					const struct hs_command *container, struct hs_bytes text)
{
	uint32_t parent = container ? container->id : HS_CMD_ID_NONE;
	struct hs_name name;

	/* 0 wraps, so an empty name is refused, too */
	if (!learned || text.len - 1 >= HS_LEARNED_NAME_BYTES_MAX)
		return NULL;
	name = pack(text);
	for (uint32_t i = cell_of(name, parent) & learned->cells_mask; learned->cells[i].row;
	     i = (i + 1) & learned->cells_mask) {
		const struct cell *cell = &learned->cells[i];

		if (cell->name.head == name.head && cell->name.tail == name.tail &&
		    cell->len == text.len && cell->parent == parent &&
		    (text.len <= HS_NAME_BYTES_MAX ||
		     hs_bytes_is_word(text, short_name(cell->row))) &&
		    is_below(cell->row, container))
			return cell->row;
	}
	return NULL;
}

static void fill_cells(struct hs_learned *learned)
{
	uint32_t cells = 16;

	while (cells < 2 * learned->count)
		cells *= 2;
	learned->cells = hs_mem_zalloc(cells * sizeof *learned->cells);
	learned->cells_mask = cells - 1;
	for (uint32_t i = 0; i < learned->count; i++) {
		const struct hs_command *row = learned->rows[i];
		struct hs_bytes name = hs_bytes_of(short_name(row));
		struct hs_name packed = pack(name);
		uint32_t at = cell_of(packed, row->parent) & learned->cells_mask;

		while (learned->cells[at].row)
			at = (at + 1) & learned->cells_mask;
		learned->cells[at] = (struct cell){packed, (uint32_t)name.len, row->parent, row};
	}
}

/* --- making a set --- */

struct making {
	struct hs_learned *learned;
	char *error;
	size_t error_size;
};

static int fail(struct making *making, int code, const char *text)
{
	snprintf(making->error, making->error_size, "%s", text);
	return code;
}

static int add(struct making *making, const struct hs_learned_entry *entry,
	       const struct hs_command *parent, bool as_said, const struct hs_command **added)
{
	struct hs_learned *learned = making->learned;
	const struct hs_command *row = pool_row(learned->pool, entry, parent, as_said);

	if (!row || learned->count == HS_LEARNED_ROWS_MAX)
		return fail(making, HS_ELIMIT,
			    "too many different commands learned from servers since the start: at "
			    "most 16384");
	if (learned->count == learned->cap) {
		learned->cap = learned->cap ? learned->cap * 2 : 512;
		learned->rows = hs_mem_realloc(learned->rows, learned->cap * sizeof(void *));
	}
	learned->rows[learned->count++] = row;
	*added = row;
	return 0;
}

/* Makes rows for subcommands that servers before Redis 7 do not list: copies of their container's
 * row, apart from the routing. */
static int derive_subs(struct making *making, const struct hs_learned_entry *entry,
		       const struct hs_command *parent)
{
	const struct hs_builtin_hint *hint = NULL;
	const struct hs_command *row;
	int err = 0;

	while (err == 0 && (hint = hs_builtin_hint_sub(parent->name, hint))) {
		struct hs_learned_entry sub = *entry;

		snprintf(sub.name, sizeof sub.name, "%s", hint->name);
		err = add(making, &sub, parent, false, &row);
	}
	return err;
}

static bool is_ours(const struct hs_command *own)
{
	return own && !(own->flags & HS_CMD_UNTIL_LEARNED);
}

static int learn_subs(struct making *making, const struct hs_learned_entry *entry,
		      const struct hs_command *parent)
{
	struct hs_bytes rest = hs_parse_reply_elements(entry->subcommands);
	bool own = parent->id < HS_CMD_IDS;

	while (rest.len > 0) {
		const struct hs_command *row;
		struct hs_learned_entry sub;
		struct hs_bytes name;
		int read = hs_learned_entry_read(&sub, &rest, parent->name);

		if (read < 0)
			return fail(making, read, "the server's reply to COMMAND is invalid");
		if (read == 0)
			continue;
		name = hs_bytes_of(strchr(sub.name, '|') + 1);
		if (own && is_ours(hs_command_sub(parent, name)))
			continue;
		read = add(making, &sub, parent, true, &row);
		if (read < 0)
			return read;
	}
	return 0;
}

static int learn_entry(struct making *making, const struct hs_learned_entry *entry)
{
	const struct hs_command *own = hs_command_find(hs_bytes_of(entry->name)), *row;
	int err;

	if (own)
		return own->place == HS_PLACE_PARENT ? learn_subs(making, entry, own) : 0;
	err = add(making, entry, NULL, true, &row);
	if (err < 0)
		return err;
	if (entry->container)
		return learn_subs(making, entry, row);
	return entry->elements <= 7 ? derive_subs(making, entry, row) : 0;
}

/* Can the server's hash fields expire? Redis from 7.4 on, Valkey from 9: they have HPEXPIRE. */
static bool has_fields_that_expire(struct hs_bytes rest)
{
	struct hs_learned_entry entry;

	while (rest.len > 0 && hs_learned_entry_read(&entry, &rest, NULL) >= 0)
		if (strcmp(entry.name, "hpexpire") == 0)
			return true;
	return false;
}

static int learn(struct making *making, struct hs_bytes reply)
{
	struct hs_parsed_reply head;
	struct hs_bytes rest;
	struct hs_learned_entry entry;
	bool fields_expire;

	if (hs_parse_reply_length(reply.data, reply.len) != (int64_t)reply.len ||
	    hs_parse_reply_head(&head, reply.data, reply.len) <= 0)
		return fail(making, HS_EPROTO, "the server's reply to COMMAND is invalid");
	if (head.type == HS_PARSED_ERROR) {
		snprintf(making->error, making->error_size, "the server refuses COMMAND: %.*s",
			 (int)(head.text.len < 128 ? head.text.len : 128), head.text.data);
		return HS_EINVAL;
	}
	rest = hs_parse_reply_elements(reply);
	fields_expire = has_fields_that_expire(rest);
	while (rest.len > 0) {
		int err = hs_learned_entry_read(&entry, &rest, NULL);

		entry.fields_expire = fields_expire;
		if (err > 0)
			err = learn_entry(making, &entry);
		else if (err < 0)
			return fail(making, err, "the server's reply to COMMAND is invalid");
		if (err < 0)
			return err;
	}
	if (making->learned->count == 0)
		return fail(making, HS_EINVAL, "the server's reply to COMMAND lists no commands");
	return 0;
}

struct hs_learned *hs_learned_create(struct hs_bytes command_reply, struct hs_learned *before,
				     char *error, size_t error_size)
{
	struct hs_learned *learned = hs_mem_zalloc(sizeof *learned);
	struct making making = {learned, error, error_size};

	learned->pool = before ? before->pool : hs_mem_zalloc(sizeof *learned->pool);
	learned->pool->sets++;
	if (learn(&making, command_reply) < 0)
		hs_learned_destroy(&learned);
	else
		fill_cells(learned);
	if (learned)
		memcpy(learned->names, learned->pool->names, sizeof learned->names);
	return learned;
}

void hs_learned_destroy(struct hs_learned **learned)
{
	if (!*learned)
		return;
	pool_put(&(*learned)->pool);
	hs_mem_free(&(*learned)->rows);
	hs_mem_free(&(*learned)->cells);
	hs_mem_free(learned);
}

/* --- lookups --- */

const struct hs_command *hs_learned_find(const struct hs_learned *learned, struct hs_bytes name)
{
	return look_up(learned, NULL, name);
}

const struct hs_command *hs_learned_sub(const struct hs_learned *learned,
					const struct hs_command *parent, struct hs_bytes name)
{
	return look_up(learned, parent, name);
}

const struct hs_command *hs_learned_resolve(const struct hs_learned *learned, size_t argc,
					    const struct hs_bytes *argv,
					    const struct hs_command **parent)
{
	const struct hs_command *row = hs_command_find(argv[0]), *sub = NULL, *better;

	*parent = NULL;
	if (!row)
		row = hs_learned_find(learned, argv[0]);
	if (!row || argc < 2 || (row->place != HS_PLACE_PARENT && !(row->flags & HS_CMD_CONTAINER)))
		return row;
	if (row->id < HS_CMD_IDS)
		sub = hs_command_sub(row, argv[1]);
	if (is_ours(sub))
		return sub;
	better = hs_learned_sub(learned, row, argv[1]);
	if (better)
		return better;
	if (sub || row->place != HS_PLACE_PARENT)
		return sub ? sub : row;
	*parent = row;
	return NULL;
}

size_t hs_learned_count(const struct hs_learned *learned)
{
	return learned ? learned->count : 0;
}

const struct hs_command *hs_learned_at(const struct hs_learned *learned, size_t index)
{
	hs_check(index < learned->count);
	return learned->rows[index];
}

const struct hs_command *hs_learned_row_at(const struct hs_learned *learned, size_t index)
{
	if (index + 1 < HS_CMD_IDS)
		return hs_command_by_id((enum hs_command_id)(index + 1));
	index -= HS_CMD_IDS - 1;
	return index < hs_learned_count(learned) ? hs_learned_at(learned, index) : NULL;
}

const char *hs_learned_name(const struct hs_learned *learned, unsigned id)
{
	if (!learned || id < HS_CMD_IDS || id >= HS_CMD_IDS_ALL)
		return NULL;
	return learned->names[id - HS_CMD_IDS];
}

struct hs_bytes hs_learned_raw_entry(const struct hs_command *row, size_t *elements)
{
	const struct hs_learned_row *learned = (const struct hs_learned_row *)row;

	hs_check(row->id >= HS_CMD_IDS);
	*elements = learned->elements;
	return learned->raw_entry;
}
