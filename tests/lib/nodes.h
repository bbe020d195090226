/* Simulated Redis servers under a virtual clock, for tests that play their clients: connections are named
 * by letters, requests are words, and what came back is text. */
#ifndef HS_TESTS_NODES_H
#define HS_TESTS_NODES_H

#include "base/buf.h"
#include "sim/cluster.h"

enum { NODES_CLIENTS = 26 };

struct nodes;

struct nodes_client {
	struct nodes *nodes;
	struct hs_sim_server_conn *conn; /* NULL: none, or closed */
	struct hs_buf received;
	bool closed; /* by the server */
};

struct nodes {
	struct hs_sim_cluster *cluster;
	struct hs_sim_events events;
	struct hs_now now;
	struct nodes_client clients[NODES_CLIENTS];
	struct hs_buf changes; /* of changes: "set:k1 lost:k2 " …, by their cause */
	struct hs_buf ran;     /* "get set! ": what was run, with ! if its reply was an error */
	void (*on_changed)(struct nodes *nodes, const struct hs_sim_change *change); /* or NULL */
	void *context;
};

void nodes_init(struct nodes *nodes, const struct hs_sim_cluster_options *options);
void nodes_deinit(struct nodes *nodes);
/* Runs events until none is left. */
void nodes_settle(struct nodes *nodes);
/* Runs what falls into this much time. */
void nodes_pass(struct nodes *nodes, uint64_t us);
void nodes_connect(struct nodes *nodes, char name, uint8_t node);
/* A request of words split at spaces. */
void nodes_send(struct nodes *nodes, char name, const char *words);
/* The same; everything settles; then what came back to that client, which is forgotten by the next call:
 * line ends as "|". */
const char *nodes_ask(struct nodes *nodes, char name, const char *words);
const char *nodes_received(struct nodes *nodes, char name);
/* A key like "k17" whose slot the node owns at the beginning. */
const char *nodes_key(const struct nodes *nodes, uint8_t node, int number);

#endif
