/* Timelines: which value each key truly held, and since when. The world writes them at every change, also at
 * external ones, and the checker of stale reads compares them with what clients were answered. They know no client
 * and no core.
 *
 * A span is the time during which a key holds one value; it lasts until the next span begins. A moment is a step of
 * the world, which is finer than its clock. A key expires at a time, not at a step.
 *
 *     nothing ── 5 ── 6 ── nothing (expired) ── 7 …
 *
 * Each timeline also has the times at which heatsink read or wrote the key at a server. One thread. */
#ifndef HS_SIM_TIMELINE_H
#define HS_SIM_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hs_sim_value_span {
	int64_t value;
	uint64_t from; /* the step at which it began */
	int64_t from_us;
	bool expired; /* the previous value expired: from_us is exact, the step is later */
	bool hidden;  /* it was written, but readers cannot see it yet */
};

struct hs_sim_key_timeline {
	struct hs_sim_value_span *spans; /* oldest first; the first one began before everything */
	size_t count, cap;
	/* The key was changed, perhaps only in its time to live, and readers cannot see the change yet. */
	bool hidden;
	int64_t *asked_us; /* when a server ran a command of heatsink on it */
	size_t asked_count, asked_cap;
};

struct hs_sim_timelines {
	struct hs_sim_key_timeline *keys;
	uint32_t keys_count;
};

/* All keys are missing. */
void hs_sim_timelines_init(struct hs_sim_timelines *timelines, uint32_t keys_count);
void hs_sim_timelines_deinit(struct hs_sim_timelines *timelines);

/* The key holds this value from now on. The value that it holds already begins no new span. */
void hs_sim_timelines_note(struct hs_sim_timelines *timelines, uint32_t key,
			   const struct hs_sim_value_span *span);
/* Readers see the key's hidden spans from now on; each begins at a step of its own after *step, which grows. */
void hs_sim_timelines_reveal(struct hs_sim_timelines *timelines, uint32_t key, uint64_t *step,
			     int64_t now_us);
void hs_sim_timelines_server_read(struct hs_sim_timelines *timelines, uint32_t key, int64_t now_us);

/* When a span ended: a step and a time; UINT64_MAX and INT64_MAX: it has not ended. */
uint64_t hs_sim_value_span_end(const struct hs_sim_key_timeline *timelines, size_t span,
			       int64_t *end_us);

#endif
