#include "engine/embedded/format.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FORMAT_BYTES_MAX = 256, NAMES_BYTES_MAX = 160 };

static const char file_name[] = "format", copy_name[] = "format.copy";
/* The name of the format file while a database is being created. If a start finds this file, the creation was
 * interrupted, and no data was ever written. */
static const char unfinished_name[] = "format.new";

static size_t compose(const struct hs_format *format, char text[FORMAT_BYTES_MAX])
{
	int len = snprintf(
		text, FORMAT_BYTES_MAX, "heatsink data, format %u\npartitions %u\nseed %016llx\n",
		format->version, (unsigned)format->partitions, (unsigned long long)format->seed);
	uint64_t check = hs_hash((struct hs_bytes){text, (size_t)len}, 0);

	return (size_t)len + (size_t)snprintf(text + len, FORMAT_BYTES_MAX - (size_t)len,
					      "check %016llx\n", (unsigned long long)check);
}

/* Reads a whole text file. Returns 0, -ENOENT or another negative errno. */
static int read_text(const char *folder, const char *name, char text[FORMAT_BYTES_MAX])
{
	char path[HS_PATH_BYTES_MAX];
	ssize_t got;
	int fd = hs_file_open(folder, name, O_RDONLY, path), rc;

	if (fd < 0)
		return fd;
	got = read(fd, text, FORMAT_BYTES_MAX - 1);
	rc = got < 0 ? -errno : 0;
	close(fd);
	text[got < 0 ? 0 : got] = '\0';
	return rc;
}

/* Reads the values from the text, and checks that the text is, byte by byte, the one that heatsink writes for
 * them. */
static bool parse(const char *text, struct hs_format *format)
{
	char again[FORMAT_BYTES_MAX];
	unsigned partitions;
	unsigned long long seed;

	if (sscanf(text, "heatsink data, format %u\npartitions %u\nseed %llx", &format->version,
		   &partitions, &seed) != 3)
		return false;
	if (format->version != HS_FORMAT_VERSION || partitions < 1 ||
	    partitions > HS_PARTITIONS_MAX)
		return false;
	format->partitions = (uint16_t)partitions;
	format->seed = seed;
	compose(format, again);
	return strcmp(text, again) == 0;
}

bool hs_format_copy(const char *folder, struct hs_format *format)
{
	char text[FORMAT_BYTES_MAX];

	return read_text(folder, copy_name, text) == 0 && parse(text, format);
}

/* Reports a damaged format file. `state`: the damage, in words. */
static int damaged(const char *folder, const char *state, struct hs_fault *fault)
{
	struct hs_format format;

	if (hs_format_copy(folder, &format))
		return hs_fault_set(fault, HS_ECORRUPT,
				    "damaged data: '%s/%s' %s, but its copy is whole; 'heatsink "
				    "repair --data %s' puts it back",
				    folder, file_name, state, folder);
	return hs_fault_set(fault, HS_ECORRUPT,
			    "damaged data: '%s/%s' %s, and its copy is missing or damaged. Without "
			    "them nothing else can be read, not even by 'heatsink repair'; nothing "
			    "was changed; restore the folder from a backup",
			    folder, file_name, state);
}

/* True: a database has files with this name. */
static bool is_ours(const char *name)
{
	static const char *const names[] = {"format.copy", "log-0", "log-1", "checkpoint-0",
					    "checkpoint-1"};
	static const char store[] = "store-";

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, store, sizeof store - 1) == 0 && strlen(name) == sizeof store + 2 &&
	       strspn(name + sizeof store - 1, "0123456789") == 3;
}

/* Writes the names of a database's files in the folder to `names`, as many as fit. Returns 0 or a negative
 * errno. */
static int list_files(const char *folder, char names[NAMES_BYTES_MAX])
{
	const struct dirent *entry;
	DIR *files = opendir(folder);
	size_t len = 0;
	int rc;

	names[0] = '\0';
	if (!files)
		return -errno;
	while ((errno = 0, entry = readdir(files)) != NULL)
		if (is_ours(entry->d_name) && len + strlen(entry->d_name) + 3 < NAMES_BYTES_MAX)
			len += (size_t)snprintf(names + len, NAMES_BYTES_MAX - len, "%s%s",
						len ? ", " : "", entry->d_name);
	rc = -errno;
	closedir(files);
	return rc;
}

/* Called if the folder has no format file. Returns 0 if the folder has no other file of a database either, or if
 * the creation of a database was interrupted. Otherwise an error that lists the files: such a folder is never
 * taken for an empty one. */
static int without_format(const char *folder, struct hs_fault *fault)
{
	char state[NAMES_BYTES_MAX + 64], names[NAMES_BYTES_MAX];
	int rc;

	if (hs_file_exists(folder, unfinished_name))
		return 0;
	rc = list_files(folder, names);
	if (rc != 0)
		return hs_fault_set(fault, HS_EIO, "cannot read the data folder '%s': %s", folder,
				    strerror(-rc));
	if (!names[0])
		return 0;
	snprintf(state, sizeof state, "is missing and the folder holds data (%s)", names);
	return damaged(folder, state, fault);
}

static int written(const char *folder, const char *name, int rc, struct hs_fault *fault)
{
	if (rc == 0)
		return 0;
	return hs_fault_set(fault, HS_EIO, "cannot write '%s/%s': %s", folder, name, strerror(-rc));
}

static int write_file(const char *folder, const char *name, const struct hs_format *format,
		      struct hs_fault *fault)
{
	char text[FORMAT_BYTES_MAX];
	size_t len = compose(format, text);

	return written(folder, name, hs_file_replace(folder, name, text, len), fault);
}

int hs_format_read(const char *folder, struct hs_format *format, struct hs_fault *fault)
{
	char text[FORMAT_BYTES_MAX];
	struct hs_format copy;
	unsigned version;
	int rc = read_text(folder, file_name, text);

	if (rc == -ENOENT)
		return without_format(folder, fault);
	if (rc != 0)
		return hs_fault_set(fault, HS_EIO, "cannot read '%s/%s': %s", folder, file_name,
				    strerror(-rc));
	if (parse(text, format))
		return 1;
	if (hs_format_copy(folder, &copy) ||
	    sscanf(text, "heatsink data, format %u\n", &version) != 1 ||
	    version == HS_FORMAT_VERSION)
		return damaged(folder, "is damaged", fault);
	if (version > HS_FORMAT_VERSION)
		return hs_fault_set(
			fault, HS_EVERSION,
			"the data in '%s' has format %u; this heatsink reads up to %u: use a "
			"newer heatsink",
			folder, version, (unsigned)HS_FORMAT_VERSION);
	return hs_fault_set(
		fault, HS_EVERSION,
		"the data in '%s' has format %u; this heatsink reads format %u only. Serve the "
		"folder with the heatsink that wrote it and copy its keys to a new folder: see "
		"docs/ENGINES.md, Formats",
		folder, version, (unsigned)HS_FORMAT_VERSION);
}

int hs_format_begin(const char *folder, const struct hs_format *format, struct hs_fault *fault)
{
	return write_file(folder, unfinished_name, format, fault);
}

int hs_format_finish(const char *folder, struct hs_fault *fault)
{
	char from[HS_PATH_BYTES_MAX], to[HS_PATH_BYTES_MAX];
	int rc = hs_file_sync_folder(folder);

	if (!hs_file_path(from, folder, unfinished_name) || !hs_file_path(to, folder, file_name))
		return written(folder, file_name, -ENAMETOOLONG, fault);
	if (rc == 0 && rename(from, to) != 0)
		rc = -errno;
	if (rc == 0)
		rc = hs_file_sync_folder(folder);
	return written(folder, file_name, rc, fault);
}

int hs_format_rewrite(const char *folder, const struct hs_format *format, bool copy,
		      struct hs_fault *fault)
{
	return write_file(folder, copy ? copy_name : file_name, format, fault);
}
