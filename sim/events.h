/* What happens next in a simulated world: calls with a virtual time, run in the order of their
 * times and, at the same time, in the order in which they were planned. Nothing here is random, so
 * a world replays exactly. One thread. */
#ifndef HS_SIM_EVENTS_H
#define HS_SIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	HS_SIM_TICK_US = 100000
}; /* between two rounds of regular work: ten a second, as in the product */

/* `number` is whatever the planner wanted to remember. */
typedef void hs_sim_event_run(void *context, void *target, uint64_t number);

struct hs_sim_event {
	uint64_t at_us;
	uint64_t order;
	hs_sim_event_run *run;
	void *context;
	void *target;
	uint64_t number;
	bool foreground; /* somebody waits for it; the others may go on for ever */
};

struct hs_sim_events {
	struct hs_sim_event *heap; /* the earliest on top */
	size_t count;
	size_t cap;
	size_t foreground; /* of `count` */
	uint64_t planned;  /* ever: numbers them */
};

void hs_sim_events_deinit(struct hs_sim_events *events);

/* The order is filled in. */
void hs_sim_events_plan(struct hs_sim_events *events, struct hs_sim_event event);

/* The earliest event, taken out; false when there is none. */
bool hs_sim_events_take(struct hs_sim_events *events, struct hs_sim_event *event);

/* The time of the earliest event; UINT64_MAX when there is none. */
uint64_t hs_sim_events_next_us(const struct hs_sim_events *events);

#endif
