/* What workers share. Three tables that have nothing to do with each other but the hash.
 *
 * Stamps: why this is right. A stamp is one atomic word, so {begun, done} are of one moment. All that
 * touches it is sequentially consistent, which costs a hit nothing on the usual machines.
 *
 *   - A write is acknowledged behind its `done`: who asks because of the acknowledgement looks at the
 *     stamp behind it and sees another number than the one that any earlier reading was kept under.
 *   - A reading takes `done` before it is handed to an engine. If that is the number of after a write,
 *     the write had been answered before, so the reading is of what it left. If it is the one of before,
 *     the reading may be of either, and is over with the write's `done`.
 *   - `begun` is counted before a write is handed over. A write that finds begun = done before itself and
 *     begun one higher than that when it is answered, had no other beside it on this stamp: what it left
 *     behind is what is there, under the next `done`.
 *
 * A write of everything has a stamp of its own, and what callers see is the sum of it and their key's.
 * Both only grow, so that equal sums are of equal parts. Numbers wrap at 2^32: to be taken for current a
 * value must be looked at, for the first time since, after exactly as many writes. */
#include "absorb/shelf.h"

#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"

enum {
	STAMPS_BITS = 16,
	CELLS_BITS = 14,
	STAMPS = 1 << STAMPS_BITS,
	CELLS = 1 << CELLS_BITS,
};

/* Beside a worker's number, which is kept one up: 0 is nobody. */
static const uint32_t claim_waited = UINT32_C(1) << 31;

static const uint64_t one_begun = UINT64_C(1) << 32; /* `done` is the lower half */

struct cell {
	atomic_flag lock;
	_Atomic uint32_t claim;
	/* Changed under the lock; looked at without it to see whether there is anything at all. */
	struct hs_kept *_Atomic kept;
};

struct hs_shelf {
	uint64_t seed;
	_Atomic uint64_t bytes_max;
	_Atomic bool in_use;
	_Atomic uint64_t everything; /* the stamp of writes of everything */
	char apart[64];		     /* what is above is read at every hit, what is below changes */
	_Atomic uint64_t bytes;	     /* on the shelf */
	_Atomic uint32_t hand;	     /* the cell to be emptied next */
	_Atomic uint64_t stamps[STAMPS];
	struct cell cells[CELLS];
};

struct hs_shelf *hs_shelf_create(uint64_t seed, uint64_t bytes_max)
{
	struct hs_shelf *shelf = hs_mem_zalloc(sizeof *shelf);

	shelf->seed = seed;
	shelf->bytes_max = bytes_max;
	for (size_t i = 0; i < CELLS; i++)
		atomic_flag_clear(&shelf->cells[i].lock);
	return shelf;
}

void hs_shelf_destroy(struct hs_shelf **shelf)
{
	if (!*shelf)
		return;
	hs_shelf_clear(*shelf);
	hs_mem_free(shelf);
}

void hs_shelf_limit(struct hs_shelf *shelf, uint64_t bytes_max)
{
	atomic_store(&shelf->bytes_max, bytes_max);
}

void hs_shelf_use(struct hs_shelf *shelf, bool use)
{
	atomic_store(&shelf->in_use, use);
}

bool hs_shelf_in_use(const struct hs_shelf *shelf)
{
	return atomic_load(&shelf->in_use);
}

uint64_t hs_shelf_hash(const struct hs_shelf *shelf, struct hs_bytes key)
{
	return hs_hash(key, shelf->seed);
}

uint64_t hs_shelf_seed(const struct hs_shelf *shelf)
{
	return shelf->seed;
}

/* ---- stamps ---- */

static size_t stamp_of(uint64_t key_hash)
{
	return (size_t)(key_hash >> (64 - STAMPS_BITS)); /* caches use the lower bits */
}

static struct hs_stamp sum(uint64_t key, uint64_t everything)
{
	return (struct hs_stamp){
		.begun = (uint32_t)(key >> 32) + (uint32_t)(everything >> 32),
		.done = (uint32_t)key + (uint32_t)everything,
	};
}

static void add_done(_Atomic uint64_t *stamp)
{
	uint64_t now = atomic_load_explicit(stamp, memory_order_relaxed), next;

	do { /* in its half: it must not carry into the other */
		next = (now & ~(uint64_t)UINT32_MAX) | (uint32_t)(now + 1);
	} while (!atomic_compare_exchange_weak(stamp, &now, next));
}

struct hs_stamp hs_shelf_stamp(const struct hs_shelf *shelf, uint64_t key_hash)
{
	uint64_t everything = atomic_load(&shelf->everything);

	return sum(atomic_load(&shelf->stamps[stamp_of(key_hash)]), everything);
}

struct hs_stamp hs_shelf_begin(struct hs_shelf *shelf, uint64_t key_hash)
{
	uint64_t before = atomic_fetch_add(&shelf->stamps[stamp_of(key_hash)], one_begun);

	return sum(before, atomic_load(&shelf->everything));
}

void hs_shelf_begin_all(struct hs_shelf *shelf)
{
	atomic_fetch_add(&shelf->everything, one_begun);
}

void hs_shelf_end(struct hs_shelf *shelf, uint64_t key_hash)
{
	add_done(&shelf->stamps[stamp_of(key_hash)]);
}

void hs_shelf_end_all(struct hs_shelf *shelf)
{
	add_done(&shelf->everything);
}

/* ---- values ---- */

static struct cell *cell_of(struct hs_shelf *shelf, uint64_t signature)
{
	return &shelf->cells[signature % CELLS];
}

static void lock(struct cell *cell)
{
	while (atomic_flag_test_and_set_explicit(&cell->lock, memory_order_acquire))
		;
}

static void unlock(struct cell *cell)
{
	atomic_flag_clear_explicit(&cell->lock, memory_order_release);
}

static bool is_empty(const struct cell *cell)
{
	return !atomic_load_explicit(&cell->kept, memory_order_relaxed);
}

struct hs_kept *hs_shelf_get(struct hs_shelf *shelf, const struct hs_ask *ask)
{
	struct cell *cell = cell_of(shelf, ask->signature);
	struct hs_kept *kept;

	if (is_empty(cell))
		return NULL;
	lock(cell);
	kept = cell->kept;
	if (kept && hs_kept_is(kept, ask))
		hs_kept_ref(kept);
	else
		kept = NULL;
	unlock(cell);
	return kept;
}

/* Puts another into a cell, or nothing; what lay there is let go of behind the lock. */
static void exchange(struct hs_shelf *shelf, struct cell *cell, struct hs_kept *kept)
{
	struct hs_kept *old = cell->kept;

	cell->kept = kept;
	/* Within the lock: nobody may take off what is not counted yet. */
	if (kept)
		atomic_fetch_add(&shelf->bytes, kept->bytes);
	if (old)
		atomic_fetch_sub(&shelf->bytes, old->bytes);
	unlock(cell);
	hs_kept_unref(&old);
}

/* Empties cells one behind the other until the rest fits. Once round at most: others may put meanwhile,
 * and see to the rest. */
static void make_room(struct hs_shelf *shelf)
{
	for (size_t i = 0; i < CELLS && atomic_load(&shelf->bytes) > shelf->bytes_max; i++) {
		struct cell *cell = &shelf->cells[atomic_fetch_add(&shelf->hand, 1) % CELLS];

		if (is_empty(cell))
			continue;
		lock(cell);
		exchange(shelf, cell, NULL);
	}
}

/* Whether what lies there is the same, and newer. Two workers may have read it one behind the other. */
static bool is_newer(const struct hs_kept *there, const struct hs_kept *kept)
{
	return there->signature == kept->signature && there->read_us > kept->read_us &&
	       (int32_t)(there->done - kept->done) >= 0 && !there->dead;
}

void hs_shelf_put(struct hs_shelf *shelf, struct hs_kept *kept)
{
	struct cell *cell = cell_of(shelf, kept->signature);
	struct hs_kept *there;

	if (kept->bytes > shelf->bytes_max)
		return;
	lock(cell);
	there = cell->kept;
	if (there == kept || (there && is_newer(there, kept))) {
		unlock(cell);
		return;
	}
	hs_kept_ref(kept);
	exchange(shelf, cell, kept);
	make_room(shelf);
}

void hs_shelf_clear(struct hs_shelf *shelf)
{
	for (size_t i = 0; i < CELLS; i++) {
		lock(&shelf->cells[i]);
		exchange(shelf, &shelf->cells[i], NULL);
	}
}

/* ---- claims ---- */

bool hs_shelf_claim(struct hs_shelf *shelf, uint64_t signature, uint32_t worker, uint32_t *by)
{
	struct cell *cell = cell_of(shelf, signature);
	uint32_t claim = 0;

	hs_check(worker < HS_WORKERS_MAX);
	while (!atomic_compare_exchange_strong(&cell->claim, &claim, worker + 1)) {
		uint32_t waited = claim | claim_waited;

		*by = (claim & ~claim_waited) - 1;
		/* Our own claim is nobody's to wait for. And it must still be there to be waited for. */
		if (*by == worker || claim == waited ||
		    atomic_compare_exchange_strong(&cell->claim, &claim, waited))
			return false;
		claim = 0;
	}
	return true;
}

bool hs_shelf_release(struct hs_shelf *shelf, uint64_t signature, uint32_t worker)
{
	uint32_t claim = atomic_exchange(&cell_of(shelf, signature)->claim, 0);

	hs_check((claim & ~claim_waited) == worker + 1);
	return claim & claim_waited;
}
