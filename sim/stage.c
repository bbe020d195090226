#include "sim/stage.h"

#include "absorb/versions.h"
#include "base/mem.h"
#include "base/prng.h"
#include "sim/world_internal.h"
#include "stages/stages.h"

enum {
	HOLDS_ONE_IN = 6,
	TAKES_ONE_IN = 4,
	TURNS_ONE_IN = 3,
	STAGE_SEED = 0x57a6e,
};

struct stage {
	struct hs_core *core;
	uint32_t index;
	size_t request_at;
	struct hs_prng prng;
	bool on;
	/* HS_SIM_STAGE_FORGETS: a client has disconnected, and flush sends again. */
	bool remembers;
	enum hs_sim_bug bug;
	struct hs_link taken; /* requests, oldest first */
};

struct taken {
	struct hs_request *request;
	struct hs_link link; /* in stage->taken */
};

static bool one_in(struct stage *stage, uint64_t number)
{
	return hs_prng_below(&stage->prng, number) == 0;
}

static void turn(struct stage *stage, bool on)
{
	stage->on = on;
	hs_stage_want(stage->core, stage->index, HS_POINT_ADMIT, on);
	hs_stage_want(stage->core, stage->index, HS_POINT_DEPART, on);
	if (on && !hs_list_empty(&stage->taken))
		hs_stage_want(stage->core, stage->index, HS_POINT_FLUSH, true);
}

static enum hs_stage_result admit(void *self, struct hs_session *session, struct hs_call *call)
{
	struct stage *stage = self;

	(void)call;
	return session->inflight > 0 && one_in(stage, HOLDS_ONE_IN) ? HS_HOLD : HS_PASS;
}

static void send_first(struct stage *stage)
{
	struct taken *taken = hs_list_entry(stage->taken.next, struct taken, link);

	hs_list_remove(&taken->link);
	hs_stage_send(stage->core, stage->index, taken->request, &taken->request->parts[0]);
}

static void send_all(struct stage *stage)
{
	while (!hs_list_empty(&stage->taken))
		send_first(stage);
}

/* A later request must not overtake one that was taken, whichever stage sends it: fold sends requests of several
 * sessions in an order that matters. */
static enum hs_stage_result depart(void *self, struct hs_request *request, struct hs_part *part)
{
	struct stage *stage = self;
	struct taken *taken = hs_stage_request(request, stage->request_at);
	bool may_take = request->parts_count == 1 && part->op.kind == HS_OP_COMMAND &&
			!hs_call_blocks(&request->call);

	if (!may_take) {
		send_all(stage);
		return HS_PASS;
	}
	if ((hs_list_empty(&stage->taken) || stage->bug == HS_SIM_STAGE_OVERTAKEN) &&
	    !one_in(stage, TAKES_ONE_IN))
		return HS_PASS;
	taken->request = request;
	hs_list_append(&stage->taken, &taken->link);
	hs_stage_delay(request, part);
	hs_stage_want(stage->core, stage->index, HS_POINT_FLUSH, true);
	return HS_TAKEN;
}

static void tick(void *self)
{
	struct stage *stage = self;

	if (!one_in(stage, TURNS_ONE_IN))
		return;
	if (stage->bug != HS_SIM_STAGE_FORGETS)
		send_all(stage); /* requests that depart while it is off would overtake these */
	turn(stage, !stage->on);
}

static void *create(struct hs_core *core, uint32_t index)
{
	const struct hs_sim_worker *worker = core->world.context;
	struct stage *stage = hs_mem_zalloc(sizeof *stage);

	stage->core = core;
	stage->index = index;
	stage->request_at = core->stages.request_at[index];
	hs_prng_init(&stage->prng, core->world.seed ^ STAGE_SEED);
	hs_list_init(&stage->taken);
	stage->bug = worker->world->options.engine.bug;
	turn(stage, true);
	return stage;
}

static void destroy(void *self)
{
	struct stage *stage = self;

	hs_check(hs_list_empty(&stage->taken) || stage->bug == HS_SIM_STAGE_FORGETS);
	hs_mem_free(&stage);
}

static void flush(void *self)
{
	struct stage *stage = self;

	if (stage->on || stage->bug != HS_SIM_STAGE_FORGETS || stage->remembers)
		send_all(stage);
}

/* With HS_SIM_STAGE_FORGETS: when the first client disconnects, the stage sends what it has taken, so that the world
 * can end. */
static void forget(void *self, struct hs_session *session)
{
	struct stage *stage = self;

	(void)session;
	stage->remembers = true;
	hs_stage_want(stage->core, stage->index, HS_POINT_FLUSH, true);
}

static const struct hs_stage random_stage = {
	.name = "random",
	.request_bytes = sizeof(struct taken),
	.create = create,
	.destroy = destroy,
	.admit = admit,
	.depart = depart,
	.flush = flush,
	.tick = tick,
	.forget = forget,
};

void hs_sim_stages(const struct hs_stage *stages[HS_STAGES_MAX + 1])
{
	uint32_t count = 0;

	for (const struct hs_stage *const *stage = hs_stages; *stage; stage++) {
		hs_check(count + 2 <= HS_STAGES_MAX);
		if (*stage == &hs_stage_versions)
			stages[count++] = &random_stage;
		stages[count++] = *stage;
	}
	stages[count] = NULL;
}
