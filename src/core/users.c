/* Who a connection is, and whether it may do what it asks for (acl/acl.h knows the rules).
 *
 * A session points to its user in the core's set. When a new set is handed in, every session is
 * pointed anew by name, so that a change holds from the next request on; whose user is gone is
 * closed. A user who may do everything costs a request one look at a null pointer. */
#include "core/session.h"

#include <stdio.h>

#define CHANGED                                                                                    \
	"NOPERM ACLs rules changed between the moment the transaction was accumulated and the "    \
	"EXEC call. This command is no longer allowed for the following reason: "
#define NO_FILE                                                                                    \
	"ERR This Redis instance is not configured to use an ACL file. You may want to specify "   \
	"users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a "  \
	"Redis configuration file set) in order to store users in the Redis configuration."

/* --- who it is --- */

static void point(struct hs_session *session, const struct hs_acl_user *user)
{
	session->user = user;
	session->limits = session->own || hs_acl_user_is_unlimited(user) ? NULL : user;
}

void hs_users_reset(struct hs_core *core, struct hs_session *session)
{
	point(session, hs_acl_find(core->acl, HS_LIT("default")));
	session->authenticated = core->open || session->own;
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

/* A client that waits for the answer to the very command that changed the users still gets it. */
static bool asked_for_it(const struct hs_session *session)
{
	const struct hs_request *last;

	if (hs_list_empty(&session->requests))
		return false;
	last = hs_list_entry(session->requests.prev, struct hs_request, link);
	return last->call.command && (last->call.command->id == HS_CMD_ID_ACL_DELUSER ||
				      last->call.command->id == HS_CMD_ID_ACL_SETUSER);
}

/* Whether the session listens to something that its user was allowed to hear and no longer is. A
 * subscription that the user was never allowed, made before AUTH changed the user, stays. */
static bool loses_channels(const struct hs_session *session, const struct hs_acl_user *old,
			   const struct hs_acl_user *user)
{
	if (old == user || hs_acl_user_is_unlimited(user))
		return false;
	for (int kind = 0; kind < HS_TOPIC_KINDS; kind++) {
		const struct hs_link *list = &session->listens[kind];

		for (const struct hs_link *link = list->next; link != list; link = link->next) {
			const struct hs_subscription *subscription =
				hs_list_entry(link, struct hs_subscription, of_session);
			struct hs_bytes name = subscription->topic->name;
			bool is_pattern = kind == HS_TOPIC_PATTERN;

			if (hs_acl_may_channel(old, name, is_pattern) &&
			    !hs_acl_may_channel(user, name, is_pattern))
				return true;
		}
	}
	return false;
}

static void close_session(struct hs_core *core, struct hs_session *session)
{
	session->cut = !asked_for_it(session);
	hs_session_close(core, session);
}

void hs_users_adopt(struct hs_core *core, const struct hs_acl *acl)
{
	struct hs_acl *old = core->acl;
	const struct hs_acl_user *first;

	core->acl = acl ? hs_acl_hold(acl) : hs_acl_create_open("");
	first = hs_acl_find(core->acl, HS_LIT("default"));
	hs_check(first != NULL);
	core->options.acl = core->acl;
	core->open = hs_acl_user_is_on(first) && hs_acl_user_has_nopass(first);
	for (struct hs_link *link = core->sessions.next; link != &core->sessions;
	     link = link->next) {
		struct hs_session *session = hs_list_entry(link, struct hs_session, all);
		const struct hs_acl_user *user =
			hs_acl_find(core->acl, hs_acl_user_name(session->user));

		if (user) {
			/* As Redis: the client cannot be told which of its channels it lost. */
			if (loses_channels(session, session->user, user))
				close_session(core, session);
			point(session, user);
			continue;
		}
		/* Until it is closed it is the default user, and no request is taken from it. */
		point(session, first);
		close_session(core, session);
	}
	hs_acl_drop(&old);
}

/* --- what it may --- */

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

/* Why a script is refused, and what to grant. */
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

/* --- ACL --- */

void hs_local_acl_whoami(struct hs_core *core, struct hs_session *session,
			 const struct hs_call *call, struct hs_reply *reply)
{
	(void)core, (void)call;
	hs_reply_bulk(reply, hs_acl_user_name(session->user));
}

void hs_local_acl_users(struct hs_core *core, struct hs_session *session,
			const struct hs_call *call, struct hs_reply *reply)
{
	(void)session;
	struct hs_buf text = {0};

	hs_reply_array(reply, hs_acl_count(core->acl));
	for (size_t i = 0; i < hs_acl_count(core->acl); i++) {
		const struct hs_acl_user *user = hs_acl_at(core->acl, i);

		if (call->command->id == HS_CMD_ID_ACL_USERS) {
			hs_reply_bulk(reply, hs_acl_user_name(user));
			continue;
		}
		text.len = 0;
		hs_buf_printf(&text, "user ");
		hs_acl_user_describe(user, &text);
		hs_reply_bulk(reply, hs_buf_bytes(&text));
	}
	hs_buf_deinit(&text);
}

void hs_local_acl_getuser(struct hs_core *core, struct hs_session *session,
			  const struct hs_call *call, struct hs_reply *reply)
{
	const struct hs_acl_user *user = hs_acl_find(core->acl, call->argv[2]);

	(void)session;
	if (user)
		hs_acl_user_reply(user, reply);
	else
		hs_reply_null(reply);
}

void hs_users_reply_arity(const struct hs_bytes *argv, struct hs_reply *reply)
{
	hs_reply_errorf(reply,
			"ERR unknown subcommand or wrong number of arguments for '%.*s'. Try ACL "
			"HELP.",
			(int)(argv[1].len < 128 ? argv[1].len : 128), argv[1].data);
}

/* The next row: our own, then those that were learned. NULL at the end. */
static const struct hs_command *row_at(const struct hs_core *core, size_t index)
{
	if (index + 1 < HS_CMD_IDS)
		return hs_command_by_id((enum hs_command_id)(index + 1));
	index -= HS_CMD_IDS - 1;
	return index < hs_learned_count(core->learned) ? hs_learned_at(core->learned, index) : NULL;
}

static void reply_category(const struct hs_core *core, size_t category, struct hs_reply *reply)
{
	const struct hs_command *command;
	size_t count = 0;

	for (size_t i = 0; (command = row_at(core, i)); i++)
		count += hs_acl_category_has(category, command);
	hs_reply_array(reply, count);
	for (size_t i = 0; (command = row_at(core, i)); i++) {
		if (hs_acl_category_has(category, command))
			hs_reply_bulk_text(reply, command->name);
	}
}

void hs_local_acl_cat(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		      struct hs_reply *reply)
{
	const char *name;
	size_t count = 0;

	(void)session;
	if (call->argc > 3) {
		hs_users_reply_arity(call->argv, reply);
		return;
	}
	for (; (name = hs_acl_category_name(count)); count++) {
		if (call->argc == 3 && hs_bytes_is_word(call->argv[2], name)) {
			reply_category(core, count, reply);
			return;
		}
	}
	if (call->argc == 3) {
		hs_reply_errorf(reply, "ERR Unknown category '%.*s'",
				(int)(call->argv[2].len < 128 ? call->argv[2].len : 128),
				call->argv[2].data);
		return;
	}
	hs_reply_array(reply, count);
	for (size_t i = 0; i < count; i++)
		hs_reply_bulk_text(reply, hs_acl_category_name(i));
}

static void reply_verdict(enum hs_acl_verdict verdict, const struct hs_command *command,
			  struct hs_bytes object, struct hs_reply *reply)
{
	struct hs_buf text = {0};

	if (verdict == HS_ACL_UNCHECKED)
		hs_buf_printf(
			&text,
			"This user has no permissions to run the '%s' command: it can run any "
			"command on any key and channel, and the rule +script|unchecked is "
			"missing",
			hs_acl_command_name(command));
	else if (verdict == HS_ACL_COMMAND)
		hs_buf_printf(&text, "This user has no permissions to run the '%s' command",
			      hs_acl_command_name(command));
	else
		hs_buf_printf(&text, "This user has no permissions to access the '%.*s' %s",
			      (int)object.len, object.data,
			      verdict == HS_ACL_CHANNEL ? "channel" : "key");
	hs_reply_bulk(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

void hs_local_acl_dryrun(struct hs_core *core, struct hs_session *session,
			 const struct hs_call *call, struct hs_reply *reply)
{
	const struct hs_acl_user *user = hs_acl_find(core->acl, call->argv[2]);
	const struct hs_bytes *argv = call->argv + 3;
	size_t argc = call->argc - 3;
	const struct hs_command *command, *parent;
	enum hs_acl_verdict verdict;
	size_t at;

	(void)session;
	if (!user) {
		hs_reply_errorf(reply, "ERR User '%.*s' not found",
				(int)(call->argv[2].len < 128 ? call->argv[2].len : 128),
				call->argv[2].data);
		return;
	}
	command = hs_learned_resolve(core->learned, argc, argv, &parent);
	if (!command) {
		hs_reply_errorf(reply, "ERR Command '%.*s' not found",
				(int)(argv[0].len < 128 ? argv[0].len : 128), argv[0].data);
		return;
	}
	if (!hs_command_arity_fits(command, argc)) {
		hs_reply_errorf(reply, "ERR wrong number of arguments for '%s' command",
				command->name);
		return;
	}
	verdict = hs_acl_check(user, command, argc, argv, &at);
	/* What SORT follows is found out by running it. */
	if (verdict == HS_ACL_OK || verdict == HS_ACL_SORT_BY || verdict == HS_ACL_SORT_GET)
		hs_reply_ok(reply);
	else
		reply_verdict(verdict, command, argv[at], reply);
}

void hs_local_acl_file(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		       struct hs_reply *reply)
{
	(void)core, (void)session, (void)call;
	hs_reply_error(reply, NO_FILE);
}
