/* Options of the servers (server_options.h), for a client's CONFIG GET and CONFIG SET.
 *
 *     CONFIG GET ──► round: CONFIG GET to every listed node ──► the values that all nodes agree on ──► reply
 *     CONFIG SET ──► round: CONFIG SET to every listed node ──► OK, or the nodes that refused it
 *
 * One round runs at a time. A round of GET answers every GET that waited when the round began. A node that fails
 * or leaves counts as answered, with the reason.
 *
 * A value that at least one node took is remembered. On each new connection to a node the monitor compares the
 * node's values with the remembered ones and sets them again where they differ. So replicas, new nodes and
 * restarted nodes have the remembered values before they are promoted. If an operator sets an option directly at a
 * server, the monitor leaves the value alone as long as its connection to the server lasts. */
#include "engine/redis/monitor_internal.h"

#include "wire/compose.h"
#include "wire/reply.h"

#include <stdio.h>

bool hs_monitor_config_has_values(const struct hs_monitor *monitor)
{
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++) {
		if (monitor->config.remembered[i].data)
			return true;
	}
	return false;
}

/* ---- requests ---- */

void hs_monitor_config_compose_set(const struct hs_monitor_node *node, struct hs_buf *out)
{
	const struct hs_op *op = node->monitor->config.round.first;

	hs_compose(out, op->argc, op->argv);
}

void hs_monitor_config_compose_get(const struct hs_monitor_node *node, struct hs_buf *out)
{
	/* Before Redis 7 CONFIG GET takes one name: the monitor asks such a server for all options. */
	if (node->config_get_takes_one) {
		hs_compose_line(out, "CONFIG GET *");
		return;
	}
	hs_compose_header(out, 2 + HS_SERVER_OPTIONS);
	hs_compose_text(out, "CONFIG");
	hs_compose_text(out, "GET");
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++)
		hs_compose_text(out, hs_server_options[i].name);
}

static bool is_different(const struct hs_monitor_node *node, size_t option)
{
	const struct hs_buf *remembered = &node->monitor->config.remembered[option];

	/* If the server does not have the option, there is nothing to set. */
	return remembered->data && node->config[option].data &&
	       !hs_bytes_equal(hs_buf_bytes(remembered), hs_buf_bytes(&node->config[option]));
}

static size_t count_different(const struct hs_monitor_node *node)
{
	size_t count = 0;

	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++)
		count += is_different(node, i);
	return count;
}

void hs_monitor_config_compose_restore(const struct hs_monitor_node *node, struct hs_buf *out)
{
	hs_compose_header(out, 2 + 2 * count_different(node));
	hs_compose_text(out, "CONFIG");
	hs_compose_text(out, "SET");
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++) {
		if (!is_different(node, i))
			continue;
		hs_compose_text(out, hs_server_options[i].name);
		hs_compose_word(out, hs_buf_bytes(&node->monitor->config.remembered[i]));
	}
}

/* ---- answers of nodes ---- */

static void node_done(struct hs_monitor_node *node, const char *why)
{
	if (node->config_state != HS_CONFIG_PENDING)
		return;
	node->config_state = why ? HS_CONFIG_FAILED : HS_CONFIG_DONE;
	snprintf(node->config_why, sizeof node->config_why, "%s", why ? why : "");
	if (--node->monitor->config.left == 0)
		node->monitor->step_due = true;
}

void hs_monitor_config_failed(struct hs_monitor_node *node, const char *why)
{
	node->config_in_sync = false;
	node_done(node, why);
}

static void forget_values(struct hs_monitor_node *node)
{
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++)
		hs_buf_deinit(&node->config[i]);
}

/* The text of an error reply, written to `text`; NULL: the reply is no error. */
static const char *error_of(struct hs_bytes reply, char *text, size_t text_size)
{
	struct hs_bytes error;

	return hs_monitor_is_error(reply, &error) ? hs_bytes_escape(error, text, text_size) : NULL;
}

static const char *read_values(struct hs_monitor_node *node, struct hs_bytes reply, char *text,
			       size_t text_size)
{
	const char *why = error_of(reply, text, text_size);
	struct hs_walk walk = {reply.data, reply.len};
	int64_t count = 0;

	forget_values(node);
	if (why)
		return why;
	if (hs_walk_map(&walk, &count) < 0)
		return "malformed reply";
	for (int64_t i = 0; i < count; i++) {
		struct hs_bytes name, value;
		size_t option;

		if (hs_walk_text(&walk, &name) < 0 || hs_walk_text(&walk, &value) < 0)
			return "malformed reply";
		option = hs_server_option_find(name);
		if (option == HS_SERVER_OPTIONS || node->config[option].data)
			continue;
		/* reserves a byte so that `data` is not NULL: an empty value is a value, too */
		hs_buf_reserve(&node->config[option], 1);
		hs_buf_append_bytes(&node->config[option], value);
	}
	return NULL;
}

/* If the server takes one name at a time, sends the query again, as CONFIG GET *. True: the query was sent
 * again. */
static bool asks_again(struct hs_monitor_node *node, enum hs_monitor_query query, const char *why)
{
	if (node->config_get_takes_one || !why || !strstr(why, "wrong number of arguments"))
		return false;
	node->config_get_takes_one = true;
	hs_monitor_node_request(node, query);
	return true;
}

/* Replaces the remembered values of the last CONFIG SET by the form that the server reports: 100mb becomes
 * 104857600. */
static void remember_normalized(struct hs_monitor_node *node)
{
	struct hs_monitor_config *config = &node->monitor->config;

	for (size_t i = 0; node == config->writer && i < HS_SERVER_OPTIONS; i++) {
		if (!(config->written & 1u << i) || !node->config[i].data)
			continue;
		config->remembered[i].len = 0;
		hs_buf_append_bytes(&config->remembered[i], hs_buf_bytes(&node->config[i]));
	}
	if (node == config->writer) {
		config->writer = NULL;
		config->written = 0;
	}
}

void hs_monitor_config_get(struct hs_monitor_node *node, struct hs_bytes reply)
{
	char text[HS_PARTITION_REASON_BYTES];
	const char *why = read_values(node, reply, text, sizeof text);

	if (!asks_again(node, HS_QUERY_CONFIG_GET, why))
		node_done(node, why);
}

void hs_monitor_config_set(struct hs_monitor_node *node, struct hs_bytes reply)
{
	char text[HS_PARTITION_REASON_BYTES];
	const char *why = error_of(reply, text, sizeof text);

	if (why)
		node->config_in_sync = false;
	node_done(node, why);
}

void hs_monitor_config_check(struct hs_monitor_node *node, struct hs_bytes reply)
{
	char text[HS_PARTITION_REASON_BYTES];
	const char *why = read_values(node, reply, text, sizeof text);

	if (asks_again(node, HS_QUERY_CONFIG_CHECK, why))
		return;
	if (why) {
		hs_log(node->monitor->options.log, HS_LOG_WARN,
		       "%s: cannot read the options that CONFIG SET has changed, to restore them: "
		       "%s",
		       node->text, why);
		node->config_in_sync = true;
		return;
	}
	remember_normalized(node);
	node->config_in_sync = count_different(node) == 0;
	if (!node->config_in_sync)
		hs_monitor_node_request(node, HS_QUERY_CONFIG_RESTORE);
}

void hs_monitor_config_restored(struct hs_monitor_node *node, struct hs_bytes reply)
{
	char text[HS_PARTITION_REASON_BYTES];
	const char *why = error_of(reply, text, sizeof text);
	struct hs_buf names = {0};

	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++) {
		if (is_different(node, i))
			hs_buf_printf(&names, "%s%s", names.len > 0 ? ", " : "",
				      hs_server_options[i].name);
	}
	hs_log(node->monitor->options.log, why ? HS_LOG_WARN : HS_LOG_INFO,
	       why ? "%s: cannot restore %.*s to the last CONFIG SET: %s; set it at the server"
		   : "%s: restored %.*s to the last CONFIG SET%s",
	       node->text, (int)names.len, names.data, why ? why : "");
	hs_buf_deinit(&names);
	/* if the server refused the values, they are not sent again on this connection */
	node->config_in_sync = true;
}

void hs_monitor_config_up(struct hs_monitor_node *node)
{
	node->config_in_sync = false;
	node->config_get_takes_one = false; /* the server may return as a newer version */
	if (node->listed && hs_monitor_config_has_values(node->monitor))
		hs_monitor_node_request(node, HS_QUERY_CONFIG_CHECK);
}

void hs_monitor_config_tick(struct hs_monitor *monitor)
{
	if (!hs_monitor_config_has_values(monitor))
		return;
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		if (node->listed && !node->config_in_sync)
			hs_monitor_node_request(node, HS_QUERY_CONFIG_CHECK);
	}
}

void hs_monitor_config_forget(struct hs_monitor_node *node)
{
	node_done(node, "its connection was closed");
	forget_values(node);
	if (node->monitor->config.writer == node)
		node->monitor->config.writer = NULL;
}

/* ---- rounds ---- */

static void finish(struct hs_monitor *monitor)
{
	struct hs_op *op;

	while ((op = hs_ops_pop(&monitor->config.round))) {
		hs_monitor_config_answer(monitor, op);
		monitor->calls->done(monitor->context, op);
	}
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next)
		node->config_state = HS_CONFIG_IDLE;
}

/* Moves the next round's ops from `waiting` to `round`: one SET, or all GETs in front of the next SET. */
static void choose(struct hs_monitor_config *config)
{
	const struct hs_op *first = config->waiting.first;

	do {
		hs_ops_push(&config->round, hs_ops_pop(&config->waiting));
	} while (config->waiting.first && !hs_monitor_config_is_set(first) &&
		 !hs_monitor_config_is_set(config->waiting.first));
}

static void refuse(struct hs_monitor *monitor, struct hs_ops *ops, const char *error)
{
	struct hs_op *op;

	while ((op = hs_ops_pop(ops))) {
		struct hs_reply reply = {.out = op->out, .resp = op->resp};

		op->out->len = 0;
		hs_reply_error(&reply, error);
		monitor->calls->done(monitor->context, op);
	}
}

static void begin(struct hs_monitor *monitor)
{
	struct hs_monitor_config *config = &monitor->config;
	bool is_set = hs_monitor_config_is_set(config->waiting.first);
	enum hs_monitor_query query = is_set ? HS_QUERY_CONFIG_SET : HS_QUERY_CONFIG_GET;

	choose(config);
	config->left = 0;
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next) {
		if (!node->listed)
			continue;
		node->config_state = HS_CONFIG_PENDING;
		config->left++;
		hs_monitor_node_request(node, query);
	}
	if (query == HS_QUERY_CONFIG_SET)
		/* A new node that is not listed yet gets the value soon after the poll. */
		hs_monitor_poll_soon(monitor);
}

void hs_monitor_config_step(struct hs_monitor *monitor)
{
	struct hs_monitor_config *config = &monitor->config;
	struct hs_monitor_node *node = monitor->nodes;

	if (config->round.first && config->left == 0)
		finish(monitor);
	if (config->round.first || !config->waiting.first)
		return;
	while (node && !node->listed)
		node = node->next;
	if (node) {
		begin(monitor);
		return;
	}
	refuse(monitor, &config->waiting,
	       "CLUSTERDOWN the engine's servers are not known yet: none of them has "
	       "answered; not sent");
}

void hs_monitor_config_deinit(struct hs_monitor *monitor)
{
	struct hs_monitor_config *config = &monitor->config;

	refuse(monitor, &config->round, "ERR shutting down; the outcome is unknown");
	refuse(monitor, &config->waiting, "ERR shutting down");
	for (struct hs_monitor_node *node = monitor->nodes; node; node = node->next)
		node->config_state = HS_CONFIG_IDLE;
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++)
		hs_buf_deinit(&config->remembered[i]);
}

void hs_monitor_configure(struct hs_monitor *monitor, uint64_t now_us, struct hs_op *op)
{
	hs_monitor_enter(monitor, now_us);
	hs_ops_push(&monitor->config.waiting, op);
	monitor->step_due = true;
	hs_monitor_leave(monitor);
}
