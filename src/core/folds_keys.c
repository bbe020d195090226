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
	struct hs_queue **at = &core->folds->buckets[queue->slot % HS_FOLDS_BUCKETS];

	while (*at != queue)
		at = &(*at)->next;
	*at = queue->next;
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
	struct hs_queue *queue = core->folds->buckets[slot % HS_FOLDS_BUCKETS];

	while (queue && (queue->slot != slot ||
			 !hs_bytes_equal((struct hs_bytes){queue->key, queue->key_len}, key)))
		queue = queue->next;
	return queue;
}

static void add_queue(struct hs_core *core, uint16_t slot, struct hs_bytes key)
{
	struct hs_folds *folds = core->folds;
	struct hs_queue *queue;

	if (folds->count == HS_FOLD_KEYS_MAX || key.len > HS_FOLD_KEY_BYTES_MAX)
		return;
	queue = hs_mem_zalloc(sizeof *queue + key.len);
	hs_fold_init(&queue->fold);
	hs_list_init(&queue->ready);
	hs_list_init(&queue->later);
	hs_list_init(&queue->left);
	queue->slot = slot;
	queue->hot_us = core->now.mono_us;
	queue->key_len = key.len;
	memcpy(queue->key, key.data, key.len);
	queue->next = folds->buckets[slot % HS_FOLDS_BUCKETS];
	folds->buckets[slot % HS_FOLDS_BUCKETS] = queue;
	hs_list_append(&folds->queues, &queue->link);
	hs_counter_set(&core->stats.fold_keys, ++folds->count);
}

void hs_folds_heat(struct hs_core *core, const struct hs_heat_access *access,
		   struct hs_heat_warmth warmth)
{
	const struct hs_core_hot *hot = &core->world.hot;
	struct hs_queue *queue;

	if (warmth.share < hot->share_least || warmth.requests < hot->requests ||
	    !core->options.fold)
		return;
	queue = hs_folds_find(core, access->slot, access->key);
	if (queue)
		queue->hot_us = core->now.mono_us;
	else if (warmth.share >= hot->share)
		add_queue(core, access->slot, access->key);
}

void hs_folds_tick(struct hs_core *core)
{
	struct hs_link *link, *next;

	for (link = core->folds->queues.next; link != &core->folds->queues; link = next) {
		struct hs_queue *queue = hs_list_entry(link, struct hs_queue, link);
		bool cool = core->now.mono_us - queue->hot_us > core->world.hot.cool_us;

		next = link->next;
		if (queue->under_way == 0 && queue->waiting == 0 && queue->coming == 0 &&
		    (cool || !core->options.fold))
			remove_queue(core, queue);
	}
}

void hs_folds_plan(const struct hs_core *core, struct hs_reply *reply)
{
	const struct hs_link *queues = &core->folds->queues;

	for (const struct hs_link *link = queues->next; link != queues; link = link->next) {
		const struct hs_queue *queue = hs_list_entry(link, struct hs_queue, link);
		uint16_t partition = hs_core_partition(core, queue->slot);
		struct hs_plan_number waiting = {"waiting", queue->waiting};
		struct hs_plan_row row = {
			.what = "fold",
			.state = queue->resting > 0 ? "resting" : "folding",
			.why = queue->resting > 0 ? "too few of its requests come together" : NULL,
			.key = {queue->key, queue->key_len},
			.places = &partition,
			.places_count = 1,
			.numbers = &waiting,
			.numbers_count = 1,
		};

		hs_plan_row(core, reply, &row);
	}
}
