/* Delivers events (core/event.h) from an engine or a core to the workers of a heatsink, each after a delay of its
 * own, in the order in which they were sent. */
#include "sim/world_internal.h"

#include "base/mem.h"

/* --- a planted bug --- */

void hs_sim_core_events_note_read(struct hs_sim_world *world, struct hs_op *op)
{
	if (world->options.engine.bug != HS_SIM_READ_TRACKED_LATE || op->kind != HS_OP_COMMAND ||
	    !(op->command->flags & HS_CMD_READONLY))
		return;
	if (world->reads_count == world->reads_cap) {
		world->reads_cap = world->reads_cap ? 2 * world->reads_cap : 16;
		world->reads =
			hs_mem_realloc(world->reads, world->reads_cap * sizeof(struct hs_op *));
	}
	world->reads[world->reads_count++] = op;
}

void hs_sim_core_events_forget_read(struct hs_sim_world *world, const struct hs_op *op)
{
	for (size_t i = 0; i < world->reads_count; i++) {
		if (world->reads[i] == op)
			world->reads[i--] = world->reads[--world->reads_count];
	}
}

static bool is_being_read(const struct hs_sim_world *world, uint32_t worker, struct hs_bytes key)
{
	/* world->reads has no heatsink number: plans with HS_SIM_READ_TRACKED_LATE have one heatsink only. */
	for (size_t i = 0; i < world->reads_count; i++) {
		const struct hs_op *op = world->reads[i];

		for (size_t j = 1; op->worker == worker && j < op->argc; j++) {
			if (hs_bytes_equal(op->argv[j], key))
				return true;
		}
	}
	return false;
}

/* HS_SIM_READ_TRACKED_LATE: delivers an event without the keys that the worker is reading, as if the core tracked a
 * key only when its reply arrives. */
static void deliver_without_reads(struct hs_sim_world *world, uint32_t worker,
				  const struct hs_event *event)
{
	struct hs_bytes *keys = hs_mem_alloc((event->keys_count + 1) * sizeof *keys);
	struct hs_event less = {.kind = event->kind, .keys = keys};

	for (uint32_t i = 0; i < event->keys_count; i++) {
		if (!is_being_read(world, worker, event->keys[i]))
			keys[less.keys_count++] = event->keys[i];
	}
	hs_core_event(world->workers[worker].core, world->now, &less);
	hs_mem_free(&keys);
}

/* --- delivery --- */

/* An event in flight to one worker. */
struct piece {
	struct hs_link link; /* in world->event */
	struct hs_sim_worker *worker;
	/* The life of the heatsink that gets the event; a later life does not get it. */
	uint64_t life;
	bool delivered; /* delivered early, to a heatsink that dies */
	struct hs_event *event;
};

static void free_piece(struct piece **piece)
{
	hs_list_remove(&(*piece)->link);
	hs_event_unref(&(*piece)->event);
	hs_mem_free(piece);
}

static void deliver(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct piece *piece = target;
	struct hs_sim_worker *worker = piece->worker;
	bool alive = worker->core && piece->life == worker->heatsink->lives && !piece->delivered;

	(void)number;
	if (alive && world->options.engine.bug == HS_SIM_READ_TRACKED_LATE)
		deliver_without_reads(world, worker->number, piece->event);
	else if (alive)
		hs_core_event(worker->core, world->now, piece->event);
	free_piece(&piece);
	hs_sim_after_core(world, worker->number);
}

static void plan_piece(struct hs_sim_worker *worker, struct hs_event *event)
{
	struct hs_sim_world *world = worker->world;
	struct piece *piece = hs_mem_zalloc(sizeof *piece);
	uint64_t at_us = world->now.mono_us;

	if (world->options.event_us_max > 0)
		at_us += hs_prng_below(&world->prng, world->options.event_us_max + 1);
	if (at_us < worker->event_us)
		at_us = worker->event_us;
	worker->event_us = at_us;
	hs_event_ref(event, 1);
	*piece = (struct piece){.worker = worker, .life = worker->heatsink->lives, .event = event};
	hs_list_init(&piece->link);
	hs_list_append(&world->event, &piece->link);
	hs_sim_events_plan(&world->events, (struct hs_sim_event){.at_us = at_us,
								 .run = deliver,
								 .context = world,
								 .target = piece,
								 .foreground = true});
}

void hs_sim_core_events_send(void *context, struct hs_event *event)
{
	struct hs_sim_heatsink *heatsink = context;
	struct hs_sim_world *world = heatsink->world;

	for (uint32_t i = 0; i < world->options.workers; i++)
		plan_piece(&world->workers[heatsink->first + i], event);
	hs_event_unref(&event);
}

bool hs_sim_core_events_deliver_now(struct hs_sim_heatsink *heatsink)
{
	struct hs_sim_world *world = heatsink->world;
	struct hs_link *link = world->event.next, *next;
	bool any = false;

	for (; link != &world->event; link = next) {
		struct piece *piece = hs_list_entry(link, struct piece, link);

		next = link->next;
		if (piece->worker->heatsink != heatsink || piece->life != heatsink->lives ||
		    piece->delivered)
			continue;
		piece->delivered = true;
		any = true;
		hs_core_event(piece->worker->core, world->now, piece->event);
		next = world->event.next; /* the core may have sent further events */
	}
	return any;
}

void hs_sim_core_events_destroy(struct hs_sim_world *world)
{
	while (!hs_list_empty(&world->event)) {
		struct piece *piece = hs_list_entry(world->event.next, struct piece, link);

		free_piece(&piece);
	}
}
