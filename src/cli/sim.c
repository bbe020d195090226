/* heatsink sim check: runs schedules in the simulated world and checks the laws on each. */
#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"
#include "base/num.h"
#include "cli/cli.h"
#include "sim/run.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct options {
	uint64_t seed;
	uint64_t schedules;
	enum hs_sim_mistake mistake;
};

static const char usage[] =
	"usage: heatsink sim check [--seed N] [--schedules N] [--mistake NAME]\n"
	"\n"
	"Runs whole servers in simulated time, with clients that pipeline, go deaf and hang up,\n"
	"and checks what the clients saw: the order of replies, linearizability of every key, no\n"
	"acknowledged write lost or doubled; that every request was counted as heat, once; and\n"
	"that no client which keeps what it read (CLIENT TRACKING) is left with an old value. A\n"
	"schedule follows from its seed alone.\n"
	"\n"
	"  --seed N        the first schedule's seed (1)\n"
	"  --schedules N   how many, with the seeds that follow (10000)\n"
	"  --mistake NAME  plants a mistake in the simulated world, to see it found:\n"
	"                 ";

static void print_usage(FILE *to)
{
	fputs(usage, to);
	for (int i = HS_SIM_NO_MISTAKE + 1; i < HS_SIM_MISTAKES; i++)
		fprintf(to, " %s", hs_sim_mistake_name((enum hs_sim_mistake)i));
	fputc('\n', to);
}

static int parse(int argc, char **argv, struct options *options)
{
	*options = (struct options){.seed = 1, .schedules = 10000};
	for (int i = 2; i < argc; i += 2) {
		uint64_t *number = strcmp(argv[i], "--seed") == 0	 ? &options->seed
				   : strcmp(argv[i], "--schedules") == 0 ? &options->schedules
									 : NULL;

		if (i + 1 == argc) {
			fprintf(stderr, "heatsink sim: %s: a value is missing\n", argv[i]);
			return HS_EINVAL;
		}
		if (strcmp(argv[i], "--mistake") == 0) {
			options->mistake = hs_sim_mistake_find(argv[i + 1]);
			if (options->mistake == HS_SIM_MISTAKES) {
				fprintf(stderr, "heatsink sim: no mistake is called %s\n",
					argv[i + 1]);
				return HS_EINVAL;
			}
		} else if (!number) {
			fprintf(stderr, "heatsink sim: unknown option %s\n", argv[i]);
			return HS_EINVAL;
		} else if (!hs_num_parse_uint(hs_bytes_of(argv[i + 1]), number)) {
			fprintf(stderr, "heatsink sim: %s %s: not a number\n", argv[i],
				argv[i + 1]);
			return HS_EINVAL;
		}
	}
	return 0;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static int check(const struct options *options)
{
	double start_s = now_s();
	uint64_t requests = 0, undecided = 0, done = 0;
	int err = 0;

	while (done < options->schedules && err != HS_EINVAL) {
		struct hs_sim_result result;
		uint64_t seed = options->seed + done++;

		err = hs_sim_check(seed, options->mistake, &result);
		requests += result.requests;
		if (err == HS_ELIMIT) {
			undecided++;
			fprintf(stderr, "seed %" PRIu64 ": not decided in reasonable time\n", seed);
		} else if (err) {
			fwrite(result.text.data, 1, result.text.len, stdout);
		}
		hs_buf_deinit(&result.text);
	}

	double took_s = now_s() - start_s;

	printf("%s: %" PRIu64 " schedules from seed %" PRIu64 ", %" PRIu64 " requests, %" PRIu64
	       " undecided, %.1f s, %.0f schedules/s\n",
	       err == HS_EINVAL ? "a law was broken" : "every law held", done, options->seed,
	       requests, undecided, took_s, took_s > 0 ? (double)done / took_s : 0.0);
	return err == HS_EINVAL || undecided > 0 ? 1 : 0;
}

int hs_cli_sim(int argc, char **argv)
{
	struct options options;

	if (argc >= 2 && strcmp(argv[1], "--help") == 0) {
		print_usage(stdout);
		return 0;
	}
	if (argc < 2 || strcmp(argv[1], "check") != 0) {
		print_usage(stderr);
		return 2;
	}
	return parse(argc, argv, &options) == 0 ? check(&options) : 2;
}
