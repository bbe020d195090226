/* Options as text: the configuration file, its rewriting, and the command line.
 *
 * A line is `directive value`, the value bare or in double quotes with \" and \\ inside; # starts a
 * comment line. `bind` takes the rest of its line. */
#include "serve/options.h"

#include "base/err.h"
#include "base/mem.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_BYTES_MAX = 4096 };

/* Splits a line in place. Returns 1 for a directive, 0 for an empty or comment line, HS_EINVAL for
 * unbalanced quotes. */
static int split_line(char *line, char **name, char **value)
{
	size_t len;

	while (isspace((unsigned char)*line))
		line++;
	if (*line == '\0' || *line == '#')
		return 0;
	*name = line;
	line += strcspn(line, " \t\r\n");
	if (*line)
		*line++ = '\0';
	while (isspace((unsigned char)*line))
		line++;
	len = strlen(line);
	while (len > 0 && isspace((unsigned char)line[len - 1]))
		line[--len] = '\0';
	*value = line;
	if (*line != '"')
		return 1;

	char *to = line, *from = line + 1;

	for (; *from && *from != '"'; from++) {
		if (*from == '\\' && from[1])
			from++;
		*to++ = *from;
	}
	if (*from != '"' || from[1] != '\0')
		return HS_EINVAL;
	*to = '\0';
	return 1;
}

static int unknown(const char *name, char *error, size_t error_size)
{
	const char *nearest = hs_option_nearest(hs_bytes_of(name));

	snprintf(error, error_size, "'%s' is not an option%s%s%s", name,
		 nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
	return HS_EINVAL;
}

static int set_named(struct hs_options *options, const char *name, const char *value, char *error,
		     size_t error_size)
{
	const struct hs_option *option = hs_option_find(hs_bytes_of(name));
	char why[256];
	int status;

	if (!option || option->kind == HS_OPTION_FIXED)
		return unknown(name, error, error_size);
	status = hs_option_set(options, option, hs_bytes_of(value), why, sizeof why);
	if (status < 0)
		snprintf(error, error_size, "%s '%s': %s", option->name, value, why);
	return status;
}

int hs_options_load(struct hs_options *options, const char *path, char *error, size_t error_size)
{
	FILE *file = fopen(path, "r");
	char line[LINE_BYTES_MAX];
	int number = 0, status = 0;

	if (!file) {
		snprintf(error, error_size, "cannot read %s: %s", path, strerror(errno));
		return HS_EIO;
	}
	while (status == 0 && fgets(line, sizeof line, file)) {
		char why[512];
		char *name, *value;

		number++;
		status = split_line(line, &name, &value);
		if (status < 0)
			snprintf(error, error_size, "%s:%d: unbalanced quotes in '%s'", path,
				 number, value);
		if (status != 1)
			continue;
		status = set_named(options, name, value, why, sizeof why);
		if (status < 0)
			snprintf(error, error_size, "%s:%d: %s", path, number, why);
	}
	fclose(file);
	return status;
}

static void append_setting(const struct hs_options *options, const struct hs_option *option,
			   struct hs_buf *text)
{
	struct hs_buf value = {0};

	hs_option_format(options, option, &value);
	hs_buf_printf(text, "%s ", option->name);
	if (value.len > 0 && option->kind != HS_OPTION_TEXT) {
		hs_buf_append_bytes(text, hs_buf_bytes(&value));
	} else {
		hs_buf_append(text, "\"", 1);
		for (size_t i = 0; i < value.len; i++) {
			if (value.data[i] == '"' || value.data[i] == '\\')
				hs_buf_append(text, "\\", 1);
			hs_buf_append(text, value.data + i, 1);
		}
		hs_buf_append(text, "\"", 1);
	}
	hs_buf_append(text, "\n", 1);
	hs_buf_deinit(&value);
}

static bool is_default(const struct hs_options *options, const struct hs_option *option)
{
	struct hs_options fallback;
	struct hs_buf ours = {0}, theirs = {0};
	bool same;

	hs_options_init(&fallback);
	hs_option_format(options, option, &ours);
	hs_option_format(&fallback, option, &theirs);
	same = hs_bytes_equal(hs_buf_bytes(&ours), hs_buf_bytes(&theirs));
	hs_buf_deinit(&ours);
	hs_buf_deinit(&theirs);
	hs_options_deinit(&fallback);
	return same;
}

/* Writes beside the file and renames over it: the old one is there until the new one is whole. */
static int replace_file(const char *path, struct hs_bytes text, char *error, size_t error_size)
{
	char temporary[LINE_BYTES_MAX];
	int fd;
	bool fine;

	snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid());
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	fine = fd >= 0 && write(fd, text.data, text.len) == (ssize_t)text.len && fsync(fd) == 0;
	if (fd >= 0)
		close(fd);
	fine = fine && rename(temporary, path) == 0;
	if (fine)
		return 0;
	snprintf(error, error_size, "Rewriting config file %s: %s", path, strerror(errno));
	unlink(temporary);
	return HS_EIO;
}

int hs_options_rewrite(const struct hs_options *options, char *error, size_t error_size)
{
	FILE *file = fopen(options->config, "r");
	bool *written = hs_mem_zalloc(hs_option_count * sizeof *written);
	struct hs_buf text = {0};
	char line[LINE_BYTES_MAX], copy[LINE_BYTES_MAX];
	int status;

	while (file && fgets(line, sizeof line, file)) {
		char *name, *value;
		const struct hs_option *option = NULL;

		memcpy(copy, line, sizeof copy);
		if (split_line(copy, &name, &value) == 1)
			option = hs_option_find(hs_bytes_of(name));
		if (!option)
			hs_buf_append_bytes(&text, hs_bytes_of(line));
		else if (!written[option - hs_option_table])
			append_setting(options, option, &text);
		if (option)
			written[option - hs_option_table] = true;
	}
	if (file)
		fclose(file);
	if (text.len > 0 && text.data[text.len - 1] != '\n')
		hs_buf_append(&text, "\n", 1);
	for (size_t i = 0; i < hs_option_count; i++) {
		const struct hs_option *option = &hs_option_table[i];

		if (!written[i] && option->kind != HS_OPTION_FIXED &&
		    strcmp(option->name, "config") != 0 && !is_default(options, option))
			append_setting(options, option, &text);
	}
	status = replace_file(options->config, hs_buf_bytes(&text), error, error_size);
	hs_buf_deinit(&text);
	hs_mem_free(&written);
	return status;
}

int hs_options_parse(struct hs_options *options, int argc, char **argv, char *error,
		     size_t error_size)
{
	for (int i = 0; i < argc; i++) {
		char name[64];
		const char *equals = strchr(argv[i], '=');
		const char *value;
		size_t len;
		int status;

		if (strncmp(argv[i], "--", 2) != 0) {
			snprintf(error, error_size, "'%s' is no flag: flags start with --",
				 argv[i]);
			return HS_EINVAL;
		}
		len = equals ? (size_t)(equals - argv[i]) - 2 : strlen(argv[i]) - 2;
		snprintf(name, sizeof name, "%.*s", (int)len, argv[i] + 2);
		if (!hs_option_find(hs_bytes_of(name))) {
			snprintf(name, sizeof name, "%.*s", (int)len, argv[i] + 2);
			return unknown(name, error, error_size);
		}
		value = equals ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
		if (!value) {
			snprintf(error, error_size, "--%s needs a value", name);
			return HS_EINVAL;
		}
		status = set_named(options, name, value, error, error_size);
		if (status < 0)
			return status;
	}
	return 0;
}
