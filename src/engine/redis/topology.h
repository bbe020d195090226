/* The topology of a Cluster, read from the reply to CLUSTER SLOTS: its shards, their nodes, and the slots of each
 * shard. Redis from 3 on and Valkey have that command, and its reply lists only nodes that can serve a slot, with
 * the address to use. (CLUSTER SHARDS and CLUSTER NODES also list failed nodes.)
 *
 * The rest of heatsink calls a shard a partition. hs_topology_update gives a shard the number that it had before,
 * through failovers, resharding and new machines, so that heat and history stay with it.
 *
 * Pure: it knows no connection. hs_topology_parse makes a topology, hs_topology_update numbers its shards; then it
 * is only read and may be shared by threads. It owns its bytes: a few hundred per node, six per range. A malformed
 * reply is an error with one line of text. */
#ifndef HS_ENGINE_REDIS_TOPOLOGY_H
#define HS_ENGINE_REDIS_TOPOLOGY_H

#include "route/slot_map.h"
#include "upstream/url.h"

enum {
	HS_TOPOLOGY_SHARDS_MAX = 1024, /* Redis advises against more than 1000 nodes */
	HS_TOPOLOGY_REPLICAS_MAX = 32, /* per shard; more are left out */
	HS_TOPOLOGY_ID_BYTES = 65,     /* 40 digits, with room, and the zero */
	HS_TOPOLOGY_NO_SHARD = 0xffff,
};

struct hs_topology_node {
	char id[HS_TOPOLOGY_ID_BYTES]; /* "": not reported; the address identifies the node */
	struct hs_redis_address address;
};

static inline bool hs_topology_same_node(const struct hs_topology_node *a,
					 const struct hs_topology_node *b)
{
	if (a->id[0] && b->id[0])
		return strcmp(a->id, b->id) == 0;
	return hs_redis_same_address(&a->address, &b->address);
}

struct hs_topology_shard {
	uint16_t partition; /* set by hs_topology_update */
	uint16_t slots_count;
	uint16_t replicas_count;
	struct hs_topology_node master;
	struct hs_topology_node *replicas;
};

struct hs_topology_range {
	uint16_t first, last;
	uint16_t shard; /* index in `shards` */
};

struct hs_topology {
	uint16_t capacity; /* how many partitions there can be */
	uint16_t count;	   /* highest partition + 1 */
	/* There are more shards than partitions: the last partition holds several shards. */
	bool crowded;
	uint16_t shards_count;		  /* at least 1 */
	struct hs_topology_shard *shards; /* by their lowest slot */
	uint32_t slots_count;		  /* slots with an owner; normally HS_SLOTS */
	/* By slot. Neighbours belong to different shards, or slots without an owner lie between them. */
	uint32_t ranges_count;
	struct hs_topology_range *ranges;
};

/* `reply`: one whole reply to CLUSTER SLOTS, of either dialect. `asked`: the host that sent it, used where the reply
 * names none. Returns 0, or with one line in `why`: HS_EPROTO (malformed), HS_ELIMIT (too many shards) or HS_EINVAL
 * (the server refused, or has no cluster). */
int hs_topology_parse(struct hs_topology **topology, struct hs_bytes reply, const char *asked,
		      uint16_t capacity, char *why, size_t why_size) HS_MUSTCHECK;
/* A single server with all slots: one shard, numbered. */
struct hs_topology *hs_topology_single(const struct hs_redis_address *address, uint16_t capacity);
void hs_topology_destroy(struct hs_topology **topology);

enum hs_topology_change {
	HS_TOPOLOGY_SAME,    /* equal shards, nodes and slots */
	HS_TOPOLOGY_CHANGED, /* of the same cluster */
	/* No node in common: the addresses lead to another cluster. */
	HS_TOPOLOGY_FOREIGN,
};

/* Numbers the shards of `after`. A shard of `before` (NULL at the start) is found again by its master; else by a
 * replica that became master; else by most of its slots. A new shard gets the lowest free number. */
enum hs_topology_change hs_topology_update(const struct hs_topology *before,
					   struct hs_topology *after);

/* Iterates over runs of slots that both topologies have. Starts as zeros. */
struct hs_topology_common {
	uint16_t before, after; /* indices of the shards */
	uint32_t slots;		/* length of the run */
	uint32_t before_at, after_at;
};
/* False: the end. */
bool hs_topology_next_common(const struct hs_topology *before, const struct hs_topology *after,
			     struct hs_topology_common *common);

/* Writes to `map` the partitions of slots that changed. `map` was filled from `before` (NULL: empty). A slot without
 * an owner keeps its partition, whose node reports that the cluster is down. */
void hs_topology_fill(const struct hs_topology *before, const struct hs_topology *after,
		      struct hs_slot_map *map);

/* The first shard of a partition; NULL: none. */
const struct hs_topology_shard *hs_topology_shard(const struct hs_topology *topology,
						  uint16_t partition);
/* The shard of a master or replica; NULL: none. */
const struct hs_topology_shard *hs_topology_find(const struct hs_topology *topology,
						 const struct hs_redis_address *address);

/* The slots of a partition, "0-5460 8000"; "…" stands for ranges that do not fit `size` bytes. Returns `text`. */
char *hs_topology_slots_text(const struct hs_topology *topology, uint16_t partition, char *text,
			     size_t size);

#endif
