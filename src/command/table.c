/* The command table, tied together from its rows. */
#include "command/rows.h"

const struct hs_command *const hs_command_table[HS_CMD_IDS] = {
#define X(identifier) [HS_CMD_ID_##identifier] = &hs_command_row_##identifier,
	HS_COMMAND_IDS(X)
#undef X
};

const struct hs_command *hs_command_by_id(enum hs_command_id id)
{
	hs_check(id < HS_CMD_IDS);
	return hs_command_table[id];
}
