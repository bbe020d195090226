/* Commands that need no engine: what concerns the connection, the users, the table of commands, or all
 * workers. commands.c has the table that the core gets (core/commands.h).
 *
 *     commands.c  the table; PING, ECHO, TIME, COMMAND and other small ones
 *     hello.c     HELLO, AUTH, RESET
 *     client_self.c    CLIENT, as far as it is about the connection that asks
 *     client_admin.c   CLIENT LIST, KILL, PAUSE, UNBLOCK
 *     acl_command.c  ACL, as far as it only reads
 *     cluster.c   CLUSTER, READONLY
 *     workers.c   other commands to which every worker contributes: SLOWLOG, ACL LOG, HEAT PLAN */
#ifndef HS_LOCAL_LOCAL_H
#define HS_LOCAL_LOCAL_H

#include "core/commands.h"
#include "core/state.h"

extern const struct hs_core_commands hs_commands;

/* commands.c: a subcommand of this container with the wrong number of arguments, which its row does not tell. */
void hs_local_reply_arity(const char *container, struct hs_bytes name, struct hs_reply *reply);

/* workers.c: how the parts of several commands become one reply. */
void hs_workers_merge_ok(const struct hs_core *core, struct hs_request *request,
			 struct hs_reply *reply);
void hs_workers_merge_sum(const struct hs_core *core, struct hs_request *request,
			  struct hs_reply *reply);
int64_t hs_workers_sum(const struct hs_request *request); /* of parts that are numbers */

/* client_self.c */

/* One line of CLIENT LIST. */
void hs_client_describe(const struct hs_core *core, const struct hs_session *session,
			struct hs_buf *text);
/* Writes the error when a name has a space, a line break or worse in it. */
bool hs_client_name_fits(struct hs_bytes name, struct hs_reply *reply);
void hs_client_set_name(struct hs_session *session, struct hs_bytes name); /* empty: none */

#endif
