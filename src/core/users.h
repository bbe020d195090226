/* The user of a connection, and whether it may run a command. acl/acl.h knows the rules; this module applies
 * them to sessions and logs refusals (core/acl_log.h). Worker's thread only. */
#ifndef HS_CORE_USERS_H
#define HS_CORE_USERS_H

#include "core/state.h"

static inline bool hs_users_is_admitted(const struct hs_core *core,
					const struct hs_session *session)
{
	return session->authenticated || core->default_user_open;
}
/* Replaces the set of users. Closes sessions whose user was deleted, and those for which `lost_permission`
 * returns true. All other sessions point to their user in the new set. */
typedef bool hs_users_lost_permission(struct hs_core *core, const struct hs_session *session,
				      const struct hs_acl_user *old,
				      const struct hs_acl_user *user);
void hs_users_adopt(struct hs_core *core, const struct hs_acl *acl,
		    hs_users_lost_permission *lost_permission);
/* Makes the session the default user again, as after connecting. */
void hs_users_reset(struct hs_core *core, struct hs_session *session);
/* False: wrong user or password. `how`: the command that tried to log in, for ACL LOG. */
bool hs_users_login(struct hs_core *core, struct hs_session *session, struct hs_bytes name,
		    struct hs_bytes password, struct hs_bytes how);
/* For a session with `limits`: why it may not run the call, a literal or written to `text`; NULL: it may. */
const char *hs_users_refuse(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, char *text, size_t text_size);
/* The same for a queued command at EXEC, because the rules may have changed since. True: the error is written. */
bool hs_users_refuse_queued(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, struct hs_reply *reply);

#endif
