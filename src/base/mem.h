/* The heap. A limit (base/limits.h, an option) bounds every size before it is allocated. So a refused
 * allocation means that the machine is misconfigured: the process prints one line to stderr and aborts. No
 * function here returns NULL. Any thread. */
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
