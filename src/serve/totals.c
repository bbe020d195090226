#include "serve/totals.h"

#include "http/http.h"
#include "serve/host.h"
#include "serve/key_reader.h"
#include "stages/stages.h"

const struct hs_counter_table hs_worker_counters = HS_COUNTER_TABLE(HS_WORKER_COUNTERS);
const struct hs_counter_table hs_host_counters = HS_COUNTER_TABLE(HS_HOST_COUNTERS);
const struct hs_counter_table hs_key_reader_counters = HS_COUNTER_TABLE(HS_KEY_READER_COUNTERS);

/* Appends the rows of a table; returns where its values go. They are 0. */
static uint64_t *add_table(struct hs_totals *totals, const struct hs_counter_table *table)
{
	uint64_t *values = &totals->values[totals->count];

	hs_check(totals->count + table->count <= HS_TOTALS_MAX);
	for (size_t i = 0; i < table->count; i++)
		totals->rows[totals->count++] = &table->rows[i];
	return values;
}

/* Counters of one thread in a plain struct of numbers; NULL: all 0. */
static void add_numbers(struct hs_totals *totals, const struct hs_counter_table *table,
			const void *numbers)
{
	uint64_t *values = add_table(totals, table);

	if (numbers)
		memcpy(values, numbers, table->count * sizeof *values);
}

static void add_workers(const struct hs_host *host, struct hs_totals *totals)
{
	uint64_t *core = add_table(totals, &hs_core_counters);
	uint64_t *holds = add_table(totals, &hs_hold_counters);
	uint64_t *own = add_table(totals, &hs_worker_counters);

	for (uint32_t i = 0; i < host->workers_count; i++) {
		const struct hs_core_stats *stats = hs_core_stats(host->workers[i].core);

		hs_counters_sum(&hs_core_counters, stats, core);
		hs_counters_sum(&hs_hold_counters, stats->holds, holds);
		hs_counters_sum(&hs_worker_counters, &host->workers[i].stats, own);
		for (int id = 0; id < HS_CMD_IDS_ALL; id++)
			hs_counters_sum(&hs_command_counters, &stats->command[id],
					&totals->command[id]);
	}
}

static void add_stages(const struct hs_host *host, struct hs_totals *totals)
{
	for (const struct hs_stage *const *stage = hs_stages; *stage; stage++) {
		uint64_t *values;

		if (!(*stage)->counters)
			continue;
		values = add_table(totals, (*stage)->counters);
		for (uint32_t i = 0; i < host->workers_count; i++)
			hs_counters_sum((*stage)->counters,
					hs_core_stage_stats(host->workers[i].core, *stage), values);
	}
}

void hs_totals_read(const struct hs_host *host, const struct hs_engine_stats *engine,
		    struct hs_totals *totals)
{
	memset(totals, 0, sizeof *totals);
	add_workers(host, totals);
	hs_counters_sum(&hs_host_counters, &host->stats, add_table(totals, &hs_host_counters));
	add_stages(host, totals);
	add_numbers(totals, &hs_engine_counters, engine);
	add_numbers(totals, &hs_http_counters, host->http ? hs_http_stats(host->http) : NULL);
	add_numbers(totals, &hs_key_reader_counters,
		    host->key_reader ? hs_key_reader_stats(host->key_reader) : NULL);
}

void hs_totals_subtract(struct hs_totals *totals, const struct hs_totals *baseline)
{
	for (size_t i = 0; i < totals->count; i++) {
		if (totals->rows[i]->kind == HS_COUNTER)
			totals->values[i] -= baseline->values[i];
	}
	for (int id = 0; id < HS_CMD_IDS_ALL; id++) {
		uint64_t *values = (uint64_t *)&totals->command[id];
		const uint64_t *before = (const uint64_t *)&baseline->command[id];

		for (size_t i = 0; i < hs_command_counters.count; i++) {
			if (hs_command_counters.rows[i].kind == HS_COUNTER)
				values[i] -= before[i];
		}
	}
}
