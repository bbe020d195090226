/* Measures the accuracy of heat in simulated time: recall of the hottest keys, correctness of the bounds, and the
 * rank of a key with large values among small ones. One thread, no server.
 *
 * Requests come at a steady simulated rate (heat_world.h), and every key is also counted exactly, for comparison.
 *
 *     heat_accuracy [TRACE]     prints lines of: what | target | measured; exits with 0 also if a target is MISSED
 *
 * TRACE: a file of real requests as key numbers, four bytes each, most significant byte first. */
#include "bench/heat_world.h"

enum {
	TOP = 100,
	SAMPLES = 20000, /* keys whose bounds are checked */
};

static const char *const window_names[] = {"short", "long"};

/* The exact rate of the key with rank TOP. */
static double truth_top(const struct truth *truth, enum hs_heat_window w)
{
	double best[TOP] = {0};
	size_t least = 0;

	for (size_t i = 0; i < truth->keys; i++) {
		if (truth->sum[i][w] <= best[least])
			continue;
		best[least] = truth->sum[i][w];
		for (size_t j = 0; j < TOP; j++)
			least = best[j] < best[least] ? j : least;
	}
	qsort(best, TOP, sizeof *best, by_size);
	return best[0] / truth->one[w] /
	       (window_s[w] * -expm1(-(double)(truth->now_us - START_US) / 1e6 / window_s[w]));
}

/* ---- recall and bounds ---- */

struct score {
	double recall;
	uint64_t intervals, wrong;
};

static void score_row(const struct truth *truth, const struct hs_heat_row *row, uint64_t key,
		      struct score *score)
{
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
		const struct hs_heat_rates *rates = &row->window[w];
		double ops = truth_rate(truth, key, w), bytes = ops * VALUE_BYTES;

		/* Tolerance for rounding: a thousandth of the rate, and of one request in the window. */
		double off = ops * 1e-3 + 1e-3 / window_s[w];

		score->intervals += 2;
		score->wrong += rates->ops_low > ops + off || rates->ops_high < ops - off;
		off *= VALUE_BYTES;
		score->wrong += rates->bytes_low > bytes + off || rates->bytes_high < bytes - off;
	}
}

static struct score score_of(struct world *world, struct hs_heat *const *heats, size_t count,
			     enum hs_heat_window w)
{
	static struct hs_heat_row rows[ROWS];
	const struct truth *truth = &world->truth;
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = w};
	double least = truth_top(truth, w);
	size_t found = hs_heat_top(heats, count, &query, world->now_us, rows, ROWS);
	struct score score = {0};

	for (size_t i = 0; i < found; i++) {
		uint64_t key = key_number(&rows[i]);

		score_row(truth, &rows[i], key, &score);
		/* Of keys with equal rates any may be shown. */
		score.recall += i < TOP && truth_rate(truth, key, w) >= least * (1 - 1e-9);
	}
	score.recall /= TOP;
	for (uint64_t i = 0; i < SAMPLES; i++) {
		/* The hottest keys, and random ones. */
		uint64_t key = i < SAMPLES / 2 ? i : hs_prng_below(&world->prng, truth->keys - 1);
		struct hs_heat_row row;
		char text[KEY_BYTES];

		if (key >= truth->keys)
			continue;
		hs_heat_find(heats, count, HS_HEAT_KEYS, key_text(key, text), 0, world->now_us,
			     &row);
		score_row(truth, &row, key, &score);
	}
	return score;
}

static void print_scores(struct world *world, const char *name, bool asked)
{
	for (enum hs_heat_window w = 0; w < HS_HEAT_WINDOWS; w++) {
		struct score one = score_of(world, &world->one, 1, w);
		struct score many = score_of(world, world->many, WORKERS, w);
		uint64_t wrong = one.wrong + many.wrong, all = one.intervals + many.intervals;
		bool met = wrong == 0 && (!asked || (one.recall >= 0.98 && many.recall >= 0.98));

		printf("recall of the top %d, %s, %s window | %s | %.2f, %d workers %.2f; "
		       "%llu of %llu intervals wrong: %s\n",
		       TOP, name, window_names[w], asked ? ">= 0.98, 0 wrong" : "0 wrong",
		       one.recall, WORKERS, many.recall, (unsigned long long)wrong,
		       (unsigned long long)all, met ? "met" : "MISSED");
	}
	fflush(stdout);
}

static void run_recall(double exponent, uint64_t per_second, unsigned seconds, bool asked)
{
	struct world world;
	char name[80];

	world_init(&world, exponent, KEYS, true, 1);
	for (uint64_t ms = 0; ms < (uint64_t)seconds * 1000; ms++) {
		for (uint64_t i = 0; i < per_second / 1000; i++)
			request(&world, hs_storm_keys_next(&world.keys, &world.prng, 0),
				VALUE_BYTES, true);
		next_ms(&world, true);
	}
	snprintf(name, sizeof name, "Zipf %.2f of 10 M, %llu k/s", exponent,
		 (unsigned long long)per_second / 1000);
	print_scores(&world, name, asked);
	world_deinit(&world);
}

/* ---- a key with large values among small ones ---- */

static void run_giant(uint64_t giant_bytes, uint64_t per_second, unsigned seconds)
{
	static struct hs_heat_row rows[ROWS];
	struct hs_heat_query query = {
		.what = HS_HEAT_KEYS, .by = HS_HEAT_BY_BYTES, .window = HS_HEAT_LONG};
	struct world world;
	uint64_t giant = KEYS, first_us = 0, found_us = 0, more = 0, seen = 0, rank = 0;

	world_init(&world, 0.99, KEYS, true, 1);
	for (uint64_t ms = 0; ms < (uint64_t)seconds * 1000; ms++) {
		for (uint64_t i = 0; i < per_second / 1000; i++) {
			if (hs_prng_below(&world.prng, 80000) > 0) {
				request(&world, hs_storm_keys_next(&world.keys, &world.prng, 0),
					VALUE_BYTES, false);
				continue;
			}
			request(&world, giant, giant_bytes, false);
			first_us = first_us ? first_us : world.now_us;
			seen += found_us == 0;
		}
		next_ms(&world, false);
		if (ms % 10 != 9)
			continue;
		rank = 0;
		for (size_t i = hs_heat_top(&world.one, 1, &query, world.now_us, rows, FIRST);
		     i > 0; i--)
			rank = key_number(&rows[i - 1]) == giant ? i : rank;
		if (rank > 0 && found_us == 0)
			found_us = world.now_us;
	}
	for (uint64_t key = 0; key < KEYS; key++)
		more += world.truth.sum[key][HS_HEAT_LONG] * VALUE_BYTES >
			world.truth.sum[giant][HS_HEAT_LONG] * (double)giant_bytes;
	printf("giant of %llu KB, 1 in 80,000 of %llu k/s | found by bytes | ",
	       (unsigned long long)giant_bytes / 1000, (unsigned long long)per_second / 1000);
	if (found_us)
		printf("after %.0f ms and %llu requests for it; in the end number %llu, "
		       "truly %llu: %s\n",
		       (double)(found_us - first_us) / 1e3, (unsigned long long)seen,
		       (unsigned long long)rank, (unsigned long long)more + 1,
		       rank > 0 ? "met" : "MISSED");
	else
		printf("never; truly number %llu: MISSED\n", (unsigned long long)more + 1);
	fflush(stdout);
	world_deinit(&world);
}

/* ---- a trace of real requests ---- */

static void run_trace(const char *path)
{
	enum { PER_MS_TRACE = 20, NUMBERS_MAX = 1 << 24 };
	FILE *file = fopen(path, "rb");
	unsigned char bytes[4];
	uint32_t *numbers = hs_mem_alloc(NUMBERS_MAX * sizeof *numbers), largest = 0;
	size_t count = 0, top_key = 0;
	struct world world;
	struct hs_heat_row row;
	char text[KEY_BYTES], name[80];

	if (!file) {
		fprintf(stderr, "heat_accuracy: %s cannot be read\n", path);
		exit(1);
	}
	while (count < NUMBERS_MAX && fread(bytes, 1, 4, file) == 4) {
		numbers[count] = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 |
				 (uint32_t)bytes[2] << 8 | bytes[3];
		largest = numbers[count] > largest ? numbers[count] : largest;
		count++;
	}
	fclose(file);
	world_init(&world, 0, (size_t)largest + 1, true, 1);
	for (size_t i = 0; i < count; i++) {
		request(&world, numbers[i], VALUE_BYTES, true);
		if (i % PER_MS_TRACE == PER_MS_TRACE - 1)
			next_ms(&world, true);
	}
	for (size_t key = 0; key <= largest; key++) {
		if (world.truth.sum[key][HS_HEAT_LONG] > world.truth.sum[top_key][HS_HEAT_LONG])
			top_key = key;
	}
	hs_heat_find(&world.one, 1, HS_HEAT_KEYS, key_text(top_key, text), 0, world.now_us, &row);

	double total = hs_heat_total(&world.one, 1, HS_HEAT_LONG, world.now_us);

	printf("the top key of %zu real requests | | between %.2f %% and %.2f %% of them, "
	       "truly %.2f %%\n",
	       count, 100 * row.window[HS_HEAT_LONG].ops_low / total,
	       100 * row.window[HS_HEAT_LONG].ops_high / total,
	       100 * truth_rate(&world.truth, top_key, HS_HEAT_LONG) / total);
	snprintf(name, sizeof name, "real requests, %d k/s", PER_MS_TRACE);
	print_scores(&world, name, false);
	world_deinit(&world);
	hs_mem_free(&numbers);
}

int main(int argc, char **argv)
{
	run_recall(0.99, 1000000, 8, true);
	run_recall(0.99, 20000, 20, false);
	/* The median and the largest Zipf exponent of 54 production caches. */
	run_recall(1.21, 1000000, 5, false);
	run_recall(2.68, 1000000, 3, false);
	run_giant(1000000, 1000000, 4);
	run_giant(64000, 1000000, 8);
	run_giant(1000000, 20000, 30);
	if (argc > 1)
		run_trace(argv[1]);
	return 0;
}
