/* Planted bugs of wrong request handling, between the cores and their engine (the list is in sim/planted_bugs.h):
 * takes the cores' operations and reorders, repeats, joins or misanswers them. Without such a bug everything passes
 * unchanged. One thread. */
#ifndef HS_SIM_OP_BUGS_H
#define HS_SIM_OP_BUGS_H

#include "core/op.h"
#include "sim/events.h"
#include "sim/planted_bugs.h"

struct hs_sim_op_bugs_host {
	struct hs_sim_events *events;
	const struct hs_now *now;
	enum hs_submit (*submit)(void *context, struct hs_op *op); /* to the engine */
	void (*done)(void *context, struct hs_op *op);		   /* to the core */
	void *context;
};

struct hs_sim_op_bugs;

struct hs_sim_op_bugs *hs_sim_op_bugs_create(enum hs_sim_bug bug, uint64_t seed,
					     const struct hs_sim_op_bugs_host *host);
void hs_sim_op_bugs_destroy(struct hs_sim_op_bugs **op_bugs);

enum hs_submit hs_sim_op_bugs_submit(struct hs_sim_op_bugs *op_bugs, struct hs_op *op);
void hs_sim_op_bugs_done(struct hs_sim_op_bugs *op_bugs, struct hs_op *op);

#endif
