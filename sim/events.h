/* The event queue of a simulated world: calls with a virtual time. They run in the order of their times; at the same
 * time, in the order in which they were planned. Nothing here is random, so that a world replays exactly. The queue
 * does not own what events point to. One thread. */
#ifndef HS_SIM_EVENTS_H
#define HS_SIM_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HS_SIM_TICK_US = 100000 }; /* between two periodic ticks: ten a second, as in the product */

/* `number` is free for the planner to use. */
typedef void hs_sim_event_run(void *context, void *target, uint64_t number);

struct hs_sim_event {
	uint64_t at_us;
	uint64_t order;
	hs_sim_event_run *run;
	void *context;
	void *target;
	uint64_t number;
	bool foreground; /* a world is not settled before it has run; others may repeat for ever */
};

struct hs_sim_events {
	struct hs_sim_event *heap; /* the earliest first */
	size_t count;
	size_t cap;
	size_t foreground; /* events in the heap with `foreground` */
	uint64_t planned;  /* planned so far: gives `order` */
};

void hs_sim_events_deinit(struct hs_sim_events *events);

/* Fills in `order`. */
void hs_sim_events_plan(struct hs_sim_events *events, struct hs_sim_event event);

/* Takes out the earliest event; false: there is none. */
bool hs_sim_events_take(struct hs_sim_events *events, struct hs_sim_event *event);

/* The time of the earliest event; UINT64_MAX: there is none. */
uint64_t hs_sim_events_next_us(const struct hs_sim_events *events);

#endif
