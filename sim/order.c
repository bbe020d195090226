/* Linearizability of one key: is there an order of its operations that explains all answers? This is the search of
 * Wing and Gong with the memory of Lowe's. (A history is linearizable exactly when it is for each key by itself.)
 *
 * The requests and answers of the steps lie on lists, in the order of time. Only a step that was requested before
 * the first remaining answer can come next. Taking a step removes its request and its answer from the lists, and
 * changes the state of the key. When no step that may come next fits, the search undoes the last choice and tries
 * another one. It never tries the same set of steps with the same state twice.
 *
 *     request A ─ request B ─ answer A ─ request C ─ answer B ─ answer C
 *     └── A or B may come first ──┘
 *
 * Redis promises more than that to a pipelining client: its requests run in its order though all are in flight at
 * once. So a step also waits for the earlier steps of its client.
 *
 * A step with an unknown outcome has no answer: it may be taken or left out. Such steps are on a list of their own,
 * and are tried when no answered step fits.
 *
 * A key that expires vanishes between two steps. That is a choice like the others: it is possible after the earliest
 * moment at which the key can have expired, and after the latest such moment no step sees the key any more.
 *
 * Three things keep the search short. A step whose answer says that it changed nothing (a read, a DEL of a missing
 * key) is taken as soon as it fits, and never reconsidered: if it fits later as well, no step in between notices
 * that it came earlier. Of equal unknown steps the first is taken first. And steps are tried by rank (sim/zones.h);
 * those that leave values which other steps must still find are tried last or not at all. */
#include "sim/order.h"

#include "base/err.h"

enum { FEW_STEPS_MAX = 20000 };

static void unlink_mark(struct hs_sim_order_mark *mark)
{
	mark->prev->next = mark->next;
	if (mark->next)
		mark->next->prev = mark->prev;
}

static void relink_mark(struct hs_sim_order_mark *mark)
{
	mark->prev->next = mark;
	if (mark->next)
		mark->next->prev = mark;
}

/* --- the search --- */

/* Whether these steps were taken before with this state, and with as many unknown steps still to come, or more.
 * Marks them as visited. */
static bool seen_before(struct hs_sim_order *search, struct hs_sim_state state)
{
	uint64_t *words = search->row + search->visited.place_words - HS_SIM_STATE_WORDS;

	words[0] = (uint64_t)state.value;
	words[1] = state.expires ? 1 + (uint64_t)(state.expires - search->history->ops) : 0;
	return hs_sim_visited_before(&search->visited, search->row);
}

/* Whether the step's answers are right on a key in this state; changes the state. */
static bool explains(const struct hs_sim_order *search, const struct hs_sim_order_step *step,
		     struct hs_sim_state *state)
{
	int64_t now_us =
		step->ops->asked_us > search->floor_us ? step->ops->asked_us : search->floor_us;

	if (state->expires && now_us / 1000 > hs_sim_op_expires_last(state->expires))
		return false; /* the key has expired before this step could have run */
	for (uint32_t i = 0; i <= step->ops->more; i++) {
		if (!hs_sim_op_apply(&step->ops[i], state))
			return false;
	}
	return true;
}

static void flip(struct hs_sim_order *search, uint32_t step)
{
	uint32_t bit = search->steps[step].bit;

	search->row[bit / 64] ^= 1ull << (bit % 64);
}

static void take_step(struct hs_sim_order *search, struct hs_sim_order_mark *mark,
		      struct hs_sim_state after, struct hs_sim_order_choice choice)
{
	struct hs_sim_order_step *step = &search->steps[mark->step];

	choice.mark = mark;
	choice.state = search->state;
	choice.floor_us = search->floor_us;
	search->taken[search->taken_count++] = choice;
	hs_sim_order_count_remaining(search, step, -1);
	search->state = after;
	if (step->ops->asked_us > search->floor_us)
		search->floor_us = step->ops->asked_us;
	step->taken = true;
	search->optional_left -= hs_sim_step_is_optional(step);
	unlink_mark(mark);
	if (hs_sim_step_is_answered(step)) {
		unlink_mark(hs_sim_order_answered_mark(search, mark->step));
		search->open--;
	}
}

static struct hs_sim_order_choice give_back(struct hs_sim_order *search)
{
	struct hs_sim_order_choice choice = search->taken[--search->taken_count];
	struct hs_sim_order_step *step;

	search->state = choice.state;
	search->floor_us = choice.floor_us;
	if (!choice.mark)
		return choice;
	step = &search->steps[choice.mark->step];
	if (hs_sim_step_is_answered(step)) {
		relink_mark(hs_sim_order_answered_mark(search, choice.mark->step));
		search->open++;
	}
	relink_mark(choice.mark);
	hs_sim_order_count_remaining(search, step, 1);
	step->taken = false;
	search->optional_left += hs_sim_step_is_optional(step);
	flip(search, choice.mark->step);
	return choice;
}

/* Whether other steps allow this one to come next. */
static bool in_turn(const struct hs_sim_order *search, uint32_t number)
{
	const struct hs_sim_order_step *step = &search->steps[number];

	if (step->before != HS_SIM_NO_STEP && !search->steps[step->before].taken)
		return false;
	if (step->alike != HS_SIM_NO_STEP && !search->steps[step->alike].taken &&
	    in_turn(search, step->alike))
		return false;
	if (!hs_sim_step_may_be_refused(step) || hs_sim_step_is_loose(step))
		return true;
	/* The step may be left out, but it cannot come after later steps of its client. */
	for (uint32_t i = number + 1; i < search->count; i++) {
		if (search->steps[i].taken && search->steps[i].ops->client == step->ops->client)
			return false;
	}
	return true;
}

/* The first remaining answer: a step that was requested later cannot come next. */
static uint64_t limit_of(const struct hs_sim_order *search)
{
	const struct hs_sim_order_mark *first = search->marks[HS_SIM_LINE_ANSWERED].next;

	return first ? first->at : UINT64_MAX;
}

/* Takes a step that changes nothing, if one fits. */
static bool take_harmless(struct hs_sim_order *search)
{
	uint64_t limit = limit_of(search);

	for (struct hs_sim_order_mark *mark = search->marks[HS_SIM_LINE_ASKED].next;
	     mark && mark->at <= limit; mark = mark->next) {
		const struct hs_sim_order_step *step = &search->steps[mark->step];
		struct hs_sim_state after = search->state;

		if (!step->changes_nothing || !in_turn(search, mark->step) ||
		    !explains(search, step, &after))
			continue;
		flip(search, mark->step);
		take_step(search, mark, after, (struct hs_sim_order_choice){.final = true});
		return true;
	}
	return false;
}

/* Whether the step leaves the same value whatever it found, and its answer does not show what it found. */
static bool is_blind(const struct hs_sim_order_step *step)
{
	enum hs_sim_kind kind = step->ops->kind;

	return step->ops->more == 0 &&
	       (kind == HS_SIM_SET ||
		(!hs_sim_step_is_answered(step) &&
		 (kind == HS_SIM_GETSET || kind == HS_SIM_DEL || kind == HS_SIM_GETDEL)));
}

/* Whether the last step taken could have been left out. */
static bool last_is_optional(const struct hs_sim_order *search)
{
	const struct hs_sim_order_choice *last =
		search->taken_count > 0 ? &search->taken[search->taken_count - 1] : NULL;

	return last && last->mark && hs_sim_step_is_optional(&search->steps[last->mark->step]);
}

/* Whether the step leaves a zone whose values remaining steps must still find, while only wild steps could lead
 * back. */
static bool is_early(const struct hs_sim_order *search, const struct hs_sim_order_step *step,
		     int64_t value)
{
	uint32_t from = hs_sim_zones_at(&search->zones, search->state.value);
	const struct hs_sim_zone_remaining *remaining;

	if (from == HS_SIM_NO_ZONE || hs_sim_zones_at(&search->zones, value) == from)
		return false;
	remaining = &search->remaining[from];
	return remaining->ways == 0 && remaining->found > (step->hint.found == from);
}

/* Takes the step if it may come next, its answers fit, and this was not tried before. `early`: only steps that seem
 * too early; else only the others. */
static bool try_step(struct hs_sim_order *search, struct hs_sim_order_mark *mark, bool early)
{
	const struct hs_sim_order_step *step = &search->steps[mark->step];
	struct hs_sim_state after = search->state;

	if (hs_sim_step_is_optional(step) && search->optional_left == 0)
		return false;
	if (step->changes_nothing || !in_turn(search, mark->step) ||
	    !explains(search, step, &after))
		return false;
	if (is_early(search, step, after.value) != early)
		return false;
	if (hs_sim_step_is_optional(step) && after.value == search->state.value &&
	    after.expires == search->state.expires)
		return false; /* it would change nothing */
	if (is_blind(step) && last_is_optional(search))
		return false; /* the optional step before it would have no effect */
	flip(search, mark->step);
	if (seen_before(search, after)) {
		flip(search, mark->step);
		return false;
	}
	take_step(search, mark, after, (struct hs_sim_order_choice){.early = early});
	return true;
}

static bool try_vanish(struct hs_sim_order *search)
{
	const struct hs_sim_state nothing = {.value = HS_SIM_NOTHING};
	const struct hs_sim_order_mark *first = search->marks[HS_SIM_LINE_ANSWERED].next;

	if (!search->state.expires)
		return false;
	if (first && search->steps[first->step].ops->answered_us / 1000 <=
			     hs_sim_op_expires_first(search->state.expires))
		return false;
	if (seen_before(search, nothing))
		return false;
	search->taken[search->taken_count++] =
		(struct hs_sim_order_choice){.state = search->state, .floor_us = search->floor_us};
	search->state = nothing;
	return true;
}

/* Of the answered steps that may come next, the one with the lowest rank that is not below `from`. */
static struct hs_sim_order_mark *next_answered(struct hs_sim_order *search, uint32_t from)
{
	uint64_t limit = limit_of(search);
	struct hs_sim_order_mark *best = NULL;

	for (struct hs_sim_order_mark *mark = search->marks[HS_SIM_LINE_ASKED].next;
	     mark && mark->at <= limit; mark = mark->next) {
		const struct hs_sim_order_step *step = &search->steps[mark->step];
		struct hs_sim_state after = search->state;

		if (step->changes_nothing || step->hint.rank < from ||
		    (best && step->hint.rank > search->steps[best->step].hint.rank))
			continue;
		if (in_turn(search, mark->step) && explains(search, step, &after))
			best = mark;
	}
	return best;
}

static bool try_answered(struct hs_sim_order *search, uint32_t rank, bool early)
{
	struct hs_sim_order_mark *mark;

	while ((mark = next_answered(search, rank))) {
		if (try_step(search, mark, early))
			return true;
		rank = search->steps[mark->step].hint.rank + 1;
	}
	return false;
}

static bool try_unknown(struct hs_sim_order *search, struct hs_sim_order_mark *mark, bool early)
{
	uint64_t limit = limit_of(search);

	for (; mark && mark->at <= limit; mark = mark->next) {
		if (try_step(search, mark, early))
			return true;
	}
	return false;
}

/* Tries steps that seem too early. It helps only if wild steps remain, which may lead back. */
static bool try_early(struct hs_sim_order *search)
{
	return search->wild > 0 &&
	       (try_answered(search, 0, true) ||
		try_unknown(search, search->marks[HS_SIM_LINE_UNKNOWN].next, true));
}

/* Tries what may come next: answered steps, unknown steps, early steps, expiry. */
static bool try_any(struct hs_sim_order *search)
{
	return try_answered(search, 0, false) ||
	       try_unknown(search, search->marks[HS_SIM_LINE_UNKNOWN].next, false) ||
	       try_early(search) || try_vanish(search);
}

/* The choice was undone: tries the alternatives that come after it in the order of try_any. */
static bool try_behind(struct hs_sim_order *search, const struct hs_sim_order_choice *choice)
{
	const struct hs_sim_order_step *step = &search->steps[choice->mark->step];

	if (hs_sim_step_is_answered(step)
		    ? try_answered(search, step->hint.rank + 1, choice->early) ||
			      try_unknown(search, search->marks[HS_SIM_LINE_UNKNOWN].next,
					  choice->early)
		    : try_unknown(search, choice->mark->next, choice->early))
		return true;
	return (!choice->early && try_early(search)) || try_vanish(search);
}

/* Undoes choices, the last one first, until an alternative is found. False: none is left, or steps_left ran
 * out. */
static bool try_another(struct hs_sim_order *search)
{
	while (search->taken_count > 0 && search->steps_left > 0) {
		struct hs_sim_order_choice choice = give_back(search);

		search->steps_left--;
		if (!choice.final && choice.mark && try_behind(search, &choice))
			return true;
	}
	return false;
}

static int find_order(struct hs_sim_order *search)
{
	while (search->open > 0) {
		if (take_harmless(search) || try_any(search))
			continue;
		if (!try_another(search))
			return search->steps_left > 0 ? 0 : HS_ELIMIT;
	}
	return 1;
}

/* Searches for an order that takes at most `few` optional steps, and undoes at most FEW_STEPS_MAX choices. */
static int find_order_with(struct hs_sim_order *search, uint32_t few)
{
	uint64_t steps_left = search->steps_left;
	int found;

	hs_sim_visited_deinit(&search->visited);
	search->optional_left = few;
	if (steps_left > FEW_STEPS_MAX)
		search->steps_left = FEW_STEPS_MAX;
	found = find_order(search);
	search->steps_left = steps_left;
	if (found == 1)
		return 1;
	while (search->taken_count > 0)
		give_back(search);
	return 0;
}

/* Most often few unknown steps explain everything, and searching with few is fast. */
int hs_sim_order_find(struct hs_sim_order *search)
{
	static const uint32_t few[] = {1, 3, 6};

	for (size_t i = 0; i < sizeof few / sizeof *few; i++) {
		if (few[i] < search->optional_count && find_order_with(search, few[i]) == 1)
			return 1;
	}
	hs_sim_visited_deinit(&search->visited);
	search->optional_left = UINT32_MAX;
	return find_order(search);
}
