#include "serve/info.h"

#include "base/version.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UINT(function, expression)                                                                 \
	static void function(const struct hs_info_facts *facts, struct hs_buf *text)               \
	{                                                                                          \
		hs_buf_printf(text, "%llu", (unsigned long long)(expression));                     \
	}
#define TEXT(function, expression)                                                                 \
	static void function(const struct hs_info_facts *facts, struct hs_buf *text)               \
	{                                                                                          \
		(void)facts;                                                                       \
		hs_buf_printf(text, "%s", expression);                                             \
	}

static uint64_t uptime_s(const struct hs_info_facts *facts)
{
	return (facts->time.mono_us - facts->host->started_mono_us) / 1000000;
}

static uint64_t partitions_of(const struct hs_host *host)
{
	const struct hs_slot_map *slots = host->engine->slots;

	return slots ? hs_slot_map_count(slots) : (uint64_t)host->options->partitions;
}

TEXT(redis_version, HS_REDIS_VERSION)
TEXT(heatsink_version, HS_VERSION)
TEXT(redis_mode, "cluster")
UINT(arch_bits, ((void)facts, sizeof(void *) * 8))
TEXT(multiplexing_api, "libuv")
UINT(process_id, ((void)facts, getpid()))
TEXT(run_id, facts->host->run_id)
/* As Redis: where it can be reached. */
UINT(tcp_port, facts->host->port ? facts->host->port : facts->host->tls_port)
UINT(tls_port, facts->host->tls_port)
UINT(server_time_usec, facts->time.wall_us)
UINT(uptime_in_seconds, uptime_s(facts))
UINT(uptime_in_days, uptime_s(facts) / 86400)
UINT(workers, facts->host->workers_count)
UINT(partitions, partitions_of(facts->host))
TEXT(config_file, facts->host->options->config)
TEXT(engine_name, facts->host->engine->calls->name)

static void os(const struct hs_info_facts *facts, struct hs_buf *text)
{
	hs_buf_printf(text, "%s %s %s", facts->system.sysname, facts->system.release,
		      facts->system.machine);
}

UINT(connected_clients, facts->now.sessions)
UINT(tls_clients, facts->now.tls_clients)
UINT(maxclients, facts->host->options->maxclients)
UINT(blocked_clients, facts->now.blocked)
UINT(requests_inflight, facts->now.inflight)

UINT(used_memory, facts->host->memory_bytes)
UINT(used_memory_rss, facts->rss_bytes)
UINT(used_memory_peak, facts->host->peak_memory_bytes)
UINT(memory_returns, facts->host->memory.returns)
UINT(maxmemory, facts->engine.servers.maxmemory)
TEXT(maxmemory_policy, facts->engine.servers.maxmemory_policy)

/* The servers behind an engine do not tell, or do not agree. */
static bool knows_maxmemory(const struct hs_info_facts *facts)
{
	return facts->engine.servers.maxmemory >= 0;
}

static bool knows_maxmemory_policy(const struct hs_info_facts *facts)
{
	return facts->engine.servers.maxmemory_policy[0] != '\0';
}

static bool knows_aof_enabled(const struct hs_info_facts *facts)
{
	return facts->engine.servers.aof_enabled >= 0;
}

/* What an engine with servers behind it does not count. */
static bool is_embedded(const struct hs_info_facts *facts)
{
	return !facts->host->engine->options;
}

static void used_memory_human(const struct hs_info_facts *facts, struct hs_buf *text)
{
	hs_buf_printf(text, "%.2fM", (double)facts->host->memory_bytes / (double)HS_MIB);
}

UINT(loading, ((void)facts, 0))
TEXT(persistence_sync, facts->host->options->sync == HS_SYNC_ALWAYS ? "always" : "off")
UINT(changes_since_start, facts->engine.changes)
UINT(last_checkpoint_time, facts->engine.checkpoint_wall_s)
UINT(checkpoints, facts->engine.checkpoints)
UINT(log_bytes, facts->engine.log_bytes)
UINT(store_bytes, facts->bytes_used)
UINT(writes_queued, facts->queued)
UINT(aof_enabled, facts->engine.servers.aof_enabled)
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
UINT(tls_handshake_failures, facts->since.tls_failures)
UINT(output_limit_disconnections, facts->since.cut_output)
UINT(held_own_commands, facts->since.holds[HS_HOLD_OWN])
UINT(held_pipeline_limit, facts->since.holds[HS_HOLD_PIPELINE])
UINT(held_by_stage, facts->since.holds[HS_HOLD_STAGE])
UINT(held_pause, facts->since.holds[HS_HOLD_PAUSE])
UINT(held_engine_inflight_bytes, facts->since.holds[HS_HOLD_INFLIGHT])
UINT(held_debug_sleep, facts->since.holds[HS_HOLD_SLEEP])
UINT(query_limit_disconnections, facts->since.cut_query)
UINT(news_dropped, facts->since.news_dropped)
UINT(tracking_clients, facts->now.tracking_clients)
UINT(tracking_total_keys, facts->now.tracking_keys)
UINT(tracking_total_items, facts->now.tracking_items)
UINT(tracking_total_prefixes, facts->now.tracking_prefixes)
UINT(tracking_messages, facts->since.tracking_messages)
UINT(tracking_evicted_keys, facts->since.tracking_evicted)
UINT(cache_keys, facts->now.cache_keys)
UINT(cache_replies, facts->now.cache_replies)
UINT(cache_bytes, facts->now.cache_bytes)
UINT(cache_evicted_keys, facts->since.cache_evicted)
UINT(cache_too_large, facts->since.cache_too_large)
UINT(hot_keys, facts->now.hot_keys)
UINT(hot_keys_full, facts->since.hot_keys_full)
UINT(fold_keys, facts->now.fold_keys)
UINT(fold_waiting, facts->now.fold_waiting)
UINT(fold_requests, facts->since.fold_requests)
UINT(fold_commands, facts->since.fold_commands)
UINT(fold_again, facts->since.fold_again)
UINT(fold_busy, facts->since.fold_busy)
UINT(copies_keys, facts->now.copies_keys)
UINT(copies_made, facts->since.copies_made)
UINT(copies_failed, facts->since.copies_failed)
UINT(copies_ended, facts->since.copies_ended)
UINT(copies_reads, facts->since.copies_reads)
UINT(copies_again, facts->since.copies_again)
UINT(pubsub_subscriptions, facts->now.subscriptions)
UINT(pubsub_messages, facts->since.messages)
UINT(expired_keys, facts->engine.expired)
UINT(evicted_keys, ((void)facts, 0))
UINT(keyspace_hits, facts->engine.hits)
UINT(keyspace_misses, facts->engine.misses)
UINT(commits, facts->engine.commits)
UINT(commit_operations, facts->engine.commit_ops)
UINT(commit_microseconds, facts->engine.commit_us)
UINT(store_writes, facts->engine.store_writes)
UINT(disk_syncs, facts->engine.syncs)
UINT(store_full_errors, facts->engine.full_errors)
UINT(damaged_reads, facts->engine.damaged)
UINT(large_reads_lent, facts->engine.lent)

TEXT(engine_where, facts->host->engine->where ? facts->host->engine->where : "")
TEXT(engine_trouble, facts->engine.trouble)
UINT(engine_troubled, facts->engine.trouble[0] != '\0')
UINT(engine_connections, facts->engine.connections)
UINT(engine_private_connections, facts->engine.own)
UINT(engine_connects, facts->engine.connects)
UINT(engine_failures, facts->engine.failures)
UINT(engine_moved, facts->engine.moved)
UINT(engine_asked, facts->engine.asked)
UINT(engine_again, facts->engine.again)
UINT(engine_unknown, facts->engine.unknown)
UINT(engine_refused, facts->engine.refused)

TEXT(role, "master")
UINT(connected_slaves, ((void)facts, 0))
UINT(cluster_enabled, ((void)facts, 1))

static void cpu_seconds(struct timeval time, struct hs_buf *text)
{
	hs_buf_printf(text, "%ld.%06ld", (long)time.tv_sec, (long)time.tv_usec);
}

static void used_cpu_sys(const struct hs_info_facts *facts, struct hs_buf *text)
{
	cpu_seconds(facts->usage.ru_stime, text);
}

static void used_cpu_user(const struct hs_info_facts *facts, struct hs_buf *text)
{
	cpu_seconds(facts->usage.ru_utime, text);
}

UINT(http_port, facts->host->http_port)
UINT(http_connections, facts->http.connections)
UINT(http_requests, facts->http.requests)
UINT(http_errors, facts->http.errors)
UINT(http_refused, facts->http.refused)
UINT(http_idle_closed, facts->http.idle_closed)
UINT(http_timeouts, facts->http.timeouts)
UINT(http_kv_requests, facts->fetch.requests)
UINT(http_kv_not_modified, facts->http.not_modified)
UINT(http_kv_waiting, facts->fetch.waiting)
UINT(http_kv_refused, facts->fetch.refused)
UINT(http_kv_timeouts, facts->fetch.timeouts)

/* Entries of a folder as the system lists them. */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t len; /* of this entry: the next one stands behind it */
};

/* Asked of the system itself: a directory stream of the C library would come from the heap, for every
 * scrape. */
static uint64_t count_open_files(void)
{
	_Alignas(struct entry) char list[4096];
	long folder = syscall(SYS_openat, AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY), len;
	uint64_t count = 0;

	if (folder < 0)
		return 0;
	while ((len = syscall(SYS_getdents64, folder, list, sizeof list)) > 0) {
		for (long at = 0; at < len; count++) {
			struct entry entry;

			memcpy(&entry, list + at, offsetof(struct entry, len) + sizeof entry.len);
			at += entry.len;
		}
	}
	syscall(SYS_close, folder);
	return count - 3; /* the folder itself, and the two that every folder has */
}

static uint64_t limit_of_files(void)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

UINT(keys, facts->keys)
UINT(expires, facts->expires)
UINT(last_commit_failed, facts->engine.last_error[0] != '\0')
UINT(virtual_memory, facts->virtual_bytes)
UINT(open_files, ((void)facts, count_open_files()))
UINT(open_files_max, ((void)facts, limit_of_files()))

static void start_time(const struct hs_info_facts *facts, struct hs_buf *text)
{
	int64_t started_us = facts->host->started_wall_us;

	hs_buf_printf(text, "%lld.%06lld", (long long)(started_us / 1000000),
		      (long long)(started_us % 1000000));
}

#define SHOW(section_, name_, function) .section = (section_), .name = (name_), .write = (function)

/* clang-format off */
const struct hs_info_row hs_info_rows[] = {
	{SHOW("Server", "redis_version", redis_version)},
	{SHOW("Server", "heatsink_version", heatsink_version)},
	{SHOW("Server", "redis_mode", redis_mode)},
	{SHOW("Server", "os", os)},
	{SHOW("Server", "arch_bits", arch_bits)},
	{SHOW("Server", "multiplexing_api", multiplexing_api)},
	{SHOW("Server", "process_id", process_id)},
	{SHOW("Server", "run_id", run_id)},
	{SHOW("Server", "tcp_port", tcp_port)},
	{SHOW("Server", "tls_port", tls_port)},
	{SHOW("Server", "server_time_usec", server_time_usec)},
	{SHOW("Server", "uptime_in_seconds", uptime_in_seconds),
	 .metric = "uptime_seconds", .type = "gauge",
	 .help = "Time since the start"},
	{SHOW("Server", "uptime_in_days", uptime_in_days)},
	{SHOW("Server", "workers", workers),
	 .metric = "workers", .type = "gauge",
	 .help = "Threads that serve clients"},
	{SHOW("Server", "partitions", partitions),
	 .metric = "partitions", .type = "gauge",
	 .help = "Partitions of the data"},
	{SHOW("Server", "engine", engine_name)},
	{SHOW("Server", "config_file", config_file)},
	{SHOW("Clients", "connected_clients", connected_clients),
	 .metric = "connected_clients", .type = "gauge",
	 .help = "Clients connected now"},
	{SHOW("Clients", "tls_clients", tls_clients),
	 .metric = "tls_clients", .type = "gauge",
	 .help = "Clients connected now that speak TLS"},
	{SHOW("Clients", "maxclients", maxclients),
	 .metric = "maxclients", .type = "gauge",
	 .help = "The most clients that may be connected"},
	{SHOW("Clients", "blocked_clients", blocked_clients),
	 .metric = "blocked_clients", .type = "gauge",
	 .help = "Clients that wait for what others do, or for CLIENT PAUSE to end"},
	{SHOW("Clients", "tracking_clients", tracking_clients),
	 .metric = "tracking_clients", .type = "gauge",
	 .help = "Clients that track keys (CLIENT TRACKING)"},
	{SHOW("Clients", "requests_inflight", requests_inflight),
	 .metric = "requests_inflight", .type = "gauge",
	 .help = "Requests that wait for an engine now"},
	{SHOW("Memory", "used_memory", used_memory),
	 .metric = "used_memory_bytes", .type = "gauge",
	 .help = "Memory in use on the heap"},
	{SHOW("Memory", "used_memory_human", used_memory_human)},
	{SHOW("Memory", "used_memory_rss", used_memory_rss),
	 .metric = "process_resident_memory_bytes", .type = "gauge",
	 .help = "Memory of the process that is in RAM"},
	{SHOW("Memory", "used_memory_peak", used_memory_peak),
	 .metric = "used_memory_peak_bytes", .type = "gauge",
	 .help = "The most that used_memory_bytes was seen to be"},
	{SHOW("Memory", "memory_returns", memory_returns),
	 .metric = "memory_returns_total", .type = "counter",
	 .help = "Times that memory was given back to the system after a burst"},
	{SHOW("Memory", "maxmemory", maxmemory), .known = knows_maxmemory},
	{SHOW("Memory", "maxmemory_policy", maxmemory_policy), .known = knows_maxmemory_policy},
	{SHOW("Persistence", "loading", loading)},
	{SHOW("Persistence", "sync", persistence_sync), .known = is_embedded},
	{SHOW("Persistence", "aof_enabled", aof_enabled), .known = knows_aof_enabled},
	{SHOW("Persistence", "changes_since_start", changes_since_start), .known = is_embedded,
	 .metric = "changes_total", .type = "counter",
	 .help = "Changes to keys since the start"},
	{SHOW("Persistence", "checkpoints", checkpoints), .known = is_embedded,
	 .metric = "checkpoints_total", .type = "counter",
	 .help = "Checkpoints written"},
	{SHOW("Persistence", "last_checkpoint_time", last_checkpoint_time), .known = is_embedded,
	 .metric = "last_checkpoint_timestamp_seconds", .type = "gauge",
	 .help = "When the last checkpoint ended"},
	{SHOW("Persistence", "log_bytes", log_bytes), .known = is_embedded,
	 .metric = "log_bytes", .type = "gauge",
	 .help = "Bytes in the redo log that no checkpoint covers yet"},
	{SHOW("Persistence", "store_bytes", store_bytes), .known = is_embedded,
	 .metric = "store_bytes", .type = "gauge",
	 .help = "Bytes that the data takes on disk"},
	{SHOW("Persistence", "writes_queued", writes_queued),
	 .metric = "writes_queued", .type = "gauge",
	 .help = "Writes that wait for the committer"},
	{SHOW("Persistence", "last_commit_status", last_commit_status), .known = is_embedded},
	{SHOW("Persistence", "last_commit_error", last_commit_error), .known = is_embedded},
	{SHOW("Stats", "total_connections_received", total_connections_received),
	 .metric = "connections_received_total", .type = "counter",
	 .help = "Client connections accepted"},
	{SHOW("Stats", "total_commands_processed", total_commands_processed),
	 .metric = "commands_processed_total", .type = "counter",
	 .help = "Commands run"},
	{SHOW("Stats", "instantaneous_ops_per_sec", instantaneous_ops_per_sec)},
	{SHOW("Stats", "total_net_input_bytes", total_net_input_bytes),
	 .metric = "net_input_bytes_total", .type = "counter",
	 .help = "Bytes received from clients"},
	{SHOW("Stats", "total_net_output_bytes", total_net_output_bytes),
	 .metric = "net_output_bytes_total", .type = "counter",
	 .help = "Bytes sent to clients"},
	{SHOW("Stats", "rejected_connections", rejected_connections),
	 .metric = "rejected_connections_total", .type = "counter",
	 .help = "Client connections refused because of maxclients"},
	{SHOW("Stats", "total_error_replies", total_error_replies),
	 .metric = "error_replies_total", .type = "counter",
	 .help = "Commands answered with an error"},
	{SHOW("Stats", "protocol_errors", protocol_errors),
	 .metric = "protocol_errors_total", .type = "counter",
	 .help = "Clients cut off because they did not speak RESP"},
	{SHOW("Stats", "tls_handshake_failures", tls_handshake_failures),
	 .metric = "tls_handshake_failures_total", .type = "counter",
	 .help = "TLS handshakes of clients that came to nothing"},
	{SHOW("Stats", "output_limit_disconnections", output_limit_disconnections),
	 .metric = "output_limit_disconnections_total", .type = "counter",
	 .help = "Clients cut off because they did not read their replies"},
	{SHOW("Stats", "held_own_commands", held_own_commands),
	 .metric = "held_own_commands_total", .type = "counter",
	 .help = "Times a client's next command waited for its own commands in flight, since one of "
		 "them must be alone, as WATCH or SUBSCRIBE (CLIENT LIST: held=own-commands)"},
	{SHOW("Stats", "held_pipeline_limit", held_pipeline_limit),
	 .metric = "held_pipeline_limit_total", .type = "counter",
	 .help = "Times a client's next command waited because 256 of its commands were in flight "
		 "(CLIENT LIST: held=pipeline-limit)"},
	{SHOW("Stats", "held_by_stage", held_by_stage),
	 .metric = "held_by_stage_total", .type = "counter",
	 .help = "Times a mitigation had a client's next command wait for its own commands in flight "
		 "(CLIENT LIST: held= the mitigation, such as fold or cache)"},
	{SHOW("Stats", "held_pause", held_pause),
	 .metric = "held_pause_total", .type = "counter",
	 .help = "Times a client's next command waited for the end of CLIENT PAUSE (CLIENT LIST: "
		 "held=pause)"},
	{SHOW("Stats", "held_engine_inflight_bytes", held_engine_inflight_bytes),
	 .metric = "held_engine_inflight_bytes_total", .type = "counter",
	 .help = "Times a client's next command waited because its reply, which is large, did not fit "
		 "into engine-inflight-bytes (CLIENT LIST: held=engine-inflight-bytes)"},
	{SHOW("Stats", "held_debug_sleep", held_debug_sleep),
	 .metric = "held_debug_sleep_total", .type = "counter",
	 .help = "Times a client's next command waited for the end of its DEBUG SLEEP (CLIENT LIST: "
		 "held=debug-sleep)"},
	{SHOW("Stats", "query_limit_disconnections", query_limit_disconnections),
	 .metric = "query_limit_disconnections_total", .type = "counter",
	 .help = "Clients cut off because of too large a request"},
	{SHOW("Stats", "news_dropped", news_dropped),
	 .metric = "news_dropped_total", .type = "counter",
	 .help = "Messages and changes of keys dropped because a worker did not keep up"},
	{SHOW("Stats", "pubsub_subscriptions", pubsub_subscriptions),
	 .metric = "pubsub_subscriptions", .type = "gauge",
	 .help = "Subscriptions of clients to channels, shard channels and patterns"},
	{SHOW("Stats", "pubsub_messages", pubsub_messages),
	 .metric = "pubsub_messages_total", .type = "counter",
	 .help = "Messages sent to clients that had subscribed"},
	{SHOW("Stats", "expired_keys", expired_keys), .known = is_embedded,
	 .metric = "expired_keys_total", .type = "counter",
	 .help = "Keys removed because their time was over"},
	{SHOW("Stats", "evicted_keys", evicted_keys), .known = is_embedded},
	{SHOW("Stats", "tracking_total_keys", tracking_total_keys),
	 .metric = "tracking_keys", .type = "gauge",
	 .help = "Keys remembered for clients that track them"},
	{SHOW("Stats", "tracking_total_items", tracking_total_items),
	 .metric = "tracking_items", .type = "gauge",
	 .help = "Clients that wait for news of a tracked key, summed over the keys"},
	{SHOW("Stats", "tracking_total_prefixes", tracking_total_prefixes),
	 .metric = "tracking_prefixes", .type = "gauge",
	 .help = "Prefixes that clients track (BCAST), summed over the workers"},
	{SHOW("Stats", "tracking_messages", tracking_messages),
	 .metric = "tracking_messages_total", .type = "counter",
	 .help = "Messages to clients that a tracked key changed"},
	{SHOW("Stats", "tracking_evicted_keys", tracking_evicted_keys),
	 .metric = "tracking_evicted_keys_total", .type = "counter",
	 .help = "Tracked keys forgotten because there were too many"},
	{SHOW("Stats", "cache_keys", cache_keys),
	 .metric = "cache_keys", .type = "gauge",
	 .help = "Keys that replies are kept of, each worker's counted"},
	{SHOW("Stats", "cache_replies", cache_replies),
	 .metric = "cache_replies", .type = "gauge",
	 .help = "Replies that are kept, each worker's counted"},
	{SHOW("Stats", "cache_bytes", cache_bytes),
	 .metric = "cache_bytes", .type = "gauge",
	 .help = "Memory of what is kept, each worker's counted (cache-bytes is the most)"},
	{SHOW("Stats", "cache_evicted_keys", cache_evicted_keys),
	 .metric = "cache_evicted_keys_total", .type = "counter",
	 .help = "Keys that had to make room for others"},
	{SHOW("Stats", "cache_too_large", cache_too_large),
	 .metric = "cache_too_large_total", .type = "counter",
	 .help = "Replies not kept because they are larger than cache-entry-bytes, or than all room"},
	{SHOW("Stats", "hot_keys", hot_keys),
	 .metric = "hot_keys", .type = "gauge",
	 .help = "Keys that are hot now (hot-share), summed over the workers"},
	{SHOW("Stats", "hot_keys_full", hot_keys_full),
	 .metric = "hot_keys_full_total", .type = "counter",
	 .help = "Requests for a hot key that was not entered: a worker has 4096 at most"},
	{SHOW("Stats", "fold_keys", fold_keys),
	 .metric = "fold_keys", .type = "gauge",
	 .help = "Hot keys that are folded now, summed over the workers"},
	{SHOW("Stats", "fold_waiting", fold_waiting),
	 .metric = "fold_waiting", .type = "gauge",
	 .help = "Requests that wait for a hot key now"},
	{SHOW("Stats", "fold_requests", fold_requests),
	 .metric = "fold_requests_total", .type = "counter",
	 .help = "Requests answered together with others for the same hot key"},
	{SHOW("Stats", "fold_commands", fold_commands),
	 .metric = "fold_commands_total", .type = "counter",
	 .help = "Commands sent to the engine for those requests"},
	{SHOW("Stats", "fold_again", fold_again),
	 .metric = "fold_again_total", .type = "counter",
	 .help = "Requests run by themselves after the engine refused what they were part of"},
	{SHOW("Stats", "fold_busy", fold_busy),
	 .metric = "fold_busy_total", .type = "counter",
	 .help = "Requests refused because fold-waiters-max were waiting"},
	{SHOW("Stats", "copies_keys", copies_keys),
	 .metric = "copies_keys", .type = "gauge",
	 .help = "Hot keys whose value lies on several partitions now, summed over the workers"},
	{SHOW("Stats", "copies_made", copies_made),
	 .metric = "copies_made_total", .type = "counter",
	 .help = "Sets of copies of a hot value that were made"},
	{SHOW("Stats", "copies_failed", copies_failed),
	 .metric = "copies_failed_total", .type = "counter",
	 .help = "Sets of copies that came to nothing: the key changed meanwhile, or a server refused"},
	{SHOW("Stats", "copies_ended", copies_ended),
	 .metric = "copies_ended_total", .type = "counter",
	 .help = "Sets of copies that were in use and were ended: by a write, or because the key had cooled"},
	{SHOW("Stats", "copies_reads", copies_reads),
	 .metric = "copies_reads_total", .type = "counter",
	 .help = "Reads of a hot key sent to a copy instead of the original"},
	{SHOW("Stats", "copies_again", copies_again),
	 .metric = "copies_again_total", .type = "counter",
	 .help = "Reads sent to a copy that then had to ask the original"},
	{SHOW("Stats", "keyspace_hits", keyspace_hits), .known = is_embedded,
	 .metric = "keyspace_hits_total", .type = "counter",
	 .help = "Keys looked up and found"},
	{SHOW("Stats", "keyspace_misses", keyspace_misses), .known = is_embedded,
	 .metric = "keyspace_misses_total", .type = "counter",
	 .help = "Keys looked up and not found"},
	{SHOW("Stats", "commits", commits), .known = is_embedded,
	 .metric = "commits_total", .type = "counter",
	 .help = "Group commits"},
	{SHOW("Stats", "commit_operations", commit_operations), .known = is_embedded,
	 .metric = "commit_operations_total", .type = "counter",
	 .help = "Writes that group commits carried"},
	{SHOW("Stats", "commit_microseconds", commit_microseconds), .known = is_embedded,
	 .metric = "commit_seconds_total", .type = "counter", .factor = 1e-6,
	 .help = "Time spent in group commits"},
	{SHOW("Stats", "store_writes", store_writes), .known = is_embedded,
	 .metric = "store_writes_total", .type = "counter",
	 .help = "Entries that group commits wrote; several changes of one key in a commit are one"},
	{SHOW("Stats", "disk_syncs", disk_syncs), .known = is_embedded,
	 .metric = "disk_syncs_total", .type = "counter",
	 .help = "Waits for the disk to have written the log"},
	{SHOW("Stats", "store_full_errors", store_full_errors), .known = is_embedded,
	 .metric = "store_full_errors_total", .type = "counter",
	 .help = "Writes refused because a store was full"},
	{SHOW("Stats", "damaged_reads", damaged_reads),
	 .metric = "damaged_reads_total", .type = "counter",
	 .help = "Times a key was found whose record fails its checksum; the reply was an error"},
	{SHOW("Stats", "large_reads_lent", large_reads_lent), .known = is_embedded,
	 .metric = "large_reads_lent_total", .type = "counter",
	 .help = "Large reads of uncommitted keys that workers ran on snapshots of the committer's"},
	{SHOW("Engine", "engine_where", engine_where)},
	{SHOW("Engine", "engine_trouble", engine_trouble)},
	{SHOW("Engine", "engine_connections", engine_connections),
	 .metric = "engine_connections", .type = "gauge",
	 .help = "Connections to the servers behind heatsink, open now"},
	{SHOW("Engine", "engine_private_connections", engine_private_connections),
	 .metric = "engine_private_connections", .type = "gauge",
	 .help = "Those of them for one client each: WATCH, blocking commands"},
	{SHOW("Engine", "engine_connects", engine_connects),
	 .metric = "engine_connects_total", .type = "counter",
	 .help = "Connections to servers begun"},
	{SHOW("Engine", "engine_failures", engine_failures),
	 .metric = "engine_failures_total", .type = "counter",
	 .help = "Connections to servers that failed or were lost"},
	{SHOW("Engine", "engine_moved", engine_moved),
	 .metric = "engine_moved_total", .type = "counter",
	 .help = "Requests sent on because their slot has moved (MOVED)"},
	{SHOW("Engine", "engine_asked", engine_asked),
	 .metric = "engine_asked_total", .type = "counter",
	 .help = "Requests sent on because their slot is on the move (ASK)"},
	{SHOW("Engine", "engine_again", engine_again),
	 .metric = "engine_again_total", .type = "counter",
	 .help = "Requests sent once more: not run the first time, or reads whose reply was lost"},
	{SHOW("Engine", "engine_unknown", engine_unknown),
	 .metric = "engine_unknown_total", .type = "counter",
	 .help = "Requests whose outcome is unknown: the connection was lost, and they may have run"},
	{SHOW("Engine", "engine_refused", engine_refused),
	 .metric = "engine_refused_total", .type = "counter",
	 .help = "Requests that were not sent: no server for them, or too many waiting"},
	{SHOW("Http", "http_port", http_port)},
	{SHOW("Http", "http_connections", http_connections),
	 .metric = "http_connections", .type = "gauge",
	 .help = "HTTP connections open now"},
	{SHOW("Http", "http_requests", http_requests),
	 .metric = "http_requests_total", .type = "counter",
	 .help = "HTTP requests answered"},
	{SHOW("Http", "http_errors", http_errors),
	 .metric = "http_errors_total", .type = "counter",
	 .help = "HTTP requests answered with a status of 400 or more"},
	{SHOW("Http", "http_refused", http_refused),
	 .metric = "http_refused_connections_total", .type = "counter",
	 .help = "HTTP connections and requests refused because every connection was busy"},
	{SHOW("Http", "http_idle_closed", http_idle_closed),
	 .metric = "http_idle_closed_total", .type = "counter",
	 .help = "HTTP connections without a whole request, closed to let a new one in"},
	{SHOW("Http", "http_timeouts", http_timeouts),
	 .metric = "http_timeouts_total", .type = "counter",
	 .help = "HTTP connections closed because a request or its answer took too long"},
	{SHOW("Http", "http_kv_requests", http_kv_requests),
	 .metric = "http_kv_requests_total", .type = "counter",
	 .help = "Requests for a key over HTTP, whatever became of them"},
	{SHOW("Http", "http_kv_not_modified", http_kv_not_modified),
	 .metric = "http_kv_not_modified_total", .type = "counter",
	 .help = "Of these, answered with 304: the client had the value already"},
	{SHOW("Http", "http_kv_waiting", http_kv_waiting),
	 .metric = "http_kv_waiting", .type = "gauge",
	 .help = "Values being read for HTTP now"},
	{SHOW("Http", "http_kv_refused", http_kv_refused),
	 .metric = "http_kv_refused_total", .type = "counter",
	 .help = "Requests for a key told to come again: too many values, or too large ones, were being read"},
	{SHOW("Http", "http_kv_timeouts", http_kv_timeouts),
	 .metric = "http_kv_timeouts_total", .type = "counter",
	 .help = "Requests for a key whose value did not come in time"},
	{SHOW("Replication", "role", role)},
	{SHOW("Replication", "connected_slaves", connected_slaves)},
	{SHOW("CPU", "used_cpu_sys", used_cpu_sys),
	 .metric = "process_cpu_seconds_total", .type = "counter", .mode = "system",
	 .help = "Processor time of the process, by mode"},
	{SHOW("CPU", "used_cpu_user", used_cpu_user),
	 .metric = "process_cpu_seconds_total", .type = "counter", .mode = "user",
	 .help = "Processor time of the process, by mode"},
	{SHOW("Cluster", "cluster_enabled", cluster_enabled)},
	/* Sections of their own in INFO, or nothing there. */
	{SHOW(NULL, "keys", keys),
	 .metric = "keys", .type = "gauge",
	 .help = "Keys in all partitions"},
	{SHOW(NULL, "expires", expires),
	 .metric = "expiring_keys", .type = "gauge",
	 .help = "Keys that have an expiry"},
	{SHOW(NULL, "last_commit_failed", last_commit_failed),
	 .metric = "last_commit_failed", .type = "gauge",
	 .help = "1 when the last commit failed, 0 otherwise"},
	{SHOW(NULL, "engine_troubled", engine_troubled),
	 .metric = "engine_trouble", .type = "gauge",
	 .help = "1 when the engine can serve nothing, 0 otherwise"},
	{SHOW(NULL, "start_time", start_time),
	 .metric = "process_start_time_seconds", .type = "gauge",
	 .help = "When the process started"},
	{SHOW(NULL, "virtual_memory", virtual_memory),
	 .metric = "process_virtual_memory_bytes", .type = "gauge",
	 .help = "Address space of the process, the mapped stores included"},
	{SHOW(NULL, "open_files", open_files),
	 .metric = "process_open_fds", .type = "gauge",
	 .help = "File descriptors open now"},
	{SHOW(NULL, "open_files_max", open_files_max),
	 .metric = "process_max_fds", .type = "gauge",
	 .help = "The most file descriptors that may be open"},
};
/* clang-format on */
const size_t hs_info_rows_count = sizeof hs_info_rows / sizeof *hs_info_rows;
