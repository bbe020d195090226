/* The monitor's entry points, and the times when its parts are due. */
#include "engine/redis/monitor_internal.h"

#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>

void hs_monitor_set_unavailable_reason(struct hs_monitor *monitor, const char *format, ...)
{
	char why[sizeof monitor->unavailable_reason];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof why, format, args);
	va_end(args);
	if (strcmp(why, monitor->unavailable_reason) == 0)
		return;
	memcpy(monitor->unavailable_reason, why, sizeof why);
	monitor->calls->unavailable_reason(monitor->context, why);
}

void hs_monitor_enter(struct hs_monitor *monitor, uint64_t now_us)
{
	monitor->now_us = now_us;
	monitor->depth++;
}

void hs_monitor_leave(struct hs_monitor *monitor)
{
	while (monitor->depth == 1 && monitor->step_due) {
		monitor->step_due = false;
		hs_monitor_config_step(monitor);
		hs_monitor_keys_step(monitor);
	}
	monitor->depth--;
}

/* ---- due times ---- */

uint64_t hs_monitor_deadline_us(const struct hs_monitor *monitor)
{
	return monitor->poll_at_us < monitor->tick_at_us ? monitor->poll_at_us
							 : monitor->tick_at_us;
}

static void tick(struct hs_monitor *monitor)
{
	struct hs_monitor_node *node, *next;

	monitor->tick_at_us = monitor->now_us + HS_MONITOR_TICK_US;
	for (node = monitor->nodes; node; node = next) {
		next = node->next;
		hs_monitor_node_tick(node);
	}
	hs_monitor_poll_tick(monitor);
	hs_monitor_watch_tick(monitor);
	hs_monitor_keys_tick(monitor);
}

void hs_monitor_tick(struct hs_monitor *monitor, uint64_t now_us)
{
	hs_monitor_enter(monitor, now_us);
	if (now_us >= monitor->tick_at_us)
		tick(monitor);
	if (now_us >= monitor->poll_at_us)
		hs_monitor_poll_start(monitor);
	hs_monitor_leave(monitor);
}

void hs_monitor_suspect_topology(struct hs_monitor *monitor, uint64_t now_us)
{
	hs_monitor_enter(monitor, now_us);
	monitor->topology_suspect = true;
	hs_monitor_poll_soon(monitor);
	hs_monitor_leave(monitor);
}

/* ---- creation and end ---- */

struct hs_monitor *hs_monitor_create(const struct hs_monitor_options *options,
				     const struct hs_monitor_calls *calls, void *context)
{
	struct hs_monitor *monitor = hs_mem_zalloc(sizeof *monitor);

	monitor->options = *options;
	monitor->calls = calls;
	monitor->context = context;
	monitor->tick_at_us = HS_MONITOR_NEVER;
	monitor->poll_at_us = HS_MONITOR_NEVER;
	hs_prng_init(&monitor->prng, options->seed);
	for (size_t i = 0; i < options->url->seeds_count; i++)
		hs_monitor_node(monitor, &options->url->seeds[i])->seed = true;
	return monitor;
}

void hs_monitor_start(struct hs_monitor *monitor, uint64_t now_us)
{
	hs_monitor_enter(monitor, now_us);
	monitor->tick_at_us = now_us + HS_MONITOR_TICK_US;
	hs_monitor_set_unavailable_reason(monitor, "no server has answered yet");
	if (hs_monitor_is_single(monitor))
		hs_monitor_install(
			monitor, hs_topology_single(&monitor->nodes->address,
						    monitor->calls->capacity(monitor->context, 1)));
	else
		hs_monitor_poll_start(monitor);
	hs_monitor_leave(monitor);
}

void hs_monitor_destroy(struct hs_monitor **pointer)
{
	struct hs_monitor *monitor = *pointer;

	hs_monitor_config_deinit(monitor);
	hs_monitor_poll_deinit(monitor);
	while (monitor->nodes)
		hs_monitor_node_destroy(monitor->nodes);
	hs_mem_free(&monitor->samples);
	hs_mem_free(pointer);
}
