/* `storm --ordered`: the turns that requests of one key take.
 *
 *     key A   GET ───┐
 *             GET ──┐│
 *             SET   └┴─ waits ─ SET ───┐
 *             GET                      └─ waits ─ GET ───
 *
 * A write goes when all earlier requests of its key are answered, and what comes after it goes when the
 * write is answered; reads go together. So every read has exactly one right answer, the last value
 * written, and one that is older by a hair is a mistake, not a matter of who was first.
 *
 * A request that has to wait is put aside and those behind it go on, as far as `room` reaches: it bounds
 * how far the load strays from the order it was drawn in, and the memory.
 *
 * Knows key numbers, no connections and no requests as bytes. One thread. */
#ifndef HS_CLI_STORM_ORDER_H
#define HS_CLI_STORM_ORDER_H

#include <stdbool.h>
#include <stdint.h>

enum { HS_STORM_ASIDE_MAX = 65536 };

struct hs_storm_order;

struct hs_storm_access {
	uint64_t key;
	bool write;
};

/* For keys below `keys`; at most `room` (up to HS_STORM_ASIDE_MAX) requests are put aside. */
struct hs_storm_order *hs_storm_order_create(uint64_t keys, uint64_t room);
void hs_storm_order_destroy(struct hs_storm_order **order);

/* A new request. True: it goes now; false: it was put aside, for which there must be room. */
bool hs_storm_order_offer(struct hs_storm_order *order, struct hs_storm_access access);
/* The next of those put aside that can go; it counts as gone. False: none can. */
bool hs_storm_order_take(struct hs_storm_order *order, struct hs_storm_access *access);
/* One that went is answered, or will never be. */
void hs_storm_order_done(struct hs_storm_order *order, struct hs_storm_access access);

uint64_t hs_storm_order_waiting(const struct hs_storm_order *order);
bool hs_storm_order_has_room(const struct hs_storm_order *order);

#endif
