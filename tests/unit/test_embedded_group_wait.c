/* Goal: a group waits for clients that usually send their next operation soon: at most as long as one sync, not
 * at all if no client is about to return, and less and less often if waiting brought nothing.
 *
 * Method: counts and times by hand; then small simulations of clients around one disk, in virtual time, with and
 * without the wait. */

#include "base/prng.h"
#include "engine/embedded/group_wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SYNC_US = 1000 };

static void a_single_client_is_not_waited_for(void **state)
{
	struct hs_group_wait wait = {0};

	(void)state;
	assert_false(hs_group_wait_for_more(&wait, 1, SYNC_US, 5000));
	for (int i = 0; i < 10; i++) {
		hs_group_wait_answered(&wait, 1, 0);
		assert_false(hs_group_wait_for_more(&wait, 1, SYNC_US, 5000));
	}
	/* A pipelining client sends its next operations only after the engine has answered these. */
	hs_group_wait_answered(&wait, 16, 0);
	assert_false(hs_group_wait_for_more(&wait, 16, SYNC_US, 5000));
	assert_false(hs_group_wait_for_more(&wait, 17, SYNC_US, 5000));
}

static void returning_clients_are_waited_for(void **state)
{
	struct hs_group_wait wait = {0};

	(void)state;
	/* One operation is answered while another one waits: the group waits for the answered client to
	 * return. */
	hs_group_wait_answered(&wait, 1, 1);
	assert_true(hs_group_wait_for_more(&wait, 1, SYNC_US, 5000));
	assert_int_equal(wait.until_us, 5000 + SYNC_US);
	assert_true(hs_group_wait_for_more(&wait, 1, SYNC_US, 5500));
	assert_false(hs_group_wait_for_more(&wait, 2, SYNC_US, 5600));
	/* Both clients' operations came in one group: the next group waits for the second client. */
	hs_group_wait_answered(&wait, 2, 0);
	assert_true(hs_group_wait_for_more(&wait, 1, SYNC_US, 6000));
	/* A group waits at most as long as one sync. */
	assert_false(hs_group_wait_for_more(&wait, 1, SYNC_US, 6000 + SYNC_US));
	hs_group_wait_answered(&wait, 1, 0);
	assert_false(hs_group_wait_for_more(&wait, 1, SYNC_US, 8000));
	/* A group waits at most HS_GROUP_WAIT_US_MAX, and not at all before the first sync was timed. */
	hs_group_wait_answered(&wait, 2, 0);
	assert_true(hs_group_wait_for_more(&wait, 1, 1000 * 1000, 9000));
	assert_int_equal(wait.until_us, 9000 + HS_GROUP_WAIT_US_MAX);
	hs_group_wait_answered(&wait, 2, 0);
	assert_false(hs_group_wait_for_more(&wait, 1, 0, 9000));
}

/* Returns the number of groups that do not wait before the next one waits. */
static unsigned groups_until_next_try(struct hs_group_wait *wait)
{
	for (unsigned groups = 0; groups < 1000; groups++) {
		hs_group_wait_answered(wait, 2, 0);
		if (hs_group_wait_for_more(wait, 1, SYNC_US, 5000))
			return groups;
	}
	return 1000;
}

static void waiting_in_vain_backs_off(void **state)
{
	static const unsigned rests[] = {0, 0, 1, 9, 64, 64, 64};
	struct hs_group_wait wait = {0};

	(void)state;
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++) {
		assert_int_equal(groups_until_next_try(&wait), rests[i]);
		assert_false(hs_group_wait_for_more(&wait, 1, SYNC_US, 5000 + SYNC_US));
	}
	/* After a useful wait the next group waits at once. If that wait brings nothing, groups skip waiting
	 * again. */
	assert_int_equal(groups_until_next_try(&wait), HS_GROUP_WAIT_SKIP_MAX);
	assert_false(hs_group_wait_for_more(&wait, 2, SYNC_US, 5100));
	assert_int_equal(groups_until_next_try(&wait), 0);
	assert_false(hs_group_wait_for_more(&wait, 1, SYNC_US, 5000 + SYNC_US));
	assert_int_equal(groups_until_next_try(&wait), HS_GROUP_WAIT_SKIP_MAX / 2);
	for (int i = 0; i < 10; i++) {
		assert_false(hs_group_wait_for_more(&wait, 2, SYNC_US, 5100));
		assert_int_equal(groups_until_next_try(&wait), 0);
	}
	assert_false(hs_group_wait_for_more(&wait, 1, SYNC_US, 5000 + SYNC_US));
	assert_int_equal(groups_until_next_try(&wait), 0);
}

/* One disk and its clients. A client is away until `back_us`, or waits for an answer. */
enum { CLIENTS_MAX = 64 };

struct world {
	struct hs_prng prng;
	size_t clients;
	uint64_t back_us[CLIENTS_MAX];	/* the time of each client's next request */
	uint64_t asked_us[CLIENTS_MAX]; /* the time of each client's request; 0: none in flight */
	uint64_t away_us;		/* how long an answered client stays away */
	bool by_chance;			/* the time away is random, with the same mean */
	uint64_t syncs, answers, wait_us;
};

static size_t arrive(struct world *world, uint64_t now)
{
	size_t count = 0;

	for (size_t i = 0; i < world->clients; i++) {
		if (!world->asked_us[i] && world->back_us[i] <= now)
			world->asked_us[i] = world->back_us[i];
		count += world->asked_us[i] != 0;
	}
	return count;
}

static uint64_t next_arrival(const struct world *world)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < world->clients; i++)
		if (!world->asked_us[i] && world->back_us[i] < next)
			next = world->back_us[i];
	return next;
}

/* Syncs, and answers every request made by `now`. */
static size_t sync_all(struct world *world, uint64_t *now)
{
	uint64_t begun = *now;
	size_t answered = 0;

	*now += SYNC_US;
	world->syncs++;
	for (size_t i = 0; i < world->clients; i++) {
		uint64_t away = world->away_us;

		if (!world->asked_us[i] || world->asked_us[i] > begun)
			continue;
		if (world->by_chance)
			away = 1 + hs_prng_below(&world->prng, 2 * world->away_us);
		world->wait_us += *now - world->asked_us[i];
		world->asked_us[i] = 0;
		world->back_us[i] = *now + away;
		answered++;
	}
	world->answers += answered;
	return answered;
}

static void play(struct world *world, bool with)
{
	struct hs_group_wait wait = {0};
	uint64_t now = 1;

	hs_prng_init(&world->prng, 7);
	memset(world->asked_us, 0, sizeof world->asked_us);
	world->syncs = world->answers = world->wait_us = 0;
	for (size_t i = 0; i < world->clients; i++)
		world->back_us[i] = 1 + hs_prng_below(&world->prng, 2 * SYNC_US);
	while (now < 1000 * SYNC_US) {
		size_t count = arrive(world, now), answered;
		uint64_t next = next_arrival(world);

		if (count == 0) {
			now = next;
			continue;
		}
		if (with && hs_group_wait_for_more(&wait, count, SYNC_US, now)) {
			now = next < wait.until_us ? next : wait.until_us;
			continue;
		}
		answered = sync_all(world, &now);
		/* Requests that arrived during the sync are in the next group already. */
		hs_group_wait_answered(&wait, answered, arrive(world, now));
	}
}

static void two_halves_become_one_group(void **state)
{
	struct world world = {.clients = 50, .away_us = SYNC_US / 5};
	uint64_t syncs, answers;

	(void)state;
	play(&world, false);
	syncs = world.syncs;
	answers = world.answers;
	assert_true(answers / syncs < 40);
	play(&world, true);
	assert_true(world.answers / world.syncs >= 48);
	assert_true(world.answers > answers * 5 / 4);
}

static void a_single_client_is_not_slowed_down(void **state)
{
	struct world world = {.clients = 1, .away_us = SYNC_US / 5};
	uint64_t answers, wait_us;

	(void)state;
	play(&world, false);
	answers = world.answers;
	wait_us = world.wait_us;
	play(&world, true);
	assert_int_equal(world.answers, answers);
	assert_int_equal(world.wait_us, wait_us);
}

/* Clients that stay away for long, random times: the group does not wait for them. */
static void random_arrivals_are_not_waited_for(void **state)
{
	struct world world = {.clients = 20, .away_us = 20 * SYNC_US, .by_chance = true};
	uint64_t mean_us;

	(void)state;
	play(&world, false);
	mean_us = world.wait_us / (world.answers + 1);
	play(&world, true);
	assert_true(world.answers > 0);
	assert_true(world.wait_us < mean_us * world.answers * 11 / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_single_client_is_not_waited_for),
		cmocka_unit_test(returning_clients_are_waited_for),
		cmocka_unit_test(waiting_in_vain_backs_off),
		cmocka_unit_test(two_halves_become_one_group),
		cmocka_unit_test(a_single_client_is_not_slowed_down),
		cmocka_unit_test(random_arrivals_are_not_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
