/* SLOWLOG: the slowest commands of this worker, newest last, bounded. */
#ifndef HS_CORE_SLOWLOG_H
#define HS_CORE_SLOWLOG_H

#include "core/state.h"

struct hs_slowlog *hs_slowlog_create(void);
void hs_slowlog_destroy(struct hs_slowlog **slowlog);
void hs_slowlog_add(struct hs_core *core, const struct hs_session *session,
		    const struct hs_call *call, uint64_t time_us);
void hs_slowlog_reset(struct hs_slowlog *slowlog);
size_t hs_slowlog_len(const struct hs_slowlog *slowlog);
/* Entries for the worker that asked: each 8 bytes of number, 8 of length, and that much of reply.
 */
void hs_slowlog_export(const struct hs_slowlog *slowlog, int resp, struct hs_buf *out);
/* All workers' exports as one reply, newest first, `count` at most. */
void hs_slowlog_merge(const struct hs_bytes *exports, size_t exports_count, size_t count,
		      struct hs_reply *reply);

#endif
