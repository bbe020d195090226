#include "sim/companions_internal.h"

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
	UNBLOCKER_US = 20000,
	UNBLOCKER_TRIES = 50,
	RECONNECT_US = 1000,
};

const struct hs_sim_companion_words hs_sim_companion_words[HS_SIM_COMPANION_TOPICS] = {
	[HS_SIM_COMPANION_CHANNEL] = {"feed{key0}", "subscribe", "unsubscribe", "message", 0},
	[HS_SIM_COMPANION_SHARD] = {"feed{key1}", "ssubscribe", "sunsubscribe", "smessage", 1},
	[HS_SIM_COMPANION_PATTERN] = {"feed*", "psubscribe", "punsubscribe", "pmessage", 0},
};

static uint32_t draw(struct hs_sim_companions *companions, uint64_t bound)
{
	return (uint32_t)hs_prng_below(&companions->prng, bound);
}

static bool one_in(struct hs_sim_companions *companions, uint32_t of)
{
	return draw(companions, of) == 0;
}

/* ---- requests ---- */

static struct hs_sim_companion_request *request(struct hs_sim_companion *companion,
						enum hs_sim_companion_request_kind what,
						const char *text)
{
	struct hs_sim_companion_request *asked =
		&companion->in_flight[companion->tail++ % HS_SIM_COMPANION_IN_FLIGHT_MAX];

	hs_check(companion->tail - companion->head <= HS_SIM_COMPANION_IN_FLIGHT_MAX);
	*asked = (struct hs_sim_companion_request){.kind = what};
	companion->companions->requests++;
	companion->companions->heat[0] += what == HS_SIM_COMPANION_PUBLISH;
	companion->companions->heat[1] +=
		what == HS_SIM_COMPANION_POP || what == HS_SIM_COMPANION_PUSH;
	hs_sim_script_note(companion->companions->world, "companion %u sends %s", companion->number,
			   text);
	return asked;
}

/* The reply may arrive before this returns. */
static void send(struct hs_sim_companion *companion, const char *text)
{
	hs_sim_client_request(companion->client, text);
}

void hs_sim_companion_pop(struct hs_sim_companion *companion, uint32_t list, uint64_t timeout_us)
{
	uint64_t now_us = companion->companions->world->now.mono_us;
	struct hs_sim_companion_request *asked;
	char text[TEXT_MAX];

	snprintf(text, sizeof text, "BLPOP list{key%u} %.6f", list, (double)timeout_us / 1e6);
	asked = request(companion, HS_SIM_COMPANION_POP, text);
	asked->where = list;
	asked->until_us = timeout_us > 0 ? now_us + timeout_us : UINT64_MAX;
	send(companion, text);
}

static void pop(struct hs_sim_companion *companion)
{
	struct hs_sim_companions *companions = companion->companions;
	bool forever = companions->options.forever && one_in(companions, FOREVER_ONE_IN);
	uint64_t timeout_us = 1000 + draw(companions, companions->options.timeout_us_max);

	companion->left--;
	companion->unblocked = false;
	if (forever || one_in(companions, UNBLOCK_ONE_IN)) {
		companion->other->left = UNBLOCKER_TRIES;
		hs_sim_companion_plan(companion->other,
				      forever ? UNBLOCKER_US
					      : draw(companions, (uint32_t)timeout_us));
	}
	hs_sim_companion_pop(companion, draw(companions, HS_SIM_COMPANION_LISTS),
			     forever ? 0 : timeout_us);
}

/* The unblocker of a popper without timeout retries until the wait has ended. */
static void unblock_other(struct hs_sim_companion *companion)
{
	struct hs_sim_companion *other = companion->other;
	char text[TEXT_MAX];

	if (!other->client || !other->client->session || other->head == other->tail ||
	    other->in_flight[other->head % HS_SIM_COMPANION_IN_FLIGHT_MAX].kind !=
		    HS_SIM_COMPANION_POP ||
	    companion->head != companion->tail)
		return;
	companion->left--;
	snprintf(text, sizeof text, "CLIENT UNBLOCK %" PRIu64 "%s", other->client->id,
		 one_in(companion->companions, 2)   ? ""
		 : one_in(companion->companions, 2) ? " ERROR"
						    : " TIMEOUT");
	request(companion, HS_SIM_COMPANION_UNBLOCK, text);
	send(companion, text);
	if (companion->companions->options.forever && companion->left > 0)
		hs_sim_companion_plan(companion, UNBLOCKER_US);
}

/* Sends RPUSH or PUBLISH, a few at once. */
static void push_or_publish(struct hs_sim_companion *companion)
{
	struct hs_sim_companions *companions = companion->companions;
	bool message = companion->role == HS_SIM_PUBLISHER;
	uint32_t count = 1 + draw(companions, HS_SIM_COMPANION_DEPTH);
	struct hs_buf bytes = {0};
	char text[TEXT_MAX];

	for (; count > 0 && companion->left > 0 &&
	       companions->items_count < HS_SIM_COMPANION_ITEMS_MAX;
	     count--) {
		uint32_t number = companions->items_count++;
		struct hs_sim_companion_item *item = &companions->items[number];

		companion->left--;
		*item = (struct hs_sim_companion_item){
			.message = message,
			.where = draw(companions,
				      message ? HS_SIM_COMPANION_CHANNELS : HS_SIM_COMPANION_LISTS),
			.by = companion->connection,
			.asked = ++companions->world->steps,
		};
		if (message)
			snprintf(text, sizeof text, "%s feed{key%u} %u",
				 item->where == 1 ? "SPUBLISH" : "PUBLISH", item->where, number);
		else
			snprintf(text, sizeof text, "RPUSH list{key%u} %u", item->where, number);
		request(companion, message ? HS_SIM_COMPANION_PUBLISH : HS_SIM_COMPANION_PUSH, text)
			->item = number;
		hs_compose_line(&bytes, text);
	}
	if (companions->items_count == HS_SIM_COMPANION_ITEMS_MAX)
		companion->left = 0;
	hs_sim_client_send(companion->client, hs_buf_bytes(&bytes));
	hs_buf_deinit(&bytes);
}

static void subscribe_or_unsubscribe(struct hs_sim_companion *companion)
{
	struct hs_sim_companions *companions = companion->companions;
	uint32_t topic = draw(companions, HS_SIM_COMPANION_TOPICS);
	const struct hs_sim_companion_words *words = &hs_sim_companion_words[topic];
	bool leaves = companion->subscribed_from[topic] > 0;
	char text[TEXT_MAX];

	companion->left--;
	if (leaves && companion->stays)
		return;
	snprintf(text, sizeof text, "%s %s", leaves ? words->unsubscribe : words->subscribe,
		 words->name);
	request(companion, leaves ? HS_SIM_COMPANION_UNSUBSCRIBE : HS_SIM_COMPANION_SUBSCRIBE, text)
		->where = topic;
	send(companion, text);
}

/* ---- acting ---- */

static void orphaned(void *context, struct hs_sim_client *client)
{
	struct hs_sim_companion *companion = context;

	client->on_reply = NULL;
	client->orphaned = NULL;
	hs_sim_companion_forget(companion);
	if (companion->left > 0)
		hs_sim_companion_plan(companion, draw(companion->companions,
						      companion->companions->options.act_us_max));
}

static uint32_t pick_worker(const struct hs_sim_companion *companion)
{
	const struct hs_sim_world *world = companion->companions->world;
	uint32_t workers = world->options.workers, worker;

	/* An unblocker connects to the heatsink of its popper, perhaps to another worker. */
	if (companion->role == HS_SIM_UNBLOCKER && companion->other->client)
		return companion->other->client->worker / workers * workers +
		       draw(companion->companions, workers);
	do {
		worker = draw(companion->companions, world->workers_count);
	} while (world->heatsinks[worker / workers].dead);
	return worker;
}

static void connect(struct hs_sim_companion *companion)
{
	companion->client =
		hs_sim_client_connect(companion->companions->world, pick_worker(companion));
	companion->connection = companion->companions->connections++;
	companion->client->on_reply = hs_sim_companion_on_reply;
	companion->client->orphaned = orphaned;
	companion->client->context = companion;
	if (one_in(companion->companions, 2)) {
		request(companion, HS_SIM_COMPANION_HELLO, "HELLO 3");
		send(companion, "HELLO 3");
	}
}

static void hang_up(struct hs_sim_companion *companion)
{
	companion->client->on_reply = NULL;
	companion->client->orphaned = NULL;
	hs_sim_client_disconnect(companion->client);
	hs_sim_companion_forget(companion);
}

/* Whether it must reconnect: it was cut off at the output limit, or an unblocker is at another heatsink than its
 * popper. */
static bool is_misplaced(const struct hs_sim_companion *companion)
{
	uint32_t workers = companion->companions->world->options.workers;

	if (!companion->client->session)
		return true;
	return companion->role == HS_SIM_UNBLOCKER && companion->other->client &&
	       companion->client->worker / workers != companion->other->client->worker / workers;
}

static void act(void *context, void *target, uint64_t number)
{
	struct hs_sim_companions *companions = context;
	struct hs_sim_companion *companion = target;

	(void)number;
	companion->planned = false;
	if (companion->left == 0 || companions->ending)
		return;
	if (companion->client && is_misplaced(companion))
		hang_up(companion);
	if (!companion->client && !hs_sim_world_is_up(companions->world)) {
		hs_sim_companion_plan(companion, RECONNECT_US);
		return;
	}
	if (!companion->client)
		connect(companion);
	if (companion->role == HS_SIM_UNBLOCKER) {
		if (companion->head == companion->tail)
			unblock_other(companion);
		return;
	}
	if (companions->options.hang_ups && !companion->stays &&
	    one_in(companions, HANG_UP_ONE_IN)) {
		hang_up(companion);
		hs_sim_companion_plan(companion, draw(companions, companions->options.act_us_max));
		return;
	}
	if (companion->head != companion->tail)
		return; /* the reply plans the next act */
	if (companion->role == HS_SIM_POPPER)
		pop(companion);
	else if (companion->role == HS_SIM_SUBSCRIBER)
		subscribe_or_unsubscribe(companion);
	else
		push_or_publish(companion);
	if (companion->client && companion->head == companion->tail)
		hs_sim_companion_plan(companion,
				      1 + draw(companions, companions->options.act_us_max));
}

void hs_sim_companion_plan(struct hs_sim_companion *companion, uint64_t in_us)
{
	if (companion->planned || companion->companions->ending)
		return;
	companion->planned = true;
	hs_sim_world_plan(companion->companions->world, in_us, act, companion->companions,
			  companion);
}

/* ---- beginning and end ---- */

static void note_published(void *context, const struct hs_sim_ran *ran)
{
	struct hs_sim_companions *companions = context;
	int64_t number;

	if (ran->argc != 3 || !(hs_bytes_is_word(ran->argv[0], "publish") ||
				hs_bytes_is_word(ran->argv[0], "spublish")))
		return;
	if (hs_num_parse_int(ran->argv[2], &number) && number >= 0 &&
	    number < companions->items_count)
		companions->items[number].node = ran->node;
}

static struct hs_sim_companion *add(struct hs_sim_companions *companions,
				    enum hs_sim_companion_role role)
{
	struct hs_sim_companion *companion = &companions->all[companions->count];

	*companion = (struct hs_sim_companion){
		.companions = companions,
		.role = role,
		.number = companions->count++,
		.left = role == HS_SIM_UNBLOCKER ? 0 : companions->options.requests,
	};
	companion->stays = role == HS_SIM_SUBSCRIBER && one_in(companions, STAYS_ONE_IN);
	if (role != HS_SIM_UNBLOCKER)
		hs_sim_companion_plan(companion, draw(companions, companions->options.act_us_max));
	return companion;
}

struct hs_sim_companions *hs_sim_companions_create(const struct hs_sim_companions_options *options,
						   struct hs_sim_world *world)
{
	struct hs_sim_companions *companions = hs_mem_zalloc(sizeof *companions);
	uint32_t most = 2 * options->poppers + options->pushers + options->subscribers +
			options->publishers;

	companions->options = *options;
	companions->world = world;
	world->ran = note_published;
	world->ran_context = companions;
	hs_prng_init(&companions->prng, hs_prng_next(&world->prng));
	companions->all = hs_mem_zalloc(most * sizeof *companions->all);
	for (uint32_t i = 0; i < options->poppers; i++) {
		struct hs_sim_companion *popper = add(companions, HS_SIM_POPPER);

		popper->other = add(companions, HS_SIM_UNBLOCKER);
		popper->other->other = popper;
	}
	for (uint32_t i = 0; i < options->pushers; i++)
		add(companions, HS_SIM_PUSHER);
	for (uint32_t i = 0; i < options->subscribers; i++)
		add(companions, HS_SIM_SUBSCRIBER);
	for (uint32_t i = 0; i < options->publishers; i++)
		add(companions, HS_SIM_PUBLISHER);
	return companions;
}

void hs_sim_companions_destroy(struct hs_sim_companions **companions)
{
	if (!*companions)
		return;
	hs_mem_free(&(*companions)->all);
	hs_mem_free(companions);
}

/* Each popper counts two more: CLIENT UNBLOCK may be in flight once for its BLPOP, and once more when its client has
 * disconnected. */
uint64_t hs_sim_companions_in_flight(const struct hs_sim_companions *companions)
{
	uint64_t count = 2 * companions->options.poppers;

	for (uint32_t i = 0; i < companions->count; i++)
		count += companions->all[i].tail - companions->all[i].head;
	return count;
}

uint64_t hs_sim_companions_requests(const struct hs_sim_companions *companions)
{
	return companions->requests;
}

uint64_t hs_sim_companions_heat(const struct hs_sim_companions *companions, bool write)
{
	return companions->heat[write];
}
