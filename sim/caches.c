#include "sim/caches.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "sim/history.h"
#include "sim/names.h"
#include "wire/answer.h"

#include <inttypes.h>
#include <stdio.h>

enum { UNDER_WAY_MAX = 64, KEYS_AT_ONCE = 2, ACT_US_MAX = 200 };

#define NOT_KEPT INT64_MAX

enum mode { EACH_KEY, OPT_IN, PREFIX, REDIRECTED, MODES };

/* What the next reply is about. */
struct ask {
	uint32_t keys[KEYS_AT_ONCE];
	uint32_t count; /* values that it brings; 0: none that may be kept */
	bool in_array;	/* MGET, EXEC */
	bool tracks;	/* CLIENT TRACKING itself */
	bool writes;	/* keys[0]: an own change, of which a NOLOOP client is not told */
};

struct cacher {
	struct caches *caches;
	struct hs_sim_client *client;
	struct hs_sim_client *listener; /* REDIRECTED: who is told */
	enum mode mode;
	bool noloop;
	bool untracked; /* refused: it keeps nothing */
	int64_t *kept;	/* by key; NOT_KEPT, or the value, HS_SIM_NOTHING among them */
	struct ask asks[UNDER_WAY_MAX];
	uint32_t head, tail;
	uint32_t requests_left;
};

struct caches {
	const struct hs_sim_caches_options *options;
	struct hs_sim_world *world;
	struct hs_prng prng;
	struct cacher *cachers;
	struct hs_sim_verdict *verdict;
	int64_t values; /* last one set */
	uint64_t requests;
};

static uint32_t draw(struct caches *caches, uint32_t bound)
{
	return (uint32_t)hs_prng_below(&caches->prng, bound);
}

static const char *name_of(const struct caches *caches, uint32_t key,
			   char text[HS_SIM_NAME_BYTES_MAX])
{
	return hs_sim_name(caches->world->options.tied, key, text);
}

/* --- hearing --- */

static int64_t value_of(const struct hs_answer *answer)
{
	int64_t value = HS_SIM_NOTHING;

	if (answer->type == HS_ANSWER_BULK)
		hs_check(hs_num_parse_int(answer->text, &value));
	return value;
}

static void forget_all(struct cacher *cacher)
{
	for (uint32_t key = 0; key < cacher->caches->options->keys; key++)
		cacher->kept[key] = NOT_KEPT;
}

static void forget_key(struct cacher *cacher, struct hs_bytes name)
{
	uint32_t key;

	hs_check(hs_sim_name_number(name, &key) && key < cacher->caches->options->keys);
	cacher->kept[key] = NOT_KEPT;
}

/* >2 invalidate, and keys or null. */
static void hear_push(struct cacher *cacher, struct hs_bytes push)
{
	struct hs_answer answer;
	size_t at = 0;
	int64_t keys = 1;

	for (int64_t i = 0; i < 2 + keys; i++) {
		int64_t used = hs_answer_head(&answer, push.data + at, push.len - at);

		hs_check(used > 0);
		at += (size_t)used;
		if (i == 1)
			hs_check(hs_bytes_equal(answer.text, HS_LIT("invalidate")));
		if (i == 2 && answer.type == HS_ANSWER_NULL)
			forget_all(cacher);
		else if (i == 2)
			keys += answer.count;
		else if (i > 2)
			forget_key(cacher, answer.text);
	}
}

/* What clients asked and were told goes to the world's script, beside what happened to servers. */
static void note(struct cacher *cacher, const char *what, struct hs_bytes bytes)
{
	char text[160];

	hs_sim_fate_note(cacher->caches->world, "client %u %s %s",
			 (uint32_t)(cacher - cacher->caches->cachers), what,
			 hs_bytes_escape(bytes, text, sizeof text));
}

static void hear(void *context, struct hs_sim_client *client, struct hs_bytes reply)
{
	struct cacher *cacher = context;
	struct hs_answer answer;
	struct ask *ask;
	size_t at = 0;

	note(cacher, "hears", reply);
	if (reply.data[0] == '>') {
		hear_push(cacher, reply);
		return;
	}
	hs_check(client == cacher->client);
	hs_check(cacher->head != cacher->tail);
	ask = &cacher->asks[cacher->head++ % UNDER_WAY_MAX];
	if (reply.data[0] == '-') { /* in front of servers that fail; a write may have been done */
		hs_check(cacher->caches->world->cluster);
		cacher->untracked |= ask->tracks;
		forget_all(cacher);
		return;
	}
	for (uint32_t i = ask->in_array ? 0 : 1; i <= ask->count; i++) {
		int64_t used = hs_answer_head(&answer, reply.data + at, reply.len - at);

		hs_check(used > 0);
		at += (size_t)used;
		if (i > 0 && !cacher->untracked)
			cacher->kept[ask->keys[i - 1]] = value_of(&answer);
	}
	if (ask->writes)
		cacher->kept[ask->keys[0]] = NOT_KEPT;
}

static void hear_nothing(void *context, struct hs_sim_client *client, struct hs_bytes reply)
{
	(void)client;
	note(context, "hears beside", reply);
	if (reply.data[0] == '>')
		hear_push(context, reply);
}

/* --- asking --- */

/* The reply may come while it is being asked: what it is about is known before. */
static void ask_about(struct cacher *cacher, const char *words, struct ask about)
{
	struct ask *ask = &cacher->asks[cacher->tail++ % UNDER_WAY_MAX];

	hs_check(cacher->tail - cacher->head <= UNDER_WAY_MAX);
	*ask = about;
	cacher->caches->requests++;
	note(cacher, "asks", hs_bytes_of(words));
	hs_sim_client_ask(cacher->client, words);
}

static void read_something(struct cacher *cacher)
{
	struct caches *caches = cacher->caches;
	uint32_t a = draw(caches, caches->options->keys);
	uint32_t b = draw(caches, caches->options->keys);
	bool keeps = cacher->mode != OPT_IN || draw(caches, 2) == 0;
	struct ask one = {.keys = {a}, .count = keeps};
	struct ask two = {.keys = {a, b}, .count = keeps ? 2 : 0, .in_array = true};
	char words[96], first[HS_SIM_NAME_BYTES_MAX], second[HS_SIM_NAME_BYTES_MAX];

	if (cacher->mode == OPT_IN && keeps)
		ask_about(cacher, "CLIENT CACHING YES", (struct ask){0});
	switch (draw(caches, 4)) {
	case 0:
		snprintf(words, sizeof words, "MGET %s %s", name_of(caches, a, first),
			 name_of(caches, b, second));
		ask_about(cacher, words, two);
		break;
	case 1:
		ask_about(cacher, "MULTI", (struct ask){0});
		snprintf(words, sizeof words, "GET %s", name_of(caches, a, first));
		ask_about(cacher, words, (struct ask){0});
		one.in_array = true;
		ask_about(cacher, "EXEC", one);
		break;
	default:
		snprintf(words, sizeof words, "GET %s", name_of(caches, a, first));
		ask_about(cacher, words, one);
	}
}

static void write_something(struct cacher *cacher)
{
	struct caches *caches = cacher->caches;
	uint32_t key = draw(caches, caches->options->keys);
	struct ask own = {.keys = {key}, .writes = cacher->noloop};
	char words[64], text[HS_SIM_NAME_BYTES_MAX];
	const char *name = name_of(caches, key, text);

	switch (draw(caches, 12)) {
	case 0:
		if (draw(caches, 4) == 0) {
			ask_about(cacher, "FLUSHALL", (struct ask){0});
			break;
		}
		/* fall through */
	case 1:
		snprintf(words, sizeof words, "DEL %s", name);
		ask_about(cacher, words, own);
		break;
	case 2:
		ask_about(cacher, "MULTI", (struct ask){0});
		snprintf(words, sizeof words, "INCR %s", name);
		ask_about(cacher, words, (struct ask){0});
		ask_about(cacher, "EXEC", own);
		break;
	default:
		snprintf(words, sizeof words, "SET %s %" PRId64, name, ++caches->values);
		ask_about(cacher, words, own);
	}
}

static void act(void *context, void *target, uint64_t number)
{
	struct caches *caches = context;
	struct cacher *cacher = target;
	uint32_t burst = 1 + draw(caches, 4);

	(void)number;
	while (burst-- > 0 && cacher->requests_left > 0 &&
	       cacher->tail - cacher->head + 4 <= UNDER_WAY_MAX) {
		cacher->requests_left--;
		if (draw(caches, 3) == 0)
			write_something(cacher);
		else
			read_something(cacher);
	}
	if (cacher->requests_left > 0)
		hs_sim_world_plan(caches->world, draw(caches, ACT_US_MAX), act, caches, cacher);
}

/* --- beginning and end --- */

static struct hs_sim_client *connect(struct cacher *cacher, hs_sim_client_hear *how)
{
	struct caches *caches = cacher->caches;
	struct hs_sim_client *client =
		hs_sim_client_connect(caches->world, draw(caches, caches->world->workers_count));

	client->hear = how;
	client->context = cacher;
	return client;
}

/* Reads may follow at once: they wait until changes are told. */
static void begin(struct cacher *cacher)
{
	struct caches *caches = cacher->caches;
	char words[96];

	cacher->mode = (enum mode)draw(caches, MODES);
	cacher->noloop = draw(caches, 3) == 0;
	cacher->kept = hs_mem_alloc(caches->options->keys * sizeof *cacher->kept);
	forget_all(cacher);
	cacher->client = connect(cacher, hear);
	snprintf(words, sizeof words, "CLIENT TRACKING ON%s%s",
		 cacher->mode == OPT_IN	  ? " OPTIN"
		 : cacher->mode == PREFIX ? " BCAST PREFIX key"
					  : "",
		 cacher->noloop ? " NOLOOP" : "");
	if (cacher->mode == REDIRECTED) {
		cacher->listener = connect(cacher, hear_nothing);
		hs_sim_client_ask(cacher->listener, "HELLO 3");
		snprintf(words + strlen(words), 32, " REDIRECT %" PRIu64, cacher->listener->id);
	}
	ask_about(cacher, "HELLO 3", (struct ask){0});
	ask_about(cacher, words, (struct ask){.tracks = true});
}

/* What is there, asked by somebody who keeps nothing. */
static int64_t read_plainly(struct caches *caches, struct hs_sim_client *reader, uint32_t key)
{
	struct hs_answer answer;
	char words[64], name[HS_SIM_NAME_BYTES_MAX];
	int64_t value;

	snprintf(words, sizeof words, "GET %s", name_of(caches, key, name));
	hs_sim_client_ask(reader, words);
	hs_sim_world_settle(caches->world);
	hs_check(hs_answer_head(&answer, reader->received.data, reader->received.len) > 0);
	value = value_of(&answer);
	hs_buf_clear(&reader->received, HS_KEEP_BYTES);
	return value;
}

static void check_kept(struct caches *caches, struct hs_sim_client *reader, uint32_t round)
{
	char kept[HS_SIM_VALUE_TEXT_MAX], there[HS_SIM_VALUE_TEXT_MAX];

	for (uint32_t key = 0; key < caches->options->keys; key++) {
		int64_t value = read_plainly(caches, reader, key);

		for (uint32_t i = 0; i < caches->options->clients; i++) {
			const struct cacher *cacher = &caches->cachers[i];

			if (cacher->kept[key] != NOT_KEPT && cacher->kept[key] != value)
				hs_sim_verdict_set(
					caches->verdict, HS_SIM_LAW_CACHES,
					"client %u (mode %d%s, worker %u) keeps %s for key%u, "
					"which is %s, after round %u",
					i, (int)cacher->mode, cacher->noloop ? ", noloop" : "",
					cacher->client->worker,
					hs_sim_value_text(cacher->kept[key], kept), key,
					hs_sim_value_text(value, there), round);
		}
	}
}

int hs_sim_check_caches(const struct hs_sim_caches_options *options, struct hs_sim_world *world,
			struct hs_sim_verdict *verdict, uint64_t *requests)
{
	struct caches caches = {.options = options, .world = world, .verdict = verdict};
	struct hs_sim_client *reader = hs_sim_client_connect(world, 0);

	hs_prng_init(&caches.prng, hs_prng_next(&world->prng));
	caches.cachers = hs_mem_zalloc(options->clients * sizeof *caches.cachers);
	for (uint32_t i = 0; i < options->clients; i++) {
		caches.cachers[i].caches = &caches;
		begin(&caches.cachers[i]);
	}
	for (uint32_t round = 0; round < options->rounds && verdict->law == 0; round++) {
		for (uint32_t i = 0; i < options->clients; i++) {
			caches.cachers[i].requests_left = options->requests;
			hs_sim_world_plan(world, draw(&caches, ACT_US_MAX), act, &caches,
					  &caches.cachers[i]);
		}
		hs_sim_world_settle(world);
		if (world->cluster)
			hs_sim_world_calm(world);
		check_kept(&caches, reader, round);
	}
	if (world->broken.law != 0)
		*verdict = world->broken;
	for (uint32_t i = 0; i < options->clients; i++) {
		struct cacher *cacher = &caches.cachers[i];

		if (cacher->head != cacher->tail && verdict->law == 0)
			hs_sim_verdict_set(verdict, 1, "client %u: %u requests were not answered",
					   i, cacher->tail - cacher->head);
		hs_mem_free(&cacher->kept);
	}
	for (struct hs_sim_client *client = world->clients; client; client = client->next)
		client->hear = NULL;
	hs_mem_free(&caches.cachers);
	*requests += caches.requests;
	return verdict->law == 0 ? 0 : HS_EINVAL;
}
