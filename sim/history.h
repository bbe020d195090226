/* What clients saw: every operation on a key with the moment it was asked, the moment it was
 * answered, and the answer. The checkers read this and nothing else, so they know no core, no
 * engine and no RESP.
 *
 * A key holds nothing, a whole number, or a text of which only its own number matters; and perhaps it
 * has a time to live. What came of an operation is one of three things: its answer; nothing, because
 * it was refused (it is HS_SIM_NONE then, whatever it was); or nobody knows: it has no answer, and may
 * have happened or not. */
#ifndef HS_SIM_HISTORY_H
#define HS_SIM_HISTORY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_sim_kind {
	HS_SIM_GET,	 /* answers the value */
	HS_SIM_SET,	 /* sets `argument` */
	HS_SIM_SETNX,	 /* if nothing is there: answers 1 when it was set */
	HS_SIM_GETSET,	 /* answers the old value */
	HS_SIM_DEL,	 /* answers 1 when there was one */
	HS_SIM_GETDEL,	 /* answers the old value */
	HS_SIM_INCRBY,	 /* adds `argument`, answers the new value */
	HS_SIM_SETXX,	 /* if something is there: answers 1 when it was set */
	HS_SIM_SETNXGET, /* as SETNX, answers the old value */
	HS_SIM_SETXXGET, /* as SETXX, answers the old value */
	HS_SIM_GETRANGE, /* answers the value: the whole of it, whatever the range is called */
	HS_SIM_STRLEN,	 /* answers how long the value is, 0 without */
	HS_SIM_EXISTS,	 /* answers 1 when there is one */
	HS_SIM_PTTL,	 /* answers how many ms are left; -1: for ever, -2: nothing is there */
	HS_SIM_TTL,	 /* the same in seconds, rounded */
	HS_SIM_PEXPIRE,	 /* it goes after `ttl_ms`: answers 1 when there was one */
	HS_SIM_PERSIST,	 /* it stays: answers 1 when it would have gone */
	HS_SIM_CLEAR,	 /* it is gone, answers nothing: FLUSHALL, for one key */
	HS_SIM_NONE,	 /* does nothing, answers nothing: it was refused */
	HS_SIM_KINDS,
};

bool hs_sim_kind_reads(enum hs_sim_kind kind); /* changes nothing */

/* Values are numbers. Clients keep away from some, which stand for what is no number. */
#define HS_SIM_NOTHING (INT64_C(1) << 60)	/* the value of a key that is not there */
#define HS_SIM_NOT_INTEGER (HS_SIM_NOTHING + 1) /* an answer: the value is no number */
#define HS_SIM_OVERFLOW (HS_SIM_NOTHING + 2)	/* an answer: the sum would be no number */
#define HS_SIM_TEXT (INT64_C(1) << 61)		/* and above: "t" and the rest as a number */
#define HS_SIM_TEXT_END (HS_SIM_TEXT + (INT64_C(1) << 40))

/* Values that are set are this far apart, so that a few increments do not meet. */
#define HS_SIM_VALUE_STEP 1000

#define HS_SIM_NEVER UINT64_MAX /* not answered */

struct hs_sim_op {
	enum hs_sim_kind kind;
	uint32_t client; /* operations of one client on one key happen in this order */
	uint32_t key;
	uint32_t heatsink; /* through which it was asked */
	/* How many of the operations behind this one happened with it, as one: a transaction. They
	 * have the same client, key and times. */
	uint32_t more;
	/* Of one without an answer: */
	bool refusable; /* those behind it may have happened though it did not */
	bool loose;	/* and before it: it may happen at any time from asking on */
	bool external;	/* a write that did not pass through the process */
	bool lost_writes; /* of those, no command: servers lost writes, and this is what the key holds now */
	bool unnamed_key; /* a write that did, but of a key which its command does not name */
	/* A read whose key has a contract: it has no place in the order, but must not be too old. */
	bool may_be_stale;
	bool off;	    /* a read while all mitigations are turned off */
	int64_t stale_us;   /* so old */
	int64_t max_age_us; /* and a server must have been asked so lately; 0: who cares */
	int64_t argument;
	int64_t ttl_ms; /* of what it sets; 0: for ever */
	/* Of the first operation of a transaction that did not run, because its watched key had changed: the steps at
	 * which its WATCH was asked and its EXEC was answered. 0: of all others. */
	uint64_t watched, lost;
	int64_t answer; /* a value, or 0 or 1; unused for SET */
	/* In steps of the world, which are finer than its clock; and on the clock of servers. */
	uint64_t asked;
	uint64_t answered; /* HS_SIM_NEVER: outcome unknown */
	int64_t asked_us;
	int64_t answered_us; /* if it was */
};

/* A value for people. */
enum { HS_SIM_VALUE_TEXT_MAX = 32 };
const char *hs_sim_value_text(int64_t value, char text[HS_SIM_VALUE_TEXT_MAX]);

struct hs_sim_history {
	struct hs_sim_op *ops; /* in the order asked */
	size_t count;
	size_t cap;
};

void hs_sim_history_deinit(struct hs_sim_history *history);
/* Returns its index. */
size_t hs_sim_history_add(struct hs_sim_history *history, const struct hs_sim_op *op);

/* One line each, for people. */
void hs_sim_history_print(const struct hs_sim_history *history, struct hs_buf *text);

/* What a key holds, and who said how long. */
struct hs_sim_state {
	int64_t value;
	const struct hs_sim_op *expires; /* its ttl_ms counts from when it happened; NULL: never */
};

/* One operation on a key that holds this: changes it, and says whether the operation's answer, if it
 * has one, is right. A key that expires is still there: when it goes is for the caller to say. */
bool hs_sim_op_apply(const struct hs_sim_op *op, struct hs_sim_state *state);

/* In ms: when, at the earliest and at the latest, was the last moment of what this operation gave a
 * time to live? INT64_MAX: nobody knows. */
int64_t hs_sim_op_expires_first(const struct hs_sim_op *op);
int64_t hs_sim_op_expires_last(const struct hs_sim_op *op);

#endif
