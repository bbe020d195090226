/* Goal: the greeting sent to a server follows the configuration, and the server's answers lead to READY, or to
 * FAILED with a reason that tells the operator what to check.
 *
 * Method: the composed greeting is compared byte for byte. Answers are given whole, cut at every byte, and byte by
 * byte, in allocations of their own length. */
#include "upstream/greeting.h"

#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HELLO_3 "%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$2\r\nid\r\n:42\r\n$7\r\nmodules\r\n*0\r\n"
#define HELLO_2 "*4\r\n$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:43\r\n"
#define MYID "0123456789abcdef0123456789abcdef01234567"
#define OTHER_ID "0123456789abcdef0123456789abcdef01234568"

static struct hs_login login(const char *user, const char *password, uint32_t db)
{
	return (struct hs_login){
		.user = user,
		.password = password,
		.db = db,
		.login_options = "engine-user, engine-password",
	};
}

static void begin(struct hs_greeting *greeting, const struct hs_login *who, const char *id,
		  struct hs_buf *out)
{
	struct hs_greeting_options options = {.login = who, .resp = 3, .expected_id = id};

	hs_greeting_init(greeting, &options);
	hs_greeting_compose(greeting, out);
}

static void expect_composed(const struct hs_greeting_options *options, const char *wanted)
{
	struct hs_greeting greeting;
	struct hs_buf out = {0};

	hs_greeting_init(&greeting, options);
	hs_greeting_compose(&greeting, &out);
	hs_buf_append(&out, "", 1);
	assert_string_equal(out.data, wanted);
	hs_buf_deinit(&out);
	hs_greeting_deinit(&greeting);
}

static void test_composed_greetings(void **state)
{
	struct hs_login anybody = login("", "", 0), by_password = login("", "pw", 0),
			user = login("me", "p w", 7), nopass = login("alice", "", 0);

	(void)state;
	expect_composed(
		&(struct hs_greeting_options){
			.login = &anybody, .resp = 2, .expected_id = "", .hello_only = false},
		"*4\r\n$5\r\nHELLO\r\n$1\r\n2\r\n$7\r\nSETNAME\r\n$8\r\nheatsink\r\n");
	expect_composed(
		&(struct hs_greeting_options){
			.login = &by_password, .resp = 3, .expected_id = "", .hello_only = false},
		"*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$2\r\npw\r\n"
		"$7\r\nSETNAME\r\n$8\r\nheatsink\r\n");
	expect_composed(
		&(struct hs_greeting_options){
			.login = &user, .resp = 3, .expected_id = MYID, .hello_only = false},
		"*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$3\r\np w\r\n"
		"$7\r\nSETNAME\r\n$8\r\nheatsink\r\n"
		"*2\r\n$6\r\nSELECT\r\n$1\r\n7\r\n*2\r\n$7\r\nCLUSTER\r\n$4\r\nMYID\r\n");
	/* A login without a password still sends AUTH, because its user is not the default user. */
	expect_composed(
		&(struct hs_greeting_options){.login = &nopass, .resp = 3, .expected_id = ""},
		"*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$5\r\nalice\r\n$0\r\n\r\n"
		"$7\r\nSETNAME\r\n$8\r\nheatsink\r\n");
	expect_composed(
		&(struct hs_greeting_options){
			.login = &nopass, .resp = 3, .expected_id = "", .any_resp_server = true},
		"*3\r\n$4\r\nAUTH\r\n$5\r\nalice\r\n$0\r\n\r\n*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n");
	/* With `hello_only`, the greeting is HELLO alone. */
	expect_composed(
		&(struct hs_greeting_options){
			.login = &user, .resp = 3, .expected_id = "", .hello_only = true},
		"*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$2\r\nme\r\n$3\r\np w\r\n"
		"$7\r\nSETNAME\r\n$8\r\nheatsink\r\n");
}

/* The outcome of one greeting. The server's answer came as a piece of `cut` bytes and then in pieces of `size`
 * bytes. */
struct answered {
	enum hs_greeting_step step;
	size_t given, used; /* bytes given in all; bytes that belong to the greeting */
	int64_t server_id;
	char why[HS_GREETING_WHY_BYTES];
};

static struct answered answer(const struct hs_login *who, const char *id, struct hs_bytes bytes,
			      size_t cut, size_t size)
{
	struct answered answered = {.step = HS_GREETING_MORE};
	struct hs_greeting greeting;
	struct hs_buf out = {0};

	begin(&greeting, who, id, &out);
	hs_buf_deinit(&out);
	while (answered.step == HS_GREETING_MORE && answered.given < bytes.len) {
		size_t len = answered.given == 0 ? cut : size, used;
		char *piece;

		len = len < bytes.len - answered.given ? len : bytes.len - answered.given;
		piece = hs_mem_dup(bytes.data + answered.given, len);
		answered.step = hs_greeting_receive(&greeting, piece, len, &used);
		hs_mem_free(&piece);
		answered.given += len;
		if (answered.step == HS_GREETING_MORE)
			assert_int_equal(used, len);
		answered.used += used;
	}
	answered.server_id = greeting.server_id;
	memcpy(answered.why, greeting.why, sizeof answered.why);
	hs_greeting_deinit(&greeting);
	return answered;
}

/* Gives the answer whole, cut in two anywhere, and byte by byte. Each time the greeting is READY after `greeting`
 * bytes. */
static void expect_ready(const struct hs_login *who, const char *id, struct hs_bytes bytes,
			 size_t greeting, int64_t server_id)
{
	for (size_t cut = 1; cut <= bytes.len; cut++) {
		struct answered one = answer(who, id, bytes, cut, bytes.len);
		struct answered all = answer(who, id, bytes, cut, 1);

		assert_int_equal(one.step, HS_GREETING_READY);
		assert_int_equal(one.used, greeting);
		assert_true(one.given >= greeting);
		assert_int_equal(one.server_id, server_id);
		assert_int_equal(all.step, HS_GREETING_READY);
		assert_int_equal(all.used, greeting);
		assert_int_equal(all.given, cut > greeting ? cut : greeting);
	}
}

static void expect_failed(const struct hs_login *who, const char *id, struct hs_bytes bytes,
			  const char *why)
{
	for (size_t cut = 1; cut <= bytes.len; cut++) {
		struct answered answered = answer(who, id, bytes, cut, 1);

		assert_int_equal(answered.step, HS_GREETING_FAILED);
		assert_string_equal(answered.why, why);
	}
}

static void test_ready_when_all_is_answered(void **state)
{
	struct hs_login anybody = login("", "", 0), user = login("me", "pw", 7);

	(void)state;
	expect_ready(&anybody, "", HS_LIT(HELLO_3), sizeof HELLO_3 - 1, 42);
	expect_ready(&anybody, "", HS_LIT(HELLO_2), sizeof HELLO_2 - 1, 43);
	expect_ready(&user, "", HS_LIT(HELLO_3 "+OK\r\n"), sizeof(HELLO_3 "+OK\r\n") - 1, 42);
	expect_ready(&anybody, MYID, HS_LIT(HELLO_3 "$40\r\n" MYID "\r\n"),
		     sizeof(HELLO_3 "$40\r\n" MYID "\r\n") - 1, 42);
	expect_ready(&user, MYID, HS_LIT(HELLO_3 "+OK\r\n$40\r\n" MYID "\r\n"),
		     sizeof(HELLO_3 "+OK\r\n$40\r\n" MYID "\r\n") - 1, 42);
	/* This server's HELLO has no client id. */
	expect_ready(&anybody, "", HS_LIT("%1\r\n$5\r\nproto\r\n:3\r\n"),
		     sizeof "%1\r\n$5\r\nproto\r\n:3\r\n" - 1, 0);
}

/* Bytes after the greeting belong to the first replies. */
static void test_bytes_behind_the_greeting(void **state)
{
	struct hs_login anybody = login("", "", 0), user = login("me", "pw", 7);

	(void)state;
	expect_ready(&anybody, "", HS_LIT(HELLO_3 "+PONG\r\n:"), sizeof HELLO_3 - 1, 42);
	expect_ready(&user, MYID, HS_LIT(HELLO_3 "+OK\r\n$40\r\n" MYID "\r\n+PONG\r\nnonsense"),
		     sizeof(HELLO_3 "+OK\r\n$40\r\n" MYID "\r\n") - 1, 42);
}

static void test_an_unexpected_node_id(void **state)
{
	struct hs_login anybody = login("", "", 0);

	(void)state;
	expect_failed(&anybody, OTHER_ID, HS_LIT(HELLO_3 "$40\r\n" MYID "\r\n"),
		      "another node than the cluster lists answers at this address: " MYID);
}

static void test_the_server_refuses(void **state)
{
	struct hs_login anybody = login("", "", 7), user = login("me", "pw", 0);

	(void)state;
	expect_failed(&anybody, "", HS_LIT("-NOAUTH HELLO must be called with …\r\n"),
		      HS_LOGIN_REFUSED
		      " as 'default': check engine-user, engine-password (it requires a "
		      "password: NOAUTH)");
	expect_failed(&user, "", HS_LIT("-WRONGPASS invalid username-password pair\r\n"),
		      HS_LOGIN_REFUSED
		      " as 'me': check engine-user, engine-password (WRONGPASS invalid "
		      "username-password pair)");
	expect_failed(&user, "", HS_LIT("-ERR max number of clients reached\r\n"),
		      HS_GREETING_REFUSED ": ERR max number of clients reached");
	/* An error to SELECT or CLUSTER MYID fails the greeting like an error to HELLO. */
	expect_failed(&anybody, "", HS_LIT(HELLO_3 "-ERR DB index is out of range\r\n"),
		      HS_GREETING_REFUSED ": ERR DB index is out of range");
	expect_failed(&user, MYID, HS_LIT(HELLO_3 "-ERR cluster support disabled\r\n"),
		      HS_GREETING_REFUSED ": ERR cluster support disabled");
}

/* The result of a classic greeting, which ends with PING. The server's answer `text` comes byte by byte. */
static enum hs_greeting_step answer_classic(const struct hs_login *who, const char *text)
{
	struct hs_greeting_options options = {
		.login = who, .resp = 2, .expected_id = "", .any_resp_server = true};
	enum hs_greeting_step step = HS_GREETING_MORE;
	struct hs_greeting greeting;
	struct hs_buf out = {0};
	size_t used;

	hs_greeting_init(&greeting, &options);
	hs_greeting_compose(&greeting, &out);
	hs_buf_deinit(&out);
	for (size_t i = 0; text[i] && step == HS_GREETING_MORE; i++)
		step = hs_greeting_receive(&greeting, text + i, 1, &used);
	hs_greeting_deinit(&greeting);
	return step;
}

/* A server that refuses PING may still serve requests. */
static void test_a_classic_greeting_that_is_refused(void **state)
{
	static const char *const harmless[] = {
		"-MISCONF Redis is configured to save RDB snapshots\r\n",
		"-MASTERDOWN Link with MASTER is down\r\n",
		"-LOADING Redis is loading the dataset in memory\r\n",
		"-NOPERM this user has no permissions to run the 'ping' command\r\n",
		"-ERR unknown command 'PING'\r\n",
		"-some proxy's own words\r\n"};
	static const char *const refuses[] = {
		"-NOAUTH Authentication required.\r\n",
		"-DENIED Redis is running in protected mode\r\n",
		"-ERR this port speaks TLS only: connect with TLS\r\n",
		"-ERR max number of clients reached\r\n"};
	struct hs_login anybody = login("", "", 0), user = login("me", "pw", 0);

	(void)state;
	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
		assert_int_equal(answer_classic(&anybody, harmless[i]), HS_GREETING_READY);
	for (size_t i = 0; i < sizeof refuses / sizeof *refuses; i++)
		assert_int_equal(answer_classic(&anybody, refuses[i]), HS_GREETING_FAILED);
	/* An error to AUTH fails the greeting, even if the same error to PING does not. */
	assert_int_equal(answer_classic(&user, "-MISCONF of AUTH\r\n"), HS_GREETING_FAILED);
	assert_int_equal(
		answer_classic(&user,
			       "-ERR AUTH <password> called without any password\r\n+PONG\r\n"),
		HS_GREETING_READY);
}

static void test_malformed_replies(void **state)
{
	struct hs_login anybody = login("", "", 7);

	(void)state;
	expect_failed(&anybody, "", HS_LIT("HTTP/1.1 400 Bad Request\r\n"),
		      "the server does not speak RESP");
	expect_failed(&anybody, "", HS_LIT(HELLO_3 "?\r\n"), "the server does not speak RESP");
	expect_failed(&anybody, "", HS_LIT("%1\r\n+id\r\n?\r\n"), "the server does not speak RESP");
}

static void test_answers_that_are_too_long(void **state)
{
	enum { BYTES = 1 << 16 };
	struct hs_login anybody = login("", "", 0);
	char *bytes = hs_mem_alloc(BYTES + 1);
	struct answered answered;

	(void)state;
	memset(bytes, 'x', BYTES + 1);
	memcpy(bytes, "$70000\r\n", 8);
	answered = answer(&anybody, "", (struct hs_bytes){bytes, BYTES}, 1000, 1000);
	assert_int_equal(answered.step, HS_GREETING_MORE);
	answered = answer(&anybody, "", (struct hs_bytes){bytes, BYTES + 1}, 1000, 1000);
	assert_int_equal(answered.step, HS_GREETING_FAILED);
	assert_string_equal(answered.why, "the server does not speak RESP");
	hs_mem_release(bytes);
}

/* The caller may free its text of the expected id once the greeting has begun. */
static void test_the_id_is_its_own_copy(void **state)
{
	struct hs_login anybody = login("", "", 0);
	char id[] = MYID;
	struct hs_greeting greeting;
	struct hs_buf out = {0};
	size_t used;

	(void)state;
	begin(&greeting, &anybody, id, &out);
	memset(id, 'x', sizeof id - 1);
	assert_int_equal(hs_greeting_receive(&greeting, HELLO_3 "$40\r\n" MYID "\r\n",
					     sizeof(HELLO_3 "$40\r\n" MYID "\r\n") - 1, &used),
			 HS_GREETING_READY);
	hs_buf_deinit(&out);
	hs_greeting_deinit(&greeting);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_composed_greetings),
		cmocka_unit_test(test_ready_when_all_is_answered),
		cmocka_unit_test(test_bytes_behind_the_greeting),
		cmocka_unit_test(test_an_unexpected_node_id),
		cmocka_unit_test(test_the_server_refuses),
		cmocka_unit_test(test_a_classic_greeting_that_is_refused),
		cmocka_unit_test(test_malformed_replies),
		cmocka_unit_test(test_answers_that_are_too_long),
		cmocka_unit_test(test_the_id_is_its_own_copy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
