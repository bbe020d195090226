/* Whole values: GET, SET and their relatives. */
#include "keyspace/internal.h"

/* The options of SET and GETEX. An option given twice counts once, and the last expiry wins. */
enum option {
	OPTION_NX = 1 << 0,
	OPTION_XX = 1 << 1,
	OPTION_GET = 1 << 2,
	OPTION_KEEPTTL = 1 << 3,
	OPTION_PERSIST = 1 << 4,
	OPTION_EX = 1 << 5,
	OPTION_PX = 1 << 6,
	OPTION_EXAT = 1 << 7,
	OPTION_PXAT = 1 << 8,

	OPTIONS_TIME = OPTION_EX | OPTION_PX | OPTION_EXAT | OPTION_PXAT,
	OPTIONS_EXPIRY = OPTIONS_TIME | OPTION_KEEPTTL | OPTION_PERSIST, /* at most one of these */
	OPTIONS_SET = OPTION_NX | OPTION_XX | OPTION_GET | OPTION_KEEPTTL | OPTIONS_TIME,
	OPTIONS_GETEX = OPTION_PERSIST | OPTIONS_TIME,
};

static const struct {
	const char *word;
	unsigned option;
	unsigned excludes;
} option_rows[] = {
	{"EX", OPTION_EX, OPTIONS_EXPIRY & ~OPTION_EX},
	{"PX", OPTION_PX, OPTIONS_EXPIRY & ~OPTION_PX},
	{"NX", OPTION_NX, OPTION_XX},
	{"XX", OPTION_XX, OPTION_NX},
	{"GET", OPTION_GET, 0},
	{"KEEPTTL", OPTION_KEEPTTL, OPTIONS_EXPIRY & ~OPTION_KEEPTTL},
	{"PERSIST", OPTION_PERSIST, OPTIONS_EXPIRY & ~OPTION_PERSIST},
	{"EXAT", OPTION_EXAT, OPTIONS_EXPIRY & ~OPTION_EXAT},
	{"PXAT", OPTION_PXAT, OPTIONS_EXPIRY & ~OPTION_PXAT},
};

struct options {
	unsigned given;
	size_t time_index; /* the argument behind EX, PX, EXAT or PXAT */
};

/* Reads the option at `index`. Returns the number of arguments that it took; 0: no allowed option. */
static size_t parse_option(const struct hs_run *run, size_t index, unsigned allowed,
			   struct options *options)
{
	for (size_t i = 0; i < sizeof option_rows / sizeof *option_rows; i++) {
		unsigned option = option_rows[i].option;

		if (!hs_run_word(run, index, option_rows[i].word))
			continue;
		if (!(option & allowed) || options->given & option_rows[i].excludes)
			return 0;
		if (!(option & OPTIONS_TIME)) {
			options->given |= option;
			return 1;
		}
		if (index + 1 >= run->argc)
			return 0;
		options->given |= option;
		options->time_index = index + 1;
		return 2;
	}
	return 0;
}

static int parse_options(struct hs_run *run, size_t index, unsigned allowed,
			 struct options *options)
{
	*options = (struct options){0};
	while (index < run->argc) {
		size_t took = parse_option(run, index, allowed, options);

		if (took == 0)
			return hs_run_fail_syntax(run);
		index += took;
	}
	return 0;
}

static int options_expiry(struct hs_run *run, const struct options *options, int64_t *expire_ms)
{
	if (!(options->given & OPTIONS_TIME))
		return 0;
	return hs_expire_argument(run, options->time_index,
				  options->given & (OPTION_EX | OPTION_EXAT),
				  options->given & (OPTION_EXAT | OPTION_PXAT), expire_ms);
}

static void reply_value(struct hs_run *run, const struct hs_entry *entry)
{
	if (entry->live)
		hs_reply_bulk(run->reply, entry->record.payload);
	else
		hs_reply_null(run->reply);
}

static const struct hs_attributes plain = {0, HS_EXPIRE_NEVER};

int hs_run_get(struct hs_run *run)
{
	struct hs_entry entry;
	int err = hs_entry_read_string(run, run->argv[1], &entry);

	if (!err)
		reply_value(run, &entry);
	return err;
}

static int set_with_options(struct hs_run *run)
{
	struct hs_attributes attributes = plain;
	struct options options;
	struct hs_entry entry;
	int err = parse_options(run, 3, OPTIONS_SET, &options);

	if (!err)
		err = options_expiry(run, &options, &attributes.expire_ms);
	if (err)
		return err;
	if (options.given & OPTION_GET) {
		err = hs_entry_read_string(run, run->argv[1], &entry);
		if (!err)
			reply_value(run, &entry);
	} else if (options.given & (OPTION_NX | OPTION_XX | OPTION_KEEPTTL)) {
		err = hs_entry_find_head(run, run->slot, run->argv[1], &entry);
	} else {
		err = hs_entry_find_to_replace(run, run->slot, run->argv[1], &entry);
	}
	if (err)
		return err;
	if (options.given & (entry.live ? OPTION_NX : OPTION_XX)) {
		if (!(options.given & OPTION_GET))
			hs_reply_null(run->reply);
		return 0;
	}
	if (options.given & OPTION_KEEPTTL)
		attributes.expire_ms = hs_entry_expiry(&entry);
	err = hs_entry_put(run, &entry, attributes, run->argv[2]);
	if (!err && !(options.given & OPTION_GET))
		hs_reply_ok(run->reply);
	return err;
}

int hs_run_set(struct hs_run *run)
{
	struct hs_entry entry;
	int err;

	if (run->argc > 3)
		return set_with_options(run);
	err = hs_entry_find_to_replace(run, run->slot, run->argv[1], &entry);
	if (!err)
		err = hs_entry_put(run, &entry, plain, run->argv[2]);
	if (!err)
		hs_reply_ok(run->reply);
	return err;
}

int hs_run_setnx(struct hs_run *run)
{
	struct hs_entry entry;
	int err = hs_entry_find_head(run, run->slot, run->argv[1], &entry);
	bool set = !err && !entry.live;

	if (set)
		err = hs_entry_put(run, &entry, plain, run->argv[2]);
	if (!err)
		hs_reply_int(run->reply, set);
	return err;
}

/* SETEX, PSETEX: key time value. */
int hs_run_setex(struct hs_run *run)
{
	bool seconds = run->command->id == HS_CMD_ID_SETEX;
	struct hs_attributes attributes = plain;
	struct hs_entry entry;
	int err = hs_expire_argument(run, 2, seconds, false, &attributes.expire_ms);

	if (!err)
		err = hs_entry_find_to_replace(run, run->slot, run->argv[1], &entry);
	if (!err)
		err = hs_entry_put(run, &entry, attributes, run->argv[3]);
	if (!err)
		hs_reply_ok(run->reply);
	return err;
}

int hs_run_getset(struct hs_run *run)
{
	struct hs_entry entry;
	int err = hs_entry_read_string(run, run->argv[1], &entry);

	if (err)
		return err;
	reply_value(run, &entry);
	return hs_entry_put(run, &entry, plain, run->argv[2]);
}

int hs_run_getdel(struct hs_run *run)
{
	struct hs_entry entry;
	int err = hs_entry_read_string(run, run->argv[1], &entry);

	if (err)
		return err;
	reply_value(run, &entry);
	return entry.live ? hs_entry_remove(run, &entry) : 0;
}

int hs_run_getex(struct hs_run *run)
{
	struct hs_attributes attributes = plain;
	struct options options;
	struct hs_entry entry;
	int err = parse_options(run, 2, OPTIONS_GETEX, &options);

	if (!err)
		err = hs_entry_read_string(run, run->argv[1], &entry);
	if (err)
		return err;
	if (!entry.live) {
		hs_reply_null(run->reply);
		return 0;
	}
	err = options_expiry(run, &options, &attributes.expire_ms);
	if (err)
		return err;
	reply_value(run, &entry);
	if (options.given & (OPTION_EXAT | OPTION_PXAT) && attributes.expire_ms <= run->ks->now_ms)
		return hs_entry_remove(run, &entry);
	if (options.given & OPTION_PERSIST && entry.record.expire_ms == HS_EXPIRE_NEVER)
		return 0;
	if (options.given == 0)
		return 0;
	attributes.flags = hs_entry_flags(&entry);
	return hs_entry_change(run, &entry, attributes);
}

/* MGET: a key of another type reads as missing. */
int hs_run_mget(struct hs_run *run)
{
	hs_reply_array(run->reply, run->argc - 1);
	for (size_t i = 1; i < run->argc; i++) {
		struct hs_entry entry;
		int err = hs_entry_read(run, hs_run_slot(run, run->argv[i]), run->argv[i], &entry);

		if (err)
			return err;
		if (entry.live && entry.record.type == HS_TYPE_STRING)
			hs_reply_bulk(run->reply, entry.record.payload);
		else
			hs_reply_null(run->reply);
	}
	return 0;
}

static int put_pairs(struct hs_run *run)
{
	for (size_t i = 1; i < run->argc; i += 2) {
		struct hs_entry entry;
		int err = hs_entry_find_to_replace(run, hs_run_slot(run, run->argv[i]),
						   run->argv[i], &entry);

		if (!err)
			err = hs_entry_put(run, &entry, plain, run->argv[i + 1]);
		if (err)
			return err;
	}
	return 0;
}

int hs_run_mset(struct hs_run *run)
{
	int err;

	if (run->argc % 2 == 0)
		return hs_run_fail_arity(run);
	err = put_pairs(run);
	if (!err)
		hs_reply_ok(run->reply);
	return err;
}

int hs_run_msetnx(struct hs_run *run)
{
	int err;

	if (run->argc % 2 == 0)
		return hs_run_fail_arity(run);
	for (size_t i = 1; i < run->argc; i += 2) {
		struct hs_entry entry;

		err = hs_entry_find_head(run, run->slot, run->argv[i], &entry);
		if (err)
			return err;
		if (entry.live) {
			hs_reply_int(run->reply, 0);
			return 0;
		}
	}
	err = put_pairs(run);
	if (!err)
		hs_reply_int(run->reply, 1);
	return err;
}
