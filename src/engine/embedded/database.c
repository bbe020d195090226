#include "engine/embedded/database.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "engine/embedded/format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* Locks the folder itself. Another process could remove a lock file and create it again, and then both processes
 * would hold a lock. */
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
				    "the data folder '%s' is in use by another process: stop it, "
				    "or choose another folder with --data",
				    folder);
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

static int remove_file(const struct hs_database *database, const char *name, struct hs_fault *fault)
{
	int rc = hs_file_remove(database->folder, name);

	return rc == 0 ? 0
		       : hs_fault_set(fault, HS_EIO, "cannot remove '%s/%s': %s", database->folder,
				      name, strerror(-rc));
}

/* Removes LMDB's lock files. They list the readers of the last process, which has ended. */
static int remove_reader_tables(const struct hs_database *database, struct hs_fault *fault)
{
	int rc = 0;

	for (unsigned id = 0; id < HS_PARTITIONS_MAX && rc == 0; id++) {
		char store[16], name[32];

		hs_store_name(store, sizeof store, (uint16_t)id);
		snprintf(name, sizeof name, "%s-lock", store);
		rc = remove_file(database, name, fault);
	}
	return rc;
}

static int open_stores(struct hs_database *database, const struct hs_embedded_options *options,
		       uint32_t readers, struct hs_fault *fault)
{
	int rc = remove_reader_tables(database, fault);

	if (rc != 0)
		return rc;
	database->stores = hs_mem_zalloc(database->partitions * sizeof *database->stores);
	for (uint16_t id = 0; id < database->partitions && rc == 0; id++)
		rc = hs_store_open(&database->stores[id], id, database->folder,
				   options->store_bytes_max, readers, fault);
	return rc;
}

static int checkpoint_now(struct hs_database *database, uint64_t lsn, struct hs_fault *fault)
{
	struct hs_checkpoint *checkpoint = &database->checkpoint;
	int rc;

	checkpoint->urgent = true;
	rc = hs_checkpoint_begin(checkpoint, lsn);
	if (rc == 0)
		hs_checkpoint_collect(checkpoint, true, &rc);
	checkpoint->urgent = false;
	return rc != 0 ? hs_fault_set(fault, rc, "%s", checkpoint->failure) : 0;
}

int hs_database_checkpoint(struct hs_database *database, struct hs_fault *fault)
{
	database->redo.lsn = hs_redo_lsn_leap(database->redo.lsn);
	return checkpoint_now(database, database->redo.lsn, fault);
}

/* Makes the first checkpoint of this start and waits for it. The log starts over behind the checkpoint, in files
 * of the configured size. The log files are never shorter than a checkpoint says: see redo.h. */
static int start_anew(struct hs_database *database, uint64_t lsn, int file, struct hs_fault *fault)
{
	int rc = hs_redo_grow(&database->redo, fault);

	if (rc == 0)
		rc = hs_checkpoint_start(&database->checkpoint, database->folder, database->stores,
					 database->partitions, database->seed, file, fault);
	database->checkpoint.log_bytes = database->redo.file_bytes;
	database->redo.lsn = hs_redo_lsn_leap(lsn);
	if (rc == 0)
		rc = checkpoint_now(database, database->redo.lsn, fault);
	return rc == 0 ? hs_redo_cut(&database->redo, fault) : rc;
}

static int make(struct hs_database *database, const struct hs_embedded_options *options,
		uint32_t readers, struct hs_fault *fault)
{
	struct hs_format format = {.version = HS_FORMAT_VERSION, .partitions = options->partitions};
	int rc;

	if (getrandom(&format.seed, sizeof format.seed, 0) != sizeof format.seed)
		return hs_fault_set(fault, HS_EIO, "cannot get random bytes from the system: %s",
				    strerror(errno));
	database->partitions = format.partitions;
	database->seed = format.seed;
	rc = hs_format_begin(database->folder, &format, fault);
	if (rc != 0)
		return rc;

	/* An interrupted creation of a database may have left store files: removes them. */
	for (unsigned id = 0; id < HS_PARTITIONS_MAX && rc == 0; id++) {
		char name[16];

		hs_store_name(name, sizeof name, (uint16_t)id);
		rc = remove_file(database, name, fault);
	}
	/* start_anew writes the first checkpoint, checkpoint_now the second: afterwards each of the two checkpoint
	 * files has one. */
	if (rc != 0 || (rc = open_stores(database, options, readers, fault)) != 0 ||
	    (rc = hs_redo_open(&database->redo, database->folder, true, options->log_bytes,
			       options->sync, database->seed, fault)) != 0 ||
	    (rc = start_anew(database, 0, 0, fault)) != 0 ||
	    (rc = checkpoint_now(database, database->redo.lsn, fault)) != 0 ||
	    (rc = hs_format_rewrite(database->folder, &format, true, fault)) != 0)
		return rc;
	return hs_format_finish(database->folder, fault);
}

static int log_damaged(const struct hs_database *database, const char *text, struct hs_fault *fault)
{
	return hs_fault_set(fault, HS_ECORRUPT,
			    "damaged data: %s; nothing was changed; 'heatsink repair --data %s "
			    "--dry-run' shows what can be saved",
			    text, database->folder);
}

/* Returns an error if the log lacks records that were on disk. */
static int check_log(const struct hs_database *database, const struct hs_checkpoint_found *found,
		     struct hs_fault *fault)
{
	struct hs_redo_survey survey;
	char text[HS_PATH_BYTES_MAX + 256];
	int rc;

	for (int file = 0; file < 2; file++)
		if (hs_redo_file_short(&database->redo, file, found->log_bytes, text, sizeof text))
			return log_damaged(database, text, fault);
	rc = hs_redo_survey(&database->redo, found->lsn, &survey, fault);
	if (rc != 0 || !survey.beyond_first.lsn)
		return rc;
	hs_redo_survey_text(&survey, database->folder, text, sizeof text);
	if (survey.damage)
		return log_damaged(database, text, fault);
	hs_log(database->log, HS_LOG_WARN,
	       "%s; these records are dropped: without sync a power cut loses the last writes",
	       text);
	return 0;
}

/* Finds the checkpoint to restore and checks the log behind it. Writes nothing. */
static int find_checkpoint(struct hs_database *database, const struct hs_embedded_options *options,
			   struct hs_checkpoint_found *found, struct hs_fault *fault)
{
	int rc = hs_checkpoint_find(database->folder, database->partitions, database->seed, found,
				    fault);

	if (rc == HS_ECORRUPT && options->repair && found->image)
		rc = 0;
	if (rc == 0 && found->broken_copies)
		hs_log(database->log, HS_LOG_WARN,
		       "%d of the 4 copies in the checkpoint files of '%s' are damaged: a crash "
		       "can tear one, more mean that the disk is damaged; a whole copy is used",
		       found->broken_copies, database->folder);
	if (rc == 0 && !options->repair)
		rc = check_log(database, found, fault);
	return rc;
}

/* Pins the restored checkpoint in every store: its pages must stay until the next checkpoint is on disk. */
static int pin_stores(struct hs_database *database, struct hs_fault *fault)
{
	char *metas = hs_mem_alloc(2 * database->stores[0].page_bytes);
	int rc = 0;

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
	return rc;
}

static int come_back(struct hs_database *database, const struct hs_embedded_options *options,
		     uint32_t readers, struct hs_fault *fault)
{
	struct hs_checkpoint_found found = {.image = NULL};
	uint64_t lsn;
	int file, rc;

	/* With `repair`, a missing log file is created. */
	rc = hs_redo_open(&database->redo, database->folder, options->repair, options->log_bytes,
			  options->sync, database->seed, fault);
	if (rc == 0)
		rc = find_checkpoint(database, options, &found, fault);
	if (rc == 0)
		rc = hs_checkpoint_restore(database->folder, &found, database->partitions, fault);
	lsn = found.lsn;
	file = found.file;
	hs_checkpoint_found_deinit(&found);
	if (rc == 0)
		rc = open_stores(database, options, readers, fault);
	if (rc == 0)
		rc = pin_stores(database, fault);
	if (rc == 0)
		rc = hs_replay(database, &lsn, options->repair, fault);
	return rc == 0 ? start_anew(database, lsn, !file, fault) : rc;
}

static int rewrite_format_copy(struct hs_database *database, const struct hs_format *format,
			       struct hs_fault *fault)
{
	struct hs_format copy;

	if (hs_format_copy(database->folder, &copy))
		return 0;
	hs_log(database->log, HS_LOG_WARN,
	       "the copy of '%s/format' is missing or damaged: writing it again", database->folder);
	return hs_format_rewrite(database->folder, format, true, fault);
}

int hs_database_open(struct hs_database *database, const struct hs_embedded_options *options,
		     uint32_t readers, struct hs_log *log, struct hs_fault *fault)
{
	struct hs_format format = {0};
	int rc, found = 0;

	memset(database, 0, sizeof *database);
	database->lock_fd = -1;
	database->log = log;
	database->redo.fd[0] = database->redo.fd[1] = -1;
	if (snprintf(database->folder, sizeof database->folder, "%s", options->data) >=
	    (int)sizeof database->folder)
		return hs_fault_set(fault, HS_EINVAL, "the path of '%s' is too long",
				    options->data);

	rc = make_and_lock_folder(database, fault);
	if (rc == 0)
		rc = found = hs_format_read(database->folder, &format, fault);
	if (found > 0) {
		database->partitions = format.partitions;
		database->seed = format.seed;
		if (database->partitions != options->partitions)
			hs_log(log, HS_LOG_WARN,
			       "the data in '%s' has %u partitions: the configured number is "
			       "ignored, "
			       "because it cannot change",
			       database->folder, (unsigned)database->partitions);
		rc = rewrite_format_copy(database, &format, fault);
		if (rc == 0)
			rc = come_back(database, options, readers, fault);
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

void hs_database_report_damaged(const struct hs_database *database, uint16_t store,
				struct hs_keyspace *ks, struct hs_counter *count)
{
	enum { ALL_UP_TO = 16 };
	uint64_t times;

	ks->damaged = false;
	hs_counter_add(count, 1);
	times = hs_counter_get(count);
	if (times > ALL_UP_TO && (times & (times - 1)) != 0)
		return;
	hs_log(database->log, HS_LOG_ERROR,
	       "damaged data: the record of key '%s' in '%s' fails its checksum (%llu such reads "
	       "by "
	       "this thread); 'heatsink check --data %s' lists all damage when the server is "
	       "stopped",
	       ks->damaged_key, database->stores[store].path, (unsigned long long)times,
	       database->folder);
}
