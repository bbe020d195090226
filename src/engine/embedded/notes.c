#include "engine/embedded/notes.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "engine/embedded/redo.h"

#include <string.h>

void hs_notes_init(struct hs_notes *notes, uint16_t store)
{
	memset(notes, 0, sizeof *notes);
	notes->store = store;
	notes->age = 1;
	notes->places = hs_mem_zalloc(HS_NOTES_PLACES * sizeof *notes->places);
}

void hs_notes_deinit(struct hs_notes *notes)
{
	hs_buf_deinit(&notes->buf);
	hs_mem_free(&notes->places);
}

static void forget(struct hs_notes *notes)
{
	if (++notes->age != 0)
		return;
	memset(notes->places, 0, HS_NOTES_PLACES * sizeof *notes->places);
	notes->age = 1;
}

static struct hs_notes_place *place_of(struct hs_notes *notes, uint8_t tree, struct hs_bytes key)
{
	return &notes->places[hs_hash(key, tree) % HS_NOTES_PLACES];
}

/* Takes the entry that begins at `at` and returns where the next one does. */
static size_t entry_at(const struct hs_notes *notes, size_t at, struct hs_redo_entry *entry)
{
	struct hs_bytes rest = {notes->buf.data + at, notes->buf.len - at};
	bool entry_is_whole = hs_redo_entry_take(&rest, entry) == 1;

	hs_check(entry_is_whole);
	return notes->buf.len - rest.len;
}

/* The entry of a key that may still be changed. */
static bool find(const struct hs_notes *notes, const struct hs_notes_place *place, uint8_t tree,
		 struct hs_bytes key, struct hs_redo_entry *entry, size_t *end)
{
	if (place->age != notes->age || place->at < notes->tried_at)
		return false;
	*end = entry_at(notes, place->at, entry);
	return entry->tree == tree && hs_bytes_equal(entry->key, key);
}

/* Another entry takes its place in the record, though not in the buffer. */
static void retire(struct hs_notes *notes, size_t at, size_t end)
{
	notes->entries--;
	notes->gone_bytes += end - at;
	if (end == notes->buf.len) {
		notes->buf.len = at;
		return;
	}
	hs_redo_entry_void(&notes->buf, at);
	notes->void_bytes += end - at;
}

static size_t append(struct hs_notes *notes, struct hs_notes_place *place, enum hs_redo_op op,
		     uint8_t tree, struct hs_bytes key, size_t value_bytes)
{
	size_t at = notes->buf.len;

	*place = (struct hs_notes_place){at <= UINT32_MAX ? notes->age : 0, (uint32_t)at};
	notes->entries++;
	return hs_redo_entry_append(&notes->buf, op, tree, notes->store, key, value_bytes);
}

bool hs_notes_put(struct hs_notes *notes, uint8_t tree, struct hs_bytes key, size_t value_bytes,
		  size_t *value_at)
{
	struct hs_notes_place *place = place_of(notes, tree, key);
	struct hs_redo_entry entry;
	size_t end;

	if (find(notes, place, tree, key, &entry, &end)) {
		if (entry.op == HS_REDO_PUT && entry.value.len == value_bytes) {
			*value_at = end - value_bytes;
			return false;
		}
		retire(notes, place->at, end);
	}
	*value_at = append(notes, place, HS_REDO_PUT, tree, key, value_bytes);
	return true;
}

void hs_notes_del(struct hs_notes *notes, uint8_t tree, struct hs_bytes key)
{
	struct hs_notes_place *place = place_of(notes, tree, key);
	struct hs_redo_entry entry;
	size_t end;

	if (find(notes, place, tree, key, &entry, &end))
		retire(notes, place->at, end);
	append(notes, place, HS_REDO_DEL, tree, key, 0);
}

void hs_notes_clear(struct hs_notes *notes)
{
	forget(notes);
	notes->entries++;
	hs_redo_entry_append(&notes->buf, HS_REDO_CLEAR, 0, notes->store,
			     (struct hs_bytes){NULL, 0}, 0);
}

void hs_notes_try(struct hs_notes *notes)
{
	notes->tried_at = notes->buf.len;
	notes->tried_entries = notes->entries;
	notes->tried_void_bytes = notes->void_bytes;
}

void hs_notes_try_keep(struct hs_notes *notes)
{
	notes->tried_at = 0;
}

void hs_notes_try_drop(struct hs_notes *notes)
{
	forget(notes);
	notes->buf.len = notes->tried_at;
	notes->entries = notes->tried_entries;
	notes->void_bytes = notes->tried_void_bytes;
	notes->tried_at = 0;
}

struct hs_bytes hs_notes_pack(struct hs_notes *notes)
{
	size_t at = 0, to = 0;

	if (notes->void_bytes == 0)
		return hs_buf_bytes(&notes->buf);
	while (at < notes->buf.len) {
		struct hs_redo_entry entry;
		size_t next = entry_at(notes, at, &entry);

		if (entry.op != HS_REDO_VOID) {
			memmove(notes->buf.data + to, notes->buf.data + at, next - at);
			to += next - at;
		}
		at = next;
	}
	notes->buf.len = to;
	notes->void_bytes = 0;
	forget(notes);
	return hs_buf_bytes(&notes->buf);
}

void hs_notes_reset(struct hs_notes *notes, size_t keep)
{
	hs_buf_clear(&notes->buf, keep);
	notes->entries = 0;
	notes->void_bytes = 0;
	notes->gone_bytes = 0;
	notes->tried_at = 0;
	forget(notes);
}
