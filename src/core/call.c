#include "core/call.h"

#include "core/reserved.h"
#include "route/slot.h"

enum hs_call_slots hs_call_slots_find(struct hs_call *call)
{
	size_t at = hs_keys_only(call->command, call->argc);
	struct hs_key_walk walk;

	if (at > 0) {
		call->slot = hs_slot_of(call->argv[at]);
		call->reserved = hs_is_reserved(call->argv[at]);
		return call->slots = HS_CALL_SLOTS_ONE;
	}
	hs_keys_begin(&walk, call->command, call->argc, call->argv);
	at = hs_keys_next(&walk);
	if (at == 0)
		return call->slots = HS_CALL_SLOTS_NONE;
	call->slot = hs_slot_of(call->argv[at]);
	call->slots = HS_CALL_SLOTS_ONE;
	for (; at > 0; at = hs_keys_next(&walk)) {
		call->reserved = call->reserved || hs_is_reserved(call->argv[at]);
		if (call->slots == HS_CALL_SLOTS_ONE && hs_slot_of(call->argv[at]) != call->slot)
			call->slots = HS_CALL_SLOTS_SEVERAL;
	}
	return call->slots;
}

bool hs_call_is_reserved(struct hs_call *call)
{
	size_t at = hs_keys_only(call->command, call->argc);

	if (at > 0)
		return hs_is_reserved(call->argv[at]);
	hs_call_slots(call);
	return call->reserved;
}

size_t hs_call_only_key(const struct hs_call *call)
{
	size_t at = hs_keys_only(call->command, call->argc);
	struct hs_key_walk walk;

	if (at > 0)
		return at;
	hs_keys_begin(&walk, call->command, call->argc, call->argv);
	at = hs_keys_next(&walk);
	return at > 0 && hs_keys_next(&walk) == 0 ? at : 0;
}
