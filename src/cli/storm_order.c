/* The order of requests for one key (storm_order.h).
 *
 * A key has a queue of waiting requests, oldest first. While it is not empty, every new request for the key joins it,
 * even a read that could run with the reads in flight: otherwise writes would starve. When the oldest may be sent,
 * its key is in the list `ready`. Only sending that request removes the key from the list, since no later request for
 * the key can overtake it. */
#include "cli/storm_order.h"

#include "base/check.h"
#include "base/list.h"
#include "base/mem.h"

struct aside {
	struct hs_link link;
	bool write;
};

struct key {
	struct hs_link waiting_requests;
	struct hs_link access; /* in `ready`, or in no list */
	uint32_t reading;      /* reads in flight */
	bool writing;
};

struct hs_storm_order {
	struct key *keys;
	struct aside *waiting_requests; /* all places; those not in use are in `free` */
	struct hs_link free;
	struct hs_link ready; /* keys whose oldest request may be sent */
	uint64_t waiting;
};

struct hs_storm_order *hs_storm_order_create(uint64_t keys, uint64_t room)
{
	struct hs_storm_order *order = hs_mem_zalloc(sizeof *order);

	hs_check(room > 0 && room <= HS_STORM_ASIDE_MAX);
	order->keys = hs_mem_zalloc(keys * sizeof *order->keys);
	for (uint64_t i = 0; i < keys; i++) {
		hs_list_init(&order->keys[i].waiting_requests);
		hs_list_init(&order->keys[i].access);
	}
	order->waiting_requests = hs_mem_zalloc(room * sizeof *order->waiting_requests);
	hs_list_init(&order->free);
	for (uint64_t i = 0; i < room; i++)
		hs_list_append(&order->free, &order->waiting_requests[i].link);
	hs_list_init(&order->ready);
	return order;
}

void hs_storm_order_destroy(struct hs_storm_order **order)
{
	if (!*order)
		return;
	hs_mem_free(&(*order)->keys);
	hs_mem_free(&(*order)->waiting_requests);
	hs_mem_free(order);
}

static bool can_go(const struct key *key, bool write)
{
	return !key->writing && !(write && key->reading);
}

static void go(struct key *key, bool write)
{
	if (write)
		key->writing = true;
	else
		key->reading++;
}

static void put_aside(struct hs_storm_order *order, struct key *key, bool write)
{
	struct aside *aside = hs_list_first(&order->free, struct aside, link);

	hs_check(aside);
	aside->write = write;
	hs_list_remove(&aside->link);
	hs_list_append(&key->waiting_requests, &aside->link);
	order->waiting++;
}

bool hs_storm_order_offer(struct hs_storm_order *order, struct hs_storm_access access)
{
	struct key *key = &order->keys[access.key];

	if (!hs_list_empty(&key->waiting_requests) || !can_go(key, access.write)) {
		put_aside(order, key, access.write);
		return false;
	}
	go(key, access.write);
	return true;
}

/* Adds the key to `ready` if its oldest request may be sent. */
static void look(struct hs_storm_order *order, struct key *key)
{
	const struct aside *first = hs_list_first(&key->waiting_requests, struct aside, link);

	if (first && hs_list_empty(&key->access) && can_go(key, first->write))
		hs_list_append(&order->ready, &key->access);
}

bool hs_storm_order_take(struct hs_storm_order *order, struct hs_storm_access *access)
{
	struct key *key = hs_list_first(&order->ready, struct key, access);
	struct aside *aside;

	if (!key)
		return false;
	aside = hs_list_first(&key->waiting_requests, struct aside, link);
	*access = (struct hs_storm_access){(uint64_t)(key - order->keys), aside->write};
	hs_list_remove(&key->access);
	hs_list_remove(&aside->link);
	hs_list_append(&order->free, &aside->link);
	order->waiting--;
	go(key, access->write);
	look(order, key);
	return true;
}

void hs_storm_order_done(struct hs_storm_order *order, struct hs_storm_access access)
{
	struct key *key = &order->keys[access.key];

	if (access.write) {
		hs_check(key->writing);
		key->writing = false;
	} else {
		hs_check(key->reading > 0);
		key->reading--;
	}
	look(order, key);
}

uint64_t hs_storm_order_waiting(const struct hs_storm_order *order)
{
	return order->waiting;
}

bool hs_storm_order_has_room(const struct hs_storm_order *order)
{
	return !hs_list_empty(&order->free);
}
