#include "sim/links_internal.h"

#include "base/mem.h"
#include "wire/reply.h"

enum { SWEEP_ONE_IN = 4 };

#define NOT_SENT "CLUSTERDOWN the simulated server does not answer; not sent"
#define TOO_MANY "BUSY too many requests wait for the simulated server already; not sent"

/* --- rows --- */

void hs_sim_row_push(struct hs_sim_row *row, struct hs_op *op)
{
	op->next = NULL;
	if (row->last)
		row->last->next = op;
	else
		row->first = op;
	row->last = op;
	row->count++;
}

struct hs_op *hs_sim_row_pop(struct hs_sim_row *row)
{
	struct hs_op *op = row->first;

	if (!op)
		return NULL;
	row->first = op->next;
	if (!row->first)
		row->last = NULL;
	row->count--;
	return op;
}

/* --- beginning and end --- */

struct hs_sim_links *hs_sim_links_create(const struct hs_sim_links_options *options, uint64_t seed,
					 uint32_t workers, uint16_t partitions,
					 const struct hs_sim_engine_host *host)
{
	struct hs_sim_links *links = hs_mem_zalloc(sizeof *links);

	links->options = *options;
	links->host = *host;
	links->workers = workers;
	links->partitions = partitions;
	hs_prng_init(&links->prng, seed);
	links->servers = hs_mem_zalloc(partitions * sizeof *links->servers);
	links->pipes = hs_mem_zalloc(2 * (size_t)workers * partitions * sizeof *links->pipes);
	for (uint32_t i = 0; i < 2 * workers * partitions; i++) {
		links->pipes[i].worker = i / 2 / partitions;
		links->pipes[i].partition = (uint16_t)(i / 2 % partitions);
		links->pipes[i].up = true;
	}
	links->fills = hs_sim_fills_create(workers, partitions);
	return links;
}

static void check_idle(const struct hs_sim_pipe *pipe)
{
	hs_check(!pipe->waiting.first);
	hs_check(!pipe->flying.first);
}

void hs_sim_links_destroy(struct hs_sim_links **pointer)
{
	struct hs_sim_links *links = *pointer;

	for (uint32_t i = 0; i < 2 * links->workers * links->partitions; i++)
		check_idle(&links->pipes[i]);
	for (uint32_t i = 0; i < links->workers * links->partitions; i++)
		check_idle(hs_sim_fill_pipe(links->fills, i));
	hs_sim_fills_destroy(&links->fills, (size_t)links->workers * links->partitions);
	while (links->owned) {
		struct hs_sim_pipe *pipe = links->owned;

		check_idle(pipe);
		links->owned = pipe->next;
		hs_mem_free(&pipe);
	}
	while (links->ghosts) {
		struct hs_sim_ghost *ghost = links->ghosts;

		links->ghosts = ghost->next;
		hs_buf_deinit(&ghost->out);
		hs_mem_free(&ghost->argv);
		hs_mem_free(&ghost);
	}
	hs_mem_free(&links->servers);
	hs_mem_free(&links->pipes);
	hs_mem_free(pointer);
}

void hs_sim_links_calm(struct hs_sim_links *links)
{
	links->calm = true;
}

/* --- what events are made of --- */

bool hs_sim_links_is_read(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && (op->command->flags & HS_CMD_READONLY) &&
	       !(op->command->flags & HS_CMD_WRITE);
}

uint64_t hs_sim_links_soon(struct hs_sim_links *links, uint32_t us_max)
{
	return links->host.now->mono_us + 1 + hs_prng_below(&links->prng, us_max + 1);
}

void hs_sim_links_plan(struct hs_sim_links *links, uint64_t at_us, hs_sim_event_run *run,
		       void *target, uint64_t number)
{
	hs_sim_events_plan(links->host.events, (struct hs_sim_event){.at_us = at_us,
								     .run = run,
								     .context = links,
								     .target = target,
								     .number = number});
}

uint64_t hs_sim_links_travel(struct hs_sim_links *links, const struct hs_sim_pipe *pipe,
			     uint64_t *last_us)
{
	uint64_t at_us = hs_sim_links_soon(links, links->options.latency_us_max);

	if (pipe->partition == 0)
		at_us += links->options.slow_us;
	if (at_us < *last_us)
		at_us = *last_us;
	return *last_us = at_us;
}

bool hs_sim_links_serves(const struct hs_sim_links *links, uint16_t partition)
{
	const struct hs_sim_server *server = &links->servers[partition];

	return !server->stalled && server->up_us <= links->host.now->mono_us;
}

void hs_sim_links_run(struct hs_sim_links *links, struct hs_sim_pipe *pipe, struct hs_op *op)
{
	/* A server looks at its own clock. */
	int64_t now_ms = hs_now_wall_ms(*links->host.now);

	if (hs_sim_fill_is_proof(op))
		return;
	if (pipe && pipe->fill)
		hs_sim_fill_run_short(links, pipe->fill);
	links->running = op;
	links->running_on = pipe;
	/* It finds out that a key has expired at any time: now and then when somebody looks. */
	if (links->options.prove_us > 0 && hs_prng_below(&links->prng, SWEEP_ONE_IN) == 0)
		hs_sim_store_sweep(links->host.store, op->partition, now_ms);
	hs_sim_store_run(links->host.store, op, now_ms, true);
	links->running_on = NULL;
	links->running = NULL;
	if (pipe && pipe->fill)
		hs_sim_fill_ran(links, pipe->fill, op);
	hs_sim_store_tell(links->host.store);
}

/* The reply lies in the operation's own buffer, or elsewhere until the call returns. */
static void finish(struct hs_sim_links *links, struct hs_op *op)
{
	struct hs_buf elsewhere = {0};

	op->answer = (struct hs_bytes){NULL, 0};
	if (op->kind == HS_OP_COMMAND && hs_prng_below(&links->prng, 2) == 0) {
		hs_buf_swap(op->out, &elsewhere);
		op->answer = hs_buf_bytes(&elsewhere);
	}
	links->host.done(links->host.context, op);
	hs_buf_deinit(&elsewhere);
}

static void write_error(struct hs_op *op, const char *text)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	op->out->len = 0;
	hs_reply_error(&reply, text);
}

void hs_sim_links_fail(struct hs_sim_links *links, struct hs_op *op, const char *text)
{
	write_error(op, text);
	finish(links, op);
}

/* --- the way there and back --- */

static void bring_reply(void *context, void *target, uint64_t epoch)
{
	struct hs_sim_links *links = context;
	struct hs_sim_pipe *pipe = target;
	struct hs_op *op;

	if (pipe->epoch != epoch || !hs_sim_links_strike(links, pipe) || pipe->mute)
		return;
	op = hs_sim_row_pop(&pipe->flying);
	pipe->arrived--;
	pipe->ran--;
	if (pipe->own && op->kind != HS_OP_WATCH)
		pipe->watcher = 0; /* EXEC or UNWATCH: it is nobody's again */
	if (!pipe->fill || hs_sim_fill_answered(links, pipe->fill, op))
		finish(links, op);
	hs_sim_links_pump(links, pipe);
}

void hs_sim_links_serve(struct hs_sim_links *links, struct hs_sim_pipe *pipe)
{
	if (links->servers[pipe->partition].stalled)
		return;
	for (; pipe->ran < pipe->arrived; pipe->ran++) {
		hs_sim_links_run(links, pipe, pipe->next_to_run);
		pipe->next_to_run = pipe->next_to_run->next;
		hs_sim_links_plan(links, hs_sim_links_travel(links, pipe, &pipe->reply_us),
				  bring_reply, pipe, pipe->epoch);
	}
}

static void arrive(void *context, void *target, uint64_t epoch)
{
	struct hs_sim_links *links = context;
	struct hs_sim_pipe *pipe = target;

	if (pipe->epoch != epoch)
		return;
	pipe->arrived++;
	if (hs_sim_links_strike(links, pipe))
		hs_sim_links_serve(links, pipe);
}

void hs_sim_links_pump(struct hs_sim_links *links, struct hs_sim_pipe *pipe)
{
	while (pipe->up && pipe->waiting.first && pipe->flying.count < links->options.flying_max) {
		struct hs_op *op = hs_sim_row_pop(&pipe->waiting);

		hs_sim_row_push(&pipe->flying, op);
		op->engine_mark = links->host.now->mono_us;
		if (!pipe->next_to_run)
			pipe->next_to_run = op;
		hs_sim_links_plan(links, hs_sim_links_travel(links, pipe, &pipe->arrive_us), arrive,
				  pipe, pipe->epoch);
	}
}

/* --- watchers --- */

static struct hs_sim_pipe *find_own(struct hs_sim_links *links, uint64_t watcher)
{
	struct hs_sim_pipe *pipe = links->owned;

	while (pipe && pipe->watcher != watcher)
		pipe = pipe->next;
	return pipe;
}

static struct hs_sim_pipe *open_own(struct hs_sim_links *links, const struct hs_op *op)
{
	struct hs_sim_pipe *pipe = hs_mem_zalloc(sizeof *pipe);

	*pipe = (struct hs_sim_pipe){
		.worker = op->worker,
		.partition = op->partition,
		.own = true,
		.up = true,
		.watcher = op->watcher,
		.next = links->owned,
	};
	links->owned = pipe;
	return pipe;
}

/* What it watched cannot be told any more: that it changed is always allowed to say. */
static enum hs_submit answer_unwatched(struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};

	if (op->kind == HS_OP_EXEC)
		hs_reply_null_array(&reply);
	else
		hs_reply_ok(&reply);
	return HS_SUBMIT_DONE;
}

static enum hs_submit refuse(struct hs_op *op, const char *text)
{
	write_error(op, text);
	return HS_SUBMIT_DONE;
}

static enum hs_submit submit_own(struct hs_sim_links *links, struct hs_op *op)
{
	struct hs_sim_pipe *pipe = find_own(links, op->watcher);

	if (!pipe && (op->kind != HS_OP_WATCH || op->watching))
		return answer_unwatched(op);
	if (!pipe && links->servers[op->partition].up_us > links->host.now->mono_us)
		return refuse(op, NOT_SENT);
	if (!pipe)
		pipe = open_own(links, op);
	hs_sim_row_push(&pipe->waiting, op);
	hs_sim_links_pump(links, pipe);
	return HS_SUBMIT_QUEUED;
}

/* Without the connection that would hear of changes, a read may be done all the same: then nobody
 * vouches for it. */
static bool refuses_fill(struct hs_sim_links *links, uint32_t number)
{
	return !hs_sim_fill_pipe(links->fills, number)->up && hs_prng_below(&links->prng, 2) == 0;
}

enum hs_submit hs_sim_links_submit(struct hs_sim_links *links, struct hs_op *op)
{
	uint32_t number = op->worker * links->partitions + op->partition;
	struct hs_sim_pipe *pipe = &links->pipes[2 * number + (op->resp == 3)];

	hs_check(op->partition < links->partitions);
	op->vouch = NULL;
	op->left_ms = 0;
	if (op->track && !refuses_fill(links, number))
		pipe = hs_sim_fill_pipe(links->fills, number);
	if (op->kind == HS_OP_WATCH || op->kind == HS_OP_UNWATCH ||
	    (op->kind == HS_OP_EXEC && op->watcher != 0))
		return submit_own(links, op);
	if (!pipe->up && pipe->given_up)
		return refuse(op, NOT_SENT);
	if (pipe->waiting.count >= links->options.waiting_max)
		return refuse(op, TOO_MANY);
	hs_sim_row_push(&pipe->waiting, op);
	hs_sim_links_pump(links, pipe);
	return HS_SUBMIT_QUEUED;
}
