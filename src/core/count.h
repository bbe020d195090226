/* Commands as heat. A read of one key that shares the time of its batch is noted, and counted with the batch:
 * its arguments stay until then. Others are counted when they are done. */
#ifndef HS_CORE_COUNT_H
#define HS_CORE_COUNT_H

#include "core/state.h"

void hs_count_note(struct hs_core *core, const struct hs_call *call, uint16_t slot,
		   struct hs_bytes reply, bool missed);
void hs_count_read(struct hs_core *core, const struct hs_call *call, struct hs_bytes reply,
		   bool missed, uint64_t time_us);
void hs_count_request(struct hs_core *core, const struct hs_request *request,
		      struct hs_bytes reply);
/* Between these, answers to several requests for one key are handed out, such as those of a folded batch: requests
 * alike are counted as one. The key's bytes stay until the end. */
void hs_count_run_begin(struct hs_core *core, struct hs_bytes key);
void hs_count_run_end(struct hs_core *core);
/* A key's heat was counted: if it is hot the stages are told. `waited`: the request was not answered at once. */
void hs_count_hot(struct hs_core *core, struct hs_heat_warmth heat, bool waited);
uint8_t hs_count_frequency(const struct hs_core *core, struct hs_bytes key); /* OBJECT FREQ */

#endif
