/* Goal: rules parse as documented, an error names the position and the right spelling, and a rule survives being
 * written as text and parsed again.
 *
 * Method: tables of lines with their results; random rules written as text and parsed again; a set filled up to
 * its limit. */
#include "contract/contract.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/prng.h"
#include "tests/lib/rules.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define MS UINT64_C(1000)
#define S (1000 * MS)
#define MINUTE (60 * S)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

static const struct hs_rule *only(const struct hs_rules *rules)
{
	assert_int_equal(hs_rules_count(rules), 1);
	return hs_rules_at(rules, 0);
}

static void expect_described(const struct hs_rule *rule, const char *text)
{
	struct hs_buf out = {0};

	hs_rule_describe(rule, &out);
	*hs_buf_reserve(&out, 1) = '\0';
	assert_string_equal(out.data, text);
	hs_buf_deinit(&out);
}

/* --- valid rules --- */

static void test_defaults(void **state)
{
	const struct hs_rules *rules = RULES("user:* cache");
	const struct hs_rule *rule = only(rules);

	(void)state;
	assert_int_equal(rule->contract, HS_CONTRACT_CACHE);
	assert_int_equal(rule->stale_us, 100 * MS);
	assert_int_equal(rule->ttl_us, MINUTE);
	assert_int_equal(rule->negative_ttl_us, 100 * MS);
	assert_int_equal(rule->stale_while_revalidate_us, 0);
	assert_int_equal(rule->stale_if_error_us, 0);
	assert_true(rule->jitter == 0.1);
	assert_true(rule->refresh_ahead == 1.0);
	assert_false(rule->admit_all);
	assert_int_equal(rule->copies, 0);
	assert_false(rule->replica_reads);
	assert_false(rule->is_public);
	expect_described(rule, "user:* cache");
	hs_rules_unref(&rules);
}

static void test_every_option(void **state)
{
	const struct hs_rules *rules = RULES(
		"user:* cache stale=2s ttl=1h negative-ttl=5ms stale-while-revalidate=3m "
		"stale-if-error=2d "
		"jitter=12.5% refresh-ahead=0.75 admit=all copies=4 replica-reads=yes public");
	const struct hs_rule *rule = only(rules);

	(void)state;
	assert_int_equal(rule->stale_us, 2 * S);
	assert_int_equal(rule->ttl_us, HOUR);
	assert_int_equal(rule->negative_ttl_us, 5 * MS);
	assert_int_equal(rule->stale_while_revalidate_us, 3 * MINUTE);
	assert_int_equal(rule->stale_if_error_us, 2 * DAY);
	assert_true(rule->jitter == 0.125);
	assert_true(rule->refresh_ahead == 0.75);
	assert_true(rule->admit_all);
	assert_int_equal(rule->copies, 4);
	assert_true(rule->replica_reads);
	assert_true(rule->is_public);
	assert_int_equal(hs_rules_stale_min_us(rules), 2 * S);
	expect_described(rule,
			 "user:* cache stale=2s ttl=1h negative-ttl=5ms stale-while-revalidate=3m "
			 "stale-if-error=2d "
			 "jitter=12.5% refresh-ahead=0.75 admit=all copies=4 replica-reads=yes "
			 "public=yes");
	hs_rules_unref(&rules);
}

static void test_accepted_spellings(void **state)
{
	static const char *const rows[][2] = {
		{"a STRICT", "a strict"},
		{"a Cache STALE=100MS Admit=HOT", "a cache"},
		{"a cache stale=1500us", "a cache stale=1500us"},
		{"a cache stale=120000ms ttl=60s", "a cache stale=2m"},
		{"a cache stale=86400s ttl=720h", "a cache stale=1d ttl=30d"},
		{"a cache stale=5s negative-ttl=1s", "a cache stale=5s"},
		{"a cache stale=5s negative-ttl=5s", "a cache stale=5s negative-ttl=5s"},
		{"a cache negative-ttl=0", "a cache negative-ttl=0"},
		{"a cache negative-ttl=0s stale-while-revalidate=0d", "a cache negative-ttl=0"},
		{"a cache jitter=0", "a cache jitter=0%"},
		{"a cache jitter=0.125% refresh-ahead=0.001",
		 "a cache jitter=0.125% refresh-ahead=0.001"},
		{"a cache jitter=10.000% refresh-ahead=1.0", "a cache"},
		{"a cache refresh-ahead=0 copies=AUTO", "a cache refresh-ahead=0 copies=auto"},
		{"a cache copies=64", "a cache copies=64"},
		{"a cache replica-reads", "a cache replica-reads=yes"},
		{"a cache public=no replica-reads=no", "a cache"},
		{"\"two words\" cache", "\"two words\" cache"},
		{"\"a\\x00\\\\*\" strict", "\"a\\x00\\\\*\" strict"},
		{"\"it's*\" strict", "\"it's*\" strict"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct hs_rules *rules;

		rules = rules_of(1, &rows[i][0]);
		expect_described(only(rules), rows[i][1]);
		hs_rules_unref(&rules);
	}
}

/* Each row of the options table gives its bounds and its default as text. The texts parse, and the default lies
 * within the bounds. */
static void test_rows_are_right(void **state)
{
	(void)state;
	for (size_t i = 0; i < hs_rule_option_count; i++) {
		const struct hs_rule_option *option = &hs_rule_option_table[i];
		const struct hs_rules *rules = hs_rules_create();
		const char *const texts[] = {option->fallback, option->min, option->max};
		char line[128], error[256];

		for (size_t j = 0; j < 3; j++) {
			struct hs_buf text = {0};

			if (!texts[j])
				continue;
			snprintf(line, sizeof line, "k cache %s=%s", option->name, texts[j]);
			if (rules_add(&rules, hs_bytes_of(line), error, sizeof error) < 0)
				fail_msg("%s: %s", line, error);
			hs_rule_option_format(only(rules), option, &text);
			assert_true(hs_bytes_equal(hs_buf_bytes(&text), hs_bytes_of(texts[j])));
			hs_buf_deinit(&text);
		}
		assert_true(strlen(option->help) > 0);
		hs_rules_unref(&rules);
	}
}

/* --- errors --- */

static const char times[] = "a time is a whole number with us, ms, s, m, h or d, as in 100ms; ";

static void test_errors(void **state)
{
	/* Each row is a line and its expected error. An error that begins with a plus is appended to `times`. */
	static const char *const rows[][2] = {
		{"", "a rule needs a glob and a contract: user:* cache stale=100ms"},
		{"a", "a rule needs a glob and a contract: user:* cache stale=100ms"},
		{"\"\" cache", "rule '', word 1 '': the glob is empty; * matches all keys"},
		{"a cahce", "rule 'a', word 2 'cahce': no such contract; did you mean 'cache'?"},
		{"a \"\"", "rule 'a', word 2 '': no such contract; valid: strict and cache"},
		{"a immortal",
		 "rule 'a', word 2 'immortal': no such contract; valid: strict and cache"},
		{"a strict stale=1s", "rule 'a', word 3 'stale=1s': strict takes no options"},
		{"a cache stael=1s",
		 "rule 'a', word 3 'stael=1s': no such option of cache; did you mean 'stale'?"},
		{"a cache ttl=1s foo=bar",
		 "rule 'a', word 4 'foo=bar': no such option of cache; valid: stale, ttl, "
		 "negative-ttl, stale-while-revalidate, stale-if-error, jitter, refresh-ahead, "
		 "admit, copies, "
		 "replica-reads and "
		 "public"},
		{"a cache \"\"", "rule 'a', word 3 '': no such option of cache; valid: stale, "
				 "ttl, negative-ttl, stale-while-revalidate, stale-if-error, "
				 "jitter, refresh-ahead, admit, "
				 "copies, replica-reads and public"},
		{"a cache swr=1s", "rule 'a', word 3 'swr=1s': option 'swr' is now called "
				   "'stale-while-revalidate'"},
		{"a cache SWR", "rule 'a', word 3 'SWR': option 'swr' is now called "
				"'stale-while-revalidate'"},
		{"a cache ttl=1s negative=0",
		 "rule 'a', word 4 'negative=0': option 'negative' is now "
		 "called 'negative-ttl'"},
		{"a cache ahead=1", "rule 'a', word 3 'ahead=1': option 'ahead' is now called "
				    "'refresh-ahead'"},
		{"a cache pubic", "rule 'a', word 3 'pubic': no such option of cache; did you mean "
				  "'public'?"},
		{"a cache stale", "rule 'a', word 3 'stale': a value is missing: stale=100ms"},
		{"a cache admit", "rule 'a', word 3 'admit': a value is missing: admit=hot"},
		{"a cache stale=1s ttl=2s stale=1s",
		 "rule 'a', word 5 'stale=1s': stale is given twice"},
		{"a cache public public=no", "rule 'a', word 4 'public=no': public is given twice"},
		{"a cache stale=100", "+rule 'a', word 3 'stale=100': %sstale is from 1ms to 1d"},
		{"a cache stale=", "+rule 'a', word 3 'stale=': %sstale is from 1ms to 1d"},
		{"a cache stale=1.5s", "+rule 'a', word 3 'stale=1.5s': %sstale is from 1ms to 1d"},
		{"a cache ttl=-1s", "+rule 'a', word 3 'ttl=-1s': %sttl is from 1ms to 30d"},
		{"a cache ttl=1w", "+rule 'a', word 3 'ttl=1w': %sttl is from 1ms to 30d"},
		{"a cache stale-while-revalidate=99999999999999999999d",
		 "+rule 'a', word 3 'stale-while-revalidate=99999999999999999999d': "
		 "%sstale-while-revalidate is from "
		 "0 to 1d"},
		{"a cache stale-while-revalidate=18446744073709551615d",
		 "+rule 'a', word 3 'stale-while-revalidate=18446744073709551615d': "
		 "%sstale-while-revalidate is from "
		 "0 to 1d"},
		{"a cache stale=0",
		 "rule 'a', word 3 'stale=0': out of bounds: stale is from 1ms to 1d"},
		{"a cache stale=999us",
		 "rule 'a', word 3 'stale=999us': out of bounds: stale is from 1ms to 1d"},
		{"a cache ttl=31d",
		 "rule 'a', word 3 'ttl=31d': out of bounds: ttl is from 1ms to 30d"},
		{"a cache negative-ttl=25h", "rule 'a', word 3 'negative-ttl=25h': out of bounds: "
					     "negative-ttl is from 0 to 1d"},
		{"a cache stale-if-error=31d", "rule 'a', word 3 'stale-if-error=31d': out of "
					       "bounds: stale-if-error is from 0 to 30d"},
		{"a cache jitter=10",
		 "rule 'a', word 3 'jitter=10': a share is a number with %, as "
		 "in 10%; jitter is from 0% to 90%"},
		{"a cache jitter=%", "rule 'a', word 3 'jitter=%': a share is a number with %, as "
				     "in 10%; jitter is from 0% to 90%"},
		{"a cache jitter=91%",
		 "rule 'a', word 3 'jitter=91%': out of bounds: jitter is from 0% to 90%"},
		{"a cache refresh-ahead=1.2345",
		 "rule 'a', word 3 'refresh-ahead=1.2345': a number has up to "
		 "three decimals, as in 1.5; refresh-ahead is from 0 to 10"},
		{"a cache refresh-ahead=1.",
		 "rule 'a', word 3 'refresh-ahead=1.': a number has up to three "
		 "decimals, as in 1.5; refresh-ahead is from 0 to 10"},
		{"a cache refresh-ahead=10.001", "rule 'a', word 3 'refresh-ahead=10.001': out of "
						 "bounds: refresh-ahead is from 0 to 10"},
		{"a cache admit=hott",
		 "rule 'a', word 3 'admit=hott': no such value; did you mean 'hot'?"},
		{"a cache admit=some",
		 "rule 'a', word 3 'admit=some': no such value; valid: hot and all"},
		{"a cache public=yess",
		 "rule 'a', word 3 'public=yess': no such value; did you mean 'yes'?"},
		{"a cache public=", "rule 'a', word 3 'public=': no such value; valid: no and "
				    "yes"},
		{"a cache copies=1",
		 "rule 'a', word 3 'copies=1': no such value; valid: 0, 2 to 64, and auto"},
		{"a cache copies=65",
		 "rule 'a', word 3 'copies=65': no such value; valid: 0, 2 to 64, and auto"},
		{"a cache copies=255",
		 "rule 'a', word 3 'copies=255': no such value; valid: 0, 2 to 64, and auto"},
		{"a cache copies=outo",
		 "rule 'a', word 3 'copies=outo': no such value; did you mean 'auto'?"},
	};
	const struct hs_rules *rules = RULES("kept cache");

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *format = rows[i][1];
		char error[512] = "", expected[512];

		if (*format == '+') {
			const char *hole = strstr(format, "%s");

			snprintf(expected, sizeof expected, "%.*s%s%s", (int)(hole - format - 1),
				 format + 1, times, hole + 2);
		} else {
			snprintf(expected, sizeof expected, "%s", format);
		}
		assert_int_equal(rules_add(&rules, hs_bytes_of(rows[i][0]), error, sizeof error),
				 HS_EINVAL);
		assert_string_equal(error, expected);
	}
	expect_described(only(rules), "kept cache");
	hs_rules_unref(&rules);
}

static void test_errors_are_cut_to_fit(void **state)
{
	const struct hs_rules *rules = hs_rules_create();
	char line[HS_RULE_GLOB_BYTES_MAX * 2 + 32], error[256], tiny[8];
	size_t half = sizeof line / 2;

	(void)state;
	memset(line, 'g', sizeof line);
	line[half] = ' ';
	line[sizeof line - 1] = '\0';
	assert_int_equal(rules_add(&rules, hs_bytes_of(line), error, sizeof error), HS_EINVAL);
	assert_non_null(strstr(error, "a glob has at most 1024 bytes"));
	assert_int_equal(rules_add(&rules, hs_bytes_of(line), tiny, sizeof tiny), HS_EINVAL);
	assert_int_equal(strlen(tiny), sizeof tiny - 1);
	line[HS_RULE_GLOB_BYTES_MAX] = ' ';
	assert_int_equal(rules_add(&rules, hs_bytes_of(line), error, sizeof error), HS_EINVAL);
	assert_non_null(strstr(error, "no such contract; valid: strict and cache"));
	hs_rules_unref(&rules);
}

/* --- sets --- */

static void test_limit_of_rules(void **state)
{
	const struct hs_rules *rules = hs_rules_create();
	bool seen[HS_RULES_MAX] = {0};
	struct hs_rules *without;
	char line[64], error[128];
	uint32_t number;

	(void)state;
	for (int i = 0; i < HS_RULES_MAX; i++) {
		snprintf(line, sizeof line, "k%d:* cache stale=%dms", i, i + 1);
		assert_int_equal(rules_add(&rules, hs_bytes_of(line), error, sizeof error), 0);
	}
	assert_int_equal(rules_add(&rules, HS_LIT("one:more cache"), error, sizeof error),
			 HS_ELIMIT);
	assert_string_equal(error, "at most 1024 rules are allowed");
	for (size_t i = 0; i < HS_RULES_MAX; i++) {
		assert_true(hs_rules_at(rules, i)->number < HS_RULES_MAX);
		assert_false(seen[hs_rules_at(rules, i)->number]);
		seen[hs_rules_at(rules, i)->number] = true;
	}
	/* When the set is full, a rule can still change, and removing a rule makes room for a new one. */
	number = hs_rules_at(rules, 7)->number;
	assert_int_equal(rules_add(&rules, HS_LIT("k7:* strict"), error, sizeof error), 0);
	assert_int_equal(hs_rules_match(rules, HS_LIT("k7:x"))->number, number);
	assert_int_equal(hs_rules_without(rules, HS_LIT("k7:*"), &without), 0);
	hs_rules_unref(&rules);
	rules = without;
	assert_int_equal(rules_add(&rules, HS_LIT("one:more cache"), error, sizeof error), 0);
	assert_int_equal(hs_rules_match(rules, HS_LIT("one:more"))->number, number);
	assert_int_equal(hs_rules_without(rules, HS_LIT("k7:*"), &without), HS_ENOTFOUND);
	hs_rules_unref(&rules);
}

/* Counters are bound to a rule's number: the number stays with its glob, and a new rule does not inherit the
 * number of a rule just removed. */
static void test_rule_numbers_are_stable(void **state)
{
	const struct hs_rules *rules = RULES("a cache", "b cache", "c cache");
	const struct hs_rules *fresh = RULES("x cache", "c cache", "a strict");
	uint32_t a = hs_rules_match(rules, HS_LIT("a"))->number;
	uint32_t b = hs_rules_match(rules, HS_LIT("b"))->number;
	uint32_t c = hs_rules_match(rules, HS_LIT("c"))->number;
	struct hs_rules *changed;
	const struct hs_rules *renumbered;
	char error[128];

	(void)state;
	renumbered = hs_rules_renumber(fresh, rules);
	assert_true(hs_rules_same(renumbered, fresh));
	assert_int_equal(hs_rules_match(renumbered, HS_LIT("a"))->number, a);
	assert_int_equal(hs_rules_match(renumbered, HS_LIT("c"))->number, c);
	assert_int_not_equal(hs_rules_match(renumbered, HS_LIT("x"))->number, b);
	assert_int_equal(hs_rules_without(rules, HS_LIT("b"), &changed), 0);
	hs_rules_unref(&rules);
	rules = changed;
	assert_int_equal(rules_add(&rules, HS_LIT("d cache"), error, sizeof error), 0);
	assert_int_not_equal(hs_rules_match(rules, HS_LIT("d"))->number, b);
	hs_rules_unref(&renumbered);
	hs_rules_unref(&fresh);
	hs_rules_unref(&rules);
}

static void test_equal_sets_compare_equal(void **state)
{
	const struct hs_rules *a = RULES("a cache", "b cache stale=100ms");
	const struct hs_rules *b = RULES("b cache", "a cache", "b cache");
	const struct hs_rules *c = RULES("a cache", "b cache stale=101ms");
	const struct hs_rules *d = RULES("b cache", "a cache");

	(void)state;
	assert_true(hs_rules_same(a, b));
	assert_false(hs_rules_same(a, c));
	/* In another order of the rules, another rule may win. */
	assert_false(hs_rules_same(a, d));
	assert_int_equal(hs_rules_stale_min_us(a), 100 * MS);
	assert_int_equal(hs_rules_stale_min_us(c), 100 * MS);
	hs_rules_unref(&a);
	hs_rules_unref(&b);
	hs_rules_unref(&c);
	hs_rules_unref(&d);
	a = RULES("a strict");
	assert_int_equal(hs_rules_stale_min_us(a), 0);
	assert_true(hs_rules_any(a, HS_CONTRACT_STRICT));
	assert_false(hs_rules_any(a, HS_CONTRACT_CACHE));
	hs_rules_unref(&a);
}

/* --- through text and back --- */

static uint64_t between(struct hs_prng *prng, uint64_t min, uint64_t max)
{
	/* The value has a random magnitude; often it is a multiple of a unit. */
	uint64_t unit = (const uint64_t[]){1, MS, S, MINUTE, HOUR, DAY}[hs_prng_below(prng, 6)];
	uint64_t value = unit * hs_prng_below(prng, 100);

	return value < min ? min : value > max ? max : value;
}

static void test_described_rules_read_the_same(void **state)
{
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 1);
	for (int turn = 0; turn < 3000; turn++) {
		const struct hs_rules *rules = hs_rules_create();
		char glob[24], error[256];
		struct hs_rule rule = {
			.glob = {glob, 1 + hs_prng_below(&prng, sizeof glob)},
			.contract = HS_CONTRACT_CACHE,
			.stale_us = between(&prng, MS, DAY),
			.ttl_us = between(&prng, MS, 30 * DAY),
			.negative_ttl_us = between(&prng, 0, DAY),
			.stale_while_revalidate_us = between(&prng, 0, DAY),
			.stale_if_error_us = between(&prng, 0, 30 * DAY),
			.jitter = (double)hs_prng_below(&prng, 90001) / 100000,
			.refresh_ahead = (double)hs_prng_below(&prng, 10001) / 1000,
			.admit_all = hs_prng_below(&prng, 2),
			.is_public = hs_prng_below(&prng, 2),
			.replica_reads = hs_prng_below(&prng, 2),
			.copies = (uint8_t)(2 + hs_prng_below(&prng, 63)),
		};
		const struct hs_rule *again;
		struct hs_buf text = {0};

		for (size_t i = 0; i < rule.glob.len; i++)
			glob[i] = (char)hs_prng_below(&prng, 256);
		hs_rule_describe(&rule, &text);
		if (rules_add(&rules, hs_buf_bytes(&text), error, sizeof error) < 0)
			fail_msg("%.*s: %s", (int)text.len, text.data, error);
		again = only(rules);
		assert_true(hs_bytes_equal(again->glob, rule.glob));
		assert_int_equal(again->stale_us, rule.stale_us);
		assert_int_equal(again->ttl_us, rule.ttl_us);
		assert_int_equal(again->negative_ttl_us, rule.negative_ttl_us);
		assert_int_equal(again->stale_while_revalidate_us, rule.stale_while_revalidate_us);
		assert_int_equal(again->stale_if_error_us, rule.stale_if_error_us);
		assert_true(again->jitter == rule.jitter);
		assert_true(again->refresh_ahead == rule.refresh_ahead);
		assert_int_equal(again->admit_all, rule.admit_all);
		assert_int_equal(again->is_public, rule.is_public);
		assert_int_equal(again->replica_reads, rule.replica_reads);
		assert_int_equal(again->copies, rule.copies);
		hs_buf_deinit(&text);
		hs_rules_unref(&rules);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_every_option),
		cmocka_unit_test(test_accepted_spellings),
		cmocka_unit_test(test_rows_are_right),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_errors_are_cut_to_fit),
		cmocka_unit_test(test_limit_of_rules),
		cmocka_unit_test(test_rule_numbers_are_stable),
		cmocka_unit_test(test_equal_sets_compare_equal),
		cmocka_unit_test(test_described_rules_read_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
