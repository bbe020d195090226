/* A client of the storm: its connections (upstream/), and on each the order of the requests in flight. The worker
 * decides what to send and what a reply means. A client has one connection to a single server, or one to each node of
 * a Cluster.
 *
 *     OPENING ──up──> READY ──lost──> OPENING (again after 10 ms, doubling to 1 s) …   too many failures: GIVEN_UP
 *
 * Requests composed during one event leave in one write. When a connection is lost, requests of which the kernel took
 * a byte have an unknown outcome; the others were certainly not sent, and are taken back. */
#include "cli/storm_history.h"

#include "base/limits.h"
#include "base/list.h"
#include "base/mem.h"
#include "wire/compose.h"

static const struct hs_backoff_limits pauses = {10000, 1000000};

void hs_storm_client_init(struct hs_storm_client *client, struct hs_storm_worker *worker)
{
	*client = (struct hs_storm_client){.worker = worker};
	hs_storm_client_connection(client, worker->nodes_count - 1);
	client->adding = client->connections[0];
	client->out = &client->adding->upstream.out;
}

static struct hs_storm_connection *create_connection(struct hs_storm_client *client, uint32_t node)
{
	struct hs_storm_connection *connection = hs_mem_zalloc(sizeof *connection);
	uint64_t depth = client->worker->options->pipeline;
	uint32_t slots = 1;

	if (depth < HS_STORM_SIDE_PIPELINE)
		depth = HS_STORM_SIDE_PIPELINE;
	depth += HS_STORM_ACT_REQUESTS_MAX; /* the last act may exceed the pipeline */
	if (client->worker->cluster)
		depth = 2 * depth + 1; /* ASKING before each; CLUSTER SLOTS */
	while (slots < depth)
		slots *= 2;
	connection->client = client;
	connection->node = node;
	connection->ring_mask = slots - 1;
	connection->requests = hs_mem_alloc(slots * sizeof *connection->requests);
	hs_upstream_init(&connection->upstream, 2);
	connection->upstream.last_array = &client->worker->last_array;
	return connection;
}

struct hs_storm_connection *hs_storm_client_connection(struct hs_storm_client *client,
						       uint32_t node)
{
	while (client->connections_count <= node) {
		client->connections =
			hs_mem_realloc(client->connections, (client->connections_count + 1) *
								    sizeof *client->connections);
		client->connections[client->connections_count] =
			create_connection(client, client->connections_count);
		client->connections_count++;
	}
	return client->connections[node];
}

void hs_storm_client_deinit(struct hs_storm_client *client)
{
	for (uint32_t i = 0; i < client->connections_count; i++) {
		struct hs_storm_connection *connection = client->connections[i];

		hs_upstream_deinit(&connection->upstream);
		hs_buf_deinit(&connection->resend_bytes);
		hs_buf_deinit(&connection->why);
		hs_mem_free(&connection->requests);
		hs_mem_free(&connection);
	}
	hs_mem_free(&client->connections);
}

/* ---- requests ---- */

struct hs_storm_request *hs_storm_connection_add(struct hs_storm_connection *connection)
{
	hs_check(connection->ring_count <= connection->ring_mask);
	return hs_storm_connection_request(connection, connection->ring_count++);
}

struct hs_storm_request *hs_storm_connection_take(struct hs_storm_connection *connection)
{
	hs_check(connection->ring_count > 0);
	connection->ring_count--;
	return &connection->requests[connection->ring_head++ & connection->ring_mask];
}

void hs_storm_connection_send_control(struct hs_storm_connection *connection,
				      enum hs_storm_kind kind, const char *words)
{
	struct hs_storm_request *request = hs_storm_connection_add(connection);
	size_t before = connection->upstream.out.len;

	*request = (struct hs_storm_request){.kind = kind};
	hs_compose_line(&connection->upstream.out, words);
	request->bytes = (uint32_t)(connection->upstream.out.len - before);
	connection->upstream.composed += request->bytes;
}

struct hs_storm_request *hs_storm_client_add(struct hs_storm_client *client, uint16_t slot)
{
	if (client->worker->cluster)
		hs_storm_cluster_route(client, slot);
	client->added = client->adding ? hs_storm_connection_add(client->adding)
				       : hs_storm_cluster_park(client);
	client->in_flight++;
	client->worker->in_flight++;
	hs_storm_worker_counts(client->worker)->sent++;
	client->out_before = client->out->len;
	return client->added;
}

void hs_storm_client_added(struct hs_storm_client *client)
{
	struct hs_storm_request *request = client->added;

	request->bytes = (uint32_t)(client->out->len - client->out_before);
	if (client->adding)
		client->adding->upstream.composed += request->bytes;
	if (client->worker->cluster)
		hs_storm_cluster_added(client, request);
}

void hs_storm_client_flush(struct hs_storm_client *client)
{
	for (uint32_t i = 0; i < client->connections_count; i++) {
		struct hs_storm_connection *connection = client->connections[i];

		if (connection->upstream.io && connection->upstream.state == HS_UPSTREAM_UP)
			hs_conn_send(&connection->upstream);
	}
}

uint64_t hs_storm_client_oldest(const struct hs_storm_client *client)
{
	uint64_t oldest = UINT64_MAX;

	for (uint32_t i = 0; i < client->connections_count; i++) {
		const struct hs_storm_connection *connection = client->connections[i];
		/* In a Cluster, resent requests stand behind newer ones: search the whole ring. */
		uint32_t count = client->worker->cluster ? connection->ring_count
							 : connection->ring_count > 0;

		for (uint32_t j = 0; j < count; j++) {
			const struct hs_storm_request *request =
				hs_storm_connection_request(connection, j);

			if (request->kind < HS_STORM_ASKING && request->stamp < oldest)
				oldest = request->stamp;
		}
	}
	return hs_storm_cluster_oldest(client, oldest);
}

void hs_storm_client_raise_floor(struct hs_storm_client *client, uint64_t key, int64_t floor)
{
	for (uint32_t i = 0; i < client->connections_count; i++) {
		struct hs_storm_connection *connection = client->connections[i];

		for (uint32_t j = 0; j < connection->ring_count; j++) {
			struct hs_storm_request *request =
				hs_storm_connection_request(connection, j);

			if (request->key == key && request->floor < floor)
				request->floor = floor;
		}
	}
	hs_storm_cluster_raise_floor(client, key, floor);
}

/* ---- the end of a connection ---- */

/* Ends the requests in flight, oldest first. */
static void lose_requests(struct hs_storm_connection *connection)
{
	uint64_t sent = connection->upstream.sent, at = connection->upstream.composed;

	for (uint32_t i = 0; i < connection->ring_count; i++)
		at -= hs_storm_connection_request(connection, i)->bytes;
	while (connection->ring_count) {
		struct hs_storm_request *request = hs_storm_connection_take(connection);

		if (request->kind < HS_STORM_ASKING && !request->reply_counted)
			hs_storm_worker_on_lost(connection->client->worker, connection->client,
						request, at < sent);
		at += request->bytes;
	}
	connection->transaction_replies = 0;
	connection->map_requested = false;
	connection->resend_bytes.len = connection->resend_at = 0;
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
	for (unsigned i = 0; i < worker->clients_count; i++) {
		if (worker->clients[i].state == HS_STORM_CLIENT_READY)
			return true;
	}
	return false;
}

/* At the start a failure ends the run at once: retries would hide a wrong address for seconds. */
static bool has_failed_for_good(const struct hs_storm_connection *connection)
{
	const struct hs_storm_worker *worker = connection->client->worker;

	if (worker->phase == HS_STORM_PHASE_CONNECT && !worker->options->retries_given &&
	    !any_ready(worker))
		return true;
	return connection->upstream.backoff.failures > worker->options->retries;
}

void hs_storm_client_update_state(struct hs_storm_client *client)
{
	const struct hs_storm_worker *worker = client->worker;
	bool up = false, ready = true, all_failed = true;

	for (uint32_t i = 0; i < client->connections_count; i++) {
		const struct hs_storm_connection *connection = client->connections[i];
		bool down = connection->upstream.state == HS_UPSTREAM_DOWN;

		if (!hs_storm_connection_is_wanted(connection))
			continue;
		up = up || connection->upstream.state == HS_UPSTREAM_UP;
		all_failed = all_failed && down && connection->failed_for_good;
		/* At the start, every node that can be reached must be connected. */
		if (worker->phase == HS_STORM_PHASE_CONNECT &&
		    connection->upstream.state != HS_UPSTREAM_UP &&
		    connection->upstream.backoff.failures == 0)
			ready = false;
	}
	if (worker->cluster && !worker->cluster->known)
		ready = false;
	if (all_failed && client->state != HS_STORM_CLIENT_GIVEN_UP)
		hs_storm_worker_counts(client->worker)->given_up++;
	client->state = all_failed    ? HS_STORM_CLIENT_GIVEN_UP
			: up && ready ? HS_STORM_CLIENT_READY
				      : HS_STORM_CLIENT_OPENING;
}

/* Closes the connection; its requests in flight are lost. */
static void end_connection(struct hs_storm_connection *connection)
{
	hs_conn_close(&connection->upstream);
	connection->upstream.state = HS_UPSTREAM_DOWN;
	lose_requests(connection);
}

void hs_storm_connection_drop(struct hs_storm_connection *connection, const char *why)
{
	struct hs_storm_worker *worker = connection->client->worker;
	struct hs_storm_counts *counts = hs_storm_worker_counts(worker);

	if (connection->upstream.state == HS_UPSTREAM_DOWN)
		return;
	hs_bytes_escape(hs_bytes_of(why), counts->last_error, sizeof counts->last_error);
	if (connection->upstream.state == HS_UPSTREAM_UP)
		counts->disconnects++;
	else
		counts->connect_failures++;
	hs_backoff_wait(&connection->upstream.backoff, &pauses, uv_hrtime() / 1000,
			&worker->chance);
	connection->failed_for_good = has_failed_for_good(connection);
	end_connection(connection);
	if (!connection->failed_for_good || worker->cluster)
		hs_storm_worker_wake(worker, connection->upstream.backoff.open_at_us);
	if (worker->cluster)
		worker->cluster->wanted = true;
	hs_storm_client_update_state(connection->client);
}

void hs_storm_connection_retire(struct hs_storm_connection *connection)
{
	connection->wanted = false;
	if (connection->ring_count == 0 && connection->upstream.state != HS_UPSTREAM_DOWN)
		end_connection(connection);
}

void hs_storm_client_drop(struct hs_storm_client *client, const char *why)
{
	for (uint32_t i = 0; i < client->connections_count; i++)
		hs_storm_connection_drop(client->connections[i], why);
	hs_storm_cluster_give_up(client);
}

void hs_storm_client_stop(struct hs_storm_client *client)
{
	for (uint32_t i = 0; i < client->connections_count; i++)
		hs_conn_close(&client->connections[i]->upstream);
	hs_storm_cluster_give_up(client);
}

/* ---- replies ---- */

static void take(void *context, struct hs_bytes reply, bool owned)
{
	struct hs_storm_connection *connection = context;

	(void)owned;
	if (connection->ring_count == 0) {
		hs_upstream_close(&connection->upstream, "it sent a reply without a request");
		return;
	}
	hs_backoff_clear(&connection->upstream.backoff);
	connection->client->from = connection;
	if (connection->client->worker->cluster) {
		hs_storm_cluster_take(connection, reply);
		return;
	}
	hs_storm_worker_on_answer(connection->client->worker, connection->client,
				  hs_storm_connection_take(connection), reply);
}

static struct hs_storm_connection *connection_of(struct hs_upstream *upstream)
{
	return hs_list_entry(upstream, struct hs_storm_connection, upstream);
}

static void on_receive(void *context, struct hs_upstream *upstream, const char *data, size_t len)
{
	struct hs_storm_worker *worker = context;
	struct hs_storm_connection *connection = connection_of(upstream);

	worker->read_ns = uv_hrtime();
	connection->silent_ticks = 0;
	hs_upstream_receive(upstream, worker->read_ns / 1000, data, len, HS_REPLY_BYTES_MAX, take,
			    connection);
	if (upstream->close_reason)
		hs_storm_connection_drop(connection, upstream->close_reason);
	if (connection->client->parked)
		hs_storm_cluster_release(connection->client);
	hs_storm_worker_on_progress(worker, connection->client);
}

/* Reads go to one large block for all connections, which stays in the CPU cache. The rest of a partial reply goes
 * behind its beginning. */
static char *room(struct hs_upstream *upstream, size_t *size)
{
	struct hs_buf *partial = &upstream->partial;

	*size = partial->len > 0 ? (size_t)HS_READ_BYTES : (size_t)HS_STORM_INPUT_BYTES;
	return partial->len > 0 ? hs_buf_reserve(partial, *size)
				: connection_of(upstream)->client->worker->driver.buffer;
}

/* ---- connecting ---- */

static void on_up(void *context, struct hs_upstream *upstream)
{
	struct hs_storm_worker *worker = context;
	struct hs_storm_client *client = connection_of(upstream)->client;

	upstream->state = HS_UPSTREAM_UP;
	if (worker->history)
		client->history_client = hs_storm_history_client(worker->history);
	if (worker->cluster && worker->cluster->asked_ns == 0)
		hs_storm_map_request(worker);
	if (client->parked)
		hs_storm_cluster_release(client);
	hs_storm_client_update_state(client);
	hs_storm_worker_on_progress(worker, client);
}

static void on_down(void *context, struct hs_upstream *upstream, const char *why)
{
	hs_storm_connection_drop(connection_of(upstream), why);
	hs_storm_worker_on_progress(context, connection_of(upstream)->client);
}

void hs_storm_worker_init_driver(struct hs_storm_worker *worker)
{
	worker->driver = (struct hs_conn_driver){
		.loop = &worker->loop,
		.conn_config = &worker->options->target.conn_config,
		.buffer = hs_mem_alloc(HS_STORM_INPUT_BYTES),
		.any_resp_server = true,
		.context = worker,
		.up = on_up,
		.down = on_down,
		.receive = on_receive,
		.room = room,
	};
}

void hs_storm_connection_open(struct hs_storm_connection *connection)
{
	struct hs_storm_worker *worker = connection->client->worker;
	const struct hs_storm_node *node = &worker->nodes[connection->node];
	const struct hs_conn_server server = {
		.host = node->at.host, .port = node->at.port, .expected_id = ""};

	if (!hs_upstream_may_open(&connection->upstream, uv_hrtime() / 1000))
		return;
	hs_upstream_opening(&connection->upstream, uv_hrtime() / 1000);
	connection->silent_ticks = 0;
	connection->generation++;
	hs_conn_open(&worker->driver, &connection->upstream, &server);
}

/* Opens connections whose backoff is over, and sends parked requests whose pause is over. */
static void on_reconnect(uv_timer_t *timer)
{
	struct hs_storm_worker *worker = timer->data;

	for (unsigned i = 0; i < worker->clients_count; i++) {
		struct hs_storm_client *client = &worker->clients[i];

		for (uint32_t j = 0; j < client->connections_count; j++) {
			struct hs_storm_connection *connection = client->connections[j];

			if (client->state == HS_STORM_CLIENT_GIVEN_UP ||
			    !hs_storm_connection_is_wanted(connection))
				continue;
			hs_storm_connection_open(connection);
			if (connection->upstream.state == HS_UPSTREAM_DOWN)
				hs_storm_worker_wake(worker,
						     connection->upstream.backoff.open_at_us);
		}
		if (client->parked) {
			hs_storm_cluster_release(client);
			hs_storm_worker_on_progress(worker, client);
		}
	}
}

void hs_storm_client_start(struct hs_storm_client *client)
{
	for (uint32_t i = 0; i < client->connections_count; i++)
		hs_storm_connection_open(client->connections[i]);
}
