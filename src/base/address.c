#include "base/address.h"

#include "base/num.h"

#include <stdio.h>
#include <string.h>

char *hs_address_text(const char *host, unsigned port, char *text, size_t size)
{
	snprintf(text, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
	return text;
}

bool hs_address_split(const char *text, struct hs_bytes *host, unsigned *port)
{
	const char *colon = strrchr(text, ':');
	struct hs_bytes name = {text, 0};
	int64_t number;

	if (!colon || !hs_num_parse_int(hs_bytes_of(colon + 1), &number) || number < 0 ||
	    number > UINT16_MAX)
		return false;
	name.len = (size_t)(colon - text);
	if (name.len > 2 && name.data[0] == '[' && name.data[name.len - 1] == ']')
		name = (struct hs_bytes){name.data + 1, name.len - 2};
	else if (memchr(name.data, ':', name.len))
		return false;
	if (name.len == 0)
		return false;
	*host = name;
	*port = (unsigned)number;
	return true;
}
