/* One worker: what to send when, and what a reply means.
 *
 * Closed loop: a client sends `pipeline` requests in one write, waits for all replies, and sends the next ones. Open
 * loop: request i of the worker is due at start + i * interval, whatever the target does. A timer finer than libuv's
 * sends due requests, round robin over the clients. If all clients are full, a request goes out late, but its due
 * time stays: so a stall of the target shows in the latency of every request that it delayed (no coordinated
 * omission).
 *
 * Besides the run there are phases that go through the keys once: write them, read the counters' start values, read
 * all written keys at the end. There, a key whose request was lost with its connection is requested again; in the
 * run, such a request is counted as lost.
 *
 * `--ordered`: a client with nothing in flight sends requests that may be sent now (storm_order.h): first waiting
 * ones, then new ones. If there is none, it waits for the next reply on any client.
 *
 * A verified run of `--command all` is cut into windows (storm_history.h): when a window is full, no client sends
 * until all replies are there; a short phase within the run reads the keys; then the run goes on. */
#include "cli/storm_history.h"
#include "cli/storm_order.h"

#include "base/mem.h"

#include <sys/timerfd.h>
#include <unistd.h>

enum { TICK_MS = 100, UNREAD_MAX = 100 };
/* How long the last replies of a run are waited for. */
static const uint64_t DRAIN_NS = 5000000000;
/* Without a reply for so long, the other phases and a run without a time limit end. */
static const uint64_t SILENCE_NS = 30000000000;
/* The open loop wakes up at most this often. */
static const uint64_t PACE_NS_MIN = 50000;

static void on_tick(uv_timer_t *timer);
static void on_pace(uv_poll_t *poll, int status, int events);

struct hs_storm_counts *hs_storm_worker_counts(struct hs_storm_worker *worker)
{
	return worker->phase == HS_STORM_PHASE_RUN ? &worker->counts : &worker->side_counts;
}

static uint64_t share_of(uint64_t whole, uint64_t parts, uint64_t index)
{
	return whole / parts + (index < whole % parts);
}

/* As many waiting as in flight: enough to keep other keys going, and close to the drawn order. */
static uint64_t room_aside(const struct hs_storm_options *options)
{
	uint64_t room = options->connections * options->pipeline;

	return room < HS_STORM_ASIDE_MAX ? room : HS_STORM_ASIDE_MAX;
}

void hs_storm_worker_init(struct hs_storm_worker *worker, const struct hs_storm_options *options,
			  unsigned index, atomic_bool *stop)
{
	int rc;

	*worker = (struct hs_storm_worker){.options = options, .stop = stop, .index = index};
	rc = uv_loop_init(&worker->loop);
	hs_check(rc == 0);
	uv_timer_init(&worker->loop, &worker->tick);
	worker->tick.data = worker;
	uv_timer_init(&worker->loop, &worker->reconnect);
	worker->reconnect.data = worker;
	worker->pace_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	hs_check(worker->pace_fd >= 0);
	rc = uv_poll_init(&worker->loop, &worker->pace, worker->pace_fd);
	hs_check(rc == 0);
	worker->pace.data = worker;

	hs_storm_wire_init(&worker->wire, options);
	hs_storm_keys_init(&worker->keys, &options->shape, options->keys, options->seed);
	hs_prng_init(&worker->prng, options->seed * 64 + index);
	hs_prng_init(&worker->chance, options->seed * 64 + index);
	worker->write_below =
		options->writes >= 1 ? UINT64_MAX : (uint64_t)(options->writes * 0x1p64);
	if (options->rate)
		worker->interval_ns = 1e9 * (double)options->threads / (double)options->rate;

	for (size_t i = 0; i < options->target.url.seeds_count; i++)
		hs_storm_node(worker, &options->target.url.seeds[i]);
	if (options->cluster) {
		worker->cluster = hs_mem_zalloc(sizeof *worker->cluster);
		worker->cluster->began_ms = uv_hrtime() / 1000000;
	}
	hs_storm_worker_init_driver(worker);
	worker->clients_count = (unsigned)share_of(options->connections, options->threads, index);
	worker->clients = hs_mem_alloc(worker->clients_count * sizeof *worker->clients);
	for (unsigned i = 0; i < worker->clients_count; i++)
		hs_storm_client_init(&worker->clients[i], worker);
	if (options->ordered)
		worker->order = hs_storm_order_create(options->keys, room_aside(options));
}

void hs_storm_worker_deinit(struct hs_storm_worker *worker)
{
	uv_close((uv_handle_t *)&worker->tick, NULL);
	uv_close((uv_handle_t *)&worker->reconnect, NULL);
	uv_close((uv_handle_t *)&worker->pace, NULL);
	for (unsigned i = 0; i < worker->clients_count; i++)
		hs_storm_client_stop(&worker->clients[i]);
	uv_run(&worker->loop, UV_RUN_DEFAULT);
	hs_check(uv_loop_close(&worker->loop) == 0);
	close(worker->pace_fd);
	for (unsigned i = 0; i < worker->clients_count; i++)
		hs_storm_client_deinit(&worker->clients[i]);
	hs_mem_free(&worker->clients);
	hs_mem_free(&worker->driver.buffer);
	hs_mem_free(&worker->nodes);
	hs_mem_free(&worker->cluster);
	hs_buf_deinit(&worker->again);
	hs_buf_deinit(&worker->last_array);
	hs_storm_order_destroy(&worker->order);
	hs_storm_wire_deinit(&worker->wire);
}

/* Begins a phase that goes through the keys. For PROBE it must not touch the state of the run. */
static void begin_keys(struct hs_storm_worker *worker, enum hs_storm_phase phase)
{
	worker->phase = phase;
	worker->next_key = worker->index;
	worker->key_step = worker->options->threads;
	worker->again.len = 0;
	worker->unread = 0;
	worker->retry_paused = false;
	worker->last_answer_ns = uv_hrtime();
}

void hs_storm_worker_prepare(struct hs_storm_worker *worker, enum hs_storm_phase phase)
{
	const struct hs_storm_options *options = worker->options;

	begin_keys(worker, phase);
	worker->abandoned = false;
	worker->start_ns = worker->last_answer_ns;
	worker->stopped_ns = 0;
	if (phase != HS_STORM_PHASE_RUN)
		return;
	worker->end_ns = options->duration_us ? worker->start_ns + options->duration_us * 1000 : 0;
	worker->quota = options->count ? share_of(options->count, options->threads, worker->index)
				       : UINT64_MAX;
	worker->counts.first_ns = worker->start_ns;
	worker->counts.last_ns = worker->start_ns;
}

/* ---- the next request ---- */

/* True if the phase requests this key. */
static bool phase_wants(const struct hs_storm_worker *worker, uint64_t key)
{
	switch (worker->phase) {
	case HS_STORM_PHASE_LOAD:
		return true;
	case HS_STORM_PHASE_BASE:
		return hs_storm_key_is_counter(worker->options, key);
	case HS_STORM_PHASE_PROBE:
		return hs_storm_history_touched(worker->history, key);
	case HS_STORM_PHASE_FINAL:
		return worker->history ? hs_storm_history_touched(worker->history, key)
				       : hs_storm_verify_touched(worker->verify, key);
	case HS_STORM_PHASE_CONNECT:
	case HS_STORM_PHASE_RUN:
		break;
	}
	return false;
}

static bool next_side_key(struct hs_storm_worker *worker, uint64_t *key)
{
	if (worker->again.len) {
		worker->again.len -= sizeof *key;
		memcpy(key, worker->again.data + worker->again.len, sizeof *key);
		return true;
	}
	while (worker->next_key < worker->options->keys) {
		*key = worker->next_key;
		worker->next_key += worker->key_step;
		if (phase_wants(worker, *key))
			return true;
	}
	return false;
}

static bool is_open(const struct hs_storm_worker *worker)
{
	return worker->phase == HS_STORM_PHASE_RUN && worker->interval_ns > 0;
}

/* Open loop: when the next request is due. */
static uint64_t due_ns(const struct hs_storm_worker *worker)
{
	return worker->start_ns + (uint64_t)((double)worker->counts.sent * worker->interval_ns);
}

/* A closed loop ends with the clock, an open one with the last request due before the end. */
static bool run_has_more(const struct hs_storm_worker *worker, uint64_t now_ns)
{
	if (worker->stopped_ns || !worker->quota)
		return false;
	if (is_open(worker))
		now_ns = due_ns(worker);
	return !worker->end_ns || now_ns < worker->end_ns;
}

/* True if the phase has more requests to send. */
static bool has_more(struct hs_storm_worker *worker, uint64_t now_ns)
{
	if (worker->phase != HS_STORM_PHASE_FINAL &&
	    atomic_load_explicit(worker->stop, memory_order_relaxed))
		worker->abandoned = true;
	if (worker->phase == HS_STORM_PHASE_RUN) {
		if (!worker->abandoned && run_has_more(worker, now_ns))
			return true;
		if (!worker->stopped_ns)
			worker->stopped_ns = now_ns;
		return false;
	}
	return !worker->abandoned && worker->phase != HS_STORM_PHASE_CONNECT &&
	       (worker->again.len || worker->next_key < worker->options->keys);
}

static bool draw_write(struct hs_storm_worker *worker)
{
	return worker->write_below == UINT64_MAX ||
	       (worker->write_below && hs_prng_next(&worker->prng) < worker->write_below);
}

static enum hs_storm_kind kind_of(const struct hs_storm_worker *worker, uint64_t key, bool write)
{
	if (!write)
		return HS_STORM_GET;
	return hs_storm_key_is_counter(worker->options, key) ? HS_STORM_INCR : HS_STORM_SET;
}

static enum hs_storm_kind next_kind(struct hs_storm_worker *worker, uint64_t key)
{
	if (worker->wire.request.len)
		return HS_STORM_REQUEST;
	if (worker->phase == HS_STORM_PHASE_RUN)
		return kind_of(worker, key, draw_write(worker));
	return worker->phase == HS_STORM_PHASE_LOAD ? HS_STORM_SET : HS_STORM_GET;
}

static void compose(struct hs_storm_worker *worker, struct hs_storm_client *client, uint64_t key,
		    enum hs_storm_kind kind, uint64_t due_ns)
{
	bool counter = hs_storm_key_is_counter(worker->options, key);
	uint16_t slot = worker->cluster ? hs_storm_wire_slot(&worker->wire, kind, counter, key) : 0;
	struct hs_storm_request *request = hs_storm_client_add(client, slot);
	char *value;

	*request = (struct hs_storm_request){.key = key,
					     .other_key = (uint32_t)key,
					     .kind = kind,
					     .due_ns = due_ns,
					     .counter = counter};
	if (worker->verify)
		hs_storm_verify_send(worker->verify, request);
	hs_storm_wire_append(&worker->wire, request, client->out, &value);
	if (worker->verify && kind == HS_STORM_SET && !counter)
		hs_storm_verify_value(worker->verify, request, value);
	hs_storm_client_added(client);
}

/* Draws the key and the kind of the run's next request, and composes it. */
static void compose_next(struct hs_storm_worker *worker, struct hs_storm_client *client,
			 uint64_t due_ns)
{
	uint64_t elapsed_us = (due_ns - worker->start_ns) / 1000;
	uint64_t key = hs_storm_keys_next(&worker->keys, &worker->prng, elapsed_us);

	worker->quota--;
	compose(worker, client, key, next_kind(worker, key), due_ns);
}

/* ---- closed loop, and the phases beside the run ---- */

/* The next request that may be sent: a waiting one, else a new one. New ones that must wait are put aside while there
 * is room and quota. */
static bool next_access(struct hs_storm_worker *worker, uint64_t elapsed_us,
			struct hs_storm_access *access)
{
	if (hs_storm_order_take(worker->order, access))
		return true;
	while (hs_storm_order_waiting(worker->order) < worker->quota &&
	       hs_storm_order_has_room(worker->order)) {
		access->key = hs_storm_keys_next(&worker->keys, &worker->prng, elapsed_us);
		access->write = draw_write(worker);
		if (hs_storm_order_offer(worker->order, *access))
			return true;
		worker->counts.waited++;
	}
	return false;
}

static void fill_ordered(struct hs_storm_worker *worker, struct hs_storm_client *client,
			 uint64_t now_ns)
{
	uint64_t elapsed_us = (now_ns - worker->start_ns) / 1000;
	struct hs_storm_access access;

	for (uint64_t i = 0;
	     i < worker->options->pipeline && next_access(worker, elapsed_us, &access); i++) {
		worker->quota--;
		compose(worker, client, access.key, kind_of(worker, access.key, access.write),
			now_ns);
	}
}

/* Composes one pipeline of requests of the run. */
static void fill_run(struct hs_storm_worker *worker, struct hs_storm_client *client,
		     uint64_t now_ns)
{
	uint64_t batch = worker->options->pipeline;

	if (worker->order) {
		fill_ordered(worker, client, now_ns);
		return;
	}
	if (batch > worker->quota)
		batch = worker->quota;
	if (worker->options->command == HS_STORM_COMMAND_ALL) {
		batch = hs_storm_acts_fill(worker, client, batch, now_ns);
		worker->quota -= batch < worker->quota ? batch : worker->quota;
		return;
	}
	while (batch--)
		compose_next(worker, client, now_ns);
}

/* Composes requests of a phase that goes through the keys. */
static void fill_side(struct hs_storm_worker *worker, struct hs_storm_client *client,
		      uint64_t now_ns)
{
	int requests = worker->history ? HS_STORM_PROBE_REQUESTS : 1;
	uint64_t key;

	for (int i = requests; i <= HS_STORM_SIDE_PIPELINE && next_side_key(worker, &key);
	     i += requests) {
		if (worker->history)
			hs_storm_acts_probe(worker, client, key, now_ns);
		else
			compose(worker, client, key, next_kind(worker, key), now_ns);
	}
}

/* True if nothing may be sent now. */
static bool must_wait(const struct hs_storm_worker *worker)
{
	return worker->retry_paused || (worker->phase == HS_STORM_PHASE_RUN && worker->history &&
					hs_storm_history_is_full(worker->history));
}

static void fill(struct hs_storm_worker *worker, struct hs_storm_client *client)
{
	uint64_t now_ns;

	if (client->state != HS_STORM_CLIENT_READY || client->in_flight || must_wait(worker))
		return;
	now_ns = uv_hrtime();
	if (!has_more(worker, now_ns))
		return;
	if (worker->phase == HS_STORM_PHASE_RUN)
		fill_run(worker, client, now_ns);
	else
		fill_side(worker, client, now_ns);
	hs_storm_client_flush(client);
}

/* ---- open loop ---- */

/* The next client with room, round robin. */
static struct hs_storm_client *find_room(struct hs_storm_worker *worker)
{
	for (unsigned i = 0; i < worker->clients_count; i++) {
		struct hs_storm_client *client = &worker->clients[worker->cursor];

		worker->cursor =
			worker->cursor + 1 < worker->clients_count ? worker->cursor + 1 : 0;
		if (client->state == HS_STORM_CLIENT_READY &&
		    client->in_flight < worker->options->pipeline)
			return client;
	}
	return NULL;
}

static void arm_pace(struct hs_storm_worker *worker, uint64_t wait_ns)
{
	struct itimerspec when = {0};

	if (wait_ns < PACE_NS_MIN)
		wait_ns = PACE_NS_MIN;
	when.it_value.tv_sec = (time_t)(wait_ns / 1000000000);
	when.it_value.tv_nsec = (long)(wait_ns % 1000000000);
	hs_check(timerfd_settime(worker->pace_fd, 0, &when, NULL) == 0);
	if (!uv_is_active((uv_handle_t *)&worker->pace))
		uv_poll_start(&worker->pace, UV_READABLE, on_pace);
}

/* Sends due requests. If all clients are full, no timer is set: the next reply continues. Requests that found no room
 * until the end of the run are never sent. */
static void pump(struct hs_storm_worker *worker)
{
	uint64_t now_ns = uv_hrtime();
	bool any = false;

	while (has_more(worker, now_ns)) {
		uint64_t due = due_ns(worker);
		struct hs_storm_client *client;

		if (due > now_ns) {
			arm_pace(worker, due - now_ns);
			break;
		}
		client = find_room(worker);
		if (!client)
			break;
		compose_next(worker, client, due);
		any = true;
	}
	if (worker->end_ns && now_ns >= worker->end_ns && !worker->stopped_ns)
		worker->stopped_ns = worker->end_ns;
	for (unsigned i = 0; any && i < worker->clients_count; i++)
		hs_storm_client_flush(&worker->clients[i]);
}

/* ---- events ---- */

/* Gives all idle clients something to send. */
static void send_all(struct hs_storm_worker *worker)
{
	if (is_open(worker)) {
		pump(worker);
		return;
	}
	for (unsigned i = 0; i < worker->clients_count; i++)
		fill(worker, &worker->clients[i]);
}

/* With nothing in flight: goes from a full window to reading its keys, and from there to the next window. False:
 * neither is due. */
static bool turn_window(struct hs_storm_worker *worker)
{
	if (!worker->history || worker->in_flight || worker->abandoned)
		return false;
	if (worker->phase == HS_STORM_PHASE_RUN && hs_storm_history_is_full(worker->history)) {
		begin_keys(worker, HS_STORM_PHASE_PROBE);
	} else if (worker->phase == HS_STORM_PHASE_PROBE && !has_more(worker, 0)) {
		hs_storm_history_close(worker->history);
		worker->phase = HS_STORM_PHASE_RUN;
	} else {
		return false;
	}
	send_all(worker);
	return true;
}

static void check_end(struct hs_storm_worker *worker)
{
	bool settled = true, alive = false;

	for (unsigned i = 0; i < worker->clients_count; i++) {
		enum hs_storm_client_state state = worker->clients[i].state;

		settled = settled &&
			  (state == HS_STORM_CLIENT_READY || state == HS_STORM_CLIENT_GIVEN_UP);
		alive = alive || state != HS_STORM_CLIENT_GIVEN_UP;
	}
	if (!alive)
		worker->abandoned = true;
	while (turn_window(worker)) {
	}
	if (worker->phase == HS_STORM_PHASE_CONNECT
		    ? settled || worker->abandoned
		    : worker->in_flight == 0 && !has_more(worker, uv_hrtime()))
		uv_stop(&worker->loop);
}

/* Tells the verifier the smallest stamp in flight, so that it can drop older writes. */
static void move_horizon(struct hs_storm_worker *worker)
{
	uint64_t oldest;

	if (!hs_storm_verify_wants_horizon(worker->verify, &oldest))
		return;
	for (unsigned i = 0; i < worker->clients_count; i++) {
		uint64_t stamp = hs_storm_client_oldest(&worker->clients[i]);

		oldest = stamp < oldest ? stamp : oldest;
	}
	hs_storm_verify_horizon(worker->verify, oldest);
}

void hs_storm_worker_on_progress(struct hs_storm_worker *worker, struct hs_storm_client *client)
{
	if (worker->verify)
		move_horizon(worker);
	if (is_open(worker))
		pump(worker);
	else if (worker->order)
		send_all(worker); /* this reply may let waiting requests of other clients go */
	else
		fill(worker, client);
	/* Checks for the end only when it may have come, not after every reply of a long run. */
	if (worker->in_flight == 0 || client->state != HS_STORM_CLIENT_READY ||
	    worker->phase == HS_STORM_PHASE_CONNECT)
		check_end(worker);
}

static void add_retry(struct hs_storm_worker *worker, uint64_t key)
{
	hs_buf_append(&worker->again, &key, sizeof key);
}

/* Requests a key that could not be read again after the next tick. Once UNREAD_MAX reads of the phase have failed,
 * for all keys together, the key is reported as unread instead. */
static void probe_later(struct hs_storm_worker *worker, uint64_t key)
{
	if (++worker->unread > UNREAD_MAX) {
		hs_storm_history_unread(worker->history, key,
					worker->phase == HS_STORM_PHASE_FINAL);
		return;
	}
	add_retry(worker, key);
	worker->retry_paused = true;
}

/* Later requests of the same client must not contradict this reply: their floor rises. */
static void verify_answer(struct hs_storm_worker *worker, struct hs_storm_client *client,
			  const struct hs_storm_request *request,
			  const struct hs_parsed_reply *answer)
{
	if (answer->type == HS_PARSED_ERROR && worker->phase == HS_STORM_PHASE_FINAL)
		hs_storm_verify_unread(worker->verify, request->key);
	hs_storm_client_raise_floor(
		client, request->key,
		hs_storm_verify_reply(worker->verify, request, answer, worker->phase));
}

/* --ordered: the request is answered or lost. */
static void end_access(struct hs_storm_worker *worker, const struct hs_storm_request *request)
{
	if (worker->order && worker->phase == HS_STORM_PHASE_RUN)
		hs_storm_order_done(
			worker->order,
			(struct hs_storm_access){request->key, request->kind != HS_STORM_GET});
}

static bool is_read(const struct hs_storm_request *request)
{
	return request->kind == HS_STORM_GET || request->kind == HS_STORM_REQUEST || request->read;
}

/* Parses a reply: only for errors, acts and --verify. */
static void read_answer(struct hs_storm_worker *worker, struct hs_storm_client *client,
			const struct hs_storm_request *request, struct hs_bytes reply)
{
	struct hs_parsed_reply answer = {0};
	int64_t head = hs_parse_reply_head(&answer, reply.data, reply.len);
	bool error = answer.type == HS_PARSED_ERROR;

	hs_check(head > 0);
	if (error)
		hs_storm_acts_error(request, &answer, hs_storm_worker_counts(worker));
	if (request->kind == HS_STORM_ACT) {
		hs_storm_acts_answer(
			worker, client, request, &answer,
			(struct hs_bytes){reply.data + head, reply.len - (size_t)head});
		if (worker->phase != HS_STORM_PHASE_RUN && error)
			probe_later(worker, request->key);
	}
	if (worker->verify)
		verify_answer(worker, client, request, &answer);
}

void hs_storm_worker_on_answer(struct hs_storm_worker *worker, struct hs_storm_client *client,
			       const struct hs_storm_request *request, struct hs_bytes reply)
{
	struct hs_storm_counts *counts = hs_storm_worker_counts(worker);
	bool error = reply.data[0] == '-' || reply.data[0] == '!';
	uint64_t now_ns = worker->read_ns;

	worker->in_flight--;
	client->in_flight--;
	worker->last_answer_ns = now_ns;
	counts->answered++;
	counts->last_ns = now_ns;
	if (!error)
		hs_histogram_add(is_read(request) ? &counts->reads_ns : &counts->writes_ns,
				 now_ns > request->due_ns ? now_ns - request->due_ns : 0);
	if (error || request->kind == HS_STORM_ACT || worker->verify)
		read_answer(worker, client, request, reply);
	end_access(worker, request);
}

void hs_storm_worker_on_lost(struct hs_storm_worker *worker, struct hs_storm_client *client,
			     const struct hs_storm_request *request, bool sent)
{
	struct hs_storm_counts *counts = hs_storm_worker_counts(worker);

	worker->in_flight--;
	client->in_flight--;
	if (sent) {
		counts->lost++;
	} else { /* it counts as not drawn */
		counts->sent--;
		counts->unsent++;
		worker->quota += worker->phase == HS_STORM_PHASE_RUN && worker->quota < UINT64_MAX;
	}
	if (worker->verify)
		(sent ? hs_storm_verify_lost : hs_storm_verify_undone)(worker->verify, request);
	if (worker->history)
		(sent ? hs_storm_history_lost : hs_storm_history_undone)(worker->history, request);
	end_access(worker, request);
	if (worker->phase != HS_STORM_PHASE_RUN)
		add_retry(worker, request->key);
}

static void on_pace(uv_poll_t *poll, int status, int events)
{
	struct hs_storm_worker *worker = poll->data;
	uint64_t expired;

	(void)status;
	(void)events;
	if (read(worker->pace_fd, &expired, sizeof expired) != (ssize_t)sizeof expired)
		return;
	if (is_open(worker))
		pump(worker);
}

/* Ends a phase whose replies do not come. */
static void give_up_waiting(struct hs_storm_worker *worker, uint64_t waited_ns, const char *when)
{
	char why[64];

	snprintf(why, sizeof why, "no answer for %g s%s", (double)waited_ns / 1e9, when);
	worker->abandoned = true;
	for (unsigned i = 0; i < worker->clients_count; i++) {
		if (worker->clients[i].in_flight)
			hs_storm_client_drop(&worker->clients[i], why);
	}
}

static void watch_silence(struct hs_storm_worker *worker, uint64_t now_ns, bool more)
{
	const struct hs_storm_options *options = worker->options;
	uint64_t resend_timeout_ns = options->cluster ? options->resend_timeout_us * 1000 : 0;

	if (worker->phase != HS_STORM_PHASE_RUN) {
		if (now_ns > worker->last_answer_ns + SILENCE_NS)
			give_up_waiting(worker, SILENCE_NS, "");
	} else if (!more) {
		if (now_ns > worker->stopped_ns + DRAIN_NS + resend_timeout_ns)
			give_up_waiting(worker, DRAIN_NS + resend_timeout_ns, " after the run");
	} else if (!worker->end_ns && worker->in_flight > 0) {
		/* Only for a run limited by --count; one with --duration ends by itself. */
		worker->cut_short =
			now_ns > worker->last_answer_ns + SILENCE_NS + resend_timeout_ns;
		if (worker->cut_short)
			give_up_waiting(worker, SILENCE_NS + resend_timeout_ns, "");
	}
}

static void on_tick(uv_timer_t *timer)
{
	struct hs_storm_worker *worker = timer->data;
	uint64_t now_ns = uv_hrtime();
	bool more = has_more(worker, now_ns);

	worker->retry_paused = false;
	atomic_store_explicit(&worker->progress, worker->counts.answered, memory_order_relaxed);
	watch_silence(worker, now_ns, more);
	if (worker->cluster)
		hs_storm_map_tick(worker);
	send_all(worker);
	check_end(worker);
	if (worker->on_tick)
		worker->on_tick(worker->on_tick_context, worker);
}

/* ---- running ---- */

/* Open loop: requests that were due before sending ended, but were never sent. */
static uint64_t count_overdue(const struct hs_storm_worker *worker)
{
	uint64_t until = worker->stopped_ns, due;

	if (worker->interval_ns <= 0)
		return 0;
	if (worker->end_ns && until > worker->end_ns)
		until = worker->end_ns;
	due = (uint64_t)((double)(until - worker->start_ns) / worker->interval_ns);
	if (worker->options->count && due > worker->counts.sent + worker->quota)
		due = worker->counts.sent + worker->quota;
	return due > worker->counts.sent ? due - worker->counts.sent : 0;
}

static void report_unread(struct hs_storm_worker *worker)
{
	uint64_t key;

	while (next_side_key(worker, &key)) {
		if (worker->history)
			hs_storm_history_unread(worker->history, key, true);
		else
			hs_storm_verify_unread(worker->verify, key);
	}
}

void hs_storm_worker_run(struct hs_storm_worker *worker)
{
	uv_update_time(&worker->loop);
	uv_timer_start(&worker->tick, on_tick, TICK_MS, TICK_MS);
	for (unsigned i = 0; worker->phase == HS_STORM_PHASE_CONNECT && i < worker->clients_count;
	     i++)
		hs_storm_client_start(&worker->clients[i]);
	send_all(worker);
	check_end(worker);
	uv_run(&worker->loop, UV_RUN_DEFAULT);
	uv_timer_stop(&worker->tick);
	uv_poll_stop(&worker->pace);
	if (worker->phase == HS_STORM_PHASE_RUN)
		worker->counts.overdue = count_overdue(worker);
	else if (worker->phase == HS_STORM_PHASE_FINAL)
		report_unread(worker);
}
