/* Key events: what a server publishes by itself on __keyspace@0__:key and __keyevent@0__:event when a
 * client has switched that on (notify-keyspace-events).
 *
 * Every node of a Cluster passes on what clients publish, so home alone delivers all of that. Key events
 * are not passed on: a master publishes those of its own keys to its own subscribers. So a topic to which
 * key events may be published has a place at every other master as well. From there only key events are
 * taken, because the other messages come from home.
 *
 * LISTEN is done when home and all masters that can be reached have confirmed. A master that cannot be
 * reached is subscribed when it is back. */
#include "engine/redis/subscriber_internal.h"

#include "base/mem.h"

static struct hs_subscriber_place *place_at(const struct hs_subscriber_topic *topic,
					    const struct hs_subscriber_conn *conn)
{
	hs_list_each(struct hs_subscriber_place, place, &topic->key_event_places, of_topic) {
		if (place->conn == conn)
			return place;
	}
	return NULL;
}

static void drop(struct hs_subscriber *sub, struct hs_subscriber_place *place)
{
	hs_subscriber_leave(sub, place, NULL);
	hs_list_remove(&place->of_topic);
	hs_mem_release(place);
}

void hs_subscriber_drop_key_events_at(struct hs_subscriber *sub,
				      const struct hs_subscriber_topic *topic,
				      const struct hs_subscriber_conn *conn)
{
	struct hs_subscriber_place *place = place_at(topic, conn);

	if (place)
		drop(sub, place);
}

void hs_subscriber_drop_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	hs_list_each_safe(struct hs_subscriber_place, place, &topic->key_event_places, of_topic)
		drop(sub, place);
}

static bool is_heard_at(const struct hs_subscriber_topic *topic,
			const struct hs_subscriber_conn *conn)
{
	return topic->places[0].conn == conn || topic->places[1].conn == conn;
}

void hs_subscriber_settle_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	if (!topic->key_events || !sub->routes)
		return;
	hs_list_each_safe(struct hs_subscriber_place, place, &topic->key_event_places, of_topic) {
		if (!place->conn->listed || is_heard_at(topic, place->conn))
			drop(sub, place);
	}
	for (uint16_t node = 0; node < sub->routes->nodes_count; node++) {
		struct hs_subscriber_conn *conn = hs_subscriber_conn_at(sub, node);
		struct hs_subscriber_place *place;

		if (is_heard_at(topic, conn) || place_at(topic, conn))
			continue;
		place = hs_mem_zalloc(sizeof *place);
		place->topic = topic;
		place->for_key_events = true;
		hs_list_init(&place->link);
		hs_list_append(&topic->key_event_places, &place->of_topic);
		hs_subscriber_join(sub, place, conn);
	}
}

bool hs_subscriber_key_events_confirmed(const struct hs_subscriber_topic *topic)
{
	hs_list_each(const struct hs_subscriber_place, place, &topic->key_event_places, of_topic) {
		if (place->state != HS_SUBSCRIBER_CONFIRMED &&
		    (hs_subscriber_is_up(place->conn) ||
		     place->conn->upstream.backoff.failures == 0))
			return false;
	}
	return true;
}

bool hs_subscriber_takes_key_event(const struct hs_subscriber_topic *topic,
				   const struct hs_subscriber_conn *conn, struct hs_bytes channel)
{
	const struct hs_subscriber_place *place =
		topic->key_events && hs_event_is_key_event(channel) ? place_at(topic, conn) : NULL;

	return place && place->state == HS_SUBSCRIBER_CONFIRMED;
}
