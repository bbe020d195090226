/* Simulated Redis servers under a virtual clock, for unit tests that play their clients: connections are named by
 * letters, requests are words, and replies are text. One thread; nothing happens between two calls. The struct
 * owns the cluster and all buffers until nodes_deinit. A misuse (unknown name, no connection) aborts with
 * hs_check. */
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
	struct hs_buf changes; /* reported changes by cause: "set:k1 lost:k2 " … */
	struct hs_buf ran; /* commands that ran, with ! if the reply was an error: "get set! " */
	void (*on_changed)(struct nodes *nodes, const struct hs_sim_change *change); /* or NULL */
	void *context;
};

void nodes_init(struct nodes *nodes, const struct hs_sim_cluster_options *options);
void nodes_deinit(struct nodes *nodes);
/* Runs simulated events until none is left. */
void nodes_settle(struct nodes *nodes);
/* Runs the events of the next `us` microseconds. */
void nodes_pass(struct nodes *nodes, uint64_t us);
void nodes_connect(struct nodes *nodes, char name, uint8_t node);
/* Sends a request of words split at spaces. */
void nodes_send(struct nodes *nodes, char name, const char *words);
/* Sends a request and settles. Returns the bytes received by that client, with line ends as "|"; valid until the next
 * call. */
const char *nodes_ask(struct nodes *nodes, char name, const char *words);
const char *nodes_received(struct nodes *nodes, char name);
/* The `number`-th key like "k17" whose slot the node owns at present. */
const char *nodes_key(const struct nodes *nodes, uint8_t node, int number);

#endif
