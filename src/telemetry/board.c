/* Samples and windows.
 *
 * The workers count requests per partition exactly, since the start. What has come since the last sample is
 * added to two sums, one per window, which decay exponentially: after a time τ a request weighs 1/e. The exact
 * time of a request between two samples is unknown; the requests are taken as evenly spread. Then a steady rate
 * is shown correctly, however far apart the samples are.
 *
 *     sum(t + dt) = sum(t) · exp(-dt / τ)  +  delta · (1 - exp(-dt / τ)) · τ / dt
 *
 * Dividing by the same sum for a rate of one per second (full_s) gives rates, also in the first seconds, when a
 * window has seen less time than it reaches back. */
#include "telemetry/internal.h"

#include "base/mem.h"

#include <math.h>

/* A smaller sum is set to 0, so that it does not decay through denormal numbers. */
static const double NOTHING = 1e-9;

struct fading {
	double kept;	/* factor for the old sum */
	double arrived; /* factor for requests that came since */
};

struct hs_board *hs_board_create(struct hs_heat *const *heats, size_t heats_count,
				 uint16_t partitions)
{
	struct hs_board *board = hs_mem_zalloc(sizeof *board);

	hs_check(heats_count > 0);
	hs_check(partitions > 0);
	hs_check(partitions <= HS_PARTITIONS_MAX);
	board->heats = hs_mem_dup(heats, heats_count * sizeof(struct hs_heat *));
	board->heats_count = heats_count;
	board->partitions = partitions;
	board->parts = hs_mem_zalloc(partitions * sizeof *board->parts);
	board->scratch = hs_mem_zalloc(HS_BOARD_SCRATCH * sizeof *board->scratch);
	hs_history_init(&board->history, partitions);
	return board;
}

void hs_board_destroy(struct hs_board **board)
{
	if (!*board)
		return;
	hs_history_deinit(&(*board)->history);
	hs_mem_free(&(*board)->scratch);
	hs_mem_free(&(*board)->parts);
	hs_mem_free(&(*board)->heats);
	hs_mem_free(board);
}

uint64_t hs_board_delta(uint64_t before, uint64_t now)
{
	return now >= before ? now - before : now;
}

double hs_board_histogram_quantile(const double counts[HS_COARSE_HISTOGRAM_BUCKETS], double share)
{
	double total = 0;

	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++)
		total += counts[i];
	return total < 0.5 ? 0 : hs_coarse_histogram_quantile(counts, share);
}

double hs_board_rate(const struct hs_board *board, enum hs_heat_window window, double sum)
{
	return board->full_s[window] > 0 ? sum / board->full_s[window] : 0;
}

double hs_board_partition_ops(const struct hs_board *board, uint16_t id, enum hs_heat_window window)
{
	const struct hs_board_flow *flow = &board->parts[id].flow[window];

	return hs_board_rate(board, window, flow->reads + flow->writes);
}

uint16_t hs_board_capacity(const struct hs_board *board)
{
	return board->partitions;
}

uint16_t hs_board_partitions_count(const struct hs_board *board)
{
	uint16_t count = 0;

	for (uint16_t id = 0; id < board->partitions; id++)
		count += !board->parts[id].facts.absent;
	return count;
}

/* Advances one window by dt. Returns the factors for the old sum and for the requests that came during dt. */
static struct fading pass(struct hs_board *board, enum hs_heat_window window, double dt_s)
{
	double tau_s = (window == HS_HEAT_SHORT ? HS_HEAT_SHORT_US : HS_HEAT_LONG_US) / 1e6;
	double *full_s = &board->full_s[window];
	double gone = -expm1(-dt_s / tau_s);

	*full_s = *full_s * (1 - gone) + tau_s * gone;
	/* With dt = 0 nothing has decayed. */
	return (struct fading){.kept = 1 - gone, .arrived = dt_s > 0 ? gone * tau_s / dt_s : 1};
}

static void add(double *sum, struct fading fading, uint64_t before, uint64_t now)
{
	*sum = *sum * fading.kept + (double)hs_board_delta(before, now) * fading.arrived;
	if (*sum < NOTHING)
		*sum = 0;
}

static void add_flow(struct hs_board_flow *flow, struct fading fading,
		     const struct hs_board_partition_state *before,
		     const struct hs_heat_partition *counted,
		     const struct hs_engine_partition *facts)
{
	add(&flow->reads, fading, before->counted.reads, counted->reads);
	add(&flow->writes, fading, before->counted.writes, counted->writes);
	add(&flow->bytes, fading, before->counted.bytes, counted->bytes);
	add(&flow->errors, fading, before->counted.errors, counted->errors);
	for (uint32_t i = 0; i < HS_COARSE_HISTOGRAM_BUCKETS; i++) {
		add(&flow->times[i], fading, before->counted.histogram[i], counted->histogram[i]);
		add(&flow->commits[i], fading, before->facts.commit_histogram[i],
		    facts->commit_histogram[i]);
	}
}

static struct hs_heat_partition count(const struct hs_board *board, uint16_t id)
{
	struct hs_heat_partition counted = {0};

	for (size_t i = 0; i < board->heats_count; i++)
		hs_heat_read_partition(board->heats[i], id, &counted);
	return counted;
}

void hs_board_sample(struct hs_board *board, struct hs_now now,
		     const struct hs_engine_partition *facts)
{
	bool first = !board->sampled;
	struct fading fading[HS_HEAT_WINDOWS];
	uint64_t dt_us = 0;

	if (!first && now.mono_us > board->now.mono_us)
		dt_us = now.mono_us - board->now.mono_us;
	for (int window = 0; window < HS_HEAT_WINDOWS; window++)
		fading[window] = pass(board, (enum hs_heat_window)window, (double)dt_us / 1e6);
	for (uint16_t id = 0; id < board->partitions; id++) {
		struct hs_board_partition_state *part = &board->parts[id];
		struct hs_heat_partition counted = count(board, id);

		for (int window = 0; window < HS_HEAT_WINDOWS && !first; window++)
			add_flow(&part->flow[window], fading[window], part, &counted, &facts[id]);
		part->counted = counted;
		part->facts = facts[id];
	}
	board->now.wall_us = now.wall_us;
	if (first || dt_us > 0)
		board->now.mono_us = now.mono_us;
	board->sampled = true;
	if (first)
		hs_history_restart(board);
	else
		hs_history_step(board);
}

void hs_board_reset(struct hs_board *board, struct hs_now now)
{
	for (size_t i = 0; i < board->heats_count; i++)
		hs_heat_reset(board->heats[i], now.mono_us);
	for (uint16_t id = 0; id < board->partitions; id++) {
		memset(board->parts[id].flow, 0, sizeof board->parts[id].flow);
		board->parts[id].counted = count(board, id);
	}
	memset(board->full_s, 0, sizeof board->full_s);
	if (now.mono_us > board->now.mono_us)
		board->now.mono_us = now.mono_us;
	board->now.wall_us = now.wall_us;
	hs_history_restart(board);
}

enum hs_heat_window hs_board_window(const struct hs_board *board)
{
	double requests = 0, expected = 0;

	for (uint16_t id = 0; id < board->partitions; id++) {
		const struct hs_board_flow *flow = &board->parts[id].flow[HS_HEAT_SHORT];

		requests += flow->reads + flow->writes;
		expected +=
			hs_board_partition_ops(board, id, HS_HEAT_LONG) * (HS_HEAT_SHORT_US / 1e6);
	}
	if (requests >= HS_BOARD_SHORT_MIN)
		return HS_HEAT_SHORT;
	/* After a storm the long window would show it for a minute. */
	return requests >= HS_BOARD_SHORT_FEW && requests * HS_BOARD_SHORT_FEW < expected
		       ? HS_HEAT_SHORT
		       : HS_HEAT_LONG;
}
