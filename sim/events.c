#include "sim/events.h"

#include "base/mem.h"

enum { WAYS = 4 }; /* children of each place in the heap */

static bool earlier(const struct hs_sim_event *a, const struct hs_sim_event *b)
{
	return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
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
	events->count++;
	while (at > 0 && earlier(&event, &events->heap[(at - 1) / WAYS])) {
		events->heap[at] = events->heap[(at - 1) / WAYS];
		at = (at - 1) / WAYS;
	}
	events->heap[at] = event;
}

/* The earliest child of this place; the place itself, if it has no children. */
static size_t earliest_child(const struct hs_sim_events *events, size_t at)
{
	size_t first = at * WAYS + 1, end = first + WAYS;

	if (first >= events->count)
		return at;
	if (end > events->count)
		end = events->count;
	for (size_t child = first + 1; child < end; child++) {
		if (earlier(&events->heap[child], &events->heap[first]))
			first = child;
	}
	return first;
}

bool hs_sim_events_take(struct hs_sim_events *events, struct hs_sim_event *event)
{
	struct hs_sim_event last;
	size_t at = 0, child;

	if (events->count == 0)
		return false;
	*event = events->heap[0];
	events->foreground -= event->foreground;
	last = events->heap[--events->count];
	while ((child = earliest_child(events, at)) != at && earlier(&events->heap[child], &last)) {
		events->heap[at] = events->heap[child];
		at = child;
	}
	events->heap[at] = last;
	return true;
}

uint64_t hs_sim_events_next_us(const struct hs_sim_events *events)
{
	return events->count > 0 ? events->heap[0].at_us : UINT64_MAX;
}
