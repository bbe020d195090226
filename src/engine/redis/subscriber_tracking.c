/* Changed keys: on a tracking connection to each master the server tells every key that changes
 * (CLIENT TRACKING ON BCAST).
 *
 * Tracking fails silently: a connection that is lost says nothing, and neither does a key that does not
 * change. So the subscriber watches the connections, and any key may have changed
 *
 *     when a tracking connection is lost, or does not answer   its invalidations are not known
 *     when the owner of a slot changes                         another master tells its keys
 *     every second until all masters are tracked               no server would tell
 *     when a master is tracked again                           changes before that were not told
 */
#include "engine/redis/subscriber_internal.h"

bool hs_subscriber_tracking(const struct hs_subscriber *sub)
{
	return hs_subscriber_any(&sub->trackers) || !hs_list_empty(&sub->track_waits);
}

void hs_subscriber_track(struct hs_subscriber *sub, struct hs_op *op)
{
	hs_subscriber_wait_begin(sub, op, NULL, &sub->track_waits);
	sub->unsettled = true;
}

void hs_subscriber_untrack(struct hs_subscriber *sub, struct hs_op *op)
{
	hs_subscriber_set(&sub->trackers, op->worker, false);
	hs_subscriber_finish(sub, op);
	sub->unsettled = true;
}

void hs_subscriber_track_confirmed(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	conn->tracking = true;
	sub->tell_all = true;
	sub->unsettled = true;
}

void hs_subscriber_track_refused(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				 struct hs_bytes error)
{
	struct hs_subscriber_wait *wait;

	while ((wait = hs_subscriber_first_wait(&sub->track_waits)) != NULL)
		hs_subscriber_fail(sub, hs_subscriber_wait_end(sub, wait, false), "%.*s",
				   (int)error.len, error.data);
	hs_upstream_close(&conn->upstream, "it refuses to tell which keys change");
}

void hs_subscriber_track_late(struct hs_subscriber *sub, struct hs_subscriber_wait *wait)
{
	const char *where = "none of the engine's servers has answered yet", *why = "";
	const struct hs_subscriber_conn *conn = NULL;

	while ((conn = hs_subscriber_next(sub, conn)) != NULL) {
		if (!conn->tracks || conn->tracking)
			continue;
		where = conn->text;
		why = conn->why[0] ? conn->why : "it does not answer";
	}
	hs_subscriber_fail(sub, hs_subscriber_wait_end(sub, wait, false),
			   "CLUSTERDOWN cannot watch which keys change: %s%s%s", where,
			   *why ? ": " : "", why);
	sub->unsettled = true;
}

void hs_subscriber_tell_changed(struct hs_subscriber *sub)
{
	struct hs_changed *changed = &sub->changed;

	sub->tell_all |= changed->all;
	/* CHANGED_ALL, at the end of this event, would cover the keys. */
	if (changed->count > 0 && !sub->tell_all && hs_subscriber_any(&sub->trackers))
		sub->calls->news(sub->context, hs_news_create_changed(changed));
	hs_changed_clear(changed);
}

/* ---- whether all masters are tracked ---- */

static bool is_silent(const struct hs_subscriber *sub, const struct hs_subscriber_conn *conn)
{
	uint64_t heard_us = conn->upstream.heard_us;
	uint64_t since_us = heard_us > conn->ping_us ? heard_us : conn->ping_us;

	return conn->ping_us > 0 && sub->now_us - since_us >= HS_SUBSCRIBER_SUSPECT_US;
}

static bool is_covered(const struct hs_subscriber *sub)
{
	const struct hs_subscriber_conn *conn = NULL;
	uint32_t tracked = 0;

	while ((conn = hs_subscriber_next(sub, conn)) != NULL)
		tracked += conn->tracking && !is_silent(sub, conn);
	return sub->masters_count > 0 && tracked == sub->masters_count;
}

void hs_subscriber_check_tracking(struct hs_subscriber *sub)
{
	bool covered = hs_subscriber_tracking(sub) && is_covered(sub);
	struct hs_subscriber_wait *wait;

	if (covered != sub->covered ||
	    (!covered && sub->now_us - sub->told_us >= HS_SUBSCRIBER_TELL_US))
		sub->tell_all = true;
	sub->covered = covered;
	if (sub->tell_all && hs_subscriber_any(&sub->trackers)) {
		sub->calls->news(sub->context,
				 hs_news_create(&(struct hs_news){.kind = HS_NEWS_CHANGED_ALL}));
		sub->told_us = sub->now_us;
	}
	sub->tell_all = false;
	while (covered && (wait = hs_subscriber_first_wait(&sub->track_waits)) != NULL)
		hs_subscriber_finish(sub, hs_subscriber_wait_end(sub, wait, true));
}
