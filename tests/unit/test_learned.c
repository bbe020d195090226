/* Goal: a server's reply to COMMAND becomes rows for commands that the table lacks. Malformed, odd or too large
 * replies are refused or do no harm.
 *
 * Method: tests/lib/described.h writes the reply in both dialects, as Redis 6 and 7 send it; the rows are then
 * looked up. */
#include "command/learned.h"
#include "tests/lib/described.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct hs_learned *learn_lines(const char *const *lines, size_t count, int resp, int version,
				      struct hs_learned *before)
{
	struct hs_buf reply = {0};
	struct hs_learned *learned;
	char error[256] = "";

	describe_commands(lines, count, resp, version, &reply);
	learned = hs_learned_create(hs_buf_bytes(&reply), before, error, sizeof error);
	hs_buf_deinit(&reply); /* the rows do not refer to the reply */
	assert_string_equal(error, "");
	assert_non_null(learned);
	return learned;
}

static struct hs_learned *learn(int resp, int version)
{
	return learn_lines(described_redis, described_redis_count, resp, version, NULL);
}

static const struct hs_command *find(const struct hs_learned *learned, const char *name)
{
	return hs_learned_find(learned, hs_bytes_of(name));
}

/* A request that is given as words. */
struct request {
	struct hs_bytes argv[32];
	size_t argc;
};

static struct request words(const char *text)
{
	struct request request = {.argc = 0};

	while (*text != '\0') {
		size_t len = strcspn(text, " ");
		bool empty = len == 1 && text[0] == '~';

		request.argv[request.argc++] = (struct hs_bytes){text, empty ? 0 : len};
		text += len + (text[len] == ' ');
	}
	return request;
}

static const struct hs_command *resolve(const struct hs_learned *learned, const char *text)
{
	struct request request = words(text);
	const struct hs_command *parent;

	return hs_learned_resolve(learned, request.argc, request.argv, &parent);
}

/* Returns the keys of a request with the kind of access to each, such as "a:r b:w c:rw d:". */
static const char *keys_of(const struct hs_learned *learned, const char *text)
{
	static char found[512];
	struct request request = words(text);
	const struct hs_command *row = resolve(learned, text);
	struct hs_key_walk walk;
	size_t at, len = 0;

	assert_non_null(row);
	found[0] = '\0';
	hs_keys_begin(&walk, row, request.argc, request.argv);
	while ((at = hs_keys_next(&walk)) > 0) {
		unsigned access = hs_keys_access(&walk);

		assert_true(at < request.argc);
		len += (size_t)snprintf(found + len, sizeof found - len, "%s%.*s:%s%s",
					len > 0 ? " " : "", (int)request.argv[at].len,
					request.argv[at].data, access & HS_KEY_READS ? "r" : "",
					access & HS_KEY_WRITES ? "w" : "");
	}
	assert_int_equal(hs_keys_next(&walk), 0); /* no further key */
	return found;
}

static void test_rows(void **state)
{
	(void)state;
	for (int resp = 2; resp <= 3; resp++) {
		struct hs_learned *learned = learn(resp, 7);
		const struct hs_command *row = find(learned, "hget");

		assert_null(find(learned, "get")); /* the built-in table has GET */
		assert_null(find(learned, "client"));
		assert_null(find(learned, "hge"));
		assert_null(find(learned, "hgets"));
		assert_null(find(learned, ""));
		assert_null(hs_learned_find(learned, HS_LIT("hget\0")));
		assert_ptr_equal(row, find(learned, "HGet"));
		assert_string_equal(row->name, "hget");
		assert_int_equal(row->arity, 3);
		assert_int_equal(row->flags, HS_CMD_READONLY | HS_CMD_FAST);
		assert_int_equal(row->place, HS_PLACE_PARTITION);
		assert_int_equal(row->parent, HS_CMD_ID_NONE);
		assert_string_equal(row->categories, "@read @hash @fast");
		assert_string_equal(row->group, "hash");
		assert_true(row->id >= HS_CMD_IDS && row->id < HS_CMD_IDS_ALL);
		assert_null(row->key_specs); /* NULL: the keys are a plain range */
		assert_int_equal(find(learned, "blpop")->flags,
				 HS_CMD_WRITE | HS_CMD_NOSCRIPT | HS_CMD_BLOCKING);
		/* The server's row of EVAL claims neither reads nor writes, but has keys. The learned row assumes
		 * both. */
		assert_true(find(learned, "eval")->flags & HS_CMD_WRITE);
		assert_true(find(learned, "eval")->flags &
			    HS_CMD_EFFECT_UNKNOWN);    /* EVAL may read, too */
		assert_null(find(learned, "publish")); /* the built-in table has PUBLISH */
		hs_learned_destroy(&learned);
		assert_null(learned);
	}
}

static void test_places_and_merges(void **state)
{
	static const struct {
		const char *request;
		enum hs_command_place place;
		enum hs_command_merge merge;
		int since; /* the first Redis version with the command */
	} cases[] = {
		{"publish c m", HS_PLACE_ANY, HS_MERGE_NONE, 6},
		{"spublish c m", HS_PLACE_PARTITION, HS_MERGE_NONE, 7},
		{"wait 0 0", HS_PLACE_ALL, HS_MERGE_MIN, 6},
		{"swapdb 0 1", HS_PLACE_ANY, HS_MERGE_NONE, 6},
		{"script exists a", HS_PLACE_ALL, HS_MERGE_AND, 6},
		{"SCRIPT LOAD a", HS_PLACE_ALL, HS_MERGE_ALL_SUCCEEDED, 6},
		{"script kill", HS_PLACE_ALL, HS_MERGE_ONE_SUCCEEDED, 6},
		{"script help", HS_PLACE_ANY, HS_MERGE_NONE, 6},
		{"script debug yes", HS_PLACE_REFUSED, HS_MERGE_NONE, 7},
		{"memory usage k", HS_PLACE_PARTITION, HS_MERGE_NONE, 6},
		{"memory stats", HS_PLACE_ANY, HS_MERGE_NONE, 6},
		{"script", HS_PLACE_PARENT, HS_MERGE_NONE, 7},
		{"function load x", HS_PLACE_ALL, HS_MERGE_ALL_SUCCEEDED, 7},
		/* The built-in table also has a row for this command; the server's row wins. */
		{"function flush", HS_PLACE_ALL, HS_MERGE_ALL_SUCCEEDED, 7},
		{"monitor", HS_PLACE_REFUSED, HS_MERGE_NONE, 6},
		{"subscribe c", HS_PLACE_CORE, HS_MERGE_NONE, 6},
		/* The built-in table has the next commands. */
		{"client tracking on", HS_PLACE_CORE, HS_MERGE_NONE, 6},
		{"client id", HS_PLACE_CORE, HS_MERGE_NONE, 6},
		{"get k", HS_PLACE_PARTITION, HS_MERGE_NONE, 6},
	};

	(void)state;
	for (int version = 6; version <= 7; version++) {
		struct hs_learned *learned = learn(2, version);

		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			const struct hs_command *row = resolve(learned, cases[i].request);

			if (version < cases[i].since)
				continue;
			assert_non_null(row);
			assert_int_equal(row->place, cases[i].place);
			assert_int_equal(row->merge, cases[i].merge);
			assert_int_equal(row->refused != NULL, row->place == HS_PLACE_REFUSED);
		}
		hs_learned_destroy(&learned);
	}
}

/* Checks which requests may block and so need a server connection of their own. */
static void test_which_requests_block(void **state)
{
	static const struct {
		const char *request;
		bool blocks;
	} cases[] = {
		{"blpop a 0", true},
		{"wait 1 0", true}, /* no server marks WAIT as blocking */
		{"hget a b", false},
		{"get a", false},
		{"xread streams a 0", false},
		{"xread count 1 block 0 streams a 0", true},
		{"XREAD BLOCK 0 STREAMS a 0", true},
		{"xread streams block 0", false},
		{"xread count block streams a 0", false}, /* the count is named "block" */
		{"xreadgroup group g c streams a 0", false},
		{"xreadgroup group g c block 0 streams a 0", true},
		{"xreadgroup block 0 group g c streams a 0", true},
		{"xreadgroup group block c streams a 0", false},
		{"xreadgroup group streams streams block 0 streams a 0", true},
		{"xreadgroup group g block", false},
		{"xreadgroup", false},
	};

	(void)state;
	for (int version = 6; version <= 7; version++) {
		struct hs_learned *learned = learn(3, version);

		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			struct request request = words(cases[i].request);
			const struct hs_command *row = resolve(learned, cases[i].request);

			assert_non_null(row);
			if (hs_command_blocks(row, request.argc, request.argv) != cases[i].blocks)
				fail_msg("%s", cases[i].request);
		}
		hs_learned_destroy(&learned);
	}
}

static void test_unknown_commands(void **state)
{
	struct hs_learned *learned = learn(2, 7);
	const struct hs_command *parent;
	struct request request = words("script nosuch");

	(void)state;
	assert_null(hs_learned_resolve(learned, 2, request.argv, &parent));
	assert_ptr_equal(parent, find(learned, "script"));
	request = words("client nosuch");
	assert_null(hs_learned_resolve(learned, 2, request.argv, &parent));
	assert_ptr_equal(parent, hs_command_find(HS_LIT("client")));
	request = words("nosuch load");
	assert_null(hs_learned_resolve(learned, 2, request.argv, &parent));
	assert_null(parent);
	/* Without a server there are only the rows of the built-in table. */
	assert_null(hs_learned_find(NULL, HS_LIT("hget")));
	assert_int_equal(hs_learned_count(NULL), 0);
	assert_null(hs_learned_name(NULL, HS_CMD_IDS));
	assert_ptr_equal(resolve(NULL, "get a"), hs_command_find(HS_LIT("get")));
	assert_int_equal(resolve(NULL, "function flush")->place, HS_PLACE_CORE);
	hs_learned_destroy(&learned);
}

/* Commands whose arguments do not show their effects: commands that run other commands, install code, or use keys
 * without naming them. An unknown command of the category scripting is one of them, too. */
static void test_commands_whose_effects_are_unchecked(void **state)
{
	static const char *const lines[] = {
		"eval -3 noscript,movablekeys 0 0 0 @slow,@scripting - RW,access,update:2:#0/1/1",
		"evalnew -3 noscript 0 0 0 @slow,@scripting - -",
		"script -2 - 0 0 0 @slow - -",
		" load 3 noscript 0 0 0 @slow,@scripting - -",
		" newer 3 noscript 0 0 0 @slow,@scripting - -",
		"function -2 - 0 0 0 @slow - -",
		" load -3 write,denyoom,noscript 0 0 0 @write,@slow,@scripting - -",
		" restore -3 write,denyoom,noscript 0 0 0 @write,@slow,@scripting - -",
		" list -2 noscript 0 0 0 @slow,@scripting - -",
		" newer -2 noscript 0 0 0 @slow,@scripting - -",
		"hget 3 readonly,fast 1 1 1 @read,@hash,@fast - RO,access:1:0/1/0",
		"sort -2 write,movablekeys 1 1 1 @write,@slow - RO,access:1:0/1/0;OW,update:?:?",
		"swapdb 3 write,fast 0 0 0 @keyspace,@write,@fast,@dangerous - -",
		"json.get -2 module,readonly 1 1 1 - - RO,access:1:0/1/0",
		"ft.search -3 module,readonly 0 0 0 - - -",
		"mod.movable -3 module,write,movablekeys 0 0 0 - - RW:?:?",
		"rg.trigger -2 module,readonly 1 1 1 - - RO,access:1:0/1/0",
	};
	static const struct {
		const char *request;
		bool unchecked;
	} cases[] = {
		{"eval", true},		  {"evalnew", true},	    {"script load", false},
		{"script newer", false},  {"function load", true},  {"function restore", true},
		{"function list", false}, {"function newer", true}, {"hget", false},
		{"sort", false},	  {"swapdb", false},	    {"json.get", false},
		{"ft.search", true},	  {"mod.movable", true},    {"rg.trigger", true},
	};

	(void)state;
	for (int resp = 2; resp <= 3; resp++) {
		struct hs_learned *learned =
			learn_lines(lines, sizeof lines / sizeof *lines, resp, 7, NULL);

		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
			const struct hs_command *row = resolve(learned, cases[i].request);

			assert_non_null(row);
			if (((row->flags & HS_CMD_UNCHECKED) != 0) != cases[i].unchecked)
				fail_msg("%s", cases[i].request);
		}
		hs_learned_destroy(&learned);
	}
}

static void test_keys(void **state)
{
	static const struct {
		const char *request, *keys;
		int since;
	} cases[] = {
		{"set a 1", "a:w", 6},
		{"set a 1 get", "a:rw", 6},
		{"set a get", "a:w", 6}, /* the value is the word "get" */
		{"copy a b", "a:r b:w", 6},
		{"exists a b", "a: b:", 6},
		{"hget a f", "a:r", 6},
		{"hlen a", "a:", 7},
		{"lpush a 1", "a:w", 7},
		{"lmove a b left right", "a:rw b:w", 7},
		{"blpop a b c 0", "a:rw b:rw c:rw", 6},
		{"bitop and d a b", "d:w a:r b:r", 7},
		{"bitop and d a b", "d:rw a:rw b:rw", -6}, /* Redis 6 has no kind of access */
		{"bitfield a get u8 0", "a:r", 7},
		{"bitfield a get u8 0 incrby u8 0 1", "a:rw", 7},
		{"eval s 2 a b x", "a:rw b:rw", 6},
		{"eval s 0 a", "", 6},
		{"eval s 3 a b", "", 6},
		{"eval s -1 a b", "", 6},
		{"eval s 9223372036854775807 a b", "", 6},
		{"eval s x a b", "", 6},
		/* A malformed count: the keys are those that servers find before they refuse the request. */
		{"eval s 1.5 a b", "a:rw", 6},
		{"eval s +2x a b", "a:rw b:rw", 6},
		{"eval s -1x a b", "", 6},
		{"eval s 4294967297 a b", "a:rw", 6},
		{"eval s 99999999999999999999 a b", "", 6},
		{"eval s -99999999999999999999 a b", "", 6},
		{"eval s", "", 6},
		{"blmpop 0 2 a b left", "a:rw b:rw", 7},
		{"zunionstore d 2 a b weights 1 2", "d:w a:r b:r", 6},
		{"zunionstore d 7 a b", "d:w", 6},
		{"georadius a 1 2 3 m", "a:r", 6},
		{"georadius a 1 2 3 m store b storedist c", "a:r b:w c:w", 6},
		{"georadius a 1 2 3 m count 1 store", "a:r", 6},
		{"sort a", "a:r", 6},
		{"sort a by store get store limit 0 1 STORE b", "a:r b:w", 6},
		{"sort a store b store c", "a:r c:w", 6},
		{"sort a limit store 1", "a:r", 6},
		{"sort a get store desc", "a:r", 6},
		{"sort a by store desc", "a:r", 6},
		{"sort a store", "a:r", 6},
		{"migrate h 1 a 0 10", "a:rw", 6},
		{"migrate h 1 keys 0 10 auth keys", "keys:rw", 6},
		{"migrate h 1 ~ 0 10 auth2 keys keys keys a b", "a:rw b:rw", 6},
		{"migrate h 1 ~ 0 10", ":rw", 6},
		{"migrate h 1", "", 6},
		{"xread count 1 streams a b 0 0", "a:r b:r", 6},
		{"xread streams a 0", "a:r", 6},
		{"xread count 1", "", 6},
		{"xreadgroup group streams c streams a b > >", "a:r b:r", 6},
		{"spublish c m", "c:", 7},
		{"memory usage a samples 5", "a:", 6},
		{"memory stats", "", 6},
		{"publish c m", "", 6},
	};

	(void)state;
	for (int version = 6; version <= 7; version++) {
		struct hs_learned *learned = learn(3, version);

		for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
			if (cases[i].since < 0 ? version == -cases[i].since
					       : version >= cases[i].since)
				assert_string_equal(keys_of(learned, cases[i].request),
						    cases[i].keys);
		hs_learned_destroy(&learned);
	}
}

/* The key positions are odd, as no server sends them. The walk never returns a key out of bounds. */
static void test_odd_specs(void **state)
{
	static const char *const lines[] = {
		"a -1 - 0 0 0 - - RO:-1:0/1/0",
		"b -1 - 0 0 0 - - RO:1:9/1/0",
		"c -1 - 0 0 0 - - RO:1:-9/1/0",
		"d -1 - 0 0 0 - - RO:1:-1/0/0",
		"e -1 - 0 0 0 - - RO:1:#-5/1/1",
		"f -1 - 0 0 0 - - RO:1:#0/-7/1",
		"g -1 - 0 0 0 - - RO:1:#0/1/99999999999",
		"h -1 - 0 0 0 - - RO:x/-9:0/1/0",
		"i -1 - 0 0 0 - - RO:x/0:-1/1/-3",
		"j -1 - 0 0 0 - - RO:x/9:-1/1/0",
		"k -1 - -3 9 0 - - -",
		"l -1 - 3 1 -1 - - -",
		"m -1 - 1 -9 1 - - -",
		"n 0 - 0 0 0 - - RO:x/-1:0/1/0;RO:1:#0/1048576/1048576",
	};
	char request[64];

	(void)state;
	for (int version = 6; version <= 7; version++) {
		struct hs_learned *learned =
			learn_lines(lines, sizeof lines / sizeof *lines, 2, version, NULL);

		for (int name = 'a'; name <= 'n'; name++) {
			static const char *const rests[] = {"", " 2 x y", " x x 1 2", " x"};

			for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
				snprintf(request, sizeof request, "%c%s", name, rests[i]);
				keys_of(learned, request); /* keys_of() checks the bounds */
			}
		}
		hs_learned_destroy(&learned);
	}
}

/* Names that differ only at their end are distinct, and key specs that only look like a range stay separate. */
static void test_long_names_and_two_keys(void **state)
{
	static const char *const lines[] = {
		"module.with-a-long-name1 1 - 0 0 0 - - -",
		"module.with-a-long-name2 1 - 0 0 0 - - -",
		"two -4 write 1 3 2 - - OW,update:1:0/1/0;RO,access:3:0/1/0",
		"far -2 - 0 0 0 - - RO:4294967297:0/1/0", /* the position would be 1 in 32 bits */
	};
	struct hs_learned *learned = learn_lines(lines, 4, 2, 7, NULL);

	(void)state;
	assert_string_equal(find(learned, "MODULE.with-a-long-name2")->name,
			    "module.with-a-long-name2");
	assert_null(find(learned, "module.with-a-long-name3"));
	assert_null(find(learned, "module.with-a-long-name"));
	assert_string_equal(keys_of(learned, "two a b c d"), "a:w c:r");
	assert_string_equal(keys_of(learned, "far a"), "");
	hs_learned_destroy(&learned);
}

static void test_asking_again(void **state)
{
	static const char *const later[] = {
		"brandnew 1 - 0 0 0 - - -",
		"hget -3 readonly 1 1 1 @read - RO,access:1:0/1/0", /* the arity has changed */
		("lmove 5 write,denyoom 1 2 1 @write,@list,@slow - "
		 "RW,access,delete:1:0/1/0;RW,insert:2:0/1/0"),
	};
	struct hs_learned *first = learn(2, 7), *second, *third;
	const struct hs_command *old = find(first, "hget"), *now;

	(void)state;
	second = learn_lines(later, 3, 2, 7, first);
	now = find(second, "hget");
	assert_int_equal(now->id, old->id);
	assert_int_equal(now->arity, -3);
	assert_ptr_equal(find(second, "lmove"), find(first, "lmove"));
	assert_null(find(second, "lpush"));
	assert_string_equal(hs_learned_name(second, find(first, "lpush")->id), "lpush");
	assert_int_equal(find(second, "brandnew")->id - HS_CMD_IDS, hs_learned_count(first));
	assert_null(hs_learned_name(first, find(second, "brandnew")->id));
	third = learn_lines(described_redis, described_redis_count, 2, 7, second);
	assert_ptr_equal(find(third, "hget"), old); /* an unchanged row is shared */
	hs_learned_destroy(&first);
	hs_learned_destroy(&second);
	/* A row lives as long as any set that refers to it. */
	assert_int_equal(old->arity, 3);
	hs_learned_destroy(&third);
}

/* The server has more commands than there are identifiers. The other commands share the last identifier and are
 * still found. */
static void test_more_than_identifiers(void **state)
{
	enum { MANY = HS_LEARNED_MAX + 200 };
	static char text[MANY][64];
	const char *lines[MANY];
	struct hs_learned *learned;
	char name[32];

	(void)state;
	for (int i = 0; i < MANY; i++) {
		/* The last six are two containers with two subcommands each. */
		bool sub = i >= MANY - 6 && i % 3 != 2;

		snprintf(text[i], sizeof text[i], "%scmd%d -2 - 0 0 0 - - -", sub ? " " : "",
			 sub ? i % 3 : i);
		lines[i] = text[i];
	}
	learned = learn_lines(lines, MANY, 2, 7, NULL);
	assert_int_equal(hs_learned_count(learned), MANY);
	for (int i = 0; i < MANY - 6; i++) {
		snprintf(name, sizeof name, "cmd%d", i);
		assert_string_equal(find(learned, name)->name, name);
		assert_int_equal(find(learned, name)->id,
				 HS_CMD_IDS + (i < HS_LEARNED_MAX - 1 ? i : HS_LEARNED_MAX - 1));
	}
	assert_string_equal(hs_learned_name(learned, HS_CMD_IDS_ALL - 1), "other");
	for (int i = 0; i < MANY; i++) {
		const struct hs_command *row = hs_learned_at(learned, (size_t)i);
		struct request request;
		char full[64];

		snprintf(full, sizeof full, "%s", row->name);
		for (char *c = full; *c; c++)
			*c = *c == '|' ? ' ' : *c;
		assert_ptr_equal(resolve(learned, full), row);
		request = words(full);
		assert_true(request.argc == 1 || row->parent == HS_CMD_IDS_ALL - 1);
	}
	hs_learned_destroy(&learned);
}

/* Learns `count` commands whose names are numbers. `step` 0: all have the same name. */
static struct hs_learned *learn_numbers(int first, int count, int step, struct hs_learned *before)
{
	struct hs_buf reply = {0};
	struct hs_learned *learned;
	char error[128] = "";

	hs_buf_printf(&reply, "*%d\r\n", count);
	for (int i = 0; i < count; i++)
		hs_buf_printf(&reply, "*6\r\n+c%d\r\n:1\r\n*0\r\n:0\r\n:0\r\n:0\r\n",
			      first + i * step);
	learned = hs_learned_create(hs_buf_bytes(&reply), before, error, sizeof error);
	assert_string_equal(error, learned ? ""
					   : "too many different commands learned from servers "
					     "since the start: at most 16384");
	hs_buf_deinit(&reply);
	return learned;
}

static void test_too_many_rows(void **state)
{
	enum { HALF = HS_LEARNED_ROWS_MAX / 2 };
	struct hs_learned *first, *second;

	(void)state;
	assert_null(learn_numbers(0, HS_LEARNED_ROWS_MAX + 1, 1, NULL));
	assert_null(learn_numbers(0, HS_LEARNED_ROWS_MAX + 1, 0, NULL));
	/* The limit counts the rows of all sets together, also of sets that were freed. */
	first = learn_numbers(0, HALF, 1, NULL);
	second = learn_numbers(HALF, HALF, 1, first);
	assert_non_null(second);
	assert_null(learn_numbers(2 * HALF, 1, 1, second));
	hs_learned_destroy(&first);
	assert_null(learn_numbers(2 * HALF, 1, 1, second));
	/* These rows are known already, so they need no further room. */
	first = learn_numbers(0, HALF, 1, second);
	assert_non_null(first);
	hs_learned_destroy(&first);
	hs_learned_destroy(&second);
}

static void test_malformed_tables(void **state)
{
	static const struct {
		const char *reply, *error;
	} cases[] = {
		{"", "the server's reply to COMMAND is invalid"},
		{"*1\r\n", "the server's reply to COMMAND is invalid"},
		{"*0\r\n+x", "the server's reply to COMMAND is invalid"},
		{"?\r\n", "the server's reply to COMMAND is invalid"},
		{"-NOPERM no\r\n", "the server refuses COMMAND: NOPERM no"},
		{"+OK\r\n", "the server's reply to COMMAND lists no commands"},
		{":1\r\n", "the server's reply to COMMAND lists no commands"},
		{"*0\r\n", "the server's reply to COMMAND lists no commands"},
		{"*-1\r\n", "the server's reply to COMMAND lists no commands"},
		{"*1\r\n*1\r\n$1\r\na\r\n", "the server's reply to COMMAND lists no commands"},
		{"*1\r\n*6\r\n*0\r\n:1\r\n*0\r\n:0\r\n:0\r\n:0\r\n",
		 "the server's reply to COMMAND lists no commands"},
		{"*1\r\n*6\r\n$3\r\na|b\r\n:1\r\n*0\r\n:0\r\n:0\r\n:0\r\n",
		 "the server's reply to COMMAND lists no commands"},
		{"*1\r\n*6\r\n$3\r\na b\r\n:1\r\n*0\r\n:0\r\n:0\r\n:0\r\n",
		 "the server's reply to COMMAND lists no commands"},
	};
	struct hs_learned *before = learn(2, 7);

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char error[128] = "";

		assert_null(hs_learned_create(hs_bytes_of(cases[i].reply), before, error,
					      sizeof error));
		assert_string_equal(error, cases[i].error);
	}
	hs_learned_destroy(&before);
}

/* Every field of an entry may have an unexpected type. */
static void test_odd_entries(void **state)
{
	static const char *const odd[] = {"*0\r\n", "$-1\r\n", ":5\r\n", "%1\r\n+a\r\n*1\r\n_\r\n",
					  "*2\r\n*1\r\n:1\r\n+readonly\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
		struct hs_buf reply = {0};
		struct hs_learned *learned;
		char error[128];

		hs_buf_printf(&reply, "*1\r\n*12\r\n$3\r\nodd\r\n");
		for (int field = 1; field < 12; field++)
			hs_buf_printf(&reply, "%s", odd[i]);
		learned = hs_learned_create(hs_buf_bytes(&reply), NULL, error, sizeof error);
		assert_non_null(learned);
		assert_non_null(find(learned, "ODD"));
		hs_learned_destroy(&learned);
		hs_buf_deinit(&reply);
	}
}

/* --- for tests/integration/test_learned_commands.py -----------------------------------------------------
 */

/* Answers the command COMMAND from a real server's reply to COMMAND, which is in the file `path`. Reads the
 * requests from standard input: one per line, the dialect and the words separated by tabs. Writes the answers to
 * standard output. */
static int answer_questions(const char *path)
{
	static char reply_bytes[4 << 20], line[64 << 10];
	struct hs_learned *learned;
	char error[256];
	FILE *file = fopen(path, "rb");
	size_t len = file ? fread(reply_bytes, 1, sizeof reply_bytes, file) : 0;

	learned = hs_learned_create((struct hs_bytes){reply_bytes, len}, NULL, error, sizeof error);
	if (file)
		fclose(file);
	if (!learned) {
		fprintf(stderr, "%s\n", error);
		return 1;
	}
	while (fgets(line, sizeof line, stdin)) {
		struct hs_buf out = {0};
		struct hs_reply reply = {.out = &out, .resp = atoi(line)};
		struct hs_bytes argv[64];
		size_t argc = 0;
		const struct hs_command *parent;

		line[strcspn(line, "\n")] = '\0';
		for (char *word = strchr(line, '\t'); word && argc < 64; argc++) {
			argv[argc] = (struct hs_bytes){word + 1, strcspn(word + 1, "\t")};
			word = strchr(word + 1, '\t');
		}
		hs_command_describe(hs_learned_resolve(learned, argc, argv, &parent), learned,
				    &reply, argc, argv);
		fwrite(out.data, 1, out.len, stdout);
		hs_buf_deinit(&out);
	}
	hs_learned_destroy(&learned);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2)
		return answer_questions(argv[1]);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_places_and_merges),
		cmocka_unit_test(test_which_requests_block),
		cmocka_unit_test(test_unknown_commands),
		cmocka_unit_test(test_commands_whose_effects_are_unchecked),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_odd_specs),
		cmocka_unit_test(test_long_names_and_two_keys),
		cmocka_unit_test(test_asking_again),
		cmocka_unit_test(test_more_than_identifiers),
		cmocka_unit_test(test_too_many_rows),
		cmocka_unit_test(test_malformed_tables),
		cmocka_unit_test(test_odd_entries),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
