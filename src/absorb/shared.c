/* Three tables that the workers share: versions, stored entries, claims. They have only the hash in common.
 *
 * Why versions are correct. A version is one atomic word, so {begun, done} are read at one moment. All accesses
 * are sequentially consistent, which costs a hit nothing on common processors.
 *
 * - `done` is incremented before a write is acknowledged. So a client that reads after the acknowledgement sees
 *   another `done` than the one that any earlier fetch was cached under.
 * - A fetch loads `done` before it is handed to an engine. If it loads the value after a write, the write was
 *   answered before, so the fetch sees its result. If it loads the value before the write, the fetch may see
 *   either state, and the entry becomes invalid when the write increments `done`.
 * - `begun` is incremented before a write is handed over. If a write finds begun = done before itself, and
 *   begun one higher when it is answered, no other write of this version was in flight with it. Then its value
 *   is the current one, valid under the next `done`.
 *
 * Writes to all keys have a version of their own; callers see the sum of it and their key's. Both counters only
 * grow, so equal sums mean equal counters. They wrap at 2^32: an old entry could pass only if it is first
 * looked at after exactly 2^32 writes. */
#include "absorb/shared.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"

enum {
	VERSIONS_BITS = 16,
	CELLS_BITS = 14,
	VERSIONS = 1 << VERSIONS_BITS,
	CELLS = 1 << CELLS_BITS,
};

/* A claim: a flag that another worker waits, the worker's number plus one (0: no claim), and the bits of the
 * signature that the cell's index does not give. */
enum { CLAIM_SIGNATURE_BITS = 64 - CELLS_BITS, CLAIM_WORKER_BITS = CELLS_BITS - 1 };
static const uint64_t claim_waited = UINT64_C(1) << 63;
static const uint64_t claim_signature = (UINT64_C(1) << CLAIM_SIGNATURE_BITS) - 1;
_Static_assert(HS_WORKERS_MAX < 1 << CLAIM_WORKER_BITS, "a claim has room for a worker's number");

static const uint64_t one_begun = UINT64_C(1) << 32; /* `done` is the lower half */

struct cell {
	_Atomic bool lock;
	_Atomic uint64_t claim;
	/* Changed under the lock; read without it to skip empty cells. */
	struct hs_cache_entry *_Atomic entry;
};

struct hs_shared {
	uint64_t seed;
	_Atomic uint64_t bytes_max;
	_Atomic bool in_use;
	_Atomic uint64_t all_keys; /* version of the writes to all keys */
	char padding[64];	   /* separates fields read at every hit from fields that change */
	_Atomic uint64_t bytes;	   /* of stored entries */
	_Atomic uint32_t evict_next; /* next cell to empty */
	_Atomic uint64_t versions[VERSIONS];
	struct cell cells[CELLS];
};

struct hs_shared *hs_shared_create(uint64_t seed, uint64_t bytes_max)
{
	struct hs_shared *shared = hs_mem_zalloc(sizeof *shared);

	shared->seed = seed;
	shared->bytes_max = bytes_max;
	return shared;
}

void hs_shared_destroy(struct hs_shared **shared)
{
	if (!*shared)
		return;
	hs_shared_clear(*shared);
	hs_mem_free(shared);
}

void hs_shared_limit(struct hs_shared *shared, uint64_t bytes_max)
{
	atomic_store(&shared->bytes_max, bytes_max);
}

void hs_shared_use(struct hs_shared *shared, bool use)
{
	atomic_store(&shared->in_use, use);
}

bool hs_shared_in_use(const struct hs_shared *shared)
{
	return atomic_load(&shared->in_use);
}

uint64_t hs_shared_hash(const struct hs_shared *shared, struct hs_bytes key)
{
	return hs_hash(key, shared->seed);
}

uint64_t hs_shared_seed(const struct hs_shared *shared)
{
	return shared->seed;
}

/* ---- versions ---- */

static size_t version_at(uint64_t key_hash)
{
	return (size_t)(key_hash >> (64 - VERSIONS_BITS)); /* worker caches use the lower bits */
}

static struct hs_version sum(uint64_t key, uint64_t all_keys)
{
	return (struct hs_version){
		.begun = (uint32_t)(key >> 32) + (uint32_t)(all_keys >> 32),
		.done = (uint32_t)key + (uint32_t)all_keys,
	};
}

static void add_done(_Atomic uint64_t *version)
{
	uint64_t now = atomic_load_explicit(version, memory_order_relaxed), next;

	do { /* within its half: it must not carry into `begun` */
		next = (now & ~(uint64_t)UINT32_MAX) | (uint32_t)(now + 1);
	} while (!atomic_compare_exchange_weak(version, &now, next));
}

struct hs_version hs_shared_version(const struct hs_shared *shared, uint64_t key_hash)
{
	uint64_t all_keys = atomic_load(&shared->all_keys);

	return sum(atomic_load(&shared->versions[version_at(key_hash)]), all_keys);
}

struct hs_version hs_shared_write_begin(struct hs_shared *shared, uint64_t key_hash)
{
	uint64_t before = atomic_fetch_add(&shared->versions[version_at(key_hash)], one_begun);

	return sum(before, atomic_load(&shared->all_keys));
}

void hs_shared_write_begin_all(struct hs_shared *shared)
{
	atomic_fetch_add(&shared->all_keys, one_begun);
}

void hs_shared_write_end(struct hs_shared *shared, uint64_t key_hash)
{
	add_done(&shared->versions[version_at(key_hash)]);
}

void hs_shared_write_end_all(struct hs_shared *shared)
{
	add_done(&shared->all_keys);
}

/* ---- entries ---- */

static struct cell *cell_of(struct hs_shared *shared, uint64_t signature)
{
	return &shared->cells[signature % CELLS];
}

static void lock(struct cell *cell)
{
	while (atomic_exchange_explicit(&cell->lock, true, memory_order_acquire))
		;
}

static void unlock(struct cell *cell)
{
	atomic_store_explicit(&cell->lock, false, memory_order_release);
}

static bool is_empty(const struct cell *cell)
{
	return !atomic_load_explicit(&cell->entry, memory_order_relaxed);
}

struct hs_cache_entry *hs_shared_get(struct hs_shared *shared, const struct hs_cache_query *query)
{
	struct cell *cell = cell_of(shared, query->signature);
	struct hs_cache_entry *entry;

	if (is_empty(cell))
		return NULL;
	lock(cell);
	entry = cell->entry;
	if (entry && hs_cache_entry_matches(entry, query))
		hs_cache_entry_ref(entry);
	else
		entry = NULL;
	unlock(cell);
	return entry;
}

/* Replaces the cell's entry (NULL: empties it). Called with the lock held; unlocks, then drops the reference to
 * the old entry. */
static void replace_and_unlock(struct hs_shared *shared, struct cell *cell,
			       struct hs_cache_entry *entry)
{
	struct hs_cache_entry *old = cell->entry;

	cell->entry = entry;
	/* Adds the bytes before unlocking, or another thread could subtract them first. */
	if (entry)
		atomic_fetch_add(&shared->bytes, entry->bytes);
	if (old)
		atomic_fetch_sub(&shared->bytes, old->bytes);
	unlock(cell);
	hs_cache_entry_unref(&old);
}

/* Empties cells in turn until the stored entries fit. At most one round: other threads may put meanwhile, and
 * make room themselves. */
static void make_room(struct hs_shared *shared, uint64_t bytes_max)
{
	for (size_t i = 0; i < CELLS && atomic_load(&shared->bytes) > bytes_max; i++) {
		struct cell *cell =
			&shared->cells[atomic_fetch_add(&shared->evict_next, 1) % CELLS];

		if (is_empty(cell))
			continue;
		lock(cell);
		replace_and_unlock(shared, cell, NULL);
	}
}

/* Whether the stored entry is for the same query and newer. Two workers may have fetched it one after the
 * other. */
static bool is_newer(const struct hs_cache_entry *there, const struct hs_cache_entry *entry)
{
	return there->signature == entry->signature && there->read_us > entry->read_us &&
	       (int32_t)(there->done - entry->done) >= 0 && !there->invalid;
}

void hs_shared_put(struct hs_shared *shared, struct hs_cache_entry *entry)
{
	struct cell *cell = cell_of(shared, entry->signature);
	struct hs_cache_entry *there;

	if (entry->bytes > shared->bytes_max)
		return;
	lock(cell);
	there = cell->entry;
	if (there == entry || (there && is_newer(there, entry))) {
		unlock(cell);
		return;
	}
	hs_cache_entry_ref(entry);
	replace_and_unlock(shared, cell, entry);
	make_room(shared, shared->bytes_max);
}

void hs_shared_clear(struct hs_shared *shared)
{
	make_room(shared, 0);
}

/* ---- claims ---- */

static uint64_t claim_of(uint64_t signature, uint32_t worker)
{
	return (uint64_t)(worker + 1) << CLAIM_SIGNATURE_BITS | signature >> CELLS_BITS;
}

static uint32_t claimed_by(uint64_t claim)
{
	return (uint32_t)((claim & ~claim_waited) >> CLAIM_SIGNATURE_BITS) - 1;
}

bool hs_shared_claim(struct hs_shared *shared, uint64_t signature, uint32_t worker, uint32_t *by)
{
	struct cell *cell = cell_of(shared, signature);
	uint64_t ours = claim_of(signature, worker), claim = 0;

	hs_check(worker < HS_WORKERS_MAX);
	while (!atomic_compare_exchange_strong(&cell->claim, &claim, ours)) {
		uint64_t waited = claim | claim_waited;
		bool same = ((claim ^ ours) & claim_signature) == 0;

		*by = same ? claimed_by(claim) : worker;
		/* Does not wait for an own claim, nor for a claim of another signature. `claim_waited` is set
		 * only while the claim is still held, because its release reads the flag and sends the message.
		 * If the claim has ended meanwhile, this worker tries again. */
		if (*by == worker || claim == waited ||
		    atomic_compare_exchange_strong(&cell->claim, &claim, waited))
			return false;
		claim = 0;
	}
	return true;
}

bool hs_shared_release(struct hs_shared *shared, uint64_t signature, uint32_t worker)
{
	uint64_t claim = atomic_exchange(&cell_of(shared, signature)->claim, 0);

	hs_check((claim & ~claim_waited) == claim_of(signature, worker));
	return claim & claim_waited;
}
