/* Goal: laws 2 and 4 hold for operations to Redis servers over random schedules: slots move, with and without
 * new routes that show the move, servers refuse, connections end at any byte; clients pipeline.
 *
 * Method: the test is the cluster. Servers run complete requests in order of arrival, if the slot is theirs,
 * and record them. At the end: every operation was finished once; a write ran once if it was answered, not at
 * all if the answer says so, and at most once if the outcome is unknown; and one client's operations on one
 * slot ran in the order of their requests. SEED=n runs the schedule n only, SCHEDULES=n runs n schedules;
 * TRACE=1 with SEED=n prints each step. */
#include "tests/lib/flow_world.h"

#include <stdlib.h>

enum { NODES = 3, SLOTS_USED = 3, CLIENTS = 3, STEPS = 400, WANTED = 60, RAN_MAX = 4096 };

struct ran {
	int op;
	uint64_t at; /* the time of the run: a counter over all servers */
};

/* The server's side of a connection: requests received, and replies not yet delivered. */
struct server {
	struct hs_pipe *pipe; /* the other end, in the flow; NULL: this entry is free */
	struct hs_buf in, out;
	bool asking;
};

struct world {
	struct flow_world *flow_world;
	struct hs_prng prng;
	struct server servers[PIPES_MAX];
	uint16_t owner[SLOTS_USED];  /* port of the slot's owner */
	uint16_t moving[SLOTS_USED]; /* target of the migration; 0: none */
	bool there[SLOTS_USED];	     /* during a migration: the key is at the target already */
	/* The slot's last change of owner was a migration, not a failover. */
	bool migrated[SLOTS_USED];
	struct ran ran[RAN_MAX];
	int ran_count;
	uint64_t clock;
	int executed[OPS_MAX];
	uint64_t last_ran[OPS_MAX];
};

static uint64_t below(struct world *world, uint64_t n)
{
	return hs_prng_below(&world->prng, n);
}

static uint16_t slot_number(int slot)
{
	return (uint16_t)(slot + 1);
}

static struct server *server_of(struct world *world, struct hs_pipe *pipe)
{
	struct server *free = NULL;

	for (int i = 0; i < PIPES_MAX; i++) {
		if (world->servers[i].pipe == pipe)
			return &world->servers[i];
		if (!world->servers[i].pipe && !free)
			free = &world->servers[i];
	}
	assert_non_null(free);
	free->pipe = pipe;
	free->in.len = 0;
	free->out.len = 0;
	free->asking = false;
	return free;
}

static void forget_server(struct server *server)
{
	server->pipe = NULL;
	hs_buf_deinit(&server->in);
	hs_buf_deinit(&server->out);
}

/* Prints a step if TRACE is set. */
static void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void trace(const char *format, ...)
{
	va_list args;

	if (!getenv("TRACE"))
		return;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

static void run(struct world *world, int op, struct hs_buf *out)
{
	assert_true(world->ran_count < RAN_MAX);
	world->ran[world->ran_count++] = (struct ran){op, ++world->clock};
	world->executed[op]++;
	world->last_ran[op] = world->clock;
	hs_buf_printf(out, ":%d\r\n", op);
}

/* Answers operation `op`; its request is "W op17" or "R op17" for operation 17. */
static void serve(struct world *world, struct server *server, int op)
{
	uint16_t port = server->pipe->node->at.port;
	int slot = world->flow_world->ops[op].op.slot - 1;
	bool asking = server->asking;

	size_t start = server->out.len;

	server->asking = false;
	if (below(world, 40) == 0) {
		hs_buf_printf(&server->out, "-LOADING wait\r\n");
	} else if (world->owner[slot] != port && !(asking && world->moving[slot] == port)) {
		hs_buf_printf(&server->out, "-MOVED %d h:%u\r\n", slot + 1, world->owner[slot]);
	} else if (world->owner[slot] == port && world->moving[slot] && world->there[slot]) {
		hs_buf_printf(&server->out, "-ASK %d h:%u\r\n", slot + 1, world->moving[slot]);
	} else if (world->owner[slot] == port && world->moving[slot] && below(world, 8) == 0) {
		hs_buf_printf(&server->out, "-TRYAGAIN wait\r\n");
	} else {
		run(world, op, &server->out);
	}
	trace("port %u: op%d%s -> %.*s", port, op, asking ? " asking" : "",
	      (int)(server->out.len - start), server->out.data + start);
}

/* Runs the complete requests that the server has received. */
static void serve_all(struct world *world, struct server *server)
{
	while (server->in.len > 0) {
		int64_t used = hs_parse_reply_length(server->in.data, server->in.len);
		char *number;

		assert_true(used >= 0);
		if (used == 0)
			return;
		number = memmem(server->in.data, (size_t)used, "op", 2);
		if (number) {
			serve(world, server, atoi(number + 2));
		} else {
			server->asking = true;
			hs_buf_printf(&server->out, "+OK\r\n");
		}
		hs_buf_consume(&server->in, (size_t)used);
	}
}

/* Delivers some of the bytes that the flow has composed to the server. */
static void carry(struct world *world, struct hs_pipe *pipe)
{
	struct server *server = server_of(world, pipe);
	size_t len = (size_t)below(world, pipe->upstream.out.len + 1);

	if (below(world, 2) == 0)
		len = pipe->upstream.out.len;
	hs_buf_append(&server->in, pipe->upstream.out.data, len);
	hs_buf_consume(&pipe->upstream.out, len);
	pipe->upstream.sent += len;
	serve_all(world, server);
}

static void deliver(struct world *world, struct hs_pipe *pipe)
{
	struct server *server = server_of(world, pipe);
	size_t len = (size_t)below(world, server->out.len + 1);
	char bytes[4096];

	if (below(world, 2) == 0)
		len = server->out.len;
	if (len == 0 || len > sizeof bytes)
		return;
	memcpy(bytes, server->out.data, len);
	hs_buf_consume(&server->out, len);
	hs_flow_receive(world->flow_world->flow, world->flow_world->now, pipe, bytes, len);
	hs_flow_flush(world->flow_world->flow, world->flow_world->now);
}

static void cut(struct world *world, struct hs_pipe *pipe)
{
	trace("cut port %u\n", pipe->node->at.port);
	forget_server(server_of(world, pipe));
	flow_world_forget(world->flow_world, pipe);
	hs_flow_down(world->flow_world->flow, world->flow_world->now, pipe, "cut");
}

static void tell_routes(struct world *world)
{
	trace("routes: %u %u %u\n", world->owner[0], world->owner[1], world->owner[2]);

	struct hs_routes *routes = hs_routes_create(NODES, 0);
	const struct hs_routes *given = routes;

	for (uint32_t i = 0; i < NODES; i++) {
		snprintf(routes->nodes[i].host, sizeof routes->nodes[i].host, "h");
		routes->nodes[i].port = (uint16_t)(i + 1);
		routes->nodes[i].partition = (uint16_t)i;
		routes->node_of_partition[i] = (uint16_t)i;
	}
	for (int slot = 0; slot < SLOTS_USED; slot++)
		routes->node_of_slot[slot_number(slot)] = (uint16_t)(world->owner[slot] - 1);
	hs_flow_route(world->flow_world->flow, world->flow_world->now, given);
	hs_routes_unref(&given);
}

static void ask(struct world *world)
{
	struct flow_world *flow_world = world->flow_world;
	int number = flow_world->ops_count;
	struct asked *asked;
	bool read = below(world, 2) == 0;

	if (number == WANTED)
		return;
	asked = make(flow_world, 1 + below(world, CLIENTS), read ? HS_CMD_ID_GET : HS_CMD_ID_INCR,
		     slot_number((int)below(world, SLOTS_USED)), "x");
	hs_buf_printf(&asked->request, "*2\r\n$1\r\n%c\r\n$4\r\nop%02d\r\n", read ? 'R' : 'W',
		      number);
	asked->op.raw = hs_buf_bytes(&asked->request);
	trace("client %d asks op%d (%c, slot %d)\n", (int)asked->op.client, number,
	      read ? 'R' : 'W', asked->op.slot);
	submit(flow_world, asked);
}

/* After a migration, a slot does not move back before the requests in flight are answered: a real migration
 * takes many messages, and is slower than a reply. */
static bool has_moved_just_now(const struct world *world, int slot)
{
	const struct hs_slot_state *state =
		hs_flow_slot_state(world->flow_world->flow, slot_number(slot));

	return world->migrated[slot] && (state->underway > 0 || state->hold);
}

static void move_something(struct world *world)
{
	int slot = (int)below(world, SLOTS_USED);

	if (!world->moving[slot] && has_moved_just_now(world, slot))
		return;
	if (world->moving[slot] && world->there[slot]) {
		world->owner[slot] = world->moving[slot];
		world->moving[slot] = 0;
		world->there[slot] = false;
		world->migrated[slot] = true;
	} else if (world->moving[slot]) {
		world->there[slot] = true;
	} else {
		uint16_t to = (uint16_t)(1 + below(world, NODES));

		world->migrated[slot] = false;
		if (to != world->owner[slot] && below(world, 2) == 0)
			world->owner[slot] = to; /* a failover: the owner changes at once */
		else if (to != world->owner[slot])
			world->moving[slot] = to;
	}
}

static void step(struct world *world, bool calm)
{
	struct flow_world *flow_world = world->flow_world;
	struct hs_pipe *pipe =
		flow_world->pipes_count > 0
			? flow_world->pipes[below(world, (uint64_t)flow_world->pipes_count)]
			: NULL;

	switch (below(world, calm ? 12 : 16)) {
	case 0:
	case 1:
	case 2:
		ask(world);
		break;
	case 3:
		flow_world->now.mono_us += 20000;
		hs_flow_tick(flow_world->flow, flow_world->now);
		break;
	case 4:
		tell_routes(world);
		break;
	case 12:
	case 13:
		move_something(world);
		break;
	case 14:
		if (pipe && below(world, 3) == 0)
			cut(world, pipe);
		break;
	default:
		if (!pipe)
			break;
		if (pipe->upstream.state == HS_UPSTREAM_OPENING) {
			hs_flow_up(flow_world->flow, flow_world->now, pipe);
			hs_flow_flush(flow_world->flow, flow_world->now);
		} else if (below(world, 2) == 0) {
			carry(world, pipe);
		} else {
			deliver(world, pipe);
		}
	}
}

static bool is_error(const struct asked *asked, const char *word)
{
	return asked->reply.len > strlen(word) &&
	       memcmp(asked->reply.data, word, strlen(word)) == 0;
}

static void check_once(const struct world *world, int op, uint64_t seed)
{
	const struct asked *asked = &world->flow_world->ops[op];
	bool write = asked->op.command->id == HS_CMD_ID_INCR;
	int least = 0, most = RAN_MAX;

	if (!asked->done)
		fail_msg("seed %llu: operation %d was never finished", (unsigned long long)seed,
			 op);
	if (asked->reply.data[0] == ':')
		least = 1;
	if (write && asked->reply.data[0] == '-' && !is_error(asked, "-UNKNOWN"))
		most = 0;
	else if (write)
		most = 1;
	if (world->executed[op] < least || world->executed[op] > most)
		fail_msg("seed %llu: operation %d (%s) ran %d times and was answered %.*s",
			 (unsigned long long)seed, op, write ? "write" : "read",
			 world->executed[op], (int)asked->reply.len, asked->reply.data);
}

/* Checks that one client's operations on one slot ran in the order of their requests. Considers answered
 * operations, and writes that ran without an answer. */
static void check_order(const struct world *world, uint64_t seed)
{
	for (int later = 0; later < world->flow_world->ops_count; later++) {
		const struct asked *b = &world->flow_world->ops[later];

		if (world->executed[later] == 0)
			continue;
		for (int earlier = 0; earlier < later; earlier++) {
			const struct asked *a = &world->flow_world->ops[earlier];

			if (a->op.client != b->op.client || a->op.slot != b->op.slot ||
			    world->executed[earlier] == 0 || a->reply.data[0] == '-' ||
			    (b->reply.data[0] == '-' && b->op.command->id == HS_CMD_ID_GET))
				continue;
			if (world->last_ran[earlier] > world->last_ran[later])
				fail_msg("seed %llu: operation %d ran before %d, which its client "
					 "sent first",
					 (unsigned long long)seed, later, earlier);
		}
	}
}

static void run_schedule(uint64_t seed)
{
	struct world *world = hs_mem_zalloc(sizeof *world);

	hs_prng_init(&world->prng, seed);
	world->flow_world = flow_world_create(true, NULL);
	for (int slot = 0; slot < SLOTS_USED; slot++)
		world->owner[slot] = (uint16_t)(1 + below(world, NODES));
	tell_routes(world);
	for (int i = 0; i < STEPS; i++)
		step(world, false);
	/* Runs without further faults until all operations are answered. */
	for (int i = 0;
	     i < 100 * STEPS && world->flow_world->finished_count < world->flow_world->ops_count;
	     i++) {
		for (int slot = 0; slot < SLOTS_USED; slot++) {
			if (world->moving[slot])
				move_something(world);
		}
		step(world, true);
	}
	for (int op = 0; op < world->flow_world->ops_count; op++)
		check_once(world, op, seed);
	check_order(world, seed);
	for (int i = 0; i < PIPES_MAX; i++)
		forget_server(&world->servers[i]);
	flow_world_destroy(&world->flow_world);
	hs_mem_free(&world);
}

static void test_schedules(void **state)
{
	const char *first = getenv("SEED"), *count = getenv("SCHEDULES");
	uint64_t seed = first ? strtoull(first, NULL, 10) : 1;
	uint64_t end = seed + (count ? strtoull(count, NULL, 10) : first ? 1 : 1000);

	(void)state;
	for (; seed < end; seed++)
		run_schedule(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
