/* Goal: cache only replies that may be cached, and serve a cache entry only as long as its rule and its tracking
 * session allow (absorb/entry.h, query.c).
 *
 * Method: every command of the table is checked with and without options against the list in this file. Signatures
 * of different requests differ. Entries are made of RESP3 replies and compared by all arguments, also where
 * signatures are made to collide. The freshness of an entry is read just before and after every time at which it
 * changes.
 *
 * Started with a file that holds a server's reply to COMMAND, the program is a tool for
 * tests/integration/test_dialect.py: see translate. */
#include "absorb/entry.h"
#include "absorb/shared.h"
#include "base/check.h"
#include "base/hash.h"
#include "command/learned.h"
#include "core/call.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"
#include "wire/request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 7, ARGS_MAX = 8, STALE = 1000, READ = 100000 };

struct line {
	struct hs_bytes argv[ARGS_MAX];
	size_t argc;
};

static struct line words(const char *text)
{
	struct line line = {.argc = 0};

	while (*text) {
		assert_true(line.argc < ARGS_MAX);
		size_t len = strcspn(text, " ");

		line.argv[line.argc++] = (struct hs_bytes){text, len};
		text += len + (text[len] == ' ');
	}
	return line;
}

/* One row of the server's reply to COMMAND: name, arity, flags, keys. */
static struct hs_learned *learn(const char *names, const char *flag, int key_last)
{
	struct hs_buf out = {0};
	struct hs_reply reply = {.out = &out, .resp = 3};
	struct hs_learned *learned;
	struct line line = words(names);
	char error[100];

	hs_reply_array(&reply, line.argc);
	for (size_t i = 0; i < line.argc; i++) {
		hs_reply_array(&reply, 6);
		hs_reply_bulk(&reply, line.argv[i]);
		hs_reply_int(&reply, -3);
		hs_reply_set(&reply, 1);
		hs_reply_status(&reply, flag);
		hs_reply_int(&reply, 1);
		hs_reply_int(&reply, key_last);
		hs_reply_int(&reply, 1);
	}
	learned = hs_learned_create(hs_buf_bytes(&out), NULL, error, sizeof error);
	assert_non_null(learned);
	hs_buf_deinit(&out);
	return learned;
}

static bool ask_of(struct hs_cache_query *ask, uint64_t seed, const struct hs_command *command,
		   size_t argc, const struct hs_bytes *argv)
{
	struct hs_call call = hs_call_of(command, argc, argv);

	return hs_cache_query_of_call(ask, seed, &call);
}

static bool init(struct hs_cache_query *ask, const struct line *line,
		 const struct hs_learned *learned)
{
	const struct hs_command *parent;
	const struct hs_command *command =
		hs_learned_resolve(learned, line->argc, line->argv, &parent);

	assert_non_null(command);
	return ask_of(ask, SEED, command, line->argc, line->argv);
}

static void test_which_commands_are_cacheable(void **state)
{
	static const char *const entry[] = {
		"GET k",	"get k",	  "STRLEN k",	"GETRANGE k 0 1",
		"SUBSTR k 0 1", "GETBIT k 1",	  "BITCOUNT k", "BITCOUNT k 0 1 BIT",
		"BITPOS k 1",	"BITPOS k 1 0 2", "EXISTS k",	"TYPE k",
	};
	static const char *const not [] = {
		"GET",
		"GET k l",
		"EXISTS k l",
		"MGET k",
		"TTL k",
		"PTTL k",
		"SET k v",
		"GETDEL k",
		"GETEX k",
		"INCR k",
		"LCS k l",
		"EXPIRETIME k",
		"OBJECT ENCODING k",
		"SCAN 0",
		"KEYS k",
		"RANDOMKEY",
		"PING",
		"DEL k",
		"TOUCH k",
		"GETSET k v",
		"BITCOUNT",
	};
	struct hs_cache_query ask;

	(void)state;
	for (size_t i = 0; i < sizeof entry / sizeof *entry; i++) {
		struct line line = words(entry[i]);

		assert_true(init(&ask, &line, NULL));
		assert_true(hs_bytes_equal(ask.key, HS_LIT("k")));
		assert_ptr_equal(ask.argv, line.argv);
		assert_int_equal(ask.argc, line.argc);
	}
	for (size_t i = 0; i < sizeof not / sizeof *not ; i++) {
		struct line line = words(not [i]);

		assert_false(init(&ask, &line, NULL));
	}
	/* A command that writes, blocks or does not have exactly one key is never cacheable, whatever its row
	 * says. */
	for (unsigned id = 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *row = hs_command_by_id(id);

		if (!row->cacheable)
			continue;
		assert_true(row->cacheable & HS_CACHEABLE);
		assert_true(row->flags & HS_CMD_READONLY);
		assert_false(row->flags & (HS_CMD_WRITE | HS_CMD_BLOCKING | HS_CMD_MOVABLEKEYS));
		assert_int_equal(row->key_first, 1);
		assert_true(row->key_last == 1 || row->cacheable & HS_CACHEABLE_WITHOUT_OPTIONS);
	}
}

static void test_which_learned_commands_are_cacheable(void **state)
{
	struct hs_learned *learned = learn("hget srandmember zrank x.get pfcount", "readonly", 1);
	struct hs_learned *fields = learn("hget zrank hpexpire", "readonly", 1);
	struct hs_learned *writes = learn("hget", "write", 1);
	struct hs_learned *many = learn("hget", "readonly", -1);
	struct line hget = words("HGET k f"), rank = words("ZRANK k m");
	struct line ranked = words("ZRANK k m WITHSCORE"), random = words("SRANDMEMBER k 1");
	struct line module = words("X.GET k f"), count = words("PFCOUNT k l");
	struct hs_cache_query ask;

	(void)state;
	assert_true(init(&ask, &hget, learned));
	assert_true(init(&ask, &rank, learned));
	assert_false(init(&ask, &ranked, learned));
	assert_false(init(&ask, &random, learned));
	assert_false(init(&ask, &module, learned));
	assert_false(init(&ask, &count, learned));
	/* These rows are learned from a server whose hash fields may expire. */
	assert_true(init(&ask, &hget, fields));
	assert_true(ask.command->cacheable & HS_CACHEABLE_PARTS_EXPIRE);
	assert_true(init(&ask, &rank, fields));
	assert_false(ask.command->cacheable & HS_CACHEABLE_PARTS_EXPIRE);
	assert_true(init(&ask, &hget, learned));
	assert_false(ask.command->cacheable & HS_CACHEABLE_PARTS_EXPIRE);
	/* These rows are learned from a server on which HGET is a different command. */
	assert_false(init(&ask, &hget, writes));
	assert_false(init(&ask, &hget, many));
	hs_learned_destroy(&learned);
	hs_learned_destroy(&fields);
	hs_learned_destroy(&writes);
	hs_learned_destroy(&many);
}

static void test_signatures(void **state)
{
	static const char *const different[] = {
		"GET k",
		"GET l",
		"GET kk",
		"STRLEN k",
		"EXISTS k",
		"GETRANGE k 1 2",
		"GETRANGE k 12 ",
		"GETRANGE k  12",
		"GETRANGE k1 2 ",
		"GETRANGE k 2 1",
		"SUBSTR k 1 2",
		"BITCOUNT k 0 1",
		"BITCOUNT k 0 1 BIT",
	};
	enum { COUNT = sizeof different / sizeof *different };
	struct hs_cache_query asks[COUNT], again;
	struct line lines[COUNT], lower = words("get k");
	struct hs_shared *shared = hs_shared_create(SEED, 0);
	struct hs_bytes argv[2];

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		lines[i] = words(different[i]);
		if (i == 6) /* adds an empty last argument */
			lines[i].argv[lines[i].argc++] = HS_LIT("");
		if (i == 8)
			lines[i].argv[lines[i].argc++] = HS_LIT("");
		assert_true(init(&asks[i], &lines[i], NULL));
		assert_int_equal(asks[i].key_hash, hs_shared_hash(shared, asks[i].key));
		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(asks[i].signature, asks[j].signature);
	}
	assert_true(init(&again, &lower, NULL));
	assert_int_equal(again.signature, asks[0].signature);
	hs_cache_query_get(&again, hs_shared_hash(shared, HS_LIT("k")), HS_LIT("k"), argv);
	assert_int_equal(again.signature, asks[0].signature);
	assert_int_equal(again.key_hash, asks[0].key_hash);
	assert_int_equal(again.argc, 2);
	assert_true(hs_bytes_equal(again.argv[1], HS_LIT("k")));
	assert_true(ask_of(&again, SEED + 1, asks[0].command, 2, asks[0].argv));
	assert_int_not_equal(again.signature, asks[0].signature);
	hs_shared_destroy(&shared);
}

static struct hs_cache_entry *make_entry(const char *text, struct hs_bytes reply,
					 struct hs_cache_query *ask)
{
	static struct line line; /* static: the caller's query refers to the words */
	static struct hs_learned *learned;
	struct hs_cache_entry *entry;

	learned = learn("hgetall hget zrange xrange llen smembers lrange", "readonly", 1);
	line = words(text);
	assert_true(init(ask, &line, learned));
	entry = hs_cache_entry_create(ask, reply);
	if (entry)
		assert_true(hs_cache_entry_matches(entry, ask));
	hs_learned_destroy(&learned); /* the cache entry does not refer to the learned rows */
	return entry;
}

static void expect(const char *text, struct hs_bytes resp3, struct hs_bytes resp2, bool missing)
{
	struct hs_cache_query ask;
	struct hs_cache_entry *entry = make_entry(text, resp3, &ask);

	assert_non_null(entry);
	assert_true(hs_bytes_equal(entry->reply[1], resp3));
	assert_true(hs_bytes_equal(entry->reply[0], resp2));
	assert_int_equal(entry->reply[0].data == entry->reply[1].data,
			 hs_bytes_equal(resp2, resp3));
	assert_true(entry->reply[1].data != resp3.data);
	assert_int_equal(entry->missing, missing);
	assert_int_equal(entry->expires_us, missing ? UINT64_MAX : HS_CACHE_ENTRY_EXPIRY_UNKNOWN);
	assert_true(hs_bytes_equal(entry->key, HS_LIT("k")));
	assert_int_equal(entry->key_hash, ask.key_hash);
	assert_int_equal(entry->refs, 1);
	assert_false(entry->invalid);
	assert_true(entry->bytes >= sizeof *entry + resp3.len + entry->argc * sizeof *entry->argv +
					    (hs_bytes_equal(resp2, resp3) ? 0 : resp2.len));
	hs_cache_entry_unref(&entry);
	assert_null(entry);
}

static void test_both_dialects(void **state)
{
	(void)state;
	expect("GET k", HS_LIT("$3\r\nabc\r\n"), HS_LIT("$3\r\nabc\r\n"), false);
	expect("GET k", HS_LIT("$0\r\n\r\n"), HS_LIT("$0\r\n\r\n"), false);
	expect("GET k", HS_LIT("_\r\n"), HS_LIT("$-1\r\n"), true);
	/* The server answers 0 for a missing key and for an empty string: STRLEN cannot tell them apart, EXISTS
	 * can. */
	expect("STRLEN k", HS_LIT(":0\r\n"), HS_LIT(":0\r\n"), false);
	expect("EXISTS k", HS_LIT(":0\r\n"), HS_LIT(":0\r\n"), true);
	expect("EXISTS k", HS_LIT(":1\r\n"), HS_LIT(":1\r\n"), false);
	expect("TYPE k", HS_LIT("+none\r\n"), HS_LIT("+none\r\n"), true);
	expect("TYPE k", HS_LIT("+list\r\n"), HS_LIT("+list\r\n"), false);
	expect("HGETALL k x", HS_LIT("%0\r\n"), HS_LIT("*0\r\n"), true);
	expect("HGETALL k x", HS_LIT("%1\r\n+a\r\n+b\r\n"), HS_LIT("*2\r\n+a\r\n+b\r\n"), false);
	/* The reply does not tell whether the key is missing or only the field. */
	expect("HGET k f", HS_LIT("_\r\n"), HS_LIT("$-1\r\n"), false);
	expect("LLEN k x", HS_LIT(":0\r\n"), HS_LIT(":0\r\n"), true);
	expect("SMEMBERS k x", HS_LIT("~0\r\n"), HS_LIT("*0\r\n"), true);
	expect("LRANGE k 5 6", HS_LIT("*0\r\n"), HS_LIT("*0\r\n"), false);
	expect("XRANGE k - + COUNT 0", HS_LIT("_\r\n"), HS_LIT("*-1\r\n"), false);
	expect("ZRANGE k 0 1", HS_LIT("*1\r\n*2\r\n+m\r\n,2\r\n"),
	       HS_LIT("*2\r\n+m\r\n$1\r\n2\r\n"), false);
}

static void test_replies_that_are_not_cached(void **state)
{
	static const struct hs_bytes replies[] = {
		HS_LIT("-WRONGTYPE no\r\n"),
		HS_LIT("!5\r\nERR a\r\n"),
		HS_LIT(">1\r\n+a\r\n"),
		HS_LIT("$3\r\nab"),
		HS_LIT("_\r\n_\r\n"),
		HS_LIT("|1\r\n+a\r\n+b\r\n_\r\n"),
		HS_LIT(""),
	};
	struct hs_cache_query ask;

	(void)state;
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++)
		assert_null(make_entry("GET k", replies[i], &ask));
}

/* Entries with equal signatures are told apart by command, number of arguments and arguments. */
static void test_collisions(void **state)
{
	static const char *const different[] = {
		"GETRANGE k 1 3", "GETRANGE l 1 2", "GETRANGE k 1 22",	 "SUBSTR k 1 2",
		"BITCOUNT k 1 2", "STRLEN k",	    "BITCOUNT k 1 2 BIT"};
	struct line line = words("GETRANGE k 1 2");
	struct hs_cache_query ask;
	struct hs_cache_entry *entry;

	(void)state;
	assert_true(init(&ask, &line, NULL));
	entry = hs_cache_entry_create(&ask, HS_LIT("$1\r\na\r\n"));
	line = words("getrange k 1 2");
	assert_true(init(&ask, &line, NULL));
	assert_true(hs_cache_entry_matches(entry, &ask));
	for (size_t i = 0; i < sizeof different / sizeof *different; i++) {
		line = words(different[i]);
		assert_true(init(&ask, &line, NULL));
		ask.signature = entry->signature;
		assert_false(hs_cache_entry_matches(entry, &ask));
	}
	hs_cache_entry_unref(&entry);
}

/* ---- states ---- */

struct world {
	struct hs_rule rule;
	struct hs_tracking_session tracking_session;
	struct hs_cache_entry *entry;
	uint64_t age_us;
};

static void set_up(struct world *world)
{
	struct hs_bytes argv[2];
	struct hs_cache_query ask;

	*world = (struct world){.rule = {.stale_us = STALE}, .tracking_session = {.epoch = 3}};
	hs_cache_query_get(&ask, hs_hash(HS_LIT("k"), SEED), HS_LIT("k"), argv);
	world->entry = hs_cache_entry_create(&ask, HS_LIT("$1\r\nv\r\n"));
	world->entry->done = 5;
	world->entry->read_us = READ;
	world->entry->tracking_session = &world->tracking_session;
	world->entry->tracking_epoch = 3;
	world->entry->expires_us = UINT64_MAX;
}

/* The state of the entry at `now_us` when `begun` writes were sent and five of these writes are answered. */
static enum hs_cache_entry_state state_at_writes(struct world *world, uint32_t begun,
						 uint64_t now_us)
{
	const struct hs_version version = {.begun = begun, .done = 5};

	world->age_us = 12345678;
	return hs_cache_entry_state(world->entry, &world->rule, version, now_us, &world->age_us);
}

static enum hs_cache_entry_state state_at(struct world *world, uint64_t now_us)
{
	return state_at_writes(world, 5, now_us);
}

static void test_stale_without_a_liveness_check(void **state)
{
	struct world world;

	(void)state;
	for (int tracked_sessions = 0; tracked_sessions < 2; tracked_sessions++) {
		set_up(&world);
		if (!tracked_sessions)
			world.entry->tracking_session = NULL;
		assert_int_equal(state_at(&world, READ), HS_CACHE_ENTRY_FRESH);
		assert_int_equal(world.age_us, 0);
		assert_int_equal(state_at(&world, READ - 50),
				 HS_CACHE_ENTRY_FRESH); /* another worker's clock is behind */
		assert_int_equal(world.age_us, 0);
		assert_int_equal(state_at(&world, READ + STALE), HS_CACHE_ENTRY_FRESH);
		assert_int_equal(world.age_us, STALE);
		assert_int_equal(state_at(&world, READ + STALE + 1), HS_CACHE_ENTRY_STALE);
		assert_int_equal(world.age_us, STALE + 1);
		hs_cache_entry_unref(&world.entry);
	}
}

static void test_liveness_checks_extend_freshness(void **state)
{
	struct world world;

	(void)state;
	set_up(&world);
	world.tracking_session.caught_up_us = READ - 10; /* checked before the fetch */
	assert_int_equal(state_at(&world, READ + STALE), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(world.age_us, STALE);
	world.tracking_session.caught_up_us = READ + 9000;
	assert_int_equal(state_at(&world, READ + 9000), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(world.age_us, 0);
	assert_int_equal(state_at(&world, READ + 9000 + STALE), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(world.age_us, STALE);
	assert_int_equal(state_at(&world, READ + 9001 + STALE), HS_CACHE_ENTRY_STALE);
	assert_int_equal(world.age_us, STALE + 1);
	world.tracking_session.check_wanted = false;
	world.tracking_session.caught_up_us = UINT64_MAX; /* the engine reports every change */
	assert_int_equal(state_at(&world, READ + 1000000 * STALE), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(world.age_us, 0);
	assert_false(world.tracking_session.check_wanted);
	/* A new epoch ends the tracking session. The last check of the old epoch still counts, until it is older
	 * than `stale`. */
	world.tracking_session.epoch++;
	assert_int_equal(state_at(&world, READ + 1000000 * STALE + 5), HS_CACHE_ENTRY_STALE);
	assert_int_equal(world.age_us, 5);
	hs_cache_entry_unref(&world.entry);
}

/* The engine reports every change, but other clients may see a write in flight before its reply reaches this
 * process. */
static void test_a_write_in_flight(void **state)
{
	struct world world;
	uint64_t used = READ + 100 * STALE;

	(void)state;
	set_up(&world);
	world.tracking_session.caught_up_us = UINT64_MAX;
	assert_int_equal(state_at_writes(&world, 6, READ + STALE), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(world.age_us, STALE);
	assert_int_equal(state_at_writes(&world, 6, READ + STALE + 1), HS_CACHE_ENTRY_STALE);
	/* Here the entry is served with no write in flight; its age counts from this read on. */
	assert_int_equal(state_at(&world, used), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(world.age_us, 0);
	assert_int_equal(state_at_writes(&world, 7, used + STALE), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(world.age_us, STALE);
	assert_int_equal(state_at_writes(&world, 7, used + STALE + 1), HS_CACHE_ENTRY_STALE);
	assert_int_equal(world.age_us, STALE + 1);
	/* A liveness check of a server makes the entry fresh, however many writes are in flight. */
	world.tracking_session.caught_up_us = used + 2 * STALE;
	assert_int_equal(state_at_writes(&world, 7, used + 2 * STALE), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(world.age_us, 0);
	hs_cache_entry_unref(&world.entry);
}

static void test_a_read_requests_a_liveness_check(void **state)
{
	struct world world;

	(void)state;
	set_up(&world);
	assert_int_equal(state_at(&world, READ + STALE / 4), HS_CACHE_ENTRY_FRESH);
	assert_false(world.tracking_session.check_wanted);
	assert_int_equal(state_at(&world, READ + STALE / 4 + 1), HS_CACHE_ENTRY_FRESH);
	assert_true(world.tracking_session.check_wanted);
	world.tracking_session.check_wanted = false;
	world.tracking_session.caught_up_us = READ + 500;
	assert_int_equal(state_at(&world, READ + 500 + STALE / 4), HS_CACHE_ENTRY_FRESH);
	assert_false(world.tracking_session.check_wanted);
	/* An invalidated entry asks for no liveness check. */
	world.entry->invalid = true;
	assert_int_equal(state_at(&world, READ + 500 + STALE), HS_CACHE_ENTRY_INVALID);
	world.entry->invalid = false;
	world.tracking_session.epoch++;
	assert_int_equal(state_at(&world, READ + 500 + STALE), HS_CACHE_ENTRY_STALE);
	assert_false(world.tracking_session.check_wanted);
	hs_cache_entry_unref(&world.entry);
}

static void test_an_entry_of_another_epoch(void **state)
{
	struct world world;

	(void)state;
	set_up(&world);
	world.tracking_session.caught_up_us = READ + 5000;
	assert_int_equal(state_at(&world, READ + 5100), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(world.entry->confirmed_us, READ + 5000);
	/* The epoch has changed: liveness checks of the new epoch do not refresh the entry. The last check from
	 * the old epoch still counts. */
	world.tracking_session.epoch = 4;
	world.tracking_session.caught_up_us = READ + 6000;
	assert_int_equal(state_at(&world, READ + 6000), HS_CACHE_ENTRY_STALE);
	assert_int_equal(world.age_us, 1000);
	world.tracking_session.caught_up_us = UINT64_MAX;
	assert_int_equal(state_at(&world, READ + 6000), HS_CACHE_ENTRY_STALE);
	assert_int_equal(world.age_us, 1000);
	hs_cache_entry_unref(&world.entry);
	/* If the entry was never served after a liveness check, its age counts from the fetch. */
	set_up(&world);
	world.tracking_session.epoch = 4;
	assert_int_equal(state_at(&world, READ + 10), HS_CACHE_ENTRY_STALE);
	assert_int_equal(world.age_us, 10);
	hs_cache_entry_unref(&world.entry);
}

/* All workers read an entry's `confirmed_us`, so the cache writes this field rarely. */
static void test_liveness_checks_are_noted_rarely(void **state)
{
	struct world world;
	uint64_t noted = 0, last = 0;

	(void)state;
	set_up(&world);
	for (uint64_t i = 1; i <= 10 * STALE; i++) {
		world.tracking_session.caught_up_us = READ + i;
		assert_int_equal(state_at(&world, READ + i), HS_CACHE_ENTRY_FRESH);
		noted += world.entry->confirmed_us != last;
		last = world.entry->confirmed_us;
		assert_true(last <= READ + i);
		assert_true(i < STALE || READ + i - last <= STALE / 4);
	}
	assert_in_range(noted, 10, 100);
	hs_cache_entry_unref(&world.entry);
}

static void test_written_or_dead(void **state)
{
	struct world world;
	uint64_t age_us;

	(void)state;
	set_up(&world);
	for (uint32_t done = 4; done <= 6; done += 2)
		assert_int_equal(hs_cache_entry_state(world.entry, &world.rule,
						      (struct hs_version){done, done}, READ,
						      &age_us),
				 HS_CACHE_ENTRY_INVALID);
	assert_int_equal(state_at(&world, READ), HS_CACHE_ENTRY_FRESH);
	world.entry->invalid = true;
	assert_int_equal(state_at(&world, READ), HS_CACHE_ENTRY_INVALID);
	/* An entry that is known to have changed stays invalid in a new epoch. */
	world.tracking_session.epoch++;
	assert_int_equal(state_at(&world, READ + 5 * STALE), HS_CACHE_ENTRY_INVALID);
	hs_cache_entry_unref(&world.entry);
}

static void test_time_to_live(void **state)
{
	struct world world;

	(void)state;
	set_up(&world);
	world.tracking_session.caught_up_us = UINT64_MAX;
	world.entry->until_us = READ + 50;
	assert_int_equal(state_at(&world, READ + 49), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(state_at(&world, READ + 50), HS_CACHE_ENTRY_STALE);
	assert_int_equal(world.age_us, 0);
	hs_cache_entry_unref(&world.entry);
}

static void test_expiry(void **state)
{
	struct world world;

	(void)state;
	set_up(&world);
	world.tracking_session.caught_up_us = UINT64_MAX;
	world.entry->expires_us = READ + 70;
	assert_int_equal(state_at(&world, READ + 69), HS_CACHE_ENTRY_FRESH);
	assert_int_equal(state_at(&world, READ + 70), HS_CACHE_ENTRY_INVALID);
	/* If the key's expiry is unknown, the key may have expired since the fetch, with or without a tracking
	 * session. */
	world.entry->expires_us = HS_CACHE_ENTRY_EXPIRY_UNKNOWN;
	for (int fields = 0; fields < 2; fields++) {
		assert_int_equal(state_at(&world, READ + STALE), HS_CACHE_ENTRY_FRESH);
		assert_int_equal(world.age_us, STALE);
		assert_int_equal(state_at(&world, READ + STALE + 1), HS_CACHE_ENTRY_STALE);
		assert_int_equal(world.age_us, STALE + 1);
		/* A field of the hash may have expired, although the key's expiry is known. */
		world.entry->has_expiring_fields = true;
		world.entry->expires_us = UINT64_MAX;
	}
	hs_cache_entry_unref(&world.entry);
}

/* ---- a tool ---- */

static void read_all(FILE *file, struct hs_buf *into)
{
	size_t len;

	while ((len = fread(hs_buf_reserve(into, 65536), 1, 65536, file)) > 0)
		into->len += len;
}

static void print_names(const struct hs_learned *learned)
{
	for (unsigned id = 1; id < HS_CMD_IDS; id++)
		if (hs_command_by_id(id)->cacheable)
			puts(hs_command_by_id(id)->name);
	for (size_t i = 0; i < hs_learned_count(learned); i++)
		if (hs_learned_at(learned, i)->cacheable)
			puts(hs_learned_at(learned, i)->name);
}

/* Prints the server's reply as the cache would answer it to a RESP2 client, packed into a bulk string. Prints a
 * status if the reply is not cacheable. */
static void print_cached(const struct hs_learned *learned, const struct hs_wire_request *request,
			 struct hs_bytes resp3)
{
	const struct hs_command *parent;
	const struct hs_command *command =
		hs_learned_resolve(learned, request->argc, request->argv, &parent);
	struct hs_buf out = {0};
	struct hs_reply reply = {.out = &out, .resp = 2};
	struct hs_cache_entry *entry = NULL;
	struct hs_cache_query ask;

	if (!command || !ask_of(&ask, SEED, command, request->argc, request->argv))
		hs_reply_status(&reply, "not asked");
	else if (!(entry = hs_cache_entry_create(&ask, resp3)))
		hs_reply_status(&reply, "not cached");
	else
		hs_reply_bulk(&reply, entry->reply[0]);
	fwrite(out.data, 1, out.len, stdout);
	hs_cache_entry_unref(&entry);
	hs_buf_deinit(&out);
}

/* Reads requests, each followed by the server's RESP3 answer, from standard input. With empty input, prints the
 * names of the commands whose replies are cacheable. */
static int translate(const char *path)
{
	struct hs_buf said = {0}, input = {0};
	FILE *file = fopen(path, "rb");
	struct hs_learned *learned;
	char error[100];
	size_t state_at = 0;

	hs_check(file);
	read_all(file, &said);
	fclose(file);
	learned = hs_learned_create(hs_buf_bytes(&said), NULL, error, sizeof error);
	hs_check(learned);
	read_all(stdin, &input);
	if (input.len == 0)
		print_names(learned);
	while (state_at < input.len) {
		struct hs_wire_request request;
		int64_t asked, answered;

		hs_wire_request_init(&request);
		asked = hs_wire_request_parse(&request, input.data + state_at, input.len - state_at,
					      true);
		hs_check(asked > 0);
		state_at += (size_t)asked;
		answered = hs_parse_reply_length(input.data + state_at, input.len - state_at);
		hs_check(answered > 0);
		print_cached(learned, &request,
			     (struct hs_bytes){input.data + state_at, (size_t)answered});
		state_at += (size_t)answered;
		hs_wire_request_deinit(&request);
	}
	hs_learned_destroy(&learned);
	hs_buf_deinit(&said);
	hs_buf_deinit(&input);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return translate(argv[1]);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_which_commands_are_cacheable),
		cmocka_unit_test(test_which_learned_commands_are_cacheable),
		cmocka_unit_test(test_signatures),
		cmocka_unit_test(test_both_dialects),
		cmocka_unit_test(test_replies_that_are_not_cached),
		cmocka_unit_test(test_collisions),
		cmocka_unit_test(test_stale_without_a_liveness_check),
		cmocka_unit_test(test_liveness_checks_extend_freshness),
		cmocka_unit_test(test_a_write_in_flight),
		cmocka_unit_test(test_a_read_requests_a_liveness_check),
		cmocka_unit_test(test_an_entry_of_another_epoch),
		cmocka_unit_test(test_liveness_checks_are_noted_rarely),
		cmocka_unit_test(test_written_or_dead),
		cmocka_unit_test(test_time_to_live),
		cmocka_unit_test(test_expiry),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
