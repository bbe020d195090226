/* What a connection is told without having asked, in its place among the replies.
 *
 * A connection that has nothing under way is told at once. Else a request that nobody made is put
 * at the end of its list, finished already: it leaves behind the replies of all that were there,
 * and ahead of all that come. More of the same is added to it, so that a connection has at most one
 * such place for each reply it waits for, and what lies there counts against its output limit.
 *
 * A command that may wait for ever (BLPOP) holds nothing up: it is alone, and its reply is nothing
 * that a client keeps. */
#include "core/push.h"
#include "core/dispatch.h"

static struct hs_request *last_of(const struct hs_session *session)
{
	return hs_list_entry(session->requests.prev, struct hs_request, link);
}

/* A place for messages to connection `to` (0: this one) at the end of the session's list. */
static struct hs_request *make_placeholder(struct hs_core *core, struct hs_session *session,
					   uint64_t to, uint32_t worker)
{
	struct hs_request *placeholder = hs_request_get(core, session, NULL);

	placeholder->muted = false; /* CLIENT REPLY OFF is about replies */
	placeholder->is_push = true;
	placeholder->done = true;
	placeholder->redirect_to = to;
	placeholder->redirect_worker = worker;
	return placeholder;
}

static void append(struct hs_request *placeholder, struct hs_bytes bytes)
{
	hs_buf_append_bytes(&placeholder->reply, bytes);
	placeholder->session->held_bytes += bytes.len;
}

/* Something of the session is under way. */
static void add_in_turn(struct hs_core *core, struct hs_session *session, uint64_t to,
			uint32_t worker, struct hs_bytes bytes)
{
	struct hs_request *last = last_of(session);

	if (!last->is_push || last->redirect_to != to)
		last = make_placeholder(core, session, to, worker);
	append(last, bytes);
}

void hs_push_behind(struct hs_core *core, struct hs_request *request, uint64_t to, uint32_t worker,
		    struct hs_bytes bytes)
{
	struct hs_session *session = request->session;
	struct hs_link *next = request->link.next;
	struct hs_request *placeholder = hs_list_entry(next, struct hs_request, link);

	if (bytes.len == 0 || (to == 0 && (session->gone || session->closing)))
		return;
	if (next == &session->requests || !placeholder->is_push || placeholder->redirect_to != to) {
		placeholder = make_placeholder(core, session, to, worker);
		hs_list_remove(&placeholder->link);
		hs_list_append(next, &placeholder->link); /* before `next`: the list is a ring */
	}
	append(placeholder, bytes);
}

static bool nothing_under_way(const struct hs_core *core, const struct hs_session *session)
{
	return hs_list_empty(&session->requests) || hs_dispatch_is_blocked(core, session);
}

void hs_push(struct hs_core *core, struct hs_session *session, struct hs_bytes bytes)
{
	if (session->gone || session->closing || bytes.len == 0)
		return;
	if (nothing_under_way(core, session)) {
		hs_buf_append_bytes(&session->out, bytes);
		hs_session_mark_sendable(core, session);
	} else {
		add_in_turn(core, session, 0, 0, bytes);
	}
	hs_core_check_output(core, session);
}

void hs_push_redirected(struct hs_core *core, struct hs_session *session, uint64_t to,
			uint32_t worker, struct hs_bytes bodies)
{
	if (nothing_under_way(core, session)) {
		hs_session_mark_sendable(core, session); /* its replies are sent first */
		core->forward(core, session->id, to, worker, bodies);
	} else {
		add_in_turn(core, session, to, worker, bodies);
	}
	hs_core_check_output(core, session);
}
