/* Writes the replies to CONFIG GET and CONFIG SET when every node has answered or failed (monitor_config.c). */
#include "engine/redis/monitor_internal.h"

#include "base/glob.h"
#include "wire/reply.h"

#include <stdio.h>

enum { ERROR_BYTES_MAX = 1024 };

/* ---- CONFIG GET ---- */

/* The first node from `node` on that reported the option; NULL: none. */
static struct hs_monitor_node *teller(struct hs_monitor_node *node, size_t option)
{
	while (node && (node->config_state != HS_CONFIG_DONE || !node->config[option].data))
		node = node->next;
	return node;
}

/* Looks for the option's value at all nodes. NULL: `value` is the value. Otherwise the reason why the option has
 * no value, written to `text`; "": no server has the option. */
static const char *unknown(struct hs_monitor *monitor, size_t option, struct hs_bytes *value,
			   char *text, size_t text_size)
{
	const char *name = hs_server_options[option].name;
	struct hs_monitor_node *first = teller(monitor->nodes, option), *other = first;
	struct hs_monitor_node *node = monitor->nodes;

	text[0] = '\0';
	if (!first) {
		while (node && node->config_state != HS_CONFIG_FAILED)
			node = node->next;
		if (node)
			snprintf(text, text_size, "ERR the value of '%s' is unknown: %s: %s", name,
				 node->text, node->config_why);
		return text;
	}
	*value = hs_buf_bytes(&first->config[option]);
	while (other && hs_bytes_equal(*value, hs_buf_bytes(&other->config[option])))
		other = teller(other->next, option);
	if (!other)
		return NULL;
	snprintf(text, text_size,
		 "ERR '%s' differs between servers: '%.*s' at %s, '%.*s' at %s; CONFIG SET makes "
		 "them equal",
		 name, (int)(value->len < 128 ? value->len : 128), value->data, first->text,
		 (int)(other->config[option].len < 128 ? other->config[option].len : 128),
		 other->config[option].data, other->text);
	return text;
}

static void answer_get(struct hs_monitor *monitor, struct hs_op *op)
{
	struct hs_buf pairs = {0};
	struct hs_reply inner = {.out = &pairs, .resp = op->resp};
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	size_t count = (size_t)op->engine_mark;
	char text[ERROR_BYTES_MAX];

	hs_buf_swap(&pairs, op->out);
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++) {
		struct hs_bytes name = hs_bytes_of(hs_server_options[i].name), value = {NULL, 0};
		const char *why;
		size_t asked = 2;

		while (asked < op->argc && !hs_glob_match(op->argv[asked], name, true))
			asked++;
		if (asked == op->argc)
			continue;
		why = unknown(monitor, i, &value, text, sizeof text);
		if (why && why[0] && !hs_glob_is_pattern(op->argv[asked])) {
			hs_reply_error(&reply, why);
			hs_buf_deinit(&pairs);
			return;
		}
		if (why)
			continue;
		hs_reply_bulk(&inner, hs_glob_is_pattern(op->argv[asked]) ? name : op->argv[asked]);
		hs_reply_bulk(&inner, value);
		count++;
	}
	hs_reply_map(&reply, count);
	hs_buf_append_bytes(op->out, hs_buf_bytes(&pairs));
	hs_buf_deinit(&pairs);
}

/* ---- CONFIG SET ---- */

/* Remembers the values that `writer` took, and sends CONFIG GET to `writer`: remember_normalized then stores the
 * values in its form. */
static void remember(struct hs_monitor *monitor, const struct hs_op *op,
		     struct hs_monitor_node *writer)
{
	struct hs_monitor_config *config = &monitor->config;

	for (size_t i = 2; i + 1 < op->argc; i += 2) {
		size_t option = hs_server_option_find(op->argv[i]);
		struct hs_buf *value = &config->remembered[option];

		value->len = 0;
		hs_buf_reserve(value, 1);
		hs_buf_append_bytes(value, op->argv[i + 1]);
		config->written |= 1u << option;
	}
	config->writer = writer;
	hs_monitor_node_request(writer, HS_QUERY_CONFIG_CHECK);
}

static void answer_set(struct hs_monitor *monitor, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	const struct hs_monitor_node *refused = NULL;
	struct hs_monitor_node *writer = NULL;
	struct hs_buf whys = {0};
	uint32_t took = 0, failed = 0;
	bool same = true;

	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		took += node->config_state == HS_CONFIG_DONE;
		writer = node->config_state == HS_CONFIG_DONE ? node : writer;
		if (node->config_state != HS_CONFIG_FAILED)
			continue;
		same = same && (!refused || strcmp(refused->config_why, node->config_why) == 0);
		refused = node;
		if (failed++ < 4)
			hs_buf_printf(&whys, "%s%s: %s", whys.len > 0 ? "; " : "", node->text,
				      node->config_why);
	}
	if (writer)
		remember(monitor, op, writer);
	if (failed == 0)
		hs_reply_ok(&reply);
	else if (took == 0 && same && strncmp(refused->config_why, "ERR ", 4) == 0)
		hs_reply_error(&reply, refused->config_why); /* the servers' error, unchanged */
	else if (took == 0)
		hs_reply_errorf(&reply, "ERR CONFIG SET took effect at no server: %.*s",
				(int)whys.len, whys.data);
	else
		hs_reply_errorf(&reply,
				"ERR CONFIG SET took effect at %u of %u servers; the others are "
				"retried when they answer: %.*s",
				took, took + failed, (int)whys.len, whys.data);
	hs_buf_deinit(&whys);
}

void hs_monitor_config_answer(struct hs_monitor *monitor, struct hs_op *op)
{
	if (hs_monitor_config_is_set(op))
		answer_set(monitor, op);
	else
		answer_get(monitor, op);
}
