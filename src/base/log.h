/* One log line for each event. The process's start hands in the sink; code that does no I/O sees a struct only.
 * Thread-safe if the sink is. */
#ifndef HS_BASE_LOG_H
#define HS_BASE_LOG_H

#include <stdatomic.h>

enum hs_log_level { HS_LOG_DEBUG, HS_LOG_INFO, HS_LOG_WARN, HS_LOG_ERROR };

struct hs_log {
	_Atomic int level; /* enum hs_log_level: lower levels are dropped */
	void (*sink)(void *context, enum hs_log_level level, const char *line);
	void *context;
};

void hs_log(const struct hs_log *log, enum hs_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
