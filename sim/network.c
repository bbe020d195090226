/* Connections: pieces of bytes in flight, each an event with a latency, and the faults that hit them. */
#include "sim/network.h"

#include "base/list.h"
#include "base/mem.h"
#include "sim/cluster.h"

enum {
	CUT_ONE_IN = 4,
	BLOCKED_ONE_IN = 8,
	BLOCKED_US_MAX = 500,
	/* The kernel gives up a connection whose other end is silent: KEEPALIVE_S of upstream/conn.c, then ten
	 * probes, one a second. */
	KEEPALIVE_US = 25000000,
};

/* A connection is known to both sides. It is freed when neither side has it and nothing is in flight. */
struct hs_sim_connection {
	struct hs_link pieces; /* in flight */
	struct hs_sim_network *network;
	struct hs_link link;
	struct hs_sim_connection_options options; /* upstream NULL: its owner has closed it */
	struct hs_greeting greeting;
	struct hs_sim_server_conn *server; /* NULL: not connected, or closed */
	uint8_t node;			   /* HS_SIM_NO_NODE: no node has this address */
	/* Up: the greeting is done; mute: nothing from the server arrives any more. */
	bool up, mute;
	bool lost;		 /* nothing in flight arrives */
	bool blocked;		 /* the kernel's buffer is full */
	bool ended;		 /* `down` was called, or an event for it is planned */
	uint32_t planned;	 /* planned events that name it */
	uint64_t to_us, from_us; /* when the last piece of each direction arrives */
	const char *why;	 /* why it ended */
	struct place *places;	 /* of commands that ran for it and were not asked for yet */
	size_t places_first, places_count, places_cap;
};

/* A command that a server ran, and its place among all commands. */
struct place {
	uint64_t hash, at;
};

/* Bytes in flight; length 0: the end of the connection. */
struct piece {
	struct hs_sim_connection *connection;
	struct hs_link link; /* in connection->pieces */
	bool to_server;
	size_t len;
	char data[];
};

struct hs_sim_network {
	struct hs_sim_network_options options;
	struct hs_sim_events *events;
	const struct hs_now *now;
	struct hs_sim_cluster *cluster;
	struct hs_prng prng;
	struct hs_link connections;
	bool faults_on;
};

struct hs_sim_network *hs_sim_network_create(const struct hs_sim_network_options *options,
					     struct hs_sim_events *events, const struct hs_now *now)
{
	struct hs_sim_network *network = hs_mem_zalloc(sizeof *network);

	network->options = *options;
	network->events = events;
	network->now = now;
	hs_prng_init(&network->prng, options->seed);
	hs_list_init(&network->connections);
	return network;
}

static void free_piece(struct piece **piece)
{
	hs_list_remove(&(*piece)->link);
	hs_mem_free(piece);
}

static void free_connection(struct hs_sim_connection *connection)
{
	while (!hs_list_empty(&connection->pieces)) {
		struct piece *piece = hs_list_entry(connection->pieces.next, struct piece, link);

		free_piece(&piece);
	}
	hs_list_remove(&connection->link);
	hs_greeting_deinit(&connection->greeting);
	hs_mem_free(&connection->places);
	hs_mem_release(connection);
}

void hs_sim_network_destroy(struct hs_sim_network **network)
{
	while (!hs_list_empty(&(*network)->connections)) {
		struct hs_sim_connection *connection =
			hs_list_entry((*network)->connections.next, struct hs_sim_connection, link);

		hs_check(!connection->options.upstream);
		free_connection(connection);
	}
	hs_mem_free(network);
}

void hs_sim_network_attach(struct hs_sim_network *network, struct hs_sim_cluster *cluster)
{
	network->cluster = cluster;
}

/* ---- chance and time ---- */

static bool one_in(struct hs_sim_network *network, uint32_t number)
{
	return number > 0 && hs_prng_below(&network->prng, number) == 0;
}

static bool fails(struct hs_sim_network *network, uint32_t number)
{
	return network->faults_on && one_in(network, number);
}

static uint64_t latency_us(struct hs_sim_network *network,
			   const struct hs_sim_connection *connection)
{
	return 1 + hs_prng_below(&network->prng, network->options.latency_us_max + 1) +
	       (connection->node == 0 ? network->options.slow_us : 0);
}

static void plan(struct hs_sim_connection *connection, uint64_t at_us, hs_sim_event_run *run,
		 void *target)
{
	struct hs_sim_network *network = connection->network;

	connection->planned++;
	hs_sim_events_plan(network->events, (struct hs_sim_event){.at_us = at_us,
								  .run = run,
								  .context = network,
								  .target = target});
}

static void unplan(struct hs_sim_connection *connection)
{
	connection->planned--;
	if (connection->planned == 0 && !connection->options.upstream && !connection->server)
		free_connection(connection);
}

/* The time at which a piece that leaves now arrives: after the previous piece of its direction. */
static uint64_t arrival(struct hs_sim_connection *connection, uint64_t *last_us)
{
	uint64_t at_us =
		connection->network->now->mono_us + latency_us(connection->network, connection);

	if (at_us < *last_us)
		at_us = *last_us;
	return *last_us = at_us;
}

static void reach_server(void *context, void *target, uint64_t number);

static void send_piece(struct hs_sim_connection *connection, const char *data, size_t len,
		       uint64_t *last_us, hs_sim_event_run *run)
{
	struct piece *piece = hs_mem_alloc(sizeof *piece + len);

	piece->connection = connection;
	piece->to_server = run == reach_server;
	hs_list_init(&piece->link);
	hs_list_append(&connection->pieces, &piece->link);
	piece->len = len;
	if (len > 0)
		memcpy(piece->data, data, len);
	plan(connection, arrival(connection, last_us), run, piece);
}

/* ---- the end ---- */

static void report_down(void *context, void *target, uint64_t number)
{
	struct hs_sim_connection *connection = target;
	struct hs_upstream *upstream = connection->options.upstream;

	(void)context, (void)number;
	connection->options.upstream = NULL;
	/* The owner's end is closed. The server learns of that after everything in flight has arrived. */
	if (connection->server)
		send_piece(connection, NULL, 0, &connection->to_us, reach_server);
	if (upstream)
		connection->options.calls->down(connection->options.context, upstream,
						connection->why);
	unplan(connection);
}

/* Ends the connection; the owner's `down` is called after this event. */
static void end(struct hs_sim_connection *connection, const char *why)
{
	if (connection->ended || !connection->options.upstream)
		return;
	connection->ended = true;
	connection->why = why;
	plan(connection, connection->network->now->mono_us, report_down, connection);
}

static void give_up(void *context, void *target, uint64_t number)
{
	struct hs_sim_connection *connection = target;

	(void)context, (void)number;
	end(connection, "connection timed out");
	unplan(connection);
}

/* From now on nothing arrives from the server; KEEPALIVE_US later the connection ends. */
static void fall_silent(struct hs_sim_connection *connection)
{
	connection->mute = true;
	plan(connection, connection->network->now->mono_us + KEEPALIVE_US, give_up, connection);
}

static void hang_up(struct hs_sim_connection *connection)
{
	struct hs_sim_server_conn *server = connection->server;

	connection->server = NULL;
	if (server)
		hs_sim_server_disconnect(server);
}

/* Ends the connection. Bytes in flight to the server still arrive; with `lost` they do not. */
static void lose(struct hs_sim_connection *connection, bool lost)
{
	connection->mute = true;
	if (lost) {
		connection->lost = true;
		hang_up(connection);
	}
	end(connection, "the server closed the connection");
}

/* ---- to the server ---- */

static void reach_server(void *context, void *target, uint64_t number)
{
	struct hs_sim_network *network = context;
	struct piece *piece = target;
	struct hs_sim_connection *connection = piece->connection;
	size_t len = piece->len;

	(void)number;
	if (connection->server && !connection->lost) {
		bool lost = len > 0 && fails(network, network->options.lose_one_in);

		if (lost)
			len = hs_prng_below(&network->prng, len + 1);
		if (len > 0)
			hs_sim_server_receive(connection->server, piece->data, len);
		if (lost)
			lose(connection, true);
		else if (len == 0)
			hang_up(connection);
	}
	free_piece(&piece);
	unplan(connection);
}

static void unblock(void *context, void *target, uint64_t number)
{
	struct hs_sim_connection *connection = target;

	(void)context, (void)number;
	connection->blocked = false;
	if (connection->options.upstream && !connection->ended)
		hs_sim_connection_send(connection);
	unplan(connection);
}

void hs_sim_connection_send(struct hs_sim_connection *connection)
{
	struct hs_sim_network *network = connection->network;
	struct hs_upstream *upstream = connection->options.upstream;
	size_t len = upstream->out.len;

	if (len == 0 || connection->blocked)
		return;
	if (network->options.cuts && one_in(network, BLOCKED_ONE_IN)) {
		len = hs_prng_below(&network->prng, len);
		connection->blocked = true;
		plan(connection,
		     network->now->mono_us + hs_prng_below(&network->prng, BLOCKED_US_MAX), unblock,
		     connection);
	}
	if (len > 0)
		send_piece(connection, upstream->out.data, len, &connection->to_us, reach_server);
	upstream->sent += len;
	hs_buf_consume(&upstream->out, len);
}

/* Cuts what is in flight to the server at some byte, even in the middle of a command. */
static void cut_off(struct hs_sim_connection *connection)
{
	uint64_t left = 0;

	for (struct hs_link *link = connection->pieces.next; link != &connection->pieces;
	     link = link->next) {
		const struct piece *piece = hs_list_entry(link, struct piece, link);

		left += piece->to_server ? piece->len : 0;
	}
	left = hs_prng_below(&connection->network->prng, left + 1);
	for (struct hs_link *link = connection->pieces.next; link != &connection->pieces;
	     link = link->next) {
		struct piece *piece = hs_list_entry(link, struct piece, link);

		if (!piece->to_server)
			continue;
		if (piece->len > left)
			piece->len = left;
		left -= piece->len;
	}
}

void hs_sim_connection_close(struct hs_sim_connection **pointer, bool lost)
{
	struct hs_sim_connection *connection = *pointer;

	*pointer = NULL;
	connection->options.upstream = NULL;
	connection->planned++; /* not to be freed before the end of this call */
	if (lost && !connection->lost)
		cut_off(connection);
	if (connection->lost)
		hang_up(connection);
	else if (connection->server && !connection->network->options.keeps_open)
		send_piece(connection, NULL, 0, &connection->to_us, reach_server);
	unplan(connection);
}

void hs_sim_connection_silence(struct hs_sim_connection *connection)
{
	fall_silent(connection);
}

/* ---- in which order things ran ---- */

void hs_sim_connection_ran(struct hs_sim_connection *connection, uint64_t hash, uint64_t at)
{
	if (!connection->options.ordered || !connection->options.upstream)
		return;
	if (connection->places_first == connection->places_count)
		connection->places_first = connection->places_count = 0;
	if (connection->places_count == connection->places_cap) {
		connection->places_cap = connection->places_cap ? 2 * connection->places_cap : 16;
		connection->places = hs_mem_realloc(
			connection->places, connection->places_cap * sizeof *connection->places);
	}
	connection->places[connection->places_count++] = (struct place){hash, at};
}

uint64_t hs_sim_connection_ran_at(struct hs_sim_connection *connection, uint64_t hash)
{
	for (size_t i = connection->places_first; i < connection->places_count; i++) {
		if (connection->places[i].hash == hash) {
			connection->places_first = i + 1;
			return connection->places[i].at;
		}
	}
	return 0;
}

/* ---- from the server ---- */

static void greet(struct hs_sim_connection *connection, const char *data, size_t len)
{
	struct hs_upstream *upstream = connection->options.upstream;
	size_t used = len;

	switch (hs_greeting_receive(&connection->greeting, data, len, &used)) {
	case HS_GREETING_MORE:
		return;
	case HS_GREETING_FAILED:
		end(connection, connection->greeting.why);
		return;
	case HS_GREETING_READY:
		break;
	}
	connection->up = true;
	upstream->server_id = connection->greeting.server_id;
	connection->options.calls->up(connection->options.context, upstream);
	if (used < len && connection->options.upstream)
		connection->options.calls->receive(connection->options.context, upstream,
						   data + used, len - used);
}

static void receive(struct hs_sim_connection *connection, const char *data, size_t len)
{
	if (len == 0 || !connection->options.upstream)
		return;
	if (!connection->up)
		greet(connection, data, len);
	else
		connection->options.calls->receive(connection->options.context,
						   connection->options.upstream, data, len);
}

static void reach_owner(void *context, void *target, uint64_t number)
{
	struct hs_sim_network *network = context;
	struct piece *piece = target;
	struct hs_sim_connection *connection = piece->connection;
	size_t len = piece->len;

	(void)number;
	if (connection->options.upstream && !connection->mute && !connection->ended) {
		if (len == 0) {
			end(connection, "the server closed the connection");
		} else if (fails(network, network->options.lose_one_in)) {
			receive(connection, piece->data, hs_prng_below(&network->prng, len));
			lose(connection, one_in(network, 2));
		} else if (fails(network, network->options.mute_one_in)) {
			fall_silent(connection);
		} else {
			receive(connection, piece->data, len);
		}
	}
	free_piece(&piece);
	unplan(connection);
}

void hs_sim_network_send(void *context, void *io, struct hs_bytes bytes)
{
	struct hs_sim_connection *connection = io;
	struct hs_sim_network *network = connection ? connection->network : NULL;

	(void)context;
	if (!connection) /* HS_SIM_DIED_RESENT: the server has this connection without a client */
		return;
	while (bytes.len > 0 && !connection->lost) {
		size_t len = bytes.len;

		if (network->options.cuts && one_in(network, CUT_ONE_IN))
			len = 1 + hs_prng_below(&network->prng, len);
		send_piece(connection, bytes.data, len, &connection->from_us, reach_owner);
		bytes.data += len;
		bytes.len -= len;
	}
}

void hs_sim_network_closed(void *context, void *io)
{
	struct hs_sim_connection *connection = io;

	(void)context;
	if (!connection)
		return;
	connection->server = NULL;
	send_piece(connection, NULL, 0, &connection->from_us, reach_owner);
}

/* ---- opening ---- */

static void time_out(void *context, void *target, uint64_t number)
{
	struct hs_sim_connection *connection = target;

	(void)context, (void)number;
	if (!connection->up)
		end(connection,
		    connection->server
			    ? "the server accepted the connection but did not answer in time"
			    : "the server could not be reached in time");
	unplan(connection);
}

static void connect(void *context, void *target, uint64_t number)
{
	struct hs_sim_network *network = context;
	struct hs_sim_connection *connection = target;
	struct hs_buf out = {0};

	(void)number;
	if (connection->options.upstream && !connection->ended) {
		if (connection->node != HS_SIM_NO_NODE)
			connection->server = hs_sim_cluster_connect(network->cluster,
								    connection->node, connection);
		if (connection->server) {
			hs_greeting_compose(&connection->greeting, &out);
			send_piece(connection, out.data, out.len, &connection->to_us, reach_server);
			hs_buf_deinit(&out);
			if (!connection->options.greeting.hello_only)
				plan(connection,
				     network->now->mono_us + network->options.open_us_max, time_out,
				     connection);
		} else {
			end(connection, "connection refused");
		}
	}
	unplan(connection);
}

struct hs_sim_connection *hs_sim_connection_open(struct hs_sim_network *network,
						 const struct hs_sim_connection_options *options)
{
	struct hs_sim_connection *connection = hs_mem_zalloc(sizeof *connection);

	connection->network = network;
	connection->options = *options;
	connection->node = hs_sim_cluster_at(network->cluster, options->host, options->port);
	hs_list_init(&connection->pieces);
	hs_list_append(&network->connections, &connection->link);
	hs_greeting_init(&connection->greeting, &options->greeting);
	plan(connection, network->now->mono_us + latency_us(network, connection), connect,
	     connection);
	return connection;
}

void hs_sim_network_crash(struct hs_sim_network *network, uint8_t node)
{
	for (struct hs_link *link = network->connections.next; link != &network->connections;
	     link = link->next) {
		struct hs_sim_connection *connection =
			hs_list_entry(link, struct hs_sim_connection, link);

		if (connection->node == node && connection->server && one_in(network, 2))
			lose(connection, true);
	}
}

void hs_sim_network_set_faults(struct hs_sim_network *network, bool on)
{
	network->faults_on = on;
	if (on)
		return;
	for (struct hs_link *link = network->connections.next; link != &network->connections;
	     link = link->next) {
		struct hs_sim_connection *connection =
			hs_list_entry(link, struct hs_sim_connection, link);

		if (connection->mute)
			end(connection, "the server closed the connection");
	}
}
