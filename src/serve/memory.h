/* Returns memory to the system after a burst.
 *
 * malloc keeps freed memory, which makes the next large reply cheap. After a burst of large replies that memory is
 * never used again. So once a second the control thread measures how much memory is resident and free. If that was
 * more than 16 MiB in every one of several samples, it calls malloc_trim. Memory that malloc cannot return (small
 * free pieces between used ones) is subtracted from later samples, so that trimming is not repeated in vain.
 *
 * The control thread. With another malloc (a sanitizer's) nothing is measured and nothing returned. */
#ifndef HS_SERVE_MEMORY_H
#define HS_SERVE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct hs_memory {
	uint64_t least_bytes; /* the lowest of the samples: resident and free */
	uint32_t samples;
	uint64_t unreturned_bytes; /* what the last trim could not return */
	bool returned;		   /* a trim was due: the next sample measures what it left */
};

/* Bytes of the process, from /proc/self/statm; all 0 if that cannot be read. */
struct hs_memory_pages {
	uint64_t all, resident;
	uint64_t shared; /* the part of `resident` that is mapped files */
};
struct hs_memory_pages hs_memory_pages(void);

/* Adds a sample: `free_bytes` are resident and free. True: time to trim. */
bool hs_memory_sample(struct hs_memory *memory, uint64_t free_bytes);
/* Once a second: measures, and trims if it is time. True: it has trimmed. */
bool hs_memory_trim_if_due(struct hs_memory *memory);

#endif
