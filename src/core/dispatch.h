/* From a parsed command to its execution: checks, stages, and then the engine, another worker, the process or
 * local/. Worker's thread only. An engine may answer inside a submission: then the request is gone when the
 * call returns. */
#ifndef HS_CORE_DISPATCH_H
#define HS_CORE_DISPATCH_H

#include "core/state.h"

/* False: the session is held (core/hold.h), and the core dispatches the command again later. */
bool hs_dispatch(struct hs_core *core, struct hs_session *session, struct hs_call *call);
/* Whether the session's last command blocks on a server (BLPOP); and cancels it after the client has
 * disconnected. */
bool hs_dispatch_is_blocked(const struct hs_core *core, const struct hs_session *session);
void hs_dispatch_cancel(struct hs_core *core, struct hs_session *session);
/* CLIENT UNBLOCK. False: the session does not block. */
bool hs_dispatch_unblock(struct hs_core *core, struct hs_session *session, bool error);
/* Sends part `index`. If the engine answers the last part at once, the request is gone. */
void hs_dispatch_submit(struct hs_core *core, struct hs_request *request, uint32_t index);
/* All parts are answered: merges the replies and finishes the request. */
void hs_dispatch_answered(struct hs_core *core, struct hs_request *request);
/* A part is answered: its reply is in op.answer or `out`. Calls `arrive` of marked stages with numbers below
 * `below`. The request may be gone when this returns. */
void hs_dispatch_arrived(struct hs_core *core, struct hs_request *request, struct hs_part *part,
			 uint32_t below);
/* The engine has completed an operation of a request or of an internal call. */
void hs_dispatch_complete(struct hs_core *core, struct hs_op *op);
/* Sends a command to the control thread (HS_PLACE_HOST). `exec`: the transaction it is part of, or NULL. */
void hs_dispatch_host(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		      const struct hs_call *call);
/* Ends a request whose reply is written: accounts for it, and delivers the reply in its turn. */
void hs_dispatch_finish(struct hs_core *core, struct hs_request *request);
/* Counts a finished command: counters and slow log. */
void hs_dispatch_account(struct hs_core *core, struct hs_session *session,
			 const struct hs_call *call, uint64_t time_us, bool failed);

/* Answers a command with an error instead of running it; for EXEC that ends the transaction. A stage that calls
 * it in `admit` returns HS_ANSWERED. `command` NULL: unknown command. */
void hs_dispatch_reject(struct hs_core *core, struct hs_session *session,
			const struct hs_command *command, const char *text);
/* Answers a read of one key that is not a request, with a reply that lies elsewhere (a cache hit), and counts
 * it like a read that the engine answered at once. */
void hs_dispatch_answer(struct hs_core *core, struct hs_session *session,
			const struct hs_call *call, uint16_t slot, struct hs_bytes reply);

void hs_dispatch_timing_begin(struct hs_core *core);
void hs_dispatch_timing_end(struct hs_core *core);

#endif
