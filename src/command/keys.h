/* Finds the keys among the arguments of a request, and how each is used. Included by
 * command/command.h only. No state: any thread; the walk is the caller's.
 *
 * Most rows have three numbers: key_first, key_last, key_step. The others have key specs, in
 * Redis's terms: where to begin the search (at a position, or after a keyword), and how to go on
 * from there (a range of positions, or a number of keys that one argument gives). The walk hides
 * the difference; for a row with three numbers it is a few inlined instructions.
 *
 *     struct hs_key_walk walk;
 *     size_t at;
 *
 *     hs_keys_begin(&walk, command, argc, argv);
 *     while ((at = hs_keys_next(&walk)) > 0)
 *             argv[at] is a key, and hs_keys_access(&walk) says which permission it needs
 *
 * No position is outside the arguments, whatever they are. The walk borrows the row and the
 * arguments, and allocates nothing. Arguments that do not fit a spec set walk.wrong. */
#ifndef HS_COMMAND_KEYS_H
#define HS_COMMAND_KEYS_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Redis's flags of a key spec, in Redis's order. */
enum hs_key_flag {
	HS_KEY_RO = 1 << 0,
	HS_KEY_RW = 1 << 1,
	HS_KEY_OW = 1 << 2,
	HS_KEY_RM = 1 << 3,
	HS_KEY_ACCESS = 1 << 4, /* the value is returned, copied or used */
	HS_KEY_UPDATE = 1 << 5,
	HS_KEY_INSERT = 1 << 6,
	HS_KEY_DELETE = 1 << 7,
	HS_KEY_NOT_KEY = 1 << 8, /* routed like a key but is none: a shard channel */
	HS_KEY_INCOMPLETE = 1 << 9,
	HS_KEY_VARIABLE = 1 << 10, /* depends on other arguments: SET without GET reads nothing */
};

/* Permission that a user needs for the key: read, write or both. 0: the command only looks at
 * existence, type or length; Redis allows that to a user with either permission. */
enum hs_key_access {
	HS_KEY_READS = 1 << 0,
	HS_KEY_WRITES = 1 << 1,
};

enum hs_key_search {
	HS_KEY_SEARCH_UNKNOWN, /* not described by the server: the spec finds no key */
	HS_KEY_SEARCH_INDEX,
	HS_KEY_SEARCH_KEYWORD, /* after the keyword; negative `index`: searched from the end */
	/* Two commands that Redis's own specs do not describe fully. */
	HS_KEY_SEARCH_SORT,    /* after the last STORE */
	HS_KEY_SEARCH_MIGRATE, /* the third argument; if that is empty, all after KEYS */
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
	int32_t index;	/* position at which the search starts */
	const char *keyword;
	/* RANGE: the last key, relative to the first or, negative, to the end. With a limit of 2 or
	 * more, only 1/limit of the remaining arguments are keys (XREAD: half). */
	int32_t last;
	int32_t limit;
	/* KEYNUM: positions of the number and of the first key, relative to the end of the search. */
	int32_t number;
	int32_t first;
	int32_t step; /* 1 or more */
};

struct hs_command;

struct hs_key_walk {
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	size_t at; /* position of the key that was returned last */
	size_t next; /* the current run of keys: next, next + step … last; finished when next > last */
	size_t last;
	size_t step;
	uint8_t specs_done;
	bool wrong; /* the arguments do not have the form that a spec expects: it has no keys */
};

/* Advances to the next key spec that matches. Returns its first key, 0: no more. */
size_t hs_keys_next_spec(struct hs_key_walk *walk);

/* The position of the next key, 0 when there are no more. */
static inline size_t hs_keys_next(struct hs_key_walk *walk);

/* For the key that was returned last: enum hs_key_flag, and the permission that follows from it
 * (for a key without any description: read for a read-only command, else read and write; none for a
 * position that is no key, HS_KEY_NOT_KEY). */
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
