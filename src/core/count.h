/* Counts finished commands as heat. The heat tables must not know commands, requests and replies; this module
 * translates. A read whose time is only known with the run of commands it belongs to is noted first
 * (hs_count_note) and counted at the end of the run; its arguments stay valid until then. All others are
 * counted when they are done. Worker's thread only. */
#ifndef HS_CORE_COUNT_H
#define HS_CORE_COUNT_H

#include "core/state.h"

void hs_count_note(struct hs_core *core, const struct hs_call *call, uint16_t slot,
		   struct hs_bytes reply, bool missed);
void hs_count_read(struct hs_core *core, const struct hs_call *call, struct hs_bytes reply,
		   bool missed, uint64_t time_us);
void hs_count_request(struct hs_core *core, const struct hs_request *request,
		      struct hs_bytes reply);
/* Brackets a run of replies to requests for one key, such as those of a folded batch: equal requests are
 * counted together. The key's bytes stay valid until the end. */
void hs_count_run_begin(struct hs_core *core, struct hs_bytes key);
void hs_count_run_end(struct hs_core *core);
/* After a key's heat was counted: calls the stages' `hot` if the key is hot. `waited`: the request was not
 * answered at once. */
void hs_count_hot(struct hs_core *core, struct hs_heat_warmth heat, bool waited);
uint8_t hs_count_frequency(const struct hs_core *core, struct hs_bytes key); /* OBJECT FREQ */

#endif
