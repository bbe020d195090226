/* HEAT on the Redis port: reads the request and writes the board's rows as maps, field by field (telemetry/fields.c).
 * An error names the word that is wrong and the words that are allowed. */
#include "serve/host.h"

#include "base/mem.h"
#include "base/nearest.h"
#include "base/num.h"
#include "route/slot_map.h"
#include "serve/clock.h"
#include "telemetry/board.h"
#include "wire/reply.h"

#include <stdio.h>

/* ---- the request ---- */

enum { COUNT = 1 << 0, BY = 1 << 1, WINDOW = 1 << 2, PREFIX = 1 << 3, SECONDS = 1 << 4 };

/* A parsed request; words that were not given have their default. */
struct asked {
	const char *command; /* "HEAT TOP", for errors */
	unsigned said;	     /* the words that were given */
	int64_t count;
	int64_t seconds;
	int64_t by;
	int64_t window;
	struct hs_bytes prefix;
	struct hs_reply *reply;
};

bool hs_heat_take_name(const char *command, const char *word, struct hs_bytes value,
		       const char *const *names, int64_t *chosen, struct hs_reply *reply)
{
	struct hs_nearest nearest = hs_nearest_to(value);
	char known[128], shown[64];

	*chosen = hs_words_index(names, value);
	if (*chosen >= 0)
		return true;
	hs_nearest_try_words(&nearest, names);
	hs_reply_errorf(reply, "ERR %s: %s is '%s'; %s%s%sit must be %s. Try HEAT HELP.", command,
			word, hs_bytes_escape(value, shown, sizeof shown),
			nearest.name ? "did you mean " : "", nearest.name ? nearest.name : "",
			nearest.name ? "? " : "",
			hs_words_join(names, ", ", " or ", known, sizeof known));
	return false;
}

static bool take_number(struct asked *asked, const char *word, struct hs_bytes value, int64_t max,
			int64_t *number)
{
	char shown[64];

	if (hs_num_parse_int(value, number) && *number >= 1 && *number <= max)
		return true;
	hs_reply_errorf(asked->reply, "ERR %s: %s is '%s'; it must be a number from 1 to %lld",
			asked->command, word, hs_bytes_escape(value, shown, sizeof shown),
			(long long)max);
	return false;
}

static const struct word {
	unsigned bit;
	const char *name;
	size_t offset; /* in struct asked */
	/* Allowed after the word: a number from 1 to `max`, or one of `names` (a NULL ends them); with neither set,
	 * any bytes. */
	int64_t max;
	const char *const *names;
} words[] = {
	{COUNT, "COUNT", offsetof(struct asked, count), .max = HS_BOARD_TOP_MAX},
	{BY, "BY", offsetof(struct asked, by), .names = hs_board_by_words},
	{WINDOW, "WINDOW", offsetof(struct asked, window), .names = hs_board_window_words},
	{PREFIX, "PREFIX", offsetof(struct asked, prefix), .names = NULL},
	{SECONDS, "SECONDS", offsetof(struct asked, seconds), .max = HS_BOARD_SECONDS},
};

static bool take_value(struct asked *asked, const struct word *word, struct hs_bytes value)
{
	void *field = (char *)asked + word->offset;

	if (word->max > 0)
		return take_number(asked, word->name, value, word->max, field);
	if (word->names)
		return hs_heat_take_name(asked->command, word->name, value, word->names, field,
					 asked->reply);
	*(struct hs_bytes *)field = value;
	return true;
}

static bool refuse_word(struct asked *asked, struct hs_bytes word, unsigned takes)
{
	struct hs_nearest nearest = hs_nearest_to(word);
	char known[64] = "", shown[64];
	size_t len = 0;

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!(takes & words[i].bit))
			continue;
		hs_nearest_try(&nearest, words[i].name);
		len += (size_t)snprintf(known + len, sizeof known - len, "%s%s",
					len > 0 ? ", " : "", words[i].name);
	}
	hs_reply_errorf(asked->reply,
			"ERR %s: unknown word '%s'; %s%s%sallowed are %s. Try HEAT HELP.",
			asked->command, hs_bytes_escape(word, shown, sizeof shown),
			nearest.name ? "did you mean " : "", nearest.name ? nearest.name : "",
			nearest.name ? "? " : "", known);
	return false;
}

/* Reads pairs of a word and a value, from argv[from] on. `takes`: the words that the command allows. */
static bool take_words(struct asked *asked, const struct hs_op *op, size_t from, unsigned takes)
{
	for (size_t at = from; at < op->argc; at += 2) {
		size_t i = 0;

		while (i < sizeof words / sizeof *words &&
		       !((takes & words[i].bit) && hs_bytes_is_word(op->argv[at], words[i].name)))
			i++;
		if (i == sizeof words / sizeof *words)
			return refuse_word(asked, op->argv[at], takes);
		if (asked->said & words[i].bit) {
			hs_reply_errorf(asked->reply, "ERR %s: %s is given twice", asked->command,
					words[i].name);
			return false;
		}
		if (at + 1 == op->argc) {
			hs_reply_errorf(asked->reply, "ERR %s: %s needs a value", asked->command,
					words[i].name);
			return false;
		}
		asked->said |= words[i].bit;
		if (!take_value(asked, &words[i], op->argv[at + 1]))
			return false;
	}
	return true;
}

/* The window that the request names, else the one that the board chooses. */
static enum hs_heat_window window_of(const struct hs_host *host, const struct asked *asked)
{
	return asked->said & WINDOW ? (enum hs_heat_window)asked->window
				    : hs_board_window(host->board);
}

/* ---- the answer ---- */

void hs_heat_reply_field(struct hs_reply *reply, const struct hs_field *field, const void *row)
{
	struct hs_field_value value = hs_field_get(field, row);

	hs_reply_bulk_text(reply, field->name);
	switch (field->kind) {
	case HS_FIELD_INT:
		hs_reply_int(reply, value.integer);
		break;
	case HS_FIELD_REAL:
		hs_reply_decimal(reply, value.real, HS_FIELD_DECIMALS);
		break;
	case HS_FIELD_TEXT:
	case HS_FIELD_BYTES:
		hs_reply_bulk(reply, value.bytes);
	}
}

static void reply_row(struct hs_reply *reply, const struct hs_fields *fields, const void *row)
{
	hs_reply_map(reply, fields->count);
	for (size_t i = 0; i < fields->count; i++)
		hs_heat_reply_field(reply, &fields->fields[i], row);
}

/* An array of maps. `size`: bytes of one row. */
static void reply_rows(struct hs_reply *reply, const struct hs_fields *fields, const void *rows,
		       size_t size, size_t count)
{
	hs_reply_array(reply, count);
	for (size_t i = 0; i < count; i++)
		reply_row(reply, fields, (const char *)rows + i * size);
}

static struct asked asked_of(struct hs_host *host, const char *command, struct hs_reply *reply)
{
	hs_host_sample_heat(host);
	return (struct asked){
		.command = command,
		.count = HS_BOARD_TOP_DEFAULT,
		.seconds = HS_BOARD_SECONDS_DEFAULT,
		.reply = reply,
	};
}

static void answer_top(struct hs_host *host, const struct hs_op *op, struct asked asked,
		       enum hs_heat_what what)
{
	struct hs_heat_query query = {.what = what};
	struct hs_field room[HS_BOARD_FIELDS_MAX];
	struct hs_fields fields;
	struct hs_board_row *rows;
	size_t count;

	if (!take_words(&asked, op, 2, COUNT | BY | WINDOW | (what == HS_HEAT_KEYS ? PREFIX : 0)))
		return;
	query.by = (enum hs_heat_by)asked.by;
	query.window = window_of(host, &asked);
	query.starts = asked.prefix;
	rows = hs_mem_alloc((size_t)asked.count * sizeof *rows);
	count = hs_board_top(host->board, &query, rows, (size_t)asked.count);
	fields = hs_board_fields_by(what, query.by, room);
	reply_rows(asked.reply, &fields, rows, sizeof *rows, count);
	hs_mem_free(&rows);
}

void hs_host_heat_top(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	answer_top(host, op, asked_of(host, "HEAT TOP", reply), HS_HEAT_KEYS);
}

void hs_host_heat_prefixes(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	answer_top(host, op, asked_of(host, "HEAT PREFIXES", reply), HS_HEAT_PREFIXES);
}

void hs_host_heat_slots(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	answer_top(host, op, asked_of(host, "HEAT SLOTS", reply), HS_HEAT_SLOTS);
}

void hs_host_heat_partitions(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	struct asked asked = asked_of(host, "HEAT PARTITIONS", reply);
	size_t count = hs_board_partitions_count(host->board) + 1u;
	struct hs_board_partition *rows;

	if (!take_words(&asked, op, 2, WINDOW))
		return;
	rows = hs_mem_alloc(count * sizeof *rows);
	hs_board_partitions(host->board, window_of(host, &asked), rows);
	reply_rows(reply, &hs_board_partition_fields, rows, sizeof *rows, count);
	hs_mem_free(&rows);
}

void hs_host_heat_key(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	uint16_t slot = hs_slot_of(op->argv[2]);
	const struct hs_slot_map *slots = host->engine->slots;
	uint16_t partition = slots ? hs_slot_map_get(slots, slot)
				   : hs_slot_partition(slot, hs_board_capacity(host->board));
	struct hs_board_row row;

	hs_host_sample_heat(host);
	hs_board_key(host->board, op->argv[2], slot, partition, &row);
	reply_row(reply, &hs_board_key_fields, &row);
}

static void reply_second(struct hs_reply *reply, enum hs_board_second_what history,
			 const struct hs_board_second *second)
{
	hs_reply_map(reply, history == HS_BOARD_SECOND_TOP ? 3 : 2);
	hs_reply_pair_int(reply, "time", second->wall_s);
	switch (history) {
	case HS_BOARD_SECOND_PARTITIONS:
		hs_reply_bulk_text(reply, "partitions");
		reply_rows(reply, &hs_board_second_partition_fields, second->partitions,
			   sizeof *second->partitions, second->partitions_count);
		break;
	case HS_BOARD_SECOND_TOP:
		hs_reply_pair_text(reply, "window", hs_board_window_words[second->window]);
		hs_reply_bulk_text(reply, "keys");
		reply_rows(reply, hs_board_fields(HS_HEAT_KEYS), second->keys, sizeof *second->keys,
			   second->keys_count);
		break;
	case HS_BOARD_SECOND_RANGES:
		hs_reply_bulk_text(reply, "ranges");
		hs_reply_array(reply, HS_HEAT_RANGES);
		for (size_t i = 0; i < HS_HEAT_RANGES; i++)
			hs_reply_int(reply, (int64_t)(second->ranges[i] + 0.5f));
	}
}

void hs_host_heat_history(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	struct asked asked = asked_of(host, "HEAT HISTORY", reply);
	int64_t history;
	size_t seconds, count;

	if (!hs_heat_take_name(asked.command, "the first word", op->argv[2], hs_board_second_words,
			       &history, reply) ||
	    !take_words(&asked, op, 3, SECONDS))
		return;
	seconds = (size_t)asked.seconds;
	count = hs_board_seconds(host->board, seconds);
	hs_reply_array(reply, count);
	for (size_t i = 0; i < count; i++) {
		struct hs_board_second second = hs_board_second(host->board, seconds, i);

		reply_second(reply, (enum hs_board_second_what)history, &second);
	}
}

void hs_host_heat_reset(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	(void)op;
	hs_host_sample_heat(host);
	hs_board_reset(host->board, hs_clock_now());
	hs_reply_ok(reply);
}
