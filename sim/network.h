/* The network between heatsinks and simulated servers: connections that carry bytes, each direction in order and
 * with a latency, and that fail. It does what upstream/conn.h does with a socket: connects, greets
 * (upstream/greeting.h), takes bytes from `out`, and passes on what arrives.
 *
 *     out ──(some now, the rest when the kernel has room)──► pieces ──latency──► server
 *     receive ◄──────────latency, cut anywhere────────── pieces ◄──────────────┘
 *
 * Faults, all drawn from the seed: a connection ends, and what is in flight on it arrives up to some byte, in
 * the middle of a request or a reply; a connection falls silent: nothing arrives from the server any more,
 * until its owner closes it or the kernel gives it up (25 s); a connection attempt is refused; a stalled server
 * accepts the connection and does not answer the greeting. It knows no commands and no keys. One thread. */
#ifndef HS_SIM_NETWORK_H
#define HS_SIM_NETWORK_H

#include "base/now.h"
#include "base/prng.h"
#include "sim/events.h"
#include "upstream/greeting.h"
#include "upstream/upstream.h"

struct hs_sim_cluster;
struct hs_sim_network;
struct hs_sim_connection;

struct hs_sim_network_options {
	uint64_t seed;
	uint32_t latency_us_max; /* one way */
	uint32_t slow_us;	 /* added to the latency to and from node 0 */
	uint32_t open_us_max;	 /* to connect and finish the greeting */
	/* One in this many arriving pieces, on average, has this fault; 0: none has. */
	uint32_t lose_one_in; /* its connection ends */
	uint32_t mute_one_in; /* its connection falls silent */
	bool keeps_open;      /* a planted bug: the server does not notice that its client closed */
	bool cuts;	      /* pieces are cut anywhere, and the kernel takes part of them */
};

/* Callbacks of a connection. They are never called from inside hs_sim_connection_open, _send or _close. */
struct hs_sim_connection_calls {
	void (*up)(void *context, struct hs_upstream *upstream);
	void (*down)(void *context, struct hs_upstream *upstream, const char *why);
	void (*receive)(void *context, struct hs_upstream *upstream, const char *data, size_t len);
};

struct hs_sim_connection_options {
	const char *host;
	uint16_t port;
	struct hs_greeting_options greeting;
	struct hs_upstream *upstream;
	const struct hs_sim_connection_calls *calls;
	void *context;
	bool ordered; /* the order of its commands is noted, for hs_sim_connection_ran_at */
};

struct hs_sim_network *hs_sim_network_create(const struct hs_sim_network_options *options,
					     struct hs_sim_events *events,
					     const struct hs_now *now);
/* This node's process or machine ends. On some of its connections nothing in flight arrives. */
void hs_sim_network_crash(struct hs_sim_network *network, uint8_t node);
/* Call it when every connection is closed, before the cluster is destroyed; no event may run afterwards. */
void hs_sim_network_destroy(struct hs_sim_network **network);
void hs_sim_network_attach(struct hs_sim_network *network, struct hs_sim_cluster *cluster);
/* Switches faults on or off; they are off at first. Switching them off ends connections that are silent. */
void hs_sim_network_set_faults(struct hs_sim_network *network, bool on);

struct hs_sim_connection *hs_sim_connection_open(struct hs_sim_network *network,
						 const struct hs_sim_connection_options *options);
/* Takes what it can of upstream->out, now and later, and counts it in upstream->sent. */
void hs_sim_connection_send(struct hs_sim_connection *connection);
/* Closes the connection and sets *connection to NULL; its callbacks are not called any more. What the kernel has
 * taken still arrives. With `lost` (the process died) it arrives up to some byte, between two commands or in the
 * middle of one. */
void hs_sim_connection_close(struct hs_sim_connection **connection, bool lost);
/* From now on nothing arrives from the server; the kernel gives the connection up after 25 s. */
void hs_sim_connection_silence(struct hs_sim_connection *connection);

/* The server has run a command for this connection, the `at`th of all that servers ran; `hash` identifies the
 * command. The owner receives replies in the order in which the commands ran, and calls
 * hs_sim_connection_ran_at for the place of each (0: it is not known). Places of earlier commands that the
 * owner did not ask for are dropped. */
void hs_sim_connection_ran(struct hs_sim_connection *connection, uint64_t hash, uint64_t at);
uint64_t hs_sim_connection_ran_at(struct hs_sim_connection *connection, uint64_t hash);

/* The servers' side: bytes for a connection, and its end. `context` is the network, `io` the connection. */
void hs_sim_network_send(void *context, void *io, struct hs_bytes bytes);
void hs_sim_network_closed(void *context, void *io);

#endif
