/* Pending redo entries: changes that a store's writer has made and the log does not have yet, in the layout of
 * redo.h. A record holds after-images, so only the last of several changes of one key counts. A change therefore
 * replaces an earlier change of the same key: a counter that is incremented a thousand times between two syncs is
 * one entry.
 *
 *     put a 1  put b 1  put a 2      a 2 │ b 1           the same length: overwritten in place
 *     put a 1  put b 1  put a 10     ░░░ │ b 1 │ a 10    another length: appended, the old one void
 *     clear                          … │ clear │ …       entries before it are not touched again
 *
 * A table of fixed size remembers where the last entry of a key is, until another key takes the cell. Afterwards a
 * change of the first key is appended as a second entry, behind the older one: replaying both has the same result
 * as replaying the newer one.
 *
 * This module knows no LMDB and no commands. One thread, the writer's. The struct owns its buffer; the bytes that
 * pack returns are valid until the next call that changes the buffer. */
#ifndef HS_ENGINE_EMBEDDED_PENDING_REDO_H
#define HS_ENGINE_EMBEDDED_PENDING_REDO_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HS_PENDING_REDO_CELLS = 1024 };

struct hs_pending_redo_cell {
	uint32_t age; /* age of the table when the cell was set; a cell with another age is empty */
	uint32_t at;  /* offset of the entry in `buf` */
};

struct hs_pending_redo {
	struct hs_buf buf;
	uint16_t store;
	size_t entries;	   /* number of entries that are not void */
	size_t void_bytes; /* bytes of void entries in `buf` */
	/* bytes of entries that an entry of another length replaced, since the last reset */
	uint64_t replaced_bytes;
	struct hs_pending_redo_cell *cells;
	uint32_t age;
	/* The state before a nested transaction. As long as it is open, entries before nested_at are not changed.
	 * nested_at 0: none is open. */
	size_t nested_at, nested_entries, nested_void_bytes;
};

void hs_pending_redo_init(struct hs_pending_redo *pending, uint16_t store);
void hs_pending_redo_deinit(struct hs_pending_redo *pending);

/* Adds a put with a value of `value_bytes`; the caller writes the value to buf.data + *value_at. False: the value
 * takes the place of an earlier value of the same key and length. The key must not lie in `buf`. */
bool hs_pending_redo_put(struct hs_pending_redo *pending, uint8_t tree, struct hs_bytes key,
			 size_t value_bytes, size_t *value_at);
void hs_pending_redo_del(struct hs_pending_redo *pending, uint8_t tree, struct hs_bytes key);
void hs_pending_redo_clear(struct hs_pending_redo *pending);

/* Begins a nested transaction. Commit retains the entries added in it, abort drops them. */
void hs_pending_redo_nested_begin(struct hs_pending_redo *pending);
void hs_pending_redo_nested_commit(struct hs_pending_redo *pending);
void hs_pending_redo_nested_abort(struct hs_pending_redo *pending);

/* Drops the void entries and returns the rest, which is the store's part of a log record. Valid until the next
 * change. */
struct hs_bytes hs_pending_redo_pack(struct hs_pending_redo *pending);

/* Drops all entries after they were logged or given up. `keep`: if the buffer has at most this many bytes, it
 * stays allocated. */
void hs_pending_redo_reset(struct hs_pending_redo *pending, size_t keep);

/* Bytes of all changes, replaced entries included: the store wrote pages for all of them. */
static inline uint64_t hs_pending_redo_bytes(const struct hs_pending_redo *pending)
{
	return pending->buf.len - pending->void_bytes + pending->replaced_bytes;
}

#endif
