/* The log line of a change: what was changed, by which user, from where. For the control thread. Values that
 * are secret are not shown. */
#ifndef HS_SERVE_AUDIT_H
#define HS_SERVE_AUDIT_H

#include "serve/host.h"

/* Logs a request that changes configuration, rules or users. `reply` is its reply: a request that failed,
 * or that changed nothing, is not logged. Empty: the servers behind heatsink answer it later. op->raw says
 * who asked. */
void hs_audit_log(const struct hs_host *host, const struct hs_op *op, struct hs_bytes reply);

#endif
