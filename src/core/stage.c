#include "core/stage.h"

#include "core/dispatch.h"
#include "core/event.h"
#include "core/hold.h"
#include "core/state.h"

#include <string.h>

enum { ALIGN = sizeof(void *) * 2 };

static size_t set_aside(size_t *total, size_t bytes)
{
	size_t at = (*total + ALIGN - 1) / ALIGN * ALIGN;

	*total = at + bytes;
	return at;
}

void hs_stages_init(struct hs_core *core, const struct hs_stage *const *stages)
{
	struct hs_stages *row = &core->stages;

	row->session_bytes = sizeof(struct hs_session);
	row->request_bytes = sizeof(struct hs_request);
	for (; stages && stages[row->count]; row->count++) {
		const struct hs_stage *stage = stages[row->count];

		hs_check(row->count < HS_STAGES_MAX);
		row->table[row->count] = stage;
		row->have_hot |= (uint32_t)(stage->hot != NULL) << row->count;
		row->session_at[row->count] = set_aside(&row->session_bytes, stage->session_bytes);
		row->request_at[row->count] = set_aside(&row->request_bytes, stage->request_bytes);
	}
}

void hs_stages_create(struct hs_core *core)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++)
		row->self[i] = row->table[i]->create(core, i);
}

void hs_stages_deinit(struct hs_core *core)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = row->count; i-- > 0;)
		row->table[i]->destroy(row->self[i]);
}

void hs_stage_want(struct hs_core *core, uint32_t index, enum hs_point point, bool wanted)
{
	const struct hs_stage *stage = core->stages.table[index];
	uint32_t bit = UINT32_C(1) << index;

	hs_check(!wanted || (point == HS_POINT_ADMIT	   ? stage->admit != NULL
			     : point == HS_POINT_HOT_READS ? stage->hot != NULL
			     : point == HS_POINT_FLUSH	   ? stage->flush != NULL
							   : stage->depart != NULL));
	if (wanted)
		core->stages.want[point] |= bit;
	else
		core->stages.want[point] &= ~bit;
}

static void take(struct hs_request *request, struct hs_part *part, enum hs_part_taken taken)
{
	part->taken = taken;
	part->bucket = part->op.partition % HS_PARTITION_BUCKETS;
	request->session->in_bucket[part->bucket]++;
	request->session->delayed += taken == HS_PART_DELAYED;
	request->delayed = request->delayed || taken == HS_PART_DELAYED;
}

static void leave(struct hs_request *request, struct hs_part *part)
{
	if (part->taken == HS_PART_FREE)
		return;
	request->session->in_bucket[part->bucket]--;
	request->session->delayed -= part->taken == HS_PART_DELAYED;
	part->taken = HS_PART_FREE;
}

void hs_stage_delay(struct hs_request *request, struct hs_part *part)
{
	take(request, part, HS_PART_DELAYED);
}

void hs_stage_divert(struct hs_request *request, struct hs_part *part)
{
	take(request, part, HS_PART_DIVERTED);
}

void hs_stage_send(struct hs_core *core, uint32_t index, struct hs_request *request,
		   struct hs_part *part)
{
	struct hs_session *session = request->session;
	uint32_t inflight = session->inflight;

	hs_check(core->stages.sends_forbidden == 0);
	leave(request, part);
	part->stage = (uint8_t)(index + 1);
	hs_dispatch_submit(core, request, (uint32_t)(part - request->parts));
	/* Answered at once: its client may be held until then. */
	if (session->inflight < inflight)
		hs_core_resume_later(core, session);
}

void hs_stage_answer(struct hs_core *core, uint32_t index, struct hs_request *request,
		     struct hs_part *part, struct hs_bytes reply)
{
	hs_check(core->stages.sends_forbidden == 0);
	leave(request, part);
	part->op.answer = reply;
	hs_core_resume_later(core, request->session);
	hs_dispatch_arrived(core, request, part, index);
}

void hs_stage_release(struct hs_core *core, uint32_t index, struct hs_request *request)
{
	struct hs_part *part = &request->parts[0];

	leave(request, part);
	if (part->marked)
		hs_stages_arrive(core, request, part, index);
}

void hs_stage_share(struct hs_core *core, uint32_t index, struct hs_request *request,
		    struct hs_bytes reply)
{
	struct hs_op *op = &request->parts[0].op;

	hs_check(core->stages.sends_forbidden == 0);
	op->answer = reply;
	hs_stage_release(core, index, request);
	op->answer.len = 0;
	hs_request_share(core, request, reply);
}

void hs_stage_observe(struct hs_session *session, uint32_t index, bool wanted)
{
	uint32_t bit = UINT32_C(1) << index;

	session->observers = wanted ? session->observers | bit : session->observers & ~bit;
}

static void find_first_due(struct hs_stages *row)
{
	row->first_due_us = 0;
	for (uint32_t i = 0; i < row->count; i++) {
		if (row->due_us[i] > 0 &&
		    (row->first_due_us == 0 || row->due_us[i] < row->first_due_us))
			row->first_due_us = row->due_us[i];
	}
}

void hs_stage_due(struct hs_core *core, uint32_t index, uint64_t mono_us)
{
	hs_check(core->stages.table[index]->deadline);
	core->stages.due_us[index] = mono_us;
	find_first_due(&core->stages);
}

void hs_stage_tell(struct hs_core *core, uint32_t index)
{
	struct hs_event event = {.kind = HS_EVENT_STAGE, .stage = index};

	hs_check(core->stages.table[index]->told);
	if (!core->world.calls->broadcast)
		return; /* no other worker exists */
	core->world.calls->broadcast(core->world.context, hs_event_create(&event));
}

bool hs_stage_served_behind(struct hs_core *core, uint32_t index, uint16_t slot,
			    struct hs_bytes key)
{
	struct hs_stages *row = &core->stages;
	struct hs_hot *hot = hs_hot_find(&core->hot_table, slot, key);

	for (uint32_t i = index + 1; hot && i < row->count; i++) {
		if (row->table[i]->serves_reads && row->table[i]->serves_reads(row->self[i], hot))
			return true;
	}
	return false;
}

uint32_t hs_stage_index(const struct hs_core *core, const struct hs_stage *stage)
{
	uint32_t i = 0;

	while (core->stages.table[i] != stage)
		hs_check(++i < core->stages.count);
	return i;
}

/* --- the points, first to last and back --- */

/* Calls a point of every stage that implements it. */
#define CALL_ALL(core, point, ...)                                                                 \
	do {                                                                                       \
		struct hs_stages *all = &(core)->stages;                                           \
                                                                                                   \
		for (uint32_t i = 0; i < all->count; i++) {                                        \
			if (all->table[i]->point)                                                  \
				all->table[i]->point(all->self[i], ##__VA_ARGS__);                 \
		}                                                                                  \
	} while (0)

/* Calls a point of the stages whose bits are set; all of them implement it. */
#define CALL_SOME(core, stages_bits, point, ...)                                                   \
	do {                                                                                       \
		struct hs_stages *all = &(core)->stages;                                           \
                                                                                                   \
		for (uint32_t left = (stages_bits); left; left &= left - 1) {                      \
			int i = __builtin_ctz(left);                                               \
                                                                                                   \
			all->table[i]->point(all->self[i], ##__VA_ARGS__);                         \
		}                                                                                  \
	} while (0)

enum hs_stage_result hs_stages_admit(struct hs_core *core, struct hs_session *session,
				     struct hs_call *call, uint32_t from)
{
	struct hs_stages *row = &core->stages;
	enum hs_stage_result verdict = HS_PASS;

	row->admitting = session;
	for (uint32_t left = row->want[HS_POINT_ADMIT] >> from << from; left && verdict == HS_PASS;
	     left &= left - 1) {
		int i = __builtin_ctz(left);

		verdict = row->table[i]->admit(row->self[i], session, call);
		if (verdict == HS_HOLD) {
			hs_check(session->inflight > 0); /* else nothing would resume it */
			session->hold_stage = (uint8_t)i;
			hs_hold(core, session, HS_HOLD_STAGE);
		}
		hs_check(verdict != HS_ALREADY_HELD || session->hold != HS_HOLD_NONE);
	}
	row->admitting = NULL;
	return verdict;
}

bool hs_stages_depart(struct hs_core *core, struct hs_request *request, struct hs_part *part,
		      uint32_t wanting)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t left = wanting; left; left &= left - 1) {
		int i = __builtin_ctz(left);
		enum hs_stage_result verdict = row->table[i]->depart(row->self[i], request, part);

		if (verdict == HS_PASS)
			continue;
		hs_check(verdict == HS_TAKEN);
		return true;
	}
	return false;
}

void hs_stages_arrive(struct hs_core *core, struct hs_request *request, struct hs_part *part,
		      uint32_t below)
{
	struct hs_stages *row = &core->stages;

	row->sends_forbidden++;
	for (uint32_t left = part->marked & ((UINT32_C(1) << below) - 1); left;) {
		int i = 31 - __builtin_clz(left);

		left &= ~(UINT32_C(1) << i);
		if (row->table[i]->arrive)
			row->table[i]->arrive(row->self[i], request, part);
	}
	row->sends_forbidden--;
}

void hs_stages_flush(struct hs_core *core)
{
	struct hs_stages *row = &core->stages;
	uint32_t wanted = row->want[HS_POINT_FLUSH];

	row->want[HS_POINT_FLUSH] = 0; /* a stage may ask again */
	CALL_SOME(core, wanted, flush);
}

void hs_stages_hot(struct hs_core *core, struct hs_hot *hot, bool waited)
{
	core->stages.sends_forbidden++;
	CALL_SOME(core, core->stages.have_hot & hot->plan, hot, hot, waited);
	core->stages.sends_forbidden--;
}

void hs_stages_cool(struct hs_core *core, struct hs_hot *hot, bool cool)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->table[i]->cool)
			row->table[i]->cool(row->self[i], hot, cool || !(hot->plan >> i & 1));
	}
}

void hs_stages_forget(struct hs_core *core, struct hs_session *session)
{
	CALL_ALL(core, forget, session);
}

void hs_stages_open(struct hs_core *core, struct hs_session *session)
{
	CALL_ALL(core, open, session);
}

void hs_stages_queued(struct hs_core *core, struct hs_session *session, const struct hs_call *call)
{
	CALL_SOME(core, session->observers, exec_command, session, call);
}

void hs_stages_handled(struct hs_core *core, struct hs_session *session, const struct hs_call *call)
{
	CALL_SOME(core, session->observers, handled, session, call);
}

void hs_stages_finish(struct hs_core *core, struct hs_request *request)
{
	core->stages.sends_forbidden++;
	CALL_SOME(core, request->session->observers, before_reply, request);
	core->stages.sends_forbidden--;
}

void hs_stages_event(struct hs_core *core, const struct hs_event *event)
{
	CALL_ALL(core, event, event);
}

bool hs_stages_lost_permission(struct hs_core *core, const struct hs_session *session,
			       const struct hs_acl_user *old, const struct hs_acl_user *user)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->table[i]->lost_permission &&
		    row->table[i]->lost_permission(row->self[i], session, old, user))
			return true;
	}
	return false;
}

void hs_stages_close(struct hs_core *core, struct hs_session *session)
{
	CALL_ALL(core, close, session);
}

void hs_stages_report(struct hs_core *core, struct hs_reply *reply)
{
	CALL_ALL(core, report, reply);
}

void hs_stages_configure(struct hs_core *core)
{
	CALL_ALL(core, configure);
}

void hs_stages_changed(struct hs_core *core, const struct hs_tracking_session *tracking_session,
		       const struct hs_bytes *key)
{
	CALL_ALL(core, changed, tracking_session, key);
}

void hs_stages_told(struct hs_core *core, uint32_t index)
{
	struct hs_stages *row = &core->stages;

	row->table[index]->told(row->self[index]);
}

void hs_stages_deadline(struct hs_core *core)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->due_us[i] == 0 || row->due_us[i] > core->now.mono_us)
			continue;
		row->due_us[i] = 0; /* the stage may name another time */
		find_first_due(row);
		row->table[i]->deadline(row->self[i]);
	}
}

void hs_stages_tick(struct hs_core *core)
{
	CALL_ALL(core, tick);
}

void hs_stages_stop(struct hs_core *core)
{
	CALL_ALL(core, stop);
}

bool hs_stage_members(const struct hs_core *core, const struct hs_request *internal,
		      hs_stage_member *tell, void *context)
{
	const struct hs_stages *row = &core->stages;
	uint32_t i = internal->sender_stage;

	if (i == 0 || i > row->count || !row->table[i - 1]->members)
		return false;
	row->table[i - 1]->members(row->self[i - 1], internal, tell, context);
	return true;
}
