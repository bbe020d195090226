/* Goal: the small building blocks: the linked ring, counters that other threads may read, and the queue from many
 * threads to one.
 *
 * Method: each function by itself; for the queue, several threads push numbered items. */
#include "base/counter.h"
#include "base/list.h"
#include "base/mpsc.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct thing {
	int number;
	struct hs_link link;
};

static int number_at(struct hs_link *link)
{
	return hs_list_entry(link, struct thing, link)->number;
}

static void test_ring(void **state)
{
	struct thing a = {.number = 1}, b = {.number = 2}, c = {.number = 3};
	struct hs_link list;

	(void)state;
	hs_list_init(&list);
	assert_true(hs_list_empty(&list));
	hs_list_append(&list, &a.link);
	hs_list_append(&list, &b.link);
	hs_list_append(&list, &c.link);
	assert_int_equal(number_at(list.next), 1);
	assert_int_equal(number_at(list.next->next), 2);
	assert_int_equal(number_at(list.prev), 3);
	hs_list_remove(&b.link);
	assert_true(hs_list_empty(&b.link));
	hs_list_remove(&b.link); /* removing twice is harmless */
	assert_int_equal(number_at(list.next->next), 3);
	hs_list_remove(&a.link);
	hs_list_remove(&c.link);
	assert_true(hs_list_empty(&list));
}

static void test_counter(void **state)
{
	struct hs_counter counter = {0};

	(void)state;
	hs_counter_add(&counter, 3);
	hs_counter_add(&counter, 4);
	assert_int_equal(hs_counter_get(&counter), 7);
	hs_counter_set(&counter, 1);
	assert_int_equal(hs_counter_get(&counter), 1);
}

struct parcel {
	int from, number;
	struct parcel *next;
};

enum { SENDERS = 3, PARCELS = 20000 };

struct sender {
	struct hs_mpsc *queue;
	struct parcel *parcels;
	int number;
};

static void *send_all(void *context)
{
	struct sender *sender = context;

	/* Pushes two parcels at a time, as a chain from the newer to the older one. */
	for (int i = 0; i < PARCELS; i += 2) {
		struct parcel *older = &sender->parcels[i], *newer = older + 1;

		older->from = newer->from = sender->number;
		older->number = i;
		newer->number = i + 1;
		newer->next = older;
		hs_mpsc_push(sender->queue, newer, older, offsetof(struct parcel, next));
	}
	return NULL;
}

static void test_everything_pushed_is_taken_in_order(void **state)
{
	struct hs_mpsc queue = {NULL};
	struct sender senders[SENDERS];
	pthread_t threads[SENDERS];
	int next[SENDERS] = {0};
	int taken = 0;

	(void)state;
	for (int i = 0; i < SENDERS; i++) {
		senders[i] = (struct sender){
			.queue = &queue,
			.parcels = calloc(PARCELS, sizeof *senders[i].parcels),
			.number = i,
		};
		assert_int_equal(pthread_create(&threads[i], NULL, send_all, &senders[i]), 0);
	}
	while (taken < SENDERS * PARCELS) {
		struct parcel *parcel = hs_mpsc_take(&queue, offsetof(struct parcel, next));

		for (; parcel; parcel = parcel->next, taken++) {
			assert_int_equal(parcel->number, next[parcel->from]);
			next[parcel->from]++;
		}
	}
	assert_true(hs_mpsc_empty(&queue));
	for (int i = 0; i < SENDERS; i++) {
		pthread_join(threads[i], NULL);
		free(senders[i].parcels);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_counter),
		cmocka_unit_test(test_everything_pushed_is_taken_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
