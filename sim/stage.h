/* A stage of the core's row that only simulated worlds have. It does nothing useful, at random, and no law may
 * notice:
 *
 *     admit   now and then holds a client that has requests in flight
 *     depart  now and then takes a request. It and all requests that depart later are sent, in order, with the
 *             next flush; or earlier, at a tick, or when a request departs that the stage cannot take
 *     tick    switches itself off and on, whatever is in flight
 *
 * It stands between fold and versions, so that it delays what clients request and what fold sends. It shows that
 * core and stages do not depend on a fixed row. One thread. */
#ifndef HS_SIM_STAGE_H
#define HS_SIM_STAGE_H

#include "core/stage.h"

/* Fills in the row of stages/stages.c with this stage in it, NULL at the end. */
void hs_sim_stages(const struct hs_stage *stages[HS_STAGES_MAX + 1]);

#endif
