/* Reads CLUSTER SLOTS. Its elements are ranges, not shards:
 *
 *     [ [ 0, 5460,    master, replica … ],
 *       [ 5461, 9000, master, replica … ], … ]     a node is [ host, port, id, metadata ]
 *
 * so ranges of the same master are put together. Servers before Redis 4 leave the id out, those
 * before Redis 7 the metadata. */
#include "engine/redis/topology.h"

#include "base/mem.h"
#include "engine/redis/walk.h"

#include <stdarg.h>
#include <stdio.h>

enum { NODE_FIELDS_MIN = 2, RANGE_FIELDS_MIN = 3 };

struct parser {
	struct hs_walk walk;
	struct hs_topology *topology;
	const char *asked;
	uint16_t shards_room;
	char *why;
	size_t why_size;
};

__attribute__((format(printf, 3, 4))) static int refuse(const struct parser *parser, int code,
							const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(parser->why, parser->why_size, format, arguments);
	va_end(arguments);
	return code;
}

static int no_reply(const struct parser *parser, const char *what)
{
	return refuse(parser, HS_EPROTO, "the reply to CLUSTER SLOTS is none: %s", what);
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

/* The other names of a node: pairs of words. */
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

/* The endpoint that the operator prefers. None at all means the one that was asked; "?" is a host
 * name that nobody has set, and the other names have to do. */
static struct hs_bytes choose_host(const struct parser *parser, struct hs_bytes preferred,
				   struct hs_bytes ip, struct hs_bytes hostname)
{
	if (preferred.len == 0)
		return hs_bytes_of(parser->asked);
	if (!hs_bytes_equal(preferred, HS_LIT("?")))
		return preferred;
	return ip.len ? ip : hostname;
}

/* A node without a host or a port comes out with port 0. */
static int parse_node(struct parser *parser, struct hs_topology_node *node)
{
	struct hs_bytes preferred, id = {"", 0}, ip = {"", 0}, hostname = {"", 0}, host;
	struct hs_walk *walk = &parser->walk;
	int64_t count, port;

	memset(node, 0, sizeof *node);
	if (hs_walk_array(walk, &count) < 0 || count < NODE_FIELDS_MIN)
		return no_reply(parser, "a node must be a host, a port, an id");
	if (hs_walk_text(walk, &preferred) < 0)
		return no_reply(parser, "a node's host must be a text");
	if (hs_walk_int(walk, 0, 65535, &port) < 0)
		return no_reply(parser, "a node's port must be a number from 0 to 65535");
	if (count > 2 && (hs_walk_text(walk, &id) < 0 || !copy(id, node->id, sizeof node->id)))
		return no_reply(parser, "a node's id must be 64 printable bytes at most");
	if (count > 3 && parse_metadata(walk, &ip, &hostname) < 0)
		return no_reply(parser, "a node's metadata must be pairs");
	for (int64_t i = 4; i < count; i++) {
		if (hs_walk_skip(walk) < 0)
			return no_reply(parser, "it is cut short");
	}
	host = choose_host(parser, preferred, ip, hostname);
	if (!copy(host, node->address.host, sizeof node->address.host))
		return no_reply(parser, "a node's host must be 253 printable bytes at most");
	node->address.port = host.len ? (uint16_t)port : 0;
	return 0;
}

/* ---- ranges ---- */

/* The shard of a master: most often the one that the range before belongs to. */
static uint16_t find_shard(const struct hs_topology *topology,
			   const struct hs_topology_node *master)
{
	for (uint16_t i = topology->shards_count; i > 0; i--) {
		if (hs_topology_same_node(&topology->shards[i - 1].master, master))
			return (uint16_t)(i - 1);
	}
	return HS_TOPOLOGY_NOBODY;
}

static int add_shard(struct parser *parser, const struct hs_topology_node *master)
{
	struct hs_topology *topology = parser->topology;

	if (topology->shards_count == HS_TOPOLOGY_SHARDS_MAX)
		return refuse(parser, HS_ELIMIT, "the cluster has more than %d shards",
			      HS_TOPOLOGY_SHARDS_MAX);
	if (topology->shards_count == parser->shards_room) {
		parser->shards_room = (uint16_t)(parser->shards_room ? 2 * parser->shards_room : 8);
		topology->shards = hs_mem_realloc(topology->shards,
						  parser->shards_room * sizeof *topology->shards);
	}
	topology->shards[topology->shards_count++] = (struct hs_topology_shard){.master = *master};
	return 0;
}

/* Every range of a shard names the same replicas: those of the first are kept. */
static int parse_replicas(struct parser *parser, struct hs_topology_shard *shard, int64_t count)
{
	bool first = shard->slots_count == 0;
	int64_t room = count < HS_TOPOLOGY_REPLICAS_MAX ? count : HS_TOPOLOGY_REPLICAS_MAX;

	if (first && room > 0)
		shard->replicas = hs_mem_zalloc((size_t)room * sizeof *shard->replicas);
	for (int64_t i = 0; i < count; i++) {
		struct hs_topology_node node;
		int code = parse_node(parser, &node);

		if (code < 0)
			return code;
		if (first && node.address.port && shard->replicas_count < room)
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
	int code;

	if (hs_walk_array(&parser->walk, &count) < 0 || count < RANGE_FIELDS_MIN)
		return no_reply(parser, "a range must be two slots and a node");
	if (hs_walk_int(&parser->walk, 0, HS_SLOTS - 1, &first) < 0 ||
	    hs_walk_int(&parser->walk, first, HS_SLOTS - 1, &last) < 0)
		return no_reply(parser, "a range must be two slots from 0 to 16383");
	code = parse_node(parser, &master);
	if (code < 0)
		return code;
	if (master.address.port == 0)
		return refuse(
			parser, HS_EPROTO,
			"the node of slots %d-%d tells no address to reach it at (a node that "
			"speaks TLS alone tells it to TLS connections)",
			(int)first, (int)last);
	at = find_shard(topology, &master);
	if (at == HS_TOPOLOGY_NOBODY) {
		at = topology->shards_count;
		code = add_shard(parser, &master);
		if (code < 0)
			return code;
	}
	code = parse_replicas(parser, &topology->shards[at], count - RANGE_FIELDS_MIN);
	for (int64_t slot = first; code == 0 && slot <= last; slot++) {
		if (topology->owner[slot] != HS_TOPOLOGY_NOBODY)
			return refuse(parser, HS_EPROTO, "slot %d is said to be at two nodes",
				      (int)slot);
		topology->owner[slot] = at;
		topology->shards[at].slots_count++;
		topology->slots_count++;
	}
	return code;
}

/* Shards in the order of their lowest slots, whatever the order in which a server tells them. */
static void sort(struct hs_topology *topology)
{
	size_t size = topology->shards_count * sizeof *topology->shards;
	struct hs_topology_shard *shards = hs_mem_alloc(size);
	uint16_t *place = hs_mem_alloc(topology->shards_count * sizeof *place);
	uint16_t next = 0;

	for (uint16_t i = 0; i < topology->shards_count; i++)
		place[i] = HS_TOPOLOGY_NOBODY;
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++) {
		uint16_t at = topology->owner[slot];

		if (at == HS_TOPOLOGY_NOBODY)
			continue;
		if (place[at] == HS_TOPOLOGY_NOBODY) {
			shards[next] = topology->shards[at];
			place[at] = next++;
		}
		topology->owner[slot] = place[at];
	}
	hs_check(next == topology->shards_count); /* each came with a range */
	hs_mem_free(&topology->shards);
	hs_mem_free(&place);
	topology->shards = shards;
}

static int parse_whole(struct parser *parser)
{
	struct hs_answer head;
	int64_t whole = hs_answer_length(parser->walk.data, parser->walk.len);

	if (whole < 0 || (size_t)whole != parser->walk.len || whole == 0)
		return no_reply(parser, whole == 0 ? "it is cut short" : "it is not one of RESP");
	if (hs_walk_next(&parser->walk, &head) < 0)
		return no_reply(parser, "it is cut short");
	if (head.type == HS_ANSWER_ERROR) {
		char text[128];

		return refuse(parser, HS_EINVAL, "CLUSTER SLOTS was answered with \"%s\"",
			      hs_bytes_escape(head.text, text, sizeof text));
	}
	if (head.type != HS_ANSWER_ARRAY)
		return no_reply(parser, "it is no array");
	if (head.count == 0)
		return refuse(parser, HS_EINVAL,
			      "the cluster has no slots: its nodes have not been put together yet");
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
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++)
		parser.topology->owner[slot] = HS_TOPOLOGY_NOBODY;
	code = parse_whole(&parser);
	if (code < 0)
		hs_topology_destroy(&parser.topology);
	else
		sort(parser.topology);
	*topology = parser.topology;
	return code;
}

void hs_topology_destroy(struct hs_topology **topology)
{
	if (!*topology)
		return;
	for (uint16_t i = 0; i < (*topology)->shards_count; i++)
		hs_mem_free(&(*topology)->shards[i].replicas);
	hs_mem_free(&(*topology)->shards);
	hs_mem_free(topology);
}

/* ---- questions ---- */

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

static bool has_slot(const struct hs_topology *topology, uint16_t partition, uint32_t slot)
{
	uint16_t owner = topology->owner[slot];

	return owner != HS_TOPOLOGY_NOBODY && topology->shards[owner].partition == partition;
}

char *hs_topology_slots_text(const struct hs_topology *topology, uint16_t partition, char *text,
			     size_t size)
{
	static const char more[] = " …";
	size_t len = 0;

	hs_check(size > sizeof "00000-00000" + sizeof more);
	text[0] = '\0';
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++) {
		uint32_t first = slot;
		char range[16];
		int range_len;

		if (!has_slot(topology, partition, slot))
			continue;
		while (slot + 1 < HS_SLOTS && has_slot(topology, partition, slot + 1))
			slot++;
		range_len = snprintf(range, sizeof range, first == slot ? "%s%u" : "%s%u-%u",
				     len ? " " : "", first, slot);
		/* Room is kept for the dots, as long as not every slot has been seen. */
		if (len + (size_t)range_len + sizeof more > size) {
			memcpy(text + len, more, sizeof more);
			return text;
		}
		memcpy(text + len, range, (size_t)range_len + 1);
		len += (size_t)range_len;
	}
	return text;
}

void hs_topology_fill(const struct hs_topology *topology, struct hs_slot_map *map)
{
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++) {
		uint16_t owner = topology->owner[slot], was = hs_slot_map_get(map, (uint16_t)slot);
		uint16_t is = was < topology->capacity ? was : 0;

		if (owner != HS_TOPOLOGY_NOBODY)
			is = topology->shards[owner].partition;
		if (is != was)
			hs_slot_map_set(map, (uint16_t)slot, is);
	}
	for (uint32_t i = 0; i < HS_PARTITIONS_MAX; i++)
		hs_slot_map_set_present(map, (uint16_t)i,
					hs_topology_shard(topology, (uint16_t)i) != NULL);
	hs_slot_map_set_count(map, topology->count);
}
