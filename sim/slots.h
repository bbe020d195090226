/* A slot map as one simulated node has it: which node owns each slot. It is a few ranges in place of 16384 cells,
 * because every schedule creates a Cluster of several nodes and moves a few slots. One thread. */
#ifndef HS_SIM_SLOTS_H
#define HS_SIM_SLOTS_H

#include <stdint.h>

enum { HS_SIM_NO_NODE = 0xff };

/* From the end of the previous range to `last`. */
struct hs_sim_range {
	uint16_t last;
	uint8_t node; /* or HS_SIM_NO_NODE */
};

/* The ranges cover all slots. Call hs_sim_slots_init first. */
struct hs_sim_slots {
	struct hs_sim_range *ranges;
	uint16_t count, cap;
};

/* Gives every slot to this node. */
void hs_sim_slots_init(struct hs_sim_slots *slots, uint8_t node);
void hs_sim_slots_deinit(struct hs_sim_slots *slots);
void hs_sim_slots_copy(struct hs_sim_slots *to, const struct hs_sim_slots *from);

/* The range that contains the slot. */
const struct hs_sim_range *hs_sim_slots_find(const struct hs_sim_slots *slots, uint16_t slot);
static inline uint8_t hs_sim_slots_owner(const struct hs_sim_slots *slots, uint16_t slot)
{
	return hs_sim_slots_find(slots, slot)->node;
}

void hs_sim_slots_give(struct hs_sim_slots *slots, uint16_t first, uint16_t last, uint8_t node);

uint32_t hs_sim_slots_count(const struct hs_sim_slots *slots, uint8_t node);

#endif
