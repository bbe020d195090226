/* Learns the servers' commands. The monitor asks one node for COMMAND at the start, after a node was lost, and
 * when a node's COMMAND COUNT differs from the known one (a module was loaded). */
#include "engine/redis/monitor_internal.h"

#include "base/hash.h"

enum { HASH_DEPTH_MAX = 16 };

/* ---- comparing replies to COMMAND ---- */

/* Servers list the same commands and subcommands in different orders. So the hashes of nested lists are added up,
 * and only the other elements count by their position. Returns the bytes read; 0: malformed. */
static size_t hash_element(struct hs_bytes reply, int depth, uint64_t *hash)
{
	struct hs_parsed_reply head;
	int64_t used = hs_parse_reply_head(&head, reply.data, reply.len);
	size_t at;
	uint64_t place = 0;

	if (used <= 0 || depth == HASH_DEPTH_MAX)
		return 0;
	at = (size_t)used;
	*hash = hs_hash((struct hs_bytes){reply.data, at}, 0);
	if (head.type != HS_PARSED_ARRAY && head.type != HS_PARSED_MAP)
		return at;
	for (int64_t i = 0; i < head.count * (head.type == HS_PARSED_MAP ? 2 : 1); i++) {
		struct hs_bytes rest = {reply.data + at, reply.len - at};
		uint64_t of_element;
		size_t length = hash_element(rest, depth + 1, &of_element);

		if (length == 0)
			return 0;
		if (rest.data[0] != '*' && rest.data[0] != '%' && rest.data[0] != '~')
			of_element += ++place * 0x9e3779b97f4a7c15u;
		*hash +=
			hs_hash((struct hs_bytes){(const char *)&of_element, sizeof of_element}, 1);
		at += length;
	}
	*hash = hs_hash((struct hs_bytes){(const char *)hash, sizeof *hash}, 2);
	return at;
}

uint64_t hs_monitor_command_hash(struct hs_bytes reply)
{
	uint64_t hash = 0;

	return hash_element(reply, 0, &hash) > 0 ? hash : 0;
}

/* ---- queries ---- */

void hs_monitor_learn_from(struct hs_monitor_node *node)
{
	if (node->monitor->learner)
		return;
	node->monitor->learner = node;
	hs_monitor_node_request(node, HS_QUERY_COMMAND);
}

static void learn_refused(struct hs_monitor_node *node, const char *why)
{
	struct hs_monitor *monitor = node->monitor;

	if (!monitor->learn_refused)
		hs_log(monitor->options.log, HS_LOG_WARN,
		       "%s: COMMAND failed (%s): only heatsink's built-in commands can be used",
		       node->text, why);
	monitor->learn_refused = true;
}

static void learn(struct hs_monitor_node *node, struct hs_bytes reply)
{
	struct hs_monitor *monitor = node->monitor;
	uint64_t hash = hs_monitor_command_hash(reply);
	struct hs_learned *learned;
	struct hs_parsed_reply head;
	int64_t count = hs_parse_reply_head(&head, reply.data, reply.len) > 0 ? head.count : 0;
	char error[HS_REDIS_WHY_BYTES];

	if (monitor->learned && hash == monitor->learned_hash)
		return;
	learned = hs_learned_create(reply, monitor->learned, error, sizeof error);
	if (!learned) {
		learn_refused(node, error);
		return;
	}
	if (monitor->learned)
		hs_log(monitor->options.log, HS_LOG_INFO,
		       "%s has changed its commands: %zu beside heatsink's built-in ones",
		       node->text, hs_learned_count(learned));
	monitor->learned = learned;
	monitor->learned_hash = hash;
	monitor->learned_count = count;
	monitor->learn_refused = false;
	monitor->calls->learned(monitor->context, learned);
}

void hs_monitor_learn_commands(struct hs_monitor_node *node, struct hs_bytes reply)
{
	struct hs_bytes error;
	char text[128];

	node->monitor->learner = NULL;
	if (hs_monitor_is_error(reply, &error))
		learn_refused(node, hs_bytes_escape(error, text, sizeof text));
	else
		learn(node, reply);
	hs_monitor_end_startup(node->monitor);
}

/* A module that is loaded while the server runs adds commands: their number has changed. */
void hs_monitor_learn_count(struct hs_monitor_node *node, struct hs_bytes reply)
{
	struct hs_parsed_reply head;

	if (hs_parse_reply_head(&head, reply.data, reply.len) > 0 && head.type == HS_PARSED_INT &&
	    head.integer != node->monitor->learned_count)
		hs_monitor_learn_from(node);
}
