/* Who listens to what, and where: topics, their seats, and the LISTENs that wait for them. */
#include "engine/redis/herald_internal.h"

#include "base/hash.h"
#include "base/mem.h"
#include "base/slot.h"

#include <stdio.h>

enum { BUCKETS_MIN = 64 };

/* ---- the table ---- */

uint64_t hs_herald_topic_hash(const struct hs_herald_book *book, enum hs_herald_kind kind,
			      struct hs_bytes name)
{
	return hs_hash(name, book->options.seed + kind);
}

static struct hs_herald_topic **find_place(const struct hs_herald_book *book, uint64_t hash,
					   enum hs_herald_kind kind, struct hs_bytes name)
{
	struct hs_herald_topic **place = &book->buckets[hash & (book->buckets_count - 1)];

	while (*place && ((*place)->hash != hash || (*place)->kind != kind ||
			  !hs_bytes_equal(hs_herald_topic_name(*place), name)))
		place = &(*place)->next;
	return place;
}

struct hs_herald_topic *hs_herald_topic_find(const struct hs_herald_book *book,
					     enum hs_herald_kind kind, struct hs_bytes name)
{
	if (book->topics_count == 0)
		return NULL;
	return *find_place(book, hs_herald_topic_hash(book, kind, name), kind, name);
}

static void grow_table(struct hs_herald_book *book)
{
	size_t count = book->buckets_count ? book->buckets_count * 2 : BUCKETS_MIN;
	struct hs_herald_topic **buckets = hs_mem_zalloc(count * sizeof(struct hs_herald_topic *));

	for (size_t i = 0; i < book->buckets_count; i++) {
		struct hs_herald_topic *topic = book->buckets[i], *next;

		for (; topic; topic = next) {
			struct hs_herald_topic **place = &buckets[topic->hash & (count - 1)];

			next = topic->next;
			topic->next = *place;
			*place = topic;
		}
	}
	hs_mem_free(&book->buckets);
	book->buckets = buckets;
	book->buckets_count = count;
}

static struct hs_herald_topic *create_topic(struct hs_herald_book *book, enum hs_herald_kind kind,
					    struct hs_bytes name)
{
	struct hs_herald_topic *topic = hs_mem_zalloc(sizeof *topic + name.len);
	struct hs_herald_topic **place;

	if (book->topics_count >= book->buckets_count)
		grow_table(book);
	topic->hash = hs_herald_topic_hash(book, kind, name);
	topic->kind = kind;
	topic->slot = hs_slot_of(name);
	topic->len = name.len;
	if (name.len > 0)
		memcpy(topic->name, name.data, name.len);
	hs_list_init(&topic->waits);
	hs_list_init(&topic->missing);
	hs_list_init(&topic->extras);
	topic->everywhere = book->options.cluster &&
			    ((kind == HS_HERALD_CHANNEL && hs_news_is_key_event(name)) ||
			     (kind == HS_HERALD_PATTERN && hs_news_may_be_key_event(name)));
	for (int i = 0; i < 2; i++) {
		topic->seats[i].topic = topic;
		hs_list_init(&topic->seats[i].link);
	}
	place = &book->buckets[topic->hash & (book->buckets_count - 1)];
	topic->next = *place;
	*place = topic;
	book->topics_count++;
	book->names_bytes += name.len;
	book->kinds[kind]++;
	return topic;
}

/* ---- seats ---- */

static struct hs_herald_seat *now_of(struct hs_herald_topic *topic)
{
	return &topic->seats[topic->now];
}

static struct hs_herald_seat *next_of(struct hs_herald_topic *topic)
{
	return &topic->seats[!topic->now];
}

static bool is_on(const struct hs_herald_topic *topic)
{
	const struct hs_herald_seat *seat = &topic->seats[topic->now];

	return seat->line && seat->state == HS_SEAT_ON;
}

/* Nothing published from now on is missed. */
static bool is_complete(const struct hs_herald_topic *topic)
{
	return is_on(topic) && hs_herald_extras_on(topic);
}

static void put_seat(struct hs_herald_seat *seat, enum hs_herald_seat_state state)
{
	hs_list_remove(&seat->link);
	hs_list_append(&seat->line->seats[state], &seat->link);
	seat->state = state;
}

void hs_herald_take_seat(struct hs_herald_book *book, struct hs_herald_seat *seat,
			 struct hs_herald_line *line)
{
	seat->line = line;
	put_seat(seat, HS_SEAT_WANTED);
	if (line->state == HS_LINE_DOWN)
		book->unsettled = true;
	hs_herald_line_pump(book, line);
}

bool hs_herald_leave_seat(struct hs_herald_book *book, struct hs_herald_seat *seat,
			  struct hs_op *op)
{
	struct hs_herald_line *line = seat->line;
	bool said = line && (seat->state == HS_SEAT_ASKED || seat->state == HS_SEAT_ON);

	if (!line)
		return false;
	if (seat->state == HS_SEAT_ASKED)
		hs_herald_line_forget(line, seat->turn);
	if (said)
		hs_herald_line_unsubscribe(book, line, seat->topic, op);
	hs_list_remove(&seat->link);
	seat->line = NULL;
	if (!hs_herald_line_has_seats(line))
		book->unsettled = true;
	return said;
}

/* Where it belongs now; NULL: nobody serves it. */
static struct hs_herald_line *target_of(struct hs_herald_book *book,
					const struct hs_herald_topic *topic)
{
	uint16_t node;

	if (hs_herald_at_home(book, topic->kind))
		return book->home;
	node = book->routes ? book->routes->node_of_slot[topic->slot] : HS_NODE_NONE;
	if (node == HS_NODE_NONE)
		return NULL;
	if (!book->at_node[node])
		book->at_node[node] = hs_herald_line_get(book, node, false);
	return book->at_node[node];
}

static void settle_home(struct hs_herald_book *book, struct hs_herald_topic *topic)
{
	struct hs_herald_line *target = target_of(book, topic);
	struct hs_herald_seat *now = now_of(topic), *next = next_of(topic);
	struct hs_herald_seat *moves = is_on(topic) ? next : now;

	if (moves == now || !target || target == now->line)
		hs_herald_leave_seat(book, next, NULL);
	if (moves == next && target == now->line)
		return;
	if (moves->line == target)
		return;
	if (moves == now || target)
		hs_herald_leave_seat(book, moves, NULL);
	if (target) {
		hs_herald_drop_extra(book, topic, target); /* its UNSUBSCRIBE goes first */
		hs_herald_take_seat(book, moves, target);
	}
}

static void settle(struct hs_herald_book *book, struct hs_herald_topic *topic)
{
	settle_home(book, topic);
	hs_herald_settle_extras(book, topic);
}

void hs_herald_settle_all(struct hs_herald_book *book, bool at_home_alone)
{
	for (size_t i = 0; i < book->buckets_count; i++) {
		for (struct hs_herald_topic *topic = book->buckets[i]; topic; topic = topic->next) {
			if (!at_home_alone || hs_herald_at_home(book, topic->kind))
				settle(book, topic);
		}
	}
}

/* Leaves everything and forgets it; `op` is done when the server knows, too. */
static void destroy_topic(struct hs_herald_book *book, struct hs_herald_topic *topic,
			  struct hs_op *op)
{
	struct hs_herald_topic **place =
		find_place(book, topic->hash, topic->kind, hs_herald_topic_name(topic));

	hs_herald_drop_extras(book, topic);
	hs_herald_leave_seat(book, next_of(topic), NULL);
	if (!hs_herald_leave_seat(book, now_of(topic), op) && op)
		hs_herald_finish(book, op);
	*place = topic->next;
	hs_list_remove(&topic->missing);
	book->topics_count--;
	book->names_bytes -= topic->len;
	book->kinds[topic->kind]--;
	hs_mem_release(topic);
}

static bool is_unused(const struct hs_herald_topic *topic)
{
	return hs_list_empty(&topic->waits) && !hs_herald_any(&topic->workers);
}

/* ---- what is asked ---- */

static enum hs_herald_kind kind_of(struct hs_bytes verb)
{
	return verb.data[0] == 'P'   ? HS_HERALD_PATTERN
	       : verb.data[1] == 'S' ? HS_HERALD_SHARD
				     : HS_HERALD_CHANNEL;
}

void hs_herald_listen(struct hs_herald_book *book, struct hs_op *op)
{
	enum hs_herald_kind kind = kind_of(op->argv[0]);
	struct hs_bytes name = op->argv[1];
	struct hs_herald_topic *topic = hs_herald_topic_find(book, kind, name);

	if (!topic && book->topics_count >= HS_CHANNELS_MAX) {
		hs_herald_fail(book, op,
			       "ERR too many subscriptions: at most %d channels and "
			       "patterns in all",
			       HS_CHANNELS_MAX);
		return;
	}
	if (!topic && book->names_bytes + name.len > HS_CHANNEL_NAMES_BYTES_MAX) {
		hs_herald_fail(book, op,
			       "ERR too many subscriptions: names of at most %zu MiB in "
			       "all",
			       HS_CHANNEL_NAMES_BYTES_MAX / HS_MIB);
		return;
	}
	if (topic && is_complete(topic)) {
		hs_herald_set(&topic->workers, op->worker, true);
		hs_herald_finish(book, op);
		return;
	}
	if (!topic) {
		topic = create_topic(book, kind, name);
		book->unsettled |= !book->home;
	}
	hs_herald_wait_begin(book, op, topic, &topic->waits);
	settle(book, topic);
}

void hs_herald_unlisten(struct hs_herald_book *book, struct hs_op *op)
{
	struct hs_herald_topic *topic =
		hs_herald_topic_find(book, kind_of(op->argv[0]), op->argv[1]);

	if (topic)
		hs_herald_set(&topic->workers, op->worker, false);
	if (topic && is_unused(topic))
		destroy_topic(book, topic, op);
	else
		hs_herald_finish(book, op);
}

/* ---- what the server says ---- */

static void fail_waits(struct hs_herald_book *book, struct hs_herald_topic *topic,
		       struct hs_bytes error)
{
	while (!hs_list_empty(&topic->waits)) {
		struct hs_herald_wait *wait =
			hs_list_entry(topic->waits.next, struct hs_herald_wait, of_topic);

		hs_herald_set(&topic->workers, wait->op->worker, false);
		hs_herald_fail(book, wait->op, "%.*s", (int)error.len, error.data);
		hs_herald_wait_end(&wait);
	}
}

static void finish_waits(struct hs_herald_book *book, struct hs_herald_topic *topic);

/* It is not heard from where it was. */
static void lose(struct hs_herald_book *book, struct hs_herald_topic *topic)
{
	if (hs_herald_any(&topic->workers) && !topic->is_missing &&
	    !hs_herald_at_home(book, topic->kind)) {
		topic->is_missing = true;
		topic->missing_ms = book->now_ms;
		hs_list_append(&book->missing, &topic->missing);
	}
	if (next_of(topic)->line) {
		hs_herald_leave_seat(book, now_of(topic), NULL);
		topic->now = !topic->now;
	}
}

void hs_herald_confirmed(struct hs_herald_book *book, struct hs_herald_seat *seat)
{
	struct hs_herald_topic *topic = seat->topic;

	put_seat(seat, HS_SEAT_ON);
	if (!seat->extra) {
		if (seat != now_of(topic)) {
			hs_herald_leave_seat(book, now_of(topic), NULL);
			topic->now = !topic->now;
		}
		topic->is_missing = false;
		hs_list_remove(&topic->missing);
		hs_herald_settle_extras(book, topic); /* where it was heard from until now */
	}
	finish_waits(book, topic);
}

/* Those who wait for it are told, if nothing is missed any more. */
static void finish_waits(struct hs_herald_book *book, struct hs_herald_topic *topic)
{
	while (is_complete(topic) && !hs_list_empty(&topic->waits)) {
		struct hs_herald_wait *wait =
			hs_list_entry(topic->waits.next, struct hs_herald_wait, of_topic);

		hs_herald_set(&topic->workers, wait->op->worker, true);
		hs_herald_finish(book, wait->op);
		hs_herald_wait_end(&wait);
	}
}

/* Whether a refusal says that it may be different soon, or elsewhere. */
static bool passes(struct hs_bytes error)
{
	static const char *const codes[] = {"MOVED ",	"ASK ",	 "CLUSTERDOWN ", "TRYAGAIN ",
					    "LOADING ", "BUSY ", "MASTERDOWN "};

	for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
		if (error.len >= strlen(codes[i]) &&
		    memcmp(error.data, codes[i], strlen(codes[i])) == 0)
			return true;
	}
	return false;
}

void hs_herald_refused(struct hs_herald_book *book, struct hs_herald_seat *seat,
		       struct hs_bytes error)
{
	struct hs_herald_topic *topic = seat->topic;

	put_seat(seat, HS_SEAT_REFUSED);
	if (passes(error)) {
		snprintf(seat->line->why, sizeof seat->line->why, "%.*s", (int)error.len,
			 error.data);
		book->calls->surprise(book->context);
		return;
	}
	fail_waits(book, topic, error);
	if (is_unused(topic))
		destroy_topic(book, topic, NULL);
}

void hs_herald_dropped(struct hs_herald_book *book, struct hs_herald_line *line,
		       enum hs_herald_kind kind, struct hs_bytes name)
{
	struct hs_herald_topic *topic = hs_herald_topic_find(book, kind, name);

	if (!topic || now_of(topic)->line != line || !is_on(topic))
		return;
	put_seat(now_of(topic), HS_SEAT_REFUSED);
	lose(book, topic);
	book->calls->surprise(book->context);
}

void hs_herald_unseat(struct hs_herald_book *book, struct hs_herald_line *line)
{
	for (int state = HS_SEAT_ASKED; state < HS_SEAT_STATES; state++) {
		while (!hs_list_empty(&line->seats[state])) {
			struct hs_herald_seat *seat =
				hs_list_entry(line->seats[state].next, struct hs_herald_seat, link);

			put_seat(seat, HS_SEAT_WANTED);
			if (state == HS_SEAT_ON && !seat->extra)
				lose(book, seat->topic);
		}
	}
}

/* ---- time ---- */

static const char *why_not(const struct hs_herald_book *book, const struct hs_herald_topic *topic)
{
	const struct hs_herald_seat *seat = &topic->seats[topic->now];

	if (!book->routes)
		return "none of the engine's servers has answered yet";
	if (!seat->line)
		return "nobody serves its slot";
	if (seat->state != HS_SEAT_ASKED && seat->line->why[0])
		return seat->line->why;
	return "the server does not answer";
}

void hs_herald_late(struct hs_herald_book *book, struct hs_herald_wait *wait)
{
	struct hs_herald_topic *topic = wait->topic;

	hs_herald_set(&topic->workers, wait->op->worker, false);
	hs_herald_fail(book, wait->op, "CLUSTERDOWN cannot listen to it: %s", why_not(book, topic));
	hs_herald_wait_end(&wait);
	if (is_unused(topic))
		destroy_topic(book, topic, NULL);
}

/* Nobody serves it: who listened is told. */
static void give_up(struct hs_herald_book *book, struct hs_herald_topic *topic)
{
	struct hs_news news = {
		.kind = HS_NEWS_UNLISTENED,
		.was = HS_NEWS_SHARD,
		.channel = hs_herald_topic_name(topic),
	};

	book->calls->news(book->context, hs_news_create(&news));
	topic->workers = (struct hs_herald_workers){0};
	topic->is_missing = false;
	hs_list_remove(&topic->missing);
	if (is_unused(topic))
		destroy_topic(book, topic, NULL);
}

/* A master that cannot be reached is not waited for. */
static void finish_without_lost(struct hs_herald_book *book)
{
	struct hs_link *link = book->waits.next;

	while (link != &book->waits) {
		struct hs_herald_wait *wait = hs_list_entry(link, struct hs_herald_wait, of_book);

		link = link->next;
		if (!wait->topic || !wait->topic->everywhere || !is_complete(wait->topic))
			continue;
		hs_herald_set(&wait->topic->workers, wait->op->worker, true);
		hs_herald_finish(book, wait->op);
		hs_herald_wait_end(&wait);
	}
}

void hs_herald_topics_tick(struct hs_herald_book *book)
{
	uint32_t lost = 0;

	finish_without_lost(book);

	while (!hs_list_empty(&book->missing)) {
		struct hs_herald_topic *topic =
			hs_list_entry(book->missing.next, struct hs_herald_topic, missing);

		if (book->now_ms - topic->missing_ms < HS_HERALD_FOLLOW_MS_MAX)
			break;
		give_up(book, topic);
		lost++;
	}
	if (lost > 0)
		hs_log(book->options.log, HS_LOG_WARN,
		       "%u shard channels had no server for %d s: their subscribers are told", lost,
		       HS_HERALD_FOLLOW_MS_MAX / 1000);
	if (book->now_ms - book->retried_ms < HS_HERALD_RETRY_MS)
		return;
	book->retried_ms = book->now_ms;
	for (struct hs_link *link = book->lines.next; link != &book->lines; link = link->next) {
		struct hs_herald_line *line = hs_list_entry(link, struct hs_herald_line, link);
		struct hs_link *refused = &line->seats[HS_SEAT_REFUSED];

		while (!hs_list_empty(refused))
			put_seat(hs_list_entry(refused->next, struct hs_herald_seat, link),
				 HS_SEAT_WANTED);
		hs_herald_line_pump(book, line);
	}
}

void hs_herald_topics_deinit(struct hs_herald_book *book)
{
	for (size_t i = 0; i < book->buckets_count; i++) {
		while (book->buckets[i])
			destroy_topic(book, book->buckets[i], NULL);
	}
	hs_mem_free(&book->buckets);
}
