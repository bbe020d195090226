/* The flags of a subcommand, one row each. A row's default is parsed by the same function as a word of the command
 * line, and the help is printed from the rows. Every subcommand that uses them has --help and -h; serve has
 * options of its own (serve/options.h). It knows no subcommand. Options point into argv, which must outlive them.
 * The main thread. */
#ifndef HS_CLI_FLAGS_H
#define HS_CLI_FLAGS_H

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct hs_flag {
	const char *name;
	const char *argument;	  /* the kind of value, for the help; NULL: the flag takes none */
	const char *default_word; /* parsed if the flag is not given; NULL: a text option is NULL */
	const char *text;
	/* Parses the word into the options; false if it is invalid. The options may point to the word. */
	bool (*read)(const struct hs_flag *flag, void *options, const char *word);
	size_t field; /* offset into the options */
	/* For the functions below that parse words. */
	uint64_t min, max;
	const char *const *words; /* up to a NULL */
	size_t given; /* offset of a bool that is set when the flag is on the command line; 0: none */
};

/* The field of a row. Only .min, .max, .words and .given may follow. */
#define HS_FLAG_AT(options, member) .field = offsetof(options, member)

/* A name that a flag once had: using it is an error that names the present one. */
struct hs_flag_renamed {
	const char *old, *name;
};

struct hs_flags {
	const char *program; /* "heatsink storm": begins every error line */
	const char *before;  /* the help's text before the rows; `after` follows them */
	const char *after;
	const struct hs_flag *rows;
	size_t count;
	const struct hs_flag_renamed *renamed; /* NULL: none */
	size_t renamed_count;
};

enum { HS_FLAGS_HELP_SHOWN = 1 };

/* Reads "--name word" and "--name=word" over all defaults. The caller zeroes `options`. A bad word gets one line on
 * `err` that names the flag: HS_EINVAL. --help prints the help on stdout: HS_FLAGS_HELP_SHOWN. */
int hs_flags_read(const struct hs_flags *flags, void *options, int argc, char **argv,
		  FILE *err) HS_MUSTCHECK;
void hs_flags_help(const struct hs_flags *flags, FILE *out);
/* Prints the line "program: " and the message. Returns HS_EINVAL. */
int hs_flags_error(FILE *err, const char *program, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Parsers, and the fields they set: switch: bool; text: const char *, of at most `max` bytes unless that is 0; uint,
 * bytes and duration (us): uint64_t from `min` to `max`; word: an enum, the index in `words`. */
bool hs_flag_read_switch(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_text(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_uint(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_bytes(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_duration(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_word(const struct hs_flag *flag, void *options, const char *word);
/* Parses a plain decimal number, without sign, exponent or "inf"; *behind is the rest of the word. */
bool hs_flag_decimal(const char *word, double *value, const char **behind);
/* Parses "2s", "250ms", "1m"; a bare number is seconds. It must end at `stop` or at the end of the word. */
bool hs_flag_duration(const char *word, char stop, uint64_t *us, const char **behind);

static inline void *hs_flag_field(const struct hs_flag *flag, void *options)
{
	return (char *)options + flag->field;
}

#endif
