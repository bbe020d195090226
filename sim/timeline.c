#include "sim/timeline.h"

#include "base/check.h"
#include "base/mem.h"
#include "sim/history.h"

void hs_sim_timelines_init(struct hs_sim_timelines *timelines, uint32_t keys_count)
{
	const struct hs_sim_value_span nothing = {.value = HS_SIM_NOTHING, .from_us = INT64_MIN};

	timelines->keys = hs_mem_zalloc(keys_count * sizeof *timelines->keys);
	timelines->keys_count = keys_count;
	for (uint32_t key = 0; key < keys_count; key++)
		hs_sim_timelines_note(timelines, key, &nothing);
}

void hs_sim_timelines_deinit(struct hs_sim_timelines *timelines)
{
	for (uint32_t key = 0; key < timelines->keys_count; key++) {
		hs_mem_free(&timelines->keys[key].spans);
		hs_mem_free(&timelines->keys[key].asked_us);
	}
	hs_mem_free(&timelines->keys);
	timelines->keys_count = 0;
}

void hs_sim_timelines_note(struct hs_sim_timelines *timelines, uint32_t number,
			   const struct hs_sim_value_span *span)
{
	struct hs_sim_key_timeline *key = &timelines->keys[number];

	hs_check(number < timelines->keys_count);
	key->hidden = key->hidden || span->hidden;
	if (key->count > 0 && key->spans[key->count - 1].value == span->value)
		return;
	if (key->count == key->cap) {
		key->cap = key->cap ? 2 * key->cap : 16;
		key->spans = hs_mem_realloc(key->spans, key->cap * sizeof *key->spans);
	}
	key->spans[key->count++] = *span;
}

void hs_sim_timelines_reveal(struct hs_sim_timelines *timelines, uint32_t number, uint64_t *step,
			     int64_t now_us)
{
	struct hs_sim_key_timeline *key = &timelines->keys[number];
	size_t at = key->count;

	key->hidden = false;
	while (at > 0 && key->spans[at - 1].hidden)
		at--;
	for (; at < key->count; at++) {
		key->spans[at].hidden = false;
		key->spans[at].from = ++*step;
		key->spans[at].from_us = now_us;
	}
}

void hs_sim_timelines_server_read(struct hs_sim_timelines *timelines, uint32_t number,
				  int64_t now_us)
{
	struct hs_sim_key_timeline *key = &timelines->keys[number];

	hs_check(number < timelines->keys_count);
	if (key->asked_count == key->asked_cap) {
		key->asked_cap = key->asked_cap ? 2 * key->asked_cap : 16;
		key->asked_us =
			hs_mem_realloc(key->asked_us, key->asked_cap * sizeof *key->asked_us);
	}
	key->asked_us[key->asked_count++] = now_us;
}

uint64_t hs_sim_value_span_end(const struct hs_sim_key_timeline *timelines, size_t span,
			       int64_t *end_us)
{
	if (span + 1 == timelines->count) {
		*end_us = INT64_MAX;
		return UINT64_MAX;
	}
	*end_us = timelines->spans[span + 1].from_us;
	return timelines->spans[span + 1].from;
}
