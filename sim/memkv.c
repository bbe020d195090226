/* Each of the two maps (keyspace/kv.h calls them trees) is a skip list. A transaction keeps an undo list: for
 * every change the key, and the old value or that there was none. Abort replays the list from its end. */
#include "sim/memkv.h"

#include "base/check.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/prng.h"

#include <stdbool.h>
#include <stdint.h>

enum { LEVELS = 20, HANDED_OUT = 8 };

struct node {
	char *key;
	size_t key_len;
	char *value;
	size_t value_len;
	struct node *next[]; /* one for each level of the node */
};

struct tree {
	struct node *head; /* of full height, without a key */
	struct node *at;   /* position of seek and next; NULL after a change */
	uint64_t count;
};

struct undo {
	struct undo *before;
	enum hs_kv_tree tree;
	char *key;
	size_t key_len;
	bool existed;
	char *value;
	size_t value_len;
};

struct hs_memkv {
	struct hs_kv kv; /* must be first: the calls cast a pointer to it */
	struct tree trees[HS_KV_TREES];
	struct hs_prng prng;
	struct undo *undo;
	struct node *handed_out[HANDED_OUT]; /* nodes whose values were handed out last */
	size_t handed_out_at;
	size_t bytes, limit;
	bool in_transaction, lost;
};

static struct hs_memkv *map_of(struct hs_kv *kv)
{
	return (struct hs_memkv *)kv;
}

static struct hs_bytes node_key(const struct node *node)
{
	return (struct hs_bytes){node->key, node->key_len};
}

/* Finds the first node at or after `key`; before[level] is the last node in front of it. */
static struct node *find(struct tree *tree, struct hs_bytes key, struct node **before)
{
	struct node *node = tree->head;

	for (int level = LEVELS - 1; level >= 0; level--) {
		while (node->next[level] && hs_bytes_compare(node_key(node->next[level]), key) < 0)
			node = node->next[level];
		if (before)
			before[level] = node;
	}
	return node->next[0];
}

static struct node *find_exact(struct tree *tree, struct hs_bytes key, struct node **before)
{
	struct node *node = find(tree, key, before);

	return node && hs_bytes_equal(node_key(node), key) ? node : NULL;
}

static struct node *new_node(int height)
{
	return hs_mem_zalloc(sizeof(struct node) + (size_t)height * sizeof(struct node *));
}

static struct node *insert(struct hs_memkv *map, struct tree *tree, struct hs_bytes key,
			   struct node **before)
{
	int height = 1;
	struct node *node;

	while (height < LEVELS && hs_prng_below(&map->prng, 2) == 0)
		height++;
	node = new_node(height);
	node->key = hs_mem_dup(key.data, key.len);
	node->key_len = key.len;
	for (int level = 0; level < height; level++) {
		node->next[level] = before[level]->next[level];
		before[level]->next[level] = node;
	}
	tree->count++;
	map->bytes += key.len;
	return node;
}

static void set_value(struct hs_memkv *map, struct node *node, char *value, size_t len)
{
	hs_mem_free(&node->value);
	map->bytes = map->bytes - node->value_len + len;
	node->value = value;
	node->value_len = len;
}

static void unlink_node(struct hs_memkv *map, struct tree *tree, struct node *node,
			struct node **before)
{
	for (int level = 0; level < LEVELS && before[level]->next[level] == node; level++)
		before[level]->next[level] = node->next[level];
	for (size_t i = 0; i < HANDED_OUT; i++) {
		if (map->handed_out[i] == node)
			map->handed_out[i] = NULL;
	}
	set_value(map, node, NULL, 0);
	map->bytes -= node->key_len;
	tree->count--;
	hs_mem_free(&node->key);
	hs_mem_free(&node);
}

static void hand_out(struct hs_memkv *map, struct node *node, struct hs_bytes *value)
{
	map->handed_out[map->handed_out_at++ % HANDED_OUT] = node;
	*value = (struct hs_bytes){node->value, node->value_len};
}

/* Called before any change: ends cursors, and moves values that were handed out. */
static void disturb(struct hs_memkv *map)
{
	for (size_t i = 0; i < HS_KV_TREES; i++)
		map->trees[i].at = NULL;
	for (size_t i = 0; i < HANDED_OUT; i++) {
		struct node *node = map->handed_out[i];

		if (node)
			set_value(map, node, hs_mem_dup(node->value, node->value_len),
				  node->value_len);
		map->handed_out[i] = NULL;
	}
}

static void remember(struct hs_memkv *map, enum hs_kv_tree tree, struct hs_bytes key,
		     const struct node *node)
{
	struct undo *undo = hs_mem_zalloc(sizeof *undo);

	undo->before = map->undo;
	undo->tree = tree;
	undo->key = hs_mem_dup(key.data, key.len);
	undo->key_len = key.len;
	undo->existed = node != NULL;
	if (node) {
		undo->value = hs_mem_dup(node->value, node->value_len);
		undo->value_len = node->value_len;
	}
	map->undo = undo;
}

static int memkv_get(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key,
		     struct hs_bytes *value)
{
	struct hs_memkv *map = map_of(kv);
	struct node *node = find_exact(&map->trees[tree], key, NULL);

	if (map->lost)
		return HS_EFULL;
	if (!node)
		return HS_ENOTFOUND;
	hand_out(map, node, value);
	return 0;
}

static int memkv_put(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key, size_t len,
		     char **room)
{
	struct hs_memkv *map = map_of(kv);
	struct node *before[LEVELS];
	struct node *node;
	size_t bytes;

	hs_check(map->in_transaction);
	hs_check(key.len > 0);
	hs_check(key.len <= HS_KV_KEY_MAX);
	disturb(map);
	node = find_exact(&map->trees[tree], key, before);
	bytes = map->bytes + len + (node ? 0 : key.len) - (node ? node->value_len : 0);
	if (map->lost || (map->limit && bytes > map->limit && bytes > map->bytes)) {
		map->lost = true;
		return HS_EFULL;
	}
	remember(map, tree, key, node);
	if (!node)
		node = insert(map, &map->trees[tree], key, before);
	set_value(map, node, hs_mem_alloc(len), len);
	*room = node->value;
	return 0;
}

static int memkv_del(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes key)
{
	struct hs_memkv *map = map_of(kv);
	struct node *before[LEVELS];
	struct node *node;

	hs_check(map->in_transaction);
	if (map->lost)
		return HS_EFULL;
	disturb(map);
	node = find_exact(&map->trees[tree], key, before);
	if (!node)
		return HS_ENOTFOUND;
	remember(map, tree, key, node);
	unlink_node(map, &map->trees[tree], node, before);
	return 0;
}

static int stand_at(struct hs_memkv *map, enum hs_kv_tree tree, struct node *node,
		    struct hs_bytes *key, struct hs_bytes *value)
{
	map->trees[tree].at = node;
	if (map->lost)
		return HS_EFULL;
	if (!node)
		return HS_ENOTFOUND;
	*key = node_key(node);
	hand_out(map, node, value);
	return 0;
}

static int memkv_seek(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes from,
		      struct hs_bytes *key, struct hs_bytes *value)
{
	struct hs_memkv *map = map_of(kv);

	return stand_at(map, tree, find(&map->trees[tree], from, NULL), key, value);
}

static int memkv_next(struct hs_kv *kv, enum hs_kv_tree tree, struct hs_bytes *key,
		      struct hs_bytes *value)
{
	struct hs_memkv *map = map_of(kv);

	hs_check(map->trees[tree].at);
	return stand_at(map, tree, map->trees[tree].at->next[0], key, value);
}

static int memkv_count(struct hs_kv *kv, enum hs_kv_tree tree, uint64_t *entries)
{
	struct hs_memkv *map = map_of(kv);

	*entries = map->trees[tree].count;
	return map->lost ? HS_EFULL : 0;
}

static int memkv_clear(struct hs_kv *kv)
{
	struct hs_memkv *map = map_of(kv);

	for (size_t i = 0; i < HS_KV_TREES; i++) {
		while (map->trees[i].head->next[0]) {
			int err = memkv_del(kv, (enum hs_kv_tree)i,
					    node_key(map->trees[i].head->next[0]));

			if (err)
				return err;
		}
	}
	return 0;
}

static const struct hs_kv_calls calls = {
	.get = memkv_get,
	.put = memkv_put,
	.del = memkv_del,
	.seek = memkv_seek,
	.next = memkv_next,
	.count = memkv_count,
	.clear = memkv_clear,
};

struct hs_memkv *hs_memkv_create(void)
{
	struct hs_memkv *map = hs_mem_zalloc(sizeof *map);

	map->kv.calls = &calls;
	hs_prng_init(&map->prng, 1);
	for (size_t i = 0; i < HS_KV_TREES; i++)
		map->trees[i].head = new_node(LEVELS);
	return map;
}

void hs_memkv_destroy(struct hs_memkv **map)
{
	struct hs_memkv *m = *map;
	int err;

	if (!m)
		return;
	if (m->in_transaction)
		hs_memkv_abort(m);
	hs_memkv_begin(m);
	err = memkv_clear(&m->kv);
	hs_check(err == 0);
	hs_memkv_commit(m);
	for (size_t i = 0; i < HS_KV_TREES; i++)
		hs_mem_free(&m->trees[i].head);
	hs_mem_free(map);
}

struct hs_kv *hs_memkv_kv(struct hs_memkv *map)
{
	return &map->kv;
}

void hs_memkv_begin(struct hs_memkv *map)
{
	hs_check(!map->in_transaction);
	map->in_transaction = true;
}

static void forget(struct hs_memkv *map)
{
	while (map->undo) {
		struct undo *undo = map->undo;

		map->undo = undo->before;
		hs_mem_free(&undo->key);
		hs_mem_free(&undo->value);
		hs_mem_free(&undo);
	}
}

void hs_memkv_commit(struct hs_memkv *map)
{
	hs_check(map->in_transaction);
	hs_check(!map->lost);
	forget(map);
	map->in_transaction = false;
}

void hs_memkv_abort(struct hs_memkv *map)
{
	hs_check(map->in_transaction);
	disturb(map);
	for (struct undo *undo = map->undo; undo; undo = undo->before) {
		struct tree *tree = &map->trees[undo->tree];
		struct hs_bytes key = {undo->key, undo->key_len};
		struct node *before[LEVELS];
		struct node *node = find_exact(tree, key, before);

		if (!undo->existed) {
			unlink_node(map, tree, node, before);
			continue;
		}
		if (!node)
			node = insert(map, tree, key, before);
		set_value(map, node, undo->value, undo->value_len);
		undo->value = NULL;
	}
	forget(map);
	map->in_transaction = false;
	map->lost = false;
}

void hs_memkv_limit(struct hs_memkv *map, size_t bytes)
{
	map->limit = bytes;
}

size_t hs_memkv_bytes(const struct hs_memkv *map)
{
	return map->bytes;
}
