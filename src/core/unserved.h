/* The error of a request that no server can be asked, because none is known yet. Core and engine both
 * give it. */
#ifndef HS_CORE_UNSERVED_H
#define HS_CORE_UNSERVED_H

#include <stdio.h>
#include <string.h>

/* Part of an engine's trouble when a server refuses the user or the password. That does not pass by itself, so
 * the error is not CLUSTERDOWN, which clients take for "try again". */
#define HS_NO_LOGIN "cannot log in"

/* `trouble` is the engine's reason; "": it has none to give. */
static inline void hs_unserved_text(const char *trouble, char *text, size_t size)
{
	if (strstr(trouble, HS_NO_LOGIN))
		snprintf(text, size, "ERR no server can be asked: %s; not sent", trouble);
	else
		snprintf(text, size,
			 "CLUSTERDOWN the engine's servers are not known yet: %s; not sent",
			 trouble[0] ? trouble : "none of them has answered");
}

#endif
