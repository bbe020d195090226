#include "engine/embedded/redo.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The layout on disk, in the machine's byte order: LMDB's files are not portable either. */
struct entry_head {
	uint8_t op;
	uint8_t tree;
	uint16_t store;
	uint32_t key_bytes;
	uint64_t value_bytes;
};

struct record_head {
	uint32_t head_check; /* checksum of the fields below except `checksum` */
	uint16_t kind;
	uint16_t flags;
	uint64_t lsn;
	uint64_t body_bytes;
	uint64_t checksum; /* checksum of the fields above and of the body */
};

_Static_assert(sizeof(struct entry_head) == 16, "no padding on disk");
_Static_assert(sizeof(struct record_head) == 32, "no padding on disk");

enum {
	FLAG_SYNCED = 1 << 0, /* all records before this one were synced when it was written */
	ALIGN_BYTES = 8,
	READ_BYTES = 256 * HS_KIB,
	PARTS_MAX = HS_PARTITIONS_MAX + 2,
	ABORT_BYTES_MAX = sizeof(struct record_head) + 8 + 2 * HS_PARTITIONS_MAX,
};

static const char *const file_names[2] = {"log-0", "log-1"};

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

size_t hs_redo_entry_append(struct hs_buf *buf, enum hs_redo_op op, uint8_t tree, uint16_t store,
			    struct hs_bytes key, size_t value_bytes)
{
	struct entry_head head = {
		.op = (uint8_t)op,
		.tree = tree,
		.store = store,
		.key_bytes = (uint32_t)key.len,
		.value_bytes = value_bytes,
	};
	char *room = hs_buf_reserve(buf, sizeof head + key.len + value_bytes);
	size_t value_at = buf->len + sizeof head + key.len;

	memcpy(room, &head, sizeof head);
	if (key.len)
		memcpy(room + sizeof head, key.data, key.len);
	buf->len = value_at + value_bytes;
	return value_at;
}

void hs_redo_entry_void(struct hs_buf *buf, size_t at)
{
	buf->data[at + offsetof(struct entry_head, op)] = HS_REDO_VOID;
}

int hs_redo_entry_take(struct hs_bytes *bytes, struct hs_redo_entry *entry)
{
	struct entry_head head;
	size_t rest;

	if (bytes->len == 0)
		return 0;
	if (bytes->len < sizeof head)
		return HS_ECORRUPT;
	memcpy(&head, bytes->data, sizeof head);
	rest = bytes->len - sizeof head;
	if (head.key_bytes > rest || head.value_bytes > rest - head.key_bytes)
		return HS_ECORRUPT;
	entry->op = (enum hs_redo_op)head.op;
	entry->tree = head.tree;
	entry->store = head.store;
	entry->key = (struct hs_bytes){bytes->data + sizeof head, head.key_bytes};
	entry->value = (struct hs_bytes){entry->key.data + head.key_bytes, head.value_bytes};
	bytes->data = entry->value.data + entry->value.len;
	bytes->len = rest - head.key_bytes - head.value_bytes;
	return 1;
}

/* Extends a file to at least `bytes`, with zeros on disk. */
static int grow_file(int fd, uint64_t bytes)
{
	struct stat stat;
	int rc;

	if (fstat(fd, &stat) != 0)
		return -errno;
	rc = hs_file_zero(fd, (uint64_t)stat.st_size, bytes);
	/* Also when the file is long enough, because a start that was killed may not have synced it. */
	if (rc == 0 && fsync(fd) != 0)
		rc = -errno;
	return rc;
}

/* Cuts a file to at most `bytes`. */
static int cut_file(int fd, uint64_t bytes)
{
	off_t now = lseek(fd, 0, SEEK_END);

	if (now > (off_t)bytes)
		now = ftruncate(fd, (off_t)bytes);
	return now < 0 ? -errno : 0;
}

const char *hs_redo_file_name(int turn)
{
	return file_names[turn];
}

static int open_files(struct hs_redo *redo, const char *folder, int flags, struct hs_fault *fault)
{
	redo->fd[0] = redo->fd[1] = -1;
	for (int i = 0; i < 2; i++) {
		redo->fd[i] = hs_file_open(folder, file_names[i], flags, redo->path[i]);
		if (redo->fd[i] < 0 && ((flags & O_CREAT) || redo->fd[i] != -ENOENT))
			return hs_fault_set(fault, HS_EIO, "cannot open '%s': %s", redo->path[i],
					    strerror(-redo->fd[i]));
	}
	return 0;
}

int hs_redo_open(struct hs_redo *redo, const char *folder, bool make, uint64_t file_bytes,
		 bool sync, uint64_t seed, struct hs_fault *fault)
{
	*redo = (struct hs_redo){.file_bytes = file_bytes, .sync = sync, .seed = seed};
	return open_files(redo, folder, O_RDWR | (make ? O_CREAT : 0), fault);
}

int hs_redo_open_to_read(struct hs_redo *redo, const char *folder, uint64_t seed,
			 struct hs_fault *fault)
{
	*redo = (struct hs_redo){.seed = seed};
	return open_files(redo, folder, O_RDONLY, fault);
}

void hs_redo_close(struct hs_redo *redo)
{
	for (int i = 0; i < 2; i++) {
		if (redo->fd[i] >= 0)
			close(redo->fd[i]);
		redo->fd[i] = -1;
	}
}

static int size_files(struct hs_redo *redo, int (*size)(int fd, uint64_t bytes),
		      struct hs_fault *fault)
{
	for (int i = 0; i < 2; i++) {
		int rc = size(redo->fd[i], redo->file_bytes);

		if (rc != 0)
			return hs_fault_set(fault, HS_EIO, "cannot write '%s' (%llu bytes): %s",
					    redo->path[i], (unsigned long long)redo->file_bytes,
					    strerror(-rc));
	}
	return 0;
}

int hs_redo_grow(struct hs_redo *redo, struct hs_fault *fault)
{
	return size_files(redo, grow_file, fault);
}

int hs_redo_cut(struct hs_redo *redo, struct hs_fault *fault)
{
	return size_files(redo, cut_file, fault);
}

bool hs_redo_file_short(const struct hs_redo *redo, int turn, uint64_t bytes_min, char *text,
			size_t size)
{
	off_t bytes = redo->fd[turn] < 0 ? -1 : lseek(redo->fd[turn], 0, SEEK_END);

	if (bytes >= 0 && (uint64_t)bytes >= bytes_min)
		return false;
	if (bytes < 0)
		snprintf(text, size, "'%s' is missing; the checkpoint says that it has %llu bytes",
			 redo->path[turn], (unsigned long long)bytes_min);
	else
		snprintf(text, size,
			 "'%s' has %llu bytes; the checkpoint says that it has at least %llu",
			 redo->path[turn], (unsigned long long)bytes,
			 (unsigned long long)bytes_min);
	return true;
}

bool hs_redo_fits(const struct hs_redo *redo, size_t body_bytes)
{
	uint64_t bytes = aligned(sizeof(struct record_head) + body_bytes) + ABORT_BYTES_MAX;

	return redo->at == 0 || redo->at + bytes <= redo->file_bytes;
}

void hs_redo_set_used(struct hs_redo *redo, int turn, uint64_t bytes)
{
	redo->used[turn] = bytes;
	hs_counter_set(&redo->counters.log_bytes, redo->used[0] + redo->used[1]);
}

int hs_redo_turn(struct hs_redo *redo)
{
	redo->turn = !redo->turn;
	redo->at = 0;
	hs_redo_set_used(redo, redo->turn, 0);
	/* If a long record had extended the file, it becomes shorter again. */
	return cut_file(redo->fd[redo->turn], redo->file_bytes);
}

/* The check of a head, seeded with the database's secret, so that a client cannot write a value
 * with heads that pass. The search for records tries every offset. Without this check each forged head would cost
 * a checksum over as many bytes as the head claims, and a start could take hours. */
static uint32_t head_check(uint64_t seed, const struct record_head *head)
{
	enum { BEGIN = offsetof(struct record_head, kind) };

	return (uint32_t)hs_hash((struct hs_bytes){(const char *)head + BEGIN,
						   offsetof(struct record_head, checksum) - BEGIN},
				 seed);
}

static bool is_kind(uint16_t kind)
{
	return kind >= HS_REDO_GROUP && kind <= HS_REDO_MARK;
}

/* The checksum of a record; parts[0] is its head. */
static uint64_t checksum(uint64_t seed, const struct iovec *parts, int count)
{
	XXH64_state_t state;

	XXH64_reset(&state, seed);
	XXH64_update(&state, parts[0].iov_base, offsetof(struct record_head, checksum));
	for (int i = 1; i < count; i++)
		XXH64_update(&state, parts[i].iov_base, parts[i].iov_len);
	return XXH64_digest(&state);
}

/* Writes a record at redo->at, and leaves redo->at unchanged. */
static int write_record(struct hs_redo *redo, enum hs_redo_kind kind, const struct iovec *parts,
			int count, uint64_t *bytes)
{
	struct record_head head = {
		.kind = (uint16_t)kind, .flags = redo->sync ? FLAG_SYNCED : 0, .lsn = redo->lsn};
	struct iovec all[PARTS_MAX];

	hs_check(count < PARTS_MAX);
	all[0] = (struct iovec){&head, sizeof head};
	for (int i = 0; i < count; i++) {
		all[i + 1] = parts[i];
		head.body_bytes += parts[i].iov_len;
	}
	head.head_check = head_check(redo->seed, &head);
	head.checksum = checksum(redo->seed, all, count + 1);
	*bytes = sizeof head + head.body_bytes;
	return hs_file_writev(redo->fd[redo->turn], all, count + 1, redo->at);
}

int hs_redo_append(struct hs_redo *redo, enum hs_redo_kind kind, const struct iovec *parts,
		   int count)
{
	uint64_t bytes;
	int rc = write_record(redo, kind, parts, count, &bytes);

	if (rc != 0)
		return rc;
	redo->at += aligned(bytes);
	redo->lsn++;
	hs_redo_set_used(redo, redo->turn, redo->at);
	return 0;
}

int hs_redo_sync(struct hs_redo *redo)
{
	uint64_t bytes;
	int rc;

	if (!redo->sync)
		return 0;
	hs_counter_add(&redo->counters.syncs, 1);
	rc = hs_file_sync(redo->fd[redo->turn]);
	if (rc != 0)
		return rc;
	/* Behind a record that extended its file, no disk blocks are allocated for a mark. */
	if (redo->at + sizeof(struct record_head) > redo->file_bytes)
		return 0;
	return write_record(redo, HS_REDO_MARK, NULL, 0, &bytes);
}

/* Reads the record at offset `at` of a file. True: an undamaged record with a number from `lsn` to `last` is
 * there. */
static bool record_at(struct hs_redo_reader *reader, int file, size_t at, uint64_t lsn,
		      uint64_t last, struct hs_redo_record *record)
{
	struct record_head head;
	struct iovec parts[2];
	size_t rest = reader->map_bytes[file];

	if (rest < sizeof head || at > rest - sizeof head)
		return false;
	rest -= at + sizeof head;
	memcpy(&head, reader->map[file] + at, sizeof head);
	if (!is_kind(head.kind) || head.lsn < lsn || head.lsn > last || head.body_bytes > rest ||
	    head.head_check != head_check(reader->seed, &head))
		return false;
	record->kind = (enum hs_redo_kind)head.kind;
	record->lsn = head.lsn;
	record->synced = head.flags & FLAG_SYNCED;
	record->body = (struct hs_bytes){reader->map[file] + at + sizeof head, head.body_bytes};
	parts[0] = (struct iovec){&head, sizeof head};
	parts[1] = (struct iovec){(void *)(uintptr_t)record->body.data, record->body.len};
	reader->summed_bytes += record->body.len;
	return head.checksum == checksum(reader->seed, parts, 2);
}

/* Reads a file once, through a buffer. If the disk cannot read a block, this function reports an error. A read of
 * the block through the mapping would end the process with a signal that names no file. */
static int read_through(const struct hs_redo *redo, int file, uint64_t bytes,
			struct hs_fault *fault)
{
	char *block = hs_mem_alloc(READ_BYTES);
	uint64_t at = 0;
	int rc = 0;

	while (at < bytes && rc == 0) {
		uint64_t len = bytes - at < READ_BYTES ? bytes - at : READ_BYTES;

		rc = hs_file_read(redo->fd[file], block, (size_t)len, at);
		if (rc != 0)
			hs_fault_set(fault, HS_EIO,
				     "cannot read '%s' at or behind byte %llu: %s; copy the folder "
				     "to another disk, with zeros for what cannot be read (as "
				     "ddrescue does), and use 'heatsink repair' on the copy",
				     redo->path[file], (unsigned long long)at, strerror(-rc));
		at += len;
	}
	hs_mem_free(&block);
	return rc == 0 ? 0 : HS_EIO;
}

int hs_redo_reader_open(struct hs_redo_reader *reader, const struct hs_redo *redo, uint64_t lsn,
			struct hs_fault *fault)
{
	struct hs_redo_record record;

	memset(reader, 0, sizeof *reader);
	reader->seed = redo->seed;
	reader->lsn = lsn;
	reader->turn = -1;
	reader->files_left = 2;
	for (int i = 0; i < 2; i++) {
		off_t bytes = redo->fd[i] < 0 ? 0 : lseek(redo->fd[i], 0, SEEK_END);
		void *map;

		if (bytes == 0)
			continue;
		if (bytes > 0 && read_through(redo, i, (uint64_t)bytes, fault) != 0)
			return HS_EIO;
		map = bytes < 0 ? MAP_FAILED
				: mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, redo->fd[i], 0);
		if (map == MAP_FAILED)
			return hs_fault_set(fault, HS_EIO, "cannot read '%s': %s", redo->path[i],
					    strerror(errno));
		reader->map[i] = map;
		reader->map_bytes[i] = (size_t)bytes;
	}
	for (int i = 0; i < 2; i++)
		if (record_at(reader, i, 0, lsn, lsn, &record))
			reader->turn = i;
	reader->end_file = reader->turn;
	return 0;
}

bool hs_redo_reader_next(struct hs_redo_reader *reader, struct hs_redo_record *record)
{
	if (reader->turn < 0)
		return false;
	while (!record_at(reader, reader->turn, reader->at, reader->lsn, reader->lsn, record) ||
	       record->kind == HS_REDO_MARK) {
		if (--reader->files_left == 0) {
			reader->turn = -1;
			return false;
		}
		reader->turn = !reader->turn;
		reader->at = 0;
	}
	reader->at += aligned(sizeof(struct record_head) + record->body.len);
	reader->end_file = reader->turn;
	reader->end_at = reader->at;
	reader->lsn++;
	return true;
}

/* Finds the first undamaged record or mark with a number from `lsn` to `last` in a file, from offset *at on. */
static bool find_record(struct hs_redo_reader *reader, int file, size_t *at, uint64_t lsn,
			uint64_t last, struct hs_redo_record *record)
{
	size_t bytes = reader->map_bytes[file];
	uint16_t kind;

	/* Fast path: most of a log is zeros, and no kind has the number 0. */
	for (; *at + sizeof(struct record_head) <= bytes; *at += ALIGN_BYTES) {
		memcpy(&kind, reader->map[file] + *at + offsetof(struct record_head, kind),
		       sizeof kind);
		if (is_kind(kind) && record_at(reader, file, *at, lsn, last, record))
			return true;
	}
	return false;
}

bool hs_redo_reader_leap(struct hs_redo_reader *reader, struct hs_redo_place *place)
{
	struct hs_redo_record found;
	uint64_t last = UINT64_MAX;
	bool any = false;

	for (int file = 0; file < 2; file++) {
		for (size_t at = 0; find_record(reader, file, &at, reader->lsn, last, &found);
		     at += ALIGN_BYTES) {
			if (found.kind == HS_REDO_MARK)
				continue;
			any = true;
			last = found.lsn - 1;
			*place = (struct hs_redo_place){found.lsn, file, at};
		}
	}
	if (any) {
		reader->lsn = place->lsn;
		reader->turn = place->turn;
		reader->at = place->at;
		reader->files_left = 2;
	}
	return any;
}

/* Looks for undamaged records with the number survey->end_lsn or a higher one, anywhere in a file. */
static void survey_file(struct hs_redo_reader *reader, int file, struct hs_redo_survey *survey)
{
	struct hs_redo_record found;

	for (size_t at = 0; find_record(reader, file, &at, survey->end_lsn, UINT64_MAX, &found);
	     at += aligned(sizeof(struct record_head) + found.body.len)) {
		if (found.kind == HS_REDO_MARK && found.lsn == survey->end_lsn)
			continue; /* the mark belongs to the last record before survey->end_lsn */
		/* The second condition: a start writes its first record only after its checkpoint is on disk, even
		 * if syncs are off. */
		if (found.synced || found.lsn >= hs_redo_lsn_leap(survey->end_lsn))
			survey->damage = true;
		survey->beyond += found.kind != HS_REDO_MARK;
		if (!survey->beyond_first.lsn || found.lsn < survey->beyond_first.lsn)
			survey->beyond_first = (struct hs_redo_place){found.lsn, file, at};
	}
}

int hs_redo_survey(const struct hs_redo *redo, uint64_t lsn, struct hs_redo_survey *survey,
		   struct hs_fault *fault)
{
	struct hs_redo_reader reader;
	struct hs_redo_record record;
	int rc = hs_redo_reader_open(&reader, redo, lsn, fault);

	memset(survey, 0, sizeof *survey);
	while (rc == 0 && hs_redo_reader_next(&reader, &record))
		survey->records++;
	survey->end_lsn = reader.lsn;
	survey->end_file = reader.end_file;
	survey->end_at = reader.end_at;
	for (int file = 0; rc == 0 && file < 2; file++)
		survey_file(&reader, file, survey);
	/* The file ends with the mark of the last record: the missing record was the first record in the other
	 * file. */
	if (survey->end_file >= 0 &&
	    record_at(&reader, survey->end_file, survey->end_at, reader.lsn, reader.lsn, &record)) {
		survey->end_file = !survey->end_file;
		survey->end_at = 0;
	}
	survey->summed_bytes = reader.summed_bytes;
	hs_redo_reader_close(&reader);
	return rc;
}

struct hs_bytes hs_redo_broken_body(const struct hs_redo_reader *reader, int turn, size_t at,
				    size_t end)
{
	size_t begin = at + sizeof(struct record_head);

	if (end > reader->map_bytes[turn])
		end = reader->map_bytes[turn];
	if (begin >= end)
		return (struct hs_bytes){NULL, 0};
	return (struct hs_bytes){reader->map[turn] + begin, end - begin};
}

void hs_redo_survey_text(const struct hs_redo_survey *survey, const char *folder, char *text,
			 size_t size)
{
	const struct hs_redo_place *first = &survey->beyond_first;
	char where[HS_PATH_BYTES_MAX + 64];

	if (survey->end_file < 0 || first->lsn >= hs_redo_lsn_leap(survey->end_lsn))
		snprintf(where, sizeof where,
			 "the log in '%s' does not reach back to the checkpoint files (no record "
			 "%llu)",
			 folder, (unsigned long long)survey->end_lsn);
	else
		snprintf(where, sizeof where, "'%s/%s' is broken at byte %llu (record %llu)",
			 folder, file_names[survey->end_file], (unsigned long long)survey->end_at,
			 (unsigned long long)survey->end_lsn);
	snprintf(text, size,
		 "%s, and %llu whole records follow (the first trace of them at byte %llu of "
		 "'%s')",
		 where, (unsigned long long)survey->beyond, (unsigned long long)first->at,
		 file_names[first->turn]);
}

void hs_redo_reader_close(struct hs_redo_reader *reader)
{
	for (int i = 0; i < 2; i++)
		if (reader->map[i])
			munmap((void *)(uintptr_t)reader->map[i], reader->map_bytes[i]);
	memset(reader, 0, sizeof *reader);
}
