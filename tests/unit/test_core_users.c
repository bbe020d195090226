/* Goal: the core checks a user's permissions before it runs or queues a command. A command that the user may not
 * send is refused in Redis's words, alone and in transactions. A new set of users also applies to existing
 * connections.
 *
 * Method: scripts against the simulated world, whose users the test sets. */
#include "tests/lib/script.h"

#include "acl/acl.h"

#define NOPERM(command) "-NOPERM this user has no permissions to run the '" command "' command\r\n"
#define NOKEY "-NOPERM this user has no permissions to access one of the keys used as arguments\r\n"
#define CHANGED                                                                                    \
	"-NOPERM ACLs rules changed between the moment the transaction was accumulated and the "   \
	"EXEC call. This command is no longer allowed for the following reason: "
#define NOAUTH "-NOAUTH Authentication required.\r\n"

static struct hs_acl_user *user_of(const char *name, const char *rules)
{
	struct hs_bytes words[16];
	struct hs_acl_error error;
	struct hs_acl_user *user;
	size_t count = 0;

	for (const char *at = rules; *at; at += strspn(at, " ")) {
		words[count++] = (struct hs_bytes){at, strcspn(at, " ")};
		at += strcspn(at, " ");
	}
	user = hs_acl_user_change(NULL, hs_bytes_of(name),
				  &(struct hs_acl_rules){.count = count, .words = words}, &error);
	assert_non_null(user);
	return user;
}

/* The default user, and alice with these rules. `alice` NULL: only the default user. */
static struct hs_acl *users_of(const char *alice)
{
	struct hs_acl *open = hs_acl_create_open("");
	struct hs_acl *both;

	if (!alice)
		return open;
	both = hs_acl_with(open, user_of("alice", alice));
	hs_acl_unref(&open);
	return both;
}

static struct hs_sim_world *open_world(const char *alice)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(1);
	struct hs_acl *users = users_of(alice);
	struct hs_sim_world *world;

	options.workers = 2;
	options.core.acl = users;
	options.core.acllog_len_max = 3;
	options.core.slowlog_us = -1;
	world = hs_sim_world_create(&options);
	hs_acl_unref(&users);
	return world;
}

static void ask(struct hs_sim_client *client, const char *words)
{
	hs_sim_client_request(client, words);
	hs_sim_world_settle(client->world);
}

static struct hs_sim_client *alice_in(struct hs_sim_world *world, uint32_t worker)
{
	struct hs_sim_client *client = hs_sim_client_connect(world, worker);

	ask(client, "AUTH alice x");
	received(client, "+OK\r\n");
	return client;
}

/* Gives new users to every worker. */
static void hand_in(struct hs_sim_world *world, struct hs_acl *users)
{
	struct hs_core_options options = world->options.core;

	options.acl = users;
	for (uint32_t i = 0; i < world->options.workers; i++)
		hs_core_configure(hs_sim_world_core(world, i), &options);
	hs_acl_unref(&users);
	hs_sim_world_settle(world);
}

static bool heard_part(struct hs_sim_client *client, const char *part)
{
	bool found =
		memmem(client->received.data, client->received.len, part, strlen(part)) != NULL;

	client->received.len = 0;
	return found;
}

static void test_refused_commands(void **state)
{
	struct hs_sim_world *world = open_world("on nopass +@read +set +ping ~a* %R~r*");
	struct hs_sim_client *alice = alice_in(world, 0);

	(void)state;
	ask(alice, "ACL WHOAMI");
	received(alice, NOPERM("acl|whoami"));
	ask(alice, "SET a 1");
	ask(alice, "GET a");
	received(alice, "+OK\r\n$1\r\n1\r\n");
	ask(alice, "SET r 1");
	ask(alice, "GET b");
	received(alice, NOKEY NOKEY);
	ask(alice, "DEL a");
	received(alice, NOPERM("del"));
	/* The core reports unknown commands and a wrong arity before missing permissions, and slot errors after
	 * them. */
	ask(alice, "NOSUCH");
	ask(alice, "DEL");
	ask(alice, "RENAME a b");
	received(alice, "-ERR unknown command 'NOSUCH', with args beginning with: \r\n"
			"-ERR wrong number of arguments for 'del' command\r\n" NOPERM("rename"));
	hs_sim_world_destroy(&world);
}

static void test_other_users_are_not_restricted(void **state)
{
	struct hs_sim_world *world = open_world("on nopass");
	struct hs_sim_client *other = hs_sim_client_connect(world, 0);

	(void)state;
	ask(other, "ACL WHOAMI");
	ask(other, "SET a 1");
	received(other, "$7\r\ndefault\r\n+OK\r\n");
	ask(other, "AUTH alice x");
	ask(other, "PING");
	received(other, "+OK\r\n" NOPERM("ping"));
	ask(other, "RESET"); /* RESET makes the client the default user again */
	ask(other, "PING");
	received(other, "+RESET\r\n+PONG\r\n");
	hs_sim_world_destroy(&world);
}

static void test_a_wrong_password_changes_nothing(void **state)
{
	struct hs_sim_world *world = open_world("on >secret +ping");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);

	(void)state;
	ask(client, "AUTH alice wrong");
	ask(client, "SET a 1");
	received(client,
		 "-WRONGPASS invalid username-password pair or user is disabled.\r\n+OK\r\n");
	ask(client, "HELLO 2 AUTH alice secret");
	assert_true(heard_part(client, "server"));
	ask(client, "SET a 1");
	received(client, NOPERM("set"));
	hs_sim_world_destroy(&world);
}

static void test_queued_commands_are_checked(void **state)
{
	struct hs_sim_world *world = open_world("on nopass +@all -del ~a &*");
	struct hs_sim_client *alice = alice_in(world, 0);

	(void)state;
	ask(alice, "MULTI");
	ask(alice, "SET a 1");
	ask(alice, "DEL a");
	ask(alice, "EXEC");
	received(alice,
		 "+OK\r\n+QUEUED\r\n" NOPERM("del") "-EXECABORT Transaction discarded because of "
						    "previous errors.\r\n");
	ask(alice, "GET a");
	received(alice, "$-1\r\n");
	hs_sim_world_destroy(&world);
}

static void test_rules_may_change_before_exec(void **state)
{
	struct hs_sim_world *world = open_world("on nopass +@all ~* &*");
	struct hs_sim_client *alice = alice_in(world, 0);

	(void)state;
	ask(alice, "MULTI");
	ask(alice, "SET {a}1 1");
	ask(alice, "GET {a}2");
	ask(alice, "PING");
	ask(alice, "ECHO x");
	alice->received.len = 0;
	hand_in(world, users_of("on nopass +@all -echo ~{a}1 &*"));
	ask(alice, "EXEC");
	received(alice, "*4\r\n+OK\r\n" CHANGED
			"no permission to touch the specified keys\r\n+PONG\r\n" CHANGED
			"no permission to execute the command or subcommand\r\n");
	ask(alice, "GET {a}1");
	received(alice, "$1\r\n1\r\n");
	hand_in(world, users_of("on nopass +@all -exec ~*"));
	ask(alice, "MULTI");
	ask(alice, "EXEC");
	received(alice,
		 "+OK\r\n-EXECABORT Transaction discarded because of: NOPERM this user has no "
		 "permissions to run the 'exec' command\r\n");
	hs_sim_world_destroy(&world);
}

static void test_a_change_applies_to_connected_clients(void **state)
{
	struct hs_sim_world *world = open_world("on nopass +get ~*");
	struct hs_sim_client *one = alice_in(world, 0), *two = alice_in(world, 1);
	struct hs_sim_client *other = hs_sim_client_connect(world, 1);

	(void)state;
	hand_in(world, users_of("on nopass +set ~*"));
	ask(one, "GET a");
	ask(two, "GET a");
	received(one, NOPERM("get"));
	received(two, NOPERM("get"));
	/* A disabled user stays logged in, but cannot log in again. */
	hand_in(world, users_of("off +@all ~* &*"));
	ask(one, "GET a");
	received(one, "$-1\r\n");
	hand_in(world, users_of(NULL));
	/* alice is deleted. Each worker closes her connections at its next event. */
	ask(hs_sim_client_connect(world, 0), "PING");
	ask(other, "GET a");
	received(other, "$-1\r\n");
	assert_null(one->session);
	assert_null(two->session);
	assert_true(one->cut);
	hs_sim_world_destroy(&world);
}

static void test_a_user_disabled_later(void **state)
{
	struct hs_sim_world *world = open_world(NULL);
	struct hs_sim_client *inside = hs_sim_client_connect(world, 0), *outside;

	(void)state;
	hand_in(world, hs_acl_create_open("secret"));
	outside = hs_sim_client_connect(world, 0);
	ask(inside, "PING");
	received(inside, "+PONG\r\n");
	ask(outside, "PING");
	received(outside, NOAUTH);
	hand_in(world, hs_acl_create_open("")); /* the default user needs no password any more */
	ask(outside, "PING");
	received(outside, "+PONG\r\n");
	hand_in(world, hs_acl_create_open("secret"));
	ask(outside, "PING");
	received(outside, NOAUTH);
	hs_sim_world_destroy(&world);
}

static void test_the_log(void **state)
{
	struct hs_sim_world *world = open_world("on nopass +get ~a");
	struct hs_sim_client *one = alice_in(world, 0), *two = alice_in(world, 1);
	struct hs_sim_client *admin = hs_sim_client_connect(world, 0);

	(void)state;
	ask(admin, "ACL LOG");
	received(admin, "*0\r\n");
	ask(one, "SET a 1");
	ask(one, "SET a 1");
	world->now.mono_us += 1000; /* later than the first entry, so listed before it */
	ask(two, "GET b");
	ask(admin, "ACL LOG");
	assert_true(heard_part(admin,
			       "*2\r\n*14\r\n$5\r\ncount\r\n:1\r\n$6\r\nreason\r\n$3\r\nkey\r\n"
			       "$7\r\ncontext\r\n$8\r\ntoplevel\r\n$6\r\nobject\r\n$1\r\nb\r\n"
			       "$8\r\nusername\r\n$5\r\nalice\r\n"));
	ask(admin, "ACL LOG");
	assert_true(heard_part(admin,
			       "*14\r\n$5\r\ncount\r\n:2\r\n$6\r\nreason\r\n$7\r\ncommand\r\n"
			       "$7\r\ncontext\r\n$8\r\ntoplevel\r\n$6\r\nobject\r\n$3\r\nset\r\n"));
	ask(admin, "ACL LOG 1");
	assert_true(heard_part(admin, "*1\r\n*14"));
	ask(admin, "AUTH alice");
	ask(admin, "AUTH nobody x");
	admin->received.len = 0;
	ask(admin, "ACL LOG 1");
	assert_true(heard_part(admin,
			       "reason\r\n$4\r\nauth\r\n$7\r\ncontext\r\n$8\r\ntoplevel\r\n"
			       "$6\r\nobject\r\n$4\r\nAUTH\r\n$8\r\nusername\r\n$6\r\nnobody\r\n"));
	ask(admin, "ACL LOG RESET");
	ask(admin, "ACL LOG");
	received(admin, "+OK\r\n*0\r\n");
	hs_sim_world_destroy(&world);
}

static void test_the_log_is_bounded(void **state)
{
	struct hs_sim_world *world = open_world("on nopass +get ~a");
	struct hs_sim_client *alice = alice_in(world, 0);
	struct hs_sim_client *admin = hs_sim_client_connect(world, 0);

	(void)state;
	for (int key = 'b'; key < 'h'; key++) {
		char text[16];

		snprintf(text, sizeof text, "GET %c", key);
		ask(alice, text);
		received(alice, NOKEY);
	}
	ask(admin, "ACL LOG 100");
	assert_true(heard_part(admin, "*3\r\n"));
	ask(admin, "ACL LOG 100");
	assert_false(heard_part(admin, "object\r\n$1\r\nd\r\n"));
	hs_sim_world_destroy(&world);
}

static void test_passwords_are_not_in_the_slow_log(void **state)
{
	struct hs_sim_world *world = open_world("on nopass");
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	struct hs_core_options options = world->options.core;

	(void)state;
	options.acl = NULL;
	options.slowlog_us = 0;
	hs_core_configure(hs_sim_world_core(world, 0), &options);
	ask(client, "AUTH default s3cret");
	ask(client, "HELLO 2 AUTH default s3cret SETNAME me");
	ask(client, "ACL SETUSER bob on >s3cret");
	ask(client, "CONFIG SET requirepass s3cret");
	ask(client, "config set maxclients 10 TLS-key-file-pass s3cret");
	ask(client,
	    "CONFIG SET engine-password s3cret masterauth s3cret engine redis://u:s3cret@h");
	ask(client, "ACL DRYRUN default AUTH s3cret");
	ask(client, "ACL DRYRUN default CONFIG SET requirepass s3cret");
	ask(client, "COMMAND GETKEYS MIGRATE h 1 k 0 9 AUTH s3cret");
	client->received.len = 0;
	ask(client, "SLOWLOG GET -1");
	assert_false(heard_part(client, "s3cret"));
	ask(client, "SLOWLOG GET -1");
	assert_true(heard_part(client, "$4\r\nAUTH\r\n$10\r\n(redacted)\r\n$10\r\n(redacted)\r\n"));
	ask(client, "SLOWLOG GET -1");
	assert_true(heard_part(client, "$7\r\nSETNAME\r\n$2\r\nme\r\n"));
	hs_sim_world_destroy(&world);
}

/* Sets new users and causes an event on every worker, so that each worker closes the connections that lost their
 * user. */
static void hand_in_and_wake(struct hs_sim_world *world, const char *alice)
{
	hand_in(world, users_of(alice));
	for (uint32_t i = 0; i < world->options.workers; i++)
		ask(hs_sim_client_connect(world, i), "PING");
}

/* New rules that revoke a channel close only the connections that subscribe to it. */
static void test_channels_that_a_change_revokes(void **state)
{
	struct hs_sim_world *world = open_world("on nopass +@all ~* &news.* &x");
	struct hs_sim_client *channel = alice_in(world, 0), *pattern = alice_in(world, 1);
	struct hs_sim_client *shard = alice_in(world, 1), *other = alice_in(world, 0);
	struct hs_sim_client *quiet = alice_in(world, 0), *all = hs_sim_client_connect(world, 0);

	(void)state;
	ask(channel, "SUBSCRIBE x news.a");
	ask(pattern, "PSUBSCRIBE news.*");
	ask(shard, "SSUBSCRIBE news.a");
	ask(other, "SUBSCRIBE x");
	ask(all, "SUBSCRIBE news.a");
	/* New rules that revoke no channel close no connection. */
	hand_in_and_wake(world, "on nopass +@all -keys ~a &news.* &x &y");
	assert_non_null(channel->session);
	assert_non_null(pattern->session);
	assert_non_null(shard->session);
	hand_in_and_wake(world, "on nopass +@all ~* &x");
	assert_null(channel->session);
	assert_null(pattern->session);
	assert_null(shard->session);
	assert_non_null(other->session);
	hand_in_and_wake(world, "on nopass +@all ~*");
	assert_null(other->session);
	assert_non_null(quiet->session);
	assert_non_null(all->session);
	hs_sim_world_destroy(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused_commands),
		cmocka_unit_test(test_other_users_are_not_restricted),
		cmocka_unit_test(test_a_wrong_password_changes_nothing),
		cmocka_unit_test(test_queued_commands_are_checked),
		cmocka_unit_test(test_rules_may_change_before_exec),
		cmocka_unit_test(test_a_change_applies_to_connected_clients),
		cmocka_unit_test(test_a_user_disabled_later),
		cmocka_unit_test(test_the_log),
		cmocka_unit_test(test_the_log_is_bounded),
		cmocka_unit_test(test_channels_that_a_change_revokes),
		cmocka_unit_test(test_passwords_are_not_in_the_slow_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
