/* The keyspace's trees on LMDB, for readers and for the writer. The writer also adds every change
 * to `pending`, for the log. put returns the place of the value inside LMDB's page, and the caller writes the
 * value there afterwards. The writer copies the value to `pending` at the next call, or when `pending` is used. */

#include "base/err.h"
#include "engine/embedded/redo.h"
#include "engine/embedded/store.h"

#include <errno.h>

int hs_store_error(int rc)
{
	switch (rc) {
	case 0:
		return 0;
	case MDB_NOTFOUND:
		return HS_ENOTFOUND;
	case MDB_MAP_FULL:
	case MDB_TXN_FULL:
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return HS_EFULL;
	default:
		return HS_EIO;
	}
}

static int get(MDB_txn *txn, MDB_dbi dbi, struct hs_bytes key, struct hs_bytes *value)
{
	MDB_val at = hs_store_val_of(key), found;
	int rc = mdb_get(txn, dbi, &at, &found);

	if (rc == 0)
		*value = hs_store_bytes_of(found);
	return rc;
}

static int cursor_get(MDB_cursor *cursor, MDB_cursor_op op, MDB_val at, struct hs_bytes *key,
		      struct hs_bytes *value)
{
	MDB_val found;
	int rc = mdb_cursor_get(cursor, &at, &found, op);

	if (rc == 0) {
		*key = hs_store_bytes_of(at);
		*value = hs_store_bytes_of(found);
	}
	return rc;
}

static int count_in(MDB_txn *txn, MDB_dbi dbi, uint64_t *entries)
{
	MDB_stat stat;
	int rc = mdb_stat(txn, dbi, &stat);

	if (rc == 0)
		*entries = stat.ms_entries;
	return rc;
}

/* The readers' calls. */

static struct hs_store_read *reader(struct hs_kv *kv)
{
	return (struct hs_store_read *)kv;
}

/* The cell of a physical key in changed_in, found by the low bytes of the key's hash. Two keys may share a cell:
 * then a change of one key redirects reads of the other key, too. */
static _Atomic uint32_t *mark_of(struct hs_store *store, struct hs_bytes key)
{
	_Static_assert(HS_STORE_CHANGED_CELLS == 1 << 16, "two bytes of hash");
	return &store->changed_in[(unsigned char)key.data[6] << 8 | (unsigned char)key.data[7]];
}

/* True: a postponed commit changes the key, so only the writer can read it. */
static bool hidden(struct hs_store_read *read, struct hs_bytes key)
{
	struct hs_store *store = read->store;
	uint32_t commits = (uint32_t)read->commits;
	uint32_t mark;

	if (atomic_load_explicit(&store->pending_commit, memory_order_acquire) <= read->commits)
		return false;
	mark = atomic_load_explicit(mark_of(store, key), memory_order_relaxed);
	if ((int32_t)(mark - commits) <= 0)
		mark = atomic_load_explicit(&store->cleared_in, memory_order_relaxed);
	if ((int32_t)(mark - commits) <= 0)
		return false;
	atomic_fetch_add_explicit(&store->redirected_reads, 1, memory_order_relaxed);
	return true;
}

/* True: a postponed commit changes some key of the store, so only the writer can read all keys. */
static bool any_hidden(struct hs_store_read *read)
{
	if (atomic_load_explicit(&read->store->pending_commit, memory_order_acquire) <=
	    read->commits)
		return false;
	atomic_fetch_add_explicit(&read->store->redirected_reads, 1, memory_order_relaxed);
	return true;
}

static int read_get(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key,
		    struct hs_bytes *value)
{
	struct hs_store_read *read = reader(kv);

	if (hidden(read, key))
		return HS_EBUSY;
	return hs_store_error(get(read->txn, read->trees[tree], key, value));
}

static int read_cursor(struct hs_store_read *read, enum hs_kv_tree tree)
{
	int rc = 0;

	if (!read->cursors[tree])
		rc = mdb_cursor_open(read->txn, read->trees[tree], &read->cursors[tree]);
	else if (read->cursors_stale[tree])
		rc = mdb_cursor_renew(read->txn, read->cursors[tree]);
	read->cursors_stale[tree] = false;
	return rc;
}

static int read_seek(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes from,
		     struct hs_bytes *key, struct hs_bytes *value)
{
	struct hs_store_read *read = reader(kv);
	int rc;

	if (any_hidden(read))
		return HS_EBUSY;
	rc = read_cursor(read, tree);
	if (rc == 0)
		rc = cursor_get(read->cursors[tree], from.len ? MDB_SET_RANGE : MDB_FIRST,
				hs_store_val_of(from), key, value);
	return hs_store_error(rc);
}

static int read_next(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes *key,
		     struct hs_bytes *value)
{
	struct hs_store_read *read = reader(kv);

	return hs_store_error(
		cursor_get(read->cursors[tree], MDB_NEXT, (MDB_val){0, NULL}, key, value));
}

static int read_count(struct hs_kv *kv, enum hs_kv_tree tree, uint64_t *entries)
{
	struct hs_store_read *read = reader(kv);

	if (any_hidden(read))
		return HS_EBUSY;
	return hs_store_error(count_in(read->txn, read->trees[tree], entries));
}

/* Never called, because the engine sends no writing command to a reader. */
static int refuse_write(void)
{
	bool reader_may_write = false;

	hs_check(reader_may_write);
	return HS_EIO;
}

static int read_put(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key, size_t len,
		    char **room)
{
	(void)kv, (void)tree, (void)key, (void)len, (void)room;
	return refuse_write();
}

static int read_del(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key)
{
	(void)kv, (void)tree, (void)key;
	return refuse_write();
}

static int read_clear(struct hs_kv *kv)
{
	(void)kv;
	return refuse_write();
}

const struct hs_kv_calls hs_store_read_calls = {
	.get = read_get,
	.put = read_put,
	.del = read_del,
	.seek = read_seek,
	.next = read_next,
	.count = read_count,
	.clear = read_clear,
};

/* The writer's calls. */

static struct hs_store_write *writer(struct hs_kv *kv)
{
	return (struct hs_store_write *)kv;
}

static int write_failed(struct hs_store_write *write, int rc)
{
	if (rc != 0 && rc != MDB_NOTFOUND)
		write->failure = rc;
	return hs_store_error(rc);
}

void hs_store_note_last_put(struct hs_store *store)
{
	struct hs_store_write *write = &store->write;

	if (!write->room)
		return;
	memcpy(write->pending.buf.data + write->room_at, write->room, write->room_bytes);
	write->room = NULL;
}

static uint32_t next_commit(struct hs_store *store)
{
	return (uint32_t)atomic_load_explicit(&store->commits, memory_order_relaxed) + 1;
}

/* Marks the key with the number of the commit that will show the key's change. */
static void mark_changed(struct hs_store *store, struct hs_bytes key)
{
	atomic_store_explicit(mark_of(store, key), next_commit(store), memory_order_relaxed);
}

static int write_get(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key,
		     struct hs_bytes *value)
{
	struct hs_store_write *write = writer(kv);

	return write_failed(write, get(write->txn, write->store->trees[tree], key, value));
}

/* Copies a key, because it may lie in the page that is about to change, and `pending` needs the key afterwards. */
static struct hs_bytes copy_key(char copy[HS_KV_KEY_MAX], struct hs_bytes key)
{
	hs_check(key.len <= HS_KV_KEY_MAX);
	memcpy(copy, key.data, key.len);
	return (struct hs_bytes){copy, key.len};
}

static int write_put(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key, size_t len,
		     char **room)
{
	struct hs_store_write *write = writer(kv);
	MDB_val at, value = {len, NULL};
	char copy[HS_KV_KEY_MAX];
	int rc;

	hs_store_note_last_put(write->store);
	key = copy_key(copy, key);
	at = hs_store_val_of(key);
	rc = mdb_put(write->txn, write->store->trees[tree], &at, &value, MDB_RESERVE);
	if (rc != 0)
		return write_failed(write, rc);
	/* False: the entry takes the place of an earlier one, whose pages the transaction has already. */
	if (hs_pending_redo_put(&write->pending, (uint8_t)tree, key, len, &write->room_at))
		write->changed++;
	if (tree == HS_KV_KEYS)
		mark_changed(write->store, key);
	*room = value.mv_data;
	write->room = len ? value.mv_data : NULL;
	write->room_bytes = len;
	return 0;
}

static int write_del(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key)
{
	struct hs_store_write *write = writer(kv);
	char copy[HS_KV_KEY_MAX];
	MDB_val at;
	int rc;

	hs_store_note_last_put(write->store);
	key = copy_key(copy, key);
	at = hs_store_val_of(key);
	rc = mdb_del(write->txn, write->store->trees[tree], &at, NULL);
	if (rc != 0)
		return write_failed(write, rc);
	hs_pending_redo_del(&write->pending, (uint8_t)tree, key);
	write->changed++;
	if (tree == HS_KV_KEYS)
		mark_changed(write->store, key);
	return 0;
}

static int write_seek(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes from,
		      struct hs_bytes *key, struct hs_bytes *value)
{
	struct hs_store_write *write = writer(kv);
	int rc = 0;

	if (!write->cursors[tree])
		rc = mdb_cursor_open(write->txn, write->store->trees[tree], &write->cursors[tree]);
	if (rc == 0)
		rc = cursor_get(write->cursors[tree], from.len ? MDB_SET_RANGE : MDB_FIRST,
				hs_store_val_of(from), key, value);
	return write_failed(write, rc);
}

static int write_next(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes *key,
		      struct hs_bytes *value)
{
	struct hs_store_write *write = writer(kv);

	return write_failed(
		write, cursor_get(write->cursors[tree], MDB_NEXT, (MDB_val){0, NULL}, key, value));
}

static int write_count(struct hs_kv *kv, enum hs_kv_tree tree, uint64_t *entries)
{
	struct hs_store_write *write = writer(kv);

	return write_failed(write, count_in(write->txn, write->store->trees[tree], entries));
}

static int write_clear(struct hs_kv *kv)
{
	struct hs_store_write *write = writer(kv);
	int rc = 0;

	hs_store_note_last_put(write->store);
	for (int tree = 0; tree < HS_KV_TREES && rc == 0; tree++)
		rc = mdb_drop(write->txn, write->store->trees[tree], 0);
	if (rc != 0)
		return write_failed(write, rc);
	hs_pending_redo_clear(&write->pending);
	write->changed++;
	atomic_store_explicit(&write->store->cleared_in, next_commit(write->store),
			      memory_order_relaxed);
	return 0;
}

const struct hs_kv_calls hs_store_write_calls = {
	.get = write_get,
	.put = write_put,
	.del = write_del,
	.seek = write_seek,
	.next = write_next,
	.count = write_count,
	.clear = write_clear,
};

int hs_store_apply(struct hs_store *store, const struct hs_redo_entry *entry)
{
	struct hs_store_write *write = &store->write;
	MDB_val key = hs_store_val_of(entry->key), value = hs_store_val_of(entry->value);
	int rc;

	if (entry->tree >= HS_KV_TREES)
		return HS_ECORRUPT;
	switch (entry->op) {
	case HS_REDO_PUT:
		rc = mdb_put(write->txn, store->trees[entry->tree], &key, &value, 0);
		break;
	case HS_REDO_DEL:
		rc = mdb_del(write->txn, store->trees[entry->tree], &key, NULL);
		break;
	case HS_REDO_CLEAR:
		rc = mdb_drop(write->txn, store->trees[HS_KV_KEYS], 0);
		if (rc == 0)
			rc = mdb_drop(write->txn, store->trees[HS_KV_EXPIRES], 0);
		break;
	default:
		return HS_ECORRUPT;
	}
	return rc == MDB_NOTFOUND ? 0 : write_failed(write, rc);
}
