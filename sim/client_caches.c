/* Clients that track keys are clients of a load (sim/load_internal.h): what heatsink answers them must be
 * linearizable, whatever they cache. This file is about what they request, which invalidations they get, and what
 * they cache.
 *
 *     GET ─ heatsink ─ reply ──► the load's history      law 2: some order explains all replies
 *                        │
 *                        └─────► cache ◄── invalidation  "client-caches": at rest, cached values are the true ones
 *
 * A read that a client answers from its cache is no request, and no part of the history. */
#include "sim/client_caches.h"

#include "base/err.h"
#include "base/mem.h"
#include "sim/load_internal.h"
#include "wire/parse_reply.h"

#include <inttypes.h>
#include <stdio.h>

enum { FLUSH_ONE_IN = 4 };

#define NOT_CACHED INT64_MAX

/* How a client tracks: all keys that it reads; those read after CLIENT CACHING YES; all keys with a prefix
 * (BCAST); all keys that it reads, with the invalidations on another connection. */
enum mode { EACH_KEY, OPT_IN, PREFIX, REDIRECTED, MODES };

struct cacher {
	struct caches *caches;
	struct hs_sim_actor *actor;
	struct hs_sim_client
		*redirect_target; /* REDIRECTED: the connection that gets the invalidations */
	enum mode mode;
	bool noloop;	/* it gets no invalidations of its own writes */
	bool untracked; /* CLIENT TRACKING was refused: it caches nothing */
	/* The cache: for each key NOT_CACHED, or the value, which is HS_SIM_NOTHING for a missing key. */
	int64_t *cached;
};

struct caches {
	const struct hs_sim_client_caches_options *options;
	struct hs_sim_load *load;
	struct hs_prng prng;
	struct cacher *cachers;
	uint32_t round;
};

static uint32_t draw(struct caches *caches, uint32_t bound)
{
	return (uint32_t)hs_prng_below(&caches->prng, bound);
}

/* --- invalidations and replies --- */

static void forget_all(struct cacher *cacher)
{
	for (uint32_t key = 0; key < cacher->caches->options->keys; key++)
		cacher->cached[key] = NOT_CACHED;
}

/* False: the load has no key of this name. */
static bool forget_key(struct cacher *cacher, struct hs_bytes name)
{
	uint32_t key;

	if (!hs_sim_name_number(name, &key) || key >= cacher->caches->options->keys)
		return false;
	cacher->cached[key] = NOT_CACHED;
	return true;
}

/* Applies an invalidation: ">2 invalidate" and an array of keys or null. False: it is something else. */
static bool apply_push(struct cacher *cacher, struct hs_bytes push)
{
	struct hs_parsed_reply answer;
	size_t at = 0;
	int64_t keys = 0;

	for (int64_t i = 0; i < 3 + keys; i++) {
		int64_t used = hs_parse_reply_head(&answer, push.data + at, push.len - at);
		bool fits = used > 0;

		if (i == 0)
			fits = fits && answer.count == 2;
		else if (i == 1)
			fits = fits && hs_bytes_equal(answer.text, HS_LIT("invalidate"));
		else if (i == 2)
			fits = fits &&
			       (answer.type == HS_PARSED_NULL || answer.type == HS_PARSED_ARRAY);
		else
			fits = fits && forget_key(cacher, answer.text);
		if (!fits)
			return false;
		at += (size_t)used;
		if (i == 2 && answer.type == HS_PARSED_NULL)
			forget_all(cacher);
		else if (i == 2)
			keys = answer.count;
	}
	return true;
}

static void receive_push(struct cacher *cacher, struct hs_bytes push)
{
	struct hs_sim_load *load = cacher->caches->load;
	char text[120];

	if (load->world->options.script)
		hs_sim_script_note(load->world, "client %u gets %s", cacher->actor->number,
				   hs_bytes_escape(push, text, sizeof text));
	if (!apply_push(cacher, push))
		hs_sim_verdict_set(&load->verdict, 1,
				   "client %u got \"%s\", which is no invalidation",
				   cacher->actor->number, hs_bytes_escape(push, text, sizeof text));
}

/* Updates the cache with an answered request. */
static void cache_values(struct cacher *cacher, const struct hs_sim_request *request)
{
	for (uint32_t i = 0; i < request->ops_count; i++) {
		const struct hs_sim_op *op = &cacher->caches->load->history.ops[request->first + i];

		if (op->kind == HS_SIM_GET && request->keeps && !cacher->untracked)
			cacher->cached[op->key] = op->answer;
		else if (op->kind != HS_SIM_GET && cacher->noloop)
			cacher->cached[op->key] = NOT_CACHED;
	}
}

static void on_reply(void *context, struct hs_sim_client *client, struct hs_bytes reply)
{
	struct cacher *cacher = context;
	struct hs_sim_actor *actor = cacher->actor;
	struct hs_sim_request *request =
		&actor->in_flight[actor->in_flight_head % HS_SIM_IN_FLIGHT_MAX];
	bool asked = actor->in_flight_head != actor->in_flight_sent;

	if (reply.data[0] == '>') {
		receive_push(cacher, reply);
		return;
	}
	/* Servers may be down at CLIENT TRACKING; then CLIENT CACHING is refused as well. */
	if (asked)
		request->may_fail =
			request->tracks ? actor->load->options.faults : cacher->untracked;
	hs_sim_actor_on_reply(actor, client, reply);
	if (!asked)
		return;		    /* a law was broken */
	if (reply.data[0] == '-') { /* a write may have happened */
		cacher->untracked |= request->tracks;
		forget_all(cacher);
	} else {
		cache_values(cacher, request);
	}
}

static void on_redirected_push(void *context, struct hs_sim_client *client, struct hs_bytes reply)
{
	(void)client;
	if (reply.data[0] == '>')
		receive_push(context, reply);
}

/* --- requests --- */

static void read_something(struct cacher *cacher)
{
	struct caches *caches = cacher->caches;
	struct hs_sim_actor *actor = cacher->actor;
	uint32_t key = draw(caches, caches->options->keys), first;
	bool keeps = cacher->mode != OPT_IN || draw(caches, 2) == 0;

	if (cacher->mode == OPT_IN && keeps)
		hs_sim_actor_request(actor, "CLIENT CACHING YES", HS_SIM_EXPECT_STATUS);
	first = actor->in_flight_tail;
	switch (draw(caches, 4)) {
	case 0:
		hs_sim_actor_compose_several(actor, false);
		break;
	case 1:
		hs_sim_actor_compose_in_exec(actor, HS_SIM_GET, key);
		break;
	default:
		hs_sim_actor_compose_get(actor, key);
	}
	for (uint32_t i = first; i != actor->in_flight_tail; i++)
		actor->in_flight[i % HS_SIM_IN_FLIGHT_MAX].keeps = keeps;
}

/* FLUSHALL reaches one server after the other: a key that moves may be missed or met twice. So where slots move or
 * masters are replaced, no order of the requests can be checked from then on. */
static void flush(struct cacher *cacher)
{
	const struct hs_sim_client_caches_options *options = cacher->caches->options;
	struct hs_sim_world *world = cacher->caches->load->world;
	const struct hs_sim_servers_options *servers = &world->options.servers;

	if (servers->moves || servers->failovers) {
		if (!options->flushes)
			return;
		world->tainted |= (UINT64_C(1) << options->keys) - 1;
	}
	hs_sim_actor_compose_flush(cacher->actor);
}

static void write_something(struct cacher *cacher)
{
	struct caches *caches = cacher->caches;
	struct hs_sim_actor *actor = cacher->actor;
	uint32_t key = draw(caches, caches->options->keys);

	switch (draw(caches, 12)) {
	case 0:
		if (draw(caches, FLUSH_ONE_IN) == 0) {
			flush(cacher);
			break;
		}
		/* fall through */
	case 1:
		hs_sim_actor_compose_single(actor, HS_SIM_DEL, key);
		break;
	case 2:
		hs_sim_actor_compose_in_exec(actor, HS_SIM_INCRBY, key);
		break;
	case 3:
		hs_sim_actor_compose_single(actor, HS_SIM_INCRBY, key);
		break;
	default:
		hs_sim_actor_compose_single(actor, HS_SIM_SET, key);
	}
}

static void send(struct cacher *cacher)
{
	while (cacher->actor->outgoing.len > 0)
		hs_sim_actor_send(cacher->actor);
}

static void act(void *context, void *target, uint64_t number)
{
	struct caches *caches = context;
	struct cacher *cacher = target;
	struct hs_sim_actor *actor = cacher->actor;
	uint32_t burst = 1 + draw(caches, 4);

	(void)number;
	while (burst-- > 0 && actor->requests_left > 0 &&
	       actor->in_flight_tail - actor->in_flight_head + HS_SIM_COMPOSE_MAX <=
		       HS_SIM_IN_FLIGHT_MAX) {
		actor->requests_left--;
		if (draw(caches, 3) == 0)
			write_something(cacher);
		else
			read_something(cacher);
	}
	send(cacher);
	if (actor->requests_left > 0)
		hs_sim_world_plan(caches->load->world, draw(caches, caches->options->act_us_max),
				  act, caches, cacher);
}

/* --- beginning and end --- */

static void connect_redirect_target(struct cacher *cacher)
{
	struct hs_sim_world *world = cacher->caches->load->world;

	cacher->redirect_target =
		hs_sim_client_connect(world, draw(cacher->caches, world->workers_count));
	cacher->redirect_target->on_reply = on_redirected_push;
	cacher->redirect_target->context = cacher;
	hs_sim_client_request(cacher->redirect_target, "HELLO 3");
}

/* Reads may follow at once: heatsink holds them until tracking is on. */
static void begin(struct cacher *cacher)
{
	struct caches *caches = cacher->caches;
	struct hs_sim_actor *actor = cacher->actor;
	char words[96];

	cacher->mode = (enum mode)draw(caches, MODES);
	cacher->noloop = draw(caches, 3) == 0;
	cacher->cached = hs_mem_alloc(caches->options->keys * sizeof *cacher->cached);
	forget_all(cacher);
	actor->planned = true; /* it does not act by itself */
	hs_sim_actor_connect_to(actor, draw(caches, caches->load->world->workers_count));
	actor->client->on_reply = on_reply;
	actor->client->orphaned = NULL;
	actor->client->context = cacher;
	snprintf(words, sizeof words, "CLIENT TRACKING ON%s%s",
		 cacher->mode == OPT_IN	  ? " OPTIN"
		 : cacher->mode == PREFIX ? " BCAST PREFIX key"
					  : "",
		 cacher->noloop ? " NOLOOP" : "");
	if (cacher->mode == REDIRECTED) {
		connect_redirect_target(cacher);
		snprintf(words + strlen(words), 32, " REDIRECT %" PRIu64,
			 cacher->redirect_target->id);
	}
	hs_sim_actor_request(actor, "HELLO 3", HS_SIM_EXPECT_MAP);
	hs_sim_actor_request(actor, words, HS_SIM_EXPECT_STATUS)->tracks = true;
	send(cacher);
}

static void check_cached(void *context, const int64_t *finals)
{
	const struct caches *caches = context;
	char cached[HS_SIM_VALUE_TEXT_MAX], there[HS_SIM_VALUE_TEXT_MAX];

	for (uint32_t key = 0; key < caches->options->keys; key++) {
		for (uint32_t i = 0; i < caches->options->clients; i++) {
			const struct cacher *cacher = &caches->cachers[i];

			if (cacher->cached[key] == NOT_CACHED || cacher->cached[key] == finals[key])
				continue;
			hs_sim_verdict_set(&caches->load->verdict, HS_SIM_LAW_CLIENT_CACHES,
					   "client %u (mode %d%s, worker %u) keeps %s for key%u, "
					   "which is %s, after round %u",
					   i, (int)cacher->mode, cacher->noloop ? ", noloop" : "",
					   cacher->actor->client->worker,
					   hs_sim_value_text(cacher->cached[key], cached), key,
					   hs_sim_value_text(finals[key], there), caches->round);
		}
	}
}

static void run_round(struct caches *caches)
{
	struct hs_sim_world *world = caches->load->world;

	for (uint32_t i = 0; i < caches->options->clients; i++) {
		struct cacher *cacher = &caches->cachers[i];

		cacher->actor->requests_left = caches->options->requests;
		hs_sim_world_plan(world, draw(caches, caches->options->act_us_max), act, caches,
				  cacher);
	}
	hs_sim_world_settle(world);
}

/* All rounds but the last, which is checked together with the load. */
static void run_early_rounds(struct caches *caches)
{
	int64_t *finals = hs_mem_zalloc(caches->options->keys * sizeof *finals);

	for (; caches->round + 1 < caches->options->rounds; caches->round++) {
		run_round(caches);
		hs_sim_load_read(caches->load, finals);
		if (caches->load->verdict.law == 0)
			check_cached(caches, finals);
	}
	hs_mem_free(&finals);
}

static void check_redirect_target(const struct cacher *cacher)
{
	const struct hs_sim_client *redirect_target = cacher->redirect_target;

	if (redirect_target && (redirect_target->broken || !redirect_target->session))
		hs_sim_verdict_set(&cacher->caches->load->verdict, 1,
				   "the REDIRECT connection of client %u %s", cacher->actor->number,
				   redirect_target->broken ? "got bytes that are no reply"
							   : "was closed by heatsink");
}

int hs_sim_check_client_caches(const struct hs_sim_client_caches_options *options,
			       struct hs_sim_load *load, struct hs_sim_verdict *verdict)
{
	struct caches caches = {.options = options, .load = load};
	int err;

	hs_prng_init(&caches.prng, hs_prng_next(&load->world->prng));
	caches.cachers = hs_mem_zalloc(options->clients * sizeof *caches.cachers);
	for (uint32_t i = 0; i < options->clients; i++) {
		caches.cachers[i].caches = &caches;
		caches.cachers[i].actor = &load->actors[i];
		begin(&caches.cachers[i]);
	}
	run_early_rounds(&caches);
	run_round(&caches);
	for (uint32_t i = 0; i < options->clients; i++)
		check_redirect_target(&caches.cachers[i]);
	load->judge = check_cached;
	load->judge_context = &caches;
	err = hs_sim_load_check(load, verdict);
	for (struct hs_sim_client *client = load->world->clients; client; client = client->next)
		client->on_reply = NULL;
	for (uint32_t i = 0; i < options->clients; i++)
		hs_mem_free(&caches.cachers[i].cached);
	hs_mem_free(&caches.cachers);
	return err;
}
