/* Shows a schedule that breaks a law. Such a schedule may end its process, by a failed assertion or a signal. So each
 * try of the shrinking runs in a process of its own, and so does the smallest plan found, which prints its script
 * line by line while it runs:
 *
 *     try ─ fork ─┬─ run the plan ─ write the broken law into shared memory ─ exit
 *                 └─ wait ─ nothing was written: the schedule has ended the process
 *
 * A schedule follows from its plan, so it ends at the same place in every process. */
#include "base/buf.h"
#include "base/err.h"
#include "cli/sim.h"
#include "sim/schedule.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHRINK_TRIES_MAX = 5000 };

/* Shared memory between try_apart and its child: the result of the plan. */
struct outcome {
	bool ended; /* the child reached the end of the plan */
	int err;
	int law;
};

/* Thousands of tries may die: they print nothing and leave no core file. */
static void be_quiet(void)
{
	const struct rlimit none = {0};
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	setrlimit(RLIMIT_CORE, &none);
	if (fd >= 0)
		dup2(fd, STDERR_FILENO);
}

static void run_apart(const struct hs_sim_runner *runner, const struct hs_sim_plan *plan,
		      struct outcome *outcome)
{
	struct hs_sim_result result;

	outcome->err = hs_sim_check_plan(runner, plan, &result);
	outcome->law = result.verdict.law;
	outcome->ended = true;
}

/* An hs_sim_try. The result's texts stay empty. */
static int try_apart(const struct hs_sim_runner *runner, const struct hs_sim_plan *plan,
		     struct hs_sim_result *result)
{
	struct outcome *outcome = mmap(NULL, sizeof *outcome, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err = HS_ELIMIT;
	pid_t child;

	*result = (struct hs_sim_result){0};
	if (outcome == MAP_FAILED)
		return HS_ELIMIT;
	child = fork();
	if (child == 0) {
		be_quiet();
		run_apart(runner, plan, outcome);
		_exit(0);
	}
	if (child > 0 && waitpid(child, NULL, 0) == child) {
		err = outcome->ended ? outcome->err : HS_EINVAL;
		result->verdict.law = outcome->ended ? outcome->law : HS_SIM_LAW_LIVES;
	}
	munmap(outcome, sizeof *outcome);
	return err;
}

static void print(struct hs_bytes text)
{
	fwrite(text.data, 1, text.len, stdout);
	fflush(stdout); /* flush now: an assertion may end the process */
}

/* stderr goes to stdout, so that an assertion's message stands behind the script that led to it. */
static void tell(const struct hs_sim_runner *runner, const struct hs_sim_plan *plan)
{
	struct hs_sim_plan told = *plan;
	struct hs_sim_result result;

	dup2(STDOUT_FILENO, STDERR_FILENO);
	told.world.script = true;
	told.world.print_line = print;
	if (hs_sim_check_plan(runner, &told, &result) != 0)
		print(hs_buf_bytes(&result.text));
	else
		print(HS_LIT("run by itself, it breaks no law\n"));
}

/* The child was ended before it could print the plan and the law: the parent prints them. */
static void print_end(const struct hs_sim_plan *plan, int status)
{
	struct hs_buf text = {0};

	hs_sim_plan_describe(plan, &text);
	if (WIFSIGNALED(status))
		hs_buf_printf(&text, "lives: signal %d (%s) ended the process\n", WTERMSIG(status),
			      strsignal(WTERMSIG(status)));
	else
		hs_buf_printf(&text, "lives: the process ended itself with status %d\n",
			      WEXITSTATUS(status));
	print(hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

void hs_sim_show(const struct hs_sim_job_options *options, uint64_t seed)
{
	struct hs_sim_runner runner;
	struct hs_sim_plan plan;
	uint32_t tries;
	int status;
	pid_t child;

	printf("seed %" PRIu64 " breaks a law\n", seed);
	fflush(stdout); /* else the child would print the buffer once more */
	hs_sim_runner_init(&runner, options->bug);
	runner.focus = options->focus;
	tries = hs_sim_shrink(&runner, seed, SHRINK_TRIES_MAX, try_apart, &plan);
	printf("the smallest of its kind that %u tries found:\n", tries);
	fflush(stdout);
	child = fork();
	if (child == 0) {
		tell(&runner, &plan);
		_exit(0);
	}
	if (child > 0 && waitpid(child, &status, 0) == child && status != 0)
		print_end(&plan, status);
	hs_sim_runner_deinit(&runner);
}
