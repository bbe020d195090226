/* Measures how soon heat shows a key that has become hot, and how long it shows one that has cooled. One thread, no
 * server.
 *
 * A key jumps to a share of a million requests per second and stops again, in simulated time (heat_world.h); the list
 * of the hottest keys is read every simulated millisecond. For comparison the lines show when the key is in the list
 * by exact counts, and the statistical limit: the smallest time after which any method could tell with this
 * confidence that the key is hot.
 *
 *     heat_delay      prints lines of: what | target | measured; exits with 0 also if a target is MISSED */
#include "bench/heat_world.h"

enum { WARM_MS = 1000, HOT_MS = 600, COOL_MS = 1300, PER_MS = 1000, RIVALS = 64, SEEDS = 5 };
static const double share_before = 1e-5;

struct delay {
	double true_ms;	  /* by exact counts the key is among the first FIRST */
	double shown_ms;  /* heat lists it among them */
	double proven_ms; /* its lower bound shows that it belongs there */
	double out_ms;	  /* after the requests stopped: not among the first FIRST */
	double gone_ms;	  /* after the requests stopped: not listed at all */
};

/* The rank of the key in the rows, from 1; 0: not listed. */
static size_t place_of(const struct hs_heat_row *rows, size_t count, uint64_t key)
{
	for (size_t i = 0; i < count; i++) {
		if (key_number(&rows[i]) == key)
			return i + 1;
	}
	return 0;
}

/* True if by the bounds at most FIRST - 1 other keys can be as hot. */
static bool is_proven(const struct hs_heat_row *rows, size_t count, size_t place)
{
	size_t rivals = 0;

	for (size_t i = 0; i < count; i++)
		rivals += i + 1 != place && rows[i].window[HS_HEAT_SHORT].ops_high >=
						    rows[place - 1].window[HS_HEAT_SHORT].ops_low;
	return rivals < FIRST;
}

/* Exact counts in the short window, of the key and of the few others that can be hotter. */
struct rivals {
	double sum[RIVALS + 1]; /* the last one is the key's */
};

static bool rivals_ms(struct rivals *rivals)
{
	size_t hotter = 0;

	for (size_t i = 0; i < RIVALS; i++)
		hotter += rivals->sum[i] >= rivals->sum[RIVALS];
	for (size_t i = 0; i <= RIVALS; i++)
		rivals->sum[i] *= exp(-1e-3 / window_s[HS_HEAT_SHORT]);
	return hotter < FIRST;
}

/* Reads the list in this millisecond, and notes the events that it shows. */
static void look(struct world *world, uint64_t key, int since_ms, struct delay *delay)
{
	static struct hs_heat_row rows[ROWS];
	struct hs_heat_query query = {.what = HS_HEAT_KEYS, .window = HS_HEAT_SHORT};
	size_t count = hs_heat_top(&world->one, 1, &query, world->now_us, rows, ROWS);
	size_t place = place_of(rows, count, key);
	bool first = place > 0 && place <= FIRST;

	if (since_ms <= HOT_MS) {
		if (first && isnan(delay->shown_ms))
			delay->shown_ms = since_ms;
		if (first && is_proven(rows, count, place))
			delay->proven_ms = since_ms;
		return;
	}
	if (!first && isnan(delay->out_ms))
		delay->out_ms = since_ms - HOT_MS;
	if (place == 0)
		delay->gone_ms = since_ms - HOT_MS;
}

static struct delay run_delay(double exponent, double share, uint64_t seed)
{
	struct delay delay = {NAN, NAN, NAN, NAN, NAN};
	struct rivals rivals = {{0}};
	struct world world;
	uint64_t key = KEYS;

	world_init(&world, exponent, KEYS, false, seed);
	for (int ms = 0; ms < WARM_MS + HOT_MS + COOL_MS && isnan(delay.gone_ms); ms++) {
		double now = ms < WARM_MS ? share_before : ms < WARM_MS + HOT_MS ? share : 0;
		int since_ms = ms + 1 - WARM_MS;

		for (int i = 0; i < PER_MS; i++) {
			uint64_t asked = hs_prng_unit(&world.prng) < now
						 ? key
						 : hs_storm_keys_next(&world.keys, &world.prng, 0);

			request(&world, asked, VALUE_BYTES, false);
			if (asked < RIVALS || asked == key)
				rivals.sum[asked < RIVALS ? asked : RIVALS]++;
		}
		next_ms(&world, false);
		if (rivals_ms(&rivals) && since_ms > 0 && isnan(delay.true_ms))
			delay.true_ms = since_ms;
		if (since_ms > HOT_MS || (since_ms > 0 && isnan(delay.proven_ms)))
			look(&world, key, since_ms, &delay);
	}
	world_deinit(&world);
	return delay;
}

struct figure {
	double value; /* the median; an event that did not happen counts as the largest value */
	double worst;
	char text[32];
};

static struct figure figure_of(const struct delay *delays, size_t offset)
{
	double values[SEEDS];
	struct figure figure;

	for (size_t i = 0; i < SEEDS; i++) {
		memcpy(&values[i], (const char *)&delays[i] + offset, sizeof values[i]);
		values[i] = isnan(values[i]) ? INFINITY : values[i];
	}
	qsort(values, SEEDS, sizeof *values, by_size);
	figure.value = values[SEEDS / 2];
	figure.worst = values[SEEDS - 1];
	if (isinf(figure.value))
		snprintf(figure.text, sizeof figure.text, "never");
	else
		snprintf(figure.text, sizeof figure.text, "after %.0f ms", figure.value);
	return figure;
}

/* The time before which no method can be sure that the key is hot, with one false alarm in a million. */
static double limit_ms(double share)
{
	double divergence = share * log(share / share_before) +
			    (1 - share) * log((1 - share) / (1 - share_before));

	return log(1e6) / (PER_MS * divergence);
}

#define FIGURE(delays, name) figure_of(delays, offsetof(struct delay, name))

static void print_delay(const char *name, double exponent, double share, double asked_ms)
{
	struct delay delays[SEEDS];
	char asked[40] = "";
	const char *verdict = "";

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		delays[seed - 1] = run_delay(exponent, share, seed);

	struct figure shown = FIGURE(delays, shown_ms), gone = FIGURE(delays, gone_ms);

	if (asked_ms > 0) {
		snprintf(asked, sizeof asked, "shown <= %.0f, gone <= 1000 ms", asked_ms);
		verdict = shown.value <= asked_ms && gone.worst <= 1000 ? ": met" : ": MISSED";
	}
	printf("a key jumps to %g %% of 1 M/s, %s | %s | shown %s (worst of %d: %.0f), proven %s, "
	       "truly there %s, limit %.3f ms; stopped: out of the ten %s, gone %s%s\n",
	       share * 100, name, asked, shown.text, SEEDS, shown.worst,
	       FIGURE(delays, proven_ms).text, FIGURE(delays, true_ms).text, limit_ms(share),
	       FIGURE(delays, out_ms).text, gone.text, verdict);
	fflush(stdout);
}

int main(void)
{
	print_delay("Zipf 0.99", 0.99, 0.05, 50);
	print_delay("Zipf 0.99", 0.99, 0.01, 100);
	print_delay("Zipf 0.99", 0.99, 0.005, 0);
	print_delay("uniform", 0, 0.05, 50);
	print_delay("uniform", 0, 0.01, 100);
	print_delay("uniform", 0, 0.005, 0);
	return 0;
}
