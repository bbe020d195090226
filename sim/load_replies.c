/* Compares a reply with the request whose turn it is (law 1), and records its answer or outcome in the history. */
#include "sim/load_internal.h"

#include "base/num.h"
#include "wire/parse_reply.h"

#include <inttypes.h>

/* --- errors --- */

static bool has(struct hs_bytes text, const char *word)
{
	return memmem(text.data, text.len, word, strlen(word)) != NULL;
}

static bool begins(struct hs_bytes text, const char *word)
{
	return text.len >= strlen(word) && memcmp(text.data, word, strlen(word)) == 0;
}

/* Errors of Cluster servers for commands that they did not run; heatsink passes them on when its retries are over. */
static bool is_refusal(const struct hs_sim_load *load, struct hs_bytes text)
{
	static const char *const words[] = {"CLUSTERDOWN ", "TRYAGAIN ", "LOADING ",
					    "MASTERDOWN ",  "READONLY ", "EXECABORT "};

	for (size_t i = 0; load->world->cluster && i < sizeof words / sizeof *words; i++) {
		if (begins(text, words[i]))
			return true;
	}
	return false;
}

/* Whether this world allows the error; sets the outcome to refused or unknown. */
static bool read_error(const struct hs_sim_load *load, struct hs_bytes text,
		       struct hs_sim_request *request)
{
	if (begins(text, "UNKNOWN ")) {
		request->outcome = HS_SIM_OUTCOME_UNKNOWN;
		return load->options.faults || load->options.full;
	}
	request->outcome = HS_SIM_OUTCOME_REFUSED;
	if (begins(text, "OOM ")) {
		/* The other partitions may have run their part of an MSET. */
		if (request->expect == HS_SIM_EXPECT_STATUS && request->ops_count > 1)
			request->outcome = HS_SIM_OUTCOME_UNKNOWN;
		return load->options.full;
	}
	if (request->flushes) /* other masters may have run it */
		request->outcome = HS_SIM_OUTCOME_UNKNOWN;
	/* fold did not know that a number is near its limit, and a later command was sent already. */
	if (begins(text, "BUSY ") && has(text, "sent already"))
		return load->options.extremes && has(text, "not run");
	if (begins(text, "BUSY ") && has(text, "fold-waiters-max"))
		return load->options.busy && has(text, "not run");
	if (begins(text, "BUSY ") && has(text, "connections for blocking commands"))
		return load->world->cluster != NULL;
	/* X.BOTH while the slot of its keys moves. */
	if (begins(text, "ERR Script attempted to access a non local key"))
		return load->world->options.servers.moves;
	return load->options.faults && (has(text, "not sent") || is_refusal(load, text));
}

enum { TRIES_US = 1000000 }; /* some ten ticks: the engine retries with a tick */

/* Whether moving slots are the only fault. */
static bool only_moves(const struct hs_sim_servers_options *servers)
{
	return !servers->failovers && !servers->stalls && !servers->crashes &&
	       !servers->partitions && !servers->kills && !servers->deaths &&
	       servers->lose_one_in == 0 && servers->mute_one_in == 0;
}

/* heatsink retries a command whose slot is moving until engine-timeout is over, unless its client has sent a
 * later command, which may have run. A command for one key that the owner answers with ASK is served by the
 * other node, if all servers are healthy, its client sends one command at a time, and there is time for some
 * retries. Not checked: worlds with folding, where several clients' commands have one client id; and commands
 * after WATCH, whose connection retries nothing. */
static void check_retries(struct hs_sim_actor *actor, const struct hs_sim_request *request,
			  struct hs_bytes text)
{
	struct hs_sim_load *load = actor->load;
	const struct hs_sim_world_options *world = &load->world->options;
	uint64_t waited_us = (uint64_t)(load->world->now.wall_us - request->ops[0].asked_us);
	bool moves = begins(text, "CLUSTERDOWN ") && has(text, "migrating");
	bool asked = moves && load->options.depth_max == 1 && has(text, "(ASK ") &&
		     request->expect == HS_SIM_EXPECT_ANSWER &&
		     world->servers.timeout_us >= TRIES_US && only_moves(&world->servers);

	if (!load->world->cluster || world->core.fold || hs_sim_load_has_rules(load) ||
	    request->ops_count == 0 || request->watched ||
	    actor->in_flight_sent != actor->in_flight_head)
		return;
	if (asked || (waited_us < world->servers.timeout_us / 10 * 9 &&
		      (moves || begins(text, "TRYAGAIN "))))
		hs_sim_verdict_set(&load->verdict, HS_SIM_LAW_SERVES,
				   "client %u was refused key%u after %" PRIu64
				   " us, with no request behind it: %.*s",
				   actor->number, request->ops[0].key, waited_us,
				   (int)(text.len < 80 ? text.len : 80), text.data);
}

/* --- answers --- */

/* Reads a bulk string with a number or one of our texts, or a null. */
static bool read_value(const struct hs_parsed_reply *answer, int64_t *value)
{
	struct hs_bytes text = answer->text;

	*value = HS_SIM_NOTHING;
	if (answer->type == HS_PARSED_NULL)
		return true;
	if (answer->type != HS_PARSED_BULK)
		return false;
	if (text.len == 0 || text.data[0] != 't')
		return hs_num_parse_int(text, value);
	if (!hs_num_parse_int((struct hs_bytes){text.data + 1, text.len - 1}, value))
		return false;
	*value += HS_SIM_TEXT;
	return true;
}

/* Reads the error of an increment that failed because of the key's value. */
static bool read_failure(struct hs_bytes text, int64_t *value)
{
	if (begins(text, "ERR value is not an integer or out of range"))
		*value = HS_SIM_NOT_INTEGER;
	else if (begins(text, "ERR increment or decrement would overflow"))
		*value = HS_SIM_OVERFLOW;
	else
		return false;
	return true;
}

/* Reads the answer of one operation. */
static bool read_answer(struct hs_sim_op *op, const struct hs_parsed_reply *answer)
{
	switch (op->kind) {
	case HS_SIM_SET:
		return answer->type == HS_PARSED_STATUS;
	case HS_SIM_GETRANGE:
		if (answer->type == HS_PARSED_BULK && answer->text.len == 0) {
			op->answer = HS_SIM_NOTHING;
			return true;
		}
		return answer->type == HS_PARSED_BULK && read_value(answer, &op->answer);
	case HS_SIM_GET:
	case HS_SIM_GETSET:
	case HS_SIM_GETDEL:
	case HS_SIM_SETNXGET:
	case HS_SIM_SETXXGET:
		return read_value(answer, &op->answer);
	case HS_SIM_SETNX: /* SETNX answers a number, SET NX a status or null */
	case HS_SIM_SETXX:
		op->answer = answer->type == HS_PARSED_INT ? answer->integer
							   : answer->type == HS_PARSED_STATUS;
		return answer->type == HS_PARSED_INT || answer->type == HS_PARSED_STATUS ||
		       answer->type == HS_PARSED_NULL;
	case HS_SIM_INCRBY:
		if (answer->type == HS_PARSED_ERROR)
			return read_failure(answer->text, &op->answer);
		/* fall through */
	default:
		op->answer = answer->integer;
		return answer->type == HS_PARSED_INT;
	}
}

/* Reads an array with one element for each operation from `skip` on. */
static bool read_answers(struct hs_sim_actor *actor, struct hs_sim_request *request, uint32_t skip,
			 struct hs_bytes reply)
{
	struct hs_parsed_reply answer;
	int64_t used = hs_parse_reply_head(&answer, reply.data, reply.len);
	size_t at = (size_t)used;

	if (answer.type != HS_PARSED_ARRAY || answer.count != request->ops_count - skip)
		return false;
	for (uint32_t i = skip; i < request->ops_count; i++) {
		used = hs_parse_reply_head(&answer, reply.data + at, reply.len - at);
		hs_check(used > 0); /* the reply was parsed as a whole before */
		at += (size_t)used;
		if (!read_answer(&actor->load->history.ops[request->first + i], &answer))
			return false;
	}
	return true;
}

static bool read_exec(struct hs_sim_actor *actor, struct hs_sim_request *request,
		      struct hs_bytes reply)
{
	struct hs_sim_op *ops = &actor->load->history.ops[request->first];
	struct hs_parsed_reply answer;

	if (hs_parse_reply_head(&answer, reply.data, reply.len) > 0 &&
	    answer.type == HS_PARSED_NULL) {
		request->outcome = HS_SIM_OUTCOME_REFUSED;
		request->lost = true;
		if (!actor->watch_refused) { /* else the start of the watch is unknown */
			ops[0].watched = request->watched_from;
			ops[0].lost = actor->load->world->steps;
		}
		return request->watched;
	}
	if (request->watched && actor->watch_known && !actor->watch_refused)
		ops[0].answer = actor->watch_read;
	else if (request->watched)
		ops[0].kind = HS_SIM_NONE; /* the GET that followed WATCH had no answer */
	return read_answers(actor, request, request->watched ? 1 : 0, reply);
}

static bool read_single(struct hs_sim_actor *actor, struct hs_sim_request *request,
			const struct hs_parsed_reply *answer)
{
	struct hs_sim_op *op = &actor->load->history.ops[request->first];

	if (!read_answer(op, answer))
		return false;
	if (request->keeps_watch)
		actor->watch_read = op->answer;
	actor->watch_known = actor->watch_known || request->keeps_watch;
	return true;
}

static bool fits(struct hs_sim_actor *actor, struct hs_sim_request *request, struct hs_bytes reply,
		 const struct hs_parsed_reply *answer)
{
	int64_t value;

	switch (request->expect) {
	case HS_SIM_EXPECT_SILENCE:
		return false;
	case HS_SIM_EXPECT_STATUS:
		return answer->type == HS_PARSED_STATUS &&
		       hs_bytes_equal(answer->text, hs_bytes_of(request->text));
	case HS_SIM_EXPECT_NUMBER:
		return answer->type == HS_PARSED_INT;
	case HS_SIM_EXPECT_ANSWER:
		return read_single(actor, request, answer);
	case HS_SIM_EXPECT_ANSWERS:
		return read_answers(actor, request, 0, reply);
	case HS_SIM_EXPECT_ECHO:
		return answer->type == HS_PARSED_BULK && read_value(answer, &value) &&
		       (uint64_t)value == request->number;
	case HS_SIM_EXPECT_MAP:
		return answer->type == HS_PARSED_MAP;
	case HS_SIM_EXPECT_EXEC:
		return read_exec(actor, request, reply);
	}
	return false;
}

/* Records the outcome in the operations. */
static void settle(struct hs_sim_load *load, const struct hs_sim_request *request)
{
	for (uint32_t i = 0; i < request->ops_count; i++) {
		struct hs_sim_op *op = &load->history.ops[request->first + i];

		switch (request->outcome) {
		case HS_SIM_OUTCOME_ANSWERED:
			op->answered = load->world->steps;
			op->answered_us = load->world->now.wall_us;
			break;
		case HS_SIM_OUTCOME_REFUSED:
			op->kind = HS_SIM_NONE;
			break;
		case HS_SIM_OUTCOME_UNKNOWN:
			op->loose = true;
			break;
		}
	}
}

bool hs_sim_actor_reply_fits(struct hs_sim_actor *actor, struct hs_sim_request *request,
			     struct hs_bytes reply)
{
	struct hs_parsed_reply answer;
	int64_t used = hs_parse_reply_head(&answer, reply.data, reply.len);
	bool engine = request->ops_count > 0 || request->touches; /* other requests cannot fail */
	bool fit;

	hs_check(used > 0);
	request->outcome = HS_SIM_OUTCOME_ANSWERED;
	fit = fits(actor, request, reply, &answer);
	if (answer.type == HS_PARSED_ERROR)
		hs_bytes_escape(answer.text, actor->last_error, sizeof actor->last_error);
	if (!fit && engine && answer.type == HS_PARSED_ERROR)
		fit = read_error(actor->load, answer.text, request);
	if (engine && answer.type == HS_PARSED_ERROR)
		check_retries(actor, request, answer.text);
	if (request->may_fail && answer.type == HS_PARSED_ERROR)
		fit = true;
	/* WATCH was refused: the transaction that follows runs whatever the key holds. */
	if (hs_sim_request_is_watch(request)) {
		actor->watch_refused = answer.type == HS_PARSED_ERROR;
		actor->watch_known = false;
	}
	if (request->expect == HS_SIM_EXPECT_EXEC)
		actor->watch_known = actor->watch_refused = false;
	settle(actor->load, request);
	return fit;
}
