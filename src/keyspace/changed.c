#include "keyspace/changed.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"

enum { CELLS_MIN = 64, KEYS_KEEP = 4096 };

/* The cell of a key, or the empty cell that it would get. */
static uint32_t *find_cell(const struct hs_changed *changed, uint64_t hash, struct hs_bytes key)
{
	for (uint32_t at = (uint32_t)hash;; at++) {
		uint32_t *cell = &changed->cells[at & changed->mask];

		if (*cell == 0 || (changed->keys[*cell - 1].hash == hash &&
				   hs_bytes_equal(hs_changed_name(changed, *cell - 1), key)))
			return cell;
	}
}

static void set_cell(struct hs_changed *changed, uint32_t *cell, uint32_t index)
{
	*cell = index + 1;
	changed->keys[index].cell = (uint32_t)(cell - changed->cells);
}

/* Doubles the room for keys, with two cells per key. */
static void grow(struct hs_changed *changed)
{
	uint32_t cap = changed->cap ? changed->cap * 2 : CELLS_MIN / 2;

	changed->keys = hs_mem_realloc(changed->keys, cap * sizeof *changed->keys);
	changed->cap = cap;
	hs_mem_free(&changed->cells);
	changed->cells = hs_mem_zalloc(2 * (size_t)cap * sizeof *changed->cells);
	changed->mask = 2 * cap - 1;
	for (uint32_t i = 0; i < changed->count; i++)
		set_cell(changed,
			 find_cell(changed, changed->keys[i].hash, hs_changed_name(changed, i)), i);
}

void hs_changed_add(struct hs_changed *changed, struct hs_bytes key)
{
	uint64_t hash = hs_hash(key, changed->seed);
	uint32_t *cell;

	if (changed->names.len + key.len > HS_CHANGED_NAMES_BYTES_MAX ||
	    changed->count == HS_CHANGED_KEYS_MAX) {
		hs_changed_add_all(changed);
		return;
	}
	if (changed->count == changed->cap)
		grow(changed);
	cell = find_cell(changed, hash, key);
	if (*cell > 0) {
		if (changed->keys[*cell - 1].by != changed->client)
			changed->keys[*cell - 1].by = 0;
		return;
	}
	changed->keys[changed->count] = (struct hs_changed_key){
		.hash = hash,
		.at = changed->names.len,
		.len = key.len,
		.by = changed->client,
	};
	set_cell(changed, cell, changed->count++);
	/* Reserves at least one byte, so that even an empty name has an address. */
	hs_buf_reserve(&changed->names, key.len + 1);
	hs_buf_append_bytes(&changed->names, key);
}

void hs_changed_add_all(struct hs_changed *changed)
{
	hs_changed_clear(changed);
	changed->all = true;
}

void hs_changed_clear(struct hs_changed *changed)
{
	changed->all = false;
	hs_buf_clear(&changed->names, HS_IDLE_BUFFER_BYTES);
	for (uint32_t i = 0; i < changed->count; i++)
		changed->cells[changed->keys[i].cell] = 0;
	changed->count = 0;
	if (changed->cap > KEYS_KEEP) {
		hs_mem_free(&changed->keys);
		hs_mem_free(&changed->cells);
		changed->cap = 0;
	}
}

void hs_changed_deinit(struct hs_changed *changed)
{
	hs_buf_deinit(&changed->names);
	hs_mem_free(&changed->keys);
	hs_mem_free(&changed->cells);
	*changed = (struct hs_changed){.seed = changed->seed};
}
