/* The checks of a load when all has settled: everything was answered, the last reads agree, the laws hold for the
 * history, and no worker has anything left. */
#include "absorb/fold/stats.h"
#include "base/err.h"
#include "base/mem.h"
#include "push/stats.h"
#include "sim/load_internal.h"

#include <inttypes.h>

enum { ORDER_STEPS_MAX = 1000000 };

static void check_answered(struct hs_sim_load *load, struct hs_sim_actor *actor)
{
	if (!actor->client || hs_sim_actor_was_cut(actor))
		return;
	hs_sim_actor_pop_silent(actor);
	if (actor->client->broken)
		hs_sim_verdict_set(&load->verdict, 1, "client %u got bytes that are no reply",
				   actor->number);
	if (!actor->client->session)
		hs_sim_verdict_set(&load->verdict, 6, "client %u was disconnected by heatsink",
				   actor->number);
	if (actor->in_flight_head != actor->in_flight_tail)
		hs_sim_verdict_set(&load->verdict, 1, "client %u: %u requests were never answered",
				   actor->number, actor->in_flight_tail - actor->in_flight_head);
}

/* Law 6: clients that were cut off were counted, and no requests are left in flight. */
static void check_limits(struct hs_sim_load *load)
{
	struct hs_sim_world *world = load->world;
	uint64_t cut = 0, counted = 0, under_way = 0, *coverage = world->coverage.of;

	for (struct hs_sim_client *client = world->clients; client; client = client->next)
		cut += client->cut;
	for (uint32_t i = 0; i < world->workers_count; i++) {
		struct hs_core_stats *stats;

		if (!hs_sim_world_core(world, i))
			continue;
		stats = hs_core_stats(hs_sim_world_core(world, i));
		counted += hs_counter_get(&stats->cut_output);
		coverage[HS_SIM_COVERAGE_HELD] += hs_counter_get(&stats->holds[HS_HOLD_PIPELINE]);
		coverage[HS_SIM_COVERAGE_HOT_TABLE_FULL] += hs_counter_get(&stats->hot_keys_full);
		under_way += hs_counter_get(&stats->inflight);
	}
	coverage[HS_SIM_COVERAGE_CUT] += cut;
	if (world->broken.law != 0)
		load->verdict = world->broken;
	if ((cut != counted && !world->options.servers.deaths) || under_way > 0)
		hs_sim_verdict_set(&load->verdict, 6,
				   "%" PRIu64 " clients were cut off, %" PRIu64
				   " were counted; %" PRIu64 " requests are still in flight",
				   cut, counted, under_way);
}

/* Requests of clients that are still connected have all been answered, including those without a reply. */
static void settle_silent(struct hs_sim_load *load)
{
	uint64_t now_us = load->world->now.mono_us;

	for (size_t i = 0; i < load->accesses.count; i++) {
		struct hs_sim_access *access = &load->accesses.all[i];

		for (uint32_t j = 0; j < load->options.clients; j++) {
			const struct hs_sim_actor *actor = &load->actors[j];

			if (access->answered_us == HS_SIM_NEVER && actor->client &&
			    actor->client->session && actor->number == access->client)
				access->answered_us = now_us;
		}
	}
}

/* A heatsink that died took its heat counts with it. */
static bool any_died(const struct hs_sim_world *world)
{
	for (uint32_t i = 0; i < world->options.heatsinks; i++) {
		if (world->heatsinks[i].lives > 0)
			return true;
	}
	return false;
}

static int check_heat(struct hs_sim_load *load)
{
	const struct hs_sim_world *world = load->world;
	const struct hs_sim_heats heats = {
		.heats = world->heats,
		.count = world->workers_count,
		.partitions = world->options.engine.partitions,
		.tied = world->options.tied,
		.others = {load->companions ? hs_sim_companions_heat(load->companions, false) : 0,
			   load->companions ? hs_sim_companions_heat(load->companions, true) : 0},
		.summed = world->options.servers.cluster,
		.start_us = world->start_us,
		.now_us = world->now.mono_us,
	};

	/* This planted bug takes writes for reads, and counts them so. */
	if (!world->heats || any_died(world) || world->options.engine.bug == HS_SIM_UNKNOWN_READS)
		return 0;
	settle_silent(load);
	return hs_sim_check_heat(&load->accesses, &heats,
				 load->options.registers + load->options.counters, &load->verdict);
}

static void send_and_wait(struct hs_sim_actor *actor)
{
	while (actor->outgoing.len > 0)
		hs_sim_actor_send(actor);
	hs_sim_world_settle(actor->load->world);
}

/* Whether a limit of the world would refuse a pipeline of `requests` requests, or cut off its client. */
static bool is_narrow(const struct hs_sim_load *load, uint32_t requests)
{
	return load->options.cuts ||
	       (load->world->cluster && load->world->options.servers.waiting_max < requests);
}

/* One client reads every key, in one pipeline if the limits allow that. */
static void read_through(struct hs_sim_load *load, uint32_t heatsink, int64_t *finals)
{
	struct hs_sim_actor *reader = hs_mem_zalloc(sizeof *reader);
	uint32_t keys = load->options.registers + load->options.counters, first;

	reader->load = load;
	reader->planned = true; /* it does not act by itself */
	hs_sim_actor_connect_to(reader, heatsink * load->world->options.workers);
	send_and_wait(reader); /* HELLO, perhaps */
	first = reader->in_flight_tail;
	for (uint32_t key = 0; key < keys; key++) {
		hs_sim_actor_compose_get(reader, key);
		if (is_narrow(load, keys))
			send_and_wait(reader);
	}
	send_and_wait(reader);
	if (reader->last_error[0] && load->world->cluster)
		hs_sim_verdict_set(&load->verdict, HS_SIM_LAW_SERVES,
				   "after all faults ended, heatsink %u answers a read: %s",
				   heatsink, reader->last_error);
	for (uint32_t key = 0; key < keys && reader->in_flight_head == reader->in_flight_tail;
	     key++) {
		size_t op = reader->in_flight[(first + key) % HS_SIM_IN_FLIGHT_MAX].first;

		finals[key] = load->history.ops[op].answer;
	}
	check_answered(load, reader);
	reader->client->on_reply = NULL;
	reader->client->orphaned = NULL;
	hs_sim_client_disconnect(reader->client);
	hs_buf_deinit(&reader->outgoing);
	hs_mem_free(&reader);
}

/* Every heatsink must return the same values: the order check finds any difference. */
void hs_sim_load_read(struct hs_sim_load *load, int64_t *finals)
{
	for (uint32_t i = 0; i < load->world->options.heatsinks; i++)
		read_through(load, i, finals);
}

/* Law 7: with all mitigations off, the data reads the same. */
static void read_without(struct hs_sim_load *load, int64_t *finals)
{
	load->world->options.core.fold = false;
	hs_sim_world_set_mitigations(load->world, HS_MITIGATE_OFF, true);
	hs_sim_world_settle(load->world);
	load->off = true;
	hs_sim_load_read(load, finals);
	hs_sim_world_set_mitigations(load->world, HS_MITIGATE_ON, true);
	hs_sim_world_settle(load->world);
}

/* All clients have disconnected and hot keys have cooled down: the workers' gauges must be zero. */
static void check_gauges(struct hs_sim_load *load)
{
	struct hs_sim_world *world = load->world;

	hs_sim_world_hang_up(world);
	hs_sim_world_pass(world, world->options.core.hot.cool_down_us + 1);
	hs_sim_world_tick(world);
	for (uint32_t i = 0; i < world->workers_count; i++) {
		struct hs_core *core = hs_sim_world_core(world, i);
		const struct hs_core_stats *stats = hs_core_stats(core);
		const struct hs_push_stats *push = hs_push_stats(core);
		const struct hs_fold_stats *fold = hs_fold_stats(core);
		const struct {
			const char *what;
			const struct hs_counter *left;
		} counters[] = {
			{"connections", &stats->sessions},
			{"requests in flight", &stats->inflight},
			{"blocked clients", &stats->blocked},
			{"subscriptions", &push->subscriptions},
			{"clients that track", &push->tracking_clients},
			{"requests that wait for hot keys", &fold->waiting},
			{"hot keys", &fold->keys},
		};

		for (size_t j = 0; j < sizeof counters / sizeof *counters; j++) {
			if (hs_counter_get(counters[j].left) > 0)
				hs_sim_verdict_set(
					&load->verdict, 6,
					"when all clients have gone, worker %u has %" PRIu64
					" %s left",
					i, hs_counter_get(counters[j].left), counters[j].what);
		}
	}
}

/* Removes keys whose order cannot be checked from the history. */
static void drop_tainted(struct hs_sim_load *load)
{
	for (uint64_t left = load->world->tainted; left > 0; left &= left - 1)
		hs_sim_cover(&load->world->coverage, HS_SIM_COVERAGE_TAINTED);
	for (size_t i = 0; i < load->history.count && load->world->tainted > 0; i++) {
		struct hs_sim_op *op = &load->history.ops[i];

		if (load->world->tainted >> op->key & 1)
			op->kind = HS_SIM_NONE;
	}
}

static int check_sum(struct hs_sim_load *load, uint32_t key, int64_t final)
{
	if (load->world->tainted >> key & 1)
		return 0;
	return hs_sim_check_increments(&load->history, key, final, load->lost >> key & 1,
				       &load->verdict);
}

static int check_laws(struct hs_sim_load *load, const int64_t *finals)
{
	uint32_t keys = load->options.registers + load->options.counters;
	int err = hs_sim_check_executions(&load->world->executions, &load->verdict);

	drop_tainted(load);
	for (uint32_t key = load->options.registers; key < keys && err == 0; key++)
		err = check_sum(load, key, finals[key]);
	if (err == 0 && load->world->cluster && !load->options.faults)
		err = hs_sim_check_watch(&load->history, &load->verdict);
	if (err == 0 && hs_sim_load_has_rules(load))
		err = hs_sim_check_stale(&load->history, &load->world->timelines, &load->verdict);
	if (err == 0)
		err = hs_sim_check_order(&load->history, ORDER_STEPS_MAX, &load->verdict);
	if (err == 0)
		err = check_heat(load);
	return err;
}

int hs_sim_load_check(struct hs_sim_load *load, struct hs_sim_verdict *verdict)
{
	uint32_t keys = load->options.registers + load->options.counters;
	int64_t *finals = hs_mem_zalloc(keys * sizeof *finals);
	int err = HS_EINVAL;

	for (uint32_t i = 0; i < load->options.clients; i++)
		check_answered(load, &load->actors[i]);
	check_limits(load);
	if (load->companions)
		hs_sim_companions_check_answered(load->companions, &load->verdict);
	hs_sim_world_stop_faults(load->world);
	if (load->companions)
		hs_sim_companions_check(load->companions, &load->verdict);
	if (load->verdict.law == 0)
		hs_sim_load_read(load, finals);
	if (load->verdict.law == 0 && load->judge)
		load->judge(load->judge_context, finals);
	if (load->verdict.law == 0 && hs_sim_load_has_rules(load))
		read_without(load, finals);
	if (load->verdict.law == 0)
		err = check_laws(load, finals);
	for (uint32_t i = 0; i < load->options.clients; i++) {
		if (load->actors[i].client) {
			load->actors[i].client->on_reply = NULL;
			load->actors[i].client->orphaned = NULL;
		}
	}
	if (err == 0)
		check_gauges(load);
	if (err == 0 && load->verdict.law != 0)
		err = HS_EINVAL;
	load->world->lost = NULL; /* the load may be destroyed before the world */
	load->finals = finals;
	*verdict = load->verdict;
	return err;
}
