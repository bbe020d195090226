#include "sim/executions.h"

#include "base/err.h"
#include "base/hash.h"
#include "base/mem.h"
#include "core/core.h"
#include "sim/cluster.h"
#include "sim/network.h"

#include <inttypes.h>
#include <stdlib.h>

struct noting {
	struct hs_sim_executions *executions;
	const struct hs_op *op;
	uint16_t where;
};

void hs_sim_executions_deinit(struct hs_sim_executions *executions)
{
	hs_mem_free(&executions->all);
}

static void note(void *context, uint64_t client, uint64_t number)
{
	struct noting *noting = context;
	struct hs_sim_executions *executions = noting->executions;

	if (client == 0)
		return; /* an internal request of a core: it needs no order */
	if (executions->count == executions->cap) {
		executions->cap = executions->cap ? 2 * executions->cap : 64;
		executions->all =
			hs_mem_realloc(executions->all, executions->cap * sizeof *executions->all);
	}
	executions->all[executions->count++] = (struct hs_sim_execution){
		.client = client,
		.number = number,
		.at = noting->op->engine_order,
		.partition = noting->where,
	};
}

static struct hs_bytes reply_of(const struct hs_op *op)
{
	return op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
}

void hs_sim_executions_note(struct hs_sim_executions *executions, const struct hs_core *core,
			    const struct hs_op *op, uint16_t where)
{
	struct hs_bytes reply = reply_of(op);
	struct noting noting = {executions, op, where};

	if ((op->kind != HS_OP_COMMAND && op->kind != HS_OP_EXEC) || reply.len == 0 ||
	    reply.data[0] == '-' || op->engine_order == 0)
		return;
	hs_core_members(core, op, note, &noting);
}

/* --- of servers --- */

/* Each command of a transaction is hashed alone, without its reply. */
static uint64_t hash_of(size_t argc, const struct hs_bytes *argv, const struct hs_bytes *reply)
{
	uint64_t hash = reply ? hs_hash(*reply, argc) : ~(uint64_t)argc;

	for (size_t i = 0; i < argc; i++)
		hash = hs_hash(argv[i], hash);
	return hash;
}

void hs_sim_executions_ran(struct hs_sim_executions *executions, const struct hs_sim_ran *ran)
{
	executions->ran++;
	if (ran->io && (ran->in_exec || !ran->error))
		hs_sim_connection_ran(
			ran->io, hash_of(ran->argc, ran->argv, ran->in_exec ? NULL : &ran->reply),
			executions->ran);
}

/* The place of the transaction's first command. The others are asked for, too, so that no later command finds
 * them. */
static uint64_t find_exec(struct hs_sim_connection *connection, const struct hs_op_tx *tx)
{
	uint64_t first = 0, at;

	for (size_t i = 0; i < tx->count; i++) {
		const struct hs_op_tx_command *command = &tx->commands[i];

		if (command->answered.len > 0)
			continue;
		at = hs_sim_connection_ran_at(connection,
					      hash_of(command->argc, command->argv, NULL));
		first = first ? first : at;
	}
	return first;
}

void hs_sim_executions_find(struct hs_sim_connection *connection, struct hs_op *op)
{
	struct hs_bytes reply = reply_of(op);

	op->engine_order = 0;
	if (!connection || op->track || op->replica_since_us > 0)
		return;
	if (op->kind == HS_OP_EXEC)
		op->engine_order = find_exec(connection, op->tx);
	else if (op->kind == HS_OP_COMMAND)
		op->engine_order =
			hs_sim_connection_ran_at(connection, hash_of(op->argc, op->argv, &reply));
}

/* --- the check --- */

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_request(const void *left, const void *right)
{
	const struct hs_sim_execution *a = left, *b = right;

	if (a->client != b->client)
		return compare(a->client, b->client);
	if (a->partition != b->partition)
		return compare(a->partition, b->partition);
	return a->number != b->number ? compare(a->number, b->number) : compare(a->at, b->at);
}

static bool is_same_request(const struct hs_sim_execution *a, const struct hs_sim_execution *b)
{
	return a->client == b->client && a->partition == b->partition && a->number == b->number;
}

int hs_sim_check_executions(struct hs_sim_executions *executions, struct hs_sim_verdict *verdict)
{
	const struct hs_sim_execution *before = NULL;

	if (executions->count > 0)
		qsort(executions->all, executions->count, sizeof *executions->all, by_request);
	for (size_t i = 0; i < executions->count; i++) {
		const struct hs_sim_execution *run = &executions->all[i];

		if (i + 1 < executions->count && is_same_request(run, run + 1))
			continue;
		if (before && before->client == run->client &&
		    before->partition == run->partition && before->at > run->at) {
			hs_sim_verdict_set(verdict, 2,
					   "request %" PRIu64 " of connection %" PRIu64
					   " ran in partition (or slot, or key + 32768) %u before "
					   "its earlier request %" PRIu64,
					   run->number, run->client, run->partition,
					   before->number);
			return HS_EINVAL;
		}
		before = run;
	}
	return 0;
}
