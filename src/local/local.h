/* src/local: commands that need no engine, because they concern the connection, the users, the table of
 * commands, or all workers. commands.c has the table that the core gets (core/commands.h).
 *
 *     commands.c     the table; PING, ECHO, TIME, COMMAND and other small ones
 *     hello.c        HELLO, AUTH, RESET
 *     client_self.c  CLIENT about the connection itself (CLIENT TRACKING is in push/)
 *     client_admin.c CLIENT LIST, KILL, PAUSE, UNBLOCK
 *     acl_command.c  ACL, as far as it only reads
 *     cluster.c      CLUSTER, READONLY
 *     workers.c      other commands that every worker runs a part of: SLOWLOG, ACL LOG, HEAT PLAN
 *
 * It must not know engines. It knows push/ for three things: the table in commands.c takes the functions of
 * SUBSCRIBE, PUBLISH, PUBSUB and CLIENT TRACKING from there, RESET ends tracking and subscriptions, and CLIENT
 * LIST shows them.
 *
 * Threads. A command runs on its client's worker. A command for all workers runs its `check` on the worker that
 * received it, its `part` on every worker, and its `merge` on the receiving worker when all parts have come.
 * Every worker answers its part in its event loop, so a part is not lost; a worker that is busy delays the
 * reply.
 *
 * Memory. Replies go to the caller's hs_reply; a session owns the texts set here. Bad input gets Redis's error
 * text; a command for all workers is checked before any worker changes anything. */
#ifndef HS_LOCAL_LOCAL_H
#define HS_LOCAL_LOCAL_H

#include "core/commands.h"
#include "core/state.h"

extern const struct hs_core_commands hs_commands;

/* commands.c: writes Redis's arity error for a subcommand whose arity its row cannot express. */
void hs_local_reply_arity(const char *container, struct hs_bytes name, struct hs_reply *reply);

/* workers.c: merges that several commands share. */
void hs_workers_merge_ok(const struct hs_core *core, struct hs_request *request,
			 struct hs_reply *reply);
void hs_workers_merge_sum(const struct hs_core *core, struct hs_request *request,
			  struct hs_reply *reply);
int64_t hs_workers_sum(const struct hs_request *request); /* sum of parts that are numbers */

/* client_self.c */

/* Appends one line of CLIENT LIST. */
void hs_client_describe(const struct hs_core *core, const struct hs_session *session,
			struct hs_buf *text);
/* False: the name has a space, a newline or another special character; the error is written. */
bool hs_client_name_fits(struct hs_bytes name, struct hs_reply *reply);
/* Sets the client's name; an empty one removes it. */
void hs_client_set_name(struct hs_session *session, struct hs_bytes name);

#endif
