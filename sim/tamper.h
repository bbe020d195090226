/* Between the cores and their engine, for the mistakes of somebody who thinks that a hot key is easy
 * (sim/mistake.h): takes the cores' operations and treats them wrongly. Without such a mistake
 * everything goes through as it is. One thread. */
#ifndef HS_SIM_TAMPER_H
#define HS_SIM_TAMPER_H

#include "core/op.h"
#include "sim/events.h"
#include "sim/mistake.h"

struct hs_sim_tamper_host {
	struct hs_sim_events *events;
	const struct hs_now *now;
	enum hs_submit (*submit)(void *context, struct hs_op *op); /* to the engine */
	void (*done)(void *context, struct hs_op *op);		   /* to the core */
	void *context;
};

struct hs_sim_tamper;

struct hs_sim_tamper *hs_sim_tamper_create(enum hs_sim_mistake mistake, uint64_t seed,
					   const struct hs_sim_tamper_host *host);
void hs_sim_tamper_destroy(struct hs_sim_tamper **tamper);

enum hs_submit hs_sim_tamper_submit(struct hs_sim_tamper *tamper, struct hs_op *op);
void hs_sim_tamper_done(struct hs_sim_tamper *tamper, struct hs_op *op);

#endif
