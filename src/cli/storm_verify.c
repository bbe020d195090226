/* --verify: were the replies possible? Two small models, one for strings and one for counters. Both see only what
 * storm sees: when it sent a request and when the reply came. Every such event gets a stamp from one counter, so
 * "before" means: the reply of one request had come when the other was sent.
 *
 * Strings. Each SET writes a value that contains its stamp, so a read tells which write it saw. For every key the
 * verifier keeps the writes that a read may still see. A request that shows that write W was the newest at some
 * moment between its two stamps (the SET itself, or a GET that returned W) is a sighting of W:
 *
 *         W1 sighted            W2 sighted               a GET that sees W1 here
 *     ──[sent   answered]────[sent     answered]───────[sent …                     is wrong
 *                     └ before ┘              └ before ┘
 *
 * If W1 was sighted before the sighting of W2 began, then W2 came later, and W1 is dead for every request that is
 * sent after the sighting of W2 has ended. A read of a dead write, or of a value that was never written or was
 * refused, is wrong. So is a read of W1 on a connection that has just received W2, if W1 was sighted before W2 was
 * sent: requests of one connection run in their order, also when they were sent together. The value from before the
 * run counts as a write with stamp 0, of any content. A write whose connection was lost may happen at any time or
 * never: it stays possible. At the end every written key is read again, so a lost write shows even if no client read
 * it during the run.
 *
 * Counters. All replies to INCR must differ. Each must be above the value known when the request was sent, and above
 * what its connection had received before. None may exceed the start value plus all increments sent. At the end the
 * value must be start plus acknowledged increments, plus at most those whose outcome is unknown. */
#include "cli/storm.h"

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"

#include <stdarg.h>

static const uint64_t NEVER = UINT64_MAX;

enum {
	HORIZON_EVENTS = 1024,
	TAG_BYTES = 29,	   /* "hs:" run ":" stamp ":" in hexadecimal */
	TAG_STAMP_AT = 12, /* offset of the stamp */
	TAG_STAMP_BYTES = 16,
};

struct write {
	uint64_t stamp;	  /* when it was sent; identifies the write */
	uint64_t sighted; /* the earliest end of a sighting; NEVER: not sighted */
	uint64_t dead;	  /* requests sent after this must not see it; NEVER: alive */
};

struct string_key {
	struct write *writes;
	uint32_t count, cap;
};

struct counter_key {
	int64_t base;	 /* before the run */
	int64_t highest; /* the highest value in any reply */
	uint64_t sent;	 /* increments that may have been applied: all but refused ones */
	uint64_t acked;
	uint64_t *told; /* a bit per value in a reply to INCR, from base + 1 on */
	size_t told_words;
};

struct hs_storm_verify {
	const struct hs_storm_options *options;
	char run_text[9]; /* distinguishes values of this run from those of earlier runs */
	uint64_t stamp;	  /* of the last event */
	uint64_t horizon; /* no request with a smaller stamp is in flight */
	uint64_t horizon_next;
	int64_t seen;		      /* what the last reply showed */
	struct string_key *strings;   /* by key number */
	struct counter_key *counters; /* by key number */
	struct hs_storm_findings findings;
};

struct hs_storm_verify *hs_storm_verify_create(const struct hs_storm_options *options,
					       uint64_t run_tag)
{
	struct hs_storm_verify *verify = hs_mem_zalloc(sizeof *verify);

	verify->options = options;
	snprintf(verify->run_text, sizeof verify->run_text, "%08x", (unsigned)run_tag);
	verify->horizon_next = HORIZON_EVENTS;
	verify->strings = hs_mem_zalloc(options->keys * sizeof *verify->strings);
	verify->counters = hs_mem_zalloc(options->keys * sizeof *verify->counters);
	return verify;
}

void hs_storm_verify_destroy(struct hs_storm_verify **verify)
{
	if (!*verify)
		return;
	for (uint64_t key = 0; key < (*verify)->options->keys; key++) {
		hs_mem_free(&(*verify)->strings[key].writes);
		hs_mem_free(&(*verify)->counters[key].told);
	}
	hs_mem_free(&(*verify)->strings);
	hs_mem_free(&(*verify)->counters);
	hs_mem_free(verify);
}

const struct hs_storm_findings *hs_storm_verify_findings(const struct hs_storm_verify *verify)
{
	return &verify->findings;
}

static void __attribute__((format(printf, 4, 5)))
fail(struct hs_storm_verify *verify, uint64_t key, bool counter, const char *format, ...)
{
	struct hs_storm_findings *findings = &verify->findings;

	if (findings->failed < HS_STORM_FINDINGS_MAX) {
		char *text = findings->text[findings->failed];
		size_t len;
		va_list args;

		hs_storm_key_text(verify->options, key, counter, text, HS_STORM_PREFIX_MAX + 32);
		len = strlen(text);
		va_start(args, format);
		vsnprintf(text + len, HS_STORM_FINDING_TEXT_MAX - len, format, args);
		va_end(args);
	}
	findings->failed++;
}

void hs_storm_verify_unread(struct hs_storm_verify *verify, uint64_t key)
{
	fail(verify, key, hs_storm_key_is_counter(verify->options, key),
	     ": could not be read at the end");
}

/* ---- strings ---- */

static struct write *add_write(struct string_key *key, uint64_t stamp)
{
	if (key->count == key->cap) {
		key->cap = key->cap ? key->cap * 2 : 2;
		key->writes = hs_mem_realloc(key->writes, key->cap * sizeof *key->writes);
	}
	key->writes[key->count] = (struct write){stamp, NEVER, NEVER};
	return &key->writes[key->count++];
}

static struct write *find_write(struct string_key *key, uint64_t stamp)
{
	for (uint32_t i = 0; i < key->count; i++) {
		if (key->writes[i].stamp == stamp)
			return &key->writes[i];
	}
	return NULL;
}

static void remove_write(struct string_key *key, struct write *write)
{
	*write = key->writes[--key->count];
}

/* The write was the newest at some moment from `from` to `to`. */
static void sight(struct hs_storm_verify *verify, struct string_key *key, uint64_t stamp,
		  uint64_t from, uint64_t to)
{
	for (uint32_t i = 0; i < key->count;) {
		struct write *write = &key->writes[i];

		if (write->stamp == stamp) {
			if (write->sighted > to)
				write->sighted = to;
		} else if (write->sighted < from && write->dead > to) {
			write->dead = to;
		}
		/* Replies that contradict each other can kill every write. One write stays, so that the key still
		 * counts as written and its next read fails. */
		if (write->dead < verify->horizon && key->count > 1)
			remove_write(key, write);
		else
			i++;
	}
}

void hs_storm_verify_value(const struct hs_storm_verify *verify,
			   const struct hs_storm_request *request, char *value)
{
	char tag[TAG_BYTES + 1];

	snprintf(tag, sizeof tag, "hs:%s:%016llx:", verify->run_text,
		 (unsigned long long)request->stamp);
	memcpy(value, tag, TAG_BYTES);
	/* The padding differs between writes: a value mixed from two writes is detected. */
	memset(value + TAG_BYTES, (int)('a' + request->stamp % 26),
	       verify->options->value_bytes - TAG_BYTES);
}

/* The stamp in a value; 0: a value from before the run; NEVER: a damaged value. */
static uint64_t stamp_of(const struct hs_storm_verify *verify, struct hs_bytes value)
{
	uint64_t stamp = 0;

	if (value.len < TAG_BYTES || memcmp(value.data, "hs:", 3) != 0 ||
	    memcmp(value.data + 3, verify->run_text, 8) != 0)
		return 0;
	if (value.len != verify->options->value_bytes)
		return NEVER;
	for (int i = 0; i < TAG_STAMP_BYTES; i++) {
		char c = value.data[TAG_STAMP_AT + i];
		unsigned digit = c >= 'a' ? (unsigned)(c - 'a') + 10 : (unsigned)(c - '0');

		if (digit > 15)
			return NEVER;
		stamp = stamp << 4 | digit;
	}
	for (size_t i = TAG_BYTES; i < value.len; i++) {
		if (value.data[i] != (char)('a' + stamp % 26))
			return NEVER;
	}
	return stamp;
}

static void check_get(struct hs_storm_verify *verify, const struct hs_storm_request *request,
		      const struct hs_parsed_reply *answer, enum hs_storm_phase phase)
{
	struct string_key *key = &verify->strings[request->key];
	uint64_t stamp = answer->type == HS_PARSED_NULL ? 0 : stamp_of(verify, answer->text);
	struct write *write = find_write(key, stamp);
	const char *again = phase == HS_STORM_PHASE_FINAL ? " at the end" : "";

	if (stamp == 0 && key->count == 0)
		return; /* not written in this run: any value is right */
	if (stamp == NEVER) {
		fail(verify, request->key, false, ": a damaged value was read%s", again);
	} else if (stamp == 0 && (!write || write->dead < request->stamp)) {
		fail(verify, request->key, false, ": an acknowledged SET is lost: %s was read%s",
		     answer->type == HS_PARSED_NULL ? "no value" : "a value from before the run",
		     again);
	} else if (!write || write->dead < request->stamp) {
		fail(verify, request->key, false, ": SET %llu was read%s, which %s",
		     (unsigned long long)stamp, again,
		     write ? "a later acknowledged SET had replaced"
			   : "was refused, replaced long before, or never sent to this key");
	} else if (write->sighted < (uint64_t)request->floor) {
		fail(verify, request->key, false,
		     ": SET %llu was read, but the connection had already been told of SET %lld",
		     (unsigned long long)stamp, (long long)request->floor);
	} else {
		sight(verify, key, stamp, request->stamp, verify->stamp);
		verify->seen = (int64_t)stamp;
	}
}

/* ---- counters ---- */

/* Marks the value as seen in a reply; false if it was marked. */
static bool tell(struct counter_key *counter, int64_t value)
{
	uint64_t bit = (uint64_t)(value - counter->base - 1);
	size_t word = bit / 64;

	if (word >= counter->told_words) {
		size_t words = counter->told_words ? counter->told_words * 2 : 1;

		while (words <= word)
			words *= 2;
		counter->told = hs_mem_realloc(counter->told, words * sizeof *counter->told);
		memset(counter->told + counter->told_words, 0,
		       (words - counter->told_words) * sizeof *counter->told);
		counter->told_words = words;
	}

	uint64_t mask = (uint64_t)1 << (bit % 64);
	bool first = !(counter->told[word] & mask);

	counter->told[word] |= mask;
	return first;
}

/* Fails if the value is below what was known, or above all increments sent. */
static void check_range(struct hs_storm_verify *verify, const struct hs_storm_request *request,
			int64_t value, const char *what)
{
	struct counter_key *counter = &verify->counters[request->key];
	int64_t low = request->floor + (request->kind == HS_STORM_INCR);
	int64_t high = counter->base + (int64_t)counter->sent;

	if (value >= low && value <= high) {
		if (value > counter->highest)
			counter->highest = value;
		verify->seen = value;
		return;
	}
	fail(verify, request->key, true, ": %s answered %lld, possible was %lld to %lld", what,
	     (long long)value, (long long)low, (long long)high);
}

static void check_incr(struct hs_storm_verify *verify, const struct hs_storm_request *request,
		       const struct hs_parsed_reply *answer)
{
	struct counter_key *counter = &verify->counters[request->key];
	int64_t value = answer->integer;

	counter->acked++;
	if (value > counter->base && value <= counter->base + (int64_t)counter->sent &&
	    !tell(counter, value)) {
		fail(verify, request->key, true, ": two INCRs were answered %lld",
		     (long long)value);
		return;
	}
	check_range(verify, request, value, "INCR");
}

static void check_counter_get(struct hs_storm_verify *verify,
			      const struct hs_storm_request *request,
			      const struct hs_parsed_reply *answer, enum hs_storm_phase phase)
{
	struct counter_key *counter = &verify->counters[request->key];
	int64_t value = 0;

	if (answer->type == HS_PARSED_BULK && !hs_num_parse_int(answer->text, &value)) {
		fail(verify, request->key, true, ": GET answered no number");
		return;
	}
	if (phase == HS_STORM_PHASE_BASE) {
		counter->base = value;
		counter->highest = value;
		return;
	}
	if (phase != HS_STORM_PHASE_FINAL) {
		check_range(verify, request, value, "GET");
		return;
	}

	int64_t low = counter->base + (int64_t)counter->acked;
	int64_t high = counter->base + (int64_t)counter->sent;

	if (value < low || value > high)
		fail(verify, request->key, true,
		     ": the sum is %lld, but start and acknowledged increments give %lld, "
		     "with unknown ones at most %lld",
		     (long long)value, (long long)low, (long long)high);
}

/* ---- events ---- */

void hs_storm_verify_send(struct hs_storm_verify *verify, struct hs_storm_request *request)
{
	request->stamp = ++verify->stamp;
	request->floor = 0;
	if (request->counter) {
		struct counter_key *counter = &verify->counters[request->key];

		request->floor = counter->highest;
		if (request->kind == HS_STORM_INCR)
			counter->sent++;
	} else if (request->kind == HS_STORM_SET) {
		struct string_key *key = &verify->strings[request->key];

		if (key->count == 0) /* the value from before the run */
			add_write(key, 0)->sighted = 0;
		add_write(key, request->stamp);
	}
}

void hs_storm_verify_undone(struct hs_storm_verify *verify, const struct hs_storm_request *request)
{
	if (request->kind == HS_STORM_INCR) {
		verify->counters[request->key].sent--;
	} else if (request->kind == HS_STORM_SET && !request->counter) {
		struct string_key *key = &verify->strings[request->key];
		struct write *write = find_write(key, request->stamp);

		/* A value that was read cannot have been refused. The write stays, for the checks of later reads. */
		if (write && write->sighted != NEVER)
			fail(verify, request->key, false,
			     ": SET %llu was refused, but it had been read",
			     (unsigned long long)request->stamp);
		else if (write)
			remove_write(key, write);
	}
}

bool hs_storm_outcome_is_unknown(struct hs_bytes text)
{
	return hs_bytes_begins(text, HS_LIT("UNKNOWN ")) ||
	       memmem(text.data, text.len, "outcome is unknown", 18) != NULL;
}

static bool fits(enum hs_storm_kind kind, enum hs_parsed_reply_type type)
{
	if (kind == HS_STORM_GET)
		return type == HS_PARSED_BULK || type == HS_PARSED_NULL;
	return type == (kind == HS_STORM_INCR ? HS_PARSED_INT : HS_PARSED_STATUS);
}

int64_t hs_storm_verify_reply(struct hs_storm_verify *verify,
			      const struct hs_storm_request *request,
			      const struct hs_parsed_reply *answer, enum hs_storm_phase phase)
{
	verify->stamp++;
	verify->seen = INT64_MIN;
	verify->findings.checked++;
	if (answer->type == HS_PARSED_ERROR) {
		if (hs_storm_outcome_is_unknown(answer->text))
			hs_storm_verify_lost(verify, request);
		else
			hs_storm_verify_undone(verify, request);
	} else if (!fits(request->kind, answer->type)) {
		fail(verify, request->key, request->counter, ": a reply of the wrong type");
	} else if (request->kind == HS_STORM_INCR) {
		check_incr(verify, request, answer);
	} else if (request->kind == HS_STORM_GET && request->counter) {
		check_counter_get(verify, request, answer, phase);
	} else if (request->kind == HS_STORM_GET) {
		check_get(verify, request, answer, phase);
	} else if (!request->counter) {
		struct string_key *key = &verify->strings[request->key];

		sight(verify, key, request->stamp, request->stamp, verify->stamp);
		verify->seen = (int64_t)request->stamp;
	}
	return verify->seen;
}

void hs_storm_verify_lost(struct hs_storm_verify *verify, const struct hs_storm_request *request)
{
	/* The write stays possible; the increment stays counted as sent. */
	if (request->kind != HS_STORM_GET)
		verify->findings.unknown++;
}

bool hs_storm_verify_wants_horizon(const struct hs_storm_verify *verify, uint64_t *stamp)
{
	*stamp = verify->stamp;
	return verify->stamp >= verify->horizon_next;
}

void hs_storm_verify_horizon(struct hs_storm_verify *verify, uint64_t stamp)
{
	verify->horizon = stamp;
	verify->horizon_next = verify->stamp + HORIZON_EVENTS;
}

bool hs_storm_verify_touched(const struct hs_storm_verify *verify, uint64_t key)
{
	return verify->strings[key].count > 0 || verify->counters[key].sent > 0;
}
