/* Benchmarks finding a key's rule: nanoseconds per lookup, with few rules and with many. One thread, no server.
 *
 * The rules are of the kinds that people write, in equal parts: the keys of a tenant, a kind of object of a shop, one
 * key by its name, a field of a user. Keys are drawn before the measurement: keys that have a rule, and similar keys
 * without one, so that the table is searched. Each round passes over the keys bare and with lookups; the line shows
 * the median of the differences, in the thread's own CPU time.
 *
 *     rules      prints lines of: what | target | measured; exits with 0 also if a target is MISSED */
#include "base/check.h"
#include "base/mem.h"
#include "base/prng.h"
#include "contract/contract.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { DRAWS = 1 << 20, KEY_BYTES = 64, ROUNDS = 7, NS_MAX = 30, KINDS = 4 };

struct key {
	uint8_t len;
	char text[KEY_BYTES - 1];
};

/* The glob of a rule, and the form of a matching key, by the rule's number and the key's own number. */
static const char *const globs[KINDS] = {"tenant%u:*", "shop:%u:item:*", "page:%u",
					 "user:%u:*:name"};
static const char *const forms[KINDS] = {"tenant%u:session:%08x", "shop:%u:item:%010u", "page:%u",
					 "user:%u:%u:name"};

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_size);
	return values[count / 2];
}

static const struct hs_rules *make_rules(unsigned count)
{
	const struct hs_rules *rules = hs_rules_create();

	for (unsigned i = 0; i < count; i++) {
		char glob[KEY_BYTES], error[256];
		struct hs_bytes words[2] = {{glob, 0}, HS_LIT("cache")};
		struct hs_rules *with;

		words[0].len = (size_t)snprintf(glob, sizeof glob, globs[i % KINDS], i);
		hs_check(hs_rules_with(rules, 2, words, &with, error, sizeof error) == 0);
		hs_rules_unref(&rules);
		rules = with;
	}
	return rules;
}

/* Draws keys of the rules from number `from` on. */
static void draw_keys(struct key *keys, unsigned from, unsigned count)
{
	struct hs_prng prng;

	hs_prng_init(&prng, 1);
	for (size_t i = 0; i < DRAWS; i++) {
		unsigned rule = from + (unsigned)hs_prng_below(&prng, count);
		int len = snprintf(keys[i].text, sizeof keys[i].text, forms[rule % KINDS], rule,
				   (unsigned)hs_prng_below(&prng, 10000000));

		keys[i].len = (uint8_t)len;
	}
}

/* Replaces the lookup in a bare pass. */
__attribute__((noinline)) static const struct hs_rule *nothing(const struct hs_rules *rules,
							       struct hs_bytes key)
{
	__asm__ volatile("" ::"r"(rules), "r"(key.data) : "memory");
	return NULL;
}

static double turn_ns(const struct hs_rules *rules, const struct key *keys, bool bare,
		      size_t *found)
{
	uint64_t begin = cpu_ns();

	*found = 0;
	for (size_t i = 0; i < DRAWS; i++) {
		struct hs_bytes key = {keys[i].text, keys[i].len};

		*found += (bare ? nothing(rules, key) : hs_rules_match(rules, key)) != NULL;
	}
	return (double)(cpu_ns() - begin) / DRAWS;
}

static void measure(unsigned count, bool hit, struct key *keys)
{
	const struct hs_rules *rules = make_rules(count);
	double ns[ROUNDS], lookup_ns;
	char ask[32] = "";
	size_t found;

	draw_keys(keys, hit ? 0 : count, count);
	for (int i = 0; i < ROUNDS; i++) {
		double bare = turn_ns(rules, keys, true, &found);

		ns[i] = turn_ns(rules, keys, false, &found) - bare;
	}
	hs_check(found == (hit ? DRAWS : 0));
	lookup_ns = median(ns, ROUNDS);
	if (count == 1000)
		snprintf(ask, sizeof ask, "<= %d ns", NS_MAX);
	printf("%u rule%s, keys that have %s | %s | %.1f ns%s\n", count, count == 1 ? "" : "s",
	       hit ? "one" : "none", ask, lookup_ns,
	       !ask[0]		     ? ""
	       : lookup_ns <= NS_MAX ? ": met"
				     : ": MISSED");
	fflush(stdout);
	hs_rules_unref(&rules);
}

int main(void)
{
	static const unsigned counts[] = {1, 100, 1000};
	struct key *keys = hs_mem_alloc(DRAWS * sizeof *keys);

	for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
		measure(counts[i], true, keys);
		measure(counts[i], false, keys);
	}
	hs_mem_free(&keys);
	return 0;
}
