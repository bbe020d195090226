/* The scout's thread, its clock, and the calls that others make. */
#include "engine/redis/scout_internal.h"

#include "base/limits.h"
#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/random.h>

/* ---- for other threads ---- */

void hs_scout_settle(struct hs_scout *scout)
{
	uv_mutex_lock(&scout->mutex);
	scout->settled = true;
	uv_cond_signal(&scout->settle);
	uv_mutex_unlock(&scout->mutex);
}

void hs_scout_set_trouble(struct hs_scout *scout, const char *format, ...)
{
	va_list args;

	uv_mutex_lock(&scout->mutex);
	va_start(args, format);
	vsnprintf(scout->trouble, sizeof scout->trouble, format, args);
	va_end(args);
	uv_mutex_unlock(&scout->mutex);
}

void hs_scout_trouble(struct hs_scout *scout, char *why, size_t why_size)
{
	uv_mutex_lock(&scout->mutex);
	snprintf(why, why_size, "%s", scout->trouble);
	uv_mutex_unlock(&scout->mutex);
}

uint16_t hs_scout_capacity(const struct hs_scout *scout)
{
	return scout->capacity; /* fixed when creation returns */
}

const struct hs_routes *hs_scout_routes(struct hs_scout *scout)
{
	const struct hs_routes *routes;

	uv_mutex_lock(&scout->mutex);
	routes = scout->routes;
	if (routes)
		hs_routes_ref(routes, 1);
	uv_mutex_unlock(&scout->mutex);
	return routes;
}

void hs_scout_partition(struct hs_scout *scout, uint16_t partition,
			struct hs_engine_partition *stats)
{
	uv_mutex_lock(&scout->mutex);
	*stats = scout->partitions[partition];
	uv_mutex_unlock(&scout->mutex);
}

void hs_scout_servers(struct hs_scout *scout, struct hs_engine_servers *servers)
{
	uv_mutex_lock(&scout->mutex);
	*servers = scout->servers;
	uv_mutex_unlock(&scout->mutex);
}

void hs_scout_surprise(struct hs_scout *scout)
{
	if (!atomic_load_explicit(&scout->surprised, memory_order_relaxed) &&
	    !atomic_exchange(&scout->surprised, true))
		uv_async_send(&scout->wake);
}

void hs_scout_ask(struct hs_scout *scout, struct hs_op *op)
{
	hs_mpsc_push(&scout->asked, op, op, offsetof(struct hs_op, next));
	uv_async_send(&scout->wake);
}

/* ---- the thread ---- */

static void pass_asked(struct hs_scout *scout)
{
	struct hs_op *op = hs_mpsc_take(&scout->asked, offsetof(struct hs_op, next));

	while (op) {
		struct hs_op *next = op->next;

		hs_herald_ask(scout->herald, op);
		op = next;
	}
}

static void herald_news(void *context, struct hs_news *news)
{
	struct hs_scout *scout = context;

	scout->host.news(scout->host.context, news);
}

static void herald_done(void *context, struct hs_op *op)
{
	struct hs_scout *scout = context;

	scout->host.done(scout->host.context, op);
}

static void herald_surprise(void *context)
{
	hs_scout_surprise(context);
}

static void create_herald(struct hs_scout *scout)
{
	struct hs_herald_options options = {
		.identity = &scout->options.identity,
		.log = scout->options.log,
		.cluster = !hs_scout_is_single(scout),
	};
	struct hs_herald_host host = {
		.context = scout,
		.news = herald_news,
		.done = herald_done,
		.surprise = herald_surprise,
	};

	scout->herald = hs_herald_create(&scout->loop, &options, &host);
	if (scout->routes) /* of one server: known before anybody was asked */
		hs_herald_route(scout->herald, scout->routes);
}

static void on_tick(uv_timer_t *timer)
{
	struct hs_scout *scout = timer->data;
	struct hs_link *link = scout->nodes.next;

	while (link != &scout->nodes) {
		struct hs_scout_node *node = hs_list_entry(link, struct hs_scout_node, link);

		link = link->next;
		hs_scout_node_tick(node);
	}
	hs_scout_look_tick(scout);
	hs_scout_watch_tick(scout);
	hs_scout_keys_tick(scout);
	hs_scout_stats_tick(scout);
}

static void close_handle(uv_handle_t *handle)
{
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void stop(struct hs_scout *scout)
{
	hs_herald_destroy(&scout->herald);
	hs_scout_config_deinit(scout);
	hs_scout_look_deinit(scout);
	while (!hs_list_empty(&scout->nodes)) {
		struct hs_scout_node *node =
			hs_list_entry(scout->nodes.next, struct hs_scout_node, link);

		hs_scout_node_destroy(&node);
	}
	close_handle((uv_handle_t *)&scout->wake);
	close_handle((uv_handle_t *)&scout->tick);
	close_handle((uv_handle_t *)&scout->look_timer);
}

static void on_wake(uv_async_t *wake)
{
	struct hs_scout *scout = wake->data;

	pass_asked(scout);
	if (atomic_load(&scout->stopping)) {
		stop(scout);
		return;
	}
	hs_scout_config_step(scout);
	hs_scout_keys_step(scout);
	if (atomic_load(&scout->surprised))
		hs_scout_look_soon(scout);
}

static void run(void *argument)
{
	struct hs_scout *scout = argument;

	uv_update_time(&scout->loop);
	create_herald(scout);
	uv_timer_start(&scout->tick, on_tick, HS_SCOUT_TICK_MS, HS_SCOUT_TICK_MS);
	if (hs_scout_is_single(scout))
		hs_scout_watch_all(scout);
	else
		hs_scout_look_start(scout);
	uv_run(&scout->loop, UV_RUN_DEFAULT);
}

/* ---- the beginning and the end ---- */

static void wait_settled(struct hs_scout *scout)
{
	uint64_t until_ns = uv_hrtime() + scout->options.start_ms_max * 1000000;

	uv_mutex_lock(&scout->mutex);
	while (!scout->settled && uv_hrtime() < until_ns)
		uv_cond_timedwait(&scout->settle, &scout->mutex, until_ns - uv_hrtime());
	if (scout->capacity == 0)
		scout->capacity = HS_SCOUT_SHARDS_UNKNOWN;
	uv_mutex_unlock(&scout->mutex);
}

static void init_loop(struct hs_scout *scout)
{
	hs_check(uv_loop_init(&scout->loop) == 0);
	hs_check(uv_async_init(&scout->loop, &scout->wake, on_wake) == 0);
	hs_check(uv_timer_init(&scout->loop, &scout->tick) == 0);
	hs_check(uv_timer_init(&scout->loop, &scout->look_timer) == 0);
	scout->wake.data = scout;
	scout->tick.data = scout;
	scout->look_timer.data = scout;
}

struct hs_scout *hs_scout_create(const struct hs_scout_options *options,
				 const struct hs_scout_host *host)
{
	struct hs_scout *scout = hs_mem_zalloc(sizeof *scout);
	uint64_t seed;

	scout->options = *options;
	scout->host = *host;
	scout->gap_ms = HS_SCOUT_GAP_MS_MIN;
	scout->retry_ms = HS_SCOUT_RETRY_MS_MIN;
	scout->buffer = hs_mem_alloc(HS_READ_BYTES);
	hs_list_init(&scout->nodes);
	hs_check(getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed);
	hs_prng_init(&scout->prng, seed);
	hs_check(uv_mutex_init(&scout->mutex) == 0);
	hs_check(uv_cond_init(&scout->settle) == 0);
	init_loop(scout);
	for (size_t i = 0; i < options->url.seeds_count; i++)
		hs_scout_node(scout, &options->url.seeds[i])->seed = true;
	if (hs_scout_is_single(scout)) {
		scout->capacity = 1;
		hs_slot_map_fill_even(options->slots, 1);
		hs_scout_route_single(scout);
	}
	hs_scout_set_trouble(scout, "no server has answered yet");
	hs_scout_watch_publish(scout);
	hs_check(uv_thread_create(&scout->thread, run, scout) == 0);
	wait_settled(scout);
	return scout;
}

void hs_scout_destroy(struct hs_scout **pointer)
{
	struct hs_scout *scout = *pointer;

	atomic_store(&scout->stopping, true);
	uv_async_send(&scout->wake);
	uv_thread_join(&scout->thread);
	hs_check(uv_loop_close(&scout->loop) == 0);
	hs_routes_unref(&scout->routes);
	uv_cond_destroy(&scout->settle);
	uv_mutex_destroy(&scout->mutex);
	hs_mem_free(&scout->looks);
	hs_mem_free(&scout->buffer);
	hs_mem_free(pointer);
}
