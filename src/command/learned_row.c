/* Reads one entry of COMMAND's reply and makes a row of it.
 *
 *     name arity {flags} first last step {categories} {tips} {key specs} [subcommands]
 *
 * Redis 6 has the first seven. RESP3 has sets where RESP2 has arrays, and maps where RESP2 has
 * arrays of twice as many elements; here that makes no difference. A server may send anything:
 * unexpected elements are left out, and every value is checked against its bounds. */
#include "command/learned_row.h"

#include "base/buf.h"
#include "base/err.h"
#include "command/describe.h"
#include "wire/parse_reply.h"

#include <stdio.h>

enum { ELEMENTS_SAID = 9, ELEMENTS_MIN = 6, POSITION_MAX = 1 << 20 };

/* The text of a status or bulk string; empty for anything else. */
static struct hs_bytes text_of(struct hs_bytes element)
{
	struct hs_parsed_reply head;

	if (hs_parse_reply_head(&head, element.data, element.len) <= 0 ||
	    (head.type != HS_PARSED_STATUS && head.type != HS_PARSED_BULK))
		return (struct hs_bytes){"", 0};
	return head.text;
}

/* An integer; 0 for anything else, and for a value that cannot be a position. */
static int64_t number_of(struct hs_bytes element)
{
	struct hs_parsed_reply head;

	if (hs_parse_reply_head(&head, element.data, element.len) <= 0 ||
	    head.type != HS_PARSED_INT || head.integer > POSITION_MAX ||
	    head.integer < -POSITION_MAX)
		return 0;
	return head.integer;
}

/* Sets entry->name: in lower case, after its container's name. False: the text cannot be a name. */
static bool take_name(struct hs_learned_entry *entry, struct hs_bytes text, const char *parent)
{
	const char *bar = text.len > 0 ? memchr(text.data, '|', text.len) : NULL;
	size_t at = 0;

	if (bar) { /* Redis includes the container's name */
		text.len -= (size_t)(bar + 1 - text.data);
		text.data = bar + 1;
	}
	if (parent) {
		at = strlen(parent);
		if (at + 1 > HS_LEARNED_NAME_BYTES_MAX)
			return false;
		memcpy(entry->name, parent, at);
		entry->name[at++] = '|';
	}
	if (text.len == 0 || at + text.len > HS_LEARNED_NAME_BYTES_MAX || (bar && !parent))
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.data[i];

		if (c <= ' ' || c > '~' || c == '|')
			return false;
		entry->name[at++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
	}
	entry->name[at] = '\0';
	return true;
}

int hs_learned_entry_read(struct hs_learned_entry *entry, struct hs_bytes *rest, const char *parent)
{
	struct hs_bytes whole, elements, element[ELEMENTS_SAID + 1], one;
	size_t count = 0;

	*entry = (struct hs_learned_entry){0};
	if (!hs_parse_reply_take(rest, &whole))
		return HS_EPROTO;
	elements = hs_parse_reply_elements(whole);
	entry->raw_entry = elements;
	while (count <= ELEMENTS_SAID && hs_parse_reply_take(&elements, &element[count])) {
		count++;
		if (count <= ELEMENTS_SAID)
			entry->raw_entry.len = (size_t)(elements.data - entry->raw_entry.data);
	}
	if (count < ELEMENTS_MIN || !take_name(entry, text_of(element[0]), parent))
		return 0;
	entry->elements = (uint8_t)(count < ELEMENTS_SAID ? count : ELEMENTS_SAID);
	entry->arity = number_of(element[1]);
	entry->flags = element[2];
	entry->key_first = number_of(element[3]);
	entry->key_last = number_of(element[4]);
	entry->key_step = number_of(element[5]);
	if (count > 6)
		entry->categories = element[6];
	if (count > 7)
		entry->tips = element[7];
	if (count > 8)
		entry->key_specs = element[8];
	if (count > 9 && !parent) {
		entry->subcommands = element[9];
		elements = hs_parse_reply_elements(element[9]);
		entry->container = hs_parse_reply_take(&elements, &one);
	}
	return 1;
}

static unsigned flags_of(struct hs_bytes words)
{
	struct hs_bytes rest = hs_parse_reply_elements(words), word;
	unsigned flags = 0;

	while (hs_parse_reply_take(&rest, &word)) {
		struct hs_bytes text = text_of(word);

		flags |= hs_flag_of(hs_command_flag_words, text);
		if (hs_bytes_is_word(text,
				     "@blocking")) /* Redis 6 has the category but not the flag */
			flags |= HS_CMD_BLOCKING;
		if (hs_bytes_is_word(text, "may_replicate")) /* not shown by COMMAND INFO */
			flags |= HS_CMD_MAY_REPLICATE;
	}
	return flags;
}

static bool has_word(struct hs_bytes words, const char *wanted)
{
	struct hs_bytes rest = hs_parse_reply_elements(words), word;

	while (hs_parse_reply_take(&rest, &word))
		if (hs_bytes_is_word(text_of(word), wanted))
			return true;
	return false;
}

/* The words of a set, joined by spaces. */
static const char *words_of(struct hs_bytes words, struct hs_arena *arena)
{
	struct hs_bytes rest = hs_parse_reply_elements(words), word;
	struct hs_buf text = {0};
	char *kept;

	while (hs_parse_reply_take(&rest, &word)) {
		word = text_of(word);
		if (word.len == 0 || memchr(word.data, ' ', word.len))
			continue;
		if (text.len > 0)
			hs_buf_append(&text, " ", 1);
		hs_buf_append_bytes(&text, word);
	}
	kept = hs_arena_text(arena, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
	return kept;
}

/* The value of a name in a map; empty: it has none. */
static struct hs_bytes value_of(struct hs_bytes map, const char *name)
{
	struct hs_bytes rest = hs_parse_reply_elements(map), key, value;

	while (hs_parse_reply_take(&rest, &key) && hs_parse_reply_take(&rest, &value))
		if (hs_bytes_is_word(text_of(key), name))
			return value;
	return (struct hs_bytes){"", 0};
}

static void read_spec(struct hs_key_spec *spec, struct hs_bytes map, struct hs_arena *arena)
{
	struct hs_bytes search = value_of(map, "begin_search"), find = value_of(map, "find_keys");
	struct hs_bytes begin = value_of(search, "spec"), go_on = value_of(find, "spec");
	struct hs_bytes rest = hs_parse_reply_elements(value_of(map, "flags")), word;
	unsigned flags = 0;

	*spec = (struct hs_key_spec){0};
	while (hs_parse_reply_take(&rest, &word))
		flags |= hs_flag_of(hs_key_flag_words, text_of(word));
	spec->flags = (uint16_t)flags;
	if (hs_bytes_is_word(text_of(value_of(search, "type")), "index")) {
		spec->search = HS_KEY_SEARCH_INDEX;
		spec->index = (int32_t)number_of(value_of(begin, "index"));
	} else if (hs_bytes_is_word(text_of(value_of(search, "type")), "keyword")) {
		spec->search = HS_KEY_SEARCH_KEYWORD;
		spec->keyword = hs_arena_text(arena, text_of(value_of(begin, "keyword")));
		spec->index = (int32_t)number_of(value_of(begin, "startfrom"));
	}
	if (hs_bytes_is_word(text_of(value_of(find, "type")), "range")) {
		spec->find = HS_KEY_FIND_RANGE;
		spec->last = (int32_t)number_of(value_of(go_on, "lastkey"));
		spec->limit = (int32_t)number_of(value_of(go_on, "limit"));
	} else if (hs_bytes_is_word(text_of(value_of(find, "type")), "keynum")) {
		spec->find = HS_KEY_FIND_KEYNUM;
		spec->number = (int32_t)number_of(value_of(go_on, "keynumidx"));
		spec->first = (int32_t)number_of(value_of(go_on, "firstkey"));
	}
	spec->step = (int32_t)number_of(value_of(go_on, "keystep"));
	if (spec->step < 1)
		spec->step = 1;
}

static void append_words(unsigned flags, struct hs_buf *text)
{
	for (const struct hs_flag_word *word = hs_key_flag_words; word->word; word++)
		if (flags & word->flag)
			hs_buf_printf(text, "%s%s", text->len > 0 ? " " : "", word->word);
}

static const char *access_text(struct hs_arena *arena, unsigned first, unsigned more)
{
	struct hs_buf text = {0};
	char *kept;

	append_words(first, &text);
	if (first != more) {
		hs_buf_append(&text, ",", 1);
		append_words(more, &text);
	}
	kept = hs_arena_text(arena, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
	return kept;
}

static bool is_plain(const struct hs_key_spec *spec)
{
	return spec->search == HS_KEY_SEARCH_INDEX && spec->index > 0 &&
	       spec->find == HS_KEY_FIND_RANGE && spec->limit <= 1 &&
	       !(spec->flags & (HS_KEY_NOT_KEY | HS_KEY_INCOMPLETE));
}

/* Sets the row's three numbers if they can describe the specs: one run of keys, or one key and a
 * run right after it ("OW update, RO access": BITOP). They are the fast path in the core. */
static bool say_plainly(struct hs_command *row, const struct hs_key_spec *specs, size_t count,
			struct hs_arena *arena)
{
	const struct hs_key_spec *end = &specs[count - 1];

	if (count > 2 || !is_plain(&specs[0]) || !is_plain(end))
		return false;
	if (count == 2 &&
	    (specs[0].last != 0 || end->step != 1 || end->index != specs[0].index + 1))
		return false;
	row->key_first = specs[0].index;
	row->key_last = end->last < 0 ? end->last : end->index + end->last;
	row->key_step = end->step;
	row->key_access = access_text(arena, specs[0].flags, end->flags);
	return true;
}

static void fill_keys(struct hs_command *row, const struct hs_learned_entry *entry,
		      struct hs_arena *arena)
{
	struct hs_key_spec specs[HS_LEARNED_SPECS_MAX];
	struct hs_bytes rest = hs_parse_reply_elements(entry->key_specs), map;
	const struct hs_builtin_hint *hint = hs_builtin_hint(row->name);
	uint8_t count = 0;

	while (count < HS_LEARNED_SPECS_MAX && hs_parse_reply_take(&rest, &map))
		read_spec(&specs[count++], map, arena);
	if (hint && hint->keys && (count == 0 || hint->keys_always)) {
		row->key_specs = hint->keys;
		row->key_specs_count = hint->keys_count;
	} else if (count > 0 && !say_plainly(row, specs, count, arena)) {
		struct hs_key_spec *kept = hs_arena_take(arena, count * sizeof *kept);

		memcpy(kept, specs, count * sizeof *kept);
		row->key_specs = kept;
		row->key_specs_count = count;
	} else if (count == 0 && entry->key_first > 0) {
		row->key_first = (int)entry->key_first;
		row->key_last = (int)entry->key_last;
		row->key_step = entry->key_step > 0 ? (int)entry->key_step : 1;
	}
}

/* Does the row give the positions of all its keys? A row without keys does not: it may touch any
 * key. */
static bool names_keys(const struct hs_command *row)
{
	for (uint8_t i = 0; i < row->key_specs_count; i++)
		if (row->key_specs[i].search == HS_KEY_SEARCH_UNKNOWN)
			return false;
	return hs_command_has_real_keys(row);
}

/* The value of a tip: "request_policy:all_shards" -> "all_shards"; empty: no such tip. */
static struct hs_bytes policy_of(const struct hs_learned_entry *entry, const char *name)
{
	struct hs_bytes rest = hs_parse_reply_elements(entry->tips), tip;
	size_t len = strlen(name);

	while (hs_parse_reply_take(&rest, &tip)) {
		tip = text_of(tip);
		if (hs_bytes_begins(tip, hs_bytes_of(name)))
			return (struct hs_bytes){tip.data + len, tip.len - len};
	}
	return (struct hs_bytes){"", 0};
}

/* How to merge the replies of all shards; HS_MERGE_NONE: the policy is special to the command. */
static enum hs_command_merge merge_of(struct hs_bytes policy)
{
	static const struct {
		const char *policy;
		enum hs_command_merge merge;
	} merges[] = {
		{"agg_sum", HS_MERGE_SUM},
		{"agg_min", HS_MERGE_MIN},
		{"agg_max", HS_MERGE_MAX},
		{"agg_logical_and", HS_MERGE_AND},
		{"agg_logical_or", HS_MERGE_OR},
		{"all_succeeded", HS_MERGE_ALL_SUCCEEDED},
		{"one_succeeded", HS_MERGE_ONE_SUCCEEDED},
		{"", HS_MERGE_CONCAT}, /* Redis's rule for commands without a key */
	};

	for (size_t i = 0; i < sizeof merges / sizeof *merges; i++)
		if (hs_bytes_is_word(policy, merges[i].policy))
			return merges[i].merge;
	return HS_MERGE_NONE;
}

static void fill_place(struct hs_command *row, const struct hs_learned_entry *entry)
{
	struct hs_bytes request = policy_of(entry, "request_policy:");
	const struct hs_builtin_hint *hint = request.len > 0 ? NULL : hs_builtin_hint(row->name);
	bool everywhere =
		hs_bytes_is_word(request, "all_shards") || hs_bytes_is_word(request, "all_nodes");

	row->refused = hs_builtin_refused(row->name);
	if (entry->container)
		row->place = HS_PLACE_PARENT;
	else if (row->refused)
		row->place = HS_PLACE_REFUSED;
	else if (hint && hint->routed) {
		row->place = hint->place;
		row->merge = hint->merge;
	} else {
		row->place = hs_command_has_keys(row) ? HS_PLACE_PARTITION : HS_PLACE_ANY;
		if (everywhere)
			row->merge = merge_of(policy_of(entry, "response_policy:"));
		if (row->merge != HS_MERGE_NONE)
			row->place = HS_PLACE_ALL;
	}
}

/* The group for COMMAND DOCS, derived from a category. */
static const char *group_of(const char *categories)
{
	static const char *const groups[][2] = {
		{"@string", "string"},
		{"@hash", "hash"},
		{"@list", "list"},
		{"@set", "set"},
		{"@sortedset", "sorted-set"},
		{"@stream", "stream"},
		{"@bitmap", "bitmap"},
		{"@hyperloglog", "hyperloglog"},
		{"@geo", "geo"},
		{"@pubsub", "pubsub"},
		{"@scripting", "scripting"},
		{"@transaction", "transactions"},
		{"@connection", "connection"},
		{"@keyspace", "generic"},
		{"@admin", "server"},
	};

	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		const char *found = strstr(categories, groups[i][0]);
		char behind = found ? found[strlen(groups[i][0])] : 'x';

		if (behind == '\0' || behind == ' ')
			return groups[i][1];
	}
	return NULL;
}

void hs_learned_fill(struct hs_command *row, const struct hs_learned_entry *entry,
		     struct hs_arena *arena)
{
	const struct hs_builtin_hint *hint = hs_builtin_hint(entry->name);

	row->name = hs_arena_text(arena, hs_bytes_of(entry->name));
	row->arity = entry->arity != 0 ? (int)entry->arity : -1;
	row->flags = flags_of(entry->flags) | flags_of(entry->categories);
	if (hint && hint->blocks)
		row->flags |= HS_CMD_BLOCKING;
	if (strcmp(row->name, "pfcount") ==
	    0) /* it may store its estimate; old servers do not flag it */
		row->flags |= HS_CMD_MAY_REPLICATE;
	row->categories = words_of(entry->categories, arena);
	row->tips = words_of(entry->tips, arena);
	row->group = group_of(row->categories);
	row->key_step = 1;
	fill_keys(row, entry, arena);
	fill_place(row, entry);
	if (entry->container ||
	    (row->place != HS_PLACE_PARENT && hs_builtin_hint_sub(row->name, NULL)))
		row->flags |= HS_CMD_CONTAINER;
	if (hs_builtin_unchecked(row->name, row->categories, has_word(entry->flags, "module"),
				 names_keys(row)))
		row->flags |= HS_CMD_UNCHECKED;
	/* A command with keys that says neither read nor write counts as a write: that is always
	 * safe. */
	if (hs_command_has_real_keys(row) && !(row->flags & (HS_CMD_WRITE | HS_CMD_READONLY)))
		row->flags |= HS_CMD_WRITE | HS_CMD_EFFECT_UNKNOWN;
	/* The hint for caching holds only if the server describes the command as expected. */
	if (hint && row->flags & HS_CMD_READONLY &&
	    !(row->flags & (HS_CMD_WRITE | HS_CMD_BLOCKING)) && row->key_first == 1 &&
	    row->key_last == 1 && row->place == HS_PLACE_PARTITION)
		row->cacheable = hint->cacheable;
	if (!entry->fields_expire)
		row->cacheable &= ~(unsigned)HS_CACHEABLE_PARTS_EXPIRE;
}
