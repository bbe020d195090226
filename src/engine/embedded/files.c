#include "engine/embedded/files.h"

#include "base/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int hs_fault_set(struct hs_fault *fault, int code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(fault->text, fault->size, format, args);
	va_end(args);
	return code;
}

int hs_file_read(int fd, void *bytes, size_t len, uint64_t at)
{
	char *to = bytes;

	while (len > 0) {
		ssize_t got = pread(fd, to, len, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return -ENODATA;
		to += got;
		len -= (size_t)got;
		at += (uint64_t)got;
	}
	return 0;
}

int hs_file_write(int fd, const void *bytes, size_t len, uint64_t at)
{
	struct iovec part = {(void *)(uintptr_t)bytes, len};

	return hs_file_writev(fd, &part, 1, at);
}

int hs_file_writev(int fd, struct iovec *parts, int count, uint64_t at)
{
	while (count > 0) {
		ssize_t put = pwritev(fd, parts, count < IOV_MAX ? count : IOV_MAX, (off_t)at);

		if (put < 0 && errno == EINTR)
			continue;
		if (put < 0)
			return -errno;
		if (put == 0 && parts->iov_len > 0)
			return -EIO; /* the disk took no bytes: the loop must end */
		at += (uint64_t)put;
		while (count > 0 && (size_t)put >= parts->iov_len) {
			put -= (ssize_t)parts->iov_len;
			parts++;
			count--;
		}
		if (count > 0) {
			parts->iov_base = (char *)parts->iov_base + put;
			parts->iov_len -= (size_t)put;
		}
	}
	return 0;
}

/* Writes page by page. The kernel would cache a long write as one large unit, and every later short write into
 * this unit would cost more. */
int hs_file_zero(int fd, uint64_t from, uint64_t to)
{
	static const char zeros[4 * HS_KIB];
	int rc = 0;

	while (rc == 0 && from < to) {
		size_t len = sizeof zeros - from % sizeof zeros;

		len = to - from < len ? (size_t)(to - from) : len;
		rc = hs_file_write(fd, zeros, len, from);
		from += len;
	}
	return rc;
}

int hs_file_sync(int fd)
{
	return fdatasync(fd) != 0 ? -errno : 0;
}

int hs_file_sync_folder(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd) != 0)
		rc = -errno;
	close(fd);
	return rc;
}

int hs_file_replace(const char *folder, const char *name, const void *bytes, size_t len)
{
	char path[HS_PATH_BYTES_MAX], beside[HS_PATH_BYTES_MAX + 8];
	int fd, rc;

	if (!hs_file_path(path, folder, name))
		return -ENAMETOOLONG;
	snprintf(beside, sizeof beside, "%s.tmp", path);
	fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	rc = hs_file_write(fd, bytes, len, 0);
	if (rc == 0 && fsync(fd) != 0)
		rc = -errno;
	if (close(fd) != 0 && rc == 0 && errno != EINTR)
		rc = -errno;
	if (rc == 0 && rename(beside, path) != 0)
		rc = -errno;
	return rc == 0 ? hs_file_sync_folder(folder) : rc;
}

bool hs_file_path(char path[HS_PATH_BYTES_MAX], const char *folder, const char *name)
{
	int len = snprintf(path, HS_PATH_BYTES_MAX, "%s/%s", folder, name);

	return len > 0 && len < HS_PATH_BYTES_MAX;
}

int hs_file_open(const char *folder, const char *name, int flags, char path[HS_PATH_BYTES_MAX])
{
	int fd;

	if (!hs_file_path(path, folder, name))
		return -ENAMETOOLONG;
	fd = open(path, flags | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int hs_file_remove(const char *folder, const char *name)
{
	char path[HS_PATH_BYTES_MAX];

	if (!hs_file_path(path, folder, name))
		return -ENAMETOOLONG;
	return unlink(path) != 0 && errno != ENOENT ? -errno : 0;
}

bool hs_file_exists(const char *folder, const char *name)
{
	char path[HS_PATH_BYTES_MAX];

	return hs_file_path(path, folder, name) && access(path, F_OK) == 0;
}
