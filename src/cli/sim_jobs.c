/* One process for each job, forked from `heatsink sim check`. They share one piece of memory: the next seed, the
 * sums, and whether to stop. A schedule needs nothing else from the others. A process that an assertion or a signal
 * ends counts as a broken law ("lives") of the seed that it was running. */
#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "cli/sim.h"
#include "sim/schedule.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BLOCK = 32,	       /* schedules taken at a time */
	KEPT_BYTES = 64 << 20, /* free memory that each process keeps for its next schedule */
};

struct board {
	_Atomic bool stop;
	_Atomic uint64_t given; /* schedules given out so far */
	_Atomic uint64_t schedules, requests, folded, cached, undecided;
	_Atomic uint64_t coverage[HS_SIM_COVERAGE_ALL];
	_Atomic uint64_t failed;    /* the lowest seed that broke a law, plus 1; 0: none */
	_Atomic uint64_t current[]; /* of each process: the seed that it is running */
};

static void note_failed(struct board *board, uint64_t seed)
{
	uint64_t before = atomic_load(&board->failed);

	while ((before == 0 || seed + 1 < before) &&
	       !atomic_compare_exchange_weak(&board->failed, &before, seed + 1)) {
	}
}

static void run_one(struct board *board, const struct hs_sim_runner *runner, uint64_t seed)
{
	struct hs_sim_result result;
	int err = hs_sim_check(runner, seed, &result);

	atomic_fetch_add(&board->schedules, 1);
	atomic_fetch_add(&board->requests, result.requests);
	atomic_fetch_add(&board->folded, result.folded);
	atomic_fetch_add(&board->cached, result.cached);
	for (int i = 0; i < HS_SIM_COVERAGE_ALL; i++)
		atomic_fetch_add(&board->coverage[i], result.coverage.of[i]);
	if (err == HS_EINVAL)
		note_failed(board, seed);
	if (err == HS_ELIMIT) {
		atomic_fetch_add(&board->undecided, 1);
		fprintf(stderr,
			"seed %" PRIu64
			": undecided: the search for an order of its operations took too long\n",
			seed);
	}
	hs_buf_deinit(&result.text);
}

/* The loop of one process. It finishes a block that it has begun, so that every seed below `given` is run, unless
 * a process dies in its block. */
static void work(struct board *board, const struct hs_sim_job_options *options, uint64_t job)
{
	struct hs_sim_runner runner;

	/* malloc keeps what a schedule frees for the next one: returning it to the system and getting it again cost
	 * up to half of a schedule's time. */
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	mallopt(M_TOP_PAD, KEPT_BYTES);
	hs_sim_runner_init(&runner, options->bug);
	runner.focus = options->focus;
	while (!atomic_load(&board->stop) && atomic_load(&board->failed) == 0) {
		uint64_t first = atomic_fetch_add(&board->given, BLOCK);
		uint64_t last = first + BLOCK;

		if (options->schedules > 0 && last > options->schedules)
			last = options->schedules;
		for (uint64_t i = first; i < last; i++) {
			atomic_store(&board->current[job], options->seed + i);
			run_one(board, &runner, options->seed + i);
		}
		if (first + BLOCK > last)
			break;
	}
	hs_sim_runner_deinit(&runner);
}

/* An assertion that fails, or a signal, ends the process: the seed that it was running has broken a law. */
static void look_at(struct board *board, const pid_t *children, uint64_t jobs, pid_t child,
		    int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	for (uint64_t job = 0; job < jobs; job++) {
		uint64_t seed = atomic_load(&board->current[job]);

		if (children[job] != child)
			continue;
		fprintf(stderr, "seed %" PRIu64 ": its process ended, status %d\n", seed, status);
		note_failed(board, seed);
	}
}

/* Collects all children that have ended; returns how many. */
static uint64_t reap(struct board *board, const pid_t *children, uint64_t jobs)
{
	uint64_t ended = 0;
	int status;
	pid_t child;

	while ((child = waitpid(-1, &status, WNOHANG)) > 0) {
		look_at(board, children, jobs, child, status);
		ended++;
	}
	return ended;
}

/* Signals are blocked here and in the children, and read with sigwaitinfo instead of a handler. */
static int run(struct board *board, const struct hs_sim_job_options *options, pid_t *children,
	       const sigset_t *signals)
{
	uint64_t started = 0, ended = 0;

	while (started < options->jobs) {
		pid_t child = fork();

		if (child == 0) {
			work(board, options, started);
			fflush(NULL);
			_exit(0);
		}
		if (child < 0)
			break;
		children[started++] = child;
	}
	while (ended < started) {
		if (sigwaitinfo(signals, NULL) != SIGCHLD)
			atomic_store(&board->stop, true);
		ended += reap(board, children, started);
	}
	return started > 0 ? 0 : HS_ELIMIT;
}

int hs_sim_jobs_run(const struct hs_sim_job_options *options, struct hs_sim_job_sums *sums)
{
	size_t bytes = sizeof(struct board) + options->jobs * sizeof(uint64_t);
	struct board *board =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t *children = hs_mem_zalloc(options->jobs * sizeof *children);
	sigset_t signals, before;
	int err = HS_ELIMIT;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGCHLD);
	if (board != MAP_FAILED) {
		fflush(NULL);
		sigprocmask(SIG_BLOCK, &signals, &before);
		err = run(board, options, children, &signals);
		sigprocmask(SIG_SETMASK, &before, NULL);
		*sums = (struct hs_sim_job_sums){
			.schedules = board->schedules,
			.requests = board->requests,
			.folded = board->folded,
			.cached = board->cached,
			.undecided = board->undecided,
			.failed = board->failed > 0,
			.failed_seed = board->failed > 0 ? board->failed - 1 : 0,
		};
		for (int i = 0; i < HS_SIM_COVERAGE_ALL; i++)
			sums->coverage.of[i] = board->coverage[i];
		munmap(board, bytes);
	}
	hs_mem_free(&children);
	return err;
}
