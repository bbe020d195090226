/* A user as text: as a line of rules, and as the reply of ACL GETUSER. */
#include "acl/internal.h"

#include "wire/reply.h"

/* Appends a space between two words. */
static void begin_word(struct hs_buf *text, size_t start)
{
	if (text->len > start)
		hs_buf_append(text, " ", 1);
}

static void describe_keys(const struct hs_acl_selector *selector, struct hs_buf *text)
{
	static const char *const prefixes[] = {"", "%R~", "%W~", "~"};
	size_t start = text->len;

	if (selector->all_keys)
		hs_buf_append(text, "~*", 2);
	for (size_t i = 0; i < selector->keys.count; i++) {
		const struct hs_acl_pattern *pattern = &selector->keys.at[i];

		begin_word(text, start);
		hs_buf_append_bytes(text, hs_bytes_of(prefixes[pattern->access]));
		hs_buf_append(text, pattern->text, pattern->len);
	}
}

static void describe_channels(const struct hs_acl_selector *selector, struct hs_buf *text)
{
	size_t start = text->len;

	if (selector->all_channels)
		hs_buf_append(text, "&*", 2);
	for (size_t i = 0; i < selector->channels.count; i++) {
		begin_word(text, start);
		hs_buf_append(text, "&", 1);
		hs_buf_append(text, selector->channels.at[i].text, selector->channels.at[i].len);
	}
}

static void describe_commands(const struct hs_acl_selector *selector, struct hs_buf *text)
{
	hs_buf_printf(text, selector->starts_with_all ? "+@all" : "-@all");
	for (size_t i = 0; i < selector->rules_count; i++) {
		const struct hs_acl_rule *rule = &selector->rules[i];

		hs_buf_printf(text, " %c%s%s", rule->allow ? '+' : '-', rule->category ? "@" : "",
			      rule->category ? hs_acl_category_of(rule->category) : rule->name);
	}
	if (selector->unchecked)
		hs_buf_printf(text, " +script|unchecked");
}

static void describe_selector(const struct hs_acl_selector *selector, struct hs_buf *text)
{
	if (selector->all_keys || selector->keys.count > 0) {
		describe_keys(selector, text);
		hs_buf_append(text, " ", 1);
	}
	if (!selector->all_channels)
		hs_buf_printf(text, "resetchannels ");
	if (selector->all_channels || selector->channels.count > 0) {
		describe_channels(selector, text);
		hs_buf_append(text, " ", 1);
	}
	describe_commands(selector, text);
}

static void describe_hash(const uint8_t digest[HS_SHA256_BYTES], struct hs_buf *text)
{
	for (size_t i = 0; i < HS_SHA256_BYTES; i++)
		hs_buf_printf(text, "%02x", digest[i]);
}

static const char *payload_word(const struct hs_acl_user *user)
{
	return user->payload == HS_ACL_PAYLOAD_SANITIZE ? "sanitize-payload"
							: "skip-sanitize-payload";
}

void hs_acl_user_describe(const struct hs_acl_user *user, struct hs_buf *text)
{
	hs_buf_printf(text, "%s %s ", user->name, user->on ? "on" : "off");
	if (user->nopass)
		hs_buf_printf(text, "nopass ");
	if (user->payload != HS_ACL_PAYLOAD_UNSET)
		hs_buf_printf(text, "%s ", payload_word(user));
	for (size_t i = 0; i < user->passwords_count; i++) {
		hs_buf_append(text, "#", 1);
		describe_hash(user->passwords[i], text);
		hs_buf_append(text, " ", 1);
	}
	describe_selector(&user->selectors[0], text);
	for (size_t i = 1; i < user->selectors_count; i++) {
		hs_buf_append(text, " (", 2);
		describe_selector(&user->selectors[i], text);
		hs_buf_append(text, ")", 1);
	}
}

/* Replies with a selector as three pairs: commands, keys, channels. */
static void reply_selector(const struct hs_acl_selector *selector, struct hs_reply *reply)
{
	struct hs_buf text = {0};

	describe_commands(selector, &text);
	hs_reply_pair(reply, "commands", hs_buf_bytes(&text));
	text.len = 0;
	describe_keys(selector, &text);
	hs_reply_pair(reply, "keys", hs_buf_bytes(&text));
	text.len = 0;
	describe_channels(selector, &text);
	hs_reply_pair(reply, "channels", hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

static void reply_passwords(const struct hs_acl_user *user, struct hs_reply *reply)
{
	struct hs_buf text = {0};

	hs_reply_array(reply, user->passwords_count);
	for (size_t i = 0; i < user->passwords_count; i++) {
		text.len = 0;
		describe_hash(user->passwords[i], &text);
		hs_reply_bulk(reply, hs_buf_bytes(&text));
	}
	hs_buf_deinit(&text);
}

void hs_acl_user_reply(const struct hs_acl_user *user, struct hs_reply *reply)
{
	bool payload = user->payload != HS_ACL_PAYLOAD_UNSET;

	hs_reply_map(reply, 6);
	hs_reply_bulk_text(reply, "flags");
	hs_reply_set(reply, 1u + user->nopass + payload);
	hs_reply_bulk_text(reply, user->on ? "on" : "off");
	if (user->nopass)
		hs_reply_bulk_text(reply, "nopass");
	if (payload)
		hs_reply_bulk_text(reply, payload_word(user));
	hs_reply_bulk_text(reply, "passwords");
	reply_passwords(user, reply);
	reply_selector(&user->selectors[0], reply);
	hs_reply_bulk_text(reply, "selectors");
	hs_reply_array(reply, user->selectors_count - 1);
	for (size_t i = 1; i < user->selectors_count; i++) {
		hs_reply_map(reply, 3);
		reply_selector(&user->selectors[i], reply);
	}
}
