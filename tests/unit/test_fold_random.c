/* Goal: folded requests get the replies that they would get one by one, in every mixture.
 *
 * Method: tens of thousands of worlds are drawn from seeds (tests/lib/fold_world.h): queues of every mixture,
 * numbers near both limits that many clients change, values that are no numbers, missing keys and keys of another
 * type, servers that refuse, clients with several requests and of both dialects, writes by other clients in
 * between. Each world runs folded, and then one by one in the order that the fold reports, and the replies must
 * be equal. A seed that fails is printed; to run it alone, narrow the loop over the seeds. */
#include "tests/lib/fold_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { WORLDS = 10000 };
#else
enum { WORLDS = 60000 };
#endif

static void run_seed(uint64_t seed, struct fold_tally *tally)
{
	struct fold_choices choices = {.data = NULL};
	const char *wrong;

	hs_prng_init(&choices.prng, seed);
	wrong = fold_world_run(choices, tally);
	if (wrong)
		fail_msg("seed %llu: %s", (unsigned long long)seed, wrong);
}

static void test_folded_replies_equal_single_replies(void **state)
{
	struct fold_tally tally = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= WORLDS; seed++)
		run_seed(seed, &tally);
	/* Checks that many requests were folded; otherwise the comparison would be worthless. */
	assert_true(tally.batches < tally.members * 3 / 4);
	assert_true(tally.folded > tally.members / 4);
	assert_true(tally.mixed > tally.members / 50);
	assert_true(tally.reordered > tally.members / 2000);
	assert_true(tally.reordered_low > tally.reordered / 4);
	assert_true(tally.reordered_low < tally.reordered / 4 * 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folded_replies_equal_single_replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
