/* MULTI to EXEC, and WATCH: the transaction state of a session. Worker's thread only. Limits:
 * HS_MULTI_COMMANDS_MAX, HS_MULTI_BYTES_MAX, HS_WATCH_KEYS_MAX; beyond them the client gets an error. */
#ifndef HS_CORE_MULTI_H
#define HS_CORE_MULTI_H

#include "core/state.h"

void hs_multi_queue(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		    struct hs_reply *reply);
/* After a refused command: EXEC will abort. */
void hs_multi_mark_failed(struct hs_session *session);
void hs_multi_drop(struct hs_multi **multi);
size_t hs_multi_count(const struct hs_multi *multi); /* commands queued */
/* EXEC passed its checks: from now on hs_multi_call works. */
void hs_multi_close(struct hs_multi *multi);
struct hs_call hs_multi_call(const struct hs_multi *multi, size_t index); /* a queued command */
bool hs_multi_writes(const struct hs_multi *multi); /* whether a queued command may write */
/* Whether some commands run after the commit (core/deferred.h); `*all`: all local commands do. */
bool hs_multi_is_deferred(const struct hs_multi *multi, bool *all);
/* The same, if EXEC came next. */
bool hs_multi_would_be_deferred(const struct hs_session *session);
void hs_multi_unwatch(struct hs_core *core, struct hs_session *session);
/* The next key that a sent transaction watched, of those whose names are remembered. `*at` starts at 0. False:
 * no more. */
bool hs_multi_watched(const struct hs_multi *multi, size_t *at, struct hs_bytes *name);

#endif
