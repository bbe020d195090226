/* Goal: a reply to CLUSTER SLOTS becomes a topology of shards, whatever the server's version and RESP version.
 * Shards keep their numbers through every change of a cluster; a malformed reply is refused with a reason.
 *
 * Method: replies of redis-server 7.0 as sent, and replies composed of nodes that are named by one letter. */
#include "engine/redis/topology.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CAPACITY = 8 };

#define ID_1 "$40\r\nee8c4ccf1956172c062965987eb63f0f36fa987d\r\n"
#define ID_2 "$40\r\ne32bca78b4a2f60ca401b76dcb8fef27d56e275d\r\n"
#define ID_3 "$40\r\nb98cfcecbf0233c5d70d5a5f23acaeadf90cc32d\r\n"
#define IP "$9\r\n127.0.0.1\r\n"

static const char REAL[] = "*2\r\n*4\r\n:0\r\n:5460\r\n*4\r\n" IP ":21701\r\n" ID_1 "*0\r\n"
			   "*4\r\n" IP ":21704\r\n" ID_3 "*0\r\n"
			   "*3\r\n:5461\r\n:16383\r\n*4\r\n" IP ":21702\r\n" ID_2
			   "*2\r\n$8\r\nhostname\r\n$10\r\nn2.example\r\n";
static const char REAL_RESP3[] = "*2\r\n*4\r\n:0\r\n:5460\r\n*4\r\n" IP ":21701\r\n" ID_1 "%0\r\n"
				 "*4\r\n" IP ":21704\r\n" ID_3 "%0\r\n"
				 "*3\r\n:5461\r\n:16383\r\n*4\r\n" IP ":21702\r\n" ID_2
				 "%1\r\n$8\r\nhostname\r\n$10\r\nn2.example\r\n";

static char why[HS_REDIS_WHY_BYTES];

static struct hs_topology *parse_reply(struct hs_bytes reply, uint16_t capacity)
{
	struct hs_topology *topology;

	if (hs_topology_parse(&topology, reply, "asked", capacity, why, sizeof why) != 0)
		fail_msg("%s", why);
	return topology;
}

static struct hs_topology *parse(const char *reply)
{
	return parse_reply(hs_bytes_of(reply), CAPACITY);
}

/* Creates a topology from a short notation: "0-99 a b c, 100 d" are two ranges of slots with the masters a and
 * d; b and c are replicas of a. Node a has the id "aaaa" and port 1, b has "bbbb" and 2, and so on. */
static struct hs_topology *make_of(const char *text, uint16_t capacity)
{
	struct hs_buf ranges = {0}, reply = {0};
	struct hs_topology *topology;
	int count = 0;

	while (*text) {
		struct hs_buf nodes = {0};
		unsigned first, last;
		int used, nodes_count = 0;

		if (sscanf(text, "%u-%u%n", &first, &last, &used) < 2) {
			assert_int_equal(sscanf(text, "%u%n", &first, &used), 1);
			last = first;
		}
		for (text += used; *text == ' '; text += 2, nodes_count++)
			hs_buf_printf(&nodes, "*4\r\n$1\r\n%c\r\n:%d\r\n$4\r\n%c%c%c%c\r\n*0\r\n",
				      text[1], text[1] - 'a' + 1, text[1], text[1], text[1],
				      text[1]);
		hs_buf_printf(&ranges, "*%d\r\n:%u\r\n:%u\r\n", nodes_count + 2, first, last);
		hs_buf_append_bytes(&ranges, hs_buf_bytes(&nodes));
		hs_buf_deinit(&nodes);
		count++;
		text += strspn(text, ", ");
	}
	hs_buf_printf(&reply, "*%d\r\n", count);
	hs_buf_append_bytes(&reply, hs_buf_bytes(&ranges));
	topology = parse_reply(hs_buf_bytes(&reply), capacity);
	hs_buf_deinit(&ranges);
	hs_buf_deinit(&reply);
	return topology;
}

static struct hs_topology *make(const char *text)
{
	return make_of(text, CAPACITY);
}

/* The numbers of the shards, each after the letter of its master: "a0 d1". */
static const char *numbers(const struct hs_topology *topology)
{
	static char text[256];
	size_t len = 0;

	text[0] = '\0';
	for (uint16_t i = 0; i < topology->shards_count; i++)
		len += (size_t)snprintf(text + len, sizeof text - len, "%s%s%u", i ? " " : "",
					topology->shards[i].master.address.host,
					topology->shards[i].partition);
	return text;
}

/* ---- reading ---- */

static void check_real(struct hs_topology *topology)
{
	const struct hs_topology_shard *shards = topology->shards;

	assert_int_equal(topology->shards_count, 2);
	assert_int_equal(topology->slots_count, HS_SLOTS);
	assert_string_equal(shards[0].master.id, "ee8c4ccf1956172c062965987eb63f0f36fa987d");
	assert_string_equal(shards[0].master.address.host, "127.0.0.1");
	assert_int_equal(shards[0].master.address.port, 21701);
	assert_int_equal(shards[0].slots_count, 5461);
	assert_int_equal(shards[0].replicas_count, 1);
	assert_string_equal(shards[0].replicas[0].id, "b98cfcecbf0233c5d70d5a5f23acaeadf90cc32d");
	assert_int_equal(shards[0].replicas[0].address.port, 21704);
	assert_int_equal(shards[1].replicas_count, 0);
	/* This reply prefers addresses: the host name that it also contains is not used. */
	assert_string_equal(shards[1].master.address.host, "127.0.0.1");
	assert_int_equal(topology->ranges_count, 2);
	assert_int_equal(topology->ranges[0].last, 5460);
	assert_int_equal(topology->ranges[0].shard, 0);
	assert_int_equal(topology->ranges[1].first, 5461);
	assert_int_equal(topology->ranges[1].shard, 1);
	hs_topology_destroy(&topology);
	assert_null(topology);
}

static void test_real_replies(void **state)
{
	(void)state;
	check_real(parse(REAL));
	check_real(parse(REAL_RESP3));
	check_real(parse("|1\r\n+ttl\r\n*1\r\n:1\r\n*2\r\n*4\r\n:0\r\n:5460\r\n*4\r\n" IP
			 ":21701\r\n" ID_1 "*0\r\n*4\r\n" IP ":21704\r\n" ID_3
			 "*0\r\n*3\r\n:5461\r\n:16383\r\n*4\r\n" IP ":21702\r\n" ID_2 "*0\r\n"));
}

/* A node may announce several hosts: which of them is used. */
static void test_endpoints(void **state)
{
	static const struct {
		const char *node, *host;
	} cases[] = {
		{"*4\r\n$-1\r\n:7\r\n" ID_1 "*2\r\n$2\r\nip\r\n" IP, "asked"},
		{"*4\r\n_\r\n:7\r\n" ID_1 "%0\r\n", "asked"},
		{"*4\r\n$0\r\n\r\n:7\r\n" ID_1 "*0\r\n", "asked"},
		{"*4\r\n$10\r\nn1.example\r\n:7\r\n" ID_1 "*2\r\n$2\r\nip\r\n" IP, "n1.example"},
		{"*4\r\n$1\r\n?\r\n:7\r\n" ID_1 "*2\r\n$2\r\nip\r\n" IP, "127.0.0.1"},
		{"*4\r\n$1\r\n?\r\n:7\r\n" ID_1 "%2\r\n+new\r\n*1\r\n:1\r\n+hostname\r\n+h\r\n",
		 "h"},
		{"*5\r\n" IP ":7\r\n" ID_1 "*0\r\n*1\r\n:1\r\n", "127.0.0.1"},
		{"*3\r\n" IP ":7\r\n" ID_1, "127.0.0.1"}, /* a reply as sent before Redis 7 */
		{"*2\r\n" IP ":7\r\n", "127.0.0.1"},	  /* a reply as sent before Redis 4 */
		{"*3\r\n$5\r\nfe::1\r\n:7\r\n" ID_1, "fe::1"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char reply[512];
		struct hs_topology *topology;

		snprintf(reply, sizeof reply, "*1\r\n*3\r\n:0\r\n:9\r\n%s", cases[i].node);
		topology = parse(reply);
		assert_string_equal(topology->shards[0].master.address.host, cases[i].host);
		assert_int_equal(topology->shards[0].master.address.port, 7);
		assert_int_equal(topology->slots_count, 10);
		hs_topology_destroy(&topology);
	}
}

static void test_a_replica_without_an_address_is_left_out(void **state)
{
	struct hs_topology *topology =
		parse("*1\r\n*5\r\n:0\r\n:9\r\n*3\r\n" IP ":1\r\n" ID_1 "*3\r\n" IP ":0\r\n" ID_2
		      "*3\r\n$1\r\n?\r\n:1\r\n" ID_3);

	(void)state;
	assert_int_equal(topology->shards[0].replicas_count, 0);
	hs_topology_destroy(&topology);
}

static void test_ranges_of_a_master_are_one_shard(void **state)
{
	struct hs_topology *topology = make("9-10 c d, 5-8 a b, 100 c e f, 0-4 c d");
	char text[64];

	(void)state;
	assert_int_equal(topology->shards_count, 2);
	assert_int_equal(hs_topology_update(NULL, topology), HS_TOPOLOGY_CHANGED);
	/* Shards are numbered by their lowest slots. */
	assert_string_equal(numbers(topology), "c0 a1");
	assert_int_equal(topology->shards[0].slots_count, 8);
	assert_int_equal(topology->shards[0].replicas_count, 1);
	assert_string_equal(hs_topology_slots_text(topology, 0, text, sizeof text), "0-4 9-10 100");
	assert_string_equal(hs_topology_slots_text(topology, 1, text, sizeof text), "5-8");
	assert_string_equal(hs_topology_slots_text(topology, 2, text, sizeof text), "");
	hs_topology_destroy(&topology);
}

static void test_long_ranges_are_cut(void **state)
{
	struct hs_topology *topology = make("0 a, 2 a, 4 a, 6 a, 10000-10001 a, 16382-16383 a");
	char text[64];

	(void)state;
	assert_int_equal(hs_topology_update(NULL, topology), HS_TOPOLOGY_CHANGED);
	assert_string_equal(hs_topology_slots_text(topology, 0, text, sizeof text),
			    "0 2 4 6 10000-10001 16382-16383");
	assert_string_equal(hs_topology_slots_text(topology, 0, text, 24), "0 2 4 6 10000-10001 …");
	assert_string_equal(hs_topology_slots_text(topology, 0, text, 23), "0 2 4 6 …");
	hs_topology_destroy(&topology);
}

static void test_wrong_replies(void **state)
{
	static const struct {
		const char *reply;
		int code;
		const char *what;
	} cases[] = {
		{"", HS_EPROTO, "cut short"},
		{"HTTP/1.1 400 Bad Request\r\n", HS_EPROTO, "is not RESP"},
		{"*0\r\n+OK\r\n", HS_EPROTO, "is not RESP"},
		{"+OK\r\n", HS_EPROTO, "not an array"},
		{"*-1\r\n", HS_EPROTO, "not an array"},
		{"*0\r\n", HS_EINVAL, "has no slots"},
		{"-ERR This instance has cluster support disabled\r\n", HS_EINVAL,
		 "answered with \"ERR This instance has cluster support disabled\""},
		{"*1\r\n:1\r\n", HS_EPROTO, "a range must be"},
		{"*1\r\n*2\r\n:0\r\n:1\r\n", HS_EPROTO, "a range must be"},
		{"*1\r\n*3\r\n:-1\r\n:1\r\n*2\r\n" IP ":1\r\n", HS_EPROTO, "from 0 to 16383"},
		{"*1\r\n*3\r\n:0\r\n:16384\r\n*2\r\n" IP ":1\r\n", HS_EPROTO, "from 0 to 16383"},
		{"*1\r\n*3\r\n:2\r\n:1\r\n*2\r\n" IP ":1\r\n", HS_EPROTO, "from 0 to 16383"},
		{"*1\r\n*3\r\n+0\r\n:1\r\n*2\r\n" IP ":1\r\n", HS_EPROTO, "from 0 to 16383"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n+a\r\n", HS_EPROTO, "a node must be"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*1\r\n" IP, HS_EPROTO, "a node must be"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n:1\r\n:1\r\n", HS_EPROTO, "host must be a text"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n$3\r\na b\r\n:1\r\n", HS_EPROTO, "253 printable"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n" IP ":65536\r\n", HS_EPROTO, "a node's port"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*2\r\n" IP "+1\r\n", HS_EPROTO, "a node's port"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n" IP ":1\r\n:1\r\n", HS_EPROTO, "a node's id"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n" IP ":1\r\n$2\r\na\n\r\n", HS_EPROTO,
		 "a node's id"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*4\r\n" IP ":1\r\n" ID_1 ":1\r\n", HS_EPROTO,
		 "metadata must be pairs"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*4\r\n" IP ":1\r\n" ID_1 "*1\r\n+ip\r\n", HS_EPROTO,
		 "metadata must be pairs"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*4\r\n" IP ":1\r\n" ID_1 "*2\r\n+ip\r\n:1\r\n", HS_EPROTO,
		 "metadata must be pairs"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n" IP ":0\r\n" ID_1, HS_EPROTO,
		 "slots 0-1 has no address"},
		{"*1\r\n*3\r\n:0\r\n:1\r\n*3\r\n$1\r\n?\r\n:1\r\n" ID_1, HS_EPROTO,
		 "slots 0-1 has no address"},
		{"*2\r\n*3\r\n:0\r\n:5\r\n*3\r\n" IP ":1\r\n" ID_1 "*3\r\n:5\r\n:6\r\n*3\r\n" IP
		 ":2\r\n" ID_2,
		 HS_EPROTO, "slot 5 is listed at two nodes"},
		{"*1\r\n*4\r\n:0\r\n:1\r\n*3\r\n" IP ":1\r\n" ID_1 ":1\r\n", HS_EPROTO,
		 "a node must be"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_topology *topology = (void *)why;
		int code = hs_topology_parse(&topology, hs_bytes_of(cases[i].reply), "asked",
					     CAPACITY, why, sizeof why);

		if (code != cases[i].code || !strstr(why, cases[i].what) || strchr(why, '\n'))
			fail_msg("%zu: %d, %s", i, code, why);
		assert_null(topology);
	}
}

/* Each reply lies in an allocation of exactly its length, so that a sanitizer reports a read beyond the end. */
static void test_a_reply_cut_anywhere(void **state)
{
	(void)state;
	for (size_t len = 0; len < sizeof REAL - 1; len++) {
		char *copy = malloc(len ? len : 1);
		struct hs_topology *topology;

		assert_non_null(copy);
		memcpy(copy, REAL, len);
		assert_int_equal(hs_topology_parse(&topology, (struct hs_bytes){copy, len}, "asked",
						   CAPACITY, why, sizeof why),
				 HS_EPROTO);
		free(copy);
	}
}

static void test_limits(void **state)
{
	struct hs_buf reply = {0};
	struct hs_topology *topology;

	(void)state;
	hs_buf_printf(&reply, "*%04d\r\n", HS_TOPOLOGY_SHARDS_MAX);
	for (int i = 0; i <= HS_TOPOLOGY_SHARDS_MAX; i++) {
		if (i == HS_TOPOLOGY_SHARDS_MAX) {
			topology = parse_reply(hs_buf_bytes(&reply), CAPACITY);
			assert_int_equal(topology->shards_count, HS_TOPOLOGY_SHARDS_MAX);
			hs_topology_destroy(&topology);
			memcpy(reply.data, "*1025", 5);
		}
		hs_buf_printf(&reply, "*3\r\n:%d\r\n:%d\r\n*2\r\n" IP ":%d\r\n", i, i, i + 1);
	}
	assert_int_equal(hs_topology_parse(&topology, hs_buf_bytes(&reply), "asked", CAPACITY, why,
					   sizeof why),
			 HS_ELIMIT);
	assert_string_equal(why, "the cluster has more than 1024 shards");

	reply.len = 0;
	hs_buf_printf(&reply, "*1\r\n*%d\r\n:0\r\n:1\r\n", HS_TOPOLOGY_REPLICAS_MAX + 4);
	for (int i = 0; i <= HS_TOPOLOGY_REPLICAS_MAX + 1; i++)
		hs_buf_printf(&reply, "*2\r\n" IP ":%d\r\n", i + 1);
	topology = parse_reply(hs_buf_bytes(&reply), CAPACITY);
	assert_int_equal(topology->shards[0].replicas_count, HS_TOPOLOGY_REPLICAS_MAX);
	hs_topology_destroy(&topology);
	hs_buf_deinit(&reply);
}

/* ---- shard numbers ---- */

static void test_shards_keep_their_numbers(void **state)
{
	static const struct {
		const char *name, *before, *after, *numbers;
		enum hs_topology_change event;
	} cases[] = {
		{"nothing", "0-9 a b, 10-19 c d", "0-9 a b, 10-19 c d", "a0 c1", HS_TOPOLOGY_SAME},
		{"another order of replicas", "0-9 a b c", "0-9 a c b", "a0", HS_TOPOLOGY_SAME},
		{"ranges in other pieces", "0-4 a, 5-9 a, 20 b", "20 b, 0-9 a", "a0 b1",
		 HS_TOPOLOGY_SAME},
		{"a slot between them is nobody's", "0-9 a, 20 b", "0-4 a, 6-9 a, 20 b", "a0 b1",
		 HS_TOPOLOGY_CHANGED},
		{"a replica more", "0-9 a b", "0-9 a b c", "a0", HS_TOPOLOGY_CHANGED},
		{"another replica", "0-9 a b", "0-9 a c", "a0", HS_TOPOLOGY_CHANGED},
		{"slots moved", "0-9 a, 10-19 c", "0-4 a, 5-19 c", "a0 c1", HS_TOPOLOGY_CHANGED},
		{"moved so that the order turns", "0-9 a, 10-19 c", "0-4 c, 5-9 a, 10-19 c",
		 "c1 a0", HS_TOPOLOGY_CHANGED},
		{"slots swapped", "0-9 a, 10-19 c", "0-9 c, 10-19 a", "c1 a0", HS_TOPOLOGY_CHANGED},
		{"failover", "0-9 a b, 10-19 c d", "0-9 b a, 10-19 c d", "b0 c1",
		 HS_TOPOLOGY_CHANGED},
		{"failover, the old master gone", "0-9 a b, 10-19 c d", "0-9 a b, 10-19 d", "a0 d1",
		 HS_TOPOLOGY_CHANGED},
		/* d was promoted while its slots moved: the shard's number stays with d, not with the slots. */
		{"failover and slots moved", "0-9 a b, 10-19 c d", "0-4 d, 5-9 a b, 10-19 a b",
		 "d1 a0", HS_TOPOLOGY_CHANGED},
		{"failover, and the slots of another", "0-9 a b, 10-19 c d, 20-29 e",
		 "0-19 a b, 20-29 d", "a0 d1", HS_TOPOLOGY_CHANGED},
		{"a new shard in front", "10-19 a, 20-29 c", "0-9 e, 10-19 a, 20-29 c", "e2 a0 c1",
		 HS_TOPOLOGY_CHANGED},
		{"a new shard out of two", "0-9 a, 10-19 c", "0-6 a, 7-12 e, 13-19 c", "a0 e2 c1",
		 HS_TOPOLOGY_CHANGED},
		{"a shard gone, its number free", "0-9 a, 10-19 c, 20-29 e", "0-19 a, 20-29 e",
		 "a0 e2", HS_TOPOLOGY_CHANGED},
		{"new machines, the same slots", "0-9 a, 10-19 c", "0-9 a, 10-19 e", "a0 e1",
		 HS_TOPOLOGY_CHANGED},
		{"new machines, most of the slots", "0-9 a, 10-19 c", "0-13 a, 14-19 e", "a0 e1",
		 HS_TOPOLOGY_CHANGED},
		{"new machines, half of the slots", "0-9 a, 10-19 c, 20-29 x",
		 "0-14 a, 15-19 e, 20-29 x", "a0 e1 x2", HS_TOPOLOGY_CHANGED},
		{"one for two: that of the larger", "0-9 a, 10-12 c, 13-19 e", "0-9 a, 10-19 f",
		 "a0 f2", HS_TOPOLOGY_CHANGED},
		{"slots that nobody serves", "0-9 a, 10-19 c", "0-9 a", "a0", HS_TOPOLOGY_CHANGED},
		{"another cluster", "0-9 a b, 10-19 c d", "0-9 e f, 10-19 g h", "e0 g1",
		 HS_TOPOLOGY_FOREIGN},
		{"all new but a replica", "0-9 a b", "0-9 c b", "c0", HS_TOPOLOGY_CHANGED},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct hs_topology *before = make(cases[i].before), *after = make(cases[i].after);
		enum hs_topology_change event;

		hs_topology_update(NULL, before);
		event = hs_topology_update(before, after);
		if (event != cases[i].event || strcmp(numbers(after), cases[i].numbers) != 0)
			fail_msg("%s: %s, %d", cases[i].name, numbers(after), event);
		hs_topology_destroy(&before);
		hs_topology_destroy(&after);
	}
}

static struct hs_topology *step(struct hs_topology *before, const char *text, uint16_t capacity)
{
	struct hs_topology *after = make_of(text, capacity);

	hs_topology_update(before, after);
	hs_topology_destroy(&before);
	return after;
}

static void test_a_free_number_is_used_again(void **state)
{
	struct hs_topology *topology = step(NULL, "0-9 a, 10-19 c, 20-29 e", CAPACITY);

	(void)state;
	topology = step(topology, "0-9 a, 10-29 e", CAPACITY);
	assert_string_equal(numbers(topology), "a0 e2");
	assert_int_equal(topology->count, 3);
	assert_null(hs_topology_shard(topology, 1));
	topology = step(topology, "0-9 a, 10-25 e, 26-27 f, 28-29 g", CAPACITY);
	assert_string_equal(numbers(topology), "a0 e2 f1 g3");
	assert_string_equal(hs_topology_shard(topology, 1)->master.id, "ffff");
	assert_int_equal(topology->count, 4);
	hs_topology_destroy(&topology);
}

static void test_more_shards_than_numbers(void **state)
{
	struct hs_topology *topology = step(NULL, "0 a, 1 b, 2 c, 3 d", 3);
	char text[64];

	(void)state;
	assert_string_equal(numbers(topology), "a0 b1 c2 d2");
	assert_true(topology->crowded);
	assert_int_equal(topology->count, 3);
	assert_string_equal(hs_topology_slots_text(topology, 2, text, sizeof text), "2-3");
	topology = step(topology, "0 a, 1 b, 2 c, 3 d", 3);
	assert_string_equal(numbers(topology), "a0 b1 c2 d2");
	/* Shard a is gone, so its number is free. */
	topology = step(topology, "0-1 b, 2 c, 3 d", 3);
	assert_string_equal(numbers(topology), "b1 c2 d0");
	assert_false(topology->crowded);
	hs_topology_destroy(&topology);
}

/* Servers that announce no ids are identified by their addresses. */
static void test_without_ids(void **state)
{
	struct hs_topology *before =
		parse("*2\r\n*4\r\n:0\r\n:9\r\n*2\r\n+x\r\n:1\r\n*2\r\n+x\r\n:2\r\n"
		      "*3\r\n:10\r\n:11\r\n*2\r\n+x\r\n:3\r\n");
	struct hs_topology *after = parse("*2\r\n*3\r\n:0\r\n:5\r\n*2\r\n+x\r\n:3\r\n"
					  "*3\r\n:6\r\n:11\r\n*2\r\n+x\r\n:2\r\n");

	(void)state;
	hs_topology_update(NULL, before);
	assert_int_equal(hs_topology_update(before, after), HS_TOPOLOGY_CHANGED);
	assert_string_equal(numbers(after), "x1 x0");
	hs_topology_destroy(&before);
	hs_topology_destroy(&after);
}

/* ---- slot maps ---- */

/* Replaces `before` with the topology after it, and updates the map. */
static void refill(struct hs_topology **before, const char *text, struct hs_slot_map *map)
{
	struct hs_topology *after = make(text);

	hs_topology_update(*before, after);
	hs_topology_fill(*before, after, map);
	hs_topology_destroy(before);
	*before = after;
}

static void test_the_map(void **state)
{
	struct hs_slot_map *map = hs_mem_zalloc(sizeof *map);
	struct hs_topology *topology = NULL;

	(void)state;
	hs_slot_map_set(map, 3, 77);
	refill(&topology, "0-9 a, 10-16383 c", map);
	assert_int_equal(hs_slot_map_count(map), 2);
	assert_int_equal(hs_slot_map_get(map, 3), 0);
	assert_int_equal(hs_slot_map_get(map, 9), 0);
	assert_int_equal(hs_slot_map_get(map, 10), 1);
	assert_int_equal(hs_slot_map_get(map, 16383), 1);
	refill(&topology, "0-4 a, 5-7 e, 20-16383 c", map);
	assert_int_equal(hs_slot_map_count(map), 3);
	assert_int_equal(hs_slot_map_get(map, 4), 0);
	assert_int_equal(hs_slot_map_get(map, 5), 2);
	/* Slot 8 has no owner: its partition stays. */
	assert_int_equal(hs_slot_map_get(map, 8), 0);
	assert_int_equal(hs_slot_map_get(map, 10), 1); /* slot 10 keeps its partition */
	assert_true(hs_slot_map_has(map, 0) && hs_slot_map_has(map, 1) && hs_slot_map_has(map, 2));
	refill(&topology, "0-9 e, 10-16383 c", map); /* a owns no slots any more */
	assert_int_equal(hs_slot_map_count(map), 3);
	assert_false(hs_slot_map_has(map, 0));
	assert_true(hs_slot_map_has(map, 1) && hs_slot_map_has(map, 2));
	assert_false(hs_slot_map_has(map, 3));
	hs_topology_destroy(&topology);
	hs_mem_free(&map);
}

/* An update writes only slots whose partition changed; the map is the same as if all slots had been written. */
static void test_maps_of_many_changes(void **state)
{
	enum { SLOTS_USED = 40, NOBODY = CAPACITY };
	struct hs_slot_map *map = hs_mem_zalloc(sizeof *map);
	struct hs_topology *topology = NULL;
	uint16_t owners[SLOTS_USED], expected[SLOTS_USED] = {0};
	struct hs_prng prng;

	(void)state;
	hs_prng_init(&prng, 1);
	memset(owners, 0, sizeof owners);
	for (int change = 0; change < 2000; change++) {
		char text[1024];
		size_t len = 0;
		uint32_t first = (uint32_t)hs_prng_below(&prng, SLOTS_USED), last = first;
		uint16_t to = (uint16_t)hs_prng_below(&prng, 5);

		last += (uint32_t)hs_prng_below(&prng, SLOTS_USED - first);
		for (uint32_t slot = first; slot <= last; slot++)
			owners[slot] = to == 4 ? NOBODY : to;
		/* So that there is at least one shard. */
		owners[hs_prng_below(&prng, SLOTS_USED)] = 0;
		for (uint32_t slot = 0; slot < SLOTS_USED; slot++) {
			if (owners[slot] != NOBODY)
				len += (size_t)snprintf(text + len, sizeof text - len, "%s%u %c",
							len ? ", " : "", slot, 'a' + owners[slot]);
		}
		refill(&topology, text, map);
		for (uint16_t i = 0; i < topology->shards_count; i++) {
			const struct hs_topology_shard *shard = &topology->shards[i];

			for (uint32_t slot = 0; slot < SLOTS_USED; slot++) {
				if (owners[slot] == shard->master.address.host[0] - 'a')
					expected[slot] = shard->partition;
			}
		}
		for (uint16_t slot = 0; slot < SLOTS_USED; slot++)
			assert_int_equal(hs_slot_map_get(map, slot), expected[slot]);
	}
	hs_topology_destroy(&topology);
	hs_mem_free(&map);
}

static void test_nodes_are_found_by_address(void **state)
{
	struct hs_topology *topology = step(NULL, "0-9 a b, 10-19 c d", CAPACITY);
	struct hs_redis_address address = {.host = "d", .port = 4};

	(void)state;
	assert_ptr_equal(hs_topology_find(topology, &address), &topology->shards[1]);
	address.port = 5;
	assert_null(hs_topology_find(topology, &address));
	address = topology->shards[0].master.address;
	assert_ptr_equal(hs_topology_find(topology, &address), &topology->shards[0]);
	hs_topology_destroy(&topology);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_real_replies),
		cmocka_unit_test(test_endpoints),
		cmocka_unit_test(test_a_replica_without_an_address_is_left_out),
		cmocka_unit_test(test_ranges_of_a_master_are_one_shard),
		cmocka_unit_test(test_long_ranges_are_cut),
		cmocka_unit_test(test_wrong_replies),
		cmocka_unit_test(test_a_reply_cut_anywhere),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_shards_keep_their_numbers),
		cmocka_unit_test(test_a_free_number_is_used_again),
		cmocka_unit_test(test_more_shards_than_numbers),
		cmocka_unit_test(test_without_ids),
		cmocka_unit_test(test_the_map),
		cmocka_unit_test(test_maps_of_many_changes),
		cmocka_unit_test(test_nodes_are_found_by_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
