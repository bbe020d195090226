/* Goal: ACL rules become users, users become sets, and a set of users decides which requests a user may send.
 *
 * Method: each rule by itself: what it changes, the error for a wrong one, the limits, rows learned from a server,
 * and that a set never changes after its creation. tests/integration/test_acl_differential.py compares random
 * rules with Redis. */
#include "acl/acl.h"

#include "base/limits.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { WORDS_MAX = 64 };

/* Splits words at spaces; \1 stands for a space inside a word. */
static size_t split(char *text, struct hs_bytes *words)
{
	size_t count = 0;

	for (char *word = text; *word;) {
		size_t len = strcspn(word, " ");
		bool last = word[len] == '\0';

		for (size_t i = 0; i < len; i++)
			word[i] = word[i] == '\1' ? ' ' : word[i];
		if (len > 0)
			words[count++] = (struct hs_bytes){word, len};
		word += len + !last;
	}
	return count;
}

static struct hs_acl_error wrong;

static struct hs_acl_user *change(const struct hs_acl_user *base, const char *text, bool any)
{
	struct hs_bytes words[WORDS_MAX];
	char *copy = hs_mem_dup(text, strlen(text));
	struct hs_acl_rules rules = {.words = words, .any_command = any};
	struct hs_acl_user *user;

	wrong = (struct hs_acl_error){0};
	rules.count = split(copy, words);
	user = hs_acl_user_change(base, HS_LIT("alice"), &rules, &wrong);
	hs_mem_free(&copy);
	return user;
}

static struct hs_acl_user *make(const char *text)
{
	struct hs_acl_user *user = change(NULL, text, false);

	if (!user)
		fail_msg("'%s' at '%s': %s", text, wrong.word, wrong.why);
	return user;
}

static void reads(const struct hs_acl_user *user, const char *wanted)
{
	struct hs_buf text = {0};

	hs_acl_user_describe(user, &text);
	hs_buf_append(&text, "", 1);
	assert_string_equal(text.data, wanted);
	hs_buf_deinit(&text);
}

/* Asserts that `rules` make a user whose description is `wanted`. */
static void becomes(const char *rules, const char *wanted)
{
	struct hs_acl_user *user = make(rules);

	reads(user, wanted);
	hs_acl_user_unref(&user);
}

static void is_wrong(const char *rules, const char *word, const char *why)
{
	assert_null(change(NULL, rules, false));
	assert_string_equal(wrong.word, word);
	assert_non_null(strstr(wrong.why, why));
}

static enum hs_acl_verdict verdict(const struct hs_acl_user *user, const char *text, size_t *at)
{
	struct hs_bytes words[WORDS_MAX];
	char *copy = hs_mem_dup(text, strlen(text));
	size_t count = split(copy, words);
	const struct hs_command *command = hs_command_find(words[0]);
	enum hs_acl_verdict found;

	assert_non_null(command);
	if (command->place == HS_PLACE_PARENT && count > 1)
		command = hs_command_sub(command, words[1]);
	assert_non_null(command);
	found = hs_acl_check(user, command, count, words, at);
	hs_mem_free(&copy);
	return found;
}

static void may(const struct hs_acl_user *user, const char *request)
{
	size_t at;

	if (verdict(user, request, &at) != HS_ACL_OK)
		fail_msg("'%s' is refused", request);
}

static void is_denied(const struct hs_acl_user *user, const char *request, enum hs_acl_verdict why,
		      size_t where)
{
	size_t at;

	if (verdict(user, request, &at) != why || at != where)
		fail_msg("'%s': %d at %zu", request, (int)verdict(user, request, &at), at);
}

static void test_rules_read_back(void **state)
{
	(void)state;
	becomes("", "alice off resetchannels -@all");
	becomes("on nopass ~* &* +@all", "alice on nopass ~* &* +@all");
	becomes("ON NOPASS AllKeys allChannels allCommands", "alice on nopass ~* &* +@all");
	becomes("~a ~b %R~c %w~d %rw~e %R~d", "alice off ~a ~b %R~c ~d ~e resetchannels -@all");
	becomes("~a resetkeys ~b", "alice off ~b resetchannels -@all");
	becomes("&a &b &a", "alice off resetchannels &a &b -@all");
	becomes("&a resetchannels &b", "alice off resetchannels &b -@all");
	becomes("+@all -get +@read", "alice off resetchannels +@all -get +@read");
	becomes("+get +@read -get +@all", "alice off resetchannels +@all");
	becomes("+get nocommands", "alice off resetchannels -@all");
	becomes("+GET +Client|ID +select|X",
		"alice off resetchannels -@all +get +client|id +select|X");
	/* A rule that a later rule overrides is dropped from the description. */
	becomes("+get -get +get", "alice off resetchannels -@all +get");
	becomes("+config|get -config|set +config", "alice off resetchannels -@all +config");
	becomes("+@read -@read", "alice off resetchannels -@all -@read");
	becomes("(~a +get) ( +set ~b ) ()",
		"alice off resetchannels -@all (~a resetchannels -@all +get) "
		"(~b resetchannels -@all +set) (resetchannels -@all)");
	becomes("(+get) clearselectors", "alice off resetchannels -@all");
	becomes("on nopass ~* +@all (+get) reset",
		"alice off sanitize-payload resetchannels -@all");
	becomes("skip-sanitize-payload", "alice off skip-sanitize-payload resetchannels -@all");
}

#define HASH "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b" /* of "secret" */

static void test_passwords(void **state)
{
	struct hs_acl_user *user;

	(void)state;
	becomes(">secret >secret", "alice off #" HASH " resetchannels -@all");
	becomes("#" HASH, "alice off #" HASH " resetchannels -@all");
	becomes(">secret >other <other", "alice off #" HASH " resetchannels -@all");
	becomes(">secret !" HASH, "alice off resetchannels -@all");
	becomes(">secret nopass", "alice off nopass resetchannels -@all");
	becomes("nopass >secret", "alice off #" HASH " resetchannels -@all");
	becomes("nopass resetpass", "alice off resetchannels -@all");
	user = make("on nopass +get");
	struct hs_acl_user *secured = hs_acl_user_with_password(user, "secret");

	reads(secured, "alice on #" HASH " resetchannels -@all +get");
	reads(user, "alice on nopass resetchannels -@all +get");
	hs_acl_user_unref(&user);
	user = hs_acl_user_with_password(secured, "");
	reads(user, "alice on nopass resetchannels -@all +get");
	hs_acl_user_unref(&user);
	hs_acl_user_unref(&secured);
}

static void test_wrong_rules(void **state)
{
	(void)state;
	is_wrong("+get +nosuch", "+nosuch", "Unknown command");
	is_wrong("-nosuch", "-nosuch", "Unknown command");
	is_wrong("+@nosuch", "+@nosuch", "Unknown command");
	is_wrong("+client|nosuch", "+client|nosuch", "Unknown command");
	is_wrong("-select|0", "-select|0", "Unknown command");
	is_wrong("+client|", "+client|", "Syntax");
	is_wrong("+config|get|x", "+config|get|x", "first-arg of a subcommand");
	is_wrong("nosuch", "nosuch", "Syntax");
	is_wrong("%~a", "%~a", "Syntax");
	is_wrong("%RR~a", "%RR~a", "Syntax");
	is_wrong("%X~a", "%X~a", "Syntax");
	is_wrong("~a\1b", "~a b", "Syntax");
	is_wrong("&a\1b", "&a b", "Syntax");
	is_wrong("~* ~a", "~a", "resetkeys");
	is_wrong("&* &a", "&a", "resetchannels");
	is_wrong("#abc", "#abc", "64");
	is_wrong("!" HASH "0", "!" HASH "0", "64");
	is_wrong("<secret", "<secret", "does not exist");
	is_wrong("(+nosuch)", "(+nosuch)", "Unknown command");
	is_wrong("(on)", "(on)", "Syntax");
	is_wrong("+nosuch (+get ~a", "(+get", "Unmatched");
	assert_true(wrong.unmatched);
}

static void test_commands(void **state)
{
	struct hs_acl_user *user =
		make("~* &* +@read -strlen +client|id +config -config|set +select|0");

	(void)state;
	may(user, "GET a");
	may(user, "MGET a b");
	is_denied(user, "STRLEN a", HS_ACL_COMMAND, 0);
	is_denied(user, "SET a 1", HS_ACL_COMMAND, 0);
	may(user, "CLIENT ID");
	is_denied(user, "CLIENT LIST", HS_ACL_COMMAND, 0);
	may(user, "CONFIG GET x");
	is_denied(user, "CONFIG SET x y", HS_ACL_COMMAND, 0);
	may(user, "SELECT 0");
	is_denied(user, "SELECT 1", HS_ACL_COMMAND, 0);
	/* A user without any permission may still authenticate, say HELLO and quit. */
	may(user, "AUTH a b");
	may(user, "HELLO 3");
	may(user, "QUIT");
	may(user, "RESET");
	assert_false(hs_acl_user_is_unlimited(user));
	hs_acl_user_unref(&user);

	user = make("~* &* +@all -debug +debug|sleep");
	may(user, "DEBUG SLEEP 0");
	is_denied(user, "DEBUG HELP", HS_ACL_COMMAND, 0);
	assert_string_equal(hs_acl_command_name(hs_command_by_id(HS_CMD_ID_DEBUG_HELP)), "debug");
	hs_acl_user_unref(&user);
}

static void test_keys(void **state)
{
	struct hs_acl_user *user = make("+@all &* ~own:* %R~in:* %W~out:*");

	(void)state;
	may(user, "SET own:a 1 GET");
	may(user, "GET in:a");
	is_denied(user, "SET in:a 1", HS_ACL_KEY, 1);
	may(user, "SET out:a 1");
	is_denied(user, "SET out:a 1 GET", HS_ACL_KEY, 1);
	is_denied(user, "GET out:a", HS_ACL_KEY, 1);
	is_denied(user, "APPEND in:a x", HS_ACL_KEY, 1);
	/* EXISTS needs no read permission, because it does not read the value. */
	may(user, "EXISTS in:a out:a own:a");
	is_denied(user, "EXISTS in:a other", HS_ACL_KEY, 2);
	may(user, "COPY in:a out:a");
	is_denied(user, "COPY out:a in:a", HS_ACL_KEY, 1);
	is_denied(user, "COPY in:a in:b", HS_ACL_KEY, 2);
	is_denied(user, "MSET out:a 1 in:a 2", HS_ACL_KEY, 3);
	may(user, "KEYS *"); /* KEYS has no key argument to check */
	hs_acl_user_unref(&user);
}

static void test_selectors(void **state)
{
	struct hs_acl_user *user = make("+get ~a (+set ~b) (+@all -get %R~c)");

	(void)state;
	may(user, "GET a");
	may(user, "SET b 1");
	may(user, "STRLEN c");
	/* If several selectors deny a request for different reasons, the check reports the key. */
	is_denied(user, "SET a 1", HS_ACL_KEY, 1);
	is_denied(user, "MGET c d", HS_ACL_KEY, 2);
	hs_acl_user_unref(&user);
	user = make("+get ~a (+set ~b)");
	is_denied(user, "DEL a", HS_ACL_COMMAND, 0);
	hs_acl_user_unref(&user);
	user = make("off (+@all ~* &*)");
	assert_true(hs_acl_user_is_unlimited(user));
	hs_acl_user_unref(&user);
}

static void test_channels(void **state)
{
	struct hs_acl_user *user = make("&news.* &x (&y)");

	(void)state;
	assert_true(hs_acl_may_channel(user, HS_LIT("news.a"), false));
	assert_true(hs_acl_may_channel(user, HS_LIT("y"), false));
	assert_false(hs_acl_may_channel(user, HS_LIT("z"), false));
	assert_true(hs_acl_may_channel(user, HS_LIT("news.*"), true));
	assert_false(hs_acl_may_channel(user, HS_LIT("news.a*"), true));
	hs_acl_user_unref(&user);
	user = make("&*");
	assert_true(hs_acl_may_channel(user, HS_LIT("z*"), true));
	hs_acl_user_unref(&user);
}

/* The command table lacks some commands; the server describes their rows. A user with restrictions needs
 * +script|unchecked to run one. */
static void test_unchecked(void **state)
{
	static const struct {
		const char *rules;
		enum hs_acl_verdict verdict;
	} cases[] = {
		{"+@all ~* &*", HS_ACL_OK},
		{"+@all +get ~* &*", HS_ACL_OK}, /* +get restricts nothing after +@all */
		{"+@all ~*", HS_ACL_UNCHECKED},
		{"+@all ~a &*", HS_ACL_UNCHECKED},
		{"+@all -get ~* &*", HS_ACL_UNCHECKED},
		{"+eval ~* &*", HS_ACL_UNCHECKED},
		{"+eval ~b &*", HS_ACL_KEY},
		{"+get ~* &*", HS_ACL_COMMAND},
		{"+get +script|unchecked ~* &*", HS_ACL_COMMAND},
		{"+eval +script|unchecked ~b &*", HS_ACL_KEY},
		{"+eval +script|unchecked ~a", HS_ACL_OK},
		{"+SCRIPT|UNCHECKED +eval ~a", HS_ACL_OK},
		{"+eval +script|unchecked -script|unchecked ~a", HS_ACL_UNCHECKED},
		{"+script|unchecked -@scripting +eval ~a", HS_ACL_UNCHECKED},
		{"+script|unchecked -@all +eval ~a", HS_ACL_UNCHECKED},
		{"+script|unchecked +@all -get ~a", HS_ACL_OK},
		{"+script|unchecked +@scripting +script|load ~a", HS_ACL_OK},
		{"+get (+eval +script|unchecked ~a)", HS_ACL_OK},
		/* script|unchecked counts only in the selector that grants it. */
		{"+script|unchecked (+eval ~a)", HS_ACL_UNCHECKED},
		{"+get (+@all ~* &*)", HS_ACL_OK},
	};
	const struct hs_command eval = {.name = "eval",
					.id = HS_CMD_IDS,
					.flags = HS_CMD_UNCHECKED | HS_CMD_WRITE,
					.key_first = 1,
					.key_last = 1,
					.key_step = 1,
					.categories = "@slow @scripting"};
	const struct hs_bytes a[] = {HS_LIT("x"), HS_LIT("a")};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_acl_user *user = change(NULL, cases[i].rules, true);
		size_t at;

		assert_non_null(user);
		if (hs_acl_check(user, &eval, 2, a, &at) != cases[i].verdict)
			fail_msg("%s", cases[i].rules);
		hs_acl_user_unref(&user);
	}
	/* ACL rules accept script|unchecked even if the server has no command SCRIPT. */
	becomes("+script|unchecked +get", "alice off resetchannels -@all +get +script|unchecked");
	becomes("+@all +script|unchecked", "alice off resetchannels +@all +script|unchecked");
	becomes("+script|unchecked nocommands", "alice off resetchannels -@all");
}

static void test_learned_rows(void **state)
{
	static const struct hs_key_spec unknown = {.search = HS_KEY_SEARCH_UNKNOWN, .step = 1};
	static const struct hs_key_spec counted = {.search = HS_KEY_SEARCH_INDEX,
						   .find = HS_KEY_FIND_KEYNUM,
						   .flags = HS_KEY_RO | HS_KEY_ACCESS,
						   .index = 2,
						   .first = 1,
						   .step = 1};
	const struct hs_command hget = {.name = "hget",
					.id = HS_CMD_IDS,
					.flags = HS_CMD_READONLY,
					.key_first = 1,
					.key_last = 1,
					.key_step = 1,
					.categories = "@read @hash @fast"};
	const struct hs_command create = {.name = "xgroup|create",
					  .id = HS_CMD_IDS + 1,
					  .flags = HS_CMD_WRITE,
					  .key_first = 2,
					  .key_last = 2,
					  .key_step = 1,
					  .categories = "@write @stream @slow"};
	const struct hs_command module = {.name = "mod.do",
					  .id = HS_CMD_IDS + 2,
					  .key_specs = &unknown,
					  .key_specs_count = 1,
					  .categories = "@write"};
	const struct hs_command eval = {.name = "eval",
					.id = HS_CMD_IDS + 3,
					.key_specs = &counted,
					.key_specs_count = 1,
					.categories = "@slow @scripting"};
	const struct hs_bytes keys[] = {HS_LIT("x"), HS_LIT("1"), HS_LIT("1"), HS_LIT("a")};
	const struct hs_bytes odd[] = {HS_LIT("x"), HS_LIT("1"), HS_LIT("9"), HS_LIT("a")};
	const struct hs_bytes a[] = {HS_LIT("x"), HS_LIT("a"), HS_LIT("b")};
	struct hs_acl_user *user = change(NULL, "+@hash +XGROUP|CREATE +@all -hset ~a", true);
	size_t at;

	(void)state;
	assert_int_equal(hs_acl_check(user, &hget, 3, a, &at), HS_ACL_OK);
	assert_int_equal(hs_acl_check(user, &create, 3, a, &at), HS_ACL_KEY);
	assert_int_equal(at, 2);
	/* If the key positions are unknown, the command needs access to all keys. */
	assert_int_equal(hs_acl_check(user, &module, 3, a, &at), HS_ACL_KEY);
	assert_int_equal(hs_acl_check(user, &eval, 4, keys, &at), HS_ACL_OK);
	assert_int_equal(hs_acl_check(user, &eval, 4, odd, &at), HS_ACL_KEY);
	hs_acl_user_unref(&user);

	user = change(NULL, "+hget +XGROUP|CREATE %RW~*", true);
	assert_int_equal(hs_acl_check(user, &hget, 3, a, &at), HS_ACL_OK);
	assert_int_equal(hs_acl_check(user, &create, 3, a, &at), HS_ACL_OK);
	assert_int_equal(hs_acl_check(user, &module, 3, a, &at), HS_ACL_COMMAND);
	hs_acl_user_unref(&user);

	user = change(NULL, "+@all -@hash -xgroup %RW~*", true);
	assert_int_equal(hs_acl_check(user, &hget, 3, a, &at), HS_ACL_COMMAND);
	assert_int_equal(hs_acl_check(user, &create, 3, a, &at), HS_ACL_COMMAND);
	assert_int_equal(hs_acl_check(user, &module, 3, a, &at), HS_ACL_OK);
	hs_acl_user_unref(&user);
}

static void test_sort_follows_patterns(void **state)
{
	const struct hs_command sort = {.name = "sort",
					.id = HS_CMD_IDS,
					.key_first = 1,
					.key_last = 1,
					.key_step = 1,
					.key_access = "RO access",
					.categories = "@read"};
	const struct hs_bytes by[] = {HS_LIT("sort"), HS_LIT("a"), HS_LIT("by"), HS_LIT("w_*")};
	const struct hs_bytes nosort[] = {HS_LIT("sort"), HS_LIT("a"), HS_LIT("BY"), HS_LIT("get")};
	const struct hs_bytes get[] = {HS_LIT("sort"), HS_LIT("a"),   HS_LIT("LIMIT"), HS_LIT("0"),
				       HS_LIT("get"),  HS_LIT("GET"), HS_LIT("#")};
	struct hs_acl_user *user = make("+@all ~a");
	size_t at;

	(void)state;
	assert_int_equal(hs_acl_check(user, &sort, 2, by, &at), HS_ACL_OK);
	assert_int_equal(hs_acl_check(user, &sort, 4, by, &at), HS_ACL_SORT_BY);
	assert_int_equal(hs_acl_check(user, &sort, 4, nosort, &at), HS_ACL_OK);
	assert_int_equal(hs_acl_check(user, &sort, 7, get, &at), HS_ACL_SORT_GET);
	hs_acl_user_unref(&user);
	user = make("+@all ~a %R~*");
	assert_int_equal(hs_acl_check(user, &sort, 4, by, &at), HS_ACL_OK);
	hs_acl_user_unref(&user);
}

static void named(const struct hs_acl *acl, const char *names)
{
	struct hs_buf text = {0};

	for (size_t i = 0; i < hs_acl_count(acl); i++)
		hs_buf_printf(&text, "%s%s", i > 0 ? " " : "",
			      hs_acl_user_name(hs_acl_at(acl, i)).data);
	hs_buf_append(&text, "", 1);
	assert_string_equal(text.data, names);
	hs_buf_deinit(&text);
}

static struct hs_acl *with(const struct hs_acl *acl, const char *name, const char *rule)
{
	const struct hs_bytes word = hs_bytes_of(rule);
	struct hs_acl_rules rules = {.count = 1, .words = &word};

	return hs_acl_with(acl, hs_acl_user_change(NULL, hs_bytes_of(name), &rules, &wrong));
}

static void test_sets_never_change(void **state)
{
	struct hs_acl *none = hs_acl_create();
	struct hs_acl *one = with(none, "b", "on"), *two = with(one, "a", "on");
	struct hs_acl *three = with(two, "c", "on"), *changed = with(three, "b", "off");
	struct hs_acl *fewer = hs_acl_without(three, HS_LIT("b"));
	struct hs_acl *same = hs_acl_without(three, HS_LIT("nobody"));
	struct hs_acl *held = hs_acl_ref(three);

	(void)state;
	named(none, "");
	named(one, "b");
	named(two, "a b");
	named(three, "a b c");
	named(changed, "a b c");
	named(fewer, "a c");
	assert_true(hs_acl_same(same, three));
	assert_false(hs_acl_same(changed, three));
	assert_false(hs_acl_same(fewer, three));
	assert_true(hs_acl_user_is_on(hs_acl_find(three, HS_LIT("b"))));
	assert_false(hs_acl_user_is_on(hs_acl_find(changed, HS_LIT("b"))));
	assert_null(hs_acl_find(fewer, HS_LIT("b")));
	hs_acl_unref(&three);
	assert_null(three);
	named(held, "a b c");
	hs_acl_unref(&none);
	hs_acl_unref(&one);
	hs_acl_unref(&two);
	hs_acl_unref(&changed);
	hs_acl_unref(&fewer);
	hs_acl_unref(&same);
	hs_acl_unref(&held);
}

static void test_login(void **state)
{
	struct hs_acl *open = hs_acl_create_open(""), *shut = hs_acl_create_open("secret");
	struct hs_acl *more = with(open, "alice", ">secret");
	const struct hs_acl_user *user = hs_acl_login(open, HS_LIT("default"), HS_LIT("whatever"));

	(void)state;
	assert_non_null(user);
	assert_true(hs_acl_user_is_unlimited(user));
	assert_true(hs_acl_user_has_nopass(user));
	assert_null(hs_acl_login(shut, HS_LIT("default"), HS_LIT("whatever")));
	assert_non_null(hs_acl_login(shut, HS_LIT("default"), HS_LIT("secret")));
	assert_null(hs_acl_login(open, HS_LIT("nobody"), HS_LIT("x")));
	assert_null(hs_acl_login(more, HS_LIT("alice"), HS_LIT("secret"))); /* alice is disabled */
	hs_acl_unref(&open);
	open = hs_acl_with(more, make("on >one >two"));
	assert_non_null(hs_acl_login(open, HS_LIT("alice"), HS_LIT("one")));
	assert_non_null(hs_acl_login(open, HS_LIT("alice"), HS_LIT("two")));
	assert_null(hs_acl_login(open, HS_LIT("alice"), HS_LIT("")));
	hs_acl_unref(&open);
	/* A user without a password rejects every password. */
	open = hs_acl_with(more, make("on"));
	assert_null(hs_acl_login(open, HS_LIT("alice"), HS_LIT("")));
	hs_acl_unref(&open);
	hs_acl_unref(&shut);
	hs_acl_unref(&more);
}

static void test_a_change_leaves_the_old_user(void **state)
{
	struct hs_acl_user *old = make("on >secret ~a &b +get (+set ~c)");
	struct hs_acl_user *changed = change(old, "resetkeys ~x -get clearselectors", false);

	(void)state;
	reads(changed, "alice on #" HASH " ~x resetchannels &b -@all -get");
	reads(old,
	      "alice on #" HASH " ~a resetchannels &b -@all +get (~c resetchannels -@all +set)");
	assert_null(change(old, "resetkeys +nosuch", false));
	hs_acl_user_unref(&old);
	hs_acl_user_unref(&changed);
}

static void test_rules_of_a_user_are_bounded(void **state)
{
	struct hs_acl_user *user = make("on");
	char rule[1100];

	(void)state;
	memset(rule, 'x', sizeof rule);
	for (char i = 'a'; user; i++) {
		struct hs_acl_user *more;

		snprintf(rule, sizeof rule, "~%c%01000d", i, 0);
		more = change(user, rule, false);
		if (!more)
			break;
		hs_acl_user_unref(&user);
		user = more;
		assert_true(i < 'j');
	}
	assert_non_null(strstr(wrong.why, "8192"));
	assert_int_equal(HS_ACL_USER_BYTES_MAX, 8192);
	hs_acl_user_unref(&user);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules_read_back),
		cmocka_unit_test(test_passwords),
		cmocka_unit_test(test_wrong_rules),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_selectors),
		cmocka_unit_test(test_channels),
		cmocka_unit_test(test_unchecked),
		cmocka_unit_test(test_learned_rows),
		cmocka_unit_test(test_sort_follows_patterns),
		cmocka_unit_test(test_sets_never_change),
		cmocka_unit_test(test_login),
		cmocka_unit_test(test_a_change_leaves_the_old_user),
		cmocka_unit_test(test_rules_of_a_user_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
