#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>

enum { LINE_MAX_BYTES = 1024 };

void hs_log(const struct hs_log *log, enum hs_log_level level, const char *format, ...)
{
	char line[LINE_MAX_BYTES];
	va_list args;

	if (!log || !log->sink || (int)level < log->level)
		return;
	va_start(args, format);
	vsnprintf(line, sizeof line, format, args);
	va_end(args);
	log->sink(log->context, level, line);
}
