/* HEAT PLAN: every worker writes the rows of its mitigations one after the other; local/workers.c joins the
 * workers' rows to one array. */
#include "core/report.h"

#include "core/state.h"
#include "wire/reply.h"

enum { FIELDS = 9 };

static void reply_text(struct hs_reply *reply, const char *name, const char *value)
{
	hs_reply_bulk_text(reply, name);
	hs_reply_bulk_text(reply, value ? value : "");
}

void hs_plan_row(const struct hs_core *core, struct hs_reply *reply, const struct hs_plan_row *row)
{
	uint64_t for_us = row->since_us > 0 ? core->now.mono_us - row->since_us : 0;

	hs_reply_map(reply, FIELDS + row->numbers_count);
	hs_reply_pair(reply, "key", row->key);
	reply_text(reply, "contract", row->contract ? row->contract : "strict");
	reply_text(reply, "what", row->mitigation);
	reply_text(reply, "state", row->state);
	reply_text(reply, "why", row->why);
	hs_reply_pair_int(reply, "worker", core->world.worker);
	hs_reply_pair_int(reply, "for_ms", (int64_t)(for_us / 1000));
	hs_reply_bulk_text(reply, "partitions");
	hs_reply_array(reply, row->places_count);
	for (size_t i = 0; i < row->places_count; i++)
		hs_reply_int(reply, row->places[i]);
	hs_reply_bulk_text(reply, "reads");
	hs_reply_array(reply, row->reads ? row->places_count : 0);
	for (size_t i = 0; row->reads && i < row->places_count; i++)
		hs_reply_int(reply, (int64_t)row->reads[i]);
	for (size_t i = 0; i < row->numbers_count; i++) {
		hs_reply_bulk_text(reply, row->numbers[i].name);
		hs_reply_int(reply, (int64_t)row->numbers[i].value);
	}
}
