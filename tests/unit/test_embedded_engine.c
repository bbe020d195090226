/* Goal: the embedded engine with its threads, through engine.h: completions come to the worker that submitted
 * them, in order; a read after an acknowledged write sees it; no increment is lost or doubled; queued operations
 * are done at shutdown; a partition reports its state.
 *
 * Method: worker threads, each with a queue of completed operations, and a database in /tmp. */

#include "base/limits.h"
#include "base/mem.h"
#include "base/slot.h"
#include "engine/embedded/embedded.h"
#include "route/slot_map.h"
#include "tests/lib/embedded.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include <cmocka.h>

enum { WORKERS = 3, BATCHES = 150, BATCH = 16 };

struct one {
	struct hs_op op;
	struct hs_buf out;
	char words[3][32];
	struct hs_bytes argv[3];
};

struct worker {
	struct world *world;
	uint32_t id;
	uv_mutex_t mutex;
	uv_cond_t cond;
	struct hs_op *first, *last; /* completed operations; under the mutex */
	struct one ops[BATCH];
	bool wrong;
};

struct world {
	struct hs_test_embedded folder; /* provides only a folder and options */
	struct hs_engine *engine;
	struct hs_engine_host host;
	struct worker workers[WORKERS];
	/* How often each value was a reply to INCR. */
	_Atomic unsigned char seen[WORKERS * BATCHES + 1];
};

static struct hs_now now(void *context)
{
	struct timespec mono, wall;

	(void)context;
	clock_gettime(CLOCK_MONOTONIC, &mono);
	clock_gettime(CLOCK_REALTIME, &wall);
	return (struct hs_now){(uint64_t)mono.tv_sec * 1000000 + (uint64_t)mono.tv_nsec / 1000,
			       wall.tv_sec * 1000000 + wall.tv_nsec / 1000};
}

static void done(void *context, uint32_t id, struct hs_op *chain)
{
	struct worker *worker = &((struct world *)context)->workers[id];

	uv_mutex_lock(&worker->mutex);
	if (worker->first)
		worker->last->next = chain;
	else
		worker->first = chain;
	while (chain->next)
		chain = chain->next;
	worker->last = chain;
	uv_cond_signal(&worker->cond);
	uv_mutex_unlock(&worker->mutex);
}

static void open_engine(struct world *world)
{
	char error[256] = "";

	world->host = (struct hs_engine_host){
		.context = world, .done = done, .now = now, .workers = WORKERS};
	if (hs_embedded_create(&world->folder.options, &world->host, &world->engine, error,
			       sizeof error) != 0)
		fail_msg("%s", error);
}

static int setup(void **state)
{
	struct world *world = hs_mem_zalloc(sizeof *world);

	hs_test_embedded_init(&world->folder);
	/* The log is so small that the engine makes several checkpoints. */
	world->folder.options.log_bytes = 256 * HS_KIB;
	for (uint32_t id = 0; id < WORKERS; id++) {
		struct worker *worker = &world->workers[id];

		worker->world = world;
		worker->id = id;
		assert_int_equal(uv_mutex_init(&worker->mutex), 0);
		assert_int_equal(uv_cond_init(&worker->cond), 0);
	}
	open_engine(world);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;

	if (world->engine)
		world->engine->calls->destroy(&world->engine);
	for (uint32_t id = 0; id < WORKERS; id++) {
		uv_cond_destroy(&world->workers[id].cond);
		uv_mutex_destroy(&world->workers[id].mutex);
		for (int i = 0; i < BATCH; i++)
			hs_buf_deinit(&world->workers[id].ops[i].out);
	}
	hs_test_embedded_deinit(&world->folder);
	hs_mem_free(&world);
	return 0;
}

static struct one *compose(struct worker *worker, int i, const char *name, const char *key,
			   const char *value)
{
	struct one *one = &worker->ops[i];

	snprintf(one->words[0], sizeof one->words[0], "%s", name);
	snprintf(one->words[1], sizeof one->words[1], "%s", key);
	snprintf(one->words[2], sizeof one->words[2], "%s", value ? value : "");
	for (int j = 0; j < 3; j++)
		one->argv[j] = hs_bytes_of(one->words[j]);
	one->out.len = 0;
	one->op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.resp = 2,
		.worker = worker->id,
		.argv = one->argv,
		.argc = value ? 3 : 2,
		.command = hs_command_find(one->argv[0]),
		.slot = hs_slot_of(one->argv[1]),
		.received = now(NULL),
		.out = &one->out,
	};
	one->op.partition = hs_slot_partition(
		one->op.slot, worker->world->engine->calls->partitions(worker->world->engine));
	return one;
}

static bool reply_is(struct one *one, const char *text)
{
	return hs_bytes_equal(hs_buf_bytes(&one->out), hs_bytes_of(text));
}

/* Waits for the completion of `count` operations, beginning with number `first`. Returns whether they came in the
 * order of submission. */
static bool await(struct worker *worker, int first, int count)
{
	bool right = true;

	for (int i = first; i < first + count; i++) {
		struct hs_op *op;

		uv_mutex_lock(&worker->mutex);
		while (!worker->first)
			uv_cond_wait(&worker->cond, &worker->mutex);
		op = worker->first;
		worker->first = op->next;
		uv_mutex_unlock(&worker->mutex);
		right = right && op == &worker->ops[i].op;
	}
	return right;
}

/* Reads in the worker's thread. If the engine refuses this, queues the read behind the writes. */
static bool read_back(struct worker *worker, int i)
{
	struct hs_engine *engine = worker->world->engine;
	struct hs_op *op = &worker->ops[i].op;

	switch (engine->calls->submit(engine, op)) {
	case HS_SUBMIT_DONE:
		return true;
	case HS_SUBMIT_REFUSED:
		op->ordered = true;
		if (engine->calls->submit(engine, op) != HS_SUBMIT_QUEUED)
			return false;
		engine->calls->flush(engine, worker->id);
		return await(worker, i, 1);
	default:
		return false;
	}
}

/* The embedded engine sees every write, so its tracking session needs no liveness checks. */
static void cached_values_need_no_liveness_check(void **state)
{
	struct world *world = *state;
	struct worker *worker = &world->workers[0];
	struct hs_engine *engine = world->engine;
	struct one *set = compose(worker, 0, "set", "a", "1"), *get;

	set->op.track = true;
	assert_int_equal(engine->calls->submit(engine, &set->op), HS_SUBMIT_QUEUED);
	engine->calls->flush(engine, 0);
	assert_true(await(worker, 0, 1));
	assert_true(reply_is(set, "+OK\r\n"));
	engine->calls->refresh(engine, 0);
	get = compose(worker, 1, "get", "a", NULL);
	get->op.track = true;
	assert_true(read_back(worker, 1));
	assert_true(reply_is(get, "$1\r\n1\r\n"));
	assert_non_null(get->op.tracking_session);
	assert_ptr_equal(get->op.tracking_session, set->op.tracking_session);
	assert_int_equal(hs_tracking_session_epoch(get->op.tracking_session),
			 get->op.tracking_epoch);
	assert_true(hs_tracking_session_caught_up_us(get->op.tracking_session) == UINT64_MAX);
	assert_null(engine->calls->check_sessions_every);
}

/* A worker's thread. Each batch has one INCR of the shared counter, writes of the worker's own keys, and an
 * ordered read. After the replies, the worker reads its keys at once. */
static void work(void *argument)
{
	struct worker *worker = argument;
	struct hs_engine *engine = worker->world->engine;
	const struct hs_engine_calls *calls = engine->calls;

	for (int batch = 0; batch < BATCHES && !worker->wrong; batch++) {
		char key[32], value[32], expect[64];
		unsigned long count;
		bool right = true;

		snprintf(value, sizeof value, "%d", batch);
		snprintf(expect, sizeof expect, "$%zu\r\n%d\r\n", strlen(value), batch);
		calls->refresh(engine, worker->id);
		compose(worker, 0, "incr", "counter", NULL);
		for (int i = 1; i < BATCH; i++) {
			snprintf(key, sizeof key, "w%u:%d", (unsigned)worker->id, i);
			compose(worker, i, "set", key, value);
		}
		compose(worker, BATCH - 1, "get", worker->ops[1].words[1], NULL)->op.ordered = true;
		for (int i = 0; i < BATCH; i++)
			right = right &&
				calls->submit(engine, &worker->ops[i].op) == HS_SUBMIT_QUEUED;
		calls->flush(engine, worker->id);
		right = await(worker, 0, BATCH) && right;
		right = right && reply_is(&worker->ops[BATCH - 1], expect);
		count = strtoul(worker->ops[0].out.data + 1, NULL, 10);
		right = right && worker->ops[0].out.data[0] == ':' && count <= WORKERS * BATCHES &&
			atomic_fetch_add(&worker->world->seen[count], 1) == 0;

		calls->refresh(engine, worker->id);
		for (int i = 1; i < BATCH - 1 && right; i++) {
			snprintf(key, sizeof key, "w%u:%d", (unsigned)worker->id, i);
			compose(worker, i, "get", key, NULL);
			right = read_back(worker, i) && reply_is(&worker->ops[i], expect);
		}
		calls->idle(engine, worker->id);
		worker->wrong = !right;
	}
}

static void workers_are_answered_exactly(void **state)
{
	struct world *world = *state;
	uv_thread_t threads[WORKERS];
	struct hs_engine_stats stats;
	struct hs_engine_partition partition;
	uint64_t keys = 0, commits;
	char address[16];

	for (uint32_t id = 0; id < WORKERS; id++)
		assert_int_equal(uv_thread_create(&threads[id], work, &world->workers[id]), 0);
	for (uint32_t id = 0; id < WORKERS; id++) {
		uv_thread_join(&threads[id]);
		assert_false(world->workers[id].wrong);
	}
	for (unsigned i = 1; i <= WORKERS * BATCHES; i++)
		assert_int_equal(world->seen[i], 1);

	world->engine->calls->stats(world->engine, &stats);
	assert_true(stats.commit_ops >=
		    WORKERS * BATCHES * BATCH); /* also reads refused at first */
	assert_int_equal(stats.changes, WORKERS * BATCHES * (BATCH - 1));
	assert_int_equal(stats.hits, WORKERS * BATCHES * (BATCH - 1));
	assert_true(stats.commits > 0 && stats.syncs > 0 && stats.checkpoints > 0);
	assert_string_equal(stats.last_error, "");
	for (uint16_t id = 0; id < world->engine->calls->partitions(world->engine); id++) {
		world->engine->calls->partition_stats(world->engine, id, &partition);
		assert_int_equal(partition.queued, 0);
		assert_true(partition.bytes_used > 0 && partition.bytes_used < partition.bytes_max);
		assert_string_equal(partition.slots, id == 0 ? "0-8191" : "8192-16383");
		assert_false(partition.absent);
		snprintf(address, sizeof address, "store-%03u", (unsigned)id);
		assert_string_equal(partition.address, address);
		commits = 0;
		for (uint32_t step = 0; step < HS_COARSE_HISTOGRAM_BUCKETS; step++)
			commits += partition.commit_histogram[step];
		/* Every batch has keys of both partitions, so every synced group has a commit of each
		 * partition. */
		assert_int_equal(commits, stats.syncs);
		keys += partition.keys;
	}
	assert_int_equal(keys, WORKERS * (BATCH - 2) + 1);
}

static void queued_operations_are_done_at_the_end(void **state)
{
	struct world *world = *state;
	struct worker *worker = &world->workers[1];

	for (int i = 0; i < BATCH; i++) {
		char key[32];

		snprintf(key, sizeof key, "key%d", i);
		compose(worker, i, "set", key, "value");
		assert_int_equal(world->engine->calls->submit(world->engine, &worker->ops[i].op),
				 HS_SUBMIT_QUEUED);
	}
	world->engine->calls->destroy(&world->engine);
	assert_null(world->engine);
	assert_true(await(worker, 0, BATCH));

	open_engine(world);
	for (int i = 0; i < BATCH; i++) {
		char key[32];

		assert_true(reply_is(&worker->ops[i], "+OK\r\n"));
		snprintf(key, sizeof key, "key%d", i);
		compose(worker, i, "get", key, NULL);
		assert_int_equal(world->engine->calls->submit(world->engine, &worker->ops[i].op),
				 HS_SUBMIT_DONE);
		assert_true(reply_is(&worker->ops[i], "$5\r\nvalue\r\n"));
	}
}

/* The committer removes an expired key although no request comes. */
static void the_committer_sweeps_by_itself(void **state)
{
	struct world *world = *state;
	struct worker *worker = &world->workers[0];
	struct hs_engine_stats stats;

	compose(worker, 0, "set", "soon", "gone");
	compose(worker, 1, "pexpire", "soon", "20");
	for (int i = 0; i < 2; i++)
		world->engine->calls->submit(world->engine, &worker->ops[i].op);
	world->engine->calls->flush(world->engine, 0);
	assert_true(await(worker, 0, 2));
	do {
		uv_sleep(1);
		world->engine->calls->stats(world->engine, &stats);
	} while (stats.expired == 0);
	assert_int_equal(stats.expired, 1);
}

/* Replaces the log's files with a file that cannot be synced. */
static int break_log(const struct world *world)
{
	char path[64], link[512];
	int pipes[2], broken = 0;

	assert_int_equal(pipe(pipes), 0);
	for (int fd = 3; fd < 256; fd++) {
		ssize_t len;

		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
		len = readlink(path, link, sizeof link - 1);
		if (len < 0)
			continue;
		link[len] = '\0';
		if (strstr(link, world->folder.folder) && strstr(link, "/log-")) {
			assert_int_equal(dup2(pipes[1], fd), fd);
			broken++;
		}
	}
	close(pipes[0]);
	close(pipes[1]);
	return broken;
}

/* After a failure of the log, the engine refuses writes, and every partition reports the reason. */
static void a_failing_log_is_reported(void **state)
{
	struct world *world = *state;
	struct worker *worker = &world->workers[0];
	struct hs_engine_partition partition;

	signal(SIGPIPE, SIG_IGN);
	world->engine->calls->partition_stats(world->engine, 1, &partition);
	assert_int_equal(partition.state, HS_PARTITION_OK);
	assert_string_equal(partition.unavailable_reason, "");
	assert_int_equal(break_log(world), 2);
	for (int i = 0; i < 2; i++) {
		compose(worker, i, "set", "key", "value");
		world->engine->calls->submit(world->engine, &worker->ops[i].op);
		world->engine->calls->flush(world->engine, 0);
		assert_true(await(worker, i, 1));
	}
	assert_memory_equal(worker->ops[1].out.data, "-MISCONF cannot", 15);
	for (uint16_t id = 0; id < 2; id++) {
		world->engine->calls->partition_stats(world->engine, id, &partition);
		assert_int_equal(partition.state, HS_PARTITION_READONLY);
		assert_memory_equal(partition.unavailable_reason, "cannot ", 7);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(workers_are_answered_exactly),
		TEST(queued_operations_are_done_at_the_end),
		TEST(the_committer_sweeps_by_itself),
		TEST(a_failing_log_is_reported),
		TEST(cached_values_need_no_liveness_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
