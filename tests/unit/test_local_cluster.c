/* Goal: the answers of CLUSTER: known, unknown and announced addresses, with TLS and without, and an engine that
 * has no partitions yet.
 *
 * Method: a core, one session, one request, and the bytes that come back. */
#include "stages/stages.h"

#include "core/core.h"
#include "tests/lib/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID "0123456789abcdef0123456789abcdef01234567"

static enum hs_submit submit(void *context, struct hs_op *op)
{
	(void)context, (void)op;
	fail_msg("CLUSTER asked an engine");
	return HS_SUBMIT_DONE;
}

static uint64_t mono_us(void *context)
{
	(void)context;
	return 1;
}

struct setting {
	const char *local_address;
	const char *announce_host;
	uint16_t announce_port, announce_tls_port;
	bool tls;
	const struct hs_slot_map *slots;
};

/* Returns the whole answer to one request, zero terminated. */
static char *answer(const struct setting *setting, const char *request, char *text, size_t size)
{
	static const struct hs_core_calls calls = {.submit = submit, .mono_us = mono_us};
	struct hs_log log = {.level = HS_LOG_ERROR};
	_Atomic uint64_t slowlog_ids = 0;
	struct hs_core_world world = {
		.commands = &hs_commands,
		.stages = hs_stages,
		.calls = &calls,
		.log = &log,
		.workers = 1,
		.partitions = 1,
		.slots = setting->slots,
		.node_id = ID,
		.slowlog_ids = &slowlog_ids,
	};
	struct hs_core_options options = {
		.output_bytes_max = 1 << 20,
		.slowlog_us = -1,
		.announce_port = setting->announce_port,
		.announce_tls_port = setting->announce_tls_port,
	};
	struct hs_core_client client = {
		.id = 1,
		.address = "127.0.0.1:50000",
		.local_address = setting->local_address,
		.tls = setting->tls,
	};
	struct hs_now now = {.mono_us = 1};
	struct hs_session *session;
	struct hs_core *core;
	struct hs_buf *out;

	snprintf(options.announce_host, sizeof options.announce_host, "%s",
		 setting->announce_host ? setting->announce_host : "");
	core = hs_core_create(&world, &options);
	session = hs_core_connect(core, now, &client);
	hs_core_receive(core, session, now, request, strlen(request));
	out = hs_session_out(session);
	assert_true(out->len < size);
	memcpy(text, out->data, out->len);
	text[out->len] = '\0';
	hs_core_disconnect(core, session);
	hs_core_destroy(&core);
	return text;
}

static void test_places(void **state)
{
	static const struct {
		struct setting setting;
		const char *host, *port_name;
		unsigned port;
	} cases[] = {
		{{.local_address = "10.0.0.1:6380"}, "10.0.0.1", "port", 6380},
		{{.local_address = "[fe80::1]:6380"}, "fe80::1", "port", 6380},
		/* If the address is unknown, an empty host tells a client to use the address that it is connected
		 * to. */
		{{.local_address = "?"}, "", "port", 0},
		{{.local_address = "10.0.0.1:6380", .announce_host = "a.example"},
		 "a.example",
		 "port",
		 6380},
		{{.local_address = "10.0.0.1:6380", .announce_port = 7, .announce_tls_port = 8},
		 "10.0.0.1",
		 "port",
		 7},
		{{.local_address = "10.0.0.1:6381", .tls = true}, "10.0.0.1", "tls-port", 6381},
		{{.local_address = "10.0.0.1:6381", .tls = true, .announce_port = 7},
		 "10.0.0.1",
		 "tls-port",
		 6381},
		{{.local_address = "10.0.0.1:6381", .tls = true, .announce_tls_port = 8},
		 "10.0.0.1",
		 "tls-port",
		 8},
	};
	char text[1024], want[1024];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(want, sizeof want,
			 "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$%zu\r\n%s\r\n:%u\r\n$40\r\n" ID
			 "\r\n*0\r\n",
			 strlen(cases[i].host), cases[i].host, cases[i].port);
		assert_string_equal(
			answer(&cases[i].setting, "CLUSTER SLOTS\r\n", text, sizeof text), want);
		snprintf(want, sizeof want, ID " %s:%u@0 myself,master - 0 0 1 connected 0-16383\n",
			 cases[i].host, cases[i].port);
		answer(&cases[i].setting, "CLUSTER NODES\r\n", text, sizeof text);
		assert_non_null(strstr(text, want));
		snprintf(want, sizeof want, "$%zu\r\n%s\r\n:%u\r\n$2\r\nip\r\n$%zu\r\n%s\r\n",
			 strlen(cases[i].port_name), cases[i].port_name, cases[i].port,
			 strlen(cases[i].host), cases[i].host);
		answer(&cases[i].setting, "CLUSTER SHARDS\r\n", text, sizeof text);
		assert_non_null(strstr(text, want));
	}
}

/* The engine's servers have not answered yet, so the cluster state is fail. */
static void test_no_partitions_yet(void **state)
{
	static struct hs_slot_map slots;
	struct setting setting = {.local_address = "10.0.0.1:6380", .slots = &slots};
	char text[1024];

	(void)state;
	hs_slot_map_set_count(&slots, 0);
	answer(&setting, "CLUSTER INFO\r\n", text, sizeof text);
	assert_non_null(strstr(text, "cluster_state:fail\r\ncluster_slots_assigned:16384\r\n"
				     "cluster_slots_ok:0\r\n"));
	assert_non_null(strstr(text, "cluster_slots_fail:16384\r\n"));
	hs_slot_map_fill_even(&slots, 3);
	answer(&setting, "CLUSTER INFO\r\n", text, sizeof text);
	assert_non_null(strstr(text, "cluster_state:ok\r\ncluster_slots_assigned:16384\r\n"
				     "cluster_slots_ok:16384\r\n"));
	assert_non_null(strstr(text, "cluster_slots_fail:0\r\n"));
}

/* If some slots are not served, CLUSTER INFO reports the state fail, however many other slots are served. */
static void test_slots_that_fail(void **state)
{
	static struct hs_slot_map slots;
	struct setting setting = {.local_address = "10.0.0.1:6380", .slots = &slots};
	char text[1024];

	(void)state;
	hs_slot_map_fill_even(&slots, 3);
	hs_slot_map_set_failed(&slots, 5461);
	answer(&setting, "CLUSTER INFO\r\n", text, sizeof text);
	assert_non_null(strstr(text, "cluster_state:fail\r\ncluster_slots_assigned:16384\r\n"
				     "cluster_slots_ok:10923\r\n"));
	assert_non_null(strstr(text, "cluster_slots_fail:5461\r\n"));
	hs_slot_map_set_failed(&slots, HS_SLOTS);
	answer(&setting, "CLUSTER INFO\r\n", text, sizeof text);
	assert_non_null(strstr(text, "cluster_state:fail\r\n"));
	assert_non_null(strstr(text, "cluster_slots_ok:0\r\n"));
	assert_non_null(strstr(text, "cluster_slots_fail:16384\r\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_no_partitions_yet),
		cmocka_unit_test(test_slots_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
