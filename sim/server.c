/* Connections and cycles.
 *
 * Bytes that arrive wait for the server's next cycle. A cycle takes the connections in the order in which they
 * became ready, each with everything it has. At its end it sends what Redis sends before it sleeps: first broadcast
 * invalidations, which come after the replies of the cycle, then all output. */
#include "sim/server_internal.h"

#include "base/err.h"
#include "base/mem.h"
#include "keyspace/watch.h"

enum { BUF_KEEP = 4096 };

static const char hex[] = "0123456789abcdef";

void hs_sim_id_draw(struct hs_prng *prng, char id[HS_SIM_ID_LEN + 1])
{
	for (int i = 0; i < HS_SIM_ID_LEN; i += 8) {
		uint64_t number = hs_prng_next(prng);

		for (int j = 0; j < 8; j++)
			id[i + j] = hex[number >> j * 4 & 15];
	}
	id[HS_SIM_ID_LEN] = '\0';
}

void hs_sim_server_start(struct hs_sim_server *server)
{
	struct hs_sim_cluster *cluster = server->cluster;

	hs_sim_id_draw(&cluster->prng, server->run_id);
	hs_sim_id_draw(&cluster->prng, server->stream);
	server->stream_before[0] = '\0';
	server->stream_before_end = 0;
	server->started_us = hs_sim_now_us(cluster);
	server->life++;
}

void hs_sim_server_init(struct hs_sim_server *server, struct hs_sim_cluster *cluster,
			uint8_t number)
{
	server->cluster = cluster;
	server->number = number;
	hs_sim_id_draw(&cluster->prng, server->id);
	hs_list_init(&server->clients);
	hs_list_init(&server->ready);
	hs_list_init(&server->writes);
	server->map = hs_memkv_create();
	hs_memkv_limit(server->map, cluster->options.bytes_max);
	hs_sim_server_start(server);
}

void hs_sim_server_deinit(struct hs_sim_server *server)
{
	while (!hs_list_empty(&server->clients))
		hs_sim_conn_free(
			hs_list_entry(server->clients.next, struct hs_sim_server_conn, link));
	hs_sim_tracking_deinit(server);
	hs_memkv_destroy(&server->map);
	hs_watch_destroy(&server->watch);
	hs_changed_deinit(&server->changed);
	hs_buf_deinit(&server->log);
	hs_sim_slots_deinit(&server->view.slots);
	hs_sim_slots_deinit(&server->view.unclaimed);
	hs_mem_free(&server->view.moves);
}

/* ---- connections ---- */

struct hs_sim_server_conn *hs_sim_server_open(struct hs_sim_server *server, void *io)
{
	struct hs_sim_server_conn *conn = hs_mem_zalloc(sizeof *conn);

	conn->server = server;
	conn->io = io;
	conn->id = ++server->ids;
	conn->resp = 2;
	conn->flags = server->cluster->options.password ? 0 : HS_SIM_CONN_LOGGED_IN;
	hs_wire_request_init(&conn->request);
	hs_list_init(&conn->ready);
	hs_list_init(&conn->writes);
	hs_list_init(&conn->topics);
	hs_list_append(&server->clients, &conn->link);
	return conn;
}

void hs_sim_conn_free(struct hs_sim_server_conn *conn)
{
	struct hs_sim_server *server = conn->server;

	hs_sim_discard(conn);
	hs_sim_tracking_forget(conn);
	hs_sim_pubsub_forget(conn);
	hs_list_remove(&conn->link);
	hs_list_remove(&conn->ready);
	hs_list_remove(&conn->writes);
	if (server->current == conn)
		server->current = NULL;
	hs_wire_request_deinit(&conn->request);
	hs_sim_queue_deinit(&conn->queue);
	hs_buf_deinit(&conn->in);
	hs_buf_deinit(&conn->out);
	hs_mem_free(&conn->name);
	hs_buf_deinit(&conn->wait_keys);
	hs_mem_free(&conn);
}

static void flush(struct hs_sim_server_conn *conn)
{
	const struct hs_sim_cluster_host *host = &conn->server->cluster->host;

	hs_list_remove(&conn->writes);
	if (conn->out.len > 0 && !(conn->flags & HS_SIM_CONN_HIDDEN))
		host->send(host->context, conn->io, hs_buf_bytes(&conn->out));
	hs_buf_clear(&conn->out, BUF_KEEP);
}

void hs_sim_conn_close(struct hs_sim_server_conn *conn)
{
	const struct hs_sim_cluster_host *host = &conn->server->cluster->host;
	bool hidden = conn->flags & HS_SIM_CONN_HIDDEN;
	void *io = conn->io;

	hs_sim_conn_free(conn);
	if (!hidden)
		host->closed(host->context, io);
}

void hs_sim_server_close_all(struct hs_sim_server *server)
{
	while (!hs_list_empty(&server->clients))
		hs_sim_conn_close(
			hs_list_entry(server->clients.next, struct hs_sim_server_conn, link));
}

void hs_sim_server_disconnect(struct hs_sim_server_conn *conn)
{
	hs_sim_conn_free(conn);
}

uint8_t hs_sim_server_conn_node(const struct hs_sim_server_conn *conn)
{
	return conn->server->number;
}

uint64_t hs_sim_server_conn_id(const struct hs_sim_server_conn *conn)
{
	return conn->id;
}

struct hs_sim_server_conn *hs_sim_server_conn_by_id(const struct hs_sim_server *server, uint64_t id)
{
	for (struct hs_link *link = server->clients.next; link != &server->clients;
	     link = link->next) {
		struct hs_sim_server_conn *conn =
			hs_list_entry(link, struct hs_sim_server_conn, link);

		if (conn->id == id)
			return conn;
	}
	return NULL;
}

/* ---- cycles ---- */

void hs_sim_server_plan(struct hs_sim_server *server, uint64_t us_max, hs_sim_event_run *run,
			uint64_t number)
{
	struct hs_sim_cluster *cluster = server->cluster;
	uint64_t in_us =
		us_max > 0 && !cluster->faults_stopped ? hs_prng_below(&cluster->prng, us_max) : 0;

	hs_sim_events_plan(cluster->host.events, (struct hs_sim_event){
							 .at_us = hs_sim_now_us(cluster) + in_us,
							 .run = run,
							 .context = cluster,
							 .target = server,
							 .number = number,
						 });
}

/* Handles all complete requests of the connection. */
static void handle_input(struct hs_sim_server_conn *conn)
{
	struct hs_wire_request *request = &conn->request;
	struct hs_sim_server *server = conn->server;
	size_t at = 0;

	server->current = conn;
	while (at < conn->in.len && !(conn->flags & (HS_SIM_CONN_CLOSING | HS_SIM_CONN_BLOCKED))) {
		int64_t used = hs_wire_request_parse(request, conn->in.data + at, conn->in.len - at,
						     conn->flags & HS_SIM_CONN_LOGGED_IN);

		if (used == 0)
			break;
		if (used < 0) {
			struct hs_reply reply = hs_sim_conn_reply(conn);

			hs_reply_errorf(&reply, "ERR %s", request->error);
			conn->flags |= HS_SIM_CONN_CLOSING;
			hs_sim_conn_wrote(conn);
			break;
		}
		if (request->argc > 0 && !hs_sim_run_command(conn, request->argc, request->argv))
			break; /* writes are paused: it is tried again */
		at += (size_t)used;
	}
	server->current = NULL;
	hs_buf_consume(&conn->in, at);
}

static void run_cycle(void *context, void *target, uint64_t number)
{
	struct hs_sim_server *server = target;

	(void)context;
	if (number != server->life)
		return;
	server->cycle_planned = false;
	if (!hs_sim_server_runs(server))
		return;
	/* Connections that become ready meanwhile wait for the next cycle. */
	struct hs_link last = {0};

	hs_list_init(&last);
	hs_list_append(&server->ready, &last);
	while (server->ready.next != &last) {
		struct hs_link *link = server->ready.next;

		hs_list_remove(link);
		handle_input(hs_list_entry(link, struct hs_sim_server_conn, ready));
	}
	hs_list_remove(&last);
	hs_sim_tracking_broadcast(server);
	hs_sim_stream_push(server);
	while (!hs_list_empty(&server->writes)) {
		struct hs_sim_server_conn *conn =
			hs_list_entry(server->writes.next, struct hs_sim_server_conn, writes);

		flush(conn);
		if (conn->flags & HS_SIM_CONN_CLOSING)
			hs_sim_conn_close(conn);
	}
	if (!hs_list_empty(&server->ready))
		hs_sim_server_wake(server);
}

void hs_sim_server_wake(struct hs_sim_server *server)
{
	if (server->cycle_planned || !hs_sim_server_runs(server))
		return;
	server->cycle_planned = true;
	hs_sim_server_plan(server, server->cluster->options.cycle_us_max, run_cycle, server->life);
}

void hs_sim_conn_ready(struct hs_sim_server_conn *conn)
{
	if (hs_list_empty(&conn->ready))
		hs_list_append(&conn->server->ready, &conn->ready);
	hs_sim_server_wake(conn->server);
}

void hs_sim_conn_wrote(struct hs_sim_server_conn *conn)
{
	if (hs_list_empty(&conn->writes))
		hs_list_append(&conn->server->writes, &conn->writes);
	hs_sim_server_wake(conn->server);
}

void hs_sim_server_pause(struct hs_sim_server *server, bool pause)
{
	bool goes_on = server->paused && !pause;

	server->paused = pause;
	for (struct hs_link *link = server->clients.next; goes_on && link != &server->clients;
	     link = link->next) {
		struct hs_sim_server_conn *conn =
			hs_list_entry(link, struct hs_sim_server_conn, link);

		if (conn->in.len > 0)
			hs_sim_conn_ready(conn);
	}
}

void hs_sim_server_receive(struct hs_sim_server_conn *conn, const char *data, size_t len)
{
	hs_buf_append(&conn->in, data, len);
	hs_sim_conn_ready(conn);
}
