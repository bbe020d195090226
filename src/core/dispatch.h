/* From a parsed command to whoever runs it. */
#ifndef HS_CORE_DISPATCH_H
#define HS_CORE_DISPATCH_H

#include "core/state.h"

/* False: not now, but again when nothing of the session is under way, or no pause keeps it. */
bool hs_dispatch(struct hs_core *core, struct hs_session *session, struct hs_call *call);
/* Whether it waits for what may never come; and gives up what a session that is gone waits for. */
bool hs_dispatch_is_blocked(const struct hs_core *core, const struct hs_session *session);
void hs_dispatch_cancel(struct hs_core *core, struct hs_session *session);
/* CLIENT UNBLOCK: false when it does not wait. */
bool hs_dispatch_unblock(struct hs_core *core, struct hs_session *session, bool error);
/* Sends part `index`. When it was the last to be answered, and at once, the request is gone. */
void hs_dispatch_submit(struct hs_core *core, struct hs_request *request, uint32_t index);
/* All parts of a request are answered. */
void hs_dispatch_answered(struct hs_core *core, struct hs_request *request);
/* A part is answered: its reply is in op.answer or `out`. Stages with numbers below `below` hear of it. The request
 * may be gone when this returns. */
void hs_dispatch_arrived(struct hs_core *core, struct hs_request *request, struct hs_part *part,
			 uint32_t below);
/* The engine has finished an operation: a part of a request, or an internal call. */
void hs_dispatch_complete(struct hs_core *core, struct hs_op *op);
/* Has the process run a command. `exec`: the transaction that asks, or NULL. */
void hs_dispatch_host(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		      const struct hs_call *call);
/* The end of a request whose reply is written: accounted for, and delivered in its turn. */
void hs_dispatch_finish(struct hs_core *core, struct hs_request *request);
/* The common end of every command: counters, slow log. */
void hs_dispatch_account(struct hs_core *core, struct hs_session *session,
			 const struct hs_call *call, uint64_t time_us, bool failed);

/* Answers a command that does not run with an error. EXEC ends its transaction. A stage that does so in `admit` says
 * HS_ANSWERED. `command` NULL: it is not known. */
void hs_dispatch_reject(struct hs_core *core, struct hs_session *session,
			const struct hs_command *command, const char *text);
/* Answers a read of one key that became no request, with a reply that lies elsewhere, and counts it like one that an engine
 * answered at once. */
void hs_dispatch_answer(struct hs_core *core, struct hs_session *session,
			const struct hs_call *call, uint16_t slot, struct hs_bytes reply);

void hs_dispatch_timing_begin(struct hs_core *core);
void hs_dispatch_timing_end(struct hs_core *core);

#endif
