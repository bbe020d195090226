#include "sim/check.h"

#include <stdarg.h>
#include <stdio.h>

void hs_sim_verdict_set(struct hs_sim_verdict *verdict, int law, const char *format, ...)
{
	va_list args;

	if (verdict->law != 0)
		return; /* the first violation counts */
	verdict->law = law;
	va_start(args, format);
	vsnprintf(verdict->text, sizeof verdict->text, format, args);
	va_end(args);
}
