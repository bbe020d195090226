#include "engine/redis/tracking_sessions.h"

#include "base/mem.h"

struct entry {
	struct hs_tracking_session tracking_session; /* first: cast to struct entry */
	struct entry *next;			     /* list of all entries, taken or not */
	bool taken;
};

struct hs_tracking_sessions {
	struct entry *all;
};

struct hs_tracking_sessions *hs_tracking_sessions_create(void)
{
	return hs_mem_zalloc(sizeof(struct hs_tracking_sessions));
}

void hs_tracking_sessions_destroy(struct hs_tracking_sessions **pointer)
{
	struct hs_tracking_sessions *tracking_sessions = *pointer;
	struct entry *entry;

	while (tracking_sessions && (entry = tracking_sessions->all)) {
		tracking_sessions->all = entry->next;
		hs_mem_free(&entry);
	}
	hs_mem_free(pointer);
}

struct hs_tracking_session *hs_tracking_sessions_get(struct hs_tracking_sessions *tracking_sessions)
{
	struct entry *entry = tracking_sessions->all;

	while (entry && entry->taken)
		entry = entry->next;
	if (!entry) {
		entry = hs_mem_zalloc(sizeof *entry);
		entry->next = tracking_sessions->all;
		tracking_sessions->all = entry;
	}
	entry->taken = true;
	return &entry->tracking_session;
}

void hs_tracking_sessions_put(struct hs_tracking_session **tracking_session)
{
	hs_tracking_sessions_invalidate(*tracking_session);
	((struct entry *)*tracking_session)->taken = false;
	*tracking_session = NULL;
}

void hs_tracking_sessions_invalidate(struct hs_tracking_session *tracking_session)
{
	atomic_store_explicit(&tracking_session->epoch,
			      hs_tracking_session_epoch(tracking_session) + 1,
			      memory_order_release);
}

void hs_tracking_sessions_caught_up(struct hs_tracking_session *tracking_session, uint64_t us)
{
	if (us > hs_tracking_session_caught_up_us(tracking_session))
		atomic_store_explicit(&tracking_session->caught_up_us, us, memory_order_release);
}
