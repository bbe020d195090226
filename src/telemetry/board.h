/* The board: everything there is to see about heat, over all workers. It samples the workers' heat
 * and what the engine says of its partitions, keeps ten minutes of history at one second, and
 * answers with rows whose fields are named in one place.
 *
 * Pure: time and the engine's facts come in with the calls. One thread, the control thread; it reads
 * the workers' heat while they go on counting. Memory is fixed at creation. */
#ifndef HS_TELEMETRY_BOARD_H
#define HS_TELEMETRY_BOARD_H

#include "base/now.h"
#include "base/words.h"
#include "heat/heat.h"
#include "route/partition_state.h"
#include "telemetry/field.h"

#include <stdbool.h>

enum {
	HS_BOARD_SECONDS = 600, /* of history */
	HS_BOARD_SECONDS_DEFAULT = 60,
	HS_BOARD_HISTORY_KEYS = 10, /* hottest keys kept for each second */
	HS_BOARD_TOP_MAX = 1000,    /* rows that can be asked for */
	HS_BOARD_TOP_DEFAULT = 10,
	/* Requests in the short window from which on it is shown when no window is asked for. */
	HS_BOARD_SHORT_MIN = 1000,
	/* And so many, when the long window promises that many times as much: the storm is over. */
	HS_BOARD_SHORT_FEW = 5,
	/* A name as it is shown: what is kept of it, and what is said about the rest. */
	HS_BOARD_NAME_BYTES = HS_HEAT_NAME_BYTES + 48,
};

struct hs_board;

/* The heats outlive the board; the array of them is copied. `partitions` is how many there can be. */
struct hs_board *hs_board_create(struct hs_heat *const *heats, size_t heats_count,
				 uint16_t partitions);
void hs_board_destroy(struct hs_board **board);

/* Every 50 ms, and before each answer: answers are as of the last sample. `facts` has one element
 * per partition. The first one is where the windows begin. Closes a second of history whenever one
 * has passed; seconds in which it was not called are left out. */
void hs_board_sample(struct hs_board *board, struct hs_now now,
		     const struct hs_engine_partition *facts);

/* HEAT RESET: the tables, the windows and the history start again; counters for metrics go on.
 * Right behind a sample, so that nothing from before is counted after. */
void hs_board_reset(struct hs_board *board, struct hs_now now);

/* The words for what is asked, by their values. */
extern const char *const hs_board_by_words[];	  /* enum hs_heat_by */
extern const char *const hs_board_window_words[]; /* enum hs_heat_window */

/* The short window while enough happens in it to tell, or so much less than before that the long one
 * speaks of the past; the long one otherwise. */
enum hs_heat_window hs_board_window(const struct hs_board *board);

/* ---- keys, prefixes, slots ---- */

struct hs_board_row {
	struct hs_heat_row heat;
	enum hs_heat_window window; /* the one shown */
	double share; /* keys, slots: of their partition's requests; prefixes: of all */
	char name[HS_BOARD_NAME_BYTES]; /* as it is shown; empty for slots */
	uint32_t name_len;
	char hash[17];	/* heat.shown in hexadecimal digits */
	double total_s; /* how long ago heat.total_… began; 0 when not known */
};

/* key ops ops_low reads writes bytes p99_us share partition slot; for prefixes and slots the first
 * field is `prefix` or `slot`, and what has no meaning for them is left out. */
const struct hs_fields *hs_board_fields(enum hs_heat_what what);
/* The same, and misses or conflicts behind them when that is what rows are sorted by. */
enum { HS_BOARD_FIELDS_MAX = 16 };
struct hs_fields hs_board_fields_by(enum hs_heat_what what, enum hs_heat_by by,
				    struct hs_field room[HS_BOARD_FIELDS_MAX]);
size_t hs_board_top(struct hs_board *board, const struct hs_heat_query *query,
		    struct hs_board_row *rows, size_t max);
/* HEAT KEY: both windows, bounds of everything, misses, conflicts, percentiles, totals. */
extern const struct hs_fields hs_board_key_fields;
void hs_board_key(struct hs_board *board, struct hs_bytes key, uint16_t slot, uint16_t partition,
		  struct hs_board_row *row);
/* A row's name as it is shown: a cut key ends in "…(65536 bytes, #1f0c…)", its length and hash.
 * Lies inside the row. */
struct hs_bytes hs_board_name(const struct hs_board_row *row);
/* The same of what is kept of a key that has no row. Returns its length. */
uint32_t hs_board_show_name(uint64_t hash, struct hs_bytes kept, uint32_t full_len,
			    char name[HS_BOARD_NAME_BYTES]);

/* ---- partitions ---- */

struct hs_board_partition {
	char id[8];			  /* "0" …, or "median" */
	const char *state;		  /* "" of the median */
	bool up;			  /* something is served there */
	double ops, reads, writes, bytes; /* per second */
	double load;			  /* to the fleet's mean */
	int64_t inflight;
	double p50_us, p99_us, commit_p99_us;
	double errors; /* per second */
	char top_key[HS_BOARD_NAME_BYTES];
	uint32_t top_key_len;
	double top_key_share;
	struct hs_engine_partition facts; /* of the median: its numbers alone */
	struct hs_heat_partition counted; /* since the start, for metrics */
};

extern const struct hs_fields hs_board_partition_fields;
/* One row for each partition there is, and the fleet's median behind them: hs_board_partitions_count
 * + 1 rows. */
void hs_board_partitions(struct hs_board *board, enum hs_heat_window window,
			 struct hs_board_partition *rows);
/* How many there are, at the last sample, and how many there can be. */
uint16_t hs_board_partitions_count(const struct hs_board *board);
uint16_t hs_board_capacity(const struct hs_board *board);

/* ---- history ---- */

/* What of a second is asked. */
enum hs_board_second_what {
	HS_BOARD_SECOND_PARTITIONS,
	HS_BOARD_SECOND_TOP,
	HS_BOARD_SECOND_RANGES
};
extern const char *const hs_board_second_words[];

/* Averages over the second, from exact counters. */
struct hs_board_second_partition {
	char id[8];
	float ops, reads, writes, bytes, p99_us, errors;
};

/* Its keys are as at its end: in the short window, which reaches back some tenths of a second, or
 * while too little happens for that (hs_board_window) in the long one. */
struct hs_board_second {
	int64_t wall_s; /* when it began; the clock may have been set since */
	struct hs_board_second_partition *partitions; /* that there were */
	uint16_t partitions_count;
	float *ranges;		   /* ops of each of HS_HEAT_RANGES */
	struct hs_board_row *keys; /* the hottest of that second */
	size_t keys_count;
	enum hs_heat_window window; /* theirs */
};

/* The latest `seconds` at most, oldest first; returns how many there are. */
size_t hs_board_seconds(const struct hs_board *board, size_t seconds);
/* Number `i` of the latest `seconds`, 0 the oldest. Valid until the next sample; for reading. */
struct hs_board_second hs_board_second(const struct hs_board *board, size_t seconds, size_t i);
/* The most partitions that any second has, the one under way with them; at least 1. */
uint16_t hs_board_second_partitions_max(const struct hs_board *board);
/* As the partitions' fields: id ops reads writes bytes p99_us errors. */
extern const struct hs_fields hs_board_second_partition_fields;

#endif
