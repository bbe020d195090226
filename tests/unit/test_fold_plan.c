/* Goal: the rules of folding: which commands fold, which batches a queue becomes, and which answer each member
 * gets from a batch's reply or refusal.
 *
 * Method: queues are written as text, "a:INCR k; b:GET k; c3:TTL k": client, 3 for RESP3, arguments. Plans and
 * answers are compared as text. test_fold_random shows that folded answers are right in every mixture. */
#include "absorb/fold/fold.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { ASKS_MAX = 32, WORDS_MAX = 8, TEXT_MAX = 4096 };

struct desk {
	struct hs_fold fold;
	struct hs_fold_client clients[26];
	struct hs_fold_member members[ASKS_MAX];
	struct hs_bytes argv[ASKS_MAX][WORDS_MAX];
	size_t count;
	char text[TEXT_MAX];  /* the queue's text, which read_ask() cuts into arguments */
	char shown[TEXT_MAX]; /* a plan or answers as text */
	struct hs_link plan;
};

static void show(struct desk *desk, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void show(struct desk *desk, const char *format, ...)
{
	size_t len = strlen(desk->shown);
	va_list args;

	va_start(args, format);
	vsnprintf(desk->shown + len, sizeof desk->shown - len, format, args);
	va_end(args);
}

/* Reads a request such as "a3:GET k" into a member; '' is an empty argument. */
static struct hs_fold_member *read_ask(struct desk *desk, char *line)
{
	struct hs_fold_member *ask = &desk->members[desk->count];
	struct hs_bytes *argv = desk->argv[desk->count++];
	char *words = strchr(line, ':'), *rest = NULL;

	*ask = (struct hs_fold_member){.resp = words[-1] == '3' ? 3 : 2, .argv = argv};
	ask->client = &desk->clients[line[0] - 'a'];
	for (char *word = strtok_r(words + 1, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[ask->argc++] = hs_bytes_of(strcmp(word, "''") == 0 ? "" : word);
	ask->command = hs_command_find(argv[0]);
	hs_list_init(&ask->link);
	hs_fold_classify(ask);
	return ask;
}

static void desk_init(struct desk *desk, const char *queue)
{
	char *rest = NULL;

	memset(desk, 0, sizeof *desk);
	hs_fold_init(&desk->fold);
	hs_list_init(&desk->plan);
	snprintf(desk->text, sizeof desk->text, "%s", queue);
	for (char *line = strtok_r(desk->text, ";", &rest); line;
	     line = strtok_r(NULL, ";", &rest)) {
		struct hs_fold_member *ask = read_ask(desk, line + strspn(line, " "));

		assert_int_not_equal(ask->kind, HS_FOLD_NOT);
		hs_fold_add(&desk->fold, ask);
	}
}

static struct hs_fold_batch *first_batch(struct desk *desk)
{
	assert_false(hs_list_empty(&desk->plan));
	return hs_list_entry(desk->plan.next, struct hs_fold_batch, link);
}

static void drop_plan(struct desk *desk)
{
	while (!hs_list_empty(&desk->plan)) {
		struct hs_fold_batch *batch = first_batch(desk);

		while (!hs_list_empty(&batch->members))
			hs_list_remove(batch->members.next);
		hs_fold_free(&batch);
		assert_null(batch);
	}
}

/* Plans the next batches and returns them as text, such as "INCRBY k 2 for a b | TTL k for c". */
static const char *plan(struct desk *desk)
{
	desk->shown[0] = '\0';
	hs_fold_plan(&desk->fold, &desk->plan);
	for (struct hs_link *at = desk->plan.next; at != &desk->plan; at = at->next) {
		struct hs_fold_batch *batch = hs_list_entry(at, struct hs_fold_batch, link);

		show(desk, "%s", at == desk->plan.next ? "" : " | ");
		for (size_t i = 0; i < batch->argc; i++)
			show(desk, "%.*s ", (int)batch->argv[i].len, batch->argv[i].data);
		show(desk, "for");
		for (struct hs_link *link = batch->members.next; link != &batch->members;
		     link = link->next) {
			struct hs_fold_member *ask =
				hs_list_entry(link, struct hs_fold_member, link);

			show(desk, " %c", (char)('a' + (ask->client - desk->clients)));
		}
	}
	return desk->shown;
}

#define assert_plan(queue, expected)                                                               \
	do {                                                                                       \
		struct desk desk_;                                                                 \
		desk_init(&desk_, queue);                                                          \
		assert_string_equal(plan(&desk_), expected);                                       \
		drop_plan(&desk_);                                                                 \
	} while (0)

static void note(struct desk *desk, struct hs_fold_member *ask, struct hs_bytes reply)
{
	assert_true(hs_list_empty(&ask->link));
	show(desk, "%s%c", desk->shown[0] ? ", " : "", (char)('a' + (ask->client - desk->clients)));
	for (size_t i = 0; i < reply.len; i++)
		if (reply.data[i] == '\r')
			show(desk, "%s", i + 2 < reply.len ? "/" : "");
		else if (reply.data[i] != '\n')
			show(desk, "%c", reply.data[i]);
}

static void on_answer(void *context, struct hs_fold_member *ask, struct hs_bytes reply)
{
	note(context, ask, reply);
}

static void on_poll_again(void *context, struct hs_fold_member *ask)
{
	note(context, ask, HS_LIT(" again"));
}

static const struct hs_fold_calls calls = {on_answer, on_poll_again};

/* Answers the first batch of the plan. Returns the members' answers as text, such as "a:1, b$1/1, c again". */
static const char *answer(struct desk *desk, const char *reply)
{
	struct hs_fold_batch *batch = first_batch(desk);
	struct hs_buf scratch = {0};

	desk->shown[0] = '\0';
	hs_fold_answer(batch, hs_bytes_of(reply), &scratch, &calls, desk);
	assert_int_equal(batch->count, 0);
	hs_fold_free(&batch);
	hs_buf_deinit(&scratch);
	for (size_t i = 0; i < sizeof desk->clients / sizeof *desk->clients; i++)
		assert_true(!desk->clients[i].batch && desk->clients[i].sign == 0);
	return desk->shown;
}

/* Asserts that the queue becomes one batch, and that `reply` gives its members the answers `expected`. */
#define assert_answers(queue, reply, expected)                                                     \
	do {                                                                                       \
		struct desk desk_;                                                                 \
		desk_init(&desk_, queue);                                                          \
		assert_null(strchr(plan(&desk_), '|'));                                            \
		assert_string_equal(answer(&desk_, reply), expected);                              \
		assert_true(hs_list_empty(&desk_.plan));                                           \
		assert_true(hs_list_empty(&desk_.fold.waiting));                                   \
	} while (0)

/* ---- which commands fold ---- */

static void test_kinds(void **state)
{
	static const struct {
		const char *line;
		enum hs_fold_kind kind;
		int64_t number;
	} cases[] = {
		{"a:GET k", HS_FOLD_GET, 0},
		{"a:get k", HS_FOLD_GET, 0},
		{"a:GET k x", HS_FOLD_NOT, 0},
		{"a:STRLEN k", HS_FOLD_STRLEN, 0},
		{"a:EXISTS k", HS_FOLD_EXISTS, 0},
		{"a:EXISTS k k", HS_FOLD_NOT, 0},
		{"a:TTL k", HS_FOLD_TTL, 0},
		{"a:INCR k", HS_FOLD_ADD, 1},
		{"a:DECR k", HS_FOLD_ADD, -1},
		{"a:INCR k 1", HS_FOLD_NOT, 0},
		{"a:INCRBY k -5", HS_FOLD_ADD, -5},
		{"a:DECRBY k -5", HS_FOLD_ADD, 5},
		{"a:INCRBY k 0", HS_FOLD_ADD, 0},
		{"a:INCRBY k -9223372036854775808", HS_FOLD_ADD, INT64_MIN},
		{"a:DECRBY k -9223372036854775808", HS_FOLD_NOT, 0},
		{"a:DECRBY k 9223372036854775807", HS_FOLD_ADD, -INT64_MAX},
		{"a:INCRBY k 9223372036854775808", HS_FOLD_NOT, 0},
		{"a:INCRBY k 01", HS_FOLD_NOT, 0},
		{"a:INCRBY k +1", HS_FOLD_NOT, 0},
		{"a:INCRBY k ''", HS_FOLD_NOT, 0},
		{"a:INCRBY k", HS_FOLD_NOT, 0},
		{"a:INCRBYFLOAT k 1", HS_FOLD_NOT, 0},
		{"a:SET k v", HS_FOLD_SET, 0},
		{"a:SET k v eX 10", HS_FOLD_SET, 10000},
		{"a:SET k v Px 10", HS_FOLD_SET, 10},
		{"a:SET k v EX 10000000000", HS_FOLD_SET, 10000000000000},
		{"a:SET k v EX 10000000001", HS_FOLD_NOT, 0},
		{"a:SET k v PX 10000000000000", HS_FOLD_SET, 10000000000000},
		{"a:SET k v PX 10000000000001", HS_FOLD_NOT, 0},
		{"a:SET k v PX 0", HS_FOLD_NOT, 0},
		{"a:SET k v PX -1", HS_FOLD_NOT, 0},
		{"a:SET k v EX 1x", HS_FOLD_NOT, 0},
		{"a:SET k v NX", HS_FOLD_NOT, 0},
		{"a:SET k v EXAT 10", HS_FOLD_NOT, 0},
		{"a:SET k v EX 10 GET", HS_FOLD_NOT, 0},
		{"a:SET k", HS_FOLD_NOT, 0},
		{"a:PTTL k", HS_FOLD_READ, 0},
		{"a:EXPIRETIME k", HS_FOLD_READ, 0},
		{"a:PEXPIRETIME k", HS_FOLD_READ, 0},
		{"a:GETRANGE k 0 1", HS_FOLD_READ, 0},
		{"a:GETRANGE k 0", HS_FOLD_NOT, 0},
		{"a:BITCOUNT k", HS_FOLD_READ, 0},
		{"a:TYPE k", HS_FOLD_READ, 0},
		{"a:MGET k", HS_FOLD_READ, 0},
		{"a:MGET k k", HS_FOLD_NOT, 0},
		{"a:LCS k k", HS_FOLD_NOT, 0},
		{"a:GETDEL k", HS_FOLD_NOT, 0},
		{"a:GETEX k", HS_FOLD_NOT, 0},
		{"a:SETEX k 1 v", HS_FOLD_NOT, 0},
		{"a:APPEND k v", HS_FOLD_NOT, 0},
		{"a:DEL k", HS_FOLD_NOT, 0},
		{"a:KEYS k", HS_FOLD_NOT, 0},
		{"a:SCAN 0", HS_FOLD_NOT, 0},
		{"a:RANDOMKEY", HS_FOLD_NOT, 0},
		{"a:DBSIZE", HS_FOLD_NOT, 0},
		{"a:PING", HS_FOLD_NOT, 0},
		{"a:WATCH k", HS_FOLD_NOT, 0},
		{"a:EXEC", HS_FOLD_NOT, 0},
		{"a:SPUBLISH k v", HS_FOLD_NOT, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct desk desk = {0};
		struct hs_fold_member *ask;

		snprintf(desk.text, sizeof desk.text, "%s", cases[i].line);
		ask = read_ask(&desk, desk.text);
		if (ask->kind != cases[i].kind)
			fail_msg("%s is %d", cases[i].line, (int)ask->kind);
		if (ask->kind != HS_FOLD_NOT)
			assert_int_equal(ask->number, cases[i].number);
	}
}

static enum hs_fold_kind kind_of_row(struct hs_command row)
{
	struct hs_bytes argv[] = {HS_LIT("x"), HS_LIT("k")};
	struct hs_fold_member ask = {.command = &row, .argv = argv, .argc = 2, .resp = 2};

	return hs_fold_classify(&ask);
}

static void test_kinds_of_learned_commands(void **state)
{
	static const struct hs_key_spec spec = {.search = HS_KEY_SEARCH_INDEX, .index = 1};
	static const unsigned never[] = {HS_CMD_WRITE,	   HS_CMD_BLOCKING, HS_CMD_MOVABLEKEYS,
					 HS_CMD_CONTAINER, HS_CMD_PUBSUB,   HS_CMD_EFFECT_UNKNOWN};
	static const char *const names[] = {"srandmember", "hrandfield", "zrandmember", "hscan",
					    "sscan",	   "zscan",	 "spop",	"json.get"};
	static const enum hs_command_place places[] = {HS_PLACE_CORE, HS_PLACE_ALL, HS_PLACE_ANY,
						       HS_PLACE_PARENT, HS_PLACE_REFUSED};
	const struct hs_command good = {.name = "hgetall",
					.id = HS_CMD_IDS + 1,
					.place = HS_PLACE_PARTITION,
					.arity = 2,
					.flags = HS_CMD_READONLY,
					.key_first = 1,
					.key_last = 1,
					.key_step = 1,
					.tips = "nondeterministic_output_order"};
	struct hs_command row = good;

	(void)state;
	assert_int_equal(kind_of_row(row), HS_FOLD_READ);
	row.tips = NULL;
	assert_int_equal(kind_of_row(row), HS_FOLD_READ);
	row.tips = "nondeterministic_output";
	assert_int_equal(kind_of_row(row), HS_FOLD_NOT);
	row.tips = "nondeterministic_output_order nondeterministic_output x";
	assert_int_equal(kind_of_row(row), HS_FOLD_NOT);
	row = good;
	row.flags = 0;
	assert_int_equal(kind_of_row(row), HS_FOLD_NOT);
	for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
		row = good;
		row.flags |= never[i];
		assert_int_equal(kind_of_row(row), HS_FOLD_NOT);
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		row = good;
		row.name = names[i];
		assert_int_equal(kind_of_row(row), HS_FOLD_NOT);
	}
	for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
		row = good;
		row.place = places[i];
		assert_int_equal(kind_of_row(row), HS_FOLD_NOT);
	}
	row = good;
	row.parent = HS_CMD_ID_OBJECT;
	assert_int_equal(kind_of_row(row), HS_FOLD_NOT);
	row = good;
	row.key_last = -1;
	assert_int_equal(kind_of_row(row), HS_FOLD_NOT);
	row = good;
	row.key_specs = &spec;
	row.key_specs_count = 1;
	assert_int_equal(kind_of_row(row), HS_FOLD_NOT);
}

/* ---- plans ---- */

static void test_equal_reads_share_a_batch(void **state)
{
	(void)state;
	assert_plan("a:GET k; b:get k; c:Get k", "GET k for a b c");
	assert_plan("a:GET k; b:TTL k; c:GET k; d:TTL k", "GET k for a c | TTL k for b d");
	assert_plan("a:GET k; b3:GET k; c3:GET k", "GET k for a | GET k for b c");
	assert_plan("a:GETRANGE k 0 12; b:GETRANGE k 01 2; c:GETRANGE k 0 12",
		    "GETRANGE k 0 12 for a c | GETRANGE k 01 2 for b");
	/* A batch does not combine reads before and after a write. */
	assert_plan("a:TTL k; b:INCR k; c:TTL k; d:TTL k",
		    "TTL k for a | INCR k for b | TTL k for c d");
}

static void test_adds_become_one_command(void **state)
{
	(void)state;
	assert_plan("a:INCR k", "INCR k for a");
	assert_plan("a:INCR k; b:INCRBY k 5; c:DECRBY k -1; d:INCRBY k 0",
		    "INCRBY k 7 for a b c d");
	assert_plan("a:INCRBY k 0; b:DECR k; c:DECR k", "INCRBY k -2 for a b c");
	assert_plan("a:INCR k; b:DECR k; c:INCR k", "INCRBY k 1 for a b c");
	assert_plan("a:INCRBY k 3; b:DECRBY k 10; c:INCR k; b:DECR k", "INCRBY k -7 for a b c b");
	/* INCRBY 0 is still sent: the reply tells whether the value is a number, and which one. */
	assert_plan("a:INCR k; b:DECR k", "INCRBY k 0 for a b");
	assert_plan("a:INCRBY k 0; b:INCRBY k 0", "INCRBY k 0 for a b");
	assert_plan("a:INCR k; b:GET k; c:STRLEN k; d:EXISTS k; e:INCR k",
		    "INCRBY k 2 for a b c d e");
	/* Only the last batch accepts further members. */
	assert_plan("a:INCR k; b:TTL k; c:GET k; d:INCR k",
		    "INCR k for a | TTL k for b | GET k for c | INCR k for d");
	/* A read before the first increment cannot be computed from INCRBY's reply. */
	assert_plan("a:GET k; b:INCR k; c:GET k", "GET k for a | INCRBY k 1 for b c");
}

/* The absolute amounts of a batch add up to less than 2^62, so a number is never near both limits. */
static void test_range_of_adds(void **state)
{
	(void)state;
	assert_plan("a:INCRBY k 4611686018427387902; b:INCR k; c:INCRBY k 0; d:GET k",
		    "INCRBY k 4611686018427387903 for a b c d");
	assert_plan("a:INCRBY k 4611686018427387903; b:DECR k",
		    "INCRBY k 4611686018427387903 for a | DECR k for b");
	assert_plan("a:DECR k; b:DECRBY k 4611686018427387902; c:INCR k; d:DECR k",
		    "INCRBY k -4611686018427387903 for a b | INCRBY k 0 for c d");
	assert_plan("a:INCRBY k 2305843009213693952; b:DECRBY k 2305843009213693951; c:DECR k",
		    "INCRBY k 1 for a b | DECR k for c");
	/* After an amount that reaches 2^62 alone, the batch accepts only members that add nothing. */
	assert_plan("a:INCRBY k 4611686018427387904; b:GET k; c:INCRBY k 0; d:INCR k",
		    "INCRBY k 4611686018427387904 for a b | INCRBY k 1 for c d");
	assert_plan("a:INCRBY k 9223372036854775807; b:INCR k",
		    "INCRBY k 9223372036854775807 for a | INCR k for b");
	assert_plan("a:INCRBY k -9223372036854775808; b:INCRBY k -9223372036854775808",
		    "INCRBY k -9223372036854775808 for a | INCRBY k -9223372036854775808 for b");
	assert_plan("a:INCR k; b:INCRBY k -9223372036854775808",
		    "INCR k for a | INCRBY k -9223372036854775808 for b");
}

/* In one batch, a client either adds or subtracts. A client's amount of the other sign waits for the next batch,
 * because a client is in one batch only. */
static void test_a_client_has_one_sign(void **state)
{
	struct desk desk;

	(void)state;
	desk_init(&desk, "a:INCR k; b:DECR k; a:GET k; a:INCRBY k 0; a:DECR k; c:INCR k; a:DECR k; "
			 "b:DECR k; b:INCR k; a:INCR k");
	assert_string_equal(plan(&desk), "INCRBY k 0 for a b a a c b");
	drop_plan(&desk);
	assert_string_equal(plan(&desk), "INCRBY k -1 for a a b");
	drop_plan(&desk);
	assert_string_equal(plan(&desk), "INCR k for a");
	drop_plan(&desk);
	/* After adding 0, the client's next amount in the batch may have either sign. */
	assert_plan("a:INCRBY k 0; a:INCR k; b:INCRBY k 0; b:DECR k", "INCRBY k 0 for a a b b");
	/* After a SET the value is known, so the batch computes its members in order and a client may both add
	 * and subtract. */
	assert_plan("a:SET k 5; a:INCR k; a:DECRBY k 3; b:INCR k", "SET k 4 for a a a b");
	/* Clients that add and clients that subtract share a batch. */
	assert_plan("b:GET k; a:INCR k; c:DECR k", "GET k for b | INCRBY k 0 for a c");
}

static void test_sets_become_the_last(void **state)
{
	(void)state;
	assert_plan("a:SET k 1; b:SET k 2", "SET k 2 for a b");
	assert_plan("a:SET k 1; b:GET k; c:TTL k; d:STRLEN k; e:EXISTS k", "SET k 1 for a b c d e");
	assert_plan("a:SET k 1; b:PTTL k; c:INCR k", "SET k 1 for a | PTTL k for b | INCR k for c");
	assert_plan("a:SET k 1; b:INCR k; c:DECRBY k 5", "SET k -3 for a b c");
	assert_plan("a:SET k v; b:INCR k", "SET k v for a b");
	assert_plan("a:SET k 9223372036854775807; b:INCR k", "SET k 9223372036854775807 for a b");
	assert_plan("a:INCR k; b:SET k 1; c:INCR k", "INCR k for a | SET k 2 for b c");
	/* The batch has the last SET's expiry as the client wrote it; an increment keeps this expiry. */
	assert_plan("a:SET k 1 EX 10; b:SET k 2", "SET k 2 for a b");
	assert_plan("a:SET k 1; b:set k 2 px 7", "set k 2 px 7 for a b");
	assert_plan("a:SET k 1 EX 10; b:INCR k", "SET k 2 EX 10 for a b");
	assert_plan("a:SET k 1 EX 10; b:SET k 5; c:INCR k", "SET k 6 for a b c");
	assert_plan("a:SET k 1; b:SET k 5 px 9; c:INCR k", "SET k 6 px 9 for a b c");
}

static void test_a_client_is_in_one_batch(void **state)
{
	struct desk desk;
	struct hs_fold other;
	struct hs_fold_batch *batch;
	struct hs_link more;

	(void)state;
	assert_plan("a:INCR k; a:GET k; a:INCR k; b:INCR k", "INCRBY k 3 for a a a b");
	desk_init(&desk, "a:INCR k; a:TTL k; b:INCR k; b:TTL k; c:INCR k; c:TTL k");
	assert_string_equal(plan(&desk), "INCRBY k 3 for a b c");
	drop_plan(&desk);
	assert_string_equal(plan(&desk), "TTL k for a b c");
	drop_plan(&desk);
	/* A client's later requests wait for its first one. Requests of other clients need not wait for them. */
	desk_init(&desk, "a:GET k; b:INCR k; a:GET k; c:INCR k; b:TTL k; b:INCR k; d:GET k");
	assert_string_equal(plan(&desk), "GET k for a | INCRBY k 2 for b c d");
	drop_plan(&desk);
	assert_string_equal(plan(&desk), "GET k for a | TTL k for b");
	drop_plan(&desk);
	assert_string_equal(plan(&desk), "INCR k for b");
	drop_plan(&desk);
	assert_string_equal(plan(&desk), "");

	/* One member can move from one queue to another. */
	hs_fold_init(&other);
	hs_list_init(&more);
	hs_fold_add(&other, &desk.members[0]);
	hs_fold_plan(&other, &more);
	assert_true(hs_list_empty(&other.waiting));
	batch = hs_list_entry(more.next, struct hs_fold_batch, link);
	assert_int_equal(batch->count, 1);
	hs_list_remove(&desk.members[0].link);
	hs_fold_free(&batch);
}

static void test_a_waiting_caller_may_disconnect(void **state)
{
	struct desk desk;

	(void)state;
	desk_init(&desk, "a:INCR k; b:INCR k; c:INCR k");
	hs_list_remove(&desk.members[1].link);
	assert_string_equal(plan(&desk), "INCRBY k 2 for a c");
	drop_plan(&desk);
}

static void test_bytes_are_sent_as_they_came(void **state)
{
	static const char raw[] = "raw0raw1raw2raw3";
	struct desk desk;

	(void)state;
	desk_init(&desk, "a:SET k 1; b:SET k 2; c3:GET k; d:TTL k");
	for (size_t i = 0; i < desk.count; i++)
		desk.members[i].raw = (struct hs_bytes){raw + 4 * i, 4};
	plan(&desk);
	assert_memory_equal(first_batch(&desk)->raw.data, "raw1", 4);
	assert_ptr_equal(first_batch(&desk)->argv, desk.argv[1]);
	drop_plan(&desk);

	desk_init(&desk, "a3:GET k; b3:GET k");
	desk.members[0].raw = HS_LIT("raw0");
	plan(&desk);
	assert_memory_equal(first_batch(&desk)->raw.data, "raw0", 4);
	assert_int_equal(first_batch(&desk)->resp, 3);
	assert_ptr_equal(first_batch(&desk)->command, hs_command_by_id(HS_CMD_ID_GET));
	drop_plan(&desk);

	desk_init(&desk, "a:INCR k; b3:INCR k");
	desk.members[0].raw = HS_LIT("raw0");
	plan(&desk);
	assert_int_equal(first_batch(&desk)->raw.len, 0);
	assert_int_equal(first_batch(&desk)->resp, 2);
	assert_int_equal(first_batch(&desk)->kind, HS_FOLD_ADD);
	assert_ptr_equal(first_batch(&desk)->command, hs_command_by_id(HS_CMD_ID_INCRBY));
	drop_plan(&desk);

	desk_init(&desk, "a:SET k 1; b:INCR k");
	desk.members[0].raw = HS_LIT("raw0");
	plan(&desk);
	assert_int_equal(first_batch(&desk)->raw.len, 0);
	assert_ptr_equal(first_batch(&desk)->command, hs_command_by_id(HS_CMD_ID_SET));
	drop_plan(&desk);
}

static void test_reads_are_equal_by_bytes_not_by_hash(void **state)
{
	struct desk desk;

	(void)state;
	desk_init(&desk, "a:GETRANGE k 0 1; b:GETRANGE k 0 2; c:GETRANGE k 0 1; d:GETBIT k 1; "
			 "e3:GETBIT k 1");
	for (size_t i = 0; i < desk.count; i++)
		desk.members[i].signature = 63;
	assert_string_equal(plan(&desk), "GETRANGE k 0 1 for a c | GETRANGE k 0 2 for b | "
					 "GETBIT k 1 for d | GETBIT k 1 for e");
	drop_plan(&desk);
}

struct crowd {
	struct hs_fold_member ask;
	struct hs_fold_client client;
	struct hs_bytes argv[4];
	char number[HS_NUM_TEXT_MAX];
};

/* Plans `count` requests of as many clients: `kinds` different reads in turn, or INCR if `kinds` is 0. Returns
 * the number of batches. */
static size_t batches_of_crowd(size_t count, size_t kinds)
{
	struct crowd *crowd = hs_mem_zalloc(count * sizeof *crowd);
	struct hs_fold fold;
	struct hs_link plans;
	size_t batches = 0, members = 0;

	hs_fold_init(&fold);
	hs_list_init(&plans);
	for (size_t i = 0; i < count; i++) {
		struct hs_fold_member *ask = &crowd[i].ask;
		struct hs_bytes *argv = crowd[i].argv;

		argv[0] = kinds ? HS_LIT("GETRANGE") : HS_LIT("INCR");
		argv[1] = HS_LIT("k");
		argv[2] = HS_LIT("0");
		argv[3] = (struct hs_bytes){
			crowd[i].number,
			hs_num_format_int((int64_t)(kinds ? i % kinds : 0), crowd[i].number)};
		*ask = (struct hs_fold_member){.command = hs_command_find(argv[0]),
					       .argv = argv,
					       .argc = kinds ? 4 : 2,
					       .resp = 2,
					       .client = &crowd[i].client};
		hs_fold_classify(ask);
		hs_fold_add(&fold, ask);
	}
	hs_fold_plan(&fold, &plans);
	assert_true(hs_list_empty(&fold.waiting));
	while (!hs_list_empty(&plans)) {
		struct hs_fold_batch *batch = hs_list_entry(plans.next, struct hs_fold_batch, link);

		batches++;
		members += batch->count;
		hs_list_init(&batch->members);
		hs_fold_free(&batch);
	}
	assert_int_equal(members, count);
	hs_mem_free(&crowd);
	return batches;
}

static void test_many_waiters(void **state)
{
	(void)state;
	assert_int_equal(batches_of_crowd(20000, 0), 1);
	assert_int_equal(batches_of_crowd(20000, 1), 1);
	assert_int_equal(batches_of_crowd(20000, 48), 48);
	/* A read that does not fit into the table of reads has a batch of its own. */
	assert_int_equal(batches_of_crowd(4 * 60, 60), 48 + 4 * 12);
	assert_int_equal(batches_of_crowd(20000, 20000), 20000);
}

/* ---- answers ---- */

static void test_answers_of_reads(void **state)
{
	struct desk desk;

	(void)state;
	assert_answers("a:GET k; b:GET k", "$-1\r\n", "a$-1, b$-1");
	assert_answers("a3:GET k; b3:GET k", "_\r\n", "a_, b_");
	assert_answers("a:GET k; b:GET k", "-LOADING soon\r\n", "a-LOADING soon, b-LOADING soon");
	/* A batch with one member is answered with the server's reply unchanged. */
	desk_init(&desk, "a:INCR k");
	plan(&desk);
	assert_string_equal(answer(&desk, "-ERR increment or decrement would overflow\r\n"),
			    "a-ERR increment or decrement would overflow");
	desk_init(&desk, "a:SET k v");
	plan(&desk);
	assert_string_equal(answer(&desk, "*1\r\n:1\r\n"), "a*1/:1");
}

static void test_answers_of_adds(void **state)
{
	(void)state;
	assert_answers("a:INCR k; b:INCRBY k 5; c:INCR k", ":7\r\n", "a:1, b:6, c:7");
	assert_answers("a:DECR k; b:GET k; c3:GET k; d:STRLEN k; e:EXISTS k; f:DECRBY k 9; g:GET k",
		       ":-5\r\n", "a:4, b$1/4, c$1/4, d:1, e:1, f:-5, g$2/-5");
	assert_answers("a:INCRBY k 4611686018427387902; b:INCR k; c:STRLEN k",
		       ":9223372036854775807\r\n",
		       "a:9223372036854775806, b:9223372036854775807, c:19");
	assert_answers("a:INCRBY k -4611686018427387902; b:DECR k", ":-9223372036854775808\r\n",
		       "a:-9223372036854775807, b:-9223372036854775808");
	assert_answers("a:INCRBY k 9223372036854775807; b:GET k", ":9223372036854775807\r\n",
		       "a:9223372036854775807, b$19/9223372036854775807");
	assert_answers("a:INCRBY k -9223372036854775808; b:STRLEN k", ":-1\r\n", "a:-1, b:2");
	/* The number rises and falls within the batch. Even if it is 0 at the end, the key exists. */
	assert_answers("a:INCR k; b:GET k; c:DECRBY k 5; d:STRLEN k; e:INCRBY k 2; c:GET k",
		       ":98\r\n", "a:101, b$3/101, c:96, d:2, e:98, c$2/98");
	assert_answers("a:INCR k; b:DECR k; c:GET k; d:EXISTS k; e:STRLEN k", ":0\r\n",
		       "a:1, b:0, c$1/0, d:1, e:1");
	assert_answers("a:DECR k; b:EXISTS k; c:INCR k", ":0\r\n", "a:-1, b:1, c:0");
}

/* Increments that would overflow in the order of the requests. The fold answers as if they ran in an order
 * without an overflow. */
static void test_adds_near_the_upper_limit(void **state)
{
	(void)state;
	assert_answers("a:INCR k; b:DECR k", ":9223372036854775807\r\n",
		       "b:9223372036854775806, a:9223372036854775807");
	/* In the order of the requests, these increments just fit. */
	assert_answers("a:DECR k; b:INCR k", ":9223372036854775807\r\n",
		       "a:9223372036854775806, b:9223372036854775807");
	assert_answers("a:INCR k; b:DECR k; c:INCR k; d:DECR k", ":9223372036854775806\r\n",
		       "a:9223372036854775807, b:9223372036854775806, c:9223372036854775807, "
		       "d:9223372036854775806");
	assert_answers("a:INCRBY k 5; b:DECRBY k 3; a:INCR k; b:DECRBY k 4; c:INCRBY k 0",
		       ":9223372036854775806\r\n",
		       "b:9223372036854775804, b:9223372036854775800, a:9223372036854775805, "
		       "a:9223372036854775806, c:9223372036854775806");
	/* The number was at the limit. Clients that add, subtract or do neither have further requests after
	 * these. */
	assert_answers(
		"a:INCR k; b:GET k; c:GET k; a:STRLEN k; b:EXISTS k; b:DECRBY k 2; d:DECR k; "
		"c:EXISTS k; b:GET k; e3:STRLEN k; a:GET k",
		":9223372036854775805\r\n",
		"b$19/9223372036854775807, b:1, b:9223372036854775805, "
		"d:9223372036854775804, b$19/9223372036854775804, a:9223372036854775805, "
		"c$19/9223372036854775805, a:19, c:1, e:19, a$19/9223372036854775805");
	/* The number was 2^62 + 1, which does not count as near the limit, and then 2^62 + 2, which does. */
	assert_answers("a:INCRBY k 2305843009213693952; b:INCRBY k 2305843009213693950; c:DECR k",
		       ":9223372036854775806\r\n",
		       "a:6917529027641081857, b:9223372036854775807, c:9223372036854775806");
	assert_answers("a:INCRBY k 2305843009213693952; b:INCRBY k 2305843009213693950; c:DECR k",
		       ":9223372036854775807\r\n",
		       "c:4611686018427387905, a:6917529027641081857, b:9223372036854775807");
}

static void test_adds_near_the_lower_limit(void **state)
{
	(void)state;
	assert_answers("a:DECR k; b:INCR k", ":-9223372036854775808\r\n",
		       "b:-9223372036854775807, a:-9223372036854775808");
	assert_answers("a:INCR k; b:DECR k", ":-9223372036854775808\r\n",
		       "a:-9223372036854775807, b:-9223372036854775808");
	assert_answers("a:DECRBY k 5; b:INCRBY k 3; a:DECR k; b:INCRBY k 4; c:INCRBY k 0",
		       ":-9223372036854775807\r\n",
		       "b:-9223372036854775805, b:-9223372036854775801, a:-9223372036854775806, "
		       "a:-9223372036854775807, c:-9223372036854775807");
	assert_answers(
		"a:DECR k; b:GET k; c:GET k; a:STRLEN k; b:EXISTS k; b:INCRBY k 2; d:INCR k; "
		"c:EXISTS k; b:GET k; e3:STRLEN k; a:GET k",
		":-9223372036854775806\r\n",
		"b$20/-9223372036854775808, b:1, b:-9223372036854775806, "
		"d:-9223372036854775805, b$20/-9223372036854775805, "
		"a:-9223372036854775806, c$20/-9223372036854775806, a:20, c:1, e:20, "
		"a$20/-9223372036854775806");
	assert_answers("a:DECRBY k 2305843009213693952; b:DECRBY k 2305843009213693950; c:INCR k",
		       ":-9223372036854775808\r\n",
		       "c:-4611686018427387906, a:-6917529027641081858, b:-9223372036854775808");
}

static void test_answers_of_sets(void **state)
{
	(void)state;
	assert_answers("a:SET k x; b:GET k; c3:GET k; d:STRLEN k; e:EXISTS k; f:TTL k; g:SET k ''; "
		       "h:GET k; i:STRLEN k",
		       "+OK\r\n", "a+OK, b$1/x, c$1/x, d:1, e:1, f:-1, g+OK, h$0/, i:0");
	assert_answers("a:SET k 5 PX 1499; b:TTL k; c:INCR k; d:TTL k; e:GET k; f:SET k 6 EX 9; "
		       "g:TTL k; h:SET k 7; i:TTL k; j:GET k",
		       "+OK\r\n", "a+OK, b:1, c:6, d:1, e$1/6, f+OK, g:9, h+OK, i:-1, j$1/7");
	assert_answers("a:SET k 1 PX 1; b:TTL k; c:SET k 1 PX 500; d:TTL k", "+OK\r\n",
		       "a+OK, b:0, c+OK, d:1");
	assert_answers("a:SET k 007; b:INCR k; c:GET k; d:STRLEN k; e:INCR k; f:GET k", "+OK\r\n",
		       "a+OK, b-ERR value is not an integer or out of range, c$3/007, d:3, "
		       "e-ERR value is not an integer or out of range, f$3/007");
	assert_answers("a:SET k 9223372036854775806; b:INCR k; c:INCR k; d:DECR k", "+OK\r\n",
		       "a+OK, b:9223372036854775807, c-ERR increment or decrement would overflow, "
		       "d:9223372036854775806");
}

static void test_adds_refused(void **state)
{
	static const char queue[] = "a:INCR k; b:GET k; c:STRLEN k; d:EXISTS k; e:INCR k";

	(void)state;
	assert_answers(queue, "-ERR value is not an integer or out of range\r\n",
		       "a-ERR value is not an integer or out of range, "
		       "e-ERR value is not an integer or out of range, b again, c again, d again");
	assert_answers(queue, "-WRONGTYPE no\r\n",
		       "a-WRONGTYPE no, b-WRONGTYPE no, c-WRONGTYPE no, e-WRONGTYPE no, d again");
	assert_answers(queue, "-ERR increment or decrement would overflow\r\n",
		       "a again, b again, c again, d again, e again");
	assert_answers("a:INCR k; b:INCR k; c:DECR k; b:GET k",
		       "-ERR increment or decrement would overflow\r\n",
		       "a again, b again, c again, b again");
	assert_answers("a:INCR k; b:DECR k; c:GET k", "-ERR value is not an integer\r\n",
		       "a-ERR value is not an integer, b-ERR value is not an integer, c again");
	assert_answers(queue, "-OOM full\r\n", "a-OOM full, e-OOM full, b again, c again, d again");
	assert_answers("a:INCR k; b:GET k", "-MISCONF x\r\n", "a-MISCONF x, b again");
	assert_answers("a:INCR k; b:GET k", "-READONLY x\r\n", "a-READONLY x, b again");
	assert_answers("a:INCR k; b:GET k", "-NOREPLICAS x\r\n", "a-NOREPLICAS x, b again");
	/* The server may lack INCRBY or forbid it, but accept INCR: the members are retried with their own
	 * commands. */
	assert_answers("a:INCR k; b:GET k", "-NOPERM x\r\n", "a again, b again");
	assert_answers("a:INCR k; b:GET k", "-ERR unknown command 'INCRBY'\r\n",
		       "a again, b again");
}

static void test_sets_refused(void **state)
{
	static const char queue[] = "a:SET k 1; b:GET k; c:INCR k; d:SET k 2; e:TTL k";

	(void)state;
	assert_answers(queue, "-OOM full\r\n", "a-OOM full, d-OOM full, b again, c again, e again");
	assert_answers(queue, "-NOPERM x\r\n", "a-NOPERM x, d-NOPERM x, b again, c again, e again");
	assert_answers("a:SET k 1; b:GET k", "-MISCONF x\r\n", "a-MISCONF x, b again");
	assert_answers("a:SET k 1; b:GET k", "-READONLY x\r\n", "a-READONLY x, b again");
	assert_answers("a:SET k 1; b:GET k", "-NOREPLICAS x\r\n", "a-NOREPLICAS x, b again");
}

static void test_every_member_gets_an_error_of_the_batch(void **state)
{
	static const char *const errors[] = {
		"UNKNOWN the connection was lost",
		"UNKNOWN",
		"CLUSTERDOWN x",
		"LOADING x",
		"BUSY x",
		"ERR shutting down: the outcome of this command is unknown",
		/* MISCONF alone would be a refusal, but this text says that the outcome is unknown. */
		"MISCONF cannot sync the log: x; whether this was done is unknown",
	};
	char reply[200], expected[600];

	(void)state;
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
		snprintf(reply, sizeof reply, "-%s\r\n", errors[i]);
		snprintf(expected, sizeof expected, "a-%s, b-%s, c-%s", errors[i], errors[i],
			 errors[i]);
		assert_answers("a:INCR k; b:GET k; c3:INCR k", reply, expected);
		assert_answers("a:SET k 1; b:GET k; c3:INCR k", reply, expected);
	}
	/* RESP3 has errors with a length, which a RESP2 client does not know. All members get a simple error. */
	assert_answers("a:INCR k; b3:GET k", "!9\r\nLOADING\r\n\r\n", "a-LOADING  , b-LOADING  ");
}

static void test_unexpected_replies(void **state)
{
	static const char *const replies[] = {"$1\r\nx\r\n",
					      "*0\r\n",
					      "_\r\n",
					      "",
					      ":",
					      "hm",
					      "#t\r\n",
					      "$-1\r\n",
					      ":99999999999999999999\r\n",
					      "|1\r\n+a\r\n+b\r\n:1\r\n"};
	static const char all[] = "a-UNKNOWN the engine's reply to a batch of folded requests is "
				  "malformed: the command "
				  "may or may not have run, b-UNKNOWN the engine's reply to a "
				  "batch of folded requests is "
				  "malformed: the command may or may not have run";

	(void)state;
	for (size_t i = 0; i < sizeof replies / sizeof *replies; i++) {
		assert_answers("a:INCR k; b:GET k", replies[i], all);
		assert_answers("a:SET k 1; b:GET k", replies[i], all);
	}
	assert_answers("a:INCR k; b:GET k", "+OK\r\n", all);
	assert_answers("a:SET k 1; b:GET k", ":1\r\n", all);
	/* The smallest number cannot be the sum of a number and two increments. */
	assert_answers("a:INCR k; b:INCR k", ":-9223372036854775808\r\n", all);
}

/* A retried request runs later than its batch. So later requests of the same client in the batch are retried,
 * too. */
static void test_retry_keeps_a_client_s_order(void **state)
{
	(void)state;
	assert_answers("a:INCR k; a:GET k; a:INCR k; b:INCR k",
		       "-ERR value is not an integer or out of range\r\n",
		       "a-ERR value is not an integer or out of range, "
		       "b-ERR value is not an integer or out of range, a again, a again");
	assert_answers("b:INCR k; a:EXISTS k; a:GET k; b:GET k", "-WRONGTYPE no\r\n",
		       "b-WRONGTYPE no, b-WRONGTYPE no, a again, a again");
	assert_answers("a:SET k 1; a:INCR k; a:SET k 2; b:SET k 3", "-OOM full\r\n",
		       "a-OOM full, b-OOM full, a again, a again");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_kinds_of_learned_commands),
		cmocka_unit_test(test_equal_reads_share_a_batch),
		cmocka_unit_test(test_adds_become_one_command),
		cmocka_unit_test(test_range_of_adds),
		cmocka_unit_test(test_a_client_has_one_sign),
		cmocka_unit_test(test_sets_become_the_last),
		cmocka_unit_test(test_a_client_is_in_one_batch),
		cmocka_unit_test(test_a_waiting_caller_may_disconnect),
		cmocka_unit_test(test_bytes_are_sent_as_they_came),
		cmocka_unit_test(test_reads_are_equal_by_bytes_not_by_hash),
		cmocka_unit_test(test_many_waiters),
		cmocka_unit_test(test_answers_of_reads),
		cmocka_unit_test(test_answers_of_adds),
		cmocka_unit_test(test_adds_near_the_upper_limit),
		cmocka_unit_test(test_adds_near_the_lower_limit),
		cmocka_unit_test(test_answers_of_sets),
		cmocka_unit_test(test_adds_refused),
		cmocka_unit_test(test_sets_refused),
		cmocka_unit_test(test_every_member_gets_an_error_of_the_batch),
		cmocka_unit_test(test_unexpected_replies),
		cmocka_unit_test(test_retry_keeps_a_client_s_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
