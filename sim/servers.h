/* Simulated servers behind the heatsinks of a world: the Cluster (sim/cluster.h), the network to it, and what
 * happens to both while clients are at it: slots that move, failovers, servers that stall and crash,
 * connections that end, heatsinks that die and start again. Everything comes from the seed. */
#ifndef HS_SIM_SERVERS_H
#define HS_SIM_SERVERS_H

#include <stdbool.h>
#include <stdint.h>

struct hs_sim_world;

struct hs_sim_servers_options {
	bool on;
	bool cluster;		   /* else one server, without a Cluster */
	uint8_t masters, replicas; /* replicas of each master */
	/* The most that it takes, in µs: */
	uint32_t latency_us_max;  /* one way between a heatsink and a server */
	uint32_t slow_us;	  /* more, for the first server */
	uint32_t cycle_us_max;	  /* until a server handles what has arrived */
	uint32_t gossip_us_max;	  /* until another node has heard of a change */
	uint32_t stream_us_max;	  /* until a replica has what its master wrote */
	uint32_t message_us_max;  /* from a heatsink's engine thread to its workers */
	uint32_t node_timeout_us; /* cluster-node-timeout; 0: that of hs_sim_cluster_defaults */
	/* Options of the heatsinks. */
	uint32_t timeout_us;
	uint32_t in_flight_max, waiting_max, private_max;
	uint32_t
		liveness_us; /* between two liveness checks of connections that values rest on; 0: none */
	uint32_t tracking_keys_max; /* of a server; 0: no limit */
	/* The network: one in so many pieces that arrive; 0: never. */
	uint32_t lose_one_in, mute_one_in;
	bool cuts; /* pieces are cut anywhere, also within a reply */
	/* What happens to servers and heatsinks: some act every `act_us_max` at most; 0: nothing. */
	uint32_t act_us_max;
	uint32_t down_us_max; /* how long a stall, a crash or a death lasts */
	bool one_empty;	      /* one master has no slots in the beginning */
	bool moves, failovers, stalls, crashes, partitions, kills, deaths;
	bool lossy; /* replicas take over with what they have: acknowledged writes are lost, */
	bool holds; /* for the replica of a master that will be lost gets nothing for a while */
	/* Only this server is ever troubled: it is slow (slow_us), or stalls or crashes. The others serve all the same
	 * (cluster-require-full-coverage no). */
	bool one_faulty;
	uint8_t victim;
};

/* The servers and the network; then the heatsinks start, and time passes until they know the servers. */
void hs_sim_servers_create(struct hs_sim_world *world);
void hs_sim_servers_start(struct hs_sim_world *world);
void hs_sim_servers_destroy(struct hs_sim_world *world);
/* From now on nothing goes wrong, and time passes until everything is served again. */
void hs_sim_servers_stop_faults(struct hs_sim_world *world);

#endif
