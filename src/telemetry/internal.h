/* The insides of the board, shared by its files and by nobody else:
 *
 *     board.c       samples, windows
 *     partitions.c  rows of partitions, the median
 *     rows.c        rows of keys, prefixes, slots
 *     history.c     the last ten minutes */
#ifndef HS_TELEMETRY_INTERNAL_H
#define HS_TELEMETRY_INTERNAL_H

#include "telemetry/board.h"

enum { HS_BOARD_SCRATCH = 4096 }; /* rows looked through for each partition's hottest key */

/* What has come to one partition, in one window: each request weighs exp(-age / τ). */
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

/* A ring of seconds, each with its own part of the three arrays. */
struct hs_board_history {
	size_t count;
	size_t next;
	struct hs_board_second *seconds;
	struct hs_board_second_partition *partitions; /* as many for each as there can be */
	float *ranges;				      /* HS_HEAT_RANGES for each */
	struct hs_board_row *keys;		      /* HS_BOARD_HISTORY_KEYS for each */
	uint16_t partitions_max;		      /* the most that any second has */

	/* The second under way: what had been counted when it began. */
	struct hs_now begin;
	struct hs_heat_partition *begin_counted;
	uint64_t begin_ranges[HS_HEAT_RANGES];
};

struct hs_board {
	struct hs_heat **heats;
	size_t heats_count;
	uint16_t partitions;
	bool sampled;	   /* ever */
	struct hs_now now; /* of the last sample; mono_us never goes back */
	/* What a rate of one per second would have added up to in each window, in the time there
	 * was: τ · (1 - exp(-T / τ)). Sums divided by it are rates. */
	double full_s[HS_HEAT_WINDOWS];
	struct hs_board_partition_state *parts;
	struct hs_heat_row *scratch; /* HS_BOARD_SCRATCH */
	struct hs_board_history history;
};

/* A sum of weights as a rate per second; 0 while no time has passed. */
double hs_board_rate(const struct hs_board *board, enum hs_heat_window window, double sum);
/* Requests per second. */
double hs_board_partition_ops(const struct hs_board *board, uint16_t id,
			      enum hs_heat_window window);
/* How far a counter has come. One that has become smaller has started again. */
uint64_t hs_board_delta(uint64_t before, uint64_t now);
/* A ladder's value, 0 when less than half a request is left on it. */
double hs_board_histogram_quantile(const double counts[HS_COARSE_HISTOGRAM_BUCKETS], double share);
/* Fills in what a row shows of its heat: window, share, name. */
void hs_board_fill(const struct hs_board *board, enum hs_heat_what what, enum hs_heat_window window,
		   struct hs_board_row *row);

void hs_history_init(struct hs_board_history *history, uint16_t partitions);
void hs_history_deinit(struct hs_board_history *history);
/* Forgets all seconds; one begins now. */
void hs_history_restart(struct hs_board *board);
/* Behind each sample: closes the second under way when it is over. */
void hs_history_step(struct hs_board *board);

#endif
