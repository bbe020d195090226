#include "upstream/redirect.h"

#include "base/limits.h"
#include "base/num.h"

bool hs_redirect_parse(struct hs_redirect *redirect, struct hs_bytes text)
{
	struct hs_bytes what = hs_bytes_cut(&text, ' '), number, host;
	const char *colon;
	uint64_t slot, port;

	redirect->ask = hs_bytes_equal(what, HS_LIT("ASK"));
	if (!redirect->ask && !hs_bytes_equal(what, HS_LIT("MOVED")))
		return false;
	number = hs_bytes_cut(&text, ' ');
	colon = text.len > 0 ? memrchr(text.data, ':', text.len) : NULL;
	if (!colon || !hs_num_parse_uint(number, &slot) || slot >= HS_SLOTS)
		return false;
	host = (struct hs_bytes){text.data, (size_t)(colon - text.data)};
	if (!hs_num_parse_uint((struct hs_bytes){colon + 1, text.len - host.len - 1}, &port) ||
	    port == 0 || port > UINT16_MAX)
		return false;
	redirect->slot = (uint16_t)slot;
	redirect->host = host;
	redirect->port = (uint16_t)port;
	return true;
}
