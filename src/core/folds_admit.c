/* Who may join the queue of a hot key, who goes straight, and who has to wait with its input: see the
 * head of folds.c for why. */
#include "core/folds.h"

enum {
	BEHIND_MAX = 8,	  /* others under way: with more the request is not folded */
	DEEP_BYTES = 128, /* more input than that: its client does not wait for single answers */
	UNFOLDED = 64,	  /* so many of such a client go straight when it was held up */
};

/* The session has something under way for the key, and nobody else has, nor waits. */
static bool has_for_itself(const struct hs_session *session, const struct hs_queue *queue)
{
	return queue->alone == session->id && queue->waiting == 0;
}

/* The position of the only key of a request; 0: it has none, or several. */
static size_t only_key(const struct hs_command *command, size_t argc, const struct hs_bytes *argv)
{
	size_t at = hs_keys_only(command, argc);
	struct hs_key_walk walk;

	if (at > 0)
		return at;
	hs_keys_begin(&walk, command, argc, argv);
	at = hs_keys_next(&walk);
	return at > 0 && hs_keys_next(&walk) == 0 ? at : 0;
}

/* The queue for a command on a slot, if its key has one and it can be folded. */
static struct hs_queue *queue_for(struct hs_core *core, struct hs_session *session,
				  const struct hs_command *command, uint16_t slot, size_t argc,
				  const struct hs_bytes *argv)
{
	struct hs_fold_ask ask = {
		.command = command, .argv = argv, .argc = argc, .resp = session->resp};
	struct hs_queue *queue = core->folds->buckets[slot % HS_FOLDS_BUCKETS];
	size_t at;

	if (!queue || !core->options.fold)
		return NULL;
	at = only_key(command, argc, argv);
	queue = at > 0 ? hs_folds_find(core, slot, argv[at]) : NULL;
	if (queue && queue->resting > 0) {
		queue->resting--;
		return NULL;
	}
	if (!queue || hs_fold_classify(&ask) == HS_FOLD_NOT)
		return NULL;
	/* Who made a change matters to a client that does not want to hear of its own (NOLOOP). */
	if (session->tracker && (command->flags & HS_CMD_WRITE))
		return NULL;
	if (session->unfolded > 0) {
		session->unfolded--;
		return NULL;
	}
	if (queue->reads_apart > 0 && (command->flags & HS_CMD_READONLY)) {
		queue->reads_apart--;
		return NULL;
	}
	return queue;
}

/* A write that goes past the queues may leave a number anywhere: that it was far from the limits when
 * last seen says nothing any more. */
static void note_write(const struct hs_core *core, const struct hs_command *command, int slot_state,
		       uint16_t slot, size_t argc, const struct hs_bytes *argv)
{
	struct hs_fold_ask ask = {.command = command, .argv = argv, .argc = argc};
	const struct hs_folds *folds = core->folds;
	const struct hs_queue *only = NULL;
	size_t at;

	if (slot_state == 0 && !folds->buckets[slot % HS_FOLDS_BUCKETS])
		return;
	if ((command->flags & HS_CMD_READONLY) ||
	    (command->place == HS_PLACE_CORE && command->id != HS_CMD_ID_EXEC))
		return;
	if (hs_fold_classify(&ask) == HS_FOLD_ADD && hs_fold_is_simple(&ask))
		return; /* not far */
	at = slot_state == 0 ? only_key(command, argc, argv) : 0;
	if (at > 0)
		only = hs_folds_find(core, slot, argv[at]);
	if (at > 0 && !only)
		return;
	for (struct hs_link *link = folds->queues.next; link != &folds->queues; link = link->next) {
		struct hs_queue *queue = hs_list_entry(link, struct hs_queue, link);

		if (only ? queue == only : slot_state != 0 || queue->slot == slot)
			queue->fold.roomy = false;
	}
}

/* Sends what the session has waiting in a queue where nobody else is. */
static bool release_own(struct hs_core *core, const struct hs_folding *chain)
{
	if (!chain->queue || chain->waiting < chain->joined || chain->queue->under_way > 0 ||
	    chain->queue->waiting > chain->joined)
		return false;
	hs_folds_release(core, chain->queue);
	return true;
}

/* Whether a command must wait for what its session has in its chains. */
static bool overtakes(struct hs_core *core, const struct hs_session *session,
		      const struct hs_command *command, int slot_state, uint16_t slot,
		      const struct hs_queue *queue)
{
	bool anywhere = slot_state != 0; /* no key, or several; a transaction's are not told here */
	uint32_t lane = hs_core_partition(core, slot) % HS_LANES;

	switch (command->place) {
	case HS_PLACE_CORE:
		if (command->id != HS_CMD_ID_EXEC)
			return false;
		break;
	case HS_PLACE_HOST:
	case HS_PLACE_WORKERS:
		return false;
	default:
		break;
	}
	for (uint32_t i = 0; i < HS_LANES; i++) {
		const struct hs_folding *chain = &session->folding[i];

		if (chain->joined == 0)
			continue;
		if (!anywhere && i == lane && hs_chain_takes(chain, command, queue))
			continue;
		/* Of another lane, unless the slot has moved: not both at a time. */
		if (!anywhere && i != lane && !(chain->slots >> slot % 64 & 1))
			continue;
		if (!release_own(core, chain))
			return true;
	}
	return false;
}

static bool admit(struct hs_core *core, struct hs_session *session,
		  const struct hs_command *command, int slot_state, uint16_t slot, size_t argc,
		  const struct hs_bytes *argv, struct hs_queue **queue)
{
	uint32_t lane, others;

	*queue = NULL;
	/* What stands in line may be under way when its keys have cooled. */
	if (core->folds->count == 0 && session->folded == 0)
		return true;
	if (slot_state == 0)
		*queue = queue_for(core, session, command, slot, argc, argv);
	if (session->folded > 0 && overtakes(core, session, command, slot_state, slot, *queue))
		return false;
	if (!*queue) {
		note_write(core, command, slot_state, slot, argc, argv);
		return true;
	}
	lane = hs_core_partition(core, slot) % HS_LANES;
	others = hs_folds_others(session, lane);
	/* In the middle of a chain it may as well wait in a queue. */
	if (others < session->lane[lane] || others == 0)
		return true;
	if (others >= BEHIND_MAX || has_for_itself(session, *queue)) {
		note_write(core, command, slot_state, slot, argc, argv);
		*queue = NULL;
	}
	return true;
}

bool hs_folds_admit(struct hs_core *core, struct hs_session *session,
		    const struct hs_command *command, int slot_state, uint16_t slot, size_t argc,
		    const struct hs_bytes *argv, struct hs_queue **queue)
{
	if (admit(core, session, command, slot_state, slot, argc, argv, queue))
		return true;
	if (session->behind > DEEP_BYTES)
		session->unfolded = UNFOLDED;
	return false;
}
