/* The topology of a Cluster: its shards, their nodes, and which slots each shard has, read from the reply to
 * CLUSTER SLOTS. Every Redis from 3 on and Valkey have that command, and its reply names the nodes that can
 * serve a slot under the address to use. (CLUSTER SHARDS and CLUSTER NODES also list failed nodes, to which
 * nothing is sent.)
 *
 * The rest of heatsink calls a shard a partition. hs_topology_update gives a shard the number it had before,
 * through failovers, resharding and new machines, so that heat and history stay with it.
 *
 * Pure; it knows no connection. A topology is made by parse, numbered by update, and then only read:
 * it may be shared by threads. It owns its bytes, a few hundred for each node and six for each range. */
#ifndef HS_ENGINE_REDIS_TOPOLOGY_H
#define HS_ENGINE_REDIS_TOPOLOGY_H

#include "route/slot_map.h"
#include "upstream/url.h"

enum {
	HS_TOPOLOGY_SHARDS_MAX = 1024, /* Redis itself advises against more than 1000 nodes */
	HS_TOPOLOGY_REPLICAS_MAX = 32, /* of one shard; more are left out */
	HS_TOPOLOGY_ID_BYTES = 65,     /* a node's id: 40 digits, with room, and the end */
	HS_TOPOLOGY_NO_SHARD = 0xffff, /* no shard */
};

struct hs_topology_node {
	char id[HS_TOPOLOGY_ID_BYTES]; /* "" from servers that do not tell: the address counts */
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
	uint16_t partition; /* its number, from hs_topology_update */
	uint16_t slots_count;
	uint16_t replicas_count;
	struct hs_topology_node master;
	struct hs_topology_node *replicas;
};

struct hs_topology_range {
	uint16_t first, last;
	uint16_t shard; /* its place among the shards */
};

struct hs_topology {
	uint16_t capacity; /* partitions there can be */
	uint16_t count;	   /* one more than the highest partition */
	/* There are more shards than partitions: the last partition stands for several of them. */
	bool crowded;
	uint16_t shards_count;		  /* at least 1 */
	struct hs_topology_shard *shards; /* by their lowest slot */
	uint32_t slots_count;		  /* that somebody serves; HS_SLOTS when all is well */
	/* In the order of slots; neighbours belong to different shards, or slots that nobody serves lie
	 * between them. */
	uint32_t ranges_count;
	struct hs_topology_range *ranges;
};

/* `reply` is one whole reply to CLUSTER SLOTS, of either dialect; `asked` is the host that sent it,
 * which stands in where the reply names none. Returns 0, or HS_EPROTO, HS_ELIMIT or HS_EINVAL (the
 * server refused, or has no cluster) with one line about it in `why`. */
int hs_topology_parse(struct hs_topology **topology, struct hs_bytes reply, const char *asked,
		      uint16_t capacity, char *why, size_t why_size) HS_MUSTCHECK;
/* A single server, which has all slots: one shard, with its number. */
struct hs_topology *hs_topology_single(const struct hs_redis_address *address, uint16_t capacity);
void hs_topology_destroy(struct hs_topology **topology);

enum hs_topology_change {
	HS_TOPOLOGY_SAME,    /* the same shards, nodes and slots */
	HS_TOPOLOGY_CHANGED, /* of the same cluster */
	/* Not one node in common: these addresses lead to another cluster now. */
	HS_TOPOLOGY_FOREIGN,
};

/* Numbers the shards of `after`. A shard of `before` (NULL at the start) is found again by its
 * master, or else by a replica that has become master, or else by most of its slots; what is new gets
 * the lowest number that is free. */
enum hs_topology_change hs_topology_update(const struct hs_topology *before,
					   struct hs_topology *after);

/* Slots that both serve, run by run: starts as zeros. */
struct hs_topology_common {
	uint16_t before, after; /* whose they are: shards of the one and of the other */
	uint32_t slots;		/* how many */
	uint32_t before_at, after_at;
};
/* The next run; false: there is none. */
bool hs_topology_next_common(const struct hs_topology *before, const struct hs_topology *after,
			     struct hs_topology_common *common);

/* Writes the partitions of slots, and only those that change: `map` was filled from `before` (NULL: from no
 * topology). A slot that nobody serves keeps the partition it had: its node says that the cluster is down. */
void hs_topology_fill(const struct hs_topology *before, const struct hs_topology *after,
		      struct hs_slot_map *map);

/* The first shard with that number, NULL when there is none. */
const struct hs_topology_shard *hs_topology_shard(const struct hs_topology *topology,
						  uint16_t partition);
/* The shard that a node belongs to, as master or replica; NULL for a stranger. */
const struct hs_topology_shard *hs_topology_find(const struct hs_topology *topology,
						 const struct hs_redis_address *address);

/* The slots of a partition, "0-5460 8000"; "…" stands for those that do not fit into `size` bytes.
 * Zero terminated. Returns `text`. */
char *hs_topology_slots_text(const struct hs_topology *topology, uint16_t partition, char *text,
			     size_t size);

#endif
