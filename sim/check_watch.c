/* Checks that a transaction which did not run, because its watched key had changed, is beside a write of that key. */
#include "base/err.h"
#include "sim/check.h"

#include <inttypes.h>

/* A write between the WATCH and the answer to its EXEC, or at an unknown time. */
static bool may_have_written(const struct hs_sim_op *op, const struct hs_sim_op *lost)
{
	return op->key == lost->key && !hs_sim_kind_reads(op->kind) && op->asked <= lost->lost &&
	       op->answered >= lost->watched;
}

/* The key's time to live may have ended. */
static bool may_expire(const struct hs_sim_op *op, const struct hs_sim_op *lost)
{
	return op->key == lost->key && op->ttl_ms > 0;
}

static bool has_reason(const struct hs_sim_history *history, const struct hs_sim_op *lost)
{
	for (size_t i = 0; i < history->count; i++) {
		if (may_have_written(&history->ops[i], lost) || may_expire(&history->ops[i], lost))
			return true;
	}
	return false;
}

int hs_sim_check_watch(const struct hs_sim_history *history, struct hs_sim_verdict *verdict)
{
	for (size_t i = 0; i < history->count; i++) {
		const struct hs_sim_op *op = &history->ops[i];

		if (op->lost == 0 || has_reason(history, op))
			continue;
		hs_sim_verdict_set(verdict, 2,
				   "client %u watched key%u from %" PRIu64
				   " and lost its EXEC at %" PRIu64 ", but nobody wrote the key",
				   op->client, op->key, op->watched, op->lost);
		return HS_EINVAL;
	}
	return 0;
}
