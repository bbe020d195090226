/* MULTI to EXEC, WATCH. */
#ifndef HS_CORE_MULTI_H
#define HS_CORE_MULTI_H

#include "core/state.h"

void hs_multi_queue(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		    struct hs_reply *reply);
void hs_multi_mark_failed(struct hs_session *session); /* a refused command: EXEC will abort */
void hs_multi_drop(struct hs_multi **multi);
size_t hs_multi_count(const struct hs_multi *multi); /* commands queued */
/* EXEC passed its checks: its commands can be looked at from now on, by stages too. */
void hs_multi_close(struct hs_multi *multi);
struct hs_call hs_multi_call(const struct hs_multi *multi, size_t index); /* one of them */
bool hs_multi_writes(const struct hs_multi *multi);			  /* one of them may */
/* Whether some run behind its commit (deferred.c), and whether that is all that needs no engine. */
bool hs_multi_is_deferred(const struct hs_multi *multi, bool *all);
bool hs_multi_would_be_deferred(const struct hs_session *session); /* if EXEC came now */
void hs_multi_unwatch(struct hs_core *core, struct hs_session *session);
/* Of a transaction that was sent: the next key it watched, as far as names are remembered. `at`
 * begins at 0. */
bool hs_multi_watched(const struct hs_multi *multi, size_t *at, struct hs_bytes *name);

#endif
