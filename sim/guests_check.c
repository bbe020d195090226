/* What guests hear, and whether it is what they may hear. */
#include "sim/guests_internal.h"

#include "base/mem.h"
#include "base/num.h"
#include "wire/answer.h"

#include <inttypes.h>

enum {
	LATE_US = 200000,	   /* behind the end of a wait, where nothing fails */
	LATE_FAULTS_US = 60000000, /* servers stand still, connections fall silent */
	DRAIN_US = 1000,
};

/* ---- elements and messages ---- */

static void complain(struct hs_sim_guest *guest, int law, const char *what, struct hs_bytes reply)
{
	char text[100];

	hs_sim_verdict_set(&guest->guests->verdict, law, "guest %u %s: \"%s\"", guest->number, what,
			   hs_bytes_escape(reply, text, sizeof text));
}

/* NULL: it is none of ours. */
static struct hs_sim_guest_item *find_item(struct hs_sim_guest *guest, struct hs_bytes text,
					   bool message, uint32_t where, uint32_t *number)
{
	int64_t value;

	if (!hs_num_parse_int(text, &value) || value < 0 || value >= guest->guests->items_count)
		return NULL;
	*number = (uint32_t)value;
	if (guest->guests->items[value].message != message ||
	    guest->guests->items[value].where != where)
		return NULL;
	return &guest->guests->items[value];
}

/* Nothing that its client gave behind it, to the same node, was got before. */
static bool is_in_order(const struct hs_sim_guests *guests, uint64_t got, uint32_t number)
{
	const struct hs_sim_guest_item *item = &guests->items[number], *other;

	for (uint32_t i = number + 1; i < guests->items_count; i++) {
		other = &guests->items[i];
		if (got >> i & 1 && other->by == item->by && other->where == item->where &&
		    other->node == item->node)
			return false;
	}
	return true;
}

static void take_element(struct hs_sim_guest *guest, const struct hs_sim_guest_ask *ask,
			 struct hs_bytes reply)
{
	struct hs_bytes elements = hs_answer_elements(reply), key, element;
	struct hs_sim_guest_item *item = NULL;
	struct hs_answer answer;
	uint32_t number = 0;

	if (hs_answer_take(&elements, &key) && hs_answer_take(&elements, &element) &&
	    hs_answer_head(&answer, element.data, element.len) > 0)
		item = find_item(guest, answer.text, false, ask->where, &number);
	if (!item) {
		complain(guest, 2, "popped what was never pushed there", reply);
		return;
	}
	if (item->taken)
		complain(guest, 4, "popped what was popped before", reply);
	if (!is_in_order(guest->guests, guest->popped, number) && !guest->guests->options.faults)
		complain(guest, 2, "popped it behind one that was pushed later", reply);
	guest->popped |= UINT64_C(1) << number;
	item->taken = true;
}

/* Whether its messages have come from one node all the time. */
static bool has_stayed(const struct hs_sim_guest *guest, uint32_t topic)
{
	const struct hs_sim_world *world = guest->guests->world;
	const uint64_t *reached = world->reached.of;
	uint32_t heatsink = guest->client->worker / world->options.workers;

	if (!world->options.servers.cluster)
		return true;
	if (topic == HS_SIM_GUEST_SHARD)
		return reached[HS_SIM_REACHED_MOVES] == 0 &&
		       reached[HS_SIM_REACHED_FAILOVERS] == 0 &&
		       reached[HS_SIM_REACHED_TAKEOVERS] == 0;
	return !hs_sim_proxy_home_has_moved(world->heatsinks[heatsink].proxy);
}

static void hear_message(struct hs_sim_guest *guest, uint32_t topic, struct hs_bytes payload,
			 struct hs_bytes reply)
{
	uint32_t channel = hs_sim_guest_words[topic].channel, number = 0;
	struct hs_sim_guest_item *item = find_item(guest, payload, true, channel, &number);
	bool strictly = has_stayed(guest, topic);

	if (!item) {
		complain(guest, HS_SIM_LAW_MESSAGES, "hears what was never published there", reply);
		return;
	}
	if (guest->hears[topic] == 0)
		complain(guest, HS_SIM_LAW_MESSAGES, "has left and hears", reply);
	if (strictly && guest->heard[topic] >> number & 1)
		complain(guest, HS_SIM_LAW_MESSAGES, "hears twice", reply);
	else if (strictly && !is_in_order(guest->guests, guest->heard[topic], number))
		complain(guest, HS_SIM_LAW_MESSAGES, "hears behind a later one", reply);
	guest->heard[topic] |= UINT64_C(1) << number;
}

/* ---- replies ---- */

static bool is_unknown(struct hs_bytes text)
{
	return memmem(text.data, text.len, "unknown", strlen("unknown")) ||
	       hs_bytes_begins(text, HS_LIT("UNKNOWN"));
}

/* Whether this may be said now, instead of an answer. */
static bool is_excuse(const struct hs_sim_guest *guest, const struct hs_sim_guest_ask *ask,
		      struct hs_bytes text)
{
	const struct hs_sim_guests_options *options = &guest->guests->options;

	if (hs_bytes_begins(text, HS_LIT("UNBLOCKED client unblocked")))
		return ask->what == HS_SIM_GUEST_POP;
	if (hs_bytes_begins(text, HS_LIT("BUSY ")))
		return options->faults || (options->crowded && ask->what == HS_SIM_GUEST_POP);
	return options->faults;
}

static void answer_pop(struct hs_sim_guest *guest, const struct hs_sim_guest_ask *ask,
		       const struct hs_answer *answer, struct hs_bytes reply)
{
	struct hs_sim_guests *guests = guest->guests;
	uint64_t now_us = guests->world->now.mono_us;
	uint64_t late_us = guests->options.faults ? LATE_FAULTS_US : LATE_US;

	if (answer->type == HS_ANSWER_ERROR && is_unknown(answer->text))
		guests->unknown[ask->where]++;
	if (answer->type == HS_ANSWER_ERROR && guests->ending)
		complain(guest, 9, "is answered an error, and all is well", reply);
	if (answer->type == HS_ANSWER_ARRAY)
		take_element(guest, ask, reply);
	else if (answer->type != HS_ANSWER_NULL && answer->type != HS_ANSWER_ERROR)
		complain(guest, 1, "gets what is no answer to BLPOP", reply);
	if (ask->until_us != UINT64_MAX && now_us > ask->until_us + late_us)
		hs_sim_verdict_set(&guests->verdict, 1,
				   "guest %u waits %" PRIu64 " us longer than it asked to",
				   guest->number, now_us - ask->until_us);
}

static void answer_one(struct hs_sim_guest *guest, const struct hs_sim_guest_ask *ask,
		       struct hs_bytes reply)
{
	struct hs_sim_guests *guests = guest->guests;
	struct hs_answer answer;
	bool error;

	hs_check(hs_answer_head(&answer, reply.data, reply.len) > 0);
	error = answer.type == HS_ANSWER_ERROR;
	if (error && !is_excuse(guest, ask, answer.text))
		complain(guest, 1, "is answered an error", reply);
	switch (ask->what) {
	case HS_SIM_GUEST_POP:
		answer_pop(guest, ask, &answer, reply);
		break;
	case HS_SIM_GUEST_PUSH:
	case HS_SIM_GUEST_PUBLISH:
		guests->items[ask->item].acked = answer.type == HS_ANSWER_INT;
		if (!error && answer.type != HS_ANSWER_INT)
			complain(guest, 1, "gets what is no number", reply);
		break;
	case HS_SIM_GUEST_UNBLOCK:
		guest->other->unblocked = answer.type == HS_ANSWER_INT && answer.integer == 1;
		break;
	case HS_SIM_GUEST_HELLO:
		if (answer.type != HS_ANSWER_MAP)
			complain(guest, 1, "gets what is no answer to HELLO", reply);
		break;
	case HS_SIM_GUEST_SUBSCRIBE: /* confirmations come as what they say */
	case HS_SIM_GUEST_UNSUBSCRIBE:
		if (!error)
			complain(guest, 1, "gets no confirmation", reply);
	}
}

/* Asked for, unless a shard channel was dropped. */
static void hear_change(struct hs_sim_guest *guest, uint32_t topic, bool leaves,
			struct hs_bytes reply)
{
	const struct hs_sim_guest_ask *ask = &guest->asks[guest->head % HS_SIM_GUEST_UNDER_WAY];
	enum hs_sim_guest_what what = leaves ? HS_SIM_GUEST_UNSUBSCRIBE : HS_SIM_GUEST_SUBSCRIBE;
	bool asked = guest->head != guest->tail && ask->what == what && ask->where == topic;
	bool dropped = topic == HS_SIM_GUEST_SHARD && leaves && guest->guests->options.faults;

	if (!asked && !dropped)
		complain(guest, 1, "is told without having asked", reply);
	if (asked)
		guest->head++;
	guest->hears[topic] = leaves ? 0 : ++guest->guests->world->steps;
	guest->heard[topic] = 0;
}

/* In RESP2 what comes by itself is an array as well; 0: it is neither. */
static int64_t begin_push(struct hs_bytes reply, struct hs_bytes *elements)
{
	struct hs_answer head;
	int64_t used = hs_answer_head(&head, reply.data, reply.len);

	hs_check(used > 0);
	*elements = (struct hs_bytes){reply.data + used, reply.len - (size_t)used};
	return head.type == HS_ANSWER_ARRAY || head.type == HS_ANSWER_PUSH ? head.count : 0;
}

/* False: it is a reply. */
static bool hear_listener(struct hs_sim_guest *guest, struct hs_bytes reply)
{
	struct hs_bytes elements, element;
	struct hs_answer answers[4];
	int64_t count = begin_push(reply, &elements);

	if (count < 3 || count > 4)
		return false;
	for (int64_t i = 0; i < count; i++) {
		if (!hs_answer_take(&elements, &element) ||
		    hs_answer_head(&answers[i], element.data, element.len) <= 0)
			return false;
	}
	for (uint32_t topic = 0; topic < HS_SIM_GUEST_TOPICS; topic++) {
		const struct hs_sim_guest_words *words = &hs_sim_guest_words[topic];

		if (hs_bytes_equal(answers[0].text, hs_bytes_of(words->message)))
			hear_message(guest, topic, answers[count - 1].text, reply);
		else if (hs_bytes_equal(answers[0].text, hs_bytes_of(words->subscribe)))
			hear_change(guest, topic, false, reply);
		else if (hs_bytes_equal(answers[0].text, hs_bytes_of(words->unsubscribe)))
			hear_change(guest, topic, true, reply);
		else
			continue;
		return true;
	}
	return false;
}

void hs_sim_guest_hear(void *context, struct hs_sim_client *client, struct hs_bytes reply)
{
	struct hs_sim_guest *guest = context;
	struct hs_sim_guests *guests = guest->guests;
	struct hs_sim_guest_ask ask;
	char text[120];

	(void)client;
	guests->world->steps++;
	if (guests->world->options.script)
		hs_sim_fate_note(guests->world, "guest %u hears %s", guest->number,
				 hs_bytes_escape(reply, text, sizeof text));
	if (guest->role != HS_SIM_LISTENER || !hear_listener(guest, reply)) {
		if (guest->head == guest->tail) {
			complain(guest, 1, "is told without having asked", reply);
			return;
		}
		ask = guest->asks[guest->head++ % HS_SIM_GUEST_UNDER_WAY];
		answer_one(guest, &ask, reply);
	}
	if (guest->head == guest->tail && guest->role != HS_SIM_USHER && guest->left > 0)
		hs_sim_guest_plan(guest,
				  1 + hs_prng_below(&guests->prng, guests->options.act_us_max));
}

void hs_sim_guest_forget(struct hs_sim_guest *guest)
{
	for (; guest->head != guest->tail; guest->head++) {
		const struct hs_sim_guest_ask *ask =
			&guest->asks[guest->head % HS_SIM_GUEST_UNDER_WAY];

		if (ask->what == HS_SIM_GUEST_POP)
			guest->guests->unknown[ask->where]++;
	}
	for (int i = 0; i < HS_SIM_GUEST_TOPICS; i++)
		guest->hears[i] = guest->heard[i] = 0;
	guest->client = NULL;
}

/* ---- at the end ---- */

void hs_sim_guests_check_answered(struct hs_sim_guests *guests, struct hs_sim_verdict *verdict)
{
	for (uint32_t i = 0; i < guests->count; i++) {
		struct hs_sim_guest *guest = &guests->all[i];

		if (guest->client && !guest->client->session)
			hs_sim_guest_forget(guest); /* it was cut off */
		if (guest->client && guest->head != guest->tail)
			hs_sim_verdict_set(&guests->verdict, 1, "guest %u was never answered",
					   guest->number);
	}
	if (verdict->law == 0)
		*verdict = guests->verdict;
}

/* One of them empties the lists. */
static void drain(struct hs_sim_guests *guests)
{
	struct hs_sim_guest *guest = NULL;

	for (uint32_t i = 0; i < guests->count; i++) {
		if (guests->all[i].role == HS_SIM_POPPER)
			guest = &guests->all[i];
	}
	if (!guest)
		return;
	if (!guest->client || !guest->client->session) {
		guest->client = hs_sim_client_connect(guests->world, 0);
		guest->client->hear = hs_sim_guest_hear;
		guest->client->context = guest;
	}
	for (uint32_t list = 0; list < HS_SIM_GUEST_LISTS; list++) {
		uint32_t left = 1;

		for (uint32_t i = 0; i < guests->items_count; i++)
			left += !guests->items[i].message && guests->items[i].where == list &&
				!guests->items[i].taken;
		for (; left > 0 && guest->head == guest->tail; left--) {
			hs_sim_guest_pop(guest, list, DRAIN_US);
			hs_sim_world_settle(guests->world);
		}
	}
}

static void check_lists(struct hs_sim_guests *guests)
{
	for (uint32_t list = 0; list < HS_SIM_GUEST_LISTS; list++) {
		uint32_t lost = 0, some = 0;

		for (uint32_t i = 0; i < guests->items_count; i++) {
			const struct hs_sim_guest_item *item = &guests->items[i];

			if (item->message || item->where != list || !item->acked || item->taken)
				continue;
			lost++;
			some = i;
		}
		if (lost > guests->unknown[list])
			hs_sim_verdict_set(
				&guests->verdict, 4,
				"%u elements of list{key%u} are gone, %u among them, and "
				"only %u answers to BLPOP were not heard",
				lost, list, some, guests->unknown[list]);
	}
}

/* Where nothing fails. */
static void check_topic(struct hs_sim_guest *guest, uint32_t topic)
{
	struct hs_sim_guests *guests = guest->guests;

	for (uint32_t i = 0; i < guests->items_count && guest->hears[topic] > 0; i++) {
		const struct hs_sim_guest_item *item = &guests->items[i];

		if (!item->message || item->where != hs_sim_guest_words[topic].channel ||
		    !item->acked || item->asked < guest->hears[topic] ||
		    guest->heard[topic] >> i & 1)
			continue;
		hs_sim_verdict_set(&guests->verdict, HS_SIM_LAW_MESSAGES,
				   "guest %u never hears message %u, which was published after its "
				   "subscription of %s was confirmed",
				   guest->number, i, hs_sim_guest_words[topic].name);
	}
}

static void check_messages(struct hs_sim_guests *guests)
{
	for (uint32_t i = 0; i < guests->count && !guests->options.faults; i++) {
		for (uint32_t topic = 0; topic < HS_SIM_GUEST_TOPICS; topic++)
			check_topic(&guests->all[i], topic);
	}
}

void hs_sim_guests_check(struct hs_sim_guests *guests, struct hs_sim_verdict *verdict)
{
	guests->ending = true;
	check_messages(guests);
	if (guests->verdict.law == 0)
		drain(guests);
	if (guests->verdict.law == 0)
		check_lists(guests);
	for (uint32_t i = 0; i < guests->count; i++) {
		if (guests->all[i].client) {
			guests->all[i].client->hear = NULL;
			guests->all[i].client->orphaned = NULL;
		}
	}
	if (verdict->law == 0)
		*verdict = guests->verdict;
}
