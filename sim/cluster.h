/* Simulated Redis 7.0 servers, as a Cluster or as one server alone: bytes of connections in, bytes out, like
 * redis-server, in virtual time.
 *
 *     world ── hs_sim_server_receive ──► connection ──► cycle of the server ──► host.send
 *                                                        │   commands run on keyspace/
 *                                     replicas ◄─ stream ┤
 *                                     others   ◄─ gossip ┘
 *
 * A server works in cycles, like Redis's event loop. A cycle handles all bytes that have arrived, connection by
 * connection, then sends broadcast invalidations, then the replies. Every server has its own view of the Cluster;
 * views differ until gossip arrives. Replicas apply their master's stream later. All chance comes from the seed.
 *
 * It does not know the network: a connection is a pointer of the host's, and its bytes arrive when the host says so.
 * The host plans faults, slot moves and failovers with the calls below. The same things are also commands of a
 * connection (CLUSTER SETSLOT, MIGRATE, CLUSTER FAILOVER), for tests that run the same scripts against real servers.
 *
 * It does not have: collections (of lists only RPUSH and BLPOP, sim/server_lists.c), scripts, ACLs beyond one
 * password, databases other than 0. tests/integration/test_sim_cluster.py compares it with real servers.
 *
 * One thread. No event of the host may run after hs_sim_cluster_destroy. */
#ifndef HS_SIM_CLUSTER_H
#define HS_SIM_CLUSTER_H

#include "base/buf.h"
#include "base/now.h"
#include "sim/coverage.h"
#include "sim/events.h"
#include "sim/slots.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HS_SIM_NODES_MAX = 16 };

struct hs_sim_cluster_options {
	uint64_t seed;
	uint8_t masters; /* with equal shares of the slots: nodes 0 to masters - 1 */
	bool one_empty;	 /* the last master has no slots */
	/* Of each master: `replicas` nodes from masters + i * replicas on follow node i. */
	uint8_t replicas;
	bool cluster; /* false: one server without a Cluster; masters is 1 */
	bool extras;  /* has the module commands X.SWAP, X.BOTH and X.PAIR (sim/server_extras.c) */
	bool partial; /* as cluster-require-full-coverage no */
	bool lossy;   /* forced failovers are allowed */
	/* Planted bugs. A node runs commands for a slot that it does not own, as if it did: */
	bool serves_lost_writes, serves_lost_reads;
	/* Runs a command in place of TRYAGAIN, as if the missing keys did not exist. */
	bool serves_half_slots;
	bool keeps_watches; /* UNWATCH does nothing */
	bool keeps_asking;  /* ASKING holds for all later requests */
	bool pushes_first;  /* a client gets the invalidation of its own write before the reply */
	bool moves_silent; /* clients that watch or track a key get no message when it moves away */
	const char *password;	       /* of the default user; NULL: none */
	struct hs_bytes command_reply; /* to COMMAND, in RESP; empty: an empty array */
	uint32_t command_count;	       /* the reply of COMMAND COUNT */
	size_t bytes_max;	  /* of keys and values of one node; beyond it OOM; 0: no limit */
	size_t tracking_keys_max; /* as tracking-table-max-keys; 0: no limit */
	/* Upper bounds of durations; the actual ones are drawn. */
	uint32_t cycle_us_max;	  /* from the arrival of bytes to the cycle that handles them */
	uint32_t gossip_us_max;	  /* until another node has received a gossip message */
	uint32_t stream_us_max;	  /* until a replica has applied what its master wrote */
	uint32_t sync_us_max;	  /* until a replica asks its master for the stream (PSYNC) */
	uint32_t failover_us_max; /* each step of a failover: pause, election */
	/* As cluster-node-timeout: after this time without a message a node counts as failed, and a node that
	 * reaches no majority stops serving. */
	uint32_t node_timeout_us;
	/* How long a master serves nothing after a restart or a partition. */
	uint32_t rejoin_us;
};

/* Three masters with a replica each, delays of some 100 µs. */
struct hs_sim_cluster_options hs_sim_cluster_defaults(uint64_t seed);

struct hs_sim_server_conn;

enum hs_sim_change_cause {
	HS_SIM_CHANGE_COMMAND,
	HS_SIM_CHANGE_EXPIRED,
	HS_SIM_CHANGE_EVICTED,
	/* The key has a new owner, or its owner lost its data: its value is older, or it is missing. */
	HS_SIM_CHANGE_LOST,
};

/* A key's true value has changed: hs_sim_cluster_peek returns the new one. A key that moves to another node does not
 * change. */
struct hs_sim_change {
	enum hs_sim_change_cause cause;
	uint8_t node;
	uint16_t slot;		    /* of the key */
	const struct hs_bytes *key; /* NULL: every key of this node, in all slots */
	/* The node does not own the slot any more, and has not learned that yet: the change is lost already,
	 * and the key's true value is what it was. Plans prevent that (sim/plan.c); only a planted bug causes
	 * it. */
	bool void_already;
	/* The connection that did it; NULL: another client directly at the server, or none. */
	const struct hs_sim_server_conn *conn;
};

/* A command that was run: not queued, not redirected, not refused before it ran. */
struct hs_sim_ran {
	uint8_t node;
	/* NULL: another client ran it directly at the server. */
	const struct hs_sim_server_conn *conn;
	void *io; /* the host gave it to hs_sim_cluster_connect */
	size_t argc;
	const struct hs_bytes *argv;
	struct hs_bytes reply; /* in RESP; empty: none */
	bool error;	       /* the reply is an error */
	bool in_exec;	       /* EXEC ran it */
};

struct hs_sim_cluster_host {
	struct hs_sim_events *events;
	const struct hs_now *now;
	/* Bytes leave a server. It must not call the cluster; it may plan events. */
	void (*send)(void *context, void *io, struct hs_bytes bytes);
	/* The server has closed the connection after its last bytes. The connection is gone; do not disconnect
	 * it. */
	void (*closed)(void *context, void *io);
	/* All of these may be NULL. They may peek, and must not change anything. */
	void (*changed)(void *context, const struct hs_sim_change *change);
	void (*ran)(void *context, const struct hs_sim_ran *ran);
	/* A command was not run; `reply` is the reason as text: MOVED, ASK, TRYAGAIN, CLUSTERDOWN, READONLY, LOADING
	 * … */
	void (*refused)(void *context, const struct hs_sim_ran *not_run);
	/* A node's role, slots or address changed in its own view. */
	void (*turned)(void *context, uint8_t node);
	void *context;
	struct hs_sim_coverage_counts *coverage; /* counted by the cluster; may be NULL */
};

struct hs_sim_cluster;

struct hs_sim_cluster *hs_sim_cluster_create(const struct hs_sim_cluster_options *options,
					     const struct hs_sim_cluster_host *host);
void hs_sim_cluster_destroy(struct hs_sim_cluster **cluster);

/* ---- nodes ---- */

uint8_t hs_sim_cluster_nodes(const struct hs_sim_cluster *cluster);
const char *hs_sim_cluster_id(const struct hs_sim_cluster *cluster, uint8_t node);
const char *hs_sim_cluster_host(const struct hs_sim_cluster *cluster,
				uint8_t node); /* an address such as 10.0.0.1 */
uint16_t hs_sim_cluster_port(const struct hs_sim_cluster *cluster, uint8_t node);
/* HS_SIM_NO_NODE: no node has that address. */
uint8_t hs_sim_cluster_at(const struct hs_sim_cluster *cluster, const char *host, uint16_t port);
/* In the node's own view. */
bool hs_sim_cluster_is_master(const struct hs_sim_cluster *cluster, uint8_t node);
uint8_t hs_sim_cluster_master_of(const struct hs_sim_cluster *cluster, uint8_t node);
/* The true owner of the slot. Other nodes may still claim the slot until gossip reaches them. */
uint8_t hs_sim_cluster_owner(const struct hs_sim_cluster *cluster, uint16_t slot);

/* ---- connections ---- */

/* NULL: connection refused. A stalled node accepts connections and bytes. */
struct hs_sim_server_conn *hs_sim_cluster_connect(struct hs_sim_cluster *cluster, uint8_t node,
						  void *io);
void hs_sim_server_receive(struct hs_sim_server_conn *conn, const char *data, size_t len);
/* The client closed the connection: bytes that were not handled yet are dropped. */
void hs_sim_server_disconnect(struct hs_sim_server_conn *conn);
uint8_t hs_sim_server_conn_node(const struct hs_sim_server_conn *conn);
/* As in the reply of CLIENT ID. */
uint64_t hs_sim_server_conn_id(const struct hs_sim_server_conn *conn);

/* ---- slots that move ---- */

/* SETSLOT IMPORTING at `to`, MIGRATING at the owner. False: one of the two cannot do it now, because it is down, is
 * not the master it should be, or the slot is moving already. */
bool hs_sim_cluster_move_begin(struct hs_sim_cluster *cluster, uint16_t slot, uint8_t to);
/* MIGRATE of one key, drawn from the seed; false: no key is left, or one of the nodes is down. */
bool hs_sim_cluster_move_key(struct hs_sim_cluster *cluster, uint16_t slot);
/* MIGRATE of this key; also false: the key is missing. */
bool hs_sim_cluster_move_this(struct hs_sim_cluster *cluster, uint16_t slot, struct hs_bytes key);
/* MIGRATE of the remaining keys, then SETSLOT NODE at destination and source; gossip informs the others. False: one
 * of the nodes is down; nothing was done. */
bool hs_sim_cluster_move_end(struct hs_sim_cluster *cluster, uint16_t slot);
/* Moves the keys back, then SETSLOT STABLE at both nodes. */
bool hs_sim_cluster_move_undo(struct hs_sim_cluster *cluster, uint16_t slot);
/* The destination of the slot's move; HS_SIM_NO_NODE: it is not moving. */
uint8_t hs_sim_cluster_moving_to(const struct hs_sim_cluster *cluster, uint16_t slot);

/* ---- failovers ---- */

/* As CLUSTER FAILOVER at the replica: its master pauses writes, the replica catches up and takes over after a while.
 * Nothing is lost. False: the node is no replica, or one of the two is down. */
bool hs_sim_cluster_fail_over(struct hs_sim_cluster *cluster, uint8_t replica);
/* The replica takes over now, with the writes it has. The master's later writes are lost, and `changed` reports
 * them. False: the node is no replica or is down, or the options forbid it. */
bool hs_sim_cluster_take_over(struct hs_sim_cluster *cluster, uint8_t replica);

/* ---- faults ---- */

/* SIGSTOP and SIGCONT. */
void hs_sim_cluster_stall(struct hs_sim_cluster *cluster, uint8_t node);
void hs_sim_cluster_thaw(struct hs_sim_cluster *cluster, uint8_t node);
/* The process ends; every connection is closed. */
void hs_sim_cluster_crash(struct hs_sim_cluster *cluster, uint8_t node);
/* The process starts again, with or without its data. Without, what it owned is lost, and `changed` reports it. It
 * answers LOADING for `loading_us`. */
void hs_sim_cluster_restart(struct hs_sim_cluster *cluster, uint8_t node, bool keeps_data,
			    uint32_t loading_us);
/* A network partition: no messages pass between the node and the other nodes; clients reach all of them. */
void hs_sim_cluster_cut(struct hs_sim_cluster *cluster, uint8_t node);
void hs_sim_cluster_heal(struct hs_sim_cluster *cluster, uint8_t node);
/* While held, the replica applies nothing; afterwards it applies everything at once. */
void hs_sim_cluster_hold_stream(struct hs_sim_cluster *cluster, uint8_t replica, bool hold);
/* As replica-serve-stale-data no: MASTERDOWN while the link to its master is down. */
void hs_sim_cluster_refuse_stale(struct hs_sim_cluster *cluster, uint8_t node, bool refuse);
/* The server closes every client connection, as CLIENT KILL does. */
void hs_sim_cluster_kill_clients(struct hs_sim_cluster *cluster, uint8_t node);
/* Whether the node would handle a client's request now: it runs, is not stalled and not loading. */
bool hs_sim_cluster_serves(const struct hs_sim_cluster *cluster, uint8_t node);
/* Thaws, heals and restarts every node; from now on every duration is the shortest. */
void hs_sim_cluster_stop_faults(struct hs_sim_cluster *cluster);

/* ---- leftovers of connections ---- */

struct hs_sim_leftovers {
	uint32_t clients; /* connections of clients */
	/* Of these connections: */
	uint32_t watching, queueing, blocked, tracking;
	uint32_t prefixes; /* 1: there are prefixes of BCAST */
};

void hs_sim_cluster_leftovers(const struct hs_sim_cluster *cluster, uint8_t node,
			      struct hs_sim_leftovers *left);

/* ---- data ---- */

/* Another client runs this command directly at the node that owns the slot of argv[1]; if the slot is moving, at the
 * node that has the key. False: that node takes no commands now. The reply, in RESP2, is appended. */
bool hs_sim_cluster_do_external(struct hs_sim_cluster *cluster, size_t argc,
				const struct hs_bytes *argv, struct hs_buf *reply);
/* The same at a given node: FLUSHALL. */
bool hs_sim_cluster_do_at(struct hs_sim_cluster *cluster, uint8_t node, size_t argc,
			  const struct hs_bytes *argv, struct hs_buf *reply);
/* The true value of a key: the reply to GET, in RESP2. *expire_ms is the last ms at which it exists; -1: no time to
 * live, -2: it is missing. */
void hs_sim_cluster_peek(struct hs_sim_cluster *cluster, struct hs_bytes key, struct hs_buf *reply,
			 int64_t *expire_ms);
/* The key's value at one node. */
void hs_sim_cluster_peek_at(struct hs_sim_cluster *cluster, uint8_t node, struct hs_bytes key,
			    struct hs_buf *reply, int64_t *expire_ms);
/* Visits every key at the node, expired ones as well. */
void hs_sim_cluster_each_key(struct hs_sim_cluster *cluster, uint8_t node,
			     void (*visit)(void *context, uint16_t slot, struct hs_bytes key),
			     void *context);
/* Deletes expired keys at all running masters, as Redis does by itself now and then. */
void hs_sim_cluster_expire(struct hs_sim_cluster *cluster);
/* Deletes a key as if for lack of memory; false: it is missing. */
bool hs_sim_cluster_evict(struct hs_sim_cluster *cluster, struct hs_bytes key);
/* Whether every node knows the true owner of every slot. As with Redis, moving slots or replacing masters earlier
 * risks that a node with an older claim and a newer epoch takes them back. */
bool hs_sim_cluster_agrees(const struct hs_sim_cluster *cluster);
/* Whether every running replica has caught up with its master, and all nodes have the same view. */
bool hs_sim_cluster_is_settled(const struct hs_sim_cluster *cluster);

#endif
