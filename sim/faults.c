#include "sim/faults.h"

#include "sim/cluster.h"
#include "sim/names.h"
#include "sim/network.h"
#include "sim/world_internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum {
	MOVE_STEPS = 3, /* keys that are moved one by one, at most */
	UNDO_ONE_IN = 4,
	LOSSY_ONE_IN = 3, /* of the acts, if failovers may lose writes */
	HELD_US_MAX = 5000,
	HOLD_NOTHING_ONE_IN = 8,
	LOSE_DATA_ONE_IN = 4,
	LONG_ONE_IN = 4,
	TIED_STEP_US_MAX = 500,
	TIED_MOVE_ONE_IN = 3,
	FAILOVER_US_MAX = 100000,
	/* How long a slot rests after a move or an undone move. A request that was redirected with ASK may be
	 * in flight for this time, and would be answered in the middle of the next move, without the key. */
	REST_US = 50000,
};

/* ---- draws, the script, events ---- */

static uint64_t draw(struct hs_sim_world *world, uint64_t bound)
{
	return hs_prng_below(&world->faults.prng, bound);
}

void hs_sim_script_note(struct hs_sim_world *world, const char *format, ...)
{
	struct hs_buf *script = &world->faults.script;
	size_t before = script->len;
	char text[256];
	va_list args;

	if (!world->options.script)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	hs_buf_printf(script, "%8" PRIu64 " at %" PRIu64 " us: %s\n", world->steps,
		      world->now.mono_us, text);
	if (world->options.print_line)
		world->options.print_line(
			(struct hs_bytes){script->data + before, script->len - before});
}

static void plan_at(struct hs_sim_world *world, uint64_t in_us, hs_sim_event_run *run)
{
	hs_sim_events_plan(&world->events,
			   (struct hs_sim_event){.at_us = world->now.mono_us + in_us,
						 .run = run,
						 .context = world});
}

static void plan(struct hs_sim_world *world, uint64_t us_max, hs_sim_event_run *run,
		 uint64_t number)
{
	hs_sim_events_plan(&world->events,
			   (struct hs_sim_event){
				   .at_us = world->now.mono_us + 1 + draw(world, us_max + 1),
				   .run = run,
				   .context = world,
				   .number = number,
			   });
}

/* Ends the fault of a node. False: all faults have been stopped, and the follow-up must do nothing. */
static bool goes_on(struct hs_sim_world *world, uint64_t node)
{
	world->faults.faulty_nodes &= ~(1u << node);
	return world->faults.on;
}

/* Begins a fault of a node; false: it cannot. A node has one fault at a time. While a master is being replaced
 * no other fault begins, because the old master must learn from the other nodes that it was replaced before it
 * serves again. */
static bool takes(struct hs_sim_world *world, uint8_t node)
{
	if (world->faults.failovers > 0 || world->faults.faulty_nodes >> node & 1)
		return false;
	world->faults.faulty_nodes |= 1u << node;
	return true;
}

static uint32_t down_us(const struct hs_sim_world *world)
{
	return world->options.servers.down_us_max;
}

static uint8_t pick_node(struct hs_sim_world *world)
{
	return (uint8_t)draw(world, hs_sim_cluster_nodes(world->cluster));
}

/* key0 most often: many loads have no other key. */
static uint32_t pick_key(struct hs_sim_world *world)
{
	return draw(world, 2) == 0 ? 0 : (uint32_t)draw(world, HS_SIM_MOVING_KEYS);
}

/* ---- slots ---- */

static uint16_t slot_of_key(const struct hs_sim_world *world, uint32_t key)
{
	return hs_sim_name_slot(world->options.tied, key);
}

static uint64_t rest_us(const struct hs_sim_world *world)
{
	return 3 * (uint64_t)down_us(world) + REST_US;
}

static void end_move(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	uint16_t slot = (uint16_t)number;
	bool undo = number >> 16;
	bool done = false;

	(void)target;
	if (!world->faults.on || hs_sim_cluster_moving_to(world->cluster, slot) == HS_SIM_NO_NODE)
		return;
	if (undo)
		done = hs_sim_cluster_move_undo(world->cluster, slot);
	else if (hs_sim_cluster_agrees(
			 world->cluster)) /* only when all nodes know of the last move */
		done = hs_sim_cluster_move_end(world->cluster, slot);
	for (uint32_t key = 0; done && key < HS_SIM_MOVING_KEYS; key++) {
		if (slot_of_key(world, key) == slot)
			world->faults.rests_until_us[key] = world->now.mono_us + rest_us(world);
	}
	if (done)
		hs_sim_script_note(world, "slot %u %s", slot,
				   undo ? "stays where it was" : "has moved");
	else
		plan(world, down_us(world), end_move, number); /* again when both nodes run */
}

/* Time until the next key moves. It is short where several keys share the slot, so that it happens while they are
 * requested. */
static uint32_t step_us(const struct hs_sim_world *world)
{
	uint32_t us = down_us(world) / MOVE_STEPS;

	return world->options.tied > 0 && us > TIED_STEP_US_MAX ? TIED_STEP_US_MAX : us;
}

/* Time from the last key that moves by itself to the end of the move, which moves the rest at once. A slot
 * whose keys may be requested together sometimes stays on two nodes for longer than engine-timeout. */
static uint32_t half_moved_us(struct hs_sim_world *world)
{
	if (world->options.tied > 0 && draw(world, LONG_ONE_IN) == 0)
		return 4 * world->options.servers.timeout_us;
	return down_us(world);
}

static void move_key(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	uint16_t slot = (uint16_t)number;

	(void)target;
	hs_sim_cluster_move_key(world->cluster, slot);
	if (number >> 16 > 0)
		plan(world, step_us(world), move_key, number - (1 << 16));
	else
		plan(world, half_moved_us(world), end_move,
		     slot | (uint64_t)(draw(world, UNDO_ONE_IN) == 0) << 16);
}

static void begin_move(struct hs_sim_world *world)
{
	uint32_t key = pick_key(world);
	uint16_t slot = slot_of_key(world, key);
	uint8_t to = pick_node(world);

	if (world->now.mono_us < world->faults.rests_until_us[key] ||
	    hs_sim_cluster_moving_to(world->cluster, slot) != HS_SIM_NO_NODE)
		return;
	if (!hs_sim_cluster_agrees(world->cluster) || world->faults.failovers > 0 ||
	    !hs_sim_cluster_move_begin(world->cluster, slot, to))
		return;
	hs_sim_script_note(world, "slot %u moves from node %u to node %u", slot,
			   hs_sim_cluster_owner(world->cluster, slot), to);
	plan(world, step_us(world), move_key, slot | (uint64_t)draw(world, MOVE_STEPS) << 16);
}

/* ---- failovers ---- */

/* A move that a failover interrupts needs an operator: some keys are unreachable. So moves and failovers never
 * overlap. */
static bool is_moving(const struct hs_sim_world *world)
{
	for (uint32_t i = 0; i < HS_SIM_MOVING_KEYS; i++) {
		if (hs_sim_cluster_moving_to(world->cluster, slot_of_key(world, i)) !=
		    HS_SIM_NO_NODE)
			return true;
	}
	return false;
}

static void end_failover(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;

	(void)target, (void)number;
	if (world->faults.on && !hs_sim_cluster_agrees(world->cluster))
		plan_at(world, FAILOVER_US_MAX, end_failover);
	else
		world->faults.failovers--;
}

/* No slot begins to move until end_failover. */
static void begin_failover(struct hs_sim_world *world)
{
	world->faults.failovers++;
	plan_at(world, FAILOVER_US_MAX, end_failover);
}

static void fail_over(struct hs_sim_world *world)
{
	uint8_t node = pick_node(world);

	if (!hs_sim_cluster_is_master(world->cluster, node) &&
	    hs_sim_cluster_agrees(world->cluster) && !is_moving(world) &&
	    hs_sim_cluster_fail_over(world->cluster, node)) {
		begin_failover(world);
		hs_sim_script_note(world, "node %u begins a failover from node %u", node,
				   hs_sim_cluster_master_of(world->cluster, node));
	}
}

/* ---- stalls and crashes ---- */

static void thaw(void *context, void *target, uint64_t node)
{
	struct hs_sim_world *world = context;

	(void)target;
	if (!goes_on(world, node))
		return;
	hs_sim_cluster_thaw(world->cluster, (uint8_t)node);
	hs_sim_script_note(world, "node %u resumes", (unsigned)node);
}

static bool stall(struct hs_sim_world *world, uint8_t node)
{
	if (!takes(world, node))
		return false;
	hs_sim_script_note(world, "node %u stalls", node);
	hs_sim_cluster_stall(world->cluster, node);
	plan(world, down_us(world), thaw, node);
	return true;
}

static void restart(void *context, void *target, uint64_t node)
{
	struct hs_sim_world *world = context;
	bool keeps_data;

	(void)target;
	if (!goes_on(world, node))
		return;
	keeps_data = !world->options.servers.lossy || draw(world, LOSE_DATA_ONE_IN) > 0;
	hs_sim_cluster_restart(world->cluster, (uint8_t)node, keeps_data,
			       (uint32_t)draw(world, down_us(world)));
	hs_sim_script_note(world, "node %u starts%s", (unsigned)node,
			   keeps_data ? "" : ", without its data");
}

static void crash_now(struct hs_sim_world *world, uint8_t node)
{
	hs_sim_network_crash(world->network, node);
	hs_sim_cluster_crash(world->cluster, node);
}

static bool crash(struct hs_sim_world *world, uint8_t node)
{
	if (!takes(world, node))
		return false;
	hs_sim_script_note(world, "node %u crashes", node);
	crash_now(world, node);
	plan(world, down_us(world), restart, node);
	return true;
}

/* ---- lost masters ---- */

/* A master that will be lost, and the replica that will replace it after missing some of its stream. */
struct loss {
	uint8_t master, replica;
	bool stalls; /* the master stalls; false: it crashes */
};

static uint64_t number_of(struct loss loss)
{
	return loss.master | (uint64_t)loss.replica << 8 | (uint64_t)loss.stalls << 16;
}

static struct loss loss_of(uint64_t number)
{
	return (struct loss){(uint8_t)number, (uint8_t)(number >> 8), number >> 16};
}

static void take_over(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct loss loss = loss_of(number);

	(void)target;
	plan_at(world, FAILOVER_US_MAX, end_failover);
	if (!world->faults.on)
		return;
	/* A master that still serves would go on until it learns of the takeover, as in Redis, and what it
	 * acknowledges meanwhile is lost. */
	if (hs_sim_cluster_master_of(world->cluster, loss.replica) == loss.master &&
	    !hs_sim_cluster_serves(world->cluster, loss.master) &&
	    hs_sim_cluster_take_over(world->cluster, loss.replica))
		hs_sim_script_note(world, "node %u has taken over with the writes it has",
				   loss.replica);
	hs_sim_cluster_hold_stream(world->cluster, loss.replica, false);
	plan(world, down_us(world), loss.stalls ? thaw : restart, loss.master);
}

static void lose_now(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct loss loss = loss_of(number);

	(void)target;
	if (world->faults.on && loss.stalls)
		hs_sim_cluster_stall(world->cluster, loss.master);
	else if (world->faults.on)
		crash_now(world, loss.master);
	hs_sim_script_note(world, "node %u %s, and will be replaced", loss.master,
			   loss.stalls ? "stalls" : "crashes");
	plan(world, down_us(world), take_over, number);
}

static uint8_t replica_of(struct hs_sim_world *world, uint8_t master)
{
	uint8_t node = 0;

	while (node < hs_sim_cluster_nodes(world->cluster) &&
	       hs_sim_cluster_master_of(world->cluster, node) != master)
		node++;
	return node;
}

/* The replica stops receiving its master's stream; the master goes on for a while, then stalls or crashes; the
 * replica takes over. Writes that were acknowledged meanwhile are lost. */
static void lose_master(struct hs_sim_world *world)
{
	uint8_t master = hs_sim_cluster_owner(world->cluster, slot_of_key(world, pick_key(world)));
	struct loss loss = {.master = master, .stalls = draw(world, 2) == 0};

	loss.replica = replica_of(world, loss.master);
	if (loss.replica == hs_sim_cluster_nodes(world->cluster) ||
	    !hs_sim_cluster_agrees(world->cluster) || is_moving(world) ||
	    !takes(world, loss.master))
		return;
	world->faults.failovers++;
	if (world->options.servers.holds && draw(world, HOLD_NOTHING_ONE_IN) > 0)
		hs_sim_cluster_hold_stream(world->cluster, loss.replica, true);
	plan(world, HELD_US_MAX, lose_now, number_of(loss));
}

/* ---- other faults ---- */

static void heal(void *context, void *target, uint64_t node)
{
	struct hs_sim_world *world = context;

	(void)target;
	if (!goes_on(world, node))
		return;
	hs_sim_cluster_heal(world->cluster, (uint8_t)node);
	hs_sim_script_note(world, "node %u reaches the other nodes again", (unsigned)node);
}

static void cut(struct hs_sim_world *world, uint8_t node)
{
	if (!takes(world, node))
		return;
	hs_sim_script_note(world, "node %u is partitioned from the other nodes", node);
	hs_sim_cluster_cut(world->cluster, node);
	plan(world, down_us(world), heal, node);
}

static void let_stream(void *context, void *target, uint64_t node)
{
	struct hs_sim_world *world = context;

	(void)target;
	hs_sim_cluster_hold_stream(world->cluster, (uint8_t)node, false);
}

static void hold_stream(struct hs_sim_world *world, uint8_t node)
{
	hs_sim_cluster_hold_stream(world->cluster, node, true);
	plan(world, down_us(world), let_stream, node);
}

/* ---- heatsinks ---- */

static void revive(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;

	(void)target;
	if (!world->heatsinks[number].dead)
		return; /* hs_sim_faults_end has started it */
	hs_sim_heatsink_start(&world->heatsinks[number]);
	hs_sim_script_note(world, "heatsink %u starts", (unsigned)number);
}

static void die(struct hs_sim_world *world)
{
	uint32_t number = (uint32_t)draw(world, world->options.heatsinks);
	uint32_t alive = 0;

	/* The last of several heatsinks stays alive; clients of a single one wait until it is back. */
	for (uint32_t i = 0; i < world->options.heatsinks; i++)
		alive += !world->heatsinks[i].dead;
	if (world->heatsinks[number].dead || (alive == 1 && world->options.heatsinks > 1))
		return;
	hs_sim_script_note(world, "heatsink %u dies", number);
	hs_sim_cover(&world->coverage, HS_SIM_COVERAGE_DEATHS);
	hs_sim_heatsink_kill(&world->heatsinks[number], draw(world, 2) == 0);
	plan(world, down_us(world), revive, number);
}

/* ---- the sequence of faults ---- */

static void act_once(struct hs_sim_world *world)
{
	const struct hs_sim_servers_options *may = &world->options.servers;
	uint8_t node = pick_node(world);

	if (may->one_faulty) {
		if (draw(world, 2) == 0 ? may->stalls : !may->crashes)
			stall(world, may->victim);
		else
			crash(world, may->victim);
		return;
	}
	if (may->lossy && draw(world, LOSSY_ONE_IN) == 0) {
		lose_master(world);
		return;
	}
	if (may->moves && world->options.tied > 0 && draw(world, TIED_MOVE_ONE_IN) == 0) {
		begin_move(world);
		return;
	}

	switch (draw(world, 10)) {
	case 0:
	case 1:
	case 2:
		if (may->moves)
			begin_move(world);
		break;
	case 3:
		if (may->failovers)
			fail_over(world);
		break;
	case 4:
	case 5:
		if (may->stalls)
			stall(world, node);
		break;
	case 6:
		if (may->crashes)
			crash(world, node);
		break;
	case 7:
		if (may->partitions)
			cut(world, node);
		break;
	case 8:
		if (may->kills)
			hs_sim_cluster_kill_clients(world->cluster, node);
		if (may->failovers)
			hold_stream(world, node);
		break;
	default:
		if (may->deaths)
			die(world);
	}
}

static void act(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;

	(void)target, (void)number;
	if (!world->faults.on)
		return;
	act_once(world);
	plan(world, world->options.servers.act_us_max, act, 0);
}

void hs_sim_faults_begin(struct hs_sim_world *world)
{
	hs_prng_init(&world->faults.prng, hs_prng_next(&world->prng));
	world->faults.on = world->options.servers.act_us_max > 0;
	if (world->faults.on)
		plan(world, world->options.servers.act_us_max, act, 0);
}

void hs_sim_faults_end(struct hs_sim_world *world)
{
	world->faults.on = false;
	for (uint32_t i = 0; i < world->options.heatsinks; i++) {
		if (world->heatsinks[i].dead)
			hs_sim_heatsink_start(&world->heatsinks[i]);
	}
}

/* Ends the moves that were in progress when faults were stopped. */
void hs_sim_faults_finish_moves(struct hs_sim_world *world)
{
	for (uint32_t i = 0; i < HS_SIM_MOVING_KEYS; i++) {
		uint16_t slot = slot_of_key(world, i);

		if (hs_sim_cluster_agrees(world->cluster) &&
		    hs_sim_cluster_moving_to(world->cluster, slot) != HS_SIM_NO_NODE &&
		    hs_sim_cluster_move_end(world->cluster, slot))
			hs_sim_script_note(world, "slot %u has moved", slot);
	}
}

void hs_sim_faults_deinit(struct hs_sim_faults *faults)
{
	hs_buf_deinit(&faults->script);
}
