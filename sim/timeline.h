/* What the keys of a simulated world really held, and from when on: written down by the world at every
 * change, by whomever, and read by the checker of staleness. It knows no client and no core.
 *
 * A version of a key lasts until the next one begins. A moment is a step of the world, which is finer
 * than its clock; a key that expires is gone at a time, not at a step.
 *
 *     nothing ── 5 ── 6 ── nothing (expired) ── 7 …
 *
 * Beside that: when servers were last asked about a key by the process itself. One thread. */
#ifndef HS_SIM_TIMELINE_H
#define HS_SIM_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_sim_value_span {
	int64_t value;
	uint64_t from; /* the step at which it began */
	int64_t from_us;
	bool expired; /* the one before it expired: from_us is right, the step is later */
	bool hidden;  /* it was written, and nobody can see it yet */
};

struct hs_sim_key_timeline {
	struct hs_sim_value_span *spans; /* oldest first; the first began before everything */
	size_t count, cap;
	bool hidden; /* it was changed, perhaps in nothing but its time to live, and nobody can see it yet */
	int64_t *asked_us; /* when a server ran something of ours on it */
	size_t asked_count, asked_cap;
};

struct hs_sim_timelines {
	struct hs_sim_key_timeline *keys;
	uint32_t keys_count;
};

/* All keys hold nothing. */
void hs_sim_timelines_init(struct hs_sim_timelines *timelines, uint32_t keys_count);
void hs_sim_timelines_deinit(struct hs_sim_timelines *timelines);

/* From now on the key holds this. The same as before is no new version. */
void hs_sim_timelines_note(struct hs_sim_timelines *timelines, uint32_t key,
			   const struct hs_sim_value_span *span);
/* What was hidden of the key begins now, each at a step of its own behind `*step`, which grows. */
void hs_sim_timelines_reveal(struct hs_sim_timelines *timelines, uint32_t key, uint64_t *step,
			     int64_t now_us);
void hs_sim_timelines_server_read(struct hs_sim_timelines *timelines, uint32_t key, int64_t now_us);

/* When a version was over: a step and a time; UINT64_MAX and INT64_MAX: it is not. */
uint64_t hs_sim_value_span_end(const struct hs_sim_key_timeline *timelines, size_t span,
			       int64_t *end_us);

#endif
