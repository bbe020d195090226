/* Runs a plan: builds the world and its clients, lets the checkers judge, collects counts, and prints a violation. */
#include "sim/schedule.h"

#include "absorb/absorb.h"
#include "absorb/cache/stats.h"
#include "absorb/copies/stats.h"
#include "absorb/fold/stats.h"
#include "base/err.h"
#include "sim/client_caches.h"
#include "sim/leftovers.h"
#include "sim/load.h"
#include "sim/world.h"

#include <inttypes.h>

/* A COMMAND reply as of a later version or a module. It does not say that the X commands write, so that heatsink
 * must take them for writes (law 8). */
#define COMMANDS(flags)                                                                            \
	"*7\r\n"                                                                                   \
	"*6\r\n$5\r\nblpop\r\n:-3\r\n*2\r\n+write\r\n+blocking\r\n:1\r\n:-2\r\n:1\r\n"             \
	"*6\r\n$5\r\nrpush\r\n:-3\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n"                           \
	"*6\r\n$6\r\nx.swap\r\n:3\r\n" flags ":1\r\n:1\r\n:1\r\n"                                  \
	"*6\r\n$6\r\nx.both\r\n:3\r\n" flags ":1\r\n:1\r\n:1\r\n"                                  \
	"*6\r\n$6\r\nx.pair\r\n:5\r\n" flags ":1\r\n:3\r\n:2\r\n"                                  \
	"*6\r\n$4\r\ndump\r\n:2\r\n*1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n"                          \
	"*6\r\n$7\r\nrestore\r\n:-4\r\n*2\r\n+write\r\n+denyoom\r\n:1\r\n:1\r\n:1\r\n"

void hs_sim_runner_init(struct hs_sim_runner *runner, enum hs_sim_bug bug)
{
	struct hs_bytes commands = bug == HS_SIM_UNKNOWN_READS
					   ? HS_LIT(COMMANDS("*1\r\n+readonly\r\n"))
					   : HS_LIT(COMMANDS("*0\r\n"));
	char error[100];

	*runner = (struct hs_sim_runner){
		.bug = bug,
		.acl = hs_acl_create_open(""),
		.learned = hs_learned_create(commands, NULL, error, sizeof error),
	};
	hs_check(runner->learned);
}

void hs_sim_runner_deinit(struct hs_sim_runner *runner)
{
	hs_learned_destroy(&runner->learned);
	hs_acl_unref(&runner->acl);
}

static void describe(const struct hs_sim_plan *plan, const struct hs_sim_load *load,
		     struct hs_sim_result *result)
{
	const struct hs_sim_verdict *verdict = &result->verdict;

	hs_sim_plan_describe(plan, &result->text);
	if (verdict->law == HS_SIM_LAW_HEAT)
		hs_buf_printf(&result->text, "heat: %s\n", verdict->text);
	else if (verdict->law == HS_SIM_LAW_CLIENT_CACHES)
		hs_buf_printf(&result->text, "client-caches: %s\n", verdict->text);
	else if (verdict->law == HS_SIM_LAW_SERVES)
		hs_buf_printf(&result->text, "serves: %s\n", verdict->text);
	else if (verdict->law == HS_SIM_LAW_MESSAGES)
		hs_buf_printf(&result->text, "messages: %s\n", verdict->text);
	else if (verdict->law == HS_SIM_LAW_LEFTOVERS)
		hs_buf_printf(&result->text, "leftovers: %s\n", verdict->text);
	else if (verdict->law == HS_SIM_LAW_FETCHES)
		hs_buf_printf(&result->text, "fetches: %s\n", verdict->text);
	else
		hs_buf_printf(&result->text, "law %d: %s\n", verdict->law, verdict->text);
	hs_sim_history_print(hs_sim_load_history(load), &result->text);
}

static uint64_t count_folded(struct hs_sim_world *world)
{
	uint64_t folded = 0;

	for (uint32_t i = 0; i < world->workers_count; i++)
		folded += hs_counter_get(&hs_fold_stats(hs_sim_world_core(world, i))->requests);
	return folded;
}

/* Only heatsinks that run have counters. */
static uint64_t count_copied(struct hs_sim_world *world)
{
	uint64_t copied = 0;

	for (uint32_t i = 0; i < world->workers_count; i++) {
		const struct hs_copies_stats *stats =
			hs_core_stage_stats(hs_sim_world_core(world, i), &hs_stage_copies);

		copied += hs_counter_get(&stats->reads) - hs_counter_get(&stats->retries);
	}
	return copied;
}

static void count_rules(struct hs_sim_world *world, struct hs_sim_result *result)
{
	for (uint32_t i = 0; i < world->workers_count; i++) {
		const struct hs_core *core = hs_sim_world_core(world, i);

		for (uint32_t j = 0; j < world->options.rules_count; j++) {
			const struct hs_cache_rule_stats *stats = hs_cache_rule_stats(core, j);

			result->cached += hs_counter_get(&stats->hits);
			result->replica_reads += hs_counter_get(&stats->replica_reads);
		}
	}
}

static struct hs_sim_load *create_load(const struct hs_sim_plan *plan, struct hs_sim_world *world)
{
	const struct hs_sim_load_options tracking = {
		.clients = plan->client_caches.clients,
		.registers = plan->client_caches.keys,
		.depth_max = 1,
		.faults = plan->load.faults,
	};

	return hs_sim_load_create(plan->has_client_caches ? &tracking : &plan->load, world);
}

static int check_load(const struct hs_sim_plan *plan, struct hs_sim_load *load,
		      struct hs_sim_world *world, struct hs_sim_result *result)
{
	int err;

	if (plan->has_client_caches) {
		err = hs_sim_check_client_caches(&plan->client_caches, load, &result->verdict);
	} else {
		hs_sim_world_settle(world);
		err = hs_sim_load_check(load, &result->verdict);
	}
	result->requests = hs_sim_load_requests(load);
	return err;
}

/* The last check: it stops the heatsinks. */
static int check_leftovers(const struct hs_sim_plan *plan, const struct hs_sim_load *load,
			   struct hs_sim_world *world, struct hs_sim_result *result)
{
	const struct hs_sim_leftovers_keys keys = {
		.count = plan->has_client_caches ? plan->client_caches.keys
						 : plan->load.registers + plan->load.counters,
		.times = plan->load.ttl_ms_max > 0,
		.finals = hs_sim_load_finals(load),
	};

	return hs_sim_check_leftovers(world, &keys, &result->verdict);
}

int hs_sim_check_plan(const struct hs_sim_runner *runner, const struct hs_sim_plan *plan,
		      struct hs_sim_result *result)
{
	struct hs_sim_world_options options = plan->world;
	struct hs_sim_load *load;
	struct hs_sim_world *world;
	int err;

	*result = (struct hs_sim_result){0};
	options.core.acl = runner->acl;
	if (options.servers.on && (options.rules_count > 0 || plan->load.companions.requests > 0))
		options.learned = runner->learned;
	world = hs_sim_world_create(&options);
	load = create_load(plan, world);
	err = check_load(plan, load, world, result);
	result->steps = world->steps;
	result->folded = count_folded(world);
	result->copied = count_copied(world);
	result->external = world->external;
	result->coverage = world->coverage;
	count_rules(world, result);
	if (err == 0 && world->cluster)
		err = check_leftovers(plan, load, world, result);
	if (err)
		describe(plan, load, result);
	hs_sim_load_destroy(&load);
	hs_buf_swap(&result->script, &world->faults.script);
	hs_sim_world_destroy(&world);
	return err;
}

int hs_sim_check(const struct hs_sim_runner *runner, uint64_t seed, struct hs_sim_result *result)
{
	struct hs_sim_plan plan;

	hs_sim_plan_draw(&plan, seed, runner->bug, runner->focus);
	return hs_sim_check_plan(runner, &plan, result);
}
