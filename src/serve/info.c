/* INFO: one row per field. A row names its section, its field and how to write its value; sections
 * that are lists of their own (commandstats, keyspace) are written by a function. */
#include "serve/host.h"

#include "base/version.h"
#include "serve/clock.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Everything the rows draw on, gathered once per INFO. */
struct facts {
	struct hs_host *host;
	struct hs_totals now;	/* as counted */
	struct hs_totals since; /* since CONFIG RESETSTAT */
	struct hs_engine_stats engine;
	struct hs_now time;
	struct utsname system;
	struct rusage usage;
	uint64_t memory_bytes, rss_bytes;
	uint64_t keys, expires, bytes_used, queued;
};

struct field {
	const char *section;
	const char *name;
	void (*write)(const struct facts *facts, struct hs_buf *text);
};

#define UINT(function, expression)                                                                 \
	static void function(const struct facts *facts, struct hs_buf *text)                       \
	{                                                                                          \
		hs_buf_printf(text, "%llu", (unsigned long long)(expression));                     \
	}
#define TEXT(function, expression)                                                                 \
	static void function(const struct facts *facts, struct hs_buf *text)                       \
	{                                                                                          \
		(void)facts;                                                                       \
		hs_buf_printf(text, "%s", expression);                                             \
	}

static uint64_t uptime_s(const struct facts *facts)
{
	return (facts->time.mono_us - facts->host->started_mono_us) / 1000000;
}

TEXT(redis_version, HS_REDIS_VERSION)
TEXT(heatsink_version, HS_VERSION)
TEXT(redis_mode, "standalone")
UINT(arch_bits, ((void)facts, sizeof(void *) * 8))
TEXT(multiplexing_api, "libuv")
UINT(process_id, ((void)facts, getpid()))
TEXT(run_id, facts->host->run_id)
UINT(tcp_port, facts->host->port)
UINT(server_time_usec, facts->time.wall_us)
UINT(uptime_in_seconds, uptime_s(facts))
UINT(uptime_in_days, uptime_s(facts) / 86400)
UINT(workers, facts->host->workers_count)
UINT(partitions, facts->host->options->partitions)
TEXT(config_file, facts->host->options->config)
TEXT(engine_name, facts->host->engine->calls->name)

static void os(const struct facts *facts, struct hs_buf *text)
{
	hs_buf_printf(text, "%s %s %s", facts->system.sysname, facts->system.release,
		      facts->system.machine);
}

UINT(connected_clients, facts->now.sessions)
UINT(maxclients, facts->host->options->maxclients)
UINT(blocked_clients, ((void)facts, 0))
UINT(requests_inflight, facts->now.inflight)

UINT(used_memory, facts->memory_bytes)
UINT(used_memory_rss, facts->rss_bytes)
UINT(used_memory_peak, facts->host->peak_memory_bytes)
UINT(maxmemory, ((void)facts, 0))
TEXT(maxmemory_policy, "noeviction")

static void used_memory_human(const struct facts *facts, struct hs_buf *text)
{
	hs_buf_printf(text, "%.2fM", (double)facts->memory_bytes / (double)HS_MIB);
}

UINT(loading, ((void)facts, 0))
TEXT(persistence_sync, facts->host->options->sync == HS_SYNC_ALWAYS ? "always" : "off")
UINT(changes_since_start, facts->engine.changes)
UINT(last_checkpoint_time, facts->engine.checkpoint_wall_s)
UINT(checkpoints, facts->engine.checkpoints)
UINT(log_bytes, facts->engine.log_bytes)
UINT(store_bytes, facts->bytes_used)
UINT(writes_queued, facts->queued)
UINT(aof_enabled, ((void)facts, 1))
TEXT(last_commit_status, facts->engine.last_error[0] ? "err" : "ok")
TEXT(last_commit_error, facts->engine.last_error)

UINT(total_connections_received, facts->since.connections)
UINT(total_commands_processed, facts->since.commands)
UINT(instantaneous_ops_per_sec, facts->host->ops_per_s)
UINT(total_net_input_bytes, facts->since.input_bytes)
UINT(total_net_output_bytes, facts->since.output_bytes)
UINT(rejected_connections, facts->since.rejected_connections)
UINT(total_error_replies, facts->since.errors)
UINT(protocol_errors, facts->since.protocol_errors)
UINT(output_limit_disconnections, facts->since.cut_output)
UINT(query_limit_disconnections, facts->since.cut_query)
UINT(expired_keys, facts->engine.expired)
UINT(evicted_keys, ((void)facts, 0))
UINT(keyspace_hits, facts->engine.hits)
UINT(keyspace_misses, facts->engine.misses)
UINT(commits, facts->engine.commits)
UINT(commit_operations, facts->engine.commit_ops)
UINT(commit_microseconds, facts->engine.commit_us)
UINT(disk_syncs, facts->engine.syncs)
UINT(store_full_errors, facts->engine.full_errors)

TEXT(role, "master")
UINT(connected_slaves, ((void)facts, 0))
UINT(cluster_enabled, ((void)facts, 0))

static void cpu_seconds(struct timeval time, struct hs_buf *text)
{
	hs_buf_printf(text, "%ld.%06ld", (long)time.tv_sec, (long)time.tv_usec);
}

static void used_cpu_sys(const struct facts *facts, struct hs_buf *text)
{
	cpu_seconds(facts->usage.ru_stime, text);
}

static void used_cpu_user(const struct facts *facts, struct hs_buf *text)
{
	cpu_seconds(facts->usage.ru_utime, text);
}

static const struct field fields[] = {
	{"Server", "redis_version", redis_version},
	{"Server", "heatsink_version", heatsink_version},
	{"Server", "redis_mode", redis_mode},
	{"Server", "os", os},
	{"Server", "arch_bits", arch_bits},
	{"Server", "multiplexing_api", multiplexing_api},
	{"Server", "process_id", process_id},
	{"Server", "run_id", run_id},
	{"Server", "tcp_port", tcp_port},
	{"Server", "server_time_usec", server_time_usec},
	{"Server", "uptime_in_seconds", uptime_in_seconds},
	{"Server", "uptime_in_days", uptime_in_days},
	{"Server", "workers", workers},
	{"Server", "partitions", partitions},
	{"Server", "engine", engine_name},
	{"Server", "config_file", config_file},
	{"Clients", "connected_clients", connected_clients},
	{"Clients", "maxclients", maxclients},
	{"Clients", "blocked_clients", blocked_clients},
	{"Clients", "requests_inflight", requests_inflight},
	{"Memory", "used_memory", used_memory},
	{"Memory", "used_memory_human", used_memory_human},
	{"Memory", "used_memory_rss", used_memory_rss},
	{"Memory", "used_memory_peak", used_memory_peak},
	{"Memory", "maxmemory", maxmemory},
	{"Memory", "maxmemory_policy", maxmemory_policy},
	{"Persistence", "loading", loading},
	{"Persistence", "sync", persistence_sync},
	{"Persistence", "aof_enabled", aof_enabled},
	{"Persistence", "changes_since_start", changes_since_start},
	{"Persistence", "checkpoints", checkpoints},
	{"Persistence", "last_checkpoint_time", last_checkpoint_time},
	{"Persistence", "log_bytes", log_bytes},
	{"Persistence", "store_bytes", store_bytes},
	{"Persistence", "writes_queued", writes_queued},
	{"Persistence", "last_commit_status", last_commit_status},
	{"Persistence", "last_commit_error", last_commit_error},
	{"Stats", "total_connections_received", total_connections_received},
	{"Stats", "total_commands_processed", total_commands_processed},
	{"Stats", "instantaneous_ops_per_sec", instantaneous_ops_per_sec},
	{"Stats", "total_net_input_bytes", total_net_input_bytes},
	{"Stats", "total_net_output_bytes", total_net_output_bytes},
	{"Stats", "rejected_connections", rejected_connections},
	{"Stats", "total_error_replies", total_error_replies},
	{"Stats", "protocol_errors", protocol_errors},
	{"Stats", "output_limit_disconnections", output_limit_disconnections},
	{"Stats", "query_limit_disconnections", query_limit_disconnections},
	{"Stats", "expired_keys", expired_keys},
	{"Stats", "evicted_keys", evicted_keys},
	{"Stats", "keyspace_hits", keyspace_hits},
	{"Stats", "keyspace_misses", keyspace_misses},
	{"Stats", "commits", commits},
	{"Stats", "commit_operations", commit_operations},
	{"Stats", "commit_microseconds", commit_microseconds},
	{"Stats", "disk_syncs", disk_syncs},
	{"Stats", "store_full_errors", store_full_errors},
	{"Replication", "role", role},
	{"Replication", "connected_slaves", connected_slaves},
	{"CPU", "used_cpu_sys", used_cpu_sys},
	{"CPU", "used_cpu_user", used_cpu_user},
	{"Cluster", "cluster_enabled", cluster_enabled},
};

static void write_fields(const struct facts *facts, const char *section, struct hs_buf *text)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
		if (strcmp(fields[i].section, section) != 0)
			continue;
		hs_buf_printf(text, "%s:", fields[i].name);
		fields[i].write(facts, text);
		hs_buf_append(text, "\r\n", 2);
	}
}

static void write_commandstats(const struct facts *facts, const char *section, struct hs_buf *text)
{
	(void)section;
	for (int id = HS_CMD_ID_NONE + 1; id < HS_CMD_IDS; id++) {
		uint64_t calls = facts->since.command[id].calls;
		uint64_t rejected = facts->since.command[id].rejected;
		uint64_t usec = facts->since.command[id].time_ns / 1000;

		if (calls == 0 && rejected == 0)
			continue;
		hs_buf_printf(text,
			      "cmdstat_%s:calls=%llu,usec=%llu,usec_per_call=%.2f,"
			      "rejected_calls=%llu,failed_calls=%llu\r\n",
			      hs_command_by_id((enum hs_command_id)id)->name,
			      (unsigned long long)calls, (unsigned long long)usec,
			      calls ? (double)usec / (double)calls : 0.0,
			      (unsigned long long)rejected,
			      (unsigned long long)facts->since.command[id].failed);
	}
}

static void write_keyspace(const struct facts *facts, const char *section, struct hs_buf *text)
{
	(void)section;
	if (facts->keys > 0)
		hs_buf_printf(text, "db0:keys=%llu,expires=%llu,avg_ttl=0\r\n",
			      (unsigned long long)facts->keys, (unsigned long long)facts->expires);
}

static const struct {
	const char *name;
	bool by_default;
	void (*write)(const struct facts *facts, const char *section, struct hs_buf *text);
} sections[] = {
	{"Server", true, write_fields},	 {"Clients", true, write_fields},
	{"Memory", true, write_fields},	 {"Persistence", true, write_fields},
	{"Stats", true, write_fields},	 {"Replication", true, write_fields},
	{"CPU", true, write_fields},	 {"Commandstats", false, write_commandstats},
	{"Cluster", true, write_fields}, {"Keyspace", true, write_keyspace},
};

void hs_info_totals(const struct hs_host *host, struct hs_totals *totals)
{
	*totals = (struct hs_totals){.rejected_connections = host->rejected_connections};
	for (uint32_t i = 0; i < host->workers_count; i++) {
		const struct hs_core_stats *stats = hs_core_stats(host->workers[i].core);

		totals->sessions += hs_counter_get(&stats->sessions);
		totals->connections += hs_counter_get(&stats->connections);
		totals->commands += hs_counter_get(&stats->commands);
		totals->input_bytes += hs_counter_get(&stats->input_bytes);
		totals->output_bytes += hs_counter_get(&stats->output_bytes);
		totals->errors += hs_counter_get(&stats->errors);
		totals->cut_output += hs_counter_get(&stats->cut_output);
		totals->cut_query += hs_counter_get(&stats->cut_query);
		totals->protocol_errors += hs_counter_get(&stats->protocol_errors);
		totals->inflight += hs_counter_get(&stats->inflight);
		for (int id = 0; id < HS_CMD_IDS; id++) {
			const struct hs_core_command_stats *command = &stats->command[id];

			totals->command[id].calls += hs_counter_get(&command->calls);
			totals->command[id].time_ns += hs_counter_get(&command->time_ns);
			totals->command[id].rejected += hs_counter_get(&command->rejected);
			totals->command[id].failed += hs_counter_get(&command->failed);
		}
	}
}

/* What was counted since CONFIG RESETSTAT. */
static void subtract_baseline(struct facts *facts)
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
	since->cut_query -= base->cut_query;
	since->protocol_errors -= base->protocol_errors;
	for (int id = 0; id < HS_CMD_IDS; id++) {
		since->command[id].calls -= base->command[id].calls;
		since->command[id].time_ns -= base->command[id].time_ns;
		since->command[id].rejected -= base->command[id].rejected;
		since->command[id].failed -= base->command[id].failed;
	}
}

static uint64_t resident_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long long total = 0, resident = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	fclose(file);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void gather(struct hs_host *host, struct facts *facts)
{
	struct mallinfo2 heap = mallinfo2();
	uint16_t partitions = host->engine->calls->partitions(host->engine);

	memset(facts, 0, sizeof *facts);
	facts->host = host;
	facts->time = hs_clock_now();
	uname(&facts->system);
	getrusage(RUSAGE_SELF, &facts->usage);
	facts->memory_bytes = heap.uordblks + heap.hblkhd;
	facts->rss_bytes = resident_bytes();
	if (facts->memory_bytes > host->peak_memory_bytes)
		host->peak_memory_bytes = facts->memory_bytes;
	hs_info_totals(host, &facts->now);
	host->engine->calls->stats(host->engine, &facts->engine);
	subtract_baseline(facts);
	for (uint16_t i = 0; i < partitions; i++) {
		struct hs_engine_partition partition;

		host->engine->calls->partition_stats(host->engine, i, &partition);
		facts->keys += partition.keys;
		facts->expires += partition.expires;
		facts->bytes_used += partition.bytes_used;
		facts->queued += partition.queued;
	}
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

void hs_info_compose(struct hs_host *host, size_t argc, const struct hs_bytes *argv,
		     struct hs_buf *text)
{
	struct facts facts;

	gather(host, &facts);
	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		if (!wanted(argc, argv, sections[i].name, sections[i].by_default))
			continue;
		if (text->len > 0)
			hs_buf_append(text, "\r\n", 2);
		hs_buf_printf(text, "# %s\r\n", sections[i].name);
		sections[i].write(&facts, sections[i].name, text);
	}
}
