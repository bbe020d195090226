/* Goal: rows of keys, prefixes and slots show what the heat tables hold: rounded intervals contain the exact
 * intervals, shares refer to the right total, long names stay distinct, and a key can be looked up whether it is
 * hot or not.
 *
 * Method: known traffic into the heat of two workers; rows made by hand where a number must be exact. */
#include "tests/lib/fleet.h"

#include <math.h>

static struct hs_board_row row_with(struct hs_heat_rates rates)
{
	return (struct hs_board_row){
		.heat = {.window = {[HS_HEAT_LONG] = rates}, .p50_us = 1.5, .p99_us = 12.4},
		.window = HS_HEAT_LONG,
	};
}

static void test_fields_in_their_order(void **state)
{
	(void)state;
	assert_string_equal(fleet_names(hs_board_fields(HS_HEAT_KEYS)),
			    "key ops ops_low reads writes bytes p99_us share partition slot");
	assert_string_equal(fleet_names(hs_board_fields(HS_HEAT_PREFIXES)),
			    "prefix ops ops_low reads writes bytes p99_us share");
	assert_string_equal(fleet_names(hs_board_fields(HS_HEAT_SLOTS)),
			    "slot ops ops_low reads writes bytes p99_us share partition");
	assert_string_equal(
		fleet_names(&hs_board_key_fields),
		"key tracked slot partition "
		"ops_short ops_low_short reads_short writes_short bytes_short bytes_high_short "
		"misses_short conflicts_short "
		"ops_long ops_low_long reads_long writes_long bytes_long bytes_high_long "
		"misses_long conflicts_long "
		"window share p50_us p99_us "
		"total_reads total_writes total_bytes total_us total_s workers hash");
}

static void test_every_field_has_words_and_no_name_twice(void **state)
{
	const struct hs_fields *tables[] = {
		hs_board_fields(HS_HEAT_KEYS),	   hs_board_fields(HS_HEAT_PREFIXES),
		hs_board_fields(HS_HEAT_SLOTS),	   &hs_board_key_fields,
		&hs_board_second_partition_fields,
	};

	(void)state;
	for (size_t t = 0; t < sizeof tables / sizeof *tables; t++) {
		for (size_t i = 0; i < tables[t]->count; i++) {
			const struct hs_field *field = &tables[t]->fields[i];

			assert_true(strlen(field->help) > 5);
			assert_true(field->help[strlen(field->help) - 1] != '.');
			assert_int_equal(field->get != NULL, field->member == HS_MEMBER_NONE);
			for (size_t j = 0; j < i; j++)
				assert_string_not_equal(field->name, tables[t]->fields[j].name);
		}
	}
}

static void test_rounded_intervals_contain_the_exact_ones(void **state)
{
	const struct hs_fields *fields = hs_board_fields(HS_HEAT_KEYS);
	struct hs_board_row row = row_with((struct hs_heat_rates){.ops_low = 9.99,
								  .ops_high = 10.01,
								  .reads = 6.6,
								  .writes = 3.39,
								  .bytes_low = 9.5});

	(void)state;
	assert_true(fleet_number(fields, &row, "ops") == 11);
	assert_true(fleet_number(fields, &row, "ops_low") == 9);
	assert_true(fleet_number(fields, &row, "reads") == 6);
	assert_true(fleet_number(fields, &row, "writes") == 3);
	assert_true(fleet_number(fields, &row, "bytes") == 9);
	assert_true(fleet_number(fields, &row, "p99_us") == 12);
	row.share = 0.123449;
	assert_true(fleet_number(fields, &row, "share") == 0.1234);
	row.share = 0.99996;
	assert_true(fleet_number(fields, &row, "share") == 1);
	row = row_with((struct hs_heat_rates){.ops_low = 5, .ops_high = 5});
	assert_true(fleet_number(fields, &row, "ops") == 5);
	assert_true(fleet_number(fields, &row, "ops_low") == 5);
}

static void test_infinite_numbers_are_shown_as_finite(void **state)
{
	const struct hs_fields *fields = hs_board_fields(HS_HEAT_KEYS);
	struct hs_board_row row = row_with(
		(struct hs_heat_rates){.ops_low = NAN, .ops_high = INFINITY, .reads = 1e300});

	(void)state;
	/* An upper bound that is unknown is printed as a huge number, not as zero. */
	assert_true(fleet_number(fields, &row, "ops") >= 9e18);
	assert_true(fleet_number(fields, &row, "ops_low") == 0);
	assert_true(fleet_number(fields, &row, "reads") >= 9e18);
}

static void test_top_keys_with_their_shares(void **state)
{
	const struct hs_fields *fields = hs_board_fields(HS_HEAT_KEYS);
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_LONG};
	struct hs_board_row rows[HS_BOARD_TOP_DEFAULT];
	struct fleet fleet;
	size_t count;

	(void)state;
	fleet_init(&fleet, 2);
	fleet_hit(&fleet, "hot", 0, 800);
	fleet_hit(&fleet, "warm", 0, 200);
	fleet_hit(&fleet, "alone", 1, 100);
	hs_heat_add_keyless(fleet.heats[0], 1, false, false, 1, 1000); /* a request without a key */
	fleet_pass(&fleet, 1000000);
	count = hs_board_top(fleet.board, &query, rows, HS_BOARD_TOP_DEFAULT);
	assert_int_equal(count, 3);
	assert_string_equal(fleet_text(fields, &rows[0], "key"), "hot");
	assert_string_equal(fleet_text(fields, &rows[1], "key"), "warm");
	assert_string_equal(fleet_text(fields, &rows[2], "key"), "alone");
	assert_near(fleet_number(fields, &rows[0], "ops"), 800, 0.06);
	assert_near(fleet_number(fields, &rows[0], "ops_low"), 800, 0.06);
	assert_true(rows[0].heat.window[HS_HEAT_LONG].ops_low <=
		    rows[0].heat.window[HS_HEAT_LONG].ops_high);
	assert_near(rows[0].share, 0.8, 0.06);
	assert_near(rows[1].share, 0.2, 0.06);
	assert_near(rows[2].share, 100.0 / 101, 0.06);
	assert_true(fleet_number(fields, &rows[0], "slot") == hs_slot_of(HS_LIT("hot")));
	assert_true(fleet_number(fields, &rows[2], "partition") == 1);
	assert_int_equal(hs_board_top(fleet.board, &query, rows, 2), 2);
	query.starts = HS_LIT("wa");
	assert_int_equal(hs_board_top(fleet.board, &query, rows, HS_BOARD_TOP_DEFAULT), 1);
	assert_string_equal(fleet_text(fields, &rows[0], "key"), "warm");
	fleet_deinit(&fleet);
}

static void test_a_prefix_has_its_share_of_everything(void **state)
{
	const struct hs_fields *fields = hs_board_fields(HS_HEAT_PREFIXES);
	struct hs_heat_query query = {.what = HS_HEAT_PREFIXES, .window = HS_HEAT_LONG};
	struct hs_board_row rows[HS_BOARD_TOP_DEFAULT];
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 2);
	for (int i = 0; i < 750; i++) {
		char key[32];

		snprintf(key, sizeof key, "tenant7:%d", i);
		fleet_hit(&fleet, key, (uint16_t)(i % 2), 1);
	}
	fleet_hit(&fleet, "none", 0, 250);
	fleet_pass(&fleet, 1000000);
	assert_int_equal(hs_board_top(fleet.board, &query, rows, HS_BOARD_TOP_DEFAULT), 1);
	assert_string_equal(fleet_text(fields, &rows[0], "prefix"), "tenant7:");
	assert_near(rows[0].share, 0.75, 0.01);
	fleet_deinit(&fleet);
}

static void test_slots(void **state)
{
	const struct hs_fields *fields = hs_board_fields(HS_HEAT_SLOTS);
	struct hs_heat_query query = {.what = HS_HEAT_SLOTS, .window = HS_HEAT_LONG};
	struct hs_board_row rows[HS_BOARD_TOP_DEFAULT];
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 2);
	fleet_hit(&fleet, "{tag}a", 1, 300);
	fleet_hit(&fleet, "{tag}b", 1, 300);
	fleet_hit(&fleet, "else", 1, 200);
	fleet_pass(&fleet, 1000000);
	assert_int_equal(hs_board_top(fleet.board, &query, rows, HS_BOARD_TOP_DEFAULT), 2);
	assert_true(fleet_number(fields, &rows[0], "slot") == hs_slot_of(HS_LIT("tag")));
	assert_true(fleet_number(fields, &rows[0], "partition") == 1);
	assert_near(rows[0].share, 0.75, 0.06);
	assert_int_equal(rows[0].name_len, 0);
	fleet_deinit(&fleet);
}

/* The board counts a key's lower bound and its partition's rate in different ways, so their quotient may exceed
 * one; the share must not. */
static void test_no_share_exceeds_one(void **state)
{
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_SHORT};
	struct hs_board_row rows[1];
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 1);
	for (int i = 0; i < 100; i++) {
		fleet_hit(&fleet, "only", 0, 100);
		fleet_pass(&fleet, 7000);
		assert_int_equal(hs_board_top(fleet.board, &query, rows, 1), 1);
		assert_true(rows[0].share >= 0.8 && rows[0].share <= 1);
	}
	fleet_deinit(&fleet);
}

static void test_names_of_any_bytes(void **state)
{
	static const struct hs_bytes names[] = {
		{"", 0},
		{"a\0b", 3},
		{"\n\"\\", 3},
		{"\xff\xfe\x80", 3},
	};
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_LONG};
	struct hs_board_row row;
	struct fleet fleet;

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		fleet_init(&fleet, 1);
		for (int j = 0; j < 100; j++)
			fleet_add(&fleet, 0, (struct hs_heat_access){.key = names[i]}, 10);
		fleet_pass(&fleet, 1000);
		assert_int_equal(hs_board_top(fleet.board, &query, &row, 1), 1);
		assert_true(hs_bytes_equal(hs_board_name(&row), names[i]));
		fleet_deinit(&fleet);
	}
}

/* Two keys with the same first 80 bytes are two rows. The hash digits after the "…" distinguish them. */
static void test_long_names_are_cut_and_stay_distinct(void **state)
{
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_LONG};
	size_t len = 65536;
	char *keys[2] = {malloc(len), malloc(len)};
	struct hs_board_row rows[3];
	struct fleet fleet;
	char wanted[HS_BOARD_NAME_BYTES + 1];

	(void)state;
	fleet_init(&fleet, 1);
	for (int k = 0; k < 2; k++) {
		memset(keys[k], 'x', len);
		keys[k][len - 1] = (char)('0' + k);
		for (int i = 0; i < 100 * (k + 1); i++)
			fleet_add(&fleet, i % 2, (struct hs_heat_access){.key = {keys[k], len}},
				  10);
	}
	fleet_pass(&fleet, 1000);
	assert_int_equal(hs_board_top(fleet.board, &query, rows, 3), 2);
	for (int k = 0; k < 2; k++) {
		struct hs_bytes name = hs_board_name(&rows[k]);

		snprintf(wanted, sizeof wanted, "%.80s…(65536 bytes, #%016llx)", keys[0],
			 (unsigned long long)rows[k].heat.public_id);
		assert_int_equal(name.len, strlen(wanted));
		assert_memory_equal(name.data, wanted, name.len);
	}
	assert_string_not_equal(rows[0].hash, rows[1].hash);
	/* A lookup by the whole key finds the same row as the list of top keys. */
	hs_board_key(fleet.board, (struct hs_bytes){keys[1], len}, 0, 0, &rows[2]);
	assert_string_equal(rows[2].hash, rows[0].hash);
	assert_true(hs_bytes_equal(hs_board_name(&rows[2]), hs_board_name(&rows[0])));
	/* A key of exactly HS_HEAT_NAME_BYTES is not cut. */
	hs_board_key(fleet.board, (struct hs_bytes){keys[0], HS_HEAT_NAME_BYTES}, 0, 0, &rows[2]);
	assert_int_equal(rows[2].name_len, HS_HEAT_NAME_BYTES);
	hs_board_key(fleet.board, (struct hs_bytes){keys[0], HS_HEAT_NAME_BYTES + 1}, 0, 0,
		     &rows[2]);
	assert_true(rows[2].name_len > HS_HEAT_NAME_BYTES);
	free(keys[0]);
	free(keys[1]);
	fleet_deinit(&fleet);
}

static void test_everything_about_one_key(void **state)
{
	const struct hs_fields *fields = &hs_board_key_fields;
	struct hs_board_row row;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 2);
	for (int i = 0; i < 1000; i++)
		fleet_add(&fleet, i % 2,
			  (struct hs_heat_access){.key = HS_LIT("k"),
						  .partition = 1,
						  .bytes = 50,
						  .write = i % 5 == 0,
						  .missed = i % 5 == 1,
						  .conflicted = i % 10 == 0},
			  200);
	fleet_pass(&fleet, 1000000);
	hs_board_key(fleet.board, HS_LIT("k"), hs_slot_of(HS_LIT("k")), 1, &row);
	assert_string_equal(fleet_text(fields, &row, "key"), "k");
	assert_true(fleet_number(fields, &row, "tracked") == 1);
	assert_true(fleet_number(fields, &row, "workers") == 2);
	assert_true(fleet_number(fields, &row, "partition") == 1);
	assert_true(fleet_number(fields, &row, "slot") == hs_slot_of(HS_LIT("k")));
	assert_near(fleet_number(fields, &row, "ops_low_long"), 1000, 0.06);
	assert_near(fleet_number(fields, &row, "ops_long"), 1000, 0.06);
	assert_near(fleet_number(fields, &row, "reads_long"), 800, 0.06);
	assert_near(fleet_number(fields, &row, "writes_long"), 200, 0.06);
	assert_near(fleet_number(fields, &row, "bytes_long"), 50000, 0.06);
	assert_true(fleet_number(fields, &row, "bytes_high_long") >=
		    fleet_number(fields, &row, "bytes_long"));
	assert_near(fleet_number(fields, &row, "misses_long"), 200, 0.06);
	assert_near(fleet_number(fields, &row, "conflicts_long"), 100, 0.06);
	assert_true(fleet_number(fields, &row, "ops_low_short") < 2); /* all a second old */
	assert_string_equal(fleet_text(fields, &row, "window"), "long");
	assert_near(fleet_number(fields, &row, "share"), 1, 0.06);
	assert_near(fleet_number(fields, &row, "p99_us"), 220, 0.2);
	assert_near(fleet_number(fields, &row, "total_reads"), 800, 0.01);
	assert_near(fleet_number(fields, &row, "total_writes"), 200, 0.01);
	assert_near(fleet_number(fields, &row, "total_bytes"), 50000, 0.01);
	assert_near(fleet_number(fields, &row, "total_us"), 200000, 0.01);
	assert_near(fleet_number(fields, &row, "total_s"), 1, 0.01);
	assert_int_equal(strlen(fleet_text(fields, &row, "hash")), 16);
	fleet_deinit(&fleet);
}

static void test_a_key_that_is_not_hot(void **state)
{
	const struct hs_fields *fields = &hs_board_key_fields;
	struct hs_board_row row;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 2);
	fleet_run(&fleet, "other", 0, 1000, 100000, 10000);
	hs_board_key(fleet.board, HS_LIT("never seen"), 17, 1, &row);
	assert_string_equal(fleet_text(fields, &row, "key"), "never seen");
	assert_true(fleet_number(fields, &row, "tracked") == 0);
	assert_true(fleet_number(fields, &row, "workers") == 0);
	assert_true(fleet_number(fields, &row, "slot") == 17);
	assert_true(fleet_number(fields, &row, "partition") == 1);
	assert_true(fleet_number(fields, &row, "ops_low_long") == 0);
	assert_true(fleet_number(fields, &row, "share") == 0);
	assert_true(fleet_number(fields, &row, "total_reads") == 0);
	assert_true(fleet_number(fields, &row, "total_s") == 0);
	hs_board_key(fleet.board, HS_LIT(""), 0, 0, &row);
	assert_string_equal(fleet_text(fields, &row, "key"), "");
	fleet_deinit(&fleet);
}

/* The heat table counts the key, but stores no name, response times or slot for it. */
static void test_a_key_that_is_only_counted(void **state)
{
	const struct hs_fields *fields = &hs_board_key_fields;
	uint16_t slot = hs_slot_of(HS_LIT("late"));
	struct hs_board_row row;
	struct fleet fleet;

	(void)state;
	fleet_init(&fleet, 2);
	for (int k = 0; k < 1000; k++) {
		char key[16];

		snprintf(key, sizeof key, "key%d", k);
		fleet_hit(&fleet, key, 0, 40);
	}
	fleet_hit(&fleet, "late", 1, 2);
	fleet_pass(&fleet, 1000);
	hs_board_key(fleet.board, HS_LIT("late"), slot, 1, &row);
	assert_string_equal(fleet_text(fields, &row, "key"), "late");
	assert_true(fleet_number(fields, &row, "tracked") == 1);
	assert_true(fleet_number(fields, &row, "slot") == slot);
	assert_true(fleet_number(fields, &row, "partition") == 1);
	assert_true(fleet_number(fields, &row, "ops_long") > 0);
	assert_true(fleet_number(fields, &row, "total_reads") == 0);
	assert_true(fleet_number(fields, &row, "p99_us") == 0);
	fleet_deinit(&fleet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields_in_their_order),
		cmocka_unit_test(test_every_field_has_words_and_no_name_twice),
		cmocka_unit_test(test_rounded_intervals_contain_the_exact_ones),
		cmocka_unit_test(test_infinite_numbers_are_shown_as_finite),
		cmocka_unit_test(test_top_keys_with_their_shares),
		cmocka_unit_test(test_a_prefix_has_its_share_of_everything),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_no_share_exceeds_one),
		cmocka_unit_test(test_names_of_any_bytes),
		cmocka_unit_test(test_long_names_are_cut_and_stay_distinct),
		cmocka_unit_test(test_everything_about_one_key),
		cmocka_unit_test(test_a_key_that_is_not_hot),
		cmocka_unit_test(test_a_key_that_is_only_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
