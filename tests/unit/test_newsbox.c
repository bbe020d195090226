/* Goal: news reach a worker in their order; one that does not read them holds a bounded number of
 * bytes; changes of keys that were dropped are told as a change of everything.
 * Method: fill a box, read it, count. */
#include "serve/newsbox.h"

#include "base/limits.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define LARGE (16 * HS_MIB)

static enum hs_newsbox_put put(struct hs_newsbox *box, enum hs_news_kind kind, const char *channel,
			       size_t payload)
{
	char *bytes = hs_mem_zalloc(payload + 1);
	struct hs_bytes key = {bytes, payload};
	struct hs_news news = {.kind = kind, .channel = hs_bytes_of(channel)};
	struct hs_news *created;

	if (kind == HS_NEWS_CHANGED) {
		news.keys = &key;
		news.keys_count = 1;
	} else {
		news.payload = key;
	}
	created = hs_news_create(&news);
	hs_mem_free(&bytes);
	return hs_newsbox_put(box, created);
}

/* Reads all: the first letter of each channel, - for keys, * for everything. */
static const char *read_all(struct hs_newsbox *box)
{
	static char text[64];
	size_t len = 0;

	for (struct hs_note *note = hs_newsbox_take(box); note; note = hs_newsbox_done(box, note))
		text[len++] = note->news->kind == HS_NEWS_CHANGED ? '-'
			      : note->news->kind == HS_NEWS_CHANGED_ALL
				      ? '*'
				      : note->news->channel.data[0];
	text[len] = '\0';
	return text;
}

static void test_in_order(void **state)
{
	struct hs_newsbox box = {.bytes = 0};

	(void)state;
	assert_string_equal(read_all(&box), "");
	put(&box, HS_NEWS_MESSAGE, "a", 1);
	put(&box, HS_NEWS_CHANGED, "", 1);
	put(&box, HS_NEWS_SHARD, "b", 1);
	put(&box, HS_NEWS_CHANGED_ALL, "", 0);
	assert_string_equal(read_all(&box), "a-b*");
	assert_string_equal(read_all(&box), "");
	assert_int_equal(box.bytes, 0);
}

static void test_full_of_messages(void **state)
{
	struct hs_newsbox box = {.bytes = 0};

	(void)state;
	for (size_t bytes = 0; bytes < HS_NEWSBOX_BYTES_MAX; bytes += LARGE)
		assert_int_equal(put(&box, HS_NEWS_MESSAGE, "a", LARGE), HS_NEWSBOX_TAKEN);
	assert_int_equal(put(&box, HS_NEWS_MESSAGE, "b", 1), HS_NEWSBOX_FULL);
	assert_int_equal(put(&box, HS_NEWS_PATTERN, "b", 1), HS_NEWSBOX_STILL_FULL);
	assert_int_equal(put(&box, HS_NEWS_UNLISTENED, "u", 0), HS_NEWSBOX_TAKEN);
	assert_string_equal(read_all(&box), "aaaau"); /* nothing is said of keys */
	assert_int_equal(box.bytes, 0);
	assert_int_equal(put(&box, HS_NEWS_MESSAGE, "c", 1), HS_NEWSBOX_TAKEN);
	assert_string_equal(read_all(&box), "c");
}

static void test_full_and_keys_change(void **state)
{
	struct hs_newsbox box = {.bytes = 0};

	(void)state;
	for (enum hs_news_kind kind = HS_NEWS_CHANGED; kind <= HS_NEWS_CHANGED_ALL; kind++) {
		put(&box, HS_NEWS_CHANGED, "", HS_NEWSBOX_BYTES_MAX);
		assert_int_equal(put(&box, kind, "", 1), HS_NEWSBOX_FULL);
		assert_string_equal(read_all(&box), "-*"); /* behind what was there */
		assert_string_equal(read_all(&box), "");
		assert_int_equal(box.bytes, 0);
	}
}

/* Dropped while the worker was reading: told with the next wake-up, for which nothing else came. */
static void test_dropped_while_reading(void **state)
{
	struct hs_newsbox box = {.bytes = 0};
	struct hs_note *note;

	(void)state;
	put(&box, HS_NEWS_MESSAGE, "a", HS_NEWSBOX_BYTES_MAX);
	note = hs_newsbox_take(&box);
	assert_int_equal(put(&box, HS_NEWS_CHANGED, "", 1), HS_NEWSBOX_FULL);
	assert_null(hs_newsbox_done(&box, note));
	assert_string_equal(read_all(&box), "*");
	assert_int_equal(box.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_full_of_messages),
		cmocka_unit_test(test_full_and_keys_change),
		cmocka_unit_test(test_dropped_while_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
