#include "core/stage.h"

#include "core/hold.h"

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
	uint32_t bit = UINT32_C(1) << index;

	if (wanted)
		core->stages.want[point] |= bit;
	else
		core->stages.want[point] &= ~bit;
}

void hs_stage_send(struct hs_core *core, uint32_t index, struct hs_request *request)
{
	request->parts[0].stage = (uint8_t)(index + 1);
	hs_step_submit(core, request, 0);
}

/* --- the points, first to last and back --- */

enum hs_verdict hs_stages_admit(struct hs_core *core, struct hs_session *session,
				struct hs_call *call)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t left = row->want[HS_POINT_ADMIT]; left; left &= left - 1) {
		int i = __builtin_ctz(left);
		enum hs_verdict verdict = row->table[i]->admit(row->self[i], session, call);

		if (verdict == HS_HOLD)
			hs_hold_for_stage(core, session, (uint32_t)i);
		if (verdict != HS_PASS)
			return verdict;
	}
	return HS_PASS;
}

bool hs_stages_depart(struct hs_core *core, struct hs_request *request, struct hs_part *part)
{
	struct hs_stages *row = &core->stages;
	uint32_t left = row->want[HS_POINT_DEPART] >> part->stage << part->stage;

	for (; left; left &= left - 1) {
		int i = __builtin_ctz(left);

		if (row->table[i]->depart(row->self[i], request, part) != HS_PASS)
			return true;
	}
	return false;
}

void hs_stages_arrive(struct hs_core *core, struct hs_request *request, struct hs_part *part)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t left = request->marked; left;) {
		int i = 31 - __builtin_clz(left);

		left &= ~(UINT32_C(1) << i);
		if (row->table[i]->arrive)
			row->table[i]->arrive(row->self[i], request, part);
	}
}

void hs_stages_flush(struct hs_core *core)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->table[i]->flush)
			row->table[i]->flush(row->self[i]);
	}
}

bool hs_stages_need_flush(const struct hs_core *core)
{
	const struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->table[i]->needs_flush && row->table[i]->needs_flush(row->self[i]))
			return true;
	}
	return false;
}

void hs_stages_hot(struct hs_core *core, struct hs_hot *hot, bool waited)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->table[i]->hot)
			row->table[i]->hot(row->self[i], hot, waited);
	}
}

void hs_stages_cool(struct hs_core *core, struct hs_hot *hot, bool cool)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->table[i]->cool)
			row->table[i]->cool(row->self[i], hot, cool);
	}
}

void hs_stages_forget(struct hs_core *core, struct hs_session *session)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->table[i]->forget)
			row->table[i]->forget(row->self[i], session);
	}
}

void hs_stages_close(struct hs_core *core, struct hs_session *session)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->table[i]->close)
			row->table[i]->close(row->self[i], session);
	}
}

void hs_stages_report(struct hs_core *core, struct hs_reply *reply)
{
	struct hs_stages *row = &core->stages;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->table[i]->report)
			row->table[i]->report(row->self[i], reply);
	}
}

bool hs_stages_askers(const struct hs_core *core, const struct hs_request *internal,
		      hs_stage_asker *tell, void *context)
{
	const struct hs_stages *row = &core->stages;
	uint32_t i = internal->parts[0].stage;

	if (i == 0 || !row->table[i - 1]->askers)
		return false;
	row->table[i - 1]->askers(row->self[i - 1], internal, tell, context);
	return true;
}
