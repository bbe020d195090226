/* A function for each kind of merge; merge_parts chooses it by struct hs_merge.how. */
#include "route/merge.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "wire/walk.h"

#include <inttypes.h>
#include <stdio.h>

/* Each merge returns false if a part does not have the expected form. Servers of many versions and modules
 * answer, so their replies are checked before use. */

static bool is_error(struct hs_bytes part)
{
	return part.len > 0 && (part.data[0] == '-' || part.data[0] == '!');
}

static bool is_whole(struct hs_bytes part)
{
	return part.len > 0 && hs_parse_reply_length(part.data, part.len) == (int64_t)part.len;
}

static struct hs_walk walk_of(struct hs_bytes part)
{
	return (struct hs_walk){part.data, part.len};
}

/* One walk for each part; the caller frees the array. */
static struct hs_walk *walks_of(const struct hs_merge *merge)
{
	struct hs_walk *walks = hs_mem_alloc(merge->count * sizeof *walks);

	for (uint32_t i = 0; i < merge->count; i++)
		walks[i] = walk_of(merge->parts[i]);
	return walks;
}

static bool pass_on_error(const struct hs_merge *merge, struct hs_reply *reply)
{
	for (uint32_t i = 0; i < merge->count; i++) {
		if (is_error(merge->parts[i])) {
			hs_buf_append_bytes(reply->out, merge->parts[i]);
			return true;
		}
	}
	return false;
}

static bool combine(enum hs_command_merge how, int64_t *all, int64_t one)
{
	switch (how) {
	case HS_MERGE_SUM:
		return !__builtin_add_overflow(*all, one, all);
	case HS_MERGE_MIN:
		*all = one < *all ? one : *all;
		return true;
	case HS_MERGE_MAX:
		*all = one > *all ? one : *all;
		return true;
	case HS_MERGE_AND:
		*all = *all && one;
		return true;
	case HS_MERGE_OR:
		*all = *all || one;
		return true;
	default:
		return false;
	}
}

/* Takes the next number of each part and writes the combined number. */
static bool combine_next(const struct hs_merge *merge, struct hs_walk *rest, struct hs_reply *reply)
{
	struct hs_parsed_reply answer;
	int64_t all = 0;
	bool boolean = false;

	for (uint32_t i = 0; i < merge->count; i++) {
		if (hs_walk_next(&rest[i], &answer) < 0 ||
		    (answer.type != HS_PARSED_INT && answer.type != HS_PARSED_BOOL))
			return false;
		boolean = answer.type == HS_PARSED_BOOL;
		if (i == 0)
			all = answer.integer;
		else if (!combine(merge->how, &all, answer.integer))
			return false;
	}
	if (boolean)
		hs_reply_bool(reply, all != 0);
	else
		hs_reply_int(reply, all);
	return true;
}

/* Parts that are numbers, or arrays with the same count of numbers. */
static bool merge_numbers(const struct hs_merge *merge, struct hs_reply *reply)
{
	struct hs_walk *rest = walks_of(merge);
	int64_t numbers = -1; /* length of each array; -1: the parts are not arrays */
	bool fine = true;

	for (uint32_t i = 0; i < merge->count && fine; i++) {
		struct hs_walk head = rest[i];
		int64_t count = -1;

		if (hs_walk_array(&head, &count) == 0)
			rest[i] = head;
		if (i == 0)
			numbers = count;
		fine = count == numbers;
	}
	if (fine && numbers < 0)
		fine = combine_next(merge, rest, reply);
	else if (fine)
		hs_reply_array(reply, (size_t)numbers);
	for (int64_t i = 0; i < numbers && fine; i++)
		fine = combine_next(merge, rest, reply);
	for (uint32_t i = 0; i < merge->count && fine; i++)
		fine = rest[i].len == 0;
	hs_mem_release(rest);
	return fine;
}

/* Each part is an array with the replies for its own keys, in order: puts them back into the order of all keys. */
static bool merge_by_key(const struct hs_merge *merge, struct hs_reply *reply)
{
	struct hs_walk *rest = walks_of(merge);
	int64_t count;
	bool fine = true;

	for (uint32_t i = 0; i < merge->count && fine; i++)
		fine = hs_walk_array(&rest[i], &count) == 0;
	hs_reply_array(reply, merge->keys);
	for (size_t i = 0; i < merge->keys && fine; i++) {
		struct hs_walk *part = &rest[merge->key_part[i]];
		const char *answer = part->data;

		fine = hs_walk_skip(part) == 0;
		hs_buf_append(reply->out, answer, (size_t)(part->data - answer));
	}
	hs_mem_release(rest);
	return fine;
}

/* Arrays, sets or maps, all of the same type. */
static bool merge_concat(const struct hs_merge *merge, struct hs_reply *reply)
{
	char type = merge->parts[0].len > 0 ? merge->parts[0].data[0] : '\0';
	struct hs_parsed_reply answer;
	int64_t count = 0;

	for (uint32_t i = 0; i < merge->count; i++) {
		struct hs_walk part = walk_of(merge->parts[i]);

		if (!is_whole(merge->parts[i]) || part.data[0] != type ||
		    hs_walk_next(&part, &answer) < 0 ||
		    (answer.type != HS_PARSED_ARRAY && answer.type != HS_PARSED_MAP))
			return false;
		count += answer.count;
	}
	hs_buf_printf(reply->out, "%c%" PRId64 "\r\n", type, count);
	for (uint32_t i = 0; i < merge->count; i++) {
		struct hs_walk part = walk_of(merge->parts[i]);

		if (hs_walk_next(&part, &answer) == 0)
			hs_buf_append(reply->out, part.data, part.len);
	}
	return true;
}

static bool merge_first(const struct hs_merge *merge, struct hs_reply *reply)
{
	struct hs_parsed_reply answer;

	for (uint32_t i = 0; i < merge->count; i++) {
		struct hs_bytes part = merge->parts[(merge->first + i) % merge->count];

		if (!is_whole(part) || hs_parse_reply_head(&answer, part.data, part.len) <= 0)
			return false;
		if (answer.type != HS_PARSED_NULL) {
			hs_buf_append_bytes(reply->out, part);
			return true;
		}
	}
	hs_reply_null(reply);
	return true;
}

/* SCRIPT KILL at a server that runs no script. */
static bool is_not_busy(struct hs_bytes part)
{
	return hs_bytes_begins(part, HS_LIT("-NOTBUSY"));
}

/* The first success. Without one, the first error other than -NOTBUSY: it may say why a script goes on.
 * -NOTBUSY only if every server says so. */
static bool merge_succeeded(const struct hs_merge *merge, struct hs_reply *reply)
{
	struct hs_bytes part = merge->parts[0];

	for (uint32_t i = 1; i < merge->count && is_not_busy(part); i++)
		if (!is_not_busy(merge->parts[i]))
			part = merge->parts[i];
	for (uint32_t i = 0; i < merge->count && is_error(part); i++)
		if (!is_error(merge->parts[i]))
			part = merge->parts[i];
	if (!is_whole(part))
		return false;
	hs_buf_append_bytes(reply->out, part);
	return true;
}

static bool merge_parts(const struct hs_merge *merge, struct hs_reply *reply)
{
	switch (merge->how) {
	case HS_MERGE_SUM:
	case HS_MERGE_MIN:
	case HS_MERGE_MAX:
	case HS_MERGE_AND:
	case HS_MERGE_OR:
		return merge_numbers(merge, reply);
	case HS_MERGE_BY_KEY:
		return merge_by_key(merge, reply);
	case HS_MERGE_CONCAT:
		return merge_concat(merge, reply);
	case HS_MERGE_FIRST:
		return merge_first(merge, reply);
	case HS_MERGE_OK:
		hs_reply_ok(reply);
		return true;
	case HS_MERGE_ALL_SUCCEEDED:
	case HS_MERGE_ONE_SUCCEEDED:
	case HS_MERGE_NONE: /* of a command that is not split */
		return merge_succeeded(merge, reply);
	}
	return false;
}

static void refuse(const char *name, struct hs_reply *reply)
{
	hs_reply_errorf(reply, "ERR the replies of the partitions to '%s' cannot be made one",
			name ? name : "?");
}

void hs_merge_replies(const struct hs_merge *merge, struct hs_reply *reply)
{
	size_t start = reply->out->len;

	if (merge->how != HS_MERGE_ONE_SUCCEEDED && pass_on_error(merge, reply))
		return;
	if (!merge_parts(merge, reply)) {
		reply->out->len = start;
		refuse(merge->name, reply);
	}
}

/* Takes the cursor off the front of a SCAN reply. False: not a SCAN reply. */
static bool take_cursor(struct hs_walk *rest, struct hs_bytes *cursor)
{
	struct hs_parsed_reply answer;
	int64_t count;

	if (hs_walk_array(rest, &count) < 0 || count != 2 || hs_walk_next(rest, &answer) < 0 ||
	    answer.type != HS_PARSED_BULK)
		return false;
	*cursor = answer.text;
	return true;
}

static void reply_cursor(uint64_t cursor, struct hs_walk rest, struct hs_reply *reply)
{
	char text[HS_NUM_TEXT_MAX];

	snprintf(text, sizeof text, "%" PRIu64, cursor);
	hs_reply_array(reply, 2);
	hs_reply_bulk_text(reply, text);
	hs_buf_append(reply->out, rest.data, rest.len);
}

void hs_merge_cursor(struct hs_bytes part, uint64_t next, struct hs_reply *reply)
{
	struct hs_walk rest = walk_of(part);
	struct hs_bytes cursor = {0};
	bool error = is_error(part);

	if (!error && (!is_whole(part) || !take_cursor(&rest, &cursor)))
		refuse("scan", reply);
	else if (error || next == 0 || !hs_bytes_equal(cursor, HS_LIT("0")))
		hs_buf_append_bytes(reply->out, part);
	else
		reply_cursor(next, rest, reply);
}

void hs_merge_partition_cursor(struct hs_bytes part, uint16_t partition, uint16_t count,
			       struct hs_reply *reply)
{
	struct hs_walk rest = walk_of(part);
	struct hs_bytes cursor;
	uint64_t theirs;

	if (is_error(part)) {
		hs_buf_append_bytes(reply->out, part);
		return;
	}
	if (!take_cursor(&rest, &cursor) || !hs_num_parse_uint(cursor, &theirs) ||
	    theirs > UINT64_MAX / HS_PARTITIONS_MAX - 1) {
		hs_reply_error(reply, "ERR SCAN: the server's cursor is not one that can be passed "
				      "on");
		return;
	}
	if (theirs != 0)
		theirs = theirs * HS_PARTITIONS_MAX + partition;
	else if (partition + 1 < count)
		theirs = partition + 1u;
	reply_cursor(theirs, rest, reply);
}
