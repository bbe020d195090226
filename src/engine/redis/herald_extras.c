/* Key events: what a server publishes by itself on __keyspace@0__:key and __keyevent@0__:event when a
 * client has switched that on (notify-keyspace-events).
 *
 * Every node of a Cluster passes on what clients publish, so one node, home, tells everything. Key
 * events are not passed on: a master tells those of its own keys alone. So a topic that is one, or a
 * pattern that may match some, has a seat at every other master as well, an extra. From an extra only
 * key events are heard; the rest comes from home, once.
 *
 * SUBSCRIBE is confirmed when home and all masters that can be reached have confirmed it. A master that
 * cannot be reached is asked when it is back. */
#include "engine/redis/herald_internal.h"

#include "base/mem.h"

static struct hs_herald_seat *extra_at(const struct hs_herald_topic *topic,
				       const struct hs_herald_line *line)
{
	for (struct hs_link *link = topic->extras.next; link != &topic->extras; link = link->next) {
		struct hs_herald_seat *seat = hs_list_entry(link, struct hs_herald_seat, of_topic);

		if (seat->line == line)
			return seat;
	}
	return NULL;
}

static void drop(struct hs_herald_book *book, struct hs_herald_seat *seat)
{
	hs_herald_leave_seat(book, seat, NULL);
	hs_list_remove(&seat->of_topic);
	hs_mem_release(seat);
}

void hs_herald_drop_extra(struct hs_herald_book *book, const struct hs_herald_topic *topic,
			  const struct hs_herald_line *line)
{
	struct hs_herald_seat *seat = extra_at(topic, line);

	if (seat)
		drop(book, seat);
}

void hs_herald_drop_extras(struct hs_herald_book *book, struct hs_herald_topic *topic)
{
	while (!hs_list_empty(&topic->extras))
		drop(book, hs_list_entry(topic->extras.next, struct hs_herald_seat, of_topic));
}

static bool is_seated(const struct hs_herald_topic *topic, const struct hs_herald_line *line)
{
	return topic->seats[0].line == line || topic->seats[1].line == line;
}

void hs_herald_settle_extras(struct hs_herald_book *book, struct hs_herald_topic *topic)
{
	struct hs_link *link = topic->extras.next;

	if (!topic->everywhere || !book->routes)
		return;
	while (link != &topic->extras) {
		struct hs_herald_seat *seat = hs_list_entry(link, struct hs_herald_seat, of_topic);

		link = link->next;
		if (!seat->line->listed || !seat->line->master || is_seated(topic, seat->line))
			drop(book, seat);
	}
	for (uint16_t node = 0; node < book->routes->nodes_count; node++) {
		struct hs_herald_line *line;
		struct hs_herald_seat *seat;

		if (!book->masters[node])
			continue;
		if (!book->at_node[node])
			book->at_node[node] = hs_herald_line_get(book, node, false);
		line = book->at_node[node];
		if (is_seated(topic, line) || extra_at(topic, line))
			continue;
		seat = hs_mem_zalloc(sizeof *seat);
		seat->topic = topic;
		seat->extra = true;
		hs_list_init(&seat->link);
		hs_list_append(&topic->extras, &seat->of_topic);
		hs_herald_take_seat(book, seat, line);
	}
}

bool hs_herald_extras_on(const struct hs_herald_topic *topic)
{
	for (struct hs_link *link = topic->extras.next; link != &topic->extras; link = link->next) {
		const struct hs_herald_seat *seat =
			hs_list_entry(link, struct hs_herald_seat, of_topic);

		if (seat->state != HS_SEAT_ON && seat->line->failures == 0)
			return false;
	}
	return true;
}

bool hs_herald_hears_extra(const struct hs_herald_topic *topic, const struct hs_herald_line *line,
			   struct hs_bytes channel)
{
	const struct hs_herald_seat *seat =
		topic->everywhere && hs_news_is_key_event(channel) ? extra_at(topic, line) : NULL;

	return seat && seat->state == HS_SEAT_ON;
}
