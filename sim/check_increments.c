/* Law 4 for counters: no increment is lost, and none is counted twice. */
#include "sim/check.h"

#include "base/err.h"
#include "base/mem.h"

#include <inttypes.h>

/* Counts the increments of a key; *acknowledged counts those that were answered. */
static int64_t count(const struct hs_sim_history *history, uint32_t key, int64_t *acknowledged)
{
	int64_t all = 0;

	*acknowledged = 0;
	for (size_t i = 0; i < history->count; i++) {
		const struct hs_sim_op *op = &history->ops[i];

		if (op->key != key || op->kind != HS_SIM_INCRBY)
			continue;
		hs_check(op->argument == 1);
		all++;
		*acknowledged += op->answered != HS_SIM_NEVER;
	}
	return all;
}

/* Every acknowledged increment was answered with a number from 1 to `all`; each number once, if no write was lost. */
static int check_answers(const struct hs_sim_history *history, uint32_t key, int64_t all, bool lost,
			 struct hs_sim_verdict *verdict)
{
	bool *seen = hs_mem_zalloc((size_t)all + 1);
	int err = 0;

	for (size_t i = 0; i < history->count && err == 0; i++) {
		const struct hs_sim_op *op = &history->ops[i];

		if (op->key != key || op->kind != HS_SIM_INCRBY || op->answered == HS_SIM_NEVER)
			continue;
		if (op->answer < 1 || op->answer > all || (seen[op->answer] && !lost)) {
			hs_sim_verdict_set(
				verdict, 4,
				"an increment of key%u was answered with %" PRId64 ", which %s",
				key, op->answer,
				op->answer < 1 || op->answer > all ? "is impossible"
								   : "was answered before");
			err = HS_EINVAL;
		} else {
			seen[op->answer] = true;
		}
	}
	hs_mem_free(&seen);
	return err;
}

int hs_sim_check_increments(const struct hs_sim_history *history, uint32_t key, int64_t final,
			    bool lost, struct hs_sim_verdict *verdict)
{
	int64_t acknowledged;
	int64_t all = count(history, key, &acknowledged);
	int64_t value = final == HS_SIM_NOTHING ? 0 : final;

	if ((value < acknowledged && !lost) || value > all) {
		hs_sim_verdict_set(verdict, 4,
				   "key%u is %" PRId64 " in the end, but %" PRId64
				   " increments were acknowledged and %" PRId64
				   " have unknown outcomes",
				   key, value, acknowledged, all - acknowledged);
		return HS_EINVAL;
	}
	return check_answers(history, key, all, lost, verdict);
}
