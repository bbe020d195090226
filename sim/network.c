#include "sim/network.h"

#include "base/list.h"
#include "base/mem.h"
#include "sim/cluster.h"

enum {
	CUT_ONE_IN = 4,
	BLOCKED_ONE_IN = 8,
	BLOCKED_US_MAX = 500,
	/* The kernel gives up a connection whose other end is silent: KEEPALIVE_S of upstream/conn.c, and ten
	 * tries, one a second. */
	KEEPALIVE_US = 25000000,
};

/* Both sides know a wire, and it is freed when neither does and nothing is on its way. */
struct hs_sim_wire {
	struct hs_link pieces; /* on their way */
	struct hs_sim_network *network;
	struct hs_link link;
	struct hs_sim_wire_options options; /* upstream NULL: its owner has closed it */
	struct hs_greeting greeting;
	struct hs_sim_server_conn *server; /* NULL: not connected, or closed */
	uint8_t node;			   /* HS_SIM_NOBODY: there is none with this address */
	bool up, mute;
	bool lost;		 /* nothing on its way arrives */
	bool blocked;		 /* the kernel takes no more just now */
	bool ended;		 /* the owner was, or is being, told that it is down */
	uint32_t planned;	 /* events that name it */
	uint64_t to_us, from_us; /* when the last piece arrives */
	const char *why;
	struct place *places; /* of what ran for it and was not asked for yet */
	size_t places_first, places_count, places_cap;
};

/* What a server ran, and as the how manieth of all. */
struct place {
	uint64_t hash, at;
};

/* Bytes on their way; of length 0: the end. */
struct piece {
	struct hs_sim_wire *wire;
	struct hs_link link; /* in wire->pieces */
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
	struct hs_link wires;
	bool troubled;
};

struct hs_sim_network *hs_sim_network_create(const struct hs_sim_network_options *options,
					     struct hs_sim_events *events, const struct hs_now *now)
{
	struct hs_sim_network *network = hs_mem_zalloc(sizeof *network);

	network->options = *options;
	network->events = events;
	network->now = now;
	hs_prng_init(&network->prng, options->seed);
	hs_list_init(&network->wires);
	return network;
}

static void free_piece(struct piece **piece)
{
	hs_list_remove(&(*piece)->link);
	hs_mem_free(piece);
}

static void free_wire(struct hs_sim_wire *wire)
{
	while (!hs_list_empty(&wire->pieces)) {
		struct piece *piece = hs_list_entry(wire->pieces.next, struct piece, link);

		free_piece(&piece);
	}
	hs_list_remove(&wire->link);
	hs_greeting_deinit(&wire->greeting);
	hs_mem_free(&wire->places);
	hs_mem_release(wire);
}

void hs_sim_network_destroy(struct hs_sim_network **network)
{
	while (!hs_list_empty(&(*network)->wires)) {
		struct hs_sim_wire *wire =
			hs_list_entry((*network)->wires.next, struct hs_sim_wire, link);

		hs_check(!wire->options.upstream);
		free_wire(wire);
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
	return network->troubled && one_in(network, number);
}

static uint64_t latency_us(struct hs_sim_network *network, const struct hs_sim_wire *wire)
{
	return 1 + hs_prng_below(&network->prng, network->options.latency_us_max + 1) +
	       (wire->node == 0 ? network->options.slow_us : 0);
}

static void plan(struct hs_sim_wire *wire, uint64_t at_us, hs_sim_event_run *run, void *target)
{
	struct hs_sim_network *network = wire->network;

	wire->planned++;
	hs_sim_events_plan(network->events, (struct hs_sim_event){.at_us = at_us,
								  .run = run,
								  .context = network,
								  .target = target});
}

static void unplan(struct hs_sim_wire *wire)
{
	wire->planned--;
	if (wire->planned == 0 && !wire->options.upstream && !wire->server)
		free_wire(wire);
}

/* When what leaves now arrives: behind what left before. */
static uint64_t arrival(struct hs_sim_wire *wire, uint64_t *last_us)
{
	uint64_t at_us = wire->network->now->mono_us + latency_us(wire->network, wire);

	if (at_us < *last_us)
		at_us = *last_us;
	return *last_us = at_us;
}

static void reach_server(void *context, void *target, uint64_t number);

static void send_piece(struct hs_sim_wire *wire, const char *data, size_t len, uint64_t *last_us,
		       hs_sim_event_run *run)
{
	struct piece *piece = hs_mem_alloc(sizeof *piece + len);

	piece->wire = wire;
	piece->to_server = run == reach_server;
	hs_list_init(&piece->link);
	hs_list_append(&wire->pieces, &piece->link);
	piece->len = len;
	if (len > 0)
		memcpy(piece->data, data, len);
	plan(wire, arrival(wire, last_us), run, piece);
}

/* ---- the end ---- */

static void tell_down(void *context, void *target, uint64_t number)
{
	struct hs_sim_wire *wire = target;
	struct hs_upstream *upstream = wire->options.upstream;

	(void)context, (void)number;
	wire->options.upstream = NULL;
	/* Its owner closes it, and the server hears of that behind whatever is on its way. */
	if (wire->server)
		send_piece(wire, NULL, 0, &wire->to_us, reach_server);
	if (upstream)
		wire->options.calls->down(wire->options.context, upstream, wire->why);
	unplan(wire);
}

/* The owner is told when this event is over. */
static void end(struct hs_sim_wire *wire, const char *why)
{
	if (wire->ended || !wire->options.upstream)
		return;
	wire->ended = true;
	wire->why = why;
	plan(wire, wire->network->now->mono_us, tell_down, wire);
}

static void give_up(void *context, void *target, uint64_t number)
{
	struct hs_sim_wire *wire = target;

	(void)context, (void)number;
	end(wire, "connection timed out");
	unplan(wire);
}

/* Nothing comes back any more. */
static void fall_silent(struct hs_sim_wire *wire)
{
	wire->mute = true;
	plan(wire, wire->network->now->mono_us + KEEPALIVE_US, give_up, wire);
}

static void hang_up(struct hs_sim_wire *wire)
{
	struct hs_sim_server_conn *server = wire->server;

	wire->server = NULL;
	if (server)
		hs_sim_server_disconnect(server);
}

/* It ends; what is on its way to the server arrives, or nothing of it (`lost`). */
static void lose(struct hs_sim_wire *wire, bool lost)
{
	wire->mute = true;
	if (lost) {
		wire->lost = true;
		hang_up(wire);
	}
	end(wire, "it closed the connection");
}

/* ---- to the server ---- */

static void reach_server(void *context, void *target, uint64_t number)
{
	struct hs_sim_network *network = context;
	struct piece *piece = target;
	struct hs_sim_wire *wire = piece->wire;
	size_t len = piece->len;

	(void)number;
	if (wire->server && !wire->lost) {
		bool lost = len > 0 && fails(network, network->options.lose_one_in);

		if (lost)
			len = hs_prng_below(&network->prng, len + 1);
		if (len > 0)
			hs_sim_server_receive(wire->server, piece->data, len);
		if (lost)
			lose(wire, true);
		else if (len == 0)
			hang_up(wire);
	}
	free_piece(&piece);
	unplan(wire);
}

static void unblock(void *context, void *target, uint64_t number)
{
	struct hs_sim_wire *wire = target;

	(void)context, (void)number;
	wire->blocked = false;
	if (wire->options.upstream && !wire->ended)
		hs_sim_wire_send(wire);
	unplan(wire);
}

void hs_sim_wire_send(struct hs_sim_wire *wire)
{
	struct hs_sim_network *network = wire->network;
	struct hs_upstream *upstream = wire->options.upstream;
	size_t len = upstream->out.len;

	if (len == 0 || wire->blocked)
		return;
	if (network->options.cuts && one_in(network, BLOCKED_ONE_IN)) {
		len = hs_prng_below(&network->prng, len);
		wire->blocked = true;
		plan(wire, network->now->mono_us + hs_prng_below(&network->prng, BLOCKED_US_MAX),
		     unblock, wire);
	}
	if (len > 0)
		send_piece(wire, upstream->out.data, len, &wire->to_us, reach_server);
	upstream->sent += len;
	hs_buf_consume(&upstream->out, len);
}

/* What is on its way to the server ends at some byte, be it in the middle of a command; behind that the
 * connection does. */
static void cut_off(struct hs_sim_wire *wire)
{
	uint64_t left = 0;

	for (struct hs_link *link = wire->pieces.next; link != &wire->pieces; link = link->next) {
		const struct piece *piece = hs_list_entry(link, struct piece, link);

		left += piece->to_server ? piece->len : 0;
	}
	left = hs_prng_below(&wire->network->prng, left + 1);
	for (struct hs_link *link = wire->pieces.next; link != &wire->pieces; link = link->next) {
		struct piece *piece = hs_list_entry(link, struct piece, link);

		if (!piece->to_server)
			continue;
		if (piece->len > left)
			piece->len = left;
		left -= piece->len;
	}
}

void hs_sim_wire_close(struct hs_sim_wire **pointer, bool lost)
{
	struct hs_sim_wire *wire = *pointer;

	*pointer = NULL;
	wire->options.upstream = NULL;
	wire->planned++; /* it lives until the end of this call */
	if (lost && !wire->lost)
		cut_off(wire);
	if (wire->lost)
		hang_up(wire);
	else if (wire->server && !wire->network->options.keeps_open)
		send_piece(wire, NULL, 0, &wire->to_us, reach_server);
	unplan(wire);
}

void hs_sim_wire_silence(struct hs_sim_wire *wire)
{
	fall_silent(wire);
}

/* ---- in which order things ran ---- */

void hs_sim_wire_ran(struct hs_sim_wire *wire, uint64_t hash, uint64_t at)
{
	if (!wire->options.ordered || !wire->options.upstream)
		return;
	if (wire->places_first == wire->places_count)
		wire->places_first = wire->places_count = 0;
	if (wire->places_count == wire->places_cap) {
		wire->places_cap = wire->places_cap ? 2 * wire->places_cap : 16;
		wire->places =
			hs_mem_realloc(wire->places, wire->places_cap * sizeof *wire->places);
	}
	wire->places[wire->places_count++] = (struct place){hash, at};
}

uint64_t hs_sim_wire_ran_at(struct hs_sim_wire *wire, uint64_t hash)
{
	for (size_t i = wire->places_first; i < wire->places_count; i++) {
		if (wire->places[i].hash == hash) {
			wire->places_first = i + 1;
			return wire->places[i].at;
		}
	}
	return 0;
}

/* ---- from the server ---- */

static void greet(struct hs_sim_wire *wire, const char *data, size_t len)
{
	struct hs_upstream *upstream = wire->options.upstream;
	size_t used = len;

	switch (hs_greeting_receive(&wire->greeting, data, len, &used)) {
	case HS_GREETING_MORE:
		return;
	case HS_GREETING_FAILED:
		end(wire, wire->greeting.why);
		return;
	case HS_GREETING_READY:
		break;
	}
	wire->up = true;
	upstream->server_id = wire->greeting.server_id;
	wire->options.calls->up(wire->options.context, upstream);
	if (used < len && wire->options.upstream)
		wire->options.calls->receive(wire->options.context, upstream, data + used,
					     len - used);
}

static void receive(struct hs_sim_wire *wire, const char *data, size_t len)
{
	if (len == 0 || !wire->options.upstream)
		return;
	if (!wire->up)
		greet(wire, data, len);
	else
		wire->options.calls->receive(wire->options.context, wire->options.upstream, data,
					     len);
}

static void reach_owner(void *context, void *target, uint64_t number)
{
	struct hs_sim_network *network = context;
	struct piece *piece = target;
	struct hs_sim_wire *wire = piece->wire;
	size_t len = piece->len;

	(void)number;
	if (wire->options.upstream && !wire->mute && !wire->ended) {
		if (len == 0) {
			end(wire, "it closed the connection");
		} else if (fails(network, network->options.lose_one_in)) {
			receive(wire, piece->data, hs_prng_below(&network->prng, len));
			lose(wire, one_in(network, 2));
		} else if (fails(network, network->options.mute_one_in)) {
			fall_silent(wire);
		} else {
			receive(wire, piece->data, len);
		}
	}
	free_piece(&piece);
	unplan(wire);
}

void hs_sim_network_send(void *context, void *io, struct hs_bytes bytes)
{
	struct hs_sim_wire *wire = io;
	struct hs_sim_network *network = wire ? wire->network : NULL;

	(void)context;
	if (!wire) /* HS_SIM_DIED_RESENT: nobody is there */
		return;
	while (bytes.len > 0 && !wire->lost) {
		size_t len = bytes.len;

		if (network->options.cuts && one_in(network, CUT_ONE_IN))
			len = 1 + hs_prng_below(&network->prng, len);
		send_piece(wire, bytes.data, len, &wire->from_us, reach_owner);
		bytes.data += len;
		bytes.len -= len;
	}
}

void hs_sim_network_closed(void *context, void *io)
{
	struct hs_sim_wire *wire = io;

	(void)context;
	if (!wire)
		return;
	wire->server = NULL;
	send_piece(wire, NULL, 0, &wire->from_us, reach_owner);
}

/* ---- opening ---- */

static void time_out(void *context, void *target, uint64_t number)
{
	struct hs_sim_wire *wire = target;

	(void)context, (void)number;
	if (!wire->up)
		end(wire,
		    wire->server ? "nothing came back in time" : "it cannot be reached in time");
	unplan(wire);
}

static void connect(void *context, void *target, uint64_t number)
{
	struct hs_sim_network *network = context;
	struct hs_sim_wire *wire = target;
	struct hs_buf out = {0};

	(void)number;
	if (wire->options.upstream && !wire->ended) {
		if (wire->node != HS_SIM_NOBODY)
			wire->server = hs_sim_cluster_connect(network->cluster, wire->node, wire);
		if (wire->server) {
			hs_greeting_compose(&wire->greeting, &out);
			send_piece(wire, out.data, out.len, &wire->to_us, reach_server);
			hs_buf_deinit(&out);
			if (!wire->options.greeting.bare)
				plan(wire, network->now->mono_us + network->options.open_us_max,
				     time_out, wire);
		} else {
			end(wire, "connection refused");
		}
	}
	unplan(wire);
}

struct hs_sim_wire *hs_sim_wire_open(struct hs_sim_network *network,
				     const struct hs_sim_wire_options *options)
{
	struct hs_sim_wire *wire = hs_mem_zalloc(sizeof *wire);

	wire->network = network;
	wire->options = *options;
	wire->node = hs_sim_cluster_at(network->cluster, options->host, options->port);
	hs_list_init(&wire->pieces);
	hs_list_append(&network->wires, &wire->link);
	hs_greeting_init(&wire->greeting, &options->greeting);
	plan(wire, network->now->mono_us + latency_us(network, wire), connect, wire);
	return wire;
}

void hs_sim_network_crash(struct hs_sim_network *network, uint8_t node)
{
	for (struct hs_link *link = network->wires.next; link != &network->wires;
	     link = link->next) {
		struct hs_sim_wire *wire = hs_list_entry(link, struct hs_sim_wire, link);

		if (wire->node == node && wire->server && one_in(network, 2))
			lose(wire, true);
	}
}

void hs_sim_network_trouble(struct hs_sim_network *network, bool on)
{
	network->troubled = on;
	if (on)
		return;
	for (struct hs_link *link = network->wires.next; link != &network->wires;
	     link = link->next) {
		struct hs_sim_wire *wire = hs_list_entry(link, struct hs_sim_wire, link);

		if (wire->mute)
			end(wire, "it closed the connection");
	}
}
