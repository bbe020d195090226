/* CLIENT TRACKING and its kin: a connection's settings, and the engine's reports of changes, which are on while
 * any connection of this worker tracks.
 *
 *     CLIENT TRACKING ON REDIRECT 7 ─ which worker has client 7? ─ does the engine report? ─ OK
 *                                     asks all workers             the first one switches it on
 *
 * The command runs alone among its connection's commands: a read behind it must not run before changes are
 * reported. */
#include "core/internal.h"
#include "push/tracking.h"

#include "base/mem.h"
#include "base/num.h"
#include "core/dispatch.h"
#include "core/state.h"
#include "wire/parse_reply.h"
#include "wire/reply.h"

#define NO_REDIRECT "ERR The client ID you want redirect to does not exist"

/* The arguments, and the error that they alone determine. */
struct change {
	bool on;
	bool bcast, optin, optout, noloop;
	bool redirects;
	uint64_t redirect; /* 0: no connection can have that id */
	size_t prefixes;
	size_t prefixes_bytes;
	const char *error; /* syntax error; the check of `redirect` comes later */
};

static void parse(struct change *change, size_t argc, const struct hs_bytes *argv)
{
	int64_t number;

	*change = (struct change){0};
	for (size_t i = 3; i < argc && !change->error; i++) {
		bool more = i + 1 < argc;

		if (hs_bytes_is_word(argv[i], "redirect") && more) {
			if (change->redirects)
				change->error = "ERR A client can only redirect to a single other "
						"client";
			else if (!hs_num_parse_int(argv[++i], &number))
				change->error = "ERR value is not an integer or out of range";
			else
				change->redirects = true;
			if (!change->error)
				change->redirect = number > 0 ? (uint64_t)number : 0;
		} else if (hs_bytes_is_word(argv[i], "prefix") && more) {
			change->prefixes++;
			change->prefixes_bytes += argv[++i].len;
		} else if (hs_bytes_is_word(argv[i], "bcast")) {
			change->bcast = true;
		} else if (hs_bytes_is_word(argv[i], "optin")) {
			change->optin = true;
		} else if (hs_bytes_is_word(argv[i], "optout")) {
			change->optout = true;
		} else if (hs_bytes_is_word(argv[i], "noloop")) {
			change->noloop = true;
		} else {
			change->error = "ERR syntax error";
		}
	}
	change->on = hs_bytes_is_word(argv[2], "on");
	if (!change->error && !change->on && !hs_bytes_is_word(argv[2], "off"))
		change->error = "ERR syntax error";
}

/* Takes the next prefix of the arguments; `at` starts at 3. The arguments have been parsed before. */
static bool next_prefix(size_t argc, const struct hs_bytes *argv, size_t *at,
			struct hs_bytes *prefix)
{
	for (; *at < argc; (*at)++) {
		if (hs_bytes_is_word(argv[*at], "redirect")) {
			(*at)++;
		} else if (hs_bytes_is_word(argv[*at], "prefix")) {
			*prefix = argv[*at + 1];
			*at += 2;
			return true;
		}
	}
	return false;
}

/* --- prefixes --- */

static struct hs_prefix *get_prefix(struct hs_tracking *tracking, struct hs_bytes bytes)
{
	struct hs_link *behind = &tracking->prefixes;
	struct hs_prefix *prefix;

	hs_list_each(struct hs_prefix, other, &tracking->prefixes, link) {
		int order = hs_bytes_compare(other->bytes, bytes);

		if (order == 0)
			return other;
		if (order > 0) {
			behind = &other->link;
			break;
		}
	}
	prefix = hs_mem_alloc(sizeof *prefix + bytes.len);
	if (bytes.len > 0)
		memcpy(prefix + 1, bytes.data, bytes.len);
	prefix->bytes = (struct hs_bytes){(const char *)(prefix + 1), bytes.len};
	hs_list_init(&prefix->members);
	hs_list_append(behind, &prefix->link); /* inserts before `behind`: the list is a ring */
	tracking->prefixes_count++;
	return prefix;
}

static void add_prefix(struct hs_tracking *tracking, struct hs_session *session,
		       struct hs_tracker *tracker, struct hs_bytes bytes)
{
	struct hs_prefix_member **at = &tracker->prefixes;
	struct hs_prefix_member *member;

	while (*at && hs_bytes_compare((*at)->prefix->bytes, bytes) < 0)
		at = &(*at)->next;
	if (*at && hs_bytes_equal((*at)->prefix->bytes, bytes))
		return;
	member = hs_mem_alloc(sizeof *member);
	member->session = session;
	member->prefix = get_prefix(tracking, bytes);
	member->next = *at;
	*at = member;
	hs_list_append(&member->prefix->members, &member->link);
	tracker->prefixes_count++;
	tracker->prefixes_bytes += bytes.len;
}

static void drop_prefixes(struct hs_tracking *tracking, struct hs_tracker *tracker)
{
	while (tracker->prefixes) {
		struct hs_prefix_member *member = tracker->prefixes;
		struct hs_prefix *prefix = member->prefix;

		tracker->prefixes = member->next;
		hs_list_remove(&member->link);
		hs_mem_free(&member);
		if (hs_list_empty(&prefix->members)) {
			hs_list_remove(&prefix->link);
			hs_mem_free(&prefix);
			tracking->prefixes_count--;
		}
	}
}

static bool overlap(struct hs_bytes a, struct hs_bytes b)
{
	size_t len = a.len < b.len ? a.len : b.len;

	return len == 0 || memcmp(a.data, b.data, len) == 0;
}

static void refuse_overlap(struct hs_reply *reply, const char *with, struct hs_bytes prefix,
			   struct hs_bytes other)
{
	hs_reply_errorf(reply,
			"ERR Prefix '%.*s' overlaps with %s prefix '%.*s'. Prefixes for a single "
			"client must not overlap.",
			(int)prefix.len, prefix.data, with, (int)other.len, other.data);
}

/* Checks each prefix against the connection's prefixes and against the later ones in the command. */
static bool prefixes_fit(const struct hs_tracker *tracker, size_t argc, const struct hs_bytes *argv,
			 struct hs_reply *reply)
{
	struct hs_bytes prefix, other;

	for (size_t at = 3; next_prefix(argc, argv, &at, &prefix);) {
		for (const struct hs_prefix_member *member = tracker ? tracker->prefixes : NULL;
		     member; member = member->next) {
			if (overlap(prefix, member->prefix->bytes)) {
				refuse_overlap(reply, "an existing", prefix, member->prefix->bytes);
				return false;
			}
		}
		for (size_t behind = at; next_prefix(argc, argv, &behind, &other);) {
			if (overlap(prefix, other)) {
				refuse_overlap(reply, "another provided", prefix, other);
				return false;
			}
		}
	}
	return true;
}

/* --- on and off --- */

/* The error for ON, checked in Redis's order; NULL: none. */
static const char *refused(const struct hs_tracker *tracker, const struct change *change)
{
	if (!change->bcast && change->prefixes > 0)
		return "ERR PREFIX option requires BCAST mode to be enabled";
	if (tracker && tracker->bcast != change->bcast)
		return "ERR You can't switch BCAST mode on/off before disabling tracking for this "
		       "client, and then re-enabling it with a different mode.";
	if (change->bcast && (change->optin || change->optout))
		return "ERR OPTIN and OPTOUT are not compatible with BCAST";
	if (change->optin && change->optout)
		return "ERR You can't specify both OPTIN mode and OPTOUT mode";
	if (tracker && ((change->optin && tracker->optout) || (change->optout && tracker->optin)))
		return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this "
		       "client, and then re-enabling it with a different mode.";
	if (change->prefixes + (tracker ? tracker->prefixes_count : 0) > HS_TRACKING_PREFIXES_MAX ||
	    change->prefixes_bytes + (tracker ? tracker->prefixes_bytes : 0) >
		    HS_TRACKING_PREFIX_BYTES_MAX)
		return "ERR too many prefixes: at most 256 and 64 KiB in all for one connection";
	return NULL;
}

/* Ends every CLIENT TRACKING. `error` NULL: OK; "": the reply is written already. */
static void answer(struct hs_core *core, struct hs_request *request, const char *error)
{
	struct hs_session *session = request->session;
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};

	if (!error)
		hs_reply_ok(&reply);
	else if (*error)
		hs_reply_error(&reply, error);
	hs_dispatch_account(core, session, &request->call, core->now.mono_us - request->start_us,
			    error != NULL);
	hs_tracking_count(core);
	hs_request_finish(core, request);
}

/* Sends HS_OP_TRACK or HS_OP_UNTRACK to the engine. */
static void ask_engine(struct hs_core *core, enum hs_op_kind kind,
		       void (*then)(struct hs_core *core, struct hs_request *request))
{
	struct hs_internal internal = {
		.call = hs_call_of(hs_command_by_id(HS_CMD_ID_CLIENT_TRACKING), 0, NULL),
		.on_done = then,
		.kind = kind,
		.slot = HS_SLOT_NONE,
		.stage = HS_STAGE_NONE,
	};

	hs_internal_send(core, hs_internal_prepare(core, &internal));
}

static void stop_engine(struct hs_core *core)
{
	hs_tracking_table_retire(&hs_push_of(core)->tracking->table);
	if (hs_push_of(core)->tracking->engine != HS_TRACKING_ON)
		return; /* it has not started yet: engine_started stops it */
	hs_push_of(core)->tracking->engine = HS_TRACKING_OFF;
	ask_engine(core, HS_OP_UNTRACK, hs_internal_end);
}

static void engine_started(struct hs_core *core, struct hs_request *request)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;
	struct hs_request *waiting = tracking->waiting, *next;
	struct hs_buf error = {0};
	const struct hs_buf *out = &request->parts[0].out;

	tracking->waiting = NULL;
	tracking->engine = HS_TRACKING_ON;
	if (out->len > 2 && out->data[0] == '-') {
		hs_buf_append(&error, out->data + 1, out->len - 3);
		hs_buf_append(&error, "", 1);
		tracking->engine = HS_TRACKING_OFF;
	}
	hs_internal_end(core, request);
	for (; waiting; waiting = next) {
		struct hs_session *session = waiting->session;

		next = hs_push_request(core, waiting)->next;
		if (error.len > 0)
			hs_tracking_stop(core, session);
		answer(core, waiting, error.len > 0 ? error.data : NULL);
		hs_core_resume_later(core, session);
	}
	hs_buf_deinit(&error);
	if (tracking->trackers == 0)
		stop_engine(core);
}

/* Whether the stage is called for the session's commands and replies. */
static void listen_to(struct hs_core *core, struct hs_session *session, bool tracks)
{
	struct hs_push_stage *push = hs_push_of(core);

	session->tracks = tracks;
	hs_stage_observe(session, push->index, tracks);
}

static void turn_on(struct hs_core *core, struct hs_request *request, const struct change *change,
		    uint32_t redirect_worker)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;
	struct hs_session *session = request->session;
	struct hs_tracker *tracker = hs_tracker_of(core, session);
	struct hs_bytes prefix;

	if (!tracker) {
		tracker = hs_mem_zalloc(sizeof *tracker);
		hs_push_session(core, session)->tracker = tracker;
		tracking->trackers++;
		listen_to(core, session, true);
	}
	tracker->redirect_broken = false;
	tracker->bcast = change->bcast;
	tracker->optin = change->optin;
	tracker->optout = change->optout;
	tracker->noloop = change->noloop;
	tracker->redirect = change->redirect;
	tracker->redirect_worker = redirect_worker;
	for (size_t at = 3; next_prefix(request->call.argc, request->call.argv, &at, &prefix);)
		add_prefix(tracking, session, tracker, prefix);
	if (change->bcast && change->prefixes == 0)
		add_prefix(tracking, session, tracker, HS_LIT(""));
	/* Count before the request goes to the engine: it sends no events to workers where no connection tracks. */
	hs_tracking_count(core);
	if (tracking->engine == HS_TRACKING_ON) {
		answer(core, request, NULL);
		return;
	}
	hs_push_request(core, request)->next = tracking->waiting;
	tracking->waiting = request;
	if (tracking->engine == HS_TRACKING_OFF) {
		tracking->engine = HS_TRACKING_STARTING;
		ask_engine(core, HS_OP_TRACK, engine_started);
	}
}

void hs_tracking_stop(struct hs_core *core, struct hs_session *session)
{
	struct hs_tracking *tracking = hs_push_of(core)->tracking;

	struct hs_push_session *state = hs_push_session(core, session);

	if (!state->tracker)
		return;
	drop_prefixes(tracking, state->tracker);
	hs_mem_free(&state->tracker);
	tracking->trackers--;
	listen_to(core, session, false);
	if (tracking->trackers == 0)
		stop_engine(core);
	hs_tracking_count(core);
}

/* Makes the last checks, applies the change, and replies. Called when all checks that need other workers are
 * done. */
static void decide(struct hs_core *core, struct hs_request *request, const struct change *change,
		   uint32_t redirect_worker)
{
	struct hs_session *session = request->session;
	struct hs_reply reply = {.out = &request->reply, .resp = session->resp};
	const char *error = change->error;

	if (session->gone) {
		answer(core, request, NO_REDIRECT); /* the client gets no reply */
		return;
	}
	if (!error && change->on)
		error = refused(hs_tracker_of(core, session), change);
	if (!error && change->on && change->bcast &&
	    !prefixes_fit(hs_tracker_of(core, session), request->call.argc, request->call.argv,
			  &reply))
		error = "";
	if (error) {
		answer(core, request, error);
	} else if (change->on) {
		turn_on(core, request, change, redirect_worker);
	} else {
		hs_tracking_stop(core, session);
		answer(core, request, NULL);
	}
}

/* Every worker has replied whether the REDIRECT connection is on it. */
static void workers_answered(struct hs_core *core, struct hs_request *request)
{
	uint32_t worker = core->world.workers;
	struct change change;

	for (uint32_t i = 0; i < request->parts_count; i++) {
		const struct hs_buf *out = &request->parts[i].out;
		struct hs_parsed_reply told;

		if (hs_parse_reply_head(&told, out->data, out->len) > 0 && told.integer == 1)
			worker = i;
	}
	if (worker == core->world.workers) {
		answer(core, request, NO_REDIRECT);
		return;
	}
	parse(&change, request->call.argc, request->call.argv);
	request->on_done = NULL;
	hs_request_drop_parts(request);
	decide(core, request, &change, worker);
}

static void ask_workers(struct hs_core *core, struct hs_request *request, uint64_t id)
{
	uint32_t count = core->world.workers;
	struct hs_bytes *argv = hs_mem_alloc(2 * sizeof *argv);

	hs_request_split(request, count);
	request->on_done = workers_answered;
	hs_buf_append(&request->cursor, &id, sizeof id);
	argv[0] = HS_LIT("");
	argv[1] = hs_buf_bytes(&request->cursor);
	request->parts[0].argv = argv;
	for (uint32_t i = 0; i < count; i++) {
		request->parts[i].op = (struct hs_op){
			.kind = HS_OP_PEER,
			.command = request->call.command,
			.slot = HS_SLOT_NONE,
			.partition = (uint16_t)i,
			.argv = argv,
			.argc = 2,
		};
	}
	for (uint32_t i = 0; i < count; i++)
		hs_dispatch_submit(core, request, i);
}

/* The client may cache reads sent after CLIENT TRACKING ON, so they must not run before the engine reports
 * changes: the command runs alone. */
void hs_tracking_start(struct hs_core *core, struct hs_session *session, struct hs_request *exec,
		       const struct hs_call *call, struct hs_bytes element)
{
	struct hs_request *request = hs_request_make(core, session, call);
	struct change change;

	(void)exec, (void)element; /* never part of a transaction */
	parse(&change, call->argc, call->argv);
	if (change.redirects && change.redirect == 0)
		answer(core, request, NO_REDIRECT);
	else if (change.redirects && !hs_session_find(core, change.redirect))
		ask_workers(core, request, change.redirect);
	else
		decide(core, request, &change, core->world.worker);
}

/* --- CLIENT CACHING, GETREDIR, TRACKINGINFO --- */

void hs_local_client_caching(struct hs_core *core, struct hs_session *session,
			     const struct hs_call *call, struct hs_reply *reply)
{
	struct hs_tracker *tracker = hs_tracker_of(core, session);
	bool yes = hs_bytes_is_word(call->argv[2], "yes");

	if (!tracker) {
		hs_reply_error(reply, "ERR CLIENT CACHING can be called only when the client is in "
				      "tracking mode with OPTIN or OPTOUT mode enabled");
	} else if (!yes && !hs_bytes_is_word(call->argv[2], "no")) {
		hs_reply_error(reply, "ERR syntax error");
	} else if (yes && !tracker->optin) {
		hs_reply_error(reply, "ERR CLIENT CACHING YES is only valid when tracking is "
				      "enabled in OPTIN mode.");
	} else if (!yes && !tracker->optout) {
		hs_reply_error(reply, "ERR CLIENT CACHING NO is only valid when tracking is "
				      "enabled in OPTOUT mode.");
	} else {
		tracker->caching = true;
		hs_reply_ok(reply);
	}
}

void hs_local_client_getredir(struct hs_core *core, struct hs_session *session,
			      const struct hs_call *call, struct hs_reply *reply)
{
	const struct hs_tracker *tracker = hs_tracker_of(core, session);

	(void)call;
	hs_reply_int(reply, tracker ? (int64_t)tracker->redirect : -1);
}

void hs_local_client_trackinginfo(struct hs_core *core, struct hs_session *session,
				  const struct hs_call *call, struct hs_reply *reply)
{
	static const struct hs_tracker off;
	const struct hs_tracker *own = hs_tracker_of(core, session), *tracker = own ? own : &off;
	const char *flags[6];
	size_t count = 0;

	flags[count++] = own ? "on" : "off";
	if (tracker->bcast)
		flags[count++] = "bcast";
	if (tracker->optin)
		flags[count++] = "optin";
	if (tracker->optout)
		flags[count++] = "optout";
	if (tracker->caching && (tracker->optin || tracker->optout))
		flags[count++] = tracker->optin ? "caching-yes" : "caching-no";
	if (tracker->noloop)
		flags[count++] = "noloop";
	if (tracker->redirect_broken)
		flags[count++] = "broken_redirect";
	hs_reply_map(reply, 3);
	hs_reply_bulk_text(reply, "flags");
	hs_reply_set(reply, count);
	for (size_t i = 0; i < count; i++)
		hs_reply_bulk_text(reply, flags[i]);
	hs_reply_bulk_text(reply, "redirect");
	hs_local_client_getredir(core, session, call, reply);
	hs_reply_bulk_text(reply, "prefixes");
	hs_reply_array(reply, tracker->prefixes_count);
	for (const struct hs_prefix_member *member = tracker->prefixes; member;
	     member = member->next)
		hs_reply_bulk(reply, member->prefix->bytes);
}
