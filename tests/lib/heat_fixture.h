/* A fixture for unit tests of heat: the heat table of one worker, a simulated clock, and the last list read from the
 * table. One thread. */
#ifndef HS_TESTS_HEAT_FIXTURE_H
#define HS_TESTS_HEAT_FIXTURE_H

#include "base/mem.h"
#include "base/slot.h"
#include "heat/heat.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define SHORT_S (HS_HEAT_SHORT_US / 1e6)

enum { PARTITIONS = 8, ROWS = 1000, MS = 1000, SECOND = 1000 * MS, START = 77 * SECOND };

struct fixture {
	struct hs_heat *heat;
	uint64_t now_us;
	struct hs_heat_row rows[ROWS];
	size_t count;
};

static inline struct hs_heat *create(uint32_t key_sets)
{
	return hs_heat_create(&(struct hs_heat_options){
		.seed = 4711, .partitions = PARTITIONS, .key_sets = key_sets});
}

static inline int set_up(void **state)
{
	struct fixture *fixture = hs_mem_zalloc(sizeof *fixture);

	fixture->heat = create(0);
	fixture->now_us = START;
	hs_heat_now(fixture->heat, START);
	*state = fixture;
	return 0;
}

static inline int tear_down(void **state)
{
	struct fixture *fixture = *state;

	hs_heat_destroy(&fixture->heat);
	assert_null(fixture->heat);
	hs_mem_free(&fixture);
	return 0;
}

static inline struct hs_heat_access to(struct hs_bytes key)
{
	uint16_t slot = hs_slot_of(key);

	return (struct hs_heat_access){
		.key = key,
		.bytes = 100,
		.slot = slot,
		.partition = (uint16_t)(slot * PARTITIONS / HS_SLOTS),
	};
}

static inline void pass(struct fixture *fixture, uint64_t us)
{
	fixture->now_us += us;
	hs_heat_now(fixture->heat, fixture->now_us);
}

static inline void reads_of(struct fixture *fixture, const char *key, size_t times)
{
	struct hs_heat_access access = to(hs_bytes_of(key));

	for (size_t i = 0; i < times; i++)
		hs_heat_add(fixture->heat, &access, 5000);
}

static inline size_t top(struct fixture *fixture, enum hs_heat_what what, enum hs_heat_by by,
			 enum hs_heat_window window)
{
	struct hs_heat_query query = {.what = what, .by = by, .window = window};

	fixture->count =
		hs_heat_top(&fixture->heat, 1, &query, fixture->now_us, fixture->rows, ROWS);
	return fixture->count;
}

static inline struct hs_heat_row find(struct fixture *fixture, enum hs_heat_what what,
				      const char *name)
{
	struct hs_heat_row row;

	hs_heat_find(&fixture->heat, 1, what, hs_bytes_of(name), 0, fixture->now_us, &row);
	return row;
}

static inline bool row_is(const struct hs_heat_row *row, const char *name)
{
	return hs_bytes_equal((struct hs_bytes){row->name, row->name_len}, hs_bytes_of(name));
}

/* The row with that name in the last list, or NULL. */
static inline const struct hs_heat_row *listed(const struct fixture *fixture, const char *name)
{
	for (size_t i = 0; i < fixture->count; i++) {
		if (row_is(&fixture->rows[i], name))
			return &fixture->rows[i];
	}
	return NULL;
}

static inline void assert_near(double got, double wanted)
{
	if (fabs(got - wanted) > 1e-3 * fabs(wanted) + 1e-6)
		fail_msg("%.9g is not %.9g", got, wanted);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
