/* What an engine tells without being asked: messages of channels somebody listens to, keys that
 * changed. A piece of news is immutable, handed to every worker, and freed by the last. */
#ifndef HS_CORE_EVENT_H
#define HS_CORE_EVENT_H

#include "base/bytes.h"

#include <stdatomic.h>
#include <stdint.h>

enum hs_event_kind {
	HS_EVENT_MESSAGE,	  /* channel, payload: for those who subscribed the channel */
	HS_EVENT_PATTERN_MESSAGE, /* pattern, channel, payload: for those who subscribed the pattern */
	HS_EVENT_SHARD_MESSAGE, /* channel, payload: for those who subscribed it as a shard's */
	HS_EVENT_UNSUBSCRIBED, /* channel, of kind `was`: the engine dropped the subscription itself
				 * (a shard channel whose slot moved away) */
	HS_EVENT_CHANGED,      /* keys, and perhaps by whom */
	HS_EVENT_CHANGED_ALL,  /* everything may have: FLUSHALL, or news may have been lost */
	/* From a stage of one core to the same stage of all cores of its process (hs_stage_tell). To
	 * lose it does no harm. */
	HS_EVENT_STAGE,
};

struct hs_event {
	_Atomic uint32_t refs;
	enum hs_event_kind kind;
	enum hs_event_kind unsubscribed_kind; /* UNLISTENED */
	uint32_t stage;			      /* STAGE: its number */
	struct hs_bytes pattern, channel, payload;
	const struct hs_bytes *keys; /* CHANGED */
	/* CHANGED: the connection (hs_op.client) that alone changed key i; 0: not known, or several
	 * did. NULL: nothing is known. */
	const uint64_t *by;
	uint32_t keys_count;
	/* Everything it points to lies behind it. */
};

/* Copies what `news` points to. It begins with one reference. */
struct hs_event *hs_event_create(const struct hs_event *event);
size_t hs_event_bytes(const struct hs_event *event); /* of memory, with everything behind it */

/* The keys of a collection, which is not empty, as CHANGED; what is `all` in it the caller tells
 * before. */
struct hs_changed;
struct hs_event *hs_event_create_changed(const struct hs_changed *changed);
void hs_event_ref(struct hs_event *event, uint32_t more);
void hs_event_unref(struct hs_event **event); /* frees with the last one */

/* Whether a channel is one on which a server itself tells of a key: __keyspace@0__:…, __keyevent@0__:… */
bool hs_event_is_key_event(struct hs_bytes channel);
/* Whether a pattern may match such a channel. True in doubt. */
bool hs_event_may_be_key_event(struct hs_bytes pattern);

#endif
