/* The flags of a subcommand, one row each. A row's default is read by the same function as a word
 * from the command line, and the help is printed from the rows. Every subcommand has --help and -h. */
#ifndef HS_CLI_FLAGS_H
#define HS_CLI_FLAGS_H

#include "base/check.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct hs_flag {
	const char *name;
	const char *argument; /* what it takes, for the help; NULL: nothing */
	const char
		*default_word; /* read as a word where none is given; NULL: the text is NULL then */
	const char *text;
	/* Puts the word into the options; false when it is no good. The options may point to it. */
	bool (*read)(const struct hs_flag *flag, void *options, const char *word);
	size_t field; /* offset into the options */
	/* What the kind of word needs. */
	uint64_t min, max;
	const char *const *words; /* up to a NULL */
	size_t given; /* offset of a bool that is set when the flag is on the command line; 0: none */
};

/* Of a row: the field, which only .min, .max, .words or .given may follow. */
#define HS_FLAG_AT(options, member) .field = offsetof(options, member)

struct hs_flags {
	const char *program; /* "heatsink storm": stands before every complaint */
	const char *before;  /* the help's words in front of the rows, and behind them */
	const char *after;
	const struct hs_flag *rows;
	size_t count;
};

enum { HS_FLAGS_HELP_SHOWN = 1 };

/* Reads "--name word" and "--name=word". `options` is zeroed by the caller. A bad word gets one line on `err` that
 * names it: HS_EINVAL. --help ends the reading and prints the help on stdout: HS_FLAGS_HELP_SHOWN. */
int hs_flags_read(const struct hs_flags *flags, void *options, int argc, char **argv,
		  FILE *err) HS_MUSTCHECK;
void hs_flags_help(const struct hs_flags *flags, FILE *out);
/* Prints a complaint about flags, a line behind "who: ". Returns HS_EINVAL. */
int hs_flags_error(FILE *err, const char *program, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Kinds of words, and the fields that they fill: bool; const char *, of at most `max` bytes if that is not 0; uint64_t,
 * from `min` to `max`, a duration in us; an enum, the word's index in `words`. */
bool hs_flag_read_switch(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_text(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_uint(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_bytes(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_duration(const struct hs_flag *flag, void *options, const char *word);
bool hs_flag_read_word(const struct hs_flag *flag, void *options, const char *word);
/* A plain decimal number and what stands behind it; no sign, no exponent, no "inf". */
bool hs_flag_decimal(const char *word, double *value, const char **behind);
/* "2s", "250ms", "1m"; a bare number is seconds. It ends at `stop` or at the end of the text. */
bool hs_flag_duration(const char *word, char stop, uint64_t *us, const char **behind);

static inline void *hs_flag_field(const struct hs_flag *flag, void *options)
{
	return (char *)options + flag->field;
}

#endif
