/* Composes the requests of random clients. Values are unique numbers, so that a read shows which write it saw. */
#include "sim/load_internal.h"
#include "wire/compose.h"

#include <inttypes.h>
#include <stdio.h>

#define AMOUNT_MIN (INT64_C(1) << 40)

enum {
	TEXT_MAX = 96,
	TIED_ONE_IN = 3,
	VALUE_BYTES_MAX = 32,
	RANGES = 16, /* different ends of the same range: reads that are not equal */
};

struct hs_sim_request *hs_sim_actor_request(struct hs_sim_actor *actor, const char *request,
					    enum hs_sim_expect expect)
{
	struct hs_sim_request *composed =
		&actor->in_flight[actor->in_flight_tail++ % HS_SIM_IN_FLIGHT_MAX];

	hs_check(actor->in_flight_tail - actor->in_flight_head <= HS_SIM_IN_FLIGHT_MAX);
	hs_compose_line(&actor->outgoing, request);
	composed->expect = expect;
	composed->text = "OK";
	composed->number = 0;
	composed->watched = false;
	composed->lost = false;
	composed->keeps_watch = false;
	composed->tracks = composed->keeps = composed->may_fail = false;
	composed->end = actor->sent + actor->outgoing.len;
	composed->ops_count = 0;
	composed->touches = false;
	composed->flushes = false;
	hs_buf_deinit(&composed->instead);
	actor->load->requests++;
	return composed;
}

static void touch(struct hs_sim_request *composed, uint32_t key)
{
	composed->touches = true;
	composed->touched = key;
}

void hs_sim_actor_add_op(struct hs_sim_actor *actor, struct hs_sim_request *composed,
			 const struct hs_sim_op *op)
{
	struct hs_sim_op *added = &composed->ops[composed->ops_count++];

	*added = *op;
	added->client = actor->number;
	added->answered = HS_SIM_NEVER;
	added->refusable = actor->load->options.busy || actor->load->options.full ||
			   actor->load->options.extremes;
	added->loose = actor->load->options.faults;
}

/* --- single operations --- */

/* Weights of the kinds. Mostly what can be folded: */
static const uint8_t narrow[HS_SIM_KINDS] = {
	[HS_SIM_GETRANGE] = 2, [HS_SIM_GET] = 6,    [HS_SIM_SET] = 4,	 [HS_SIM_SETNX] = 1,
	[HS_SIM_GETSET] = 1,   [HS_SIM_DEL] = 1,    [HS_SIM_GETDEL] = 1, [HS_SIM_INCRBY] = 8,
	[HS_SIM_STRLEN] = 1,   [HS_SIM_EXISTS] = 1, [HS_SIM_PTTL] = 1,	 [HS_SIM_PEXPIRE] = 1,
};
/* Everything: */
static const uint8_t wide[HS_SIM_KINDS] = {
	[HS_SIM_GETRANGE] = 1, [HS_SIM_GET] = 6,      [HS_SIM_SET] = 6,	     [HS_SIM_SETNX] = 2,
	[HS_SIM_GETSET] = 2,   [HS_SIM_DEL] = 2,      [HS_SIM_GETDEL] = 2,   [HS_SIM_INCRBY] = 3,
	[HS_SIM_SETXX] = 1,    [HS_SIM_SETNXGET] = 1, [HS_SIM_SETXXGET] = 1, [HS_SIM_STRLEN] = 1,
	[HS_SIM_EXISTS] = 1,   [HS_SIM_PTTL] = 1,     [HS_SIM_TTL] = 1,	     [HS_SIM_PEXPIRE] = 1,
	[HS_SIM_PERSIST] = 1,
};

/* Times to live, and reads that show whether they are over: */
static const uint8_t timed[HS_SIM_KINDS] = {
	[HS_SIM_GET] = 6,     [HS_SIM_SET] = 6,	    [HS_SIM_GETSET] = 1,
	[HS_SIM_DEL] = 1,     [HS_SIM_INCRBY] = 2,  [HS_SIM_PTTL] = 6,
	[HS_SIM_PEXPIRE] = 4, [HS_SIM_PERSIST] = 4, [HS_SIM_EXISTS] = 4,
};

static enum hs_sim_kind pick_kind(struct hs_sim_load *load)
{
	const uint8_t *often = load->options.timed ? timed : load->options.narrow ? narrow : wide;
	uint64_t sum = 0, number;
	int kind = 0;

	for (int i = 0; i < HS_SIM_KINDS; i++)
		sum += often[i];
	number = hs_sim_load_draw(load, sum);
	while (number >= often[kind])
		number -= often[kind++];
	if (kind == HS_SIM_PEXPIRE && load->options.ttl_ms_max == 0)
		kind = HS_SIM_GET;
	return (enum hs_sim_kind)kind;
}

static bool sets(enum hs_sim_kind kind)
{
	return kind == HS_SIM_SET || kind == HS_SIM_SETNX || kind == HS_SIM_SETXX ||
	       kind == HS_SIM_GETSET || kind == HS_SIM_SETNXGET || kind == HS_SIM_SETXXGET;
}

int64_t hs_sim_load_value(struct hs_sim_load *load)
{
	return load->values += HS_SIM_VALUE_STEP;
}

/* Values are unique, except those near the limits. */
static int64_t pick_value(struct hs_sim_load *load)
{
	int64_t value = hs_sim_load_value(load);

	if (!load->options.extremes)
		return value;
	switch (hs_sim_load_draw(load, 8)) {
	case 0:
		return HS_SIM_TEXT + value;
	case 1:
		return INT64_MAX - (int64_t)hs_sim_load_draw(load, 4);
	case 2:
		return INT64_MIN + (int64_t)hs_sim_load_draw(load, 4);
	default:
		return value;
	}
}

static int64_t pick_increment(struct hs_sim_load *load)
{
	int64_t by = 1 + (int64_t)hs_sim_load_draw(load, 3);

	/* Large and random, so that hardly any amount occurs twice: sim/duplicates.h relies on it. */
	if (load->world->cluster)
		by = AMOUNT_MIN + (int64_t)hs_sim_load_draw(load, AMOUNT_MIN);
	if (load->options.extremes && hs_sim_load_draw(load, 16) == 0)
		by = INT64_MAX / 2;
	/* An increment and its opposite in one batch change nothing, which sim/check_stale.c does not notice.
	 * So there are no negative increments where keys have rules. */
	return hs_sim_load_draw(load, 3) == 0 && !hs_sim_load_has_rules(load) ? -by : by;
}

static int64_t pick_ttl(struct hs_sim_load *load, enum hs_sim_kind kind)
{
	uint32_t most = load->options.ttl_ms_max;

	if (most == 0 || (kind != HS_SIM_PEXPIRE && hs_sim_load_draw(load, 3) > 0))
		return 0;
	if (hs_sim_load_draw(load, 8) == 0)
		return 1000; /* for commands that take seconds */
	return 1 + (int64_t)hs_sim_load_draw(load, most);
}

static struct hs_sim_op pick_op(struct hs_sim_load *load, enum hs_sim_kind kind, uint32_t key)
{
	struct hs_sim_op op = {.kind = kind, .key = key};

	if (sets(kind))
		op.argument = pick_value(load);
	if (kind == HS_SIM_INCRBY)
		op.argument = pick_increment(load);
	if (sets(kind) || kind == HS_SIM_PEXPIRE)
		op.ttl_ms = pick_ttl(load, kind);
	return op;
}

static void write_set(struct hs_sim_load *load, const struct hs_sim_op *op, const char *name,
		      char *text, size_t size)
{
	const char *words = op->kind == HS_SIM_SETNX	  ? " NX"
			    : op->kind == HS_SIM_SETXX	  ? " XX"
			    : op->kind == HS_SIM_GETSET	  ? " GET"
			    : op->kind == HS_SIM_SETNXGET ? " NX GET"
			    : op->kind == HS_SIM_SETXXGET ? " XX GET"
							  : "";
	bool old = op->ttl_ms == 0 && hs_sim_load_draw(load, 2) == 0;
	bool is_text = op->argument >= HS_SIM_TEXT && op->argument < HS_SIM_TEXT_END;
	char value[32];
	int len;

	snprintf(value, sizeof value, "%s%" PRId64, is_text ? "t" : "",
		 is_text ? op->argument - HS_SIM_TEXT : op->argument);
	if (old && (op->kind == HS_SIM_SETNX || op->kind == HS_SIM_GETSET)) {
		snprintf(text, size, "%s %s %s", op->kind == HS_SIM_SETNX ? "SETNX" : "GETSET",
			 name, value);
		return;
	}
	len = snprintf(text, size, "SET %s %s%s", name, value, words);
	if (op->ttl_ms == 1000)
		snprintf(text + len, size - (size_t)len, " EX 1");
	else if (op->ttl_ms > 0)
		snprintf(text + len, size - (size_t)len, " PX %" PRId64, op->ttl_ms);
}

static void write_increment(struct hs_sim_load *load, const struct hs_sim_op *op, const char *name,
			    char *text, size_t size)
{
	bool shortly = (op->argument == 1 || op->argument == -1) && hs_sim_load_draw(load, 4) > 0;
	bool down = op->argument < 0 && hs_sim_load_draw(load, 4) > 0;

	if (shortly)
		snprintf(text, size, "%s %s", op->argument < 0 ? "DECR" : "INCR", name);
	else
		snprintf(text, size, "%s %s %" PRId64, down ? "DECRBY" : "INCRBY", name,
			 down ? -op->argument : op->argument);
}

static void write_op(struct hs_sim_load *load, const struct hs_sim_op *op, char *text, size_t size)
{
	static const char *const names[HS_SIM_KINDS] = {
		[HS_SIM_GET] = "GET",	    [HS_SIM_DEL] = "DEL",
		[HS_SIM_GETDEL] = "GETDEL", [HS_SIM_STRLEN] = "STRLEN",
		[HS_SIM_EXISTS] = "EXISTS", [HS_SIM_PTTL] = "PTTL",
		[HS_SIM_TTL] = "TTL",	    [HS_SIM_PERSIST] = "PERSIST",
	};

	char key[HS_SIM_NAME_BYTES_MAX];
	const char *name = hs_sim_load_name(load, op->key, key);

	if (sets(op->kind))
		write_set(load, op, name, text, size);
	else if (op->kind == HS_SIM_INCRBY)
		write_increment(load, op, name, text, size);
	else if (op->kind == HS_SIM_GETRANGE)
		snprintf(text, size, "GETRANGE %s 0 %d", name,
			 hs_sim_load_draw(load, 2) == 0
				 ? -1
				 : VALUE_BYTES_MAX + (int)hs_sim_load_draw(load, RANGES));
	else if (op->kind == HS_SIM_PEXPIRE)
		snprintf(text, size, "PEXPIRE %s %" PRId64, name, op->ttl_ms);
	else
		snprintf(text, size, "%s %s", names[op->kind], name);
}

static uint32_t pick_register(struct hs_sim_load *load)
{
	return (uint32_t)hs_sim_load_draw(load, load->options.registers);
}

static struct hs_sim_request *compose_op(struct hs_sim_actor *actor, const struct hs_sim_op *op)
{
	struct hs_sim_request *composed;
	char text[TEXT_MAX];

	write_op(actor->load, op, text, sizeof text);
	composed = hs_sim_actor_request(actor, text, HS_SIM_EXPECT_ANSWER);
	hs_sim_actor_add_op(actor, composed, op);
	return composed;
}

struct hs_sim_request *hs_sim_actor_compose_single(struct hs_sim_actor *actor,
						   enum hs_sim_kind kind, uint32_t key)
{
	struct hs_sim_op op = pick_op(actor->load, kind, key);

	return compose_op(actor, &op);
}

static void compose_any(struct hs_sim_actor *actor)
{
	enum hs_sim_kind kind = pick_kind(actor->load);

	hs_sim_actor_compose_single(actor, kind, pick_register(actor->load));
}

static void compose_counter(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t key =
		load->options.registers + (uint32_t)hs_sim_load_draw(load, load->options.counters);
	struct hs_sim_op op = {.kind = HS_SIM_INCRBY, .key = key, .argument = 1};

	if (hs_sim_load_draw(load, 4) == 0)
		op.kind = HS_SIM_GET;
	compose_op(actor, &op);
}

/* --- several at once --- */

/* MGET or MSET of a few different keys. */
void hs_sim_actor_compose_several(struct hs_sim_actor *actor, bool set)
{
	struct hs_sim_load *load = actor->load;
	uint32_t keys = load->options.registers;
	uint32_t first = pick_register(load);
	uint32_t count = 1 + (uint32_t)hs_sim_load_draw(load, keys < HS_SIM_REQUEST_OPS_MAX
								      ? keys
								      : HS_SIM_REQUEST_OPS_MAX);
	int64_t values[HS_SIM_REQUEST_OPS_MAX];
	char text[256], name[HS_SIM_NAME_BYTES_MAX];
	int len = snprintf(text, sizeof text, "%s", set ? "MSET" : "MGET");

	for (uint32_t i = 0; i < count; i++) {
		values[i] = set ? (load->values += HS_SIM_VALUE_STEP) : 0;
		len += snprintf(text + len, sizeof text - (size_t)len, " %s",
				hs_sim_load_name(load, (first + i) % keys, name));
		if (set)
			len += snprintf(text + len, sizeof text - (size_t)len, " %" PRId64,
					values[i]);
	}

	struct hs_sim_request *composed = hs_sim_actor_request(
		actor, text, set ? HS_SIM_EXPECT_STATUS : HS_SIM_EXPECT_ANSWERS);

	for (uint32_t i = 0; i < count; i++) {
		const struct hs_sim_op op = {
			.kind = set ? HS_SIM_SET : HS_SIM_GET,
			.key = (first + i) % keys,
			.argument = values[i],
		};

		hs_sim_actor_add_op(actor, composed, &op);
	}
}

static void compose_watch(struct hs_sim_actor *actor, uint32_t key)
{
	char text[TEXT_MAX], name[HS_SIM_NAME_BYTES_MAX];

	snprintf(text, sizeof text, "WATCH %s", hs_sim_load_name(actor->load, key, name));
	touch(hs_sim_actor_request(actor, text, HS_SIM_EXPECT_STATUS), key);
	hs_sim_actor_compose_single(actor, HS_SIM_GET, key)->keeps_watch = true;
}

/* Operations on one key form one atomic group. */
static void group_by_key(struct hs_sim_request *exec)
{
	for (uint32_t first = 0, next; first < exec->ops_count; first = next) {
		for (next = first;
		     next < exec->ops_count && exec->ops[next].key == exec->ops[first].key;)
			next++;
		exec->ops[first].more = next - first - 1;
		exec->ops[first].refusable = exec->ops[first].refusable || exec->watched;
	}
}

static void compose_exec(struct hs_sim_actor *actor, const struct hs_sim_op *ops, uint32_t count,
			 const uint32_t *watched)
{
	struct hs_sim_request *exec = hs_sim_actor_request(actor, "EXEC", HS_SIM_EXPECT_EXEC);

	exec->watched = watched != NULL;
	if (watched)
		hs_sim_actor_add_op(actor, exec,
				    &(struct hs_sim_op){.kind = HS_SIM_GET, .key = *watched});
	for (uint32_t i = 0; i < count; i++)
		hs_sim_actor_add_op(actor, exec, &ops[i]);
	group_by_key(exec);
}

static void compose_queued(struct hs_sim_actor *actor, const struct hs_sim_op *op)
{
	char text[TEXT_MAX];

	write_op(actor->load, op, text, sizeof text);
	hs_sim_actor_request(actor, text, HS_SIM_EXPECT_STATUS)->text = "QUEUED";
}

/* MULTI, one command, EXEC. */
void hs_sim_actor_compose_in_exec(struct hs_sim_actor *actor, enum hs_sim_kind kind, uint32_t key)
{
	struct hs_sim_op op = pick_op(actor->load, kind, key);

	hs_sim_actor_request(actor, "MULTI", HS_SIM_EXPECT_STATUS);
	compose_queued(actor, &op);
	compose_exec(actor, &op, 1, NULL);
}

/* A key of the same slot, perhaps the key itself. */
static uint32_t pick_companion(struct hs_sim_load *load, uint32_t key)
{
	uint32_t tied = load->world->options.tied;

	return tied > 0 && key <= tied ? (uint32_t)hs_sim_load_draw(load, tied + 1) : key;
}

/* [WATCH key, GET key,] MULTI, one to three commands, the last ones perhaps on another key, EXEC or DISCARD. A
 * watched transaction that ran shows that the key still had the value of the GET: it is checked as if it began with
 * that GET. */
void hs_sim_actor_compose_transaction(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint32_t key = pick_register(load);
	bool watched = load->options.watches || hs_sim_load_draw(load, 2) == 0;
	uint32_t count = 1 + (uint32_t)hs_sim_load_draw(load, HS_SIM_REQUEST_OPS_MAX - 1);
	uint32_t other = pick_companion(load, key);
	uint32_t own = other != key ? (uint32_t)hs_sim_load_draw(load, count) : count;
	struct hs_sim_op ops[HS_SIM_REQUEST_OPS_MAX];

	if (watched)
		compose_watch(actor, key);
	hs_sim_actor_request(actor, "MULTI", HS_SIM_EXPECT_STATUS);
	for (uint32_t i = 0; i < count; i++) {
		ops[i] = pick_op(load, pick_kind(load), i < own ? key : other);
		compose_queued(actor, &ops[i]);
	}
	if (hs_sim_load_draw(load, load->options.watches ? 2 : 6) == 0)
		hs_sim_actor_request(actor, "DISCARD", HS_SIM_EXPECT_STATUS);
	else
		compose_exec(actor, ops, count, watched ? &key : NULL);
}

/* Requests that say nothing about data, but have a place in the order of replies. */
static void compose_other(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	struct hs_sim_request *composed;
	char text[64];

	switch (hs_sim_load_draw(load, 6)) {
	case 0:
		touch(hs_sim_actor_request(actor, "DBSIZE", HS_SIM_EXPECT_NUMBER), HS_SIM_NO_KEY);
		break;
	case 1:
		hs_sim_actor_request(actor, "SLOWLOG LEN", HS_SIM_EXPECT_NUMBER);
		break;
	case 2:
		hs_sim_actor_request(actor, "CLIENT REPLY SKIP", HS_SIM_EXPECT_SILENCE);
		hs_sim_actor_compose_single(actor, HS_SIM_SET, pick_register(load))->expect =
			HS_SIM_EXPECT_SILENCE;
		break;
	default:
		snprintf(text, sizeof text, "ECHO %" PRIu64, load->requests);
		composed = hs_sim_actor_request(actor, text, HS_SIM_EXPECT_ECHO);
		composed->number = load->requests - 1;
	}
}

void hs_sim_actor_compose_get(struct hs_sim_actor *actor, uint32_t key)
{
	hs_sim_actor_compose_single(actor, HS_SIM_GET, key);
}

void hs_sim_actor_compose(struct hs_sim_actor *actor)
{
	struct hs_sim_load *load = actor->load;
	uint64_t choice = hs_sim_load_draw(load, 20);

	if (hs_sim_load_has_rules(load)) {
		actor->requests_left--;
		hs_sim_actor_compose_ruled(actor);
		return;
	}
	if (load->world->options.tied > 0 && hs_sim_load_draw(load, TIED_ONE_IN) == 0)
		choice = 9 + hs_sim_load_draw(load, 7); /* several keys of one slot */
	/* Mostly what can be folded. */
	else if (load->options.narrow && choice < 18)
		choice /= 2;
	actor->requests_left--;
	if (load->options.watches && hs_sim_load_draw(load, 2) == 0)
		choice = 12; /* a transaction */
	if (choice < 6 || (choice < 9 && load->options.counters == 0))
		compose_any(actor);
	else if (choice < 9)
		compose_counter(actor);
	else if (choice < 12)
		hs_sim_actor_compose_several(actor, hs_sim_load_draw(load, 2) == 0);
	else if (choice < 16 || load->options.narrow)
		hs_sim_actor_compose_transaction(actor);
	else
		compose_other(actor);
}
