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
	bool loading;	/* the server is loading its data and fails other commands */
	bool link_down; /* a replica that has no connection to its master */
	bool valkey;
	bool cluster;	  /* the server runs in cluster mode */
	char run_id[48];  /* another id shows another process, whose counters began at 0 */
	char version[32]; /* of Valkey: its own version, not the compatible redis_version */
	uint64_t cpu_us;  /* since the start of the server, all threads */
	uint64_t memory_bytes;
	uint64_t clients;
	uint64_t ops_per_s;
	uint64_t evicted;
	int64_t maxmemory;	   /* -1: not reported */
	char maxmemory_policy[32]; /* "": not reported */
	int aof_enabled;	   /* -1: not reported */
	uint64_t keys, expires;
	/* Of a master: its replicas, the replicas past the initial copy (online), and the lag of the slowest
	 * online replica. A replica reports once a second, so 1 s is no lag. Of a replica: the time since it last
	 * received anything, and the bytes that it has received and not applied. */
	uint64_t replicas, replicas_online;
	uint64_t lag_s;
	uint64_t lag_bytes;
	/* Replication id and offset. A master has made all changes before `offset`; a replica has applied them. */
	char replication_id[48];
	uint64_t offset;
};

/* `text`: the content of the bulk reply to INFO. HS_EPROTO: no line of `text` is known. */
int hs_node_info_parse(struct hs_node_info *info, struct hs_bytes text) HS_MUSTCHECK;
/* The reply to INFO keyspace: sets only `keys` and `expires` of `info`. HS_EPROTO: the section is missing; `info`
 * is unchanged. */
int hs_node_info_parse_keyspace(struct hs_node_info *info, struct hs_bytes text) HS_MUSTCHECK;

/* True if the reply to CLUSTER INFO has cluster_state:fail: the node rejects commands, because it reaches too few
 * masters, or because slots have no owner. */
bool hs_node_says_cluster_down(struct hs_bytes reply);

/* CPU time between two INFOs as a part of one core: 0 idle, 1 one whole core, more with several threads. 0 also if
 * the server restarted between the two. */
double hs_node_info_cpu(const struct hs_node_info *before, const struct hs_node_info *after,
			uint64_t elapsed_us);

#endif
