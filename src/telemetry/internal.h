/* Private to the board's files:
 *
 *     board.c       samples, windows
 *     partitions.c  rows of partitions, the median
 *     rows.c        rows of keys, prefixes, slots
 *     history.c     the last ten minutes */
#ifndef HS_TELEMETRY_INTERNAL_H
#define HS_TELEMETRY_INTERNAL_H

#include "telemetry/board.h"

enum { HS_BOARD_SCRATCH = 4096 }; /* hottest keys searched for each partition's hottest one */

/* Decayed sums of a partition in one window: each request weighs exp(-age / τ). */
struct hs_board_flow {
	double reads, writes, bytes, errors;
	double times[HS_COARSE_HISTOGRAM_BUCKETS];
	double commits[HS_COARSE_HISTOGRAM_BUCKETS];
};

struct hs_board_partition_state {
	struct hs_heat_partition counted; /* over all workers, at the last sample */
	struct hs_engine_partition facts;
	struct hs_board_flow flow[HS_HEAT_WINDOWS];
};

/* A ring of seconds. Each second owns a part of the three arrays. */
struct hs_board_history {
	size_t count;
	size_t next;
	struct hs_board_second *seconds;
	/* for each second of the ring: room for the maximum number of partitions */
	struct hs_board_second_partition *partitions;
	float *ranges;		   /* for each second: HS_HEAT_RANGES numbers */
	struct hs_board_row *keys; /* for each second: HS_BOARD_HISTORY_KEYS rows */
	uint16_t partitions_max;   /* most partitions in any second */

	/* The second that is not closed yet: the counters when it began. */
	struct hs_now begin;
	struct hs_heat_partition *begin_counted;
	uint64_t begin_ranges[HS_HEAT_RANGES];
};

struct hs_board {
	struct hs_heat **heats;
	size_t heats_count;
	uint16_t partitions;
	bool sampled;	   /* at least once */
	struct hs_now now; /* time of the last sample; mono_us never goes back */
	/* The sum that a rate of one per second would have reached in each window so far: τ · (1 - exp(-T /
	 * τ)). A sum divided by it is a rate. */
	double full_s[HS_HEAT_WINDOWS];
	struct hs_board_partition_state *parts;
	struct hs_heat_row *scratch; /* HS_BOARD_SCRATCH rows */
	struct hs_board_history history;
};

/* A decayed sum as a rate per second; 0 while no time has passed. */
double hs_board_rate(const struct hs_board *board, enum hs_heat_window window, double sum);
/* Requests per second. */
double hs_board_partition_ops(const struct hs_board *board, uint16_t id,
			      enum hs_heat_window window);
/* Growth of a counter. A smaller value means that it has restarted at 0. */
uint64_t hs_board_delta(uint64_t before, uint64_t now);
/* A quantile of a decayed histogram; 0 if it holds less than half a request. */
double hs_board_histogram_quantile(const double counts[HS_COARSE_HISTOGRAM_BUCKETS], double share);
/* Fills in what a row shows beside its heat: window, share, name. */
void hs_board_fill(const struct hs_board *board, enum hs_heat_what what, enum hs_heat_window window,
		   struct hs_board_row *row);

void hs_history_init(struct hs_board_history *history, uint16_t partitions);
void hs_history_deinit(struct hs_board_history *history);
/* Drops all seconds and begins one now. */
void hs_history_restart(struct hs_board *board);
/* Call after each sample: closes the second when it is over. */
void hs_history_step(struct hs_board *board);

#endif
