#include "push/topics.h"

#include "base/hash.h"
#include "base/mem.h"
#include "push/push.h"

enum { CELLS_MIN = 64 };

void hs_topics_init(struct hs_topics *topics, uint64_t seed, size_t session_at)
{
	*topics = (struct hs_topics){.seed = seed, .session_at = session_at};
	for (int kind = 0; kind < HS_TOPIC_KINDS; kind++)
		hs_list_init(&topics->of_kind[kind]);
}

void hs_topics_deinit(struct hs_topics *topics)
{
	hs_check(topics->count == 0);
	hs_check(topics->pairs_count == 0);
	hs_mem_free(&topics->cells);
	hs_mem_free(&topics->pairs);
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

static void grow_topics(struct hs_topics *topics)
{
	size_t count = topics->cells_count ? topics->cells_count * 2 : CELLS_MIN;
	struct hs_topic **cells = hs_mem_zalloc(count * sizeof(struct hs_topic *));

	for (size_t i = 0; i < topics->cells_count; i++) {
		struct hs_topic *topic, *next;

		for (topic = topics->cells[i]; topic; topic = next) {
			struct hs_topic **cell = &cells[topic->hash & (count - 1)];

			next = topic->next;
			topic->next = *cell;
			*cell = topic;
		}
	}
	hs_mem_free(&topics->cells);
	topics->cells = cells;
	topics->cells_count = count;
}

static void grow_pairs(struct hs_topics *topics)
{
	size_t count = topics->pairs_cells ? topics->pairs_cells * 2 : CELLS_MIN;
	struct hs_subscription **pairs = hs_mem_zalloc(count * sizeof(struct hs_subscription *));

	for (size_t i = 0; i < topics->pairs_cells; i++) {
		struct hs_subscription *pair, *next;

		for (pair = topics->pairs[i]; pair; pair = next) {
			uint64_t hash = pair_hash(topics, pair->topic, pair->session);
			struct hs_subscription **cell = &pairs[hash & (count - 1)];

			next = pair->next;
			pair->next = *cell;
			*cell = pair;
		}
	}
	hs_mem_free(&topics->pairs);
	topics->pairs = pairs;
	topics->pairs_cells = count;
}

struct hs_topic *hs_topic_find(const struct hs_topics *topics, enum hs_topic_kind kind,
			       struct hs_bytes name)
{
	uint64_t hash = topic_hash(topics, kind, name);
	struct hs_topic *topic;

	if (topics->count == 0)
		return NULL;
	for (topic = topics->cells[hash & (topics->cells_count - 1)]; topic; topic = topic->next) {
		if (topic->hash == hash && topic->kind == kind && hs_bytes_equal(topic->name, name))
			return topic;
	}
	return NULL;
}

struct hs_topic *hs_topic_get(struct hs_topics *topics, enum hs_topic_kind kind,
			      struct hs_bytes name)
{
	struct hs_topic *topic = hs_topic_find(topics, kind, name);
	struct hs_topic **cell;

	if (topic)
		return topic;
	if (topics->count == topics->cells_count)
		grow_topics(topics);
	topic = hs_mem_zalloc(sizeof *topic + name.len);
	topic->kind = kind;
	topic->hash = topic_hash(topics, kind, name);
	if (name.len > 0)
		memcpy(topic + 1, name.data, name.len);
	topic->name = (struct hs_bytes){(const char *)(topic + 1), name.len};
	hs_list_init(&topic->heard);
	hs_list_init(&topic->waiting);
	hs_list_append(&topics->of_kind[kind], &topic->alike);
	cell = &topics->cells[topic->hash & (topics->cells_count - 1)];
	topic->next = *cell;
	*cell = topic;
	topics->count++;
	topics->name_bytes += name.len;
	return topic;
}

void hs_topic_destroy(struct hs_topics *topics, struct hs_topic **pointer)
{
	struct hs_topic *topic = *pointer;
	struct hs_topic **at = &topics->cells[topic->hash & (topics->cells_count - 1)];

	hs_check(topic->holders == 0);
	hs_check(topic->listen == NULL);
	hs_check(hs_list_empty(&topic->waiting));
	while (*at != topic)
		at = &(*at)->next;
	*at = topic->next;
	hs_list_remove(&topic->alike);
	topics->count--;
	topics->name_bytes -= topic->name.len;
	hs_mem_free(&topic->error);
	hs_mem_free(pointer);
}

struct hs_subscription *hs_subscription_find(const struct hs_topics *topics,
					     const struct hs_topic *topic,
					     const struct hs_session *session)
{
	struct hs_subscription *pair;

	if (topics->pairs_count == 0)
		return NULL;
	pair = topics->pairs[pair_hash(topics, topic, session) & (topics->pairs_cells - 1)];
	while (pair && (pair->topic != topic || pair->session != session))
		pair = pair->next;
	return pair;
}

static struct hs_push_session *state_of(const struct hs_topics *topics,
					const struct hs_session *session)
{
	return hs_stage_session(session, topics->session_at);
}

/* The client hears one subscription of the kind more, or less. */
static void count_heard(const struct hs_topics *topics, struct hs_session *session,
			enum hs_topic_kind kind, bool more)
{
	uint32_t *heard = state_of(topics, session)->listens_heard;

	heard[kind] += more ? 1 : UINT32_MAX;
	session->subscribed =
		heard[HS_TOPIC_CHANNEL] + heard[HS_TOPIC_PATTERN] + heard[HS_TOPIC_SHARD] > 0;
}

struct hs_subscription *hs_subscription_add(struct hs_topics *topics, struct hs_topic *topic,
					    struct hs_session *session)
{
	struct hs_subscription *pair = hs_mem_zalloc(sizeof *pair);
	struct hs_subscription **cell;

	if (topics->pairs_count == topics->pairs_cells)
		grow_pairs(topics);
	pair->topic = topic;
	pair->session = session;
	hs_list_init(&pair->of_topic);
	hs_list_append(&state_of(topics, session)->listens[topic->kind], &pair->of_session);
	session->subscriptions++;
	topic->holders++;
	cell = &topics->pairs[pair_hash(topics, topic, session) & (topics->pairs_cells - 1)];
	pair->next = *cell;
	*cell = pair;
	topics->pairs_count++;
	return pair;
}

void hs_subscription_begin(const struct hs_topics *topics, struct hs_subscription *pair)
{
	pair->heard = true;
	hs_list_append(&pair->topic->heard, &pair->of_topic);
	pair->topic->hearers++;
	count_heard(topics, pair->session, pair->topic->kind, true);
}

void hs_subscription_end(struct hs_topics *topics, struct hs_subscription **pointer)
{
	struct hs_subscription *pair = *pointer;
	uint64_t hash = pair_hash(topics, pair->topic, pair->session);
	struct hs_subscription **at = &topics->pairs[hash & (topics->pairs_cells - 1)];

	while (*at != pair)
		at = &(*at)->next;
	*at = pair->next;
	topics->pairs_count--;
	if (pair->heard) {
		pair->topic->hearers--;
		count_heard(topics, pair->session, pair->topic->kind, false);
	}
	pair->session->subscriptions--;
	pair->topic->holders--;
	hs_list_remove(&pair->of_topic);
	hs_list_remove(&pair->of_session);
	hs_mem_free(pointer);
}
