/* A simulated Cluster, controlled by lines on standard input: for tests that run the same scripts against real
 * servers (tests/integration/test_sim_cluster.py). One process, one thread, a virtual clock.
 *
 *     simulated MASTERS REPLICAS [MISTAKE]
 *
 *     in:  reset SEED          a new Cluster; every connection is gone
 *          connect NAME NODE   NAME is a number below 64
 *          close NAME
 *          send NAME HEX       bytes of a client
 *          settle              runs the events of the next SETTLE_US: replies come
 *          agree               runs until all nodes see the same Cluster, or for some node timeouts
 *          pass US             lets this much time pass
 *          stall NODE | thaw NODE | crash NODE | cut NODE | heal NODE
 *          restart NODE [empty|loading]   with its data, without, or loading it for LOADING_US
 *          strict NODE         replica-serve-stale-data no
 *     out: node N ID HOST PORT   for each node, after "reset"
 *          got NAME HEX        after "settle", "agree" and "pass": the bytes received, by connection
 *          closed NAME         the server has closed the connection
 *          done                all input up to here is processed
 *
 * The nodes do not call a silent node failed before time passes: NODE_TIMEOUT_US is far longer than what "settle"
 * runs. MISTAKE switches a rule of the servers off, to show that the test's comparison can fail. An unknown line
 * aborts the driver (hs_check). */
#include "base/check.h"
#include "sim/cluster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	CLIENTS = 64,
	WORD_MAX = 16,
	HEX_BYTE = 2,
	SETTLE_US = 100000,
	NODE_TIMEOUT_US = 5000000,
	AGREE_US = 4 * NODE_TIMEOUT_US,
	REJOIN_US = 2000000,
	LOADING_US = 60000000,
};

struct client {
	struct hs_sim_server_conn *conn; /* NULL: none */
	struct hs_buf received;
	bool closed; /* and not reported yet */
};

struct driver {
	struct hs_sim_cluster_options options;
	struct hs_sim_cluster *cluster;
	struct hs_sim_events events;
	struct hs_now now;
	struct client clients[CLIENTS];
};

/* ---- the Cluster's host ---- */

static void on_send(void *context, void *io, struct hs_bytes bytes)
{
	struct client *client = io;

	(void)context;
	hs_buf_append_bytes(&client->received, bytes);
}

static void on_closed(void *context, void *io)
{
	struct client *client = io;

	(void)context;
	client->conn = NULL;
	client->closed = true;
}

static void run_until(struct driver *driver, uint64_t until_us)
{
	struct hs_sim_event event;

	while (hs_sim_events_next_us(&driver->events) <= until_us &&
	       hs_sim_events_take(&driver->events, &event)) {
		if (event.at_us > driver->now.mono_us) {
			driver->now.wall_us += (int64_t)(event.at_us - driver->now.mono_us);
			driver->now.mono_us = event.at_us;
		}
		event.run(event.context, event.target, event.number);
	}
}

static void run_until_settled(struct driver *driver)
{
	uint64_t until_us = driver->now.mono_us + AGREE_US;

	run_until(driver, driver->now.mono_us + SETTLE_US);
	while (!hs_sim_cluster_is_settled(driver->cluster) &&
	       hs_sim_events_next_us(&driver->events) <= until_us)
		run_until(driver, hs_sim_events_next_us(&driver->events));
	run_until(driver, driver->now.mono_us + SETTLE_US);
}

/* ---- mistakes ---- */

static void make_mistake(struct hs_sim_cluster_options *options, const char *name)
{
	const struct {
		const char *name;
		bool *on;
	} mistakes[] = {
		{"asking-kept", &options->keeps_asking},
		{"lost-writes-served", &options->serves_lost_writes},
		{"pushes-first", &options->pushes_first},
		{"silent-moves", &options->moves_silent},
		{"watches-kept", &options->keeps_watches},
	};
	size_t i = 0;

	while (i < sizeof mistakes / sizeof *mistakes && strcmp(mistakes[i].name, name) != 0)
		i++;
	hs_check(i < sizeof mistakes / sizeof *mistakes);
	*mistakes[i].on = true;
}

/* ---- lines ---- */

static void end_cluster(struct driver *driver)
{
	hs_sim_cluster_destroy(&driver->cluster);
	hs_sim_events_deinit(&driver->events);
	driver->events = (struct hs_sim_events){0};
	for (int i = 0; i < CLIENTS; i++) {
		hs_buf_deinit(&driver->clients[i].received);
		driver->clients[i] = (struct client){0};
	}
}

static void reset(struct driver *driver, uint64_t seed)
{
	struct hs_sim_cluster_host host = {
		.events = &driver->events,
		.now = &driver->now,
		.send = on_send,
		.closed = on_closed,
		.context = driver,
	};

	end_cluster(driver);
	driver->now = (struct hs_now){.mono_us = 1000000, .wall_us = 1700000000000000};
	driver->options.seed = seed;
	driver->cluster = hs_sim_cluster_create(&driver->options, &host);
	for (uint8_t i = 0; i < hs_sim_cluster_nodes(driver->cluster); i++)
		printf("node %d %s %s %d\n", i, hs_sim_cluster_id(driver->cluster, i),
		       hs_sim_cluster_host(driver->cluster, i),
		       hs_sim_cluster_port(driver->cluster, i));
}

static struct client *client_of(struct driver *driver, long number)
{
	hs_check(number >= 0 && number < CLIENTS);
	return &driver->clients[number];
}

static void connect_client(struct driver *driver, long number, long node)
{
	struct client *client = client_of(driver, number);

	client->received.len = 0;
	client->closed = false;
	client->conn = hs_sim_cluster_connect(driver->cluster, (uint8_t)node, client);
	client->closed = !client->conn;
}

static void send_hex(struct client *client, const char *hex)
{
	struct hs_buf bytes = {0};

	for (; hex[0] && hex[1]; hex += HEX_BYTE) {
		char pair[HEX_BYTE + 1] = {hex[0], hex[1], '\0'};
		char byte = (char)strtoul(pair, NULL, 16);

		hs_buf_append(&bytes, &byte, 1);
	}
	if (client->conn)
		hs_sim_server_receive(client->conn, bytes.data, bytes.len);
	hs_buf_deinit(&bytes);
}

static void tell(struct driver *driver)
{
	for (int i = 0; i < CLIENTS; i++) {
		struct client *client = &driver->clients[i];

		if (client->received.len > 0) {
			printf("got %d ", i);
			for (size_t j = 0; j < client->received.len; j++)
				printf("%02x", (unsigned char)client->received.data[j]);
			printf("\n");
			client->received.len = 0;
		}
		if (client->closed)
			printf("closed %d\n", i);
		client->closed = false;
	}
	printf("done\n");
	fflush(stdout);
}

static const struct {
	const char *word;
	void (*act)(struct hs_sim_cluster *cluster, uint8_t node);
} faults[] = {
	{"stall", hs_sim_cluster_stall}, {"thaw", hs_sim_cluster_thaw},
	{"crash", hs_sim_cluster_crash}, {"cut", hs_sim_cluster_cut},
	{"heal", hs_sim_cluster_heal},
};

static void restart(struct driver *driver, uint8_t node, const char *how)
{
	hs_sim_cluster_restart(driver->cluster, node, strcmp(how, "empty") != 0,
			       strcmp(how, "loading") == 0 ? LOADING_US : 0);
}

static void run_line(struct driver *driver, char *line)
{
	char word[WORD_MAX], *rest;
	long number;
	int used = 0;

	hs_check(sscanf(line, "%15s %n", word, &used) == 1);
	rest = line + used;
	number = strtol(rest, &rest, 10);
	rest += *rest == ' ';
	if (strcmp(word, "reset") == 0) {
		reset(driver, (uint64_t)number);
	} else if (strcmp(word, "connect") == 0) {
		connect_client(driver, number, strtol(rest, NULL, 10));
	} else if (strcmp(word, "close") == 0) {
		struct client *client = client_of(driver, number);

		if (client->conn)
			hs_sim_server_disconnect(client->conn);
		client->conn = NULL;
	} else if (strcmp(word, "send") == 0) {
		send_hex(client_of(driver, number), rest);
	} else if (strcmp(word, "settle") == 0) {
		run_until(driver, driver->now.mono_us + SETTLE_US);
		tell(driver);
	} else if (strcmp(word, "agree") == 0) {
		run_until_settled(driver);
		tell(driver);
	} else if (strcmp(word, "pass") == 0) {
		uint64_t until_us = driver->now.mono_us + (uint64_t)number;

		run_until(driver, until_us);
		driver->now.wall_us += (int64_t)(until_us - driver->now.mono_us);
		driver->now.mono_us = until_us;
		tell(driver);
	} else if (strcmp(word, "restart") == 0) {
		restart(driver, (uint8_t)number, rest);
	} else if (strcmp(word, "strict") == 0) {
		hs_sim_cluster_refuse_stale(driver->cluster, (uint8_t)number, true);
	} else {
		size_t i = 0;

		while (i < sizeof faults / sizeof *faults && strcmp(faults[i].word, word) != 0)
			i++;
		hs_check(i < sizeof faults / sizeof *faults);
		faults[i].act(driver->cluster, (uint8_t)number);
	}
}

int main(int argc, char **argv)
{
	struct driver driver = {.options = hs_sim_cluster_defaults(1)};
	char *line = NULL;
	size_t size = 0;
	ssize_t len;

	hs_check(argc == 3 || argc == 4);
	driver.options.masters = (uint8_t)strtoul(argv[1], NULL, 10);
	driver.options.replicas = (uint8_t)strtoul(argv[2], NULL, 10);
	driver.options.cluster = driver.options.masters > 1;
	driver.options.lossy = true;
	if (argc == 4)
		make_mistake(&driver.options, argv[3]);
	driver.options.node_timeout_us = NODE_TIMEOUT_US;
	driver.options.rejoin_us = REJOIN_US;
	while ((len = getline(&line, &size, stdin)) > 0) {
		line[len - (line[len - 1] == '\n')] = '\0';
		run_line(&driver, line);
	}
	free(line);
	end_cluster(&driver);
	return 0;
}
