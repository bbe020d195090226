/* SLOWLOG: the latest slow commands of this worker, oldest first, bounded by slowlog-max-len. Worker's thread
 * only; exports travel to the worker that got the SLOWLOG command. */
#ifndef HS_CORE_SLOWLOG_H
#define HS_CORE_SLOWLOG_H

#include "core/state.h"

struct hs_slowlog *hs_slowlog_create(void);
void hs_slowlog_destroy(struct hs_slowlog **slowlog);
void hs_slowlog_add(struct hs_core *core, const struct hs_session *session,
		    const struct hs_call *call, uint64_t time_us);
void hs_slowlog_reset(struct hs_slowlog *slowlog);
size_t hs_slowlog_len(const struct hs_slowlog *slowlog);
/* Appends all entries for another worker: 8 bytes id, 8 bytes length, and that many bytes of reply, each in
 * host byte order. */
void hs_slowlog_export(const struct hs_slowlog *slowlog, int resp, struct hs_buf *out);
/* Merges all workers' exports into one reply, newest first, at most `count` entries. */
void hs_slowlog_merge(const struct hs_bytes *exports, size_t exports_count, size_t count,
		      struct hs_reply *reply);

#endif
