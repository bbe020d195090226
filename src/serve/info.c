/* INFO: gathers the facts and writes the sections asked for. Fields are rows (info_rows.c); sections
 * that are lists of their own (commandstats, keyspace) are written by a function. */
#include "serve/info.h"

#include "serve/clock.h"
#include "serve/rule_rows.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

/* The heap is counted under its locks: not more often than this, however many ask. */
enum { MEMORY_US = 100000 };

static void write_fields(const struct hs_info_facts *facts, const char *section,
			 struct hs_buf *text)
{
	for (size_t i = 0; i < hs_info_rows_count; i++) {
		const struct hs_info_row *row = &hs_info_rows[i];

		if (!row->section || strcmp(row->section, section) != 0 ||
		    (row->known && !row->known(facts)))
			continue;
		hs_buf_printf(text, "%s:", row->name);
		row->write(facts, text);
		hs_buf_append(text, "\r\n", 2);
	}
}

const char *hs_info_command_name(const struct hs_host *host, int id)
{
	const char *learned;

	if (id < HS_CMD_IDS)
		return hs_command_by_id((enum hs_command_id)id)->name;
	learned = hs_learned_name(host->learned, (unsigned)id);
	return learned ? learned : "unknown";
}

static void write_commandstats(const struct hs_info_facts *facts, const char *section,
			       struct hs_buf *text)
{
	(void)section;
	for (int id = HS_CMD_ID_NONE + 1; id < HS_CMD_IDS_ALL; id++) {
		uint64_t calls = facts->since.command[id].calls;
		uint64_t rejected = facts->since.command[id].rejected;
		uint64_t usec = facts->since.command[id].time_ns / 1000;

		if (calls == 0 && rejected == 0)
			continue;
		hs_buf_printf(text,
			      "cmdstat_%s:calls=%llu,usec=%llu,usec_per_call=%.2f,"
			      "rejected_calls=%llu,failed_calls=%llu\r\n",
			      hs_info_command_name(facts->host, id), (unsigned long long)calls,
			      (unsigned long long)usec, calls ? (double)usec / (double)calls : 0.0,
			      (unsigned long long)rejected,
			      (unsigned long long)facts->since.command[id].failed);
	}
}

static void write_keyspace(const struct hs_info_facts *facts, const char *section,
			   struct hs_buf *text)
{
	(void)section;
	if (facts->keys > 0)
		hs_buf_printf(text, "db0:keys=%llu,expires=%llu,avg_ttl=0\r\n",
			      (unsigned long long)facts->keys, (unsigned long long)facts->expires);
}

static void write_rules(const struct hs_info_facts *facts, const char *section, struct hs_buf *text)
{
	(void)section;
	hs_rule_rows_info(facts->host, text);
}

/* clang-format off */
static const struct {
	const char *name;
	bool by_default;
	void (*write)(const struct hs_info_facts *facts, const char *section, struct hs_buf *text);
} sections[] = {
	{"Server", true, write_fields},
	{"Clients", true, write_fields},
	{"Memory", true, write_fields},
	{"Persistence", true, write_fields},
	{"Stats", true, write_fields},
	{"Replication", true, write_fields},
	{"CPU", true, write_fields},
	{"Engine", true, write_fields},
	{"Http", true, write_fields},
	{"Rules", true, write_rules},
	{"Commandstats", false, write_commandstats},
	{"Cluster", true, write_fields},
	{"Keyspace", true, write_keyspace},
};
/* clang-format on */

void hs_info_totals(const struct hs_host *host, struct hs_totals *totals)
{
	*totals = (struct hs_totals){
		.rejected_connections = hs_counter_get(&host->rejected_connections),
	};
	for (uint32_t i = 0; i < host->workers_count; i++) {
		const struct hs_core_stats *stats = hs_core_stats(host->workers[i].core);

		totals->sessions += hs_counter_get(&stats->sessions);
		totals->connections += hs_counter_get(&stats->connections);
		totals->commands += hs_counter_get(&stats->commands);
		totals->input_bytes += hs_counter_get(&stats->input_bytes);
		totals->output_bytes += hs_counter_get(&stats->output_bytes);
		totals->errors += hs_counter_get(&stats->errors);
		totals->cut_output += hs_counter_get(&stats->cut_output);
		for (int why = 0; why < HS_HOLDS; why++)
			totals->holds[why] += hs_counter_get(&stats->holds[why]);
		totals->cut_query += hs_counter_get(&stats->cut_query);
		totals->tracking_clients += hs_counter_get(&stats->tracking_clients);
		totals->tracking_keys += hs_counter_get(&stats->tracking_keys);
		totals->tracking_items += hs_counter_get(&stats->tracking_items);
		totals->tracking_prefixes += hs_counter_get(&stats->tracking_prefixes);
		totals->tracking_messages += hs_counter_get(&stats->tracking_messages);
		totals->tracking_evicted += hs_counter_get(&stats->tracking_evicted);
		totals->cache_keys += hs_counter_get(&stats->cache_keys);
		totals->cache_replies += hs_counter_get(&stats->cache_replies);
		totals->cache_bytes += hs_counter_get(&stats->cache_bytes);
		totals->cache_evicted += hs_counter_get(&stats->cache_evicted);
		totals->cache_too_large += hs_counter_get(&stats->cache_too_large);
		totals->hot_keys += hs_counter_get(&stats->hot_keys);
		totals->hot_keys_full += hs_counter_get(&stats->hot_keys_full);
		totals->fold_keys += hs_counter_get(&stats->fold_keys);
		totals->fold_waiting += hs_counter_get(&stats->fold_waiting);
		totals->fold_requests += hs_counter_get(&stats->fold_requests);
		totals->fold_commands += hs_counter_get(&stats->fold_commands);
		totals->fold_again += hs_counter_get(&stats->fold_again);
		totals->fold_busy += hs_counter_get(&stats->fold_busy);
		totals->copies_keys += hs_counter_get(&stats->copies_keys);
		totals->copies_made += hs_counter_get(&stats->copies_made);
		totals->copies_failed += hs_counter_get(&stats->copies_failed);
		totals->copies_ended += hs_counter_get(&stats->copies_ended);
		totals->copies_reads += hs_counter_get(&stats->copies_reads);
		totals->copies_again += hs_counter_get(&stats->copies_again);
		totals->protocol_errors += hs_counter_get(&stats->protocol_errors);
		totals->subscriptions += hs_counter_get(&stats->subscriptions);
		totals->messages += hs_counter_get(&stats->messages);
		totals->inflight += hs_counter_get(&stats->inflight);
		totals->news_dropped +=
			atomic_load_explicit(&host->workers[i].news.dropped, memory_order_relaxed);
		totals->blocked += hs_counter_get(&stats->blocked);
		totals->tls_clients += hs_counter_get(&host->workers[i].tls_clients);
		totals->tls_failures += hs_counter_get(&host->workers[i].tls_failures);
		for (int id = 0; id < HS_CMD_IDS_ALL; id++) {
			const struct hs_core_command_stats *command = &stats->command[id];

			totals->command[id].calls += hs_counter_get(&command->calls);
			totals->command[id].time_ns += hs_counter_get(&command->time_ns);
			totals->command[id].rejected += hs_counter_get(&command->rejected);
			totals->command[id].failed += hs_counter_get(&command->failed);
		}
	}
}

/* What was counted since CONFIG RESETSTAT. */
static void subtract_baseline(struct hs_info_facts *facts)
{
	const struct hs_totals *base = &facts->host->baseline;
	struct hs_totals *since = &facts->since;

	*since = facts->now;
	since->connections -= base->connections;
	since->rejected_connections -= base->rejected_connections;
	since->commands -= base->commands;
	since->input_bytes -= base->input_bytes;
	since->output_bytes -= base->output_bytes;
	since->errors -= base->errors;
	since->cut_output -= base->cut_output;
	for (int why = 0; why < HS_HOLDS; why++)
		since->holds[why] -= base->holds[why];
	since->cut_query -= base->cut_query;
	since->news_dropped -= base->news_dropped;
	since->tracking_messages -= base->tracking_messages;
	since->tracking_evicted -= base->tracking_evicted;
	since->hot_keys_full -= base->hot_keys_full;
	since->fold_requests -= base->fold_requests;
	since->fold_commands -= base->fold_commands;
	since->fold_again -= base->fold_again;
	since->fold_busy -= base->fold_busy;
	since->cache_evicted -= base->cache_evicted;
	since->cache_too_large -= base->cache_too_large;
	since->copies_made -= base->copies_made;
	since->copies_failed -= base->copies_failed;
	since->copies_ended -= base->copies_ended;
	since->copies_reads -= base->copies_reads;
	since->copies_again -= base->copies_again;
	since->protocol_errors -= base->protocol_errors;
	since->tls_failures -= base->tls_failures;
	since->messages -= base->messages;
	for (int id = 0; id < HS_CMD_IDS_ALL; id++) {
		since->command[id].calls -= base->command[id].calls;
		since->command[id].time_ns -= base->command[id].time_ns;
		since->command[id].rejected -= base->command[id].rejected;
		since->command[id].failed -= base->command[id].failed;
	}
}

static void gather_pages(struct hs_info_facts *facts)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long total = 0, resident = 0;

	if (!file)
		return;
	if (fscanf(file, "%llu %llu", &total, &resident) == 2) {
		facts->virtual_bytes = total * (uint64_t)sysconf(_SC_PAGESIZE);
		facts->rss_bytes = resident * (uint64_t)sysconf(_SC_PAGESIZE);
	}
	fclose(file);
}

static void gather_heap(struct hs_host *host, uint64_t now_us)
{
	struct mallinfo2 heap;

	if (host->memory_us > 0 && now_us < host->memory_us + MEMORY_US)
		return;
	heap = mallinfo2();
	host->memory_us = now_us;
	host->memory_bytes = heap.uordblks + heap.hblkhd;
	if (host->memory_bytes > host->peak_memory_bytes)
		host->peak_memory_bytes = host->memory_bytes;
}

static void gather_partitions(struct hs_info_facts *facts)
{
	struct hs_engine *engine = facts->host->engine;
	uint16_t partitions = engine->calls->partitions(engine);

	for (uint16_t i = 0; i < partitions; i++) {
		struct hs_engine_partition partition;

		engine->calls->partition_stats(engine, i, &partition);
		facts->keys += partition.keys;
		facts->expires += partition.expires;
		facts->bytes_used += partition.bytes_used;
		facts->queued += partition.queued;
	}
}

void hs_info_gather(struct hs_host *host, struct hs_info_facts *facts)
{
	memset(facts, 0, sizeof *facts);
	facts->host = host;
	facts->time = hs_clock_now();
	uname(&facts->system);
	getrusage(RUSAGE_SELF, &facts->usage);
	gather_pages(facts);
	gather_heap(host, facts->time.mono_us);
	hs_info_totals(host, &facts->now);
	host->engine->calls->stats(host->engine, &facts->engine);
	subtract_baseline(facts);
	gather_partitions(facts);
	if (host->http)
		facts->http = *hs_http_stats(host->http);
	if (host->fetch)
		facts->fetch = *hs_fetch_stats(host->fetch);
}

static bool wanted(size_t argc, const struct hs_bytes *argv, const char *name, bool by_default)
{
	if (argc == 1)
		return by_default;
	for (size_t i = 1; i < argc; i++) {
		if (hs_bytes_is_word(argv[i], name) || hs_bytes_is_word(argv[i], "all") ||
		    hs_bytes_is_word(argv[i], "everything") ||
		    (by_default && hs_bytes_is_word(argv[i], "default")))
			return true;
	}
	return false;
}

bool hs_info_asks_keyspace(size_t argc, const struct hs_bytes *argv)
{
	return wanted(argc, argv, "Keyspace", true);
}

void hs_info_compose(struct hs_host *host, size_t argc, const struct hs_bytes *argv,
		     struct hs_buf *text)
{
	struct hs_info_facts facts;

	hs_info_gather(host, &facts);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		if (!wanted(argc, argv, sections[i].name, sections[i].by_default))
			continue;
		if (text->len > 0)
			hs_buf_append(text, "\r\n", 2);
		hs_buf_printf(text, "# %s\r\n", sections[i].name);
		sections[i].write(&facts, sections[i].name, text);
	}
}
