/* The driver's part of a world: what the libuv driver (src/serve) does between a core and its clients. It feeds
 * bytes in, takes replies out, plans ticks and rounds, and checks the limits of law 6 after every event. */
#include "sim/world_internal.h"

#include "absorb/absorb.h"
#include "absorb/cache/stage.h"
#include "absorb/fold/stats.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "core/internal.h"
#include "push/stats.h"
#include "wire/compose.h"
#include "wire/parse_reply.h"

#include <inttypes.h>
#include <stdio.h>

static void on_reply(struct hs_sim_client *client)
{
	size_t at = 0;

	while (client->on_reply && at < client->received.len && !client->broken) {
		const char *data = client->received.data + at;
		int64_t len = hs_parse_reply_length(data, client->received.len - at);

		if (len == 0)
			break;
		client->broken = len < 0;
		if (len > 0) {
			client->on_reply(client->context, client,
					 (struct hs_bytes){data, (size_t)len});
			at += (size_t)len;
		}
	}
	hs_buf_consume(&client->received, at);
}

/* HS_SIM_EVENT_OVERTAKES: moves pushes in front of replies. */
static void put_pushes_first(struct hs_buf *out)
{
	struct hs_buf turned = {0};

	for (int round = 0; round < 2; round++) {
		for (size_t at = 0; at < out->len;) {
			int64_t len = hs_parse_reply_length(out->data + at, out->len - at);

			hs_check(len > 0);
			if ((out->data[at] == '>') == (round == 0))
				hs_buf_append(&turned, out->data + at, (size_t)len);
			at += (size_t)len;
		}
	}
	hs_buf_swap(out, &turned);
	hs_buf_deinit(&turned);
}

static size_t longest_two(struct hs_bytes replies)
{
	size_t first = 0, second = 0;

	for (size_t at = 0, len; at < replies.len; at += len) {
		int64_t found = hs_parse_reply_length(replies.data + at, replies.len - at);

		hs_check(found > 0);
		len = (size_t)found;
		if (len > first) {
			second = first;
			first = len;
		} else if (len > second) {
			second = len;
		}
	}
	return first + second;
}

/* The output may exceed the limit by two replies: that of the last command, if it is answered at once, and the last
 * one that was in flight then. */
static void check_output(const struct hs_sim_client *client, struct hs_bytes unsent)
{
	uint64_t most = client->world->options.core.output_bytes_max;

	if (unsent.len > most && unsent.len - longest_two(unsent) > most)
		hs_sim_verdict_set(&client->world->broken, 6,
				   "client %" PRIu64 " has %zu bytes unsent, with a limit of "
				   "%" PRIu64,
				   client->id, unsent.len, most);
}

static void take_output(struct hs_sim_client *client)
{
	struct hs_buf *out = hs_session_out(client->session);

	if (client->world->options.engine.bug == HS_SIM_EVENT_OVERTAKES)
		put_pushes_first(out);

	if (client->reading_paused) {
		hs_buf_append_bytes(&client->unsent, hs_buf_bytes(out));
		hs_session_sending(client->session, client->unsent.len);
	} else {
		hs_buf_append_bytes(&client->received, hs_buf_bytes(out));
	}
	check_output(client, hs_buf_bytes(client->reading_paused ? &client->unsent : out));
	hs_buf_clear(out, HS_IDLE_BUFFER_BYTES);
	if (hs_session_cut(client->session)) {
		client->cut = true;
		hs_sim_client_disconnect(client);
	} else if (hs_session_closing(client->session) && client->unsent.len == 0) {
		hs_sim_client_disconnect(client);
	}
	on_reply(client);
}

/* Feeds the core as many of the client's unread bytes as it takes: at random in the core's own buffer or in the
 * client's. */
static bool feed(struct hs_sim_client *client)
{
	struct hs_sim_world *world = client->world;
	struct hs_sim_worker *worker = &world->workers[client->worker];
	struct hs_core *core = worker->core;
	struct hs_bytes bytes = hs_buf_bytes(&client->unread);
	struct hs_now now;
	size_t room_len;
	char *room;

	if (bytes.len == 0 || !client->session || !hs_core_wants_input(client->session))
		return false;
	now = hs_sim_worker_now(world, worker, client->arrived_us);
	room = hs_core_read_room(client->session, &room_len);
	if (bytes.len > HS_READ_BYTES)
		bytes.len = HS_READ_BYTES;
	if (room && hs_prng_below(&world->prng, 2) == 0) {
		if (bytes.len > room_len)
			bytes.len = room_len;
		memcpy(room, bytes.data, bytes.len);
		hs_core_receive(core, client->session, now, room, bytes.len);
	} else {
		hs_core_receive(core, client->session, now, bytes.data, bytes.len);
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
	if (!worker->core)
		return;
	hs_core_alarm(worker->core, world->now);
	hs_sim_after_core(world, worker->number);
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

/* Checks a worker's own part of the cache; the shared part is not checked. */
static void check_cache(struct hs_sim_world *world, const struct hs_sim_worker *worker)
{
	const struct hs_core_options *options = &world->options.core;
	const struct hs_cache_stage *cache =
		worker->core->stages.self[hs_stage_index(worker->core, &hs_stage_cache)];
	uint64_t bytes = hs_cache_counts(cache->cache).bytes;
	uint64_t most = (options->cache_bytes - options->cache_bytes / HS_SHARED_PART) /
			world->options.workers;

	if (bytes > most)
		hs_sim_verdict_set(&world->broken, 6,
				   "worker %u caches %" PRIu64
				   " bytes of replies, with a limit of %" PRIu64,
				   worker->number, bytes, most);
}

/* In front of servers the table may exceed the limit by the requests in flight whose readers also write, until a
 * later command makes room. */
static void check_tracked(struct hs_sim_world *world, struct hs_sim_worker *worker)
{
	uint64_t keys = hs_counter_get(&hs_push_stats(worker->core)->tracking_keys);
	uint64_t under_way = hs_counter_get(&hs_core_stats(worker->core)->inflight);
	uint64_t most = world->options.core.tracking_keys_max / world->options.workers;
	/* Requests that were in flight before this event may have been answered in it. */
	uint64_t more = under_way > worker->under_way_before ? under_way : worker->under_way_before;

	worker->under_way_before = under_way;
	most = most > 0 ? most : 1;
	if (keys <= most)
		worker->tracked_more = 0;
	else if (world->cluster && more > worker->tracked_more)
		worker->tracked_more = more;
	if (keys > most + worker->tracked_more)
		hs_sim_verdict_set(&world->broken, 6,
				   "worker %u tracks %" PRIu64 " keys, with a limit of %" PRIu64,
				   worker->number, keys, most);
}

static void check_private(struct hs_sim_world *world, const struct hs_sim_worker *worker)
{
	const struct hs_sim_heatsink *heatsink = worker->heatsink;
	uint32_t most = world->options.servers.private_max, count;

	count = hs_sim_redis_private_of(heatsink->redis, worker->number - heatsink->first);
	if (count > most)
		hs_sim_verdict_set(&world->broken, 6,
				   "worker %u has %u private connections, with a limit "
				   "of %u",
				   worker->number, count, most);
}

/* Counts the client's requests; a place that is reserved for pushes (core/push.c) is none. */
static uint32_t count_asked(const struct hs_session *session)
{
	uint32_t count = 0;

	hs_list_each(struct hs_request, request, &session->requests, link) {
		count += !request->is_push;
	}
	return count;
}

/* Checked only where the limit is low enough to be reached. */
static void check_pipelines(struct hs_sim_world *world, const struct hs_sim_worker *worker)
{
	uint32_t most = world->options.core.session_inflight_max;

	for (struct hs_sim_client *client = world->clients; client; client = client->next) {
		const struct hs_session *session = client->session;

		if (client->worker == worker->number && session && session->inflight > most &&
		    count_asked(session) > most)
			hs_sim_verdict_set(&world->broken, 6,
					   "client %" PRIu64
					   " has %u requests in flight, with a limit of %u",
					   client->id, session->inflight, most);
	}
}

static void check_hot_keys(struct hs_sim_world *world, const struct hs_sim_worker *worker)
{
	uint64_t keys = hs_counter_get(&hs_core_stats(worker->core)->hot_keys);
	uint32_t most = world->options.core.hot.keys_max;

	if (keys > most)
		hs_sim_verdict_set(&world->broken, 6,
				   "worker %u has %" PRIu64 " hot keys, with a limit of %u",
				   worker->number, keys, most);
}

/* Checks the limits of a core (law 6): waiting requests, pipelines, hot keys, cache, tracked keys, private
 * connections. */
static void check_limits(struct hs_sim_world *world, struct hs_sim_worker *worker)
{
	const struct hs_core_options *options = &world->options.core;
	const struct hs_fold_stats *fold = hs_fold_stats(worker->core);
	uint64_t waiting = hs_counter_get(&fold->waiting);
	uint64_t keys = hs_counter_get(&fold->keys);
	uint32_t most = options->fold_waiters_max;

	if (waiting > 0 && (keys == 0 || (waiting + keys - 1) / keys > most))
		hs_sim_verdict_set(&world->broken, 6,
				   "%" PRIu64 " requests wait for %" PRIu64
				   " hot keys of worker %u, with a limit of %u each",
				   waiting, keys, worker->number, most);
	if (options->session_inflight_max > 0)
		check_pipelines(world, worker);
	if (options->hot.keys_max > 0)
		check_hot_keys(world, worker);
	if (world->options.rules_count > 0)
		check_cache(world, worker);
	if (options->tracking_keys_max > 0)
		check_tracked(world, worker);
	if (worker->heatsink->redis && !worker->heatsink->dead)
		check_private(world, worker);
}

/* Submits what the round has collected for hot keys, and sends what was submitted to servers. */
static bool flush(struct hs_sim_worker *worker)
{
	struct hs_sim_heatsink *heatsink = worker->heatsink;
	bool any = hs_core_flush(worker->core, worker->world->now);

	return (heatsink->redis &&
		hs_sim_redis_flush(heatsink->redis, worker->number - heatsink->first)) ||
	       any;
}

static void end_round(void *context, void *target, uint64_t number)
{
	struct hs_sim_world *world = context;
	struct hs_sim_worker *worker = target;

	(void)number;
	worker->round_planned = false;
	if (worker->core && flush(worker))
		hs_sim_after_core(world, worker->number);
}

static void plan_round(struct hs_sim_world *world, struct hs_sim_worker *worker)
{
	uint64_t in_us = hs_prng_below(&world->prng, world->options.round_us_max + 1);

	if (!worker->round_planned)
		hs_sim_world_plan(world, in_us, end_round, world, worker);
	worker->round_planned = true;
}

void hs_sim_after_core(struct hs_sim_world *world, uint32_t number)
{
	struct hs_sim_worker *worker = &world->workers[number];
	bool rounds = world->options.round_us_max > 0;
	bool fed;

	if (!worker->core)
		return;
	do {
		fed = false;
		if (!rounds)
			fed = flush(worker);
		send_all(worker->core);
		for (struct hs_sim_client *client = world->clients; client; client = client->next) {
			if (client->worker == number && feed(client))
				fed = true;
		}
	} while (fed);
	if (rounds)
		plan_round(world, worker);
	check_limits(world, worker);
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

static void read_later(void *context, void *target, uint64_t number)
{
	struct hs_sim_worker *worker = target;

	(void)number;
	worker->reading_planned = false;
	hs_sim_after_core(context, worker->number);
}

/* A slow worker reads what its clients have sent after a delay. */
static void plan_reading(struct hs_sim_world *world, struct hs_sim_worker *worker)
{
	uint64_t in_us = hs_prng_below(&world->prng, world->options.slow_us_max + 1);

	if (!worker->reading_planned)
		hs_sim_world_plan(world, in_us, read_later, world, worker);
	worker->reading_planned = true;
}

void hs_sim_client_send(struct hs_sim_client *client, struct hs_bytes bytes)
{
	client->world->steps++;
	if (!client->session || bytes.len == 0)
		return;
	hs_buf_append_bytes(&client->unread, bytes);
	client->arrived_us = client->world->now.mono_us;
	if (client->world->options.slow_us_max > 0)
		plan_reading(client->world, &client->world->workers[client->worker]);
	else
		hs_sim_after_core(client->world, client->worker);
}

void hs_sim_client_request(struct hs_sim_client *client, const char *words)
{
	struct hs_buf bytes = {0};

	hs_compose_line(&bytes, words);
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

void hs_sim_client_lose(struct hs_sim_client *client)
{
	client->orphan = true;
	client->on_reply = client->orphaned ? client->on_reply : NULL;
	hs_sim_client_disconnect(client);
	hs_buf_clear(&client->received, HS_IDLE_BUFFER_BYTES);
	if (client->orphaned)
		client->orphaned(client->context, client);
}

void hs_sim_client_pause_reading(struct hs_sim_client *client, bool reading_paused)
{
	client->reading_paused = reading_paused;
	if (reading_paused || !client->session)
		return;
	hs_buf_append_bytes(&client->received, hs_buf_bytes(&client->unsent));
	hs_buf_deinit(&client->unsent);
	hs_session_sending(client->session, 0);
	take_output(client);
}
