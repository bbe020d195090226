/* A worker's counters: creation, time and epochs, reset, and what readers load directly (partitions, ranges,
 * sums). Accesses are counted in count.c. */
#include "heat/heat.h"

#include "base/mem.h"
#include "heat/internal.h"

#include <math.h>

enum {
	KEY_SETS = 512,
	PREFIX_SETS = 128,
	KEY_HOTS = 254,
	PREFIX_HOTS = 96,
	SLOT_HOTS = 48,
	LINE = 64,
	UNIT_MIN = 64,
	UNIT_MAX = 1 << 24,
	UNIT_START = 512,
	/* Over all traffic, bytes weigh a quarter of what requests weigh. */
	UNIT_MEANS = 4,
	READ_TRIES = 1000,
};

struct hs_heat *hs_heat_create(const struct hs_heat_options *options)
{
	uint32_t key_sets = options->key_sets ? options->key_sets : KEY_SETS;
	const struct {
		uint32_t sets, details;
	} shape[HS_HEAT_TABLES] = {
		[HS_HEAT_KEYS] = {key_sets, KEY_HOTS},
		[HS_HEAT_PREFIXES] = {key_sets < PREFIX_SETS ? key_sets : PREFIX_SETS, PREFIX_HOTS},
		[HS_HEAT_SLOTS] = {HS_HEAT_RANGES, SLOT_HOTS},
	};
	struct hs_heat *heat = hs_mem_zalloc(sizeof *heat);
	size_t bytes = LINE + HS_SLOTS + options->partitions * sizeof(struct hs_heat_tally);
	char *place;

	hs_check(options->partitions > 0);
	for (int i = 0; i < HS_HEAT_TABLES; i++)
		bytes += hs_heat_table_bytes(shape[i].sets, shape[i].details);
	heat->memory = hs_mem_zalloc(bytes);
	place = heat->memory;
	place += (LINE - (uintptr_t)place % LINE) % LINE;
	for (int i = 0; i < HS_HEAT_TABLES; i++) {
		hs_heat_table_init(&heat->tables[i], place, shape[i].sets, shape[i].details);
		place += hs_heat_table_bytes(shape[i].sets, shape[i].details);
	}
	hs_heat_slots_init(&heat->tables[HS_HEAT_SLOTS], (uint8_t *)place);
	place += HS_SLOTS;
	heat->partitions = (struct hs_heat_tally *)(void *)place;
	heat->partitions_count = options->partitions;
	heat->seed = options->seed;
	memcpy(heat->name_seeds, options->name_seeds, sizeof heat->name_seeds);
	heat->clock.unit = UNIT_START;
	heat->clock.per_byte = 1.0f / UNIT_START;
	for (int i = 0; i < HS_HEAT_WINDOWS; i++) {
		heat->clock.one.window[i] = HS_HEAT_UP;
		heat->clock.one_exact[i] = 1;
		heat->ms_exact[i] = 1;
	}
	heat->clock.epoch = 1;
	heat->sum_epoch = 1;
	return heat;
}

void hs_heat_destroy(struct hs_heat **pointer)
{
	hs_mem_free(&(*pointer)->memory);
	hs_mem_free(pointer);
}

/* ---- time ---- */

/* The unit of the next epoch: UNIT_MEANS times the mean size of a request, as a power of two. It stays while it
 * is within a factor of two. */
static float choose_unit(const struct hs_heat *heat)
{
	double mean, unit = (double)heat->clock.unit;

	if (heat->epoch_ops == 0)
		return heat->clock.unit;
	mean = (double)heat->epoch_bytes / (double)heat->epoch_ops * UNIT_MEANS;
	while (unit > mean * 2 && unit > UNIT_MIN)
		unit /= 2;
	while (unit < mean / 2 && unit < UNIT_MAX)
		unit *= 2;
	return (float)unit;
}

static void enter_epoch(struct hs_heat *heat, uint32_t epoch)
{
	double factor[HS_HEAT_WINDOWS];

	hs_heat_decay_factors(epoch - heat->clock.epoch, factor);
	heat->clock.unit = choose_unit(heat);
	heat->clock.per_byte = 1 / heat->clock.unit;
	heat->clock.epoch = epoch;
	heat->epoch_ops = 0;
	heat->epoch_bytes = 0;
	__atomic_store_n(&heat->sum_version, heat->sum_version + 1, __ATOMIC_RELEASE);
	for (int i = 0; i < HS_HEAT_WINDOWS; i++) {
		hs_heat_store_sum(&heat->sum_ops[i], heat->sum_ops[i] * factor[i]);
		hs_heat_store_sum(&heat->sum_bytes[i], heat->sum_bytes[i] * factor[i]);
	}
	__atomic_store_n(&heat->sum_epoch, epoch, __ATOMIC_RELEASE);
	__atomic_store_n(&heat->sum_version, heat->sum_version + 1, __ATOMIC_RELEASE);
}

static void forget(struct hs_heat *heat, uint32_t wanted)
{
	for (int i = 0; i < HS_HEAT_TABLES; i++)
		hs_heat_table_clear(&heat->tables[i]);
	for (int i = 0; i < HS_HEAT_WINDOWS; i++) {
		hs_heat_store_sum(&heat->sum_ops[i], 0);
		hs_heat_store_sum(&heat->sum_bytes[i], 0);
	}
	heat->reset_done = wanted;
}

static void enter_ms(struct hs_heat *heat, uint64_t ms)
{
	uint32_t epoch = (uint32_t)(ms >> HS_HEAT_EPOCH_BITS) + 1;

	heat->clock.ms = ms;
	if (epoch != heat->clock.epoch)
		enter_epoch(heat, epoch);
	ms &= (1 << HS_HEAT_EPOCH_BITS) - 1;
	heat->ms_exact[HS_HEAT_SHORT] = exp((double)ms * 1000 / HS_HEAT_SHORT_US);
	heat->ms_exact[HS_HEAT_LONG] = exp((double)ms * 1000 / HS_HEAT_LONG_US);
}

void hs_heat_now(struct hs_heat *heat, uint64_t mono_us)
{
	static const double tau_us[] = {HS_HEAT_SHORT_US, HS_HEAT_LONG_US};
	uint64_t ms = mono_us / 1000;
	uint32_t wanted = atomic_load_explicit(&heat->reset_wanted, memory_order_acquire);
	bool new_ms = ms > heat->clock.ms;

	if (__builtin_expect(wanted != heat->reset_done, 0))
		forget(heat, wanted);
	if (mono_us <= heat->now_us)
		return;
	if (heat->now_us == 0)
		hs_counter_set(&heat->since_us, mono_us);
	heat->now_us = mono_us;
	hs_counter_set(&heat->seen_us, mono_us);
	if (new_ms)
		enter_ms(heat, ms);
	/* Within a millisecond the first terms of the exponential series are exact enough. */
	for (int i = 0; i < HS_HEAT_WINDOWS; i++) {
		double part = (double)(mono_us % 1000) / tau_us[i];

		heat->clock.one_exact[i] = heat->ms_exact[i] * (1 + part + part * part / 2);
		/* Upper bounds must not be rounded below the exact value. */
		heat->clock.one.window[i] = (float)heat->clock.one_exact[i] * HS_HEAT_UP;
	}
	if (new_ms) {
		for (int i = 0; i < HS_HEAT_TABLES; i++)
			hs_heat_table_find_weakest(&heat->tables[i], &heat->clock);
	}
}

/* ---- reading ---- */

void hs_heat_reset(struct hs_heat *heat, uint64_t now_us)
{
	hs_counter_set(&heat->since_us, now_us);
	atomic_fetch_add_explicit(&heat->reset_wanted, 1, memory_order_release);
}

uint64_t hs_heat_seen_us(const struct hs_heat *heat)
{
	return hs_counter_get(&heat->seen_us);
}

uint64_t hs_heat_since_us(const struct hs_heat *heat)
{
	return hs_counter_get(&heat->since_us);
}

void hs_heat_read_partition(const struct hs_heat *heat, uint16_t id, struct hs_heat_partition *sum)
{
	const struct hs_heat_tally *partition = &heat->partitions[id];

	hs_check(id < heat->partitions_count);
	sum->reads += hs_counter_get(&partition->ops[0]);
	sum->writes += hs_counter_get(&partition->ops[1]);
	sum->bytes += hs_counter_get(&partition->bytes);
	sum->errors += hs_counter_get(&partition->errors);
	sum->time_ns += hs_counter_get(&partition->time_ns);
	sum->inflight += (int64_t)hs_counter_get(&partition->inflight);
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		sum->histogram[i] += hs_counter_get(&partition->histogram[i]);
}

void hs_heat_read_ranges(const struct hs_heat *heat, uint64_t sum[HS_HEAT_RANGES])
{
	for (uint32_t i = 0; i < HS_HEAT_RANGES; i++)
		sum[i] += hs_counter_get(&heat->ranges[i]);
}

static bool is_reset(const struct hs_heat *heat)
{
	uint32_t done = atomic_load_explicit(&heat->reset_done, memory_order_acquire);

	return done != atomic_load_explicit(&heat->reset_wanted, memory_order_relaxed);
}

const struct hs_heat_table *hs_heat_table_of(const struct hs_heat *heat, enum hs_heat_what what)
{
	return is_reset(heat) ? NULL : &heat->tables[what];
}

struct hs_heat_sums hs_heat_read_sums(const struct hs_heat *heat, uint64_t now_us)
{
	double ops[HS_HEAT_WINDOWS], bytes[HS_HEAT_WINDOWS];
	struct hs_heat_sums sums = {.ops = {0}};
	uint32_t version, epoch = 0;
	bool whole = false;

	if (is_reset(heat))
		return sums;
	for (int i = 0; i < READ_TRIES; i++) {
		version = __atomic_load_n(&heat->sum_version, __ATOMIC_ACQUIRE);
		for (int w = 0; w < HS_HEAT_WINDOWS; w++) {
			__atomic_load(&heat->sum_ops[w], &ops[w], __ATOMIC_ACQUIRE);
			__atomic_load(&heat->sum_bytes[w], &bytes[w], __ATOMIC_ACQUIRE);
		}
		epoch = __atomic_load_n(&heat->sum_epoch, __ATOMIC_ACQUIRE);
		whole = version % 2 == 0 &&
			__atomic_load_n(&heat->sum_version, __ATOMIC_ACQUIRE) == version;
		if (whole)
			break;
	}
	/* The worker was stopped in the middle of a change: the sums are unknown, so unlimited. */
	for (int w = 0; w < HS_HEAT_WINDOWS; w++) {
		double decay = hs_heat_decay(epoch, (enum hs_heat_window)w, now_us);

		sums.ops[w] = whole ? ops[w] * decay : INFINITY;
		sums.bytes[w] = whole ? bytes[w] * decay : INFINITY;
	}
	return sums;
}
