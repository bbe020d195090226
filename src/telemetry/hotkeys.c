/* One HOTKEYS session. Readings turn each worker's totals into differences (tally.h), and add them up by key.
 * When the table of keys is full, each new key replaces one of those with the smallest weight, even if it is
 * lighter itself. */
#include "telemetry/hotkeys.h"

#include "base/err.h"
#include "base/mem.h"
#include "telemetry/tally.h"

#include <stdlib.h>
#include <string.h>

struct place {
	uint64_t id;
	size_t at;
};

struct candidate {
	double weight;
	size_t at;
};

/* State of a session. */
struct session {
	struct hs_hotkeys_options options;
	struct hs_hotkeys_totals totals;
	struct hs_hotkeys_cpu cpu_before;
	uint64_t before[HS_HOTKEYS_METRICS]; /* of all partitions, at START */
	uint64_t started_us, read_us;
	uint64_t keys_sums[HS_HOTKEYS_METRICS];	 /* of all keys, replaced ones included */
	uint64_t slots_sums[HS_HOTKEYS_METRICS]; /* of the chosen slots */
	size_t count;
	struct place places[HS_HOTKEYS_KEYS]; /* index in `keys`, sorted by id */
	struct hs_hotkeys_key keys[HS_HOTKEYS_KEYS];
	struct candidate candidates[HS_HOTKEYS_KEYS]; /* keys to replace, lightest first */
	struct hs_heat_row rows[HS_TALLY_ROWS];	      /* one reading */
	struct hs_tally tallies[]; /* per worker: keys; then, if slots are chosen, slots */
};

struct hs_hotkeys {
	struct hs_heat *const *heats;
	size_t heats_count;
	uint16_t partitions;
	bool active;
	struct session *session; /* NULL: nothing to show */
};

struct hs_hotkeys *hs_hotkeys_create(struct hs_heat *const *heats, size_t heats_count,
				     uint16_t partitions)
{
	struct hs_hotkeys *hotkeys = hs_mem_zalloc(sizeof *hotkeys);

	hotkeys->heats = heats;
	hotkeys->heats_count = heats_count;
	hotkeys->partitions = partitions;
	return hotkeys;
}

void hs_hotkeys_destroy(struct hs_hotkeys **hotkeys)
{
	if (*hotkeys)
		hs_mem_free(&(*hotkeys)->session);
	hs_mem_free(hotkeys);
}

/* ---- reading ---- */

static void read_partitions(const struct hs_hotkeys *hotkeys, uint64_t sums[HS_HOTKEYS_METRICS])
{
	struct hs_heat_partition sum = {0};

	for (size_t i = 0; i < hotkeys->heats_count; i++) {
		for (uint16_t id = 0; id < hotkeys->partitions; id++)
			hs_heat_read_partition(hotkeys->heats[i], id, &sum);
	}
	sums[HS_HOTKEYS_CPU] = sum.time_ns;
	sums[HS_HOTKEYS_NET] = sum.bytes;
}

/* Reads each worker by itself: its totals grow until they restart, and a restart is visible. In a sum over
 * workers the growth of the others would hide it. */
static size_t read_rows(const struct hs_hotkeys *hotkeys, size_t worker, enum hs_heat_what what,
			uint64_t now_us)
{
	struct hs_heat_query query = {.what = what, .by = HS_HEAT_BY_OPS, .window = HS_HEAT_LONG};

	return hs_heat_top(&hotkeys->heats[worker], 1, &query, now_us, hotkeys->session->rows,
			   HS_TALLY_ROWS);
}

static int by_id(const void *a, const void *b)
{
	uint64_t x = ((const struct place *)a)->id, y = ((const struct place *)b)->id;

	return (x > y) - (x < y);
}

/* The larger of the key's shares of time and of bytes over all keys. */
static double weight(const struct session *session, const struct hs_hotkeys_key *key)
{
	double most = 0;

	for (int i = 0; i < HS_HOTKEYS_METRICS; i++) {
		double share = session->keys_sums[i]
				       ? (double)key->sums[i] / (double)session->keys_sums[i]
				       : 0;

		most = share > most ? share : most;
	}
	return most;
}

static int by_weight(const void *a, const void *b)
{
	double x = ((const struct candidate *)a)->weight, y = ((const struct candidate *)b)->weight;

	return (x > y) - (x < y);
}

static void put_key(struct hs_hotkeys_key *key, const struct hs_heat_row *row)
{
	*key = (struct hs_hotkeys_key){
		.id = row->id,
		.public_id = row->public_id,
		.name_len = row->name_len,
		.full_len = row->full_len,
		.slot = row->slot,
		.partition = row->partition,
		.sums = {[HS_HOTKEYS_CPU] = row->total_ns, [HS_HOTKEYS_NET] = row->total_bytes},
	};
	memcpy(key->name, row->name, row->name_len);
}

/* When the table is full, each new key replaces one of the keys with the smallest weight. */
static void add_new(struct session *session, const uint16_t *new_rows, size_t new_count)
{
	struct candidate *candidates = session->candidates;
	size_t lights_count = 0, next = 0;

	if (session->count + new_count > HS_HOTKEYS_KEYS) {
		for (; lights_count < session->count; lights_count++)
			candidates[lights_count] = (struct candidate){
				weight(session, &session->keys[lights_count]), lights_count};
		qsort(candidates, lights_count, sizeof *candidates, by_weight);
	}
	for (size_t i = 0; i < new_count; i++) {
		size_t at =
			session->count < HS_HOTKEYS_KEYS ? session->count++ : candidates[next++].at;

		put_key(&session->keys[at], &session->rows[new_rows[i]]);
	}
	for (size_t i = 0; i < session->count; i++)
		session->places[i] = (struct place){session->keys[i].id, i};
	qsort(session->places, session->count, sizeof *session->places, by_id);
}

_Static_assert(HS_HOTKEYS_KEYS >= 2 * HS_TALLY_ROWS, "more to give way than can be new");

/* Adds known keys first, while `places` matches `keys`. */
static void add_keys(struct session *session, size_t count)
{
	uint16_t new_rows[HS_TALLY_ROWS];
	size_t new_count = 0;

	for (size_t i = 0; i < count; i++) {
		const struct hs_heat_row *row = &session->rows[i];
		const struct place wanted = {.id = row->id};
		const struct place *place;

		if ((row->total_ns == 0 && row->total_bytes == 0) ||
		    !hs_hotkeys_slot_chosen(&session->options, row->slot))
			continue;
		session->keys_sums[HS_HOTKEYS_CPU] += row->total_ns;
		session->keys_sums[HS_HOTKEYS_NET] += row->total_bytes;
		place = bsearch(&wanted, session->places, session->count, sizeof *place, by_id);
		if (!place) {
			new_rows[new_count++] = (uint16_t)i;
			continue;
		}
		session->keys[place->at].sums[HS_HOTKEYS_CPU] += row->total_ns;
		session->keys[place->at].sums[HS_HOTKEYS_NET] += row->total_bytes;
	}
	if (new_count > 0)
		add_new(session, new_rows, new_count);
}

static void add_slots(struct session *session, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct hs_heat_row *row = &session->rows[i];

		if (!hs_hotkeys_slot_chosen(&session->options, row->slot))
			continue;
		session->slots_sums[HS_HOTKEYS_CPU] += row->total_ns;
		session->slots_sums[HS_HOTKEYS_NET] += row->total_bytes;
	}
}

static void read_workers(struct hs_hotkeys *hotkeys, uint64_t now_us)
{
	struct session *session = hotkeys->session;

	for (size_t i = 0; i < hotkeys->heats_count; i++) {
		size_t count = read_rows(hotkeys, i, HS_HEAT_KEYS, now_us);

		hs_tally_differ(&session->tallies[i], session->rows, count);
		add_keys(session, count);
		if (session->options.slots_count == 0)
			continue;
		count = read_rows(hotkeys, i, HS_HEAT_SLOTS, now_us);
		hs_tally_differ(&session->tallies[hotkeys->heats_count + i], session->rows, count);
		add_slots(session, count);
	}
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void sum_up(const struct hs_hotkeys *hotkeys, struct hs_hotkeys_cpu cpu)
{
	struct session *session = hotkeys->session;
	struct hs_hotkeys_totals *totals = &session->totals;
	uint64_t after[HS_HOTKEYS_METRICS];

	read_partitions(hotkeys, after);
	for (int i = 0; i < HS_HOTKEYS_METRICS; i++) {
		totals->all[i] = after[i] - session->before[i];
		/* A slot has at least what its keys have, but may have been found hot later. */
		totals->selected[i] =
			session->options.slots_count == 0
				? totals->all[i]
				: larger(session->slots_sums[i], session->keys_sums[i]);
	}
	totals->cpu.user_us = cpu.user_us - session->cpu_before.user_us;
	totals->cpu.sys_us = cpu.sys_us - session->cpu_before.sys_us;
}

static bool is_over(const struct session *session, uint64_t now_us)
{
	return session->options.duration_us != 0 &&
	       now_us - session->started_us >= session->options.duration_us;
}

bool hs_hotkeys_due(const struct hs_hotkeys *hotkeys, struct hs_now now)
{
	return hotkeys->active && (now.mono_us - hotkeys->session->read_us >= HS_HOTKEYS_EVERY_US ||
				   is_over(hotkeys->session, now.mono_us));
}

void hs_hotkeys_read(struct hs_hotkeys *hotkeys, struct hs_now now, struct hs_hotkeys_cpu cpu)
{
	struct session *session = hotkeys->session;

	if (!hotkeys->active)
		return;
	read_workers(hotkeys, now.mono_us);
	sum_up(hotkeys, cpu);
	session->read_us = now.mono_us;
	session->totals.lasted_us = now.mono_us - session->started_us;
	if (is_over(session, now.mono_us)) {
		session->totals.lasted_us = session->options.duration_us;
		hotkeys->active = false;
	}
}

/* ---- the session's life ---- */

int hs_hotkeys_start(struct hs_hotkeys *hotkeys, const struct hs_hotkeys_options *options,
		     struct hs_now now, struct hs_hotkeys_cpu cpu)
{
	size_t tallies = hotkeys->heats_count * (options->slots_count ? 2 : 1);
	struct session *session;

	if (hotkeys->active)
		return HS_EBUSY;
	hs_mem_free(&hotkeys->session);
	session = hs_mem_zalloc(sizeof *session + tallies * sizeof session->tallies[0]);
	hotkeys->session = session;
	hotkeys->active = true;
	session->options = *options;
	session->cpu_before = cpu;
	session->started_us = session->read_us = now.mono_us;
	session->totals.started_wall_us = now.wall_us;
	for (size_t i = 0; i < tallies; i++) {
		bool slots = i >= hotkeys->heats_count;
		size_t count = read_rows(hotkeys, slots ? i - hotkeys->heats_count : i,
					 slots ? HS_HEAT_SLOTS : HS_HEAT_KEYS, now.mono_us);

		hs_tally_begin(&session->tallies[i], session->rows, count, now.mono_us);
	}
	read_partitions(hotkeys, session->before);
	return 0;
}

int hs_hotkeys_stop(struct hs_hotkeys *hotkeys)
{
	if (!hotkeys->active)
		return HS_ENOTFOUND;
	hotkeys->active = false;
	return 0;
}

int hs_hotkeys_reset(struct hs_hotkeys *hotkeys)
{
	if (hotkeys->active)
		return HS_EBUSY;
	hs_mem_free(&hotkeys->session);
	return 0;
}

/* ---- results ---- */

bool hs_hotkeys_active(const struct hs_hotkeys *hotkeys)
{
	return hotkeys->active;
}

const struct hs_hotkeys_options *hs_hotkeys_options(const struct hs_hotkeys *hotkeys)
{
	return hotkeys->session ? &hotkeys->session->options : NULL;
}

const struct hs_hotkeys_totals *hs_hotkeys_totals(const struct hs_hotkeys *hotkeys)
{
	return hotkeys->session ? &hotkeys->session->totals : NULL;
}

size_t hs_hotkeys_top(const struct hs_hotkeys *hotkeys, enum hs_hotkeys_metric metric,
		      struct hs_hotkeys_key keys[HS_HOTKEYS_COUNT_MAX])
{
	const struct session *session = hotkeys->session;
	size_t count = 0;

	for (size_t i = 0; session && i < session->count; i++) {
		const struct hs_hotkeys_key *key = &session->keys[i];
		size_t at = count;

		if (key->sums[metric] == 0)
			continue;
		while (at > 0 && keys[at - 1].sums[metric] < key->sums[metric])
			at--;
		if (at == session->options.count)
			continue;
		if (count < session->options.count)
			count++;
		memmove(&keys[at + 1], &keys[at], (count - 1 - at) * sizeof *keys);
		keys[at] = *key;
	}
	return count;
}

bool hs_hotkeys_slots(const struct hs_hotkeys_options *options, uint32_t *first, uint32_t *last)
{
	while (*first < HS_SLOTS && !hs_hotkeys_slot_chosen(options, (uint16_t)*first))
		++*first;
	if (*first == HS_SLOTS)
		return false;
	*last = *first;
	while (*last + 1 < HS_SLOTS && hs_hotkeys_slot_chosen(options, (uint16_t)(*last + 1)))
		++*last;
	return true;
}
