/* Companion clients: clients beside the random load that block and subscribe. Poppers block for elements of lists
 * (BLPOP), pushers push them, and unblockers end a wait (CLIENT UNBLOCK). Subscribers subscribe to a channel, a
 * pattern and a shard channel, publishers publish to them. Each reply and message is checked as it arrives:
 *
 *   - a blocked client is answered: with an element, with nothing when its timeout is over, or with an error;
 *   - an element is popped at most once, and none is lost except with an answer that no client received (law 4).
 *     Without faults, each popper gets the elements of one pusher in the order in which they were pushed;
 *   - a message arrives at most once, in the order in which its client published, and never after UNSUBSCRIBE.
 *     Without faults every message arrives that was published after the subscription was confirmed. In front of a
 *     Cluster "once" and "in order" hold only until heatsink subscribes at another node
 *     (engine/redis/subscriber.h), and the order is that of messages that went to the same node.
 *
 * A companion has one request in flight, or a few. One thread; the world must outlive them. */
#ifndef HS_SIM_COMPANIONS_H
#define HS_SIM_COMPANIONS_H

#include "sim/check.h"
#include "sim/world.h"

enum { HS_SIM_COMPANION_ITEMS_MAX = 64 }; /* elements and messages, together */

struct hs_sim_companions_options {
	uint32_t poppers, pushers; /* only in front of servers */
	uint32_t subscribers, publishers;
	uint32_t requests;	 /* of each companion */
	uint32_t act_us_max;	 /* between two requests */
	uint32_t timeout_us_max; /* of BLPOP */
	bool forever;		 /* some BLPOPs have no timeout */
	/* Requests may be refused or have unknown outcomes, and messages may be lost. */
	bool faults;
	bool crowded;  /* there are few private connections: BLPOP may be refused */
	bool hang_ups; /* companions disconnect, also with requests in flight */
};

struct hs_sim_companions;

struct hs_sim_companions *hs_sim_companions_create(const struct hs_sim_companions_options *options,
						   struct hs_sim_world *world);
void hs_sim_companions_destroy(struct hs_sim_companions **companions);
uint64_t hs_sim_companions_requests(const struct hs_sim_companions *companions);
/* Upper bound of the reads or writes that partitions count for companions: a message is a read, BLPOP and RPUSH are
 * writes. */
uint64_t hs_sim_companions_heat(const struct hs_sim_companions *companions, bool write);
/* Upper bound of their requests in flight and of the internal requests that follow from them. */
uint64_t hs_sim_companions_in_flight(const struct hs_sim_companions *companions);

/* Called when all has settled: checks that every request was answered. The second function is called when
 * faults have stopped: it drains the lists, and compares what was pushed and published with what arrived.
 * Afterwards the companions ignore replies. */
void hs_sim_companions_check_answered(struct hs_sim_companions *companions,
				      struct hs_sim_verdict *verdict);
void hs_sim_companions_check(struct hs_sim_companions *companions, struct hs_sim_verdict *verdict);

#endif
