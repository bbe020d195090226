/* Group wait: decides whether a group is logged now, or a little later with more operations in it.
 *
 * A sync costs the same for one operation or a hundred. Clients that wait for their replies send again in the
 * rhythm of the syncs. Without group wait they fall into two halves: while the operations of one half are synced,
 * those of the other half arrive, and each client waits for two syncs.
 *
 *     sync   ─ A ─┬─ B ─┬─ A ─┬─ B ─      with group wait   ─ A+B ─┬··┬─ A+B ─┬··┬─
 *                 └ A answered, B waits                            └ both come back
 *
 * When a group is answered, the number of operations in flight is known: those answered and those
 * already queued. The next group waits until it has as many operations, but at most for the time of one sync. If
 * they come, the engine saves a sync. If they do not come, it loses the time of one sync. The group of a single
 * client never waits, because no other operation was in flight. If waits fail, because clients send at random
 * times, the tries become rarer.
 *
 * Pure: counts and times in, a time out. One thread, the committer's. All zeros is the initial
 * state. */
#ifndef HS_ENGINE_EMBEDDED_GROUP_WAIT_H
#define HS_ENGINE_EMBEDDED_GROUP_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HS_GROUP_WAIT_US_MAX = 10 * 1000,
	HS_GROUP_WAIT_SKIP_MAX = 64, /* most groups in a row that do not wait, after failed waits */
};

struct hs_group_wait {
	size_t in_flight;   /* operations in flight when the last group was answered */
	uint64_t until_us;  /* end of the wait; 0: not waiting */
	uint32_t skip;	    /* groups that do not wait before the next try */
	uint32_t skip_next; /* the value of `skip` after the next failed wait */
};

/* `answered` operations are answered, or will be in a moment, while `waiting` others are queued. */
void hs_group_wait_answered(struct hs_group_wait *wait, size_t answered, size_t waiting);

/* A group with `count` operations could be logged. True: it waits for more; call again when more operations have
 * come, or at until_us. `sync_us`: the average time of a sync. */
bool hs_group_wait_for_more(struct hs_group_wait *wait, size_t count, uint64_t sync_us,
			    uint64_t now_us);

#endif
