/* heatsink sim check: runs schedules in the simulated world and checks the laws on each. */
#include "cli/sim.h"
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
#include <unistd.h>

enum { SHRINK_TRIES_MAX = 5000, JOBS_MAX = 256 };

static const char usage[] =
	"usage: heatsink sim check [--seed N] [--schedules N] [--jobs N] [--about WHAT]\n"
	"                          [--mistake NAME]\n"
	"\n"
	"Runs schedules: whole heatsinks in simulated time, in front of an engine like the\n"
	"embedded one, or of servers that stall and crash and whose connections get lost or\n"
	"fall silent. The clients pipeline, stop reading and hang up; keys turn hot and cool\n"
	"down again. After each schedule it checks that\n"
	"\n"
	"  - the replies to a client came in the order of its requests\n"
	"  - every key is linearizable: no acknowledged write is lost or was applied twice\n"
	"  - limits held, and nothing is left over at the end\n"
	"  - every request was counted as heat, once\n"
	"  - no client that keeps what it read (CLIENT TRACKING) is left with an old value\n"
	"  - no answer about a key with a rule is older than the rule allows, or older than\n"
	"    what its client, or any client of the same heatsink, has written; other clients\n"
	"    write to these keys past heatsink\n"
	"\n"
	"A schedule follows from its seed alone. When one breaks a law, the check prints its\n"
	"seed, makes the schedule as small as it can, and shows it: each line has a client,\n"
	"the steps (not times) at which it asked and was answered, the request, and the\n"
	"answer.\n"
	"\n"
	"  --seed N        the first schedule's seed (1)\n"
	"  --schedules N   how many, with the seeds that follow (10000); 0: until told to stop\n"
	"  --jobs N        processes (1); 0: one for each processor\n"
	"  --about WHAT    what the schedules are about (anything):\n";

static const char *const abouts[HS_SIM_ABOUTS] = {
	[HS_SIM_ABOUT_ANYTHING] = "a mixture of all of these",
	[HS_SIM_ABOUT_STRICT] = "keys without rules",
	[HS_SIM_ABOUT_CLIENTS] = "clients that keep what they read",
	[HS_SIM_ABOUT_RULES] = "keys with rules",
	[HS_SIM_ABOUT_FLEET] = "several heatsinks in front of one Cluster",
};

static void print_usage(FILE *to)
{
	fputs(usage, to);
	for (int i = 0; i < HS_SIM_ABOUTS; i++)
		fprintf(to, "                    %-9s %s\n",
			hs_sim_about_name((enum hs_sim_about)i), abouts[i]);
	fputs("  --mistake NAME  plants a mistake in the simulated world, to see it found:\n"
	      "                 ",
	      to);
	for (int i = HS_SIM_NO_MISTAKE + 1; i < HS_SIM_MISTAKES; i++)
		fprintf(to, " %s", hs_sim_mistake_name((enum hs_sim_mistake)i));
	fputc('\n', to);
}

static uint64_t *find_number(struct hs_sim_job_options *options, const char *name)
{
	if (strcmp(name, "--seed") == 0)
		return &options->seed;
	if (strcmp(name, "--schedules") == 0)
		return &options->schedules;
	return strcmp(name, "--jobs") == 0 ? &options->jobs : NULL;
}

/* One option and its value; HS_EINVAL: that is said. */
static int parse_one(const char *name, const char *value, struct hs_sim_job_options *options)
{
	uint64_t *number = find_number(options, name);

	if (strcmp(name, "--mistake") == 0) {
		options->mistake = hs_sim_mistake_find(value);
		if (options->mistake < HS_SIM_MISTAKES)
			return 0;
		fprintf(stderr, "heatsink sim: no mistake is called %s\n", value);
	} else if (strcmp(name, "--about") == 0) {
		options->about = hs_sim_about_find(value);
		if (options->about < HS_SIM_ABOUTS)
			return 0;
		fprintf(stderr, "heatsink sim: no schedules are about %s\n", value);
	} else if (hs_num_parse_uint(hs_bytes_of(value), number)) {
		return 0;
	} else {
		fprintf(stderr, "heatsink sim: %s %s: not a number\n", name, value);
	}
	return HS_EINVAL;
}

static bool is_option(struct hs_sim_job_options *options, const char *name)
{
	return find_number(options, name) || strcmp(name, "--mistake") == 0 ||
	       strcmp(name, "--about") == 0;
}

static int parse(int argc, char **argv, struct hs_sim_job_options *options)
{
	*options = (struct hs_sim_job_options){.seed = 1, .schedules = 10000, .jobs = 1};
	for (int i = 2; i < argc; i += 2) {
		if (!is_option(options, argv[i])) {
			fprintf(stderr, "heatsink sim: unknown option %s\n", argv[i]);
			return HS_EINVAL;
		}
		if (i + 1 == argc) {
			fprintf(stderr, "heatsink sim: %s: a value is missing\n", argv[i]);
			return HS_EINVAL;
		}
		if (parse_one(argv[i], argv[i + 1], options) != 0)
			return HS_EINVAL;
	}
	if (options->jobs == 0) {
		long processors = sysconf(_SC_NPROCESSORS_ONLN);

		options->jobs = processors > 0 ? (uint64_t)processors : 1;
	}
	if (options->jobs > JOBS_MAX) {
		fprintf(stderr, "heatsink sim: --jobs %" PRIu64 ": at most %d\n", options->jobs,
			JOBS_MAX);
		return HS_EINVAL;
	}
	return 0;
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void show(const struct hs_sim_job_options *options, uint64_t seed)
{
	struct hs_sim_runner runner;
	struct hs_sim_result result;
	uint32_t tries;

	printf("seed %" PRIu64 " breaks a law\n", seed);
	fflush(stdout); /* an assertion may end it all */
	hs_sim_runner_init(&runner, options->mistake);
	runner.about = options->about;
	tries = hs_sim_shrink(&runner, seed, SHRINK_TRIES_MAX, &result);
	printf("the smallest of its kind that %u tries found:\n", tries);
	fwrite(result.script.data, 1, result.script.len, stdout);
	fwrite(result.text.data, 1, result.text.len, stdout);
	hs_buf_deinit(&result.script);
	hs_buf_deinit(&result.text);
	hs_sim_runner_deinit(&runner);
}

static int check(const struct hs_sim_job_options *options)
{
	double start_s = now_s(), took_s;
	struct hs_sim_job_sums sums;

	if (hs_sim_jobs_run(options, &sums) != 0) {
		fprintf(stderr, "heatsink sim: no process can be started\n");
		return 1;
	}
	took_s = now_s() - start_s;
	if (sums.failed)
		show(options, sums.failed_seed);
	printf("%s: %" PRIu64 " schedules, seeds %" PRIu64 " to %" PRIu64 ", %" PRIu64
	       " requests, %" PRIu64 " folded, %" PRIu64 " kept, %" PRIu64
	       " undecided, %.1f s, %.0f schedules/s\n",
	       sums.failed ? "a law was broken" : "every law held", sums.schedules, options->seed,
	       options->seed + sums.schedules - (sums.schedules > 0), sums.requests, sums.folded,
	       sums.kept, sums.undecided, took_s,
	       took_s > 0 ? (double)sums.schedules / took_s : 0.0);
	return sums.failed || sums.undecided > 0 ? 1 : 0;
}

int hs_cli_sim(int argc, char **argv)
{
	struct hs_sim_job_options options;

	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
			print_usage(stdout);
			return 0;
		}
	}
	if (argc < 2 || strcmp(argv[1], "check") != 0) {
		print_usage(stderr);
		return 2;
	}
	return parse(argc, argv, &options) == 0 ? check(&options) : 2;
}
