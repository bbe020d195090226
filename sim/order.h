/* Private to sim/check_order.c, which lays out the steps on one key, and sim/order.c, which looks for an
 * order of them. */
#ifndef HS_SIM_ORDER_H
#define HS_SIM_ORDER_H

#include "sim/history.h"
#include "sim/visited.h"
#include "sim/zones.h"

enum { HS_SIM_NO_STEP = UINT32_MAX, HS_SIM_STATE_WORDS = 2 };

struct hs_sim_order_step {
	const struct hs_sim_op *ops; /* ops[0] and ops[0].more behind it */
	/* The same client's step that must be taken before this one; HS_SIM_NOBODY: none. */
	uint32_t before;
	/* Of those with unknown outcomes: one before it that does the same; or HS_SIM_NOBODY. */
	uint32_t alike;
	uint32_t bit; /* in the row of the search */
	struct hs_sim_hint hint;
	bool changes_nothing; /* its answers say so */
	bool taken;
};

/* An asking or an answering, on a doubly linked line. */
struct hs_sim_order_mark {
	uint64_t at;
	uint32_t step;
	struct hs_sim_order_mark *next, *prev;
};

/* Where the lines begin. */
enum hs_sim_order_line {
	HS_SIM_LINE_ASKED,
	HS_SIM_LINE_ANSWERED,
	HS_SIM_LINE_UNKNOWN, /* asked, and never answered */
	HS_SIM_LINES,
};

struct hs_sim_order_choice {
	struct hs_sim_order_mark *mark; /* NULL: the key vanished */
	struct hs_sim_state state;	/* before it */
	int64_t floor_us;		/* the same */
	bool final;			/* there is no point in trying another */
	bool early;			/* it was one of the last to be tried */
};

/* Of a zone, among the steps that are not taken. */
struct hs_sim_zone_remaining {
	uint32_t found; /* how many say that they found one of its values */
	uint32_t ways;	/* how many lead into it from elsewhere */
};

struct hs_sim_order {
	const struct hs_sim_history *history;
	struct hs_sim_state state;
	int64_t floor_us; /* when the last of the steps taken was asked: it is not earlier now */
	struct hs_sim_order_step *steps;
	uint32_t count;
	/* The lines' heads; then of step i: when it was asked, HS_SIM_LINES + 2 i, and answered. */
	struct hs_sim_order_mark *marks;
	struct hs_sim_order_choice *taken; /* in order */
	uint32_t taken_count;
	uint32_t open; /* answered steps still on the line */
	uint32_t optional_count;
	uint32_t optional_left; /* how many of them may still be taken */
	/* Bits of the steps taken that were answered; the state; bits of the others taken. */
	uint64_t *row;
	struct hs_sim_visited visited; /* sets and states tried */
	struct hs_sim_zones zones;
	struct hs_sim_zone_remaining *remaining; /* of each zone */
	uint32_t wild;				 /* steps not taken that may lead anywhere */
	uint64_t steps_left;
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

/* Nobody waits for it. */
static inline bool hs_sim_step_is_optional(const struct hs_sim_order_step *step)
{
	return !hs_sim_step_is_answered(step) && (step->ops->refusable || step->ops->loose);
}

/* May happen whenever it likes. */
static inline bool hs_sim_step_is_loose(const struct hs_sim_order_step *step)
{
	return !hs_sim_step_is_answered(step) && step->ops->loose;
}

/* The step is taken (-1), or not any more (1). */
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

/* 1: there is an order. 0: there is none. HS_ELIMIT. */
int hs_sim_order_find(struct hs_sim_order *search);

#endif
