/* Assertions that stay on in release, one condition each, for states that cannot occur. Bad input is an error,
 * never an assertion. A failed check prints itself to stderr and aborts: a server that does not know its own
 * state must not go on acknowledging writes. */
#ifndef HS_BASE_CHECK_H
#define HS_BASE_CHECK_H

_Noreturn void hs_check_failed(const char *condition, const char *file, int line);

#define hs_check(condition)                                                                        \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			hs_check_failed(#condition, __FILE__, __LINE__);                           \
	} while (0)

/* The compiler warns if the caller ignores the result. */
#define HS_MUSTCHECK __attribute__((warn_unused_result))

#endif
