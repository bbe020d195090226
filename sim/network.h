/* The network between heatsinks and simulated servers: connections that carry bytes, each direction in order
 * and with a latency, and that fail. It does what upstream/conn.h does with a socket: opens, greets
 * (upstream/greeting.h), takes what is in `out`, hands on what comes.
 *
 *     out ──(some now, the rest when the kernel has room)──► pieces ──latency──► server
 *     receive ◄──────────latency, cut anywhere────────── pieces ◄──────────────┘
 *
 * What goes wrong, all from the seed: a connection ends, with what is under way on it delivered up to some
 * byte, in the middle of a request or of a reply; or nothing comes back on it any more until its owner gives
 * it up; nobody listens; a server that stands still lets connect and does not answer the greeting. One
 * thread. */
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
	uint32_t slow_us;	 /* more, to and from the first server */
	uint32_t open_us_max;	 /* to connect and be greeted */
	/* One in so many pieces that arrive brings …; 0: never */
	uint32_t lose_one_in; /* the end of its connection */
	uint32_t mute_one_in; /* no more replies on it */
	bool keeps_open;      /* a mistake: the server does not hear that its client closed */
	bool cuts;	      /* pieces are cut anywhere, and the kernel takes part of them */
};

/* What happens to a connection; its owner is not called from inside hs_sim_connection_open, send or close. */
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
	bool ordered; /* what is run for it is noted, for hs_sim_connection_ran_at */
};

struct hs_sim_network *hs_sim_network_create(const struct hs_sim_network_options *options,
					     struct hs_sim_events *events,
					     const struct hs_now *now);
/* This node's process ends, or its machine: of some connections, nothing that is on its way arrives. */
void hs_sim_network_crash(struct hs_sim_network *network, uint8_t node);
/* Its owners have closed every connection; before the servers end, and no event runs any more. */
void hs_sim_network_destroy(struct hs_sim_network **network);
void hs_sim_network_attach(struct hs_sim_network *network, struct hs_sim_cluster *cluster);
/* Whether something may go wrong from now on; at first nothing does. When nothing does any more, connections
 * that are mute end. */
void hs_sim_network_set_faults(struct hs_sim_network *network, bool on);

struct hs_sim_connection *hs_sim_connection_open(struct hs_sim_network *network,
						 const struct hs_sim_connection_options *options);
/* Takes what it can of upstream->out, now and later, and counts it in upstream->sent. */
void hs_sim_connection_send(struct hs_sim_connection *connection);
/* Not a word more about it. What the kernel has taken still arrives; of a process that died with what was on
 * its way (`lost`) up to some byte, between two commands or in the middle of one. */
void hs_sim_connection_close(struct hs_sim_connection **connection, bool lost);
/* Nothing comes back on it any more. */
void hs_sim_connection_silence(struct hs_sim_connection *connection);

/* The server has run something for it, the `at`th of all that servers ran. Its owner, who hears the answers in
 * the order in which that ran, asks for the place of what it hears next; 0: it is not known. What ran before
 * that and was never asked for is forgotten. The hash tells commands apart. */
void hs_sim_connection_ran(struct hs_sim_connection *connection, uint64_t hash, uint64_t at);
uint64_t hs_sim_connection_ran_at(struct hs_sim_connection *connection, uint64_t hash);

/* The servers' side: bytes for a connection that they have, and its end. `io` is the wire, the context whatever
 * it is. */
void hs_sim_network_send(void *context, void *io, struct hs_bytes bytes);
void hs_sim_network_closed(void *context, void *io);

#endif
