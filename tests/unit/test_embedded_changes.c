/* Goal: while a client tracks keys, the embedded engine reports every key that a group changed, by whatever
 * command, in a transaction or by expiry, with the client that changed it, before the engine answers the change.
 * While no client tracks keys, the engine collects no changes.
 *
 * Method: random groups on a small database, with every key compared before and after. The list of commands must
 * have every command that writes. Then the whole engine with its threads, and a host that records the order of
 * events. */
#include "base/limits.h"
#include "base/mem.h"
#include "base/prng.h"
#include "base/slot.h"
#include "engine/embedded/embedded.h"
#include "route/slot_map.h"
#include "tests/lib/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NONE ((struct hs_bytes){NULL, 0})

#define GUARD_NS 120000000000u /* a test that hangs fails after two minutes */

enum { KEYS = 4, STEPS = 4000, CLIENT = 77 };

/* In every command, %1$s and %2$s stand for two keys of one slot. */
static const char *const commands[] = {
	"append %1$s x",
	"decr %1$s",
	"decrby %1$s 2",
	"getdel %1$s",
	"getex %1$s px 5000",
	"getset %1$s 5",
	"incr %1$s",
	"incrby %1$s 3",
	"incrbyfloat %1$s 1.5",
	"mset %1$s 1 %2$s 2",
	"msetnx %1$s 7 %2$s 8",
	"psetex %1$s 900 v",
	"set %1$s 10",
	"set %1$s 11 px 700",
	"setex %1$s 9 v",
	"setnx %1$s 6",
	"setrange %1$s 2 y",
	"setbit %1$s 9 1",
	"copy %1$s %2$s",
	"del %1$s %2$s",
	"expire %1$s 3",
	"expireat %1$s 1",
	"persist %1$s",
	"pexpire %1$s 400",
	"pexpireat %1$s 1",
	"rename %1$s %2$s",
	"renamenx %1$s %2$s",
	"unlink %1$s",
	"copy %1$s %2$s replace",
	"getex %1$s persist",
	"flushall",
	"flushdb",
};

static int setup(void **state)
{
	struct hs_test_embedded *test = hs_mem_alloc(sizeof *test);

	hs_test_embedded_init(test);
	test->options.sync = false;
	assert_int_equal(hs_test_embedded_open(test), 0);
	*state = test;
	return 0;
}

static int teardown(void **state)
{
	struct hs_test_embedded *test = *state;

	hs_test_embedded_kill(test);
	hs_test_embedded_deinit(test);
	hs_mem_free(&test);
	return 0;
}

static void track(struct hs_test_embedded *test, enum hs_op_kind kind)
{
	size_t number = hs_test_embedded_add(test, "get any", NONE);

	test->ops[number].op.kind = kind;
	hs_test_embedded_run(test);
	assert_string_equal(hs_test_embedded_reply(test, number), "+OK\r\n");
}

/* The state of a key, as commands show it, as text. */
struct sight {
	char text[128];
};

static struct sight look(struct hs_test_embedded *test, const char *key)
{
	struct sight sight;
	char words[64];
	int len;

	snprintf(words, sizeof words, "get %s", key);
	len = snprintf(sight.text, sizeof sight.text, "%s", hs_test_embedded_read(test, words));
	snprintf(words, sizeof words, "pexpiretime %s", key);
	snprintf(sight.text + len, sizeof sight.text - (size_t)len, "%s",
		 hs_test_embedded_read(test, words));
	return sight;
}

static bool named(const struct hs_changed *changed, const char *key)
{
	for (uint32_t i = 0; i < changed->count; i++) {
		if (hs_bytes_equal(hs_changed_name(changed, i), hs_bytes_of(key)))
			return changed->keys[i].by == CLIENT;
	}
	return changed->all;
}

static void every_command_that_writes_is_tried(void **state)
{
	(void)state;
	for (int id = HS_CMD_ID_NONE + 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *command = hs_command_by_id((enum hs_command_id)id);
		bool found = !(command->flags & HS_CMD_WRITE) || command->place == HS_PLACE_CORE;

		for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
			struct hs_bytes name = {commands[i], strcspn(commands[i], " ")};

			found = found || hs_bytes_is_word(name, command->name);
		}
		if (!found)
			fail_msg("%s writes, and is not tried", command->name);
	}
}

static void compose(struct hs_prng *prng, const char *const *names, char *words, size_t size)
{
	const char *format = commands[hs_prng_below(prng, sizeof commands / sizeof *commands)];
	uint64_t a = hs_prng_below(prng, KEYS), b = hs_prng_below(prng, KEYS);

	if (format[0] == 'f' && hs_prng_below(prng, 8) > 0)
		format = "set %1$s 1";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(words, size, format, names[a], names[b]);
#pragma GCC diagnostic pop
}

static void no_change_is_missed(void **state)
{
	static const char *const names[KEYS] = {"{k}a", "{k}b", "{k}c", "{k}d"};
	struct hs_test_embedded *test = *state;
	struct hs_changed *changed = &test->group.changed;
	uint64_t told = 0;
	struct hs_prng prng;

	hs_prng_init(&prng, 1);
	track(test, HS_OP_TRACK);
	for (int step = 0; step < STEPS; step++) {
		struct sight before[KEYS];
		uint64_t count = 1 + hs_prng_below(&prng, 3);
		char words[64];

		for (int i = 0; i < KEYS; i++)
			before[i] = look(test, names[i]);
		hs_changed_clear(changed);
		for (uint64_t i = 0; i < count; i++) {
			compose(&prng, names, words, sizeof words);
			test->ops[hs_test_embedded_add(test, words, NONE)].op.client = CLIENT;
		}
		hs_test_embedded_run(test);
		for (int i = 0; i < KEYS; i++) {
			struct sight after = look(test, names[i]);

			if (strcmp(before[i].text, after.text) == 0)
				continue;
			told++;
			if (!named(changed, names[i]))
				fail_msg(
					"step %d: %s changed from %s to %s by a group that ends in "
					"\"%s\", and is not named",
					step, names[i], before[i].text, after.text, words);
		}
	}
	assert_true(told > STEPS / 2);
	track(test, HS_OP_UNTRACK);
	hs_changed_clear(changed);
	hs_test_embedded_do(test, "set {k}a other");
	assert_true(hs_changed_empty(changed));
}

static void expired_keys_are_named(void **state)
{
	struct hs_test_embedded *test = *state;
	struct hs_changed *changed = &test->group.changed;

	track(test, HS_OP_TRACK);
	hs_test_embedded_do(test, "psetex soon 10 v");
	hs_test_embedded_do(test, "psetex later 100000 v");
	hs_changed_clear(changed);
	test->now.wall_us += 50000;
	test->now.mono_us += 50000;
	assert_false(hs_group_sweep(&test->group, 10));
	hs_group_finish(&test->group, false);
	assert_int_equal(changed->count, 1);
	assert_true(hs_bytes_equal(hs_changed_name(changed, 0), HS_LIT("soon")));
	assert_int_equal(changed->keys[0].by, 0);
}

/* Two workers track keys: the engine collects changes until both have stopped. */
static void workers_are_counted(void **state)
{
	struct hs_test_embedded *test = *state;
	struct hs_changed *changed = &test->group.changed;

	hs_test_embedded_do(test, "set a 1");
	assert_true(hs_changed_empty(changed));
	track(test, HS_OP_TRACK);
	track(test, HS_OP_TRACK);
	track(test, HS_OP_UNTRACK);
	hs_test_embedded_do(test, "set a 2");
	assert_int_equal(changed->count, 1);
	hs_changed_clear(changed);
	track(test, HS_OP_UNTRACK);
	hs_test_embedded_do(test, "set a 3");
	assert_true(hs_changed_empty(changed));
}

/* --- the whole engine --- */

struct world {
	struct hs_test_embedded folder; /* provides only a folder and options */
	struct hs_engine *engine;
	uv_mutex_t mutex;
	uv_cond_t cond;
	struct hs_bytes wanted; /* the key that the test changes */
	bool told, told_first, told_all;
	uint64_t by;
	int done;
};

static struct hs_now now(void *context)
{
	uv_timeval64_t wall;

	(void)context;
	uv_gettimeofday(&wall);
	return (struct hs_now){uv_hrtime() / 1000, wall.tv_sec * 1000000 + wall.tv_usec};
}

static void on_done(void *context, uint32_t worker, struct hs_op *chain)
{
	struct world *world = context;

	(void)worker;
	uv_mutex_lock(&world->mutex);
	world->told_first = world->told;
	for (; chain; chain = chain->next)
		world->done++;
	uv_cond_signal(&world->cond);
	uv_mutex_unlock(&world->mutex);
}

static void on_event(void *context, struct hs_event *event)
{
	struct world *world = context;

	uv_mutex_lock(&world->mutex);
	world->told_all = world->told_all || event->kind == HS_EVENT_CHANGED_ALL;
	for (uint32_t i = 0; i < event->keys_count; i++) {
		if (!hs_bytes_equal(event->keys[i], world->wanted))
			continue;
		world->told = true;
		world->by = event->by[i];
	}
	uv_cond_signal(&world->cond);
	uv_mutex_unlock(&world->mutex);
	hs_event_unref(&event);
}

static void run(struct world *world, enum hs_op_kind kind, size_t argc, const struct hs_bytes *argv)
{
	struct hs_buf out = {0};
	struct hs_op op = {
		.kind = kind,
		.resp = 2,
		.argv = argv,
		.argc = argc,
		.command = hs_command_find(argv[0]),
		.received = now(NULL),
		.client = CLIENT,
		.out = &out,
	};

	op.slot = argc > 1 ? hs_slot_of(argv[1]) : 0;
	op.partition = hs_slot_partition(op.slot, world->engine->calls->partitions(world->engine));
	world->done = 0;
	world->told = world->told_first = world->told_all = false;
	assert_int_equal(world->engine->calls->submit(world->engine, &op), HS_SUBMIT_QUEUED);
	world->engine->calls->flush(world->engine, 0);
	uv_mutex_lock(&world->mutex);
	while (world->done == 0)
		uv_cond_wait(&world->cond, &world->mutex);
	uv_mutex_unlock(&world->mutex);
	hs_buf_deinit(&out);
}

static void changes_are_published_before_the_reply(void **state)
{
	struct world world = {.wanted = HS_LIT("k")};
	struct hs_engine_host host = {
		.context = &world, .done = on_done, .event = on_event, .now = now, .workers = 1};
	const struct hs_bytes set[] = {HS_LIT("set"), HS_LIT("k"), HS_LIT("v")};
	const struct hs_bytes flush[] = {HS_LIT("flushall")};
	const struct hs_bytes expire[] = {HS_LIT("pexpire"), HS_LIT("k"), HS_LIT("20")};
	char error[256];

	(void)state;
	hs_test_embedded_init(&world.folder);
	assert_int_equal(uv_mutex_init(&world.mutex), 0);
	assert_int_equal(uv_cond_init(&world.cond), 0);
	assert_int_equal(hs_embedded_create(&world.folder.options, &host, &world.engine, error,
					    sizeof error),
			 0);
	run(&world, HS_OP_COMMAND, 3, set);
	assert_false(world.told);
	run(&world, HS_OP_TRACK, 3, set);
	for (int i = 0; i < 200; i++) {
		run(&world, HS_OP_COMMAND, 3, set);
		assert_true(world.told_first);
		assert_int_equal(world.by, CLIENT);
	}
	run(&world, HS_OP_COMMAND, 1, flush);
	assert_true(world.told_all);
	run(&world, HS_OP_COMMAND, 3, set);
	run(&world, HS_OP_COMMAND, 3, expire);
	uv_mutex_lock(&world.mutex);
	/* The engine reports the key once more when it expires. This report may have come already. */
	while (world.by != 0)
		assert_int_equal(uv_cond_timedwait(&world.cond, &world.mutex, GUARD_NS), 0);
	uv_mutex_unlock(&world.mutex);
	run(&world, HS_OP_UNTRACK, 3, set);
	run(&world, HS_OP_COMMAND, 3, set);
	assert_false(world.told);
	world.engine->calls->destroy(&world.engine);
	uv_cond_destroy(&world.cond);
	uv_mutex_destroy(&world.mutex);
	hs_test_embedded_deinit(&world.folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_that_writes_is_tried),
		cmocka_unit_test_setup_teardown(no_change_is_missed, setup, teardown),
		cmocka_unit_test_setup_teardown(expired_keys_are_named, setup, teardown),
		cmocka_unit_test_setup_teardown(workers_are_counted, setup, teardown),
		cmocka_unit_test(changes_are_published_before_the_reply),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
