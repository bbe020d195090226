/* Goal: the flow sends a read that allows replicas to a replica that is known to have caught up far enough, and
 * to no other replica. Whatever happens to the replica, the master answers the read in its place
 * (engine/redis/replica.c).
 *
 * Method: scripts in which the test is the servers (tests/lib/flow_world.h). Slot 1 is at port 1, whose
 * replicas are at ports 11 and 12; slot 9000 is at port 2, which has no replicas. Answers are those of
 * redis-server 7.0; test_replica_reads.py runs the same cases against a real Cluster. */
#include "tests/lib/flow_world.h"

#define MS 1000
#define INFO "INFO replication"

/* The first `slots` slots are at port `first`, the others at port 2. */
static void route_slots(struct flow_world *flow_world, uint16_t first, uint16_t replica,
			uint32_t slots)
{
	struct hs_routes *routes = hs_routes_create(2, 2);
	const struct hs_routes *made = routes;
	uint16_t ports[] = {first, 2, replica, 12};

	routes->cluster = true;
	for (uint16_t i = 0; i < 4; i++) {
		snprintf(routes->nodes[i].host, sizeof routes->nodes[i].host, "h");
		routes->nodes[i].port = ports[i];
		routes->nodes[i].partition = i % 2;
		routes->nodes[i].master = 0;
	}
	routes->node_of_partition[0] = 0;
	routes->node_of_partition[1] = 1;
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++)
		routes->node_of_slot[slot] = slot < slots ? 0 : 1;
	hs_flow_route(flow_world->flow, flow_world->now, routes);
	hs_routes_unref(&made);
}

static void route_replicas(struct flow_world *flow_world, uint16_t first, uint16_t replica)
{
	route_slots(flow_world, first, replica, HS_SLOTS / 2);
}

/* From here on, `sent` and `reply` refer to one connection to `port`: the one for replica reads or, with
 * `replica` false, the ordinary one. */
static void look_at(struct flow_world *flow_world, uint16_t port, bool replica)
{
	for (int i = 0; i < flow_world->pipes_count; i++) {
		struct hs_pipe *pipe = flow_world->pipes[i];

		if (pipe->node->at.port != port || (pipe->kind == &hs_replica_pipes) != replica)
			continue;
		memmove(&flow_world->pipes[i], &flow_world->pipes[i + 1],
			(size_t)(flow_world->pipes_count - i - 1) * sizeof pipe);
		flow_world->pipes[flow_world->pipes_count - 1] = pipe;
		return;
	}
	fail_msg("no such pipe to port %u", port);
}

static struct asked *ask_since(struct flow_world *flow_world, uint16_t slot, uint64_t since_us)
{
	struct asked *asked = make(flow_world, 0, HS_CMD_ID_GET, slot, "GET a");

	asked->op.resp = 3;
	asked->op.replica_since_us = since_us;
	return submit(flow_world, asked);
}

static void says(struct flow_world *flow_world, uint16_t port, bool master, const char *stream,
		 uint64_t offset, bool link)
{
	struct hs_buf text = {0}, whole = {0};

	if (master)
		hs_buf_printf(&text,
			      "# Replication\r\nrole:master\r\nmaster_replid:%s\r\n"
			      "master_repl_offset:%llu\r\n",
			      stream, (unsigned long long)offset);
	else
		hs_buf_printf(&text,
			      "# Replication\r\nrole:slave\r\nmaster_link_status:%s\r\n"
			      "slave_read_repl_offset:999999\r\nslave_repl_offset:%llu\r\n"
			      "master_replid:%s\r\nmaster_repl_offset:999999\r\n",
			      link ? "up" : "down", (unsigned long long)offset, stream);
	hs_buf_printf(&whole, "=%zu\r\ntxt:%.*s\r\n%c", text.len + 4, (int)text.len, text.data, 0);
	look_at(flow_world, port, true);
	reply(flow_world, port, whole.data);
	hs_buf_deinit(&text);
	hs_buf_deinit(&whole);
}

static void catch_up(struct flow_world *flow_world)
{
	hs_flow_check(flow_world->flow, flow_world->now);
}

static void took(struct flow_world *flow_world, uint16_t port, bool replica, const char *text)
{
	look_at(flow_world, port, replica);
	sent(flow_world, port, text);
}

/* Sends a first read, which goes to the master and starts the checks of replicas. Afterwards both replicas are
 * known to have caught up to the time at which the flow asked the master for its offset. Returns that time. */
static uint64_t begin(struct flow_world *flow_world)
{
	struct asked *first;
	uint64_t caught_up_us;

	route_replicas(flow_world, 1, 11);
	assert_false(hs_flow_wants_checks(flow_world->flow));
	first = ask_since(flow_world, 1, 1);
	look_at(flow_world, 1, false);
	up(flow_world, 1);
	took(flow_world, 1, false, "GET a");
	reply(flow_world, 1, "$1\r\n0\r\n");
	got(first, "$1\r\n0\r\n");
	assert_int_equal(first->op.replica_caught_up_us, 0);
	assert_true(hs_flow_wants_checks(flow_world->flow));
	flow_world->now.mono_us += MS;
	up(flow_world, 11);
	took(flow_world, 11, true, "READONLY|" INFO);
	reply(flow_world, 11, "+OK\r\n");
	says(flow_world, 11, false, "s", 90,
	     true); /* has no effect: the master's offset is not known yet */
	look_at(flow_world, 1, true);
	up(flow_world, 1);
	caught_up_us = flow_world->now.mono_us;
	took(flow_world, 1, true, "READONLY|" INFO);
	flow_world->now.mono_us += MS;
	reply(flow_world, 1, "+OK\r\n");
	says(flow_world, 1, true, "s", 100, true);
	took(flow_world, 11, true, INFO);
	flow_world->now.mono_us += MS;
	says(flow_world, 11, false, "s", 100, true);
	up(flow_world, 12);
	took(flow_world, 12, true, "READONLY|" INFO);
	flow_world->now.mono_us += MS;
	reply(flow_world, 12, "+OK\r\n");
	says(flow_world, 12, false, "s", 101, true);
	return caught_up_us;
}

/* The read goes to the master, because no replica has caught up far enough. */
static void master_answers(struct flow_world *flow_world, uint64_t since_us)
{
	struct asked *a = ask_since(flow_world, 1, since_us);

	took(flow_world, 1, false, "GET a");
	reply(flow_world, 1, "$1\r\nm\r\n");
	got(a, "$1\r\nm\r\n");
	assert_int_equal(a->op.replica_caught_up_us, 0);
}

static void replica_answers(struct flow_world *flow_world, uint16_t port, uint64_t since_us)
{
	struct asked *a = ask_since(flow_world, 1, since_us);

	assert_true(a->op.replica_caught_up_us >= since_us);
	took(flow_world, port, true, "GET a");
	reply(flow_world, port, "$1\r\nr\r\n");
	got(a, "$1\r\nr\r\n");
}

static void test_replicas_take_turns(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world);

	(void)state;
	replica_answers(flow_world, 11, caught_up_us);
	replica_answers(flow_world, 12, caught_up_us);
	replica_answers(flow_world, 11, caught_up_us - MS);
	/* The caught-up time is the time when the flow asked the master for its offset, not when an answer
	 * came. */
	master_answers(flow_world, caught_up_us + 1);
	/* 0 means: only the master may answer. */
	master_answers(flow_world, 0);
	flow_world_destroy(&flow_world);
}

static void test_other_operations_go_to_the_master(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world);
	struct asked *a = make(flow_world, 1, HS_CMD_ID_SET, 1, "SET a 1");

	(void)state;
	a->op.resp = 3;
	a->op.replica_since_us = caught_up_us;
	submit(flow_world, a);
	took(flow_world, 1, false, "SET a 1");
	reply(flow_world, 1, "+OK\r\n");
	/* A node without replicas; then a single server. */
	a = ask_since(flow_world, 9000, 1);
	up(flow_world, 2);
	took(flow_world, 2, false, "GET a");
	reply(flow_world, 2, "_\r\n");
	got(a, "_\r\n");
	flow_world_destroy(&flow_world);
	flow_world = flow_world_create(false, NULL);
	route_replicas(flow_world, 1, 11);
	ask_since(flow_world, 1, 1);
	assert_false(hs_flow_wants_checks(flow_world->flow));
	assert_int_equal(flow_world->pipes_count, 1);
	up(flow_world, 1);
	took(flow_world, 1, false, "GET a");
	reply(flow_world, 1, "_\r\n");
	flow_world_destroy(&flow_world);
}

/* One round of checks with these offsets; the flow asks a replica that has not caught up again in the next
 * round. Returns the time when the flow asked the master. */
static uint64_t round_of(struct flow_world *flow_world, uint64_t at_master, uint64_t at_11,
			 uint64_t at_12)
{
	uint64_t asked_us = flow_world->now.mono_us += MS;

	catch_up(flow_world);
	took(flow_world, 1, true, INFO);
	flow_world->now.mono_us += MS;
	says(flow_world, 1, true, "s", at_master, true);
	took(flow_world, 11, true, INFO);
	took(flow_world, 12, true, INFO);
	says(flow_world, 11, false, "s", at_11, true);
	says(flow_world, 12, false, "s", at_12, true);
	return asked_us;
}

static void test_a_lagging_replica_gets_no_newer_reads(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t first_us, second_us, third_us;

	(void)state;
	begin(flow_world);
	first_us = round_of(flow_world, 200, 199, 200);
	replica_answers(flow_world, 12, first_us);
	replica_answers(flow_world, 12, first_us);
	/* Replica 11 never reaches the master's latest offset, but has reached the offset of an earlier round. */
	second_us = round_of(flow_world, 300, 250, 300);
	replica_answers(flow_world, 11, first_us);
	replica_answers(flow_world, 12, second_us);
	replica_answers(flow_world, 12, second_us);
	third_us = round_of(flow_world, 400, 350, 0);
	replica_answers(flow_world, 11, second_us);
	master_answers(flow_world, third_us);
	flow_world_destroy(&flow_world);
}

/* The flow checks replicas for 200 rounds after a read, and again after the next read. */
static void test_checks_end_when_reads_end(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world);

	(void)state;
	for (int i = 0; i < 200; i++) {
		round_of(flow_world, 100, 100, 100);
		/* Set the clock back, because checks also end after a second. */
		flow_world->now.mono_us -= 2 * MS;
	}
	assert_true(hs_flow_wants_checks(flow_world->flow));
	catch_up(flow_world);
	took(flow_world, 1, true, "");
	assert_false(hs_flow_wants_checks(flow_world->flow));
	replica_answers(flow_world, 11, caught_up_us);
	assert_true(hs_flow_wants_checks(flow_world->flow));
	round_of(flow_world, 100, 100, 100);
	flow_world_destroy(&flow_world);
}

static void test_what_invalidates_a_caught_up_time(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world);

	(void)state;
	/* A broken link, a promotion, or another replication stream ends the replica's caught-up time at once. */
	round_of(flow_world, 100, 100, 100);
	flow_world->now.mono_us += MS;
	catch_up(flow_world);
	took(flow_world, 1, true, INFO);
	says(flow_world, 1, true, "s", 100, true);
	took(flow_world, 11, true, INFO);
	took(flow_world, 12, true, INFO);
	says(flow_world, 11, false, "s", 100, false);
	says(flow_world, 12, true, "s", 100, true);
	master_answers(flow_world, caught_up_us);
	round_of(flow_world, 100, 100, 100);
	replica_answers(flow_world, 11, caught_up_us);
	flow_world->now.mono_us += MS;
	catch_up(flow_world);
	took(flow_world, 1, true, INFO);
	/* Another replication id: the master has restarted. */
	says(flow_world, 1, true, "other", 1, true);
	master_answers(flow_world, caught_up_us);
	took(flow_world, 11, true, INFO);
	took(flow_world, 12, true, INFO);
	says(flow_world, 11, false, "s", 100, true);
	says(flow_world, 12, false, "other", 1, true);
	replica_answers(flow_world, 12, caught_up_us);
	replica_answers(flow_world, 12, caught_up_us);
	/* The master gives no usable answer. */
	flow_world->now.mono_us += MS;
	catch_up(flow_world);
	took(flow_world, 1, true, INFO);
	reply(flow_world, 1, "-NOPERM no\r\n");
	master_answers(flow_world, caught_up_us);
	flow_world_destroy(&flow_world);
}

/* Port 1 answers ASK for slot 1: it hands the slot over to port 2. */
static void hand_over(struct flow_world *flow_world)
{
	struct asked *a;

	ask_since(flow_world, 9000, 0);
	up(flow_world, 2);
	took(flow_world, 2, false, "GET a");
	reply(flow_world, 2, "_\r\n");
	a = ask_since(flow_world, 1, 0);
	took(flow_world, 1, false, "GET a");
	reply(flow_world, 1, "-ASK 1 h:2\r\n");
	took(flow_world, 2, false, "ASKING|GET a");
	reply(flow_world, 2, "+OK\r\n$1\r\n2\r\n");
	got(a, "$1\r\n2\r\n");
}

static void test_changed_slots_invalidate_a_caught_up_time(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world);
	struct asked *a;

	(void)state;
	/* New routes end the caught-up time; a check sent before they came does not renew it. */
	flow_world->now.mono_us += MS;
	catch_up(flow_world);
	took(flow_world, 1, true, INFO);
	route_replicas(flow_world, 1, 11);
	master_answers(flow_world, caught_up_us);
	says(flow_world, 1, true, "s", 100, true);
	took(flow_world, 11, true, "");
	master_answers(flow_world, caught_up_us);
	round_of(flow_world, 100, 100, 100);
	replica_answers(flow_world, 11, caught_up_us);
	/* The replicas of a slot that is being handed over lack the keys that have moved. */
	hand_over(flow_world);
	master_answers(flow_world, caught_up_us);
	/* The other slots of the node are not affected. */
	a = ask_since(flow_world, 2, caught_up_us);
	assert_int_not_equal(a->op.replica_caught_up_us, 0);
	flow_world_destroy(&flow_world);
}

/* The migration is cancelled: ASK replies stop, and after a while replicas may answer again. */
static void test_a_slot_that_stays_after_all(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world);

	(void)state;
	hand_over(flow_world);
	flow_world->now.mono_us += (HS_MIGRATING_S - 1) * 1000 * MS;
	master_answers(flow_world, caught_up_us);
	flow_world->now.mono_us += 2000 * MS;
	replica_answers(flow_world, 11, caught_up_us);
	flow_world_destroy(&flow_world);
}

/* The old owner answers ASK to a request that was sent before the slot moved. This does not count as the new
 * owner handing the slot over. */
static void test_asked_by_the_owner_before(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world);
	struct asked *a;

	(void)state;
	a = ask_since(flow_world, 9000, 0);
	up(flow_world, 2);
	took(flow_world, 2, false, "GET a");
	route_slots(flow_world, 1, 11, HS_SLOTS);
	reply(flow_world, 2, "-ASK 9000 h:1\r\n");
	took(flow_world, 1, false, "ASKING|GET a");
	reply(flow_world, 1, "+OK\r\n$1\r\n2\r\n");
	got(a, "$1\r\n2\r\n");
	round_of(flow_world, 100, 100, 100);
	a = ask_since(flow_world, 9000, caught_up_us);
	assert_int_not_equal(a->op.replica_caught_up_us, 0);
	took(flow_world, 11, true, "GET a");
	reply(flow_world, 11, "$1\r\nr\r\n");
	got(a, "$1\r\nr\r\n");
	flow_world_destroy(&flow_world);
}

static void test_moved_invalidates_both_owners(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world);
	struct asked *a = make(flow_world, 1, HS_CMD_ID_GET, 1, "GET b");

	(void)state;
	a->op.resp = 3;
	submit(flow_world, a);
	took(flow_world, 1, false, "GET b");
	reply(flow_world, 1, "-MOVED 1 h:2\r\n");
	up(flow_world, 2);
	took(flow_world, 2, false, "GET b");
	reply(flow_world, 2, "_\r\n");
	/* MOVED ends the caught-up time of the node's replicas: slot 2 stays at the node, but needs a new
	 * check. */
	a = ask_since(flow_world, 2, caught_up_us);
	took(flow_world, 1, false, "GET a");
	reply(flow_world, 1, "_\r\n");
	assert_int_equal(a->op.replica_caught_up_us, 0);
	flow_world_destroy(&flow_world);
}

static void test_a_refusing_replica_is_left_alone(void **state)
{
	static const char *const words[] = {"-MOVED 1 h:2\r\n", "-LOADING x\r\n",
					    "-MASTERDOWN x\r\n", "-CLUSTERDOWN x\r\n",
					    "-ERR x\r\n"};

	(void)state;
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct flow_world *flow_world = flow_world_create(true, NULL);
		uint64_t caught_up_us = begin(flow_world);
		struct asked *a = ask_since(flow_world, 1, caught_up_us);

		took(flow_world, 11, true, "GET a");
		reply(flow_world, 11, words[i]);
		assert_false(a->done);
		took(flow_world, 1, false, "GET a");
		reply(flow_world, 1, "$1\r\nm\r\n");
		got(a, "$1\r\nm\r\n");
		assert_int_equal(a->op.replica_caught_up_us, 0);
		/* The other replica, not the one that refused. */
		replica_answers(flow_world, 12, caught_up_us);
		replica_answers(flow_world, 12, caught_up_us);
		flow_world_destroy(&flow_world);
	}
}

static void test_a_lost_or_silent_replica(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world);
	struct asked *a = ask_since(flow_world, 1, caught_up_us), *b;

	(void)state;
	took(flow_world, 11, true, "GET a");
	down(flow_world, 11);
	took(flow_world, 1, false, "GET a");
	reply(flow_world, 1, "$1\r\nm\r\n");
	got(a, "$1\r\nm\r\n");
	assert_int_equal(a->op.replica_caught_up_us, 0);
	/* The flow connects to the replica again at the next check and, after another failure, not at every
	 * check. */
	catch_up(flow_world);
	down(flow_world, 11);
	catch_up(flow_world);
	for (int i = 0; i < flow_world->pipes_count; i++)
		assert_int_not_equal(flow_world->pipes[i]->node->at.port, 11);
	/* A replica that does not answer has less time than the client's timeout: then the master answers. */
	b = ask_since(flow_world, 1, caught_up_us);
	took(flow_world, 12, true, "GET a");
	took(flow_world, 1, true, INFO);
	says(flow_world, 1, true, "s", 100, true);
	for (int i = 0; i < 3; i++)
		pass(flow_world, 100);
	took(flow_world, 1, false, "GET a");
	assert_false(b->done);
	reply(flow_world, 1, "$1\r\nm\r\n");
	got(b, "$1\r\nm\r\n");
	master_answers(flow_world, caught_up_us);
	assert_int_equal(flow_world->stats.outcome_unknown.value, 0);
	flow_world_destroy(&flow_world);
}

static void test_replicas_are_not_used_unless_configured(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);

	(void)state;
	begin(flow_world);
	flow_world->now.mono_us += 1100 * MS;
	catch_up(flow_world);
	assert_false(hs_flow_wants_checks(flow_world->flow));
	took(flow_world, 1, true, "");
	took(flow_world, 11, true, "");
	for (int i = 0; i < 31; i++)
		pass(flow_world, 1000);
	for (int i = 0; i < flow_world->pipes_count; i++)
		assert_ptr_not_equal(flow_world->pipes[i]->kind, &hs_replica_pipes);
	flow_world_destroy(&flow_world);
}

/* A failover: the replica becomes the master, and the master a replica. */
static void test_roles_change(void **state)
{
	struct flow_world *flow_world = flow_world_create(true, NULL);
	uint64_t caught_up_us = begin(flow_world), asked_us;
	struct asked *a;

	(void)state;
	route_replicas(flow_world, 11, 1);
	a = ask_since(flow_world, 1, caught_up_us);
	assert_int_equal(a->op.replica_caught_up_us, 0);
	look_at(flow_world, 11, false);
	up(flow_world, 11);
	took(flow_world, 11, false, "GET a");
	reply(flow_world, 11, "_\r\n");
	asked_us = flow_world->now.mono_us += MS;
	catch_up(flow_world);
	took(flow_world, 11, true, INFO);
	says(flow_world, 11, true, "t", 7, true);
	took(flow_world, 1, true, INFO);
	took(flow_world, 12, true, INFO);
	says(flow_world, 1, false, "t", 7, true);
	says(flow_world, 12, false, "s", 700, true);
	replica_answers(flow_world, 1, asked_us);
	replica_answers(flow_world, 1, asked_us);
	flow_world_destroy(&flow_world);
}

static void test_no_more_replicas_than_there_is_room_for(void **state)
{
	enum { MANY = HS_REPLICAS_MAX + 3 };
	struct flow_world *flow_world = flow_world_create(true, NULL);
	struct hs_routes *routes = hs_routes_create(1, MANY);
	const struct hs_routes *made = routes;
	struct asked *a;

	(void)state;
	routes->cluster = true;
	for (int i = 0; i <= MANY; i++) {
		snprintf(routes->nodes[i].host, sizeof routes->nodes[i].host, "h");
		routes->nodes[i].port = (uint16_t)(i + 1);
	}
	routes->node_of_partition[0] = 0;
	for (uint32_t slot = 0; slot < HS_SLOTS; slot++)
		routes->node_of_slot[slot] = 0;
	hs_flow_route(flow_world->flow, flow_world->now, routes);
	hs_routes_unref(&made);
	a = ask_since(flow_world, 1, 1);
	catch_up(flow_world);
	assert_int_equal(flow_world->pipes_count, 1 + 1 + HS_REPLICAS_MAX);
	look_at(flow_world, 1, false);
	up(flow_world, 1);
	took(flow_world, 1, false, "GET a");
	reply(flow_world, 1, "_\r\n");
	got(a, "_\r\n");
	flow_world_destroy(&flow_world);
}

/* The cluster is so large that its masters fill the node table: no replica is used. */
static void test_masters_come_first(void **state)
{
	enum { MANY = HS_NODES_MAX / 2 };
	struct flow_world *flow_world = flow_world_create(true, NULL);

	(void)state;
	for (uint16_t masters = MANY; masters >= MANY - 1; masters--) {
		struct hs_routes *routes = hs_routes_create(masters, 2);
		const struct hs_routes *made = routes;

		routes->cluster = true;
		for (uint16_t i = 0; i < masters + 2; i++) {
			snprintf(routes->nodes[i].host, sizeof routes->nodes[i].host, "h");
			routes->nodes[i].port = (uint16_t)(i + 1);
		}
		for (uint32_t slot = 0; slot < HS_SLOTS; slot++)
			routes->node_of_slot[slot] = 0;
		hs_flow_route(flow_world->flow, flow_world->now, routes);
		hs_routes_unref(&made);
		assert_int_equal(flow_world->flow->nodes[0]->replicas_count, MANY - masters);
	}
	flow_world_destroy(&flow_world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replicas_take_turns),
		cmocka_unit_test(test_other_operations_go_to_the_master),
		cmocka_unit_test(test_a_lagging_replica_gets_no_newer_reads),
		cmocka_unit_test(test_checks_end_when_reads_end),
		cmocka_unit_test(test_what_invalidates_a_caught_up_time),
		cmocka_unit_test(test_changed_slots_invalidate_a_caught_up_time),
		cmocka_unit_test(test_a_slot_that_stays_after_all),
		cmocka_unit_test(test_asked_by_the_owner_before),
		cmocka_unit_test(test_moved_invalidates_both_owners),
		cmocka_unit_test(test_a_refusing_replica_is_left_alone),
		cmocka_unit_test(test_a_lost_or_silent_replica),
		cmocka_unit_test(test_replicas_are_not_used_unless_configured),
		cmocka_unit_test(test_roles_change),
		cmocka_unit_test(test_no_more_replicas_than_there_is_room_for),
		cmocka_unit_test(test_masters_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
