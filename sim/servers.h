/* The simulated servers of a world as a whole: the Cluster (sim/cluster.h), the network to it (sim/network.h), and
 * the faults of both and of the heatsinks (sim/faults.h). All chance comes from the world's seed. One thread. */
#ifndef HS_SIM_SERVERS_H
#define HS_SIM_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

struct hs_sim_world;

struct hs_sim_servers_options {
	bool on;
	bool cluster;		   /* false: one server, without a Cluster */
	uint8_t masters, replicas; /* replicas: of each master */
	/* Upper bounds of durations, in µs: */
	uint32_t latency_us_max;  /* one way between a heatsink and a server */
	uint32_t slow_us;	  /* added to it for the first server */
	uint32_t cycle_us_max;	  /* until a server handles what has arrived */
	uint32_t gossip_us_max;	  /* until another node has received a gossip message */
	uint32_t stream_us_max;	  /* until a replica has applied what its master wrote */
	uint32_t message_us_max;  /* from a heatsink's engine thread to its workers */
	uint32_t node_timeout_us; /* cluster-node-timeout; 0: that of hs_sim_cluster_defaults */
	/* Options of the heatsinks: */
	uint32_t timeout_us;
	uint32_t in_flight_max, waiting_max, private_max;
	/* Between two liveness checks of the connections whose invalidations the cache depends on; 0: no
	 * checks. */
	uint32_t liveness_us;
	uint32_t tracking_keys_max; /* tracking-table-max-keys of a server; 0: no limit */
	/* The network: one in this many arriving pieces, on average, has the fault; 0: none has. */
	uint32_t lose_one_in, mute_one_in;
	bool cuts; /* pieces are cut anywhere, also within a reply */
	/* Faults of servers and heatsinks: one begins every `act_us_max` at most; 0: none. */
	uint32_t act_us_max;
	uint32_t down_us_max; /* how long a stall, a crash or a dead heatsink lasts */
	bool one_empty;	      /* one master has no slots at the beginning */
	bool moves, failovers, stalls, crashes, partitions, kills, deaths;
	bool lossy; /* replicas take over with what they have: acknowledged writes are lost */
	/* With `lossy`: before a master is lost, its replica stops receiving its writes for a while. */
	bool holds;
	/* Only the server `victim` ever has a fault: it is slow (slow_us), stalls or crashes. The others go on
	 * serving (cluster-require-full-coverage no). */
	bool one_faulty;
	uint8_t victim;
};

/* Creates the servers and the network. Then the heatsinks start, and hs_sim_servers_start lets time pass until all
 * of them have routes, and begins the faults. */
void hs_sim_servers_create(struct hs_sim_world *world);
void hs_sim_servers_start(struct hs_sim_world *world);
void hs_sim_servers_destroy(struct hs_sim_world *world);
/* Ends all faults; time passes until everything is served again. */
void hs_sim_servers_stop_faults(struct hs_sim_world *world);

#endif
