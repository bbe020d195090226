/* A simulated heatsink in front of a simulated Cluster, controlled by lines on standard input: for tests that run the
 * same scripts against the real binary in front of a real Cluster (tests/integration/test_sim_heatsink.py). One
 * process, one thread, a virtual clock.
 *
 *     simulated_heatsink MASTERS REPLICAS [MISTAKE]     (a name of sim/planted_bugs.h)
 *
 *     in:  reset SEED              a new world; every connection is gone
 *          connect NAME            to heatsink; NAME is a number below 64
 *          close NAME
 *          send NAME HEX           bytes of a client
 *          pass US                 lets this much time pass
 *          stall NODE | thaw NODE | crash NODE | fail_over NODE | take_over NODE
 *          restart NODE
 *          move_begin SLOT NODE | move_key SLOT HEX | move_end SLOT
 *          behind HEX [HEX ...]    runs a command directly at the server that owns the key
 *     out: as tests/drivers/simulated.c
 *
 * The keys key0 and key1 are under rules: cache ttl=1m admit=all jitter=0% refresh-ahead=0, with stale=1s and
 * stale=1m. An unknown line aborts the driver (hs_check). */
#include "base/check.h"
#include "sim/cluster.h"
#include "sim/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CLIENTS = 64,
	WORD_MAX = 16,
	WORDS_MAX = 8,
	HEX_BYTE = 2,
	SECOND_US = 1000000,
	MINUTE_US = 60 * SECOND_US,
	STEP_US = 10000,
	STEPS_MAX = 1000,
	PARTITIONS = 16,
};

struct driver {
	uint8_t masters, replicas;
	enum hs_sim_bug bug;
	struct hs_sim_world *world;
	struct hs_sim_client *clients[CLIENTS]; /* NULL: none */
};

/* ---- lines ---- */

static void reset(struct driver *driver, uint64_t seed)
{
	struct hs_sim_world_options options = hs_sim_world_defaults(seed);

	options.engine.partitions = PARTITIONS;
	options.engine.bug = driver->bug;
	options.op_scope = HS_OP_SCOPE_SLOT;
	options.servers = (struct hs_sim_servers_options){
		.on = true,
		.cluster = true,
		.masters = driver->masters,
		.replicas = driver->replicas,
		.lossy = true,
		.latency_us_max = 100,
		.cycle_us_max = 20,
		.gossip_us_max = 500,
		.stream_us_max = 200,
		.message_us_max = 50,
		.node_timeout_us = 5 * SECOND_US,
		.timeout_us = MINUTE_US,
		.in_flight_max = 4096,
		.waiting_max = 16384,
		.private_max = 512,
		.liveness_us = SECOND_US,
		.cuts = true,
	};
	options.rules_count = 2;
	for (uint32_t i = 0; i < options.rules_count; i++)
		options.rules[i] = (struct hs_sim_rule){
			.stale_us = i == 0 ? SECOND_US : MINUTE_US,
			.ttl_us = MINUTE_US,
			.admit_all = true,
		};
	if (driver->world)
		hs_sim_world_destroy(&driver->world);
	memset(driver->clients, 0, sizeof driver->clients);
	driver->world = hs_sim_world_create(&options);
	for (uint8_t i = 0; i < hs_sim_cluster_nodes(driver->world->cluster); i++)
		printf("node %d %s %s %d\n", i, hs_sim_cluster_id(driver->world->cluster, i),
		       hs_sim_cluster_host(driver->world->cluster, i),
		       hs_sim_cluster_port(driver->world->cluster, i));
}

static void read_hex(struct hs_buf *bytes, const char *hex)
{
	for (; hex[0] && hex[1] && hex[0] != ' '; hex += HEX_BYTE) {
		char pair[HEX_BYTE + 1] = {hex[0], hex[1], '\0'};
		char byte = (char)strtoul(pair, NULL, 16);

		hs_buf_append(bytes, &byte, 1);
	}
}

static void tell(struct driver *driver)
{
	for (int i = 0; i < CLIENTS; i++) {
		struct hs_sim_client *client = driver->clients[i];

		if (client && client->received.len > 0) {
			printf("got %d ", i);
			for (size_t j = 0; j < client->received.len; j++)
				printf("%02x", (unsigned char)client->received.data[j]);
			printf("\n");
			client->received.len = 0;
		}
		if (client && !client->session) {
			printf("closed %d\n", i);
			driver->clients[i] = NULL;
		}
	}
	printf("done\n");
	fflush(stdout);
}

static void do_behind(struct hs_sim_cluster *cluster, char *words)
{
	struct hs_buf bytes[WORDS_MAX] = {0}, reply = {0};
	struct hs_bytes argv[WORDS_MAX];
	size_t argc = 0;

	for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) {
		hs_check(argc < WORDS_MAX);
		read_hex(&bytes[argc], word);
		argv[argc] = hs_buf_bytes(&bytes[argc]);
		argc++;
	}
	hs_check(hs_sim_cluster_do_external(cluster, argc, argv, &reply));
	for (size_t i = 0; i < argc; i++)
		hs_buf_deinit(&bytes[i]);
	hs_buf_deinit(&reply);
}

static bool move(struct hs_sim_cluster *cluster, const char *word, long number, const char *rest)
{
	uint16_t slot = (uint16_t)number;
	struct hs_buf key = {0};

	if (strcmp(word, "move_begin") == 0)
		return hs_sim_cluster_move_begin(cluster, slot, (uint8_t)strtol(rest, NULL, 10));
	if (strcmp(word, "move_end") == 0)
		return hs_sim_cluster_move_end(cluster, slot);
	read_hex(&key, rest);
	hs_sim_cluster_move_this(cluster, slot, hs_buf_bytes(&key)); /* false if it has moved */
	hs_buf_deinit(&key);
	return true;
}

/* Nodes refuse a move until they agree, so it is retried; each retry lets simulated time pass. */
static void move_soon(struct driver *driver, const char *word, long number, const char *rest)
{
	int steps = 0;

	while (!move(driver->world->cluster, word, number, rest)) {
		hs_check(steps++ < STEPS_MAX);
		hs_sim_world_pass(driver->world, STEP_US);
	}
}

static bool act(struct hs_sim_cluster *cluster, const char *word, uint8_t node)
{
	if (strcmp(word, "stall") == 0)
		hs_sim_cluster_stall(cluster, node);
	else if (strcmp(word, "thaw") == 0)
		hs_sim_cluster_thaw(cluster, node);
	else if (strcmp(word, "crash") == 0)
		hs_sim_cluster_crash(cluster, node);
	else if (strcmp(word, "restart") == 0)
		hs_sim_cluster_restart(cluster, node, true, 0);
	else if (strcmp(word, "fail_over") == 0)
		hs_check(hs_sim_cluster_fail_over(cluster, node));
	else if (strcmp(word, "take_over") == 0)
		hs_check(hs_sim_cluster_take_over(cluster, node));
	else
		return false;
	return true;
}

static void obey_client(struct driver *driver, const char *word, long number, const char *rest)
{
	struct hs_sim_client **client;

	hs_check(number >= 0 && number < CLIENTS);
	client = &driver->clients[number];
	if (strcmp(word, "connect") == 0) {
		*client = hs_sim_client_connect(driver->world, 0);
	} else if (!*client) {
		return;
	} else if (strcmp(word, "close") == 0) {
		hs_sim_client_disconnect(*client);
		*client = NULL;
	} else {
		struct hs_buf bytes = {0};

		hs_check(strcmp(word, "send") == 0);
		read_hex(&bytes, rest);
		hs_sim_client_send(*client, hs_buf_bytes(&bytes));
		hs_buf_deinit(&bytes);
	}
}

static void run_line(struct driver *driver, char *line)
{
	char word[WORD_MAX], *words, *rest;
	long number;
	int used = 0;

	hs_check(sscanf(line, "%15s %n", word, &used) == 1);
	words = line + used;
	number = strtol(words, &rest, 10);
	rest += *rest == ' ';
	if (strcmp(word, "reset") == 0) {
		reset(driver, (uint64_t)number);
	} else if (strcmp(word, "pass") == 0) {
		hs_sim_world_pass(driver->world, (uint64_t)number);
		tell(driver);
	} else if (strcmp(word, "behind") == 0) {
		do_behind(driver->world->cluster, words);
	} else if (strncmp(word, "move_", strlen("move_")) == 0) {
		move_soon(driver, word, number, rest);
	} else if (!act(driver->world->cluster, word, (uint8_t)number)) {
		obey_client(driver, word, number, rest);
	}
}

int main(int argc, char **argv)
{
	struct driver driver = {0};
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	hs_check(argc == 3 || argc == 4);
	if (argc == 4)
		driver.bug = hs_sim_bug_find(argv[3]);
	hs_check(driver.bug < HS_SIM_BUGS);
	driver.masters = (uint8_t)strtoul(argv[1], NULL, 10);
	driver.replicas = (uint8_t)strtoul(argv[2], NULL, 10);
	while ((len = getline(&line, &size, stdin)) > 0) {
		line[len - (line[len - 1] == '\n')] = '\0';
		run_line(&driver, line);
	}
	free(line);
	if (driver.world)
		hs_sim_world_destroy(&driver.world);
	return 0;
}
