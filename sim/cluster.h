/* Simulated Redis 7.0 servers that form a Cluster, or one server alone: bytes of connections in, bytes
 * out, like redis-server, in virtual time.
 *
 *     world ── hs_sim_server_receive ──► connection ──► cycle of the server ──► host.send
 *                                                        │   commands run on keyspace/
 *                                     replicas ◄─ stream ┤
 *                                     others   ◄─ gossip ┘
 *
 * What happens at a server happens in cycles, as in Redis's event loop: a cycle handles all bytes that
 * have arrived, connection by connection, then sends broadcast invalidations, then the replies. Every
 * server knows the Cluster as it was told of it: views differ until gossip arrives. Replicas apply
 * their master's stream later. All chance comes from the seed.
 *
 * What it does not know: the network. A connection is a pointer of the host's, and its bytes arrive
 * when the host says so. The host plans faults, slot moves and failovers by the calls below; the same
 * are also commands of a connection (CLUSTER SETSLOT, MIGRATE, CLUSTER FAILOVER), which serve tests
 * that run scripts against real servers.
 *
 * It does not have: collections (of lists RPUSH and BLPOP, sim/server_lists.c), scripts, ACLs but one password, databases but 0.
 *
 * One thread. The host's events must not run after hs_sim_cluster_destroy. */
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
	uint8_t masters;  /* with equal shares of the slots: nodes 0 … masters-1 */
	bool one_empty;	  /* but the last one, which has none */
	uint8_t replicas; /* of each: nodes masters + i * replicas … follow node i */
	bool cluster;	  /* false: one server, without a Cluster; masters is 1 */
	bool extras;	  /* has X.SWAP, X.BOTH and X.PAIR (see sim/server_extras.c) */
	bool partial;	  /* as cluster-require-full-coverage no */
	bool lossy;	  /* forced failovers are allowed */
	/* Mistakes: a node runs what is for a slot that it does not own, as if it did. */
	bool serves_lost_writes, serves_lost_reads;
	bool serves_half_slots; /* a mistake: instead of TRYAGAIN, as if missing keys were nowhere */
	bool keeps_watches;	/* a mistake: UNWATCH does nothing, as if nobody had sent it */
	bool keeps_asking;	/* a mistake: ASKING holds for all requests behind it */
	bool pushes_first; /* a mistake: a client hears of what it changed itself before the reply */
	bool moves_silent; /* a mistake: nobody who watches or tracks a key hears that it moved away */
	const char *password;	       /* of the default user; NULL: none */
	struct hs_bytes command_reply; /* to COMMAND, in RESP; empty: an empty array */
	uint32_t command_count;	       /* what COMMAND COUNT says */
	size_t bytes_max;	       /* of keys and values of one node, then OOM; 0: no limit */
	size_t tracking_keys_max;      /* as tracking-table-max-keys; 0: no limit */
	/* The most that something takes; how long it does is drawn. */
	uint32_t cycle_us_max;	  /* from bytes that arrive to the cycle that handles them */
	uint32_t gossip_us_max;	  /* until another node has heard of a change */
	uint32_t stream_us_max;	  /* until a replica has applied what its master wrote */
	uint32_t sync_us_max;	  /* a full resynchronization */
	uint32_t failover_us_max; /* each step of a failover: pause, election */
	/* As cluster-node-timeout: after so long a silent node counts as failed, and a node without a
	 * majority stops to serve. */
	uint32_t node_timeout_us;
	uint32_t rejoin_us; /* a master that was restarted or cut off serves nothing for so long */
};

/* Three masters with a replica each, delays of some 100 µs. */
struct hs_sim_cluster_options hs_sim_cluster_defaults(uint64_t seed);

struct hs_sim_server_conn;

enum hs_sim_change_cause {
	HS_SIM_CHANGE_COMMAND,
	HS_SIM_CHANGE_EXPIRED,
	HS_SIM_CHANGE_EVICTED,
	/* The key's owner is another node by now, or lost its data, and that has another value or none. */
	HS_SIM_CHANGE_LOST,
};

/* A key's true value is another now: hs_sim_cluster_peek tells which. A key that moves to another node
 * does not change. */
struct hs_sim_change {
	enum hs_sim_change_cause cause;
	uint8_t node;
	uint16_t slot;		    /* of the key */
	const struct hs_bytes *key; /* NULL: every key that this node had, of all slots */
	/* The node owns the slot no more, and has not heard of it: the change is lost already, the key's
	 * true value is what it was. Plans let no such thing happen (sim/plan.c): only a planted mistake does. */
	bool void_already;
	/* Who did it; NULL: somebody behind heatsink, or nobody. */
	const struct hs_sim_server_conn *conn;
};

/* A command was run: not queued, not redirected, not refused before it ran. */
struct hs_sim_ran {
	uint8_t node;
	const struct hs_sim_server_conn *conn; /* NULL: behind heatsink */
	void *io;			       /* the connection's */
	size_t argc;
	const struct hs_bytes *argv;
	struct hs_bytes reply; /* RESP; empty: none */
	bool error;	       /* it is one */
	bool in_exec;
};

struct hs_sim_cluster_host {
	struct hs_sim_events *events;
	const struct hs_now *now;
	/* Bytes leave a server. Must not call back in here; it may plan events. */
	void (*send)(void *context, void *io, struct hs_bytes bytes);
	/* The server has closed the connection, behind what was sent. It is gone, do not disconnect it. */
	void (*closed)(void *context, void *io);
	/* All of these may be NULL. They may peek and must not change anything. */
	void (*changed)(void *context, const struct hs_sim_change *change);
	void (*ran)(void *context, const struct hs_sim_ran *ran);
	/* A command was not run: MOVED, ASK, TRYAGAIN, CLUSTERDOWN, READONLY, LOADING …, as text. */
	void (*refused)(void *context, const struct hs_sim_ran *not_run);
	/* A node's role, slots or address changed as itself sees it. */
	void (*turned)(void *context, uint8_t node);
	void *context;
	struct hs_sim_coverage_counts *coverage; /* counted in here; may be NULL */
};

struct hs_sim_cluster;

struct hs_sim_cluster *hs_sim_cluster_create(const struct hs_sim_cluster_options *options,
					     const struct hs_sim_cluster_host *host);
void hs_sim_cluster_destroy(struct hs_sim_cluster **cluster);

/* ---- nodes ---- */

uint8_t hs_sim_cluster_nodes(const struct hs_sim_cluster *cluster);
const char *hs_sim_cluster_id(const struct hs_sim_cluster *cluster, uint8_t node);
const char *hs_sim_cluster_host(const struct hs_sim_cluster *cluster, uint8_t node); /* 10.0.0.1 */
uint16_t hs_sim_cluster_port(const struct hs_sim_cluster *cluster, uint8_t node);
/* HS_SIM_NOBODY: nobody has that address. */
uint8_t hs_sim_cluster_at(const struct hs_sim_cluster *cluster, const char *host, uint16_t port);
/* As the node itself sees it. */
bool hs_sim_cluster_is_master(const struct hs_sim_cluster *cluster, uint8_t node);
uint8_t hs_sim_cluster_master_of(const struct hs_sim_cluster *cluster, uint8_t node);
/* Who owns the slot in truth: every other node that thinks so is about to learn better. */
uint8_t hs_sim_cluster_owner(const struct hs_sim_cluster *cluster, uint16_t slot);

/* ---- connections ---- */

/* NULL: nobody listens there. A node that is stalled takes connections and bytes. */
struct hs_sim_server_conn *hs_sim_cluster_connect(struct hs_sim_cluster *cluster, uint8_t node,
						  void *io);
void hs_sim_server_receive(struct hs_sim_server_conn *conn, const char *data, size_t len);
/* The client closed it: what was not handled yet is not handled any more. */
void hs_sim_server_disconnect(struct hs_sim_server_conn *conn);
uint8_t hs_sim_server_conn_node(const struct hs_sim_server_conn *conn);
/* As CLIENT ID says it. */
uint64_t hs_sim_server_conn_id(const struct hs_sim_server_conn *conn);

/* ---- slots that move ---- */

/* SETSLOT IMPORTING at `to`, MIGRATING at the owner. False: one of them cannot do it now (it is away,
 * is not the master it should be, or the slot moves already). */
bool hs_sim_cluster_move_begin(struct hs_sim_cluster *cluster, uint16_t slot, uint8_t to);
/* MIGRATE of one key, drawn; false: none is left, or one of the nodes is away. */
bool hs_sim_cluster_move_key(struct hs_sim_cluster *cluster, uint16_t slot);
/* MIGRATE of this one; false also: it is not there. */
bool hs_sim_cluster_move_this(struct hs_sim_cluster *cluster, uint16_t slot, struct hs_bytes key);
/* The keys that are left, then SETSLOT NODE at the destination and at the source; gossip tells the
 * others. False: one of the nodes is away; nothing was done. */
bool hs_sim_cluster_move_end(struct hs_sim_cluster *cluster, uint16_t slot);
/* The keys that have moved go back, and SETSLOT STABLE at both. */
bool hs_sim_cluster_move_undo(struct hs_sim_cluster *cluster, uint16_t slot);
/* Where the slot is moving; HS_SIM_NOBODY: it is not. */
uint8_t hs_sim_cluster_moving_to(const struct hs_sim_cluster *cluster, uint16_t slot);

/* ---- failovers ---- */

/* As CLUSTER FAILOVER at the replica: its master pauses writes, the replica catches up and takes over
 * some time later. Nothing is lost. False: it is no replica, or one of the two is away. */
bool hs_sim_cluster_fail_over(struct hs_sim_cluster *cluster, uint8_t replica);
/* The replica takes over now, with what it has; what its master has more is lost, which `changed` tells.
 * False: it is no replica, is away, or the options do not allow it. */
bool hs_sim_cluster_take_over(struct hs_sim_cluster *cluster, uint8_t replica);

/* ---- faults ---- */

/* SIGSTOP and SIGCONT. */
void hs_sim_cluster_stall(struct hs_sim_cluster *cluster, uint8_t node);
void hs_sim_cluster_thaw(struct hs_sim_cluster *cluster, uint8_t node);
/* The process ends: every connection is closed. */
void hs_sim_cluster_crash(struct hs_sim_cluster *cluster, uint8_t node);
/* It starts again. With its data, or without: then what it owned is lost, which `changed` tells. For
 * `loading_us` it is LOADING. */
void hs_sim_cluster_restart(struct hs_sim_cluster *cluster, uint8_t node, bool keeps_data,
			    uint32_t loading_us);
/* The node hears nothing of the other nodes and they nothing of it; clients reach it. */
void hs_sim_cluster_cut(struct hs_sim_cluster *cluster, uint8_t node);
void hs_sim_cluster_heal(struct hs_sim_cluster *cluster, uint8_t node);
/* The replica applies nothing more, and then everything at once. */
void hs_sim_cluster_hold_stream(struct hs_sim_cluster *cluster, uint8_t replica, bool hold);
/* As replica-serve-stale-data no: MASTERDOWN while the link to its master is down. */
void hs_sim_cluster_refuse_stale(struct hs_sim_cluster *cluster, uint8_t node, bool refuse);
/* The server closes every connection of clients, as CLIENT KILL. */
void hs_sim_cluster_kill_clients(struct hs_sim_cluster *cluster, uint8_t node);
/* Whether a client's request would be handled there now: it runs, is not stalled and not loading. */
bool hs_sim_cluster_serves(const struct hs_sim_cluster *cluster, uint8_t node);
/* Everything is thawed, healed and restarted; from now on nothing takes longer than it must. */
void hs_sim_cluster_stop_faults(struct hs_sim_cluster *cluster);

/* ---- what connections leave behind ---- */

struct hs_sim_leftovers {
	uint32_t clients; /* of clients; of them: */
	uint32_t watching, queueing, blocked, tracking;
	uint32_t prefixes; /* 1: of BCAST, some */
};

void hs_sim_cluster_leftovers(const struct hs_sim_cluster *cluster, uint8_t node,
			      struct hs_sim_leftovers *left);

/* ---- data ---- */

/* Somebody else does this at the node that owns the slot of argv[1], past heatsink; if the slot is on
 * the move, where the key is. False: that node takes nothing now. The reply, in RESP2, is appended. */
bool hs_sim_cluster_do_external(struct hs_sim_cluster *cluster, size_t argc,
				const struct hs_bytes *argv, struct hs_buf *reply);
/* The same at one node: FLUSHALL. */
bool hs_sim_cluster_do_at(struct hs_sim_cluster *cluster, uint8_t node, size_t argc,
			  const struct hs_bytes *argv, struct hs_buf *reply);
/* What a key holds in truth: the reply to GET, in RESP2. *expire_ms is the last ms at which it is
 * there; -1: it stays, -2: there is nothing. */
void hs_sim_cluster_peek(struct hs_sim_cluster *cluster, struct hs_bytes key, struct hs_buf *reply,
			 int64_t *expire_ms);
/* What one node holds of it. */
void hs_sim_cluster_peek_at(struct hs_sim_cluster *cluster, uint8_t node, struct hs_bytes key,
			    struct hs_buf *reply, int64_t *expire_ms);
/* Every key that the node holds, expired ones as well. */
void hs_sim_cluster_each_key(struct hs_sim_cluster *cluster, uint8_t node,
			     void (*visit)(void *context, uint16_t slot, struct hs_bytes key),
			     void *context);
/* Removes what has expired at all masters that run, as Redis does by itself now and then. */
void hs_sim_cluster_expire(struct hs_sim_cluster *cluster);
/* Removes a key as if for lack of memory; false: it is not there. */
bool hs_sim_cluster_evict(struct hs_sim_cluster *cluster, struct hs_bytes key);
/* Whether every node knows who owns what. As with Redis, who moves slots or replaces masters before that risks
 * that a node with an older claim and a newer epoch takes them back. */
bool hs_sim_cluster_agrees(const struct hs_sim_cluster *cluster);
/* Whether every replica that runs has what its master has, and all nodes see the same Cluster. */
bool hs_sim_cluster_is_settled(const struct hs_sim_cluster *cluster);

#endif
