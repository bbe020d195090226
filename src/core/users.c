/* The user of a connection, and whether it may run a command (acl/acl.h knows the rules).
 *
 * A session points to its user in the core's set. When a new set is handed in, the core looks up every
 * session's user in it by name, so that a change holds from the next request on. A session whose user is gone
 * is closed. A user without limits costs a request one comparison with NULL (session->limits). */
#include "core/users.h"
#include "core/acl_log.h"
#include "wire/reply.h"

#include <stdio.h>

#define CHANGED                                                                                    \
	"NOPERM ACLs rules changed between the moment the transaction was accumulated and the "    \
	"EXEC call. This command is no longer allowed for the following reason: "

/* --- the user --- */

static void point(struct hs_session *session, const struct hs_acl_user *user)
{
	session->user = user;
	session->limits = session->internal || hs_acl_user_is_unlimited(user) ? NULL : user;
}

void hs_users_reset(struct hs_core *core, struct hs_session *session)
{
	point(session, hs_acl_find(core->acl, HS_LIT("default")));
	session->authenticated = core->default_user_open || session->internal;
}

bool hs_users_login(struct hs_core *core, struct hs_session *session, struct hs_bytes name,
		    struct hs_bytes password, struct hs_bytes how)
{
	const struct hs_acl_user *user = hs_acl_login(core->acl, name, password);

	if (!user) {
		hs_acl_log_add(core, session, "auth", session->multi ? "multi" : "toplevel", how,
			       name);
		return false;
	}
	point(session, user);
	session->authenticated = true;
	return true;
}

/* A client that waits for the reply to the very command that changed the users still gets it. */
static bool asked_for_it(const struct hs_session *session)
{
	const struct hs_request *last;

	if (hs_list_empty(&session->requests))
		return false;
	last = hs_list_entry(session->requests.prev, struct hs_request, link);
	return last->call.command && (last->call.command->id == HS_CMD_ID_ACL_DELUSER ||
				      last->call.command->id == HS_CMD_ID_ACL_SETUSER);
}

static void close_session(struct hs_core *core, struct hs_session *session)
{
	session->cut = !asked_for_it(session);
	hs_session_close(core, session);
}

void hs_users_adopt(struct hs_core *core, const struct hs_acl *acl,
		    hs_users_lost_permission *lost_permission)
{
	struct hs_acl *old = core->acl;
	const struct hs_acl_user *first;

	core->acl = acl ? hs_acl_ref(acl) : hs_acl_create_open("");
	first = hs_acl_find(core->acl, HS_LIT("default"));
	hs_check(first != NULL);
	core->options.acl = core->acl;
	core->default_user_open = hs_acl_user_is_on(first) && hs_acl_user_has_nopass(first);
	hs_list_each(struct hs_session, session, &core->sessions, all) {
		const struct hs_acl_user *user =
			hs_acl_find(core->acl, hs_acl_user_name(session->user));

		if (user) {
			/* As in Redis: no message could tell the client which of its channels it lost. */
			if (session->user != user && !hs_acl_user_is_unlimited(user) &&
			    lost_permission(core, session, session->user, user))
				close_session(core, session);
			point(session, user);
			continue;
		}
		/* Until it is closed it has the default user, and no request is taken from it. */
		point(session, first);
		close_session(core, session);
	}
	hs_acl_unref(&old);
}

/* --- its permissions --- */

static const char *reason(enum hs_acl_verdict verdict)
{
	return verdict == HS_ACL_COMMAND || verdict == HS_ACL_UNCHECKED ? "command"
	       : verdict == HS_ACL_CHANNEL				? "channel"
									: "key";
}

static enum hs_acl_verdict check(struct hs_core *core, struct hs_session *session,
				 const struct hs_call *call, bool in_multi)
{
	size_t at;
	enum hs_acl_verdict verdict =
		hs_acl_check(session->limits, call->command, call->argc, call->argv, &at);

	if (verdict != HS_ACL_OK)
		hs_acl_log_add(core, session, reason(verdict), in_multi ? "multi" : "toplevel",
			       strcmp(reason(verdict), "command") == 0
				       ? hs_bytes_of(hs_acl_command_name(call->command))
				       : call->argv[at],
			       hs_acl_user_name(session->user));
	return verdict;
}

/* The error for a command that can run any command (a script), with the rule that allows it. */
static void refuse_unchecked(const struct hs_acl_user *user, const struct hs_command *command,
			     char *text, size_t text_size)
{
	char name[64];

	snprintf(text, text_size,
		 "NOPERM this user has no permissions to run the '%s' command: it can run any "
		 "command on any key and channel, past the limits of this user. To allow that: ACL "
		 "SETUSER %s +script|unchecked",
		 hs_acl_command_name(command),
		 hs_bytes_escape(hs_acl_user_name(user), name, sizeof name));
}

const char *hs_users_refuse(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, char *text, size_t text_size)
{
	switch (check(core, session, call, session->multi != NULL)) {
	case HS_ACL_OK:
		return NULL;
	case HS_ACL_COMMAND:
		snprintf(text, text_size,
			 "NOPERM this user has no permissions to run the '%s' command",
			 hs_acl_command_name(call->command));
		return text;
	case HS_ACL_KEY:
		return "NOPERM this user has no permissions to access one of the keys used as "
		       "arguments";
	case HS_ACL_CHANNEL:
		return "NOPERM this user has no permissions to access one of the channels used as "
		       "arguments";
	case HS_ACL_SORT_BY:
		return "ERR BY option of SORT denied due to insufficient ACL permissions.";
	case HS_ACL_UNCHECKED:
		refuse_unchecked(session->user, call->command, text, text_size);
		return text;
	case HS_ACL_SORT_GET:
		break;
	}
	return "ERR GET option of SORT denied due to insufficient ACL permissions.";
}

bool hs_users_refuse_queued(struct hs_core *core, struct hs_session *session,
			    const struct hs_call *call, struct hs_reply *reply)
{
	if (!session->limits)
		return false;
	switch (check(core, session, call, true)) {
	case HS_ACL_OK:
		return false;
	case HS_ACL_COMMAND:
		hs_reply_error(reply, CHANGED "no permission to execute the command or subcommand");
		break;
	case HS_ACL_UNCHECKED:
		hs_reply_error(reply, CHANGED "no permission to run what can run any command "
					      "(+script|unchecked)");
		break;
	case HS_ACL_CHANNEL:
		hs_reply_error(reply, CHANGED "no permission to access one of the channels used as "
					      "arguments to the command");
		break;
	default:
		hs_reply_error(reply, CHANGED "no permission to touch the specified keys");
	}
	return true;
}
