/* The topology of a Cluster, read from the reply to CLUSTER SLOTS: its shards, their nodes, and the slots of each
 * shard. Redis from 3 on and Valkey have this command, and the reply lists only nodes that can serve a slot, with
 * the address to use. (CLUSTER SHARDS and CLUSTER NODES also list failed nodes.)
 *
 * The rest of heatsink calls a shard a partition. hs_topology_update gives a shard the number that it had before,
 * through failovers, resharding and new machines, so that heat and history stay with the shard.
 *
 * Pure: it knows no connection. hs_topology_parse makes a topology, hs_topology_update numbers its shards;
 * afterwards the topology is only read, so threads may share it. A topology owns its bytes: a few hundred per
 * node, six per range. A malformed reply is an error with one line of text. */
#ifndef HS_ENGINE_REDIS_TOPOLOGY_H
#define HS_ENGINE_REDIS_TOPOLOGY_H

#include "route/slot_map.h"
#include "upstream/url.h"

enum {
	HS_TOPOLOGY_SHARDS_MAX = 1024, /* Redis advises against more than 1000 nodes */
	HS_TOPOLOGY_REPLICAS_MAX = 32, /* per shard; replicas beyond are left out */
	HS_TOPOLOGY_ID_BYTES = 65,     /* 40 hexadecimal digits and the zero, with room to spare */
	HS_TOPOLOGY_NO_SHARD = 0xffff,
};

struct hs_topology_node {
	char id[HS_TOPOLOGY_ID_BYTES]; /* "": not reported; then the address identifies the node */
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
	uint16_t capacity; /* the largest possible number of partitions */
	uint16_t count;	   /* the highest partition number in use, plus 1 */
	/* The topology has more shards than partitions: the last partition has several shards. */
	bool crowded;
	uint16_t shards_count;		  /* at least 1 */
	struct hs_topology_shard *shards; /* sorted by their lowest slot */
	uint32_t slots_count;		  /* slots with an owner; normally HS_SLOTS */
	/* Ranges of slots, in ascending order, as long as possible: two ranges that touch belong to different
	 * shards. */
	uint32_t ranges_count;
	struct hs_topology_range *ranges;
};

/* `reply`: one whole reply to CLUSTER SLOTS, of either dialect. `asked`: the host that sent the reply; it replaces
 * an empty host in the reply. Returns 0, or an error with one line in `why`: HS_EPROTO (malformed), HS_ELIMIT (too
 * many shards) or HS_EINVAL (the server refused, or has no cluster). */
int hs_topology_parse(struct hs_topology **topology, struct hs_bytes reply, const char *asked,
		      uint16_t capacity, char *why, size_t why_size) HS_MUSTCHECK;
/* Makes the topology of a single server: one shard with all slots and a number. */
struct hs_topology *hs_topology_single(const struct hs_redis_address *address, uint16_t capacity);
void hs_topology_destroy(struct hs_topology **topology);

enum hs_topology_change {
	HS_TOPOLOGY_SAME,    /* equal shards, nodes and slots */
	HS_TOPOLOGY_CHANGED, /* the topologies differ, but are of one Cluster */
	/* No node in common: the addresses lead to another Cluster. */
	HS_TOPOLOGY_FOREIGN,
};

/* Numbers the shards of `after`. A shard of `before` (NULL at the start) is found again by its master; else by a
 * replica that became its master; else by most of its slots. A new shard gets the lowest free number. */
enum hs_topology_change hs_topology_update(const struct hs_topology *before,
					   struct hs_topology *after);

/* Iterates over runs of slots that have an owner in both topologies. The caller begins with a struct of zeros. */
struct hs_topology_common {
	uint16_t before, after; /* indices of the run's shards in the two topologies */
	uint32_t slots;		/* length of the run */
	uint32_t before_at, after_at;
};
/* Finds the next run. False: there are no more runs. */
bool hs_topology_next_common(const struct hs_topology *before, const struct hs_topology *after,
			     struct hs_topology_common *common);

/* Writes to `map` the partitions of slots that changed. The previous call wrote `map` from `before` (NULL: `map`
 * is empty). A slot without an owner keeps its partition; the partition's node reports that the Cluster is
 * down. */
void hs_topology_fill(const struct hs_topology *before, const struct hs_topology *after,
		      struct hs_slot_map *map);

/* The first shard of the partition; NULL: the partition has none. */
const struct hs_topology_shard *hs_topology_shard(const struct hs_topology *topology,
						  uint16_t partition);
/* The shard with this master or replica; NULL: none. */
const struct hs_topology_shard *hs_topology_find(const struct hs_topology *topology,
						 const struct hs_redis_address *address);

/* Writes the slots of a partition as text, "0-5460 8000"; "…" stands for ranges that do not fit into `size` bytes.
 * Returns `text`. */
char *hs_topology_slots_text(const struct hs_topology *topology, uint16_t partition, char *text,
			     size_t size);

#endif
