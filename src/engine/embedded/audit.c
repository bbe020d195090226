#include "engine/embedded/audit.h"

#include "base/err.h"
#include "base/escape.h"
#include "base/slot.h"
#include "keyspace/expiry.h"
#include "keyspace/record.h"
#include "route/slot_map.h"

#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The audit of one store. */
struct walk {
	const struct hs_audit *audit;
	struct hs_audit_progress *progress;
	char name[16];
	int fd;
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi trees[HS_KV_TREES];
	uint64_t entries[HS_KV_TREES]; /* the number of entries that each tree claims to have */
	uint64_t lines;
};

static const char stand_in_name[] = "heatsink-audit";

__attribute__((format(printf, 3, 4))) static void find(struct walk *walk, _Atomic uint64_t *counter,
						       const char *format, ...)
{
	FILE *out = walk->audit->out;
	va_list args;

	atomic_fetch_add(counter, 1);
	if (walk->lines++ >= HS_AUDIT_LINES_MAX)
		return;
	fprintf(out, "%s: ", walk->name);
	va_start(args, format);
	vfprintf(out, format, args);
	va_end(args);
	fprintf(out, "\n");
	fflush(out);
}

void hs_audit_key_text(struct hs_bytes physical, char text[HS_AUDIT_KEY_MAX])
{
	struct hs_record none = {.flags = 0};
	struct hs_bytes key;

	if (hs_record_key(physical, &none, &key) != 0)
		/* the key is long, so its text is only in its record; or the entry is damaged */
		key = physical;
	hs_bytes_escape(key, text, HS_AUDIT_KEY_MAX);
}

/* Checks an entry of HS_KV_KEYS: checksums, key and hash, slot and store. True: the entry is consistent. */
static bool entry_whole(struct hs_bytes physical, struct hs_bytes stored, uint64_t seed,
			uint16_t store, uint16_t partitions)
{
	struct hs_record record;
	struct hs_bytes key;
	uint16_t slot;

	if (physical.len < sizeof(uint64_t) ||
	    !hs_record_checksum_fits(stored, hs_record_seed(physical.data)))
		return false;
	if (hs_record_decode(stored, &record) != 0 || hs_record_key(physical, &record, &key) != 0)
		return false;
	slot = hs_slot_of(key);
	return hs_record_parts_checksum_fits(&record, hs_record_seed(physical.data), 0, SIZE_MAX) &&
	       hs_record_key_fits(physical, key, seed) &&
	       (unsigned char)physical.data[0] == slot >> 8 &&
	       (unsigned char)physical.data[1] == (slot & 0xff) &&
	       hs_slot_partition(slot, partitions) == store;
}

/* Looks the file up in /proc/self/maps and returns the address at which it is mapped; NULL: it is not. */
static char *mapped_at(const char *path)
{
	char line[HS_PATH_BYTES_MAX + 128];
	FILE *maps = fopen("/proc/self/maps", "re");
	char *at = NULL;

	while (maps && !at && fgets(line, sizeof line, maps)) {
		unsigned long begin, offset;
		int name = 0;

		line[strcspn(line, "\n")] = '\0';
		if (sscanf(line, "%lx-%*x %*s %lx %*s %*s %n", &begin, &offset, &name) == 2 &&
		    name > 0 && offset == 0 && strcmp(line + name, path) == 0)
			at = (char *)(uintptr_t)begin; /* NOLINT(performance-no-int-to-ptr) */
	}
	if (maps)
		fclose(maps);
	return at;
}

/* Creates a file in memory, as long as the store's file, that begins with the checkpoint's meta pages. */
static int make_stand_in(struct hs_bytes metas, off_t bytes)
{
	int fd = memfd_create(stand_in_name, MFD_CLOEXEC);

	if (fd >= 0 &&
	    (ftruncate(fd, bytes) != 0 || hs_file_write(fd, metas.data, metas.len, 0) != 0)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Lets LMDB open the file in memory, and then maps the store's pages over it, except the meta pages. The store's
 * own meta pages are not read, because every start overwrites them. Returns LMDB's code. */
static int open_env(struct walk *walk, struct hs_bytes metas, off_t bytes)
{
	int fd = make_stand_in(metas, bytes), rc = fd < 0 ? EIO : 0;
	char path[64], mapped[64], *at;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	snprintf(mapped, sizeof mapped, "/memfd:%s (deleted)", stand_in_name);
	if (rc == 0)
		rc = mdb_env_create(&walk->env);
	if (rc == 0)
		rc = mdb_env_set_maxdbs(walk->env, HS_KV_TREES);
	if (rc == 0)
		rc = mdb_env_set_mapsize(walk->env, (size_t)bytes);
	if (rc == 0)
		rc = mdb_env_open(
			walk->env, path,
			MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS | MDB_NORDAHEAD, 0600);
	if (rc == 0 && (at = mapped_at(mapped)) == NULL)
		rc = EIO;
	if (rc == 0 && bytes > (off_t)metas.len &&
	    mmap(at + metas.len, (size_t)bytes - metas.len, PROT_READ, MAP_SHARED | MAP_FIXED,
		 walk->fd, (off_t)metas.len) == MAP_FAILED)
		rc = errno;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* True: the constant fields in the store's own meta pages are intact. */
static bool metas_whole(int fd, struct hs_bytes metas)
{
	/* The constant fields: the page's head with magic and version, and the page size. */
	static const struct {
		size_t at, bytes;
	} fixed[] = {{0, 24}, {40, 4}};
	size_t page_bytes = metas.len / 2;
	char found[24];

	for (size_t page = 0; page < 2; page++)
		for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
			size_t at = page * page_bytes + fixed[i].at;

			if (hs_file_read(fd, found, fixed[i].bytes, at) != 0 ||
			    memcmp(found, metas.data + at, fixed[i].bytes) != 0)
				return false;
		}
	return true;
}

static int open_trees(struct walk *walk)
{
	int rc = mdb_txn_begin(walk->env, NULL, MDB_RDONLY, &walk->txn);

	if (rc == 0)
		rc = hs_store_open_trees(walk->txn, 0, walk->trees);
	for (int tree = 0; tree < HS_KV_TREES && rc == 0; tree++) {
		MDB_stat stat;

		rc = mdb_stat(walk->txn, walk->trees[tree], &stat);
		if (rc == 0)
			walk->entries[tree] = stat.ms_entries;
	}
	return rc;
}

/* Opens the store in the state of the checkpoint. False: LMDB cannot open it. */
static bool open_store(struct walk *walk)
{
	const struct hs_audit *audit = walk->audit;
	uint64_t file_bytes;
	struct hs_bytes metas = hs_checkpoint_metas(audit->checkpoint, audit->store, &file_bytes);
	char path[HS_PATH_BYTES_MAX];
	struct stat stat;
	int rc;

	walk->fd = hs_file_open(audit->folder, walk->name, O_RDONLY, path);
	if (walk->fd < 0 || fstat(walk->fd, &stat) != 0 || (uint64_t)stat.st_size < file_bytes) {
		find(walk, &walk->progress->broken,
		     "the file is missing or shorter than the %llu bytes its checkpoint needs",
		     (unsigned long long)file_bytes);
		return false;
	}
	if (!metas_whole(walk->fd, metas))
		find(walk, &walk->progress->metas,
		     "LMDB's meta pages at its beginning are damaged; a start of the server or a "
		     "repair puts them back from the checkpoint, and nothing is lost");
	rc = open_env(walk, metas, stat.st_size);
	if (rc != 0) {
		find(walk, &walk->progress->broken,
		     "cannot be opened in the state of its checkpoint: %s", mdb_strerror(rc));
		return false;
	}
	rc = open_trees(walk);
	if (rc != 0)
		find(walk, &walk->progress->broken, "its trees cannot be read: %s",
		     mdb_strerror(rc));
	return rc == 0;
}

/* Writes to `index` the key that the tree of expiries has for this record. The record is consistent, so its
 * physical key is within the limit. */
static void index_of(struct hs_bytes physical, int64_t expire_ms, struct hs_expiry_key *index)
{
	struct hs_physical_key copy = {.len = physical.len};

	memcpy(copy.data, physical.data, physical.len);
	hs_expiry_key(index, expire_ms, &copy);
}

static void check_expiry(struct walk *walk, struct hs_bytes physical, int64_t expire_ms,
			 const char *text)
{
	struct hs_expiry_key index;
	MDB_val key, nothing;

	index_of(physical, expire_ms, &index);
	key = hs_store_val_of(hs_expiry_bytes(&index));
	if (mdb_get(walk->txn, walk->trees[HS_KV_EXPIRES], &key, &nothing) != 0)
		find(walk, &walk->progress->misfits,
		     "key '%s' has an expiry that the tree of expiries does not have", text);
}

static void check_key(struct walk *walk, struct hs_bytes physical, struct hs_bytes stored)
{
	const struct hs_audit *audit = walk->audit;
	char *text = walk->progress->last;
	struct hs_record record;

	hs_audit_key_text(physical, text);
	if (!entry_whole(physical, stored, audit->seed, audit->store, audit->partitions))
		find(walk, &walk->progress->damaged,
		     "the record of key '%s' fails its checksum or does not fit its key", text);
	else if (hs_record_decode(stored, &record) == 0 && record.expire_ms >= 0)
		check_expiry(walk, physical, record.expire_ms, text);
	atomic_fetch_add(&walk->progress->keys, 1);
}

/* Checks that the record which `index`, an entry of the tree of expiries, names has the same expiry. */
static void check_index(struct walk *walk, struct hs_bytes index)
{
	struct hs_record record;
	MDB_val key, stored;

	atomic_fetch_add(&walk->progress->expiries, 1);
	if (index.len > HS_EXPIRY_TIME_BYTES) {
		key = hs_store_val_of((struct hs_bytes){index.data + HS_EXPIRY_TIME_BYTES,
							index.len - HS_EXPIRY_TIME_BYTES});
		hs_audit_key_text(hs_store_bytes_of(key), walk->progress->last);
		if (mdb_get(walk->txn, walk->trees[HS_KV_KEYS], &key, &stored) == 0 &&
		    hs_record_decode(hs_store_bytes_of(stored), &record) == 0 &&
		    record.expire_ms == hs_expiry_time(index))
			return;
	}
	find(walk, &walk->progress->misfits,
	     "the tree of expiries has an entry for key '%s' that its record does not have",
	     walk->progress->last);
}

static void walk_tree(struct walk *walk, enum hs_kv_tree tree)
{
	char before[HS_KV_KEY_MAX];
	size_t before_len = 0;
	uint64_t count = 0;
	MDB_cursor *cursor;
	MDB_val key, value;
	int rc = mdb_cursor_open(walk->txn, walk->trees[tree], &cursor);

	if (rc == 0)
		rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
	for (; rc == 0; rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) {
		struct hs_bytes now = hs_store_bytes_of(key);

		if (now.len > sizeof before) {
			find(walk, &walk->progress->broken, "a key in tree '%s' is too long",
			     hs_store_trees[tree]);
			break;
		}
		if (tree == HS_KV_KEYS)
			check_key(walk, now, hs_store_bytes_of(value));
		else
			check_index(walk, now);
		if (count > 0 && hs_bytes_compare((struct hs_bytes){before, before_len}, now) >= 0)
			find(walk, &walk->progress->broken, "tree '%s' is out of order at key '%s'",
			     hs_store_trees[tree], walk->progress->last);
		memcpy(before, now.data, now.len);
		before_len = now.len;
		count++;
		atomic_fetch_add(&walk->progress->entries, 1);
		/* On a damaged store the pages may form a cycle: the walk must end. */
		if (count > 2 * walk->entries[tree] + HS_AUDIT_LINES_MAX)
			break;
	}
	if (rc != 0 && rc != MDB_NOTFOUND)
		find(walk, &walk->progress->broken, "tree '%s' cannot be read after key '%s': %s",
		     hs_store_trees[tree], walk->progress->last, mdb_strerror(rc));
	if (count != walk->entries[tree])
		find(walk, &walk->progress->broken,
		     "tree '%s' has %llu entries, but its header counts %llu", hs_store_trees[tree],
		     (unsigned long long)count, (unsigned long long)walk->entries[tree]);
}

/* Checks that the file is not shorter than its pages in use and its free pages together. */
static void check_pages(struct walk *walk)
{
	uint64_t pages = hs_store_pages(walk->txn, walk->trees);
	MDB_cursor *cursor;
	MDB_val key, list;
	MDB_envinfo info;

	if (mdb_env_info(walk->env, &info) != 0 || mdb_cursor_open(walk->txn, 0, &cursor) != 0)
		return;
	while (mdb_cursor_get(cursor, &key, &list, MDB_NEXT) == 0) {
		size_t count = 0;

		if (list.mv_size >= sizeof count)
			memcpy(&count, list.mv_data, sizeof count);
		if (list.mv_size < sizeof count || count > list.mv_size / sizeof count - 1) {
			find(walk, &walk->progress->broken, "the list of free pages is damaged");
			return;
		}
		pages += count;
	}
	if (pages > info.me_last_pgno + 1)
		find(walk, &walk->progress->broken,
		     "%llu pages are in use or free, but the file has %llu",
		     (unsigned long long)pages, (unsigned long long)info.me_last_pgno + 1);
}

void hs_audit_store(const struct hs_audit *audit)
{
	struct walk walk = {.audit = audit, .progress = audit->progress, .fd = -1};

	hs_store_name(walk.name, sizeof walk.name, audit->store);
	if (!open_store(&walk))
		return;
	atomic_store(&audit->progress->expected,
		     walk.entries[HS_KV_KEYS] + walk.entries[HS_KV_EXPIRES]);
	walk_tree(&walk, HS_KV_KEYS);
	walk_tree(&walk, HS_KV_EXPIRES);
	check_pages(&walk);
	if (walk.lines > HS_AUDIT_LINES_MAX)
		fprintf(audit->out, "%s: %llu more findings are not shown\n", walk.name,
			(unsigned long long)(walk.lines - HS_AUDIT_LINES_MAX));
	fflush(audit->out);
}

static void put_aside(struct hs_bytes physical, struct hs_bytes stored, FILE *aside)
{
	struct hs_buf line = {0};

	hs_escape_word(physical, &line);
	hs_buf_append(&line, " ", 1);
	hs_escape_word(stored, &line);
	hs_buf_append(&line, "\n", 1);
	fwrite(line.data, 1, line.len, aside);
	hs_buf_deinit(&line);
}

/* Removes the damaged record at the cursor, or adds the expiry of a sound one to the tree of expiries. Returns
 * LMDB's code. */
static int cut_or_index(struct hs_store *store, MDB_cursor *cursor, struct hs_bytes physical,
			struct hs_bytes stored, bool whole)
{
	struct hs_expiry_key index;
	struct hs_record record;
	MDB_val key, nothing = {0, NULL};

	if (!whole)
		/* afterwards the cursor stands before the next entry */
		return mdb_cursor_del(cursor, 0);
	if (hs_record_decode(stored, &record) != 0 || record.expire_ms < 0)
		return 0;
	index_of(physical, record.expire_ms, &index);
	key = hs_store_val_of(hs_expiry_bytes(&index));
	return mdb_put(store->write.txn, store->trees[HS_KV_EXPIRES], &key, &nothing, 0);
}

/* Goes over all records in the open transaction. Writes the number of removed records to *cut. Returns LMDB's code
 * or HS_EIO. */
static int cut_tree(struct hs_store *store, uint64_t seed, uint16_t partitions, FILE *aside,
		    int *cut)
{
	MDB_txn *txn = store->write.txn;
	MDB_cursor *cursor;
	MDB_val key, value;
	int rc = mdb_drop(txn, store->trees[HS_KV_EXPIRES], 0);

	if (rc == 0)
		rc = mdb_cursor_open(txn, store->trees[HS_KV_KEYS], &cursor);
	if (rc == 0)
		rc = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
	while (rc == 0) {
		struct hs_bytes physical = hs_store_bytes_of(key),
				stored = hs_store_bytes_of(value);
		bool whole = entry_whole(physical, stored, seed, store->id, partitions);

		if (!whole) {
			put_aside(physical, stored, aside);
			++*cut;
		}
		rc = cut_or_index(store, cursor, physical, stored, whole);
		if (rc == 0)
			rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT);
	}
	return rc == MDB_NOTFOUND ? 0 : rc;
}

int hs_audit_remove_damaged(struct hs_store *store, uint64_t seed, uint16_t partitions, FILE *aside)
{
	int cut = 0, rc = hs_store_begin(store);

	if (rc != 0)
		return rc;
	store->write.failure = cut_tree(store, seed, partitions, aside, &cut);
	rc = hs_store_error(store->write.failure);
	/* The removed records are on disk in `aside` before the caller commits the removal. */
	if (rc == 0 && cut > 0 && (fflush(aside) != 0 || fsync(fileno(aside)) != 0))
		rc = HS_EIO;
	if (rc == 0)
		rc = hs_store_commit(store);
	else
		hs_store_abort(store);
	return rc == 0 ? cut : rc;
}
