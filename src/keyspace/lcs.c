/* LCS: the longest common subsequence of two strings, its length, or its positions in both.
 *
 * The usual table of lengths, L[i][j] for the first i bytes of one and the first j of the other, is
 * filled row by row; only one row of it is stored. Walking back from the far corner needs to know
 * at each cell without a match whether the length came from above (L[i-1][j] > L[i][j-1]) or from
 * the left: one bit a cell. Of several subsequences of the same length this walk finds the one that
 * Redis finds. Redis refuses a table over proto-max-bulk-len at four bytes a cell, and so does
 * this; the bits of the largest one allowed take 16 MiB. */
#include "base/limits.h"
#include "base/mem.h"
#include "keyspace/internal.h"

struct table {
	struct hs_bytes a, b;
	uint8_t *from_above; /* bit i * b.len + j; NULL when only the length is asked for */
	uint32_t length;
};

struct options {
	bool indexes, length, match_lengths;
	int64_t match_min;
};

/* A run of matching bytes; runs are found from back to front. */
struct match {
	size_t a_start, a_end, b_start, b_end;
};

static void fill(struct table *table, bool walk)
{
	size_t rows = table->a.len, columns = table->b.len;
	uint32_t *row = hs_mem_zalloc((columns + 1) * sizeof *row);

	table->from_above = walk ? hs_mem_zalloc(rows * columns / 8 + 1) : NULL;
	for (size_t i = 0; i < rows; i++) {
		uint32_t diagonal = 0;

		for (size_t j = 0; j < columns; j++) {
			uint32_t above = row[j + 1], left = row[j];

			if (table->a.data[i] == table->b.data[j]) {
				row[j + 1] = diagonal + 1;
			} else if (above > left) {
				if (walk)
					table->from_above[(i * columns + j) / 8] |=
						(uint8_t)(1u << (i * columns + j) % 8);
			} else {
				row[j + 1] = left;
			}
			diagonal = above;
		}
	}
	table->length = row[columns];
	hs_mem_free(&row);
}

static bool is_from_above(const struct table *table, size_t i, size_t j)
{
	size_t cell = i * table->b.len + j;

	return table->from_above[cell / 8] >> cell % 8 & 1;
}

/* Finds the next run of matching bytes, going back from *i and *j (the positions one after the
 * bytes to compare). False when there is none. */
static bool next_match(const struct table *table, size_t *i, size_t *j, struct match *match)
{
	while (*i > 0 && *j > 0 && table->a.data[*i - 1] != table->b.data[*j - 1]) {
		if (is_from_above(table, *i - 1, *j - 1))
			--*i;
		else
			--*j;
	}
	if (*i == 0 || *j == 0)
		return false;
	match->a_end = *i - 1;
	match->b_end = *j - 1;
	while (*i > 0 && *j > 0 && table->a.data[*i - 1] == table->b.data[*j - 1]) {
		--*i;
		--*j;
	}
	match->a_start = *i;
	match->b_start = *j;
	return true;
}

static int64_t match_length(const struct match *match)
{
	return (int64_t)(match->a_end - match->a_start + 1);
}

static void reply_match(struct hs_run *run, const struct options *options,
			const struct match *match)
{
	hs_reply_array(run->reply, options->match_lengths ? 3 : 2);
	hs_reply_array(run->reply, 2);
	hs_reply_int(run->reply, (int64_t)match->a_start);
	hs_reply_int(run->reply, (int64_t)match->a_end);
	hs_reply_array(run->reply, 2);
	hs_reply_int(run->reply, (int64_t)match->b_start);
	hs_reply_int(run->reply, (int64_t)match->b_end);
	if (options->match_lengths)
		hs_reply_int(run->reply, match_length(match));
}

/* Walks the table twice, because the number of matches comes first in the reply. */
static void reply_indexes(struct hs_run *run, const struct table *table,
			  const struct options *options)
{
	size_t i = table->a.len, j = table->b.len, count = 0;
	struct match match;

	while (next_match(table, &i, &j, &match))
		count += match_length(&match) >= options->match_min;
	hs_reply_map(run->reply, 2);
	hs_reply_bulk_text(run->reply, "matches");
	hs_reply_array(run->reply, count);
	i = table->a.len;
	j = table->b.len;
	while (next_match(table, &i, &j, &match)) {
		if (match_length(&match) >= options->match_min)
			reply_match(run, options, &match);
	}
	hs_reply_bulk_text(run->reply, "len");
	hs_reply_int(run->reply, table->length);
}

static void reply_subsequence(struct hs_run *run, const struct table *table)
{
	size_t i = table->a.len, j = table->b.len, at = table->length;
	char *text = hs_mem_alloc(at);
	struct match match;

	while (next_match(table, &i, &j, &match)) {
		size_t len = match.a_end - match.a_start + 1;

		at -= len;
		memcpy(text + at, table->a.data + match.a_start, len);
	}
	hs_check(at == 0);
	hs_reply_bulk(run->reply, (struct hs_bytes){text, table->length});
	hs_mem_free(&text);
}

static int parse_options(struct hs_run *run, struct options *options)
{
	*options = (struct options){0};
	for (size_t i = 3; i < run->argc; i++) {
		if (hs_run_word(run, i, "IDX")) {
			options->indexes = true;
		} else if (hs_run_word(run, i, "LEN")) {
			options->length = true;
		} else if (hs_run_word(run, i, "WITHMATCHLEN")) {
			options->match_lengths = true;
		} else if (hs_run_word(run, i, "MINMATCHLEN") && i + 1 < run->argc) {
			int err = hs_run_integer(run, ++i, NULL, &options->match_min);

			if (err)
				return err;
		} else {
			return hs_run_fail_syntax(run);
		}
	}
	if (options->indexes && options->length)
		return hs_run_fail(run, "ERR If you want both the length and indexes, please just "
					"use IDX.");
	return 0;
}

static int fail_no_string(struct hs_run *run)
{
	return hs_run_fail(run, "ERR The specified keys must contain string values");
}

int hs_run_lcs(struct hs_run *run)
{
	struct hs_entry a, b;
	struct options options;
	struct table table;
	int err = hs_entry_read(run, run->slot, run->argv[1], &a);

	if (!err)
		err = hs_entry_read(run, run->slot, run->argv[2], &b);
	if (err)
		return err;
	if ((a.live && a.record.type != HS_TYPE_STRING) ||
	    (b.live && b.record.type != HS_TYPE_STRING))
		return fail_no_string(run);
	err = parse_options(run, &options);
	if (err)
		return err;
	table.a = hs_entry_value(&a);
	table.b = hs_entry_value(&b);
	if ((table.a.len + 1) * (table.b.len + 1) * sizeof(uint32_t) > HS_BULK_BYTES_MAX)
		return hs_run_fail(run, "ERR Insufficient memory, transient memory for LCS exceeds "
					"proto-max-bulk-len");
	fill(&table, !options.length);
	if (options.indexes)
		reply_indexes(run, &table, &options);
	else if (options.length)
		hs_reply_int(run->reply, table.length);
	else
		reply_subsequence(run, &table);
	hs_mem_free(&table.from_above);
	return 0;
}
