/* A fixture for unit tests of absorb/copies: a hot key with copies on three partitions. It uses two cores whose
 * engine is played by the test (cache_world.h), without a local cache unless the test enables it. One thread,
 * simulated clock. */
#ifndef HS_TESTS_COPIES_WORLD_H
#define HS_TESTS_COPIES_WORLD_H

#include "tests/lib/cache_world.h"

#include "absorb/copies/stage.h"
#include "base/mem.h"
#include "base/slot.h"
#include "tests/lib/slots.h"

#define COPY "GET heatsink:copy:{"
#define VALUE "$5\r\nvalue\r\n"

static struct hs_slot_map slots;

static inline void open_copies(struct world *world, const char *rule)
{
	hs_slot_map_fill_even(&slots, 3);
	open_world_on(world, rule, &slots);
	world->options.cache_bytes = 0;
	world->options.fold = false;
	set_rules(world, rule, HS_MITIGATE_ON);
}

/* Reads the key until the core sends DUMP, which begins the making of copies. */
static inline void warm_up(struct world *world, char who)
{
	for (int i = 0; i < 200; i++) {
		const char *seen;

		say(world, who, "GET k");
		seen = take_sent(world);
		if (strcmp(seen, "GET k") != 0) {
			assert_string_equal(seen, "~DUMP k | GET k");
			reply(world, "GET k", VALUE);
			take_received(world, who);
			return;
		}
		reply(world, "GET k", VALUE);
		received(world, who, VALUE);
	}
	fail_msg("no copies are made");
}

/* Answers every operation in flight with this beginning; returns their number. */
static inline int reply_all(struct world *world, const char *begin, const char *answer)
{
	char text[1024];
	int count = 0;

	take_sent(world);
	for (size_t i = 0; i < world->count; i++) {
		describe(world->ops[i], text, sizeof text);
		count += strncmp(text, begin, strlen(begin)) == 0;
	}
	for (int i = 0; i < count; i++)
		reply(world, begin, answer);
	return count;
}

static inline void make_copies(struct world *world, char who)
{
	warm_up(world, who);
	reply(world, "~DUMP k", "$3\r\nxyz\r\n");
	assert_int_equal(reply_all(world, "RESTORE heatsink:copy:{", "+OK\r\n"), 2);
}

/* Sends a read and answers it. Returns where it went: 'o' to the original, 'c' to a copy. */
static inline char ask(struct world *world, char who)
{
	char seen[256];
	char where;

	say(world, who, "GET k");
	snprintf(seen, sizeof seen, "%s", take_sent(world));
	if (strcmp(seen, "GET k") == 0) {
		where = 'o';
	} else {
		if (strncmp(seen, COPY, strlen(COPY)) != 0 || strchr(seen, '|'))
			fail_msg("sent: %s", seen);
		where = 'c';
	}
	reply(world, seen, VALUE);
	received(world, who, VALUE);
	return where;
}

static inline int ask_many(struct world *world, char who, int count)
{
	int copies = 0;

	for (int i = 0; i < count; i++)
		copies += ask(world, who) == 'c';
	return copies;
}

/* Asserts that the two copies are unlinked. */
static inline void answer_unlinks(struct world *world)
{
	assert_int_equal(reply_all(world, "UNLINK heatsink:copy:{", ":1\r\n"), 2);
	assert_int_equal(world->count, 0);
}

/* Ends the world, with or without copies. */
static inline void close_copies(struct world *world)
{
	for (size_t i = 0; i < WORKERS; i++)
		hs_core_drain(world->station[i].core, world->now, UINT64_MAX);
	reply_all(world, "UNLINK heatsink:copy:{", ":1\r\n");
	close_world(world);
}

static inline uint64_t stat_of(const struct world *world, size_t offset)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < WORKERS; i++)
		sum += counted((const void *)((const char *)hs_core_stage_stats(
						      world->station[i].core, &hs_stage_copies) +
					      offset));
	return sum;
}
#define stat(world, field) stat_of(world, offsetof(struct hs_copies_stats, field))

#endif
