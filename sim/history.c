#include "sim/history.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>

void hs_sim_history_deinit(struct hs_sim_history *history)
{
	hs_mem_free(&history->ops);
	*history = (struct hs_sim_history){0};
}

size_t hs_sim_history_add(struct hs_sim_history *history, const struct hs_sim_op *op)
{
	if (history->count == history->cap) {
		history->cap = history->cap ? history->cap * 2 : 128;
		history->ops = hs_mem_realloc(history->ops, history->cap * sizeof *history->ops);
	}
	history->ops[history->count] = *op;
	return history->count++;
}

/* --- description --- */

static bool is_text(int64_t value)
{
	return value >= HS_SIM_TEXT && value < HS_SIM_TEXT_END;
}

const char *hs_sim_value_text(int64_t value, char text[HS_SIM_VALUE_TEXT_MAX])
{
	if (value == HS_SIM_NOTHING)
		return "nothing";
	if (value == HS_SIM_NOT_INTEGER)
		return "no number";
	if (value == HS_SIM_OVERFLOW)
		return "overflow";
	snprintf(text, HS_SIM_VALUE_TEXT_MAX, "%s%" PRId64, is_text(value) ? "t" : "",
		 is_text(value) ? value - HS_SIM_TEXT : value);
	return text;
}

static void print_value(struct hs_buf *text, int64_t value)
{
	char room[HS_SIM_VALUE_TEXT_MAX];

	hs_buf_printf(text, "%s", hs_sim_value_text(value, room));
}

static const struct {
	const char *name;
	bool has_argument;
	bool has_answer;
} kinds[HS_SIM_KINDS] = {
	[HS_SIM_GET] = {"GET", false, true},
	[HS_SIM_SET] = {"SET", true, false},
	[HS_SIM_SETNX] = {"SET NX", true, true},
	[HS_SIM_GETSET] = {"GETSET", true, true},
	[HS_SIM_DEL] = {"DEL", false, true},
	[HS_SIM_GETDEL] = {"GETDEL", false, true},
	[HS_SIM_INCRBY] = {"INCRBY", true, true},
	[HS_SIM_SETXX] = {"SET XX", true, true},
	[HS_SIM_SETNXGET] = {"SET NX GET", true, true},
	[HS_SIM_SETXXGET] = {"SET XX GET", true, true},
	[HS_SIM_GETRANGE] = {"GETRANGE", false, true},
	[HS_SIM_STRLEN] = {"STRLEN", false, true},
	[HS_SIM_EXISTS] = {"EXISTS", false, true},
	[HS_SIM_PTTL] = {"PTTL", false, true},
	[HS_SIM_TTL] = {"TTL", false, true},
	[HS_SIM_PEXPIRE] = {"PEXPIRE", false, true},
	[HS_SIM_PERSIST] = {"PERSIST", false, true},
	[HS_SIM_CLEAR] = {"FLUSHALL", false, false},
	[HS_SIM_NONE] = {"refused", false, false},
};

static void print_op(const struct hs_sim_op *op, struct hs_buf *text)
{
	hs_buf_printf(text, "client %-2u %6" PRIu64 " … ", op->client, op->asked);
	if (op->answered == HS_SIM_NEVER)
		hs_buf_printf(text, "unknown  ");
	else
		hs_buf_printf(text, "%6" PRIu64 "   ", op->answered);
	hs_buf_printf(text, "%s key%u", kinds[op->kind].name, op->key);
	if (kinds[op->kind].has_argument) {
		hs_buf_printf(text, " ");
		print_value(text, op->argument);
	}
	if (op->ttl_ms > 0)
		hs_buf_printf(text, " for %" PRId64 " ms (at %" PRId64 ".%03" PRId64 " ms)",
			      op->ttl_ms, op->asked_us / 1000 % 100000, op->asked_us % 1000);
	if (op->answered != HS_SIM_NEVER && kinds[op->kind].has_answer) {
		hs_buf_printf(text, " → ");
		print_value(text, op->answer);
	}
	if (op->may_be_stale || op->external)
		hs_buf_printf(text, "  %sat %" PRId64 ".%03" PRId64 " ms",
			      op->lost_writes ? "by servers that lost writes "
			      : op->external  ? "directly at the server "
					      : "",
			      op->asked_us / 1000 % 100000, op->asked_us % 1000);
	if (op->more > 0)
		hs_buf_printf(text, "  (one transaction with the next %u)", op->more);
	hs_buf_printf(text, "\n");
}

void hs_sim_history_print(const struct hs_sim_history *history, struct hs_buf *text)
{
	for (size_t i = 0; i < history->count; i++)
		print_op(&history->ops[i], text);
}

/* --- semantics of operations --- */

bool hs_sim_kind_reads(enum hs_sim_kind kind)
{
	return kind == HS_SIM_GET || kind == HS_SIM_GETRANGE || kind == HS_SIM_STRLEN ||
	       kind == HS_SIM_EXISTS || kind == HS_SIM_PTTL || kind == HS_SIM_TTL ||
	       kind == HS_SIM_NONE;
}

/* The key exists while the clock shows at most this ms. */
int64_t hs_sim_op_expires_first(const struct hs_sim_op *op)
{
	return op->asked_us / 1000 + op->ttl_ms;
}

int64_t hs_sim_op_expires_last(const struct hs_sim_op *op)
{
	return op->answered == HS_SIM_NEVER ? INT64_MAX : op->answered_us / 1000 + op->ttl_ms;
}

static int64_t length_of(int64_t value)
{
	char text[HS_SIM_VALUE_TEXT_MAX];

	return value == HS_SIM_NOTHING ? 0 : (int64_t)strlen(hs_sim_value_text(value, text));
}

/* Whether the answered time to live is possible between request and answer. */
static bool fits_time_left(const struct hs_sim_op *op, const struct hs_sim_state *state)
{
	bool seconds = op->kind == HS_SIM_TTL;
	int64_t least, most;

	if (state->value == HS_SIM_NOTHING || !state->expires)
		return op->answer == (state->value == HS_SIM_NOTHING ? -2 : -1);
	least = hs_sim_op_expires_first(state->expires) - op->answered_us / 1000;
	most = state->expires->ttl_ms;
	if (hs_sim_op_expires_last(state->expires) - op->asked_us / 1000 < most)
		most = hs_sim_op_expires_last(state->expires) - op->asked_us / 1000;
	least = least > 0 ? least : 0;
	return op->answer >= (seconds ? (least + 500) / 1000 : least) &&
	       op->answer <= (seconds ? (most + 500) / 1000 : most);
}

static void set(const struct hs_sim_op *op, struct hs_sim_state *state)
{
	state->value = op->argument;
	state->expires = op->ttl_ms > 0 ? op : NULL;
}

static void clear(struct hs_sim_state *state)
{
	*state = (struct hs_sim_state){.value = HS_SIM_NOTHING};
}

/* Returns the answer. */
static int64_t add(const struct hs_sim_op *op, struct hs_sim_state *state)
{
	int64_t value = state->value == HS_SIM_NOTHING ? 0 : state->value;
	int64_t sum;

	if (is_text(value))
		return HS_SIM_NOT_INTEGER;
	if (__builtin_add_overflow(value, op->argument, &sum))
		return HS_SIM_OVERFLOW;
	state->value = sum;
	return sum;
}

/* Returns the answer. */
static int64_t change(const struct hs_sim_op *op, struct hs_sim_state *state)
{
	int64_t before = state->value;
	bool there = before != HS_SIM_NOTHING;

	switch (op->kind) {
	case HS_SIM_GET:
	case HS_SIM_GETRANGE:
		return before;
	case HS_SIM_SET:
		set(op, state);
		return op->answer;
	case HS_SIM_GETSET:
		set(op, state);
		return before;
	case HS_SIM_SETNX:
	case HS_SIM_SETNXGET:
		if (!there)
			set(op, state);
		return op->kind == HS_SIM_SETNX ? !there : before;
	case HS_SIM_SETXX:
	case HS_SIM_SETXXGET:
		if (there)
			set(op, state);
		return op->kind == HS_SIM_SETXX ? there : before;
	case HS_SIM_DEL:
	case HS_SIM_GETDEL:
		clear(state);
		return op->kind == HS_SIM_DEL ? there : before;
	case HS_SIM_INCRBY:
		return add(op, state);
	case HS_SIM_STRLEN:
		return length_of(before);
	case HS_SIM_EXISTS:
		return there;
	case HS_SIM_PEXPIRE:
		state->expires = there ? op : NULL;
		return there;
	case HS_SIM_PERSIST:
		there = state->expires != NULL;
		state->expires = NULL;
		return there;
	case HS_SIM_CLEAR:
		clear(state);
		return op->answer;
	case HS_SIM_PTTL:
	case HS_SIM_TTL:
	case HS_SIM_NONE:
	case HS_SIM_KINDS:
		break;
	}
	return op->answer;
}

bool hs_sim_op_apply(const struct hs_sim_op *op, struct hs_sim_state *state)
{
	bool answered = op->answered != HS_SIM_NEVER;
	int64_t answer;

	if (op->kind == HS_SIM_PTTL || op->kind == HS_SIM_TTL)
		return !answered || fits_time_left(op, state);
	answer = change(op, state);
	return !answered || answer == op->answer;
}
