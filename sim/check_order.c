/* Is there an order? The search of Wing and Gong with the memory of Lowe's, for one key at a time
 * (a history is linearizable exactly when it is for each key by itself).
 *
 * Steps are laid out on a line by the moments at which they were asked and answered. Only a step
 * that was asked before the first answer still on the line can come next; taking it removes both
 * its marks and changes the value. When the first mark is an answer, its step came too late: the
 * last choice is undone and another tried. A set of steps taken together with the value they left
 * is never tried twice.
 *
 *     asked A ─ asked B ─ answered A ─ asked C ─ answered B ─ answered C
 *     └── A or B may come first ──┘
 *
 * Redis promises more than that to a pipelining client: its requests run in its order though all
 * are under way at once. So a step also waits for the ones its client asked before.
 *
 * A step with an unknown outcome has no answer on the line: it may be taken, and need not be.
 *
 * What keeps the search short: a step whose answer says that it changed nothing (a read, a DEL of
 * nothing) is taken as soon as it fits, and never reconsidered. If it fits later as well, nothing
 * in between would notice that it came earlier. */
#include "sim/check.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void hs_sim_verdict_set(struct hs_sim_verdict *verdict, int law, const char *format, ...)
{
	va_list args;

	if (verdict->law != 0)
		return; /* the first one counts */
	verdict->law = law;
	va_start(args, format);
	vsnprintf(verdict->text, sizeof verdict->text, format, args);
	va_end(args);
}

enum { NOBODY = UINT32_MAX };

struct step {
	const struct hs_sim_op *ops; /* ops[0] and ops[0].more behind it */
	uint32_t before;	     /* the same client's step before this one, or NOBODY */
	bool changes_nothing;	     /* its answers say so */
	bool taken;
};

/* An asking or an answering, on a doubly linked line. */
struct mark {
	uint64_t at;
	uint32_t step;
	bool answered;
	struct mark *next, *prev;
};

struct choice {
	struct mark *mark;
	int64_t value; /* before it */
	bool final;    /* there is no point in trying another */
};

struct search {
	struct step *steps;
	uint32_t count;
	struct mark *marks;   /* asked: 2 i + 1, answered: 2 i + 2; the first is the line's head */
	struct choice *taken; /* in order */
	uint32_t taken_count;
	uint32_t open; /* answered steps still on the line */
	uint64_t *set; /* bits of the steps taken */
	size_t set_words;
	/* Sets and values tried: open addressing over set_words + 1 words each. */
	uint64_t *seen;
	size_t seen_cap, seen_count;
	uint64_t steps_left;
};

static struct mark *asked_mark(struct search *search, uint32_t step)
{
	return &search->marks[2 * step + 1];
}

static struct mark *answered_mark(struct search *search, uint32_t step)
{
	return &search->marks[2 * step + 2];
}

static bool is_answered(const struct step *step)
{
	return step->ops->answered != HS_SIM_NEVER;
}

static bool may_be_refused(const struct step *step)
{
	return !is_answered(step) && step->ops->refusable;
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

/* --- sets seen before --- */

static uint64_t *find_seen(const struct search *search, uint64_t *table, size_t cap,
			   const uint64_t *entry)
{
	size_t words = search->set_words + 1;
	uint64_t hash = hs_hash((struct hs_bytes){(const char *)entry, words * 8}, 0);

	for (size_t i = hash & (cap - 1);; i = (i + 1) & (cap - 1)) {
		uint64_t *at = table + i * (words + 1);

		/* The word in front says whether the place is taken. */
		if (at[0] == 0 || memcmp(at + 1, entry, words * 8) == 0)
			return at;
	}
}

static void grow_seen(struct search *search)
{
	size_t words = search->set_words + 1;
	size_t cap = search->seen_cap ? search->seen_cap * 2 : 64;
	uint64_t *table = hs_mem_zalloc(cap * (words + 1) * sizeof *table);

	for (size_t i = 0; i < search->seen_cap; i++) {
		const uint64_t *at = search->seen + i * (words + 1);

		if (at[0])
			memcpy(find_seen(search, table, cap, at + 1), at, (words + 1) * sizeof *at);
	}
	hs_mem_free(&search->seen);
	search->seen = table;
	search->seen_cap = cap;
}

/* Whether the set of steps now taken was there before with this value; from now on it was. The
 * value goes into the word behind the set. */
static bool seen_before(struct search *search, int64_t value)
{
	uint64_t *at;

	if (search->seen_count * 2 >= search->seen_cap)
		grow_seen(search);
	search->set[search->set_words] = (uint64_t)value;
	at = find_seen(search, search->seen, search->seen_cap, search->set);
	if (at[0])
		return true;
	at[0] = 1;
	memcpy(at + 1, search->set, (search->set_words + 1) * sizeof *at);
	search->seen_count++;
	return false;
}

/* --- the search --- */

/* Whether the step's answers are right on a key that holds *value; changes *value. */
static bool explains(const struct step *step, int64_t *value)
{
	for (uint32_t i = 0; i <= step->ops->more; i++) {
		const struct hs_sim_op *op = &step->ops[i];
		int64_t answer;

		*value = hs_sim_op_apply(op, *value, &answer);
		if (is_answered(step) && answer != op->answer)
			return false;
	}
	return true;
}

static void flip(struct search *search, uint32_t step)
{
	search->set[step / 64] ^= 1ull << (step % 64);
}

static void take_step(struct search *search, struct mark *mark, struct choice choice)
{
	struct step *step = &search->steps[mark->step];

	search->taken[search->taken_count++] = choice;
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
	struct step *step = &search->steps[choice.mark->step];

	if (is_answered(step)) {
		relink_mark(answered_mark(search, choice.mark->step));
		search->open++;
	}
	relink_mark(choice.mark);
	step->taken = false;
	flip(search, choice.mark->step);
	return choice;
}

/* Whether the step's turn can be now, as far as its client's other steps are concerned. */
static bool in_turn(const struct search *search, uint32_t number)
{
	const struct step *step = &search->steps[number];

	if (step->before != NOBODY && !search->steps[step->before].taken)
		return false;
	if (!may_be_refused(step))
		return true;
	/* Nobody waits for this one, but it cannot come after those that came behind it. */
	for (uint32_t i = number + 1; i < search->count; i++) {
		if (search->steps[i].taken && search->steps[i].ops->client == step->ops->client)
			return false;
	}
	return true;
}

/* Takes a step that changes nothing, if one fits. */
static bool take_harmless(struct search *search, int64_t value)
{
	for (struct mark *mark = search->marks[0].next; mark && !mark->answered;
	     mark = mark->next) {
		const struct step *step = &search->steps[mark->step];
		int64_t after = value;

		if (!step->changes_nothing || !in_turn(search, mark->step) ||
		    !explains(step, &after))
			continue;
		flip(search, mark->step);
		take_step(search, mark, (struct choice){mark, value, true});
		return true;
	}
	return false;
}

/* Takes the step if it may come now, its answers fit, and this was not tried before. */
static bool try_step(struct search *search, struct mark *mark, int64_t *value)
{
	const struct step *step = &search->steps[mark->step];
	int64_t after = *value;

	if (step->changes_nothing || !in_turn(search, mark->step) || !explains(step, &after))
		return false;
	flip(search, mark->step);
	if (seen_before(search, after)) {
		flip(search, mark->step);
		return false;
	}
	take_step(search, mark, (struct choice){mark, *value, false});
	*value = after;
	return true;
}

/* 1: there is an order. 0: there is none. HS_ELIMIT. */
static int find_order(struct search *search)
{
	struct mark *head = &search->marks[0];
	struct choice choice;
	struct mark *mark = NULL;
	int64_t value = HS_SIM_NOTHING;
	bool fresh = true; /* nothing was tried behind the steps taken so far */

	while (search->open > 0) {
		if (search->steps_left-- == 0)
			return HS_ELIMIT;
		if (fresh && take_harmless(search, value))
			continue;
		mark = fresh ? head->next : mark;
		fresh = false;
		if (mark && !mark->answered) {
			fresh = try_step(search, mark, &value);
			mark = mark->next;
			continue;
		}
		do {
			if (search->taken_count == 0)
				return 0;
			choice = give_back(search);
		} while (choice.final);
		value = choice.value;
		mark = choice.mark->next;
	}
	return 1;
}

/* --- laying it out --- */

static int by_time(const void *a, const void *b)
{
	const struct mark *const *left = a, *const *right = b;

	if ((*left)->at != (*right)->at)
		return (*left)->at < (*right)->at ? -1 : 1;
	/* At the same moment: asked first, so that the two count as under way together. */
	return (int)(*left)->answered - (int)(*right)->answered;
}

static bool changes_nothing(const struct hs_sim_op *ops)
{
	for (uint32_t i = 0; i <= ops->more; i++) {
		const struct hs_sim_op *op = &ops[i];
		bool vain = op->answered != HS_SIM_NEVER &&
			    (((op->kind == HS_SIM_DEL || op->kind == HS_SIM_SETNX) &&
			      op->answer == 0) ||
			     (op->kind == HS_SIM_GETDEL && op->answer == HS_SIM_NOTHING));

		if (op->kind != HS_SIM_GET && !vain)
			return false;
	}
	return true;
}

/* The steps on one key, in the order asked. Of a read without an answer there is nothing to say. */
static void find_steps(struct search *search, const struct hs_sim_history *history, uint32_t key)
{
	for (size_t i = 0; i < history->count; i += 1 + history->ops[i].more) {
		const struct hs_sim_op *op = &history->ops[i];
		struct step *step = &search->steps[search->count];

		*step = (struct step){
			.ops = op,
			.before = NOBODY,
			.changes_nothing = changes_nothing(op),
		};
		if (op->key != key || (step->changes_nothing && !is_answered(step)))
			continue;
		for (uint32_t j = search->count; j-- > 0 && step->before == NOBODY;) {
			if (search->steps[j].ops->client != op->client)
				continue;
			if (!may_be_refused(&search->steps[j]))
				step->before = j;
			else
				step->changes_nothing =
					false; /* if it comes first, the other is shut out */
		}
		search->open += is_answered(step);
		search->count++;
	}
}

static void lay_out(struct search *search)
{
	struct mark **line = hs_mem_alloc((2 * search->count + 1) * sizeof *line);
	size_t len = 0;

	for (uint32_t i = 0; i < search->count; i++) {
		const struct hs_sim_op *op = search->steps[i].ops;

		*asked_mark(search, i) = (struct mark){.at = op->asked, .step = i};
		line[len++] = asked_mark(search, i);
		if (!is_answered(&search->steps[i]))
			continue;
		*answered_mark(search, i) =
			(struct mark){.at = op->answered, .step = i, .answered = true};
		line[len++] = answered_mark(search, i);
	}
	if (len > 0)
		qsort(line, len, sizeof(struct mark *), by_time);
	search->marks[0] = (struct mark){.next = NULL};
	for (size_t i = 0; i < len; i++) {
		line[i]->prev = i > 0 ? line[i - 1] : &search->marks[0];
		line[i]->prev->next = line[i];
	}
	hs_mem_free(&line);
}

static int check_key(const struct hs_sim_history *history, uint32_t key, uint64_t steps_max)
{
	struct search search = {.steps_left = steps_max ? steps_max : UINT64_MAX};
	int found;

	search.steps = hs_mem_alloc(history->count * sizeof *search.steps);
	find_steps(&search, history, key);
	search.marks = hs_mem_alloc((2 * (size_t)search.count + 1) * sizeof *search.marks);
	lay_out(&search);
	search.taken = hs_mem_alloc((search.count + 1) * sizeof *search.taken);
	search.set_words = (search.count + 63) / 64;
	search.set = hs_mem_zalloc((search.set_words + 1) * sizeof *search.set);
	found = find_order(&search);
	hs_mem_free(&search.steps);
	hs_mem_free(&search.marks);
	hs_mem_free(&search.taken);
	hs_mem_free(&search.set);
	hs_mem_free(&search.seen);
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
