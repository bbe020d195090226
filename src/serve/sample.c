/* The control thread's samples: the rate of commands, the heat of workers and partitions; and readiness: whether
 * workers and engine are alive. */
#include "serve/host.h"

#include "serve/clock.h"
#include "telemetry/board.h"

enum {
	WORKER_SILENT_US_MAX =
		5000000, /* a worker reports every 100 ms; one silent for longer is stuck */
	LINES_MAX = 16,	 /* lines of /readyz about partitions that are not ok */
};

void hs_host_sample(struct hs_host *host)
{
	uint64_t commands = 0;

	for (uint32_t i = 0; i < host->workers_count; i++)
		commands += hs_counter_get(&hs_core_stats(host->workers[i].core)->commands);
	host->ops_per_s = commands - host->sampled_commands;
	host->sampled_commands = commands;
	if (hs_memory_trim_if_due(&host->memory))
		hs_counter_add(&host->stats.memory_returns, 1);
}

void hs_host_sample_heat(struct hs_host *host)
{
	uint16_t partitions = hs_board_capacity(host->board);
	struct hs_now now = hs_clock_now();

	for (uint16_t id = 0; id < partitions; id++)
		host->engine->calls->partition_stats(host->engine, id, &host->facts[id]);
	hs_board_sample(host->board, now, host->facts);
	hs_hotkeys_harvest(host, now);
}

/* ---- readiness ---- */

static bool workers_alive(struct hs_host *host, struct hs_buf *why)
{
	uint64_t now_us = hs_clock_mono_us();

	for (uint32_t i = 0; i < host->workers_count; i++) {
		uint64_t seen_us = hs_heat_seen_us(host->heats[i]);

		/* A worker that is just starting has not reported yet. */
		if (seen_us < host->started_mono_us)
			seen_us = host->started_mono_us;
		if (now_us > seen_us + WORKER_SILENT_US_MAX) {
			hs_buf_printf(why, "worker %u is stuck: no sign of life for %llu s\n",
				      (unsigned)i,
				      (unsigned long long)(now_us - seen_us) / 1000000);
			return false;
		}
	}
	return true;
}

/* Appends a line for each partition that is not ok. False: none is served. A partition whose state is not known yet
 * counts as served. */
static bool partitions_served(struct hs_host *host, struct hs_buf *lines)
{
	uint32_t present = 0, down = 0, lines_count = 0;

	for (uint16_t id = 0; id < hs_board_capacity(host->board); id++) {
		struct hs_engine_partition partition;

		host->engine->calls->partition_stats(host->engine, id, &partition);
		if (partition.absent)
			continue;
		present++;
		down += hs_partition_is_down(partition.state);
		if (partition.state == HS_PARTITION_OK || partition.state == HS_PARTITION_UNKNOWN)
			continue;
		if (lines_count++ < LINES_MAX)
			hs_buf_printf(lines, "partition %u (%s) is %s: %s\n", (unsigned)id,
				      partition.address, hs_partition_state_name(partition.state),
				      partition.unavailable_reason);
	}
	if (lines_count > LINES_MAX)
		hs_buf_printf(lines, "and %u more\n", (unsigned)(lines_count - LINES_MAX));
	return present == 0 || down < present;
}

static bool engine_serves(struct hs_host *host, struct hs_buf *why)
{
	struct hs_engine_stats stats;
	struct hs_buf lines = {0};
	bool served = partitions_served(host, &lines);

	host->engine->calls->stats(host->engine, &stats);
	if (stats.last_error[0])
		hs_buf_printf(why, "the last commit failed: %s\n", stats.last_error);
	else if (stats.unavailable_reason[0])
		hs_buf_printf(why, "%s\n", stats.unavailable_reason);
	else if (!served)
		hs_buf_printf(why, "no partition is served\n");
	hs_buf_append_bytes(why, hs_buf_bytes(&lines));
	hs_buf_deinit(&lines);
	return served && !stats.last_error[0] && !stats.unavailable_reason[0];
}

bool hs_host_ready(struct hs_host *host, struct hs_buf *why)
{
	if (atomic_load(&host->stopping)) {
		hs_buf_printf(why, "shutting down\n");
		return false;
	}
	return workers_alive(host, why) && engine_serves(host, why);
}
