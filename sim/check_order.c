/* Prepares the steps on each key for the search (sim/order.c): their order, ranks and bits. */
#include "base/err.h"
#include "base/mem.h"
#include "sim/check.h"
#include "sim/order.h"

#include <stdlib.h>

enum { ZONES_STEPS_MIN = 64 }; /* fewer steps need no zones */

static int by_time(const void *a, const void *b)
{
	const struct hs_sim_order_mark *const *left = a, *const *right = b;

	if ((*left)->at != (*right)->at)
		return (*left)->at < (*right)->at ? -1 : 1;
	/* At the same moment: in the order of the requests. */
	return (*left)->step < (*right)->step ? -1 : 1;
}

/* Whether the answer says that the operation changed nothing. */
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

/* Fills in `before` and `alike` of a new step. */
static void find_earlier(const struct hs_sim_order *search, struct hs_sim_order_step *step)
{
	const struct hs_sim_op *op = step->ops;

	for (uint32_t j = search->count; j-- > 0 && step->before == HS_SIM_NO_STEP;) {
		const struct hs_sim_order_step *other = &search->steps[j];

		if (other->ops->client != op->client || hs_sim_step_is_loose(other))
			continue;
		if (!hs_sim_step_may_be_refused(other))
			step->before = j;
		else
			step->changes_nothing = false; /* taken early, it would exclude `other` */
	}
	for (uint32_t j = search->count;
	     j-- > 0 && step->alike == HS_SIM_NO_STEP && hs_sim_step_is_loose(step);) {
		const struct hs_sim_op *other = search->steps[j].ops;

		if (hs_sim_step_is_loose(&search->steps[j]) && other->kind == op->kind &&
		    op->more == 0 && other->more == 0 && other->argument == op->argument &&
		    other->ttl_ms == 0 && op->ttl_ms == 0)
			step->alike = j;
	}
}

/* Collects the steps on one key, in the order of their requests. Left out are reads that may be stale, and
 * reads without an answer. */
static void find_steps(struct hs_sim_order *search, const struct hs_sim_history *history,
		       uint32_t key)
{
	for (size_t i = 0; i < history->count; i += 1 + history->ops[i].more) {
		const struct hs_sim_op *op = &history->ops[i];
		struct hs_sim_order_step *step = &search->steps[search->count];

		if (op->key != key || op->may_be_stale)
			continue;
		*step = (struct hs_sim_order_step){
			.ops = op,
			.before = HS_SIM_NO_STEP,
			.alike = HS_SIM_NO_STEP,
			.changes_nothing = changes_nothing(op),
		};
		if (step->changes_nothing && !hs_sim_step_is_answered(step))
			continue;
		find_earlier(search, step);
		search->open += hs_sim_step_is_answered(step);
		search->count++;
	}
}

/* Links the marks of one list in the order of time. */
static void link_line(struct hs_sim_order_mark *head, struct hs_sim_order_mark **line, size_t len)
{
	if (len > 0)
		qsort(line, len, sizeof(struct hs_sim_order_mark *), by_time);
	*head = (struct hs_sim_order_mark){.next = NULL};
	for (size_t i = 0; i < len; i++) {
		line[i]->prev = i > 0 ? line[i - 1] : head;
		line[i]->prev->next = line[i];
	}
}

static void lay_out(struct hs_sim_order *search)
{
	struct hs_sim_order_mark **marks =
		hs_mem_alloc((HS_SIM_LINES * (size_t)search->count + 1) * sizeof *marks);
	struct hs_sim_order_mark **line[HS_SIM_LINES];
	size_t len[HS_SIM_LINES] = {0};

	for (int i = 0; i < HS_SIM_LINES; i++)
		line[i] = marks + (size_t)i * search->count;
	for (uint32_t i = 0; i < search->count; i++) {
		const struct hs_sim_op *op = search->steps[i].ops;

		*hs_sim_order_asked_mark(search, i) =
			(struct hs_sim_order_mark){.at = op->asked, .step = i};
		if (!hs_sim_step_is_answered(&search->steps[i])) {
			line[HS_SIM_LINE_UNKNOWN][len[HS_SIM_LINE_UNKNOWN]++] =
				hs_sim_order_asked_mark(search, i);
			continue;
		}
		*hs_sim_order_answered_mark(search, i) =
			(struct hs_sim_order_mark){.at = op->answered, .step = i};
		line[HS_SIM_LINE_ASKED][len[HS_SIM_LINE_ASKED]++] =
			hs_sim_order_asked_mark(search, i);
		line[HS_SIM_LINE_ANSWERED][len[HS_SIM_LINE_ANSWERED]++] =
			hs_sim_order_answered_mark(search, i);
	}
	for (int i = 0; i < HS_SIM_LINES; i++)
		link_line(&search->marks[i], line[i], len[i]);
	hs_mem_free(&marks);
}

/* Ranks by the order of the answers, which is the most likely order of a few steps. */
static void rank_by_answer(struct hs_sim_order *search)
{
	const struct hs_sim_hint none = {.found = HS_SIM_NO_ZONE, .made = HS_SIM_NO_ZONE};
	uint32_t rank = 0;

	for (uint32_t i = 0; i < search->count; i++)
		search->steps[i].hint = none;
	for (struct hs_sim_order_mark *mark = search->marks[HS_SIM_LINE_ANSWERED].next; mark;
	     mark = mark->next)
		search->steps[mark->step].hint.rank = rank++;
}

static void find_hints(struct hs_sim_order *search)
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
	search->remaining = hs_mem_zalloc((search->zones.count + 1) * sizeof *search->remaining);
	for (uint32_t i = 0; i < search->count; i++) {
		search->steps[i].hint = hints[i];
		hs_sim_order_count_remaining(search, &search->steps[i], 1);
	}
	hs_mem_free(&ops);
	hs_mem_free(&hints);
}

/* Gives each step its bit in the row. */
static void lay_out_row(struct hs_sim_order *search)
{
	uint32_t known = 0, unknown = 0;

	for (uint32_t i = 0; i < search->count; i++)
		search->steps[i].bit =
			hs_sim_step_is_optional(&search->steps[i]) ? unknown++ : known++;
	search->optional_count = unknown;
	search->visited.place_words = (known + 63) / 64 + HS_SIM_STATE_WORDS;
	search->visited.used_words = (unknown + 63) / 64;
	for (uint32_t i = 0; i < search->count; i++) {
		if (hs_sim_step_is_optional(&search->steps[i]))
			search->steps[i].bit += 64 * (uint32_t)search->visited.place_words;
	}
	search->row = hs_mem_zalloc((search->visited.place_words + search->visited.used_words) *
				    sizeof *search->row);
}

static int check_key(const struct hs_sim_history *history, uint32_t key, uint64_t steps_max)
{
	struct hs_sim_order search = {
		.history = history,
		.state = {.value = HS_SIM_NOTHING},
		.floor_us = INT64_MIN,
		.steps_left = steps_max ? steps_max : UINT64_MAX,
	};
	int found;

	search.steps = hs_mem_alloc(history->count * sizeof *search.steps);
	find_steps(&search, history, key);
	search.marks =
		hs_mem_alloc((HS_SIM_LINES + 2 * (size_t)search.count) * sizeof *search.marks);
	lay_out(&search);
	find_hints(&search);
	/* One choice for each step, and one for each expiry. */
	search.taken = hs_mem_alloc((2 * (size_t)search.count + 1) * sizeof *search.taken);
	lay_out_row(&search);
	found = hs_sim_order_find(&search);
	hs_mem_free(&search.steps);
	hs_mem_free(&search.marks);
	hs_mem_free(&search.taken);
	hs_mem_free(&search.row);
	hs_sim_visited_deinit(&search.visited);
	hs_sim_zones_deinit(&search.zones);
	hs_mem_free(&search.remaining);
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
