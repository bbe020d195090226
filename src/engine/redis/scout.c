#include "engine/redis/scout.h"

#include "base/mem.h"

#include <stdio.h>

struct hs_scout {
	struct hs_scout_options options;
	struct hs_scout_host host;
	const struct hs_routes *routes;
};

struct hs_scout *hs_scout_create(const struct hs_scout_options *options,
				 const struct hs_scout_host *host)
{
	struct hs_scout *scout = hs_mem_zalloc(sizeof *scout);
	struct hs_routes *routes = hs_routes_create(1);

	scout->options = *options;
	scout->host = *host;
	snprintf(routes->nodes[0].host, sizeof routes->nodes[0].host, "%s",
		 options->url.seeds[0].host);
	routes->nodes[0].port = options->url.seeds[0].port;
	for (uint32_t i = 0; i < HS_SLOTS; i++)
		routes->node_of_slot[i] = 0;
	routes->node_of_partition[0] = 0;
	hs_slot_map_fill_even(options->slots, 1);
	scout->routes = routes;
	return scout;
}

void hs_scout_destroy(struct hs_scout **scout)
{
	hs_routes_unref(&(*scout)->routes);
	hs_mem_free(scout);
}

uint16_t hs_scout_capacity(const struct hs_scout *scout)
{
	(void)scout;
	return 1;
}

const struct hs_routes *hs_scout_routes(struct hs_scout *scout)
{
	hs_routes_ref(scout->routes, 1);
	return scout->routes;
}

void hs_scout_surprise(struct hs_scout *scout)
{
	(void)scout;
}

void hs_scout_ask(struct hs_scout *scout, struct hs_op *op)
{
	hs_buf_append(op->out, "+OK\r\n", 5);
	scout->host.done(scout->host.context, op);
}

void hs_scout_partition(struct hs_scout *scout, uint16_t partition,
			struct hs_engine_partition *stats)
{
	(void)partition;
	snprintf(stats->address, sizeof stats->address, "%.50s:%u",
		 scout->options.url.seeds[0].host, scout->options.url.seeds[0].port);
	snprintf(stats->slots, sizeof stats->slots, "0-16383");
}

void hs_scout_trouble(struct hs_scout *scout, char *why, size_t why_size)
{
	(void)scout;
	if (why_size > 0)
		why[0] = '\0';
}
