/* HELLO, AUTH, RESET: the user of a connection and its protocol version. */
#include "local/local.h"

#include "push/tracking.h"

#include "base/mem.h"
#include "base/num.h"
#include "base/version.h"
#include "core/multi.h"
#include "core/users.h"
#include "wire/reply.h"

#define NOPASS                                                                                     \
	"ERR AUTH <password> called without any password configured for the default user. "        \
	"Are you sure your configuration is correct?"
#define WRONGPASS "WRONGPASS invalid username-password pair or user is disabled."
#define HELLO_NOAUTH                                                                               \
	"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "  \
	"AUTH <user> <pass> option can be used to authenticate the client and select the "         \
	"RESP protocol version at the same time"

void hs_local_auth(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		   struct hs_reply *reply)
{
	struct hs_bytes user = call->argc == 3 ? call->argv[1] : HS_LIT("default");

	if (call->argc > 3)
		hs_reply_error(reply, "ERR syntax error");
	else if (call->argc == 2 &&
		 hs_acl_user_has_nopass(hs_acl_find(core->acl, HS_LIT("default"))))
		hs_reply_error(reply, NOPASS);
	else if (!hs_users_login(core, session, user, call->argv[call->argc - 1], call->argv[0]))
		hs_reply_error(reply, WRONGPASS);
	else
		hs_reply_ok(reply);
}

static void describe_server(const struct hs_session *session, struct hs_reply *reply)
{
	hs_reply_map(reply, 7);
	hs_reply_pair_text(reply, "server", "redis");
	hs_reply_pair_text(reply, "version", HS_REDIS_VERSION);
	hs_reply_pair_int(reply, "proto", session->resp);
	hs_reply_pair_int(reply, "id", (int64_t)session->id);
	hs_reply_pair_text(reply, "mode", "cluster");
	hs_reply_pair_text(reply, "role", "master");
	hs_reply_bulk_text(reply, "modules");
	hs_reply_array(reply, 0);
}

void hs_local_hello(struct hs_core *core, struct hs_session *session, const struct hs_call *call,
		    struct hs_reply *reply)
{
	int64_t version = session->resp;
	const struct hs_bytes *name = NULL;
	size_t at = 1;

	if (call->argc >= 2) {
		at = 2;
		if (!hs_num_parse_int(call->argv[1], &version)) {
			hs_reply_error(reply,
				       "ERR Protocol version is not an integer or out of range");
			return;
		}
		if (version < 2 || version > 3) {
			hs_reply_error(reply, "NOPROTO unsupported protocol version");
			return;
		}
	}
	for (; at < call->argc; at++) {
		size_t more = call->argc - 1 - at;

		if (hs_bytes_is_word(call->argv[at], "auth") && more >= 2) {
			if (!hs_users_login(core, session, call->argv[at + 1], call->argv[at + 2],
					    call->argv[0])) {
				hs_reply_error(reply, WRONGPASS);
				return;
			}
			at += 2;
		} else if (hs_bytes_is_word(call->argv[at], "setname") && more >= 1) {
			name = &call->argv[at + 1];
			if (!hs_client_name_fits(*name, reply))
				return;
			at += 1;
		} else {
			hs_reply_errorf(reply, "ERR Syntax error in HELLO option '%.*s'",
					(int)call->argv[at].len, call->argv[at].data);
			return;
		}
	}
	if (!hs_users_is_admitted(core, session)) {
		hs_reply_error(reply, HELLO_NOAUTH);
		return;
	}
	if (name)
		hs_client_set_name(session, *name);
	session->resp = (uint8_t)version;
	reply->resp = session->resp;
	describe_server(session, reply);
}

static void reset(struct hs_core *core, struct hs_session *session, struct hs_reply *reply)
{
	hs_multi_drop(&session->multi);
	session->resp = 2;
	session->reply_mode = HS_REPLY_ON;
	session->no_evict = false;
	session->no_touch = false;
	session->readonly = false;
	hs_users_reset(core, session);
	hs_mem_free(&session->name);
	hs_reply_status(reply, "RESET");
	hs_multi_unwatch(core, session);
	hs_tracking_stop(core, session);
}

void hs_local_reset(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		    const struct hs_call *call, struct hs_bytes element)
{
	(void)exec, (void)element;
	hs_pubsub_reset(core, session, call, reset);
}
