/* Goal: what each single fault does to requests in flight through heatsink, and that clients get the true
 * outcome.
 *
 * Method: scripts over a simulated heatsink in front of simulated servers. test_sim.c runs random schedules
 * with these faults. */
#include "base/slot.h"
#include "core/session.h"
#include "sim/cluster.h"
#include "sim/leftovers.h"
#include "sim/names.h"
#include "sim/world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct hs_sim_world_options options_for(uint64_t seed)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(seed);

	options.engine.partitions = 1;
	options.op_scope = HS_OP_SCOPE_ALL;
	options.servers = (struct hs_sim_servers_options){
		.on = true,
		.latency_us_max = 100,
		.in_flight_max = 100,
		.waiting_max = 100,
		.private_max = 100,
		.timeout_us = 100000,
		.down_us_max = 1000,
	};
	return options;
}

static void assert_heard(struct hs_sim_client *client, const char *text)
{
	hs_buf_append(&client->received, "", 1);
	assert_string_equal(client->received.data, text);
	hs_buf_clear(&client->received, 0);
}

static bool received(const struct hs_sim_client *client, const char *text)
{
	return client->received.len > 0 &&
	       memmem(client->received.data, client->received.len, text, strlen(text));
}

static void test_one_connection_keeps_the_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct hs_sim_world_options options = options_for(seed);
		struct hs_sim_world *world = hs_sim_world_create(&options);
		struct hs_sim_client *client = hs_sim_client_connect(world, 0);

		hs_sim_client_request(client, "SET a 1");
		hs_sim_client_request(client, "INCR a");
		hs_sim_client_request(client, "GET a");
		assert_int_equal(client->received.len,
				 0); /* no reply comes before the world has run */
		hs_sim_world_settle(world);
		assert_heard(client, "+OK\r\n:2\r\n$1\r\n2\r\n");
		hs_sim_world_destroy(&world);
	}
}

/* Sends INCRs while connections are lost all the time: each is acknowledged, refused or unknown. An
 * acknowledged INCR has run, a refused one has not. */
static void check_lost(struct hs_sim_world_options *options, uint64_t *acknowledged,
		       uint64_t *unknown, uint64_t *refused)
{
	struct hs_sim_world *world = hs_sim_world_create(options);
	struct hs_sim_client *client = hs_sim_client_connect(world, 0);
	uint64_t counts[3] = {0}, final;

	for (int i = 0; i < 30; i++) {
		hs_sim_client_request(client, "INCR a");
		if (i % 3 != 0)
			continue;
		hs_sim_world_settle(world);
	}
	hs_sim_world_settle(world);
	for (const char *at = client->received.data, *end = at + client->received.len; at < end;) {
		counts[0] += at[0] == ':';
		counts[1] += strncmp(at, "-UNKNOWN ", 9) == 0;
		counts[2] += at[0] == '-' && strncmp(at, "-UNKNOWN ", 9) != 0;
		at = (const char *)memchr(at, '\n', (size_t)(end - at)) + 1;
	}
	assert_int_equal(counts[0] + counts[1] + counts[2], 30);
	hs_buf_clear(&client->received, 0);
	hs_sim_world_stop_faults(world);
	hs_sim_client_request(client, "INCRBY a 0");
	hs_sim_world_settle(world);
	hs_buf_append(&client->received, "", 1);
	final = strtoull(client->received.data + 1, NULL, 10);
	assert_in_range(final, counts[0], counts[0] + counts[1]);
	*acknowledged += counts[0];
	*unknown += counts[1];
	*refused += counts[2];
	hs_sim_world_destroy(&world);
}

static void test_lost_connections(void **state)
{
	uint64_t acknowledged = 0, unknown = 0, refused = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct hs_sim_world_options options = options_for(seed);

		options.servers.lose_one_in = 10;
		check_lost(&options, &acknowledged, &unknown, &refused);
	}
	print_message("%llu acknowledged, %llu unknown, %llu refused\n",
		      (unsigned long long)acknowledged, (unsigned long long)unknown,
		      (unsigned long long)refused);
	assert_true(acknowledged > 1000 && unknown > 100 && refused > 5);
}

static void test_lost_replies_crashes_and_stalls(void **state)
{
	uint64_t acknowledged = 0, unknown = 0, refused = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct hs_sim_world_options options = options_for(seed);

		options.servers.mute_one_in = 20;
		check_lost(&options, &acknowledged, &unknown, &refused);
		options.servers.mute_one_in = 0;
		options.servers.act_us_max = 500;
		options.servers.crashes = true;
		check_lost(&options, &acknowledged, &unknown, &refused);
	}
	assert_true(acknowledged > 1000 && unknown > 100);
	unknown = refused = 0;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct hs_sim_world_options options = options_for(seed);

		options.servers.act_us_max = 500;
		options.servers.stalls = true;
		check_lost(&options, &acknowledged, &unknown, &refused);
	}
	assert_int_equal(unknown + refused, 0); /* a stall only delays requests */
}

/* heatsink sends a lost read again, unless a later write of the same client was lost, too. */
static void test_reads_are_sent_again(void **state)
{
	uint64_t again = 0, not_again = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct hs_sim_world_options options = options_for(seed);
		struct hs_sim_world *world;
		struct hs_sim_client *client;

		options.servers.lose_one_in = 12;
		world = hs_sim_world_create(&options);
		client = hs_sim_client_connect(world, 0);
		hs_sim_client_request(client, "GET a");
		hs_sim_world_settle(world);
		again += received(client, "$-1");
		assert_false(received(client, "UNKNOWN"));
		hs_buf_clear(&client->received, 0);
		hs_sim_client_request(client, "GET a");
		hs_sim_client_request(client, "SET a 5");
		hs_sim_world_settle(world);
		assert_false(received(client, "$1\r\n5"));
		not_again += received(client, "-UNKNOWN") && !received(client, "$-1");
		hs_sim_world_destroy(&world);
	}
	print_message("%llu again, %llu not\n", (unsigned long long)again,
		      (unsigned long long)not_again);
	assert_true(again > 150 && not_again > 10);
}

/* A watch ends with its connection: EXEC then runs no command. */
static void test_watches(void **state)
{
	uint64_t ran = 0, lost = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct hs_sim_world_options options = options_for(seed);
		struct hs_sim_world *world;
		struct hs_sim_client *client, *other;

		options.servers.lose_one_in = seed % 2 == 0 ? 6 : 0;
		world = hs_sim_world_create(&options);
		client = hs_sim_client_connect(world, 0);
		other = hs_sim_client_connect(world, 0);
		hs_sim_client_request(client, "WATCH a");
		hs_sim_world_settle(world);
		if (seed % 4 == 1) {
			hs_sim_client_request(other, "SET a 1");
			hs_sim_world_settle(world);
		}
		hs_sim_client_request(client, "MULTI");
		hs_sim_client_request(client, "SET a 2");
		hs_sim_client_request(client, "EXEC");
		hs_sim_world_settle(world);
		if (seed % 2 == 1)
			assert_heard(client, seed % 4 == 1
						     ? "+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n"
						     : "+OK\r\n+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
		ran += received(client, "*1\r\n+OK");
		lost += received(client, "not sent") && received(client, "*-1");
		hs_sim_world_destroy(&world);
	}
	assert_true(ran > 10 && lost > 10);
}

static void test_too_many_requests_wait(void **state)
{
	struct hs_sim_world_options options = options_for(1);
	struct hs_sim_world *world;
	struct hs_sim_client *client;

	(void)state;
	options.servers.in_flight_max = 1;
	options.servers.waiting_max = 2;
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	hs_sim_client_request(client, "GET a"); /* so that the connection is open */
	hs_sim_world_settle(world);
	hs_buf_clear(&client->received, 0);
	for (int i = 0; i < 4; i++)
		hs_sim_client_request(client, "INCR a");
	hs_sim_world_settle(world);
	assert_heard(client, ":1\r\n:2\r\n:3\r\n-BUSY 2 requests wait for 10.0.0.1:7000 already "
			     "(engine-queue); not sent\r\n");
	hs_sim_world_destroy(&world);
}

/* In front of a Cluster FLUSHALL goes to every master, on connections that earlier requests may not use:
 * FLUSHALL waits for the earlier requests. */
static void test_a_flush_waits_for_earlier_requests(void **state)
{
	struct hs_sim_world_options options = options_for(1);
	struct hs_sim_world *world;
	struct hs_sim_client *client;

	(void)state;
	options.engine.partitions = 16;
	options.op_scope = HS_OP_SCOPE_SLOT;
	options.servers.cluster = true;
	options.servers.masters = 3;
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	hs_sim_client_request(client, "SET a 1");
	hs_sim_world_settle(world);
	assert_heard(client, "+OK\r\n");
	hs_sim_client_request(client, "GET a");
	hs_sim_client_request(client, "FLUSHALL");
	assert_int_equal(client->session->hold, HS_HOLD_IN_FLIGHT);
	hs_sim_client_request(client, "GET a");
	hs_sim_world_settle(world);
	assert_heard(client, "$1\r\n1\r\n+OK\r\n$-1\r\n");
	hs_sim_world_destroy(&world);
}

/* heatsink refuses requests for a slot without an owner. When the slot has an owner again, heatsink soon serves
 * it, although it reads the topology only every five seconds. */
static void test_a_slot_that_is_served_again_is_found_soon(void **state)
{
	struct hs_sim_world_options options = options_for(2);
	struct hs_sim_world *world;
	struct hs_sim_client *client;

	(void)state;
	options.engine.partitions = 16;
	options.op_scope = HS_OP_SCOPE_SLOT;
	options.servers.cluster = true;
	options.servers.masters = 3;
	options.servers.replicas = 1;
	options.servers.lossy = true;
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	hs_sim_client_request(client, "SET a 1");
	hs_sim_world_settle(world);
	assert_heard(client, "+OK\r\n");
	hs_sim_cluster_crash(world->cluster,
			     hs_sim_cluster_owner(world->cluster, hs_slot_of(HS_LIT("a"))));
	hs_sim_world_pass(world, 3000000);
	hs_sim_world_stop_faults(world);
	hs_sim_world_pass(world, 3000000);
	hs_sim_client_request(client, "SET a 2");
	hs_sim_world_settle(world);
	assert_heard(client, "+OK\r\n");
	hs_sim_world_destroy(&world);
}

static void test_names(void **state)
{
	char text[HS_SIM_NAME_BYTES_MAX];
	uint32_t key;

	(void)state;
	assert_string_equal(hs_sim_name(2, 0, text), "key0");
	assert_string_equal(hs_sim_name(2, 2, text), "key2{key0}");
	assert_string_equal(hs_sim_name(2, 3, text), "key3");
	assert_true(hs_sim_name_number(HS_LIT("key2{key0}"), &key) && key == 2);
	assert_true(hs_sim_name_number(HS_LIT("key3"), &key) && key == 3);
	assert_false(hs_sim_name_number(HS_LIT("key"), &key));
	assert_false(hs_sim_name_number(HS_LIT("key{key0}"), &key));
	assert_int_equal(hs_sim_name_slot(2, 0), hs_sim_name_slot(2, 2));
	assert_int_not_equal(hs_sim_name_slot(2, 0), hs_sim_name_slot(2, 3));
}

/* One of two keys of a slot has moved. A command that names both keys waits, and is refused after
 * engine-timeout. */
static void test_a_slot_on_two_nodes(void **state)
{
	struct hs_sim_world_options options = options_for(3);
	uint16_t slot = hs_sim_name_slot(1, 0);
	struct hs_sim_world *world;
	struct hs_sim_client *client;

	(void)state;
	options.engine.partitions = 16;
	options.op_scope = HS_OP_SCOPE_SLOT;
	options.servers.cluster = true;
	options.servers.masters = 3;
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	hs_sim_client_request(client, "MSET key0 1 key1{key0} 2");
	hs_sim_world_settle(world);
	assert_heard(client, "+OK\r\n");
	assert_true(hs_sim_cluster_move_begin(
		world->cluster, slot,
		(uint8_t)((hs_sim_cluster_owner(world->cluster, slot) + 1) % 3)));
	assert_true(hs_sim_cluster_move_this(world->cluster, slot, HS_LIT("key0")));
	hs_sim_client_request(client, "MGET key0 key1{key0}");
	hs_sim_world_pass(world, 50000);
	assert_int_equal(client->received.len, 0);
	assert_true(hs_sim_cluster_move_end(world->cluster, slot));
	hs_sim_world_settle(world);
	assert_heard(client, "*2\r\n$1\r\n1\r\n$1\r\n2\r\n");
	hs_sim_world_pass(world, 100000);
	assert_true(hs_sim_cluster_move_begin(
		world->cluster, slot,
		(uint8_t)((hs_sim_cluster_owner(world->cluster, slot) + 1) % 3)));
	assert_true(hs_sim_cluster_move_this(world->cluster, slot, HS_LIT("key1{key0}")));
	hs_sim_client_request(client, "MSET key0 3 key1{key0} 4");
	hs_sim_client_request(client, "GET key0");
	hs_sim_world_settle(world);
	assert_heard(client, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
			     "$1\r\n1\r\n");
	hs_sim_world_destroy(&world);
}

/* A client sets key0, the external command `words` runs, and the heatsinks stop. Returns the result of the
 * leftovers checker. */
static int check_left(const char *words, bool faults, const int64_t *finals,
		      struct hs_sim_verdict *verdict)
{
	const struct hs_sim_leftovers_keys keys = {.count = 2, .finals = finals};
	struct hs_sim_world_options options = options_for(4);
	struct hs_bytes argv[6];
	struct hs_buf reply = {0};
	struct hs_sim_world *world;
	struct hs_sim_client *client;
	size_t argc = 0;
	int err;

	options.servers.act_us_max =
		faults ? 1000
		       : 0; /* enables faults without any kind of fault, so that none happens */
	world = hs_sim_world_create(&options);
	client = hs_sim_client_connect(world, 0);
	hs_sim_client_request(client, "SET key0 1");
	hs_sim_world_settle(world);
	assert_heard(client, "+OK\r\n");
	for (size_t len; *words; words += len + (words[len] == ' ')) {
		len = strcspn(words, " ");
		argv[argc++] = (struct hs_bytes){words, len};
	}
	if (argc > 0)
		assert_true(hs_sim_world_do_external(world, argv[1], argc, argv, &reply));
	*verdict = (struct hs_sim_verdict){0};
	err = hs_sim_check_leftovers(world, &keys, verdict);
	assert_int_equal(verdict->law, err ? HS_SIM_LAW_LEFTOVERS : 0);
	hs_buf_deinit(&reply);
	hs_sim_world_destroy(&world);
	return err;
}

static void test_leftovers_are_found(void **state)
{
	static const char *const bad[] = {
		"SET heatsink:lock 1",
		"SET key2 1",
		"SET key0 what",
		"PEXPIRE key0 600000",
		"SET heatsink:copy:{1}:a:1:key0 1",
		"SET heatsink:copy:{1}:a:1:key0 1 EX 9",
	};
	const int64_t read[] = {1, HS_SIM_NOTHING};
	struct hs_sim_verdict verdict;

	(void)state;
	assert_int_equal(check_left("", false, NULL, &verdict), 0);
	assert_int_equal(check_left("SET key1 5", false, NULL, &verdict), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_not_equal(check_left(bad[i], false, NULL, &verdict), 0);
	/* With faults a copy of a key may remain until its lease ends. */
	assert_int_equal(check_left("SET heatsink:copy:{1}:a:1:key0 1 EX 9", true, NULL, &verdict),
			 0);
	assert_int_not_equal(
		check_left("SET heatsink:copy:{1}:a:1:key0 1 EX 20", true, NULL, &verdict), 0);
	/* The final value of a key must be the value that clients read last. */
	assert_int_equal(check_left("", false, read, &verdict), 0);
	assert_int_not_equal(check_left("SET key0 2", false, read, &verdict), 0);
	assert_int_not_equal(check_left("SET key1 2", false, read, &verdict), 0);
	assert_int_not_equal(check_left("DEL key0", false, read, &verdict), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_connection_keeps_the_order),
		cmocka_unit_test(test_lost_connections),
		cmocka_unit_test(test_lost_replies_crashes_and_stalls),
		cmocka_unit_test(test_reads_are_sent_again),
		cmocka_unit_test(test_watches),
		cmocka_unit_test(test_too_many_requests_wait),
		cmocka_unit_test(test_a_flush_waits_for_earlier_requests),
		cmocka_unit_test(test_a_slot_that_is_served_again_is_found_soon),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_a_slot_on_two_nodes),
		cmocka_unit_test(test_leftovers_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
