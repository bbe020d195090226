/* What an engine tells, on its way to the cores. */
#include "sim/world_internal.h"

#include "base/mem.h"

/* --- mistakes --- */

void hs_sim_news_note_read(struct hs_sim_world *world, struct hs_op *op)
{
	if (world->options.engine.mistake != HS_SIM_READ_REMEMBERED_LATE ||
	    op->kind != HS_OP_COMMAND || !(op->command->flags & HS_CMD_READONLY))
		return;
	if (world->reads_count == world->reads_cap) {
		world->reads_cap = world->reads_cap ? 2 * world->reads_cap : 16;
		world->reads =
			hs_mem_realloc(world->reads, world->reads_cap * sizeof(struct hs_op *));
	}
	world->reads[world->reads_count++] = op;
}

void hs_sim_news_forget_read(struct hs_sim_world *world, const struct hs_op *op)
{
	for (size_t i = 0; i < world->reads_count; i++) {
		if (world->reads[i] == op)
			world->reads[i--] = world->reads[--world->reads_count];
	}
}

static bool is_being_read(const struct hs_sim_world *world, uint32_t worker, struct hs_bytes key)
{
	for (size_t i = 0; i < world->reads_count; i++) {
		const struct hs_op *op = world->reads[i];

		for (size_t j = 1; op->worker == worker && j < op->argc; j++) {
			if (hs_bytes_equal(op->argv[j], key))
				return true;
		}
	}
	return false;
}

/* What a core hears that remembers keys when their replies come. */
static void tell_late(struct hs_sim_world *world, uint32_t worker, const struct hs_news *news)
{
	struct hs_bytes *keys = hs_mem_alloc((news->keys_count + 1) * sizeof *keys);
	struct hs_news less = {.kind = news->kind, .keys = keys};

	for (uint32_t i = 0; i < news->keys_count; i++) {
		if (!is_being_read(world, worker, news->keys[i]))
			keys[less.keys_count++] = news->keys[i];
	}
	hs_core_news(world->workers[worker].core, world->now, &less);
	hs_mem_free(&keys);
}

/* --- the way --- */

static void hand_over_news(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct hs_news *news = target;
	uint32_t worker = (uint32_t)number;

	if (world->options.engine.mistake == HS_SIM_READ_REMEMBERED_LATE)
		tell_late(world, worker, news);
	else
		hs_core_news(world->workers[worker].core, world->now, news);
	hs_news_unref(&news);
	hs_sim_after_core(world, worker);
}

void hs_sim_news_tell(void *context, struct hs_news *news)
{
	struct hs_sim_world *world = context;

	for (uint32_t i = 0; i < world->options.workers; i++) {
		struct hs_sim_worker *worker = &world->workers[i];
		uint64_t at_us = world->now.mono_us;

		if (world->options.news_us_max > 0)
			at_us += hs_prng_below(&world->prng, world->options.news_us_max + 1);
		if (at_us < worker->news_us)
			at_us = worker->news_us;
		worker->news_us = at_us;
		hs_news_ref(news, 1);
		hs_sim_events_plan(&world->events, (struct hs_sim_event){.at_us = at_us,
									 .run = hand_over_news,
									 .context = world,
									 .target = news,
									 .number = i});
	}
	hs_news_unref(&news);
}
