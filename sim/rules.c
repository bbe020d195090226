/* The contracts of a simulated world: rules in the words of the operator, the shared cache of a heatsink's workers,
 * the check that fetches are single-flight, and switching rules and mitigations while the world runs. */
#include "sim/world_internal.h"

#include "absorb/shared.h"
#include "base/mem.h"
#include "core/reserved.h"
#include "sim/cluster.h"
#include "sim/names.h"

#include <stdio.h>

enum { SHARED_CACHE_BYTES = 1 << 20, WORDS_MAX = 12, WORD_BYTES = 32 };

/* --- rules --- */

static const struct hs_rules *add(const struct hs_rules *rules, const char *key,
				  const struct hs_sim_rule *rule)
{
	char words[WORDS_MAX][WORD_BYTES], error[200];
	struct hs_bytes bytes[WORDS_MAX];
	struct hs_rules *with;
	size_t count = 0;
	int err;

	snprintf(words[count++], WORD_BYTES, "%s", key);
	snprintf(words[count++], WORD_BYTES, "cache");
	snprintf(words[count++], WORD_BYTES, "stale=%uus", rule->stale_us);
	snprintf(words[count++], WORD_BYTES, "stale-while-revalidate=%uus",
		 rule->stale_while_revalidate_us);
	snprintf(words[count++], WORD_BYTES, "stale-if-error=%uus", rule->stale_if_error_us);
	snprintf(words[count++], WORD_BYTES, "ttl=%uus", rule->ttl_us);
	snprintf(words[count++], WORD_BYTES, "negative-ttl=%uus", rule->negative_ttl_us);
	snprintf(words[count++], WORD_BYTES, "jitter=%u%%", rule->jitter_percent);
	snprintf(words[count++], WORD_BYTES, "refresh-ahead=%u", rule->refresh_ahead);
	snprintf(words[count++], WORD_BYTES, "admit=%s", rule->admit_all ? "all" : "hot");
	snprintf(words[count++], WORD_BYTES, "replica-reads=%s",
		 rule->replica_reads ? "yes" : "no");
	if (rule->copies == HS_COPIES_AUTO)
		snprintf(words[count++], WORD_BYTES, "copies=auto");
	else
		snprintf(words[count++], WORD_BYTES, "copies=%u", rule->copies);
	for (size_t i = 0; i < count; i++)
		bytes[i] = hs_bytes_of(words[i]);
	err = hs_rules_with(rules, count, bytes, &with, error, sizeof error);
	hs_check(err == 0);
	hs_rules_unref(&rules);
	return with;
}

void hs_sim_rules_create(struct hs_sim_world *world)
{
	const struct hs_sim_world_options *options = &world->options;
	char name[HS_SIM_NAME_BYTES_MAX];

	world->shared_caches = hs_mem_zalloc(world->workers_count * sizeof(struct hs_shared *));
	world->no_rules = hs_rules_create();
	world->rules = hs_rules_create();
	world->rules_on = true;
	for (uint32_t i = 0; i < options->rules_count; i++)
		world->rules =
			add(world->rules, hs_sim_name(options->tied, i, name), &options->rules[i]);
}

void hs_sim_rules_start(struct hs_sim_heatsink *heatsink)
{
	struct hs_sim_world *world = heatsink->world;
	const struct hs_sim_world_options *options = &world->options;
	struct hs_shared **shared_caches = world->shared_caches + heatsink->first;
	bool apart = options->engine.bug == HS_SIM_CACHES_APART;

	for (uint32_t i = 0; i < options->workers; i++) {
		shared_caches[i] = i > 0 && !apart ? shared_caches[0]
						   : hs_shared_create(options->engine.seed,
								      SHARED_CACHE_BYTES);
		hs_shared_use(shared_caches[i], options->rules_count > 0);
	}
}

void hs_sim_rules_stop(struct hs_sim_heatsink *heatsink)
{
	struct hs_shared **shared_caches = heatsink->world->shared_caches + heatsink->first;

	for (uint32_t i = heatsink->world->options.workers; i-- > 0;) {
		if (i == 0 || shared_caches[i] != shared_caches[i - 1])
			hs_shared_destroy(&shared_caches[i]);
		shared_caches[i] = NULL;
	}
}

void hs_sim_rules_destroy(struct hs_sim_world *world)
{
	hs_mem_free(&world->shared_caches);
	hs_mem_free(&world->fetches);
	hs_rules_unref(&world->rules);
	hs_rules_unref(&world->no_rules);
}

bool hs_sim_world_read_may_be_stale(const struct hs_sim_world *world, const struct hs_op *op)
{
	if (op->kind != HS_OP_COMMAND || !(op->command->flags & HS_CMD_READONLY))
		return false;
	for (size_t i = 1; i < op->argc; i++) {
		if (hs_rules_match(world->rules, op->argv[i]))
			return true;
	}
	return false;
}

/* --- progress that law 9 allows for --- */

static bool is_of_copies(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && op->argc > 1 && hs_is_reserved(op->argv[1]);
}

static bool goes_to_faulty(const struct hs_sim_world *world, const struct hs_op *op)
{
	return op->slot != HS_SLOT_NONE &&
	       hs_sim_cluster_owner(world->cluster, op->slot) == world->options.servers.victim;
}

static void count_diverted(struct hs_sim_worker *worker, const struct hs_op *op)
{
	const struct hs_sim_world *world = worker->world;

	if (world->options.servers.one_faulty && is_of_copies(op) &&
	    !(op->command->flags & HS_CMD_WRITE) && goes_to_faulty(world, op))
		worker->heatsink->progress.diverted++;
}

static void count_internal(struct hs_sim_worker *worker, const struct hs_op *op)
{
	const struct hs_sim_world *world = worker->world;

	if (world->options.servers.one_faulty && (op->track || is_of_copies(op)) &&
	    !goes_to_faulty(world, op))
		worker->heatsink->progress.internal++;
}

/* --- single-flight fetches --- */

static bool is_same(const struct hs_op *a, const struct hs_op *b)
{
	if (a->command != b->command || a->argc != b->argc)
		return false;
	for (size_t i = 1; i < a->argc; i++) {
		if (!hs_bytes_equal(a->argv[i], b->argv[i]))
			return false;
	}
	return true;
}

void hs_sim_rules_sent(struct hs_sim_worker *worker, const struct hs_op *op)
{
	struct hs_sim_world *world = worker->world;

	count_diverted(worker, op);
	if (!op->track || !(op->command->flags & HS_CMD_READONLY))
		return;
	/* A core that switched copies off while it was making one does not remember that a DUMP is in flight. */
	if (world->switches > 0 && hs_bytes_is_word(op->argv[0], "dump"))
		return;
	for (size_t i = 0; i < world->fetches_count; i++) {
		if (world->fetches[i].worker == worker && is_same(world->fetches[i].op, op))
			hs_sim_verdict_set(&world->broken, HS_SIM_LAW_FETCHES,
					   "worker %u has two fetches of %.*s in flight",
					   worker->number, (int)op->argv[1].len, op->argv[1].data);
	}
	if (world->fetches_count == world->fetches_cap) {
		world->fetches_cap = world->fetches_cap ? 2 * world->fetches_cap : 16;
		world->fetches =
			hs_mem_realloc(world->fetches, world->fetches_cap * sizeof *world->fetches);
	}
	world->fetches[world->fetches_count++] = (struct hs_sim_fetch_in_flight){worker, op};
}

void hs_sim_rules_back(struct hs_sim_worker *worker, const struct hs_op *op)
{
	struct hs_sim_world *world = worker->world;

	count_internal(worker, op);
	for (size_t i = 0; i < world->fetches_count; i++) {
		if (world->fetches[i].op == op)
			world->fetches[i--] = world->fetches[--world->fetches_count];
	}
}

/* --- switching them off and on --- */

static void configure(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct hs_sim_worker *worker = target;
	struct hs_core_options options = world->options.core;

	options.mitigate = (enum hs_mitigate)(number >> 1);
	options.rules = number & 1 ? world->rules : world->no_rules;
	hs_sim_heatsink_plant_limit_bug(world->options.engine.bug, &options);
	if (worker->core && (world->options.engine.bug != HS_SIM_SWITCH_IGNORED ||
			     options.mitigate == HS_MITIGATE_ON))
		hs_core_configure(worker->core, &options);
	world->unaware_workers--;
	hs_sim_after_core(world, worker->number);
}

void hs_sim_world_set_mitigations(struct hs_sim_world *world, enum hs_mitigate mitigate,
				  bool rules_on)
{
	world->mitigate = mitigate;
	world->rules_on = rules_on;
	world->switches++;
	for (uint32_t i = 0; i < world->workers_count; i++) {
		struct hs_sim_worker *worker = &world->workers[i];
		uint64_t at_us = world->now.mono_us;

		at_us += hs_prng_below(&world->prng, world->options.event_us_max + 1);
		if (at_us < worker->turn_us) /* changes arrive in order */
			at_us = worker->turn_us;
		worker->turn_us = at_us;
		world->unaware_workers++;
		hs_sim_events_plan(&world->events,
				   (struct hs_sim_event){
					   .at_us = at_us,
					   .run = configure,
					   .context = world,
					   .target = worker,
					   .number = (uint64_t)mitigate << 1 | rules_on,
					   .foreground = true,
				   });
	}
}

const struct hs_sim_rule *hs_sim_world_rule(const struct hs_sim_world *world, uint32_t key)
{
	bool off = !world->rules_on || world->mitigate != HS_MITIGATE_ON;

	if (key >= world->options.rules_count || (off && world->unaware_workers == 0))
		return NULL;
	return &world->options.rules[key];
}
