/* Replies in flight: how many bytes of replies a partition and a client may have under way. */
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

/* The last reply for a key, by its hash. */
struct hs_reply_budget_size {
	uint32_t tag; /* of the hash; 0: none */
	uint32_t bytes;
};

struct hs_reply_budget {
	uint64_t bytes[HS_PARTITIONS_MAX + 1]; /* reckoned, by partition */
	struct hs_link held;		       /* sessions whose next request does not fit */
	bool freed;			       /* something has landed since they were looked at */
	uint64_t large_until_us;	       /* until then `sizes` is used */
	struct hs_reply_budget_size sizes[HS_REPLY_BUDGET_SIZES];
};

/* Whether the next request must wait because its reply would not fit; the session is held then. Asked before a
 * call becomes a request: by the core when the stages have passed it, or by a stage that takes a read before. */
bool hs_reply_budget_holds(struct hs_core *core, struct hs_session *session, struct hs_call *call);
/* What a reply has cost; a request is done; those that were held may go on. */
void hs_reply_budget_learn(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call, size_t bytes);
void hs_reply_budget_release(struct hs_core *core, struct hs_request *request);
void hs_reply_budget_resume(struct hs_core *core);

#endif
