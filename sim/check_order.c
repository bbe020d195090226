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
#include "sim/check.h"

#include "base/err.h"
#include "base/mem.h"
#include "sim/seen.h"
#include "sim/zones.h"

#include <stdlib.h>

enum { NOBODY = UINT32_MAX, STATE_WORDS = 2 };
enum { ZONES_STEPS_MIN = 64 }; /* for fewer they are not worth their while */

struct step {
	const struct hs_sim_op *ops; /* ops[0] and ops[0].more behind it */
	uint32_t before; /* what must be taken before this one, or NOBODY: the same client's, */
	uint32_t bit;	 /* in the row of the search */
	uint32_t alike;	 /* or, of those with unknown outcomes, one that does the same */
	struct hs_sim_hint hint;
	bool changes_nothing; /* its answers say so */
	bool taken;
};

/* An asking or an answering, on a doubly linked line. */
struct mark {
	uint64_t at;
	uint32_t step;
	struct mark *next, *prev;
};

/* Where the lines begin. */
enum line { ASKED, ANSWERED, UNKNOWN, LINES };

struct choice {
	struct mark *mark;	   /* NULL: the key vanished */
	struct hs_sim_state state; /* before it */
	int64_t floor_us;	   /* the same */
	bool final;		   /* there is no point in trying another */
	bool early;		   /* it was one of the last to be tried */
};

/* Of a zone, among the steps that are not taken. */
struct left {
	uint32_t found; /* how many say that they found one of its values */
	uint32_t ways;	/* how many lead into it from elsewhere */
};

struct search {
	const struct hs_sim_history *history;
	struct hs_sim_state state;
	int64_t floor_us; /* when the last of the steps taken was asked: it is not earlier now */
	struct step *steps;
	uint32_t count;
	struct mark *marks;   /* the lines' heads; asked: LINES + 2 i, answered: LINES + 2 i + 1 */
	struct choice *taken; /* in order */
	uint32_t taken_count;
	uint32_t open; /* answered steps still on the line */
	/* Bits of the steps taken that were answered; the state; bits of the others taken. */
	uint64_t *row;
	struct hs_sim_seen seen; /* sets and states tried */
	struct hs_sim_zones zones;
	struct left *left; /* of each zone */
	uint32_t wild;	   /* steps not taken that may lead anywhere */
	uint64_t steps_left;
};

static struct mark *asked_mark(struct search *search, uint32_t step)
{
	return &search->marks[LINES + 2 * step];
}

static struct mark *answered_mark(struct search *search, uint32_t step)
{
	return &search->marks[LINES + 2 * step + 1];
}

static bool is_answered(const struct step *step)
{
	return step->ops->answered != HS_SIM_NEVER;
}

static bool may_be_refused(const struct step *step)
{
	return !is_answered(step) && step->ops->refusable;
}

/* Nobody waits for it. */
static bool is_optional(const struct step *step)
{
	return !is_answered(step) && (step->ops->refusable || step->ops->loose);
}

/* May happen whenever it likes. */
static bool is_loose(const struct step *step)
{
	return !is_answered(step) && step->ops->loose;
}

static void unlink_mark(struct mark *mark)
{
	mark->prev->next = mark->next;
	if (mark->next)
		mark->next->prev = mark->prev;
}

static void relink_mark(struct mark *mark)
{
	mark->prev->next = mark;
	if (mark->next)
		mark->next->prev = mark;
}

/* --- the search --- */

/* Whether the steps now taken were so before with this state, and as many of those with unknown
 * outcomes still to come, or more; from now on they were. */
static bool seen_before(struct search *search, struct hs_sim_state state)
{
	uint64_t *words = search->row + search->seen.place_words - STATE_WORDS;

	words[0] = (uint64_t)state.value;
	words[1] = state.expires ? 1 + (uint64_t)(state.expires - search->history->ops) : 0;
	return hs_sim_seen_before(&search->seen, search->row);
}

/* Whether the step's answers are right on a key in this state, which changes. */
static bool explains(const struct search *search, const struct step *step,
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

static void flip(struct search *search, uint32_t step)
{
	uint32_t bit = search->steps[step].bit;

	search->row[bit / 64] ^= 1ull << (bit % 64);
}

/* The step is taken (-1), or not any more (1). */
static void count_left(struct search *search, const struct step *step, int change)
{
	const struct hs_sim_hint *hint = &step->hint;

	if (hint->found != HS_SIM_NO_ZONE)
		search->left[hint->found].found += (uint32_t)change;
	if (hint->made != HS_SIM_NO_ZONE && hint->made != hint->found)
		search->left[hint->made].ways += (uint32_t)change;
	if (hint->wild)
		search->wild += (uint32_t)change;
}

static void take_step(struct search *search, struct mark *mark, struct hs_sim_state after,
		      struct choice choice)
{
	struct step *step = &search->steps[mark->step];

	choice.mark = mark;
	choice.state = search->state;
	choice.floor_us = search->floor_us;
	search->taken[search->taken_count++] = choice;
	count_left(search, step, -1);
	search->state = after;
	if (step->ops->asked_us > search->floor_us)
		search->floor_us = step->ops->asked_us;
	step->taken = true;
	unlink_mark(mark);
	if (is_answered(step)) {
		unlink_mark(answered_mark(search, mark->step));
		search->open--;
	}
}

static struct choice give_back(struct search *search)
{
	struct choice choice = search->taken[--search->taken_count];
	struct step *step;

	search->state = choice.state;
	search->floor_us = choice.floor_us;
	if (!choice.mark)
		return choice;
	step = &search->steps[choice.mark->step];
	if (is_answered(step)) {
		relink_mark(answered_mark(search, choice.mark->step));
		search->open++;
	}
	relink_mark(choice.mark);
	count_left(search, step, 1);
	step->taken = false;
	flip(search, choice.mark->step);
	return choice;
}

/* Whether the step's turn can be now, as far as other steps are concerned. */
static bool in_turn(const struct search *search, uint32_t number)
{
	const struct step *step = &search->steps[number];

	if (step->before != NOBODY && !search->steps[step->before].taken)
		return false;
	if (step->alike != NOBODY && !search->steps[step->alike].taken &&
	    in_turn(search, step->alike))
		return false;
	if (!may_be_refused(step) || is_loose(step))
		return true;
	/* Nobody waits for this one, but it cannot come after those that came behind it. */
	for (uint32_t i = number + 1; i < search->count; i++) {
		if (search->steps[i].taken && search->steps[i].ops->client == step->ops->client)
			return false;
	}
	return true;
}

/* What is asked later cannot come next: the first answer that is left. */
static uint64_t limit_of(const struct search *search)
{
	const struct mark *first = search->marks[ANSWERED].next;

	return first ? first->at : UINT64_MAX;
}

/* Takes a step that changes nothing, if one fits. */
static bool take_harmless(struct search *search)
{
	uint64_t limit = limit_of(search);

	for (struct mark *mark = search->marks[ASKED].next; mark && mark->at <= limit;
	     mark = mark->next) {
		const struct step *step = &search->steps[mark->step];
		struct hs_sim_state after = search->state;

		if (!step->changes_nothing || !in_turn(search, mark->step) ||
		    !explains(search, step, &after))
			continue;
		flip(search, mark->step);
		take_step(search, mark, after, (struct choice){.final = true});
		return true;
	}
	return false;
}

/* Leaves the same whatever was there, and says nothing about it. */
static bool is_blind(const struct step *step)
{
	enum hs_sim_kind kind = step->ops->kind;

	return step->ops->more == 0 &&
	       (kind == HS_SIM_SET ||
		(!is_answered(step) &&
		 (kind == HS_SIM_GETSET || kind == HS_SIM_DEL || kind == HS_SIM_GETDEL)));
}

/* The last step taken need not have been. */
static bool last_is_optional(const struct search *search)
{
	const struct choice *last =
		search->taken_count > 0 ? &search->taken[search->taken_count - 1] : NULL;

	return last && last->mark && is_optional(&search->steps[last->mark->step]);
}

/* Whether the step leaves a zone that others must still find, and only what may lead anywhere could
 * lead back. */
static bool is_early(const struct search *search, const struct step *step, int64_t value)
{
	uint32_t from = hs_sim_zones_at(&search->zones, search->state.value);
	const struct left *left = &search->left[from];

	if (from == HS_SIM_NO_ZONE || hs_sim_zones_at(&search->zones, value) == from)
		return false;
	return left->ways == 0 && left->found > (step->hint.found == from);
}

/* Takes the step if it may come now, its answers fit, and this was not tried before. `early`: only if
 * it seems too early, else only if it does not. */
static bool try_step(struct search *search, struct mark *mark, bool early)
{
	const struct step *step = &search->steps[mark->step];
	struct hs_sim_state after = search->state;

	if (step->changes_nothing || !in_turn(search, mark->step) ||
	    !explains(search, step, &after))
		return false;
	if (is_early(search, step, after.value) != early)
		return false;
	if (is_optional(step) && after.value == search->state.value &&
	    after.expires == search->state.expires)
		return false; /* nobody would notice */
	if (is_blind(step) && last_is_optional(search))
		return false; /* nobody would notice the last one */
	flip(search, mark->step);
	if (seen_before(search, after)) {
		flip(search, mark->step);
		return false;
	}
	take_step(search, mark, after, (struct choice){.early = early});
	return true;
}

static bool try_vanish(struct search *search)
{
	const struct hs_sim_state nothing = {.value = HS_SIM_NOTHING};
	const struct mark *first = search->marks[ANSWERED].next;

	if (!search->state.expires)
		return false;
	if (first && search->steps[first->step].ops->answered_us / 1000 <=
			     hs_sim_op_expires_first(search->state.expires))
		return false;
	if (seen_before(search, nothing))
		return false;
	search->taken[search->taken_count++] =
		(struct choice){.state = search->state, .floor_us = search->floor_us};
	search->state = nothing;
	return true;
}

/* Of the answered steps that may come next, the one with the lowest rank that is not below `from`. */
static struct mark *next_answered(struct search *search, uint32_t from)
{
	uint64_t limit = limit_of(search);
	struct mark *best = NULL;

	for (struct mark *mark = search->marks[ASKED].next; mark && mark->at <= limit;
	     mark = mark->next) {
		const struct step *step = &search->steps[mark->step];
		struct hs_sim_state after = search->state;

		if (step->changes_nothing || step->hint.rank < from ||
		    (best && step->hint.rank > search->steps[best->step].hint.rank))
			continue;
		if (in_turn(search, mark->step) && explains(search, step, &after))
			best = mark;
	}
	return best;
}

static bool try_answered(struct search *search, uint32_t rank, bool early)
{
	struct mark *mark;

	while ((mark = next_answered(search, rank))) {
		if (try_step(search, mark, early))
			return true;
		rank = search->steps[mark->step].hint.rank + 1;
	}
	return false;
}

static bool try_unknown(struct search *search, struct mark *mark, bool early)
{
	uint64_t limit = limit_of(search);

	for (; mark && mark->at <= limit; mark = mark->next) {
		if (try_step(search, mark, early))
			return true;
	}
	return false;
}

/* What seems too early. Nothing that leads back can be there unless it is wild. */
static bool try_early(struct search *search)
{
	return search->wild > 0 && (try_answered(search, 0, true) ||
				    try_unknown(search, search->marks[UNKNOWN].next, true));
}

/* What may come next: what was answered, what is unknown, the end of the key's time. */
static bool try_any(struct search *search)
{
	return try_answered(search, 0, false) ||
	       try_unknown(search, search->marks[UNKNOWN].next, false) || try_early(search) ||
	       try_vanish(search);
}

/* What comes behind this choice in that order. */
static bool try_behind(struct search *search, const struct choice *choice)
{
	const struct step *step = &search->steps[choice->mark->step];

	if (is_answered(step)
		    ? try_answered(search, step->hint.rank + 1, choice->early) ||
			      try_unknown(search, search->marks[UNKNOWN].next, choice->early)
		    : try_unknown(search, choice->mark->next, choice->early))
		return true;
	return (!choice->early && try_early(search)) || try_vanish(search);
}

/* Undoes the last choices until another one is found. */
static bool try_another(struct search *search)
{
	while (search->taken_count > 0 && search->steps_left > 0) {
		struct choice choice = give_back(search);

		search->steps_left--;
		if (!choice.final && choice.mark && try_behind(search, &choice))
			return true;
	}
	return false;
}

/* 1: there is an order. 0: there is none. HS_ELIMIT. */
static int find_order(struct search *search)
{
	search->state = (struct hs_sim_state){.value = HS_SIM_NOTHING};
	search->floor_us = INT64_MIN;
	while (search->open > 0) {
		if (take_harmless(search) || try_any(search))
			continue;
		if (!try_another(search))
			return search->steps_left > 0 ? 0 : HS_ELIMIT;
	}
	return 1;
}

/* --- laying it out --- */

static int by_time(const void *a, const void *b)
{
	const struct mark *const *left = a, *const *right = b;

	if ((*left)->at != (*right)->at)
		return (*left)->at < (*right)->at ? -1 : 1;
	/* At the same moment: in the order asked. */
	return (*left)->step < (*right)->step ? -1 : 1;
}

/* What an answer says that it did not do. */
static bool was_vain(const struct hs_sim_op *op)
{
	switch (op->kind) {
	case HS_SIM_DEL:
	case HS_SIM_SETNX:
	case HS_SIM_SETXX:
	case HS_SIM_PEXPIRE:
	case HS_SIM_PERSIST:
		return op->answer == 0;
	case HS_SIM_GETDEL:
	case HS_SIM_SETXXGET:
		return op->answer == HS_SIM_NOTHING;
	case HS_SIM_SETNXGET:
		return op->answer != HS_SIM_NOTHING;
	case HS_SIM_INCRBY:
		return op->answer == HS_SIM_NOT_INTEGER || op->answer == HS_SIM_OVERFLOW;
	default:
		return false;
	}
}

static bool changes_nothing(const struct hs_sim_op *ops)
{
	for (uint32_t i = 0; i <= ops->more; i++) {
		if (!hs_sim_kind_reads(ops[i].kind) &&
		    (ops[i].answered == HS_SIM_NEVER || !was_vain(&ops[i])))
			return false;
	}
	return true;
}

/* Which steps a new one waits for. */
static void find_earlier(const struct search *search, struct step *step)
{
	const struct hs_sim_op *op = step->ops;

	for (uint32_t j = search->count; j-- > 0 && step->before == NOBODY;) {
		const struct step *other = &search->steps[j];

		if (other->ops->client != op->client || is_loose(other))
			continue;
		if (!may_be_refused(other))
			step->before = j;
		else
			step->changes_nothing =
				false; /* if it comes first, the other is shut out */
	}
	for (uint32_t j = search->count; j-- > 0 && step->alike == NOBODY && is_loose(step);) {
		const struct hs_sim_op *other = search->steps[j].ops;

		if (is_loose(&search->steps[j]) && other->kind == op->kind && op->more == 0 &&
		    other->more == 0 && other->argument == op->argument && other->ttl_ms == 0 &&
		    op->ttl_ms == 0)
			step->alike = j;
	}
}

/* The steps on one key, in the order asked. Of a read without an answer there is nothing to say. */
static void find_steps(struct search *search, const struct hs_sim_history *history, uint32_t key)
{
	for (size_t i = 0; i < history->count; i += 1 + history->ops[i].more) {
		const struct hs_sim_op *op = &history->ops[i];
		struct step *step = &search->steps[search->count];

		if (op->key != key)
			continue;
		*step = (struct step){
			.ops = op,
			.before = NOBODY,
			.alike = NOBODY,
			.changes_nothing = changes_nothing(op),
		};
		if (step->changes_nothing && !is_answered(step))
			continue;
		find_earlier(search, step);
		search->open += is_answered(step);
		search->count++;
	}
}

/* The marks of a line, in the order of time. */
static void link_line(struct mark *head, struct mark **line, size_t len)
{
	if (len > 0)
		qsort(line, len, sizeof(struct mark *), by_time);
	*head = (struct mark){.next = NULL};
	for (size_t i = 0; i < len; i++) {
		line[i]->prev = i > 0 ? line[i - 1] : head;
		line[i]->prev->next = line[i];
	}
}

static void lay_out(struct search *search)
{
	struct mark **marks = hs_mem_alloc((LINES * (size_t)search->count + 1) * sizeof *marks);
	struct mark **line[LINES];
	size_t len[LINES] = {0};

	for (int i = 0; i < LINES; i++)
		line[i] = marks + (size_t)i * search->count;
	for (uint32_t i = 0; i < search->count; i++) {
		const struct hs_sim_op *op = search->steps[i].ops;

		*asked_mark(search, i) = (struct mark){.at = op->asked, .step = i};
		if (!is_answered(&search->steps[i])) {
			line[UNKNOWN][len[UNKNOWN]++] = asked_mark(search, i);
			continue;
		}
		*answered_mark(search, i) = (struct mark){.at = op->answered, .step = i};
		line[ASKED][len[ASKED]++] = asked_mark(search, i);
		line[ANSWERED][len[ANSWERED]++] = answered_mark(search, i);
	}
	for (int i = 0; i < LINES; i++)
		link_line(&search->marks[i], line[i], len[i]);
	hs_mem_free(&marks);
}

/* In the order of the answers: most likely that is how a few came. */
static void rank_by_answer(struct search *search)
{
	const struct hs_sim_hint none = {.found = HS_SIM_NO_ZONE, .made = HS_SIM_NO_ZONE};
	uint32_t rank = 0;

	for (uint32_t i = 0; i < search->count; i++)
		search->steps[i].hint = none;
	for (struct mark *mark = search->marks[ANSWERED].next; mark; mark = mark->next)
		search->steps[mark->step].hint.rank = rank++;
}

static void find_hints(struct search *search)
{
	const struct hs_sim_op **ops;
	struct hs_sim_hint *hints;

	if (search->count < ZONES_STEPS_MIN) {
		rank_by_answer(search);
		return;
	}
	ops = hs_mem_alloc(search->count * sizeof *ops);
	hints = hs_mem_alloc(search->count * sizeof *hints);
	for (uint32_t i = 0; i < search->count; i++)
		ops[i] = search->steps[i].ops;
	hs_sim_zones_init(&search->zones, ops, search->count, hints);
	search->left = hs_mem_zalloc((search->zones.count + 1) * sizeof *search->left);
	for (uint32_t i = 0; i < search->count; i++) {
		search->steps[i].hint = hints[i];
		count_left(search, &search->steps[i], 1);
	}
	hs_mem_free(&ops);
	hs_mem_free(&hints);
}

/* Which bit is whose. */
static void lay_out_row(struct search *search)
{
	uint32_t known = 0, unknown = 0;

	for (uint32_t i = 0; i < search->count; i++)
		search->steps[i].bit = is_optional(&search->steps[i]) ? unknown++ : known++;
	search->seen.place_words = (known + 63) / 64 + STATE_WORDS;
	search->seen.used_words = (unknown + 63) / 64;
	for (uint32_t i = 0; i < search->count; i++) {
		if (is_optional(&search->steps[i]))
			search->steps[i].bit += 64 * (uint32_t)search->seen.place_words;
	}
	search->row = hs_mem_zalloc((search->seen.place_words + search->seen.used_words) *
				    sizeof *search->row);
}

static int check_key(const struct hs_sim_history *history, uint32_t key, uint64_t steps_max)
{
	struct search search = {
		.history = history,
		.steps_left = steps_max ? steps_max : UINT64_MAX,
	};
	int found;

	search.steps = hs_mem_alloc(history->count * sizeof *search.steps);
	find_steps(&search, history, key);
	search.marks = hs_mem_alloc((LINES + 2 * (size_t)search.count) * sizeof *search.marks);
	lay_out(&search);
	find_hints(&search);
	/* Each step, and for each one that makes the key expire that it does. */
	search.taken = hs_mem_alloc((2 * (size_t)search.count + 1) * sizeof *search.taken);
	lay_out_row(&search);
	found = find_order(&search);
	hs_mem_free(&search.steps);
	hs_mem_free(&search.marks);
	hs_mem_free(&search.taken);
	hs_mem_free(&search.row);
	hs_sim_seen_deinit(&search.seen);
	hs_sim_zones_deinit(&search.zones);
	hs_mem_free(&search.left);
	return found;
}

int hs_sim_check_order(const struct hs_sim_history *history, uint64_t steps_max,
		       struct hs_sim_verdict *verdict)
{
	uint32_t keys = 0;

	for (size_t i = 0; i < history->count; i++) {
		if (history->ops[i].key >= keys)
			keys = history->ops[i].key + 1;
	}
	for (uint32_t key = 0; key < keys; key++) {
		int found = check_key(history, key, steps_max);

		if (found < 0)
			return found;
		if (found == 0) {
			hs_sim_verdict_set(verdict, 2,
					   "no order of the operations on key%u explains what they "
					   "answered",
					   key);
			return HS_EINVAL;
		}
	}
	return 0;
}
