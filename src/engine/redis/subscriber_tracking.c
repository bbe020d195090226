/* Changed keys, for CLIENT TRACKING of heatsink's clients: on a tracking connection to each master the server
 * reports every key that changes (CLIENT TRACKING ON BCAST).
 *
 * Tracking fails silently: a dead connection looks like a server without changes. When any key may have changed,
 * the subscriber reports CHANGED_ALL:
 *
 *     when a tracking connection is lost or does not answer    its invalidations are lost
 *     when a slot gets another owner                           another master reports its keys
 *     every second until all masters are tracked               nobody reports some keys
 *     when a master is tracked again                           changes before that were not reported
 *
 * Why the liveness check in a Cluster is not PING: a master that is partitioned from the others answers PING,
 * while a replica is promoted and takes the writes. But the old master soon reports that the Cluster is down. So
 * the check is CLUSTER INFO, once a second, and a master that reports this does not count as tracked. (A master
 * that became a replica in a planned failover reports its master's writes until the topology monitor finds out.)
 *
 * The cache has tracking connections of its own (fetch.c), one for each worker and master. The cache cannot use
 * the subscriber's connections: the cache's guarantee is stronger, and needs invalidations in order with the
 * replies to its reads (OPTIN) and a liveness check with a key that was read. Clients' caches need the changes of
 * every key, once for all workers (BCAST), and may get a change about two seconds late. Both parse a push with
 * invalidation.h. */
#include "engine/redis/subscriber_internal.h"

#include "engine/redis/node_info.h"

#include <stdio.h>

bool hs_subscriber_tracking(const struct hs_subscriber *sub)
{
	return hs_subscriber_any(&sub->trackers) || !hs_list_empty(&sub->track_waits);
}

void hs_subscriber_track(struct hs_subscriber *sub, struct hs_op *op)
{
	hs_subscriber_wait_begin(sub, op, NULL, &sub->track_waits);
	sub->conns_stale = true;
}

void hs_subscriber_untrack(struct hs_subscriber *sub, struct hs_op *op)
{
	hs_subscriber_set(&sub->trackers, op->worker, false);
	hs_subscriber_finish(sub, op);
	sub->conns_stale = true;
}

void hs_subscriber_track_confirmed(struct hs_subscriber *sub, struct hs_subscriber_conn *conn)
{
	conn->tracking = true;
	sub->changed_all_due = true;
	sub->conns_stale = true;
}

void hs_subscriber_track_refused(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				 struct hs_bytes error)
{
	struct hs_subscriber_wait *wait;

	while ((wait = hs_subscriber_first_wait(&sub->track_waits)) != NULL)
		hs_subscriber_fail(sub, hs_subscriber_wait_end(sub, wait, false), "%.*s",
				   (int)error.len, error.data);
	hs_upstream_close(&conn->upstream, "it refuses CLIENT TRACKING");
}

void hs_subscriber_track_checked(struct hs_subscriber *sub, struct hs_subscriber_conn *conn,
				 struct hs_bytes reply)
{
	conn->cluster_down = hs_node_says_cluster_down(reply);
	if (!conn->cluster_down)
		return;
	snprintf(conn->why, sizeof conn->why, "it reports that the cluster is down");
	sub->calls->topology_suspect(sub->context);
}

void hs_subscriber_track_timeout(struct hs_subscriber *sub, struct hs_subscriber_wait *wait)
{
	const char *where = "none of the engine's servers has answered yet", *why = "";

	hs_list_each(const struct hs_subscriber_conn, conn, &sub->conns, link) {
		if (!conn->tracks || (conn->tracking && !conn->cluster_down))
			continue;
		where = conn->text;
		why = conn->why[0] ? conn->why : "it does not answer";
	}
	hs_subscriber_fail(sub, hs_subscriber_wait_end(sub, wait, false),
			   "CLUSTERDOWN cannot track keys: %s%s%s", where, *why ? ": " : "", why);
	sub->conns_stale = true;
}

void hs_subscriber_report_changed(struct hs_subscriber *sub)
{
	struct hs_changed *changed = &sub->changed;

	sub->changed_all_due |= changed->all;
	/* If CHANGED_ALL is due at the end of this event, it covers these keys. */
	if (changed->count > 0 && !sub->changed_all_due && hs_subscriber_any(&sub->trackers))
		sub->calls->event(sub->context, hs_event_create_changed(changed));
	hs_changed_clear(changed);
}

/* ---- whether all masters are tracked ---- */

static bool is_silent(const struct hs_subscriber *sub, const struct hs_subscriber_conn *conn)
{
	return conn->checking && hs_upstream_is_silent(&conn->upstream, conn->checked_us,
						       sub->now_us, HS_SUBSCRIBER_SUSPECT_US);
}

static bool are_all_tracked(const struct hs_subscriber *sub)
{
	uint32_t tracked = 0;

	hs_list_each(const struct hs_subscriber_conn, conn, &sub->conns, link)
		tracked += conn->tracking && !conn->cluster_down && !is_silent(sub, conn);
	return sub->routes && tracked > 0 && tracked == sub->routes->nodes_count;
}

void hs_subscriber_check_tracking(struct hs_subscriber *sub)
{
	bool all_tracked = hs_subscriber_tracking(sub) && are_all_tracked(sub);
	struct hs_subscriber_wait *wait;

	if (all_tracked != sub->all_tracked ||
	    (!all_tracked && sub->now_us - sub->changed_all_us >= HS_SUBSCRIBER_CHANGED_ALL_US))
		sub->changed_all_due = true;
	sub->all_tracked = all_tracked;
	if (sub->changed_all_due && hs_subscriber_any(&sub->trackers)) {
		sub->calls->event(sub->context, hs_event_create(&(struct hs_event){
							.kind = HS_EVENT_CHANGED_ALL}));
		sub->changed_all_us = sub->now_us;
	}
	sub->changed_all_due = false;
	while (all_tracked && (wait = hs_subscriber_first_wait(&sub->track_waits)) != NULL)
		hs_subscriber_finish(sub, hs_subscriber_wait_end(sub, wait, true));
}
