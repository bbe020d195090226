/* File operations for a database: complete writes, syncs of files and of their folder, and zeros
 * written in advance. Also the line of text that gives the reason why a start failed (struct hs_fault). No state:
 * any thread. */
#ifndef HS_ENGINE_EMBEDDED_FILES_H
#define HS_ENGINE_EMBEDDED_FILES_H

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { HS_PATH_BYTES_MAX = 1024 };

/* The place for the line of text with the reason of a failure. The caller owns the text. */
struct hs_fault {
	char *text;
	size_t size;
};

/* Writes the line to `fault` and returns `code`. */
int hs_fault_set(struct hs_fault *fault, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The functions from hs_file_read to hs_file_replace, and hs_file_remove, return 0 or a negative errno.
 * hs_file_read returns -ENODATA if the file is shorter. */
int hs_file_read(int fd, void *bytes, size_t len, uint64_t at) HS_MUSTCHECK;
int hs_file_write(int fd, const void *bytes, size_t len, uint64_t at) HS_MUSTCHECK;
int hs_file_writev(int fd, struct iovec *parts, int count, uint64_t at) HS_MUSTCHECK;
int hs_file_zero(int fd, uint64_t from, uint64_t to) HS_MUSTCHECK;
int hs_file_sync(int fd) HS_MUSTCHECK; /* after an error the state of the disk is unknown */
int hs_file_sync_folder(const char *folder) HS_MUSTCHECK;

/* Replaces the file `name` atomically: writes a new file beside it, syncs it and renames it. */
int hs_file_replace(const char *folder, const char *name, const void *bytes,
		    size_t len) HS_MUSTCHECK;

/* Writes "folder/name" to `path`. False: the text is too long. */
bool hs_file_path(char path[HS_PATH_BYTES_MAX], const char *folder, const char *name);
/* Opens a file of a folder and writes its path to `path`, for messages. Returns a descriptor, or a negative
 * errno. */
int hs_file_open(const char *folder, const char *name, int flags,
		 char path[HS_PATH_BYTES_MAX]) HS_MUSTCHECK;
/* Removes a file. A missing file is no error. */
int hs_file_remove(const char *folder, const char *name) HS_MUSTCHECK;
bool hs_file_exists(const char *folder, const char *name);

#endif
