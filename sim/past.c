#include "sim/past.h"

#include "base/check.h"
#include "base/mem.h"
#include "sim/history.h"

void hs_sim_past_init(struct hs_sim_past *past, uint32_t keys_count)
{
	const struct hs_sim_version nothing = {.value = HS_SIM_NOTHING, .from_us = INT64_MIN};

	past->keys = hs_mem_zalloc(keys_count * sizeof *past->keys);
	past->keys_count = keys_count;
	for (uint32_t key = 0; key < keys_count; key++)
		hs_sim_past_note(past, key, &nothing);
}

void hs_sim_past_deinit(struct hs_sim_past *past)
{
	for (uint32_t key = 0; key < past->keys_count; key++) {
		hs_mem_free(&past->keys[key].versions);
		hs_mem_free(&past->keys[key].asked_us);
	}
	hs_mem_free(&past->keys);
	past->keys_count = 0;
}

void hs_sim_past_note(struct hs_sim_past *past, uint32_t number,
		      const struct hs_sim_version *version)
{
	struct hs_sim_key_past *key = &past->keys[number];

	hs_check(number < past->keys_count);
	key->hidden = key->hidden || version->hidden;
	if (key->count > 0 && key->versions[key->count - 1].value == version->value)
		return;
	if (key->count == key->cap) {
		key->cap = key->cap ? 2 * key->cap : 16;
		key->versions = hs_mem_realloc(key->versions, key->cap * sizeof *key->versions);
	}
	key->versions[key->count++] = *version;
}

void hs_sim_past_show(struct hs_sim_past *past, uint32_t number, uint64_t *step, int64_t now_us)
{
	struct hs_sim_key_past *key = &past->keys[number];
	size_t at = key->count;

	key->hidden = false;
	while (at > 0 && key->versions[at - 1].hidden)
		at--;
	for (; at < key->count; at++) {
		key->versions[at].hidden = false;
		key->versions[at].from = ++*step;
		key->versions[at].from_us = now_us;
	}
}

void hs_sim_past_asked(struct hs_sim_past *past, uint32_t number, int64_t now_us)
{
	struct hs_sim_key_past *key = &past->keys[number];

	hs_check(number < past->keys_count);
	if (key->asked_count == key->asked_cap) {
		key->asked_cap = key->asked_cap ? 2 * key->asked_cap : 16;
		key->asked_us =
			hs_mem_realloc(key->asked_us, key->asked_cap * sizeof *key->asked_us);
	}
	key->asked_us[key->asked_count++] = now_us;
}

uint64_t hs_sim_version_end(const struct hs_sim_key_past *past, size_t version, int64_t *end_us)
{
	if (version + 1 == past->count) {
		*end_us = INT64_MAX;
		return UINT64_MAX;
	}
	*end_us = past->versions[version + 1].from_us;
	return past->versions[version + 1].from;
}
