/* Shared by all engines: the table of counters, and running the commands of a transaction. */
#include "engine/engine.h"

const struct hs_counter_table hs_engine_counters = HS_COUNTER_TABLE(HS_ENGINE_COUNTERS);

void hs_engine_stats_add(struct hs_engine_stats *stats, const void *counters)
{
	hs_counters_sum(&hs_engine_counters, counters, stats);
}

int hs_engine_run_exec(struct hs_keyspace *ks, const struct hs_op *op, struct hs_reply *reply)
{
	int rc = 0;

	hs_reply_array(reply, op->tx->count);
	for (size_t i = 0; i < op->tx->count && rc == 0 && !reply->over; i++) {
		struct hs_op_tx_command *command = &op->tx->commands[i];
		struct hs_keyspace_counts before = *ks->counts;

		if (command->answered.len > 0) {
			hs_buf_append_bytes(op->out, command->answered);
			continue;
		}
		ks->frequency = command->frequency;
		rc = hs_keyspace_run(ks, command->command, op->slot, command->argc, command->argv,
				     reply);
		command->missed = rc == 0 && hs_keyspace_missed(&before, ks->counts);
	}
	return rc;
}
