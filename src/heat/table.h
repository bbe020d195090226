/* Private to src/heat: a table of the heaviest names, in fixed memory. Keys and prefixes have one each; slots
 * use the same structs in their own way (heat/slots.c).
 *
 * It is a weighted Space-Saving summary, divided into sets of eight entries. An access touches one cache line
 * to find its tag or the lowest score, and another one to see whether the entry has a detail record:
 *
 *     line     | 8 tags | 8 scores |
 *     side     | version, epoch, unit, short_bound | 8 numbers of detail records |
 *     details  | requests, bytes, misses, conflicts, error bounds, times, totals, name |  for the hottest few
 *
 * An access that finds no tag takes over the entry with the lowest score and continues from that score: the key
 * may have been evicted from this set before, so its true count lies between 0 and the old score. If that entry
 * had a detail record, the record is released first: its name and totals are lost, and short_bound is raised to
 * what it had. Therefore a score is an upper bound of what its key has had. A key that is not in the set has
 * had at most the set's lowest score. A score minus the lowest is a lower bound.
 *
 * The weight of an access is 1 + bytes / unit. So one table finds names that are hot by requests and names that
 * are hot by bytes. The unit follows the mean size of the traffic: with a fixed unit, large values would crowd
 * out a hot small key, or small values hide a giant.
 *
 * Detail records. An entry with a detail record is counted exactly from then on: reads and writes separately,
 * in both windows, with times and a name. Most records are permanent. Up to a quarter of them, at most 64, are
 * on trial: assigned at about every 128th access of an entry without one, and to entries whose score stands
 * out. A trial ends when its record is the next to be reused: if its entry is clearly hotter than the weakest
 * permanent owner, the two change places. So a key with one request in a hundred is on trial within about ten
 * thousand requests and permanent after as many again, while keys that occur once cost little.
 *
 * Time. Instead of decaying every number continuously, a new access weighs more than an earlier one, by the
 * exponential of the time between them (forward decay); a reader divides by the weight of an access at the
 * current time. Weights restart at 1 with every epoch of 4 s, and a set is scaled down when it is first touched
 * in a new epoch. Scores follow the long window. In the short window, `short_bound` is an upper bound for every
 * entry of the set without a detail record; it is the error that a new detail record starts with.
 *
 * Threads. One thread writes, any thread may read. Numbers are stored one by one, a new score before its tag,
 * so a reader never sees less than the truth. A change of a record's owner, or of a set's scale, makes the
 * set's version odd before and even after; a reader that saw the version change reads again. Stores release and
 * loads acquire, which is free on x86. */
#ifndef HS_HEAT_TABLE_H
#define HS_HEAT_TABLE_H

#include "heat/heat.h"
#include "heat/lanes.h"

enum {
	HS_HEAT_WAYS = 8,
	HS_HEAT_TRIALS_MAX = 64,
	HS_HEAT_TRIAL_EVERY = 128, /* accesses of entries without a detail record */
	HS_HEAT_EPOCH_BITS = 12,   /* an epoch is 4096 ms */
	HS_HEAT_NAME_WORDS = HS_HEAT_NAME_BYTES / 8,
};

_Static_assert((1000 << HS_HEAT_EPOCH_BITS) / HS_HEAT_SHORT_US <= 60,
	       "what an access weighs at the end of an epoch, times counts, fits a float");

typedef float hs_heat_two __attribute__((vector_size(8)));

/* One number per window, updated together. */
union hs_heat_pair {
	uint64_t bits;
	float window[HS_HEAT_WINDOWS];
	hs_heat_two both;
};

struct hs_heat_line {
	uint32_t tags[HS_HEAT_WAYS]; /* 0: empty */
	float scores[HS_HEAT_WAYS];
};

struct hs_heat_side {
	uint32_t version;
	uint32_t epoch;
	float unit;
	float short_bound;
	uint8_t details[HS_HEAT_WAYS]; /* numbers of the entries' detail records; 0: none */
};

_Static_assert(sizeof(struct hs_heat_line) == 64, "one cache line");

/* A detail record. Sums are doubles: a large float would not change when a small number is added. */
struct hs_heat_detail {
	double ops[2][HS_HEAT_WINDOWS]; /* reads, writes */
	double bytes[HS_HEAT_WINDOWS];
	uint64_t total_ops[2];
	uint64_t total_bytes;
	uint64_t total_ns;
	union {
		uint16_t histogram[HS_COARSE_HISTOGRAM_BUCKETS]; /* halved when a bucket is full */
		uint64_t histogram_words[HS_COARSE_HISTOGRAM_BUCKETS / 4];
	};
	double misses[HS_HEAT_WINDOWS], conflicts[HS_HEAT_WINDOWS];
	double error[HS_HEAT_WINDOWS]; /* upper bound of what it had before, as a weight */
	uint64_t since_us;	       /* when its owner got it */
	uint64_t public_id;	       /* hs_heat_public_id of its whole name */
	uint64_t name[HS_HEAT_NAME_WORDS];
	uint32_t cell; /* its owner: set × 8 + way, if `owned` */
	uint32_t full_len;
	uint16_t slot;
	uint16_t partition;
	bool owned;
	bool trial;
};

/* The weight of an access at the current time. */
struct hs_heat_clock {
	uint64_t ms;
	uint32_t epoch; /* starts at 1; 0: a set that was never touched */
	float unit;
	float per_byte;		/* 1 / unit */
	union hs_heat_pair one; /* an access, rounded up */
	double one_exact[HS_HEAT_WINDOWS];
};

struct hs_heat_table {
	struct hs_heat_line *lines;
	struct hs_heat_side *sides;
	struct hs_heat_detail *details; /* numbers start at 1 */
	uint32_t sets_count;		/* a power of two */
	uint32_t details_count;
	/* an entry whose score exceeds its set's lowest by more than this gets a detail record */
	float trial_above;
	/* while a set's lowest score is below this, each of its entries gets one */
	float detail_below;
	uint32_t trial_in; /* accesses of entries without a record until the next trial */
	uint32_t free_count;
	uint32_t trials_count;
	uint32_t next_trial; /* index in `trials` of the trial that ends next */
	float weakness;	     /* rate of the weakest permanent owner, per ms */
	bool weak_known;
	uint8_t weakest;
	uint8_t trials[HS_HEAT_TRIALS_MAX];
	/* detail records without owner, except those for trials */
	uint8_t free[HS_HEAT_DETAILS_MAX];
	uint64_t looked_ms;
	/* Only for slots: the number of each slot's detail record; 0: none (heat/slots.c). */
	uint8_t *slot_details;
};

/* One access, or several of the same entry. */
struct hs_heat_touch {
	uint64_t count[2]; /* reads, writes */
	uint64_t bytes;
	uint64_t time_ns;
	uint32_t missed, conflicted;
	uint32_t bucket; /* of the histogram of times */
	uint16_t slot;
	uint16_t partition;
	struct hs_bytes name;
	uint64_t public_id; /* hs_heat_public_id of the name, for a new detail record */
};

#define HS_HEAT_EPOCH_MS ((double)(1 << HS_HEAT_EPOCH_BITS))
#define HS_HEAT_SHORT_MS (HS_HEAT_SHORT_US / 1000.0)
#define HS_HEAT_LONG_MS (HS_HEAT_LONG_US / 1000.0)

/* The decay over a number of epochs, in each window. */
void hs_heat_decay_factors(uint32_t epochs, double factor[HS_HEAT_WINDOWS]);

size_t hs_heat_table_bytes(uint32_t sets, uint32_t details);
/* Lays the table out in `memory`, which is zeroed and aligned to 64 bytes. */
void hs_heat_table_init(struct hs_heat_table *table, void *memory, uint32_t sets, uint32_t details);
void hs_heat_table_clear(struct hs_heat_table *table);

/* The bits of a hash that identify an entry: its tag, which is never 0, and its set. */
static inline uint64_t hs_heat_id(const struct hs_heat_table *table, uint64_t hash)
{
	return (hash & 0xffffffff00000000) | 0x100000000 | (hash & (table->sets_count - 1));
}

static inline void hs_heat_table_prefetch(const struct hs_heat_table *table, uint64_t hash)
{
	uint64_t set = hash & (table->sets_count - 1);

	__builtin_prefetch(&table->lines[set], 1);
	__builtin_prefetch(&table->sides[set], 1);
}

/* Call once per ms: finds the weakest permanent owner if one may have to give way, and updates the thresholds. */
void hs_heat_table_find_weakest(struct hs_heat_table *table, const struct hs_heat_clock *clock);

/* The entry that an access is counted in. */
struct hs_heat_found {
	uint32_t set;
	uint32_t way;
	uint32_t tag;
	uint32_t detail; /* number of its detail record; 0: none */
	/* the entry and its detail record belong to another key: release the record first */
	bool takes_detail;
	bool wants_detail;	       /* should get a detail record */
	float least;		       /* the set's lowest score */
	float before[HS_HEAT_WINDOWS]; /* upper bound of what it had before this access */
};

/* ---- the rare parts of an access ---- */

/* Rescales a set for the clock's epoch. */
void hs_heat_table_enter(struct hs_heat_table *table, const struct hs_heat_clock *clock,
			 uint32_t set);
/* Assigns a detail record to the entry, if one is available; returns its number, or 0. */
uint32_t hs_heat_table_assign_detail(struct hs_heat_table *table, const struct hs_heat_clock *clock,
				     const struct hs_heat_found *found,
				     const struct hs_heat_touch *touch);
/* Parts of the assignment that slots share: find a free record (0: none), and initialize it. */
uint32_t hs_heat_table_find_free(struct hs_heat_table *table, const struct hs_heat_clock *clock);
void hs_heat_detail_fill(struct hs_heat_detail *detail, const struct hs_heat_clock *clock,
			 uint32_t cell, const float before[HS_HEAT_WINDOWS],
			 const struct hs_heat_touch *touch);
void hs_heat_detail_scale(struct hs_heat_detail *detail, const double factor[HS_HEAT_WINDOWS],
			  double growth);
/* Releases a detail record from its owner. */
void hs_heat_table_release_detail(struct hs_heat_table *table, uint32_t detail);
/* Halves the histogram, because a bucket is full. */
void hs_heat_table_halve(struct hs_heat_detail *detail);
/* Counts misses and conflicts. */
void hs_heat_table_count_failures(struct hs_heat_detail *detail, const struct hs_heat_clock *clock,
				  const struct hs_heat_touch *touch);

/* ---- an access ---- */

/* The only writer reads its own numbers without atomics; its stores are visible to readers. */
static inline void hs_heat_store(float *place, float value)
{
	__atomic_store(place, &value, __ATOMIC_RELEASE);
}

static inline void hs_heat_store_sum(double *place, double value)
{
	__atomic_store(place, &value, __ATOMIC_RELEASE);
}

static inline void hs_heat_add_word(uint64_t *place, uint64_t more)
{
	__atomic_store_n(place, *place + more, __ATOMIC_RELEASE);
}

/* Enclose a change of a record's owner, or of a set's scale. */
static inline void hs_heat_begin_change(struct hs_heat_side *side)
{
	__atomic_store_n(&side->version, side->version + 1, __ATOMIC_RELEASE);
}

static inline void hs_heat_end_change(struct hs_heat_side *side)
{
	__atomic_store_n(&side->version, side->version + 1, __ATOMIC_RELEASE);
}

/* Adds `count` accesses, or bytes, with the weight of the current time. */
static inline void hs_heat_add_sum(double sum[HS_HEAT_WINDOWS], const struct hs_heat_clock *clock,
				   double count)
{
	for (int i = 0; i < HS_HEAT_WINDOWS; i++)
		hs_heat_store_sum(&sum[i], sum[i] + clock->one_exact[i] * count);
}

/* Upper bounds are floats: rounded up by more than one addition can round down. */
#define HS_HEAT_UP (1 + 0x1p-22f)

/* A table's state during a few accesses, copied so that it stays in registers. */
struct hs_heat_pass {
	struct hs_heat_table *table;
	const struct hs_heat_clock *clock;
	struct hs_heat_line *lines;
	struct hs_heat_side *sides;
	uint32_t set_mask;
	uint32_t epoch;
	uint32_t trial_in;
	float trial_above;
	float detail_below;
};

static inline struct hs_heat_pass hs_heat_pass_begin(struct hs_heat_table *table,
						     const struct hs_heat_clock *clock)
{
	return (struct hs_heat_pass){
		.table = table,
		.clock = clock,
		.lines = table->lines,
		.sides = table->sides,
		.set_mask = table->sets_count - 1,
		.epoch = clock->epoch,
		.trial_in = table->trial_in,
		.trial_above = table->trial_above,
		.detail_below = table->detail_below,
	};
}

/* Finds the entry for an access. Hit or miss is unpredictable for the processor, so both take the same path: a
 * miss takes over the entry with the lowest score. */
static inline struct hs_heat_found hs_heat_seek(struct hs_heat_pass *pass, uint64_t hash)
{
	uint32_t set = (uint32_t)hash & pass->set_mask;
	uint32_t tag = (uint32_t)(hash >> 32) | 1;
	struct hs_heat_line *line = &pass->lines[set];
	struct hs_heat_side *side = &pass->sides[set];

	if (__builtin_expect(side->epoch != pass->epoch, 0))
		hs_heat_table_enter(pass->table, pass->clock, set);

	uint32_t equal = hs_lanes_equal(line->tags, tag), lowest;
	float least = hs_lanes_smallest(line->scores, &lowest);
	/* The first equal tag; if none, the first lowest score, whose bits are behind. */
	uint32_t way = (uint32_t)__builtin_ctz(equal | lowest << HS_HEAT_WAYS) % HS_HEAT_WAYS;
	uint32_t detail = side->details[way];

	return (struct hs_heat_found){
		.set = set,
		.way = way,
		.tag = tag,
		.detail = detail,
		.takes_detail = (equal == 0) & (detail != 0),
		.least = least,
	};
}

/* Adds the weight to the entry's score. Branch-free: the same instructions with and without a detail record. */
static inline void hs_heat_count_score(struct hs_heat_pass *pass, struct hs_heat_found *found,
				       union hs_heat_pair weight)
{
	struct hs_heat_line *line = &pass->lines[found->set];
	struct hs_heat_side *side = &pass->sides[found->set];
	float before = line->scores[found->way], short_bound = side->short_bound;
	float score = before * HS_HEAT_UP + weight.window[HS_HEAT_LONG];
	uint32_t unknown = found->detail == 0;
	union hs_heat_pair had = {.window = {weight.window[HS_HEAT_SHORT], score - found->least}};

	had.bits &= -(uint64_t)unknown;
	hs_heat_store(&line->scores[found->way], score);
	__atomic_store_n(&line->tags[found->way], found->tag, __ATOMIC_RELEASE);
	hs_heat_store(&side->short_bound, short_bound * HS_HEAT_UP + had.window[HS_HEAT_SHORT]);
	pass->trial_in -= unknown;
	/* An entry gets a record if the table has room, if its score stands out, or at its trial. */
	found->wants_detail = (pass->trial_in == 0) |
			      (had.window[HS_HEAT_LONG] > pass->trial_above) |
			      (found->least < pass->detail_below);
	found->before[HS_HEAT_SHORT] = short_bound;
	found->before[HS_HEAT_LONG] = before;
}

/* Assigns a detail record and reloads the state that this changed. Takes a copy, so that the caller's state
 * stays in registers. */
static inline uint32_t hs_heat_assign_detail(struct hs_heat_pass *pass, struct hs_heat_found found,
					     const struct hs_heat_touch *touch)
{
	uint32_t detail = found.detail;

	if (detail)
		return detail;
	detail = hs_heat_table_assign_detail(pass->table, pass->clock, &found, touch);
	*pass = hs_heat_pass_begin(pass->table, pass->clock);
	return detail;
}

/* Counts accesses in a record's exact totals and histogram. */
static inline void hs_heat_count_times(struct hs_heat_detail *detail, uint32_t bucket,
				       uint32_t count, uint64_t bytes, uint64_t time_ns)
{
	uint32_t more = detail->histogram[bucket] + count;

	hs_heat_add_word(&detail->total_bytes, bytes);
	hs_heat_add_word(&detail->total_ns, time_ns);
	__atomic_store_n(&detail->histogram[bucket],
			 (uint16_t)(more <= UINT16_MAX ? more : UINT16_MAX), __ATOMIC_RELEASE);
	if (__builtin_expect(more >= UINT16_MAX, 0))
		hs_heat_table_halve(detail);
}

/* Counts one access in its detail record. */
static inline void hs_heat_count_one(struct hs_heat_detail *detail,
				     const struct hs_heat_clock *clock, bool write, uint32_t bytes,
				     uint64_t time_ns, uint32_t bucket)
{
	hs_heat_add_sum(detail->ops[write], clock, 1);
	hs_heat_add_word(&detail->total_ops[write], 1);
	hs_heat_add_sum(detail->bytes, clock, bytes);
	hs_heat_count_times(detail, bucket, 1, bytes, time_ns);
}

/* Counts several accesses in their detail record. */
static inline __attribute__((always_inline)) void hs_heat_count_many(
	struct hs_heat_detail *detail, const struct hs_heat_clock *clock,
	const struct hs_heat_touch *touch)
{
	for (int i = 0; i < 2; i++) {
		hs_heat_add_sum(detail->ops[i], clock, (double)(int64_t)touch->count[i]);
		hs_heat_add_word(&detail->total_ops[i], touch->count[i]);
	}
	hs_heat_add_sum(detail->bytes, clock, (double)(int64_t)touch->bytes);
	hs_heat_count_times(detail, touch->bucket, (uint32_t)(touch->count[0] + touch->count[1]),
			    touch->bytes, touch->time_ns);
	if (touch->missed + touch->conflicted > 0)
		hs_heat_table_count_failures(detail, clock, touch);
}

/* ---- slots: heat/slots.c ---- */

void hs_heat_slots_init(struct hs_heat_table *table, uint8_t *slot_details);
void hs_heat_slots_clear(struct hs_heat_table *table);
void hs_heat_slots_enter(struct hs_heat_table *table, const struct hs_heat_clock *clock,
			 uint32_t range);
uint32_t hs_heat_slots_assign_detail(struct hs_heat_table *table, const struct hs_heat_clock *clock,
				     const float before[HS_HEAT_WINDOWS],
				     const struct hs_heat_touch *touch);
/* Called inside a change of the range: removes the slot of this way from the map and raises the range's bound. */
void hs_heat_slots_release_detail(struct hs_heat_table *table, uint32_t range, uint32_t way,
				  double most);

/* ---- reading ---- */

/* An entry as of the reader's time: decayed counts, not rates. Without a detail record all but the errors is 0. */
struct hs_heat_entry {
	uint64_t id;
	double ops[2][HS_HEAT_WINDOWS]; /* reads, writes */
	double bytes[HS_HEAT_WINDOWS];
	double error[HS_HEAT_WINDOWS]; /* in requests; in bytes: times `unit` */
	double misses[HS_HEAT_WINDOWS], conflicts[HS_HEAT_WINDOWS];
	bool detail; /* it has a detail record, so the following is known */
	uint64_t total_ops[2], total_bytes, total_ns, total_since_us;
	uint64_t public_id;
	uint32_t full_len;
	uint16_t slot, partition;
	char name[HS_HEAT_NAME_BYTES];
	double histogram[HS_COARSE_HISTOGRAM_BUCKETS]; /* relative weights */
};

struct hs_heat_set_view {
	struct hs_heat_entry entries[HS_HEAT_WAYS];
	uint32_t count;
	double absent[HS_HEAT_WINDOWS]; /* upper bound for a key that is not in the set */
	double unit;
};

/* Decay factor from the start of `epoch` to `now_us`. */
double hs_heat_decay(uint32_t epoch, enum hs_heat_window window, uint64_t now_us);
void hs_heat_table_read(const struct hs_heat_table *table, uint32_t set, uint64_t now_us,
			struct hs_heat_set_view *view);

#endif
