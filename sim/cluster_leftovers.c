/* Counts what clients' connections have left at a node. */
#include "sim/server_internal.h"

void hs_sim_cluster_leftovers(const struct hs_sim_cluster *cluster, uint8_t node,
			      struct hs_sim_leftovers *left)
{
	const struct hs_sim_server *server = &cluster->servers[node];

	*left = (struct hs_sim_leftovers){
		.tracking = server->tracking_conns,
		.prefixes = server->prefixes != NULL,
	};
	for (const struct hs_link *link = server->clients.next; link != &server->clients;
	     link = link->next) {
		const struct hs_sim_server_conn *conn =
			hs_list_entry(link, struct hs_sim_server_conn, link);

		/* HS_SIM_DIED_RESENT: it has no connection, and another law is broken. */
		if (!conn->io)
			continue;
		left->clients++;
		left->watching += (conn->flags & HS_SIM_CONN_WATCHES) != 0;
		left->queueing += (conn->flags & HS_SIM_CONN_MULTI) != 0;
		left->blocked += (conn->flags & HS_SIM_CONN_BLOCKED) != 0;
	}
}
