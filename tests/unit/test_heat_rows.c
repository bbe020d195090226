/* Goal: rows of heat: how keys, prefixes and slots are named, found and listed, and which numbers a row shows.
 *
 * Method: the test counts requests at times of its own and reads the lists. */
#include "tests/lib/heat_fixture.h"

/* ---- names ---- */

static void test_any_bytes_are_a_name(void **state)
{
	struct fixture *fixture = *state;
	static const struct hs_bytes names[] = {
		HS_LIT(""),
		HS_LIT("\0"),
		HS_LIT("\0\0"),
		HS_LIT("a\nb"),
		HS_LIT("\"'\\\r\n"),
		HS_LIT("\xff\xfe\x80"),
		HS_LIT("{}"),
		HS_LIT("12345678"),
		HS_LIT("123456789"),
		HS_LIT("a\0b\0c"),
		HS_LIT("1234567890123456789012345678901234567890"
		       "1234567890123456789012345678901234567890"),
	};
	enum { NAMES = sizeof names / sizeof *names };

	for (size_t i = 0; i < NAMES; i++) {
		struct hs_heat_access access = to(names[i]);

		for (size_t times = 0; times < 10 + i; times++)
			hs_heat_add(fixture->heat, &access, 1000);
	}
	assert_int_equal(top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_LONG), NAMES);
	for (size_t i = 0; i < NAMES; i++) {
		const struct hs_heat_row *row = &fixture->rows[NAMES - 1 - i];

		assert_int_equal(row->name_len, names[i].len);
		assert_int_equal(row->full_len, names[i].len);
		if (names[i].len > 0)
			assert_memory_equal(row->name, names[i].data, names[i].len);
		assert_int_equal(row->slot, hs_slot_of(names[i]));
		assert_int_equal(row->total_reads, 10 + i);
	}
}

/* A row of a long key has the key's first bytes and its length. Two long keys with the same first bytes have two
 * rows. */
static void test_long_names_are_cut(void **state)
{
	struct fixture *fixture = *state;
	static char big[65536];
	struct hs_heat_row one, other;

	memset(big, 'x', sizeof big);
	for (size_t len = sizeof big - 2; len <= sizeof big; len++) {
		struct hs_heat_access access = to((struct hs_bytes){big, len});

		for (size_t i = 0; i < 10 + len % 4; i++)
			hs_heat_add(fixture->heat, &access, 1000);
	}
	assert_int_equal(top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_SHORT), 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(fixture->rows[i].name_len, HS_HEAT_NAME_BYTES);
		assert_memory_equal(fixture->rows[i].name, big, HS_HEAT_NAME_BYTES);
	}
	assert_int_equal(fixture->rows[0].full_len, sizeof big - 1);
	assert_int_equal(fixture->rows[1].full_len, sizeof big - 2);
	assert_int_equal(fixture->rows[2].full_len, sizeof big);
	hs_heat_find(&fixture->heat, 1, HS_HEAT_KEYS, (struct hs_bytes){big, sizeof big}, 0,
		     fixture->now_us, &one);
	hs_heat_find(&fixture->heat, 1, HS_HEAT_KEYS, (struct hs_bytes){big, sizeof big - 1}, 0,
		     fixture->now_us, &other);
	assert_true(one.id == fixture->rows[2].id);
	assert_true(other.id == fixture->rows[0].id);
	assert_int_equal(one.full_len, sizeof big);
}

static void test_rows_by_name_prefix(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .starts = HS_LIT("user:1")};

	reads_of(fixture, "user:1", 10);
	reads_of(fixture, "user:12", 20);
	reads_of(fixture, "user:2", 30);
	reads_of(fixture, "user:", 40);
	reads_of(fixture, "xuser:1", 50);
	fixture->count =
		hs_heat_top(&fixture->heat, 1, &query, fixture->now_us, fixture->rows, ROWS);
	assert_int_equal(fixture->count, 2);
	assert_true(row_is(&fixture->rows[0], "user:12"));
	assert_true(row_is(&fixture->rows[1], "user:1"));
	query.starts = HS_LIT("user:12\0");
	assert_int_equal(
		hs_heat_top(&fixture->heat, 1, &query, fixture->now_us, fixture->rows, ROWS), 0);
	query.starts = HS_LIT("nobody");
	assert_int_equal(
		hs_heat_top(&fixture->heat, 1, &query, fixture->now_us, fixture->rows, ROWS), 0);
}

/* ---- prefixes and slots ---- */

static void test_prefixes_have_three_levels(void **state)
{
	struct fixture *fixture = *state;

	reads_of(fixture, "a:b:c:d:e", 10);
	reads_of(fixture, "a:b:x", 20);
	reads_of(fixture, "a:", 40);
	reads_of(fixture, "a", 80);
	reads_of(fixture, ":", 160);
	assert_int_equal(top(fixture, HS_HEAT_PREFIXES, HS_HEAT_BY_OPS, HS_HEAT_LONG), 4);
	assert_true(row_is(&fixture->rows[0], ":"));
	assert_int_equal(fixture->rows[0].total_reads, 160);
	assert_true(row_is(&fixture->rows[1], "a:"));
	assert_int_equal(fixture->rows[1].total_reads, 70);
	assert_true(row_is(&fixture->rows[2], "a:b:"));
	assert_int_equal(fixture->rows[2].total_reads, 30);
	assert_true(row_is(&fixture->rows[3], "a:b:c:"));
	assert_int_equal(fixture->rows[3].total_reads, 10);
	assert_int_equal(find(fixture, HS_HEAT_PREFIXES, "a:b:").total_reads, 30);
	assert_int_equal(find(fixture, HS_HEAT_KEYS, "a:b:").workers, 0);
	assert_int_equal(find(fixture, HS_HEAT_PREFIXES, "a:b:c:d:").workers, 0);
}

/* The search for colons in a key ends at a limit. */
static void test_prefixes_far_into_a_key(void **state)
{
	struct fixture *fixture = *state;
	char key[300];

	for (size_t at = HS_HEAT_PREFIX_BYTES - 1; at <= HS_HEAT_PREFIX_BYTES; at++) {
		memset(key, at % 2 ? 'o' : 'e', sizeof key);
		key[at] = ':';

		struct hs_heat_access access = to((struct hs_bytes){key, sizeof key});

		for (int i = 0; i < 10; i++)
			hs_heat_add(fixture->heat, &access, 1000);
	}
	assert_int_equal(top(fixture, HS_HEAT_PREFIXES, HS_HEAT_BY_OPS, HS_HEAT_LONG), 1);
	assert_int_equal(fixture->rows[0].full_len, HS_HEAT_PREFIX_BYTES);
	assert_int_equal(fixture->rows[0].name_len, HS_HEAT_NAME_BYTES);
	assert_int_equal(fixture->rows[0].name[0], 'o');
}

/* A tenant with a thousand keys is hot as a prefix and has one row. */
static void test_a_tenant_shows_as_one_line(void **state)
{
	struct fixture *fixture = *state;
	char key[40];

	for (int i = 0; i < 100000; i++) {
		snprintf(key, sizeof key, "tenant7:%d", i % 1000);
		reads_of(fixture, key, 1);
		snprintf(key, sizeof key, "tenant%d:1", 100 + i % 500);
		reads_of(fixture, key, 1);
		if (i % 100 == 0)
			pass(fixture, MS);
	}
	top(fixture, HS_HEAT_PREFIXES, HS_HEAT_BY_OPS, HS_HEAT_SHORT);
	assert_true(row_is(&fixture->rows[0], "tenant7:"));
	assert_true(fixture->rows[0].window[HS_HEAT_SHORT].ops_low > 90000);
	assert_true(fixture->rows[0].window[HS_HEAT_SHORT].ops_high < 110000);
}

static void test_slots(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_row row;
	uint16_t hot = hs_slot_of(HS_LIT("t"));

	reads_of(fixture, "{t}1", 10);
	reads_of(fixture, "{t}2", 10);
	reads_of(fixture, "u", 5);
	assert_int_equal(top(fixture, HS_HEAT_SLOTS, HS_HEAT_BY_OPS, HS_HEAT_LONG), 2);
	assert_int_equal(fixture->rows[0].slot, hot);
	assert_int_equal(fixture->rows[0].total_reads, 20);
	assert_int_equal(fixture->rows[0].partition, hot * PARTITIONS / HS_SLOTS);
	assert_int_equal(fixture->rows[1].slot, hs_slot_of(HS_LIT("u")));
	hs_heat_find(&fixture->heat, 1, HS_HEAT_SLOTS, HS_LIT(""), hot, fixture->now_us, &row);
	assert_int_equal(row.total_reads, 20);
	assert_true(row.id == fixture->rows[0].id);
	hs_heat_find(&fixture->heat, 1, HS_HEAT_SLOTS, HS_LIT(""), (uint16_t)(hot ^ 1),
		     fixture->now_us, &row);
	assert_int_equal(row.workers, 0);
}

/* ---- the numbers of a row ---- */

static void test_reads_and_writes_apart(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_access access = to(HS_LIT("written"));
	struct hs_heat_row row;

	pass(fixture, 100 * SECOND);
	access.write = true;
	access.bytes = 1000;
	for (int i = 0; i < 30; i++)
		hs_heat_add(fixture->heat, &access, 1000);
	reads_of(fixture, "written", 10);
	reads_of(fixture, "read", 35);
	row = find(fixture, HS_HEAT_KEYS, "written");
	assert_near(row.window[HS_HEAT_SHORT].writes, 30 / SHORT_S);
	assert_near(row.window[HS_HEAT_SHORT].reads, 10 / SHORT_S);
	assert_near(row.window[HS_HEAT_SHORT].ops_low, 40 / SHORT_S);
	assert_near(row.window[HS_HEAT_LONG].bytes_low, 3100);
	assert_int_equal(row.total_writes, 30);
	assert_int_equal(row.total_reads, 10);
	assert_int_equal(row.total_bytes, 31000);
	assert_int_equal(row.total_ns, 30 * 1000 + 10 * 5000);
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_READS, HS_HEAT_SHORT);
	assert_true(row_is(&fixture->rows[0], "read"));
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_WRITES, HS_HEAT_SHORT);
	assert_true(row_is(&fixture->rows[0], "written"));
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_SHORT);
	assert_true(row_is(&fixture->rows[0], "written"));
}

/* A key with a huge value is listed even at a few requests per second. */
static void test_a_rare_large_value_stays_listed(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_access access = to(HS_LIT("giant"));

	pass(fixture, 100 * SECOND);
	access.bytes = 3000000;
	hs_heat_add(fixture->heat, &access, 1000);
	reads_of(fixture, "small", 100);
	pass(fixture, 300 * MS);
	reads_of(fixture, "small", 100);
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, HS_HEAT_SHORT);
	assert_null(listed(fixture, "giant"));
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_BYTES, HS_HEAT_SHORT);
	assert_true(row_is(&fixture->rows[0], "giant"));
	pass(fixture, SECOND);
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_BYTES, HS_HEAT_SHORT);
	assert_null(listed(fixture, "giant"));
}

static void test_misses_and_conflicts(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_access access = to(HS_LIT("absent"));

	pass(fixture, 100 * SECOND);
	reads_of(fixture, "busy", 100);
	access.missed = true;
	for (int i = 0; i < 20; i++)
		hs_heat_add(fixture->heat, &access, 1000);
	access = to(HS_LIT("fought"));
	access.write = true;
	for (int i = 0; i < 10; i++) {
		access.conflicted = i % 2;
		hs_heat_add(fixture->heat, &access, 1000);
	}
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_MISSES, HS_HEAT_SHORT);
	assert_true(row_is(&fixture->rows[0], "absent"));
	assert_near(fixture->rows[0].window[HS_HEAT_SHORT].misses, 20 / SHORT_S);
	assert_near(fixture->rows[0].window[HS_HEAT_SHORT].conflicts, 0);
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_CONFLICTS, HS_HEAT_SHORT);
	assert_true(row_is(&fixture->rows[0], "fought"));
	assert_near(fixture->rows[0].window[HS_HEAT_SHORT].conflicts, 5 / SHORT_S);
	assert_near(fixture->rows[0].window[HS_HEAT_LONG].conflicts, 0.5);
	assert_near(fixture->rows[0].window[HS_HEAT_SHORT].misses, 0);
}

/* Percentiles are exact to the width of a histogram bucket. */
static void test_percentiles(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_access access = to(HS_LIT("slow"));
	struct hs_heat_row row;

	for (uint64_t i = 1; i <= 1000; i++)
		hs_heat_add(fixture->heat, &access, i * 1000);
	reads_of(fixture, "quick", 2000);
	row = find(fixture, HS_HEAT_KEYS, "slow");
	assert_true(row.p50_us > 500 / 1.5 && row.p50_us < 500 * 1.5);
	assert_true(row.p99_us > 990 / 1.5 && row.p99_us < 990 * 1.5);
	top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_LATENCY, HS_HEAT_LONG);
	assert_true(row_is(&fixture->rows[0], "slow"));
	assert_true(row_is(&fixture->rows[1], "quick"));
	assert_true(fixture->rows[1].p99_us >= 4 && fixture->rows[1].p99_us <= 8);
	row = find(fixture, HS_HEAT_KEYS, "unknown");
	assert_true(row.p50_us == 0 && row.p99_us == 0);
	/* Slow requests of long ago have no effect. */
	for (int i = 0; i < 100; i++) {
		pass(fixture, SECOND);
		reads_of(fixture, "slow", 50);
	}
	row = find(fixture, HS_HEAT_KEYS, "slow");
	assert_true(row.p99_us <= 8);
}

/* So many requests that a small counter would overflow. */
static void test_percentiles_of_many(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_access access = to(HS_LIT("k"));
	struct hs_heat_row row;

	for (uint64_t i = 0; i < 300000; i++)
		hs_heat_add(fixture->heat, &access, i % 50 == 0 ? 1000000 : 10000);
	row = find(fixture, HS_HEAT_KEYS, "k");
	assert_true(row.p50_us >= 8 && row.p50_us <= 16);
	assert_true(row.p99_us >= 700 && row.p99_us <= 1500);
	assert_int_equal(row.total_reads, 300000);
}

/* ---- many workers, small tables ---- */

static void test_workers_add_up(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat *heats[3];
	struct hs_heat_row row;
	struct hs_heat_query query = {.what = HS_HEAT_KEYS};
	struct hs_heat_access both = to(HS_LIT("both")), one = to(HS_LIT("one"));

	(void)fixture;
	for (int i = 0; i < 3; i++) {
		heats[i] = create(0);
		hs_heat_now(heats[i], START);
		hs_heat_now(heats[i], START + 100 * SECOND);
	}
	for (int i = 0; i < 10; i++) {
		hs_heat_add(heats[0], &both, 1000);
		hs_heat_add(heats[2], &both, 1000);
		hs_heat_add(heats[2], &one, 1000);
	}
	hs_heat_find(heats, 3, HS_HEAT_KEYS, both.key, 0, START + 100 * SECOND, &row);
	assert_int_equal(row.workers, 2);
	assert_int_equal(row.total_reads, 20);
	assert_near(row.window[HS_HEAT_SHORT].ops_low, 20 / SHORT_S);
	/* The upper bound includes one request per worker, because a worker may have missed the request that
	 * created its entry. */
	assert_true(row.window[HS_HEAT_SHORT].ops_high >= row.window[HS_HEAT_SHORT].ops_low);
	assert_true(row.window[HS_HEAT_SHORT].ops_high <= 24 / SHORT_S);
	assert_near(hs_heat_total(heats, 3, HS_HEAT_SHORT, START + 100 * SECOND), 30 / SHORT_S);
	assert_int_equal(hs_heat_top(heats, 3, &query, START + 100 * SECOND, fixture->rows, ROWS),
			 2);
	assert_true(row_is(&fixture->rows[0], "both"));
	assert_int_equal(fixture->rows[1].workers, 1);
	/* Without workers there are no rows. */
	assert_int_equal(hs_heat_top(heats, 0, &query, START, fixture->rows, ROWS), 0);
	assert_near(hs_heat_total(heats, 0, HS_HEAT_SHORT, START), 0);
	for (int i = 0; i < 3; i++)
		hs_heat_destroy(&heats[i]);
}

static void test_an_array_of_few_rows(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_query query = {.what = HS_HEAT_KEYS};

	for (size_t i = 1; i <= 20; i++) {
		char key[8];

		snprintf(key, sizeof key, "k%zu", i);
		reads_of(fixture, key, 10 * i);
	}
	assert_int_equal(hs_heat_top(&fixture->heat, 1, &query, START, fixture->rows, 0), 0);
	assert_int_equal(hs_heat_top(&fixture->heat, 1, &query, START, fixture->rows, 1), 1);
	assert_true(row_is(&fixture->rows[0], "k20"));
	assert_int_equal(hs_heat_top(&fixture->heat, 1, &query, START, fixture->rows, 19), 19);
	assert_true(row_is(&fixture->rows[18], "k2"));
	assert_int_equal(hs_heat_top(&fixture->heat, 1, &query, START, fixture->rows, 21), 20);
}

/* A thousand keys share eight entries. The two hot keys keep theirs, and no other key is shown as hot as the
 * first. */
static void test_a_table_much_too_small(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_row row;
	char key[16];

	hs_heat_destroy(&fixture->heat);
	fixture->heat = create(1);
	hs_heat_now(fixture->heat, fixture->now_us);
	for (int i = 0; i < 100000; i++) {
		snprintf(key, sizeof key, "k%d", i * 7919 % 1000);
		reads_of(fixture, i % 3 == 0 ? "hot" : i % 3 == 1 ? "warm" : key, 1);
		if (i % 4 == 0)
			reads_of(fixture, "hot", 1);
		if (i % 100 == 0)
			pass(fixture, MS);
	}
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
		assert_true(top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, w) >= 2);
		assert_true(row_is(&fixture->rows[0], "hot"));
		assert_true(row_is(&fixture->rows[1], "warm"));
		assert_true(fixture->count <= 8);
		row = find(fixture, HS_HEAT_KEYS, "never asked for");
		assert_int_equal(row.workers, 0);
		assert_true(row.window[w].ops_low == 0);
		assert_true(row.window[w].ops_high > 0);
		assert_true(row.window[w].ops_high < fixture->rows[0].window[w].ops_low);
	}
}

/* The bound on missed requests decays like the counts. Two minutes after a storm of keys, a key can have had only
 * a trace of it, whether or not a request has touched the key's set since. */
static void test_missed_requests_decay(void **state)
{
	struct fixture *fixture = *state;
	struct hs_heat_row row;
	char key[16];

	hs_heat_destroy(&fixture->heat);
	fixture->heat = create(1);
	hs_heat_now(fixture->heat, fixture->now_us);
	for (int i = 0; i < 10000; i++) {
		snprintf(key, sizeof key, "k%d", i);
		reads_of(fixture, key, 1);
	}
	row = find(fixture, HS_HEAT_KEYS, "k0");
	assert_true(row.window[HS_HEAT_LONG].ops_high > 100);
	for (int touched = 0; touched < 2; touched++) {
		pass(fixture, 120 * SECOND);
		row = find(fixture, HS_HEAT_KEYS, "k0");
		assert_true(row.window[HS_HEAT_SHORT].ops_high < 1e-3);
		assert_true(row.window[HS_HEAT_LONG].ops_high < 0.01);
		reads_of(fixture, "busy", 10000);
		reads_of(fixture, "again", 10);
		row = find(fixture, HS_HEAT_KEYS, "again");
		assert_true(row.window[HS_HEAT_LONG].ops_high < 100);
	}
}

/* A new key that becomes hot in a full and busy table gets its name, totals and response times. */
static void test_newcomers_get_their_name(void **state)
{
	struct fixture *fixture = *state;
	char key[16];

	for (int i = 0; i < 200000; i++) {
		snprintf(key, sizeof key, "k%d", i % 5000);
		reads_of(fixture, key, 1);
		if (i > 150000 && i % 20 == 0)
			reads_of(fixture, "newcomer", 1);
		if (i % 100 == 0)
			pass(fixture, MS);
	}
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
		top(fixture, HS_HEAT_KEYS, HS_HEAT_BY_OPS, w);
		assert_true(row_is(&fixture->rows[0], "newcomer"));
	}
	assert_true(fixture->rows[0].total_reads > 2000);
	assert_true(fixture->rows[0].p99_us > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_any_bytes_are_a_name),
		TEST(test_long_names_are_cut),
		TEST(test_rows_by_name_prefix),
		TEST(test_prefixes_have_three_levels),
		TEST(test_prefixes_far_into_a_key),
		TEST(test_a_tenant_shows_as_one_line),
		TEST(test_slots),
		TEST(test_reads_and_writes_apart),
		TEST(test_a_rare_large_value_stays_listed),
		TEST(test_misses_and_conflicts),
		TEST(test_percentiles),
		TEST(test_percentiles_of_many),
		TEST(test_workers_add_up),
		TEST(test_an_array_of_few_rows),
		TEST(test_a_table_much_too_small),
		TEST(test_missed_requests_decay),
		TEST(test_newcomers_get_their_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
