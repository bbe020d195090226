/* ACL subcommands that only read. Those that change users, and GENPASS, run on the control thread
 * (serve/acl_command.c). */
#include "local/local.h"
#include "wire/reply.h"

#include <stdio.h>

#define NO_FILE                                                                                    \
	"ERR This Redis instance is not configured to use an ACL file. You may want to specify "   \
	"users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a "  \
	"Redis configuration file set) in order to store users in the Redis configuration."

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

static void reply_category(const struct hs_core *core, size_t category, struct hs_reply *reply)
{
	const struct hs_command *command;
	size_t count = 0;

	for (size_t i = 0; (command = hs_learned_row_at(core->learned, i)); i++)
		count += hs_acl_category_has(category, command);
	hs_reply_array(reply, count);
	for (size_t i = 0; (command = hs_learned_row_at(core->learned, i)); i++) {
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
		hs_local_reply_arity("ACL", call->argv[1], reply);
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
	/* DRYRUN cannot check the keys that SORT's BY and GET patterns read: they are known only when SORT
	 * runs. */
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
