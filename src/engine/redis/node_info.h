/* Reads the text of INFO, of Redis 3 to 8 and Valkey, into a struct of numbers. A number that the server does
 * not tell is 0. Pure. */
#ifndef HS_ENGINE_REDIS_NODE_INFO_H
#define HS_ENGINE_REDIS_NODE_INFO_H

#include "base/bytes.h"
#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_node_role { HS_NODE_UNKNOWN, HS_NODE_MASTER, HS_NODE_REPLICA };

struct hs_node_info {
	enum hs_node_role role;
	bool loading;	/* its data, from disk: it answers nothing else meanwhile */
	bool link_down; /* a replica that has lost its master */
	bool valkey;
	bool cluster;	  /* it is a node of one */
	char run_id[48];  /* another one is another process: counters start again */
	char version[32]; /* Valkey's own where it is one */
	uint64_t cpu_us;  /* used since the start, by all its threads */
	uint64_t memory_bytes;
	uint64_t clients;
	uint64_t ops_per_s;
	uint64_t evicted;
	int64_t maxmemory;	   /* -1: it does not tell */
	char maxmemory_policy[32]; /* "": it does not tell */
	int aof_enabled;	   /* the same as -1 */
	uint64_t keys, expires;
	/* Of a master: its replicas, and the one that is furthest behind of those that follow. Those
	 * that are still being sent a first copy are not `online` and do not count. A replica
	 * reports once a second, so that 1 s is no lag. Of a replica: how long it has heard nothing,
	 * and what it has received and not applied yet. */
	uint64_t replicas, replicas_online;
	uint64_t lag_s;
	uint64_t lag_bytes;
	/* How far it is in the stream of changes of that name: as a master it has made all before, as a
	 * replica it has applied them. */
	char replication_id[48];
	uint64_t offset;
};

/* `text` is what stands in the bulk reply. HS_EPROTO when nothing in it is of INFO. */
int hs_node_info_parse(struct hs_node_info *info, struct hs_bytes text) HS_MUSTCHECK;
/* The reply to INFO keyspace: sets `keys` and `expires` of `info` alone. HS_EPROTO when the section is not
 * in it; then `info` is as before. */
int hs_node_info_parse_keyspace(struct hs_node_info *info, struct hs_bytes text) HS_MUSTCHECK;

/* Of the reply to CLUSTER INFO: the node refuses to serve keys, because it does not see enough of the other
 * masters, or of the slots. */
bool hs_node_says_cluster_down(struct hs_bytes reply);

/* The processor time between two looks, as a part of one core: 0 is idle, 1 one core, and more where
 * several threads work. 0 when the server was started anew between them. */
double hs_node_info_cpu(const struct hs_node_info *before, const struct hs_node_info *after,
			uint64_t elapsed_us);

#endif
