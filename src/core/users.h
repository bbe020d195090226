/* The user of a connection, and what it may do. */
#ifndef HS_CORE_USERS_H
#define HS_CORE_USERS_H

#include "core/state.h"

static inline bool hs_users_is_admitted(const struct hs_core *core,
					const struct hs_session *session)
{
	return session->authenticated || core->default_user_open;
}
/* From now on these are the users. A session whose user is gone is closed, and one that `loses` something
 * that it has. */
typedef bool hs_users_lost_permission(struct hs_core *core, const struct hs_session *session,
				      const struct hs_acl_user *old,
				      const struct hs_acl_user *user);
void hs_users_adopt(struct hs_core *core, const struct hs_acl *acl,
		    hs_users_lost_permission *lost_permission);
void hs_users_reset(struct hs_core *core, struct hs_session *session); /* as it came */
/* False: not with this password. `how` is the command that tried. */
bool hs_users_login(struct hs_core *core, struct hs_session *session, struct hs_bytes name,
		    struct hs_bytes password, struct hs_bytes how);
/* Of a session with limits: why it may not run this, perhaps written to `text`; NULL: it may. */
const char *hs_users_refuse(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, char *text, size_t text_size);
/* The same at EXEC: rules may have changed since the command was queued. True: the error is
 * written. */
bool hs_users_refuse_queued(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, struct hs_reply *reply);

#endif
