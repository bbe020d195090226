/* Goal: a worker gets its events in order. A worker that does not read its queue holds a bounded number of bytes;
 * dropped events about changed keys become "everything changed".
 *
 * Method: fill a queue, read it, count. */
#include "serve/event_queue.h"

#include "base/limits.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define LARGE (16 * HS_MIB)

static enum hs_event_queue_put put(struct hs_event_queue *box, enum hs_event_kind kind,
				   const char *channel, size_t payload)
{
	char *bytes = hs_mem_zalloc(payload + 1);
	struct hs_bytes key = {bytes, payload};
	struct hs_event event = {.kind = kind, .channel = hs_bytes_of(channel)};
	struct hs_event *created;

	if (kind == HS_EVENT_CHANGED) {
		event.keys = &key;
		event.keys_count = 1;
	} else {
		event.payload = key;
	}
	created = hs_event_create(&event);
	hs_mem_free(&bytes);
	return hs_event_queue_put(box, created);
}

/* Reads all events. Returns a letter for each: the first letter of a message's channel, - for changed keys, * for
 * everything changed. */
static const char *read_all(struct hs_event_queue *box)
{
	static char text[64];
	size_t len = 0;

	for (struct hs_queued_event *queued = hs_event_queue_take(box); queued;
	     queued = hs_event_queue_done(box, queued))
		text[len++] = queued->event->kind == HS_EVENT_CHANGED ? '-'
			      : queued->event->kind == HS_EVENT_CHANGED_ALL
				      ? '*'
				      : queued->event->channel.data[0];
	text[len] = '\0';
	return text;
}

static void test_in_order(void **state)
{
	struct hs_event_queue box = {.bytes = 0};

	(void)state;
	assert_string_equal(read_all(&box), "");
	put(&box, HS_EVENT_MESSAGE, "a", 1);
	put(&box, HS_EVENT_CHANGED, "", 1);
	put(&box, HS_EVENT_SHARD_MESSAGE, "b", 1);
	put(&box, HS_EVENT_CHANGED_ALL, "", 0);
	assert_string_equal(read_all(&box), "a-b*");
	assert_string_equal(read_all(&box), "");
	assert_int_equal(box.bytes, 0);
}

static void test_full_of_messages(void **state)
{
	struct hs_event_queue box = {.bytes = 0};

	(void)state;
	for (size_t bytes = 0; bytes < HS_EVENT_QUEUE_BYTES_MAX; bytes += LARGE)
		assert_int_equal(put(&box, HS_EVENT_MESSAGE, "a", LARGE), HS_EVENT_QUEUED);
	assert_int_equal(put(&box, HS_EVENT_MESSAGE, "b", 1), HS_EVENT_QUEUE_FULL);
	assert_int_equal(put(&box, HS_EVENT_PATTERN_MESSAGE, "b", 1), HS_EVENT_QUEUE_STILL_FULL);
	assert_int_equal(put(&box, HS_EVENT_UNSUBSCRIBED, "u", 0), HS_EVENT_QUEUED);
	/* Dropped messages add no event about keys. */
	assert_string_equal(read_all(&box), "aaaau");
	assert_int_equal(box.bytes, 0);
	assert_int_equal(put(&box, HS_EVENT_MESSAGE, "c", 1), HS_EVENT_QUEUED);
	assert_string_equal(read_all(&box), "c");
}

static void test_changed_keys_when_the_queue_is_full(void **state)
{
	struct hs_event_queue box = {.bytes = 0};

	(void)state;
	for (enum hs_event_kind kind = HS_EVENT_CHANGED; kind <= HS_EVENT_CHANGED_ALL; kind++) {
		put(&box, HS_EVENT_CHANGED, "", HS_EVENT_QUEUE_BYTES_MAX);
		assert_int_equal(put(&box, kind, "", 1), HS_EVENT_QUEUE_FULL);
		/* The event about everything comes after the events that were in the queue. */
		assert_string_equal(read_all(&box), "-*");
		assert_string_equal(read_all(&box), "");
		assert_int_equal(box.bytes, 0);
	}
}

/* An event about keys is dropped while the worker reads. The worker learns of the loss at its next wake-up,
 * without another event. */
static void test_dropped_while_reading(void **state)
{
	struct hs_event_queue box = {.bytes = 0};
	struct hs_queued_event *queued;

	(void)state;
	put(&box, HS_EVENT_MESSAGE, "a", HS_EVENT_QUEUE_BYTES_MAX);
	queued = hs_event_queue_take(&box);
	assert_int_equal(put(&box, HS_EVENT_CHANGED, "", 1), HS_EVENT_QUEUE_FULL);
	assert_null(hs_event_queue_done(&box, queued));
	assert_string_equal(read_all(&box), "*");
	assert_int_equal(box.bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_order),
		cmocka_unit_test(test_full_of_messages),
		cmocka_unit_test(test_changed_keys_when_the_queue_is_full),
		cmocka_unit_test(test_dropped_while_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
