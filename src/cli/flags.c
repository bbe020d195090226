#include "cli/flags.h"

#include "base/bytes.h"
#include "base/err.h"
#include "base/num.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_AT = 26, HELP_COLUMNS = 78 };

static const struct hs_flag help_row = {.name = "help", .text = "print this help"};

/* ---- parsers ---- */

bool hs_flag_read_switch(const struct hs_flag *flag, void *options, const char *word)
{
	*(bool *)hs_flag_field(flag, options) = strcmp(word, "yes") == 0;
	return true;
}

bool hs_flag_read_text(const struct hs_flag *flag, void *options, const char *word)
{
	*(const char **)hs_flag_field(flag, options) = word;
	return flag->max == 0 || strlen(word) <= flag->max;
}

static bool store(const struct hs_flag *flag, void *options, uint64_t value)
{
	*(uint64_t *)hs_flag_field(flag, options) = value;
	return value >= flag->min && value <= flag->max;
}

bool hs_flag_read_uint(const struct hs_flag *flag, void *options, const char *word)
{
	uint64_t value;

	return hs_num_parse_uint(hs_bytes_of(word), &value) && store(flag, options, value);
}

bool hs_flag_read_bytes(const struct hs_flag *flag, void *options, const char *word)
{
	uint64_t value;

	return hs_num_parse_bytes(hs_bytes_of(word), &value) && store(flag, options, value);
}

bool hs_flag_read_duration(const struct hs_flag *flag, void *options, const char *word)
{
	const char *behind;
	uint64_t us;

	return hs_flag_duration(word, '\0', &us, &behind) && store(flag, options, us);
}

bool hs_flag_read_word(const struct hs_flag *flag, void *options, const char *word)
{
	unsigned *which = hs_flag_field(flag, options);

	for (*which = 0; flag->words[*which]; ++*which) {
		if (strcmp(word, flag->words[*which]) == 0)
			return true;
	}
	return false;
}

bool hs_flag_decimal(const char *word, double *value, const char **behind)
{
	size_t digits = strspn(word, "0123456789.");
	char *end;

	if (digits == 0)
		return false;
	*value = strtod(word, &end);
	*behind = word + digits;
	return end == *behind;
}

bool hs_flag_duration(const char *word, char stop, uint64_t *us, const char **behind)
{
	static const struct {
		const char *name;
		double us;
	} units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}, {"", 1e6}};
	double value;
	const char *unit;

	if (!hs_flag_decimal(word, &value, &unit))
		return false;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		size_t len = strlen(units[i].name);

		if (strncmp(unit, units[i].name, len) != 0)
			continue;
		if (unit[len] != '\0' && unit[len] != stop)
			continue;
		if (value * units[i].us > 1e15)
			return false;
		*us = (uint64_t)(value * units[i].us);
		*behind = unit + len;
		return true;
	}
	return false;
}

/* ---- help ---- */

/* Prints the text from column HELP_AT on, wrapped between words. */
static void print_wrapped(FILE *out, const char *text)
{
	int column = HELP_AT;

	while (*text) {
		int word = (int)strcspn(text, " ");

		if (column > HELP_AT && column + 1 + word > HELP_COLUMNS) {
			fprintf(out, "\n%*s", HELP_AT, "");
			column = HELP_AT;
		}
		column += fprintf(out, "%s%.*s", column > HELP_AT ? " " : "", word, text);
		text += word;
		text += strspn(text, " ");
	}
}

static void print_row(FILE *out, const struct hs_flag *row)
{
	bool has_default = row->argument && row->default_word && *row->default_word;
	char text[512];
	int width = fprintf(out, "  --%s %s", row->name, row->argument ? row->argument : "");

	snprintf(text, sizeof text, "%s%s%s%s", row->text, has_default ? " (default: " : "",
		 has_default ? row->default_word : "", has_default ? ")" : "");
	fprintf(out, "%*s", width < HELP_AT ? HELP_AT - width : 1, "");
	print_wrapped(out, text);
	fputc('\n', out);
}

void hs_flags_help(const struct hs_flags *flags, FILE *out)
{
	fputs(flags->before, out);
	for (size_t i = 0; i < flags->count; i++)
		print_row(out, &flags->rows[i]);
	print_row(out, &help_row);
	fputs(flags->after, out);
}

/* ---- reading ---- */

int hs_flags_error(FILE *err, const char *program, const char *format, ...)
{
	va_list arguments;

	fprintf(err, "%s: ", program);
	va_start(arguments, format);
	vfprintf(err, format, arguments);
	va_end(arguments);
	fputc('\n', err);
	return HS_EINVAL;
}

/* The row of a word such as "--name" or "--name=word"; NULL: unknown. */
static const struct hs_flag *find(const struct hs_flags *flags, const char *word)
{
	size_t len;

	if (strncmp(word, "--", 2) != 0)
		return NULL;
	word += 2;
	len = strcspn(word, "=");
	for (size_t i = 0; i < flags->count; i++) {
		const struct hs_flag *row = &flags->rows[i];

		if (strlen(row->name) == len && memcmp(row->name, word, len) == 0)
			return row;
	}
	return NULL;
}

static int refuse_unknown(const struct hs_flags *flags, const char *word, FILE *err)
{
	size_t len = strcspn(word, "=");

	for (size_t i = 0; i < flags->renamed_count; i++) {
		const struct hs_flag_renamed *row = &flags->renamed[i];

		if (strncmp(word, "--", 2) == 0 && strlen(row->old) == len - 2 &&
		    memcmp(row->old, word + 2, len - 2) == 0)
			return hs_flags_error(err, flags->program,
					      "option '--%s' is now called '--%s'", row->old,
					      row->name);
	}
	return hs_flags_error(err, flags->program, "unknown option '%s' (see --help)", word);
}

/* Reads the flag at argv[*at] and advances *at. */
static int read_one(const struct hs_flags *flags, void *options, int argc, char **argv, int *at,
		    FILE *err)
{
	const char *name = argv[(*at)++], *equals = strchr(name, '='), *word = "yes";
	const struct hs_flag *row = find(flags, name);

	if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0) {
		hs_flags_help(flags, stdout);
		return HS_FLAGS_HELP_SHOWN;
	}
	if (!row)
		return refuse_unknown(flags, name, err);
	if (!row->argument && equals)
		return hs_flags_error(err, flags->program, "--%s takes no value", row->name);
	if (row->argument && !equals && *at == argc)
		return hs_flags_error(err, flags->program, "%s needs %s", name, row->argument);
	if (row->argument)
		word = equals ? equals + 1 : argv[(*at)++];
	if (!row->read(row, options, word))
		return hs_flags_error(err, flags->program, "--%s: bad value '%s' (%s: %s)",
				      row->name, word, row->argument, row->text);
	if (row->given)
		*(bool *)((char *)options + row->given) = true;
	return 0;
}

int hs_flags_read(const struct hs_flags *flags, void *options, int argc, char **argv, FILE *err)
{
	int rc = 0;

	for (size_t i = 0; i < flags->count; i++)
		hs_check(
			flags->rows[i].read(&flags->rows[i], options, flags->rows[i].default_word));
	for (int at = 1; at < argc && rc == 0;)
		rc = read_one(flags, options, argc, argv, &at, err);
	return rc;
}
