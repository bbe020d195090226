#include "core/news.h"

#include "base/mem.h"

#include <string.h>

static struct hs_bytes keep(char **at, struct hs_bytes bytes)
{
	struct hs_bytes kept = {*at, bytes.len};

	if (bytes.len > 0)
		memcpy(*at, bytes.data, bytes.len);
	*at += bytes.len;
	return kept;
}

size_t hs_news_bytes(const struct hs_news *news)
{
	size_t bytes = sizeof *news + news->pattern.len + news->channel.len + news->payload.len;

	for (uint32_t i = 0; i < news->keys_count; i++)
		bytes += sizeof *news->keys + news->keys[i].len;
	return bytes;
}

struct hs_news *hs_news_create(const struct hs_news *from)
{
	size_t list = from->keys_count * sizeof *from->keys;
	size_t bytes = hs_news_bytes(from);
	struct hs_news *news;
	struct hs_bytes *keys;
	char *at;

	news = hs_mem_alloc(bytes);
	*news = (struct hs_news){.kind = from->kind, .was = from->was};
	atomic_init(&news->refs, 1);
	keys = (struct hs_bytes *)(news + 1);
	at = (char *)keys + list;
	news->pattern = keep(&at, from->pattern);
	news->channel = keep(&at, from->channel);
	news->payload = keep(&at, from->payload);
	for (uint32_t i = 0; i < from->keys_count; i++)
		keys[i] = keep(&at, from->keys[i]);
	news->keys = keys;
	news->keys_count = from->keys_count;
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
