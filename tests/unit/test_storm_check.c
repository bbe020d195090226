/* Goal: the checker behind `storm --verify` accepts every possible history, rejects every impossible one, and
 * names the impossible reply. A history file is read back as written; a malformed line is refused and named.
 *
 * Method: histories as large as those of a storm run, made by a model that runs every request at some moment
 * between request and reply: these histories have an order. Then the test changes one reply, so that no order
 * exists. */
#include "cli/storm_check.h"

#include "base/err.h"
#include "base/prng.h"
#include "sim/history_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
	CLIENTS = 40,
	DEPTH = 4,
	OPS = 400,
	OPS_MAX = 2 * OPS,
	HISTORIES = 60,
	WRONG = 5,
	STEPS_MAX = 50000,
	VALUE_STEP = 1000000,
};

/* A request of a client: one operation, or a transaction of several. */
struct request {
	size_t first, count;
};

struct client {
	struct request requests[DEPTH];
	/* Counts since the start; the requests between the counts are in the ring. */
	uint32_t asked, ran, answered;
};

struct model {
	struct hs_prng prng;
	struct hs_sim_op ops[OPS_MAX];
	size_t count;
	struct client clients[CLIENTS];
	struct hs_sim_state state;
	int64_t expires_ms, clock_us, value;
	uint64_t moment;
};

static size_t add(struct model *model, uint32_t client, uint32_t more, bool only_get)
{
	static const enum hs_sim_kind kinds[] = {
		HS_SIM_GET,    HS_SIM_GET,    HS_SIM_EXISTS, HS_SIM_STRLEN, HS_SIM_TTL,
		HS_SIM_PTTL,   HS_SIM_PTTL,   HS_SIM_SET,    HS_SIM_SETNX,  HS_SIM_SETXX,
		HS_SIM_GETSET, HS_SIM_GETDEL, HS_SIM_INCRBY, HS_SIM_INCRBY, HS_SIM_INCRBY,
	};
	struct hs_sim_op *op = &model->ops[model->count];

	*op = (struct hs_sim_op){
		.kind = kinds[hs_prng_below(&model->prng, sizeof kinds / sizeof *kinds)],
		.client = client,
		.more = more,
		.asked = ++model->moment,
		.answered = HS_SIM_NEVER,
		.asked_us = model->clock_us,
	};
	if (only_get)
		op->kind = HS_SIM_GET;
	op->argument = op->kind == HS_SIM_INCRBY ? (int64_t)hs_prng_below(&model->prng, 999) - 499
						 : (model->value += VALUE_STEP);
	if (op->kind == HS_SIM_INCRBY && op->argument == 0)
		op->argument = 1;
	if (op->kind == HS_SIM_SET && hs_prng_below(&model->prng, 2) == 0)
		op->ttl_ms = 10000000;
	return model->count++;
}

static void ask(struct model *model, uint32_t number)
{
	struct client *client = &model->clients[number];
	struct request *request = &client->requests[client->asked % DEPTH];

	if (client->asked - client->answered == DEPTH || model->count + 3 > OPS_MAX)
		return;
	client->asked++;
	request->count = hs_prng_below(&model->prng, 16) == 0 ? 3 : 1;
	request->first = add(model, number, (uint32_t)request->count - 1, request->count > 1);
	for (size_t i = 1; i < request->count; i++)
		add(model, number, 0, false);
}

/* Runs the operation in the model and sets its reply. */
static void run_op(struct model *model, struct hs_sim_op *op)
{
	struct hs_sim_state before = model->state;
	bool there = before.value != HS_SIM_NOTHING;
	int64_t left = model->expires_ms - model->clock_us / 1000;
	char text[HS_SIM_VALUE_TEXT_MAX];

	hs_sim_op_apply(op, &model->state);
	if (model->state.expires && model->state.expires != before.expires)
		model->expires_ms = model->clock_us / 1000 + op->ttl_ms;
	switch (op->kind) {
	case HS_SIM_GET:
	case HS_SIM_GETSET:
	case HS_SIM_GETDEL:
		op->answer = before.value;
		break;
	case HS_SIM_STRLEN:
		op->answer = there ? (int64_t)strlen(hs_sim_value_text(before.value, text)) : 0;
		break;
	case HS_SIM_TTL:
	case HS_SIM_PTTL:
		op->answer = !there		       ? -2
			     : !before.expires	       ? -1
			     : op->kind == HS_SIM_PTTL ? left
						       : (left + 500) / 1000;
		break;
	case HS_SIM_INCRBY:
		op->answer = model->state.value;
		break;
	case HS_SIM_SETNX:
		op->answer = !there;
		break;
	default:
		op->answer = there;
	}
}

static void run(struct model *model, uint32_t number)
{
	struct client *client = &model->clients[number];
	struct request request = client->requests[client->ran % DEPTH];

	if (client->ran == client->asked)
		return;
	client->ran++;
	for (size_t i = 0; i < request.count; i++)
		run_op(model, &model->ops[request.first + i]);
}

static void answer(struct model *model, uint32_t number)
{
	struct client *client = &model->clients[number];
	struct request request = client->requests[client->answered % DEPTH];

	if (client->answered == client->ran)
		return;
	client->answered++;
	model->moment++;
	for (size_t i = 0; i < request.count; i++) {
		model->ops[request.first + i].answered = model->moment;
		model->ops[request.first + i].answered_us = model->clock_us;
	}
}

static void make(struct model *model, uint64_t seed, struct hs_sim_history *history)
{
	uint32_t clients;

	memset(model, 0, sizeof *model);
	hs_prng_init(&model->prng, seed);
	model->state.value = HS_SIM_NOTHING;
	model->clock_us = 1000000;
	clients = 2 + (uint32_t)hs_prng_below(&model->prng, CLIENTS - 1);
	while (model->count < OPS) {
		void (*const acts[])(struct model *, uint32_t) = {ask, run, answer};

		model->clock_us += (int64_t)hs_prng_below(&model->prng, 200);
		acts[hs_prng_below(&model->prng, 3)](
			model, (uint32_t)hs_prng_below(&model->prng, clients));
	}
	for (uint32_t i = 0; i < clients; i++) {
		for (uint32_t j = 0; j < DEPTH; j++) {
			run(model, i);
			answer(model, i);
		}
	}
	history->count = 0;
	for (size_t i = 0; i < model->count; i++)
		hs_sim_history_add(history, &model->ops[i]);
}

static void test_a_history_of_one_server_has_an_order(void **state)
{
	struct hs_sim_history history = {0};
	struct model *model = calloc(1, sizeof *model);
	struct hs_buf why = {0};

	(void)state;
	for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
		make(model, seed, &history);
		if (hs_storm_check(&history, STEPS_MAX, &why) == HS_EINVAL)
			fail_msg("seed %d: %.*s", (int)seed, (int)why.len, why.data);
	}
	hs_sim_history_deinit(&history);
	free(model);
}

/* One PTTL reply exceeds the time to live: the checker must name this reply, not a later one. */
static void test_the_wrong_answer_is_named(void **state)
{
	struct hs_sim_history history = {0};
	struct model *model = calloc(1, sizeof *model);
	int found = 0, rc;

	(void)state;
	for (uint64_t seed = 1; seed <= HISTORIES && found < WRONG; seed++) {
		struct hs_buf why = {0};

		make(model, seed, &history);
		for (size_t i = 0; i < history.count; i++) {
			struct hs_sim_op *op = &history.ops[i];

			if (op->kind != HS_SIM_PTTL || op->answer <= 0 || op->more > 0 ||
			    (i > 0 && history.ops[i - 1].answered == op->answered))
				continue;
			op->answer = 10000003;
			rc = hs_storm_check(&history, STEPS_MAX, &why);
			assert_int_not_equal(rc, 0);
			if (rc == HS_ELIMIT) /* the checker gave up: try another seed */
				break;
			hs_buf_append(&why, "", 1);
			assert_non_null(strstr(why.data, "PTTL key0 → 10000003"));
			found++;
			break;
		}
		hs_buf_deinit(&why);
	}
	assert_int_equal(found, WRONG);
	hs_sim_history_deinit(&history);
	free(model);
}

static void test_a_history_is_read_as_it_was_written(void **state)
{
	struct hs_sim_history history = {0}, again = {0};
	struct model *model = calloc(1, sizeof *model);
	struct hs_buf text = {0}, second = {0};
	size_t line;

	(void)state;
	make(model, 7, &history);
	history.ops[3].answered = HS_SIM_NEVER;
	history.ops[3].loose = true;
	history.ops[4].refusable = true;
	hs_sim_history_write(&history, &text);
	assert_int_equal(hs_sim_history_read(&again, hs_buf_bytes(&text), &line), 0);
	assert_int_equal(again.count, history.count);
	hs_sim_history_write(&again, &second);
	assert_int_equal(text.len, second.len);
	assert_memory_equal(text.data, second.data, text.len);
	hs_buf_deinit(&text);
	hs_buf_deinit(&second);
	hs_sim_history_deinit(&history);
	hs_sim_history_deinit(&again);
	free(model);
}

static void test_malformed_histories_are_refused(void **state)
{
	static const char good[] =
		"GET client=1 more=0 asked=1 answered=2 asked_us=0 answered_us=0 "
		"argument=0 ttl_ms=0 answer=5 flags=\n";
	static const char *const bad[] = {"hello\n", "GET client=1\n",
					  "GETS client=1 more=0 asked=1 answered=2 asked_us=0 "
					  "answered_us=0 argument=0 ttl_ms=0 answer=5 flags=\n",
					  "GET client=1 more=1 asked=1 answered=2 asked_us=0 "
					  "answered_us=0 argument=0 ttl_ms=0 answer=5 flags=\n"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hs_sim_history history = {0};
		struct hs_buf text = {0};
		size_t line;

		hs_buf_printf(&text, "# for people\n%s%s", good, bad[i]);
		assert_int_equal(hs_sim_history_read(&history, hs_buf_bytes(&text), &line),
				 HS_EINVAL);
		assert_int_equal(line, 3);
		hs_buf_deinit(&text);
		hs_sim_history_deinit(&history);
	}
}

static void test_a_file_that_is_not_there(void **state)
{
	FILE *err = tmpfile();
	char text[256] = "";

	(void)state;
	assert_int_equal(hs_storm_check_file("/nowhere/at/all", err, err), 1);
	rewind(err);
	assert_non_null(fgets(text, sizeof text, err));
	assert_non_null(strstr(text, "cannot read '/nowhere/at/all': No such file"));
	fclose(err);
}

static void test_a_file_that_was_cut_short(void **state)
{
	struct hs_sim_history history = {0};
	struct model *model = calloc(1, sizeof *model);
	char folder[] = "/tmp/heatsink-judge-XXXXXX", path[128], text[256] = "";
	FILE *out = tmpfile(), *err = tmpfile();

	(void)state;
	assert_non_null(mkdtemp(folder));
	make(model, 3, &history);
	assert_int_equal(hs_storm_check_save(&history, folder, "k", path, sizeof path), 0);
	assert_int_equal(hs_storm_check_file(path, out, err), 0);
	assert_int_equal(truncate(path, 2000), 0);
	assert_int_equal(hs_storm_check_file(path, out, err), 1);
	rewind(err);
	assert_non_null(fgets(text, sizeof text, err));
	assert_non_null(strstr(text, "it was cut short"));
	unlink(path);
	rmdir(folder);
	fclose(out);
	fclose(err);
	hs_sim_history_deinit(&history);
	free(model);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_history_of_one_server_has_an_order),
		cmocka_unit_test(test_the_wrong_answer_is_named),
		cmocka_unit_test(test_a_history_is_read_as_it_was_written),
		cmocka_unit_test(test_malformed_histories_are_refused),
		cmocka_unit_test(test_a_file_that_is_not_there),
		cmocka_unit_test(test_a_file_that_was_cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
