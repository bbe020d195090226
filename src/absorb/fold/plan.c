/* The queue of a key, and the plan: the batches to send next. The planner walks over the waiting members, oldest
 * first, and looks for a batch that the member may join. At most two batches are candidates. First, the plan's
 * last batch, if this is a write batch from whose value the member's answer can be computed. Second, for a read, a
 * batch of equal reads, if no write batch was begun after it.
 *
 *     GET k  TTL k  GET k  INCR k  GET k  INCR k  TTL k  INCR k
 *     └ 1 ── 2 ──── 1      └ 3 ─── 3 ──── 3       4      5
 *
 * (eight clients; the numbers are batches)
 *
 * If a client already is in one batch and the next request of this client would need another batch, the planner
 * leaves this request and all later requests of the client for the next plan. Requests of other clients pass it.
 * So if many clients send INCR and TTL alternately, one plan has all INCRs and the next plan has all TTLs.
 *
 * An epoch is the part of a plan between two write batches: reads of one epoch may change places. A small hash
 * table (`cells`) finds the batch of equal reads in the epoch. When CELLS_USED cells are in use, each further read
 * without an equal batch gets a batch that is not in the table, so later equal reads do not join it. */
#include "absorb/fold/fold.h"

#include "absorb/fold/value.h"
#include "base/check.h"
#include "base/mem.h"

enum {
	CELLS = 64,	 /* a power of two */
	CELLS_USED = 48, /* the other cells stay empty, so that probing ends soon */
};

/* From a number far from the int64 limits (less than 2^61 in magnitude), adds smaller than this must move the
 * number at least 24576 times, all in one direction, to reach a limit. So smaller adds leave `far_from_overflow`
 * set. */
#define LARGE_ADD (UINT64_C(1) << 48)

struct planner {
	struct hs_fold *fold;
	struct hs_link *plan;
	struct hs_fold_batch *last; /* the plan's newest batch; NULL: no batch yet */
	/* a cell is in use if its epoch equals this one; epochs count from 1 */
	uint32_t epoch;
	uint32_t used;
	struct {
		uint32_t epoch;
		struct hs_fold_batch *batch;
	} cells[CELLS];
};

static struct hs_fold_member *member_of(struct hs_link *link)
{
	return hs_list_entry(link, struct hs_fold_member, link);
}

void hs_fold_init(struct hs_fold *fold)
{
	*fold = (struct hs_fold){0};
	hs_list_init(&fold->waiting);
}

void hs_fold_add(struct hs_fold *fold, struct hs_fold_member *member)
{
	hs_check(member->kind != HS_FOLD_NOT);
	hs_check(member->client);
	hs_list_append(&fold->waiting, &member->link);
}

/* Whether the two reads are equal. Does not compare argv[0], because a command's name may be written in any case.
 * The signature only avoids most comparisons. */
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

/* Index of the cell with the batch of equal reads in this epoch, or, if there is no such batch, of the empty cell
 * to put it in. */
static size_t find_cell(const struct planner *planner, const struct hs_fold_member *member)
{
	size_t at = (size_t)member->signature % CELLS;

	while (planner->cells[at].epoch == planner->epoch &&
	       !is_same_read(member_of(planner->cells[at].batch->members.next), member))
		at = (at + 1) % CELLS;
	return at;
}

static uint64_t magnitude(int64_t number)
{
	return number < 0 ? -(uint64_t)number : (uint64_t)number;
}

static bool adds_up(const struct hs_fold_batch *batch, const struct hs_fold_member *member)
{
	uint64_t more = magnitude(member->number);

	if (member->client->sign * hs_fold_sign(member->number) < 0)
		return false;
	return more < HS_FOLD_MAGNITUDES_MAX &&
	       batch->magnitude_sum < HS_FOLD_MAGNITUDES_MAX - more;
}

/* Whether the member needs a batch of its own: an add with `no_retry` near the int64 limits. If the net sum of a
 * shared batch overflowed, this add would have to be sent again. */
static bool must_be_alone(const struct hs_fold *fold, const struct hs_fold_member *member)
{
	return member->client->no_retry && member->kind == HS_FOLD_ADD && !fold->far_from_overflow;
}

/* Whether the batch can be sent in a RESP version that all its members allow. Replies to writes are equal in RESP2
 * and RESP3, so a write batch may mix both. But each RESP version has a server connection of its own, and only
 * requests on one connection keep their order. So a member whose client has `fixed_dialect` cannot join a batch of
 * the other version, nor a mixed batch. */
static bool fits_dialect(const struct hs_fold_batch *batch, const struct hs_fold_member *member)
{
	if (member->resp != batch->resp)
		return !batch->fixed_dialect && !member->client->fixed_dialect;
	return !batch->mixed_dialects || !member->client->fixed_dialect;
}

/* Whether the member's answer can be computed from the value of the plan's last batch. */
static bool follows(const struct hs_fold_batch *last, const struct hs_fold_member *member)
{
	if (!last || last->kind == HS_FOLD_READ || last->sole || !fits_dialect(last, member))
		return false;
	if (member->client->no_retry &&
	    (member->kind != last->kind || must_be_alone(last->fold, member)))
		return false;
	switch (member->kind) {
	case HS_FOLD_GET:
	case HS_FOLD_STRLEN:
	case HS_FOLD_EXISTS:
		return true;
	case HS_FOLD_TTL:
	case HS_FOLD_SET:
		return last->kind == HS_FOLD_SET;
	case HS_FOLD_ADD:
		return last->kind == HS_FOLD_SET || adds_up(last, member);
	case HS_FOLD_READ:
	case HS_FOLD_NOT:
		break;
	}
	return false;
}

static bool is_write(const struct hs_fold_member *member)
{
	return member->kind == HS_FOLD_ADD || member->kind == HS_FOLD_SET;
}

/* The batch that the member may join; NULL: a new batch is needed. */
static struct hs_fold_batch *find_batch(const struct planner *planner,
					const struct hs_fold_member *member)
{
	size_t cell;

	if (follows(planner->last, member))
		return planner->last;
	if (is_write(member))
		return NULL;
	cell = find_cell(planner, member);
	return planner->cells[cell].epoch == planner->epoch ? planner->cells[cell].batch : NULL;
}

static struct hs_fold_batch *new_batch(struct planner *planner, const struct hs_fold_member *member)
{
	struct hs_fold_batch *batch = hs_mem_zalloc(sizeof *batch);
	size_t cell;

	batch->fold = planner->fold;
	batch->kind = is_write(member) ? member->kind : HS_FOLD_READ;
	batch->resp = member->resp;
	batch->sole = must_be_alone(planner->fold, member);
	hs_list_init(&batch->members);
	hs_list_append(planner->plan, &batch->link);
	planner->last = batch;
	if (is_write(member)) {
		planner->epoch++;
		planner->used = 0;
	} else if (planner->used < CELLS_USED) {
		cell = find_cell(planner, member);
		planner->cells[cell].epoch = planner->epoch;
		planner->cells[cell].batch = batch;
		planner->used++;
	}
	return batch;
}

static void join(struct hs_fold_batch *batch, struct hs_fold_member *member)
{
	hs_list_remove(&member->link);
	hs_list_append(&batch->members, &member->link);
	batch->count++;
	member->no_retry = member->client->no_retry;
	batch->mixed_dialects = batch->mixed_dialects || member->resp != batch->resp;
	batch->fixed_dialect = batch->fixed_dialect || member->client->fixed_dialect;
	if (batch->kind == HS_FOLD_ADD && member->kind == HS_FOLD_ADD) {
		batch->sum += member->number;
		batch->magnitude_sum += magnitude(member->number);
		if (batch->magnitude_sum >= LARGE_ADD)
			batch->fold->far_from_overflow = false; /* not known until the reply */
		if (member->number != 0)
			member->client->sign = hs_fold_sign(member->number);
	}
	member->client->batch = batch;
}

static void set_command(struct hs_fold_batch *batch, const struct hs_fold_member *member)
{
	batch->command = member->command;
	batch->argv = member->argv;
	batch->argc = member->argc;
	batch->raw = member->raw;
	batch->resp = member->resp;
}

/* Makes the batch send the command in `composed`, to the key of `member`, instead of the member's own command. */
static void set_composed_command(struct hs_fold_batch *batch, enum hs_command_id id,
				 struct hs_bytes name, const struct hs_fold_member *member)
{
	set_command(batch, member);
	batch->command = hs_command_by_id(id);
	batch->raw = (struct hs_bytes){0};
	batch->composed[0] = name;
	batch->composed[1] = member->argv[1];
	batch->argv = batch->composed;
}

static struct hs_bytes write_number(char text[HS_NUM_TEXT_MAX], int64_t number)
{
	return (struct hs_bytes){text, hs_num_format_int(number, text)};
}

static void finish_add(struct hs_fold_batch *batch, const struct hs_fold_member *first)
{
	set_composed_command(batch, HS_CMD_ID_INCRBY, HS_LIT("INCRBY"), first);
	batch->composed[2] = write_number(batch->text, batch->sum);
	batch->argc = 3;
}

/* The batch sends its last SET unchanged if no add follows this SET; else a SET of the computed number with the
 * last SET's expiry. */
static void finish_set(struct hs_fold_batch *batch)
{
	const struct hs_fold_member *set = NULL;
	struct hs_fold_value value = {0};

	hs_list_each(const struct hs_fold_member, member, &batch->members, link) {
		if (member->kind == HS_FOLD_SET) {
			set = member;
			hs_fold_value_set(&value, member);
		} else if (member->kind == HS_FOLD_ADD) {
			(void)hs_fold_value_add(&value, member->number);
		}
	}
	hs_check(set); /* a set batch begins with a SET */
	if (value.is_number && !hs_fold_is_far_from_overflow(value.number))
		batch->fold->far_from_overflow = false;
	if (!value.changed) {
		set_command(batch, set);
		return;
	}
	set_composed_command(batch, HS_CMD_ID_SET, HS_LIT("SET"), set);
	batch->composed[2] = write_number(batch->text, value.number);
	for (size_t i = 3; i < set->argc; i++)
		batch->composed[i] = set->argv[i];
}

static void finish(struct hs_fold_batch *batch)
{
	hs_list_each(struct hs_fold_member, member, &batch->members, link) {
		struct hs_fold_client *client = member->client;

		*client = (struct hs_fold_client){.fixed_dialect = client->fixed_dialect,
						  .no_retry = client->no_retry};
	}
	if (batch->kind == HS_FOLD_READ || (batch->kind == HS_FOLD_ADD && batch->count == 1))
		set_command(batch, member_of(batch->members.next));
	else if (batch->kind == HS_FOLD_ADD)
		finish_add(batch, member_of(batch->members.next));
	else
		finish_set(batch);
}

bool hs_fold_is_simple(const struct hs_fold_member *member)
{
	return member->kind != HS_FOLD_SET &&
	       (member->kind != HS_FOLD_ADD || magnitude(member->number) < LARGE_ADD);
}

void hs_fold_plan(struct hs_fold *fold, struct hs_link *plan)
{
	struct planner planner = {.fold = fold, .plan = plan, .epoch = 1};
	struct hs_link *before = plan->prev;

	if (hs_list_empty(&fold->waiting))
		return;
	hs_list_each_safe(struct hs_fold_member, member, &fold->waiting, link) {
		struct hs_fold_batch *batch =
			member->client->waits ? NULL : find_batch(&planner, member);

		if (member->client->batch && member->client->batch != batch)
			member->client->waits = true;
		else
			join(batch ? batch : new_batch(&planner, member), member);
	}
	for (struct hs_link *link = before->next; link != plan; link = link->next)
		finish(hs_list_entry(link, struct hs_fold_batch, link));
}

void hs_fold_free(struct hs_fold_batch **batch)
{
	if (!*batch)
		return;
	hs_check(hs_list_empty(&(*batch)->members));
	hs_list_remove(&(*batch)->link);
	hs_mem_free(batch);
}
