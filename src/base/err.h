/* Every error code and its text, one row each. Functions return int: 0 is success, negative is one of these.
 * Parsers return >0 consumed, 0 need more, <0 error. */
#ifndef HS_BASE_ERR_H
#define HS_BASE_ERR_H

#include <stddef.h>

#define HS_ERR_TABLE(X)                                                                            \
	X(HS_EPROTO, -1, "protocol error")                                                         \
	X(HS_ENOTFOUND, -2, "not found")                                                           \
	X(HS_EFULL, -3, "store full")                                                              \
	X(HS_EIO, -4, "input or output failed")                                                    \
	X(HS_ELIMIT, -5, "limit reached")                                                          \
	X(HS_EINVAL, -6, "invalid value")                                                          \
	X(HS_EVERSION, -7, "written by another format version")                                    \
	X(HS_ECORRUPT, -8, "damaged data")                                                         \
	X(HS_EBUSY, -9, "in use")                                                                  \
	X(HS_ERANGE, -10, "out of range")

enum hs_err {
#define X(name, value, text) name = value,
	HS_ERR_TABLE(X)
#undef X
};

/* The text of a code; never NULL. */
const char *hs_err_text(int code);

/* Formats the error text into `error` and returns `code`: the last call of a function that fails. */
__attribute__((format(printf, 4, 5))) int hs_err_set(int code, char *error, size_t error_size,
						     const char *format, ...);

#endif
