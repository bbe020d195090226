/* What `storm --command all --verify` saw: every operation with the moments at which it was asked and
 * answered, judged with the simulator's checker (sim/check.h): is there an order of the operations
 * on each key, each between its two moments and those of a connection in their order, that explains
 * every answer?
 *
 * The search for such an order is for short histories, and memory has an end, so the run is cut into
 * windows: after `--window` operations storm sends no more until everything is answered, reads every
 * key that was touched, and closes the window. What the keys held then is where the next one begins.
 *
 *     requests ──── last answer ─ read the keys ─ close ─ requests ────
 *     └────────────── one window ──────────────┘
 *
 * What has an unknown outcome (a connection lost, -UNKNOWN) may happen at any later time or never,
 * even behind later requests of the same client: the two need not have taken the same way. It may not
 * happen twice, and that is known only as long as its window lasts. So the key of such a window is
 * not used again: the next window has a key of another name in its place. Every other error means that
 * nothing happened; for several keys at once (MSET), that nobody knows.
 *
 * Windows in which the search takes too long are counted as not decided. It is kept short by what
 * storm sends: of the writes that are answered with a mere OK, which could stand anywhere, only a few
 * are under way on a key at once (is_blind).
 *
 * Times to live are far longer than a run; the clocks on both sides are given some room.
 *
 * One thread. Memory: two arrays of a window's operations, and a few words for every key. */
#ifndef HS_CLI_STORM_HISTORY_H
#define HS_CLI_STORM_HISTORY_H

#include "cli/storm.h"
#include "sim/history.h"

/* What an answer of one operation looks like. */
enum hs_storm_form {
	HS_STORM_FORM_VALUE,  /* a number as text, or null */
	HS_STORM_FORM_OK,     /* +OK */
	HS_STORM_FORM_OK_NOT, /* +OK, or null: it was not done */
	HS_STORM_FORM_NUMBER,
};

struct hs_storm_history *hs_storm_history_create(const struct hs_storm_options *options,
						 uint64_t run_tag);
void hs_storm_history_destroy(struct hs_storm_history **history);
/* The key's name by now, zero terminated. */
void hs_storm_history_name(const struct hs_storm_history *history, uint64_t key, char *text,
			   size_t size);
/* A new connection is a new client: returns its number. */
uint32_t hs_storm_history_client(struct hs_storm_history *history);
/* An operation about to be sent. Those of one request follow each other, the first one's `more`
 * says that they happen as one. The history fills in when it was asked. Returns its number. */
uint32_t hs_storm_history_add(struct hs_storm_history *history, const struct hs_sim_op *op,
			      enum hs_storm_form form);
/* The last operation's answer is not in the reply: it is this, if the request happened. */
void hs_storm_history_set_answer(struct hs_storm_history *history, uint32_t record, int64_t answer);
/* A write that is answered with a mere OK or a count: its place in the order is not told. */
static inline bool hs_storm_kind_is_blind(enum hs_sim_kind kind)
{
	return kind == HS_SIM_SET || kind == HS_SIM_SETXX || kind == HS_SIM_DEL;
}
/* The key has as many writes under way whose place nothing tells as can be searched through. */
bool hs_storm_history_is_blind(const struct hs_storm_history *history, uint64_t key);
/* `body` is what stands behind an array's header. */
void hs_storm_history_answer(struct hs_storm_history *history,
			     const struct hs_storm_request *request,
			     const struct hs_parsed_reply *answer, struct hs_bytes body);
void hs_storm_history_lost(struct hs_storm_history *history,
			   const struct hs_storm_request *request);
/* It did not happen. */
void hs_storm_history_undone(struct hs_storm_history *history,
			     const struct hs_storm_request *request);
/* The window has all it takes: send no more, wait for the answers, read every key that was
 * touched, then close it. */
bool hs_storm_history_is_full(const struct hs_storm_history *history);
bool hs_storm_history_touched(const struct hs_storm_history *history, uint64_t key);
/* The key could not be read before the window is closed; at the end of the run that is a failure. */
void hs_storm_history_unread(struct hs_storm_history *history, uint64_t key, bool at_end);
/* Nothing is under way: judges the window and begins the next one. */
void hs_storm_history_close(struct hs_storm_history *history);
/* How many were closed. */
uint64_t hs_storm_history_windows(const struct hs_storm_history *history);
const struct hs_storm_findings *hs_storm_history_findings(const struct hs_storm_history *history);

#endif
