#include "sim/history.h"

#include "base/mem.h"

#include <inttypes.h>

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

static void print_value(struct hs_buf *text, int64_t value)
{
	if (value == HS_SIM_NOTHING)
		hs_buf_printf(text, "nothing");
	else
		hs_buf_printf(text, "%" PRId64, value);
}

static void print_op(const struct hs_sim_op *op, struct hs_buf *text)
{
	static const struct {
		const char *name;
		bool has_argument;
		bool has_answer;
	} kinds[HS_SIM_KINDS] = {
		[HS_SIM_GET] = {"GET", false, true},	  [HS_SIM_SET] = {"SET", true, false},
		[HS_SIM_SETNX] = {"SETNX", true, true},	  [HS_SIM_GETSET] = {"GETSET", true, true},
		[HS_SIM_DEL] = {"DEL", false, true},	  [HS_SIM_GETDEL] = {"GETDEL", false, true},
		[HS_SIM_INCRBY] = {"INCRBY", true, true},
	};

	hs_buf_printf(text, "client %-2u %6" PRIu64 " … ", op->client, op->asked);
	if (op->answered == HS_SIM_NEVER)
		hs_buf_printf(text, "unknown  ");
	else
		hs_buf_printf(text, "%6" PRIu64 "   ", op->answered);
	hs_buf_printf(text, "%s key%u", kinds[op->kind].name, op->key);
	if (kinds[op->kind].has_argument)
		hs_buf_printf(text, " %" PRId64, op->argument);
	if (op->answered != HS_SIM_NEVER && kinds[op->kind].has_answer) {
		hs_buf_printf(text, " → ");
		print_value(text, op->answer);
	}
	if (op->more > 0)
		hs_buf_printf(text, "  (one with the next %u)", op->more);
	hs_buf_printf(text, "\n");
}

void hs_sim_history_print(const struct hs_sim_history *history, struct hs_buf *text)
{
	for (size_t i = 0; i < history->count; i++)
		print_op(&history->ops[i], text);
}

int64_t hs_sim_op_apply(const struct hs_sim_op *op, int64_t value, int64_t *answer)
{
	*answer = value;
	switch (op->kind) {
	case HS_SIM_GET:
		return value;
	case HS_SIM_SET:
		*answer = op->answer;
		return op->argument;
	case HS_SIM_SETNX:
		*answer = value == HS_SIM_NOTHING;
		return value == HS_SIM_NOTHING ? op->argument : value;
	case HS_SIM_GETSET:
		return op->argument;
	case HS_SIM_DEL:
		*answer = value != HS_SIM_NOTHING;
		return HS_SIM_NOTHING;
	case HS_SIM_GETDEL:
		return HS_SIM_NOTHING;
	case HS_SIM_INCRBY:
		*answer = (value == HS_SIM_NOTHING ? 0 : value) + op->argument;
		return *answer;
	case HS_SIM_KINDS:
		break;
	}
	return value;
}
