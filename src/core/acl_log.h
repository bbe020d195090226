/* ACL LOG: refused commands and logins of this worker, newest first, bounded by acllog-max-len. Worker's thread
 * only; exports travel to the worker that got ACL LOG. */
#ifndef HS_CORE_ACL_LOG_H
#define HS_CORE_ACL_LOG_H

#include "core/state.h"

struct hs_acl_log *hs_acl_log_create(void);
void hs_acl_log_destroy(struct hs_acl_log **log);
void hs_acl_log_add(struct hs_core *core, const struct hs_session *session, const char *reason,
		    const char *context, struct hs_bytes object, struct hs_bytes user);
void hs_acl_log_reset(struct hs_acl_log *log);
void hs_acl_log_export(const struct hs_core *core, int resp,
		       struct hs_buf *out); /* in the format of hs_slowlog_export */

#endif
