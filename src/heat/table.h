/* Private to src/heat: a table of the heaviest, in fixed memory. Keys and prefixes have one each;
 * slots use its shapes in their own way (heat/slots.c).
 *
 * It is a weighted Space-Saving summary cut into sets of eight, so that an access touches one cache
 * line to find its tag or the lowest score, and another to see whether more is known:
 *
 *     line   | 8 tags | 8 scores |
 *     side   | version, epoch, unit, crowd | 8 numbers of hots |
 *     hots   | requests, bytes, errors, times, totals, name |       for the hottest few
 *
 * An access that finds no tag takes over the entry with the lowest score and goes on from that score:
 * whoever was there may have been this very key. So a score is an upper bound of what its key has
 * had; what is not in the set has had at most the set's lowest score; and a score less the lowest is
 * a lower bound.
 *
 * The weight of an access is 1 + bytes / unit. One table thus finds what is hot by requests and what
 * is hot by bytes. The unit follows the mean size of the traffic: with a fixed one, large values
 * would crowd out a hot small key, or small values hide a giant.
 *
 * Hots. Only who has a hot is counted in detail: exactly from then on, reads and writes apart, for
 * both windows, with times and a name. Most belong to the established. Some are lent for a trial: to
 * every 128th or so access of a key without one, and to whoever's score stands out. When its turn
 * comes round, a trial is over: if the key turned out clearly hotter than the weakest of the
 * established, the two change places. So a key with one request in a hundred is on trial within some
 * ten thousand requests and established after as many again, while keys that come once cost little.
 *
 * Time. Instead of decaying every number all the time, a new access weighs more than the one before
 * it, by the exponential of the time between (forward decay); a reader divides by what an access
 * would weigh now. Weights start again at 1 with every epoch of 4 s, and a set is scaled down when
 * it is first touched in a new one. Scores follow the long window. In the short one, no entry of a set
 * without a hot has had more than `crowd`, and that is the error a hot starts with.
 *
 * Threads. One writes, any may read. Numbers are stored one by one, a new score before its tag, so
 * that what a reader sees is never less than the truth. What changes the owner of a hot, or the
 * scale of a set, makes the set's version odd first and even afterwards; a reader that saw it change
 * reads again. Stores release and loads acquire, which costs nothing on x86. */
#ifndef HS_HEAT_TABLE_H
#define HS_HEAT_TABLE_H

#include "heat/heat.h"
#include "heat/lanes.h"

enum {
	HS_HEAT_WAYS = 8,
	HS_HEAT_TRIALS_MAX = 64,
	HS_HEAT_TRIAL_EVERY = 128, /* accesses without a hot */
	HS_HEAT_EPOCH_BITS = 12,   /* an epoch is 4096 ms */
	HS_HEAT_NAME_WORDS = HS_HEAT_NAME_BYTES / 8,
};

_Static_assert((1000 << HS_HEAT_EPOCH_BITS) / HS_HEAT_SHORT_US <= 60,
	       "what an access weighs at the end of an epoch, times counts, fits a float");

typedef float hs_heat_two __attribute__((vector_size(8)));

/* A number for each window, changed as one. */
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
	uint8_t details[HS_HEAT_WAYS]; /* 0: none */
};

_Static_assert(sizeof(struct hs_heat_line) == 64, "one cache line");

/* Sums in doubles: a float that has become large takes no notice of a small one. */
struct hs_heat_detail {
	double ops[2][HS_HEAT_WINDOWS]; /* reads, writes */
	double bytes[HS_HEAT_WINDOWS];
	uint64_t total_ops[2];
	uint64_t total_bytes;
	uint64_t total_ns;
	union {
		uint16_t histogram[HS_COARSE_HISTOGRAM_BUCKETS]; /* halved when one is full */
		uint64_t histogram_words[HS_COARSE_HISTOGRAM_BUCKETS / 4];
	};
	double misses[HS_HEAT_WINDOWS], conflicts[HS_HEAT_WINDOWS];
	double error[HS_HEAT_WINDOWS]; /* what it may have had before, as a weight */
	uint64_t since_us;	       /* when it got its owner */
	uint64_t public_id;	       /* hs_heat_public_id of its whole name */
	uint64_t name[HS_HEAT_NAME_WORDS];
	uint32_t cell; /* its owner: set × 8 + way, if `owned` */
	uint32_t full_len;
	uint16_t slot;
	uint16_t partition;
	bool owned;
	bool trial;
};

/* What an access weighs at this time. */
struct hs_heat_clock {
	uint64_t ms;
	uint32_t epoch; /* from 1 on: 0 is that of what was never touched */
	float unit;
	float per_byte;		/* 1 / unit */
	union hs_heat_pair one; /* an access */
	double one_exact[HS_HEAT_WINDOWS];
};

struct hs_heat_table {
	struct hs_heat_line *lines;
	struct hs_heat_side *sides;
	struct hs_heat_detail *details; /* from number 1 on */
	uint32_t sets_count;		/* a power of two */
	uint32_t details_count;
	float trial_above;  /* what stands out: a score less its set's lowest */
	float detail_below; /* a lowest score below it: there is room, and a free hot */
	uint32_t trial_in;  /* accesses without a hot until the next trial */
	uint32_t free_count;
	uint32_t trials_count;
	uint32_t next_trial; /* whose turn it is */
	float weakness;	     /* the strength of the weakest of the established */
	bool weak_known;
	uint8_t weakest;
	uint8_t trials[HS_HEAT_TRIALS_MAX];
	uint8_t free[HS_HEAT_DETAILS_MAX]; /* hots without owner, but for those of trials */
	uint64_t looked_ms;
	/* Of the table of slots only: the number of each slot's hot, 0 for none (heat/slots.c). */
	uint8_t *slot_details;
};

/* One access, or several of the same entry. */
struct hs_heat_touch {
	uint64_t count[2]; /* reads, writes */
	uint64_t bytes;
	uint64_t time_ns;
	uint32_t missed, conflicted;
	uint32_t bucket; /* of the ladder */
	uint16_t slot;
	uint16_t partition;
	struct hs_bytes name;
	uint64_t public_id; /* of it, for a new hot */
};

#define HS_HEAT_EPOCH_MS ((double)(1 << HS_HEAT_EPOCH_BITS))
#define HS_HEAT_SHORT_MS (HS_HEAT_SHORT_US / 1000.0)
#define HS_HEAT_LONG_MS (HS_HEAT_LONG_US / 1000.0)

/* What is left of a number after some epochs, in each window. */
void hs_heat_decay_factors(uint32_t epochs, double factor[HS_HEAT_WINDOWS]);

size_t hs_heat_table_bytes(uint32_t sets, uint32_t details);
/* Lays the table out in `memory`, which is zero and aligned to 64. */
void hs_heat_table_init(struct hs_heat_table *table, void *memory, uint32_t sets, uint32_t details);
void hs_heat_table_clear(struct hs_heat_table *table);

/* The bits of a hash that name an entry: its tag, which is never 0, and its set. */
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

/* Once a millisecond: looks for the weakest owner of a hot when one may be needed. */
void hs_heat_table_find_weakest(struct hs_heat_table *table, const struct hs_heat_clock *clock);

/* Where an access goes. */
struct hs_heat_found {
	uint32_t set;
	uint32_t way;
	uint32_t tag;
	uint32_t detail;   /* its number, 0 for none */
	bool takes_detail; /* the place, and the hot, are somebody else's: take the hot away first */
	bool wants_detail;	       /* should be given a hot, if it has none */
	float least;		       /* the lowest score */
	float before[HS_HEAT_WINDOWS]; /* the most it may have had until now */
};

/* ---- the rare steps of an access ---- */

/* Brings a set to the clock's epoch. */
void hs_heat_table_enter(struct hs_heat_table *table, const struct hs_heat_clock *clock,
			 uint32_t set);
/* Gives an entry a hot, if there is one for it; returns its number, or 0. */
uint32_t hs_heat_table_assign_detail(struct hs_heat_table *table, const struct hs_heat_clock *clock,
				     const struct hs_heat_found *found,
				     const struct hs_heat_touch *touch);
/* The parts of giving that slots share: a hot without owner, 0 for none; made ready for one. */
uint32_t hs_heat_table_find_free(struct hs_heat_table *table, const struct hs_heat_clock *clock);
void hs_heat_detail_fill(struct hs_heat_detail *detail, const struct hs_heat_clock *clock,
			 uint32_t cell, const float before[HS_HEAT_WINDOWS],
			 const struct hs_heat_touch *touch);
void hs_heat_detail_scale(struct hs_heat_detail *detail, const double factor[HS_HEAT_WINDOWS],
			  double growth);
/* Takes a hot away from its owner. */
void hs_heat_table_release_detail(struct hs_heat_table *table, uint32_t detail);
/* A step of the ladder is full. */
void hs_heat_table_halve(struct hs_heat_detail *detail);
/* Misses and conflicts. */
void hs_heat_table_count_failures(struct hs_heat_detail *detail, const struct hs_heat_clock *clock,
				  const struct hs_heat_touch *touch);

/* ---- an access ---- */

/* The writer reads its own numbers plainly; only its stores are seen by others. */
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

/* Around a change of who owns a hot of a set, or of its scale. */
static inline void hs_heat_begin_change(struct hs_heat_side *side)
{
	__atomic_store_n(&side->version, side->version + 1, __ATOMIC_RELEASE);
}

static inline void hs_heat_end_change(struct hs_heat_side *side)
{
	__atomic_store_n(&side->version, side->version + 1, __ATOMIC_RELEASE);
}

/* Adds so many accesses, or bytes of one, as they weigh now. */
static inline void hs_heat_add_sum(double sum[HS_HEAT_WINDOWS], const struct hs_heat_clock *clock,
				   double count)
{
	for (int i = 0; i < HS_HEAT_WINDOWS; i++)
		hs_heat_store_sum(&sum[i], sum[i] + clock->one_exact[i] * count);
}

/* Upper bounds are floats: rounded up a little more than a sum can be rounded down. */
#define HS_HEAT_UP (1 + 0x1p-22f)

/* A table over a few accesses: what does not change meanwhile, for the processor's registers. */
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

/* Finds the place of an access. Found or not is a coin toss for the processor, so both take the same
 * steps: a new entry is a hit on the one with the lowest score. */
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
	/* The first that is equal; those with the lowest score stand behind. */
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

/* Counts in the score. Nothing here is a branch that the hot and the others would take differently.
 */
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
	/* In a table with room everybody gets a hot at once; in a busy one who stands out, or whose
	 * turn it is. */
	found->wants_detail = (pass->trial_in == 0) |
			      (had.window[HS_HEAT_LONG] > pass->trial_above) |
			      (found->least < pass->detail_below);
	found->before[HS_HEAT_SHORT] = short_bound;
	found->before[HS_HEAT_LONG] = before;
}

/* Gives what wants one a hot, and goes on with what that changed. Takes a copy, so that the rest of
 * an access stays in registers. */
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

/* One access in the hot's exact totals and ladder. */
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

/* Counts one access in its hot. */
static inline void hs_heat_count_one(struct hs_heat_detail *detail,
				     const struct hs_heat_clock *clock, bool write, uint32_t bytes,
				     uint64_t time_ns, uint32_t bucket)
{
	hs_heat_add_sum(detail->ops[write], clock, 1);
	hs_heat_add_word(&detail->total_ops[write], 1);
	hs_heat_add_sum(detail->bytes, clock, bytes);
	hs_heat_count_times(detail, bucket, 1, bytes, time_ns);
}

/* Counts several. */
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
/* Inside a change of the range: the slot in this way gives up its hot. */
void hs_heat_slots_release_detail(struct hs_heat_table *table, uint32_t range, uint32_t way,
				  double most);

/* ---- reading ---- */

/* An entry at the reader's time: decayed counts, not rates. Without a hot all but the errors is 0. */
struct hs_heat_entry {
	uint64_t id;
	double ops[2][HS_HEAT_WINDOWS]; /* reads, writes */
	double bytes[HS_HEAT_WINDOWS];
	double error[HS_HEAT_WINDOWS]; /* in ops; in bytes: times unit */
	double misses[HS_HEAT_WINDOWS], conflicts[HS_HEAT_WINDOWS];
	bool detail; /* what follows is known */
	uint64_t total_ops[2], total_bytes, total_ns, total_since_us;
	uint64_t public_id;
	uint32_t full_len;
	uint16_t slot, partition;
	char name[HS_HEAT_NAME_BYTES];
	double histogram[HS_COARSE_HISTOGRAM_BUCKETS]; /* proportions */
};

struct hs_heat_set_view {
	struct hs_heat_entry entries[HS_HEAT_WAYS];
	uint32_t count;
	double absent[HS_HEAT_WINDOWS]; /* the most that what is not here may weigh */
	double unit;
};

/* What a number of that epoch is worth at a time. */
double hs_heat_decay(uint32_t epoch, enum hs_heat_window window, uint64_t now_us);
void hs_heat_table_read(const struct hs_heat_table *table, uint32_t set, uint64_t now_us,
			struct hs_heat_set_view *view);

#endif
