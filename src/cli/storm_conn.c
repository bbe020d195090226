/* A client of the storm: its connections (upstream/), and on each the order of what is under way. What to send and
 * what a reply means is its worker's business. One server is one link; of a Cluster there is a link to every node.
 *
 *     OPENING ──up──> READY ──lost──> OPENING (again after 10 ms, doubling to 1 s) …   too many failures: GIVEN_UP
 *
 * Requests composed during one event leave in one write. When a link is lost, what the kernel had taken any byte of
 * has an unknown outcome; the rest was certainly not sent, and is taken back. */
#include "cli/storm_history.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "wire/compose.h"

static const struct hs_backoff_limits pauses = {10000, 1000000};

void hs_storm_conn_init(struct hs_storm_conn *conn, struct hs_storm_worker *worker)
{
	*conn = (struct hs_storm_conn){.worker = worker};
	hs_storm_conn_link(conn, worker->nodes_count - 1);
	conn->adding = conn->links[0];
	conn->out = &conn->adding->upstream.out;
}

static struct hs_storm_link *create_link(struct hs_storm_conn *conn, uint32_t node)
{
	struct hs_storm_link *link = hs_mem_zalloc(sizeof *link);
	uint64_t depth = conn->worker->options->pipeline;
	uint32_t slots = 1;

	if (depth < HS_STORM_SIDE_PIPELINE)
		depth = HS_STORM_SIDE_PIPELINE;
	depth += HS_STORM_ACT_REQUESTS_MAX; /* the end of an act */
	if (conn->worker->cluster)
		depth = 2 * depth + 1; /* ASKING before each; CLUSTER SLOTS */
	while (slots < depth)
		slots *= 2;
	link->conn = conn;
	link->node = node;
	link->flight_mask = slots - 1;
	link->flights = hs_mem_alloc(slots * sizeof *link->flights);
	hs_upstream_init(&link->upstream, 2);
	link->upstream.same = &conn->worker->same;
	return link;
}

struct hs_storm_link *hs_storm_conn_link(struct hs_storm_conn *conn, uint32_t node)
{
	while (conn->links_count <= node) {
		conn->links =
			hs_mem_realloc(conn->links, (conn->links_count + 1) * sizeof *conn->links);
		conn->links[conn->links_count] = create_link(conn, conn->links_count);
		conn->links_count++;
	}
	return conn->links[node];
}

void hs_storm_conn_deinit(struct hs_storm_conn *conn)
{
	for (uint32_t i = 0; i < conn->links_count; i++) {
		struct hs_storm_link *link = conn->links[i];

		hs_upstream_deinit(&link->upstream);
		hs_buf_deinit(&link->kept);
		hs_buf_deinit(&link->why);
		hs_mem_free(&link->flights);
		hs_mem_free(&link);
	}
	hs_mem_free(&conn->links);
}

/* ---- requests ---- */

struct hs_storm_flight *hs_storm_link_add(struct hs_storm_link *link)
{
	hs_check(link->flight_count <= link->flight_mask);
	return hs_storm_link_flight(link, link->flight_count++);
}

struct hs_storm_flight *hs_storm_link_take(struct hs_storm_link *link)
{
	hs_check(link->flight_count > 0);
	link->flight_count--;
	return &link->flights[link->flight_head++ & link->flight_mask];
}

void hs_storm_link_say(struct hs_storm_link *link, enum hs_storm_kind kind, const char *words)
{
	struct hs_storm_flight *flight = hs_storm_link_add(link);
	size_t before = link->upstream.out.len;

	*flight = (struct hs_storm_flight){.kind = kind};
	hs_compose_line(&link->upstream.out, words);
	flight->bytes = (uint32_t)(link->upstream.out.len - before);
	link->upstream.composed += flight->bytes;
}

struct hs_storm_flight *hs_storm_conn_add(struct hs_storm_conn *conn, uint16_t slot)
{
	if (conn->worker->cluster)
		hs_storm_cluster_aim(conn, slot);
	conn->added = conn->adding ? hs_storm_link_add(conn->adding) : hs_storm_cluster_park(conn);
	conn->under_way++;
	conn->worker->under_way++;
	hs_storm_worker_counts(conn->worker)->sent++;
	conn->out_before = conn->out->len;
	return conn->added;
}

void hs_storm_conn_added(struct hs_storm_conn *conn)
{
	struct hs_storm_flight *flight = conn->added;

	flight->bytes = (uint32_t)(conn->out->len - conn->out_before);
	if (conn->adding)
		conn->adding->upstream.composed += flight->bytes;
	if (conn->worker->cluster)
		hs_storm_cluster_added(conn, flight);
}

void hs_storm_conn_flush(struct hs_storm_conn *conn)
{
	for (uint32_t i = 0; i < conn->links_count; i++) {
		struct hs_storm_link *link = conn->links[i];

		if (link->upstream.io && link->upstream.state == HS_UPSTREAM_UP)
			hs_conn_send(&link->upstream);
	}
}

uint64_t hs_storm_conn_oldest(const struct hs_storm_conn *conn)
{
	uint64_t oldest = UINT64_MAX;

	for (uint32_t i = 0; i < conn->links_count; i++) {
		const struct hs_storm_link *link = conn->links[i];
		/* What was sent again stands behind what is newer. */
		uint32_t count =
			conn->worker->cluster ? link->flight_count : link->flight_count > 0;

		for (uint32_t j = 0; j < count; j++) {
			const struct hs_storm_flight *flight = hs_storm_link_flight(link, j);

			if (flight->kind < HS_STORM_ASKING && flight->stamp < oldest)
				oldest = flight->stamp;
		}
	}
	return hs_storm_cluster_oldest(conn, oldest);
}

void hs_storm_conn_raise(struct hs_storm_conn *conn, uint64_t key, int64_t floor)
{
	for (uint32_t i = 0; i < conn->links_count; i++) {
		struct hs_storm_link *link = conn->links[i];

		for (uint32_t j = 0; j < link->flight_count; j++) {
			struct hs_storm_flight *flight = hs_storm_link_flight(link, j);

			if (flight->key == key && flight->floor < floor)
				flight->floor = floor;
		}
	}
	hs_storm_cluster_raise(conn, key, floor);
}

/* ---- the end of a connection ---- */

/* What was under way, oldest first. */
static void forget_flights(struct hs_storm_link *link)
{
	uint64_t sent = link->upstream.sent, at = link->upstream.composed;

	for (uint32_t i = 0; i < link->flight_count; i++)
		at -= hs_storm_link_flight(link, i)->bytes;
	while (link->flight_count) {
		struct hs_storm_flight *flight = hs_storm_link_take(link);

		if (flight->kind < HS_STORM_ASKING && !flight->told)
			hs_storm_worker_on_lost(link->conn->worker, link->conn, flight, at < sent);
		at += flight->bytes;
	}
	link->unit_replies = 0;
	link->tells_map = false;
	link->kept.len = link->kept_at = 0;
}

static void on_reconnect(uv_timer_t *timer);

void hs_storm_worker_wake(struct hs_storm_worker *worker, uint64_t at_us)
{
	uint64_t now_us = uv_hrtime() / 1000;
	uint64_t ms = at_us > now_us ? (at_us - now_us + 999) / 1000 : 0;

	if (!uv_is_active((uv_handle_t *)&worker->reconnect) ||
	    ms < uv_timer_get_due_in(&worker->reconnect))
		uv_timer_start(&worker->reconnect, on_reconnect, ms, 0);
}

static bool any_ready(const struct hs_storm_worker *worker)
{
	for (unsigned i = 0; i < worker->conn_count; i++) {
		if (worker->conns[i].state == HS_STORM_CONN_READY)
			return true;
	}
	return false;
}

/* At the start a failure is told at once: trying again for seconds would hide it. */
static bool has_failed_for_good(const struct hs_storm_link *link)
{
	const struct hs_storm_worker *worker = link->conn->worker;

	if (worker->phase == HS_STORM_PHASE_CONNECT && !worker->options->retries_given &&
	    !any_ready(worker))
		return true;
	return link->upstream.backoff.failures > worker->options->retries;
}

void hs_storm_conn_look(struct hs_storm_conn *conn)
{
	const struct hs_storm_worker *worker = conn->worker;
	bool up = false, ready = true, hopeless = true;

	for (uint32_t i = 0; i < conn->links_count; i++) {
		const struct hs_storm_link *link = conn->links[i];
		bool down = link->upstream.state == HS_UPSTREAM_DOWN;

		if (!hs_storm_link_is_wanted(link))
			continue;
		up = up || link->upstream.state == HS_UPSTREAM_UP;
		hopeless = hopeless && down && link->failed_for_good;
		/* At the start all that can be reached have to be. */
		if (worker->phase == HS_STORM_PHASE_CONNECT &&
		    link->upstream.state != HS_UPSTREAM_UP && link->upstream.backoff.failures == 0)
			ready = false;
	}
	if (worker->cluster && !worker->cluster->known)
		ready = false;
	if (hopeless && conn->state != HS_STORM_CONN_GIVEN_UP)
		hs_storm_worker_counts(conn->worker)->given_up++;
	conn->state = hopeless	    ? HS_STORM_CONN_GIVEN_UP
		      : up && ready ? HS_STORM_CONN_READY
				    : HS_STORM_CONN_OPENING;
}

/* It is closed; what was under way on it is lost. */
static void close_link(struct hs_storm_link *link)
{
	hs_conn_close(&link->upstream);
	link->upstream.state = HS_UPSTREAM_DOWN;
	forget_flights(link);
}

void hs_storm_link_drop(struct hs_storm_link *link, const char *why)
{
	struct hs_storm_worker *worker = link->conn->worker;
	struct hs_storm_counts *counts = hs_storm_worker_counts(worker);

	if (link->upstream.state == HS_UPSTREAM_DOWN)
		return;
	hs_bytes_escape(hs_bytes_of(why), counts->trouble, sizeof counts->trouble);
	if (link->upstream.state == HS_UPSTREAM_UP)
		counts->disconnects++;
	else
		counts->connect_failures++;
	hs_backoff_wait(&link->upstream.backoff, &pauses, uv_hrtime() / 1000, &worker->chance);
	link->failed_for_good = has_failed_for_good(link);
	close_link(link);
	if (!link->failed_for_good || worker->cluster)
		hs_storm_worker_wake(worker, link->upstream.backoff.open_at_us);
	if (worker->cluster)
		worker->cluster->wanted = true;
	hs_storm_conn_look(link->conn);
}

void hs_storm_link_leave(struct hs_storm_link *link)
{
	link->wanted = false;
	if (link->flight_count == 0 && link->upstream.state != HS_UPSTREAM_DOWN)
		close_link(link);
}

void hs_storm_conn_drop(struct hs_storm_conn *conn, const char *why)
{
	for (uint32_t i = 0; i < conn->links_count; i++)
		hs_storm_link_drop(conn->links[i], why);
	hs_storm_cluster_give_up(conn);
}

void hs_storm_conn_stop(struct hs_storm_conn *conn)
{
	for (uint32_t i = 0; i < conn->links_count; i++)
		hs_conn_close(&conn->links[i]->upstream);
	hs_storm_cluster_give_up(conn);
}

/* ---- replies ---- */

static void take(void *context, struct hs_bytes reply, bool owned)
{
	struct hs_storm_link *link = context;

	(void)owned;
	if (link->flight_count == 0) {
		hs_upstream_close(&link->upstream, "it answered what nobody asked");
		return;
	}
	hs_backoff_clear(&link->upstream.backoff);
	link->conn->from = link;
	if (link->conn->worker->cluster) {
		hs_storm_cluster_take(link, reply);
		return;
	}
	hs_storm_worker_on_answer(link->conn->worker, link->conn, hs_storm_link_take(link), reply);
}

static struct hs_storm_link *link_of(struct hs_upstream *upstream)
{
	return hs_list_entry(upstream, struct hs_storm_link, upstream);
}

static void on_receive(void *context, struct hs_upstream *upstream, const char *data, size_t len)
{
	struct hs_storm_worker *worker = context;
	struct hs_storm_link *link = link_of(upstream);

	worker->read_ns = uv_hrtime();
	link->silent_ticks = 0;
	hs_upstream_receive(upstream, worker->read_ns / 1000, data, len, HS_REPLY_BYTES_MAX, take,
			    link);
	if (upstream->close_reason)
		hs_storm_link_drop(link, upstream->close_reason);
	if (link->conn->parked)
		hs_storm_cluster_release(link->conn);
	hs_storm_worker_on_progress(worker, link->conn);
}

/* One large block for all, which stays in the processor's cache; behind the beginning of a reply, its rest. */
static char *room(struct hs_upstream *upstream, size_t *size)
{
	struct hs_buf *partial = &upstream->partial;

	*size = partial->len > 0 ? (size_t)HS_READ_BYTES : (size_t)HS_STORM_INPUT_BYTES;
	return partial->len > 0 ? hs_buf_reserve(partial, *size)
				: link_of(upstream)->conn->worker->driver.buffer;
}

/* ---- connecting ---- */

static void on_up(void *context, struct hs_upstream *upstream)
{
	struct hs_storm_worker *worker = context;
	struct hs_storm_conn *conn = link_of(upstream)->conn;

	upstream->state = HS_UPSTREAM_UP;
	if (worker->history)
		conn->client = hs_storm_history_client(worker->history);
	if (worker->cluster && worker->cluster->asked_ns == 0)
		hs_storm_map_ask(worker);
	if (conn->parked)
		hs_storm_cluster_release(conn);
	hs_storm_conn_look(conn);
	hs_storm_worker_on_progress(worker, conn);
}

static void on_down(void *context, struct hs_upstream *upstream, const char *why)
{
	hs_storm_link_drop(link_of(upstream), why);
	hs_storm_worker_on_progress(context, link_of(upstream)->conn);
}

void hs_storm_conn_drive(struct hs_storm_worker *worker)
{
	worker->driver = (struct hs_conn_driver){
		.loop = &worker->loop,
		.identity = &worker->options->target.identity,
		.buffer = hs_mem_alloc(HS_STORM_INPUT_BYTES),
		.classic = true,
		.context = worker,
		.up = on_up,
		.down = on_down,
		.receive = on_receive,
		.room = room,
	};
}

void hs_storm_link_open(struct hs_storm_link *link)
{
	struct hs_storm_worker *worker = link->conn->worker;
	const struct hs_storm_node *node = &worker->nodes[link->node];
	const struct hs_conn_server server = {
		.host = node->at.host, .port = node->at.port, .expected_id = ""};

	if (!hs_upstream_may_open(&link->upstream, uv_hrtime() / 1000))
		return;
	hs_upstream_opening(&link->upstream, uv_hrtime() / 1000);
	link->silent_ticks = 0;
	link->born++;
	hs_conn_open(&worker->driver, &link->upstream, &server);
}

/* Those whose pause is over; and what was put off has its time, too. */
static void on_reconnect(uv_timer_t *timer)
{
	struct hs_storm_worker *worker = timer->data;

	for (unsigned i = 0; i < worker->conn_count; i++) {
		struct hs_storm_conn *conn = &worker->conns[i];

		for (uint32_t j = 0; j < conn->links_count; j++) {
			struct hs_storm_link *link = conn->links[j];

			if (conn->state == HS_STORM_CONN_GIVEN_UP || !hs_storm_link_is_wanted(link))
				continue;
			hs_storm_link_open(link);
			if (link->upstream.state == HS_UPSTREAM_DOWN)
				hs_storm_worker_wake(worker, link->upstream.backoff.open_at_us);
		}
		if (conn->parked) {
			hs_storm_cluster_release(conn);
			hs_storm_worker_on_progress(worker, conn);
		}
	}
}

void hs_storm_conn_start(struct hs_storm_conn *conn)
{
	for (uint32_t i = 0; i < conn->links_count; i++)
		hs_storm_link_open(conn->links[i]);
}
