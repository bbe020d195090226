/* Goal: replies are found in whatever pieces they arrive, and each is passed on once and whole. A malformed
 * reply closes the connection; the pauses between attempts to reach a server that is down grow.
 *
 * Method: every piece lies in an allocation of exactly its length, so that the sanitizer reports reads beyond
 * the end and after the call. */
#include "upstream/upstream.h"

#include "base/limits.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { REPLY_BYTES_MAX = 1000 };

/* The owner of the connection: receives replies and records them. */
struct taker {
	struct hs_upstream upstream;
	struct hs_buf text;
	uint32_t count, owned_count;
	uint32_t close_at;	/* closes the connection at the reply of this number; 0: never */
	bool swaps;		/* takes over the buffers that it is offered */
	struct hs_buf taken;	/* the last buffer that it took over */
	size_t reply_bytes_max; /* limit for the size of a reply */
	const char *first;	/* address of the last reply */
};

static void take(void *context, struct hs_bytes reply, bool owned)
{
	struct taker *taker = context;

	taker->first = reply.data;
	taker->count++;
	if (owned) {
		taker->owned_count++;
		assert_ptr_equal(reply.data, taker->upstream.partial.data);
		assert_int_equal(reply.len, taker->upstream.partial.len);
	}
	hs_buf_append_bytes(&taker->text, reply);
	hs_buf_append(&taker->text, "|", 1);
	if (taker->count == taker->close_at)
		hs_upstream_close(&taker->upstream, "enough");
	if (owned && taker->swaps) {
		hs_buf_deinit(&taker->taken);
		hs_buf_swap(&taker->taken, &taker->upstream.partial);
	}
}

static struct taker *create(void)
{
	struct taker *taker = hs_mem_zalloc(sizeof *taker);

	taker->reply_bytes_max = REPLY_BYTES_MAX;
	hs_upstream_init(&taker->upstream, 3);
	hs_upstream_opening(&taker->upstream, 1);
	taker->upstream.state = HS_UPSTREAM_UP;
	return taker;
}

static void destroy(struct taker *taker)
{
	hs_upstream_deinit(&taker->upstream);
	hs_buf_deinit(&taker->text);
	hs_buf_deinit(&taker->taken);
	hs_mem_release(taker);
}

static void give(struct taker *taker, struct hs_bytes bytes)
{
	char *piece = hs_mem_dup(bytes.data, bytes.len);

	hs_upstream_receive(&taker->upstream, 2, piece, bytes.len, taker->reply_bytes_max, take,
			    taker);
	hs_mem_free(&piece);
}

static void expect_at(struct taker *taker, const char *wanted, int at)
{
	if (!hs_bytes_equal(hs_buf_bytes(&taker->text), hs_bytes_of(wanted)))
		fail_msg("line %d: wanted \"%s\", got \"%.*s\"", at, wanted, (int)taker->text.len,
			 taker->text.data);
	taker->text.len = 0;
}
#define expect(taker, wanted) expect_at(taker, wanted, __LINE__)

/* ---- bytes in ---- */

static const struct hs_bytes several =
	HS_LIT("+OK\r\n$5\r\nhello\r\n*2\r\n:1\r\n*1\r\n$1\r\nx\r\n>2\r\n+a\r\n+b\r\n-ERR no\r\n");
static const char several_taken[] =
	"+OK\r\n|$5\r\nhello\r\n|*2\r\n:1\r\n*1\r\n$1\r\nx\r\n|>2\r\n+a\r\n+b\r\n|-ERR no\r\n|";

static void test_several_replies_in_one_piece(void **state)
{
	struct taker *taker = create();

	(void)state;
	give(taker, several);
	expect(taker, several_taken);
	/* No buffer to take over: the replies lie in the caller's bytes. */
	assert_int_equal(taker->owned_count, 0);
	assert_int_equal(taker->upstream.partial.len, 0);
	assert_int_equal(taker->upstream.received_us, 2);
	assert_null(taker->upstream.close_reason);
	destroy(taker);
}

static void test_cut_at_every_byte(void **state)
{
	(void)state;
	for (size_t cut = 0; cut <= several.len; cut++) {
		struct taker *taker = create();

		give(taker, (struct hs_bytes){several.data, cut});
		give(taker, (struct hs_bytes){several.data + cut, several.len - cut});
		expect(taker, several_taken);
		assert_int_equal(taker->upstream.partial.len, 0);
		destroy(taker);
	}
}

static void test_pieces_of_every_size(void **state)
{
	(void)state;
	for (size_t size = 1; size < several.len; size++) {
		for (int swaps = 0; swaps < 2; swaps++) {
			struct taker *taker = create();

			taker->swaps = swaps;
			for (size_t at = 0; at < several.len; at += size) {
				size_t left = several.len - at;

				give(taker, (struct hs_bytes){several.data + at,
							      left < size ? left : size});
			}
			expect(taker, several_taken);
			assert_int_equal(taker->upstream.partial.len, 0);
			if (size == 1)
				assert_int_equal(taker->owned_count, 5);
			destroy(taker);
		}
	}
}

/* The taker may take over the buffer of an assembled reply only if the buffer contains nothing else. */
static void test_replies_that_may_be_taken_over(void **state)
{
	struct taker *taker = create();

	(void)state;
	taker->swaps = true;
	give(taker, HS_LIT("$5\r\nhe"));
	give(taker, HS_LIT("llo\r\n"));
	expect(taker, "$5\r\nhello\r\n|");
	assert_int_equal(taker->owned_count, 1);
	assert_true(hs_bytes_equal(hs_buf_bytes(&taker->taken), HS_LIT("$5\r\nhello\r\n")));
	/* The next bytes do not change the buffer that was taken over. */
	give(taker, HS_LIT("+a\r\n+"));
	give(taker, HS_LIT("b\r\n+c\r\n+"));
	expect(taker, "+a\r\n|+b\r\n|+c\r\n|");
	assert_int_equal(taker->owned_count, 1);
	assert_true(hs_bytes_equal(hs_buf_bytes(&taker->taken), HS_LIT("$5\r\nhello\r\n")));
	give(taker, HS_LIT("d\r\n"));
	assert_int_equal(taker->owned_count, 2);
	assert_true(hs_bytes_equal(hs_buf_bytes(&taker->taken), HS_LIT("+d\r\n")));
	destroy(taker);
}

static void test_a_reason_to_close_stops_reading(void **state)
{
	struct taker *taker = create();

	(void)state;
	taker->close_at = 2;
	give(taker, several);
	expect(taker, "+OK\r\n|$5\r\nhello\r\n|");
	assert_string_equal(taker->upstream.close_reason, "enough");
	/* The bytes after that reply are dropped. */
	assert_int_equal(taker->upstream.partial.len, 0);
	give(taker, several);
	expect(taker, "");
	hs_upstream_close(&taker->upstream, "another");
	assert_string_equal(taker->upstream.close_reason, "enough"); /* the first reason counts */
	destroy(taker);

	/* A reason to close, when the reply was assembled from two pieces. */
	taker = create();
	taker->close_at = 1;
	give(taker, HS_LIT("+O"));
	give(taker, HS_LIT("K\r\n+A\r\n+B"));
	expect(taker, "+OK\r\n|");
	give(taker, HS_LIT("\r\n"));
	expect(taker, "");
	assert_string_equal(taker->upstream.close_reason, "enough");
	destroy(taker);
}

static void test_malformed_replies(void **state)
{
	struct taker *taker = create();

	(void)state;
	give(taker, HS_LIT("+OK\r\nHTTP/1.1 400 Bad Request\r\n"));
	expect(taker, "+OK\r\n|");
	assert_string_equal(taker->upstream.close_reason, "the server's reply is not RESP");
	destroy(taker);

	taker = create();
	give(taker, HS_LIT("+O"));
	assert_null(taker->upstream.close_reason);
	give(taker, HS_LIT("K\n"));
	assert_string_equal(taker->upstream.close_reason, "the server's reply is not RESP");
	destroy(taker);
}

static void test_a_reply_beyond_the_limit(void **state)
{
	static const char reason[] = "the server's reply exceeds the size limit";
	struct taker *taker = create();
	char bytes[REPLY_BYTES_MAX + 1];

	(void)state;
	/* The connection closes at the header already: the announced length exceeds the limit. */
	give(taker, HS_LIT("$993\r\n")); /* header, bytes and line end: 6 + 993 + 2 = 1001 */
	assert_string_equal(taker->upstream.close_reason, reason);
	destroy(taker);
	taker = create();
	give(taker, HS_LIT("$992\r\n"));
	assert_null(taker->upstream.close_reason);
	destroy(taker);

	/* A line announces no length: the connection closes when the line exceeds the limit. */
	taker = create();
	memset(bytes, '+', sizeof bytes);
	give(taker, (struct hs_bytes){bytes, REPLY_BYTES_MAX});
	assert_null(taker->upstream.close_reason);
	give(taker, HS_LIT("+"));
	assert_string_equal(taker->upstream.close_reason, reason);
	expect(taker, "");
	destroy(taker);

	/* The limit applies to each reply: many short replies may be larger together. */
	taker = create();
	for (int i = 0; i < 1000; i++)
		give(taker, HS_LIT("+OK\r\n+OK\r\n"));
	assert_null(taker->upstream.close_reason);
	assert_int_equal(taker->count, 2000);
	destroy(taker);
}

/* A long reply is read from the socket straight into the assembling buffer: its bytes are copied once. */
static void test_room_for_a_long_reply(void **state)
{
	enum { BYTES = 3 << 20 };
	struct taker *taker = create();
	struct hs_upstream *upstream = &taker->upstream;
	size_t room, left = BYTES + 2; /* bytes of the value, and the line end */
	char *at;

	(void)state;
	taker->reply_bytes_max = 2 * BYTES;
	taker->swaps = true;
	assert_null(hs_upstream_room(upstream, &room));
	assert_int_equal(room, 0);
	give(taker, HS_LIT("$100\r\n")); /* too short: no buffer is offered */
	assert_null(hs_upstream_room(upstream, &room));
	assert_int_equal(room, 0);
	hs_upstream_reset(upstream);
	give(taker, HS_LIT("$3145728\r\n"));
	while (left > HS_IDLE_BUFFER_BYTES) {
		size_t some;

		at = hs_upstream_room(upstream, &room);
		assert_ptr_equal(at, upstream->partial.data + upstream->partial.len);
		assert_true(room > 0 && room <= left); /* the offered room ends with the reply */
		assert_true(room <= 1 << 20);
		/* The socket has fewer bytes than the room. */
		some = room > 10000 ? room - 9999 : room;
		memset(at, 'x', some);
		hs_upstream_receive(upstream, 3, at, some, taker->reply_bytes_max, take, taker);
		left -= some;
		assert_int_equal(upstream->partial.len, strlen("$3145728\r\n") + BYTES + 2 - left);
	}
	assert_null(hs_upstream_room(upstream, &room));
	at = hs_mem_alloc(left);
	memset(at, 'x', left);
	memcpy(at + left - 2, "\r\n", 2);
	give(taker, (struct hs_bytes){at, left});
	assert_int_equal(taker->owned_count, 1);
	assert_int_equal(taker->taken.len, strlen("$3145728\r\n") + BYTES + 2);
	assert_ptr_equal(taker->first, taker->taken.data);
	hs_mem_release(at);
	destroy(taker);
}

static void test_memory_of_a_long_reply_is_freed(void **state)
{
	struct taker *taker = create();
	char *bytes = hs_mem_zalloc(1 << 20);

	(void)state;
	taker->reply_bytes_max = 2 << 20;
	give(taker, HS_LIT("$1048576\r\n"));
	give(taker, (struct hs_bytes){bytes, 1 << 20});
	assert_int_equal(taker->count, 0);
	give(taker, HS_LIT("\r\n"));
	assert_int_equal(taker->count, 1);
	assert_true(taker->upstream.partial.cap <= HS_IDLE_BUFFER_BYTES);
	hs_mem_release(bytes);
	destroy(taker);
}

static void test_a_new_connection_begins_anew(void **state)
{
	struct taker *taker = create();
	struct hs_upstream *upstream = &taker->upstream;

	(void)state;
	give(taker, HS_LIT("*2\r\n+a\r\n+hal"));
	hs_upstream_close(upstream, "enough");
	hs_buf_append(&upstream->out, "rest", 4);
	upstream->sent = 7;
	upstream->blameless = true;
	upstream->server_id = 9;
	upstream->backoff = (struct hs_backoff){.failures = 3, .open_at_us = 50};
	upstream->state = HS_UPSTREAM_DOWN;
	assert_false(hs_upstream_may_open(upstream, 49));
	assert_true(hs_upstream_may_open(upstream, 50));
	hs_upstream_opening(upstream, 60);
	assert_false(hs_upstream_may_open(upstream, 70));
	assert_int_equal(upstream->state, HS_UPSTREAM_OPENING);
	assert_int_equal(upstream->opened_us, 60);
	assert_int_equal(upstream->received_us, 60);
	assert_null(upstream->close_reason);
	assert_false(upstream->blameless);
	assert_int_equal(upstream->out.len, 0);
	assert_int_equal(upstream->sent, 0);
	assert_int_equal(upstream->server_id, 0);
	assert_int_equal(upstream->resp, 3);
	/* Still counted, because the new connection may fail as well. */
	assert_int_equal(upstream->backoff.failures, 3);
	give(taker, HS_LIT("+new\r\n"));
	expect(taker, "+new\r\n|");
	destroy(taker);
}

static void test_silence_counts_from_the_question_or_the_last_byte(void **state)
{
	struct taker *taker = create();
	struct hs_upstream *upstream = &taker->upstream;

	(void)state;
	/* The connection was opened at 1 and has received no byte. */
	assert_false(hs_upstream_is_silent(upstream, 0, 10, 10));
	assert_true(hs_upstream_is_silent(upstream, 0, 11, 10));
	/* A PING was sent at 5: the silence counts from then. */
	assert_false(hs_upstream_is_silent(upstream, 5, 14, 10));
	assert_true(hs_upstream_is_silent(upstream, 5, 15, 10));
	/* Bytes after the PING end the silence, even if they are not a whole reply. */
	hs_upstream_receive(upstream, 12, "$5\r\nhe", 6, REPLY_BYTES_MAX, take, taker);
	assert_false(hs_upstream_is_silent(upstream, 5, 21, 10));
	assert_true(hs_upstream_is_silent(upstream, 5, 22, 10));
	/* A PING sent after the last byte; and a PING sent at this very moment. */
	assert_false(hs_upstream_is_silent(upstream, 20, 29, 10));
	assert_false(hs_upstream_is_silent(upstream, 30, 30, 10));
	destroy(taker);
}

/* ---- backoff ---- */

static void test_backoff_doubles_up_to_its_limit(void **state)
{
	static const uint64_t delays[] = {50, 100, 200, 400, 800, 1500, 1500, 1500};
	static const struct hs_backoff_limits limits = {.first_us = 50, .max_us = 1500};
	uint64_t longest[8] = {0}, shortest[8];
	struct hs_prng prng;

	(void)state;
	memset(shortest, 0xff, sizeof shortest);
	hs_prng_init(&prng, 1);
	for (int round = 0; round < 20000; round++) {
		struct hs_backoff backoff = {0};

		for (uint32_t i = 0; i < 8; i++) {
			uint64_t delay;

			hs_backoff_wait(&backoff, &limits, 1000, &prng);
			assert_int_equal(backoff.failures, i + 1);
			delay = backoff.open_at_us - 1000;
			longest[i] = delay > longest[i] ? delay : longest[i];
			shortest[i] = delay < shortest[i] ? delay : shortest[i];
		}
		hs_backoff_clear(&backoff);
		assert_int_equal(backoff.failures, 0);
		assert_int_equal(backoff.open_at_us, 0);
	}
	/* A pause is random, from the delay itself to one and a half times the delay. */
	for (int i = 0; i < 8; i++) {
		assert_int_equal(shortest[i], delays[i]);
		assert_int_equal(longest[i], delays[i] + delays[i] / 2);
	}
}

/* No overflow, however long a server is down and whatever the limits are. */
static void test_backoff_of_very_many_failures(void **state)
{
	static const struct hs_backoff_limits limits = {.first_us = 1, .max_us = UINT64_C(1) << 61};
	static const struct hs_backoff_limits fixed = {.first_us = 100, .max_us = 70};
	struct hs_backoff backoff = {.failures = UINT32_MAX - 1};
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 1);
	hs_backoff_wait(&backoff, &limits, 5, &prng);
	assert_true(backoff.open_at_us >= 5 + limits.max_us &&
		    backoff.open_at_us <= 5 + limits.max_us + limits.max_us / 2);
	hs_backoff_clear(&backoff);
	hs_backoff_wait(&backoff, &fixed, 0, &prng);
	assert_true(backoff.open_at_us >= 70 && backoff.open_at_us <= 105);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_several_replies_in_one_piece),
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_pieces_of_every_size),
		cmocka_unit_test(test_replies_that_may_be_taken_over),
		cmocka_unit_test(test_a_reason_to_close_stops_reading),
		cmocka_unit_test(test_malformed_replies),
		cmocka_unit_test(test_a_reply_beyond_the_limit),
		cmocka_unit_test(test_room_for_a_long_reply),
		cmocka_unit_test(test_memory_of_a_long_reply_is_freed),
		cmocka_unit_test(test_a_new_connection_begins_anew),
		cmocka_unit_test(test_silence_counts_from_the_question_or_the_last_byte),
		cmocka_unit_test(test_backoff_doubles_up_to_its_limit),
		cmocka_unit_test(test_backoff_of_very_many_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
