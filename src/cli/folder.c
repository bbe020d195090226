#include "cli/folder.h"

#include "base/err.h"
#include "base/mem.h"
#include "engine/embedded/audit.h"
#include "engine/embedded/database.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PROGRESS_TTY_MS = 500, /* on a terminal: one line that overwrites itself */
	PROGRESS_MS = 10000,   /* else: a new line each time */
	GAP_KEYS_MAX = 20,
};

static int read_format(struct hs_folder *folder, struct hs_fault *fault)
{
	int rc = hs_format_read(folder->path, &folder->format, fault);

	if (rc == HS_ECORRUPT && hs_format_copy(folder->path, &folder->format)) {
		printf("%s\n", folder->error);
		folder->format_damaged = true;
		return 0;
	}
	if (rc == 0)
		return hs_fault_set(fault, HS_EINVAL, "'%s' holds no heatsink data", folder->path);
	return rc > 0 ? 0 : rc;
}

static int read_checkpoint(struct hs_folder *folder, struct hs_fault *fault)
{
	struct hs_checkpoint_found *found = &folder->checkpoint;
	int rc = hs_checkpoint_find(folder->path, folder->format.partitions, folder->format.seed,
				    found, fault);

	if (rc == HS_ECORRUPT && found->image) {
		printf("%s\n", folder->error);
		folder->checkpoint_damaged = true;
		return 0;
	}
	if (rc == 0 && found->broken_copies)
		printf("checkpoint files: %d of 4 copies are damaged (a crash can tear one); each "
		       "file has an intact copy\n",
		       found->broken_copies);
	else if (rc == 0)
		printf("checkpoint files: whole\n");
	return rc;
}

bool hs_folder_log_short(const struct hs_folder *folder)
{
	return folder->log_short[0] || folder->log_short[1];
}

static int read_log(struct hs_folder *folder, struct hs_fault *fault)
{
	struct hs_redo_survey *log = &folder->log;
	int rc = hs_redo_open_to_read(&folder->redo, folder->path, folder->format.seed, fault);

	for (int file = 0; file < 2 && rc == 0; file++) {
		folder->log_short[file] =
			hs_redo_file_short(&folder->redo, file, folder->checkpoint.log_bytes,
					   folder->error, sizeof folder->error);
		if (folder->log_short[file])
			printf("log: %s\n", folder->error);
	}
	if (rc == 0)
		rc = hs_redo_survey(&folder->redo, folder->checkpoint.lsn, log, fault);
	if (rc != 0)
		return rc;
	if (!log->beyond_first.lsn) {
		printf("log: %" PRIu64 " records to replay, %s\n", log->records,
		       hs_folder_log_short(folder) ? "DAMAGED" : "whole");
		return 0;
	}
	hs_redo_survey_text(log, folder->path, folder->error, sizeof folder->error);
	printf("log: %" PRIu64 " records to replay, then %s%s\n", log->records, folder->error,
	       log->damage ? "" : "; without sync a power cut may leave that, a start drops them");
	return 0;
}

int hs_folder_open(struct hs_folder *folder, const char *path)
{
	struct hs_fault fault = {folder->error, sizeof folder->error};
	int rc;

	memset(folder, 0, sizeof *folder);
	folder->path = path;
	folder->redo.fd[0] = folder->redo.fd[1] = -1;
	rc = hs_database_lock(path, &folder->lock_fd, &fault);
	if (rc == 0)
		rc = read_format(folder, &fault);
	if (rc == 0) {
		printf("'%s': format %u, %u partitions\n", path, folder->format.version,
		       (unsigned)folder->format.partitions);
		rc = read_checkpoint(folder, &fault);
	}
	if (rc == 0)
		rc = read_log(folder, &fault);
	return rc;
}

void hs_folder_close(struct hs_folder *folder)
{
	hs_redo_close(&folder->redo);
	hs_checkpoint_found_deinit(&folder->checkpoint);
	if (folder->lock_fd >= 0)
		close(folder->lock_fd);
	folder->lock_fd = -1;
}

static void show_progress(const char *name, const struct hs_audit_progress *progress, bool tty)
{
	fprintf(stderr, "%s%s: %" PRIu64 " of %" PRIu64 " entries%s", tty ? "\r" : "", name,
		progress->entries, progress->expected, tty ? " \033[K" : "\n");
	fflush(stderr);
}

/* Waits until the child has ended: the pipe closes then, also after a crash. */
static void wait_for(int pipe_fd, const char *name, const struct hs_audit_progress *progress)
{
	bool tty = isatty(STDERR_FILENO);
	struct pollfd poll_fd = {.fd = pipe_fd, .events = POLLIN};

	while (poll(&poll_fd, 1, tty ? PROGRESS_TTY_MS : PROGRESS_MS) <= 0)
		show_progress(name, progress, tty);
	if (tty)
		fprintf(stderr, "\r\033[K");
}

static void audit_in_child(const struct hs_audit *audit)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_CORE,
		  &none); /* a crash of the child is a finding, not a bug: no core file */
	hs_audit_store(audit);
	fflush(stdout);
	_exit(0);
}

/* Prints and adds up the findings of a child. */
static void conclude(struct hs_folder *folder, const char *name, struct hs_audit_progress *progress,
		     int status)
{
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		progress->broken++;
		printf("%s: reading stopped early (%s) after %" PRIu64 " entries, after key "
		       "'%s': a page of its trees is damaged\n",
		       name,
		       WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit status not 0",
		       progress->entries, progress->last);
	}
	printf("%s: %" PRIu64 " keys, %" PRIu64 " expiries, %s\n", name, progress->keys,
	       progress->expiries,
	       progress->damaged + progress->misfits + progress->metas + progress->broken
		       ? "DAMAGED"
		       : "whole");
	fflush(stdout);
	folder->keys += progress->keys;
	folder->expiries += progress->expiries;
	folder->damaged += progress->damaged;
	folder->misfits += progress->misfits;
	folder->metas += progress->metas;
	folder->broken += progress->broken;
}

static void audit_store(struct hs_folder *folder, uint16_t id, struct hs_audit_progress *progress)
{
	struct hs_audit audit = {
		.folder = folder->path,
		.store = id,
		.partitions = folder->format.partitions,
		.seed = folder->format.seed,
		.checkpoint = &folder->checkpoint,
		.progress = progress,
		.out = stdout,
	};
	int ends[2] = {-1, -1}, status = 0;
	char name[16];
	pid_t child;

	memset(progress, 0, sizeof *progress);
	hs_store_name(name, sizeof name, id);
	fflush(stdout);
	child = pipe(ends) == 0 ? fork() : -1;
	if (child < 0) {
		printf("%s: cannot start a process to read it: %s\n", name, strerror(errno));
		folder->broken++;
	} else if (child == 0) {
		close(ends[0]);
		audit_in_child(&audit);
	} else {
		close(ends[1]);
		ends[1] = -1;
		wait_for(ends[0], name, progress);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			continue;
		conclude(folder, name, progress, status);
	}
	for (int i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

void hs_folder_audit(struct hs_folder *folder)
{
	struct hs_audit_progress *progress = mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE,
						  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (progress == MAP_FAILED) {
		printf("cannot check the stores: no memory: %s\n", strerror(errno));
		folder->broken++;
		return;
	}
	for (uint16_t id = 0; id < folder->format.partitions; id++)
		audit_store(folder, id, progress);
	munmap(progress, sizeof *progress);
}

bool hs_folder_damaged(const struct hs_folder *folder)
{
	return folder->format_damaged || folder->checkpoint_damaged || folder->log.damage ||
	       hs_folder_log_short(folder) || folder->damaged || folder->misfits || folder->metas ||
	       folder->broken;
}

/* Prints the keys of the entries that can still be read from a broken record. */
static void show_keys(struct hs_bytes body)
{
	char text[HS_AUDIT_KEY_MAX];
	struct hs_redo_entry entry;
	int shown = 0;

	while (hs_redo_entry_take(&body, &entry) > 0) {
		if (entry.tree != HS_KV_KEYS || entry.op < HS_REDO_PUT || entry.op > HS_REDO_DEL)
			continue;
		if (shown++ == GAP_KEYS_MAX) {
			printf("    and more\n");
			return;
		}
		hs_audit_key_text(entry.key, text);
		printf("    %s key '%s'\n", entry.op == HS_REDO_PUT ? "a write of" : "a delete of",
		       text);
	}
	if (shown == 0)
		printf("    its keys cannot be read\n");
}

void hs_folder_show_gaps(struct hs_folder *folder)
{
	struct hs_fault fault = {folder->error, sizeof folder->error};
	struct hs_redo_record record;
	struct hs_redo_place place;
	struct hs_redo_reader reader;
	uint64_t kept = 0;

	if (hs_redo_reader_open(&reader, &folder->redo, folder->checkpoint.lsn, &fault) != 0) {
		printf("%s\n", folder->error);
		return;
	}
	for (;;) {
		uint64_t lsn;
		int turn;
		size_t at;

		while (hs_redo_reader_next(&reader, &record))
			kept++;
		lsn = reader.lsn;
		turn = reader.end_file;
		at = reader.end_at;
		if (!hs_redo_reader_leap(&reader, &place))
			break;
		printf("  lost: records %" PRIu64 " to %" PRIu64 ", before byte %" PRIu64
		       " of '%s'\n",
		       lsn, place.lsn - 1, place.at, hs_redo_file_name(place.turn));
		if (turn < 0)
			turn = place.turn, at = 0;
		if (turn == place.turn && at < place.at)
			show_keys(hs_redo_broken_body(&reader, turn, at, place.at));
	}
	if (folder->log.damage && folder->log.beyond == 0)
		printf("  lost: record %" PRIu64 ", the last of the log, at byte %" PRIu64
		       " of '%s'\n",
		       reader.lsn, folder->log.end_at,
		       hs_redo_file_name(folder->log.end_file < 0 ? 0 : folder->log.end_file));
	printf("  kept: %" PRIu64 " whole records, including those after the gaps\n", kept);
	hs_redo_reader_close(&reader);
}
