#include "core/call.h"

#include "base/num.h"
#include "core/reserved.h"
#include "route/slot_map.h"

enum hs_call_slots hs_call_slots_find(struct hs_call *call)
{
	size_t at = hs_keys_single(call->command, call->argc);
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
	size_t at = hs_keys_single(call->command, call->argc);

	if (at > 0)
		return hs_is_reserved(call->argv[at]);
	hs_call_slots(call);
	return call->reserved;
}

size_t hs_call_only_key(const struct hs_call *call)
{
	size_t at = hs_keys_single(call->command, call->argc);
	struct hs_key_walk walk;

	if (at > 0)
		return at;
	hs_keys_begin(&walk, call->command, call->argc, call->argv);
	at = hs_keys_next(&walk);
	return at > 0 && hs_keys_next(&walk) == 0 ? at : 0;
}

const char *hs_call_named_slot(const struct hs_call *call, uint16_t *slot)
{
	bool counts = call->command->id == HS_CMD_ID_CLUSTER_COUNTKEYSINSLOT;
	int64_t number, keys = 0;

	if (!hs_num_parse_int(call->argv[2], &number) ||
	    (!counts && !hs_num_parse_int(call->argv[3], &keys)))
		return "ERR value is not an integer or out of range";
	if (number < 0 || number >= HS_SLOTS || keys < 0)
		return counts ? "ERR Invalid slot" : "ERR Invalid slot or number of keys";
	*slot = (uint16_t)number;
	return NULL;
}
