/* PUBLISH, SPUBLISH and PUBSUB: one request with a part for every worker.
 *
 * Embedded engine: the workers deliver the message, each to its own clients, and the sum of receivers is the
 * reply. In front of servers: a server publishes, and its messages reach the workers later. The server counts
 * heatsink as one subscriber, so the reply is the server's count, minus heatsink's subscriptions that match,
 * plus heatsink's clients.
 *
 *     PUBLISH a x ──┬── engine: 3 ─────────────────────┐
 *                   ├── worker 0: 2, subscribed to a   ├── 3 - 1 (a) - 1 (a*) + 2 + 5 = 8
 *                   └── worker 1: 5, a and a* ─────────┘
 *
 * Not known: how many clients of a Cluster's other nodes received it (a node counts only its own clients, and
 * PUBLISH asks one node); how many distinct patterns several nodes have (NUMPAT adds them up); and whether the
 * server counted a subscription of heatsink's that is just being made or ended. No reply is below the number of
 * heatsink's own clients. */
#include "push/push.h"

#include "base/glob.h"
#include "base/mem.h"
#include "base/slot.h"
#include "core/dispatch.h"
#include "core/event.h"
#include "core/unknown.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"

#include <stdlib.h>

/* ---- a worker's part: numbers and names, as bytes for the requesting worker ---- */

static void put_number(struct hs_buf *out, int64_t number)
{
	hs_buf_append(out, &number, sizeof number);
}

static int64_t take_number(struct hs_bytes *rest)
{
	int64_t number;

	memcpy(&number, rest->data, sizeof number);
	rest->data += sizeof number;
	rest->len -= sizeof number;
	return number;
}

static void put_name(struct hs_buf *out, struct hs_bytes name)
{
	put_number(out, (int64_t)name.len);
	hs_buf_append_bytes(out, name);
}

static struct hs_bytes take_name(struct hs_bytes *rest)
{
	struct hs_bytes name = {NULL, (size_t)take_number(rest)};

	name.data = rest->data;
	rest->data += name.len;
	rest->len -= name.len;
	return name;
}

/* Whether the engine has a subscription to the topic, as far as this worker knows. */
static bool subscriptions(const struct hs_topic *topic)
{
	return topic->state == HS_TOPIC_SUBSCRIBED || topic->state == HS_TOPIC_UNSUBSCRIBING;
}

/* Writes the number of receivers, whether heatsink is subscribed to the channel, and heatsink's patterns that
 * match. */
static void publish_part(struct hs_core *core, struct hs_op *op)
{
	enum hs_topic_kind kind = op->command->topic;
	struct hs_bytes channel = op->argv[1], payload = op->argv[2];
	struct hs_request *publisher = op->worker == core->world.worker ? op->owner : NULL;
	bool deliver = !core->world.shared_connections;
	struct hs_topic *topic = hs_topic_find(&hs_push_of(core)->topics, kind, channel);
	struct hs_link *patterns = &hs_push_of(core)->topics.of_kind[HS_TOPIC_PATTERN];
	int64_t receivers = topic ? topic->confirmed_count : 0;

	if (topic && deliver)
		receivers = hs_pubsub_deliver(core, topic, channel, payload, publisher);
	put_number(op->out, 0); /* placeholder: set below */
	put_number(op->out, topic && subscriptions(topic));
	for (struct hs_link *link = patterns->next; kind == HS_TOPIC_CHANNEL && link != patterns;
	     link = link->next) {
		topic = hs_list_entry(link, struct hs_topic, same_kind);
		if (!hs_glob_match(topic->name, channel, false))
			continue;
		if (deliver)
			receivers += hs_pubsub_deliver(core, topic, channel, payload, publisher);
		else
			receivers += topic->confirmed_count;
		if (!deliver && subscriptions(topic))
			put_name(op->out, topic->name);
	}
	memcpy(op->out->data, &receivers, sizeof receivers);
}

/* Writes the names of the topics that clients are subscribed to. */
static void names_part(struct hs_core *core, struct hs_op *op)
{
	enum hs_topic_kind kind = op->command->topic;
	struct hs_link *all = &hs_push_of(core)->topics.of_kind[kind];

	hs_list_each(const struct hs_topic, topic, all, same_kind) {
		if (topic->confirmed_count > 0 &&
		    (op->argc < 3 || hs_glob_match(op->argv[2], topic->name, false)))
			put_name(op->out, topic->name);
	}
}

static void numbers_part(struct hs_core *core, struct hs_op *op)
{
	enum hs_topic_kind kind = op->command->topic;

	for (size_t i = 2; i < op->argc; i++) {
		const struct hs_topic *topic =
			hs_topic_find(&hs_push_of(core)->topics, kind, op->argv[i]);

		put_number(op->out, topic ? topic->confirmed_count : 0);
		put_number(op->out, topic && subscriptions(topic));
	}
}

/* ---- merging the parts ---- */

/* The engine's parts come first, then one part per worker. */
static uint32_t engine_parts(const struct hs_core *core, const struct hs_request *request)
{
	return request->parts_count - core->world.workers;
}

/* Passes an error of the engine on to the client. */
static bool pass_failure(const struct hs_core *core, const struct hs_request *request,
			 struct hs_reply *reply)
{
	for (uint32_t i = 0; i < engine_parts(core, request); i++) {
		const struct hs_buf *out = &request->parts[i].out;

		if (out->len == 0 || out->data[0] == '-') {
			hs_buf_append_bytes(reply->out, hs_buf_bytes(out));
			return true;
		}
	}
	return false;
}

/* Distinct names from all workers and the engine. */
struct names {
	struct hs_bytes *all;
	size_t count, cap;
};

static void add_name(struct names *names, struct hs_bytes name)
{
	if (names->count == names->cap) {
		names->cap = names->cap ? names->cap * 2 : 16;
		names->all = hs_mem_realloc(names->all, names->cap * sizeof *names->all);
	}
	names->all[names->count++] = name;
}

static int compare_names(const void *a, const void *b)
{
	const struct hs_bytes *one = a, *two = b;

	return hs_bytes_compare(*one, *two);
}

static void unite(struct names *names)
{
	size_t kept = 0;

	if (names->count > 0)
		qsort(names->all, names->count, sizeof *names->all, compare_names);
	for (size_t i = 0; i < names->count; i++) {
		if (kept == 0 || !hs_bytes_equal(names->all[kept - 1], names->all[i]))
			names->all[kept++] = names->all[i];
	}
	names->count = kept;
}

/* Takes the next element of an array that the engine returned; false at the end. */
static bool next_element(struct hs_bytes *rest, struct hs_parsed_reply *element)
{
	int64_t len = rest->len > 0 ? hs_parse_reply_head(element, rest->data, rest->len) : 0;

	if (len <= 0)
		return false;
	rest->data += len;
	rest->len -= (size_t)len;
	return true;
}

static struct hs_bytes elements_of(const struct hs_part *part)
{
	struct hs_bytes rest = hs_buf_bytes(&part->out);
	struct hs_parsed_reply head;

	return next_element(&rest, &head) && head.type == HS_PARSED_ARRAY
		       ? rest
		       : (struct hs_bytes){NULL, 0};
}

static int64_t number_of(const struct hs_part *part)
{
	struct hs_bytes rest = hs_buf_bytes(&part->out);
	struct hs_parsed_reply answer;

	return next_element(&rest, &answer) && answer.type == HS_PARSED_INT ? answer.integer : 0;
}

static int64_t at_least_0(int64_t number)
{
	return number > 0 ? number : 0;
}

static void merge_publish(const struct hs_core *core, struct hs_request *request,
			  struct hs_reply *reply)
{
	uint32_t engine = engine_parts(core, request);
	struct names patterns = {0};
	int64_t receivers = 0, ours = 0;

	if (pass_failure(core, request, reply))
		return;
	for (uint32_t i = engine; i < request->parts_count; i++) {
		struct hs_bytes rest = hs_buf_bytes(&request->parts[i].out);

		receivers += take_number(&rest);
		ours = take_number(&rest) ? 1 : ours;
		while (rest.len > 0)
			add_name(&patterns, take_name(&rest));
	}
	unite(&patterns);
	ours += (int64_t)patterns.count;
	if (engine > 0)
		receivers += at_least_0(number_of(&request->parts[0]) - ours);
	hs_reply_int(reply, receivers);
	hs_mem_free(&patterns.all);
}

static bool check_channels(const struct hs_core *core, const struct hs_call *call,
			   struct hs_reply *reply)
{
	(void)core;
	if (call->argc <= 3)
		return true;
	hs_reply_errorf(reply,
			"ERR unknown subcommand or wrong number of arguments for '%.*s'. "
			"Try PUBSUB HELP.",
			(int)(call->argv[1].len < 128 ? call->argv[1].len : 128),
			call->argv[1].data);
	return false;
}

static void gather_names(const struct hs_core *core, const struct hs_request *request,
			 struct names *names)
{
	uint32_t engine = engine_parts(core, request);

	for (uint32_t i = 0; i < engine; i++) {
		struct hs_bytes rest = elements_of(&request->parts[i]);
		struct hs_parsed_reply element;

		while (next_element(&rest, &element))
			add_name(names, element.text);
	}
	for (uint32_t i = engine; i < request->parts_count; i++) {
		struct hs_bytes rest = hs_buf_bytes(&request->parts[i].out);

		while (rest.len > 0)
			add_name(names, take_name(&rest));
	}
	unite(names);
}

static void merge_channels(const struct hs_core *core, struct hs_request *request,
			   struct hs_reply *reply)
{
	struct names names = {0};

	if (pass_failure(core, request, reply))
		return;
	gather_names(core, request, &names);
	hs_reply_array(reply, names.count);
	for (size_t i = 0; i < names.count; i++)
		hs_reply_bulk(reply, names.all[i]);
	hs_mem_free(&names.all);
}

/* The server counts each pattern once, and heatsink's are among them. */
static void merge_numpat(const struct hs_core *core, struct hs_request *request,
			 struct hs_reply *reply)
{
	struct names names = {0};
	int64_t patterns = 0;

	if (pass_failure(core, request, reply))
		return;
	gather_names(core, request, &names);
	for (uint32_t i = 0; i < engine_parts(core, request); i++)
		patterns += number_of(&request->parts[i]);
	/* A pattern that may match key events is subscribed at every node; it counts once. */
	for (size_t i = 0; i < names.count && engine_parts(core, request) > 1; i++) {
		if (hs_event_may_be_key_event(names.all[i]))
			patterns -= engine_parts(core, request) - 1;
	}
	if (patterns < (int64_t)names.count)
		patterns = (int64_t)names.count;
	hs_reply_int(reply, patterns);
	hs_mem_free(&names.all);
}

static void merge_numsub(const struct hs_core *core, struct hs_request *request,
			 struct hs_reply *reply)
{
	uint32_t engine = engine_parts(core, request);
	struct hs_bytes *rests;

	if (pass_failure(core, request, reply))
		return;
	rests = hs_mem_alloc(request->parts_count * sizeof *rests);
	for (uint32_t i = 0; i < request->parts_count; i++)
		rests[i] = i < engine ? elements_of(&request->parts[i])
				      : hs_buf_bytes(&request->parts[i].out);
	hs_reply_array(reply, 2 * (request->call.argc - 2));
	for (size_t arg = 2; arg < request->call.argc; arg++) {
		int64_t theirs = 0, listeners = 0, ours = 0;

		for (uint32_t i = 0; i < engine; i++) {
			struct hs_parsed_reply element;

			if (next_element(&rests[i], &element) && next_element(&rests[i], &element))
				theirs += element.integer;
		}
		for (uint32_t i = engine; i < request->parts_count; i++) {
			listeners += take_number(&rests[i]);
			ours = take_number(&rests[i]) ? 1 : ours;
		}
		if (ours > 0 && engine > 1 && hs_event_is_key_event(request->call.argv[arg]))
			ours = engine; /* heatsink has a subscription at each node */
		hs_reply_bulk(reply, request->call.argv[arg]);
		hs_reply_int(reply, at_least_0(theirs - ours) + listeners);
	}
	hs_mem_release(rests);
}

const struct hs_workers_run hs_workers_publish = {.part = publish_part, .merge = merge_publish};
const struct hs_workers_run hs_workers_pubsub_channels = {
	.check = check_channels, .part = names_part, .merge = merge_channels};
const struct hs_workers_run hs_workers_pubsub_numpat = {.part = names_part, .merge = merge_numpat};
const struct hs_workers_run hs_workers_pubsub_numsub = {.part = numbers_part,
							.merge = merge_numsub};

/* ---- the request ---- */

/* PUBLISH and SPUBLISH, which one partition runs. */
static bool publishes(const struct hs_command *command)
{
	return command->place == HS_PLACE_ANY || command->place == HS_PLACE_PARTITION;
}

/* A subscriber that gets the message must find the publisher's earlier writes. On another partition they must
 * have been answered first; on the same one the server runs them in order. */
bool hs_publish_waits(const struct hs_core *core, const struct hs_session *session,
		      struct hs_call *call)
{
	bool apart =
		!core->world.shared_connections || hs_core_partitions(core) > HS_PARTITION_BUCKETS;
	uint16_t to;

	if (!publishes(call->command))
		return false;
	to = hs_call_slots(call) == HS_CALL_SLOTS_NONE ? 0 : hs_core_partition(core, call->slot);
	for (uint32_t i = 0; i < HS_PARTITION_BUCKETS; i++) {
		if (session->in_bucket[i] > 0 && (apart || i != to % HS_PARTITION_BUCKETS))
			return true;
	}
	return false;
}

static bool check(const struct hs_core *core, const struct hs_call *call, struct hs_reply *reply)
{
	const struct hs_workers_run *run = core->world.commands->workers[call->command->id];
	char text[HS_ENGINE_UNAVAILABLE_BYTES];

	if (run->check && !run->check(core, call, reply))
		return false;
	if (!core->world.shared_connections || hs_core_partitions(core) > 0)
		return true;
	hs_reply_error(reply, hs_engine_unavailable(core, text));
	return false;
}

static void fill_engine_part(struct hs_core *core, struct hs_request *request, uint32_t index,
			     struct hs_bytes counted)
{
	struct hs_part *part = &request->parts[index];
	uint16_t slot = hs_call_slots(&request->call) == HS_CALL_SLOTS_NONE ? HS_SLOT_NONE
									    : request->call.slot;

	part->op = (struct hs_op){
		.kind = HS_OP_COMMAND,
		.resp = request->session->resp,
		.command = request->call.command,
		.slot = slot,
		.partition = slot == HS_SLOT_NONE ? (uint16_t)index : hs_core_partition(core, slot),
		.argv = request->call.argv,
		.argc = request->call.argc,
		.raw = request->call.raw,
	};
	if (counted.len == 0)
		return;
	hs_buf_append_bytes(&part->out, counted);
	part->answered = true;
	request->parts_left--;
}

/* `counted`: the engine's reply to the command inside the transaction `exec`; empty: none. */
void hs_publish_start(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		      const struct hs_call *call, struct hs_bytes counted)
{
	struct hs_request *request = hs_request_make(core, session, call);
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};
	uint32_t engine = 0, parts;

	request->exec = exec;
	if (!check(core, call, &reply)) {
		hs_dispatch_finish(core, request);
		return;
	}
	if (core->world.shared_connections)
		engine = publishes(call->command) ? 1 : hs_core_partitions(core);
	parts = engine + core->world.workers;
	hs_request_split(request, parts);
	for (uint32_t i = 0; i < engine; i++)
		fill_engine_part(core, request, i, counted);
	for (uint32_t i = engine; i < parts; i++) {
		request->parts[i].op = (struct hs_op){
			.kind = HS_OP_PEER,
			.command = call->command,
			.partition = (uint16_t)(i - engine),
			.argv = request->call.argv,
			.argc = call->argc,
		};
	}
	/* The last answer may finish and free the request. */
	for (uint32_t i = counted.len > 0 ? engine : 0; i < parts; i++)
		hs_dispatch_submit(core, request, i);
}
