#include "core/news.h"

#include "base/mem.h"
#include "keyspace/changed.h"

#include <string.h>

size_t hs_news_bytes(const struct hs_news *news)
{
	size_t bytes = sizeof *news + news->pattern.len + news->channel.len + news->payload.len;

	for (uint32_t i = 0; i < news->keys_count; i++)
		bytes += sizeof *news->keys + news->keys[i].len;
	if (news->by)
		bytes += news->keys_count * sizeof *news->by;
	return bytes;
}

struct hs_news *hs_news_create(const struct hs_news *from)
{
	size_t list = from->keys_count * sizeof *from->keys;
	size_t by_list = from->by ? from->keys_count * sizeof *from->by : 0;
	size_t bytes = hs_news_bytes(from);
	struct hs_news *news;
	struct hs_bytes *keys;
	char *at;

	news = hs_mem_alloc(bytes);
	*news = (struct hs_news){.kind = from->kind, .was = from->was, .stage = from->stage};
	atomic_init(&news->refs, 1);
	keys = (struct hs_bytes *)(news + 1);
	at = (char *)keys + list;
	if (by_list > 0) {
		memcpy(at, from->by, by_list);
		news->by = (const uint64_t *)at;
		at += by_list;
	}
	news->pattern = hs_bytes_place(&at, from->pattern);
	news->channel = hs_bytes_place(&at, from->channel);
	news->payload = hs_bytes_place(&at, from->payload);
	for (uint32_t i = 0; i < from->keys_count; i++)
		keys[i] = hs_bytes_place(&at, from->keys[i]);
	news->keys = keys;
	news->keys_count = from->keys_count;
	return news;
}

struct hs_news *hs_news_create_changed(const struct hs_changed *changed)
{
	struct hs_bytes *keys = hs_mem_alloc(changed->count * sizeof *keys);
	uint64_t *by = hs_mem_alloc(changed->count * sizeof *by);
	struct hs_news *news;

	for (uint32_t i = 0; i < changed->count; i++) {
		keys[i] = hs_changed_name(changed, i);
		by[i] = changed->keys[i].by;
	}
	news = hs_news_create(&(struct hs_news){
		.kind = HS_NEWS_CHANGED,
		.keys = keys,
		.by = by,
		.keys_count = changed->count,
	});
	hs_mem_release(keys);
	hs_mem_release(by);
	return news;
}

void hs_news_ref(struct hs_news *news, uint32_t more)
{
	atomic_fetch_add_explicit(&news->refs, more, memory_order_relaxed);
}

void hs_news_unref(struct hs_news **pointer)
{
	struct hs_news *news = *pointer;

	*pointer = NULL;
	if (news && atomic_fetch_sub_explicit(&news->refs, 1, memory_order_acq_rel) == 1)
		hs_mem_release(news);
}

static const struct hs_bytes key_events[] = {HS_LIT("__keyspace@"), HS_LIT("__keyevent@")};

bool hs_news_is_key_event(struct hs_bytes channel)
{
	for (size_t i = 0; i < sizeof key_events / sizeof *key_events; i++) {
		if (hs_bytes_begins(channel, key_events[i]))
			return true;
	}
	return false;
}

bool hs_news_may_be_key_event(struct hs_bytes pattern)
{
	size_t literal = 0;

	while (literal < pattern.len && !strchr("*?[\\", pattern.data[literal]))
		literal++;
	for (size_t i = 0; i < sizeof key_events / sizeof *key_events; i++) {
		size_t both = literal < key_events[i].len ? literal : key_events[i].len;

		if ((both == 0 || memcmp(pattern.data, key_events[i].data, both) == 0) &&
		    (literal < pattern.len || literal >= key_events[i].len))
			return true;
	}
	return false;
}
