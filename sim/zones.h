/* What a history tells about the order of its steps before any search: which to try first, and when it
 * is too early for one.
 *
 * A value, and every number that increments made of it, is a zone: all steps that found or made one of
 * these numbers happened while the zone was entered, once or several times. Into a zone leads a step
 * that makes one of its values from something else, such as a SET.
 *
 *     SET 10 ─ INCR → 11 ─ GET → 11 ─ INCR → 12 ─ GETSET 20 → 12 ─ INCR → 21 …
 *     └──────────────── one zone ──────────────┘└──── the next ────
 *
 * Leaving a zone is too early as long as steps remain that found its values, and none that leads back.
 *
 * Which to try first: a step whose answer says what it found, and which only adds to it, seldom fits by
 * chance. These come first, by the moment at which they were answered. Then those that also say what
 * they found and leave the zone. Last those that fit anywhere, such as a SET. Where it belongs is told
 * by its zone:
 *
 *     F  the first moment at which one of its steps was answered: it is entered before
 *     L  the last moment at which one of them was asked: the next one is entered after
 *
 * If every value is written once, the smaller of the two gives an order of the zones if there is one
 * (Gibbons and Korach, 1997). If not, a bad rank makes the search longer, never wrong. */
#ifndef HS_SIM_ZONES_H
#define HS_SIM_ZONES_H

#include "sim/history.h"

#define HS_SIM_NO_ZONE UINT32_MAX

/* What is known of a step. */
struct hs_sim_hint {
	uint32_t rank;	/* the lowest is tried first */
	uint32_t found; /* the zone it says it found, or none */
	uint32_t made;	/* the zone it left, or none: it left nothing, or who knows */
	bool wild;	/* it may lead into any zone */
};

struct hs_sim_zone;

struct hs_sim_zones {
	struct hs_sim_zone *all;
	uint32_t count;
};

/* `steps` point to the operations of one key, each the first of its transaction, in the order asked.
 * Fills one hint for each. */
void hs_sim_zones_init(struct hs_sim_zones *zones, const struct hs_sim_op *const *steps,
		       uint32_t count, struct hs_sim_hint *hints);
void hs_sim_zones_deinit(struct hs_sim_zones *zones);

/* The zone of a value, below `count`; or none. */
uint32_t hs_sim_zones_at(const struct hs_sim_zones *zones, int64_t value);

#endif
