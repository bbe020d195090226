/* A failing disk, as seen by the system calls of one process. The functions below replace those of the C library,
 * in a unit test that includes this file, or in a server that preloads it (tests/preload/faults.c). Until a fault
 * is armed they pass all calls on.
 *
 * A denied call does nothing and returns the error. A lost write succeeds, as it does when only the kernel's page
 * cache has the data; then the n-th sync of the file fails, once for each descriptor, and the lost data stays
 * lost. Linux reports a failed writeback in this way. A journal records the bytes that the disk still has in
 * place of lost writes; undoing it gives the files that a machine would find after a power cut.
 *
 * Any thread may call: a mutex protects the counters. Only one file of a program may include this header. Limits:
 * FAULT_FILES_MAX files, FAULT_FDS_MAX descriptors; a problem of the fault layer itself aborts the process. */
#ifndef HS_TESTS_LIB_FAULTS_H
#define HS_TESTS_LIB_FAULTS_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	FAULT_WRITE = 1 << 0,	/* pwrite, pwritev, write, writev */
	FAULT_META = 1 << 1,	/* writes that begin in a file's first 8 KiB */
	FAULT_SYNC = 1 << 2,	/* fsync, fdatasync, sync_file_range */
	FAULT_RESERVE = 1 << 3, /* fallocate, ftruncate */
	FAULT_NAME = 1 << 4,	/* rename, unlink */
	FAULT_LOSE = 1 << 5,	/* lose writes instead of denying them */
	FAULT_READ = 1 << 6,	/* pread */
	FAULT_FILES_MAX = 128,
	FAULT_FDS_MAX = 4096,
	FAULT_PATH_BYTES = 512,
};

/* The control file, mapped by the server and by the test. tests/lib/disks.py has the same layout. */
struct faults_control {
	_Atomic uint32_t kinds; /* FAULT_…; 0: no fault is armed */
	uint32_t nth;		/* the first call to fail, counted from 1 since arming */
	uint32_t times;		/* number of calls to fail */
	_Atomic uint32_t error; /* errno of the failing calls */
	_Atomic uint32_t hits;	/* calls that have failed */
	uint32_t calls;		/* matching calls since arming */
	char file[104];		/* only files with this in their path; "": all */
};

static struct faults_control faults_own;
static struct faults_control *faults = &faults_own;
static int faults_journal = -1;
static bool faults_skip_sync; /* syncs do nothing: for tests without a power cut */
static pthread_mutex_t faults_mutex = PTHREAD_MUTEX_INITIALIZER;

/* Failed writebacks: their number per file, and the number already reported per descriptor. */
static struct {
	uint64_t inode;
	uint32_t errors;
} faults_files[FAULT_FILES_MAX];

static struct {
	uint64_t inode;
	uint32_t errors;
} faults_seen[FAULT_FDS_MAX];

static uint64_t faults_inode(int fd)
{
	struct stat about;

	return fstat(fd, &about) == 0 ? (uint64_t)about.st_ino : 0;
}

static uint32_t *faults_errors(uint64_t inode)
{
	size_t at = 0;

	while (at < FAULT_FILES_MAX - 1 && faults_files[at].inode != inode &&
	       faults_files[at].inode != 0)
		at++;
	faults_files[at].inode = inode;
	return &faults_files[at].errors;
}

static bool faults_path(int fd, char path[FAULT_PATH_BYTES])
{
	char link[32];
	ssize_t len;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	len = readlink(link, path, FAULT_PATH_BYTES - 1);
	path[len > 0 ? len : 0] = '\0';
	return path[0] == '/';
}

/* True if this call must fail; counts it. */
static bool faults_should_fail(uint32_t kinds, const char *path)
{
	bool strike = false;

	pthread_mutex_lock(&faults_mutex);
	if (faults->kinds & kinds && strstr(path, faults->file)) {
		faults->calls++;
		strike =
			faults->calls >= faults->nth && faults->calls - faults->nth < faults->times;
		faults->hits += strike;
	}
	pthread_mutex_unlock(&faults_mutex);
	return strike;
}

static bool faults_should_fail_fd(uint32_t kinds, int fd)
{
	char path[FAULT_PATH_BYTES];

	return faults->kinds & kinds && faults_path(fd, path) && faults_should_fail(kinds, path);
}

/* An entry of the journal; `len` bytes follow. */
struct faults_lost {
	uint64_t at, len;
	char path[FAULT_PATH_BYTES];
};

/* Records in the journal the bytes that a lost write would replace. */
static void faults_lose(int fd, uint64_t at, size_t len)
{
	char path[FAULT_PATH_BYTES];
	struct faults_lost head = {at, len, ""};
	char *old = calloc(1, len + 1);
	int reader;

	if (!old || !faults_path(fd, path))
		abort();
	memcpy(head.path, path, sizeof path);
	reader = open(path, O_RDONLY | O_CLOEXEC);
	if (reader < 0 || syscall(SYS_pread64, reader, old, len, at) < 0)
		abort();
	close(reader);
	pthread_mutex_lock(&faults_mutex);
	(*faults_errors(faults_inode(fd)))++;
	if (faults_journal >= 0 &&
	    (syscall(SYS_write, faults_journal, &head, sizeof head) != sizeof head ||
	     syscall(SYS_write, faults_journal, old, len) != (long)len))
		abort();
	pthread_mutex_unlock(&faults_mutex);
	free(old);
}

/* True: the write fails; sets errno. */
static bool faults_write(int fd, uint64_t at, size_t len)
{
	uint32_t kinds = FAULT_WRITE | (at < 8192 ? FAULT_META : 0);

	if (!faults_should_fail_fd(kinds, fd))
		return false;
	if (faults->kinds & FAULT_LOSE) {
		faults_lose(fd, at, len);
		return false;
	}
	errno = (int)faults->error;
	return true;
}

/* True: the sync fails; sets errno. Reports lost writes once per descriptor. */
static bool faults_sync(int fd)
{
	uint64_t inode = faults_inode(fd);
	uint32_t errors;
	bool unseen;

	if (faults_should_fail_fd(FAULT_SYNC, fd)) {
		errno = (int)faults->error;
		return true;
	}
	if (fd < 0 || fd >= FAULT_FDS_MAX)
		return false;
	pthread_mutex_lock(&faults_mutex);
	errors = *faults_errors(inode);
	if (faults_seen[fd].inode != inode)
		faults_seen[fd].errors = 0;
	unseen = faults_seen[fd].errors != errors;
	faults_seen[fd].inode = inode;
	faults_seen[fd].errors = errors;
	pthread_mutex_unlock(&faults_mutex);
	errno = (int)faults->error;
	return unseen;
}

static size_t faults_bytes(const struct iovec *parts, int count)
{
	size_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return bytes;
}

static uint64_t faults_at(int fd)
{
	off_t at = faults->kinds ? lseek(fd, 0, SEEK_CUR) : 0;

	return at < 0 ? UINT64_MAX : (uint64_t)at;
}

ssize_t pread(int fd, void *bytes, size_t len, off_t at)
{
	if (faults_should_fail_fd(FAULT_READ, fd)) {
		errno = (int)faults->error;
		return -1;
	}
	return syscall(SYS_pread64, fd, bytes, len, at);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t at)
{
	return faults_write(fd, (uint64_t)at, len) ? -1 : syscall(SYS_pwrite64, fd, bytes, len, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at)
{
	return faults_write(fd, (uint64_t)at, faults_bytes(parts, count))
		       ? -1
		       : syscall(SYS_pwritev, fd, parts, count, at, 0);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	return faults->kinds && faults_write(fd, faults_at(fd), len)
		       ? -1
		       : syscall(SYS_write, fd, bytes, len);
}

ssize_t writev(int fd, const struct iovec *parts, int count)
{
	return faults->kinds && faults_write(fd, faults_at(fd), faults_bytes(parts, count))
		       ? -1
		       : syscall(SYS_writev, fd, parts, count);
}

int fsync(int fd)
{
	if (faults_sync(fd))
		return -1;
	return faults_skip_sync ? 0 : (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	if (faults_sync(fd))
		return -1;
	return faults_skip_sync ? 0 : (int)syscall(SYS_fdatasync, fd);
}

int sync_file_range(int fd, off_t from, off_t len, unsigned flags)
{
	if (flags && faults_sync(fd))
		return -1;
	return faults_skip_sync ? 0 : (int)syscall(SYS_sync_file_range, fd, from, len, flags);
}

static bool faults_reserve(int fd)
{
	bool strike = faults_should_fail_fd(FAULT_RESERVE, fd);

	if (strike)
		errno = (int)faults->error;
	return strike;
}

int fallocate(int fd, int mode, off_t from, off_t len)
{
	return faults_reserve(fd) ? -1 : (int)syscall(SYS_fallocate, fd, mode, from, len);
}

int ftruncate(int fd, off_t len)
{
	return faults_reserve(fd) ? -1 : (int)syscall(SYS_ftruncate, fd, len);
}

static bool faults_name(const char *path)
{
	bool strike = faults->kinds & FAULT_NAME && faults_should_fail(FAULT_NAME, path);

	if (strike)
		errno = (int)faults->error;
	return strike;
}

int rename(const char *from, const char *to)
{
	return faults_name(from) ? -1 : (int)syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int unlink(const char *path)
{
	return faults_name(path) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

static inline void faults_arm(uint32_t kinds, const char *file, uint32_t nth, uint32_t times,
			      int error)
{
	pthread_mutex_lock(&faults_mutex);
	memset(faults_files, 0, sizeof faults_files);
	memset(faults_seen, 0, sizeof faults_seen);
	faults->nth = nth;
	faults->times = times;
	faults->error = (uint32_t)error;
	faults->hits = 0;
	faults->calls = 0;
	snprintf(faults->file, sizeof faults->file, "%s", file);
	faults->kinds = kinds;
	pthread_mutex_unlock(&faults_mutex);
}

/* Disarms all faults; files opened later report no earlier error. */
static inline void faults_heal(void)
{
	faults_arm(0, "", 0, 0, 0);
}

/* Restores the bytes that lost writes replaced, the last write first, and empties the journal. */
static inline void faults_undo(void)
{
	struct faults_lost lost;
	off_t ends[1 << 14], at = 0;
	size_t count = 0;

	while (pread(faults_journal, &lost, sizeof lost, at) == sizeof lost) {
		if (count == sizeof ends / sizeof *ends)
			abort();
		ends[count++] = at;
		at += (off_t)(sizeof lost + lost.len);
	}
	while (count-- > 0) {
		char *old;
		int fd;

		if (pread(faults_journal, &lost, sizeof lost, ends[count]) != sizeof lost)
			abort();
		old = malloc(lost.len + 1);
		fd = open(lost.path, O_WRONLY | O_CLOEXEC);
		if (!old || fd < 0 ||
		    pread(faults_journal, old, lost.len, ends[count] + (off_t)sizeof lost) !=
			    (ssize_t)lost.len ||
		    syscall(SYS_pwrite64, fd, old, lost.len, lost.at) != (long)lost.len)
			abort();
		close(fd);
		free(old);
	}
	if (syscall(SYS_ftruncate, faults_journal, 0) != 0 ||
	    lseek(faults_journal, 0, SEEK_SET) != 0)
		abort();
}

#endif
