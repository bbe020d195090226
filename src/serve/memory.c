#include "serve/memory.h"

#include "base/limits.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

enum { SAMPLES = 5 };

#define FREE_BYTES_MAX (16 * HS_MIB) /* kept for the next replies */

bool hs_memory_sample(struct hs_memory *memory, uint64_t free_bytes)
{
	if (memory->returned)
		memory->unreturned_bytes = free_bytes;
	memory->returned = false;
	if (free_bytes < memory->unreturned_bytes)
		memory->unreturned_bytes = free_bytes;
	if (memory->samples == 0 || free_bytes < memory->least_bytes)
		memory->least_bytes = free_bytes;
	if (++memory->samples < SAMPLES)
		return false;
	memory->samples = 0;
	memory->returned = memory->least_bytes > memory->unreturned_bytes + FREE_BYTES_MAX;
	return memory->returned;
}

struct hs_memory_pages hs_memory_pages(void)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long all = 0, resident = 0, shared = 0;
	FILE *file = fopen("/proc/self/statm", "re");

	if (file && fscanf(file, "%llu %llu %llu", &all, &resident, &shared) != 3)
		all = resident = shared = 0;
	if (file)
		fclose(file);
	return (struct hs_memory_pages){all * page_bytes, resident * page_bytes,
					shared * page_bytes};
}

bool hs_memory_trim_if_due(struct hs_memory *memory)
{
	struct mallinfo2 heap = mallinfo2();
	struct hs_memory_pages pages = hs_memory_pages();
	uint64_t used = heap.uordblks + heap.hblkhd + pages.shared;

	if (heap.arena == 0) /* not glibc's malloc, but a sanitizer's */
		return false;
	if (!hs_memory_sample(memory, pages.resident > used ? pages.resident - used : 0))
		return false;
	malloc_trim(0);
	return true;
}
