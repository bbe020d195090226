#include "command/command.h"

#include "base/num.h"

size_t hs_command_keys(const struct hs_command *command, size_t argc, size_t *first, size_t *step)
{
	struct hs_key_walk walk;

	hs_keys_begin(&walk, command, argc, NULL);
	if (walk.next > walk.last)
		return 0;
	*first = walk.next;
	*step = walk.step;
	return (walk.last - walk.next) / walk.step + 1;
}

bool hs_command_has_real_keys(const struct hs_command *command)
{
	for (uint8_t i = 0; i < command->key_specs_count; i++)
		if (!(command->key_specs[i].flags & HS_KEY_NOT_KEY))
			return true;
	return command->key_first != 0;
}

/* The position after a keyword; 0: it does not occur. A negative `start` searches towards the
 * front. A keyword at the very end is ignored. */
static size_t behind_word(const struct hs_key_walk *walk, const char *word, int32_t start)
{
	size_t argc = walk->argc;

	if (start >= 0) {
		for (size_t i = (size_t)start; i + 1 < argc; i++)
			if (i > 0 && hs_bytes_is_word(walk->argv[i], word))
				return i + 1;
		return 0;
	}
	if ((size_t) - (int64_t)start > argc)
		return 0;
	for (size_t i = argc - (size_t) - (int64_t)start; i > 1; i--)
		if (i + 1 < argc && hs_bytes_is_word(walk->argv[i], word))
			return i + 1;
	return 0;
}

/* Parses SORT's options one by one: the argument of BY or GET is a pattern, even if it reads STORE.
 * The last STORE counts. */
static size_t behind_store(const struct hs_key_walk *walk)
{
	size_t found = 0;

	for (size_t i = 2; i < walk->argc; i++) {
		if (hs_bytes_is_word(walk->argv[i], "limit"))
			i += 2;
		else if (hs_bytes_is_word(walk->argv[i], "by") ||
			 hs_bytes_is_word(walk->argv[i], "get"))
			i += 1;
		else if (hs_bytes_is_word(walk->argv[i], "store") && i + 1 < walk->argc)
			found = ++i;
	}
	return found;
}

/* MIGRATE has one key, or an empty one and then several after KEYS, which must be its last option. */
static size_t migrated(const struct hs_key_walk *walk, size_t *last)
{
	size_t one = 3;

	*last = one;
	if (walk->argc <= one)
		return 0;
	if (walk->argv[one].len > 0)
		return one;
	for (size_t i = 6; i + 1 < walk->argc; i++) {
		if (hs_bytes_is_word(walk->argv[i], "auth")) {
			i += 1;
		} else if (hs_bytes_is_word(walk->argv[i], "auth2")) {
			i += 2;
		} else if (hs_bytes_is_word(walk->argv[i], "keys")) {
			*last = walk->argc - 1;
			return i + 1;
		}
	}
	return one; /* the empty key itself */
}

/* A run of keys; empty when last < first. */
struct run {
	int64_t first, last;
};

static bool find_range(const struct hs_key_spec *spec, int64_t argc, struct run *run)
{
	if (spec->last >= 0)
		run->last = run->first + spec->last;
	else if (spec->limit <= 1)
		run->last = argc + spec->last;
	else
		run->last = run->first + (argc - run->first) / spec->limit + spec->last;
	return run->last >= run->first && run->last < argc;
}

/* Parses a number like C's atoi: servers do so to find the keys for routing, before they validate
 * the number and refuse "1.5" or "+1". */
static int64_t loose_number(struct hs_bytes text)
{
	size_t at = 0;
	int64_t number = 0;
	bool negative;

	while (at < text.len &&
	       (text.data[at] == ' ' || (text.data[at] >= '\t' && text.data[at] <= '\r')))
		at++;
	negative = at < text.len && text.data[at] == '-';
	if (at < text.len && (text.data[at] == '-' || text.data[at] == '+'))
		at++;
	for (; at < text.len && text.data[at] >= '0' && text.data[at] <= '9'; at++) {
		int digit = text.data[at] - '0';

		if (number > (INT64_MAX - digit) / 10)
			return negative
				       ? 0
				       : -1; /* a long at its limit, converted to int as atoi does */
		number = number * 10 + digit;
	}
	number = (int64_t)((uint64_t)(negative ? -number : number) & UINT32_MAX);
	return number > INT32_MAX ? number - ((int64_t)UINT32_MAX + 1) : number;
}

static bool find_keynum(const struct hs_key_spec *spec, const struct hs_key_walk *walk,
			struct run *run)
{
	int64_t argc = (int64_t)walk->argc, number, at = run->first + spec->number;

	if (at < 1 || at >= argc)
		return false;
	if (!hs_num_parse_int(walk->argv[at], &number) || number < 0 || number > argc) {
		number = loose_number(walk->argv[at]);
		if (number < 1 || number > argc) /* checked before it is multiplied */
			return false;
	}
	run->first += spec->first;
	run->last = run->first + (number - 1) * spec->step;
	return number == 0 || (run->first >= 1 && run->last < argc);
}

/* Finds the run of keys of a spec. False: the arguments do not have the expected form. */
static bool find_run(const struct hs_key_spec *spec, const struct hs_key_walk *walk,
		     struct run *run)
{
	size_t last;

	*run = (struct run){0, -1};
	switch ((enum hs_key_search)spec->search) {
	case HS_KEY_SEARCH_UNKNOWN:
		return true;
	case HS_KEY_SEARCH_INDEX:
		run->first = spec->index;
		if (run->first < 1 || (size_t)run->first >= walk->argc)
			return false;
		break;
	case HS_KEY_SEARCH_KEYWORD:
		run->first = (int64_t)behind_word(walk, spec->keyword, spec->index);
		if (run->first == 0)
			return true;
		break;
	case HS_KEY_SEARCH_SORT:
		run->first = (int64_t)behind_store(walk);
		run->last = run->first > 0 ? run->first : -1;
		return true;
	case HS_KEY_SEARCH_MIGRATE:
		run->first = (int64_t)migrated(walk, &last);
		run->last = run->first > 0 ? (int64_t)last : -1;
		return true;
	}
	switch ((enum hs_key_find)spec->find) {
	case HS_KEY_FIND_RANGE:
		return find_range(spec, (int64_t)walk->argc, run);
	case HS_KEY_FIND_KEYNUM:
		return find_keynum(spec, walk, run);
	case HS_KEY_FIND_UNKNOWN:
		break;
	}
	run->last = -1;
	return true;
}

size_t hs_keys_next_spec(struct hs_key_walk *walk)
{
	const struct hs_command *command = walk->command;

	while (walk->specs_done < command->key_specs_count) {
		const struct hs_key_spec *spec = &command->key_specs[walk->specs_done++];
		struct run run;

		if (!find_run(spec, walk, &run)) {
			walk->wrong = true;
			continue;
		}
		if (run.last < run.first)
			continue;
		walk->at = (size_t)run.first;
		walk->step = (size_t)spec->step;
		walk->next = walk->at + walk->step;
		walk->last = (size_t)run.last;
		return walk->at;
	}
	walk->at = 0;
	walk->next = 1;
	walk->last = 0;
	return 0;
}

const struct hs_flag_word hs_key_flag_words[] = {
	{HS_KEY_RO, "RO"},
	{HS_KEY_RW, "RW"},
	{HS_KEY_OW, "OW"},
	{HS_KEY_RM, "RM"},
	{HS_KEY_ACCESS, "access"},
	{HS_KEY_UPDATE, "update"},
	{HS_KEY_INSERT, "insert"},
	{HS_KEY_DELETE, "delete"},
	{HS_KEY_NOT_KEY, "not_key"},
	{HS_KEY_INCOMPLETE, "incomplete"},
	{HS_KEY_VARIABLE, "variable_flags"},
	{0, NULL},
};

unsigned hs_flag_of(const struct hs_flag_word *words, struct hs_bytes word)
{
	while (words->word && !hs_bytes_is_word(word, words->word))
		words++;
	return words->flag;
}

/* Parses "RO access, OW update": the words before the comma are for the first key. */
static unsigned flags_of_text(const char *text, bool first_key)
{
	struct hs_bytes others = hs_bytes_of(text), first = hs_bytes_cut(&others, ',');
	struct hs_bytes words = first_key || others.len == 0 ? first : others;
	unsigned flags = 0;

	while (words.len > 0)
		flags |= hs_flag_of(hs_key_flag_words, hs_bytes_cut(&words, ' '));
	return flags;
}

/* For commands whose use of the key depends on their arguments, as in Redis. */
static unsigned decide(const struct hs_key_walk *walk, unsigned flags)
{
	bool set = walk->command->id == HS_CMD_ID_SET;

	for (size_t i = 2; i < walk->argc; i++) {
		if (set && i > 2 && hs_bytes_is_word(walk->argv[i], "get"))
			return HS_KEY_RW | HS_KEY_ACCESS | HS_KEY_UPDATE;
		if (!set && (hs_bytes_is_word(walk->argv[i], "set") ||
			     hs_bytes_is_word(walk->argv[i], "incrby")))
			return HS_KEY_RW | HS_KEY_ACCESS | HS_KEY_UPDATE;
	}
	if (set)
		return HS_KEY_OW | HS_KEY_UPDATE;
	if (strcmp(walk->command->name, "bitfield") == 0)
		return HS_KEY_RO | HS_KEY_ACCESS;
	return flags;
}

unsigned hs_keys_flags(const struct hs_key_walk *walk)
{
	const struct hs_command *command = walk->command;
	unsigned flags = 0;

	if (walk->specs_done > 0)
		flags = command->key_specs[walk->specs_done - 1].flags;
	else if (command->key_access)
		flags = flags_of_text(command->key_access, walk->at == (size_t)command->key_first);
	return flags & HS_KEY_VARIABLE ? decide(walk, flags) : flags;
}

unsigned hs_keys_access(const struct hs_key_walk *walk)
{
	unsigned flags = hs_keys_flags(walk);
	unsigned access = 0;

	if (flags & HS_KEY_NOT_KEY)
		return 0;
	if (!(flags & (HS_KEY_RO | HS_KEY_RW | HS_KEY_OW | HS_KEY_RM)))
		return walk->command->flags & HS_CMD_READONLY ? HS_KEY_READS
							      : HS_KEY_READS | HS_KEY_WRITES;
	if (flags & HS_KEY_ACCESS)
		access |= HS_KEY_READS;
	if (flags & (HS_KEY_UPDATE | HS_KEY_INSERT | HS_KEY_DELETE))
		access |= HS_KEY_WRITES;
	return access;
}
