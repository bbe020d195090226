/* The names of the keys that were changed, for whoever must be told: each once, with the client
 * that changed it. The keyspace adds to it on every change while a collection hangs on it
 * (hs_keyspace.changed), whatever the command: so no command can be forgotten.
 *
 * Owned by the store's writer, one thread. Empty when all but the seed is zero. Bounded: too many names
 * become "everything", which is always true to say. */
#ifndef HS_KEYSPACE_CHANGED_H
#define HS_KEYSPACE_CHANGED_H

#include "base/buf.h"
#include "base/bytes.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_changed_key {
	uint64_t hash;
	size_t at, len; /* its name in `names` */
	uint64_t by;	/* the client; 0: not known, or several */
	uint32_t cell;
};

struct hs_changed {
	uint64_t seed;	 /* of the hash: nobody must know where names land */
	uint64_t client; /* who changes keys now; 0: nobody in particular */
	bool all;	 /* everything changed, before what `keys` names */
	struct hs_buf names;
	struct hs_changed_key *keys;
	uint32_t count, cap;
	uint32_t *cells; /* a hash table: number of a key, +1; 0: none */
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

void hs_changed_clear(struct hs_changed *changed); /* empty again, its memory kept within reason */
void hs_changed_deinit(struct hs_changed *changed);

#endif
