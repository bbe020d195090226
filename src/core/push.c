/* Push messages in their place among the replies of a connection.
 *
 * If nothing is in flight, the message is sent at once. Else a placeholder request without a command, already
 * done, goes to the end of the session's list: it is sent after the replies of all earlier requests and before
 * those of later ones. The next messages are appended to the same placeholder. So a connection has at most one
 * placeholder for each reply it waits for, and the bytes count against its output limit.
 *
 * A blocked command (BLPOP) delays no message: it is the only request in flight, and its reply is nothing that a
 * client caches. */
#include "core/push.h"
#include "core/dispatch.h"

static struct hs_request *last_of(const struct hs_session *session)
{
	return hs_list_entry(session->requests.prev, struct hs_request, link);
}

/* Appends a placeholder for messages to connection `to` (0: this one) to the session's list. */
static struct hs_request *make_placeholder(struct hs_core *core, struct hs_session *session,
					   uint64_t to, uint32_t worker)
{
	struct hs_request *placeholder = hs_request_get(core, session, NULL);

	placeholder->muted = false; /* CLIENT REPLY OFF does not silence messages */
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

/* Queues a message behind the requests in flight. */
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
		hs_list_append(next, &placeholder->link); /* before `next` */
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
		hs_session_mark_sendable(core, session); /* its own replies are sent first */
		core->forward(core, session->id, to, worker, bodies);
	} else {
		add_in_turn(core, session, to, worker, bodies);
	}
	hs_core_check_output(core, session);
}
