/* Heat is right when it equals what the clients requested. An access without an answer may have been counted or not,
 * and the moment of counting is only known to lie between request and answer. So the truth is an interval, as heat's
 * own numbers are, and the two must overlap. */
#include "sim/check.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/slot.h"
#include "route/slot_map.h"
#include "sim/names.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* Relative rounding error: heat stores its upper bounds as floats. */
#define ROUNDING 1e-3

static const double tau_us[HS_HEAT_WINDOWS] = {HS_HEAT_SHORT_US, HS_HEAT_LONG_US};

void hs_sim_accesses_deinit(struct hs_sim_accesses *accesses)
{
	hs_mem_free(&accesses->all);
	*accesses = (struct hs_sim_accesses){0};
}

void hs_sim_accesses_add(struct hs_sim_accesses *accesses, const struct hs_sim_access *access)
{
	if (accesses->count == accesses->cap) {
		accesses->cap = accesses->cap ? accesses->cap * 2 : 128;
		accesses->all =
			hs_mem_realloc(accesses->all, accesses->cap * sizeof *accesses->all);
	}
	accesses->all[accesses->count++] = *access;
}

/* --- the truth --- */

struct interval {
	double low, high;
};

/* [0] reads, [1] writes. */
struct partition {
	struct interval ops[2];
};

struct key {
	uint16_t slot, partition;
	struct interval ops[2][HS_HEAT_WINDOWS]; /* decayed */
};

struct truth {
	struct key *keys;
	struct partition *partitions;
};

static void add(struct interval *interval, double low, double high)
{
	interval->low += low;
	interval->high += high;
}

static void add_decayed(struct interval ops[HS_HEAT_WINDOWS], const struct hs_sim_access *access,
			uint64_t now_us)
{
	bool sure = access->answered_us != HS_SIM_NEVER;
	double most_us = (double)(now_us - access->asked_us);
	double least_us = sure ? (double)(now_us - access->answered_us) : 0;

	for (int w = 0; w < HS_HEAT_WINDOWS; w++)
		add(&ops[w], sure ? exp(-most_us / tau_us[w]) : 0, exp(-least_us / tau_us[w]));
}

static void add_to_partitions(struct truth *truth, const struct hs_sim_access *access,
			      const struct hs_sim_heats *heats)
{
	double sure = access->answered_us != HS_SIM_NEVER;
	bool keyless = access->key == HS_SIM_NO_KEY;
	uint16_t first = keyless ? 0 : truth->keys[access->key].partition;
	uint16_t last = keyless ? (uint16_t)(heats->partitions - 1) : first;

	if (keyless && heats->summed) {
		/* Counted once in each partition that has slots when it runs: in one at least, in all at most. */
		add(&truth->partitions[0].ops[access->write], sure, heats->partitions);
		return;
	}
	for (uint16_t id = first; id <= last; id++)
		add(&truth->partitions[id].ops[access->write], sure, 1);
}

static void truth_init(struct truth *truth, const struct hs_sim_accesses *accesses,
		       const struct hs_sim_heats *heats, uint32_t keys)
{
	truth->keys = hs_mem_zalloc(keys * sizeof *truth->keys);
	truth->partitions = hs_mem_zalloc(heats->partitions * sizeof *truth->partitions);
	for (uint32_t i = 0; i < keys; i++) {
		truth->keys[i].slot = hs_sim_name_slot(heats->tied, i);
		if (!heats->summed)
			truth->keys[i].partition =
				hs_slot_partition(truth->keys[i].slot, heats->partitions);
	}
	for (size_t i = 0; i < accesses->count; i++) {
		const struct hs_sim_access *access = &accesses->all[i];
		bool keyless = access->key == HS_SIM_NO_KEY;

		if (access->dropped)
			continue;
		add_to_partitions(truth, access, heats);
		if (!keyless)
			add_decayed(truth->keys[access->key].ops[access->write], access,
				    heats->now_us);
	}
}

static void truth_deinit(struct truth *truth)
{
	hs_mem_free(&truth->keys);
	hs_mem_free(&truth->partitions);
}

/* --- heat against the truth --- */

static int check_partition(const struct hs_sim_heats *heats, const struct truth *truth, uint16_t id,
			   struct hs_sim_verdict *verdict)
{
	struct hs_heat_partition got = {0};
	uint16_t last = heats->summed ? (uint16_t)(heats->partitions - 1) : id;

	for (size_t i = 0; i < heats->count; i++) {
		for (uint16_t read = id; read <= last; read++)
			hs_heat_read_partition(heats->heats[i], read, &got);
	}
	for (int write = 0; write < 2; write++) {
		const struct interval *ops = &truth->partitions[id].ops[write];
		double counted = (double)(write ? got.writes : got.reads);
		double others = (double)heats->others[write];

		if (counted >= ops->low && counted <= ops->high + others)
			continue;
		hs_sim_verdict_set(verdict, HS_SIM_LAW_HEAT,
				   "partition %u%s counted %.0f %s, but %.0f were answered and "
				   "%.0f are unknown, %.0f of unrecorded clients among them",
				   id, heats->summed ? " and all others" : "", counted,
				   write ? "writes" : "reads", ops->low,
				   ops->high - ops->low + others, others);
		return HS_EINVAL;
	}
	if (got.inflight == 0)
		return 0;
	hs_sim_verdict_set(verdict, HS_SIM_LAW_HEAT,
			   "partition %u has %" PRId64 " operations in flight, but no client waits",
			   id, got.inflight);
	return HS_EINVAL;
}

/* The factor from rates back to requests in the window. */
static double window_s(const struct hs_sim_heats *heats, int window)
{
	double age_us = fmax(1000, (double)(heats->now_us - heats->start_us));

	return tau_us[window] / 1e6 * -expm1(-age_us / tau_us[window]);
}

static int check_key(const struct hs_sim_heats *heats, const struct truth *truth, uint32_t number,
		     struct hs_sim_verdict *verdict)
{
	const struct key *key = &truth->keys[number];
	struct hs_heat_row row;
	char name[HS_SIM_NAME_BYTES_MAX];

	hs_heat_find(heats->heats, heats->count, HS_HEAT_KEYS,
		     hs_bytes_of(hs_sim_name(heats->tied, number, name)), key->slot, heats->now_us,
		     &row);
	for (int w = 0; w < HS_HEAT_WINDOWS; w++) {
		const struct hs_heat_rates *rates = &row.window[w];
		const struct interval *reads = &key->ops[0][w], *writes = &key->ops[1][w];
		double slack = ROUNDING, in_s = window_s(heats, w);

		if (rates->reads * in_s <= reads->high * (1 + slack) &&
		    rates->writes * in_s <= writes->high * (1 + slack) &&
		    rates->ops_low * in_s <= (reads->high + writes->high) * (1 + slack) &&
		    rates->ops_high * in_s >= (reads->low + writes->low) * (1 - slack))
			continue;
		hs_sim_verdict_set(verdict, HS_SIM_LAW_HEAT,
				   "key%u had %.3f to %.3f requests in the %s window (%.3f reads, "
				   "%.3f writes at most), heat says %.3f to %.3f (%.3f, %.3f)",
				   number, reads->low + writes->low, reads->high + writes->high,
				   w == HS_HEAT_SHORT ? "short" : "long", reads->high, writes->high,
				   rates->ops_low * in_s, rates->ops_high * in_s,
				   rates->reads * in_s, rates->writes * in_s);
		return HS_EINVAL;
	}
	return 0;
}

int hs_sim_check_heat(const struct hs_sim_accesses *accesses, const struct hs_sim_heats *heats,
		      uint32_t keys, struct hs_sim_verdict *verdict)
{
	struct truth truth;
	int err = 0;

	truth_init(&truth, accesses, heats, keys);
	for (uint16_t id = 0; id < (heats->summed ? 1 : heats->partitions) && err == 0; id++)
		err = check_partition(heats, &truth, id, verdict);
	for (uint32_t key = 0; key < keys && err == 0; key++)
		err = check_key(heats, &truth, key, verdict);
	truth_deinit(&truth);
	return err;
}
