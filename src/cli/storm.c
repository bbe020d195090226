/* heatsink storm: a load generator for any Redis endpoint. The run is a row of phases; all workers finish one before
 * any begins the next. */
#include "cli/storm_history.h"

#include "base/mem.h"
#include "cli/cli.h"
#include "cli/storm_check.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The exit status; --help lists the meanings. If several apply, the lowest is returned. */
enum { EXIT_FAILED = 1, EXIT_UNDECIDED = 2, EXIT_ERRORS = 3 };

struct storm {
	struct hs_storm_options options;
	atomic_bool stop;
	struct hs_storm_worker *workers;
	unsigned worker_count;
	struct hs_storm_verify *verify;
	struct hs_storm_history *history; /* verify, --command all */
	uv_signal_t signals[2];
	/* The progress line: when it was drawn last, and its number of replies. */
	uint64_t shown_ns;
	uint64_t shown_answers;
};

static double cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
	       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The first signal ends the sending. It also restores the default action, so that a second one kills the process. */
static void on_signal(uv_signal_t *handle, int number)
{
	struct storm *storm = handle->data;

	(void)number;
	atomic_store_explicit(&storm->stop, true, memory_order_relaxed);
	for (int i = 0; i < 2; i++)
		uv_signal_stop(&storm->signals[i]);
}

static void on_tick(void *context, struct hs_storm_worker *worker)
{
	struct storm *storm = context;
	uint64_t now_ns = uv_hrtime(), answers = 0;

	if (worker->phase != HS_STORM_PHASE_RUN || now_ns < storm->shown_ns + 500000000)
		return;
	for (unsigned i = 0; i < storm->worker_count; i++)
		answers += atomic_load_explicit(&storm->workers[i].progress, memory_order_relaxed);
	if (storm->shown_ns)
		hs_storm_report_progress(stderr, (double)(now_ns - worker->start_ns) / 1e9, answers,
					 (double)(answers - storm->shown_answers) * 1e9 /
						 (double)(now_ns - storm->shown_ns));
	storm->shown_ns = now_ns;
	storm->shown_answers = answers;
}

static void thread_main(void *argument)
{
	hs_storm_worker_run(argument);
}

static void run_phase(struct storm *storm, enum hs_storm_phase phase)
{
	for (unsigned i = 0; i < storm->worker_count; i++)
		hs_storm_worker_prepare(&storm->workers[i], phase);
	for (unsigned i = 1; i < storm->worker_count; i++) {
		struct hs_storm_worker *worker = &storm->workers[i];

		hs_check(uv_thread_create(&worker->thread, thread_main, worker) == 0);
	}
	hs_storm_worker_run(&storm->workers[0]);
	for (unsigned i = 1; i < storm->worker_count; i++)
		uv_thread_join(&storm->workers[i].thread);
}

static bool any_abandoned(const struct storm *storm)
{
	for (unsigned i = 0; i < storm->worker_count; i++) {
		if (storm->workers[i].abandoned)
			return true;
	}
	return false;
}

static bool any_cut_short(const struct storm *storm)
{
	for (unsigned i = 0; i < storm->worker_count; i++) {
		if (storm->workers[i].cut_short)
			return true;
	}
	return false;
}

static void collect(const struct storm *storm, struct hs_storm_counts *run,
		    struct hs_storm_counts *side)
{
	for (unsigned i = 0; i < storm->worker_count; i++) {
		hs_storm_counts_merge(run, &storm->workers[i].counts);
		hs_storm_counts_merge(side, &storm->workers[i].side_counts);
	}
}

/* Cluster: adds the counts of all workers to the nodes of the first worker. */
static void collect_nodes(const struct storm *storm)
{
	struct hs_storm_worker *first = &storm->workers[0];

	for (unsigned i = 1; i < storm->worker_count; i++) {
		for (uint32_t j = 0; j < storm->workers[i].nodes_count; j++) {
			const struct hs_storm_node *from = &storm->workers[i].nodes[j];
			uint32_t number = hs_storm_node(first, &from->at);
			struct hs_storm_node *to = &first->nodes[number];

			if (number == HS_STORM_NODES_MAX)
				continue;
#define ADD(field, title) to->field += from->field;
			HS_STORM_NODE_COUNTS(ADD)
		}
	}
}

/* Prints the reason why the run could not begin, in one line. */
static void explain_failure(const struct storm *storm, const char *what)
{
	struct hs_storm_counts *counts = hs_mem_zalloc(2 * sizeof *counts);

	collect(storm, &counts[0], &counts[1]);
	hs_storm_counts_merge(&counts[0], &counts[1]);
	fprintf(stderr, "heatsink storm: %s: %s%s%s", storm->options.target.text, what,
		counts->last_error[0] ? ": " : "", counts->last_error);
	if (counts->connect_failures)
		fprintf(stderr, " (%" PRIu64 " connects failed)", counts->connect_failures);
	fputc('\n', stderr);
	hs_mem_free(&counts);
}

static int report(const struct storm *storm, double cpu)
{
	struct hs_storm_counts *counts = hs_mem_zalloc(2 * sizeof *counts);
	struct hs_storm_result result = {.options = &storm->options, .counts = counts};
	int code = 0;

	collect(storm, &counts[0], &counts[1]);
	result.seconds = (double)(counts->last_ns - counts->first_ns) / 1e9;
	result.cpu_seconds = cpu;
	if (storm->options.cluster) {
		collect_nodes(storm);
		result.nodes = storm->workers[0].nodes;
		result.nodes_count = storm->workers[0].nodes_count;
	}
	if (counts[1].error_total) /* LOAD, BASE, FINAL */
		fprintf(stderr,
			"heatsink storm: %" PRIu64 " errors before or after the run, such as: %s\n",
			counts[1].error_total, counts[1].errors[0].example);
	if (storm->verify)
		result.findings = hs_storm_verify_findings(storm->verify);
	else if (storm->history)
		result.findings = hs_storm_history_findings(storm->history);
	if (storm->options.json)
		hs_storm_report_json(&result, stdout);
	else
		hs_storm_report_table(&result, stdout);
	if (counts->answered == 0 || any_cut_short(storm) ||
	    (result.findings && result.findings->failed))
		code = EXIT_FAILED;
	else if (result.findings && result.findings->undecided)
		code = EXIT_UNDECIDED;
	else if (counts[0].error_total || counts[1].error_total)
		code = EXIT_ERRORS;
	hs_mem_free(&counts);
	return code;
}

/* Runs a phase before RUN. False if it was abandoned: the reason is printed after `failed`, and RUN cannot begin. */
static bool prepare(struct storm *storm, enum hs_storm_phase phase, const char *failed)
{
	run_phase(storm, phase);
	if (!any_abandoned(storm))
		return true;
	explain_failure(storm, failed);
	return false;
}

static int run(struct storm *storm)
{
	double cpu;

	if (!prepare(storm, HS_STORM_PHASE_CONNECT, "could not connect"))
		return 1;
	if (storm->options.load &&
	    !prepare(storm, HS_STORM_PHASE_LOAD, "the keys could not be loaded"))
		return 1;
	if (storm->verify && !prepare(storm, HS_STORM_PHASE_BASE, "the counters could not be read"))
		return 1;
	cpu = cpu_seconds();
	run_phase(storm, HS_STORM_PHASE_RUN);
	cpu = cpu_seconds() - cpu;
	if (storm->shown_ns)
		hs_storm_report_progress_end(stderr);
	if (storm->options.verify && !storm->options.no_final)
		run_phase(storm, HS_STORM_PHASE_FINAL);
	if (storm->history)
		hs_storm_history_close(storm->history);
	return report(storm, cpu);
}

static void start(struct storm *storm)
{
	static const int numbers[2] = {SIGINT, SIGTERM};

	for (int i = 0; i < 2; i++) {
		uv_signal_init(&storm->workers[0].loop, &storm->signals[i]);
		storm->signals[i].data = storm;
		uv_signal_start(&storm->signals[i], on_signal, numbers[i]);
	}
	if (isatty(STDERR_FILENO)) {
		storm->workers[0].on_tick = on_tick;
		storm->workers[0].on_tick_context = storm;
	}
}

static void create_verifier(struct storm *storm)
{
	uint64_t run_tag = uv_hrtime() ^ (uint64_t)time(NULL) << 20;

	if (!storm->options.verify)
		return;
	if (storm->options.command == HS_STORM_COMMAND_ALL)
		storm->history = hs_storm_history_create(&storm->options, run_tag);
	else
		storm->verify = hs_storm_verify_create(&storm->options, run_tag);
}

static void start_worker(struct storm *storm, unsigned index)
{
	struct hs_storm_worker *worker = &storm->workers[index];

	hs_storm_worker_init(worker, &storm->options, index, &storm->stop);
	worker->verify = storm->verify;
	worker->history = storm->history;
}

int hs_cli_storm(int argc, char **argv)
{
	struct storm storm = {0};
	int code = hs_storm_options_read(&storm.options, argc, argv, stderr);

	if (code != 0)
		return code < 0 ? 1 : 0;
	if (*storm.options.check_file)
		return hs_storm_check_file(storm.options.check_file, stdout, stderr);
	if (hs_target_open(&storm.options.target, "heatsink storm", stderr) < 0)
		return 1;
	signal(SIGPIPE, SIG_IGN);
	create_verifier(&storm);
	storm.worker_count = (unsigned)storm.options.threads;
	storm.workers = hs_mem_alloc(storm.worker_count * sizeof *storm.workers);
	for (unsigned i = 0; i < storm.worker_count; i++)
		start_worker(&storm, i);
	start(&storm);
	code = run(&storm);
	for (int i = 0; i < 2; i++)
		uv_close((uv_handle_t *)&storm.signals[i], NULL);
	for (unsigned i = 0; i < storm.worker_count; i++)
		hs_storm_worker_deinit(&storm.workers[i]);
	hs_mem_free(&storm.workers);
	hs_storm_verify_destroy(&storm.verify);
	hs_storm_history_destroy(&storm.history);
	hs_target_close(&storm.options.target);
	return code;
}
