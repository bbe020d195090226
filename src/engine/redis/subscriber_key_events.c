/* Key events: messages that a server publishes by itself on __keyspace@0__:key and __keyevent@0__:event if
 * notify-keyspace-events is set.
 *
 * Every node of a Cluster forwards the messages that clients publish, so the pub/sub node delivers all of these
 * messages. Key events are not forwarded: a master publishes the events of its own keys to its own subscribers. So
 * a topic that key events may match is subscribed at every other master as well. From those masters only key
 * events are taken; all other messages come from the pub/sub node.
 *
 * A SUBSCRIBE op is done when the pub/sub node and all reachable masters have confirmed. An unreachable master is
 * subscribed when it is back. */
#include "engine/redis/subscriber_internal.h"

#include "base/mem.h"

static struct hs_node_subscription *subscription_at(const struct hs_subscriber_topic *topic,
						    const struct hs_subscriber_conn *conn)
{
	hs_list_each(struct hs_node_subscription, subscription, &topic->key_event_subscriptions,
		     of_topic) {
		if (subscription->conn == conn)
			return subscription;
	}
	return NULL;
}

static void drop(struct hs_subscriber *sub, struct hs_node_subscription *subscription)
{
	hs_node_subscription_end(sub, subscription, NULL);
	hs_list_remove(&subscription->of_topic);
	hs_mem_release(subscription);
}

void hs_subscriber_drop_key_events_at(struct hs_subscriber *sub,
				      const struct hs_subscriber_topic *topic,
				      const struct hs_subscriber_conn *conn)
{
	struct hs_node_subscription *subscription = subscription_at(topic, conn);

	if (subscription)
		drop(sub, subscription);
}

void hs_subscriber_drop_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	hs_list_each_safe(struct hs_node_subscription, subscription,
			  &topic->key_event_subscriptions, of_topic)
		drop(sub, subscription);
}

static bool is_subscribed_at(const struct hs_subscriber_topic *topic,
			     const struct hs_subscriber_conn *conn)
{
	return topic->subscriptions[0].conn == conn || topic->subscriptions[1].conn == conn;
}

void hs_subscriber_assign_key_events(struct hs_subscriber *sub, struct hs_subscriber_topic *topic)
{
	if (!topic->key_events || !sub->routes)
		return;
	hs_list_each_safe(struct hs_node_subscription, subscription,
			  &topic->key_event_subscriptions, of_topic) {
		if (!subscription->conn->listed || is_subscribed_at(topic, subscription->conn))
			drop(sub, subscription);
	}
	for (uint16_t node = 0; node < sub->routes->nodes_count; node++) {
		struct hs_subscriber_conn *conn = hs_subscriber_conn_at(sub, node);
		struct hs_node_subscription *subscription;

		if (is_subscribed_at(topic, conn) || subscription_at(topic, conn))
			continue;
		subscription = hs_mem_zalloc(sizeof *subscription);
		subscription->topic = topic;
		subscription->for_key_events = true;
		hs_list_init(&subscription->link);
		hs_list_append(&topic->key_event_subscriptions, &subscription->of_topic);
		hs_node_subscription_begin(sub, subscription, conn);
	}
}

bool hs_subscriber_key_events_confirmed(const struct hs_subscriber_topic *topic)
{
	hs_list_each(const struct hs_node_subscription, subscription,
		     &topic->key_event_subscriptions, of_topic) {
		if (subscription->state != HS_SUBSCRIPTION_CONFIRMED &&
		    (hs_subscriber_is_up(subscription->conn) ||
		     subscription->conn->upstream.backoff.failures == 0))
			return false;
	}
	return true;
}

bool hs_subscriber_takes_key_event(const struct hs_subscriber_topic *topic,
				   const struct hs_subscriber_conn *conn, struct hs_bytes channel)
{
	const struct hs_node_subscription *subscription =
		topic->key_events && hs_event_is_key_event(channel) ? subscription_at(topic, conn)
								    : NULL;

	return subscription && subscription->state == HS_SUBSCRIPTION_CONFIRMED;
}
