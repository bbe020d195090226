/* The history of `storm --command all --verify`: every operation with the stamps at which it was sent and answered.
 * The simulator's checker (sim/check.h) decides whether each key's history is linearizable: is there an order of its
 * operations, each between its two stamps and those of one connection in their order, that explains every reply?
 *
 * The search is for short histories, and memory is limited. So the run is cut into windows: after `--window`
 * operations storm sends no more until all are answered, reads every key that was used, and closes the window. The
 * values read are the start of the next window.
 *
 *     requests ──── last reply ─ read the keys ─ close ─ requests ────
 *     └────────────── one window ─────────────┘
 *
 * An operation with an unknown outcome (lost connection, -UNKNOWN) may happen at any later time or never, also after
 * later requests of the same client: the two may have taken different paths. It must not happen twice, but that can
 * be checked only within its window. So the key of such a window is not used again: the next window uses a new name
 * instead. Any other error means that nothing happened; for several keys at once (MSET) the outcome is unknown, too.
 *
 * A window whose search takes too long is counted as not decided. storm keeps the search short: only a few blind
 * writes (whose reply does not tell their place in the order) are in flight on a key at once.
 *
 * TTLs are far longer than a run; the clocks of both sides may differ by some time (CLOCK_US).
 *
 * One thread. Memory: two arrays of a window's operations, and a few words per key. */
#ifndef HS_CLI_STORM_HISTORY_H
#define HS_CLI_STORM_HISTORY_H

#include "cli/storm.h"
#include "sim/history.h"

/* The reply to one operation. */
enum hs_storm_form {
	HS_STORM_FORM_VALUE,  /* a number as text, or null */
	HS_STORM_FORM_OK,     /* +OK */
	HS_STORM_FORM_OK_NOT, /* +OK; or null: nothing was done */
	HS_STORM_FORM_NUMBER,
};

struct hs_storm_history *hs_storm_history_create(const struct hs_storm_options *options,
						 uint64_t run_tag);
void hs_storm_history_destroy(struct hs_storm_history **history);
/* Writes the key's current name, zero-terminated. */
void hs_storm_history_name(const struct hs_storm_history *history, uint64_t key, char *text,
			   size_t size);
/* A new connection is a new client of the history: returns its number. */
uint32_t hs_storm_history_client(struct hs_storm_history *history);
/* Adds an operation that is about to be sent, and sets its stamp. Operations of one request are added in a row;
 * `more` of the first one says that they happen atomically. Returns its number. */
uint32_t hs_storm_history_add(struct hs_storm_history *history, const struct hs_sim_op *op,
			      enum hs_storm_form form);
/* The record's answer is not in the reply: it is this one, if the request is done. */
void hs_storm_history_set_answer(struct hs_storm_history *history, uint32_t record, int64_t answer);
/* A blind write: its reply is OK or a count, which does not tell its place in the order. */
static inline bool hs_storm_kind_is_blind(enum hs_sim_kind kind)
{
	return kind == HS_SIM_SET || kind == HS_SIM_SETXX || kind == HS_SIM_DEL;
}
/* True if the key has as many blind writes in flight as the search can handle. */
bool hs_storm_history_is_blind(const struct hs_storm_history *history, uint64_t key);
/* `body`: the rest of the reply after its first line, for arrays. */
void hs_storm_history_answer(struct hs_storm_history *history,
			     const struct hs_storm_request *request,
			     const struct hs_parsed_reply *answer, struct hs_bytes body);
void hs_storm_history_lost(struct hs_storm_history *history,
			   const struct hs_storm_request *request);
/* The request was refused or never sent. */
void hs_storm_history_undone(struct hs_storm_history *history,
			     const struct hs_storm_request *request);
/* The window is full: send no more, wait for the replies, read every key that was used, then close the window. */
bool hs_storm_history_is_full(const struct hs_storm_history *history);
bool hs_storm_history_touched(const struct hs_storm_history *history, uint64_t key);
/* The key could not be read before the window is closed. At the end of the run that is a failure. */
void hs_storm_history_unread(struct hs_storm_history *history, uint64_t key, bool at_end);
/* With nothing in flight: checks the window and begins the next one. */
void hs_storm_history_close(struct hs_storm_history *history);
/* The number of closed windows. */
uint64_t hs_storm_history_windows(const struct hs_storm_history *history);
const struct hs_storm_findings *hs_storm_history_findings(const struct hs_storm_history *history);

#endif
