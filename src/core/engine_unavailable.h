/* The error of a request that no server can be asked, because none is known yet. Core and engine both
 * give it. */
#ifndef HS_CORE_ENGINE_UNAVAILABLE_H
#define HS_CORE_ENGINE_UNAVAILABLE_H

#include <stdio.h>
#include <string.h>

/* Part of an engine's trouble when a server refuses the user or the password. That does not pass by itself, so
 * the error is not CLUSTERDOWN, which clients take for "try again". */
#define HS_LOGIN_REFUSED "cannot log in"

/* `trouble` is the engine's reason; "": it has none to give. */
static inline void hs_engine_unavailable_text(const char *unavailable_reason, char *text,
					      size_t size)
{
	if (strstr(unavailable_reason, HS_LOGIN_REFUSED))
		snprintf(text, size, "ERR no server can be asked: %s; not sent",
			 unavailable_reason);
	else
		snprintf(text, size,
			 "CLUSTERDOWN the engine's servers are not known yet: %s; not sent",
			 unavailable_reason[0] ? unavailable_reason : "none of them has answered");
}

#endif
