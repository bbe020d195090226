#include "core/event.h"

#include "base/mem.h"
#include "keyspace/changed.h"

#include <string.h>

size_t hs_event_bytes(const struct hs_event *event)
{
	size_t bytes = sizeof *event + event->pattern.len + event->channel.len + event->payload.len;

	for (uint32_t i = 0; i < event->keys_count; i++)
		bytes += sizeof *event->keys + event->keys[i].len;
	if (event->by)
		bytes += event->keys_count * sizeof *event->by;
	return bytes;
}

struct hs_event *hs_event_create(const struct hs_event *from)
{
	size_t list = from->keys_count * sizeof *from->keys;
	size_t by_list = from->by ? from->keys_count * sizeof *from->by : 0;
	size_t bytes = hs_event_bytes(from);
	struct hs_event *event;
	struct hs_bytes *keys;
	char *at;

	event = hs_mem_alloc(bytes);
	*event = (struct hs_event){.kind = from->kind,
				   .unsubscribed_kind = from->unsubscribed_kind,
				   .stage = from->stage};
	atomic_init(&event->refs, 1);
	keys = (struct hs_bytes *)(event + 1);
	at = (char *)keys + list;
	if (by_list > 0) {
		memcpy(at, from->by, by_list);
		event->by = (const uint64_t *)at;
		at += by_list;
	}
	event->pattern = hs_bytes_place(&at, from->pattern);
	event->channel = hs_bytes_place(&at, from->channel);
	event->payload = hs_bytes_place(&at, from->payload);
	for (uint32_t i = 0; i < from->keys_count; i++)
		keys[i] = hs_bytes_place(&at, from->keys[i]);
	event->keys = keys;
	event->keys_count = from->keys_count;
	return event;
}

struct hs_event *hs_event_create_changed(const struct hs_changed *changed)
{
	struct hs_bytes *keys = hs_mem_alloc(changed->count * sizeof *keys);
	uint64_t *by = hs_mem_alloc(changed->count * sizeof *by);
	struct hs_event *event;

	for (uint32_t i = 0; i < changed->count; i++) {
		keys[i] = hs_changed_name(changed, i);
		by[i] = changed->keys[i].by;
	}
	event = hs_event_create(&(struct hs_event){
		.kind = HS_EVENT_CHANGED,
		.keys = keys,
		.by = by,
		.keys_count = changed->count,
	});
	hs_mem_release(keys);
	hs_mem_release(by);
	return event;
}

void hs_event_ref(struct hs_event *event, uint32_t more)
{
	atomic_fetch_add_explicit(&event->refs, more, memory_order_relaxed);
}

void hs_event_unref(struct hs_event **pointer)
{
	struct hs_event *event = *pointer;

	*pointer = NULL;
	if (event && atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) == 1)
		hs_mem_release(event);
}

static const struct hs_bytes key_events[] = {HS_LIT("__keyspace@"), HS_LIT("__keyevent@")};

bool hs_event_is_key_event(struct hs_bytes channel)
{
	for (size_t i = 0; i < sizeof key_events / sizeof *key_events; i++) {
		if (hs_bytes_begins(channel, key_events[i]))
			return true;
	}
	return false;
}

bool hs_event_may_be_key_event(struct hs_bytes pattern)
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
