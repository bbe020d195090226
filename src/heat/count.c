/* The worker's side of heat: takes accesses one by one and counts each in all tables. */
#include "heat/internal.h"

#include "base/hash.h"

uint64_t hs_heat_hash(const struct hs_heat *heat, struct hs_bytes name)
{
	return hs_hash(name, heat->seed);
}

uint64_t hs_heat_slot_hash(uint16_t slot)
{
	return (uint64_t)slot << 33 | slot / (HS_SLOTS / HS_HEAT_RANGES);
}

uint64_t hs_heat_public_id(const struct hs_heat *heat, struct hs_bytes name)
{
	uint64_t hash = hs_hash(name, heat->name_seeds[0]);

	return hs_hash((struct hs_bytes){(const char *)&hash, sizeof hash}, heat->name_seeds[1]);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a word's first byte is its lowest");

/* Finds ':' in eight bytes at once: sets bit 7 of every byte that is one. */
static inline uint64_t find_colons(const char *bytes)
{
	const uint64_t ones = 0x0101010101010101, tops = ones << 7;
	uint64_t word;

	memcpy(&word, bytes, sizeof word);
	word ^= ones * ':';
	return ~(((word & ~tops) + ~tops) | word) & tops;
}

/* The same for less than eight bytes. */
static uint64_t find_few_colons(const char *bytes, uint32_t len)
{
	char eight[8] = {0};

	memcpy(eight, bytes, len);
	return find_colons(eight);
}

/* Sets the lengths of the key's prefixes; missing levels stay 0. */
static inline void find_prefixes(struct hs_heat_pending *note)
{
	uint32_t len = note->key_len < HS_HEAT_PREFIX_BYTES ? note->key_len : HS_HEAT_PREFIX_BYTES;
	uint32_t at = 0, levels = 0;

	for (; at < len && levels < HS_HEAT_PREFIX_LEVELS; at += 8) {
		uint64_t colons;

		if (at + 8 <= len)
			colons = find_colons(note->key + at);
		else if (len >= 8) /* the last eight bytes again, without those already seen */
			colons = find_colons(note->key + len - 8) >> (at + 8 - len) * 8;
		else
			colons = find_few_colons(note->key, len);
		for (; colons && levels < HS_HEAT_PREFIX_LEVELS; colons &= colons - 1)
			note->prefix_len[levels++] =
				(uint8_t)(at + (uint32_t)__builtin_ctzll(colons) / 8 + 1);
	}
	note->levels = (uint8_t)levels;
}

static inline void prepare(struct hs_heat *heat, struct hs_heat_pending *note,
			   const struct hs_heat_access *access)
{
	*note = (struct hs_heat_pending){
		.hash = hs_heat_hash(heat, access->key),
		.key = access->key.data,
		.bytes = access->bytes < UINT32_MAX ? (uint32_t)access->bytes : UINT32_MAX,
		.key_len = (uint32_t)access->key.len,
		.count = 1,
		.slot = access->slot,
		.partition = access->partition,
		.write = access->write,
		.failed = access->failed,
		.missed = access->missed,
		.conflicted = access->conflicted,
	};
	hs_heat_table_prefetch(&heat->tables[HS_HEAT_KEYS], note->hash);
	find_prefixes(note);
}

/* Counts `count` accesses that took `time_ns` each. */
static void count_partition(struct hs_heat *heat, uint16_t id, bool write, bool failed,
			    uint32_t count, uint64_t bytes, uint64_t time_ns, uint32_t bucket)
{
	struct hs_heat_tally *partition = &heat->partitions[id];

	hs_check(id < heat->partitions_count);
	hs_counter_add(&partition->ops[write], count);
	hs_counter_add(&partition->bytes, bytes);
	hs_counter_add(&partition->time_ns, time_ns * count);
	hs_counter_add(&partition->histogram[bucket], count);
	if (failed)
		hs_counter_add(&partition->errors, count);
}

static void count_sums(struct hs_heat *heat, uint32_t accesses, uint64_t bytes)
{
	hs_heat_add_sum(heat->sum_ops, &heat->clock, accesses);
	hs_heat_add_sum(heat->sum_bytes, &heat->clock, (double)(int64_t)bytes);
	heat->epoch_ops += accesses;
	heat->epoch_bytes += bytes;
}

/* Times are rounded up to whole µs, at least 1: bucket 0 means unknown. */
static uint32_t bucket_of(uint64_t time_ns)
{
	return hs_coarse_histogram_bucket(time_ns > 0 ? (time_ns + 999) / 1000 : 1);
}

static inline struct hs_heat_touch touch_of(const struct hs_heat_pending *note, uint64_t time_ns,
					    uint32_t bucket)
{
	return (struct hs_heat_touch){
		.count = {note->write ? 0 : note->count, note->write ? note->count : 0},
		.bytes = note->bytes,
		.time_ns = time_ns * note->count,
		.missed = note->missed,
		.conflicted = note->conflicted,
		.bucket = bucket,
		.slot = note->slot,
		.partition = note->partition,
		.name = {note->key, note->key_len},
	};
}

static inline union hs_heat_pair weigh(const struct hs_heat_clock *clock, float count, float bytes)
{
	return (union hs_heat_pair){.both = clock->one.both * (count + bytes * clock->per_byte)};
}

/* Accesses to entries with a detail record, in the order of their notes; their details are counted later. */
struct owed {
	uint32_t count;
	uint8_t details[HS_HEAT_NOTES_MAX];
	uint8_t which[HS_HEAT_NOTES_MAX];
};

static inline void count_details(struct hs_heat *heat, struct hs_heat_table *table,
				 const struct hs_heat_pending *notes, uint64_t time_ns,
				 uint32_t bucket, struct owed *owed)
{
	for (uint32_t i = 0; i < owed->count; i++) {
		const struct hs_heat_pending *note = &notes[owed->which[i]];
		struct hs_heat_detail *detail = &table->details[owed->details[i]];

		if (__builtin_expect(note->count > 1, 0)) {
			struct hs_heat_touch touch = touch_of(note, time_ns, bucket);

			hs_heat_count_many(detail, &heat->clock, &touch);
			continue;
		}
		hs_heat_count_one(detail, &heat->clock, note->write, note->bytes, time_ns, bucket);
		if (__builtin_expect(note->missed | note->conflicted, 0)) {
			struct hs_heat_touch touch = touch_of(note, time_ns, bucket);

			hs_heat_table_count_failures(detail, &heat->clock, &touch);
		}
	}
	owed->count = 0;
}

/* Counts keys: first the scores, in the same way for every access; then the details. Deferred details are
 * counted before a detail record changes its owner. Returns the number of the last key's detail record, 0 for
 * none. */
static uint32_t count_keys(struct hs_heat *heat, const struct hs_heat_pending *notes,
			   uint32_t notes_count, uint64_t time_ns, uint32_t bucket)
{
	struct hs_heat_table *table = &heat->tables[HS_HEAT_KEYS];
	struct hs_heat_pass pass = hs_heat_pass_begin(table, &heat->clock);
	uint32_t last = 0;
	struct owed owed;

	owed.count = 0;
	for (uint32_t i = 0; i < notes_count; i++) {
		const struct hs_heat_pending *note = &notes[i];
		struct hs_heat_found found = hs_heat_seek(&pass, note->hash);

		if (__builtin_expect(found.takes_detail, 0)) {
			count_details(heat, table, notes, time_ns, bucket, &owed);
			hs_heat_table_release_detail(table, found.detail);
			found.detail = 0;
		}
		hs_heat_count_score(&pass, &found,
				    weigh(&heat->clock, (float)(int32_t)note->count,
					  (float)(int64_t)note->bytes));
		if (__builtin_expect(found.wants_detail, 0)) {
			struct hs_heat_touch touch = touch_of(note, time_ns, bucket);

			touch.public_id = hs_heat_public_id(heat, touch.name);
			count_details(heat, table, notes, time_ns, bucket, &owed);
			found.detail = hs_heat_assign_detail(&pass, found, &touch);
		}
		owed.details[owed.count] = (uint8_t)found.detail;
		owed.which[owed.count] = (uint8_t)i;
		owed.count += found.detail != 0;
		last = found.detail;
	}
	table->trial_in = pass.trial_in;
	count_details(heat, table, notes, time_ns, bucket, &owed);
	return last;
}

/* Counts slots: see heat/slots.c. */
static void count_slots(struct hs_heat *heat, const struct hs_heat_pending *notes,
			uint32_t notes_count, uint64_t time_ns, uint32_t bucket)
{
	struct hs_heat_table *table = &heat->tables[HS_HEAT_SLOTS];
	const struct hs_heat_clock *clock = &heat->clock;
	uint32_t trial_in = table->trial_in;
	struct owed owed;

	owed.count = 0;
	for (uint32_t i = 0; i < notes_count; i++) {
		const struct hs_heat_pending *note = &notes[i];
		uint32_t range = note->slot / (HS_SLOTS / HS_HEAT_RANGES);
		struct hs_heat_side *side = &table->sides[range];
		float *score = &table->lines[range].scores[0];
		uint32_t detail = table->slot_details[note->slot], unknown = detail == 0;
		union hs_heat_pair more =
			weigh(clock, (float)(int32_t)note->count, (float)(int64_t)note->bytes);

		if (__builtin_expect(side->epoch != clock->epoch, 0))
			hs_heat_slots_enter(table, clock, range);

		float before[HS_HEAT_WINDOWS] = {side->short_bound, *score};

		/* Rounded up. Slots with a detail record add nothing to the bounds. */
		for (int w = 0; w < HS_HEAT_WINDOWS; w++)
			more.window[w] += before[w] * (HS_HEAT_UP - 1);
		more.bits &= -(uint64_t)unknown;
		hs_heat_store(&side->short_bound,
			      before[HS_HEAT_SHORT] + more.window[HS_HEAT_SHORT]);
		hs_heat_store(score, before[HS_HEAT_LONG] + more.window[HS_HEAT_LONG]);
		trial_in -= unknown;
		if (__builtin_expect((trial_in == 0) | (unknown & (table->free_count > 0)), 0)) {
			struct hs_heat_touch touch = touch_of(note, time_ns, bucket);

			touch.name.len = 0;
			count_details(heat, table, notes, time_ns, bucket, &owed);
			if (unknown)
				detail = hs_heat_slots_assign_detail(table, clock, before, &touch);
			trial_in = HS_HEAT_TRIAL_EVERY / 2 +
				   ((uint32_t)note->hash & (HS_HEAT_TRIAL_EVERY - 1));
		}
		owed.details[owed.count] = (uint8_t)detail;
		owed.which[owed.count] = (uint8_t)i;
		owed.count += detail != 0;
	}
	table->trial_in = trial_in;
	count_details(heat, table, notes, time_ns, bucket, &owed);
}

static void count_prefix(struct hs_heat *heat, const struct hs_heat_touch *touch)
{
	struct hs_heat_table *table = &heat->tables[HS_HEAT_PREFIXES];
	struct hs_heat_pass pass = hs_heat_pass_begin(table, &heat->clock);
	struct hs_heat_found found = hs_heat_seek(&pass, hs_heat_hash(heat, touch->name));
	float count = (float)(int64_t)(touch->count[0] + touch->count[1]);

	if (__builtin_expect(found.takes_detail, 0)) {
		hs_heat_table_release_detail(table, found.detail);
		found.detail = 0;
	}
	hs_heat_count_score(&pass, &found,
			    weigh(&heat->clock, count, (float)(int64_t)touch->bytes));
	if (__builtin_expect(found.wants_detail, 0)) {
		struct hs_heat_touch named = *touch;

		named.public_id = hs_heat_public_id(heat, touch->name);
		found.detail = hs_heat_assign_detail(&pass, found, &named);
	}
	table->trial_in = pass.trial_in;
	if (found.detail)
		hs_heat_count_many(&table->details[found.detail], &heat->clock, touch);
}

/* Whether both keys start with the same `len` bytes; both have at least as many. */
static inline bool same_start(const struct hs_heat_pending *a, const struct hs_heat_pending *b,
			      uint32_t len)
{
	uint64_t x, y, differ = 0;

	if (len < 8 && (a->key_len < 8 || b->key_len < 8))
		return memcmp(a->key, b->key, len) == 0;
	for (uint32_t i = 0; i + 8 < len; i += 8) {
		memcpy(&x, a->key + i, 8);
		memcpy(&y, b->key + i, 8);
		differ |= x ^ y;
	}
	memcpy(&x, len < 8 ? a->key : a->key + len - 8, 8);
	memcpy(&y, len < 8 ? b->key : b->key + len - 8, 8);
	/* If fewer than eight bytes count, they are the low ones of the words read. */
	return (differ | (x ^ y) << (len < 8 ? 64 - 8 * len : 0)) == 0;
}

/* Counts the prefixes of one level. Consecutive notes with the same prefix count as one. */
static void count_prefixes(struct hs_heat *heat, uint32_t level,
			   const struct hs_heat_pending *notes, uint32_t notes_count,
			   uint64_t time_ns, uint32_t bucket)
{
	for (uint32_t i = 0; i < notes_count;) {
		const struct hs_heat_pending *first = &notes[i];
		uint32_t len = first->prefix_len[level];
		struct hs_heat_touch touch = touch_of(first, time_ns, bucket);

		i++;
		if (len == 0)
			continue;
		for (; i < notes_count; i++) {
			const struct hs_heat_pending *note = &notes[i];

			if (note->prefix_len[level] != len || !same_start(note, first, len))
				break;
			touch.count[note->write] += note->count;
			touch.bytes += note->bytes;
			touch.time_ns += time_ns * note->count;
			touch.missed += note->missed;
			touch.conflicted += note->conflicted;
		}
		touch.name.len = len;
		count_prefix(heat, &touch);
	}
}

/* Counts notes that took `time_ns` each. Returns the number of the last key's detail record, 0 for none. */
static uint32_t count(struct hs_heat *heat, const struct hs_heat_pending *notes,
		      uint32_t notes_count, uint64_t time_ns)
{
	uint32_t bucket = bucket_of(time_ns), levels = 0;
	uint32_t last = count_keys(heat, notes, notes_count, time_ns, bucket);
	uint32_t accesses = 0;
	uint64_t bytes = 0;

	count_slots(heat, notes, notes_count, time_ns, bucket);
	for (uint32_t i = 0; i < notes_count; i++) {
		const struct hs_heat_pending *note = &notes[i];

		count_partition(heat, note->partition, note->write, note->failed, note->count,
				note->bytes, time_ns, bucket);
		hs_counter_add(&heat->ranges[note->slot / (HS_SLOTS / HS_HEAT_RANGES)],
			       note->count);
		accesses += note->count;
		bytes += note->bytes;
		levels = note->levels > levels ? note->levels : levels;
	}
	for (uint32_t i = 0; i < levels; i++)
		count_prefixes(heat, i, notes, notes_count, time_ns, bucket);
	count_sums(heat, accesses, bytes);
	return last;
}

/* Counts at least one note. Returns the rate of the last one's key. */
static struct hs_heat_warmth count_notes(struct hs_heat *heat, const struct hs_heat_pending *notes,
					 uint32_t notes_count, uint64_t time_ns)
{
	const struct hs_heat_pending *last = &notes[notes_count - 1];
	struct hs_heat_warmth warmth = {.key = {last->key, last->key_len}, .slot = last->slot};
	uint32_t number = count(heat, notes, notes_count, time_ns);
	const struct hs_heat_detail *detail = &heat->tables[HS_HEAT_KEYS].details[number];
	double weight;

	if (number == 0)
		return warmth;
	weight = detail->ops[0][HS_HEAT_SHORT] + detail->ops[1][HS_HEAT_SHORT];
	warmth.requests = weight / heat->clock.one_exact[HS_HEAT_SHORT];
	warmth.share = weight / heat->sum_ops[HS_HEAT_SHORT];
	return warmth;
}

/* Whether the note can stand for this access too. Failed ones are noted by themselves. */
static inline bool is_alike(const struct hs_heat_pending *note, const struct hs_heat_access *access)
{
	return note->key_len == access->key.len && note->slot == access->slot &&
	       note->partition == access->partition && note->write == access->write &&
	       !(note->failed | note->missed | note->conflicted | access->failed | access->missed |
		 access->conflicted) &&
	       access->bytes <= UINT32_MAX - note->bytes &&
	       memcmp(note->key, access->key.data, note->key_len) == 0;
}

static inline void join(struct hs_heat_pending *note, const struct hs_heat_access *access)
{
	note->bytes += (uint32_t)access->bytes;
	note->count++;
}

void hs_heat_note(struct hs_heat *heat, const struct hs_heat_access *access)
{
	if (heat->notes_count > 0 && is_alike(&heat->notes[heat->notes_count - 1], access)) {
		join(&heat->notes[heat->notes_count - 1], access);
		return;
	}
	hs_check(heat->notes_count < HS_HEAT_NOTES_MAX);
	prepare(heat, &heat->notes[heat->notes_count++], access);
}

struct hs_heat_warmth hs_heat_settle(struct hs_heat *heat, uint64_t each_ns)
{
	struct hs_heat_warmth warmth = {0};

	if (heat->notes_count > 0)
		warmth = count_notes(heat, heat->notes, heat->notes_count, each_ns);
	heat->notes_count = 0;
	return warmth;
}

struct hs_heat_warmth hs_heat_run_end(struct hs_heat *heat)
{
	struct hs_heat_warmth warmth = {0};

	if (heat->run.count > 0)
		warmth = count_notes(heat, &heat->run, 1, heat->run_each_ns);
	heat->run.count = 0;
	return warmth;
}

void hs_heat_run_add(struct hs_heat *heat, const struct hs_heat_access *access, uint64_t time_ns)
{
	struct hs_heat_pending *run = &heat->run;
	bool alike = run->count > 0 && is_alike(run, access);

	if (alike && heat->run_each_ns == time_ns) {
		join(run, access);
		return;
	}
	hs_heat_run_end(heat);
	if (alike) { /* only the time differs: the key's hash and prefixes are reused */
		run->bytes = 0;
		join(run, access);
	} else {
		prepare(heat, run, access);
	}
	heat->run_each_ns = time_ns;
}

struct hs_heat_warmth hs_heat_add(struct hs_heat *heat, const struct hs_heat_access *access,
				  uint64_t time_ns)
{
	struct hs_heat_pending note;

	prepare(heat, &note, access);
	return count_notes(heat, &note, 1, time_ns);
}

void hs_heat_add_keyless(struct hs_heat *heat, uint16_t partition, bool write, bool failed,
			 uint64_t bytes, uint64_t time_ns)
{
	count_partition(heat, partition, write, failed, 1, bytes, time_ns, bucket_of(time_ns));
}

void hs_heat_inflight(struct hs_heat *heat, uint16_t partition, int change)
{
	hs_counter_add(&heat->partitions[partition].inflight, (uint64_t)(int64_t)change);
}
