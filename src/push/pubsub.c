/* SUBSCRIBE and its kin, and the delivery of messages.
 *
 * Many sessions share one subscription at the engine. The first session that subscribes to a topic makes
 * heatsink subscribe at the engine; the last one that leaves makes it unsubscribe. A client's subscription is
 * confirmed only when the engine's is active, so it misses nothing that is published from then on.
 *
 *     SUBSCRIBE a ── topic a ─┬─ engine subscribed already ────────────────┬─ confirmed
 *                             └─ HS_OP_SUBSCRIBE ─ … ─ done ─ all waiting ─┘
 *
 * UNSUBSCRIBE of the last client is confirmed only when the engine has dropped the subscription, so that a
 * later PUBSUB NUMSUB does not count it.
 *
 * At most one engine operation per topic is in flight. A client that subscribes while the engine is still
 * unsubscribing waits for that, then for the subscription. If no client wants the topic when a subscription
 * becomes active, heatsink unsubscribes at once. So the engine never has to order several operations on one
 * topic.
 *
 * A command that subscribes is the only one of its client in flight (core/dispatch.c), so later commands of the
 * client find it done.
 *
 * A topic whose subscription fails stays unsubscribed, and every waiting client gets the engine's error. */
#include "push/push.h"

#include "base/mem.h"
#include "base/slot.h"
#include "core/dispatch.h"
#include "core/event.h"
#include "core/internal.h"
#include "core/state.h"
#include "wire/reply.h"

/* An engine operation about a topic: the context of an internal call. */
struct hs_topic_call {
	struct hs_topic *topic;
	bool *done; /* set to true if it is answered while it is being sent; or NULL */
};

/* One topic in a command that subscribes or unsubscribes. */
struct hs_topic_change {
	struct hs_link waiting; /* in topic->waiting, else linked to itself */
	struct hs_request *request;
	const char *refused; /* error text if a limit is reached; or NULL */
};

static const struct {
	enum hs_command_id id;
	const char *verb; /* the command's name for the engine */
	const char *subscribed, *unsubscribed, *message;
} words[HS_TOPIC_KINDS] = {
	[HS_TOPIC_CHANNEL] = {HS_CMD_ID_SUBSCRIBE, "SUBSCRIBE", "subscribe", "unsubscribe",
			      "message"},
	[HS_TOPIC_PATTERN] = {HS_CMD_ID_PSUBSCRIBE, "PSUBSCRIBE", "psubscribe", "punsubscribe",
			      "pmessage"},
	[HS_TOPIC_SHARD] = {HS_CMD_ID_SSUBSCRIBE, "SSUBSCRIBE", "ssubscribe", "sunsubscribe",
			    "smessage"},
};

static bool release(struct hs_core *core, struct hs_topic *topic);
static void finish_subscribe(struct hs_core *core, struct hs_request *request);

static struct hs_topics *topics_of(const struct hs_core *core)
{
	return &hs_push_of(core)->topics;
}

/* Every topic of the command is handled. */
static void finish(struct hs_core *core, struct hs_request *request)
{
	hs_mem_free(&hs_push_request(core, request)->changes);
	hs_dispatch_finish(core, request);
}

/* ---- subscriptions at the engine ---- */

static void wake_waiting(struct hs_core *core, struct hs_topic *topic)
{
	struct hs_link ready;

	/* Moved to a list of its own first: a woken client may wait again. */
	hs_list_init(&ready);
	while (!hs_list_empty(&topic->waiting)) {
		struct hs_link *link = topic->waiting.next;

		hs_list_remove(link);
		hs_list_append(&ready, link);
	}
	topic->refs++; /* keeps the topic while clients come and go */
	while (!hs_list_empty(&ready)) {
		struct hs_topic_change *change =
			hs_list_entry(ready.next, struct hs_topic_change, waiting);
		struct hs_request *request = change->request;
		struct hs_session *session = request->session;

		hs_list_remove(&change->waiting);
		if (--request->parts_left > 0)
			continue;
		hs_core_resume_later(core, session);
		hs_push_request(core, request)->settled(core, request);
	}
	topic->refs--;
}

static bool call_engine(struct hs_core *core, struct hs_topic *topic, bool listen);

/* The engine operation is done. */
static void settle(struct hs_core *core, struct hs_topic *topic, struct hs_bytes reply)
{
	bool leaving = topic->state == HS_TOPIC_UNSUBSCRIBING;
	bool failed = !leaving && (reply.len == 0 || reply.data[0] == '-');
	/* Subscribe again: a client came while the engine unsubscribed, or the engine dropped the subscription
	 * while it was made. */
	bool again = topic->refs > 0 && (leaving || (!failed && topic->dropped));

	hs_mem_free(&topic->error);
	if (failed)
		topic->error = reply.len > 3 ? hs_mem_dup(reply.data + 1, reply.len - 3)
					     : hs_mem_dup(HS_PUSH_NOT_SUBSCRIBED,
							  sizeof HS_PUSH_NOT_SUBSCRIBED - 1);
	hs_mem_free(&topic->engine_call);
	if (again) {
		call_engine(core, topic, true);
		return;
	}
	topic->state = leaving || failed ? HS_TOPIC_UNSUBSCRIBED : HS_TOPIC_SUBSCRIBED;
	wake_waiting(core, topic);
	release(core, topic);
}

static void engine_answered(struct hs_core *core, struct hs_request *request)
{
	struct hs_topic_call *listen = request->context;

	if (listen->done)
		*listen->done = true;
	settle(core, listen->topic, hs_internal_reply(request, 0));
	hs_internal_end(core, request);
}

/* True: the operation is in flight. False: it is done, and the topic may be freed. */
static bool call_engine(struct hs_core *core, struct hs_topic *topic, bool listen)
{
	uint16_t slot = topic->kind == HS_TOPIC_SHARD ? hs_slot_of(topic->name) : HS_SLOT_NONE;
	struct hs_bytes argv[] = {hs_bytes_of(words[topic->kind].verb), topic->name};
	struct hs_internal internal = {
		.call = hs_call_of(hs_command_by_id(words[topic->kind].id), 2, argv),
		.on_done = engine_answered,
		.slot = slot,
		.resp = 2,
		.kind = listen ? HS_OP_SUBSCRIBE : HS_OP_UNSUBSCRIBE,
		.stage = HS_STAGE_NONE,
	};
	bool done = false;

	topic->engine_call = hs_mem_alloc(sizeof *topic->engine_call);
	*topic->engine_call = (struct hs_topic_call){topic, &done};
	internal.context = topic->engine_call;
	topic->dropped = false;
	topic->state = listen ? HS_TOPIC_SUBSCRIBING : HS_TOPIC_UNSUBSCRIBING;
	hs_internal_send(core, hs_internal_prepare(core, &internal));
	if (!done)
		topic->engine_call->done = NULL;
	return !done;
}

/* Unsubscribes or frees a topic that no client wants. True: the engine is unsubscribing. False: the topic may
 * be freed. */
static bool release(struct hs_core *core, struct hs_topic *topic)
{
	if (topic->refs > 0 || topic->engine_call)
		return false;
	if (topic->state == HS_TOPIC_SUBSCRIBED)
		return call_engine(core, topic, false);
	hs_topic_destroy(topics_of(core), &topic);
	return false;
}

static void end_subscription(struct hs_core *core, struct hs_subscription *subscription)
{
	struct hs_topic *topic = subscription->topic;

	if (subscription->confirmed)
		hs_counter_sub(&hs_push_of(core)->stats.subscriptions, 1);
	hs_subscription_end(topics_of(core), &subscription);
	release(core, topic);
}

void hs_pubsub_drop(struct hs_core *core, struct hs_session *session)
{
	for (int kind = 0; kind < HS_TOPIC_KINDS; kind++) {
		struct hs_link *subscriptions =
			&hs_push_session(core, session)->subscriptions[kind];

		while (!hs_list_empty(subscriptions))
			end_subscription(core, hs_list_entry(subscriptions->next,
							     struct hs_subscription, of_session));
	}
}

/* ---- subscribing ---- */

/* The count in a confirmation: channels and patterns together, shard channels by themselves. */
static uint32_t confirmed_total(const struct hs_core *core, const struct hs_session *session,
				enum hs_topic_kind kind)
{
	const uint32_t *confirmed = hs_push_session(core, session)->confirmed_counts;

	if (kind == HS_TOPIC_SHARD)
		return confirmed[HS_TOPIC_SHARD];
	return confirmed[HS_TOPIC_CHANNEL] + confirmed[HS_TOPIC_PATTERN];
}

/* `name` NULL: the reply names no topic. */
static void reply_change(const struct hs_core *core, const struct hs_session *session,
			 const char *word, const struct hs_bytes *name, enum hs_topic_kind kind,
			 struct hs_reply *reply)
{
	hs_reply_push(reply, 3);
	hs_reply_bulk_text(reply, word);
	if (name)
		hs_reply_bulk(reply, *name);
	else
		hs_reply_null(reply);
	hs_reply_int(reply, confirmed_total(core, session, kind));
}

/* The error if one more subscription would exceed a limit, or NULL. */
static const char *refused(const struct hs_core *core, const struct hs_session *session,
			   const struct hs_topic *topic, struct hs_bytes name)
{
	if (session->subscriptions >= HS_SESSION_SUBSCRIPTIONS_MAX)
		return "ERR too many subscriptions: at most 262144 for one connection";
	if (topics_of(core)->pairs.count >= HS_WORKER_SUBSCRIPTIONS_MAX)
		return "ERR too many subscriptions: at most 1048576 for one worker";
	if (!topic && topics_of(core)->name_bytes + name.len > HS_WORKER_TOPIC_BYTES_MAX)
		return "ERR too many subscriptions: at most 256 MiB of names for one worker";
	return NULL;
}

static void subscribe_to(struct hs_core *core, struct hs_topic_change *change,
			 enum hs_topic_kind kind, struct hs_bytes name)
{
	struct hs_session *session = change->request->session;
	struct hs_topic *topic = hs_topic_find(topics_of(core), kind, name);

	if (topic && hs_subscription_find(topics_of(core), topic, session))
		return; /* already subscribed, or named twice in the command */
	change->refused = refused(core, session, topic, name);
	if (change->refused)
		return;
	topic = hs_topic_get(topics_of(core), kind, name);
	hs_subscription_add(topics_of(core), topic, session);
	if (topic->state == HS_TOPIC_UNSUBSCRIBED)
		call_engine(core, topic, true);
	if (topic->engine_call) {
		hs_list_append(&topic->waiting, &change->waiting);
		change->request->parts_left++;
	}
}

/* Allocates the command's topics. The request counts as waiting until all of them are looked at. */
static struct hs_topic_change *begin_changes(struct hs_core *core, struct hs_request *request,
					     size_t count,
					     void (*settled)(struct hs_core *core,
							     struct hs_request *request))
{
	struct hs_topic_change *changes = hs_mem_zalloc((count ? count : 1) * sizeof *changes);

	hs_push_request(core, request)->changes = changes;
	hs_push_request(core, request)->settled = settled;
	request->parts_left = 1;
	request->muted = false; /* replies are pushes: CLIENT REPLY OFF does not silence them */
	for (size_t i = 0; i < count; i++) {
		changes[i].request = request;
		hs_list_init(&changes[i].waiting);
	}
	return changes;
}

/* Replies to one argument: the subscription is confirmed, or an error. */
static void confirm(struct hs_core *core, const struct hs_topic_change *change,
		    enum hs_topic_kind kind, struct hs_bytes name, struct hs_reply *reply)
{
	struct hs_session *session = change->request->session;
	struct hs_topic *topic =
		change->refused ? NULL : hs_topic_find(topics_of(core), kind, name);
	struct hs_subscription *subscription =
		topic ? hs_subscription_find(topics_of(core), topic, session) : NULL;

	if (!subscription || topic->state != HS_TOPIC_SUBSCRIBED) {
		const char *why = change->refused	  ? change->refused
				  : topic && topic->error ? topic->error
							  : HS_PUSH_NOT_SUBSCRIBED;

		/* The command's first error is counted with the command; each further one is counted here. */
		if (reply->out->len > 0)
			hs_counter_add(&core->stats.errors, 1);
		hs_reply_error(reply, why);
		return;
	}
	if (!subscription->confirmed) {
		hs_subscription_begin(topics_of(core), subscription);
		hs_counter_add(&hs_push_of(core)->stats.subscriptions, 1);
	}
	reply_change(core, session, words[kind].subscribed, &name, kind, reply);
}

static void finish_subscribe(struct hs_core *core, struct hs_request *request)
{
	struct hs_session *session = request->session;
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};
	enum hs_topic_kind kind = request->call.command->topic;
	const struct hs_topic_change *changes = hs_push_request(core, request)->changes;

	for (size_t i = 1; i < request->call.argc && !session->gone; i++)
		confirm(core, &changes[i - 1], kind, request->call.argv[i], &reply);
	/* Failed subscriptions end only here, because a name may occur twice in the command. */
	for (size_t i = 1; i < request->call.argc; i++) {
		struct hs_topic *topic =
			hs_topic_find(topics_of(core), kind, request->call.argv[i]);
		struct hs_subscription *subscription =
			topic ? hs_subscription_find(topics_of(core), topic, session) : NULL;

		if (subscription && !subscription->confirmed)
			end_subscription(core, subscription);
	}
	finish(core, request);
}

void hs_pubsub_subscribe(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
			 const struct hs_call *call, struct hs_bytes element)
{
	struct hs_request *request = hs_request_make(core, session, call);
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};
	struct hs_topic_change *changes;

	(void)element;
	request->exec = exec;
	if (exec && call->command->topic == HS_TOPIC_SHARD) {
		hs_reply_error(&reply, "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
		hs_dispatch_finish(core, request);
		return;
	}
	changes = begin_changes(core, request, call->argc - 1, finish_subscribe);
	for (size_t i = 1; i < request->call.argc; i++)
		subscribe_to(core, &changes[i - 1], call->command->topic, request->call.argv[i]);
	if (--request->parts_left == 0)
		finish_subscribe(core, request);
}

/* Ends a subscription and confirms it. If it was the last of its topic, the confirmation waits for the engine,
 * so that the client's next command finds the topic unsubscribed. */
static void leave(struct hs_core *core, struct hs_topic_change *change,
		  struct hs_subscription *subscription, struct hs_reply *reply)
{
	struct hs_topic *topic = subscription->topic;

	topic->refs++; /* keeps the topic's name */
	end_subscription(core, subscription);
	reply_change(core, change->request->session, words[topic->kind].unsubscribed, &topic->name,
		     topic->kind, reply);
	topic->refs--;
	if (release(core, topic)) {
		hs_list_append(&topic->waiting, &change->waiting);
		change->request->parts_left++;
	}
}

void hs_pubsub_unsubscribe(struct hs_core *core, struct hs_session *session,
			   struct hs_request *exec, const struct hs_call *call,
			   struct hs_bytes element)
{
	struct hs_request *request = hs_request_make(core, session, call);
	enum hs_topic_kind kind = call->command->topic;
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};
	struct hs_push_session *state = hs_push_session(core, session);
	struct hs_link *subscriptions = &state->subscriptions[kind];
	bool all = call->argc == 1;
	struct hs_topic_change *change = begin_changes(
		core, request, all ? state->confirmed_counts[kind] : call->argc - 1, finish);

	(void)element;
	request->exec = exec;
	for (size_t i = 1; i < request->call.argc; i++) {
		struct hs_topic *topic =
			hs_topic_find(topics_of(core), kind, request->call.argv[i]);
		struct hs_subscription *subscription =
			topic ? hs_subscription_find(topics_of(core), topic, session) : NULL;

		if (subscription)
			leave(core, change++, subscription, &reply);
		else
			reply_change(core, session, words[kind].unsubscribed,
				     &request->call.argv[i], kind, &reply);
	}
	if (all && hs_list_empty(subscriptions))
		reply_change(core, session, words[kind].unsubscribed, NULL, kind, &reply);
	while (all && !hs_list_empty(subscriptions))
		leave(core, change++,
		      hs_list_entry(subscriptions->next, struct hs_subscription, of_session),
		      &reply);
	if (--request->parts_left == 0)
		finish(core, request);
}

void hs_pubsub_reset(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		     void (*then)(struct hs_core *core, struct hs_session *session,
				  struct hs_reply *reply))
{
	struct hs_request *request = hs_request_make(core, session, call);
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};
	struct hs_topic_change *change =
		begin_changes(core, request, session->subscriptions, finish);

	for (int kind = 0; kind < HS_TOPIC_KINDS; kind++) {
		struct hs_link *subscriptions =
			&hs_push_session(core, session)->subscriptions[kind];

		while (!hs_list_empty(subscriptions))
			leave(core, change++,
			      hs_list_entry(subscriptions->next, struct hs_subscription,
					    of_session),
			      &reply);
	}
	request->reply.len = 0; /* RESET confirms none of them */
	then(core, session, &reply);
	if (--request->parts_left == 0)
		finish(core, request);
}

/* ---- messages ---- */

int64_t hs_pubsub_deliver(struct hs_core *core, const struct hs_topic *topic,
			  struct hs_bytes channel, struct hs_bytes payload,
			  struct hs_request *publisher)
{
	struct hs_push_stage *push = hs_push_of(core);
	struct hs_reply message = {.out = &push->message, .resp = 2};
	int64_t receivers = 0;

	hs_reply_push(&message, topic->kind == HS_TOPIC_PATTERN ? 4 : 3);
	hs_reply_bulk_text(&message, words[topic->kind].message);
	if (topic->kind == HS_TOPIC_PATTERN)
		hs_reply_bulk(&message, topic->name);
	hs_reply_bulk(&message, channel);
	hs_reply_bulk(&message, payload);
	hs_list_each(const struct hs_subscription, confirmed, &topic->confirmed, of_topic)
		receivers += hs_core_message(core, confirmed->session, hs_buf_bytes(&push->message),
					     publisher);
	hs_buf_clear(&push->message, HS_IDLE_BUFFER_BYTES);
	hs_counter_add(&push->stats.messages, (uint64_t)receivers);
	return receivers;
}

/* The engine has ended the subscription by itself: the slot of a shard channel has moved. */
static void engine_unsubscribed(struct hs_core *core, struct hs_topic *topic)
{
	enum hs_topic_kind kind = topic->kind;

	if (topic->state == HS_TOPIC_SUBSCRIBING)
		topic->dropped = true;
	if (topic->state != HS_TOPIC_SUBSCRIBED)
		return;
	topic->refs++;
	while (!hs_list_empty(&topic->confirmed)) {
		struct hs_subscription *subscription =
			hs_list_entry(topic->confirmed.next, struct hs_subscription, of_topic);
		struct hs_session *session = subscription->session;
		struct hs_reply reply = {.out = &hs_push_of(core)->message, .resp = 2};

		end_subscription(core, subscription);
		reply_change(core, session, words[kind].unsubscribed, &topic->name, kind, &reply);
		hs_core_message(core, session, hs_buf_bytes(&hs_push_of(core)->message), NULL);
		hs_buf_clear(&hs_push_of(core)->message, HS_IDLE_BUFFER_BYTES);
	}
	topic->refs--;
	if (topic->refs > 0)
		/* for clients whose subscription is not confirmed yet */
		call_engine(core, topic, true);
	else
		release(core,
			topic); /* unsubscribe anyway: the event may be older than a newer subscription */
}

static struct hs_topic *topic_of(struct hs_core *core, enum hs_event_kind kind,
				 struct hs_bytes pattern, struct hs_bytes channel)
{
	switch (kind) {
	case HS_EVENT_MESSAGE:
		return hs_topic_find(topics_of(core), HS_TOPIC_CHANNEL, channel);
	case HS_EVENT_PATTERN_MESSAGE:
		return hs_topic_find(topics_of(core), HS_TOPIC_PATTERN, pattern);
	case HS_EVENT_SHARD_MESSAGE:
		return hs_topic_find(topics_of(core), HS_TOPIC_SHARD, channel);
	default:
		return NULL;
	}
}

void hs_pubsub_event(struct hs_core *core, const struct hs_event *event)
{
	struct hs_topic *topic;

	if (event->kind == HS_EVENT_UNSUBSCRIBED) {
		topic = topic_of(core, event->unsubscribed_kind, event->channel, event->channel);
		if (topic)
			engine_unsubscribed(core, topic);
		return;
	}
	topic = topic_of(core, event->kind, event->pattern, event->channel);
	if (topic)
		hs_pubsub_deliver(core, topic, event->channel, event->payload, NULL);
}
