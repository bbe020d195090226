/* Checks a request against a user. This file runs for every request; the others prepare users. */
#include "acl/internal.h"

#include "base/glob.h"

#include <strings.h>

/* In Redis's order. The bit of a category is 1 << its index. */
static const char *const categories[] = {
	"keyspace", "read",   "write",	     "set",	  "sortedset",	"list",	       "hash",
	"string",   "bitmap", "hyperloglog", "geo",	  "stream",	"pubsub",      "admin",
	"fast",	    "slow",   "blocking",    "dangerous", "connection", "transaction", "scripting",
};
enum { CATEGORIES = sizeof categories / sizeof *categories };

const char *hs_acl_category_name(size_t index)
{
	return index < CATEGORIES ? categories[index] : NULL;
}

const char *hs_acl_category_of(uint32_t bit)
{
	return categories[__builtin_ctz(bit)];
}

/* The bits of a text like "@read @string @fast". */
static uint32_t category_bits(const char *text)
{
	uint32_t bits = 0;

	while (text && *text) {
		size_t len = strcspn(text, " ");

		for (uint32_t i = 0; i < CATEGORIES; i++) {
			if (len == strlen(categories[i]) + 1 && text[0] == '@' &&
			    memcmp(text + 1, categories[i], len - 1) == 0)
				bits |= UINT32_C(1) << i;
		}
		text += len + (text[len] == ' ');
	}
	return bits;
}

bool hs_acl_category_has(size_t index, const struct hs_command *command)
{
	return category_bits(command->categories) >> index & 1;
}

/* In Redis the words after DEBUG are first arguments, not subcommands. */
static bool is_first_argument(const struct hs_command *command)
{
	return command->parent == HS_CMD_ID_DEBUG;
}

const char *hs_acl_command_name(const struct hs_command *command)
{
	return is_first_argument(command) ? "debug" : command->name;
}

/* The rule name "config" matches config and config|get; "config|get" only the latter; "select|0"
 * SELECT 0. */
static bool rule_names(const struct hs_acl_rule *rule, const struct hs_command *command,
		       size_t argc, const struct hs_bytes *argv)
{
	const char *bar = strchr(rule->name, '|');
	size_t len = bar ? (size_t)(bar - rule->name) : strlen(rule->name);
	size_t base = strcspn(command->name, "|");

	if (len != base || memcmp(rule->name, command->name, len) != 0)
		return false;
	if (!bar)
		return true;
	if (command->name[base] == '|' && !is_first_argument(command))
		return strcasecmp(bar + 1, command->name + base + 1) == 0;
	return argc > 1 && hs_bytes_is_word(argv[1], bar + 1);
}

bool hs_acl_rules_allow(const struct hs_acl_selector *selector, const struct hs_command *command,
			size_t argc, const struct hs_bytes *argv)
{
	uint32_t bits = 0; /* the command's categories, computed when a rule first needs them */
	bool allowed = selector->starts_with_all;

	for (size_t i = 0; i < selector->rules_count; i++) {
		const struct hs_acl_rule *rule = &selector->rules[i];

		if (rule->category && bits == 0)
			bits = category_bits(command->categories);
		if (rule->category ? (rule->category & bits) != 0
				   : rule_names(rule, command, argc, argv))
			allowed = rule->allow;
	}
	return allowed;
}

static bool command_allowed(const struct hs_acl_selector *selector,
			    const struct hs_command *command, size_t argc,
			    const struct hs_bytes *argv)
{
	if (selector->all_commands || (command->flags & HS_CMD_NO_AUTH))
		return true;
	if (hs_acl_is_ours(command)) {
		if (selector->allowed[command->id / 64] >> (command->id % 64) & 1)
			return true;
		if (!selector->has_arguments)
			return false;
	}
	return hs_acl_rules_allow(selector, command, argc, argv);
}

/* --- keys --- */

uint8_t hs_acl_access_of(const struct hs_command *command)
{
	struct hs_key_walk walk = {.command = command, .at = (size_t)command->key_first};
	unsigned access;

	/* It depends on the other arguments, or on the key spec. */
	if (command->key_specs || (hs_keys_flags(&walk) & HS_KEY_VARIABLE) ||
	    command->id == HS_CMD_ID_SET)
		return HS_ACL_ASK_ARGUMENTS;
	access = hs_keys_access(&walk);
	walk.at++;
	return (uint8_t)(access | hs_keys_access(&walk) << HS_ACL_OTHER_KEYS_SHIFT);
}

/* The permission that the walk's current key needs. */
static unsigned access_at(const struct hs_acl_user *user, const struct hs_key_walk *walk)
{
	const struct hs_command *command = walk->command;
	unsigned access =
		hs_acl_is_ours(command) ? user->access[command->id] : HS_ACL_ASK_ARGUMENTS;

	if (access == HS_ACL_ASK_ARGUMENTS)
		return hs_keys_access(walk);
	return walk->at == (size_t)command->key_first ? access & (HS_ACL_READ | HS_ACL_WRITE)
						      : access >> HS_ACL_OTHER_KEYS_SHIFT;
}

static bool key_allowed(const struct hs_acl_selector *selector, struct hs_bytes key,
			unsigned access)
{
	for (size_t i = 0; i < selector->keys.count; i++) {
		const struct hs_acl_pattern *pattern = &selector->keys.at[i];

		if ((pattern->access & access) == access &&
		    hs_glob_match((struct hs_bytes){pattern->text, pattern->len}, key, false))
			return true;
	}
	return false;
}

static bool all_keys_allowed(const struct hs_acl_selector *selector, unsigned access)
{
	for (size_t i = 0; i < selector->keys.count; i++) {
		const struct hs_acl_pattern *pattern = &selector->keys.at[i];

		if ((pattern->access & access) == access && strcmp(pattern->text, "*") == 0)
			return true;
	}
	return selector->all_keys;
}

static bool is_sort(const struct hs_command *command)
{
	return strcmp(command->name, "sort") == 0 || strcmp(command->name, "sort_ro") == 0;
}

/* Does the row give the positions of all keys, if the arguments have the expected form? (check_sort
 * handles the patterns of SORT.) */
static bool is_clear(const struct hs_command *command)
{
	for (size_t i = 0; i < command->key_specs_count; i++) {
		const struct hs_key_spec *spec = &command->key_specs[i];
		bool searched = spec->search == HS_KEY_SEARCH_INDEX ||
				spec->search == HS_KEY_SEARCH_KEYWORD;

		if (spec->search == HS_KEY_SEARCH_UNKNOWN || (spec->flags & HS_KEY_INCOMPLETE) ||
		    (searched && spec->find == HS_KEY_FIND_UNKNOWN))
			return is_sort(command);
	}
	return !(command->flags & HS_CMD_MOVABLEKEYS) || hs_command_has_keys(command);
}

/* Has the row a real key? A shard channel is routed like a key and is none. */
static bool has_true_keys(const struct hs_command *command)
{
	for (size_t i = 0; i < command->key_specs_count; i++) {
		if (!(command->key_specs[i].flags & HS_KEY_NOT_KEY))
			return true;
	}
	return false;
}

/* Are all keys allowed? *at: the first that is not. When the keys of a request cannot be found by
 * its row, the user needs the right to all keys. */
static bool keys_allowed(const struct hs_acl_user *user, const struct hs_acl_selector *selector,
			 const struct hs_command *command, size_t argc, const struct hs_bytes *argv,
			 size_t *at)
{
	struct hs_key_walk walk;
	bool clear;

	hs_keys_begin(&walk, command, argc, argv);
	while ((*at = hs_keys_next(&walk)) > 0) {
		if (key_allowed(selector, argv[*at], access_at(user, &walk)))
			continue;
		if (!(hs_keys_flags(&walk) & HS_KEY_NOT_KEY))
			return false;
	}
	clear = walk.wrong ? !has_true_keys(command) : hs_acl_is_ours(command) || is_clear(command);
	return clear || all_keys_allowed(selector, HS_ACL_READ | HS_ACL_WRITE);
}

/* --- channels --- */

static bool channel_allowed(const struct hs_acl_selector *selector, struct hs_bytes channel,
			    bool is_pattern)
{
	if (selector->all_channels)
		return true;
	for (size_t i = 0; i < selector->channels.count; i++) {
		struct hs_bytes pattern = {selector->channels.at[i].text,
					   selector->channels.at[i].len};

		if (is_pattern ? hs_bytes_equal(pattern, channel)
			       : hs_glob_match(pattern, channel, false))
			return true;
	}
	return false;
}

bool hs_acl_may_channel(const struct hs_acl_user *user, struct hs_bytes channel, bool is_pattern)
{
	for (size_t i = 0; i < user->selectors_count; i++) {
		if (channel_allowed(&user->selectors[i], channel, is_pattern))
			return true;
	}
	return false;
}

/* Commands that publish or subscribe. Unsubscribing needs no permission. */
static const struct {
	const char *name;
	bool is_pattern;
	bool all; /* every argument is a channel, not only the first */
} channel_commands[] = {
	{"publish", false, false},   {"spublish", false, false}, {"subscribe", false, true},
	{"ssubscribe", false, true}, {"psubscribe", true, true},
};

static size_t forbidden_channel(const struct hs_acl_selector *selector,
				const struct hs_command *command, size_t argc,
				const struct hs_bytes *argv)
{
	size_t i = 0;

	/* Fast path: all these names begin with p or s. */
	if (command->name[0] != 'p' && command->name[0] != 's')
		return 0;
	while (strcmp(channel_commands[i].name, command->name) != 0) {
		if (++i == sizeof channel_commands / sizeof *channel_commands)
			return 0;
	}
	for (size_t at = 1; at < (channel_commands[i].all ? argc : 2); at++) {
		if (!channel_allowed(selector, argv[at], channel_commands[i].is_pattern))
			return at;
	}
	return 0;
}

/* --- whole requests --- */

/* SORT BY and GET read keys by patterns: the user needs the right to read all keys. */
static enum hs_acl_verdict check_sort(size_t argc, const struct hs_bytes *argv, size_t *at)
{
	for (size_t i = 2; i + 1 < argc; i++) {
		*at = i + 1;
		if (hs_bytes_is_word(argv[i], "by") &&
		    memchr(argv[i + 1].data, '*', argv[i + 1].len))
			return HS_ACL_SORT_BY;
		if (hs_bytes_is_word(argv[i], "get"))
			return HS_ACL_SORT_GET;
		if (hs_bytes_is_word(argv[i], "by") || hs_bytes_is_word(argv[i], "store"))
			i++;
		else if (hs_bytes_is_word(argv[i], "limit"))
			i += 2;
	}
	return HS_ACL_OK;
}

/* May it run scripts, whose commands no rule checks? +script|unchecked is set, or the selector has
 * no limits. */
static bool may_unchecked(const struct hs_acl_selector *selector)
{
	return selector->unchecked ||
	       (selector->all_commands && selector->all_keys && selector->all_channels);
}

static enum hs_acl_verdict check_one(const struct hs_acl_user *user,
				     const struct hs_acl_selector *selector,
				     const struct hs_command *command, size_t argc,
				     const struct hs_bytes *argv, size_t *at)
{
	*at = 0;
	if (!command_allowed(selector, command, argc, argv))
		return HS_ACL_COMMAND;
	if (!selector->all_keys && !keys_allowed(user, selector, command, argc, argv, at))
		return HS_ACL_KEY;
	if (!selector->all_channels) {
		*at = forbidden_channel(selector, command, argc, argv);
		if (*at > 0)
			return HS_ACL_CHANNEL;
	}
	if ((command->flags & HS_CMD_UNCHECKED) && !may_unchecked(selector))
		return HS_ACL_UNCHECKED;
	if (selector->all_keys || !is_sort(command) || all_keys_allowed(selector, HS_ACL_READ))
		return HS_ACL_OK;
	return check_sort(argc, argv, at);
}

enum hs_acl_verdict hs_acl_check(const struct hs_acl_user *user, const struct hs_command *command,
				 size_t argc, const struct hs_bytes *argv, size_t *at)
{
	enum hs_acl_verdict heaviest = HS_ACL_COMMAND;

	*at = 0;
	for (size_t i = 0; i < user->selectors_count; i++) {
		size_t here;
		enum hs_acl_verdict verdict =
			check_one(user, &user->selectors[i], command, argc, argv, &here);

		if (verdict == HS_ACL_OK)
			return HS_ACL_OK;
		if (verdict > heaviest || (verdict == heaviest && here > *at)) {
			heaviest = verdict;
			*at = here;
		}
	}
	return heaviest;
}
