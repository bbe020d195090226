/* Folding: combines many waiting requests for one hot key into one or two engine requests (request coalescing
 * for reads, write combining for INCR and SET). Each caller gets a reply that a single Redis could have given
 * it, as law 2 (linearizable per key) requires.
 *
 *     request ─ waiting ─ plan ─┬─ batch: GET k          one reply for all readers
 *                               ├─ batch: INCRBY k 7     for seven INCRs; each gets its own number
 *                               └─ batch: SET k last     for several SETs and the reads between them
 *                                          └─ reply ─ one answer per member ─ the next plan
 *
 * The caller (absorb/fold/stage.c) has the batches of at most one plan in flight for a key. Requests that
 * arrive meanwhile wait here. No request joins a batch that was sent. A batch is linearized where the engine
 * runs it: every member arrived before the batch was sent and is answered after it ran, so each answer is one
 * that a single Redis could have given. The requests of one client keep their order. Within a batch, every
 * order in which members are evaluated keeps each client's order. Between batches, a client is in at most one
 * batch of a plan; its other requests wait for the next plan.
 *
 * A batch holds requests of one of these kinds, in the order of arrival:
 *   read  equal arguments and RESP version: one reply for all. Nothing is computed from it.
 *   add   INCR, DECR, INCRBY, DECRBY. All adds of one client have the same sign (0 has either); their magnitudes
 *         sum to less than 2^62 unless there is only one. The engine adds the net sum. A sum of 0 is sent too: it
 *         creates the key and reports errors. Counting back from the reply gives each member's number. GET, STRLEN
 *         and EXISTS behind the first add are answered from the computed value.
 *   set   SET of a value, plain or with EX or PX. Answers to members behind it are computed from the value; the
 *         last value goes to the engine with the last SET's expiry.
 *
 * Adds near a limit of int64. The net sum can fit where the order of arrival does not: at the highest number,
 * one client's INCR arrives before another's DECR. Such a batch is evaluated in another order. At the upper
 * limit all members of clients that subtract come first, in the order of arrival, then all others in the order
 * of arrival; at the lower limit clients that add come first. So the number moves away from the limit by less
 * than 2^62, never reaches the other limit, and comes back to the number that the engine has. A single Redis
 * could have run that order: no member was answered before all members had arrived, and no client has members
 * in both parts. A read evaluated before the first add is answered as if the key existed. That is right: only a
 * number near a limit reorders a batch, and a missing key counts from 0. If the net sum does not fit either,
 * the engine replies with an error and the batch did not run.
 *
 * If the engine replies with an error, the batch did not run, except for an UNKNOWN error (outcome unknown).
 * Each member that would have got this error alone gets it; all others are sent again one by one. UNKNOWN goes
 * to all members, and none is sent again. So when the connection is lost while a batch of adds or SETs is in
 * flight, each of its clients gets UNKNOWN, and no add can be counted twice. (The engine itself may send a
 * batch of reads again.) A member with `no_retry` cannot be sent again, because a later request of its client
 * was sent already. So it joins only a batch whose error would be its own:
 *
 *     a read               a read batch
 *     an add               an add batch, if the number is far from the limits
 *     a SET                a set batch
 *     anything else        a batch of its own
 *
 * One case is left: another client moved the number to a limit since heatsink last saw it. Then `retry` is
 * called for members with `no_retry` too, and the caller answers them with an error.
 *
 * Members whose answer is computed here never reach the engine. So an engine that lacks the command of such a
 * member, or whose ACL refuses it to heatsink's user, is not noticed.
 *
 * This module (fold.h, plan.c, answer.c, kind.c) knows commands and replies; no session, engine or threshold.
 * stage.h says what the rest of the folder knows. One thread. Members and what they point to belong to the
 * caller; batches belong to this module. The caller counts and limits the waiting members. */
#ifndef HS_ABSORB_FOLD_H
#define HS_ABSORB_FOLD_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/list.h"
#include "base/num.h"
#include "command/command.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hs_fold_kind {
	HS_FOLD_NOT, /* not foldable: sent to the engine as it is */
	HS_FOLD_GET,
	HS_FOLD_STRLEN,
	HS_FOLD_EXISTS, /* with one key */
	HS_FOLD_TTL,
	HS_FOLD_READ, /* another read of one key whose answer depends on the key's data alone */
	HS_FOLD_ADD,
	HS_FOLD_SET,
};

struct hs_fold_batch;

/* One client's state in one key's queue. While a plan is made, `batch` is the batch that has this client's
 * members. All fields but the caller's are zero before and after every call. */
struct hs_fold_client {
	const struct hs_fold_batch *batch;
	int sign;   /* sign of the client's adds in an add batch: 1 or -1; 0: none so far */
	bool waits; /* its remaining members wait for the next plan */
	/* Set by the caller, never changed here. `fixed_dialect`: the client has, or will have, other requests
	 * in flight, so its members must be sent in its own RESP version. `no_retry`: a later request of the
	 * client is sent before this one is answered, so its members cannot be sent again. */
	bool fixed_dialect, no_retry;
};

/* One waiting request. It is embedded in the caller's struct. */
struct hs_fold_member {
	struct hs_link link; /* in the queue or in a batch; else linked to itself */
	enum hs_fold_kind kind;
	uint8_t resp; /* RESP version of the reply, 2 or 3 */
	const struct hs_command *command;
	const struct hs_bytes *argv; /* valid until the member is answered */
	size_t argc;
	struct hs_bytes raw; /* the request's bytes as received; empty: unknown */
	struct hs_fold_client *client;
	bool no_retry; /* copy of the client's `no_retry` when the plan was made */
	/* Filled by hs_fold_classify. */
	uint64_t signature; /* of reads: hash of command, RESP version and arguments */
	int64_t number;	    /* of an add: the amount; of a SET: time to live in ms, 0: none */
};

/* Sets and returns the member's kind, from `command`, `argv`, `argc` and `resp`. Arguments that the engine
 * would reject give HS_FOLD_NOT, so that the engine writes the error. */
enum hs_fold_kind hs_fold_classify(struct hs_fold_member *member);

/* The waiting members of one key, oldest first. */
struct hs_fold {
	struct hs_link waiting;
	/* The last number computed here was far from the int64 limits, so the next batch does not reach them
	 * unless another client sets the number meanwhile. */
	bool far_from_overflow;
};

/* One request to the engine. */
struct hs_fold_batch {
	struct hs_link link;	/* in the list of a plan */
	struct hs_link members; /* requests that it answers, in the order of arrival */
	uint32_t count;		/* number of members */
	enum hs_fold_kind kind; /* HS_FOLD_READ, HS_FOLD_ADD or HS_FOLD_SET */
	/* The command that is sent: the first member's, or one composed below. Valid until the batch is
	 * answered. */
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	struct hs_bytes raw; /* bytes to send as they are; may be empty */
	uint8_t resp;
	/* Private to absorb/fold/plan.c and answer.c. */
	struct hs_fold *fold;
	bool sole;	     /* no other member may join */
	bool mixed_dialects; /* has members of both RESP versions */
	bool fixed_dialect;  /* has a member of a fixed_dialect client: sent in that RESP version */
	int64_t sum;	     /* of an add batch: the net sum */
	/* of an add batch: sum of absolute values; no intermediate number is further from the start */
	uint64_t magnitude_sum;
	struct hs_bytes composed[5];
	char text[HS_NUM_TEXT_MAX];
};

void hs_fold_init(struct hs_fold *fold);
/* Appends a member. The caller may unlink a member that still waits, when its client has gone. A member of a
 * batch stays until the batch is answered, because other members' answers may be computed from it. */
void hs_fold_add(struct hs_fold *fold, struct hs_fold_member *member);

/* Makes the next plan: moves members from the queue into batches and appends the batches to `plan`. Takes every
 * waiting member, except those of a client that is already in another batch of this plan. A batch with one
 * member is that member's request unchanged: the caller may send the request itself and free the batch. No
 * waiting member: no batch. */
void hs_fold_plan(struct hs_fold *fold, struct hs_link *plan);

/* Whether a member that waits alone may be sent without a plan: it cannot bring a number near the limits. */
bool hs_fold_is_simple(const struct hs_fold_member *member);

struct hs_fold_calls {
	/* The member's reply; valid until the call returns. */
	void (*answer)(void *context, struct hs_fold_member *member, struct hs_bytes reply);
	/* The member's request did not run: the caller sends it by itself. */
	void (*retry)(void *context, struct hs_fold_member *member);
};

/* Handles the engine's reply to a batch. Takes every member out of the batch and calls back once for it: first
 * `answer`, in the order of evaluation (order of arrival, except for adds near a limit; always the order within
 * one client), then `retry` in the order of arrival. If a member is retried, later members of the same client
 * are retried too, so that the client's order is kept. A reply that fits no outcome becomes an error that
 * begins with UNKNOWN. `scratch` is cleared and overwritten. */
void hs_fold_answer(struct hs_fold_batch *batch, struct hs_bytes reply, struct hs_buf *scratch,
		    const struct hs_fold_calls *calls, void *context);
void hs_fold_free(struct hs_fold_batch **batch); /* the batch has no members left */

#endif
