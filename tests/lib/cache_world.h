/* A fixture for unit tests of the cache (absorb/cache): two cores of one process, whose engine is played by the test.
 *
 * Clients A to D are on worker 0, E to H on worker 1. The engine records each operation, with a ~ before tracked ones
 * and a @ before those that a replica may answer, and answers one when the test says so. Each worker has a tracking
 * session of its own. An event from one worker to all others is queued until the test calls deliver_events. One
 * thread, simulated clock; limits: CLIENTS, OPS_MAX, EVENTS_MAX. close_world asserts that nothing is in flight. */
#ifndef HS_TESTS_CACHE_WORLD_H
#define HS_TESTS_CACHE_WORLD_H

#include "absorb/cache/stage.h"
#include "stages/stages.h"

#include "tests/lib/described.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WORKERS = 2, CLIENTS = 8, OPS_MAX = 128, EVENTS_MAX = 64, MS = 1000 };

struct world;

struct station {
	struct world *world;
	struct hs_core *core;
	struct hs_heat *heat;
	struct hs_tracking_session tracking_session;
	bool no_tracking_session; /* the engine has no tracking connection */
};

struct world {
	struct hs_core_calls calls;
	struct hs_log log;
	_Atomic uint64_t slowlog_ids;
	struct hs_core_options options;
	struct hs_learned *learned;
	struct hs_shared *shared;
	struct station station[WORKERS];
	struct hs_session *client[CLIENTS];
	struct hs_now now;
	struct hs_op *ops[OPS_MAX]; /* in flight, oldest first */
	size_t count, sent_count;   /* how many of them `sent` has seen */
	struct hs_event *event[EVENTS_MAX];
	size_t events_count;
	int64_t ttl_ms; /* TTL reported with tracked reads, as in struct hs_op */
	struct hs_heat *heats[WORKERS];
	bool at_once;	       /* reads are answered inside submit, with `value` */
	const char *value;     /* a reply in RESP */
	uint64_t caught_up_us; /* time to which the replicas have all writes; 0: no replicas */
};

static inline struct hs_now later(struct world *world, uint64_t us)
{
	world->now.mono_us += us;
	world->now.wall_us += (int64_t)us;
	return world->now;
}

/* ---- the engine ---- */

static inline void track_in(struct world *world, struct hs_op *op)
{
	struct station *station = &world->station[op->worker];

	if (!op->track || station->no_tracking_session)
		return;
	op->ttl_ms = world->ttl_ms;
	op->tracking_session = &station->tracking_session;
	op->tracking_epoch = hs_tracking_session_epoch(&station->tracking_session);
}

static inline enum hs_submit submit(void *context, struct hs_op *op)
{
	struct station *station = context;
	struct world *world = station->world;

	if (op->kind == HS_OP_PEER) {
		hs_core_peer(station->core, world->now, op);
		return HS_SUBMIT_DONE;
	}
	if (world->at_once && !op->ordered && (op->command->flags & HS_CMD_READONLY)) {
		hs_buf_append(op->out, world->value, strlen(world->value));
		track_in(world, op);
		return HS_SUBMIT_DONE;
	}
	if (op->replica_since_us > 0 && world->caught_up_us >= op->replica_since_us)
		op->replica_caught_up_us = world->caught_up_us;
	assert_true(world->count < OPS_MAX);
	world->ops[world->count++] = op;
	return HS_SUBMIT_QUEUED;
}

static inline void tell(void *context, struct hs_event *event)
{
	struct station *station = context;
	struct world *world = station->world;

	assert_true(world->events_count < EVENTS_MAX);
	world->event[world->events_count++] = event;
}

/* Delivers the queued events to all workers. */
static inline void deliver_events(struct world *world)
{
	for (size_t i = 0; i < world->events_count; i++) {
		for (size_t j = 0; j < WORKERS; j++)
			hs_core_event(world->station[j].core, later(world, 1), world->event[i]);
		hs_event_unref(&world->event[i]);
	}
	world->events_count = 0;
}

static inline uint64_t mono_us(void *context)
{
	struct station *station = context;

	return station->world->now.mono_us;
}

static inline void describe(const struct hs_op *op, char *text, size_t size)
{
	const char *mark = op->track ? "~" : op->replica_since_us > 0 ? "@" : "";
	size_t len = (size_t)snprintf(text, size, "%s", mark);

	for (size_t i = 0; i < op->argc && len < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%s%.*s", i > 0 ? " " : "",
					(int)op->argv[i].len, op->argv[i].data);
}

/* Asserts the operations given to the engine since the last call, in order. */
#define sent(world, text) assert_string_equal(take_sent(world), text)

static inline const char *take_sent(struct world *world)
{
	static char text[4096];
	size_t len = 0;

	text[0] = '\0';
	for (; world->sent_count < world->count; world->sent_count++) {
		if (len > 0)
			len += (size_t)snprintf(text + len, sizeof text - len, " | ");
		describe(world->ops[world->sent_count], text + len, sizeof text - len);
		len += strlen(text + len);
	}
	return text;
}

/* Answers the oldest operation in flight with this beginning. Replies alternate between the two forms that
 * engines use: in op->answer, as the redis engine, and appended to op->out, as the embedded engine. */
static inline void reply(struct world *world, const char *begin, const char *answer)
{
	static unsigned turn;
	char text[1024];

	for (size_t i = 0; i < world->sent_count; i++) {
		struct hs_op *op = world->ops[i];

		describe(op, text, sizeof text);
		if (strncmp(text, begin, strlen(begin)) != 0)
			continue;
		memmove(&world->ops[i], &world->ops[i + 1],
			(world->count - i - 1) * sizeof(struct hs_op *));
		world->count--;
		world->sent_count--;
		track_in(world, op);
		if (turn++ % 2 == 0)
			op->answer = (struct hs_bytes){answer, strlen(answer)};
		else
			hs_buf_append(op->out, answer, strlen(answer));
		hs_core_complete(world->station[op->worker].core, later(world, 1), op);
		return;
	}
	fail_msg("no operation in flight begins with %s", begin);
}

/* The worker's tracking session has passed a liveness check at the present time. */
static inline void catch_up(struct world *world, int worker)
{
	atomic_store(&world->station[worker].tracking_session.caught_up_us, world->now.mono_us);
}

static inline void changed(struct world *world, int worker, const char *key)
{
	struct hs_bytes bytes = {key, key ? strlen(key) : 0};
	struct station *station = &world->station[worker];

	hs_core_changed(station->core, later(world, 1), &station->tracking_session,
			key ? &bytes : NULL);
}

static inline void lose_tracking_session(struct world *world, int worker)
{
	atomic_fetch_add(&world->station[worker].tracking_session.epoch, 1);
}

/* ---- clients ---- */

static inline struct station *station_of(struct world *world, char who)
{
	return &world->station[(who - 'A') / (CLIENTS / WORKERS)];
}

static inline void say(struct world *world, char who, const char *words)
{
	struct hs_buf bytes = {0};

	hs_buf_printf(&bytes, "%s\r\n", words);
	hs_core_receive(station_of(world, who)->core, world->client[who - 'A'], later(world, 1),
			bytes.data, bytes.len);
	hs_buf_deinit(&bytes);
}

static inline void end_round(struct world *world)
{
	for (size_t i = 0; i < WORKERS; i++)
		hs_core_flush(world->station[i].core, later(world, 1));
}

static inline void tick(struct world *world, uint64_t us)
{
	later(world, us);
	for (size_t i = 0; i < WORKERS; i++)
		hs_core_tick(world->station[i].core, world->now);
}

#define received(world, who, text) assert_string_equal(take_received(world, who), text)

static inline const char *take_received(struct world *world, char who)
{
	static char text[8192];
	struct hs_buf *out = hs_session_out(world->client[who - 'A']);

	assert_true(out->len < sizeof text);
	memcpy(text, out->len > 0 ? out->data : "", out->len);
	text[out->len] = '\0';
	out->len = 0;
	return text;
}

static inline void leave(struct world *world, char who)
{
	hs_core_disconnect(station_of(world, who)->core, world->client[who - 'A']);
	world->client[who - 'A'] = NULL;
}

static inline uint64_t counted(const struct hs_counter *counter)
{
	return hs_counter_get(counter);
}

/* A counter of the first rule, summed over both workers. */
#define rule_count(world, field)                                                                   \
	(counted(&hs_cache_rule_stats((world)->station[0].core, 0)->field) +                       \
	 counted(&hs_cache_rule_stats((world)->station[1].core, 0)->field))

/* ---- the world ---- */

static inline const struct hs_rules *make_rules(const char *text)
{
	struct hs_rules *rules = hs_rules_create(), *with;
	struct hs_bytes words[32];
	char copy[512], error[256], *rest = copy, *word;
	size_t count = 0;

	snprintf(copy, sizeof copy, "%s", text);
	while ((word = strsep(&rest, " ")))
		words[count++] = (struct hs_bytes){word, strlen(word)};
	if (hs_rules_with(rules, count, words, &with, error, sizeof error) != 0)
		fail_msg("%s", error);
	hs_rules_unref((const struct hs_rules **)&rules);
	return with;
}

/* Configures both workers. */
static inline void set_rules(struct world *world, const char *rule, enum hs_mitigate mitigate)
{
	hs_rules_unref(&world->options.rules);
	world->options.rules = rule ? make_rules(rule) : NULL;
	world->options.mitigate = mitigate;
	for (size_t i = 0; i < WORKERS; i++)
		hs_core_configure(world->station[i].core, &world->options);
}

/* `slots`: the slot map; NULL: even ranges that never change. */
static inline void open_world_on(struct world *world, const char *rule,
				 const struct hs_slot_map *slots)
{
	const struct hs_heat_options heat = {.seed = 1, .partitions = 8};
	struct hs_buf reply = {0};
	char error[128];

	*world = (struct world){.now = {.mono_us = 1000000, .wall_us = 1700000000000000},
				.ttl_ms = -1};
	world->calls =
		(struct hs_core_calls){.submit = submit, .broadcast = tell, .mono_us = mono_us};
	world->shared = hs_shared_create(1, 1 << 20);
	hs_shared_use(world->shared, true);
	world->options = (struct hs_core_options){
		.output_bytes_max = 1 << 20,
		.hot = {.share = 0.1, .share_exit = 0.05, .requests = 8, .cool_down_us = 1000000},
		.slowlog_us = -1,
		.fold = true,
		.fold_waiters_max = 16,
		.cache_bytes = 1 << 20,
		.cache_entry_bytes = 1 << 10};
	world->options.rules = make_rules(rule);
	describe_commands(described_redis, described_redis_count, 2, 7, &reply);
	world->learned = hs_learned_create(hs_buf_bytes(&reply), NULL, error, sizeof error);
	hs_buf_deinit(&reply);
	for (uint32_t i = 0; i < WORKERS; i++) {
		struct station *station = &world->station[i];
		struct hs_core_world core_world = {
			.commands = &hs_commands,
			.calls = &world->calls,
			.context = station,
			.log = &world->log,
			.worker = i,
			.workers = WORKERS,
			.partitions = 8,
			.shared_connections = true,
			.op_scope = HS_OP_SCOPE_SLOT,
			.node_id = "0123456789abcdef0123456789abcdef01234567",
			.slowlog_ids = &world->slowlog_ids,
			.stages = hs_stages,
			.heat = hs_heat_create(&heat),
			.heats = world->heats,
			.heats_count = WORKERS,
			.slots = slots,
			.key_seed = hs_shared_seed(world->shared),
			.shared = world->shared,
		};

		station->world = world;
		world->heats[i] = station->heat = core_world.heat;
		station->core = hs_core_create(&core_world, &world->options);
		hs_core_learn(station->core, world->learned);
		catch_up(world, (int)i);
	}
	for (uint64_t i = 0; i < CLIENTS; i++) {
		struct hs_core_client client = {.id = i + 1, .address = "a", .local_address = "b"};

		world->client[i] = hs_core_connect(station_of(world, (char)('A' + i))->core,
						   world->now, &client);
	}
}

static inline void open_world(struct world *world, const char *rule)
{
	open_world_on(world, rule, NULL);
}

/* Asserts that all gauges are back to 0. */
static inline void close_world(struct world *world)
{
	assert_int_equal(world->count, 0);
	deliver_events(world);
	for (size_t i = 0; i < CLIENTS; i++) {
		struct hs_session *session = world->client[i];
		const struct hs_versions_session *state;
		struct hs_versions versions;

		if (!session)
			continue;
		versions = hs_versions_of(station_of(world, (char)('A' + i))->core);
		state = hs_versions_session(&versions, session);
		assert_int_equal(state->writes_in_flight, 0);
		assert_int_equal(state->detached_reads, 0);
		assert_int_equal(state->detached_writes, 0);
		assert_int_equal(session->inflight, 0);
		assert_int_equal(session->held_bytes, 0);
		hs_core_disconnect(station_of(world, (char)('A' + i))->core, session);
	}
	for (size_t i = 0; i < WORKERS; i++) {
		assert_int_equal(world->station[i].core->orphans, 0);
		hs_core_destroy(&world->station[i].core);
		hs_heat_destroy(&world->station[i].heat);
	}
	hs_learned_destroy(&world->learned);
	hs_rules_unref(&world->options.rules);
	hs_shared_destroy(&world->shared);
}

#endif
