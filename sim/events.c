#include "sim/events.h"

#include "base/mem.h"

static bool earlier(const struct hs_sim_event *a, const struct hs_sim_event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static void swap(struct hs_sim_event *a, struct hs_sim_event *b)
{
	struct hs_sim_event c = *a;

	*a = *b;
	*b = c;
}

void hs_sim_events_deinit(struct hs_sim_events *events)
{
	hs_mem_free(&events->heap);
	*events = (struct hs_sim_events){0};
}

void hs_sim_events_plan(struct hs_sim_events *events, struct hs_sim_event event)
{
	size_t at = events->count;

	if (events->count == events->cap) {
		events->cap = events->cap ? events->cap * 2 : 64;
		events->heap = hs_mem_realloc(events->heap, events->cap * sizeof *events->heap);
	}
	event.order = events->planned++;
	events->foreground += event.foreground;
	events->heap[events->count++] = event;
	while (at > 0 && earlier(&events->heap[at], &events->heap[(at - 1) / 2])) {
		swap(&events->heap[at], &events->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
}

bool hs_sim_events_take(struct hs_sim_events *events, struct hs_sim_event *event)
{
	struct hs_sim_event *heap = events->heap;
	size_t at = 0;

	if (events->count == 0)
		return false;
	*event = heap[0];
	events->foreground -= event->foreground;
	heap[0] = heap[--events->count];
	for (;;) {
		size_t first = at;

		for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < events->count;
		     child++) {
			if (earlier(&heap[child], &heap[first]))
				first = child;
		}
		if (first == at)
			return true;
		swap(&heap[at], &heap[first]);
		at = first;
	}
}

uint64_t hs_sim_events_next_us(const struct hs_sim_events *events)
{
	return events->count > 0 ? events->heap[0].at_us : UINT64_MAX;
}
