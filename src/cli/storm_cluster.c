/* A Cluster as the target: which node gets a request, and which requests are sent again. Every worker has a map of
 * the slots (storm_map.c), every client a connection to each node that owns slots.
 *
 *     request ── map ──▶ connection to the owner ── reply ──▶ the worker
 *        │                      │ MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING
 *        └── slot held ──▶  parked  ◀─┘        (MOVED changes the map)
 *                             └── again, in the client's order ──▶ connection to the owner, or after ASKING
 *
 * A request that a node did not run is sent again, but never past a later one of the same client. So it is parked,
 * and so are the client's next requests for the slot. They leave in their order once no request for the slot is in
 * flight on another connection. If a later request for the same key has run meanwhile, the parked one must not be
 * sent: its last error is its reply. The same happens after --resend-timeout.
 *
 * The redis engine parks requests and follows redirects, too (engine/redis/flow.h). storm shares none of that code on
 * purpose, only the parsers of redirects and of CLUSTER SLOTS: --verify checks the engine, and shared code would
 * share the engine's bugs.
 *
 * A transaction is sent again as a whole. A transaction that depends on a WATCH is only sent on the connection of
 * that WATCH: if the slot has moved, it did nothing, as if the key had changed. */
#include "cli/storm.h"

#include "base/mem.h"
#include "upstream/redirect.h"

enum { PAUSE_US = 10000 };

/* Parked: one request, or a transaction. */
struct hs_storm_parked {
	struct hs_storm_parked *next;
	struct hs_storm_request requests[HS_STORM_ACT_REQUESTS_MAX];
	uint32_t count;
	struct hs_buf bytes;
	struct hs_buf why; /* the last error; empty: the node is not connected */
	bool ask;	   /* send it to `node`, after ASKING */
	uint32_t node;
	uint64_t not_before_us;
};

/* ---- parked requests ---- */

/* Compares sequences of a client, which wrap. */
static bool is_before(uint32_t sequence, uint32_t other)
{
	return (int32_t)(sequence - other) < 0;
}

/* Milliseconds since the worker began; never 0. */
static uint32_t now_ms(const struct hs_storm_worker *worker)
{
	return (uint32_t)(uv_hrtime() / 1000000 - worker->cluster->began_ms + 1);
}

static uint32_t resend_until(const struct hs_storm_worker *worker)
{
	return now_ms(worker) + (uint32_t)(worker->options->resend_timeout_us / 1000);
}

static struct hs_storm_parked *park(struct hs_storm_client *client, uint32_t sequence)
{
	struct hs_storm_parked **at = &client->parked, *parked = hs_mem_zalloc(sizeof *parked);

	while (*at && is_before((*at)->requests[0].sequence, sequence))
		at = &(*at)->next;
	parked->next = *at;
	*at = parked;
	return parked;
}

static void unpark(struct hs_storm_parked **at)
{
	struct hs_storm_parked *parked = *at;

	hs_check(parked);
	*at = parked->next;
	hs_buf_deinit(&parked->bytes);
	hs_buf_deinit(&parked->why);
	hs_mem_free(&parked);
}

/* Ends a parked request: no node ran it, and its last error is its reply. */
static void give_up(struct hs_storm_client *client, struct hs_storm_parked **at)
{
	struct hs_storm_parked *parked = *at;
	struct hs_storm_worker *worker = client->worker;

	if (parked->why.len == 0) {
		const struct hs_redis_address *node =
			&worker->nodes[worker->cluster->slots[parked->requests[0].slot]].at;

		hs_buf_printf(&parked->why, "-CLUSTERDOWN %s:%u is not connected; not sent\r\n",
			      node->host, node->port);
	}
	client->from = NULL;
	worker->read_ns = uv_hrtime();
	for (uint32_t i = 0; i < parked->count; i++) {
		if (!parked->requests[i].reply_counted)
			hs_storm_worker_on_answer(worker, client, &parked->requests[i],
						  hs_buf_bytes(&parked->why));
	}
	unpark(at);
}

void hs_storm_cluster_give_up(struct hs_storm_client *client)
{
	while (client->parked)
		give_up(client, &client->parked);
}

uint64_t hs_storm_cluster_oldest(const struct hs_storm_client *client, uint64_t oldest)
{
	for (const struct hs_storm_parked *at = client->parked; at; at = at->next) {
		if (at->requests[0].stamp < oldest)
			oldest = at->requests[0].stamp;
	}
	return oldest;
}

void hs_storm_cluster_raise_floor(struct hs_storm_client *client, uint64_t key, int64_t floor)
{
	for (struct hs_storm_parked *at = client->parked; at; at = at->next) {
		if (at->requests[0].key == key && at->requests[0].floor < floor)
			at->requests[0].floor = floor;
	}
}

static bool share_a_key(const struct hs_storm_request *a, const struct hs_storm_request *b)
{
	uint32_t key_a = (uint32_t)a->key, key_b = (uint32_t)b->key;

	return a->slot == b->slot && (key_a == key_b || key_a == b->other_key ||
				      a->other_key == key_b || a->other_key == b->other_key);
}

/* The request has run: parked requests for its key that should have run before it cannot be sent any more. */
static void give_up_overtaken(struct hs_storm_client *client,
			      const struct hs_storm_request *request)
{
	struct hs_storm_parked **at = &client->parked;

	while (*at && is_before((*at)->requests[0].sequence, request->sequence)) {
		if (share_a_key(&(*at)->requests[0], request))
			give_up(client, at);
		else
			at = &(*at)->next;
	}
}

/* True if a request for the slot, sent on `connection`, could overtake another one of the client, or be overtaken. */
static bool is_held(const struct hs_storm_client *client, uint16_t slot, uint32_t sequence,
		    const struct hs_storm_connection *connection)
{
	for (const struct hs_storm_parked *at = client->parked;
	     at && is_before(at->requests[0].sequence, sequence); at = at->next) {
		if (at->requests[0].slot == slot)
			return true;
	}
	if (client->settled_version == client->worker->cluster->version)
		return false;
	for (uint32_t i = 0; i < client->connections_count; i++) {
		const struct hs_storm_connection *other = client->connections[i];

		for (uint32_t j = 0; j < other->ring_count; j++) {
			const struct hs_storm_request *request =
				hs_storm_connection_request(other, j);

			if (request->kind < HS_STORM_ASKING && request->slot == slot &&
			    (other != connection || is_before(sequence, request->sequence)))
				return true;
		}
	}
	return false;
}

/* The connection to the node if it is up; opens it otherwise and returns NULL. */
static struct hs_storm_connection *open_connection(struct hs_storm_client *client, uint32_t node)
{
	struct hs_storm_connection *connection = hs_storm_client_connection(client, node);

	connection->wanted = true;
	hs_storm_connection_open(connection);
	return connection->upstream.state == HS_UPSTREAM_UP ? connection : NULL;
}

static void count_request(const struct hs_storm_connection *connection)
{
	struct hs_storm_worker *worker = connection->client->worker;

	worker->nodes[connection->node].requests += worker->phase == HS_STORM_PHASE_RUN;
}

static void send_parked(struct hs_storm_parked *parked, struct hs_storm_connection *connection)
{
	struct hs_buf *resend_bytes = &connection->resend_bytes;

	if (parked->ask)
		hs_storm_connection_send_control(connection, HS_STORM_ASKING,
						 "ASKING"); /* valid until EXEC */
	for (uint32_t i = 0; i < parked->count; i++) {
		struct hs_storm_request *request = hs_storm_connection_add(connection);

		*request = parked->requests[i];
		request->asked = parked->ask;
		connection->upstream.composed += request->bytes;
		count_request(connection);
	}
	hs_buf_append_bytes(&connection->upstream.out, hs_buf_bytes(&parked->bytes));
	hs_buf_append_bytes(resend_bytes, hs_buf_bytes(&parked->bytes));
}

void hs_storm_cluster_release(struct hs_storm_client *client)
{
	struct hs_storm_cluster *cluster = client->worker->cluster;
	struct hs_storm_parked **at = &client->parked, *parked;
	uint64_t now_ns = uv_hrtime();

	while ((parked = *at)) {
		const struct hs_storm_request *first = &parked->requests[0];
		struct hs_storm_connection *connection = open_connection(
			client, parked->ask ? parked->node : cluster->slots[first->slot]);

		if (now_ms(client->worker) > first->give_up_ms) {
			give_up(client, at);
		} else if (!connection || now_ns / 1000 < parked->not_before_us ||
			   is_held(client, first->slot, first->sequence, connection)) {
			at = &parked->next;
		} else {
			if (parked->ask)
				client->settled_version =
					UINT64_MAX; /* the slot has requests on two connections */
			send_parked(parked, connection);
			unpark(at);
		}
	}
	if (client->in_flight == 0)
		client->settled_version = cluster->version;
	hs_storm_client_flush(client);
}

/* ---- requests ---- */

void hs_storm_cluster_route(struct hs_storm_client *client, uint16_t slot)
{
	struct hs_storm_cluster *cluster = client->worker->cluster;

	if (client->transaction_added > 0)
		return; /* a transaction stays together */
	client->slot = slot;
	if (client->in_flight == 0)
		client->settled_version = cluster->version;
	client->adding = client->pin ? client->pin : open_connection(client, cluster->slots[slot]);
	if (!client->pin && client->adding &&
	    is_held(client, slot, client->sequence, client->adding))
		client->adding = NULL;
	if (client->pin && client->watch.asked)
		hs_storm_connection_send_control(client->pin, HS_STORM_ASKING, "ASKING");
	if (client->pin && client->pin->node != cluster->slots[slot])
		client->settled_version = UINT64_MAX; /* later requests may go to another node */
	if (client->adding) {
		client->out = &client->adding->upstream.out;
		return;
	}
	client->parking = park(client, client->sequence);
	client->out = &client->parking->bytes;
}

struct hs_storm_request *hs_storm_cluster_park(struct hs_storm_client *client)
{
	hs_check(client->parking->count < HS_STORM_ACT_REQUESTS_MAX);
	return &client->parking->requests[client->parking->count++];
}

void hs_storm_cluster_added(struct hs_storm_client *client, struct hs_storm_request *request)
{
	request->slot = client->slot;
	request->sequence = client->sequence++;
	request->more = client->transaction_left;
	request->pinned = client->pin != NULL;
	request->asked = client->pin && client->watch.asked;
	client->transaction_added =
		client->transaction_left > 0 ? (uint8_t)(client->transaction_added + 1) : 0;
	if (client->transaction_left > 0)
		client->transaction_left--;
	if (!client->adding) {
		request->give_up_ms = resend_until(client->worker);
		return;
	}
	hs_buf_append(&client->adding->resend_bytes, client->out->data + client->out_before,
		      request->bytes);
	count_request(client->adding);
}

/* ---- replies ---- */

/* Follows MOVED or ASK. False: it cannot be followed. */
static bool read_redirect(struct hs_storm_connection *connection,
			  const struct hs_redirect *redirect, struct hs_storm_verdict *verdict)
{
	struct hs_storm_worker *worker = connection->client->worker;
	struct hs_storm_node *asked = &worker->nodes[connection->node];
	struct hs_redis_address at =
		asked->at; /* a node that does not know its host name leaves it out */
	bool run = worker->phase == HS_STORM_PHASE_RUN;

	if (redirect->host.len >= sizeof at.host)
		return false;
	if (redirect->host.len > 0)
		snprintf(at.host, sizeof at.host, "%.*s", (int)redirect->host.len,
			 redirect->host.data);
	at.port = redirect->port;
	asked->moved += run && !redirect->ask;
	asked->asked += run && redirect->ask;
	verdict->ask = redirect->ask;
	verdict->node = hs_storm_node(worker, &at);
	if (!redirect->ask) {
		hs_storm_map_set_owner(worker->cluster, redirect->slot, verdict->node);
		worker->cluster->wanted = true;
	}
	return verdict->node < HS_STORM_NODES_MAX;
}

/* True if the reply says that the request did not run and should be sent again; fills *verdict. */
static bool read_refusal(struct hs_storm_connection *connection, struct hs_bytes reply,
			 struct hs_storm_verdict *verdict)
{
	static const struct hs_bytes words[] = {HS_LIT("TRYAGAIN"), HS_LIT("CLUSTERDOWN"),
						HS_LIT("LOADING"), HS_LIT("MASTERDOWN"),
						HS_LIT("READONLY")};
	struct hs_storm_worker *worker = connection->client->worker;
	struct hs_redirect redirect;
	struct hs_parsed_reply answer;

	*verdict = (struct hs_storm_verdict){0};
	if (reply.data[0] != '-' || hs_parse_reply_head(&answer, reply.data, reply.len) <= 0)
		return false;
	if (hs_redirect_parse(&redirect, answer.text))
		return verdict->again = read_redirect(connection, &redirect, verdict);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!hs_bytes_begins(answer.text, words[i]))
			continue;
		worker->nodes[connection->node].not_now += worker->phase == HS_STORM_PHASE_RUN;
		worker->cluster->wanted = true;
		return verdict->again = verdict->later = true;
	}
	return false;
}

/* Parks the first `count` requests of the ring. */
static void take_back(struct hs_storm_connection *connection, uint32_t count)
{
	struct hs_storm_client *client = connection->client;
	const struct hs_storm_request *first = hs_storm_connection_request(connection, 0);
	struct hs_storm_parked *parked = park(client, first->sequence);
	uint64_t now_ns = client->worker->read_ns;
	const struct hs_storm_verdict *verdict = &connection->verdict;
	size_t len = 0;

	for (uint32_t i = 0; i < count; i++) {
		parked->requests[i] = *hs_storm_connection_request(connection, i);
		parked->requests[i].was_resent = true;
		len += parked->requests[i].bytes;
	}
	parked->count = count;
	hs_buf_append(&parked->bytes, connection->resend_bytes.data + connection->resend_at, len);
	hs_buf_swap(&parked->why, &connection->why);
	parked->ask = verdict->ask;
	parked->node = verdict->node;
	if (first->give_up_ms == 0)
		parked->requests[0].give_up_ms = resend_until(client->worker);
	/* A pause: two nodes that disagree would send the request to and fro as fast as they reply. */
	if (verdict->later || first->was_resent) {
		parked->not_before_us = now_ns / 1000 + PAUSE_US;
		hs_storm_worker_wake(client->worker, parked->not_before_us);
	}
	client->settled_version = UINT64_MAX;
}

/* Removes `count` requests from the ring. */
static void pop(struct hs_storm_connection *connection, uint32_t count)
{
	for (; count > 0; count--) {
		const struct hs_storm_request *request = hs_storm_connection_take(connection);

		if (request->kind < HS_STORM_ASKING)
			connection->resend_at += request->bytes;
	}
	if (connection->resend_at == connection->resend_bytes.len ||
	    connection->resend_at > HS_STORM_INPUT_BYTES) {
		hs_buf_consume(&connection->resend_bytes, connection->resend_at);
		connection->resend_at = 0;
	}
}

static void report_reply(struct hs_storm_connection *connection, struct hs_storm_request *request,
			 struct hs_bytes reply)
{
	if (!request->reply_counted)
		hs_storm_worker_on_answer(connection->client->worker, connection->client, request,
					  reply);
	request->reply_counted = true;
}

/* The last reply to a request or transaction has come. */
static void finish(struct hs_storm_connection *connection, struct hs_storm_request *request,
		   struct hs_bytes reply)
{
	uint32_t count = connection->transaction_replies;

	connection->transaction_replies = 0;
	if (connection->verdict.again && !request->pinned) {
		take_back(connection, count);
	} else {
		/* A pinned transaction that was redirected did nothing: reply null. */
		report_reply(connection, request,
			     connection->verdict.again ? HS_LIT("*-1\r\n") : reply);
		if (!connection->verdict.again)
			give_up_overtaken(connection->client, request);
	}
	pop(connection, count);
}

void hs_storm_cluster_take(struct hs_storm_connection *connection, struct hs_bytes reply)
{
	struct hs_storm_request *request =
		hs_storm_connection_request(connection, connection->transaction_replies);
	struct hs_storm_verdict verdict;
	bool again;

	if (request->kind == HS_STORM_MAP) {
		connection->map_requested = false;
		hs_storm_map_read(connection, reply);
	}
	if (request->kind >= HS_STORM_ASKING) {
		pop(connection, 1);
		return;
	}
	if (connection->transaction_replies++ == 0)
		connection->verdict = (struct hs_storm_verdict){0};
	again = read_refusal(connection, reply, &verdict);
	if (again && !connection->verdict.again) {
		connection->verdict = verdict;
		connection->why.len = 0;
		hs_buf_append_bytes(&connection->why, reply);
	}
	if (request->more == 0)
		finish(connection, request, reply);
	else if (!again || request->pinned)
		report_reply(connection, request, again ? HS_LIT("*-1\r\n") : reply);
}
