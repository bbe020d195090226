/* The reply budget: limits the bytes of large replies in flight, for each partition and each client, so that a
 * client that reads slowly does not delay others (law 9: a slow partition does not delay requests to others).
 * The head of reply_budget.c explains it. In front of servers only; worker's thread only. A request that does
 * not fit holds its session (HS_HOLD_REPLY_BUDGET). */
#ifndef HS_CORE_REPLY_BUDGET_H
#define HS_CORE_REPLY_BUDGET_H

#include "base/limits.h"
#include "base/list.h"
#include <stdbool.h>
#include <stdint.h>

struct hs_call;
struct hs_core;
struct hs_request;
struct hs_session;

enum { HS_REPLY_BUDGET_SIZES = 4096 };

/* The size of the last reply for a key, found by the key's hash. */
struct hs_reply_budget_size {
	uint32_t tag; /* upper bits of the hash; 0: empty */
	uint32_t bytes;
};

struct hs_reply_budget {
	uint64_t bytes[HS_PARTITIONS_MAX + 1]; /* estimated bytes in flight, by partition */
	struct hs_link held;		       /* sessions whose next request does not fit */
	bool freed;			       /* a request has ended since `held` was last tried */
	uint64_t large_until_us;	       /* `sizes` is used until then */
	struct hs_reply_budget_size sizes[HS_REPLY_BUDGET_SIZES];
};

/* Whether the call must wait because its reply would not fit; holds the session then. Call it before the call
 * becomes a request: the core after the stages have passed the call, a stage before it takes a read. */
bool hs_reply_budget_holds(struct hs_core *core, struct hs_session *session, struct hs_call *call);
/* Learns the size of a reply; releases the budget of a finished request; tries the held sessions again. */
void hs_reply_budget_learn(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call, size_t bytes);
void hs_reply_budget_release(struct hs_core *core, struct hs_request *request);
void hs_reply_budget_resume(struct hs_core *core);

#endif
