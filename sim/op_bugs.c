/* Planted bugs of wrong request handling (sim/planted_bugs.h): the module sees each operation on its way to the
 * engine and back. */
#include "sim/op_bugs.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/prng.h"
#include "wire/reply.h"

enum {
	DELAY_US_MAX = 200,
	STRIKE_ONE_IN = 8,
	CELLS = 64,	   /* counters of keys, to find hot ones */
	HOT_FROM = 3,	   /* requests that make a key hot */
	COLD_AGAIN_AT = 9, /* its counter restarts, so that it turns hot again */
};

/* An operation in flight. */
struct pending_op {
	struct hs_op *op;
	struct pending_op *leader; /* the operation whose reply it takes; NULL: it gets its own */
	struct pending_op *next;
};

struct hs_sim_op_bugs {
	enum hs_sim_bug bug;
	struct hs_sim_op_bugs_host host;
	struct hs_prng prng;
	struct pending_op *pending_ops; /* newest first */
	/* Operations that are held back, in order. */
	struct hs_op *held;
	struct hs_op **held_last;
	uint64_t held_us; /* until when the last one is held */
	uint32_t asked[CELLS];
};

struct hs_sim_op_bugs *hs_sim_op_bugs_create(enum hs_sim_bug bug, uint64_t seed,
					     const struct hs_sim_op_bugs_host *host)
{
	struct hs_sim_op_bugs *op_bugs = hs_mem_zalloc(sizeof *op_bugs);

	op_bugs->bug = bug;
	op_bugs->host = *host;
	op_bugs->held_last = &op_bugs->held;
	hs_prng_init(&op_bugs->prng, seed);
	return op_bugs;
}

void hs_sim_op_bugs_destroy(struct hs_sim_op_bugs **pointer)
{
	if (!*pointer)
		return;
	hs_check(!(*pointer)->pending_ops);
	hs_mem_free(pointer);
}

/* --- kinds of operations --- */

static bool is_read(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND && (op->command->flags & HS_CMD_READONLY);
}

static bool is_increment(const struct hs_op *op)
{
	return op->kind == HS_OP_COMMAND &&
	       (op->command->id == HS_CMD_ID_INCR || op->command->id == HS_CMD_ID_DECR ||
		op->command->id == HS_CMD_ID_INCRBY || op->command->id == HS_CMD_ID_DECRBY);
}

static bool same_request(const struct hs_op *a, const struct hs_op *b)
{
	bool same = a->worker == b->worker && a->resp == b->resp && a->argc == b->argc &&
		    a->command == b->command && a->partition == b->partition;

	for (size_t i = 1; same && i < a->argc; i++)
		same = hs_bytes_equal(a->argv[i], b->argv[i]);
	return same;
}

static struct hs_bytes reply_of(const struct hs_op *op)
{
	return op->answer.len > 0 ? op->answer : hs_buf_bytes(op->out);
}

static void replace_reply(struct hs_op *op, const char *text)
{
	op->answer = (struct hs_bytes){NULL, 0};
	op->out->len = 0;
	hs_buf_append(op->out, text, strlen(text));
}

static bool begins(struct hs_bytes reply, const char *word)
{
	return reply.len >= strlen(word) && memcmp(reply.data, word, strlen(word)) == 0;
}

static bool strikes(struct hs_sim_op_bugs *op_bugs)
{
	return hs_prng_below(&op_bugs->prng, STRIKE_ONE_IN) == 0;
}

/* --- operations in flight --- */

static struct pending_op *add_request(struct hs_sim_op_bugs *op_bugs, struct hs_op *op)
{
	struct pending_op *pending_op = hs_mem_zalloc(sizeof *pending_op);

	pending_op->op = op;
	pending_op->next = op_bugs->pending_ops;
	op_bugs->pending_ops = pending_op;
	return pending_op;
}

static void unlink_pending(struct hs_sim_op_bugs *op_bugs, const struct pending_op *pending_op)
{
	struct pending_op **link = &op_bugs->pending_ops;

	while (*link != pending_op)
		link = &(*link)->next;
	*link = pending_op->next;
}

static struct pending_op *find_pending(const struct hs_sim_op_bugs *op_bugs, const struct hs_op *op)
{
	struct pending_op *pending_op = op_bugs->pending_ops;

	while (pending_op && pending_op->op != op)
		pending_op = pending_op->next;
	return pending_op;
}

/* An equal request in flight that gets its own reply. */
static struct pending_op *find_equal(const struct hs_sim_op_bugs *op_bugs, const struct hs_op *op)
{
	struct pending_op *pending_op = op_bugs->pending_ops;

	while (pending_op && (pending_op->leader || !same_request(pending_op->op, op)))
		pending_op = pending_op->next;
	return pending_op;
}

static bool is_being_incremented(const struct hs_sim_op_bugs *op_bugs, struct hs_bytes key)
{
	for (const struct pending_op *pending_op = op_bugs->pending_ops; pending_op;
	     pending_op = pending_op->next) {
		if (is_increment(pending_op->op) && hs_bytes_equal(pending_op->op->argv[1], key))
			return true;
	}
	return false;
}

/* --- to the engine --- */

static void send(struct hs_sim_op_bugs *op_bugs, struct hs_op *op)
{
	if (op_bugs->host.submit(op_bugs->host.context, op) == HS_SUBMIT_DONE)
		hs_sim_op_bugs_done(op_bugs, op);
}

static void let_go(void *context, void *target, uint64_t number)
{
	struct hs_sim_op_bugs *op_bugs = context;
	struct hs_op *op = op_bugs->held;

	(void)target, (void)number;
	op_bugs->held = op->next;
	if (!op_bugs->held)
		op_bugs->held_last = &op_bugs->held;
	op->ordered =
		true; /* submit has returned QUEUED: it must not be answered inside the call */
	send(op_bugs, op);
}

static enum hs_submit hold(struct hs_sim_op_bugs *op_bugs, struct hs_op *op)
{
	uint64_t at_us = op_bugs->host.now->mono_us + hs_prng_below(&op_bugs->prng, DELAY_US_MAX);

	if (at_us < op_bugs->held_us)
		at_us = op_bugs->held_us;
	op_bugs->held_us = at_us;
	op->next = NULL;
	*op_bugs->held_last = op;
	op_bugs->held_last = &op->next;
	add_request(op_bugs, op);
	hs_sim_events_plan(
		op_bugs->host.events,
		(struct hs_sim_event){.at_us = at_us, .run = let_go, .context = op_bugs});
	return HS_SUBMIT_QUEUED;
}

/* Whether the key counts as hot, by a crude counter. */
static bool is_hot(struct hs_sim_op_bugs *op_bugs, const struct hs_op *op)
{
	uint32_t *asked;

	if (op->kind != HS_OP_COMMAND || op->command->key_first == 0)
		return false;
	asked = &op_bugs->asked[hs_hash(op->argv[op->command->key_first], 0) % CELLS];
	*asked = (*asked + 1) % COLD_AGAIN_AT;
	return *asked >= HOT_FROM;
}

/* The only key of an operation; a transaction is taken to name only the key of its first command. */
static bool find_only_key(const struct hs_op *op, struct hs_bytes *key)
{
	const struct hs_command *command = op->command;
	const struct hs_bytes *argv = op->argv;
	size_t argc = op->argc, first, step;

	if (op->kind == HS_OP_EXEC) {
		command = op->tx->commands[0].command;
		argv = op->tx->commands[0].argv;
		argc = op->tx->commands[0].argc;
	} else if (op->kind != HS_OP_COMMAND) {
		return false;
	}
	if (hs_command_keys(command, argc, &first, &step) != 1)
		return false;
	*key = argv[first];
	return true;
}

/* Half of all keys are quick. */
static bool has_quick_key(const struct hs_op *op)
{
	struct hs_bytes key;

	return find_only_key(op, &key) && hs_hash(key, 0) % 2 == 0;
}

/* HS_SIM_OVERTAKE: whether the request overtakes everything that is held. Requests for one key stay in order; a
 * request for several keys, or none, is never overtaken. */
static bool is_quick(const struct hs_sim_op_bugs *op_bugs, const struct hs_op *op)
{
	struct hs_bytes key;

	for (const struct hs_op *held = op_bugs->held; held; held = held->next) {
		if (!find_only_key(held, &key) || has_quick_key(held))
			return false;
	}
	return has_quick_key(op);
}

enum hs_submit hs_sim_op_bugs_submit(struct hs_sim_op_bugs *op_bugs, struct hs_op *op)
{
	struct pending_op *leader = NULL;
	enum hs_submit submitted;

	if (!op->owner) /* a read that must be answered inside the call */
		return op_bugs->host.submit(op_bugs->host.context, op);
	if (op_bugs->bug == HS_SIM_JOINS_READ_IN_FLIGHT && is_read(op))
		leader = find_equal(op_bugs, op);
	if (leader) {
		add_request(op_bugs, op)->leader = leader;
		return HS_SUBMIT_QUEUED;
	}
	if (op_bugs->bug == HS_SIM_TWO_QUEUES && !is_read(op))
		return hold(op_bugs, op);
	if (op_bugs->bug == HS_SIM_OVERTAKE && !is_quick(op_bugs, op))
		return hold(op_bugs, op);
	if (op_bugs->bug == HS_SIM_DROP_ORDER && !is_hot(op_bugs, op))
		return hold(op_bugs, op);
	submitted = op_bugs->host.submit(op_bugs->host.context, op);
	if (submitted == HS_SUBMIT_QUEUED)
		add_request(op_bugs, op);
	return submitted;
}

/* --- and back --- */

static void answer_followers(struct hs_sim_op_bugs *op_bugs, const struct pending_op *leader,
			     struct hs_bytes reply)
{
	struct pending_op *pending_op = op_bugs->pending_ops;

	while (pending_op) {
		struct hs_op *op = pending_op->op;

		if (pending_op->leader != leader) {
			pending_op = pending_op->next;
			continue;
		}
		hs_buf_append_bytes(op->out, reply);
		unlink_pending(op_bugs, pending_op);
		hs_mem_free(&pending_op);
		op_bugs->host.done(op_bugs->host.context, op);
		pending_op = op_bugs->pending_ops; /* the list may have changed meanwhile */
	}
}

/* Spoils a reply. False: the operation was sent again. */
static bool spoil(struct hs_sim_op_bugs *op_bugs, struct hs_op *op)
{
	struct hs_bytes reply = reply_of(op);
	bool null = begins(reply, "$-1") || begins(reply, "_");
	bool dies = op_bugs->bug == HS_SIM_ASSERTION_FAILS && strikes(op_bugs);

	hs_check(!dies);
	if (op_bugs->bug == HS_SIM_RESEND_LOST && is_increment(op) && begins(reply, "-UNKNOWN")) {
		replace_reply(op, "");
		send(op_bugs, op);
		return false;
	}
	if (op_bugs->bug == HS_SIM_MISSING_AS_ZERO && op->command->id == HS_CMD_ID_GET && null &&
	    is_being_incremented(op_bugs, op->argv[1]))
		replace_reply(op, "$1\r\n0\r\n");
	if (op_bugs->bug == HS_SIM_REFUSED_BUT_RUN && op->kind == HS_OP_COMMAND && !is_read(op) &&
	    !begins(reply, "-") && strikes(op_bugs))
		replace_reply(op,
			      "-CLUSTERDOWN the simulated server does not answer; not sent\r\n");
	return true;
}

void hs_sim_op_bugs_done(struct hs_sim_op_bugs *op_bugs, struct hs_op *op)
{
	struct pending_op *pending_op = find_pending(op_bugs, op);
	struct hs_buf reply = {0};

	if (!spoil(op_bugs, op))
		return;
	if (op_bugs->bug == HS_SIM_JOINS_READ_IN_FLIGHT)
		hs_buf_append_bytes(&reply, reply_of(op));
	unlink_pending(op_bugs, pending_op);
	op_bugs->host.done(op_bugs->host.context, op);
	answer_followers(op_bugs, pending_op, hs_buf_bytes(&reply));
	hs_buf_deinit(&reply);
	hs_mem_free(&pending_op);
}
