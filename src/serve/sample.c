/* What the control thread looks at by itself: the rate of commands, the heat of the workers and of
 * the engine's partitions, and whether everybody is alive. */
#include "serve/host.h"

#include "control/board.h"
#include "serve/clock.h"

#include <stdio.h>

enum {
	SEEN_US_MAX = 5000000
}; /* a worker silent for longer is stuck: it tells the time each 100 ms */

void hs_host_sample(struct hs_host *host)
{
	uint64_t commands = 0;

	for (uint32_t i = 0; i < host->workers_count; i++)
		commands += hs_counter_get(&hs_core_stats(host->workers[i].core)->commands);
	host->ops_per_s = commands - host->sampled_commands;
	host->sampled_commands = commands;
}

static void gather(struct hs_engine *engine, uint16_t id, struct hs_board_facts *facts)
{
	struct hs_engine_partition partition;

	engine->calls->partition_stats(engine, id, &partition);
	_Static_assert(sizeof facts->address == sizeof partition.address, "an address fits");
	memcpy(facts->address, partition.address, sizeof facts->address);
	_Static_assert(sizeof facts->slots == sizeof partition.slots, "slots fit");
	memcpy(facts->slots, partition.slots, sizeof facts->slots);
	facts->absent = partition.absent;
	facts->queued = partition.queued;
	facts->memory_bytes = partition.bytes_used;
	facts->cpu = partition.cpu;
	facts->clients = partition.clients;
	facts->replicas = partition.replicas;
	facts->replica_lag_s = partition.replica_lag_s;
	facts->replica_lag_bytes = partition.replica_lag_bytes;
	facts->slots_cpu = partition.slots_cpu;
	facts->net_in = partition.net_in;
	facts->net_out = partition.net_out;
	memcpy(facts->commit_ladder, partition.commit_ladder, sizeof facts->commit_ladder);
}

void hs_host_sample_heat(struct hs_host *host)
{
	uint16_t partitions = hs_board_capacity(host->board);
	struct hs_now now = hs_clock_now();

	for (uint16_t id = 0; id < partitions; id++)
		gather(host->engine, id, &host->facts[id]);
	hs_board_sample(host->board, now, host->facts);
	hs_hotkeys_harvest(host, now);
}

bool hs_host_ready(struct hs_host *host, char *why, size_t why_size)
{
	uint64_t now_us = hs_clock_mono_us();
	struct hs_engine_stats stats;

	if (atomic_load(&host->stopping)) {
		snprintf(why, why_size, "shutting down");
		return false;
	}
	for (uint32_t i = 0; i < host->workers_count; i++) {
		uint64_t seen_us = hs_heat_seen_us(host->heats[i]);

		/* One that is just starting has told nothing yet. */
		if (seen_us < host->started_mono_us)
			seen_us = host->started_mono_us;
		if (now_us > seen_us + SEEN_US_MAX) {
			snprintf(why, why_size, "worker %u has not been seen for %llu s",
				 (unsigned)i, (unsigned long long)(now_us - seen_us) / 1000000);
			return false;
		}
	}
	host->engine->calls->stats(host->engine, &stats);
	if (stats.last_error[0]) {
		snprintf(why, why_size, "the last commit failed: %s", stats.last_error);
		return false;
	}
	if (stats.trouble[0]) {
		snprintf(why, why_size, "%s", stats.trouble);
		return false;
	}
	return true;
}
