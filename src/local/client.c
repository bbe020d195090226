/* CLIENT: what connections say about themselves and to each other. */
#include "local/local.h"

#include "core/hold.h"

#include "base/mem.h"
#include "base/num.h"
#include "core/multi.h"
#include "core/state.h"
#include "core/step.h"
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

/* A letter for each thing to know about a client, in Redis's order; N for none. */
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
		{session->hold == HS_HOLD_PAUSE || hs_step_blocked(core, session), 'b'},
		{tracker != NULL, 't'},
		{tracker && tracker->broken, 'R'},
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

/* One line of CLIENT LIST, in Redis's fields and order, with the worker and why it is held behind them. */
void hs_client_describe(const struct hs_core *core, const struct hs_session *session,
			struct hs_buf *text)
{
	size_t unsent = session->out.len + session->sending_bytes + session->held_bytes;
	const uint32_t *heard = hs_push_session(core, session)->listens_heard;
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

/* Redis's client types; heatsink has normal ones, and those that listen. */
static bool parse_type(struct hs_client_filter *filter, struct hs_bytes word,
		       struct hs_reply *reply)
{
	static const struct {
		const char *name;
		enum hs_client_type type;
	} types[] = {
		{"normal", HS_CLIENT_NORMAL}, {"pubsub", HS_CLIENT_PUBSUB},
		{"replica", HS_CLIENT_NONE},  {"slave", HS_CLIENT_NONE},
		{"master", HS_CLIENT_NONE},
	};

	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		if (hs_bytes_is_word(word, types[i].name)) {
			filter->type = types[i].type;
			return true;
		}
	}
	if (reply)
		hs_reply_errorf(reply, "ERR Unknown client type '%.*s'", (int)word.len, word.data);
	return false;
}

static bool refuse(struct hs_reply *reply, const char *text)
{
	if (reply)
		hs_reply_error(reply, text);
	return false;
}

/* Too many arguments for a subcommand that takes several numbers of them. Returns false. */
static bool refuse_count(struct hs_bytes name, struct hs_reply *reply)
{
	if (reply)
		hs_reply_errorf(reply,
				"ERR unknown subcommand or wrong number of arguments for '%.*s'. "
				"Try CLIENT HELP.",
				(int)(name.len < 128 ? name.len : 128), name.data);
	return false;
}

bool hs_client_parse_list(struct hs_client_filter *filter, size_t argc, const struct hs_bytes *argv,
			  struct hs_reply *reply)
{
	*filter = (struct hs_client_filter){0};
	if (argc == 4 && hs_bytes_is_word(argv[2], "type"))
		return parse_type(filter, argv[3], reply);
	if (argc > 3 && hs_bytes_is_word(argv[2], "id")) {
		for (size_t i = 3; i < argc; i++) {
			int64_t id;

			if (!hs_num_parse_int(argv[i], &id))
				return refuse(reply, "ERR Invalid client ID");
		}
		filter->ids = argv + 3;
		filter->ids_count = argc - 3;
		return true;
	}
	return argc == 2 || refuse(reply, "ERR syntax error");
}

static bool parse_kill_option(const struct hs_core *core, struct hs_client_filter *filter,
			      const struct hs_bytes *pair, uint64_t caller, struct hs_reply *reply)
{
	struct hs_bytes value = pair[1];
	int64_t id;

	if (hs_bytes_is_word(pair[0], "id")) {
		if (!hs_num_parse_int(value, &id) || id < 1)
			return refuse(reply, "ERR client-id should be greater than 0");
		filter->id = (uint64_t)id;
	} else if (hs_bytes_is_word(pair[0], "type")) {
		return parse_type(filter, value, reply);
	} else if (hs_bytes_is_word(pair[0], "addr")) {
		filter->address = value;
	} else if (hs_bytes_is_word(pair[0], "laddr")) {
		filter->local_address = value;
	} else if (hs_bytes_is_word(pair[0], "user")) {
		filter->user = value;
		/* Whoever is asked later finds nobody, should the user be gone by then. */
		if (reply && !hs_acl_find(core->acl, value)) {
			hs_reply_errorf(reply, "ERR No such user '%.*s'", (int)value.len,
					value.data);
			return false;
		}
	} else if (hs_bytes_is_word(pair[0], "skipme")) {
		if (hs_bytes_is_word(value, "yes"))
			filter->skip_id = caller;
		else if (hs_bytes_is_word(value, "no"))
			filter->skip_id = 0;
		else
			return refuse(reply, "ERR syntax error");
	} else {
		return refuse(reply, "ERR syntax error");
	}
	return true;
}

bool hs_client_parse_kill(const struct hs_core *core, struct hs_client_filter *filter, size_t argc,
			  const struct hs_bytes *argv, uint64_t caller, struct hs_reply *reply)
{
	*filter = (struct hs_client_filter){.skip_id = caller};
	if (argc == 3) {
		/* The old form names one client by address, the caller included. */
		*filter = (struct hs_client_filter){.address = argv[2], .old_form = true};
		return true;
	}
	if (argc % 2 != 0)
		return refuse(reply, "ERR syntax error");
	for (size_t i = 2; i < argc; i += 2) {
		if (!parse_kill_option(core, filter, argv + i, caller, reply))
			return false;
	}
	return true;
}

static bool listed(const struct hs_client_filter *filter, uint64_t id)
{
	int64_t wanted;

	for (size_t i = 0; i < filter->ids_count; i++) {
		if (hs_num_parse_int(filter->ids[i], &wanted) && (uint64_t)wanted == id)
			return true;
	}
	return filter->ids_count == 0;
}

static bool matches(const struct hs_client_filter *filter, const struct hs_session *session)
{
	enum hs_client_type type = session->subscribed ? HS_CLIENT_PUBSUB : HS_CLIENT_NORMAL;

	if (filter->type != HS_CLIENT_ANY && filter->type != type)
		return false;
	if (session->gone || !listed(filter, session->id))
		return false;
	if (filter->id && filter->id != session->id)
		return false;
	if (filter->skip_id && filter->skip_id == session->id)
		return false;
	if (filter->address.data && !hs_bytes_equal(filter->address, hs_bytes_of(session->address)))
		return false;
	if (filter->user.data && !hs_bytes_equal(filter->user, hs_acl_user_name(session->user)))
		return false;
	return !filter->local_address.data ||
	       hs_bytes_equal(filter->local_address, hs_bytes_of(session->local_address));
}

void hs_client_list(struct hs_core *core, const struct hs_client_filter *filter,
		    struct hs_buf *text)
{
	for (struct hs_link *link = core->sessions.next; link != &core->sessions;
	     link = link->next) {
		const struct hs_session *session = hs_list_entry(link, struct hs_session, all);

		if (matches(filter, session))
			hs_client_describe(core, session, text);
	}
}

int64_t hs_client_kill(struct hs_core *core, const struct hs_client_filter *filter, uint64_t caller)
{
	int64_t killed = 0;

	for (struct hs_link *link = core->sessions.next; link != &core->sessions;
	     link = link->next) {
		struct hs_session *session = hs_list_entry(link, struct hs_session, all);

		if (!matches(filter, session))
			continue;
		killed++;
		session->cut = session->id != caller; /* who asked still gets the answer */
		hs_session_close(core, session);
		if (filter->old_form)
			break;
	}
	return killed;
}

bool hs_client_parse_unblock(size_t argc, const struct hs_bytes *argv, int64_t *id, bool *error,
			     struct hs_reply *reply)
{
	*error = argc == 4 && hs_bytes_is_word(argv[3], "error");
	if (argc > 4)
		return refuse_count(argv[1], reply);
	if (argc == 4 && !*error && !hs_bytes_is_word(argv[3], "timeout"))
		return refuse(reply, "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
	if (!hs_num_parse_int(argv[2], id))
		return refuse(reply, "ERR value is not an integer or out of range");
	return true;
}

bool hs_client_unblock(struct hs_core *core, int64_t id, bool error)
{
	for (struct hs_link *link = core->sessions.next; link != &core->sessions;
	     link = link->next) {
		struct hs_session *session = hs_list_entry(link, struct hs_session, all);

		if (!session->gone && (int64_t)session->id == id)
			return hs_step_unblock(core, session, error);
	}
	return false;
}

bool hs_client_parse_pause(size_t argc, const struct hs_bytes *argv, enum hs_pause_mode *mode,
			   uint64_t *timeout_us, struct hs_reply *reply)
{
	const char *wrong = NULL;
	int64_t timeout_ms = 0;

	*mode = argc == 4 && hs_bytes_is_word(argv[3], "write") ? HS_PAUSE_WRITES : HS_PAUSE_ALL;
	if (argc > 4)
		return refuse_count(argv[1], reply);
	if (argc == 4 && *mode == HS_PAUSE_ALL && !hs_bytes_is_word(argv[3], "all"))
		wrong = "ERR CLIENT PAUSE mode must be WRITE or ALL";
	else if (!hs_num_parse_int(argv[2], &timeout_ms))
		wrong = "ERR timeout is not an integer or out of range";
	else if (timeout_ms < 0)
		wrong = "ERR timeout is negative";
	else if (timeout_ms > HS_PAUSE_MS_MAX)
		wrong = "ERR timeout is out of range";
	if (wrong && reply)
		hs_reply_error(reply, wrong);
	*timeout_us = (uint64_t)timeout_ms * 1000;
	return !wrong;
}
