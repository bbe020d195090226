/* Law 2 across keys, also for clients that pipeline: an engine ran what each client requested of a partition in
 * the client's order. Histories of single keys do not show that. In front of a Cluster the order is promised for
 * each key only: the commands for a slot that moves may run later than those for others, and the slot is on two
 * servers meanwhile. A single server is one partition.
 *
 *     server ── ran ──► its connection remembers the place ── reply ──► the operation gets it (op->engine_order)
 *
 * The world notes an execution when an operation comes back, for every request that it stands for; if it was run
 * again, the last time counts. A request that was refused or whose outcome is unknown is not noted: it may run at
 * any time or never. One thread. */
#ifndef HS_SIM_EXECUTIONS_H
#define HS_SIM_EXECUTIONS_H

#include "core/core.h"
#include "core/op.h"
#include "sim/check.h"

enum { HS_SIM_EXECUTIONS_KEYS = 0x8000 };

struct hs_sim_execution {
	uint64_t client;
	uint64_t number;    /* of the request, counted for each client */
	uint64_t at;	    /* its place among all commands that were run */
	uint16_t partition; /* or slot, or HS_SIM_EXECUTIONS_KEYS + number of the key */
};

struct hs_sim_executions {
	struct hs_sim_execution *all;
	size_t count;
	size_t cap;
	uint64_t ran; /* commands that servers have run so far */
};

struct hs_sim_ran;
struct hs_sim_connection;

void hs_sim_executions_deinit(struct hs_sim_executions *executions);
/* A server has run a command for a heatsink: its connection remembers the place. Later the heatsink has
 * received the reply on this connection (NULL: on none), and _find sets op->engine_order to the place; 0: it is
 * not known, or the command needs no order. */
void hs_sim_executions_ran(struct hs_sim_executions *executions, const struct hs_sim_ran *ran);
void hs_sim_executions_find(struct hs_sim_connection *connection, struct hs_op *op);
/* The operation was answered. `where` is the partition, slot or key within which its client's order must hold. */
void hs_sim_executions_note(struct hs_sim_executions *executions, const struct hs_core *core,
			    const struct hs_op *op, uint16_t where);
/* Sorts the executions and compares neighbours. */
int hs_sim_check_executions(struct hs_sim_executions *executions,
			    struct hs_sim_verdict *verdict) HS_MUSTCHECK;

#endif
