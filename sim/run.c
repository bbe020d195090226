#include "sim/run.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/prng.h"
#include "sim/caches.h"
#include "sim/load.h"
#include "sim/world.h"

#include <inttypes.h>

enum { OUTPUT_BYTES_LOW = 60 }; /* a deaf client reaches it soon */

/* One of these, evenly. */
static uint32_t one_of(struct hs_prng *prng, const uint32_t *choices, size_t count)
{
	return choices[hs_prng_below(prng, count)];
}

#define ONE_OF(prng, ...)                                                                          \
	one_of(prng, (const uint32_t[]){__VA_ARGS__},                                              \
	       sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* Small worlds find mistakes as well as large ones, and faster. */
static void draw_world(struct hs_prng *prng, struct hs_sim_world_options *world,
		       struct hs_sim_load_options *load)
{
	world->workers = ONE_OF(prng, 1, 2, 3);
	world->engine.partitions = (uint16_t)ONE_OF(prng, 1, 2, 4, 20);
	world->engine.reads_at_once = hs_prng_below(prng, 3) > 0;
	world->engine.refuses = hs_prng_below(prng, 2) == 0;
	world->engine.commit_us_max = ONE_OF(prng, 0, 50, 500);
	world->engine.answer_us_max = ONE_OF(prng, 0, 50, 500);
	world->peer_us_max = ONE_OF(prng, 0, 100);
	*load = (struct hs_sim_load_options){
		.clients = ONE_OF(prng, 2, 3, 5),
		.requests = ONE_OF(prng, 8, 16, 24),
		.depth_max = ONE_OF(prng, 1, 4, 16),
		.registers = ONE_OF(prng, 1, 2, 4),
		.counters = ONE_OF(prng, 0, 1, 2),
		.hang_ups = hs_prng_below(prng, 2) == 0,
		.cuts = hs_prng_below(prng, 8) == 0,
	};
	if (load->cuts)
		world->core.output_bytes_max = OUTPUT_BYTES_LOW;
}

static void describe(uint64_t seed, const struct hs_sim_world_options *world,
		     struct hs_sim_result *result)
{
	hs_buf_printf(&result->text, "seed %" PRIu64 ", %u workers, %u partitions, reads %s\n",
		      seed, world->workers, world->engine.partitions,
		      world->engine.reads_at_once ? "at once" : "queued");
	if (result->verdict.law == HS_SIM_LAW_HEAT)
		hs_buf_printf(&result->text, "heat: %s\n", result->verdict.text);
	else if (result->verdict.law == HS_SIM_LAW_CACHES)
		hs_buf_printf(&result->text, "caches: %s\n", result->verdict.text);
	else
		hs_buf_printf(&result->text, "law %d: %s\n", result->verdict.law,
			      result->verdict.text);
}

/* A world of its own, with clients that keep what they read. */
static int check_caches(uint64_t seed, enum hs_sim_mistake mistake, struct hs_sim_result *result)
{
	struct hs_sim_world_options world_options = hs_sim_world_defaults(seed);
	struct hs_sim_load_options unused;
	struct hs_sim_caches_options options;
	struct hs_sim_world *world;
	struct hs_prng prng;
	int err;

	hs_prng_init(&prng, seed);
	draw_world(&prng, &world_options, &unused);
	world_options.core.output_bytes_max = 64 * HS_MIB;
	world_options.core.tracking_keys_max = ONE_OF(&prng, 0, 1, 3, 1000);
	world_options.news_us_max = ONE_OF(&prng, 0, 50, 500);
	world_options.engine.mistake = mistake;
	options = (struct hs_sim_caches_options){
		.clients = ONE_OF(&prng, 2, 4),
		.keys = ONE_OF(&prng, 1, 2, 4),
		.rounds = 3,
		.requests = ONE_OF(&prng, 4, 8),
	};
	world = hs_sim_world_create(&world_options);
	err = hs_sim_check_caches(&options, world, &result->verdict, &result->requests);
	result->steps += world->steps;
	if (err)
		describe(seed, &world_options, result);
	hs_sim_world_destroy(&world);
	return err;
}

static bool about_caches(enum hs_sim_mistake mistake)
{
	return mistake == HS_SIM_NO_MISTAKE || mistake == HS_SIM_NEWS_LOST ||
	       mistake == HS_SIM_NEWS_TOO_EARLY || mistake == HS_SIM_READ_REMEMBERED_LATE ||
	       mistake == HS_SIM_NEWS_OVERTAKE;
}

int hs_sim_check(uint64_t seed, enum hs_sim_mistake mistake, struct hs_sim_result *result)
{
	struct hs_sim_world_options world_options = hs_sim_world_defaults(seed);
	struct hs_sim_load_options load_options;
	struct hs_sim_world *world;
	struct hs_sim_load *load;
	struct hs_prng prng;
	int err;

	*result = (struct hs_sim_result){0};
	hs_prng_init(&prng, seed);
	draw_world(&prng, &world_options, &load_options);
	world_options.engine.mistake = mistake;
	world = hs_sim_world_create(&world_options);
	load = hs_sim_load_create(&load_options, world);
	hs_sim_world_settle(world);
	err = hs_sim_load_check(load, &result->verdict);
	result->requests = hs_sim_load_requests(load);
	result->steps = world->steps;
	if (err == HS_EINVAL) {
		describe(seed, &world_options, result);
		hs_sim_history_print(hs_sim_load_history(load), &result->text);
	}
	hs_sim_world_destroy(&world);
	hs_sim_load_destroy(&load);
	if (err == 0 && about_caches(mistake))
		err = check_caches(seed, mistake, result);
	return err;
}
