/* The board: what operators see about heat, over all workers, except HOTKEYS (hotkeys.h). The folder has these
 * two. It samples the workers' heat and the engine's facts about its partitions, keeps ten minutes of history
 * in seconds, and returns rows whose fields are defined in one place.
 *
 * Time and the engine's facts come in with the calls; it knows no clock, engine, RESP or JSON (callers walk the
 * tables of fields). One thread, the control thread; the workers count on while it reads. Memory is allocated
 * at creation and does not grow. Names point into the rows and are valid as long as the row. */
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
	HS_BOARD_HISTORY_KEYS = 10, /* hottest keys stored per second */
	HS_BOARD_TOP_MAX = 1000,    /* rows per query */
	HS_BOARD_TOP_DEFAULT = 10,
	/* From this many requests in the short window on, it is shown when the query names no window. */
	HS_BOARD_SHORT_MIN = 1000,
	/* The short window is also shown with at least this many requests, if they are this many times fewer
	 * than the long window's rate predicts: the load has ended. */
	HS_BOARD_SHORT_FEW = 5,
	/* A name as shown: its stored bytes, then length and hash if it was cut. */
	HS_BOARD_NAME_BYTES = HS_HEAT_NAME_BYTES + 48,
};

struct hs_board;

/* The heats must outlive the board; their array is copied. `partitions`: the maximum number of partitions. */
struct hs_board *hs_board_create(struct hs_heat *const *heats, size_t heats_count,
				 uint16_t partitions);
void hs_board_destroy(struct hs_board **board);

/* Call every 50 ms and before each query: queries answer as of the last sample. `facts` has one element per
 * partition. The first sample starts the windows. Closes each second of history when it has passed; seconds
 * without a call are left out. */
void hs_board_sample(struct hs_board *board, struct hs_now now,
		     const struct hs_engine_partition *facts);

/* HEAT RESET: tables, windows and history restart; counters for metrics go on. Call directly after
 * hs_board_sample. */
void hs_board_reset(struct hs_board *board, struct hs_now now);

/* The words of the enums in queries, by value. */
extern const char *const hs_board_by_words[];	  /* enum hs_heat_by */
extern const char *const hs_board_window_words[]; /* enum hs_heat_window */

/* The short window if it has HS_BOARD_SHORT_MIN requests, or if the load has dropped sharply
 * (HS_BOARD_SHORT_FEW); otherwise the long window. */
enum hs_heat_window hs_board_window(const struct hs_board *board);

/* ---- keys, prefixes, slots ---- */

struct hs_board_row {
	struct hs_heat_row heat;
	enum hs_heat_window window; /* the window shown */
	double share; /* keys and slots: of their partition's requests; prefixes: of all requests */
	char name[HS_BOARD_NAME_BYTES]; /* as shown; empty for slots */
	uint32_t name_len;
	char hash[17];	/* heat.public_id in hexadecimal digits */
	double total_s; /* seconds since heat.total_… began; 0: unknown */
};

/* Fields: key ops ops_low reads writes bytes p99_us share partition slot. For prefixes and slots the first
 * field is `prefix` or `slot`, and fields without meaning for them are left out. */
const struct hs_fields *hs_board_fields(enum hs_heat_what what);
/* The same, followed by misses or conflicts if rows are sorted by it. */
enum { HS_BOARD_FIELDS_MAX = 16 };
struct hs_fields hs_board_fields_by(enum hs_heat_what what, enum hs_heat_by by,
				    struct hs_field room[HS_BOARD_FIELDS_MAX]);
size_t hs_board_top(struct hs_board *board, const struct hs_heat_query *query,
		    struct hs_board_row *rows, size_t max);
/* HEAT KEY: both windows, bounds of all rates, misses, conflicts, percentiles, totals. */
extern const struct hs_fields hs_board_key_fields;
void hs_board_key(struct hs_board *board, struct hs_bytes key, uint16_t slot, uint16_t partition,
		  struct hs_board_row *row);
/* A row's name as shown; it lies in the row. A cut key ends in "…(65536 bytes, #1f0c…)", its length and hash. */
struct hs_bytes hs_board_name(const struct hs_board_row *row);
/* The same for a key without a row: `kept` has its stored bytes. Returns the length of `name`. */
uint32_t hs_board_show_name(uint64_t hash, struct hs_bytes kept, uint32_t full_len,
			    char name[HS_BOARD_NAME_BYTES]);

/* ---- partitions ---- */

struct hs_board_partition {
	char id[8];			  /* "0" …, or "median" */
	const char *state;		  /* "" for the median */
	bool up;			  /* the partition serves at least reads */
	double ops, reads, writes, bytes; /* per second */
	double load;			  /* relative to the mean of all partitions */
	int64_t inflight;
	double p50_us, p99_us, commit_p99_us;
	double errors; /* per second */
	char top_key[HS_BOARD_NAME_BYTES];
	uint32_t top_key_len;
	double top_key_share;
	struct hs_engine_partition facts; /* of the median: only the numbers */
	struct hs_heat_partition counted; /* since the start, for metrics */
};

extern const struct hs_fields hs_board_partition_fields;
/* Writes a row per existing partition and the median row behind them: hs_board_partitions_count + 1 rows. */
void hs_board_partitions(struct hs_board *board, enum hs_heat_window window,
			 struct hs_board_partition *rows);
/* Number of partitions at the last sample, and the maximum number. */
uint16_t hs_board_partitions_count(const struct hs_board *board);
uint16_t hs_board_capacity(const struct hs_board *board);

/* ---- history ---- */

/* Which part of a second a query asks for. */
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

/* The keys are those at its end: in the short window, which reaches back some tenths of a second, or in the
 * long one while there is little load (hs_board_window). */
struct hs_board_second {
	int64_t wall_s; /* wall clock when it began; the clock may have been set since */
	/* the partitions that existed in this second */
	struct hs_board_second_partition *partitions;
	uint16_t partitions_count;
	float *ranges;		   /* ops of each of the HS_HEAT_RANGES */
	struct hs_board_row *keys; /* its hottest keys */
	size_t keys_count;
	enum hs_heat_window window; /* of the keys */
};

/* Number of seconds available, at most `seconds`. */
size_t hs_board_seconds(const struct hs_board *board, size_t seconds);
/* Second number `i` of the latest `seconds`, 0 is the oldest. Read only; valid until the next sample. */
struct hs_board_second hs_board_second(const struct hs_board *board, size_t seconds, size_t i);
/* The most partitions in any stored second or now; at least 1. */
uint16_t hs_board_second_partitions_max(const struct hs_board *board);
/* Fields as for partitions: id ops reads writes bytes p99_us errors. */
extern const struct hs_fields hs_board_second_partition_fields;

#endif
