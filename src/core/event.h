/* Events that reach a core without a request: published messages and changed keys from the engine, and messages
 * between the same stage on different workers.
 *
 * An event is immutable and shared by all workers: one thread creates it, any thread may read it, the last
 * reference frees it. Its keys come from keyspace/changed.h, the only part of the keyspace that it knows. Bad
 * day: a worker's queue of events is full (HS_EVENT_QUEUE_BYTES_MAX); then messages are dropped and counted,
 * and lost changes become one HS_EVENT_CHANGED_ALL (serve/event_queue.h). */
#ifndef HS_CORE_EVENT_H
#define HS_CORE_EVENT_H

#include "base/bytes.h"

#include <stdatomic.h>
#include <stdint.h>

enum hs_event_kind {
	HS_EVENT_MESSAGE,	  /* channel, payload: for subscribers of the channel */
	HS_EVENT_PATTERN_MESSAGE, /* pattern, channel, payload: for subscribers of the pattern */
	HS_EVENT_SHARD_MESSAGE,	  /* channel, payload: for subscribers of the shard channel */
	/* channel, unsubscribed_kind: the engine has ended the subscription itself (a shard channel whose slot
	 * has moved). */
	HS_EVENT_UNSUBSCRIBED,
	HS_EVENT_CHANGED,     /* keys, and by which connections if known */
	HS_EVENT_CHANGED_ALL, /* every key may have changed: FLUSHALL, or changes were lost */
	/* From a stage of one core to the same stage of all cores of the process (hs_stage_tell). It may be
	 * lost. */
	HS_EVENT_STAGE,
};

struct hs_event {
	_Atomic uint32_t refs;
	enum hs_event_kind kind;
	/* HS_EVENT_UNSUBSCRIBED: the kind of subscription. */
	enum hs_event_kind unsubscribed_kind;
	uint32_t stage; /* HS_EVENT_STAGE: the stage's number */
	struct hs_bytes pattern, channel, payload;
	const struct hs_bytes *keys; /* HS_EVENT_CHANGED */
	/* HS_EVENT_CHANGED: the connection (hs_op.client) that changed key i; 0: unknown, or several did. NULL:
	 * all unknown. */
	const uint64_t *by;
	uint32_t keys_count;
	/* All bytes it points to lie in the same allocation, behind it. */
};

/* Copies `event` and everything it points to. The copy has one reference. */
struct hs_event *hs_event_create(const struct hs_event *event);
size_t hs_event_bytes(const struct hs_event *event); /* memory of the whole allocation */

/* An HS_EVENT_CHANGED with the keys of `changed`, which is not empty. If changed->all is set, the caller has
 * sent HS_EVENT_CHANGED_ALL first. */
struct hs_changed;
struct hs_event *hs_event_create_changed(const struct hs_changed *changed);
void hs_event_ref(struct hs_event *event, uint32_t more);
void hs_event_unref(struct hs_event **event); /* frees with the last reference */

/* Whether a server publishes keyspace notifications on the channel: __keyspace@0__:…, __keyevent@0__:… */
bool hs_event_is_key_event(struct hs_bytes channel);
/* Whether a pattern may match such a channel. May be true for a pattern that does not. */
bool hs_event_may_be_key_event(struct hs_bytes pattern);

#endif
