/* Zones: what a history says about the order of its steps before any search. They give the search a rank for each
 * step (the lowest is tried first) and say when it is too early to leave a zone.
 *
 * A zone is a value together with every number that increments made of it. All steps that found or made one of these
 * numbers happened while the key was in the zone, once or several times. A step that makes one of the zone's values
 * from something else, such as a SET, leads into the zone.
 *
 *     SET 10 ─ INCR → 11 ─ GET → 11 ─ INCR → 12 ─ GETSET 20 → 12 ─ INCR → 21 …
 *     └──────────────── one zone ──────────────┘└──── the next ────
 *
 * Leaving a zone is too early while steps remain that found its values, and no step remains that leads back.
 *
 * Rank: a step whose answer says what it found, and which only adds to it, seldom fits by chance. Such steps come
 * first, by the time of their answers. Then come steps that also say what they found, and leave the zone. Steps
 * with unknown outcomes come last, in the order of their requests. Before them come steps that fit anywhere, such
 * as a SET; their place follows from their zone:
 *
 *     F  the first answer of one of its steps: the zone was entered before
 *     L  the last request of one of its steps: the next zone is entered after
 *
 * If every value is written once, the smaller of the two gives an order of the zones if there is one (Gibbons and
 * Korach, 1997). If not, a bad rank makes the search longer, never wrong. Pure data; one thread. */
#ifndef HS_SIM_ZONES_H
#define HS_SIM_ZONES_H

#include "sim/history.h"

#define HS_SIM_NO_ZONE UINT32_MAX

/* Hints about one step for the search. */
struct hs_sim_hint {
	uint32_t rank;	/* the lowest is tried first */
	uint32_t found; /* the zone of the value that its answer found; HS_SIM_NO_ZONE: none */
	uint32_t made;	/* the zone of the value that it made; HS_SIM_NO_ZONE: none, or unknown */
	bool wild;	/* it may lead into any zone */
};

struct hs_sim_zone;

struct hs_sim_zones {
	struct hs_sim_zone *all;
	uint32_t count;
};

/* `steps` point to the operations of one key, each the first one of its transaction, in the order of their requests.
 * Fills one hint for each. */
void hs_sim_zones_init(struct hs_sim_zones *zones, const struct hs_sim_op *const *steps,
		       uint32_t count, struct hs_sim_hint *hints);
void hs_sim_zones_deinit(struct hs_sim_zones *zones);

/* The zone of a value, below `count`; or HS_SIM_NO_ZONE. */
uint32_t hs_sim_zones_at(const struct hs_sim_zones *zones, int64_t value);

#endif
