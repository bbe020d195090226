#include "sim/names.h"

#include "base/num.h"
#include "base/slot.h"

#include <stdio.h>
#include <string.h>

#define TAG "{key0}"

const char *hs_sim_name(uint32_t tied, uint32_t key, char text[HS_SIM_NAME_BYTES_MAX])
{
	snprintf(text, HS_SIM_NAME_BYTES_MAX, "key%u%s", key, key > 0 && key <= tied ? TAG : "");
	return text;
}

bool hs_sim_name_number(struct hs_bytes name, uint32_t *key)
{
	static const struct hs_bytes tag = HS_LIT(TAG);
	int64_t number;

	if (name.len < 4 || memcmp(name.data, "key", 3) != 0)
		return false;
	if (name.len > tag.len && memcmp(name.data + name.len - tag.len, tag.data, tag.len) == 0)
		name.len -= tag.len;
	if (!hs_num_parse_int((struct hs_bytes){name.data + 3, name.len - 3}, &number) ||
	    number < 0 || number > UINT16_MAX)
		return false;
	*key = (uint32_t)number;
	return true;
}

uint16_t hs_sim_name_slot(uint32_t tied, uint32_t key)
{
	char text[HS_SIM_NAME_BYTES_MAX];

	return hs_slot_of(hs_bytes_of(hs_sim_name(tied, key, text)));
}
