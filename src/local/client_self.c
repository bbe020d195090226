/* CLIENT subcommands about the connection that sends them: SETNAME, SETINFO, ID, INFO, REPLY, NO-EVICT,
 * NO-TOUCH; and the text of a line of CLIENT LIST. */
#include "local/local.h"

#include "core/hold.h"

#include "base/mem.h"
#include "core/dispatch.h"
#include "core/multi.h"
#include "core/state.h"
#include "push/tracking.h"
#include "wire/reply.h"

bool hs_client_name_fits(struct hs_bytes name, struct hs_reply *reply)
{
	for (size_t i = 0; i < name.len; i++) {
		if (name.data[i] < '!' || name.data[i] > '~') {
			hs_reply_error(reply, "ERR Client names cannot contain spaces, newlines or "
					      "special characters.");
			return false;
		}
	}
	if (name.len > HS_CLIENT_NAME_MAX) {
		hs_reply_errorf(reply, "ERR Client names cannot be longer than %d bytes.",
				HS_CLIENT_NAME_MAX);
		return false;
	}
	return true;
}

static void set_text(char **text, struct hs_bytes value)
{
	hs_mem_free(text);
	if (value.len > 0)
		*text = hs_mem_dup(value.data, value.len);
}

void hs_client_set_name(struct hs_session *session, struct hs_bytes name)
{
	set_text(&session->name, name);
}

void hs_local_client_setname(struct hs_core *core, struct hs_session *session,
			     const struct hs_call *call, struct hs_reply *reply)
{
	(void)core;
	if (!hs_client_name_fits(call->argv[2], reply))
		return;
	hs_client_set_name(session, call->argv[2]);
	hs_reply_ok(reply);
}

void hs_local_client_getname(struct hs_core *core, struct hs_session *session,
			     const struct hs_call *call, struct hs_reply *reply)
{
	(void)core, (void)call;
	if (session->name)
		hs_reply_bulk_text(reply, session->name);
	else
		hs_reply_null(reply);
}

void hs_local_client_setinfo(struct hs_core *core, struct hs_session *session,
			     const struct hs_call *call, struct hs_reply *reply)
{
	bool is_name = hs_bytes_is_word(call->argv[2], "lib-name");

	(void)core;
	if (!is_name && !hs_bytes_is_word(call->argv[2], "lib-ver")) {
		hs_reply_errorf(reply, "ERR Unrecognized option '%.*s'", (int)call->argv[2].len,
				call->argv[2].data);
		return;
	}
	for (size_t i = 0; i < call->argv[3].len; i++) {
		if (call->argv[3].data[i] < '!' || call->argv[3].data[i] > '~') {
			hs_reply_errorf(reply,
					"ERR %s cannot contain spaces, newlines or special "
					"characters.",
					is_name ? "lib-name" : "lib-ver");
			return;
		}
	}
	set_text(is_name ? &session->lib_name : &session->lib_ver, call->argv[3]);
	hs_reply_ok(reply);
}

void hs_local_client_id(struct hs_core *core, struct hs_session *session,
			const struct hs_call *call, struct hs_reply *reply)
{
	(void)core, (void)call;
	hs_reply_int(reply, (int64_t)session->id);
}

static void turn(bool *flag, struct hs_bytes word, struct hs_reply *reply)
{
	bool on = hs_bytes_is_word(word, "on");

	if (!on && !hs_bytes_is_word(word, "off")) {
		hs_reply_error(reply, "ERR syntax error");
		return;
	}
	*flag = on;
	hs_reply_ok(reply);
}

void hs_local_client_no_evict(struct hs_core *core, struct hs_session *session,
			      const struct hs_call *call, struct hs_reply *reply)
{
	(void)core;
	turn(&session->no_evict, call->argv[2], reply);
}

void hs_local_client_no_touch(struct hs_core *core, struct hs_session *session,
			      const struct hs_call *call, struct hs_reply *reply)
{
	(void)core;
	turn(&session->no_touch, call->argv[2], reply);
}

void hs_local_client_reply(struct hs_core *core, struct hs_session *session,
			   const struct hs_call *call, struct hs_reply *reply)
{
	(void)core;
	if (hs_bytes_is_word(call->argv[2], "on")) {
		session->reply_mode = HS_REPLY_ON;
		hs_reply_ok(reply);
	} else if (hs_bytes_is_word(call->argv[2], "off")) {
		session->reply_mode = HS_REPLY_OFF;
	} else if (hs_bytes_is_word(call->argv[2], "skip")) {
		if (session->reply_mode != HS_REPLY_OFF)
			session->reply_mode = HS_REPLY_SKIP_NEXT;
	} else {
		hs_reply_error(reply, "ERR syntax error");
	}
}

/* The flags= letters of a client in Redis's order; N without any. */
static void describe_flags(const struct hs_core *core, const struct hs_session *session,
			   struct hs_buf *text)
{
	const struct hs_tracker *tracker = hs_tracker_of(core, session);
	const struct {
		bool set;
		char letter;
	} flags[] = {
		{session->subscribed, 'P'},
		{session->multi != NULL, 'x'},
		{session->hold == HS_HOLD_PAUSE || hs_dispatch_is_blocked(core, session), 'b'},
		{tracker != NULL, 't'},
		{tracker && tracker->redirect_broken, 'R'},
		{tracker && tracker->bcast, 'B'},
		{session->closing, 'c'},
		{session->readonly, 'r'},
		{session->no_evict, 'e'},
		{session->no_touch, 'T'},
	};
	size_t before = text->len;

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		if (flags[i].set)
			hs_buf_append(text, &flags[i].letter, 1);
	}
	if (text->len == before)
		hs_buf_append(text, "N", 1);
}

/* One line of CLIENT LIST: Redis's fields in Redis's order, then the worker and the reason of a hold
 * (core/hold.h). */
void hs_client_describe(const struct hs_core *core, const struct hs_session *session,
			struct hs_buf *text)
{
	size_t unsent = session->out.len + session->sending_bytes + session->held_bytes;
	const uint32_t *heard = hs_push_session(core, session)->confirmed_counts;
	const struct hs_tracker *tracker = hs_tracker_of(core, session);

	hs_buf_printf(text, "id=%llu addr=%s laddr=%s fd=%d name=%s age=%llu idle=%llu flags=",
		      (unsigned long long)session->id, session->address, session->local_address,
		      session->fd, session->name ? session->name : "",
		      (unsigned long long)(core->now.mono_us - session->connected_us) / 1000000,
		      (unsigned long long)(core->now.mono_us - session->last_active_us) / 1000000);
	describe_flags(core, session, text);
	hs_buf_printf(text, " db=0 sub=%u psub=%u ssub=%u ", heard[HS_TOPIC_CHANNEL],
		      heard[HS_TOPIC_PATTERN], heard[HS_TOPIC_SHARD]);
	hs_buf_printf(text, "multi=%d qbuf=%zu qbuf-free=%zu argv-mem=0 ",
		      session->multi ? (int)hs_multi_count(session->multi) : -1, session->in.len,
		      session->in.cap - session->in.len);
	hs_buf_printf(text, "multi-mem=0 rbs=%zu rbp=%zu obl=%zu oll=0 omem=%zu tot-mem=%zu ",
		      session->out.cap, session->out.len, unsent, session->sending_bytes,
		      sizeof *session + session->in.cap + session->out.cap + unsent);
	hs_buf_printf(text,
		      "events=r cmd=%s user=%s redir=%lld resp=%d lib-name=%s lib-ver=%s "
		      "worker=%u held=%s\n",
		      session->last_command ? session->last_command->name : "NULL",
		      hs_acl_user_name(session->user).data,
		      tracker ? (long long)tracker->redirect : -1LL, session->resp,
		      session->lib_name ? session->lib_name : "",
		      session->lib_ver ? session->lib_ver : "", core->world.worker,
		      hs_hold_text(core, session));
}

void hs_local_client_info(struct hs_core *core, struct hs_session *session,
			  const struct hs_call *call, struct hs_reply *reply)
{
	struct hs_buf text = {0};

	(void)call;
	hs_client_describe(core, session, &text);
	hs_reply_verbatim(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}
