/* Goal: any thread may read heat while its worker goes on counting; every row that it reads is consistent.
 *
 * Method: each writer hammers its own table, with keys that come and go in tables much too small for them, so that
 * entries change owners all the time. A key's name determines all numbers of its row: "w2:00123_00123_00123_…"
 * repeats the key's number, from which its slot, partition and request size follow. So the test detects a row
 * mixed from two keys. Readers list, look up and reset meanwhile. One table is stuck: its worker stopped after a
 * first run. The thread sanitizer runs this test, too. */
#include "heat/heat.h"

#include "base/prng.h"
#include "base/slot.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	WRITERS = 3,
	STUCK = WRITERS, /* the table whose worker has stopped */
	TABLES = WRITERS + 1,
	READERS = 3,
	KEYS = 2000,
	PARTITIONS = 8,
#ifdef __SANITIZE_THREAD__
	LISTS = 8, /* lists that each reader reads; writers continue until then */
#elif defined(__SANITIZE_ADDRESS__)
	LISTS = 25,
#else
	LISTS = 150,
#endif
	LISTS_MOST = 1000000,
	FIRST = 5000, /* fewest accesses of a worker */
	PER_MS = 200,
	LATE_US = 50000, /* more than half a short window */
	ROWS = 400,
	START_US = 50000000,
	SIZE_MIN = 10,
	KEY_BYTES = 3 + 11 * 6,
};

struct shared {
	struct hs_heat *heats[TABLES];
	_Atomic uint64_t now_us; /* the latest time of any writer */
	_Atomic int reading;	 /* readers that have not finished */
	_Atomic uint64_t written;
	_Atomic uint64_t answers;
	_Atomic uint64_t complaints;
	const char *_Atomic complaint; /* the last complaint */
	int lists;		       /* how many lists each reader reads */
	bool resets;		       /* readers sometimes reset the tables */
};

struct party {
	struct shared *shared;
	size_t number;
};

static void complain(struct shared *shared, const char *what)
{
	shared->complaint = what;
	shared->complaints++;
}

#define expect(shared, condition)                                                                  \
	do {                                                                                       \
		if (!(condition))                                                                  \
			complain(shared, #condition);                                              \
	} while (0)

/* ---- writers ---- */

static uint64_t size_of(unsigned number)
{
	return SIZE_MIN + number % 90;
}

static struct hs_heat_access access_to(char text[KEY_BYTES + 1], size_t writer, unsigned number)
{
	struct hs_bytes key = {text, KEY_BYTES};
	uint16_t slot;

	snprintf(text, 4, "w%zu:", writer % 10);
	for (size_t at = 3; at < KEY_BYTES; at += 6)
		snprintf(text + at, 7, "%05u_", number % KEYS);
	slot = hs_slot_of(key);
	return (struct hs_heat_access){
		.key = key,
		.bytes = size_of(number % KEYS),
		.slot = slot,
		.partition = (uint16_t)(slot * PARTITIONS / HS_SLOTS),
	};
}

/* Writes accesses. A few keys are hot and change every 2 ms; any other key comes in between. Continues while a
 * reader is active, and for at least `least` accesses. */
static void write_some(struct shared *shared, size_t table, struct hs_prng *prng, size_t least)
{
	char text[HS_HEAT_NOTES_MAX][KEY_BYTES + 1];
	uint64_t now_us = START_US;
	size_t noted = 0;

	size_t i = 0;

	for (; i < least || shared->reading > 0; i++) {
		unsigned hot = (unsigned)(now_us / 2000 * 7 + hs_prng_below(prng, 6));
		unsigned any = (unsigned)hs_prng_below(prng, KEYS);
		struct hs_heat_access access =
			access_to(text[noted], i % 10 ? table : 0, i % 3 ? hot : any);

		access.write = i % 4 == 0;
		access.missed = i % 16 == 1;
		access.conflicted = i % 16 == 0;
		hs_heat_note(shared->heats[table], &access);
		hs_heat_inflight(shared->heats[table], access.partition, i % 2 ? -1 : 1);
		if (++noted == HS_HEAT_NOTES_MAX || i % 9 == 0) {
			hs_heat_settle(shared->heats[table], 1000 * hot);
			noted = 0;
		}
		if (i % PER_MS == PER_MS - 1) {
			hs_heat_settle(shared->heats[table], 5000);
			noted = 0;
			now_us += 1000;
			hs_heat_now(shared->heats[table], now_us);
			if (now_us > shared->now_us)
				shared->now_us = now_us;
		}
	}
	hs_heat_settle(shared->heats[table], 1000);
	shared->written += i;
}

static void *writer(void *argument)
{
	struct party *party = argument;
	struct hs_prng prng;

	hs_prng_init(&prng, party->number + 1);
	write_some(party->shared, party->number, &prng, 2 * FIRST);
	return NULL;
}

/* ---- readers ---- */

static void check_numbers(struct shared *shared, uint64_t now_us, const struct hs_heat_row *row)
{
	/* All writers together make at most this many accesses per second. A rate looks higher just after a
	 * reset, when hardly any time has passed, and if time has passed since the reader read the clock. */
	bool late = shared->now_us - now_us > LATE_US;
	const double ops_max = shared->resets || late ? INFINITY : 1000.0 * PER_MS * TABLES * 20;

	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
		const struct hs_heat_rates *rates = &row->window[w];

		expect(shared, rates->ops_low >= 0);
		expect(shared, rates->bytes_low >= 0);
		expect(shared, rates->ops_low <= rates->ops_high);
		expect(shared, rates->bytes_low <= rates->bytes_high);
		expect(shared, rates->reads >= 0 && rates->writes >= 0);
		expect(shared, rates->reads + rates->writes <= rates->ops_low * 1.001 + 1e-6);
		expect(shared, rates->misses >= 0 && rates->conflicts >= 0);
		expect(shared, rates->ops_low <= ops_max);
	}
	expect(shared, row->p50_us <= row->p99_us);
}

/* Checks that a writer made the name, and that all numbers of the row belong to the name. */
static void check_key(struct shared *shared, const struct hs_heat_row *row)
{
	struct hs_bytes name = {row->name, row->name_len};
	unsigned long number;
	uint64_t bytes;
	char text[6] = {0};

	expect(shared, row->name_len == row->full_len);
	if (row->name_len != KEY_BYTES || row->name[0] != 'w' || row->name[2] != ':') {
		complain(shared, "a name that nobody asked for");
		return;
	}
	for (size_t at = 9; at < KEY_BYTES; at += 6)
		expect(shared, memcmp(row->name + 3, row->name + at, 6) == 0);
	memcpy(text, row->name + 3, 5);
	number = strtoul(text, NULL, 10);
	expect(shared, row->name[1] >= '0' && row->name[1] < '0' + TABLES);
	expect(shared, number < KEYS);
	expect(shared, row->slot == hs_slot_of(name));
	expect(shared, row->partition == row->slot * PARTITIONS / HS_SLOTS);
	/* Every access of the key has the same size. */
	bytes = (row->total_reads + row->total_writes) * size_of((unsigned)number);
	expect(shared, row->total_bytes <= bytes + 1000 * 100);
	expect(shared, bytes <= row->total_bytes + 1000 * 100);
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
		double size = (double)size_of((unsigned)number);
		double mean = row->window[w].bytes_low / row->window[w].ops_low;

		/* A worker updates these numbers one after the other, so a few accesses may be in one and not in
		 * the other. Just after a reset there are only a few accesses. */
		expect(shared, shared->resets || row->window[w].ops_low < 2000 ||
				       (mean > 0.5 * size && mean < 2 * size));
	}
}

static void check_list(struct shared *shared, struct hs_heat *const *heats, size_t count,
		       const struct hs_heat_query *query, struct hs_heat_row *rows)
{
	uint64_t now_us = shared->now_us;
	size_t found = hs_heat_top(heats, count, query, now_us, rows, ROWS);
	struct hs_heat_row same;

	expect(shared, found <= ROWS);
	for (size_t i = 0; i < found; i++) {
		struct hs_bytes name = {rows[i].name, rows[i].name_len};

		check_numbers(shared, now_us, &rows[i]);
		if (query->what == HS_HEAT_KEYS)
			check_key(shared, &rows[i]);
		for (size_t j = 0; j < i; j++)
			expect(shared, rows[i].id != rows[j].id);
		if ((i + now_us / 1000) % 4 != 0)
			continue; /* few lookups, so that readers read many lists */
		hs_heat_find(heats, count, query->what, name, rows[i].slot, now_us, &same);
		/* While a reset has reached only some workers, the size of the tables is unknown, and a lookup
		 * may find nothing. */
		expect(shared, same.id == rows[i].id || (shared->resets && same.workers == 0));
		check_numbers(shared, now_us, &same);
	}
	/* Counts only rows from tables with a running writer: the stuck table is easy to read. */
	if (count == 1 && heats[0] != shared->heats[STUCK])
		shared->answers += found;
}

static void check_counters(struct shared *shared, uint64_t *seen)
{
	uint64_t all = 0;

	for (size_t i = 0; i < TABLES; i++) {
		struct hs_heat_partition sum = {0};
		uint64_t ranges[HS_HEAT_RANGES] = {0};

		for (int id = 0; id < PARTITIONS; id++)
			hs_heat_read_partition(shared->heats[i], (uint16_t)id, &sum);
		hs_heat_read_ranges(shared->heats[i], ranges);
		all += sum.reads + sum.writes;
	}
	expect(shared, all >= *seen);
	*seen = all;
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++)
		expect(shared, isfinite(hs_heat_total(shared->heats, TABLES, w, shared->now_us)));
}

static void *reader(void *argument)
{
	struct party *party = argument;
	struct shared *shared = party->shared;
	struct hs_heat_row *rows = calloc(ROWS, sizeof *rows);
	struct hs_prng prng;
	uint64_t seen = 0;

	hs_prng_init(&prng, 100 + party->number);
	/* The reader continues until it has read a table with a running writer, at most LISTS_MOST times. */
	for (int i = 0; i < shared->lists || (shared->answers == 0 && i < LISTS_MOST); i++) {
		struct hs_heat_query query = {
			.what = (enum hs_heat_what)hs_prng_below(&prng, HS_HEAT_TABLES),
			.by = (enum hs_heat_by)hs_prng_below(&prng, HS_HEAT_BY_CONFLICTS + 1),
			.window = (enum hs_heat_window)hs_prng_below(&prng, HS_HEAT_WINDOWS),
		};
		size_t one = (size_t)hs_prng_below(&prng, TABLES);

		check_list(shared, shared->heats, TABLES, &query, rows);
		check_list(shared, &shared->heats[one], 1, &query, rows);
		check_counters(shared, &seen);
		if (shared->resets && hs_prng_below(&prng, 8) == 0)
			hs_heat_reset(shared->heats[one], shared->now_us);
	}
	shared->reading--;
	free(rows);
	return NULL;
}

/* ---- tests ---- */

static void run(struct shared *shared, uint32_t key_sets)
{
	pthread_t writers[WRITERS], readers[READERS];
	struct party parties[WRITERS + READERS];
	struct hs_prng prng;

	shared->now_us = START_US;
	for (size_t i = 0; i < TABLES; i++) {
		shared->heats[i] = hs_heat_create(&(struct hs_heat_options){
			.seed = 5, .partitions = PARTITIONS, .key_sets = key_sets});
		hs_heat_now(shared->heats[i], START_US);
	}
	hs_prng_init(&prng, 99);
	write_some(shared, STUCK, &prng, FIRST);
	shared->reading = READERS;
	for (size_t i = 0; i < WRITERS + READERS; i++) {
		pthread_t *thread = i < WRITERS ? &writers[i] : &readers[i - WRITERS];

		parties[i] = (struct party){shared, i};
		assert_int_equal(
			pthread_create(thread, NULL, i < WRITERS ? writer : reader, &parties[i]),
			0);
	}
	for (size_t i = 0; i < WRITERS; i++)
		pthread_join(writers[i], NULL);
	for (size_t i = 0; i < READERS; i++)
		pthread_join(readers[i], NULL);
	if (shared->complaints > 0)
		fail_msg("%llu times: %s", (unsigned long long)shared->complaints,
			 shared->complaint);
	assert_true(shared->answers > 0);
}

static void destroy(struct shared *shared)
{
	for (size_t i = 0; i < TABLES; i++)
		hs_heat_destroy(&shared->heats[i]);
}

static void test_reading_while_counting(void **state)
{
	struct shared shared = {.lists = LISTS};
	struct hs_heat_partition sum = {0};

	(void)state;
	run(&shared, 4);
	for (size_t i = 0; i < TABLES; i++) {
		for (int id = 0; id < PARTITIONS; id++)
			hs_heat_read_partition(shared.heats[i], (uint16_t)id, &sum);
	}
	assert_int_equal(sum.reads + sum.writes, shared.written);
	destroy(&shared);
}

/* Each table has a single set: a list reads only this set, and every new key evicts another key. */
static void test_reading_a_single_set(void **state)
{
	struct shared shared = {.lists = LISTS * 30};

	(void)state;
	run(&shared, 1);
	destroy(&shared);
}

static void test_resetting_while_counting(void **state)
{
	struct shared shared = {.lists = LISTS, .resets = true};

	(void)state;
	run(&shared, 16);
	destroy(&shared);
}

/* The rates of a stuck worker decay when other threads read them. hs_heat_seen_us stays behind, which shows that
 * the worker is stuck. */
static void test_a_stuck_worker_cools(void **state)
{
	struct shared shared = {.lists = LISTS};
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_SHORT};
	static struct hs_heat_row rows[ROWS];

	(void)state;
	run(&shared, 64);
	assert_true(hs_heat_top(&shared.heats[STUCK], 1, &query, START_US + 25000, rows, ROWS) > 0);
	assert_int_equal(
		hs_heat_top(&shared.heats[STUCK], 1, &query, shared.now_us + 1000000, rows, ROWS),
		0);
	assert_true(hs_heat_seen_us(shared.heats[STUCK]) < hs_heat_seen_us(shared.heats[0]));
	destroy(&shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reading_while_counting),
		cmocka_unit_test(test_reading_a_single_set),
		cmocka_unit_test(test_resetting_while_counting),
		cmocka_unit_test(test_a_stuck_worker_cools),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
