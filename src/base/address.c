#include "base/address.h"

#include <stdio.h>
#include <string.h>

char *hs_address_text(const char *host, unsigned port, char *text, size_t size)
{
	snprintf(text, size, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
	return text;
}
