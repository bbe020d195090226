/* Benchmarks a worker's cache alone: hit ratio and cost. One thread, no server.
 *
 * Part 1: requests for ten million keys, Zipf 0.99, values of one size; a miss fetches the value. The hit ratio is
 * compared with the best possible one for this number of entries, which is to hold the hottest keys at all times.
 * Part 2: nanoseconds for a hit, from the bytes of the key to a reply that may be sent, and for a miss with its
 * fetch. Part 3: ten million keys that are requested once each must not need more memory, become slower, or push out
 * the keys in use.
 *
 *     cache_ratio      prints lines of: what | target | measured; exits with 0 also if a target is MISSED */
#include "absorb/cache/store.h"
#include "absorb/shared.h"
#include "base/check.h"
#include "base/mem.h"
#include "cli/storm.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

enum {
	KEYS = 10000000,
	WARM = 50, /* requests per entry before counting; COUNTED: while counting */
	COUNTED = 200,
	REQUESTS_MIN = 2000000,
	VALUE_BYTES = 100,
	HITS = 1000,	 /* keys in use during part 3 */
	ONCE = 10000000, /* keys that are requested once */
	TENTH = ONCE / 10,
	SEED = 1,
	ENTRY_BYTES_MAX = 1 << 20,
};

static const double exponent = 0.99, wanted = 0.97;

struct world {
	struct hs_shared *shared;
	struct hs_cache *cache;
	struct hs_rule rule;
	struct hs_tracking_session tracking_session;
	uint64_t entry_bytes;
	char reply[VALUE_BYTES + 16];
	size_t reply_len;
};

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static void make_cache(struct world *world, size_t entries)
{
	struct hs_cache_limits limits = {entries * world->entry_bytes, ENTRY_BYTES_MAX};

	hs_cache_destroy(&world->cache);
	world->cache = hs_cache_create(0, &limits);
}

static struct hs_bytes key_text(uint64_t number, char text[24])
{
	int len = snprintf(text, 24, "key:%012llu", (unsigned long long)number);

	return (struct hs_bytes){text, (size_t)len};
}

/* Looks a key up, and fetches it after a miss, as a worker does. True: a hit. */
static bool request(struct world *world, struct hs_bytes key)
{
	struct hs_bytes argv[2];
	struct hs_cache_key *cached;
	struct hs_cache_entry *entry;
	struct hs_cache_query ask;
	uint64_t age_us;

	hs_cache_query_get(&ask, hs_shared_hash(world->shared, key), key, argv);
	cached = hs_cache_find(world->cache, ask.key_hash, ask.key);
	entry = cached ? hs_cache_get(cached, &ask) : NULL;
	if (entry && hs_cache_entry_state(entry, &world->rule,
					  hs_shared_version(world->shared, ask.key_hash), 1000,
					  &age_us) == HS_CACHE_ENTRY_FRESH) {
		hs_cache_use(cached);
		return true;
	}
	cached = hs_cache_admit(world->cache, ask.key_hash, ask.key);
	entry = hs_cache_entry_create(&ask, (struct hs_bytes){world->reply, world->reply_len});
	entry->tracking_session = &world->tracking_session;
	entry->expires_us = UINT64_MAX;
	hs_check(cached);
	hs_check(hs_cache_put(world->cache, cached, entry));
	hs_cache_entry_unref(&entry);
	return false;
}

static void world_init(struct world *world)
{
	struct hs_cache_limits limits = {ENTRY_BYTES_MAX, ENTRY_BYTES_MAX};
	int head = snprintf(world->reply, sizeof world->reply, "$%d\r\n", VALUE_BYTES);
	char text[24];

	world->reply_len = (size_t)head + VALUE_BYTES + 2;
	memset(world->reply + head, 'v', VALUE_BYTES);
	memcpy(world->reply + world->reply_len - 2, "\r\n", 2);
	world->shared = hs_shared_create(SEED, 0);
	world->rule.stale_us = 1000;
	world->tracking_session.caught_up_us = UINT64_MAX;
	world->cache = hs_cache_create(0, &limits);
	request(world, key_text(0, text));
	world->entry_bytes = hs_cache_counts(world->cache).bytes;
}

static double best_of(size_t entries)
{
	double best = 0, all = 0;

	for (size_t i = 1; i <= KEYS; i++) {
		all += pow((double)i, -exponent);
		if (i == entries)
			best = all;
	}
	return best / all;
}

static void run_ratio(struct world *world, size_t entries)
{
	struct hs_storm_shape shape = {.kind = HS_STORM_ZIPF, .exponent = exponent};
	size_t warm = entries * WARM, counted = entries * COUNTED, hits = 0;
	struct hs_storm_keys keys;
	struct hs_prng prng;
	char text[24];
	double ratio, best = best_of(entries);

	if (counted < REQUESTS_MIN)
		warm = counted = REQUESTS_MIN;
	make_cache(world, entries);
	hs_storm_keys_init(&keys, &shape, KEYS, SEED);
	hs_prng_init(&prng, SEED);
	for (size_t i = 0; i < warm + counted; i++) {
		uint64_t number = hs_storm_keys_next(&keys, &prng, 0);

		hits += request(world, key_text(number, text)) && i >= warm;
	}
	ratio = (double)hits / (double)counted;
	hs_check(hs_cache_counts(world->cache).keys <= entries);
	printf("cache of %zu entries, Zipf %.2f of 10 M, part of the best | >= %.2f | "
	       "%.3f: %.4f of %.4f: %s\n",
	       entries, exponent, wanted, ratio / best, ratio, best,
	       ratio >= wanted * best ? "met" : "MISSED");
	fflush(stdout);
}

/* Part 3: ten million keys are requested once each. After every tenth, one of HITS hot keys is requested: counts how
 * often it is still cached. */
static void run_once(struct world *world)
{
	uint64_t bytes = 10 * HITS * world->entry_bytes, used = 0, found = 0;
	double first_ns = 0, last_ns = 0, start_ns = 0;
	char text[24];
	bool bounded = true;

	make_cache(world, (size_t)10 * HITS);
	for (uint64_t i = 0; i < 4 * HITS; i++)
		request(world, key_text(i % HITS, text));
	for (uint64_t i = 0; i < ONCE; i++) {
		if (i % TENTH == 0)
			start_ns = cpu_ns();
		request(world, key_text(HITS + i, text));
		if (i % 10 == 0) {
			found += request(world, key_text(used++ % HITS, text));
			bounded &= hs_cache_counts(world->cache).bytes <= bytes;
		}
		if (i % TENTH == TENTH - 1) {
			last_ns = (cpu_ns() - start_ns) / TENTH;
			first_ns = first_ns > 0 ? first_ns : last_ns;
		}
	}
	printf("10 M keys once each: keys in use are still found | > 99 %% | %.2f %%: %s\n",
	       100.0 * (double)found / (double)used,
	       (double)found > 0.99 * (double)used ? "met" : "MISSED");
	printf("10 M keys once each: memory | within its bound | %s\n", bounded ? "met" : "MISSED");
	printf("10 M keys once each: ns a miss, the last million | as the first | %.0f, %.0f\n",
	       last_ns, first_ns);
}

static void run_cost(struct world *world, size_t entries)
{
	enum { ROUNDS = 20 };
	double ns;
	char(*keys)[24] = hs_mem_alloc(entries * sizeof *keys);
	struct hs_bytes *names = hs_mem_alloc(entries * sizeof *names);
	size_t hits = 0;

	make_cache(world, entries * 2);
	for (size_t i = 0; i < entries; i++) {
		names[i] = key_text(i, keys[i]);
		request(world, names[i]);
	}
	ns = cpu_ns();
	for (size_t round = 0; round < ROUNDS; round++)
		for (size_t i = 0; i < entries; i++)
			hits += request(world, names[i * 7919 % entries]);
	ns = (cpu_ns() - ns) / ROUNDS / (double)entries;
	hs_check(hits == ROUNDS * entries);
	printf("a hit among %zu entries |  | %.0f ns\n", entries, ns);
	hs_mem_free(&keys);
	hs_mem_free(&names);
}

int main(void)
{
	struct world world = {0};

	world_init(&world);
	printf("an entry: a key of 16 bytes, a value of %d |  | %llu bytes\n", VALUE_BYTES,
	       (unsigned long long)world.entry_bytes);
	run_ratio(&world, 1000);
	run_ratio(&world, 10000);
	run_cost(&world, 1000);
	run_cost(&world, 100000);
	run_once(&world);
	hs_cache_destroy(&world.cache);
	hs_shared_destroy(&world.shared);
	return 0;
}
