/* Planted bugs of a wrong redis engine, around the real engine code of one heatsink (the list is in
 * sim/planted_bugs.h): changes what the engine remembers, or the input of its events, before or after an event.
 * Without such a bug it changes nothing. One thread. */
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
	struct hs_flow *flow;		/* that handles the current event */
	uint64_t epochs[HS_NODES_MAX];	/* of the fetch pipes' tracking sessions before the event */
	uint64_t checked[HS_NODES_MAX]; /* the times up to which these sessions had caught up */
	struct hs_buf partial; /* the beginning of a reply that a lost connection had received */
	struct hs_event *held; /* a message that will be delivered after the next one; or NULL */
};

void hs_sim_redis_bugs_init(struct hs_sim_redis_bugs *redis_bugs, enum hs_sim_bug bug,
			    uint64_t seed);
void hs_sim_redis_bugs_deinit(struct hs_sim_redis_bugs *redis_bugs);

/* Before and after each event of a flow (routes, replies). */
void hs_sim_redis_bugs_before(struct hs_sim_redis_bugs *redis_bugs, struct hs_flow *flow);
void hs_sim_redis_bugs_after(struct hs_sim_redis_bugs *redis_bugs);
/* A pipe's connection is about to be lost; a new one is established. */
void hs_sim_redis_bugs_down(struct hs_sim_redis_bugs *redis_bugs, struct hs_pipe *pipe);
void hs_sim_redis_bugs_up(struct hs_sim_redis_bugs *redis_bugs, struct hs_pipe *pipe);
/* How often a message is delivered. *behind: a message to deliver after it, which the caller owns; or NULL. */
uint32_t hs_sim_redis_bugs_event(struct hs_sim_redis_bugs *redis_bugs, struct hs_event *event,
				 struct hs_event **behind);
/* An operation is finished: may replace its answer. */
void hs_sim_redis_bugs_finished(struct hs_sim_redis_bugs *redis_bugs, struct hs_op *op);
/* An operation is submitted; true: it was answered without a server. */
bool hs_sim_redis_bugs_submit(struct hs_sim_redis_bugs *redis_bugs, struct hs_op *op);
/* Whether a worker must not send to any server now. */
bool hs_sim_redis_bugs_holds(const struct hs_sim_redis_bugs *redis_bugs,
			     const struct hs_flow *flow);
/* Whether a worker must not send on this pipe now. hs_sim_redis_bugs_resume sends what was delayed, if it may. */
bool hs_sim_redis_bugs_delays(const struct hs_sim_redis_bugs *redis_bugs,
			      const struct hs_flow *flow, const struct hs_pipe *pipe);
void hs_sim_redis_bugs_resume(const struct hs_sim_redis_bugs *redis_bugs, struct hs_flow *flow);
/* By how many µs an invalidation is delayed; UINT64_MAX: it is dropped. */
uint64_t hs_sim_redis_bugs_change(struct hs_sim_redis_bugs *redis_bugs, uint64_t liveness_us);
/* The process dies: sends its requests in flight to the servers once more, without a connection. */
void hs_sim_redis_bugs_died(struct hs_sim_redis_bugs *redis_bugs, struct hs_flow *flow,
			    struct hs_sim_cluster *cluster);

#endif
