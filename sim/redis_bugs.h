/* Around the real engine code of a heatsink, for the mistakes of somebody who thinks that a Cluster is easy
 * (sim/planted_bugs.h): changes what the engine remembers, or what it is told, before or after one of its events.
 * Without such a mistake nothing is changed. One thread. */
#ifndef HS_SIM_REDIS_BUGS_H
#define HS_SIM_REDIS_BUGS_H

#include "base/buf.h"
#include "base/prng.h"
#include "core/event.h"
#include "engine/redis/internal.h"
#include "sim/planted_bugs.h"

struct hs_sim_cluster;

struct hs_sim_redis_bugs {
	enum hs_sim_bug bug;
	struct hs_prng prng;
	struct hs_flow *flow;	       /* of the event under way */
	uint64_t epochs[HS_NODES_MAX]; /* of the fetch pipes' tracking sessions, before it */
	uint64_t checked[HS_NODES_MAX];
	struct hs_buf partial; /* what a lost connection had begun to say */
	struct hs_event *held; /* a message that comes behind the next one; or NULL */
};

void hs_sim_redis_bugs_init(struct hs_sim_redis_bugs *redis_bugs, enum hs_sim_bug bug,
			    uint64_t seed);
void hs_sim_redis_bugs_deinit(struct hs_sim_redis_bugs *redis_bugs);

/* Around whatever happens to a flow: routes, replies. */
void hs_sim_redis_bugs_before(struct hs_sim_redis_bugs *redis_bugs, struct hs_flow *flow);
void hs_sim_redis_bugs_after(struct hs_sim_redis_bugs *redis_bugs);
/* A pipe's connection is about to be lost; it has come about. */
void hs_sim_redis_bugs_down(struct hs_sim_redis_bugs *redis_bugs, struct hs_pipe *pipe);
void hs_sim_redis_bugs_up(struct hs_sim_redis_bugs *redis_bugs, struct hs_pipe *pipe);
/* A message: how often it is told, before `*behind`, which is the caller's then. */
uint32_t hs_sim_redis_bugs_event(struct hs_sim_redis_bugs *redis_bugs, struct hs_event *event,
				 struct hs_event **behind);
/* An operation is finished: its answer may be another one. */
void hs_sim_redis_bugs_finished(struct hs_sim_redis_bugs *redis_bugs, struct hs_op *op);
/* An operation is submitted: true, if it is answered without a server. */
bool hs_sim_redis_bugs_submit(struct hs_sim_redis_bugs *redis_bugs, struct hs_op *op);
/* Whether a worker sends nothing now to any server. */
bool hs_sim_redis_bugs_holds(const struct hs_sim_redis_bugs *redis_bugs,
			     const struct hs_flow *flow);
/* Whether a worker sends nothing now on this pipe; what it has not sent since goes when this is called, if it may. */
bool hs_sim_redis_bugs_delays(const struct hs_sim_redis_bugs *redis_bugs,
			      const struct hs_flow *flow, const struct hs_pipe *pipe);
void hs_sim_redis_bugs_resume(const struct hs_sim_redis_bugs *redis_bugs, struct hs_flow *flow);
/* How much later than it came a change is told, in µs; UINT64_MAX: never. */
uint64_t hs_sim_redis_bugs_change(struct hs_sim_redis_bugs *redis_bugs, uint64_t liveness_us);
/* The process dies: what it has under way is sent once more, by nobody. */
void hs_sim_redis_bugs_died(struct hs_sim_redis_bugs *redis_bugs, struct hs_flow *flow,
			    struct hs_sim_cluster *cluster);

#endif
