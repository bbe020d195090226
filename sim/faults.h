/* The fault schedule: what happens to servers and heatsinks while clients send requests. Slots move, masters fail
 * over, servers stall, crash and lose connections, heatsinks die. Faults are drawn from the seed, one act after
 * the other, and each act ends by itself. The module also collects the script, a text for people: one line for
 * each fault, and the lines that clients, companions and servers add about requests, replies and commands. Killed
 * connections, held replication streams and faults of the network have no lines.
 *
 * It decides only what and when; sim/cluster.h, network.h and heatsink.h carry it out. Combinations that no server
 * can survive are never started (docs/SIMULATOR.md, "What never happens"). One thread. */
#ifndef HS_SIM_FAULTS_H
#define HS_SIM_FAULTS_H

#include "base/buf.h"
#include "base/prng.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_sim_world;

enum { HS_SIM_MOVING_KEYS = 4 }; /* only slots of the load's first keys move */

struct hs_sim_faults {
	struct hs_prng prng;
	bool on;
	/* Until then the slot rests after its last move. */
	uint64_t rests_until_us[HS_SIM_MOVING_KEYS];
	uint32_t failovers;    /* failovers that may be in flight */
	uint32_t faulty_nodes; /* a bit for each node that a fault holds at the moment */
	struct hs_buf script;  /* one line for each event, for people */
};

void hs_sim_faults_begin(struct hs_sim_world *world);
/* Starts dead heatsinks again; no new faults begin. */
void hs_sim_faults_end(struct hs_sim_world *world);
/* Ends moves that are half done, when all servers run. */
void hs_sim_faults_finish_moves(struct hs_sim_world *world);
/* Adds a line to the script, if the world writes one. */
void hs_sim_script_note(struct hs_sim_world *world, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void hs_sim_faults_deinit(struct hs_sim_faults *faults);

#endif
