#include "engine/embedded/pending_redo.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "engine/embedded/redo.h"

#include <string.h>

void hs_pending_redo_init(struct hs_pending_redo *pending, uint16_t store)
{
	memset(pending, 0, sizeof *pending);
	pending->store = store;
	pending->age = 1;
	pending->cells = hs_mem_zalloc(HS_PENDING_REDO_CELLS * sizeof *pending->cells);
}

void hs_pending_redo_deinit(struct hs_pending_redo *pending)
{
	hs_buf_deinit(&pending->buf);
	hs_mem_free(&pending->cells);
}

/* Empties the table in O(1): a cell with an older age counts as empty. */
static void forget(struct hs_pending_redo *pending)
{
	if (++pending->age != 0)
		return;
	memset(pending->cells, 0, HS_PENDING_REDO_CELLS * sizeof *pending->cells);
	pending->age = 1;
}

static struct hs_pending_redo_cell *cell_of(struct hs_pending_redo *pending, uint8_t tree,
					    struct hs_bytes key)
{
	return &pending->cells[hs_hash(key, tree) % HS_PENDING_REDO_CELLS];
}

/* Reads the entry at `at` and returns the offset of the next one. */
static size_t entry_at(const struct hs_pending_redo *pending, size_t at,
		       struct hs_redo_entry *entry)
{
	struct hs_bytes rest = {pending->buf.data + at, pending->buf.len - at};
	bool entry_is_whole = hs_redo_entry_take(&rest, entry) == 1;

	hs_check(entry_is_whole);
	return pending->buf.len - rest.len;
}

/* Finds the entry of a key, if the entry may be changed. An entry from before an open nested transaction may not
 * be changed. */
static bool find(const struct hs_pending_redo *pending, const struct hs_pending_redo_cell *cell,
		 uint8_t tree, struct hs_bytes key, struct hs_redo_entry *entry, size_t *end)
{
	if (cell->age != pending->age || cell->at < pending->nested_at)
		return false;
	*end = entry_at(pending, cell->at, entry);
	return entry->tree == tree && hs_bytes_equal(entry->key, key);
}

/* Makes an entry void, or removes it if it is the last one in `buf`. */
static void retire(struct hs_pending_redo *pending, size_t at, size_t end)
{
	pending->entries--;
	pending->replaced_bytes += end - at;
	if (end == pending->buf.len) {
		pending->buf.len = at;
		return;
	}
	hs_redo_entry_void(&pending->buf, at);
	pending->void_bytes += end - at;
}

static size_t append(struct hs_pending_redo *pending, struct hs_pending_redo_cell *cell,
		     enum hs_redo_op op, uint8_t tree, struct hs_bytes key, size_t value_bytes)
{
	size_t at = pending->buf.len;

	*cell = (struct hs_pending_redo_cell){at <= UINT32_MAX ? pending->age : 0, (uint32_t)at};
	pending->entries++;
	return hs_redo_entry_append(&pending->buf, op, tree, pending->store, key, value_bytes);
}

bool hs_pending_redo_put(struct hs_pending_redo *pending, uint8_t tree, struct hs_bytes key,
			 size_t value_bytes, size_t *value_at)
{
	struct hs_pending_redo_cell *cell = cell_of(pending, tree, key);
	struct hs_redo_entry entry;
	size_t end;

	if (find(pending, cell, tree, key, &entry, &end)) {
		if (entry.op == HS_REDO_PUT && entry.value.len == value_bytes) {
			*value_at = end - value_bytes;
			return false;
		}
		retire(pending, cell->at, end);
	}
	*value_at = append(pending, cell, HS_REDO_PUT, tree, key, value_bytes);
	return true;
}

void hs_pending_redo_del(struct hs_pending_redo *pending, uint8_t tree, struct hs_bytes key)
{
	struct hs_pending_redo_cell *cell = cell_of(pending, tree, key);
	struct hs_redo_entry entry;
	size_t end;

	if (find(pending, cell, tree, key, &entry, &end))
		retire(pending, cell->at, end);
	append(pending, cell, HS_REDO_DEL, tree, key, 0);
}

void hs_pending_redo_clear(struct hs_pending_redo *pending)
{
	forget(pending);
	pending->entries++;
	hs_redo_entry_append(&pending->buf, HS_REDO_CLEAR, 0, pending->store,
			     (struct hs_bytes){NULL, 0}, 0);
}

void hs_pending_redo_nested_begin(struct hs_pending_redo *pending)
{
	pending->nested_at = pending->buf.len;
	pending->nested_entries = pending->entries;
	pending->nested_void_bytes = pending->void_bytes;
}

void hs_pending_redo_nested_commit(struct hs_pending_redo *pending)
{
	pending->nested_at = 0;
}

void hs_pending_redo_nested_abort(struct hs_pending_redo *pending)
{
	forget(pending);
	pending->buf.len = pending->nested_at;
	pending->entries = pending->nested_entries;
	pending->void_bytes = pending->nested_void_bytes;
	pending->nested_at = 0;
}

struct hs_bytes hs_pending_redo_pack(struct hs_pending_redo *pending)
{
	size_t at = 0, to = 0;

	if (pending->void_bytes == 0)
		return hs_buf_bytes(&pending->buf);
	while (at < pending->buf.len) {
		struct hs_redo_entry entry;
		size_t next = entry_at(pending, at, &entry);

		if (entry.op != HS_REDO_VOID) {
			memmove(pending->buf.data + to, pending->buf.data + at, next - at);
			to += next - at;
		}
		at = next;
	}
	pending->buf.len = to;
	pending->void_bytes = 0;
	forget(pending);
	return hs_buf_bytes(&pending->buf);
}

void hs_pending_redo_reset(struct hs_pending_redo *pending, size_t keep)
{
	hs_buf_clear(&pending->buf, keep);
	pending->entries = 0;
	pending->void_bytes = 0;
	pending->replaced_bytes = 0;
	pending->nested_at = 0;
	forget(pending);
}
