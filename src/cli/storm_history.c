#include "cli/storm_history.h"

#include "base/err.h"
#include "base/mem.h"
#include "base/num.h"
#include "cli/storm_check.h"

#include <inttypes.h>
#include <stdarg.h>

enum {
	BLIND_MAX = 4,
	CLOCK_US = 100000, /* how far the clocks of storm and a server may differ */
};
static const uint64_t STEPS_MAX = 50000;

enum state { OPEN, DONE, DROPPED };

struct record {
	struct hs_sim_op op;
	uint8_t form;
	uint8_t state;
	bool answer_known; /* its answer was set before: the reply does not contain it */
};

struct key {
	uint32_t name;	       /* how often it was renamed */
	bool renamed;	       /* rename it when the window is closed */
	uint32_t records;      /* in this window */
	uint32_t blind;	       /* of them: blind writes that are not answered yet */
	struct hs_sim_op base; /* a SET of its value at the start of the window */
	struct hs_sim_op last; /* a SET of the value and TTL read last */
};

struct hs_storm_history {
	const struct hs_storm_options *options;
	uint32_t run_tag;
	uint32_t clients;
	uint64_t stamp; /* stamp of the last event */
	uint64_t windows;
	struct record *records; /* of this window, in the order sent */
	uint32_t count, cap;
	struct key *keys;
	struct hs_sim_history checked_ops; /* the records of one key, for the checker */
	struct hs_storm_findings findings;
};

static void forget(struct hs_sim_op *set)
{
	*set = (struct hs_sim_op){.kind = HS_SIM_SET, .argument = HS_SIM_NOTHING};
}

struct hs_storm_history *hs_storm_history_create(const struct hs_storm_options *options,
						 uint64_t run_tag)
{
	struct hs_storm_history *history = hs_mem_zalloc(sizeof *history);

	history->options = options;
	history->run_tag = (uint32_t)run_tag;
	history->keys = hs_mem_zalloc(options->keys * sizeof *history->keys);
	for (uint64_t i = 0; i < options->keys; i++) {
		forget(&history->keys[i].base);
		forget(&history->keys[i].last);
	}
	return history;
}

void hs_storm_history_destroy(struct hs_storm_history **history)
{
	if (!*history)
		return;
	hs_sim_history_deinit(&(*history)->checked_ops);
	hs_mem_free(&(*history)->records);
	hs_mem_free(&(*history)->keys);
	hs_mem_free(history);
}

void hs_storm_history_name(const struct hs_storm_history *history, uint64_t key, char *text,
			   size_t size)
{
	const char *prefix = history->options->prefix;

	/* The tag keeps the keys of different runs apart. */
	if (history->options->cluster)
		snprintf(text, size, "%s{%08" PRIx32 ":%" PRIu64 "}:%" PRIu64 ":%" PRIu32, prefix,
			 history->run_tag, key / HS_STORM_TAG_KEYS, key, history->keys[key].name);
	else
		snprintf(text, size, "%s%08" PRIx32 ":%" PRIu64 ":%" PRIu32, prefix,
			 history->run_tag, key, history->keys[key].name);
}

uint32_t hs_storm_history_client(struct hs_storm_history *history)
{
	return ++history->clients;
}

const struct hs_storm_findings *hs_storm_history_findings(const struct hs_storm_history *history)
{
	return &history->findings;
}

uint64_t hs_storm_history_windows(const struct hs_storm_history *history)
{
	return history->windows;
}

bool hs_storm_history_is_full(const struct hs_storm_history *history)
{
	return history->count >= history->options->window;
}

bool hs_storm_history_touched(const struct hs_storm_history *history, uint64_t key)
{
	return history->keys[key].records > 0;
}

static void __attribute__((format(printf, 3, 4)))
fail(struct hs_storm_history *history, uint64_t key, const char *format, ...)
{
	struct hs_storm_findings *findings = &history->findings;

	if (findings->failed < HS_STORM_FINDINGS_MAX) {
		char *text = findings->text[findings->failed];
		size_t len;
		va_list args;

		hs_storm_history_name(history, key, text, HS_STORM_FINDING_TEXT_MAX);
		len = strlen(text);
		va_start(args, format);
		vsnprintf(text + len, HS_STORM_FINDING_TEXT_MAX - len, format, args);
		va_end(args);
	}
	findings->failed++;
}

void hs_storm_history_unread(struct hs_storm_history *history, uint64_t key, bool at_end)
{
	history->keys[key].renamed = true;
	if (at_end)
		fail(history, key, ": could not be read at the end");
}

/* ---- requests ---- */

bool hs_storm_history_is_blind(const struct hs_storm_history *history, uint64_t key)
{
	return history->keys[key].blind >= BLIND_MAX;
}

static int64_t now_us(void)
{
	return (int64_t)(uv_hrtime() / 1000);
}

uint32_t hs_storm_history_add(struct hs_storm_history *history, const struct hs_sim_op *op,
			      enum hs_storm_form form)
{
	struct key *key = &history->keys[op->key];

	if (history->count == history->cap) {
		history->cap = history->cap ? history->cap * 2 : 256;
		history->records =
			hs_mem_realloc(history->records, history->cap * sizeof *history->records);
	}
	history->records[history->count] =
		(struct record){.op = *op, .form = (uint8_t)form, .state = OPEN};
	history->records[history->count].op.asked = ++history->stamp;
	history->records[history->count].op.answered = HS_SIM_NEVER;
	history->records[history->count].op.asked_us = now_us() - CLOCK_US;
	key->records++;
	key->blind += hs_storm_kind_is_blind(op->kind);
	return history->count++;
}

void hs_storm_history_set_answer(struct hs_storm_history *history, uint32_t record, int64_t answer)
{
	history->records[record].op.answer = answer;
	history->records[record].answer_known = true;
}

/* ---- replies ---- */

static void settle(struct hs_storm_history *history, struct record *record, enum state state)
{
	struct key *key = &history->keys[record->op.key];

	record->state = (uint8_t)state;
	key->blind -= hs_storm_kind_is_blind(record->op.kind);
	if (state != DONE)
		return;
	record->op.answered = history->stamp;
	record->op.answered_us = now_us() + CLOCK_US;
	if (record->op.kind == HS_SIM_GET && !record->answer_known) {
		key->last.argument = record->op.answer;
	} else if (record->op.kind == HS_SIM_PTTL) {
		key->last.ttl_ms = record->op.answer > 0 ? record->op.answer : 0;
		key->last.asked_us = record->op.asked_us;
		key->last.answered_us = record->op.answered_us;
	}
}

void hs_storm_history_undone(struct hs_storm_history *history,
			     const struct hs_storm_request *request)
{
	for (uint32_t i = 0; i < request->records; i++)
		settle(history, &history->records[request->record + i], DROPPED);
}

/* The outcome is unknown: the operations may happen at any time after they were sent; atomically, unless `apart` says
 * that the transaction was none. */
static void leave_open(struct hs_storm_history *history, const struct hs_storm_request *request,
		       bool apart)
{
	bool as_one =
		request->records > 0 && history->records[request->record].op.more > 0 && !apart;

	for (uint32_t i = 0; i < request->records; i++) {
		struct record *record = &history->records[request->record + i];

		record->op.loose = true;
		if (!as_one)
			record->op.more = 0;
		if (hs_sim_kind_reads(record->op.kind) && !as_one) {
			settle(history, record, DROPPED);
			continue;
		}
		history->keys[record->op.key].renamed = true;
		history->findings.unknown += !hs_sim_kind_reads(record->op.kind);
	}
}

void hs_storm_history_lost(struct hs_storm_history *history, const struct hs_storm_request *request)
{
	history->stamp++;
	leave_open(history, request, false);
}

/* Sets the record's answer from the reply. False: no server may reply this. */
static bool read_answer(struct record *record, const struct hs_parsed_reply *answer)
{
	int64_t *to = &record->op.answer;

	switch ((enum hs_storm_form)record->form) {
	case HS_STORM_FORM_VALUE:
		*to = HS_SIM_NOTHING;
		return answer->type == HS_PARSED_NULL ||
		       (answer->type == HS_PARSED_BULK && hs_num_parse_int(answer->text, to));
	case HS_STORM_FORM_OK:
		return answer->type == HS_PARSED_STATUS;
	case HS_STORM_FORM_OK_NOT:
		*to = answer->type == HS_PARSED_STATUS;
		return answer->type == HS_PARSED_STATUS || answer->type == HS_PARSED_NULL;
	case HS_STORM_FORM_NUMBER:
		*to = answer->integer;
		return answer->type == HS_PARSED_INT;
	}
	return false;
}

static void read_reply(struct hs_storm_history *history, struct record *record,
		       const struct hs_parsed_reply *answer)
{
	if (read_answer(record, answer)) {
		settle(history, record, DONE);
		return;
	}
	fail(history, record->op.key, ": a reply of the wrong type");
	settle(history, record, DROPPED);
}

static void read_error(struct hs_storm_history *history, const struct hs_storm_request *request,
		       struct hs_bytes text)
{
	/* MSET may have been done in part. If MULTI was refused, the commands before the EXEC were not queued, but
	 * run. */
	if (hs_bytes_begins(text, HS_LIT("ERR EXEC without MULTI")))
		leave_open(history, request, true);
	else if (hs_storm_outcome_is_unknown(text) || request->reply_shape == HS_STORM_REPLY_SHARED)
		leave_open(history, request, false);
	else
		hs_storm_history_undone(history, request);
}

/* Takes the elements of an array, one per record without an answer. */
static void read_each(struct hs_storm_history *history, const struct hs_storm_request *request,
		      const struct hs_parsed_reply *answer, struct hs_bytes body)
{
	struct record *records = &history->records[request->record];
	int64_t wanted = 0;

	if (answer->type == HS_PARSED_NULL && request->depends_on_watch) {
		hs_storm_history_undone(history, request);
		return;
	}
	for (uint32_t i = 0; i < request->records; i++)
		wanted += !records[i].answer_known;
	if (answer->type != HS_PARSED_ARRAY || answer->count != wanted) {
		fail(history, request->key,
		     answer->type == HS_PARSED_NULL ? ": EXEC replied null, but no key was watched"
						    : ": a reply of the wrong type");
		hs_storm_history_undone(history, request);
		return;
	}
	for (uint32_t i = 0; i < request->records; i++) {
		struct hs_parsed_reply element;
		int64_t used;

		if (records[i].answer_known) {
			settle(history, &records[i], DONE);
			continue;
		}
		used = hs_parse_reply_head(&element, body.data, body.len);
		hs_check(used > 0); /* the reply is complete */
		body = (struct hs_bytes){body.data + used, body.len - (size_t)used};
		read_reply(history, &records[i], &element);
	}
}

void hs_storm_history_answer(struct hs_storm_history *history,
			     const struct hs_storm_request *request,
			     const struct hs_parsed_reply *answer, struct hs_bytes body)
{
	history->stamp++;
	history->findings.checked++;
	if (request->reply_shape == HS_STORM_REPLY_NONE)
		return;
	if (answer->type == HS_PARSED_ERROR) {
		read_error(history, request, answer->text);
	} else if (request->reply_shape == HS_STORM_REPLY_EACH) {
		read_each(history, request, answer, body);
	} else {
		for (uint32_t i = 0; i < request->records; i++)
			read_reply(history, &history->records[request->record + i], answer);
	}
}

/* ---- the check of a window ---- */

/* Collects one key's records for the checker. The value before the window becomes a SET before all others. */
static void gather(struct hs_storm_history *history, uint32_t key)
{
	struct hs_sim_history *checked_ops = &history->checked_ops;

	checked_ops->count = 0;
	if (history->keys[key].base.argument != HS_SIM_NOTHING)
		hs_sim_history_add(checked_ops, &history->keys[key].base);
	for (uint32_t i = 0; i < history->count; i++) {
		const struct record *record = &history->records[i];
		struct hs_sim_op op = record->op;

		if (op.key != key || record->state == DROPPED)
			continue;
		op.key = 0;
		hs_sim_history_add(checked_ops, &op);
	}
}

/* Writes the history to a file, so that it can be checked again, and appends its path to `why`. */
static void keep(struct hs_storm_history *history, uint32_t key, struct hs_buf *why)
{
	char name[HS_STORM_FINDING_TEXT_MAX], path[HS_STORM_FOLDER_MAX + HS_STORM_FINDING_TEXT_MAX];
	int rc;

	if (history->findings.failed >= HS_STORM_FINDINGS_MAX)
		return;
	hs_storm_history_name(history, key, name, sizeof name);
	rc = hs_storm_check_save(&history->checked_ops, history->options->history_folder, name,
				 path, sizeof path);
	if (rc == 0)
		hs_buf_printf(why, "; see 'heatsink storm --check-history %s'", path);
	else
		hs_buf_printf(why, "; its history could not be written to '%s': %s", path,
			      strerror(-rc));
}

static void check_key(struct hs_storm_history *history, uint32_t key)
{
	struct hs_buf why = {0};
	int rc;

	gather(history, key);
	rc = hs_storm_check(&history->checked_ops, STEPS_MAX, &why);
	history->findings.windows++;
	if (rc == HS_ELIMIT)
		history->findings.undecided++;
	if (rc == HS_EINVAL) {
		keep(history, key, &why);
		fail(history, key, ": %.*s", (int)why.len, why.data);
		history->keys[key].renamed = true;
	}
	hs_buf_deinit(&why);
}

void hs_storm_history_close(struct hs_storm_history *history)
{
	for (uint32_t i = 0; i < history->options->keys; i++) {
		struct key *key = &history->keys[i];

		if (key->records == 0)
			continue;
		check_key(history, i);
		key->base = key->last;
		if (key->renamed) {
			key->name++;
			forget(&key->base);
		}
		key->renamed = false;
		key->records = key->blind = 0;
	}
	history->count = 0;
	history->windows++;
}
