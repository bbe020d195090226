/* What happens to servers and heatsinks while clients are at it, drawn from the seed: one act after the
 * other, each of which comes to its own end. */
#ifndef HS_SIM_FAULTS_H
#define HS_SIM_FAULTS_H

#include "base/buf.h"
#include "base/prng.h"

#include <stdbool.h>
#include <stdint.h>

struct hs_sim_world;

enum { HS_SIM_MOVING_KEYS = 4 }; /* slots that move are those of the load's first keys */

struct hs_sim_faults {
	struct hs_prng prng;
	bool on;
	uint64_t rests_until_us[HS_SIM_MOVING_KEYS]; /* their slots, from their last move */
	uint32_t failovers;			     /* that may be under way */
	uint32_t faulty_nodes; /* a bit for each node that something happens to */
	struct hs_buf script;  /* what was done and when, a line each, for people */
};

void hs_sim_faults_begin(struct hs_sim_world *world);
void hs_sim_faults_end(struct hs_sim_world *world);	     /* nothing new is begun */
void hs_sim_faults_finish_moves(struct hs_sim_world *world); /* when all servers are there */
/* A line for the script, if there is to be one. */
void hs_sim_script_note(struct hs_sim_world *world, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void hs_sim_faults_deinit(struct hs_sim_faults *faults);

#endif
