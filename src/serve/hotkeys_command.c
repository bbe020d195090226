/* HOTKEYS, compatible with Redis 8.6: the same words, checks and errors in the same order, the same fields in the
 * same order, and the reply as an array of one map. Two differences on purpose: SLOTS works without cluster mode,
 * and the figures of a session that has ended do not change. */
#include "serve/host.h"

#include "base/num.h"
#include "serve/clock.h"
#include "telemetry/board.h"
#include "telemetry/hotkeys.h"
#include "wire/reply.h"

#include <sys/resource.h>

static uint64_t timeval_us(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_usec;
}

static struct hs_hotkeys_cpu cpu_now(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (struct hs_hotkeys_cpu){timeval_us(usage.ru_utime), timeval_us(usage.ru_stime)};
}

void hs_hotkeys_harvest(struct hs_host *host, struct hs_now now)
{
	if (hs_hotkeys_due(host->hotkeys, now))
		hs_hotkeys_read(host->hotkeys, now, cpu_now());
}

/* Ends the session if its duration is over, and reads its keys. Returns the time. */
static struct hs_now read_now(struct hs_host *host)
{
	struct hs_now now = hs_clock_now();

	hs_hotkeys_read(host->hotkeys, now, cpu_now());
	return now;
}

/* ---- START ---- */

/* The rest of a request that is being read. */
struct words {
	const struct hs_bytes *next;
	size_t count;
	struct hs_reply *reply;
};

static bool refuse(const struct words *words, const char *why)
{
	hs_reply_error(words->reply, why);
	return false;
}

/* Takes the word if it is `name` and a value follows. */
static bool take_option(struct words *words, const char *name)
{
	if (words->count < 2 || !hs_bytes_is_word(*words->next, name))
		return false;
	words->next++;
	words->count--;
	return true;
}

static bool take_number(struct words *words, int64_t min, int64_t max, int64_t *value,
			const char *why)
{
	if (!hs_num_parse_int(*words->next, value) || *value < min || *value > max)
		return refuse(words, why);
	words->next++;
	words->count--;
	return true;
}

/* Takes `count` words; unknown ones are ignored, since a later Redis may have more metrics. */
static bool take_metrics(struct words *words, struct hs_hotkeys_options *options)
{
	static const struct {
		const char *name, *twice;
	} known[HS_HOTKEYS_METRICS] = {
		[HS_HOTKEYS_CPU] = {"cpu", "ERR METRICS CPU defined more than once!"},
		[HS_HOTKEYS_NET] = {"net", "ERR METRICS NET defined more than once!"},
	};
	bool any = false;
	int64_t count;

	if (!take_option(words, "metrics"))
		return refuse(words, "ERR METRICS parameter is required");
	if (!take_number(words, 1, HS_HOTKEYS_METRICS, &count,
			 "ERR METRICS count must be > 0 and <= 2"))
		return false;
	for (; count > 0 && words->count > 0; count--, words->next++, words->count--) {
		for (int i = 0; i < HS_HOTKEYS_METRICS; i++) {
			if (!hs_bytes_is_word(*words->next, known[i].name))
				continue;
			if (options->metrics[i])
				return refuse(words, known[i].twice);
			options->metrics[i] = any = true;
		}
	}
	if (count > 0)
		return refuse(words,
			      "ERR METRICS count does not match number of metric types provided");
	return any || refuse(words, "ERR METRICS no valid metrics passed. Supported: CPU|NET");
}

/* Duplicates are the last check, as in Redis, which sorts the slots first. */
static bool take_slots(struct words *words, struct hs_hotkeys_options *options)
{
	bool twice = false;
	int64_t count, slot;

	if (options->slots_count > 0)
		return refuse(words, "ERR SLOTS parameter already specified");
	if (!take_number(words, 1, HS_SLOTS, &count, "ERR SLOTS count must be between 1 and 16384"))
		return false;
	if ((size_t)count > words->count)
		return refuse(words, "ERR not enough slot numbers provided");
	for (; count > 0; count--) {
		uint64_t bit;

		if (!take_number(words, 0, HS_SLOTS - 1, &slot, "ERR Invalid or out of range slot"))
			return false;
		bit = (uint64_t)1 << (slot % 64);
		twice = twice || (options->slots[slot / 64] & bit);
		options->slots[slot / 64] |= bit;
		options->slots_count++;
	}
	return !twice || refuse(words, "ERR duplicate slot number");
}

static bool take_start(struct words *words, struct hs_hotkeys_options *options)
{
	int64_t value;

	*options = (struct hs_hotkeys_options){.count = HS_HOTKEYS_COUNT_DEFAULT, .sample = 1};
	if (!take_metrics(words, options))
		return false;
	while (words->count > 0) {
		if (take_option(words, "count")) {
			if (!take_number(words, 1, HS_HOTKEYS_COUNT_MAX, &value,
					 "ERR COUNT must be between 1 and 64"))
				return false;
			options->count = (uint32_t)value;
		} else if (take_option(words, "duration")) {
			if (!take_number(words, 1, HS_HOTKEYS_DURATION_MAX_S, &value,
					 "ERR DURATION must be between 1 and 1000000"))
				return false;
			options->duration_us = (uint64_t)value * 1000000;
		} else if (take_option(words, "sample")) {
			if (!take_number(words, 1, INT32_MAX, &value,
					 "ERR SAMPLE ratio must be positive"))
				return false;
			options->sample = value;
		} else if (take_option(words, "slots")) {
			if (!take_slots(words, options))
				return false;
		} else {
			return refuse(words, "ERR syntax error");
		}
	}
	return true;
}

_Static_assert(HS_HOTKEYS_METRICS == 2 && HS_HOTKEYS_COUNT_MAX == 64 && HS_SLOTS == 16384 &&
		       HS_HOTKEYS_DURATION_MAX_S == 1000000,
	       "the error texts name these numbers");

void hs_host_hotkeys_start(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	struct hs_now now = read_now(host);
	struct words words = {.next = op->argv + 2, .count = op->argc - 2, .reply = reply};
	struct hs_hotkeys_options options;

	if (hs_hotkeys_active(host->hotkeys))
		hs_reply_error(reply, "ERR hotkey tracking session already in progress");
	else if (take_start(&words, &options)) {
		int started = hs_hotkeys_start(host->hotkeys, &options, now, cpu_now());

		hs_check(started == 0);
		hs_reply_ok(reply);
	}
}

/* ---- GET ---- */

static void reply_field(struct hs_reply *reply, const char *name, uint64_t value)
{
	hs_reply_pair_int(reply, name, (int64_t)value);
}

/* A single slot is an array of one, a range of slots an array of its first and last. */
static void reply_slots(struct hs_reply *reply, const struct hs_hotkeys_options *options)
{
	uint32_t first, last;
	size_t runs = 0;

	for (first = 0; hs_hotkeys_slots(options, &first, &last); first = last + 1)
		runs++;
	hs_reply_bulk_text(reply, "selected-slots");
	hs_reply_array(reply, runs);
	for (first = 0; hs_hotkeys_slots(options, &first, &last); first = last + 1) {
		hs_reply_array(reply, first == last ? 1 : 2);
		hs_reply_int(reply, first);
		if (first != last)
			hs_reply_int(reply, last);
	}
}

/* A flat array of keys and numbers, in RESP3 as well. */
static void reply_keys(struct hs_host *host, struct hs_reply *reply, const char *name,
		       enum hs_hotkeys_metric metric, uint64_t unit)
{
	struct hs_hotkeys_key keys[HS_HOTKEYS_COUNT_MAX];
	size_t count = hs_hotkeys_top(host->hotkeys, metric, keys);

	while (count > 0 && keys[count - 1].sums[metric] < unit)
		count--;
	hs_reply_bulk_text(reply, name);
	hs_reply_array(reply, 2 * count);
	for (size_t i = 0; i < count; i++) {
		struct hs_bytes kept = {keys[i].name, keys[i].name_len};
		char shown[HS_BOARD_NAME_BYTES];
		uint32_t len = hs_board_show_name(keys[i].public_id, kept, keys[i].full_len, shown);

		hs_reply_bulk(reply, (struct hs_bytes){shown, len});
		hs_reply_int(reply, (int64_t)(keys[i].sums[metric] / unit));
	}
}

enum { NS_PER_US = 1000, US_PER_MS = 1000 };

static void reply_totals(struct hs_reply *reply, const struct hs_hotkeys_options *options,
			 const struct hs_hotkeys_totals *totals)
{
	bool slots = options->slots_count > 0, sampled = slots && options->sample > 1;
	uint64_t selected_us = totals->selected[HS_HOTKEYS_CPU] / NS_PER_US;
	uint64_t selected_bytes = totals->selected[HS_HOTKEYS_NET];

	if (sampled)
		reply_field(reply, "sampled-commands-selected-slots-us", selected_us);
	if (slots)
		reply_field(reply, "all-commands-selected-slots-us", selected_us);
	reply_field(reply, "all-commands-all-slots-us", totals->all[HS_HOTKEYS_CPU] / NS_PER_US);
	if (sampled)
		reply_field(reply, "net-bytes-sampled-commands-selected-slots", selected_bytes);
	if (slots)
		reply_field(reply, "net-bytes-all-commands-selected-slots", selected_bytes);
	reply_field(reply, "net-bytes-all-commands-all-slots", totals->all[HS_HOTKEYS_NET]);
}

void hs_host_hotkeys_get(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	const struct hs_hotkeys_options *options;
	const struct hs_hotkeys_totals *totals;
	bool cpu, net;
	size_t fields = 7;

	(void)op;
	read_now(host);
	options = hs_hotkeys_options(host->hotkeys);
	totals = hs_hotkeys_totals(host->hotkeys);
	if (!options) {
		hs_reply_null(reply);
		return;
	}
	cpu = options->metrics[HS_HOTKEYS_CPU];
	net = options->metrics[HS_HOTKEYS_NET];
	fields += (cpu ? 3u : 0) + (net ? 2u : 0);
	fields += options->slots_count == 0 ? 0u : options->sample > 1 ? 4u : 2u;
	hs_reply_array(reply, 1);
	hs_reply_map(reply, fields);
	reply_field(reply, "tracking-active", hs_hotkeys_active(host->hotkeys));
	reply_field(reply, "sample-ratio", (uint64_t)options->sample);
	reply_slots(reply, options);
	reply_totals(reply, options, totals);
	reply_field(reply, "collection-start-time-unix-ms",
		    (uint64_t)(totals->started_wall_us / US_PER_MS));
	reply_field(reply, "collection-duration-ms", totals->lasted_us / US_PER_MS);
	if (cpu) {
		reply_field(reply, "total-cpu-time-user-ms", totals->cpu.user_us / US_PER_MS);
		reply_field(reply, "total-cpu-time-sys-ms", totals->cpu.sys_us / US_PER_MS);
	}
	if (net)
		reply_field(reply, "total-net-bytes", totals->selected[HS_HOTKEYS_NET]);
	if (cpu)
		reply_keys(host, reply, "by-cpu-time-us", HS_HOTKEYS_CPU, NS_PER_US);
	if (net)
		reply_keys(host, reply, "by-net-bytes", HS_HOTKEYS_NET, 1);
}

/* ---- STOP, RESET ---- */

void hs_host_hotkeys_stop(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	(void)op;
	read_now(host);
	if (hs_hotkeys_stop(host->hotkeys) == 0)
		hs_reply_ok(reply);
	else
		hs_reply_null(reply);
}

void hs_host_hotkeys_reset(struct hs_host *host, struct hs_op *op, struct hs_reply *reply)
{
	(void)op;
	read_now(host);
	if (hs_hotkeys_reset(host->hotkeys) == 0)
		hs_reply_ok(reply);
	else
		hs_reply_error(reply,
			       "ERR hotkey tracking session in progress, stop tracking first");
}
