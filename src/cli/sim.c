/* `heatsink sim check`: the flags, the summary and the exit status. sim_jobs.c runs the schedules in several
 * processes, sim_show.c shrinks and prints one that breaks a law. */
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
	[HS_SIM_FOCUS_TRACKING] = "clients that cache what they read (CLIENT TRACKING)",
	[HS_SIM_FOCUS_RULES] = "keys with rules, also written directly at the servers",
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
	{"schedules", "N", "10000",
	 "how many, each with the next seed; 0: run until SIGINT or SIGTERM", hs_flag_read_uint,
	 FIELD(schedules), .max = UINT64_MAX},
	{"jobs", "N", "1", "processes, at most 256; 0: one for each processor", hs_flag_read_uint,
	 FIELD(jobs), .max = JOBS_MAX},
	{"focus", "WHAT", "anything", "what the schedules exercise; --help lists the words",
	 hs_flag_read_word, FIELD(focus), .words = hs_sim_focuses},
	{"bug", "NAME", "none", "plants a bug to test the checkers; --help lists the names",
	 read_bug, FIELD(bug)},
};

static const char before[] =
	"usage: heatsink sim check [flags]\n"
	"\n"
	"Runs schedules and checks heatsink's laws on each. A schedule is one run of whole\n"
	"heatsinks in simulated time: in front of an engine like the embedded one, of one\n"
	"simulated server, or of a simulated Cluster. Slots move and requests are redirected,\n"
	"masters fail over, servers stall and crash, connections are lost or fall silent, and\n"
	"heatsinks die and start again. Clients pipeline, stop reading, hang up, block and\n"
	"subscribe; keys turn hot and cool down. After each schedule it checks that\n"
	"\n"
	"  - the replies to a client came in the order of its requests\n"
	"  - every key is linearizable: no acknowledged write is lost or was applied twice\n"
	"  - servers ran no command twice unless it is idempotent, and ran each client's\n"
	"    requests in the client's order (in a Cluster: in its order on each key)\n"
	"  - no limit was exceeded, and heatsink leaves nothing behind, in its own process or\n"
	"    on the servers\n"
	"  - a slow or dead server delayed no request for keys of another server\n"
	"  - every request was counted as heat exactly once (not checked when a heatsink died)\n"
	"  - no client that caches what it reads (CLIENT TRACKING) is left with an old value\n"
	"  - no answer about a key with a rule is older than the rule allows, or older than a\n"
	"    write of its own client or of another client of the same heatsink; other clients\n"
	"    write to these keys directly at the servers\n"
	"  - every blocked client (BLPOP) is answered, and no two clients get the same element;\n"
	"    every subscriber gets each message once, in order\n"
	"\n"
	"A schedule follows from its seed alone. When a schedule breaks a law, or an assertion\n"
	"fails, the check prints the seed, shrinks the schedule and shows the smallest one it\n"
	"found: the script (faults, requests, replies, what the servers ran and refused), the\n"
	"broken law, and the history of the clients' requests. Run it again with\n"
	"\"--seed N --schedules 1\" and the same --focus and --bug. docs/SIMULATOR.md explains\n"
	"how to read it.\n"
	"\n"
	"The last line of a run counts the faults and limits that the schedules covered. The\n"
	"exit status is 0 when every law held, 1 when a law was broken or a schedule could not\n"
	"be decided, and 2 when the flags are wrong.\n"
	"\n";

/* The words that --focus and --bug take. */
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

	static const struct hs_flag_renamed renamed[] = {
		{"about", "focus"},
		{"mistake", "bug"},
	};
	const struct hs_flags flags = {
		.program = "heatsink sim",
		.before = before,
		.after = words.data,
		.rows = rows,
		.count = sizeof rows / sizeof *rows,
		.renamed = renamed,
		.renamed_count = sizeof renamed / sizeof *renamed,
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
		fprintf(stderr, "heatsink sim: cannot start a process (fork failed)\n");
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
