/* Keys changed in a group of writes, for CLIENT TRACKING invalidations: each name once, with the
 * client that changed it. The keyspace adds every changed key while hs_keyspace.changed is set,
 * whatever the command is, so no command can be forgotten.
 *
 * One thread owns it: the store's writer, or in engine/redis the thread that drives the subscriber. All zeros but
 * `seed` is a valid empty struct. It is bounded: beyond HS_CHANGED_KEYS_MAX keys or HS_CHANGED_NAMES_BYTES_MAX
 * bytes of names it becomes "everything changed", which is always correct. It is not undone with a transaction:
 * it may report a change that did not happen. */
#ifndef HS_KEYSPACE_CHANGED_H
#define HS_KEYSPACE_CHANGED_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_changed_key {
	uint64_t hash;
	size_t at, len; /* its name is at this offset of `names` */
	uint64_t by;	/* id of the client that changed it; 0: unknown, or several clients */
	uint32_t cell;
};

struct hs_changed {
	uint64_t seed;	 /* of the hash; secret, so that clients cannot cause collisions */
	uint64_t client; /* id of the client whose command runs; 0: none, as in a sweep */
	bool all;	 /* the whole store changed (FLUSHALL), and after that the keys in `keys` */
	struct hs_buf names;
	struct hs_changed_key *keys;
	uint32_t count, cap;
	uint32_t *cells; /* a hash table of index + 1 into `keys`; 0: empty */
	uint32_t mask;
};

void hs_changed_add(struct hs_changed *changed, struct hs_bytes key);
void hs_changed_add_all(struct hs_changed *changed);

static inline bool hs_changed_empty(const struct hs_changed *changed)
{
	return !changed->all && changed->count == 0;
}

static inline struct hs_bytes hs_changed_name(const struct hs_changed *changed, uint32_t index)
{
	return (struct hs_bytes){changed->names.data + changed->keys[index].at,
				 changed->keys[index].len};
}

void hs_changed_clear(struct hs_changed *changed); /* empties it; large buffers are freed */
void hs_changed_deinit(struct hs_changed *changed);

#endif
