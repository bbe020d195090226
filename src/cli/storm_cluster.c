/* A Cluster as the target: what is sent where, and what is sent again. Every worker has a map of the slots
 * (storm_map.c), every client a link to each node that owns some.
 *
 *     request ── map ──▶ link to the owner ── reply ──▶ the worker
 *        │                      │ MOVED, ASK, TRYAGAIN, CLUSTERDOWN, LOADING
 *        └── slot held ──▶  parked  ◀─┘        (MOVED changes the map)
 *                             └── again, in the client's order ──▶ link to the owner, or behind ASKING
 *
 * A request that a node did not run is sent again, but never past a later one of the same client: it is parked, so
 * are the client's next requests for the slot, and they leave in their order once none of the slot is under way
 * elsewhere. If a later request on the same key was run meanwhile, the parked one cannot be sent any more, and its
 * last error is its reply. So is it after --patience.
 *
 * The redis engine parks requests and follows redirects, too (engine/redis/flow.h). storm shares none of that code on
 * purpose, only the parsers of redirects and of CLUSTER SLOTS: --verify checks the engine, and shared code would share
 * the engine's mistakes.
 *
 * A transaction is sent again as a whole. One that depends on a WATCH goes where the WATCH is and nowhere else: if the
 * slot has left, it did nothing, as if the key had been changed. */
#include "cli/storm.h"

#include "base/mem.h"
#include "upstream/redirect.h"

enum { PAUSE_US = 10000 };

/* Requests that wait to be sent: one, or a transaction. */
struct hs_storm_parked {
	struct hs_storm_parked *next;
	struct hs_storm_flight flights[HS_STORM_ACT_REQUESTS_MAX];
	uint32_t count;
	struct hs_buf bytes;
	struct hs_buf why; /* the last error; empty: its node is not connected */
	bool ask;	   /* to `node`, behind ASKING */
	uint32_t node;
	uint64_t not_before_us;
};

/* ---- what is parked ---- */

/* Turns of a client, which wrap. */
static bool is_before(uint32_t turn, uint32_t other)
{
	return (int32_t)(turn - other) < 0;
}

/* Since the worker began; never 0. */
static uint32_t now_ms(const struct hs_storm_worker *worker)
{
	return (uint32_t)(uv_hrtime() / 1000000 - worker->cluster->began_ms + 1);
}

static uint32_t patience_from_now(const struct hs_storm_worker *worker)
{
	return now_ms(worker) + (uint32_t)(worker->options->patience_us / 1000);
}

static struct hs_storm_parked *park(struct hs_storm_conn *conn, uint32_t turn)
{
	struct hs_storm_parked **at = &conn->parked, *parked = hs_mem_zalloc(sizeof *parked);

	while (*at && is_before((*at)->flights[0].turn, turn))
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

/* It was not run; its last error is its reply. */
static void give_up(struct hs_storm_conn *conn, struct hs_storm_parked **at)
{
	struct hs_storm_parked *parked = *at;
	struct hs_storm_worker *worker = conn->worker;

	if (parked->why.len == 0) {
		const struct hs_redis_address *node =
			&worker->nodes[worker->cluster->slots[parked->flights[0].slot]].at;

		hs_buf_printf(&parked->why, "-CLUSTERDOWN %s:%u is not connected; not sent\r\n",
			      node->host, node->port);
	}
	conn->from = NULL;
	worker->read_ns = uv_hrtime();
	for (uint32_t i = 0; i < parked->count; i++) {
		if (!parked->flights[i].told)
			hs_storm_worker_on_answer(worker, conn, &parked->flights[i],
						  hs_buf_bytes(&parked->why));
	}
	unpark(at);
}

void hs_storm_cluster_give_up(struct hs_storm_conn *conn)
{
	while (conn->parked)
		give_up(conn, &conn->parked);
}

uint64_t hs_storm_cluster_oldest(const struct hs_storm_conn *conn, uint64_t oldest)
{
	for (const struct hs_storm_parked *at = conn->parked; at; at = at->next) {
		if (at->flights[0].stamp < oldest)
			oldest = at->flights[0].stamp;
	}
	return oldest;
}

void hs_storm_cluster_raise(struct hs_storm_conn *conn, uint64_t key, int64_t floor)
{
	for (struct hs_storm_parked *at = conn->parked; at; at = at->next) {
		if (at->flights[0].key == key && at->flights[0].floor < floor)
			at->flights[0].floor = floor;
	}
}

static bool share_a_key(const struct hs_storm_flight *a, const struct hs_storm_flight *b)
{
	uint32_t key_a = (uint32_t)a->key, key_b = (uint32_t)b->key;

	return a->slot == b->slot &&
	       (key_a == key_b || key_a == b->other || a->other == key_b || a->other == b->other);
}

/* The flight was run: what should have been run before it on its key cannot be any more. */
static void give_up_overtaken(struct hs_storm_conn *conn, const struct hs_storm_flight *flight)
{
	struct hs_storm_parked **at = &conn->parked;

	while (*at && is_before((*at)->flights[0].turn, flight->turn)) {
		if (share_a_key(&(*at)->flights[0], flight))
			give_up(conn, at);
		else
			at = &(*at)->next;
	}
}

/* Whether a request of the slot, sent to `link`, might overtake one of the client's, or be overtaken. */
static bool is_held(const struct hs_storm_conn *conn, uint16_t slot, uint32_t turn,
		    const struct hs_storm_link *link)
{
	for (const struct hs_storm_parked *at = conn->parked;
	     at && is_before(at->flights[0].turn, turn); at = at->next) {
		if (at->flights[0].slot == slot)
			return true;
	}
	if (conn->settled == conn->worker->cluster->version)
		return false;
	for (uint32_t i = 0; i < conn->links_count; i++) {
		const struct hs_storm_link *other = conn->links[i];

		for (uint32_t j = 0; j < other->flight_count; j++) {
			const struct hs_storm_flight *flight = hs_storm_link_flight(other, j);

			if (flight->kind < HS_STORM_ASKING && flight->slot == slot &&
			    (other != link || is_before(turn, flight->turn)))
				return true;
		}
	}
	return false;
}

/* Where requests of the slot go now; NULL: nowhere. */
static struct hs_storm_link *way(struct hs_storm_conn *conn, uint32_t node)
{
	struct hs_storm_link *link = hs_storm_conn_link(conn, node);

	link->wanted = true;
	hs_storm_link_open(link);
	return link->upstream.state == HS_UPSTREAM_UP ? link : NULL;
}

static void count_request(const struct hs_storm_link *link)
{
	struct hs_storm_worker *worker = link->conn->worker;

	worker->nodes[link->node].requests += worker->phase == HS_STORM_PHASE_RUN;
}

static void send_parked(struct hs_storm_parked *parked, struct hs_storm_link *link)
{
	struct hs_buf *kept = &link->kept;

	if (parked->ask)
		hs_storm_link_say(link, HS_STORM_ASKING, "ASKING"); /* it holds until EXEC */
	for (uint32_t i = 0; i < parked->count; i++) {
		struct hs_storm_flight *flight = hs_storm_link_add(link);

		*flight = parked->flights[i];
		flight->asked = parked->ask;
		link->upstream.composed += flight->bytes;
		count_request(link);
	}
	hs_buf_append_bytes(&link->upstream.out, hs_buf_bytes(&parked->bytes));
	hs_buf_append_bytes(kept, hs_buf_bytes(&parked->bytes));
}

void hs_storm_cluster_release(struct hs_storm_conn *conn)
{
	struct hs_storm_cluster *cluster = conn->worker->cluster;
	struct hs_storm_parked **at = &conn->parked, *parked;
	uint64_t now_ns = uv_hrtime();

	while ((parked = *at)) {
		const struct hs_storm_flight *first = &parked->flights[0];
		struct hs_storm_link *link =
			way(conn, parked->ask ? parked->node : cluster->slots[first->slot]);

		if (now_ms(conn->worker) > first->give_up_ms) {
			give_up(conn, at);
		} else if (!link || now_ns / 1000 < parked->not_before_us ||
			   is_held(conn, first->slot, first->turn, link)) {
			at = &parked->next;
		} else {
			if (parked->ask)
				conn->settled = UINT64_MAX; /* the slot has two ways */
			send_parked(parked, link);
			unpark(at);
		}
	}
	if (conn->under_way == 0)
		conn->settled = cluster->version;
	hs_storm_conn_flush(conn);
}

/* ---- requests ---- */

void hs_storm_cluster_aim(struct hs_storm_conn *conn, uint16_t slot)
{
	struct hs_storm_cluster *cluster = conn->worker->cluster;

	if (conn->unit_place > 0)
		return; /* as those before it */
	conn->slot = slot;
	if (conn->under_way == 0)
		conn->settled = cluster->version;
	conn->adding = conn->pin ? conn->pin : way(conn, cluster->slots[slot]);
	if (!conn->pin && conn->adding && is_held(conn, slot, conn->turn, conn->adding))
		conn->adding = NULL;
	if (conn->pin && conn->watch.asked)
		hs_storm_link_say(conn->pin, HS_STORM_ASKING, "ASKING");
	if (conn->pin && conn->pin->node != cluster->slots[slot])
		conn->settled = UINT64_MAX; /* what follows may go elsewhere */
	if (conn->adding) {
		conn->out = &conn->adding->upstream.out;
		return;
	}
	conn->parking = park(conn, conn->turn);
	conn->out = &conn->parking->bytes;
}

struct hs_storm_flight *hs_storm_cluster_park(struct hs_storm_conn *conn)
{
	hs_check(conn->parking->count < HS_STORM_ACT_REQUESTS_MAX);
	return &conn->parking->flights[conn->parking->count++];
}

void hs_storm_cluster_added(struct hs_storm_conn *conn, struct hs_storm_flight *flight)
{
	flight->slot = conn->slot;
	flight->turn = conn->turn++;
	flight->more = conn->unit_more;
	flight->pinned = conn->pin != NULL;
	flight->asked = conn->pin && conn->watch.asked;
	conn->unit_place = conn->unit_more > 0 ? (uint8_t)(conn->unit_place + 1) : 0;
	if (conn->unit_more > 0)
		conn->unit_more--;
	if (!conn->adding) {
		flight->give_up_ms = patience_from_now(conn->worker);
		return;
	}
	hs_buf_append(&conn->adding->kept, conn->out->data + conn->out_before, flight->bytes);
	count_request(conn->adding);
}

/* ---- replies ---- */

/* False: it cannot be followed. */
static bool judge_redirect(struct hs_storm_link *link, const struct hs_redirect *redirect,
			   struct hs_storm_verdict *verdict)
{
	struct hs_storm_worker *worker = link->conn->worker;
	struct hs_storm_node *asked = &worker->nodes[link->node];
	struct hs_redis_address at = asked->at; /* one that does not know its name leaves it out */
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
		hs_storm_map_own(worker->cluster, redirect->slot, verdict->node);
		worker->cluster->wanted = true;
	}
	return verdict->node < HS_STORM_NODES_MAX;
}

/* Whether the reply says that nothing was run and that it is worth trying again. */
static bool judge(struct hs_storm_link *link, struct hs_bytes reply,
		  struct hs_storm_verdict *verdict)
{
	static const struct hs_bytes words[] = {HS_LIT("TRYAGAIN"), HS_LIT("CLUSTERDOWN"),
						HS_LIT("LOADING"), HS_LIT("MASTERDOWN"),
						HS_LIT("READONLY")};
	struct hs_storm_worker *worker = link->conn->worker;
	struct hs_redirect redirect;
	struct hs_answer answer;

	*verdict = (struct hs_storm_verdict){0};
	if (reply.data[0] != '-' || hs_answer_head(&answer, reply.data, reply.len) <= 0)
		return false;
	if (hs_redirect_parse(&redirect, answer.text))
		return verdict->again = judge_redirect(link, &redirect, verdict);
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		if (!hs_bytes_begins(answer.text, words[i]))
			continue;
		worker->nodes[link->node].not_now += worker->phase == HS_STORM_PHASE_RUN;
		worker->cluster->wanted = true;
		return verdict->again = verdict->later = true;
	}
	return false;
}

/* The head of the ring and so many behind it go from the link to what is parked. */
static void take_back(struct hs_storm_link *link, uint32_t count)
{
	struct hs_storm_conn *conn = link->conn;
	const struct hs_storm_flight *first = hs_storm_link_flight(link, 0);
	struct hs_storm_parked *parked = park(conn, first->turn);
	uint64_t now_ns = conn->worker->read_ns;
	const struct hs_storm_verdict *verdict = &link->verdict;
	size_t len = 0;

	for (uint32_t i = 0; i < count; i++) {
		parked->flights[i] = *hs_storm_link_flight(link, i);
		parked->flights[i].returned = true;
		len += parked->flights[i].bytes;
	}
	parked->count = count;
	hs_buf_append(&parked->bytes, link->kept.data + link->kept_at, len);
	hs_buf_swap(&parked->why, &link->why);
	parked->ask = verdict->ask;
	parked->node = verdict->node;
	if (first->give_up_ms == 0)
		parked->flights[0].give_up_ms = patience_from_now(conn->worker);
	/* Sent to and fro between two that disagree: not in circles as fast as they answer. */
	if (verdict->later || first->returned) {
		parked->not_before_us = now_ns / 1000 + PAUSE_US;
		hs_storm_worker_wake(conn->worker, parked->not_before_us);
	}
	conn->settled = UINT64_MAX;
}

/* Off the ring. */
static void pop(struct hs_storm_link *link, uint32_t count)
{
	for (; count > 0; count--) {
		const struct hs_storm_flight *flight = hs_storm_link_take(link);

		if (flight->kind < HS_STORM_ASKING)
			link->kept_at += flight->bytes;
	}
	if (link->kept_at == link->kept.len || link->kept_at > HS_STORM_INPUT_BYTES) {
		hs_buf_consume(&link->kept, link->kept_at);
		link->kept_at = 0;
	}
}

static void tell(struct hs_storm_link *link, struct hs_storm_flight *flight, struct hs_bytes reply)
{
	if (!flight->told)
		hs_storm_worker_on_answer(link->conn->worker, link->conn, flight, reply);
	flight->told = true;
}

/* The last reply to a request or a transaction is there. */
static void finish(struct hs_storm_link *link, struct hs_storm_flight *flight,
		   struct hs_bytes reply)
{
	uint32_t count = link->unit_replies;

	link->unit_replies = 0;
	if (link->verdict.again && !flight->pinned) {
		take_back(link, count);
	} else {
		/* Of one that is pinned: it did nothing. */
		tell(link, flight, link->verdict.again ? HS_LIT("*-1\r\n") : reply);
		if (!link->verdict.again)
			give_up_overtaken(link->conn, flight);
	}
	pop(link, count);
}

void hs_storm_cluster_take(struct hs_storm_link *link, struct hs_bytes reply)
{
	struct hs_storm_flight *flight = hs_storm_link_flight(link, link->unit_replies);
	struct hs_storm_verdict verdict;
	bool again;

	if (flight->kind == HS_STORM_MAP) {
		link->tells_map = false;
		hs_storm_map_take(link, reply);
	}
	if (flight->kind >= HS_STORM_ASKING) {
		pop(link, 1);
		return;
	}
	if (link->unit_replies++ == 0)
		link->verdict = (struct hs_storm_verdict){0};
	again = judge(link, reply, &verdict);
	if (again && !link->verdict.again) {
		link->verdict = verdict;
		link->why.len = 0;
		hs_buf_append_bytes(&link->why, reply);
	}
	if (flight->more == 0)
		finish(link, flight, reply);
	else if (!again || flight->pinned)
		tell(link, flight, again ? HS_LIT("*-1\r\n") : reply);
}
