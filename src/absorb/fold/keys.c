/* Which keys are folded: those whose heat says so, until they have cooled. */
#include "absorb/fold/stage.h"

#include "base/mem.h"
#include "core/report.h"

void hs_folds_want(struct hs_folds *folds)
{
	bool wanted = folds->count > 0 || folds->taken > 0;

	hs_stage_want(folds->core, folds->index, HS_POINT_ADMIT, wanted);
	hs_stage_want(folds->core, folds->index, HS_POINT_DEPART, wanted);
}

static void set_count(struct hs_folds *folds, uint32_t count)
{
	folds->count = count;
	hs_counter_set(&folds->core->stats.fold_keys, count);
	hs_folds_want(folds);
}

static void remove_queue(struct hs_folds *folds, struct hs_queue *queue)
{
	if (folds->admitted == queue)
		folds->admitted = NULL;
	queue->hot->state[folds->index] = NULL;
	hs_list_remove(&queue->link);
	hs_list_remove(&queue->ready);
	hs_mem_free(&queue);
	set_count(folds, folds->count - 1);
}

struct hs_queue *hs_folds_find(const struct hs_folds *folds, uint16_t slot, struct hs_bytes key)
{
	const struct hs_hot *hot = hs_hot_find(&folds->core->hots, slot, key);

	return hot ? hot->state[folds->index] : NULL;
}

void hs_folds_hot(void *self, struct hs_hot *hot, bool waited)
{
	struct hs_folds *folds = self;
	struct hs_queue *queue;

	if (!waited || hot->state[folds->index] || !folds->core->options.fold ||
	    hot->key_len > HS_FOLD_KEY_BYTES_MAX)
		return;
	queue = hs_mem_zalloc(sizeof *queue);
	hs_fold_init(&queue->fold);
	hs_list_init(&queue->ready);
	hs_list_init(&queue->later);
	hs_list_init(&queue->left);
	queue->hot = hot;
	hot->state[folds->index] = queue;
	hs_list_append(&folds->queues, &queue->link);
	set_count(folds, folds->count + 1);
}

void hs_folds_cool(void *self, struct hs_hot *hot, bool cool)
{
	struct hs_folds *folds = self;
	struct hs_queue *queue = hot->state[folds->index];

	if (queue && queue->under_way == 0 && queue->waiting == 0 && queue->coming == 0 &&
	    (cool || !folds->core->options.fold))
		remove_queue(folds, queue);
}

void hs_folds_report(void *self, struct hs_reply *reply)
{
	const struct hs_folds *folds = self;
	const struct hs_link *queues = &folds->queues;

	for (const struct hs_link *link = queues->next; link != queues; link = link->next) {
		const struct hs_queue *queue = hs_list_entry(link, struct hs_queue, link);
		uint16_t partition = hs_core_partition(folds->core, queue->hot->slot);
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

		hs_plan_row(folds->core, reply, &row);
	}
}
