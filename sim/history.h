/* The operation history of clients: every operation on a key, with the moment of its request, the moment of its
 * answer, and the answer. The order and increment checkers read nothing else, so that they know no core, no engine
 * and no RESP. `storm --verify` fills the same history from real servers.
 *
 * A key holds nothing, a whole number, or a text of which only its number matters; and it may have a time to live.
 * An operation ends in one of three ways: it was answered; it was refused and did nothing (its kind is HS_SIM_NONE
 * then); or its outcome is unknown: it has no answer, and may have happened or not. The caller owns the history; one
 * thread. */
#ifndef HS_SIM_HISTORY_H
#define HS_SIM_HISTORY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_sim_kind {
	HS_SIM_GET,	 /* answers the value */
	HS_SIM_SET,	 /* sets `argument` */
	HS_SIM_SETNX,	 /* if the key is missing: answers 1 when it was set */
	HS_SIM_GETSET,	 /* answers the old value */
	HS_SIM_DEL,	 /* answers 1 when there was a value */
	HS_SIM_GETDEL,	 /* answers the old value */
	HS_SIM_INCRBY,	 /* adds `argument`, answers the new value */
	HS_SIM_SETXX,	 /* if the key exists: answers 1 when it was set */
	HS_SIM_SETNXGET, /* as SETNX, answers the old value */
	HS_SIM_SETXXGET, /* as SETXX, answers the old value */
	HS_SIM_GETRANGE, /* answers the value: the range always covers the whole of it */
	HS_SIM_STRLEN,	 /* answers the length of the value, 0 for a missing key */
	HS_SIM_EXISTS,	 /* answers 1 when the key exists */
	HS_SIM_PTTL,	 /* answers the ms left; -1: no time to live, -2: the key is missing */
	HS_SIM_TTL,	 /* the same in seconds, rounded */
	HS_SIM_PEXPIRE,	 /* expires after `ttl_ms`: answers 1 when the key existed */
	HS_SIM_PERSIST,	 /* removes the time to live: answers 1 when there was one */
	HS_SIM_CLEAR,	 /* deletes the key, answers nothing: FLUSHALL, for one key */
	HS_SIM_NONE,	 /* did nothing, answers nothing: it was refused */
	HS_SIM_KINDS,
};

bool hs_sim_kind_reads(enum hs_sim_kind kind); /* a kind that changes nothing */

/* Values are numbers. Clients do not use these, which stand for something else: */
#define HS_SIM_NOTHING (INT64_C(1) << 60)	/* the value of a missing key */
#define HS_SIM_NOT_INTEGER (HS_SIM_NOTHING + 1) /* an answer: the value is no integer */
#define HS_SIM_OVERFLOW (HS_SIM_NOTHING + 2)	/* an answer: the sum would overflow */
/* From here on: the text "t" followed by the rest as a number. */
#define HS_SIM_TEXT (INT64_C(1) << 61)
#define HS_SIM_TEXT_END (HS_SIM_TEXT + (INT64_C(1) << 40))

/* Distance between values that are set: increments of one value do not reach the next. */
#define HS_SIM_VALUE_STEP 1000

#define HS_SIM_NEVER UINT64_MAX /* not answered */

struct hs_sim_op {
	enum hs_sim_kind kind;
	/* Operations of one client on one key happen in their order in the history. */
	uint32_t client;
	uint32_t key;
	uint32_t heatsink; /* the heatsink that got the request */
	/* How many of the following operations happened together with it, in one transaction. They have the same
	 * client, key and times. */
	uint32_t more;
	/* Flags. The first two are about operations without an answer. */
	bool refusable; /* the server may have refused it while later requests of the client ran */
	/* It may happen at any time after its request, in no order with its client's other requests. */
	bool loose;
	bool external; /* a write that another client made directly at the server */
	/* No command: servers lost writes, and `argument` is the value that the key has since then. */
	bool lost_writes;
	/* A write through heatsink of a key that the command does not name (X.BOTH). */
	bool unnamed_key;
	/* A read of a key with a contract: it has no place in the order, but must not be too old. */
	bool may_be_stale;
	bool off;	  /* a read while all mitigations are off */
	int64_t stale_us; /* a read with `may_be_stale`: the age that the contract allows */
	/* The value must have been read from a server at most this many µs before the answer; 0: no limit. */
	int64_t max_age_us;
	int64_t argument;
	int64_t ttl_ms; /* time to live of the value it sets; 0: none */
	/* For the first operation of a transaction that did not run because its watched key had changed: the steps
	 * of the WATCH request and of the EXEC answer. 0 for all other operations. */
	uint64_t watched, lost;
	int64_t answer; /* a value, or 0 or 1; unused for SET */
	/* Request and answer: as steps of the world, which are finer than its clock, and as times on the servers'
	 * clock. */
	uint64_t asked;
	uint64_t answered; /* HS_SIM_NEVER: outcome unknown */
	int64_t asked_us;
	int64_t answered_us; /* valid if it was answered */
};

/* Formats a value for people; returns `text`. */
enum { HS_SIM_VALUE_TEXT_MAX = 32 };
const char *hs_sim_value_text(int64_t value, char text[HS_SIM_VALUE_TEXT_MAX]);

struct hs_sim_history {
	struct hs_sim_op *ops; /* in the order of the requests */
	size_t count;
	size_t cap;
};

void hs_sim_history_deinit(struct hs_sim_history *history);
/* Copies the operation; returns its index. */
size_t hs_sim_history_add(struct hs_sim_history *history, const struct hs_sim_op *op);

/* Appends one line for each operation, for people. */
void hs_sim_history_print(const struct hs_sim_history *history, struct hs_buf *text);

/* The state of a key: its value, and the operation that set its time to live. */
struct hs_sim_state {
	int64_t value;
	/* Its ttl_ms counts from when it happened; NULL: no time to live. */
	const struct hs_sim_op *expires;
};

/* Applies one operation to the state of its key; false: the operation's answer, if it has one, contradicts the
 * state. The caller decides whether the key has expired before. */
bool hs_sim_op_apply(const struct hs_sim_op *op, struct hs_sim_state *state);

/* The earliest and the latest last ms of a time to live that this operation set. INT64_MAX: unknown. */
int64_t hs_sim_op_expires_first(const struct hs_sim_op *op);
int64_t hs_sim_op_expires_last(const struct hs_sim_op *op);

#endif
