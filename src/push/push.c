/* The stage of push: connects the core's points (core/stage.h) to pub/sub and tracking. */
#include "push/push.h"

#include "base/mem.h"
#include "core/event.h"
#include "push/tracking.h"

static void open_session(void *self, struct hs_session *session)
{
	struct hs_push_stage *push = self;
	struct hs_push_session *state = hs_stage_session(session, push->session_at);

	for (int kind = 0; kind < HS_TOPIC_KINDS; kind++)
		hs_list_init(&state->subscriptions[kind]);
}

/* A command of a transaction that is being sent. */
static void read_queued(void *self, struct hs_session *session, const struct hs_call *call)
{
	struct hs_push_stage *push = self;

	hs_tracking_read(push->core, session, call);
}

/* A command was handed to the engine, or answered: its keys are recorded if the client tracks them. The
 * engine's events are handled later, so they find the keys. */
static void handled(void *self, struct hs_session *session, const struct hs_call *call)
{
	struct hs_push_stage *push = self;

	if (call->admitted)
		hs_tracking_read(push->core, session, call);
	hs_tracking_settle(push->core, session, call);
}

static void before_reply(void *self, struct hs_request *request)
{
	struct hs_push_stage *push = self;

	hs_tracking_send_own_writes(push->core, request);
}

static void tell(void *self, const struct hs_event *event)
{
	struct hs_push_stage *push = self;

	if (event->kind == HS_EVENT_CHANGED || event->kind == HS_EVENT_CHANGED_ALL)
		hs_tracking_event(push->core, event);
	else
		hs_pubsub_event(push->core, event);
}

static void tick(void *self)
{
	struct hs_push_stage *push = self;

	hs_tracking_tick(push->core);
}

static void forget(void *self, struct hs_session *session)
{
	struct hs_push_stage *push = self;

	hs_pubsub_drop(push->core, session);
	hs_tracking_stop(push->core, session);
}

/* A subscription that the old rights do not allow either (made before AUTH changed the user) stays. */
static bool lost_permission(void *self, const struct hs_session *session,
			    const struct hs_acl_user *old, const struct hs_acl_user *user)
{
	struct hs_push_stage *push = self;
	const struct hs_push_session *state = hs_stage_session(session, push->session_at);

	for (int kind = 0; kind < HS_TOPIC_KINDS; kind++) {
		hs_list_each(const struct hs_subscription, subscription,
			     &state->subscriptions[kind], of_session) {
			struct hs_bytes name = subscription->topic->name;
			bool is_pattern = kind == HS_TOPIC_PATTERN;

			if (hs_acl_may_channel(old, name, is_pattern) &&
			    !hs_acl_may_channel(user, name, is_pattern))
				return true;
		}
	}
	return false;
}

static void *create(struct hs_core *core, uint32_t index)
{
	struct hs_push_stage *push = hs_mem_zalloc(sizeof *push);

	push->core = core;
	push->index = index;
	push->session_at = core->stages.session_at[index];
	push->request_at = core->stages.request_at[index];
	hs_topics_init(&push->topics, core->world.seed, push->session_at);
	push->tracking = hs_tracking_create(core->world.seed);
	core->forward = hs_tracking_forward;
	return push;
}

static void destroy(void *self)
{
	struct hs_push_stage *push = self;

	hs_tracking_destroy(&push->tracking);
	hs_topics_deinit(&push->topics);
	hs_buf_deinit(&push->message);
	hs_mem_free(&push);
}

static const struct hs_counter_table counters = HS_COUNTER_TABLE(HS_PUSH_COUNTERS);

const struct hs_stage hs_stage_push = {
	.name = "push",
	.session_bytes = sizeof(struct hs_push_session),
	.request_bytes = sizeof(struct hs_push_request),
	.counters = &counters,
	.counters_at = offsetof(struct hs_push_stage, stats),
	.create = create,
	.destroy = destroy,
	.open = open_session,
	.exec_command = read_queued,
	.handled = handled,
	.before_reply = before_reply,
	.event = tell,
	.tick = tick,
	.forget = forget,
	.lost_permission = lost_permission,
};
