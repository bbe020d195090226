#include "route/merge.h"

#include "base/check.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "wire/answer.h"

#include <inttypes.h>
#include <stdio.h>

/* The head of a part. Parts are whole replies of our own engines: they always parse. */
static int64_t head(struct hs_bytes part, struct hs_answer *answer)
{
	int64_t used = hs_answer_head(answer, part.data, part.len);

	hs_check(used > 0);
	return used;
}

static bool pass_on_error(const struct hs_merge *merge, struct hs_reply *reply)
{
	for (uint32_t i = 0; i < merge->count; i++) {
		if (merge->parts[i].len > 0 && merge->parts[i].data[0] == '-') {
			hs_buf_append_bytes(reply->out, merge->parts[i]);
			return true;
		}
	}
	return false;
}

static void merge_sum(const struct hs_merge *merge, struct hs_reply *reply)
{
	struct hs_answer answer;
	int64_t sum = 0;

	for (uint32_t i = 0; i < merge->count; i++) {
		head(merge->parts[i], &answer);
		sum += answer.integer;
	}
	hs_reply_int(reply, sum);
}

/* Each part is an array of answers to its own keys, in order: deal them out again. */
static void merge_by_key(const struct hs_merge *merge, struct hs_reply *reply)
{
	size_t *at = hs_mem_alloc(merge->count * sizeof *at);
	struct hs_answer answer;

	for (uint32_t i = 0; i < merge->count; i++)
		at[i] = (size_t)head(merge->parts[i], &answer);
	hs_reply_array(reply, merge->keys);
	for (size_t i = 0; i < merge->keys; i++) {
		uint32_t part = merge->key_part[i];
		const char *data = merge->parts[part].data + at[part];
		int64_t len = hs_answer_length(data, merge->parts[part].len - at[part]);

		hs_check(len > 0);
		hs_buf_append(reply->out, data, (size_t)len);
		at[part] += (size_t)len;
	}
	hs_mem_release(at);
}

static void merge_concat(const struct hs_merge *merge, struct hs_reply *reply)
{
	struct hs_answer answer;
	int64_t count = 0;

	for (uint32_t i = 0; i < merge->count; i++) {
		head(merge->parts[i], &answer);
		count += answer.count;
	}
	hs_reply_array(reply, (size_t)count);
	for (uint32_t i = 0; i < merge->count; i++) {
		struct hs_bytes part = merge->parts[i];
		size_t skip = (size_t)head(part, &answer);

		hs_buf_append(reply->out, part.data + skip, part.len - skip);
	}
}

static void merge_first(const struct hs_merge *merge, struct hs_reply *reply)
{
	struct hs_answer answer;

	for (uint32_t i = 0; i < merge->count; i++) {
		struct hs_bytes part = merge->parts[(merge->first + i) % merge->count];

		head(part, &answer);
		if (answer.type != HS_ANSWER_NULL) {
			hs_buf_append_bytes(reply->out, part);
			return;
		}
	}
	hs_reply_null(reply);
}

void hs_merge_replies(const struct hs_merge *merge, struct hs_reply *reply)
{
	if (pass_on_error(merge, reply))
		return;
	switch (merge->how) {
	case HS_MERGE_SUM:
		merge_sum(merge, reply);
		break;
	case HS_MERGE_BY_KEY:
		merge_by_key(merge, reply);
		break;
	case HS_MERGE_CONCAT:
		merge_concat(merge, reply);
		break;
	case HS_MERGE_FIRST:
		merge_first(merge, reply);
		break;
	case HS_MERGE_OK:
		hs_reply_ok(reply);
		break;
	case HS_MERGE_NONE:
		hs_check(merge->count == 1);
		hs_buf_append_bytes(reply->out, merge->parts[0]);
	}
}

void hs_merge_cursor(struct hs_bytes part, uint64_t next, struct hs_reply *reply)
{
	struct hs_answer array, cursor;
	char text[HS_NUM_TEXT_MAX];
	size_t at;

	if (part.len == 0 || part.data[0] == '-') {
		hs_buf_append_bytes(reply->out, part);
		return;
	}
	at = (size_t)head(part, &array);
	at += (size_t)head((struct hs_bytes){part.data + at, part.len - at}, &cursor);
	if (next == 0 || !hs_bytes_equal(cursor.text, HS_LIT("0"))) {
		hs_buf_append_bytes(reply->out, part);
		return;
	}
	snprintf(text, sizeof text, "%" PRIu64, next);
	hs_reply_array(reply, 2);
	hs_reply_bulk_text(reply, text);
	hs_buf_append(reply->out, part.data + at, part.len - at);
}

void hs_merge_partition_cursor(struct hs_bytes part, uint16_t partition, uint16_t count,
			       struct hs_reply *reply)
{
	struct hs_answer array, cursor;
	int64_t head_len, cursor_len;
	uint64_t theirs;
	char text[HS_NUM_TEXT_MAX];

	if (part.len > 0 && part.data[0] == '-') {
		hs_buf_append_bytes(reply->out, part);
		return;
	}
	head_len = hs_answer_head(&array, part.data, part.len);
	cursor_len = head_len > 0 ? hs_answer_head(&cursor, part.data + head_len,
						   part.len - (size_t)head_len)
				  : 0;
	if (cursor_len <= 0 || array.type != HS_ANSWER_ARRAY || array.count != 2 ||
	    cursor.type != HS_ANSWER_BULK || !hs_num_parse_uint(cursor.text, &theirs) ||
	    theirs > UINT64_MAX / HS_PARTITIONS_MAX - 1) {
		hs_reply_error(reply, "ERR SCAN: the server's cursor is not one that can be passed "
				      "on");
		return;
	}
	if (theirs != 0)
		theirs = theirs * HS_PARTITIONS_MAX + partition;
	else if (partition + 1 < count)
		theirs = partition + 1u;
	snprintf(text, sizeof text, "%" PRIu64, theirs);
	hs_reply_array(reply, 2);
	hs_reply_bulk_text(reply, text);
	hs_buf_append(reply->out, part.data + head_len + cursor_len,
		      part.len - (size_t)head_len - (size_t)cursor_len);
}
