/* Answers: turns the engine's one reply into a reply for each member of a batch.
 *
 * If the batch ran, its members are evaluated in order, starting with the value before the first of them: each
 * member changes the value or reads it, as the engine would have done. The order is the order of arrival; if the
 * adds of a batch would overflow in that order, the members are first put into the order that fold.h describes. If
 * the engine replied with an error, the batch did not run. The members that would have got this error alone get
 * it; the other members are sent again. */
#include "absorb/fold/fold.h"
#include "absorb/fold/value.h"
#include "base/check.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"

struct answers {
	struct hs_fold_batch *batch;
	struct hs_bytes reply;
	struct hs_buf *scratch;
	const struct hs_fold_calls *calls;
	void *context;
	struct hs_fold_value value;
	/* Length of a bulk reply with the current value at the front of `scratch`; 0: not composed. The reply is
	 * composed once for all readers of the value. It is a copy of the value, because the SET with the value is
	 * freed when the SET is answered. */
	size_t bulk_len;
};

/* Which members get the engine's error. The other members are sent again. */
enum share {
	/* every member: the batch may have run (UNKNOWN), or each member alone would get the error, too */
	SHARE_ALL,
	/* members of the batch's kind: the adds of an add batch, the SETs of a set batch */
	SHARE_WRITES,
	SHARE_TYPE, /* every member but EXISTS, which does not need a string value */
	SHARE_NONE,
};

static struct hs_fold_member *first_of(struct hs_link *members)
{
	return hs_list_entry(members->next, struct hs_fold_member, link);
}

static struct hs_fold_member *take(struct hs_fold_batch *batch)
{
	struct hs_fold_member *member = first_of(&batch->members);

	hs_list_remove(&member->link);
	batch->count--;
	return member;
}

static void answer_all(const struct answers *answers, struct hs_bytes reply)
{
	while (!hs_list_empty(&answers->batch->members))
		answers->calls->answer(answers->context, take(answers->batch), reply);
}

/* ---- the batch ran: one answer after the other ---- */

static struct hs_bytes compose_int(struct answers *answers, int64_t number)
{
	struct hs_reply reply = {.out = answers->scratch, .resp = 2};

	answers->scratch->len = answers->bulk_len;
	hs_reply_int(&reply, number);
	return (struct hs_bytes){answers->scratch->data + answers->bulk_len,
				 answers->scratch->len - answers->bulk_len};
}

static struct hs_bytes compose_error(struct answers *answers, const char *text)
{
	struct hs_reply reply = {.out = answers->scratch, .resp = 2};

	answers->scratch->len = answers->bulk_len;
	hs_reply_error(&reply, text);
	return (struct hs_bytes){answers->scratch->data + answers->bulk_len,
				 answers->scratch->len - answers->bulk_len};
}

static void compose_bulk(struct answers *answers, struct hs_bytes text)
{
	struct hs_reply reply = {.out = answers->scratch, .resp = 2};

	answers->scratch->len = 0;
	hs_reply_bulk(&reply, text);
	answers->bulk_len = answers->scratch->len;
}

static struct hs_bytes answer_set(struct answers *answers, const struct hs_fold_member *member)
{
	struct hs_link *behind = &answers->batch->members;

	hs_fold_value_set(&answers->value, member);
	answers->bulk_len = 0;
	if (!answers->value.is_number && !hs_list_empty(behind) &&
	    first_of(behind)->kind != HS_FOLD_SET)
		compose_bulk(answers, member->argv[2]);
	return answers->reply;
}

static struct hs_bytes answer_add(struct answers *answers, const struct hs_fold_member *member)
{
	const char *error = hs_fold_value_add(&answers->value, member->number);

	if (error)
		return compose_error(answers, error);
	answers->bulk_len = 0;
	return compose_int(answers, answers->value.number);
}

static struct hs_bytes answer_get(struct answers *answers)
{
	char text[HS_NUM_TEXT_MAX];

	if (answers->bulk_len == 0) {
		hs_check(answers->value.is_number);
		compose_bulk(
			answers,
			(struct hs_bytes){text, hs_num_format_int(answers->value.number, text)});
	}
	return (struct hs_bytes){answers->scratch->data, answers->bulk_len};
}

/* Seconds, rounded as Redis rounds them; -1: no expiry. */
static int64_t ttl_of(const struct hs_fold_value *value)
{
	return value->ttl_ms > 0 ? (value->ttl_ms + 500) / 1000 : -1;
}

/* Returns one member's reply. The reply is the same in RESP2 and RESP3, because none of these replies is a
 * null. */
static struct hs_bytes answer_one(struct answers *answers, const struct hs_fold_member *member)
{
	switch (member->kind) {
	case HS_FOLD_SET:
		return answer_set(answers, member);
	case HS_FOLD_ADD:
		return answer_add(answers, member);
	case HS_FOLD_GET:
		return answer_get(answers);
	case HS_FOLD_STRLEN:
		return compose_int(answers, (int64_t)hs_fold_value_len(&answers->value));
	case HS_FOLD_EXISTS:
		return compose_int(answers, 1);
	case HS_FOLD_TTL:
	case HS_FOLD_READ:
	case HS_FOLD_NOT:
		break;
	}
	hs_check(member->kind == HS_FOLD_TTL); /* members of no other kind join a write batch */
	return compose_int(answers, ttl_of(&answers->value));
}

/* The sign of the first add that overflows in the order of arrival; 0: no add overflows. */
static int find_overflow(const struct answers *answers)
{
	const struct hs_link *members = &answers->batch->members;
	int64_t number = answers->value.number;

	if (number > -(int64_t)HS_FOLD_MAGNITUDES_MAX && number < (int64_t)HS_FOLD_MAGNITUDES_MAX)
		return 0; /* no batch can reach a limit from this number */
	hs_list_each(const struct hs_fold_member, member, members, link) {
		if (__builtin_add_overflow(number, member->number, &number))
			return hs_fold_sign(member->number);
	}
	return 0;
}

/* Moves the members of all clients whose adds have this sign to the front. The order within the front part and
 * within the rest stays. */
static void put_first(struct hs_fold_batch *batch, int sign)
{
	struct hs_link *members = &batch->members, *next = members->next;

	hs_list_each(struct hs_fold_member, member, members, link) {
		if (member->number != 0)
			member->client->sign = hs_fold_sign(member->number);
	}
	for (uint32_t left = batch->count; left > 0; left--) {
		struct hs_link *link = next;

		next = link->next;
		if (hs_list_entry(link, struct hs_fold_member, link)->client->sign == sign)
			continue;
		hs_list_remove(link);
		hs_list_append(members, link);
	}
	hs_list_each(struct hs_fold_member, member, members, link)
		member->client->sign = 0;
}

static void answer_done(struct answers *answers)
{
	if (answers->batch->kind == HS_FOLD_ADD) {
		int sign = find_overflow(answers);

		if (sign != 0)
			put_first(answers->batch, -sign);
	}
	while (!hs_list_empty(&answers->batch->members)) {
		struct hs_fold_member *member = take(answers->batch);
		struct hs_bytes reply = answer_one(answers, member);

		answers->calls->answer(answers->context, member, reply);
	}
}

/* ---- the engine replied with an error ---- */

static bool has(struct hs_bytes text, const char *split_error)
{
	return text.len > 0 && memmem(text.data, text.len, split_error, strlen(split_error));
}

static enum share share_of(const struct hs_fold_batch *batch, struct hs_bytes error)
{
	/* The engine gives these errors only to writes. */
	static const char *const refused[] = {"OOM ", "MISCONF ", "READONLY ", "NOREPLICAS "};
	bool add = batch->kind == HS_FOLD_ADD;

	if (hs_bytes_begins(error, HS_LIT("UNKNOWN")) || has(error, "is unknown"))
		return SHARE_ALL;
	for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
		if (hs_bytes_begins(error, hs_bytes_of(refused[i])))
			return SHARE_WRITES;
	/* heatsink's user may lack the permission for INCRBY, or the server may lack INCRBY, while INCR works. */
	if (hs_bytes_begins(error, HS_LIT("NOPERM ")) ||
	    hs_bytes_begins(error, HS_LIT("ERR unknown command")))
		return add ? SHARE_NONE : SHARE_WRITES;
	if (add && hs_bytes_begins(error, HS_LIT("WRONGTYPE ")))
		return SHARE_TYPE;
	if (add && has(error, "value is not an integer"))
		return SHARE_WRITES;
	/* the net sum overflowed; a member's add alone may fit */
	if (add && has(error, "would overflow"))
		return SHARE_NONE;
	return SHARE_ALL;
}

static bool has_share(enum share share, const struct hs_fold_batch *batch,
		      const struct hs_fold_member *member)
{
	switch (share) {
	case SHARE_ALL:
		return true;
	case SHARE_WRITES:
		return member->kind == batch->kind;
	case SHARE_TYPE:
		return member->kind != HS_FOLD_EXISTS;
	case SHARE_NONE:
		break;
	}
	return false;
}

/* Answers the members that share the error, then calls `retry` for the others. A retried member runs later than
 * the members answered here. So later members of the same client are retried too; otherwise the client would get
 * an older value for a later request. */
static void split_error(const struct answers *answers, enum share share, struct hs_bytes error)
{
	struct hs_fold_batch *batch = answers->batch;
	struct hs_link retry;

	hs_list_init(&retry);
	hs_list_each_safe(struct hs_fold_member, member, &batch->members, link) {
		if (member->client->batch != batch && has_share(share, batch, member))
			continue;
		member->client->batch = batch;
		hs_list_remove(&member->link);
		hs_list_append(&retry, &member->link);
		batch->count--;
	}
	hs_list_each(struct hs_fold_member, member, &retry, link)
		member->client->batch = NULL;
	answer_all(answers, error);
	while (!hs_list_empty(&retry)) {
		struct hs_fold_member *member = first_of(&retry);

		hs_list_remove(&member->link);
		answers->calls->retry(answers->context, member);
	}
}

/* Returns the error as a line that begins with '-', which is valid in both RESP versions. The engine may have sent
 * it in the form of RESP3 with a length prefix. */
static struct hs_bytes plain_error(struct answers *answers, struct hs_bytes text)
{
	struct hs_reply reply = {.out = answers->scratch, .resp = 2};

	if (answers->reply.data[0] == '-')
		return answers->reply;
	answers->scratch->len = 0;
	hs_reply_error_bytes(&reply, text);
	return hs_buf_bytes(answers->scratch);
}

/* Whether the reply says that the batch ran. For an add batch, also computes the number before the first
 * member. */
static bool is_done(struct answers *answers, const struct hs_parsed_reply *head)
{
	if (answers->batch->kind == HS_FOLD_SET)
		return head->type == HS_PARSED_STATUS;
	answers->value.is_number = true;
	return head->type == HS_PARSED_INT &&
	       !__builtin_sub_overflow(head->integer, answers->batch->sum, &answers->value.number);
}

void hs_fold_answer(struct hs_fold_batch *batch, struct hs_bytes reply, struct hs_buf *scratch,
		    const struct hs_fold_calls *calls, void *context)
{
	static const char malformed[] =
		"UNKNOWN the engine's reply to a batch of folded requests is "
		"malformed: the command may or may not have run";
	struct answers answers = {batch, reply, scratch, calls, context, {0}, 0};
	struct hs_parsed_reply head;
	bool whole;

	scratch->len = 0;
	if (batch->count <= 1 || batch->kind == HS_FOLD_READ) {
		answer_all(&answers, reply);
		return;
	}
	whole = hs_parse_reply_head(&head, reply.data, reply.len) > 0;
	if (batch->kind == HS_FOLD_ADD)
		batch->fold->far_from_overflow = whole && head.type == HS_PARSED_INT &&
						 hs_fold_is_far_from_overflow(head.integer);
	if (whole && head.type == HS_PARSED_ERROR)
		split_error(&answers, share_of(batch, head.text), plain_error(&answers, head.text));
	else if (whole && is_done(&answers, &head))
		answer_done(&answers);
	else
		answer_all(&answers, compose_error(&answers, malformed));
}
