/* Assertions that stay on in release. One condition each, for what cannot happen; what input can
 * cause is an error, never an assertion. A failure names itself and stops the process: a server
 * that no longer knows its own state must not go on acknowledging writes. */
#ifndef HS_BASE_CHECK_H
#define HS_BASE_CHECK_H

_Noreturn void hs_check_failed(const char *condition, const char *file, int line);

#define hs_check(condition)                                                                        \
	do {                                                                                       \
		if (__builtin_expect(!(condition), 0))                                             \
			hs_check_failed(#condition, __FILE__, __LINE__);                           \
	} while (0)

/* A result that must be looked at. */
#define HS_MUSTCHECK __attribute__((warn_unused_result))

#endif
