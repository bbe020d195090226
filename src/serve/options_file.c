/* Options as text: the configuration file, CONFIG REWRITE, and the command line.
 *
 * A line is `option value`, the value bare or in quotes as in redis.conf; # starts a comment line. Several words are
 * one value with spaces in it. */
#include "serve/options.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "wire/request.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Room for a user with the longest rules, every byte escaped. */
enum { LINE_BYTES_MAX = 36 * 1024 };

_Static_assert((size_t)LINE_BYTES_MAX > HS_ACL_USER_BYTES_MAX * 4 + 64, "a user is one line");

bool hs_options_split(const char *line, struct hs_wire_request *words, struct hs_buf *text)
{
	hs_wire_request_init(words);
	/* The space: a line that begins with * is not an inline command. */
	hs_buf_printf(text, " %s\n", line);
	return hs_wire_request_parse(words, text->data, text->len, true) > 0;
}

/* Splits a line into name and value, the words of the value joined by single spaces. Returns 1 for an option, 0
 * for an empty or comment line, HS_EINVAL for unbalanced quotes. */
static int split_line(const char *line, struct hs_buf *name, struct hs_buf *value)
{
	struct hs_wire_request words;
	struct hs_buf text = {0};
	int status = 1;

	while (isspace((unsigned char)*line))
		line++;
	if (*line == '\0' || *line == '#')
		return 0;
	name->len = 0;
	value->len = 0;
	if (!hs_options_split(line, &words, &text) || words.argc == 0)
		status = HS_EINVAL;
	for (size_t i = 0; status == 1 && i < words.argc; i++) {
		if (i > 1)
			hs_buf_append(value, " ", 1);
		hs_buf_append_bytes(i == 0 ? name : value, words.argv[i]);
	}
	*hs_buf_reserve(name, 1) = '\0';
	*hs_buf_reserve(value, 1) = '\0';
	hs_wire_request_deinit(&words);
	hs_buf_deinit(&text);
	return status;
}

static int unknown(const char *name, char *error, size_t error_size)
{
	const char *renamed = hs_option_renamed(hs_bytes_of(name));
	const char *nearest = hs_option_nearest(hs_bytes_of(name));

	if (renamed)
		return hs_err_set(HS_EINVAL, error, error_size, "option '%s' is now called '%s'",
				  name, renamed);
	snprintf(error, error_size, "'%s' is not an option%s%s%s", name,
		 nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
	return HS_EINVAL;
}

static int set_named(struct hs_options *options, const char *name, struct hs_bytes value,
		     char *error, size_t error_size)
{
	const struct hs_option *option = hs_option_find(hs_bytes_of(name));
	char why[256], shown[128];
	int status;

	if (!option || option->kind == HS_OPTION_FIXED)
		return unknown(name, error, error_size);
	status = hs_option_set(options, option, value, why, sizeof why);
	if (status < 0)
		snprintf(error, error_size, "%s '%s': %s", option->name,
			 hs_bytes_escape(value, shown, sizeof shown), why);
	return status;
}

/* The part of a line after its first word. */
static const char *behind_name(const char *line)
{
	line += strspn(line, " \t\r\n\v\f");
	return line + strcspn(line, " \t\r\n\v\f");
}

/* `user` lines are read after all other lines, because the option `engine` decides which commands exist.
 * `waiting` has for each of them: its line number as an int, the text, a zero byte. */
static int load_users(struct hs_options *options, const char *path, const struct hs_buf *waiting,
		      char *error, size_t error_size)
{
	struct hs_acl *users = hs_acl_create();
	char why[512];
	int status = 0;

	for (size_t at = 0; at < waiting->len && status == 0;) {
		const char *line = waiting->data + at + sizeof(int);
		int number;

		memcpy(&number, waiting->data + at, sizeof number);
		status = hs_options_add_user(options, &users, behind_name(line), why, sizeof why);
		if (status < 0)
			snprintf(error, error_size, "%s:%d: %s", path, number, why);
		at += sizeof number + strlen(line) + 1;
	}
	if (status == 0)
		hs_options_overlay_users(options, users);
	hs_acl_unref(&users);
	return status;
}

static bool is_kind(const char *name, enum hs_option_kind kind)
{
	const struct hs_option *option = hs_option_find(hs_bytes_of(name));

	return option && option->kind == kind;
}

/* Reads line `number` of a file; the error names file and line. */
static int load_line(struct hs_options *options, const char *path, int number, const char *line,
		     struct hs_buf *waiting, char *error, size_t error_size)
{
	struct hs_buf name = {0}, value = {0};
	char why[512] = "";
	int status;

	if (strlen(line) + 1 == LINE_BYTES_MAX && line[LINE_BYTES_MAX - 2] != '\n') {
		snprintf(why, sizeof why, "the line is longer than %d bytes", LINE_BYTES_MAX - 2);
		status = HS_ELIMIT;
	} else {
		status = split_line(line, &name, &value);
		if (status < 0)
			snprintf(why, sizeof why, "unbalanced quotes in the value of '%.*s'",
				 (int)strcspn(line, " \t\r\n"), line);
	}
	if (status == 1 && strcmp(name.data, "config") == 0) {
		snprintf(why, sizeof why,
			 "'config' is only for the command line: a configuration file cannot "
			 "include another");
		status = HS_EINVAL;
	} else if (status == 1 && is_kind(name.data, HS_OPTION_USERS)) {
		hs_buf_append(waiting, &number, sizeof number);
		hs_buf_append(waiting, line, strlen(line) + 1);
	} else if (status == 1 && is_kind(name.data, HS_OPTION_RULES)) {
		status = hs_options_add_rule(options, behind_name(line), why, sizeof why);
	} else if (status == 1) {
		status = set_named(options, name.data, hs_buf_bytes(&value), why, sizeof why);
	}
	if (status < 0)
		snprintf(error, error_size, "%s:%d: %s", path, number, why);
	hs_buf_deinit(&name);
	hs_buf_deinit(&value);
	return status < 0 ? status : 0;
}

int hs_options_load(struct hs_options *options, const char *path, char *error, size_t error_size)
{
	FILE *file = fopen(path, "r");
	struct hs_buf waiting = {0};
	char line[LINE_BYTES_MAX];
	int number = 0, status = 0;

	while (file && status == 0 && fgets(line, sizeof line, file))
		status = load_line(options, path, ++number, line, &waiting, error, error_size);
	if (!file || (status == 0 && ferror(file))) {
		snprintf(error, error_size, "cannot read %s: %s", path, strerror(errno));
		status = HS_EIO;
	}
	if (status == 0)
		status = load_users(options, path, &waiting, error, error_size);
	if (file)
		fclose(file);
	hs_buf_deinit(&waiting);
	return status;
}

static void append_setting(const struct hs_options *options, const struct hs_option *option,
			   struct hs_buf *text)
{
	struct hs_buf value = {0};
	char *escaped;

	hs_option_format(options, option, &value);
	/* An escaped byte takes up to four characters. */
	escaped = hs_mem_alloc(value.len * 4 + 1);
	hs_bytes_escape(hs_buf_bytes(&value), escaped, value.len * 4 + 1);
	hs_buf_printf(text, option->kind == HS_OPTION_TEXT ? "%s \"%s\"\n" : "%s %s\n",
		      option->name, escaped);
	hs_mem_free(&escaped);
	hs_buf_deinit(&value);
}

/* Writes a new file beside the old one and renames it: the old file stays until the new one is complete. */
static int replace_file(const char *path, struct hs_bytes text)
{
	char temporary[PATH_MAX + 32];
	struct stat old;
	bool fine;
	int fd, mode = stat(path, &old) == 0 ? (int)(old.st_mode & 07777) : 0600;

	snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid());
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	fine = fd >= 0 && fchmod(fd, (mode_t)mode) == 0 &&
	       write(fd, text.data, text.len) == (ssize_t)text.len && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	if (fine && rename(temporary, path) == 0)
		return 0;
	unlink(temporary);
	return HS_EIO;
}

/* Rewrites a `user` line with the user's current rules; drops the line if the user was deleted. `left` has the users
 * without a line so far. */
static void rewrite_user(struct hs_acl **left, const char *line, struct hs_buf *text)
{
	struct hs_buf name = {0}, value = {0};
	const struct hs_acl_user *user = NULL;

	if (split_line(behind_name(line), &name, &value) == 1)
		user = hs_acl_find(*left, hs_buf_bytes(&name));
	if (user) {
		struct hs_acl *others = hs_acl_without(*left, hs_buf_bytes(&name));

		hs_options_format_user(user, text);
		hs_acl_unref(left);
		*left = others;
	}
	hs_buf_deinit(&name);
	hs_buf_deinit(&value);
}

/* Rewrites a `rule` line with a current rule, or drops the line. */
static void rewrite_rule(const struct hs_rules *rules, bool *written, const char *line,
			 struct hs_buf *text)
{
	size_t at = hs_options_rule_for(rules, written, behind_name(line));

	if (at == hs_rules_count(rules))
		return;
	hs_options_format_rule(hs_rules_at(rules, at), text);
	written[at] = true;
}

/* The parts of the options that the new file has already. */
struct rewritten {
	bool *options; /* by row of the option table */
	bool *rules;
	struct hs_acl *users; /* not yet in the file */
};

/* Copies the lines of the file; lines that set an option get the current value. */
static int rewrite_lines(const struct hs_options *options, FILE *file, struct rewritten *written,
			 struct hs_buf *text)
{
	struct hs_buf name = {0}, value = {0};
	char line[LINE_BYTES_MAX];

	while (fgets(line, sizeof line, file)) {
		const struct hs_option *option = NULL;

		if (split_line(line, &name, &value) == 1)
			option = hs_option_find(hs_bytes_of(name.data));
		if (option && option->kind == HS_OPTION_USERS)
			rewrite_user(&written->users, line, text);
		else if (option && option->kind == HS_OPTION_RULES)
			rewrite_rule(options->rules, written->rules, line, text);
		else if (!option)
			hs_buf_append_bytes(text, hs_bytes_of(line));
		else if (!written->options[option - hs_option_table])
			append_setting(options, option, text);
		if (option)
			written->options[option - hs_option_table] = true;
	}
	hs_buf_deinit(&name);
	hs_buf_deinit(&value);
	if (text->len > 0 && text->data[text->len - 1] != '\n')
		hs_buf_append(text, "\n", 1);
	return ferror(file) ? HS_EIO : 0;
}

/* Appends options, rules and users that no line of the old file sets. */
static void append_unwritten(const struct hs_options *options, const struct rewritten *written,
			     struct hs_buf *text)
{
	struct hs_options fallback;

	hs_options_init(&fallback);
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];

		if (!written->options[i] && option->kind != HS_OPTION_USERS &&
		    option->kind != HS_OPTION_RULES && strcmp(option->name, "config") != 0 &&
		    !hs_option_same(options, &fallback, option))
			append_setting(options, option, text);
	}
	hs_options_deinit(&fallback);
	for (size_t i = 0; i < hs_rules_count(options->rules); i++) {
		if (!written->rules[i])
			hs_options_format_rule(hs_rules_at(options->rules, i), text);
	}
	for (size_t i = 0; i < hs_acl_count(written->users); i++)
		hs_options_format_user(hs_acl_at(written->users, i), text);
}

int hs_options_rewrite(const struct hs_options *options, char *error, size_t error_size)
{
	char path[PATH_MAX];
	/* Resolves a symbolic link, so that the link itself stays. */
	FILE *file = realpath(options->config, path) ? fopen(path, "r") : NULL;
	struct rewritten written = {
		.options = hs_mem_zalloc(hs_option_count * sizeof *written.options),
		.rules =
			hs_mem_zalloc((hs_rules_count(options->rules) + 1) * sizeof *written.rules),
		.users = hs_acl_ref(options->users),
	};
	struct hs_buf text = {0};
	int status = file ? rewrite_lines(options, file, &written, &text) : HS_EIO;

	if (status == 0) {
		append_unwritten(options, &written, &text);
		status = replace_file(path, hs_buf_bytes(&text));
	}
	if (status < 0)
		snprintf(error, error_size, "Rewriting config file %s: %s", options->config,
			 strerror(errno));
	if (file)
		fclose(file);
	hs_buf_deinit(&text);
	hs_acl_unref(&written.users);
	hs_mem_free(&written.options);
	hs_mem_free(&written.rules);
	return status;
}

/* One pass over the flags: with `users` the user flags, without it all others. */
static int parse_flags(struct hs_options *options, int argc, char **argv, struct hs_acl **users,
		       char *error, size_t error_size)
{
	for (int i = 0; i < argc; i++) {
		char name[64];
		const char *equals = strchr(argv[i], '=');
		const char *value;
		size_t len;
		int status = 0;

		if (strncmp(argv[i], "--", 2) != 0)
			return hs_err_set(HS_EINVAL, error, error_size,
					  "'%s' is not a flag: flags start with --", argv[i]);
		len = equals ? (size_t)(equals - argv[i]) - 2 : strlen(argv[i]) - 2;
		snprintf(name, sizeof name, "%.*s", (int)len, argv[i] + 2);
		if (!hs_option_find(hs_bytes_of(name)))
			return unknown(name, error, error_size);
		value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
		if (!value)
			return hs_err_set(HS_EINVAL, error, error_size, "--%s needs a value", name);
		if (is_kind(name, HS_OPTION_USERS))
			status = users ? hs_options_add_user(options, users, value, error,
							     error_size)
				       : 0;
		else if (users)
			continue;
		else if (is_kind(name, HS_OPTION_RULES))
			status = hs_options_add_rule(options, value, error, error_size);
		else
			status = set_named(options, name, hs_bytes_of(value), error, error_size);
		if (status < 0)
			return status;
	}
	return 0;
}

int hs_options_parse(struct hs_options *options, int argc, char **argv, char *error,
		     size_t error_size)
{
	struct hs_acl *users = hs_acl_create();
	int status = parse_flags(options, argc, argv, NULL, error, error_size);

	if (status == 0)
		status = parse_flags(options, argc, argv, &users, error, error_size);
	if (status == 0)
		hs_options_overlay_users(options, users);
	hs_acl_unref(&users);
	return status;
}
