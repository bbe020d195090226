/* Fuzz target: folding (absorb/fold), whatever is requested and whatever the engine replies.
 *
 * Input: the lowest bit of the first byte selects one of two forms. 0: the rest drives a random scenario
 * (tests/lib/fold_world.h), in which every folded reply must equal the reply without folding. 1: the rest is text:
 * lines up to an empty line are requests for one key, the lines after it are engine replies, one per batch (\r\n is
 * added). Then every request must be called back exactly once, and every reply that the fold composes must be whole.
 *
 * The head of fuzz_request.c says how targets run and how to replay a crash. */
#include "tests/lib/fold_world.h"

#include "wire/parse_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ASKS_MAX = 64, WORDS_MAX = 8 };

struct member {
	struct hs_fold_member ask; /* first */
	struct hs_bytes argv[WORDS_MAX];
	int called;
	bool alone; /* gets the engine's reply unchanged, also a malformed one */
};

static struct hs_bytes next_line(struct hs_bytes *rest)
{
	const char *end = rest->len ? memchr(rest->data, '\n', rest->len) : NULL;
	struct hs_bytes line = {rest->data, end ? (size_t)(end - rest->data) : rest->len};
	size_t used = end ? line.len + 1 : line.len;

	*rest = (struct hs_bytes){rest->data + used, rest->len - used};
	return line;
}

/* "cGET k": the bits of the first byte are the client's number and protocol version. */
static bool read_member(struct member *member, struct hs_bytes line, struct hs_fold_client *clients)
{
	struct hs_fold_member *ask = &member->ask;
	size_t at = 1;

	if (line.len < 2)
		return false;
	*ask = (struct hs_fold_member){.argv = member->argv, .resp = line.data[0] & 8 ? 3 : 2};
	ask->client = &clients[line.data[0] & 7];
	while (at <= line.len && ask->argc < WORDS_MAX) {
		const char *end = at < line.len ? memchr(line.data + at, ' ', line.len - at) : NULL;
		size_t stop = end ? (size_t)(end - line.data) : line.len;

		member->argv[ask->argc++] = (struct hs_bytes){line.data + at, stop - at};
		at = stop + 1;
	}
	ask->command = hs_command_find(member->argv[0]);
	return ask->command && hs_fold_classify(ask) != HS_FOLD_NOT;
}

static void on_answer(void *context, struct hs_fold_member *ask, struct hs_bytes reply)
{
	struct member *member = (struct member *)ask;

	(void)context;
	hs_check(member->called++ == 0);
	if (!member->alone)
		hs_check(hs_parse_reply_length(reply.data, reply.len) == (int64_t)reply.len);
}

static void on_poll_again(void *context, struct hs_fold_member *ask)
{
	(void)context;
	hs_check(((struct member *)ask)->called++ == 0);
}

static void answer_batch(struct hs_fold_batch *batch, struct hs_bytes line, struct hs_buf *scratch)
{
	static const struct hs_fold_calls calls = {on_answer, on_poll_again};
	size_t len = line.len + 2;
	char *reply = hs_mem_alloc(len); /* a copy of exactly the right size */

	if (line.len)
		memcpy(reply, line.data, line.len);
	memcpy(reply + line.len, "\r\n", 2);
	for (struct hs_link *link = batch->members.next; link != &batch->members; link = link->next)
		((struct member *)hs_list_entry(link, struct hs_fold_member, link))->alone =
			batch->count == 1 || batch->kind == HS_FOLD_READ;
	hs_fold_answer(batch, (struct hs_bytes){reply, len}, scratch, &calls, NULL);
	hs_mem_free(&reply);
}

static void run_lines(struct hs_bytes rest)
{
	struct member *guests = hs_mem_zalloc(ASKS_MAX * sizeof *guests);
	struct hs_fold_client clients[8] = {0};
	struct hs_buf scratch = {0};
	struct hs_fold fold;
	struct hs_link plan;
	struct hs_bytes line;
	size_t count = 0;

	hs_fold_init(&fold);
	hs_list_init(&plan);
	while (count < ASKS_MAX && (line = next_line(&rest)).len > 0)
		if (read_member(&guests[count], line, clients))
			hs_fold_add(&fold, &guests[count++].ask);
	while (!hs_list_empty(&fold.waiting)) {
		hs_fold_plan(&fold, &plan);
		hs_check(!hs_list_empty(&plan));
		while (!hs_list_empty(&plan)) {
			struct hs_fold_batch *batch =
				hs_list_entry(plan.next, struct hs_fold_batch, link);

			hs_check(hs_command_arity_fits(batch->command, batch->argc));
			answer_batch(batch, next_line(&rest), &scratch);
			hs_fold_free(&batch);
		}
	}
	for (size_t i = 0; i < count; i++)
		hs_check(guests[i].called == 1);
	hs_buf_deinit(&scratch);
	hs_mem_free(&guests);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fold_tally tally = {0};

	if (size < 1)
		return 0;
	if (data[0] % 2)
		run_lines((struct hs_bytes){(const char *)data + 1, size - 1});
	else
		hs_check(!fold_world_run((struct fold_choices){.data = data + 1, .left = size - 1},
					 &tally));
	return 0;
}
