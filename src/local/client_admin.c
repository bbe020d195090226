/* CLIENT LIST, KILL, PAUSE and UNBLOCK: commands of one connection about others, which may be on any worker.
 * The worker that gets the command checks the arguments. Every worker, itself included, parses them again for
 * its part; in that second parse `reply` is NULL, because the arguments are right. */
#include "local/local.h"

#include "base/num.h"
#include "core/dispatch.h"
#include "wire/reply.h"

enum type {
	TYPE_ANY,
	TYPE_NORMAL,
	TYPE_PUBSUB, /* has subscriptions */
	TYPE_NONE,   /* a type that no client of heatsink has */
};

/* The clients that LIST or KILL selects. */
struct filter {
	const struct hs_bytes *ids; /* LIST ID: arguments, checked to be numbers */
	size_t ids_count;
	struct hs_bytes address; /* empty: any */
	struct hs_bytes local_address;
	struct hs_bytes user;
	uint64_t id;	  /* 0: any */
	uint64_t skip_id; /* 0: none */
	enum type type;
	bool old_form; /* CLIENT KILL ip:port */
};

/* Redis's client types; clients of heatsink are normal or pubsub. */
static bool parse_type(struct filter *filter, struct hs_bytes word, struct hs_reply *reply)
{
	static const struct {
		const char *name;
		enum type type;
	} types[] = {
		{"normal", TYPE_NORMAL}, {"pubsub", TYPE_PUBSUB}, {"replica", TYPE_NONE},
		{"slave", TYPE_NONE},	 {"master", TYPE_NONE},
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

/* The error for too many arguments of a subcommand with a variable number of them. Returns false. */
static bool refuse_count(struct hs_bytes name, struct hs_reply *reply)
{
	if (reply)
		hs_local_reply_arity("CLIENT", name, reply);
	return false;
}

static bool listed(const struct filter *filter, uint64_t id)
{
	int64_t wanted;

	for (size_t i = 0; i < filter->ids_count; i++) {
		if (hs_num_parse_int(filter->ids[i], &wanted) && (uint64_t)wanted == id)
			return true;
	}
	return filter->ids_count == 0;
}

static bool matches(const struct filter *filter, const struct hs_session *session)
{
	enum type type = session->subscribed ? TYPE_PUBSUB : TYPE_NORMAL;

	if (filter->type != TYPE_ANY && filter->type != type)
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

/* ---- LIST ---- */

static bool parse_list(struct filter *filter, size_t argc, const struct hs_bytes *argv,
		       struct hs_reply *reply)
{
	*filter = (struct filter){0};
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

static bool check_list(const struct hs_core *core, const struct hs_call *call,
		       struct hs_reply *reply)
{
	struct filter filter;

	(void)core;
	return parse_list(&filter, call->argc, call->argv, reply);
}

static void list_part(struct hs_core *core, struct hs_op *op)
{
	struct filter filter;

	parse_list(&filter, op->argc, op->argv, NULL);
	hs_list_each(const struct hs_session, session, &core->sessions, all) {
		if (matches(&filter, session))
			hs_client_describe(core, session, op->out);
	}
}

static void merge_list(const struct hs_core *core, struct hs_request *request,
		       struct hs_reply *reply)
{
	struct hs_buf text = {0};

	(void)core;
	for (uint32_t i = 0; i < request->parts_count; i++)
		hs_buf_append_bytes(&text, hs_buf_bytes(&request->parts[i].out));
	hs_reply_verbatim(reply, hs_buf_bytes(&text));
	hs_buf_deinit(&text);
}

const struct hs_workers_run hs_workers_client_list = {check_list, list_part, merge_list};

/* ---- KILL ---- */

static bool parse_kill_option(const struct hs_core *core, struct filter *filter,
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
		/* Checked by the receiving worker only. If the user is deleted meanwhile, the other workers
		 * match no session. */
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

static bool parse_kill(const struct hs_core *core, struct filter *filter, size_t argc,
		       const struct hs_bytes *argv, uint64_t caller, struct hs_reply *reply)
{
	*filter = (struct filter){.skip_id = caller};
	if (argc == 3) {
		/* The old form names one client by address, the caller included. */
		*filter = (struct filter){.address = argv[2], .old_form = true};
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

static bool check_kill(const struct hs_core *core, const struct hs_call *call,
		       struct hs_reply *reply)
{
	struct filter filter;

	return parse_kill(core, &filter, call->argc, call->argv, 0, reply);
}

static int64_t kill_clients(struct hs_core *core, const struct filter *filter, uint64_t caller)
{
	int64_t killed = 0;

	hs_list_each(struct hs_session, session, &core->sessions, all) {
		if (!matches(filter, session))
			continue;
		killed++;
		session->cut = session->id != caller; /* the caller still gets its reply */
		hs_session_close(core, session);
		if (filter->old_form)
			break;
	}
	return killed;
}

static void kill_part(struct hs_core *core, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	struct filter filter;

	parse_kill(core, &filter, op->argc, op->argv, op->watcher, NULL);
	hs_reply_int(&reply, kill_clients(core, &filter, op->watcher));
}

static void merge_kill(const struct hs_core *core, struct hs_request *request,
		       struct hs_reply *reply)
{
	if (request->call.argc > 3)
		hs_workers_merge_sum(core, request, reply);
	else if (hs_workers_sum(request) > 0)
		hs_reply_ok(reply);
	else
		hs_reply_error(reply, "ERR No such client");
}

const struct hs_workers_run hs_workers_client_kill = {check_kill, kill_part, merge_kill};

/* ---- UNBLOCK ---- */

static bool parse_unblock(size_t argc, const struct hs_bytes *argv, int64_t *id, bool *error,
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

static bool check_unblock(const struct hs_core *core, const struct hs_call *call,
			  struct hs_reply *reply)
{
	int64_t id;
	bool error;

	(void)core;
	return parse_unblock(call->argc, call->argv, &id, &error, reply);
}

/* True: the client is connected to this worker, and was blocked. */
static bool unblock_client(struct hs_core *core, int64_t id, bool error)
{
	hs_list_each(struct hs_session, session, &core->sessions, all) {
		if (!session->gone && (int64_t)session->id == id)
			return hs_dispatch_unblock(core, session, error);
	}
	return false;
}

static void unblock_part(struct hs_core *core, struct hs_op *op)
{
	struct hs_reply reply = {.out = op->out, .resp = op->resp};
	int64_t id = 0;
	bool error;

	parse_unblock(op->argc, op->argv, &id, &error, NULL);
	hs_reply_int(&reply, unblock_client(core, id, error));
}

const struct hs_workers_run hs_workers_client_unblock = {check_unblock, unblock_part,
							 hs_workers_merge_sum};

/* ---- PAUSE, UNPAUSE ---- */

static bool parse_pause(size_t argc, const struct hs_bytes *argv, enum hs_pause_mode *mode,
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

static bool check_pause(const struct hs_core *core, const struct hs_call *call,
			struct hs_reply *reply)
{
	enum hs_pause_mode mode;
	uint64_t timeout_us;

	(void)core;
	return parse_pause(call->argc, call->argv, &mode, &timeout_us, reply);
}

static void pause_part(struct hs_core *core, struct hs_op *op)
{
	enum hs_pause_mode mode;
	uint64_t timeout_us = 0;

	parse_pause(op->argc, op->argv, &mode, &timeout_us, NULL);
	hs_pause_begin(core, mode, op->received.mono_us + timeout_us);
}

static void unpause_part(struct hs_core *core, struct hs_op *op)
{
	(void)op;
	hs_pause_end(core);
}

const struct hs_workers_run hs_workers_client_pause = {check_pause, pause_part,
						       hs_workers_merge_ok};
const struct hs_workers_run hs_workers_client_unpause = {.part = unpause_part,
							 .merge = hs_workers_merge_ok};
