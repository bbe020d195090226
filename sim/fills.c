#include "sim/fills.h"

#include "base/mem.h"
#include "sim/links_internal.h"

enum {
	MISTAKE_ONE_IN = 4,
	TELL_LOST_ONE_IN = 2,
	UNTIMED_ONE_IN = 8, /* reads without the time that their key has to live */
	LATE_PROOFS = 32,   /* HS_SIM_PUSH_LATE: behind so many proofs at most */
};

struct hs_sim_fill {
	struct hs_sim_pipe pipe;
	struct hs_vouch vouch;
	struct hs_buf *keys; /* remembered by the server, one each */
	size_t keys_count, keys_cap;
	bool proof_planned;
};

/* What a server says, on its way. */
struct push {
	struct hs_sim_fill *fill;
	bool all;
	struct hs_buf key;
};

/* --- beginning and end --- */

struct hs_sim_fill *hs_sim_fills_create(uint32_t workers, uint16_t partitions)
{
	struct hs_sim_fill *fills = hs_mem_zalloc((size_t)workers * partitions * sizeof *fills);

	for (uint32_t i = 0; i < workers * partitions; i++) {
		fills[i].pipe.worker = i / partitions;
		fills[i].pipe.partition = (uint16_t)(i % partitions);
		fills[i].pipe.up = true;
		fills[i].pipe.fill = &fills[i];
		atomic_init(&fills[i].vouch.epoch, 1);
	}
	return fills;
}

static void forget_key(struct hs_sim_fill *fill, size_t index)
{
	hs_buf_deinit(&fill->keys[index]);
	fill->keys[index] = fill->keys[--fill->keys_count];
}

static void forget_keys(struct hs_sim_fill *fill)
{
	while (fill->keys_count > 0)
		forget_key(fill, fill->keys_count - 1);
}

void hs_sim_fills_destroy(struct hs_sim_fill **fills, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		forget_keys(&(*fills)[i]);
		hs_mem_free(&(*fills)[i].keys);
	}
	hs_mem_free(fills);
}

struct hs_sim_pipe *hs_sim_fill_pipe(struct hs_sim_fill *fills, size_t number)
{
	return &fills[number].pipe;
}

/* --- what a server says --- */

static bool errs(struct hs_sim_links *links, enum hs_sim_mistake mistake)
{
	return links->options.mistake == mistake &&
	       hs_prng_below(&links->prng, MISTAKE_ONE_IN) == 0;
}

static void bring_push(void *context, void *target, uint64_t epoch)
{
	struct hs_sim_links *links = context;
	struct push *push = target;
	struct hs_sim_pipe *pipe = &push->fill->pipe;
	struct hs_bytes key = hs_buf_bytes(&push->key);

	if (pipe->epoch == epoch && hs_sim_links_strike(links, pipe) && !pipe->mute)
		links->host.changed(links->host.context, pipe->worker, &push->fill->vouch,
				    push->all ? NULL : &key);
	hs_buf_deinit(&push->key);
	hs_mem_free(&push);
}

/* No key: all. */
static void say(struct hs_sim_links *links, struct hs_sim_fill *fill, const struct hs_bytes *key)
{
	uint64_t late_us = 0;
	struct push *push;

	if (errs(links, HS_SIM_PUSH_LOST))
		return;
	if (links->options.mistake == HS_SIM_PUSH_LATE)
		late_us = hs_prng_below(&links->prng, LATE_PROOFS * links->options.prove_us);
	push = hs_mem_zalloc(sizeof *push);
	push->fill = fill;
	push->all = !key;
	if (key)
		hs_buf_append_bytes(&push->key, *key);
	hs_sim_links_plan(links,
			  late_us + hs_sim_links_travel(links, &fill->pipe, &fill->pipe.reply_us),
			  bring_push, push, fill->pipe.epoch);
}

static size_t find_key(const struct hs_sim_fill *fill, struct hs_bytes key)
{
	size_t index = 0;

	while (index < fill->keys_count && !hs_bytes_equal(hs_buf_bytes(&fill->keys[index]), key))
		index++;
	return index;
}

/* The connection's own doing, of which it is not told: a write, or a read that found it expired. */
static bool is_own(const struct hs_sim_links *links, const struct hs_sim_fill *fill,
		   struct hs_bytes key)
{
	const struct hs_op *op = links->running;

	return links->options.noloop && links->running_on == &fill->pipe && op->argc > 1 &&
	       hs_bytes_equal(op->argv[1], key);
}

static void tell(struct hs_sim_links *links, struct hs_sim_fill *fill, const struct hs_bytes *key)
{
	size_t index;

	if (!key) {
		forget_keys(fill);
		say(links, fill, NULL);
		return;
	}
	index = find_key(fill, *key);
	if (index == fill->keys_count)
		return;
	forget_key(fill, index);
	if (!is_own(links, fill, *key))
		say(links, fill, key);
}

void hs_sim_links_changed(struct hs_sim_links *links, uint16_t partition,
			  const struct hs_bytes *key)
{
	for (uint32_t i = 0; i < links->workers; i++) {
		struct hs_sim_fill *fill = &links->fills[i * links->partitions + partition];

		if (fill->pipe.up)
			tell(links, fill, key);
	}
}

void hs_sim_fill_run_short(struct hs_sim_links *links, struct hs_sim_fill *fill)
{
	uint32_t one_in = links->options.forget_one_in;
	size_t index;

	if (one_in == 0 || fill->keys_count == 0 || hs_prng_below(&links->prng, one_in) > 0)
		return;
	index = hs_prng_below(&links->prng, fill->keys_count);
	say(links, fill, &(struct hs_bytes){fill->keys[index].data, fill->keys[index].len});
	forget_key(fill, index);
}

void hs_sim_fill_ran(struct hs_sim_links *links, struct hs_sim_fill *fill, struct hs_op *op)
{
	if (!op->track)
		return;
	op->left_ms = hs_prng_below(&links->prng, UNTIMED_ONE_IN) == 0
			      ? 0
			      : hs_sim_store_left(links->host.store, op, *links->host.now);
	hs_check(op->argc > 1);
	if (find_key(fill, op->argv[1]) < fill->keys_count)
		return;
	if (fill->keys_count == fill->keys_cap) {
		fill->keys_cap = fill->keys_cap ? 2 * fill->keys_cap : 8;
		fill->keys = hs_mem_realloc(fill->keys, fill->keys_cap * sizeof *fill->keys);
	}
	fill->keys[fill->keys_count] = (struct hs_buf){0};
	hs_buf_append_bytes(&fill->keys[fill->keys_count++], op->argv[1]);
}

/* --- proofs --- */

bool hs_sim_fill_is_proof(const struct hs_op *op)
{
	return op->kind == HS_OP_HOST; /* no core sends one of these here */
}

uint32_t hs_sim_fill_proofs(const struct hs_sim_row *row, uint32_t count)
{
	uint32_t left = row->count, proofs = 0;

	for (const struct hs_op *op = row->first; op; op = op->next, left--)
		proofs += left <= count && hs_sim_fill_is_proof(op);
	return proofs;
}

static void prove(struct hs_sim_links *links, struct hs_sim_fill *fill, uint64_t sent_us)
{
	if (links->options.mistake == HS_SIM_PROOF_AT_REPLY)
		sent_us = links->host.now->mono_us;
	if (sent_us > hs_vouch_proved_us(&fill->vouch))
		atomic_store(&fill->vouch.proved_us, sent_us);
}

static void send_proof(void *context, void *target, uint64_t number)
{
	struct hs_sim_links *links = context;
	struct hs_sim_fill *fill = target;
	struct hs_op *op;

	(void)number;
	fill->proof_planned = false;
	atomic_store(&fill->vouch.wanted, false);
	if (!fill->pipe.up)
		return;
	op = hs_mem_zalloc(sizeof *op);
	*op = (struct hs_op){.kind = HS_OP_HOST};
	hs_sim_row_push(&fill->pipe.waiting, op);
	hs_sim_links_pump(links, &fill->pipe);
}

void hs_sim_links_prove(struct hs_sim_links *links, uint32_t worker)
{
	for (uint16_t i = 0; i < links->partitions; i++) {
		struct hs_sim_fill *fill = &links->fills[worker * links->partitions + i];

		if (fill->proof_planned || !atomic_load(&fill->vouch.wanted))
			continue;
		fill->proof_planned = true;
		hs_sim_links_plan(links, hs_sim_links_soon(links, links->options.prove_us),
				  send_proof, fill, 0);
	}
}

bool hs_sim_fill_answered(struct hs_sim_links *links, struct hs_sim_fill *fill, struct hs_op *op)
{
	bool proof = hs_sim_fill_is_proof(op);

	if (proof || links->options.answers_prove)
		prove(links, fill, op->engine_mark);
	if (proof) {
		hs_mem_free(&op);
		return false;
	}
	op->vouch = op->track ? &fill->vouch : NULL;
	op->vouch_epoch = hs_vouch_epoch(&fill->vouch);
	return true;
}

/* --- the end of a connection --- */

static void drop_proofs(struct hs_sim_row *row)
{
	struct hs_sim_row all = *row;
	struct hs_op *op;

	*row = (struct hs_sim_row){0};
	while ((op = hs_sim_row_pop(&all))) {
		if (hs_sim_fill_is_proof(op))
			hs_mem_free(&op);
		else
			hs_sim_row_push(row, op);
	}
}

void hs_sim_fill_lost(struct hs_sim_links *links, struct hs_sim_fill *fill)
{
	drop_proofs(&fill->pipe.flying);
	drop_proofs(&fill->pipe.waiting);
	forget_keys(fill);
	if (links->options.mistake == HS_SIM_DEAD_VOUCH)
		return;
	atomic_fetch_add(&fill->vouch.epoch, 1);
	/* That is all there is to it: to say so besides does no harm. */
	if (hs_prng_below(&links->prng, TELL_LOST_ONE_IN) == 0)
		links->host.changed(links->host.context, fill->pipe.worker, &fill->vouch, NULL);
}
