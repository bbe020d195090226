/* Two hash tables over topics and subscriptions; topics and sessions each list their subscriptions. */
#include "push/topics.h"

#include "base/hash.h"
#include "base/mem.h"
#include "push/push.h"

void hs_topics_init(struct hs_topics *topics, uint64_t seed, size_t session_at)
{
	*topics = (struct hs_topics){.seed = seed, .session_at = session_at};
	hs_hash_table_init(&topics->named);
	hs_hash_table_init(&topics->pairs);
	for (int kind = 0; kind < HS_TOPIC_KINDS; kind++)
		hs_list_init(&topics->of_kind[kind]);
}

void hs_topics_deinit(struct hs_topics *topics)
{
	hs_hash_table_deinit(&topics->named);
	hs_hash_table_deinit(&topics->pairs);
}

static uint64_t topic_hash(const struct hs_topics *topics, enum hs_topic_kind kind,
			   struct hs_bytes name)
{
	return hs_hash(name, topics->seed + (uint64_t)kind);
}

static uint64_t pair_hash(const struct hs_topics *topics, const struct hs_topic *topic,
			  const struct hs_session *session)
{
	const void *pair[2] = {topic, session};

	return hs_hash((struct hs_bytes){(const char *)pair, sizeof pair}, topics->seed);
}

struct hs_topic *hs_topic_find(const struct hs_topics *topics, enum hs_topic_kind kind,
			       struct hs_bytes name)
{
	uint64_t hash = topic_hash(topics, kind, name);

	hs_hash_each(struct hs_topic, topic, &topics->named, hash, node) {
		if (topic->kind == kind && hs_bytes_equal(topic->name, name))
			return topic;
	}
	return NULL;
}

struct hs_topic *hs_topic_get(struct hs_topics *topics, enum hs_topic_kind kind,
			      struct hs_bytes name)
{
	struct hs_topic *topic = hs_topic_find(topics, kind, name);

	if (topic)
		return topic;
	topic = hs_mem_zalloc(sizeof *topic + name.len);
	topic->kind = kind;
	if (name.len > 0)
		memcpy(topic + 1, name.data, name.len);
	topic->name = (struct hs_bytes){(const char *)(topic + 1), name.len};
	hs_list_init(&topic->confirmed);
	hs_list_init(&topic->waiting);
	hs_list_append(&topics->of_kind[kind], &topic->same_kind);
	hs_hash_table_add(&topics->named, &topic->node, topic_hash(topics, kind, name));
	topics->name_bytes += name.len;
	return topic;
}

void hs_topic_destroy(struct hs_topics *topics, struct hs_topic **pointer)
{
	struct hs_topic *topic = *pointer;

	hs_check(topic->refs == 0);
	hs_check(topic->engine_call == NULL);
	hs_check(hs_list_empty(&topic->waiting));
	hs_hash_table_remove(&topics->named, &topic->node);
	hs_list_remove(&topic->same_kind);
	topics->name_bytes -= topic->name.len;
	hs_mem_free(&topic->error);
	hs_mem_free(pointer);
}

struct hs_subscription *hs_subscription_find(const struct hs_topics *topics,
					     const struct hs_topic *topic,
					     const struct hs_session *session)
{
	uint64_t hash = pair_hash(topics, topic, session);

	hs_hash_each(struct hs_subscription, pair, &topics->pairs, hash, node) {
		if (pair->topic == topic && pair->session == session)
			return pair;
	}
	return NULL;
}

static struct hs_push_session *state_of(const struct hs_topics *topics,
					const struct hs_session *session)
{
	return hs_stage_session(session, topics->session_at);
}

/* Counts one confirmed subscription of the kind more, or less. */
static void count_confirmed(const struct hs_topics *topics, struct hs_session *session,
			    enum hs_topic_kind kind, bool more)
{
	uint32_t *confirmed = state_of(topics, session)->confirmed_counts;

	confirmed[kind] += more ? 1 : UINT32_MAX;
	session->subscribed = confirmed[HS_TOPIC_CHANNEL] + confirmed[HS_TOPIC_PATTERN] +
				      confirmed[HS_TOPIC_SHARD] >
			      0;
}

struct hs_subscription *hs_subscription_add(struct hs_topics *topics, struct hs_topic *topic,
					    struct hs_session *session)
{
	struct hs_subscription *pair = hs_mem_zalloc(sizeof *pair);

	pair->topic = topic;
	pair->session = session;
	hs_list_init(&pair->of_topic);
	hs_list_append(&state_of(topics, session)->subscriptions[topic->kind], &pair->of_session);
	session->subscriptions++;
	topic->refs++;
	hs_hash_table_add(&topics->pairs, &pair->node, pair_hash(topics, topic, session));
	return pair;
}

void hs_subscription_begin(const struct hs_topics *topics, struct hs_subscription *pair)
{
	pair->confirmed = true;
	hs_list_append(&pair->topic->confirmed, &pair->of_topic);
	pair->topic->confirmed_count++;
	count_confirmed(topics, pair->session, pair->topic->kind, true);
}

void hs_subscription_end(struct hs_topics *topics, struct hs_subscription **pointer)
{
	struct hs_subscription *pair = *pointer;

	hs_hash_table_remove(&topics->pairs, &pair->node);
	if (pair->confirmed) {
		pair->topic->confirmed_count--;
		count_confirmed(topics, pair->session, pair->topic->kind, false);
	}
	pair->session->subscriptions--;
	pair->topic->refs--;
	hs_list_remove(&pair->of_topic);
	hs_list_remove(&pair->of_session);
	hs_mem_free(pointer);
}
