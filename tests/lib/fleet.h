/* A fixture for unit tests of the board (telemetry/board.h): the heat tables of some workers, a board over them, and
 * a simulated clock. Nothing happens by itself: fleet_hit counts, fleet_pass lets time pass and takes a sample. One
 * thread; limits: FLEET_WORKERS, FLEET_PARTITIONS_MAX. */
#ifndef HS_TESTS_FLEET_H
#define HS_TESTS_FLEET_H

#include "base/slot.h"
#include "telemetry/board.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FLEET_WORKERS = 2, FLEET_PARTITIONS_MAX = 8 };

struct fleet {
	struct hs_heat *heats[FLEET_WORKERS];
	struct hs_board *board;
	uint16_t partitions;
	struct hs_now now;
	bool stuck[FLEET_WORKERS]; /* true: the worker does not advance its clock */
	struct hs_engine_partition facts[FLEET_PARTITIONS_MAX];
};

static inline void fleet_sample(struct fleet *fleet)
{
	for (int i = 0; i < FLEET_WORKERS; i++) {
		if (!fleet->stuck[i])
			hs_heat_now(fleet->heats[i], fleet->now.mono_us);
	}
	hs_board_sample(fleet->board, fleet->now, fleet->facts);
}

/* Lets time pass and takes a sample at its end. */
static inline void fleet_pass(struct fleet *fleet, uint64_t us)
{
	fleet->now.mono_us += us;
	fleet->now.wall_us += (int64_t)us;
	fleet_sample(fleet);
}

static inline void fleet_init(struct fleet *fleet, uint16_t partitions)
{
	struct hs_heat_options options = {.seed = 7, .partitions = partitions};

	*fleet = (struct fleet){
		.partitions = partitions,
		.now = {.mono_us = 5000000, .wall_us = 1700000000000000},
	};
	for (int i = 0; i < FLEET_WORKERS; i++)
		fleet->heats[i] = hs_heat_create(&options);
	fleet->board = hs_board_create(fleet->heats, FLEET_WORKERS, partitions);
	fleet_sample(fleet);
}

static inline void fleet_deinit(struct fleet *fleet)
{
	hs_board_destroy(&fleet->board);
	assert_null(fleet->board);
	for (int i = 0; i < FLEET_WORKERS; i++)
		hs_heat_destroy(&fleet->heats[i]);
}

/* One access, counted by a worker. */
static inline void fleet_add(struct fleet *fleet, int worker, struct hs_heat_access access,
			     uint64_t time_us)
{
	access.slot = hs_slot_of(access.key);
	if (access.bytes == 0)
		access.bytes = 100;
	hs_heat_add(fleet->heats[worker], &access, time_us * 1000);
}

/* `count` reads of a key on a partition, spread evenly over the workers. */
static inline void fleet_hit(struct fleet *fleet, const char *key, uint16_t partition, int count)
{
	for (int i = 0; i < count; i++)
		fleet_add(fleet, i % FLEET_WORKERS,
			  (struct hs_heat_access){.key = hs_bytes_of(key), .partition = partition},
			  10);
}

/* `per_s` reads of a key per second for some time, with a sample every `step_us`. */
static inline void fleet_run(struct fleet *fleet, const char *key, uint16_t partition, int per_s,
			     uint64_t us, uint64_t step_us)
{
	uint64_t done_us = 0;
	int64_t done = 0;

	while (done_us < us) {
		uint64_t next_us = done_us + step_us < us ? done_us + step_us : us;

		/* The accesses are counted in the middle of each step. */
		fleet->now.mono_us += (next_us - done_us) / 2;
		for (int i = 0; i < FLEET_WORKERS; i++)
			hs_heat_now(fleet->heats[i], fleet->now.mono_us);
		fleet->now.mono_us -= (next_us - done_us) / 2;

		int64_t due = (int64_t)next_us * per_s / 1000000;

		fleet_hit(fleet, key, partition, (int)(due - done));
		done = due;
		fleet_pass(fleet, next_us - done_us);
		done_us = next_us;
	}
}

static inline struct hs_board_partition fleet_partition(struct fleet *fleet, uint16_t id,
							enum hs_heat_window window)
{
	struct hs_board_partition rows[FLEET_PARTITIONS_MAX + 1];

	hs_board_partitions(fleet->board, window, rows);
	return rows[id];
}

/* A field of a row by its name, as a number. */
static inline double fleet_number(const struct hs_fields *fields, const void *row, const char *name)
{
	for (size_t i = 0; i < fields->count; i++) {
		if (strcmp(fields->fields[i].name, name) == 0)
			return hs_field_number(&fields->fields[i], row);
	}
	fail_msg("no field %s", name);
	return 0;
}

/* A field of a row as text, valid until the next call. */
static inline const char *fleet_text(const struct hs_fields *fields, const void *row,
				     const char *name)
{
	static char text[256];

	for (size_t i = 0; i < fields->count; i++) {
		struct hs_bytes bytes;

		if (strcmp(fields->fields[i].name, name) != 0)
			continue;
		bytes = hs_field_get(&fields->fields[i], row).bytes;
		assert_true(bytes.len < sizeof text);
		memcpy(text, bytes.data, bytes.len);
		text[bytes.len] = '\0';
		return text;
	}
	fail_msg("no field %s", name);
	return NULL;
}

/* The names of all fields, separated by spaces. */
static inline const char *fleet_names(const struct hs_fields *fields)
{
	static char text[1024];

	text[0] = '\0';
	for (size_t i = 0; i < fields->count; i++) {
		strcat(text, i > 0 ? " " : "");
		strcat(text, fields->fields[i].name);
	}
	return text;
}

static inline void fleet_near(double value, double wanted, double within, const char *file,
			      int line)
{
	if (!(value >= wanted - within && value <= wanted + within)) {
		print_error("%g is not %g (± %g)\n", value, wanted, within);
		_fail(file, line);
	}
}
/* Asserts that the value differs by at most this part of the expected one. */
#define assert_near(value, wanted, part)                                                           \
	fleet_near(value, wanted, (wanted) * (part) + 1e-9, __FILE__, __LINE__)

#endif
