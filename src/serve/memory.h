/* Gives memory back to the system after a burst.
 *
 * malloc keeps what was freed, which is what makes the next large reply cheap. After a burst that is
 * memory nobody will use again. So the control thread looks once a second at how much of the
 * process's memory is resident and free, and when that has been a lot at every one of several looks,
 * has malloc return it. What malloc cannot return (small pieces between those in use) is not tried
 * again until more has gathered. */
#ifndef HS_SERVE_MEMORY_H
#define HS_SERVE_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

struct hs_memory {
	uint64_t least_bytes; /* resident and free, at every one of the last looks */
	uint32_t samples;
	uint64_t unreturned_bytes; /* what was left after the last return */
	bool returned;		   /* just now: the next look sees what is left */
};

/* Of the process, in bytes, as the system counts them; 0 when it does not tell. */
struct hs_memory_pages {
	uint64_t all, resident;
	uint64_t shared; /* of the resident: files' */
};
struct hs_memory_pages hs_memory_pages(void);

/* One look: `free_bytes` are resident and free. True: it is time to return them. */
bool hs_memory_sample(struct hs_memory *memory, uint64_t free_bytes);
/* Once a second: looks, and returns memory. True: it has. */
bool hs_memory_trim_if_due(struct hs_memory *memory);

#endif
