/* Goal: INFO of masters and replicas, of Redis and Valkey, is parsed exactly, and any other text does no harm.
 *
 * Method: replies of redis-server 7.0, shortened; similar lines; cut texts. */
#include "engine/redis/node_info.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MASTER                                                                                     \
	"# Server\r\nredis_version:7.0.15\r\nredis_mode:cluster\r\n"                               \
	"os:Linux 6.1 x86_64\r\nrun_id:3c1f56bd91267b1af0b9ef8cfe69d52915500535\r\n\r\n"           \
	"# Clients\r\nconnected_clients:17\r\nmaxclients:10000\r\n\r\n"                            \
	"# "                                                                                       \
	"Memory\r\nused_memory:1980896\r\nused_memory_human:1.89M\r\nused_memory_rss:7938048\r\n"  \
	"\r\n# Persistence\r\nloading:0\r\nasync_loading:0\r\n\r\n"                                \
	"# Stats\r\ninstantaneous_ops_per_sec:1234\r\nevicted_keys:5\r\nevicted_clients:9\r\n\r\n" \
	"# Replication\r\nrole:master\r\nconnected_slaves:3\r\n"                                   \
	"slave0:ip=127.0.0.1,port=21705,state=online,offset=900,lag=1\r\n"                         \
	"slave1:ip=127.0.0.1,port=21706,state=online,offset=700,lag=4\r\n"                         \
	"slave2:ip=127.0.0.1,port=21707,state=wait_bgsave,offset=0,lag=0\r\n"                      \
	"master_failover_state:no-failover\r\nmaster_repl_offset:1000\r\n"                         \
	"second_repl_offset:-1\r\n\r\n"                                                            \
	"# CPU\r\nused_cpu_sys:0.019755\r\nused_cpu_user:12.5\r\n"                                 \
	"used_cpu_sys_children:3.000000\r\nused_cpu_user_main_thread:9.022456\r\n\r\n"             \
	"# Modules\r\n\r\n# Commandstats\r\ncmdstat_info:calls=2,usec=78\r\n\r\n"                  \
	"# Keyspace\r\ndb0:keys=100,expires=7,avg_ttl=0\r\ndb3:keys=20,expires=1,avg_ttl=0\r\n"

static struct hs_node_info parse(const char *text)
{
	struct hs_node_info info;

	assert_int_equal(hs_node_info_parse(&info, hs_bytes_of(text)), 0);
	return info;
}

static void test_a_master(void **state)
{
	struct hs_node_info info = parse(MASTER);

	(void)state;
	assert_int_equal(info.role, HS_NODE_MASTER);
	assert_false(info.loading);
	assert_false(info.link_down);
	assert_false(info.valkey);
	assert_string_equal(info.run_id, "3c1f56bd91267b1af0b9ef8cfe69d52915500535");
	assert_string_equal(info.version, "7.0.15");
	assert_int_equal(info.cpu_us, 12519755);
	assert_int_equal(info.memory_bytes, 1980896);
	assert_int_equal(info.clients, 17);
	assert_int_equal(info.ops_per_s, 1234);
	assert_int_equal(info.evicted, 5);
	assert_int_equal(info.keys, 120);
	assert_int_equal(info.expires, 8);
	assert_int_equal(info.replicas, 3);
	assert_int_equal(info.replicas_online, 2);
	assert_int_equal(info.lag_s, 4);
	assert_int_equal(info.lag_bytes, 300);
}

static void test_a_replica(void **state)
{
	struct hs_node_info up = parse("role:slave\r\nmaster_host:127.0.0.1\r\n"
				       "master_link_status:up\r\nmaster_last_io_seconds_ago:2\r\n"
				       "slave_read_repl_offset:128\r\nslave_repl_offset:28\r\n"
				       "connected_slaves:0\r\nmaster_replid:abc\r\n"
				       "master_replid2:def\r\nmaster_repl_offset:29\r\n");
	struct hs_node_info down = parse("role:slave\r\nmaster_link_status:down\r\n"
					 "master_last_io_seconds_ago:-1\r\n"
					 "master_link_down_since_seconds:77\r\nloading:1\r\n");

	(void)state;
	assert_int_equal(up.role, HS_NODE_REPLICA);
	assert_false(up.link_down);
	assert_int_equal(up.lag_s, 2);
	assert_int_equal(up.lag_bytes, 100);
	assert_string_equal(up.replication_id, "abc");
	assert_int_equal(up.offset, 28); /* the offset that the replica has applied */
	assert_true(down.link_down);
	assert_true(down.loading);
	assert_int_equal(down.lag_s, 77);
	assert_int_equal(down.lag_bytes, 0);
}

static void test_valkey_has_a_version_of_its_own(void **state)
{
	struct hs_node_info info =
		parse("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.1.0\r\n");
	struct hs_node_info other = parse("valkey_version:8.1.0\nredis_version:7.2.4\n");

	(void)state;
	assert_true(info.valkey);
	assert_string_equal(info.version, "8.1.0");
	assert_string_equal(other.version, "8.1.0");
}

static void test_a_replica_ahead_is_not_behind(void **state)
{
	struct hs_node_info info = parse("role:master\r\nslave0:state=online,offset=30,lag=0\r\n"
					 "master_repl_offset:20\r\n");

	(void)state;
	assert_int_equal(info.lag_bytes, 0);
	assert_int_equal(info.offset, 20);
	assert_int_equal(parse("role:master\r\nmaster_repl_offset:20\r\n").lag_bytes, 0);
}

static void test_other_texts(void **state)
{
	static const char *const none[] = {"",	"\r\n",	    "PONG", "# Server\r\n",
					   ":", "a:b\nc:d", "\n\n"};
	struct hs_node_info info;

	(void)state;
	for (size_t i = 0; i < sizeof none / sizeof *none; i++)
		assert_int_equal(hs_node_info_parse(&info, hs_bytes_of(none[i])), HS_EPROTO);
	/* A malformed number leaves the field unset. */
	info = parse("role:chief\r\nused_memory:1e9\r\nconnected_clients:-4\r\n"
		     "used_cpu_sys:1.5s\r\nused_cpu_user:99999999999999999999\r\n"
		     "slave0:\r\nslave1:=,=,,offset,lag=x\r\ndb0:keys=,keys\r\nslaves:1\r\n"
		     "run_id:\x1b[2J\r\nevicted_keys:18446744073709551616\r\n"
		     "redis_version:0123456789012345678901234567890123456789\r\n");
	assert_int_equal(info.role, HS_NODE_UNKNOWN);
	assert_int_equal(info.memory_bytes, 0);
	assert_int_equal(info.clients, 0);
	assert_int_equal(info.cpu_us, 0);
	assert_int_equal(info.evicted, 0);
	assert_int_equal(info.replicas, 2);
	assert_int_equal(info.replicas_online, 0);
	assert_int_equal(info.keys, 0);
	assert_string_equal(info.run_id, "?[2J");
	assert_int_equal(strlen(info.version), sizeof info.version - 1);
}

/* Each text lies in an allocation of exactly its length, so that a sanitizer reports a read beyond the end. */
static void test_a_text_cut_anywhere(void **state)
{
	(void)state;
	for (size_t len = 0; len < sizeof MASTER; len++) {
		char *copy = malloc(len ? len : 1);
		struct hs_node_info info;

		assert_non_null(copy);
		memcpy(copy, MASTER, len);
		(void)!hs_node_info_parse(&info, (struct hs_bytes){copy, len});
		free(copy);
	}
}

static void test_cpu_between_two_looks(void **state)
{
	struct hs_node_info a = {.run_id = "x", .cpu_us = 1000000}, b = a;

	(void)state;
	b.cpu_us = 1750000;
	assert_true(hs_node_info_cpu(&a, &b, 500000) == 1.5);
	assert_true(hs_node_info_cpu(&a, &b, 0) == 0);
	assert_true(hs_node_info_cpu(&b, &a, 500000) == 0);
	/* Another run id: the server has restarted, and its CPU time counts from zero. */
	b.run_id[0] = 'y';
	assert_true(hs_node_info_cpu(&a, &b, 500000) == 0);
}

static void test_keyspace_alone(void **state)
{
	struct hs_node_info info = parse(MASTER);

	(void)state;
	assert_int_equal(hs_node_info_parse_keyspace(
				 &info, HS_LIT("# Keyspace\r\ndb0:keys=7,expires=2,avg_ttl=0\r\n"
					       "db9:keys=1,expires=1,avg_ttl=5\r\n")),
			 0);
	assert_int_equal(info.keys, 8);
	assert_int_equal(info.expires, 3);
	assert_int_equal(info.role, HS_NODE_MASTER); /* the fields parsed before are not affected */
	assert_int_equal(info.clients, 17);
	assert_int_equal(hs_node_info_parse_keyspace(&info, HS_LIT("# Keyspace\r\n")), 0);
	assert_int_equal(info.keys, 0);
	assert_int_equal(info.expires, 0);
	assert_int_equal(hs_node_info_parse_keyspace(&info, hs_bytes_of(MASTER)), 0);
	assert_int_equal(info.keys, 120);
	assert_int_equal(hs_node_info_parse_keyspace(&info, HS_LIT("")), HS_EPROTO);
	assert_int_equal(hs_node_info_parse_keyspace(&info, HS_LIT("db0:keys=9,expires=9")),
			 HS_EPROTO);
	assert_int_equal(info.keys, 120);
	assert_int_equal(info.expires, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_master),
		cmocka_unit_test(test_a_replica),
		cmocka_unit_test(test_valkey_has_a_version_of_its_own),
		cmocka_unit_test(test_a_replica_ahead_is_not_behind),
		cmocka_unit_test(test_other_texts),
		cmocka_unit_test(test_a_text_cut_anywhere),
		cmocka_unit_test(test_keyspace_alone),
		cmocka_unit_test(test_cpu_between_two_looks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
