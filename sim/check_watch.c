/* Checks that every transaction which failed because of its WATCH was concurrent with a write of the watched key. */
#include "base/err.h"
#include "sim/check.h"

#include <inttypes.h>

/* Whether the operation may have written the key between WATCH and the answer to EXEC. */
static bool may_have_written(const struct hs_sim_op *op, const struct hs_sim_op *lost)
{
	return op->key == lost->key && !hs_sim_kind_reads(op->kind) && op->asked <= lost->lost &&
	       op->answered >= lost->watched;
}

/* Whether the key may have expired. */
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
				   " and lost its EXEC at %" PRIu64 ", but no client wrote the key",
				   op->client, op->key, op->watched, op->lost);
		return HS_EINVAL;
	}
	return 0;
}
