/* One line an event. The sink is given by whoever starts the process; below the I/O line a log is
 * just a struct handed in. Thread-safe when the sink is. */
#ifndef HS_BASE_LOG_H
#define HS_BASE_LOG_H

#include <stdatomic.h>

enum hs_log_level { HS_LOG_DEBUG, HS_LOG_INFO, HS_LOG_WARN, HS_LOG_ERROR };

struct hs_log {
	_Atomic int level; /* enum hs_log_level: lines below it are dropped */
	void (*sink)(void *context, enum hs_log_level level, const char *line);
	void *context;
};

void hs_log(const struct hs_log *log, enum hs_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
