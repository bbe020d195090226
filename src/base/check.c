#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void hs_check_failed(const char *condition, const char *file, int line)
{
	fprintf(stderr, "heatsink: impossible state at %s:%d: %s\n", file, line, condition);
	abort();
}
