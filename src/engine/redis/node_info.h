/* Reads the text of INFO of Redis 3 to 8 and Valkey into a struct. A number that the server does not report is 0;
 * maxmemory and aof_enabled are -1. Pure: bytes in, numbers out; any thread. */
#ifndef HS_ENGINE_REDIS_NODE_INFO_H
#define HS_ENGINE_REDIS_NODE_INFO_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_node_role { HS_NODE_UNKNOWN, HS_NODE_MASTER, HS_NODE_REPLICA };

struct hs_node_info {
	enum hs_node_role role;
	bool loading;	/* its data set: other commands fail meanwhile */
	bool link_down; /* a replica without a connection to its master */
	bool valkey;
	bool cluster;	  /* a node of a Cluster */
	char run_id[48];  /* another id: another process, counters restarted */
	char version[32]; /* Valkey's own for Valkey */
	uint64_t cpu_us;  /* since its start, all threads */
	uint64_t memory_bytes;
	uint64_t clients;
	uint64_t ops_per_s;
	uint64_t evicted;
	int64_t maxmemory;	   /* -1: not reported */
	char maxmemory_policy[32]; /* "": not reported */
	int aof_enabled;	   /* -1: not reported */
	uint64_t keys, expires;
	/* Of a master: its replicas; `online` are those past the initial copy, and the lag is that of the slowest of
	 * them. A replica reports once a second, so that 1 s is no lag. Of a replica: how long it has received
	 * nothing, and how many bytes it has received and not applied. */
	uint64_t replicas, replicas_online;
	uint64_t lag_s;
	uint64_t lag_bytes;
	/* Replication id and offset: a master has made all changes before the offset, a replica has applied them. */
	char replication_id[48];
	uint64_t offset;
};

/* `text`: the content of the bulk reply. HS_EPROTO: it has no known line. */
int hs_node_info_parse(struct hs_node_info *info, struct hs_bytes text) HS_MUSTCHECK;
/* The reply to INFO keyspace: sets only `keys` and `expires` of `info`. HS_EPROTO: the section is missing; `info` is
 * unchanged. */
int hs_node_info_parse_keyspace(struct hs_node_info *info, struct hs_bytes text) HS_MUSTCHECK;

/* The reply to CLUSTER INFO says cluster_state:fail: the node rejects commands, because it does not reach enough
 * masters, or slots have no owner. */
bool hs_node_says_cluster_down(struct hs_bytes reply);

/* CPU time between two INFOs as a part of one core: 0 idle, 1 a whole core, more with several threads. 0: the server
 * restarted in between. */
double hs_node_info_cpu(const struct hs_node_info *before, const struct hs_node_info *after,
			uint64_t elapsed_us);

#endif
