#include "engine/embedded/database.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FORMAT_VERSION = 1, FORMAT_BYTES_MAX = 256 };

/* While a database is being made its format file has this name. Found at start, it means that the
 * making was cut short and nothing in the folder was ever used. */
#define FORMAT_UNFINISHED "format.new"
#define FORMAT_TEXT "heatsink data, format %u\npartitions %u\nseed %016llx\n"

/* The lock is on the folder itself: a lock file could be removed and made anew by another process,
 * and then both would hold one. */
int hs_database_lock(const char *folder, int *lock_fd, struct hs_fault *fault)
{
	*lock_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*lock_fd < 0)
		return hs_fault_set(fault, HS_EIO, "cannot open the data folder '%s': %s", folder,
				    strerror(errno));
	if (flock(*lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return hs_fault_set(fault, HS_EBUSY,
				    "the data folder '%s' is in use by another process", folder);
	return hs_fault_set(fault, HS_EIO, "cannot lock the data folder '%s': %s", folder,
			    strerror(errno));
}

static int make_and_lock_folder(struct hs_database *database, struct hs_fault *fault)
{
	if (mkdir(database->folder, 0700) != 0 && errno != EEXIST)
		return hs_fault_set(fault, HS_EIO, "cannot make the data folder '%s': %s",
				    database->folder, strerror(errno));
	return hs_database_lock(database->folder, &database->lock_fd, fault);
}

/* 1 when the folder holds a database, 0 when it holds none, or an error. */
static int read_format(struct hs_database *database, struct hs_fault *fault)
{
	char path[HS_PATH_BYTES_MAX], text[FORMAT_BYTES_MAX] = "";
	unsigned version, partitions;
	unsigned long long seed;
	ssize_t got;
	int fd, fields;

	if (!hs_file_path(path, database->folder, "format"))
		return hs_fault_set(fault, HS_EINVAL, "the path of '%s' is too long",
				    database->folder);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT) {
		if (hs_file_exists(database->folder, "store-000") &&
		    !hs_file_exists(database->folder, FORMAT_UNFINISHED))
			return hs_fault_set(fault, HS_ECORRUPT,
					    "damaged data: '%s' holds stores but no format file",
					    database->folder);
		return 0;
	}
	if (fd < 0)
		return hs_fault_set(fault, HS_EIO, "cannot read '%s': %s", path, strerror(errno));
	got = read(fd, text, sizeof text - 1);
	close(fd);
	if (got < 0)
		return hs_fault_set(fault, HS_EIO, "cannot read '%s': %s", path, strerror(errno));
	fields = sscanf(text, FORMAT_TEXT, &version, &partitions, &seed);
	if (fields >= 1 && version > FORMAT_VERSION)
		return hs_fault_set(fault, HS_EVERSION,
				    "the data in '%s' has format %u; this heatsink knows up to %u",
				    database->folder, version, (unsigned)FORMAT_VERSION);
	if (fields != 3 || partitions < 1 || partitions > HS_PARTITIONS_MAX)
		return hs_fault_set(fault, HS_ECORRUPT, "damaged data: '%s' makes no sense", path);
	database->partitions = (uint16_t)partitions;
	database->seed = seed;
	return 1;
}

static void remove_file(const struct hs_database *database, const char *name)
{
	char path[HS_PATH_BYTES_MAX];

	if (hs_file_path(path, database->folder, name))
		unlink(path);
}

/* LMDB keeps its list of readers there, which is of no value once they are gone. */
static void remove_reader_tables(const struct hs_database *database)
{
	for (unsigned id = 0; id < HS_PARTITIONS_MAX; id++) {
		char store[16], name[32];

		hs_store_name(store, sizeof store, (uint16_t)id);
		snprintf(name, sizeof name, "%s-lock", store);
		remove_file(database, name);
	}
}

static int open_stores(struct hs_database *database, const struct hs_embedded_options *options,
		       uint32_t readers, struct hs_fault *fault)
{
	int rc = 0;

	remove_reader_tables(database);
	database->stores = hs_mem_zalloc(database->partitions * sizeof *database->stores);
	for (uint16_t id = 0; id < database->partitions && rc == 0; id++)
		rc = hs_store_open(&database->stores[id], id, database->folder,
				   options->store_bytes_max, readers, fault);
	return rc;
}

/* A checkpoint of the stores as they are, waited for; the log starts anew behind it. */
static int start_anew(struct hs_database *database, uint64_t lsn, int file, struct hs_fault *fault)
{
	struct hs_checkpoint *checkpoint = &database->checkpoint;
	int rc = hs_checkpoint_start(checkpoint, database->folder, database->stores,
				     database->partitions, database->seed, file, fault);

	if (rc != 0)
		return rc;
	checkpoint->hurry = true;
	rc = hs_checkpoint_begin(checkpoint, hs_redo_lsn_leap(lsn));
	if (rc == 0)
		hs_checkpoint_collect(checkpoint, true, &rc);
	checkpoint->hurry = false;
	if (rc != 0)
		return hs_fault_set(fault, rc, "%s", checkpoint->failure);
	database->redo.lsn = hs_redo_lsn_leap(lsn);
	return hs_redo_resize(&database->redo, fault);
}

static int make(struct hs_database *database, const struct hs_embedded_options *options,
		uint32_t readers, struct hs_fault *fault)
{
	char text[FORMAT_BYTES_MAX], from[HS_PATH_BYTES_MAX], to[HS_PATH_BYTES_MAX];
	int len, rc;

	database->partitions = options->partitions;
	if (getrandom(&database->seed, sizeof database->seed, 0) != sizeof database->seed)
		return hs_fault_set(fault, HS_EIO, "the system gives no random bytes: %s",
				    strerror(errno));
	len = snprintf(text, sizeof text, FORMAT_TEXT, (unsigned)FORMAT_VERSION,
		       (unsigned)database->partitions, (unsigned long long)database->seed);
	rc = hs_file_replace(database->folder, FORMAT_UNFINISHED, text, (size_t)len);
	if (rc != 0)
		return hs_fault_set(fault, HS_EIO, "cannot write to the data folder '%s': %s",
				    database->folder, strerror(-rc));

	/* Left over from a making that was cut short. */
	for (unsigned id = 0; id < HS_PARTITIONS_MAX; id++) {
		hs_store_name(text, sizeof text, (uint16_t)id);
		remove_file(database, text);
	}
	if ((rc = open_stores(database, options, readers, fault)) != 0 ||
	    (rc = hs_redo_open(&database->redo, database->folder, true, options->log_bytes,
			       options->sync, database->seed, fault)) != 0 ||
	    (rc = start_anew(database, 0, 0, fault)) != 0)
		return rc;

	if (!hs_file_path(from, database->folder, FORMAT_UNFINISHED) ||
	    !hs_file_path(to, database->folder, "format"))
		return hs_fault_set(fault, HS_EINVAL, "the path of '%s' is too long",
				    database->folder);
	rc = hs_file_sync_folder(database->folder);
	if (rc == 0 && rename(from, to) != 0)
		rc = -errno;
	if (rc == 0)
		rc = hs_file_sync_folder(database->folder);
	if (rc != 0)
		return hs_fault_set(fault, HS_EIO, "cannot write '%s': %s", to, strerror(-rc));
	return 0;
}

static int come_back(struct hs_database *database, const struct hs_embedded_options *options,
		     uint32_t readers, struct hs_log *log, struct hs_fault *fault)
{
	uint64_t lsn = 0;
	int file, rc;
	char *metas;

	if ((rc = hs_redo_open(&database->redo, database->folder, false, options->log_bytes,
			       options->sync, database->seed, fault)) != 0 ||
	    (rc = hs_checkpoint_restore(database->folder, database->partitions, database->seed,
					&lsn, &file, fault)) != 0 ||
	    (rc = open_stores(database, options, readers, fault)) != 0)
		return rc;

	/* Until the next checkpoint is on disk the one just put back must stay whole. */
	metas = hs_mem_alloc(2 * database->stores[0].page_bytes);
	for (uint16_t id = 0; id < database->partitions && rc == 0; id++) {
		struct hs_store *store = &database->stores[id];
		uint64_t file_bytes;

		rc = hs_store_pin(store, metas, &file_bytes);
		if (rc != 0)
			hs_fault_set(fault, rc, "cannot read '%s': %s", store->path,
				     hs_store_failure_text(store));
		hs_store_pin_advance(store);
	}
	hs_mem_free(&metas);
	if (rc == 0)
		rc = hs_replay(database, &lsn, log, fault);
	return rc == 0 ? start_anew(database, lsn, !file, fault) : rc;
}

int hs_database_open(struct hs_database *database, const struct hs_embedded_options *options,
		     uint32_t readers, struct hs_log *log, struct hs_fault *fault)
{
	int rc, found = 0;

	memset(database, 0, sizeof *database);
	database->lock_fd = -1;
	database->redo.fd[0] = database->redo.fd[1] = -1;
	if (snprintf(database->folder, sizeof database->folder, "%s", options->data) >=
	    (int)sizeof database->folder)
		return hs_fault_set(fault, HS_EINVAL, "the path of '%s' is too long",
				    options->data);

	rc = make_and_lock_folder(database, fault);
	if (rc == 0)
		rc = found = read_format(database, fault);
	if (found > 0) {
		if (database->partitions != options->partitions)
			hs_log(log, HS_LOG_WARN,
			       "the data in '%s' has %u partitions; that stays so",
			       database->folder, (unsigned)database->partitions);
		rc = come_back(database, options, readers, log, fault);
	} else if (rc == 0) {
		rc = make(database, options, readers, fault);
	}
	if (rc != 0)
		hs_database_close(database);
	return rc;
}

void hs_database_close(struct hs_database *database)
{
	hs_checkpoint_stop(&database->checkpoint);
	hs_redo_close(&database->redo);
	for (uint16_t id = 0; database->stores && id < database->partitions; id++)
		hs_store_close(&database->stores[id]);
	hs_mem_free(&database->stores);
	if (database->lock_fd >= 0)
		close(database->lock_fd);
	database->lock_fd = -1;
}
