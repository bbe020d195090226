/* Checks what companions receive: replies to their requests, elements, messages and confirmations. */
#include "sim/companions_internal.h"

#include "base/mem.h"
#include "base/num.h"
#include "wire/parse_reply.h"

#include <inttypes.h>

enum {
	LATE_US = 200000,	   /* allowed delay after a timeout, without faults */
	LATE_FAULTS_US = 60000000, /* with faults: servers stall, connections fall silent */
	DRAIN_US = 1000,
};

/* ---- elements and messages ---- */

static void report(struct hs_sim_companion *companion, int law, const char *what,
		   struct hs_bytes reply)
{
	char text[100];

	hs_sim_verdict_set(&companion->companions->verdict, law, "companion %u %s: \"%s\"",
			   companion->number, what, hs_bytes_escape(reply, text, sizeof text));
}

/* NULL: no companion pushed or published this text to the list or channel. */
static struct hs_sim_companion_item *find_item(struct hs_sim_companion *companion,
					       struct hs_bytes text, bool message, uint32_t where,
					       uint32_t *number)
{
	int64_t value;

	if (!hs_num_parse_int(text, &value) || value < 0 ||
	    value >= companion->companions->items_count)
		return NULL;
	*number = (uint32_t)value;
	if (companion->companions->items[value].message != message ||
	    companion->companions->items[value].where != where)
		return NULL;
	return &companion->companions->items[value];
}

/* False: a later item of the same client and node was received before. */
static bool is_in_order(const struct hs_sim_companions *companions, uint64_t got, uint32_t number)
{
	const struct hs_sim_companion_item *item = &companions->items[number], *other;

	for (uint32_t i = number + 1; i < companions->items_count; i++) {
		other = &companions->items[i];
		if (got >> i & 1 && other->by == item->by && other->where == item->where &&
		    other->node == item->node)
			return false;
	}
	return true;
}

static void take_element(struct hs_sim_companion *companion,
			 const struct hs_sim_companion_request *request, struct hs_bytes reply)
{
	struct hs_bytes elements = hs_parse_reply_elements(reply), key, element;
	struct hs_sim_companion_item *item = NULL;
	struct hs_parsed_reply answer;
	uint32_t number = 0;

	if (hs_parse_reply_take(&elements, &key) && hs_parse_reply_take(&elements, &element) &&
	    hs_parse_reply_head(&answer, element.data, element.len) > 0)
		item = find_item(companion, answer.text, false, request->where, &number);
	if (!item) {
		report(companion, 2, "popped an element that was never pushed there", reply);
		return;
	}
	if (item->taken)
		report(companion, 4, "popped an element that was popped before", reply);
	if (!is_in_order(companion->companions, companion->popped, number) &&
	    !companion->companions->options.faults)
		report(companion, 2, "popped an element behind one that was pushed later", reply);
	companion->popped |= UINT64_C(1) << number;
	item->taken = true;
}

/* Whether all messages of the topic came from one node. */
static bool has_stayed(const struct hs_sim_companion *companion, uint32_t topic)
{
	const struct hs_sim_world *world = companion->companions->world;
	const uint64_t *coverage = world->coverage.of;
	uint32_t heatsink = companion->client->worker / world->options.workers;

	if (!world->options.servers.cluster)
		return true;
	if (topic == HS_SIM_COMPANION_SHARD)
		return coverage[HS_SIM_COVERAGE_MOVES] == 0 &&
		       coverage[HS_SIM_COVERAGE_FAILOVERS] == 0 &&
		       coverage[HS_SIM_COVERAGE_TAKEOVERS] == 0;
	return !hs_sim_redis_pubsub_conn_has_moved(world->heatsinks[heatsink].redis);
}

static void receive_message(struct hs_sim_companion *companion, uint32_t topic,
			    struct hs_bytes payload, struct hs_bytes reply)
{
	uint32_t channel = hs_sim_companion_words[topic].channel, number = 0;
	struct hs_sim_companion_item *item = find_item(companion, payload, true, channel, &number);
	bool strictly = has_stayed(companion, topic);

	if (!item) {
		report(companion, HS_SIM_LAW_MESSAGES,
		       "gets a message that was never published there", reply);
		return;
	}
	if (companion->subscribed_from[topic] == 0)
		report(companion, HS_SIM_LAW_MESSAGES, "gets a message after it unsubscribed",
		       reply);
	if (strictly && companion->received[topic] >> number & 1)
		report(companion, HS_SIM_LAW_MESSAGES, "gets a message twice", reply);
	else if (strictly &&
		 !is_in_order(companion->companions, companion->received[topic], number))
		report(companion, HS_SIM_LAW_MESSAGES, "gets a message behind a later one", reply);
	companion->received[topic] |= UINT64_C(1) << number;
}

/* ---- replies ---- */

static bool is_unknown(struct hs_bytes text)
{
	return memmem(text.data, text.len, "unknown", strlen("unknown")) ||
	       hs_bytes_begins(text, HS_LIT("UNKNOWN"));
}

/* Whether this error is allowed now. */
static bool is_excuse(const struct hs_sim_companion *companion,
		      const struct hs_sim_companion_request *request, struct hs_bytes text)
{
	const struct hs_sim_companions_options *options = &companion->companions->options;

	if (hs_bytes_begins(text, HS_LIT("UNBLOCKED client unblocked")))
		return request->kind == HS_SIM_COMPANION_POP;
	if (hs_bytes_begins(text, HS_LIT("BUSY ")))
		return options->faults ||
		       (options->crowded && request->kind == HS_SIM_COMPANION_POP);
	return options->faults;
}

static void answer_pop(struct hs_sim_companion *companion,
		       const struct hs_sim_companion_request *request,
		       const struct hs_parsed_reply *answer, struct hs_bytes reply)
{
	struct hs_sim_companions *companions = companion->companions;
	uint64_t now_us = companions->world->now.mono_us;
	uint64_t late_us = companions->options.faults ? LATE_FAULTS_US : LATE_US;

	if (answer->type == HS_PARSED_ERROR && is_unknown(answer->text))
		companions->unknown[request->where]++;
	if (answer->type == HS_PARSED_ERROR && companions->ending)
		report(companion, 9, "is answered an error after all faults ended", reply);
	if (answer->type == HS_PARSED_ARRAY)
		take_element(companion, request, reply);
	else if (answer->type != HS_PARSED_NULL && answer->type != HS_PARSED_ERROR)
		report(companion, 1, "gets a reply that is no answer to BLPOP", reply);
	if (request->until_us != UINT64_MAX && now_us > request->until_us + late_us)
		hs_sim_verdict_set(&companions->verdict, 1,
				   "companion %u waits %" PRIu64 " us longer than its timeout",
				   companion->number, now_us - request->until_us);
}

static void answer_one(struct hs_sim_companion *companion,
		       const struct hs_sim_companion_request *request, struct hs_bytes reply)
{
	struct hs_sim_companions *companions = companion->companions;
	struct hs_parsed_reply answer;
	bool error;

	hs_check(hs_parse_reply_head(&answer, reply.data, reply.len) > 0);
	error = answer.type == HS_PARSED_ERROR;
	if (error && !is_excuse(companion, request, answer.text))
		report(companion, 1, "is answered an error", reply);
	switch (request->kind) {
	case HS_SIM_COMPANION_POP:
		answer_pop(companion, request, &answer, reply);
		break;
	case HS_SIM_COMPANION_PUSH:
	case HS_SIM_COMPANION_PUBLISH:
		companions->items[request->item].acked = answer.type == HS_PARSED_INT;
		if (!error && answer.type != HS_PARSED_INT)
			report(companion, 1, "gets a reply that is no number", reply);
		break;
	case HS_SIM_COMPANION_UNBLOCK:
		companion->other->unblocked = answer.type == HS_PARSED_INT && answer.integer == 1;
		break;
	case HS_SIM_COMPANION_HELLO:
		if (answer.type != HS_PARSED_MAP)
			report(companion, 1, "gets a reply that is no answer to HELLO", reply);
		break;
	case HS_SIM_COMPANION_SUBSCRIBE: /* confirmations are pushes: receive_change */
	case HS_SIM_COMPANION_UNSUBSCRIBE:
		if (!error)
			report(companion, 1, "gets a reply that is no confirmation", reply);
	}
}

/* A confirmation. It must have been requested, unless the server dropped a shard channel. */
static void receive_change(struct hs_sim_companion *companion, uint32_t topic, bool leaves,
			   struct hs_bytes reply)
{
	const struct hs_sim_companion_request *request =
		&companion->in_flight[companion->head % HS_SIM_COMPANION_IN_FLIGHT_MAX];
	enum hs_sim_companion_request_kind what =
		leaves ? HS_SIM_COMPANION_UNSUBSCRIBE : HS_SIM_COMPANION_SUBSCRIBE;
	bool asked = companion->head != companion->tail && request->kind == what &&
		     request->where == topic;
	bool dropped =
		topic == HS_SIM_COMPANION_SHARD && leaves && companion->companions->options.faults;

	if (!asked && !dropped)
		report(companion, 1, "gets a reply without a request", reply);
	if (asked)
		companion->head++;
	companion->subscribed_from[topic] = leaves ? 0 : ++companion->companions->world->steps;
	companion->received[topic] = 0;
}

/* Reads the head of a push, which is an array in RESP2; 0: it is neither. */
static int64_t begin_push(struct hs_bytes reply, struct hs_bytes *elements)
{
	struct hs_parsed_reply head;
	int64_t used = hs_parse_reply_head(&head, reply.data, reply.len);

	hs_check(used > 0);
	*elements = (struct hs_bytes){reply.data + used, reply.len - (size_t)used};
	return head.type == HS_PARSED_ARRAY || head.type == HS_PARSED_PUSH ? head.count : 0;
}

/* False: it is a reply. */
static bool receive_push(struct hs_sim_companion *companion, struct hs_bytes reply)
{
	struct hs_bytes elements, element;
	struct hs_parsed_reply answers[4];
	int64_t count = begin_push(reply, &elements);

	if (count < 3 || count > 4)
		return false;
	for (int64_t i = 0; i < count; i++) {
		if (!hs_parse_reply_take(&elements, &element) ||
		    hs_parse_reply_head(&answers[i], element.data, element.len) <= 0)
			return false;
	}
	for (uint32_t topic = 0; topic < HS_SIM_COMPANION_TOPICS; topic++) {
		const struct hs_sim_companion_words *words = &hs_sim_companion_words[topic];

		if (hs_bytes_equal(answers[0].text, hs_bytes_of(words->message)))
			receive_message(companion, topic, answers[count - 1].text, reply);
		else if (hs_bytes_equal(answers[0].text, hs_bytes_of(words->subscribe)))
			receive_change(companion, topic, false, reply);
		else if (hs_bytes_equal(answers[0].text, hs_bytes_of(words->unsubscribe)))
			receive_change(companion, topic, true, reply);
		else
			continue;
		return true;
	}
	return false;
}

void hs_sim_companion_on_reply(void *context, struct hs_sim_client *client, struct hs_bytes reply)
{
	struct hs_sim_companion *companion = context;
	struct hs_sim_companions *companions = companion->companions;
	struct hs_sim_companion_request request;
	char text[120];

	(void)client;
	companions->world->steps++;
	if (companions->world->options.script)
		hs_sim_script_note(companions->world, "companion %u gets %s", companion->number,
				   hs_bytes_escape(reply, text, sizeof text));
	if (companion->role != HS_SIM_SUBSCRIBER || !receive_push(companion, reply)) {
		if (companion->head == companion->tail) {
			report(companion, 1, "gets a reply without a request", reply);
			return;
		}
		request = companion->in_flight[companion->head++ % HS_SIM_COMPANION_IN_FLIGHT_MAX];
		answer_one(companion, &request, reply);
	}
	if (companion->head == companion->tail && companion->role != HS_SIM_UNBLOCKER &&
	    companion->left > 0)
		hs_sim_companion_plan(companion, 1 + hs_prng_below(&companions->prng,
								   companions->options.act_us_max));
}

void hs_sim_companion_forget(struct hs_sim_companion *companion)
{
	for (; companion->head != companion->tail; companion->head++) {
		const struct hs_sim_companion_request *request =
			&companion->in_flight[companion->head % HS_SIM_COMPANION_IN_FLIGHT_MAX];

		if (request->kind == HS_SIM_COMPANION_POP)
			companion->companions->unknown[request->where]++;
	}
	for (int i = 0; i < HS_SIM_COMPANION_TOPICS; i++)
		companion->subscribed_from[i] = companion->received[i] = 0;
	companion->client = NULL;
}

/* ---- final checks ---- */

void hs_sim_companions_check_answered(struct hs_sim_companions *companions,
				      struct hs_sim_verdict *verdict)
{
	for (uint32_t i = 0; i < companions->count; i++) {
		struct hs_sim_companion *companion = &companions->all[i];

		if (companion->client && !companion->client->session)
			hs_sim_companion_forget(companion); /* it was cut off */
		if (companion->client && companion->head != companion->tail)
			hs_sim_verdict_set(&companions->verdict, 1,
					   "companion %u was never answered", companion->number);
	}
	if (verdict->law == 0)
		*verdict = companions->verdict;
}

/* One popper empties the lists. */
static void drain(struct hs_sim_companions *companions)
{
	struct hs_sim_companion *companion = NULL;

	for (uint32_t i = 0; i < companions->count; i++) {
		if (companions->all[i].role == HS_SIM_POPPER)
			companion = &companions->all[i];
	}
	if (!companion)
		return;
	if (!companion->client || !companion->client->session) {
		companion->client = hs_sim_client_connect(companions->world, 0);
		companion->client->on_reply = hs_sim_companion_on_reply;
		companion->client->context = companion;
	}
	for (uint32_t list = 0; list < HS_SIM_COMPANION_LISTS; list++) {
		uint32_t left = 1;

		for (uint32_t i = 0; i < companions->items_count; i++)
			left += !companions->items[i].message &&
				companions->items[i].where == list && !companions->items[i].taken;
		for (; left > 0 && companion->head == companion->tail; left--) {
			hs_sim_companion_pop(companion, list, DRAIN_US);
			hs_sim_world_settle(companions->world);
		}
	}
}

static void check_lists(struct hs_sim_companions *companions)
{
	for (uint32_t list = 0; list < HS_SIM_COMPANION_LISTS; list++) {
		uint32_t lost = 0, some = 0;

		for (uint32_t i = 0; i < companions->items_count; i++) {
			const struct hs_sim_companion_item *item = &companions->items[i];

			if (item->message || item->where != list || !item->acked || item->taken)
				continue;
			lost++;
			some = i;
		}
		if (lost > companions->unknown[list])
			hs_sim_verdict_set(
				&companions->verdict, 4,
				"%u elements of list{key%u} are lost, %u among them, but "
				"only %u answers to BLPOP were lost",
				lost, list, some, companions->unknown[list]);
	}
}

/* Only called when there are no faults: every published message must have arrived. */
static void check_topic(struct hs_sim_companion *companion, uint32_t topic)
{
	struct hs_sim_companions *companions = companion->companions;

	for (uint32_t i = 0; i < companions->items_count && companion->subscribed_from[topic] > 0;
	     i++) {
		const struct hs_sim_companion_item *item = &companions->items[i];

		if (!item->message || item->where != hs_sim_companion_words[topic].channel ||
		    !item->acked || item->asked < companion->subscribed_from[topic] ||
		    companion->received[topic] >> i & 1)
			continue;
		hs_sim_verdict_set(
			&companions->verdict, HS_SIM_LAW_MESSAGES,
			"companion %u never gets message %u, which was published after its "
			"subscription of %s was confirmed",
			companion->number, i, hs_sim_companion_words[topic].name);
	}
}

static void check_messages(struct hs_sim_companions *companions)
{
	for (uint32_t i = 0; i < companions->count && !companions->options.faults; i++) {
		for (uint32_t topic = 0; topic < HS_SIM_COMPANION_TOPICS; topic++)
			check_topic(&companions->all[i], topic);
	}
}

void hs_sim_companions_check(struct hs_sim_companions *companions, struct hs_sim_verdict *verdict)
{
	companions->ending = true;
	check_messages(companions);
	if (companions->verdict.law == 0)
		drain(companions);
	if (companions->verdict.law == 0)
		check_lists(companions);
	for (uint32_t i = 0; i < companions->count; i++) {
		if (companions->all[i].client) {
			companions->all[i].client->on_reply = NULL;
			companions->all[i].client->orphaned = NULL;
		}
	}
	if (verdict->law == 0)
		*verdict = companions->verdict;
}
