/* The audit log: one info line for each command that changed configuration, rules or users: the command, the user and
 * the client's address. Passwords and password hashes are shown as HS_SECRET_TEXT. It knows no command: `audited` in
 * the command table (command/rows.def) says which commands are logged. The control thread. Long commands are cut. */
#ifndef HS_SERVE_AUDIT_H
#define HS_SERVE_AUDIT_H

#include "serve/host.h"

/* Logs the request if it changed something. `reply` is its reply: a request that failed or changed nothing is not
 * logged. An empty reply means that the servers behind heatsink answer later; the line then says that the request was
 * sent to them. op->raw has the user and the address. */
void hs_audit_log(const struct hs_host *host, const struct hs_op *op, struct hs_bytes reply);

#endif
