#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *must(void *got, size_t bytes)
{
	if (!got) {
		fprintf(stderr, "heatsink: the system refused %zu bytes of memory\n", bytes);
		abort();
	}
	return got;
}

void *hs_mem_alloc(size_t bytes)
{
	return must(malloc(bytes ? bytes : 1), bytes);
}

void *hs_mem_zalloc(size_t bytes)
{
	return must(calloc(1, bytes ? bytes : 1), bytes);
}

void *hs_mem_realloc(void *old, size_t bytes)
{
	return must(realloc(old, bytes ? bytes : 1), bytes);
}

void *hs_mem_dup(const void *bytes, size_t len)
{
	char *copy = hs_mem_alloc(len + 1);

	if (len)
		memcpy(copy, bytes, len);
	copy[len] = '\0';
	return copy;
}

void hs_mem_release(void *old)
{
	free(old);
}
