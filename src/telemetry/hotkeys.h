/* One HOTKEYS session: which keys took the most time and the most bytes since START, in the shape
 * of Redis 8.6. At most one session runs; what a stopped one has gathered stays until the next
 * START or RESET.
 *
 *     START ─ read ─ … every 250 ms … ─ read ─ STOP, or the end of DURATION
 *               └ what each worker's hot keys have counted since the reading before (tally.h)
 *                 is added to the sums of the session, by key
 *
 * A key counts from the moment a worker finds it hot: a key that never stands out is in the totals
 * and in no list. So it is with the slots of SLOTS: their totals are never too high. SAMPLE is
 * remembered and shown, and nothing is left out for it: everything is counted anyway. What stands
 * as time is how long requests took as heatsink measured them.
 *
 * Pure: time and the process's CPU times come in with the calls. One thread, the control thread; it
 * reads the workers' heat while they go on counting. Memory is taken at START, all that is
 * ever needed, and given back by RESET. */
#ifndef HS_TELEMETRY_HOTKEYS_H
#define HS_TELEMETRY_HOTKEYS_H

#include "base/now.h"
#include "heat/heat.h"

#include <stdbool.h>

enum {
	HS_HOTKEYS_COUNT_MAX = 64, /* keys a list may show: Redis's limit */
	HS_HOTKEYS_COUNT_DEFAULT = 10,
	HS_HOTKEYS_DURATION_MAX_S = 1000000, /* Redis's limit */
	HS_HOTKEYS_KEYS = 1024,		     /* summed up at once; the lightest gives way */
	HS_HOTKEYS_EVERY_US = 250000,	     /* between readings */
};

/* What a session is asked to list. */
enum hs_hotkeys_metric { HS_HOTKEYS_CPU, HS_HOTKEYS_NET, HS_HOTKEYS_METRICS };

struct hs_hotkeys_options {
	bool metrics[HS_HOTKEYS_METRICS];
	uint32_t count;		       /* keys in a list */
	uint64_t duration_us;	       /* 0: until STOP */
	int64_t sample;		       /* shown, no more */
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

/* Since START, up to the last reading. */
struct hs_hotkeys_totals {
	uint64_t all[HS_HOTKEYS_METRICS];      /* all requests to partitions: ns, bytes */
	uint64_t selected[HS_HOTKEYS_METRICS]; /* those to keys in the slots chosen */
	struct hs_hotkeys_cpu cpu;
	int64_t started_wall_us;
	uint64_t lasted_us;
};

struct hs_hotkeys;

struct hs_hotkeys *hs_hotkeys_create(struct hs_heat *const *heats, size_t heats_count,
				     uint16_t partitions);
void hs_hotkeys_destroy(struct hs_hotkeys **hotkeys);

/* The next three: read first, which may end the session. */

/* HS_EBUSY when a session runs. */
HS_MUSTCHECK int hs_hotkeys_start(struct hs_hotkeys *hotkeys,
				  const struct hs_hotkeys_options *options, struct hs_now now,
				  struct hs_hotkeys_cpu cpu);
/* What it shows is that of the last reading. HS_ENOTFOUND when no session runs. */
HS_MUSTCHECK int hs_hotkeys_stop(struct hs_hotkeys *hotkeys);
/* Forgets what was gathered, if anything. HS_EBUSY when a session runs. */
HS_MUSTCHECK int hs_hotkeys_reset(struct hs_hotkeys *hotkeys);

/* Whether it is time to read: a session runs, and was last read a while ago or is to end now. */
bool hs_hotkeys_due(const struct hs_hotkeys *hotkeys, struct hs_now now);
/* Adds up what has happened; ends a session whose DURATION is over. Nothing when none runs. */
void hs_hotkeys_read(struct hs_hotkeys *hotkeys, struct hs_now now, struct hs_hotkeys_cpu cpu);

bool hs_hotkeys_active(const struct hs_hotkeys *hotkeys);
/* NULL when there is neither a session nor what one has left. */
const struct hs_hotkeys_options *hs_hotkeys_options(const struct hs_hotkeys *hotkeys);
const struct hs_hotkeys_totals *hs_hotkeys_totals(const struct hs_hotkeys *hotkeys);
/* The keys with the largest sums, largest first, none of them 0: `count` of the options at most.
 * Returns how many. */
size_t hs_hotkeys_top(const struct hs_hotkeys *hotkeys, enum hs_hotkeys_metric metric,
		      struct hs_hotkeys_key keys[HS_HOTKEYS_COUNT_MAX]);

/* ---- slots of the options ---- */

static inline bool hs_hotkeys_slot_chosen(const struct hs_hotkeys_options *options, uint16_t slot)
{
	return options->slots_count == 0 || (options->slots[slot / 64] >> (slot % 64) & 1);
}

/* The next run of chosen slots from `*first` on; false when there is none. */
bool hs_hotkeys_slots(const struct hs_hotkeys_options *options, uint32_t *first, uint32_t *last);

#endif
