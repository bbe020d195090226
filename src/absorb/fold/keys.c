/* Which keys are folded. hs_fold_hot makes a queue for a hot key when the engine did not answer a request for the
 * key at once (`waited`). hs_fold_cool removes the queue when the key has cooled down, or folding is off, and no
 * request is waiting, behind or in flight for the queue. */
#include "absorb/fold/stage.h"

#include "base/mem.h"
#include "core/report.h"

void hs_fold_want(struct hs_fold_stage *stage)
{
	bool wanted = stage->count > 0 || stage->taken > 0 || stage->relabelled > 0;

	hs_stage_want(stage->core, stage->index, HS_POINT_ADMIT, wanted);
	hs_stage_want(stage->core, stage->index, HS_POINT_DEPART, wanted);
}

static void set_count(struct hs_fold_stage *stage, uint32_t count)
{
	stage->count = count;
	hs_counter_set(&stage->stats.keys, count);
	hs_fold_want(stage);
}

static void remove_queue(struct hs_fold_stage *stage, struct hs_fold_queue *queue)
{
	if (stage->admitted == queue)
		stage->admitted = NULL;
	queue->hot->state[stage->index] = NULL;
	hs_list_remove(&queue->link);
	hs_list_remove(&queue->ready);
	hs_mem_free(&queue);
	set_count(stage, stage->count - 1);
}

struct hs_fold_queue *hs_fold_find(const struct hs_fold_stage *stage, struct hs_call *call,
				   size_t at)
{
	const struct hs_hot *hot = hs_hot_of_call(&stage->core->hot_table, call, at);

	return hot ? hot->state[stage->index] : NULL;
}

void hs_fold_hot(void *self, struct hs_hot *hot, bool waited)
{
	struct hs_fold_stage *stage = self;
	struct hs_fold_queue *queue;

	if (!waited || hot->state[stage->index] || !stage->core->options.fold ||
	    hot->key_len > HS_FOLD_KEY_BYTES_MAX)
		return;
	queue = hs_mem_zalloc(sizeof *queue);
	hs_fold_init(&queue->fold);
	hs_list_init(&queue->ready);
	hs_list_init(&queue->deferred);
	hs_list_init(&queue->remaining);
	queue->hot = hot;
	hot->state[stage->index] = queue;
	hs_list_append(&stage->queues, &queue->link);
	set_count(stage, stage->count + 1);
}

void hs_fold_cool(void *self, struct hs_hot *hot, bool cool)
{
	struct hs_fold_stage *stage = self;
	struct hs_fold_queue *queue = hot->state[stage->index];

	if (queue && queue->in_flight == 0 && queue->waiting == 0 && queue->behind == 0 &&
	    (cool || !stage->core->options.fold))
		remove_queue(stage, queue);
}

void hs_fold_report(void *self, struct hs_reply *reply)
{
	const struct hs_fold_stage *stage = self;

	hs_list_each(const struct hs_fold_queue, queue, &stage->queues, link) {
		uint16_t partition = hs_core_partition(stage->core, queue->hot->slot);
		struct hs_plan_number waiting = {"waiting", queue->waiting};
		struct hs_plan_row row = {
			.mitigation = "fold",
			.state = queue->bypass > 0 ? "paused" : "folding",
			.why = queue->bypass > 0 ? "too few of its requests arrive together" : NULL,
			.key = hs_hot_key(queue->hot),
			.since_us = queue->hot->since_us,
			.places = &partition,
			.places_count = 1,
			.numbers = &waiting,
			.numbers_count = 1,
		};

		hs_plan_row(stage->core, reply, &row);
	}
}
