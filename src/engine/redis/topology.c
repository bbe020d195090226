/* Reads the reply to CLUSTER SLOTS. The elements of the reply are ranges of slots, not shards:
 *
 *     [ [ 0, 5460,    master, replica … ],
 *       [ 5461, 9000, master, replica … ], … ]     a node is [ host, port, id, metadata ]
 *
 * So the parser puts the ranges of one master together into a shard. Servers before Redis 4 omit the id, servers
 * before Redis 7 omit the metadata. */
#include "engine/redis/topology.h"

#include "base/mem.h"
#include "wire/walk.h"

#include <stdio.h>
#include <stdlib.h>

enum { NODE_FIELDS_MIN = 2, RANGE_FIELDS_MIN = 3 };

struct parser {
	struct hs_walk walk;
	struct hs_topology *topology;
	const char *asked;
	char *why;
	size_t why_size;
};

static int malformed(const struct parser *parser, const char *what)
{
	return hs_err_set(HS_EPROTO, parser->why, parser->why_size,
			  "malformed reply to CLUSTER SLOTS: %s", what);
}

/* ---- nodes ---- */

static bool printable(struct hs_bytes text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (text.data[i] <= ' ' || text.data[i] > '~')
			return false;
	}
	return true;
}

static bool copy(struct hs_bytes text, char *to, size_t size)
{
	if (text.len >= size || !printable(text))
		return false;
	memcpy(to, text.data, text.len);
	to[text.len] = '\0';
	return true;
}

/* Reads a node's metadata: pairs of words, with other names of the node. Writes its IP address and host name to
 * `ip` and `hostname`. */
static int parse_metadata(struct hs_walk *walk, struct hs_bytes *ip, struct hs_bytes *hostname)
{
	int64_t count;

	if (hs_walk_map(walk, &count) < 0)
		return HS_EPROTO;
	for (int64_t i = 0; i < count; i++) {
		struct hs_bytes name, value;

		if (hs_walk_text(walk, &name) < 0)
			return HS_EPROTO;
		if (hs_bytes_is_word(name, "ip") || hs_bytes_is_word(name, "hostname")) {
			if (hs_walk_text(walk, &value) < 0)
				return HS_EPROTO;
			*(hs_bytes_is_word(name, "ip") ? ip : hostname) = value;
		} else if (hs_walk_skip(walk) < 0) {
			return HS_EPROTO;
		}
	}
	return 0;
}

/* Chooses the host of a node: the preferred endpoint. Empty: the host that was asked. "?": the operator prefers
 * host names, and this node has none; then its IP address or host name from the metadata. */
static struct hs_bytes choose_host(const struct parser *parser, struct hs_bytes preferred,
				   struct hs_bytes ip, struct hs_bytes hostname)
{
	if (preferred.len == 0)
		return hs_bytes_of(parser->asked);
	if (!hs_bytes_equal(preferred, HS_LIT("?")))
		return preferred;
	return ip.len ? ip : hostname;
}

/* Reads a node. A node without a host or port gets port 0. */
static int parse_node(struct parser *parser, struct hs_topology_node *node)
{
	struct hs_bytes preferred, id = {"", 0}, ip = {"", 0}, hostname = {"", 0}, host;
	struct hs_walk *walk = &parser->walk;
	int64_t count, port;

	memset(node, 0, sizeof *node);
	if (hs_walk_array(walk, &count) < 0 || count < NODE_FIELDS_MIN)
		return malformed(parser, "a node must be a host, a port, an id");
	if (hs_walk_text(walk, &preferred) < 0)
		return malformed(parser, "a node's host must be a text");
	if (hs_walk_int(walk, 0, 65535, &port) < 0)
		return malformed(parser, "a node's port must be a number from 0 to 65535");
	if (count > 2 && (hs_walk_text(walk, &id) < 0 || !copy(id, node->id, sizeof node->id)))
		return malformed(parser, "a node's id must be 64 printable bytes at most");
	if (count > 3 && parse_metadata(walk, &ip, &hostname) < 0)
		return malformed(parser, "a node's metadata must be pairs");
	for (int64_t i = 4; i < count; i++) {
		if (hs_walk_skip(walk) < 0)
			return malformed(parser, "it is cut short");
	}
	host = choose_host(parser, preferred, ip, hostname);
	if (!copy(host, node->address.host, sizeof node->address.host))
		return malformed(parser, "a node's host must be 253 printable bytes at most");
	node->address.port = host.len ? (uint16_t)port : 0;
	return 0;
}

/* ---- ranges ---- */

/* Allocates room for `ranges` ranges. The caller knows an upper bound: a whole reply has no more ranges than
 * bytes. */
static void reserve(struct hs_topology *topology, size_t ranges)
{
	size_t shards = ranges < HS_TOPOLOGY_SHARDS_MAX ? ranges : HS_TOPOLOGY_SHARDS_MAX;

	topology->ranges = hs_mem_alloc(ranges * sizeof *topology->ranges);
	topology->shards = hs_mem_alloc(shards * sizeof *topology->shards);
}

/* The shard of a master that an earlier range named. Searches backwards: the previous range mostly has the same
 * master. */
static uint16_t find_shard(const struct hs_topology *topology,
			   const struct hs_topology_node *master)
{
	for (uint16_t i = topology->shards_count; i > 0; i--) {
		if (hs_topology_same_node(&topology->shards[i - 1].master, master))
			return (uint16_t)(i - 1);
	}
	return HS_TOPOLOGY_NO_SHARD;
}

static int add_shard(struct parser *parser, const struct hs_topology_node *master)
{
	struct hs_topology *topology = parser->topology;

	if (topology->shards_count == HS_TOPOLOGY_SHARDS_MAX)
		return hs_err_set(HS_ELIMIT, parser->why, parser->why_size,
				  "the cluster has more than %d shards", HS_TOPOLOGY_SHARDS_MAX);
	topology->shards[topology->shards_count++] = (struct hs_topology_shard){.master = *master};
	return 0;
}

/* Takes the replicas of the shard's first range: all ranges of a shard list the same replicas. */
static int parse_replicas(struct parser *parser, struct hs_topology_shard *shard, bool is_new,
			  int64_t count)
{
	int64_t room = count < HS_TOPOLOGY_REPLICAS_MAX ? count : HS_TOPOLOGY_REPLICAS_MAX;

	if (is_new && room > 0)
		shard->replicas = hs_mem_zalloc((size_t)room * sizeof *shard->replicas);
	for (int64_t i = 0; i < count; i++) {
		struct hs_topology_node node;
		int code = parse_node(parser, &node);

		if (code < 0)
			return code;
		if (is_new && node.address.port && shard->replicas_count < room)
			shard->replicas[shard->replicas_count++] = node;
	}
	return 0;
}

static int parse_range(struct parser *parser)
{
	struct hs_topology *topology = parser->topology;
	struct hs_topology_node master;
	int64_t count, first, last;
	uint16_t at;
	bool is_new;
	int code;

	if (hs_walk_array(&parser->walk, &count) < 0 || count < RANGE_FIELDS_MIN)
		return malformed(parser, "a range must be two slots and a node");
	if (hs_walk_int(&parser->walk, 0, HS_SLOTS - 1, &first) < 0 ||
	    hs_walk_int(&parser->walk, first, HS_SLOTS - 1, &last) < 0)
		return malformed(parser, "a range must be two slots from 0 to 16383");
	code = parse_node(parser, &master);
	if (code < 0)
		return code;
	if (master.address.port == 0)
		return hs_err_set(
			HS_EPROTO, parser->why, parser->why_size,
			"the node of slots %d-%d has no address (a node that speaks only TLS "
			"reports it to TLS connections only: use clusters://)",
			(int)first, (int)last);
	at = find_shard(topology, &master);
	is_new = at == HS_TOPOLOGY_NO_SHARD;
	if (is_new) {
		at = topology->shards_count;
		code = add_shard(parser, &master);
		if (code < 0)
			return code;
	}
	topology->ranges[topology->ranges_count++] =
		(struct hs_topology_range){(uint16_t)first, (uint16_t)last, at};
	return parse_replicas(parser, &topology->shards[at], is_new, count - RANGE_FIELDS_MIN);
}

static int by_first_slot(const void *a, const void *b)
{
	return ((const struct hs_topology_range *)a)->first -
	       ((const struct hs_topology_range *)b)->first;
}

/* Sorts the ranges by slot and joins neighbouring ranges of one shard; sorts the shards by their lowest slot. So
 * the order of ranges in the reply does not matter. */
static int sort(struct parser *parser)
{
	struct hs_topology *topology = parser->topology;
	size_t size = topology->shards_count * sizeof *topology->shards;
	struct hs_topology_range *ranges = topology->ranges;
	struct hs_topology_shard *shards;
	uint16_t place[HS_TOPOLOGY_SHARDS_MAX], next = 0;
	uint32_t kept = 0;

	qsort(ranges, topology->ranges_count, sizeof *ranges, by_first_slot);
	for (uint32_t i = 1; i < topology->ranges_count; i++) {
		if (ranges[i].first <= ranges[i - 1].last)
			return hs_err_set(HS_EPROTO, parser->why, parser->why_size,
					  "slot %u is listed at two nodes", ranges[i].first);
	}
	shards = hs_mem_alloc(size);
	for (uint16_t i = 0; i < topology->shards_count; i++)
		place[i] = HS_TOPOLOGY_NO_SHARD;
	for (uint32_t i = 0; i < topology->ranges_count; i++) {
		struct hs_topology_range range = ranges[i];
		uint16_t slots = (uint16_t)(range.last - range.first + 1);

		if (place[range.shard] == HS_TOPOLOGY_NO_SHARD) {
			shards[next] = topology->shards[range.shard];
			place[range.shard] = next++;
		}
		range.shard = place[range.shard];
		shards[range.shard].slots_count =
			(uint16_t)(shards[range.shard].slots_count + slots);
		topology->slots_count += slots;
		if (kept > 0 && ranges[kept - 1].shard == range.shard &&
		    ranges[kept - 1].last + 1 == range.first)
			ranges[kept - 1].last = range.last;
		else
			ranges[kept++] = range;
	}
	hs_check(next == topology->shards_count); /* each shard has at least one range */
	topology->ranges_count = kept;
	hs_mem_free(&topology->shards);
	topology->shards = shards;
	return 0;
}

static int parse_whole(struct parser *parser)
{
	struct hs_parsed_reply head;
	int64_t whole = hs_parse_reply_length(parser->walk.data, parser->walk.len);

	if (whole < 0 || (size_t)whole != parser->walk.len || whole == 0)
		return malformed(parser, whole == 0 ? "it is cut short" : "it is not RESP");
	if (hs_walk_next(&parser->walk, &head) < 0)
		return malformed(parser, "it is cut short");
	if (head.type == HS_PARSED_ERROR) {
		char text[128];

		return hs_err_set(HS_EINVAL, parser->why, parser->why_size,
				  "CLUSTER SLOTS was answered with \"%s\"",
				  hs_bytes_escape(head.text, text, sizeof text));
	}
	if (head.type != HS_PARSED_ARRAY)
		return malformed(parser, "it is not an array");
	if (head.count == 0)
		return hs_err_set(HS_EINVAL, parser->why, parser->why_size,
				  "the cluster has no slots: its nodes have not been joined yet");
	reserve(parser->topology, (size_t)head.count);
	for (int64_t i = 0; i < head.count; i++) {
		int code = parse_range(parser);

		if (code < 0)
			return code;
	}
	return 0;
}

int hs_topology_parse(struct hs_topology **topology, struct hs_bytes reply, const char *asked,
		      uint16_t capacity, char *why, size_t why_size)
{
	struct parser parser = {
		.walk = {reply.data, reply.len},
		.topology = hs_mem_zalloc(sizeof *parser.topology),
		.asked = asked,
		.why = why,
		.why_size = why_size,
	};
	int code;

	hs_check(capacity > 0);
	parser.topology->capacity = capacity;
	code = parse_whole(&parser);
	if (code == 0)
		code = sort(&parser);
	if (code < 0)
		hs_topology_destroy(&parser.topology);
	*topology = parser.topology;
	return code;
}

struct hs_topology *hs_topology_single(const struct hs_redis_address *address, uint16_t capacity)
{
	struct parser parser = {.topology = hs_mem_zalloc(sizeof *parser.topology)};
	struct hs_topology_node node = {.address = *address};

	parser.topology->capacity = capacity;
	reserve(parser.topology, 1);
	hs_check(add_shard(&parser, &node) == 0);
	parser.topology->ranges[parser.topology->ranges_count++] =
		(struct hs_topology_range){0, HS_SLOTS - 1, 0};
	hs_check(sort(&parser) == 0);
	hs_topology_update(NULL, parser.topology);
	return parser.topology;
}

void hs_topology_destroy(struct hs_topology **topology)
{
	if (!*topology)
		return;
	for (uint16_t i = 0; i < (*topology)->shards_count; i++)
		hs_mem_free(&(*topology)->shards[i].replicas);
	hs_mem_free(&(*topology)->shards);
	hs_mem_free(&(*topology)->ranges);
	hs_mem_free(topology);
}

/* ---- reading a topology ---- */

const struct hs_topology_shard *hs_topology_shard(const struct hs_topology *topology,
						  uint16_t partition)
{
	for (uint16_t i = 0; i < topology->shards_count; i++) {
		if (topology->shards[i].partition == partition)
			return &topology->shards[i];
	}
	return NULL;
}

const struct hs_topology_shard *hs_topology_find(const struct hs_topology *topology,
						 const struct hs_redis_address *address)
{
	for (uint16_t i = 0; i < topology->shards_count; i++) {
		const struct hs_topology_shard *shard = &topology->shards[i];

		if (hs_redis_same_address(&shard->master.address, address))
			return shard;
		for (uint16_t j = 0; j < shard->replicas_count; j++) {
			if (hs_redis_same_address(&shard->replicas[j].address, address))
				return shard;
		}
	}
	return NULL;
}

bool hs_topology_next_common(const struct hs_topology *before, const struct hs_topology *after,
			     struct hs_topology_common *common)
{
	while (common->before_at < before->ranges_count && common->after_at < after->ranges_count) {
		const struct hs_topology_range *was = &before->ranges[common->before_at];
		const struct hs_topology_range *is = &after->ranges[common->after_at];
		uint16_t first = was->first > is->first ? was->first : is->first;
		uint16_t last = was->last < is->last ? was->last : is->last;

		common->before_at += was->last == last;
		common->after_at += is->last == last;
		if (first > last)
			continue;
		common->before = was->shard;
		common->after = is->shard;
		common->slots = last - first + 1u;
		return true;
	}
	return false;
}

char *hs_topology_slots_text(const struct hs_topology *topology, uint16_t partition, char *text,
			     size_t size)
{
	static const char more[] = " …";
	const struct hs_topology_range *ranges = topology->ranges;
	size_t len = 0;

	hs_check(size > sizeof "00000-00000" + sizeof more);
	text[0] = '\0';
	for (uint32_t i = 0; i < topology->ranges_count; i++) {
		uint16_t first = ranges[i].first;
		char range[16];
		int range_len;

		if (topology->shards[ranges[i].shard].partition != partition)
			continue;
		/* Joins neighbouring ranges of different shards, because several shards may share the last
		 * partition. */
		while (i + 1 < topology->ranges_count &&
		       ranges[i + 1].first == ranges[i].last + 1 &&
		       topology->shards[ranges[i + 1].shard].partition == partition)
			i++;
		range_len =
			snprintf(range, sizeof range, first == ranges[i].last ? "%s%u" : "%s%u-%u",
				 len ? " " : "", first, ranges[i].last);
		/* Leaves room for the "…", except at the last range. */
		if (len + (size_t)range_len + sizeof more > size) {
			memcpy(text + len, more, sizeof more);
			return text;
		}
		memcpy(text + len, range, (size_t)range_len + 1);
		len += (size_t)range_len;
	}
	return text;
}

static void fill_range(struct hs_slot_map *map, uint32_t first, uint32_t last, uint16_t partition)
{
	for (uint32_t slot = first; slot <= last; slot++) {
		if (hs_slot_map_get(map, (uint16_t)slot) != partition)
			hs_slot_map_set(map, (uint16_t)slot, partition);
	}
}

void hs_topology_fill(const struct hs_topology *before, const struct hs_topology *after,
		      struct hs_slot_map *map)
{
	bool present[HS_PARTITIONS_MAX] = {false};
	uint32_t ranges = before ? before->ranges_count : 0, at = 0;

	for (uint32_t i = 0; i < after->ranges_count; i++) {
		const struct hs_topology_range *range = &after->ranges[i];
		uint16_t partition = after->shards[range->shard].partition;
		uint32_t slot = range->first;

		present[partition] = true;
		/* Skips slots that had this partition before: their entries in `map` are right. */
		for (; at < ranges && before->ranges[at].first <= range->last; at++) {
			const struct hs_topology_range *was = &before->ranges[at];

			if (before->shards[was->shard].partition == partition &&
			    was->last >= slot) {
				if (was->first > slot)
					fill_range(map, slot, was->first - 1u, partition);
				slot = was->last + 1u;
			}
			if (was->last > range->last)
				break; /* `was` also overlaps the next range */
		}
		if (slot <= range->last)
			fill_range(map, slot, range->last, partition);
	}
	for (uint32_t i = 0; i < HS_PARTITIONS_MAX; i++)
		hs_slot_map_set_present(map, (uint16_t)i, present[i]);
	hs_slot_map_set_count(map, after->count);
}
