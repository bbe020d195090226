/* Folding: many requests for one hot key that wait at the same time become one or two requests to the
 * engine, and each caller is answered exactly as if it had been alone (law 2).
 *
 *     ask ─ waiting ─ plan ─┬─ batch: GET k          for all who read it
 *                           ├─ batch: INCRBY k 7     for seven INCRs; each gets its own number
 *                           └─ batch: SET k last     for SETs, and what was asked between them
 *                                      └─ reply ─ answer, one by one ─ the next plan
 *
 * The caller (absorb/fold/stage.c) has the batches of at most one plan in flight for a key: asks that come
 * meanwhile wait here, and none joins a batch that was sent. A batch is linearized where the engine runs it. Every
 * client in it asked before it was sent and is answered after, so each answer is one that a single Redis could
 * have given. Asks of one client keep their order: within a batch because every order in which its asks are
 * evaluated keeps each client's, between batches because a client is in at most one batch of a plan; what else it
 * asked waits for the next plan.
 *
 * What a batch may hold, in the order asked:
 *   read  equal arguments and dialect: one reply for all. Nothing is derived.
 *   add   INCR, DECR, INCRBY, DECRBY, each client's of one sign (0 is of either), their magnitudes
 *         below 2^62 in sum unless there is but one. The engine adds the net, 0 included: the key is
 *         made, an error is told. Counting back gives the number before them. GET, STRLEN and EXISTS
 *         behind the first of them are answered from it.
 *   set   SET of a value, plain or with EX or PX. Everything behind it that follows from the value is
 *         worked out here; the last value goes to the engine with the last SET's expiry.
 *
 * Adds near a limit. The net can fit where the order asked does not: at the highest number, one
 * client's INCR before another's DECR. Such a batch is evaluated in another order: at the upper limit
 * all asks of clients that take away, as they were asked, then all others, as they were asked; at the
 * lower limit clients that add are first. The number so moves away from the limit, by less than 2^62
 * and thus not to the other one, and then back to the number that the engine has. A single Redis could
 * have taken that order: nobody in the batch was answered before everybody in it had asked, and no
 * client has asks in both parts. Who reads before anything is added there finds the key: a missing one
 * counts from 0, which is near no limit. Where the net does not fit either, the engine says so, and
 * nothing was done.
 *
 * When the engine refuses a batch, nothing was done (an outcome that is unknown is an error that says
 * so): who would have got that error alone gets it, the others are run again, each by itself. Where that
 * would come too late, because something of the same client is sent behind it already (`no_retry`), an ask
 * joins only what it could not be run again for: reads a read, adds an add far from the limits, SETs a
 * SET; else it has a batch for itself. A number that somebody has set to its limit since it was last seen
 * is what remains: `again` is called for asks with `no_retry`, too, and the caller has to refuse them. What is
 * worked out here never reaches the engine: whether a server has that command too, and lets heatsink's
 * user have it, is not asked.
 *
 * Knows commands and replies; no session, no engine, no threshold. One thread. Asks and what they
 * point to are the caller's; batches are ours. Who counts waiters and limits them is the caller. */
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
	HS_FOLD_NOT, /* not to be folded: it goes its own way */
	HS_FOLD_GET,
	HS_FOLD_STRLEN,
	HS_FOLD_EXISTS, /* of one key */
	HS_FOLD_TTL,
	HS_FOLD_READ, /* another read of one key whose answer follows from its data alone */
	HS_FOLD_ADD,
	HS_FOLD_SET,
};

struct hs_fold_batch;

/* Which batch has a client's asks, while a plan is made; zero at first and after every call. One
 * for each client, and each queue that it waits in at a time. */
struct hs_fold_client {
	const struct hs_fold_batch *batch;
	int sign;   /* of what it adds in an add batch: 1, -1; 0: nothing so far */
	bool waits; /* with what it asked behind, for the next plan */
	/* The caller's, and never changed here: something else of this client is under way, or will be
	 * sent behind what it has in the queue before that is answered: it leaves in its own dialect. And:
	 * it is the latter. */
	bool fixed_dialect, no_retry;
};

/* One request that waits: part of the caller's own struct. */
struct hs_fold_member {
	struct hs_link link; /* in the queue or in a batch; alone when in neither */
	enum hs_fold_kind kind;
	uint8_t resp; /* how it is answered */
	const struct hs_command *command;
	const struct hs_bytes *argv; /* until it is answered */
	size_t argc;
	struct hs_bytes raw; /* the same as it came; empty: not kept */
	struct hs_fold_client *client;
	bool no_retry; /* its client's, when it was planned */
	/* Filled by hs_fold_classify. */
	uint64_t signature; /* a read's: of all its arguments */
	int64_t number;	    /* what is added; the time of a SET in ms, 0: for ever */
};

/* The kind of a request, as far as command and arguments say; from `command`, `argv`, `argc` and
 * `resp`. Arguments that the engine would find wrong make it HS_FOLD_NOT: the engine says so. */
enum hs_fold_kind hs_fold_classify(struct hs_fold_member *member);

/* The asks of one key that wait, oldest first. */
struct hs_fold {
	struct hs_link waiting;
	/* The number that was last made here was far from the limits: the next batch will not meet them,
	 * unless it is set there by others meanwhile. */
	bool far_from_overflow;
};

/* One request to the engine. */
struct hs_fold_batch {
	struct hs_link link;	/* in a plan */
	struct hs_link members; /* whom it answers, in the order asked */
	uint32_t count;		/* of them */
	enum hs_fold_kind kind; /* READ, ADD or SET */
	/* What is sent. The arguments are the first ask's, or composed; they stay until the batch is
	 * answered. */
	const struct hs_command *command;
	const struct hs_bytes *argv;
	size_t argc;
	struct hs_bytes raw; /* may be empty */
	uint8_t resp;
	/* Ours. */
	struct hs_fold *fold;
	bool sole;		/* nobody may join it */
	bool mixed_dialects;	/* asks of both dialects are in it */
	bool fixed_dialect;	/* one of a client that is: it leaves in that one's dialect */
	int64_t sum;		/* of an add: the net */
	uint64_t magnitude_sum; /* of all its magnitudes: no number on the way is farther off */
	struct hs_bytes composed[5];
	char text[HS_NUM_TEXT_MAX];
};

void hs_fold_init(struct hs_fold *fold);
/* Behind those who wait. One that waits may be taken out again (its link), when its caller has gone. One in a
 * batch stays until it is answered: others' answers may follow from it. */
void hs_fold_add(struct hs_fold *fold, struct hs_fold_member *member);

/* The next plan: moves asks from the queue into batches, which are appended to the list `plan`. Takes
 * all that waits, except what a client asked behind one that is in another batch already. A batch of one ask is
 * that ask as it came: the caller may send it itself and free the batch. Empty when nothing waits. */
void hs_fold_plan(struct hs_fold *fold, struct hs_link *plan);

/* Whether one that waits alone may be sent without a plan: nothing is to be remembered of it. */
bool hs_fold_is_simple(const struct hs_fold_member *member);

struct hs_fold_calls {
	/* The reply of one of them, valid until the call returns. */
	void (*answer)(void *context, struct hs_fold_member *member, struct hs_bytes reply);
	/* It was not run: send it by itself. */
	void (*retry)(void *context, struct hs_fold_member *member);
};

/* The engine's reply to a batch: calls back once for every ask, each taken out of the batch first: those
 * that are answered in the order in which they were evaluated (the order asked, but for adds near a
 * limit; a client's own always), then those to be run again in the order asked. What a client asked
 * behind something that is run again is run again too, so its order is kept. A reply that
 * belongs to no outcome becomes an error that begins with UNKNOWN. `scratch` is emptied and filled
 * along the way. */
void hs_fold_answer(struct hs_fold_batch *batch, struct hs_bytes reply, struct hs_buf *scratch,
		    const struct hs_fold_calls *calls, void *context);
void hs_fold_free(struct hs_fold_batch **batch); /* none of its asks is left in it */

#endif
