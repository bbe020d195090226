/* Options of the servers (server_options.h), for CONFIG GET and CONFIG SET.
 *
 *     CONFIG GET ──► round: every listed node is asked ──► what all that answer agree on ──► reply
 *     CONFIG SET ──► round: every listed node is told  ──► OK, or which node did not take it
 *
 * One round runs at a time. A round of GET answers every GET that waited when it began. A node that
 * fails or leaves counts as answered, with the reason.
 *
 * A value that at least one node took is remembered. Each connection to a node begins with a check:
 * where the node says something else than is remembered, it is set again. So replicas, new nodes, and
 * nodes that were restarted have it before they are promoted. While a connection lasts, a value that
 * somebody set at the server itself is left alone. */
#include "engine/redis/scout_internal.h"

#include "base/mem.h"
#include "wire/reply.h"

#include <stdio.h>

static void append_word(struct hs_buf *out, struct hs_bytes word)
{
	hs_buf_printf(out, "$%zu\r\n", word.len);
	hs_buf_append_bytes(out, word);
	hs_buf_append(out, "\r\n", 2);
}

bool hs_scout_config_any(const struct hs_scout *scout)
{
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++) {
		if (scout->config.remembered[i].data)
			return true;
	}
	return false;
}

/* ---- requests ---- */

static void compose_get(struct hs_buf *out)
{
	hs_buf_printf(out, "*%d\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n", 2 + HS_SERVER_OPTIONS);
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++)
		append_word(out, hs_bytes_of(hs_server_options[i].name));
}

/* Before Redis 7 CONFIG GET takes one name: such a server is asked for everything. */
static void compose_get_all(struct hs_buf *out)
{
	hs_buf_printf(out, "*3\r\n$6\r\nCONFIG\r\n$3\r\nGET\r\n$1\r\n*\r\n");
}

static bool is_different(const struct hs_scout_node *node, size_t option)
{
	const struct hs_buf *remembered = &node->scout->config.remembered[option];

	/* A server that has no such option is left alone. */
	return remembered->data && node->config[option].data &&
	       !hs_bytes_equal(hs_buf_bytes(remembered), hs_buf_bytes(&node->config[option]));
}

static void compose_keep(const struct hs_scout_node *node, struct hs_buf *out)
{
	size_t count = 0;

	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++)
		count += is_different(node, i);
	hs_buf_printf(out, "*%zu\r\n$6\r\nCONFIG\r\n$3\r\nSET\r\n", 2 + 2 * count);
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++) {
		if (!is_different(node, i))
			continue;
		append_word(out, hs_bytes_of(hs_server_options[i].name));
		append_word(out, hs_buf_bytes(&node->scout->config.remembered[i]));
	}
}

void hs_scout_config_request(const struct hs_scout_node *node, enum hs_scout_ask ask,
			     struct hs_buf *out)
{
	const struct hs_op *op = node->scout->config.round;

	if (ask == HS_ASK_KEEP) {
		compose_keep(node, out);
	} else if (ask != HS_ASK_SET) {
		if (node->config_old)
			compose_get_all(out);
		else
			compose_get(out);
	} else if (op) {
		hs_buf_printf(out, "*%zu\r\n", op->argc);
		for (size_t i = 0; i < op->argc; i++)
			append_word(out, op->argv[i]);
	}
}

/* ---- what a node says ---- */

static void wake(struct hs_scout *scout)
{
	uv_async_send(&scout->wake);
}

static void node_done(struct hs_scout_node *node, const char *why)
{
	if (node->config_state != HS_CONFIG_ASKED)
		return;
	node->config_state = why ? HS_CONFIG_FAILED : HS_CONFIG_DONE;
	snprintf(node->config_why, sizeof node->config_why, "%s", why ? why : "");
	if (--node->scout->config.left == 0)
		wake(node->scout); /* the round ends when the event is handled */
}

void hs_scout_config_failed(struct hs_scout_node *node, const char *why)
{
	node->config_kept = false;
	node_done(node, why);
}

static void forget_values(struct hs_scout_node *node)
{
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++)
		hs_buf_deinit(&node->config[i]);
}

/* The error of a reply, or NULL. */
static const char *error_of(struct hs_bytes reply, char *text, size_t text_size)
{
	struct hs_answer head;

	if (hs_answer_head(&head, reply.data, reply.len) > 0 && head.type == HS_ANSWER_ERROR)
		return hs_bytes_escape(head.text, text, text_size);
	return NULL;
}

static const char *read_values(struct hs_scout_node *node, struct hs_bytes reply, char *text,
			       size_t text_size)
{
	const char *why = error_of(reply, text, text_size);
	struct hs_walk walk = {reply.data, reply.len};
	int64_t count = 0;

	forget_values(node);
	if (why)
		return why;
	if (hs_walk_map(&walk, &count) < 0)
		return "its answer makes no sense";
	for (int64_t i = 0; i < count; i++) {
		struct hs_bytes name, value;
		size_t option;

		if (hs_walk_text(&walk, &name) < 0 || hs_walk_text(&walk, &value) < 0)
			return "its answer makes no sense";
		option = hs_server_option_find(name);
		if (option == HS_SERVER_OPTIONS || node->config[option].data)
			continue;
		hs_buf_reserve(&node->config[option], 1); /* also of an empty value: it is known */
		hs_buf_append_bytes(&node->config[option], value);
	}
	return NULL;
}

/* A server that takes one name at a time is asked again, in another way. True: it is. */
static bool asks_again(struct hs_scout_node *node, enum hs_scout_ask ask, const char *why)
{
	if (node->config_old || !why || !strstr(why, "wrong number of arguments"))
		return false;
	node->config_old = true;
	hs_scout_node_want(node, ask);
	return true;
}

/* What was just set, as the server writes it: 100mb is 104857600. */
static void remember_told(struct hs_scout_node *node)
{
	struct hs_scout_config *config = &node->scout->config;

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

static void keep(struct hs_scout_node *node)
{
	bool differs = false;

	remember_told(node);
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++)
		differs = differs || is_different(node, i);
	node->config_kept = !differs;
	if (differs)
		hs_scout_node_want(node, HS_ASK_KEEP);
}

static void told_keep(struct hs_scout_node *node, const char *why)
{
	struct hs_buf names = {0};

	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++) {
		if (is_different(node, i))
			hs_buf_printf(&names, "%s%s", names.len > 0 ? ", " : "",
				      hs_server_options[i].name);
	}
	hs_log(node->scout->options.log, why ? HS_LOG_WARN : HS_LOG_INFO,
	       why ? "%s: cannot set %.*s as CONFIG SET had it: %s; set it at the server"
		   : "%s: set %.*s as CONFIG SET had it%s",
	       node->text, (int)names.len, names.data, why ? why : "");
	hs_buf_deinit(&names);
	node->config_kept = true; /* one that refuses is not asked again on this connection */
}

void hs_scout_config_told(struct hs_scout_node *node, enum hs_scout_ask ask, struct hs_bytes reply)
{
	char text[HS_PARTITION_TROUBLE_BYTES];
	const char *why;

	if (ask == HS_ASK_SET || ask == HS_ASK_KEEP)
		why = error_of(reply, text, sizeof text);
	else
		why = read_values(node, reply, text, sizeof text);
	switch (ask) {
	case HS_ASK_GET:
		if (!asks_again(node, ask, why))
			node_done(node, why);
		break;
	case HS_ASK_SET:
		if (why)
			node->config_kept = false;
		node_done(node, why);
		break;
	case HS_ASK_CHECK:
		if (asks_again(node, ask, why))
			break;
		if (!why) {
			keep(node);
			break;
		}
		hs_log(node->scout->options.log, HS_LOG_WARN,
		       "%s: does not tell its options, which CONFIG SET has changed: %s",
		       node->text, why);
		node->config_kept = true;
		break;
	default:
		told_keep(node, why);
	}
}

void hs_scout_config_up(struct hs_scout_node *node)
{
	node->config_kept = false;
	node->config_old = false; /* it may have come back as something newer */
	if (node->listed && hs_scout_config_any(node->scout))
		hs_scout_node_want(node, HS_ASK_CHECK);
}

void hs_scout_config_tick(struct hs_scout *scout)
{
	if (!hs_scout_config_any(scout))
		return;
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		if (node->listed && !node->config_kept)
			hs_scout_node_want(node, HS_ASK_CHECK);
	}
}

void hs_scout_config_forget(struct hs_scout_node *node)
{
	node_done(node, "it has left");
	forget_values(node);
	if (node->scout->config.writer == node)
		node->scout->config.writer = NULL;
}

/* ---- rounds ---- */

static void finish(struct hs_scout *scout)
{
	struct hs_op *op = scout->config.round, *next;

	scout->config.round = NULL;
	for (; op; op = next) {
		next = op->next;
		hs_scout_config_answer(scout, op);
		scout->host.done(scout->host.context, op);
	}
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node))
		node->config_state = HS_CONFIG_IDLE;
}

/* The next SET alone, or all GETs up to the next SET. */
static void choose(struct hs_scout_config *config)
{
	struct hs_op **end = &config->waiting;

	config->round = config->waiting;
	do {
		end = &(*end)->next;
	} while (*end && !hs_scout_config_is_set(config->round) && !hs_scout_config_is_set(*end));
	config->waiting = *end;
	*end = NULL;
}

static void refuse(struct hs_scout *scout, struct hs_op *ops, const char *error)
{
	struct hs_op *next;

	for (; ops; ops = next) {
		struct hs_reply reply = {.out = ops->out, .resp = ops->resp};

		next = ops->next;
		ops->out->len = 0;
		hs_reply_error(&reply, error);
		scout->host.done(scout->host.context, ops);
	}
}

static void begin(struct hs_scout *scout)
{
	struct hs_scout_config *config = &scout->config;
	enum hs_scout_ask ask;

	choose(config);
	ask = hs_scout_config_is_set(config->round) ? HS_ASK_SET : HS_ASK_GET;
	config->left = 1; /* this loop's: nobody ends the round before it */
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		if (!node->listed)
			continue;
		node->config_state = HS_CONFIG_ASKED;
		config->left++;
	}
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		if (node->config_state == HS_CONFIG_ASKED)
			hs_scout_node_want(node, ask);
	}
	if (--config->left == 0)
		wake(scout);
	if (ask == HS_ASK_SET)
		hs_scout_look_soon(scout); /* nodes that are not listed yet have it soon, too */
}

static bool any_listed(struct hs_scout *scout)
{
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node)) {
		if (node->listed)
			return true;
	}
	return false;
}

void hs_scout_config_step(struct hs_scout *scout)
{
	struct hs_scout_config *config = &scout->config;
	struct hs_op *op = hs_mpsc_take(&config->asked, offsetof(struct hs_op, next));
	struct hs_op **end = &config->waiting;

	while (*end)
		end = &(*end)->next;
	*end = op;
	if (config->round && config->left == 0)
		finish(scout);
	if (config->round || !config->waiting)
		return;
	if (any_listed(scout)) {
		begin(scout);
		return;
	}
	op = config->waiting;
	config->waiting = NULL;
	refuse(scout, op,
	       "CLUSTERDOWN the engine's servers are not known yet: none of them has "
	       "answered; not sent");
}

void hs_scout_config_deinit(struct hs_scout *scout)
{
	struct hs_scout_config *config = &scout->config;
	struct hs_op *op = hs_mpsc_take(&config->asked, offsetof(struct hs_op, next));

	refuse(scout, config->round, "ERR shutting down; the outcome is unknown");
	refuse(scout, config->waiting, "ERR shutting down");
	refuse(scout, op, "ERR shutting down");
	config->round = config->waiting = NULL;
	for (struct hs_scout_node *node = hs_scout_first(scout); node;
	     node = hs_scout_next(scout, node))
		node->config_state = HS_CONFIG_IDLE;
	for (size_t i = 0; i < HS_SERVER_OPTIONS; i++)
		hs_buf_deinit(&config->remembered[i]);
}

/* ---- from any thread ---- */

void hs_scout_configure(struct hs_scout *scout, struct hs_op *op, size_t pairs)
{
	op->engine_mark = pairs;
	op->next = NULL;
	hs_mpsc_push(&scout->config.asked, op, op, offsetof(struct hs_op, next));
	uv_async_send(&scout->wake);
}
