/* Fuzz target: the parsers for what servers report about themselves and their cluster, and for --engine URLs
 * (engine/redis/topology.h, node_info.h, slot_stats.h). They must read only inside the given bytes, and their results
 * must be consistent.
 *
 * Input: the first byte selects the parser of the rest. For topologies the rest is two replies in a row: the cluster
 * before and after a change. The rest lies in one heap copy of exactly the right size, so that the address
 * sanitizer finds a read beyond its end. It does not find a read beyond the first of two topologies, which ends
 * inside the copy, nor in the second parse of a URL, whose text is an array on the stack. The head of
 * fuzz_request.c says how targets run and how to replay a crash. */
#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/redis/node_info.h"
#include "engine/redis/slot_stats.h"
#include "engine/redis/topology.h"
#include "wire/parse_reply.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_why(int code, const char *why)
{
	if (code < 0) {
		hs_check(why[0] != '\0');
		hs_check(strchr(why, '\n') == NULL);
	}
}

/* The text form of a URL can be parsed again and has the same meaning. */
static void run_url(struct hs_bytes text)
{
	struct hs_redis_url url, again;
	char why[HS_REDIS_WHY_BYTES] = "", shown[HS_REDIS_URL_TEXT_BYTES];
	int code = hs_redis_url_parse(&url, text, why, sizeof why);

	check_why(code, why);
	if (code < 0)
		return;
	hs_redis_url_text(&url, shown, sizeof shown);
	hs_check(hs_redis_url_parse(&again, hs_bytes_of(shown), why, sizeof why) == 0);
	hs_check(again.kind == url.kind && again.tls == url.tls && again.auth == url.auth);
	hs_check(again.db == url.db && again.seeds_count == url.seeds_count);
	hs_check(strcmp(again.user, url.user) == 0);
	hs_check(!url.auth || strcmp(again.pass, "***") == 0);
	for (size_t i = 0; i < url.seeds_count; i++)
		hs_check(hs_redis_same_address(&again.seeds[i], &url.seeds[i]));
}

/* `map` was filled from `before`. */
static void check_topology(const struct hs_topology *before, const struct hs_topology *topology,
			   struct hs_slot_map *map)
{
	uint32_t slots = 0, served = 0, last = 0;
	char text[32];

	hs_check(topology->shards_count > 0);
	hs_check(topology->count <= topology->capacity);
	for (uint16_t i = 0; i < topology->shards_count; i++) {
		const struct hs_topology_shard *shard = &topology->shards[i];

		slots += shard->slots_count;
		hs_check(shard->slots_count > 0);
		hs_check(shard->partition < topology->count);
		hs_check(shard->master.address.port > 0);
		hs_check(shard->master.address.host[0] != '\0');
		for (uint16_t j = 0; j < i && !topology->crowded; j++)
			hs_check(topology->shards[j].partition != shard->partition);
		hs_topology_slots_text(topology, shard->partition, text, sizeof text);
		hs_check(text[0] != '\0');
		hs_check(strlen(text) < sizeof text);
	}
	hs_check(slots == topology->slots_count);
	hs_topology_fill(before, topology, map);
	for (uint32_t i = 0; i < topology->ranges_count; i++) {
		const struct hs_topology_range *range = &topology->ranges[i];

		hs_check(range->first <= range->last && range->last < HS_SLOTS);
		hs_check(i == 0 || range->first > last);
		hs_check(range->shard < topology->shards_count);
		last = range->last;
		for (uint32_t slot = range->first; slot <= range->last; slot++, served++)
			hs_check(hs_slot_map_get(map, (uint16_t)slot) ==
				 topology->shards[range->shard].partition);
	}
	hs_check(served == slots);
}

static void run_topology(struct hs_bytes replies, uint16_t capacity)
{
	struct hs_slot_map *map = hs_mem_zalloc(sizeof *map);
	struct hs_topology *before = NULL, *after = NULL;
	int64_t len = hs_parse_reply_length(replies.data, replies.len);
	struct hs_bytes first = {replies.data, len > 0 ? (size_t)len : replies.len};
	struct hs_bytes second = {replies.data + first.len, replies.len - first.len};
	char why[HS_REDIS_WHY_BYTES] = "";
	int code = hs_topology_parse(&before, first, "asked", capacity, why, sizeof why);

	check_why(code, why);
	if (code == 0) {
		hs_check(hs_topology_update(NULL, before) == HS_TOPOLOGY_CHANGED);
		check_topology(NULL, before, map);
		code = hs_topology_parse(&after, second, "asked", capacity, why, sizeof why);
		check_why(code, why);
	}
	if (code == 0) {
		(void)hs_topology_update(before, after);
		check_topology(before, after, map);
		hs_topology_destroy(&before);
		hs_check(hs_topology_parse(&before, second, "asked", capacity, why, sizeof why) ==
			 0);
		/* Updating with the same topology must report HS_TOPOLOGY_SAME. */
		hs_check(after->crowded || hs_topology_update(after, before) == HS_TOPOLOGY_SAME);
	}
	hs_topology_destroy(&before);
	hs_topology_destroy(&after);
	hs_mem_free(&map);
}

static void run_slot_stats(struct hs_bytes reply)
{
	struct hs_slot_samples *samples = hs_mem_zalloc(sizeof *samples);
	struct hs_slot_sample last = {0};
	struct hs_slot_sums sums = {0};
	char why[HS_REDIS_WHY_BYTES] = "";
	int code = hs_slot_stats_sample(samples, &last, reply, 1, &sums, why, sizeof why);

	check_why(code, why);
	hs_check(code <= HS_SLOTS);
	hs_check(sums.cpu == 0 && sums.keys <= INT64_MAX);
	for (uint32_t slot = 0; slot < HS_SLOTS && code < 0; slot++)
		hs_check(samples->slots[slot].sample == 0);
	if (code >= 0) { /* a second sample with equal counters: all differences are 0 */
		hs_check(hs_slot_stats_sample(samples, &last, reply, 2, &sums, why, sizeof why) ==
			 code);
		hs_check(sums.cpu == 0 && sums.bytes_in == 0 && sums.bytes_out == 0);
	}
	hs_mem_free(&samples);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hs_node_info info;
	struct hs_bytes bytes;
	char *copy;

	if (size < 1)
		return 0;
	copy = hs_mem_alloc(size - 1 ? size - 1 : 1);
	memcpy(copy, data + 1, size - 1);
	bytes = (struct hs_bytes){copy, size - 1};
	switch (data[0] % 4) {
	case 0:
		run_topology(bytes, (uint16_t)(1 + data[0] / 4 % 8));
		break;
	case 1:
		run_url(bytes);
		break;
	case 2:
		if (hs_node_info_parse(&info, bytes) == 0) {
			hs_check(strlen(info.version) < sizeof info.version);
			hs_check(info.replicas_online <= info.replicas);
		}
		break;
	case 3:
		run_slot_stats(bytes);
		break;
	}
	hs_mem_free(&copy);
	return 0;
}
