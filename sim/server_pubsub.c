/* Channels, patterns, shard channels. A PUBLISH reaches subscribers of this node at once, and those of other nodes
 * over the bus; an SPUBLISH reaches the node's replicas or master only. */
#include "sim/server_internal.h"

#include "base/glob.h"
#include "base/mem.h"
#include "base/slot.h"

static const struct {
	const char *subscribe, *unsubscribe, *message;
} words[HS_SIM_TOPIC_KINDS] = {
	[HS_SIM_CHANNEL] = {"subscribe", "unsubscribe", "message"},
	[HS_SIM_PATTERN] = {"psubscribe", "punsubscribe", "pmessage"},
	[HS_SIM_SHARD] = {"ssubscribe", "sunsubscribe", "smessage"},
};

static struct hs_bytes name_of(const struct hs_sim_topic *topic)
{
	return (struct hs_bytes){topic->name, topic->len};
}

static struct hs_sim_topic *find(const struct hs_sim_server_conn *conn, enum hs_sim_topic_kind kind,
				 struct hs_bytes name)
{
	for (struct hs_link *link = conn->topics.next; link != &conn->topics; link = link->next) {
		struct hs_sim_topic *topic = hs_list_entry(link, struct hs_sim_topic, link);

		if (topic->kind == kind && hs_bytes_equal(name_of(topic), name))
			return topic;
	}
	return NULL;
}

/* The count in a confirmation: channels and patterns together, shard channels separately. */
static int64_t count(const struct hs_sim_server_conn *conn, enum hs_sim_topic_kind kind)
{
	return kind == HS_SIM_SHARD
		       ? conn->topics_count[HS_SIM_SHARD]
		       : conn->topics_count[HS_SIM_CHANNEL] + conn->topics_count[HS_SIM_PATTERN];
}

static void confirm(struct hs_sim_server_conn *conn, enum hs_sim_topic_kind kind, const char *word,
		    const struct hs_bytes *name)
{
	struct hs_reply reply = hs_sim_conn_reply(conn);

	hs_reply_push(&reply, 3);
	hs_reply_bulk_text(&reply, word);
	if (name)
		hs_reply_bulk(&reply, *name);
	else
		hs_reply_null(&reply);
	hs_reply_int(&reply, count(conn, kind));
	hs_sim_conn_wrote(conn);
}

static void subscribe(struct hs_sim_server_conn *conn, enum hs_sim_topic_kind kind,
		      struct hs_bytes name)
{
	struct hs_sim_topic *topic;

	if (!find(conn, kind, name)) {
		topic = hs_mem_alloc(sizeof *topic + name.len);
		topic->kind = kind;
		topic->slot = hs_slot_of(name);
		topic->len = name.len;
		if (name.len > 0)
			memcpy(topic->name, name.data, name.len);
		hs_list_append(&conn->topics, &topic->link);
		conn->topics_count[kind]++;
	}
	confirm(conn, kind, words[kind].subscribe, &name);
}

/* Sends the confirmation, and frees the topic. */
static void leave(struct hs_sim_server_conn *conn, struct hs_sim_topic *topic)
{
	struct hs_bytes name = name_of(topic);

	conn->topics_count[topic->kind]--;
	confirm(conn, topic->kind, words[topic->kind].unsubscribe, &name);
	hs_list_remove(&topic->link);
	hs_mem_free(&topic);
}

static void unsubscribe(struct hs_sim_server_conn *conn, enum hs_sim_topic_kind kind,
			struct hs_bytes name)
{
	struct hs_sim_topic *topic = find(conn, kind, name);

	if (topic)
		leave(conn, topic);
	else
		confirm(conn, kind, words[kind].unsubscribe, &name);
}

static void unsubscribe_all(struct hs_sim_server_conn *conn, enum hs_sim_topic_kind kind)
{
	bool any = false;

	for (struct hs_link *link = conn->topics.next, *next; link != &conn->topics; link = next) {
		struct hs_sim_topic *topic = hs_list_entry(link, struct hs_sim_topic, link);

		next = link->next;
		if (topic->kind != kind)
			continue;
		any = true;
		leave(conn, topic);
	}
	if (!any)
		confirm(conn, kind, words[kind].unsubscribe, NULL);
}

void hs_sim_pubsub_forget(struct hs_sim_server_conn *conn)
{
	while (!hs_list_empty(&conn->topics)) {
		struct hs_sim_topic *topic =
			hs_list_entry(conn->topics.next, struct hs_sim_topic, link);

		conn->topics_count[topic->kind]--;
		hs_list_remove(&topic->link);
		hs_mem_free(&topic);
	}
}

void hs_sim_pubsub_drop_slot(struct hs_sim_server *server, uint16_t first, uint16_t last)
{
	for (struct hs_link *at = server->clients.next; at != &server->clients; at = at->next) {
		struct hs_sim_server_conn *conn =
			hs_list_entry(at, struct hs_sim_server_conn, link);

		for (struct hs_link *link = conn->topics.next, *next; link != &conn->topics;
		     link = next) {
			struct hs_sim_topic *topic = hs_list_entry(link, struct hs_sim_topic, link);

			next = link->next;
			if (topic->kind == HS_SIM_SHARD && topic->slot >= first &&
			    topic->slot <= last)
				leave(conn, topic);
		}
	}
}

/* ---- messages ---- */

static bool matches_channel(const struct hs_sim_topic *topic, bool shard, struct hs_bytes channel)
{
	if (shard != (topic->kind == HS_SIM_SHARD))
		return false;
	return topic->kind == HS_SIM_PATTERN ? hs_glob_match(name_of(topic), channel, false)
					     : hs_bytes_equal(name_of(topic), channel);
}

/* Returns the number of receivers. A connection gets the message for its channel before those for its patterns. */
static int64_t deliver(struct hs_sim_server *server, bool shard, struct hs_bytes channel,
		       struct hs_bytes message)
{
	int64_t told = 0;

	for (int patterns = 0; patterns < 2; patterns++) {
		for (struct hs_link *at = server->clients.next; at != &server->clients;
		     at = at->next) {
			struct hs_sim_server_conn *conn =
				hs_list_entry(at, struct hs_sim_server_conn, link);

			for (struct hs_link *link = conn->topics.next; link != &conn->topics;
			     link = link->next) {
				const struct hs_sim_topic *topic =
					hs_list_entry(link, struct hs_sim_topic, link);
				struct hs_reply reply = hs_sim_conn_reply(conn);
				bool pattern = topic->kind == HS_SIM_PATTERN;

				if (pattern != (patterns == 1) ||
				    !matches_channel(topic, shard, channel))
					continue;
				hs_reply_push(&reply, pattern ? 4 : 3);
				hs_reply_bulk_text(&reply, words[topic->kind].message);
				if (pattern)
					hs_reply_bulk(&reply, name_of(topic));
				hs_reply_bulk(&reply, channel);
				hs_reply_bulk(&reply, message);
				hs_sim_conn_wrote(conn);
				told++;
			}
		}
	}
	return told;
}

/* A bus message to one node. */
struct hs_sim_bus_message {
	struct hs_link link;
	bool shard;
	size_t channel_len, message_len;
	char bytes[];
};

static void run_letter(void *context, void *target, uint64_t number)
{
	struct hs_sim_bus_message *bus_message = target;
	struct hs_sim_cluster *cluster = context;
	struct hs_sim_server *server = &cluster->servers[number];
	struct hs_bytes channel = {bus_message->bytes, bus_message->channel_len};
	struct hs_bytes message = {bus_message->bytes + bus_message->channel_len,
				   bus_message->message_len};

	if (hs_sim_server_runs(server) && !server->cut)
		deliver(server, bus_message->shard, channel, message);
	hs_list_remove(&bus_message->link);
	hs_mem_free(&bus_message);
}

static void post(struct hs_sim_server *from, struct hs_sim_server *to, bool shard,
		 struct hs_bytes channel, struct hs_bytes message)
{
	struct hs_sim_cluster *cluster = from->cluster;
	struct hs_sim_bus_message *bus_message =
		hs_mem_alloc(sizeof *bus_message + channel.len + message.len);
	uint64_t us_max = cluster->options.gossip_us_max;

	bus_message->shard = shard;
	bus_message->channel_len = channel.len;
	bus_message->message_len = message.len;
	memcpy(bus_message->bytes, channel.data, channel.len);
	memcpy(bus_message->bytes + channel.len, message.data, message.len);
	hs_list_append(&cluster->bus_messages, &bus_message->link);
	/* Messages from one node to another arrive in order. */
	uint64_t at_us =
		hs_sim_now_us(cluster) + (us_max > 0 ? hs_prng_below(&cluster->prng, us_max) : 0);

	if (at_us < from->posted_us[to->number])
		at_us = from->posted_us[to->number];
	from->posted_us[to->number] = at_us;
	hs_sim_events_plan(cluster->host.events, (struct hs_sim_event){
							 .at_us = at_us,
							 .run = run_letter,
							 .context = cluster,
							 .target = bus_message,
							 .number = to->number,
						 });
}

void hs_sim_bus_messages_deinit(struct hs_sim_cluster *cluster)
{
	while (!hs_list_empty(&cluster->bus_messages)) {
		struct hs_sim_bus_message *bus_message =
			hs_list_entry(cluster->bus_messages.next, struct hs_sim_bus_message, link);

		hs_list_remove(&bus_message->link);
		hs_mem_free(&bus_message);
	}
}

static uint8_t shard_of(const struct hs_sim_server *server, uint8_t node)
{
	uint8_t master = server->view.nodes[node].master;

	return master == HS_SIM_NO_NODE ? node : master;
}

static void publish(struct hs_sim_server_conn *conn, bool shard, struct hs_bytes channel,
		    struct hs_bytes message)
{
	struct hs_sim_server *server = conn->server;
	struct hs_sim_cluster *cluster = server->cluster;
	int64_t told = deliver(server, shard, channel, message);
	struct hs_reply reply = hs_sim_conn_reply(conn);

	hs_reply_int(&reply, told);
	for (uint8_t i = 0; cluster->options.cluster && i < cluster->count; i++) {
		if (i == server->number || !hs_sim_servers_talk(server, &cluster->servers[i]))
			continue;
		if (!shard || shard_of(server, i) == shard_of(server, server->number))
			post(server, &cluster->servers[i], shard, channel, message);
	}
}

/* ---- commands ---- */

static void subscribe_each(struct hs_sim_server_conn *conn, enum hs_sim_topic_kind kind,
			   size_t argc, const struct hs_bytes *argv)
{
	struct hs_reply reply = hs_sim_conn_reply(conn);

	if (kind == HS_SIM_SHARD && conn->server->in_exec) {
		hs_reply_error(&reply, "ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client");
		return;
	}
	for (size_t i = 1; i < argc; i++)
		subscribe(conn, kind, argv[i]);
}

static void unsubscribe_each(struct hs_sim_server_conn *conn, enum hs_sim_topic_kind kind,
			     size_t argc, const struct hs_bytes *argv)
{
	if (argc == 1)
		unsubscribe_all(conn, kind);
	for (size_t i = 1; i < argc; i++)
		unsubscribe(conn, kind, argv[i]);
}

bool hs_sim_pubsub_run(struct hs_sim_server_conn *conn, const struct hs_command *command,
		       size_t argc, const struct hs_bytes *argv)
{
	switch (command->id) {
	case HS_CMD_ID_SUBSCRIBE:
		subscribe_each(conn, HS_SIM_CHANNEL, argc, argv);
		return true;
	case HS_CMD_ID_PSUBSCRIBE:
		subscribe_each(conn, HS_SIM_PATTERN, argc, argv);
		return true;
	case HS_CMD_ID_SSUBSCRIBE:
		subscribe_each(conn, HS_SIM_SHARD, argc, argv);
		return true;
	case HS_CMD_ID_UNSUBSCRIBE:
		unsubscribe_each(conn, HS_SIM_CHANNEL, argc, argv);
		return true;
	case HS_CMD_ID_PUNSUBSCRIBE:
		unsubscribe_each(conn, HS_SIM_PATTERN, argc, argv);
		return true;
	case HS_CMD_ID_SUNSUBSCRIBE:
		unsubscribe_each(conn, HS_SIM_SHARD, argc, argv);
		return true;
	case HS_CMD_ID_PUBLISH:
	case HS_CMD_ID_SPUBLISH:
		publish(conn, command->id == HS_CMD_ID_SPUBLISH, argv[1], argv[2]);
		return true;
	default:
		return false;
	}
}
