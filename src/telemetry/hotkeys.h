/* One HOTKEYS session: which keys took the most time and the most bytes since START, as in Redis 8.6. At most
 * one session runs; the result of a stopped one stays until the next START or RESET.
 *
 *     START ─ read ─ … every 250 ms … ─ read ─ STOP, or the end of DURATION
 *               └ what each worker's hot keys have counted since the previous reading (tally.h)
 *                 is added to the session's sums, by key
 *
 * A key counts from the moment a worker finds it hot: a key that never stands out is in the totals but in no
 * list. For the same reason the totals of chosen SLOTS may be too low, never too high. SAMPLE is stored and
 * shown, but everything is counted anyway. The time is how long requests took as heatsink measured them.
 *
 * When HS_HOTKEYS_KEYS keys are summed and a new one comes, it replaces the key with the smallest weight (the
 * larger of its shares of all time and all bytes), whose sum is lost to the lists; the totals still have it.
 * The new key starts with its own sum. Keys are ranked once per reading of a worker, so several new keys in it
 * replace several different keys.
 *
 * Time and the process's CPU times come in with the calls; it knows no clock. One thread, the control thread;
 * the workers count on while it reads. The array of heats is not copied: it and the heats must outlive this
 * object. START allocates all memory (the process aborts if there is none), RESET frees it. */
#ifndef HS_TELEMETRY_HOTKEYS_H
#define HS_TELEMETRY_HOTKEYS_H

#include "base/now.h"
#include "heat/heat.h"

#include <stdbool.h>

enum {
	HS_HOTKEYS_COUNT_MAX = 64, /* keys in a list: Redis's limit */
	HS_HOTKEYS_COUNT_DEFAULT = 10,
	HS_HOTKEYS_DURATION_MAX_S = 1000000, /* Redis's limit */
	HS_HOTKEYS_KEYS = 1024,	      /* keys summed at once; then the lightest is replaced */
	HS_HOTKEYS_EVERY_US = 250000, /* between readings */
};

/* The lists of a session: by time, by bytes. */
enum hs_hotkeys_metric { HS_HOTKEYS_CPU, HS_HOTKEYS_NET, HS_HOTKEYS_METRICS };

struct hs_hotkeys_options {
	bool metrics[HS_HOTKEYS_METRICS];
	uint32_t count;		       /* keys in a list */
	uint64_t duration_us;	       /* 0: until STOP */
	int64_t sample;		       /* shown only */
	uint32_t slots_count;	       /* 0: all slots */
	uint64_t slots[HS_SLOTS / 64]; /* one bit each */
};

/* CPU time of the process since it started. */
struct hs_hotkeys_cpu {
	uint64_t user_us, sys_us;
};

struct hs_hotkeys_key {
	uint64_t id;
	char name[HS_HEAT_NAME_BYTES];
	uint64_t public_id;
	uint32_t name_len, full_len; /* as in struct hs_heat_row */
	uint16_t slot, partition;
	uint64_t sums[HS_HOTKEYS_METRICS]; /* ns, bytes */
};

/* From START to the last reading. */
struct hs_hotkeys_totals {
	uint64_t all[HS_HOTKEYS_METRICS];      /* all requests to partitions: ns, bytes */
	uint64_t selected[HS_HOTKEYS_METRICS]; /* requests for keys in the chosen slots */
	struct hs_hotkeys_cpu cpu;
	int64_t started_wall_us;
	uint64_t lasted_us;
};

struct hs_hotkeys;

struct hs_hotkeys *hs_hotkeys_create(struct hs_heat *const *heats, size_t heats_count,
				     uint16_t partitions);
void hs_hotkeys_destroy(struct hs_hotkeys **hotkeys);

/* Call hs_hotkeys_read before the next three; it may end the session. */

/* Returns HS_EBUSY if a session runs. */
HS_MUSTCHECK int hs_hotkeys_start(struct hs_hotkeys *hotkeys,
				  const struct hs_hotkeys_options *options, struct hs_now now,
				  struct hs_hotkeys_cpu cpu);
/* Keeps the result of the last reading. Returns HS_ENOTFOUND if no session runs. */
HS_MUSTCHECK int hs_hotkeys_stop(struct hs_hotkeys *hotkeys);
/* Frees the result, if any. Returns HS_EBUSY if a session runs. */
HS_MUSTCHECK int hs_hotkeys_reset(struct hs_hotkeys *hotkeys);

/* Whether to read now: a session runs, and its last reading is HS_HOTKEYS_EVERY_US ago or its DURATION is over. */
bool hs_hotkeys_due(const struct hs_hotkeys *hotkeys, struct hs_now now);
/* Adds what has happened since the last reading; ends a session whose DURATION is over. Does nothing if none
 * runs. */
void hs_hotkeys_read(struct hs_hotkeys *hotkeys, struct hs_now now, struct hs_hotkeys_cpu cpu);

bool hs_hotkeys_active(const struct hs_hotkeys *hotkeys);
/* NULL: no session and no result. */
const struct hs_hotkeys_options *hs_hotkeys_options(const struct hs_hotkeys *hotkeys);
const struct hs_hotkeys_totals *hs_hotkeys_totals(const struct hs_hotkeys *hotkeys);
/* The keys with the largest sums, largest first, without zeros: at most `count` of the options. Returns how
 * many. */
size_t hs_hotkeys_top(const struct hs_hotkeys *hotkeys, enum hs_hotkeys_metric metric,
		      struct hs_hotkeys_key keys[HS_HOTKEYS_COUNT_MAX]);

/* ---- slots of the options ---- */

static inline bool hs_hotkeys_slot_chosen(const struct hs_hotkeys_options *options, uint16_t slot)
{
	return options->slots_count == 0 || (options->slots[slot / 64] >> (slot % 64) & 1);
}

/* Finds the next run of chosen slots from `*first` on; false: none. */
bool hs_hotkeys_slots(const struct hs_hotkeys_options *options, uint32_t *first, uint32_t *last);

#endif
