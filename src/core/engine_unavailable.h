/* The error for a request while the engine knows no server. Core and engine both use it. Any thread. */
#ifndef HS_CORE_ENGINE_UNAVAILABLE_H
#define HS_CORE_ENGINE_UNAVAILABLE_H

#include <stdio.h>
#include <string.h>

/* In an engine's reason when a server refuses the user or the password. Waiting does not help then, so the
 * error is not CLUSTERDOWN, which makes clients retry. */
#define HS_LOGIN_REFUSED "cannot log in"

/* `unavailable_reason`: "" if the engine gives none. */
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
