/* What a store's writer has changed and the log does not have yet: the entries of the next record,
 * as redo.h lays them out. A record holds after-images, so of several changes of one key only the
 * last one counts; the entries of one store name different keys, so their order does not. Hence a
 * change takes the place of the one before it of the same key: a key that is counted up a thousand
 * times between two syncs is one entry.
 *
 *     put a 1  put b 1  put a 2      a 2 │ b 1           the same length: in its place
 *     put a 1  put b 1  put a 10     ░░░ │ b 1 │ a 10    another: behind, the old one void
 *     clear                          … │ clear │ …       nothing before it is touched any more
 *
 * The old entry is found through a table of fixed size that remembers where the last one of a key
 * is, as long as no other key wants the place. What it has forgotten is simply noted twice, the
 * newer one behind the older: replaying both gives the same.
 *
 * It knows no LMDB and no commands. One thread, the writer's. */
#ifndef HS_ENGINE_EMBEDDED_PENDING_REDO_H
#define HS_ENGINE_EMBEDDED_PENDING_REDO_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HS_PENDING_REDO_CELLS = 1024 };

struct hs_pending_redo_cell {
	uint32_t age; /* of the table when it was remembered; another one's means nothing */
	uint32_t at;  /* where the entry begins */
};

struct hs_pending_redo {
	struct hs_buf buf;
	uint16_t store;
	size_t entries;	   /* that count */
	size_t void_bytes; /* of those that do not, still in `buf` */
	uint64_t
		replaced_bytes; /* of all that were replaced by others of another length, since clear */
	struct hs_pending_redo_cell *cells;
	uint32_t age;
	/* While something is tried out: what was there before, which may not change. */
	size_t nested_at, nested_entries, nested_void_bytes;
};

void hs_pending_redo_init(struct hs_pending_redo *pending, uint16_t store);
void hs_pending_redo_deinit(struct hs_pending_redo *pending);

/* Notes a value of so many bytes and says where in `buf` they go. False if that is in place of
 * others, as many, of the same key. The key must not lie in `buf`. */
bool hs_pending_redo_put(struct hs_pending_redo *pending, uint8_t tree, struct hs_bytes key,
			 size_t value_bytes, size_t *value_at);
void hs_pending_redo_del(struct hs_pending_redo *pending, uint8_t tree, struct hs_bytes key);
void hs_pending_redo_clear(struct hs_pending_redo *pending);

/* From here on until one of the others is called, what is noted can be taken back alone. */
void hs_pending_redo_nested_begin(struct hs_pending_redo *pending);
void hs_pending_redo_nested_commit(struct hs_pending_redo *pending);
void hs_pending_redo_nested_abort(struct hs_pending_redo *pending);

/* The entries that count, and nothing else: the store's part of a record, as long as nothing else
 * is noted. */
struct hs_bytes hs_pending_redo_pack(struct hs_pending_redo *pending);

/* They are logged, or lost: begins anew. Keeps memory up to `keep` bytes. */
void hs_pending_redo_reset(struct hs_pending_redo *pending, size_t keep);

/* How much was noted, what was replaced included: the stores' pages saw all of it. */
static inline uint64_t hs_pending_redo_bytes(const struct hs_pending_redo *pending)
{
	return pending->buf.len - pending->void_bytes + pending->replaced_bytes;
}

#endif
