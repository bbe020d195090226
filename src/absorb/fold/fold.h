/* Folding: combines many waiting requests for one hot key into one or two engine requests (request coalescing for
 * reads, write combining for INCR and SET). Each caller gets a reply that a single Redis could have given it, as
 * law 2 (linearizable per key) requires.
 *
 *     request ─ waiting ─ plan ─┬─ batch: GET k          one reply for all readers
 *                               ├─ batch: INCRBY k 7     for seven INCRs; each gets its own number
 *                               └─ batch: SET k last     for several SETs and the reads between them
 *                                          └─ reply ─ one answer per member ─ the next plan
 *
 * A member is a waiting request; a batch is one engine request that answers its members; a plan is a list of
 * batches to send in order. The caller (absorb/fold/stage.c) sends the next plan of a key when the batches of the
 * last plan are answered, or in the same round of events under a client id whose order the engine keeps. Requests
 * that arrive while batches are in flight wait in the queue (struct hs_fold). No request joins a batch that was
 * sent. A batch is linearized where the engine runs it: every member arrived before the batch was sent and is
 * answered after the batch ran, so each answer is one that a single Redis could have given. The requests of one
 * client keep their order. Within a batch, members are evaluated in an order that keeps each client's order.
 * Between batches, a client is in at most one batch of a plan; the client's other requests wait for the next plan.
 *
 * A batch is of one of these kinds; its members stand in the order of arrival:
 *   read  Reads with equal arguments and RESP version: all members get the engine's one reply.
 *   add   INCR, DECR, INCRBY, DECRBY, and GET, STRLEN and EXISTS after the first of these. The engine adds the
 *         net sum of all adds. A net sum of 0 is sent too: it creates the key and reports errors. The reply minus
 *         the net sum is the number before the batch; each member's answer is computed from there. All adds of
 *         one client have the same sign (0 fits both); the magnitudes of all adds sum to less than 2^62, unless
 *         the batch has only one add.
 *   set   Plain SETs (absorb/plain_set.h), and adds, GET, STRLEN, EXISTS and TTL after the first SET. The engine
 *         gets one SET of the last value with the last SET's expiry. Each member's answer is computed from the
 *         value of the SET before it.
 *
 * Adds near a limit of int64. The net sum can fit where the order of arrival overflows: at the highest number, one
 * client's INCR arrives before another client's DECR. The members of such a batch are evaluated in another order.
 * At the upper limit all members of clients that subtract come first, in the order of arrival, then all other
 * members in the order of arrival; at the lower limit the members of clients that add come first. So the number
 * moves away from the limit by less than 2^62, never reaches the other limit, and comes back to the number that
 * the engine has. A single Redis could have run that order: no member was answered before all members had arrived,
 * and no client has members in both parts. A read evaluated before the first add is answered as if the key
 * existed. That answer is right: only a number near a limit reorders a batch, and a missing key counts from 0. If
 * the net sum overflows too, the engine replies with an error and the batch did not run.
 *
 * If the engine replies with an error, the batch did not run, except for an UNKNOWN error (outcome unknown). Each
 * member that would have got this error alone gets it; all other members are sent again one by one. UNKNOWN goes
 * to all members, and none is sent again. So when the connection is lost while a batch of adds or SETs is in
 * flight, each member's client gets UNKNOWN, and no add can be counted twice. (The engine itself may send a batch
 * of reads again.) A member with `no_retry` cannot be sent again, because a later request of the same client was
 * sent already. Such a member joins a batch only if an error of the batch is an error that the member would have
 * got alone:
 *
 *     a read with no_retry     joins a batch of equal reads
 *     a SET with no_retry      joins a batch that begins with a SET
 *     an add with no_retry     joins a batch that begins with an add, if the number is far from the int64 limits;
 *                              else it gets a batch of its own
 *
 * Two errors can still hit a batch and not its members alone: another client moved the number to a limit since
 * heatsink last saw the number; or the server refuses INCRBY to heatsink's user, or lacks INCRBY, and accepts
 * INCR. Then `retry` is called for members with `no_retry` too, and the caller answers them with an error.
 *
 * Members whose answer is computed here never reach the engine. So heatsink answers, say, a GET inside a batch of
 * INCRs even if the server lacks GET, or the server's ACL refuses GET to heatsink's user.
 *
 * This module (fold.h, value.h, plan.c, answer.c, kind.c) knows commands and replies. It must not know sessions,
 * the engine or thresholds; stage.h says what the rest of the folder knows. One thread. The caller owns the
 * members and what they point to; this module owns the batches. The caller counts and limits the waiting
 * members. */
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
	/* another read of one key; its reply depends on the key's data and the time alone */
	HS_FOLD_READ,
	HS_FOLD_ADD,
	HS_FOLD_SET,
};

struct hs_fold_batch;

/* One client's state in one key's queue. `batch`, `sign` and `waits` are zero before and after every call of this
 * module. */
struct hs_fold_client {
	const struct hs_fold_batch *batch;
	int sign;   /* sign of the client's adds in an add batch: 1 or -1; 0: none so far */
	bool waits; /* this plan takes no more members of the client */
	/* The caller sets these two; this module only reads them. `fixed_dialect`: the client has, or will have,
	 * other requests in flight, so its members must be sent in the client's own RESP version. `no_retry`: a
	 * later request of the client is sent before its members here are answered, so these members cannot be
	 * sent again. */
	bool fixed_dialect, no_retry;
};

/* One waiting request, embedded in the caller's struct. */
struct hs_fold_member {
	/* in hs_fold.waiting or hs_fold_batch.members; else the caller's to use */
	struct hs_link link;
	enum hs_fold_kind kind;
	uint8_t resp; /* RESP version of the reply, 2 or 3 */
	const struct hs_command *command;
	const struct hs_bytes *argv; /* the caller's; valid until the member is answered */
	size_t argc;
	struct hs_bytes raw; /* the request's bytes as received; empty: not available */
	struct hs_fold_client *client;
	bool no_retry; /* client->no_retry when the plan was made */
	/* hs_fold_classify sets these two. */
	uint64_t signature; /* of a read: hash of command, RESP version and arguments */
	/* of an add: the signed amount; of a SET: time to live in ms, 0: none */
	int64_t number;
};

/* Computes the member's kind from `command`, `argv`, `argc` and `resp`, stores it in `kind` and returns it. If the
 * engine would reject the arguments, the kind is HS_FOLD_NOT: the request goes to the engine, which writes the
 * error. */
enum hs_fold_kind hs_fold_classify(struct hs_fold_member *member);

/* The queue of one key: its waiting members, oldest first. */
struct hs_fold {
	struct hs_link waiting;
	/* The key's last known number is far from the int64 limits (hs_fold_is_far_from_overflow). The caller
	 * clears this flag when it sends a write outside the queue that may set any number. A client of another
	 * heatsink, or of the server itself, can still change the number unseen. */
	bool far_from_overflow;
};

/* One request to the engine. */
struct hs_fold_batch {
	struct hs_link link;	/* in the list of a plan */
	struct hs_link members; /* the requests that the batch answers, in the order of arrival */
	uint32_t count;
	enum hs_fold_kind kind; /* HS_FOLD_READ (of any read kind), HS_FOLD_ADD or HS_FOLD_SET */
	/* The command to send: a member's own command, or one composed in `composed`. Valid until the batch is
	 * answered. */
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	struct hs_bytes raw; /* the bytes to send unchanged; empty: send `argv` */
	uint8_t resp;
	/* The fields from here on are private to absorb/fold/plan.c and answer.c. */
	struct hs_fold *fold;
	bool sole;	     /* no other member may join */
	bool mixed_dialects; /* has members of both RESP versions */
	/* has a member whose client has `fixed_dialect`: no member of the other RESP version may join */
	bool fixed_dialect;
	int64_t sum; /* of an add batch: the net sum of its adds */
	/* of an add batch: the sum of its adds' absolute values. In any order of the adds, no intermediate number
	 * is further than this from the number before the batch. */
	uint64_t magnitude_sum;
	struct hs_bytes composed[5];
	char text[HS_NUM_TEXT_MAX];
};

void hs_fold_init(struct hs_fold *fold);
/* Appends a member to the queue. When the client has gone, the caller may unlink a member that still waits. A
 * member of a batch stays until the batch is answered, because the answers of other members may be computed from
 * its value. */
void hs_fold_add(struct hs_fold *fold, struct hs_fold_member *member);

/* Makes the next plan: moves members from the queue into batches and appends the batches to the list `plan`. Takes
 * every waiting member except a member whose client already is in another batch of this plan, and that client's
 * later members. The command of a batch with one member is that member's request unchanged, so the caller may send
 * the request itself and free the batch. If no member waits, `plan` stays unchanged. */
void hs_fold_plan(struct hs_fold *fold, struct hs_link *plan);

/* Whether the caller may send a member that waits alone without making a plan. True for a read and a small add,
 * which cannot bring a number near the int64 limits; false for a SET and a large add, for which the plan must
 * update `far_from_overflow`. */
bool hs_fold_is_simple(const struct hs_fold_member *member);

struct hs_fold_calls {
	/* Gives the member its reply. `reply` is valid until this callback returns. */
	void (*answer)(void *context, struct hs_fold_member *member, struct hs_bytes reply);
	/* The member's request did not run: the caller sends the request by itself, or answers it with an
	 * error. */
	void (*retry)(void *context, struct hs_fold_member *member);
};

/* Handles the engine's reply to a batch. Takes every member out of the batch and calls back once for each: first
 * `answer`, in the order of evaluation (the order of arrival, except for adds near a limit; one client's members
 * always in the order of arrival), then `retry` in the order of arrival. If a member is retried, later members of
 * the same client are retried too, so that the client's order is kept. If the reply is neither an error nor a
 * reply that the batch's command can have, every member gets an error that begins with UNKNOWN. `scratch` is
 * cleared and overwritten. */
void hs_fold_answer(struct hs_fold_batch *batch, struct hs_bytes reply, struct hs_buf *scratch,
		    const struct hs_fold_calls *calls, void *context);
void hs_fold_free(struct hs_fold_batch **batch); /* the batch must have no members left */

#endif
