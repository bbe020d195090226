/* A node as the scout knows it: a connection that is opened when something is wanted of it, and one
 * request under way. Whatever goes wrong ends the connection; who wanted something hears of it, and
 * wants it again when its time has come. */
#include "engine/redis/scout_internal.h"

#include "base/limits.h"
#include "base/mem.h"

#include <stdio.h>

/* Those of CONFIG are composed (scout_config.c). */
static const char *const requests[HS_ASKS] = {
	[HS_ASK_EPOCH] = "*2\r\n$7\r\nCLUSTER\r\n$4\r\nINFO\r\n",
	[HS_ASK_SLOTS] = "*2\r\n$7\r\nCLUSTER\r\n$5\r\nSLOTS\r\n",
	[HS_ASK_COMMAND] = "*1\r\n$7\r\nCOMMAND\r\n",
	[HS_ASK_STATE] = "*2\r\n$7\r\nCLUSTER\r\n$4\r\nINFO\r\n",
	[HS_ASK_COUNT] = "*2\r\n$7\r\nCOMMAND\r\n$5\r\nCOUNT\r\n",
	[HS_ASK_INFO] = "*1\r\n$4\r\nINFO\r\n",
	[HS_ASK_KEYS] = "*2\r\n$4\r\nINFO\r\n$8\r\nkeyspace\r\n",
	[HS_ASK_STATS] = ("*5\r\n$7\r\nCLUSTER\r\n$10\r\nSLOT-STATS\r\n"
			  "$10\r\nSLOTSRANGE\r\n$1\r\n0\r\n$5\r\n16383\r\n"),
};

struct hs_scout_node *hs_scout_node(struct hs_scout *scout, const struct hs_redis_address *address)
{
	struct hs_scout_node *node;

	for (struct hs_link *link = scout->nodes.next; link != &scout->nodes; link = link->next) {
		node = hs_list_entry(link, struct hs_scout_node, link);
		if (hs_redis_same_address(&node->address, address))
			return node;
	}
	node = hs_mem_zalloc(sizeof *node);
	node->scout = scout;
	node->address = *address;
	node->asked = HS_ASK_NOTHING;
	hs_address_text(address->host, address->port, node->text, sizeof node->text);
	hs_list_append(&scout->nodes, &node->link);
	scout->nodes_count++;
	return node;
}

void hs_scout_node_hang_up(struct hs_scout_node *node)
{
	if (node->conn)
		hs_conn_close(&node->conn);
	if (node->scout->learner == node)
		node->scout->learner = NULL;
	node->state = HS_SCOUT_DOWN;
	node->asked = HS_ASK_NOTHING;
	node->wants = 0;
	hs_buf_deinit(&node->out);
	hs_buf_deinit(&node->in);
	node->scan = (struct hs_answer_scan){0};
	hs_scout_config_forget(node);
	hs_scout_keys_forget(node);
}

void hs_scout_node_destroy(struct hs_scout_node **node)
{
	hs_scout_node_hang_up(*node);
	hs_list_remove(&(*node)->link);
	(*node)->scout->nodes_count--;
	hs_mem_free(node);
}

/* ---- asking ---- */

static bool wants(const struct hs_scout_node *node, enum hs_scout_ask ask)
{
	return node->wants & 1u << ask;
}

static void ask_next(struct hs_scout_node *node)
{
	enum hs_scout_ask ask = 0;

	if (node->state != HS_SCOUT_UP || node->asked != HS_ASK_NOTHING || node->wants == 0)
		return;
	while (!wants(node, ask))
		ask++;
	node->wants &= ~(1u << ask);
	node->asked = ask;
	node->asked_ms = hs_scout_now_ms(node->scout);
	if (requests[ask])
		hs_buf_append(&node->out, requests[ask], strlen(requests[ask]));
	else
		hs_scout_config_request(node, ask, &node->out);
	hs_conn_send(node->conn, &node->out, &node->sent);
}

static void failed(struct hs_scout_node *node, const char *why)
{
	bool looked = node->asked == HS_ASK_EPOCH || node->asked == HS_ASK_SLOTS ||
		      wants(node, HS_ASK_EPOCH) || wants(node, HS_ASK_SLOTS);

	node->lost |= node->met;
	hs_scout_config_failed(node, why);
	hs_scout_node_hang_up(node);
	hs_scout_watch_down(node, why);
	if (looked)
		hs_scout_look_failed(node, why);
}

static void answered(struct hs_scout_node *node, enum hs_scout_ask ask, struct hs_bytes reply)
{
	switch (ask) {
	case HS_ASK_EPOCH:
		hs_scout_look_epoch(node, reply);
		break;
	case HS_ASK_SLOTS:
		hs_scout_look_slots(node, reply);
		break;
	case HS_ASK_COMMAND:
		hs_scout_watch_command(node, reply);
		break;
	case HS_ASK_COUNT:
		hs_scout_watch_count(node, reply);
		break;
	case HS_ASK_STATE:
		hs_scout_state_told(node, reply);
		break;
	case HS_ASK_INFO:
		hs_scout_watch_info(node, reply);
		break;
	case HS_ASK_KEYS:
		hs_scout_keys_told(node, reply);
		break;
	case HS_ASK_SET:
	case HS_ASK_GET:
	case HS_ASK_CHECK:
	case HS_ASK_KEEP:
		hs_scout_config_told(node, ask, reply);
		break;
	case HS_ASK_STATS:
		hs_scout_stats_told(node, reply);
		break;
	case HS_ASK_NOTHING:
		break;
	}
}

/* ---- what the connection says ---- */

static void on_up(void *context, int64_t server_id)
{
	struct hs_scout_node *node = context;

	(void)server_id;
	node->state = HS_SCOUT_UP;
	node->sent = 0;
	hs_scout_watch_up(node);
	hs_scout_config_up(node);
	node->met = true;
	node->lost = false;
	ask_next(node);
}

static void on_down(void *context, const char *why)
{
	struct hs_scout_node *node = context;

	node->conn = NULL; /* it has gone by itself */
	failed(node, why);
}

static void on_receive(void *context, const char *data, size_t len)
{
	struct hs_scout_node *node = context;

	hs_buf_append(&node->in, data, len);
	while (node->in.len > 0) {
		int64_t whole = hs_answer_scan(&node->scan, node->in.data, node->in.len);
		enum hs_scout_ask ask = node->asked;
		struct hs_buf reply = {0};

		if (whole < 0 || ask == HS_ASK_NOTHING) {
			failed(node, "it answers with something that is no reply");
			return;
		}
		if (whole == 0 && node->in.len > HS_SCOUT_REPLY_BYTES_MAX) {
			failed(node, "its reply is too long");
			return;
		}
		if (whole == 0)
			return;
		/* One request, one reply: what is behind it is looked at in the next round. */
		hs_buf_swap(&reply, &node->in);
		hs_buf_append(&node->in, reply.data + whole, reply.len - (size_t)whole);
		node->asked = HS_ASK_NOTHING;
		node->used_ms = hs_scout_now_ms(node->scout);
		answered(node, ask, (struct hs_bytes){reply.data, (size_t)whole});
		hs_buf_deinit(&reply);
		ask_next(node);
	}
}

static const struct hs_conn_calls calls = {
	.up = on_up,
	.down = on_down,
	.receive = on_receive,
};

void hs_scout_node_want(struct hs_scout_node *node, enum hs_scout_ask ask)
{
	struct hs_scout *scout = node->scout;
	struct hs_conn_options options = {
		.loop = &scout->loop,
		.identity = &scout->options.identity,
		.host = node->address.host,
		.port = node->address.port,
		.resp = 2,
		.expected_id = "", /* whoever is there: its answer tells which cluster it is of */
		.calls = &calls,
		.context = node,
		.buffer = scout->buffer,
	};

	if (node->asked == ask)
		return;
	node->wants |= 1u << ask;
	if (node->state == HS_SCOUT_DOWN) {
		node->state = HS_SCOUT_OPENING;
		node->conn = hs_conn_open(&options);
	} else {
		ask_next(node);
	}
}

void hs_scout_node_tick(struct hs_scout_node *node)
{
	uint64_t now_ms = hs_scout_now_ms(node->scout);
	bool busy = node->state == HS_SCOUT_OPENING || node->asked != HS_ASK_NOTHING ||
		    node->wants != 0;

	if (node->asked != HS_ASK_NOTHING && now_ms - node->asked_ms > HS_SCOUT_REPLY_MS_MAX) {
		failed(node, "it does not answer in time");
	} else if (!node->listed && !node->seed && !node->scout->look.running) {
		hs_scout_node_destroy(&node);
	} else if (!busy && node->state == HS_SCOUT_UP && !node->master &&
		   now_ms - node->used_ms > HS_SCOUT_IDLE_MS &&
		   !hs_scout_config_any(node->scout)) { /* else it is seen to be started anew */
		hs_scout_node_hang_up(node);
	}
}
