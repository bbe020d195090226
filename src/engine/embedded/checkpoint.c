#include "engine/embedded/checkpoint.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A checkpoint file has two copies of the checkpoint; the second copy begins in the middle of the file. A copy is
 * this head, and then for each store a struct part and the store's two meta pages. */
struct head {
	uint64_t magic;
	uint32_t stores;
	uint32_t page_bytes;
	uint64_t lsn;
	uint64_t log_bytes; /* each log file is at least this long */
	uint64_t checksum;  /* of the whole copy, with this field as 0 */
};

struct part {
	uint64_t file_bytes; /* the store's file is at least this long */
};

#define MAGIC 0x33544e494f504b43ull

enum { WRITE_BACK_BYTES = 1 << 19, COPIES = 2, COPY_ALIGN_BYTES = 4096 };

static const char *const file_names[2] = {"checkpoint-0", "checkpoint-1"};

static size_t part_bytes(size_t page_bytes)
{
	return sizeof(struct part) + 2 * page_bytes;
}

/* Size of one copy. */
static size_t image_bytes(uint16_t stores, size_t page_bytes)
{
	return sizeof(struct head) + stores * part_bytes(page_bytes);
}

/* Distance from the begin of the first copy to the begin of the second. */
static uint64_t copy_bytes(size_t image_bytes)
{
	return (image_bytes + COPY_ALIGN_BYTES - 1) / COPY_ALIGN_BYTES * COPY_ALIGN_BYTES;
}

static struct head head_of(const char *image)
{
	struct head head;

	memcpy(&head, image, sizeof head);
	return head;
}

static uint64_t sum(const char *image, size_t bytes, uint64_t seed)
{
	struct head head = head_of(image);
	uint64_t hash;

	head.checksum = 0;
	hash = hs_hash((struct hs_bytes){(const char *)&head, sizeof head}, seed);
	return hs_hash((struct hs_bytes){image + sizeof head, bytes - sizeof head}, hash);
}

/* Reads the copy at offset `at`; the caller frees it. NULL: the copy is damaged. */
static char *load_copy(int fd, uint64_t at, uint16_t stores, uint64_t seed)
{
	struct head head;
	char *image;
	size_t bytes;

	if (hs_file_read(fd, &head, sizeof head, at) != 0 || head.magic != MAGIC ||
	    head.stores != stores || head.page_bytes > HS_MIB)
		return NULL;
	bytes = image_bytes(stores, head.page_bytes);
	image = hs_mem_alloc(bytes);
	if (hs_file_read(fd, image, bytes, at) != 0 || sum(image, bytes, seed) != head.checksum)
		hs_mem_free(&image);
	return image;
}

/* Returns the copy with the later checkpoint and frees the other one. Each may be NULL. *second: the result is
 * `two`. */
static char *later(char *one, char *two, bool *second)
{
	*second = two && (!one || head_of(two).lsn > head_of(one).lsn);
	if (*second)
		hs_mem_free(&one);
	else
		hs_mem_free(&two);
	return *second ? two : one;
}

/* Loads the later one of the file's undamaged copies; NULL: there is none. Adds the number of damaged copies to
 * *broken. */
static char *load(const char *folder, const char *name, uint16_t stores, uint64_t seed, int *broken)
{
	char path[HS_PATH_BYTES_MAX];
	char *copies[COPIES] = {NULL, NULL};
	bool second;
	off_t bytes;
	int fd = hs_file_open(folder, name, O_RDONLY, path);

	if (fd >= 0) {
		bytes = lseek(fd, 0, SEEK_END);
		for (int i = 0; i < COPIES && bytes > 0; i++)
			copies[i] =
				load_copy(fd, (uint64_t)i * (uint64_t)bytes / COPIES, stores, seed);
		close(fd);
	}
	*broken += !copies[0] + !copies[1];
	return later(copies[0], copies[1], &second);
}

const char *hs_checkpoint_file_name(int file)
{
	return file_names[file];
}

int hs_checkpoint_find(const char *folder, uint16_t stores, uint64_t seed,
		       struct hs_checkpoint_found *found, struct hs_fault *fault)
{
	char *images[2];
	bool second;

	*found = (struct hs_checkpoint_found){.broken_file = -1};
	for (int i = 0; i < 2; i++) {
		images[i] = load(folder, file_names[i], stores, seed, &found->broken_copies);
		if (!images[i])
			found->broken_file = i;
	}
	found->image = later(images[0], images[1], &second);
	found->file = second;
	if (!found->image)
		return hs_fault_set(fault, HS_ECORRUPT,
				    "damaged data: neither checkpoint file in '%s' has a whole "
				    "copy; restore the folder from a backup",
				    folder);
	found->lsn = head_of(found->image).lsn;
	found->log_bytes = head_of(found->image).log_bytes;
	if (found->broken_file < 0)
		return 0;
	return hs_fault_set(fault, HS_ECORRUPT,
			    "damaged data: '%s/%s' is missing or has no whole copy of its "
			    "checkpoint; nothing was changed; restore the folder from a backup, or "
			    "see what 'heatsink repair --data %s --dry-run' can save",
			    folder, file_names[found->broken_file], folder);
}

void hs_checkpoint_found_deinit(struct hs_checkpoint_found *found)
{
	hs_mem_free(&found->image);
}

struct hs_bytes hs_checkpoint_metas(const struct hs_checkpoint_found *found, uint16_t store,
				    uint64_t *file_bytes)
{
	size_t page_bytes = head_of(found->image).page_bytes;
	/* the store's part follows the parts of the stores with lower ids */
	const char *at = found->image + image_bytes(store, page_bytes);
	struct part part;

	memcpy(&part, at, sizeof part);
	*file_bytes = part.file_bytes;
	return (struct hs_bytes){at + sizeof part, 2 * page_bytes};
}

static int open_store(const char *folder, uint16_t id, uint64_t bytes_min, int *fd,
		      struct hs_fault *fault)
{
	char name[16], path[HS_PATH_BYTES_MAX];
	struct stat stat;

	hs_store_name(name, sizeof name, id);
	*fd = hs_file_open(folder, name, O_RDWR, path);
	if (*fd < 0 || fstat(*fd, &stat) != 0)
		return hs_fault_set(fault, HS_EIO, "cannot open '%s': %s", path,
				    strerror(*fd < 0 ? -*fd : errno));
	if ((uint64_t)stat.st_size < bytes_min)
		return hs_fault_set(fault, HS_ECORRUPT,
				    "damaged data: '%s' is shorter than its checkpoint says", path);
	return 0;
}

/* Writes both copies of an image, at offsets 0 and `apart`. Syncs the first before it writes the second. Returns 0
 * or a negative errno. */
static int write_copies(int fd, const char *image, size_t bytes, uint64_t apart)
{
	int rc = 0;

	for (int i = 0; i < COPIES && rc == 0; i++) {
		if (i > 0 && apart < bytes)
			break; /* the file has room for one copy only */
		rc = hs_file_write(fd, image, bytes, (uint64_t)i * apart);
		if (rc == 0)
			rc = hs_file_sync(fd);
	}
	return rc;
}

/* Writes the found checkpoint to its file again. If a sync failed in the last process, the kernel may show bytes
 * that are not on disk. This checkpoint must be on disk before the next one overwrites the other file. */
static int make_sure(const char *folder, const struct hs_checkpoint_found *found, uint16_t stores,
		     struct hs_fault *fault)
{
	char path[HS_PATH_BYTES_MAX];
	size_t bytes = image_bytes(stores, head_of(found->image).page_bytes);
	int fd = hs_file_open(folder, file_names[found->file], O_WRONLY, path);
	off_t end = fd < 0 ? 0 : lseek(fd, 0, SEEK_END);
	int rc = fd < 0 ? fd : end < 0 ? -errno : 0;

	if (rc == 0)
		rc = write_copies(fd, found->image, bytes, (uint64_t)end / COPIES);
	if (fd >= 0)
		close(fd);
	return rc == 0 ? 0
		       : hs_fault_set(fault, HS_EIO, "cannot write '%s': %s", path, strerror(-rc));
}

int hs_checkpoint_restore(const char *folder, const struct hs_checkpoint_found *found,
			  uint16_t stores, struct hs_fault *fault)
{
	int fds[HS_PARTITIONS_MAX];
	uint64_t file_bytes;
	int rc = make_sure(folder, found, stores, fault);

	for (uint16_t id = 0; id < stores; id++)
		fds[id] = -1;
	for (uint16_t id = 0; id < stores && rc == 0; id++) {
		hs_checkpoint_metas(found, id, &file_bytes);
		rc = open_store(folder, id, file_bytes, &fds[id], fault);
	}
	for (uint16_t id = 0; id < stores && rc == 0; id++) {
		struct hs_bytes metas = hs_checkpoint_metas(found, id, &file_bytes);
		int failed = hs_file_write(fds[id], metas.data, metas.len, 0);

		/* Synced before close, because an error could not be reported afterwards. */
		if (!failed)
			failed = hs_file_sync(fds[id]);
		if (failed)
			rc = hs_fault_set(fault, HS_EIO, "cannot write a store in '%s': %s", folder,
					  strerror(-failed));
	}
	for (uint16_t id = 0; id < stores; id++)
		if (fds[id] >= 0)
			close(fds[id]);
	return rc;
}

/* Writes a store's pages to the disk in small steps, so that the disk's queue stays short for the
 * log's syncs, which clients wait for. sync_store, which follows, then has little to write.
 *
 * The kernel reports a failed write once for each open file: to this call or to the later sync. Afterwards it
 * takes the pages for clean. So an error of this call makes the checkpoint fail. */
static int write_back(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) != 0)
		return -errno;
	/* Without flags the call writes no page. It fails only if the system does not support sync_file_range. */
	if (sync_file_range(fd, 0, 1, 0) != 0)
		return 0;
	for (off_t at = 0; at < stat.st_size; at += WRITE_BACK_BYTES)
		if (sync_file_range(fd, at, WRITE_BACK_BYTES,
				    SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE |
					    SYNC_FILE_RANGE_WAIT_AFTER) != 0)
			return -errno;
	return 0;
}

/* Syncs all pages that LMDB wrote to a store. LMDB writes through one descriptor only, which is the one used here,
 * so the sync reports every failed write. Returns 0 or a negative errno. */
static int sync_store(struct hs_store *store, bool urgent)
{
	mdb_filehandle_t fd;
	int rc = mdb_env_get_fd(store->env, &fd);

	if (rc != 0)
		return -EINVAL;
	rc = urgent ? 0 : write_back(fd);
	return rc == 0 ? -mdb_env_sync(store->env, 1) : rc;
}

/* Makes the checkpoint, on the checkpoint's thread. Returns 0, or a code with the reason in `failure`. */
static int make(struct hs_checkpoint *checkpoint)
{
	struct hs_fault fault = {checkpoint->failure, sizeof checkpoint->failure};
	struct head head;
	int rc;

	for (uint16_t id = 0; id < checkpoint->count; id++) {
		struct hs_store *store = &checkpoint->stores[id];

		rc = sync_store(store, checkpoint->urgent);
		if (rc != 0)
			return hs_fault_set(&fault, HS_EIO, "cannot sync '%s': %s", store->path,
					    mdb_strerror(-rc));
	}
	head = head_of(checkpoint->image);
	head.checksum = sum(checkpoint->image, checkpoint->image_bytes, checkpoint->seed);
	memcpy(checkpoint->image, &head, sizeof head);
	rc = write_copies(checkpoint->fd[checkpoint->next], checkpoint->image,
			  checkpoint->image_bytes, copy_bytes(checkpoint->image_bytes));
	if (rc != 0)
		return hs_fault_set(&fault, HS_EIO, "cannot write '%s/%s': %s", checkpoint->folder,
				    file_names[checkpoint->next], strerror(-rc));
	checkpoint->next = !checkpoint->next;
	return 0;
}

static void run(void *argument)
{
	struct hs_checkpoint *checkpoint = argument;

	pthread_setname_np(pthread_self(), "checkpoint");
	uv_mutex_lock(&checkpoint->mutex);
	for (;;) {
		while (atomic_load(&checkpoint->state) != HS_CHECKPOINT_RUNNING &&
		       !checkpoint->stop)
			uv_cond_wait(&checkpoint->cond, &checkpoint->mutex);
		if (atomic_load(&checkpoint->state) != HS_CHECKPOINT_RUNNING)
			break;
		uv_mutex_unlock(&checkpoint->mutex);
		checkpoint->result = make(checkpoint);
		uv_mutex_lock(&checkpoint->mutex);
		atomic_store(&checkpoint->state, HS_CHECKPOINT_FINISHED);
		uv_cond_broadcast(&checkpoint->cond);
	}
	uv_mutex_unlock(&checkpoint->mutex);
}

int hs_checkpoint_start(struct hs_checkpoint *checkpoint, const char *folder,
			struct hs_store *stores, uint16_t count, uint64_t seed, int next,
			struct hs_fault *fault)
{
	uint64_t file_bytes;
	int rc = 0;

	memset(checkpoint, 0, sizeof *checkpoint);
	checkpoint->fd[0] = checkpoint->fd[1] = -1;
	checkpoint->folder = folder;
	checkpoint->stores = stores;
	checkpoint->count = count;
	checkpoint->seed = seed;
	checkpoint->next = next;
	checkpoint->image_bytes = image_bytes(count, stores[0].page_bytes);
	file_bytes = COPIES * copy_bytes(checkpoint->image_bytes);
	for (int i = 0; i < 2; i++) {
		char path[HS_PATH_BYTES_MAX];
		struct stat stat;

		checkpoint->fd[i] = hs_file_open(folder, file_names[i], O_RDWR | O_CREAT, path);
		/* The file has exactly this length, because the second copy begins in the middle. */
		if (checkpoint->fd[i] < 0)
			rc = checkpoint->fd[i];
		else if (fstat(checkpoint->fd[i], &stat) != 0 ||
			 ((uint64_t)stat.st_size > file_bytes &&
			  ftruncate(checkpoint->fd[i], (off_t)file_bytes) != 0))
			rc = -errno;
		else if ((uint64_t)stat.st_size < file_bytes)
			rc = hs_file_zero(checkpoint->fd[i], (uint64_t)stat.st_size, file_bytes);
		if (rc != 0)
			return hs_fault_set(fault, HS_EIO, "cannot write '%s': %s", path,
					    strerror(-rc));
	}
	rc = hs_file_sync_folder(folder); /* makes the entry of a new file in the folder durable */
	if (rc != 0)
		return hs_fault_set(fault, HS_EIO, "cannot sync '%s': %s", folder, strerror(-rc));
	checkpoint->image = hs_mem_alloc(checkpoint->image_bytes);
	hs_check(uv_mutex_init(&checkpoint->mutex) == 0);
	hs_check(uv_cond_init(&checkpoint->cond) == 0);
	hs_check(uv_thread_create(&checkpoint->thread, run, checkpoint) == 0);
	return 0;
}

void hs_checkpoint_stop(struct hs_checkpoint *checkpoint)
{
	if (checkpoint->image) {
		uv_mutex_lock(&checkpoint->mutex);
		checkpoint->stop = true;
		uv_cond_broadcast(&checkpoint->cond);
		uv_mutex_unlock(&checkpoint->mutex);
		uv_thread_join(&checkpoint->thread);
		uv_cond_destroy(&checkpoint->cond);
		uv_mutex_destroy(&checkpoint->mutex);
		hs_mem_free(&checkpoint->image);
	}
	for (int i = 0; i < 2; i++)
		if (checkpoint->stores && checkpoint->fd[i] >= 0)
			close(checkpoint->fd[i]);
	checkpoint->stores = NULL;
}

int hs_checkpoint_begin(struct hs_checkpoint *checkpoint, uint64_t lsn)
{
	struct head head = {.magic = MAGIC,
			    .lsn = lsn,
			    .log_bytes = checkpoint->log_bytes,
			    .stores = checkpoint->count};
	char *at = checkpoint->image + sizeof head;

	hs_check(atomic_load(&checkpoint->state) != HS_CHECKPOINT_RUNNING);
	/* After a failed checkpoint there is no further one: the kernel does not report a write error twice. */
	if (atomic_load(&checkpoint->state) == HS_CHECKPOINT_FINISHED)
		return checkpoint->result;
	head.page_bytes = (uint32_t)checkpoint->stores[0].page_bytes;
	memcpy(checkpoint->image, &head, sizeof head);
	for (uint16_t id = 0; id < checkpoint->count; id++) {
		struct hs_store *store = &checkpoint->stores[id];
		struct part part;
		int rc = hs_store_pin(store, at + sizeof part, &part.file_bytes);

		if (rc != 0) {
			snprintf(checkpoint->failure, sizeof checkpoint->failure,
				 "cannot read '%s': %s", store->path, hs_store_failure_text(store));
			return rc;
		}
		memcpy(at, &part, sizeof part);
		at += part_bytes(store->page_bytes);
	}
	uv_mutex_lock(&checkpoint->mutex);
	atomic_store(&checkpoint->state, HS_CHECKPOINT_RUNNING);
	uv_cond_broadcast(&checkpoint->cond);
	uv_mutex_unlock(&checkpoint->mutex);
	return 0;
}

bool hs_checkpoint_collect(struct hs_checkpoint *checkpoint, bool wait, int *result)
{
	*result = 0;
	if (wait) {
		uv_mutex_lock(&checkpoint->mutex);
		while (atomic_load(&checkpoint->state) == HS_CHECKPOINT_RUNNING)
			uv_cond_wait(&checkpoint->cond, &checkpoint->mutex);
		uv_mutex_unlock(&checkpoint->mutex);
	}
	switch (atomic_load(&checkpoint->state)) {
	case HS_CHECKPOINT_IDLE:
		return true;
	case HS_CHECKPOINT_RUNNING:
		return false;
	default:
		break;
	}
	*result = checkpoint->result;
	if (*result == 0) {
		for (uint16_t id = 0; id < checkpoint->count; id++)
			hs_store_pin_advance(&checkpoint->stores[id]);
		hs_counter_add(&checkpoint->counters.checkpoints, 1);
		atomic_store(&checkpoint->state, HS_CHECKPOINT_IDLE);
	}
	return *result == 0;
}
