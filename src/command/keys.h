/* Where the keys are among the arguments of a request, and what is done to each of them. Included
 * by command/command.h only.
 *
 * Most rows say it with three numbers: key_first, key_last, key_step. A row that cannot has key
 * specs, in Redis's terms: where to begin to look (at a position, or behind a word), and how to go
 * on from there (a run up to somewhere, or as many as a number among the arguments says). The walk
 * hides the difference; over a row with three numbers it is a few instructions, inlined.
 *
 *     struct hs_key_walk walk;
 *     size_t at;
 *
 *     hs_keys_begin(&walk, command, argc, argv);
 *     while ((at = hs_keys_next(&walk)) > 0)
 *             argv[at] is a key, and hs_keys_access(&walk) says what it is asked for
 *
 * Whatever the arguments say, no position is beyond them. The walk borrows the row and the
 * arguments, and allocates nothing. */
#ifndef HS_COMMAND_KEYS_H
#define HS_COMMAND_KEYS_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What Redis says about the keys of a spec, in its order. */
enum hs_key_flag {
	HS_KEY_RO = 1 << 0,
	HS_KEY_RW = 1 << 1,
	HS_KEY_OW = 1 << 2,
	HS_KEY_RM = 1 << 3,
	HS_KEY_ACCESS = 1 << 4, /* its value is shown, copied or used */
	HS_KEY_UPDATE = 1 << 5,
	HS_KEY_INSERT = 1 << 6,
	HS_KEY_DELETE = 1 << 7,
	HS_KEY_NOT_KEY = 1 << 8, /* routed like one, but none: a shard channel */
	HS_KEY_INCOMPLETE = 1 << 9,
	HS_KEY_VARIABLE = 1 << 10, /* the other arguments decide: SET without GET reads nothing */
};

/* What a permission to use the key must allow. Neither: its value is not looked at, only whether
 * it is there, what type it has, how long it is; Redis lets whoever may do either do that. */
enum hs_key_access {
	HS_KEY_READS = 1 << 0,
	HS_KEY_WRITES = 1 << 1,
};

enum hs_key_search {
	HS_KEY_SEARCH_UNKNOWN, /* nobody can say: such a spec finds nothing */
	HS_KEY_SEARCH_INDEX,
	HS_KEY_SEARCH_KEYWORD, /* behind the word; `index` negative: looked for from the end */
	/* Two commands of which Redis's own specs do not say everything. */
	HS_KEY_SEARCH_SORT,    /* behind the last STORE */
	HS_KEY_SEARCH_MIGRATE, /* the third argument, or if that is empty all behind KEYS */
};

enum hs_key_find {
	HS_KEY_FIND_UNKNOWN,
	HS_KEY_FIND_RANGE,
	HS_KEY_FIND_KEYNUM,
};

struct hs_key_spec {
	uint8_t search; /* enum hs_key_search */
	uint8_t find;	/* enum hs_key_find */
	uint16_t flags; /* enum hs_key_flag */
	int32_t index;	/* where the search starts */
	const char *keyword;
	/* RANGE: the last key, counted from the first one or, negative, from the end; with a limit
	 * of 2 or more only that part of the arguments has keys (XREAD: half). */
	int32_t last;
	int32_t limit;
	/* KEYNUM: where the number is and where the first key, counted from where the search ended. */
	int32_t number;
	int32_t first;
	int32_t step; /* 1 or more */
};

struct hs_command;

struct hs_key_walk {
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	size_t at;   /* the key that was given last */
	size_t next; /* the run of keys under way: next, next + step … last; over when beyond */
	size_t last;
	size_t step;
	uint8_t specs_done;
	bool wrong; /* a spec found the arguments not to be what it expects: it has no keys */
};

/* The run of the next spec that has one; its first key, 0 when there is none left. */
size_t hs_keys_next_spec(struct hs_key_walk *walk);

/* The position of the next key, 0 when there are no more. */
static inline size_t hs_keys_next(struct hs_key_walk *walk);

/* Of the key that was given last: enum hs_key_flag, and the permissions that follow from it (both
 * for a key of which nothing is known, none for what is not a key). */
unsigned hs_keys_flags(const struct hs_key_walk *walk);
unsigned hs_keys_access(const struct hs_key_walk *walk);

/* Flags and their words, in Redis's order; a NULL word ends the list. */
struct hs_flag_word {
	unsigned flag;
	const char *word;
};
extern const struct hs_flag_word hs_key_flag_words[]; /* enum hs_key_flag */

unsigned hs_flag_of(const struct hs_flag_word *words, struct hs_bytes word); /* 0: there is none */

#endif
