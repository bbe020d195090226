/* Law 3, read by read. The timeline says what the key held and when (sim/timeline.h), so there is nothing to search:
 * the value that a read returned must belong to a span of its key that
 *
 *   - had begun when the read was answered;
 *   - had not been over for longer than the contract allows when the read was requested;
 *   - was not over when a write happened that the reader must see: a write that was acknowledged before the read was
 *     requested, to a client of the same heatsink, or an earlier write of the reader's own connection. (Of a write to
 *     a key that the command does not name, only its own connection can know.)
 *
 *     span of 5 ──────┬─ span of 6 ─────────────
 *     SET 6     ├─────┴───┤ acknowledged
 *     GET                     ├────┤ 5: wrong. The SET happened when the span of 5 ended, and was acknowledged before
 *
 * The moment of a write is known exactly where only one span can be its own, because values are unique. Otherwise it
 * is taken as the first change between its request and its answer. So a write must change something, which is why
 * clients of such keys only increment upwards.
 *
 * A batch of folded requests may go through several values at once; only the last one becomes a span. A read that
 * was in flight together with the write of such a value may have seen it. */
#include "base/err.h"
#include "base/mem.h"
#include "sim/check.h"

#include <inttypes.h>

/* The value that the operation leaves. False: its answer says that it changed nothing. */
static bool leaves(const struct hs_sim_op *op, int64_t *value)
{
	*value = op->argument;
	switch (op->kind) {
	case HS_SIM_SET:
	case HS_SIM_GETSET:
		return true;
	case HS_SIM_SETNX:
	case HS_SIM_SETXX:
		return op->answer == 1;
	case HS_SIM_SETNXGET:
		return op->answer == HS_SIM_NOTHING;
	case HS_SIM_SETXXGET:
		return op->answer != HS_SIM_NOTHING;
	case HS_SIM_INCRBY:
		*value = op->answer;
		return op->answer != HS_SIM_NOT_INTEGER && op->answer != HS_SIM_OVERFLOW;
	case HS_SIM_CLEAR:
		*value = HS_SIM_NOTHING;
		return true;
	case HS_SIM_DEL:
		*value = HS_SIM_NOTHING;
		return op->answer == 1;
	case HS_SIM_GETDEL:
		*value = HS_SIM_NOTHING;
		return op->answer != HS_SIM_NOTHING;
	default:
		return false;
	}
}

/* The first span that began while the operation was in flight: any, or one with this value; with `expired`, also one
 * that began because the previous value expired. 0: none. */
static size_t first_within(const struct hs_sim_op *op, const struct hs_sim_key_timeline *timeline,
			   const int64_t *value, bool expired)
{
	for (size_t i = 1; i < timeline->count; i++) {
		const struct hs_sim_value_span *span = &timeline->spans[i];

		if (span->from >= op->asked && span->from <= op->answered &&
		    (!span->expired || expired) && (!value || span->value == *value))
			return i;
	}
	return 0;
}

/* The key's value at the operation's request. */
static int64_t value_at(const struct hs_sim_op *op, const struct hs_sim_key_timeline *timeline)
{
	size_t i = timeline->count;

	while (i > 1 && timeline->spans[i - 1].from > op->asked)
		i--;
	return timeline->spans[i - 1].value;
}

/* Whether the number is reached at most once: a value that was set, or counted up from one. Numbers counted up from
 * a missing key repeat. */
static bool is_unique(int64_t value)
{
	return value >= HS_SIM_VALUE_STEP && value != HS_SIM_NOTHING;
}

/* The step at which an answered write happened, or an earlier one; 0: reads need not see it. */
static uint64_t happened(const struct hs_sim_op *op, const struct hs_sim_key_timeline *timeline,
			 bool in_transaction)
{
	bool flush = op->kind == HS_SIM_CLEAR;
	size_t own = 0;
	int64_t value;

	if (op->answered == HS_SIM_NEVER || op->external || !leaves(op, &value))
		return 0;
	/* A flush of a missing key changes nothing; several commands of a transaction may undo each other. */
	if (flush && value_at(op, timeline) == HS_SIM_NOTHING)
		return op->asked;
	if (is_unique(value) || flush || (value == HS_SIM_NOTHING && !in_transaction))
		own = first_within(op, timeline, &value, flush);
	if (own == 0 && !in_transaction && !flush)
		own = first_within(op, timeline, NULL, false);
	return own > 0 ? timeline->spans[own].from : op->asked;
}

/* The step of each operation. `timeline` holds the timelines of all keys. The caller frees the array. */
static uint64_t *find_steps(const struct hs_sim_history *history,
			    const struct hs_sim_timelines *timeline)
{
	uint64_t *steps = hs_mem_zalloc((history->count + 1) * sizeof *steps);
	uint32_t inside = 0;

	for (size_t i = 0; i < history->count; i++) {
		const struct hs_sim_op *op = &history->ops[i];
		bool transaction = inside > 0 || op->more > 0;

		inside = op->more > 0 ? op->more : inside - (inside > 0);
		if (op->key < timeline->keys_count)
			steps[i] = happened(op, &timeline->keys[op->key], transaction);
	}
	return steps;
}

/* The latest step of the writes that the read must see. */
static uint64_t floor_of(const struct hs_sim_history *history, size_t read, const uint64_t *steps)
{
	const struct hs_sim_op *op = &history->ops[read];
	uint64_t latest = 0;

	for (size_t i = 0; i < history->count; i++) {
		const struct hs_sim_op *write = &history->ops[i];
		bool own = write->client == op->client && i < read;

		if (steps[i] > latest && write->key == op->key &&
		    (own || (write->answered < op->asked && !write->unnamed_key &&
			     write->heatsink == op->heatsink)))
			latest = steps[i];
	}
	return latest;
}

static bool says(const struct hs_sim_op *op, int64_t value)
{
	struct hs_sim_state state = {.value = value};

	return hs_sim_op_apply(op, &state);
}

enum found { FOUND_NONE, FOUND_EARLY, FOUND_OLD, FOUND_OVER, FOUND };

static enum found look_at(const struct hs_sim_op *op, const struct hs_sim_key_timeline *timeline,
			  size_t at, uint64_t floor)
{
	const struct hs_sim_value_span *span = &timeline->spans[at];
	int64_t end_us;
	uint64_t end = hs_sim_value_span_end(timeline, at, &end_us);

	if (!says(op, span->value))
		return FOUND_NONE;
	if (span->expired ? span->from_us > op->answered_us : span->from > op->answered)
		return FOUND_EARLY;
	if (end_us < op->asked_us - op->stale_us || (op->stale_us == 0 && end < op->asked))
		return FOUND_OLD;
	return end <= floor ? FOUND_OVER : FOUND;
}

/* Whether this write has no span of its own, or may have none because its number may be reached twice. */
static bool is_without_version(const struct hs_sim_op *write,
			       const struct hs_sim_key_timeline *timeline, int64_t value)
{
	return (write->kind == HS_SIM_INCRBY && !is_unique(value)) ||
	       first_within(write, timeline, &value, false) == 0;
}

/* Whether the read may have seen a value within a batch. `never`: no span holds the value. */
static bool is_passing(const struct hs_sim_history *history, const struct hs_sim_op *op,
		       const struct hs_sim_key_timeline *timeline, bool never)
{
	for (size_t i = 0; i < history->count; i++) {
		const struct hs_sim_op *write = &history->ops[i];
		int64_t value;

		if (write->key != op->key || write->external || write->asked > op->answered ||
		    write->answered < op->asked)
			continue;
		/* The client disconnected before it got its number. */
		if (never && write->kind == HS_SIM_INCRBY && write->answered == HS_SIM_NEVER)
			return true;
		if (leaves(write, &value) && says(op, value) &&
		    is_without_version(write, timeline, value))
			return true;
	}
	return false;
}

/* Whether the read returned a value that its client wrote only later. */
static bool is_ahead(const struct hs_sim_history *history, size_t read)
{
	const struct hs_sim_op *op = &history->ops[read];
	bool shows = op->kind == HS_SIM_GET || op->kind == HS_SIM_GETRANGE;
	int64_t value;

	for (size_t i = read + 1; shows && is_unique(op->answer) && i < history->count; i++) {
		const struct hs_sim_op *write = &history->ops[i];

		if (write->client == op->client && write->key == op->key && !write->external &&
		    leaves(write, &value) && value == op->answer)
			return true;
	}
	return false;
}

static bool was_asked(const struct hs_sim_op *op, const struct hs_sim_key_timeline *timeline)
{
	for (size_t i = timeline->asked_count; i-- > 0;) {
		if (timeline->asked_us[i] <= op->answered_us)
			return timeline->asked_us[i] >= op->asked_us - op->max_age_us;
	}
	return false;
}

static int report(const struct hs_sim_op *op, const char *why, struct hs_sim_verdict *verdict)
{
	char value[HS_SIM_VALUE_TEXT_MAX];

	hs_sim_verdict_set(verdict, op->off ? 7 : 3,
			   "client %u read key%u at %" PRIu64 " and was answered %s at %" PRIu64
			   ", %s (allowed: %" PRId64 " us)",
			   op->client, op->key, op->asked, hs_sim_value_text(op->answer, value),
			   op->answered, why, op->stale_us);
	return HS_EINVAL;
}

static int check_read(const struct hs_sim_history *history, size_t read,
		      const struct hs_sim_key_timeline *timeline, uint64_t floor,
		      struct hs_sim_verdict *verdict)
{
	static const char *const why[] = {
		[FOUND_NONE] = "which the key never held",
		[FOUND_EARLY] = "which the key did not hold yet",
		[FOUND_OLD] = "which is too old",
		[FOUND_OVER] = "which had been replaced by a write that it must see",
	};
	const struct hs_sim_op *op = &history->ops[read];
	enum found best = FOUND_NONE;

	for (size_t i = 0; i < timeline->count && best != FOUND; i++) {
		enum found found = look_at(op, timeline, i, floor);

		best = found > best ? found : best;
	}
	if (best != FOUND && !is_passing(history, op, timeline, best == FOUND_NONE))
		return report(op, why[best], verdict);
	if (is_ahead(history, read))
		return report(op, "which its client wrote only later", verdict);
	if (op->max_age_us > 0 && !was_asked(op, timeline))
		return report(op, "though heatsink had not read it from the server for too long",
			      verdict);
	return 0;
}

int hs_sim_check_stale(const struct hs_sim_history *history,
		       const struct hs_sim_timelines *timeline, struct hs_sim_verdict *verdict)
{
	uint64_t *steps = find_steps(history, timeline);
	int err = 0;

	for (size_t i = 0; i < history->count && err == 0; i++) {
		const struct hs_sim_op *op = &history->ops[i];

		if ((op->may_be_stale || op->off) && op->kind != HS_SIM_NONE &&
		    op->answered != HS_SIM_NEVER)
			err = check_read(history, i, &timeline->keys[op->key],
					 floor_of(history, i, steps), verdict);
	}
	hs_mem_free(&steps);
	return err;
}
