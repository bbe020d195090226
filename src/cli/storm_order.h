/* `storm --ordered`: the order of requests for one key.
 *
 *     key A   GET ───┐
 *             GET ──┐│
 *             SET   └┴─ waits ─ SET ───┐
 *             GET                      └─ waits ─ GET ───
 *
 * A write is sent when all earlier requests for its key are answered, and later requests are sent when the write is
 * answered; reads run together. So every read has exactly one right reply, the last value written, and --verify can
 * call an older value wrong instead of concurrent.
 *
 * A request that must wait is put aside, and requests for other keys go on, up to `room` waiting requests. `room`
 * bounds the memory for waiting requests, and how far the load strays from the order in which it was drawn. A
 * table of all keys (40 bytes each) is allocated besides.
 *
 * Knows key numbers, but no connections and no bytes. One thread. */
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

/* A new request. True: send it now; false: it was put aside. The caller checks hs_storm_order_has_room first. */
bool hs_storm_order_offer(struct hs_storm_order *order, struct hs_storm_access access);
/* Takes a request put aside that may be sent now. False: there is none. */
bool hs_storm_order_take(struct hs_storm_order *order, struct hs_storm_access *access);
/* A request that was sent is answered, or lost. */
void hs_storm_order_done(struct hs_storm_order *order, struct hs_storm_access access);

uint64_t hs_storm_order_waiting(const struct hs_storm_order *order);
bool hs_storm_order_has_room(const struct hs_storm_order *order);

#endif
