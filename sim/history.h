/* What clients saw: every operation on a key with the moment it was asked, the moment it was
 * answered, and the answer. The checkers read this and nothing else, so they know no core, no
 * engine and no RESP.
 *
 * A key holds nothing or a whole number. An operation that was never answered (its connection ended
 * first) has an unknown outcome: it may have happened or not. */
#ifndef HS_SIM_HISTORY_H
#define HS_SIM_HISTORY_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

enum hs_sim_kind {
	HS_SIM_GET,    /* answers the value */
	HS_SIM_SET,    /* sets `argument` */
	HS_SIM_SETNX,  /* answers 1 when it was set */
	HS_SIM_GETSET, /* answers the old value */
	HS_SIM_DEL,    /* answers 1 when there was one */
	HS_SIM_GETDEL, /* answers the old value */
	HS_SIM_INCRBY, /* adds `argument`, answers the new value */
	HS_SIM_KINDS,
};

#define HS_SIM_NOTHING INT64_MIN /* the value of a key that is not there */
#define HS_SIM_NEVER UINT64_MAX	 /* not answered */

struct hs_sim_op {
	enum hs_sim_kind kind;
	uint32_t client; /* operations of one client on one key happen in this order */
	uint32_t key;
	/* How many of the operations behind this one happened with it, as one: a transaction. They
	 * have the same client, key and times. */
	uint32_t more;
	bool refusable; /* without an answer: those behind it may have happened though it did not */
	int64_t argument;
	int64_t answer; /* a value, or 0 or 1; unused for SET */
	uint64_t asked;
	uint64_t answered; /* HS_SIM_NEVER: outcome unknown */
};

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

/* One operation on a key that holds `value`: what it leaves there and what it answers. */
int64_t hs_sim_op_apply(const struct hs_sim_op *op, int64_t value, int64_t *answer);

#endif
