/* Makes users from rules. */
#include "acl/internal.h"

#include "base/limits.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdio.h>

#define SYNTAX "Syntax error"
#define NO_PASSWORD "The password you are trying to remove from the user does not exist"
#define NO_HASH                                                                                    \
	"The password hash must be exactly 64 characters and contain only lowercase hexadecimal "  \
	"characters"
#define UNMATCHED "Unmatched parenthesis"

/* --- memory --- */

static struct hs_acl_user *create(const char *name, size_t len)
{
	struct hs_acl_user *user = hs_mem_zalloc(sizeof *user);

	user->refs = 1;
	user->name = hs_mem_dup(name, len);
	user->selectors = hs_mem_zalloc(sizeof *user->selectors);
	user->selectors_count = 1;
	return user;
}

static void clear_passwords(struct hs_acl_user *user)
{
	hs_mem_free(&user->passwords);
	user->passwords_count = 0;
}

static void add_password(struct hs_acl_user *user, const uint8_t digest[HS_SHA256_BYTES])
{
	user->nopass = false;
	for (size_t i = 0; i < user->passwords_count; i++) {
		if (memcmp(user->passwords[i], digest, HS_SHA256_BYTES) == 0)
			return;
	}
	user->passwords = hs_mem_realloc(user->passwords,
					 (user->passwords_count + 1) * sizeof *user->passwords);
	memcpy(user->passwords[user->passwords_count++], digest, HS_SHA256_BYTES);
}

/* Frees all selectors but the first: those that were written in parentheses. */
static void clear_selectors(struct hs_acl_user *user)
{
	while (user->selectors_count > 1)
		hs_acl_selector_deinit(&user->selectors[--user->selectors_count]);
}

static void copy_into(struct hs_acl_user *user, const struct hs_acl_user *base)
{
	user->on = base->on;
	user->nopass = base->nopass;
	user->payload = base->payload;
	for (size_t i = 0; i < base->passwords_count; i++)
		add_password(user, base->passwords[i]);
	user->selectors =
		hs_mem_realloc(user->selectors, base->selectors_count * sizeof *user->selectors);
	for (size_t i = 0; i < base->selectors_count; i++)
		hs_acl_selector_copy(&user->selectors[i], &base->selectors[i]);
	user->selectors_count = base->selectors_count;
}

struct hs_acl_user *hs_acl_user_ref(const struct hs_acl_user *user)
{
	struct hs_acl_user *held = (struct hs_acl_user *)(uintptr_t)user;

	atomic_fetch_add_explicit(&held->refs, 1, memory_order_relaxed);
	return held;
}

void hs_acl_user_unref(struct hs_acl_user **pointer)
{
	struct hs_acl_user *user = *pointer;

	*pointer = NULL;
	if (!user || atomic_fetch_sub_explicit(&user->refs, 1, memory_order_acq_rel) > 1)
		return;
	clear_selectors(user);
	hs_acl_selector_deinit(&user->selectors[0]);
	hs_mem_free(&user->selectors);
	clear_passwords(user);
	hs_mem_free(&user->name);
	hs_mem_free(&user);
}

/* --- passwords --- */

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_hash(struct hs_bytes text, uint8_t digest[HS_SHA256_BYTES])
{
	if (text.len != 2 * HS_SHA256_BYTES)
		return false;
	for (size_t i = 0; i < HS_SHA256_BYTES; i++) {
		int high = hex_digit(text.data[2 * i]), low = hex_digit(text.data[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		digest[i] = (uint8_t)(high * 16 + low);
	}
	return true;
}

static bool remove_password(struct hs_acl_user *user, const uint8_t digest[HS_SHA256_BYTES])
{
	for (size_t i = 0; i < user->passwords_count; i++) {
		if (memcmp(user->passwords[i], digest, HS_SHA256_BYTES) != 0)
			continue;
		memmove(user->passwords + i, user->passwords + i + 1,
			(user->passwords_count - i - 1) * sizeof *user->passwords);
		user->passwords_count--;
		return true;
	}
	return false;
}

/* >password <password #hash !hash */
static const char *apply_password(struct hs_acl_user *user, struct hs_bytes word)
{
	struct hs_bytes text = {word.data + 1, word.len - 1};
	uint8_t digest[HS_SHA256_BYTES];

	if (word.data[0] == '>' || word.data[0] == '<')
		hs_sha256(text, digest);
	else if (!parse_hash(text, digest))
		return NO_HASH;
	if (word.data[0] == '>' || word.data[0] == '#') {
		add_password(user, digest);
		return NULL;
	}
	return remove_password(user, digest) ? NULL : NO_PASSWORD;
}

/* Compares in constant time, so that the time does not reveal how much of a password is right. */
static bool same_digest(const uint8_t a[HS_SHA256_BYTES], const uint8_t b[HS_SHA256_BYTES])
{
	unsigned difference = 0;

	for (size_t i = 0; i < HS_SHA256_BYTES; i++)
		difference |= (unsigned)(a[i] ^ b[i]);
	return difference == 0;
}

const struct hs_acl_user *hs_acl_login(const struct hs_acl *acl, struct hs_bytes name,
				       struct hs_bytes password)
{
	const struct hs_acl_user *user = hs_acl_find(acl, name);
	uint8_t digest[HS_SHA256_BYTES];
	bool fits;

	if (!user || !user->on)
		return NULL;
	fits = user->nopass;
	if (!fits)
		hs_sha256(password, digest);
	for (size_t i = 0; !user->nopass && i < user->passwords_count; i++)
		fits |= same_digest(user->passwords[i], digest);
	return fits ? user : NULL;
}

/* --- rules --- */

/* Makes a selector of the rules between two parentheses. */
static const char *apply_selector(struct hs_acl_user *user, struct hs_bytes word,
				  const struct hs_acl_rules *rules)
{
	struct hs_acl_selector selector = {0};
	const char *why = NULL;
	size_t at = 1, end = word.len - 1;

	while (at < end && !why) {
		size_t start = at;

		while (at < end && !isspace((unsigned char)word.data[at]))
			at++;
		if (at > start)
			why = hs_acl_selector_apply(
				&selector, (struct hs_bytes){word.data + start, at - start}, rules);
		at++;
	}
	if (why) {
		hs_acl_selector_deinit(&selector);
		return why;
	}
	user->selectors = hs_mem_realloc(user->selectors,
					 (user->selectors_count + 1) * sizeof *user->selectors);
	user->selectors[user->selectors_count++] = selector;
	return NULL;
}

static void reset(struct hs_acl_user *user)
{
	clear_passwords(user);
	clear_selectors(user);
	hs_acl_selector_deinit(&user->selectors[0]);
	user->on = false;
	user->nopass = false;
	user->payload = HS_ACL_PAYLOAD_SANITIZE;
}

/* Applies a rule that is one fixed word. False: the word is no such rule. */
static bool apply_plain(struct hs_acl_user *user, struct hs_bytes word)
{
	if (hs_bytes_is_word(word, "on")) {
		user->on = true;
	} else if (hs_bytes_is_word(word, "off")) {
		user->on = false;
	} else if (hs_bytes_is_word(word, "nopass")) {
		clear_passwords(user);
		user->nopass = true;
	} else if (hs_bytes_is_word(word, "resetpass")) {
		clear_passwords(user);
		user->nopass = false;
	} else if (hs_bytes_is_word(word, "sanitize-payload")) {
		user->payload = HS_ACL_PAYLOAD_SANITIZE;
	} else if (hs_bytes_is_word(word, "skip-sanitize-payload")) {
		user->payload = HS_ACL_PAYLOAD_SKIP;
	} else if (hs_bytes_is_word(word, "clearselectors")) {
		clear_selectors(user);
	} else if (hs_bytes_is_word(word, "reset")) {
		reset(user);
	} else {
		return false;
	}
	return true;
}

static const char *apply(struct hs_acl_user *user, struct hs_bytes word,
			 const struct hs_acl_rules *rules)
{
	if (word.len == 0 || apply_plain(user, word)) /* as in Redis an empty rule is allowed */
		return NULL;
	if (word.data[0] != '\0' && strchr("><#!", word.data[0]))
		return apply_password(user, word);
	if (word.len > 1 && word.data[0] == '(' && word.data[word.len - 1] == ')')
		return apply_selector(user, word, rules);
	return hs_acl_selector_apply(&user->selectors[0], word, rules);
}

static void note(struct hs_acl_error *error, struct hs_bytes word, const char *why)
{
	/* Shown as a C string: up to a zero byte. */
	snprintf(error->word, sizeof error->word, "%.*s", (int)(word.len < 255 ? word.len : 255),
		 word.data);
	error->why = why;
	error->unmatched = why && strcmp(why, UNMATCHED) == 0;
}

/* Joins the words of a selector that spaces split: "(+get" "~a" "~b)". */
static bool join_selector(const struct hs_acl_rules *rules, size_t *at, struct hs_buf *joined)
{
	joined->len = 0;
	for (size_t i = *at; i < rules->count; i++) {
		struct hs_bytes word = rules->words[i];

		if (i > *at)
			hs_buf_append(joined, " ", 1);
		hs_buf_append_bytes(joined, word);
		if (word.len > 0 && word.data[word.len - 1] == ')') {
			*at = i;
			return true;
		}
	}
	return false;
}

static bool opens_selector(struct hs_bytes word)
{
	return word.len > 0 && word.data[0] == '(';
}

static const char *apply_all(struct hs_acl_user *user, const struct hs_acl_rules *rules,
			     struct hs_acl_error *error)
{
	struct hs_buf joined = {0};
	const char *why = NULL;

	/* As in Redis, an unclosed parenthesis is reported before any rule is applied. */
	for (size_t i = 0; i < rules->count && !why; i++) {
		struct hs_bytes word = rules->words[i];

		if (opens_selector(word) && !join_selector(rules, &i, &joined)) {
			why = UNMATCHED;
			note(error, word, why);
		}
	}
	for (size_t i = 0; i < rules->count && !why; i++) {
		struct hs_bytes word = rules->words[i];

		if (opens_selector(word)) {
			hs_check(join_selector(rules, &i, &joined));
			word = hs_buf_bytes(&joined);
		}
		why = apply(user, word, rules);
		if (why)
			note(error, word, why);
	}
	hs_buf_deinit(&joined);
	return why;
}

/* --- the finished user --- */

static void finish_selector(struct hs_acl_selector *selector)
{
	selector->all_commands = selector->starts_with_all;
	selector->has_arguments = false;
	for (size_t i = 0; i < selector->rules_count; i++) {
		const struct hs_acl_rule *rule = &selector->rules[i];

		selector->all_commands = selector->all_commands && rule->allow;
		if (rule->name && strchr(rule->name, '|'))
			selector->has_arguments = true;
	}
	memset(selector->allowed, 0, sizeof selector->allowed);
	for (unsigned id = HS_CMD_ID_NONE + 1; id < HS_CMD_IDS; id++) {
		const struct hs_command *command = hs_command_by_id((enum hs_command_id)id);

		if (hs_acl_rules_allow(selector, command, 0, NULL))
			selector->allowed[id / 64] |= UINT64_C(1) << (id % 64);
	}
}

static void finish(struct hs_acl_user *user)
{
	bool limits_keys = false;

	user->unlimited = false;
	for (size_t i = 0; i < user->selectors_count; i++) {
		struct hs_acl_selector *selector = &user->selectors[i];

		finish_selector(selector);
		limits_keys |= !selector->all_keys;
		user->unlimited |=
			selector->all_commands && selector->all_keys && selector->all_channels;
	}
	for (unsigned id = HS_CMD_ID_NONE + 1; limits_keys && id < HS_CMD_IDS; id++)
		user->access[id] = hs_acl_access_of(hs_command_by_id((enum hs_command_id)id));
}

static bool too_long(const struct hs_acl_user *user)
{
	struct hs_buf text = {0};
	bool long_one;

	hs_acl_user_describe(user, &text);
	long_one = text.len > HS_ACL_USER_BYTES_MAX;
	hs_buf_deinit(&text);
	return long_one;
}

struct hs_acl_user *hs_acl_user_change(const struct hs_acl_user *base, struct hs_bytes name,
				       const struct hs_acl_rules *rules, struct hs_acl_error *error)
{
	struct hs_acl_user *user = create(name.data, name.len);
	const char *why;

	if (base)
		copy_into(user, base);
	why = apply_all(user, rules, error);
	if (!why && too_long(user)) {
		why = "the rules of one user may take at most 8192 bytes";
		note(error, rules->count > 0 ? rules->words[rules->count - 1] : name, why);
	}
	if (why) {
		hs_acl_user_unref(&user);
		return NULL;
	}
	finish(user);
	return user;
}

struct hs_acl_user *hs_acl_user_with_password(const struct hs_acl_user *base, const char *password)
{
	struct hs_acl_user *user = create(base->name, strlen(base->name));
	uint8_t digest[HS_SHA256_BYTES];

	copy_into(user, base);
	clear_passwords(user);
	user->nopass = password[0] == '\0';
	if (!user->nopass) {
		hs_sha256(hs_bytes_of(password), digest);
		add_password(user, digest);
	}
	finish(user);
	return user;
}

struct hs_bytes hs_acl_user_name(const struct hs_acl_user *user)
{
	return hs_bytes_of(user->name);
}

bool hs_acl_user_is_on(const struct hs_acl_user *user)
{
	return user->on;
}

bool hs_acl_user_has_nopass(const struct hs_acl_user *user)
{
	return user->nopass;
}

bool hs_acl_user_is_open(const struct hs_acl_user *user)
{
	uint8_t empty[HS_SHA256_BYTES];
	bool open = user->nopass;

	hs_sha256(HS_LIT(""), empty);
	for (size_t i = 0; i < user->passwords_count; i++)
		open |= memcmp(user->passwords[i], empty, sizeof empty) == 0;
	return user->on && open;
}

bool hs_acl_user_is_unlimited(const struct hs_acl_user *user)
{
	return user->unlimited;
}
