#include "sim/misread.h"

#include "absorb/shelf.h"
#include "base/mem.h"
#include "sim/world_internal.h"

#include <stdio.h>

/* A read under way that is to be kept, and its key's stamp when it was sent. */
struct flight {
	const struct hs_op *op;
	struct hs_stamp stamp;
	uint64_t sent_us;
	struct flight *next;
};

struct hs_sim_misread {
	struct hs_sim_world *world;
	void (*done)(void *context, struct hs_op *op);
	struct flight *flights;
};

bool hs_sim_misread_is(enum hs_sim_mistake mistake)
{
	return mistake >= HS_SIM_WRITE_UNSTAMPED && mistake <= HS_SIM_OLD_WHILE_READING;
}

struct hs_sim_misread *hs_sim_misread_create(struct hs_sim_world *world,
					     void (*done)(void *context, struct hs_op *op))
{
	struct hs_sim_misread *misread = hs_mem_zalloc(sizeof *misread);

	misread->world = world;
	misread->done = done;
	return misread;
}

void hs_sim_misread_destroy(struct hs_sim_misread **pointer)
{
	if (*pointer)
		hs_check(!(*pointer)->flights);
	hs_mem_free(pointer);
}

/* --- what operations are --- */

static bool is_get(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && op->command->id == HS_CMD_ID_GET;
}

static bool is_increment(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND &&
	       (op->command->id == HS_CMD_ID_INCR || op->command->id == HS_CMD_ID_INCRBY);
}

static void ask_for(struct hs_ask *ask, const struct hs_shelf *shelf, struct hs_bytes key,
		    struct hs_bytes words[2])
{
	hs_ask_get(ask, hs_shelf_seed(shelf), key, words);
}

/* --- to the engine --- */

void hs_sim_misread_submit(struct hs_sim_misread *misread, const struct hs_op *op)
{
	const struct hs_shelf *shelf = misread->world->shelves[op->worker];
	struct flight *flight;
	struct hs_bytes words[2];
	struct hs_ask ask;

	if (!op->track || !is_get(op))
		return;
	flight = hs_mem_zalloc(sizeof *flight);
	ask_for(&ask, shelf, op->argv[1], words);
	*flight = (struct flight){
		.op = op,
		.stamp = hs_shelf_stamp(shelf, ask.key_hash),
		.sent_us = misread->world->now.mono_us,
		.next = misread->flights,
	};
	misread->flights = flight;
}

/* --- and back --- */

static bool take_flight(struct hs_sim_misread *misread, const struct hs_op *op,
			struct flight *taken)
{
	for (struct flight **link = &misread->flights; *link; link = &(*link)->next) {
		struct flight *flight = *link;

		if (flight->op != op)
			continue;
		*taken = *flight;
		*link = flight->next;
		hs_mem_free(&flight);
		return true;
	}
	return false;
}

/* As if the increment had not been noted. */
static void undo_stamp(struct hs_shelf *shelf, const struct hs_ask *ask)
{
	struct hs_kept *kept = hs_shelf_get(shelf, ask);
	uint32_t done = hs_shelf_stamp(shelf, ask->key_hash).done;

	if (!kept)
		return;
	if (kept->done + 1 == done)
		kept->done = done;
	hs_kept_unref(&kept);
}

static void keep_raced(struct hs_shelf *shelf, const struct hs_ask *ask, struct hs_kept *kept,
		       const struct flight *flight)
{
	struct hs_stamp now = hs_shelf_stamp(shelf, ask->key_hash);

	if (!kept || (now.begun == flight->stamp.begun && now.done == flight->stamp.done))
		return;
	kept->done = now.done;
	hs_shelf_put(shelf, kept);
}

static void keep_missing(struct hs_shelf *shelf, const struct hs_ask *ask)
{
	struct hs_kept *kept = hs_shelf_get(shelf, ask);

	if (!kept)
		return;
	if (kept->missing)
		kept->until_us = UINT64_MAX;
	hs_kept_unref(&kept);
}

/* What the reply would be as one that is kept. */
static struct hs_kept *make_kept(const struct hs_ask *ask, const struct hs_op *op,
				 const struct flight *flight, const struct hs_sim_rule *rule)
{
	struct hs_bytes reply = op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
	struct hs_kept *kept = op->vouch ? hs_kept_create(ask, reply) : NULL;

	if (!kept)
		return NULL;
	kept->worker = op->worker;
	kept->vouch = op->vouch;
	kept->vouch_epoch = op->vouch_epoch;
	kept->read_us = kept->until_us = flight->sent_us;
	kept->until_us += kept->missing ? rule->negative_us : rule->ttl_us;
	return kept;
}

void hs_sim_misread_done(struct hs_sim_misread *misread, struct hs_op *op)
{
	struct hs_sim_world *world = misread->world;
	enum hs_sim_mistake mistake = world->options.engine.mistake;
	struct hs_shelf *shelf = world->shelves[op->worker];
	struct hs_bytes words[2];
	struct hs_kept *kept = NULL;
	struct flight flight = {0};
	struct hs_ask ask;
	struct hs_buf key = {0};
	bool one = op->kind == HS_OP_COMMAND && op->argc > 1;
	bool increment = is_increment(op);
	bool read = take_flight(misread, op, &flight);

	if (one)
		hs_buf_append_bytes(&key, op->argv[1]);
	ask_for(&ask, shelf, hs_buf_bytes(&key), words);
	if (read && mistake == HS_SIM_RACED_FILL)
		kept = make_kept(&ask, op, &flight, &world->options.rules[0]);
	misread->done(world, op); /* the operation is gone */
	if (increment && mistake == HS_SIM_WRITE_UNSTAMPED)
		undo_stamp(shelf, &ask);
	if (read && mistake == HS_SIM_RACED_FILL)
		keep_raced(shelf, &ask, kept, &flight);
	if (read && mistake == HS_SIM_NEGATIVE_FOREVER)
		keep_missing(shelf, &ask);
	hs_kept_unref(&kept);
	hs_buf_deinit(&key);
}

/* --- to clients --- */

/* Within the time that the rule allows while it is being read again, but written since. */
static bool is_old(const struct hs_sim_world *world, const struct hs_kept *kept,
		   const struct hs_sim_rule *rule, uint32_t done)
{
	return kept->done != done && rule->swr_us > 0 &&
	       world->now.mono_us - kept->read_us <= rule->stale_us + rule->swr_us;
}

bool hs_sim_misread_answer(struct hs_sim_world *world, uint32_t worker, uint32_t key, bool written,
			   struct hs_buf *reply)
{
	enum hs_sim_mistake mistake = world->options.engine.mistake;
	const struct hs_sim_rule *rule = hs_sim_world_rule(world, key);
	struct hs_shelf *shelf = world->shelves[worker];
	struct hs_bytes words[2];
	struct hs_kept *kept;
	struct hs_ask ask;
	char name[16];
	bool given = false;
	uint32_t done;

	if (!rule || (mistake != HS_SIM_OLD_WHILE_READING &&
		      (mistake != HS_SIM_OWN_WRITE_UNSEEN || !written)))
		return false;
	snprintf(name, sizeof name, "key%u", key);
	ask_for(&ask, shelf, hs_bytes_of(name), words);
	kept = hs_shelf_get(shelf, &ask);
	done = hs_shelf_stamp(shelf, ask.key_hash).done;
	if (kept && mistake == HS_SIM_OLD_WHILE_READING)
		given = is_old(world, kept, rule, done);
	else if (kept)
		given = kept->done == done && world->now.mono_us - kept->read_us <= rule->stale_us;
	if (given)
		hs_buf_append_bytes(reply, kept->reply[0]);
	hs_kept_unref(&kept);
	return given;
}
