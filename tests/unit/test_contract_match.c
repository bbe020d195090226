/* Goal: every key finds the rule that the documented order gives it.
 *
 * Method: named cases; then random rules of few letters, short and long, and keys similar to them, compared with a
 * reference that tries every rule in turn. */
#include "contract/contract.h"

#include "base/err.h"
#include "base/glob.h"
#include "base/limits.h"
#include "base/prng.h"
#include "tests/lib/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void expect(const struct hs_rules *rules, const char *key, const char *glob)
{
	const struct hs_rule *rule = hs_rules_match(rules, hs_bytes_of(key));

	if (!rule != !glob || (rule && !hs_bytes_equal(rule->glob, hs_bytes_of(glob))))
		fail_msg("%s: found %.*s, expected %s", key, rule ? (int)rule->glob.len : 4,
			 rule ? rule->glob.data : "none", glob ? glob : "none");
}

static void test_longest_literal_prefix_wins(void **state)
{
	const struct hs_rules *rules = RULES("* cache", "user:* cache", "user:42:* cache",
					     "user:*:name cache", "*:name cache", "u* cache");

	(void)state;
	expect(rules, "user:42:name", "user:42:*");
	expect(rules, "user:42:", "user:42:*");
	expect(rules, "user:4", "user:*");
	expect(rules, "user:", "user:*");
	expect(rules, "use", "u*");
	expect(rules, "u", "u*");
	expect(rules, "x", "*");
	hs_rules_unref(&rules);
}

static void test_longer_glob_then_later_rule_wins(void **state)
{
	const struct hs_rules *rules = RULES("user:*:name cache", "user:* cache", "user:? cache",
					     "*:name cache", "* cache", "user: cache");

	(void)state;
	expect(rules, "user:42:name", "user:*:name");
	expect(rules, "user:42", "user:*");
	expect(rules, "user:4", "user:?"); /* as long as user:*, but given after it */
	expect(rules, "user:", "user:*");  /* user:* is longer than user: */
	expect(rules, "my:name", "*:name");
	expect(rules, "my:names", "*");
	hs_rules_unref(&rules);
}

/* A rule that is given again moves to the end of the order. */
static void test_rule_given_again_is_later(void **state)
{
	const struct hs_rules *rules =
		RULES("a:* cache", "a:? cache stale=1s", "a:* cache stale=2s");
	struct hs_rules *without;

	(void)state;
	assert_int_equal(hs_rules_count(rules), 2);
	expect(rules, "a:1", "a:*");
	assert_int_equal(hs_rules_match(rules, HS_LIT("a:1"))->stale_us, 2000000);
	assert_int_equal(hs_rules_without(rules, HS_LIT("a:*"), &without), 0);
	hs_rules_unref(&rules);
	rules = without;
	expect(rules, "a:1", "a:?");
	expect(rules, "a:12", NULL);
	hs_rules_unref(&rules);
}

static void test_special_characters_end_the_prefix(void **state)
{
	const struct hs_rules *rules = RULES("a\\*b* cache", "a[0-9]* cache", "exact cache");

	(void)state;
	assert_int_equal(hs_rule_prefix_len(HS_LIT("a\\*b")), 1);
	assert_int_equal(hs_rule_prefix_len(HS_LIT("a[0-9]")), 1);
	assert_int_equal(hs_rule_prefix_len(HS_LIT("ab?")), 2);
	assert_int_equal(hs_rule_prefix_len(HS_LIT("*")), 0);
	assert_int_equal(hs_rule_prefix_len(HS_LIT("exact")), 5);
	expect(rules, "a*bc", "a\\*b*");
	expect(rules, "axbc", NULL);
	expect(rules, "a7", "a[0-9]*");
	expect(rules, "exact", "exact");
	expect(rules, "exact1", NULL);
	expect(rules, "exac", NULL);
	hs_rules_unref(&rules);
}

static void test_empty_key_and_empty_set(void **state)
{
	const struct hs_rules *rules = hs_rules_create(), *all = RULES("* cache");

	(void)state;
	expect(rules, "a", NULL);
	expect(rules, "", NULL);
	expect(all, "", NULL);
	expect(all, "a", "*");
	assert_false(hs_rules_any(rules, HS_CONTRACT_CACHE));
	assert_true(hs_rules_any(all, HS_CONTRACT_CACHE));
	assert_false(hs_rules_any(all, HS_CONTRACT_STRICT));
	hs_rules_unref(&rules);
	hs_rules_unref(&all);
}

/* One rule for each possible length of a prefix. A key finds the rule with the longest prefix that the key begins
 * with. */
static void test_prefixes_of_every_length(void **state)
{
	const struct hs_rules *rules = hs_rules_create();
	char text[HS_RULE_GLOB_BYTES_MAX + 16], error[256];
	struct hs_bytes words[] = {{text, 0}, HS_LIT("cache")};
	size_t longest = HS_RULE_GLOB_BYTES_MAX - 1;

	(void)state;
	memset(text, 'k', sizeof text);
	for (size_t len = 0; len <= longest; len++) {
		struct hs_rules *with;

		text[len] = '*';
		words[0].len = len + 1;
		assert_int_equal(hs_rules_with(rules, 2, words, &with, error, sizeof error), 0);
		text[len] = 'k';
		hs_rules_unref(&rules);
		rules = with;
	}
	for (size_t len = 1; len <= longest + 2; len++) {
		const struct hs_rule *rule = hs_rules_match(rules, (struct hs_bytes){text, len});

		assert_non_null(rule);
		assert_int_equal(rule->glob.len, (len < longest ? len : longest) + 1);
	}
	hs_rules_unref(&rules);
}

/* --- random --- */

static const struct hs_rule *reference(const struct hs_rules *rules, struct hs_bytes key)
{
	const struct hs_rule *best = NULL;
	size_t best_prefix = 0;

	for (size_t i = 0; i < hs_rules_count(rules); i++) {
		const struct hs_rule *rule = hs_rules_at(rules, i);
		size_t prefix = 0;

		while (prefix < rule->glob.len && !strchr("*?[\\", rule->glob.data[prefix]))
			prefix++;
		if (!hs_glob_match(rule->glob, key, false))
			continue;
		if (!best || prefix > best_prefix ||
		    (prefix == best_prefix && rule->glob.len >= best->glob.len)) {
			best = rule;
			best_prefix = prefix;
		}
	}
	return best;
}

static size_t draw(struct hs_prng *prng, const char *letters, size_t len, char *text)
{
	for (size_t i = 0; i < len; i++)
		text[i] = letters[hs_prng_below(prng, strlen(letters))];
	return len;
}

/* The glob sometimes starts with a common stem, so that prefixes contain each other. Random letters follow, then
 * wildcards. */
static size_t draw_glob(struct hs_prng *prng, char *text, size_t stem_max)
{
	size_t len = hs_prng_below(prng, stem_max + 1);

	memset(text, 'a', len);
	len += draw(prng, "ab:", hs_prng_below(prng, 6), text + len);
	return len + draw(prng, "a:*?*[]\\^", 1 + hs_prng_below(prng, 4), text + len);
}

static size_t draw_key(struct hs_prng *prng, char *text, size_t stem_max)
{
	size_t len = hs_prng_below(prng, stem_max + 1);

	memset(text, 'a', len);
	return len + draw(prng, "aab:*", hs_prng_below(prng, 10), text + len);
}

static void run_random(uint64_t seed)
{
	static const size_t stems[] = {0, 3, 40, 200, 900};
	size_t stem_max = stems[seed % 5], count;
	const struct hs_rules *rules = hs_rules_create();
	struct hs_prng prng;
	char text[HS_RULE_GLOB_BYTES_MAX + 64], error[256];

	hs_prng_init(&prng, seed);
	count = 1 + hs_prng_below(&prng, seed % 30 == 0 ? 300 : 20);
	for (size_t i = 0; i < count; i++) {
		struct hs_bytes words[] = {{text, draw_glob(&prng, text, stem_max)},
					   HS_LIT("cache")};
		struct hs_rules *changed;

		if (hs_prng_below(&prng, 8) == 0 &&
		    hs_rules_without(rules, words[0], &changed) == 0) {
			hs_rules_unref(&rules);
			rules = changed;
			continue;
		}
		assert_int_equal(hs_rules_with(rules, 2, words, &changed, error, sizeof error), 0);
		hs_rules_unref(&rules);
		rules = changed;
	}
	for (size_t i = 0; i < 200; i++) {
		struct hs_bytes key = {text, draw_key(&prng, text, stem_max)};
		const struct hs_rule *found = hs_rules_match(rules, key);
		const struct hs_rule *right = reference(rules, key);

		if (found != right)
			fail_msg("seed %llu, key %.*s: found %.*s, not %.*s",
				 (unsigned long long)seed, (int)key.len, key.data,
				 found ? (int)found->glob.len : 0, found ? found->glob.data : "",
				 right ? (int)right->glob.len : 0, right ? right->glob.data : "");
	}
	hs_rules_unref(&rules);
}

static void test_random_rules_against_the_reference(void **state)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
	const uint64_t seeds = 150;
#else
	const uint64_t seeds = 600;
#endif

	(void)state;
	for (uint64_t seed = 0; seed < seeds; seed++)
		run_random(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longest_literal_prefix_wins),
		cmocka_unit_test(test_longer_glob_then_later_rule_wins),
		cmocka_unit_test(test_rule_given_again_is_later),
		cmocka_unit_test(test_special_characters_end_the_prefix),
		cmocka_unit_test(test_empty_key_and_empty_set),
		cmocka_unit_test(test_prefixes_of_every_length),
		cmocka_unit_test(test_random_rules_against_the_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
