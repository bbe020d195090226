/* The values of INFO and /metrics that are computed on request. One line of ROWS() becomes a function that prints the
 * value, and a row of the table. */
#include "serve/info.h"

#include "base/version.h"

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

static uint64_t uptime_s(const struct hs_info_facts *facts)
{
	return (facts->time.mono_us - facts->host->started_mono_us) / 1000000;
}

static uint64_t partitions_of(const struct hs_host *host)
{
	const struct hs_slot_map *slots = host->engine->slots;

	return slots ? hs_slot_map_count(slots) : (uint64_t)host->options->partitions;
}

/* False if the servers behind heatsink do not report the value, or report different ones. */
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

/* A directory entry as the system call getdents64 returns it. */
struct entry {
	uint64_t inode;
	int64_t next;
	uint16_t len; /* bytes of this entry; the next one follows */
};

/* Uses the system call: a directory stream of the C library would be allocated on the heap for every scrape. */
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
	return count - 3; /* the folder's own descriptor, "." and ".." */
}

static uint64_t limit_of_files(void)
{
	struct rlimit limit = {0};

	getrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}

#define GAUGE(metric_, help_) .row.metric = (metric_), .row.help = (help_)
#define TOTAL(metric_, help_) .row.kind = HS_TOTAL, GAUGE(metric_, help_)

/* clang-format off */
/* A value is a number, words, or a format with its arguments. Counters have their own tables (serve/totals.h). A row
 * without a section is only a metric. */
#define ROWS(NUMBER, WORDS, PRINTED) \
	WORDS("Server", redis_version, HS_REDIS_VERSION) \
	WORDS("Server", heatsink_version, HS_VERSION) \
	WORDS("Server", redis_mode, "cluster") \
	PRINTED("Server", os, ("%s %s %s", facts->system.sysname, facts->system.release, facts->system.machine)) \
	NUMBER("Server", arch_bits, sizeof(void *) * 8) \
	WORDS("Server", multiplexing_api, "libuv") \
	NUMBER("Server", process_id, getpid()) \
	WORDS("Server", run_id, facts->host->run_id) \
	NUMBER("Server", tcp_port, facts->host->port ? facts->host->port : facts->host->tls_port) \
	NUMBER("Server", tls_port, facts->host->tls_port) \
	NUMBER("Server", server_time_usec, facts->time.wall_us) \
	NUMBER("Server", uptime_in_seconds, uptime_s(facts), \
	       GAUGE("uptime_seconds", "Seconds since the server started")) \
	NUMBER("Server", uptime_in_days, uptime_s(facts) / 86400) \
	NUMBER("Server", workers, facts->host->workers_count, GAUGE("workers", "Worker threads, which serve clients")) \
	NUMBER("Server", partitions, partitions_of(facts->host), \
	       GAUGE("partitions", "Partitions of the data: stores, a server, or Cluster masters")) \
	WORDS("Server", engine, facts->host->engine->calls->name) \
	WORDS("Server", config_file, facts->host->options->config) \
	NUMBER("Clients", maxclients, facts->host->options->maxclients, \
	       GAUGE("maxclients", "Largest number of client connections (option maxclients)")) \
	NUMBER("Memory", used_memory, facts->host->memory_bytes, \
	       GAUGE("used_memory_bytes", "Bytes in use on the heap")) \
	PRINTED("Memory", used_memory_human, ("%.2fM", (double)facts->host->memory_bytes / (double)HS_MIB)) \
	NUMBER("Memory", used_memory_rss, facts->pages.resident, \
	       GAUGE("process_resident_memory_bytes", "Resident memory of the process in bytes")) \
	NUMBER("Memory", used_memory_peak, facts->host->peak_memory_bytes, \
	       GAUGE("used_memory_peak_bytes", "Highest value of used_memory_bytes so far")) \
	NUMBER("Memory", maxmemory, facts->engine.servers.maxmemory, .shown_if = knows_maxmemory) \
	WORDS("Memory", maxmemory_policy, facts->engine.servers.maxmemory_policy, .shown_if = knows_maxmemory_policy) \
	NUMBER("Persistence", loading, 0) \
	WORDS("Persistence", sync, facts->host->options->sync == HS_SYNC_ALWAYS ? "always" : "off", \
	      .row.engine = "embedded") \
	NUMBER("Persistence", aof_enabled, facts->engine.servers.aof_enabled, .shown_if = knows_aof_enabled) \
	NUMBER("Persistence", store_bytes, facts->bytes_used, \
	       GAUGE("store_bytes", "Bytes of the data on disk"), .row.engine = "embedded") \
	NUMBER("Persistence", writes_queued, facts->queued, \
	       GAUGE("writes_queued", "Writes that wait for the committer")) \
	WORDS("Persistence", last_commit_status, facts->engine.last_error[0] ? "err" : "ok", .row.engine = "embedded") \
	WORDS("Persistence", last_commit_error, facts->engine.last_error, .row.engine = "embedded") \
	NUMBER("Stats", instantaneous_ops_per_sec, facts->host->ops_per_s) \
	NUMBER("Stats", evicted_keys, 0, .row.engine = "embedded") \
	WORDS("Engine", engine_where, facts->host->engine->where ? facts->host->engine->where : "") \
	WORDS("Engine", engine_unavailable, facts->engine.unavailable_reason) \
	NUMBER("Http", http_port, facts->host->http_port) \
	WORDS("Replication", role, "master") \
	NUMBER("Replication", connected_slaves, 0) \
	PRINTED("CPU", used_cpu_sys, \
	       ("%ld.%06ld", (long)facts->usage.ru_stime.tv_sec, (long)facts->usage.ru_stime.tv_usec), \
	       TOTAL("process_cpu_seconds_total", "CPU time of the process, by mode"), .mode = "system") \
	PRINTED("CPU", used_cpu_user, \
	       ("%ld.%06ld", (long)facts->usage.ru_utime.tv_sec, (long)facts->usage.ru_utime.tv_usec), \
	       TOTAL("process_cpu_seconds_total", "CPU time of the process, by mode"), .mode = "user") \
	NUMBER("Cluster", cluster_enabled, 1) \
	NUMBER(NULL, keys, facts->keys, GAUGE("keys", "Keys in all partitions")) \
	NUMBER(NULL, expires, facts->expires, GAUGE("expiring_keys", "Keys that have a TTL")) \
	NUMBER(NULL, last_commit_failed, facts->engine.last_error[0] != '\0', \
	       GAUGE("last_commit_failed", "1 if the last commit to disk failed, else 0; the log has the error")) \
	NUMBER(NULL, engine_is_unavailable, facts->engine.unavailable_reason[0] != '\0', \
	       GAUGE("engine_unavailable", "1 if the engine can serve no request, else 0; INFO has the reason")) \
	PRINTED(NULL, start_time, \
	       ("%lld.%06lld", (long long)(facts->host->started_wall_us / 1000000), \
		(long long)(facts->host->started_wall_us % 1000000)), \
	       GAUGE("process_start_time_seconds", "Start time of the process, Unix time")) \
	NUMBER(NULL, virtual_memory, facts->pages.all, \
	       GAUGE("process_virtual_memory_bytes", "Address space of the process in bytes, mapped stores included")) \
	NUMBER(NULL, open_files, count_open_files(), GAUGE("process_open_fds", "Open file descriptors")) \
	NUMBER(NULL, open_files_max, limit_of_files(), \
	       GAUGE("process_max_fds", "Limit of open file descriptors"))
/* clang-format on */

#define PRINT(...) hs_buf_printf(text, __VA_ARGS__)
#define PRINTED(section, name, arguments, ...)                                                     \
	static void write_##name(const struct hs_info_facts *facts, struct hs_buf *text)           \
	{                                                                                          \
		(void)facts;                                                                       \
		PRINT arguments;                                                                   \
	}
#define NUMBER(section, name, value, ...)                                                          \
	PRINTED(section, name, ("%llu", (unsigned long long)(value)))
#define WORDS(section, name, words, ...) PRINTED(section, name, ("%s", words))
#define PLACE(section_, name_, value, ...)                                                         \
	{.row.section = (section_), .row.name = #name_, .write = write_##name_, __VA_ARGS__},

ROWS(NUMBER, WORDS, PRINTED)
const struct hs_info_row hs_info_rows[] = {ROWS(PLACE, PLACE, PLACE)};
const size_t hs_info_rows_count = sizeof hs_info_rows / sizeof *hs_info_rows;
