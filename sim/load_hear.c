/* Is a reply the answer to the request whose turn it is? */
#include "sim/load_internal.h"

#include "base/num.h"
#include "wire/answer.h"

/* A bulk string that holds a number, a number itself, or nothing. */
static bool read_value(const struct hs_answer *answer, int64_t *value)
{
	*value = HS_SIM_NOTHING;
	if (answer->type == HS_ANSWER_NULL)
		return true;
	if (answer->type == HS_ANSWER_INT) {
		*value = answer->integer;
		return true;
	}
	return answer->type == HS_ANSWER_BULK && hs_num_parse_int(answer->text, value);
}

/* The elements of an array, one for each operation from `skip` on. */
static bool read_values(struct hs_sim_actor *actor, struct hs_sim_ask *ask, uint32_t skip,
			struct hs_bytes reply)
{
	struct hs_answer answer;
	int64_t used = hs_answer_head(&answer, reply.data, reply.len);
	size_t at = (size_t)used;

	if (answer.type != HS_ANSWER_ARRAY || answer.count != ask->ops_count - skip)
		return false;
	for (uint32_t i = skip; i < ask->ops_count; i++) {
		struct hs_sim_op *op = &actor->load->history.ops[ask->first + i];

		used = hs_answer_head(&answer, reply.data + at, reply.len - at);
		hs_check(used > 0); /* the whole reply was found to be one */
		at += (size_t)used;
		if (op->kind == HS_SIM_SET ? answer.type != HS_ANSWER_STATUS
					   : !read_value(&answer, &op->answer))
			return false;
	}
	return true;
}

static bool read_exec(struct hs_sim_actor *actor, struct hs_sim_ask *ask, struct hs_bytes reply)
{
	struct hs_sim_op *ops = &actor->load->history.ops[ask->first];
	struct hs_answer answer;

	if (hs_answer_head(&answer, reply.data, reply.len) > 0 && answer.type == HS_ANSWER_NULL) {
		/* Nothing happened: reads without an answer say just that. */
		for (uint32_t i = 0; i < ask->ops_count; i++)
			ops[i].kind = HS_SIM_GET;
		ask->refused = true;
		return ask->watched;
	}
	if (ask->watched)
		ops[0].answer = actor->watch_read;
	return read_values(actor, ask, ask->watched ? 1 : 0, reply);
}

bool hs_sim_actor_fits(struct hs_sim_actor *actor, struct hs_sim_ask *ask, struct hs_bytes reply)
{
	struct hs_sim_op *op = ask->ops_count > 0 ? &actor->load->history.ops[ask->first] : NULL;
	struct hs_answer answer;
	int64_t value;
	int64_t used = hs_answer_head(&answer, reply.data, reply.len);

	hs_check(used > 0);
	switch (ask->expect) {
	case HS_SIM_EXPECT_SILENCE:
		return false;
	case HS_SIM_EXPECT_STATUS:
		return answer.type == HS_ANSWER_STATUS &&
		       hs_bytes_equal(answer.text, hs_bytes_of(ask->text));
	case HS_SIM_EXPECT_NUMBER:
		if (op)
			op->answer = answer.integer;
		return answer.type == HS_ANSWER_INT;
	case HS_SIM_EXPECT_VALUE:
		hs_check(op);
		if (!read_value(&answer, &op->answer) || answer.type == HS_ANSWER_INT)
			return false;
		if (ask->keeps_watch)
			actor->watch_read = op->answer;
		return true;
	case HS_SIM_EXPECT_VALUES:
		return read_values(actor, ask, 0, reply);
	case HS_SIM_EXPECT_ECHO:
		return answer.type == HS_ANSWER_BULK && read_value(&answer, &value) &&
		       (uint64_t)value == ask->number;
	case HS_SIM_EXPECT_MAP:
		return answer.type == HS_ANSWER_MAP;
	case HS_SIM_EXPECT_EXEC:
		return read_exec(actor, ask, reply);
	}
	return false;
}
