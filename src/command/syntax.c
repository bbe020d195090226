/* Parses the text into a small tree, because a reply gives the number of elements before the first
 * of them. "key [EX seconds | KEEPTTL]" is
 *
 *     key ── one of (optional)
 *              └─ seconds (token EX) ── KEEPTTL
 *
 * The nodes are in one array and refer to each other by index; 0 is no node. */
#include "command/syntax.h"

enum { NODES_MAX = 48, NAME_MAX_BYTES = 160 };

enum node_kind { NODE_NAME, NODE_TOKEN, NODE_ONEOF, NODE_BLOCK };

struct node {
	enum node_kind kind;
	struct hs_bytes text;  /* the name, or a token without an argument */
	struct hs_bytes token; /* the token before it; empty: none */
	bool optional;
	bool multiple;
	size_t child; /* index of the first child */
	size_t next;  /* index of the next sibling */
};

struct tree {
	struct hs_bytes rest; /* the rest of the text */
	struct node nodes[NODES_MAX];
	size_t count;
	bool keys_apart; /* the row describes each key's use separately */
	int keys;	 /* keys written so far */
};

static size_t parse_list(struct tree *tree);

static size_t add(struct tree *tree, struct node node)
{
	hs_check(tree->count < NODES_MAX);
	tree->nodes[tree->count] = node;
	return tree->count++;
}

/* The next character that is not a space; '\0' at the end. */
static char peek(struct tree *tree)
{
	while (tree->rest.len > 0 && tree->rest.data[0] == ' ') {
		tree->rest.data++;
		tree->rest.len--;
	}
	return tree->rest.len > 0 ? tree->rest.data[0] : '\0';
}

static struct hs_bytes take(struct tree *tree, size_t len)
{
	struct hs_bytes taken = {tree->rest.data, len};

	hs_check(len > 0);
	hs_check(len <= tree->rest.len);
	tree->rest.data += len;
	tree->rest.len -= len;
	return taken;
}

static bool is_token(char first)
{
	return first >= 'A' && first <= 'Z';
}

/* Makes one node of a run of nodes; a single node stays as it is. */
static size_t wrap(struct tree *tree, size_t first)
{
	if (tree->nodes[first].next == 0)
		return first;
	return add(tree, (struct node){.kind = NODE_BLOCK, .child = first});
}

static size_t parse_value(struct tree *tree)
{
	char first = peek(tree);
	size_t node;

	if (first == '[' || first == '(') {
		take(tree, 1);
		node = wrap(tree, parse_list(tree));
		hs_check(peek(tree) == (first == '[' ? ']' : ')'));
		take(tree, 1);
		if (first == '[')
			tree->nodes[node].optional = true;
	} else {
		size_t len = 0;

		while (len < tree->rest.len && !strchr(" [](|)", tree->rest.data[len]))
			len++;
		node = add(tree, (struct node){.kind = is_token(first) ? NODE_TOKEN : NODE_NAME,
					       .text = take(tree, len)});
	}
	if (peek(tree) == '.') {
		hs_check(hs_bytes_equal(take(tree, 3), HS_LIT("...")));
		tree->nodes[node].multiple = true;
	}
	return node;
}

/* Parses a value, or a token with the plain values after it. */
static size_t parse_item(struct tree *tree)
{
	size_t node = parse_value(tree);
	struct hs_bytes token = tree->nodes[node].text;
	size_t first = 0;
	size_t last = 0;

	if (tree->nodes[node].kind != NODE_TOKEN || tree->nodes[node].optional)
		return node;
	while (peek(tree) == '(' || (peek(tree) >= 'a' && peek(tree) <= 'z')) {
		size_t value = parse_value(tree);

		if (first == 0)
			first = value;
		else
			tree->nodes[last].next = value;
		last = value;
	}
	if (first == 0)
		return node;
	node = wrap(tree, first);
	tree->nodes[node].token = token;
	return node;
}

static size_t parse_branch(struct tree *tree)
{
	size_t first = parse_item(tree);
	size_t last = first;

	while (peek(tree) != '\0' && !strchr("])|", peek(tree))) {
		tree->nodes[last].next = parse_item(tree);
		last = tree->nodes[last].next;
	}
	return first;
}

/* Parses a list. Returns the first node of a run: the items of the only branch, or one node for all
 * branches. */
static size_t parse_list(struct tree *tree)
{
	size_t first = parse_branch(tree);
	size_t last;

	if (peek(tree) != '|')
		return first;
	first = last = wrap(tree, first);
	while (peek(tree) == '|') {
		take(tree, 1);
		tree->nodes[last].next = wrap(tree, parse_branch(tree));
		last = tree->nodes[last].next;
	}
	return add(tree, (struct node){.kind = NODE_ONEOF, .child = first});
}

/* The types that names stand for; all other names are strings. */
static const struct {
	const char *name;
	const char *type;
} types[] = {
	{"key", "key"},
	{"key1", "key"},
	{"key2", "key"},
	{"newkey", "key"},
	{"source", "key"},
	{"destination", "key"},
	{"bit", "integer"},
	{"client-id", "integer"},
	{"cluster-bus-port", "integer"},
	{"config-epoch", "integer"},
	{"count", "integer"},
	{"cursor", "integer"},
	{"decrement", "integer"},
	{"destination-db", "integer"},
	{"end", "integer"},
	{"end-slot", "integer"},
	{"increment", "integer"},
	{"index", "integer"},
	{"milliseconds", "integer"},
	{"min-match-len", "integer"},
	{"offset", "integer"},
	{"port", "integer"},
	{"protover", "integer"},
	{"seconds", "integer"},
	{"slot", "integer"},
	{"start", "integer"},
	{"start-slot", "integer"},
	{"timeout", "integer"},
	{"duration", "double"},
	{"number", "double"},
	{"pattern", "pattern"},
	{"unix-time-milliseconds", "unix-time"},
	{"unix-time-seconds", "unix-time"},
};

static const char *type_of(const struct node *node)
{
	switch (node->kind) {
	case NODE_TOKEN:
		return "pure-token";
	case NODE_ONEOF:
		return "oneof";
	case NODE_BLOCK:
		return "block";
	case NODE_NAME:
		break;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (hs_bytes_is_word(node->text, types[i].name))
			return types[i].type;
	return "string";
}

/* Appends a node's name: its text in lower case, or its children's names joined. */
static void append_name(const struct tree *tree, size_t index, char *name, size_t *len)
{
	const struct node *node = &tree->nodes[index];

	for (size_t i = 0; i < node->text.len; i++) {
		char c = node->text.data[i];

		hs_check(*len < NAME_MAX_BYTES);
		name[(*len)++] = (char)(is_token(c) ? c - 'A' + 'a' : c);
	}
	for (size_t child = node->child; child != 0; child = tree->nodes[child].next) {
		if (child != node->child) {
			hs_check(*len < NAME_MAX_BYTES);
			name[(*len)++] = '_';
		}
		append_name(tree, child, name, len);
	}
}

static size_t run_length(const struct tree *tree, size_t first)
{
	size_t count = 0;

	for (; first != 0; first = tree->nodes[first].next)
		count++;
	return count;
}

static void reply_node(struct hs_reply *reply, struct tree *tree, size_t index)
{
	const struct node *node = &tree->nodes[index];
	const char *type = type_of(node);
	struct hs_bytes token = node->kind == NODE_TOKEN ? node->text : node->token;
	bool is_key = strcmp(type, "key") == 0;
	char name[NAME_MAX_BYTES];
	size_t name_len = 0;

	append_name(tree, index, name, &name_len);
	hs_reply_map(reply, 2 + (is_key ? 1u : 0u) + (token.len > 0 ? 1u : 0u) +
				    (node->optional || node->multiple ? 1u : 0u) +
				    (node->child != 0 ? 1u : 0u));
	hs_reply_pair(reply, "name", (struct hs_bytes){name, name_len});
	hs_reply_pair_text(reply, "type", type);
	if (is_key) {
		hs_reply_pair_int(reply, "key_spec_index", tree->keys_apart ? tree->keys : 0);
		tree->keys++;
	}
	if (token.len > 0) {
		hs_reply_pair(reply, "token", token);
	}
	if (node->optional || node->multiple) {
		hs_reply_bulk_text(reply, "flags");
		hs_reply_set(reply, (node->optional ? 1u : 0u) + (node->multiple ? 1u : 0u));
		if (node->optional)
			hs_reply_status(reply, "optional");
		if (node->multiple)
			hs_reply_status(reply, "multiple");
	}
	if (node->child != 0) {
		hs_reply_bulk_text(reply, "arguments");
		hs_reply_array(reply, run_length(tree, node->child));
		for (size_t child = node->child; child != 0; child = tree->nodes[child].next)
			reply_node(reply, tree, child);
	}
}

void hs_command_reply_syntax(struct hs_reply *reply, const struct hs_command *command)
{
	struct tree tree = {.rest = hs_bytes_of(command->arguments), .count = 1};
	size_t first;

	tree.keys_apart = command->key_access && strchr(command->key_access, ',');
	first = parse_list(&tree);
	hs_check(peek(&tree) == '\0');
	hs_reply_array(reply, run_length(&tree, first));
	for (; first != 0; first = tree.nodes[first].next)
		reply_node(reply, &tree, first);
}
