/* INFO: the sections and lines that heatsink reads (engine/redis/node_info.h), in Redis's form. */
#include "sim/server_internal.h"

#include <inttypes.h>

static const char *yes(bool on)
{
	return on ? "1" : "0";
}

static uint32_t count_clients(const struct hs_sim_server *server)
{
	uint32_t count = 0;

	for (struct hs_link *link = server->clients.next; link != &server->clients;
	     link = link->next)
		count++;
	return count;
}

static void add_server(struct hs_sim_server *server, struct hs_buf *out)
{
	const struct hs_sim_cluster *cluster = server->cluster;

	hs_buf_printf(out,
		      "redis_version:%s\r\nredis_mode:%s\r\nrun_id:%s\r\ntcp_port:%u\r\n"
		      "uptime_in_seconds:%" PRIu64 "\r\n",
		      HS_SIM_REDIS_VERSION, cluster->options.cluster ? "cluster" : "standalone",
		      server->run_id, server->port,
		      (hs_sim_now_us(cluster) - server->started_us) / 1000000);
}

static void add_clients(struct hs_sim_server *server, struct hs_buf *out)
{
	hs_buf_printf(out, "connected_clients:%u\r\ntracking_clients:%u\r\n", count_clients(server),
		      server->tracking_conns);
}

static void add_memory(struct hs_sim_server *server, struct hs_buf *out)
{
	hs_buf_printf(out, "used_memory:%zu\r\nmaxmemory:%zu\r\nmaxmemory_policy:noeviction\r\n",
		      hs_memkv_bytes(server->map), server->cluster->options.bytes_max);
}

static void add_persistence(struct hs_sim_server *server, struct hs_buf *out)
{
	hs_buf_printf(out, "loading:%s\r\nasync_loading:0\r\naof_enabled:0\r\n",
		      yes(server->loading_until_us > 0));
}

static void add_stats(struct hs_sim_server *server, struct hs_buf *out)
{
	hs_buf_printf(out,
		      "total_commands_processed:%" PRIu64 "\r\ninstantaneous_ops_per_sec:0\r\n"
		      "expired_keys:%" PRIu64 "\r\nevicted_keys:%" PRIu64 "\r\n"
		      "keyspace_hits:%" PRIu64 "\r\nkeyspace_misses:%" PRIu64 "\r\n"
		      "tracking_total_keys:%zu\r\n",
		      server->commands, server->counts.expired, server->evicted,
		      server->counts.hits, server->counts.misses, server->tracked_count);
}

static void add_replicas(struct hs_sim_server *server, struct hs_buf *out)
{
	struct hs_sim_cluster *cluster = server->cluster;
	uint32_t count = 0;

	for (int counted = 0; counted < 2; counted++) {
		if (counted)
			hs_buf_printf(out, "connected_slaves:%u\r\n", count);
		count = 0;
		for (uint8_t i = 0; i < cluster->count; i++) {
			const struct hs_sim_server *other = &cluster->servers[i];

			if (other->down || other->view.nodes[i].master != server->number)
				continue;
			if (counted)
				hs_buf_printf(out,
					      "slave%u:ip=%s,port=%u,state=%s,offset=%" PRIu64
					      ",lag=%d\r\n",
					      count, other->host, other->port,
					      other->link_up ? "online" : "wait_bgsave",
					      other->link_up ? hs_sim_stream_offset(other) : 0, 0);
			count++;
		}
	}
}

static void add_replication(struct hs_sim_server *server, struct hs_buf *out)
{
	static const char zeros[] = "0000000000000000000000000000000000000000";
	uint64_t offset = hs_sim_stream_offset(server);

	if (hs_sim_server_is_master(server)) {
		hs_buf_printf(out, "role:master\r\n");
	} else {
		const struct hs_sim_server *master = hs_sim_server_of(
			server->cluster, server->view.nodes[server->number].master);

		hs_buf_printf(out,
			      "role:slave\r\nmaster_host:%s\r\nmaster_port:%u\r\n"
			      "master_link_status:%s\r\nmaster_last_io_seconds_ago:%d\r\n"
			      "master_sync_in_progress:%s\r\n"
			      "slave_read_repl_offset:%" PRIu64 "\r\nslave_repl_offset:%" PRIu64
			      "\r\n",
			      master->host, master->port, server->link_up ? "up" : "down",
			      server->link_up ? 0 : -1, yes(!server->link_up), offset, offset);
		if (!server->link_up)
			hs_buf_printf(out, "master_link_down_since_seconds:0\r\n");
		hs_buf_printf(out, "slave_priority:100\r\nslave_read_only:1\r\n"
				   "replica_announced:1\r\n");
	}
	add_replicas(server, out);
	hs_buf_printf(out,
		      "master_failover_state:no-failover\r\nmaster_replid:%s\r\n"
		      "master_replid2:%s\r\nmaster_repl_offset:%" PRIu64
		      "\r\nsecond_repl_offset:%" PRId64 "\r\n",
		      server->stream, server->stream_before[0] ? server->stream_before : zeros,
		      offset,
		      server->stream_before_end ? (int64_t)server->stream_before_end + 1 : -1);
}

static void add_cpu(struct hs_sim_server *server, struct hs_buf *out)
{
	uint64_t us = server->commands;

	hs_buf_printf(out, "used_cpu_sys:0.000000\r\nused_cpu_user:%" PRIu64 ".%06" PRIu64 "\r\n",
		      us / 1000000, us % 1000000);
}

static void add_cluster(struct hs_sim_server *server, struct hs_buf *out)
{
	hs_buf_printf(out, "cluster_enabled:%s\r\n", yes(server->cluster->options.cluster));
}

static void add_keyspace(struct hs_sim_server *server, struct hs_buf *out)
{
	size_t keys = hs_sim_keys_count(server);

	if (keys > 0)
		hs_buf_printf(out, "db0:keys=%zu,expires=%zu,avg_ttl=0\r\n", keys,
			      hs_sim_keys_count_expiring(server));
}

static const struct {
	const char *name, *title;
	void (*add)(struct hs_sim_server *server, struct hs_buf *out);
} sections[] = {
	{"server", "Server", add_server},
	{"clients", "Clients", add_clients},
	{"memory", "Memory", add_memory},
	{"persistence", "Persistence", add_persistence},
	{"stats", "Stats", add_stats},
	{"replication", "Replication", add_replication},
	{"cpu", "CPU", add_cpu},
	{"cluster", "Cluster", add_cluster},
	{"keyspace", "Keyspace", add_keyspace},
};

static bool is_wanted(const char *name, size_t argc, const struct hs_bytes *argv)
{
	for (size_t i = 1; i < argc; i++) {
		if (hs_bytes_is_word(argv[i], name) || hs_bytes_is_word(argv[i], "all") ||
		    hs_bytes_is_word(argv[i], "default") || hs_bytes_is_word(argv[i], "everything"))
			return true;
	}
	return argc == 1;
}

void hs_sim_info(struct hs_sim_server *server, size_t argc, const struct hs_bytes *argv,
		 struct hs_reply *reply)
{
	struct hs_buf text = {0};

	for (size_t i = 0; i < sizeof sections / sizeof *sections; i++) {
		if (!is_wanted(sections[i].name, argc, argv))
			continue;
		hs_buf_printf(&text, "%s# %s\r\n", text.len > 0 ? "\r\n" : "", sections[i].title);
		sections[i].add(server, &text);
	}
	hs_reply_verbatim(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}
