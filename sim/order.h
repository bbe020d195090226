/* Private to sim/check_order.c, which prepares the steps on one key, and sim/order.c, which searches for an order of
 * them that explains all answers (order.c describes the search). One search object for each key; one thread. */
#ifndef HS_SIM_ORDER_H
#define HS_SIM_ORDER_H

#include "sim/history.h"
#include "sim/visited.h"
#include "sim/zones.h"

enum { HS_SIM_NO_STEP = UINT32_MAX, HS_SIM_STATE_WORDS = 2 };

struct hs_sim_order_step {
	const struct hs_sim_op *ops; /* a transaction: ops[0] and the ops[0].more that follow it */
	/* The step of the same client that must be taken before this one; HS_SIM_NO_STEP: none. */
	uint32_t before;
	/* For a step with an unknown outcome: an earlier equal one, which is taken first; or HS_SIM_NO_STEP. */
	uint32_t alike;
	uint32_t bit; /* its bit in `row` */
	struct hs_sim_hint hint;
	bool changes_nothing; /* its answers say that it changed nothing */
	bool taken;
};

/* A request or an answer, on a doubly linked list in the order of time. */
struct hs_sim_order_mark {
	uint64_t at;
	uint32_t step;
	struct hs_sim_order_mark *next, *prev;
};

/* The lists of marks. */
enum hs_sim_order_line {
	HS_SIM_LINE_ASKED,    /* requests of answered steps */
	HS_SIM_LINE_ANSWERED, /* their answers */
	HS_SIM_LINE_UNKNOWN,  /* requests that were never answered */
	HS_SIM_LINES,
};

struct hs_sim_order_choice {
	struct hs_sim_order_mark *mark; /* NULL: the choice was that the key expired */
	struct hs_sim_state state;	/* before the choice */
	int64_t floor_us;		/* before the choice */
	bool final;			/* no other choice needs to be tried here */
	/* The step seemed too early (is_early in order.c), and was tried after the others. */
	bool early;
};

/* For one zone: counts over the steps that are not taken yet. */
struct hs_sim_zone_remaining {
	uint32_t found; /* steps whose answer found one of its values */
	uint32_t ways;	/* steps that lead into it from elsewhere */
};

struct hs_sim_order {
	const struct hs_sim_history *history;
	struct hs_sim_state state;
	/* The latest request among the steps taken: the time is not earlier now. */
	int64_t floor_us;
	struct hs_sim_order_step *steps;
	uint32_t count;
	/* The heads of the lists, then for step i its request at HS_SIM_LINES + 2 i, followed by its answer. */
	struct hs_sim_order_mark *marks;
	struct hs_sim_order_choice *taken; /* in the order in which they were taken */
	uint32_t taken_count;
	uint32_t open;		 /* answered steps that are not taken yet */
	uint32_t optional_count; /* steps that the search may leave out (hs_sim_step_is_optional) */
	uint32_t optional_left;	 /* how many optional steps may still be taken */
	/* Bits of the answered steps taken; the state; bits of the other steps taken. */
	uint64_t *row;
	struct hs_sim_visited visited; /* rows that were tried already */
	struct hs_sim_zones zones;
	struct hs_sim_zone_remaining *remaining; /* for each zone */
	uint32_t wild;				 /* steps not taken that may lead into any zone */
	uint64_t steps_left;			 /* choices that the search may still undo */
};

static inline struct hs_sim_order_mark *hs_sim_order_asked_mark(struct hs_sim_order *search,
								uint32_t step)
{
	return &search->marks[HS_SIM_LINES + 2 * step];
}

static inline struct hs_sim_order_mark *hs_sim_order_answered_mark(struct hs_sim_order *search,
								   uint32_t step)
{
	return &search->marks[HS_SIM_LINES + 2 * step + 1];
}

static inline bool hs_sim_step_is_answered(const struct hs_sim_order_step *step)
{
	return step->ops->answered != HS_SIM_NEVER;
}

static inline bool hs_sim_step_may_be_refused(const struct hs_sim_order_step *step)
{
	return !hs_sim_step_is_answered(step) && step->ops->refusable;
}

/* The search may leave the step out. */
static inline bool hs_sim_step_is_optional(const struct hs_sim_order_step *step)
{
	return !hs_sim_step_is_answered(step) && (step->ops->refusable || step->ops->loose);
}

/* It may happen at any time after its request. */
static inline bool hs_sim_step_is_loose(const struct hs_sim_order_step *step)
{
	return !hs_sim_step_is_answered(step) && step->ops->loose;
}

/* Updates the counts when a step is taken (change -1) or put back (1). */
static inline void hs_sim_order_count_remaining(struct hs_sim_order *search,
						const struct hs_sim_order_step *step, int change)
{
	const struct hs_sim_hint *hint = &step->hint;

	if (hint->found != HS_SIM_NO_ZONE)
		search->remaining[hint->found].found += (uint32_t)change;
	if (hint->made != HS_SIM_NO_ZONE && hint->made != hint->found)
		search->remaining[hint->made].ways += (uint32_t)change;
	if (hint->wild)
		search->wild += (uint32_t)change;
}

/* 1: some order explains all answers. 0: no order does. HS_ELIMIT: steps_left ran out. */
int hs_sim_order_find(struct hs_sim_order *search);

#endif
