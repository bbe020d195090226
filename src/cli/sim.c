/* heatsink sim check: runs schedules in the simulated world and checks the laws on each. */
#include "cli/sim.h"
#include "base/buf.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/flags.h"
#include "serve/clock.h"
#include "sim/schedule.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { JOBS_MAX = 256 };

static const char *const focuses[HS_SIM_FOCUSES] = {
	[HS_SIM_FOCUS_ANYTHING] = "a mixture of all of these",
	[HS_SIM_FOCUS_STRICT] = "keys without rules",
	[HS_SIM_FOCUS_TRACKING] = "clients that keep what they read",
	[HS_SIM_FOCUS_RULES] = "keys with rules",
	[HS_SIM_FOCUS_FLEET] = "several heatsinks in front of one Cluster",
};

static bool read_bug(const struct hs_flag *flag, void *to, const char *word)
{
	struct hs_sim_job_options *options = to;

	(void)flag;
	options->bug = hs_sim_bug_find(word);
	return options->bug < HS_SIM_BUGS;
}

#define FIELD(name) HS_FLAG_AT(struct hs_sim_job_options, name)

static const struct hs_flag rows[] = {
	{"seed", "N", "1", "the first schedule's seed", hs_flag_read_uint, FIELD(seed),
	 .max = UINT64_MAX},
	{"schedules", "N", "10000", "how many, with the seeds that follow; 0: until told to stop",
	 hs_flag_read_uint, FIELD(schedules), .max = UINT64_MAX},
	{"jobs", "N", "1", "processes, at most 256; 0: one for each processor", hs_flag_read_uint,
	 FIELD(jobs), .max = JOBS_MAX},
	{"focus", "WHAT", "anything", "what the schedules are focus; --help lists the words",
	 hs_flag_read_word, FIELD(focus), .words = hs_sim_focuses},
	{"bug", "NAME", "none",
	 "plants a bug in the simulated world, to see it found; --help lists the names", read_bug,
	 FIELD(bug)},
};

static const char before[] =
	"usage: heatsink sim check [flags]\n"
	"\n"
	"Runs schedules: whole heatsinks in simulated time, in front of an engine like the\n"
	"embedded one, of one server, or of a Cluster. Slots move and requests are redirected,\n"
	"masters fail over, servers stall and crash, connections get lost or fall silent;\n"
	"one to three heatsinks, which die and start again. The clients pipeline, stop reading\n"
	"and hang up, wait and listen; keys turn hot and cool down again. After each schedule\n"
	"it checks that\n"
	"\n"
	"  - the replies to a client came in the order of its requests\n"
	"  - every key is linearizable: no acknowledged write is lost or was applied twice\n"
	"  - servers ran nothing twice that is not idempotent, and what a client asked (of a\n"
	"    Cluster: of a key) in its order\n"
	"  - limits held, and nothing is left over at the end, neither here nor on the servers\n"
	"  - a slow or dead server delayed no request for keys of another\n"
	"  - every request was counted as heat, once, unless a heatsink has died\n"
	"  - no client that keeps what it read (CLIENT TRACKING) is left with an old value\n"
	"  - no answer focus a key with a rule is older than the rule allows, or older than\n"
	"    what its client, or any client of the same heatsink, has written; other clients\n"
	"    write to these keys past heatsink\n"
	"  - who waits (BLPOP) is answered, and what it gets nobody else does; who listens\n"
	"    (SUBSCRIBE) hears each message once, in order\n"
	"\n"
	"A schedule follows from its seed alone. When one breaks a law, or an assertion fails,\n"
	"the check prints its seed, makes the schedule as small as it can, and shows it: first\n"
	"what happened to servers and heatsinks, what clients sent and heard, what servers ran\n"
	"and refused; then what the clients asked, a line each: a client, the steps (not times)\n"
	"at which it asked and was answered, the request, and the answer. docs/SIMULATOR.md has\n"
	"more.\n"
	"The last line of a run counts what the schedules reached.\n"
	"\n";

/* The words that --about and --mistake take. */
static void list_words(struct hs_buf *text)
{
	hs_buf_printf(text, "\nWHAT is one of\n\n");
	for (int i = 0; i < HS_SIM_FOCUSES; i++)
		hs_buf_printf(text, "  %-9s %s\n", hs_sim_focuses[i], focuses[i]);
	hs_buf_printf(text, "\nNAME is one of\n\n ");
	for (int i = HS_SIM_NO_BUG + 1; i < HS_SIM_BUGS; i++)
		hs_buf_printf(text, " %s", hs_sim_bug_name((enum hs_sim_bug)i));
	hs_buf_append(text, "\n", sizeof "\n");
}

/* Reads the words behind "sim". Returns as hs_flags_read. */
static int read_words(struct hs_sim_job_options *options, int argc, char **argv)
{
	struct hs_buf words = {0};
	bool check = argc > 1 && strcmp(argv[1], "check") == 0;
	int rc;

	list_words(&words);

	const struct hs_flags flags = {
		.program = "heatsink sim",
		.before = before,
		.after = words.data,
		.rows = rows,
		.count = sizeof rows / sizeof *rows,
	};

	rc = hs_flags_read(&flags, options, argc - check, argv + check, stderr);
	if (rc == 0 && !check) {
		hs_flags_help(&flags, stderr);
		rc = HS_EINVAL;
	}
	hs_buf_deinit(&words);
	return rc;
}

static uint64_t processors(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count < 1 ? 1 : count < JOBS_MAX ? (uint64_t)count : JOBS_MAX;
}

static void print_coverage(const struct hs_sim_coverage_counts *coverage)
{
	printf("coverage:");
	for (int i = 0; i < HS_SIM_COVERAGE_ALL; i++)
		printf("%s %" PRIu64 " %s", i > 0 ? "," : "", coverage->of[i],
		       hs_sim_coverage_name((enum hs_sim_coverage)i));
	printf("\n");
}

static int check(const struct hs_sim_job_options *options)
{
	uint64_t start_us = hs_clock_mono_us();
	double took_s;
	struct hs_sim_job_sums sums;

	if (hs_sim_jobs_run(options, &sums) != 0) {
		fprintf(stderr, "heatsink sim: no process can be started\n");
		return 1;
	}
	took_s = (double)(hs_clock_mono_us() - start_us) / 1e6;
	if (sums.failed)
		hs_sim_show(options, sums.failed_seed);
	printf("%s: %" PRIu64 " schedules, seeds %" PRIu64 " to %" PRIu64 ", %" PRIu64
	       " requests, %" PRIu64 " folded, %" PRIu64 " cached, %" PRIu64
	       " undecided, %.1f s, %.0f schedules/s\n",
	       sums.failed ? "a law was broken" : "every law held", sums.schedules, options->seed,
	       options->seed + sums.schedules - (sums.schedules > 0), sums.requests, sums.folded,
	       sums.cached, sums.undecided, took_s,
	       took_s > 0 ? (double)sums.schedules / took_s : 0.0);
	print_coverage(&sums.coverage);
	return sums.failed || sums.undecided > 0 ? 1 : 0;
}

int hs_cli_sim(int argc, char **argv)
{
	struct hs_sim_job_options options = {0};
	int rc = read_words(&options, argc, argv);

	if (rc != 0)
		return rc < 0 ? 2 : 0;
	if (options.jobs == 0)
		options.jobs = processors();
	return check(&options);
}
