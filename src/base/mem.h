/* The heap. Running out of memory is not an error to handle line by line: every size asked for
 * here is bounded by a limit (base/limits.h) checked before, so a refusal by the system means the
 * machine is misconfigured, and the process says so and stops. */
#ifndef HS_BASE_MEM_H
#define HS_BASE_MEM_H

#include <stddef.h>

void *hs_mem_alloc(size_t bytes);  /* uninitialised */
void *hs_mem_zalloc(size_t bytes); /* zeroed */
void *hs_mem_realloc(void *old, size_t bytes);
void *hs_mem_dup(const void *bytes, size_t len); /* zero-terminated copy */

/* Frees *pointer and nulls it: hs_mem_free(&session->name). */
#define hs_mem_free(pointer)                                                                       \
	do {                                                                                       \
		hs_mem_release(*(pointer));                                                        \
		*(pointer) = NULL;                                                                 \
	} while (0)
void hs_mem_release(void *old);

#endif
