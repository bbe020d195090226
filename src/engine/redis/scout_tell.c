#include "engine/redis/scout_internal.h"

#include "base/hash.h"

#include <stdarg.h>
#include <stdio.h>

enum { THINGS_MAX = 8, DEPTH_MAX = 16 };

/* ---- what changed ---- */

struct telling {
	struct hs_buf *text;
	size_t things;
};

__attribute__((format(printf, 2, 3))) static void tell(struct telling *telling, const char *format,
						       ...)
{
	char thing[2 * HS_ADDRESS_TEXT_MAX + 64];
	va_list args;

	telling->things++;
	if (telling->things > THINGS_MAX + 1)
		return;
	va_start(args, format);
	vsnprintf(thing, sizeof thing, format, args);
	va_end(args);
	hs_buf_printf(telling->text, "%s%s", telling->things > 1 ? "; " : "",
		      telling->things > THINGS_MAX ? "and more" : thing);
}

static char *address_of(const struct hs_topology_shard *shard, char *text, size_t size)
{
	return hs_address_text(shard->master.address.host, shard->master.address.port, text, size);
}

static void tell_masters(struct telling *telling, const struct hs_topology *before,
			 const struct hs_topology *after)
{
	char old[HS_ADDRESS_TEXT_MAX], new[HS_ADDRESS_TEXT_MAX];

	for (uint16_t i = 0; i < after->shards_count; i++) {
		const struct hs_topology_shard *shard = &after->shards[i];
		const struct hs_topology_shard *was = hs_topology_shard(before, shard->partition);

		address_of(shard, new, sizeof new);
		if (!was) {
			tell(telling, "%s is new, as partition %u", new, shard->partition);
		} else if (!hs_redis_same_address(&was->master.address, &shard->master.address) &&
			   hs_topology_shard(after, shard->partition) == shard) {
			address_of(was, old, sizeof old);
			tell(telling, "%s has replaced %s as master of partition %u", new, old,
			     shard->partition);
		}
	}
	for (uint16_t i = 0; i < before->shards_count; i++) {
		const struct hs_topology_shard *was = &before->shards[i];

		if (!hs_topology_shard(after, was->partition)) {
			address_of(was, old, sizeof old);
			tell(telling, "%s has no slots any more: partition %u is gone", old,
			     was->partition);
		}
	}
}

static uint16_t partition_of(const struct hs_topology *topology, uint32_t slot)
{
	uint16_t owner = topology->owner[slot];

	return owner == HS_TOPOLOGY_NOBODY ? HS_TOPOLOGY_NOBODY : topology->shards[owner].partition;
}

static void tell_slots(struct telling *telling, const struct hs_topology *before,
		       const struct hs_topology *after)
{
	uint32_t moved = 0;

	for (uint32_t slot = 0; slot < HS_SLOTS; slot++) {
		uint16_t was = partition_of(before, slot), is = partition_of(after, slot);

		moved += was != is && was != HS_TOPOLOGY_NOBODY && is != HS_TOPOLOGY_NOBODY;
	}
	if (moved > 0)
		tell(telling, "%u slot%s moved", moved, moved == 1 ? "" : "s");
	if (after->slots_count < HS_SLOTS && after->slots_count != before->slots_count)
		tell(telling, "%u slots are served by nobody", HS_SLOTS - after->slots_count);
	if (after->slots_count == HS_SLOTS && before->slots_count < HS_SLOTS)
		tell(telling, "all slots are served again");
}

static uint32_t count_replicas(const struct hs_topology *topology)
{
	uint32_t count = 0;

	for (uint16_t i = 0; i < topology->shards_count; i++)
		count += topology->shards[i].replicas_count;
	return count;
}

void hs_scout_tell_change(const struct hs_topology *before, const struct hs_topology *after,
			  struct hs_buf *text)
{
	struct telling telling = {.text = text};
	uint32_t were, are;

	if (!before)
		return;
	tell_masters(&telling, before, after);
	tell_slots(&telling, before, after);
	were = count_replicas(before);
	are = count_replicas(after);
	if (were != are)
		tell(&telling, "%u replica%s now, %u before", are, are == 1 ? "" : "s", were);
	if (telling.things == 0)
		tell(&telling, "other replicas than before");
}

/* ---- whether commands are the same ---- */

/* A server keeps its commands and their subcommands in tables whose order is another one in each
 * process. So lists of lists are summed up, and only plain elements count by their places. Returns
 * the bytes read, or 0 for what is no reply. */
static size_t hash_element(struct hs_bytes reply, int depth, uint64_t *hash)
{
	struct hs_answer head;
	int64_t used = hs_answer_head(&head, reply.data, reply.len);
	size_t at;
	uint64_t place = 0;

	if (used <= 0 || depth == DEPTH_MAX)
		return 0;
	at = (size_t)used;
	*hash = hs_hash((struct hs_bytes){reply.data, at}, 0);
	if (head.type != HS_ANSWER_ARRAY && head.type != HS_ANSWER_MAP)
		return at;
	for (int64_t i = 0; i < head.count * (head.type == HS_ANSWER_MAP ? 2 : 1); i++) {
		struct hs_bytes rest = {reply.data + at, reply.len - at};
		uint64_t of_element;
		size_t length = hash_element(rest, depth + 1, &of_element);

		if (length == 0)
			return 0;
		if (rest.data[0] != '*' && rest.data[0] != '%' && rest.data[0] != '~')
			of_element += ++place * 0x9e3779b97f4a7c15u;
		*hash +=
			hs_hash((struct hs_bytes){(const char *)&of_element, sizeof of_element}, 1);
		at += length;
	}
	*hash = hs_hash((struct hs_bytes){(const char *)hash, sizeof *hash}, 2);
	return at;
}

uint64_t hs_scout_command_hash(struct hs_bytes reply)
{
	uint64_t hash = 0;

	return hash_element(reply, 0, &hash) > 0 ? hash : 0;
}
