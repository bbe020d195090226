/* The queue of a key, and the plan: which batches are sent for it next. The walk goes over the asks that wait,
 * oldest first, and looks for the batch that each could be in. There are two candidates at most: the last batch, when that
 * is a write from which the answer follows; and a read of the same, when no write came in between.
 *
 *     GET k  TTL k  GET k  INCR k  GET k  INCR k  TTL k  INCR k
 *     └ 1 ── 2 ──── 1      └ 3 ─── 3 ──── 3       4      5
 *
 * A client that needs a second batch waits with it for the next plan, and with all it asked behind;
 * the others go by. So where many ask for INCR and TTL at a time, a plan has all INCRs and the next
 * all TTLs, and not one client each.
 *
 * Between two writes of a plan is an epoch: reads in it may change places. A small table finds the batch
 * of an equal read; it is bounded, and reads beyond it are batches of their own. */
#include "absorb/fold/fold.h"

#include "absorb/fold/value.h"
#include "base/check.h"
#include "base/mem.h"

enum {
	CELLS = 64,	 /* a power of two */
	CELLS_USED = 48, /* the rest stays empty, so that searches end soon */
};

#define LEAP                                                                                       \
	(UINT64_C(1) << 48) /* smaller increments, in any number, do not leave the room there is */

struct planner {
	struct hs_fold *fold;
	struct hs_link *plan;
	struct hs_fold_batch *last; /* NULL before the first */
	uint32_t epoch;		    /* a cell of another one is empty; 0 is none */
	uint32_t used;
	struct {
		uint32_t epoch;
		struct hs_fold_batch *batch;
	} cells[CELLS];
};

static struct hs_fold_member *ask_of(struct hs_link *link)
{
	return hs_list_entry(link, struct hs_fold_member, link);
}

void hs_fold_init(struct hs_fold *fold)
{
	*fold = (struct hs_fold){0};
	hs_list_init(&fold->waiting);
}

void hs_fold_add(struct hs_fold *fold, struct hs_fold_member *ask)
{
	hs_check(ask->kind != HS_FOLD_NOT);
	hs_check(ask->client);
	hs_list_append(&fold->waiting, &ask->link);
}

/* The name may be written in any case; all else decides. The hash only saves looking. */
static bool is_same_read(const struct hs_fold_member *a, const struct hs_fold_member *b)
{
	if (a->signature != b->signature || a->command != b->command || a->resp != b->resp ||
	    a->argc != b->argc)
		return false;
	for (size_t i = 1; i < a->argc; i++)
		if (!hs_bytes_equal(a->argv[i], b->argv[i]))
			return false;
	return true;
}

/* The cell of an equal read in this epoch, or the empty one it would be in. */
static size_t find_cell(const struct planner *planner, const struct hs_fold_member *ask)
{
	size_t at = (size_t)ask->signature % CELLS;

	while (planner->cells[at].epoch == planner->epoch &&
	       !is_same_read(ask_of(planner->cells[at].batch->asks.next), ask))
		at = (at + 1) % CELLS;
	return at;
}

static uint64_t magnitude(int64_t number)
{
	return number < 0 ? -(uint64_t)number : (uint64_t)number;
}

static bool adds_up(const struct hs_fold_batch *batch, const struct hs_fold_member *ask)
{
	uint64_t more = magnitude(ask->number);

	if (ask->client->sign * hs_fold_sign(ask->number) < 0)
		return false;
	return more < HS_FOLD_REACH_MAX && batch->reach < HS_FOLD_REACH_MAX - more;
}

/* One that may not be run again, and would be if the number met a limit. */
static bool needs_own_batch(const struct hs_fold *fold, const struct hs_fold_member *ask)
{
	return ask->client->no_retry && ask->kind == HS_FOLD_ADD && !fold->far_from_overflow;
}

/* The answers of writes are the same in both; but each has its own connection to a server. */
static bool fits_dialect(const struct hs_fold_batch *batch, const struct hs_fold_member *ask)
{
	if (ask->resp != batch->resp)
		return !batch->bound && !ask->client->bound;
	return !batch->mixed || !ask->client->bound;
}

/* Whether the answer follows from what the plan's last batch knows. */
static bool follows(const struct hs_fold_batch *last, const struct hs_fold_member *ask)
{
	if (!last || last->kind == HS_FOLD_READ || last->sole || !fits_dialect(last, ask))
		return false;
	if (ask->client->no_retry && (ask->kind != last->kind || needs_own_batch(last->fold, ask)))
		return false;
	switch (ask->kind) {
	case HS_FOLD_GET:
	case HS_FOLD_STRLEN:
	case HS_FOLD_EXISTS:
		return true;
	case HS_FOLD_TTL:
	case HS_FOLD_SET:
		return last->kind == HS_FOLD_SET;
	case HS_FOLD_ADD:
		return last->kind == HS_FOLD_SET || adds_up(last, ask);
	case HS_FOLD_READ:
	case HS_FOLD_NOT:
		break;
	}
	return false;
}

static bool is_write(const struct hs_fold_member *ask)
{
	return ask->kind == HS_FOLD_ADD || ask->kind == HS_FOLD_SET;
}

/* The batch it may join; NULL: it needs a new one. */
static struct hs_fold_batch *find_batch(const struct planner *planner,
					const struct hs_fold_member *ask)
{
	size_t cell;

	if (follows(planner->last, ask))
		return planner->last;
	if (is_write(ask))
		return NULL;
	cell = find_cell(planner, ask);
	return planner->cells[cell].epoch == planner->epoch ? planner->cells[cell].batch : NULL;
}

static struct hs_fold_batch *new_batch(struct planner *planner, const struct hs_fold_member *ask)
{
	struct hs_fold_batch *batch = hs_mem_zalloc(sizeof *batch);
	size_t cell;

	batch->fold = planner->fold;
	batch->kind = is_write(ask) ? ask->kind : HS_FOLD_READ;
	batch->resp = ask->resp;
	batch->sole = needs_own_batch(planner->fold, ask);
	hs_list_init(&batch->asks);
	hs_list_append(planner->plan, &batch->link);
	planner->last = batch;
	if (is_write(ask)) {
		planner->epoch++;
		planner->used = 0;
	} else if (planner->used < CELLS_USED) {
		cell = find_cell(planner, ask);
		planner->cells[cell].epoch = planner->epoch;
		planner->cells[cell].batch = batch;
		planner->used++;
	}
	return batch;
}

static void join(struct hs_fold_batch *batch, struct hs_fold_member *ask)
{
	hs_list_remove(&ask->link);
	hs_list_append(&batch->asks, &ask->link);
	batch->count++;
	ask->no_retry = ask->client->no_retry;
	batch->mixed = batch->mixed || ask->resp != batch->resp;
	batch->bound = batch->bound || ask->client->bound;
	if (batch->kind == HS_FOLD_ADD && ask->kind == HS_FOLD_ADD) {
		batch->sum += ask->number;
		batch->reach += magnitude(ask->number);
		if (batch->reach >= LEAP)
			batch->fold->far_from_overflow =
				false; /* not before it is known where that leads */
		if (ask->number != 0)
			ask->client->sign = hs_fold_sign(ask->number);
	}
	ask->client->batch = batch;
}

static void send_ask(struct hs_fold_batch *batch, const struct hs_fold_member *ask)
{
	batch->command = ask->command;
	batch->argv = ask->argv;
	batch->argc = ask->argc;
	batch->raw = ask->raw;
	batch->resp = ask->resp;
}

/* Of what composed[] and text[] hold. */
static void send_composed(struct hs_fold_batch *batch, enum hs_command_id id, struct hs_bytes name,
			  const struct hs_fold_member *ask)
{
	send_ask(batch, ask);
	batch->command = hs_command_by_id(id);
	batch->raw = (struct hs_bytes){0};
	batch->composed[0] = name;
	batch->composed[1] = ask->argv[1];
	batch->argv = batch->composed;
}

static struct hs_bytes write_number(char text[HS_NUM_TEXT_MAX], int64_t number)
{
	return (struct hs_bytes){text, hs_num_format_int(number, text)};
}

static void finish_add(struct hs_fold_batch *batch, const struct hs_fold_member *first)
{
	send_composed(batch, HS_CMD_ID_INCRBY, HS_LIT("INCRBY"), first);
	batch->composed[2] = write_number(batch->text, batch->sum);
	batch->argc = 3;
}

/* The last SET as it came, unless something was added to its value; its expiry stays in any case. */
static void finish_set(struct hs_fold_batch *batch)
{
	const struct hs_fold_member *set = NULL;
	struct hs_fold_value value = {0};

	hs_list_each(const struct hs_fold_member, ask, &batch->asks, link) {
		if (ask->kind == HS_FOLD_SET) {
			set = ask;
			hs_fold_value_set(&value, ask);
		} else if (ask->kind == HS_FOLD_ADD) {
			(void)hs_fold_value_add(&value, ask->number);
		}
	}
	hs_check(set); /* it begins with one */
	if (value.is_number && !hs_fold_is_far_from_overflow(value.number))
		batch->fold->far_from_overflow = false;
	if (!value.changed) {
		send_ask(batch, set);
		return;
	}
	send_composed(batch, HS_CMD_ID_SET, HS_LIT("SET"), set);
	batch->composed[2] = write_number(batch->text, value.number);
	for (size_t i = 3; i < set->argc; i++)
		batch->composed[i] = set->argv[i];
}

static void finish(struct hs_fold_batch *batch)
{
	hs_list_each(struct hs_fold_member, ask, &batch->asks, link) {
		struct hs_fold_client *client = ask->client;

		*client = (struct hs_fold_client){.bound = client->bound,
						  .no_retry = client->no_retry};
	}
	if (batch->kind == HS_FOLD_READ || (batch->kind == HS_FOLD_ADD && batch->count == 1))
		send_ask(batch, ask_of(batch->asks.next));
	else if (batch->kind == HS_FOLD_ADD)
		finish_add(batch, ask_of(batch->asks.next));
	else
		finish_set(batch);
}

bool hs_fold_is_simple(const struct hs_fold_member *ask)
{
	return ask->kind != HS_FOLD_SET &&
	       (ask->kind != HS_FOLD_ADD || magnitude(ask->number) < LEAP);
}

void hs_fold_plan(struct hs_fold *fold, struct hs_link *plan)
{
	struct planner planner = {.fold = fold, .plan = plan, .epoch = 1};
	struct hs_link *before = plan->prev;

	if (hs_list_empty(&fold->waiting))
		return;
	hs_list_each_safe(struct hs_fold_member, ask, &fold->waiting, link) {
		struct hs_fold_batch *batch = ask->client->waits ? NULL : find_batch(&planner, ask);

		if (ask->client->batch && ask->client->batch != batch)
			ask->client->waits = true;
		else
			join(batch ? batch : new_batch(&planner, ask), ask);
	}
	for (struct hs_link *link = before->next; link != plan; link = link->next)
		finish(hs_list_entry(link, struct hs_fold_batch, link));
}

void hs_fold_free(struct hs_fold_batch **batch)
{
	if (!*batch)
		return;
	hs_check(hs_list_empty(&(*batch)->asks));
	hs_list_remove(&(*batch)->link);
	hs_mem_free(batch);
}
