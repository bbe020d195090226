/* `heatsink repair`: drops damaged data from a data folder so that a server can start again. It shows what would be
 * lost, and changes files only with --yes. Before that it copies what it drops:
 *
 *     DIR/aside-TIME/format, checkpoint-0, log-0 …   the files as they were
 *     DIR/aside-TIME/records                         damaged records: physical key and bytes, escaped */
#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "cli/folder.h"
#include "engine/embedded/audit.h"
#include "engine/embedded/database.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

enum { DONE, NOT_DONE, NOT_CHECKED };

#define STORE_BYTES_DEFAULT (16 * HS_GIB)

struct options {
	const char *data;
	bool dry_run, yes;
};

static const struct hs_flag rows[] = {
	{"data", "DIR", "data", "the data folder; no server may be using it", hs_flag_read_text,
	 HS_FLAG_AT(struct options, data)},
	{"dry-run", NULL, "no", "show what would be lost, and change nothing", hs_flag_read_switch,
	 HS_FLAG_AT(struct options, dry_run)},
	{"yes", NULL, "no", "repair the folder; without this flag nothing is changed",
	 hs_flag_read_switch, HS_FLAG_AT(struct options, yes)},
};

static const struct hs_flags flags = {
	.program = "heatsink repair",
	.before = "heatsink repair: drop damaged data in a data folder and keep the rest\n\n",
	.after = "\nDropped data is copied to a folder 'aside-TIME' in DIR first. Exit status: 0\n"
		 "the folder is whole or was repaired; 1 it was not repaired; 2 it could not be\n"
		 "read.\n",
	.rows = rows,
	.count = sizeof rows / sizeof *rows,
};

static void print_line(void *context, enum hs_log_level level, const char *line)
{
	(void)context;
	(void)level;
	printf("  %s\n", line);
}

/* Prints what a repair would do. False: it cannot repair this damage. */
static bool plan(struct hs_folder *folder)
{
	if (folder->broken) {
		printf("The trees of a store are damaged, and repair cannot mend them: restore the "
		       "folder from\na backup. Nothing was changed.\n");
		return false;
	}
	printf("What a repair does:\n");
	if (folder->format_damaged)
		printf("  restores the format file from its copy; nothing is lost\n");
	if (folder->checkpoint_damaged)
		printf("  goes back to '%s', whose trees are whole, and replays the log from "
		       "there\n",
		       hs_checkpoint_file_name(folder->checkpoint.file));
	for (int file = 0; file < 2; file++)
		if (folder->log_short[file])
			printf("  goes on without what is missing of '%s'\n"
			       "  lost: writes since the last checkpoint that it held, if any; "
			       "their "
			       "number is unknown\n",
			       hs_redo_file_name(file));
	if (folder->log.damage)
		printf("  skips broken records of the log and applies the whole ones after them\n");
	if (folder->log.damage || hs_folder_log_short(folder))
		hs_folder_show_gaps(folder);
	if (folder->metas)
		printf("  puts the meta pages of %llu stores back from the checkpoint; nothing is "
		       "lost\n",
		       (unsigned long long)folder->metas);
	if (folder->damaged)
		printf("  removes the %llu records named above, which fail their checksum\n",
		       (unsigned long long)folder->damaged);
	if (folder->misfits)
		printf("  rebuilds the tree of expiries from the records; nothing is lost\n");
	return true;
}

/* Copies to a new file, synced. A missing source is not an error. */
static int copy_file(const char *from_folder, const char *to_folder, const char *name)
{
	char from[HS_PATH_BYTES_MAX], to[HS_PATH_BYTES_MAX];
	uv_fs_t request;
	int fd, rc;

	if (!hs_file_path(from, from_folder, name) || !hs_file_path(to, to_folder, name))
		return -ENAMETOOLONG;
	rc = uv_fs_copyfile(NULL, &request, from, to, UV_FS_COPYFILE_EXCL, NULL);
	uv_fs_req_cleanup(&request);
	if (rc < 0)
		return rc == UV_ENOENT ? 0 : rc;
	fd = hs_file_open(to_folder, name, O_RDWR, to);
	if (fd < 0)
		return fd;
	rc = hs_file_sync(fd);
	close(fd);
	return rc;
}

/* Copies everything that a repair may cut. */
static int put_aside(struct hs_folder *folder, char aside[HS_PATH_BYTES_MAX])
{
	static const char *const names[] = {"format", "format.copy",  "log-0",
					    "log-1",  "checkpoint-0", "checkpoint-1"};
	struct hs_fault fault = {folder->error, sizeof folder->error};
	char name[64];
	time_t now = time(NULL);
	struct tm utc;
	int rc = 0;

	gmtime_r(&now, &utc);
	strftime(name, sizeof name, "aside-%Y%m%dT%H%M%SZ", &utc);
	if (!hs_file_path(aside, folder->path, name))
		return hs_fault_set(&fault, HS_EINVAL, "the path of '%s' is too long",
				    folder->path);
	if (mkdir(aside, 0700) != 0)
		return hs_fault_set(&fault, HS_EIO, "cannot create '%s': %s", aside,
				    strerror(errno));
	for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++) {
		rc = copy_file(folder->path, aside, names[i]);
		if (rc != 0)
			hs_fault_set(&fault, HS_EIO, "cannot copy '%s' to '%s': %s", names[i],
				     aside, strerror(-rc));
	}
	if (rc == 0 && (rc = hs_file_sync_folder(aside)) == 0)
		rc = hs_file_sync_folder(folder->path);
	return rc == 0 ? 0 : HS_EIO;
}

/* Sizes that fit the existing files, whatever options the server was run with. */
static void choose_sizes(const struct hs_folder *folder, struct hs_embedded_options *options)
{
	options->log_bytes = folder->checkpoint.log_bytes;
	options->store_bytes_max = STORE_BYTES_DEFAULT;
	for (uint16_t id = 0; id < folder->format.partitions; id++) {
		char name[16], path[HS_PATH_BYTES_MAX];
		struct stat stat;

		hs_store_name(name, sizeof name, id);
		if (hs_file_path(path, folder->path, name) && lstat(path, &stat) == 0 &&
		    2 * (uint64_t)stat.st_size > options->store_bytes_max)
			options->store_bytes_max = 2 * (uint64_t)stat.st_size;
	}
}

static int cut_records(struct hs_database *database, const char *aside, struct hs_fault *fault)
{
	char path[HS_PATH_BYTES_MAX];
	FILE *records = NULL;
	int rc;

	if (hs_file_path(path, aside, "records"))
		records = fopen(path, "wxe");
	if (!records)
		return hs_fault_set(fault, HS_EIO, "cannot write '%s': %s", path, strerror(errno));
	/* Its name is on disk before the first record is removed. */
	rc = hs_file_sync_folder(aside);
	if (rc != 0)
		rc = hs_fault_set(fault, HS_EIO, "cannot sync '%s': %s", aside, strerror(-rc));
	for (uint16_t id = 0; id < database->partitions && rc >= 0; id++) {
		rc = hs_audit_remove_damaged(&database->stores[id], database->seed,
					     database->partitions, records);
		if (rc < 0)
			hs_fault_set(fault, rc, "cannot repair '%s': %s", database->stores[id].path,
				     hs_err_text(rc));
		else if (rc > 0)
			printf("  removed %d records from '%s'\n", rc, database->stores[id].path);
	}
	if (fclose(records) != 0 && rc >= 0)
		rc = hs_fault_set(fault, HS_EIO, "cannot write '%s': %s", path, strerror(errno));
	return rc < 0 ? rc : 0;
}

/* Opens the folder as a server does, but skipping what is broken, removes damaged records, and writes a
 * checkpoint. */
static int repair(struct hs_folder *folder)
{
	struct hs_fault fault = {folder->error, sizeof folder->error};
	struct hs_log log = {.sink = print_line, .level = HS_LOG_INFO};
	struct hs_embedded_options options = {
		.data = folder->path,
		.partitions = folder->format.partitions,
		.sync = true,
		.repair = true,
	};
	char aside[HS_PATH_BYTES_MAX];
	struct hs_database *database;
	int rc = put_aside(folder, aside);

	if (rc == 0 && folder->format_damaged)
		rc = hs_format_rewrite(folder->path, &folder->format, false, &fault);
	if (rc != 0)
		return rc;
	printf("Repairing (copies are in '%s'):\n", aside);
	choose_sizes(folder, &options);
	hs_folder_close(folder); /* the database takes the lock itself */
	database = hs_mem_zalloc(sizeof *database);
	rc = hs_database_open(database, &options, 1, &log, &fault);
	if (rc == 0) {
		rc = cut_records(database, aside, &fault);
		if (rc == 0)
			rc = hs_database_checkpoint(database, &fault);
		hs_database_close(database);
	}
	hs_mem_free(&database);
	return rc;
}

int hs_cli_repair(int argc, char **argv)
{
	struct options options = {0};
	struct hs_folder folder;
	int code = NOT_DONE, rc = hs_flags_read(&flags, &options, argc, argv, stderr);

	if (rc != 0)
		return rc < 0 ? NOT_CHECKED : DONE;
	if (hs_folder_open(&folder, options.data) != 0) {
		fprintf(stderr, "heatsink repair: %s\n", folder.error);
		hs_folder_close(&folder);
		return NOT_CHECKED;
	}
	hs_folder_audit(&folder);
	if (!hs_folder_damaged(&folder)) {
		printf("Nothing is damaged; nothing was changed.\n");
		code = DONE;
	} else if (plan(&folder)) {
		if (options.dry_run || !options.yes) {
			printf("Nothing was changed. %s\n",
			       "Run it with '--yes' to repair the folder.");
			code = options.dry_run ? DONE : NOT_DONE;
		} else if (repair(&folder) == 0) {
			printf("Repaired. Verify it with 'heatsink check --data %s'.\n",
			       options.data);
			code = DONE;
		} else {
			fprintf(stderr, "heatsink repair: %s\n", folder.error);
		}
	}
	hs_folder_close(&folder);
	return code;
}
