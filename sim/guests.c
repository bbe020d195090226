#include "sim/guests_internal.h"

#include "base/mem.h"
#include "base/num.h"
#include "sim/cluster.h"
#include "wire/compose.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	TEXT_MAX = 96,
	HANG_UP_ONE_IN = 16,
	STAYS_ONE_IN = 2,
	FOREVER_ONE_IN = 3,
	UNBLOCK_ONE_IN = 3,
	USHER_US = 20000,
	USHER_TRIES = 50,
	RECONNECT_US = 1000,
};

const struct hs_sim_guest_words hs_sim_guest_words[HS_SIM_GUEST_TOPICS] = {
	[HS_SIM_GUEST_CHANNEL] = {"news{key0}", "subscribe", "unsubscribe", "message", 0},
	[HS_SIM_GUEST_SHARD] = {"news{key1}", "ssubscribe", "sunsubscribe", "smessage", 1},
	[HS_SIM_GUEST_PATTERN] = {"news*", "psubscribe", "punsubscribe", "pmessage", 0},
};

static uint32_t draw(struct hs_sim_guests *guests, uint64_t bound)
{
	return (uint32_t)hs_prng_below(&guests->prng, bound);
}

static bool one_in(struct hs_sim_guests *guests, uint32_t of)
{
	return draw(guests, of) == 0;
}

/* ---- requests ---- */

static struct hs_sim_guest_ask *ask(struct hs_sim_guest *guest, enum hs_sim_guest_what what,
				    const char *text)
{
	struct hs_sim_guest_ask *asked = &guest->asks[guest->tail++ % HS_SIM_GUEST_UNDER_WAY];

	hs_check(guest->tail - guest->head <= HS_SIM_GUEST_UNDER_WAY);
	*asked = (struct hs_sim_guest_ask){.what = what};
	guest->guests->requests++;
	guest->guests->heat[0] += what == HS_SIM_GUEST_PUBLISH;
	guest->guests->heat[1] += what == HS_SIM_GUEST_POP || what == HS_SIM_GUEST_PUSH;
	hs_sim_fate_note(guest->guests->world, "guest %u asks %s", guest->number, text);
	return asked;
}

/* The reply may come from inside. */
static void send(struct hs_sim_guest *guest, const char *text)
{
	hs_sim_client_ask(guest->client, text);
}

void hs_sim_guest_pop(struct hs_sim_guest *guest, uint32_t list, uint64_t timeout_us)
{
	uint64_t now_us = guest->guests->world->now.mono_us;
	struct hs_sim_guest_ask *asked;
	char text[TEXT_MAX];

	snprintf(text, sizeof text, "BLPOP list{key%u} %.6f", list, (double)timeout_us / 1e6);
	asked = ask(guest, HS_SIM_GUEST_POP, text);
	asked->where = list;
	asked->until_us = timeout_us > 0 ? now_us + timeout_us : UINT64_MAX;
	send(guest, text);
}

static void pop(struct hs_sim_guest *guest)
{
	struct hs_sim_guests *guests = guest->guests;
	bool forever = guests->options.forever && one_in(guests, FOREVER_ONE_IN);
	uint64_t timeout_us = 1000 + draw(guests, guests->options.timeout_us_max);

	guest->left--;
	guest->unblocked = false;
	if (forever || one_in(guests, UNBLOCK_ONE_IN)) {
		guest->other->left = USHER_TRIES;
		hs_sim_guest_plan(guest->other,
				  forever ? USHER_US : draw(guests, (uint32_t)timeout_us));
	}
	hs_sim_guest_pop(guest, draw(guests, HS_SIM_GUEST_LISTS), forever ? 0 : timeout_us);
}

/* The usher of one that waits for ever asks until it does not. */
static void usher(struct hs_sim_guest *guest)
{
	struct hs_sim_guest *other = guest->other;
	char text[TEXT_MAX];

	if (!other->client || !other->client->session || other->head == other->tail ||
	    other->asks[other->head % HS_SIM_GUEST_UNDER_WAY].what != HS_SIM_GUEST_POP ||
	    guest->head != guest->tail)
		return;
	guest->left--;
	snprintf(text, sizeof text, "CLIENT UNBLOCK %" PRIu64 "%s", other->client->id,
		 one_in(guest->guests, 2)   ? ""
		 : one_in(guest->guests, 2) ? " ERROR"
					    : " TIMEOUT");
	ask(guest, HS_SIM_GUEST_UNBLOCK, text);
	send(guest, text);
	if (guest->guests->options.forever && guest->left > 0)
		hs_sim_guest_plan(guest, USHER_US);
}

/* RPUSH or PUBLISH, a few at once. */
static void give(struct hs_sim_guest *guest)
{
	struct hs_sim_guests *guests = guest->guests;
	bool message = guest->role == HS_SIM_PUBLISHER;
	uint32_t count = 1 + draw(guests, HS_SIM_GUEST_DEPTH);
	struct hs_buf bytes = {0};
	char text[TEXT_MAX];

	for (; count > 0 && guest->left > 0 && guests->items_count < HS_SIM_GUEST_ITEMS_MAX;
	     count--) {
		uint32_t number = guests->items_count++;
		struct hs_sim_guest_item *item = &guests->items[number];

		guest->left--;
		*item = (struct hs_sim_guest_item){
			.message = message,
			.where = draw(guests, message ? HS_SIM_GUEST_CHANNELS : HS_SIM_GUEST_LISTS),
			.by = guest->connection,
			.asked = ++guests->world->steps,
		};
		if (message)
			snprintf(text, sizeof text, "%s news{key%u} %u",
				 item->where == 1 ? "SPUBLISH" : "PUBLISH", item->where, number);
		else
			snprintf(text, sizeof text, "RPUSH list{key%u} %u", item->where, number);
		ask(guest, message ? HS_SIM_GUEST_PUBLISH : HS_SIM_GUEST_PUSH, text)->item = number;
		hs_compose_line(&bytes, text);
	}
	if (guests->items_count == HS_SIM_GUEST_ITEMS_MAX)
		guest->left = 0;
	hs_sim_client_send(guest->client, hs_buf_bytes(&bytes));
	hs_buf_deinit(&bytes);
}

static void listen_or_leave(struct hs_sim_guest *guest)
{
	struct hs_sim_guests *guests = guest->guests;
	uint32_t topic = draw(guests, HS_SIM_GUEST_TOPICS);
	const struct hs_sim_guest_words *words = &hs_sim_guest_words[topic];
	bool leaves = guest->hears[topic] > 0;
	char text[TEXT_MAX];

	guest->left--;
	if (leaves && guest->stays)
		return;
	snprintf(text, sizeof text, "%s %s", leaves ? words->unsubscribe : words->subscribe,
		 words->name);
	ask(guest, leaves ? HS_SIM_GUEST_UNSUBSCRIBE : HS_SIM_GUEST_SUBSCRIBE, text)->where = topic;
	send(guest, text);
}

/* ---- acting ---- */

static void orphaned(void *context, struct hs_sim_client *client)
{
	struct hs_sim_guest *guest = context;

	client->hear = NULL;
	client->orphaned = NULL;
	hs_sim_guest_forget(guest);
	if (guest->left > 0)
		hs_sim_guest_plan(guest, draw(guest->guests, guest->guests->options.act_us_max));
}

static uint32_t pick_worker(const struct hs_sim_guest *guest)
{
	const struct hs_sim_world *world = guest->guests->world;
	uint32_t workers = world->options.workers, worker;

	/* An usher is where its popper is, though perhaps at another worker. */
	if (guest->role == HS_SIM_USHER && guest->other->client)
		return guest->other->client->worker / workers * workers +
		       draw(guest->guests, workers);
	do {
		worker = draw(guest->guests, world->workers_count);
	} while (world->heatsinks[worker / workers].dead);
	return worker;
}

static void connect(struct hs_sim_guest *guest)
{
	guest->client = hs_sim_client_connect(guest->guests->world, pick_worker(guest));
	guest->connection = guest->guests->connections++;
	guest->client->hear = hs_sim_guest_hear;
	guest->client->orphaned = orphaned;
	guest->client->context = guest;
	if (one_in(guest->guests, 2)) {
		ask(guest, HS_SIM_GUEST_HELLO, "HELLO 3");
		send(guest, "HELLO 3");
	}
}

static void hang_up(struct hs_sim_guest *guest)
{
	guest->client->hear = NULL;
	guest->client->orphaned = NULL;
	hs_sim_client_disconnect(guest->client);
	hs_sim_guest_forget(guest);
}

/* It was cut off, for what it did not read; its usher is at another heatsink than itself. */
static bool is_misplaced(const struct hs_sim_guest *guest)
{
	uint32_t workers = guest->guests->world->options.workers;

	if (!guest->client->session)
		return true;
	return guest->role == HS_SIM_USHER && guest->other->client &&
	       guest->client->worker / workers != guest->other->client->worker / workers;
}

static void act(void *context, void *target, uint64_t number)
{
	struct hs_sim_guests *guests = context;
	struct hs_sim_guest *guest = target;

	(void)number;
	guest->planned = false;
	if (guest->left == 0 || guests->ending)
		return;
	if (guest->client && is_misplaced(guest))
		hang_up(guest);
	if (!guest->client && !hs_sim_world_is_up(guests->world)) {
		hs_sim_guest_plan(guest, RECONNECT_US);
		return;
	}
	if (!guest->client)
		connect(guest);
	if (guest->role == HS_SIM_USHER) {
		if (guest->head == guest->tail)
			usher(guest);
		return;
	}
	if (guests->options.hang_ups && !guest->stays && one_in(guests, HANG_UP_ONE_IN)) {
		hang_up(guest);
		hs_sim_guest_plan(guest, draw(guests, guests->options.act_us_max));
		return;
	}
	if (guest->head != guest->tail)
		return; /* the reply wakes it */
	if (guest->role == HS_SIM_POPPER)
		pop(guest);
	else if (guest->role == HS_SIM_LISTENER)
		listen_or_leave(guest);
	else
		give(guest);
	if (guest->client && guest->head == guest->tail)
		hs_sim_guest_plan(guest, 1 + draw(guests, guests->options.act_us_max));
}

void hs_sim_guest_plan(struct hs_sim_guest *guest, uint64_t in_us)
{
	if (guest->planned || guest->guests->ending)
		return;
	guest->planned = true;
	hs_sim_world_plan(guest->guests->world, in_us, act, guest->guests, guest);
}

/* ---- beginning and end ---- */

static void note_published(void *context, const struct hs_sim_ran *ran)
{
	struct hs_sim_guests *guests = context;
	int64_t number;

	if (ran->argc != 3 || !(hs_bytes_is_word(ran->argv[0], "publish") ||
				hs_bytes_is_word(ran->argv[0], "spublish")))
		return;
	if (hs_num_parse_int(ran->argv[2], &number) && number >= 0 && number < guests->items_count)
		guests->items[number].node = ran->node;
}

static struct hs_sim_guest *add(struct hs_sim_guests *guests, enum hs_sim_guest_role role)
{
	struct hs_sim_guest *guest = &guests->all[guests->count];

	*guest = (struct hs_sim_guest){
		.guests = guests,
		.role = role,
		.number = guests->count++,
		.left = role == HS_SIM_USHER ? 0 : guests->options.requests,
	};
	guest->stays = role == HS_SIM_LISTENER && one_in(guests, STAYS_ONE_IN);
	if (role != HS_SIM_USHER)
		hs_sim_guest_plan(guest, draw(guests, guests->options.act_us_max));
	return guest;
}

struct hs_sim_guests *hs_sim_guests_create(const struct hs_sim_guests_options *options,
					   struct hs_sim_world *world)
{
	struct hs_sim_guests *guests = hs_mem_zalloc(sizeof *guests);
	uint32_t most =
		2 * options->poppers + options->pushers + options->listeners + options->publishers;

	guests->options = *options;
	guests->world = world;
	world->ran = note_published;
	world->ran_context = guests;
	hs_prng_init(&guests->prng, hs_prng_next(&world->prng));
	guests->all = hs_mem_zalloc(most * sizeof *guests->all);
	for (uint32_t i = 0; i < options->poppers; i++) {
		struct hs_sim_guest *popper = add(guests, HS_SIM_POPPER);

		popper->other = add(guests, HS_SIM_USHER);
		popper->other->other = popper;
	}
	for (uint32_t i = 0; i < options->pushers; i++)
		add(guests, HS_SIM_PUSHER);
	for (uint32_t i = 0; i < options->listeners; i++)
		add(guests, HS_SIM_LISTENER);
	for (uint32_t i = 0; i < options->publishers; i++)
		add(guests, HS_SIM_PUBLISHER);
	return guests;
}

void hs_sim_guests_destroy(struct hs_sim_guests **guests)
{
	if (!*guests)
		return;
	hs_mem_free(&(*guests)->all);
	hs_mem_free(guests);
}

/* CLIENT UNBLOCK is answered when it is on its way: once for a BLPOP, and once more when the client has gone. */
uint64_t hs_sim_guests_under_way(const struct hs_sim_guests *guests)
{
	uint64_t count = 2 * guests->options.poppers;

	for (uint32_t i = 0; i < guests->count; i++)
		count += guests->all[i].tail - guests->all[i].head;
	return count;
}

uint64_t hs_sim_guests_requests(const struct hs_sim_guests *guests)
{
	return guests->requests;
}

uint64_t hs_sim_guests_heat(const struct hs_sim_guests *guests, bool write)
{
	return guests->heat[write];
}
