/* Clients beside the random load that wait and listen: some wait for elements of lists (BLPOP), which
 * others push, and are sometimes told to wait no longer (CLIENT UNBLOCK); some hear a channel, a pattern
 * and a shard channel, to which others publish. What each was told is checked:
 *
 *   - who waits is answered: with an element, with nothing when its time is up, or with an error;
 *   - an element is popped once at most, in the order in which its client pushed, and none is lost
 *     but with an answer that nobody heard (law 4);
 *   - a message comes once at most, in the order in which its client published, and to nobody who has
 *     left; where nothing fails, all come that were published after a subscription was confirmed. Of a
 *     Cluster once and in order only until heatsink has subscribed at another node (engine/redis/subscriber.h);
 *     and the order is that of messages which the same node was given.
 *
 * They ask one thing after the other, or a few at once. One thread. */
#ifndef HS_SIM_COMPANIONS_H
#define HS_SIM_COMPANIONS_H

#include "sim/check.h"
#include "sim/world.h"

enum { HS_SIM_COMPANION_ITEMS_MAX = 64 }; /* elements and messages */

struct hs_sim_companions_options {
	uint32_t poppers, pushers; /* in front of servers */
	uint32_t subscribers, publishers;
	uint32_t requests;	 /* of each */
	uint32_t act_us_max;	 /* between two of them */
	uint32_t timeout_us_max; /* of one that waits */
	bool forever;		 /* some wait until they are told not to */
	bool faults;  /* requests may be refused, or their outcome not known; and messages lost */
	bool crowded; /* there are few connections for those who wait */
	bool hang_ups;
};

struct hs_sim_companions;

struct hs_sim_companions *hs_sim_companions_create(const struct hs_sim_companions_options *options,
						   struct hs_sim_world *world);
void hs_sim_companions_destroy(struct hs_sim_companions **companions);
uint64_t hs_sim_companions_requests(const struct hs_sim_companions *companions);
/* Reads or writes that partitions may count for them: a message is a read, BLPOP and RPUSH are writes. */
uint64_t hs_sim_companions_heat(const struct hs_sim_companions *companions, bool write);
/* Requests under way, and those of heatsink's own that may follow from them, at most. */
uint64_t hs_sim_companions_in_flight(const struct hs_sim_companions *companions);

/* When all has settled: was everything answered? In a world that is calm: what is left in the lists, and did
 * everybody get what is due? Behind that they are heard no more. */
void hs_sim_companions_check_answered(struct hs_sim_companions *companions,
				      struct hs_sim_verdict *verdict);
void hs_sim_companions_check(struct hs_sim_companions *companions, struct hs_sim_verdict *verdict);

#endif
