/* Patience: whether a group is logged now, or a little later with more in it.
 *
 * A sync costs the same for one operation or a hundred. Clients that wait for their answers come
 * back in the rhythm of the syncs, and without help in two halves: while one is being synced the
 * other one collects, and each waits for two syncs.
 *
 *     sync   ─ A ─┬─ B ─┬─ A ─┬─ B ─      with patience   ─ A+B ─┬··┬─ A+B ─┬··┬─
 *                 └ A answered, B waits                          └ both come back
 *
 * So when a group has been answered it is known how many were under way just then: those answered
 * and those that waited already. The next group waits until it has as many, but no longer than a
 * sync takes: if they come, that sync is saved; if they do not, at most as much was lost. Who is
 * alone is never waited for, because nobody else was under way. Where waiting is in vain, as with
 * clients that come by chance, it is tried ever more rarely.
 *
 * Pure: counts and times in, a time out. One thread, the committer's. */
#ifndef HS_ENGINE_EMBEDDED_GROUP_WAIT_H
#define HS_ENGINE_EMBEDDED_GROUP_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HS_GROUP_WAIT_US_MAX = 10 * 1000,
	HS_GROUP_WAIT_SKIP_MAX =
		64, /* groups in a row that do not wait after waiting was in vain */
};

struct hs_group_wait {
	size_t in_flight;   /* operations under way when the last group was answered */
	uint64_t until_us;  /* 0: not waiting */
	uint32_t skip;	    /* groups to go before the next try, */
	uint32_t skip_next; /* and how many they will be should that be in vain */
};

/* So many are answered, or about to be, while so many others wait. */
void hs_group_wait_answered(struct hs_group_wait *wait, size_t answered, size_t waiting);

/* A group with `count` operations could be logged now. True: wait for more, until until_us at the
 * latest, and ask again. `sync_us` is what a sync takes these days. */
bool hs_group_wait_for_more(struct hs_group_wait *wait, size_t count, uint64_t sync_us,
			    uint64_t now_us);

#endif
