#include "engine/embedded/store.h"

#include "base/err.h"
#include "base/limits.h"

#include "base/mem.h"
#include "engine/embedded/redo.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	PINS = 2,	   /* snapshots: the checkpoint on disk, and the one being made */
	COMMITTER = 1,	   /* snapshot of the committer on a store that was given up */
	READERS_SPARE = 2, /* snapshots for LMDB's own tools on a running server */
	PENDING_BUF_BYTES = 1 << 20,
	/* Estimate of the pages that a commit writes: a leaf and a branch for each changed entry; the roots and
	 * the list of free pages for each commit. */
	PAGES_PER_CHANGE = 2,
	PAGES_PER_COMMIT = 8,
	/* Upper bound of the pages that a commit writes, for reserving room on disk. */
	PAGES_PER_CHANGE_MAX = 4,
	PAGES_PER_COMMIT_MAX = 64,
	KEPT_CHANGES_MAX = 32768,
};

#define POSTPONED_BYTES_MAX (8 * HS_MIB)
/* Reserved for deletes, which need new pages before they free any. */
#define DELETE_ROOM_BYTES HS_MIB
#define HEADROOM_BYTES_MIN (64 * HS_MIB)

const char *const hs_store_trees[HS_KV_TREES] = {
	[HS_KV_KEYS] = "keys",
	[HS_KV_EXPIRES] = "expires",
};

void hs_store_name(char *name, size_t size, uint16_t id)
{
	snprintf(name, size, "store-%03u", (unsigned)id);
}

/* Compares bytes like LMDB's own compare. The first eight bytes, which hold slot and hash or a time, are compared
 * as one number: this decides nearly always, and a lookup compares ten times or more. */
static int compare(const MDB_val *a, const MDB_val *b)
{
	size_t len = a->mv_size < b->mv_size ? a->mv_size : b->mv_size;
	uint64_t first, second;
	int order;

	if (__builtin_expect(len >= sizeof first, 1)) {
		memcpy(&first, a->mv_data, sizeof first);
		memcpy(&second, b->mv_data, sizeof second);
		if (first != second)
			return be64toh(first) < be64toh(second) ? -1 : 1;
	}
	order = memcmp(a->mv_data, b->mv_data, len);
	return order ? order : (a->mv_size > b->mv_size) - (a->mv_size < b->mv_size);
}

int hs_store_open_trees(MDB_txn *txn, unsigned flags, MDB_dbi trees[HS_KV_TREES])
{
	int rc = 0;

	for (int tree = 0; tree < HS_KV_TREES && rc == 0; tree++)
		rc = mdb_dbi_open(txn, hs_store_trees[tree], flags, &trees[tree]);
	return rc;
}

static int make_trees(struct hs_store *store)
{
	MDB_txn *txn;
	int rc = mdb_txn_begin(store->env, NULL, 0, &txn);

	if (rc != 0)
		return rc;
	rc = hs_store_open_trees(txn, MDB_CREATE, store->trees);
	for (int tree = 0; tree < HS_KV_TREES && rc == 0; tree++)
		rc = mdb_set_compare(txn, store->trees[tree], compare);
	if (rc != 0) {
		mdb_txn_abort(txn);
		return rc;
	}
	return mdb_txn_commit(txn);
}

static size_t map_bytes(const struct hs_store *store)
{
	uint64_t bytes = store->bytes_max + store->headroom_bytes;

	return bytes - bytes % HS_MIB;
}

static int open_env(struct hs_store *store, uint32_t readers)
{
	MDB_stat stat;
	int rc = mdb_env_create(&store->env);

	if (rc != 0)
		return rc;
	if ((rc = mdb_env_set_maxdbs(store->env, HS_KV_TREES)) != 0 ||
	    (rc = mdb_env_set_maxreaders(store->env, readers + PINS + COMMITTER + HS_STORE_LOANS +
							     READERS_SPARE)) != 0 ||
	    (rc = mdb_env_set_mapsize(store->env, map_bytes(store))) != 0)
		return rc;
	/* Not WRITEMAP, because with it a full disk raises SIGBUS. NORDAHEAD, because keys lie in hash order, so
	 * the neighbours of a key are of no use. */
	rc = mdb_env_open(store->env, store->path,
			  MDB_NOSUBDIR | MDB_NOSYNC | MDB_NOTLS | MDB_NORDAHEAD, 0600);
	if (rc != 0 || (rc = mdb_env_stat(store->env, &stat)) != 0)
		return rc;
	store->page_bytes = stat.ms_psize;
	return make_trees(store);
}

static void count(struct hs_store *store, MDB_txn *txn)
{
	MDB_stat stat;

	if (mdb_stat(txn, store->trees[HS_KV_KEYS], &stat) == 0)
		hs_counter_set(&store->keys, stat.ms_entries);
	if (mdb_stat(txn, store->trees[HS_KV_EXPIRES], &stat) == 0)
		hs_counter_set(&store->expires, stat.ms_entries);
	hs_counter_set(&store->bytes_used, hs_store_used(store));
}

int hs_store_open(struct hs_store *store, uint16_t id, const char *folder, uint64_t bytes_max,
		  uint32_t readers, struct hs_fault *fault)
{
	char name[16];
	int rc;

	memset(store, 0, sizeof *store);
	store->id = id;
	store->bytes_max = bytes_max;
	store->headroom_bytes = HEADROOM_BYTES_MIN + bytes_max / 4;
	store->write.kv.calls = &hs_store_write_calls;
	store->write.store = store;
	hs_pending_redo_init(&store->write.pending, id);
	store->changed_in = hs_mem_zalloc(HS_STORE_CHANGED_CELLS * sizeof *store->changed_in);
	hs_store_name(name, sizeof name, id);
	if (!hs_file_path(store->path, folder, name))
		return hs_fault_set(fault, HS_EINVAL, "the path of '%s' is too long", folder);

	rc = open_env(store, readers);
	if (rc != 0) {
		hs_fault_set(fault, HS_EIO, "cannot open '%s': %s", store->path, mdb_strerror(rc));
		if (store->env)
			mdb_env_close(store->env);
		store->env = NULL;
		return HS_EIO;
	}
	rc = hs_store_begin(store);
	if (rc != 0)
		return hs_fault_set(fault, rc, "cannot read '%s': %s", store->path,
				    hs_store_failure_text(store));
	count(store, store->write.txn);
	hs_store_abort(store);
	return 0;
}

void hs_store_close(struct hs_store *store)
{
	hs_mem_free(&store->changed_in);
	hs_pending_redo_deinit(&store->write.pending);
	if (!store->env)
		return;
	hs_store_abort(store);
	if (store->pin)
		mdb_txn_abort(store->pin);
	if (store->pin_next)
		mdb_txn_abort(store->pin_next);
	mdb_env_close(store->env);
	if (store->fallback_memory.env)
		mdb_env_close(store->fallback_memory.env);
	hs_buf_deinit(&store->write.postponed);
	memset(store, 0, sizeof *store);
}

const char *hs_store_failure_text(const struct hs_store *store)
{
	return mdb_strerror(store->write.failure);
}

static int failed(struct hs_store *store, int rc)
{
	if (rc != 0)
		store->write.failure = rc;
	return hs_store_error(rc);
}

/* Clears the state of a transaction that has ended. LMDB has freed its cursors. */
static void reset(struct hs_store_write *write)
{
	write->txn = NULL;
	write->outer = NULL;
	memset(write->cursors, 0, sizeof write->cursors);
	hs_pending_redo_reset(&write->pending, PENDING_BUF_BYTES);
	hs_buf_clear(&write->postponed, PENDING_BUF_BYTES);
	write->postponed_synced = 0;
	write->postponed_replaced_bytes = 0;
	write->room = NULL;
	write->changed = 0;
}

static void close_cursors(struct hs_store_write *write)
{
	for (int tree = 0; tree < HS_KV_TREES; tree++)
		if (write->cursors[tree])
			mdb_cursor_close(write->cursors[tree]);
	memset(write->cursors, 0, sizeof write->cursors);
}

int hs_store_begin(struct hs_store *store)
{
	hs_check(!store->write.txn);
	store->write.failure = 0;
	return failed(store, mdb_txn_begin(store->env, NULL, 0, &store->write.txn));
}

int hs_store_commit(struct hs_store *store)
{
	struct hs_store_write *write = &store->write;
	uint64_t churn =
		(write->changed * PAGES_PER_CHANGE + PAGES_PER_COMMIT) * store->page_bytes +
		hs_store_write_bytes(write);
	int rc;

	hs_check(write->txn && !write->outer);
	close_cursors(write);
	count(store, write->txn);
	atomic_store_explicit(&store->visible_ms, write->latest_ms, memory_order_release);
	rc = mdb_txn_commit(write->txn);
	if (rc == 0) {
		reset(write);
	} else {
		/* The postponed changes are still needed, because hs_store_rollback makes them again. */
		write->txn = NULL;
		memset(write->cursors, 0, sizeof write->cursors);
	}
	/* The pages of a failed commit do not count, because a later commit may write to the same pages again. */
	if (rc == 0) {
		store->churn_bytes += churn;
		atomic_fetch_add_explicit(&store->commits, 1, memory_order_release);
	}
	return failed(store, rc);
}

void hs_store_abort(struct hs_store *store)
{
	struct hs_store_write *write = &store->write;

	if (write->outer)
		hs_store_nested_abort(store);
	if (!write->txn)
		return;
	close_cursors(write);
	mdb_txn_abort(write->txn);
	reset(write);
}

/* Allocates disk blocks for `more` bytes behind the last committed page, so that a later commit cannot fail for
 * want of room. Returns 0, or MDB_MAP_FULL or errno if there is no room. */
static int set_aside(struct hs_store *store, uint64_t more)
{
	MDB_envinfo info;
	mdb_filehandle_t fd;
	uint64_t end, target;

	if (mdb_env_info(store->env, &info) != 0 || mdb_env_get_fd(store->env, &fd) != 0)
		return EIO;
	end = (info.me_last_pgno + 1) * store->page_bytes + more;
	if (end > info.me_mapsize)
		return MDB_MAP_FULL;
	if (end <= store->allocated_bytes)
		return 0;
	target = end + end / 8;
	target += HS_MIB - target % HS_MIB;
	if (target > info.me_mapsize)
		target = info.me_mapsize;
	if (fallocate(fd, 0, (off_t)store->allocated_bytes,
		      (off_t)(target - store->allocated_bytes)) != 0)
		return errno;
	store->allocated_bytes = target;
	return 0;
}

/* An upper bound of the bytes that the commit may write if `more` bytes of changes are added. */
static uint64_t commit_bytes_max(const struct hs_store *store, uint64_t more)
{
	const struct hs_store_write *write = &store->write;
	uint64_t copies = write->changed * PAGES_PER_CHANGE_MAX * store->page_bytes;
	uint64_t tree = hs_counter_get(&store->bytes_used);

	/* A commit writes each page of the tree at most once, and pages for new entries. */
	return (copies < tree ? copies : tree) + PAGES_PER_COMMIT_MAX * store->page_bytes +
	       2 * (hs_store_write_bytes(write) + more);
}

bool hs_store_disk_full(struct hs_store *store, uint64_t more)
{
	uint64_t need = commit_bytes_max(store, more) + DELETE_ROOM_BYTES, used;
	int rc = set_aside(store, need);
	MDB_envinfo info;

	if (rc == MDB_MAP_FULL || hs_store_error(rc) != HS_EFULL ||
	    mdb_env_info(store->env, &info) != 0)
		return false;
	/* The commit can also use pages inside the file that neither a tree nor a pin reaches. */
	used = store->write.txn ? hs_store_used(store) : hs_counter_get(&store->bytes_used);
	if ((info.me_last_pgno + 1) * store->page_bytes >= used + store->churn_bytes + need)
		return false;
	store->write.failure = ENOSPC;
	return true;
}

bool hs_store_can_postpone(struct hs_store *store)
{
	const struct hs_store_write *write = &store->write;
	uint64_t commits = atomic_load_explicit(&store->commits, memory_order_relaxed);

	/* A clear makes LMDB write a long list of free pages, for which no room on disk is reserved, so the commit
	 * may fail. A postponed commit must not fail: the clear is committed with its group. */
	if (atomic_load_explicit(&store->cleared_in, memory_order_relaxed) == (uint32_t)commits + 1)
		return false;
	return write->changed <= KEPT_CHANGES_MAX &&
	       hs_store_write_bytes(write) <= POSTPONED_BYTES_MAX &&
	       set_aside(store, commit_bytes_max(store, 0)) == 0;
}

/* Moves the pending changes to `postponed`. */
static void append_to_postponed(struct hs_store *store)
{
	struct hs_store_write *write = &store->write;

	write->postponed_synced = write->postponed.len;
	hs_buf_append_bytes(&write->postponed, hs_pending_redo_pack(&write->pending));
	write->postponed_replaced_bytes += write->pending.replaced_bytes;
	hs_pending_redo_reset(&write->pending, POSTPONED_BYTES_MAX);
	/* Set before any client is answered, and after changed_in: a reader that sees this number sees the marks,
	 * too. */
	atomic_store_explicit(&store->pending_commit,
			      atomic_load_explicit(&store->commits, memory_order_relaxed) + 1,
			      memory_order_release);
}

void hs_store_postpone_commit(struct hs_store *store)
{
	hs_store_note_last_put(store);
	close_cursors(&store->write);
	count(store, store->write.txn);
	append_to_postponed(store);
}

void hs_store_drop_last_postponed(struct hs_store *store)
{
	store->write.postponed.len = store->write.postponed_synced;
}

void hs_store_postpone_failed_commit(struct hs_store *store)
{
	hs_check(!store->write.txn && !store->write.room);
	append_to_postponed(store);
}

static int apply_postponed(struct hs_store *store, struct hs_bytes rest)
{
	struct hs_redo_entry entry;
	int rc = hs_store_begin(store);

	while (rc == 0) {
		rc = hs_redo_entry_take(&rest, &entry);
		if (rc <= 0)
			break;
		store->write.changed++;
		rc = hs_store_apply(store, &entry);
	}
	return rc;
}

int hs_store_rollback(struct hs_store *store)
{
	struct hs_store_write *write = &store->write;
	struct hs_buf postponed = write->postponed;
	size_t synced = write->postponed_synced;
	int failure = write->failure, rc = 0;

	write->postponed = (struct hs_buf){0};
	hs_store_abort(store);
	reset(write);
	if (postponed.len > 0)
		rc = apply_postponed(store, hs_buf_bytes(&postponed));
	write->postponed = postponed;
	write->postponed_synced = synced;
	if (rc == 0)
		write->failure = failure; /* the cause of the rollback, for messages */
	return rc;
}

/* After a failed write of a meta page LMDB refuses every transaction, new snapshots included. The pages of the
 * last commit are undamaged, and no thread writes to the file any more, so the file is opened once more for
 * reading. MDB_NOLOCK: a process may open LMDB's lock file only once. */
static void open_fallback(struct hs_store *store)
{
	struct hs_store_fallback *fallback = &store->fallback_memory;
	MDB_txn *txn = NULL;
	int rc = mdb_env_create(&fallback->env);

	if (rc != 0)
		return;
	if ((rc = mdb_env_set_maxdbs(fallback->env, HS_KV_TREES)) == 0 &&
	    (rc = mdb_env_set_mapsize(fallback->env, map_bytes(store))) == 0 &&
	    (rc = mdb_env_open(fallback->env, store->path,
			       MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD,
			       0600)) == 0)
		rc = mdb_txn_begin(fallback->env, NULL, MDB_RDONLY, &txn);
	if (rc == 0)
		rc = hs_store_open_trees(txn, 0, fallback->trees);
	if (rc == 0) {
		rc = mdb_txn_commit(txn);
		txn = NULL;
	}
	if (txn)
		mdb_txn_abort(txn);
	if (rc == 0) {
		atomic_store_explicit(&store->fallback, fallback, memory_order_release);
		return;
	}
	mdb_env_close(fallback->env);
	fallback->env = NULL;
}

void hs_store_give_up(struct hs_store *store)
{
	struct hs_store_write *write = &store->write;
	int failure = write->failure;

	hs_store_abort(store);
	reset(write);
	write->failure = failure;
	if (!store->fallback_memory.env)
		open_fallback(store);
}

int hs_store_nested_begin(struct hs_store *store)
{
	struct hs_store_write *write = &store->write;
	MDB_txn *inner;
	int rc;

	hs_check(write->txn && !write->outer);
	hs_store_note_last_put(store);
	close_cursors(write);
	rc = mdb_txn_begin(store->env, write->txn, 0, &inner);
	if (rc != 0)
		return failed(store, rc);
	write->outer = write->txn;
	write->txn = inner;
	hs_pending_redo_nested_begin(&write->pending);
	return 0;
}

int hs_store_nested_commit(struct hs_store *store)
{
	struct hs_store_write *write = &store->write;
	int rc;

	hs_check(write->outer);
	hs_store_note_last_put(store);
	close_cursors(write);
	rc = mdb_txn_commit(write->txn);
	write->txn = write->outer;
	write->outer = NULL;
	hs_pending_redo_nested_commit(&write->pending);
	return failed(store, rc);
}

void hs_store_nested_abort(struct hs_store *store)
{
	struct hs_store_write *write = &store->write;

	hs_check(write->outer);
	close_cursors(write);
	mdb_txn_abort(write->txn);
	write->txn = write->outer;
	write->outer = NULL;
	write->room = NULL;
	hs_pending_redo_nested_abort(&write->pending);
}

uint64_t hs_store_pages(MDB_txn *txn, const MDB_dbi trees[HS_KV_TREES])
{
	/* LMDB's own trees come first: 0 has the free pages, 1 the names of the trees. */
	const MDB_dbi all[] = {0, 1, trees[HS_KV_KEYS], trees[HS_KV_EXPIRES]};
	uint64_t pages = 2;

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
		MDB_stat stat;

		if (mdb_stat(txn, all[i], &stat) == 0)
			pages += stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
	}
	return pages;
}

uint64_t hs_store_used(struct hs_store *store)
{
	return hs_store_pages(store->write.txn, store->trees) * store->page_bytes;
}

void hs_store_explain(struct hs_store *store)
{
	static const char byte;
	mdb_filehandle_t fd;
	struct stat stat;
	int rc;

	if (store->write.failure != EIO || mdb_env_get_fd(store->env, &fd) != 0 ||
	    fstat(fd, &stat) != 0)
		return;
	/* A byte behind the end of the file is in no tree, so it does no harm. */
	rc = hs_file_write(fd, &byte, 1, (uint64_t)stat.st_size + store->page_bytes - 1);
	if (rc != 0)
		store->write.failure = -rc;
}

int hs_store_pin(struct hs_store *store, char *meta, uint64_t *file_bytes)
{
	mdb_filehandle_t fd;
	struct stat stat;
	int rc;

	hs_check(!store->pin_next);
	rc = mdb_txn_begin(store->env, NULL, MDB_RDONLY, &store->pin_next);
	if (rc == 0)
		rc = mdb_env_get_fd(store->env, &fd);
	if (rc == 0)
		rc = -hs_file_read(fd, meta, 2 * store->page_bytes, 0);
	if (rc == 0 && fstat(fd, &stat) != 0)
		rc = errno;
	if (rc == 0)
		*file_bytes = (uint64_t)stat.st_size;
	store->churn_bytes = 0;
	return failed(store, rc);
}

void hs_store_pin_advance(struct hs_store *store)
{
	if (store->pin)
		mdb_txn_abort(store->pin);
	store->pin = store->pin_next;
	store->pin_next = NULL;
}

void hs_store_read_init(struct hs_store_read *read, struct hs_store *store)
{
	memset(read, 0, sizeof *read);
	read->kv.calls = &hs_store_read_calls;
	read->store = store;
}

static void close_read(struct hs_store_read *read)
{
	for (int tree = 0; tree < HS_KV_TREES; tree++)
		if (read->cursors[tree])
			mdb_cursor_close(read->cursors[tree]);
	memset(read->cursors, 0, sizeof read->cursors);
	if (read->txn)
		mdb_txn_abort(read->txn);
	read->txn = NULL;
	read->open = false;
}

static int begin_read(struct hs_store_read *read, MDB_env *env, const MDB_dbi *trees)
{
	read->trees = trees;
	return mdb_txn_begin(env, NULL, MDB_RDONLY, &read->txn);
}

int hs_store_read_renew(struct hs_store_read *read, uint64_t commits)
{
	struct hs_store *store = read->store;
	int rc;

	if (!read->txn) {
		rc = begin_read(read, store->env, store->trees);
	} else {
		hs_store_read_release(read);
		rc = mdb_txn_renew(read->txn);
	}
	if (rc == MDB_PANIC) {
		struct hs_store_fallback *fallback =
			atomic_load_explicit(&store->fallback, memory_order_acquire);

		if (!fallback)
			return HS_EBUSY;
		close_read(read);
		rc = begin_read(read, fallback->env, fallback->trees);
	}
	if (rc != 0)
		return hs_store_error(rc);
	for (int tree = 0; tree < HS_KV_TREES; tree++)
		read->cursors_stale[tree] = true;
	read->open = true;
	read->commits = commits;
	read->visible_ms = atomic_load_explicit(&read->store->visible_ms, memory_order_acquire);
	return 0;
}

void hs_store_read_release(struct hs_store_read *read)
{
	if (read->open)
		mdb_txn_reset(read->txn);
	read->open = false;
}

void hs_store_read_deinit(struct hs_store_read *read)
{
	close_read(read);
	memset(read, 0, sizeof *read);
}
