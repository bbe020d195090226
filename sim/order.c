/* Is there an order? The search of Wing and Gong with the memory of Lowe's, for one key at a time
 * (a history is linearizable exactly when it is for each key by itself).
 *
 * Steps are laid out on lines by the moments at which they were asked and answered. Only a step
 * that was asked before the first answer that is left can come next; taking it removes both its
 * marks and changes the state of the key. When no step that may come next fits, the last choice is
 * undone and another tried. A set of steps taken together with the state they left is never tried
 * twice.
 *
 *     asked A ─ asked B ─ answered A ─ asked C ─ answered B ─ answered C
 *     └── A or B may come first ──┘
 *
 * Redis promises more than that to a pipelining client: its requests run in its order though all
 * are under way at once. So a step also waits for the ones its client asked before.
 *
 * A step with an unknown outcome is never answered: it may be taken, and need not be. These stand on a
 * line of their own, and are tried when nothing that was answered fits.
 *
 * A key that expires vanishes between two steps, which is a choice like the others: not before the
 * first moment at which it may be gone can have come, and nobody sees it when the last one at which it
 * may be there has passed.
 *
 * What keeps the search short: a step whose answer says that it changed nothing (a read, a DEL of
 * nothing) is taken as soon as it fits, and never reconsidered. If it fits later as well, nothing
 * in between would notice that it came earlier. And of unknown steps that are alike the first is
 * taken first. What may come next is tried by rank (sim/zones.h), and what would leave behind values
 * that others must still find, last or not at all. */
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

/* Whether the steps now taken were so before with this state, and as many of those with unknown
 * outcomes still to come, or more; from now on they were. */
static bool seen_before(struct hs_sim_order *search, struct hs_sim_state state)
{
	uint64_t *words = search->row + search->visited.place_words - HS_SIM_STATE_WORDS;

	words[0] = (uint64_t)state.value;
	words[1] = state.expires ? 1 + (uint64_t)(state.expires - search->history->ops) : 0;
	return hs_sim_visited_before(&search->visited, search->row);
}

/* Whether the step's answers are right on a key in this state, which changes. */
static bool explains(const struct hs_sim_order *search, const struct hs_sim_order_step *step,
		     struct hs_sim_state *state)
{
	int64_t now_us =
		step->ops->asked_us > search->floor_us ? step->ops->asked_us : search->floor_us;

	if (state->expires && now_us / 1000 > hs_sim_op_expires_last(state->expires))
		return false; /* it is not there any more */
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

/* Whether the step's turn can be now, as far as other steps are concerned. */
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
	/* Nobody waits for this one, but it cannot come after those that came behind it. */
	for (uint32_t i = number + 1; i < search->count; i++) {
		if (search->steps[i].taken && search->steps[i].ops->client == step->ops->client)
			return false;
	}
	return true;
}

/* What is asked later cannot come next: the first answer that is left. */
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

/* Leaves the same whatever was there, and says nothing about it. */
static bool is_blind(const struct hs_sim_order_step *step)
{
	enum hs_sim_kind kind = step->ops->kind;

	return step->ops->more == 0 &&
	       (kind == HS_SIM_SET ||
		(!hs_sim_step_is_answered(step) &&
		 (kind == HS_SIM_GETSET || kind == HS_SIM_DEL || kind == HS_SIM_GETDEL)));
}

/* The last step taken need not have been. */
static bool last_is_optional(const struct hs_sim_order *search)
{
	const struct hs_sim_order_choice *last =
		search->taken_count > 0 ? &search->taken[search->taken_count - 1] : NULL;

	return last && last->mark && hs_sim_step_is_optional(&search->steps[last->mark->step]);
}

/* Whether the step leaves a zone that others must still find, and only what may lead anywhere could
 * lead back. */
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

/* Takes the step if it may come now, its answers fit, and this was not tried before. `early`: only if
 * it seems too early, else only if it does not. */
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
		return false; /* nobody would notice */
	if (is_blind(step) && last_is_optional(search))
		return false; /* nobody would notice the last one */
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

/* What seems too early. Nothing that leads back can be there unless it is wild. */
static bool try_early(struct hs_sim_order *search)
{
	return search->wild > 0 &&
	       (try_answered(search, 0, true) ||
		try_unknown(search, search->marks[HS_SIM_LINE_UNKNOWN].next, true));
}

/* What may come next: what was answered, what is unknown, the end of the key's time. */
static bool try_any(struct hs_sim_order *search)
{
	return try_answered(search, 0, false) ||
	       try_unknown(search, search->marks[HS_SIM_LINE_UNKNOWN].next, false) ||
	       try_early(search) || try_vanish(search);
}

/* What comes behind this choice in that order. */
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

/* Undoes the last choices until another one is found. */
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

/* With at most so many of those with unknown outcomes, and not for long. */
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

/* Most often few of those with unknown outcomes explain everything, and few are tried fast. */
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
