#include "tests/lib/nodes.h"

#include "base/check.h"
#include "base/slot.h"

#include <ctype.h>
#include <stdio.h>

static void on_send(void *context, void *io, struct hs_bytes bytes)
{
	struct nodes_client *client = io;

	(void)context;
	hs_buf_append_bytes(&client->received, bytes);
}

static void on_closed(void *context, void *io)
{
	struct nodes_client *client = io;

	(void)context;
	client->conn = NULL;
	client->closed = true;
}

static void on_changed(void *context, const struct hs_sim_change *change)
{
	static const char *const causes[] = {"set", "expired", "evicted", "lost"};
	struct nodes *nodes = context;
	struct hs_bytes key = change->key ? *change->key : HS_LIT("*");

	hs_buf_printf(&nodes->changes, "%s%s:%.*s ", change->void_already ? "void-" : "",
		      causes[change->cause], (int)key.len, key.data);
	if (nodes->on_changed)
		nodes->on_changed(nodes, change);
}

static void on_ran(void *context, const struct hs_sim_ran *ran)
{
	struct nodes *nodes = context;

	for (size_t i = 0; i < ran->argv[0].len; i++) {
		char c = (char)tolower((unsigned char)ran->argv[0].data[i]);

		hs_buf_append(&nodes->ran, &c, 1);
	}
	hs_buf_printf(&nodes->ran, "%s ", ran->error ? "!" : "");
}

void nodes_init(struct nodes *nodes, const struct hs_sim_cluster_options *options)
{
	*nodes = (struct nodes){.now = {.mono_us = 1000000, .wall_us = 1700000000000000}};
	for (int i = 0; i < NODES_CLIENTS; i++)
		nodes->clients[i].nodes = nodes;
	nodes->cluster = hs_sim_cluster_create(options, &(struct hs_sim_cluster_host){
								.events = &nodes->events,
								.now = &nodes->now,
								.send = on_send,
								.closed = on_closed,
								.changed = on_changed,
								.ran = on_ran,
								.context = nodes,
							});
}

void nodes_deinit(struct nodes *nodes)
{
	hs_sim_cluster_destroy(&nodes->cluster);
	hs_sim_events_deinit(&nodes->events);
	for (int i = 0; i < NODES_CLIENTS; i++)
		hs_buf_deinit(&nodes->clients[i].received);
	hs_buf_deinit(&nodes->changes);
	hs_buf_deinit(&nodes->ran);
}

static void run(struct nodes *nodes)
{
	struct hs_sim_event event;

	hs_check(hs_sim_events_take(&nodes->events, &event));
	if (event.at_us > nodes->now.mono_us) {
		nodes->now.wall_us += (int64_t)(event.at_us - nodes->now.mono_us);
		nodes->now.mono_us = event.at_us;
	}
	event.run(event.context, event.target, event.number);
}

void nodes_settle(struct nodes *nodes)
{
	while (hs_sim_events_next_us(&nodes->events) != UINT64_MAX)
		run(nodes);
}

void nodes_pass(struct nodes *nodes, uint64_t us)
{
	uint64_t until_us = nodes->now.mono_us + us;

	while (hs_sim_events_next_us(&nodes->events) <= until_us)
		run(nodes);
	nodes->now.wall_us += (int64_t)(until_us - nodes->now.mono_us);
	nodes->now.mono_us = until_us;
}

static struct nodes_client *client_of(struct nodes *nodes, char name)
{
	hs_check(name >= 'a' && name <= 'z');
	return &nodes->clients[name - 'a'];
}

void nodes_connect(struct nodes *nodes, char name, uint8_t node)
{
	struct nodes_client *client = client_of(nodes, name);

	if (client->conn)
		hs_sim_server_disconnect(client->conn);
	client->closed = false;
	client->received.len = 0;
	client->conn = hs_sim_cluster_connect(nodes->cluster, node, client);
}

void nodes_send(struct nodes *nodes, char name, const char *words)
{
	struct hs_buf bytes = {0}, request = {0};
	size_t argc = 0;

	for (; *words; argc++) {
		size_t len = strcspn(words, " ");

		hs_buf_printf(&request, "$%zu\r\n%.*s\r\n", len, (int)len, words);
		words += len + (words[len] == ' ');
	}
	hs_buf_printf(&bytes, "*%zu\r\n", argc);
	hs_buf_append_bytes(&bytes, hs_buf_bytes(&request));
	hs_check(client_of(nodes, name)->conn);
	hs_sim_server_receive(client_of(nodes, name)->conn, bytes.data, bytes.len);
	hs_buf_deinit(&bytes);
	hs_buf_deinit(&request);
}

const char *nodes_received(struct nodes *nodes, char name)
{
	struct hs_buf *received = &client_of(nodes, name)->received;
	size_t kept = 0;

	hs_buf_append(received, "", 1);
	for (size_t i = 0; i < received->len; i++) {
		if (received->data[i] != '\r')
			received->data[kept++] =
				received->data[i] == '\n' ? '|' : received->data[i];
	}
	received->len = 0;
	return received->data;
}

const char *nodes_ask(struct nodes *nodes, char name, const char *words)
{
	nodes_send(nodes, name, words);
	nodes_settle(nodes);
	return nodes_received(nodes, name);
}

const char *nodes_key(const struct nodes *nodes, uint8_t node, int number)
{
	static _Thread_local char keys[8][16];
	static _Thread_local unsigned turn;
	char *key = keys[turn++ % 8];

	for (int i = 0;; i++) {
		snprintf(key, sizeof keys[0], "k%d", i);
		if (hs_sim_cluster_owner(nodes->cluster, hs_slot_of(hs_bytes_of(key))) == node &&
		    number-- == 0)
			return key;
	}
}
