/* Fuzz target: whole connections in the simulated world (sim/world.h), whatever bytes clients send, in whatever
 * pieces, and however they connect and leave. Checks: everything that a client receives is a sequence of whole
 * replies, and there are at most 2 * (number of words sent) + 1 of them, because SUBSCRIBE and UNSUBSCRIBE reply once
 * for each channel. Published messages are not counted. The bytes lie in larger buffers here, so this target does not
 * find a read beyond the end; the parsers' own targets do.
 *
 * Input: the first byte chooses the world. If its top bit is clear, the rest is what one client sends, cut anywhere.
 * If it is set, the rest is a script for three clients:
 *
 *     byte   low three bits: the action; the next two: the client
 *       0-3  send as many bytes as the next byte says
 *       4    run a few events
 *       5    disconnect, or connect again
 *       6    stop reading, or read again
 *       7    let time pass
 *
 * The head of fuzz_request.c says how targets run and how to replay a crash. */
#include "base/check.h"
#include "base/mem.h"
#include "sim/world.h"
#include "wire/parse_reply.h"
#include "wire/request.h"

#include <stdint.h>

enum { CLIENTS = 3, STORE_BYTES_MAX = 1 << 18, OUTPUT_BYTES_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A client and what it has sent. */
struct client_state {
	struct hs_sim_client *client;
	struct hs_buf sent;
	size_t replies;
};

static size_t count_replies_max(const struct hs_buf *sent)
{
	struct hs_wire_request request;
	size_t at = 0, count = 0;
	int64_t used = 1;

	hs_wire_request_init(&request);
	while (at < sent->len && used > 0) {
		used = hs_wire_request_parse(&request, sent->data + at, sent->len - at, true);
		if (used > 0) {
			at += (size_t)used;
			count += request.argc;
		}
	}
	hs_wire_request_deinit(&request);
	/* A channel is confirmed when it is named, and once more by UNSUBSCRIBE without a name. A protocol error is
	 * answered too. */
	return 2 * count + 1;
}

static void on_reply(void *context, struct hs_sim_client *client, struct hs_bytes reply)
{
	struct client_state *client_state = context;
	size_t head = sizeof "*3\r\n$7\r\n" - 1;

	(void)client;
	/* message, pmessage, smessage */
	if (reply.len > head + 8 && memmem(reply.data + head, 8, "message", 7))
		return;
	client_state->replies++;
}

static void connect(struct hs_sim_world *world, struct client_state *client_state, uint32_t number)
{
	client_state->client = hs_sim_client_connect(world, number % world->options.workers);
	client_state->client->on_reply = on_reply;
	client_state->client->context = client_state;
	client_state->replies = 0;
	client_state->sent.len = 0;
}

/* Checks a client after all events have run. */
static void check_replies(struct client_state *client_state)
{
	const struct hs_sim_client *client = client_state->client;

	hs_check(!client->broken);
	hs_check(client_state->replies <= count_replies_max(&client_state->sent));
	/* An incomplete reply is allowed only if the connection was cut. */
	hs_check(client->received.len == 0 || client->cut);
}

static void hang_up(struct client_state *client_state)
{
	client_state->client->on_reply = NULL;
	hs_sim_client_disconnect(client_state->client);
}

static void say(struct client_state *client_state, const uint8_t *data, size_t len)
{
	struct hs_bytes bytes = {(const char *)data, len};

	hs_check(client_state->client);
	if (client_state->client->session)
		hs_buf_append_bytes(&client_state->sent, bytes);
	hs_sim_client_send(client_state->client, bytes);
}

static void play(struct hs_sim_world *world, struct client_state *clients, const uint8_t *data,
		 size_t size)
{
	size_t at = 0;

	while (at < size) {
		uint8_t what = data[at++];
		struct client_state *client_state = &clients[(what >> 3) % CLIENTS];
		size_t len = at < size ? data[at] : 0;

		hs_check(client_state->client);
		switch (what & 7) {
		case 4:
			for (size_t i = 0; i <= what >> 5; i++)
				hs_sim_world_step(world);
			break;
		case 5:
			if (client_state->client->session)
				hang_up(client_state);
			else
				connect(world, client_state, what >> 5);
			break;
		case 6:
			hs_sim_client_pause_reading(client_state->client,
						    !client_state->client->reading_paused);
			break;
		case 7:
			hs_sim_world_pass(world, (uint64_t)1000 << (what >> 4));
			break;
		default:
			at += at < size;
			len = len < size - at ? len : size - at;
			say(client_state, data + at, len);
			at += len;
		}
	}
}

static void send_in_pieces(struct hs_sim_world *world, struct client_state *client_state,
			   const uint8_t *data, size_t size)
{
	struct hs_prng prng;
	size_t at = 0;

	hs_prng_init(&prng, size);
	while (at < size) {
		size_t len = 1 + hs_prng_below(&prng, size - at);

		say(client_state, data + at, len);
		at += len;
		if (hs_prng_below(&prng, 2) == 0)
			hs_sim_world_step(world);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct client_state clients[CLIENTS] = {0};
	struct hs_sim_world *world;
	struct hs_acl *users;

	if (size < 1)
		return 0;
	options.engine.reads_at_once = data[0] & 1;
	options.engine.partitions = data[0] & 2 ? 3 : 1;
	options.engine.refuses = data[0] & 32;
	options.engine.bytes_max = STORE_BYTES_MAX;
	options.workers = data[0] & 4 ? 2 : 1;
	users = hs_acl_create_open(data[0] & 8 ? "secret" : "");
	options.core.acl = users;
	options.core.slowlog_us = data[0] & 16 ? 0 : -1;
	options.core.output_bytes_max = OUTPUT_BYTES_MAX;
	world = hs_sim_world_create(&options);
	hs_acl_unref(&users);
	for (uint32_t i = 0; i < CLIENTS; i++)
		connect(world, &clients[i], i);
	if (data[0] & 128)
		play(world, clients, data + 1, size - 1);
	else
		send_in_pieces(world, &clients[0], data + 1, size - 1);
	for (uint32_t i = 0; i < CLIENTS; i++)
		hs_sim_client_pause_reading(clients[i].client, false);
	hs_sim_world_settle(world);
	for (uint32_t i = 0; i < CLIENTS; i++) {
		if (clients[i].client->on_reply)
			check_replies(&clients[i]);
		clients[i].client->on_reply = NULL;
	}
	hs_sim_world_destroy(&world);
	for (uint32_t i = 0; i < CLIENTS; i++)
		hs_buf_deinit(&clients[i].sent);
	return 0;
}
