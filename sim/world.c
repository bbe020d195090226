#include "sim/world.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/slot.h"
#include "wire/answer.h"
#include "wire/reply.h"

#include <stdio.h>

enum { TICK_US = 100000, WORDS_MAX = 64, HEAT_SETS = 4, MISTAKE_ONE_IN = 8 };

/* One core and where it stands; the context of its calls. */
struct hs_sim_worker {
	struct hs_sim_world *world;
	struct hs_core *core;
	uint32_t number;
	uint64_t tick_us; /* when a tick is planned for its sleepers; 0: none */
	uint64_t news_us; /* when the last piece of news gets there: they keep their order */
};

static void after_core(struct hs_sim_world *world, uint32_t worker);

/* --- mistakes about heat --- */

static bool errs(struct hs_sim_world *world, enum hs_sim_mistake mistake)
{
	return world->options.engine.mistake == mistake &&
	       hs_prng_below(&world->prng, MISTAKE_ONE_IN) == 0;
}

static void count_again(struct hs_sim_world *world, const struct hs_op *op)
{
	struct hs_heat_access access = {.partition = op->partition};

	if (!world->heats || op->kind != HS_OP_COMMAND || op->command->key_first == 0)
		return;
	access.key = op->argv[op->command->key_first];
	access.slot = hs_slot_of(access.key);
	access.write = (op->command->flags & HS_CMD_WRITE) != 0;
	hs_heat_add(world->heats[op->worker], &access, 0);
}

/* --- mistakes about news --- */

static void note_read(struct hs_sim_world *world, struct hs_op *op)
{
	if (world->options.engine.mistake != HS_SIM_READ_REMEMBERED_LATE ||
	    op->kind != HS_OP_COMMAND || !(op->command->flags & HS_CMD_READONLY))
		return;
	if (world->reads_count == world->reads_cap) {
		world->reads_cap = world->reads_cap ? 2 * world->reads_cap : 16;
		world->reads =
			hs_mem_realloc(world->reads, world->reads_cap * sizeof(struct hs_op *));
	}
	world->reads[world->reads_count++] = op;
}

static void forget_read(struct hs_sim_world *world, const struct hs_op *op)
{
	for (size_t i = 0; i < world->reads_count; i++) {
		if (world->reads[i] == op)
			world->reads[i--] = world->reads[--world->reads_count];
	}
}

static bool is_being_read(const struct hs_sim_world *world, uint32_t worker, struct hs_bytes key)
{
	for (size_t i = 0; i < world->reads_count; i++) {
		const struct hs_op *op = world->reads[i];

		for (size_t j = 1; op->worker == worker && j < op->argc; j++) {
			if (hs_bytes_equal(op->argv[j], key))
				return true;
		}
	}
	return false;
}

/* What a core hears that remembers keys when their replies come. */
static void tell_late(struct hs_sim_world *world, uint32_t worker, const struct hs_news *news)
{
	struct hs_bytes *keys = hs_mem_alloc((news->keys_count + 1) * sizeof *keys);
	struct hs_news less = {.kind = news->kind, .keys = keys};

	for (uint32_t i = 0; i < news->keys_count; i++) {
		if (!is_being_read(world, worker, news->keys[i]))
			keys[less.keys_count++] = news->keys[i];
	}
	hs_core_news(world->workers[worker].core, world->now, &less);
	hs_mem_free(&keys);
}

/* --- what the engine tells --- */

static void hand_over_news(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct hs_news *news = target;
	uint32_t worker = (uint32_t)number;

	if (world->options.engine.mistake == HS_SIM_READ_REMEMBERED_LATE)
		tell_late(world, worker, news);
	else
		hs_core_news(world->workers[worker].core, world->now, news);
	hs_news_unref(&news);
	after_core(world, worker);
}

/* To every worker, each in its own time, in the order told. */
static void tell(void *context, struct hs_news *news)
{
	struct hs_sim_world *world = context;

	for (uint32_t i = 0; i < world->options.workers; i++) {
		struct hs_sim_worker *worker = &world->workers[i];
		uint64_t at_us = world->now.mono_us;

		if (world->options.news_us_max > 0)
			at_us += hs_prng_below(&world->prng, world->options.news_us_max + 1);
		if (at_us < worker->news_us)
			at_us = worker->news_us;
		worker->news_us = at_us;
		hs_news_ref(news, 1);
		hs_sim_events_plan(&world->events, (struct hs_sim_event){.at_us = at_us,
									 .run = hand_over_news,
									 .context = world,
									 .target = news,
									 .number = i});
	}
	hs_news_unref(&news);
}

/* --- what cores ask of the world --- */

static void complete(void *context, struct hs_op *op)
{
	struct hs_sim_world *world = context;
	uint32_t worker = op->worker;

	forget_read(world, op);
	if (errs(world, HS_SIM_COUNT_TWICE))
		count_again(world, op);
	hs_core_complete(world->workers[worker].core, world->now, op);
	after_core(world, worker);
}

static void complete_later(void *context, void *target, uint64_t number)
{
	(void)number;
	complete(context, target);
}

/* A worker's part of a command for all of them, on that worker, then back. */
static void visit_peer(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct hs_op *op = target;
	uint32_t peer = op->partition;

	(void)number;
	hs_core_peer(world->workers[peer].core, world->now, op);
	after_core(world, peer);
	hs_sim_world_plan(world, hs_prng_below(&world->prng, world->options.peer_us_max + 1),
			  complete_later, world, op);
}

static enum hs_submit submit(void *context, struct hs_op *op)
{
	struct hs_sim_worker *worker = context;
	struct hs_sim_world *world = worker->world;
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	uint64_t delay_us;

	hs_check(op->worker == worker->number);
	switch (op->kind) {
	case HS_OP_HOST:
		hs_reply_error(&reply, "ERR there is no host in a simulated world");
		return HS_SUBMIT_DONE;
	case HS_OP_PEER:
		delay_us = hs_prng_below(&world->prng, world->options.peer_us_max + 1);
		hs_sim_world_plan(world, delay_us, visit_peer, world, op);
		return HS_SUBMIT_QUEUED;
	default:
		break;
	}

	enum hs_submit submitted = hs_sim_engine_submit(world->engine, op);

	if (submitted == HS_SUBMIT_QUEUED)
		note_read(world, op);
	return submitted;
}

static uint64_t look_at_clock(void *context)
{
	struct hs_sim_worker *worker = context;

	worker->world->now.mono_us += worker->world->options.look_us;
	worker->world->now.wall_us += worker->world->options.look_us;
	return worker->world->now.mono_us;
}

static void drop_line(void *context, enum hs_log_level level, const char *line)
{
	(void)context, (void)level, (void)line;
}

/* --- the driver's side of a connection --- */

static void hear(struct hs_sim_client *client)
{
	size_t at = 0;

	while (client->hear && at < client->received.len && !client->broken) {
		const char *data = client->received.data + at;
		int64_t len = hs_answer_length(data, client->received.len - at);

		if (len == 0)
			break;
		client->broken = len < 0;
		if (len > 0) {
			client->hear(client->context, client, (struct hs_bytes){data, (size_t)len});
			at += (size_t)len;
		}
	}
	hs_buf_consume(&client->received, at);
}

/* HS_SIM_NEWS_OVERTAKE: what was told comes first. */
static void put_pushes_first(struct hs_buf *out)
{
	struct hs_buf turned = {0};

	for (int round = 0; round < 2; round++) {
		for (size_t at = 0; at < out->len;) {
			int64_t len = hs_answer_length(out->data + at, out->len - at);

			hs_check(len > 0);
			if ((out->data[at] == '>') == (round == 0))
				hs_buf_append(&turned, out->data + at, (size_t)len);
			at += (size_t)len;
		}
	}
	hs_buf_swap(out, &turned);
	hs_buf_deinit(&turned);
}

static void take_output(struct hs_sim_client *client)
{
	struct hs_buf *out = hs_session_out(client->session);

	if (client->world->options.engine.mistake == HS_SIM_NEWS_OVERTAKE)
		put_pushes_first(out);

	if (client->deaf) {
		hs_buf_append_bytes(&client->unsent, hs_buf_bytes(out));
		hs_session_sending(client->session, client->unsent.len);
	} else {
		hs_buf_append_bytes(&client->received, hs_buf_bytes(out));
	}
	hs_buf_clear(out, HS_KEEP_BYTES);
	if (hs_session_cut(client->session)) {
		client->cut = true;
		hs_sim_client_disconnect(client);
	} else if (hs_session_closing(client->session) && client->unsent.len == 0) {
		hs_sim_client_disconnect(client);
	}
	hear(client);
}

/* As much of the unread bytes as the core wants, where it wants them. */
static bool feed(struct hs_sim_client *client)
{
	struct hs_sim_world *world = client->world;
	struct hs_core *core = world->workers[client->worker].core;
	struct hs_bytes bytes = hs_buf_bytes(&client->unread);
	size_t room_len;
	char *room;

	if (bytes.len == 0 || !client->session || !hs_core_wants_input(client->session))
		return false;
	room = hs_core_read_room(client->session, &room_len);
	if (bytes.len > HS_READ_BYTES)
		bytes.len = HS_READ_BYTES;
	if (room && hs_prng_below(&world->prng, 2) == 0) {
		if (bytes.len > room_len)
			bytes.len = room_len;
		memcpy(room, bytes.data, bytes.len);
		hs_core_receive(core, client->session, world->now, room, bytes.len);
	} else {
		hs_core_receive(core, client->session, world->now, bytes.data, bytes.len);
	}
	hs_buf_consume(&client->unread, bytes.len);
	return true;
}

static void tick(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct hs_sim_worker *worker = target;

	(void)number;
	worker->tick_us = 0;
	hs_core_tick(worker->core, world->now);
	after_core(world, worker->number);
}

static void plan_tick(struct hs_sim_world *world, struct hs_sim_worker *worker)
{
	uint64_t deadline_us = hs_core_deadline(worker->core);
	uint64_t now_us = world->now.mono_us;

	if (deadline_us == 0 || (worker->tick_us > 0 && worker->tick_us <= deadline_us))
		return;
	worker->tick_us = deadline_us;
	hs_sim_world_plan(world, deadline_us > now_us ? deadline_us - now_us : 0, tick, world,
			  worker);
}

static void send_all(struct hs_core *core)
{
	struct hs_session *session;

	while ((session = hs_core_next_sendable(core)))
		take_output(hs_session_io(session));
}

/* After every call into a core: replies go out, and who had to wait with its bytes goes on. */
static void after_core(struct hs_sim_world *world, uint32_t number)
{
	struct hs_sim_worker *worker = &world->workers[number];
	bool fed;

	do {
		fed = false;
		hs_core_flush(worker->core, world->now);
		send_all(worker->core);
		for (struct hs_sim_client *client = world->clients; client; client = client->next) {
			if (client->worker == number && feed(client))
				fed = true;
		}
	} while (fed);
	plan_tick(world, worker);
}

/* --- clients --- */

struct hs_sim_client *hs_sim_client_connect(struct hs_sim_world *world, uint32_t worker)
{
	struct hs_sim_client *client = hs_mem_zalloc(sizeof *client);
	char address[32];
	struct hs_core_client who = {.address = address, .local_address = "sim:0"};

	client->id = ++world->client_ids;
	client->world = world;
	client->worker = worker;
	client->next = world->clients;
	world->clients = client;
	snprintf(address, sizeof address, "sim:%llu", (unsigned long long)client->id);
	who.id = client->id;
	who.fd = (int)client->id;
	client->session = hs_core_connect(world->workers[worker].core, world->now, &who);
	hs_session_set_io(client->session, client);
	return client;
}

void hs_sim_client_send(struct hs_sim_client *client, struct hs_bytes bytes)
{
	client->world->steps++;
	if (!client->session || bytes.len == 0)
		return;
	hs_buf_append_bytes(&client->unread, bytes);
	after_core(client->world, client->worker);
}

void hs_sim_compose(struct hs_buf *bytes, size_t argc, const struct hs_bytes *argv)
{
	struct hs_reply request = {.out = bytes, .resp = 2};

	/* A request is an array of bulk strings, the same bytes as in a reply. */
	hs_reply_array(&request, argc);
	for (size_t i = 0; i < argc; i++)
		hs_reply_bulk(&request, argv[i]);
}

void hs_sim_client_ask(struct hs_sim_client *client, const char *words)
{
	struct hs_bytes argv[WORDS_MAX];
	struct hs_buf bytes = {0};
	size_t argc = 0;

	while (*words) {
		size_t len = strcspn(words, " ");

		hs_check(argc < WORDS_MAX);
		if (len > 0)
			argv[argc++] = (struct hs_bytes){words, len};
		words += len + (words[len] == ' ');
	}
	hs_sim_compose(&bytes, argc, argv);
	hs_sim_client_send(client, hs_buf_bytes(&bytes));
	hs_buf_deinit(&bytes);
}

void hs_sim_client_disconnect(struct hs_sim_client *client)
{
	struct hs_session *session = client->session;

	if (!session)
		return;
	client->session = NULL;
	client->world->steps++;
	hs_buf_deinit(&client->unread);
	hs_buf_deinit(&client->unsent);
	hs_core_disconnect(client->world->workers[client->worker].core, session);
}

void hs_sim_client_set_deaf(struct hs_sim_client *client, bool deaf)
{
	client->deaf = deaf;
	if (deaf || !client->session)
		return;
	hs_buf_append_bytes(&client->received, hs_buf_bytes(&client->unsent));
	hs_buf_deinit(&client->unsent);
	hs_session_sending(client->session, 0);
	take_output(client);
}

/* --- the world --- */

struct hs_sim_world_options hs_sim_world_defaults(uint64_t seed)
{
	return (struct hs_sim_world_options){
		.workers = 1,
		.engine =
			{
				.seed = seed,
				.partitions = 4,
				.reads_at_once = true,
				.commit_us_max = 200,
				.answer_us_max = 100,
			},
		.core =
			{
				.output_bytes_max = 64 * HS_MIB,
				.slowlog_us = 10000,
				.slowlog_len_max = 128,
				.acllog_len_max = 128,
			},
		.peer_us_max = 50,
		.news_us_max = 50,
		.heat_sets = HEAT_SETS,
	};
}

static void create_heats(struct hs_sim_world *world)
{
	/* One seed for all: they are read as one. */
	const struct hs_heat_options options = {
		.seed = world->options.engine.seed,
		.partitions = world->options.engine.partitions,
		.key_sets = world->options.heat_sets,
	};

	world->start_us = world->now.mono_us;
	if (options.key_sets == 0)
		return;
	world->heats = hs_mem_zalloc(world->options.workers * sizeof(struct hs_heat *));
	for (uint32_t i = 0; i < world->options.workers; i++) {
		world->heats[i] = hs_heat_create(&options);
		hs_heat_now(world->heats[i], world->start_us);
	}
}

static void destroy_heats(struct hs_sim_world *world)
{
	for (uint32_t i = 0; world->heats && i < world->options.workers; i++)
		hs_heat_destroy(&world->heats[i]);
	hs_mem_free(&world->heats);
}

struct hs_sim_world *hs_sim_world_create(const struct hs_sim_world_options *options)
{
	struct hs_sim_world *world = hs_mem_zalloc(sizeof *world);
	struct hs_sim_engine_host host = {
		.events = &world->events,
		.now = &world->now,
		.done = complete,
		.news = tell,
		.context = world,
	};

	world->options = *options;
	world->now = (struct hs_now){.mono_us = 1000000, .wall_us = 1700000000000000};
	world->calls = (struct hs_core_calls){.submit = submit, .mono_us = look_at_clock};
	world->silence = (struct hs_log){.level = HS_LOG_ERROR, .sink = drop_line};
	hs_prng_init(&world->prng, ~options->engine.seed); /* the engine draws from its own */
	world->engine = hs_sim_engine_create(&options->engine, &host);
	world->workers = hs_mem_zalloc(options->workers * sizeof *world->workers);
	create_heats(world);
	for (uint32_t i = 0; i < options->workers; i++) {
		struct hs_sim_worker *worker = &world->workers[i];
		struct hs_core_world core_world = {
			.calls = &world->calls,
			.context = worker,
			.log = options->log ? options->log : &world->silence,
			.worker = i,
			.workers = options->workers,
			.partitions = options->engine.partitions,
			.reads_at_once = options->engine.reads_at_once,
			.node_id = "6865617473696e6b20696e206120647265616d21",
			.slowlog_ids = &world->slowlog_ids,
			.seed = options->engine.seed + i,
			.heat = world->heats ? world->heats[i] : NULL,
			.heats = world->heats,
			.heats_count = world->heats ? options->workers : 0,
		};

		if (errs(world, HS_SIM_COUNT_NEVER))
			core_world.heat = NULL;
		worker->world = world;
		worker->number = i;
		worker->core = hs_core_create(&core_world, &options->core);
	}
	return world;
}

void hs_sim_world_destroy(struct hs_sim_world **pointer)
{
	struct hs_sim_world *world = *pointer;

	for (struct hs_sim_client *client = world->clients; client; client = client->next)
		hs_sim_client_disconnect(client);
	for (uint16_t i = 0; i < world->options.engine.partitions; i++)
		hs_sim_engine_go_on(world->engine, i);
	do {
		hs_sim_world_settle(world);
		hs_sim_engine_find_lost(world->engine);
	} while (world->events.count > 0);
	for (uint32_t i = 0; i < world->options.workers; i++)
		hs_core_destroy(&world->workers[i].core);
	while (world->clients) {
		struct hs_sim_client *client = world->clients;

		world->clients = client->next;
		hs_buf_deinit(&client->received);
		hs_mem_free(&client);
	}
	hs_sim_engine_destroy(&world->engine);
	destroy_heats(world);
	hs_sim_events_deinit(&world->events);
	hs_mem_free(&world->reads);
	hs_mem_free(&world->workers);
	hs_mem_free(pointer);
}

struct hs_core *hs_sim_world_core(struct hs_sim_world *world, uint32_t worker)
{
	return world->workers[worker].core;
}

static void set_time(struct hs_sim_world *world, uint64_t mono_us)
{
	if (mono_us <= world->now.mono_us)
		return;
	world->now.wall_us += (int64_t)(mono_us - world->now.mono_us);
	world->now.mono_us = mono_us;
}

void hs_sim_world_plan(struct hs_sim_world *world, uint64_t in_us, hs_sim_event_run *run,
		       void *context, void *target)
{
	struct hs_sim_event event = {
		.at_us = world->now.mono_us + in_us,
		.run = run,
		.context = context,
		.target = target,
	};

	hs_sim_events_plan(&world->events, event);
}

bool hs_sim_world_step(struct hs_sim_world *world)
{
	struct hs_sim_event event;

	if (!hs_sim_events_take(&world->events, &event))
		return false;
	world->steps++;
	set_time(world, event.at_us);
	event.run(event.context, event.target, event.number);
	return true;
}

void hs_sim_world_settle(struct hs_sim_world *world)
{
	while (hs_sim_world_step(world)) {
	}
}

void hs_sim_world_pass(struct hs_sim_world *world, uint64_t us)
{
	uint64_t end_us = world->now.mono_us + us;
	uint64_t tick_us = world->now.mono_us + TICK_US;

	for (;;) {
		uint64_t next_us = hs_sim_events_next_us(&world->events);

		if (next_us <= end_us && next_us <= tick_us) {
			hs_sim_world_step(world);
			continue;
		}
		if (tick_us > end_us)
			break;
		set_time(world, tick_us);
		for (uint32_t i = 0; i < world->options.workers; i++) {
			hs_core_tick(world->workers[i].core, world->now);
			after_core(world, i);
		}
		tick_us += TICK_US;
	}
	set_time(world, end_us);
}
