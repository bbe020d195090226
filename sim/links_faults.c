/* What goes wrong with connections and servers.
 *
 * Of what is under way on a connection when it ends
 *
 *     ran │ arrived, will run or not │ sent, will run or not │ not wholly sent
 *
 * some more may run: at once, or later, when nobody expects it any more (a ghost). Nobody on our side
 * can tell these apart, but for the last: what was not handed over whole cannot have run. */
#include "sim/links_internal.h"

#include "base/mem.h"

enum { GIVE_UP_ONE_IN = 4, TRIES_MAX = 2 };

#define UNKNOWN                                                                                    \
	"UNKNOWN the connection to the simulated server was lost before it answered: the command " \
	"may or may not have run"
#define NOT_SENT "CLUSTERDOWN the simulated server does not answer; not sent"

static bool happens(struct hs_sim_links *links, uint32_t one_in)
{
	return one_in > 0 && !links->calm && hs_prng_below(&links->prng, one_in) == 0;
}

/* --- ghosts --- */

static void run_ghost(void *context, void *target, uint64_t number)
{
	struct hs_sim_links *links = context;
	struct hs_sim_ghost *ghost = target;

	(void)number;
	/* A server that has crashed since does not know of it. */
	if (links->servers[ghost->op.partition].lives == ghost->life)
		hs_sim_links_run(links, NULL, &ghost->op);
}

/* The operation is its owner's, who will not keep it. */
static struct hs_sim_ghost *copy(struct hs_sim_links *links, const struct hs_op *op)
{
	struct hs_sim_ghost *ghost = hs_mem_zalloc(sizeof *ghost);
	size_t bytes = op->argc * sizeof *op->argv;
	char *to;

	for (size_t i = 0; i < op->argc; i++)
		bytes += op->argv[i].len;
	ghost->argv = hs_mem_alloc(bytes + 1);
	to = (char *)(ghost->argv + op->argc);
	for (size_t i = 0; i < op->argc; i++) {
		if (op->argv[i].len > 0)
			memcpy(to, op->argv[i].data, op->argv[i].len);
		ghost->argv[i] = (struct hs_bytes){to, op->argv[i].len};
		to += op->argv[i].len;
	}
	ghost->op = *op;
	ghost->op.argv = ghost->argv;
	ghost->op.out = &ghost->out;
	ghost->life = links->servers[op->partition].lives;
	ghost->next = links->ghosts;
	links->ghosts = ghost;
	return ghost;
}

static bool can_haunt(const struct hs_op *first, uint32_t count)
{
	for (; count > 0; count--, first = first->next) {
		if (first->kind != HS_OP_COMMAND)
			return false;
	}
	return true;
}

/* The next `count` that have not run do so: now, or in some time. */
static void run_rest(struct hs_sim_links *links, struct hs_sim_pipe *pipe, uint32_t count, bool now)
{
	struct hs_op *op = pipe->next_to_run;
	uint64_t at_us = links->host.now->mono_us;
	bool later = !now && can_haunt(op, count) && hs_prng_below(&links->prng, 2) == 0;

	for (; count > 0; count--, op = op->next) {
		if (!later) {
			hs_sim_links_run(links, pipe, op);
			continue;
		}
		at_us += hs_prng_below(&links->prng, links->options.timeout_us + 1);
		hs_sim_links_plan(links, at_us, run_ghost, copy(links, op), 0);
	}
}

/* --- the end of a connection --- */

/* A write of the same client that is lost with it, and may have run or will. */
static bool is_followed(const struct hs_op *op)
{
	for (const struct hs_op *later = op->next; later; later = later->next) {
		if (later->client == op->client && !hs_sim_links_is_read(later))
			return true;
	}
	return false;
}

static void fail_all(struct hs_sim_links *links, struct hs_sim_row *row, const char *text)
{
	struct hs_op *op;

	while ((op = hs_sim_row_pop(row)))
		hs_sim_links_fail(links, op, text);
}

static void try_again(void *context, void *target, uint64_t epoch);

static void plan_try(struct hs_sim_links *links, struct hs_sim_pipe *pipe)
{
	hs_sim_links_plan(links, hs_sim_links_soon(links, links->options.down_us_max), try_again,
			  pipe, pipe->epoch);
}

static void try_again(void *context, void *target, uint64_t epoch)
{
	struct hs_sim_links *links = context;
	struct hs_sim_pipe *pipe = target;
	struct hs_sim_row waiting = pipe->waiting;
	bool down = links->servers[pipe->partition].up_us > links->host.now->mono_us;

	if (pipe->epoch != epoch)
		return;
	if (!down && !happens(links, GIVE_UP_ONE_IN)) {
		pipe->up = true;
		pipe->given_up = false;
		hs_sim_links_pump(links, pipe);
		return;
	}
	plan_try(links, pipe);
	if (hs_prng_below(&links->prng, TRIES_MAX) > 0)
		return;
	pipe->given_up = true;
	pipe->waiting = (struct hs_sim_row){0};
	fail_all(links, &waiting, NOT_SENT);
}

/* Nothing of it is sent again: the watch is gone. */
static void end_own(struct hs_sim_links *links, struct hs_sim_pipe *pipe, uint32_t unsent)
{
	struct hs_sim_row flying = pipe->flying, waiting = pipe->waiting;
	struct hs_op *op;

	hs_sim_store_unwatch(links->host.store, pipe->partition, pipe->watcher);
	pipe->watcher = 0;
	pipe->flying = pipe->waiting = (struct hs_sim_row){0};
	while ((op = hs_sim_row_pop(&flying))) {
		bool known = op->kind != HS_OP_EXEC || flying.count < unsent;

		hs_sim_links_fail(links, op, known ? NOT_SENT : UNKNOWN);
	}
	fail_all(links, &waiting, NOT_SENT);
}

static void end_shared(struct hs_sim_links *links, struct hs_sim_pipe *pipe, uint32_t unsent,
		       bool in_time)
{
	struct hs_sim_row flying = pipe->flying, waiting = pipe->waiting, lost = {0};
	struct hs_op *op, *next;

	pipe->flying = pipe->waiting = (struct hs_sim_row){0};
	plan_try(links, pipe);
	/* Those that are sent again go before those that waited. */
	for (op = flying.first; op; op = next) {
		bool repeat = --flying.count < unsent ||
			      (in_time && hs_sim_links_is_read(op) && !is_followed(op));

		next = op->next;
		op->out->len = 0;
		hs_sim_row_push(repeat ? &pipe->waiting : &lost, op);
	}
	while ((op = hs_sim_row_pop(&waiting)))
		hs_sim_row_push(&pipe->waiting, op);
	fail_all(links, &lost, UNKNOWN);
}

/* `crash`: the server forgets what it has not run. `in_time`: nobody has waited too long yet. */
static void end(struct hs_sim_links *links, struct hs_sim_pipe *pipe, bool crash, bool in_time)
{
	uint32_t rest = pipe->flying.count - pipe->ran, sent = pipe->arrived - pipe->ran;
	uint32_t runs = (uint32_t)hs_prng_below(&links->prng, rest + 1);
	uint32_t unsent;

	if (sent < runs)
		sent = runs;
	unsent = (uint32_t)hs_prng_below(&links->prng, rest - sent + 1);
	run_rest(links, pipe, runs, crash);
	if (pipe->fill)
		unsent -= hs_sim_fill_proofs(&pipe->flying, unsent);
	pipe->epoch++;
	pipe->up = pipe->own;
	pipe->mute = false;
	pipe->given_up = false;
	pipe->next_to_run = NULL;
	pipe->arrived = pipe->ran = 0;
	if (pipe->fill)
		hs_sim_fill_lost(links, pipe->fill);
	if (pipe->own)
		end_own(links, pipe, unsent);
	else
		end_shared(links, pipe, unsent, in_time);
}

static void time_out(void *context, void *target, uint64_t epoch)
{
	struct hs_sim_pipe *pipe = target;

	if (pipe->epoch == epoch)
		end(context, pipe, false, false);
}

/* --- servers --- */

static void end_all_of(struct hs_sim_links *links, uint16_t partition)
{
	for (uint32_t i = 0; i < 2 * links->workers * links->partitions; i++) {
		if (links->pipes[i].partition == partition && links->pipes[i].up)
			end(links, &links->pipes[i], true, true);
	}
	for (uint32_t i = 0; i < links->workers; i++) {
		struct hs_sim_pipe *pipe =
			hs_sim_fill_pipe(links->fills, i * links->partitions + partition);

		if (pipe->up)
			end(links, pipe, true, true);
	}
	for (struct hs_sim_pipe *pipe = links->owned; pipe; pipe = pipe->next) {
		if (pipe->partition == partition && pipe->watcher != 0)
			end(links, pipe, true, true);
	}
}

static void crash(struct hs_sim_links *links, uint16_t partition)
{
	links->servers[partition].lives++;
	links->servers[partition].up_us = hs_sim_links_soon(links, links->options.down_us_max);
	end_all_of(links, partition);
}

static void go_on(void *context, void *target, uint64_t number)
{
	struct hs_sim_links *links = context;
	uint16_t partition = (uint16_t)number;

	(void)target;
	links->servers[partition].stalled = false;
	for (uint32_t i = 0; i < 2 * links->workers * links->partitions; i++) {
		if (links->pipes[i].partition == partition)
			hs_sim_links_serve(links, &links->pipes[i]);
	}
	for (uint32_t i = 0; i < links->workers; i++)
		hs_sim_links_serve(
			links, hs_sim_fill_pipe(links->fills, i * links->partitions + partition));
	for (struct hs_sim_pipe *pipe = links->owned; pipe; pipe = pipe->next) {
		if (pipe->partition == partition)
			hs_sim_links_serve(links, pipe);
	}
}

static void stall(struct hs_sim_links *links, uint16_t partition)
{
	if (links->servers[partition].stalled)
		return;
	links->servers[partition].stalled = true;
	hs_sim_links_plan(links, hs_sim_links_soon(links, links->options.timeout_us), go_on, NULL,
			  partition);
}

static void fall_silent(struct hs_sim_links *links, struct hs_sim_pipe *pipe)
{
	pipe->mute = true;
	hs_sim_links_plan(links, links->host.now->mono_us + links->options.timeout_us, time_out,
			  pipe, pipe->epoch);
}

void hs_sim_links_silence(struct hs_sim_links *links, uint32_t worker)
{
	for (uint16_t i = 0; i < links->partitions; i++)
		fall_silent(links, hs_sim_fill_pipe(links->fills, worker * links->partitions + i));
}

bool hs_sim_links_strike(struct hs_sim_links *links, struct hs_sim_pipe *pipe)
{
	uint64_t epoch = pipe->epoch;

	if (happens(links, links->options.lose_one_in))
		end(links, pipe, false, true);
	else if (happens(links, links->options.crash_one_in))
		crash(links, pipe->partition);
	else if (happens(links, links->options.stall_one_in))
		stall(links, pipe->partition);
	else if (!pipe->mute && happens(links, links->options.mute_one_in))
		fall_silent(links, pipe);
	return pipe->epoch == epoch;
}
