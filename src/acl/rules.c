/* Applies one rule to a selector. */
#include "acl/internal.h"

#include "base/mem.h"

#include <ctype.h>

#define SYNTAX "Syntax error"
#define UNKNOWN "Unknown command or category name in ACL"
#define SUB_ARGUMENT "Allowing first-arg of a subcommand is not supported"
#define KEYS_ALREADY                                                                               \
	"Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does not "  \
	"have any effect. Try 'resetkeys' to start with an empty list of patterns"
#define CHANNELS_ALREADY                                                                           \
	"Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and does "  \
	"not have any effect. Try 'resetchannels' to start with an empty list of channels"

/* --- memory --- */

static void patterns_clear(struct hs_acl_patterns *patterns)
{
	for (size_t i = 0; i < patterns->count; i++)
		hs_mem_free(&patterns->at[i].text);
	hs_mem_free(&patterns->at);
	patterns->count = 0;
}

static void patterns_add(struct hs_acl_patterns *patterns, struct hs_bytes text, unsigned access)
{
	for (size_t i = 0; i < patterns->count; i++) {
		struct hs_acl_pattern *pattern = &patterns->at[i];

		if (hs_bytes_equal((struct hs_bytes){pattern->text, pattern->len}, text)) {
			pattern->access |= access;
			return;
		}
	}
	patterns->at = hs_mem_realloc(patterns->at, (patterns->count + 1) * sizeof *patterns->at);
	patterns->at[patterns->count++] = (struct hs_acl_pattern){
		.access = access, .text = hs_mem_dup(text.data, text.len), .len = text.len};
}

static void rules_clear(struct hs_acl_selector *selector)
{
	for (size_t i = 0; i < selector->rules_count; i++)
		hs_mem_free(&selector->rules[i].name);
	hs_mem_free(&selector->rules);
	selector->rules_count = 0;
}

static void rules_add(struct hs_acl_selector *selector, struct hs_acl_rule rule)
{
	selector->rules = hs_mem_realloc(selector->rules,
					 (selector->rules_count + 1) * sizeof *selector->rules);
	selector->rules[selector->rules_count++] = rule;
}

void hs_acl_selector_deinit(struct hs_acl_selector *selector)
{
	patterns_clear(&selector->keys);
	patterns_clear(&selector->channels);
	rules_clear(selector);
	*selector = (struct hs_acl_selector){0};
}

void hs_acl_selector_copy(struct hs_acl_selector *to, const struct hs_acl_selector *from)
{
	*to = (struct hs_acl_selector){
		.all_keys = from->all_keys,
		.all_channels = from->all_channels,
		.starts_with_all = from->starts_with_all,
		.unchecked = from->unchecked,
	};
	for (size_t i = 0; i < from->keys.count; i++)
		patterns_add(&to->keys,
			     (struct hs_bytes){from->keys.at[i].text, from->keys.at[i].len},
			     from->keys.at[i].access);
	for (size_t i = 0; i < from->channels.count; i++)
		patterns_add(&to->channels,
			     (struct hs_bytes){from->channels.at[i].text, from->channels.at[i].len},
			     0);
	for (size_t i = 0; i < from->rules_count; i++) {
		struct hs_acl_rule rule = from->rules[i];

		rule.name = rule.name ? hs_mem_dup(rule.name, strlen(rule.name)) : NULL;
		rules_add(to, rule);
	}
}

/* --- keys and channels --- */

static bool has_blank(struct hs_bytes text)
{
	for (size_t i = 0; i < text.len; i++) {
		if (isspace((unsigned char)text.data[i]) || text.data[i] == '\0')
			return true;
	}
	return false;
}

bool hs_acl_name_fits(struct hs_bytes name)
{
	return !has_blank(name);
}

/* ~pattern, %R~pattern, %W~pattern, %RW~pattern. */
static const char *apply_keys(struct hs_acl_selector *selector, struct hs_bytes word)
{
	unsigned access = 0;
	size_t at = 1;

	if (selector->all_keys)
		return KEYS_ALREADY;
	if (word.data[0] == '~') {
		access = HS_ACL_READ | HS_ACL_WRITE;
	} else {
		for (; at < word.len && word.data[at] != '~'; at++) {
			int letter = toupper((unsigned char)word.data[at]);
			unsigned more = letter == 'R'	? HS_ACL_READ
					: letter == 'W' ? HS_ACL_WRITE
							: 0;

			if (more == 0 || (access & more))
				return SYNTAX;
			access |= more;
		}
		if (access == 0)
			return SYNTAX;
		at += at < word.len; /* Redis accepts %R for %R~ */
	}
	word = (struct hs_bytes){word.data + at, word.len - at};
	if (has_blank(word))
		return SYNTAX;
	patterns_add(&selector->keys, word, access);
	return NULL;
}

static const char *apply_channel(struct hs_acl_selector *selector, struct hs_bytes word)
{
	struct hs_bytes pattern = {word.data + 1, word.len - 1};

	if (selector->all_channels)
		return CHANNELS_ALREADY;
	if (has_blank(pattern))
		return SYNTAX;
	patterns_add(&selector->channels, pattern, 0);
	return NULL;
}

static void set_all_keys(struct hs_acl_selector *selector, bool all)
{
	selector->all_keys = all;
	patterns_clear(&selector->keys);
}

static void set_all_channels(struct hs_acl_selector *selector, bool all)
{
	selector->all_channels = all;
	patterns_clear(&selector->channels);
}

static void set_all_commands(struct hs_acl_selector *selector, bool all)
{
	selector->starts_with_all = all;
	selector->unchecked = selector->unchecked && all;
	rules_clear(selector);
}

/* --- commands --- */

/* The row for "get" or "client|list". */
static const struct hs_command *find(const struct hs_acl_rules *rules, struct hs_bytes name)
{
	const char *bar = name.len > 0 ? memchr(name.data, '|', name.len) : NULL;
	const struct hs_command *command, *sub;
	size_t base = bar ? (size_t)(bar - name.data) : name.len;

	command = hs_command_find((struct hs_bytes){name.data, base});
	if (!command)
		command = hs_learned_find(rules->learned, (struct hs_bytes){name.data, base});
	if (!command || !bar)
		return command;
	name = (struct hs_bytes){bar + 1, name.len - base - 1};
	sub = command->place == HS_PLACE_PARENT && hs_acl_is_ours(command)
		      ? hs_command_sub(command, name)
		      : NULL;
	return sub ? sub : hs_learned_sub(rules->learned, command, name);
}

/* Does the command have subcommands, as Redis has them? After any other command the word is a first
 * argument; DEBUG has none in Redis. */
static bool is_container(const struct hs_command *command)
{
	return (command->place == HS_PLACE_PARENT || (command->flags & HS_CMD_CONTAINER)) &&
	       command->id != HS_CMD_ID_DEBUG;
}

/* Is `name` valid in a rule +name (`allow`) or -name? NULL, or the error text. *argument_at: for
 * "select|0" the offset of "0", which keeps its case; name.len when there is none. */
static const char *judge_name(const struct hs_acl_rules *rules, struct hs_bytes name, bool allow,
			      size_t *argument_at)
{
	const char *bar = name.len > 0 ? memrchr(name.data, '|', name.len) : NULL;
	size_t base = bar ? (size_t)(bar - name.data) : name.len;
	const struct hs_command *command;

	*argument_at = name.len;
	if (name.len == 0 || has_blank(name))
		return UNKNOWN;
	if (!allow || !bar) {
		command = find(rules, name);
		if (command)
			return command->parent == HS_CMD_ID_DEBUG ? UNKNOWN : NULL;
		command = find(rules, (struct hs_bytes){name.data, base});
		return rules->any_command && (!command || is_container(command)) ? NULL : UNKNOWN;
	}
	command = find(rules, (struct hs_bytes){name.data, base});
	if (!command && !rules->any_command)
		return UNKNOWN;
	if (command ? command->parent != HS_CMD_ID_NONE : memchr(name.data, '|', base) != NULL)
		return SUB_ARGUMENT;
	if (base + 1 == name.len)
		return SYNTAX;
	if (command && is_container(command))
		return find(rules, name) || rules->any_command ? NULL : UNKNOWN;
	*argument_at = base + 1;
	return NULL;
}

/* Does the rule make an earlier one void: one on the same command, or on a part of it? */
static bool replaces(const struct hs_acl_rule *rule, const struct hs_acl_rule *earlier)
{
	size_t len;

	if (rule->category || earlier->category)
		return rule->category == earlier->category;
	len = strlen(rule->name);
	return strncmp(rule->name, earlier->name, len) == 0 &&
	       (earlier->name[len] == '\0' || earlier->name[len] == '|');
}

static void put_rule(struct hs_acl_selector *selector, struct hs_acl_rule rule)
{
	size_t kept = 0;

	for (size_t i = 0; i < selector->rules_count; i++) {
		if (replaces(&rule, &selector->rules[i]))
			hs_mem_free(&selector->rules[i].name);
		else
			selector->rules[kept++] = selector->rules[i];
	}
	selector->rules_count = kept;
	rules_add(selector, rule);
}

static const char *apply_command(struct hs_acl_selector *selector, struct hs_bytes name, bool allow,
				 const struct hs_acl_rules *rules)
{
	size_t argument_at;
	struct hs_acl_rule rule = {.allow = allow};
	const char *why;

	if (hs_bytes_is_word(name, "script|unchecked")) {
		selector->unchecked = allow;
		return NULL;
	}
	why = judge_name(rules, name, allow, &argument_at);
	if (why)
		return why;
	if (!allow && hs_bytes_is_word(name, "script"))
		selector->unchecked = false;
	rule.name = hs_mem_dup(name.data, name.len);
	for (size_t i = 0; i < argument_at; i++)
		rule.name[i] = (char)tolower((unsigned char)rule.name[i]);
	put_rule(selector, rule);
	return NULL;
}

static const char *apply_category(struct hs_acl_selector *selector, struct hs_bytes name,
				  bool allow)
{
	const char *known;

	if (hs_bytes_is_word(name, "all")) {
		set_all_commands(selector, allow);
		return NULL;
	}
	for (uint32_t i = 0; (known = hs_acl_category_name(i)); i++) {
		if (hs_bytes_is_word(name, known)) {
			put_rule(selector, (struct hs_acl_rule){.allow = allow,
								.category = UINT32_C(1) << i});
			if (!allow && strcmp(known, "scripting") == 0)
				selector->unchecked = false;
			return NULL;
		}
	}
	return UNKNOWN;
}

const char *hs_acl_selector_apply(struct hs_acl_selector *selector, struct hs_bytes word,
				  const struct hs_acl_rules *rules)
{
	if (hs_bytes_is_word(word, "allkeys") || hs_bytes_equal(word, HS_LIT("~*")))
		set_all_keys(selector, true);
	else if (hs_bytes_is_word(word, "resetkeys"))
		set_all_keys(selector, false);
	else if (hs_bytes_is_word(word, "allchannels") || hs_bytes_equal(word, HS_LIT("&*")))
		set_all_channels(selector, true);
	else if (hs_bytes_is_word(word, "resetchannels"))
		set_all_channels(selector, false);
	else if (hs_bytes_is_word(word, "allcommands"))
		set_all_commands(selector, true);
	else if (hs_bytes_is_word(word, "nocommands"))
		set_all_commands(selector, false);
	else if (word.len > 0 && (word.data[0] == '~' || word.data[0] == '%'))
		return apply_keys(selector, word);
	else if (word.len > 0 && word.data[0] == '&')
		return apply_channel(selector, word);
	else if (word.len > 1 && (word.data[0] == '+' || word.data[0] == '-') &&
		 word.data[1] == '@')
		return apply_category(selector, (struct hs_bytes){word.data + 2, word.len - 2},
				      word.data[0] == '+');
	else if (word.len > 0 && (word.data[0] == '+' || word.data[0] == '-'))
		return apply_command(selector, (struct hs_bytes){word.data + 1, word.len - 1},
				     word.data[0] == '+', rules);
	else
		return SYNTAX;
	return NULL;
}
