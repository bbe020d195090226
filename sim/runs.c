#include "sim/runs.h"

#include "base/err.h"
#include "base/mem.h"
#include "core/core.h"

#include <inttypes.h>
#include <stdlib.h>

struct noting {
	struct hs_sim_runs *runs;
	const struct hs_op *op;
};

void hs_sim_runs_deinit(struct hs_sim_runs *runs)
{
	hs_mem_free(&runs->all);
}

static void note(void *context, uint64_t client, uint64_t number)
{
	struct noting *noting = context;
	struct hs_sim_runs *runs = noting->runs;

	if (client == 0)
		return; /* a core's own, which need no order */
	if (runs->count == runs->cap) {
		runs->cap = runs->cap ? 2 * runs->cap : 64;
		runs->all = hs_mem_realloc(runs->all, runs->cap * sizeof *runs->all);
	}
	runs->all[runs->count++] = (struct hs_sim_run){
		.client = client,
		.number = number,
		.at = noting->op->engine_order,
		.partition = noting->op->partition,
	};
}

void hs_sim_runs_note(struct hs_sim_runs *runs, const struct hs_core *core, const struct hs_op *op)
{
	struct hs_bytes reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	struct noting noting = {runs, op};

	if ((op->kind != HS_OP_COMMAND && op->kind != HS_OP_EXEC) || reply.len == 0 ||
	    reply.data[0] == '-')
		return;
	hs_core_askers(core, op, note, &noting);
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_request(const void *left, const void *right)
{
	const struct hs_sim_run *a = left, *b = right;

	if (a->client != b->client)
		return compare(a->client, b->client);
	if (a->partition != b->partition)
		return compare(a->partition, b->partition);
	return a->number != b->number ? compare(a->number, b->number) : compare(a->at, b->at);
}

static bool is_same_request(const struct hs_sim_run *a, const struct hs_sim_run *b)
{
	return a->client == b->client && a->partition == b->partition && a->number == b->number;
}

int hs_sim_check_runs(struct hs_sim_runs *runs, struct hs_sim_verdict *verdict)
{
	const struct hs_sim_run *before = NULL;

	if (runs->count > 0)
		qsort(runs->all, runs->count, sizeof *runs->all, by_request);
	for (size_t i = 0; i < runs->count; i++) {
		const struct hs_sim_run *run = &runs->all[i];

		if (i + 1 < runs->count && is_same_request(run, run + 1))
			continue;
		if (before && before->client == run->client &&
		    before->partition == run->partition && before->at > run->at) {
			hs_sim_verdict_set(verdict, 2,
					   "request %" PRIu64 " of connection %" PRIu64
					   " ran in partition %u before its request %" PRIu64,
					   run->number, run->client, run->partition,
					   before->number);
			return HS_EINVAL;
		}
		before = run;
	}
	return 0;
}
