/* Benchmarks the counting of heat: nanoseconds per access, the reader's time, memory. One thread, no server.
 *
 * The keys of a stream are in memory before the measurement. Each round passes over the stream three times: bare
 * (everything except the counting), in batches of 16 as a worker does it, and singly. The cost of counting is the
 * difference to the bare pass of the same round, in the thread's own CPU time, so that a busy machine disturbs
 * little; the line shows the median over the rounds.
 *
 *     heat      prints lines of: what | target | measured; exits with 0 also if a target is MISSED
 */
#include "base/check.h"
#include "base/mem.h"
#include "base/slot.h"
#include "cli/storm.h"
#include "heat/internal.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
	DRAWS = 4000000,
	DRAWS_FEW = 1000000,
	KEYS = 10000000,
	BATCH = 16,
	ROUNDS = 7,
	PARTITIONS = 8,
	READER_ROUNDS = 51,
	ROWS = 100,
	NS_MAX = 12,
};

struct stream {
	const char *name;
	struct hs_storm_shape shape;
	const char *form; /* printf format of a key: its number, its tenant's number */
	char *keys;	  /* all keys in a row, each key_len bytes */
	uint16_t *slots;
	size_t key_len;
	size_t draws;
};

static const struct hs_storm_shape zipf = {.kind = HS_STORM_ZIPF, .exponent = 0.99};

struct turn {
	const struct stream *stream;
	struct hs_heat *heat; /* NULL: the bare pass */
	uint64_t now_us;
	uint64_t touched; /* a sum over the keys, so that the compiler cannot skip reading them */
};

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
	qsort(values, count, sizeof *values, by_size);
	return values[count / 2];
}

static void stream_fill(struct stream *stream)
{
	struct hs_storm_keys keys;
	struct hs_prng prng;
	char key[64];

	hs_storm_keys_init(&keys, &stream->shape, KEYS, 1);
	hs_prng_init(&prng, 1);
	stream->key_len = (size_t)snprintf(key, sizeof key, stream->form, 0u, 0u);
	stream->keys = hs_mem_alloc(stream->draws * stream->key_len);
	stream->slots = hs_mem_alloc(stream->draws * sizeof *stream->slots);
	for (size_t i = 0; i < stream->draws; i++) {
		unsigned number = (unsigned)hs_storm_keys_next(&keys, &prng, 0);

		snprintf(key, sizeof key, stream->form, number, number % 50);
		memcpy(stream->keys + i * stream->key_len, key, stream->key_len);
		stream->slots[i] = hs_slot_of((struct hs_bytes){key, stream->key_len});
	}
}

/* Replaces the counting in a bare pass: a call that does nothing. */
__attribute__((noinline)) static void nothing(const struct hs_heat_access *access)
{
	__asm__ volatile("" ::"r"(access) : "memory");
}

/* One pass over the stream, at a simulated million requests per second. Returns ns per access. */
static double turn_ns(struct turn *turn, bool batched)
{
	const struct stream *stream = turn->stream;
	struct hs_heat *heat = turn->heat;
	uint64_t begin = cpu_ns();

	for (size_t i = 0; i < stream->draws; i++) {
		struct hs_heat_access access = {
			.key = {stream->keys + i * stream->key_len, stream->key_len},
			.bytes = 150,
			.slot = stream->slots[i],
			.partition = stream->slots[i] / (HS_SLOTS / PARTITIONS),
		};

		turn->touched += (unsigned char)access.key.data[0];
		if (!heat)
			nothing(&access);
		else if (batched)
			hs_heat_note(heat, &access);
		else
			hs_heat_add(heat, &access, 2000);
		if (i % BATCH == BATCH - 1) {
			turn->now_us += BATCH;
			if (heat && batched)
				hs_heat_settle(heat, 2000);
			if (heat)
				hs_heat_now(heat, turn->now_us);
		}
	}
	return (double)(cpu_ns() - begin) / (double)stream->draws;
}

static void measure_stream(struct stream *stream, bool asked)
{
	double batched[ROUNDS], singly[ROUNDS], bare[ROUNDS];
	struct hs_heat *heat = hs_heat_create(
		&(struct hs_heat_options){.seed = 1234567, .partitions = PARTITIONS});
	struct turn counted = {.stream = stream, .heat = heat, .now_us = 1000000};
	struct turn plain = {.stream = stream};
	char ask[32] = "";

	stream->draws = asked ? DRAWS : DRAWS_FEW;
	stream_fill(stream);
	for (int i = 0; i < ROUNDS; i++) {
		bare[i] = turn_ns(&plain, true);
		batched[i] = turn_ns(&counted, true) - bare[i];
		singly[i] = turn_ns(&counted, false) - bare[i];
	}
	if (asked)
		snprintf(ask, sizeof ask, "<= %d ns", NS_MAX);

	double batched_ns = median(batched, ROUNDS), singly_ns = median(singly, ROUNDS);

	printf("access, %s, in batches of %d | %s | %.1f ns%s\n", stream->name, BATCH, ask,
	       batched_ns,
	       !asked		      ? ""
	       : batched_ns <= NS_MAX ? ": met"
				      : ": MISSED");
	printf("access, %s, one by one | | %.1f ns (the bare loop: %.1f)\n", stream->name,
	       singly_ns, median(bare, ROUNDS));
	fflush(stdout);
	hs_mem_free(&stream->keys);
	hs_mem_free(&stream->slots);
	hs_heat_destroy(&heat);
}

/* Fills the tables, for the measurement of the reader. */
static void fill(struct hs_heat *heat, uint64_t seed)
{
	struct hs_storm_keys keys;
	struct hs_prng prng;
	char key[32];

	hs_storm_keys_init(&keys, &zipf, KEYS, 1);
	hs_prng_init(&prng, seed);
	for (uint64_t i = 0; i < 500000; i++) {
		struct hs_heat_access access = {.key = {key, 0}, .bytes = 150};

		access.key.len = (size_t)snprintf(key, sizeof key, "user:%010u",
						  (unsigned)hs_storm_keys_next(&keys, &prng, 0));
		access.slot = hs_slot_of(access.key);
		access.partition = access.slot / (HS_SLOTS / PARTITIONS);
		hs_heat_now(heat, 1000000 + i);
		hs_heat_add(heat, &access, 2000);
	}
}

static void measure_reader(void)
{
	static struct hs_heat_row rows[ROWS];
	struct hs_heat *heats[4];
	struct hs_heat_query query = {.what = HS_HEAT_KEYS};

	for (uint64_t i = 0; i < 4; i++) {
		heats[i] = hs_heat_create(
			&(struct hs_heat_options){.seed = 1234567, .partitions = PARTITIONS});
		fill(heats[i], i + 1);
	}
	for (size_t count = 1; count <= 4; count += 3) {
		double us[READER_ROUNDS];
		size_t found = 0;

		for (int i = 0; i < READER_ROUNDS; i++) {
			uint64_t begin = cpu_ns();

			found = hs_heat_top(heats, count, &query, 1500000, rows, ROWS);
			us[i] = (double)(cpu_ns() - begin) / 1e3;
		}
		printf("reading the top %zu of %zu worker%s | | %.0f us, the reader's\n", found,
		       count, count == 1 ? "" : "s", median(us, READER_ROUNDS));
	}
	for (size_t i = 0; i < 4; i++)
		hs_heat_destroy(&heats[i]);
}

/* All its memory; the tables never grow. */
static size_t bytes_of(const struct hs_heat *heat)
{
	return sizeof *heat + malloc_usable_size(heat->memory);
}

static void measure_memory(void)
{
	struct hs_heat *heat =
		hs_heat_create(&(struct hs_heat_options){.seed = 1, .partitions = PARTITIONS});
	size_t bytes = bytes_of(heat);

	printf("memory per worker, %d partitions | <= 256 KiB | %.1f KiB: %s\n", PARTITIONS,
	       (double)bytes / 1024, bytes <= 256 * HS_KIB ? "met" : "MISSED");
	hs_heat_destroy(&heat);
}

int main(void)
{
	struct stream streams[] = {
		{.name = "Zipf 0.99 of 10 M keys", .shape = zipf, .form = "user:%010u"},
		{.name = "uniform over 10 M keys", .form = "user:%010u"},
		{.name = "Zipf 0.99, no prefix", .shape = zipf, .form = "user%011u"},
		{.name = "Zipf 0.99, 3 prefixes",
		 .shape = zipf,
		 .form = "shop:%2$02u:user:%1$010u"},
	};

	for (size_t i = 0; i < sizeof streams / sizeof *streams; i++)
		measure_stream(&streams[i], i == 0);
	measure_reader();
	measure_memory();
	return 0;
}
