/* Which keys are folded: those whose heat says so, until they have cooled. */
#include "core/folds.h"

#include "base/mem.h"
#include "core/plan.h"

struct hs_folds *hs_folds_create(void)
{
	struct hs_folds *folds = hs_mem_zalloc(sizeof *folds);

	hs_list_init(&folds->queues);
	hs_list_init(&folds->ready);
	hs_list_init(&folds->left);
	hs_list_init(&folds->moving);
	hs_list_init(&folds->resuming);
	folds->round = 1;
	return folds;
}

static void remove_queue(struct hs_core *core, struct hs_queue *queue)
{
	queue->hot->state[HS_HOT_FOLD] = NULL;
	hs_list_remove(&queue->link);
	hs_list_remove(&queue->ready);
	hs_mem_free(&queue);
	hs_counter_set(&core->stats.fold_keys, --core->folds->count);
}

void hs_folds_destroy(struct hs_core *core)
{
	struct hs_folds *folds = core->folds;

	while (!hs_list_empty(&folds->queues))
		remove_queue(core, hs_list_entry(folds->queues.next, struct hs_queue, link));
	hs_buf_deinit(&folds->scratch);
	hs_mem_free(&core->folds);
}

struct hs_queue *hs_folds_find(const struct hs_core *core, uint16_t slot, struct hs_bytes key)
{
	const struct hs_hot *hot = hs_hot_find(&core->hots, slot, key);

	return hot ? hot->state[HS_HOT_FOLD] : NULL;
}

void hs_folds_hot(struct hs_core *core, struct hs_hot *hot)
{
	struct hs_queue *queue;

	if (hot->state[HS_HOT_FOLD] || !core->options.fold || hot->key_len > HS_FOLD_KEY_BYTES_MAX)
		return;
	queue = hs_mem_zalloc(sizeof *queue);
	hs_fold_init(&queue->fold);
	hs_list_init(&queue->ready);
	hs_list_init(&queue->later);
	hs_list_init(&queue->left);
	queue->hot = hot;
	hot->state[HS_HOT_FOLD] = queue;
	hs_list_append(&core->folds->queues, &queue->link);
	hs_counter_set(&core->stats.fold_keys, ++core->folds->count);
}

void hs_folds_cool(struct hs_core *core, struct hs_hot *hot, bool cool)
{
	struct hs_queue *queue = hot->state[HS_HOT_FOLD];

	if (queue && queue->under_way == 0 && queue->waiting == 0 && queue->coming == 0 &&
	    (cool || !core->options.fold))
		remove_queue(core, queue);
}

void hs_folds_plan(const struct hs_core *core, struct hs_reply *reply)
{
	const struct hs_link *queues = &core->folds->queues;

	for (const struct hs_link *link = queues->next; link != queues; link = link->next) {
		const struct hs_queue *queue = hs_list_entry(link, struct hs_queue, link);
		uint16_t partition = hs_core_partition(core, queue->hot->slot);
		struct hs_plan_number waiting = {"waiting", queue->waiting};
		struct hs_plan_row row = {
			.what = "fold",
			.state = queue->resting > 0 ? "resting" : "folding",
			.why = queue->resting > 0 ? "too few of its requests come together" : NULL,
			.key = hs_hot_key(queue->hot),
			.places = &partition,
			.places_count = 1,
			.numbers = &waiting,
			.numbers_count = 1,
		};

		hs_plan_row(core, reply, &row);
	}
}
