/* `user` lines: users as options. A line is `user NAME RULE…`, one per user; its rules start from a user without any
 * permission. Without a `user default` line, the default user is added as requirepass defines it. */
#include "serve/options.h"

#include "base/err.h"
#include "base/escape.h"
#include "base/limits.h"
#include "command/secret.h"
#include "wire/request.h"

#include <stdio.h>

struct hs_acl *hs_options_acl(const struct hs_options *options)
{
	struct hs_acl *open, *all;
	const struct hs_acl_user *user;

	if (hs_acl_find(options->users, HS_LIT("default")))
		return hs_acl_ref(options->users);
	open = hs_acl_create_open(options->requirepass);
	user = hs_acl_find(open, HS_LIT("default"));
	all = hs_acl_with(options->users, hs_acl_user_ref(user));
	hs_acl_unref(&open);
	return all;
}

void hs_options_set_users(struct hs_options *options, struct hs_acl *users)
{
	hs_acl_unref(&options->users);
	options->users = users;
}

void hs_options_put_user(struct hs_options *options, struct hs_acl_user *user)
{
	hs_options_set_users(options, hs_acl_with(options->users, user));
}

void hs_options_set_default_password(struct hs_options *options)
{
	const struct hs_acl_user *user = hs_acl_find(options->users, HS_LIT("default"));

	if (user)
		hs_options_put_user(options, hs_acl_user_with_password(user, options->requirepass));
}

bool hs_options_any_command(const struct hs_options *options)
{
	return strcmp(options->engine, "embedded") != 0;
}

/* `words`: the name and the rules. */
static int add(const struct hs_options *options, struct hs_acl **users, size_t count,
	       const struct hs_bytes *words, char *error, size_t error_size)
{
	struct hs_acl_rules rules = {.any_command = hs_options_any_command(options)};
	struct hs_acl_error wrong;
	struct hs_acl_user *user;
	char name[64], shown[256];

	if (count == 0)
		return hs_err_set(
			HS_EINVAL, error, error_size,
			"user: a name and rules are missing, such as: alice on >password ~* +@all");
	hs_bytes_escape(words[0], name, sizeof name);
	if (!hs_acl_name_fits(words[0]))
		return hs_err_set(HS_EINVAL, error, error_size,
				  "user '%s': a name must not contain spaces", name);
	if (hs_acl_find(*users, words[0]))
		return hs_err_set(HS_EINVAL, error, error_size, "user '%s' is defined twice", name);
	if (hs_acl_count(*users) + 1 >= HS_ACL_USERS_MAX)
		return hs_err_set(HS_ELIMIT, error, error_size,
				  "user '%s': at most %d users are possible", name,
				  HS_ACL_USERS_MAX);
	rules.count = count - 1;
	rules.words = words + 1;
	user = hs_acl_user_change(NULL, words[0], &rules, &wrong);
	if (!user) {
		/* The message goes to the log: of a password rule it shows only the first letter. */
		if (wrong.word[0] != '\0' && strchr("><#!", wrong.word[0]))
			snprintf(wrong.word + 1, sizeof wrong.word - 1, HS_SECRET_TEXT);
		return hs_err_set(HS_EINVAL, error, error_size, "user '%s': '%s': %s", name,
				  hs_bytes_escape(hs_bytes_of(wrong.word), shown, sizeof shown),
				  wrong.why);
	}
	hs_acl_add(users, user);
	return 0;
}

int hs_options_add_user(const struct hs_options *options, struct hs_acl **users, const char *line,
			char *error, size_t error_size)
{
	struct hs_wire_request words;
	struct hs_buf text = {0};
	int status = HS_EINVAL;

	if (!hs_options_split(line, &words, &text))
		snprintf(error, error_size, "user: unbalanced quotes in the line");
	else
		status = add(options, users, words.argc, words.argv, error, error_size);
	hs_wire_request_deinit(&words);
	hs_buf_deinit(&text);
	return status;
}

void hs_options_overlay_users(struct hs_options *options, const struct hs_acl *users)
{
	if (hs_acl_count(options->users) == 0) {
		hs_options_set_users(options, hs_acl_ref(users));
		return;
	}
	for (size_t i = 0; i < hs_acl_count(users); i++)
		hs_options_put_user(options, hs_acl_user_ref(hs_acl_at(users, i)));
}

void hs_options_format_user(const struct hs_acl_user *user, struct hs_buf *text)
{
	struct hs_bytes name = hs_acl_user_name(user);
	struct hs_buf rules = {0};
	struct hs_bytes rest;

	hs_acl_user_describe(user, &rules);
	hs_buf_printf(text, "user ");
	hs_escape_word(name, text);
	rest = hs_buf_bytes(&rules);
	hs_bytes_cut(&rest, ' '); /* the name: it may be empty, and contains no space */
	while (rest.len > 0) {
		hs_buf_append(text, " ", 1);
		hs_escape_word(hs_bytes_cut(&rest, ' '), text);
	}
	hs_buf_printf(text, "\n");
	hs_buf_deinit(&rules);
}
